"""What all of the curator's queries share: the records, the chance, the ledger, and what is public of the records."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest import mechanisms
from dpforest.chance import Chance
from dpforest.curator.protocol import Records
from dpforest.curator.queries import ClassCounts, Query
from dpforest.curator.weights import weight_levels
from dpforest.privacy import Ledger

__all__ = ["Base"]


class Base:
    """The records of a curator, exact answers about them, and noise together with its charge."""

    #: The only attribute that depends on the records.
    _records: Records

    def __init__(
        self, records: Records, n_classes: int, cardinalities: Any, *, chance: Chance, ledger: Ledger, n_jobs: int = 1
    ) -> None:
        self._chance, self._ledger, self._n_jobs = chance, ledger, n_jobs
        self._records = records
        self.n_classes = int(n_classes)
        self.cardinalities = np.asarray(cardinalities, dtype=np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self.cardinalities)])
        #: Steps in which a record of full weight counts; 1 while all records count alike.
        self.unit = 1
        self._has_weights = False
        #: Parts of the records, see :meth:`partition_records`.
        self.n_parts = 1

    def _count_in_steps(self) -> None:
        """Note that from now on records count by their weight, in steps of ``1 / unit``."""
        self.unit, self._has_weights = weight_levels(self.n_classes), True

    def _exact(self, query: Query) -> np.ndarray:
        """The exact answer, from the cache if it is there; it may leave the curator only with noise, or as a leak."""
        known = query.recall(self._records.known, self.n_classes)
        return self._records.answer(query) if known is None else known

    def _class_counts(self, splits: Any, nodes: np.ndarray) -> np.ndarray:
        """Exact class counts, in steps of ``1 / unit``."""
        return self._exact(ClassCounts(splits, nodes))

    def _add_noise(
        self, exact: np.ndarray, rate: np.ndarray, step: float, scopes: Any, query: str, replaced: float = 2.0
    ) -> np.ndarray:
        """Add noise to sums, and charge for it, so that neither happens without the other.

        Parameters
        ----------
        exact : ndarray of int64, shape (n_nodes, ...)
            In each node a record adds a vector of L1 norm, and so of L2 norm, of at most ``step``; none is negative,
            or ``replaced`` is 4.
        rate : ndarray of float64, shape (n_nodes,)
            The cost of each node where a record is added or removed: a loss, or the rho of a ledger with a delta.
        step : float
        scopes : array-like of int
            Ledger scope of each node.
        query : str
            What the ledger calls the query.
        replaced : float
            Cost where a record is replaced and stays in the node, as a multiple of ``rate``.  It is 2 for vectors that
            are not negative: two of them are at most 2 apart in L1 norm, and in the square of the L2 norm; else 4.

        Returns
        -------
        ndarray of int64, shape of ``exact``
        """
        noisy, name = self._drawn_noise(exact, rate.reshape(-1, *[1] * (exact.ndim - 1)), step)
        self._ledger.charge(scopes, rate, replaced * rate if replaced else 0.0, query, name)
        return noisy

    def _drawn_noise(self, exact: np.ndarray, rate: np.ndarray, step: float) -> tuple[np.ndarray, str]:
        """Sums with noise of these rates per ``step``, and the name of the noise; the caller has to charge."""
        if self._ledger.delta:
            return mechanisms.discrete_gaussian(exact, rate / step**2, self._chance), "discrete Gaussian"
        return mechanisms.two_sided_geometric(exact, rate / step, self._chance), "two-sided geometric"

    def _without_delta(self, query: str) -> None:
        """Refuse a query whose cost under a delta is not proved."""
        if self._ledger.delta:
            raise ValueError(f"no theorem says what it costs to {query} under a delta: leave delta=0")

    def _batches(self, n_nodes: int, cells: int) -> list[slice]:
        """Slices of the nodes, such that no answer has more whole numbers than allowed, at ``cells`` for each node."""
        step = max(1, self._records.cells // max(cells, 1))
        return [slice(start, start + step) for start in range(0, n_nodes, step)]
