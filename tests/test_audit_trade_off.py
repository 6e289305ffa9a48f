"""A claimed rho, and whole trade-off curves: what is refuted, what is not, and how often the bounds are wrong.

All draws are seeded, so that every outcome here is the same on every run.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, norm

from dpforest.audit import empirical, rho_lower, rho_p_value, trade_off
from dpforest.audit.sampling.bounds import clopper_pearson, least_type_two, rho_of_event, rho_of_events
from dpforest.audit.sampling.trade_off import TradeOff
from tests import oracle

ERROR = 0.05
KNOWN = 10**9  # so many draws leave no doubt of a probability
EXCESS = np.geomspace(1e-4, 900, 2000)  # of orders over 1
EPSILON = 2.0  # of permute-and-flip below: the scores of two candidates change by one, in opposite directions
SCORES = (0, 2), (1, 1)


def flip_law(scores):
    """Permute-and-flip at rate 1, a loss of 2, by the oracle: in fractions, but for the exponentials."""
    accept = [Fraction(math.exp(score - max(scores))) for score in scores]
    return dict(enumerate(oracle.permute_and_flip(accept)))


def drawn(laws):
    """A sampler of known laws."""

    def sample(dataset, size, rng):
        law = laws[dataset]
        chances = np.array([float(chance) for chance in law.values()])
        return rng.choice(list(law), size, p=chances / chances.sum())

    return sample


flip = drawn({scores: flip_law(scores) for scores in SCORES})
RATE = 1 / 8
gaussian = drawn({centre: oracle.gaussian(RATE, 15, centre) for centre in (0, 1)})  # beyond 15 lies 1e-12


def true_rho(p, q):
    """The largest divergence over its order of two laws, dicts, in either direction."""
    return max(rho_towards(p, q), rho_towards(q, p))


def rho_towards(p, q):
    """The largest divergence over its order of one law from another."""
    a, b = (np.log([float(law[o]) for o in p]) for law in (p, q))
    return float((logsumexp(a + EXCESS[:, None] * (a - b), axis=1) / EXCESS / (1 + EXCESS)).max())


def bit(p):
    return {1: p, 0: 1 - p}


def share_missed(bound, p, q, n, m):
    """How probable counts are of which the bound exceeds the rho of the event alone, by a sum over all of them."""
    rho = rho_towards(bit(p), bit(q))
    known = m >= KNOWN
    rows = [(round(m * q), 1.0)] if known else [(y, binom.pmf(y, m, q)) for y in range(m + 1)]
    wrong = sum(c * binom.pmf(x, n, p) for y, c in rows for x in range(n + 1) if bound(x, n, y, m) > rho)
    return float(wrong)


# -- a rho from counts -------------------------------------------------------------------------------------------------


@pytest.mark.claim("lem-event-rho")
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.5, 0.4), (0.9, 0.3), (0.1, 0.02), (0.02, 0.01), (0.97, 0.9)])
def test_the_bound_on_a_rho_is_wrong_in_no_more_than_its_share(p, q):
    """Over all counts of twelve draws on either side, where many orders could be wrong at once."""
    if p > q:
        assert share_missed(lambda *counts: rho_lower(*counts, 1 - ERROR), p, q, 12, 12) <= ERROR
    else:
        wrong = [(x, y) for x in range(13) for y in range(13) if rho_lower(x, 12, y, 12, 1 - ERROR) > 0]
        assert wrong
        assert sum(binom.pmf(x, 12, p) * binom.pmf(y, 12, q) for x, y in wrong) <= ERROR


@pytest.mark.claim("lem-event-rho")
def test_each_end_has_half_of_the_error_and_no_less():
    """Where one side is known, what is left is one end: its worst probability takes nearly half, and never more."""
    places = np.arange(8, 20)
    ends = [clopper_pearson(places, 20, 1 - error)[0] - 1e-3 for error in (ERROR / 2, ERROR)]  # just below: the worst

    def worst(bound):
        return max(share_missed(bound, p, 0.1, 20, KNOWN) for p in np.concatenate(ends).tolist())

    assert 0.8 * ERROR / 2 < worst(lambda *counts: rho_lower(*counts, 1 - ERROR)) <= ERROR / 2

    def careless(x, n, y, m):  # the whole error at either end
        low, high = clopper_pearson([x, y], [n, m], 1 - ERROR)
        return rho_of_event(float(low[0]), float(high[1]))

    assert worst(careless) > 0.8 * ERROR


def test_swapped_ends_and_swapped_counts_would_show():
    def hopeful(x, n, y, m):  # the upper end of the one, the lower of the other
        low, high = clopper_pearson([x, y], [n, m], 1 - ERROR / 2)
        return rho_of_event(float(high[0]), float(low[1]))

    assert share_missed(hopeful, 0.5, 0.4, 12, 12) > 0.9
    assert rho_lower(500, 1000, 70, 1000) > 0.5
    assert rho_lower(70, 1000, 500, 1000) == 0


def test_the_p_value_is_the_error_at_which_the_claim_falls():
    counts = 500, 1000, 200, 1000
    for rho in (0.12, 0.16, 0.2):
        p = rho_p_value(*counts, rho)
        assert rho_lower(*counts, 1 - 1.001 * p) > rho >= rho_lower(*counts, 1 - 0.999 * p)
    assert rho_p_value(200, 1000, 500, 1000, 0.1) == 1
    valid = [(x, y) for x in range(9) for y in range(9) if rho_p_value(x, 8, y, 8, 0.0) <= 0.3]
    assert 0.02 < sum(binom.pmf(x, 8, 0.5) * binom.pmf(y, 8, 0.5) for x, y in valid) <= 0.3


def test_many_events_at_once_have_the_rho_of_each():
    """And at whole orders what the oracle adds up in fractions."""
    p, q = np.array([0.5, 0.9, 1.0, 0.2, 0.7]), np.array([0.1, 0.3, 0.5, 0.4, 0.0])
    assert rho_of_events(p, q).tolist() == [rho_of_event(*each) for each in zip(p, q, strict=True)]
    for order in (2, 3, 7):
        for one, other in zip(p[:3], q[:3], strict=True):
            two = bit(Fraction(float(one))), bit(Fraction(float(other)))
            exact = math.log(oracle.moment(*two, order)) / (order - 1) / order
            assert float(rho_of_events(one, other, np.array([float(order)]))) == pytest.approx(exact, rel=1e-12)


# -- a claimed rho -----------------------------------------------------------------------------------------------------


@pytest.mark.claim("lem-event-rho")
def test_permute_and_flip_is_no_bounded_range_mechanism():
    """Sold at epsilon^2 / 8 it is refuted, whichever data set is first; at epsilon^2 / 2 never."""
    assert EPSILON**2 / 8 < true_rho(*map(flip_law, SCORES)) < EPSILON**2 / 2
    for pair in (SCORES, SCORES[::-1]):
        sold = empirical(flip, pair, rho=EPSILON**2 / 8, n=4000, random_state=0)
        assert sold.violated
        assert sold.p_value < 1e-3
        assert sold.rho_lower > EPSILON**2 / 8
        assert sold.claim == math.inf
    for seed in range(20):
        assert not empirical(flip, SCORES, rho=EPSILON**2 / 2, n=1000, random_state=seed).violated


@pytest.mark.claim("lem-event-rho")
def test_gaussian_noise_keeps_its_rho_and_no_much_smaller_one():
    """The discrete Gaussian has exactly its rate: at whole orders, by the oracle's law."""
    laws = [oracle.gaussian(RATE, 60, centre) for centre in (0, 1)]
    inside = [{k: law[k] for k in range(-50, 51)} for law in laws]
    assert float(oracle.moment(*inside, 2).ln() / 2) == pytest.approx(RATE, rel=1e-9)
    for seed in range(20):
        assert not empirical(gaussian, (0, 1), rho=RATE, n=1000, random_state=seed, events="thresholds").violated
    for pair in ((0, 1), (1, 0)):
        assert empirical(gaussian, pair, rho=0.5 * RATE, n=40_000, random_state=0, events="thresholds").violated


def test_events_are_chosen_for_their_rho():
    """A rare output has the larger ratio, and a frequent one the larger divergence over its order."""
    laws = {0: dict(enumerate([0.0005, 0.15, 0.8495])), 1: dict(enumerate([0.01, 0.6, 0.39]))}
    by_rho = empirical(drawn(laws), (0, 1), rho=1.0, n=20_000, random_state=0)
    by_ratio = empirical(drawn(laws), (0, 1), 1.0, n=20_000, random_state=0)
    assert by_rho.rho_lower > 1.2 * by_ratio.rho_lower
    assert by_rho.epsilon_lower < by_ratio.epsilon_lower


def test_an_audit_accuses_a_rho_that_holds_in_no_more_than_its_share(monkeypatch):
    """200 runs of one bit, at its exact rho; the error in the place of the confidence would show."""
    laws = {0: bit(0.3), 1: bit(0.7)}
    rho, sample = true_rho(*laws.values()), drawn(laws)

    def accused():
        kwargs = {"rho": rho, "n": 60, "confidence": 1 - ERROR, "events": "atoms"}
        return np.mean([empirical(sample, (0, 1), random_state=seed, **kwargs).violated for seed in range(200)])

    assert accused() <= ERROR
    module = sys.modules["dpforest.audit.sampling.empirical"]  # as an attribute the name is the function's
    monkeypatch.setattr(module, "rho_lower", lambda *given: rho_lower(*given[:4], ERROR))
    assert accused() > 3 * ERROR


def test_known_laws_and_pairs_to_choose_from_serve_a_rho_as_well():
    """The best likelihood-ratio set is that of the larger score; of two pairs the one that differs is taken."""
    laws = {scores: flip_law(scores) for scores in SCORES}
    pairs = [("alike", SCORES[0], SCORES[0]), ("unlike", *SCORES)]
    found = empirical(flip, pairs, rho=0.5, n=4000, random_state=0, law=laws.__getitem__, events="classifier")
    assert found.violated
    assert found.pair == "unlike"
    assert found.event.startswith("log-likelihood ratio")


def test_words_numbers_and_figure_of_a_claimed_rho():
    import matplotlib.pyplot as plt

    found = empirical(flip, SCORES, rho=0.5, n=4000, random_state=0)
    assert str(found).startswith("rho >= 0.6")
    assert "(claim 0.5: VIOLATED)" in str(found)
    kept = json.loads(found.to_json())
    assert (kept["rho"], kept["claim"], kept["rho_lower"]) == (0.5, "inf", found.rho_lower)
    assert "rho" not in empirical(flip, SCORES, 2.0, n=400, random_state=0).to_dict()
    assert f"{found.rho_lower:.3g} as a bar next to the claim 0.5" in found.alt
    made = found.plot()
    assert made.axes[0].get_xlabel().startswith("rho")
    widths = [bar.get_width() for bar in made.axes[1].patches]
    rare = min(high for _, high in found.intervals)
    assert widths == pytest.approx([1 - float(least_type_two(rare, rho=0.5))])
    plt.close(made)


def test_the_lowest_bits_have_a_rho_as_well():
    found = empirical(
        lambda centre, size, rng: rng.normal(centre, 1, size), (0.0, 1.0), rho=0.5, n=2000, random_state=0
    )
    assert found.violated
    assert found.on_grid is not None
    assert not found.on_grid.violated
    assert found.on_grid.rho == 0.5
    assert f"{found.on_grid.rho_lower:.4g}, not refuted" in str(found)


@pytest.mark.parametrize("ask", [empirical, trade_off])
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, TypeError, "claim must be a number"),
        ({"claim": 1.0, "rho": 1.0}, TypeError, "not both"),
        ({"rho": "1"}, TypeError, "rho must be a number"),
        ({"rho": True}, TypeError, "rho must be a number"),
        ({"rho": -1.0}, ValueError, "zero or more"),
        ({"rho": math.inf}, ValueError, "finite"),
        ({"rho": 1.0, "delta": 0.1}, ValueError, "a rho has no delta"),
    ],
)
def test_promises_without_a_meaning_are_refused(ask, given, error, words):
    with pytest.raises(error, match=words):
        ask(flip, SCORES, n=100, random_state=0, **given)


def test_a_rho_is_audited_by_fixed_draws_and_a_curve_on_one_pair():
    for method in ("sharp", "betting"):
        with pytest.raises(ValueError, match="with a rho use 'fixed'"):
            empirical(flip, SCORES, rho=1.0, n=100, method=method)
    with pytest.raises(ValueError, match="trade_off looks at one pair"):
        trade_off(flip, [SCORES, SCORES], rho=1.0, n=100)


# -- curves of claims --------------------------------------------------------------------------------------------------


@pytest.mark.claim("lem-trade-off-band")
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 8)])
def test_an_epsilon_and_a_delta_allow_exactly_their_curve(delta):
    """It is the trade-off of the two laws that need them, by Neyman and Pearson; no claim, no curve."""
    factor = Fraction(3)
    most, least = (1 - delta) * factor / (1 + factor), (1 - delta) / (1 + factor)
    one, other = (dict(enumerate(law)) for law in ((delta, most, least, 0), (0, least, most, delta)))
    errors = [Fraction(k, 24) for k in range(25)]
    exact = [float(oracle.least_type_two(one, other, a)) for a in errors]
    assert least_type_two(list(map(float, errors)), math.log(3), float(delta)) == pytest.approx(exact, abs=1e-12)
    assert least_type_two([0.0, 0.5, 1.0]).tolist() == [1.0, 0.0, 0.0]
    assert least_type_two([0.0, 0.5, 1.0], 0.0).tolist() == [1.0, 0.5, 0.0]


@pytest.mark.claim("lem-trade-off-band")
@pytest.mark.parametrize("rho", [0.01, 0.5, 3.0])
def test_the_curve_of_a_rho_lies_between_its_conversions_and_gaussian_noise(rho):
    """Below Gaussian noise of that rho, above all pairs of epsilon and delta; the same on either side; and sharp."""
    a = np.linspace(0.01, 0.99, 25)
    curve = least_type_two(a, rho=rho)
    assert (curve <= norm.cdf(norm.ppf(1 - a) - math.sqrt(2 * rho)) + 1e-12).all()
    epsilons = rho + np.linspace(-1, 5, 20) * math.sqrt(2 * rho)
    pairs = [(e, min(1.0, float(oracle.delta_of(rho, e)))) for e in epsilons.tolist() if e > 0]
    converted = np.max([least_type_two(a, *pair) for pair in pairs], axis=0)
    assert (curve >= converted - 1e-9).all()
    assert (curve > converted + 1e-3).any()
    assert least_type_two(curve, rho=rho) == pytest.approx(a, abs=1e-6)
    for one, other in zip(a.tolist(), curve.tolist(), strict=True):
        if other > 1e-9:
            assert true_rho(bit(one), bit(1 - other)) == pytest.approx(rho, rel=1e-3)
    assert least_type_two([0.0, 1.0], rho=rho) == pytest.approx([1.0, 0.0], abs=1e-15)
    assert least_type_two([0.2], rho=0.0) == pytest.approx([0.8])


# -- the band ----------------------------------------------------------------------------------------------------------


def band(hits, n, confidence=1 - ERROR, **promised):
    names = tuple(f"test {at}" for at in range(len(hits)))
    kept = {"claim": math.inf, "delta": 0.0, "rho": None} | promised
    return TradeOff(tests=names, hits=tuple(hits), n=n, confidence=confidence, pair="made up", **kept)


@pytest.mark.claim(
    "lem-trade-off-band",
    verdict="proved",
    evidence="exhaustive",
    constant=r"the trade-off function of an event, $a \mapsto 1 - q$ at $a = p$, for each of the counted events",
)
@pytest.mark.parametrize(("p", "q"), [(0.1, 0.5), (0.02, 0.9), (0.4, 0.45), (0.5, 0.5)])
def test_the_band_misses_in_no_more_than_its_share_over_all_counts(p, q):
    """One event, twelve draws: it lies nowhere below Neyman and Pearson's curve, in all but the promised share."""
    n, two = 12, (bit(Fraction(p)), bit(Fraction(q)))
    at = [float(oracle.least_type_two(*two, Fraction(k, 50))) for k in range(51)]
    wrong = careless = 0.0
    for x in range(n + 1):
        for y in range(n + 1):
            chance = binom.pmf(x, n, p) * binom.pmf(y, n, q)
            found = band([(x, y)], n)
            wrong += chance * bool((found.type_two(np.arange(51) / 50) < np.array(at) - 1e-12).any())
            low = replace(found, confidence=0.05)  # for the error, its complement
            careless += chance * bool((low.type_two(np.arange(51) / 50) < np.array(at) - 1e-12).any())
    assert wrong <= ERROR
    assert careless > ERROR


def test_several_tests_share_the_error_and_make_a_convex_band():
    one, three = band([(10, 60)], 100), band([(10, 60), (40, 90), (50, 50)], 100)
    assert (three.upper[0] > one.upper[0]).all()
    assert three.upper[0] == pytest.approx(clopper_pearson([10, 40], 100, 1 - ERROR / 6)[1])
    corners = three.vertices
    assert corners[[0, -1]].tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert len(corners) == 4  # the third guesses
    slopes = np.diff(corners[:, 1]) / np.diff(corners[:, 0])
    assert (np.diff(slopes) > 0).all()
    assert three.type_two(three.upper[:2, 0]) == pytest.approx(three.upper[:2, 1])
    assert len(band([(10, 60), (30, 65)], 1000).vertices) == 3  # the second lies above the line to (1, 0)


def test_a_band_refutes_where_it_lies_below_the_curve():
    hits, n = [(70, 500), (500, 930)], 1000
    for promised in ({"claim": 1.5}, {"claim": 1.0, "delta": 0.1}, {"rho": 0.3}):
        found = band(hits, n, **promised)
        assert found.violated == bool((found.vertices[:, 1] < found.allowed(found.vertices[:, 0])).any())
        assert found.violated
    proved = band(hits, n)
    kept = [{"claim": proved.epsilon_lower}, {"rho": proved.rho_lower}]
    kept.append({"delta": 0.1, "claim": band(hits, n, delta=0.1).epsilon_lower})
    for promised in kept:
        found = band(hits, n, **promised)
        assert not found.violated
        corners = found.vertices
        assert (corners[:, 1] >= found.allowed(corners[:, 0]) - 1e-9).all()
        assert (corners[1:-1, 1] <= found.allowed(corners[1:-1, 0]) + 1e-9).any()  # and touches it
    turned = band([(n - y, n - x) for x, y in hits], n)  # the roles of the errors change
    assert turned.epsilon_lower == pytest.approx(proved.epsilon_lower)
    assert turned.rho_lower == pytest.approx(proved.rho_lower)
    assert band([(50, 50)], 100).epsilon_lower == band([(50, 50)], 100).rho_lower == 0


def test_the_band_of_a_mechanism_holds_in_its_share_of_runs(monkeypatch):
    """150 runs at half confidence on five outputs, against the exact curve; without the sharing it would fail."""
    laws = {0: dict(enumerate([0.4, 0.3, 0.15, 0.1, 0.05])), 1: dict(enumerate([0.05, 0.15, 0.3, 0.2, 0.3]))}
    errors = np.linspace(0, 1, 41)
    exact = np.array([oracle.least_type_two(laws[0], laws[1], a) for a in errors.tolist()])
    sample = drawn(laws)
    runs = [trade_off(sample, (0, 1), 1.0, n=100, confidence=0.5, random_state=seed) for seed in range(150)]

    def missed():
        return np.mean([(run.type_two(errors) < exact - 1e-9).any() for run in runs])

    assert missed() <= 0.5
    monkeypatch.setattr(TradeOff, "upper", property(lambda found: clopper_pearson(found._mistakes, found.n, 0.5)[1]))
    assert missed() > 0.5


def test_what_was_chosen_on_some_draws_is_counted_on_others():
    """Of 300 tickets half are less likely by one half: the draws that they were chosen on would show more than that."""

    def tickets(dataset, size, rng):
        drawn = rng.integers(0, 150, size)
        return [f"ticket {number}" for number in drawn + 150 * (rng.random(size) < (0.5 if dataset else 0.25))]

    assert not any(trade_off(tickets, (0, 1), math.log(2), n=2000, random_state=seed).violated for seed in range(10))


def test_the_band_comes_down_to_the_exact_curve():
    laws = {centre: oracle.gaussian(RATE, 15, centre) for centre in (0, 2)}
    found = trade_off(drawn(laws), (0, 2), rho=4 * RATE, n=50_000, random_state=0)
    errors = np.linspace(0.05, 0.95, 19)
    inside = [{k: float(v) for k, v in law.items()} for law in laws.values()]
    exact = np.array([oracle.least_type_two(*inside, a) for a in errors.tolist()])
    assert (found.type_two(errors) >= exact).all()
    assert found.type_two(errors) == pytest.approx(exact, abs=0.03)
    assert (exact >= found.allowed(errors)).all()
    assert not found.violated
    assert trade_off(drawn(laws), (0, 2), rho=2 * RATE, n=50_000, random_state=0).violated


def test_curves_of_permute_and_flip():
    """At its loss and at half of that squared it is left alone; at less it is refuted, whichever data set is first."""
    for pair in (SCORES, SCORES[::-1]):
        sold = trade_off(flip, pair, rho=EPSILON**2 / 8, n=10_000, random_state=0)
        assert sold.violated
        assert trade_off(flip, pair, 1.5, n=10_000, random_state=0).violated
        for seed in range(10):
            assert not trade_off(flip, pair, EPSILON, n=500, random_state=seed).violated
            assert not trade_off(flip, pair, rho=EPSILON**2 / 2, n=500, random_state=seed).violated


def test_tests_are_found_for_vectors_and_words():
    def pairs(centre, size, rng):
        return rng.integers(0, 8, (size, 2)) + centre * np.array([1, -1])

    found = trade_off(pairs, (0, 2), 1.0, n=2000, random_state=0)
    assert found.violated
    one = trade_off(
        lambda at, size, rng: list(map("ab".__getitem__, rng.integers(0, 2, size))), (0, 1), 0.1, n=200, random_state=0
    )
    assert not one.violated
    assert one.type_two(0.3) == pytest.approx(0.7)


def test_words_table_and_figure_of_a_band():
    import matplotlib.pyplot as plt

    found = trade_off(flip, ("one more", *SCORES), rho=0.5, n=5000, random_state=0)
    assert "rho = 0.5: VIOLATED; with 95 % confidence, on pair one more, n = 5000 per side" in str(found)
    assert found.relation is None
    assert "that the pair is one of neighbours was not checked" in str(found)

    def count(data, size, rng):
        return len(data) + rng.geometric(0.5, size) - rng.geometric(0.5, size)

    checked = trade_off(count, ((), (1,)), rho=0.5, n=1000, relation="add-remove", random_state=0)
    assert checked.relation == "add-remove"
    assert "not checked" not in str(checked)
    assert len(found.table) == len(found.tests)
    np.testing.assert_allclose(found.errors, np.array(found.hits) / 5000 * [1, -1] + [0, 1])
    assert f"{float(found.type_two(0.5)):.3g} there, and lies below" in found.alt
    assert '"' not in found.alt
    made = found.plot()
    claimed, upper, _ = made.axes[0].lines
    np.testing.assert_allclose(upper.get_xydata(), found.vertices)
    np.testing.assert_allclose(claimed.get_ydata(), found.allowed(claimed.get_xdata()))
    assert made.axes[0].get_title(loc="left") == "claim refuted"
    plt.close(made)
    kept = band([(10, 12)], 100, claim=1.0, delta=0.01)
    assert "eps = 1, delta = 0.01: not refuted" in str(kept)
    plt.close(kept.plot())


def test_the_same_seed_gives_the_same_band():
    one, other, third = (trade_off(flip, SCORES, 1.0, n=300, random_state=seed) for seed in (0, 0, 1))
    assert one == other
    assert one.hits != third.hits
