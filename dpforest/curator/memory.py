"""Records in memory: a table, which trees see which of its records, and exact answers by the counting kernels."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dpforest import counting
from dpforest.arithmetic import exp
from dpforest.chance import Chance
from dpforest.curator.filters import FilterLimits, IndividualFilter
from dpforest.curator.known import CachedCounts
from dpforest.curator.queries import Query
from dpforest.curator.weights import calibrated_steps, gradient_steps, residual_steps, weight_levels, weight_steps
from dpforest.models.boosted import SCALE
from dpforest.models.forest import Forest
from dpforest.schema import TARGET_LEVELS

__all__ = ["KEYS_REPEAT", "InMemoryRecords"]

KEYS_REPEAT = (
    "a Poisson bootstrap draws the copies of each record by itself, and a key may come twice, so that records would be "
    "copied together, which is not charged: leave key out; where an engine keeps no order of the rows, use "
    "sampling='assignment' or 'all'"
)

_AT_ONCE = 1 << 15  # records that are weighed at a time: what is computed on the way stays in the processor's cache


class RecordCoins(Protocol):
    """The part of a :class:`~dpforest.chance.Chance` that decides for each record by itself."""

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray: ...

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray: ...


class InMemoryRecords:
    """A table in memory: the :class:`~dpforest.curator.protocol.MaterializedRecords` records of a curator.

    Parameters
    ----------
    codes, labels, n_classes, cardinalities, n_jobs
        As for :class:`~dpforest.curator.Curator`.
    ids : ndarray of uint64, shape (n_rows,), or None
        Identity of each record; None for its place in the table.
    """

    cells = 1 << 22  # whole numbers in one answer: 32 MB of int64

    def __init__(
        self,
        codes: np.ndarray,
        labels: np.ndarray,
        n_classes: int,
        cardinalities: Any,
        *,
        n_jobs: int = 1,
        ids: np.ndarray | None = None,
    ) -> None:
        self.codes, self.labels = np.ascontiguousarray(codes), np.ascontiguousarray(labels)
        self.n_records = len(labels)
        self.ids = ids
        self.assignment: np.ndarray | None = None
        self.known = CachedCounts()
        self.n_classes, self.cardinalities = int(n_classes), np.asarray(cardinalities, dtype=np.int64)
        self.n_jobs = n_jobs
        self.part_of: np.ndarray | None = None  # of each record, where scores are means over parts
        self.n_parts = 1
        self._scores: np.ndarray | None = None  # of the released trees, of each record: (n_rows, n_classes)
        self._calibrated: tuple[tuple[bytes, bool], np.ndarray] | None = None  # sides and whether together; weights
        self.weighted: np.ndarray | None = None  # class and weight of each record in one code
        self.held_out = np.empty((len(codes), 0), np.uint8), np.empty(0, np.uint8)  # codes and labels put aside
        self._shares: np.ndarray | None = None  # AdaBoost's weights of the records, which add up to 1
        self._pool: tuple[np.ndarray, np.ndarray] | None = None  # codes and labels that rounds draw from

    def whole(self) -> InMemoryRecords:
        return self

    def numbers(self) -> np.ndarray:
        """Identity of each record, uint64, shape (n_rows,): its key, or its place in the table."""
        return np.arange(self.labels.size, dtype=np.uint64) if self.ids is None else self.ids

    # -- who sees which record -------------------------------------------------------------------------------

    def assign(self, n_trees: int, chance: RecordCoins) -> None:
        self._assign_by(chance.coins(n_trees, self.numbers()))

    def partition_records(self, n_parts: int, chance: RecordCoins) -> None:
        self.part_of, self.n_parts = chance.coins(n_parts, self.numbers()).astype(np.uint8), n_parts

    def split_equally(self, n_trees: int, chance: Chance) -> None:
        assignment = np.empty(self.labels.size, dtype=np.int32)
        # a random order, dealt out in turn: sizes differ by one at most, and which tree has which record is uniform
        assignment[chance.permutation(self.labels.size)] = np.arange(self.labels.size) % n_trees
        self._assign_by(assignment)

    def bootstrap(self, n_trees: int, chance: Chance) -> None:
        size = self.n_records
        self._resample(chance.integers(size, n_trees * size), size, n_trees)

    def poisson_bootstrap(self, n_trees: int, chance: RecordCoins) -> None:
        if self.ids is not None:
            raise ValueError(KEYS_REPEAT)
        copies = chance.copies(n_trees, self.numbers())
        rows = np.repeat(np.tile(np.arange(copies.shape[1]), n_trees), copies.ravel())  # tree after tree
        self._resample(rows, copies.sum(axis=1), n_trees)

    def hold_out(self, share: float, chance: Chance) -> None:
        order = chance.permutation(self.n_records)
        self.n_records -= min(round(share * self.n_records), max(self.n_records - 1, 0))  # one record stays
        kept, held = order[: self.n_records], order[self.n_records :]
        self.held_out = np.ascontiguousarray(self.codes[:, held]), self.labels[held]
        self.codes, self.labels = np.ascontiguousarray(self.codes[:, kept]), self.labels[kept]
        self.ids = None if self.ids is None else self.ids[kept]
        self.known.forget()

    def _assign_by(self, assignment: np.ndarray) -> None:
        self.assignment = assignment.astype(np.int32)
        self.known.forget()

    def _resample(self, rows: np.ndarray, per_tree: int | np.ndarray, n_trees: int) -> None:
        """Keep the records ``rows``, repetitions included; each tree has the next ``per_tree`` of them."""
        self.codes = np.ascontiguousarray(self.codes[:, rows])
        self.labels = self.labels[rows]
        self.assignment = np.repeat(np.arange(n_trees, dtype=np.int32), per_tree)
        self.known.forget()

    # -- what a record counts for ----------------------------------------------------------------------------

    def add_scores(self, forest: Forest, values: np.ndarray) -> None:
        scores = counting.sum_values(self.codes, forest, values, n_jobs=self.n_jobs)
        if self._scores is not None:
            scores += self._scores
        self._scores = scores
        self._calibrated = None  # weights of other scores
        self.known.forget_tables()

    def weigh_records(self, class_weights: Any, rule: str) -> None:
        levels = weight_levels(self.n_classes)
        steps = np.full(len(self.labels), levels)
        scores = self._scores_so_far()
        shares = np.ones(self.n_classes) if class_weights is None else np.asarray(class_weights)
        for label, share in enumerate(shares.tolist()):
            of_class = self.labels == label
            others = np.delete(scores[of_class], label, axis=1).max(axis=1, initial=-np.inf)
            margins = np.rint((scores[of_class, label] - others) * SCALE)  # in whole votes, so that no last bit decides
            steps[of_class] = weight_steps(margins, rule, levels, share)
        self.count_by(steps)

    def _scores_so_far(self) -> np.ndarray:
        """Sum of the votes of released trees for each record, (n_rows, n_classes): 0 before the first."""
        return np.zeros((len(self.labels), self.n_classes)) if self._scores is None else self._scores

    def count_by(self, steps: np.ndarray) -> None:
        """Set the weight of each record, ``steps`` of ``1 / unit``; class and weight are kept in one code."""
        self.weighted = (self.labels * np.int64(weight_levels(self.n_classes) + 1) + steps).astype(np.uint8)
        self.known.forget()

    # -- exact answers ---------------------------------------------------------------------------------------

    def answer(self, query: Query) -> np.ndarray:
        return query.exact(self)

    @property
    def how(self) -> dict[str, Any]:
        """The arguments of every kernel, which tree sees which record and the number of threads that count."""
        return {"assignment": self.assignment, "n_jobs": self.n_jobs}

    def side_weights(self, sides: np.ndarray, together: bool) -> np.ndarray:
        """What each record weighs on either side, see :class:`~dpforest.curator.queries.CrossSums`."""
        asked = sides.tobytes(), together
        if self._calibrated is None or self._calibrated[0] != asked:
            if self.n_classes:
                weigh, scores = gradient_steps if together else calibrated_steps, self._scores_so_far()
                weights = np.empty((len(sides), len(scores)), dtype=np.int32)
                for first in range(0, len(scores), _AT_ONCE):
                    rows = slice(first, first + _AT_ONCE)
                    weights[:, rows] = weigh(scores[rows], self.labels[rows], sides)
            else:
                weights = residual_steps(self.residuals(), float(sides[0]))
            self._calibrated = asked, weights
        return self._calibrated[1]

    def residuals(self) -> np.ndarray:
        """Target of each record less its prediction by released trees, as a share of the range: (n_rows,)."""
        shares = self.labels / TARGET_LEVELS
        return shares if self._scores is None else shares - (self._scores[:, 1] - self._scores[:, 0])

    # -- an individual filter ---------------------------------------------------------------------------------

    def open_filter(self, limits: FilterLimits) -> None:
        self._filter = IndividualFilter(limits, len(self.labels))

    def join_round(self, tree: Forest | None, said: np.ndarray | None) -> None:
        if tree is not None and said is not None:
            self.add_scores(tree, said)
        self._filter.join(self._scores_so_far(), self.labels)

    def leave_round(self) -> None:
        self._filter.leave()

    def limits(self) -> FilterLimits:
        """Of the filter that was opened."""
        return self._filter.limits

    def contributions(self) -> np.ndarray:
        """What each record adds to the round, see :class:`~dpforest.curator.filters.IndividualFilter`."""
        return self._filter.contributions

    def joined(self) -> np.ndarray:
        """Which records joined the last round."""
        return self._filter.joined

    # -- AdaBoost as published: weights that are shares of all records ---------------------------------------

    def draw_by_weight(self, chance: Chance) -> None:
        codes, labels = self.pool()
        rows = chance.weighted(self.shares(), self.n_records) if self.n_records else np.arange(0)
        self.codes, self.labels = np.ascontiguousarray(codes[:, rows]), labels[rows]
        self.known.forget()

    def count_by_weight(self) -> None:
        shares = self.shares()
        steps = np.rint(shares / shares.max(initial=0.0) * weight_levels(self.n_classes))
        self.count_by(steps.astype(np.int64))

    def boost(self, tree: Forest, alpha: float) -> None:
        weights = self.shares() * np.where(self.hits(tree), exp(-alpha), exp(alpha))
        self._shares = weights / weights.sum()

    def pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes and labels of the records that AdaBoost's weights are of: the table, whatever was drawn from it."""
        self._pool = self._pool or (self.codes, self.labels)  # those of the table, before the first draw
        return self._pool

    def shares(self) -> np.ndarray:
        """AdaBoost's weights of the records of the pool, which add up to 1: float64, equal before the first round."""
        if self._shares is None:
            self._shares = np.full(self.n_records, 1 / max(self.n_records, 1))
        return self._shares

    def hits(self, tree: Forest) -> np.ndarray:
        """Whether a tree classifies each record of the pool correctly: bool."""
        codes, labels = self.pool()
        votes = counting.sum_values(codes, tree, tree.values.astype(float), n_jobs=self.n_jobs)
        return votes.argmax(axis=1) == labels
