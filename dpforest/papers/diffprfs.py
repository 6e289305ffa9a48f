"""DiffPRFs: a private random forest that cuts numeric features where it pays (Mu, Ding, Song and Lu, 2016).

At each node the exponential mechanism chooses a cut for every numeric feature of a random subset, intervals weighted by
length, and then a feature among the subset, each numeric one with its chosen cut.  On the public grid of a schema all
intervals are equally long.  The chapter *Rivals* has the claims.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.budgets import Shares
from dpforest.learners.audited import HALF_STOP, AuditSpec, refuted
from dpforest.learners.cart import SchemaSplits
from dpforest.learners.facts import Facts
from dpforest.learners.growth import pure
from dpforest.learners.id3 import PrivateID3Forest
from dpforest.learners.parameters import AsPublished, Auto, OneOf
from dpforest.learners.run import Run
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["DiffPRFsClassifier"]

PURITY = "which nodes hold a single class", "DiffPRFs, the condition that ends a branch"
CRITERIA = tuple(name for name, score in scores.CLASSIFICATION.items() if not score.needs_cap)


@claim("alg-diffprfs", "thm-diffprfs", "pub-diffprfs")
class DiffPRFsClassifier(PrivateID3Forest):
    """Private random forest with chosen cuts of numeric features.

    A numeric feature is cut in two on a public bin edge inside the node's range, and may be cut again below; a
    categorical one is split into one child per category, once on a path.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-diffprfs`).  ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-diffprfs`).

    Source
    ------
    Journal on Communications 37(9), 2016, read through its abstract and the papers that compare with it.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.diffprfs import DiffPRFsClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DiffPRFsClassifier(epsilon=4.0, schema=schema, n_estimators=1, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper to the letter: bootstraps, the purity test, equal shares per level, half of each
        for a noisy record count that nothing uses and half, in as many parts as there are numeric features and one
        more, for the selections, exponents ``epsilon / (2 sensitivity)``, majority vote.  It warns, for its proof
        fails.""",
    ] = "proved"
    two_stage: Annotated[
        Literal["auto", True, False],
        Auto(published=True, proved=False),
        AsPublished(),
        """True: a cut for each numeric feature first, then a feature, each selection with an equal part of the node's
        share.  False: one selection among all cuts of all features, with the whole share.""",
    ] = "auto"
    criterion: Annotated[str, OneOf(CRITERIA), AsPublished(), "Split utility."] = "gini"
    stop: Annotated[
        Literal["auto", "candidate", "never", "purity"],
        Auto(published="purity", proved="candidate"),
        AsPublished(),
        """What may end a branch early.  ``"candidate"``: *stop* is among the candidates of the last selection.
        ``"purity"`` (published only): the node's records share one class, read without paying.""",
    ] = "auto"

    @claim("alg-diffprfs", "pub-diffprfs")
    def as_published(self, run: Run) -> Forest:
        """Steps 1 and 2; the vote of step 3 is in what a leaf says."""
        budget = run.start_forest(self.n_estimators, "bootstrap", self.max_nodes)  # step 1
        shares = Shares("uniform", budget, self.max_depth + 1)
        grid = SchemaSplits(run.sizes, run.ordered, self.n_estimators)
        for level, nodes in run.levels(shares.depth):  # step 2
            half = shares.branch(level) / 2
            run.count_records(nodes, half)  # 2.1, which nothing uses
            columns = grid.within(nodes.unused)
            features = grid.owners(columns)
            splits = ~pure(run.peek(nodes, PURITY)) & np.any(features, axis=1) & (level <= self.max_depth)
            self._make_leaves(run, nodes[~splits], half)  # 2.2
            if not splits.any():
                break
            columns = columns[splits] & self._subset(run, features[splits])[:, grid.owner]  # 2.3
            part = half / (run.ordered.sum() + 1)
            columns = grid.choose_cuts(run, nodes[splits], columns, part, self._selection())
            chosen = run.choose_cut(nodes[splits], columns, part, self._selection())
            without_room = grid.grow(run, splits, chosen)  # within max_nodes
            self._make_leaves(run, without_room, shares.leaf(level, selected=True))
        return run.release()

    @claim("thm-diffprfs")
    def as_proved(self, run: Run) -> Forest:
        """The repair: trees on all records, no count, and *stop* among the candidates in place of the purity test."""
        budget = run.start_forest(self.n_estimators, self.option("sampling"), self.max_nodes)
        shares = Shares(self.option("budget"), budget, self.max_depth + 1)
        grid = SchemaSplits(run.sizes, run.ordered, self.n_estimators)
        for level, nodes in run.levels(self.max_depth):
            columns = grid.within(nodes.unused)
            features = grid.owners(columns)
            splits = np.any(features, axis=1)
            self._make_leaves(run, nodes[~splits], shares.leaf(level, selected=False))
            columns = columns[splits] & self._subset(run, features[splits])[:, grid.owner]
            epsilon = shares.branch(level)
            if self.option("two_stage"):  # in parts for the numeric features that a node considers, and one more
                epsilon = epsilon / ((grid.owners(columns) & run.ordered).sum(axis=1) + 1)
                columns = grid.choose_cuts(run, nodes[splits], columns, epsilon, self._selection())
            chosen = run.choose_cut(nodes[splits], columns, epsilon, self._selection())
            # a node that stops has paid for its selections: thm-stop-budget
            self._make_leaves(run, grid.grow(run, splits, chosen), shares.leaf(level, selected=True))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))
        return run.release()

    FACTS = Facts(leaks="records", in_memory=True)
    AUDIT: ClassVar = AuditSpec(
        "diffprfs",
        (
            (HALF_STOP | {"n_bins": 3}, 1, 1),
            (HALF_STOP | {"two_stage": True, "n_bins": 3, "vote": "majority"}, 1, 1),
            (HALF_STOP | {"sampling": "assignment", "n_estimators": 2}, 1, 1),
            (HALF_STOP | {"sampling": "poisson"}, 2, 1),
            ({"variant": "published", "n_bins": 3}, 1, 1),
        ),
        refuted(
            "the published code reads, without a charge, whether the records of a node share one class (pub-diffprfs)"
        ),
        numeric=True,
        defaults={"n_estimators": 1, "n_bins": 2},
    )
