"""The only code that reads records: the trusted curator of the differential-privacy literature.

A learner hands the curator a *query* about the nodes of its public, growing forest.  The curator asks its records for
exact integers, passes them through a mechanism, writes the charge to the ledger, and returns the private answer alone.
What a published algorithm reads without a charge goes through :meth:`Curator.peek` and the other reads of
:mod:`dpforest.curator.peeks`: the answer is exact, and the ledger records a leak.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from dpforest.chance import Chance
from dpforest.curator.assignment import Sharing
from dpforest.curator.base import Base
from dpforest.curator.choices import CALIBRATIONS, Choices
from dpforest.curator.memory import InMemoryRecords
from dpforest.curator.peeks import Peeks
from dpforest.curator.protocol import Door
from dpforest.curator.scattered import BlockedRecords
from dpforest.curator.selections import STOP, Selection
from dpforest.curator.sums import GAP_SHARE, Sums
from dpforest.curator.weights import FINE, FINEST, WEIGHTS
from dpforest.engines import Table
from dpforest.privacy import Ledger, claim

__all__ = ["CALIBRATIONS", "FINE", "FINEST", "GAP_SHARE", "STOP", "WEIGHTS", "Curator", "Door", "Selection"]


@claim("def-two-doors")
class Curator(Sharing, Choices, Sums, Peeks):
    """Answers queries about records it alone can see: those of a table in memory.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows)
    labels : ndarray of uint8, shape (n_rows,)
        Class codes, or for a regression the target's codes on its public grid.
    n_classes : int
        0 for a regression.
    cardinalities : ndarray of int, shape (n_features,)
        Codes of each feature; public, from the schema.
    chance : Chance
        Where the noise comes from.
    ledger : Ledger
        Where the charges go; its relation is the one that ``"range"`` calibrates for.
    n_jobs : int
        Threads that count.
    ids : ndarray of uint64, shape (n_rows,), or None
        Identity of each record, from which its coins are computed; None for its place in the table.

    Notes
    -----
    There are three ways out: :meth:`noisy` answers a query with noise, :meth:`choose` makes a private choice among
    candidates, and :meth:`peek` reads what a published algorithm reads without a charge.  Queries and candidates are
    public values; those about nodes take ``splits`` (the public forest so far) and ``nodes`` (node ids).
    """

    def __init__(
        self,
        codes: np.ndarray,
        labels: np.ndarray,
        n_classes: int,
        cardinalities: Any,
        *,
        chance: Chance,
        ledger: Ledger,
        n_jobs: int = 1,
        ids: np.ndarray | None = None,
    ) -> None:
        records = InMemoryRecords(codes, labels, n_classes, cardinalities, n_jobs=n_jobs, ids=ids)
        super().__init__(records, n_classes, cardinalities, chance=chance, ledger=ledger, n_jobs=n_jobs)

    @classmethod
    def over(cls, table: Table, n_classes: int, cardinalities: Any, *, chance: Chance, ledger: Ledger) -> Self:
        """A curator of the records of an opened table, which an engine reads in blocks."""
        curator = cls.__new__(cls)
        records = BlockedRecords(table, n_classes, cardinalities)
        Base.__init__(curator, records, n_classes, cardinalities, chance=chance, ledger=ledger)
        return curator
