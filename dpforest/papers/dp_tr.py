"""DP-TR: boosted trees whose splits are totally random, with Newton steps (Maddock et al., 2022).

Splits are drawn without looking at a record; noisy sums of residuals and of Hessians make the step of each leaf.  The
chapter *DP-TR* tells what of the published claim holds, and why the repair does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest.chance import Chance
from dpforest.curator import FINEST
from dpforest.curator.sums import FREE_HESSIAN, step_sensitivity
from dpforest.learners.audited import GREY_BOX, AuditSpec, Broken
from dpforest.learners.boosting import LOUDEST, boosted, whole_votes
from dpforest.learners.facts import Facts
from dpforest.learners.gaussian_boosting import GaussianBoostedClassifier
from dpforest.learners.growth import MAX_NODES, Frontier
from dpforest.learners.parameters import Delta, Integer, Number, OneOf
from dpforest.learners.run import Run
from dpforest.models.boosted import BoostedForest
from dpforest.models.forest import Forest, cut_masks
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, REPLACE_ONE, claim, rho_of
from dpforest.schema import MAX_CODES

__all__ = ["DPTRClassifier", "equal_cuts", "grow_totally_random", "recut"]

SIZE = "the exact number of records, which makes delta and bounds a step", "DP-TR, the noise and the leaves"
BROKEN = {
    ADD_REMOVE: Broken(
        "the published code takes delta and the bounds of a step from the exact number of records (cex-dp-tr-size)",
        (GREY_BOX,),
    ),
    REPLACE_ONE: Broken("the published noise is half of what replace-one needs (pub-dp-tr)", (GREY_BOX,)),
}
#: What a record changes of a residual, and of a Hessian or a number of records, by the paper; squared, and added up.
PUBLISHED = {"hessian": 1 + 1 / 16, "count": 2.0}
#: If proved, the rate of the noise on Hessians and on numbers of records, in units of that on residuals.
PROVED = {"hessian": float(FREE_HESSIAN), "count": 0.25}


def equal_cuts(size: int, n_candidates: int) -> np.ndarray:
    """Codes after which a feature of so many codes may be cut: all of them, or ``n_candidates`` at equal distances."""
    if size - 1 <= n_candidates:
        return np.arange(size - 1)
    return np.arange(1, n_candidates + 1) * size // (n_candidates + 1) - 1


def recut(cuts: np.ndarray, size: int, weights: np.ndarray, n_candidates: int) -> np.ndarray:
    """New candidates, between which the noisy weight is about the same.

    Parameters
    ----------
    cuts : ndarray of int, ascending
        The former ones.
    size : int
        Codes of the feature.
    weights : ndarray, shape (len(cuts) + 1,)
        Of the bins between them; what is negative is 0.  A bin's weight is spread evenly over its codes.
    """
    heights = np.concatenate([[0.0], np.cumsum(np.maximum(weights, 0.0))])
    if not heights[-1]:
        return cuts
    edges = np.concatenate([[0], cuts + 1, [size]])
    wanted = heights[-1] * np.arange(1, n_candidates + 1) / (n_candidates + 1)
    places = np.rint(np.interp(wanted, heights, edges)).astype(np.int64)
    return np.unique(np.clip(places, 1, size - 1)) - 1


def _uniform_below(chance: Chance, high: np.ndarray) -> np.ndarray:
    """A whole number from 0, uniformly below each of these."""
    drawn = np.zeros(len(high), dtype=np.int64)
    for most in np.unique(high):
        rows = np.flatnonzero(high == most)
        drawn[rows] = chance.integers(int(most), rows.size)
    return drawn


def grow_totally_random(run: Run, cuts: Sequence[np.ndarray], features: np.ndarray, depth: int) -> Frontier:
    """Grow the tree at the frontier without looking at a record; returns its leaves, in the order of their numbers.

    A node draws one of the features that can still be cut in it, uniformly, and then one of the cuts that leave codes
    on both sides.  It is a leaf where there is none, or where the forest has no room for more nodes.

    Parameters
    ----------
    cuts : sequence of ndarray
        Of each feature of the schema, the codes after which it may be cut.
    features : ndarray of int
        Those that the tree may use.
    """
    leaves: list[Frontier] = []
    low, high = np.zeros((1, len(features)), dtype=np.int64), run.sizes[features][None] - 1  # codes that may arrive
    for _, nodes in run.levels(depth if len(features) else 0):
        first, last = (
            np.stack([np.searchsorted(cuts[f], ends[:, k]) for k, f in enumerate(features)], axis=1)
            for ends in (low, high)
        )
        can = last > first
        grows = np.any(can, axis=1)
        grows[grows] = run.within_max_nodes(int(grows.sum()))
        leaves.append(nodes[~grows])
        nodes = nodes[grows]
        low, high, first, last, can = low[grows], high[grows], first[grows], last[grows], can[grows]
        at = np.arange(len(nodes))
        drawn = _uniform_below(run.chance, can.sum(axis=1))
        column = (can & (np.cumsum(can, axis=1) == drawn[:, None] + 1)).argmax(axis=1)
        place = first[at, column] + _uniform_below(run.chance, (last - first)[at, column])
        ends = np.array([cuts[features[k]][p] for k, p in zip(column.tolist(), place.tolist(), strict=True)], dtype=int)
        chosen = features[column].astype(np.int32)
        run.split_binary(nodes, chosen, cut_masks(ends, run.sizes[chosen]))
        low, high = np.repeat(low, 2, axis=0), np.repeat(high, 2, axis=0)
        high[2 * at, column], low[2 * at + 1, column] = ends, ends + 1
    every = Frontier.join([*leaves, run.frontier])
    return every[np.argsort(every.nodes)]


class DPTRClassifier(GaussianBoostedClassifier):
    """Boosted trees of two classes, of which every split is random and every leaf takes a noisy Newton step.

    Guarantee
    ---------
    ``variant="proved"``: ``(epsilon, delta)``-differential privacy of the released trees under ``relation``
    (:prf:ref:`thm-dp-tr`).  ``variant="published"``: none under add-remove, and more than it says under replace-one
    (:prf:ref:`pub-dp-tr`).

    Source
    ------
    Maddock, Cormode, Wang, Maple and Jha, CCS 2022, with their program; the defaults are those of their comparison.

    Notes
    -----
    What ``variant="published"`` does: noise for a delta of one over the exact number of records, whatever ``delta``
    says, on residuals and Hessians together, as if both could be largest at once; a step is bounded by the number of
    records, too.  Categories are cut in their declared order, in both variants.

    A table that an engine reads is read once for each batch, and once for each feature whose candidates are made anew.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.dp_tr import DPTRClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DPTRClassifier(epsilon=4.0, schema=schema, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    delta: Annotated[float, Delta(), "Positive: the noise is Gaussian.  Well below one over the number of records."] = (
        1e-5
    )
    n_bins: Annotated[
        int | str, "Public bins of each numeric feature, equally wide, at whose edges it may be cut; 2 to 255."
    ] = 254
    n_estimators: Annotated[int, Integer(1, 100_000), "Trees."] = 100
    max_depth: Annotated[int, Integer(1, MAX_DEPTH), "Splits on the longest path."] = 4
    update: Annotated[
        str,
        OneOf("newton", "gradient", "averaging"),
        """What a leaf says: the sum of its residuals over that of its Hessians, or over its number of records; or the
        share of the second class, a mean over the trees, in place of boosting, as the tangent of its log odds.""",
    ] = "newton"
    batch_size: Annotated[
        int, Integer(1, 100_000), "Trees that learn from the same scores, to which they add the mean of their steps."
    ] = 1
    candidates: Annotated[
        Literal["uniform", "iterative-hessian"],
        """At which edges a feature may be cut: at equal distances, or, after each of the first trees, so that noisy
        sums of Hessians are about equal in between.""",
    ] = "uniform"
    n_candidates: Annotated[int, Integer(1, MAX_CODES - 1), "Candidates of a feature, at most."] = 32
    candidate_rounds: Annotated[
        int, Integer(1, 100_000), "Trees after which they are made anew; of each feature by itself if ``cyclic``."
    ] = 5
    cyclic: Annotated[bool, OneOf(True, False), "Whether a tree cuts a single feature, which is the next in turn."] = (
        False
    )
    learning_rate: Annotated[float, Number(1e-6, 10), "Factor of every step."] = 0.3
    reg_lambda: Annotated[float, Number(0, 1e6), "Added to what a sum of residuals is divided by."] = 1.0
    max_step: Annotated[float, Number(1e-6, LOUDEST), "Bound of a step, before the learning rate."] = 2.0
    #: The forest does not grow beyond this; branches that would are leaves.
    max_nodes = MAX_NODES

    @claim("alg-dp-tr", "pub-dp-tr", "cex-dp-tr-size")
    def as_published(self, run: Run) -> BoostedForest:
        """Noise for a delta of one over the number of records, which bounds the sums, too."""
        n_records = run.size(SIZE)
        each = rho_of(run.epsilon, 1 / max(n_records, 2)) / self._n_questions(run)
        # the ledger divides by what a record changes, and the paper by what it takes that to be
        steps = each / PUBLISHED[self._second] * step_sensitivity(self._second, 1.0)[run.relation]
        return self._boost(run, steps, each * HISTOGRAM_SENSITIVITY[run.relation], 1.0, n_records)

    @claim("thm-dp-tr")
    def as_proved(self, run: Run) -> BoostedForest:
        """The repair: noise for what a record changes under either relation, and nothing that reads their number."""
        each = run.budget / self._n_questions(run)
        return self._boost(run, each, each, PROVED[self._second], None)

    @property
    def _second(self) -> str:
        """Which sum divides that of the residuals in a step."""
        return "hessian" if self.update == "newton" else "count"

    def _rounds_of_candidates(self, n_features: int) -> int:
        """The trees after which candidates are made anew."""
        if self.candidates == "uniform":
            return 0
        return min(self.candidate_rounds * (n_features if self.cyclic else 1), self.n_estimators - 1)

    def _n_questions(self, run: Run) -> int:
        """Noisy answers of a fit, all at the same price: one for each tree, and for each feature made anew."""
        n_features = int((run.sizes > 1).sum())
        return self.n_estimators + self._rounds_of_candidates(n_features) * (1 if self.cyclic else n_features)

    def _boost(self, run: Run, steps: float, hessians: float, weight: float, most: int | None) -> BoostedForest:
        """The trees: ``steps`` buys the sums of one, and ``hessians`` a histogram of one feature."""
        run.start_forest(self.n_estimators, max_nodes=self.max_nodes)
        wide = np.flatnonzero(run.sizes > 1)
        cuts = [equal_cuts(size, self.n_candidates) for size in run.sizes.tolist()]
        remade, batch = self._rounds_of_candidates(len(wide)), self.batch_size
        if self.update == "averaging":
            batch = self.n_estimators
        roots: list[Frontier] = []
        leaves: list[Frontier] = []
        for number in run.rounds(self.n_estimators):
            roots.append(run.frontier)
            features = wide[[number % len(wide)]] if self.cyclic and len(wide) else wide
            leaves.append(grow_totally_random(run, cuts, features, self.max_depth))
            for feature in features.tolist() if number < remade else []:
                groups = np.searchsorted(cuts[feature], np.arange(run.sizes[feature]))
                sums = run.sum_hessians(roots[-1], feature, groups, hessians)
                cuts[feature] = recut(cuts[feature], int(run.sizes[feature]), sums, self.n_candidates)
            if len(roots) == batch or number == self.n_estimators - 1:
                self._set_leaf_steps(run, Frontier.join(roots), leaves, steps, weight, most)
                roots, leaves = [], []
        return boosted(run, "softmax")

    @claim("lem-leaf-steps")
    def _set_leaf_steps(
        self, run: Run, roots: Frontier, leaves: list[Frontier], rho: float, weight: float, most: int | None
    ) -> None:
        """Give the leaves of these trees, which learn from the same scores, their part of the mean of the steps."""
        trees = Forest.join(run.tree(root) for root in roots.nodes.tolist())
        is_leaf, sizes = trees.feature < 0, np.array([len(each) for each in leaves])
        places = np.zeros(trees.n_nodes, dtype=np.int64)
        places[is_leaf] = np.concatenate([np.arange(size) for size in sizes])
        sums = run.sum_steps(roots, trees, places, self._second, rho, weight)[np.arange(sizes.max()) < sizes[:, None]]
        votes = whole_votes(self._leaf_steps(sums / FINEST, most) / len(roots))
        values = np.zeros((trees.n_nodes, 2), dtype=np.int64)
        values[is_leaf, 1] = votes
        run.set_leaf_values(Frontier.join(leaves), values[is_leaf])
        run.add_scores(replace(trees, values=values))

    @claim("cex-dp-tr-size")
    def _leaf_steps(self, sums: np.ndarray, most: int | None) -> np.ndarray:
        """The step of each leaf by its noisy sums, (n_leaves, 2); ``most`` records bound them."""
        residuals, seconds = sums.T
        if most is not None and self.update != "averaging":
            residuals = np.clip(residuals, -most, most)
            seconds = np.minimum(seconds, most / 4 if self.update == "newton" else most)
        over = np.maximum(seconds, 0.0)
        if self.update == "averaging":  # at scores of 0, a mean residual is a share less a half
            means = np.divide(residuals, over, out=np.zeros_like(over), where=over > 0)
            return 4 * np.clip(means, -0.5, 0.5)
        over = over + self.reg_lambda
        steps = np.divide(residuals, over, out=np.zeros_like(over), where=seconds > 0)
        return self.learning_rate * np.clip(steps, -self.max_step, self.max_step)

    TITLE, DELTA = "DP-TR", "1e-5 is usual"
    FACTS = Facts(leaks="size", two_classes=True)
    AUDIT: ClassVar = AuditSpec(
        "dp-tr",
        (
            ({}, 2, 1),
            ({"n_estimators": 2, "candidates": "iterative-hessian", "cyclic": True}, 2, 1),
            ({"n_estimators": 2, "update": "gradient", "batch_size": 2}, 1, 1),
            ({"variant": "published"}, 2, 1),
        ),
        BROKEN,
        defaults={"n_estimators": 1},
    )
