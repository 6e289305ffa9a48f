"""The grain of doubles in audits by sampling: named, and told apart from the scale of the noise."""

from __future__ import annotations

import json
import math
import re
from collections import namedtuple

import numpy as np
import pytest

from dpforest.audit.sampling.empirical import empirical
from dpforest.audit.sampling.events import ANYTHING, Event, Proposal, choose, propose
from dpforest.audit.sampling.features import features_of, grain, repeatable
from dpforest.audit.sampling.grids import law_on, on_grid, sampler_on, suited_grid
from dpforest.audit.sampling.outputs import OutputReader


def laplace(count, size, rng, scale=1.0):
    """As textbooks write it: right on paper, and its lowest bits give the count away."""
    return count + rng.laplace(0, scale, size)


def as_tuples(count, size, rng):
    return [("count", x) for x in laplace(count, size, rng).tolist()]


def halved(count, size, rng):
    """Noise of half the scale that the claim needs: the loss is 2 on paper, too."""
    return laplace(count, size, rng, 0.5)


def in_a_vector(count, size, rng):
    return np.array([5.0, count, 7.0]) + rng.laplace(size=(size, 3))


# -- the second figure -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "method"), [(laplace, "fixed"), (laplace, "betting"), (as_tuples, "fixed"), (in_a_vector, "sharp")]
)
def test_what_is_due_to_the_lowest_bits_is_said(sample, method):
    audit = empirical(sample, (0, 1), 1.0, n=8000, random_state=0, method=method, events="thresholds")
    assert audit.violated
    assert audit.lowest_bits.event.startswith("lowest bit of output")
    assert audit.lowest_bits.violated
    assert (audit.lowest_bits.n, audit.lowest_bits.pair) == (audit.n, audit.pair)
    assert not audit.on_grid.violated
    assert 0.8 < audit.on_grid.epsilon_lower < 1  # the scale of the noise alone
    assert audit.on_grid.grid == 2.0**-20
    said = str(audit).splitlines()[1]
    assert re.fullmatch(
        r"the lowest bits alone give [\d.]+, by lowest bit of output.* <= 2\^-\d+; on the grid 2\^-20: 0\.[89]\d*, "
        r"not refuted, by .*",
        said,
    )


def test_a_scale_that_is_wrong_is_so_on_a_grid_too():
    audit = empirical(halved, (0, 1), 1.0, n=8000, random_state=0)
    assert audit.on_grid.violated
    assert 1.7 < audit.on_grid.epsilon_lower < 2
    assert "VIOLATED" in str(audit).splitlines()[1]


def test_the_second_figure_looks_at_every_pair():
    """The pair that the lowest bits choose need not be the one whose scale is wrong."""

    def sample(data, size, rng):
        count, scale = data
        return count + rng.laplace(0, scale, size)

    pairs = [("fine scale", (0, 1.0), (1, 1.0)), ("wrong scale", (40, 0.4), (41, 0.4))]
    audit = empirical(sample, pairs, 1.0, n=8000, random_state=0)
    assert audit.pair == "fine scale"
    assert audit.on_grid.pair == "wrong scale"
    assert audit.on_grid.violated


def test_the_first_figure_does_not_depend_on_the_second():
    with_it, without = (empirical(laplace, (0, 1), 1.0, n=2000, random_state=0, grain=grain) for grain in (None, True))
    assert without.lowest_bits is without.on_grid is None
    assert (with_it.hits, with_it.event, with_it.p_value) == (without.hits, without.event, without.p_value)


@pytest.mark.parametrize(
    "sample",
    [
        lambda count, size, rng: count + rng.geometric(0.9, size) - rng.geometric(0.9, size),
        lambda count, size, rng: count + 0.0 + rng.geometric(0.9, size) - rng.geometric(0.9, size),
        lambda count, size, rng: np.round(laplace(count, size, rng, 0.5) * 2.0**10) * 2.0**-10,
        lambda count, size, rng: [str(k + count) for k in rng.integers(3, size=size)],
    ],
)
def test_nothing_is_said_where_there_is_no_grain(sample):
    """Of whole numbers the lowest bits tell much, and are no rounding."""
    audit = empirical(sample, (0, 1), 0.5, n=2000, random_state=0)
    assert audit.violated
    assert audit.lowest_bits is audit.on_grid is None
    assert "\n" not in str(audit)


def test_nothing_is_said_where_the_bits_have_no_power():
    """Far from 0 both counts have doubles of one grain."""
    audit = empirical(laplace, (1000, 1001), 1.0, n=8000, random_state=0)
    assert not audit.violated
    assert audit.on_grid is None


def test_nothing_is_lost_where_nothing_is_left_on_a_grid():
    """Outputs that differ in their lowest bits alone are one output there."""

    def sample(leaks, size, rng):
        return 0.5 + 2.0**-50 * (rng.random(size) < (0.2 if leaks else 0.01))

    audit = empirical(sample, (True, False), 1.0, n=2000, random_state=0)
    assert audit.violated
    assert audit.lowest_bits.violated
    assert audit.on_grid is None
    assert str(audit).endswith("on a grid there is nothing to audit")
    assert "on_grid" not in json.loads(audit.to_json())


# -- the parameter -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "grid"), [(False, 2.0**-20), (2.0**-10, 2.0**-10), (1, 1.0), (0.1, 0.1)])
def test_outputs_on_a_grid(asked, grid):
    audit = empirical(laplace, (0, 1), 1.0, n=8000, random_state=0, grain=asked)
    assert audit.grid == grid
    assert not audit.violated
    assert audit.epsilon_lower > 0.8
    assert audit.lowest_bits is audit.on_grid is None


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "fine", [1]])
def test_what_is_no_grid_is_refused(value):
    with pytest.raises((TypeError, ValueError), match="grain must be None, True, False or the size of a grid"):
        empirical(laplace, (0, 1), 1.0, n=100, grain=value)


def test_rounding_reaches_every_number_and_nothing_else():
    Pair = namedtuple("Pair", "a b")
    given = [(0.30001, ("x", 7), None, True), [0.76, -0.01], Pair(0.5, 1j * 0.26)]
    kept = on_grid(given, 0.25)
    assert kept == [(0.25, ("x", 7), None, True), [0.75, 0.0], Pair(0.5, 0.25j)]
    assert math.copysign(1, kept[1][1]) == 1
    assert isinstance(kept[2], Pair)
    x = np.array([0.3, -0.2, math.inf, math.nan, 1e300, 2.0**60 + 2.0**10])
    assert np.array_equal(on_grid(x, 0.25), [0.25, -0.25, math.inf, math.nan, 1e300, 2.0**60 + 2.0**10], equal_nan=True)
    assert on_grid(np.array([1, 2]), 4.0).tolist() == [1, 2]  # whole numbers have no grain
    assert on_grid(np.array([0.3, "a", (0.3,)], dtype=object), 0.25).tolist() == [0.25, "a", (0.25,)]
    assert on_grid(np.array([0.3 + 0.8j]), 0.25).tolist() == [0.25 + 0.75j]


def test_lists_of_numbers_and_laws_are_rounded_alike():
    def sample(shift, size, rng):
        return (shift / 3 + rng.integers(3, size=size) / 3).tolist()

    def law(shift):
        return {shift / 3 + k / 3: 1 / 3 for k in range(3)}

    assert law_on(law, 1.0)(0) == {0.0: 2 / 3, 1.0: 1 / 3}
    rounded = sampler_on(sample, 1.0)(0, 50, np.random.default_rng(0))
    assert set(rounded.tolist()) == {0.0, 1.0}
    audit = empirical(sample, (0, 1), 0.5, n=2000, random_state=0, law=law, grain=1.0, events="sets")
    assert audit.violated
    assert audit.event.startswith("log-likelihood ratio")
    assert 0.5 < audit.epsilon_lower < math.log(2)


@pytest.mark.parametrize(("centre", "scale", "power"), [(0, 1.0, -20), (0, 1000.0, -10), (2.0**30, 1.0, -14)])
def test_the_grid_suits_the_outputs(centre, scale, power):
    """It is fine for their spread, and coarse for the doubles in which they are written."""
    rng, reader = np.random.default_rng(0), OutputReader()
    batch = reader(laplace(centre, 1000, rng, scale), 1000, "")
    grid = suited_grid((batch, batch))
    assert grid == 2.0**power
    assert (grain(on_grid(batch.raw, grid)) >= power).all()


# -- events that can be repeated ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 2**30, 2.0**30 + 1 / 3, 1e-9, -1e12])
@pytest.mark.parametrize("kinds", ["thresholds", "atoms"])
def test_an_event_in_words_is_the_event_that_was_tested(offset, kinds):
    """Read back from the words, it happens in the same draws."""

    def sample(leaks, size, rng):
        noise = rng.integers(3, size=size) if kinds == "atoms" else rng.laplace(size=size) * max(1, abs(offset)) ** 0.1
        return offset + noise + (0.9 if leaks else 0)

    rng, reader = np.random.default_rng(0), OutputReader()
    both = tuple(reader(sample(leaks, 2000, rng), 2000, "") for leaks in (False, True))
    features = features_of(both, bits=False)
    proposals, _ = propose(both, both, features, (kinds,), 2000, 0.95, 0)
    for proposal in proposals:
        fitting = re.fullmatch(r"output (>=|<=|=) (\S+)", proposal.event.description)
        if fitting is None:
            continue
        sign, number = fitting[1], float(fitting[2])
        for batch in both:
            again = {">=": batch.raw >= number, "<=": batch.raw <= number, "=": batch.raw == number}[sign]
            assert (again == proposal.event(batch)).all()
            assert again.any() or proposal.event(both[0]).any() or proposal.event(both[1]).any()
    assert any(re.fullmatch(r"output \S+ \S+", proposal.event.description) for proposal in proposals)


def test_numbers_are_written_as_short_as_they_can_be_repeated():
    for value, text in [
        (3.0, "3"),
        (0.1, "0.1"),
        (2.0**30, "1073741824"),
        (1 / 3, "0.3333333333333333"),
        (math.inf, "inf"),
        (-0.0, "-0"),
        (1e300, "1e+300"),
    ]:
        assert repeatable(value) == text
        assert float(text) == value


def test_a_plain_event_is_taken_before_a_classifier_that_promises_little_more():
    """6.13 in words, or 6.33 by a score that nobody can compute again."""
    rng, reader = np.random.default_rng(0), OutputReader()
    both = tuple(reader(rng.random(8000), 8000, "") for _ in range(2))

    def event(words, hits, plain):
        marks = np.zeros(8000)
        marks[:hits] = 1
        return Event(words, lambda batch: marks if batch is both[0] else np.zeros(8000), 0.5, True, plain)

    plain = Proposal(event("in words", 3250, True), True, 0.0)
    fitted = Proposal(event("score", 4000, False), True, 0.0)
    better, worse = (choose([one], both, both, 8000, 0.95) for one in (fitted, plain))
    assert 0.96 < worse.promise / better.promise < 0.98
    assert choose([ANYTHING, fitted, plain], both, both, 8000, 0.95).event.description == "in words"


def test_the_result_is_json_with_both_figures():
    audit = empirical(laplace, (0, 1), 1.0, n=2000, random_state=0)
    found = json.loads(audit.to_json())
    assert found["on_grid"]["grid"] == 2.0**-20
    assert found["lowest_bits"]["event"] == audit.lowest_bits.event
    plain = empirical(laplace, (0, 1), 1.0, n=2000, random_state=0, grain=True).to_dict()
    assert not {"grid", "lowest_bits", "on_grid"} & set(plain)
