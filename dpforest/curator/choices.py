"""Selections: a feature, a cut or a label chosen by its score, and paid for."""

from __future__ import annotations

import numpy as np

from dpforest import mechanisms, scores
from dpforest.curator.records import Records
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, claim

__all__ = ["CALIBRATIONS", "STOP", "Choices"]

#: What a selection answers for the candidate "do not split".
STOP = -1

#: How a selection's budget becomes a rate: by the score's range under the ledger's relation (proved), or by twice
#: its sensitivity, as the papers write (:prf:ref:`thm-selection-range`).
CALIBRATIONS = ("range", "sensitivity")


class Choices(Records):
    """The queries that choose."""

    @claim("lem-stop-candidate")
    def choose_feature(
        self, splits, nodes, scopes, allowed, epsilon, *, score, mechanism, calibration="range",
        stop_margin=None, n_max=np.inf,
    ) -> np.ndarray:  # fmt: skip
        """Choose for each node the feature to split on, one child per code, or to stop.

        Parameters
        ----------
        allowed : ndarray of bool, shape (n_nodes, n_features)
            Candidates of each node; at least one per node.
        epsilon : float or ndarray
            Budget of each node's selection.
        score : Score
            Of :mod:`dpforest.scores`, on counts (children, classes).
        mechanism : {"permute-and-flip", "exponential"}
        calibration : {"range", "sensitivity"}
        stop_margin : float or None
            If given, *stop* is a candidate too.  Its score is ``score.rest`` of the node plus the public constant
            ``stop_margin / rate``, so that only nodes whose splits cannot be told apart by the noise tend to stop.
        n_max : float
            Public cap on the number of records, for scores whose range depends on it; more records raise.

        Returns
        -------
        ndarray of int, shape (n_nodes,)
            Feature index, or ``STOP``.

        Guarantee
        ---------
        ``epsilon`` per node under the ledger's relation when calibrated by range; the ledger is charged
        ``rate * R`` under each relation (:prf:ref:`thm-selection-range`, :prf:ref:`lem-stop-candidate`).
        """
        n_max = _cap(score, n_max, stop_margin)
        rate = self._rate(score, epsilon, calibration, n_max, len(nodes))
        utility = np.full((len(nodes), len(self.cardinalities) + 1), -np.inf)
        counts = self._weights(splits, nodes)
        # an empty node scores the same on every feature; most nodes of a private tree are empty
        utility[:, 1:][allowed] = score(np.zeros((1, self.n_classes)))
        occupied = np.flatnonzero(counts.any(axis=1))
        for part in self._parts(len(occupied), int(self._offsets[-1]) * self.n_classes):
            few = occupied[part]
            histograms = self._histograms(splits, nodes[few], allowed[few])
            utility[few, 1:] = self._feature_scores(histograms, allowed[few], score)
        if stop_margin is not None:
            utility[:, 0] = score.rest(counts) + _head_start(stop_margin, rate)
        return STOP + self._select(scopes, utility, rate, score, n_max, f"choose a feature by {score.name}", mechanism)

    @claim("thm-interval-exponential")
    def choose_cut(
        self, splits, nodes, scopes, allowed, epsilon, *, score, mechanism, calibration="range",
        stop_margin=None, n_max=np.inf,
    ) -> np.ndarray:  # fmt: skip
        """Choose for each node one of the cuts of its features, or a split with one child per code, or to stop.

        Parameters
        ----------
        allowed : ndarray of bool, shape (n_nodes, sum of the cardinalities)
            Candidates of each node; at least one per node.  The columns of a feature follow those of the features
            before it: the cut after code 0, after code 1, and so on; after the last code nothing is left to cut off,
            and the column stands for the split with one child per code.

        Returns
        -------
        ndarray of int, shape (n_nodes,)
            Column of the split, or ``STOP``.

        Notes
        -----
        The other parameters and the guarantee are those of :meth:`choose_feature`.  On a grid of equal steps this is
        the exponential mechanism on an interval, its pieces weighted by length (:prf:ref:`thm-interval-exponential`).
        """
        n_max = _cap(score, n_max, stop_margin)
        rate = self._rate(score, epsilon, calibration, n_max, len(nodes))
        features = np.logical_or.reduceat(allowed, self._offsets[:-1], axis=1)
        width = int(allowed.sum(axis=1).max(initial=0))
        columns = np.argsort(~allowed, axis=1, kind="stable")[:, :width]  # each node's candidates come first
        choice = np.empty(len(nodes), dtype=np.int64)
        for part in self._parts(len(nodes), int(self._offsets[-1]) * self.n_classes):
            scored = self._cut_scores(self._histograms(splits, nodes[part], features[part]), features[part], score)
            utility = np.full((len(scored), width + 1), -np.inf)
            utility[:, 1:] = np.take_along_axis(np.where(allowed[part], scored, -np.inf), columns[part], axis=1)
            if stop_margin is not None:
                counts = self._weights(splits, nodes[part])
                utility[:, 0] = score.rest(counts) + _head_start(stop_margin, rate[part])
            query = f"choose a cut by {score.name}"
            choice[part] = self._select(scopes[part], utility, rate[part], score, n_max, query, mechanism)
        columns = np.concatenate([np.full((len(nodes), 1), STOP), columns], axis=1)
        return columns[np.arange(len(nodes)), choice]

    def choose_candidate(
        self, splits, nodes, scopes, features, masks, epsilon, *, score, mechanism, calibration="range",
        stop_margin=None, n_max=np.inf,
    ) -> np.ndarray:  # fmt: skip
        """Choose for each node one of K binary candidates, or to stop.

        Parameters
        ----------
        features : ndarray of int32, shape (n_nodes, K)
        masks : ndarray of uint64, shape (n_nodes, K, 4)
            Which codes of the feature go to the second child, as 256 bits.

        Returns
        -------
        ndarray of int, shape (n_nodes,)
            Index of the candidate, or ``STOP``.

        Notes
        -----
        The other parameters and the guarantee are those of :meth:`choose_feature`.
        """
        n_max = _cap(score, n_max, stop_margin)
        rate = self._rate(score, epsilon, calibration, n_max, len(nodes))
        counts = self._candidate_counts(splits, nodes, features, masks, score.n_moments)
        utility = np.full((len(nodes), features.shape[1] + 1), -np.inf)
        utility[:, 1:] = score(counts)
        if stop_margin is not None:
            utility[:, 0] = score.rest(counts[:, 0].sum(axis=1)) + _head_start(stop_margin, rate)
        return STOP + self._select(scopes, utility, rate, score, n_max, f"choose a cut by {score.name}", mechanism)

    def choose_label(self, splits, nodes, scopes, epsilon, *, mechanism, calibration="range") -> np.ndarray:
        """Choose the label of each leaf, with its class counts as scores.  Returns class codes.

        Guarantee
        ---------
        ``epsilon`` per leaf under the ledger's relation when calibrated by range.  Counts have R = 1 under
        add-remove and 2 under replace-one (:prf:ref:`thm-majority`).
        """
        rate = self._rate(scores.majority, epsilon, calibration, np.inf, len(nodes))
        counts = self._weights(splits, nodes).astype(float)
        return self._select(scopes, counts, rate, scores.majority, np.inf, "choose the label of a leaf", mechanism)

    def _rate(self, score, epsilon, calibration, n_max, size) -> np.ndarray:
        if calibration not in CALIBRATIONS:
            raise ValueError(f"calibration must be one of {CALIBRATIONS}, not {calibration!r}")
        if self._weighted is not None and score is scores.normalised_gini:
            raise ValueError("normalised-gini has no proved range where records have weights: use gini")
        if self._n_records() > n_max:  # a broken promise would cost more than epsilon
            raise ValueError(f"there are more records than the public cap n_max = {n_max} promised")
        if calibration == "range":
            unit = score.range(self._ledger.relation, n_max)
        else:
            unit = 2 * score.sensitivity(self._ledger.relation, n_max)
        return np.broadcast_to(np.asarray(epsilon, dtype=float) / unit, size)

    def _select(self, scopes, utility, rate, score: scores.Score, n_max, query, mechanism) -> np.ndarray:
        """Draw one candidate per row of ``utility`` and charge for it, so that neither happens without the other."""
        choice = mechanisms.select(mechanism, utility, rate, self._chance)
        add_remove, replace_one = (rate * score.range(relation, n_max) for relation in (ADD_REMOVE, REPLACE_ONE))
        self._ledger.charge(scopes, add_remove, replace_one, query, mechanism)
        return choice


def _cap(score: scores.Score, n_max: float, stop_margin) -> float:
    """The cap that calibrates: *stop* attains the supremum of R at any size, so a cap gains nothing beside it."""
    if stop_margin is None or score.needs_cap:
        return n_max
    return np.inf


def _head_start(stop_margin: float, rate: np.ndarray) -> np.ndarray:
    """The public constant in the score of *stop*; without noise it breaks ties, so that an empty node stops."""
    return np.where(np.isinf(rate), np.sign(stop_margin) * 1e-6, stop_margin / rate)
