"""DiffPETs: differentially private extra-trees for classification and regression (the paper of that name, 2020).

A node tries K random features, each at one random cut, and chooses among them by the exponential mechanism; the
leaves are released with noise.  The chapters *DiffPETs: classification* and *DiffPETs: regression* tell where the
published proof fails and why the repair holds.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.budgets import Shares, uniform
from dpforest.learners.audited import CUT_ONCE, HALF_STOP, AuditSpec, refuted
from dpforest.learners.base import (
    PrivateForest,
    PrivateForestClassifier,
    PrivateForestRegressor,
    WithDelta,
    check_covered,
)
from dpforest.learners.cuts import cuts_at_values, grow_extra_trees
from dpforest.learners.facts import Facts
from dpforest.learners.growth import Frontier, accurate, masses, one_vote, pure, votes
from dpforest.learners.parameters import MARGIN, Auto, Either, Integer, Number, OneOf, Share
from dpforest.learners.run import Run, Selection
from dpforest.learners.sharing import Subset, n_candidates
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import Forest
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import claim
from dpforest.schema import TARGET_LEVELS, Schema

__all__ = ["DiffPETsClassifier", "DiffPETsRegressor"]

#: Utilities of classes that need no cap on the number of records.
CRITERIA = tuple(name for name, score in scores.CLASSIFICATION.items() if not score.needs_cap)
TALL = 10  # height beyond which the default would make more leaves than a table has records
PURITY = "which nodes hold a single class", "DiffPETs algorithm 2, termination"
ERROR = "which nodes have an error below the threshold", "DiffPETs algorithm 2, termination"
VALUES = "which values of each feature occur in a node", "DiffPETs algorithm 2, line 5"
LABEL = "the most frequent class of each leaf", "DiffPETs algorithm 2, line 2"


class _DiffPETs(WithDelta, PrivateForest):
    """What the classifier and the regressor share."""

    max_depth: Annotated[
        int | None,
        Either(None, rule=Integer(0, MAX_DEPTH)),
        """Splits on the longest path, the paper's height h; 0 makes every tree a single leaf.  None takes half the
        number of features, as in the paper, and if proved at most 10.""",
    ] = None
    max_features: Annotated[
        int | str,
        Subset(auto=True),
        Auto(published="sqrt", proved="sqrt"),
        "The paper's K: different random features among which a node chooses.",
    ] = "auto"
    cuts_per_feature: Annotated[
        int | str, Either("auto", rule=Integer()), Auto(published=1, proved=1), "Random cuts of each of them."
    ] = "auto"
    sampling: Annotated[
        str,
        OneOf("all", "assignment", "poisson"),
        """Which records a tree sees if proved.  ``"all"``: every tree all of them, at ``epsilon / n_estimators``.
        ``"assignment"``: each record goes to one tree by a coin, and each tree has all of ``epsilon``.  ``"poisson"``:
        a bootstrap that is paid for in full (:prf:ref:`thm-bootstrap`).""",
    ] = "all"
    selection: Annotated[str, OneOf(SELECTIONS), "Mechanism of the cuts, and of label leaves, if proved."] = (
        "permute-and-flip"
    )
    leaf_share: Annotated[
        float,
        Share(),
        """Share of a tree's budget that is kept for its leaves; the levels above divide the rest, and a leaf that ends
        a branch early also gets what the levels below it do not need.""",
    ] = 0.5
    level_ratio: Annotated[
        float,
        Number(0, 1, above=True),
        "What a level gets, relative to the level above it; 1 makes all levels equal.",
    ] = 0.6
    stop: Annotated[
        Literal["candidate", "never"], "Whether *stop* is among the candidates of a node's selection, if proved."
    ] = "candidate"
    stop_margin: Annotated[float, MARGIN, "Its stop offset, in units of the selection's noise."] = 6.0

    def height(self, schema: Schema) -> int:
        """Splits on the longest path, the paper's h."""
        if self.max_depth is not None:
            return self.max_depth
        half = max(1, schema.n_features // 2)  # h = k / 2
        return half if self.variant == "published" else min(half, TALL)

    def _n_candidates(self, run: Run) -> tuple[int, int]:
        """How many features a node tries, the paper's K, and how many cuts of each."""
        return n_candidates(self.option("max_features"), len(run.sizes)), self.option("cuts_per_feature")

    def _selection(self) -> Selection:
        score = (scores.CLASSIFICATION | scores.REGRESSION)[self.criterion]
        return Selection(score, self.selection, stop_margin=self.stop_margin if self.stop == "candidate" else None)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.variant == "proved":
            check_covered(self._selection().score, self.relation, stop=self.stop, sampling=self.sampling)


class DiffPETsClassifier(_DiffPETs, PrivateForestClassifier):
    """Differentially private extra-trees for classification.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-diffpets`), ``(epsilon, delta)`` with a ``delta`` (:prf:ref:`thm-forest-delta`).
    ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-diffpets`).

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

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper as its chapter reads it: a bootstrap of the size of the data for every tree,
        cuts at values that occur in the node, categories cut by their order, a noisy count at every node that nothing
        uses, the purity test, leaves that release their most frequent class.  It warns, for its proof fails.""",
    ] = "proved"
    max_features: Annotated[
        int | str,
        Subset(auto=True),
        Auto(published="sqrt", proved="all"),
        """The paper's K: different random features among which a node chooses.  A selection costs the same however many
        candidates it has.""",
    ] = "auto"
    cuts_per_feature: Annotated[
        int | str, Either("auto", rule=Integer()), Auto(published=1, proved=8), "Random cuts of each of them."
    ] = "auto"
    criterion: Annotated[
        str,
        OneOf(CRITERIA),
        "Split utility if proved; the published one is Gini.",
    ] = "gini"
    leaf: Annotated[
        Literal["counts", "label"],
        "If proved a leaf says noisy class counts, which the forest adds up, or one label.",
    ] = "counts"
    leaf_share = 0.2
    shrinkage: Annotated[
        float,
        Number(0, 1e6),
        """How far class shares are drawn to those of the nodes above (:meth:`~dpforest.models.forest.Forest.shares`):
        the size, in units of the noise of a leaf, at which a leaf counts as much as the node above it.  0: sums.""",
    ] = 0.5

    @claim("alg-diffpets", "pub-diffpets", "pub-diffpets-cut", "pub-diffpets-leaf", "pub-diffpets-budget")
    def as_published(self, run: Run) -> Forest:
        """Algorithms 1 and 2."""
        gini, height = Selection(scores.gini, "exponential", "sensitivity"), self.height(run.schema)
        eps_1 = run.start_forest(self.n_estimators, "bootstrap", self.max_nodes)  # steps 1, 2: epsilon / T; |D| draws
        eps_2 = uniform(eps_1 / 2, height + 1)[0]  # step 1: half of a level's part, eps_1 / (2 (h + 1))
        for level, nodes in run.levels(height + 1):  # step 3, all trees at once
            run.count_records(nodes, eps_2)  # step 3.1: a leaf's N_D; nothing else uses it
            ends = pure(run.peek(nodes, PURITY)) | (level > height)  # step 3.2
            self._make_published_leaves(run, nodes[ends])
            inner = nodes[~ends]
            cuts = cuts_at_values(run, inner, *self._n_candidates(run), VALUES)  # step 3.3: K features, a cut of each
            choice = run.choose_candidate(inner, *cuts, eps_2, gini)  # step 3.3: exponent eps_2 / (2 Delta)
            self._make_published_leaves(
                run, run.split_chosen(inner, *cuts, choice)
            )  # step 3.4; what comes back found no room
        return run.release()  # step 4: its votes are added up

    def _make_published_leaves(self, run: Run, leaves: Frontier) -> None:
        run.set_leaf_values(leaves, one_vote(run.peek(leaves, LABEL)))  # our reading: the exact most frequent class

    @claim("thm-diffpets", "thm-forest-delta")
    def as_proved(self, run: Run) -> Forest:
        """The repair: cuts of the public range, *stop* is chosen, and noise on the counts of all classes."""
        tree_budget = run.start_forest(self.n_estimators, self.sampling, self.max_nodes)  # the budget b of a tree
        shares = Shares("aligned-uniform", tree_budget, self.height(run.schema) + 1, self.leaf_share, self.level_ratio)
        grow_extra_trees(run, shares, self._selection(), partial(self._make_leaves, run), *self._n_candidates(run))
        step = 1 if self.leaf == "counts" else 0  # what a record adds to a leaf's noisy count; one vote has no noise
        return run.release(self.half_weight(shares.leaf(shares.depth, selected=False), step))

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        """Make these nodes leaves, at this budget each: they hold noisy class counts, or a vote for one label."""
        if self.leaf == "counts":
            run.set_leaf_values(leaves, run.count_classes(leaves, epsilon))
        else:
            run.set_leaf_values(
                leaves, votes(run.choose_label(leaves, epsilon, self._selection()), run.schema.n_classes)
            )

    # -- the audit -------------------------------------------------------------------------------------------

    def leaf_is_label(self) -> bool:
        return self.leaf == "label" or self.variant == "published"

    FACTS = Facts(leaks="records", in_memory=True)
    AUDIT: ClassVar = AuditSpec(
        "diffpets",
        (
            (HALF_STOP, 2, 1),
            ({}, 2, 1),
            (HALF_STOP | {"max_features": 1, "leaf": "label", "selection": "exponential"}, 2, 1),
            (HALF_STOP | {"criterion": "majority"}, 1, 2),
            (HALF_STOP | {"criterion": "gini-gain", "n_estimators": 2}, 1, 1),
            ({"stop": "never", "criterion": "normalised-gini", "cuts_per_feature": 2}, 2, 1),
            (HALF_STOP | {"sampling": "assignment", "n_estimators": 2}, 1, 1),
            (HALF_STOP | {"selection": "exponential", "delta": 1e-6}, 1, 1),
            (HALF_STOP | {"sampling": "poisson"}, 1, 1),
            ({"variant": "published"}, 1, 1),
        ),
        refuted(
            "the published code reads, without a charge, whether a node is pure, which values occur in it and the most "
            "frequent class of a leaf (pub-diffpets)"
        ),
        defaults=CUT_ONCE,
        masks=True,
    )


class DiffPETsRegressor(_DiffPETs, PrivateForestRegressor):
    """Differentially private extra-trees for regression.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-diffpets-regression`), ``(epsilon, delta)`` with a ``delta`` (:prf:ref:`thm-forest-delta`).
    ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-diffpets-regression`).

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
    >>> bool(low < 5 < high)
    True
    """

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper as its chapter reads it: a bootstrap of the size of the data for every tree,
        cuts at values that occur in the node, categories cut by their order, a noisy count at every node, the test of a
        node's error against a threshold, leaves that divide a noisy sum by that count.  It warns, for its proof
        fails.""",
    ] = "proved"
    criterion: Annotated[
        str,
        OneOf(scores.REGRESSION),
        "Split utility if proved, see :mod:`dpforest.scores`; the published one is the variance.",
    ] = "between"
    shrinkage: Annotated[
        float,
        Number(0, 1e6),
        """How far leaf means are drawn to those of the nodes above (:meth:`~dpforest.models.forest.Forest.shares`): the
        number of records, in units of the noise of a leaf, at which a leaf counts as much as the node above it.""",
    ] = 2.0
    error_threshold: Annotated[
        float,
        Number(0, 1),
        """A node whose mean squared error, in units of the squared target range, lies below it is a leaf; published
        only.""",
    ] = 1e-3

    @claim("pub-diffpets-regression", "pub-mean-noise")
    def as_published(self, run: Run) -> Forest:
        """Algorithms 1 and 2 with another end of a branch, another score, and the leaves of section 2.3.2."""
        variance, height = Selection(scores.variance, "exponential", "sensitivity"), self.height(run.schema)
        eps_1 = run.start_forest(
            self.n_estimators, "bootstrap", self.max_nodes
        )  # epsilon / T, and |D| draws with replacement
        eps_2 = uniform(eps_1 / 2, height + 1)[0]  # half of a level's part, eps_1 / (2 (h + 1))
        for level, nodes in run.levels(height + 1):
            sizes = run.count_records(nodes, eps_2)  # at every node, before the stop is judged
            ends = accurate(run.peek_moments(nodes, ERROR), self.error_threshold) | (level > height)
            self._make_published_leaves(run, nodes[ends], sizes[ends], eps_2)
            inner = nodes[~ends]
            cuts = cuts_at_values(run, inner, *self._n_candidates(run), VALUES)
            choice = run.choose_candidate(inner, *cuts, eps_2, variance)  # formula (7)
            full = run.split_chosen(inner, *cuts, choice)  # no room within max_nodes
            self._make_published_leaves(run, full, sizes[np.isin(nodes.nodes, full.nodes)], eps_2)
        return run.release()

    def _make_published_leaves(self, run: Run, leaves: Frontier, sizes: np.ndarray, epsilon: float) -> None:
        # the noisy sum, for the half of the level that a leaf's selection does not need, over the noisy count
        run.set_leaf_values(leaves, masses(run.sum_targets(leaves, epsilon), sizes))

    @claim("thm-diffpets-regression", "thm-forest-delta")
    def as_proved(self, run: Run) -> Forest:
        """The repair: cuts of the public range, *stop* is chosen, and noise on two masses."""
        tree_budget = run.start_forest(self.n_estimators, self.sampling, self.max_nodes)  # the budget b of a tree
        shares = Shares("aligned-uniform", tree_budget, self.height(run.schema) + 1, self.leaf_share, self.level_ratio)
        grow_extra_trees(run, shares, self._selection(), partial(self._make_leaves, run), *self._n_candidates(run))
        return run.release(self.half_weight(shares.leaf(shares.depth, selected=False), TARGET_LEVELS))

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        """Make these nodes leaves, at this budget each: they hold two noisy masses."""
        run.set_leaf_values(leaves, run.sum_masses(leaves, epsilon))

    # -- the audit -------------------------------------------------------------------------------------------

    FACTS = Facts(leaks="records", in_memory=True)
    AUDIT: ClassVar = AuditSpec(
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
            "the published code reads, without a charge, the error of a node and which values occur in it "
            "(pub-diffpets-regression)"
        ),
        defaults=CUT_ONCE,
        masks=True,
    )
