"""A column of a table as numbers, as bins of a public grid, or as positions among declared values.

Every function looks at one column, and at each of its values alone.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd
from numba import njit

__all__ = [
    "as_table",
    "bin_column",
    "edges",
    "is_categorical",
    "look_up",
    "one_dimensional",
    "open_edges",
    "positions",
    "to_float",
]

_WHOLE = 1 << 24  # up to here, single precision holds every whole number
_SPAN = 1 << 12  # entries of a table of positions
_PART = 1 << 12  # rows between two loops of a kernel
_UNDECIDED = 255  # no column has so many codes


@njit(cache=True, nogil=True)
def bin_column(values, edges, high, absent, out):
    """Write how many inner edges each value has reached, ``absent`` for NaN; count the values clipped and missing.

    ``edges`` are doubles and end in infinity, for the last bin has no inner edge above it; a value in single
    precision is compared as the double that it is, so that the type of a column changes no code. A guess by
    division comes first. Rounding may not move a value across an edge: where the guess is so near to an edge that
    it might, the comparisons with the edges have the last word. For the guess never falls as values rise, so a
    guess farther from each whole number than any edge's own guess is from the edge's number is on the right side of
    all edges.
    """
    low, last = edges[0], len(edges) - 2
    width = high - low
    scale = (last + 1) / width
    near = abs(width * scale - (last + 1))
    for k in range(last + 1):
        near = max(near, abs((edges[k] - low) * scale - k))
    far, undecided = 1 - near, np.int32(0)
    for i in range(len(values)):  # without branches, so that it is turned into vector instructions
        value = np.float64(values[i])
        inside = (value >= low) & (value <= high)
        guess = ((value if inside else low) - low) * scale
        code = np.int32(guess)
        rest = guess - np.float64(code)
        sure = inside & (rest > near) & (rest < far)
        undecided += np.int32(not sure)
        out[i] = np.uint8(code) if sure else np.uint8(_UNDECIDED)
    clipped = missing = 0
    for i in range(len(values) if undecided else 0):
        if out[i] != _UNDECIDED:
            continue
        value = np.float64(values[i])
        if (value >= low) & (value <= high):
            at = min(int((value - low) * scale), last)
            while value < edges[at]:
                at -= 1
            while value >= edges[at + 1]:
                at += 1
            out[i] = at
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
def open_edges(low, high, n_bins) -> tuple[np.ndarray, np.floating]:
    """The edges with the last one replaced by infinity, and the upper bound."""
    found = edges(low, high, n_bins).copy()
    high = found[-1]
    found[-1] = np.inf
    return found, high


def look_up(declared, values, absent, other, out) -> tuple[int, int] | None:
    """Write the position of each number among the declared values, ``absent`` for NaN and ``other`` for another one.

    Returns how many others and how many NaN there are, or None where this fast way is not provided for:
    it is for numbers whose declared values are whole and near to each other.  :func:`positions` is for everything.
    """
    table = None if is_categorical(values) else _table(tuple(declared))
    if table is None or getattr(values, "dtype", None) not in _NUMBERS:  # before a column of text becomes an array
        return None
    values = np.asarray(values)
    low, places = table
    high = low + len(places) - 2
    values = np.ascontiguousarray(values.view(np.uint8) if values.dtype == bool else values)
    if values.dtype.kind != "f":  # what the type cannot say does not occur
        room = np.iinfo(values.dtype)
        start, stop = max(low, int(room.min)), min(high, int(room.max))
        if start > stop:
            out[:] = other
            return len(values), 0
        places, low, high = np.append(places[start - low : stop - low + 1], places[-1:]), start, stop
    values = values.view()
    values.flags.writeable = False  # compiled once, for arrays that may be written to and for those that may not
    return _look_up(values, values.dtype.type(low), values.dtype.type(high), places, absent, other, out)


_NUMBERS = frozenset(map(np.dtype, "?bBhHiIlLqQfd"))


@lru_cache(maxsize=4096)
def _table(declared) -> tuple[int, np.ndarray] | None:
    """The least of the declared numbers and a table of positions from there on, whose last entry is for others."""
    code_of = {value: code for code, value in enumerate(declared) if not isinstance(value, str)}
    if not code_of or any(abs(value) > _WHOLE or value != int(value) for value in code_of):
        return None
    low, high = int(min(code_of)), int(max(code_of))
    if high - low >= _SPAN:
        return None
    places = [code_of.get(value, _UNDECIDED) for value in range(low, high + 1)]
    return low, np.array([*places, _UNDECIDED], dtype=np.uint8)


@njit(cache=True, nogil=True)
def _look_up(values, low, high, table, absent, other, out):
    places, start, nowhere = np.empty(_PART, np.int16), np.int32(low), np.int16(len(table) - 1)
    unknown = missing = 0
    for begin in range(0, len(values), _PART):
        part, codes = values[begin : begin + _PART], out[begin : begin + _PART]
        for i in range(len(part)):  # without branches, so that it is turned into vector instructions
            value = part[i]
            inside = (value >= low) & (value <= high)
            place = np.int32(value if inside else low)
            places[i] = np.int16(place - start) if inside & (values.dtype.type(place) == value) else nowhere
        for i in range(len(part)):
            code = table[places[i]]
            if code == _UNDECIDED:
                nan = part[i] != part[i]
                missing += nan
                unknown += not nan
                code = np.uint8(absent if nan else other)
            codes[i] = code
    return unknown, missing


def positions(declared, values, where) -> np.ndarray:
    """Position of each value among the declared ones, -1 where it is not there; equal is what Python calls equal."""
    if is_categorical(values):
        found, which = values.cat.categories, values.cat.codes.to_numpy()
    elif is_text(values):
        which, found = pd.factorize(values)
    else:
        values = np.asarray(values)
        try:
            which, found = pd.factorize(values.astype(values.dtype.newbyteorder("="), copy=False))
        except TypeError as error:
            raise TypeError(f"{where} holds a value that is neither a number nor text: {error}") from None
    position = {value: code for code, value in enumerate(declared)}
    table = np.array([*(position.get(value, -1) for value in found), -1], dtype=np.int16)
    return table.take(which)  # pandas writes a missing value as -1: the last entry


def is_categorical(values) -> bool:
    """Whether a column comes as codes of its distinct values, as pandas keeps a categorical one."""
    return isinstance(getattr(values, "dtype", None), pd.CategoricalDtype)


def is_text(values) -> bool:
    """Whether a column comes as pandas' own text, which it compares without an object for each value."""
    return isinstance(getattr(values, "dtype", None), pd.StringDtype)


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
