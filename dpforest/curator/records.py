"""The records and their exact answers, which no public method returns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dpforest import counting
from dpforest.chance import Chance
from dpforest.counting.threads import check_threads, in_threads
from dpforest.curator.known import Known
from dpforest.curator.weights import weight_levels, weight_steps, weight_table
from dpforest.design import Design
from dpforest.models.boosted import SCALE
from dpforest.privacy import Ledger, claim

__all__ = ["Records"]

_WORTH_THREADS = 1 << 18  # cells of histograms that are scored by several threads
_TOGETHER = 1 << 16  # cells that are scored at a time, so that what is made of them stays in the cache
KEYS_REPEAT = (
    "a Poisson bootstrap draws the copies of each record by itself, and a key may come twice, so that records would be "
    "copied together, which nobody pays for: leave key out; where an engine keeps no order of the rows, use "
    "sampling='assignment' or 'all'"
)
_POWERS = np.arange(256)[:, None] ** np.arange(3)  # of the target's codes


class Records:
    """The table, who sees which record of it, and what the counting kernels say about it.

    Parameters are those of :class:`~dpforest.curator.Curator`.
    """

    #: Where a curator, of whichever kind, keeps records or what only a look at them can tell: who they are, how many,
    #: whose they are, what they weigh, what was put aside or is drawn from, and what was counted.  The auditor watches
    #: every read of these, and a house rule every public method that could answer with one.
    SECRETS = (
        "_codes", "_labels", "_size", "_ids", "_assignment", "_part_of", "_said", "_weighted", "_held", "_pool",
        "_shares", "_known", "_block", "_table",
    )  # fmt: skip

    _cells = 1 << 22  # histogram cells counted at a time: 32 MB of int64

    def __init__(
        self, codes, labels, n_classes, cardinalities, *, chance: Chance, ledger: Ledger, n_jobs: int = 1, ids=None
    ):  # fmt: skip
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
        #: Steps in which a record of full weight counts; 1 while all records count alike.
        self.unit = 1
        self._said: np.ndarray | None = None  # by the released trees, of each record: (n_rows, n_classes)
        self._weighted: np.ndarray | None = None  # class and weight of each record in one code
        self._held = np.empty((len(codes), 0), np.uint8), np.empty(0, np.uint8)  # codes and labels put aside
        self._ids = ids  # uint64 for each record; None for its place in the table
        #: Parts of the records, see :meth:`divide`.
        self.n_parts = 1
        self._part_of: np.ndarray | None = None
        self._known = Known()

    # -- who sees which record -------------------------------------------------------------------------------

    @claim("thm-assignment", "thm-keyed-assignment", "cex-position-hash")
    def assign(self, n_trees: int) -> None:
        """Give each record to one tree, by a coin of its own that looks at nothing else.

        Guarantee
        ---------
        Trees that each cost ε then cost ε together, under both relations: :prf:ref:`thm-assignment`, and
        :prf:ref:`thm-keyed-assignment` where the coin is computed from a key of the record or from its place.
        """
        if n_trees > 1:
            self._assign_by(self._chance.coins(n_trees, self._numbers()))

    @claim("lem-parts")
    def divide(self, n_parts: int) -> None:
        """Give each record to one of ``n_parts`` parts, by a coin of its own, for scores that are means over parts.

        Raises
        ------
        ValueError
            Where a part and a class do not fit into one code of 256.
        """
        self._check_parts(n_parts)
        if n_parts > 1:
            self._divide_by(self._chance.coins(n_parts, self._numbers()), n_parts)

    @claim("cex-equal-size", "pub-parallel-trees")
    def split_equally(self, n_trees: int) -> None:
        """Give each tree a random subset, all of one size or one less, as published.

        Adding one record may move another, so the trees together cost more than ε: :prf:ref:`thm-equal-split`.
        """
        if n_trees > 1:
            assignment = np.empty(self._labels.size, dtype=np.int32)
            assignment[self._chance.permutation(self._labels.size)] = np.arange(self._labels.size) % n_trees
            self._assign_by(assignment)

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

        Raises
        ------
        ValueError
            Where records are told apart by keys, which may repeat: the theorem asks for independent copies.
        """
        if self._ids is not None:
            raise ValueError(KEYS_REPEAT)
        self._repeat(self._chance.copies(n_trees, self._numbers()))

    def hold_out(self, share: float) -> None:
        """Put a random share of the records aside, but never all of them: for ``peek_held_out`` alone."""
        order = self._chance.permutation(self._size)
        self._size -= min(round(share * self._size), max(self._size - 1, 0))
        kept, held = order[: self._size], order[self._size :]
        self._held = np.ascontiguousarray(self._codes[:, held]), self._labels[held]
        self._codes, self._labels = np.ascontiguousarray(self._codes[:, kept]), self._labels[kept]
        self._ids = None if self._ids is None else self._ids[kept]
        self._known.forget()

    def _check_parts(self, n_parts: int) -> None:
        if n_parts * self.n_classes > 256:
            raise ValueError(
                f"{n_parts} parts of {self.n_classes} classes are more than 256 counts: at most "
                f"{256 // self.n_classes} parts"
            )

    def _numbers(self) -> np.ndarray:
        """What tells the records apart, uint64: their keys, or their places in the table."""
        return np.arange(self._size, dtype=np.uint64) if self._ids is None else self._ids

    def _assign_by(self, assignment: np.ndarray) -> None:
        self._assignment = assignment.astype(np.int32)
        self._known.forget()

    def _divide_by(self, part_of: np.ndarray, n_parts: int) -> None:
        self._part_of, self.n_parts = part_of.astype(np.uint8), n_parts

    def _repeat(self, copies: np.ndarray) -> None:
        """Give each tree so many copies of each record: (n_trees, n_records)."""
        rows = np.repeat(np.tile(np.arange(copies.shape[1]), len(copies)), copies.ravel())
        self._resample(rows, copies.sum(axis=1), len(copies))

    def _resample(self, rows, per_tree, n_trees: int) -> None:
        """Keep the records ``rows``, repetitions included; each tree has the next ``per_tree`` of them."""
        self._codes = np.ascontiguousarray(self._codes[:, rows])
        self._labels = self._labels[rows]
        self._known.forget()
        self._assignment = np.repeat(np.arange(n_trees, dtype=np.int32), per_tree)

    @claim("thm-own-weights", "lem-weighted-sse")
    def weigh(self, forest=None, values=None, *, class_weights=None, rule: str = "capped") -> None:
        """Give each record a weight, by its own label and by what released trees say of it, and by nothing else.

        Parameters
        ----------
        forest : Forest or None
            Released trees; what they say is added to what earlier ones said.
        values : ndarray of float64, shape (n_nodes, n_classes)
            What each leaf says for each class, public.
        class_weights : ndarray of float, shape (n_classes,), or None
            Public weights of the classes, from 0 to 1.
        rule : {"capped", "logistic"}
            How the margin of the record's class over the best other one makes a weight: one of ``WEIGHTS``.

        Guarantee
        ---------
        Answers nothing, and costs nothing.  From here on a record counts for at most 1, in steps of ``1 / unit``, so
        that every query costs what it cost without weights (:prf:ref:`thm-own-weights`).  Of the scores this holds for
        sums over the children, such as ``gini``, and not for shares of the node, such as ``normalised_gini``.

        Notes
        -----
        A weight below half a step is 0: the record no longer counts.
        """
        if forest is not None:
            self._hear(forest, values)
        self._reweigh(class_weights, rule)

    def _hear(self, forest, values) -> None:
        """Add what released trees say of each record to what earlier ones said."""
        said = counting.sum_values(self._codes, forest, values, n_jobs=self._n_jobs)
        self._said = said if self._said is None else self._said + said

    def _reweigh(self, class_weights, rule: str) -> None:
        """Let each record count for its weight under what the trees have said of it so far."""
        steps = np.full(len(self._labels), weight_levels(self.n_classes))
        said = np.zeros((len(steps), self.n_classes)) if self._said is None else self._said
        shares = np.ones(self.n_classes) if class_weights is None else np.asarray(class_weights)
        for label, share in enumerate(shares.tolist()):
            mine = self._labels == label
            others = np.delete(said[mine], label, axis=1).max(axis=1, initial=-np.inf)
            margins = np.rint((said[mine, label] - others) * SCALE)
            steps[mine] = weight_steps(margins, rule, weight_levels(self.n_classes), share)
        self._count_by(steps)

    def _count_by(self, steps: np.ndarray) -> None:
        """Let each record count for so many steps of ``1 / unit``."""
        self.unit = weight_levels(self.n_classes)
        self._weighted = (self._labels * np.int64(self.unit + 1) + steps).astype(np.uint8)
        self._known.forget()

    # -- exact answers ---------------------------------------------------------------------------------------

    # Whole numbers all of them, so that the answers for the parts of a table add up to the answer for all of it.

    def _n_records(self) -> int:
        return self._size

    def _class_counts(self, splits, nodes) -> np.ndarray:
        """Class counts, each record by its weight, in steps of ``1 / unit``; from memory where they are known."""
        known = self._known.recall(splits, nodes, self.n_classes)
        return self._count_nodes(splits, nodes) if known is None else known

    def _moments(self, splits, nodes, n_moments: int) -> np.ndarray:
        """Number, sum and sum of squares of the target's codes; from memory where they are known."""
        known = self._known.recall(splits, nodes, n_moments)
        return self._sum_nodes(splits, nodes, n_moments) if known is None else known

    def _count_nodes(self, splits, nodes) -> np.ndarray:
        if self._weighted is not None:
            return counting.node_sums(
                self._codes, self._weighted, weight_table(self.n_classes), splits, _slots(splits, nodes),
                assignment=self._assignment, n_jobs=self._n_jobs,
            )  # fmt: skip
        return counting.node_class_counts(
            self._codes, self._labels, self.n_classes, splits, _slots(splits, nodes),
            assignment=self._assignment, n_jobs=self._n_jobs,
        )  # fmt: skip

    def _sum_nodes(self, splits, nodes, n_moments: int) -> np.ndarray:
        return counting.node_sums(
            self._codes, self._labels, _POWERS[:, :n_moments], splits, _slots(splits, nodes),
            assignment=self._assignment, n_jobs=self._n_jobs,
        )  # fmt: skip

    def _held_counts(self, splits, nodes) -> np.ndarray:
        """Class counts of the records that were put aside."""
        codes, labels = self._held
        return counting.node_class_counts(
            codes, labels, self.n_classes, splits, _slots(splits, nodes), n_jobs=self._n_jobs
        )  # fmt: skip

    def _hits(self, tree, codes, labels) -> np.ndarray:
        """For which of these records the votes of a tree's leaf are for their own class, bool."""
        votes = counting.sum_values(codes, tree, tree.values.astype(float), n_jobs=self._n_jobs)
        return votes.argmax(axis=1) == labels

    def _weights(self, splits, nodes) -> np.ndarray:
        """Class counts, each record by its weight from 0 to 1."""
        return self._in_units(self._class_counts(splits, nodes))

    def _sizes(self, splits, nodes) -> np.ndarray:
        return self._sum_nodes(splits, nodes, 1)[:, 0]

    def _candidate_counts(self, splits, nodes, features, masks, n_moments: int) -> np.ndarray:
        """Class counts in steps of ``1 / unit``, or moments of the target's codes, of both children of a candidate."""
        where = splits, _slots(splits, nodes), features, masks
        known = self._known.recall(splits, nodes, n_moments or self.n_classes)
        how = {"assignment": self._assignment, "n_jobs": self._n_jobs, "known": known}
        if self._weighted is not None:
            return counting.candidate_sums(
                self._codes, self._weighted, weight_table(self.n_classes), *where, **how
            )  # fmt: skip
        if not n_moments:
            return counting.candidate_counts(self._codes, self._labels, self.n_classes, *where, **how)
        return counting.candidate_sums(self._codes, self._labels, _POWERS[:, :n_moments], *where, **how)

    def _histograms(self, splits, nodes, allowed, by_part: bool = False) -> np.ndarray:
        """Class counts of each code, in steps of ``1 / unit``: (n_nodes, n_columns, n_classes).

        With ``by_part``, (n_nodes, n_columns, n_parts * n_classes), part by part.
        """
        labels, n_codes, table = self._labels, self.n_classes, None
        if by_part and self._part_of is not None:
            labels, n_codes = self._labels + self._part_of * np.uint8(self.n_classes), self.n_parts * self.n_classes
        elif self._weighted is not None:
            table = weight_table(self.n_classes)
            labels, n_codes = self._weighted, len(table)
        found = counting.feature_histograms(
            self._codes, labels, n_codes, self.cardinalities, splits, _slots(splits, nodes),
            features=allowed, assignment=self._assignment, n_jobs=self._n_jobs,
        )  # fmt: skip
        return found if table is None else found @ table

    def _code_counts(self, splits, nodes) -> np.ndarray:
        """Number of records with each code of each feature, (n_nodes, sum of the cardinalities)."""
        return counting.feature_histograms(
            self._codes, np.zeros_like(self._labels), 1, self.cardinalities, splits, _slots(splits, nodes),
            assignment=self._assignment, n_jobs=self._n_jobs,
        )[..., 0]  # fmt: skip

    def _products(self, design: Design) -> np.ndarray:
        """Exact sums of the products of two coordinates, int64."""
        return counting.products(self._codes, self._labels, design.columns, design.answer, design.intercept)

    # -- what follows from them ------------------------------------------------------------------------------

    def _in_units(self, counts: np.ndarray) -> np.ndarray:
        """Counts of records by their weight from 0 to 1."""
        return counts if self.unit == 1 else counts / self.unit

    def _occurring(self, splits, nodes) -> np.ndarray:
        """Which codes of each feature occur in each node, bool, shape (n_nodes, sum of the cardinalities)."""
        occur = np.zeros((len(nodes), int(self._offsets[-1])), dtype=bool)
        for part in self._parts(len(nodes), int(self._offsets[-1])):
            occur[part] = self._code_counts(splits, nodes[part]) > 0
        return occur

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

    def _parts(self, n_nodes: int, cells: int):
        step = max(1, self._cells // max(cells, 1))
        return [slice(start, start + step) for start in range(0, n_nodes, step)]


def _slots(splits, nodes) -> np.ndarray:
    slots = np.full(len(splits.feature), -1, dtype=np.int32)
    slots[nodes] = np.arange(len(nodes), dtype=np.int32)
    return slots
