"""Zero-concentrated differential privacy: what it says in epsilon and delta."""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Real

import numpy as np

from dpforest.arithmetic import exp, expm1, last_where, log, log1p
from dpforest.messages import shown
from dpforest.privacy.vocabulary import claim

__all__ = ["best_order", "check_delta", "epsilon_of", "in_charges", "rho_of", "rho_of_range"]

MOST_DELTA = 0.01  # above it, "with probability delta all records are published" keeps the promise
_LEAST_DELTA = 1e-300
_GRID = np.linspace(-1, 1, 161)  # of orders
_ROUNDS = 3  # in which it is made finer
_HALVINGS = 50  # of the interval in which rho lies
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_UP = 1 + 1e-13  # more than the rounding of a few doubles


def check_delta(delta: object, name: str = "delta") -> float:
    """A privacy parameter delta as a float: 0 for none, or from 1e-300 to 0.01."""
    if not isinstance(delta, Real) or isinstance(delta, bool):
        raise TypeError(f"{name} must be a number, not {type(delta).__name__}")
    try:
        number = float(delta)
    except OverflowError:  # an int or a fraction beyond the largest double
        number = math.inf
    if number == 0:
        return 0.0
    if not _LEAST_DELTA <= number <= MOST_DELTA:  # also refuses NaN
        raise ValueError(
            f"{name} must be 0, or at most {MOST_DELTA:g} and well below one over the number of "
            f"records, not {shown(delta)}"
        )
    return number


@claim("lem-concentrated-conversion")
def epsilon_of(rho: float, delta: float) -> float:
    """The epsilon of which rho-zero-concentrated differential privacy assures (epsilon, delta)-differential privacy.

    Parameters
    ----------
    rho : float
        At least 0; ``inf`` for no noise.
    delta : float
        Above 0 and below 1.

    Notes
    -----
    The least over orders a of ``a rho + ln(1 - 1/a) - (ln(delta) + ln(a)) / (a - 1)``, at least 0.  Each order bounds,
    so that it does not matter how near the search comes to the best one; the terms are doubles, each right to its last
    digits.

    Source
    ------
    Canonne, Kamath and Steinke (2020), proposition 12 with corollary 13.
    """
    if not (rho >= 0 and 0 < delta < 1):  # also refuses NaN
        raise ValueError(f"rho must be at least 0 and delta lie between 0 and 1, not {shown(rho)} and {shown(delta)}")
    if rho == 0 or math.isinf(rho):
        return rho
    return max(_least(rho, delta)[1], 0.0)


def best_order(rho: float, delta: float) -> float:
    """The order whose bound :func:`epsilon_of` takes, less 1, for a rho above 0 that is finite."""
    return _least(rho, delta)[0]


def _least(rho: float, delta: float) -> tuple[float, float]:
    """The best order, less 1, and what it bounds epsilon by."""
    middle, room = 0.0, 60.0
    for _ in range(_ROUNDS):
        excess = middle + room * _GRID  # of the order over 1, its logarithm
        above = exp(excess)
        # ln(1 - 1/a) and ln(a) without a difference of large numbers
        bounds = (1 + above) * rho - log1p(exp(-excess)) - (log(delta) + log1p(above)) / above
        best = int(np.argmin(bounds))
        middle, room = float(excess[best]), 2 * room / len(_GRID)
    return float(above[best]), float(bounds[best])


def in_charges(epsilon: float, delta: float) -> float:
    """What there is to spend, in the unit of the charges: epsilon, or with a delta the rho that assures it."""
    return rho_of(epsilon, delta) if delta else epsilon


@claim("lem-concentrated-conversion")
@lru_cache(maxsize=256)
def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho, within rounding, of which :func:`epsilon_of` is at most ``epsilon``.

    Parameters
    ----------
    epsilon : float
        Above 0; ``inf`` for no noise.
    delta : float
        Above 0 and below 1.
    """
    if not (epsilon > 0 and 0 < delta < 1):  # also refuses NaN
        raise ValueError(
            f"epsilon must be above 0 and delta lie between 0 and 1, not {shown(epsilon)} and {shown(delta)}"
        )
    if math.isinf(epsilon):
        return epsilon
    low = epsilon
    while epsilon_of(low, delta) > epsilon:
        low /= 2
    high = 2 * low
    while epsilon_of(high, delta) <= epsilon:
        low, high = high, 2 * high
    rho, _ = last_where(lambda rho: epsilon_of(rho, delta) <= epsilon, low, high, _HALVINGS)
    return rho


@claim("lem-range-exact")
def rho_of_range(eta: float) -> float:
    """The least rho of which every mechanism of this bounded range is zero-concentrated.

    Parameters
    ----------
    eta : float
        At least 0: the length of an interval in which the logarithms of all quotients of a pair of neighbours lie.

    Returns
    -------
    float
        ``x - 1 - ln(x)`` with ``x = eta / (e^eta - 1)``: below ``eta^2 / 8``, by a share of ``eta^2 / 72`` where eta is
        small.  No less than that number, and more by one part in 10^12 at most.

    Guarantee
    ---------
    :prf:ref:`lem-range-exact`.  The learners charge ``eta^2 / 8``, which is larger by a share that makes no difference.

    Source
    ------
    Harrison and Manurangsi (2026) state the number; the proof is the book's.
    """
    if not eta >= 0:  # also refuses NaN
        raise ValueError(f"eta must be at least 0, not {shown(eta)}")
    if eta <= 1:  # the terms of the number cancel each other: by its series, of which the rest is below the last digit
        terms = [b * (n + 1) / (n * math.factorial(n)) for n, b in zip(range(2, 22, 2), _BERNOULLI, strict=True)]
        series = 0.0
        for term in reversed(terms):
            series = series * eta**2 + term
        return _UP * eta**2 * series
    if math.isinf(eta):
        return eta
    inverse = exp(-eta)
    return float(_UP * (eta * inverse / -expm1(-eta) - 1 - log(eta) + eta + log1p(-inverse)))
