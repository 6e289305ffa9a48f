"""Differentially private decision trees and forests: published, refuted or proved, repaired and audited."""

from dpforest import budgets, datasets, mechanisms, scores
from dpforest._version import __version__
from dpforest.models.release import ReleasedForest, load
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
from dpforest.privacy import Guarantee, Ledger, OutOfSchemaWarning, UnprovenPrivacyWarning
from dpforest.schema import Schema

__all__ = [
    "DPAdaBoostClassifier", "DPsAdaBoostClassifier", "DiffLRRegressor", "DiffPETsClassifier", "DiffPETsRegressor",
    "DiffPRFClassifier", "DiffPRFsClassifier", "EDPRFClassifier", "FunctionalMechanismClassifier",
    "FunctionalMechanismRegressor", "Guarantee", "Ledger", "OutOfSchemaWarning", "PearsonTreeClassifier",
    "RandomTreesClassifier", "RandomTreesRegressor", "ReleasedForest", "Schema", "UnprovenPrivacyWarning",
    "__version__", "budgets", "datasets", "load", "mechanisms", "scores",
]  # fmt: skip
