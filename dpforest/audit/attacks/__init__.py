"""Attacks on a released forest, and audits from one run."""

from dpforest.audit.attacks.adversaries import (
    best_advantage,
    best_guess,
    evidence,
    informed_adversary,
    informed_guess,
    membership_advantage,
    membership_attack,
)
from dpforest.audit.attacks.onerun import (
    OneRunAudit,
    one_run,
    one_run_bound,
    one_run_mu_bound,
    one_run_p_value,
    one_run_profile,
    one_run_rho_bound,
)
from dpforest.audit.attacks.reconstruction import marginal_draws, medoid, reconstruct, reconstruction_error

__all__ = [
    "OneRunAudit",
    "best_advantage",
    "best_guess",
    "evidence",
    "informed_adversary",
    "informed_guess",
    "marginal_draws",
    "medoid",
    "membership_advantage",
    "membership_attack",
    "one_run",
    "one_run_bound",
    "one_run_mu_bound",
    "one_run_p_value",
    "one_run_profile",
    "one_run_rho_bound",
    "reconstruct",
    "reconstruction_error",
]
