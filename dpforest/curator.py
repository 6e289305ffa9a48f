"""The only code that reads records: the trusted curator of the differential-privacy literature.

A learner hands the curator a *query* about the nodes of its public, growing forest.  The curator counts, passes
the exact integers through a mechanism, writes the charge to the ledger, and returns the private answer alone.
What a published algorithm reads without paying for goes through :meth:`Curator.peek`: the answer is exact, and the
ledger records a leak.
"""

from __future__ import annotations

import numpy as np

from dpforest import counting, mechanisms, scores
from dpforest.chance import Chance
from dpforest.moments import Design, Weights
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, Ledger, claim
from dpforest.schema import TARGET_LEVELS

__all__ = ["CALIBRATIONS", "STOP", "Curator"]

#: What a selection answers for the candidate "do not split".
STOP = -1

#: How a selection's budget becomes a rate: by the score's range under the ledger's relation (proved), or by twice
#: its sensitivity, as the papers write (:prf:ref:`thm-selection-range`).
CALIBRATIONS = ("range", "sensitivity")

_POWERS = np.arange(256)[:, None] ** np.arange(3)  # of the target's codes
_UNITS = np.array([1.0, TARGET_LEVELS, TARGET_LEVELS**2])
_CELLS = 1 << 22  # histogram cells counted at a time: 32 MB of int64
_ROWS = 1 << 14  # records whose products are added at a time


@claim("def-two-doors")
class Curator:
    """Answers queries about records it alone can see.

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

    Notes
    -----
    Every method that answers takes ``splits`` (the public forest so far), ``nodes`` (node ids) and ``scopes`` (the
    ledger scope of each node).
    """

    def __init__(self, codes, labels, n_classes, cardinalities, *, chance: Chance, ledger: Ledger, n_jobs: int = 1):
        self._codes = np.ascontiguousarray(codes)
        self._labels = np.ascontiguousarray(labels)
        self._size = len(labels)
        self._assignment: np.ndarray | None = None
        self.n_classes = int(n_classes)
        self.cardinalities = np.asarray(cardinalities, dtype=np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self.cardinalities)])
        self._chance = chance
        self._ledger = ledger
        self._n_jobs = n_jobs

    # -- who sees which record -------------------------------------------------------------------------------

    @claim("thm-assignment")
    def assign(self, n_trees: int) -> None:
        """Give each record to one tree, by a coin of its own that looks at nothing else.

        Guarantee
        ---------
        Trees that each cost ε then cost ε together, under both relations: :prf:ref:`thm-assignment`.
        """
        if n_trees > 1:
            self._assignment = self._chance.integers(n_trees, self._labels.size).astype(np.int32)

    @claim("cex-equal-size", "pub-parallel-trees")
    def split_equally(self, n_trees: int) -> None:
        """Give each tree a random subset, all of one size or one less, as published.

        Adding one record may move another, so the trees together cost more than ε: :prf:ref:`thm-equal-split`.
        """
        if n_trees > 1:
            self._assignment = np.empty(self._labels.size, dtype=np.int32)
            self._assignment[self._chance.permutation(self._labels.size)] = np.arange(self._labels.size) % n_trees

    @claim("pub-bootstrap", "cex-bootstrap", "thm-bootstrap-size")
    def bootstrap(self, n_trees: int) -> None:
        """Give each tree n draws with replacement from the n records, as published.

        A record may come to a tree several times: trees that each cost ε cost more, :prf:ref:`thm-bootstrap-size`.
        """
        size = self._size
        self._resample(self._chance.integers(size, n_trees * size), size, n_trees)

    @claim("thm-bootstrap")
    def poisson_bootstrap(self, n_trees: int) -> None:
        """Give each tree each record as often as a Poisson number of mean 1 says, drawn for that record alone.

        Guarantee
        ---------
        A tree of loss ε under add-remove costs ``e^ε - 1`` there, ``2 sinh ε`` under replace-one
        (:prf:ref:`thm-bootstrap`).
        """
        copies = self._chance.poisson(n_trees * self._size)
        rows = np.repeat(np.tile(np.arange(self._size), n_trees), copies)
        self._resample(rows, copies.reshape(n_trees, -1).sum(axis=1), n_trees)

    # -- paid queries ----------------------------------------------------------------------------------------

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
        counts = self._class_counts(splits, nodes)
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
        columns = np.flatnonzero(allowed.any(axis=0))
        features = np.logical_or.reduceat(allowed, self._offsets[:-1], axis=1)
        choice = np.empty(len(nodes), dtype=np.int64)
        for part in self._parts(len(nodes), int(self._offsets[-1]) * self.n_classes):
            scored = self._cut_scores(self._histograms(splits, nodes[part], features[part]), features[part], score)
            utility = np.full((len(scored), len(columns) + 1), -np.inf)
            utility[:, 1:] = np.where(allowed[part], scored, -np.inf)[:, columns]
            if stop_margin is not None:
                counts = self._class_counts(splits, nodes[part])
                utility[:, 0] = score.rest(counts) + _head_start(stop_margin, rate[part])
            query = f"choose a cut by {score.name}"
            choice[part] = self._select(scopes[part], utility, rate[part], score, n_max, query, mechanism)
        return np.append(STOP, columns)[choice]

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
        counts = self._class_counts(splits, nodes).astype(float)
        return self._select(scopes, counts, rate, scores.majority, np.inf, "choose the label of a leaf", mechanism)

    def count_classes(self, splits, nodes, scopes, epsilon) -> np.ndarray:
        """Noisy class counts of each leaf, int64, shape (n_nodes, n_classes); they may be negative.

        Guarantee
        ---------
        ``epsilon`` per leaf under the ledger's relation: a histogram has L1 sensitivity 1 under add-remove and 2 under
        replace-one (:prf:ref:`thm-geometric`).
        """
        epsilon = np.broadcast_to(np.asarray(epsilon, dtype=float), len(nodes))
        rate = epsilon / {ADD_REMOVE: 1, REPLACE_ONE: 2}[self._ledger.relation]
        counts = mechanisms.two_sided_geometric(self._class_counts(splits, nodes), rate[:, None], self._chance)
        self._ledger.charge(scopes, rate, 2 * rate, "count the classes of a leaf", "two-sided geometric")
        return counts

    def count_records(self, splits, nodes, scopes, epsilon) -> np.ndarray:
        """Noisy number of records of each node, int64, shape (n_nodes,); it may be negative.

        Guarantee
        ---------
        Under add-remove ``epsilon`` per node.  Under replace-one ``epsilon / 2`` where a record comes or goes, and
        nothing where it stays, so that the two nodes that a replaced record may touch cost ``epsilon`` together
        (:prf:ref:`thm-geometric`, :prf:ref:`thm-parallel`).
        """
        epsilon = np.broadcast_to(np.asarray(epsilon, dtype=float), len(nodes))
        rate = epsilon / {ADD_REMOVE: 1, REPLACE_ONE: 2}[self._ledger.relation]
        counts = mechanisms.two_sided_geometric(self._sizes(splits, nodes), rate, self._chance)
        self._ledger.charge(scopes, rate, 0.0, "count the records of a node", "two-sided geometric")
        return counts

    @claim("thm-masses")
    def sum_masses(self, splits, nodes, scopes, epsilon) -> np.ndarray:
        """Noisy masses of the target in each leaf: how far it lies above the lower bound, and below the upper.

        Returns
        -------
        ndarray of int64, shape (n_nodes, 2)
            Sums over the leaf's records of ``t`` and of ``TARGET_LEVELS - t``, t being the target's code; they may be
            negative.  Together they are ``TARGET_LEVELS`` times a noisy number of records; the share of the first is
            the noisy mean.

        Guarantee
        ---------
        ``epsilon`` per leaf under the ledger's relation: a record adds ``TARGET_LEVELS`` to one leaf, however it is
        divided, so the L1 sensitivity is that under add-remove and twice that under replace-one
        (:prf:ref:`thm-masses`).
        """
        epsilon = np.broadcast_to(np.asarray(epsilon, dtype=float), len(nodes))
        rate = epsilon / {ADD_REMOVE: 1, REPLACE_ONE: 2}[self._ledger.relation]
        count, total = self._moments(splits, nodes, 2).T
        masses = np.stack([total, TARGET_LEVELS * count - total], axis=1)
        noisy = mechanisms.two_sided_geometric(masses, rate[:, None] / TARGET_LEVELS, self._chance)
        self._ledger.charge(scopes, rate, 2 * rate, "sum the masses of a leaf", "two-sided geometric")
        return noisy

    def sum_targets(self, splits, nodes, scopes, epsilon) -> np.ndarray:
        """Noisy sum of the target's codes in each leaf, int64, shape (n_nodes,).

        Guarantee
        ---------
        ``epsilon`` per leaf under both relations: a record adds at most ``TARGET_LEVELS`` to one leaf
        (:prf:ref:`thm-geometric`).
        """
        rate = np.broadcast_to(np.asarray(epsilon, dtype=float), len(nodes))
        noisy = mechanisms.two_sided_geometric(
            self._moments(splits, nodes, 2)[:, 1], rate / TARGET_LEVELS, self._chance
        )
        self._ledger.charge(scopes, rate, rate, "sum the targets of a leaf", "two-sided geometric")
        return noisy

    @claim("pub-functional-redraw")
    def sum_products(self, design: Design, weights: Weights, scope=0, *, until=None, attempts=100_000) -> np.ndarray:
        """Noisy sums over all records of the products of two coordinates of the design.

        Parameters
        ----------
        design : Design
            How codes become whole-number coordinates.
        weights : Weights
            What each kind of sum may lose; the sums of a kind of weight 0 are not read.
        scope : int
            Ledger scope.
        until : callable or None
            Draw the noise again until this public test of the noisy sums says True, and charge twice
            (:prf:ref:`pub-functional-redraw`).
        attempts : int
            Draws after which nothing is released: ``RuntimeError``, which is for the curator's eyes.

        Returns
        -------
        ndarray of int64, shape (n_coordinates, n_coordinates)
            Symmetric; 0 where nothing was read.

        Guarantee
        ---------
        :meth:`~dpforest.moments.Design.loss` of the weights, under either relation.
        """
        cells = design.matrix(weights)
        i, j = np.nonzero(cells)
        rate = cells[i, j] / (design.units[i] * design.units[j])
        exact = self._products(design)[i, j]
        losses = [
            design.loss(weights, relation) * (1 if until is None else 2) for relation in (ADD_REMOVE, REPLACE_ONE)
        ]
        self._ledger.charge(scope, *losses, "sum the products of the columns", "two-sided geometric")
        for _ in range(attempts):
            noisy = np.zeros(cells.shape, dtype=np.int64)
            noisy[i, j] = noisy[j, i] = mechanisms.two_sided_geometric(exact, rate, self._chance)
            if until is None or until(noisy):
                return noisy
        raise RuntimeError(f"no draw out of {attempts} passed the test: nothing is released")

    # -- unpaid reads ----------------------------------------------------------------------------------------

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
        occur = np.zeros((len(nodes), int(self._offsets[-1])), dtype=bool)
        nobody = np.zeros_like(self._labels)
        for part in self._parts(len(nodes), int(self._offsets[-1])):
            histograms = counting.feature_histograms(
                self._codes, nobody, 1, self.cardinalities, splits, _slots(splits, nodes[part]),
                assignment=self._assignment, n_jobs=self._n_jobs,
            )  # fmt: skip
            occur[part] = histograms[..., 0] > 0
        return occur

    def size(self, *, what: str, where: str) -> int:
        """The number of records: public under replace-one; under add-remove the ledger records a leak."""
        if self._ledger.relation == ADD_REMOVE:
            self._ledger.leak(what, where)
        return self._n_records()

    # -- exact answers: never returned by a public method ----------------------------------------------------

    def _class_counts(self, splits, nodes) -> np.ndarray:
        return counting.node_class_counts(
            self._codes, self._labels, self.n_classes, splits, _slots(splits, nodes),
            assignment=self._assignment, n_jobs=self._n_jobs,
        )  # fmt: skip

    def _candidate_counts(self, splits, nodes, features, masks, n_moments: int) -> np.ndarray:
        """Class counts, or moments of the target in [0, 1], of both children of each candidate."""
        where = splits, _slots(splits, nodes), features, masks
        how = {"assignment": self._assignment, "n_jobs": self._n_jobs}
        if not n_moments:
            return counting.candidate_counts(self._codes, self._labels, self.n_classes, *where, **how)
        powers = _POWERS[:, :n_moments]
        return counting.candidate_sums(self._codes, self._labels, powers, *where, **how) / _UNITS[:n_moments]

    def _sizes(self, splits, nodes) -> np.ndarray:
        return self._moments(splits, nodes, 1)[:, 0]

    def _moments(self, splits, nodes, n_moments: int) -> np.ndarray:
        return counting.node_sums(
            self._codes, self._labels, _POWERS[:, :n_moments], splits, _slots(splits, nodes),
            assignment=self._assignment, n_jobs=self._n_jobs,
        )  # fmt: skip

    def _resample(self, rows, per_tree, n_trees: int) -> None:
        """Keep the records ``rows``, repetitions included; each tree has the next ``per_tree`` of them."""
        self._codes = np.ascontiguousarray(self._codes[:, rows])
        self._labels = self._labels[rows]
        self._assignment = np.repeat(np.arange(n_trees, dtype=np.int32), per_tree)

    def _products(self, design: Design) -> np.ndarray:
        """Exact sums of the products of two coordinates, int64.

        Whole numbers pass through the floating-point product unharmed: a block is so short that every partial sum, in
        whatever order the products are added, is a whole number below 2^53, which a double holds exactly.
        """
        tables = [*design.columns, design.answer]
        block = min(_ROWS, int(2**53 // design.units.max() ** 2))
        total = np.zeros((len(design.units),) * 2, dtype=np.int64)
        for start in range(0, self._n_records(), block):
            rows = slice(start, start + block)
            keys = [*(codes[rows] for codes in self._codes), self._labels[rows]]
            parts = [table.astype(float)[key] for table, key in zip(tables, keys, strict=True)]
            ones = np.ones((len(keys[-1]), int(design.intercept)))
            coordinates = np.concatenate([ones, *parts], axis=1)
            total += (coordinates.T @ coordinates).astype(np.int64)
        return total

    def _histograms(self, splits, nodes, allowed) -> np.ndarray:
        return counting.feature_histograms(
            self._codes, self._labels, self.n_classes, self.cardinalities, splits, _slots(splits, nodes),
            features=allowed, assignment=self._assignment, n_jobs=self._n_jobs,
        )  # fmt: skip

    def _feature_scores(self, histograms, allowed, score) -> np.ndarray:
        """Score of the multiway split of each node on each allowed feature, -inf elsewhere."""
        utility = np.full(allowed.shape, -np.inf)
        for feature in np.flatnonzero(allowed.any(axis=0)):
            counts = histograms[:, self._offsets[feature] : self._offsets[feature + 1]]
            utility[:, feature] = np.where(allowed[:, feature], score(counts), -np.inf)
        return utility

    def _cut_scores(self, histograms, features, score) -> np.ndarray:
        """Score of the cuts of the ``features``, and in a feature's last column of its split with a child per code."""
        utility = np.full(histograms.shape[:2], -np.inf)
        for feature in np.flatnonzero(features.any(axis=0)):
            first, last = self._offsets[feature], self._offsets[feature + 1]
            counts = histograms[:, first:last]
            below = counts.cumsum(axis=1)[:, :-1]
            above = counts.sum(axis=1, keepdims=True) - below
            utility[:, first : last - 1] = score(np.stack([below, above], axis=2))
            utility[:, last - 1] = score(counts)
        return utility

    def _parts(self, n_nodes: int, cells: int):
        step = max(1, _CELLS // max(cells, 1))
        return [slice(start, start + step) for start in range(0, n_nodes, step)]

    def _n_records(self) -> int:
        return self._size

    def _rate(self, score, epsilon, calibration, n_max, size) -> np.ndarray:
        if calibration not in CALIBRATIONS:
            raise ValueError(f"calibration must be one of {CALIBRATIONS}, not {calibration!r}")
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


def _slots(splits, nodes) -> np.ndarray:
    slots = np.full(len(splits.feature), -1, dtype=np.int32)
    slots[nodes] = np.arange(len(nodes), dtype=np.int32)
    return slots
