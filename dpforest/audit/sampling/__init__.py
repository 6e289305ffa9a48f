"""Bounds from draws, for anything that can be sampled."""

from dpforest.audit.sampling.bounds import Betting, clopper_pearson, epsilon_lower, p_value
from dpforest.audit.sampling.empirical import EmpiricalAudit, empirical
from dpforest.audit.sampling.ratios import LikelihoodRatios, likelihood_ratios, plot_ratios

__all__ = [
    "Betting",
    "EmpiricalAudit",
    "LikelihoodRatios",
    "clopper_pearson",
    "empirical",
    "epsilon_lower",
    "likelihood_ratios",
    "p_value",
    "plot_ratios",
]
