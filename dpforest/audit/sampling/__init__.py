"""Bounds from draws, for anything that can be sampled."""

from dpforest.audit.sampling.bounds import Betting, clopper_pearson, epsilon_lower, p_value
from dpforest.audit.sampling.empirical import EmpiricalAudit, empirical

__all__ = ["Betting", "EmpiricalAudit", "clopper_pearson", "empirical", "epsilon_lower", "p_value"]
