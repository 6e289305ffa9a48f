"""Smooth forest: what a gap that scales the noise gives away, what counts as scores do not, and the estimator."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import oracle
import pytest
from shared import MIXED, PAIR, THREE, assert_an_estimator, quietly, table

from dpforest import Schema, UnprovenPrivacyWarning, scores
from dpforest.audit import exact_audit, law_of
from dpforest.mechanisms import SELECTIONS, exponential_law, permute_and_flip_law
from dpforest.papers.smooth_forest import SmoothForestClassifier, balls_in_bins, smooth_qualities
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE

ONE = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
relations = pytest.mark.parametrize("relation", RELATIONS)


def model(**parameters) -> SmoothForestClassifier:
    return SmoothForestClassifier(**{"epsilon": 4.0, "schema": MIXED, "random_state": 0, **parameters})


def tiny(**parameters) -> SmoothForestClassifier:
    return SmoothForestClassifier(**{"epsilon": 1.0, "schema": ONE, "n_estimators": 1, "max_depth": 1, **parameters})


def labels(forest) -> tuple:
    """What the leaves say, from left to right; the trees of ``tiny`` have one shape."""
    return tuple(forest.values[forest.feature < 0].argmax(axis=1).tolist())


def minority(gap: int, epsilon: float = 1.0) -> float:
    """log P(the other label) of a leaf with two classes and this gap, as published."""
    power = epsilon / 2 * math.exp(epsilon * gap) if gap else 0.0  # of a tie either label has it
    return -power - math.log1p(math.exp(-power)) if gap else -math.log(2)


@pytest.mark.parametrize("variant", ["proved", "published"])
def test_an_estimator(variant, tmp_path):
    assert_an_estimator(model(variant=variant), *table(), tmp_path)


def test_what_is_proved_reads_nothing_unpaid():
    fitted = model().fit(*table())
    assert fitted.ledger_.leaks == []
    assert fitted.guarantee_.epsilon == 4.0
    assert fitted.ledger_.epsilon == pytest.approx(4.0, rel=1e-12)


# -- as published ----------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "cex-smooth-exponential",
    verdict="refuted",
    evidence="exhaustive",
    constant=r"$8.43$ for $e$ at gaps 1 and 2, $\eps = 1$; the loss from $j$ to $j+1$ exceeds "
    r"$\frac\eps2(e^\eps - 1)\,e^{j\eps} - \ln 2$",
)
def test_a_gap_more_changes_the_weight_beyond_all_bounds():
    """One leaf, all records of one class: the code that ships against the law by hand, gap by gap."""
    law = {}
    for gap in range(7):
        law[gap] = law_of(tiny(max_depth=0, variant="published"), ONE, ((0, 0),) * gap, labels)
        assert math.log(law[gap][1,]) == pytest.approx(minority(gap), rel=1e-12)
        assert law[gap][0,] == pytest.approx(-math.expm1(minority(gap)), rel=1e-12)
    assert law[1][1,] == pytest.approx(0.2044, abs=5e-5)
    assert law[2][1,] == pytest.approx(0.0243, abs=5e-5)
    assert law[1][1,] / law[2][1,] == pytest.approx(8.43, abs=5e-3)
    assert law[2][1,] / law[3][1,] == pytest.approx(557.6, abs=0.1)
    for epsilon in (0.01, 0.1, 1.0):  # whatever the budget, some gap breaks any bound
        for gap in range(1, math.ceil(8 / epsilon)):
            loss = minority(gap, epsilon) - minority(gap + 1, epsilon)
            assert loss > epsilon / 2 * math.expm1(epsilon) * math.exp(epsilon * gap) - math.log(2)
        assert loss > 10 * epsilon


@pytest.mark.claim(
    "pub-smooth-forest",
    true={"add-remove": "no", "replace-one": "no"},
    read="in part (the abstract and the authors' program)",
    constant=r"$\eps = \infty$; $\ln\frac{1 + w_3}{1 + w_2} = 6.32$ on three records, $w_j = e^{e^j/2}$, $\eps = 1$",
    evidence="exhaustive",
)
def test_the_published_claim():
    """Three records of one leaf at most: its gap goes from 2 to 3, or from 1 to 3 where one is replaced."""
    for relation, before in ((ADD_REMOVE, 2), (REPLACE_ONE, 1)):
        audit = exact_audit(tiny(max_depth=0, variant="published", relation=relation), n_max=3)
        assert audit.epsilon == pytest.approx(minority(before) - minority(3), rel=1e-9)
        assert audit.violated
    # subsets of equal size, and both leaves of a split
    for options in ({}, {"n_estimators": 2}):
        assert exact_audit(tiny(variant="published", **options), n_max=3).violated
    with pytest.warns(UnprovenPrivacyWarning, match="the gap between"):
        fitted = model(variant="published").fit(*table())
    [leak] = fitted.ledger_.leaks
    assert "smooth" in leak.where
    assert fitted.guarantee_.epsilon == math.inf
    assert fitted.guarantee_.claimed == 4.0


def test_the_quality_without_the_sensitivity_has_the_range_of_a_count():
    """What the published exponent would cost if S were a constant: the ledger's charge, and the paper's argument."""
    for relation in RELATIONS:
        spread = 0
        for one, other in oracle.pairs([0, 1, 2], 4, relation):
            counts = np.array([[data.count(c) for c in range(3)] for data in (one, other)])
            first, second = smooth_qualities(counts, 0.0)
            assert first.tolist() == (counts[0] == counts[0].max()).tolist()
            spread = max(spread, np.ptp(first - second))
        assert spread == scores.majority.range(relation)


def test_a_gap_beyond_all_doubles_is_certain():
    X, y = np.zeros((4000, 1), dtype=int), np.zeros(4000, dtype=int)
    for epsilon in (1.0, "non-private"):
        fitted = quietly(tiny(epsilon=epsilon, variant="published", max_depth=0, random_state=0), X, y)
        assert fitted.predict_proba(X[:1]).tolist() == [[1.0, 0.0]]


# -- as proved -------------------------------------------------------------------------------------------------------


def tree(unit, mechanism=oracle.permute_and_flip):
    """The law of a tree of one split, in fractions: a record is (x, class), and ``unit`` is e to the rate."""

    def law(data):
        sides = []
        for x in (0, 1):
            votes = [sum(record == (x, c) for record in data) for c in (0, 1)]
            sides.append(dict(enumerate(mechanism(oracle.acceptance(votes, unit)))))
        return {(a, b): sides[0][a] * sides[1][b] for a, b in product((0, 1), repeat=2)}

    return law


UNIVERSE = list(product((0, 1), repeat=2))


@pytest.mark.claim(
    "thm-smooth-forest",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$\eps$, attained by a first record under add-remove, and by two of which one changes class under "
    "replace-one",
)
@relations
def test_the_theorem(relation):
    """Two trees that share the records by coins, e^ε = 4, in fractions; and the code that ships has that law."""
    unit = {ADD_REMOVE: 4, REPLACE_ONE: 2}[relation]
    smallest = {ADD_REMOVE: 1, REPLACE_ONE: 2}[relation]
    assert oracle.worst_case(tree(unit), UNIVERSE, 3, relation) == 4
    assert oracle.worst_case(tree(unit), UNIVERSE, smallest, relation) == 4
    assert oracle.worst_case(tree(unit, oracle.exponential), UNIVERSE, 3, relation) < 4
    forest = oracle.by_coin([tree(unit)] * 2)
    assert oracle.worst_case(forest, UNIVERSE, 2, relation) <= 4
    shipped = tiny(epsilon=math.log(4), n_estimators=2, relation=relation)
    for data in [(), ((0, 1),), ((0, 0), (1, 1)), ((0, 0), (0, 0))]:
        law = law_of(shipped, ONE, data, labels)
        expected = {first + second: float(p) for (first, second), p in forest(data).items()}
        assert law == pytest.approx(expected, rel=1e-12)


@pytest.mark.claim("thm-smooth-forest")
@relations
@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_repair_holds_on_all_small_pairs(relation, selection):
    mechanism = {"permute-and-flip": oracle.permute_and_flip, "exponential": oracle.exponential}[selection]
    unit = {ADD_REMOVE: 4, REPLACE_ONE: 2}[relation]
    audit = exact_audit(tiny(epsilon=math.log(4), relation=relation, selection=selection), n_max=3)
    worst = oracle.worst_case(tree(unit, mechanism), UNIVERSE, 3, relation)
    assert audit.epsilon == pytest.approx(math.log(worst), rel=1e-9)
    assert not audit.violated


@pytest.mark.claim("thm-smooth-forest")
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_leaf_errs_with_the_exponential_of_its_gap(classes):
    """At most (C - 1) e^{-rj} / 2, an equality for two classes; the exponential mechanism errs more often."""
    for rate, gap in product((0.1, 1.0), (0, 1, 4, 20)):
        votes = np.array([gap] + [0] * (classes - 1))
        wrong = permute_and_flip_law(votes, rate)[1:].sum()
        bound = (classes - 1) / 2 * math.exp(-rate * gap)
        if classes == 2:
            assert wrong == pytest.approx(bound, rel=1e-12)
        assert wrong <= bound * (1 + 1e-12)
        assert exponential_law(votes, rate)[1:].sum() >= wrong * (1 - 1e-12)


# -- the trees -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numeric", range(6))
@pytest.mark.parametrize("categorical", [0, 1, 2, 7])
def test_the_height_tests_half_of_the_features(numeric, categorical):
    """The expected number of untested numeric features, over all ways in which d levels choose one of them each."""
    height = balls_in_bins(numeric, categorical)

    def untested(levels):
        ways = list(product(range(numeric), repeat=levels))
        return Fraction(sum(numeric - len(set(way)) for way in ways), len(ways)) if ways else Fraction(0)

    levels = next(d for d in range(6) if 2 * untested(d) <= numeric)
    assert height == max(1, levels + categorical // 2)


def test_the_proved_default_makes_no_more_leaves_than_tables_have_records():
    """Twenty features of six values: half of them would be 6^10 leaves, and 6^4 is the first power above a thousand."""
    wide = Schema(categorical={f"f{at}": list(range(6)) for at in range(20)}, classes=[0, 1])
    X, y = np.zeros((30, 20), dtype=int), np.zeros(30, dtype=int)
    fitted = SmoothForestClassifier(schema=wide, n_estimators=2, random_state=0).fit(X, y)
    assert (fitted.forest_.feature < 0).sum() == 2 * 6**3
    published = {"variant": "published", "max_nodes": 10**6}  # sixteen million as it is, which takes seconds
    with pytest.raises(ValueError, match="max_nodes"):
        quietly(SmoothForestClassifier(schema=wide, n_estimators=2, random_state=0, **published), X, y)


def test_a_category_is_split_once_on_a_path_and_a_number_may_come_again():
    fitted = model(max_depth=6, n_estimators=8).fit(*table())
    forest, again = fitted.forest_, 0
    parent = {
        int(child): node
        for node in range(forest.n_nodes)
        for child in range(int(forest.first_child[node]), int(forest.first_child[node]) + int(forest.arity[node]))
    }
    for leaf in np.flatnonzero(forest.feature < 0).tolist():
        path, node = [], leaf
        while node in parent:
            node = parent[node]
            path.append(int(forest.feature[node]))
        assert len(path) == 6  # the number can always be cut once more
        assert path.count(1) <= 1
        again = max(again, path.count(0))
    assert again == 6


@pytest.mark.parametrize("variant", ["proved", "published"])
def test_the_structure_looks_at_no_record(variant):
    """The law of the trees' features, on any records; either feature comes first with one half."""

    def structure(forest):
        return tuple(forest.feature.tolist())

    grown = tiny(schema=PAIR, variant=variant)
    law = law_of(grown, PAIR, (), structure)
    assert law == pytest.approx({(0, -1, -1): 0.5, (1, -1, -1): 0.5})
    for data in [((0, 0, 0),), ((0, 1, 1), (1, 1, 0), (1, 1, 0))]:
        assert law_of(grown, PAIR, data, structure) == pytest.approx(law, rel=1e-12)


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["proved", "published"])
def test_few_records_and_classes(variant):
    """One row, one class, a class that never occurs, more trees than rows: leaves without records say any label."""
    X, y = table(classes=3)
    quietly(model(schema=THREE, variant=variant), X, y)
    for rows in (X[:1], X[:3]):
        fitted = quietly(model(schema=THREE, variant=variant, n_estimators=20), rows, ["a"] * len(rows))
        assert fitted.predict_proba(X).shape == (400, 3)
        assert fitted.forest_.values[fitted.forest_.feature < 0].sum(axis=1).tolist() == [1] * fitted.forest_.n_leaves
        assert {0, 1, 2} == set(fitted.forest_.values[fitted.forest_.feature < 0].argmax(axis=1))
    with pytest.raises(ValueError, match=r"0 sample|no record"):
        quietly(model(variant=variant), X[:0], y[:0])


def test_what_is_refused():
    with pytest.raises(ValueError, match="selection"):
        model(variant="published", selection="exponential").fit(*table())
    with pytest.raises(ValueError, match="more than max_nodes"):
        model(max_depth=12, n_estimators=10, max_nodes=1000).fit(*table())
    with pytest.raises(ValueError, match="at least one column"):
        Schema(classes=[0, 1])
    with pytest.raises(ValueError, match="class"):
        Schema(categorical={"x": [0, 1]}, classes=[0])
