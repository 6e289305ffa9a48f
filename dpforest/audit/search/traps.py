"""Pairs of neighbours that have caught private learners before, and pairs for want of better ones.

Each trap is a small data set to which one record is added, or in which one is replaced, so that a branch on the
records that is not charged would be decided otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd

from dpforest.audit.exact.enumeration import datasets, neighbours
from dpforest.audit.search.pairs import Pair
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, check_relation
from dpforest.schema import MAX_CODES, Schema

__all__ = ["check_universe", "some_pairs", "table_traps", "traps"]

Record = tuple[int, ...]

#: Sizes at whose edge a rule on the number of records may turn, at it or beyond it: powers of two, 5 and 10.
_SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16)


def traps(cardinalities: Iterable[int], n_classes: int | Sequence[int], relation: str) -> list[Pair]:
    """The classical traps in codes, for one relation.

    Parameters
    ----------
    cardinalities : iterable of int
        Codes of each feature, from 1 to 256.
    n_classes : int or sequence of int
        At least 2; or the codes of the records' last entries, such as ``(0, 240)`` for the ends of a target's range.
    relation : {"add-remove", "replace-one"}

    Returns
    -------
    list of Pair
        Data sets are tuples of records ``(code_1, ..., code_m, class)`` in the order of the file, of at most 21
        records.  Every pair is different, and one of neighbours; a universe too poor for a trap does without it.  Traps
        for one feature are set for the first and the last, and for those with the fewest and the most codes.
    """
    world = _World(*check_universe(cardinalities, n_classes))
    found: dict[tuple, Pair] = {}
    for name, common, old, new in _changes(world):
        for where, place in (("first", 0), ("last", len(common))):
            one, other = _change(common, old, new, place, relation)
            if sorted(one) != sorted(other):
                found.setdefault((one, other), Pair(f"{name}, {where} in the file", one, other))
    for name, common, old, new in _orders(world):
        one, other = _change(common, old, new, 0, relation)
        if sorted(one) != sorted(other):
            found.setdefault((one, other[::-1]), Pair(f"{name}, in another order", one, other[::-1]))
    return list(found.values())


class _World:
    """Records by what they stand for."""

    def __init__(self, sizes: Sequence[int], last: Sequence[int]):
        self.sizes, self.last, self.classes = tuple(sizes), tuple(last), len(last)
        self.low, self.high = tuple(0 for _ in sizes), tuple(size - 1 for size in sizes)
        by_size = sorted(range(len(sizes)), key=lambda feature: sizes[feature])
        self.telling = sorted({0, len(sizes) - 1, by_size[0], by_size[-1]})

    def record(self, codes, label: int) -> Record:
        return (*(min(code, size - 1) for code, size in zip(codes, self.sizes, strict=True)), self.last[label])

    def only(self, feature: int, code: int, label: int) -> Record:
        """The lowest codes, but for one feature."""
        codes = list(self.low)
        codes[feature] = code
        return self.record(codes, label)


def _changes(world: _World) -> Iterator[tuple[str, tuple[Record, ...], Record, Record]]:
    """Name, common records, the record that leaves where one is replaced, the record that comes."""
    low = [world.record(world.low, label) for label in range(world.classes)]
    high = [world.record(world.high, label) for label in range(world.classes)]
    yield "single record", (), low[0], low[1]
    yield "single record, unlike", (), low[0], high[1]
    for size in _SIZES:
        yield f"pure node of {size}", (low[0],) * size, low[0], low[1]
    yield "pure node of 20", (low[0],) * 20, low[0], low[1]
    yield "pure leaves", (low[0], low[0], high[1], high[1]), low[0], low[1]
    yield "first duplicate", (low[0], high[1]), high[0], low[0]
    yield "duplicates", (low[1],) * 6, high[0], low[1]
    yield "tied labels", (low[0], low[1], low[0], low[1]), low[0], low[1]
    for feature in world.telling:
        size = world.sizes[feature]
        if size > 1:
            common = low[0], low[1], low[0]
            yield f"empty leaf of feature {feature}", common, low[0], world.only(feature, size - 1, 1)
            yield f"unseen code of feature {feature}", (high[0], high[1]), high[0], world.only(feature, 0, 0)
        if size > 2:
            middle = world.only(feature, 1, 0), world.only(feature, 1, 1)
            yield f"new minimum of feature {feature}", middle, middle[0], world.only(feature, 0, 0)
            yield f"new maximum of feature {feature}", middle, middle[0], world.only(feature, size - 1, 1)
            between = world.only(feature, 0, 0), world.only(feature, size - 1, 1)
            yield f"between the extremes of feature {feature}", between, between[0], middle[1]
    # two features that split equally well, until one record decides
    split = [feature for feature, size in enumerate(world.sizes) if size > 1][:2]
    if len(split) == 2:
        tied = low[0], world.record([int(f in split) for f in range(len(world.sizes))], 1)
        for feature in split:
            yield f"tied features, for {feature}", tied, low[0], world.only(feature, 1, 0)
            yield f"tied features, against {feature}", tied, low[0], world.only(feature, 1, 1)
    if world.classes > 2:
        yield "unseen class", (low[0], low[1], high[0], high[1]), low[0], low[world.classes - 1]
    # every subset loses or swaps a record when a file is cut in pieces by position
    alternating = tuple((low, high)[i % 2][i % 2] for i in range(9))
    yield "alternating labels", alternating, low[0], low[1]


def _orders(world: _World) -> Iterator[tuple[str, tuple[Record, ...], Record, Record]]:
    low, high = world.record(world.low, 0), world.record(world.high, 1)
    yield "sorted by label", (low, low, low, high, high), low, high
    yield "extremes at the ends", (low, high, high), low, world.record(world.low, 1)


def _change(common, old, new, place: int, relation: str):
    """Both data sets of a trap, the record that differs at ``place``."""
    with_new = (*common[:place], new, *common[place:])
    if check_relation(relation) == ADD_REMOVE:
        return tuple(common), with_new
    return (*common[:place], old, *common[place:]), with_new


# -- tables ------------------------------------------------------------------------------------------------------


def table_traps(schema: Schema, relation: str) -> list[Pair]:
    """Traps that codes cannot express: pairs of tables ``(X, y)`` that the schema allows.

    An undeclared category where the schema sends it to *other*, a missing value where it has a bin for them, in
    numeric columns the bounds, what lies beyond them and infinity, a class that no record had, the first and the last
    place in the file, and another order of the rows.

    Parameters
    ----------
    schema : Schema
    relation : {"add-remove", "replace-one"}

    Returns
    -------
    list of Pair
        Of ``(DataFrame, ndarray)`` each; X has the schema's columns in their order.
    """
    check_relation(relation)
    base = {name: _usual(schema, name) for name in schema.columns}
    answers = schema.classes.tolist() if schema.classes is not None else list(schema.target)  # type: ignore[arg-type]
    mixed = [(dict(base), answers[i % 2]) for i in range(4)]
    news: list[tuple[str, list, dict, object]] = [("a new answer", [mixed[0]] * 4, base, answers[-1])]
    if schema.target is not None:
        beyond = (("above", schema.target[1] + 1e6), ("below", schema.target[0] - 1))
        news += [(f"a target {where} the range", mixed, base, answer) for where, answer in beyond]
    for name in schema.columns:
        strange = ((what, {**base, name: value}) for what, value in _unusual(schema, name))
        news += [(f"{what} in {name!r}", mixed, record, answers[1]) for what, record in strange]
    found = []
    for name, common, record, answer in news:
        for where, place in (("first", 0), ("last", 4)):
            rows = _change(common, (base, answers[0]), (record, answer), place, relation)
            found.append(Pair(f"{name}, {where} in the file", *(_table(schema, part) for part in rows)))
        one, other = _change(common, (base, answers[0]), (record, answer), 2, relation)
        found.append(Pair(f"{name}, in another order", _table(schema, one), _table(schema, other[::-1])))
    return found


def _usual(schema: Schema, name: str):
    if name in schema.categorical:
        return _cell(schema, name, 0)
    low, high = schema.numeric[name]
    return low + (high - low) / 4


def _unusual(schema: Schema, name: str) -> Iterator[tuple[str, object]]:
    if name in schema.categorical:
        yield "last category", _cell(schema, name, len(schema.categorical[name]) - 1)
        if name in schema.other:
            yield "undeclared category", _undeclared(schema, name)
    else:
        low, high = schema.numeric[name]
        yield from [("lower bound", low), ("upper bound", high), ("below the bounds", low - 1), ("infinity", math.inf)]
        yield from [("above the bounds", high + 1e6), ("minus infinity", -math.inf)]
    if schema.missing == "bin":
        yield from [("NaN", math.nan), ("None", None)]


def _cell(schema: Schema, name: str, code: int):
    """A value of a table that has this code; one that no group lists where the code is for these."""
    found = schema.values_of(name, code)
    return found[0] if found else _undeclared(schema, name)


def _undeclared(schema: Schema, name: str) -> str:
    """A text that the column does not know."""
    taken = {value for code in range(len(schema.categorical[name])) for value in schema.values_of(name, code)}
    first, text = {str(value)[:1] for value in taken}, "undeclared"
    while text in taken or text[:1] in first:
        text = chr(ord(text[0]) + 1) + text[1:]
    return text


def _table(schema: Schema, rows) -> tuple[pd.DataFrame, np.ndarray]:
    X = pd.DataFrame({name: [record[name] for record, _ in rows] for name in schema.columns}, columns=schema.columns)
    return X, np.array([answer for _, answer in rows], dtype=None if schema.classes is None else schema.classes.dtype)


# -- pairs in bulk -----------------------------------------------------------------------------------------------


def some_pairs(
    cardinalities: Iterable[int],
    n_classes: int | Sequence[int],
    relation: str,
    *,
    n_max: int,
    max_pairs: int,
    rng: np.random.Generator,
) -> list[Pair]:
    """All pairs of at most ``n_max`` records if there are at most ``max_pairs`` of them, else so many random ones.

    Random data sets hold few kinds of records, so that ties and pure nodes are common, in a random order.
    """
    sizes, last = check_universe(cardinalities, n_classes)
    check_count(n_max, "n_max")
    kinds = math.prod(sizes) * len(last)
    smaller = math.comb(kinds + n_max - 1, n_max - 1)  # what is left when the record that differs is taken out
    number = smaller * (kinds if check_relation(relation) == ADD_REMOVE else kinds * (kinds - 1) // 2)
    if number <= max_pairs:
        every = neighbours(list(datasets(sizes, last, n_max)), relation)
        return [Pair(f"pair {index}", *pair) for index, pair in enumerate(every)]
    return [Pair(f"random pair {i}", *_random_pair(sizes, last, relation, n_max, rng)) for i in range(max_pairs)]


def _random_pair(sizes, last, relation, n_max, rng):
    def some():
        *codes, label = (int(rng.integers(size)) for size in (*sizes, len(last)))
        return (*codes, last[label])

    palette = [some() for _ in range(int(rng.integers(2, 6)))]
    common = tuple(palette[i] for i in rng.integers(len(palette), size=int(rng.integers(n_max))))
    new, old = some(), palette[0]
    if old == new:
        new = (*new[:-1], last[(last.index(new[-1]) + 1) % len(last)])
    return _change(common, old, new, int(rng.integers(len(common) + 1)), relation)


def check_universe(cardinalities: Iterable[int], n_classes: int | Sequence[int]) -> tuple[list[int], list[int]]:
    """The cardinalities, and the codes of classes or targets, as lists; refuses what is no universe."""
    sizes = [check_count(size, "each cardinality", most=MAX_CODES) for size in cardinalities]
    if not sizes:
        raise ValueError("a universe needs at least one feature: cardinalities=[2]")
    if isinstance(n_classes, Sequence):
        last = [check_count(code, "each target", least=0, most=MAX_CODES - 1) for code in n_classes]
        if len(set(last)) < max(2, len(last)):
            raise ValueError(f"targets must be at least two different codes, such as (0, 240), not {shown(n_classes)}")
        return sizes, last
    return sizes, list(range(check_count(n_classes, "n_classes", least=2, most=MAX_CODES)))


def kinds_of(sizes: Sequence[int], last: Sequence[int]) -> list[Record]:
    """Every record of a universe."""
    return list(product(*map(range, sizes), last))
