"""The outputs of a sampler in one canonical form, whatever it returns: numbers, vectors, labels, trees.

Outputs are an array, of numbers or of equal shapes, or a list of hashable objects.  Nothing is dropped: NaN is a
value like others, and a label that appears for the first time in a million draws is kept apart from all others.
Outputs are one and the same if their types and all that they hold are, whatever their own ``==`` says.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

import numpy as np

from dpforest.audit.fingerprint import fingerprint

__all__ = ["Batch", "OutputReader", "bits", "canonical", "join", "shortened"]


_PLAIN = {str, bytes, int, bool, type(None)}


class _NotANumber:
    """What a NaN is replaced by, for NaN is unlike itself."""

    def __repr__(self) -> str:
        return "nan"


NAN = _NotANumber()


def canonical(thing: Any) -> Any:
    """A hashable object that equals itself: a tuple for an array or a list, the entries of a mapping, NaN replaced."""
    if isinstance(thing, np.ndarray | np.generic):
        thing = thing.tolist()
    if isinstance(thing, list | tuple):
        return tuple(map(canonical, thing))
    if isinstance(thing, Mapping):
        return frozenset((key, canonical(value)) for key, value in thing.items())
    return NAN if isinstance(thing, Number) and thing != thing else thing


def bits(numbers: np.ndarray) -> np.ndarray:
    """Numbers as 64-bit patterns, with one pattern for NaN."""
    if numbers.dtype.kind in "biu":
        return numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64).view(np.uint64)
    return np.where(np.isnan(numbers), np.nan, numbers).astype(float).view(np.uint64)


def shortened(text: str, most: int = 80) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


@dataclass
class Batch:
    """Outputs as they were returned, and what tells them apart.

    Attributes
    ----------
    raw : ndarray or list
    whole : ndarray of int64, shape (size,)
        A code per output: equal outputs have equal ones.
    items : list of hashables
        Of a list, the different outputs, canonical; empty for arrays.
    place : ndarray of int64, shape (size,)
        Of a list, the place of each output among ``items``.
    """

    raw: Any
    whole: np.ndarray
    items: list[Hashable] = field(default_factory=list)
    place: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    known: dict[str, Any] = field(default_factory=dict, repr=False)  # what was computed from it, by name

    @property
    def size(self) -> int:
        return len(self.whole)

    def item(self, index: int) -> Hashable:
        """An output, canonical."""
        return canonical(self.raw[index])

    def part(self, start: int, stop: int) -> Batch:
        """Some of the outputs."""
        cut = slice(start, stop)
        return Batch(self.raw[cut], self.whole[cut], self.items, self.place[cut])

    def once(self, name: str, compute: Callable[[Batch], Any]) -> Any:
        """What ``compute`` says of the batch; it is asked once for each name."""
        if name not in self.known:
            self.known[name] = compute(self)
        return self.known[name]


class OutputReader:
    """Reads every answer of one sampler in the same way, and refuses what it cannot read.

    ``learning`` is turned off when the event is chosen: labels met later than that need no codes of their own, and all
    get the code -1.
    """

    def __init__(self) -> None:
        self.learning = True
        self._form: str | None = None  # "numbers", "arrays of shape ..." or "a list"
        self._codes: dict[Hashable, int] = {}

    def __call__(self, raw: Any, size: int, source: str) -> Batch:
        """The ``size`` outputs of one call; ``source`` says where they come from, for the messages."""
        if isinstance(raw, str | bytes | Mapping | set | frozenset) or not hasattr(raw, "__len__"):
            raise ValueError(f"sample must return an array or a list; for {source} it returned {type(raw).__name__}")
        if len(raw) != size:
            raise ValueError(f"sample returned {len(raw)} outputs for {source}, where {size} were asked for")
        raw = _array_or_list(raw, source)
        form = "a list"
        if isinstance(raw, np.ndarray):
            form = f"arrays of shape {raw.shape[1:]}" if raw.ndim > 1 else "numbers"
        self._form = self._form or form
        if form != self._form:
            raise ValueError(
                f"outputs differ in shape: for {source} the sampler returned {form}, elsewhere {self._form}; "
                f"if the shape is part of the output, return a list of tuples"
            )
        return Batch(raw, _hashes(raw)) if isinstance(raw, np.ndarray) else self._read_list(raw, source)

    def _read_list(self, raw: list, source: str) -> Batch:
        met: dict[Hashable, int] = {}
        same = dict(zip(map(id, raw), raw, strict=True))  # an object that is met again is looked into once
        try:
            keys = {name: _key(item) for name, item in same.items()}
            place = np.array([met.setdefault(keys[id(item)], len(met)) for item in raw], dtype=np.int64)
        except TypeError as error:
            raise ValueError(
                "outputs must be numbers, rows of an array or hashable objects such as tuples, strings or bytes; "
                f"for {source} there is one of which Python says: {error}"
            ) from None
        first = {key: same[name] for name, key in reversed(keys.items())}
        items, book = [canonical(first[key]) for key in met], self._codes
        if self.learning:
            codes = [book.setdefault(key, len(book)) for key in met]
        else:
            codes = [book.get(key, -1) for key in met]
        return Batch(raw, np.array(codes, dtype=np.int64)[place], items, place)


def _key(item: Any) -> Hashable:
    """What tells an output of a list from others; it must be hashable."""
    kind = type(item)
    if kind in (str, bytes, int):
        return kind, item
    hash(item)
    if kind is tuple:  # most are of plain parts, or of doubles, and are many
        kinds = tuple(map(type, item))
        different = set(kinds)
        if different <= _PLAIN:
            return kinds, item
        if different == {float}:
            return kinds, struct.pack(f"{len(item)}d", *item)
    return fingerprint(item)


def join(parts: Sequence[Batch]) -> Batch:
    """Several batches of one reader as one."""
    raw: Any
    if isinstance(parts[0].raw, np.ndarray):
        raw = np.concatenate([part.raw for part in parts])
    else:
        raw = [item for part in parts for item in part.raw]
    starts = np.cumsum([0, *(len(part.items) for part in parts[:-1])])
    place = np.concatenate([part.place + start for part, start in zip(parts, starts, strict=True)])
    items = [item for part in parts for item in part.items]
    return Batch(raw, np.concatenate([part.whole for part in parts]), items, place)


def _array_or_list(raw: Any, source: str) -> np.ndarray | list:
    """An array of numbers where the outputs are numbers or arrays of them, a complex one as two; else a list."""
    if isinstance(raw, list | tuple):
        for item in raw:
            _check_masks(item, source)
        return _stack(raw, source) if len(raw) and isinstance(raw[0], np.ndarray | list) else list(raw)
    _check_masks(raw, source)
    raw = np.asarray(raw)
    if raw.dtype.kind == "c":
        return np.ascontiguousarray(raw.astype(complex)).view(float).reshape(*raw.shape, 2)
    return raw if raw.dtype.kind in "biuf" else [canonical(row) for row in raw.tolist()]


def _check_masks(raw: Any, source: str) -> None:
    if isinstance(raw, np.ma.MaskedArray):
        raise ValueError(
            f"outputs for {source} are masked arrays, whose masks may tell the data sets apart: "
            "return .filled(np.nan), or rows with one more column that says what is masked"
        )


def _stack(raw: Sequence, source: str) -> np.ndarray:
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


def _hashes(raw: np.ndarray) -> np.ndarray:
    """One 64-bit number per output, from the bits of all its numbers."""
    whole = np.zeros(len(raw), dtype=np.uint64)
    for column in raw.reshape(len(raw), -1).T:
        for word in _words(column):
            whole = _mix(whole * np.uint64(0x9E3779B97F4A7C15) + word)
    return whole.view(np.int64)


def _words(column: np.ndarray) -> Iterator[np.ndarray]:
    """All bits of a column in numbers of 64: those that a NaN carries too, and those beyond a double."""
    if column.dtype.kind != "f":
        yield bits(column)
        return
    doubles = column.astype(float)
    yield np.ascontiguousarray(doubles).view(np.uint64)
    if column.dtype.itemsize > 8:
        with np.errstate(invalid="ignore"):
            yield bits((column - doubles).astype(float))


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread the bits of 64-bit numbers, one to one (the finisher of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
