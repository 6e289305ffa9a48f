"""Mechanisms: each an exact law, and a vectorised draw through :mod:`dpforest.chance`.

Throughout, ``rate`` multiplies the scores: weights are ``exp(rate * score)``.  A selection whose scores have
*range* R between neighbours (the largest spread of score changes over the candidates) is ``rate * R``-private, so
it is calibrated by ``rate = epsilon / R`` (:prf:ref:`thm-selection-range`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from dpforest import arithmetic
from dpforest.chance import Chance
from dpforest.messages import shown
from dpforest.privacy import claim

__all__ = [
    "MEANS",
    "SELECTIONS",
    "discrete_gaussian",
    "discrete_gaussian_law",
    "exponential",
    "exponential_law",
    "laplace_density",
    "laplace_textbook",
    "mean_variance",
    "permute_and_flip",
    "permute_and_flip_law",
    "select",
    "two_sided_geometric",
    "two_sided_geometric_law",
]


_LARGE = 2.0**1000  # differences of smaller numbers are finite


@claim("def-exponential", "thm-selection-range", "thm-exponential-bounded-range", "lem-exponential-at")
def exponential_law(scores: ArrayLike, rate: ArrayLike) -> np.ndarray:
    """Output law of the exponential mechanism, weights ``exp(rate * score)``.

    Parameters
    ----------
    scores : array-like, shape (..., K)
        One score per candidate; ``-inf`` marks what is not a candidate.  Each row needs a finite score.
    rate : float or array-like broadcastable to ``scores.shape[:-1]``
        Non-negative; ``inf`` gives the uniform law over the best candidates.

    Returns
    -------
    ndarray, shape (..., K)
        Probabilities; rows sum to one.

    Guarantee
    ---------
    ``rate * R``-private, and ``rate * R`` bounded range, both relations: :prf:ref:`thm-selection-range`.

    Source
    ------
    McSherry and Talwar (2007); the eDPRF paper's definition 4.
    """
    weight = _acceptance(scores, rate)
    return weight / weight.sum(axis=-1, keepdims=True)


@claim(
    "alg-permute-and-flip",
    "thm-permute-and-flip",
    "thm-noisy-max",
    "thm-dominance",
    "thm-at-most-twice",
    "thm-permute-and-flip-tight",
    "cex-permute-and-flip-bounded-range",
    "pub-permute-and-flip",
    "pub-permute-and-flip-better",
)
def permute_and_flip_law(scores: ArrayLike, rate: ArrayLike) -> np.ndarray:
    """Output law of permute-and-flip, acceptance probabilities ``exp(rate * (score - best))``.

    Giving each candidate an independent uniform arrival time, ``P(r) = p_r * integral over [0, 1] of the product
    over s != r of (1 - p_s x)``.  The integrand is a polynomial of degree K - 1, so Gauss-Legendre with
    ``ceil(K / 2)`` nodes integrates it exactly, and all its terms are positive: nothing cancels.

    Parameters and returns are those of :func:`exponential_law`.

    Guarantee
    ---------
    ``rate * R``-private under both relations (:prf:ref:`thm-selection-range`), and no less at any score vector
    (:prf:ref:`thm-permute-and-flip-tight`).

    Source
    ------
    McKenna and Sheldon (2020), algorithm 1; the eDPRF paper's algorithm 1.
    """
    accept = _acceptance(scores, rate)
    law = np.zeros_like(accept)
    for x, weight in _gauss_legendre((accept.shape[-1] + 1) // 2):
        miss = 1 - accept * x  # positive, for the nodes lie inside (0, 1)
        law += weight * miss.prod(axis=-1, keepdims=True) / miss
    return law * accept


def exponential(scores: ArrayLike, rate: ArrayLike, chance: Chance) -> np.ndarray:
    """Draw one candidate per row of ``scores`` (m, K) by the exponential mechanism: :func:`exponential_law`."""
    return chance.select("exponential", exponential_law, *_rows(scores, rate))


def permute_and_flip(scores: ArrayLike, rate: ArrayLike, chance: Chance) -> np.ndarray:
    """Draw one candidate per row of ``scores`` (m, K) by permute-and-flip: :func:`permute_and_flip_law`."""
    return chance.select("permute-and-flip", permute_and_flip_law, *_rows(scores, rate))


#: The selection mechanisms by the name that estimators take.
SELECTIONS = {"exponential": exponential, "permute-and-flip": permute_and_flip}


def select(mechanism: str, scores: ArrayLike, rate: ArrayLike, chance: Chance) -> np.ndarray:
    """Draw by the mechanism of that name, one of ``SELECTIONS``."""
    if mechanism not in SELECTIONS:
        raise ValueError(f"selection must be one of {sorted(SELECTIONS)}, not {shown(mechanism)}")
    return SELECTIONS[mechanism](scores, rate, chance)


@claim("thm-geometric")
def two_sided_geometric_law(k: ArrayLike, rate: ArrayLike) -> np.ndarray:
    """Probability of the noise value ``k`` (any integers): ``(1 - a) / (1 + a) * a^|k|`` with ``a = exp(-rate)``."""
    rate = np.asarray(rate, dtype=float)
    return arithmetic.tanh(rate / 2) * arithmetic.exp(-rate * np.abs(np.asarray(k)))


@claim("thm-geometric", "pub-laplace-counts")
def two_sided_geometric(counts: ArrayLike, rate: ArrayLike, chance: Chance) -> np.ndarray:
    """Integer counts plus two-sided geometric noise, the discrete Laplace mechanism.

    Parameters
    ----------
    counts : array-like of int
    rate : float or array broadcastable to ``counts``
        ``epsilon / L1``, where L1 is the L1 sensitivity of ``counts``: 1 for a whole histogram under add-remove,
        2 under replace-one.  At least 1e-15, for fainter rates make noise that does not fit an integer; ``inf``
        turns the noise off.
    chance : Chance

    Returns
    -------
    ndarray of int64, same shape

    Guarantee
    ---------
    ``rate * L1``-private, sharp, with integers only, so free of floating-point leaks: :prf:ref:`thm-geometric`.

    Source
    ------
    Ghosh, Roughgarden and Sundararajan (2009); it takes the place of the papers' Laplace noise on counts.
    """
    return _with_noise(counts, rate, chance.two_sided_geometric, "geometric", 1e-15)


@claim("lem-discrete-gaussian")
def discrete_gaussian_law(k: ArrayLike, rate: float) -> np.ndarray:
    """Probability of the noise value ``k`` (any integers), in proportion to ``exp(-rate k^2)``, by adding up.

    ``rate`` is at least 1e-12: below it the weights that matter are too many to be added up.
    """
    if not rate >= 1e-12:
        raise ValueError(f"rate must be at least 1e-12, not {shown(rate)}")
    reach = int(np.ceil(np.sqrt(750 / rate)))  # beyond it the weights are no doubles
    weights = arithmetic.exp(-rate * np.arange(reach, 0.0, -1.0) ** 2)
    total = 1 + 2 * np.add.reduce(weights)
    return arithmetic.exp(-rate * np.asarray(k, dtype=float) ** 2) / total


@claim("thm-discrete-gaussian")
def discrete_gaussian(counts: ArrayLike, rate: ArrayLike, chance: Chance) -> np.ndarray:
    """Integer counts plus discrete Gaussian noise.

    Parameters
    ----------
    counts : array-like of int
    rate : float or array broadcastable to ``counts``
        ``1 / (2 sigma^2)``: ``rho / L2^2``, where L2 is the L2 sensitivity of ``counts``.  At least 1e-30; ``inf``
        turns the noise off.
    chance : Chance

    Returns
    -------
    ndarray of int64, same shape

    Guarantee
    ---------
    ``rate * L2^2``-zero-concentrated: :prf:ref:`thm-discrete-gaussian`.

    Source
    ------
    Canonne, Kamath and Steinke (2020), theorem 4.
    """
    return _with_noise(counts, rate, chance.discrete_gaussian, "Gaussian", 1e-30)


def _with_noise(
    counts: ArrayLike,
    rate: ArrayLike,
    draw: Callable[[np.ndarray, tuple[int, ...]], np.ndarray],
    kind: str,
    faintest: float,
) -> np.ndarray:
    """Integer counts plus noise of that kind, of a rate that is not too faint for an integer to hold it."""
    counts = np.asarray(counts)
    if counts.dtype.kind not in "iu":
        raise TypeError(f"{kind} noise is for integer counts; a real number would leak through its fraction")
    if counts.size and not -(1 << 62) < counts.min() <= counts.max() < 1 << 62:
        raise ValueError("counts must lie within 2^62, lest noise take them beyond an integer of 64 bits")
    rate = np.asarray(rate, dtype=float)
    if not (rate >= faintest).all():  # also refuses NaN, which a source would take for "no noise"
        raise ValueError(f"rate must be at least {faintest:g} and not NaN, got {rate.min()}: ask with a larger epsilon")
    return counts.astype(np.int64) + draw(rate, counts.shape)


def _cube(x: np.ndarray) -> np.ndarray:
    return x * x * x  # a power of three would be left to the processor's own function


#: Ways to release the mean of targets in [0, 1]: see :func:`mean_variance`.
MEANS = {
    "sum-count": lambda mu: 8 * (1 + mu**2),
    "best-split": lambda mu: 2 * _cube(1 + arithmetic.cbrt(mu) ** 2),
    "centred": lambda mu: 9 / 2 * (1 + (mu - 1 / 2) ** 2),
    "masses": lambda mu: 2 * (mu**2 + (1 - mu) ** 2),
    "public-size": lambda mu: np.full(np.shape(mu), 2.0),
}


@claim("thm-mean-variance")
def mean_variance(mu: ArrayLike, mechanism: str = "masses") -> np.ndarray:
    """Variance of a private mean of n targets in [0, 1], times ``n^2 epsilon^2``, to first order in 1/n.

    Parameters
    ----------
    mu : float or array-like
        The true mean, from 0 to 1; the variance depends on nothing else.
    mechanism : {"sum-count", "best-split", "centred", "masses", "public-size"}
        ``"sum-count"``: the sum of the targets and their number, with noise of scale ``2 / epsilon`` on each, as in
        DiffPETs.  ``"best-split"``: the same pair, epsilon divided between them as 1 to ``mu^(2/3)``, which takes the
        unknown mean: a benchmark.  ``"centred"``: the sum of the targets less 1/2, and the number, at
        ``1.5 / epsilon``.  ``"masses"``: the sums of the targets and of their distances from 1, at ``1 / epsilon``.
        ``"public-size"``: the sum alone, at ``1 / epsilon``, where n is public: a promise under replace-one, for one
        group that no record can leave.

    Returns
    -------
    ndarray, shape of ``mu``

    Notes
    -----
    The noise is Laplace noise, of variance ``2 scale^2``; on a grid of 240 steps two-sided geometric noise has the
    same but for a share of ``epsilon^2 / 691_200`` (:prf:ref:`thm-mean-variance`).
    """
    mu = np.asarray(mu, dtype=float)
    if mechanism not in MEANS:
        raise ValueError(f"mechanism must be one of {sorted(MEANS)}, not {shown(mechanism)}")
    if not ((mu >= 0) & (mu <= 1)).all():  # also refuses NaN
        raise ValueError(f"mu must lie in [0, 1], not {shown(mu)}")
    return MEANS[mechanism](mu)


@claim("def-laplace")
def laplace_density(x: ArrayLike, rate: float | np.ndarray) -> np.ndarray:
    """Density of Laplace noise at ``x``: ``rate / 2 * exp(-rate |x|)``; the ideal that the papers write down."""
    return rate / 2 * arithmetic.exp(-rate * np.abs(np.asarray(x, dtype=float)))


@claim("cex-float-laplace")
def laplace_textbook(counts: ArrayLike, rate: float, uniform: ArrayLike) -> np.ndarray:
    """The textbook inverse-CDF Laplace mechanism in doubles, kept only to show how it leaks.

    ``uniform`` holds numbers in (0, 1), one per count, so that the attack can be replayed.  The set of doubles
    that ``count + noise`` can reach depends on ``count``: an output can prove which one it was
    (:prf:ref:`cex-float-laplace`).  No learner uses it.
    """
    u = np.asarray(uniform, dtype=float) - 0.5
    return np.asarray(counts) - np.sign(u) * arithmetic.log1p(-2 * np.abs(u)) / rate


@cache
def _gauss_legendre(n: int) -> list[tuple[float, float]]:
    """Nodes and weights on [0, 1]: exact for polynomials of degree 2 n - 1."""
    nodes, weights = arithmetic.gauss_legendre(n)
    return list(zip(((nodes + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))


def _rows(scores: ArrayLike, rate: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 2:
        raise ValueError(f"scores must have shape (selections, candidates), not {scores.shape}")
    rate = np.broadcast_to(np.asarray(rate, dtype=float), (len(scores),))
    _best(scores, rate)  # a source that never sees the law must refuse the same scores and rates
    return scores, rate


def _best(scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Best score of each row, kept as a column; refuses scores and rates without a meaning."""
    best = scores.max(axis=-1, keepdims=True, initial=-np.inf)  # NaN where one of the scores is
    least = scores.min(initial=0.0, where=scores > -np.inf)
    # no comparison holds for NaN; where one fails, _check finds out why, or that nothing is wrong
    usual = least > -_LARGE and best.min(initial=0.0) > -_LARGE and best.max(initial=0.0) < _LARGE
    if not (usual and rate.min(initial=0.0) >= 0):
        _check(scores, rate, best)
    return best


def _check(scores: np.ndarray, rate: np.ndarray, best: np.ndarray) -> None:
    """Raise if the scores, with the best of each row, or the rates have no meaning."""
    if not (best < np.inf).all():
        raise ValueError("scores must be numbers below +inf (use -inf for what is not a candidate)")
    if not (rate >= 0).all():  # also refuses NaN
        raise ValueError(f"rate must not be negative or NaN, got {rate.min()}")
    if (best == -np.inf).any():
        raise ValueError("a selection without a candidate: every score is -inf")
    least = scores.min(axis=-1, keepdims=True, initial=np.inf, where=scores > -np.inf)
    with np.errstate(over="ignore"):
        if np.isinf(best - least).any():
            raise ValueError("scores must lie within 1.8e308 of each other: their differences are what counts")


def _acceptance(scores: ArrayLike, rate: ArrayLike) -> np.ndarray:
    """``exp(rate * (score - best))``, zero for what is not a candidate, and right at infinite rate."""
    scores = np.asarray(scores, dtype=float)
    rate = np.asarray(rate, dtype=float)[..., None]
    gap = scores - _best(scores, rate)
    with np.errstate(invalid="ignore"):  # 0 * -inf and inf * 0 are settled by the next two lines
        weight = arithmetic.exp(rate * gap)
    weight = np.where(gap == 0, 1.0, weight)
    return np.where(scores == -np.inf, 0.0, weight)
