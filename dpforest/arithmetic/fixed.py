"""Fixed-point numbers: exact scores, whatever the number of records.

A number is held as two int64 arrays along a leading axis of length 2: ``whole`` and ``part``, for
``whole + part / STEPS``.  Sums are exact; ``part`` need not stay below ``STEPS``.  The grid is public: it depends on no
record.  It holds every fraction with a denominator up to 22, so that small data sets have the scores of the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["FARTHEST", "STEPS", "below_best", "fixed", "over"]

#: Steps of the grid from one whole number to the next, a little less than 2^30.
STEPS = 4 * lcm(*range(1, 23))
#: A candidate that is more steps behind the best counts as if it were so many: these numbers are exact in doubles.
FARTHEST = STEPS << 22

_EXACT = 1 << 22  # dividends below this, times STEPS, are exact in doubles
_ROUGH = 2.0**-44  # relative error of a sum of 257 products in doubles
_ROOM = 2.0**61  # what a first remainder may be


def fixed(values: ArrayLike) -> np.ndarray:
    """The number of the grid next to each value: int64, shape (2, ...).

    Parameters
    ----------
    values : array-like of float or int, shape (...)
        Below 2^62 in size.
    """
    values = np.asarray(values)
    found = np.zeros((2, *values.shape), dtype=np.int64)
    if values.dtype.kind in "iub":
        found[0] = values
        return found
    found[0] = whole = np.floor(values)
    found[1] = np.rint((values - whole) * STEPS)
    return found


def over(top: Callable[[type], np.ndarray], size: np.ndarray, most: float, factor: int = 1) -> np.ndarray:
    """``top / (factor size)`` rounded down to the grid, exactly; 0 where ``size`` is 0.

    Parameters
    ----------
    top : callable
        ``top(dtype)`` computes the dividend, whole and not negative, shape (...), in that arithmetic: float, uint64,
        which wraps, or object, Python's integers.
    size : ndarray of int64, shape (...)
        0 only where the dividend is.
    most : float
        No number that ``top`` comes by is larger.
    factor : int

    Returns
    -------
    ndarray of int64, shape (2, ...)

    Notes
    -----
    A quotient of doubles is off by a few roundings; the remainder, which is exact modulo 2^64, says by how much.  What
    is left of it, times ``STEPS``, gives the part in the same way.
    """
    divisor = np.where(size > 0, size, 1)
    if most < _EXACT:  # a quotient that is not whole is further from a whole number than it is rounded
        found = np.zeros((2, *size.shape), dtype=np.int64)
        found[1] = np.floor(top(float) * STEPS / (divisor * float(factor)))
        return found
    if max(most * _ROUGH, divisor.max(initial=1) * float(factor)) > _ROOM:
        found = top(object) * STEPS // (divisor.astype(object) * factor)
        return np.stack([found // STEPS, found % STEPS]).astype(np.int64)
    divisor = divisor * np.int64(factor)
    whole, left = _divided(top(float), top(np.uint64), divisor)
    part, _ = _divided(left * float(STEPS), left.astype(np.uint64) * np.uint64(STEPS), divisor)
    return np.stack([whole, part])


def _divided(near: np.ndarray, wrapped: np.ndarray, divisor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quotient and remainder of a number that is known in doubles, and exactly modulo 2^64."""
    found = np.floor(near / divisor).astype(np.int64)
    left = (wrapped - found.astype(np.uint64) * divisor.astype(np.uint64)).astype(np.int64)
    more, left = np.divmod(left, divisor)
    return found + more, left


def below_best(values: np.ndarray, able: np.ndarray) -> np.ndarray:
    """How many steps each candidate is from the best of its row, in exact doubles; -inf for what is no candidate.

    Parameters
    ----------
    values : ndarray of int64, shape (2, n_rows, K)
    able : ndarray of bool, shape (n_rows, K)
        Candidates; at least one in a row.

    Returns
    -------
    ndarray of float, shape (n_rows, K)
        0 for the best, and at least ``-FARTHEST``.
    """
    from dpforest.arithmetic import gini_kernels  # Numba: not where a model is only read

    found = np.empty(able.shape)
    gini_kernels.below_best(values, able, STEPS, FARTHEST, found)
    return found
