"""The auditor.  Nothing in the library imports it."""

from dpforest.audit.exact import ExactAudit, datasets, exact_audit, law_of, neighbours, released

__all__ = ["ExactAudit", "datasets", "exact_audit", "law_of", "neighbours", "released"]
