"""Executable proofs of the chapter *Mechanisms*: laws, privacy and error of selections and of noisy counts."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import oracle
import pytest
import sympy
import z3
from scipy import stats

from dpforest import mechanisms, scores
from dpforest.chance import Replay, Secure, Seeded
from dpforest.privacy import RELATIONS

BASES = [Fraction(2), Fraction(4, 3), Fraction(3)]
VECTORS = [v for candidates in (2, 3, 4) for v in product(range(4), repeat=candidates)]
PAIRS = [
    (mechanisms.exponential_law, oracle.exponential),
    (mechanisms.permute_and_flip_law, oracle.permute_and_flip),
]
both = pytest.mark.parametrize(("law", "exact"), PAIRS, ids=["exponential", "permute-and-flip"])


def close(found, exact) -> bool:
    """Within rounding: twelve digits."""
    return math.isclose(found, exact, rel_tol=1e-12)


def rate_of(base) -> float:
    return math.log(base)


def library_worst(law, vector, rate, spread: int) -> float:
    """The library's own worst ratio at a score vector over all profiles of score changes of that range."""
    moved = np.array(vector) + np.array(oracle.changes(len(vector), spread))
    before, after = law(vector, rate), law(moved, rate)
    return float(max((before / after).max(), (after / before).max()))


def proved(*claims) -> bool:
    """Whether Z3 finds no counterexample over the reals to the last claim, given the others."""
    *given, goal = claims
    solver = z3.Solver()
    solver.add(*given, z3.Not(goal))
    return solver.check() == z3.unsat


def integral(poly, x) -> sympy.Expr:
    return sympy.integrate(sympy.expand(poly), (x, 0, 1))


# -- the laws ----------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("base", BASES, ids=str)
def test_library_law_is_the_oracles(law, exact, base):
    for vector in VECTORS:
        expected = exact(oracle.acceptance(vector, base))
        assert sum(expected) == 1
        assert all(map(close, law(vector, rate_of(base)), expected)), vector


@both
def test_law_of_many_candidates(law, exact):
    # the quadrature has to stay exact where it has many nodes
    vector = [-(k % 7) for k in range(40)]
    expected = exact(oracle.acceptance(vector, 2))
    assert all(map(close, law(vector, math.log(2)), expected))


@both
def test_law_is_vectorised_over_rows_and_rates(law, exact):
    table = np.array([[0.0, 1, 2], [2, 2, -np.inf], [5, -np.inf, -np.inf]])
    found = law(table, [math.log(2), math.log(3), 1.0])
    for row, vector, base in zip(found, [(0, 1, 2), (2, 2, None), (5, None, None)], (2, 3, 2), strict=True):
        assert all(map(close, row, exact(oracle.acceptance(vector, base))))
    stacked = law(np.stack([table, table]), 0.5)
    assert stacked.shape == (2, 3, 3)
    np.testing.assert_array_equal(stacked[0], law(table, 0.5))


@both
def test_law_at_the_ends_of_the_rate(law, exact):
    vector = [3.0, 1.0, 3.0, -np.inf]
    np.testing.assert_array_equal(law(vector, math.inf), [0.5, 0, 0.5, 0])
    np.testing.assert_allclose(law(vector, 0.0), [1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-15)
    np.testing.assert_array_equal(law([7.0], 1.0), [1.0])
    assert law([0.0, -1e6], 1.0)[1] == 0.0  # underflow is silent and harmless: the law still sums to one
    assert exact(oracle.acceptance([3, 1, 3, None], 1)) == [Fraction(1, 3)] * 3 + [0]


@pytest.mark.slow
@pytest.mark.claim("thm-permute-and-flip", verdict="proved", constant="sums to $1$", evidence="symbolic")
def test_permute_and_flip_is_its_integral():
    for base, vector in product(BASES, VECTORS):
        accept = oracle.acceptance(vector, base)
        assert oracle.permute_and_flip_orders(accept) == oracle.permute_and_flip(accept)
    # for symbolic acceptance probabilities, of which the best need not even be 1
    x = sympy.Symbol("x")
    for candidates in (1, 2, 3, 4):
        p = sympy.symbols(f"p:{candidates}")
        nobody = sympy.prod(1 - q for q in p)
        law = [p[r] * integral(sympy.prod(1 - q * x for q in p[:r] + p[r + 1 :]), x) for r in range(candidates)]
        assert sympy.expand(sum(law) + nobody - 1) == 0
        for found, definition in zip(law, oracle.permute_and_flip_orders(p), strict=True):
            assert sympy.expand(found - definition) == 0


@pytest.mark.slow
@pytest.mark.claim("thm-noisy-max", verdict="proved", constant="equal laws", evidence="symbolic")
def test_permute_and_flip_is_noisy_max_with_exponential_noise():
    for base, vector in product(BASES, VECTORS):
        accept = oracle.acceptance(vector, base)
        assert oracle.noisy_max(accept) == oracle.permute_and_flip_orders(accept)
    # the density of the winning value, integrated over t from the best score on; p = exp(-gap) and rate 1
    t, x = sympy.symbols("t x", positive=True)
    for candidates in (2, 3):
        p = [sympy.Integer(1), *sympy.symbols(f"p1:{candidates}", positive=True)]
        for r in range(candidates):
            others = sympy.prod(1 - q * sympy.exp(-t) for q in p[:r] + p[r + 1 :])
            winner = sympy.integrate(sympy.expand(p[r] * sympy.exp(-t) * others), (t, 0, sympy.oo))
            expected = p[r] * integral(sympy.prod(1 - q * x for q in p[:r] + p[r + 1 :]), x)
            assert sympy.simplify(winner - expected) == 0


@pytest.mark.claim("thm-noisy-max")
def test_noisy_max_by_drawing_it():
    rng, vector, draws = np.random.default_rng(5), np.array([0.0, 1.0, 2.5, 2.0]), 200_000
    winners = (vector + rng.exponential(1 / 0.8, size=(draws, 4))).argmax(axis=1)
    expected = draws * mechanisms.permute_and_flip_law(vector, 0.8)
    assert stats.chisquare(np.bincount(winners, minlength=4), expected).pvalue > 1e-3
    # and it is told apart from the exponential mechanism, so the test has power
    wrong = draws * mechanisms.exponential_law(vector, 0.8)
    assert stats.chisquare(np.bincount(winners, minlength=4), wrong).pvalue < 1e-12


# -- range and sensitivity ---------------------------------------------------------------------------------------


@pytest.mark.claim(
    "lem-range", verdict="proved", constant=r"$R = 2\Delta$; $R = \Delta$ if monotone", evidence="symbolic"
)
def test_range_is_at_most_twice_the_sensitivity():
    sensitivity = 2
    general = list(product(range(-sensitivity, sensitivity + 1), repeat=3))
    monotone = [d for d in general if min(d) >= 0 or max(d) <= 0]
    assert max(max(d) - min(d) for d in general) == 2 * sensitivity
    assert max(max(d) - min(d) for d in monotone) == sensitivity
    d, e, bound = z3.Reals("d e bound")
    within = [-bound <= d, d <= bound, -bound <= e, e <= bound]
    assert proved(*within, d - e <= 2 * bound)
    assert not proved(*within, d - e <= bound)
    assert proved(*within, z3.Or(z3.And(d >= 0, e >= 0), z3.And(d <= 0, e <= 0)), d - e <= bound)


@pytest.mark.claim("lem-range")
@pytest.mark.parametrize(
    "score", [s for s in vars(scores).values() if isinstance(s, scores.Score)], ids=lambda s: s.name
)
def test_range_of_the_librarys_scores(score):
    for relation in RELATIONS:
        assert 0 < score.range(relation, 50) <= 2 * score.sensitivity(relation, 50)
    if score.monotone:
        assert score.range("add-remove", 50) <= score.sensitivity("add-remove", 50)


@pytest.mark.claim("lem-range")
@both
def test_a_common_shift_changes_neither_law_nor_range(law, exact):
    for vector in VECTORS:
        shifted = [s - 17 for s in vector]
        assert exact(oracle.acceptance(shifted, 2)) == exact(oracle.acceptance(vector, 2))
        np.testing.assert_array_equal(law(shifted, 0.7), law(vector, 0.7))


# -- privacy of selections ---------------------------------------------------------------------------------------


@pytest.mark.claim(
    "thm-selection-range",
    verdict="proved",
    constant=r"$\lambda R$, attained (PF) or approached (EM)",
    evidence="symbolic",
)
@pytest.mark.parametrize("spread", [1, 2])
def test_selection_costs_rate_times_range(spread):
    base = Fraction(2)
    bound = base**spread
    for vector in VECTORS[:80]:
        for law, exact in PAIRS:
            worst = oracle.selection_worst(exact, vector, base, spread)
            assert close(library_worst(law, vector, rate_of(base), spread), worst)
            assert worst <= bound
        assert worst == bound  # permute-and-flip
    # the exponential mechanism approaches the bound from below as one candidate falls behind
    gaps = [bound - oracle.selection_worst(oracle.exponential, (0, gap), base, spread) for gap in (1, 10, 20, 40)]
    assert gaps == [(bound - 1) / (1 + base**gap) for gap in (1, 10, 20, 40)]
    assert 0 < gaps[-1] < Fraction(1, 10**9)


@pytest.mark.claim("thm-selection-range")
def test_selection_bound_for_any_number_of_candidates():
    # exponential: the others' weights enter as their share of the total, so three numbers stand for all of them
    p, rest, f, u = z3.Reals("p rest f u")  # old probability, others' new mass, own factor, exp(rate * R)
    given = [p > 0, p <= 1, u >= 1, f >= 1, f <= u, rest >= 1 - p, rest <= u * (1 - p)]
    ratio = (p * f + rest) / f  # P(r) / P'(r)
    assert proved(*given, ratio <= u)
    assert proved(*given, ratio >= 1 / u)
    # permute-and-flip, as noisy max: given the others' noise, r wins iff its own noise exceeds a threshold, the largest
    # of the others' noisy scores less its own score.  If all scores change within [low, low + R], so does the largest
    # of any number: of one, and by one more, of all.  So the threshold moves by at most R ...
    best, more, low, spread, move_of_best, move = z3.Reals("best more low R d:best d:more")
    within = [low <= move_of_best, move_of_best <= low + spread, low <= move, move <= low + spread]

    def larger(one, other):
        return z3.If(one > other, one, other)

    moved = larger(best + move_of_best, more + move) - larger(best, more)
    assert proved(*within, moved >= low)
    assert proved(*within, moved <= low + spread)
    assert proved(*within, move_of_best - move <= spread)  # the largest of the others, less the own score
    assert proved(*within, move - move_of_best <= spread)
    # ... and the exponential noise's survival, min(1, x) at x = exp(-rate * threshold), by at most exp(rate * R)
    x, move = z3.Reals("x move")

    def survival(value):
        return z3.If(value < 1, value, 1)

    assert proved(x > 0, u >= 1, move >= 1 / u, move <= u, survival(move * x) <= u * survival(x))
    assert not proved(x > 0, u >= 1, move >= 1 / u, move <= u, survival(move * x) < u * survival(x))


@pytest.mark.claim("thm-selection-range")
def test_calibrations_of_the_theorem():
    sensitivity, epsilon = 2, math.log(9)
    monotone = [d for d in product(range(sensitivity + 1), repeat=2)]
    general = [d for d in product(range(-sensitivity, sensitivity + 1), repeat=2)]

    def worst(law, profiles, rate):
        ratios = [law(np.add(v, d), rate) / law(v, rate) for v in [(0, 40), (0, 0), (0, 3)] for d in profiles]
        return max(max(r.max(), 1 / r.min()) for r in ratios)

    for law in (mechanisms.exponential_law, mechanisms.permute_and_flip_law):
        assert math.isclose(worst(law, monotone, epsilon / sensitivity), 9, rel_tol=1e-9)
        assert math.isclose(worst(law, general, epsilon / (2 * sensitivity)), 9, rel_tol=1e-9)
        # a monotone score leaves half of the published exponent unspent; a general one must not take it
        assert math.isclose(worst(law, monotone, epsilon / (2 * sensitivity)), 3, rel_tol=1e-9)
        assert math.isclose(worst(law, general, epsilon / sensitivity), 81, rel_tol=1e-9)
        # neither constant can be stretched by one per cent
        assert worst(law, monotone, 1.01 * epsilon / sensitivity) > 9.1
        assert worst(law, general, 1.01 * epsilon / (2 * sensitivity)) > 9.1


@pytest.mark.slow
@pytest.mark.claim(
    "thm-permute-and-flip-tight", verdict="proved", constant=r"$\lambda R$ at every score vector", evidence="symbolic"
)
def test_permute_and_flip_spends_all_at_every_score_vector():
    for base, vector, spread in [*product(BASES, VECTORS[:80], (1, 2)), *product(BASES[:1], VECTORS[80::3], (1,))]:
        assert oracle.selection_worst(oracle.permute_and_flip, vector, base, spread) == base**spread
        assert close(library_worst(mechanisms.permute_and_flip_law, vector, rate_of(base), spread), base**spread)
    # pushing a loser down by R divides its acceptance, hence its probability, and no other number
    x, u = sympy.symbols("x u", positive=True)
    p = sympy.symbols("p:4", positive=True)
    others = sympy.prod(1 - q * x for q in p[1:])
    assert sympy.simplify(integral(p[0] * others, x) / integral(p[0] / u * others, x)) == u
    # with a single candidate there is nothing to lose
    assert oracle.selection_worst(oracle.permute_and_flip, (3,), 2, 1) == 1


@pytest.mark.claim(
    "lem-exponential-at",
    verdict="proved",
    constant=r"$\ln\bigl(p + (1-p)\,e^{\lambda R}\bigr)$, $p$ the smallest probability; $< \lambda R$",
    evidence="symbolic",
)
def test_loss_of_the_exponential_mechanism_at_a_score_vector():
    for base, vector, spread in product(BASES, VECTORS[:80], (1, 2)):
        smallest = min(oracle.exponential(oracle.acceptance(vector, base)))
        sharp = smallest + (1 - smallest) * base**spread
        assert oracle.selection_worst(oracle.exponential, vector, base, spread) == sharp < base**spread
        assert close(library_worst(mechanisms.exponential_law, vector, rate_of(base), spread), sharp)
    # with base^R = 4 and gaps up to 3: 11/3 against permute-and-flip's 4
    gaps = [(0, gap) for gap in range(4)]
    assert max(oracle.selection_worst(oracle.exponential, v, 2, 2) for v in gaps) == Fraction(11, 3)
    assert max(oracle.selection_worst(oracle.permute_and_flip, v, 2, 2) for v in gaps) == 4
    # a tie of two at rate * R = 1
    assert math.isclose(math.log(library_worst(mechanisms.exponential_law, (0, 0), 1.0, 1)), 0.6201145, abs_tol=1e-7)
    # no profile does worse, whatever the number of candidates: p is r's probability, least the smallest of all
    p, least, rest, f, u = z3.Reals("p least rest f u")
    given = [least > 0, least <= p, p <= 1 - least, u >= 1, f >= 1, f <= u, rest >= 1 - p, rest <= u * (1 - p)]
    ratio = (p * f + rest) / f
    assert proved(*given, ratio <= least + (1 - least) * u)
    assert proved(*given, 1 / ratio <= least + (1 - least) * u)


@pytest.mark.claim(
    "thm-exponential-bounded-range",
    verdict="proved",
    constant=r"log-ratios span exactly $\lambda R$",
    evidence="symbolic",
)
def test_exponential_mechanism_has_bounded_range():
    for vector, spread in product(VECTORS[:80], (1, 2)):
        exact = oracle.selection_worst(oracle.exponential, vector, 2, spread, measure=oracle.spread_of_ratios)
        assert exact == 2**spread
        moved = np.array(vector) + np.array(oracle.changes(len(vector), spread))
        ratios = mechanisms.exponential_law(moved, math.log(2)) / mechanisms.exponential_law(vector, math.log(2))
        assert close((ratios.max(axis=1) / ratios.min(axis=1)).max(), 2**spread)
    rate, d, e, q, other = sympy.symbols("rate d e q other", real=True)
    total, changed = sympy.symbols("total changed", positive=True)  # the two normalisers cancel

    def ratio(score, change):
        return (sympy.exp(rate * (score + change)) / changed) / (sympy.exp(rate * score) / total)

    assert sympy.simplify(ratio(q, d) / ratio(other, e) - sympy.exp(rate * (d - e))) == 0


@pytest.mark.slow
@pytest.mark.claim(
    "cex-permute-and-flip-bounded-range",
    verdict="refuted",
    constant=r"$9 > 4$ at $e^\eps = 4$ and $K = 2$",
    evidence="exhaustive",
)
def test_permute_and_flip_has_no_bounded_range():
    worst = {
        name: max(oracle.selection_worst(law, v, 2, 2, measure=oracle.spread_of_ratios) for v in VECTORS[:16])
        for name, law in (("exponential", oracle.exponential), ("permute-and-flip", oracle.permute_and_flip))
    }
    assert worst == {"exponential": 4, "permute-and-flip": 9}
    # the witness: two candidates one apart change places
    before, after = (mechanisms.permute_and_flip_law(v, math.log(2)) for v in ([0, 1], [1, 0]))
    assert close((after / before).max() / (after / before).min(), 9)
    # for two candidates (2 e^{ε/2} - 1)^2 is the worst of all; half steps of the gap find nothing above it
    for base in BASES:
        fine = [
            oracle.selection_worst(oracle.permute_and_flip, (0, g), base, 4, oracle.spread_of_ratios) for g in range(9)
        ]
        assert max(fine) == fine[2] == (2 * base**2 - 1) ** 2
    # three and four candidates, small gaps: nothing as large was found, which is not a proof
    more = [v for v in product(range(4), repeat=3)] + [v for v in product(range(3), repeat=4)]
    assert max(oracle.selection_worst(oracle.permute_and_flip, v, 2, 2, oracle.spread_of_ratios) for v in more) < 9


@pytest.mark.claim(
    "pub-permute-and-flip",
    true={"add-remove": "yes", "replace-one": "yes"},
    tight="loose by 2 for monotone scores under add-remove, sharp under replace-one",
    read="in part (page 2932, where it is stated)",
    constant=r"$\eps$, attained where $R = 2\Delta$",
    evidence="exhaustive",
)
def test_published_permute_and_flip_is_private():
    # algorithm 1 of the eDPRF paper flips with exp(ε (u - u*) / (2Δ)); with Δ = 1 and e^ε = 9 the base is 3
    base, sensitivity = Fraction(3), 1
    for vector in VECTORS[:80]:
        law = oracle.permute_and_flip(oracle.acceptance(vector, base))
        worst = {
            "general": max(
                oracle.worst_ratio(law, oracle.permute_and_flip(oracle.acceptance(np.add(vector, d).tolist(), base)))
                for d in product((-sensitivity, 0, sensitivity), repeat=len(vector))
            ),
            "monotone": oracle.selection_worst(oracle.permute_and_flip, vector, base, sensitivity),
        }
        assert worst == {"general": base**2, "monotone": base}  # e^ε, and e^{ε/2} for a monotone score
    assert close(library_worst(mechanisms.permute_and_flip_law, (0, 1, 2), math.log(9) / 2, 2), 9)


# -- error of selections -----------------------------------------------------------------------------------------


@pytest.mark.claim(
    "thm-dominance",
    verdict="proved",
    constant=r"$P_{\mathrm{PF}}(\mathrm{err} \ge t) \le P_{\mathrm{EM}}(\mathrm{err} \ge t)$",
    evidence="symbolic",
)
def test_permute_and_flip_dominates():
    for base, vector in product(BASES, VECTORS):
        accept = oracle.acceptance(vector, base)
        em, pf = oracle.exponential(accept), oracle.permute_and_flip(accept)
        order = sorted(range(len(vector)), key=lambda r: accept[r])
        likelihood = [pf[r] / em[r] for r in order]
        assert likelihood == sorted(likelihood)  # monotone in the score
        for t in range(4):
            tail_pf, tail_em = (
                sum(p for p, s in zip(law, vector, strict=True) if max(vector) - s >= t) for law in (pf, em)
            )
            assert tail_pf <= tail_em
            assert (tail_pf == tail_em) == (tail_em in (0, 1))  # strict wherever the tail is neither nothing nor all
    # any number of candidates: the integrals of two of them differ by the other candidates' product, which is positive
    x, p, q, others = sympy.symbols("x p q others")
    assert sympy.expand((1 - q * x) * others - (1 - p * x) * others - (p - q) * x * others) == 0


@pytest.mark.claim(
    "thm-at-most-twice",
    verdict="proved",
    constant=r"$2$, not attained; $2/(1 + e^{-\lambda g})$ for $K = 2$",
    evidence="symbolic",
)
def test_exponential_errs_at_most_twice_as_much():
    def ratio(vector, base):
        accept = oracle.acceptance(vector, base)
        return oracle.error(oracle.exponential(accept), vector) / oracle.error(oracle.permute_and_flip(accept), vector)

    for base, gap in product(BASES, (1, 2, 5, 40)):
        assert ratio((0, gap), base) == 2 / (1 + base**-gap) < 2
    assert 2 - ratio((0, 40), Fraction(2)) < Fraction(1, 10**11)  # 2 is the supremum
    for base, vector in product(BASES, VECTORS):
        if len(set(vector)) > 1:
            accept = oracle.acceptance(vector, base)
            em, pf = oracle.exponential(accept), oracle.permute_and_flip(accept)
            assert 1 < ratio(vector, base) <= 1 + max(em) < 2
            # candidate by candidate, as in the proof: Jensen's inequality at the mean number of rivals that accept
            for r, p in enumerate(accept):
                if p < 1:
                    rivals = sum(accept) - p
                    assert em[r] / pf[r] <= (1 + rivals) / (rivals + p) < 1 + max(em)
    found = [1 - law([0, 1], math.log(2))[1] for law in (mechanisms.exponential_law, mechanisms.permute_and_flip_law)]
    assert close(found[0] / found[1], Fraction(4, 3))
    # a loser's probability under permute-and-flip is more than half of what it is under the exponential mechanism:
    # 2 * (sum of acceptances) * integral >= 1, proved over the reals for K = 3 and 4
    x = sympy.Symbol("x")
    own, b, c = z3.Reals("own b c")
    inside = [own > 0, own <= 1, b >= 0, b <= 1, c >= 0, c <= 1]
    sb, sc = sympy.symbols("b c")
    for others, total in (((sb,), 1 + own + b), ((sb, sc), 1 + own + b + c)):
        value = integral((1 - x) * sympy.prod(1 - s * x for s in others), x)
        poly = sympy.Poly(value, sb, sc)
        as_real = sum(
            z3.Q(int(sympy.numer(k)), int(sympy.denom(k))) * math.prod([b] * i + [c] * j, start=z3.RealVal(1))
            for (i, j), k in poly.terms()
        )
        assert proved(*inside, 2 * total * as_real > 1)


@pytest.mark.claim(
    "pub-permute-and-flip-better",
    true="yes",
    tight="sharp",
    read="in part (pages 2932 and 2936, where it is stated)",
    constant=r"error ratio in $(1, 2)$ per query at equal $\eps$",
    evidence="exhaustive",
)
def test_permute_and_flip_errs_less_at_equal_budget():
    for vector in VECTORS:
        if len(set(vector)) > 1:
            errors = [float(law(vector, 0.9) @ (max(vector) - np.array(vector))) for law, _ in PAIRS]
            assert 1 < errors[0] / errors[1] < 2
    # two candidates one apart, base 2, exactly
    em, pf = (
        oracle.error(law(oracle.acceptance((0, 1), 2)), (0, 1)) for law in (oracle.exponential, oracle.permute_and_flip)
    )
    assert (em, pf) == (Fraction(1, 3), Fraction(1, 4))


@pytest.mark.claim("pub-permute-and-flip-better")
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, math.log(4)])
def test_permute_and_flip_pays_more_in_divergence(epsilon):
    # The caveat: where selections compose by concentrated privacy the order may turn.  When two candidates ε/2 apart
    # change places, the divergence of permute-and-flip exceeds ε²/8, which bounds that of the exponential mechanism.
    def divergence(law):
        p, q = law([0.0, 0.5], epsilon), law([0.5, 0.0], epsilon)
        return float((p * np.log(p / q)).sum())

    em, pf = (divergence(law) for law, _ in PAIRS)
    assert math.isclose(em, epsilon / 2 * math.tanh(epsilon / 4), rel_tol=1e-9)
    assert math.isclose(pf, (1 - math.exp(-epsilon / 2)) * math.log(2 * math.exp(epsilon / 2) - 1), rel_tol=1e-9)
    assert em <= epsilon**2 / 8 < pf
    assert 2 < pf / em < 4  # 4 in the limit of small ε


# -- noisy counts ------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "thm-geometric", verdict="proved", constant=r"$e^\eps$; variance $2a/(1-a)^2 < 2/\eps^2$", evidence="symbolic"
)
def test_geometric_noise_is_private():
    for base in BASES:
        alpha = 1 / base
        law = [oracle.two_sided_geometric(k, alpha) for k in range(-30, 31)]
        ratios = {after / before for before, after in pairwise(law)}
        assert ratios == {alpha, base}  # neighbouring counts: all outputs, and nothing between
        found = mechanisms.two_sided_geometric_law(np.arange(-30, 31), rate_of(base))
        assert all(map(close, found, law))
        # L1 = 1 for a whole histogram under add-remove, 2 under replace-one
        histogram = oracle.class_histogram(2, base, 3)
        assert oracle.worst_case(histogram, (0, 1), 3, "add-remove") == base
        assert oracle.worst_case(histogram, (0, 1), 3, "replace-one") == base**2
    # | |k - c| - |k - c - 1| | = 1 for all integers; so the exponent moves by exactly one
    k, c = z3.Ints("k c")

    def size(value):
        return z3.If(value >= 0, value, -value)

    assert proved(size(size(k - c) - size(k - c - 1)) == 1)
    # sums to one, and the variance, from the geometric series and its derivatives
    a = sympy.Symbol("a", positive=True)
    series = a / (1 - a)
    square = a * sympy.diff(a * sympy.diff(series, a), a)  # sum over k >= 1 of k² a^k
    assert sympy.simplify((1 - a) / (1 + a) * (1 + 2 * series)) == 1
    assert sympy.simplify(2 * (1 - a) / (1 + a) * square - 2 * a / (1 - a) ** 2) == 0
    # 2a / (1 - a)² = 1 / (2 sinh²(ε/2)), and sinh x > x
    e = sympy.Symbol("e", positive=True)
    assert (
        sympy.simplify(
            (2 * a / (1 - a) ** 2).subs(a, sympy.exp(-e)) - 1 / (2 * sympy.sinh(e / 2).rewrite(sympy.exp) ** 2)
        )
        == 0
    )
    assert all(
        term.coeff(e, n) >= 0 for n in range(1, 12) for term in [sympy.series(sympy.sinh(e) - e, e, 0, 12).removeO()]
    )
    noise = np.arange(-400, 401)
    for epsilon in (0.2, math.log(2), 3.0):
        variance = float((mechanisms.two_sided_geometric_law(noise, epsilon) * noise**2).sum())
        assert math.isclose(variance, 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2, rel_tol=1e-9)
        assert variance < 2 / epsilon**2


@pytest.mark.claim("thm-geometric")
def test_geometric_rate_cannot_be_stretched():
    law = mechanisms.two_sided_geometric_law
    k = np.arange(-20, 21)
    for rate, violates in ((1.0, False), (1.01, True)):
        loss = np.abs(np.log(law(k, rate) / law(k - 1, rate))).max()
        assert (loss > 1.0 + 1e-9) == violates


@pytest.mark.claim(
    "pub-laplace-counts",
    true={"add-remove": "yes", "replace-one": "after a repair"},
    tight="sharp",
    read="in part (the text; of its formulas this one alone)",
    constant=r"$\eps$ under add-remove; $2\eps$ under replace-one",
    evidence="exhaustive",
)
def test_laplace_on_leaf_counts():
    # L1 sensitivity of the whole leaf × class histogram, all data sets of at most four records
    cells = list(product((0, 1), (0, 1)))  # leaf, class

    def histogram(data):
        return np.array([data.count(cell) for cell in cells])

    far = {
        relation: {int(np.abs(histogram(d) - histogram(e)).sum()) for d, e in oracle.pairs(cells, 4, relation)}
        for relation in RELATIONS
    }
    assert far == {"add-remove": {1}, "replace-one": {2}}
    # Lap(1/ε) on each cell: beyond the counts the ratio of densities is constant, so a grid that goes there finds it
    epsilon, grid = 0.7, np.linspace(-2, 6, 33)
    density = {count: mechanisms.laplace_density(grid - count, epsilon) for count in range(5)}
    for relation, constant in (("add-remove", epsilon), ("replace-one", 2 * epsilon)):
        loss = max(
            sum(np.abs(np.log(density[a] / density[b])).max() for a, b in zip(histogram(d), histogram(e), strict=True))
            for d, e in oracle.pairs(cells, 3, relation)
        )
        assert close(loss, constant)
    # with whole numbers, exactly, in fractions
    whole = oracle.class_histogram(2, 2, 3)
    assert [oracle.worst_case(whole, (0, 1), 3, relation) for relation in RELATIONS] == [2, 4]


@pytest.mark.claim("def-laplace")
@pytest.mark.parametrize("rate", [0.3, 1.0, 4.0])
def test_laplace_density_is_the_density(rate):
    x = np.linspace(-3, 3, 25)
    np.testing.assert_allclose(mechanisms.laplace_density(x, rate), stats.laplace.pdf(x, scale=1 / rate), rtol=1e-12)


# -- the floating-point attack -----------------------------------------------------------------------------------

RESOLUTION = 53  # uniforms are the multiples of 2^-53 inside (0, 1)


def reachable(outputs, count: int, rate: float, resolution: int = RESOLUTION, window: int = 96) -> np.ndarray:
    """Which doubles the textbook Laplace mechanism can produce from ``count``, by inverting it.

    The noise is monotone in the uniform; the real inverse is rounded to the grid of uniforms and every uniform within
    ``window`` steps is tried, which is far more than the inverse's rounding error and the widest plateau.
    """
    noise = outputs - count
    middle = np.rint(2.0**resolution * (0.5 - np.sign(noise) * np.expm1(-np.abs(noise) * rate) / 2)).astype(np.int64)
    steps = middle[:, None] + np.arange(-window, window + 1)
    inside = (steps > 0) & (steps < 2**resolution)
    uniform = np.where(inside, steps, 1) * 2.0**-resolution
    found = mechanisms.laplace_textbook(np.full(uniform.shape, count), rate, uniform)
    return ((found == outputs[:, None]) & inside).any(axis=1)


@pytest.mark.claim(
    "cex-float-laplace",
    verdict="refuted",
    evidence="statistical",
    constant="80 % of outputs impossible (counts 1 and 0, rate 1, uniforms $k/2^{53}$)",
)
def test_textbook_laplace_gives_the_count_away():
    rng = np.random.default_rng(20250726)
    n = 6000
    share = {}
    for rate, true, other in ((1.0, 1, 0), (1.0, 0, 1), (0.1, 1, 0), (1.0, 101, 100)):
        uniform = rng.integers(1, 2**RESOLUTION, size=n) * 2.0**-RESOLUTION
        outputs = mechanisms.laplace_textbook(np.full(n, true), rate, uniform)
        assert reachable(outputs, true, rate).all()  # the test never accuses an innocent
        found = reachable(outputs, other, rate)
        np.testing.assert_array_equal(found[:1000], reachable(outputs[:1000], other, rate, window=300))
        share[rate, true, other] = 1 - found.mean()
    # four standard deviations of 6000 draws are 0.02 at most
    for case, expected in (((1.0, 1, 0), 0.795), ((1.0, 0, 1), 0.79), ((0.1, 1, 0), 0.82), ((1.0, 101, 100), 0.013)):
        assert abs(share[case] - expected) < 0.025, (case, share[case])


@pytest.mark.claim("cex-float-laplace")
def test_the_largest_noise_gives_the_count_away_at_all_rates_but_absurd_ones():
    """M = 52 ln 2 / rate is the largest noise; 1 + M is a larger double as long as M is below 2^53."""
    last = np.array([1 - 2.0**-RESOLUTION])  # of the uniforms
    least = 52 * math.log(2) / 2**53
    for rate in (1e3, 1.0, 1e-6, 1e-14, 1.001 * least):
        zero, one = (mechanisms.laplace_textbook(np.array([count]), rate, last)[0] for count in (0, 1))
        assert zero == pytest.approx(52 * math.log(2) / rate, rel=1e-15)
        assert one > zero
    far = [mechanisms.laplace_textbook(np.array([count]), least / 4, last)[0] for count in (0, 1)]
    assert far[0] == far[1]  # the doubles out there are too coarse to tell


@pytest.mark.claim("cex-float-laplace")
def test_textbook_laplace_on_a_coarse_grid_is_exhausted():
    # with uniforms k/2^12 all outputs can be listed: the supports of two neighbouring counts hardly meet
    uniform = np.arange(1, 2**12) * 2.0**-12
    support = {count: set(mechanisms.laplace_textbook(np.full(uniform.size, count), 1.0, uniform)) for count in (0, 1)}
    assert len(support[1] - support[0]) / len(support[1]) > 0.99
    listed = np.array(sorted(support[1]))
    for count in (0, 1):
        expected = [value in support[count] for value in listed]
        np.testing.assert_array_equal(reachable(listed, count, 1.0, resolution=12), expected)


def test_geometric_noise_reaches_every_count_from_every_count():
    # the repair: integers, whose support does not depend on the count
    noise = Seeded(3).two_sided_geometric(np.array(1.0), (100_000,))
    assert set(range(-6, 7)) <= set(noise.tolist())


# -- draws and errors --------------------------------------------------------------------------------------------

SOURCES = [lambda: Seeded(0), Replay, Secure]


@pytest.mark.parametrize("make", SOURCES, ids=["seeded", "replay", "secure"])
@pytest.mark.parametrize("name", sorted(mechanisms.SELECTIONS))
@pytest.mark.parametrize(
    ("vector", "rate", "message"),
    [
        ([0.0, math.nan], 1.0, r"\+inf"),
        ([0.0, math.inf], 1.0, r"\+inf"),
        ([-math.inf, -math.inf], 1.0, "without a candidate"),
        ([], 1.0, "without a candidate"),
        ([1e308, -1e308], 1e-308, "within 1.8e308 of each other"),
        ([0.0, 1.0], -0.1, "negative or NaN"),
        ([0.0, 1.0], math.nan, "negative or NaN"),
    ],
)
def test_meaningless_selections_are_refused_by_every_source(make, name, vector, rate, message):
    with pytest.raises(ValueError, match=message):
        mechanisms.select(name, [vector], rate, make())


@pytest.mark.parametrize("law", [law for law, _ in PAIRS])
@pytest.mark.parametrize(
    ("vector", "rate"), [([0, math.nan], 1), ([-math.inf], 1), ([], 1), ([0, 1], -1), ([0, 1], math.nan)]
)
def test_meaningless_laws_are_refused(law, vector, rate):
    with pytest.raises(ValueError, match=r"without a candidate|negative or NaN|\+inf"):
        law(vector, rate)


def test_other_refusals():
    with pytest.raises(ValueError, match="selection must be one of"):
        mechanisms.select("argmax", [[0.0, 1.0]], 1.0, Seeded(0))
    with pytest.raises(ValueError, match="selections, candidates"):
        mechanisms.exponential([0.0, 1.0], 1.0, Seeded(0))
    with pytest.raises(ValueError, match=r"(?i)broadcast"):
        mechanisms.exponential([[0.0, 1.0]], [1.0, 2.0], Seeded(0))


@pytest.mark.parametrize("make", SOURCES, ids=["seeded", "replay", "secure"])
def test_geometric_noise_refuses_reals_and_meaningless_rates(make):
    chance = make()
    for counts in ([1.5, 2.0], [1.0], [True]):
        with pytest.raises(TypeError, match="integer counts"):
            mechanisms.two_sided_geometric(np.array(counts), 1.0, chance)
    for rate in (0.0, -1.0, math.nan, -math.inf, 1e-16, [1.0, math.nan]):
        with pytest.raises(ValueError, match="rate must be"):
            mechanisms.two_sided_geometric(np.array([1, 2]), rate, chance)
    np.testing.assert_array_equal(mechanisms.two_sided_geometric(np.array([1, 2]), math.inf, chance), [1, 2])


@pytest.mark.parametrize("make", [SOURCES[0], SOURCES[2]], ids=["seeded", "secure"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_geometric_noise_keeps_shape_and_type(make, dtype):
    counts = np.arange(6, dtype=dtype).reshape(2, 3)
    noisy = mechanisms.two_sided_geometric(counts, [[1.0], [math.inf]], make())
    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.int64
    np.testing.assert_array_equal(noisy[1], counts[1])
    np.testing.assert_array_equal(counts, np.arange(6).reshape(2, 3))  # the input is left alone


def test_draws_take_one_rate_per_row():
    vectors = np.tile([0.0, 1.0], (2000, 1))
    for draw in mechanisms.SELECTIONS.values():
        chosen = draw(vectors, np.repeat([0.0, np.inf], 1000), Seeded(1))
        assert 400 < chosen[:1000].sum() < 600
        assert chosen[1000:].all()
        assert draw(np.zeros((0, 3)), 1.0, Seeded(1)).shape == (0,)
