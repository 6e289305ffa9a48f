"""DiffPETs: differentially private extra-trees for classification and regression (the paper of that name, 2020).

A node tries K random features, each at one random cut, and chooses among them by the exponential mechanism; the
leaves are released with noise.  The chapters *DiffPETs: classification* and *DiffPETs: regression* tell where the
published proof fails and why the repair holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpforest import budgets, scores
from dpforest.learners.audited import HALF_STOP, Audited, refuted
from dpforest.learners.base import PrivateEstimator, PrivateForestClassifier, PrivateForestRegressor, check_covered
from dpforest.learners.cuts import CutPool, random_cuts
from dpforest.learners.growth import MAX_NODES, Frontier, Growth, grow_chosen, one_vote, pure, votes
from dpforest.learners.parameters import check_choice, check_count, check_number, check_share
from dpforest.learners.sharing import SAMPLINGS, n_candidates, share_out
from dpforest.mechanisms import SELECTIONS, exponential
from dpforest.models.forest import cut_masks
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import HISTOGRAM_SENSITIVITY, claim
from dpforest.schema import TARGET_LEVELS

__all__ = ["DiffPETsClassifier", "DiffPETsRegressor"]

HEAD_START = 6.0  # of *stop*
TALL = 10  # height beyond which the default would make more leaves than a table has records
LEAVES = ("counts", "label")
LETTER = {"max_features": "sqrt", "cuts_per_feature": 1}  # the paper's candidates, which the regressor keeps
SOURCE = "DiffPETs algorithm 2"
PURITY = "which nodes hold a single class", f"{SOURCE}, termination"
ERROR = "which nodes have an error below the threshold", f"{SOURCE}, termination"
VALUES = "which values of each feature occur in a node", f"{SOURCE}, line 5"
LABEL = "the commonest class of each leaf", f"{SOURCE}, line 2"


class _DiffPETs(PrivateEstimator):
    """What the classifier and the regressor share."""

    _SCORES: ClassVar[Mapping[str, scores.Score]]

    def _grow(self, curator, chance, schema, ledger, epsilon):
        published = self.variant == "published"
        sampling = "bootstrap" if published else self.sampling
        share, sharing = share_out(sampling, curator, epsilon, self.n_estimators, self.relation)
        growth = Growth(
            self.n_estimators, schema.n_features, self._n_values(curator), ledger, sharing, self.max_nodes
        )  # fmt: skip
        depth = self._height(schema) + 1
        if published:  # eps_2 = eps_1 / (2 (h + 1)); the other half is never spent
            shares = budgets.Shares("uniform", share / 2, depth)
        else:
            shares = budgets.Shares("aligned-uniform", share, depth, self.leaf_share, self.level_ratio)
        ordered = [published or name in schema.numeric for name in schema.columns]
        pool = CutPool(chance, curator.cardinalities, ordered)
        grow_chosen(
            growth, curator, shares,
            draw=lambda inner: self._candidates(curator, chance, growth, inner, pool),
            settle=lambda leaves, left: self._settle(growth, curator, leaves, left),
            finished=(lambda frontier: self._finished(curator, growth, frontier)) if published else None,
            score=self._score(), mechanism="exponential" if published else self.selection,
            calibration="sensitivity" if published else "range",
            stop_margin=self.stop_margin if self.stop == "candidate" and not published else None,
        )  # fmt: skip
        return growth.release(self._half_weight(shares.leaf(depth, stopped=False)))

    def _candidates(self, curator, chance, growth, inner: Frontier, pool: CutPool):
        """Binary candidates of each node: random features, each at a random cut."""
        size = n_candidates(self.option("max_features"), pool.n_features)
        features, masks = random_cuts(chance, pool, len(inner), size, self.option("cuts_per_feature"))
        if self.variant == "published":
            what, where = VALUES
            occur = curator.peek_codes(growth, inner.nodes, what=what, where=where)
            masks = _cuts_at_values(chance, occur, features, curator.cardinalities)
        return features, masks

    def _height(self, schema) -> int:
        if self.max_depth is not None:
            return self.max_depth
        half = max(1, schema.n_features // 2)  # h = k / 2
        return half if self.variant == "published" else min(half, TALL)

    def _half_weight(self, epsilon: float) -> float:
        """Public constant of the released forest: ``shrinkage`` times the scale of the noise in a leaf."""
        return 0.0 if np.isinf(epsilon) else float(self.shrinkage * self._unit() / epsilon)

    def _score(self) -> scores.Score:
        return self._SCORES[self.criterion]

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.n_estimators, "n_estimators")
        check_count(self.option("cuts_per_feature"), "cuts_per_feature")
        check_count(self.max_nodes, "max_nodes", least=self.n_estimators)
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", least=0, most=MAX_DEPTH)
        n_candidates(self.option("max_features"), 1)  # refuses what it does not know
        check_choice(self.sampling, "sampling", [name for name in SAMPLINGS if name != "bootstrap"])
        check_choice(self.selection, "selection", SELECTIONS)
        check_choice(self.stop, "stop", ("candidate", "never"))
        check_number(self.stop_margin, "stop_margin", -1e6, 1e6)
        check_number(self.shrinkage, "shrinkage", 0, 1e6)
        check_share(self.leaf_share, "leaf_share")
        if not check_number(self.level_ratio, "level_ratio", 0, 1) > 0:
            raise ValueError(f"level_ratio must be positive, not {self.level_ratio!r}")
        check_choice(self.criterion, "criterion", self._SCORES)
        if self.variant == "proved":
            check_covered(self._score(), self.relation, stop=self.stop, sampling=self.sampling)


def _cuts_at_values(chance, occur, features, cardinalities) -> np.ndarray:
    """Masks that cut each candidate at a code that occurs in its node, below the largest: codes above go right."""
    first = np.concatenate([[0], np.cumsum(cardinalities)])[features]
    every = np.arange(256)
    inside = every < cardinalities[features][..., None]
    occurs = inside & np.take_along_axis(occur[:, None], np.where(inside, first[..., None] + every, 0), axis=2)
    largest = np.where(occurs, every, -1).max(axis=-1, keepdims=True)
    # where one code occurs, or none, there is no cut to draw: all records go to the first child
    below = occurs & (every < largest)
    below |= ~below.any(axis=-1, keepdims=True) & (every == np.maximum(largest, 0))
    cut = exponential(np.where(below.reshape(-1, 256), 0.0, -np.inf), 0.0, chance)  # uniform over them
    return cut_masks(cut.reshape(features.shape), cardinalities[features])


@claim("alg-diffpets", "thm-diffpets", "pub-diffpets", "pub-diffpets-cut", "pub-diffpets-leaf", "pub-diffpets-budget")
class DiffPETsClassifier(_DiffPETs, PrivateForestClassifier):
    """Differentially private extra-trees for classification.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the whole forest, positive; ``"non-private"`` turns the noise off.
    schema : Schema
        What is public: bounds, categories, classes.  Required.
    n_estimators : int
    max_depth : int or None
        Splits on the longest path, the paper's height h; 0 makes every tree a single leaf.  None takes half the number
        of features, as in the paper, and if proved at most 10.
    max_features : {"auto", "sqrt", "all"} or int
        The paper's K: different random features among which a node chooses.  Auto is "sqrt" as published, "all" if
        proved: a selection costs the same however many candidates it has.
    cuts_per_feature : {"auto"} or int
        Random cuts of each of them.  Auto is 1 as published, 8 if proved.
    n_bins : int
        Public bins of each numeric feature, between 2 and 255; cuts fall on their edges.
    relation : {"add-remove", "replace-one"}
        Which data sets are neighbours.
    variant : {"proved", "published"}
        ``"published"`` is the paper to the letter: a bootstrap of the size of the data for every tree, cuts at values
        that occur in the node, categories cut by their order, the purity test, leaves that say their commonest class,
        half of the budget unspent.  It warns, for its proof fails.
    sampling : {"all", "assignment", "poisson"}
        Which records a tree sees if proved.  ``"all"``: every tree all of them, at ``epsilon / n_estimators``.
        ``"assignment"``: each record goes to one tree by a coin, and each tree has all of ``epsilon``.  ``"poisson"``:
        a bootstrap that is paid for in full (:prf:ref:`thm-bootstrap`).
    selection : {"permute-and-flip", "exponential"}
        Mechanism of the cuts, and of label leaves.
    criterion : {"gini", "gini-gain", "majority", "normalised-gini"}
        Split utility if proved; the published one is Gini.
    leaf : {"counts", "label"}
        A leaf says noisy class counts, which the forest adds up, or one label.
    leaf_share : float
        Share of a tree's budget that is kept for its leaves, between 0 and 1; the levels above divide the rest, and a
        leaf that ends a branch early also gets what the levels below it do not need.
    level_ratio : float
        What a level gets, relative to the level above it, in (0, 1]; 1 makes all levels equal.
    stop : {"candidate", "never"}
        Whether *stop* stands among the candidates of a node's selection.
    stop_margin : float
        Its head start, in units of the selection's noise.
    shrinkage : float
        How far class shares are drawn to those of the nodes above (:meth:`~dpforest.models.forest.Forest.shares`):
        the size, in units of the noise of a leaf, at which a leaf counts as much as the node above it.  0: sums.
    max_nodes : int
        The forest does not grow beyond this; branches that would are leaves.
    source : {"seeded", "secure"}
        Where the bits of the exact samplers come from: a seed, for research, or the system's entropy, for a release.
    random_state : None, int, Generator or RandomState
        Seed of the seeded source.  Whoever knows it can subtract the noise.
    n_jobs : int or None
        Threads that count.

    Attributes
    ----------
    forest_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-diffpets`).  ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-diffpets`).

    Source
    ------
    DiffPETs: algorithms 1 and 2, formula (5).

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.diffpets import DiffPETsClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DiffPETsClassifier(epsilon=2.0, schema=schema, n_estimators=2, max_depth=2, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    _SCORES: ClassVar[Mapping[str, scores.Score]] = {
        name: score for name, score in scores.CLASSIFICATION.items() if not score.needs_cap
    }
    _AUTO: ClassVar = {
        "published": LETTER, "proved": {"max_features": "all", "cuts_per_feature": 8}
    }  # fmt: skip

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, max_depth=None, max_features="auto",
        cuts_per_feature="auto", n_bins=32, relation="add-remove", variant="proved", sampling="all",
        selection="permute-and-flip", criterion="gini", leaf="counts", leaf_share=0.2, level_ratio=0.6,
        stop="candidate", stop_margin=HEAD_START, shrinkage=0.5, max_nodes=MAX_NODES, source="seeded",
        random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.cuts_per_feature = cuts_per_feature
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.sampling = sampling
        self.selection = selection
        self.criterion = criterion
        self.leaf = leaf
        self.leaf_share = leaf_share
        self.level_ratio = level_ratio
        self.stop = stop
        self.stop_margin = stop_margin
        self.shrinkage = shrinkage
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _score(self):
        return scores.gini if self.variant == "published" else super()._score()

    def _finished(self, curator, growth, frontier):
        what, where = PURITY
        return pure(curator.peek(growth, frontier.nodes, what=what, where=where))

    def _settle(self, growth, curator, leaves, epsilon) -> None:
        if self.variant == "published":
            curator.count_records(growth, leaves.nodes, leaves.scopes, epsilon)  # the paper pays for this alone
            what, where = LABEL
            values = one_vote(curator.peek(growth, leaves.nodes, what=what, where=where))
        elif self.leaf == "label":
            label = curator.choose_label(growth, leaves.nodes, leaves.scopes, epsilon, mechanism=self.selection)
            values = votes(label, curator.n_classes)
        else:
            values = curator.count_classes(growth, leaves.nodes, leaves.scopes, epsilon)
        growth.settle(leaves, values)

    def _n_values(self, curator) -> int:
        return curator.n_classes

    def _unit(self) -> float:
        """Noise of a leaf's values at epsilon 1; one vote has none."""
        noisy = self.leaf == "counts" and self.variant == "proved"
        return HISTOGRAM_SENSITIVITY[self.relation] if noisy else 0.0

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice(self.leaf, "leaf", LEAVES)

    def says_labels(self) -> bool:
        return self.leaf == "label" or self.variant == "published"

    AUDIT: ClassVar = Audited(
        "diffpets",
        (
            (HALF_STOP, 2, 1),
            ({}, 2, 1),
            (HALF_STOP | {"max_features": 1, "leaf": "label", "selection": "exponential"}, 2, 1),
            (HALF_STOP | {"criterion": "majority"}, 1, 2),
            (HALF_STOP | {"criterion": "gini-gain", "n_estimators": 2}, 1, 1),
            ({"stop": "never", "criterion": "normalised-gini", "cuts_per_feature": 2}, 2, 1),
            (HALF_STOP | {"sampling": "assignment", "n_estimators": 2}, 1, 1),
            (HALF_STOP | {"sampling": "poisson"}, 1, 1),
            ({"variant": "published"}, 1, 1),
        ),
        refuted(
            "the published code reads, unpaid, whether a node is pure, which values occur in it and the commonest "
            "class of a leaf (pub-diffpets)"
        ),
        usual={"n_estimators": 1, "cuts_per_feature": 1}, masks=True,  # a feature of two codes has a single cut
    )  # fmt: skip


@claim("thm-diffpets-regression", "pub-diffpets-regression", "pub-mean-noise")
class DiffPETsRegressor(_DiffPETs, PrivateForestRegressor):
    """Differentially private extra-trees for regression.

    Parameters
    ----------
    epsilon, n_estimators, max_depth, n_bins, relation, sampling, selection, leaf_share, level_ratio
        As in :class:`DiffPETsClassifier`.
    max_features : {"auto", "sqrt", "all"} or int
        The paper's K: different random features among which a node chooses.  Auto is "sqrt".
    cuts_per_feature : {"auto"} or int
        Random cuts of each of them.  Auto is 1.
    stop, stop_margin, max_nodes, source, random_state, n_jobs
        As in :class:`DiffPETsClassifier`.
    schema : Schema
        What is public: bounds, categories, and the ``target`` range.  Required.
    variant : {"proved", "published"}
        ``"published"`` is the paper to the letter: a bootstrap of the size of the data for every tree, cuts at values
        that occur in the node, categories cut by their order, the test of a node's error against a threshold, leaves
        that divide a noisy sum by a noisy count, half of the budget unspent.  It warns, for its proof fails.
    criterion : {"between", "sse", "mass-gap", "variance", "weighted-variance"}
        Split utility if proved, see :mod:`dpforest.scores`; the published one is the variance.
    shrinkage : float
        How far leaf means are drawn to those of the nodes above (:meth:`~dpforest.models.forest.Forest.shares`):
        the number of records, in units of the noise of a leaf, at which a leaf counts as much as the node above it.
    error_threshold : float
        A node whose mean squared error, in units of the squared target range, lies below it is a leaf; published only.

    Attributes
    ----------
    forest_, ledger_, guarantee_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-diffpets-regression`).  ``variant="published"``: none for any finite epsilon
    (:prf:ref:`pub-diffpets-regression`).

    Notes
    -----
    The target travels as one of ``TARGET_LEVELS + 1`` steps of its declared range; a constant target, or one outside
    the range (it is clipped and counted), is no error.

    Source
    ------
    DiffPETs: algorithms 1 and 2, sections 2.3.2 and 2.3.3, formula (7).

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.diffpets import DiffPETsRegressor
    >>> schema = Schema(numeric={"x": (0, 1)}, target=(0, 10))
    >>> X = [[i / 400] for i in range(400)]
    >>> y = [2.0] * 200 + [8.0] * 200
    >>> model = DiffPETsRegressor(epsilon=10.0, schema=schema, n_estimators=2, max_depth=2, random_state=0).fit(X, y)
    >>> low, high = model.predict([[0.1], [0.9]])
    >>> bool(low < 4 and high > 6)
    True
    """

    _SCORES: ClassVar[Mapping[str, scores.Score]] = scores.REGRESSION
    _AUTO: ClassVar = {"published": LETTER, "proved": LETTER}

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, max_depth=None, max_features="auto",
        cuts_per_feature="auto", n_bins=32, relation="add-remove", variant="proved", sampling="all",
        selection="permute-and-flip", criterion="between", leaf_share=0.5, level_ratio=0.6, stop="candidate",
        stop_margin=HEAD_START, shrinkage=2.0, error_threshold=1e-3, max_nodes=MAX_NODES, source="seeded",
        random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.cuts_per_feature = cuts_per_feature
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.sampling = sampling
        self.selection = selection
        self.criterion = criterion
        self.leaf_share = leaf_share
        self.level_ratio = level_ratio
        self.stop = stop
        self.stop_margin = stop_margin
        self.shrinkage = shrinkage
        self.error_threshold = error_threshold
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _score(self):
        return scores.variance if self.variant == "published" else super()._score()

    def _finished(self, curator, growth, frontier):
        what, where = ERROR
        count, total, squares = curator.peek_moments(growth, frontier.nodes, what=what, where=where).T
        # n^2 times the variance, in grid steps: whole numbers, so nothing is rounded before it is compared
        return count * squares - total**2 <= self.error_threshold * (count * TARGET_LEVELS) ** 2

    def _settle(self, growth, curator, leaves, epsilon) -> None:
        asked = growth, leaves.nodes, leaves.scopes
        if self.variant == "published":  # sum and count, with noise for a sensitivity of 2 on each
            total = curator.sum_targets(*asked, epsilon / 2)
            count = curator.count_records(*asked, epsilon / 2)
            growth.settle(leaves, np.stack([total, TARGET_LEVELS * count - total], axis=1))
        else:
            growth.settle(leaves, curator.sum_masses(*asked, epsilon))

    def _n_values(self, curator) -> int:
        return 2

    def _unit(self) -> float:
        """Noise of a leaf's masses at epsilon 1."""
        return 0.0 if self.variant == "published" else TARGET_LEVELS * HISTOGRAM_SENSITIVITY[self.relation]

    def check_parameters(self) -> None:
        super().check_parameters()
        check_number(self.error_threshold, "error_threshold", 0, 1)

    AUDIT: ClassVar = Audited(
        "diffpets-regressor",
        (
            (HALF_STOP, 2, 1),
            ({}, 2, 1),
            (HALF_STOP | {"criterion": "sse", "selection": "exponential", "n_estimators": 2}, 1, 1),
            (HALF_STOP | {"criterion": "mass-gap", "sampling": "assignment", "n_estimators": 2}, 1, 1),
            ({"stop": "never", "criterion": "variance"}, 2, 1),
            ({"stop": "never", "criterion": "weighted-variance", "sampling": "poisson"}, 1, 1),
            ({"variant": "published"}, 1, 1),
        ),
        refuted(
            "the published code reads, unpaid, the error of a node and which values occur in it "
            "(pub-diffpets-regression)"
        ),
        usual={"n_estimators": 1, "cuts_per_feature": 1}, masks=True,  # a feature of two codes has a single cut
    )  # fmt: skip
