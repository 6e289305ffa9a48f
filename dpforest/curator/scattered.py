"""Records that an engine reads in blocks: every exact answer is one pass.

A block is a table, too.  So each worker treats its block as a table in memory
(:class:`~dpforest.curator.memory.InMemoryRecords`): it repeats the public steps that assign records to trees and weigh
them, and answers exactly; the whole numbers of all blocks are added up.  Workers neither draw, nor charge, nor release:
that happens once, where the learner runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import is_
from typing import Any, NoReturn

import numpy as np

from dpforest import counting
from dpforest.chance import Chance, keyed
from dpforest.curator.filters import FilterLimits
from dpforest.curator.known import CachedCounts
from dpforest.curator.memory import KEYS_REPEAT, InMemoryRecords
from dpforest.curator.queries import Query
from dpforest.engines import Block, Table, TableError
from dpforest.models.boosted import SCALE
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["BlockedRecords", "Keys", "Question"]


#: What a block does before it answers: a method of its records, and the arguments.
Step = tuple[Callable[..., None], tuple]


@dataclass(frozen=True)
class Keys:
    """Keys from which every block computes the coins of its records: one, or one for each tree.

    Parameters
    ----------
    keys : tuple of (int, int)
        Drawn once for the whole table, and as secret as its seed.
    """

    keys: tuple[keyed.Key, ...]

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray:
        [key] = self.keys
        return keyed.coins(key, ids, high)

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        return np.stack([keyed.copies(key, ids) for key in self.keys])


@dataclass(frozen=True)
class Question:
    """An exact question to a block: public, and small enough to travel.

    Parameters
    ----------
    n_classes : int
    cardinalities : ndarray of int
    steps : tuple of (callable, tuple)
        Methods of :class:`~dpforest.curator.memory.InMemoryRecords` to call first, with their arguments.
    query : Query
    """

    n_classes: int
    cardinalities: np.ndarray
    steps: tuple[Step, ...]
    query: Query

    @property
    def name(self) -> str:
        """What the pass does, for progress bars."""
        return self.query.name

    @cached_property
    def scoring(self) -> list[Step]:
        """The steps that add scores; none where another step changes scores, or the rows of a block."""
        if not all(step in _LEAVING_ROWS for step, _ in self.steps):
            return []
        return [step for step in self.steps if step[0] is InMemoryRecords.add_scores]

    @cached_property
    def scored_at_once(self) -> Step:
        """All of these as one, by a walk down all trees, which adds in the same order."""
        forests, values = zip(*(arguments for _, arguments in self.scoring), strict=True)
        return InMemoryRecords.add_scores, (counting.Splits.join(forests), np.concatenate(values))

    def __call__(self, block: Block) -> tuple[np.ndarray]:
        records = _BlockRecords(block, self.n_classes, self.cardinalities)
        steps = self.steps
        if self.scoring:
            n_known = records.take_scores(self.scoring)
            new = self.scoring[n_known:] if n_known else [self.scored_at_once]
            steps = (*new, *(step for step in steps if step[0] is not InMemoryRecords.add_scores))
        for step, arguments in steps:
            step(records, *arguments)
        answer = records.answer(self.query)
        if self.scoring:
            records.keep_scores(self.scoring)
        return (answer,)


@dataclass(frozen=True)
class _Scored:
    """The cache of a block: scores of its records after these steps that add scores, a packed column for each class."""

    steps: list[Step]
    columns: list[np.ndarray]

    @property
    def n_bytes(self) -> int:
        return sum(column.nbytes for column in self.columns)


def pack_scores(column: np.ndarray) -> np.ndarray:
    """Scores in fewer bytes, if nothing is lost: one for all records, or whole votes, int32; otherwise as they are."""
    if len(column) and (column == column[0]).all():
        return column[:1].copy()
    votes = column * SCALE
    if (np.abs(votes) < 1 << 31).all() and (votes == np.rint(votes)).all():  # exact, for SCALE is a power of two
        return votes.astype(np.int32)
    return column.copy()  # by itself, and not with the other columns of its array


def unpack_scores(columns: list[np.ndarray], n_rows: int) -> np.ndarray:
    """Scores, (n_rows, n_classes), from packed columns."""
    scores = np.empty((len(columns), n_rows))
    for place, column in enumerate(columns):
        scores[place] = column / SCALE if column.dtype == np.int32 else column
    return scores.T


class _BlockRecords(InMemoryRecords):
    """The records of one block, each identified by its key or by its place in the whole table."""

    def __init__(self, block: Block, n_classes: int, cardinalities: np.ndarray) -> None:
        super().__init__(block.codes, block.labels, n_classes, cardinalities)
        self._block = block

    def numbers(self) -> np.ndarray:
        return self._block.ids

    def take_scores(self, steps: list[Step]) -> int:
        """Take the scores that an earlier pass kept, if its steps are the first of these; returns how many they are."""
        kept = None if self._block.cache is None else self._block.cache.found
        if kept is None or len(kept.steps) > len(steps) or not all(map(is_, kept.steps, steps)):
            return 0
        self._scores = unpack_scores(kept.columns, len(self.labels))
        return len(kept.steps)

    def keep_scores(self, steps: list[Step]) -> None:
        """Keep the scores after these steps for later passes, if the engine keeps the block and has room."""
        if self._block.cache is None:
            return
        assert self._scores is not None
        scored = _Scored(steps, [pack_scores(column) for column in self._scores.T])
        self._block.cache.keep(scored, scored.n_bytes)


#: Steps that leave the rows of a block as they are; of these, only ``add_scores`` changes scores.
_LEAVING_ROWS = (
    InMemoryRecords.assign,
    InMemoryRecords.partition_records,
    InMemoryRecords.add_scores,
    InMemoryRecords.weigh_records,
)


@claim("lem-blocks")
class BlockedRecords:
    """A table that an engine reads in blocks: the :class:`~dpforest.curator.protocol.Records` of a curator.

    Parameters
    ----------
    table : Table
        Opened.
    n_classes, cardinalities
        As for :class:`~dpforest.curator.Curator`.

    Notes
    -----
    An exact answer holds at most 2^25 whole numbers of 8 bytes at a time: 256 MB travel to the driver in the worst
    case, and as much stays on a worker while it counts.  A level that needs more is asked for in several passes.
    """

    cells = 1 << 25

    def __init__(self, table: Table, n_classes: int, cardinalities: Any) -> None:
        self._table, self.n_records = table, table.n_rows
        self._n_classes, self._cardinalities = int(n_classes), np.asarray(cardinalities, dtype=np.int64)
        self._sharing: list[Step] = []  # which trees see a record
        self._weighing: list[Step] = []  # the votes of released trees, and then the rule of the weights
        self.known = CachedCounts()

    # -- who sees which record, and what it counts for: steps that every block repeats -----------------------

    def assign(self, n_trees: int, chance: Chance) -> None:
        self._share(InMemoryRecords.assign, n_trees, Keys((chance.key(),)))

    def partition_records(self, n_parts: int, chance: Chance) -> None:
        self._share(InMemoryRecords.partition_records, n_parts, Keys((chance.key(),)))

    def poisson_bootstrap(self, n_trees: int, chance: Chance) -> None:
        if self._table.reader.key is not None:
            raise TableError(KEYS_REPEAT)
        self._share(InMemoryRecords.poisson_bootstrap, n_trees, Keys(tuple(chance.key() for _ in range(n_trees))))

    def add_scores(self, forest: Forest, values: np.ndarray) -> None:
        self._weighing = [*self._scores(), (InMemoryRecords.add_scores, (counting.Splits.of(forest), values))]
        self.known.forget_tables()

    def weigh_records(self, class_weights: Any, rule: str) -> None:
        self._weighing = [*self._scores(), (InMemoryRecords.weigh_records, (class_weights, rule))]
        self.known.forget()

    def open_filter(self, limits: FilterLimits) -> None:
        self._limits = limits
        self._share(InMemoryRecords.open_filter, limits)

    def join_round(self, tree: Forest | None, said: np.ndarray | None) -> None:
        # in ``_sharing``, which keeps the order of steps: who can pay depends on the scores at each round
        self._share(InMemoryRecords.join_round, None if tree is None else counting.Splits.of(tree), said)

    def leave_round(self) -> None:
        self._share(InMemoryRecords.leave_round)

    def limits(self) -> FilterLimits:
        return self._limits

    def _scores(self) -> list[Step]:
        # weights follow from all scores so far: of the steps that weigh only the last one matters
        return [step for step in self._weighing if step[0] is InMemoryRecords.add_scores]

    def _share(self, step: Callable[..., None], *arguments: Any) -> None:
        self._sharing.append((step, arguments))
        self.known.forget()

    def whole(self) -> NoReturn:
        raise TableError(
            "this algorithm draws from the whole table at once, or gives all records weights that add up to 1, as "
            "published: that needs the table in memory.  Pass a DataFrame, or use variant='proved'"
        )

    def answer(self, query: Query) -> np.ndarray:
        """One pass; none where the query asks about no node."""
        if query.needs_whole:
            self.whole()
        steps = (*self._sharing, *self._weighing)
        question = Question(self._n_classes, self._cardinalities, steps, query.packed())
        # a query about no node has an answer without rows, whose shape a block without records gives
        return question(self._empty_block())[0] if query.is_empty else self._table.total(question)[0]

    def _empty_block(self) -> Block:
        """A block without records."""
        codes = np.empty((len(self._cardinalities), 0), dtype=np.uint8)
        return Block(codes, codes[0], codes[0].astype(np.uint64), np.zeros(0, dtype=np.int64))
