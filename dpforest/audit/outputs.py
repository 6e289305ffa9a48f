"""What a sampler returns, read for an auditor: numbers, vectors, labels, trees.

Outputs are an array, of numbers or of equal shapes, or a list of hashable objects.  Either way a batch of them holds
columns of numbers, columns of labels, and one code per output that equal outputs share.  Nothing is dropped: NaN is
a value like others, and a label that appears for the first time in a million draws gets its code.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

__all__ = ["WIDE", "Batch", "Reader", "canonical"]

WIDE = 64  # components of a tuple, or bytes of a string of bytes, that become columns


class _NotANumber:
    """What a NaN is replaced by in a label, for NaN is unlike itself."""

    def __repr__(self) -> str:
        return "nan"


NAN = _NotANumber()


@dataclass
class Batch:
    """Outputs as they were returned, and as columns.

    Attributes
    ----------
    raw : ndarray or list, of length ``size``
    names : list of str
        Of the columns of ``numbers``.
    numbers : ndarray, shape (size, columns)
        NaN where an output has no number in that place.
    whole : ndarray of int64, shape (size,)
        Equal outputs have equal ones.
    labels : dict of str to ndarray of int64
        Codes per column of labels; -1 for a label that was not met while its codes were learned.
    """

    raw: Any
    size: int
    names: list[str]
    numbers: np.ndarray
    whole: np.ndarray
    labels: dict[str, np.ndarray]
    known: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # features that were computed

    def item(self, index: int) -> Hashable:
        """An output as a hashable Python object: a number, or a tuple of numbers for a row of an array."""
        item = self.raw[index]
        return _tuples(item.tolist()) if isinstance(item, np.ndarray | np.generic) else canonical(item)

    def part(self, start: int, stop: int) -> Batch:
        """Some of the outputs."""
        cut = slice(start, stop)
        labels = {name: codes[cut] for name, codes in self.labels.items()}
        return Batch(self.raw[cut], stop - start, self.names, self.numbers[cut], self.whole[cut], labels)


class Reader:
    """Reads every answer of one sampler in the same way, and refuses what it cannot read.

    ``learning`` is turned off when the event is chosen: labels met later than that need no codes of their own.
    """

    def __init__(self) -> None:
        self.learning = True
        self._form: str | None = None  # "numbers", "arrays of shape ..." or "a list"
        self._codes: dict[str, dict[Hashable, int]] = {}
        self._layout: list[tuple[str, int | None]] | None = None  # columns of a list: name, and length if bytes

    def __call__(self, raw, size: int, source: str) -> Batch:
        """The ``size`` outputs of one call; ``source`` says where they come from, for the messages."""
        if isinstance(raw, str | bytes | Mapping | set | frozenset) or not hasattr(raw, "__len__"):
            raise ValueError(f"sample must return an array or a list; for {source} it returned {type(raw).__name__}")
        if not isinstance(raw, list | tuple):
            raw = np.asarray(raw)
        if len(raw) != size:
            raise ValueError(f"sample returned {len(raw)} outputs for {source}, where {size} were asked for")
        if isinstance(raw, np.ndarray) and raw.dtype.kind not in "biufc":
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
        return _read_array(raw) if isinstance(raw, np.ndarray) else self._read_list(list(raw), source)

    def join(self, parts: Sequence[Batch]) -> Batch:
        """Several batches as one."""
        if len(parts) == 1:
            return parts[0]
        raw: Any = [item for part in parts for item in part.raw]
        if self._form != "a list":
            raw = np.concatenate([part.raw for part in parts])
        labels = {name: np.concatenate([part.labels[name] for part in parts]) for name in parts[0].labels}
        numbers, whole = (np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "whole"))
        return Batch(raw, len(raw), parts[0].names, numbers, whole, labels)

    def _read_list(self, raw: list, source: str) -> Batch:
        met: dict[Hashable, int] = {}
        try:
            place = np.array([met.setdefault(item, len(met)) for item in raw], dtype=np.int64)
        except TypeError as error:
            raise ValueError(
                "outputs must be numbers, rows of an array or hashable objects such as tuples, strings or bytes; "
                f"for {source} there is one of which Python says: {error}"
            ) from None
        items = [canonical(item) for item in met]  # each output is read once, however often it was returned
        if self._layout is None:
            self._layout = _layout(items)
        names, numbers, labels = [], [], {}
        for j, (name, length) in enumerate(self._layout):
            column = items if name == "output" else [_component(item, j, len(self._layout)) for item in items]
            if length is None:
                names.append(name)
                numbers.append(_numbers(column)[:, None])
            else:
                names += [f"byte {k} of {name}" for k in range(length)]
                numbers.append(_bytes(column, length))
            if name != "output":
                labels[name] = self._encode(name, column)[place]
        whole = self._encode("output", items)[place]
        return Batch(raw, len(raw), names, np.concatenate(numbers, axis=1)[place], whole, labels)

    def _encode(self, name: str, items: list) -> np.ndarray:
        """One whole number per distinct label, in the order in which they were first met."""
        book = self._codes.setdefault(name, {})
        if self.learning:
            return np.array([book.setdefault(item, len(book)) for item in items], dtype=np.int64)
        return np.array([book.get(item, -1) for item in items], dtype=np.int64)


def _read_array(raw: np.ndarray) -> Batch:
    numbers = raw.reshape(len(raw), -1)
    names = [f"output[{j}]" for j in range(numbers.shape[1])] if raw.ndim > 1 else ["output"]
    if raw.dtype.kind == "c":
        numbers = np.stack([numbers.real, numbers.imag], axis=-1).reshape(len(raw), -1)
        names = [f"{part} of {name}" for name in names for part in ("real part", "imaginary part")]
    whole = np.zeros(len(raw), dtype=np.uint64)
    for column in numbers.T:
        whole = _mix(whole * np.uint64(0x9E3779B97F4A7C15) + _bits(column))
    return Batch(raw, len(raw), names, numbers, whole.view(np.int64), {})


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
    if stacked.dtype.kind not in "biufc":
        raise ValueError(
            f"outputs for {source} are lists that hold more than numbers: return tuples, which are hashable"
        )
    return stacked


def _layout(items: list) -> list[tuple[str, int | None]]:
    """The columns of a list of outputs: components of tuples of one length, the bytes of strings of one length."""
    width = _common(len(item) if isinstance(item, tuple) else None for item in items)
    if not width or width > WIDE:
        return [("output", _common(len(item) if isinstance(item, bytes) else None for item in items))]
    columns = enumerate(zip(*items, strict=True))
    lengths = [(j, _common(len(x) if isinstance(x, bytes) else None for x in column)) for j, column in columns]
    fits = sum(length or 1 for _, length in lengths) <= WIDE
    return [(f"output[{j}]", length if fits else None) for j, length in lengths]


def _common(lengths) -> int | None:
    """The one length that all have, if there is one, and it is not beyond all use."""
    found = set(lengths)
    length = found.pop() if len(found) == 1 else None
    return length if length is not None and length <= WIDE else None


def _component(item, place: int, width: int):
    return item[place] if isinstance(item, tuple) and len(item) == width else None


def _bytes(column: list, length: int) -> np.ndarray:
    """Strings of bytes as rows of numbers, NaN for those of another length."""
    fits = np.array([isinstance(item, bytes) and len(item) == length for item in column])
    rows = np.full((len(column), length), np.nan)
    joined = b"".join(item for item, fit in zip(column, fits.tolist(), strict=True) if fit)
    rows[fits] = np.frombuffer(joined, dtype=np.uint8).reshape(-1, length)
    return rows


def _numbers(column: list) -> np.ndarray:
    """Those items that are numbers, NaN for the others."""
    try:
        if all(type(item) in (float, int, bool) for item in column):
            return np.array(column, dtype=float)
        return np.array([float(item) if isinstance(item, Real) else np.nan for item in column])
    except OverflowError:  # whole numbers beyond the largest double: labels
        return np.full(len(column), np.nan)


def canonical(item):
    """The item with every NaN in it replaced, so that it equals itself."""
    if isinstance(item, tuple):
        return tuple(map(canonical, item))
    return NAN if isinstance(item, float | np.floating) and item != item else item


def _tuples(item):
    return tuple(map(_tuples, item)) if isinstance(item, list) else canonical(item)
