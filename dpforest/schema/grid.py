"""Numbers as bins of a public grid, or as positions among declared ones.

Every function looks at one column, and at each of its values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["DOUBLINGS", "FINEST", "GRIDS", "bin_column", "edges", "look_up", "open_edges"]

#: How the public bins of a column lie between its bounds: all equally wide; or half as many, and in addition, where
#: 0 lies between the bounds, every half, quarter, ... of each bound, which distinguishes small numbers below a large
#: bound; or these, of which the equally wide ones are divided into as many parts as there are codes for.
GRIDS = ("even", "doubling", "fine")
DOUBLINGS = 14  # the finest of them is a share of 2^-14 of the bound
FINEST = 254  # bins of a fine grid at most: one code is left for missing values

_WHOLE = 1 << 24  # up to here, single precision holds every whole number
_SPAN = 1 << 12  # entries of a table of positions
_UNDECIDED = 255  # no column has so many codes


def bin_column(values: np.ndarray, edges: np.ndarray, high: float, absent: int, out: np.ndarray) -> tuple[int, int]:
    """Write how many inner edges each value has reached, ``absent`` for NaN; count the values clipped and missing.

    ``edges`` are doubles and end in infinity, for the last bin has no inner edge above it; a value in single
    precision is compared as the double that it is, so that the type of a column changes no code.
    """
    if (binning_kernels := _compiled()) is not None:
        return binning_kernels.bin_column(values, edges, high, absent, out)
    values, low = np.asarray(values, dtype=float), edges[0]
    missing = np.isnan(values)
    clipped = (values < low) | (values > high)
    out[:] = np.searchsorted(edges[1:], np.clip(values, low, high), side="right")
    out[missing] = absent
    return int(clipped.sum()), int(missing.sum())


@lru_cache(maxsize=4096)
def edges(low: float, high: float, n_bins: int, kind: str = "even") -> np.ndarray:
    """The doubles nearest to the edges of the bins, the bounds being the decimals they were written as.

    Of kind ``"doubling"`` there are more or fewer than ``n_bins`` bins; where 0 does not lie between the bounds, as
    many, equally wide.  Every edge of that kind is an edge of kind ``"fine"``.
    """
    start, width = Fraction(str(low)), Fraction(str(high)) - Fraction(str(low))
    straddles = kind != "even" and low <= 0 < high
    equal = n_bins // 2 if straddles else n_bins
    if kind == "fine":
        equal *= max((FINEST - straddles * (2 * DOUBLINGS + 1)) // equal, 1)
    if not straddles:
        return np.array([float(start + width * k / equal) for k in range(equal + 1)])
    found = {start + width * k / equal for k in range(equal + 1)} | {Fraction(0)}
    found |= {bound / 2**k for bound in (start, start + width) for k in range(1, DOUBLINGS + 1)}
    return np.unique([float(edge) for edge in found])


@lru_cache(maxsize=4096)
def open_edges(low: float, high: float, n_bins: int, kind: str = "even") -> tuple[np.ndarray, float]:
    """The edges with the last one replaced by infinity, and the upper bound."""
    found = edges(low, high, n_bins, kind).copy()
    high = found[-1]
    found[-1] = np.inf
    return found, high


def look_up(
    known: Mapping[str | float, int], values: Any, absent: int, other: int, out: np.ndarray
) -> tuple[int, int] | None:
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
def _table(known: tuple[tuple[float, int], ...]) -> tuple[int, np.ndarray] | None:
    """The least of the known numbers and a table of positions from there on, whose last entry is for others."""
    code_of = dict(known)
    if not code_of or any(abs(value) > _WHOLE or value != int(value) for value in code_of):
        return None
    low, high = int(min(code_of)), int(max(code_of))
    if high - low >= _SPAN:
        return None
    places = [code_of.get(value, _UNDECIDED) for value in range(low, high + 1)]
    return low, np.array([*places, _UNDECIDED], dtype=np.uint8)


def _look_up(
    values: np.ndarray, low: np.number, high: np.number, table: np.ndarray, absent: int, other: int, out: np.ndarray
) -> tuple[int, int]:
    if (binning_kernels := _compiled()) is not None:
        return binning_kernels.look_up(values, low, high, table, absent, other, out)
    inside = (values >= low) & (values <= high)
    place = np.where(inside, values, low).astype(np.int32)
    there = inside & (place.astype(values.dtype) == values)
    codes = table[np.where(there, place - np.int32(low), len(table) - 1)]
    unknown = codes == _UNDECIDED
    missing = unknown & (values != values)
    out[:] = np.where(missing, absent, np.where(unknown, other, codes))
    return int((unknown & ~missing).sum()), int(missing.sum())


@cache
def _compiled() -> ModuleType | None:
    """The same two functions, compiled; None where Numba cannot be imported."""
    try:
        from dpforest.schema import binning_kernels
    except ImportError:
        return None
    return binning_kernels
