"""From a table of any kind to the codes that a curator keeps, record by record."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import DataConversionWarning

from dpforest.chance import keyed
from dpforest.engines import Reader, Table, table_of
from dpforest.learners import persons
from dpforest.learners.persons import People
from dpforest.messages import shown
from dpforest.models.out_of_schema import outside, warn_of_strays
from dpforest.privacy import searches
from dpforest.schema import Encoded, Schema, frames

__all__ = ["Opened", "columns_of", "encode", "look", "open_table"]


def open_table(X: Any, reader: Reader, n_jobs: int) -> Table:
    """The table that an engine reads, looked through once."""
    y: object = reader.target
    if not isinstance(y, str):
        raise TypeError(f"y must be the name of the column of labels where X is read by an engine, not {shown(y)}")
    table = table_of(X).open(reader, n_jobs)
    _look_at(reader.schema, table.n_rows, table.strays, y)
    return table


class Opened(NamedTuple):
    """A table in memory, not yet encoded: its columns, its answers, and the numbers of its records and persons."""

    columns: frames.Columns
    answers: Any
    ids: np.ndarray | None
    persons: People | None


def look(X: Any, y: Any, key: str | None, person: Any, schema: Schema) -> frames.Columns:
    """The columns of a table in memory, once their names were looked at, and no cell."""
    table = frames.columns_of(X)
    named = [name for name in (y, key, person) if isinstance(name, str)]
    if table.names is None and named:
        raise TypeError("y, key or person names a column of X, so X must be a frame or a table that an engine reads")
    if isinstance(person, str) and person in schema.columns:
        raise ValueError(
            f"{shown(person)} says whose row it is, and is a column of the schema: take it out of the schema"
        )
    if table.names is not None:
        frames.check_names([*schema.columns, *named], list(map(str, table.names)), "X")
    elif lost := searches.names_lost(schema.columns):
        warnings.warn(lost, stacklevel=outside())
    return table


def columns_of(table: frames.Columns, y: Any, key: str | None, person: Any) -> Opened:
    """The columns of a table that was looked at, its labels, which it may hold too, and whose records these are."""
    named = [name for name in (y, key, person) if isinstance(name, str)]
    found = dict(zip(named, table.pick(named), strict=True)) if named else {}
    labels = found[y] if isinstance(y, str) else y
    ids = None if key is None else keyed.identify(found[key])
    whose = None if person is None else persons.identify(found[person] if isinstance(person, str) else person)
    if whose is not None and len(whose) != table.shape[0]:
        raise ValueError(f"X has {table.shape[0]} rows, person has {len(whose)}: inconsistent numbers of samples")
    return Opened(table, labels, ids, whose)


def encode(X: Any, y: Any, schema: Schema, n_bins: int) -> tuple[Encoded, np.ndarray]:
    """The codes of the columns, and those of the labels or targets."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    table = frames.columns_of(X)
    encoded = schema.encode(table, n_bins)
    beyond: dict[str, int] = {}
    if schema.classes is not None:
        labels = schema.encode_labels(y)
    else:
        labels, clipped = schema.encode_target(y)
        beyond = {"y": clipped} if clipped else {}
    if len(getattr(y, "shape", ())) > 1:
        text = "A column-vector y was passed when a 1d array was expected: pass y.ravel()"
        warnings.warn(text, DataConversionWarning, stacklevel=outside())
    if len(labels) != encoded.n_rows:
        raise ValueError(f"X has {encoded.n_rows} rows, y has {len(labels)}: inconsistent numbers of samples")
    strays = {**encoded.clipped, **encoded.other, **beyond}
    _look_at(schema, encoded.n_rows, strays, "y", named=table.names is not None)
    return encoded, labels


def _look_at(schema: Schema, n_rows: int, strays: dict[str, int], target: str, *, named: bool = True) -> None:
    """Refuse a table without records; warn of values outside the schema."""
    if not n_rows:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: nothing to learn from")
    warn_of_strays(schema, strays, n_rows, "" if schema.target is None else target, fit=True, named=named)
