"""An individual filter: each record pays for its own contributions, and joins only rounds for which it can pay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpforest.curator.weights import FINEST, gradient_steps
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, claim
from dpforest.privacy.vocabulary import FILTERED

__all__ = ["FILTERED", "UNITS", "FilterLimits", "IndividualFilter"]

#: Units in which a record pays: the price of a round for a record that contributes as much as the limits allow.
UNITS = 1 << 20


@dataclass(frozen=True)
class FilterLimits:
    """Public parameters of an individual filter.

    Attributes
    ----------
    gradient, hessian : int
        Where a record's gradient and Hessian are clipped, in steps of ``1 / FINEST``.
    share : float
        Part of a round's rho that the Hessians have, between 0 and 1; the gradients have the rest.
    rounds : int
        Budget of each record: so many rounds for a record that contributes as much as the limits allow to each.
    rho : float
        What all rounds together cost; infinite for no noise.
    relation : {"add-remove", "replace-one"}
        Relation under which they cost ``rho``.
    quiet : float
        Factor of the standard deviation of the Hessians' noise: 1, or less as published, which costs more than ``rho``.
    n_rounds : int
        Rounds in all, on which the charge depends if ``quiet`` is below 1.
    """

    gradient: int
    hessian: int
    share: float
    rounds: int
    rho: float
    relation: str
    quiet: float = 1.0
    n_rounds: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.gradient <= FINEST and 0 < self.hessian <= FINEST and self.rounds >= 1):
            raise ValueError("a filter has clips above 0 and at most 1, and a round at least")
        if not (0 < self.share < 1 and self.rho > 0 and 0 < self.quiet <= 1):  # also refuses NaN
            raise ValueError(f"a filter has a share between 0 and 1 and a rho above 0, not {shown(self.share)}")

    @property
    @claim("lem-gradient-pairs")
    def rates(self) -> np.ndarray:
        """The rates of the noise of gradients and of Hessians, float64 of shape (2,)."""
        both = {ADD_REMOVE: (1.0, 1.0), REPLACE_ONE: (4.0, 2.0)}[self.relation]
        each = self.rho / self.rounds
        return np.array(
            [
                (1 - self.share) * each / both[0] / self.gradient**2,
                self.share * each / both[1] / self.hessian**2 / self.quiet**2,
            ]
        )

    @property
    @claim("thm-individual-filter")
    def charges(self) -> tuple[float, float]:
        """What all rounds together cost under add-remove, and under replace-one."""
        if self.relation == REPLACE_ONE:
            return self.rho / 2, self.rho
        # what the Hessians' noise lacks is paid by each round, and no unit of a filter costs more than 1 / quiet^2
        lacking = (1 / self.quiet**2 - 1) * self.share * max(self.n_rounds, self.rounds) / self.rounds
        cost = self.rho * min(1 + lacking, 1 / self.quiet**2)
        return cost, 4 * cost

    def fees(self, gradients: np.ndarray, hessians: np.ndarray) -> np.ndarray:
        """What records with these clipped contributions pay for a round, rounded up: int64, from 0 to ``UNITS``."""
        share = self.share
        part = (1 - share) * (gradients / self.gradient) ** 2 + share * (hessians / self.hessian) ** 2
        return np.minimum(np.ceil(part * UNITS), UNITS).astype(np.int64)


class IndividualFilter:
    """The state of an individual filter, as secret as the records: what each has paid, and contributes to this round.

    Parameters
    ----------
    limits : FilterLimits
    n_records : int

    Attributes
    ----------
    contributions : ndarray of int32, shape (2, n_records)
        Size of the clipped gradient and clipped Hessian of each record, 0 where it does not join.
    joined : ndarray of bool, shape (n_records,)
        Which records joined the last round.
    """

    def __init__(self, limits: FilterLimits, n_records: int) -> None:
        self.limits = limits
        self.contributions = np.zeros((2, n_records), dtype=np.int32)
        self.joined = np.zeros(n_records, dtype=bool)
        self._paid = np.zeros(n_records, dtype=np.int64)

    @claim("thm-individual-filter")
    def join(self, scores: np.ndarray, labels: np.ndarray) -> None:
        """Let each record that can pay for the round join it, given its scores (n_records, 2) by released trees."""
        # a gradient has size s = p or 1 - p, so the Hessian p (1 - p) is s (1 - s)
        sizes = gradient_steps(scores, labels, np.arange(2))[1].astype(np.int64)
        gradients = np.minimum(sizes, self.limits.gradient)
        hessians = np.minimum(sizes * (FINEST - sizes) // FINEST, self.limits.hessian)
        fees = self.limits.fees(gradients, hessians)
        self.joined = self._can_pay(self._paid, fees)
        self._paid[self.joined] += fees[self.joined]
        self.contributions = (np.stack([gradients, hessians]) * self.joined).astype(np.int32)

    def leave(self) -> None:
        """End the round: no record contributes until it joins, and pays, again."""
        self.contributions = np.zeros_like(self.contributions)

    def _can_pay(self, paid: np.ndarray, fees: np.ndarray) -> np.ndarray:
        """Which records can still pay ``fees``: tested before they contribute, so that none exceeds its budget."""
        return paid + fees <= self.limits.rounds * UNITS
