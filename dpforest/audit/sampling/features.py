"""What can be said of one output in one number: features, for thresholds to cut and classifiers to learn from.

In addition to the numbers themselves a leak may hide in these: the differences between the outputs of one vector, which
one is the largest, and the grain of floating-point numbers, the place of their lowest bit, which gives noise on doubles
away.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from dpforest.audit.sampling.columns import WIDE, OutputLayout
from dpforest.audit.sampling.outputs import Batch, bits, shortened

__all__ = ["Feature", "features_of", "grain", "repeatable"]

PAIRWISE = 8  # up to so many columns all differences are features; beyond, those of neighbouring columns


@dataclass(frozen=True)
class Feature:
    """Something that can be said of an output.

    Attributes
    ----------
    name : str
    compute : callable
        ``compute(batch)`` gives one number per output; NaN where there is nothing to say.
    form : str
        How a value is written; if empty, with as many digits as it takes to repeat it.
    atoms : bool
        Whether single values are worth a look.
    codes : bool
        Whether its numbers are codes of labels, so that their order means nothing.
    label : callable, optional
        ``label(batch, index)``: the label of one output.
    bits : bool
        Whether it looks at the lowest bits of a double.
    """

    name: str
    compute: Callable[[Batch], np.ndarray]
    form: str = ""
    atoms: bool = True
    codes: bool = False
    label: Callable[[Batch, int], Hashable] | None = None
    bits: bool = False

    def __call__(self, batch: Batch) -> np.ndarray:
        """The feature of each output, computed once."""
        return batch.once(self.name, lambda batch: np.asarray(self.compute(batch), dtype=float))

    def keys(self, batch: Batch) -> np.ndarray:
        """A whole number per output: equal features have equal ones, NaN among them."""
        return bits(self(batch)).view(np.int64)

    def words(self, batch: Batch, index: int) -> str:
        """The feature of one output, as it is written: to the last place, or the label."""
        return shortened(repr(self.label(batch, index)), 60) if self.label else repeatable(self(batch)[index])


def features_of(batches: tuple[Batch, Batch], extra: Callable | None = None, bits: bool = True) -> list[Feature]:
    """All features of outputs like these.

    Parameters
    ----------
    batches : tuple of two Batches
        They show which columns hold numbers at all.
    extra : callable, optional
        The user's own: ``extra(outputs)`` gives an array (size,) or (size, k), of each output by itself.
    bits : bool
        Whether the lowest bits of doubles are among them.
    """
    table = OutputLayout(batches)
    seen = [table.numbers(batch) for batch in batches]
    real = seen[0].dtype.kind == "f"
    blank, gaps = (np.array([which(np.isnan(numbers), axis=0) for numbers in seen]) for which in (np.all, np.any))
    columns = np.flatnonzero(~blank.all(axis=0)).tolist()
    found = []
    for j in columns:
        name = table.names[j]
        found.append(Feature(name, _on(table.numbers, _column, j), atoms=name != "output"))  # an atom as a whole
        if bits and real and len(columns) <= WIDE and not name.startswith("byte"):
            lowest = _on(table.numbers, lambda numbers, j: grain(numbers[:, j]), j)
            found.append(Feature(f"lowest bit of {name}", lowest, "2^{:.0f}", atoms=False, bits=True))
    found += _of_vectors(table, columns)
    numeric = {table.names[j] for j in np.flatnonzero(~gaps.any(axis=0)).tolist()}
    for name in table.labels:
        if name not in numeric:
            codes, label = partial(table.codes, label=name), partial(table.label, label=name)
            found.append(Feature(f"label {name}", codes, codes=True, label=label))
    if isinstance(batches[0].raw, list):
        found.append(Feature("label output", lambda batch: batch.whole, atoms=False, codes=True))
        if len({_length(item) for batch in batches for item in batch.items}) > 1:
            found.append(Feature("length of output", _lengths))
    if extra is not None:
        given = partial(_given, extra=extra)
        found += [Feature(f"feature[{j}]", _on(given, _column, j)) for j in range(given(batches[0]).shape[1])]
    return found


def _on(table: Callable[[Batch], np.ndarray], compute: Callable[..., np.ndarray], *at) -> Callable:
    """What is computed from a table of numbers of each batch, at the given columns."""
    return lambda batch: compute(table(batch), *at)


def _of_vectors(table: OutputLayout, columns: list[int]) -> Iterator[Feature]:
    """What the numbers of one output say together."""
    if len(columns) < 2:
        return
    pairs = combinations(columns, 2) if len(columns) <= PAIRWISE else pairwise(columns)
    for i, j in pairs if len(columns) <= WIDE else ():
        yield Feature(f"{table.names[j]} - {table.names[i]}", _on(table.numbers, _difference, i, j))

    def rows(batch: Batch) -> np.ndarray:
        return np.nan_to_num(table.numbers(batch)[:, columns].astype(float), nan=-np.inf, posinf=np.inf, neginf=-np.inf)

    def gaps(batch: Batch) -> np.ndarray:
        """Differences of neighbours in the sorted numbers of each output; 0 between equal infinities."""
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.diff(np.sort(rows(batch), axis=1), axis=1), nan=0.0, posinf=np.inf)

    yield Feature("largest of output", lambda batch: rows(batch).max(axis=1))
    yield Feature("smallest of output", lambda batch: rows(batch).min(axis=1))
    yield Feature("place of the largest", lambda batch: rows(batch).argmax(axis=1), codes=True)
    yield Feature("place of the smallest", lambda batch: rows(batch).argmin(axis=1), codes=True)
    yield Feature("sum of output", _on(table.numbers, _sum, columns))
    if len(columns) <= WIDE:
        yield Feature("gap below the largest", lambda batch: gaps(batch)[:, -1])
        yield Feature("gap above the smallest", lambda batch: gaps(batch)[:, 0])
        yield Feature("different values in output", lambda batch: 1 + np.count_nonzero(gaps(batch), axis=1))


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


def repeatable(value: float) -> str:
    """A number with as many digits as it takes to read the same one back, and at least six if it has as many."""
    return next(text for digits in range(6, 18) if float(text := f"{value:.{digits}g}") == value or value != value)


def _column(numbers: np.ndarray, j: int) -> np.ndarray:
    return numbers[:, j]


@np.errstate(invalid="ignore")  # infinity less infinity is NaN, and meant
def _difference(numbers: np.ndarray, i: int, j: int) -> np.ndarray:
    return numbers[:, j].astype(float) - numbers[:, i].astype(float)


@np.errstate(invalid="ignore")
def _sum(numbers: np.ndarray, columns: list[int]) -> np.ndarray:
    return numbers[:, columns].sum(axis=1, dtype=float)


def _lengths(batch: Batch) -> np.ndarray:
    return np.array([_length(item) for item in batch.items])[batch.place]


def _length(item: Hashable) -> int:
    return len(item) if isinstance(item, tuple | str | bytes) else -1


def _given(batch: Batch, extra: Callable) -> np.ndarray:
    """The user's features of a batch, each a function of one output: else the draws of an event are not independent."""

    def asked(raw: np.ndarray | list) -> np.ndarray:
        given = np.asarray(extra(raw), dtype=float)
        if given.ndim not in (1, 2) or len(given) != len(raw):
            raise ValueError(
                "features must return an array of shape (size,) or (size, k), one row per output; "
                f"for {len(raw)} outputs it returned shape {given.shape}"
            )
        return given.reshape(len(raw), -1)

    def checked(batch: Batch) -> np.ndarray:
        given, half = asked(batch.raw), batch.size // 2
        # a mean, a rank or a share of the whole batch is another one of half of it; last bits may differ by the batch
        if half and not np.allclose(asked(batch.raw[:half]), given[:half], rtol=1e-6, atol=1e-12, equal_nan=True):
            raise ValueError(
                "features must say of each output what that output alone decides, or draws are not independent: of "
                f"the first {half} of {batch.size} outputs it says something else where the others are not there"
            )
        return given

    return batch.once("features", checked)
