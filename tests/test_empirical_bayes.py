"""Empirical Bayes against what it stands for: the posterior under a mixture of priors, by brute force."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats

from dpforest.flagship.empirical_bayes import (
    CHAIN_LENGTHS,
    TABLE_LENGTHS,
    VARIANCES,
    artanh_step,
    chain_posterior,
    correlations,
    evidence_mean,
    newton_step,
    posterior_mean,
    residual_shift,
    residual_step,
)


def covariances(shape, ordered, chain=0) -> list[np.ndarray]:
    """The correlation matrices of the priors, cell by cell, as the chapter defines them."""
    n = math.prod(shape)
    if len(shape) == 1:
        if not ordered:
            return [np.eye(n)]
        ends, found = chain or n, []
        for length in CHAIN_LENGTHS:
            near = np.eye(n)
            for i, j in product(range(ends), repeat=2):
                near[i, j] = math.exp(-abs(i - j) / (length * ends))
            found.append(near)
        return found
    cells, found = list(product(*map(range, shape))), [np.eye(n)]
    for length in TABLE_LENGTHS:
        apart = lambda one, other: sum(abs(a - b) / (length * k) for a, b, k in zip(one, other, shape, strict=True))  # noqa: B023, E731
        found.append(np.array([[math.exp(-apart(one, other)) for other in cells] for one in cells]))
    return found


def by_brute_force(gap, curvature, variance, shape, ordered, chain=0, penalty=0.0) -> np.ndarray:
    """The posterior mean by the textbook's formulas, each prior by itself, and Bayes' rule over the priors."""
    weights, means = [], []
    for near, scale in product(covariances(shape, ordered, chain), VARIANCES):
        prior, H = scale * near, np.diag(curvature)
        law = stats.multivariate_normal(np.zeros(len(gap)), H @ prior @ H + np.diag(variance))
        weights.append(law.logpdf(gap) - penalty * len(gap) * scale)
        means.append(prior @ H @ np.linalg.solve(H @ prior @ H + np.diag(variance), gap))
    share = np.exp(np.array(weights) - max(weights))
    return share @ np.array(means) / share.sum()


CASES = [((32,), True, 0), ((7,), False, 0), ((9,), True, 8), ((1,), True, 0), ((6, 6), True, 0), ((4, 3, 2), True, 0)]


@pytest.mark.claim(
    "lem-empirical-bayes",
    verdict="proved",
    evidence="numerical",
    constant="the posterior mean under the mixture of the priors, to $10^{-9}$; one and two cells by integration",
)
@pytest.mark.parametrize(("shape", "ordered", "chain"), CASES, ids=str)
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_the_posterior_is_that_of_the_textbook(shape, ordered, chain, penalty):
    rng = np.random.default_rng(0)
    for size, spread in product((3.0, 300.0), (0.0, 0.3)):
        n = math.prod(shape)
        curvature = rng.random(n) * size
        curvature[: n // 4] = 0  # cells that nobody is in
        variance = 2 * curvature + rng.choice([0.1, 20.0])
        gap = curvature * rng.normal(0, spread, n) + np.sqrt(variance) * rng.normal(size=n)
        found = posterior_mean(gap, curvature, variance, shape, ordered, chain, penalty)
        expected = by_brute_force(gap, curvature, variance, shape, ordered, chain, penalty)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.claim("lem-empirical-bayes")
def test_the_posterior_is_that_of_an_integral():
    """No formula of Gaussians: prior times likelihood, integrated over f, of one cell and of two that are alike."""
    gap, curvature, variance = 4.0, 10.0, 30.0
    top = bottom = 0.0
    for scale in VARIANCES:
        if not scale:
            bottom += stats.norm.pdf(gap, 0, math.sqrt(variance))
            continue
        density = lambda f: stats.norm.pdf(f, 0, math.sqrt(scale)) * stats.norm.pdf(gap, curvature * f, variance**0.5)  # noqa: B023, E731
        bottom += integrate.quad(density, -20, 20, points=[0, 0.4], limit=200)[0]
        top += integrate.quad(lambda f: f * density(f), -20, 20, points=[0, 0.4], limit=200)[0]  # noqa: B023
    found = posterior_mean(np.array([gap]), np.array([curvature]), np.array([variance]), (1,), False)
    assert found[0] == pytest.approx(top / bottom, rel=1e-8)
    grid = np.linspace(-12, 12, 1201)
    one, other = np.meshgrid(grid, grid, indexing="ij")
    gaps, sizes, noise = np.array([4.0, -1.0]), np.array([3.0, 2.0]), np.array([5.0, 4.0])
    seen = stats.norm.pdf(gaps[0], sizes[0] * one, noise[0] ** 0.5)
    seen = seen * stats.norm.pdf(gaps[1], sizes[1] * other, noise[1] ** 0.5)
    means, evidence = [], []
    for scale in VARIANCES[4:]:
        prior = stats.multivariate_normal([0, 0], scale * np.array([[1, math.exp(-0.5)], [math.exp(-0.5), 1]]))
        weight = prior.pdf(np.stack([one, other], axis=-1)) * seen
        evidence.append(math.log(weight.sum()))
        means.append([(one * weight).sum() / weight.sum(), (other * weight).sum() / weight.sum()])
    mine, logs = chain_posterior(gaps, sizes, noise, np.array([[math.exp(-0.5)]]))
    np.testing.assert_allclose(mine[4:], means, rtol=1e-6)
    np.testing.assert_allclose(np.diff(logs[4:]), np.diff(evidence), rtol=1e-6)


def test_the_code_of_missing_values_is_like_no_other():
    near = correlations(5, ordered=True, chain=4)
    assert (near[:, :3] > 0).all()
    assert (near[:, 3] == 0).all()
    assert (correlations(5, ordered=False) == 0).all()
    gap, curvature, variance = np.array([9.0, 9, 9, 9, 0]), np.full(5, 10.0), np.full(5, 10.0)
    joined = posterior_mean(gap, curvature, variance, (5,), True)
    apart = posterior_mean(gap, curvature, variance, (5,), True, chain=4)
    assert abs(apart[4]) < abs(joined[4])


def test_a_step_is_nothing_where_nothing_was_measured():
    assert newton_step(np.zeros((6, 2)), (0.0, 0.0), shape=(6,), ordered=True).tolist() == [0.0] * 6
    # the sums of a cell are below its noise: it counts for nothing, and an unordered cell stays where it is
    step = newton_step(np.array([[50.0, 100.0], [-3.0, 2.0]]), (200.0, 200.0), shape=(2,), ordered=False)
    assert step[0] > 0
    assert step[1] == 0


def test_a_step_of_many_records_is_the_gap_over_the_curvature():
    sums = np.array([[1000.0, 1100.0], [5000.0, 4000.0]]) * 1e4
    step = newton_step(sums, (0.0, 0.0), shape=(2,), ordered=False)
    np.testing.assert_allclose(step, (sums[:, 1] - sums[:, 0]) / (sums.sum(axis=1) / 2), rtol=1e-3)


def test_evidence_far_below_the_best_weighs_nothing():
    means = np.array([[1.0, 2.0], [7.0, 7.0]])
    assert evidence_mean(means, np.array([0.0, -5000.0])).tolist() == [1.0, 2.0]
    np.testing.assert_allclose(evidence_mean(means, np.array([-9e5, -9e5])), [4.0, 4.5])


def test_an_artanh_step_makes_the_gap():
    """Beside the first-order step the gap of a cell is ``S tanh(f / 2)``; at 0 both are the same."""
    sizes, steps = np.array([10.0, 40.0, 7.0]), np.array([0.4, -1.7, 0.0])
    np.testing.assert_allclose(sizes * np.tanh(artanh_step(steps) / 2), sizes * steps / 2, rtol=1e-12)
    assert artanh_step(np.array([1e-7]))[0] == pytest.approx(1e-7, rel=1e-6)
    np.testing.assert_allclose(np.exp(artanh_step(np.array([50.0, -2.0]))), [19.0, 1 / 19])  # bounded


def test_the_shift_is_the_posterior_of_one_cell():
    for below, above, prior, noise in ((300.0, 500.0, 0.3, 20.0), (40.0, 12.0, 0.01, 5.0)):
        gap, size = above - below, above + below
        curvature, variance = 0.8 * size, noise + 0.5 * size
        law = lambda f: math.exp(-(f * f) / (2 * prior) - (gap - curvature * f) ** 2 / (2 * variance))  # noqa: B023, E731
        moment = [integrate.quad(lambda f, k=k: f**k * law(f), -1, 1, limit=200)[0] for k in (0, 1)]  # noqa: B023
        [found] = residual_shift(np.array([[below, above]]), (noise, noise), prior)
        assert found == pytest.approx(moment[1] / moment[0], rel=1e-6)
    assert residual_shift(np.array([[-3.0, 1.0]]), (4.0, 4.0), 0.0) == 0
    assert residual_shift(np.zeros((1, 2)), (0.0, 0.0), 1.0) == 0


def test_no_step_of_a_residual_is_longer_than_the_scale():
    wild = residual_step(np.array([[-900.0, 950.0], [3.0, 2.0]]), (4.0, 4.0), shape=(2,), ordered=False)
    assert wild[0] == 1.0
    assert abs(wild[1]) < 1
    assert residual_shift(np.array([[-900.0, 950.0]]), (1.0, 1.0), 100.0) == 1.0
