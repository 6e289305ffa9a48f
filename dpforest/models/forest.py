"""The released forest: flat arrays with no record, no exact count and no seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any

import numpy as np

from dpforest import storage
from dpforest.messages import plain, shown
from dpforest.models import walk
from dpforest.models.predictor import Classifying, Regressing, anywhere
from dpforest.privacy import claim
from dpforest.schema import Schema
from dpforest.structure.splits import SHAPE, Splits

__all__ = ["MAX_DEPTH", "Forest", "ForestClassifier", "ForestRegressor", "cut_masks", "ranges"]

MAX_DEPTH = 1000  # splits on a path that an estimator may be asked for, and that a file may hold
_ROWS = 1 << 16  # that are looked at together


@claim("thm-post-processing")
@dataclass(frozen=True, eq=False)
class Forest:
    """The released trees, all in one table of nodes.

    The children of a node stand side by side.  A record with code ``c`` in the node's feature goes to child ``c``
    of a multiway node, and to the child given by bit ``c`` of ``mask`` in a binary one.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Feature that the node splits on; -1 for a leaf.
    first_child : ndarray of int32, shape (n_nodes,)
        Node id of the first child; 0 for a leaf.
    arity : ndarray of int32, shape (n_nodes,)
        Number of children; 0 for a leaf.
    multiway : ndarray of bool, shape (n_nodes,)
    mask : ndarray of uint64, shape (n_nodes, 4)
        256 bits, one per code.
    roots : ndarray of int32, shape (n_trees,)
    values : ndarray of int64, shape (n_nodes, n_classes)
        What a leaf says: one vote for its label, its noisy class counts, or for a regression its two noisy masses.
        Zero for inner nodes.
    shrinkage : float
        Public constant of :meth:`shares`: how large the sum of a leaf's values must be for it to count as much as the
        node above it.

    Guarantee
    ---------
    Whatever is computed from a forest costs nothing more: :prf:ref:`thm-post-processing`.
    """

    feature: np.ndarray
    first_child: np.ndarray
    arity: np.ndarray
    multiway: np.ndarray
    mask: np.ndarray
    roots: np.ndarray
    values: np.ndarray
    shrinkage: float = 0.0

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        return int((self.feature < 0).sum())

    @property
    def depth(self) -> int:
        """Splits on the longest path."""
        return sum(1 for _ in self._levels())

    def is_deeper(self, splits: int) -> bool:
        """Whether a path has more than so many splits; no deeper than that is looked."""
        return next(islice(self._levels(), splits, None), None) is not None

    def sum_leaves(self, codes: np.ndarray, n_jobs: int = 1, *, values: np.ndarray | None = None) -> np.ndarray:
        """The leaf values of each record, summed over the trees: float64, shape (n_rows, n_classes).

        ``values``, of shape (n_nodes, n_outputs), takes the place of the forest's own.
        """
        values = np.ascontiguousarray(self.values if values is None else values, dtype=float)
        return walk.sum_values(codes, self, values, n_jobs=n_jobs)

    def leaves(self, codes: np.ndarray) -> np.ndarray:
        """The leaf of each record in each tree: int32, shape (n_trees, n_rows)."""
        return walk.leaves(codes, self)

    def shares(self) -> np.ndarray:
        """Shares of the values of each node, shrunk towards the node above: float64, shape (n_nodes, n_classes).

        The values of a node are the sums over the leaves below it, and each leaf adds the same noise.  So a node with
        m leaves below it and values of sum n has weight ``n^2 / (n^2 + m shrinkage^2)``, and the node above it the
        rest; the root is shrunk towards equal shares.  Nothing but released values is used, so it costs nothing.
        """
        total, leaves = self.values.astype(float), (self.feature < 0).astype(float)
        levels = list(self._levels())
        for parents, children in reversed(levels):
            np.add.at(total, parents, total[children])
            np.add.at(leaves, parents, leaves[children])
        size = np.maximum(total.sum(axis=1), 0)
        weight = _weight(size, np.sqrt(leaves) * self.shrinkage)[:, None]
        known = np.maximum(total, 0)
        known /= np.maximum(known.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        shares = weight * known
        shares[self.roots] += (1 - weight[self.roots]) / total.shape[1]
        for parents, children in levels:
            shares[children] += (1 - weight[children]) * shares[parents]
        return shares

    def to_dict(self) -> dict:
        """Lists and numbers only, ready for JSON; :meth:`from_dict` reads it back."""
        return {field.name: np.asarray(getattr(self, field.name)).tolist() for field in fields(self)}

    @classmethod
    def from_dict(cls, description: Mapping) -> Forest:
        """The forest that :meth:`to_dict` described; anything malformed raises ValueError."""
        try:
            read = {name: storage.table if name in ("mask", "values") else storage.listed for name in _DTYPES}
            columns: dict[str, np.ndarray] = {
                name: np.array(read[name](description[name], name, bool if dtype is np.bool_ else int), dtype=dtype)
                for name, dtype in _DTYPES.items()
            }
            shrinkage = description["shrinkage"]
            forest = cls(**columns, shrinkage=shrinkage)
            Splits.of(forest)  # refuses cycles, and children outside the table
        except (KeyError, TypeError, OverflowError, ValueError) as error:
            raise ValueError(f"not a forest: {error}") from None
        if forest.values.shape[:1] != forest.feature.shape or forest.values.ndim != 2:
            raise ValueError(f"not a forest: values of shape {forest.values.shape} for {forest.n_nodes} nodes")
        if type(shrinkage) not in (int, float) or not 0 <= shrinkage <= 1e100:
            raise ValueError(f"not a forest: shrinkage must be a number from 0 on, not {shown(shrinkage)}")
        if more := description.keys() - {field.name for field in fields(cls)}:
            raise ValueError(f"not a forest: unknown fields {sorted(more)}")
        return forest

    def check_schema(self, schema: Schema, n_bins: int) -> None:
        """Raise ValueError unless every table that the schema allows can be predicted, in reasonable time."""
        if self.is_deeper(MAX_DEPTH):
            raise ValueError(f"not a released forest: it has more than {MAX_DEPTH} splits on a path")
        if self.values.shape[1] != (schema.n_classes or 2):
            raise ValueError("not a released forest: its leaves and its schema disagree on what is predicted")
        if (self.feature >= schema.n_features).any():
            raise ValueError("not a released forest: it splits on a feature that its schema does not have")
        wide = self.multiway & (self.feature >= 0)
        if (self.arity[wide] < schema.cardinalities(n_bins)[self.feature[wide]]).any():
            raise ValueError("not a released forest: a node has fewer children than its feature has codes")

    @property
    def size(self) -> str:
        """How large it is, in words."""
        return f"{self.n_trees} trees with {self.n_leaves} leaves together, at most {self.depth} splits deep."

    def tree(self, number: int) -> Forest:
        """The forest of one tree of this one; its table of nodes is shared."""
        return replace(self, **_reachable(self, self.roots[number : number + 1]))

    def prune(self, nodes: np.ndarray) -> tuple[Forest, np.ndarray]:
        """The forest in which these inner nodes are leaves that say nothing, and which of the nodes are still there."""
        cut = ("feature", "first_child", "arity", "multiway", "mask")
        columns: dict[str, Any] = {name: getattr(self, name).copy() for name in cut}
        columns["feature"][nodes] = -1
        for name in cut[1:]:
            columns[name][nodes] = 0
        pruned = replace(self, **columns)
        return replace(pruned, **_reachable(pruned, self.roots)), _below(pruned, self.roots)

    @classmethod
    def join(cls, forests: Iterable[Forest]) -> Forest:
        """The trees of several forests, one after the other."""
        forests = list(forests)
        joined = Splits.join(forests)
        shape = {name: getattr(joined, name) for name in SHAPE}
        return cls(**shape, values=np.concatenate([one.values for one in forests]), shrinkage=forests[0].shrinkage)

    def describe(self, columns: Sequence[str], tree: int = 0, max_lines: int = 40) -> str:
        """One tree as indented text, for reading: ``columns`` names the features."""
        lines: list[str] = []
        todo = [(int(self.roots[tree]), 0, "root")]
        while todo and len(lines) < max_lines:
            node, depth, edge = todo.pop()
            leaf = self.feature[node] < 0
            said = f"says {self.values[node].tolist()}" if leaf else f"splits on {plain(columns[self.feature[node]])}"
            lines.append(f"{'  ' * depth}{edge}: {said}")
            children = range(self.first_child[node], self.first_child[node] + self.arity[node])
            todo += [(child, depth + 1, f"child {child - self.first_child[node]}") for child in reversed(children)]
        return "\n".join(lines + [f"... {len(todo)} more branches"] * bool(todo))

    def __str__(self) -> str:
        return f"{self.n_trees} trees"

    def _levels(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Level by level, the nodes below the roots, each with its parent: (parents, children)."""
        nodes = self.roots
        while (inner := nodes[self.feature[nodes] >= 0]).size:
            nodes = ranges(self.first_child[inner], self.arity[inner])
            yield np.repeat(inner, self.arity[inner]), nodes


class ForestClassifier(Classifying):
    """Classification by ``forest_``, whose leaves hold one vote or noisy class counts."""

    @anywhere
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The share of each class in the leaf values summed over the trees, negative sums taken as zero: shares of
        votes where leaves are labels, of noisy counts where they are counts.  Uniform where nothing is positive.  In a
        forest with shrinkage, the mean over the trees of :meth:`dpforest.models.forest.Forest.shares`.
        """
        return self._predict_from_scores(self._leaf_sums(X))

    def _predict_from_scores(self, scores: np.ndarray) -> np.ndarray:
        values = np.maximum(scores, 0)
        total = values.sum(axis=1, keepdims=True)
        return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / values.shape[1])

    @anywhere
    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest summed leaf value; the first of ``classes_`` in a tie."""
        sums = self._leaf_sums(X)
        # argmax copies what it is given: some rows at a time
        parts = [sums[first : first + _ROWS].argmax(axis=1) for first in range(0, max(len(sums), 1), _ROWS)]
        return self.classes_[np.concatenate(parts)]

    def _leaf_sums(self, X: Any) -> np.ndarray:
        forest = self._released()
        values = forest.shares() if forest.shrinkage else forest.values
        return forest.sum_leaves(self._codes(X), values=values, n_jobs=self._n_threads())


class ForestRegressor(Regressing):
    """Regression by ``forest_``, whose leaves hold two noisy masses: above the lower bound, and below the upper."""

    @anywhere
    def predict(self, X: Any) -> np.ndarray:
        """The mean over the trees of the leaf means, float64, shape (n_rows,), within the declared target range.

        A leaf's mean is the share of its first mass, shrunk towards the nodes above it:
        :meth:`dpforest.models.forest.Forest.shares`.
        """
        forest = self._released()
        shares = forest.sum_leaves(self._codes(X), values=forest.shares()[:, :1], n_jobs=self._n_threads())
        return self._predict_from_scores(shares)

    def _predict_from_scores(self, scores: np.ndarray) -> np.ndarray:
        return self.schema_.decode_target(np.clip(scores[:, 0] / self._released().n_trees, 0, 1))


_DTYPES: dict[str, type] = {**SHAPE, "values": np.int64}


def _reachable(forest: Forest, roots: np.ndarray) -> dict[str, Any]:
    """The arrays of the nodes below these roots, in their order, with their own numbers."""
    nodes = _below(forest, roots)
    number = np.zeros(forest.n_nodes, dtype=np.int32)
    number[nodes] = np.arange(len(nodes), dtype=np.int32)
    columns = {name: getattr(forest, name)[nodes] for name in _DTYPES if name != "roots"}
    columns["first_child"] = np.where(columns["feature"] >= 0, number[columns["first_child"]], 0).astype(np.int32)
    return {**columns, "roots": number[roots]}


def _below(forest: Forest, roots: np.ndarray) -> np.ndarray:
    """These roots and all nodes below them, in order."""
    kept, nodes = [roots], roots
    while (inner := nodes[forest.feature[nodes] >= 0]).size:
        nodes = ranges(forest.first_child[inner], forest.arity[inner])
        kept.append(nodes)
    return np.sort(np.concatenate(kept))


def _weight(size: np.ndarray, half: np.ndarray) -> np.ndarray:
    """``size^2 / (size^2 + half^2)``; without size, 0."""
    return np.divide(size**2, size**2 + half**2, out=np.zeros(len(size)), where=size > 0)


def cut_masks(ends: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Cuts of code ranges: codes after ``ends`` and below ``sizes``, of the same shape (...), as uint64 (..., 4)."""
    every = np.arange(256)
    bits = (every > ends[..., None]) & (every < sizes[..., None])
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint64)


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The integers of all half-open ranges [start, start + length), one range after the other."""
    ends = lengths.cumsum()
    return np.arange(ends[-1] if ends.size else 0) + (starts - ends + lengths).repeat(lengths)
