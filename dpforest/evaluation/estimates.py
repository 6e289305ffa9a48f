"""Numbers computed from noisy counts, and how far off they may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpforest.arithmetic import exp
from dpforest.privacy import claim

__all__ = ["Estimate", "Ratio", "estimate", "noise_variance"]


@dataclass(frozen=True)
class Estimate:
    """A number, with an interval for what it would be on all people that the test rows stand for.

    Attributes
    ----------
    value : float
        NaN where the noise has left nothing to divide by.
    low, high : float
        The interval: of the noise, and of the chance by which these rows and no others were put aside.
    noise : float
        Half the width that the noise alone would make.
    """

    value: float
    low: float
    high: float
    noise: float

    def root(self) -> Estimate:
        """The square root of the number, with the roots of the interval's ends."""
        value, low, high = (math.sqrt(max(each, 0.0)) for each in (self.value, self.low, self.high))
        first, last = (math.sqrt(max(each, 0.0)) for each in (self.value - self.noise, self.value + self.noise))
        return Estimate(value, low, high, (last - first) / 2)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g}; noise alone ±{self.noise:.2g})"


def noise_variance(rate: float) -> float:
    """Variance of two-sided geometric noise at this rate; 0 for an infinite one."""
    if math.isinf(rate):
        return 0.0
    a = float(exp(-rate))
    return 2 * a / (1 - a) ** 2


class Ratio:
    """A measure that is one sum over the cells of a table over another, or the mean of such ratios of its columns.

    Parameters
    ----------
    top, bottom : array_like, shapes that broadcast to the table's
        What a record of each cell adds to either sum.
    of_columns : bool, default False
        Whether each column has a ratio of its own, and the measure is their mean.
    """

    def __init__(self, top: ArrayLike, bottom: ArrayLike = 1.0, of_columns: bool = False):
        self.top, self.bottom = np.asarray(top, dtype=float), np.asarray(bottom, dtype=float)
        self.axis = 0 if of_columns else None

    def __call__(self, counts: np.ndarray) -> float:
        """The measure of a table of counts; NaN where there is nothing to divide by."""
        return float(np.mean(_divided(*self._sums(counts))))

    def slopes(self, counts: np.ndarray, step: float) -> np.ndarray:
        """How much the measure changes with each cell: a central difference, shape of the table."""
        above, below = self._sums(counts)
        up = _divided(above + step * self.top, below + step * self.bottom)
        down = _divided(above - step * self.top, below - step * self.bottom)
        ratios = 1 if self.axis is None else counts.shape[1]
        return np.broadcast_to((up - down) / (2 * step * ratios), counts.shape)

    def _sums(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (counts * self.top).sum(axis=self.axis), (counts * self.bottom).sum(axis=self.axis)


def _divided(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """NaN where the noise has left nothing to divide by."""
    top, bottom = np.broadcast_arrays(top, bottom)
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)


def _slopes(measure: Callable[[np.ndarray], float], counts: np.ndarray, step: float) -> np.ndarray:
    if isinstance(measure, Ratio):
        return measure.slopes(counts, step)
    slopes = np.zeros(counts.shape)
    for place in np.ndindex(counts.shape):
        up, down = counts.copy(), counts.copy()
        up[place] += step
        down[place] -= step
        slopes[place] = (measure(up) - measure(down)) / (2 * step)
    return slopes


@claim("thm-private-test")
def estimate(
    measure: Callable[[np.ndarray], float],
    counts: np.ndarray,
    variance: float,
    quantile: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    design_effect: float = 1.0,
) -> Estimate:
    """A measure of the noisy counts, with its interval by the delta method.

    Parameters
    ----------
    measure : callable
        From counts to a number, nearly linear over the width of the noise; a :class:`Ratio` takes a pass or two over
        the table, anything else two for each of its cells.
    counts : ndarray of float
        Noisy.
    variance : float
        Of the noise of one count.
    quantile : float
        Of the normal law, two-sided.
    bounds : tuple of float
        What the measure cannot leave.
    design_effect : float
        By how much the rows' own variance is larger than that of independent rows.

    Notes
    -----
    A count varies with the rows by about its own size (Poisson), and by its noise; both are independent between
    counts, so the variance of a measure is the sum of theirs, each times the square of its slope.

    The interval has those numbers that the rows do not refute, each held to the variance that it would have itself (a
    score interval, such as Wilson's of a share): where few rows are wrong, a larger number of them would also vary
    more.  By how much, for each step of the measure, is a mean of the slopes, weighted by the squares times the counts.
    """
    value, low, high = measure(counts), *bounds
    if math.isnan(value):
        return Estimate(math.nan, low, high, math.inf)
    slopes = _slopes(measure, counts, max(1.0, math.sqrt(variance)))
    if not np.isfinite(slopes).all():  # too few rows for the noise
        return Estimate(min(max(value, low), high), low, high, math.inf)
    noise = variance * float((slopes**2).sum())
    # unbiased, for the noise of a count is 0 on average; and at least as if one row were spread over all cells
    weights = slopes**2 * counts
    if weights.sum() < (slopes**2).mean():
        weights = slopes**2 / slopes.size
    rows = design_effect * float(weights.sum())
    slope = float((weights * slopes).sum()) / float(weights.sum()) if rows else 0.0
    slope = design_effect * min(max(slope, float(slopes.min())), float(slopes.max()))  # noise may lead out of them
    # the ends d solve d^2 = quantile^2 (noise + rows + slope d); rounding must not part them from the value
    middle = quantile**2 * slope / 2
    width = math.sqrt(quantile**2 * (noise + rows) + middle**2)
    ends = (min(max(value + end, low), high) for end in (middle - width, middle + width))
    value = min(max(value, low), high)
    return Estimate(value, min(next(ends), value), max(next(ends), value), quantile * math.sqrt(noise))
