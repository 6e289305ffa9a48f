"""Noisy integers that have not been drawn, and what geometric noise adds to a loss.

Noise has infinitely many values, and replay cannot visit them.  Three uses of a noisy answer need no visit: one that
is released as it is, whose loss is known (lem-geometric-leaves; of Gaussian noise, whose divergence is, see
:mod:`~dpforest.audit.exact.divergence`); one that is compared with a number, which has two outcomes; and one of which
the largest entry alone is looked at, which has as many as there are entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dpforest import arithmetic
from dpforest.chance import NotEnumerableError, Replay
from dpforest.mechanisms import discrete_gaussian_law, two_sided_geometric_law
from dpforest.privacy import claim

__all__ = [
    "FAR",
    "NoiselessChance",
    "Noisy",
    "counts_and_rates",
    "geometric_log_ratio",
    "largest_law",
    "mixture_log_ratio",
]

_COMPARISONS = {
    np.greater_equal: (0, True),
    np.greater: (1, True),
    np.less: (0, False),
    np.less_equal: (1, False),
}
_TURNED = {np.greater_equal: np.less_equal, np.greater: np.less, np.less: np.greater, np.less_equal: np.greater_equal}

_CELLS = 1 << 22  # outputs times mixtures that are compared
FAR = 45.0  # e^-45 is below the rounding of a double


class NoiselessChance:
    """A source of chance that leaves noise out, and keeps its rates: what it adds to the loss is known.

    ``gaussian`` says whether it was discrete Gaussian noise; None before any was drawn.
    """

    def __init__(self):
        super().__init__()
        self.asked: list[np.ndarray] = []  # the rates of each draw, until they are read
        self.gaussian: bool | None = None

    def two_sided_geometric(self, rate, size):
        return self._left_out(rate, size, False)

    def discrete_gaussian(self, rate, size):
        return self._left_out(rate, size, True)

    def _left_out(self, rate, size, gaussian: bool):
        if self.gaussian not in (None, gaussian):
            raise NotEnumerableError("a run with noise of two kinds has a law that no lemma covers: sample it")
        self.gaussian = gaussian
        if np.isfinite(rate).any():
            self.asked.append(np.broadcast_to(np.asarray(rate, float), size))
        return np.zeros(size, dtype=np.int64)

    def settled(self) -> None:
        """Raise if noise was left out and its rates were not read: what was answered was exact."""
        if self.asked:
            self.asked.clear()
            raise NotEnumerableError("a query adds noise whose law no lemma covers: sample it, or use the grey box")


def counts_and_rates(chance: NoiselessChance, ask: Callable[[], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The exact counts beneath the noisy ones that ``ask()`` returns, and the rate that the noise of each is drawn at.

    It is the rate that reaches ``chance``, whatever was asked for and charged; counts that get no noise have an
    infinite one.
    """
    chance.settled()
    counts = ask()
    asked, chance.asked = chance.asked, []
    if len(asked) > 1:
        raise NotEnumerableError(
            f"the noise of {len(asked)} draws on the same counts has a law that no lemma covers: sample it"
        )
    return counts, asked[0] if asked else np.full(counts.shape, np.inf)


class Noisy(np.lib.mixins.NDArrayOperatorsMixin):
    """An answer with noise, in the course of a replay.

    Parameters
    ----------
    counts, rates : ndarray of one shape
        Exact, and the rate of the noise of each; infinite for none.
    chance : Replay
        Branches where the answer is compared, or its largest entries are taken; knows the kind of the noise.
    keep : callable
        Called as ``keep(counts, rates)`` with an answer that is used as a number.
    said : int
        The number that replaces the first entry of such an answer; twice that replaces the second, and so on.  If it
        is negative, the numbers are positive and in reverse order.  Unless it is 0, the entries differ, because a
        comparison of equal entries would not show that the learner uses them.
    """

    def __init__(self, counts, rates, chance: Replay, keep: Callable[[np.ndarray, np.ndarray], Any], said: int = 0):
        self.shape = counts.shape
        self._counts, self._rates, self._chance, self._keep, self._said = counts, rates, chance, keep, said
        self._use = ""

    def argmax(self, axis=None, out=None):
        """The place of the largest entry of each row, the first of them in a tie."""
        if len(self.shape) != 2 or axis not in (1, -1) or out is not None:
            return np.asarray(self).argmax(axis)
        self._used_for("its largest entries")
        kind = self._gaussian()
        rows = zip(self._counts.tolist(), self._rates.tolist(), strict=True)
        laws = [_known_law(*map(tuple, row), kind) for row in rows]
        return np.array([self._chance._choose(law) for law in laws], dtype=np.int64)

    def __array__(self, dtype=None, copy=None):
        if self._use != "a number":
            self._used_for("a number")
            self._keep(self._counts, self._rates)
        said = abs(self._said) * np.arange(1, self._counts.size + 1)[:: -1 if self._said < 0 else 1]
        return said.reshape(self.shape).astype(dtype or np.int64)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if ufunc in _COMPARISONS and method == "__call__" and not options:
            one, other = inputs
            if one is not self:
                ufunc, other = _TURNED[ufunc], one
            if not isinstance(other, Noisy):
                return self._compare(ufunc, other)
        plain = [np.asarray(value) if isinstance(value, Noisy) else value for value in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __getitem__(self, at):
        return np.asarray(self)[at]

    def __len__(self):
        return self.shape[0]

    def _compare(self, ufunc, threshold) -> np.ndarray:
        self._used_for("a comparison")
        more, above = _COMPARISONS[ufunc]
        gap = np.broadcast_to(np.asarray(threshold, dtype=float), self.shape) - self._counts
        least = np.floor(gap) + 1 if more else np.ceil(gap)  # the least noise that takes the answer there
        # P(noise < k) is P(noise >= 1 - k): both sides are as exact as doubles allow
        tail = _gaussian_tail if self._gaussian() else _tail
        laws = [
            [tail(1 - k, r), tail(k, r)]
            for k, r in zip(least.ravel().tolist(), self._rates.ravel().tolist(), strict=True)
        ]
        said = [self._chance._choose(law) for law in laws]
        return (np.array(said, dtype=bool) == above).reshape(self.shape)

    def _gaussian(self) -> bool:
        return bool(getattr(self._chance, "gaussian", False))

    def _used_for(self, use: str) -> None:
        if self._use:
            raise NotEnumerableError(
                f"a noisy answer is used for {self._use} and again for {use}, which no lemma covers: sample it"
            )
        self._use = use


@lru_cache(maxsize=1 << 16)
def _tail(least: float, rate: float) -> float:
    """Probability that geometric noise is ``least`` or more."""
    if math.isinf(rate) or math.isinf(least):
        return float(least <= 0)
    a = arithmetic.exp(-rate)
    return arithmetic.exp(-rate * least) / (1 + a) if least > 0 else 1 - arithmetic.exp(-rate * (1 - least)) / (1 + a)


@lru_cache(maxsize=1 << 16)
def _gaussian_tail(least: float, rate: float) -> float:
    """Probability that discrete Gaussian noise is ``least`` or more."""
    if math.isinf(rate) or math.isinf(least):
        return float(least <= 0)
    if least <= 0:
        return 1 - _gaussian_tail(1 - least, rate)
    return float(np.add.reduce(discrete_gaussian_law(np.arange(least + _reach(rate), least - 1, -1), rate)))


def _reach(rate: float) -> int:
    """How far discrete Gaussian noise is summed: the probability beyond is below the rounding of that sum."""
    return math.ceil(math.sqrt(FAR / rate))


def largest_law(counts: np.ndarray, rates: np.ndarray, gaussian: bool = False) -> np.ndarray:
    """Probability that each of several noisy counts is the largest, the first of them in a tie; up to rounding."""
    noisy = rates[np.isfinite(rates)]
    reach = 0
    if len(noisy):
        reach = _reach(noisy.min()) if gaussian else math.ceil(FAR / noisy.min())
    values = np.arange(counts.min() - reach, counts.max() + reach + 1)
    own, below = np.empty((2, len(counts), len(values)))
    for at, (count, rate) in enumerate(zip(counts, rates, strict=True)):
        if math.isinf(rate):
            own[at], below[at] = values == count, values > count
            continue
        k = values - count
        if gaussian:
            own[at] = discrete_gaussian_law(k, rate)
            below[at] = np.cumsum(own[at]) - own[at]
            continue
        own[at] = two_sided_geometric_law(k, rate)
        # noise below k: all of it, less what is k or more
        tail = arithmetic.exp(-rate * np.abs(np.where(k > 0, k, 1 - k))) / (1 + arithmetic.exp(-rate))
        below[at] = np.where(k > 0, 1 - tail, tail)
    law = np.array(
        [
            (own[at] * below[:at].prod(axis=0) * (below[at + 1 :] + own[at + 1 :]).prod(axis=0)).sum()
            for at in range(len(counts))
        ]
    )
    return law / law.sum()


@lru_cache(maxsize=1 << 12)
def _known_law(counts: tuple[int, ...], rates: tuple[float, ...], gaussian: bool) -> list[float]:
    return largest_law(np.array(counts), np.array(rates), gaussian).tolist()


@claim("lem-geometric-leaves")
def geometric_log_ratio(shift, rate, other) -> np.ndarray:
    """Largest log ratio of two-sided geometric noise at ``rate`` to the same at rate ``other``, ``shift`` apart.

    ``rate * shift`` where the rates agree; infinite where the first has the heavier tail.  An infinite rate is no
    noise.

    Guarantee
    ---------
    Sharp: :prf:ref:`lem-geometric-leaves`.
    """
    shift, rate, other = np.abs(np.asarray(shift, float)), np.asarray(rate, float), np.asarray(other, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        equal = np.where(shift == 0, 0.0, rate * shift)
        if np.array_equal(rate, other):  # nearly always
            return equal
        lighter = arithmetic.log(arithmetic.tanh(rate / 2) / arithmetic.tanh(other / 2)) + other * shift
    return np.where(rate == other, equal, np.where(rate < other, np.inf, lighter))


def mixture_log_ratio(counts, weights, others, other_weights, rates) -> float:
    """Largest log ratio, over all integers, of two mixtures of counts with two-sided geometric noise.

    Parameters
    ----------
    counts, others : ndarray of int, shapes (m, cells) and (n, cells)
        The counts that may lie beneath the noise, on either side.
    weights, other_weights : ndarray of float, shapes (m,) and (n,)
        Their probabilities.
    rates : ndarray of float, shape (cells,)
        Of the noise of each cell, the same on both sides; infinite for none.

    Returns
    -------
    float
        Exact up to rounding.  Between two neighbouring counts of a cell both mixtures have the form
        ``a e^(rate x) + b e^(-rate x)`` in its value x, so their ratio is monotone in x; beyond all counts it is
        constant.  Hence some combination of counts attains the maximum, and those are looked at.
    """
    every = np.concatenate([counts, others])
    moving = np.flatnonzero((every != every[0]).any(axis=0))
    if not len(moving):
        return float(arithmetic.log(weights.sum() / other_weights.sum()))
    values = [np.unique(every[:, cell]) for cell in moving]
    if (size := math.prod(map(len, values)) * len(every)) > _CELLS:
        raise ValueError(
            f"a forest hides {len(every)} combinations of counts, which take {size:,} comparisons: fewer records, "
            "trees or leaves, or leave the exact layer out"
        )
    grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(moving))
    logs = [
        _log_mixture(grid, side[:, moving], probability, rates[moving])
        for side, probability in ((counts, weights), (others, other_weights))
    ]
    met = logs[0] > -np.inf
    return float((logs[0] - logs[1])[met].max())


def _log_mixture(grid, centres, weights, rates) -> np.ndarray:
    away = np.abs(grid[:, None] - centres).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        exponent = arithmetic.log(weights) - np.where(away == 0, 0.0, rates * away).sum(axis=2)
    top = exponent.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # where nothing is possible
        total = arithmetic.exp(exponent - top).sum(axis=1)
    return np.where(np.isneginf(top[:, 0]), -np.inf, top[:, 0] + arithmetic.log(total))
