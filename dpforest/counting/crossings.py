"""Crossed tables: the weights of the records in each cell, all tables in one pass."""

from __future__ import annotations

import numpy as np

from dpforest.counting.compiled import kernel
from dpforest.counting.threads import check_threads, in_threads, pieces_of, total_of
from dpforest.models.crossings import MOST_FEATURES, Crossings
from dpforest.models.structure import check_codes, frozen, kind

_BLOCK = 2048  # records whose cells are kept while the targets are summed


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


def count_sizes(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How many of the values lie between the ascending edges: int64, (n_edges + 1,); one that is an edge, below it."""
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)


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
