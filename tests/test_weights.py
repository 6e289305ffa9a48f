"""Weights of the own record: what they are, that they add no cost, and the draws by weight of published boosting."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import oracle
import pytest
from scipy import stats

from dpforest import scores
from dpforest.chance import Replay, Secure, Seeded, outcomes
from dpforest.curator import WEIGHTS, Curator, Selection
from dpforest.curator.queries import (
    CandidateCounts,
    ClassCounts,
    HeldOutCounts,
    Histograms,
    LargestWeight,
    WeightedError,
)
from dpforest.curator.selections import BinaryCandidates, FeatureCandidates
from dpforest.curator.weights import thresholds, weight_levels, weight_steps, weight_table
from dpforest.learners.growth import Growth
from dpforest.models.boosted import SCALE
from dpforest.models.forest import Forest
from dpforest.privacy import ADD_REMOVE, RELATIONS, Ledger

relations = pytest.mark.parametrize("relation", RELATIONS)
LOG2 = math.log(2)


def stump(votes) -> Forest:
    """A tree that splits on its one binary feature; ``votes`` of the two leaves."""
    growth = Growth(1, 1, len(votes[0]), Ledger(), "sequential")
    growth.add_children(growth.frontier, [0], [2])
    forest = growth.release()
    assert forest.n_nodes == 3
    return forest


def said(votes) -> np.ndarray:
    return np.array([[0.0] * len(votes[0]), *votes])


def curator_of(records, n_classes=2, *, chance=None, relation=ADD_REMOVE, **options) -> Curator:
    table = np.array(records, dtype=np.uint8).reshape(-1, 2)
    return Curator(
        np.ascontiguousarray(table[:, :1].T),
        np.ascontiguousarray(table[:, 1]),
        n_classes,
        [2],
        chance=chance or Seeded(0),
        ledger=Ledger(relation),
        **options,
    )


def weights_of(records, trees, n_classes=2, rule="capped", class_weights=None) -> list[Fraction]:
    """The weight of each of ``records``, from the exact weighted counts of data sets of one record."""
    found = []
    for record in records:
        curator = curator_of([record], n_classes)
        if not trees:
            curator.weigh_records(class_weights=class_weights, rule=rule)
        for votes in trees:
            curator.weigh_records(stump(votes), said(votes), class_weights=class_weights, rule=rule)
        growth = Growth(1, 1, n_classes, Ledger(), "sequential")
        [counts] = curator._class_counts(growth, growth.roots)
        assert (np.delete(counts, record[1]) == 0).all()
        found.append(Fraction(int(counts[record[1]]), curator.unit))
    return found


# -- what they are ---------------------------------------------------------------------------------------------------


@pytest.mark.claim("thm-own-weights")
def test_weights_recounted_in_fractions():
    """Votes that are multiples of 2 ln 2, so that a margin of k of them makes a weight of 2^-k."""
    trees = [[[2 * LOG2, 0], [0, 4 * LOG2]], [[2 * LOG2, 0], [-2 * LOG2, 0]]]
    records = [(0, 0), (0, 1), (1, 0), (1, 1)]
    powers = {(0, 0): 2, (0, 1): -2, (1, 0): -3, (1, 1): 3}
    expected = [Fraction(round(127 * Fraction(1, 2 ** max(powers[r], 0))), 127) for r in records]
    assert weights_of(records, trees) == expected
    # 2 / (1 + e^m) at m = 2 k ln 2 is 2 / (1 + 4^k)
    logistic = [Fraction(round(127 * Fraction(2, 1 + 4 ** max(powers[r], 0))), 127) for r in records]
    assert weights_of(records, trees, rule="logistic") == logistic


@pytest.mark.claim("thm-own-weights")
@pytest.mark.parametrize("rule", WEIGHTS)
def test_a_weight_is_a_function_of_the_own_record_and_of_released_trees(rule):
    """The counts of a whole data set are the sums of the weights that its records have alone."""
    rng = np.random.default_rng(3)
    for n_classes in (2, 3, 5):
        records = [tuple(r) for r in np.stack([rng.integers(2, size=40), rng.integers(n_classes, size=40)], 1).tolist()]
        trees = rng.normal(size=(4, 2, n_classes)).tolist()
        whole = curator_of(records, n_classes)
        for votes in trees:
            whole.weigh_records(stump(votes), said(votes), rule=rule)
        growth = Growth(1, 1, n_classes, Ledger(), "sequential")
        leaves = growth.add_children(growth.frontier, [0], [2])
        counts = whole._class_counts(growth, leaves.nodes)
        alone = weights_of(records, trees, n_classes, rule)
        for x, label in itertools.product(range(2), range(n_classes)):
            mine = sum((w for w, r in zip(alone, records, strict=True) if r == (x, label)), Fraction(0))
            assert Fraction(int(counts[x, label]), whole.unit) == mine
        assert all(0 <= w <= 1 for w in alone)
        assert len(set(alone)) > 2
        # histograms and candidates count the same weights
        masks = np.array([[[0b10, 0, 0, 0]]], dtype=np.uint64)
        root = np.array([0])
        growth = Growth(1, 1, n_classes, Ledger(), "sequential")
        children = whole._records.answer(CandidateCounts(growth, root, np.zeros((1, 1), np.int32), masks, 0))
        assert children[0, 0].tolist() == counts.tolist()
        histogram = whole._records.answer(Histograms(growth, root, np.ones((1, 1), dtype=bool)))
        assert histogram[0].tolist() == counts.tolist()


@pytest.mark.claim("thm-own-weights")
@pytest.mark.parametrize("rule", WEIGHTS)
@pytest.mark.parametrize(("levels", "share"), [(127, 1.0), (127, 0.25), (84, 1.0), (1, 0.4), (3, 1e-9)])
def test_the_table_of_weights_is_the_formula_at_every_margin_that_matters(rule, levels, share):
    """At each threshold and one unit beyond, against bounds of e^-x from the oracle."""
    table = thresholds(rule, levels, share)
    assert (np.diff(table) >= 0).all()
    for place, last in enumerate(table.tolist()):
        needed = Fraction(2 * (levels - place) - 1, 2 * levels) / Fraction(share)  # of the weight, for so many steps
        if last < 0:
            assert needed > 1
            continue
        for margin, enough in ((last, True), (last + 1, False)):
            m = Fraction(margin, SCALE)
            low, high = oracle.exp_bounds(m / 2 if rule == "capped" else m, 120)
            if rule == "logistic":  # 2 / (1 + e^m) = 2 e^-m / (1 + e^-m)
                low, high = (2 * x / (1 + x) for x in (low, high))
            assert low >= needed if enough else high < needed
    margins = np.array([-5, 0, *table.tolist(), *(table + 1).tolist()])
    expected = [int((table >= max(margin, 0)).sum()) for margin in margins.tolist()]
    assert weight_steps(margins, rule, levels, share).tolist() == expected


def test_class_weights_alone_and_with_trees():
    records = [(0, 0), (0, 1)]
    assert weights_of(records, [], class_weights=[1, 0.5]) == [1, Fraction(64, 127)]  # 63.5 rounds to even
    assert weights_of(records, []) == [1, 1]
    trees = [[[2 * LOG2, 0], [0, 0]]]
    assert weights_of(records, trees, class_weights=[0.5, 1]) == [Fraction(32, 127), 1]


def test_a_weight_that_underflows_is_no_step():
    """After many rounds on its side a record no longer counts, and the counts may all be 0."""
    tree = [[[1.0, 0.0], [0.0, 1.0]]]
    for rounds, left in ((1, 77), (5, 10), (11, 1), (12, 0), (2000, 0)):
        for rule in WEIGHTS:
            [weight] = weights_of([(0, 0)], tree * rounds, rule=rule)
            expected = math.exp(-rounds / 2) if rule == "capped" else 2 / (1 + math.exp(min(rounds, 700)))
            assert weight == Fraction(round(127 * expected), 127)
        if rule == "capped":
            assert weight * 127 == left
    [wrong] = weights_of([(1, 0)], tree * 2000)
    assert wrong == 1


@pytest.mark.parametrize(("n_classes", "levels"), [(2, 127), (3, 84), (10, 24), (64, 3), (128, 1)])
def test_steps_leave_room_for_the_classes(n_classes, levels):
    assert weight_levels(n_classes) == levels
    table = weight_table(n_classes)
    assert table.shape == (n_classes * (levels + 1), n_classes)
    assert len(table) <= 256
    assert table.max() == levels


def test_more_classes_than_that_are_refused():
    with pytest.raises(ValueError, match="at most 128 classes"):
        curator_of([], 129).weigh_records()


# -- that they cost nothing ------------------------------------------------------------------------------------------

GRID = [Fraction(k, 3) for k in range(1, 4)]


def impurity(child) -> Fraction:
    """Weighted count Gini of (class, weight) records."""
    total = sum((w for _, w in child), Fraction(0))
    squares = sum((sum(w for c, w in child if c == k) ** 2 for k in {c for c, _ in child}), Fraction(0))
    return total - squares / total if total else Fraction(0)


def heaviest(child) -> Fraction:
    return max((sum((w for c, w in child if c == k), Fraction(0)) for k in {c for c, _ in child}), default=Fraction(0))


@pytest.mark.claim("thm-own-weights", "lem-weighted-sse")
@pytest.mark.parametrize(("of_child", "sign", "most"), [(impurity, 1, 2), (heaviest, 1, 1)])
def test_a_record_of_weight_w_moves_a_score_by_at_most_w_times_its_sensitivity(of_child, sign, most):
    """All children of up to three records on a grid of weights: the change has one sign, and never exceeds w Δ."""
    kinds = list(itertools.product(range(3), GRID))
    largest = Fraction(0)
    for size in range(4):
        for child in itertools.combinations_with_replacement(kinds, size):
            for new in kinds:
                change = sign * (of_child([*child, new]) - of_child(child))
                assert 0 <= change <= new[1] * most
                largest = max(largest, change / new[1])
    # a light record among heavy ones of another class comes near: W w / (W + w) of 2 w
    assert largest == (Fraction(2) * 3 / (3 + Fraction(1, 3)) if most == 2 else 1)


def test_a_share_of_the_node_is_no_such_score():
    """The normalised Gini index, of which two whole records are the worst case, moves further with weights."""

    def normalised(children):
        total = sum((w for child in children for _, w in child), Fraction(0))
        return sum(map(impurity, children), Fraction(0)) / total

    half = Fraction(1, 2)
    # one candidate: a record of class 0 joins one of class 1; another: it comes alone to the empty child
    pure = normalised([[(1, half)], [(0, half)]]), normalised([[(1, half), (0, 1)], [(0, half)]])
    mixed = normalised([[(0, half), (1, half)], []]), normalised([[(0, half), (1, half)], [(0, 1)]])
    spread = (pure[1] - pure[0]) - (mixed[1] - mixed[0])
    assert spread == Fraction(1, 3) + Fraction(1, 4)
    assert spread > Fraction(scores.normalised_gini.range(ADD_REMOVE))
    curator = curator_of([(0, 0)])
    curator.weigh_records()
    growth = Growth(1, 1, 2, curator._ledger, "sequential")
    with pytest.raises(ValueError, match="no proved range where records have weights"):
        curator.choose(
            FeatureCandidates(growth, growth.roots, np.ones((1, 1), dtype=bool)),
            growth.frontier.scopes,
            1.0,
            Selection(scores.normalised_gini, mechanism="exponential"),
        )


@pytest.mark.claim("thm-own-weights")
@relations
@pytest.mark.parametrize("score", [scores.gini, scores.majority, scores.gini_gain], ids=lambda s: s.name)
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_no_query_costs_more_with_weights(relation, score, mechanism):
    """The same charge; and over all neighbours of three records the selection loses no more than that."""
    votes = [[[2 * LOG2, 0], [0, 2 * LOG2]]]
    worst, charges = {}, set()
    for weighted in (False, True):
        laws = {}
        for data in oracle.datasets(list(itertools.product(range(2), range(2))), 3):

            def choose(chance, data=data, weighted=weighted):
                curator = curator_of(data, chance=chance, relation=relation)
                if weighted:
                    curator.weigh_records(stump(votes[0]), said(votes[0]))
                growth = Growth(1, 1, 2, curator._ledger, "sequential")
                # cut the feature, cut nothing off, or stop
                masks = np.array([[[0b10, 0, 0, 0], [0, 0, 0, 0]]], dtype=np.uint64)
                [choice] = curator.choose(
                    BinaryCandidates(growth, growth.roots, np.zeros((1, 2), np.int32), masks),
                    growth.frontier.scopes,
                    0.9,
                    Selection(score, mechanism=mechanism, stop_margin=0.5),
                )
                charges.add(tuple(round(curator._ledger.total(r), 12) for r in RELATIONS))
                return int(choice)

            law: Counter = Counter()
            for choice, p in outcomes(choose):
                law[choice] += p
            laws[tuple(sorted(data))] = law
        worst[weighted] = max(
            abs(math.log(laws[one][c] / laws[other][c]))
            for one, other in oracle.pairs(list(itertools.product(range(2), range(2))), 3, relation)
            for one, other in [(tuple(sorted(one)), tuple(sorted(other)))]
            for c in laws[one]
        )
    assert len(charges) == 1
    assert {relation: 0.9}.items() <= dict(zip(RELATIONS, next(iter(charges)), strict=True)).items()
    assert 0 < worst[True] <= 0.9 + 1e-12
    assert worst[False] <= 0.9 + 1e-12


@relations
def test_the_noise_of_weighted_counts_has_the_scale_of_a_whole_record(relation):
    """Counts come in steps of 1 / unit, and the rate of their noise is epsilon over the steps of a whole record."""

    class Recorder(Seeded):
        def two_sided_geometric(self, rate, size):
            self.rate = np.broadcast_to(rate, size)
            return np.zeros(size, dtype=np.int64)

    rates = []
    for weighted in (False, True):
        chance = Recorder(0)
        curator = curator_of([(0, 0), (1, 1), (1, 0)], chance=chance, relation=relation)
        if weighted:
            curator.weigh_records(class_weights=[1, 1])
        growth = Growth(1, 1, 2, curator._ledger, "sequential")
        counts = curator.noisy(ClassCounts(growth, growth.roots), growth.frontier.scopes, 0.6)
        assert (counts / curator.unit).tolist() == [[2, 1]]
        assert curator._ledger.total(relation) == pytest.approx(0.6)
        rates.append(chance.rate[0, 0] * curator.unit)
    assert rates[0] == pytest.approx(0.6 / (1 if relation == ADD_REMOVE else 2)) == rates[1]


# -- draws by weight -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: Seeded(5), Secure], ids=["seeded", "secure"])
def test_draws_by_weight_follow_their_law(make):
    weights = np.array([0.0, 1.0, 0.0, 3.0, 6.0, 0.0])
    drawn = Counter(make().weighted(weights, 20_000).tolist())
    assert drawn.keys() == {1, 3, 4}
    assert stats.chisquare([drawn[1], drawn[3], drawn[4]], [2000, 6000, 12_000]).pvalue > 1e-4


def test_replay_draws_by_weight_exactly():
    law: Counter = Counter()
    for drawn, p in outcomes(lambda chance: tuple(chance.weighted(np.array([1.0, 0.0, 3.0]), 2).tolist()), Replay()):
        law[drawn] += p
    assert law == {(0, 0): 1 / 16, (0, 2): 3 / 16, (2, 0): 3 / 16, (2, 2): 9 / 16}


@relations
def test_the_published_weights_are_shares(relation):
    """AdaBoost's step by hand, on four records of which a tree gets one wrong: e^alpha = sqrt(3), then 1/2 on it."""
    records = [(0, 0), (0, 0), (1, 1), (1, 0)]
    curator = curator_of(records, relation=relation)
    tree = stump([[1, 0], [0, 1]])
    values = np.array([[0, 0], [1, 0], [0, 1]])
    tree.values[:] = values
    leak = "all of it", "here"
    assert curator.peek(WeightedError(tree), leak) == 0.25
    assert curator.peek(LargestWeight(), leak) == 0.25
    curator.boost(tree, math.log(3) / 2, leak)
    assert curator.peek(WeightedError(tree), leak) == pytest.approx(0.5)
    assert curator.peek(LargestWeight(), leak) == pytest.approx(0.5)
    curator.count_by_share(leak)
    growth = Growth(1, 1, 2, curator._ledger, "sequential")
    [counts] = curator._class_counts(growth, growth.roots)
    assert counts.tolist() == [2 * 42 + 127, 42]  # a third of the largest, in steps of 1 / 127
    curator.draw_by_weight(leak)
    assert curator._records.n_records == 4
    assert curator.peek(WeightedError(tree), leak) == pytest.approx(0.5)  # of the records, not of those drawn
    assert len(curator._ledger.leaks) == 1
    assert curator._ledger.epsilon == math.inf


@pytest.mark.parametrize(("n", "held"), [(0, 0), (1, 0), (2, 1), (3, 1), (10, 3), (101, 30)])
def test_records_put_aside(n, held):
    rng = np.random.default_rng(0)
    records = np.stack([rng.integers(2, size=n), rng.integers(2, size=n)], axis=1)
    curator = curator_of(records)
    curator.hold_out(0.3)
    growth = Growth(1, 1, 2, curator._ledger, "sequential")
    left, aside = (
        curator._class_counts(growth, growth.roots),
        curator._records.answer(HeldOutCounts(growth, growth.roots)),
    )
    assert (left.sum(), aside.sum()) == (n - held, held)
    np.testing.assert_array_equal((left + aside)[0], np.bincount(records[:, 1], minlength=2))
    assert curator._records.n_records == n - held
    assert curator._ledger.leaks == []
