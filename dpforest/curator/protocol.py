"""The protocol between a curator and its records, and the seam at which an auditor puts a curator of its own.

A curator *has* records: its one attribute ``_records`` is a :class:`Records`, and nothing else that it keeps can tell
anything of them.  Records answer exactly; they neither charge nor add noise, which is the curator's part.  They are
:class:`~dpforest.curator.memory.InMemoryRecords`, a table in memory, or
:class:`~dpforest.curator.scattered.BlockedRecords`, a table that an engine reads in blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpforest.chance import Chance
from dpforest.curator.filters import FilterLimits
from dpforest.curator.known import CachedCounts
from dpforest.curator.queries import Query
from dpforest.models.forest import Forest
from dpforest.privacy import Ledger

if TYPE_CHECKING:
    from dpforest.curator import Curator

__all__ = ["Door", "MaterializedRecords", "Records"]


class Records(Protocol):
    """Exact answers about records, and the ways in which records are shared among trees or weighed.

    Answers are whole numbers, so that those for the parts of a table add up to the answer for all of it.

    Attributes
    ----------
    n_records : int
        Of the table; of a bootstrap, as many as were drawn from.
    known : cache of counts
        What the curator asked for before and still holds: forgotten where records are shared or weighed
        anew.
    cells : int
        Whole numbers that one answer may hold; the curator asks for a larger one in parts.
    """

    known: CachedCounts
    cells: int

    @property
    def n_records(self) -> int: ...

    def answer(self, query: Query) -> np.ndarray:
        """The exact answer to a query."""
        ...

    # -- who sees which record, and what it counts for -------------------------------------------------------

    def assign(self, n_trees: int, chance: Chance) -> None:
        """Give each record to one tree, by a coin of its own."""

    def partition_records(self, n_parts: int, chance: Chance) -> None:
        """Give each record to one part, by a coin of its own."""

    def poisson_bootstrap(self, n_trees: int, chance: Chance) -> None:
        """Give each tree a Poisson number of copies of each record, drawn for that record alone."""

    def add_scores(self, forest: Forest, values: np.ndarray) -> None:
        """Add what the leaves of released trees say of each record to what earlier ones said."""

    def weigh_records(self, class_weights: Any, rule: str) -> None:
        """Let each record count for its weight under what was heard of it so far."""

    def open_filter(self, limits: FilterLimits) -> None:
        """Begin an individual filter, of which every record has paid nothing."""

    def join_round(self, tree: Forest | None, said: np.ndarray | None) -> None:
        """Add what a released tree says to what was heard, and let each record join the round that can pay for it."""

    def leave_round(self) -> None:
        """The round was answered: until the next one no record adds anything."""

    def limits(self) -> FilterLimits:
        """Of the filter that was opened."""
        ...

    def whole(self) -> MaterializedRecords:
        """The records as a table in memory, for what looks at all of them at once.

        Raises
        ------
        TableError
            Where they are none.
        """
        ...


class MaterializedRecords(Records, Protocol):
    """Records that can be looked at all at once, as published algorithms do.

    Attributes
    ----------
    assignment : ndarray of int32, or None
        Tree of each record; None while every tree sees all.
    """

    assignment: np.ndarray | None

    def split_equally(self, n_trees: int, chance: Chance) -> None:
        """Give each tree a random subset, all of one size or one less."""

    def bootstrap(self, n_trees: int, chance: Chance) -> None:
        """Give each tree as many draws with replacement as there are records."""

    def hold_out(self, share: float, chance: Chance) -> None:
        """Put a random share of the records aside, but never all of them."""

    # AdaBoost's weights: they add up to 1 over all records, and each round changes them all

    def draw_by_weight(self, chance: Chance) -> None:
        """Draw with replacement as many records as there are, each by its weight; answers are about those drawn."""

    def count_by_weight(self) -> None:
        """Let each record count for its weight over the largest one."""

    def boost(self, tree: Forest, alpha: float) -> None:
        """Multiply a weight by ``exp(alpha)`` where the tree is wrong, else by ``exp(-alpha)``; then normalise."""


class Door(Protocol):
    """What makes the curator of a fit: :class:`~dpforest.curator.Curator` itself, or what an auditor puts in its place.

    :meth:`dpforest.learners.base.PrivateEstimator.replay` takes one as ``door``.  A subclass of the curator can look
    over its shoulder: it overrides public methods to note what is asked and answered, or puts other records into
    ``_records`` after ``super().__init__``.  The learner and the mechanisms under audit stay those that ship.
    """

    def __call__(
        self,
        codes: np.ndarray,
        labels: np.ndarray,
        n_classes: int,
        cardinalities: np.ndarray,
        *,
        chance: Chance,
        ledger: Ledger,
        n_jobs: int = 1,
    ) -> Curator: ...
