"""What a sampler returns, read for an auditor: numbers, vectors, labels, trees; and what can be said of one output.

An output is seen as *features*, numbers that a threshold can cut, and as *atoms*, values that can be met again.
Floating-point numbers also have a grain, the place of their lowest bit, which gives noise on doubles away.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from numbers import Real
from typing import Any

import numpy as np

__all__ = ["Batch", "Feature", "Reader", "grain"]

PAIRWISE = 8  # up to so many columns all differences are features; beyond, those of neighbouring columns
WIDE = 64  # columns beyond which only the columns themselves, their sum, largest and smallest are features
NAN = "NaN"  # what a NaN within a label is replaced by, for NaN is unlike itself


@dataclass(frozen=True)
class Feature:
    """Something that can be said of an output.

    Attributes
    ----------
    name : str
    compute : callable
        ``compute(batch)`` gives one number per output; NaN where it says nothing.
    form : str
        How a value is written: ``{}`` for the value itself.
    atoms : bool
        Whether its values are worth looking up one by one.
    codes : bool
        Whether its numbers stand for labels, so that their order means nothing.
    """

    name: str
    compute: Callable[[Batch], np.ndarray]
    form: str = "{:.6g}"
    atoms: bool = True
    codes: bool = False


@dataclass
class Batch:
    """Outputs as they were returned, and as numbers."""

    raw: Any
    size: int
    numbers: np.ndarray  # (size, columns); NaN where an output has no number there
    whole: np.ndarray  # (size,) one integer per output: equal outputs have equal ones
    labels: dict[str, np.ndarray]  # per label column: codes
    _seen: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def values(self, feature: Feature) -> np.ndarray:
        """The feature of each output, computed once."""
        if feature.name not in self._seen:
            values = np.asarray(feature.compute(self), dtype=float)
            self._seen[feature.name] = values
        return self._seen[feature.name]

    def show(self, index: int) -> str:
        """An output, in few words."""
        item = self.item(index)
        return text if len(text := repr(item)) <= 60 else text[:57] + "..."

    def item(self, index: int) -> Hashable:
        """An output as a hashable Python object: a number, or a tuple of numbers for a row of an array."""
        item = self.raw[index]
        return _tuple(item.tolist()) if isinstance(item, np.ndarray | np.generic) else item

    def part(self, start: int, stop: int) -> Batch:
        """Some of the outputs."""
        cut = slice(start, stop)
        labels = {name: codes[cut] for name, codes in self.labels.items()}
        return Batch(self.raw[cut], stop - start, self.numbers[cut], self.whole[cut], labels)


class Reader:
    """Reads every answer of one sampler in the same way.

    Parameters
    ----------
    features : callable, optional
        ``features(outputs)`` gives an array (size,) or (size, k) of more numbers that an auditor may look at.
    """

    def __init__(self, features: Callable | None = None):
        self.extra = features
        self.shape: tuple[int, ...] | None = None  # of one output, if outputs are arrays
        self.kind: str | None = None
        self.learning = True  # once an event is chosen, outputs never seen before need no code of their own
        self._columns: list[str] = []  # of labels that are tuples: which components are numbers, which are labels
        self._codes: dict[str, dict[Hashable, int]] = {}
        self._width: int | None = None

    def __call__(self, raw, size: int, source: str) -> Batch:
        """Outputs of one call, checked; ``source`` says where they come from, for the messages."""
        if not hasattr(raw, "__len__"):
            raise ValueError(f"sample must return an array or a list; for {source} it returned {type(raw).__name__}")
        if len(raw) != size:
            raise ValueError(f"sample returned {len(raw)} outputs for {source}, where {size} were asked for")
        if not isinstance(raw, list | tuple):
            raw = np.asarray(raw)
        if isinstance(raw, np.ndarray) and raw.dtype.kind not in "biufc":
            raw = raw.tolist() if raw.ndim == 1 else [_tuple(row) for row in raw.tolist()]
        elif not isinstance(raw, np.ndarray) and size and isinstance(raw[0], np.ndarray | list):
            raw = _stack(raw, source)
        kind = "array" if isinstance(raw, np.ndarray) else "list"
        shape = raw.shape[1:] if isinstance(raw, np.ndarray) else None
        if self.kind is None:
            self.kind, self.shape = kind, shape
        if (kind, shape) != (self.kind, self.shape):
            raise ValueError(
                f"outputs differ in shape: for {source} the sampler returned {_said(kind, shape)}, elsewhere "
                f"{_said(self.kind, self.shape)}; if the shape is part of the output, return tuples"
            )
        return self._read_array(raw) if kind == "array" else self._read_list(list(raw), source)

    def _read_array(self, raw: np.ndarray) -> Batch:
        flat = raw.reshape(len(raw), -1)
        if flat.dtype.kind == "c":
            flat = np.stack([flat.real, flat.imag], axis=-1).reshape(len(raw), -1)
        whole = np.zeros(len(raw), dtype=np.uint64)
        for column in range(flat.shape[1]):
            whole = _mix(whole * np.uint64(0x9E3779B97F4A7C15) + _bits(flat[:, column]))
        return Batch(raw, len(raw), flat, whole.view(np.int64), {})

    def _read_list(self, raw: list, source: str) -> Batch:
        try:
            items = [_canonical(item) for item in raw]
            whole = self._encode("output", items)
        except TypeError as error:
            raise ValueError(
                f"outputs must be numbers, rows of an array or hashable objects such as tuples, strings or bytes; "
                f"for {source} there is an output for which Python says: {error}"
            ) from None
        if self._width is None:
            lengths = {len(item) if isinstance(item, tuple) else 0 for item in items}
            width = lengths.pop() if len(lengths) == 1 else 0
            self._width = width if width <= WIDE else 0
        columns = [items]
        if self._width:
            blank = (None,) * self._width
            fits = [isinstance(item, tuple) and len(item) == self._width for item in items]
            rows = [item if fit else blank for item, fit in zip(items, fits, strict=True)]
            columns = [list(column) for column in zip(*rows, strict=True)]
        numbers = np.stack([_numbers(column) for column in columns], axis=1)
        labels = {
            f"output[{place}]": self._encode(f"output[{place}]", column)
            for place, column in enumerate(columns if self._width else [])
        }
        return Batch(raw, len(raw), numbers, whole, labels)

    def _encode(self, name: str, items: list) -> np.ndarray:
        """One whole number per distinct label, in the order in which they were first met; -1 for unknown ones."""
        book = self._codes.setdefault(name, {})
        if self.learning:
            codes = [book.setdefault(item, len(book)) for item in items]
        else:
            codes = [book.get(item, -1) for item in items]
        return np.array(codes, dtype=np.int64)

    def join(self, parts: Sequence[Batch]) -> Batch:
        """Several batches as one."""
        if len(parts) == 1:
            return parts[0]
        raw: Any
        if self.kind == "array":
            raw = np.concatenate([part.raw for part in parts])
        else:
            raw = [item for part in parts for item in part.raw]
        labels = {name: np.concatenate([part.labels[name] for part in parts]) for name in parts[0].labels}
        numbers = np.concatenate([part.numbers for part in parts])
        return Batch(raw, len(raw), numbers, np.concatenate([part.whole for part in parts]), labels)

    def features(self, batch: Batch) -> list[Feature]:
        """All that is said of an output; ``batch`` shows which columns hold numbers at all."""
        found = []
        width = batch.numbers.shape[1]
        single = self.shape == () or (self.kind == "list" and not self._width)
        names = ["output"] if single else [f"output[{j}]" for j in range(width)]
        real = batch.numbers.dtype.kind == "f"
        known = [j for j in range(width) if not real or not np.isnan(batch.numbers[:, j]).all()]
        for j in known:
            found.append(Feature(names[j], lambda b, j=j: b.numbers[:, j], atoms=not single))
            if real and width <= WIDE:
                found.append(
                    Feature(f"lowest bit of {names[j]}", lambda b, j=j: grain(b.numbers[:, j]), "2^{:.0f}", False)
                )
        found += self._of_vectors(known, names)
        for name in batch.labels:
            found.append(Feature(f"label {name}", lambda b, name=name: b.labels[name], codes=True))
        if self.kind == "list" and not single:
            pass
        elif self.kind == "list" and any(hasattr(item, "__len__") for item in batch.raw[:1000]):
            found.append(
                Feature("length of output", lambda b: [len(o) if hasattr(o, "__len__") else -1 for o in b.raw])
            )
        return found + self._of_user(batch)

    def _of_vectors(self, known: list[int], names: list[str]) -> list[Feature]:
        """What the numbers of one output say together."""
        if len(known) < 2:
            return []
        few = len(known) <= PAIRWISE
        pairs = list(combinations(known, 2) if few else pairwise(known) if len(known) <= WIDE else [])
        found = [
            Feature(f"{names[j]} - {names[i]}", lambda b, i=i, j=j: _difference(b.numbers[:, j], b.numbers[:, i]))
            for i, j in pairs
        ]

        def rows(batch: Batch) -> np.ndarray:
            return np.nan_to_num(batch.numbers[:, known].astype(float), nan=-np.inf)

        found += [
            Feature("largest of output", lambda b: rows(b).max(axis=1)),
            Feature("smallest of output", lambda b: rows(b).min(axis=1)),
            Feature("place of the largest", lambda b: rows(b).argmax(axis=1), codes=True),
            Feature("place of the smallest", lambda b: rows(b).argmin(axis=1), codes=True),
            Feature("sum of output", lambda b: b.numbers[:, known].astype(float).sum(axis=1)),
        ]
        if len(known) <= WIDE:
            found += [
                Feature("gap below the largest", lambda b: _gap(np.sort(rows(b), axis=1)[:, -2:])),
                Feature("gap above the smallest", lambda b: _gap(np.sort(rows(b), axis=1)[:, :2])),
                Feature(
                    "different values in output", lambda b: 1 + (_steps(np.sort(rows(b), axis=1)) != 0).sum(axis=1)
                ),
            ]
        return found

    def _of_user(self, batch: Batch) -> list[Feature]:
        if self.extra is None:
            return []

        def table(b: Batch) -> np.ndarray:
            if "features" not in b._seen:
                given = np.asarray(self.extra(b.raw), dtype=float)
                if given.ndim not in (1, 2) or len(given) != b.size:
                    raise ValueError(
                        f"features must return an array of shape (size,) or (size, k), one row per output; for {b.size} "
                        f"outputs it returned shape {given.shape}"
                    )
                b._seen["features"] = given.reshape(b.size, -1)
            return b._seen["features"]

        return [Feature(f"feature[{k}]", lambda b, k=k: table(b)[:, k]) for k in range(table(batch).shape[1])]


def grain(x) -> np.ndarray:
    """Exponent of the lowest bit that is set in each number: 0 for odd integers, -1 for 0.5; 1100 for zero.

    A double near 0 can have far finer grain than one near 1, and sums are rounded: that is how the outputs of
    ``count + noise`` tell one count from another.
    """
    x = np.asarray(x, dtype=float)
    finite = np.isfinite(x)
    mantissa, exponent = np.frexp(np.where(finite, x, 0.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(float))[1] - 1
    return np.where(whole == 0, np.where(finite, 1100.0, np.nan), exponent - 53.0 + lowest)


def _numbers(items: list) -> np.ndarray:
    """Those items that are numbers, NaN for the others."""
    if all(type(item) in (float, int, bool) for item in items):
        return np.array([float(item) if abs(item) < 2**1000 else np.nan for item in items])
    return np.array([float(item) if isinstance(item, Real) and abs(item) < 2**1000 else np.nan for item in items])


def _canonical(item):
    """The item with every NaN in it replaced, so that it equals itself."""
    if isinstance(item, tuple):
        return tuple(map(_canonical, item))
    return NAN if isinstance(item, Real) and item != item else item


def _tuple(item):
    return tuple(map(_tuple, item)) if isinstance(item, list) else item


def _stack(raw, source: str) -> np.ndarray:
    shapes = {np.shape(item) for item in raw}
    if len(shapes) > 1:
        raise ValueError(
            f"outputs differ in shape: {', '.join(map(str, sorted(shapes)[:3]))} among the outputs for {source}; if the "
            f"shape is part of the output, return tuples"
        )
    stacked = np.asarray(raw)
    if stacked.dtype.kind not in "biufc":
        raise ValueError(
            f"outputs for {source} are lists of other things than numbers: return tuples, which are hashable"
        )
    return stacked


def _said(kind: str, shape) -> str:
    return "a list" if kind == "list" else "numbers" if shape == () else f"arrays of shape {shape}"


def _bits(column: np.ndarray) -> np.ndarray:
    """The numbers as bit patterns, with one pattern for NaN."""
    if column.dtype.kind in "biu":
        return column.astype(np.int64 if column.dtype.kind != "u" else np.uint64).view(np.uint64)
    column = np.where(np.isnan(column), np.nan, column).astype(float)
    return column.view(np.uint64)


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread the bits of 64-bit numbers, one to one (the finisher of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _difference(one, other) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return one.astype(float) - other.astype(float)


def _steps(ordered: np.ndarray) -> np.ndarray:
    """Differences of neighbours in each row; NaN between two infinities."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.diff(ordered, axis=1), nan=0.0)


def _gap(two: np.ndarray) -> np.ndarray:
    return _steps(two)[:, 0]
