"""DiPriMe: trees cut at private medians, whose leaves are about equally full (Consul and Williamson, 2020).

Each node draws a feature and chooses, privately, a cut that leaves about as many records on either side.  Leaves are
counted with noise.  The chapter *DiPriMe* tells what of the published claim holds, and why the repair does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.arithmetic import log
from dpforest.chance import Chance
from dpforest.learners.audited import EXACT, GREY_BOX, AuditSpec, Broken
from dpforest.learners.base import PrivateForest, PrivateForestClassifier, PrivateForestRegressor
from dpforest.learners.facts import Facts
from dpforest.learners.growth import Frontier
from dpforest.learners.parameters import AsPublished, Auto, Integer, Number, Share
from dpforest.learners.run import Run, Selection
from dpforest.mechanisms import exponential, permute_and_flip_law
from dpforest.models.forest import Forest
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import HISTOGRAM_SENSITIVITY, RELATIONS, claim
from dpforest.schema import TARGET_LEVELS

__all__ = ["DiPriMeClassifier", "DiPriMeRegressor", "Reach", "flip_densities"]

EMPTY = "which leaves have no records", "DiPriMe, the leaves"
SIZES = "the number of records of a leaf, which divides its noise", "DiPriMe, the leaves of a regression"
BROKEN = Broken(
    "a leaf without records says a number that one with a record never says (cex-diprime-empty)", (GREY_BOX,)
)
#: Divisions of the categories of a node among which it chooses: all of them up to so many, else so many random ones.
DIVISIONS = 32
#: Steps of a published share of a class.
GRID = 10**6
SHRINKAGE = """If proved, how far a leaf's shares are drawn to those of the nodes above
        (:meth:`~dpforest.models.forest.Forest.shares`): the size, in units of the noise of a leaf, at which a leaf
        counts as much as the node above it."""
_WORD = 62  # categories that are drawn together


@claim("cex-diprime-flip", "pub-diprime-flip")
def flip_densities(values: np.ndarray, low: float, high: float, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The law of a cut of DiPriMeFlip, which chooses one of the intervals between the values by permute-and-flip.

    Parameters
    ----------
    values : array-like of float, shape (n,)
        All different, at least one, strictly between ``low`` and ``high``.
    epsilon : float

    Returns
    -------
    edges : ndarray of float64, shape (n + 2,)
        The values in their order, and the bounds.
    density : ndarray of float64, shape (n + 1,)
        Of the cut, in each interval: it is uniform there.

    Guarantee
    ---------
    None at any epsilon but 1: which intervals there are depends on the records, and so does their length
    (:prf:ref:`cex-diprime-flip`).
    """
    edges = np.concatenate([[low], np.sort(np.asarray(values, dtype=float)), [high]])
    length, n = np.diff(edges), len(edges) - 2
    if n == 1:  # the program does not look at a single value
        return edges, np.full(2, 1 / (high - low))
    score = 2 * log(length) - np.abs(np.arange(-n, n + 1, 2))
    return edges, permute_and_flip_law(score, epsilon / 2) / length


class Reach:
    """Which codes of each feature may reach each node of the frontier, by the splits above it.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_features,)
        Codes of each feature.
    ordered : ndarray of bool, shape (n_features,)
        Which features are numeric.
    n_nodes : int
        Nodes that begin with all codes.
    """

    def __init__(self, sizes: np.ndarray, ordered: np.ndarray, n_nodes: int) -> None:
        self._ordered, self._ends = ordered, np.cumsum(sizes)
        self._starts = self._ends - sizes
        self._left = np.ones((n_nodes, int(self._ends[-1])), dtype=bool)

    def divisible(self) -> np.ndarray:
        """Which features have at least two codes left: bool, shape (n_nodes, n_features)."""
        return np.add.reduceat(self._left, self._starts, axis=1, dtype=np.int64) > 1

    def divisions(self, chance: Chance, node: int, feature: int) -> np.ndarray:
        """The divisions of the codes that are left, as masks of the second child: uint64, shape (K, 4).

        A number is cut between two codes.  Categories are divided into two sets that are not empty, by all divisions if
        these are fewer than ``DIVISIONS``, else by as many random ones.
        """
        left = np.flatnonzero(self._left[node, self._starts[feature] : self._ends[feature]])
        bits = np.zeros((max(len(left) - 1, 1), 256), dtype=bool)
        if self._ordered[feature]:
            bits[:, left] = np.arange(len(left)) > np.arange(len(left) - 1)[:, None]
        else:
            sides = _category_sets(chance, len(left) - 1)
            bits = np.zeros((len(sides), 256), dtype=bool)
            bits[:, left[1:]] = sides
        return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)

    def divide(self, nodes: np.ndarray, features: np.ndarray, masks: np.ndarray) -> None:
        """Go on to the children, in order, of these nodes, split by these masks (n_nodes, 4) of these features."""
        second = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little").astype(bool)
        below = np.repeat(self._left[nodes], 2, axis=0)
        for place, feature in enumerate(features.tolist()):
            own = slice(self._starts[feature], self._ends[feature])
            goes = second[place, : self._ends[feature] - self._starts[feature]]
            below[2 * place, own] &= ~goes
            below[2 * place + 1, own] &= goes
        self._left = below


def _category_sets(chance: Chance, n: int) -> np.ndarray:
    """Non-empty sets of n categories, all of them or ``DIVISIONS`` random ones: bool, shape (K, n)."""
    if n < 30 and 1 << n <= DIVISIONS:
        return (np.arange(1, 1 << n)[:, None] >> np.arange(n) & 1).astype(bool)
    sides = np.zeros((DIVISIONS, n), dtype=bool)
    for start in range(0, n, _WORD):
        width = min(_WORD, n - start)
        least = int(n <= _WORD)  # of more categories all are left out with a probability below 2^-62
        word = chance.integers((1 << width) - least, DIVISIONS) + least
        sides[:, start : start + width] = word[:, None] >> np.arange(width) & 1
    return sides


class _DiPriMe(PrivateForest):
    """The trees of both kinds: a subclass says what is counted in a leaf."""

    n_bins = 32
    max_depth: Annotated[int, Integer(1, MAX_DEPTH), "Splits on the longest path."] = 6
    sampling: Annotated[
        Literal["auto", "assignment", "all"],
        Auto(published="equal-split", proved="assignment"),
        AsPublished(),
        """``"assignment"``: each record belongs to one tree, by a coin of its own, and each tree has the whole budget.
        ``"all"``: each tree sees all records, with its part of the budget.  As published, disjoint parts of equal
        size.""",
    ] = "auto"
    median_share: Annotated[
        float, Share(), "Share of the medians in epsilon; the rest is for the leaf.  The authors' is a half."
    ] = 0.5
    _score: ClassVar[scores.Score]

    @claim("alg-diprime", "pub-diprime")
    def as_published(self, run: Run) -> Forest:
        """Disjoint parts of equal size; exponential medians; leaves with records are counted with noise."""
        epsilon = run.start_forest(self.n_estimators, "equal-split", self.max_nodes)  # step 1
        each, leaf = self._shares(epsilon)
        # of the budget of a level half is for the choice of a feature, of which there is one: see the chapter
        how = Selection(self._score, "exponential", "sensitivity")
        self._grow(run, each, how, lambda leaves, _: self._make_published_leaves(run, leaves, leaf))  # steps 2 and 3
        return run.release()

    @claim("thm-diprime")
    def as_proved(self, run: Run) -> Forest:
        """The repair: each record goes to a tree by its own coin, and all leaves are counted with noise."""
        epsilon = run.start_forest(self.n_estimators, self.option("sampling"), self.max_nodes)
        each, leaf = self._shares(epsilon)
        how = Selection(self._score)

        def make_leaves(leaves: Frontier, level: int) -> None:
            left = self.max_depth - level  # levels for which a branch that ends early has not paid
            self._make_leaves(run, leaves, leaf + left * each if left else leaf)

        self._grow(run, each, how, make_leaves)
        return run.release(self.half_weight(leaf, self._step()))

    def _shares(self, epsilon: float) -> tuple[float, float]:
        """What a level has of a tree's budget, and what a leaf."""
        return self.median_share * epsilon / self.max_depth, (1 - self.median_share) * epsilon

    def _grow(self, run: Run, each: float, how: Selection, make_leaves: Callable[[Frontier, int], None]) -> None:
        """Cut nodes of a random feature at private medians; those that are not cut get their values by ``make_leaves``.

        ``make_leaves(leaves, level)`` is called with leaves that have ``level`` cuts above them.
        """
        reach = Reach(run.sizes, run.ordered, self.n_estimators)
        for level, nodes in run.levels(self.max_depth):
            divisible = reach.divisible()
            grows = np.any(divisible, axis=1)
            grows[grows] = run.within_max_nodes(int(grows.sum()))
            make_leaves(nodes[~grows], level - 1)
            inner, places = nodes[grows], np.flatnonzero(grows)
            # the exponential mechanism at rate zero is the uniform law over what is allowed
            features = exponential(np.where(divisible[grows], 0.0, -np.inf), 0.0, run.chance)
            masks = _choose_medians(run, reach, inner, places, features, each, how)
            run.split_binary(inner, features, masks)
            reach.divide(places, features, masks)
        make_leaves(run.frontier, self.max_depth)

    def _make_published_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        """Give leaves their values as published: a random one where a leaf has no records."""
        raise NotImplementedError

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        """Give leaves their values as proved: noisy sums, at this budget each."""
        raise NotImplementedError

    def _step(self) -> int:
        """What one record adds to the values of a leaf."""
        raise NotImplementedError

    # -- the audit -------------------------------------------------------------------------------------------

    def _sampling(self) -> str:
        return self.option("sampling")

    def lacking(self) -> dict[str, str]:
        if self.variant == "published":
            return {EXACT: "a leaf computes with noise of infinitely many values, so that replay cannot visit them"}
        return super().lacking()

    FACTS = Facts(leaks="records", in_memory=True)


def _choose_medians(
    run: Run, reach: Reach, nodes: Frontier, places: np.ndarray, features: np.ndarray, epsilon: float, how: Selection
) -> np.ndarray:
    """Choose a private median for each node, a division of its feature: masks (n_nodes, 4)."""
    found = np.zeros((len(nodes), 4), dtype=np.uint64)
    masks = [reach.divisions(run.chance, place, feature) for place, feature in zip(places, features, strict=True)]
    numbers = np.array([len(each) for each in masks], dtype=int)
    for number in np.unique(numbers):  # nodes that choose among as many are asked together
        some = np.flatnonzero(numbers == number)
        mine = np.stack([masks[node] for node in some])
        of = np.repeat(features[some, None], number, axis=1).astype(np.int32)
        found[some] = mine[np.arange(len(some)), run.choose_candidate(nodes[some], of, mine, epsilon, how)]
    return found


@claim("alg-diprime", "thm-diprime", "pub-diprime", "cex-diprime-empty")
class DiPriMeClassifier(_DiPriMe, PrivateForestClassifier):
    """A private forest of trees cut at private medians, whose leaves hold noisy class counts.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-diprime`).  ``variant="published"``: none (:prf:ref:`pub-diprime`).

    Source
    ------
    Consul and Williamson, arXiv:2006.08795, read through its abstract and its authors' program.

    Notes
    -----
    What ``variant="published"`` does: disjoint parts of equal size; a random feature at each node, cut by the
    exponential mechanism at half of a level's budget; shares of noisy class counts in the leaves that have records, and
    a random share in the others.  It knows two classes.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.diprime import DiPriMeClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DiPriMeClassifier(epsilon=4.0, schema=schema, n_estimators=1, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    shrinkage: Annotated[float, Number(0, 1e6), SHRINKAGE] = 1.0
    _score = scores.balance

    def _make_published_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        empty = run.peek(leaves, EMPTY).sum(axis=1) == 0
        full = leaves[~empty]
        # the rate is the same under either relation
        counts = np.maximum(run.count_classes(full, epsilon * HISTOGRAM_SENSITIVITY[run.relation]), 0)
        total = counts.sum(axis=1)
        share = np.full(len(leaves), GRID // 2)
        share[~empty] = np.where(total > 0, GRID * counts[:, 1] // np.maximum(total, 1), GRID // 2)
        share[empty] = 1 + run.chance.integers(GRID - 1, int(empty.sum()))
        run.set_leaf_values(leaves, np.stack([GRID - share, share], axis=1))

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        run.set_leaf_values(leaves, run.count_classes(leaves, epsilon))

    def _step(self) -> int:
        return 1

    def check_parameters(self) -> None:
        super().check_parameters()
        n_classes = self.declared_schema().n_classes
        if self.variant == "published" and n_classes != 2:
            raise ValueError(
                "Only binary classification is supported. The published DiPriMe tells two classes apart, as in the "
                f"paper, not {n_classes}: use variant='proved'"
            )

    # -- the audit -------------------------------------------------------------------------------------------

    FACTS = Facts(leaks="records", two_classes=True, in_memory=True)
    AUDIT: ClassVar = AuditSpec(
        "diprime",
        (
            ({}, 2, 2),
            ({"median_share": 0.25}, 2, 1),
            ({"n_estimators": 2}, 2, 1),
            ({"n_estimators": 2, "sampling": "all"}, 2, 1),
            ({"variant": "published"}, 2, 2),
            ({"variant": "published", "n_estimators": 2}, 2, 1),
        ),
        dict.fromkeys(RELATIONS, BROKEN),
    )


@claim("thm-diprime", "pub-diprime", "cex-diprime-mean")
class DiPriMeRegressor(_DiPriMe, PrivateForestRegressor):
    """A private forest of trees cut at private medians, whose leaves hold two noisy masses of the target.

    Guarantee
    ---------
    As for :class:`DiPriMeClassifier`: ``epsilon`` if proved (:prf:ref:`thm-diprime`, :prf:ref:`thm-masses`), and none
    if published (:prf:ref:`pub-diprime`).

    Source
    ------
    As for :class:`DiPriMeClassifier`.

    Notes
    -----
    What ``variant="published"`` does: a leaf that has n records says their mean, with the noise that the mean of n
    records needs; a leaf without records says a random number.
    """

    shrinkage: Annotated[float, Number(0, 1e6), SHRINKAGE] = 2.0
    _score = scores.moment_balance

    @claim("cex-diprime-mean")
    def _make_published_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        size = run.peek_moments(leaves, SIZES)[:, 0]
        full, mean = size > 0, 1 + run.chance.integers(GRID - 1, len(leaves))
        # noise on the sum, divided by the exact size, is the noise of a mean of that size
        total, most = run.sum_targets(leaves[full], epsilon), TARGET_LEVELS * size[full]
        step = GRID // most  # within which it is spread evenly, for the paper's noise has no steps
        within = GRID * total // most + step * run.chance.integers(GRID, len(total)) // GRID
        mean[full] = np.where(total < 0, 0, np.where(total >= most, GRID, within))
        run.set_leaf_values(leaves, np.stack([mean, GRID - mean], axis=1))

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        run.set_leaf_values(leaves, run.sum_masses(leaves, epsilon))

    def _step(self) -> int:
        return TARGET_LEVELS

    # -- the audit -------------------------------------------------------------------------------------------

    AUDIT: ClassVar = AuditSpec(
        "diprime-regressor",
        (({}, 2, 2), ({"n_estimators": 2, "sampling": "all"}, 2, 1), ({"variant": "published"}, 2, 2)),
        dict.fromkeys(RELATIONS, BROKEN),
    )
