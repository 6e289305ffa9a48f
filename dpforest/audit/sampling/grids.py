"""Outputs on a grid: what remains of numbers when their lowest bits are rounded away.

To round is post-processing, so that a bound on the loss of rounded outputs is one of the mechanism, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpforest.audit.sampling.columns import OutputLayout
from dpforest.audit.sampling.outputs import Batch, canonical
from dpforest.messages import shown

__all__ = ["check_grain", "law_on", "on_grid", "sampler_on", "spelled_grid", "stands_on", "suited_grid"]

_BITS = 20  # of the spread of a number that stay: far more than a test of a million draws can tell apart
_SPARE = 8  # bits above the last place of the doubles that are rounded


def check_grain(grain: Any) -> bool | float | None:
    """None, True, False, or the size of a grid."""
    if grain is None or isinstance(grain, bool | np.bool_):
        return None if grain is None else bool(grain)
    if not isinstance(grain, float | int | np.floating | np.integer):
        raise TypeError(f"grain must be None, True, False or the size of a grid, not {type(grain).__name__}")
    if not 0 < grain < math.inf:  # also refuses NaN
        raise ValueError(f"grain must be None, True, False or the size of a grid, such as 2**-20; got {shown(grain)}")
    return float(grain)


def suited_grid(batches: tuple[Batch, Batch]) -> float:
    """A power of two, some 2^-20 of the spread of outputs like these: of the number that varies least, if several do.

    It lies well above the last place of the numbers, so that rounding changes them.
    """
    exponents = []
    for column in _numbers(batches).T:
        finite = column[np.isfinite(column)]
        low, middle, high = np.quantile(finite, [0.25, 0.5, 0.75]) if len(finite) else (0.0, 0.0, 0.0)
        if high > low:
            last = math.frexp(max(abs(low), abs(middle), abs(high)))[1] - 53
            exponents.append(max(math.frexp(high - low)[1] - 1 - _BITS, last + _SPARE))
    return math.ldexp(1.0, max(-1000, min(exponents, default=-_BITS)))


def _numbers(batches: tuple[Batch, Batch]) -> np.ndarray:
    table = OutputLayout(batches)
    return np.concatenate([np.asarray(table.numbers(batch), dtype=float) for batch in batches])


def stands_on(batches: tuple[Batch, Batch], grid: float) -> bool:
    """Whether all numbers of these outputs are multiples of the grid as they are."""
    numbers = _numbers(batches)
    return np.array_equal(numbers, _round(numbers, grid), equal_nan=True)


def spelled_grid(grid: float) -> str:
    """A grid in words: as a power of two if it is one."""
    mantissa, exponent = math.frexp(grid)
    return f"2^{exponent - 1}" if mantissa == 0.5 else repr(grid)


def on_grid(thing: Any, grid: float) -> Any:
    """Numbers that are no integers, rounded to multiples of ``grid``, in arrays, lists and tuples of any depth."""
    if isinstance(thing, np.ndarray):
        if thing.dtype.kind == "c":
            return on_grid(thing.real, grid) + 1j * on_grid(thing.imag, grid)
        if thing.dtype.kind == "O":
            return np.frompyfunc(lambda part: on_grid(part, grid), 1, 1)(thing)
        return _round(thing, grid) if thing.dtype.kind == "f" else thing
    if isinstance(thing, float | np.floating):
        return float(_round(np.asarray(thing), grid))
    if isinstance(thing, complex | np.complexfloating):
        return complex(on_grid(thing.real, grid), on_grid(thing.imag, grid))
    if isinstance(thing, list):
        return [on_grid(part, grid) for part in thing]
    if isinstance(thing, tuple):
        parts = [on_grid(part, grid) for part in thing]
        return type(thing)._make(parts) if hasattr(thing, "_make") else tuple(parts)
    return thing


@np.errstate(over="ignore", invalid="ignore")
def _round(numbers: np.ndarray, grid: float) -> np.ndarray:
    """Rounded; 0 has one sign, and what is too large to have a place between two points stays as it is."""
    steps = np.asarray(numbers, dtype=float) / grid
    return np.where(np.abs(steps) < 2.0**52, np.rint(steps) * grid + 0.0, numbers)


def sampler_on(sample: Callable, grid: float) -> Callable:
    """The sampler followed by rounding; a list of plain numbers becomes an array."""

    def rounded(dataset: Any, size: int, rng: np.random.Generator) -> Any:
        raw = sample(dataset, size, rng)
        if isinstance(raw, list | tuple) and all(type(item) is float for item in raw):
            raw = np.array(raw, dtype=float)
        if hasattr(raw, "__array__") and not isinstance(raw, np.ma.MaskedArray):  # which the reader refuses
            raw = np.asarray(raw)
        return raw if isinstance(raw, np.ma.MaskedArray) else on_grid(raw, grid)

    return rounded


def law_on(law: Callable, grid: float) -> Callable:
    """The law of rounded outputs."""

    def rounded(dataset: Any) -> Any:
        known = law(dataset)
        if not isinstance(known, Mapping):
            return known  # the auditor says what is wrong with it
        found: dict = {}
        for output, chance in known.items():
            place = canonical(on_grid(output, grid))
            found[place] = found.get(place, 0.0) + chance
        return found

    return rounded
