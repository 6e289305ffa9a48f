"""Pairs of neighbouring data sets: what an auditor hands to a learner, checked and encoded."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpforest.audit.exact.laws import encode
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, OutOfSchemaWarning, check_relation
from dpforest.schema import TARGET_LEVELS, Schema

__all__ = ["EncodedTable", "Pair", "are_neighbours", "as_pair", "match_records", "prepare", "rows_of"]


class Pair(NamedTuple):
    """Two neighbouring data sets with a name.

    A data set is a tuple of records ``(code_1, ..., code_m, class)`` in the order of the file, or a table ``(X, y)``.
    """

    name: str
    one: Any
    other: Any


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """An encoded data set, as the learner's seam takes it."""

    records: tuple[tuple[int, ...], ...]
    codes: np.ndarray
    labels: np.ndarray
    schema: Schema

    @classmethod
    def of(cls, records, schema: Schema) -> EncodedTable:
        """From records of codes, in file order."""
        return cls(tuple(records), *encode(records, schema.n_features), schema)

    def match(self, other: EncodedTable) -> list[int]:
        """For each record its place in ``other``, see :func:`match_records`."""
        return match_records(other.records, self.records)


def are_neighbours(one: Sequence, other: Sequence, relation: str) -> bool:
    """Whether two lists of records are neighbours, whatever their order.

    Under replace-one equal data sets count too: a record may be replaced by its like.
    """
    gone, come = Counter(one) - Counter(other), Counter(other) - Counter(one)
    missing, extra = gone.total(), come.total()
    return missing + extra == 1 if check_relation(relation) == ADD_REMOVE else missing == extra <= 1


def match_records(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[int]:
    """For each record of ``other`` its place in ``one``, -1 for a new one.

    Equal records are matched in the order of the file; a record that replaces another takes its place.
    """
    places: dict[Hashable, deque[int]] = defaultdict(deque)
    for index, record in enumerate(one):
        places[record].append(index)
    match = [places[record].popleft() if places[record] else -1 for record in other]
    if len(one) == len(other) and -1 in match:
        (match[match.index(-1)],) = (index for left in places.values() for index in left)
    return match


def as_pair(given, index: int) -> Pair:
    """``(name, one, other)`` or ``(one, other)``, which is named by its number."""
    if isinstance(given, Pair):
        return given
    try:
        parts = tuple(given)
    except TypeError:
        parts = ()
    if len(parts) == 3 and isinstance(parts[0], str):
        return Pair(*parts)
    if len(parts) == 2:
        return Pair(f"pair {index}", *parts)
    raise ValueError(f"pair {index} must be (one, other) or (name, one, other), two data sets, not {shown(given)}")


def prepare(
    estimator, pairs: Iterable, *, found: Callable[..., None] | None = None
) -> list[tuple[Pair, EncodedTable, EncodedTable]]:
    """Encode pairs as the estimator's ``fit`` would, and check that they are neighbours.

    Parameters
    ----------
    estimator : PrivateEstimator
    pairs : iterable of Pair, of (one, other) or of (name, one, other)
    found : callable, optional
        Called as ``found(pair, kind, where, text)`` for tables that are neighbours before they are encoded and not
        after.

    Returns
    -------
    list of (Pair, Table, Table)
        The pair in codes, and either side as the learner takes it.

    Raises
    ------
    ValueError
        If data sets are not neighbours under the estimator's relation, or do not fit its schema.
    """
    if isinstance(pairs, Pair):
        pairs = [pairs]
    estimator.check_parameters()
    ready = []
    for index, given in enumerate(pairs):
        pair = as_pair(given, index)
        one, rows = _encode(estimator, pair.name, pair.one)
        other, others = _encode(estimator, pair.name, pair.other)
        if not are_neighbours(rows, others, estimator.relation):
            raise ValueError(
                f"{shown(pair.name)} is no pair of neighbours under {estimator.relation}: its data sets must differ in "
                "exactly one record, " + ("which one of them lacks" if estimator.relation == ADD_REMOVE else "replaced")
            )
        pair = Pair(pair.name, one.records, other.records)
        if one.schema == other.schema and are_neighbours(one.records, other.records, estimator.relation):
            ready.append((pair, one, other))
        elif found is not None:
            what = "the codes of other records" if one.schema == other.schema else "the schema"
            found(pair, "encoding", "the table", f"changes {what} when one record changes")
    return ready


def rows_of(X, y) -> list[tuple]:
    """The records of a table as tuples of plain values, missing ones as None."""
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X, dtype=object))
    columns = [_plain_column(frame.iloc[:, j]) for j in range(frame.shape[1])]
    return list(zip(*columns, np.asarray(y).ravel().tolist(), strict=True))


def _encode(estimator, name: str, data) -> tuple[EncodedTable, list[tuple]]:
    if not isinstance(data, tuple) or any(hasattr(part, "shape") for part in data):
        return _encode_table(estimator, name, data)
    schema = estimator.audited_schema(estimator.promised_delta())
    last = schema.n_classes or TARGET_LEVELS + 1
    limits = [*schema.cardinalities(estimator.bins(schema)).tolist(), last]
    records = []
    for record in data:
        try:
            whole = tuple(int(code) for code in record)
            fits = whole == tuple(record) and len(whole) == len(limits)
        except (TypeError, ValueError):
            fits = False
        if not fits or not all(0 <= code < limit for code, limit in zip(whole, limits, strict=True)):
            raise ValueError(
                f"{shown(name)} holds {shown(record)}: a record is a tuple of {len(limits) - 1} "
                f"codes and a class or target, "
                f"each below {limits}; a table is a pair (X, y) of arrays or frames"
            )
        records.append(whole)
    return EncodedTable.of(records, schema), records


def _encode_table(estimator, name: str, data) -> tuple[EncodedTable, list[tuple]]:
    try:
        X, y = data
    except (TypeError, ValueError):
        raise ValueError(
            f"{shown(name)}: a data set is a tuple of records or a table (X, y), not {shown(data)}"
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfSchemaWarning)  # values outside the schema are among the traps
        schema, encoded, labels = estimator.read(X, y)
    records = [tuple(map(int, record)) for record in zip(*encoded.codes, labels, strict=True)]
    return EncodedTable(tuple(records), encoded.codes, labels, schema), rows_of(X, y)


def _plain_column(column: pd.Series) -> list:
    return column.astype(object).where(column.notna(), None).tolist()
