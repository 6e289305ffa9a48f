"""The exact Gini score of many nodes, and how far their candidates are behind, each in one loop, compiled."""

import numpy as np
from numba import njit

__all__ = ["LARGEST", "below_best", "gini"]

#: Sizes below this have exact sums of squares, and exact products of a remainder and the grid's steps, in int64.
LARGEST = 1 << 31


@njit(cache=True, nogil=True, error_model="numpy")
def gini(counts: np.ndarray, steps: int, out: np.ndarray) -> bool:
    """Write the score of each split, whole numbers and steps of the grid, to ``out`` (2, n_splits).

    ``counts``, int64 (n_splits, children, classes), are not negative.  Each child's sum of squares over its size is
    rounded down to the grid.  False where a child has ``LARGEST`` records or more: then ``out`` says nothing.
    """
    for split in range(counts.shape[0]):
        whole, part = np.int64(0), np.int64(0)
        for child in range(counts.shape[1]):
            size, squares = np.int64(0), np.int64(0)
            for label in range(counts.shape[2]):
                count = counts[split, child, label]
                size += count
                squares += count * count
            if size >= LARGEST:
                return False
            if size > 0:
                whole += squares // size - size
                part += squares % size * steps // size
        out[0, split], out[1, split] = whole, part
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def below_best(values: np.ndarray, able: np.ndarray, steps: int, farthest: int, out: np.ndarray) -> None:
    """Write to ``out`` (n_rows, K) how many steps each of the ``able`` is behind the best, ``farthest`` at most.

    ``values``, int64 (2, n_rows, K), are whole numbers and parts in ``steps``, which need not be below 1.
    """
    for row in range(able.shape[0]):
        best, rest = np.int64(-(1 << 63)), np.int64(0)
        for at in range(able.shape[1]):
            whole, part = values[0, row, at] + values[1, row, at] // steps, values[1, row, at] % steps
            if able[row, at] and (whole > best or (whole == best and part > rest)):
                best, rest = whole, part
        for at in range(able.shape[1]):
            whole, part = values[0, row, at] + values[1, row, at] // steps, values[1, row, at] % steps
            near = min(best - whole, farthest // steps + 1) * steps + (rest - part)
            out[row, at] = 0.0 - min(near, farthest) if able[row, at] else -np.inf
