"""The curator of a table that an engine reads in blocks: every exact answer is one pass.

A block is a table too.  So each worker makes of its block what the curator makes of a table in memory
(:class:`~dpforest.curator.records.Records`), repeats the public steps that say who sees which record and what it
counts for, and gives the very same exact answer; the whole numbers of all blocks are added up.  What is drawn, charged
and released is none of the workers' business: it happens once, where the learner runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpforest import counting
from dpforest.chance import Chance, keyed
from dpforest.curator import Curator
from dpforest.curator.records import KEYS_REPEAT, Records
from dpforest.curator.weights import weight_levels
from dpforest.engines import Block, Table, TableError
from dpforest.privacy import Ledger, claim

__all__ = ["Question", "Scattered"]


@dataclass(frozen=True)
class Question:
    """An exact question to a block: public, and small enough to travel.

    Parameters
    ----------
    n_classes : int
    cardinalities : ndarray of int
    steps : tuple of (str, tuple)
        Methods of :class:`~dpforest.curator.records.Records` to call first, with their arguments.
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
        return self.method.strip("_").replace("_", " ")

    def __call__(self, block: Block) -> tuple[np.ndarray]:
        records = _Piece(block, self.n_classes, self.cardinalities)
        for name, arguments in self.steps:
            getattr(records, name)(*arguments)
        return (np.asarray(getattr(records, self.method)(*self.asked)),)


class _Piece(Records):
    """The records of one block.  It has neither chance nor ledger: a block answers, and neither draws nor charges."""

    def __init__(self, block: Block, n_classes: int, cardinalities: np.ndarray):
        nobody: Any = None
        super().__init__(block.codes, block.labels, n_classes, cardinalities, chance=nobody, ledger=nobody)
        self._block = block

    def _numbers(self):
        return self._block.ids

    def assign_by_key(self, key: keyed.Key, n_trees: int) -> None:
        self._assign_by(keyed.coins(key, self._numbers(), n_trees))

    def divide_by_key(self, key: keyed.Key, n_parts: int) -> None:
        self._divide_by(keyed.coins(key, self._numbers(), n_parts), n_parts)

    def repeat_by_keys(self, keys: list[keyed.Key]) -> None:
        numbers = self._numbers()
        self._repeat(np.stack([keyed.copies(key, numbers) for key in keys]))


@claim("lem-blocks", "def-two-doors")
class Scattered(Curator):
    """A curator whose records lie in the blocks of a table that an engine reads.

    Parameters
    ----------
    table : Table
        Opened.
    n_classes, cardinalities, chance, ledger
        As for :class:`~dpforest.curator.Curator`.

    Notes
    -----
    An exact answer holds at most 2^25 whole numbers of 8 bytes at a time: 256 MB travel to the driver in the worst
    case, and as much stays on a worker while it counts.  A level that needs more is asked for in several passes.
    """

    _cells = 1 << 25

    def __init__(self, table: Table, n_classes: int, cardinalities, *, chance: Chance, ledger: Ledger):
        nothing = np.empty((len(cardinalities), 0), np.uint8), np.empty(0, np.uint8)
        super().__init__(*nothing, n_classes, cardinalities, chance=chance, ledger=ledger)
        self._table, self._size = table, table.n_rows
        self._sharing: list[tuple[str, tuple]] = []  # who sees which record
        self._weighing: list[tuple[str, tuple]] = []  # what released trees say, and what that makes of the weights

    # -- who sees which record: steps that every block repeats ------------------------------------------------

    @claim("thm-keyed-assignment")
    def assign(self, n_trees):
        if n_trees > 1:
            self._share("assign_by_key", self._chance.key(), n_trees)

    @claim("lem-parts")
    def divide(self, n_parts):
        self._check_parts(n_parts)
        if n_parts > 1:
            self._share("divide_by_key", self._chance.key(), n_parts)
            self.n_parts = n_parts

    def poisson_bootstrap(self, n_trees):
        if self._table.reader.key is not None:
            raise TableError(KEYS_REPEAT)
        self._share("repeat_by_keys", [self._chance.key() for _ in range(n_trees)])

    def weigh(self, forest=None, values=None, *, class_weights=None, rule="capped"):
        heard = [step for step in self._weighing if step[0] == "_hear"]
        if forest is not None:
            heard.append(("_hear", (counting.Splits.of(forest), np.asarray(values))))
        self._weighing = [*heard, ("_reweigh", (class_weights, rule))]
        self.unit = weight_levels(self.n_classes)
        self._weighted = np.empty(0, np.uint8)
        self._known.forget()

    def _share(self, name: str, *arguments) -> None:
        self._sharing.append((name, arguments))
        self._known.forget()

    # -- exact answers: one pass each -------------------------------------------------------------------------

    def _count_nodes(self, splits, nodes):
        return self._of(nodes, "_count_nodes", splits)

    def _sum_nodes(self, splits, nodes, n_moments):
        return self._of(nodes, "_sum_nodes", splits, n_moments)

    def _candidate_counts(self, splits, nodes, features, masks, n_moments):
        return self._of(nodes, "_candidate_counts", splits, features, masks, n_moments)

    def _histograms(self, splits, nodes, allowed, by_part=False):
        return self._of(nodes, "_histograms", splits, allowed, by_part)

    def _code_counts(self, splits, nodes):
        return self._of(nodes, "_code_counts", splits)

    def _products(self, design):
        return self._total("_products", design)

    def _of(self, nodes, name: str, splits, *more) -> np.ndarray:
        if not len(nodes):  # nothing to read the table for
            return getattr(super(), name)(splits, nodes, *more)
        return self._total(name, counting.Splits.of(splits), nodes, *more)

    def _total(self, name: str, *asked) -> np.ndarray:
        steps = tuple(self._sharing + self._weighing)
        [answer] = self._table.total(Question(self.n_classes, self.cardinalities, steps, name, asked))
        return answer

    # -- what looks at all records at once ----------------------------------------------------------------------

    def _in_memory_only(self, *_, **__):
        raise TableError(
            "this algorithm draws from the whole table at once, or gives all records weights that add up to 1, as "
            "published: that needs the table in memory.  Pass a DataFrame, or use variant='proved'"
        )

    split_equally = bootstrap = hold_out = draw_by_weight = count_by_share = _in_memory_only
    peek_largest_weight = peek_error = peek_boost = peek_held_out = _in_memory_only
