"""The rho of known laws: Rényi divergences of what a learner with a delta releases, at whole orders.

At whole orders discrete Gaussian noise attains its rho (thm-discrete-gaussian), so that what is found there can be held
against what the ledger charges with nothing to spare.  Noise has infinitely many values, but its divergence is a closed
form where what lies beneath is known, and a sum over a grid where coins decide that are not released.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dpforest import arithmetic
from dpforest.audit.exact.laws import Shape
from dpforest.audit.exact.noisy import FAR
from dpforest.privacy import claim

__all__ = ["ORDERS", "largest_rho", "log_gaussian", "noise_moment", "rho_of_laws"]

#: Orders at which divergences are taken.  That of order 1 is Kullback and Leibler's, the limit of those above it.
ORDERS = (1, 2, 3, 4, 8, 16)

_FAINT = 0.2  # below this rate the sum of the weights is sqrt(pi / rate) but for a part of e^-49
_TIE = 1e-12  # what is larger by less is equal, and said of the smaller order
_CELLS = 1 << 22  # values of noise times mixtures that are added up


@claim("def-concentrated", "thm-discrete-gaussian")
def rho_of_laws(
    one: Mapping[Hashable, Any], other: Mapping[Hashable, Any], orders: Iterable[int] = ORDERS
) -> tuple[float, int, Hashable]:
    """The largest of ``D_a(one || other) / a`` over some orders: no smaller rho covers these two laws.

    Parameters
    ----------
    one, other : mapping from outputs to probabilities
        Or to :class:`~dpforest.audit.exact.laws.Shape`, where what is released holds noisy numbers.
    orders : iterable of int
        From 1 on.

    Returns
    -------
    rho : float
        Infinite where only the first law has an output.
    order : int
        Where it is met.
    output : hashable
        The one that adds most to the divergence.

    Raises
    ------
    ValueError
        If too many combinations of counts are hidden by coins.
    """
    outputs = [output for output, p in one.items() if _mass(p) > 0]
    if lost := [output for output in outputs if not _mass(other.get(output, 0.0)) > 0]:
        return math.inf, 1, max(lost, key=lambda output: _mass(one[output]))
    best: tuple[float, int, Hashable] = (-1.0, 1, outputs[0])
    for order in orders:
        terms = np.array([_term(one[output], other[output], order) for output in outputs])
        if order == 1:
            total = float(terms.sum())
        else:
            total = top = float(terms.max())
            if math.isfinite(top):
                total = (top + float(arithmetic.log(arithmetic.exp(terms - top).sum()))) / (order - 1)
        if total / order > best[0] * (1 + _TIE):
            best = max(total, 0.0) / order, order, outputs[int(terms.argmax())]
    return best


@claim("def-concentrated")
def largest_rho(p: np.ndarray, q: np.ndarray, orders: Iterable[int] = ORDERS) -> np.ndarray:
    """The largest of ``D_a / a`` over some orders, for each row of two arrays of logarithms of probabilities.

    Parameters
    ----------
    p, q : ndarray of float, shape (rows, outputs)
    orders : iterable of int

    Returns
    -------
    ndarray of float, shape (rows,)
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        possible = p > -np.inf
        gap = np.where(possible, p - q, 0.0)
        share = arithmetic.exp(p)
        best = np.maximum(np.where(possible, share * gap, 0.0).sum(axis=1), 0.0)
        for order in orders:
            if order > 1:
                terms = np.where(possible, p + (order - 1) * gap, -np.inf)
                top = terms.max(axis=1, keepdims=True)
                total = top[:, 0] + arithmetic.log(arithmetic.exp(terms - top).sum(axis=1))
                best = np.maximum(best, total / ((order - 1) * order))
        return np.where((possible & np.isneginf(q)).any(axis=1), np.inf, best)


@lru_cache(maxsize=1 << 14)
def noise_moment(shift: int, rate: float, its_rate: float, gaussian: bool, order: int) -> float:
    """Logarithm of ``sum_k P(k)^a Q(k)^(1 - a)`` for noise at ``rate``, and at ``its_rate`` around ``shift``.

    At order 1 it is the divergence itself.  Between Gaussian noise of one rate it is ``a (a - 1) rate shift^2``, at
    order 1 ``rate shift^2`` (:prf:ref:`thm-discrete-gaussian`); infinite where the sum is.
    """
    shift = abs(shift)
    if shift == 0 and rate == its_rate:
        return 0.0
    if math.isinf(its_rate):
        return math.inf
    if math.isinf(rate):  # a number without noise
        return -max(order - 1, 1) * float(_log_noise(np.array([shift]), its_rate, gaussian)[0])
    if gaussian and rate == its_rate:
        return max(order * (order - 1), 1) * rate * shift * shift
    left = order * rate - (order - 1) * its_rate  # how fast the terms fall off
    if not left > 0:
        return math.inf
    if gaussian:
        reach = math.ceil(math.sqrt(FAR / left) + (order - 1) * its_rate * shift / left)
    else:
        reach = math.ceil(FAR / left + order * shift)
    k = np.arange(-reach, shift + reach + 1)
    p, q = _log_noise(k, rate, gaussian), _log_noise(k - shift, its_rate, gaussian)
    return _moment(p, q, order)


def _mass(p: Any) -> float:
    return p.probability if isinstance(p, Shape) else float(p)


def _term(p: Any, q: Any, order: int) -> float:
    """What an output adds: the logarithm of ``P^a Q^(1 - a)``, at order 1 ``P ln(P / Q)``, over all values of noise."""
    own = float(arithmetic.log(_mass(p))), float(arithmetic.log(_mass(q)))
    if not isinstance(p, Shape):
        noise = 0.0
    elif len(p.counts) == len(q.counts) == 1 and p.rates.shape == q.rates.shape:
        cells = zip((p.counts[0] - q.counts[0]).tolist(), p.rates.tolist(), q.rates.tolist(), strict=True)
        noise = sum(noise_moment(int(shift), r, s, p.gaussian, order) for shift, r, s in cells)
    else:
        return _mixture_term(p, q, order)
    if order == 1:
        return _mass(p) * (own[0] - own[1] + noise)
    return order * own[0] - (order - 1) * own[1] + noise


def _mixture_term(p: Shape, q: Shape, order: int) -> float:
    """As :func:`_term`, where several counts may lie beneath the noise: added up over a grid."""
    if not np.array_equal(p.rates, q.rates):
        raise ValueError("the rates of the noise depend on coins and on records, which no lemma covers: sample it")
    every = np.concatenate([p.counts, q.counts])
    moving = np.flatnonzero((every != every[0]).any(axis=0))
    rates = p.rates[moving]
    axes = []
    for cell, rate in zip(moving, rates.tolist(), strict=True):
        low, high = int(every[:, cell].min()), int(every[:, cell].max())
        if math.isinf(rate):
            axes.append(np.arange(low, high + 1))
            continue
        reach = math.ceil(math.sqrt(FAR / rate) if p.gaussian else FAR / rate) + (order - 1) * (high - low)
        axes.append(np.arange(low - reach, high + reach + 1))
    if (size := math.prod(map(len, axes)) * len(every)) > _CELLS:
        raise ValueError(
            f"a forest hides {len(every)} combinations of counts, whose noise has {size:,} values to add up: fewer "
            "records, trees or leaves, a larger epsilon, or leave the exact layer out"
        )
    mine, theirs = (_log_mixture(axes, side.counts[:, moving], side.weights, rates, p.gaussian) for side in (p, q))
    return _moment(mine, theirs, order)


def _moment(p: np.ndarray, q: np.ndarray, order: int) -> float:
    """The logarithm of ``sum P^a Q^(1 - a)``, at order 1 ``sum P ln(P / Q)``, from logarithms."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        possible = p > -np.inf
        gap = np.where(possible, p - q, 0.0)
        if order == 1:
            return float(np.where(possible, arithmetic.exp(p) * gap, 0.0).sum())
        terms = np.where(possible, p + (order - 1) * gap, -np.inf)
        top = float(terms.max())
        return top if math.isinf(top) else top + float(arithmetic.log(arithmetic.exp(terms - top).sum()))


def _log_mixture(axes, centres, weights, rates, gaussian: bool) -> np.ndarray:
    """Logarithms of a mixture of counts with noise, over all combinations of values."""
    grown: Any = -np.inf
    for centre, weight in zip(centres.tolist(), weights.tolist(), strict=True):
        log: Any = np.array(float(arithmetic.log(weight)))
        for values, own, rate in zip(axes, centre, rates.tolist(), strict=True):
            log = log[..., None] + _log_noise(values - own, rate, gaussian)
        grown = arithmetic.logaddexp(grown, log)
    return np.ravel(grown)


def _log_noise(k: np.ndarray, rate: float, gaussian: bool) -> np.ndarray:
    """Log probability of the noise ``k``."""
    if math.isinf(rate):
        return np.where(k == 0, 0.0, -np.inf)
    if gaussian:
        return log_gaussian(k, np.array(rate))
    return float(arithmetic.log(arithmetic.tanh(rate / 2))) - rate * np.abs(k)


def log_gaussian(k: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Log probability of the discrete Gaussian noise ``k``, however faint its rate is; arrays of shapes that agree."""
    total = np.reshape([_log_total(each) for each in np.ravel(rate).tolist()], np.shape(rate))
    with np.errstate(invalid="ignore"):
        return np.where(k == 0, 0.0, -rate * np.asarray(k, dtype=float) ** 2) - total


@lru_cache(maxsize=1 << 10)
def _log_total(rate: float) -> float:
    """Logarithm of the sum of ``exp(-rate k^2)``."""
    if rate < _FAINT:
        return float(arithmetic.log(math.pi / rate)) / 2
    most = math.ceil(math.sqrt(FAR / rate))
    return float(arithmetic.log1p(2 * arithmetic.exp(-rate * np.arange(most, 0.0, -1.0) ** 2).sum()))
