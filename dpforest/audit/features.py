"""What can be said of one output in one number: features, for thresholds to cut and classifiers to learn from.

Beside the numbers themselves these are what a leak may hide in: the differences between the outputs of one vector,
which one is the largest, and the grain of floating-point numbers, the place of their lowest bit, which gives noise
on doubles away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from dpforest.audit.outputs import WIDE, Batch

__all__ = ["Feature", "features_of", "grain"]

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
        How a value is written.
    atoms : bool
        Whether single values are worth a look.
    codes : bool
        Whether its numbers stand for labels, so that their order means nothing.
    """

    name: str
    compute: Callable[[Batch], np.ndarray]
    form: str = "{:.6g}"
    atoms: bool = True
    codes: bool = False

    def __call__(self, batch: Batch) -> np.ndarray:
        """The feature of each output, computed once."""
        if self.name not in batch.known:
            batch.known[self.name] = np.asarray(self.compute(batch), dtype=float)
        return batch.known[self.name]


def features_of(batches: tuple[Batch, Batch], extra: Callable | None = None) -> list[Feature]:
    """All features of outputs like these.

    Parameters
    ----------
    batches : tuple of two Batches
        They show which columns hold numbers at all.
    extra : callable, optional
        The user's own: ``extra(outputs)`` gives an array (size,) or (size, k).
    """
    batch = batches[0]
    real = batch.numbers.dtype.kind == "f"
    blank = np.array([np.isnan(each.numbers).all(axis=0) for each in batches]).all(axis=0)
    columns = np.flatnonzero(~blank).tolist()
    found = []
    for j in columns:
        name = batch.names[j]
        found.append(Feature(name, partial(_column, j=j), atoms=name != "output"))  # "output" is an atom as a whole
        if real and len(columns) <= WIDE and not name.startswith("byte"):
            found.append(Feature(f"lowest bit of {name}", partial(_grain, j=j), "2^{:.0f}", atoms=False))
    found += _of_vectors(columns, batch.names)
    numeric = {batch.names[j] for j in columns if not any(np.isnan(each.numbers[:, j]).any() for each in batches)}
    found += [Feature(f"label {x}", partial(_label, name=x), codes=True) for x in batch.labels if x not in numeric]
    if isinstance(batch.raw, list):
        found.append(Feature("label output", lambda batch: batch.whole, atoms=False, codes=True))
        if len({_length(item) for each in batches for item in each.raw}) > 1:
            found.append(Feature("length of output", lambda batch: np.array([_length(item) for item in batch.raw])))
    if extra is not None:
        k = _table(batch, extra).shape[1]
        found += [Feature(f"feature[{j}]", partial(_given, extra=extra, j=j)) for j in range(k)]
    return found


def _of_vectors(columns: list[int], names: list[str]) -> Iterator[Feature]:
    """What the numbers of one output say together."""
    if len(columns) < 2:
        return
    pairs = combinations(columns, 2) if len(columns) <= PAIRWISE else pairwise(columns)
    for i, j in pairs if len(columns) <= WIDE else ():
        yield Feature(f"{names[j]} - {names[i]}", partial(_difference, i=i, j=j))
    every = columns if len(columns) < len(names) else slice(None)
    yield Feature("largest of output", lambda batch: _rows(batch, every).max(axis=1))
    yield Feature("smallest of output", lambda batch: _rows(batch, every).min(axis=1))
    yield Feature("place of the largest", lambda batch: _rows(batch, every).argmax(axis=1), codes=True)
    yield Feature("place of the smallest", lambda batch: _rows(batch, every).argmin(axis=1), codes=True)
    yield Feature("sum of output", partial(_sum, columns=every))
    if len(columns) <= WIDE:
        yield Feature("gap below the largest", lambda batch: _gaps(batch, every)[:, -1])
        yield Feature("gap above the smallest", lambda batch: _gaps(batch, every)[:, 0])
        yield Feature("different values in output", lambda batch: 1 + np.count_nonzero(_gaps(batch, every), axis=1))


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


def _column(batch: Batch, j: int) -> np.ndarray:
    return batch.numbers[:, j]


def _grain(batch: Batch, j: int) -> np.ndarray:
    return grain(batch.numbers[:, j])


def _label(batch: Batch, name: str) -> np.ndarray:
    return batch.labels[name]


def _length(item) -> int:
    return len(item) if isinstance(item, tuple | str | bytes) else -1


def _difference(batch: Batch, i: int, j: int) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # infinity less infinity is NaN, and meant
        return batch.numbers[:, j].astype(float) - batch.numbers[:, i].astype(float)


def _sum(batch: Batch, columns) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return batch.numbers[:, columns].sum(axis=1, dtype=float)


def _rows(batch: Batch, columns) -> np.ndarray:
    return np.nan_to_num(batch.numbers[:, columns].astype(float), nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def _gaps(batch: Batch, columns) -> np.ndarray:
    """Differences of neighbours in the sorted numbers of each output; 0 between equal infinities."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.diff(np.sort(_rows(batch, columns), axis=1), axis=1), nan=0.0, posinf=np.inf)


def _given(batch: Batch, extra: Callable, j: int) -> np.ndarray:
    return _table(batch, extra)[:, j]


def _table(batch: Batch, extra: Callable) -> np.ndarray:
    """The user's features of a batch."""
    if "features" not in batch.known:
        given = np.asarray(extra(batch.raw), dtype=float)
        if given.ndim not in (1, 2) or len(given) != batch.size:
            raise ValueError(
                "features must return an array of shape (size,) or (size, k), one row per output; "
                f"for {batch.size} outputs it returned shape {given.shape}"
            )
        batch.known["features"] = given.reshape(batch.size, -1)
    return batch.known["features"]
