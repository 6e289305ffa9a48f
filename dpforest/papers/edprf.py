"""eDPRF: an efficient differentially private random forest (Wang, Qiu, Zhao, Zou and Wang, 2025).

Each tree learns from its own subset of the records.  A tree is grown by multiway splits on binned features, each
chosen by permute-and-flip; a feature used on a path is not used again below.  Formulas (9) and (10) divide the
tree's budget over its levels and leaves.  The chapter *eDPRF* shows where the published claim fails and why the
repair holds.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from dpforest import scores
from dpforest.budgets import PLANS, Shares
from dpforest.learners.audited import HALF_STOP, AuditSpec, refuted
from dpforest.learners.base import PrivateForestClassifier, WithDelta, check_covered
from dpforest.learners.facts import Facts
from dpforest.learners.growth import Frontier, pure, votes
from dpforest.learners.parameters import CAP, MARGIN, AsPublished, Auto, Integer, OneOf
from dpforest.learners.run import Run, Selection
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import Forest
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import claim

__all__ = ["EDPRFClassifier"]

# for the audits: a label leaf has finitely many outcomes, so that an exact audit can enumerate them; counts do not
LABEL = {"leaf": "label"}
# a leak: what is read without a charge, and where in the paper
PURITY = "which nodes hold a single class", "eDPRF algorithm 5, line 1"


@claim("alg-edprf", "thm-edprf", "pub-edprf", "cex-purity-stop", "pub-edprf-binning")
class EDPRFClassifier(WithDelta, PrivateForestClassifier):
    """Private random forest with budget alignment and permute-and-flip.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-edprf`), ``(epsilon, delta)`` with a ``delta`` (:prf:ref:`thm-forest-delta`).
    ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-edprf`).

    Source
    ------
    Journal of Software 36(7), 2025: algorithms 1, 2, 3, 5 and 6, formulas (7) to (10), (15) and (16).

    Examples
    --------
    >>> from dpforest import EDPRFClassifier, Schema
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = EDPRFClassifier(epsilon=2.0, schema=schema, n_estimators=1, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    >>> model.ledger_.leaks
    []
    """

    max_depth: Annotated[
        int,
        Integer(1, MAX_DEPTH),
        "Splits on the longest path, as in scikit-learn; the paper's *treeDepth* is one more.",
    ] = 5
    n_bins = 10
    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper as its chapter reads it: equal-size subsets, the purity test, exponents
        ``epsilon / (2 sensitivity)``, formulas (9) and (10), label leaves.  It warns, for its claim fails.""",
    ] = "proved"
    selection: Annotated[str, OneOf(SELECTIONS), AsPublished(), "Mechanism of splits and labels."] = "permute-and-flip"
    criterion: Annotated[
        str,
        OneOf(scores.CLASSIFICATION),
        AsPublished("normalised-gini"),  # the two readings of the paper's score
        "Split utility; information gain needs ``n_max``.",
    ] = "gini"
    budget: Annotated[
        str,
        OneOf(PLANS),
        AsPublished(),
        """``"uniform"``: equal shares per level.  ``"harmonic"``: formula (9).  ``"aligned"``: (9), and a leaf also
        gets what the levels below it leave unspent, formula (10).  ``"aligned-uniform"``: equal shares, aligned.""",
    ] = "aligned"
    calibration: Annotated[
        Literal["auto", "range", "sensitivity"],
        Auto(published="sensitivity", proved="range"),
        AsPublished(),
        """``"range"``: rate ``epsilon / R``, under replace-one ``epsilon / max(R', 2R)``.  ``"sensitivity"``: the
        paper's ``epsilon / (2 sensitivity)``.""",
    ] = "auto"
    leaf: Annotated[
        Literal["auto", "label", "counts"],
        Auto(published="label", proved="counts"),
        AsPublished("label"),
        "A leaf holds one label, chosen privately as in the paper, or noisy class counts, which give probabilities.",
    ] = "auto"
    stop: Annotated[
        Literal["auto", "candidate", "never", "purity"],
        Auto(published="purity", proved="candidate"),
        AsPublished(),
        """What may end a branch early.  ``"candidate"``: *stop* is among the candidates of the node's selection, at
        no further cost.  ``"purity"`` (published only): the node's records share one class, read without a charge.""",
    ] = "auto"
    stop_margin: Annotated[
        float,
        MARGIN,
        AsPublished(),
        "Stop offset, in units of the selection's noise: large values stop large nodes.",
    ] = 6.0  # chosen in notebooks/tuning.ipynb
    n_max: Annotated[float, CAP, "Public cap on the number of records, for information gain."] = math.inf

    @claim("alg-edprf", "pub-edprf", "cex-purity-stop")
    def as_published(self, run: Run) -> Forest:
        """Algorithms 1, 2, 3 and 5."""
        run.start_forest(self.n_estimators, "equal-split", self.max_nodes)  # step 1
        shares = Shares("aligned", run.epsilon, self.max_depth + 1)  # formulas (9) and (10); leaves are a level, too
        for level, nodes in run.levels(self.max_depth):
            splits = nodes.splittable & ~pure(run.peek(nodes, PURITY))
            self._make_leaves(run, nodes[~splits], shares.leaf(level, selected=False))  # step 2.1
            inner = nodes[splits]
            feature = run.choose_feature(inner, shares.branch(level), self._selection())  # step 2.2
            crowded = run.split_multiway(inner, feature)  # the feature is gone below; no room within max_nodes: a leaf
            self._make_leaves(run, crowded, shares.leaf(level, selected=True))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))  # step 2.1, l = d
        return run.release()

    @claim("thm-edprf", "thm-forest-delta")
    def as_proved(self, run: Run) -> Forest:
        """The repair: each record is assigned to a tree by its own coin, and *stop* is a candidate, not a read."""
        run.start_forest(self.n_estimators, "assignment", self.max_nodes)
        shares = Shares(self.budget, run.budget, self.max_depth + 1)  # a level for each split of a path, one for leaves
        for level, nodes in run.levels(self.max_depth):
            self._make_leaves(run, nodes[~nodes.splittable], shares.leaf(level, selected=False))  # no feature is left
            inner = nodes[nodes.splittable]
            feature = run.choose_feature(inner, shares.branch(level), self._selection())
            # what stops, or finds no room, has paid for its selection: thm-stop-budget
            self._make_leaves(run, run.split_multiway(inner, feature), shares.leaf(level, selected=True))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))
        return run.release()

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        """Make these nodes leaves, at this budget each: they hold noisy class counts, or a vote for one label."""
        if self.option("leaf") == "counts":
            values = run.count_classes(leaves, epsilon)
        else:
            values = votes(run.choose_label(leaves, epsilon, self._selection()), run.schema.n_classes)
        run.set_leaf_values(leaves, values)

    def _selection(self) -> Selection:
        """How features and labels are chosen: score, mechanism, calibration, and whether *stop* is a candidate."""
        margin = self.stop_margin if self.option("stop") == "candidate" else None
        score = scores.CLASSIFICATION[self.criterion]
        return Selection(score, self.selection, self.option("calibration"), margin, self.n_max)

    def check_parameters(self) -> None:
        super().check_parameters()
        score = scores.CLASSIFICATION[self.criterion]
        score.range(self.relation, float(self.n_max))  # refuses a missing cap
        if self.variant == "proved":
            stop, n_max = self.option("stop"), float(self.n_max)
            check_covered(score, self.relation, stop=stop, sampling="assignment", n_max=n_max)  # refuses "purity"

    # -- the audit -------------------------------------------------------------------------------------------

    def _sampling(self) -> str:
        return "equal-split" if self.variant == "published" else "assignment"

    def by_paths(self) -> bool:
        return True

    def leaf_is_label(self) -> bool:
        return self.option("leaf") == "label"

    FACTS = Facts(leaks="records", in_memory=True)
    AUDIT: ClassVar = AuditSpec(
        "edprf",
        (  # parameters, features of the universe, depth of the trees
            ({}, 2, 2),
            (LABEL | HALF_STOP, 2, 2),
            (LABEL | HALF_STOP | {"selection": "exponential"}, 2, 2),
            (HALF_STOP, 2, 2),
            (HALF_STOP | {"selection": "exponential", "budget": "aligned-uniform"}, 2, 2),
            (LABEL | HALF_STOP | {"criterion": "gini-gain"}, 2, 2),
            (LABEL | HALF_STOP | {"criterion": "majority"}, 2, 2),
            (LABEL | HALF_STOP | {"criterion": "information-gain", "n_max": 16}, 2, 2),
            (LABEL | HALF_STOP | {"budget": "harmonic"}, 2, 2),
            (LABEL | HALF_STOP | {"budget": "uniform"}, 2, 2),
            (LABEL | {"stop": "never"}, 2, 2),
            (LABEL | {"stop": "never", "criterion": "normalised-gini"}, 2, 2),
            (LABEL | {"stop": "never", "calibration": "sensitivity"}, 2, 2),
            (LABEL | {"stop": "never", "n_estimators": 2}, 1, 1),
            (LABEL | HALF_STOP | {"selection": "exponential", "delta": 1e-6}, 1, 1),
            ({"variant": "published"}, 2, 2),
            ({"variant": "published", "criterion": "normalised-gini"}, 2, 2),
            ({"variant": "published", "n_estimators": 2}, 1, 1),
        ),
        refuted(
            "the published code reads, without a charge, whether the records of a node share one class "
            "(cex-purity-stop)"
        ),
        reduced=False,
    )
