"""What a sampler returns, read for an auditor: numbers, vectors, labels, trees.

Outputs are an array, of numbers or of equal shapes, or a list of hashable objects.  Nothing is dropped: NaN is a
value like others, and a label that appears for the first time in a million draws is told from all others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Batch", "Reader", "canonical", "join"]


class _NotANumber:
    """What a NaN is replaced by in a label, for NaN is unlike itself."""

    def __repr__(self) -> str:
        return "nan"


NAN = _NotANumber()


@dataclass
class Batch:
    """Outputs as they were returned, and what tells them apart.

    Attributes
    ----------
    raw : ndarray or list, of length ``size``
    whole : ndarray of int64, shape (size,)
        A code per output: equal outputs have equal ones.
    items : list of hashables
        Of a list, the different outputs, NaN replaced; empty for arrays.
    place : ndarray of int64, shape (size,)
        Of a list, where each output stands among ``items``.
    """

    raw: Any
    size: int
    whole: np.ndarray
    items: list
    place: np.ndarray
    known: dict[str, Any] = field(default_factory=dict, repr=False)  # what was computed from it, by name

    def item(self, index: int) -> Hashable:
        """An output as a hashable Python object: a number, or a tuple of numbers for a row of an array."""
        item = self.raw[index]
        return _tuples(item.tolist()) if isinstance(item, np.ndarray | np.generic) else canonical(item)

    def part(self, start: int, stop: int) -> Batch:
        """Some of the outputs."""
        cut = slice(start, stop)
        return Batch(self.raw[cut], stop - start, self.whole[cut], self.items, self.place[cut])


class Reader:
    """Reads every answer of one sampler in the same way, and refuses what it cannot read.

    ``learning`` is turned off when the event is chosen: labels met later than that need no codes of their own, and all
    get the code -1.
    """

    def __init__(self) -> None:
        self.learning = True
        self._form: str | None = None  # "numbers", "arrays of shape ..." or "a list"
        self._codes: dict[Hashable, int] = {}

    def __call__(self, raw, size: int, source: str) -> Batch:
        """The ``size`` outputs of one call; ``source`` says where they come from, for the messages."""
        if isinstance(raw, str | bytes | Mapping | set | frozenset) or not hasattr(raw, "__len__"):
            raise ValueError(f"sample must return an array or a list; for {source} it returned {type(raw).__name__}")
        if not isinstance(raw, list | tuple):
            raw = np.asarray(raw)
        if len(raw) != size:
            raise ValueError(f"sample returned {len(raw)} outputs for {source}, where {size} were asked for")
        if isinstance(raw, np.ndarray) and raw.dtype.kind == "c":
            raw = np.ascontiguousarray(raw.astype(complex)).view(float).reshape(*raw.shape, 2)  # two numbers each
        if isinstance(raw, np.ndarray) and raw.dtype.kind not in "biuf":
            raw = [_tuples(row) for row in raw.tolist()]
        elif not isinstance(raw, np.ndarray) and size and isinstance(raw[0], np.ndarray | list):
            raw = _stack(raw, source)
        form = "a list"
        if isinstance(raw, np.ndarray):
            form = f"arrays of shape {raw.shape[1:]}" if raw.ndim > 1 else "numbers"
        self._form = self._form or form
        if form != self._form:
            raise ValueError(
                f"outputs differ in shape: for {source} the sampler returned {form}, elsewhere {self._form}; "
                f"if the shape is part of the output, return a list of tuples"
            )
        if isinstance(raw, np.ndarray):
            return Batch(raw, size, _hashes(raw), [], np.zeros(size, dtype=np.int64))
        return self._read_list(list(raw), source)

    def _read_list(self, raw: list, source: str) -> Batch:
        met: dict[Hashable, int] = {}
        try:
            place = np.array([met.setdefault(item, len(met)) for item in raw], dtype=np.int64)
        except TypeError as error:
            raise ValueError(
                "outputs must be numbers, rows of an array or hashable objects such as tuples, strings or bytes; "
                f"for {source} there is one of which Python says: {error}"
            ) from None
        items, book = [canonical(item) for item in met], self._codes
        if self.learning:
            codes = [book.setdefault(item, len(book)) for item in items]
        else:
            codes = [book.get(item, -1) for item in items]
        return Batch(raw, len(raw), np.array(codes, dtype=np.int64)[place], items, place)


def join(parts: Sequence[Batch]) -> Batch:
    """Several batches of one reader as one."""
    if len(parts) == 1:
        return parts[0]
    raw: Any
    if isinstance(parts[0].raw, np.ndarray):
        raw = np.concatenate([part.raw for part in parts])
    else:
        raw = [item for part in parts for item in part.raw]
    starts = np.cumsum([0, *(len(part.items) for part in parts[:-1])])
    place = np.concatenate([part.place + start for part, start in zip(parts, starts, strict=True)])
    items = [item for part in parts for item in part.items]
    return Batch(raw, len(raw), np.concatenate([part.whole for part in parts]), items, place)


def canonical(item):
    """The item with every NaN in it replaced, so that it equals itself."""
    if isinstance(item, tuple):
        return tuple(map(canonical, item))
    return NAN if isinstance(item, float | np.floating) and item != item else item


def _tuples(item):
    return tuple(map(_tuples, item)) if isinstance(item, list) else canonical(item)


def _hashes(raw: np.ndarray) -> np.ndarray:
    """One 64-bit number per output, from the bits of all its numbers."""
    whole = np.zeros(len(raw), dtype=np.uint64)
    for column in raw.reshape(len(raw), -1).T:
        whole = _mix(whole * np.uint64(0x9E3779B97F4A7C15) + _bits(column))
    return whole.view(np.int64)


def _bits(column: np.ndarray) -> np.ndarray:
    """Numbers as bit patterns, with one pattern for NaN."""
    if column.dtype.kind in "biu":
        return column.astype(np.uint64 if column.dtype.kind == "u" else np.int64).view(np.uint64)
    return np.where(np.isnan(column), np.nan, column).astype(float).view(np.uint64)


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread the bits of 64-bit numbers, one to one (the finisher of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _stack(raw, source: str) -> np.ndarray:
    shapes = {np.shape(item) for item in raw}
    if len(shapes) > 1:
        raise ValueError(
            f"outputs differ in shape: {', '.join(map(str, sorted(shapes)[:3]))} among those for {source}; if the "
            f"shape is part of the output, return a list of tuples"
        )
    stacked = np.asarray(raw)
    if stacked.dtype.kind not in "biuf":
        raise ValueError(
            f"outputs for {source} are lists that hold more than numbers: return tuples, which are hashable"
        )
    return stacked
