"""DP-EBM: an additive model of one table a feature, boosted with Gaussian noise (Nori et al., 2021).

Histograms of the features make the bins.  Then the rounds visit the features in turn: the bins of one feature are cut
into a few leaves at random, and each leaf moves the score by the noisy sum of its residuals.  The chapter *DP-EBM*
tells what of the published claim holds, and why the repair does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from dpforest.curator import FINEST
from dpforest.curator.queries import CellResiduals, WideResiduals
from dpforest.learners.audited import GREY_BOX, AuditSpec, Broken
from dpforest.learners.boosting import LOUDEST, boosted, whole_votes
from dpforest.learners.facts import Facts
from dpforest.learners.gaussian_boosting import FeatureTables, GaussianBoosted, GaussianBoostedClassifier
from dpforest.learners.growth import Frontier
from dpforest.learners.parameters import Delta, Integer, Number, Share
from dpforest.learners.run import Run
from dpforest.models.boosted import NO_LINK, BoostedForest, BoostedRegressor
from dpforest.privacy import HISTOGRAM_SENSITIVITY, RELATIONS, claim
from dpforest.privacy.gaussian import gaussian_mu
from dpforest.schema import MAX_CODES
from dpforest.structure.crossings import Crossings

__all__ = ["Bins", "DPEBMClassifier", "DPEBMRegressor", "merge_categories", "merge_numbers"]

SIZE = "the exact number of records, which the weight of a bin has to reach", "DP-EBM, the histograms"
OCCURS = "which categories occur", "DP-EBM, the histograms of categories"
BROKEN = Broken(
    "the published code reads, without a charge, which categories occur, under add-remove the number of records, and "
    "has half the noise that replace-one needs (pub-dp-ebm)",
    (GREY_BOX,),
)
BROKEN_FOR_NUMBERS = Broken(
    "the published code has noise for residuals of one range of the target, which nothing keeps them to, and faults of "
    "the classifier's code (pub-dp-ebm-regression)",
    (GREY_BOX,),
)


class Bins(NamedTuple):
    """The bins of one feature, made from its noisy histogram.

    Attributes
    ----------
    bin_of : ndarray of int64, shape (n_codes,)
        The bin of each code: 0, 1, ... .
    weights : ndarray of float64, shape (n_bins,)
        Noisy number of records of each bin, positive.
    """

    bin_of: np.ndarray
    weights: np.ndarray

    def leaves(self, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The leaf of each code, and the weight of each leaf, where bins are cut after those in ``cuts``."""
        leaf = (np.arange(len(self.weights))[:, None] > cuts).sum(axis=1)
        return leaf[self.bin_of], np.bincount(leaf, weights=self.weights)


def merge_numbers(counts: np.ndarray, target: float) -> Bins:
    """Merge the codes of a number, from the lowest up, into bins of a noisy weight of at least ``target``.

    What is left at the end goes to the last bin.  Where all codes together do not reach the target, there is one bin,
    which weighs as much.
    """
    bin_of, weight = np.zeros(len(counts), dtype=np.int64), 0.0
    weights: list[float] = []
    for code, count in enumerate(np.maximum(counts, 0).tolist()):
        bin_of[code] = len(weights)
        weight += count
        if weight >= target:
            weights.append(weight)
            weight = 0.0
    if not weights:
        return Bins(np.zeros_like(bin_of), np.array([target]))
    weights[-1] += weight
    return Bins(np.minimum(bin_of, len(weights) - 1), np.array(weights))


@claim("cex-dp-ebm-categories")
def merge_categories(counts: np.ndarray, target: float, occurs: np.ndarray | None = None) -> Bins:
    """Give a bin to each category of a noisy weight of at least ``target``, and one to all others, which is the last.

    The others take in the lightest of the rest if they do not reach the target.  Categories that do not occur, by
    ``occurs`` (bool, as ``counts``), are in the last bin and weigh nothing.
    """
    counts = np.maximum(counts, 0).astype(float)
    there = np.ones(len(counts), dtype=bool) if occurs is None else occurs
    kept = there & (counts >= target)
    others = float(counts[there & ~kept].sum())
    if (there & ~kept).any() and others < target and kept.any():
        lightest = int(np.argmin(np.where(kept, counts, np.inf)))
        kept[lightest], others = False, others + float(counts[lightest])
    bin_of = np.where(kept, np.cumsum(kept) - 1, kept.sum())
    weights = counts[kept]
    if not (there & ~kept).any() and len(weights):
        return Bins(np.minimum(bin_of, len(weights) - 1), weights)
    return Bins(bin_of, np.append(weights, others if len(weights) else max(others, target)))


class _DPEBM(GaussianBoosted):
    """What the classifier and the regressor share."""

    delta: Annotated[float, Delta(), "Positive: the noise is Gaussian.  Well below one over the number of records."] = (
        1e-5
    )
    n_bins: Annotated[
        int | str, "Public bins of each numeric feature, equally wide, of which the histograms make fewer; 2 to 255."
    ] = 62
    n_estimators: Annotated[int, Integer(1, 100_000), "Rounds; each visits every feature once."] = 300
    learning_rate: Annotated[float, Number(1e-6, 10), "Factor of every step."] = 0.01
    max_leaves: Annotated[int, Integer(1, MAX_CODES), "Leaves of a step, cut at random."] = 3
    max_bins: Annotated[
        int, Integer(3, MAX_CODES), "Bins of a feature, about, one of them for what is missing: the rest weigh alike."
    ] = 32
    bin_budget_frac: Annotated[
        float, Share(), "Share of the histograms: of the rho if proved, of epsilon as published."
    ] = 0.1

    @claim("alg-dp-ebm", "pub-dp-ebm", "pub-dp-ebm-regression")
    def as_published(self, run: Run) -> BoostedForest:
        """Noise by Gaussian differential privacy; the exact number of records; the categories that occur."""
        share, delta, n_steps = self.bin_budget_frac, self.delta / 2, self.n_estimators * len(run.sizes)
        for_bins, for_steps = (gaussian_mu(run.epsilon * part, delta) for part in (share, 1 - share))
        run.start_forest(1)
        occurs = np.ones(int(run.sizes.sum()), dtype=bool)
        if not run.ordered.all():
            [occurs] = run.peek_codes(run.frontier, OCCURS)
        # a mu is a rho of half its square where a record is added or removed, which is what the noise is made for
        histograms = self._histograms(run, for_bins**2 / 2 * HISTOGRAM_SENSITIVITY[run.relation])
        bins = self._bins(run, histograms, run.size(SIZE), occurs)
        return self._boost(run, bins, for_steps**2 / 2 / n_steps * CellResiduals.sensitivity[run.relation])

    @claim("thm-dp-ebm")
    def as_proved(self, run: Run) -> BoostedForest:
        """The repair: the noisy number of records, all declared categories, and noise for either relation."""
        run.start_forest(1)
        share, n_steps = self.bin_budget_frac, self.n_estimators * len(run.sizes)
        histograms = self._histograms(run, share * run.budget)
        n_records = float(np.mean([counts.sum() for counts in histograms]))
        bins = self._bins(run, histograms, n_records)
        return self._boost(run, bins, (1 - share) * run.budget / n_steps)

    def _histograms(self, run: Run, budget: float) -> list[np.ndarray]:
        """The noisy number of records of each code, feature by feature."""
        every = np.ones((1, len(run.sizes)), dtype=bool)
        counts = run.count_children(run.frontier, every, budget, classes=False)[0, :, 0]
        return np.split(counts, np.cumsum(run.sizes)[:-1])

    def _bins(
        self, run: Run, histograms: Sequence[np.ndarray], n_records: float, occurs: np.ndarray | None = None
    ) -> list[Bins]:
        """The bins of each feature, merged by noisy numbers of records; ``occurs`` marks the codes that have any."""
        target = max(n_records, 1.0) / (self.max_bins - 1)
        there = [None] * len(histograms) if occurs is None else np.split(occurs, np.cumsum(run.sizes)[:-1])
        return [
            merge_numbers(counts, target) if ordered else merge_categories(counts, target, mine)
            for counts, ordered, mine in zip(histograms, run.ordered.tolist(), there, strict=True)
        ]

    @claim("lem-residual-sums")
    def _boost(self, run: Run, bins: Sequence[Bins], budget: float) -> BoostedForest:
        """The rounds: ``budget`` buys the sums of one step."""
        n_features = len(bins)
        run.start_forest(n_features)
        tables = FeatureTables(run)
        self._set_initial_scores(run, tables)
        cuts = [
            run.chance.subsets(max(n - 1, 1), min(self.max_leaves, n) - 1, self.n_estimators)
            for n in (len(each.weights) for each in bins)
        ]
        for number in run.rounds(self.n_estimators):
            for feature in range(n_features):
                leaf_of, weights = bins[feature].leaves(cuts[feature][number])
                sums = self._sum_residuals(run, tables.roots[[feature]], feature, leaf_of, budget) / FINEST
                steps = np.clip(self.learning_rate * sums / weights, -LOUDEST, LOUDEST)
                run.add_scores(tables.move(feature, whole_votes(steps)[leaf_of]))
        tables.set_leaf_values()
        return boosted(run, self._link)

    def _set_initial_scores(self, run: Run, tables: FeatureTables) -> None:
        """Give all records their first score, if it is not 0."""

    def _sum_residuals(self, run: Run, root: Frontier, feature: int, leaf_of: np.ndarray, budget: float) -> np.ndarray:
        """Noisy sums of the residuals in the leaves of one feature, in steps of ``1 / FINEST``."""
        raise NotImplementedError

    TITLE, DELTA = "DP-EBM", "1e-5 is the published one"
    _link: ClassVar[str]


@claim("alg-dp-ebm", "thm-dp-ebm", "pub-dp-ebm")
class DPEBMClassifier(_DPEBM, GaussianBoostedClassifier):
    """Explainable boosting: an additive model of two classes, one released table a feature.

    Guarantee
    ---------
    ``variant="proved"``: ``(epsilon, delta)``-differential privacy of the released tables under ``relation``
    (:prf:ref:`thm-dp-ebm`).  ``variant="published"``: none under add-remove, and more than it says under replace-one
    (:prf:ref:`pub-dp-ebm`).

    Source
    ------
    Nori, Caruana, Bu, Shen and Kulkarni, ICML 2021, with its authors' program, interpret-core 0.7.8; the defaults are
    those of the program.

    Notes
    -----
    The score of a record is the sum of what its code says by each feature, and the softmax of it a probability.  Scores
    begin at 0: where one class is rare, many rounds go into the base rate.

    What ``variant="published"`` does: noise by Gaussian differential privacy, ``bin_budget_frac`` of epsilon and half
    of delta for the bins; the weight of a bin reaches for the exact number of records; a category that does not occur
    has no count.  Bounds are the declared ones, and the noise is discrete.

    A table that an engine reads is read once a step, which is ``n_estimators`` times the number of features, and each
    time the scores of all steps before are added up again: the time grows with the square of the number of steps.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.dp_ebm import DPEBMClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DPEBMClassifier(epsilon=4.0, schema=schema, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    _link = "softmax"

    def _sum_residuals(self, run: Run, root: Frontier, feature: int, leaf_of: np.ndarray, budget: float) -> np.ndarray:
        return run.sum_residuals(root, Crossings.of([[(feature, leaf_of)]]), budget)

    FACTS = Facts(leaks="records", two_classes=True)
    AUDIT: ClassVar = AuditSpec(
        "dp-ebm",
        (({}, 2, None), ({"n_estimators": 2, "max_leaves": 2}, 1, None), ({"variant": "published"}, 2, None)),
        dict.fromkeys(RELATIONS, BROKEN),
        defaults={"n_estimators": 1},
    )


@claim("thm-dp-ebm", "pub-dp-ebm-regression", "cex-dp-ebm-target")
class DPEBMRegressor(_DPEBM, BoostedRegressor):
    """Explainable boosting of a number: an additive model, one released table a feature.

    Guarantee
    ---------
    As for :class:`DPEBMClassifier`: ``(epsilon, delta)`` if proved (:prf:ref:`thm-dp-ebm`).  None if published: the
    noise is made for residuals of at most one range of the target, and nothing keeps them there
    (:prf:ref:`cex-dp-ebm-target`).

    Source
    ------
    As for :class:`DPEBMClassifier`; the program's ``DPExplainableBoostingRegressor``.

    Notes
    -----
    The prediction is the sum of what the tables say, within the declared range of the target.  It begins in the middle
    of the range, and residuals are clipped to one range.

    What ``variant="published"`` does in addition: predictions begin at the target 0, wherever the range lies, and
    residuals are whatever they are, up to 1024 ranges.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.dp_ebm import DPEBMRegressor
    >>> schema = Schema(numeric={"x": (0, 1)}, target=(0, 10))
    >>> X = [[i / 400] for i in range(400)]
    >>> y = [2.0] * 200 + [8.0] * 200
    >>> model = DPEBMRegressor(epsilon=4.0, schema=schema, random_state=0).fit(X, y)
    >>> low, high = model.predict([[0.1], [0.9]])
    >>> bool(low < 4 and high > 6)
    True
    """

    _link = NO_LINK

    def _set_initial_scores(self, run: Run, tables: FeatureTables) -> None:
        start = 0.5
        if self.variant == "published":
            low, high = run.schema.decode_target([0, 1])
            start = float(np.clip(-low / (high - low), -WideResiduals.limit, WideResiduals.limit))
        run.add_scores(tables.move(0, whole_votes(np.full(run.sizes[0], start))))

    def _sum_residuals(self, run: Run, root: Frontier, feature: int, leaf_of: np.ndarray, budget: float) -> np.ndarray:
        if self.variant == "proved":
            return run.sum_target_residuals(root, feature, leaf_of, budget)
        # the noise that a residual of one range needs
        return run.sum_target_residuals(root, feature, leaf_of, budget * WideResiduals.limit**2, wide=True)

    FACTS = Facts(leaks="records")
    AUDIT: ClassVar = AuditSpec(
        "dp-ebm-regressor",
        (({}, 2, None), ({"n_estimators": 2, "max_leaves": 2}, 1, None), ({"variant": "published"}, 2, None)),
        dict.fromkeys(RELATIONS, BROKEN_FOR_NUMBERS),
        defaults={"n_estimators": 1},
    )
