"""How each kernel sums the rows of a table, known before any record is read.

The sums of ``table[label]`` over some records are whole-number combinations of *counts* of these records: the counts
are what a kernel makes, the combination is done once per query.  Labels with equal rows are one *group*.  Class
counts are the sums of the identity table, whose groups are the classes.

* The bit kernel counts the records in *planes*, sets of labels: the binary digits of the table's columns, each
  different one once, or the groups but one, whichever are fewer.  The plain count of records is the count
  of the set of all labels, and with it the last group needs no plane.
* The row kernel keeps a histogram of the groups, or where these are many, the sums themselves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpforest.structure.splits import frozen

LANES = 8  # planes that the bit kernel can count together
_APART = 4  # planes, at most, that are counted one by one faster
_SPARSE = 4  # the row kernel keeps a histogram of at most so many groups per sum


class Planes(NamedTuple):
    """What the bit kernel counts: all records, then those in each plane.

    Only one of the first two arrays has any lines: few planes of one run of labels each are counted one by one.
    """

    runs: np.ndarray  # int32 (n_planes, 2): the first label of each plane, and how many follow it, cyclically
    member: np.ndarray  # uint8 (n_octets, 256): bit b says whether the label is in plane LANES * octet + b
    weights: np.ndarray  # int64 (1 + n_planes, Q): sums = counts @ weights

    @property
    def width(self) -> int:
        """Counts that the bit kernel makes room for; it takes runs two by two."""
        return 1 + LANES * len(self.member) if len(self.member) else 2 * (len(self.runs) // 2 + 1)

    @property
    def rows(self) -> int:
        """Bitmaps in the room of the bit kernel."""
        return 2 * len(self.runs) + (4 + LANES * len(self.member) if len(self.member) else 0)


class Cells(NamedTuple):
    """What the row kernel adds up for each node: a histogram of the groups, or the sums."""

    group: np.ndarray  # uint8 (256,): group of each label
    amount: np.ndarray  # int64 (n_codes, Q): what a record of each label adds to the sums; no columns for a histogram
    weights: np.ndarray | None  # int64 (n_cells, Q): sums = cells @ weights; None where the cells are the sums
    n_cells: int

    @property
    def nbytes(self) -> int:
        """Size of the cells of one pattern."""
        return self.n_cells * (8 if self.amount.size else 4)

    @property
    def dtype(self) -> type:
        """Of the cells of one unit."""
        return np.int64 if self.amount.size else np.int32


@lru_cache(maxsize=256)
def of_classes(n_classes: int) -> tuple[Planes, Cells]:
    """How to count classes."""
    return _plan(np.eye(n_classes, dtype=np.int64))


def of_table(table: np.ndarray) -> tuple[Planes, Cells]:
    """How to sum the rows of a table of int64, shape (n_codes, Q)."""
    return _of_bytes(table.shape, table.tobytes())


@lru_cache(maxsize=16)
def _of_bytes(shape: tuple[int, ...], raw: bytes) -> tuple[Planes, Cells]:
    return _plan(np.frombuffer(raw, dtype=np.int64).reshape(shape))


def _plan(table: np.ndarray) -> tuple[Planes, Cells]:
    rows, group = _groups(table)
    planes, weights = _digits(table)
    if len(rows) - 1 <= len(planes):
        planes = group == np.arange(1, len(rows))[:, None]
        weights = np.concatenate([rows[:1], rows[1:] - rows[0]])
    group_of = np.zeros(256, dtype=np.uint8)
    group_of[: len(group)] = group
    if len(rows) <= max(1, _SPARSE * table.shape[1]):
        nothing = frozen(np.zeros((len(table), 0), dtype=np.int64))
        counts = np.array_equal(rows, np.eye(len(rows)))
        cells = Cells(frozen(group_of), nothing, None if counts else rows, len(rows))
    else:
        cells = Cells(frozen(group_of), frozen(table), None, table.shape[1])
    runs, member = _packing(planes)
    return Planes(runs, member, weights), cells


def _groups(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows in the order of their first label, and the number of each label's row."""
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return table[first[order]], np.argsort(order)[group.ravel()]


def _digits(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct sets of labels that the binary digits of the columns are, and the weights of the columns."""
    n_codes, n_sums = table.shape
    digits = table.T[:, None, :] >> np.arange(31)[:, None] & 1  # sum, digit, label
    planes, which = np.unique(digits.reshape(-1, n_codes), axis=0, return_inverse=True)
    weights = np.zeros((1 + len(planes), n_sums), dtype=np.int64)
    place = 1 + which.reshape(n_sums, 31)
    np.add.at(weights, (place, np.arange(n_sums)[:, None]), 1 << np.arange(31))
    weights[0] = weights[1:][planes.all(axis=1)].sum(axis=0)
    proper = planes.any(axis=1) & ~planes.all(axis=1)
    return planes[proper].astype(bool), weights[np.append(True, proper)]


def _packing(planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The runs or the octets of planes given as Booleans, shape (n_planes, n_codes)."""
    inside = np.zeros((len(planes), 256), dtype=bool)
    inside[:, : planes.shape[1]] = planes
    rises = inside & ~np.roll(inside, 1, axis=1)
    runs, member = np.empty((0, 2), dtype=np.int32), np.empty((0, 256), dtype=np.uint8)
    if len(planes) <= _APART and (rises.sum(axis=1) == 1).all():
        runs = np.stack([rises.argmax(axis=1), inside.sum(axis=1) - 1], axis=1).astype(np.int32)
    else:
        padded = np.concatenate([inside, np.zeros((-len(inside) % LANES, 256), dtype=bool)])
        member = np.packbits(padded.reshape(-1, LANES, 256), axis=1, bitorder="little")[:, 0]
    return frozen(runs.reshape(-1, 2)), frozen(member)


def combine(counts: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """``counts @ weights``, without the counts beyond the weights and without the many products that are zero."""
    if weights is None:
        return counts
    sums = np.zeros((*counts.shape[:-1], weights.shape[1]), dtype=np.int64)
    for count, weight in zip(np.moveaxis(counts, -1, 0), weights, strict=False):
        at = np.flatnonzero(weight)
        if len(at) > 1 + weights.shape[1] // 2:
            sums += count[..., None] * weight
        else:
            for q in at:
                sums[..., q] += count * weight[q]
    return sums
