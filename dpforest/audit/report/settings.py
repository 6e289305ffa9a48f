"""Which of the library's learners are audited, in which settings, and what is expected of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpforest.audit.report.subjects import EXACT, GREY_BOX, LAYERS
from dpforest.learners.base import PrivateEstimator
from dpforest.papers.diff_lr import DiffLRRegressor
from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
from dpforest.papers.diffprf import DiffPRFClassifier
from dpforest.papers.diffprfs import DiffPRFsClassifier
from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
from dpforest.papers.dps_adaboost import DPsAdaBoostClassifier
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.functional_mechanism import FunctionalMechanismClassifier, FunctionalMechanismRegressor
from dpforest.papers.pearson_tree import PearsonTreeClassifier
from dpforest.papers.random_trees import RandomTreesClassifier, RandomTreesRegressor
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE

__all__ = ["LEARNERS", "Broken", "Learner"]

Settings = tuple[tuple[dict[str, Any], int, int | None], ...]


@dataclass(frozen=True)
class Broken:
    """Why a published claim is refuted, and the layers that must find it so."""

    why: str
    layers: tuple[str, ...] = LAYERS


@dataclass(frozen=True)
class Learner:
    """How to audit an estimator of the library.

    Attributes
    ----------
    estimator : type
    settings : tuple of (options, features, depth)
        What the report audits; depth None leaves the estimator's own, or a linear model without one.
    sharing : callable
        How fits of a configured forest may be sampled together, see :class:`~dpforest.audit.report.batches.Fits`.
    by_paths : callable
        Whether one tree of it can be audited path by path; a forest, and any other learner, is replayed.
    labels : callable
        Whether it says one label in a leaf; else it says noisy numbers.
    broken : mapping
        For each relation under which the paper's claim is refuted, why.
    sizes : tuple of int
        Numbers of records at which something may change that is computed from their number.
    numeric : bool
        Whether the features of the universe are numeric ones; else they are categories.
    usual : mapping
        Options that an audit gives unless told otherwise: a small universe can do without the estimator's own.
    masks : bool
        Whether its trees may differ in nothing but where they cut a feature of two codes.
    sparing : bool
        Whether the report looks at less of each setting, and samples only what tells more than the other layers: the
        first setting, what is refuted, and what cannot be replayed.
    """

    estimator: type[PrivateEstimator]
    settings: Settings = field(repr=False)
    sharing: Callable[[Any], str | None] = lambda model: None
    by_paths: Callable[[Any], bool] = lambda model: False
    labels: Callable[[Any], bool] = lambda model: False
    broken: Mapping[str, Broken] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    numeric: bool = False
    usual: Mapping[str, Any] = field(default_factory=lambda: {"n_estimators": 1})
    masks: bool = False
    sparing: bool = True

    def most_replayed(self, model) -> float:
        """Records of the largest telling pair that is replayed: a bootstrap of n has n^n branches."""
        return 2 if _sampling(model) == "bootstrap" else math.inf

    def lacking(self, model) -> dict[str, str]:
        """Layers that cannot look at a configured estimator, and why."""
        if _sampling(model) == "poisson":
            return {EXACT: "a Poisson number of copies has infinitely many values, so that replay cannot visit them"}
        if hasattr(model, "alpha_max") and model.variant == "proved" and model.n_estimators > 1:
            return {EXACT: "noisy counts decide the weights of the next round, so that replay cannot visit them"}
        if hasattr(model, "alpha_max") and model.variant == "published" and hasattr(model, "max_depth"):
            return {EXACT: "noisy counts are looked at twice, for the votes and for the pruning, which no lemma covers"}
        if getattr(model, "repair", "") == "redraw":
            why = "noise that is drawn again until a test is passed is not released, but looked at"
            return {EXACT: why, GREY_BOX: why}
        return {}


def _sampling(model) -> str:
    """Which records a tree sees, by name."""
    if not hasattr(model, "sampling"):
        return "all"
    return "bootstrap" if model.variant == "published" else model._option("sampling")


def _sharing(model) -> str:
    """Trees that each read all records, or copies of them drawn for each tree, have shares of the budget."""
    return "parallel" if _sampling(model) == "assignment" else "sequential"


def _alone(model) -> bool:
    """Whether a node's law is a matter of its own records, and no coin that is not released touches it."""
    return (
        model.variant == "proved" and _sampling(model) == "assignment" and model.max_features in ("all", "sqrt")
        and model._option("vote") == "counts" and model._option("stop") != "count"
        and model.schema.n_features <= (2 if model.max_features == "sqrt" else 99)
    )  # fmt: skip


_CUT_ONCE = {"n_estimators": 1, "cuts_per_feature": 1}  # a feature of two codes has a single cut
_HALF = {"stop_margin": 0.5}  # a head start that lets a node of few records do either, stop or split
_PURITY = Broken("the published code reads, unpaid, whether the records of a node share one class (cex-purity-stop)")
_HEIGHT = Broken("the published height of a tree is computed from the number of records (pub-random-trees)")
_PETS = Broken(
    "the published code reads, unpaid, whether a node is pure, which values occur in it and the commonest class of a "
    "leaf (pub-diffpets)"
)
_PETS_REGRESSION = Broken(
    "the published code reads, unpaid, the error of a node and which values occur in it (pub-diffpets-regression)"
)
_BOOTSTRAP = "a bootstrap costs more than the paper charges (pub-diffprf)"
_PRFS = Broken("the published code reads, unpaid, whether the records of a node share one class (pub-diffprfs)")

_BOOSTED = Broken(
    "the published code reads, unpaid, the weights, the errors, the best splits and the held-out records "
    "(pub-dps-adaboost)"
)
_PEARSON_TREE = Broken(
    "the published code reads, unpaid, whether a node is pure, the best cuts and the largest correlation "
    "(pub-pearson-tree)"
)
_STUMP = Broken("the published code reads, unpaid, the weights, the errors and the best splits (pub-dp-adaboost)")

_EDPRF: Settings = (
    ({}, 2, 2),
    (_HALF, 2, 2),
    (_HALF | {"selection": "exponential"}, 2, 2),
    (_HALF | {"leaf": "counts"}, 2, 2),
    (_HALF | {"leaf": "counts", "selection": "exponential", "budget": "aligned-uniform"}, 2, 2),
    (_HALF | {"criterion": "gini-gain"}, 2, 2),
    (_HALF | {"criterion": "majority"}, 2, 2),
    (_HALF | {"criterion": "information-gain", "n_max": 16}, 2, 2),
    (_HALF | {"budget": "harmonic"}, 2, 2),
    (_HALF | {"budget": "uniform"}, 2, 2),
    ({"stop": "never"}, 2, 2),
    ({"stop": "never", "criterion": "normalised-gini"}, 2, 2),
    ({"stop": "never", "calibration": "sensitivity"}, 2, 2),
    ({"stop": "never", "n_estimators": 2}, 1, 1),
    ({"variant": "published"}, 2, 2),
    ({"variant": "published", "criterion": "normalised-gini"}, 2, 2),
    ({"variant": "published", "n_estimators": 2}, 1, 1),
)
_DIFFPETS: Settings = (
    (_HALF, 2, 1),
    ({}, 2, 1),
    (_HALF | {"max_features": 1, "leaf": "label", "selection": "exponential"}, 2, 1),
    (_HALF | {"criterion": "majority"}, 1, 2),
    (_HALF | {"criterion": "gini-gain", "n_estimators": 2}, 1, 1),
    ({"stop": "never", "criterion": "normalised-gini", "cuts_per_feature": 2}, 2, 1),
    (_HALF | {"sampling": "assignment", "n_estimators": 2}, 1, 1),
    (_HALF | {"sampling": "poisson"}, 1, 1),
    ({"variant": "published"}, 1, 1),
)
_DIFFPETS_REGRESSOR: Settings = (
    (_HALF, 2, 1),
    ({}, 2, 1),
    (_HALF | {"criterion": "sse", "selection": "exponential", "n_estimators": 2}, 1, 1),
    (_HALF | {"criterion": "mass-gap", "sampling": "assignment", "n_estimators": 2}, 1, 1),
    ({"stop": "never", "criterion": "variance"}, 2, 1),
    ({"stop": "never", "criterion": "weighted-variance", "sampling": "poisson"}, 1, 1),
    ({"variant": "published"}, 1, 1),
)
_DIFFPRF: Settings = (
    (_HALF | {"sampling": "assignment"}, 2, 2),
    ({}, 2, 1),
    (_HALF | {"max_features": 1, "vote": "majority", "selection": "exponential"}, 2, 1),
    (_HALF | {"criterion": "information-gain", "n_max": 16, "n_estimators": 2}, 1, 1),
    ({"stop": "count", "vote": "majority"}, 1, 1),
    (_HALF | {"sampling": "poisson"}, 1, 1),
    ({"variant": "published"}, 1, 1),
)
_DIFFPRFS: Settings = (
    (_HALF | {"n_bins": 3}, 1, 1),
    (_HALF | {"two_stage": True, "n_bins": 3, "vote": "majority"}, 1, 1),
    (_HALF | {"sampling": "assignment", "n_estimators": 2}, 1, 1),
    (_HALF | {"sampling": "poisson"}, 2, 1),
    ({"variant": "published", "n_bins": 3}, 1, 1),
)

_CLASSES = {"class_weight": {1: 0.25}}  # telling pairs have two of class 1, and one of 0 comes
_OTHER = {"n_estimators": 2, "votes": "discrete", "weights": "logistic"}
# as published there is one round: the budget of a second may be negative, and then nothing is released
_DPS: Settings = (
    ({}, 2, 1),
    (_HALF | {"stop": "candidate", "criterion": "gini", "selection": "exponential"}, 2, 1),
    (_CLASSES | {"criterion": "gini-gain"}, 1, 1),
    ({"n_estimators": 2, "criterion": "gini"}, 1, 1),
    (_OTHER | _HALF | {"stop": "candidate", "sampling": "assignment"}, 1, 1),
    (_OTHER | _CLASSES, 1, 1),
    ({"variant": "published"}, 2, 1),
)
_STUMPS: Settings = (
    ({}, 2, None),
    (_CLASSES | {"criterion": "majority", "selection": "exponential"}, 2, None),
    ({"n_estimators": 2, "criterion": "gini-gain"}, 1, None),
    (_OTHER | {"sampling": "assignment"}, 1, None),
    (_OTHER | _CLASSES, 1, None),
    ({"variant": "published"}, 2, None),
)
_PEARSON: Settings = (
    (_HALF | {"stop": "candidate", "n_parts": 2}, 2, 1),
    ({}, 2, 1),
    ({"n_parts": 2, "criterion": "majority", "reuse": False}, 1, 2),
    (_HALF | {"stop": "candidate", "criterion": "signed-pearson", "selection": "exponential"}, 2, 1),
    ({"criterion": "normalised-gini", "calibration": "sensitivity", "n_bins": 3}, 1, 1),
    ({"criterion": "gini", "budget": "uniform"}, 2, 1),
    ({"criterion": "gini-gain", "budget": "harmonic"}, 1, 1),
    ({"variant": "published", "n_bins": 3}, 1, 1),
    ({"variant": "published", "selection": "exponential", "n_parts": 2}, 2, 1),
)

_LIFTED = {"variant": "published", "fit_intercept": True}

#: The estimators by the name that the command line takes.  A new one needs an entry: a test says so.
LEARNERS = {
    "edprf": Learner(
        EDPRFClassifier, _EDPRF, lambda model: "parallel", lambda model: True, lambda model: model.leaf == "label",
        {ADD_REMOVE: _PURITY, REPLACE_ONE: _PURITY}, sparing=False,
    ),
    "random-trees": Learner(
        RandomTreesClassifier,
        (({}, 2, 1), ({"split": "multiway"}, 2, 1), ({"n_estimators": 2}, 2, 1), ({"variant": "published"}, 4, None)),
        _sharing, broken={ADD_REMOVE: _HEIGHT}, sizes=(8,), sparing=False,
    ),
    "random-trees-regressor": Learner(
        RandomTreesRegressor,
        (({}, 2, 1), ({"split": "multiway", "n_estimators": 2}, 2, 1), ({"variant": "published"}, 4, None)),
        _sharing, broken={ADD_REMOVE: _HEIGHT}, sizes=(8,),
    ),
    "diffpets": Learner(
        DiffPETsClassifier, _DIFFPETS, _sharing,
        labels=lambda model: model.leaf == "label" or model.variant == "published",
        broken={ADD_REMOVE: _PETS, REPLACE_ONE: _PETS}, usual=_CUT_ONCE, masks=True,
    ),
    "diffpets-regressor": Learner(
        DiffPETsRegressor, _DIFFPETS_REGRESSOR, _sharing,
        broken={ADD_REMOVE: _PETS_REGRESSION, REPLACE_ONE: _PETS_REGRESSION}, usual=_CUT_ONCE, masks=True,
    ),
    "diffprf": Learner(
        DiffPRFClassifier, _DIFFPRF, _sharing, _alone, lambda model: model._option("vote") == "majority",
        {
            ADD_REMOVE: Broken(f"{_BOOTSTRAP}, and the number of records is read unpaid", (GREY_BOX,)),
            REPLACE_ONE: Broken(_BOOTSTRAP, (GREY_BOX,)),
        },
        sizes=(60,),  # enough for the noisy count to let a node split
    ),
    "diffprfs": Learner(
        DiffPRFsClassifier, _DIFFPRFS, _sharing, labels=lambda model: model._option("vote") == "majority",
        broken={ADD_REMOVE: _PRFS, REPLACE_ONE: _PRFS}, numeric=True, usual={"n_estimators": 1, "n_bins": 2},
    ),
    "dps-adaboost": Learner(
        DPsAdaBoostClassifier, _DPS, broken={ADD_REMOVE: _BOOSTED, REPLACE_ONE: _BOOSTED}, usual=_CUT_ONCE, masks=True,
    ),
    "dp-adaboost": Learner(
        DPAdaBoostClassifier, _STUMPS, broken={ADD_REMOVE: _STUMP, REPLACE_ONE: _STUMP},
    ),
    "pearson-tree": Learner(
        PearsonTreeClassifier, _PEARSON, broken={ADD_REMOVE: _PEARSON_TREE, REPLACE_ONE: _PEARSON_TREE}, numeric=True,
        usual={"n_parts": 1, "n_bins": 2},
    ),
    "functional-mechanism": Learner(
        FunctionalMechanismRegressor, usual={},
        settings=(({}, 2, None), ({"fit_intercept": False}, 2, None), ({"variant": "published"}, 2, None)),
    ),
    "functional-mechanism-classifier": Learner(
        FunctionalMechanismClassifier, usual={},
        settings=(({}, 2, None), ({"variant": "published"}, 2, None), (_LIFTED, 1, None)),
    ),
    "diff-lr": Learner(
        DiffLRRegressor, usual={},
        settings=(({}, 2, None), ({"split": "proportional"}, 2, None), ({"variant": "published"}, 2, None)),
    ),
}  # fmt: skip
