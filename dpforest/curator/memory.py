"""Records in memory: the table, who sees which record of it, and what the counting kernels say about it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dpforest import counting
from dpforest.arithmetic import exp
from dpforest.chance import Chance
from dpforest.curator.known import CachedCounts
from dpforest.curator.weights import calibrated_steps, residual_steps, weight_levels, weight_steps, weight_table
from dpforest.design import Design
from dpforest.models.boosted import SCALE
from dpforest.models.crossings import Crossings
from dpforest.models.forest import Forest
from dpforest.schema import TARGET_LEVELS

__all__ = ["KEYS_REPEAT", "InMemoryRecords"]

KEYS_REPEAT = (
    "a Poisson bootstrap draws the copies of each record by itself, and a key may come twice, so that records would be "
    "copied together, which nobody pays for: leave key out; where an engine keeps no order of the rows, use "
    "sampling='assignment' or 'all'"
)
_POWERS = np.arange(256)[:, None] ** np.arange(3)  # of the target's codes


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
        What tells the records apart; None for their places in the table.
    """

    cells = 1 << 22  # 32 MB of int64

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
        self._n_classes, self._cardinalities = int(n_classes), np.asarray(cardinalities, dtype=np.int64)
        self._n_jobs = n_jobs
        self._part_of: np.ndarray | None = None
        self._n_parts = 1
        self._scores: np.ndarray | None = None  # of the released trees, of each record: (n_rows, n_classes)
        self._calibrated: tuple[bytes, np.ndarray] | None = None  # of which targets, and the weights beside them
        self._weighted: np.ndarray | None = None  # class and weight of each record in one code
        self._held = np.empty((len(codes), 0), np.uint8), np.empty(0, np.uint8)  # codes and labels put aside
        self._shares: np.ndarray | None = None  # AdaBoost's weights of the records, which add up to 1
        self._pool: tuple[np.ndarray, np.ndarray] | None = None  # codes and labels that rounds draw from

    def whole(self) -> InMemoryRecords:
        return self

    def numbers(self) -> np.ndarray:
        """What tells the records apart, uint64: their keys, or their places in the table."""
        return np.arange(self.labels.size, dtype=np.uint64) if self.ids is None else self.ids

    # -- who sees which record -------------------------------------------------------------------------------

    def assign(self, n_trees: int, chance: RecordCoins) -> None:
        self._assign_by(chance.coins(n_trees, self.numbers()))

    def partition_records(self, n_parts: int, chance: RecordCoins) -> None:
        self._part_of, self._n_parts = chance.coins(n_parts, self.numbers()).astype(np.uint8), n_parts

    def split_equally(self, n_trees: int, chance: Chance) -> None:
        assignment = np.empty(self.labels.size, dtype=np.int32)
        assignment[chance.permutation(self.labels.size)] = np.arange(self.labels.size) % n_trees
        self._assign_by(assignment)

    def bootstrap(self, n_trees: int, chance: Chance) -> None:
        size = self.n_records
        self._resample(chance.integers(size, n_trees * size), size, n_trees)

    def poisson_bootstrap(self, n_trees: int, chance: RecordCoins) -> None:
        if self.ids is not None:
            raise ValueError(KEYS_REPEAT)
        copies = chance.copies(n_trees, self.numbers())
        rows = np.repeat(np.tile(np.arange(copies.shape[1]), n_trees), copies.ravel())
        self._resample(rows, copies.sum(axis=1), n_trees)

    def hold_out(self, share: float, chance: Chance) -> None:
        order = chance.permutation(self.n_records)
        self.n_records -= min(round(share * self.n_records), max(self.n_records - 1, 0))
        kept, held = order[: self.n_records], order[self.n_records :]
        self._held = np.ascontiguousarray(self.codes[:, held]), self.labels[held]
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
        said = counting.sum_values(self.codes, forest, values, n_jobs=self._n_jobs)
        self._scores = said if self._scores is None else self._scores + said
        self._calibrated = None

    def weigh_records(self, class_weights: Any, rule: str) -> None:
        levels = weight_levels(self._n_classes)
        steps = np.full(len(self.labels), levels)
        heard = np.zeros((len(steps), self._n_classes)) if self._scores is None else self._scores
        shares = np.ones(self._n_classes) if class_weights is None else np.asarray(class_weights)
        for label, share in enumerate(shares.tolist()):
            mine = self.labels == label
            others = np.delete(heard[mine], label, axis=1).max(axis=1, initial=-np.inf)
            margins = np.rint((heard[mine, label] - others) * SCALE)
            steps[mine] = weight_steps(margins, rule, levels, share)
        self.count_by(steps)

    def count_by(self, steps: np.ndarray) -> None:
        """Let each record count for so many steps of ``1 / unit``."""
        self._weighted = (self.labels * np.int64(weight_levels(self._n_classes) + 1) + steps).astype(np.uint8)
        self.known.forget()

    # -- exact answers ---------------------------------------------------------------------------------------

    @property
    def _how(self) -> dict[str, Any]:
        return {"assignment": self.assignment, "n_jobs": self._n_jobs}

    def class_counts(self, splits: Any, nodes: np.ndarray) -> np.ndarray:
        where = splits, _slots(splits, nodes)
        if self._weighted is not None:
            return counting.node_sums(self.codes, self._weighted, weight_table(self._n_classes), *where, **self._how)
        return counting.node_class_counts(self.codes, self.labels, self._n_classes, *where, **self._how)

    def moments(self, splits: Any, nodes: np.ndarray, n_moments: int) -> np.ndarray:
        table = _POWERS[:, :n_moments]
        return counting.node_sums(self.codes, self.labels, table, splits, _slots(splits, nodes), **self._how)

    def candidate_counts(
        self,
        splits: Any,
        nodes: np.ndarray,
        features: np.ndarray,
        masks: np.ndarray,
        n_moments: int,
        known: np.ndarray | None = None,
    ) -> np.ndarray:
        where, how = (splits, _slots(splits, nodes), features, masks), {**self._how, "known": known}
        if self._weighted is not None:
            return counting.candidate_sums(self.codes, self._weighted, weight_table(self._n_classes), *where, **how)
        if not n_moments:
            return counting.candidate_counts(self.codes, self.labels, self._n_classes, *where, **how)
        return counting.candidate_sums(self.codes, self.labels, _POWERS[:, :n_moments], *where, **how)

    def histograms(self, splits: Any, nodes: np.ndarray, features: np.ndarray, by_part: bool = False) -> np.ndarray:
        if by_part and self._part_of is not None:
            labels = self.labels + self._part_of * np.uint8(self._n_classes)
            return self._count(splits, nodes, labels, self._n_parts * self._n_classes, features)
        if self._weighted is None:
            return self._count(splits, nodes, self.labels, self._n_classes, features)
        table = weight_table(self._n_classes)
        return self._count(splits, nodes, self._weighted, len(table), features) @ table

    def code_counts(self, splits: Any, nodes: np.ndarray) -> np.ndarray:
        return self._count(splits, nodes, np.zeros_like(self.labels), 1)[..., 0]

    def _count(
        self, splits: Any, nodes: np.ndarray, labels: np.ndarray, n_labels: int, features: np.ndarray | None = None
    ) -> np.ndarray:
        return counting.feature_histograms(
            self.codes,
            labels,
            n_labels,
            self._cardinalities,
            splits,
            _slots(splits, nodes),
            features=features,
            **self._how,
        )

    def cross_sums(self, crossings: Crossings, sides: np.ndarray) -> np.ndarray:
        if self.assignment is not None or self._weighted is not None:
            raise ValueError("crossed tables are counted where every round sees every record, by calibrated weights")
        asked = sides.tobytes()
        if self._calibrated is None or self._calibrated[0] != asked:
            if self._n_classes:
                heard = np.zeros((len(self.labels), self._n_classes)) if self._scores is None else self._scores
                weights = calibrated_steps(heard, self.labels, sides)
            else:
                weights = residual_steps(self._residuals(), float(sides[0]))
            self._calibrated = asked, weights
        weights = self._calibrated[1]
        if self._n_classes:
            return counting.cross_sums(self.codes, self.labels, weights, sides, crossings, n_jobs=self._n_jobs)
        # every record has label 0: beside "target" 1 it counts among the others, and beside 0 as the target
        one = np.zeros(len(self.labels), dtype=np.uint8)
        found = counting.cross_sums(self.codes, one, weights, np.array([1, 0]), crossings, n_jobs=self._n_jobs)
        return np.stack([found[0, :, 0], found[1, :, 1]], axis=1)[None]

    def residual_counts(self, edges: np.ndarray) -> np.ndarray:
        return counting.count_sizes(np.abs(self._residuals()), edges)

    def _residuals(self) -> np.ndarray:
        """How far each target lies above what was heard of it, as a share of the target's range."""
        shares = self.labels / TARGET_LEVELS
        return shares if self._scores is None else shares - (self._scores[:, 1] - self._scores[:, 0])

    def products(self, design: Design) -> np.ndarray:
        return counting.products(self.codes, self.labels, design.columns, design.answer, design.intercept)

    def held_counts(self, splits: Any, nodes: np.ndarray) -> np.ndarray:
        codes, labels = self._held
        return counting.node_class_counts(
            codes, labels, self._n_classes, splits, _slots(splits, nodes), n_jobs=self._n_jobs
        )

    # -- AdaBoost as published: weights that are shares of all records ---------------------------------------

    def draw_by_weight(self, chance: Chance) -> None:
        codes, labels = self.pool()
        rows = chance.weighted(self.shares(), self.n_records) if self.n_records else np.arange(0)
        self.codes, self.labels = np.ascontiguousarray(codes[:, rows]), labels[rows]
        self.known.forget()

    def count_by_weight(self) -> None:
        shares = self.shares()
        steps = np.rint(shares / shares.max(initial=0.0) * weight_levels(self._n_classes))
        self.count_by(steps.astype(np.int64))

    def largest_weight(self) -> float:
        return float(self.shares().max()) if self.n_records else 1.0

    def error(self, tree: Forest) -> float:
        return float(self.shares()[~self._hits(tree)].sum())

    def boost(self, tree: Forest, alpha: float) -> None:
        weights = self.shares() * np.where(self._hits(tree), exp(-alpha), exp(alpha))
        self._shares = weights / weights.sum()

    def pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes and labels of the records that the weights speak of, whatever was drawn from them."""
        self._pool = self._pool or (self.codes, self.labels)
        return self._pool

    def shares(self) -> np.ndarray:
        """AdaBoost's weights."""
        if self._shares is None:
            self._shares = np.full(self.n_records, 1 / max(self.n_records, 1))
        return self._shares

    def _hits(self, tree: Forest) -> np.ndarray:
        """For which records of the pool the votes of a tree's leaf are for their own class, bool."""
        codes, labels = self.pool()
        votes = counting.sum_values(codes, tree, tree.values.astype(float), n_jobs=self._n_jobs)
        return votes.argmax(axis=1) == labels


def _slots(splits: Any, nodes: np.ndarray) -> np.ndarray:
    slots = np.full(len(splits.feature), -1, dtype=np.int32)
    slots[nodes] = np.arange(len(nodes), dtype=np.int32)
    return slots
