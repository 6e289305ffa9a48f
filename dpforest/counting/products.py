"""Sums of products of whole-number coordinates: a matrix product over the records, exact in floating point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_ROWS = 1 << 14  # records whose products are added at a time
_EXACT = 1 << 53  # doubles hold all smaller whole numbers


def products(
    codes: np.ndarray, labels: np.ndarray, columns: Sequence[np.ndarray], answer: np.ndarray, intercept: bool = False
) -> np.ndarray:
    """Sums over all records of the products of every two coordinates.

    Parameters
    ----------
    codes, labels
        The records, see :mod:`dpforest.counting`.
    columns : sequence of ndarray of int, each of shape (n_codes, n_coordinates)
        The coordinates that belong to each code of a column, by a public table.
    answer : ndarray of int, shape (n_labels, n_coordinates)
        Those of each label.
    intercept : bool
        Whether a coordinate that is always 1 comes first.

    Returns
    -------
    ndarray of int64, shape (n_coordinates, n_coordinates)
        Symmetric; the coordinates in the order of intercept, columns, answer.

    Notes
    -----
    Whole numbers pass through the floating-point product unharmed: a block is so short that every partial sum, in
    whatever order the products are added, is a whole number below 2^53, which a double holds exactly.
    """
    tables = [table.astype(float) for table in (*columns, answer)]
    largest = max(1.0, *(float(np.abs(table).max(initial=0)) for table in tables))
    block = min(_ROWS, int(_EXACT // largest**2))
    if block < 1:
        raise ValueError(f"a coordinate of {largest:g} is too large: its square must stay below 2^53")
    size = int(intercept) + sum(table.shape[1] for table in tables)
    total = np.zeros((size, size), dtype=np.int64)
    for start in range(0, len(labels), block):
        rows = slice(start, start + block)
        keys = [*(column[rows] for column in codes), labels[rows]]
        ones = np.ones((len(keys[-1]), int(intercept)))
        coordinates = np.concatenate([ones, *(t[key] for t, key in zip(tables, keys, strict=True))], axis=1)
        total += (coordinates.T @ coordinates).astype(np.int64)
    return total
