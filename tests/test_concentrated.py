"""Epsilon and delta: the conversion, the noise, what a selection costs, the ledger of rhos, and what a file says."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import oracle
import pytest
from scipy import optimize, special, stats
from shared import MIXED, table

from dpforest import (
    Budget,
    DiffPETsClassifier,
    DiffPETsRegressor,
    DPAdaBoostClassifier,
    DPsAdaBoostClassifier,
    EDPRFClassifier,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    RandomTreesClassifier,
    RandomTreesRegressor,
    Schema,
    mechanisms,
)
from dpforest.chance import NotEnumerableError, Replay, Secure, Seeded
from dpforest.curator import FINE, Curator, Selection
from dpforest.curator.queries import CellGradients, CellWeights, ClassCounts, Masses, ResidualCounts
from dpforest.curator.selections import BinaryCandidates, FeatureCandidates, LabelCandidates, TableCandidates
from dpforest.learners.growth import Growth
from dpforest.mechanisms import discrete_gaussian, discrete_gaussian_law, exponential_law, permute_and_flip_law
from dpforest.models.boosted import SCALE
from dpforest.models.release import released
from dpforest.privacy import (
    ADD_REMOVE,
    RELATIONS,
    REPLACE_ONE,
    Guarantee,
    Ledger,
    check_delta,
    epsilon_of,
    rho_of,
    rho_of_range,
)
from dpforest.schema import TARGET_LEVELS
from dpforest.scores import gini, majority
from dpforest.structure.crossings import Crossings
from dpforest.study.exact_ranges import exactly, largest_range

relations = pytest.mark.parametrize("relation", RELATIONS)
ORDERS = 1 + np.logspace(-4, 2.5, 300)


def divergence(p, q, order):
    """Rényi's, of one order or of each of several."""
    p, q, order = np.log(p), np.log(q), np.asarray(order)
    return special.logsumexp(order[..., None] * p - (order[..., None] - 1) * q, axis=-1) / (order - 1)


# -- what a rho says -------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "lem-concentrated-conversion",
    verdict="proved",
    evidence="numerical",
    constant=r"$\delta = (1 - 1/\alpha)^\alpha\,e^{(\alpha-1)(\alpha\rho - \eps)}/(\alpha - 1)$, attained for "
    r"each $\alpha$ and $\eps$",
)
@pytest.mark.parametrize("order", [1.2, 2.0, 7.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_the_delta_of_an_order_is_attained(order, epsilon):
    """One event has all of P, and of Q what makes the ratio the worst one; no other ratio does worse."""

    def bound(rho):
        return (1 - 1 / order) ** order * math.exp((order - 1) * (order * rho - epsilon)) / (order - 1)

    ratio = order / (order - 1) * math.exp(epsilon)
    assert 1 - math.exp(epsilon) / ratio == pytest.approx(bound(math.log(ratio) / order), rel=1e-9)
    for other in np.linspace(1.01 * math.exp(epsilon), 5 * ratio, 200):
        assert 1 - math.exp(epsilon) / other <= bound(math.log(other) / order) * (1 + 1e-12)


def by_search(rho: float, delta: float) -> float:
    """The least bound over orders by scipy's own minimiser, in fifty digits at the end."""

    def bound(excess):
        order = 1 + math.exp(excess)
        return order * rho + excess - math.log(order) - math.log(delta * order) / math.exp(excess)

    best = optimize.minimize_scalar(bound, bounds=(-20, 40), method="bounded", options={"xatol": 1e-10}).x
    with localcontext() as context:
        context.prec = 50
        above = Decimal(best).exp()
        order, d = 1 + above, Decimal(delta)
        return float(order * Decimal(rho) + Decimal(best) - order.ln() - (d * order).ln() / above)


@pytest.mark.claim("lem-concentrated-conversion")
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_the_least_over_orders_is_found(delta):
    for rho in (1e-7, 1e-4, 0.02, 0.5, 3.0, 40.0):
        found, wanted = epsilon_of(rho, delta), max(by_search(rho, delta), 0.0)
        assert found == pytest.approx(wanted, rel=1e-7, abs=1e-9)
        assert found <= rho + 2 * math.sqrt(-rho * math.log(delta))  # the older formula
    for epsilon in (1e-9, 1e-6, 0.01, 0.1, 1.0, 8.0):
        rho = rho_of(epsilon, delta)
        assert epsilon * (1 - 1e-9) - 1e-13 < epsilon_of(rho, delta) <= epsilon
        assert epsilon_of(rho * 1.0001, delta) > epsilon
    for wrong in ((-0.1, delta), (math.nan, delta), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(ValueError, match="delta lie between"):
            epsilon_of(*wrong)
        with pytest.raises(ValueError, match="delta lie between"):
            rho_of(*wrong)
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        rho_of(0.0, delta)
    assert rho_of(math.inf, delta) == math.inf == epsilon_of(math.inf, delta)
    assert epsilon_of(0.0, delta) == 0


@pytest.mark.claim("lem-concentrated-conversion")
def test_another_library_converts_alike():
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed: make opendp")
    dp.enable_features("contrib")
    for rho, delta in ((0.0244, 1e-6), (1e-4, 1e-8), (2.0, 1e-5), (0.5, 1e-2)):
        space = dp.atom_domain(T="i32"), dp.absolute_distance(T="i32")
        noise = dp.m.make_gaussian(*space, scale=math.sqrt(1 / (2 * rho)))
        assert dp.c.make_zCDP_to_approxDP(noise).map(1).epsilon(delta) == pytest.approx(
            epsilon_of(rho, delta), rel=1e-6
        )


@pytest.mark.claim("lem-concentrated-conversion")
@pytest.mark.parametrize("rho", [0.001, 0.0244, 0.4])
def test_exact_deltas_of_noise_are_below_what_is_promised(rho):
    """Of the discrete Gaussian by adding up, over shifts of 1 and noise from fine to coarse."""
    for delta in (1e-3, 1e-6):
        epsilon = epsilon_of(rho, delta)
        reach = math.ceil(14 / math.sqrt(2 * rho))
        k = np.arange(-reach, reach + 1)
        p, q = discrete_gaussian_law(k - 1, rho), discrete_gaussian_law(k, rho)
        exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert exact <= delta
        assert exact > 0 or rho < 0.01
        wrong = np.maximum(p - math.exp(epsilon_of(rho / 4, delta)) * q, 0).sum()
        assert wrong > delta  # a rho that is claimed too small is found out


@pytest.mark.parametrize("wrong", [-1e-6, 0.02, 1.0, math.nan, math.inf, "1e-6", None, True])
def test_deltas_that_are_none_are_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="delta must be"):
        check_delta(wrong)
    with pytest.raises((TypeError, ValueError), match="delta must be"):
        PrivateBoostingClassifier(schema=MIXED, delta=wrong).fit(*table(20))


# -- the noise -------------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "thm-discrete-gaussian",
    verdict="proved",
    evidence="numerical",
    constant=r"$\alpha\lambda\Delta^2$, equality at whole orders",
)
@pytest.mark.parametrize("rate", [0.02, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_what_gaussian_noise_costs(rate, shift):
    reach = math.ceil(math.sqrt(120 / rate)) + 40 * shift
    with localcontext() as context:
        context.prec = 60
        weight = {k: (-Decimal(rate) * k * k).exp() for k in range(-2 * reach, 2 * reach + 1)}
        total = sum(weight.values())
        for order in (2, 3, 5):
            sums = sum(
                (weight[k - shift] ** order / weight[k] ** (order - 1)) / total for k in range(-reach, reach + 1)
            )
            assert float(sums.ln()) / (order - 1) == pytest.approx(order * rate * shift**2, rel=1e-9)
        half = sum(
            (weight[k - shift].sqrt() ** 3 / weight[k].sqrt()) / total for k in range(-reach, reach + 1)
        )  # order 3/2
        found = 2 * float(half.ln())
        assert found <= 1.5 * rate * shift**2 * (1 + 1e-12)
        assert (found < 1.5 * rate * shift**2 * 0.999) == (rate >= 2 and shift % 2 == 1)


def total_weight(rate, place):
    """The sum of ``exp(-rate (k - place)^2)`` over all whole numbers k, to fifty digits."""
    reach = math.ceil(math.sqrt(130 / rate))
    near = round(place)
    steps = (Fraction(k) - place for k in range(near - reach, near + reach + 1))
    return sum((-Decimal(rate) * (Decimal(step.numerator) / step.denominator) ** 2).exp() for step in steps)


@pytest.mark.claim("thm-discrete-gaussian")
@pytest.mark.parametrize("rate", [0.2, 0.5, 2.0, 5.0])
def test_no_place_has_more_weight_than_a_whole_number(rate):
    """The proof, step by step: products as sums over halves of pairs, the fourth power, and the inequality."""
    places = [Fraction(at, 16) for at in range(-10, 41, 13)]
    small = Decimal("1e-45")
    with localcontext() as context:
        context.prec = 55
        for x, y in product(places, repeat=2):
            halves = sum(
                total_weight(2 * rate, (x + y - odd) / 2) * total_weight(2 * rate, (x - y - odd) / 2) for odd in (0, 1)
            )
            both = total_weight(rate, x) * total_weight(rate, y)
            assert abs(halves - both) <= both * small
        most = total_weight(rate, Fraction(0))
        for x in places:
            here = total_weight(rate, x)
            assert here**4 <= total_weight(rate, 2 * x) * most**3 * (1 + small)
            assert most - here > most * small if x.denominator > 1 else abs(here - most) <= most * small


@pytest.mark.claim("thm-discrete-gaussian")
def test_noise_of_several_rates_costs_the_sum():
    """A vector: each square times its rate; the order 2 has that itself, and no smaller rho would do."""
    cells = [oracle.gaussian(rate, 40) for rate in (0.3, 1.1)]
    moved = [oracle.gaussian(rate, 40, shift) for rate, shift in ((0.3, 2), (1.1, -1))]
    with localcontext() as context:
        context.prec = 50
        second = Decimal(1)
        for still, other in zip(cells, moved, strict=True):
            second *= sum(other[k] ** 2 / still[k] for k in still.keys() & other.keys())
        assert float(second.ln()) / 2 == pytest.approx(0.3 * 2**2 + 1.1 * 1**2, rel=1e-12)


@pytest.mark.claim(
    "lem-discrete-gaussian",
    verdict="proved",
    evidence="statistical",
    constant=r"$P(k)$ in proportion to $e^{-\lambda k^2}$, $\lambda$ the rate",
)
@pytest.mark.parametrize("rate", [1e-9, 0.003, 0.11, 0.5, 3.0, 40.0])
def test_draws_follow_the_law(rate):
    n, reach = 60_000, math.ceil(6 / math.sqrt(2 * rate)) + 1
    drawn = discrete_gaussian(np.zeros(n, dtype=np.int64), rate, Seeded(5))
    edges = np.unique(np.round(np.linspace(-reach, reach, 41)).astype(int))
    if rate == 1e-9:  # too many values to add up: those of the continuous law
        share = np.diff(stats.norm(scale=math.sqrt(1 / (2 * rate))).cdf(edges - 0.5))
    else:
        law = discrete_gaussian_law(np.arange(-reach, reach), rate)
        share = np.add.reduceat(law, edges[:-1] + reach)
    seen = np.histogram(drawn, bins=edges - 0.5)[0]
    keep = share * n > 10
    seen, share = np.append(seen[keep], n - seen[keep].sum()), np.append(share[keep], 1 - share[keep].sum())
    if share[-1] * n < 5:
        seen, share = seen[:-1], share[:-1]
    if len(share) > 1:
        assert stats.chisquare(seen, share / share.sum() * seen.sum()).pvalue > 1e-6
    else:
        assert seen[0] == n


@pytest.mark.claim("lem-discrete-gaussian")
def test_the_law_is_that_of_fifty_digits():
    for rate in (0.01, 0.7, 30.0):
        with localcontext() as context:
            context.prec = 50
            weight = [(-Decimal(rate) * k * k).exp() for k in range(-300, 301)]
            wanted = [float(w / sum(weight)) for w in weight]
        np.testing.assert_allclose(discrete_gaussian_law(np.arange(-300, 301), rate), wanted, rtol=1e-11)


@pytest.mark.claim("lem-discrete-gaussian")
def test_whatever_doubles_cannot_tell_is_decided_exactly(monkeypatch):
    """With no trust in doubles at all, every coin is thrown in fractions: the same bits, the same numbers."""
    from dpforest.chance import exact

    wanted = [Seeded(3).discrete_gaussian(np.array(rate), (60,)) for rate in (0.004, 0.6)]
    monkeypatch.setattr(exact, "_TRUST", 2.0**200)
    for rate, numbers in zip((0.004, 0.6), wanted, strict=True):
        np.testing.assert_array_equal(Seeded(3).discrete_gaussian(np.array(rate), (60,)), numbers)


def test_another_library_draws_by_the_same_gaussian():
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed: make opendp")
    dp.enable_features("contrib")
    n, rate = 4000, 0.08
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    theirs = np.clip(dp.m.make_gaussian(*space, scale=math.sqrt(1 / (2 * rate)))([0] * n), -6, 6)
    ours = np.clip(Seeded(2).discrete_gaussian(np.array(rate), (n,)), -6, 6)
    counts = [[int((side == value).sum()) for value in range(-6, 7)] for side in (theirs, ours)]
    # theirs cannot be seeded: by chance this fails once in a million runs
    assert stats.chi2_contingency(counts).pvalue > 1e-6


def test_gaussian_noise_of_every_source():
    counts = np.array([[3, 4], [5, 6]])
    for source in (Seeded(0), Secure()):
        noisy = discrete_gaussian(counts, [[math.inf], [1e-6]], source)
        np.testing.assert_array_equal(noisy[0], counts[0])
        assert np.abs(noisy[1] - counts[1]).max() > 5
    with pytest.raises(NotEnumerableError, match="Gaussian noise"):
        discrete_gaussian(counts, 1.0, Replay())
    np.testing.assert_array_equal(discrete_gaussian(counts, math.inf, Replay()), counts)
    with pytest.raises(TypeError, match="integer counts"):
        discrete_gaussian(counts / 2, 1.0, Seeded(0))
    with pytest.raises(ValueError, match=r"within 2\^62"):
        discrete_gaussian([1 << 62], 1.0, Seeded(0))
    for wrong in (0.0, -1.0, math.nan, 1e-31):
        with pytest.raises(ValueError, match="rate must be at least"):
            discrete_gaussian(counts, wrong, Seeded(0))


# -- selections ------------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "lem-range-concentrated",
    verdict="proved",
    evidence="numerical",
    constant=r"$\eta^2/8$, attained as $\eta$ falls to $0$",
)
def test_a_bounded_range_is_concentrated():
    rng = np.random.default_rng(0)
    for _ in range(300):
        k, eta = rng.integers(2, 6), rng.uniform(0.05, 4)
        scores = rng.normal(0, 2, k)
        change = rng.uniform(0, 1, k)
        change = (change - change.min()) / np.ptp(change)
        p, q = exponential_law(scores, eta), exponential_law(scores + change, eta)
        for a, b in ((p, q), (q, p)):
            assert (divergence(a, b, ORDERS) <= ORDERS * eta**2 / 8 + 1e-12).all()
    for eta, share in ((1.0, 0.97), (0.1, 0.9997)):
        p, q = (exponential_law([at, 0.0], 1.0) for at in (eta / 2, -eta / 2))
        worst = (divergence(p, q, ORDERS) / ORDERS).max()
        assert share < worst / (eta**2 / 8) <= 1 + 1e-9


GRID = 2**200


def down(x):
    return Fraction(math.floor(x * GRID), GRID)


def up(x):
    return Fraction(math.ceil(x * GRID), GRID)


def exp_between(x):
    """Bounds of e^x for a fraction x from 0 to 8, in fractions: a partial sum, and the most of the rest."""
    term = total = Fraction(1)
    for n in range(1, 80):
        term *= x / n
        total += term
    return down(total), up(total + term)  # the rest falls faster than by halves


def log_between(x):
    """Bounds of ln(x) for a fraction x >= 1, in fractions: 2 artanh((x - 1) / (x + 1))."""
    z = (x - 1) / (x + 1)
    low = high = Fraction(0)
    below, above = down(z), up(z)
    for n in range(1, 400, 2):
        low, high = low + down(2 * below / n), high + up(2 * above / n)
        below, above = down(below * z * z), up(above * z * z)
    return low, high + 2 * above / (401 * (1 - z * z))


@pytest.mark.claim("lem-range-exact")
@pytest.mark.parametrize(
    "eta", [Fraction(1, 64), Fraction(1, 4), Fraction(1), Fraction(9, 8), Fraction(2), Fraction(4)]
)
def test_the_exact_rho_of_a_range_in_fractions(eta):
    """Never below the number, and above by one part in 10^12 at most; the bounds are certified."""
    lows, highs = zip(*(log_between(e / eta - 1 / eta) for e in exp_between(eta)), strict=True)
    below, above = (eta / (e - 1) for e in reversed(exp_between(eta)))
    low, high = below - 1 + min(lows), above - 1 + max(highs)
    assert low <= high < low * (1 + Fraction(1, 10**15))
    assert high <= Fraction(rho_of_range(float(eta))) <= low * (1 + Fraction(1, 10**12))
    assert rho_of_range(float(eta)) < eta**2 / 8


@pytest.mark.claim(
    "lem-range-exact",
    verdict="proved",
    evidence="numerical",
    constant=r"$x - 1 - \ln x$, $x = \eta/(e^\eta - 1)$, attained as the order falls to 1",
)
@pytest.mark.parametrize("eta", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_no_laws_of_a_bounded_range_cost_more_and_two_outcomes_cost_that(eta):
    rho, rng = rho_of_range(eta), np.random.default_rng(0)
    orders = 1 + np.logspace(-4, 3, 400)
    worst = 0.0
    for t in np.linspace(0, eta, 200)[1:-1]:
        first = math.expm1(eta - t) / math.expm1(eta)  # under Q, of the outcome whose quotient is e^t
        q = np.array([first, 1 - first])
        p = q * np.exp([t, t - eta])
        assert p.sum() == pytest.approx(1)
        worst = max(worst, float((divergence(p, q, orders) / orders).max()))
    assert 0.999 * rho < worst <= rho * (1 + 1e-9)
    for _ in range(100):
        scores, change = rng.normal(0, 2, (2, rng.integers(2, 6)))
        change = (change - change.min()) / np.ptp(change)
        p, q = exponential_law(scores, eta), exponential_law(scores + change, eta)
        for a, b in ((p, q), (q, p)):
            assert (divergence(a, b, ORDERS) <= ORDERS * rho + 1e-12).all()


def test_the_exact_rho_of_no_range_and_of_any():
    assert rho_of_range(0.0) == 0
    assert rho_of_range(math.inf) == math.inf
    assert rho_of_range(1e-8) == pytest.approx(1e-16 / 8, rel=1e-12)
    assert rho_of_range(1e6) == pytest.approx(1e6 - 1 - math.log(1e6), rel=1e-12)
    for wrong in (-1.0, math.nan):
        with pytest.raises(ValueError, match="eta must be at least 0"):
            rho_of_range(wrong)


def test_what_the_exact_rho_would_save_a_ledger():
    ledger = Ledger(ADD_REMOVE, delta=1e-6)
    ledger.charge(0, 2.0**2 / 8, 0.0, "choose", "exponential")
    ledger.charge(0, 0.25, 0.5, "count", "discrete Gaussian")
    assert largest_range(ledger) == 2.0
    assert exactly(ledger).paid(ADD_REMOVE) == pytest.approx(0.25 + rho_of_range(2.0), rel=1e-12)
    assert exactly(ledger).paid(REPLACE_ONE) == 0.5
    assert ledger.paid(ADD_REMOVE) == 0.75
    with pytest.raises(ValueError, match="this ledger has losses"):
        largest_range(Ledger())


@pytest.mark.claim("lem-range-concentrated")
def test_permute_and_flip_is_not():
    rate = math.log(4)
    p, q = (permute_and_flip_law([at, -at], rate) for at in (0.25, -0.25))
    assert p == pytest.approx([0.75, 0.25])
    assert (divergence(p, q, ORDERS) / ORDERS).max() > 2 * rate**2 / 8


# -- the ledger ------------------------------------------------------------------------------------------------------


@pytest.mark.claim("def-concentrated")
@pytest.mark.claim(
    "thm-concentrated-path",
    verdict="proved",
    evidence="exhaustive",
    constant=r"the sum of $\rho$ along the most expensive path, attained by Gaussian answers",
)
@relations
def test_a_ledger_of_rhos_adds_up_along_paths(relation):
    """Four kinds of records, two levels: by hand, over all pairs that differ in one record."""
    ledger = Ledger(relation, delta=1e-6)
    rates = {"root": 0.01, "left": 0.02, "right": 0.005}
    tree = ledger.open("tree", [0], "partition")
    left, right = np.split(ledger.open("node", tree.repeat(2)), 2)
    scopes = {"root": np.array([0]), "left": left, "right": right}
    for name, rate in rates.items():
        ledger.charge(scopes[name], rate, 2 * rate, name, "discrete Gaussian")
    worst = 0.0
    ways = [None, *product((0, 1), repeat=2)]  # a record's child and its column of the histogram
    for one, other in product(ways, repeat=2):
        if one == other or (relation == ADD_REMOVE) != (None in (one, other)):
            continue
        cost = 0.0
        for name, rate in rates.items():
            change = np.zeros(2)
            for record, sign in ((one, -1), (other, 1)):
                if record is not None and (name == "root" or record[0] == (name == "right")):
                    change[record[1]] += sign
            cost += rate * (change @ change)
        worst = max(worst, cost)
    assert ledger.paid(relation) == pytest.approx(worst, rel=1e-12)
    assert ledger.epsilon == epsilon_of(ledger.paid(relation), 1e-6)


def test_what_a_ledger_with_a_delta_says():
    ledger = Ledger(ADD_REMOVE, delta=1e-6)
    ledger.charge(0, 0.02, 0.04, "count", "discrete Gaussian")
    assert "at delta = 1e-06, for a rho of 0.02; charges are rhos" in str(ledger)
    assert "for a rho of 0.02" in repr(ledger)
    for kind in ("bootstrap", "poisson-bootstrap", "equal-split"):
        with pytest.raises(ValueError, match="under a delta"):
            ledger.open("tree", [0], kind)
    ledger.leak("the size", "line 1")
    assert ledger.epsilon == math.inf


# -- records that are shared by coins --------------------------------------------------------------------------------


def power(p: list[Fraction], q: list[Fraction], order: int) -> Fraction:
    """The sum in Rényi's divergence, of a whole order."""
    return sum((x**order / y ** (order - 1) for x, y in zip(p, q, strict=True)), Fraction(0))


@pytest.mark.claim(
    "lem-concentrated-coins",
    verdict="proved",
    evidence="exhaustive",
    constant=r"the $\rho$ of the most expensive tree, approached by two noisy counts as the order grows",
)
@pytest.mark.parametrize("seed", range(30))
def test_what_the_same_coins_mix_costs_no_more_than_the_dearest(seed):
    rng = np.random.default_rng(seed)

    def law(n):
        weights = [int(w) for w in rng.integers(1, 12, n)]
        return [Fraction(w, sum(weights)) for w in weights]

    coins, other = law(3), law(3)
    ps, qs = ([law(4) for _ in coins] for _ in range(2))
    mixed = [[sum(w * each[o] for w, each in zip(coins, laws, strict=True)) for o in range(4)] for laws in (ps, qs)]
    for order in (2, 3, 7):
        worst = max(power(p, q, order) for p, q in zip(ps, qs, strict=True))
        assert power(*mixed, order) <= worst
        same = [
            [sum(w * each[o] for w, each in zip(coins, [p] * 3, strict=True)) for o in range(4)] for p in (ps[0], qs[0])
        ]
        assert power(*same, order) == power(ps[0], qs[0], order)
    # coins that look at the record: the same laws, and the mixture tells the worlds apart
    looks = [sum(w * each[o] for w, each in zip(other, ps, strict=True)) for o in range(4)]
    plain = [sum(w * each[o] for w, each in zip(coins, ps, strict=True)) for o in range(4)]
    assert power(looks, plain, 2) > 1


@pytest.mark.claim("lem-concentrated-coins")
def test_two_counts_approach_the_dearest_tree():
    rate, reach = 0.5, np.arange(-16, 17)
    still, moved = (discrete_gaussian_law(reach - d, rate) for d in (0, 1))
    without = np.outer(still, still)
    given = (np.outer(moved, still) + np.outer(still, moved)) / 2

    def mixed(order):
        """By the binomial series: the k-th moment of one count's quotient is exp(k (k - 1) rate)."""
        k = np.arange(order + 1)
        logs = special.gammaln(order + 1) - special.gammaln(k + 1) - special.gammaln(order - k + 1)
        logs += rate * (k * (k - 1) + (order - k) * (order - k - 1)) - order * math.log(2)
        return float(special.logsumexp(logs)) / (order - 1)

    for order in (2, 3, 4):
        direct = math.log(float((without * (given / without) ** order).sum())) / (order - 1)
        assert direct == pytest.approx(mixed(order), rel=1e-9)
    shares = [mixed(order) / (order * rate) for order in (2, 10, 100, 1000)]
    assert shares == sorted(shares)
    assert 0.998 < shares[-1] <= 1


@pytest.mark.claim(
    "thm-forest-delta",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$\rho$, attained at whole orders by noisy counts",
)
@relations
@pytest.mark.parametrize("order", [1.5, 2, 3])
def test_a_coupled_forest_costs_the_rhos_of_its_paths(relation, order):
    """Two trees of one leaf over all tables of at most three records; what the second is asked hangs on the first."""
    budget, right = 0.5, {ADD_REMOVE: 1, REPLACE_ONE: 2}[relation]
    noise = np.arange(-9, 13)
    universe = (0, 1)
    tables = [rows for n in (1, 2, 3) for rows in combinations_with_replacement(universe, n)]

    @cache
    def counted(records, cost):
        zeros, ones = (np.log(discrete_gaussian_law(noise - records.count(c), budget / cost)) for c in universe)
        return np.add.outer(zeros, ones)

    def labelled(records, range_):
        return np.log(exponential_law([records.count(0), records.count(1)], math.sqrt(8 * budget) / range_))

    @cache
    def forest(first, second, cost):
        """The logarithms of the law: the first number of the first answer decides what the second is."""
        counts, label = counted(first, cost), labelled(second, cost)
        then = np.add.outer(counts[noise > 0], counted(second, cost)), np.add.outer(counts[noise <= 0], label)
        return np.concatenate([law.ravel() for law in then])

    def divergence(p, q):
        return math.log(np.exp(order * p - (order - 1) * q).sum()) / (order - 1)

    def together(rows, _):
        return (tuple(sorted(rows)),) * 2

    def by_coins(rows, sides):
        return tuple(tuple(sorted(r for r, s in zip(rows, sides, strict=True) if s == side)) for side in (0, 1))

    def neighbours(see):
        """What the trees read, on both sides: the same records are met in many orders, and count once."""
        for rows in tables:
            for sides in product((0, 1), repeat=len(rows)):
                for place in range(len(rows)):
                    rest, left = rows[:place] + rows[place + 1 :], sides[:place] + sides[place + 1 :]
                    if relation == ADD_REMOVE:
                        yield see(rows, sides), see(rest, left)
                    else:
                        yield see(rows, sides), see((*rest, 1 - rows[place]), (*left, sides[place]))

    def worst(see, cost):
        pairs = {tuple(sorted(pair)) for pair in neighbours(see)}
        both = [(forest(*a, cost), forest(*b, cost)) for pair in pairs for a, b in (pair, pair[::-1])]
        return max(divergence(p, q) / order for p, q in both)

    all_, parts = worst(together, right), worst(by_coins, right)
    assert all_ <= 2 * budget * (1 + 1e-9)
    assert parts <= budget * (1 + 1e-9)
    if order == int(order):
        assert parts == pytest.approx(budget, rel=1e-9)
    # calibrated for records that come or go, it would cost twice as much where one is replaced
    if relation == REPLACE_ONE:
        assert worst(by_coins, 1) > 1.5 * budget


#: The forests of the theorem, with what a delta asks of their parameters.
FORESTS = [
    (RandomTreesClassifier, {}),
    (RandomTreesClassifier, {"split": "multiway"}),
    (RandomTreesRegressor, {}),
    (EDPRFClassifier, {"selection": "exponential"}),
    (EDPRFClassifier, {"selection": "exponential", "leaf": "label", "budget": "aligned-uniform"}),
    (DiffPETsClassifier, {"selection": "exponential"}),
    (DiffPETsClassifier, {"selection": "exponential", "sampling": "assignment", "leaf": "label"}),
    (DiffPETsRegressor, {"selection": "exponential"}),
    (DiffPETsRegressor, {"selection": "exponential", "sampling": "assignment"}),
    (DPsAdaBoostClassifier, {"selection": "exponential"}),
    (DPsAdaBoostClassifier, {"selection": "exponential", "sampling": "assignment", "votes": "discrete"}),
    (DPAdaBoostClassifier, {"selection": "exponential", "class_weight": {"yes": 0.5}}),
]
forests = pytest.mark.parametrize(("kind", "options"), FORESTS)


def for_delta(kind, options, **more):
    """The learner, and rows for it."""
    X, y = table(400)
    schema = MIXED
    if kind in (RandomTreesRegressor, DiffPETsRegressor):
        schema = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, target=(0, 1))
        y = (y == "yes").astype(float)
    asked = {"epsilon": 2.0, "delta": 1e-5, "n_estimators": 3, "random_state": 0, **options, **more}
    return kind(schema=schema, **asked), X, y


@pytest.mark.claim("thm-forest-delta")
@forests
@relations
def test_a_forest_spends_its_rho_and_says_so(kind, options, relation, tmp_path):
    learner, X, y = for_delta(kind, options, relation=relation)
    fitted = learner.fit(X, y)
    assert fitted.ledger_.paid(relation) == pytest.approx(rho_of(2.0, 1e-5), rel=1e-9)
    assert fitted.ledger_.epsilon == pytest.approx(2.0, rel=1e-9)
    assert not fitted.ledger_.leaks
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.delta) == (2.0, 1e-5)
    assert "two-sided geometric" not in str(fitted.ledger_)
    assert "permute-and-flip" not in str(fitted.ledger_)
    fitted.save(tmp_path / "model.json", seeded=True)
    again = released(json.loads((tmp_path / "model.json").read_text()))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    if relation == REPLACE_ONE:  # persons come and go
        return
    people = for_delta(kind, options, relation=relation)[0].fit(X, y, person=np.arange(len(X)) // 2, max_rows=2)
    assert (people.guarantee_.epsilon, people.guarantee_.delta, people.guarantee_.max_rows) == (2.0, 1e-5, 2)
    assert people.ledger_.paid(relation) == pytest.approx(rho_of(2.0, 1e-5) / 4, rel=1e-9)


@pytest.mark.claim("thm-forest-delta")
@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (EDPRFClassifier, {}, "no bounded range"),
        (DiffPETsClassifier, {}, "no bounded range"),
        (DiffPETsRegressor, {"selection": "exponential", "sampling": "poisson"}, "what copies cost under a delta"),
        (DPsAdaBoostClassifier, {}, "no bounded range"),
        (DPAdaBoostClassifier, {"selection": "exponential", "variant": "published"}, "published"),
        (EDPRFClassifier, {"variant": "published"}, "to the letter|no delta|published"),
        (RandomTreesClassifier, {"variant": "published"}, "published"),
    ],
)
def test_a_delta_is_refused_where_no_theorem_speaks_of_it(kind, options, words):
    learner, X, y = for_delta(kind, options)
    with Budget(2.0, delta=1e-5) as budget, pytest.raises(ValueError, match=words):
        learner.fit(X, y)
    assert budget.spent == 0


def noted(monkeypatch):
    """What every selection is made from, and its rate: of each row, by how many steps a candidate is behind."""
    asked = []

    def note(mechanism, behind, rate, chance):
        assert mechanism == "exponential"
        asked.append((np.array(behind, dtype=float), np.asarray(rate, dtype=float)))
        return np.zeros(len(behind), dtype=np.int64)

    monkeypatch.setattr(mechanisms, "select", note)
    return asked


@pytest.mark.claim("thm-forest-delta")
@relations
@pytest.mark.parametrize("query", ["feature", "candidate", "label"])
def test_every_selection_of_a_forest_has_the_range_that_is_charged(query, relation, monkeypatch):
    """By trying all pairs of small tables; a label attains it."""
    asked = noted(monkeypatch)
    kinds = list(product((0, 1), repeat=3))  # two features and the class

    def scores(records):
        """The scores of the candidates, times the rate, and what was charged."""
        asked.clear()
        *columns, labels = np.array(records, dtype=np.uint8).reshape(-1, 3).T
        ledger = Ledger(relation, delta=1e-6)
        asked_of = Curator(np.array(columns), labels.copy(), 2, np.array([2, 2]), chance=Seeded(0), ledger=ledger)
        splits, root = Growth(1, 2, 2, ledger, "sequential", 9), np.array([0])
        how = Selection(gini, "exponential")
        {
            "feature": lambda: asked_of.choose(
                FeatureCandidates(splits, root, np.ones((1, 2), dtype=bool)), root, 0.3, how
            ),
            "candidate": lambda: asked_of.choose(
                BinaryCandidates(
                    splits,
                    root,
                    np.array([[0, 1]], dtype=np.int32),
                    np.array([[[2, 0, 0, 0], [2, 0, 0, 0]]], dtype=np.uint64),
                ),
                root,
                0.3,
                how,
            ),
            "label": lambda: asked_of.choose(
                LabelCandidates(splits, root), root, 0.3, Selection(majority, "exponential")
            ),
        }[query]()
        [(behind, rate)] = asked
        return -behind[0, -2:] * rate.ravel()[0], ledger.paid(relation)  # before them stands *stop*, not asked for

    worst = 0.0
    for rows in combinations_with_replacement(kinds, 3):
        for new in kinds:
            other = (*rows[:-1], new) if relation == REPLACE_ONE else (*rows, new)
            (a, paid), (b, _) = scores(rows), scores(other)
            assert paid == pytest.approx(0.3, rel=1e-9)
            worst = max(worst, float(np.ptp(a - b)))
    assert worst**2 / 8 <= 0.3 * (1 + 1e-9)
    assert worst**2 / 8 > 0.3 * (1 - 1e-9 if query == "label" else 0.1)


def curator(ledger: Ledger) -> Curator:
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(0, 3, (2, 40)).astype(np.uint8), rng.integers(0, 2, 40).astype(np.uint8)
    return Curator(codes, labels, 2, np.array([3, 3]), chance=Seeded(0), ledger=ledger)


TABLES = Crossings.of([[(0, np.arange(3))], [(1, np.arange(3))]])


@pytest.mark.claim("lem-range-concentrated")
@pytest.mark.parametrize(("relation", "spread"), [(ADD_REMOVE, 2), (REPLACE_ONE, 4)])
def test_a_selection_is_drawn_at_the_range_that_its_rho_pays_for(relation, spread, monkeypatch):
    """The rate that the draw has, times the range of the utilities (lem-soft-gap), squared, over eight."""
    rates, ledger = [], Ledger(relation, delta=1e-6)

    def note(mechanism, scores, rate, chance):
        rates.append(float(rate[0]) * FINE)
        return np.zeros(len(scores), dtype=np.int64)

    monkeypatch.setattr(mechanisms, "select", note)
    asked = curator(ledger)
    asked.choose(TableCandidates(TABLES, np.array([1]), 1), np.array([0]), 0.3, Selection(mechanism="exponential"))
    [rate] = rates
    assert (rate * spread) ** 2 / 8 == pytest.approx(0.3, rel=1e-12)
    assert ledger.paid(relation) == pytest.approx(0.3, rel=1e-12)


@pytest.mark.claim("thm-private-boosting-delta")
@relations
@pytest.mark.parametrize(
    "query", ["classes", "three classes", "masses", "sizes", "sides", "three sides", "halves", "codes", "gradients"]
)
def test_every_query_of_the_flagship_costs_what_is_charged(query, relation, monkeypatch):
    """The rates that the noise has, times the largest squared change that one record makes, by trying all of them."""
    asked = []

    def note(counts, rate, chance):
        asked.append((np.array(counts, dtype=float), np.broadcast_to(rate, np.shape(counts))))
        return np.array(counts)

    monkeypatch.setattr(mechanisms, "discrete_gaussian", note)
    classes = {"classes": 2, "sides": 2, "three classes": 3, "three sides": 3, "codes": 2, "gradients": 3}.get(query, 0)
    labels = range(classes) if classes else (0, TARGET_LEVELS // 3, TARGET_LEVELS)
    kinds = [(code, label) for code in (0, 1) for label in labels]
    splits = Growth(1, 1, max(classes, 2), Ledger(relation, delta=1e-6), "sequential", 9)

    def answers(records):
        """What is released of these records, with the rates of its noise, and what was charged."""
        asked.clear()
        codes = np.array([[code for code, _ in records]], dtype=np.uint8)
        target = np.array([label for _, label in records], dtype=np.uint8)
        ledger = Ledger(relation, delta=1e-6)
        curator = Curator(codes, target, classes, np.array([2]), chance=Seeded(0), ledger=ledger)
        if query == "gradients":  # scores by which each record is of a class that it is not
            sure = Growth(1, 1, 3, Ledger(relation), "sequential", 9)
            sure.begin(0)
            sure.set_leaf_values(sure.frontier, np.array([[0, 0, 60 * SCALE]]))
            tree = sure.release().tree(0)
            curator.add_scores(tree, tree.values / SCALE)
        table, root = Crossings.of([[(0, np.arange(2))]]), np.array([0])
        cells = ledger.open("cell", ledger.open("tree", [0], "partition").repeat(2))
        {
            "classes": lambda: curator.noisy(ClassCounts(splits, root), root, 0.3),
            "three classes": lambda: curator.noisy(ClassCounts(splits, root), root, 0.3),
            "masses": lambda: curator.noisy(Masses(splits, root), root, 0.3),
            "sizes": lambda: curator.noisy(ResidualCounts(np.array([0.2, 0.7])), root, 0.3),
            "sides": lambda: curator.noisy(CellWeights(table, 1), cells, 0.3),
            "three sides": lambda: curator.noisy(CellWeights(table, 2), cells, 0.3),
            "halves": lambda: curator.noisy(CellWeights(table, 0.5), cells, 0.3),
            "codes": lambda: curator.count_children(splits, root, root, np.ones((1, 1), bool), 0.3, classes=False),
            "gradients": lambda: curator.noisy(CellGradients(table), cells, 0.3),
        }[query]()
        [(exact, rate)] = asked
        return exact, rate, ledger.paid(relation)

    others = [kinds[0], kinds[-1]]
    worst = 0.0
    for one, other in product([None, *kinds], repeat=2):
        if one == other or (relation == ADD_REMOVE) != (None in (one, other)):
            continue
        (a, rate, paid), (b, same, _) = (answers([*others, *[kind] * (kind is not None)]) for kind in (one, other))
        np.testing.assert_array_equal(rate, same)
        worst = max(worst, float((rate * (a - b) ** 2).sum()))
    assert paid == pytest.approx(0.3)
    assert worst == pytest.approx(0.3, rel=1e-9)


# -- the learner -----------------------------------------------------------------------------------------------------


def model(**parameters) -> PrivateBoostingClassifier:
    return PrivateBoostingClassifier(
        **{"epsilon": 2.0, "delta": 1e-5, "schema": MIXED, "random_state": 0, **parameters}
    )


@relations
@pytest.mark.parametrize("kind", [PrivateBoostingClassifier, PrivateBoostingRegressor])
def test_a_fit_spends_its_budget_and_says_so(kind, relation, tmp_path):
    X, y = table(6000)
    schema, given = MIXED, y
    if kind is PrivateBoostingRegressor:
        schema = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, target=(0, 1))
        given = (y == "yes").astype(float)
    fitted = kind(epsilon=2.0, delta=1e-5, schema=schema, relation=relation, random_state=0).fit(X, given)
    assert fitted.ledger_.epsilon == pytest.approx(2.0, rel=1e-9)
    assert fitted.ledger_.paid(relation) == pytest.approx(rho_of(2.0, 1e-5), rel=1e-9)
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.delta) == (2.0, 1e-5)
    assert str(fitted.guarantee_).startswith("(2, 1e-05)-differentially private under")
    fitted.save(tmp_path / "model.json", seeded=True)
    again = released(json.loads((tmp_path / "model.json").read_text()))
    assert again.guarantee_ == fitted.guarantee_
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_what_a_delta_means_is_explained():
    text = Guarantee(1.0, ADD_REMOVE, delta=1e-6).explain()
    assert "(1, 1e-06)-differentially private" in text
    assert "1e-06 more" in text
    assert Guarantee(1.0, ADD_REMOVE, delta=1e-6).delta_of_rows(3) == pytest.approx(1e-6 * (1 + math.e + math.e**2))
    assert Guarantee(500.0, ADD_REMOVE, delta=1e-6).delta_of_rows(9) == 1
    assert Guarantee(1.0, ADD_REMOVE).delta_of_rows(9) == 0
    assert Guarantee(math.inf, ADD_REMOVE).delta_of_rows(3) == 0
    assert Guarantee(math.inf, ADD_REMOVE, delta=1e-6).delta_of_rows(1) == 1e-6
    assert Guarantee(math.inf, ADD_REMOVE, delta=1e-6).delta_of_rows(3) == 1
    said = repr(Guarantee(1.0, ADD_REMOVE, delta=1e-6))
    assert "k times epsilon, and delta_of_rows(k)" in said
    assert "k times that" not in said
    assert "2 for two" not in text
    assert "3.72e-06 for two" in text
    assert "adds its loss and its delta" in text
    assert "1e-06" not in Guarantee(1.0, ADD_REMOVE).explain()


def test_a_file_cannot_hide_its_delta():
    honest = model(n_estimators=3).fit(*table(200)).to_dict(seeded=True)
    assert honest["format"] == 3
    released(honest)
    pure = model(delta=0.0).fit(*table(200)).to_dict(seeded=True)
    assert pure["format"] == 2
    assert "delta" not in pure["guarantee"]
    for number, change in (
        (2, {}),
        (3, {"delta": 0.0}),
        (3, {"delta": 0.5}),
        (3, {"delta": -1e-6}),
        (3, {"delta": "1e-6"}),
        (3, {"delta": None}),
        (3, {"delta": 1}),
    ):
        lie = {**honest, "format": number, "guarantee": {**honest["guarantee"], **change}}
        with pytest.raises((ValueError, TypeError), match=r"delta|format"):
            released(lie)
    without = {name: value for name, value in honest["guarantee"].items() if name != "delta"}
    with pytest.raises(ValueError, match="delta"):
        released({**honest, "guarantee": without})


def test_a_delta_asks_for_a_bounded_range():
    with pytest.raises(ValueError, match="no bounded range"):
        model(selection="permute-and-flip").fit(*table(50))
    explicit, auto = (
        model(selection=name, n_estimators=3).fit(*table(300)).to_dict(seeded=True) for name in ("exponential", "auto")
    )
    assert explicit == auto
    pure = [
        model(delta=0.0, selection=name).fit(*table(300)).to_dict(seeded=True) for name in ("permute-and-flip", "auto")
    ]
    assert pure[0] == pure[1]


def test_a_fit_without_noise_has_none():
    fitted = model(epsilon="non-private").fit(*table(300))
    assert fitted.ledger_.epsilon == math.inf
    assert fitted.score(*table(300)) > 0.8


def test_queries_of_which_no_theorem_speaks_are_refused():
    from dpforest import DiffPC45Classifier

    asked = curator(Ledger(ADD_REMOVE, delta=1e-6))
    with pytest.raises(ValueError, match="under a delta"):
        asked.sum_products(None, None)
    with pytest.raises(ValueError, match="no bounded range"):
        asked.choose(TableCandidates(TABLES, np.array([1]), 1), np.array([0]), 0.1, Selection())
    with pytest.raises(ValueError, match="no bounded range"):
        # past the check of the parameters
        model(selection="permute-and-flip", n_rows=10, n_estimators=1).replay(
            np.zeros((2, 4), dtype=np.uint8), np.zeros(4, dtype=np.uint8), MIXED, 1.0, Seeded(0)
        )
    assert "delta" not in DiffPC45Classifier.PARAMETERS
