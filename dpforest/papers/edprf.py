"""eDPRF: an efficient differentially private random forest (Wang, Qiu, Zhao, Zou and Wang, 2025).

Each tree learns from its own subset of the records.  A tree is grown by multiway splits on binned features, each
chosen by permute-and-flip; a feature used on a path is not used again below.  Formulas (9) and (10) divide the
tree's budget over its levels and leaves.  The chapter *eDPRF* tells where the published proof fails and why the
repair holds.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpforest import budgets, scores
from dpforest.curator import CALIBRATIONS, STOP
from dpforest.learners.base import PrivateForestClassifier, check_covered
from dpforest.learners.growth import MAX_NODES, Growth, pure, votes
from dpforest.learners.parameters import CAP, MARGIN, check_choice, check_count, check_letter, check_number
from dpforest.mechanisms import SELECTIONS
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import claim

__all__ = ["EDPRFClassifier"]

LEAVES = ("counts", "label")
HEAD_START = 6.0  # of *stop*; chosen in notebooks/tuning.ipynb
PURITY = "which nodes hold a single class", "eDPRF algorithm 5, line 1"


@claim("alg-edprf", "thm-edprf", "pub-edprf", "cex-purity-stop", "pub-edprf-binning")
class EDPRFClassifier(PrivateForestClassifier):
    """Private random forest with budget alignment and permute-and-flip.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the whole forest, positive; ``"non-private"`` turns the noise off.
    schema : Schema
        What is public: bounds, categories, classes.  Required.
    n_estimators : int
        Trees; each learns from its own share of the records.
    max_depth : int
        Splits on the longest path, as in scikit-learn; the paper's *treeDepth* is ``max_depth + 1``.
    n_bins : int
        Public bins of each numeric feature, equally wide over its bounds.
    relation : {"add-remove", "replace-one"}
        Which data sets are neighbours.
    variant : {"proved", "published"}
        ``"published"`` is the paper to the letter: equal-size subsets, the purity test, exponents
        ``epsilon / (2 sensitivity)``, formulas (9) and (10), label leaves.  It warns, for its proof fails.
    selection : {"permute-and-flip", "exponential"}
        Mechanism of splits and labels.
    criterion : {"gini", "normalised-gini", "gini-gain", "majority", "information-gain"}
        Split utility; information gain needs ``n_max``.
    budget : {"aligned", "harmonic", "uniform", "aligned-uniform"}
        ``"uniform"``: equal shares per level.  ``"harmonic"``: formula (9).  ``"aligned"``: (9), and a leaf also gets
        what the levels below it leave unspent, formula (10).  ``"aligned-uniform"``: equal shares, aligned.
    calibration : {"auto", "range", "sensitivity"}
        Rate ``epsilon / R`` or, as in the paper, ``epsilon / (2 sensitivity)``; auto is by variant.
    leaf : {"label", "counts"}
        A leaf says one label, chosen privately as in the paper, or noisy class counts, which give probabilities.
    stop : {"auto", "candidate", "never", "purity"}
        What may end a branch early.  ``"candidate"``: *stop* stands among the candidates of the node's selection, at no
        further cost.  ``"purity"`` (published only): the node's records share one class, read without paying.
    stop_margin : float
        Head start of *stop*, in units of the selection's noise: the larger, the larger the nodes that stop.
    n_max : float
        Public cap on the number of records, for information gain.
    max_nodes : int
        The forest does not grow beyond this; branches that would are leaves.  At least ``n_estimators``.
    source : {"seeded", "secure"}
        Where the bits of the exact samplers come from: a seed, for research, or the system's entropy, for a release.
    random_state : None, int, Generator or RandomState
        Seed of the seeded source.  Whoever knows it can subtract the noise.
    n_jobs : int or None
        Threads that count.

    Attributes
    ----------
    forest_ : Forest
        The released trees.
    ledger_ : Ledger
        Every charge; ``ledger_.leaks`` is empty iff nothing was read unpaid.
    guarantee_ : Guarantee
    classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-edprf`).  ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-edprf`).

    Source
    ------
    Journal of Software 36(7), 2025: algorithms 1 to 5, formulas (7) to (10).

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

    _AUTO: ClassVar = {
        "published": {"calibration": "sensitivity", "stop": "purity"},
        "proved": {"calibration": "range", "stop": "candidate"},
    }

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, max_depth=5, n_bins=10, relation="add-remove",
        variant="proved", selection="permute-and-flip", criterion="gini", budget="aligned", calibration="auto",
        leaf="label", stop="auto", stop_margin=HEAD_START, n_max=float("inf"), max_nodes=MAX_NODES, source="seeded",
        random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.selection = selection
        self.criterion = criterion
        self.budget = budget
        self.calibration = calibration
        self.leaf = leaf
        self.stop = stop
        self.stop_margin = stop_margin
        self.n_max = n_max
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, curator, chance, schema, ledger, epsilon):
        published = self.variant == "published"
        stop = self._option("stop")
        growth = Growth(
            self.n_estimators, schema.n_features, schema.n_classes, ledger,
            "equal-split" if published else "assignment", self.max_nodes,
        )  # fmt: skip
        if published:
            curator.split_equally(self.n_estimators)
        else:
            curator.assign(self.n_estimators)
        shares = budgets.Shares(self.budget, epsilon, self.max_depth + 1)
        for level in range(1, shares.depth + 1):
            frontier = growth.frontier
            splittable = frontier.unused.any(axis=1) & (level < shares.depth)
            if stop == "purity":
                what, where = PURITY
                splittable &= ~pure(curator.peek(growth, frontier.nodes, what=what, where=where))
            self._settle(growth, curator, frontier[~splittable], shares.leaf(level, stopped=False))
            inner = frontier[splittable]
            if not len(inner):
                break
            choice = curator.choose_feature(
                growth, inner.nodes, inner.scopes, inner.unused, shares.branch(level),
                score=scores.CLASSIFICATION[self.criterion], mechanism=self.selection,
                calibration=self._option("calibration"), stop_margin=self.stop_margin if stop == "candidate" else None,
                n_max=self.n_max,
            )  # fmt: skip
            arities = np.where(choice == STOP, 0, curator.cardinalities[choice])
            grows = (choice != STOP) & growth.room(arities)
            # a node that stops has paid for its selection: thm-stop-budget
            self._settle(growth, curator, inner[~grows], shares.leaf(level, stopped=True))
            growth.branch(inner[grows], choice[grows], arities[grows])
        return growth.release()

    def _settle(self, growth, curator, leaves, epsilon) -> None:
        if not len(leaves):
            return
        if self.leaf == "counts":
            growth.settle(leaves, curator.count_classes(growth, leaves.nodes, leaves.scopes, epsilon))
        else:
            label = curator.choose_label(
                growth, leaves.nodes, leaves.scopes, epsilon, mechanism=self.selection,
                calibration=self._option("calibration"),
            )  # fmt: skip
            growth.settle(leaves, votes(label, curator.n_classes))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_depth, "max_depth", most=MAX_DEPTH)
        check_count(self.max_nodes, "max_nodes", least=self.n_estimators)
        check_choice(self.selection, "selection", SELECTIONS)
        check_choice(self.criterion, "criterion", scores.CLASSIFICATION)
        check_choice(self.budget, "budget", budgets.PLANS)
        check_choice(self.calibration, "calibration", ("auto", *CALIBRATIONS))
        check_choice(self.leaf, "leaf", LEAVES)
        check_choice(self.stop, "stop", ("auto", "candidate", "never", "purity"))
        check_number(self.stop_margin, "stop_margin", *MARGIN)
        check_number(self.n_max, "n_max", *CAP)
        score = scores.CLASSIFICATION[self.criterion]
        score.range(self.relation, float(self.n_max))  # refuses a missing cap
        if self.variant == "published":
            letter = {"budget": "aligned", "leaf": "label", "selection": "permute-and-flip", "stop_margin": HEAD_START}
            asked = {name: getattr(self, name) for name, value in letter.items() if getattr(self, name) != value}
            asked |= {name: getattr(self, name) for name in ("stop", "calibration") if getattr(self, name) != "auto"}
            if self.criterion not in ("gini", "normalised-gini"):  # the two readings of the paper's score
                asked["criterion"] = self.criterion
            check_letter(asked)
        else:
            check_covered(
                score, self.relation, stop=self._option("stop"), sampling="assignment", n_max=float(self.n_max)
            )  # fmt: skip
