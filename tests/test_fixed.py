"""Exact scores: equal to fractions rounded to the grid at any number of records, with the range that calibrates."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest import scores
from dpforest.arithmetic import fixed
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE
from dpforest.schema import TARGET_LEVELS

F = Fraction
EXACT = (scores.gini, scores.majority, scores.sse, scores.between, scores.mass_gap)
BOUNDED = (
    scores.normalised_gini,
    scores.variance,
    scores.weighted_variance,
    scores.mean,
    scores.absolute_pearson,
    scores.pearson,
)
SIZES = (3, 40, 3_000, 10**6, 10**9, 2**31 - 1, 2**31, 10**12, 10**15)
MOST = {scores.sse: 10**14, scores.variance: 10**14, scores.weighted_variance: 10**14}  # sums of squares in 64 bits
HALF = F(1, 2)


def steps(values: np.ndarray) -> list[int]:
    """Numbers of the grid, in steps, as Python's integers."""
    return [
        int(whole) * fixed.STEPS + int(part) for whole, part in zip(*(each.ravel() for each in values), strict=True)
    ]


def down(x: Fraction) -> int:
    return math.floor(x * fixed.STEPS)


def child_term(score, child) -> int:
    """One child's part of the score in steps, from its counts or moments, written anew."""
    if score in (scores.gini, scores.gini_gain):
        size = sum(child)
        return down(F(sum(c * c for c in child), size)) - size * fixed.STEPS if size else 0
    if score is scores.majority:
        return max(child) * fixed.STEPS
    size, total, squares = child
    if not size:
        return 0
    mean = F(total, TARGET_LEVELS)
    if score is scores.sse:
        return -down(F(squares, TARGET_LEVELS**2) - mean * mean / size)
    if score is scores.between:
        return down((mean - F(size, 2)) ** 2 / size)
    return down(abs(mean - F(size, 2)))


def real_score(score, children) -> Fraction:
    """A bounded score in fractions; of a correlation the square, with its sign."""
    if score.n_moments:
        shares = [(n, F(t, TARGET_LEVELS), F(q, TARGET_LEVELS**2)) for n, t, q in children]
        errors = [(n, q - t * t / n) for n, t, q in shares if n]
        if score is scores.variance:
            return -sum((error / n for n, error in errors), F(0))
        if score is scores.weighted_variance:
            return -sum((error for _, error in errors), F(0)) / (sum(n for n, _ in errors) or 1)
        return sum((t for _, t, _ in shares), F(0)) / (sum(n for n, _, _ in shares) or 1)
    size = sum(map(sum, children))
    if score is scores.normalised_gini:
        return -sum((sum(c) - F(sum(k * k for k in c), sum(c)) for c in children if sum(c)), F(0)) / (size or 1)
    points = [(x, k, n) for x, child in enumerate(children) for k, n in enumerate(child)]
    sx, sy, sxy, sxx, syy = (
        sum(n * f(x, k) for x, k, n in points)
        for f in (lambda x, k: x, lambda x, k: k, lambda x, k: x * k, lambda x, k: x, lambda x, k: k * k)
    )
    top, spread = size * sxy - sx * sy, (size * sxx - sx * sx) * (size * syy - sy * sy)
    square = F(top * top, spread) if spread else F(0)
    return square if score is scores.absolute_pearson or top >= 0 else -square


def table(rng, score, size: int, children: int = 2, classes: int = 3) -> np.ndarray:
    """Counts, or moments of possible targets, of some children; sometimes one is empty or nearly pure."""
    if not score.n_moments:
        found = rng.integers(0, size + 1, (children, classes)) // rng.choice([1, 1, 1000, size], (children, classes))
        return found.astype(np.int64)
    n = rng.integers(0, size + 1, children) // rng.choice([1, 1000, size], children)
    low, high = np.sort(rng.integers(0, TARGET_LEVELS + 1, (2, children)), axis=0)
    some = rng.integers(0, n + 1)
    moments = [n, some * high + (n - some) * low, some * high**2 + (n - some) * low**2]
    return np.stack(moments, axis=-1)[:, : 2 if score.n_moments == 2 else 3].astype(np.int64)


def whole_moments(score, child) -> list[int]:
    """Python's integers; a score that needs no squares is given none."""
    numbers = [int(number) for number in child]
    return [*numbers, 0] if score.n_moments == 2 else numbers


@pytest.mark.claim(
    "thm-exact-scores", verdict="proved", constant="$R$, at any number of records to $10^{15}$", evidence="numerical"
)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("score", EXACT, ids=str)
def test_sums_over_children_are_the_fractions_rounded_child_by_child(score, size):
    rng = np.random.default_rng(size % 1000)
    tables = np.stack([table(rng, score, min(size, MOST.get(score, size))) for _ in range(60)])
    expected = [sum(child_term(score, whole_moments(score, child)) for child in one) for one in tables]
    assert steps(score.exact(tables)) == expected
    one_by_one = [steps(score.exact(one[None]))[0] for one in tables]  # whatever stands beside it
    assert one_by_one == expected


@pytest.mark.claim("thm-exact-scores")
@pytest.mark.parametrize("size", [2**31 - 1, 2**31, 2**32 - 1, 2**33 - 1])
@pytest.mark.parametrize("rest", [1, 2, 1 << 20])
def test_gini_is_exact_around_the_size_where_its_compiled_loop_hands_over(size, rest):
    """A child whose sum of squares is nearly its size squared, and whose first remainder may be nearly its size."""
    tables = np.array(
        [[[size - rest, rest], [3, 4]], [[rest, size - rest], [0, 0]], [[size // 2, size - size // 2]] * 2]
    )
    assert steps(scores.gini.exact(tables)) == [
        sum(child_term(scores.gini, child) for child in one) for one in tables.tolist()
    ]


@pytest.mark.claim("thm-exact-scores")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("score", BOUNDED, ids=str)
def test_bounded_scores_are_within_three_quarters_of_a_step(score, size):
    """Then four of them are off by three steps at most: what is added to R."""
    rng = np.random.default_rng(size % 1000)
    tables = np.stack([table(rng, score, min(size, MOST.get(score, size))) for _ in range(60)])
    for found, one in zip(steps(score.exact(tables)), tables, strict=True):
        exact = real_score(score, [whole_moments(score, child) for child in one])
        if score in (scores.pearson, scores.absolute_pearson):  # of the square a fraction is known
            low, high = (F(4 * found + side * 3, 4 * fixed.STEPS) for side in (-1, 1))
            assert low * abs(low) <= exact <= high * abs(high)
        else:
            assert abs(found - exact * fixed.STEPS) <= F(3, 4)


@pytest.mark.claim("thm-exact-scores")
@pytest.mark.parametrize("n", [2, 100, 10**6, 10**12])
def test_information_gain_is_within_its_slack(n):
    """Sums of two terms of which a power of two is whole, so that the real score is whole."""
    quarter = n // 4 or 1
    counts = np.array([[[quarter, quarter], [2 * quarter, 0]], [[0, 0], [2 * quarter, 2 * quarter]]])
    off = 2.0**-38 * n / 4 + 0.75 / fixed.STEPS
    for found, real in zip(steps(scores.information_gain.exact(counts)), (-2 * quarter, -4 * quarter), strict=True):
        assert abs(found / fixed.STEPS - real) <= off
    cap = scores.information_gain
    assert cap.exact_range(ADD_REMOVE, n) - cap.range(ADD_REMOVE, n) >= 4 * off * (1 - 1e-6)


@pytest.mark.claim("thm-exact-scores")
@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("score", [*EXACT, scores.gini_gain], ids=str)
def test_the_spread_stays_within_the_range_at_any_size(score, data):
    """Candidates with whatever counts, and a record in whatever child of each: under add-remove without slack."""
    size = data.draw(st.sampled_from(SIZES))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    weight = data.draw(st.sampled_from([1, 1, 127])) if not score.n_moments else 1
    new = np.zeros(3, dtype=np.int64)
    if score.n_moments:
        target = data.draw(st.sampled_from([0, 1, 119, 240]))
        new[:] = 1, target, target**2
        new = new[: 2 if score.n_moments == 2 else 3]
    else:
        new[data.draw(st.integers(0, 2))] = data.draw(st.integers(1, weight))
    before = np.stack([table(rng, score, min(size, MOST.get(score, size))) for _ in range(8)])
    after = before.copy()
    after[np.arange(8), rng.integers(0, 2, 8)] += new
    moved = [b - a for a, b in zip(steps(score.exact(before)), steps(score.exact(after)), strict=True)]
    rest = score.exact_rest(np.stack([before[0].sum(axis=0), after[0].sum(axis=0)]))
    moved.append(int(np.diff(steps(rest))[0]))  # to stop is a candidate too
    assert max(moved) - min(moved) <= score.exact_range(ADD_REMOVE) * fixed.STEPS * weight
    assert score.exact_range(REPLACE_ONE) == 2 * score.exact_range(ADD_REMOVE)


def extremes(score, n: int) -> np.ndarray:
    """Two candidates before a record comes and after: it joins ``n`` of the other kind, or its own kind or nobody."""
    if not score.n_moments:
        before = np.array([[[n, 0], [0, n]]] * 2)
        after = before.copy()
        after[[0, 1], [0, 1], 1] += 1
    else:
        width = 2 if score.n_moments == 2 else 3
        before = np.array([[[n, 0, 0][:width], [0, 0, 0][:width]]] * 2)
        after = before.copy()
        after[[0, 1], [0, 1]] += [1, TARGET_LEVELS, TARGET_LEVELS**2][:width]
    return np.stack([before, after])


@pytest.mark.claim("thm-exact-scores")
@pytest.mark.parametrize("score", EXACT, ids=str)
def test_the_range_is_met_to_a_step_among_many_records(score):
    """No smaller constant would do: the supremum of the formula is within a step on the grid."""
    before, after = (steps(score.exact(tables)) for tables in extremes(score, 10**13))
    spread = max(moved := [b - a for a, b in zip(before, after, strict=True)]) - min(moved)
    bound = score.exact_range(ADD_REMOVE) * fixed.STEPS
    assert bound - 1 <= spread <= bound


def spread_of_between(rounding) -> Fraction:
    """Of the changes of candidates when a record of target 1 joins a child of up to 40 zeros and up to three ones."""

    def term(zeros, ones):
        return rounding(F((ones - zeros) ** 2, 4 * (zeros + ones))) if zeros + ones else F(0)

    moved = [term(zeros, ones + 1) - term(zeros, ones) for zeros in range(41) for ones in range(4)]
    return max(moved) - min(moved)


@pytest.mark.claim("thm-exact-scores")
def test_each_hypothesis_on_the_rounding_is_used():
    """Both ends, -3/4 and 1/4, on the grid; a rounding that is monotone and commutes with the steps of the grid."""
    assert spread_of_between(lambda x: F(math.floor(4 * x), 4)) == 1
    ends_off_the_grid = spread_of_between(lambda x: F(math.floor(3 * x), 3))
    not_each_step_alike = spread_of_between(lambda x: F(math.floor(4 * x) + math.floor(x) % 2, 4))
    not_monotone = spread_of_between(lambda x: F(math.floor(4 * x) - math.floor(16 * x) % 4, 4))
    assert min(ends_off_the_grid, not_each_step_alike, not_monotone) > 1


@pytest.mark.claim("thm-exact-scores")
def test_what_is_far_behind_stays_a_candidate():
    """It is held at the public distance: to drop it would let one record take a candidate away."""
    far = fixed.FARTHEST // fixed.STEPS
    values = np.array([[[0, -far], [0, -far - 1]], [[0, 0], [0, 0]]])
    behind = fixed.below_best(values, np.ones((2, 2), dtype=bool))
    assert behind.tolist() == [[0, -fixed.FARTHEST]] * 2


@pytest.mark.claim("thm-exact-scores")
def test_doubles_exceed_the_range_where_whole_numbers_do_not():
    """Two candidates for the same 10^14 records, and one record more: in doubles they move further apart than R."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(300):
        own, other = rng.integers(10**13, 10**14, 2)
        before = np.array([[[own, 0], [0, other]]] * 2)
        after = before.copy()
        after[[0, 1], [0, 1], 1] += 1  # a record of the second class, beside the first or among its own
        assert np.ptp(np.subtract(steps(scores.gini.exact(after)), steps(scores.gini.exact(before)))) <= 2 * fixed.STEPS
        worst = max(worst, float(np.ptp(scores.gini(after) - scores.gini(before))))
    assert worst > scores.gini.range(ADD_REMOVE)


@pytest.mark.claim("thm-exact-scores")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("score", [*EXACT[:2], scores.normalised_gini], ids=str)
def test_small_data_sets_have_the_scores_of_the_formulas(score, relation):
    """The grid holds their fractions: R is attained where the oracle says so, to the step."""
    named = {"gini": oracle.gini, "majority": oracle.majority}
    for size in range(1, 7 if score.name in named else 1):
        for labels in combinations_with_replacement(range(3), size):
            counts = np.array([[[labels.count(k) for k in range(3)], [0, 0, 0]]])
            assert steps(score.exact(counts)) == [named[score.name]((labels, ())) * fixed.STEPS]
    slack = score.exact_range(relation) - score.range(relation)
    assert slack == (0 if score in EXACT else pytest.approx((3, 6)[relation == REPLACE_ONE] / fixed.STEPS, rel=1e-6))


@pytest.mark.claim("thm-exact-scores")
@pytest.mark.parametrize("parts", [2, 3])
def test_a_mean_over_parts_is_released_as_a_sum(parts):
    score = scores.averaged(scores.absolute_pearson, parts)
    rng = np.random.default_rng(parts)
    counts = rng.integers(0, 50, (20, 2, 2 * parts))
    each = [scores.absolute_pearson.exact(counts[..., 2 * at : 2 * at + 2]) for at in range(parts)]
    assert steps(score.exact(counts)) == [sum(found) for found in zip(*map(steps, each), strict=True)]
    assert score.exact_range(ADD_REMOVE) == scores.absolute_pearson.exact_range(ADD_REMOVE)
    assert steps(score.exact_rest(counts[:, 0])) == [0] * 20


#: No candidate, one that is a step or two behind, or one at any distance.
STEPS_BEHIND = st.one_of(st.none(), st.integers(-3, 0), st.integers(-(2**80), 0))


@pytest.mark.claim("thm-exact-scores")
@settings(max_examples=200)
@given(st.lists(st.lists(STEPS_BEHIND, min_size=3, max_size=3), min_size=1))
def test_how_far_behind_the_best(rows):
    """In exact doubles; what is far behind is held at a public distance, which moves no further than the scores do."""
    rows = [row if any(x is not None for x in row) else [0, *row[1:]] for row in rows]
    flat = [[0 if x is None else x for x in row] for row in rows]
    values = np.array(
        [[[x // fixed.STEPS for x in row] for row in flat], [[x % fixed.STEPS for x in row] for row in flat]]
    )
    able = np.array([[x is not None for x in row] for row in rows])
    found = fixed.below_best(values, able)
    for row, behind in zip(rows, found.tolist(), strict=True):
        best = max(x for x in row if x is not None)
        assert behind == [-math.inf if x is None else -min(best - x, fixed.FARTHEST) for x in row]
    shifted = (
        values + np.array([5, -7])[:, None, None]
    )  # the same number for all, in parts that need not be below STEPS
    assert (fixed.below_best(shifted, able) == found).all()


def test_numbers_on_the_grid():
    assert fixed.STEPS % (4 * math.lcm(*range(1, 23))) == 0
    assert fixed.FARTHEST <= 2**53
    assert steps(fixed.fixed([0.75, -1.25, 1 / 3, 3.0])) == [down(F(x)) for x in (F(3, 4), F(-5, 4), F(1, 3), F(3))]
    assert steps(fixed.fixed(np.array([3, -2]))) == [3 * fixed.STEPS, -2 * fixed.STEPS]
