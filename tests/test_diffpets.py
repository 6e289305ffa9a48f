"""DiffPETs as an estimator for classes: its options, its ledger, what grows, and bad input.

That the trees are the paper's, and what they lose, is tested in ``test_diffpets_claims.py``.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest import Schema, UnprovenPrivacyWarning, privacy
from dpforest.chance import Seeded, outcomes
from dpforest.learners.cuts import value_cuts
from dpforest.papers.diffpets import DiffPETsClassifier
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE

relations = pytest.mark.parametrize("relation", RELATIONS)
MIXED = Schema(
    numeric={"age": (0, 1), "dose": (0, 10)}, categorical={"city": ["a", "b", "c"]}, classes=["no", "maybe", "yes"]
)
BITS = Schema(categorical={f"x{i}": [0, 1] for i in range(4)}, classes=[0, 1])
UNPAID = "the paper claims 1"


def table(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    age, dose, city = rng.random(n), 10 * rng.random(n), rng.choice(list("abc"), n)
    X = np.array([[a, d, c] for a, d, c in zip(age, dose, city, strict=True)], dtype=object).reshape(-1, 3)
    return X, np.where(age > 0.6, "yes", np.where(city == "c", "maybe", "no"))


def bits(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, 4))
    return X, X[:, 0] & X[:, 1]


def model(**parameters):
    """Half of the budget for the leaves, the levels above in equal parts, unless ``parameters`` say otherwise."""
    base = {
        "schema": MIXED,
        "n_estimators": 3,
        "max_depth": 3,
        "criterion": "gini",
        "leaf_share": 0.5,
        "level_ratio": 1.0,
        "shrinkage": 0.0,
        "random_state": 0,
    }
    return DiffPETsClassifier(**base | parameters)


def published(**parameters):
    return model(variant="published", **parameters)


# -- the ledger ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_fit_spends_exactly_its_epsilon(data):
    """All options, both relations, random tables, whatever grows."""
    pick = lambda *choices: data.draw(st.sampled_from(choices))  # noqa: E731
    criterion = pick("gini", "gini-gain", "majority", "normalised-gini")
    epsilon, relation = pick(0.01, 0.5, 1.0, 7.0), pick(*RELATIONS)
    estimator = model(
        epsilon=epsilon,
        relation=relation,
        criterion=criterion,
        n_estimators=pick(1, 3),
        max_depth=pick(0, 1, 2, 5),
        max_features=pick("auto", "sqrt", "all", 1),
        cuts_per_feature=pick("auto", 1, 3),
        n_bins=pick(2, 9),
        sampling=pick("all", "assignment", "poisson"),
        selection=pick("permute-and-flip", "exponential"),
        stop="never" if criterion == "normalised-gini" else pick("candidate", "never"),
        stop_margin=pick(-2.0, 0.0, 6.0),
        leaf=pick("counts", "label"),
        leaf_share=pick(0.1, 0.5, 0.9),
        level_ratio=pick(0.3, 1.0),
        shrinkage=pick(0.0, 3.0),
        max_nodes=pick(3, 9, 10_000),
        random_state=data.draw(st.integers(0, 1000)),
    )
    estimator.fit(*table(pick(1, 20, 300), seed=data.draw(st.integers(0, 100))))
    assert estimator.ledger_.leaks == []
    assert estimator.ledger_.total(relation) == pytest.approx(epsilon, rel=1e-12)
    assert estimator.guarantee_.epsilon == epsilon
    assert estimator.guarantee_.claimed is None
    # what it costs under the other relation is known too
    add_remove, replace_one = (estimator.ledger_.total(other) for other in RELATIONS)
    assert add_remove < replace_one
    if estimator.sampling != "poisson":
        assert replace_one <= 2 * add_remove * (1 + 1e-12)


def spendings(ledger, relation) -> dict:
    """(level, query) -> the budgets that its nodes were charged."""
    parents = np.concatenate(ledger._parents)
    names = np.repeat(ledger._labels, [len(block) for block in ledger._parents])
    assert len(parents) == len(names)
    found = defaultdict(set)
    for entry in ledger._charges:
        for scope, cost in zip(entry.scopes.tolist(), entry.costs[relation].tolist(), strict=True):
            found[str(names[scope]), entry.query].add(Fraction(cost).limit_denominator(10_000))
    return dict(found)


COUNT, CHOOSE = "count the classes of a leaf", "choose a cut by gini"


@relations
def test_the_levels_share_what_the_leaves_leave(relation):
    """Two trees at 1/2 each; a quarter of that for the leaves, the rest for three levels; a stop passes it on."""
    options = {"n_estimators": 2, "leaf_share": 0.25, "level_ratio": 1, "relation": relation}
    full = model(**options, stop="never").fit(*table(200))
    branches = {(f"level {level}", CHOOSE): {Fraction(1, 8)} for level in (1, 2, 3)}
    assert spendings(full.ledger_, relation) == branches | {("level 4", COUNT): {Fraction(1, 8)}}
    stops = model(**options, stop_margin=1e6).fit(*table(200))
    assert spendings(stops.ledger_, relation) == {
        ("level 1", CHOOSE): {Fraction(1, 8)},
        ("level 1", COUNT): {Fraction(3, 8)},
    }
    falling = model(**options | {"level_ratio": 0.5}, stop="never").fit(*table(200))
    assert spendings(falling.ledger_, relation) == {
        ("level 1", CHOOSE): {Fraction(3, 14)},
        ("level 2", CHOOSE): {Fraction(3, 28)},
        ("level 3", CHOOSE): {Fraction(3, 56)},
        ("level 4", COUNT): {Fraction(1, 8)},
    }
    single = model(**options, max_depth=0).fit(*table(200))
    assert spendings(single.ledger_, relation) == {("level 1", COUNT): {Fraction(1, 2)}}
    # each level half of the level above: 4, 2 and 1 parts of 7
    halves = model(**options | {"level_ratio": 0.5, "leaf_share": 1 / 8}, stop="never").fit(*table(200))
    branches = {(f"level {level}", CHOOSE): {Fraction(2 ** (3 - level), 16)} for level in (1, 2, 3)}
    assert spendings(halves.ledger_, relation) == branches | {("level 4", COUNT): {Fraction(1, 16)}}


@relations
def test_a_poisson_bootstrap_leaves_each_tree_a_little_less(relation):
    fitted = model(n_estimators=2, max_depth=0, sampling="poisson", epsilon=2.0, relation=relation).fit(*table(100))
    each = {ADD_REMOVE: math.log(2), REPLACE_ONE: 2 * math.asinh(1 / 2)}[relation]
    [entry] = fitted.ledger_._charges
    assert entry.costs[relation] == pytest.approx([each] * 2, rel=1e-12)
    assert "poisson-bootstrap" in str(fitted.ledger_)


LEAKS = {
    ("which nodes hold a single class", "DiffPETs algorithm 2, termination"),
    ("which values of each feature occur in a node", "DiffPETs algorithm 2, line 5"),
    ("the most frequent class of each leaf", "DiffPETs algorithm 2, line 2"),
}


@relations
def test_the_published_forest_lists_what_it_reads_unpaid(relation):
    with pytest.warns(UnprovenPrivacyWarning, match=UNPAID):
        fitted = published(relation=relation).fit(*table(300))
    assert {(leak.what, leak.where) for leak in fitted.ledger_.leaks} == LEAKS
    assert fitted.guarantee_.epsilon == math.inf
    assert fitted.guarantee_.claimed == 1.0
    assert {leak.where for leak in fitted.guarantee_.leaks} == {where for _, where in LEAKS}
    # what it does pay: half of the exponents' budget, and the bootstrap on top
    share = 1 / 3 / 8
    charged = spendings(fitted.ledger_, ADD_REMOVE)
    half, whole = ({Fraction(x).limit_denominator(10_000)} for x in (share / 2, share))
    if relation == ADD_REMOVE:
        assert charged["level 1", CHOOSE] == half
        assert charged["level 4", "count the records of a node"] == whole
    single = published(relation=relation, max_depth=0, n_estimators=1)
    with pytest.warns(UnprovenPrivacyWarning):
        single.fit(*table(300))
    assert {(leak.what, leak.where) for leak in single.ledger_.leaks} == {
        ("which nodes hold a single class", "DiffPETs algorithm 2, termination"),
        ("the most frequent class of each leaf", "DiffPETs algorithm 2, line 2"),
    }
    assert single.ledger_.paid(ADD_REMOVE) == pytest.approx(
        privacy.bootstrap({ADD_REMOVE: 0.5, REPLACE_ONE: 0.25}[relation], 0.0, ADD_REMOVE), rel=1e-12
    )  # the count of records, through a bootstrap


# -- what grows ------------------------------------------------------------------------------------------------------


def test_it_learns():
    X, y = table(5000)
    for sampling in ("all", "assignment", "poisson"):
        fitted = model(n_estimators=5, max_features="all", cuts_per_feature=4, epsilon=4.0, sampling=sampling).fit(X, y)
        assert (fitted.predict(X) == y).mean() > 0.85
    with pytest.warns(UnprovenPrivacyWarning):
        assert (published(n_estimators=9, epsilon=4.0).fit(X, y).predict(X) == y).mean() > 0.8


def test_without_noise_the_tree_is_the_greedy_one():
    X, y = bits(500)
    fitted = model(schema=BITS, epsilon="non-private", n_estimators=1, max_depth=3, max_features="all").fit(X, y)
    assert fitted.score(X, y) == 1
    first, *_ = fitted.forest_.feature
    assert first in {0, 1}  # either halves the impurity, and nothing else lowers it
    assert fitted.guarantee_.epsilon == math.inf


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 5), st.sampled_from([1, 3]), st.integers(3, 60))
def test_trees_keep_to_their_height_and_their_room(seed, height, trees, room):
    fitted = model(
        n_estimators=trees, max_depth=height, stop_margin=2.0, max_nodes=room, leaf="label", random_state=seed
    ).fit(*table(150, seed=seed % 50))
    forest = fitted.forest_
    assert (forest.n_trees, forest.depth <= height, forest.n_nodes <= room) == (trees, True, True)
    assert not forest.multiway.any()
    assert set(forest.arity.tolist()) <= {0, 2}
    leaves = forest.feature < 0
    assert (forest.values[leaves].sum(axis=1) == 1).all()  # one vote each
    assert not forest.values[~leaves].any()


def test_the_default_height_is_half_the_features_and_has_a_public_cap():
    for features, variant, height in ((1, "proved", 1), (8, "proved", 4), (40, "proved", 10), (40, "published", 20)):
        schema = Schema(categorical={f"f{i}": [0, 1] for i in range(features)}, classes=[0, 1])
        assert model(schema=schema, max_depth=None, variant=variant).height(schema) == height
        assert model(schema=schema, max_depth=25, variant=variant).height(schema) == 25


def test_the_published_forest_ends_where_a_node_is_pure():
    """Two features decide, at a budget that finds them: three splits at most, where four levels were allowed."""
    X, y = bits(400)
    with pytest.warns(UnprovenPrivacyWarning):
        fitted = published(schema=BITS, max_depth=4, max_features="all", epsilon=1e6).fit(X, y)
    assert fitted.score(X, y) == 1
    assert fitted.forest_.depth == 2
    assert fitted.forest_.n_nodes == 3 * 5
    never = model(schema=BITS, max_depth=4, max_features="all", epsilon=1e6, stop="never").fit(X, y)
    assert never.forest_.n_nodes == 3 * 31


@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_auto_is_the_paper_as_published_and_more_candidates_if_proved():
    for variant, features, cuts in (("published", "sqrt", 1), ("proved", "all", 8)):
        every = [
            model(variant=variant, max_features=f, cuts_per_feature=c).fit(*table(200)).to_dict(seeded=True)
            for f, c in (("auto", "auto"), (features, cuts), ("auto", 2))
        ]
        assert json.dumps(every[0]) == json.dumps(every[1]) != json.dumps(every[2])
    gini, majority = (published(criterion=name).fit(*table(200)) for name in ("gini", "majority"))
    # the paper's score, whatever is asked for
    assert json.dumps(gini.to_dict(seeded=True)) == json.dumps(majority.to_dict(seeded=True))


def test_shrinkage_is_a_constant_of_the_released_forest():
    """In units of a leaf's noise, 1 / ε for counts; votes have none."""
    X, y = table(200)
    for relation, unit in ((ADD_REMOVE, 1), (REPLACE_ONE, 2)):
        fitted = model(shrinkage=3.0, relation=relation, leaf_share=0.5).fit(X, y)
        assert fitted.forest_.shrinkage == pytest.approx(3 * unit / (1 / 3 / 2), rel=1e-12)
        shares = fitted.forest_.sum_leaves(fitted.schema_.encode(X, 32).codes, values=fitted.forest_.shares()) / 3
        np.testing.assert_allclose(fitted.predict_proba(X), shares, atol=1e-12)
    assert model(shrinkage=3.0, leaf="label").fit(X, y).forest_.shrinkage == 0
    assert model(shrinkage=3.0, epsilon="non-private").fit(X, y).forest_.shrinkage == 0


# -- cuts at values of a node ----------------------------------------------------------------------------------------


def cut_law(occur, features, cardinalities) -> dict:
    """Law of the codes that go right, one tuple per candidate."""
    law: dict = defaultdict(float)

    def right(mask):
        return tuple(code for code in range(256) if int(mask[code // 64]) >> code % 64 & 1)

    cardinalities, features = np.array(cardinalities), np.array(features, dtype=np.int32)
    for masks, p in outcomes(lambda chance: value_cuts(chance, np.array(occur), features, cardinalities)):
        assert masks.shape == (*features.shape, 4)
        law[tuple(right(mask) for mask in masks.reshape(-1, 4))] += p
    return dict(law)


def test_a_node_is_cut_at_a_value_that_occurs_in_it():
    """Features of 4 and 3 codes: which occur in a node, then the cuts it may draw, each equally likely."""
    cases = [
        ([1, 1, 1, 1], [(1, 2, 3), (2, 3), (3,)]),
        ([0, 1, 0, 1], [(2, 3)]),  # cut at 1: the only one below the largest
        ([1, 0, 1, 1], [(1, 2, 3), (3,)]),
        ([0, 0, 1, 0], [(3,)]),  # a single value: all of the node's records go left
        ([0, 0, 0, 1], [()]),
        ([0, 0, 0, 0], [(1, 2, 3)]),  # nobody there
    ]
    for occur, cuts in cases:
        assert cut_law([[*occur, 0, 1, 1]], [[0]], [4, 3]) == pytest.approx({(cut,): 1 / len(cuts) for cut in cuts})
        # the other feature has its own codes, of its own node alone
        law = cut_law([[*occur, 0, 1, 1], [1, 0, 0, 1, 1, 0, 1]], [[1, 0], [0, 1]], [4, 3])
        assert law == pytest.approx({((2,), cut, (1, 2, 3), (1, 2)): 1 / len(cuts) for cut in cuts})


def test_wide_features_are_cut_at_their_values():
    cardinalities = np.array([256, 2, 1])
    occur = np.zeros((1, 259), dtype=bool)
    occur[0, [0, 100, 255, 256, 257, 258]] = True
    wide = [tuple(range(1, 256)), tuple(range(101, 256))]
    assert cut_law(occur, [[0, 1, 2]], cardinalities) == pytest.approx({(cut, (1,), ()): 1 / 2 for cut in wide})


def test_the_cuts_of_a_node_are_drawn_by_its_chance():
    occur = np.ones((300, 8), dtype=bool)
    masks = value_cuts(Seeded(0), occur, np.zeros((300, 1), dtype=np.int32), np.array([8]))
    lowest = np.array([(int(mask[0, 0]) & -int(mask[0, 0])).bit_length() - 1 for mask in masks])
    counts = np.bincount(lowest, minlength=8)
    assert counts[0] == 0
    assert (abs(counts[1:] - 300 / 7) < 5 * math.sqrt(300 / 7)).all()


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["proved", "published"])
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_poor_tables_are_no_error(variant):
    """Fewer records than trees, one record, a single class, features of one value or one category, equal records."""
    X, y = table(40)
    one_value = Schema(numeric={"a": (0, 1)}, categorical={"b": ["only"], "c": ["u", "v"]}, classes=["no", "yes"])
    flat = np.array([[0.5, "only", "u"]] * 12, dtype=object)
    cases = [
        (MIXED, X[:4], y[:4], 10),
        (MIXED, X[:1], y[:1], 1),
        (MIXED, X[y == "no"], y[y == "no"], 3),
        (one_value, flat, ["no", "yes"] * 6, 3),
        (one_value, flat, ["yes"] * 12, 2),
        (Schema(categorical={"b": ["only"]}, classes=[0, 1]), [["only"]] * 5, [0, 1, 1, 1, 1], 2),
    ]
    for (schema, records, labels, trees), sampling in product(cases, ("all", "assignment", "poisson")):
        fitted = model(
            schema=schema, n_estimators=trees, variant=variant, max_features="all", stop="never", sampling=sampling
        ).fit(records, labels)
        assert fitted.classes_.tolist() == list(schema.classes)
        proba = fitted.predict_proba(records)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert fitted.forest_.n_trees == trees
        if variant == "proved":
            assert fitted.ledger_.epsilon == pytest.approx(1, rel=1e-12)
