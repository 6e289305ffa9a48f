"""Multisets by number: all small data sets in one table, and the row of each found by arithmetic."""

from __future__ import annotations

import math
from itertools import product

import numba
import numpy as np

__all__ = ["Multisets", "check_size", "largest"]


def largest(kinds: int, n_max: int, limit: int) -> int:
    """The most things, up to ``n_max``, of which there are at most ``limit`` multisets; 0 if none are."""
    return next((n for n in range(n_max, 0, -1) if math.comb(kinds + n, n) <= limit), 0)


def check_size(kinds: int, n_max: int, limit: int, name: str, instead: str) -> int:
    """How many data sets there are; more than the ``limit`` called ``name`` raise, and say what to do ``instead``."""
    size = math.comb(kinds + n_max, n_max)
    if size > limit:
        raise ValueError(
            f"{kinds} kinds of records and n_max = {n_max} make {size} data sets, more than {name} = {limit}: "
            f"n_max = {largest(kinds, n_max, limit)} would fit; or use fewer features, {instead}"
        )
    return size


class Multisets:
    """All multisets of at most ``n_max`` things of ``kinds`` kinds, as rows of counts in lexicographic order."""

    def __init__(self, kinds: int, n_max: int):
        self.kinds, self.n_max = kinds, n_max
        self.size = math.comb(kinds + n_max, n_max)
        # before[i, r, v]: how many rows have a smaller count than v in column i, with r things left for columns i on
        self._before = np.zeros((kinds, n_max + 1, n_max + 2), dtype=np.int64)
        for column, left in product(range(kinds), range(n_max + 1)):
            after = kinds - column - 1
            steps = [math.comb(left - v + after, after) for v in range(left + 1)]
            self._before[column, left, 1 : left + 2] = np.cumsum(steps)
            self._before[column, left, left + 2 :] = -1

    def rows(self) -> np.ndarray:
        """All rows, uint8, shape (size, kinds)."""
        rows = np.zeros((self.size, self.kinds), dtype=np.uint8)
        _fill(rows, self.n_max)
        return rows

    def rank(self, rows: np.ndarray, plus: int | None = None) -> np.ndarray:
        """Index of each row, with one thing of kind ``plus`` more if given."""
        rank = _rank_many if len(rows) > _MANY else _rank_few
        return rank(rows, self._before, self.n_max, -1 if plus is None else plus)


@numba.njit(cache=True)
def _fill(rows, n_max):
    current = np.zeros(rows.shape[1], dtype=np.uint8)
    left = n_max
    for index in range(rows.shape[0]):
        for kind in range(rows.shape[1]):  # one by one: a copy of the row takes four times as long to compile
            rows[index, kind] = current[kind]
        column = rows.shape[1] - 1
        if left == 0:  # take back the last column in use, and step the one before
            while column > 0 and current[column] == 0:
                column -= 1
            left += current[column]
            current[column] = 0
            column -= 1
        if column >= 0:
            current[column] += 1
            left -= 1


def _rank(rows, before, n_max, plus):
    ranks = np.empty(rows.shape[0], dtype=np.int64)
    for index in numba.prange(rows.shape[0]):
        left, rank = n_max, 0
        for column in range(rows.shape[1]):
            count = rows[index, column] + (1 if column == plus else 0)
            rank += before[column, left, count]
            left -= count
        ranks[index] = rank
    return ranks


_MANY = 20_000  # rows from which on threads are worth starting
_rank_few = numba.njit(cache=True)(_rank)
_rank_many = numba.njit(parallel=True, cache=True)(_rank)
