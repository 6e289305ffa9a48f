"""From a table of any kind to the codes that a curator keeps, record by record."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import DataConversionWarning

from dpforest.chance import Chance, keyed
from dpforest.curator import Curator
from dpforest.curator.reader import SchemaReader
from dpforest.engines import Table, is_out_of_core, table_of
from dpforest.learners import persons
from dpforest.learners.persons import People
from dpforest.messages import check_names, shown
from dpforest.models.out_of_schema import outside, warn_of_strays
from dpforest.privacy import Ledger, searches, sides
from dpforest.schema import Encoded, Schema, frames

__all__ = ["Opened", "TrainingTable", "columns_of", "encode", "look"]


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """The table of one fit, in memory or read by an engine, of which only the names of columns were looked at so far.

    Attributes
    ----------
    columns : Columns, or a table that an engine reads
    answers : Any
        Labels or targets, or the name of their column.
    key, person : Any
        As :meth:`~dpforest.learners.PrivateEstimator.fit` takes them.
    max_rows : int or None
        The most rows of a person that are learned from; None where the unit is one row.
    schema : Schema
    n_bins : int
        Bins of each numeric column.
    coins : tuple of Coins
        Those by which its rows were chosen among others, if it is a part of a table.
    """

    columns: frames.Columns | Any
    answers: Any
    key: str | None
    person: Any
    max_rows: int | None
    schema: Schema
    n_bins: int
    coins: tuple[sides.Coins, ...] = ()

    @classmethod
    def of(
        cls, X: Any, y: Any, key: Any, person: Any, max_rows: int | None, schema: Schema, n_bins: int
    ) -> TrainingTable:
        """The table that ``fit`` was called with: an error for names that cannot be right, before a cell is read."""
        if key is not None and not isinstance(key, str):
            raise TypeError(f"key must be the name of one column, as text, not {shown(key)}")
        if is_out_of_core(X):
            persons.check_in_memory(max_rows)
            return cls(X, y, key, person, max_rows, schema, n_bins)
        columns = look(X, y, key, person, schema)
        coins = sides.carried(X, columns.shape[0])
        return cls(columns, y, key, person, max_rows, schema, n_bins, coins)

    @property
    def is_named(self) -> bool:
        """Whether all columns have a name that is text."""
        names = self.columns.names if isinstance(self.columns, frames.Columns) else ()
        return names is not None and all(isinstance(name, str) for name in names)

    def open(self, chance: Chance, ledger: Ledger, n_jobs: int) -> Curator:
        """Read the records, and hand them to a curator, who alone has them from here on.

        Raises
        ------
        ValueError, TypeError
            A table without records, or records that the schema does not allow.
        EngineError
            The engine that reads the table fails.
        """
        schema, sizes = self.schema, self.schema.cardinalities(self.n_bins)
        if not isinstance(self.columns, frames.Columns):
            opened = self._opened_by_engine(n_jobs)
            return Curator.over(opened, schema.n_classes, sizes, chance=chance, ledger=ledger)
        codes, labels, ids = self._encoded(chance)
        return Curator(codes, labels, schema.n_classes, sizes, chance=chance, ledger=ledger, n_jobs=n_jobs, ids=ids)

    def _opened_by_engine(self, n_jobs: int) -> Table:
        """The table that an engine reads, looked through once."""
        target = self.answers
        if not isinstance(target, str):
            raise TypeError(
                f"y must be the name of the column of labels where X is read by an engine, not {shown(target)}"
            )
        table = table_of(self.columns).open(SchemaReader(self.schema, self.n_bins, target, self.key), n_jobs)
        _look_at(self.schema, table.n_rows, table.strays, target)
        return table

    def _encoded(self, chance: Chance) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The codes, the labels and the keys of the rows that are learned from."""
        opened = columns_of(self.columns, self.answers, self.key, self.person)
        encoded, labels = encode(opened.columns, opened.answers, self.schema, self.n_bins)
        codes, ids = encoded.codes, opened.ids
        if opened.persons is not None and self.max_rows is not None:
            kept = persons.own_rows(codes, labels, opened.persons, self.max_rows, chance, ids)
            codes, labels = np.ascontiguousarray(codes[:, kept]), labels[kept]
            ids = None if ids is None else ids[kept]
        return codes, labels, ids


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
    if table.names is None:
        if lost := searches.names_lost(schema.columns):
            warnings.warn(lost, stacklevel=outside())
    elif not table.by_records:  # which names records have is for later, when they are read
        check_names([*schema.columns, *named], list(map(str, table.names)), "X")
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
