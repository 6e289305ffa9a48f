"""The door for randomness: seeded draws follow the laws, replay visits every branch once, the secure source too."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import oracle
import pytest
from scipy import stats

from dpforest import chance as door
from dpforest import keyed, mechanisms
from dpforest.chance import NotEnumerableError, Replay, Secure, Seeded, outcomes

LAWS = {"exponential": mechanisms.exponential_law, "permute-and-flip": mechanisms.permute_and_flip_law}


def secure() -> Secure:
    try:
        return Secure()
    except ImportError as missing:
        pytest.skip(str(missing))


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
    with pytest.raises((TypeError, ValueError)):
        Seeded("three")


class Fixed:
    """A generator that answers what it is told to."""

    def __init__(self, value):
        self.value = value

    def random(self, shape):
        return np.full(shape, self.value)


LAST = np.nextafter(1.0, 0.0)  # the largest number a generator can return


@pytest.mark.parametrize(
    ("law", "first", "last"),
    [
        ([0.0, 0.25, 0.0, 0.75, 0.0], 1, 3),
        ([1.0], 0, 0),
        ([0.0, 0.0, 1.0], 2, 2),
        ([1e-300, 1 - 1e-16, 1e-300], 0, 1),
        ([0.1] * 10, 0, 9),  # these sum to less than one
    ],
)
def test_seeded_selection_at_the_ends_of_the_uniform(law, first, last):
    source = Seeded(0)
    for value, expected in ((0.0, first), (LAST, last)):
        source._rng = Fixed(value)
        assert source.select("any", lambda scores, rate: scores, np.array([law]), np.ones(1)) == [expected]


def test_seeded_selection_inverts_the_distribution_function():
    # binary fractions, so that cumulative sums and comparisons are exact
    law, source = [0.125, 0.0, 0.5, 0.375], Seeded(0)
    for value, expected in ((0.0, 0), (0.125 - 2**-54, 0), (0.125, 2), (0.625 - 2**-53, 2), (0.625, 3), (LAST, 3)):
        source._rng = Fixed(value)
        assert source.select("any", lambda scores, rate: scores, np.array([law]), np.ones(1)) == [expected]


def test_seeded_selection_never_draws_the_impossible():
    rng, source = np.random.default_rng(0), Seeded(0)
    laws = rng.random((300, 37)) * (rng.random((300, 37)) < 0.4)
    laws[:, 5] += 1e-12  # at least one candidate
    laws /= laws.sum(axis=1, keepdims=True)
    for value in (0.0, 5e-324, 2**-53, 0.5, LAST - 2**-53, LAST):
        source._rng = Fixed(value)
        chosen = source.select("any", lambda scores, rate: scores, laws, np.ones(300))
        assert (laws[np.arange(300), chosen] > 0).all()


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


@pytest.mark.claim("thm-replay", verdict="proved", constant="probabilities sum to 1", evidence="exhaustive")
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
    for verb, (values, law) in draws(secure(), 3000).items():
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
    values = secure().integers(high, n)
    assert values.min() >= 0
    assert values.max() < high
    below = int((values < 1 << 62).sum())
    assert abs(below - n * 2 / 3) < 6 * math.sqrt(n * 2 / 9)  # 3/4 is eleven standard deviations away


def test_secure_draws_at_the_ends_of_the_rate():
    source = secure()
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
    noise = secure().two_sided_geometric(np.array(1e-11), (200,))
    assert len(set(noise.tolist())) > 190
    assert np.abs(noise).max() > 1 << 31


def test_secure_has_no_seed_and_keeps_no_state():
    source = secure()
    assert not inspect.signature(Secure).parameters
    assert not [name for name in vars(source) if "seed" in name or "state" in name or "rng" in name]
    assert not [
        value for value in vars(source).values() if isinstance(value, (np.random.Generator, np.random.RandomState))
    ]
    before = dict(vars(source))
    first = source.integers(1 << 40, 4).tolist()
    assert vars(source) == before
    assert source.integers(1 << 40, 4).tolist() != first
    assert secure().integers(1 << 40, 4).tolist() != secure().integers(1 << 40, 4).tolist()


def test_secure_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match="extra 'release'"):
        Secure()


# -- the verbs ---------------------------------------------------------------------------------------------------


def test_every_source_has_every_verb():
    verbs = [name for name, value in vars(door.Chance).items() if callable(value) and not name.startswith("_")]
    wanted = "integers", "subsets", "permutation", "coins", "copies", "key", "weighted", "select", "two_sided_geometric"
    assert set(verbs) == set(wanted)
    for source in (Seeded, Replay, Secure):
        for verb in verbs:
            asked, given = (inspect.signature(getattr(c, verb)).parameters for c in (door.Chance, source))
            assert list(asked) == list(given), (source, verb)


@pytest.mark.parametrize("make", [lambda: Seeded(0), Replay, secure], ids=["seeded", "replay", "secure"])
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
