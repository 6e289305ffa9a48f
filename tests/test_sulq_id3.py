"""SuLQ-based ID3: what its counts cost, its exact loss, the repair, and what it makes of negative counts."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import oracle
import pytest
from shared import MIXED, PAIR, assert_an_estimator, assert_spent, quietly, table

from dpforest import Schema
from dpforest.audit import exact_audit
from dpforest.learners.id3 import noisy_gain
from dpforest.papers.sulq_id3 import SulqID3Classifier
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE

relations = pytest.mark.parametrize("relation", RELATIONS)
variants = pytest.mark.parametrize("variant", ["proved", "published"])
THREE = Schema(categorical={"a": [0, 1], "b": [0, 1], "c": [0, 1]}, classes=[0, 1])


def model(**parameters) -> SulqID3Classifier:
    return SulqID3Classifier(**{"epsilon": 4.0, "schema": MIXED, "random_state": 0, **parameters})


def bits(n: int = 4000):
    """Records of three bits, of which the first two decide the class."""
    X = np.random.default_rng(0).integers(2, size=(n, 3))
    return X, X[:, 0] & X[:, 1]


@variants
def test_an_estimator(variant, tmp_path):
    assert_an_estimator(model(variant=variant), *table(), tmp_path)


@variants
def test_without_noise_the_tree_is_the_greedy_one(variant):
    X, y = bits()
    fitted = quietly(
        SulqID3Classifier(epsilon="non-private", schema=THREE, variant=variant, max_depth=3, random_state=0), X, y
    )
    assert fitted.score(X, y) == 1
    assert fitted.forest_.feature[fitted.forest_.roots[0]] in (0, 1)


# -- the question ----------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "lem-children", verdict="proved", evidence="exhaustive", constant=r"$\eps$ for all features together, attained"
)
@relations
def test_the_children_of_all_features_cost_epsilon_together(relation):
    """In fractions: two bits and the class, e to the ε = 16, and each feature has half of it."""
    unit = {ADD_REMOVE: 4, REPLACE_ONE: 2}[relation]  # e to the rate of one feature's histogram

    def counts(data):
        cells = [
            sum(record[feature] == value and record[-1] == c for record in data)
            for feature, value, c in product((0, 1), repeat=3)
        ]
        return oracle.noisy_corners(cells, unit, 2)

    assert oracle.worst_case(counts, list(product((0, 1), repeat=3)), 2, relation) == 16


def test_what_is_not_positive_counts_nothing():
    """Two features of two values and two classes; a child of no records, a negative count, a class above its child."""
    counts = np.array([[[-3, 4], [5, 0], [6, 2], [0, -1]]])
    sizes = np.array([[[2], [5], [8], [-2]]])
    gain = noisy_gain(counts, sizes, np.array([2, 2]), np.array([[True, True]]))
    # 4 of 2 counts as 4 of 4, and 5 of 5 is pure; then 6 and 2 of 8
    np.testing.assert_allclose(gain, [[0.0, 6 * math.log(6 / 8) + 2 * math.log(2 / 8)]], rtol=1e-12)
    assert noisy_gain(counts, sizes, np.array([2, 2]), np.array([[False, True]]))[0, 0] == -np.inf
    assert not noisy_gain(-np.abs(counts), sizes, np.array([2, 2]), np.array([[True, True]])).any()


@variants
def test_a_tree_of_few_records_has_leaves_of_noise(variant):
    """A negative count of a node is below the threshold, so the node is a leaf; a leaf may hold negative counts."""
    X, y = bits(1)
    said = [
        quietly(model(epsilon=0.1, schema=THREE, variant=variant, max_depth=1, random_state=seed), X, y).forest_.values
        for seed in range(10)
    ]
    assert min(values.min() for values in said) < 0


# -- what is published -----------------------------------------------------------------------------------------------


def spent(depth: int) -> Fraction:
    """A path: a count at each level, counts of children at the levels that split, a leaf."""
    share = Fraction(1, 2 * (depth + 1))
    return (depth + 1) * share + depth * 2 * (share / 2) + share


@pytest.mark.claim(
    "pub-sulq-id3",
    true={"add-remove": "yes", "replace-one": "after a repair"},
    tight="sharp",
    read="in part (Friedman's program, and the first page)",
    constant=r"$\eps$, spent in full by a path that reaches the height; released of it at height 0: $\eps/2$",
    evidence="exhaustive",
)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_published_path_that_reaches_the_height_spends_its_claim(depth):
    X, y = bits()
    assert spent(depth) == 1
    for relation in RELATIONS:
        fitted = SulqID3Classifier(
            epsilon=100.0, schema=THREE, variant="published", max_depth=depth, relation=relation, random_state=0
        ).fit(X, y)
        assert fitted.ledger_.leaks == []
        assert fitted.guarantee_.epsilon == 100
        # noise for replace-one is twice that of add-remove; a record's old and new path part at the root, at the worst
        own = 1 if relation == ADD_REMOVE else 1 - 1 / (2 * (depth + 1))
        at_add_remove = fitted.ledger_.total(ADD_REMOVE)
        assert at_add_remove == pytest.approx(100 if relation == ADD_REMOVE else 50, rel=1e-12)
        assert fitted.ledger_.epsilon == pytest.approx(100 * (own if depth else at_add_remove / 100), rel=1e-12)


@pytest.mark.claim("pub-sulq-id3")
@relations
def test_the_exact_loss_of_the_published_leaf(relation):
    """Half of the budget goes to a count after which nothing is left to decide."""
    estimator = SulqID3Classifier(schema=PAIR, variant="published", max_depth=0, relation=relation)
    assert exact_audit(estimator, n_max=2).epsilon == pytest.approx(1 / 2, rel=1e-9)


@pytest.mark.claim("pub-sulq-id3")
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_noise_for_add_remove_does_not_cover_replace_one(depth):
    X, y = bits()
    fitted = SulqID3Classifier(epsilon=100.0, schema=THREE, variant="published", max_depth=depth, random_state=0).fit(
        X, y
    )
    assert fitted.ledger_.total(REPLACE_ONE) == pytest.approx(100 * (2 - 1 / (depth + 1)), rel=1e-12)


# -- what is proved --------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "thm-sulq-id3",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$\eps$, attained by a single leaf under both relations; spent in full by the ledger",
)
@relations
def test_the_repaired_tree_spends_all_of_it(relation):
    X, y = bits()
    for epsilon, depth in product((0.1, 3.0), (0, 1, 4)):
        fitted = SulqID3Classifier(
            epsilon=epsilon, schema=THREE, max_depth=depth, relation=relation, random_state=0
        ).fit(X, y)
        assert_spent(fitted, epsilon)
    leaf = SulqID3Classifier(schema=PAIR, max_depth=0, relation=relation)
    assert exact_audit(leaf, n_max=2).epsilon == pytest.approx(1, rel=1e-9)


def test_replay_says_that_it_cannot_visit_a_noisy_argmax():
    assert "replay cannot visit" in SulqID3Classifier(schema=PAIR, max_depth=1).lacking()["exact"]
    assert SulqID3Classifier(schema=PAIR, max_depth=0).lacking() == {}


@variants
def test_the_full_table_of_nodes_ends_branches(variant):
    X, y = bits()
    fitted = SulqID3Classifier(epsilon=100.0, schema=THREE, variant=variant, max_nodes=2, random_state=0).fit(X, y)
    assert fitted.forest_.n_nodes == 1
    assert fitted.ledger_.epsilon <= 100 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"max_depth": -1}, "max_depth must be a whole number"),
        ({"max_nodes": 0}, "max_nodes must be a whole number"),
        ({"variant": "original"}, "variant must be one of"),
        ({"schema": None}, "needs schema="),
    ],
    ids=str,
)
def test_bad_parameters_say_what_to_do(parameters, says):
    with pytest.raises(ValueError, match=says):
        model(**parameters).fit(*table())
