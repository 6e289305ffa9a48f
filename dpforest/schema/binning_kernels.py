"""The grid's two loops over a column, compiled."""

import numpy as np
from numba import njit

__all__ = ["bin_column", "look_up"]

_PART = 1 << 12  # rows between two loops of a kernel
_CELLS = 1 << 11  # of the table: most hold an edge at most
_UNDECIDED = 255  # no column has so many codes


@njit(cache=True, nogil=True)
def bin_column(values: np.ndarray, edges: np.ndarray, high: float, absent: int, out: np.ndarray) -> tuple[int, int]:
    """What :func:`dpforest.schema.grid.bin_column` says.

    A table of equally wide cells says how many inner edges lie in the cells before that of a value; those in its own
    cell are compared with it.  The computed number of a cell never falls as values rise, whatever the rounding: all
    edges of earlier cells are at or below the value, and all edges of later cells are above it.
    """
    low, last = edges[0], len(edges) - 2
    scale = _CELLS / (high - low)
    if not scale < np.inf:  # so near are the bounds: all in one cell
        scale = 0.0
    before, start = np.full(_CELLS + 1, last, np.uint8), 0
    for k in range(last):
        stop = min(int((edges[k + 1] - low) * scale), _CELLS) + 1
        before[start:stop] = k
        start = stop
    lowest = 0
    while low >= edges[lowest + 1]:  # edges may be nearer to each other than doubles are
        lowest += 1
    cells = np.empty(_PART, np.int16)
    clipped = missing = 0
    for begin in range(0, len(values), _PART):
        part, codes = values[begin : begin + _PART], out[begin : begin + _PART]
        for i in range(len(part)):  # without branches, so that it is turned into vector instructions
            value = np.float64(part[i])
            inside = (value >= low) & (value <= high)
            place = np.int32(((value if inside else low) - low) * scale)
            cells[i] = np.int16(place if place < _CELLS else _CELLS) if inside else np.int16(-1)
        for i in range(len(part)):
            value = np.float64(part[i])
            if cells[i] >= 0:
                code = np.int64(before[cells[i]])
                code += np.int64(value >= edges[code + 1])  # few cells have more edges than one
                while value >= edges[code + 1]:
                    code += 1
                codes[i] = code
            elif value != value:
                codes[i] = absent
                missing += 1
            else:
                codes[i] = lowest if value < low else last
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
