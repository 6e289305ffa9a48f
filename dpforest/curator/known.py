"""A cache of exact counts: those that the last selection has read need no other pass over the table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpforest.models.forest import cut_masks, ranges
from dpforest.structure.crossings import Crossings

__all__ = ["CachedCounts", "Split"]

_ROOM = 1 << 22  # class counts of tables, 32 MB


class Split(NamedTuple):
    """What a selection chose for some nodes, and the counts of the children that each will have if it splits so.

    Attributes
    ----------
    feature : ndarray of int, shape (n_nodes,)
        -1 for a node that stops.
    multiway : ndarray of bool, shape (n_nodes,)
        Where there is a child per code.
    mask : ndarray of uint64, shape (n_nodes, 4)
        Of a binary split.
    arity : ndarray of int, shape (n_nodes,)
        Children of each node.
    counts : ndarray of int64, shape (sum of the arities, n_sums)
        Of all children, node by node.
    """

    feature: np.ndarray
    multiway: np.ndarray
    mask: np.ndarray
    arity: np.ndarray
    counts: np.ndarray

    @classmethod
    def by_code(
        cls, n_nodes: int, few: np.ndarray, histograms: np.ndarray, offsets: np.ndarray, choice: np.ndarray
    ) -> Split:
        """Of splits with a child per code: the chosen feature of each node, and the histograms of a ``few`` of them.

        The other nodes have no records.
        """
        arity = np.where(choice >= 0, np.diff(offsets)[choice], 0)
        counts = np.zeros((int(arity.sum()), histograms.shape[2]), dtype=np.int64)
        starts = arity.cumsum() - arity  # row of each node's first child
        to, source = ranges(starts[few], arity[few]), ranges(offsets[choice[few]], arity[few])
        counts[to] = histograms[np.arange(len(few)).repeat(arity[few]), source]
        return cls(choice, np.ones(n_nodes, dtype=bool), np.zeros((n_nodes, 4), dtype=np.uint64), arity, counts)

    @classmethod
    def by_column(cls, histograms: np.ndarray, offsets: np.ndarray, column: np.ndarray) -> Split:
        """Of cuts: the chosen column of each node, and the histograms; a feature's last column has a child per code."""
        feature = np.where(column >= 0, np.searchsorted(offsets, column, side="right") - 1, -1)
        low, high = offsets[feature], offsets[feature + 1]
        wide, cut = (column >= 0) & (column == high - 1), (column >= 0) & (column < high - 1)
        arity = np.where(wide, high - low, 2 * cut)
        counts = np.zeros((int(arity.sum()), histograms.shape[2]), dtype=np.int64)
        starts = np.cumsum(arity) - arity
        rows = np.flatnonzero(wide)
        source = ranges(low[rows], arity[rows])
        counts[ranges(starts[rows], arity[rows])] = histograms[np.repeat(rows, arity[rows]), source]
        for node in np.flatnonzero(cut):
            own = histograms[node, low[node] : high[node]]
            below = own[: column[node] - low[node] + 1].sum(axis=0)
            counts[starts[node]], counts[starts[node] + 1] = below, own.sum(axis=0) - below
        masks = np.where(cut[:, None], cut_masks(column - low, high - low), np.uint64(0))
        return cls(feature, wide, masks, arity, counts)

    @classmethod
    def join(cls, splits: list[Split]) -> Split | None:
        """Of several groups of nodes, one after the other."""
        return cls(*map(np.concatenate, zip(*splits, strict=True))) if splits else None


def _name(crossing: Crossings) -> bytes:
    """What tells one table from others: its features, the groups of their codes, and how many there are."""
    return crossing.features.tobytes() + crossing.groups.tobytes() + crossing.sizes.tobytes()


class CachedCounts:
    """The counts of the nodes of one growing forest that the last selection looked at, and of their children.

    A node that the selection stopped has its own counts; one that was split as chosen has those of its children.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Empty the cache: records have been shared or weighed anew, so that counts change."""
        self.forget_tables()
        self._classes: dict[bytes, np.ndarray] = {}
        self._splits, self._nodes, self._own = None, np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64)
        self._split: Split | None = None

    def note(self, splits: Any, nodes: np.ndarray, own: np.ndarray, split: Split | None = None) -> None:
        """Replace what is cached by the counts of these nodes, (n_nodes, n_sums), and what was chosen for them."""
        self._splits, self._nodes, self._own, self._split = splits, np.asarray(nodes), own, split

    def forget_tables(self) -> None:
        """Forget the sums of crossed tables: scores have changed, and with them what records weigh there."""
        self._tables: tuple[Crossings, np.ndarray, bool, np.ndarray] | None = None

    def note_tables(self, crossings: Crossings, sides: np.ndarray, together: bool, sums: np.ndarray) -> None:
        """Keep the sums of all these tables: int64, (n_sides, n_cells of all tables, 2)."""
        self._tables = crossings, sides, together, sums

    def recall_table(self, crossing: Crossings, sides: np.ndarray, together: bool) -> np.ndarray | None:
        """The sums of a single table for these sides, int64, (n_sides, n_cells, 2); None unless they are known."""
        if self._tables is None:
            return None
        crossings, known, jointly, sums = self._tables
        rows = np.flatnonzero(np.isin(known, sides))
        if jointly != together or not np.array_equal(known[rows], sides):
            return None
        same = (crossings.features == crossing.features).all(axis=1) & (crossings.sizes == crossing.sizes).all(axis=1)
        same &= (crossings.groups == crossing.groups).all(axis=(1, 2))
        for place in np.flatnonzero(same)[:1]:
            first, last = crossings.starts[place : place + 2]
            return sums[rows, first:last]
        return None

    def note_classes(self, crossings: Crossings, counts: np.ndarray) -> None:
        """Keep the class counts of all these tables, int64, (n_cells of all tables, n_classes), if there is room.

        Scores do not change them: they are kept from round to round.
        """
        if counts.size + sum(kept.size for kept in self._classes.values()) <= _ROOM:
            parts = np.split(counts, crossings.starts[1:-1])
            self._classes.update((_name(crossings[k]), part) for k, part in enumerate(parts))

    def recall_classes(self, crossings: Crossings) -> np.ndarray | None:
        """Class counts of all these tables, int64, (n_cells of all tables, n_classes); None unless they are known."""
        if not self._classes:
            return None
        parts = [self._classes.get(_name(crossings[k])) for k in range(len(crossings))]
        known = [part for part in parts if part is not None]
        return np.concatenate(known) if parts and len(known) == len(parts) else None

    def recall(self, splits: Any, nodes: np.ndarray, n_sums: int) -> np.ndarray | None:
        """The first ``n_sums`` counts of each node, int64; None unless all of them are known."""
        if self._splits is not splits or self._own.shape[1] < n_sums or not len(nodes) or not len(self._nodes):
            return None
        ids, rows = self._nodes, self._own
        if self._split is not None:
            child_ids, child_rows = self._children(splits)
            ids, rows = np.concatenate([ids, child_ids]), np.concatenate([rows, child_rows])
        order = ids.argsort(kind="stable")
        at = ids.searchsorted(nodes, sorter=order)
        found = order.take(at, mode="clip")  # beyond the last id there is none: the next line sees that
        if (ids[found] != nodes).any():
            return None
        return rows[found, :n_sums]

    def _children(self, splits: Any) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and counts of the children, where a node was split as it was chosen to be."""
        split, nodes = self._split, self._nodes
        assert split is not None
        # a learner need not do what was chosen: where max_nodes leaves no room, a node stays a leaf
        done = (split.feature >= 0) & (splits.feature[nodes] == split.feature) & (splits.arity[nodes] == split.arity)
        done &= splits.multiway[nodes] == split.multiway
        done &= split.multiway | (splits.mask[nodes] == split.mask).all(axis=1)
        kept = done.repeat(split.arity)
        return ranges(splits.first_child[nodes], split.arity)[kept], split.counts[kept]
