"""Unpaid reads, as published algorithms make them: the answer is exact, and the ledger records a leak."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest.curator.base import Base
from dpforest.curator.protocol import MaterializedRecords
from dpforest.curator.queries import CodeCounts, Histograms, Moments
from dpforest.models.forest import Forest
from dpforest.privacy import ADD_REMOVE, claim

__all__ = ["Peeks"]


class Peeks(Base):
    """The reads that nobody pays for."""

    @claim("def-leak")
    def peek(self, splits: Any, nodes: np.ndarray, *, what: str, where: str) -> np.ndarray:
        """The *exact* class counts of each node, as a published algorithm reads them; the ledger records a leak.

        Parameters
        ----------
        what, where : str
            What is read, and the line of the paper that reads it.
        """
        self._ledger.leak(what, where)
        return self._class_counts(splits, nodes)

    def peek_moments(self, splits: Any, nodes: np.ndarray, *, what: str, where: str) -> np.ndarray:
        """The *exact* count, sum and sum of squares of each node's targets, in grid steps; a leak.

        Returns
        -------
        ndarray of int64, shape (n_nodes, 3)
        """
        self._ledger.leak(what, where)
        return self._exact(Moments(splits, nodes, 3))

    def peek_codes(self, splits: Any, nodes: np.ndarray, *, what: str, where: str) -> np.ndarray:
        """Which codes of each feature *occur* among each node's records; a leak.

        Returns
        -------
        ndarray of bool, shape (n_nodes, sum of the cardinalities)
            The codes of feature f begin at the sum of the cardinalities before it.
        """
        self._ledger.leak(what, where)
        occur = np.zeros((len(nodes), int(self._offsets[-1])), dtype=bool)
        for part in self._parts(*occur.shape):
            occur[part] = self._exact(CodeCounts(splits, nodes[part])) > 0
        return occur

    def size(self, *, what: str, where: str) -> int:
        """The number of records: public under replace-one; under add-remove the ledger records a leak."""
        if self._ledger.relation == ADD_REMOVE:
            self._ledger.leak(what, where)
        return self._records.n_records

    @claim("cex-exact-gini")
    def peek_histograms(
        self, splits: Any, nodes: np.ndarray, features: np.ndarray, *, what: str, where: str, parts: bool = False
    ) -> np.ndarray:
        """The *exact* counts of each class at each code of each node's ``features``; a leak.

        Parameters
        ----------
        features : ndarray of bool, shape (n_nodes, n_features)
        parts : bool
            Whether each part of the records is counted by itself.

        Returns
        -------
        ndarray, shape (n_nodes, sum of the cardinalities, n_classes), or (..., n_parts, n_classes)
            Records count by their weight, from 0 to 1.  The codes of feature f begin at the sum of the cardinalities
            before it; what was not asked for is 0.
        """
        self._ledger.leak(what, where)
        counts = self._exact(Histograms(splits, nodes, features, parts))
        counts = counts if self.unit == 1 else counts / self.unit
        return counts.reshape(*counts.shape[:2], self.n_parts, self.n_classes) if parts else counts

    # -- AdaBoost as published: weights that are shares of all records ------------------------------------------

    @claim("cex-holdout-pruning")
    def peek_held_out(self, splits: Any, nodes: np.ndarray, *, what: str, where: str) -> np.ndarray:
        """The *exact* class counts of each node among the records that were put aside; a leak."""
        return self._unpaid(what, where).held_counts(splits, nodes)

    def draw_by_weight(self, *, what: str, where: str) -> None:
        """Draw, with replacement, as many records as there are, each by its share of the weights; a leak.

        Until the next draw every query reads the records drawn.
        """
        self._unpaid(what, where).draw_by_weight(self._chance)

    def count_by_share(self, *, what: str, where: str) -> None:
        """Let each record count for its weight over the largest one, in steps of ``1 / unit``; a leak."""
        self._unpaid(what, where).count_by_weight()
        self._count_in_steps()

    @claim("cex-max-weight")
    def peek_largest_weight(self, *, what: str, where: str) -> float:
        """The largest weight of a record, all of them adding up to 1, and 1 where there is none; a leak."""
        return self._unpaid(what, where).largest_weight()

    @claim("cex-raw-alpha")
    def peek_error(self, tree: Forest, *, what: str, where: str) -> float:
        """The *exact* share of the weights that lies on records for which a tree does not vote; a leak.

        Parameters
        ----------
        tree : Forest
            Its leaves hold one vote for a class.
        """
        return self._unpaid(what, where).error(tree)

    @claim("cex-normalised-weights")
    def peek_boost(self, tree: Forest, alpha: float, *, what: str, where: str) -> None:
        """AdaBoost's step: ``exp(alpha)`` for a record that the tree gets wrong, ``exp(-alpha)`` for one that it gets
        right, and all weights divided by their sum; a leak, though nothing is answered.
        """
        self._unpaid(what, where).boost(tree, alpha)

    def _unpaid(self, what: str, where: str) -> MaterializedRecords:
        """All records at once, and a leak; no leak where they cannot be had."""
        records = self._records.whole()
        self._ledger.leak(what, where)
        return records
