"""The public cuts among which trees draw theirs, made before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpforest.budgets import Shares
from dpforest.chance import Chance
from dpforest.learners.growth import Frontier, Growth
from dpforest.learners.run import Leak, Run, Selection
from dpforest.mechanisms import exponential
from dpforest.models.forest import cut_masks

__all__ = [
    "POOL",
    "CutPool",
    "cuts_at_values",
    "grow_extra_trees",
    "grow_multiway",
    "grow_random",
    "random_cuts",
    "value_cuts",
]

#: Divisions of a categorical feature that the trees of a forest share.
POOL = 32


def grow_random(growth: Growth, chance: Chance, cardinalities: Any, ordered: Any, depth: int) -> Frontier:
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
        growth.add_children(frontier, features, np.full(len(frontier), 2), masks=masks, reuse=True)
    return growth.frontier


def grow_extra_trees(
    run: Run, shares: Shares, how: Selection, settle: Callable[[Frontier, float], None], n_features: int, n_cuts: int
) -> None:
    """Grow extra-trees: each node chooses one of a few random cuts, drawn without looking at a record, or to stop.

    Parameters
    ----------
    run : Run
        With the trees planted; those of its frontier grow.
    shares : Shares
        What a selection on each level costs, and what is left for a leaf there.
    how : Selection
    settle : callable
        ``settle(leaves, epsilon)``: ask for what these leaves say, at that budget.
    n_features, n_cuts : int
        A node draws so many different features, and so many cuts of each.
    """
    pool = CutPool(run.chance, run.sizes, run.ordered)
    for level, nodes in run.levels(shares.depth - 1):  # the levels that select
        cuts = random_cuts(run.chance, pool, len(nodes), n_features, n_cuts)
        choice = run.choose_candidate(nodes, *cuts, shares.branch(level), how)
        # leaves for stop, or for lack of room, have paid for their selection: thm-stop-budget
        settle(run.split_chosen(nodes, *cuts, choice), shares.leaf(level, selected=True))
    settle(run.frontier, shares.leaf(shares.depth, selected=False))  # the last level


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
    For an observer who sees one split alone, that split is drawn from all divisions.  Trees of one forest share the
    pool, so that each of its bitmaps is made once for all of them.  The pool is drawn without looking at a record: the
    release is a mixture, over pools, of releases that are private given the pool, and so it is as private
    (:prf:ref:`thm-post-processing`).
    """

    def __init__(self, chance: Chance, cardinalities: Any, ordered: Any):
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

    def draw(self, chance: Chance, features: np.ndarray) -> np.ndarray:
        """One of the splits of each of these features, uniformly, as masks of a forest: uint64, shape (n, 4)."""
        place, size = self._start[features], self._size[features]
        for high in np.unique(size[size > 1]):
            rows = np.flatnonzero(size == high)
            place[rows] += chance.integers(int(high), rows.size)
        return self._masks[place]


def random_cuts(chance: Chance, pool: CutPool, n_nodes: int, size: int, each: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Random candidates: ``size`` different features of each node, each with ``each`` random ones of its cuts.

    Returns
    -------
    features : ndarray of int32, shape (n_nodes, size * each)
    masks : ndarray of uint64, shape (n_nodes, size * each, 4)
    """
    features = np.repeat(chance.subsets(pool.n_features, size, n_nodes), each, axis=1).astype(np.int32)
    return features, pool.draw(chance, features.ravel()).reshape(*features.shape, 4)


def cuts_at_values(run: Run, nodes: Frontier, size: int, each: int, leak: Leak) -> tuple[np.ndarray, np.ndarray]:
    """Random features of each node, each at ``each`` values that occur in it, below the largest; a leak.

    Parameters and returns are those of :func:`random_cuts`.  Every feature is cut in the order of its codes.
    """
    # public cuts are drawn and not looked at, so that a seed gives the same model as in earlier versions
    pool = CutPool(run.chance, run.sizes, np.ones(len(run.sizes), dtype=bool))
    features, _ = random_cuts(run.chance, pool, len(nodes), size, each)
    return features, value_cuts(run.chance, run.peek_codes(nodes, leak), features, run.sizes)


def value_cuts(chance: Chance, occur: np.ndarray, features: np.ndarray, cardinalities: np.ndarray) -> np.ndarray:
    """Masks that cut each candidate at a code that occurs in its node, below the largest: codes above go right."""
    first = np.concatenate([[0], np.cumsum(cardinalities)])[features]
    every = np.arange(256)
    inside = every < cardinalities[features][..., None]
    occurs = inside & np.take_along_axis(occur[:, None], np.where(inside, first[..., None] + every, 0), axis=2)
    largest = np.where(occurs, every, -1).max(axis=-1, keepdims=True)
    # where one code occurs, or none, there is no cut to draw: all records go to the first child
    below = occurs & (every < largest)
    below |= ~below.any(axis=-1, keepdims=True) & (every == np.maximum(largest, 0))
    cut = exponential(np.where(below.reshape(-1, 256), 0.0, -np.inf), 0.0, chance)  # uniform over them
    return cut_masks(cut.reshape(features.shape), cardinalities[features])


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


def grow_multiway(run: Run, height: int, reuse: bool = False) -> list[Frontier]:
    """Trees whose nodes split on a random feature: one child per category, a number cut in two at a random public edge.

    Parameters
    ----------
    run : Run
    height : int
        Splits on the longest path.
    reuse : bool
        Whether a number may be cut again below; a categorical feature is not used again.

    Returns
    -------
    list of Frontier
        The leaves.
    """
    leaves, pool = [], CutPool(run.chance, run.sizes, np.ones_like(run.ordered))
    for _, nodes in run.levels(height):
        leaves.append(nodes[~nodes.splittable])
        inner = nodes[nodes.splittable]
        # the exponential mechanism at rate zero is the uniform law over what is allowed
        features = exponential(np.where(inner.unused, 0.0, -np.inf), 0.0, run.chance)
        numeric = run.ordered[features]
        arities = np.where(numeric, 2, run.sizes[features])
        run.growth.require_room(run.growth.n_nodes + int(arities.sum()), height)
        masks = pool.draw(run.chance, features)
        run.growth.add_children(inner, features, arities, masks=masks, binary=numeric, reuse=reuse & numeric)
    return [*leaves, run.frontier]
