"""DiffPRF: a differentially private random forest of ID3 trees (Patil and Singh, 2014).

Trees grow by multiway splits on features from a public grid, each chosen by the exponential mechanism among a random
subset; a feature used on a path is not used again below.  A leaf holds noisy class counts.  The chapter *Rivals* tells
where the published budget falls short and what the repair gains.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpforest import budgets, scores
from dpforest.arithmetic import log, log2
from dpforest.curator import CALIBRATIONS, STOP
from dpforest.learners.audited import GREY_BOX, HALF_STOP, Audited, Broken
from dpforest.learners.base import PrivateForestClassifier, check_covered
from dpforest.learners.growth import MAX_NODES, Growth, one_vote
from dpforest.learners.parameters import CAP, MARGIN, check_choice, check_count, check_letter
from dpforest.learners.sharing import SAMPLINGS, n_candidates, random_features, share_out
from dpforest.mechanisms import SELECTIONS
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, bootstrap, claim

__all__ = ["DiffPRFClassifier"]

VOTES = ("counts", "majority")
HEAD_START = 6.0  # of *stop*, as in eDPRF
#: What the letter of the paper fixes; a vote is read off the noisy counts, and either may be released.
LETTER = ("sampling", "selection", "budget", "calibration", "stop")
BOOTSTRAP = "a bootstrap costs more than the paper charges (pub-diffprf)"
SIZE = "the number of records", "DiffPRF, the sensitivity of information gain"


@claim("alg-diffprf", "thm-diffprf", "pub-diffprf")
class DiffPRFClassifier(PrivateForestClassifier):
    """Private random forest of ID3 trees.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the whole forest, positive; ``"non-private"`` turns the noise off.
    schema : Schema
        What is public: bounds, categories, classes.  Required.
    n_estimators : int
    max_depth : int
        Splits on the longest path; 0 makes every tree a single leaf.
    max_features : int, "sqrt" or "all"
        Size of the random subset of features that a node chooses from.
    n_bins : int
        Public bins of each numeric feature, equally wide over its bounds.
    relation : {"add-remove", "replace-one"}
        Which data sets are neighbours.
    variant : {"proved", "published"}
        ``"published"`` is the paper to the letter: for every tree a bootstrap of the size of the data, equal shares per
        level, half of each for a noisy record count and half for the selection, exponents
        ``epsilon / (2 sensitivity)``, majority vote.  It warns, for a bootstrap costs more than the paper charges.
    sampling : {"auto", "all", "assignment", "poisson", "bootstrap"}
        Which records a tree sees.  ``"all"`` (auto of the proved variant): every tree all of them, at
        ``epsilon / n_estimators``.  ``"assignment"``: each record goes to one tree by a coin, and each tree has all of
        ``epsilon``.  ``"poisson"``: a Poisson number of copies of each record for every tree, paid for in full.
        ``"bootstrap"`` (published only): as many draws with replacement as there are records.
    selection : {"auto", "exponential", "permute-and-flip"}
        Mechanism of splits; auto is exponential as published, permute-and-flip if proved.
    criterion : {"auto", "information-gain", "gini", "gini-gain", "majority", "normalised-gini"}
        Split utility; auto is information gain as published, Gini if proved.  Information gain needs ``n_max`` if
        proved; the published variant puts the number of records in its place.
    budget : {"auto", "uniform", "aligned-uniform", "harmonic", "aligned"}
        How a tree's budget falls on its levels, see :class:`~dpforest.budgets.Shares`.  Auto is ``"uniform"`` as
        published, ``"aligned-uniform"`` if proved: a leaf also gets what the levels below it leave unspent.
    calibration : {"auto", "range", "sensitivity"}
        Rate ``epsilon / R`` or, as in the paper, ``epsilon / (2 sensitivity)``; auto is by variant.
    vote : {"auto", "counts", "majority"}
        What a leaf says: its noisy class counts, which the forest adds up, or one vote for the largest of them.  Auto
        is the majority vote as published, counts if proved.
    stop : {"auto", "candidate", "count", "never"}
        What may end a branch early.  ``"candidate"`` (auto if proved): *stop* stands among the candidates of the node's
        selection.  ``"count"`` (auto as published): half of a node's share pays for a noisy count of its records, and
        the node is a leaf if the count is below sqrt(2) / epsilon for each class and value of its widest feature.
    stop_margin : float
        Head start of the *stop* candidate, in units of the selection's noise.
    n_max : float
        Public cap on the number of records, for information gain.
    max_nodes : int
        The forest does not grow beyond this; branches that would are leaves.
    source, random_state, n_jobs
        As in :class:`~dpforest.papers.edprf.EDPRFClassifier`.

    Attributes
    ----------
    forest_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

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

    _AUTO: ClassVar = {
        "published": {
            "sampling": "bootstrap", "selection": "exponential", "criterion": "information-gain", "budget": "uniform",
            "calibration": "sensitivity", "vote": "majority", "stop": "count",
        },
        "proved": {
            "sampling": "all", "selection": "permute-and-flip", "criterion": "gini", "budget": "aligned-uniform",
            "calibration": "range", "vote": "counts", "stop": "candidate",
        },
    }  # fmt: skip

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, max_depth=5, max_features="sqrt", n_bins=10,
        relation="add-remove", variant="proved", sampling="auto", selection="auto", criterion="auto", budget="auto",
        calibration="auto", vote="auto", stop="auto", stop_margin=HEAD_START, n_max=float("inf"), max_nodes=MAX_NODES,
        source="seeded", random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.sampling = sampling
        self.selection = selection
        self.criterion = criterion
        self.budget = budget
        self.calibration = calibration
        self.vote = vote
        self.stop = stop
        self.stop_margin = stop_margin
        self.n_max = n_max
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, curator, chance, schema, ledger, epsilon):
        sampling, stop = self.option("sampling"), self.option("stop")
        each, sharing = share_out(sampling, curator, epsilon, self.n_estimators, self.relation)
        growth = Growth(
            self.n_estimators, schema.n_features, schema.n_classes, ledger, sharing, self.max_nodes
        )  # fmt: skip
        shares = budgets.Shares(self.option("budget"), each, self.max_depth + 1)
        size = n_candidates(self.max_features, schema.n_features)
        for level in range(1, shares.depth + 1):
            frontier = growth.frontier
            usable = frontier.unused & (curator.cardinalities > 1)
            splittable = usable.any(axis=1) & (level < shares.depth)
            # the published algorithm counts first and asks then; a repaired one does not pay for what it will not use
            counted = np.full(len(frontier), stop == "count") & (splittable | (self.variant == "published"))
            paid = np.where(counted, shares.branch(level) / 2, 0.0)
            if counted.any():
                some = frontier[counted]
                records = curator.count_records(growth, some.nodes, some.scopes, paid[counted])
                widest = np.where(usable[counted], curator.cardinalities, 1).max(axis=1)
                splittable[counted] &= records >= math.sqrt(2) / paid[counted] * schema.n_classes * widest
            ended = ~splittable
            left = shares.leaf(level, stopped=False) - (paid[ended] if math.isfinite(each) else 0.0)
            self._settle(growth, curator, frontier[ended], left)
            inner = frontier[splittable]
            if not len(inner):
                break
            choice = self._choose(
                curator, growth, inner, random_features(chance, usable[splittable], size),
                shares.branch(level) - paid[splittable] if math.isfinite(each) else each, stop,
            )  # fmt: skip
            arities = np.where(choice == STOP, 0, curator.cardinalities[choice])
            grows = (choice != STOP) & growth.room(arities)
            self._settle(growth, curator, inner[~grows], shares.leaf(level, stopped=True))
            growth.branch(inner[grows], choice[grows], arities[grows])
        return growth.release()

    def promise(self, epsilon):
        if self.variant == "proved":
            return epsilon
        # a run that stops early spends less than the paper's share of its trees; the promise is about every run
        each = epsilon / self.n_estimators
        return self.n_estimators * float(bootstrap(each, each, self.relation))

    def _choose(self, curator, growth, inner, allowed, epsilon, stop):
        score, n_max = scores.CLASSIFICATION[self.option("criterion")], self._cap()
        if self.variant == "published" and score.needs_cap:
            what, where = SIZE
            n_max = float(max(2, curator.size(what=what, where=where)))  # nothing to choose by in a single record
            # the paper's bound log2(n + 1) + 1 / ln 2 in place of the exact constant
            epsilon = epsilon * score.sensitivity(self.relation, n_max) / (log2(n_max + 1) + 1 / log(2))
        return curator.choose_feature(
            growth, inner.nodes, inner.scopes, allowed, epsilon, score=score, mechanism=self.option("selection"),
            calibration=self.option("calibration"), stop_margin=self.stop_margin if stop == "candidate" else None,
            n_max=n_max,
        )  # fmt: skip

    def _settle(self, growth, curator, leaves, epsilon) -> None:
        if not len(leaves):
            return
        counts = curator.count_classes(growth, leaves.nodes, leaves.scopes, epsilon)
        if self.option("vote") == "majority":
            counts = one_vote(counts)
        growth.settle(leaves, counts)

    def _cap(self) -> float:
        """The public cap, where a tree sees no record twice."""
        return math.inf if self.option("sampling") == "poisson" else float(self.n_max)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_depth, "max_depth", least=0, most=MAX_DEPTH)
        check_count(self.max_nodes, "max_nodes", least=self.n_estimators)
        n_candidates(self.max_features, 1)
        check_choice(self.sampling, "sampling", ("auto", *SAMPLINGS))
        check_choice(self.selection, "selection", ("auto", *SELECTIONS))
        check_choice(self.criterion, "criterion", ("auto", *scores.CLASSIFICATION))
        check_choice(self.budget, "budget", ("auto", *budgets.PLANS))
        check_choice(self.calibration, "calibration", ("auto", *CALIBRATIONS))
        check_choice(self.vote, "vote", ("auto", *VOTES))
        check_choice(self.stop, "stop", ("auto", "candidate", "count", "never"))
        MARGIN.check(self.stop_margin, "stop_margin")
        CAP.check(self.n_max, "n_max")
        score = scores.CLASSIFICATION[self.option("criterion")]
        if self.variant == "published":
            asked = {name: getattr(self, name) for name in LETTER if getattr(self, name) != "auto"}
            if score.name not in ("information-gain", "gini", "majority"):  # the three that the paper compares
                asked["criterion"] = self.criterion
            check_letter(asked)
            return
        check_covered(
            score, self.relation, stop=self.option("stop"), sampling=self.option("sampling"), n_max=self._cap()
        )  # fmt: skip

    def by_paths(self) -> bool:
        # a node's law is a matter of its own records, and no coin that is not released touches it
        return (
            self.variant == "proved" and self._sampling() == "assignment" and self.max_features in ("all", "sqrt")
            and self.option("vote") == "counts" and self.option("stop") != "count"
            and self.declared_schema().n_features <= (2 if self.max_features == "sqrt" else 99)
        )  # fmt: skip

    def says_labels(self) -> bool:
        return self.option("vote") == "majority"

    AUDIT: ClassVar = Audited(
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
            ADD_REMOVE: Broken(f"{BOOTSTRAP}, and the number of records is read unpaid", (GREY_BOX,)),
            REPLACE_ONE: Broken(BOOTSTRAP, (GREY_BOX,)),
        },
        sizes=(60,),  # enough for the noisy count to let a node split
    )
