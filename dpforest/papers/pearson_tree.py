"""The MapReduce tree by Pearson correlation (patent application of Guangxi Normal University, filed 2020).

The records are dealt out to parts, one for each mapper; a split is good if the index of the child correlates with the
class code in every part.  The chapter *MapReduce trees* tells where the published algorithm fails and why the repair
holds.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.budgets import PLANS, Shares
from dpforest.learners.audited import HALF_STOP, AuditSpec, refuted
from dpforest.learners.averaged_cuts import CODES, best_cuts, check_parts, most_parts
from dpforest.learners.base import PrivateEstimator, check_covered
from dpforest.learners.cart import Cuts
from dpforest.learners.facts import Facts
from dpforest.learners.growth import MAX_NODES, Frontier, pure
from dpforest.learners.parameters import MARGIN, AsPublished, Auto, Either, Integer, OneOf, Share
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest, ForestClassifier, cut_masks
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import HISTOGRAM_SENSITIVITY, claim
from dpforest.schema import Schema

__all__ = ["PearsonTreeClassifier"]

PUBLISHED_PARTS = 4  # where ``n_parts`` is "auto"; the patent gives no number
#: Utilities of a cut, by name: those of one table of class counts for each part.
CRITERIA = {
    "pearson": scores.absolute_pearson,
    "signed-pearson": scores.pearson,
    **{name: score for name, score in scores.CLASSIFICATION.items() if not score.needs_cap},
}
CORRELATIONS = ("pearson", "signed-pearson")
BUDGETS = ("auto", *PLANS)
READINGS = AsPublished(*CORRELATIONS)
PURITY = "which nodes hold a single class", "Pearson tree patent, step 6"
CUT = "the best cut of each part, and their mean", "Pearson tree patent, steps 3 and 4"
ARGMAX = "the feature with the largest mean correlation", "Pearson tree patent, step 5"


class PearsonTreeClassifier(PrivateEstimator, ForestClassifier):
    """Private decision tree whose cuts are judged in many parts of the records, and averaged.

    Each record belongs to one part, by a coin of its own.  A node chooses one among all public cuts of all features by
    a private selection; the score of a cut is its mean over the parts, and one record moves one part only.  Categories
    are cut by the order of their codes, as in the patent.  Leaves vote by noisy class counts.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released tree under ``relation``
    (:prf:ref:`thm-pearson-tree`).  ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-pearson-tree`).

    Raises
    ------
    ValueError
        On bad parameters, and when ``n_parts`` times the number of classes is more than 256.

    Source
    ------
    Patent application of Guangxi Normal University: Wang Jinyan, Yan Qi, Li Xianxian, filed on 15 January 2020, read
    through its published text, which lacks the formulas.

    Notes
    -----
    How ``variant="published"`` reads the patent is stated below :prf:ref:`alg-pearson-tree`.  In addition, of cuts or
    features that are equally good the first is taken, empty nodes are leaves, and class counts have two-sided geometric
    noise in place of Laplace noise, of scale ``1 / epsilon_2`` under both relations.  A path costs
    ``max_depth epsilon_1 + epsilon_2`` (:prf:ref:`cex-level-budget`); an argmax costs nothing and is a leak.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.pearson_tree import PearsonTreeClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = PearsonTreeClassifier(epsilon=4.0, schema=schema, max_depth=1, n_parts=8, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    SOURCE = "patent"

    max_depth: Annotated[int, Integer(0, MAX_DEPTH), "Splits on the longest path; 0 makes the tree a single leaf."] = 5
    n_parts: Annotated[
        int | str,
        Either("auto", rule=Integer(1, CODES)),
        """Parts of the records, at most ``256 // n_classes``.  Auto is 4 as published; if proved, that many for
        correlations, and 1 for scores of counts, which lose by parts.""",
    ] = "auto"
    n_bins = 16
    criterion: Annotated[
        str,
        OneOf(CRITERIA),
        READINGS,
        """Score of a cut in a part: ``"pearson"`` is the absolute value of the correlation.  As published one of the
        correlations.""",
    ] = "pearson"
    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the patent as read in Notes.  It warns, for it is not private.""",
    ] = "proved"
    selection: Annotated[
        Literal["auto", "argmax", "exponential", "permute-and-flip"],
        Auto(published="exponential", proved="permute-and-flip"),
        AsPublished("argmax", "exponential"),
        """Mechanism of the splits.  As published ``"exponential"`` draws the feature, and ``"argmax"``, published only,
        takes that of the largest probability, by the letter of one phrase.""",
    ] = "auto"
    budget: Annotated[
        str,
        OneOf(BUDGETS),
        Auto(proved="aligned-uniform"),
        AsPublished(),
        """How the share of the splits is divided over the levels, and whether a leaf also gets what is left below it.
        As published each level has all of it.""",
    ] = "auto"
    leaf_share: Annotated[
        float, Share(), "Share of the budget that is kept for the leaves; as published, epsilon_2 over epsilon."
    ] = 0.4
    calibration: Annotated[
        Literal["auto", "range", "sensitivity"],
        Auto(published="sensitivity", proved="range"),
        AsPublished(),
        "Whether a selection's rate comes from the score's range or from twice its sensitivity.",
    ] = "auto"
    stop: Annotated[
        Literal["auto", "candidate", "never", "purity"],
        Auto(published="purity", proved="never"),
        AsPublished(),
        """What may end a branch early: nothing, or ``"candidate"``: *stop* is one of the candidates.  ``"purity"``
        (published only): the node's records share one class, read without paying.""",
    ] = "auto"
    stop_margin: Annotated[float, MARGIN, "Stop offset, in units of the selection's noise."] = 1.0
    reuse: Annotated[
        Literal["auto", True, False],
        Auto(published=False, proved=True),
        AsPublished(),
        "Whether a feature may be cut again below.",
    ] = "auto"
    max_nodes: Annotated[int, Integer(), "The tree does not grow beyond this; branches that would are leaves."] = (
        MAX_NODES
    )

    @claim("alg-pearson-tree", "pub-pearson-tree", "cex-pearson-argmax", "cex-level-budget")
    def as_published(self, run: Run) -> Forest:
        """Steps 1 to 9, a level at a time."""
        eps_1, eps_2 = (1 - self.leaf_share) * run.epsilon, self.leaf_share * run.epsilon
        eps_2 *= HISTOGRAM_SENSITIVITY[run.relation]  # the run would divide by it, and the patent does not
        score = self._start_tree(run)  # steps 1 and 2
        rate = eps_1 / (2 * score.sensitivity(run.relation))  # epsilon_1 / (2 Delta q), on every level again
        for _, nodes in run.levels(self.max_depth):
            usable = nodes.unused & (run.sizes > 1)
            inner = np.any(usable, axis=1)
            inner[inner] = ~pure(run.peek(nodes[inner], PURITY))  # step 6
            inner[inner] = run.within_max_nodes(inner.sum())
            self._make_leaves(run, nodes[~inner], eps_2)
            parents = nodes[inner]
            qualities, ends = best_cuts(run, parents, usable[inner], CRITERIA[self.criterion], CUT)  # steps 3 to 5
            if self.option("selection") == "argmax":  # "the attribute with the largest output probability"
                feature = run.peek_largest(parents, qualities, ARGMAX)
            else:
                feature = run.draw(parents, qualities, rate, score, "choose a feature by its best cuts")
            end = ends[np.arange(len(parents)), feature]
            run.split_binary(parents, feature, cut_masks(end, run.sizes[feature]), reuse=False)
        self._make_leaves(run, run.frontier, eps_2)
        return run.release()

    @claim("thm-pearson-tree")
    def as_proved(self, run: Run) -> Forest:
        """The repair: the public cuts of all features are candidates of one selection, and the levels share epsilon."""
        margin = self.stop_margin if self.option("stop") == "candidate" else None
        how = Selection(self._start_tree(run), self.option("selection"), self.option("calibration"), margin)
        shares = Shares(self.option("budget"), run.epsilon, self.max_depth + 1, self.leaf_share)
        cuts = Cuts(run.sizes, np.ones(len(run.sizes), dtype=bool))
        for level, nodes in run.levels(self.max_depth):
            columns = cuts.columns(np.arange(len(nodes))) & nodes.unused[:, cuts.owner]
            inner = columns.any(axis=1)
            self._make_leaves(run, nodes[~inner], shares.leaf(level, selected=False))
            choice = run.choose_cut(nodes[inner], columns[inner], shares.branch(level), how)
            grows = run.has_room(choice)
            # a node that stops has paid for its selection: thm-stop-budget
            self._make_leaves(run, nodes[inner][~grows], shares.leaf(level, selected=True))
            feature, end = cuts.owner[choice[grows]], cuts.code[choice[grows]]
            cuts.divide(np.flatnonzero(inner)[grows], feature, end)
            run.split_binary(nodes[inner][grows], feature, cut_masks(end, run.sizes[feature]), self.option("reuse"))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))
        return run.release()

    def _start_tree(self, run: Run) -> scores.Score:
        """Start the tree and divide the records into parts; returns the score of a cut, its mean over the parts."""
        n_parts, score = self._n_parts(run.schema), CRITERIA[self.criterion]
        if self.max_depth:
            run.partition_records(n_parts)
        run.start_forest(1, max_nodes=self.max_nodes)
        if self.variant == "proved":
            score = scores.for_classes(score, run.schema.n_classes)
        return scores.averaged(score, n_parts)

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        """Make these nodes leaves, at this budget each: they hold noisy class counts."""
        run.set_leaf_values(leaves, run.count_classes(leaves, epsilon))

    def _n_parts(self, schema: Schema) -> int:
        if self.n_parts != "auto":
            return int(self.n_parts)
        if self.criterion not in CORRELATIONS:
            return 1
        most = most_parts(schema)
        return most if self.variant == "proved" else min(PUBLISHED_PARTS, most)

    def declared_schema(self) -> Schema:
        schema = super().declared_schema()
        check_parts(self._n_parts(schema), schema)
        return schema

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.variant == "proved":
            if self.selection == "argmax":
                raise ValueError("selection='argmax' reads the data without a charge: use variant='published'")
            check_covered(CRITERIA[self.criterion], self.relation, stop=self.option("stop"))

    def draws_record_coins(self) -> bool:
        return bool(self.max_depth) and self._n_parts(self.declared_schema()) > 1

    FACTS = Facts(leaks="records")
    AUDIT: ClassVar = AuditSpec(
        "pearson-tree",
        (
            (HALF_STOP | {"stop": "candidate", "n_parts": 2}, 2, 1),
            ({}, 2, 1),
            ({"n_parts": 2, "criterion": "majority", "reuse": False}, 1, 2),
            (HALF_STOP | {"stop": "candidate", "criterion": "signed-pearson", "selection": "exponential"}, 2, 1),
            ({"criterion": "normalised-gini", "calibration": "sensitivity", "n_bins": 3}, 1, 1),
            ({"criterion": "gini", "budget": "uniform"}, 2, 1),
            ({"criterion": "gini-gain", "budget": "harmonic"}, 1, 1),
            ({"variant": "published", "selection": "argmax", "n_bins": 3}, 1, 1),
            ({"variant": "published", "selection": "exponential", "n_parts": 2}, 2, 1),
        ),
        refuted(
            "the published code reads, without a charge, whether a node is pure, the best cuts and the largest "
            "correlation (pub-pearson-tree)"
        ),
        numeric=True,
        defaults={"n_parts": 1, "n_bins": 2},
    )
