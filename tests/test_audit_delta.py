"""The auditor and a delta: hockey-stick divergence of known laws, lower bounds from draws, broken mechanisms."""

import math
from fractions import Fraction
from functools import cache
from itertools import chain, combinations

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpforest import (
    DiffPETsClassifier,
    EDPRFClassifier,
    PrivateBoostingClassifier,
    RandomTreesClassifier,
    Schema,
    audit,
    mechanisms,
)
from dpforest.audit.report.batches import Fits
from dpforest.audit.sampling.bounds import best_weight, epsilon_lower, p_value
from dpforest.chance import Seeded
from dpforest.privacy import ADD_REMOVE, RELATIONS, rho_of

EPSILON, DELTA = 1.0, 1e-3


def subsets(outputs):
    return chain.from_iterable(combinations(outputs, size) for size in range(len(outputs) + 1))


def some_laws(seed, n=5):
    """Two laws on a few outputs in fractions; some outputs only one of them has."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 9, (2, n)) * (rng.random((2, n)) < 0.8)
    weights[:, 0] += 1
    return [{at: Fraction(int(w), int(row.sum())) for at, w in enumerate(row)} for row in weights]


# -- known laws --------------------------------------------------------------------------------------------------------


@pytest.mark.claim("thm-hockey-stick", verdict="proved", constant=r"$\sum (P - e^\eps Q)^+$", evidence="exhaustive")
@pytest.mark.parametrize("seed", range(12))
def test_the_divergence_is_what_the_worst_event_exceeds(seed):
    one, other = some_laws(seed)
    for factor in (Fraction(1), Fraction(3, 2), Fraction(4)):
        excess = max(
            sum(p[o] for o in event) - factor * sum(q[o] for o in event)
            for p, q in ((one, other), (other, one))
            for event in subsets(one)
        )
        assert audit.hockey_stick(one, other, math.log(factor)) == pytest.approx(float(excess), abs=1e-14)


@pytest.mark.claim("thm-hockey-stick")
@pytest.mark.parametrize("seed", range(12))
def test_the_least_epsilon_is_that_of_the_worst_event(seed):
    one, other = some_laws(seed)
    for delta in (Fraction(0), Fraction(1, 100), Fraction(1, 4)):
        worst = Fraction(1)
        for p, q in ((one, other), (other, one)):
            for event in subsets(one):
                above, below = sum(p[o] for o in event) - delta, sum(q[o] for o in event)
                if above > 0:
                    worst = max(worst, above / below if below else Fraction(10**30))
        found = audit.least_epsilon(one, other, delta)
        if worst == 10**30:
            assert found == math.inf
        else:
            assert found == pytest.approx(math.log(worst), abs=1e-12)
            assert audit.hockey_stick(one, other, found) <= float(delta) + 1e-12
            assert found == 0 or audit.hockey_stick(one, other, found - 1e-6) > float(delta)


def test_what_post_processing_hides_the_divergence_no_longer_sees():
    one, other = some_laws(3)
    for cut in range(1, 5):
        merged = [
            {"low": sum(v for k, v in law.items() if k < cut), "high": sum(v for k, v in law.items() if k >= cut)}
            for law in (one, other)
        ]
        assert audit.hockey_stick(*merged, 0.3) <= audit.hockey_stick(one, other, 0.3) + 1e-15


@cache
def counts(rate, shift=0, reach=1500):
    """The law of a count with discrete Gaussian noise."""
    k = np.arange(-reach, reach + 1)
    return dict(zip((k + shift).tolist(), mechanisms.discrete_gaussian_law(k, rate).tolist(), strict=True))


def test_the_discrete_gaussian_is_nearly_the_gaussian():
    """Balle and Wang (2018): the delta of Gaussian noise, in closed form."""
    sigma, step = 60.0, 50
    for epsilon in (0.3, 1.0, 2.0):
        a, b = step / (2 * sigma), epsilon * sigma / step
        closed = norm.cdf(a - b) - math.exp(epsilon) * norm.cdf(-a - b)
        found = audit.hockey_stick(counts(1 / (2 * sigma**2)), counts(1 / (2 * sigma**2), step), epsilon)
        assert found == pytest.approx(closed, rel=2e-3)


def test_geometric_noise_needs_no_delta():
    k = np.arange(-200, 201)
    law = mechanisms.two_sided_geometric_law(k, 0.7)
    one, other = (dict(zip((k + shift).tolist(), law.tolist(), strict=True)) for shift in (0, 1))
    del one[-200], other[201]  # the ends of what was added up
    assert audit.least_epsilon(one, other, 0.0) == pytest.approx(0.7)
    assert audit.hockey_stick(one, other, 0.7) < 1e-14
    p = math.exp(-0.7)
    assert audit.hockey_stick(one, other, 0.2) == pytest.approx((1 - math.exp(0.2) * p) / (1 + p), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_noise_that_ships_keeps_its_delta_and_broken_noise_does_not(epsilon, delta):
    rate = rho_of(epsilon, delta)  # of a count, whose largest squared change is 1
    kept = audit.hockey_stick(counts(rate), counts(rate, 1), epsilon)
    assert delta / 20 < kept < delta  # so a hundredth of delta is not kept
    assert audit.least_epsilon(counts(rate), counts(rate, 1), delta) < epsilon
    for broken, shift in ((rate * 2.25, 1), (rate, 2)):  # a scale 1.5 times too small; a replaced record forgotten
        assert audit.hockey_stick(counts(broken), counts(broken, shift), epsilon) > delta
        assert audit.least_epsilon(counts(broken), counts(broken, shift), delta) > epsilon


@pytest.mark.parametrize("wrong", [-1, math.nan])
def test_bad_parameters_of_known_laws_are_refused(wrong):
    with pytest.raises(ValueError, match="epsilon must be"):
        audit.hockey_stick({0: 1}, {0: 1}, wrong)
    with pytest.raises(ValueError, match="delta must be"):
        audit.least_epsilon({0: 1}, {0: 1}, wrong)


# -- from draws --------------------------------------------------------------------------------------------------------


@pytest.mark.claim("thm-audit-delta", verdict="proved", constant=r"$\ln((L - \delta)/U)$", evidence="exhaustive")
@pytest.mark.parametrize("weight", [None, 0.5])
def test_the_bound_errs_no_more_often_than_it_says(weight):
    """Every pair of counts, with its probability: the worst mechanism of (epsilon, delta) is one event at the edge."""
    n, epsilon, delta = 16, 0.5, 0.1
    hits = range(n + 1)
    above, forgetful = (
        np.array([[epsilon_lower(x, n, y, n, 0.9, weight, its_delta) > epsilon for y in hits] for x in hits])
        for its_delta in (delta, 0.0)
    )
    for q in (0.02, 0.4):
        p = math.exp(epsilon) * q + delta
        chance = np.multiply.outer(binom.pmf(hits, n, p), binom.pmf(hits, n, q))
        wrong, without = chance[above].sum(), chance[forgetful].sum()
        assert wrong <= 0.1
        assert without > wrong  # the mutant that forgets the delta


def test_bound_p_value_and_weight_agree_with_a_delta():
    assert epsilon_lower(500, 1000, 100, 1000, delta=0.2) < epsilon_lower(500, 1000, 100, 1000)
    assert epsilon_lower(10, 1000, 0, 1000, delta=0.01) == 0
    bound = epsilon_lower(500, 1000, 100, 1000, 0.95, None, 0.2)
    assert p_value(500, 1000, 100, 1000, bound, None, 0.2) == pytest.approx(0.05, rel=1e-4)
    weight = best_weight(0.5, 0.1, 1000, 1000, delta=0.2)
    assert epsilon_lower(500, 1000, 100, 1000, weight=weight, delta=0.2) >= bound


def test_exceptions_of_exactly_delta_are_allowed():
    tenth = Fraction(1, 10)
    one, other = {"a": tenth, "b": 2 * tenth, "c": 7 * tenth}, {"c": 7 * tenth, "d": 3 * tenth}
    assert audit.hockey_stick(one, other, 0.0) == 0.3
    assert audit.hockey_stick(one, other, 1000.0) == 0.3
    assert audit.least_epsilon(one, other, 3 * tenth) == 0
    assert audit.least_epsilon(one, other, 3 * tenth - Fraction(1, 10**20)) == math.inf


def test_a_law_that_is_cut_off_is_refused():
    with pytest.raises(ValueError, match=r"add up to 1, and this one to 0\.5"):
        audit.hockey_stick({0: 0.5}, {0: 0.5}, 0.1)
    with pytest.raises(ValueError, match="add up to 1"):
        audit.least_epsilon({0: 1.0}, {0: 1.5, 1: -0.5}, 0.1)


def gaussian(rate):
    return lambda data, size, rng: mechanisms.discrete_gaussian(np.full(size, len(data)), rate, Seeded(rng))


def shames(probability):
    """Name and shame: says its first record, if there is one, with a probability."""

    def sample(data, size, rng):
        named = rng.random(size) < probability
        return np.where(named, 1 if data else -1, rng.integers(5, 7, size))

    return sample


PAIR = [((), ((1,),))]


def found(sample, n=20_000, claim=EPSILON, delta=DELTA, pairs=PAIR, **options):
    return audit.empirical(sample, pairs, claim, n=n, delta=delta, random_state=0, relation=ADD_REMOVE, **options)


@pytest.mark.claim("thm-audit-delta")
@pytest.mark.parametrize("method", ["fixed", "sharp"])
def test_what_keeps_its_delta_is_not_refuted(method):
    assert not found(gaussian(rho_of(EPSILON, DELTA)), method=method).violated
    assert not found(shames(DELTA), method=method).violated
    assert found(shames(DELTA), delta=0.0, n=200_000, claim=0.0).violated  # it is the delta that allows this


@pytest.mark.claim("thm-audit-delta")
def test_what_breaks_its_delta_is_caught():
    caught = found(shames(10 * DELTA))
    assert caught.violated
    assert caught.delta == DELTA
    assert "with delta = 0.001" in str(caught)
    assert caught.to_dict()["delta"] == DELTA
    assert found(gaussian(9 * rho_of(EPSILON, DELTA))).violated  # a scale three times too small
    assert found(gaussian(rho_of(EPSILON, 0.01)), delta=1e-4, n=400_000).violated  # a delta of a hundredth
    replaced = [((1, 1), (1, 2))]  # the noise knows of one record that comes, the histogram of two that change
    histogram = lambda data, size, rng: mechanisms.discrete_gaussian(  # noqa: E731
        np.tile(np.bincount(data, minlength=3), (size, 1)), 4 * rho_of(EPSILON, DELTA), Seeded(rng)
    )
    assert audit.empirical(histogram, replaced, EPSILON, n=50_000, delta=DELTA, random_state=0).violated


def test_a_bound_below_the_exact_loss():
    rate = rho_of(EPSILON, DELTA)
    exact = audit.least_epsilon(counts(rate), counts(rate, 1), DELTA)
    bound = found(gaussian(rate), n=100_000).epsilon_lower
    assert exact / 3 < bound < exact


@pytest.mark.parametrize(
    ("delta", "error"),
    [(-0.1, ValueError), (1, ValueError), (math.nan, ValueError), ("0.1", TypeError), (True, TypeError)],
)
def test_a_delta_without_a_meaning_is_refused(delta, error):
    with pytest.raises(error, match="delta must be"):
        found(shames(0.5), delta=delta)


def test_betting_is_against_a_loss_without_exception():
    with pytest.raises(ValueError, match="'fixed' or 'sharp'"):
        found(shames(0.5), method="betting")


#: What is audited as it ships: its parameters, and an epsilon below which the bound must not fall.
WHOLE = {
    "flagship": (PrivateBoostingClassifier, {"n_estimators": 1, "interactions": 0, "n_rows": 6}, 0.2),
    "random trees": (RandomTreesClassifier, {"n_estimators": 1, "max_depth": 0}, 1.0),
    "eDPRF": (EDPRFClassifier, {"n_estimators": 2, "max_depth": 1, "selection": "exponential"}, 0.1),
    "DiffPETs": (DiffPETsClassifier, {"n_estimators": 1, "max_depth": 1, "selection": "exponential"}, 0.1),
}


@pytest.mark.slow
@pytest.mark.claim("thm-private-boosting-delta")
@pytest.mark.claim("thm-forest-delta")
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("relation", RELATIONS)
def test_whole_fits(relation, name):
    """What ships keeps its claim, and the audit sees a part of what it spends."""
    which, options, seen = WHOLE[name]
    schema = Schema(categorical={"a": [0, 1]}, classes=[0, 1])
    one = ((0, 0),) * 3 + ((1, 1),) * 3
    other = (*one, (1, 0)) if relation == ADD_REMOVE else (*one[:-1], (1, 0))
    kind = which(epsilon=8.0, delta=DELTA, schema=schema, relation=relation, **options)
    made = audit.empirical(
        Fits(kind, 1, kind.sharing(), delta=DELTA),
        [(one, other)],
        8.0,
        n=250,
        delta=DELTA,
        random_state=0,
        relation=relation,
    )
    assert seen < made.epsilon_lower < 8
    assert not made.violated
    with pytest.raises(ValueError, match=r"delta = 0\.0001"):
        Fits(kind, 1, delta=DELTA / 10)
