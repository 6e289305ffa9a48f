"""Differentially private decision trees and forests: published, refuted or proved, repaired and audited."""

from dpforest import budgets, datasets, mechanisms, scores
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.random_trees import RandomTreesClassifier
from dpforest.privacy import Guarantee, Ledger, OutOfSchemaWarning, UnprovenPrivacyWarning
from dpforest.release import ReleasedForest, load
from dpforest.schema import Schema

__version__ = "0.1.0"

__all__ = [
    "EDPRFClassifier", "Guarantee", "Ledger", "OutOfSchemaWarning", "RandomTreesClassifier", "ReleasedForest", "Schema",
    "UnprovenPrivacyWarning", "budgets", "datasets", "load", "mechanisms", "scores",
]  # fmt: skip
