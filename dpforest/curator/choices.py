"""Selections: a feature, a cut or a label chosen by its score, and paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dpforest import mechanisms, scores
from dpforest.arithmetic.fixed import STEPS, below_best, fixed
from dpforest.counting.threads import check_threads, in_threads
from dpforest.curator.base import Base
from dpforest.curator.known import Split
from dpforest.curator.queries import CandidateCounts, ClassCounts, CrossSums, Histograms
from dpforest.curator.weights import FINE, FINEST
from dpforest.messages import shown
from dpforest.models.crossings import Crossings
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, claim

__all__ = ["CALIBRATIONS", "STOP", "Choices", "Selection"]

#: What a selection answers for the candidate "do not split".
STOP = -1

#: How a selection's budget becomes a rate: by the score's range under the ledger's relation (proved), or by twice
#: its sensitivity, as the papers write (:prf:ref:`thm-selection-range`).
CALIBRATIONS = ("range", "sensitivity")

_TOGETHER = 1 << 16  # counts that are scored at a time, so that what is made of them stays in the cache


@dataclass(frozen=True)
class Selection:
    """How a selection is made.

    Attributes
    ----------
    score : Score
        The utility of a candidate, of :mod:`dpforest.scores`; a label's is its number of records, whatever stands here.
    mechanism : {"permute-and-flip", "exponential"}
    calibration : {"range", "sensitivity"}
        Rate ``epsilon / R``, or the papers' ``epsilon / (2 sensitivity)``.
    stop_margin : float or None
        If given, *stop* is a candidate too.  Its score is ``score.rest`` of the node plus the public constant
        ``stop_margin / rate``, so that only nodes whose splits cannot be told apart by the noise tend to stop.
    n_max : float
        Public cap on the number of records, for scores whose range depends on it; more records raise.
    """

    score: scores.Score
    mechanism: str = "permute-and-flip"
    calibration: str = "range"
    stop_margin: float | None = None
    n_max: float = np.inf

    @property
    def cap(self) -> float:
        """The cap that calibrates: *stop* attains the supremum of R at any size, so a cap gains nothing beside it."""
        return self.n_max if self.stop_margin is None or self.score.needs_cap else np.inf


class Choices(Base):
    """The queries that choose."""

    @claim("lem-stop-candidate")
    def choose_feature(
        self,
        splits: Any,
        nodes: np.ndarray,
        scopes: np.ndarray,
        allowed: np.ndarray,
        epsilon: float | np.ndarray,
        how: Selection,
    ) -> np.ndarray:
        """Choose for each node the feature to split on, one child per code, or to stop.

        Parameters
        ----------
        allowed : ndarray of bool, shape (n_nodes, n_features)
            Candidates of each node; at least one per node.
        epsilon : float or ndarray
            Budget of each node's selection.
        how : Selection

        Returns
        -------
        ndarray of int, shape (n_nodes,)
            Feature index, or ``STOP``.

        Guarantee
        ---------
        ``epsilon`` per node under the ledger's relation when calibrated by range; the ledger is charged
        ``rate * R`` under each relation (:prf:ref:`thm-selection-range`, :prf:ref:`lem-stop-candidate`).
        """
        score, n_max = how.score, how.cap
        rate = self._rate(score, epsilon, how.calibration, n_max, len(nodes))
        counts, parts = self._occupied(splits, nodes)
        behind = np.empty((len(nodes), len(self.cardinalities) + 1))
        rest, size, histograms = np.ones(len(nodes), dtype=bool), self._widest(), None
        for few in parts:
            del histograms  # before there are others: two parts would take twice the memory
            histograms, mine = self._exact(Histograms(splits, nodes[few], allowed[few])), allowed[few]
            counts[few], rest[few] = self._of_nodes(histograms, mine), False
            exact = partial(self._feature_scores, histograms, mine, score)
            behind[few] = self._score_gap(exact, size, mine, counts[few], score, how.stop_margin, rate[few])
            del exact
        # an empty node scores 0 on every feature; most nodes of a private tree are empty
        if rest.any():
            idle = allowed[rest], counts[rest], score, how.stop_margin, rate[rest]
            behind[rest] = self._score_gap(lambda rows: 0, size, *idle)
        if len(parts) > 1:  # those of all parts would take too much memory to be remembered
            histograms = None
        query = f"choose a feature by {score.name}"
        choice = STOP + self._select(scopes, behind, rate, score, n_max, query, how.mechanism)
        split = None
        if histograms is not None:
            split = Split.by_code(len(nodes), parts[0], histograms, self._offsets, choice)
        self._records.known.note(splits, nodes, counts, split)
        return choice

    @claim("thm-interval-exponential")
    def choose_cut(
        self,
        splits: Any,
        nodes: np.ndarray,
        scopes: np.ndarray,
        allowed: np.ndarray,
        epsilon: float | np.ndarray,
        how: Selection,
    ) -> np.ndarray:
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
        score, n_max = how.score, how.cap
        rate = self._rate(score, epsilon, how.calibration, n_max, len(nodes))
        features = np.logical_or.reduceat(allowed, self._offsets[:-1], axis=1)
        width = int(allowed.sum(axis=1).max(initial=0))
        columns = np.argsort(~allowed, axis=1, kind="stable")[:, :width]  # each node's candidates come first
        choice = np.empty(len(nodes), dtype=np.int64)
        counts = np.zeros((len(nodes), self.n_classes), dtype=np.int64)
        self._charge(scopes, rate, score, n_max, f"choose a cut by {score.name}", how.mechanism)
        found = []
        for part in self._parts(len(nodes), int(self._offsets[-1]) * self.n_classes * score.parts):
            histograms = self._exact(Histograms(splits, nodes[part], features[part], score.parts > 1))
            own = self._of_nodes(histograms, features[part])
            counts[part] = self._of_all_parts(own)
            able = np.take_along_axis(allowed[part], columns[part], axis=1)
            exact = partial(self._cut_scores, histograms, allowed[part], columns[part], score)
            behind = self._score_gap(exact, self._widest(), able, own, score, how.stop_margin, rate[part])
            taken = self._drawn(behind, rate[part], how.mechanism)
            each = np.arange(len(taken))
            choice[part] = np.where(taken > 0, columns[part][each, np.maximum(taken, 1) - 1], STOP)
            found.append(Split.by_column(self._of_all_parts(histograms), self._offsets, choice[part]))
        self._records.known.note(splits, nodes, counts, Split.join(found))
        return choice

    def choose_candidate(
        self,
        splits: Any,
        nodes: np.ndarray,
        scopes: np.ndarray,
        features: np.ndarray,
        masks: np.ndarray,
        epsilon: float | np.ndarray,
        how: Selection,
    ) -> np.ndarray:
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
        score, n_max = how.score, how.cap
        rate = self._rate(score, epsilon, how.calibration, n_max, len(nodes))
        known = self._records.known.recall(splits, nodes, score.n_moments or self.n_classes)
        counts = self._exact(CandidateCounts(splits, nodes, features, masks, score.n_moments, known))
        own = counts[:, 0].sum(axis=1)
        able, size = np.ones(features.shape, dtype=bool), counts[:1].size
        behind = self._score_gap(lambda rows: score.exact(counts[rows]), size, able, own, score, how.stop_margin, rate)
        query = f"choose a cut by {score.name}"
        choice = STOP + self._select(scopes, behind, rate, score, n_max, query, how.mechanism)
        rows, taken = np.arange(len(nodes)), np.maximum(choice, 0)
        self._records.known.note(
            splits,
            nodes,
            own,
            Split(
                np.where(choice == STOP, -1, features[rows, taken]),
                np.zeros(len(nodes), dtype=bool),
                masks[rows, taken],
                np.full(len(nodes), 2),
                counts[rows, taken].reshape(-1, own.shape[1]),
            ),
        )
        return choice

    @claim("lem-common-choice")
    def choose_division(
        self,
        splits: Any,
        nodes: np.ndarray,
        scopes: np.ndarray,
        features: np.ndarray,
        children: np.ndarray,
        epsilon: float,
        how: Selection,
    ) -> int:
        """Choose one division of a feature's codes for all these nodes together, by the sum of their scores.

        Parameters
        ----------
        nodes : ndarray of int, shape (n_nodes,)
            Of one tree; none below another.
        scopes : ndarray of int, shape (1,)
            Of what holds the records of all the nodes.
        features : ndarray of int, shape (K,)
            The feature that each candidate divides; at least one candidate.
        children : ndarray of int, shape (K, 256)
            The child that each code goes to, from 0 on; -1 for a code whose records do not count.
        epsilon : float
            Budget of the one selection.
        how : Selection
            By a monotone score of class counts; *stop* is no candidate.

        Returns
        -------
        int
            Place of the candidate.

        Guarantee
        ---------
        ``epsilon`` under the ledger's relation when calibrated by range: a record is in one child of one node at most,
        so the sum has the range of the score of a single node (:prf:ref:`lem-common-choice`).

        Notes
        -----
        The other parameters are those of :meth:`choose_feature`.
        """
        score, n_max = how.score, how.n_max
        if not score.monotone or score.n_moments or score.parts > 1:
            raise ValueError(f"a sum of {score.name} over nodes has no proved range: use a monotone score of counts")
        rate = self._rate(score, epsilon, how.calibration, n_max, 1)
        utility = np.zeros((2, 1, len(features)), dtype=np.int64)
        asked = np.isin(np.arange(len(self.cardinalities)), features)
        for part in self._parts(len(nodes), int(self._offsets[-1]) * self.n_classes):
            wanted = np.tile(asked, (len(nodes[part]), 1))
            histograms = self._exact(Histograms(splits, nodes[part], wanted))
            for place, (feature, child) in enumerate(zip(features, children, strict=True)):
                own = histograms[:, self._offsets[feature] : self._offsets[feature + 1]]
                goes = np.arange(child.max() + 1)[:, None] == child[: own.shape[1]]
                counts = np.empty((len(own), len(goes), own.shape[2]), dtype=np.int64)
                for number, codes in enumerate(goes):
                    np.add.reduce(own[:, codes], axis=1, out=counts[:, number])
                utility[:, 0, place] += score.exact(counts).sum(axis=1)
        behind = below_best(utility, np.ones((1, len(features)), dtype=bool))
        query = f"choose a division by {score.name}"
        return int(self._select(scopes, behind, rate, score, n_max, query, how.mechanism)[0])

    @claim("lem-soft-gap", "lem-calibrated-weights")
    def choose_crossing(
        self,
        crossings: Crossings,
        sides: np.ndarray,
        scopes: np.ndarray,
        epsilon: float,
        *,
        threshold: int,
        mechanism: str,
        together: bool = False,
    ) -> tuple[int, int]:
        """Choose one table and one target class, by how far the weights of the two sides are apart.

        Parameters
        ----------
        crossings : Crossings
            Public tables; at least one.
        sides : ndarray, shape (n_sides,)
            Class codes, each against all others; of a regression the one scale at which residuals are clipped, as a
            share of the target's range.
        scopes : ndarray of int, shape (1,)
            Of what holds all the records.
        epsilon : float
            Budget of the one selection.
        threshold : int
            Gaps of a cell up to so many steps of ``1 / FINE``, or of ``1 / FINEST`` if ``together``, do not count.
        mechanism : {"permute-and-flip", "exponential"}
        together : bool
            Score a table by all sides, which are all classes, together; the side chosen is then the first.

        Returns
        -------
        table, side : int
            Places of the chosen ones among the crossings and the sides.

        Guarantee
        ---------
        ``epsilon`` under the ledger's relation: in each table a record is in one cell, with weights of at most 1
        together, so the scores have the range of :func:`dpforest.scores.soft_gap` (:prf:ref:`lem-soft-gap`).  Of all
        sides together it weighs 2 at most, which counts for one record (:prf:ref:`lem-all-classes`).
        """
        score, n_tables = scores.soft_gap(threshold), len(crossings)
        rate = self._rate(score, epsilon, "range", np.inf, 1)
        gaps = np.empty((1 if together else len(sides), n_tables), dtype=np.int64)
        for part in self._parts(n_tables, 2 * len(sides) * int(crossings.n_cells.max(initial=1))):
            asked = crossings[part]
            starts = asked.starts
            sums = self._exact(CrossSums(asked, sides, together))
            for place, (first, last) in enumerate(pairwise(starts.tolist()), part.start):
                gaps[:, place] = score.exact(sums[:, first:last].reshape(len(gaps), -1, 2))[0]
        behind = (gaps - gaps.max()).astype(float).reshape(1, -1)
        choice = int(self._drawn(behind, rate, mechanism, 2 * FINEST if together else FINE)[0])
        self._charge(scopes, rate, score, np.inf, f"choose a table by {score.name}", mechanism)
        return choice % n_tables, choice // n_tables

    def choose_label(
        self,
        splits: Any,
        nodes: np.ndarray,
        scopes: np.ndarray,
        epsilon: float | np.ndarray,
        *,
        mechanism: str,
        calibration: str = "range",
    ) -> np.ndarray:
        """Choose the label of each leaf, with its class counts as scores.  Returns class codes.

        Guarantee
        ---------
        ``epsilon`` per leaf under the ledger's relation when calibrated by range.  Counts have R = 1 under
        add-remove and 2 under replace-one (:prf:ref:`thm-majority`).
        """
        rate = self._rate(scores.majority, epsilon, calibration, np.inf, len(nodes))
        counts = self._class_counts(splits, nodes)
        able, size = np.ones(counts.shape, dtype=bool), counts[:1].size
        behind = self._score_gap(lambda rows: fixed(counts[rows]), size, able, counts, scores.majority, None, rate)
        behind = behind[:, 1:].copy()  # to stop is no label
        return self._select(scopes, behind, rate, scores.majority, np.inf, "choose the label of a leaf", mechanism)

    def _occupied(self, splits: Any, nodes: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Class counts of the nodes, 0 where they are not known yet, and which nodes to look at, some at a time."""
        cells = int(self._offsets[-1]) * self.n_classes
        asked = ClassCounts(splits, nodes)
        counts = asked.recall(self._records.known, self.n_classes)
        if counts is None and len(nodes) * cells <= self._records.cells:  # then one look will tell
            return np.zeros((len(nodes), self.n_classes), dtype=np.int64), [np.arange(len(nodes))]
        if counts is None:
            counts = self._records.answer(asked)
        few = np.flatnonzero(counts.any(axis=1))
        return counts, [few[part] for part in self._parts(len(few), cells)]

    @claim("thm-exact-scores")
    def _score_gap(
        self,
        exact: Callable[[slice], Any],
        size: int,
        able: np.ndarray,
        counts: np.ndarray,
        score: scores.Score,
        stop_margin: float | None,
        rate: np.ndarray,
    ) -> np.ndarray:
        """How far each candidate is behind the best of its node: the first column is *stop*, the others are ``able``.

        ``exact`` scores the candidates of some nodes, from so many counts of each.  Exact scores are larger than what
        is left of them, so they are made for a few nodes at a time, which also keeps them in the cache.
        """
        behind = np.empty((len(able), able.shape[1] + 1))

        def fill(blocks: Iterable[slice]) -> None:
            for rows in blocks:
                utility = np.zeros((2, *behind[rows].shape), dtype=np.int64)
                utility[:, :, 1:] = exact(rows)
                may = np.full(behind[rows].shape, stop_margin is not None)
                may[:, 1:] = able[rows]
                if stop_margin is not None:
                    head_start = fixed(_head_start(stop_margin, rate[rows] / self.unit))
                    utility[:, :, 0] = score.exact_rest(counts[rows]) + head_start
                behind[rows] = below_best(utility, may)

        step = max(1, _TOGETHER // max(size, 1))
        in_threads(fill, [slice(at, at + step) for at in range(0, len(able), step)], check_threads(self._n_jobs))
        return behind

    def _widest(self) -> int:
        """Counts of the feature with the most codes."""
        return int(self.cardinalities.max(initial=1)) * max(self.n_classes, 1)

    def _feature_scores(
        self, histograms: np.ndarray, allowed: np.ndarray, score: scores.Score, rows: slice = slice(None)
    ) -> np.ndarray:
        """Exact score of the multiway split of each of some nodes on each allowed feature, (2, n_nodes, n_features)."""
        allowed, histograms = allowed[rows], histograms[rows]
        utility = np.zeros((2, *allowed.shape), dtype=np.int64)
        for feature in np.flatnonzero(allowed.any(axis=0)).tolist():
            utility[:, :, feature] = score.exact(histograms[:, self._offsets[feature] : self._offsets[feature + 1]])
        return utility

    def _cut_scores(
        self, histograms: np.ndarray, allowed: np.ndarray, columns: Any, score: scores.Score, rows: slice
    ) -> np.ndarray:
        """Exact scores of some columns of each of some nodes: cuts, and last of a feature its split by code."""
        allowed, histograms = allowed[rows], histograms[rows]
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
        return np.take_along_axis(utility, columns[None, rows], axis=2)

    def _of_nodes(self, histograms: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Counts of the nodes, from the histogram of one feature of each."""
        counts, first = np.zeros((len(histograms), histograms.shape[2]), dtype=np.int64), allowed.argmax(axis=1)
        for feature in set(first.tolist()):
            rows = first == feature
            counts[rows] = histograms[rows, self._offsets[feature] : self._offsets[feature + 1]].sum(axis=1)
        return counts

    def _of_all_parts(self, counts: np.ndarray) -> np.ndarray:
        """Class counts, from those of each part side by side."""
        return counts.reshape(*counts.shape[:-1], -1, self.n_classes).sum(axis=-2)

    def _rate(
        self, score: scores.Score, epsilon: float | np.ndarray, calibration: str, n_max: float, size: int
    ) -> np.ndarray:
        """The rate of each node, where a record counts for 1."""
        if calibration not in CALIBRATIONS:
            raise ValueError(f"calibration must be one of {CALIBRATIONS}, not {shown(calibration)}")
        if self._has_weights and not score.homogeneous:
            raise ValueError(f"{score.name} has no proved range where records have weights: use gini")
        if self._records.n_records > n_max:  # a broken promise would cost more than epsilon
            raise ValueError(f"there are more records than the public cap n_max = {n_max} promised")
        spread = score.exact_range(self._ledger.relation, n_max)
        if calibration == "sensitivity":  # a score on its grid may change by some steps more
            spread = max(spread, 2 * score.sensitivity(self._ledger.relation, n_max) * score.parts)
        if self._ledger.relation == REPLACE_ONE:
            # below a split that parts two replaced records, one tree pays twice what it costs that a record comes
            spread = max(spread, 2 * score.exact_range(ADD_REMOVE, n_max))
        epsilon = np.asarray(epsilon, dtype=float)
        if self._ledger.delta:  # a rho: a bounded range of eta costs eta^2 / 8
            epsilon = np.sqrt(8 * epsilon)
        return np.broadcast_to(epsilon / spread, (size,))

    def _select(
        self,
        scopes: np.ndarray,
        behind: np.ndarray,
        rate: np.ndarray,
        score: scores.Score,
        n_max: float,
        query: str,
        mechanism: str,
    ) -> np.ndarray:
        """Draw one candidate per row of ``behind`` and charge for it, so that neither happens without the other."""
        choice = self._drawn(behind, rate, mechanism)
        self._charge(scopes, rate, score, n_max, query, mechanism)
        return choice

    def _drawn(self, behind: np.ndarray, rate: np.ndarray, mechanism: str, record: int | None = None) -> np.ndarray:
        """One candidate of each row, by how many steps it is behind; a record counts for ``unit * STEPS`` of them."""
        if self._ledger.delta and mechanism != "exponential":
            raise ValueError(f"{mechanism} has no bounded range: under a delta the selection must be 'exponential'")
        return mechanisms.select(mechanism, behind, rate / (record or self.unit * STEPS), self._chance)

    @claim("lem-range-concentrated")
    def _charge(
        self, scopes: np.ndarray, rate: np.ndarray, score: scores.Score, n_max: float, query: str, mechanism: str
    ) -> None:
        relations = (ADD_REMOVE, REPLACE_ONE)
        spreads = [score.exact_range(relation, n_max) for relation in relations]
        if n_max < np.inf and (score.needs_cap or spreads != [score.exact_range(relation) for relation in relations]):
            self._ledger.n_max = min(self._ledger.n_max, n_max)  # a larger table would cost more
        add_remove, replace_one = (rate * spread for spread in spreads)
        if self._ledger.delta:
            add_remove, replace_one = add_remove * add_remove / 8, replace_one * replace_one / 8
        self._ledger.charge(scopes, add_remove, replace_one, query, mechanism)


def _head_start(stop_margin: float, rate: np.ndarray) -> np.ndarray:
    """The public constant in the score of *stop*; without noise it breaks ties, so that an empty node stops."""
    return np.where(np.isinf(rate), np.sign(stop_margin) * 1e-6, stop_margin / rate)
