"""Noise of the released sums, and what is believed before any table is measured: of scores, of a mean, of a scale."""

from __future__ import annotations

import math

import numpy as np

from dpforest.arithmetic import exp, log, sinh
from dpforest.curator import FINE, GAP_SHARE
from dpforest.privacy import HISTOGRAM_SENSITIVITY, Ledger
from dpforest.schema import TARGET_LEVELS

__all__ = [
    "MEAN_PRIOR_VARIANCE",
    "PER_MINORITY",
    "PER_MINORITY_TRIAL",
    "RESIDUAL_SIZES",
    "clipping_scale",
    "count_noise",
    "effective_records",
    "noise_variance",
    "noise_variances",
    "perplexity",
    "prior_mean",
    "prior_scores",
    "shrunken_mean",
    "size_lower_bound",
    "weighted_mean",
]

#: Sizes of residuals, as shares of the target's range: each is two thirds of the next.
RESIDUAL_SIZES = np.array([(2 / 3) ** k for k in range(13, -1, -1)])
#: Variance of the prior of the mean of a target, in squares of its range; less than the uniform law's 1/12, for the
#: mean of many values is seldom at an end of the range.
MEAN_PRIOR_VARIANCE = 0.05
#: Share of the records that the scale at which residuals are clipped leaves as they are.
UNCLIPPED = 0.8


def noise_variance(epsilon: float, relation: str) -> float:
    """Variance of the noise of each sum of a table that is measured at ``epsilon``, a record counting for 1."""
    if math.isinf(epsilon):
        return 0.0
    half = sinh(epsilon / (2 * HISTOGRAM_SENSITIVITY[relation] * FINE))
    return 1 / (2 * half * half) / FINE**2


def noise_variances(budget: float, ledger: Ledger) -> tuple[float, float]:
    """Variances of the noise of the gap and of the size of a cell of a table that is measured at this budget.

    The gap is the difference of the two sums of a cell, the size is their sum; both variances are in records squared.
    ``budget`` is an epsilon, or a rho where the ledger has a delta.
    """
    if not ledger.delta:
        noise = noise_variance(budget, ledger.relation)
        return 2 * noise, 2 * noise
    rate, gap = budget / HISTOGRAM_SENSITIVITY[ledger.relation], GAP_SHARE[ledger.relation]
    return 1 / (2 * gap * rate), 1 / (2 * (1 - gap) * rate)


def count_noise(budget: float, ledger: Ledger, cost: float | None = None) -> float:
    """Standard deviation of the noise of a count at this budget, about.

    ``cost`` is that of a count at rate 1: None for that of a histogram.
    """
    if math.isinf(budget):
        return 0.0
    cost = HISTOGRAM_SENSITIVITY[ledger.relation] if cost is None else cost
    return math.sqrt(cost / (2 * budget)) if ledger.delta else math.sqrt(2) * cost / budget


def size_lower_bound(parts: np.ndarray, noise: float) -> float:
    """A cautious number of records, from noisy parts of standard deviation ``noise``: their sum less one of its own.

    Where the noise drowns the number, the rule had better take the records for few.
    """
    return float(parts.sum()) - math.sqrt(parts.size) * noise


#: Records of the largest class count for no more than so many of the others; and where the rule is for a trial.
PER_MINORITY = 8.0
PER_MINORITY_TRIAL = 2.0


def effective_records(n_rows: float, totals: np.ndarray, noise: float, most: float = PER_MINORITY) -> float:
    """How many records weigh in calibrated sums: where one class has nearly all, few of its records do.

    ``totals`` are noisy class totals (1, n_classes), ``noise`` the standard deviation of theirs: half of it is added,
    for too few rounds cost more than too many.  The largest class counts for no more than ``most`` of the others.
    """
    others = max(float(totals.sum() - totals.max()), 0.0) + noise / 2
    return max(min(n_rows, most * others), 1.0)


def weighted_mean(one: np.ndarray, noise: float, other: np.ndarray, less: float) -> tuple[np.ndarray, float]:
    """The mean of two noisy answers to one query, each weighted by what its noise allows, and its own noise.

    ``noise`` and ``less`` are standard deviations.
    """
    if not noise + less:
        return other, 0.0
    share = noise * noise / (noise * noise + less * less)
    return one + share * (other - one), less * math.sqrt(share)


def prior_scores(totals: np.ndarray, noise: float) -> np.ndarray:
    """The scores of a model without tables, from the noisy class totals (1, n_classes): logarithms of their shares.

    A standard deviation of their noise is added to each, at least half a record.
    """
    counts = np.maximum(totals, 0) + max(noise, 0.5)
    return log(counts / np.add.reduce(counts, axis=1)[:, None])


def perplexity(prior: np.ndarray) -> float:
    """How many equally frequent classes are as hard to guess as those of the log shares ``prior`` (1, n_classes)."""
    [shares] = exp(prior)
    return float(exp(-np.add.reduce(shares * prior[0])))


def prior_mean(masses: np.ndarray, noise: float) -> tuple[float, float]:
    """The mean of the target as a share of its range, from its noisy masses (1, 2), and the variance of its error.

    ``noise`` is the standard deviation of that of a mass, in records.
    """
    above, below = (np.maximum(masses[0], 0) / TARGET_LEVELS).tolist()
    size = max(above + below, noise, 0.5)
    at = (above + (size - above - below) / 2) / size
    return shrunken_mean(at, (noise / size) ** 2 * (at * at + (1 - at) * (1 - at)))


def shrunken_mean(at: float, variance: float) -> tuple[float, float]:
    """Posterior mean and variance of a mean that could be anywhere in the range, where it was found at ``at``.

    The prior's mean is the middle of the range, and its variance :data:`MEAN_PRIOR_VARIANCE`.
    """
    weight = MEAN_PRIOR_VARIANCE / (MEAN_PRIOR_VARIANCE + variance)
    return min(max(0.5 + weight * (at - 0.5), 0.0), 1.0), weight * variance


def clipping_scale(counts: np.ndarray, noise: float = 0.0) -> float:
    """The scale at which residuals are clipped: the first of ``RESIDUAL_SIZES`` to which ``UNCLIPPED`` records keep.

    ``counts`` are noisy numbers of records between the sizes.  A standard deviation of their noise is subtracted from
    each; otherwise the noise in counts of large residuals that no record has would set the scale.  Where no
    difference is positive, the scale is 1.
    """
    below = np.cumsum(np.maximum(counts - noise, 0.0))
    if below[-1] <= 0:
        return 1.0
    return float(RESIDUAL_SIZES[min(int(np.argmax(below >= UNCLIPPED * below[-1])), len(RESIDUAL_SIZES) - 1)])
