# ruff: noqa: F401  (the imports are for type checkers and for tools that read the syntax tree)
"""Differentially private decision trees and forests: published, refuted or proved, repaired and audited."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpforest import registry
from dpforest._version import __version__
from dpforest.messages import shown

if TYPE_CHECKING:
    from dpforest import budgets, datasets, evaluation, inspect, mechanisms, scores
    from dpforest.flagship import PrivateBoostingClassifier, PrivateBoostingRegressor
    from dpforest.models.release import ReleasedForest, load
    from dpforest.papers.aim import AIMClassifier
    from dpforest.papers.diff_lr import DiffLRRegressor
    from dpforest.papers.diffgen import DiffGenClassifier
    from dpforest.papers.diffp_c45 import DiffPC45Classifier
    from dpforest.papers.diffp_id3 import DiffPID3Classifier
    from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
    from dpforest.papers.diffprf import DiffPRFClassifier
    from dpforest.papers.diffprfs import DiffPRFsClassifier
    from dpforest.papers.diprime import DiPriMeClassifier, DiPriMeRegressor
    from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
    from dpforest.papers.dp_ebm import DPEBMClassifier, DPEBMRegressor
    from dpforest.papers.dp_tr import DPTRClassifier
    from dpforest.papers.dps_adaboost import DPsAdaBoostClassifier
    from dpforest.papers.dt_diff import DTDiffClassifier
    from dpforest.papers.edprf import EDPRFClassifier
    from dpforest.papers.functional_mechanism import FunctionalMechanismClassifier, FunctionalMechanismRegressor
    from dpforest.papers.pearson_tree import PearsonTreeClassifier
    from dpforest.papers.pinq_id3 import PinqID3Classifier
    from dpforest.papers.privatree import PrivaTreeClassifier
    from dpforest.papers.random_trees import RandomTreesClassifier, RandomTreesRegressor
    from dpforest.papers.s_bdt import SBDTClassifier
    from dpforest.papers.smooth_forest import SmoothForestClassifier
    from dpforest.papers.sulq_id3 import SulqID3Classifier
    from dpforest.privacy import (
        Budget,
        BudgetError,
        BudgetWarning,
        Guarantee,
        Ledger,
        OutOfSchemaWarning,
        UnprovenPrivacyWarning,
    )
    from dpforest.schema import Prefix, Schema

__all__ = [
    *registry.MODULES,
    *registry.NAMES,
    *(learner for learners in registry.PAPERS.values() for learner in learners),
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is first asked for."""
    homes = {
        learner: registry.ROOM_OF.get(paper, f"papers.{paper}")
        for paper, learners in registry.PAPERS.items()
        for learner in learners
    }
    homes |= registry.NAMES
    if name in homes:
        found = getattr(import_module(f"dpforest.{homes[name]}"), name)
    elif name in registry.MODULES + registry.ROOMS:
        found = import_module(f"dpforest.{name}")
    else:
        raise AttributeError(f"module {shown(__name__)} has no attribute {shown(name)}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, *registry.ROOMS]
