"""The protocol between a curator and its records, and the seam at which an auditor puts a curator of its own.

A curator *has* records: its attribute ``_records`` is a :class:`Records`, and no other attribute depends on them.
Records answer exactly; they neither charge nor add noise, which is the curator's part.  They are
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
        Exact answers that need no other pass: emptied where records are shared or weighed anew.
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
        """Add the votes of released trees, (n_nodes, n_classes), to each record's scores."""

    def weigh_records(self, class_weights: Any, rule: str) -> None:
        """Set the weight of each record, a function of its scores so far."""

    def open_filter(self, limits: FilterLimits) -> None:
        """Begin an individual filter, for which no record has paid yet."""

    def join_round(self, tree: Forest | None, said: np.ndarray | None) -> None:
        """Add a released tree's votes ``said`` to the scores, and let each record that can pay join the round."""

    def leave_round(self) -> None:
        """End the round: until the next one no record contributes."""

    def limits(self) -> FilterLimits:
        """Public parameters of the filter that was opened."""
        ...

    def whole(self) -> MaterializedRecords:
        """The records as a table in memory, for what looks at all of them at once.

        Raises
        ------
        TableError
            Where an engine reads the table in blocks.
        """
        ...


class MaterializedRecords(Records, Protocol):
    """Records that can be read all at once, as published algorithms do.

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

    :meth:`dpforest.learners.base.PrivateEstimator.replay` takes one as ``door``.  A subclass of the curator can record
    everything: it overrides public methods to note what is asked and answered, or puts other records into
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
