"""Exact losses: whole laws by replay, or one path of a tree at a time."""

from dpforest.audit.exact.enumeration import ExactAudit, datasets, exact_audit, neighbours
from dpforest.audit.exact.hockey import hockey_stick, least_epsilon
from dpforest.audit.exact.laws import law_of, law_of_shapes, released
from dpforest.audit.exact.noisy import geometric_log_ratio
from dpforest.audit.exact.paths import path_audit

__all__ = [
    "ExactAudit",
    "datasets",
    "exact_audit",
    "geometric_log_ratio",
    "hockey_stick",
    "law_of",
    "law_of_shapes",
    "least_epsilon",
    "neighbours",
    "path_audit",
    "released",
]
