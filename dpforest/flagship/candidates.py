"""Tables that cross a few features: drawn at random by public coins, and grown as trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpforest.chance import Chance
from dpforest.flagship.binning import Binning
from dpforest.learners.growth import Frontier
from dpforest.learners.run import Run
from dpforest.structure.crossings import MOST_FEATURES, Crossings

__all__ = ["ReleasedTotals", "grow_table", "random_tables", "single_tables", "whole_table"]

#: Groups of each feature in a table of two or three features.
GROUPS = {2: 6, 3: 4}
TRIPLES = 3, 10  # tables of three features, in how many
_JITTER = 4, 5  # a cut moves by up to 2/5 of a group to either side
_STEPS = 1 << 20  # equally likely positions of a cut


@dataclass
class ReleasedTotals:
    """The bins of each feature, and what released tables say of them.

    Attributes
    ----------
    binning : Binning
    votes : list of (ndarray of int64 or None)
        Sum of what the tables of this feature alone said of each bin; None where there was none.
    masses : list of (ndarray of int64 or None)
        Noisy weight of each bin in the last of them, or in a histogram, not negative.
    """

    binning: Binning
    votes: list[np.ndarray | None]
    masses: list[np.ndarray | None]

    @classmethod
    def of(cls, binning: Binning) -> ReleasedTotals:
        """Before any table: what the histograms of the bins say, where there are any."""
        return cls(binning, [None] * len(binning.bins), list(binning.masses))

    def learn(self, feature: int, votes: np.ndarray, masses: np.ndarray) -> None:
        """Take note of a released table of one feature."""
        before = self.votes[feature]
        self.votes[feature] = votes if before is None else before + votes
        self.masses[feature] = np.maximum(masses, 0)

    def groups(self, feature: int, n_bins: int, ordered: bool, cuts: np.ndarray) -> np.ndarray:
        """The group of each bin: bins side by side, cut at these shares of the released weight, ascending.

        Bins of numbers keep their order, categories are ordered by their votes.  Groups without a bin are left out.
        """
        votes, masses = self.votes[feature], self.masses[feature]
        order = np.arange(n_bins) if ordered or votes is None else np.argsort(votes, kind="stable")
        weight = np.ones(n_bins, dtype=np.int64) if masses is None or not masses.any() else masses[order]
        middle = (2 * np.cumsum(weight) - weight) / (2 * weight.sum())  # share of the weight below each bin's middle
        found = np.empty(n_bins, dtype=np.int64)
        found[order] = np.searchsorted(cuts, middle)
        return np.unique(found, return_inverse=True)[1]  # numbered without gaps


def single_tables(binning: Binning) -> list[list[tuple[int, np.ndarray]]]:
    """One table of each feature, every bin a group of its own; where bins were released, one of public bins, too."""
    also = [feature for feature, masses in enumerate(binning.masses) if masses is not None]
    return [[(feature, bins)] for feature, bins in enumerate(binning.bins)] + [
        [(feature, binning.public[feature])] for feature in also
    ]


def whole_table(sizes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The table of a single cell, in which all records are."""
    return [(0, np.zeros(int(sizes[0]), dtype=np.int64))]


def random_tables(
    n_tables: int, ordered: np.ndarray, released: ReleasedTotals, chance: Chance
) -> list[list[tuple[int, np.ndarray]]]:
    """Tables of two or three features: which, and where their bins are cut into groups, is drawn without a record.

    Parameters
    ----------
    n_tables : int
    ordered : ndarray of bool, shape (n_features,)
    released : ReleasedTotals
    chance : Chance
    """
    binning, tables = released.binning, []
    sizes = binning.sizes
    usable = np.flatnonzero(sizes > 1)
    for _ in range(n_tables if len(usable) > 1 else 0):
        of_three, among = TRIPLES
        size = min(MOST_FEATURES if int(chance.integers(among, 1)[0]) < of_three else 2, len(usable))
        features = usable[chance.subsets(len(usable), size, 1)[0]]
        table = []
        for feature in features.tolist():
            n_bins = int(sizes[feature])
            n_groups = min(GROUPS[size], n_bins)
            part, whole = _JITTER
            moved = (chance.integers(_STEPS, n_groups - 1) / _STEPS - 0.5) * part / whole
            cuts = (np.arange(1, n_groups) + moved) / n_groups  # ascending: none moves by half a group
            groups = released.groups(feature, n_bins, bool(ordered[feature]), cuts)
            table.append((feature, groups[binning.bins[feature]]))
        tables.append(table)
    return tables


def grow_table(run: Run, crossing: Crossings) -> Frontier:
    """Grow the frontier, a root, into a tree whose leaves are the cells of one table; they come in the cells' order.

    A table of one feature with a group for each code is one split with a child for each, any other is a tree of binary
    splits: the groups of the first feature are halved until each is alone, then those of the next.
    """
    [features], [groups], [sizes] = crossing.features, crossing.groups, crossing.sizes.tolist()
    if features[1] < 0 and sizes[0] == run.sizes[features[0]] > 1:
        run.split_multiway(run.frontier, features[:1])
        return run.frontier
    nodes, cells = run.frontier, np.zeros(1, dtype=np.int64)
    for feature, group, size in zip(features, groups, sizes, strict=True):
        # the groups of this feature that reach each node: from low on, and below high
        low, high = np.zeros(len(nodes), dtype=np.int64), np.full(len(nodes), size)
        done: list[tuple[Frontier, np.ndarray]] = []
        while True:
            alone = high - low == 1
            if alone.any():
                done.append((nodes[alone], cells[alone] * size + low[alone]))
            if alone.all():
                break
            nodes, cells, low, high = nodes[~alone], cells[~alone], low[~alone], high[~alone]
            middle = (low + high) // 2
            codes = np.arange(len(group))  # 256, of which the feature has some
            second = (group >= middle[:, None]) & (codes < run.sizes[feature])
            masks = np.packbits(second, axis=1, bitorder="little").view(np.uint64)
            run.split_binary(nodes, np.full(len(nodes), feature), masks)
            nodes, cells = run.frontier, np.repeat(cells, 2)
            low, high = _interleaved(low, middle), _interleaved(middle, high)
        nodes, cells = Frontier.join([part for part, _ in done]), np.concatenate([where for _, where in done])
    order = np.argsort(cells)
    return nodes[order]


def _interleaved(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.stack([first, second], axis=1).ravel()
