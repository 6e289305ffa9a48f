"""Gaussian noise, exactly: what its mu is in epsilon and delta."""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.special import log_ndtr

from dpforest.arithmetic import exp, last_where

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_mu"]

_HALVINGS = 60  # of the interval in which a parameter lies
_MOST_MU = 1000.0


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta at which noise of this mu is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        At least 0.
    mu : float
        Above 0: the sensitivity over the standard deviation of the noise.

    Source
    ------
    Dong, Roth and Su (2022), corollary 2.13: ``F(mu / 2 - epsilon / mu) - e^epsilon F(-mu / 2 - epsilon / mu)``, F
    being the normal law.
    """
    shift = epsilon / mu
    return float(exp(log_ndtr(mu / 2 - shift)) - exp(epsilon + log_ndtr(-mu / 2 - shift)))


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu of which Gaussian differential privacy is (epsilon, delta)-differential privacy, to nine digits.

    At most 1000, and infinite for an infinite epsilon.  Noise of standard deviation ``s`` on a sum of sensitivity 1
    costs a mu of ``1 / s``, and the squares of mus add up.

    Source
    ------
    Dong, Roth and Su (2022), corollary 2.13.
    """
    if math.isinf(epsilon):
        return epsilon
    mu, _ = last_where(lambda mu: gaussian_delta(epsilon, mu) <= delta, 0.0, _MOST_MU, _HALVINGS)
    return float(f"{mu:.9g}")  # the last digits depend on the C library


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon at this delta of noise of this mu, from above; infinite without a delta."""
    if mu == 0 or math.isinf(mu) or delta == 0:
        return math.inf if mu else 0.0
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(high, mu) > delta:
        low, high = high, 2 * high
    _, epsilon = last_where(lambda epsilon: gaussian_delta(epsilon, mu) > delta, low, high, _HALVINGS)
    return epsilon
