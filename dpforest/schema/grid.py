"""Numbers as bins of a public grid, or as positions among declared ones.

Every function looks at one column, and at each of its values alone.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numba import njit

__all__ = ["bin_column", "edges", "look_up", "open_edges"]

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


def look_up(known, values, absent, other, out) -> tuple[int, int] | None:
    """Write the position of each number among the known ones, ``absent`` for NaN and ``other`` for another one.

    Returns how many others and how many NaN there are, or None where this fast way is not provided for:
    it is for numbers, where the known ones are whole and near to each other.
    :func:`~dpforest.schema.cells.places` is for everything.
    """
    dtype = getattr(values, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype not in _NUMBERS:  # before a column of text becomes an array
        return None
    table = _table(tuple((number, place) for number, place in known.items() if not isinstance(number, str)))
    if table is None:
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
def _table(known) -> tuple[int, np.ndarray] | None:
    """The least of the known numbers and a table of positions from there on, whose last entry is for others."""
    code_of = dict(known)
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
