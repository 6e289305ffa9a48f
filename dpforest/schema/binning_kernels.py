"""The grid's two loops over a column, compiled."""

import numpy as np
from numba import njit

__all__ = ["bin_column", "look_up"]

_PART = 1 << 12  # rows between two loops of a kernel
_UNDECIDED = 255  # no column has so many codes


@njit(cache=True, nogil=True)
def bin_column(values: np.ndarray, edges: np.ndarray, high: float, absent: int, out: np.ndarray) -> tuple[int, int]:
    """What :func:`dpforest.schema.grid.bin_column` says.

    A guess by division comes first.  Rounding may not move a value across an edge: where the guess is so near to an
    edge that it might, the comparisons with the edges have the last word.  For the guess never falls as values rise, so
    a guess farther from each whole number than any edge's own guess is from the edge's number is on the right side of
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


@njit(cache=True, nogil=True)
def look_up(
    values: np.ndarray, low: np.number, high: np.number, table: np.ndarray, absent: int, other: int, out: np.ndarray
) -> tuple[int, int]:
    """What :func:`dpforest.schema.grid.look_up` asks of a table of positions."""
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
