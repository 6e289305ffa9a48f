"""One run: no guess beats the binomial, in exact fractions; the bound inverts its tail; and the auditor finds leaks."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, permutations, product

import numpy as np
import oracle
import pytest
from scipy.optimize import brentq, linprog
from scipy.sparse import lil_matrix
from scipy.special import ndtr
from scipy.stats import binom, norm

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema
from dpforest.audit.attacks.onerun import (
    OneRunAudit,
    one_run,
    one_run_bound,
    one_run_mu_bound,
    one_run_p_value,
    one_run_profile,
    one_run_rho_bound,
)
from dpforest.curator.queries import ClassCounts
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.growth import Growth
from dpforest.privacy import RELATIONS
from dpforest.privacy.concentrated import epsilon_of

relations = pytest.mark.parametrize("relation", RELATIONS)
HALF = Fraction(1, 2)
DELTAS = np.geomspace(1e-8, 0.1, 15).tolist()
SMALL = Schema(categorical={"a": list(range(10)), "b": list(range(10))}, classes=["n", "y"])
WIDE = Schema(categorical={"a": list(range(40)), "b": list(range(25))}, classes=["n", "y"])


def tail(n: int, p: Fraction, v: int) -> Fraction:
    """P[Bin(n, p) >= v], term by term."""
    return sum((math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(max(v, 0), n + 1)), start=Fraction(0))


# -- the theorem, over every rule of guessing ------------------------------------------------------------------------


def responses(coins, base):
    """Each coin answered by randomised response of its own."""
    return oracle.independent(*(oracle.noisy_bit(bool(coin), base) for coin in coins))


def cells(coins, base):
    """A canary per leaf, and the noisy count of each leaf."""
    return oracle.noisy_histogram(coins, base, 2)


def pooled(coins, base):
    """All canaries in one leaf: they hide each other."""
    return oracle.noisy_count(sum(coins), base, len(coins) + 1)


def chosen(coins, base):
    """Permute-and-flip between the canaries: the outputs are not independent of each other."""
    return dict(enumerate(oracle.permute_and_flip(oracle.acceptance(coins, base))))


def first_or_all(coins, base):
    """An answer about the first coin decides whether the others are asked at all: abstention that looks at outputs."""
    said = {}
    for answer, p in oracle.noisy_bit(bool(coins[0]), base).items():
        law = responses(coins[1:], base) if answer else {"silent": Fraction(1)}
        said |= {(answer, output): p * q for output, q in law.items()}
    return said


def tally(mechanism, m: int, base):
    """For every output: the joint probability with each outcome of the m fair coins."""
    joint: dict = {}
    for coins in product((0, 1), repeat=m):
        for output, p in mechanism(coins, base).items():
            joint.setdefault(output, {})[coins] = p * HALF**m
    return joint


def loss_of(mechanism, m: int, base) -> Fraction:
    """e to the loss: the worst ratio between laws that differ in one coin."""
    laws = {coins: mechanism(coins, base) for coins in product((0, 1), repeat=m)}
    return max(
        oracle.worst_ratio(laws[coins], laws[(*coins[:i], 1 - coins[i], *coins[i + 1 :])])
        for coins in laws
        for i in range(m)
    )


def no_rule_beats_the_binomial(mechanism, m: int, base) -> list[bool]:
    """Check every guess after every output; returns for each output whether some guess of all coins attains."""
    loss = loss_of(mechanism, m, base)
    p = loss / (1 + loss)
    attained = []
    for weights in tally(mechanism, m, base).values():
        total = sum(weights.values())
        attained.append(False)
        for guess in product((-1, 0, 1), repeat=m):  # out, pass, in
            made = sum(g != 0 for g in guess)
            law = [Fraction(0)] * (made + 1)
            for coins, weight in weights.items():
                law[sum(g == 2 * coin - 1 for g, coin in zip(guess, coins, strict=True) if g)] += weight / total
            for v in range(made + 1):
                assert sum(law[v:]) <= tail(made, p, v)
            attained[-1] |= made == m and all(sum(law[v:]) == tail(m, p, v) for v in range(m + 1))
    return attained


@pytest.mark.claim(
    "thm-one-run",
    verdict="proved",
    evidence="exhaustive",
    constant=r"right guesses are dominated by $\mathrm{Bin}(r, e^\eps/(1 + e^\eps))$, attained by randomised response",
)
@pytest.mark.parametrize("base", [2, 3])
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("mechanism", [responses, cells, pooled, chosen, first_or_all])
def test_no_rule_of_guessing_beats_the_binomial(mechanism, m, base):
    """Given any output, and whatever is guessed or passed over after it, right guesses are dominated, in fractions."""
    attained = no_rule_beats_the_binomial(mechanism, m, base)
    loss = loss_of(mechanism, m, base)
    assert loss == (base if m > 1 or mechanism is not chosen else 1)  # one candidate is no choice
    if mechanism in (responses, cells):
        assert all(attained)  # the sharp constant, at every output
    if mechanism is pooled and m > 1:
        assert not all(attained)  # canaries that share a leaf show less


@pytest.mark.claim("thm-one-run")
def test_replace_one_is_a_choice_between_two_records():
    """The coin decides a canary's class in a leaf whose two counts have half the rate each."""

    def mechanism(coins, base):
        counts = [count for coin in coins for count in (1 - coin, coin)]
        return oracle.noisy_histogram(counts, base, 2)

    assert loss_of(mechanism, 2, 2) == 4  # two counts move
    no_rule_beats_the_binomial(mechanism, 2, 2)


# -- the bound -------------------------------------------------------------------------------------------------------


@pytest.mark.claim("thm-one-run")
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("guesses", [1, 5, 40])
def test_the_bound_is_where_the_tail_is_the_error(guesses, confidence):
    alpha = Fraction(1 - confidence)
    previous = 0.0
    for correct in range(guesses + 1):
        bound = one_run_bound(correct, guesses, confidence)
        assert bound >= previous
        if bound > 0:
            odds = Fraction(math.exp(bound))
            assert float(tail(guesses, odds / (1 + odds), correct)) == pytest.approx(float(alpha), rel=1e-9)
        else:  # nothing is refuted, not even a loss of zero
            assert tail(guesses, HALF, correct) >= alpha * (1 - Fraction(1, 10**9))
        previous = bound


@pytest.mark.claim("thm-one-run")
@pytest.mark.parametrize("loss", [Fraction(1), Fraction(3, 2), Fraction(5)])
@pytest.mark.parametrize("guesses", [3, 30, 61])
def test_a_true_loss_is_exceeded_as_seldom_as_promised(guesses, loss):
    """At the sharp mechanism the number of right guesses is binomial, so the error is known exactly."""
    p = loss / (1 + loss)
    for confidence in (0.8, 0.95):
        above = [v for v in range(guesses + 1) if one_run_bound(v, guesses, confidence) > math.log(loss) + 1e-12]
        assert tail(guesses, p, min(above, default=guesses + 1)) <= 1 - Fraction(confidence)
        if above and above[0] > 0:  # and one right guess fewer would already err too often
            assert tail(guesses, p, above[0] - 1) > 1 - Fraction(confidence)


def test_bounds_at_the_ends():
    assert one_run_bound(0, 0) == 0
    assert one_run_bound(0, 10) == 0
    assert one_run_bound(5, 10) == 0
    p = 0.05 ** (1 / 10)
    assert one_run_bound(10, 10) == pytest.approx(math.log(p / (1 - p)), rel=1e-12)
    assert one_run_bound(10**6, 10**6) == pytest.approx(12.718, abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((11, 10), "more right guesses than guesses: 11 of 10"),
        ((-1, 10), "correct must be a whole number"),
        ((1.5, 10), "correct must be a whole number"),
        ((1, 10, 1.0), "confidence must lie strictly between"),
        ((1, 10, 0), "confidence must lie strictly between"),
    ],
)
def test_counts_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        one_run_bound(*arguments)


# -- with a delta ----------------------------------------------------------------------------------------------------


def worst_tail(v: int, r: int, m: int, ratio, delta: Fraction) -> Fraction:
    """What the theorem says, term by term."""
    p = Fraction(ratio) / (1 + Fraction(ratio))
    beta, at = tail(r, p, v), math.comb(r, v) * p**v * (1 - p) ** (r - v)
    return min(Fraction(1), beta + m * delta * beta * (1 - beta) / (v * at))


def delta_of_coins(mechanism, m: int, ratio) -> Fraction:
    """The least delta of a mechanism at e^epsilon = ratio, over all coins and both values of each."""
    laws = {coins: mechanism(coins) for coins in product((0, 1), repeat=m)}
    return max(
        oracle.beyond(laws[coins], laws[(*coins[:i], 1 - coins[i], *coins[i + 1 :])], ratio)
        for coins in laws
        for i in range(m)
    )


def at_least(mechanism, m: int, v: int, r: int) -> Fraction:
    """P[V >= v] of the best rule that makes r guesses: after each output the best coins and the best guesses."""
    most: dict = {}
    for coins in product((0, 1), repeat=m):
        for output, p in mechanism(coins).items():
            for which in combinations(range(m), r):
                for guess in product((0, 1), repeat=r):
                    if sum(coins[i] == g for i, g in zip(which, guess, strict=True)) >= v:
                        rules = most.setdefault(output, {})
                        rules[which, guess] = rules.get((which, guess), Fraction(0)) + p * HALF**m
    return sum((max(rules.values()) for rules in most.values()), start=Fraction(0))


def worst_of(v: int, r: int, m: int, ratio, share: Fraction):
    """The mechanism of the proof: r random coins, answered at odds ``ratio``; with ``share``, at least v are right."""
    p = Fraction(ratio) / (1 + Fraction(ratio))
    beta = tail(r, p, v)

    def mechanism(coins):
        law: dict = {}
        for which in combinations(range(m), r):
            for right in product((False, True), repeat=r):
                k = sum(right)
                weight = p**k * (1 - p) ** (r - k) * (1 - share + (share / beta if k >= v else 0))
                said = tuple(coins[i] if ok else 1 - coins[i] for i, ok in zip(which, right, strict=True))
                law[which, said] = law.get((which, said), Fraction(0)) + weight / math.comb(m, r)
        return law

    return mechanism


WORST = [(v, r, m) for m in (1, 2, 3, 4) for r in range(1, m + 1) for v in range(1, r + 1)]


@pytest.mark.claim(
    "thm-one-run-delta",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$\beta + m\delta\,\beta(1 - \beta)/(v f_v)$, attained",
)
@pytest.mark.parametrize("ratio", [1, 2, 5])
@pytest.mark.parametrize(("v", "r", "m"), WORST)
def test_the_worst_tail_is_attained(v, r, m, ratio):
    """In fractions: the mechanism of the proof has the least delta that the theorem says, and its tail is met."""
    p = Fraction(ratio) / (1 + Fraction(ratio))
    beta, at = tail(r, p, v), math.comb(r, v) * p**v * (1 - p) ** (r - v)
    for share in (Fraction(0), Fraction(1, 7), Fraction(1)):
        mechanism = worst_of(v, r, m, ratio, share)
        delta = delta_of_coins(mechanism, m, ratio)
        assert delta == share * v * at / (m * beta)
        assert at_least(mechanism, m, v, r) == worst_tail(v, r, m, ratio, delta) == beta + share * (1 - beta)
        shipped = one_run_p_value(v, r, math.log(ratio), delta=float(delta), canaries=m) if delta < 1 else None
        assert shipped is None or shipped == pytest.approx(float(beta + share * (1 - beta)), rel=1e-12)


def program(v: int, r: int, m: int, ratio: float, delta: float) -> float:
    """The largest P[V >= v] of an (epsilon, delta)-private mechanism that says r guesses, by a linear program."""
    states = list(product((0, 1), repeat=m))
    outputs = [(which, said) for which in combinations(range(m), r) for said in product((0, 1), repeat=r)]
    pairs = [(a, b) for a, b in permutations(range(len(states)), 2) if np.not_equal(states[a], states[b]).sum() == 1]
    n, size = len(outputs), len(states) * len(outputs)
    above = lil_matrix((len(pairs) * (n + 1), size + len(pairs) * n))  # by how much an output exceeds ratio times other
    limit = np.zeros(len(pairs) * (n + 1))
    for k, (a, b) in enumerate(pairs):
        for o in range(n):
            row, excess = k * (n + 1) + o, size + k * n + o
            above[row, a * n + o], above[row, b * n + o], above[row, excess] = 1, -ratio, -1
            above[k * (n + 1) + n, excess] = 1
        limit[k * (n + 1) + n] = delta
    whole = lil_matrix((len(states), size + len(pairs) * n))
    gain = np.zeros(size + len(pairs) * n)
    for a, coins in enumerate(states):
        for o, (which, said) in enumerate(outputs):
            whole[a, a * n + o] = 1
            gain[a * n + o] = -(sum(coins[i] == g for i, g in zip(which, said, strict=True)) >= v) / len(states)
    found = linprog(gain, above.tocsr(), limit, whole.tocsr(), np.ones(len(states)), method="highs")
    assert found.status == 0
    return -found.fun


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("delta", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("ratio", [1.0, 1.7, 5.0])
@pytest.mark.parametrize(("v", "r", "m"), [case for case in WORST if case[2] < 4 or case[1] == 2])
def test_no_mechanism_beats_the_worst_tail(v, r, m, ratio, delta):
    """All mechanisms at once, by linear programming, which knows nothing of the proof: the largest tail is the same."""
    exact = float(worst_tail(v, r, m, Fraction(ratio), Fraction(delta)))
    assert program(v, r, m, ratio, delta) == pytest.approx(exact, abs=1e-7)
    assert one_run_p_value(v, r, math.log(ratio), delta=delta, canaries=m) == pytest.approx(exact, rel=1e-12)


def told_all(coins, base, chance):
    """Randomised response of each coin, and with a small chance the coins themselves."""
    law = {("noisy", output): (1 - chance) * p for output, p in responses(coins, base).items()}
    return law | {("exact", coins): chance}


def told_one(coins, base, chance):
    """Randomised response of each coin, and with a chance for each coin that coin itself in the place of the rest."""
    law = {("noisy", output): (1 - len(coins) * chance) * p for output, p in responses(coins, base).items()}
    return law | {(i, coin): chance for i, coin in enumerate(coins)}


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("leak", [told_all, told_one])
@pytest.mark.parametrize("m", [2, 3])
def test_exceptions_are_covered_and_the_tail_without_a_delta_is_not(leak, m):
    """With all that can be guessed after each output: the theorem holds, and the pure binomial tail is broken."""
    chance, broken = Fraction(1, 20), 0
    mechanism = partial(leak, base=2, chance=chance)
    assert delta_of_coins(mechanism, m, 2) == chance
    for r in range(1, m + 1):
        for v in range(1, r + 1):
            found = at_least(mechanism, m, v, r)
            assert found <= worst_tail(v, r, m, 2, chance)
            broken += found > tail(r, Fraction(2, 3), v)
    assert broken


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize(("v", "r", "m"), [(1, 1, 2), (2, 2, 3), (2, 3, 4)])
def test_a_smaller_constant_is_broken(v, r, m):
    """Half the delta, or the guesses in the place of the canaries: the mechanism of the proof is above either."""
    mechanism = worst_of(v, r, m, 2, Fraction(1, 7))
    delta = delta_of_coins(mechanism, m, 2)
    found = at_least(mechanism, m, v, r)
    assert found == worst_tail(v, r, m, 2, delta)
    assert found > worst_tail(v, r, m, 2, delta / 2)
    assert found > worst_tail(v, r, r, 2, delta)


@pytest.mark.claim("thm-one-run-delta")
def test_a_number_of_guesses_that_the_output_decides_breaks_it():
    """Three coins at odds 2: with 3/5 one coin is told, and guessed alone; else all three are guessed."""
    m, delta = 3, Fraction(1, 5)
    mechanism = partial(told_one, base=2, chance=delta)
    assert delta_of_coins(mechanism, m, 2) == delta
    alpha = max(worst_tail(2, 3, m, 2, delta), worst_tail(1, 1, m, 2, delta))
    alarms = Fraction(3, 5) + Fraction(2, 5) * tail(3, Fraction(2, 3), 2)  # one of one, or two of three and more
    assert alarms > alpha


@pytest.mark.claim("thm-one-run-delta")
def test_coins_that_are_unfair_or_depend_on_each_other_break_it():
    """A mechanism that says nothing, of loss 0, and coins of 3/4; randomised response, and one coin for all."""
    assert Fraction(3, 4) > worst_tail(1, 1, 1, 1, Fraction(0))
    m, p = 3, Fraction(2, 3)
    most = tail(m, p, 2)  # two of three answers are right: then the guess of all three by the majority is
    assert most > worst_tail(m, m, m, 2, Fraction(0)) == p**m


@pytest.mark.claim("thm-one-run-delta")
def test_replace_one_with_a_delta_is_a_choice_between_two_records():
    """The canary's class in a leaf of two noisy counts, at odds 2 each, and with 1/50 the classes themselves."""

    def mechanism(coins):
        counts = [count for coin in coins for count in (1 - coin, coin)]
        law = {output: Fraction(49, 50) * p for output, p in oracle.noisy_histogram(counts, 2, 2).items()}
        return law | {("exact", coins): Fraction(1, 50)}

    m = 2
    assert delta_of_coins(mechanism, m, 4) == Fraction(1, 50)
    for r in (1, 2):
        for v in range(1, r + 1):
            assert at_least(mechanism, m, v, r) <= worst_tail(v, r, m, 4, Fraction(1, 50))
    assert at_least(mechanism, m, 1, 1) > worst_tail(1, 1, m, 2, Fraction(1, 50))  # and two counts move


def steinke(v: int, r: int, m: int, ratio, delta: Fraction) -> Fraction:
    """The bound of Steinke, Nasr and Jagielski: beta + 2 m delta max_i P[v > K >= v - i] / i."""
    p = Fraction(ratio) / (1 + Fraction(ratio))
    beta = tail(r, p, v)
    return beta + 2 * m * delta * max((tail(r, p, v - i) - beta) / i for i in range(1, v + 1))


@pytest.mark.parametrize("ratio", [1, Fraction(3, 2), 8])
@pytest.mark.parametrize(("r", "m"), [(1, 1), (4, 9), (20, 20), (60, 500)])
def test_the_exact_tail_is_below_the_published_bound_where_something_is_refuted(r, m, ratio):
    """Wherever the binomial tail is at most one half; and there the code that ships agrees with the fractions."""
    p = Fraction(ratio) / (1 + Fraction(ratio))
    counts = [v for v in range(1, r + 1) if tail(r, p, v) <= HALF]
    for v in counts[:: max(1, len(counts) // 7)]:
        for delta in (Fraction(1, 10**6), Fraction(1, 10**3), Fraction(1, 50)):
            exact = worst_tail(v, r, m, ratio, delta)
            assert exact < steinke(v, r, m, ratio, delta)
            shipped = one_run_p_value(v, r, math.log(ratio), delta=float(delta), canaries=m)
            assert shipped == pytest.approx(float(exact), rel=1e-9)


def test_the_published_bound_is_exceeded_far_below_the_mean():
    """Three coins, and any string but the complement, each with 1/7: epsilon 0, delta 1/7, and one is always right."""

    def mechanism(coins):
        return {said: Fraction(1, 7) for said in product((0, 1), repeat=3) if said != tuple(1 - c for c in coins)}

    delta = delta_of_coins(mechanism, 3, 1)
    assert delta == Fraction(1, 7)
    assert at_least(mechanism, 3, 1, 3) == worst_tail(1, 3, 3, 1, delta) == 1
    assert steinke(1, 3, 3, 1, delta) == Fraction(55, 56)


def test_the_published_bound_at_its_own_example():
    """Appendix D: 75 of 100 right, 1,000 canaries, delta 1e-4, 95 %; they prove 0.673, and the exact tail more."""
    assert float(steinke(75, 100, 1000, Fraction(math.exp(0.673)), Fraction(1, 10**4))) == pytest.approx(0.05, abs=5e-5)
    assert 0.673 < one_run_bound(75, 100, delta=1e-4, canaries=1000) < one_run_bound(75, 100)


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.01])
@pytest.mark.parametrize(("guesses", "canaries"), [(5, 5), (40, 100)])
def test_the_bound_with_a_delta_inverts_the_worst_tail(guesses, canaries, delta):
    previous = 0.0
    for correct in range(guesses + 1):
        bound = one_run_bound(correct, guesses, 0.9, delta=delta, canaries=canaries)
        assert previous <= bound <= one_run_bound(correct, guesses, 0.9)
        if bound > 0:
            odds = Fraction(math.exp(bound))
            exact = float(worst_tail(correct, guesses, canaries, odds, Fraction(delta)))
            assert exact == pytest.approx(0.1, rel=1e-9)
        elif correct:
            assert worst_tail(correct, guesses, canaries, 1, Fraction(delta)) > Fraction(1, 10) * (
                1 - Fraction(1, 10**9)
            )
        previous = bound


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("loss", [Fraction(1), Fraction(2), Fraction(3)])
def test_the_bound_with_a_delta_is_exceeded_as_seldom_as_promised(loss):
    """The law of V at each mechanism of the proof is known; the bound without the delta is exceeded too often."""
    r, m, delta = 12, 30, Fraction(1, 200)
    p = loss / (1 + loss)
    least = next(v for v in range(r + 1) if tail(r, p, v) < Fraction(1, 10))
    alpha = tail(r, p, least) + Fraction(1, 10**6)  # all of the error is used without a delta

    def first_above(**options):
        """The least number of right guesses whose bound exceeds the loss."""
        bounds = (one_run_bound(v, r, 1 - float(alpha), **options) for v in range(r + 1))
        return next((v for v, bound in enumerate(bounds) if bound > math.log(loss)), r + 1)

    pure, exact = first_above(), first_above(delta=float(delta), canaries=m)
    assert pure == least < exact
    alarms = {pure: Fraction(0), exact: Fraction(0)}
    for v in range(1, r + 1):  # the mechanism that makes v right guesses likely
        beta, at = tail(r, p, v), math.comb(r, v) * p**v * (1 - p) ** (r - v)
        share = min(Fraction(1), m * delta * beta / (v * at))
        for start in alarms:
            found = (1 - share) * tail(r, p, start) + share * tail(r, p, max(start, v)) / beta
            alarms[start] = max(alarms[start], found)
    assert alarms[exact] <= alpha < alarms[pure]


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("leak", [told_all, told_one])
def test_all_pairs_of_epsilon_and_delta_hold_at_once(leak):
    """The least of the tails over many ratios, each with the delta that it needs, is above what can be guessed."""
    m, mechanism = 3, partial(leak, base=4, chance=Fraction(1, 30))
    pairs = [(ratio, delta_of_coins(mechanism, m, ratio)) for ratio in (1, 2, 3, 4, 8)]
    least_by = set()
    for r in range(1, m + 1):
        for v in range(1, r + 1):
            tails = {ratio: worst_tail(v, r, m, ratio, delta) for ratio, delta in pairs}
            assert at_least(mechanism, m, v, r) <= min(tails.values())
            least_by.add(min(tails, key=tails.get))
    assert 4 in least_by
    assert min(delta for _, delta in pairs) == Fraction(1, 30)


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("rho", [0.02, 0.3])
@pytest.mark.parametrize(("guesses", "canaries"), [(40, 40), (200, 1000)])
def test_the_p_value_of_a_rho_is_the_least_over_deltas(guesses, canaries, rho):
    """At the best delta the epsilon is that of fifty digits, and the tail that of fractions; no other gives less."""
    correct = guesses * 9 // 10
    found = one_run_p_value(correct, guesses, rho=rho, canaries=canaries)
    tails = {
        delta: one_run_p_value(correct, guesses, epsilon_of(rho, delta), delta=delta, canaries=canaries)
        for delta in np.geomspace(1e-8, 0.1, 15)
    }
    delta = min(tails, key=tails.get)
    epsilon = epsilon_of(rho, delta)
    assert float(oracle.delta_of(rho, epsilon)) == pytest.approx(delta, rel=1e-6)
    exact = worst_tail(correct, guesses, canaries, Fraction(math.exp(epsilon)), Fraction(delta))
    assert found == tails[delta] == pytest.approx(float(exact), rel=1e-9)
    assert 0 < found < 1


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("rho", [0.05, 0.5])
def test_a_rho_is_exceeded_as_seldom_as_promised(rho):
    """Gaussian noise of each coin, all guessed: right guesses are binomial, and the bound follows half the noise."""
    n, alpha = 300, 0.05
    law = binom(n, ndtr(0.5 * math.sqrt(2 * rho)))
    values = range(n // 2, n + 1)  # the p-value falls with v
    above = values[bisect_left(values, True, key=lambda v: one_run_p_value(v, n, rho=rho, canaries=n) <= alpha)]
    assert law.sf(above - 1) <= alpha
    assert one_run_rho_bound(above, n, n) >= rho > one_run_rho_bound(above - 1, n, n)
    assert 0 < one_run_rho_bound(int(law.mean()) + 40, n, n) < one_run_rho_bound(int(law.mean()) + 50, n, n)
    assert one_run_rho_bound(n // 2, n, n) == 0


@cache
def epsilon_of_mu(mu: float, delta: float) -> float:
    """The least epsilon of two normal laws whose means are mu apart, by summing up the excess of a density."""
    x = np.linspace(-9, 9 + mu, 20_001)
    far, near = norm.pdf(x, mu), norm.pdf(x)

    def excess(epsilon: float) -> float:
        return float(np.maximum(far - math.exp(epsilon) * near, 0).sum() * (x[1] - x[0]))

    return brentq(lambda epsilon: excess(epsilon) - delta, 0, 12)


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("mu", [0.3, 1.0])
@pytest.mark.parametrize(("guesses", "canaries"), [(40, 40), (200, 1000)])
def test_the_p_value_of_a_mu_is_the_least_over_deltas(guesses, canaries, mu):
    """At the best delta the epsilon is that of the two densities, and the tail that of fractions."""
    correct = guesses * 9 // 10
    found = one_run_p_value(correct, guesses, mu=mu, canaries=canaries)
    tails = {}
    for delta in DELTAS:
        epsilon = epsilon_of_mu(mu, delta)
        exact = worst_tail(correct, guesses, canaries, Fraction(math.exp(epsilon)), Fraction(delta))
        tails[delta] = float(exact)
    assert found == pytest.approx(min(tails.values()), rel=1e-3)
    assert 0 < found < 1


@pytest.mark.claim("thm-one-run-delta")
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_a_mu_and_a_profile_are_exceeded_as_seldom_as_promised(mu):
    """Gaussian noise of each coin, all guessed: of all bounds together one is wrong with probability at most alpha."""
    n, alpha = 300, 0.05
    law = binom(n, ndtr(mu / 2))

    def wrong(v: int) -> bool:
        return any(
            bound > epsilon_of_mu(mu, delta) for delta, bound in one_run_profile(v, n, n).itertuples(index=False)
        )

    values = range(n // 2, n + 1)
    first = values[bisect_left(values, True, key=wrong)]
    assert 0 < law.sf(first - 1) <= alpha
    above = values[bisect_left(values, True, key=lambda v: one_run_p_value(v, n, mu=mu, canaries=n) <= alpha)]
    assert above == first  # one delta is refuted if and only if the mu is
    assert one_run_mu_bound(above, n, n) >= mu > one_run_mu_bound(above - 1, n, n)
    assert one_run_mu_bound(n // 2, n, n) == 0
    # what is said of a Gaussian alone is more than what a rho of mu^2 / 2 says
    assert one_run_mu_bound(above, n, n) > math.sqrt(2 * one_run_rho_bound(above, n, n))


def test_a_profile_has_the_bound_of_each_delta():
    found = one_run_profile(174, 200, 1000, 0.9)
    np.testing.assert_allclose(found.delta, DELTAS)
    for delta, bound in found.itertuples(index=False):
        assert bound == one_run_bound(174, 200, 0.9, delta=delta, canaries=1000)
    audit = OneRunAudit(1.0, 1.0, False, 174, 200, 1000, None, 0.9, "add-remove", 1e-6)
    assert audit.profile().equals(found)
    assert audit.mu_lower == one_run_mu_bound(174, 200, 1000, 0.9)
    chosen = OneRunAudit(1.0, 1.0, False, 174, 200, 1000, 180, 0.9, "add-remove")
    for ask in (chosen.profile, lambda: chosen.mu_lower):
        with pytest.raises(ValueError, match="the number of guesses must be fixed before the run"):
            ask()


def test_what_a_mu_needs_is_asked_for():
    with pytest.raises(TypeError, match="claim, rho or mu, and no two of them"):
        one_run_p_value(7, 10, 1.0, mu=1.0, canaries=10)
    with pytest.raises(TypeError, match="claim, rho or mu, and no two of them"):
        one_run_p_value(7, 10, rho=1.0, mu=1.0, canaries=10)
    with pytest.raises(ValueError, match=r"a mu has no delta; got mu = 1\.0 with delta = 0\.1"):
        one_run_p_value(7, 10, delta=0.1, mu=1.0, canaries=10)
    with pytest.raises(ValueError, match="mu must be finite, zero or more; got nan"):
        one_run_p_value(7, 10, mu=math.nan, canaries=10)
    with pytest.raises(TypeError, match="mu must be a number, of Gaussian differential privacy; got str"):
        one_run_p_value(7, 10, mu="1", canaries=10)
    with pytest.raises(ValueError, match="give canaries"):
        one_run_p_value(7, 10, mu=1.0)
    assert one_run_p_value(7, 10, mu=0.0, canaries=10) >= float(tail(10, HALF, 7))


def test_what_a_delta_needs_is_asked_for():
    with pytest.raises(ValueError, match="with a delta or a rho it counts how many canaries there were"):
        one_run_bound(7, 10, delta=1e-6)
    with pytest.raises(ValueError, match="with a delta or a rho it counts how many canaries there were"):
        one_run_p_value(7, 10, rho=0.1)
    with pytest.raises(TypeError, match="claim or rho, and not both"):
        one_run_p_value(7, 10, 1.0, rho=0.1, canaries=10)
    with pytest.raises(ValueError, match="more guesses than canaries: 10 of 9"):
        one_run_bound(7, 10, delta=1e-6, canaries=9)
    with pytest.raises(ValueError, match="delta must be at least 0 and below 1"):
        one_run_bound(7, 10, delta=1.0, canaries=10)
    with pytest.raises(ValueError, match="claim must be a finite epsilon"):
        one_run_p_value(7, 10, math.inf)
    assert one_run_bound(7, 10, 0.9, delta=0.0, canaries=50) == one_run_bound(7, 10, 0.9)
    assert one_run_p_value(0, 10, 1.0, delta=0.1, canaries=10) == 1
    assert one_run_p_value(1, 10**6, 30.0, delta=1e-9, canaries=10**6) == 1
    assert one_run_p_value(10**6, 10**6, 0.0) == 0
    assert one_run_bound(10**5, 10**5, delta=1e-12, canaries=10**5) == pytest.approx(10.4, abs=0.1)


# -- the audit -------------------------------------------------------------------------------------------------------


def random_trees(schema=SMALL, **options):
    return RandomTreesClassifier(schema=schema, **{"n_estimators": 1, "max_depth": 2, "split": "multiway"} | options)


def edprf(schema=SMALL, **options):
    return EDPRFClassifier(
        schema=schema, **{"n_estimators": 1, "max_depth": 2, "stop": "never", "leaf": "label"} | options
    )


class Leaky(RandomTreesClassifier):
    """Claims epsilon and counts its leaves at eight times the rate."""

    def replay(self, codes, labels, schema, epsilon, chance, door=None):
        return super().replay(codes, labels, schema, 8 * epsilon, chance, door)


class Open(PrivateForestClassifier):
    """Claims epsilon and releases the exact counts of the cells of its first feature."""

    def __init__(self, epsilon=1.0, schema=None, relation="add-remove"):
        self.epsilon, self.schema, self.relation = epsilon, schema, relation
        self.variant, self.n_bins, self.n_jobs, self.source, self.random_state = "proved", 2, None, "seeded", None

    def _learn(self, run):
        growth = Growth(1, run.schema.n_features, run.schema.n_classes, run.ledger, "sequential")
        leaves = growth.add_children(growth.frontier, [0], run.curator.cardinalities[:1])
        growth.set_leaf_values(leaves, run.curator.peek(ClassCounts(growth, leaves.nodes), ("counts", "this test")))
        return growth.release()


@relations
@pytest.mark.parametrize("leaf", ["counts", "label"])
@pytest.mark.parametrize("trees", [1, 3])
def test_every_leaf_that_is_a_cell_isolates(relation, leaf, trees):
    models = [
        edprf(relation=relation, leaf=leaf, n_estimators=trees),
        random_trees(relation=relation, n_estimators=trees),
    ]
    for model in models:
        audit = one_run(model, n_canaries=100, random_state=0)
        assert (audit.canaries, audit.isolated, audit.relation) == (100, 100, relation)
        assert 0 < audit.guesses <= 100
        assert audit.epsilon_lower == one_run_bound(audit.correct, audit.guesses, 0.95)


@relations
def test_a_sound_learner_is_seldom_accused(relation):
    """Of 60 audits at 95 % more than 10 false alarms have probability below 1e-4; the seeds are fixed."""
    audits = [one_run(random_trees(relation=relation), n_canaries=100, random_state=seed) for seed in range(60)]
    assert sum(audit.violated for audit in audits) <= 10
    assert np.median([audit.epsilon_lower for audit in audits]) > 0.3  # and it is not silent


@pytest.mark.claim("thm-one-run")
def test_the_median_bound_grows_with_the_canaries():
    """Every geometric count is a randomised response, so no guess is wasted: 0.88 of a loss of 1 at 1,000 canaries."""
    bounds = [one_run(random_trees(WIDE), n_canaries=1000, random_state=seed).epsilon_lower for seed in range(40)]
    expected = one_run_bound(731, 1000)  # the median of Bin(1000, e / (1 + e))
    assert expected == pytest.approx(0.88, abs=0.005)
    assert np.median(bounds) == pytest.approx(expected, abs=0.06)


@relations
def test_broken_learners_are_found(relation):
    audit = one_run(
        Leaky(schema=SMALL, n_estimators=1, max_depth=2, split="multiway", relation=relation), n_canaries=100
    )
    assert audit.violated
    assert audit.epsilon_lower > 2
    assert "VIOLATED" in str(audit)
    many = Schema(categorical={"a": list(range(200))}, classes=[0, 1])
    exact = one_run(Open(schema=many, relation=relation), n_canaries=150, random_state=1)
    assert exact.correct == exact.guesses == 150
    assert exact.epsilon_lower == one_run_bound(150, 150) > 3


def test_abstentions_where_two_counts_disagree():
    """Under replace-one a leaf whose counts say opposite things says nothing, and is passed over."""
    audit = one_run(random_trees(WIDE, relation="replace-one"), n_canaries=1000, random_state=0)
    agree = (math.e + 1) / (math.exp(0.5) + 1) ** 2 * 1000  # (p^2 + q^2) with p / q = e^(1/2)
    assert abs(audit.guesses - agree) < 80  # five standard deviations
    assert audit.guesses < 1000


def test_a_label_that_agrees_says_less_than_one_that_does_not():
    """With labels, out is the sure guess: at 1,000 canaries the auditor passes over the others."""
    audit = one_run(edprf(WIDE, epsilon=3.0), n_canaries=1000, random_state=3)
    assert audit.guesses < 600
    counts = one_run(edprf(WIDE, epsilon=3.0, leaf="counts"), n_canaries=1000, random_state=3)
    assert counts.guesses == 1000


def test_the_same_seed_gives_the_same_audit():
    one, same, other = (one_run(random_trees(), n_canaries=50, random_state=seed) for seed in (7, 7, 8))
    assert one == same
    assert one != other
    assert (
        one_run(random_trees(random_state=99), n_canaries=50, random_state=7) == one
    )  # the model's own seed is not used


def test_shared_leaves_are_passed_over():
    """A tree of one split on 100 cells: ten leaves of ten canaries each isolate nobody; of fifteen canaries, some."""
    shallow = random_trees(max_depth=1)
    with pytest.raises(ValueError, match="no leaf isolates a canary"):
        one_run(shallow, n_canaries=100, random_state=0)
    few = one_run(shallow, n_canaries=15, random_state=0)
    assert 0 < few.isolated < 15
    assert few.guesses <= few.isolated


def test_no_privacy_is_no_claim():
    audit = one_run(random_trees(epsilon="non-private"), n_canaries=100, random_state=0)
    assert audit.correct == audit.guesses == 100
    assert not audit.violated
    assert audit.claim == math.inf
    assert audit.to_dict()["claim"] is None


def test_the_report():
    audit = OneRunAudit(0.5, 1.0, False, 70, 100, 120, 110, 0.95, "add-remove")
    assert str(audit) == (
        "eps >= 0.5 with 95 % confidence under add-remove (claim 1: not refuted) from one run: "
        "70 of 100 guesses right, 120 canaries, 110 isolated"
    )
    assert json.loads(json.dumps(audit.to_dict()))["guesses"] == 100


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(ValueError, match="101 canaries need cells of their own, and the schema has 100"):
        one_run(random_trees(), n_canaries=101)
    with pytest.raises(ValueError, match="n_canaries must be a whole number"):
        one_run(random_trees(), n_canaries=0)
    with pytest.raises(ValueError, match="confidence must lie strictly between"):
        one_run(random_trees(), n_canaries=10, confidence=95)
    with pytest.raises(ValueError, match="needs schema="):
        one_run(RandomTreesClassifier(), n_canaries=10)
    with pytest.raises(ValueError, match="stop='purity' reads the data without a charge"):
        one_run(edprf(stop="purity"), n_canaries=10)
    with pytest.raises(TypeError, match="count your own guesses and use one_run_bound"):
        one_run(object(), n_canaries=10)


def test_a_universe_too_large_to_list_is_no_obstacle():
    wide = Schema(categorical={f"f{i}": [0, 1] for i in range(70)}, classes=[0, 1])
    audit = one_run(random_trees(wide, max_depth=8, split="auto"), n_canaries=20, random_state=0)
    assert 0 < audit.isolated <= 20
