"""Differentially private decision trees and forests: published, refuted or proved, repaired and audited."""

from dpforest.privacy import Guarantee, Ledger, OutOfSchemaWarning, UnprovenPrivacyWarning
from dpforest.schema import Schema

__version__ = "0.1.0"

__all__ = ["Guarantee", "Ledger", "OutOfSchemaWarning", "Schema", "UnprovenPrivacyWarning"]
