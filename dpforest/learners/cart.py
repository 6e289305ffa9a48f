"""CART as published papers grow and prune it, from exact counts that the curator lets them peek at.

Cuts of numeric features are given; among them and all two-way divisions of the categories a node takes the split of
least Gini impurity, and the grown tree is pruned by its weakest links.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpforest import scores
from dpforest.learners.growth import Frontier
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest, cut_masks

__all__ = ["Cuts", "SchemaSplits", "best_splits", "select_cuts", "weakest_links"]


class Cuts:
    """The cuts of numeric features, in the columns of :class:`~dpforest.curator.selections.CutCandidates`.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_features,)
        Codes of each feature.
    ordered : ndarray of bool, shape (n_features,)
        Which features are numeric.
    n_nodes : int
        Nodes that begin with the whole range of every feature.

    Attributes
    ----------
    owner, code : ndarray of int, shape (n_columns,)
        Feature of each column, and the last code below its cut.
    ranges : ndarray of int, shape (n_nodes, 2, n_features)
        First and last code that a node's records may have.
    """

    def __init__(self, sizes: np.ndarray, ordered: np.ndarray, n_nodes: int = 1):
        self.owner = np.repeat(np.arange(len(sizes)), sizes)
        self.code = np.concatenate([np.arange(size) for size in sizes])
        self._cut = ordered[self.owner]
        self._starts = np.cumsum(sizes) - sizes
        self.ranges = np.tile([np.zeros_like(sizes), sizes - 1], (n_nodes, 1, 1))

    def columns(self, nodes: np.ndarray) -> np.ndarray:
        """The cuts inside the ranges of these nodes: bool, shape (n_nodes, n_columns)."""
        low, high = self.ranges[nodes][:, :, self.owner].transpose(1, 0, 2)
        return self._cut & (low <= self.code) & (self.code < high)

    def owners(self, columns: np.ndarray) -> np.ndarray:
        """Which features have one of the ``columns`` (n_nodes, n_columns): bool (n_nodes, n_features)."""
        return np.logical_or.reduceat(columns, self._starts, axis=1)

    def choose(
        self,
        run: Run,
        nodes: Frontier,
        columns: np.ndarray,
        numeric: np.ndarray,
        epsilon: float | np.ndarray,
        how: Selection,
    ) -> np.ndarray:
        """A cut of each numeric feature of each node, with a selection of ``epsilon`` each.

        Parameters
        ----------
        columns : ndarray of bool, shape (n_nodes, n_columns)
            Among which cuts.
        numeric : ndarray of bool, shape (n_nodes, n_features)
            The features of each node that are to be cut.

        Returns
        -------
        ndarray of int, shape (n_nodes, n_features)
            The chosen columns; -1 for other features.
        """
        found, epsilon = np.full(numeric.shape, -1), np.broadcast_to(epsilon, len(nodes))
        for feature in np.flatnonzero(numeric.any(axis=0)):
            some = np.flatnonzero(numeric[:, feature])
            mine = columns[some] & (self.owner == feature)
            found[some, feature] = run.choose_cut(nodes[some], mine, epsilon[some], how)
        return found

    def divide(self, nodes: np.ndarray, features: np.ndarray, ends: np.ndarray, arities: np.ndarray | int = 2) -> None:
        """Go on to the children, in order, of these nodes, cut after code ``ends``; -1 for divided categories."""
        ranges = np.repeat(self.ranges[nodes], arities, axis=0)
        cut = np.flatnonzero(ends >= 0)
        first = (np.cumsum(np.broadcast_to(arities, len(ends))) - arities)[cut]
        ranges[first, 1, features[cut]] = ends[cut]
        ranges[first + 1, 0, features[cut]] = ends[cut] + 1
        self.ranges = ranges


class SchemaSplits(Cuts):
    """The splits that a schema knows: cuts of numeric features, and categorical ones with one child per code.

    Parameters
    ----------
    sizes, ordered, n_nodes
        As in :class:`Cuts`.

    Attributes
    ----------
    ordered, owner, code, ranges
        As there.
    cut : ndarray of bool, shape (n_columns,)
        Which columns are cuts; the others have one child per code.
    arity : ndarray of int, shape (n_columns,)
    mask : ndarray of uint64, shape (n_columns, 4)
        Which codes go to the second child of a cut.
    """

    def __init__(self, sizes: np.ndarray, ordered: np.ndarray, n_nodes: int = 1) -> None:
        super().__init__(sizes, ordered, n_nodes)
        self.ordered = ordered
        numeric, size = ordered[self.owner], sizes[self.owner]
        last = self.code == size - 1
        self.cut = numeric & ~last
        self.arity = np.where(self.cut, 2, size)
        self.mask = cut_masks(self.code, size)
        self._whole = ~numeric & last & (size > 1)

    def within(self, unused: np.ndarray) -> np.ndarray:
        """The splits of each node, bool (n_nodes, n_columns): cuts inside its ranges, and features not yet used up."""
        return self.columns(np.arange(len(unused))) | (self._whole & unused[:, self.owner])

    def choose_cuts(
        self, run: Run, nodes: Frontier, columns: np.ndarray, epsilon: float | np.ndarray, how: Selection
    ) -> np.ndarray:
        """Choose one cut for each numeric feature, with a selection of ``epsilon`` each.

        Returns
        -------
        ndarray of bool, shape (n_nodes, n_columns)
            Of the ``columns`` of each node those that are left: the chosen cuts, and the categorical features.
        """
        numeric = self.owners(columns) & self.ordered
        cuts = self.choose(run, nodes, columns, numeric, epsilon, replace(how, stop_margin=None))
        left = columns & ~numeric[:, self.owner]
        rows, features = np.nonzero(numeric)
        left[rows, cuts[rows, features]] = True
        return left

    def grow(self, run: Run, inner: np.ndarray, columns: np.ndarray) -> Frontier:
        """Split nodes of the frontier, each by its column, if there is room; returns those that stay leaves.

        Parameters
        ----------
        inner : ndarray of bool, shape (n_nodes,)
            Which nodes of the frontier have chosen.
        columns : ndarray of int, shape (n_inner,)
            What they chose, a column or ``STOP``.
        """
        nodes, grows = run.frontier[inner], run.has_room(columns, self.arity[columns])
        chosen = columns[grows]
        self.split(np.flatnonzero(inner)[grows], chosen)
        run.growth.add_children(
            nodes[grows],
            self.owner[chosen],
            self.arity[chosen],
            masks=self.mask[chosen],
            binary=self.cut[chosen],
            reuse=self.cut[chosen],
        )
        return nodes[~grows]

    def split(self, nodes: np.ndarray, columns: np.ndarray) -> None:
        """Go on to the children, in order, of these nodes, each split by its column."""
        ends = np.where(self.cut[columns], self.code[columns], -1)
        self.divide(nodes, self.owner[columns], ends, self.arity[columns])


def select_cuts(
    run: Run,
    nodes: Frontier,
    cuts: Cuts,
    columns: np.ndarray,
    numeric: np.ndarray,
    epsilon: float,
    score: scores.Score,
    delta: float,
) -> np.ndarray:
    """A cut of each numeric feature of each node, by the exponential mechanism.

    Parameters
    ----------
    columns : ndarray of bool, shape (n_nodes, n_columns)
        The cuts inside the ranges of the nodes.
    numeric : ndarray of bool, shape (n_nodes, n_features)
        The features that each node considers: c of them have ``epsilon / (2 (c + 1))`` each.
    score : Score
    delta : float
        What a paper takes for the sensitivity of the score: the rate of a selection is its budget over twice that.

    Returns
    -------
    ndarray of int, shape (n_nodes, n_features)
        The last code below the cut; -1 for other features.
    """
    each = epsilon / (2 * (numeric.sum(axis=1) + 1))
    each = each * score.sensitivity(run.relation) / delta  # for the curator would use its own
    found = cuts.choose(run, nodes, columns, numeric, each, Selection(score, "exponential", "sensitivity"))
    return np.where(found >= 0, cuts.code[found], -1)


def best_splits(
    histograms: np.ndarray, cuts: np.ndarray, features: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The binary split of each node that leaves the least Gini impurity; the first feature in a tie.

    Parameters
    ----------
    histograms : ndarray, shape (n_nodes, sum of the sizes, 2)
        Class counts of each code of each feature.
    cuts : ndarray of int, shape (n_nodes, n_features)
        The last code below the cut of a numeric feature; -1 for a categorical one, whose codes are divided at will.
    features : ndarray of bool, shape (n_nodes, n_features)
        Which ones each node considers; at least one.
    sizes : ndarray of int, shape (n_features,)

    Returns
    -------
    feature : ndarray of int, shape (n_nodes,)
    code : ndarray of int, shape (n_nodes,)
        The last code below the cut; -1 where categories were divided.
    mask : ndarray of uint64, shape (n_nodes, 4)
        Which codes go to the second child.

    Notes
    -----
    Of the ``(2^v - 2) / 2`` divisions of v categories one of least impurity puts those with the smaller shares of the
    second class on one side (Breiman, Friedman, Olshen and Stone, 1984, theorem 4.5), so ``v - 1`` are compared.
    """
    n_nodes, starts = len(histograms), np.cumsum(sizes) - sizes
    best = np.full(n_nodes, -np.inf)
    feature, code = np.zeros(n_nodes, dtype=np.int32), np.full(n_nodes, -1)
    right = np.zeros((n_nodes, 256), dtype=bool)
    for column in np.flatnonzero(features.any(axis=0)):
        counts = histograms[:, starts[column] : starts[column] + sizes[column]]
        total = counts.sum(axis=2)
        share = np.divide(counts[..., 1], total, out=np.full(total.shape, -1.0), where=total > 0)
        numeric = cuts[:, column] >= 0
        order = np.where(numeric[:, None], np.arange(sizes[column]), np.argsort(share, axis=1, kind="stable"))
        below = np.take_along_axis(counts, order[..., None], axis=1).cumsum(axis=1)
        children = np.stack([below, counts.sum(axis=1, keepdims=True) - below], axis=2)
        quality = scores.gini(children)
        quality[:, -1] = -np.inf  # nothing is left for the second child
        places = np.arange(sizes[column])
        quality[numeric[:, None] & (places != cuts[:, column, None])] = -np.inf
        place = quality.argmax(axis=1)
        quality = np.take_along_axis(quality, place[:, None], axis=1)[:, 0]
        better = features[:, column] & (quality > best)
        best[better], feature[better] = quality[better], column
        code[better] = cuts[better, column]
        rank = np.argsort(order, axis=1)
        right[better] = False
        right[better, : sizes[column]] = rank[better] > place[better, None]
    return feature, code, np.packbits(right, axis=1, bitorder="little").view(np.uint64)


def weakest_links(
    tree: Forest, leaves: np.ndarray, counts: np.ndarray, held: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which inner nodes of a tree CART's cost-complexity pruning makes leaves.

    Time after time the inner nodes whose subtrees save the fewest errors per leaf become leaves; of the trees on the
    way, that with the fewest errors on the held-out records is kept, and of several the smallest.

    Parameters
    ----------
    tree : Forest
        Of one tree, each node after its parent.
    leaves : ndarray of int, shape (n_leaves,)
    counts, held : ndarray, shape (n_leaves, n_classes)
        Class counts of the leaves on the records that the tree was grown on, and on those held out.

    Returns
    -------
    pruned : ndarray of int
        The roots of the pruned subtrees.
    height : ndarray of int
        Levels below them.
    """
    n_nodes = tree.n_nodes
    grown, aside = (np.zeros((n_nodes, counts.shape[1]), dtype=np.int64) for _ in range(2))
    grown[leaves], aside[leaves] = counts, held
    height = np.zeros(n_nodes, dtype=np.int64)
    children: dict[int, list[int]] = {}
    for node in reversed(np.flatnonzero(tree.arity).tolist()):
        below = children[node] = list(range(tree.first_child[node], tree.first_child[node] + tree.arity[node]))
        grown[node], aside[node] = grown[below].sum(axis=0), aside[below].sum(axis=0)
        height[node] = 1 + height[below].max()
    said = grown.argmax(axis=1)
    cost = grown.sum(axis=1) - grown.max(axis=1)
    errors = aside.sum(axis=1) - aside[np.arange(n_nodes), said]
    kept, fewest = children, np.inf
    while True:
        size, saved, wrong = np.ones(n_nodes), cost.copy(), errors.copy()
        for at in sorted(children, reverse=True):
            size[at], saved[at], wrong[at] = (part[children[at]].sum() for part in (size, saved, wrong))
        if wrong[0] <= fewest:
            kept, fewest = children, wrong[0]
        if not children:
            break
        inner = np.array(sorted(children))
        strength = (cost[inner] - saved[inner]) / (size[inner] - 1)
        children = _children_without(children, set(inner[strength <= strength.min()].tolist()))
    reached = {0, *(child for below in kept.values() for child in below)}
    pruned = np.array(sorted(at for at in reached if height[at] and at not in kept), dtype=np.int64)
    return pruned, height[pruned]


def _children_without(children: dict[int, list[int]], cut: set[int]) -> dict[int, list[int]]:
    """The inner nodes that a tree still has once those of ``cut`` are leaves."""
    left, reached = {}, [0]
    for at in reached:
        if at in children and at not in cut:
            left[at] = children[at]
            reached += children[at]
    return left
