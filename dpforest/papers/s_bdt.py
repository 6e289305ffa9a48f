"""S-BDT: boosted random trees, leaves with uneven Gaussian noise, records that pay for themselves (2023).

Each tree cuts one feature at random and asks for two noisy sums a leaf: of the gradients of its records, and of their
Hessians.  A record that contributes little pays little, and joins extra trees for what it has left.  The chapter
*S-BDT* tells what of the published claim holds, and why the repair does.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from dpforest.arithmetic import log
from dpforest.chance import Chance
from dpforest.curator import FINEST
from dpforest.curator.filters import FilterLimits
from dpforest.learners.audited import GREY_BOX, AuditSpec, Broken
from dpforest.learners.boosting import boosted, whole_votes
from dpforest.learners.facts import Facts
from dpforest.learners.gaussian_boosting import FeatureTables, GaussianBoostedClassifier
from dpforest.learners.parameters import Delta, Integer, Number, Share
from dpforest.learners.run import Run
from dpforest.models.boosted import BoostedForest
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, RELATIONS, claim, in_charges
from dpforest.structure.crossings import Crossings

__all__ = ["SBDTClassifier", "initial_score", "random_leaves"]

SIZE = "the exact number of records, which the noisy sum of the classes is divided by", "S-BDT, the initial score"
STOP = "whether any record can still pay, which ends the trees", "S-BDT, the extra trees"
BROKEN = Broken(
    "the published program divides the initial score by the exact number of records, and has half the noise that the "
    "Hessians need (pub-s-bdt)",
    (GREY_BOX,),
)
#: Factor of the Hessians' noise in the published program.
QUIET = 0.5
#: No initial score is further from 0 than this in the repair.
_FARTHEST = 5.0


def random_leaves(size: int, ordered: bool, depth: int, chance: Chance) -> np.ndarray:
    """The leaf of each code of a feature in a random tree of that depth over this feature alone: int64, (size,).

    Each node cuts a number at a place drawn from all, which parts nothing where an earlier cut has been beyond it.  A
    category is parted from all others, ``depth`` times, each drawn from all categories.
    """
    if size < 2:
        return np.zeros(size, dtype=np.int64)
    each, leaf = np.arange(size), np.zeros(size, dtype=np.int64)
    if not ordered:
        for category in chance.integers(size, depth).tolist():
            leaf[category] = leaf[category] or leaf.max() + 1
        return np.unique(leaf, return_inverse=True)[1]
    for _ in range(depth):
        if (n_leaves := int(leaf[-1]) + 1) == size:
            break
        cuts = chance.integers(size - 1, n_leaves)
        leaf = np.unique(2 * leaf + (each > cuts[leaf]), return_inverse=True)[1]
    return leaf


@claim("cex-s-bdt-initial-score")
def initial_score(ones: float, n_records: float) -> float:
    """The log odds of a share of records of the second class, which is kept a tiny bit within 0 and 1."""
    share = min(max(ones / max(n_records, 1), 2e-15), 1 - 2e-15)
    return float(log(share) - log(1 - share))


class SBDTClassifier(GaussianBoostedClassifier):
    """Boosted random trees of one feature each, with Newton leaves and an individual filter, of two classes.

    Guarantee
    ---------
    ``variant="proved"``: ``(epsilon, delta)``-differential privacy of the released tables under ``relation``
    (:prf:ref:`thm-s-bdt`).  ``variant="published"``: none with an initial score under add-remove, and else more than it
    says (:prf:ref:`pub-s-bdt`).

    Source
    ------
    Kirschte, Peinemann, Stock, Cotrini and Mohammadi, arXiv:2309.12041, with its authors' program.

    Notes
    -----
    Each tree cuts a single feature, the features taking turns, so that all trees of a feature together are one table:
    the model is additive, and can be drawn.

    What ``variant="published"`` does: an initial score by a noisy count over the exact number of records; leaves whose
    Hessians have half the noise that their clip asks for; noise for a record that is added or removed under either
    relation; no more trees where no record can pay.  All noise is discrete Gaussian, of the variance of the program's.
    There is no subsampling, as where ``subsampling_ratio`` is 1 in the program.

    A table that an engine reads is read once a tree, and each time all rounds before are gone through again: what a
    record has paid is kept nowhere.  So the time grows with the square of the number of trees.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.s_bdt import SBDTClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = SBDTClassifier(epsilon=8.0, schema=schema, n_estimators=10, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    delta: Annotated[float, Delta(), "Positive: the noise is Gaussian.  Well below one over the number of records."] = (
        5e-8
    )
    n_estimators: Annotated[
        int, Integer(1, 100_000), "Trees that a record can pay which contributes all it may to each."
    ] = 200
    extra_estimators: Annotated[
        int, Integer(0, 100_000), "Trees after those, for the records that have something left."
    ] = 0
    learning_rate: Annotated[float, Number(1e-6, 10), "Factor of every step."] = 0.1
    max_depth: Annotated[int, Integer(1, MAX_DEPTH), "Cuts on a path of a tree."] = 6
    gradient_clip: Annotated[float, Number(0, 1, above=True), "Gradients are clipped to it; none exceeds 1."] = 0.5
    hessian_clip: Annotated[float, Number(0, 0.25, above=True), "Hessians are clipped to it; none exceeds 1/4."] = 0.1
    hessian_share: Annotated[float, Share(), "Part of a tree's budget that the Hessians have."] = 0.1
    reg_lambda: Annotated[float, Number(1e-6, 1e9), "Is added to the Hessians of each leaf."] = 15.0
    max_step: Annotated[float, Number(1e-6, 100), "No leaf says more than this, before the learning rate."] = 2.0
    init_share: Annotated[
        float, Number(0, 0.9), "Share of the initial score: of the rho if proved, of epsilon as published; 0 for none."
    ] = 0.1

    @claim("alg-s-bdt", "pub-s-bdt")
    def as_published(self, run: Run) -> BoostedForest:
        """An initial score over the exact number of records; half of the Hessians' noise; noise for one relation."""
        run.start_forest(len(run.sizes))
        epsilon, start = run.epsilon, 0.0
        if self.init_share:
            # the program's Laplace noise of scale 1 / (2 a) has the variance of a rate of a^2
            rate = (self.init_share * epsilon) ** 2
            [[_, ones]] = run.count_classes(run.frontier[[0]], rate * HISTOGRAM_SENSITIVITY[run.relation])
            start = initial_score(float(ones), run.size(SIZE))
        rest = in_charges((1 - self.init_share) * epsilon, self.delta)
        return self._boost(run, self._filter_limits(rest, ADD_REMOVE, QUIET), start, stops=True)

    @claim("thm-s-bdt")
    def as_proved(self, run: Run) -> BoostedForest:
        """The repair: a noisy number of records, and noise that the Hessians and the relation need."""
        run.start_forest(len(run.sizes))
        start = 0.0
        if self.init_share:
            counts = run.count_classes(run.frontier[[0]], self.init_share * run.budget)
            zeros, ones = np.maximum(counts[0], 1).tolist()
            start = min(max(initial_score(ones, zeros + ones), -_FARTHEST), _FARTHEST)
        return self._boost(run, self._filter_limits((1 - self.init_share) * run.budget, run.relation), start)

    def _filter_limits(self, rho: float, relation: str, quiet: float = 1.0) -> FilterLimits:
        """What the filter of individual budgets allows: bounds of a record's sums, and a total of ``rho``."""
        gradient, hessian = (max(1, round(clip * FINEST)) for clip in (self.gradient_clip, self.hessian_clip))
        n_rounds = self.n_estimators + self.extra_estimators
        return FilterLimits(gradient, hessian, self.hessian_share, self.n_estimators, rho, relation, quiet, n_rounds)

    def _boost(self, run: Run, limits: FilterLimits, start: float, stops: bool = False) -> BoostedForest:
        """The trees, each of one feature, from the score ``start``; all of a feature are one table.

        ``stops``: the extra trees end where no record can pay, as published.
        """
        n_features = len(run.sizes)
        tables = FeatureTables(run)
        newest = tables.move(0, np.full(run.sizes[0], whole_votes(np.array(start)))) if start else None
        run.open_filter(tables.roots[[0]], limits)
        for number in range(limits.n_rounds):
            feature = number % n_features
            run.join_round(newest)
            if stops and number >= limits.rounds and not run.peek_joined(STOP):
                break
            leaf_of = random_leaves(int(run.sizes[feature]), bool(run.ordered[feature]), self.max_depth, run.chance)
            sums = run.sum_filtered(tables.roots[[feature]], Crossings.of([[(feature, leaf_of)]])) / FINEST
            gradients, hessians = sums.T
            steps = np.clip(gradients / (np.maximum(hessians, 0) + self.reg_lambda), -self.max_step, self.max_step)
            moved = whole_votes(self.learning_rate * np.where(hessians < 0, 0.0, steps))[leaf_of]
            newest = tables.move(feature, moved)
        tables.set_leaf_values()
        return boosted(run, "softmax")

    TITLE, DELTA = "S-BDT", "5e-8 is the published one"
    FACTS = Facts(leaks="size", two_classes=True)
    AUDIT: ClassVar = AuditSpec(
        "s-bdt",
        (({}, 2, None), ({"n_estimators": 2, "extra_estimators": 2}, 1, None), ({"variant": "published"}, 2, None)),
        dict.fromkeys(RELATIONS, BROKEN),
        defaults={"n_estimators": 1},
    )
