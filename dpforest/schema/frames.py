"""The columns of a table and their names, whatever library made it.

pandas' own frames are read directly; frames of other libraries (polars, pyarrow, Modin and others) through narwhals;
what else gives an Arrow stream or array, through pyarrow.  A mapping of columns, a list of records with names and a
structured array are tables, too, and need NumPy alone.  All else is an array, or rows written as lists, and has no
names.  Names are never dropped: what has names and is none of these is refused.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np

from dpforest.messages import check_names, shown

__all__ = ["Columns", "columns_of", "one_column"]

_NUMBERS = {*(f"{kind}{size}" for kind in ("Int", "UInt") for size in (8, 16, 32, 64)), "Float32", "Float64"}

_KINDS = dict.fromkeys("iuf", "numeric") | dict.fromkeys("bOUT", "categorical")  # of a dtype of NumPy
_TEXTS = {"String", "Categorical", "Enum", "Boolean", "Object"}  # of narwhals, without their categories


class Columns:
    """A table in memory, column by column.

    Parameters
    ----------
    names : sequence or None
        As the library has them; None for an array.
    table : object
        A frame of pandas or of narwhals, an array of two dimensions, or :class:`_ColumnMapping`.
    """

    def __init__(self, names: Sequence | None, table: Any):
        self.names = None if names is None else list(names)
        self._table = table
        self.shape = tuple(table.shape)

    @property
    def by_records(self) -> bool:
        """Whether each record has names of its own, so that which there are is read from the records."""
        return isinstance(self._table, _RecordList)

    def __getitem__(self, place: int) -> Any:
        """A column, as an array, or as a pandas Series where pandas has it so."""
        if self.names is None:
            return self._table[:, place]
        if isinstance(self._table, _ColumnMapping):
            return self._table.column(place)
        return self._table.iloc[:, place] if _is_pandas(self._table) else _array(self._table[:, place])

    def kinds(self) -> list[str]:
        """``"numeric"``, ``"categorical"`` or nothing for each column of a frame, by its type alone."""
        if isinstance(self._table, _ColumnMapping):
            raise TypeError("columns and records without a frame have no types: draft a schema from a frame")
        if _is_pandas(self._table):
            return [_kind_of_pandas(dtype) for dtype in self._table.dtypes]
        return [*map(_kind, self._table.schema.values())]

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
    if isinstance(X, (str, PathLike)):
        raise ValueError(
            f"Expected 2D array, got a text or a path instead, {shown(str(X))}: this needs a table in memory, so read "
            "the file before"
        )
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


def _opened(X: Any, name: str, alone: bool = False) -> Any:
    """The columns of what has names; ``alone``, a pandas Series or an array; else an array."""
    if _is_pandas(X):
        if hasattr(X, "columns"):
            return Columns(X.columns, X)
        if alone:
            return X if hasattr(X, "iloc") else sys.modules["pandas"].Series(X, copy=False)
        if hasattr(X, "to_frame"):
            raise ValueError(
                f"Expected 2D array, got 1D array instead, a {type(X).__name__}. Reshape your data: if it is one row, "
                f"pass {name}.to_frame().T; if it is one column, {name}.to_frame()"
            )
    if hasattr(X, "sparse") or type(X).__module__.startswith("scipy.sparse"):
        raise TypeError(f"Sparse data was passed, but dense data is required: use {name}.toarray()")
    rows = X if isinstance(X, Sequence) and not isinstance(X, (str, bytes)) and not hasattr(X, "__array__") else ()
    kinds = {*map(type, rows)}
    if isinstance(X, np.ma.MaskedArray) or any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        raise TypeError(
            f"masked arrays hide values that are still there: leave these records out, or pass {name}.filled(np.nan)"
        )
    found = _with_names(X, name, rows, kinds, alone)
    if found is not None:
        return found
    # what is written as lists may mix numbers and text, which an array of one type would all turn into text
    return np.asarray(X) if hasattr(X, "__array__") else np.array([*rows] or X, dtype=object)


# -- what has names --------------------------------------------------------------------------------------------------

#: Where objects keep the names of their columns.
_NAMES = ("columns", "column_names", "colnames", "names", "schema", "coords", "__dataframe__", "_fields")


def _with_names(X: Any, name: str, rows: Sequence, kinds: set[type], alone: bool) -> Any:
    """The columns of what has names, and, ``alone``, what another library has as a column; None of an array.

    Raises
    ------
    TypeError
        What has names that are not understood here: by their order its columns might be mistaken for each other.
    """
    if isinstance(X, Mapping):
        return Columns([*X], _ColumnMapping([*X], [*X.values()], name))
    if (names := getattr(getattr(X, "dtype", None), "names", None)) and hasattr(X, "__array__"):  # of structures
        return Columns(names, _ColumnMapping([*names], [np.asarray(X)[each] for each in names], name))
    if type(X) in (np.ndarray, list, tuple) or isinstance(X, (np.ndarray, Sequence)):
        found = None
    else:
        found = _of_library(X, name, alone)
    if found is None and type(X) not in (np.ndarray, list, tuple):
        _refuse_names(X, name)
    records = any(map(_is_record, kinds)) or (np.void in kinds and any(each.dtype.names for each in rows))
    return _of_records(rows, name, alone) if records else found


#: Replaces the cells of a record under a name that it has more than once.
_TWICE = object()


def _is_record(kind: type) -> bool:
    """Whether objects of this type are rows that have names."""
    return issubclass(kind, Mapping) or any(hasattr(kind, each) for each in ("_fields", "asDict", "keys", "columns"))


def _of_records(rows: Sequence, name: str, alone: bool) -> Any:
    """A list of records, each with names of its own."""
    records = []
    for row in rows:
        if isinstance(row, Mapping):
            pairs: Any = row.items()
        elif hasattr(row, "_fields"):  # a named tuple
            pairs = zip(row._fields, row, strict=True)
        elif isinstance(row, np.void) and row.dtype.names:
            pairs = ((each, row[each]) for each in row.dtype.names)
        elif hasattr(row, "asDict"):  # of Spark
            pairs = row.asDict().items()
        elif hasattr(row, "keys") and not hasattr(row, "columns"):  # a Series of pandas, a row of a data base
            pairs = zip(row.keys(), tuple(row), strict=True)
        elif alone:
            return None
        else:
            raise TypeError(
                f"some rows of {name} have names, and others, such as a {type(row).__name__}, have none that are "
                "understood here: pass all of them as mappings, such as {'age': 70}, or all as lists"
            )
        record: dict[str, Any] = {}
        for key, cell in pairs:
            record[str(key)] = _TWICE if str(key) in record else cell
        records.append(record)
    names = [*dict.fromkeys(chain.from_iterable(records))]
    return Columns(names, _RecordList(names, records, name))


class _ColumnMapping:
    """A table as its columns, each as it was given; a column is looked at when it is asked for."""

    def __init__(self, names: list, columns: list, where: str):
        self._names, self._columns, self._where = names, columns, where
        if any(isinstance(each, (str, bytes)) or not hasattr(each, "__len__") for each in columns):
            raise ValueError(
                f"{where} is a mapping whose values are no columns: pass one record as a list of one, [{where}], and "
                "a table as a mapping of columns, such as {'age': [70, 31]}"
            )
        sizes = sorted({*map(len, columns)}) or [0]
        if len(sizes) > 1:
            raise ValueError(f"the columns of {where} have from {sizes[0]} to {sizes[-1]} rows: inconsistent numbers")
        self.shape = (sizes[0], len(columns))

    def column(self, place: int) -> Any:
        return one_column(self._columns[place], f"column {str(self._names[place])!r} of {self._where}")


class _RecordList(_ColumnMapping):
    """A table as its records, each of which has the columns that are asked for."""

    def __init__(self, names: list[str], records: list[dict[str, Any]], where: str):
        self._names, self._records, self._where = names, records, where
        self.shape = (len(records), len(names))

    def column(self, place: int) -> np.ndarray:
        found, name = np.empty(len(self._records), dtype=object), self._names[place]
        column = reprlib.repr(name)
        for number, record in enumerate(self._records):
            if name not in record:  # by another one's names it might be a typing error
                raise ValueError(f"record {number} of {self._where} has no {column}: write None where nothing is known")
            if record[name] is _TWICE:
                raise ValueError(f"record {number} of {self._where} has {column} more than once")
            found[number] = record[name]
        return found


def _of_library(X: Any, name: str, alone: bool) -> Any:
    """The columns of another library's frame, and, ``alone``, its column; None where there is no such library."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.Array)):
        return _of_arrow(X, name)
    try:
        import narwhals
    except ImportError:
        return None
    found = narwhals.from_native(X, pass_through=True, allow_series=alone or None)
    if isinstance(found, narwhals.LazyFrame):
        raise TypeError(f"the rows of a lazy frame are not computed yet: pass {name}.collect()")
    if isinstance(found, narwhals.DataFrame):
        return Columns(found.columns, found)
    if isinstance(found, narwhals.Series):
        return _array(found)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _of_arrow(X, name)
    return None


def _of_arrow(X: Any, name: str) -> Any:
    """The columns of what Arrow reads, by their places, for two may have one name; an array of a single column."""
    try:
        import narwhals
        import pyarrow
    except ImportError:  # its names are looked for, and refused
        return None
    if isinstance(X, pyarrow.Array) and not isinstance(X, pyarrow.StructArray):
        table: Any = pyarrow.chunked_array([X])
    else:
        try:
            table = pyarrow.table(X)
        except (TypeError, ValueError):  # it may be one column
            try:
                table = pyarrow.chunked_array(X if hasattr(X, "__arrow_c_stream__") else [pyarrow.array(X)])
            except (TypeError, ValueError) as error:
                raise TypeError(f"{name} cannot be read by pyarrow: {error}") from None
    if isinstance(table, pyarrow.Table):
        places = table.rename_columns([*map(str, range(table.num_columns))])
        return Columns(table.column_names, narwhals.from_native(places, eager_only=True))
    return _array(narwhals.from_native(table, series_only=True))


def _refuse_names(X: Any, name: str) -> None:
    """Raise TypeError where an object has names of columns, which this library does not understand."""
    for each in _NAMES:
        there = getattr(X, each, None)
        if there is None or (isinstance(there, (list, tuple)) and all(one is None for one in there)):
            continue  # tensors have names that are all None
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}, whose names ({each}) are not understood here, and "
            "by their order its columns might be mistaken for each other: pass a frame of pandas, polars or pyarrow "
            "(narwhals reads them), a mapping such as {'age': [70, 31]}, or, if the schema's order is meant, "
            "np.asarray of it"
        )


def _array(series: Any) -> np.ndarray:
    """A column of narwhals: numbers as such, all else as objects."""
    if str(series.dtype) in _NUMBERS:
        return series.to_numpy()
    cells = np.empty(len(series), dtype=object)
    cells[:] = series.to_list()  # to_numpy puts another value in the place of a missing one of pyarrow's dictionaries
    return cells


def _kind(dtype: Any) -> str:
    """What a type of narwhals is for a schema."""
    return "numeric" if dtype.is_numeric() else "categorical" if str(dtype).split("(")[0] in _TEXTS else ""


def _kind_of_pandas(dtype: Any) -> str:
    """The same for a type of pandas; an Arrow type is what it is elsewhere, types of times or intervals are neither."""
    pandas = sys.modules["pandas"]
    if isinstance(dtype, pandas.CategoricalDtype):
        return "categorical" if _kind_of_pandas(dtype.categories.dtype) else ""
    if isinstance(dtype, pandas.ArrowDtype):
        import narwhals
        import pyarrow

        empty = pyarrow.schema([("", dtype.pyarrow_dtype)]).empty_table()
        return _kind(narwhals.from_native(empty, eager_only=True).schema[""])
    if isinstance(dtype, pandas.StringDtype):
        return "categorical"
    return _KINDS.get(dtype.kind, "") if isinstance(dtype, np.dtype) or dtype.kind != "O" else ""


def _is_pandas(X: Any) -> bool:
    """Whether pandas made it: a frame, a series, an index or one of its arrays."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return False
    return isinstance(X, (pandas.DataFrame, pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray))
