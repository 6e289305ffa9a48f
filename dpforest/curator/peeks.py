"""Unpaid reads, as published algorithms make them: the answer is exact, and the ledger records a leak."""

from __future__ import annotations

import numpy as np

from dpforest.arithmetic import exp
from dpforest.curator.records import Records
from dpforest.curator.weights import weight_levels
from dpforest.privacy import ADD_REMOVE, claim

__all__ = ["Peeks"]


class Peeks(Records):
    """The reads that nobody pays for."""

    _shares: np.ndarray | None = None  # AdaBoost's weights of the records, which add up to 1
    _pool: tuple[np.ndarray, np.ndarray] | None = None  # codes and labels that rounds draw from

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

    @claim("cex-exact-gini")
    def peek_histograms(self, splits, nodes, features, *, what: str, where: str, parts: bool = False) -> np.ndarray:
        """The *exact* counts of each class at each code of each node's ``features``; a leak.

        Parameters
        ----------
        features : ndarray of bool, shape (n_nodes, n_features)
        parts : bool
            Whether each part of the records is counted by itself.

        Returns
        -------
        ndarray, shape (n_nodes, sum of the cardinalities, n_classes), or (..., n_parts, n_classes)
            Records count by their weight.  The codes of feature f begin at the sum of the cardinalities before it;
            what was not asked for is 0.
        """
        self._ledger.leak(what, where)
        counts = self._in_units(self._histograms(splits, nodes, features, parts))
        return counts.reshape(*counts.shape[:2], self.n_parts, self.n_classes) if parts else counts

    # -- AdaBoost as published: weights that are shares of all records ------------------------------------------

    @claim("cex-holdout-pruning")
    def peek_held_out(self, splits, nodes, *, what: str, where: str) -> np.ndarray:
        """The *exact* class counts of each node among the records that were put aside; a leak."""
        self._ledger.leak(what, where)
        return self._held_counts(splits, nodes)

    def draw_by_weight(self, *, what: str, where: str) -> None:
        """Draw, with replacement, as many records as there are, each by its share of the weights; a leak.

        Until the next draw every query reads the records drawn.
        """
        self._ledger.leak(what, where)
        codes, labels = self._records()
        rows = self._chance.weighted(self._weight_shares(), self._size) if self._size else np.arange(0)
        self._codes, self._labels = np.ascontiguousarray(codes[:, rows]), labels[rows]
        self._known.forget()

    def count_by_share(self, *, what: str, where: str) -> None:
        """Let each record count for its weight over the largest one, in steps of ``1 / unit``; a leak."""
        self._ledger.leak(what, where)
        shares = self._weight_shares()
        self._count_by(np.rint(shares / shares.max(initial=0.0) * weight_levels(self.n_classes)).astype(np.int64))

    @claim("cex-max-weight")
    def peek_largest_weight(self, *, what: str, where: str) -> float:
        """The largest weight of a record, all of them adding up to 1, and 1 where there is none; a leak."""
        self._ledger.leak(what, where)
        return float(self._weight_shares().max()) if self._size else 1.0

    @claim("cex-raw-alpha")
    def peek_error(self, tree, *, what: str, where: str) -> float:
        """The *exact* share of the weights that lies on records for which a tree does not vote; a leak.

        Parameters
        ----------
        tree : Forest
            Its leaves hold one vote for a class.
        """
        self._ledger.leak(what, where)
        return float(self._weight_shares()[~self._hits(tree, *self._records())].sum())

    @claim("cex-normalised-weights")
    def peek_boost(self, tree, alpha: float, *, what: str, where: str) -> None:
        """AdaBoost's step: ``exp(alpha)`` for a record that the tree gets wrong, ``exp(-alpha)`` for one that it gets
        right, and all weights divided by their sum; a leak, though nothing is answered.
        """  # fmt: skip
        self._ledger.leak(what, where)
        weights = self._weight_shares() * np.where(self._hits(tree, *self._records()), exp(-alpha), exp(alpha))
        self._shares = weights / weights.sum()

    def _records(self) -> tuple[np.ndarray, np.ndarray]:
        """The records that the weights speak of, whatever was drawn from them."""
        self._pool = self._pool or (self._codes, self._labels)
        return self._pool

    def _weight_shares(self) -> np.ndarray:
        if self._shares is None:
            self._shares = np.full(self._size, 1 / max(self._size, 1))
        return self._shares
