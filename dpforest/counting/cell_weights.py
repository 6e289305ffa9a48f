"""Crossed tables: the weights of the records in each cell, all tables in one pass."""

from __future__ import annotations

import numpy as np

from dpforest.counting.compiled import kernel
from dpforest.counting.threads import check_threads, in_threads, pieces_of, total_of
from dpforest.structure.crossings import MOST_FEATURES, Crossings
from dpforest.structure.splits import check_codes, frozen, kind

_BLOCK = 4096  # records that stay in the cache from table to table
_NUMBERS = 512  # of a code and a side


def cross_sums(
    codes: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    targets: np.ndarray,
    crossings: Crossings,
    n_jobs: int = 1,
) -> np.ndarray:
    """Weights of the records in each cell of each table: of those whose label is a target, and of the others.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows)
    labels : ndarray of uint8, shape (n_rows,)
    weights : ndarray of int32, shape (n_targets, n_rows)
        Whole and not negative: the weight of each record in the sums of each target.
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
    cell_of = 2 * crossings.groups.astype(np.int64) * radix[:, :, None]
    first_of = np.repeat(cell_of[:, 0] + 2 * starts[:-1, None], 2, axis=1)
    first_of[:, 1::2] += 1  # the target's side
    order = np.argsort(crossings.features[:, 0], kind="stable")
    public = tuple(
        frozen(some[order]) for some in (crossings.features, first_of.astype(np.uint32), cell_of.astype(np.uint32))
    )
    sides = (labels == targets[:, None]).astype(np.uint8)
    records = codes, frozen(sides), frozen(weights)

    def work(pieces):
        out = np.zeros((len(targets), 2 * int(starts[-1])), dtype=np.int64)
        for first, last in pieces:
            _add(*records, first, last, *public, out)
        return (out,)

    threads = check_threads(n_jobs)
    found = total_of(in_threads(work, pieces_of(n_rows, threads), threads))[0]
    return found.reshape(len(targets), -1, 2)


def count_sizes(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How many of the values lie between the ascending edges: int64, (n_edges + 1,); one that is an edge, below it."""
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)


def group_sums(codes: np.ndarray, groups: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The sum of the whole ``numbers`` of the records in each group of the codes of one feature: int64, (n_groups,)."""
    return place_sums(groups[codes], numbers, int(groups.max()) + 1)


def place_sums(places: np.ndarray, numbers: np.ndarray, size: int) -> np.ndarray:
    """The sum of the whole ``numbers`` at each of ``size`` places: int64, exact where none reaches 2^53."""
    return np.bincount(places, weights=numbers, minlength=size).astype(np.int64)


@kernel
def _add(codes, sides, weights, first, last, features, first_of, cell_of, out):
    """Add to ``out`` (n_targets, 2 n_cells) the weights of rows ``first`` to ``last``.

    Tables are in the order of their first feature, whose code and the record's side are put into one number once for
    all tables of the feature.  ``first_of`` says for each such number, and ``cell_of`` for the codes of the other
    features, what they add to the place of a record's cell and side in a line of ``out``.  Tables of one feature, of
    many rows, are added up by its numbers, once for all of them, and put into their cells at the end.
    """
    both, alone = np.empty(_BLOCK, np.uint16), np.zeros(codes.shape[0], np.bool_)
    by_number = np.empty((codes.shape[0], _NUMBERS), np.int64)
    for table in range(features.shape[0] if last - first >= _BLOCK else 0):
        alone[features[table, 0]] |= features[table, 1] < 0
    for target in range(out.shape[0]):
        line, by_number[:] = out[target], 0
        for begin in range(first, last, _BLOCK):
            n_rows = min(_BLOCK, last - begin)
            end = begin + n_rows
            side, weight, known = sides[target, begin:end], weights[target, begin:end], -1
            for table in range(features.shape[0]):
                one, two, three = features[table]
                if one != known:
                    column, known = codes[one, begin:end], one
                    for i in range(n_rows):
                        both[i] = 2 * np.uint16(column[i]) + side[i]
                    if alone[one]:
                        sums = by_number[one]
                        for i in range(n_rows):
                            sums[both[i]] += weight[i]
                a, b, c = first_of[table], cell_of[table, 1], cell_of[table, 2]
                if two < 0 and not alone[one]:
                    for i in range(n_rows):
                        line[a[both[i]]] += weight[i]
                elif two >= 0 and three < 0:
                    other = codes[two, begin:end]
                    for i in range(n_rows):
                        line[a[both[i]] + b[other[i]]] += weight[i]
                elif two >= 0:
                    other, last_one = codes[two, begin:end], codes[three, begin:end]
                    for i in range(n_rows):
                        line[a[both[i]] + b[other[i]] + c[last_one[i]]] += weight[i]
        for table in range(features.shape[0]):
            if features[table, 1] < 0 and alone[features[table, 0]]:
                for number in range(_NUMBERS):
                    line[first_of[table, number]] += by_number[features[table, 0], number]
