"""DP-AdaBoost: boosted private stumps (Shen, 2017), as CART-DPsAdaBoost describes it.

A round's stump splits on one feature, with one child per code.  The chapter *Boosting* tells where the published
algorithm fails and why the repair holds.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.budgets import Shares
from dpforest.learners.audited import AuditSpec, refuted
from dpforest.learners.boosting import CLASSES, OTHER, AdaBoost, PrivateBoostedClassifier, boosted
from dpforest.learners.facts import Facts
from dpforest.learners.growth import one_vote
from dpforest.learners.run import Run
from dpforest.models.boosted import BoostedForest
from dpforest.privacy import HISTOGRAM_SENSITIVITY, claim

__all__ = ["DPAdaBoostClassifier"]

SCALE = "the largest weight of a record, as the scale of the noise", "DP-AdaBoost, the counts of a leaf"
GAIN = "which feature has the largest information gain", "DP-AdaBoost, the split"
ERROR = "the weighted error of a stump, of which alpha is made", "DP-AdaBoost, the weight of a stump"
UPDATE = "the weights, divided by their sum", "DP-AdaBoost, the weights of the next round"


class DPAdaBoostClassifier(PrivateBoostedClassifier):
    """Boosted private stumps.

    A round chooses one feature by a private selection and splits on it, with one child per code; its leaves vote by
    noisy class counts, in which each record has a weight between 0 and 1 as in
    :class:`~dpforest.papers.dps_adaboost.DPsAdaBoostClassifier`.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released stumps and votes under ``relation``
    (:prf:ref:`thm-dp-adaboost`), ``(epsilon, delta)``-differential privacy with a ``delta``
    (:prf:ref:`thm-forest-delta`).  ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-dp-adaboost`).

    Source
    ------
    Shen, thesis, Nanjing University of Aeronautics and Astronautics, 2017, read through the CART-DPsAdaBoost paper
    (table 1, sections 1, 3.1 and 4.2.2).

    Notes
    -----
    What ``variant="published"`` does: no noise at the choice of the feature, which is the one of the largest
    information gain of the weighted counts; ``epsilon / T`` for a stump, all of it for the weighted class counts of its
    leaves, with noise at the scale of the largest weight over that; the label of a leaf from these counts; AdaBoost's
    alpha and weights from exact errors, see
    :class:`~dpforest.learners.boosting.AdaBoost`.  Weights are counted in steps
    of 1/127 of the largest, with two-sided geometric noise in place of Laplace noise; the ledger is charged as if the
    weights were public, and says that they are not.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DPAdaBoostClassifier(epsilon=4.0, schema=schema, n_estimators=2, n_bins=4, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the algorithm as described, for two classes; see Notes.  It warns, for it is not
        private.""",
    ] = "proved"
    n_bins: Annotated[
        int | str, "Public bins of each numeric feature, from 2 to 255, which the stumps take for categories."
    ] = 16

    @claim("alg-dp-adaboost", "pub-dp-adaboost")
    def as_published(self, run: Run) -> BoostedForest:
        """Stumps of largest information gain, noisy labels, and AdaBoost's votes."""
        budget = run.start_forest(self.n_estimators, "all", self.max_nodes) * HISTOGRAM_SENSITIVITY[run.relation]
        boost = AdaBoost(run, ERROR, UPDATE)
        for number, _ in boost.rounds(self.n_estimators):
            root = run.frontier
            run.count_by_share(SCALE)  # counts of weights over the largest, so that noise has its scale
            [histograms] = run.peek_histograms(root, root.unused, GAIN)
            gains = [scores.information_gain(counts) for counts in np.split(histograms, np.cumsum(run.sizes)[:-1])]
            crowded = run.split_multiway(root, np.array([np.argmax(gains)]))  # no room within max_nodes
            for leaves in (crowded, run.frontier):
                run.set_leaf_values(leaves, one_vote(run.count_classes(leaves, budget)))
            boost.add(run.tree(number))
        return boost.release()

    @claim("thm-dp-adaboost", "thm-forest-delta")
    def as_proved(self, run: Run) -> BoostedForest:
        """The repair: weights of the own record, a selection of the feature, and votes from the counts paid for."""
        for this in self.rounds(run):
            root = run.frontier
            shares = Shares("aligned-uniform", this.epsilon, 2, self.leaf_share)
            crowded = run.split_multiway(root, run.choose_feature(root, shares.branch(1), self._selection()))
            this.settle(crowded, shares.leaf(1, selected=True))
            this.settle(run.frontier, shares.leaf(2, selected=False))
        return boosted(run, self.weights)

    FACTS = Facts(leaks="records", two_classes=True, in_memory=True)
    AUDIT: ClassVar = AuditSpec(
        "dp-adaboost",
        (
            ({}, 2, None),
            (CLASSES | {"criterion": "majority", "selection": "exponential"}, 2, None),
            ({"n_estimators": 2, "criterion": "gini-gain"}, 1, None),
            (OTHER | {"sampling": "assignment"}, 1, None),
            (OTHER | CLASSES, 1, None),
            ({"variant": "published"}, 2, None),
        ),
        refuted(
            "the published code reads, without a charge, the weights, the errors and the best splits (pub-dp-adaboost)"
        ),
    )
