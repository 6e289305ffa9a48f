"""Reads without a charge, as published algorithms make them: the answer is exact, and the ledger records a leak."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest.curator.base import Base
from dpforest.curator.protocol import MaterializedRecords
from dpforest.curator.queries import CodeCounts, Query
from dpforest.messages import shown
from dpforest.models.forest import Forest
from dpforest.privacy import ADD_REMOVE, claim

__all__ = ["Leak", "Peeks"]

#: What is read without a charge, and the line of the paper that reads it.
Leak = tuple[str, str]


class Peeks(Base):
    """The reads that are not charged."""

    @claim("def-leak")
    def peek(self, query: Query, leak: Leak) -> np.ndarray:
        """The *exact* answer to a query, as a published algorithm reads it; the ledger records a leak.

        Parameters
        ----------
        query : Query
            Any one of :mod:`dpforest.curator.queries`.
        leak : tuple of str and str
            What is read, and the line of the paper that reads it.
        """
        if not isinstance(query, Query):
            raise TypeError(f"a peek needs a query of dpforest.curator.queries, not {shown(query)}")
        what, where = leak
        exact = self._exact(query)
        self._ledger.leak(what, where)
        return exact

    def peek_codes(self, splits: Any, nodes: np.ndarray, leak: Leak) -> np.ndarray:
        """Which codes of each feature *occur* in each node, bool, (n_nodes, n_codes), in parts that fit; a leak."""
        occur = np.zeros((len(nodes), int(self._offsets[-1])), dtype=bool)
        for part in self._batches(*occur.shape):
            occur[part] = self.peek(CodeCounts(splits, nodes[part]), leak) > 0
        return occur

    def size(self, leak: Leak) -> int:
        """The number of records: public under replace-one; under add-remove the ledger records a leak."""
        if self._ledger.relation == ADD_REMOVE:
            self._ledger.leak(*leak)
        return self._records.n_records

    # -- AdaBoost as published: weights that are shares of all records ------------------------------------------

    def draw_by_weight(self, leak: Leak) -> None:
        """Draw, with replacement, as many records as there are, each by its share of the weights; a leak.

        Until the next draw every query reads the records drawn.
        """
        self._uncharged(leak).draw_by_weight(self._chance)

    def count_by_share(self, leak: Leak) -> None:
        """Let each record count for its weight over the largest one, in steps of ``1 / unit``; a leak."""
        self._uncharged(leak).count_by_weight()
        self._count_in_steps()

    @claim("cex-normalised-weights")
    def boost(self, tree: Forest, alpha: float, leak: Leak) -> None:
        """AdaBoost's step: ``exp(alpha)`` for a record that the tree gets wrong, ``exp(-alpha)`` for one that it gets
        right, and all weights divided by their sum; a leak, though nothing is answered.
        """
        self._uncharged(leak).boost(tree, alpha)

    def _uncharged(self, leak: Leak) -> MaterializedRecords:
        """All records as a table in memory, and a leak in the ledger; an error, and no leak, where they are none."""
        records = self._records.whole()  # raises before anything is read
        self._ledger.leak(*leak)
        return records
