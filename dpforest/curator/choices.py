"""Private selections: exact scores of the candidates, a draw by a mechanism, and its charge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dpforest import mechanisms, scores
from dpforest.arithmetic.fixed import FARTHEST, STEPS, below_best, fixed
from dpforest.counting.threads import check_threads, in_threads
from dpforest.curator.base import Base
from dpforest.curator.known import Split
from dpforest.curator.queries import CandidateCounts, ClassCounts, CrossSums, Histograms, TableClasses
from dpforest.curator.selections import (
    STOP,
    BinaryCandidates,
    Candidates,
    CutCandidates,
    DivisionCandidates,
    FeatureCandidates,
    LabelCandidates,
    MarginalCandidates,
    Selection,
    TableCandidates,
)
from dpforest.curator.weights import FINE, FINEST
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, claim
from dpforest.scores import GRAIN

__all__ = ["CALIBRATIONS", "Choices"]

#: How a selection's budget becomes a rate: by the score's range under the ledger's relation (proved), or by twice
#: its sensitivity, as the papers write (:prf:ref:`thm-selection-range`).
CALIBRATIONS = ("range", "sensitivity")

#: Counts that are scored at a time: few enough that their scores stay in the processor's cache.
_COUNTS_AT_ONCE = 1 << 16


class Choices(Base):
    """Choices among candidates of any kind."""

    def choose(
        self, candidates: Candidates, scopes: np.ndarray, epsilon: float | np.ndarray, how: Selection
    ) -> np.ndarray:
        """Choose privately among candidates, by their exact scores.

        Parameters
        ----------
        candidates : Candidates
            What to choose among: a value of :mod:`dpforest.curator.selections`.
        scopes : ndarray of int, shape (n_choices,)
            Ledger scope of each choice: of a node, or of what holds all the records that are scored.
        epsilon : float or ndarray
            Budget of each choice; under a delta a rho.
        how : Selection

        Returns
        -------
        ndarray of int, shape (n_choices,)
            What the class of the candidates documents: the place of one, or ``STOP``.

        Guarantee
        ---------
        ``epsilon`` for each choice under the ledger's relation when calibrated by range; the ledger is charged
        ``rate * R`` under each relation (:prf:ref:`thm-selection-range`, :prf:ref:`lem-stop-candidate`).

        Raises
        ------
        TypeError
            On candidates of an unknown kind; nothing is charged.
        ValueError
            On a score without a proved range, on more records than a public cap promised, and where there are not as
            many scopes as choices; nothing is charged.
        """
        if not isinstance(candidates, Candidates):
            raise TypeError(f"{shown(candidates)} are no candidates of dpforest.curator.selections: nothing is chosen")
        if np.size(scopes) != candidates.n_choices:
            raise ValueError(f"{np.size(scopes)} scopes are no scope for each of {candidates.n_choices} choices")
        score, n_max = candidates.scored_by(how)
        rate = self._rate(score, epsilon, how.calibration, n_max, candidates.n_choices)
        choice = self._choose_by_kind(candidates, score, rate, how)
        self._charge(scopes, rate, score, n_max, candidates.query(score), how.mechanism)
        return choice

    def _choose_by_kind(
        self, candidates: Candidates, score: scores.Score, rate: np.ndarray, how: Selection
    ) -> np.ndarray:
        """Call the selection for this kind of candidates: what :meth:`choose` returns; the caller makes the charge."""
        match candidates:
            case FeatureCandidates():
                return self._choose_features(candidates, score, rate, how)
            case CutCandidates():
                return self._choose_cuts(candidates, score, rate, how)
            case BinaryCandidates():
                return self._choose_binary_splits(candidates, score, rate, how)
            case DivisionCandidates():
                return self._choose_division(candidates, score, rate, how)
            case TableCandidates():
                return self._choose_tables(candidates, score, rate, how)
            case LabelCandidates():
                return self._choose_labels(candidates, score, rate, how)
            case MarginalCandidates():
                return self._choose_marginal(candidates, rate, how)
        raise TypeError(f"no selection scores {shown(candidates)}: nothing is chosen")

    @claim("lem-stop-candidate")
    def _choose_features(
        self, candidates: FeatureCandidates, score: scores.Score, rate: np.ndarray, how: Selection
    ) -> np.ndarray:
        """Choose a feature of each node, or ``STOP``; nodes are counted in batches that memory can hold."""
        splits, nodes, allowed = candidates.splits, candidates.nodes, candidates.allowed
        counts, batches = self._occupied_nodes(splits, nodes)
        gap = np.empty((len(nodes), len(self.cardinalities) + 1))
        empty, size, histograms = np.ones(len(nodes), dtype=bool), self._max_counts_per_feature(), None
        for occupied in batches:
            del histograms  # two batches at once would take twice the memory
            histograms, mask = self._exact(Histograms(splits, nodes[occupied], allowed[occupied])), allowed[occupied]
            counts[occupied], empty[occupied] = self._node_counts(histograms, mask), False
            exact = partial(self._feature_scores, histograms, mask, score)
            gap[occupied] = self._gaps_to_best(
                exact, size, mask, counts[occupied], score, how.stop_margin, rate[occupied]
            )
            del exact  # it refers to the histograms
        # an empty node scores 0 on every feature; most nodes of a private tree are empty
        if empty.any():
            idle = allowed[empty], counts[empty], score, how.stop_margin, rate[empty]
            gap[empty] = self._gaps_to_best(lambda rows: 0, size, *idle)
        if len(batches) > 1:  # the histograms of all batches would take too much memory to be kept
            histograms = None
        choice = STOP + self._draw(gap, rate, how.mechanism)
        split = None
        if histograms is not None:
            split = Split.by_code(len(nodes), batches[0], histograms, self._offsets, choice)
        self._records.known.note(splits, nodes, counts, split)
        return choice

    @claim("thm-interval-exponential")
    def _choose_cuts(
        self, candidates: CutCandidates, score: scores.Score, rate: np.ndarray, how: Selection
    ) -> np.ndarray:
        """Choose a column of each node, or ``STOP``.

        On a grid of equal steps this is the exponential mechanism on an interval, its pieces weighted by length.
        """
        splits, nodes, allowed = candidates.splits, candidates.nodes, candidates.allowed
        features = np.logical_or.reduceat(allowed, self._offsets[:-1], axis=1)
        width = int(allowed.sum(axis=1).max(initial=0))
        columns = np.argsort(~allowed, axis=1, kind="stable")[:, :width]  # the candidates of each node are first
        choice = np.empty(len(nodes), dtype=np.int64)
        counts = np.zeros((len(nodes), self.n_classes), dtype=np.int64)
        found = []
        # the score of a cut needs the counts of all codes of its feature; a mean over parts needs them part by part
        for part in self._batches(len(nodes), int(self._offsets[-1]) * self.n_classes * score.parts):
            histograms = self._exact(Histograms(splits, nodes[part], features[part], score.parts > 1))
            own = self._node_counts(histograms, features[part])
            counts[part] = self._sum_over_parts(own)
            valid = np.take_along_axis(allowed[part], columns[part], axis=1)
            exact = partial(self._cut_scores, histograms, allowed[part], columns[part], score)
            gap = self._gaps_to_best(
                exact, self._max_counts_per_feature(), valid, own, score, how.stop_margin, rate[part]
            )
            taken = self._draw(gap, rate[part], how.mechanism)  # 0 is *stop*
            rows = np.arange(len(taken))
            choice[part] = np.where(taken > 0, columns[part][rows, np.maximum(taken, 1) - 1], STOP)
            found.append(Split.by_column(self._sum_over_parts(histograms), self._offsets, choice[part]))
        self._records.known.note(splits, nodes, counts, Split.join(found))
        return choice

    def _choose_binary_splits(
        self, candidates: BinaryCandidates, score: scores.Score, rate: np.ndarray, how: Selection
    ) -> np.ndarray:
        """Choose a binary split of each node, or ``STOP``; the counts of its children are kept for later queries."""
        splits, nodes, features, masks = candidates.splits, candidates.nodes, candidates.features, candidates.masks
        known = self._records.known.recall(splits, nodes, score.n_moments or self.n_classes)
        counts = self._exact(CandidateCounts(splits, nodes, features, masks, score.n_moments, known))
        own = counts[:, 0].sum(axis=1)
        valid, size = np.ones(features.shape, dtype=bool), counts[:1].size
        gap = self._gaps_to_best(lambda rows: score.exact(counts[rows]), size, valid, own, score, how.stop_margin, rate)
        choice = STOP + self._draw(gap, rate, how.mechanism)
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
    def _choose_division(
        self, candidates: DivisionCandidates, score: scores.Score, rate: np.ndarray, how: Selection
    ) -> np.ndarray:
        """Choose one division for all nodes, by the sum of its scores over the nodes.

        A record is in one child of one node at most, so the sum has the range of the score of a single node.
        """
        nodes, features = candidates.nodes, candidates.features
        utility = np.zeros((2, 1, len(features)), dtype=np.int64)
        divided = np.isin(np.arange(len(self.cardinalities)), features)
        for part in self._batches(len(nodes), int(self._offsets[-1]) * self.n_classes):
            wanted = np.tile(divided, (len(nodes[part]), 1))
            histograms = self._exact(Histograms(candidates.splits, nodes[part], wanted))
            for place, (feature, child) in enumerate(zip(features, candidates.children, strict=True)):
                own = histograms[:, self._offsets[feature] : self._offsets[feature + 1]]
                goes = np.arange(child.max() + 1)[:, None] == child[: own.shape[1]]
                counts = np.empty((len(own), len(goes), own.shape[2]), dtype=np.int64)
                for number, codes in enumerate(goes):
                    np.add.reduce(own[:, codes], axis=1, out=counts[:, number])
                utility[:, 0, place] += score.exact(counts).sum(axis=1)
        gap = below_best(utility, np.ones((1, len(features)), dtype=bool))
        return self._draw(gap, rate, how.mechanism)

    @claim("lem-soft-gap", "lem-calibrated-weights")
    def _choose_tables(
        self, candidates: TableCandidates, score: scores.Score, rate: np.ndarray, how: Selection
    ) -> np.ndarray:
        """Choose a table for each side, or one for all sides together.

        In each table a record is in one cell, with weights of at most 1 together (:prf:ref:`lem-soft-gap`).  On
        all sides together its weights are at most 2, which counts as one record (:prf:ref:`lem-all-classes`).
        """
        n_tables, n_sides = len(candidates.crossings), len(candidates.sides)
        gaps = np.empty((1 if candidates.together else n_sides, n_tables), dtype=np.int64)
        for part in self._batches(n_tables, 2 * n_sides * int(candidates.crossings.n_cells.max(initial=1))):
            some = candidates.crossings[part]
            sums = self._exact(CrossSums(some, candidates.sides, candidates.together))
            if len(some) == n_tables:  # the chosen table is measured without another pass
                self._records.known.note_tables(some, candidates.sides, candidates.together, sums)
            for place, (first, last) in enumerate(pairwise(some.starts.tolist()), part.start):
                gaps[:, place] = score.exact(sums[:, first:last].reshape(len(gaps), -1, 2))[0]
        gap = (gaps - gaps.max()).astype(float).reshape(1, -1)
        return self._draw(gap, rate, how.mechanism, 2 * FINEST if candidates.together else FINE)

    @claim("lem-misfit")
    def _choose_marginal(self, candidates: MarginalCandidates, rate: np.ndarray, how: Selection) -> np.ndarray:
        """Choose one marginal.  A record is in one cell of each, and changes its score by the weight at most."""
        scored, found = candidates.scored, np.empty(len(candidates.crossings), dtype=np.int64)
        for part in self._batches(len(found), int(candidates.crossings.n_cells.max()) * self.n_classes):
            some = candidates.crossings[part]
            counts = self._exact(TableClasses(some))
            self._records.known.note_classes(some, counts)  # for later rounds, and where the chosen one is measured
            for place, (first, last) in enumerate(pairwise(some.starts.tolist()), part.start):
                table = counts[first:last]
                counted = table if candidates.by_class[place] else table.sum(axis=1, keepdims=True)
                found[place] = scored[place].exact(counted)[0]
        gap = np.maximum(found - found.max(), -FARTHEST).astype(float)[None]
        return self._draw(gap, rate, how.mechanism, GRAIN * max(candidates.weights))

    @claim("thm-majority")
    def _choose_labels(
        self, candidates: LabelCandidates, score: scores.Score, rate: np.ndarray, how: Selection
    ) -> np.ndarray:
        """Choose a label of each node: counts have R = 1 under add-remove and 2 under replace-one."""
        counts = self._class_counts(candidates.splits, candidates.nodes)
        valid, size = np.ones(counts.shape, dtype=bool), counts[:1].size
        gap = self._gaps_to_best(lambda rows: fixed(counts[rows]), size, valid, counts, score, None, rate)
        return self._draw(gap[:, 1:].copy(), rate, how.mechanism)  # without the column of *stop*

    def _occupied_nodes(self, splits: Any, nodes: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Class counts, (n_nodes, n_classes), and the places of the nodes that have records, in batches.

        Each batch is for one answer.  Where one answer can hold all nodes, none is left out: to find the empty ones
        would take a pass over the table.  The counts are then 0, and the caller fills them in.
        """
        cells = int(self._offsets[-1]) * self.n_classes
        query = ClassCounts(splits, nodes)
        counts = query.recall(self._records.known, self.n_classes)
        if counts is None and len(nodes) * cells <= self._records.cells:
            return np.zeros((len(nodes), self.n_classes), dtype=np.int64), [np.arange(len(nodes))]
        if counts is None:
            counts = self._records.answer(query)
        occupied = np.flatnonzero(counts.any(axis=1))
        return counts, [occupied[part] for part in self._batches(len(occupied), cells)]

    @claim("thm-exact-scores")
    def _gaps_to_best(
        self,
        exact: Callable[[slice], Any],
        size: int,
        valid: np.ndarray,
        counts: np.ndarray,
        score: scores.Score,
        stop_margin: float | None,
        rate: np.ndarray,
    ) -> np.ndarray:
        """Score of each candidate less the best one of its node, in whole steps: float64, (n_nodes, 1 + n_candidates).

        Column 0 is *stop*, a candidate if there is a margin; of the other columns those that are ``valid`` are
        candidates.  ``exact`` computes the exact scores of a slice of nodes, from ``size`` counts of each; ``counts``
        are the class counts of the nodes.  Exact scores take more memory than gaps, so only a few nodes are scored at a
        time.
        """
        gap = np.empty((len(valid), valid.shape[1] + 1))

        def fill(blocks: Iterable[slice]) -> None:
            for rows in blocks:
                utility = np.zeros((2, *gap[rows].shape), dtype=np.int64)
                utility[:, :, 1:] = exact(rows)
                takes_part = np.full(gap[rows].shape, stop_margin is not None)
                takes_part[:, 1:] = valid[rows]
                if stop_margin is not None:
                    offset = fixed(_stop_offset(stop_margin, rate[rows] / self.unit))
                    utility[:, :, 0] = score.exact_rest(counts[rows]) + offset
                gap[rows] = below_best(utility, takes_part)

        step = max(1, _COUNTS_AT_ONCE // max(size, 1))
        in_threads(fill, [slice(at, at + step) for at in range(0, len(valid), step)], check_threads(self._n_jobs))
        return gap

    def _max_counts_per_feature(self) -> int:
        """Class counts of a node by one feature, at most: those of the feature with the most codes."""
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
        """Exact scores of the ``columns`` of some nodes, (2, n_nodes, n_columns), as ``CutCandidates`` numbers them."""
        allowed, histograms = allowed[rows], histograms[rows]
        utility = np.zeros((2, *allowed.shape), dtype=np.int64)
        for first, last in pairwise(self._offsets):
            mask = allowed[:, first:last]
            if not mask.any():
                continue
            counts = histograms[:, first:last]
            below = counts.cumsum(axis=1)[:, :-1]  # of the cut after each code but the last
            above = counts.sum(axis=1, keepdims=True) - below
            utility[:, :, first : last - 1] = score.exact(np.stack([below, above], axis=2))
            if mask[:, -1].any():
                utility[:, :, last - 1] = score.exact(counts)
        return np.take_along_axis(utility, columns[None, rows], axis=2)

    def _node_counts(self, histograms: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Counts of the nodes, int64, (n_nodes, n_counts): the sum over all codes of the first allowed feature."""
        counts, first = np.zeros((len(histograms), histograms.shape[2]), dtype=np.int64), allowed.argmax(axis=1)
        for feature in set(first.tolist()):
            rows = first == feature
            counts[rows] = histograms[rows, self._offsets[feature] : self._offsets[feature + 1]].sum(axis=1)
        return counts

    def _sum_over_parts(self, counts: np.ndarray) -> np.ndarray:
        """Class counts (..., n_classes): the sum over all parts of ``counts``, (..., n_parts * n_classes)."""
        return counts.reshape(*counts.shape[:-1], -1, self.n_classes).sum(axis=-2)

    def _rate(
        self, score: scores.Score, epsilon: float | np.ndarray, calibration: str, n_max: float, size: int
    ) -> np.ndarray:
        """The rate at which each choice costs ``epsilon``, for scores in records: float64, shape (size,)."""
        if calibration not in CALIBRATIONS:
            raise ValueError(f"calibration must be one of {CALIBRATIONS}, not {shown(calibration)}")
        if self._has_weights and not score.homogeneous:
            raise ValueError(f"{score.name} has no proved range where records have weights: use gini")
        if self._records.n_records > n_max:  # the range of the score would be larger than is charged
            raise ValueError(f"there are more records than the public cap n_max = {n_max} promised")
        spread = score.exact_range(self._ledger.relation, n_max)
        if calibration == "sensitivity":  # a score on its grid may change by some steps more
            spread = max(spread, 2 * score.sensitivity(self._ledger.relation, n_max) * score.parts)
        if self._ledger.relation == REPLACE_ONE:
            # a record and its replacement may be in two nodes, and each costs as much as an added or removed record
            spread = max(spread, 2 * score.exact_range(ADD_REMOVE, n_max))
        epsilon = np.asarray(epsilon, dtype=float)
        if self._ledger.delta:  # epsilon is a rho, and a loss within a range of eta has a rho of eta^2 / 8
            epsilon = np.sqrt(8 * epsilon)
        return np.broadcast_to(epsilon / spread, (size,))

    def _draw(self, gap: np.ndarray, rate: np.ndarray, mechanism: str, record: int | None = None) -> np.ndarray:
        """Draw a column of each row of ``gap``, by the mechanism; a record is ``record`` steps, or ``unit * STEPS``."""
        if self._ledger.delta and mechanism != "exponential":
            raise ValueError(f"{mechanism} has no bounded range: under a delta the selection must be 'exponential'")
        return mechanisms.select(mechanism, gap, rate / (record or self.unit * STEPS), self._chance)

    @claim("lem-range-concentrated")
    def _charge(
        self, scopes: np.ndarray, rate: np.ndarray, score: scores.Score, n_max: float, query: str, mechanism: str
    ) -> None:
        """Charge each choice rate times range, under both relations; with a delta an eighth of the square, a rho."""
        relations = (ADD_REMOVE, REPLACE_ONE)
        spreads = [score.exact_range(relation, n_max) for relation in relations]
        if n_max < np.inf and (score.needs_cap or spreads != [score.exact_range(relation) for relation in relations]):
            self._ledger.n_max = min(self._ledger.n_max, n_max)  # a larger table would cost more
        add_remove, replace_one = (rate * spread for spread in spreads)
        if self._ledger.delta:
            add_remove, replace_one = add_remove * add_remove / 8, replace_one * replace_one / 8
        self._ledger.charge(scopes, add_remove, replace_one, query, mechanism)


def _stop_offset(stop_margin: float, rate: np.ndarray) -> np.ndarray:
    """The public constant in the score of *stop*; without noise it only breaks ties, so that empty nodes stop."""
    return np.where(np.isinf(rate), np.sign(stop_margin) * 1e-6, stop_margin / rate)
