"""Empirical Bayes: how far noisy weighted counts say that a score is off, from released numbers alone.

A cell has a noisy gap D between two sides and a curvature H.  If the score of the cell is off by f, the gap is about
``H f``, with a known variance V.  The prior of the f of all cells is Gaussian, with a covariance that falls with the
distance of two cells, of a scale and a length that are not known: each pair of them has its evidence, and the answer
is the mean of the posterior means, weighted by it.

All of it is post-processing, and its last bits reach a released vote: so it takes fixed operations alone, one after
the other, and the functions of ``dpforest.arithmetic``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from dpforest.arithmetic import exp, log, matmul
from dpforest.privacy import claim

__all__ = [
    "VARIANCES",
    "artanh_step",
    "chain_posterior",
    "correlations",
    "evidence_mean",
    "gradient_steps",
    "newton_step",
    "posterior_mean",
    "residual_shift",
    "residual_step",
    "stands_out",
    "table_posterior",
]

#: Prior variances of f that have their evidence; 0 is "nothing is off".
VARIANCES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
#: Lengths over which neighbouring codes of a numeric feature are alike, as shares of their number.
CHAIN_LENGTHS = (1 / 16, 1 / 5, 1.0)
#: The same for the groups of a crossed table, as shares of each feature's groups; a further prior has independent
#: cells.
TABLE_LENGTHS = (0.3, 1.0)


def newton_step(sums: np.ndarray, noise: tuple[float, float], **prior: Any) -> np.ndarray:
    """The step of the score of each cell, from the noisy weights of its two sides.

    Parameters
    ----------
    sums : ndarray of float64, shape (n_cells, 2)
        Released weights of the others, and of the target.
    noise : tuple of two floats
        Variances of the noise of the gap of a cell, and of its size.
    **prior
        What :func:`posterior_mean` asks of the cells: ``shape``, ``ordered``, ``chain``, ``penalty``.

    Returns
    -------
    ndarray of float64, shape (n_cells,)

    Notes
    -----
    Where both sides weigh a and b together, a score that is off by f makes a gap of about ``f (a + b) / 2``, for the
    heavier side weighs like the other one times e to the f.  What a + b is, is noisy too: below half a standard
    deviation it is taken for nothing.
    """
    gap, size = _gap_and_size(sums, noise[1])
    variance = noise[0] + size  # of the noise, and of the gap that so many records have by chance
    return posterior_mean(gap, size / 2, np.where(variance > 0, variance, 1.0), **prior)


def _gap_and_size(sums: np.ndarray, size_variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Difference and sum of the two sides of each cell; a sum below half a standard deviation of its noise is 0."""
    gap, size = sums[:, 1] - sums[:, 0], sums[:, 1] + sums[:, 0]
    return gap, np.where(size < 0.5 * sqrt(size_variance), 0.0, np.maximum(size, 0.0))


def stands_out(sums: np.ndarray, noise: float, evidence: float) -> bool:
    """Whether the gaps of a table's cells are larger than noise makes them, by so many standard deviations.

    Parameters
    ----------
    sums : ndarray of float64, shape (n_cells, 2)
        Released weights of the others, and of the target.
    noise : float
        Variance of the noise of the gap of a cell.
    evidence : float
        Number of standard deviations by which the sum of squared gaps must exceed its mean under noise alone.

    Returns
    -------
    bool

    Notes
    -----
    A gap is noisy by the difference of two nearly Laplacian numbers, whose square over its mean has the variance 7/2.
    """
    gap, n_cells = sums[:, 1] - sums[:, 0], len(sums)
    return bool(np.add.reduce(gap * gap) > noise * (n_cells + evidence * sqrt(3.5 * n_cells)))


#: No step of a class's score is longer: the odds of a class change by e^3, twentyfold, at most.
LONGEST = 3.0


def gradient_steps(sums: np.ndarray, noise: np.ndarray, **prior: Any) -> np.ndarray:
    """The steps of the scores of all classes in each cell, from noisy gradients of the log loss.

    Parameters
    ----------
    sums : ndarray of float64, shape (n_cells, n_classes, 2)
        Released weights against each class, and for it.
    noise : ndarray of float64, shape (n_classes, 2)
        Variances of the noise of the gap of a cell, and of its size.
    **prior
        As of :func:`newton_step`.

    Returns
    -------
    ndarray of float64, shape (n_cells, n_classes)

    Notes
    -----
    Where the scores are calibrated both weights of class k are the sum of ``p_k (1 - p_k)`` over the records: that is
    the curvature of the log loss, and the variance of the gap.  All classes move at once, and what one loses another
    gains: of n classes each goes ``(n - 1) / n`` of its own Newton step.
    """
    n_classes = sums.shape[1]
    steps = np.empty(sums.shape[:2])
    for k in range(n_classes):
        gap, size = _gap_and_size(sums[:, k], noise[k, 1])
        variance = noise[k, 0] + size / 2
        steps[:, k] = posterior_mean(gap, size / 2, np.where(variance > 0, variance, 1.0), **prior)
    return np.clip((n_classes - 1) / n_classes * steps, -LONGEST, LONGEST)


#: Of the largest gap that a cell may have; what is nearer to it is noise, and its step would have no bound.  That of
#: this share is 2 artanh(0.9), which is 2.9.
WIDEST = 0.9


def artanh_step(steps: np.ndarray) -> np.ndarray:
    """The steps that make gaps as large as these say to first order: ``D = S tanh(f / 2)`` solved for f.

    Parameters and returns are of float64, shape (n_cells,); a step of r means a gap ``D = S r / 2``.
    """
    part = np.clip(steps / 2, -WIDEST, WIDEST)
    return log((1 + part) / (1 - part))


#: Share of the residuals that are clipped, and so do not follow when all of a cell are moved; and about the mean square
#: of one that is clipped at the quantile of 80 %, in units of the scale.
CLIPPED, SQUARE = 0.2, 0.5


def residual_step(sums: np.ndarray, noise: tuple[float, float], **prior: Any) -> np.ndarray:
    """The step of the prediction of each cell, in units of the scale at which residuals are clipped.

    Parameters and returns are those of :func:`newton_step`; the sums are the weights below and above.

    Notes
    -----
    The gap is the sum of the clipped residuals, the sum of both the number of records.  No step is longer than the
    scale, for no clipped residual is: what says so is noise.
    """
    gap, size = _gap_and_size(sums, noise[1])
    variance = noise[0] + SQUARE * size
    mean = posterior_mean(gap, (1 - CLIPPED) * size, np.where(variance > 0, variance, 1.0), **prior)
    return np.clip(mean, -1.0, 1.0)


def residual_shift(sums: np.ndarray, noise: tuple[float, float], prior: float) -> np.ndarray:
    """The step of the only cell of a table, as :func:`residual_step`, under one prior ``N(0, prior)``."""
    gap, size = sums[:, 1] - sums[:, 0], np.maximum(sums[:, 1] + sums[:, 0], 0.0)
    curvature, variance = (1 - CLIPPED) * size, noise[0] + SQUARE * size
    total = prior * curvature * curvature + variance
    return np.clip(prior * curvature * gap / np.where(total > 0, total, 1.0), -1.0, 1.0)


@claim("lem-empirical-bayes")
def posterior_mean(
    gap: np.ndarray,
    curvature: np.ndarray,
    variance: np.ndarray,
    shape: Sequence[int],
    ordered: bool,
    chain: int = 0,
    penalty: float = 0.0,
) -> np.ndarray:
    """Posterior mean of what the score is off by, averaged over the priors by their evidence.

    Parameters
    ----------
    gap, curvature, variance : ndarray of float64, shape (n_cells,)
        D, H and V of each cell: ``D ~ N(H f, V)``; V above 0.
    shape : sequence of int
        Groups of each feature; one entry for a table of one feature.
    ordered : bool
        Of a table of one feature, whether its codes have an order.  The groups of a crossed table always have one.
    chain : int
        How many of the codes of one feature are ordered, the first ones; the others, such as the code of missing
        values, are unlike any other.  0 for all of them.
    penalty : float
        The log prior of a prior variance t is ``-penalty n_cells t``.

    Returns
    -------
    ndarray of float64, shape (n_cells,)
    """
    if len(shape) > 1:
        means, evidence = table_posterior(gap, curvature, variance, shape)
    else:
        means, evidence = chain_posterior(gap, curvature, variance, correlations(shape[0], ordered, chain))
    variances = np.tile(VARIANCES, len(evidence) // len(VARIANCES))
    return evidence_mean(means, evidence - penalty * len(gap) * variances)


def correlations(n: int, ordered: bool, chain: int = 0) -> np.ndarray:
    """Correlation of each code with the next one, under each length: float64, shape (n_lengths, n - 1)."""
    if not ordered:
        return np.zeros((1, n - 1))
    ends = chain or n
    found = np.zeros((len(CHAIN_LENGTHS), n - 1))
    for row, length in enumerate(CHAIN_LENGTHS):
        found[row, : max(ends - 1, 0)] = exp(-1 / (length * ends))
    return found


def chain_posterior(
    gap: np.ndarray, curvature: np.ndarray, variance: np.ndarray, correlation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means under chains, in which a cell is like the next one: a Kalman filter and its smoother.

    Parameters
    ----------
    correlation : ndarray of float64, shape (n_lengths, n_cells - 1)
        Of each cell with the next; cells that are further apart have the product of what lies between.

    Returns
    -------
    means : ndarray of float64, shape (n_priors, n_cells)
        One prior for each length and each of ``VARIANCES``, the variances running faster.
    evidence : ndarray of float64, shape (n_priors,)
        Log density of the gaps, up to a common constant.
    """
    n, priors = len(gap), len(correlation) * len(VARIANCES)
    prior = np.tile(VARIANCES, len(correlation))
    phi = np.repeat(correlation, len(VARIANCES), axis=0).T
    mean, spread = np.zeros(priors), prior.copy()  # of the cell, given the gaps so far
    means, spreads, ahead, room = (np.empty((n, priors)) for _ in range(4))
    total, misfit = np.empty((n, priors)), np.zeros(priors)
    for i in range(n):  # forward: the filter
        if i:  # predict: a cell is phi times the one before, and what that leaves of the prior variance is new
            mean, spread = phi[i - 1] * mean, phi[i - 1] * phi[i - 1] * spread + prior * (1 - phi[i - 1] * phi[i - 1])
        ahead[i], room[i] = mean, spread
        total[i] = curvature[i] * curvature[i] * spread + variance[i]  # variance of the gap that is expected
        surprise = gap[i] - curvature[i] * mean
        misfit = misfit + surprise * surprise / total[i]
        # update: by how much the gap is other than expected
        mean = mean + spread * curvature[i] / total[i] * surprise
        spread = spread * (variance[i] / total[i])
        means[i], spreads[i] = mean, spread
    for i in range(n - 2, -1, -1):  # backward: the smoother
        uncertain = room[i + 1] > 0  # not under the prior of variance 0
        gain = np.where(uncertain, phi[i] * spreads[i] / np.where(uncertain, room[i + 1], 1.0), 0.0)
        means[i] = means[i] + gain * (means[i + 1] - ahead[i + 1])
    return means.T, -0.5 * (misfit + np.add.reduce(log(total), axis=0))


def table_posterior(
    gap: np.ndarray, curvature: np.ndarray, variance: np.ndarray, shape: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means under products of chains, one for each feature, and under cells that are unlike each other.

    The returned arrays are those of :func:`chain_posterior`: first the prior of unlike cells, then the products of each
    of ``TABLE_LENGTHS``.
    """
    n = prod(shape)
    alone, evidence = chain_posterior(gap, curvature, variance, np.zeros((1, n - 1)))
    place = np.stack(np.unravel_index(np.arange(n), tuple(shape)))
    apart = np.abs(place[:, :, None] - place[:, None, :]) / np.array(shape, dtype=float)[:, None, None]
    distance = np.zeros((n, n))
    for one in apart:  # one feature after the other
        distance += one
    like = exp(-distance / np.array(TABLE_LENGTHS)[:, None, None])
    prior = like[:, None] * np.array(VARIANCES)[:, None, None]
    prior = prior.reshape(-1, n, n)
    means, more = _dense_posterior(gap, curvature, variance, prior)
    return np.concatenate([alone, means]), np.concatenate([evidence, more])


def _dense_posterior(
    gap: np.ndarray, curvature: np.ndarray, variance: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same under prior covariances (n_priors, n_cells, n_cells), by elimination without pivots."""
    n = len(gap)
    # the covariance of the gaps, and in a last column the gaps: both are reduced together
    rest = np.empty((len(prior), n, n + 1))
    rest[:, :, :n] = prior * curvature[:, None] * curvature
    rest[:, np.arange(n), np.arange(n)] += variance
    rest[:, :, n] = gap
    pivots = np.empty((n, len(prior)))
    for j in range(n):  # forward elimination; covariances are positive definite, so pivots are positive
        pivots[j] = rest[:, j, j]
        factor = rest[:, j + 1 :, j] / pivots[j][:, None]
        rest[:, j + 1 :, j + 1 :] -= factor[:, :, None] * rest[:, j, None, j + 1 :]
    misfit = np.add.reduce(rest[:, :, n].T * rest[:, :, n].T / pivots, axis=0)
    solved = rest[:, :, n].copy()
    for j in range(n - 1, -1, -1):  # back substitution
        solved[:, j] /= pivots[j]
        solved[:, :j] -= rest[:, :j, j] * solved[:, j, None]
    means = np.stack([matmul(covariance, curvature * x) for covariance, x in zip(prior, solved, strict=True)])
    return means, -0.5 * (misfit + np.add.reduce(log(pivots), axis=0))


def evidence_mean(means: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Mean of the rows of ``means`` (n_priors, n_cells), each weighted by the exponential of its evidence."""
    weight = exp(evidence - evidence.max())  # the largest is 1
    return np.add.reduce(weight[:, None] * means, axis=0) / np.add.reduce(weight)
