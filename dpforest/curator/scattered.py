"""Records that an engine reads in blocks: every exact answer is one pass.

A block is a table too.  So each worker makes of its block the records that the curator has of a table in memory
(:class:`~dpforest.curator.memory.InMemoryRecords`), repeats the public steps that say who sees which record and what
it counts for, and gives the very same exact answer; the whole numbers of all blocks are added up.  What is drawn,
charged and released is none of the workers' business: it happens once, where the learner runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from dpforest import counting
from dpforest.chance import Chance, keyed
from dpforest.curator.known import CachedCounts
from dpforest.curator.memory import KEYS_REPEAT, InMemoryRecords
from dpforest.design import Design
from dpforest.engines import Block, Table, TableError
from dpforest.models.crossings import Crossings
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["BlockedRecords", "Keys", "Question"]


@dataclass(frozen=True)
class Keys:
    """What every block tosses the coins of its records by: one key, or one for each tree.

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
    steps : tuple of (str, tuple)
        Methods of :class:`~dpforest.curator.memory.InMemoryRecords` to call first, with their arguments.
    method : str
        The one that answers.
    asked : tuple
        Its arguments.
    """

    n_classes: int
    cardinalities: np.ndarray
    steps: tuple[tuple[str, tuple], ...]
    method: str
    asked: tuple

    @property
    def name(self) -> str:
        """What the pass does, for progress bars."""
        return self.method.replace("_", " ")

    def __call__(self, block: Block) -> tuple[np.ndarray]:
        records = _BlockRecords(block, self.n_classes, self.cardinalities)
        for name, arguments in self.steps:
            getattr(records, name)(*arguments)
        return (getattr(records, self.method)(*self.asked),)


class _BlockRecords(InMemoryRecords):
    """The records of one block, told apart in the whole table."""

    def __init__(self, block: Block, n_classes: int, cardinalities: np.ndarray) -> None:
        super().__init__(block.codes, block.labels, n_classes, cardinalities)
        self._block = block

    def numbers(self) -> np.ndarray:
        return self._block.ids


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
        self._sharing: list[tuple[str, tuple]] = []  # who sees which record
        self._weighing: list[tuple[str, tuple]] = []  # what released trees say, and what that makes of the weights
        self.known = CachedCounts()

    # -- who sees which record, and what it counts for: steps that every block repeats -----------------------

    def assign(self, n_trees: int, chance: Chance) -> None:
        self._share("assign", n_trees, Keys((chance.key(),)))

    def partition_records(self, n_parts: int, chance: Chance) -> None:
        self._share("partition_records", n_parts, Keys((chance.key(),)))

    def poisson_bootstrap(self, n_trees: int, chance: Chance) -> None:
        if self._table.reader.key is not None:
            raise TableError(KEYS_REPEAT)
        self._share("poisson_bootstrap", n_trees, Keys(tuple(chance.key() for _ in range(n_trees))))

    def add_scores(self, forest: Forest, values: np.ndarray) -> None:
        self._weighing = [*self._scores(), ("add_scores", (counting.Splits.of(forest), values))]

    def weigh_records(self, class_weights: Any, rule: str) -> None:
        self._weighing = [*self._scores(), ("weigh_records", (class_weights, rule))]
        self.known.forget()

    def _scores(self) -> list[tuple[str, tuple]]:
        return [step for step in self._weighing if step[0] == "add_scores"]

    def _share(self, name: str, *arguments: Any) -> None:
        self._sharing.append((name, arguments))
        self.known.forget()

    def whole(self) -> NoReturn:
        raise TableError(
            "this algorithm draws from the whole table at once, or gives all records weights that add up to 1, as "
            "published: that needs the table in memory.  Pass a DataFrame, or use variant='proved'"
        )

    # -- exact answers: one pass each ------------------------------------------------------------------------

    def class_counts(self, splits: Any, nodes: np.ndarray) -> np.ndarray:
        return self._of(nodes, "class_counts", splits)

    def moments(self, splits: Any, nodes: np.ndarray, n_moments: int) -> np.ndarray:
        return self._of(nodes, "moments", splits, n_moments)

    def candidate_counts(
        self,
        splits: Any,
        nodes: np.ndarray,
        features: np.ndarray,
        masks: np.ndarray,
        n_moments: int,
        known: np.ndarray | None = None,
    ) -> np.ndarray:
        return self._of(nodes, "candidate_counts", splits, features, masks, n_moments)

    def histograms(self, splits: Any, nodes: np.ndarray, features: np.ndarray, by_part: bool = False) -> np.ndarray:
        return self._of(nodes, "histograms", splits, features, by_part)

    def code_counts(self, splits: Any, nodes: np.ndarray) -> np.ndarray:
        return self._of(nodes, "code_counts", splits)

    def cross_sums(self, crossings: Crossings, sides: np.ndarray) -> np.ndarray:
        return self._table.total(self._asked("cross_sums", crossings, sides))[0]

    def residual_counts(self, edges: np.ndarray) -> np.ndarray:
        return self._table.total(self._asked("residual_counts", edges))[0]

    def products(self, design: Design) -> np.ndarray:
        return self._table.total(self._asked("products", design))[0]

    def _of(self, nodes: np.ndarray, method: str, splits: Any, *more: Any) -> np.ndarray:
        question = self._asked(method, counting.Splits.of(splits), nodes, *more)
        if len(nodes):
            return self._table.total(question)[0]
        return question(self._nobody())[0]  # nothing to read the table for

    def _asked(self, method: str, *asked: Any) -> Question:
        return Question(self._n_classes, self._cardinalities, (*self._sharing, *self._weighing), method, asked)

    def _nobody(self) -> Block:
        codes = np.empty((len(self._cardinalities), 0), dtype=np.uint8)
        return Block(codes, codes[0], codes[0].astype(np.uint64), np.zeros(0, dtype=np.int64))
