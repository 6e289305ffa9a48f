"""Selections: a feature, a cut or a label chosen by its score, and paid for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dpforest import mechanisms, scores
from dpforest.arithmetic.fixed import STEPS, below_best, fixed
from dpforest.counting.threads import check_threads, in_threads
from dpforest.curator.base import Base
from dpforest.curator.known import Split
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, claim

__all__ = ["CALIBRATIONS", "STOP", "Choices"]

#: What a selection answers for the candidate "do not split".
STOP = -1

#: How a selection's budget becomes a rate: by the score's range under the ledger's relation (proved), or by twice
#: its sensitivity, as the papers write (:prf:ref:`thm-selection-range`).
CALIBRATIONS = ("range", "sensitivity")

_WORTH_THREADS = 1 << 18  # cells of histograms that are scored by several threads
_TOGETHER = 1 << 16  # cells that are scored at a time, so that what is made of them stays in the cache


class Choices(Base):
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
        # an empty node scores 0 on every feature; most nodes of a private tree are empty
        utility = np.zeros((2, len(nodes), len(self.cardinalities) + 1), dtype=np.int64)
        counts, parts = self._occupied(splits, nodes)
        histograms = None
        for few in parts:
            del histograms  # before there are others: two parts would take twice the memory
            histograms = self._records.histograms(splits, nodes[few], allowed[few])
            counts[few] = self._of_nodes(histograms, allowed[few])
            utility[:, few, 1:] = self._feature_scores(histograms, allowed[few], score)
        behind = _behind(utility, allowed, counts, score, stop_margin, rate / self.unit)
        query = f"choose a feature by {score.name}"
        choice = STOP + self._select(scopes, behind, rate, score, n_max, query, mechanism)
        split = None
        if len(parts) == 1:  # the histograms of several parts would take too much memory
            split = Split.by_code(len(nodes), parts[0], histograms, self._offsets, choice)
        self._records.known.note(splits, nodes, counts, split)
        return choice

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
        counts = np.zeros((len(nodes), self.n_classes), dtype=np.int64)
        self._charge(scopes, rate, score, n_max, f"choose a cut by {score.name}", mechanism)
        found = []
        for part in self._parts(len(nodes), int(self._offsets[-1]) * self.n_classes * score.parts):
            histograms = self._records.histograms(splits, nodes[part], features[part], score.parts > 1)
            scored = self._cut_scores(histograms, allowed[part], score)
            own = self._of_nodes(histograms, features[part])
            counts[part] = self._of_all_parts(own)
            utility = np.zeros((2, len(own), width + 1), dtype=np.int64)
            utility[:, :, 1:] = np.take_along_axis(scored, columns[None, part], axis=2)
            able = np.take_along_axis(allowed[part], columns[part], axis=1)
            behind = _behind(utility, able, own, score, stop_margin, rate[part] / self.unit)
            taken = self._drawn(behind, rate[part], mechanism)
            each = np.arange(len(taken))
            choice[part] = np.where(taken > 0, columns[part][each, np.maximum(taken, 1) - 1], STOP)
            found.append(Split.by_column(self._of_all_parts(histograms), self._offsets, choice[part]))
        self._records.known.note(splits, nodes, counts, Split.join(found))
        return choice

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
        known = self._records.known.recall(splits, nodes, score.n_moments or self.n_classes)
        counts = self._records.candidate_counts(splits, nodes, features, masks, score.n_moments, known)
        own = counts[:, 0].sum(axis=1)
        utility = np.zeros((2, len(nodes), features.shape[1] + 1), dtype=np.int64)
        utility[:, :, 1:] = score.exact(counts)
        behind = _behind(utility, np.ones(features.shape, dtype=bool), own, score, stop_margin, rate / self.unit)
        query = f"choose a cut by {score.name}"
        choice = STOP + self._select(scopes, behind, rate, score, n_max, query, mechanism)
        rows, taken = np.arange(len(nodes)), np.maximum(choice, 0)
        self._records.known.note(
            splits, nodes, own,
            Split(
                np.where(choice == STOP, -1, features[rows, taken]), np.zeros(len(nodes), dtype=bool),
                masks[rows, taken], np.full(len(nodes), 2), counts[rows, taken].reshape(-1, own.shape[1]),
            ),
        )  # fmt: skip
        return choice

    def choose_label(self, splits, nodes, scopes, epsilon, *, mechanism, calibration="range") -> np.ndarray:
        """Choose the label of each leaf, with its class counts as scores.  Returns class codes.

        Guarantee
        ---------
        ``epsilon`` per leaf under the ledger's relation when calibrated by range.  Counts have R = 1 under
        add-remove and 2 under replace-one (:prf:ref:`thm-majority`).
        """
        rate = self._rate(scores.majority, epsilon, calibration, np.inf, len(nodes))
        counts = self._class_counts(splits, nodes)
        behind = below_best(fixed(counts), np.ones(counts.shape, dtype=bool))
        return self._select(scopes, behind, rate, scores.majority, np.inf, "choose the label of a leaf", mechanism)

    def _occupied(self, splits, nodes) -> tuple[np.ndarray, list[np.ndarray]]:
        """Class counts of the nodes, 0 where they are not known yet, and which nodes to look at, some at a time."""
        cells = int(self._offsets[-1]) * self.n_classes
        counts = self._records.known.recall(splits, nodes, self.n_classes)
        if counts is None and len(nodes) * cells <= self._records.cells:  # then one look will tell
            return np.zeros((len(nodes), self.n_classes), dtype=np.int64), [np.arange(len(nodes))]
        if counts is None:
            counts = self._records.class_counts(splits, nodes)
        few = np.flatnonzero(counts.any(axis=1))
        return counts, [few[part] for part in self._parts(len(few), cells)]

    def _feature_scores(self, histograms, allowed, score) -> np.ndarray:
        """Exact score of the multiway split of each node on each allowed feature, (2, n_nodes, n_features)."""
        utility = np.zeros((2, *allowed.shape), dtype=np.int64)
        tasks = []
        for feature in np.flatnonzero(allowed.any(axis=0)).tolist():
            columns = slice(self._offsets[feature], self._offsets[feature + 1])
            step = max(1, _TOGETHER // histograms[0, columns].size)
            tasks += [(feature, columns, slice(first, first + step)) for first in range(0, len(histograms), step)]

        def fill(tasks):
            for feature, columns, rows in tasks:
                utility[:, rows, feature] = score.exact(histograms[rows, columns])

        threads = check_threads(self._n_jobs) if histograms.size > _WORTH_THREADS else 1
        in_threads(fill, tasks, threads)
        return utility

    def _cut_scores(self, histograms, allowed, score) -> np.ndarray:
        """Exact scores of the allowed columns: cuts, and last of a feature its split with a child per code."""
        utility = np.zeros((2, *allowed.shape), dtype=np.int64)
        for first, last in pairwise(self._offsets):
            mine = allowed[:, first:last]
            if not mine.any():
                continue
            counts = histograms[:, first:last]
            below = counts.cumsum(axis=1)[:, :-1]
            above = counts.sum(axis=1, keepdims=True) - below
            utility[:, :, first : last - 1] = score.exact(np.stack([below, above], axis=2))
            if mine[:, -1].any():
                utility[:, :, last - 1] = score.exact(counts)
        return utility

    def _of_nodes(self, histograms, allowed) -> np.ndarray:
        """Counts of the nodes, from the histogram of one feature of each."""
        counts, first = np.zeros((len(histograms), histograms.shape[2]), dtype=np.int64), allowed.argmax(axis=1)
        for feature in np.unique(first):
            rows = first == feature
            counts[rows] = histograms[rows, self._offsets[feature] : self._offsets[feature + 1]].sum(axis=1)
        return counts

    def _of_all_parts(self, counts) -> np.ndarray:
        """Class counts, from those of each part side by side."""
        return counts.reshape(*counts.shape[:-1], -1, self.n_classes).sum(axis=-2)

    def _rate(self, score, epsilon, calibration, n_max, size) -> np.ndarray:
        """The rate of each node, where a record counts for 1."""
        if calibration not in CALIBRATIONS:
            raise ValueError(f"calibration must be one of {CALIBRATIONS}, not {calibration!r}")
        if self._has_weights and not score.homogeneous:
            raise ValueError(f"{score.name} has no proved range where records have weights: use gini")
        if self._records.n_records > n_max:  # a broken promise would cost more than epsilon
            raise ValueError(f"there are more records than the public cap n_max = {n_max} promised")
        if calibration == "range":
            spread = score.exact_range(self._ledger.relation, n_max)
        else:
            spread = 2 * score.sensitivity(self._ledger.relation, n_max) * score.parts
        if self._ledger.relation == REPLACE_ONE:
            # below a split that parts two replaced records, one tree pays twice what it costs that a record comes
            spread = max(spread, 2 * score.exact_range(ADD_REMOVE, n_max))
        return np.broadcast_to(np.asarray(epsilon, dtype=float) / spread, size)

    def _select(self, scopes, behind, rate, score: scores.Score, n_max, query, mechanism) -> np.ndarray:
        """Draw one candidate per row of ``behind`` and charge for it, so that neither happens without the other."""
        choice = self._drawn(behind, rate, mechanism)
        self._charge(scopes, rate, score, n_max, query, mechanism)
        return choice

    def _drawn(self, behind, rate, mechanism) -> np.ndarray:
        """One candidate of each row, by how many steps it is behind; a record counts for ``unit * STEPS``."""
        return mechanisms.select(mechanism, behind, rate / (self.unit * STEPS), self._chance)

    def _charge(self, scopes, rate, score: scores.Score, n_max, query, mechanism) -> None:
        add_remove, replace_one = (rate * score.exact_range(relation, n_max) for relation in (ADD_REMOVE, REPLACE_ONE))
        self._ledger.charge(scopes, add_remove, replace_one, query, mechanism)


@claim("thm-exact-scores")
def _behind(utility, allowed, counts, score: scores.Score, stop_margin, rate) -> np.ndarray:
    """How far each candidate is behind the best of its node: the first column is *stop*, the others are ``allowed``."""
    able = np.zeros(utility.shape[1:], dtype=bool)
    able[:, 1:] = allowed
    if stop_margin is not None:
        able[:, 0] = True
        utility[:, :, 0] = score.exact_rest(counts) + fixed(_head_start(stop_margin, rate))
    return below_best(utility, able)


def _cap(score: scores.Score, n_max: float, stop_margin) -> float:
    """The cap that calibrates: *stop* attains the supremum of R at any size, so a cap gains nothing beside it."""
    if stop_margin is None or score.needs_cap:
        return n_max
    return np.inf


def _head_start(stop_margin: float, rate: np.ndarray) -> np.ndarray:
    """The public constant in the score of *stop*; without noise it breaks ties, so that an empty node stops."""
    return np.where(np.isinf(rate), np.sign(stop_margin) * 1e-6, stop_margin / rate)
