"""Queries: exact whole-number answers about records, each a value that says how one record may change it.

Answers for the parts of a table add up to the answer for all of it.  So a query is asked of a table in memory, or
travels to the blocks of a larger one: it is public, and small.  Only a :class:`Measured` query may be answered with
noise, by :meth:`~dpforest.curator.Curator.noisy`; a new one is a class of ten lines in this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpforest import counting
from dpforest.curator.known import CachedCounts
from dpforest.curator.weights import FINE, FINEST, weight_table
from dpforest.design import Design
from dpforest.models.forest import Forest
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, RELATIONS, REPLACE_ONE, claim
from dpforest.schema import TARGET_LEVELS
from dpforest.structure.crossings import Crossings

if TYPE_CHECKING:
    from dpforest.curator.memory import InMemoryRecords

__all__ = [
    "BY_WEIGHT",
    "CandidateCounts",
    "CellGradients",
    "CellResiduals",
    "CellWeights",
    "ClassCounts",
    "CodeCounts",
    "CrossSums",
    "FilteredSums",
    "GapAndSize",
    "GroupHessians",
    "GroupResiduals",
    "HeldOutCounts",
    "Histograms",
    "Joined",
    "LargestWeight",
    "LeafSteps",
    "Masses",
    "Measured",
    "Moments",
    "NodeQuery",
    "OfMoments",
    "OfResiduals",
    "Products",
    "Query",
    "RecordCounts",
    "ResidualCounts",
    "TableClasses",
    "TableCounts",
    "TargetSums",
    "WeightedError",
    "WholeQuery",
    "WideResiduals",
]

#: The step of a query whose records count by their weight.
BY_WEIGHT = None

_POWERS = np.arange(256)[:, None] ** np.arange(3)  # of the target's codes


@dataclass(frozen=True, eq=False)
class Query:
    """A question to the records of which the exact answer is whole numbers."""

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        """The answer of a table in memory, or of one block."""
        raise NotImplementedError

    def recall(self, known: CachedCounts, n_classes: int) -> np.ndarray | None:
        """The answer, where an earlier selection has counted it."""
        return None

    def packed(self) -> Self:
        """The query as it is sent to workers, without what a block does not need."""
        return self

    @property
    def is_empty(self) -> bool:
        """Whether it asks about no node, so that no record need be read."""
        return False

    @property
    def needs_whole(self) -> bool:
        """Whether it looks at all records at once, so that the answers of blocks do not add up to it."""
        return False

    @property
    def name(self) -> str:
        """What is counted, for progress bars."""
        return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()


@dataclass(frozen=True)
class GapAndSize:
    """How pairs of sums are measured under a delta: their gap and their size have noise of their own.

    Attributes
    ----------
    label : str
        What the ledger calls it.
    step : float
        What one record adds to one side of a pair at most.
    squared : float
        Of what one record adds to all gaps, and of what it adds to all sizes, the squared L2 norm in such steps.
    """

    label: str
    step: float
    squared: float

    def __post_init__(self) -> None:
        if not (0 < self.step < np.inf and 0 < self.squared < np.inf):
            raise ValueError("a record changes gaps and sizes: declare a positive step, and a positive squared norm")


class Measured(Query):
    """A query that may be answered with noise: its class itself declares by how much one record changes the answer.

    Attributes
    ----------
    label : str
        What the ledger calls it.
    step : float or None
        What one record adds to one row of the answer, and to no other, at most: nonnegative numbers of this sum.  None
        (``BY_WEIGHT``) for the steps of a weight of 1.
    sensitivity : mapping of str to float
        By relation, the L1 sensitivity in such steps, by which the budget is divided.  Of numbers that may be negative
        the squared L2 sensitivity, where that is larger; so for ``replaced``.
    replaced : float
        L1 sensitivity, in such steps, where a record is replaced and stays in its row.
    pairs : GapAndSize or None
        Where the last axis of the answer holds two sides: how they are measured under a delta.  None: each number has
        the same noise.

    Notes
    -----
    Nothing is inherited: a query that counts something else changes by something else.
    """

    label: ClassVar[str]
    step: ClassVar[float | None]
    sensitivity: ClassVar[Mapping[str, float]]
    replaced: ClassVar[float]
    pairs: ClassVar[GapAndSize | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.pairs = vars(cls).get("pairs")  # what its parent declares of pairs is the parent's alone
        missing = [name for name in ("label", "step", "sensitivity", "replaced") if name not in vars(cls)]
        if missing:
            raise TypeError(
                f"{cls.__name__} may be answered with noise, so it must declare {', '.join(missing)} itself: how much "
                "one record changes its answer has no default"
            )
        if {*cls.sensitivity} != {*RELATIONS} or not all(0 < most < np.inf for most in cls.sensitivity.values()):
            raise TypeError(f"{cls.__name__} must declare a positive sensitivity under each of {RELATIONS}")
        if not (cls.step is BY_WEIGHT or 0 < cls.step < np.inf) or not 0 <= cls.replaced < np.inf:
            raise TypeError(f"{cls.__name__} must declare a positive step, and no negative number of them in replaced")


@dataclass(frozen=True, eq=False)
class NodeQuery(Query):
    """A query about each of some nodes of the public forest: a row of the answer for each."""

    splits: Any
    nodes: np.ndarray

    def packed(self) -> Self:
        return replace(self, splits=counting.Splits.of(self.splits))

    @property
    def is_empty(self) -> bool:
        return not len(self.nodes)

    @property
    def where(self) -> tuple[Any, np.ndarray]:
        """The forest, and for each of its nodes the row of the answer, int32, -1 for none."""
        slots = np.full(len(self.splits.feature), -1, dtype=np.int32)
        slots[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        return self.splits, slots


@dataclass(frozen=True, eq=False)
class Moments(NodeQuery):
    """Number of records, sum and sum of squares of the target's codes, of each node: (n_nodes, n_moments)."""

    n_moments: int

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        table = _POWERS[:, : self.n_moments]
        return counting.node_sums(records.codes, records.labels, table, *self.where, **records.how)

    def recall(self, known: CachedCounts, n_classes: int) -> np.ndarray | None:
        return None if n_classes else known.recall(self.splits, self.nodes, self.n_moments)


class OfMoments(NodeQuery):
    """A query that moments of the target's codes in each node answer."""

    n_moments: ClassVar[int]

    def of(self, moments: np.ndarray) -> np.ndarray:
        """The answer."""
        raise NotImplementedError

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return self.of(Moments(self.splits, self.nodes, self.n_moments).exact(records))

    def recall(self, known: CachedCounts, n_classes: int) -> np.ndarray | None:
        moments = Moments(self.splits, self.nodes, self.n_moments).recall(known, n_classes)
        return None if moments is None else self.of(moments)


# -- measured with noise ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassCounts(NodeQuery, Measured):
    """Class counts of each node, (n_nodes, n_classes): a histogram (:prf:ref:`thm-geometric`).

    A record counts for its weight, in steps of ``1 / unit``.
    """

    label, step = "count the classes of a leaf", BY_WEIGHT
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 2.0

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        n_classes, how = records.n_classes, records.how
        if records.weighted is not None:
            return counting.node_sums(records.codes, records.weighted, weight_table(n_classes), *self.where, **how)
        return counting.node_class_counts(records.codes, records.labels, n_classes, *self.where, **how)

    def recall(self, known: CachedCounts, n_classes: int) -> np.ndarray | None:
        return known.recall(self.splits, self.nodes, n_classes)


@dataclass(frozen=True, eq=False)
class RecordCounts(OfMoments, Measured):
    """Number of records of each node, (n_nodes,).

    Under replace-one a record that stays in its node changes nothing, and two nodes that it is moved between pay half
    each (:prf:ref:`thm-geometric`, :prf:ref:`thm-parallel`).
    """

    label, step = "count the records of a node", 1
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 0.0
    n_moments = 1

    def of(self, moments: np.ndarray) -> np.ndarray:
        return moments[:, 0]


@dataclass(frozen=True, eq=False)
@claim("thm-masses")
class Masses(OfMoments, Measured):
    """Masses of the target in each node, (n_nodes, 2): how far it lies above the lower bound, and below the upper.

    Sums over the node's records of ``t`` and of ``TARGET_LEVELS - t``, t being the target's code.  Together they are
    ``TARGET_LEVELS`` times a number of records; the share of the first is the mean.

    Guarantee
    ---------
    A record adds ``TARGET_LEVELS`` to one node, however it is divided, so the L1 sensitivity is that under add-remove
    and twice that under replace-one (:prf:ref:`thm-masses`).
    """

    label, step = "sum the masses of a leaf", TARGET_LEVELS
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 2.0
    n_moments = 2

    def of(self, moments: np.ndarray) -> np.ndarray:
        count, total = moments.T
        return np.stack([total, TARGET_LEVELS * count - total], axis=1)


@dataclass(frozen=True, eq=False)
class TargetSums(OfMoments, Measured):
    """Sum of the target's codes in each node, (n_nodes,): from 0 to ``TARGET_LEVELS`` (:prf:ref:`thm-geometric`)."""

    label, step = "sum the targets of a leaf", TARGET_LEVELS
    sensitivity, replaced = {ADD_REMOVE: 1.0, REPLACE_ONE: 1.0}, 1.0
    n_moments = 2

    def of(self, moments: np.ndarray) -> np.ndarray:
        return moments[:, 1]


@dataclass(frozen=True, eq=False)
class ResidualCounts(Measured):
    """Number of records by the size of the residual of the target, as a share of its range: (1, n_edges + 1).

    A residual is the target less its prediction by released trees; one equal to an edge counts below it.  A histogram
    (:prf:ref:`thm-geometric`).
    """

    edges: np.ndarray
    label, step = "count the sizes of the residuals", 1
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 2.0

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return counting.count_sizes(np.abs(records.residuals()), self.edges)[None]


@dataclass(frozen=True, eq=False)
@claim("lem-calibrated-weights", "lem-twin-weights")
class CellWeights(Measured):
    """Weights of both sides in each cell of one table, (n_cells, 2): of the other classes, and of the target.

    In steps of ``1 / FINE``.  ``side`` is the class code of the target; of a regression the scale at which residuals
    are clipped.

    Guarantee
    ---------
    A record adds at most 1 to the two sums of one cell together, so the L1 sensitivity of the cells together is 1
    under add-remove and 2 under replace-one (:prf:ref:`lem-calibrated-weights`, :prf:ref:`lem-twin-weights`).  Under a
    delta gap and size of each cell have the noise (:prf:ref:`lem-gap-and-size`).
    """

    crossing: Crossings
    side: float
    label, step = "sum the weights in a cell", FINE
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 2.0
    pairs = GapAndSize("sum the gap and the size of a cell", FINE, 1)

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return CrossSums(self.crossing, self._sides(records.n_classes)).exact(records)[0]

    def recall(self, known: CachedCounts, n_classes: int) -> np.ndarray | None:
        found = known.recall_table(self.crossing, self._sides(n_classes), together=False)
        return None if found is None else found[0]

    def _sides(self, n_classes: int) -> np.ndarray:
        return np.array([self.side], dtype=np.int64 if n_classes else np.float64)


@dataclass(frozen=True, eq=False)
@claim("lem-all-classes")
class CellGradients(Measured):
    """Weights against and for each class in each cell of one table, (n_cells, n_classes, 2): gradients of the log loss.

    In steps of ``1 / FINEST``.

    Guarantee
    ---------
    A record adds at most 1 for its class and at most 1 against all others together, so the L1 sensitivity of the cells
    together is 2 under add-remove and 4 under replace-one; under a delta gap and size of each class have the noise
    (:prf:ref:`lem-all-classes`).
    """

    crossing: Crossings
    label, step = "sum the gradients in a cell", 2 * FINEST
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 2.0
    pairs = GapAndSize("sum the gradients and their sizes in a cell", FINEST, 2)

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return CrossSums(self.crossing, np.arange(records.n_classes), together=True).exact(records).transpose(1, 0, 2)

    def recall(self, known: CachedCounts, n_classes: int) -> np.ndarray | None:
        found = known.recall_table(self.crossing, np.arange(n_classes), together=True)
        return None if found is None else found.transpose(1, 0, 2)


@dataclass(frozen=True, eq=False)
@claim("lem-residual-sums")
class CellResiduals(Measured):
    """Sum of the residuals of the second of two classes in each cell of one table, a single row: (1, n_cells).

    A residual is 1 for a record of that class, 0 for another, less the probability that released trees give the class;
    in steps of ``1 / FINEST``.

    Guarantee
    ---------
    A record adds a number from -1 to 1 to one cell, so the squared L2 sensitivity is 1 under add-remove, and under
    replace-one 4, where it changes sides in its cell (:prf:ref:`lem-residual-sums`).  That is what is declared: the L1
    sensitivities, 1 and 2, are no larger.
    """

    crossing: Crossings
    label, step = "sum the residuals in the leaves of a feature", FINEST
    sensitivity, replaced = {ADD_REMOVE: 1.0, REPLACE_ONE: 4.0}, 4.0

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        sums = CrossSums(self.crossing, np.arange(records.n_classes), together=True).exact(records)[1]
        return (sums[:, 1] - sums[:, 0])[None]


@dataclass(frozen=True, eq=False)
@claim("lem-misfit")
class TableCounts(Measured):
    """Class counts in each cell of one table, a single row: (1, n_cells, n_classes), or (1, n_cells, 1) of records.

    A marginal, and so a histogram: a record is in one cell of a table, so the L1 sensitivity is 1 under add-remove, and
    2 under replace-one (:prf:ref:`thm-geometric`, :prf:ref:`lem-misfit`).
    """

    crossing: Crossings
    by_class: bool = True
    label, step = "count the cells of a table", 1
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 2.0

    def __post_init__(self) -> None:
        if len(self.crossing) != 1:
            raise ValueError(f"a marginal is one table, not {len(self.crossing)}: a record is in a cell of each")

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return self._of(TableClasses(self.crossing).exact(records))

    def recall(self, known: CachedCounts, n_classes: int) -> np.ndarray | None:
        found = known.recall_classes(self.crossing)
        return None if found is None else self._of(found)

    def _of(self, counts: np.ndarray) -> np.ndarray:
        return (counts if self.by_class else counts.sum(axis=1, keepdims=True))[None]


@dataclass(frozen=True, eq=False)
class GroupHessians(Measured):
    """Sum of the Hessians of the log loss in each group of a feature's codes, of two classes: (1, n_groups).

    In steps of ``1 / FINEST``; ``groups`` has the group of each code.  A Hessian is ``p (1 - p)``, at most 1/4: a
    histogram (:prf:ref:`thm-geometric`).
    """

    feature: int
    groups: np.ndarray
    label, step = "sum the Hessians of a feature", FINEST // 4
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 2.0

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        _, hessians = _residuals_and_hessians(records)
        return counting.group_sums(records.codes[self.feature], self.groups, hessians)[None]


@dataclass(frozen=True, eq=False)
class OfResiduals(Query):
    """A query about the residuals of the target, in each group of a feature's codes: (1, n_groups).

    A residual is the target less its prediction, as a share of the target's range, clipped at ``limit`` ranges
    and in steps of ``1 / FINEST``; ``groups`` has the group of each code.
    """

    feature: int
    groups: np.ndarray
    limit: ClassVar[int]

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        steps = np.rint(np.clip(records.residuals(), -self.limit, self.limit) * FINEST)
        return counting.group_sums(records.codes[self.feature], self.groups, steps)[None]


@dataclass(frozen=True, eq=False)
@claim("lem-residual-sums")
class GroupResiduals(OfResiduals, Measured):
    """Sum of the residuals of the target in each group of a feature's codes, clipped to one range: (1, n_groups).

    Guarantee
    ---------
    As for :class:`CellResiduals`: a record adds a number from -1 to 1 to one group (:prf:ref:`lem-residual-sums`).
    """

    limit = 1
    label, step = "sum the residuals in the leaves of a feature", FINEST
    sensitivity, replaced = {ADD_REMOVE: 1.0, REPLACE_ONE: 4.0}, 4.0


@dataclass(frozen=True, eq=False)
@claim("cex-dp-ebm-target")
class WideResiduals(OfResiduals, Measured):
    """As :class:`GroupResiduals`, clipped to 1024 ranges: with noise for one range, what DP-EBM publishes."""

    limit = 1024
    label, step = "sum the residuals in the leaves of a feature, whatever they are", 1024 * FINEST
    sensitivity, replaced = {ADD_REMOVE: 1.0, REPLACE_ONE: 4.0}, 4.0


# -- scored, peeked at, or measured by a method of its own ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FilteredSums(Query):
    """Sums of the clipped gradients and Hessians in each cell of one table, a single row: (1, n_cells, 2).

    Of the second of two classes, over the records that joined the round of an individual filter; in steps of
    ``1 / FINEST``.
    """

    crossing: Crossings

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        sides, how = np.array([1, 1]), {"n_jobs": records.n_jobs}
        sums = counting.cross_sums(
            records.codes, records.labels, records.contributions(), sides, self.crossing, **how
        )  # of the first class, and of the second
        return np.stack([sums[0, :, 1] - sums[0, :, 0], sums[1].sum(axis=1)], axis=1)[None]


@dataclass(frozen=True, eq=False)
@claim("cex-s-bdt-stop")
class Joined(Query):
    """How many records joined the last round of an individual filter."""

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return np.array(records.joined().sum())


@dataclass(frozen=True, eq=False)
class CandidateCounts(NodeQuery):
    """Class counts, or so many moments, of both children of each binary candidate: (n_nodes, K, 2, n_sums).

    ``known`` are the counts of the nodes themselves, where the curator has them already: they may save work in memory,
    and do not travel.
    """

    features: np.ndarray
    masks: np.ndarray
    n_moments: int
    known: np.ndarray | None = None

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        where, how = (*self.where, self.features, self.masks), {**records.how, "known": self.known}
        if records.weighted is not None:
            table = weight_table(records.n_classes)
            return counting.candidate_sums(records.codes, records.weighted, table, *where, **how)
        if not self.n_moments:
            return counting.candidate_counts(records.codes, records.labels, records.n_classes, *where, **how)
        return counting.candidate_sums(records.codes, records.labels, _POWERS[:, : self.n_moments], *where, **how)

    def packed(self) -> Self:
        return replace(super().packed(), known=None)


@dataclass(frozen=True, eq=False)
class Histograms(NodeQuery):
    """Class counts of each code of the ``features`` (bool, n_nodes by n_features): (n_nodes, n_codes, n_classes).

    ``by_part``, part by part: (n_nodes, n_codes, n_parts * n_classes).  The codes of a feature follow those of the
    features before it; what was not asked for is 0.
    """

    features: np.ndarray
    by_part: bool = False

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        n_classes, part_of = records.n_classes, records.part_of
        if self.by_part and part_of is not None:
            labels = records.labels + part_of * np.uint8(n_classes)
            return _by_code(self, records, labels, records.n_parts * n_classes, self.features)
        if records.weighted is None:
            return _by_code(self, records, records.labels, n_classes, self.features)
        table = weight_table(n_classes)
        return _by_code(self, records, records.weighted, len(table), self.features) @ table


@dataclass(frozen=True, eq=False)
class CodeCounts(NodeQuery):
    """Number of records with each code of each feature, (n_nodes, n_codes); 0 for a feature that is not asked for.

    ``features`` (bool, n_nodes by n_features) are asked for, all of them if None.
    """

    features: np.ndarray | None = None

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return _by_code(self, records, np.zeros_like(records.labels), 1, self.features)[..., 0]


def _by_code(
    query: NodeQuery, records: InMemoryRecords, labels: np.ndarray, n_labels: int, features: np.ndarray | None = None
) -> np.ndarray:
    return counting.feature_histograms(
        records.codes, labels, n_labels, records.cardinalities, *query.where, features=features, **records.how
    )


@dataclass(frozen=True, eq=False)
class CrossSums(Query):
    """Weights of two sides in each cell of each table: (n_sides, n_cells, 2).

    ``sides`` are target classes, and a record weighs what :func:`~dpforest.curator.weights.calibrated_steps` makes
    of its own class and of its scores, or with ``together`` what
    :func:`~dpforest.curator.weights.gradient_steps` does; the other classes come first.  Or, of a regression, the one
    scale at which :func:`~dpforest.curator.weights.residual_steps` divides each record between both sides.
    """

    crossings: Crossings
    sides: np.ndarray
    together: bool = False

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        if records.assignment is not None or records.weighted is not None:
            raise ValueError("crossed tables are counted where every round sees every record, by calibrated weights")
        codes, how, weights = records.codes, {"n_jobs": records.n_jobs}, records.side_weights(self.sides, self.together)
        if records.n_classes:
            return counting.cross_sums(codes, records.labels, weights, self.sides, self.crossings, **how)
        # every record has label 0: for target 1 it is one of the others, and for target 0 it is of the target
        one = np.zeros(len(records.labels), dtype=np.uint8)
        found = counting.cross_sums(codes, one, weights, np.array([1, 0]), self.crossings, **how)
        return np.stack([found[0, :, 0], found[1, :, 1]], axis=1)[None]


@dataclass(frozen=True, eq=False)
class TableClasses(Query):
    """Class counts in each cell of each table: (n_cells, n_classes).  The cells of a table follow those before it."""

    crossings: Crossings

    def recall(self, known: CachedCounts, n_classes: int) -> np.ndarray | None:
        return known.recall_classes(self.crossings)

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        if records.assignment is not None or records.weighted is not None:
            raise ValueError("marginals are counted where all records count alike, and are read together")
        classes = np.arange(records.n_classes)
        ones = np.ones((len(classes), len(records.labels)), dtype=np.int32)
        how = {"n_jobs": records.n_jobs}
        sums = counting.cross_sums(records.codes, records.labels, ones, classes, self.crossings, **how)
        return np.ascontiguousarray(sums[:, :, 1].T)


@dataclass(frozen=True, eq=False)
class LeafSteps(Query):
    """The sums of a boosting step of two classes, in each leaf of each tree: (n_trees, n_leaves, 2).

    The sum of the residuals of the second class and, by ``second``, that of the Hessians or the number of records; all
    in steps of ``1 / FINEST``.  ``places`` has, for each node that is a leaf, its place in the row of its tree.
    """

    splits: Any
    places: np.ndarray
    second: str

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        residuals, hessians = _residuals_and_hessians(records)
        seconds = hessians if self.second == "hessian" else np.full(len(residuals), FINEST)
        numbers = np.stack([residuals, seconds])
        return counting.leaf_sums(records.codes, self.splits, self.places, numbers, n_jobs=records.n_jobs)

    def packed(self) -> Self:
        return replace(self, splits=counting.Splits.of(self.splits))


def _residuals_and_hessians(records: InMemoryRecords) -> tuple[np.ndarray, np.ndarray]:
    """Residuals and Hessians of the log loss of the second of two classes, each int64, shape (n_rows,).

    In steps of ``1 / FINEST``; Hessians are rounded down.
    """
    if records.assignment is not None or records.weighted is not None:
        raise ValueError("residuals are summed where every round sees every record, by no weights")
    sizes = records.side_weights(np.arange(2), True)[1].astype(np.int64)
    return np.where(records.labels == 1, sizes, -sizes), sizes * (FINEST - sizes) // FINEST


@dataclass(frozen=True, eq=False)
class Products(Query):
    """Sums over all records of the products of two coordinates of the design."""

    design: Design

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        design = self.design
        return counting.products(records.codes, records.labels, design.columns, design.answer, design.intercept)


# -- of all records at once, as published algorithms ask -------------------------------------------------------------


class WholeQuery(Query):
    """A query that only a table in memory can answer, not always by whole numbers."""

    @property
    def needs_whole(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
@claim("cex-holdout-pruning")
class HeldOutCounts(WholeQuery, NodeQuery):
    """Class counts of each node among the records that were put aside, (n_nodes, n_classes)."""

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        codes, labels = records.held_out
        return counting.node_class_counts(codes, labels, records.n_classes, *self.where, n_jobs=records.n_jobs)


@dataclass(frozen=True, eq=False)
@claim("cex-max-weight")
class LargestWeight(WholeQuery):
    """The largest of AdaBoost's weights, which add up to 1; and 1 where there is no record."""

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return np.array(records.shares().max() if records.n_records else 1.0)


@dataclass(frozen=True, eq=False)
@claim("cex-raw-alpha")
class WeightedError(WholeQuery):
    """The share of AdaBoost's weights on records for which the votes of a tree's leaf are for another class."""

    tree: Forest

    def exact(self, records: InMemoryRecords) -> np.ndarray:
        return np.array(records.shares()[~records.hits(self.tree)].sum())
