"""Outputs laid out in columns of numbers and columns of labels.

An array has its own columns.  A list of tuples has one for each component, if most tuples are of one length; a
component of bytes, such as the content of an array, has one for each byte.  An output that does not fit the layout
holds NaN there, and the label None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from numbers import Real

import numpy as np

from dpforest.audit.sampling.outputs import Batch

__all__ = ["WIDE", "OutputLayout"]

WIDE = 64  # components of a tuple, or bytes of a string of bytes, that become columns


class OutputLayout:
    """The layout of outputs like those of two batches.

    Attributes
    ----------
    names : list of str
        Of the columns of numbers.
    labels : list of str
        Of the columns of labels.
    """

    def __init__(self, batches: tuple[Batch, Batch]):
        self.names: list[str] = []
        self._books: dict[str, dict[Hashable, int]] = {}
        self._lengths: list[tuple[str, int]] = []  # columns of a list, and how many bytes each is of; 0 if it is not
        raw = batches[0].raw
        if isinstance(raw, np.ndarray):
            self.names = _places(raw.shape[1:]) if raw.ndim > 1 else ["output"]
            return
        items = [item for batch in batches for item in batch.items]
        self._width = _usual(len(item) if isinstance(item, tuple) else 0 for item in items)
        for name, column in self._split(items).items():
            length = _usual(len(part) if isinstance(part, bytes) else 0 for part in column)
            self._lengths.append((name, length))
            self.names += [f"byte {k} of {name}" for k in range(length)] if length else [name]
            if self._width:
                self._books[name] = {part: code for code, part in enumerate(dict.fromkeys(column))}

    @property
    def labels(self) -> list[str]:
        return list(self._books)

    def numbers(self, batch: Batch) -> np.ndarray:
        """The columns of numbers, (size, columns); NaN where an output has none."""
        if isinstance(batch.raw, np.ndarray):
            return batch.raw.reshape(batch.size, -1)
        return batch.once("numbers", self._numbers)

    def codes(self, batch: Batch, label: str) -> np.ndarray:
        """A column of labels: one whole number per label, -1 for those that were not met when it was laid out."""
        book = self._books[label]
        return np.array([book.get(part, -1) for part in self._parts(batch)[label]], dtype=np.int64)[batch.place]

    def label(self, batch: Batch, index: int, label: str) -> Hashable:
        """One output's entry in a column of labels."""
        return self._parts(batch)[label][batch.place[index]]

    def _numbers(self, batch: Batch) -> np.ndarray:
        parts = self._parts(batch)
        columns = [_bytes(parts[name], length) if length else _numbers(parts[name]) for name, length in self._lengths]
        return np.concatenate(columns, axis=1)[batch.place]

    def _parts(self, batch: Batch) -> dict[str, list]:
        return batch.once("parts", lambda batch: self._split(batch.items))

    def _split(self, items: list) -> dict[str, list]:
        if not self._width:
            return {"output": items}
        blank = (None,) * self._width
        rows = [item if isinstance(item, tuple) and len(item) == self._width else blank for item in items]
        return {f"output[{j}]": [row[j] for row in rows] for j in range(self._width)}


def _places(shape: tuple[int, ...]) -> list[str]:
    return [f"output[{', '.join(map(str, place))}]" for place in np.ndindex(*shape)]


def _usual(lengths: Iterable[int]) -> int:
    """The most frequent length, if it is of use."""
    length = Counter(lengths).most_common(1)[0][0]
    return length if length <= WIDE else 0


def _bytes(column: list, length: int) -> np.ndarray:
    """Strings of bytes as rows of numbers, NaN for what is not a string of that length."""
    fits = np.array([isinstance(part, bytes) and len(part) == length for part in column])
    rows = np.full((len(column), length), np.nan)
    joined = b"".join(part for part, fit in zip(column, fits.tolist(), strict=True) if fit)
    rows[fits] = np.frombuffer(joined, dtype=np.uint8).reshape(-1, length)
    return rows


def _numbers(column: list) -> np.ndarray:
    """One column: those parts that are numbers, NaN for the others."""
    return np.array([_number(part) for part in column], dtype=float)[:, None]


def _number(part) -> float:
    try:
        return float(part) if isinstance(part, Real) else np.nan
    except OverflowError:  # a whole number beyond the largest double is a label
        return np.nan
