"""A column of a table as numbers, as bins of a public grid, or as positions among declared values.

Every function looks at one column, and at each of its values alone.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd
from numba import njit

__all__ = ["as_table", "bin_column", "edges", "edges_for", "one_dimensional", "positions", "to_float"]


@njit(cache=True, nogil=True)
def bin_column(values, edges, high, absent, out):
    """Write how many inner edges each value has reached, ``absent`` for NaN; count the values clipped and missing.

    ``edges`` ends in infinity, for the last bin has no inner edge above it.  A guess by division comes first; the
    comparisons with the edges have the last word, so that rounding never moves a value across an edge.
    """
    low, last = edges[0], len(edges) - 2
    width = np.float64(high) - np.float64(low)
    scale = (last + 1) / width if width > 0 else 0.0  # single precision may not tell the bounds apart
    clipped = missing = 0
    for i in range(len(values)):
        value = values[i]
        if (value >= low) & (value <= high):
            code = min(int((np.float64(value) - low) * scale), last)
            while value < edges[code]:
                code -= 1
            while value >= edges[code + 1]:
                code += 1
            out[i] = code
        elif value != value:
            out[i] = absent
            missing += 1
        else:
            out[i] = 0 if value < low else last
            clipped += 1
    return clipped, missing


@lru_cache(maxsize=4096)
def edges(low, high, n_bins) -> np.ndarray:
    """The doubles nearest to the edges of equally wide bins, the bounds being the decimals they were written as."""
    start, width = Fraction(str(low)), Fraction(str(high)) - Fraction(str(low))
    return np.array([float(start + width * k / n_bins) for k in range(n_bins + 1)])


@lru_cache(maxsize=4096)
def edges_for(dtype, low, high, n_bins) -> tuple[np.ndarray, np.floating]:
    """The edges in the precision of a column, the last one replaced by infinity, and the upper bound."""
    found = edges(low, high, n_bins).astype(dtype)
    high = found[-1]
    found[-1] = np.inf
    return found, high


def positions(declared, values, where) -> np.ndarray:
    """Position of each value among the declared ones, -1 where it is not there; equal is what Python calls equal."""
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        found, which = values.cat.categories, values.cat.codes.to_numpy()
    else:
        values = np.asarray(values)
        try:
            which, found = pd.factorize(values.astype(values.dtype.newbyteorder("="), copy=False))
        except TypeError as error:
            raise TypeError(f"{where} holds a value that is neither a number nor text: {error}") from None
    position = {value: code for code, value in enumerate(declared)}
    table = np.array([*(position.get(value, -1) for value in found), -1], dtype=np.int16)
    return table.take(which)  # pandas writes a missing value as -1: the last entry


def to_float(values, name) -> np.ndarray:
    """The column as floats, missing values as NaN; what is no number raises, with the column's name."""
    array = np.asarray(values)
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers")
    if array.dtype.kind in "mM":
        raise TypeError(f"column {name!r} is declared numeric but holds times: turn them into numbers first")
    if array.dtype == object:
        array = np.where(pd.isna(array), np.nan, array)  # None and pandas' own missing value are no floats
    try:
        return array.astype(float)
    except (TypeError, ValueError) as error:
        text = f"column {name!r} is declared numeric but holds a value that is not a number: {error}"
        raise type(error)(text) from None


def one_dimensional(y: np.ndarray) -> np.ndarray:
    """The array, a single column flattened; any other shape raises."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, not of shape {y.shape}")
    return y


def as_table(X) -> np.ndarray:
    """Anything but a data frame as a dense array."""
    if hasattr(X, "sparse") or type(X).__module__.startswith("scipy.sparse"):
        raise TypeError("Sparse data was passed, but dense data is required: use X.toarray()")
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("masked arrays hide values that are still there: pass X.filled(np.nan)")
    # rows written as lists may mix numbers and text, which an array of one type would all turn into text
    return np.asarray(X) if hasattr(X, "__array__") else np.array(X, dtype=object)
