"""The door for randomness: seeded draws follow the laws, replay visits every branch once, the secure source too."""

from __future__ import annotations

import decimal
import inspect
import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations, product

import numpy as np
import oracle
import pytest
from scipy import stats

from dpforest import chance as door
from dpforest import mechanisms
from dpforest.chance import NotEnumerableError, Replay, Secure, Seeded, keyed, lazy, outcomes
from dpforest.chance.exact import Exact

F = Fraction
LAWS = {"exponential": mechanisms.exponential_law, "permute-and-flip": mechanisms.permute_and_flip_law}


def fits(values, expected: dict) -> float:
    """p-value of a chi-square test that the values follow ``expected``, whose support they must not leave."""
    values = list(values)
    counted = Counter(values)
    assert set(counted) <= {value for value, p in expected.items() if p > 0}, "an impossible outcome was drawn"
    support = [value for value, p in expected.items() if p > 0]
    wanted = [len(values) * float(expected[value]) for value in support]
    return stats.chisquare([counted[value] for value in support], wanted).pvalue


def numbers(n: int) -> np.ndarray:
    """What tells n records of a table apart."""
    return np.arange(n, dtype=np.uint64)


def geometric_cells(rate: float, tail: int) -> dict:
    """Law of the noise with everything beyond ``tail`` merged."""
    law = {k: float(mechanisms.two_sided_geometric_law(k, rate)) for k in range(-tail + 1, tail)}
    rest = (1 - sum(law.values())) / 2
    return {-tail: rest, **law, tail: rest}


def draws(source, n: int) -> dict[str, tuple[list, dict]]:
    """``n`` draws of every verb, with the law they should follow."""
    vector = [0.0, -math.inf, 1.0, 2.5, 2.5]
    table = np.tile(vector, (n, 1))
    every = {
        "integers": (source.integers(5, n).tolist(), dict.fromkeys(range(5), 1 / 5)),
        "subsets": (
            list(map(tuple, source.subsets(5, 2, n).tolist())),
            dict.fromkeys(combinations(range(5), 2), 1 / 10),
        ),
        "permutation": (
            [tuple(source.permutation(3).tolist()) for _ in range(n)],
            dict.fromkeys(permutations(range(3)), 1 / 6),
        ),
        "geometric": (
            source.two_sided_geometric(np.array(0.7), (n,)).clip(-6, 6).tolist(),
            geometric_cells(0.7, 6),
        ),
    }
    one = [math.exp(-1) / math.factorial(k) for k in range(6)]
    pairs = source.copies(2, numbers(n)).clip(max=6).T.tolist()  # of a record in two trees
    cells = dict(enumerate([*one, 1 - sum(one)]))
    every["copies"] = [copies for pair in pairs for copies in pair], cells
    grouped = [(min(a, 2), min(b, 2)) for a, b in pairs]
    three = [one[0], one[1], 1 - one[0] - one[1]]
    every["copies in two trees"] = grouped, {(a, b): three[a] * three[b] for a in range(3) for b in range(3)}
    every["coins"] = source.coins(5, numbers(n)).tolist(), dict.fromkeys(range(5), 1 / 5)
    twice = zip(source.coins(3, numbers(n)).tolist(), source.coins(3, numbers(n)).tolist(), strict=True)
    every["two coins of a record"] = list(twice), dict.fromkeys(product(range(3), repeat=2), 1 / 9)
    pairs = source.coins(3, numbers(2 * n)).reshape(n, 2).tolist()
    every["coins of two records"] = list(map(tuple, pairs)), dict.fromkeys(product(range(3), repeat=2), 1 / 9)
    for kind, law in LAWS.items():
        chosen = source.select(kind, law, table, np.full(n, 0.8)).tolist()
        every[kind] = chosen, dict(enumerate(law(vector, 0.8)))
    return every


# -- seeded ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_seeded_draws_follow_their_laws():
    for verb, (values, law) in draws(Seeded(20251121), 20_000).items():
        assert fits(values, law) > 1e-3, verb


def test_the_goodness_of_fit_test_can_fail():
    values, _ = draws(Seeded(20251121), 20_000)["exponential"]
    assert fits(values, dict(enumerate(LAWS["permute-and-flip"]([0.0, -math.inf, 1.0, 2.5, 2.5], 0.8)))) < 1e-9
    with pytest.raises(AssertionError, match="impossible"):
        fits([1], {0: 1.0})


def test_seeded_is_reproducible():
    assert {k: v for k, (v, _) in draws(Seeded(7), 50).items()} == {k: v for k, (v, _) in draws(Seeded(7), 50).items()}
    assert draws(Seeded(7), 50)["integers"] != draws(Seeded(8), 50)["integers"]
    assert draws(Seeded(), 50)["integers"] != draws(Seeded(), 50)["integers"]  # 5 ** -50


def test_seeded_takes_what_scikit_learn_takes():
    legacy = [Seeded(np.random.RandomState(3)).integers(1000, 20).tolist() for _ in range(2)]
    assert legacy[0] == legacy[1]
    state = np.random.RandomState(3)
    assert Seeded(state).integers(1000, 20).tolist() != Seeded(state).integers(1000, 20).tolist()  # it moves on
    generator = np.random.default_rng(3)
    assert Seeded(generator).integers(1000, 20).tolist() == Seeded(3).integers(1000, 20).tolist()
    assert Seeded(generator).integers(1000, 20).tolist() != Seeded(3).integers(1000, 20).tolist()
    assert Seeded(np.int64(3)).integers(1000, 20).tolist() == Seeded(3).integers(1000, 20).tolist()
    assert Seeded([3, 4]).integers(1000, 20).tolist() != Seeded([4, 3]).integers(1000, 20).tolist()


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
def test_words_are_those_of_the_generator_whatever_its_kind(bits):
    """Few or many, and after a draw of 32 bits, which some kinds take out of a word."""
    one, other = (np.random.Generator(getattr(np.random, bits)(5)) for _ in range(2))
    for size in (0, 1, 3, 1000):
        half = [generator.integers(1 << 32, dtype=np.uint32) for generator in (one, other)]
        assert half[0] == half[1]
        expected = other.integers(1 << 64, size=size, dtype=np.uint64)
        np.testing.assert_array_equal(Seeded(one)._words(size), expected, strict=True)


@pytest.mark.parametrize("state", ["three", True, -1, 1.5, np.bool_(1), [3, -4], {}, math.nan])
def test_seeds_that_are_none(state):
    with pytest.raises(ValueError, match="random_state must be None, a whole number of at least 0 or a list of them"):
        Seeded(state)


class Scripted(Exact):
    """Random words that are written beforehand."""

    def __init__(self, *words: int):
        self.words = list(words)

    def _words(self, size: int) -> np.ndarray:
        given, self.words = self.words[:size], self.words[size:]
        assert len(given) == size, "more words are drawn than were written"
        return np.array(given, dtype=np.uint64)


END = 2**64 - 1  # the largest word
GAPS = [F(1, 2), F(1), F(3, 4) + F(1, 2**40), F(20), F(43), F(44), F(1, 2**50), F(1, 2**64), F(100), F(10**6)]


def split(share: Fraction) -> tuple[int, int]:
    """The first two words of a number in [0, 1)."""
    bits = int(share * 2**128)
    return bits >> 64, bits & END


@pytest.mark.claim(
    "lem-lazy-uniform",
    verdict="proved",
    constant="heads below $e^{-x}$, to the last of 128 bits",
    evidence="exhaustive",
)
@pytest.mark.parametrize("gap", GAPS, ids=str)
@pytest.mark.parametrize("rate", [F(1), F(1, 8)], ids=str)
def test_a_coin_turns_at_the_exponential_itself(gap, rate):
    """The oracle has e^(-x) to 200 bits; a coin must show heads one step below it, and tails one step above."""
    least, most = oracle.exp_bounds(rate * gap, 200)
    first, second = split(least)
    assert split(least) == split(most), "the oracle's bounds must agree to 128 bits"
    scores, rates = np.array([[float(gap), 0.0]]), np.array([float(rate)])

    def loser_shows(first: int, *more: int) -> bool:
        # the words of both candidates' coins, the word that picks one of those shown, then more of the loser's
        source = Scripted(END, first, 1, *more)
        return source.select("permute-and-flip", None, scores, rates)[0] == 1

    if first > 0:
        assert loser_shows(first - 1)
    if first < END:
        assert not loser_shows(first + 1)
    # 64 bits do not decide, so the next word does: below it heads, above it tails, however small the step
    if 0 < second < END:
        assert loser_shows(first, second - 1)
        assert not loser_shows(first, second + 1)
    with pytest.raises(AssertionError, match="more words"):
        Scripted(END, first, 1).select("permute-and-flip", None, scores, rates)


def test_certain_coins_need_no_second_word():
    for word in (0, 1, END):
        certain = Scripted(word, word, 0).select("permute-and-flip", None, np.array([[1.0, 1.0]]), np.ones(1))
        assert certain.tolist() == [0]  # both show heads, and the last word takes the first of them
        without = Scripted(word, word, 3).select("permute-and-flip", None, np.array([[0.0, 1.0]]), np.array([np.inf]))
        assert without.tolist() == [1]
        still = Scripted(word, word, 1).select("permute-and-flip", None, np.array([[0.0, 1.0]]), np.zeros(1))
        assert still.tolist() == [1]


@pytest.mark.claim(
    "thm-exact-draws",
    verdict="proved",
    constant="turning points at the law's, to the last of 128 bits",
    evidence="exhaustive",
)
@pytest.mark.parametrize(
    ("vector", "rate"),
    [
        ([0.0, 1.0, 2.5], F(1)),
        ([3.0, -math.inf, 0.1, 3.0, -math.inf], F(1, 4)),
        ([7.0, 0.0], F(6)),
        ([-0.5, 0.25], F(1, 1024)),
    ],
)
def test_the_exponential_mechanism_turns_at_the_exact_shares(vector, rate):
    able = [i for i, score in enumerate(vector) if score > -math.inf]
    best = max(vector)
    bounds = [oracle.exp_bounds(rate * (F(best) - F(vector[i])), 260) for i in able]
    scores, rates = np.array([vector]), np.array([float(rate)])

    def chosen(*words: int) -> int:
        return int(Scripted(*words).select("exponential", None, scores, rates)[0])

    assert chosen(0) == able[0]
    assert chosen(END, END - 1) == able[-1]
    for number, (below, above) in enumerate(itertools.pairwise(able)):
        least = sum(low for low, _ in bounds[: number + 1]) / sum(high for _, high in bounds)
        most = sum(high for _, high in bounds[: number + 1]) / sum(low for low, _ in bounds)
        assert split(least) == split(most)
        first, second = split(least)
        assert (chosen(first - 1), chosen(first + 1)) == (below, above)
        assert (chosen(first, second - 1), chosen(first, second + 1)) == (below, above)


def test_ties_and_rates_at_the_ends_share_equally():
    thirds = [2**64 // 3, 2 * 2**64 // 3]
    for rate in (0.0, math.inf):
        vector = np.array([[2.0, 2.0, -math.inf, 2.0]])
        for word, expected in ((0, 0), (thirds[0] - 1, 0), (thirds[0] + 1, 1), (thirds[1] - 1, 1), (thirds[1] + 1, 3)):
            assert Scripted(word).select("exponential", None, vector, np.array([rate])).tolist() == [expected]
    only = Scripted(5).select("exponential", None, np.array([[0.0, 4.0, 1.0]]), np.array([np.inf]))
    assert only.tolist() == [1]


@pytest.fixture(params=[0, 16], ids=["as arrays", "one by one"])
def few(request, monkeypatch):
    """Few numbers are drawn one by one, and many as arrays: here the same few either way."""
    monkeypatch.setattr("dpforest.chance.exact._FEW", request.param)


@pytest.mark.claim("thm-exact-draws")
@pytest.mark.parametrize("rate", [0.5, 1.0, 0.1, 3.0, 2.0**-10, 40.0])
@pytest.mark.parametrize("k", [1, 2, 7, 61])
def test_waiting_times_turn_at_powers_of_the_exponential(rate, k, few):
    least, most = oracle.exp_bounds(F(rate) * k, 260)
    assert split(least) == split(most)
    first, second = split(least)

    def drawn(*words: int) -> int:
        # the second number of the difference is 0, for its word is the largest
        return int(Scripted(*words, END, END).two_sided_geometric(np.array(rate), (1,))[0])

    if first > 2**20:  # else its neighbours may lie beyond the next power too
        assert (drawn(first - 1), drawn(first + 1)) == (k, k - 1)
    if 0 < second < END and first:
        assert (drawn(first, second - 1), drawn(first, second + 1)) == (k, k - 1)


@pytest.mark.claim("thm-exact-draws")
@pytest.mark.parametrize("rate", [2.0**-11, 1e-5, 1e-15, 7e-4])
def test_slow_noise_is_put_together_from_two_exact_parts(rate, few):
    bits = 0
    while F(rate) * 2**bits < F(1, 2):
        bits += 1
    turn, offset = oracle.exp_bounds(F(rate) * 2**bits, 260)[0], 2**bits - 3
    high, keep = offset << (64 - bits), oracle.exp_bounds(F(rate) * offset, 260)[0]
    words = [split(turn)[0] - 5, high, split(keep)[0] - 5]  # V = 1, W proposed, W kept
    again = [END, high, split(keep)[0] + 5, 0, 17]  # V = 0, W proposed and refused, W = 0 proposed and kept
    assert Scripted(*words, *again).two_sided_geometric(np.array(rate), (1,)).tolist() == [2**bits + offset]


@pytest.fixture(params=[2.0**-40, -(2.0**-40)], ids=["above", "below"])
def sloppy(request, monkeypatch):
    """A processor whose exp and log are as wrong as the theorem allows."""
    for module in (np, math):
        for function in (module.exp, module.log):
            wrong = partial(lambda of, x: of(x) * (1 + request.param), function)
            monkeypatch.setattr(module, function.__name__, wrong)


#: Distances from a turning point, as shares of it: within what doubles are trusted with, at its border, and beyond.
STEPS = [2.0**-power for power in (50, 42, 40, 38, 37, 36, 35, 30)]


@pytest.mark.claim("thm-exact-draws", constant="functions that are wrong by 2^-40 decide nothing")
@pytest.mark.parametrize("gap", [F(1, 2), F(7), F(20), F(1, 2**20)], ids=str)
def test_no_coin_depends_on_the_processor(gap, sloppy):
    first, _ = split(oracle.exp_bounds(gap, 260)[0])
    scores, rates = np.array([[float(gap), 0.0]]), np.ones(1)
    for step in STEPS:
        for word in (first - 1 - int(first * step), first + 1 + int(first * step)):
            if word < END:
                source = Scripted(END, word, 1)
                assert (source.select("permute-and-flip", None, scores, rates)[0] == 1) == (word < first)
                assert source.words == []


@pytest.mark.claim("thm-exact-draws")
def test_no_selection_depends_on_the_processor(sloppy):
    vector, rate = [0.0, 1.0, 2.5, 1.0], F(1, 2)
    bounds = [oracle.exp_bounds(rate * (F(5, 2) - F(score)), 260)[0] for score in vector]
    for number in range(3):
        first, _ = split(sum(bounds[: number + 1]) / sum(bounds))
        for step in STEPS:
            for side, word in ((0, first - 1 - int(first * step)), (1, first + 1 + int(first * step))):
                found = Scripted(word).select("exponential", None, np.array([vector]), np.array([float(rate)]))
                assert found.tolist() == [number + side]


@pytest.mark.claim("thm-exact-draws")
@pytest.mark.parametrize(("rate", "k"), [(2.0**-10, 14000), (2.0**-10, 3), (0.5, 20), (1.0, 1), (3.0, 4)])
def test_no_noise_depends_on_the_processor(rate, k, sloppy, few):
    first, _ = split(oracle.exp_bounds(F(rate) * k, 260)[0])
    for step in STEPS:
        for word, wanted in ((first - 1 - int(first * step), k), (first + 1 + int(first * step), k - 1)):
            source = Scripted(word, END)
            assert source.two_sided_geometric(np.array(rate), (1,)).tolist() == [wanted]
            assert source.words == []


@pytest.mark.claim("thm-exact-draws")
def test_as_many_words_whatever_the_processor(sloppy):
    rng, source, other = np.random.default_rng(5), Seeded(11), Seeded(11)
    scores, rates = np.round(rng.normal(size=(500, 9)) * 4, 3), rng.choice([0.01, 0.3, 2.0], 500)
    for kind in LAWS:
        source.select(kind, None, scores, rates)
    other._words(500 * 10 + 500)
    source.two_sided_geometric(np.array(0.7), (500,))
    other._words(1000)
    assert source._words(1) == other._words(1)


@pytest.mark.parametrize("size", [1, 3, 16])
@pytest.mark.parametrize("kind", ["two_sided_geometric", "discrete_gaussian"])
def test_noise_that_is_drawn_one_by_one_is_the_same(kind, size, monkeypatch):
    rates = np.geomspace(2.0**-40, 8, 300)
    several, each = Seeded(5), Seeded(5)
    monkeypatch.setattr("dpforest.chance.exact._FEW", 0)
    expected = [getattr(several, kind)(np.resize(rates[at:], size), (size,)).tolist() for at in range(len(rates))]
    assert len({number for numbers in expected for number in numbers}) > 100
    monkeypatch.setattr("dpforest.chance.exact._FEW", 16)
    found = [getattr(each, kind)(np.resize(rates[at:], size), (size,)).tolist() for at in range(len(rates))]
    assert found == expected
    assert each.integers(1 << 60, 1) == several.integers(1 << 60, 1)  # no word more, no word less


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("cells", [1, 40])
def test_selections_that_are_drawn_in_blocks_are_the_same(kind, cells, monkeypatch):
    rng = np.random.default_rng(3)
    scores = rng.integers(-9, 1, (50, 7)).astype(float)
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    scores[:, 2], rate = -4, rng.choice([0.0, 0.2, np.inf], 50)
    whole, blocks = Seeded(5), Seeded(5)
    expected = whole.select(kind, LAWS[kind], scores, rate)
    assert len(set(expected.tolist())) == 7
    monkeypatch.setattr("dpforest.chance.exact._CELLS", cells)
    assert blocks.select(kind, LAWS[kind], scores, rate).tolist() == expected.tolist()
    assert blocks.integers(1 << 60, 1) == whole.integers(1 << 60, 1)  # no word more, no word less


@pytest.mark.claim("lem-lazy-uniform")
@pytest.mark.parametrize("digits", [41, 62])
def test_bounds_are_bounds(digits):
    """Against the oracle's, which are far closer: on the right side, and no wider than the digits say.

    The narrowest are 10^-62 of e^-621, more than 2^-1110: with 1500 bits the oracle's are 2^-390 of that.
    """
    near = [F(10 * digits) + step for step in (-1, F(-1, 7), 0, F(1, 7), 1)]  # beyond, a bound from below is 0
    for x in [F(1, 3), F(2, 7), F(1, 2**70), F(355, 113), F(40), F(1, 10**30), *near, F(10**4)]:
        least, most = lazy._exp_bounds(x, digits)
        low, high = oracle.exp_bounds(x, 1500)
        assert least <= low
        assert high <= most
        assert most - least <= high * F(10) ** (4 - digits) or (
            x > 10 * digits and least == 0 and most < F(10) ** -digits
        )
    for share in [F(1, 3), F(1, 2**63), 1 - F(1, 2**64), F(12345, 2**20), F(2**63 + 1, 2**64)]:
        least, most = lazy._minus_log_bounds(share, digits)
        assert oracle.exp_bounds(least, 1500)[0] >= share >= oracle.exp_bounds(most, 1500)[1]
        assert most - least <= max(most, 1) * F(10) ** (3 - digits)


def test_no_setting_of_decimal_arithmetic_gets_in(monkeypatch):
    monkeypatch.setitem(decimal.DefaultContext.traps, decimal.Inexact, True)
    monkeypatch.setattr(decimal.DefaultContext, "Emin", -5)
    least, most = lazy._exp_bounds(F(50, 3), 41)
    assert 0 < least < most


def test_noise_refuses_rates_that_would_overflow():
    for rate in (0.0, 2.0**-53, 5e-324, -1.0, math.nan):
        with pytest.raises(ValueError, match="at least 2\\^-52"):
            Seeded(0).two_sided_geometric(np.array(rate), (2,))
    assert np.abs(Seeded(0).two_sided_geometric(np.array(2.0**-52), (50,))).max() > 1 << 52


def test_uniform_integers_reject_what_would_favour_the_small():
    # 2^64 = 1 modulo 3 and modulo 5: the largest word is drawn again
    assert Scripted(END, 7).integers(3, 1).tolist() == [1]
    assert Scripted(5, END, 9).integers(5, 2).tolist() == [0, 4]
    assert Scripted(END).integers(1 << 63, 1).tolist() == [(1 << 63) - 1]
    with pytest.raises(ValueError, match="high must be"):
        Seeded(0).integers((1 << 63) + 1, 1)


def test_ties_of_words_are_drawn_again():
    assert Scripted(4, 4, 9, 1, 2, 3).permutation(3).tolist() == [0, 1, 2]
    assert Scripted(4, 4, 9, 7, 2, 3).subsets(3, 1, 1).tolist() == [[1]]
    assert Scripted(9, 4, 4).subsets(3, 2, 1).tolist() == [[1, 2]]  # a tie inside does no harm


def test_seeded_noise_is_off_at_infinite_rate_only():
    noise = Seeded(0).two_sided_geometric(np.array([[math.inf], [0.01]]), (2, 500))
    assert not noise[0].any()
    assert (noise[1] != 0).mean() > 0.9
    assert noise.dtype == np.int64


def test_seeded_coins_are_those_of_one_key_whoever_asks():
    """What makes a model from blocks the model from memory: a key, and then nothing but the record's own number."""
    ids = np.array([5, 2**64 - 1, 0, 5, 17], dtype=np.uint64)
    coins, copies = Seeded(3).coins(1000, ids), Seeded(3).copies(4, ids)
    source = Seeded(3)
    np.testing.assert_array_equal(coins, keyed.coins(source.key(), ids, 1000))
    source = Seeded(3)
    np.testing.assert_array_equal(copies, [keyed.copies(source.key(), ids) for _ in range(4)])
    assert coins[0] == coins[3]
    assert copies[:, 0].tolist() == copies[:, 3].tolist()
    # the draws that follow do not depend on the records
    for few, many in ((ids[:0], ids), (ids[:2], ids)):
        for ask in (lambda source, who: source.coins(7, who), lambda source, who: source.copies(3, who)):
            after = []
            for who in (few, many):
                source = Seeded(5)
                ask(source, who)
                after.append(source.integers(1 << 60, 3).tolist())
            assert after[0] == after[1]


# -- replay ------------------------------------------------------------------------------------------------------


@pytest.mark.claim("thm-replay", verdict="proved", constant="probabilities sum to $1$", evidence="exhaustive")
@pytest.mark.parametrize("exact", [oracle.exponential, oracle.permute_and_flip])
def test_replay_is_the_law_of_the_program(exact):
    # the shipped door runs a whole tree; with laws in fractions its output law is the oracle's, to the last digit
    root_base, leaf_base = Fraction(2), Fraction(4, 3)

    def law(base):
        return lambda scores, rate: [exact(oracle.acceptance(row, base)) for row in scores]

    def tree(data):
        def program(chance):
            root = [[oracle.majority_score(data, feature) for feature in (0, 1)]]
            feature = int(chance.select("any", law(root_base), root, None)[0])
            votes = [
                [sum(r[-1] == c for r in part) for c in (0, 1)]
                for part in oracle.split_by_value(data, 2, lambda r: r[feature])
            ]
            return feature, tuple(chance.select("any", law(leaf_base), votes, None).tolist())

        return program

    expected = oracle.two_level_tree(exact, root_base, oracle.label_leaf(exact, leaf_base))
    for data in oracle.datasets(list(product((0, 1), repeat=3)), 2):
        branches = list(outcomes(tree(data)))
        assert sum(probability for _, probability in branches) == 1
        assert all(isinstance(probability, Fraction) for _, probability in branches)
        assert dict(branches) == expected(data)
        assert len(branches) == len(expected(data))  # every branch once


@pytest.mark.claim("thm-replay")
def test_replay_visits_every_branch_once_and_no_impossible_one():
    half, third = (
        [Fraction(1, 2), Fraction(0), Fraction(1, 2)],
        [Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(0)],
    )

    def program(chance):
        first = int(chance.select("any", lambda s, r: [half], [[0]], None)[0])
        if first == 0:  # a branch without a further draw
            return (first,)
        second = chance.select("any", lambda s, r: [third, half], [[0]] * 2, None).tolist()
        return first, *second

    branches = list(outcomes(program))
    assert dict(branches) == {
        (0,): Fraction(1, 2),
        **{(2, a, b): Fraction(1, 2) * third[a] * half[b] for a in (1, 2) for b in (0, 2)},
    }
    assert len(branches) == 5
    assert sum(p for _, p in branches) == 1


@pytest.mark.claim("thm-replay")
def test_replay_enumerates_the_uniform_draws():
    for program, support in (
        (lambda c: tuple(c.integers(3, 2).tolist()), list(product(range(3), repeat=2))),
        (lambda c: tuple(map(tuple, c.subsets(4, 2, 1).tolist())), [(s,) for s in combinations(range(4), 2)]),
        (lambda c: tuple(c.permutation(4).tolist()), list(permutations(range(4)))),
        (lambda c: tuple(c.integers(4, 0).tolist()), [()]),
        (lambda c: tuple(c.coins(3, numbers(2)).tolist()), list(product(range(3), repeat=2))),
        (lambda c: "no draw", ["no draw"]),
    ):
        branches = list(outcomes(program))
        assert sorted(out for out, _ in branches) == sorted(support)
        assert all(math.isclose(p, 1 / len(support), rel_tol=1e-12) for _, p in branches)
        assert math.isclose(sum(p for _, p in branches), 1, rel_tol=1e-12)


@pytest.mark.claim("thm-replay")
def test_replay_keeps_laws_by_all_that_they_depend_on():
    """Scores of the same bytes in another shape, another rate or another law are another selection."""
    tables = np.array([[0.0, -1.0, -2.0, -0.5]]), np.array([[0.0, -1.0], [-2.0, -0.5]])
    asked = [
        (kind, law, table, np.full(len(table), rate))
        for (kind, law), table, rate in product(LAWS.items(), tables, (0.5, 2.0))
    ]
    source = Replay()
    for one in 2 * asked:
        source.select(*one)
    expected = [tuple(row) for _, law, table, rate in 2 * asked for row in law(table, rate)]
    assert [row for row, _ in source._path] == expected  # tuples, which nobody can write to
    assert source._laws.cache_info()[:3] == (len(asked), len(asked), 1 << 12)  # hits, misses, and how many are kept


@pytest.mark.slow
@pytest.mark.claim("thm-replay")
def test_replay_tells_what_seeded_does():
    # one program through both doors: the sampled frequencies follow the replayed law
    def program(chance):
        tree = int(chance.integers(2, 1)[0])
        order = chance.permutation(2).tolist()
        chosen = mechanisms.permute_and_flip([[0.0, 1.0, 0.5], [2.0, 0.0, 1.0]], [0.5, 1.5], chance).tolist()
        return tree, *order, *chosen, *chance.subsets(3, 1, 1)[0].tolist()

    law: dict = {}
    for out, probability in outcomes(program):
        law[out] = law.get(out, 0) + probability
    assert math.isclose(sum(law.values()), 1, rel_tol=1e-12)
    source = Seeded(11)
    assert fits((program(source) for _ in range(10_000)), law) > 1e-3


@pytest.mark.claim("thm-post-processing")
def test_replay_of_a_function_of_the_output_merges_branches():
    def program(chance):
        return int(mechanisms.exponential([[0.0, 1.0, 2.0]], math.log(2), chance)[0]) > 0

    branches = list(outcomes(program))
    assert [out for out, _ in branches] == [False, True, True]
    assert math.isclose(sum(p for out, p in branches if out), 6 / 7, rel_tol=1e-12)


def test_replay_refuses_what_it_cannot_enumerate():
    with pytest.raises(NotEnumerableError, match="lem-geometric-leaves"):
        Replay().two_sided_geometric(np.array(1.0), (3,))
    with pytest.raises(NotEnumerableError, match="infinitely many"):
        list(outcomes(lambda chance: mechanisms.two_sided_geometric([1, 2], [1.0, math.inf], chance)))
    assert not Replay().two_sided_geometric(np.array(math.inf), (3,)).any()  # noise turned off
    with pytest.raises(NotEnumerableError, match="Poisson number has infinitely many values"):
        Replay().copies(2, numbers(3))
    with pytest.raises(NotEnumerableError, match="not the keys"):
        Replay().key()
    with pytest.raises(ValueError, match="without a possible outcome"):
        Replay().select("any", lambda s, r: [[Fraction(0)]], [[0]], None)


# -- secure ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_secure_draws_follow_their_laws():
    # it cannot be seeded, so the threshold is generous: eleven tests at 1e-6 fail by chance once in 90 000 runs
    for verb, (values, law) in draws(Secure(), 3000).items():
        assert fits(values, law) > 1e-6, verb


def fixed_points(n: int) -> dict[int, Fraction]:
    """Law of how many things a random permutation of n leaves in place: ``1/k!`` times a start of the series of 1/e."""
    inverse = [sum((Fraction((-1) ** j, math.factorial(j)) for j in range(m + 1)), Fraction(0)) for m in range(n + 1)]
    return {k: p / math.factorial(k) for k, p in enumerate(reversed(inverse)) if p}


class Halted(Secure):
    """The secure source, whose uniform numbers are replayed for ``steps`` draws; then it is made to stop."""

    def __init__(self, replay: Replay, steps: int):
        self._replay, self._steps = replay, steps

    def integers(self, high, size):
        if high > self._steps:
            return np.full(size, -1)  # below every guard: nothing changes, and the loop ends
        return self._replay.integers(high, size)


class Exact(Replay):
    def _uniform(self, n):
        return [Fraction(1, n)] * n


def test_secure_poisson_numbers_are_exact():
    """Stopped after n draws, every uniform number enumerated, in fractions: the fixed points of a permutation of n.

    These tend to Poisson's law: the series of 1/e breaks off after n - k terms, so P(k) is off by less than the next.
    """
    for n in range(1, 7):
        law: dict = {}
        for found, p in outcomes(lambda chance: int(Halted(chance, n).copies(1, numbers(1))[0, 0]), Exact()):  # noqa: B023
            law[found] = law.get(found, 0) + p
        assert law == fixed_points(n)
        fixed = Counter(sum(i == j for i, j in enumerate(order)) for order in permutations(range(n)))
        assert law == {k: Fraction(count, math.factorial(n)) for k, count in fixed.items()}
        assert sum(law.values()) == 1
        for k in range(n + 1):
            limit = math.exp(-1) / math.factorial(k)
            assert abs(float(law.get(k, 0)) - limit) < 1 / math.factorial(k) / math.factorial(n - k + 1)
    # two at once are independent
    pairs: dict = {}
    four = fixed_points(4)
    for trees, records in ((1, 2), (2, 1)):
        pairs.clear()
        for found, p in outcomes(lambda c: tuple(Halted(c, 4).copies(trees, numbers(records)).flat), Exact()):  # noqa: B023
            pairs[found] = pairs.get(found, 0) + p
        assert pairs == {(a, b): four[a] * four[b] for a in four for b in four}


def test_secure_integers_are_not_biased_by_the_modulus():
    # 2^64 is 2 2/3 times this bound: without rejection 3/4 of the draws would lie below 2^62, not 2/3
    high, n = 3 << 61, 4000
    values = Secure().integers(high, n)
    assert values.min() >= 0
    assert values.max() < high
    below = int((values < 1 << 62).sum())
    assert abs(below - n * 2 / 3) < 6 * math.sqrt(n * 2 / 9)  # 3/4 is eleven standard deviations away


def test_secure_draws_at_the_ends_of_the_rate():
    source = Secure()
    table = np.tile([0.0, 3.0, -math.inf, 3.0], (300, 1))
    for kind, law in LAWS.items():
        assert set(source.select(kind, law, table, np.full(300, math.inf)).tolist()) == {1, 3}
        assert set(source.select(kind, law, table, np.zeros(300)).tolist()) == {0, 1, 3}
        assert source.select(kind, law, np.array([[-math.inf, -5.0]]), np.ones(1)).tolist() == [1]
        assert source.select(kind, law, np.zeros((0, 4)), np.ones(0)).shape == (0,)
    noise = source.two_sided_geometric(np.array([[math.inf], [0.01]]), (2, 300))
    assert not noise[0].any()
    assert (noise[1] != 0).mean() > 0.9


def test_secure_noise_does_not_saturate():
    # noise that stops at the ends of 32 bits would give the count away there
    noise = Secure().two_sided_geometric(np.array(1e-11), (200,))
    assert len(set(noise.tolist())) > 190
    assert np.abs(noise).max() > 1 << 31


def test_secure_has_no_seed_and_keeps_no_state():
    source = Secure()
    assert not inspect.signature(Secure).parameters
    assert not [name for name in vars(source) if "seed" in name or "state" in name or "rng" in name]
    assert not [
        value for value in vars(source).values() if isinstance(value, (np.random.Generator, np.random.RandomState))
    ]
    before = dict(vars(source))
    first = source.integers(1 << 40, 4).tolist()
    assert vars(source) == before
    assert source.integers(1 << 40, 4).tolist() != first
    assert Secure().integers(1 << 40, 4).tolist() != Secure().integers(1 << 40, 4).tolist()


@pytest.mark.parametrize("kind", ["exponential", "permute-and-flip", "noise"])
def test_another_library_draws_by_the_same_laws(kind):
    """OpenDP's samplers share no line with ours: two samples, one law."""
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed: make opendp")
    dp.enable_features("contrib")
    n, rate, vector = 4000, 0.8, [0.0, 1.0, 2.5, 2.5, 1.75]
    if kind == "noise":
        noise = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=1 / rate)
        theirs = np.clip(noise([0] * n), -5, 5)
        ours = np.clip(Seeded(2).two_sided_geometric(np.array(rate), (n,)), -5, 5)
    else:
        # OpenDP's noisy max is permute-and-flip under max-divergence, the exponential mechanism under zCDP
        measure = {"permute-and-flip": dp.max_divergence, "exponential": dp.zero_concentrated_divergence}[kind]()
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
        noisy_max = dp.m.make_noisy_max(*space, measure, scale=1 / rate)
        theirs = [noisy_max(vector) for _ in range(n)]
        ours = Seeded(2).select(kind, LAWS[kind], np.tile(vector, (n, 1)), np.full(n, rate))
    table = [[list(side).count(value) for value in sorted({*theirs, *ours})] for side in (theirs, ours)]
    # theirs cannot be seeded: by chance this fails once in a million runs
    assert stats.chi2_contingency(table).pvalue > 1e-6


# -- the verbs ---------------------------------------------------------------------------------------------------


def test_every_source_has_every_verb():
    verbs = [name for name, value in vars(door.Chance).items() if callable(value) and not name.startswith("_")]
    wanted = "integers", "subsets", "permutation", "coins", "lots", "copies", "key", "weighted", "select", "noise"
    assert set(verbs) == {*wanted[:-1], "two_sided_geometric", "discrete_gaussian"}
    for source in (Seeded, Replay, Secure):
        for verb in verbs:
            asked, given = (inspect.signature(getattr(c, verb)).parameters for c in (door.Chance, source))
            assert list(asked) == list(given), (source, verb)


@pytest.mark.parametrize("make", [Seeded, Secure])
def test_lots_are_drawn_in_any_order(make):
    """Each of the six orders of three numbers is as likely, and no promise rests on the hash."""
    source, orders = make(), Counter()
    for _ in range(1200):
        orders[tuple(np.argsort(source.lots(np.array([0, 1, 1 << 63], dtype=np.uint64))).tolist())] += 1
    assert len(orders) == 6
    assert all(120 < times < 280 for times in orders.values())  # six standard errors
    assert not source.hashes


def test_seeded_lots_belong_to_their_numbers():
    ids = np.arange(50, dtype=np.uint64)
    lots = Seeded(3).lots(ids)
    assert (Seeded(3).lots(ids[::-1]) == lots[::-1]).all()
    assert (Seeded(4).lots(ids) != lots).all()
    assert sorted(Replay().lots(ids[:4]).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("make", [lambda: Seeded(0), Replay, Secure], ids=["seeded", "replay", "secure"])
def test_shapes_of_uniform_draws(make):
    source = make()
    assert source.integers(1, 3).tolist() == [0, 0, 0]
    assert source.integers(4, 0).shape == (0,)
    assert source.subsets(3, 3, 2).tolist() == [[0, 1, 2]] * 2
    assert source.subsets(3, 0, 2).shape == (2, 0)
    assert source.subsets(3, 2, 0).shape == (0, 2)
    assert source.coins(1, numbers(3)).tolist() == [0, 0, 0]
    assert source.coins(4, numbers(0)).shape == (0,)
    assert source.coins(4, numbers(3)).dtype == np.int64
    assert source.lots(numbers(0)).shape == (0,)
    assert source.lots(numbers(3)).dtype == np.uint64
    if not isinstance(source, Replay):
        assert source.copies(2, numbers(0)).shape == (2, 0)
        assert source.copies(0, numbers(2)).shape == (0, 2)
        assert source.copies(2, numbers(3)).shape == (2, 3)
        assert source.copies(2, numbers(3)).dtype == np.int64
        assert all(0 <= word < 1 << 64 for word in source.key())
        assert source.key() != source.key()
    assert source.permutation(1).tolist() == [0]
    assert sorted(source.permutation(5).tolist()) == list(range(5))
    with pytest.raises((ValueError, ZeroDivisionError)):
        source.integers(0, 2)
    with pytest.raises((ValueError, ZeroDivisionError)):
        source.subsets(2, 3, 1)
