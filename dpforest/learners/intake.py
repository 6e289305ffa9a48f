"""From a table of any kind to the codes that a curator keeps, record by record."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from dpforest.chance import keyed
from dpforest.engines import Reader, Table, table_of
from dpforest.privacy import OutOfSchemaWarning
from dpforest.schema import Encoded, Schema, frames

__all__ = ["columns_of", "encode", "open_table"]


def open_table(X: Any, y: Any, reader: Reader, n_jobs: int) -> Table:
    """The table that an engine reads, looked through once."""
    if not isinstance(y, str):
        raise TypeError(f"y must be the name of the column of labels where X is read by an engine, not {y!r}")
    table = table_of(X).open(reader, n_jobs)
    _look_at(table.n_rows, table.strays, 4)
    return table


def columns_of(X: Any, y: Any, key: str | None) -> tuple[frames.Columns, Any, np.ndarray | None]:
    """The columns of a table in memory, its labels, which it may hold too, and the numbers of its records, or None."""
    table = frames.columns_of(X)
    if table.names is None and (key is not None or isinstance(y, str)):
        raise TypeError("y or key names a column of X, so X must be a frame or a table that an engine reads")
    named = [name for name in (y if isinstance(y, str) else None, key) if name is not None]
    found = dict(zip(named, table.pick(named), strict=True)) if named else {}
    labels = found[y] if isinstance(y, str) else y
    return table, labels, None if key is None else keyed.identify(found[key])


def encode(X: Any, y: Any, schema: Schema, n_bins: int) -> tuple[Encoded, np.ndarray]:
    """The codes of the columns, and those of the labels or targets."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    encoded = schema.encode(X, n_bins)
    beyond: dict[str, int] = {}
    if schema.classes is not None:
        labels = schema.encode_labels(y)
    else:
        labels, clipped = schema.encode_target(y)
        beyond = {"y": clipped} if clipped else {}
    if len(getattr(y, "shape", ())) > 1:
        text = "A column-vector y was passed when a 1d array was expected: pass y.ravel()"
        warnings.warn(text, DataConversionWarning, stacklevel=4)
    if len(labels) != encoded.n_rows:
        raise ValueError(f"X has {encoded.n_rows} rows, y has {len(labels)}: inconsistent numbers of samples")
    _look_at(encoded.n_rows, {**encoded.clipped, **encoded.other, **beyond}, 5)
    return encoded, labels


def _look_at(n_rows: int, strays: dict[str, int], level: int) -> None:
    """Refuse a table without records; warn of values outside the schema, so many calls below who asked."""
    if not n_rows:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: nothing to learn from")
    if strays:
        text = ", ".join(f"{name}: {count}" for name, count in strays.items())
        warnings.warn(
            f"values outside the schema were clipped or sent to 'other' ({text} of {n_rows} rows); "
            "these counts are exact, do not release them",
            OutOfSchemaWarning,
            stacklevel=level,
        )
