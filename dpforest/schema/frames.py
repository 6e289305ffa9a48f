"""The columns of a table and their names, whatever library made it.

pandas' own frames are read directly; frames of other libraries (polars, pyarrow, Modin and others) through narwhals.
All else is an array, or rows written as lists, and has no names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpforest.messages import listed, shown

__all__ = ["Columns", "check_names", "columns_of", "one_column"]

_NUMBERS = {*(f"{kind}{size}" for kind in ("Int", "UInt") for size in (8, 16, 32, 64)), "Float32", "Float64"}

_KINDS = dict.fromkeys("iuf", "numeric") | dict.fromkeys("bOUT", "categorical")  # of a dtype of pandas
_TEXTS = {"String", "Categorical", "Enum", "Boolean", "Object"}  # of narwhals, without their categories


class Columns:
    """A table in memory, column by column.

    Parameters
    ----------
    names : sequence or None
        As the library has them; None for an array.
    table : object
        A frame of pandas or of narwhals, or an array of two dimensions.
    """

    def __init__(self, names: Sequence | None, table: Any):
        self.names = None if names is None else list(names)
        self._table = table
        self.shape = tuple(table.shape)

    def __getitem__(self, place: int) -> Any:
        """A column, as an array, or as a pandas Series where pandas has it so."""
        if self.names is None:
            return self._table[:, place]
        return self._table.iloc[:, place] if _is_pandas(self._table) else _array(self._table[:, place])

    def kinds(self) -> list[str]:
        """``"numeric"``, ``"categorical"`` or nothing for each column of a frame, by its type alone."""
        if _is_pandas(self._table):
            return [_KINDS.get(dtype.kind, "") for dtype in self._table.dtypes]
        types = self._table.schema.values()
        return [
            "numeric" if each.is_numeric() else "categorical" if str(each).split("(")[0] in _TEXTS else ""
            for each in types
        ]

    def pick(self, wanted: Iterable[str]) -> list:
        """The columns of these names, in this order; others are not looked at.

        Raises
        ------
        ValueError
            Where one is missing, or there twice.
        """
        names = list(map(str, self.names or ()))
        check_names(wanted, names, "X")
        return [self[names.index(name)] for name in wanted]


def columns_of(X: Any) -> Columns:
    """The columns of any table that lies in memory.

    Raises
    ------
    TypeError
        Sparse or masked data, or a table whose rows are not computed yet.
    ValueError
        What has no columns.
    """
    X = X if isinstance(X, Columns) else _opened(X, "X")
    if isinstance(X, Columns):
        return X
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array of shape {X.shape} instead. Reshape your data: "
            "one row per record, one column per feature of the schema"
        )
    return Columns(None, X)


def one_column(y: Any, name: str) -> Any:
    """One column by itself, as an array, or as a pandas Series where pandas has it so; a table of one column is it.

    Raises
    ------
    TypeError
        Sparse or masked data, or a table whose rows are not computed yet.
    ValueError
        Any other shape.
    """
    y = _opened(y, name, alone=True)
    if len(y.shape) == 2 and y.shape[1] == 1:
        y = y[0] if isinstance(y, Columns) else y[:, 0]
    if len(y.shape) != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {y.shape}")
    return y


def check_names(wanted: Iterable[str], there: Iterable[str], where: str, error: type[ValueError] = ValueError) -> None:
    """Raise unless all columns are there, each once; others may be there too."""
    there = list(there)
    absent = [name for name in wanted if name not in there]
    if absent:
        raise error(f"{where} has no column {', '.join(map(shown, absent))}; it has {listed(there)}")
    twice = [name for name in wanted if there.count(name) > 1]
    if twice:
        raise error(f"{where} has more than one column {', '.join(map(shown, twice))}")


def _opened(X: Any, name: str, alone: bool = False) -> Any:
    """The columns of a frame; ``alone``, a pandas Series or an array; else an array."""
    if _is_pandas(X):
        if hasattr(X, "columns"):
            return Columns(X.columns, X)
        if alone:
            return X if hasattr(X, "iloc") else sys.modules["pandas"].Series(X, copy=False)
    elif not isinstance(X, (np.ndarray, list, tuple)):
        import narwhals

        found = narwhals.from_native(X, pass_through=True, allow_series=alone or None)
        if isinstance(found, narwhals.LazyFrame):
            raise TypeError(f"the rows of a lazy frame are not computed yet: pass {name}.collect()")
        if isinstance(found, narwhals.DataFrame):
            return Columns(found.columns, found)
        if isinstance(found, narwhals.Series):
            return _array(found)
    if hasattr(X, "sparse") or type(X).__module__.startswith("scipy.sparse"):
        raise TypeError(f"Sparse data was passed, but dense data is required: use {name}.toarray()")
    rows = X if isinstance(X, (list, tuple)) else ()
    if isinstance(X, np.ma.MaskedArray) or any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise TypeError(
            f"masked arrays hide values that are still there: leave these records out, or pass {name}.filled(np.nan)"
        )
    # what is written as lists may mix numbers and text, which an array of one type would all turn into text
    return np.asarray(X) if hasattr(X, "__array__") else np.array(X, dtype=object)


def _array(series: Any) -> np.ndarray:
    """A column of narwhals: numbers as such, all else as objects."""
    if str(series.dtype) in _NUMBERS:
        return series.to_numpy()
    cells = np.empty(len(series), dtype=object)
    cells[:] = series.to_list()  # to_numpy puts another value in the place of a missing one of pyarrow's dictionaries
    return cells


def _is_pandas(X: Any) -> bool:
    """Whether pandas made it: a frame, a series, an index or one of its arrays."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return False
    return isinstance(X, (pandas.DataFrame, pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray))
