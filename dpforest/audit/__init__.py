"""The auditor: what a learner or a mechanism really loses.  Nothing in the library imports it.

One room for each way of looking: ``exact`` (whole laws, on small universes), ``grey`` (the accounts of a run, replayed
on a neighbour with its answers frozen), ``foreign`` (the same for code of other libraries), ``sampling`` (bounds and
likelihood ratios from draws, for anything), ``search`` (pairs of neighbours to look at), ``attacks`` (what an observer
can infer, and one-run audits), ``report`` (everything at once).
"""

import warnings
from typing import Any

from dpforest.audit.attacks import (
    OneRunAudit,
    best_advantage,
    best_guess,
    evidence,
    informed_adversary,
    informed_guess,
    marginal_draws,
    medoid,
    membership_advantage,
    membership_attack,
    one_run,
    one_run_bound,
    one_run_mu_bound,
    one_run_p_value,
    one_run_profile,
    one_run_rho_bound,
    reconstruct,
    reconstruction_error,
)
from dpforest.audit.exact import (
    ExactAudit,
    datasets,
    exact_audit,
    geometric_log_ratio,
    hockey_stick,
    law_of,
    law_of_shapes,
    least_epsilon,
    neighbours,
    path_audit,
    released,
)
from dpforest.audit.foreign import (
    CallAudit,
    CallFinding,
    NoiseCall,
    NoisedValue,
    NoiseSource,
    audit_calls,
    record_calls,
)
from dpforest.audit.grey import GreyBoxAudit, GreyBoxFinding, greybox
from dpforest.audit.report.fits import class_pair, fit_ratios, fits_of
from dpforest.audit.sampling import (
    Betting,
    EmpiricalAudit,
    LikelihoodRatios,
    TradeOff,
    clopper_pearson,
    empirical,
    epsilon_lower,
    likelihood_ratios,
    p_value,
    plot_ratios,
    rho_lower,
    rho_p_value,
    trade_off,
)
from dpforest.audit.search import Pair, climb, expected_bound, table_traps, traps
from dpforest.messages import shown

__all__ = [
    "Betting",
    "CallAudit",
    "CallFinding",
    "EmpiricalAudit",
    "ExactAudit",
    "GreyBoxAudit",
    "GreyBoxFinding",
    "LikelihoodRatios",
    "NoiseCall",
    "NoiseSource",
    "NoisedValue",
    "OneRunAudit",
    "Pair",
    "TradeOff",
    "audit_calls",
    "best_advantage",
    "best_guess",
    "class_pair",
    "climb",
    "clopper_pearson",
    "datasets",
    "empirical",
    "epsilon_lower",
    "evidence",
    "exact_audit",
    "expected_bound",
    "fit_ratios",
    "fits_of",
    "geometric_log_ratio",
    "greybox",
    "hockey_stick",
    "informed_adversary",
    "informed_guess",
    "law_of",
    "law_of_shapes",
    "least_epsilon",
    "likelihood_ratios",
    "marginal_draws",
    "medoid",
    "membership_advantage",
    "membership_attack",
    "neighbours",
    "one_run",
    "one_run_bound",
    "one_run_mu_bound",
    "one_run_p_value",
    "one_run_profile",
    "one_run_rho_bound",
    "p_value",
    "path_audit",
    "plot_ratios",
    "reconstruct",
    "reconstruction_error",
    "record_calls",
    "released",
    "rho_lower",
    "rho_p_value",
    "table_traps",
    "trade_off",
    "traps",
]


def __getattr__(name: str) -> Any:
    """Names of earlier versions, which warn."""
    if name == "Finding":
        warnings.warn("dpforest.audit.Finding is now GreyBoxFinding", DeprecationWarning, stacklevel=2)
        return GreyBoxFinding
    raise AttributeError(f"dpforest.audit has no attribute {shown(name)}")
