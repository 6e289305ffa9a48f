"""DiffPRF: a differentially private random forest of ID3 trees (Patil and Singh, 2014).

Trees grow by multiway splits on features from a public grid, each chosen by the exponential mechanism among a random
subset; a feature used on a path is not used again below.  A leaf holds noisy class counts.  The chapter *Rivals* tells
where the published budget falls short and what the repair gains.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.arithmetic import log, log2
from dpforest.budgets import Shares
from dpforest.learners.audited import GREY_BOX, HALF_STOP, AuditSpec, Broken
from dpforest.learners.facts import Facts
from dpforest.learners.id3 import PrivateID3Forest, enough
from dpforest.learners.parameters import CAP, AsPublished, Auto, OneOf
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, bootstrap, claim

__all__ = ["DiffPRFClassifier"]

CRITERIA = ("auto", *scores.CLASSIFICATION)
BOOTSTRAP = "a bootstrap costs more than the paper charges (pub-diffprf)"
SIZE = "the number of records", "DiffPRF, the sensitivity of information gain"


@claim("alg-diffprf", "thm-diffprf", "pub-diffprf")
class DiffPRFClassifier(PrivateID3Forest):
    """Private random forest of ID3 trees.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-diffprf`).  ``variant="published"``: the larger number that its ledger states, and none for any
    finite epsilon where the number of records is read and private (:prf:ref:`pub-diffprf`).

    Source
    ------
    ICACCI 2014, read through its abstract and the papers that compare with it.  The rule for the noisy count is that of
    Friedman and Schuster (2010), whose ID3 it builds on.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.diffprf import DiffPRFClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DiffPRFClassifier(epsilon=2.0, schema=schema, n_estimators=1, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    n_bins = 10
    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper to the letter: for every tree a bootstrap of the size of the data, equal shares
        per level, half of each for a noisy record count and half for the selection, exponents
        ``epsilon / (2 sensitivity)``, majority vote.  It warns, for a bootstrap costs more than the paper charges.""",
    ] = "proved"
    criterion: Annotated[
        str,
        OneOf(CRITERIA),
        Auto(published="information-gain", proved="gini"),
        AsPublished("information-gain", "gini", "majority"),  # the three that the paper compares
        """Split utility.  Information gain needs ``n_max`` if proved; the published variant puts the number of records
        in its place.""",
    ] = "auto"
    stop: Annotated[
        Literal["auto", "candidate", "count", "never"],
        Auto(published="count", proved="candidate"),
        AsPublished(),
        """What may end a branch early.  ``"candidate"``: *stop* is among the candidates of the node's selection.
        ``"count"``: half of a node's share pays for a noisy count of its records, and the node is a leaf if the count
        is below sqrt(2) / epsilon for each class and value of its widest feature.""",
    ] = "auto"
    n_max: Annotated[float, CAP, "Public cap on the number of records, for information gain."] = math.inf

    @claim("alg-diffprf", "pub-diffprf")
    def as_published(self, run: Run) -> Forest:
        """Steps 1 and 2; the vote of step 3 is in what a leaf says."""
        budget = run.start_forest(self.n_estimators, "bootstrap", self.max_nodes)  # step 1
        shares = Shares("uniform", budget, self.max_depth + 1)
        for level, nodes in run.levels(shares.depth):  # step 2
            half = shares.branch(level) / 2
            features = nodes.unused & (run.sizes > 1)
            splits = enough(run, nodes, features, half) & np.any(features, axis=1) & (level <= self.max_depth)
            self._make_leaves(run, nodes[~splits], half)  # 2.1
            if not splits.any():
                break
            epsilon, how = self._published_selection(run, half)  # 2.2
            chosen = run.choose_feature(nodes[splits], epsilon, how, self._subset(run, features[splits]))
            without_room = run.split_multiway(nodes[splits], chosen)  # within max_nodes
            self._make_leaves(run, without_room, shares.leaf(level, selected=True))
        return run.release()

    @claim("thm-diffprf")
    def as_proved(self, run: Run) -> Forest:
        """The repair: trees on all records, public constants, and *stop* among the candidates in place of a count."""
        budget = run.start_forest(self.n_estimators, self.option("sampling"), self.max_nodes)
        shares = Shares(self.option("budget"), budget, self.max_depth + 1)
        for level, nodes in run.levels(self.max_depth):
            features = nodes.unused & (run.sizes > 1)
            splits, paid = np.any(features, axis=1), np.zeros(len(nodes))
            if self.option("stop") == "count":  # which a node pays for if it could split
                half = shares.branch(level) / 2
                paid[splits] = half if math.isfinite(half) else 0.0
                splits[splits] = enough(run, nodes[splits], features[splits], half)
            self._make_leaves(run, nodes[~splits], shares.leaf(level, selected=False) - paid[~splits])
            epsilon, allowed = shares.branch(level) - paid[splits], self._subset(run, features[splits])
            chosen = run.choose_feature(nodes[splits], epsilon, self._selection(), allowed)
            # a node that stops has paid for its selection: thm-stop-budget
            self._make_leaves(run, run.split_multiway(nodes[splits], chosen), shares.leaf(level, selected=True))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))
        return run.release()

    def _published_selection(self, run: Run, epsilon: float) -> tuple[float, Selection]:
        """The paper's selection, with its bound of the sensitivity of information gain in place of the exact one."""
        how = self._selection()
        if not how.score.needs_cap:
            return epsilon, how
        n = float(max(2, run.size(SIZE)))  # nothing to choose by in a single record
        delta = log2(n + 1) + 1 / log(2)
        return epsilon * how.score.sensitivity(run.relation, n) / delta, replace(how, n_max=n)

    def _cap(self) -> float:
        return math.inf if self.option("sampling") == "poisson" else float(self.n_max)  # copies know no cap

    def promise(self, epsilon: float) -> float:
        if self.variant == "proved":
            return epsilon
        # a run that stops early spends less than the paper's share of its trees; the promise is about every run
        each = epsilon / self.n_estimators
        return self.n_estimators * float(bootstrap(each, each, self.relation))

    # -- the audit -------------------------------------------------------------------------------------------

    def by_paths(self) -> bool:
        # a node's law is a matter of its own records, and no coin that is not released touches it
        return (
            self.variant == "proved"
            and self._sampling() == "assignment"
            and self.max_features in ("all", "sqrt")
            and self.option("vote") == "counts"
            and self.option("stop") != "count"
            and self.declared_schema().n_features <= (2 if self.max_features == "sqrt" else 99)
        )

    FACTS = Facts(leaks="size", in_memory=True)
    AUDIT: ClassVar = AuditSpec(
        "diffprf",
        (
            (HALF_STOP | {"sampling": "assignment"}, 2, 2),
            ({}, 2, 1),
            (HALF_STOP | {"max_features": 1, "vote": "majority", "selection": "exponential"}, 2, 1),
            (HALF_STOP | {"criterion": "information-gain", "n_max": 16, "n_estimators": 2}, 1, 1),
            ({"stop": "count", "vote": "majority"}, 1, 1),
            (HALF_STOP | {"sampling": "poisson"}, 1, 1),
            ({"variant": "published"}, 1, 1),
        ),
        {
            ADD_REMOVE: Broken(f"{BOOTSTRAP}, and the number of records is read without a charge", (GREY_BOX,)),
            REPLACE_ONE: Broken(BOOTSTRAP, (GREY_BOX,)),
        },
        sizes=(60,),  # enough for the noisy count to let a node split
    )
