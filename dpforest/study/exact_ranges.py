"""What the exact rho of a bounded range would save a learner with a delta."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpforest.privacy import Ledger, rho_of_range

__all__ = ["exactly", "largest_range"]

_SELECTION = "exponential"


def _selections(ledger: Ledger) -> list:
    """The charges of selections, which are rhos."""
    if not ledger.delta:
        raise ValueError("this ledger has losses: a bounded range costs a rho where there is a delta")
    return [entry for entry in ledger._charges if entry.mechanism == _SELECTION and entry.scopes.size]


def largest_range(ledger: Ledger) -> float:
    """The largest bounded range that one selection was charged for, under the ledger's relation; 0 without one."""
    rhos = [float(entry.costs[ledger.relation].max()) for entry in _selections(ledger)]
    return float(np.sqrt(8 * max(rhos, default=0.0)))


def exactly(ledger: Ledger) -> Ledger:
    """The same ledger, with each selection charged the exact rho of its range in place of ``eta^2 / 8``."""
    chosen = set(map(id, _selections(ledger)))

    def cost(rhos: np.ndarray) -> np.ndarray:
        return np.array([rho_of_range(eta) for eta in np.sqrt(8 * rhos)])

    charges = [
        replace(entry, costs={relation: cost(rhos) for relation, rhos in entry.costs.items()})
        if id(entry) in chosen
        else entry
        for entry in ledger._charges
    ]
    return replace(ledger, _charges=charges)
