"""The auditor.  Nothing in the library imports it."""

from dpforest.audit.exact import ExactAudit, datasets, exact_audit, neighbours
from dpforest.audit.laws import law_of, released
from dpforest.audit.paths import path_audit

__all__ = ["ExactAudit", "datasets", "exact_audit", "law_of", "neighbours", "path_audit", "released"]
