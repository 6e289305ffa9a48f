"""Bounds from draws, for anything that can be sampled."""

from dpforest.audit.sampling.bounds import Betting, clopper_pearson, epsilon_lower, p_value, rho_lower, rho_p_value
from dpforest.audit.sampling.empirical import EmpiricalAudit, empirical
from dpforest.audit.sampling.ratios import LikelihoodRatios, likelihood_ratios, plot_ratios
from dpforest.audit.sampling.trade_off import TradeOff, trade_off

__all__ = [
    "Betting",
    "EmpiricalAudit",
    "LikelihoodRatios",
    "TradeOff",
    "clopper_pearson",
    "empirical",
    "epsilon_lower",
    "likelihood_ratios",
    "p_value",
    "plot_ratios",
    "rho_lower",
    "rho_p_value",
    "trade_off",
]
