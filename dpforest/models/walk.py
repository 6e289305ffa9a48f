"""Walking records down the released trees, with NumPy alone or by compiled kernels: the same bits."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dpforest.structure.splits import Splits, check_codes, check_values

__all__ = ["leaves", "sum_values"]

_STEPS = 1 << 18  # records times trees that are walked together


def sum_values(codes: np.ndarray, splits: Any, values: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Value of each record's leaf, summed over the trees in their order: float64, shape (n_rows, n_outputs).

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows)
    splits : Splits
        Or any object with the same six arrays.
    values : ndarray of float64, shape (n_nodes, n_outputs)
    n_jobs : int
        Threads of the compiled kernels, which are used where they can be had; NumPy has one.
    """
    if (compiled := _compiled()) is not None:
        return compiled(codes, splits, values, n_jobs=n_jobs)
    splits = Splits.of(splits)
    codes, values = check_values(codes, splits, values)
    columns, out = values.T, np.zeros((values.shape[1], codes.shape[1]))
    size = max(1, _STEPS // max(1, len(splits.roots)))
    for first in range(0, codes.shape[1], size):
        part = out[:, first : first + size]
        for reached in _leaves(codes[:, first : first + size], splits):
            part += columns[:, reached]
    return out.T


def leaves(codes: np.ndarray, splits: Any) -> np.ndarray:
    """The leaf of each record in each tree, all of them at once: int32, shape (n_trees, n_rows)."""
    splits, codes = Splits.of(splits), check_codes(codes)
    splits.check_codes(codes)
    return _leaves(codes, splits)


@cache
def _compiled() -> Any:
    try:
        from dpforest.counting import sum_values as compiled
    except ImportError:  # Numba is not installed, or not for this NumPy
        return None
    return compiled


def _leaves(codes: np.ndarray, splits: Splits) -> np.ndarray:
    """The leaf of each record in each tree, level by level for all of them: shape (n_trees, n_rows)."""
    n_rows = codes.shape[1]
    node = np.repeat(splits.roots, n_rows)
    walking = np.flatnonzero(splits.feature[node] >= 0)
    while walking.size:
        at = node[walking]
        code = codes[splits.feature[at], walking % n_rows]
        bit = splits.mask[at, code >> 6] >> (code & 63) & np.uint64(1)
        node[walking] = splits.first_child[at] + np.where(splits.multiway[at], code, bit.astype(np.uint8))
        walking = walking[splits.feature[node[walking]] >= 0]
    return node.reshape(-1, n_rows)
