"""Growing trees level by level, and the released forest.

:class:`Growth` is the public forest while it grows: structure that earlier answers decided, and nothing else.
:class:`Forest` is what is released: flat arrays with no record, no exact count and no seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any

import numpy as np

from dpforest import counting, storage
from dpforest.budgets import Shares
from dpforest.chance import Chance
from dpforest.curator import STOP, Curator
from dpforest.curator.known import cut_masks, ranges
from dpforest.privacy import Ledger, claim
from dpforest.scores import Score

__all__ = [
    "CutPool", "Forest", "Frontier", "Growth", "cut_masks", "grow_chosen", "grow_random", "one_vote", "pure",
    "random_cuts", "votes",
]  # fmt: skip

Candidates = tuple[np.ndarray, np.ndarray]
Draw = Callable[["Frontier"], Candidates]
Settle = Callable[["Frontier", float], None]
Finished = Callable[["Frontier"], np.ndarray]

#: No forest grows beyond this many nodes unless its estimator is told so: 16 million nodes are about a gigabyte.
MAX_NODES = 1 << 24

#: Divisions of a categorical feature that the trees of a forest share.
POOL = 32


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
        return counting.sum_values(codes, self, values, n_jobs=n_jobs)

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
            counting.Splits.of(forest)  # refuses cycles, and children outside the table
        except (KeyError, TypeError, OverflowError, ValueError) as error:
            raise ValueError(f"not a forest: {error}") from None
        if forest.values.shape[:1] != forest.feature.shape or forest.values.ndim != 2:
            raise ValueError(f"not a forest: values of shape {forest.values.shape} for {forest.n_nodes} nodes")
        if type(shrinkage) not in (int, float) or not 0 <= shrinkage <= 1e100:
            raise ValueError(f"not a forest: shrinkage must be a number from 0 on, not {shrinkage!r}")
        if more := description.keys() - {field.name for field in fields(cls)}:
            raise ValueError(f"not a forest: nobody knows {sorted(more)}")
        return forest

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
        before = np.cumsum([0, *(forest.n_nodes for forest in forests[:-1])]).astype(np.int32)
        columns = {name: np.concatenate([getattr(forest, name) for forest in forests]) for name in _DTYPES}
        columns["first_child"] = np.concatenate(
            [
                np.where(forest.feature >= 0, forest.first_child + start, 0)
                for forest, start in zip(forests, before, strict=True)
            ]
        )
        columns["roots"] = np.concatenate([forest.roots + start for forest, start in zip(forests, before, strict=True)])
        return cls(**columns, shrinkage=forests[0].shrinkage)

    def describe(self, columns, tree: int = 0, max_lines: int = 40) -> str:
        """One tree as indented text, for reading: ``columns`` names the features."""
        lines: list[str] = []
        todo = [(int(self.roots[tree]), 0, "root")]
        while todo and len(lines) < max_lines:
            node, depth, edge = todo.pop()
            leaf = self.feature[node] < 0
            said = f"says {self.values[node].tolist()}" if leaf else f"splits on {columns[self.feature[node]]}"
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


_DTYPES: dict[str, type] = {
    "feature": np.int32, "first_child": np.int32, "arity": np.int32, "multiway": np.bool_, "mask": np.uint64,
    "roots": np.int32, "values": np.int64,
}  # fmt: skip


@dataclass
class Frontier:
    """The nodes of the level that grows now, each with what is public about it.

    Attributes
    ----------
    nodes, scopes : ndarray of int
        Node ids, and their scopes in the ledger.
    unused : ndarray of bool, shape (n_nodes, n_features)
        Features not yet split on along the path.
    """

    nodes: np.ndarray
    scopes: np.ndarray
    unused: np.ndarray

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, chosen) -> Frontier:
        return Frontier(self.nodes[chosen], self.scopes[chosen], self.unused[chosen])


class Growth:
    """A public forest that grows level by level, with a ledger scope for each node.

    Parameters
    ----------
    n_trees, n_features, n_classes : int
    ledger : Ledger
    sharing : {"sequential", "assignment", "equal-split"}
        How the trees compose: every tree reads every record, or each record belongs to one tree.
    max_nodes : int
        Size beyond which :meth:`room` says no.
    """

    def __init__(self, n_trees, n_features, n_classes, ledger: Ledger, sharing: str, max_nodes: int = MAX_NODES):
        self.ledger = ledger
        self.max_nodes = max_nodes
        self.feature = np.full(n_trees, -1, dtype=np.int32)
        self.first_child = np.zeros(n_trees, dtype=np.int32)
        self.arity = np.zeros(n_trees, dtype=np.int32)
        self.multiway = np.zeros(n_trees, dtype=bool)
        self.mask = np.zeros((n_trees, 4), dtype=np.uint64)
        self.roots = np.arange(n_trees, dtype=np.int32)
        self._n_classes = n_classes
        self._leaves: list[tuple[np.ndarray, np.ndarray]] = []
        self._level = 1
        forest = ledger.open("forest", [0], kind=sharing)
        scopes = ledger.open("level 1", np.repeat(forest, n_trees))
        self.frontier = self._starts = Frontier(self.roots.copy(), scopes, np.ones((n_trees, n_features), dtype=bool))

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    def begin(self, tree: int) -> Frontier:
        """Make the root of one tree the frontier, where trees grow one after the other."""
        self._level = 1
        self.frontier = self._starts[tree : tree + 1]
        return self.frontier

    def room(self, arities: np.ndarray) -> np.ndarray:
        """Which of the nodes, in their order, may get that many children within ``max_nodes``."""
        return self.n_nodes + np.cumsum(arities) <= self.max_nodes

    def branch(self, parents: Frontier, features, arities, *, masks=None, binary=None, reuse=False) -> Frontier:
        """Split ``parents``; their children, in order, are the next frontier.

        Parameters
        ----------
        features, arities : array-like of int, shape (n_parents,)
        masks : ndarray of uint64, shape (n_parents, 4), optional
            Which codes go to the second child, for the parents that ``binary`` marks (default: all of them).  Without
            masks every split is multiway.
        binary : ndarray of bool, shape (n_parents,), optional
        reuse : bool or ndarray of bool, shape (n_parents,)
            Whether a feature may be split on again below.
        """
        binary = np.full(len(parents), masks is not None) if binary is None else binary
        starts = self.n_nodes + np.concatenate([[0], np.cumsum(arities, dtype=np.int64)])
        self.feature[parents.nodes] = features
        self.first_child[parents.nodes] = starts[:-1]
        self.arity[parents.nodes] = arities
        self.multiway[parents.nodes] = ~binary
        if masks is not None:
            self.mask[parents.nodes] = masks
        nodes = np.arange(self.n_nodes, starts[-1])
        self.feature = np.append(self.feature, np.full(len(nodes), -1, dtype=np.int32))
        self.first_child = np.append(self.first_child, np.zeros(len(nodes), dtype=np.int32))
        self.arity = np.append(self.arity, np.zeros(len(nodes), dtype=np.int32))
        self.multiway = np.append(self.multiway, np.zeros(len(nodes), dtype=bool))
        self.mask = np.append(self.mask, np.zeros((len(nodes), 4), dtype=np.uint64), axis=0)
        unused = parents.unused.copy()
        unused[np.arange(len(parents)), features] &= reuse
        self._level += 1
        scopes = self.ledger.open(f"level {self._level}", np.repeat(parents.scopes, arities))
        self.frontier = Frontier(nodes, scopes, np.repeat(unused, arities, axis=0))
        return self.frontier

    def settle(self, leaves: Frontier, values: np.ndarray) -> None:
        """Say what these leaves answer: int64, shape (n_leaves, n_classes)."""
        self._leaves.append((leaves.nodes, values))

    def release(self, shrinkage: float = 0.0) -> Forest:
        """The finished forest, in arrays of its own."""
        values = np.zeros((self.n_nodes, self._n_classes), dtype=np.int64)
        for nodes, said in self._leaves:
            values[nodes] = said
        return Forest(
            self.feature, self.first_child, self.arity, self.multiway, self.mask, self.roots, values, shrinkage
        )


def grow_random(growth: Growth, chance: Chance, cardinalities, ordered, depth: int) -> Frontier:
    """Grow complete binary trees of ``depth`` splits without reading anything; returns their leaves.

    A node splits on a random feature, by one of the public cuts of its codes (:class:`CutPool`).

    Parameters
    ----------
    cardinalities : ndarray of int, shape (n_features,)
    ordered : ndarray of bool, shape (n_features,)
        Which features are numeric.
    """
    pool = CutPool(chance, cardinalities, ordered)
    for _ in range(depth):
        frontier = growth.frontier
        features = chance.integers(len(ordered), len(frontier)).astype(np.int32)
        masks = pool.draw(chance, features)
        growth.branch(frontier, features, np.full(len(frontier), 2), masks=masks, reuse=True)
    return growth.frontier


def grow_chosen(
    growth: Growth, curator: Curator, shares: Shares, draw: Draw, settle: Settle, *, score: Score, mechanism: str,
    calibration: str = "range", stop_margin: float | None = None, finished: Finished | None = None,
) -> None:  # fmt: skip
    """Grow binary trees level by level: a node draws its candidates, and the curator chooses one of them, or *stop*.

    Parameters
    ----------
    shares : Shares
        What a selection on each level costs, and what is left for a leaf there.
    draw : callable
        ``draw(frontier)``: features (n_nodes, K) and masks (n_nodes, K, 4) of the candidates of these nodes.
    settle : callable
        ``settle(leaves, epsilon)``: ask for what these leaves say, at that budget.
    finished : callable or None
        ``finished(frontier)``: which nodes a published algorithm makes leaves by what it reads in them.
    """
    for level in range(1, shares.depth + 1):
        frontier = growth.frontier
        done = np.full(len(frontier), level == shares.depth)
        if finished is not None:
            done |= finished(frontier)
        if done.any():
            settle(frontier[done], shares.leaf(level, stopped=False))
        inner = frontier[~done]
        if not len(inner):
            break
        features, masks = draw(inner)
        choice = curator.choose_candidate(
            growth, inner.nodes, inner.scopes, features, masks, shares.branch(level), score=score, mechanism=mechanism,
            calibration=calibration, stop_margin=stop_margin,
        )  # fmt: skip
        grows = (choice != STOP) & growth.room(np.where(choice == STOP, 0, 2))
        if not grows.all():
            # a node that stops has paid for its selection: thm-stop-budget
            settle(inner[~grows], shares.leaf(level, stopped=True))
        rows = np.flatnonzero(grows)
        growth.branch(
            inner[grows], features[rows, choice[rows]], np.full(len(rows), 2), masks=masks[rows, choice[rows]],
            reuse=True,
        )  # fmt: skip


class CutPool:
    """The binary splits of each feature among which trees draw theirs: public, made before anything is read.

    An ordered range of codes is cut at one of its inner edges.  A categorical one is divided into two non-empty sets:
    by one of all such divisions where they are ``POOL`` or fewer, else by one of ``POOL`` that are drawn here,
    uniformly and independently.  Code 0 always goes to the first child, which loses nothing.
    A range of one code cannot be divided: all its records go to the first child.

    Parameters
    ----------
    chance : Chance
    cardinalities : array-like of int, shape (n_features,)
    ordered : array-like of bool, shape (n_features,)
        Which features are cut in the order of their codes.

    Notes
    -----
    To whoever sees one split alone, it is drawn from all divisions.  Trees of one forest share the pool, so that each
    of its bitmaps is made once for all of them.  The pool is drawn without looking at a record: the release is a
    mixture over pools of what is private given each, and so as private (:prf:ref:`thm-post-processing`).
    """

    def __init__(self, chance: Chance, cardinalities, ordered):
        pools = [
            _edges(int(size)) if cut else _divisions(chance, int(size))
            for size, cut in zip(cardinalities, ordered, strict=True)
        ]
        self._size = np.array([len(pool) for pool in pools], dtype=np.int64)
        self._start = np.cumsum(self._size) - self._size
        bits = np.concatenate([np.zeros((0, 256), dtype=bool), *pools])
        self._masks = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)

    @property
    def n_features(self) -> int:
        return len(self._size)

    def draw(self, chance: Chance, features) -> np.ndarray:
        """One of the splits of each of these features, uniformly: uint64, shape (n, 4), see :class:`Forest`."""
        place, size = self._start[features], self._size[features]
        for high in np.unique(size[size > 1]):
            rows = np.flatnonzero(size == high)
            place[rows] += chance.integers(int(high), rows.size)
        return self._masks[place]


def random_cuts(chance: Chance, pool: CutPool, n_nodes: int, size: int, each: int = 1):
    """Random candidates: ``size`` different features of each node, each with ``each`` random ones of its cuts.

    Returns
    -------
    features : ndarray of int32, shape (n_nodes, size * each)
    masks : ndarray of uint64, shape (n_nodes, size * each, 4)
    """
    features = np.repeat(chance.subsets(pool.n_features, size, n_nodes), each, axis=1).astype(np.int32)
    return features, pool.draw(chance, features.ravel()).reshape(*features.shape, 4)


def votes(said: np.ndarray, n_classes: int) -> np.ndarray:
    """One vote of each leaf for the class that it says: int64, shape (n_leaves, n_classes)."""
    return np.eye(n_classes, dtype=np.int64)[said]


def one_vote(counts: np.ndarray) -> np.ndarray:
    """One vote of each leaf for its commonest class: int64, in the shape of ``counts``, (n_leaves, n_classes)."""
    return votes(counts.argmax(axis=1), counts.shape[1])


def pure(counts: np.ndarray) -> np.ndarray:
    """Which nodes hold one class at most: bool, shape (n_nodes,), from their class counts (n_nodes, n_classes)."""
    return (counts > 0).sum(axis=1) <= 1


def _edges(size: int) -> np.ndarray:
    """The codes after each inner edge of an ordered range, bool, shape (n, 256)."""
    bits = np.arange(256) > np.arange(max(size - 1, 1))[:, None]
    bits[:, size:] = False
    return bits


def _divisions(chance: Chance, size: int) -> np.ndarray:
    """Non-empty sets of the codes but 0, in the same shape; beyond 62 codes, one is empty with probability < 2^-62."""
    n = size - 1
    if 1 << n <= POOL:
        bits = np.zeros((max((1 << n) - 1, 1), 256), dtype=bool)
        bits[:, 1:size] = np.arange(1, max(1 << n, 2))[:, None] >> np.arange(n) & 1
        return bits
    bits = np.zeros((POOL, 256), dtype=bool)
    for start in range(0, n, 62):
        width = min(62, n - start)
        at_least = 1 if n <= 62 else 0
        word = chance.integers((1 << width) - at_least, POOL) + at_least
        bits[:, 1 + start : 1 + start + width] = word[:, None] >> np.arange(width) & 1
    return bits


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
