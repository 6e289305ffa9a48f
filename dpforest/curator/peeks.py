"""Unpaid reads, as published algorithms make them: the answer is exact, and the ledger records a leak."""

from __future__ import annotations

import numpy as np

from dpforest.curator.records import Records
from dpforest.privacy import ADD_REMOVE, claim

__all__ = ["Peeks"]


class Peeks(Records):
    """The reads that nobody pays for."""

    @claim("def-leak")
    def peek(self, splits, nodes, *, what: str, where: str) -> np.ndarray:
        """The *exact* class counts of each node, as a published algorithm reads them; the ledger records a leak.

        Parameters
        ----------
        what, where : str
            What is read, and the line of the paper that reads it.
        """
        self._ledger.leak(what, where)
        return self._class_counts(splits, nodes)

    def peek_moments(self, splits, nodes, *, what: str, where: str) -> np.ndarray:
        """The *exact* count, sum and sum of squares of each node's targets, in grid steps; a leak.

        Returns
        -------
        ndarray of int64, shape (n_nodes, 3)
        """
        self._ledger.leak(what, where)
        return self._moments(splits, nodes, 3)

    def peek_codes(self, splits, nodes, *, what: str, where: str) -> np.ndarray:
        """Which codes of each feature *occur* among each node's records; a leak.

        Returns
        -------
        ndarray of bool, shape (n_nodes, sum of the cardinalities)
            The codes of feature f begin at the sum of the cardinalities before it.
        """
        self._ledger.leak(what, where)
        return self._occurring(splits, nodes)

    def size(self, *, what: str, where: str) -> int:
        """The number of records: public under replace-one; under add-remove the ledger records a leak."""
        if self._ledger.relation == ADD_REMOVE:
            self._ledger.leak(what, where)
        return self._n_records()
