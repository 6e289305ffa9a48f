"""Tables of one feature or of several crossed ones: the weights of the records in each cell, all tables in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest.counting.compiled import kernel
from dpforest.counting.threads import check_threads, in_threads, pieces_of, total_of
from dpforest.models.structure import check_codes, frozen, kind

__all__ = ["MOST_FEATURES", "Crossings", "cross_sums"]

MOST_FEATURES = 3  # of one table
_CODES = 256
_BLOCK = 2048  # records whose cells are kept while the targets are summed


@dataclass(frozen=True, eq=False)
class Crossings:
    """Public tables, each over one to three features whose codes are put into groups.

    A record's cell in a table is the mixed-radix number of its groups, the first feature counting most.

    Attributes
    ----------
    features : ndarray of int32, shape (n_tables, 3)
        The features of each table, one at least; -1 where it has no more.
    groups : ndarray of uint8, shape (n_tables, 3, 256)
        The group of each code.
    sizes : ndarray of int64, shape (n_tables, 3)
        Groups of each feature; 1 where there is no feature.
    """

    features: np.ndarray
    groups: np.ndarray
    sizes: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.features)
        wanted = {"features": (n, MOST_FEATURES), "groups": (n, MOST_FEATURES, _CODES), "sizes": (n, MOST_FEATURES)}
        for (name, shape), dtype in zip(wanted.items(), (np.int32, np.uint8, np.int64), strict=True):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
                raise TypeError(f"{name} must be an array of {np.dtype(dtype)} of shape {shape}, not {kind(array)}")
        absent = self.features < 0
        if (self.features[:, 0] < 0).any() or (self.sizes[absent] != 1).any() or (self.sizes < 1).any():
            raise ValueError("a table has one feature at least, and one group where it has no feature")
        if (self.groups >= self.sizes[:, :, None]).any():
            raise ValueError("a code is put into a group beyond the number of groups")

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, chosen: int | slice) -> Crossings:
        part = slice(chosen, chosen + 1) if isinstance(chosen, int) else chosen
        return Crossings(self.features[part], self.groups[part], self.sizes[part])

    @property
    def n_cells(self) -> np.ndarray:
        """Cells of each table: int64, shape (n_tables,)."""
        return self.sizes.prod(axis=1)

    @property
    def starts(self) -> np.ndarray:
        """Where the cells of each table begin, and where the last one ends: int64, shape (n_tables + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_cells)]).astype(np.int64)

    @classmethod
    def of(cls, tables: Iterable[Sequence[tuple[int, np.ndarray]]]) -> Crossings:
        """From the features of each table with the group of each of their codes, the groups being 0, 1, ... ."""
        tables = list(tables)
        features = np.full((len(tables), MOST_FEATURES), -1, dtype=np.int32)
        groups = np.zeros((len(tables), MOST_FEATURES, _CODES), dtype=np.uint8)
        sizes = np.ones((len(tables), MOST_FEATURES), dtype=np.int64)
        for number, table in enumerate(tables):
            for place, (feature, group) in enumerate(table):
                features[number, place] = feature
                groups[number, place, : len(group)] = group
                sizes[number, place] = int(np.max(group)) + 1
        return cls(features, groups, sizes)


def cross_sums(
    codes: np.ndarray, labels: np.ndarray, weights: np.ndarray, targets: np.ndarray, crossings: Crossings,
    n_jobs: int = 1,
) -> np.ndarray:  # fmt: skip
    """Weights of the records in each cell of each table: of those whose label is a target, and of the others.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows)
    labels : ndarray of uint8, shape (n_rows,)
    weights : ndarray of int32, shape (n_targets, n_rows)
        Whole and not negative: what a record counts for beside each target.
    targets : ndarray of int, shape (n_targets,)
    crossings : Crossings
    n_jobs : int
        Threads; -1 for as many as there are cores.

    Returns
    -------
    ndarray of int64, shape (n_targets, n_cells of all tables, 2)
        Of the other labels, and of the target.
    """
    codes = check_codes(codes)
    n_rows = codes.shape[1]
    if not isinstance(labels, np.ndarray) or labels.dtype != np.uint8 or labels.shape != (n_rows,):
        raise TypeError(f"labels must be an array of uint8 of shape ({n_rows},), not {kind(labels)}")
    targets = np.asarray(targets, dtype=np.int64)
    shape = (len(targets), n_rows)
    if not isinstance(weights, np.ndarray) or weights.dtype != np.int32 or weights.shape != shape:
        raise TypeError(f"weights must be an array of int32 of shape {shape}, not {kind(weights)}")
    if len(crossings) and crossings.features.max() >= len(codes):
        raise ValueError(f"a table is over a feature that is not one of the {len(codes)} features")
    starts, radix = crossings.starts, np.ones_like(crossings.sizes)
    for place in range(MOST_FEATURES - 2, -1, -1):
        radix[:, place] = radix[:, place + 1] * crossings.sizes[:, place + 1]
    cell_of = frozen((crossings.groups * radix[:, :, None]).astype(np.int32))
    records = codes, frozen(labels), frozen(weights), frozen(targets)

    def work(pieces):
        out = np.zeros((len(targets), int(starts[-1]), 2), dtype=np.int64)
        cells = np.empty(_BLOCK, dtype=np.int64)
        for first, last in pieces:
            _add(*records, first, last, frozen(crossings.features), cell_of, starts, cells, out)
        return (out,)

    threads = check_threads(n_jobs)
    return total_of(in_threads(work, pieces_of(n_rows, threads), threads))[0]


@kernel
def _add(codes, labels, weights, targets, first, last, features, cell_of, starts, cells, out):
    """Add to ``out`` (n_targets, n_cells, 2) the weights of rows ``first`` to ``last``."""
    for begin in range(first, last, cells.size):
        n = min(cells.size, last - begin)
        for table in range(features.shape[0]):
            for i in range(n):
                cells[i] = starts[table]
            for place in range(features.shape[1]):
                if features[table, place] >= 0:
                    column, cell = codes[features[table, place]], cell_of[table, place]
                    for i in range(n):
                        cells[i] += cell[column[begin + i]]
            for target in range(targets.size):
                for i in range(n):
                    mine = np.int64(labels[begin + i] == targets[target])
                    out[target, cells[i], mine] += weights[target, begin + i]
