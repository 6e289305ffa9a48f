"""DiffP-C4.5: a private decision tree that cuts continuous features, and is pruned (Friedman and Schuster, 2010).

A node chooses a cut for every numeric feature and then the feature, by the exponential mechanism; the grown tree is
pruned by C4.5's pessimistic errors of its noisy counts.  The chapter *DiffP-C4.5* tells what that spends.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.budgets import Shares
from dpforest.learners.audited import EXACT, HALF_STOP, AuditSpec
from dpforest.learners.base import PrivateEstimator, check_covered
from dpforest.learners.cart import SchemaSplits
from dpforest.learners.growth import MAX_NODES, Frontier, one_vote
from dpforest.learners.parameters import MARGIN, AsPublished, Auto, Integer, OneOf, Share
from dpforest.learners.pruning import consistent, too_many_errors
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest, ForestClassifier
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import claim

__all__ = ["DiffPC45Classifier"]

CRITERIA = ("gini", "majority")


@claim("alg-diffp-c45", "thm-diffp-c45", "pub-diffp-c45")
class DiffPC45Classifier(PrivateEstimator, ForestClassifier):
    """Private decision tree with chosen cuts, pruned by noisy counts.

    A numeric feature is cut in two on a public bin edge inside the node's range, and may be cut again below; a
    categorical one is split into one child per category, once on a path.

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released tree under ``relation``, as proved (:prf:ref:`thm-diffp-c45`) and
    as published, where less is spent (:prf:ref:`pub-diffp-c45`).

    Source
    ------
    KDD 2010, *Data mining with differential privacy*, section on continuous attributes and pruning.

    Notes
    -----
    Noisy counts may be negative: a leaf says them as they are, pruning takes 0 in their place.  Without numeric
    features the published tree is the paper's DiffP-ID3, pruned.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.diffp_c45 import DiffPC45Classifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DiffPC45Classifier(epsilon=4.0, schema=schema, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    max_depth: Annotated[int, Integer(0, MAX_DEPTH), "Splits on the longest path; 0 makes the tree a single leaf."] = 5
    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper to the letter: ``epsilon / ((2 + m) max_depth + 2)`` for each query, m being the
        number of numeric features; a noisy count that stops at every node; a cut of each numeric feature, then the
        feature, with exponents ``epsilon / (2 sensitivity)``; a leaf says one class.""",
    ] = "proved"
    criterion: Annotated[
        str, OneOf(CRITERIA), AsPublished("gini", "majority"), "Split utility; ``majority`` is its *Max*."
    ] = "gini"
    selection: Annotated[
        Literal["auto", "exponential", "permute-and-flip"],
        Auto(published="exponential", proved="permute-and-flip"),
        AsPublished(),
        "Mechanism of splits.",
    ] = "auto"
    stop_margin: Annotated[
        float,
        MARGIN,
        AsPublished(),
        "Stop offset: the public score of *stop* among the candidates, in units of the selection's noise.",
    ] = 6.0
    prune: Annotated[bool, OneOf(True, False), "Whether the grown tree is pruned, which costs nothing."] = True
    confidence: Annotated[float, Share(), "C4.5's confidence factor: the smaller, the more is pruned."] = 0.25
    max_nodes: Annotated[int, Integer(), "The tree does not grow beyond this; branches that would are leaves."] = (
        MAX_NODES
    )

    @claim("alg-diffp-c45", "pub-diffp-c45")
    def as_published(self, run: Run) -> Forest:
        """Steps 1 to 3."""
        epsilon = run.epsilon / ((2 + run.ordered.sum()) * self.max_depth + 2)  # step 1
        run.start_forest(1, max_nodes=self.max_nodes)
        grid, sizes = SchemaSplits(run.sizes, run.ordered), []
        arity = np.where(run.ordered, 2, run.sizes)
        for level, nodes in run.levels(self.max_depth + 1):  # step 2
            columns = grid.within(nodes.unused)
            features = grid.owners(columns)
            sizes.append(run.count_records(nodes, epsilon))  # 2.1
            least = math.sqrt(2) / epsilon * run.schema.n_classes * np.where(features, arity, 1).max(axis=1)
            splits: np.ndarray = np.any(features, axis=1)
            splits &= (sizes[-1] >= least) & (level <= self.max_depth)
            self._make_leaves(run, nodes[~splits], epsilon)  # 2.2
            columns = grid.choose_cuts(run, nodes[splits], columns[splits], epsilon, self._selection())  # 2.3
            chosen = run.choose_cut(nodes[splits], columns, epsilon, self._selection())  # 2.4
            self._make_leaves(run, grid.grow(run, splits, chosen), epsilon)  # those without room
        return self._pruned(run.release(), sizes)  # step 3

    @claim("thm-diffp-c45")
    def as_proved(self, run: Run) -> Forest:
        """The repair: one selection among all cuts of all features and *stop*, no count, and the rest for the leaf."""
        run.start_forest(1, max_nodes=self.max_nodes)
        shares, grid = Shares("aligned-uniform", run.epsilon, self.max_depth + 1), SchemaSplits(run.sizes, run.ordered)
        for level, nodes in run.levels(self.max_depth):
            columns = grid.within(nodes.unused)
            splits: np.ndarray = np.any(columns, axis=1)
            self._make_leaves(run, nodes[~splits], shares.leaf(level, selected=False))
            chosen = run.choose_cut(nodes[splits], columns[splits], shares.branch(level), self._selection())
            # a node that stops has paid for its selection: thm-stop-budget
            self._make_leaves(run, grid.grow(run, splits, chosen), shares.leaf(level, selected=True))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))
        return self._pruned(run.release())

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        """Make these nodes leaves, at this budget each: they hold noisy class counts, or a vote for the largest."""
        counts = run.count_classes(leaves, epsilon)
        run.set_leaf_values(leaves, one_vote(counts) if self.variant == "published" and not self.prune else counts)

    @claim("lem-noisy-pruning")
    def _pruned(self, tree: Forest, sizes: list[np.ndarray] | None = None) -> Forest:
        """The tree pruned by its noisy counts, ``sizes`` those of the nodes of each level; it knows nothing else."""
        if not self.prune:
            return tree
        counts = consistent(tree, None if sizes is None else np.concatenate(sizes))
        cut = too_many_errors(tree, counts, self.confidence)
        values = tree.values.copy()
        if self.variant == "published":
            leaves = tree.arity == 0
            values[leaves], values[cut] = one_vote(values[leaves]), one_vote(counts[cut])
        else:
            values[cut] = counts[cut]
        pruned, left = tree.prune(cut)
        return replace(pruned, values=values[left])

    def _selection(self) -> Selection:
        score, proved = scores.CLASSIFICATION[self.criterion], self.variant == "proved"
        margin = self.stop_margin if proved else None
        return Selection(score, self.option("selection"), "range" if proved else "sensitivity", margin)

    def leaf_is_label(self) -> bool:
        return self.variant == "published"

    def check_parameters(self) -> None:
        super().check_parameters()
        check_covered(scores.CLASSIFICATION[self.criterion], self.relation, stop="candidate")

    def lacking(self) -> dict[str, str]:
        if self.prune:
            return {EXACT: "noisy counts are looked at again, to prune, which no lemma covers: prune=False"}
        return super().lacking()

    AUDIT: ClassVar = AuditSpec(
        "diffp-c45",
        (
            (HALF_STOP | {"prune": False, "n_bins": 3}, 1, 1),
            (HALF_STOP | {"prune": False, "criterion": "majority", "selection": "exponential"}, 2, 1),
            (HALF_STOP, 1, 1),
            ({"variant": "published", "prune": False, "n_bins": 3}, 1, 1),
            ({"variant": "published"}, 1, 1),
        ),
        sizes=(60,),  # enough for the noisy count to let a node split
        numeric=True,
        defaults={"n_bins": 2},
    )
