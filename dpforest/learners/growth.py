"""The public forest while it grows, level by level: structure that earlier answers decided, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpforest.models.forest import Forest
from dpforest.privacy import Ledger
from dpforest.schema import TARGET_LEVELS

__all__ = ["MAX_NODES", "Frontier", "Growth", "accurate", "masses", "one_vote", "pure", "votes"]

#: No forest grows beyond this many nodes unless its estimator is given a larger ``max_nodes``: 16 million nodes are
#: about a gigabyte.
MAX_NODES = 1 << 24


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

    @property
    def splittable(self) -> np.ndarray:
        """Which nodes have a feature left, bool of shape (n_nodes,)."""
        return np.logical_or.reduce(self.unused, axis=1)

    def __getitem__(self, chosen: Any) -> Frontier:
        return Frontier(self.nodes[chosen], self.scopes[chosen], self.unused[chosen])

    @classmethod
    def join(cls, parts: Sequence[Frontier]) -> Frontier:
        """The nodes of several, at least one, in their order."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("nodes", "scopes", "unused")))


class Growth:
    """A public forest that grows level by level, with a ledger scope for each node.

    Parameters
    ----------
    n_trees, n_features, n_classes : int
    ledger : Ledger
    sharing : {"sequential", "assignment", "equal-split"}
        How the trees compose: every tree reads every record, or each record belongs to one tree.
    max_nodes : int
        Size beyond which :meth:`has_room` says no.
    """

    def __init__(
        self, n_trees: int, n_features: int, n_classes: int, ledger: Ledger, sharing: str, max_nodes: int = MAX_NODES
    ):
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

    def has_room(self, arities: np.ndarray) -> np.ndarray:
        """Which of the nodes, in their order, may get that many children within ``max_nodes``."""
        return self.n_nodes + np.cumsum(arities) <= self.max_nodes

    def require_room(self, n_nodes: int, depth: int) -> None:
        """Raise ValueError if trees of that ``depth``, which need ``n_nodes`` at least, cannot fit."""
        if n_nodes > self.max_nodes:
            words = f"at least {n_nodes}" if n_nodes < 10**15 else "far too many"
            raise ValueError(
                f"trees of depth {depth} need {words} nodes, more than max_nodes = {self.max_nodes}: lower "
                "max_depth or n_estimators, use split='binary', or raise max_nodes"
            )

    def add_children(
        self,
        parents: Frontier,
        features: np.ndarray,
        arities: Any,
        *,
        masks: np.ndarray | None = None,
        binary: np.ndarray | None = None,
        reuse: bool | np.ndarray = False,
    ) -> Frontier:
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
        for name in ("feature", "first_child", "arity", "multiway", "mask"):
            grown = getattr(self, name)
            new = np.zeros((len(nodes), *grown.shape[1:]), dtype=grown.dtype)
            setattr(self, name, np.concatenate([grown, new]))
        self.feature[nodes] = -1
        unused = parents.unused.copy()
        unused[np.arange(len(parents)), features] &= reuse
        self._level += 1
        scopes = self.ledger.open(f"level {self._level}", np.repeat(parents.scopes, arities))
        self.frontier = Frontier(nodes, scopes, np.repeat(unused, arities, axis=0))
        return self.frontier

    def set_leaf_values(self, leaves: Frontier, values: np.ndarray) -> None:
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


def votes(said: np.ndarray, n_classes: int) -> np.ndarray:
    """One vote of each leaf for the class that it says: int64, shape (n_leaves, n_classes)."""
    return np.eye(n_classes, dtype=np.int64)[said]


def one_vote(counts: np.ndarray) -> np.ndarray:
    """One vote of each leaf for its most frequent class: int64, in the shape of ``counts``, (n_leaves, n_classes)."""
    return votes(counts.argmax(axis=1), counts.shape[1])


def pure(counts: np.ndarray) -> np.ndarray:
    """Which nodes hold one class at most: bool, shape (n_nodes,), from their class counts (n_nodes, n_classes)."""
    return (counts > 0).sum(axis=1) <= 1


def accurate(moments: np.ndarray, threshold: float) -> np.ndarray:
    """Which nodes have a mean squared error of at most ``threshold``, in units of the squared range of the target.

    ``moments`` has the count, the sum and the sum of squares of each node's targets: int64, shape (n_nodes, 3).
    """
    count, total, squares = moments.T
    # n^2 times the variance, in grid steps: whole numbers, so nothing is rounded before it is compared
    return count * squares - total**2 <= threshold * (count * TARGET_LEVELS) ** 2


def masses(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The two masses of leaves with these sums of targets, in grid steps, and numbers of records: (n_leaves, 2)."""
    return np.stack([total, TARGET_LEVELS * count - total], axis=1)
