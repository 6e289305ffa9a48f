"""Bounds from counts: coverage by enumeration, sharp constants, and a gambler's expected wealth, in exact fractions."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from dpforest.audit.sampling.bounds import Betting, best_weight, clopper_pearson, epsilon_lower, p_value, rho_of_event
from dpforest.audit.sampling.empirical import empirical
from dpforest.mechanisms import permute_and_flip_law

HALF = Fraction(1, 2)


def binomial(n: int, p: Fraction) -> list[Fraction]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def close(found, exact) -> bool:
    return math.isclose(found, exact, rel_tol=1e-10)


# -- one probability ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.975])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_each_end_misses_with_exactly_its_error_at_its_own_values(n, confidence):
    """The sharp constant of one end: at p = low(k) as many as k hits have probability 1 - confidence, no less."""
    low, high = clopper_pearson(np.arange(n + 1), n, confidence)
    assert low[0] == 0
    assert high[n] == 1
    for k in range(1, n + 1):
        assert close(sum(binomial(n, Fraction(low[k]))[k:]), 1 - confidence)
        assert close(sum(binomial(n, Fraction(high[k - 1]))[:k]), 1 - confidence)
    assert close(low[n], (1 - confidence) ** (1 / n))
    assert np.array_equal(np.sort(low), low)
    assert np.allclose(low, 1 - high[::-1], rtol=1e-12)


def test_ends_agree_with_scipy():
    hits = np.array([0, 1, 17, 500, 999, 1000])
    low, high = clopper_pearson(hits, 1000, 0.975)
    for k, a, b in zip(hits.tolist(), low, high, strict=True):
        interval = stats.binomtest(k, 1000).proportion_ci(0.95, method="exact")
        assert close(1 + a, 1 + interval.low)
        assert close(b, interval.high)


# -- two probabilities -------------------------------------------------------------------------------------------------


@cache
def table(n: int, m: int, confidence: float, weight: float | None) -> tuple[tuple[float, ...], ...]:
    """The bound for every outcome."""
    return tuple(tuple(epsilon_lower(x, n, y, m, confidence, weight) for y in range(m + 1)) for x in range(n + 1))


def miss(n: int, m: int, p: Fraction, q: Fraction, confidence: float, weight: float | None) -> Fraction:
    """The exact probability that the bound exceeds the loss of the event, which is ln(p / q) and at least 0."""
    bounds = table(n, m, confidence, weight)
    loss = max(0.0, math.log(p / q)) if q else math.inf
    first, second = binomial(n, p), binomial(m, q)
    over = ((x, y) for x in range(n + 1) for y in range(m + 1) if bounds[x][y] > loss * (1 + 1e-12) + 1e-12)
    return sum((first[x] * second[y] for x, y in over), Fraction(0))


def hardest(n: int, confidence: float) -> list[Fraction]:
    """Probabilities at which coverage is worst: just before each end, together with a grid."""
    error = (1 - confidence) / 2
    low, high = clopper_pearson(np.arange(n + 1), n, 1 - error)
    near = [Fraction(float(p)) * (1 - Fraction(1, 10**9)) for p in low[1:]]
    near += [1 - (1 - Fraction(float(p))) * (1 - Fraction(1, 10**9)) for p in high[:-1]]
    return [*near, *(Fraction(k, 8) for k in range(1, 9))]


@pytest.mark.claim(
    "thm-audit-bound",
    verdict="proved",
    evidence="exhaustive",
    constant=r"each end misses with probability $\alpha/2$, attained; the bound with at most "
    r"$\alpha - \alpha^2/4$, and $\alpha/2$ is approached",
)
@pytest.mark.parametrize(("n", "m", "confidence"), [(4, 4, 0.5), (6, 3, 0.5), (3, 6, 0.5), (8, 8, 0.95)])
def test_the_bound_covers_over_all_outcomes(n, m, confidence):
    error = 1 - Fraction(confidence)
    for p, q in product(hardest(n, confidence), hardest(m, confidence)):
        assert miss(n, m, p, q, confidence, None) <= error - error**2 / 4
    # The event that is certain on one side: the lower end of n hits in n tends to 1, and the other end decides alone.
    big, k = 10**9, 1
    low, high = clopper_pearson(big, big, 1 - float(error) / 2)[0], clopper_pearson(k, m, 1 - float(error) / 2)[1]
    q = high / low * (1 + 1e-9)
    assert epsilon_lower(big, big, k, m, confidence) > math.log(1 / q)
    assert math.isclose(stats.binom.cdf(k, m, q), error / 2, rel_tol=1e-6)


@pytest.mark.claim("thm-audit-bound")
@pytest.mark.parametrize(("n", "m", "weight"), [(4, 4, 0.5), (6, 3, 0.2), (3, 6, 0.9), (8, 8, 0.25)])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_joint_bound_covers_over_all_outcomes(n, m, weight, confidence):
    values = hardest(n, confidence), hardest(m, confidence)
    worst = max(miss(n, m, p, q, confidence, weight) for p, q in product(*values))
    assert worst <= 1 - Fraction(confidence)
    assert worst > 0 or confidence > 0.5  # or so few draws would have shown nothing


@pytest.mark.slow
def test_the_joint_bound_all_but_spends_its_error():
    """At n = 2000 by summing over all outcomes; the equal split spends a tenth of it."""
    n, p, q = 2000, 0.5, 0.5 / math.e
    weight = best_weight(p, q, n, n)
    x, y = np.arange(880, 1121), np.arange(280, 460)
    first, below = stats.binom.pmf(x, n, p), stats.binom.cdf(y, n, q)
    assert first.sum() > 1 - 1e-6
    assert below[0] < 1e-6
    assert below[-1] > 1 - 1e-6
    spent = {None: 0.0, weight: 0.0}
    for kind in spent:
        row = 0  # the bound grows with x and falls with y: where it comes to exceed the loss, 1, only moves up
        for hits, chance in zip(x.tolist(), first, strict=True):
            while row < len(y) and epsilon_lower(hits, n, int(y[row]), n, weight=kind) > 1:
                row += 1
            spent[kind] += chance * (below[row - 1] if row else 0)
    assert 0.04 < spent[weight] < 0.05
    assert 0.003 < spent[None] < 0.005


def test_the_bound_of_the_chapter():
    """An event of probability 1/2 against 1/(2e): what a hundred thousand draws say of a loss of 1."""
    hits = 50_000, 100_000, round(50_000 / math.e), 100_000
    assert math.isclose(epsilon_lower(*hits), 0.9807, abs_tol=5e-5)
    weight = best_weight(0.5, 0.5 / math.e, 100_000, 100_000)
    assert math.isclose(weight, 1 / (2 * math.e), rel_tol=1e-3)  # (1 - p) / p over (1 - p) / p + (1 - q) / q
    assert math.isclose(epsilon_lower(*hits, weight=weight), 0.9877, abs_tol=5e-5)


def test_never_and_always():
    assert epsilon_lower(0, 100, 0, 100) == 0
    assert epsilon_lower(0, 100, 100, 100) == 0
    error = 0.025 ** (1 / 100)
    assert close(epsilon_lower(100, 100, 0, 100), math.log(error / (1 - error)))


def test_a_certain_event_is_bounded_by_equal_split():
    assert best_weight(1.0, 0.003, 1000, 1000) is None


@pytest.mark.parametrize("weight", [None, 0.2])
def test_p_value_is_where_the_bound_meets_the_claim(weight):
    counts = 60, 200, 20, 200
    p = p_value(*counts, 0.5, weight)
    assert 0.001 < p < 0.2
    assert epsilon_lower(*counts, 1 - p * 1.001, weight) > 0.5 > epsilon_lower(*counts, 1 - p * 0.999, weight)
    assert p_value(*counts, 0.2, weight) < p < p_value(*counts, 0.6, weight)
    assert p_value(20, 200, 60, 200, 0.5, weight) == 1
    assert p_value(10**6, 10**6, 0, 10**6, 0.5) < 1e-200


def test_p_values_are_super_uniform():
    """At p = e^claim q the chance of a p-value of at most t is at most t, over all outcomes."""
    n, q = 10, Fraction(1, 4)
    p = 2 * q
    values = [[p_value(x, n, y, n, math.log(2)) for y in range(n + 1)] for x in range(n + 1)]
    first, second = binomial(n, p), binomial(n, q)
    for t in {value for row in values for value in row}:
        under = sum(first[x] * second[y] for x in range(n + 1) for y in range(n + 1) if values[x][y] <= t)
        assert under <= t * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: epsilon_lower(3, 2, 0, 2), "hits must lie between 0 and n"),
        (lambda: epsilon_lower(-1, 2, 0, 2), "hits must lie between 0 and n"),
        (lambda: epsilon_lower(0, 0, 0, 2), "n be at least 1"),
        (lambda: epsilon_lower(1, 2, 0, 2, 1.0), "strictly between 0 and 1"),
        (lambda: epsilon_lower(1, 2, 0, 2, math.nan), "strictly between 0 and 1"),
        (lambda: epsilon_lower(1, 2, 0, 2, weight=1.0), "weight must lie strictly between 0 and 1"),
        (lambda: clopper_pearson(1, 2, 0.0), "strictly between 0 and 1"),
        (lambda: p_value(1, 2, 0, 2, -0.1), "finite epsilon, zero or more"),
        (lambda: p_value(1, 2, 0, 2, math.inf), "finite epsilon, zero or more"),
        (lambda: Betting(math.nan), "finite epsilon, zero or more"),
        (lambda: Betting(1.0, 1.5), "strictly between 0 and 1"),
        (lambda: Betting(1.0).update(np.ones(2, bool), np.ones(3, bool)), "as many on one side as on the other"),
    ],
)
def test_counts_and_levels_without_a_meaning(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: epsilon_lower(1.5, 2, 0, 2), "whole numbers"),
        (lambda: epsilon_lower(1, 2, 0, 2, "0.95"), "confidence must be a number"),
        (lambda: p_value(1, 2, 0, 2, "1"), "claim must be a number"),
        (lambda: Betting(True), "claim must be a number"),
        (lambda: Betting(1.0).update([1, 0], [0, 1]), "arrays of bool"),
    ],
)
def test_things_that_are_no_numbers(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# -- betting -----------------------------------------------------------------------------------------------------------

TWICE = math.log(2)  # a claim whose exponential is exact
PAIRS = [(x, y) for x in (False, True) for y in (False, True)]


def step(test: Betting, x: bool, y: bool) -> Betting:
    return copy.deepcopy(test).update(np.array([x]), np.array([y]))


class Seen(NamedTuple):
    """What a test says after some draws."""

    stake: Fraction
    wealth: float
    rejected: bool
    epsilon_lower: float


@cache
def courses(prior: tuple | None, length: int) -> dict[tuple, Seen]:
    """What a test says after each sequence of at most so many pairs of draws, however probable they are."""

    def follow(test: Betting, draws: tuple):
        yield draws, Seen(Fraction(test.stake), test.wealth, test.rejected, test.epsilon_lower)
        if len(draws) < length:
            for pair in PAIRS:
                yield from follow(step(test, *pair), (*draws, pair))

    return dict(follow(Betting(TWICE, 0.5, prior=prior), ()))


def paths(prior: tuple | None, p: Fraction, q: Fraction, length: int):
    """All courses of a test with their probability and their wealth, in exact fractions from the stakes placed."""
    seen = courses(prior, length)
    for draws in product(PAIRS, repeat=length):
        chance = wealth = Fraction(1)
        for place, (x, y) in enumerate(draws):
            stake = seen[draws[:place]].stake  # placed before the draw is seen
            chance *= (p if x else 1 - p) * (q if y else 1 - q)
            wealth *= 1 + stake * (x - 2 * y)
        yield seen[draws], chance, wealth


@pytest.mark.slow
@pytest.mark.claim(
    "thm-betting",
    verdict="proved",
    evidence="exhaustive",
    constant=r"expected wealth $1$ at $p = e^\eps q$, at any time; below it less",
)
@pytest.mark.parametrize("prior", [None, (9, 10, 2, 10)])
@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(1, 4), HALF])
def test_the_gambler_expects_nothing_at_the_claim(prior, q):
    assert math.exp(TWICE) == 2
    every = list(paths(prior, 2 * q, q, 4))
    assert sum(chance for _, chance, _ in every) == 1
    assert sum(chance * wealth for _, chance, wealth in every) == 1  # the sharp constant
    for test, chance, wealth in every:
        if chance:
            assert close(test.wealth, wealth)
    assert sum(chance * wealth for _, chance, wealth in paths(prior, q, q, 4)) < 1
    if prior:
        assert courses(prior, 4)[()].stake > 0  # or nothing was tested


@pytest.mark.slow
@pytest.mark.claim("thm-betting")
def test_the_gambler_is_rarely_rich_at_any_time():
    """Ville's inequality, over all courses of five pairs of draws; and the bound exceeds the loss no more often."""
    q = Fraction(1, 5)
    rejected = over = Fraction(0)
    for test, chance, _ in paths((9, 10, 2, 10), 2 * q, q, 5):
        rejected += chance * test.rejected
        over += chance * (test.epsilon_lower > TWICE)
    assert 0 < over <= rejected <= HALF


def test_it_does_not_matter_how_draws_are_cut():
    rng = np.random.default_rng(0)
    one, other = rng.random(3000) < 0.5, rng.random(3000) < 0.15
    whole = Betting(0.8).update(one, other)
    cut = Betting(0.8)
    for start, stop in ((0, 1), (1, 8), (8, 700), (700, 700), (700, 2999), (2999, 3000)):
        cut.update(one[start:stop], other[start:stop])
    assert cut.n == whole.n == 3000
    assert close(cut.wealth, whole.wealth)
    assert cut.stake == whole.stake
    # thresholds are passed at the ends of cuts too, so that a finer cut may see more
    assert cut.epsilon_lower >= whole.epsilon_lower > 0.8


def test_the_running_bound_grows_and_agrees_with_the_verdict():
    rng = np.random.default_rng(1)
    test, last = Betting(1.0), 0.0
    for _ in range(60):
        test.update(rng.random(200) < 0.5, rng.random(200) < 0.1)
        assert test.epsilon_lower >= last
        assert test.rejected == (test.epsilon_lower >= 1.0)
        last = test.epsilon_lower
    assert 1.3 < last < math.log(5)
    assert test.p_value < 0.05


def test_stakes_stay_within_what_can_be_lost():
    test = Betting(1.0)
    test.update(np.ones(500, bool), np.zeros(500, bool))
    assert 0.9 < test.stake * math.e < 1
    assert math.isfinite(test.wealth)
    assert test.update(np.zeros(1, bool), np.ones(1, bool)).wealth > 0  # a nearly ruined gambler, not a bankrupt one
    assert (
        Betting(1.0).update(np.zeros(100, bool), np.ones(100, bool)).wealth == 1
    )  # who expects nothing stakes nothing
    sure = Betting(0.0).update(np.ones(10**6, bool), np.zeros(10**6, bool))
    assert sure.stake == 1 - 1e-9  # and who is nearly certain not quite all
    assert math.isfinite(sure.update(np.zeros(1, bool), np.ones(1, bool)).wealth)


def test_no_other_stake_makes_wealth_grow_faster():
    """Kelly's stake is where the slope of the expected growth changes its sign, found here by halving."""
    rng = np.random.default_rng(0)
    edges = [(1, 1, 0, 1), (1, 1, 1, 1), (0, 1, 0, 1), (2000, 2000, 0, 2000), (2000, 2000, 735, 2000), (0, 2, 2, 2)]
    drawn = [(rng.integers(n + 1), n, rng.integers(n + 1) // 3, n) for n in rng.integers(1, 2001, 500).tolist()]
    gains = 0
    for claim, prior in product((0.0, 0.005, 1.0, 8.0), edges + drawn):
        test, price = Betting(claim, prior=prior), math.exp(claim)
        p, q = test._counts[0] / test._counts[1], test._counts[2] / test._counts[3]
        low, high = 0.0, (1 - 1e-9) / price
        for _ in range(60 if p > price * q else 0):
            stake = (low + high) / 2
            slope = p * (1 - q) / (1 + stake) - (1 - p) * q * price / (1 - stake * price)
            slope += p * q * (1 - price) / (1 + stake * (1 - price))
            low, high = (stake, high) if slope > 0 else (low, stake)
        gains += low > 0
        assert 0 <= test.stake <= (1 - 1e-9) / price
        assert abs(test.stake - low) * price < 1e-9
    assert gains > 500


def test_a_claim_beyond_the_grid_is_tested_too():
    test = Betting(30.0)
    test.update(np.ones(10, bool), np.zeros(10, bool))
    assert not test.rejected
    assert 0 < test.epsilon_lower < 30


@pytest.mark.slow
def test_power_of_the_running_test():
    """At a loss of 1.1 and a claim of 1 some five thousand pairs suffice: seeded, 20 runs."""
    needed = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        test = Betting(1.0, prior=(500, 1000, 166, 1000))
        while not test.rejected and test.n < 40_000:
            test.update(rng.random(500) < 0.5, rng.random(500) < 0.5 * math.exp(-1.1))
        needed.append(test.n)
    assert max(needed) < 40_000
    assert 2000 < np.median(needed) < 9000


# -- zero-concentrated privacy -----------------------------------------------------------------------------------------


@pytest.mark.claim(
    "lem-event-rho",
    verdict="proved",
    evidence="numerical",
    constant=r"$\sup_{\alpha > 1} D_\alpha(p \| q)/\alpha$, attained where the output is nothing but the event",
)
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.2), (0.9, 0.001), (1.0, 0.5), (0.3, 0.29)])
def test_the_rho_of_an_event_is_the_largest_divergence_over_its_order(p, q):
    """At order 2 it is an expression in fractions, and near 1 the relative entropy."""
    found = rho_of_event(p, q)
    x, y = Fraction(p), Fraction(q)
    second = math.log(x * x / y + (1 - x) ** 2 / (1 - y)) / 2
    entropy = p * math.log(p / q) + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)
    assert found >= max(second, entropy) - 1e-3 * max(second, entropy)
    assert rho_of_event(q, p) == 0
    assert rho_of_event(p, q * 1.01) < found


def test_a_claim_of_pure_privacy_bounds_the_rho_of_every_event():
    """A loss of epsilon is a rho of epsilon^2 / 2 at most; randomised response comes near, where it is small."""
    for epsilon in (0.01, 0.5, 1.0, 4.0):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert rho_of_event(p, 1 - p) <= epsilon**2 / 2 * (1 + 1e-9)
    assert rho_of_event(1 / (1 + math.exp(-0.01)), 1 / (1 + math.exp(0.01))) == pytest.approx(0.01**2 / 2, rel=0.01)


def test_the_rho_of_an_event_needs_both_sides_and_the_right_order():
    """What is read off laws differs less than they do, and no less where nothing else is there; by all 30 events."""
    rng = np.random.default_rng(0)
    orders = 1 + np.geomspace(1e-3, 1e3, 601)
    for _ in range(50):
        first, second = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        with np.errstate(over="ignore"):
            logs = logsumexp(orders[:, None] * np.log(first) + (1 - orders[:, None]) * np.log(second), axis=1)
        rho = float((logs / (orders - 1) / orders).max())
        events = [list(each) for size in range(1, 5) for each in combinations(range(5), size)]
        of_events = [rho_of_event(float(first[each].sum()), float(second[each].sum())) for each in events]
        assert max(of_events) <= rho * (1 + 1e-9)
        p, q = first[:1].sum(), second[:1].sum()
        alike = np.array([p, 1 - p]), np.array([q, 1 - q])  # where there is nothing but the event, it is sharp
        pair = logsumexp(orders[:, None] * np.log(alike[0]) + (1 - orders[:, None]) * np.log(alike[1]), axis=1)
        if p > q:
            assert rho_of_event(p, q) == pytest.approx(float((pair / (orders - 1) / orders).max()), rel=1e-9)
    assert rho_of_event(0.5, 0.0) == math.inf


def test_a_rho_that_no_single_epsilon_and_delta_refutes():
    """Noisy max by permute-and-flip at scale 1, its rho claimed as 1 / 2: hidden at one delta."""

    def sample(scores, size, rng):
        return rng.choice(2, size, p=permute_and_flip_law(np.array(scores, dtype=float), 1.0))

    pair = (0, 2), (1, 1)
    claimed = 0.5 + 2 * math.sqrt(0.5 * math.log(1e3))  # at a delta of 1 / 1000
    audit = empirical(sample, pair, claimed, n=20_000, random_state=0, delta=1e-3)
    assert not audit.violated
    assert audit.rho_lower > 0.5
    p, q = (permute_and_flip_law(np.array(scores, dtype=float), 1.0)[0] for scores in pair[::-1])
    assert audit.rho_lower <= rho_of_event(p, q)
    assert empirical(sample, pair, 2.0, n=2000, random_state=0, method="betting").rho_lower == 0
