"""DP-AdaBoost: boosted private stumps (Shen, 2017), as CART-DPsAdaBoost describes it.

A round's stump splits on one feature, with one child per code.  The chapter *Boosting* tells where the published
algorithm fails and why the repair holds.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpforest import budgets, scores
from dpforest.learners.audited import Audited, refuted
from dpforest.learners.boosting import CLASSES, OTHER, PrivateBoostedClassifier, adaboost, peek
from dpforest.learners.growth import MAX_NODES, Growth, one_vote
from dpforest.models.boosted import BoostedForest
from dpforest.models.forest import Forest
from dpforest.privacy import HISTOGRAM_SENSITIVITY, claim

__all__ = ["DPAdaBoostClassifier"]

SCALE = "the largest weight of a record, as the scale of the noise", "DP-AdaBoost, the counts of a leaf"
GAIN = "which feature has the largest information gain", "DP-AdaBoost, the split"
ERROR = "the weighted error of a stump, of which alpha is made", "DP-AdaBoost, the weight of a stump"
UPDATE = "the weights, divided by their sum", "DP-AdaBoost, the weights of the next round"


@claim("alg-dp-adaboost", "thm-dp-adaboost", "pub-dp-adaboost")
class DPAdaBoostClassifier(PrivateBoostedClassifier):
    """Boosted private stumps.

    A round chooses one feature by a private selection and splits on it, with one child per code; its leaves vote by
    noisy class counts, in which each record has a weight between 0 and 1 as in
    :class:`~dpforest.papers.dps_adaboost.DPsAdaBoostClassifier`.

    Parameters
    ----------
    epsilon : float
        Privacy budget of all rounds together, positive; ``"non-private"`` turns the noise off.
    schema : Schema
        What is public: bounds, categories, classes.  Required.  The data need not hold every class.
    n_estimators : int
        Rounds.
    n_bins : int
        Public bins of each numeric feature, between 2 and 255, which the stumps take for categories.
    relation : {"add-remove", "replace-one"}
        Which data sets are neighbours.
    variant : {"proved", "published"}
        ``"published"`` is the algorithm as described, for two classes; see Notes.  It warns, for it is not private.
    votes, weights, learning_rate, alpha_max, smoothing, class_weight, sampling
        As in :class:`~dpforest.papers.dps_adaboost.DPsAdaBoostClassifier`.
    selection : {"permute-and-flip", "exponential"}
    criterion : {"gini", "gini-gain", "majority"}
        Split utility.
    leaf_share : float
        Share of a round's budget that is kept for its leaves, between 0 and 1.
    source : {"seeded", "secure"}
    random_state : None, int, Generator or RandomState
    n_jobs : int or None
        As in :class:`~dpforest.papers.dps_adaboost.DPsAdaBoostClassifier`.

    Attributes
    ----------
    boosted_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released stumps and votes under ``relation``
    (:prf:ref:`thm-dp-adaboost`).  ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-dp-adaboost`).

    Source
    ------
    Shen, thesis, Nanjing University of Aeronautics and Astronautics, 2017, read through the CART-DPsAdaBoost paper
    (table 1 and section 4.2.2).

    Notes
    -----
    What ``variant="published"`` does: no noise at the choice of the feature, which is the one of the largest
    information gain of the weighted counts; ``epsilon / T`` for a stump, all of it for the weighted class counts of its
    leaves, with noise at the scale of the largest weight over that; the label of a leaf from these counts; AdaBoost's
    alpha and weights from exact errors, see :func:`~dpforest.learners.boosting.adaboost`.  Weights are counted in steps
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

    max_nodes = MAX_NODES

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, n_bins=16, relation="add-remove", variant="proved",
        votes="real", weights="capped", learning_rate=1.0, alpha_max=2.0, smoothing=1.0, class_weight=None,
        sampling="all", selection="permute-and-flip", criterion="gini", leaf_share=0.5, source="seeded",
        random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.votes = votes
        self.weights = weights
        self.learning_rate = learning_rate
        self.alpha_max = alpha_max
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.sampling = sampling
        self.selection = selection
        self.criterion = criterion
        self.leaf_share = leaf_share
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow_round(self, growth, curator, chance, schema, epsilon, grown):
        shares, root = budgets.Shares("aligned-uniform", epsilon, 2, self.leaf_share), growth.frontier
        feature = curator.choose_feature(
            growth, root.nodes, root.scopes, root.unused, shares.branch(1), score=scores.CLASSIFICATION[self.criterion],
            mechanism=self.selection,
        )  # fmt: skip
        grown.settle(growth.branch(root, feature, curator.cardinalities[feature]), shares.leaf(2, stopped=False))

    def _grow_published(self, curator, chance, schema, ledger, epsilon) -> BoostedForest:
        self._check_letter(schema, "selection", "criterion", "leaf_share")
        growth = Growth(self.n_estimators, schema.n_features, 2, ledger, "sequential", self.max_nodes)
        first = np.cumsum(curator.cardinalities) - curator.cardinalities
        budget = epsilon / self.n_estimators * HISTOGRAM_SENSITIVITY[self.relation]

        def grow(number: int, alpha: float) -> Forest:
            root = growth.begin(number)
            peek(curator.count_by_share, SCALE)
            [histograms] = peek(curator.peek_histograms, GAIN, growth, root.nodes, root.unused)
            parts = np.split(histograms, first[1:])
            gains = [scores.information_gain(counts) for counts in parts]
            feature = np.array([np.argmax(gains)])
            leaves = growth.branch(root, feature, curator.cardinalities[feature])
            growth.settle(leaves, one_vote(curator.count_classes(growth, leaves.nodes, leaves.scopes, budget)))
            return growth.release().tree(number)

        return adaboost(curator, self.n_estimators, grow, ERROR, UPDATE)

    AUDIT: ClassVar = Audited(
        "dp-adaboost",
        (
            ({}, 2, None),
            (CLASSES | {"criterion": "majority", "selection": "exponential"}, 2, None),
            ({"n_estimators": 2, "criterion": "gini-gain"}, 1, None),
            (OTHER | {"sampling": "assignment"}, 1, None),
            (OTHER | CLASSES, 1, None),
            ({"variant": "published"}, 2, None),
        ),
        refuted("the published code reads, unpaid, the weights, the errors and the best splits (pub-dp-adaboost)"),
    )
