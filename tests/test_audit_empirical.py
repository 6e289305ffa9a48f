"""Audits by sampling: leaks of every kind are found, sound mechanisms are left alone, bad input is refused.

All draws are seeded, so that every outcome here is the same on every run; where a test counts outcomes over seeds it
says what was to be expected of them.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import sys
from collections import namedtuple
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpforest.audit.sampling.bounds import epsilon_lower
from dpforest.audit.sampling.draws import UNCHECKED
from dpforest.audit.sampling.empirical import empirical
from dpforest.audit.sampling.events import choose, propose
from dpforest.audit.sampling.features import features_of, grain
from dpforest.audit.sampling.outputs import OutputReader
from dpforest.audit.sampling.trade_off import trade_off
from dpforest.mechanisms import exponential_law, permute_and_flip_law
from tests import not_run

# -- sound mechanisms, with their claims -------------------------------------------------------------------------------


def geometric(count, size, rng):
    """Two-sided geometric noise at epsilon 1."""
    stop = 1 - math.exp(-1)
    return np.asarray(count) + rng.geometric(stop, size) - rng.geometric(stop, size)


def laplace_on_grid(count, size, rng):
    """Laplace noise at epsilon 1, on multiples of 2^-20: no low bits to read."""
    return np.round((count + rng.laplace(size=size)) * 2.0**20) * 2.0**-20


def permute_and_flip(scores, size, rng):
    return rng.choice(len(scores), size, p=permute_and_flip_law(scores, 0.5))


def exponential(scores, size, rng):
    return rng.choice(len(scores), size, p=exponential_law(scores, 0.5))


def histogram(counts, size, rng):
    return np.stack([geometric(count, size, rng) for count in counts], axis=1)


def randomised_response(bits, size, rng):
    truthful = rng.random((size, len(bits))) < math.e / (1 + math.e)
    return [tuple(row) for row in np.where(truthful, bits, 1 - np.array(bits)).tolist()]


def sparse(data, size, rng):
    """One of twenty thousand labels, whatever the data: loss 0."""
    return rng.integers(20_000, size=size)


SOUND = {
    "geometric": (geometric, (0, 1), 1.0),
    "laplace": (laplace_on_grid, (0, 1), 1.0),
    "permute-and-flip": (permute_and_flip, ((0, 2), (1, 1)), 1.0),
    "exponential": (exponential, [((0, 2), (1, 1)), ((0, 4), (1, 3))], 1.0),
    "histogram": (histogram, ((3, 0, 5), (3, 1, 5)), 1.0),
    "randomised response": (randomised_response, ((0, 0, 0), (1, 0, 0)), 1.0),
    "sparse": (sparse, (0, 1), 0.0),
}
sound = pytest.mark.parametrize(("sample", "pair", "claim"), SOUND.values(), ids=SOUND)


@pytest.mark.slow
@sound
@pytest.mark.parametrize(("method", "seeds", "most"), [("fixed", 20, 1), ("betting", 8, 1)])
def test_sound_mechanisms_are_left_alone(sample, pair, claim, method, seeds, most):
    """At most 5 % of alarms: each audit errs with some 0.5 % here, and with 5 % by promise."""
    kinds = ("atoms", "thresholds", "sets")
    audits = [
        empirical(sample, pair, claim, n=2000, random_state=seed, method=method, events=kinds) for seed in range(seeds)
    ]
    assert sum(audit.violated for audit in audits) <= most
    if claim and method == "fixed":
        assert np.median([audit.epsilon_lower for audit in audits]) > 0.55  # or nothing was tested


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "histogram"])
def test_sound_mechanisms_are_left_alone_by_classifiers(name):
    sample, pair, claim = SOUND[name]
    audits = [empirical(sample, pair, claim, n=2000, random_state=seed, events="classifier") for seed in range(8)]
    assert not any(audit.violated for audit in audits)
    assert 0.5 < np.median([audit.epsilon_lower for audit in audits]) < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method", "least"),
    [("laplace", "fixed", 0.97), ("permute-and-flip", "fixed", 0.97), ("permute-and-flip", "sharp", 0.98)],
)
def test_power_at_a_hundred_thousand_draws(name, method, least):
    """Medians over 3 seeds; expected are 0.981 and 0.988, each audit with a standard deviation of 0.007."""
    sample, pair, claim = SOUND[name]
    audits = [empirical(sample, pair, claim, random_state=seed, method=method) for seed in range(3)]
    assert np.median([audit.epsilon_lower for audit in audits]) >= least


@pytest.mark.slow
def test_power_of_the_exponential_mechanism_at_a_million_draws():
    """Its loss is approached only where probabilities vanish: the auditor has to find the pair in between."""
    pairs = [(f"gap {gap}", (0, gap), (1, gap - 1)) for gap in range(1, 10)]
    audit = empirical(exponential, pairs, 1.0, n=1_000_000, random_state=0)
    assert 0.93 <= audit.epsilon_lower <= 1


# -- leaks -------------------------------------------------------------------------------------------------------------


def rare(leaks, size, rng):
    """A value that has probability 0 on one side and 1/500 on the other."""
    return np.where((rng.random(size) < 0.002) & leaks, 1000, geometric(0, size, rng))


def rare_labels(leaks, size, rng):
    """Ten thousand labels, each of probability 1/100000, on one side alone."""
    odd = (rng.random(size) < 0.1) & leaks
    return [f"{k:05d}" if is_odd else "usual" for k, is_odd in zip(rng.integers(10_000, size=size), odd, strict=True)]


def an_atom(leaks, size, rng):
    """Noise that is sometimes left out."""
    outputs = laplace_on_grid(0, size, rng)
    return np.where((rng.random(size) < 0.01) & leaks, 0.125, outputs)


def floating_laplace(count, size, rng):
    """The textbook mechanism on doubles: sound in real arithmetic."""
    return count + rng.laplace(size=size)


def shared_noise(counts, size, rng):
    """One noise value for the whole vector."""
    return np.asarray(counts) + laplace_on_grid(0, (size, 1), rng)


def noisy_max_with_gap(counts, size, rng):
    """Noise that is reused: the sum of two outputs has none."""
    noise = geometric(0, size, rng)
    return np.stack([counts[0] + noise, counts[1] - noise], axis=1)


def a_new_label(leaks, size, rng):
    labels = ["a", "b", *(["c"] if leaks else [])]
    return rng.choice(labels, size, p=[0.5, 0.5] if not leaks else [0.495, 0.495, 0.01]).tolist()


def nothing_at_all(leaks, size, rng):
    return np.where((rng.random(size) < 0.01) & leaks, np.nan, laplace_on_grid(0, size, rng))


def none_among_numbers(leaks, size, rng):
    missing = (rng.random(size) < 0.01) & leaks
    return [None if gone else x for gone, x in zip(missing, geometric(0, size, rng).tolist(), strict=True)]


def nan_in_tuples(leaks, size, rng):
    missing = (rng.random(size) < 0.01) & leaks
    return [(math.nan if gone else 1.5, int(x)) for gone, x in zip(missing, rng.integers(3, size=size), strict=True)]


def sign_of_zero(leaks, size, rng):
    return np.where((rng.random(size) < 0.5) & leaks, -0.0, 0.0)


def a_band(leaks, size, rng):
    """Uniform over a wide range, but for a gap in the middle: no half-line tells, no value comes twice."""
    low, high = (rng.integers(0, 2**40, size), rng.integers(2**41, 2**41 + 2**40, size))
    middle = rng.integers(2**40, 2**41, size)
    which = rng.random(size)
    return np.where(
        which < (0.45 if leaks else 0.25), low, np.where(which < 0.55 if leaks else which < 0.75, middle, high)
    )


def last_place(leaks, size, rng):
    """Which of three is largest depends on the data, where no single one does."""
    outputs = rng.integers(0, 10**6, (size, 3))
    return np.sort(outputs, axis=1)[:, [0, 2, 1]] if leaks else outputs


def forests(leaks, size, rng):
    """Arrays as bytes: one of eight is a code that the data moves."""
    arrays = rng.integers(0, 200, (size, 8), dtype=np.uint8)
    arrays[:, 5] = arrays[:, 5] // 2 + 56 * leaks
    return [(row[:4].tobytes(), row[4:].tobytes()) for row in arrays]


def growing(leaks, size, rng):
    """Tuples whose length gives them away."""
    lengths = rng.integers(1, 4 + leaks, size)
    return [tuple(rng.integers(0, 10**6, k).tolist()) for k in lengths.tolist()]


LEAKS = {
    "a rare value": (rare, (False, True), "output = 1000", "second"),
    "many rare labels": (rare_labels, (True, False), "none of the 1 values seen on the second", "first"),
    "an atom": (an_atom, (True, False), "", "first"),
    "grain of doubles": (floating_laplace, (0, 1), "", "first"),
    "differences in a vector": (shared_noise, ((4, 7), (4, 8)), "output[1] - output[0]", ""),
    "reused noise": (noisy_max_with_gap, ((4, 7), (4, 8)), "", ""),
    "a new label": (a_new_label, (False, True), "output = 'c'", "second"),
    "NaN": (nothing_at_all, (True, False), "output = nan", "first"),
    "None among numbers": (none_among_numbers, (True, False), "", "first"),
    "NaN in a tuple": (nan_in_tuples, (False, True), "", "second"),
    "the sign of zero": (sign_of_zero, (True, False), "output = -0.0", "first"),
    "a band": (a_band, (True, False), "gradient boosting", "second"),
    "place of the largest": (last_place, (True, False), "", ""),
    "bytes of arrays": (forests, (False, True), "byte 1 of output[1]", ""),
    "lengths": (growing, (False, True), "", "second"),
}
CLAIMS = {"a band": 0.9, "place of the largest": 0.9}  # whose loss is ln 5 and ln 3
DRAWS = {"bytes of arrays": 4000, "lengths": 4000}  # gross: an event of 1/4 that the other never has


@pytest.mark.slow
@pytest.mark.parametrize("name", LEAKS)
def test_leaks_are_found(name):
    """Each is missed with probability below 1e-6 at this n, whatever the seed."""
    sample, pair, words, direction = LEAKS[name]
    audit = empirical(sample, (name, *pair), CLAIMS.get(name, 1.0), n=DRAWS.get(name, 20_000), random_state=7)
    assert audit.violated
    assert audit.epsilon_lower > audit.claim
    assert audit.p_value < 0.05
    assert words in audit.event
    assert direction in audit.direction
    assert audit.pair == name


@pytest.mark.parametrize("method", ["sharp", "betting"])
@pytest.mark.parametrize("name", ["a rare value", "a new label", "an atom"])
def test_leaks_are_found_by_every_method(name, method):
    sample, pair, _, direction = LEAKS[name]
    audit = empirical(sample, pair, 1.0, n=20_000, random_state=7, method=method)
    assert audit.violated
    assert audit.direction == direction
    if method == "betting":
        assert audit.n < 20_000  # it stopped when it knew


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kinds", "words"),
    [
        ("an atom", "atoms", "output = 0.125"),
        ("reused noise", "thresholds", "sum of output"),
        ("reused noise", "sets", "output in {"),
        ("NaN", "atoms", "output = nan"),
        ("place of the largest", "atoms", "place of the"),
        ("differences in a vector", "thresholds", "output[1] - output[0]"),
        ("many rare labels", "atoms", "values seen on the second data set"),
        ("lengths", "thresholds", "length of output >= 4"),
    ],
)
def test_events_can_be_said_in_words(name, kinds, words):
    sample, pair, _, _ = LEAKS[name]
    audit = empirical(sample, pair, 0.9, n=DRAWS.get(name, 20_000), random_state=7, events=kinds)
    assert audit.violated
    assert words in audit.event


def test_a_label_that_an_output_lacks_is_said_to_be_none():
    """Most outputs are of one length and have columns; a shorter one, which tells, has no entries in them."""

    def sample(leaks, size, rng):
        short = rng.random(size) < (0.4 if leaks else 0.1)
        return [() if gone else ("a", k) for gone, k in zip(short, rng.integers(50, size=size).tolist(), strict=True)]

    rng, reader = np.random.default_rng(0), OutputReader()
    both = tuple(reader(sample(leaks, 400, rng), 400, "") for leaks in (True, False))
    proposals, _ = propose(both, both, features_of(both), ("atoms",), 400, 0.95, 0)
    said = {proposal.event.description for proposal in proposals}
    assert {"output = ()", "output[0] = None", "output[0] = 'a'"} <= said


def test_numpy_numbers_are_written_as_numbers():
    def sample(data, size, rng):
        return [(np.int64(k), np.float64(np.nan)) for k in rng.integers(0, 2 + 2 * data, size)]

    audit = empirical(sample, (0, 1), 1.0, n=1000, random_state=0, events="sets")
    assert audit.event == "output in {(2, nan), (3, nan)}"


def test_the_grain_of_doubles_can_be_said_in_words():
    """Near 0 the outputs of count 0 are finer than any output of count 1."""
    audit = empirical(floating_laplace, (0, 1), 1.0, n=20_000, random_state=0, events="thresholds")
    assert audit.event.startswith("lowest bit of output <= 2^-5")
    assert audit.hits[1] == 0
    assert audit.epsilon_lower > 7


def test_grain():
    x = [1.0, 3.0, 2.0, 0.5, -0.75, 0.0, math.nan, math.inf, 2.0**-1074, 1 + 2.0**-52, 2.0**60]
    expected = [0, 0, 1, -1, -2, 1100, math.nan, math.nan, -1074, -52, 60]
    assert np.array_equal(grain(x), expected, equal_nan=True)


def test_the_direction_follows_the_pair():
    one, other = (empirical(rare, pair, 1.0, n=20_000, random_state=3) for pair in ((False, True), (True, False)))
    assert (one.direction, other.direction) == ("second", "first")
    assert one.hits[0] == other.hits[1] == 0


def test_the_layout_is_that_of_the_pair_and_not_of_the_first_draws():
    """Nothing but () on an empty data set, and rarely a triple; pairs on others, whose difference tells."""

    def sample(data, size, rng):
        if data is None:
            return [()] * size
        x = rng.integers(0, 10**6, size)
        return list(zip(x.tolist(), (x + data).tolist(), strict=True))

    pairs = [("dull", None, None), ("telling", 1, 2)]
    audit = empirical(sample, pairs, 1.0, n=2000, random_state=0, events="thresholds")
    assert audit.violated
    assert audit.event.startswith("output[1] - output[0]")


def test_the_leaky_pair_is_found_among_many():
    pairs = [(f"sound {k}", (0, 2), (1, 1)) for k in range(15)] + [("leaky", (0, 4), (0, 0))]
    audit = empirical(permute_and_flip, pairs[8:] + pairs[:8], 1.0, n=20_000, random_state=0)
    assert audit.violated
    assert audit.pair == "leaky"


def test_features_of_the_user():
    """A parity of bits, which no other feature shows."""

    def sample(leaks, size, rng):
        x = rng.integers(0, 2**40, size)
        odd = np.bitwise_count(x) % 2 == 1
        return np.where(odd & leaks, x ^ 1, x)

    blind = empirical(sample, (True, False), 1.0, n=5000, random_state=0)
    assert not blind.violated
    audit = empirical(sample, (True, False), 1.0, n=5000, random_state=0, features=lambda x: np.bitwise_count(x) % 2)
    assert audit.violated
    assert "feature[0]" in audit.event


@pytest.mark.claim("thm-audit-bound")
@pytest.mark.parametrize("audit", [empirical, trade_off], ids=["empirical", "trade-off"])
@pytest.mark.parametrize(
    "beside_others",
    [lambda x: np.full(len(x), x.mean()), lambda x: np.argsort(np.argsort(x)), lambda x: x + 1e-3 * len(x)],
    ids=["mean", "rank", "size"],
)
def test_features_are_of_each_output_by_itself(audit, beside_others):
    """The mean of all draws, as a feature of each, would put all draws of a side into an event or none: a false alarm.

    The draws are then not independent, and a noisy count of loss 1 was "shown" to lose more than 6.
    """

    def noisy(records, size, rng):
        return sum(records) + rng.geometric(1 - math.exp(-1), size) - rng.geometric(1 - math.exp(-1), size)

    asked = {"claim": 1.0, "n": 4000, "random_state": 0}
    with pytest.raises(ValueError, match="what that output alone decides"):
        audit(noisy, ((), (1,)), features=beside_others, **asked)
    alone = audit(noisy, ((), (1,)), features=lambda x: [[math.sin(each), math.nan, math.inf] for each in x], **asked)
    assert not alone.violated


def test_known_laws_give_the_likelihood_ratio_set():
    def law(scores):
        return dict(enumerate(permute_and_flip_law(scores, 0.5).tolist()))

    pair = ((0, 2, 1, 1), (1, 1, 1, 1))
    audit = empirical(permute_and_flip, pair, 1.0, n=50_000, random_state=0, law=law, events="atoms")
    assert 0.6 < audit.epsilon_lower < math.log(law(pair[1])[0] / law(pair[0])[0])


def test_known_laws_alone_suffice():
    """Nothing can be fitted to values that never come twice, but the law knows where they are likelier."""
    n = 200_000
    likely = (np.arange(n) % 2 == 0) + 1.0

    def law(flip):
        weights = likely[::-1] if flip else likely
        return dict(enumerate((weights / weights.sum()).tolist()))

    def sample(flip, size, rng):
        return 2 * rng.integers(n // 2, size=size) + (rng.random(size) < (2 / 3 if flip else 1 / 3))

    audit = empirical(sample, (False, True), 1.0, n=20_000, random_state=0, law=law, events="atoms")
    assert audit.event.startswith("log-likelihood ratio of first to second")
    assert 0.6 < audit.epsilon_lower < math.log(2)


# -- fresh draws -------------------------------------------------------------------------------------------------------


def binomial(n: int, k: int, p: Fraction) -> Fraction:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def alarm_on_the_same_draws(k: int, n: int, claim: float) -> Fraction:
    """How often "seen on the first side and not on the second" refutes a mechanism of loss 0, tested where it was seen.

    Outputs are uniform over ``k`` values; the second side shows J different ones, and of the first side's draws A fall
    on others, which makes A hits against none.
    """
    seen = [Fraction(1)]
    for _ in range(n):  # the law of J, draw by draw
        stay, grow = [Fraction(j, k) for j in range(len(seen) + 1)], [Fraction(k - j, k) for j in range(len(seen))]
        seen = [
            (seen[j] * stay[j] if j < len(seen) else 0) + (seen[j - 1] * grow[j - 1] if j else 0)
            for j in range(len(seen) + 1)
        ]
    enough = next(a for a in range(n + 1) if epsilon_lower(a, n, 0, n) > claim)
    tail = [
        sum(math.comb(n, a) * Fraction(k - j, k) ** a * Fraction(j, k) ** (n - a) for a in range(enough, n + 1))
        for j in range(n + 1)
    ]
    return sum((chance * over for chance, over in zip(seen, tail, strict=True)), Fraction(0))


def alarm_on_fresh_draws(k: int, n: int, claim: float, sizes) -> list[float]:
    """The same for events of so many values that were chosen before."""
    x = np.arange(n + 1)
    over = np.array([[epsilon_lower(a, n, b, n) > claim for b in x.tolist()] for a in x.tolist()])
    chances = [stats.binom.pmf(x, n, size / k) for size in sizes]
    return [float(chance @ over @ chance) for chance in chances]


@pytest.mark.claim(
    "cex-same-draws",
    verdict="refuted",
    evidence="exhaustive",
    constant=r"at a loss of $0$, false alarms with probability $1 - 6.6 \cdot 10^{-35}$ on the same draws, "
    r"$1.7 \cdot 10^{-7}$ on fresh ones",
)
def test_an_event_tested_where_it_was_found_always_alarms():
    k, n, claim = 20_000, 30, 1.0
    assert math.isclose(1 - alarm_on_the_same_draws(k, n, claim), 6.593e-35, rel_tol=1e-3)
    # An event of any size that was chosen before; the law of its size is another question, the worst is enough.
    sizes = [1, n, *range(k // 100, k + 1, k // 100)]
    assert math.isclose(max(alarm_on_fresh_draws(k, n, claim, sizes)), 1.65e-7, rel_tol=1e-3)
    # What is claimed grows without limit: n hits against none.
    assert math.isclose(epsilon_lower(n, n, 0, n), math.log(0.025 ** (1 / n) / (1 - 0.025 ** (1 / n))))


@pytest.mark.claim("cex-same-draws")
def test_the_auditor_itself_would_always_alarm_on_the_same_draws():
    """Its own proposals, tested on the draws that they were made on: alarms on every seed; on fresh draws, on none."""
    kinds, n = ("atoms", "sets"), 2000
    for seed in range(10):
        rng = np.random.default_rng(seed)
        reader = OutputReader()
        same, fresh = (tuple(reader(sparse(0, n, rng), n, "") for _ in range(2)) for _ in range(2))
        proposals, _ = propose(same, same, features_of(same), kinds, n, 0.95, 0)
        chosen = choose(proposals, same, same, n, 0.95)
        hits = [int(chosen.event(batch).sum()) for batch in (same if chosen.first else same[::-1])]
        assert epsilon_lower(hits[0], n, hits[1], n) > 2
        hits = [int(chosen.event(batch).sum()) for batch in (fresh if chosen.first else fresh[::-1])]
        assert epsilon_lower(hits[0], n, hits[1], n) == 0


# -- the answer --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [(), (1, 1, 1)], ids=["neighbours", "three records more"])
def test_the_answer_says_whether_the_pairs_were_checked(n):
    """A pair that is none of neighbours refutes any claim, so an answer without a check says that there was none."""

    def count(data, size, rng):
        return len(data) + rng.geometric(0.5, size) - rng.geometric(0.5, size)

    asked = {"claim": 1.0, "n": 2_000, "random_state": 0}
    audit = empirical(count, [((), n or (1,))], **asked)
    assert audit.violated == bool(n)
    assert audit.relation is audit.to_dict()["relation"] is None
    said = "that the pair is one of neighbours was not checked (relation=)"
    assert str(audit).endswith(said)
    if n:
        with pytest.raises(ValueError, match="not one of neighbours"):
            empirical(count, [((), n)], relation="add-remove", **asked)
    else:
        checked = empirical(count, [((), (1,))], relation="add-remove", **asked)
        assert checked.relation == checked.to_dict()["relation"] == "add-remove"
        assert said not in str(checked)
        assert checked.epsilon_lower == audit.epsilon_lower


def test_the_answer_in_words_numbers_and_pictures():
    audit = empirical(rare, ("the pair", False, True), 0.5, n=20_000, random_state=0)
    assert str(audit).startswith(
        f"eps >= {audit.epsilon_lower:.4g} with 95 % confidence (claim 0.5: VIOLATED) by event "
    )
    assert str(audit).endswith("on pair the pair, n = 20000 per side" + UNCHECKED)
    told = json.loads(audit.to_json())
    assert told == audit.to_dict()
    assert told["hits"] == list(audit.hits)
    assert told["intervals"][0][0] == 0
    assert told["intervals"][1][0] < audit.hits[1] / audit.n < told["intervals"][1][1]
    figure = audit.plot()
    assert [axes.get_xscale() for axes in figure.axes] == ["linear", "log"]
    assert audit.event in figure.axes[1].get_title(loc="left")
    assert "claim refuted" in figure.axes[0].get_title(loc="left")
    assert "0.5" in audit.alt
    with pytest.raises(AttributeError):
        audit.claim = 2.0


def test_a_claim_that_is_not_refuted_says_so():
    audit = empirical(geometric, (0, 1), 1.0, n=2000, random_state=0)
    assert "(claim 1: not refuted)" in str(audit)
    assert audit.pair == (0, 1)
    assert "claim not refuted" in audit.plot().axes[0].get_title(loc="left")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fixed", "sharp", "betting"])
def test_the_same_seed_gives_the_same_answer(method):
    runs = [empirical(floating_laplace, (0, 1), 1.0, n=3000, random_state=seed, method=method) for seed in (5, 5, 6)]
    assert runs[0] == runs[1] != runs[2]
    generator = empirical(floating_laplace, (0, 1), 1.0, n=3000, random_state=np.random.default_rng(5), method=method)
    assert generator == runs[0]


def test_what_was_tried_is_counted():
    few, many = (
        empirical(geometric, (0, 1), 1.0, n=2000, random_state=0, events=kinds).tried
        for kinds in ("atoms", ("atoms", "sets"))
    )
    assert 10 < few < many


def test_progress_is_shown_on_demand(capsys):
    empirical(geometric, (0, 1), 1.0, n=500, random_state=0)
    assert capsys.readouterr().err == ""
    empirical(geometric, (0, 1), 1.0, n=500, random_state=0, progress=True)
    assert "2000/2000" in capsys.readouterr().err


FORMS = {
    "float": lambda x: x.astype(float),
    "float32": lambda x: x.astype(np.float32),
    "unsigned": lambda x: x.astype(np.uint8),
    "bool": lambda x: x > 0,
    "complex": lambda x: x * 1j,
    "list": lambda x: x.tolist(),
    "tuple": tuple,
    "series": pd.Series,
    "frame": lambda x: pd.DataFrame({"a": x, "b": x}),
    "rows": lambda x: np.stack([x, x], axis=1),
    "three axes": lambda x: x.reshape(-1, 1, 1),
    "strings": lambda x: x.astype(str),
    "objects": lambda x: np.array([str(k) for k in x], dtype=object),
    "bytes": lambda x: [bytes([k]) for k in x.tolist()],
    "lists": lambda x: [[k, k + 1] for k in x.tolist()],
    "arrays": lambda x: [np.array([k, 2]) for k in x.tolist()],
    "sets": lambda x: [frozenset([k]) for k in x.tolist()],
    "mixed tuples": lambda x: [(k, "a", None) for k in x.tolist()],
    "nested tuples": lambda x: [(k, (k, math.nan)) for k in x.tolist()],
    "tuples of many lengths": lambda x: [(1,) * k for k in x.tolist()],
    "wide tuples": lambda x: [(k,) * 100 for k in x.tolist()],
    "fractions": lambda x: [Fraction(k, 3) for k in x.tolist()],
    "huge numbers": lambda x: [10**400 + k for k in x.tolist()],
    "infinities": lambda x: np.where(x, math.inf, -math.inf),
    "rows of infinities": lambda x: np.where(x[:, None], [math.inf, math.inf], [math.inf, 1.0]),
    "list of infinities": lambda x: [math.inf if k else math.nan for k in x.tolist()],
    "all NaN but some": lambda x: np.where(x, math.nan, 0.0),
    "numpy numbers": list,
    "None or not": lambda x: [None if k else () for k in x.tolist()],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_outputs_of_many_forms_are_read(form):
    def sample(data, size, rng):
        return form((rng.random(size) < (0.8 if data else 0.1)).astype(int))

    audit = empirical(sample, (0, 1), 1.0, n=1000, random_state=0)
    assert audit.violated
    assert 1.2 < audit.epsilon_lower < math.log(8)


# -- bad input ---------------------------------------------------------------------------------------------------------

TABLE = pd.DataFrame({"x": [1.0, math.nan], "y": [0, 1]})


@pytest.mark.parametrize(
    ("relation", "one", "other"),
    [
        ("add-remove", [(0, 1)], [(0, 1), (0, 0)]),
        ("add-remove", [(0, 1), (0, 0)], [(0, 0)]),
        ("add-remove", [(0, 0), (1, 1), (0, 0)], [(1, 1), (0, 0)]),
        ("replace-one", [(0, 1), (2, 2)], [(2, 2), (0, 0)]),
        ("add-remove", TABLE, TABLE.iloc[:1]),
        ("add-remove", TABLE, TABLE.iloc[1:]),
        ("replace-one", np.eye(3), np.diag([1, 1, 2])),
        ("add-remove", [{"x": 1}], [{"x": 1}, {"x": math.nan}]),
        ("add-remove", [np.array([1, 2])], []),
    ],
)
def test_neighbours_pass(relation, one, other):
    def sample(data, size, rng):
        return geometric(len(data), size, rng)

    assert empirical(sample, (one, other), 1.0, n=200, random_state=0, relation=relation).n == 200


@pytest.mark.parametrize(
    ("relation", "one", "other", "gone", "come"),
    [
        ("add-remove", [(0, 1)], [(0, 0)], 1, 1),
        ("add-remove", [(0, 1)], [(0, 1)], 0, 0),
        ("add-remove", [], [(0, 1), (0, 1)], 0, 2),
        ("replace-one", [(0, 1)], [(0, 1), (0, 0)], 0, 1),
        ("replace-one", [(0, 1)], [(0, 1)], 0, 0),
        ("replace-one", [(0, 1), (0, 1)], [(0, 0), (0, 0)], 2, 2),
        ("add-remove", TABLE, TABLE.iloc[:0], 2, 0),
    ],
)
def test_pairs_that_are_no_neighbours_are_refused(relation, one, other, gone, come):
    message = f"pair named is not one of neighbours under {relation}.*: {gone} records .* and {come} of the second"
    with pytest.raises(ValueError, match=message):
        empirical(geometric, [("named", one, other)], 1.0, relation=relation)


def fails_on_the_second(data, size, rng):
    if data:
        raise KeyError("no such leaf")
    return geometric(0, size, rng)


def fails(data, size, rng):
    raise ZeroDivisionError("division by zero")


def leaves(data, size, rng):
    sys.exit(0)


def leaves_on_the_second(data, size, rng):
    return sys.exit("no records") if data else geometric(0, size, rng)


def masked(data, size, rng):
    """The numbers are alike; which of them are hidden is not."""
    return np.ma.array(geometric(0, size, rng), mask=rng.random(size) < data / 2)


def masked_rows(data, size, rng):
    return list(np.ma.array(rng.random((size, 2)), mask=bool(data)))


def short(data, size, rng):
    return geometric(0, size - data, rng)


def ignores(data, size, rng):
    return geometric(data, size, np.random.default_rng(0))


def elsewhere(data, size, rng):
    return np.random.random(size)  # noqa: NPY002 - what is refused


def constant(data, size, rng):
    return np.full(size, 3)


def data_itself(data, size, rng):
    return [f"class {data}"] * size


def one_draw_repeated(data, size, rng):
    return np.full(size, rng.random())


def ragged(data, size, rng):
    return [np.zeros(1 + k) for k in rng.integers(3, size=size)]


def shape_of_the_data(data, size, rng):
    return rng.random((size, 2 + data))


def form_of_the_data(data, size, rng):
    return rng.random(size) if data else rng.random(size).tolist()


def unhashable(data, size, rng):
    return [{"a": k} for k in rng.integers(3, size=size)]


def lists_of_strings(data, size, rng):
    return [["a", "b"]] * size


def a_number(data, size, rng):
    return 3


def a_generator(data, size, rng):
    return (k for k in range(size))


def a_string(data, size, rng):
    return "x" * size


@pytest.mark.parametrize(
    ("sample", "kind", "message"),
    [
        (fails_on_the_second, RuntimeError, "second data set of pair P and not on the first: KeyError.*return a value"),
        (leaves, RuntimeError, "failed on both data sets of pair P; on the first: SystemExit: 0"),
        (leaves_on_the_second, RuntimeError, "second data set of pair P and not on the first: SystemExit: no records"),
        (masked, ValueError, "the first data set of pair P are masked arrays.*return .filled"),
        (masked_rows, ValueError, "the first data set of pair P are masked arrays.*return .filled"),
        (fails, RuntimeError, "failed on both data sets of pair P; on the first: ZeroDivisionError: division by zero"),
        (short, ValueError, "returned 999 outputs for the second data set of pair P, where 1000 were asked for"),
        (ignores, ValueError, "same draws for two different generators: it must take its randomness from `rng`"),
        (elsewhere, ValueError, "takes nothing from `rng`: it must take its randomness from `rng`"),
        (constant, ValueError, "in at least 1000 draws .* It is the same one on both data sets of every pair"),
        (data_itself, ValueError, "pair P the outputs differ, 'class 0' and 'class 1': the loss is infinite"),
        (one_draw_repeated, ValueError, "returned one output 32 times over, and in the next call another one"),
        (ragged, ValueError, r"outputs differ in shape: \(1,\), \(2,\), \(3,\) among those for the first"),
        (shape_of_the_data, ValueError, r"for the second .* arrays of shape \(3,\), elsewhere arrays of shape \(2,\)"),
        (form_of_the_data, ValueError, "for the second .* returned numbers, elsewhere a list"),
        (unhashable, ValueError, "outputs must be numbers, rows of an array or hashable.*unhashable type: 'dict'"),
        (lists_of_strings, ValueError, "lists that hold more than numbers: return tuples"),
        (a_number, ValueError, "must return an array or a list.*it returned int"),
        (a_generator, ValueError, "must return an array or a list.*it returned generator"),
        (a_string, ValueError, "must return an array or a list.*it returned str"),
        (3, TypeError, "sample must be a function"),
    ],
)
def test_samplers_that_cannot_be_audited(sample, kind, message):
    with pytest.raises(kind, match=message):
        empirical(sample, [("P", 0, 1)], 1.0, n=1000, random_state=0)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("often", [0.05, 0.5, 0.9])
def test_a_sampler_that_fails_at_random_is_not_said_to_tell_data_sets_apart(often, seed):
    chance = np.random.default_rng(seed)

    def sample(data, size, rng):
        if chance.random() < often:
            raise OSError("no answer")
        return geometric(0, size, rng)

    def audit_often():
        for _ in range(1000):
            empirical(sample, ("P", 0, 1), 1.0, n=100, random_state=seed)

    with pytest.raises(RuntimeError, match=r"(on both data sets|in \d of 9 calls, .* too little to say).*") as caught:
        audit_often()
    assert "To fail on one of two neighbours" not in str(caught.value)


def test_a_function_that_leaves_the_program_is_an_error():
    """Not the end of a script that calls the auditor, with exit code 0."""
    for asked in ({"law": lambda data: sys.exit(0)}, {"features": lambda outputs: sys.exit(0)}):
        with pytest.raises(RuntimeError, match=r"left the program: SystemExit\(0\)"):
            empirical(geometric, (0, 1), 1.0, n=100, **asked)


class Liar:
    """Equal to everything, as it says."""

    def __init__(self, held):
        self.held = held

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __repr__(self):
        return f"Liar({self.held})"


class Marked(str):
    """A text that carries more than its letters."""


def marked(data):
    text = Marked("yes")
    text.more = data
    return text


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A part of it does not take part in comparisons."""

    label: int
    count: int = dataclasses.field(compare=False)


def another_nan(word):
    return np.array([word], dtype=np.uint64).view(float)[0]


@pytest.mark.parametrize(
    "says",
    [
        lambda data: (1, (1.0, True)[data]),
        lambda data: (1, True)[data],
        lambda data: ("a", ((0, 1), (0.0, 1))[data]),
        lambda data: ("a", (0.0, -0.0)[data]),
        lambda data: ("a", (math.nan, float(another_nan(0x7FF8000000000001)))[data]),
        Liar,
        marked,
        lambda data: Leaf(1, data),
        lambda data: (frozenset([1]), frozenset([True]))[data],
        lambda data: (Fraction(1), 1)[data],
    ],
    ids=[
        "type in a tuple",
        "type",
        "type below",
        "sign of zero",
        "NaN in a tuple",
        "==",
        "subclass",
        "hidden field",
        "type in a set",
        "type of a number",
    ],
)
def test_outputs_are_told_apart_by_all_that_they_hold(says):
    """Whatever their own comparison says: half of the outputs show the data."""

    def sample(data, size, rng):
        return [says(data * int(shown)) for shown in rng.integers(2, size=size).tolist()]

    audit = empirical(sample, (0, 1), 1.0, n=500, random_state=0, events="atoms")
    assert audit.violated
    assert min(audit.hits) == 0


@pytest.mark.parametrize("kind", ["float64", "longdouble"])
def test_all_bits_of_numbers_are_looked_at(kind):
    """The payload of a NaN; what a long double has below the last place of a double."""

    def sample(data, size, rng):
        hidden = data * rng.integers(2, size=size)
        if kind == "longdouble":
            return 1 + hidden * np.finfo(np.longdouble).eps
        return (np.uint64(0x7FF8000000000000) + hidden.astype(np.uint64)).view(float)

    if kind == "longdouble" and np.finfo(kind).eps == np.finfo(float).eps:
        pytest.skip(not_run.needs("long doubles", "another processor, such as x86-64"))
    audit = empirical(sample, (0, 1), 1.0, n=500, random_state=0, events="atoms")
    assert audit.violated
    assert min(audit.hits) == 0
    if kind == "float64":
        assert "output = nan" in audit.event


def test_a_failure_is_passed_on_with_its_cause():
    with pytest.raises(RuntimeError) as caught:
        empirical(fails_on_the_second, (0, 1), 1.0, n=100, random_state=0)
    assert isinstance(caught.value.__cause__, KeyError)


def test_one_side_may_be_deterministic():
    """A mechanism that does nothing on an empty data set is not a deterministic one."""

    def sample(data, size, rng):
        return geometric(0, size, rng) if data else np.zeros(size, dtype=int)

    audit = empirical(sample, (0, 1), 1.0, n=1000, random_state=0)
    assert audit.violated
    assert audit.hits[0] in (0, 1000)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"claim": -1.0}, ValueError, "finite epsilon, zero or more; got -1.0"),
        ({"claim": math.nan}, ValueError, "finite epsilon"),
        ({"claim": math.inf}, ValueError, "finite epsilon"),
        ({"claim": "1"}, TypeError, "claim must be a number"),
        ({"claim": None}, TypeError, "claim must be a number"),
        ({"confidence": 0.0}, ValueError, "confidence must lie strictly between 0 and 1"),
        ({"confidence": 1}, ValueError, "confidence must lie strictly between 0 and 1"),
        ({"confidence": 95}, ValueError, "such as 0.95; got 95"),
        ({"confidence": "high"}, TypeError, "confidence must be a number"),
        ({"n": 19}, ValueError, "n must be a whole number, at least 20"),
        ({"n": 1e5}, ValueError, "n must be a whole number"),
        ({"method": "bayes"}, ValueError, "method must be one of .*betting.*fixed.*sharp"),
        ({"relation": "swap"}, ValueError, "relation must be one of"),
        ({"relation": "add-remove"}, TypeError, "sequences of records; in pair .* of type int"),
        ({"events": "halves"}, ValueError, "events must be some of"),
        ({"events": ()}, ValueError, "events must be some of"),
        ({"pairs": []}, ValueError, "there are no pairs"),
        ({"pairs": 3}, TypeError, "pairs must be a list of pairs"),
        ({"pairs": "ab"}, TypeError, "pairs must be a list of pairs"),
        ({"pairs": [(0, 1, 2)]}, ValueError, r"pair number 0 must be \(dataset, dataset\) or \(name, "),
        ({"pairs": [(0, 1), 5]}, ValueError, "pair number 1 must be"),
        ({"pairs": [(0, 1)] * 50, "n": 1000}, ValueError, "n = 1000 is too small to choose among 50 pairs: raise"),
        ({"law": lambda data: {0: 0.5, 1: 0.6}}, ValueError, "must not be negative and sum to one.*the first data set"),
        ({"law": lambda data: {0: 1.5, 1: -0.5}}, ValueError, "must not be negative and sum to one"),
        ({"law": lambda data: [0.5, 0.5]}, TypeError, "law must return a dict"),
        ({"features": lambda outputs: outputs[:3]}, ValueError, "features must return an array of shape"),
    ],
)
def test_parameters_without_a_meaning(options, kind, message):
    options = {"pairs": (0, 1), "claim": 1.0, "n": 1000, "random_state": 0} | options
    with pytest.raises(kind, match=message):
        empirical(geometric, **options)


def test_the_smallest_n_for_many_pairs_is_the_one_in_the_message():
    pairs = [(0, 1)] * 50
    with pytest.raises(ValueError, match="at least 4000"):
        empirical(geometric, pairs, 1.0, n=3999)
    assert empirical(geometric, pairs, 1.0, n=4000, random_state=0, events="thresholds").n == 4000


def test_kinds_that_see_nothing_say_so():
    with pytest.raises(ValueError, match=r"form no events of the kinds \['thresholds'\]: allow more"):
        empirical(a_new_label, (False, True), 1.0, n=1000, random_state=0, events="thresholds")


def test_pairs_of_the_neighbour_search_are_taken_as_they_are():
    Pair = namedtuple("Pair", "name one other")
    assert empirical(geometric, [Pair("tied", 0, 1)], 1.0, n=200, random_state=0).pair == "tied"
    assert empirical(geometric, Pair("tied", 0, 1), 1.0, n=200, random_state=0).pair == "tied"


def test_few_draws_are_enough_for_a_gross_leak():
    audit = empirical(lambda data, size, rng: rng.integers(2, size=size) + 2 * data, (0, 1), 1.0, n=20, random_state=0)
    assert audit.violated
    assert math.isclose(audit.epsilon_lower, epsilon_lower(20, 20, 0, 20))


def test_a_sampler_may_work_on_a_copy_of_its_generator():
    """Nothing moves the generator that was passed, and yet all randomness is from it, as in another process."""

    def sample(count, size, rng):
        return geometric(count, size, copy.deepcopy(rng))

    audit = empirical(sample, (0, 1), 1.0, n=2000, random_state=0)
    assert not audit.violated
    assert audit.hits == empirical(geometric, (0, 1), 1.0, n=2000, random_state=0).hits
