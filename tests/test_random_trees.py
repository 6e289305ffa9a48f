"""Random decision trees: structure that looks at nothing, leaves whose counts are paid for, and the height rule."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest import OutOfSchemaWarning, RandomTreesClassifier, Schema, UnprovenPrivacyWarning
from dpforest.chance import outcomes
from dpforest.papers.random_trees import RandomTreesRegressor, published_height
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE

ONE = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
TWO = Schema(categorical={"a": [0, 1], "b": [0, 1, 2]}, classes=[0, 1])
CUT = Schema(numeric={"x": (0, 1)}, categorical={"b": [0, 1]}, classes=[0, 1])


def forest_law(model, data) -> dict:
    """The exact law of (structure, exact counts of the leaves, rate of their noise), every coin replayed."""
    table = np.array(data, dtype=np.uint8).reshape(-1, model.schema.n_features + 1)
    codes, labels = np.ascontiguousarray(table[:, :-1].T), np.ascontiguousarray(table[:, -1])
    law: dict = defaultdict(Fraction)

    def grow(chance):
        rates = []

        def noise(rate, size):
            rates.extend(np.broadcast_to(rate, size).ravel().tolist())
            return np.zeros(size, dtype=np.int64)

        chance.two_sided_geometric = noise
        forest, _ = model.replay(codes, labels, model.schema, model.epsilon, chance)
        counts = forest.values[forest.feature < 0].ravel().tolist()
        [rate] = set(rates)
        assert len(rates) == len(counts)  # every cell has noise of its own
        return describe(forest), tuple(counts), rate

    for output, probability in outcomes(grow):
        law[output] += Fraction(probability).limit_denominator(10**6)
    return dict(law)


def describe(forest) -> tuple:
    """Trees as nested tuples: ("leaf",), ("branch", feature, children), ("cut", feature, codes right, children)."""

    def nested(node):
        if forest.feature[node] < 0:
            return ("leaf",)
        children = tuple(nested(child) for child in forest.first_child[node] + range(int(forest.arity[node])))
        feature = int(forest.feature[node])
        if forest.multiway[node]:
            return "branch", feature, children
        right = tuple(code for code in range(256) if (int(forest.mask[node, code // 64]) >> code % 64) & 1)
        return "cut", feature, right, children

    return tuple(nested(root) for root in forest.roots.tolist())


def structure_law(model, data=()) -> dict:
    law: dict = defaultdict(Fraction)
    for (structure, _, _), probability in forest_law(model, data).items():
        law[structure] += probability
    return dict(law)


def table(schema: Schema, n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    numeric = [rng.uniform(*schema.numeric[name], n) for name in schema.numeric]
    X = np.stack([*numeric, *(rng.choice(values, n) for values in schema.categorical.values())], axis=1)
    return X, (X[:, 0] > 0.5).astype(int)


# -- privacy ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim(
    "thm-random-trees",
    verdict="proved",
    constant=r"$\eps$, attained by one record; $2\eps$ under replace-one at the same noise",
    evidence="exhaustive",
)
@pytest.mark.parametrize("calibrated", RELATIONS)
@pytest.mark.parametrize(("split", "trees", "schema"), [("binary", 2, ONE), ("multiway", 1, TWO), ("binary", 1, TWO)])
def test_the_exact_loss_is_epsilon(calibrated, split, trees, schema):
    """All neighbours of at most two records, every structure, every corner of the noise.

    The noise is independent of the structure, which is part of the output, so given a structure the ratio is a product
    over cells and is largest at a corner.  Half of a tree's budget, ε / 2T, is written as a factor of 2.
    """
    model = RandomTreesClassifier(
        epsilon=0.75, schema=schema, n_estimators=trees, max_depth=1, split=split, relation=calibrated
    )

    def mechanism(data):
        law = {}
        for (structure, counts, rate), p in forest_law(model, data).items():
            power = rate * 2 * trees / 0.75
            assert power == pytest.approx(1 if calibrated == REPLACE_ONE else 2, rel=1e-12)
            for corner, q in oracle.noisy_corners(counts, 2 ** round(power), 2).items():
                law[structure, corner] = p * q
        return law

    universe = list(product((0, 1), repeat=schema.n_features + 1))
    whole = Fraction(2) ** (2 * trees)  # e^ε
    expected = {
        (ADD_REMOVE, ADD_REMOVE): whole,
        (ADD_REMOVE, REPLACE_ONE): whole**2,
        (REPLACE_ONE, ADD_REMOVE): Fraction(2) ** trees,
        (REPLACE_ONE, REPLACE_ONE): whole,
    }
    for relation in RELATIONS:
        assert oracle.worst_case(mechanism, universe, 2, relation) == expected[calibrated, relation]
    assert oracle.worst_case(mechanism, universe, 1, ADD_REMOVE) == expected[calibrated, ADD_REMOVE]  # one record


@pytest.mark.claim("thm-random-trees")
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_ledger_gives_each_tree_its_share(relation):
    X, y = table(CUT, 300)
    for split, trees in product(("binary", "multiway"), (1, 4)):
        model = RandomTreesClassifier(
            epsilon=0.8, schema=CUT, n_estimators=trees, max_depth=2, split=split, relation=relation, random_state=1
        ).fit(X, y)
        ledger = model.ledger_
        assert ledger.leaks == []
        for entry in ledger._charges:
            assert entry.query == "count the classes of a leaf"
            np.testing.assert_allclose(entry.costs[relation], 0.8 / trees, rtol=1e-12)
        assert sum(len(entry.scopes) for entry in ledger._charges) == model.forest_.n_leaves
        assert ledger.total(relation) == pytest.approx(0.8, rel=1e-12)
        add_remove, replace_one = (ledger.total(other) for other in RELATIONS)
        assert replace_one == pytest.approx(2 * add_remove, rel=1e-12)
        assert model.guarantee_.epsilon == 0.8


def test_the_noise_is_the_geometric_one():
    """Leaf values minus exact counts over many seeds: mean, variance and share of zeros of the law."""
    X, y = table(ONE, 50)
    options = {"schema": ONE, "n_estimators": 2, "max_depth": 1}
    exact = RandomTreesClassifier(epsilon="non-private", **options, random_state=0).fit(X, y).forest_.values
    draws = [
        RandomTreesClassifier(epsilon=1.0, **options, random_state=seed).fit(X, y).forest_.values for seed in range(300)
    ]
    leaves = exact.any(axis=1)
    noise = (np.array(draws) - exact)[:, leaves]
    assert leaves.sum() == 4
    alpha = math.exp(-1 / 2)  # epsilon / n_estimators
    n = noise.size
    variance = 2 * alpha / (1 - alpha) ** 2
    assert abs(noise.mean()) < 5 * math.sqrt(variance / n)
    assert noise.var() == pytest.approx(variance, rel=0.25)
    zero = (1 - alpha) / (1 + alpha)
    assert (noise == 0).mean() == pytest.approx(zero, abs=5 * math.sqrt(zero / n))
    rows = noise.reshape(len(draws), -1)
    off_diagonal = np.corrcoef(rows.T)[~np.eye(rows.shape[1], dtype=bool)]
    assert abs(off_diagonal).max() < 5 / math.sqrt(len(draws))  # each cell has noise of its own


# -- the rule for the height -----------------------------------------------------------------------------------------


@pytest.mark.claim(
    "pub-random-trees",
    true={"add-remove": "open", "replace-one": "after a repair"},
    here={"add-remove": "no", "replace-one": "after a repair"},
    read="second hand (by section 1.5 of the DiffPETs paper and works that cite it)",
    constant=r"$\eps = \infty$ under add-remove (7 against 8 records), $\eps$ under replace-one",
    evidence="exhaustive",
)
def test_the_published_height_tells_how_many_records_there_are():
    schema = Schema(categorical={name: [0, 1] for name in "abcd"}, classes=[0, 1])
    records = ((0, 0, 0, 0, 0),) * 8
    for relation in RELATIONS:
        model = RandomTreesClassifier(schema=schema, n_estimators=1, variant="published", relation=relation)
        seven, eight = structure_law(model, records[:7]), structure_law(model, records)
        assert {depth(structure) for structure in seven} == {1}
        assert {depth(structure) for structure in eight} == {
            2
        }  # no output in common: an infinite loss under add-remove
        assert sum(seven.values()) == sum(eight.values()) == 1
    # under replace-one neighbours have one number of records, and the structure tells nothing
    other = ((1, 1, 1, 1, 1), *records[1:])
    assert structure_law(model, other) == eight
    # the repair: a public height
    proved = RandomTreesClassifier(schema=schema, n_estimators=1, epsilon=1.0)
    assert structure_law(proved, records[:7]) == structure_law(proved, records)


def depth(structure) -> int:
    return max(1 + max(map(depth_of, tree[-1])) if len(tree) > 1 else 0 for tree in structure)


def depth_of(tree) -> int:
    return 0 if tree == ("leaf",) else 1 + max(map(depth_of, tree[-1]))


@pytest.mark.claim("pub-random-trees")
@pytest.mark.parametrize("relation", RELATIONS)
def test_reading_the_number_of_records_is_a_leak_where_it_is_private(relation):
    X, y = table(TWO, 40)
    model = RandomTreesClassifier(schema=TWO, variant="published", relation=relation, random_state=0)
    if relation == ADD_REMOVE:
        with pytest.warns(UnprovenPrivacyWarning, match="the number of records"):
            model.fit(X, y)
        assert model.guarantee_.epsilon == math.inf
        [leak] = model.ledger_.leaks
        assert "height" in leak.where
        assert model.ledger_.paid(relation) == pytest.approx(1, rel=1e-12)
    else:
        model.fit(X, y)
        assert model.guarantee_.epsilon == pytest.approx(1, rel=1e-12)
        assert model.ledger_.leaks == []
    assert model.guarantee_.claimed == 1.0


@pytest.mark.parametrize(
    ("features", "values", "n", "height"),
    [
        (8, 2, 1, 1), (8, 2, 7, 1), (8, 2, 8, 2), (8, 2, 31, 3), (8, 2, 32, 4), (8, 2, 10**6, 4), (3, 2, 10**6, 1),
        (1, 2, 100, 1), (12, 3, 242, 3), (12, 3, 243, 4), (12, 5, 124, 1), (12, 5, 125, 2),
        (20, 10, 999, 1), (20, 10, 1000, 2),  # where rounded logarithms are off by one
    ],
)  # fmt: skip
def test_the_published_height(features, values, n, height):
    """The rule is min(k / 2, log_b n - 1), rounded down, at least 1, for k features of b values and n records."""
    schema = Schema(categorical={f"x{i}": list(range(values)) for i in range(features)}, classes=[0, 1])
    assert published_height(n, schema.cardinalities(2)) == height


def test_the_default_height_is_half_the_features():
    for features in (1, 2, 3, 8):
        schema = Schema(categorical={f"x{i}": [0, 1] for i in range(features)}, classes=[0, 1])
        X = np.zeros((5, features), dtype=int)
        model = RandomTreesClassifier(schema=schema, n_estimators=1, random_state=0).fit(X, X[:, 0])
        assert model.forest_.depth == max(1, features // 2)


# -- structure -------------------------------------------------------------------------------------------------------

LEAF = ("leaf",)


def test_a_binary_tree_cuts_a_uniform_feature_in_a_uniform_way():
    model = RandomTreesClassifier(epsilon=1.0, schema=TWO, n_estimators=1, max_depth=1)
    two = (LEAF, LEAF)
    expected = {(("cut", 0, (1,), two),): Fraction(1, 2)}
    expected |= {(("cut", 1, right, two),): Fraction(1, 6) for right in [(1,), (2,), (1, 2)]}
    assert structure_law(model) == expected
    numeric = RandomTreesClassifier(epsilon=1.0, schema=CUT, n_estimators=1, max_depth=1, n_bins=4)
    expected = {(("cut", 0, right, two),): Fraction(1, 6) for right in [(1, 2, 3), (2, 3), (3,)]}
    expected[("cut", 1, (1,), two),] = Fraction(1, 2)
    assert structure_law(numeric) == expected


def test_a_binary_tree_may_use_a_feature_again():
    model = RandomTreesClassifier(epsilon=1.0, schema=ONE, n_estimators=1, max_depth=2)
    below = ("cut", 0, (1,), (LEAF, LEAF))
    assert structure_law(model) == {(("cut", 0, (1,), (below, below)),): 1}


def test_a_multiway_tree_branches_on_a_uniform_unused_feature():
    model = RandomTreesClassifier(epsilon=1.0, schema=TWO, n_estimators=1, max_depth=2, split="multiway")
    a, b = ("branch", 0, (LEAF,) * 2), ("branch", 1, (LEAF,) * 3)
    assert structure_law(model) == {
        (("branch", 0, (b, b)),): Fraction(1, 2),
        (("branch", 1, (a, a, a)),): Fraction(1, 2),
    }
    # deeper than there are features: it ends where they do
    deeper = RandomTreesClassifier(epsilon=1.0, schema=TWO, n_estimators=1, max_depth=7, split="multiway")
    assert structure_law(deeper) == structure_law(model)


def test_a_multiway_tree_cuts_a_numeric_feature_once():
    model = RandomTreesClassifier(epsilon=1.0, schema=CUT, n_estimators=1, max_depth=2, split="multiway", n_bins=3)
    cuts = [("cut", 0, right, (LEAF, LEAF)) for right in [(1, 2), (2,)]]
    b = ("branch", 1, (LEAF, LEAF))
    expected = {(("cut", 0, right, (b, b)),): Fraction(1, 4) for right in [(1, 2), (2,)]}
    expected |= {(("branch", 1, pair),): Fraction(1, 8) for pair in product(cuts, cuts)}
    assert structure_law(model) == expected


def test_the_trees_of_a_forest_are_independent():
    one = structure_law(RandomTreesClassifier(epsilon=1.0, schema=TWO, n_estimators=1, max_depth=1))
    two = structure_law(RandomTreesClassifier(epsilon=1.0, schema=TWO, n_estimators=2, max_depth=1))
    assert two == {first + second: p * q for first, p in one.items() for second, q in one.items()}


@pytest.mark.claim("thm-random-trees")
@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_the_structure_looks_at_nothing(split):
    height = {"binary": 1, "multiway": 2}[split]
    model = RandomTreesClassifier(epsilon=1.0, schema=TWO, n_estimators=1, max_depth=height, split=split)
    law = structure_law(model)
    for data in [((0, 0, 0),), ((0, 0, 0), (1, 2, 1)), ((1, 1, 1),) * 5]:
        assert structure_law(model, data) == law


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(["binary", "multiway"]), st.sampled_from([ONE, TWO, CUT]), st.integers(1, 3)
)
def test_every_record_is_counted_once_in_every_tree(seed, split, schema, height):
    X, y = table(schema, 60, seed)
    model = RandomTreesClassifier(
        epsilon="non-private", schema=schema, n_estimators=3, max_depth=height, split=split, random_state=seed
    ).fit(X, y)
    assert model.forest_.values.sum(axis=0).tolist() == [3 * count for _, count in sorted(Counter(y.tolist()).items())]
    assert model.forest_.depth <= height


def test_too_many_nodes_are_refused_before_anything_is_read():
    X, y = table(TWO, 10)
    wide = Schema(
        categorical={f"x{i}": list(range(200)) for i in range(4)}, classes=[0, 1]
    )  # ten trees of 1, 201, 40201
    wide_X = np.zeros((10, 4), dtype=int)
    # 10 trees with 1, 200 and 40 000 nodes on the first levels
    multiway = RandomTreesClassifier(schema=wide, max_depth=4, split="multiway", max_nodes=2500)
    cases = [
        (RandomTreesClassifier(schema=TWO, n_estimators=3, max_depth=5, max_nodes=3 * 63 - 1), X, "need at least 189"),
        (RandomTreesClassifier(schema=TWO, n_estimators=1, max_depth=1000), X, "depth 1000 need far too many nodes"),
        (multiway, wide_X, "need at least 402010"),
    ]
    for model, records, message in cases:
        with pytest.raises(ValueError, match=message):
            model.fit(records, y)
        assert not hasattr(model, "forest_")
    fits = RandomTreesClassifier(schema=TWO, n_estimators=3, max_depth=5, max_nodes=3 * 63, random_state=0).fit(X, y)
    assert fits.forest_.n_nodes == 189


def test_it_learns():
    X, y = table(CUT, 4000)
    model = RandomTreesClassifier(epsilon=1.0, schema=CUT, n_estimators=10, max_depth=4, random_state=0).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9


def test_the_default_height_has_a_public_cap():
    wide = Schema(categorical={f"f{i}": [0, 1] for i in range(40)}, classes=[0, 1])
    X = np.zeros((3, 40), dtype=int)
    assert RandomTreesClassifier(schema=wide, n_estimators=1, random_state=0).fit(X, [0, 1, 0]).forest_.depth == 10


# -- a single leaf, and regression -----------------------------------------------------------------------------------

YIELD = Schema(numeric={"x": (0, 1)}, categorical={"b": [0, 1]}, target=(0, 10))


def harvest(n: int, seed: int = 0):
    X, _ = table(CUT, n, seed)
    return X, 8 * X[:, 0] + X[:, 1]


@pytest.mark.claim("thm-random-trees")
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_single_leaf_is_the_private_majority(relation):
    X, y = table(ONE, 90)
    model = RandomTreesClassifier(schema=ONE, n_estimators=1, max_depth=0, relation=relation, random_state=0).fit(X, y)
    assert model.forest_.n_nodes == 1
    assert (model.predict(X) == np.bincount(y).argmax()).all()
    assert model.ledger_.epsilon == pytest.approx(1, rel=1e-12)
    assert structure_law(RandomTreesClassifier(epsilon=1.0, schema=ONE, n_estimators=2, max_depth=0)) == {
        (LEAF, LEAF): 1
    }
    multiway = RandomTreesClassifier(schema=ONE, n_estimators=3, max_depth=0, split="multiway", random_state=0)
    assert multiway.fit(X, y).forest_.n_nodes == 3


@pytest.mark.claim("thm-masses")
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_single_leaf_is_the_private_mean(relation):
    X, y = harvest(2000)
    model = RandomTreesRegressor(schema=YIELD, n_estimators=1, max_depth=0, relation=relation, random_state=0).fit(X, y)
    [said] = set(model.predict(X).tolist())
    assert said == pytest.approx(y.mean(), abs=0.05)
    assert model.forest_.values.shape == (1, 2)
    assert model.forest_.values.sum() / 240 == pytest.approx(2000, abs=40)
    assert model.ledger_.epsilon == pytest.approx(1, rel=1e-12)


@pytest.mark.claim("thm-random-trees")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_the_regression_ledger_gives_each_tree_its_share(relation, split):
    X, y = harvest(300)
    model = RandomTreesRegressor(
        epsilon=0.8, schema=YIELD, n_estimators=4, max_depth=2, split=split, relation=relation, random_state=1
    ).fit(X, y)
    assert model.ledger_.leaks == []
    for entry in model.ledger_._charges:
        assert entry.query == "sum the masses of a leaf"
        np.testing.assert_allclose(entry.costs[relation], 0.2, rtol=1e-12)
    assert sum(len(entry.scopes) for entry in model.ledger_._charges) == model.forest_.n_leaves
    assert model.ledger_.epsilon == pytest.approx(0.8, rel=1e-12)


def test_without_noise_a_leaf_says_its_mean():
    """Both kinds of trees: the prediction is the mean over the trees of the exact means of the leaves."""
    X, y = harvest(400)
    y = np.rint(y * 24) / 24  # on the grid of the target
    for split in ("binary", "multiway"):
        model = RandomTreesRegressor(
            epsilon="non-private", schema=YIELD, n_estimators=5, max_depth=2, split=split, random_state=2
        ).fit(X, y)
        codes = YIELD.encode(X, model.n_bins).codes
        leaf = counting_apply(codes, model.forest_)
        means = [np.array([y[tree == node].mean() for node in tree]) for tree in leaf.T]
        np.testing.assert_allclose(model.predict(X), np.mean(means, axis=0), rtol=1e-12)
        assert model.score(X, y) > 0.3


def counting_apply(codes, forest) -> np.ndarray:
    """Leaf of each record in each tree, one step at a time."""
    leaves = np.tile(forest.roots, (codes.shape[1], 1))
    for row, tree in np.ndindex(*leaves.shape):
        node = leaves[row, tree]
        while forest.feature[node] >= 0:
            code = int(codes[forest.feature[node], row])
            bit = (int(forest.mask[node, code // 64]) >> code % 64) & 1
            node = forest.first_child[node] + (code if forest.multiway[node] else bit)
        leaves[row, tree] = node
    return leaves


@pytest.mark.claim("pub-random-trees")
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_published_height_is_read_for_regression_too(relation):
    X, y = harvest(60)
    model = RandomTreesRegressor(schema=YIELD, variant="published", relation=relation, random_state=0)
    if relation == ADD_REMOVE:
        with pytest.warns(UnprovenPrivacyWarning, match="the number of records"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    assert (model.guarantee_.epsilon == math.inf) == (relation == ADD_REMOVE)


def test_a_regressor_needs_a_target_and_clips_it():
    X, y = harvest(50)
    with pytest.raises(ValueError, match="this is a regressor"):
        RandomTreesRegressor(schema=CUT).fit(X, y)
    with pytest.raises(ValueError, match="this is a classifier"):
        RandomTreesClassifier(schema=YIELD).fit(X, y)
    with pytest.warns(OutOfSchemaWarning, match="y: 1 of 50"):
        RandomTreesRegressor(schema=YIELD, random_state=0).fit(X, [99.0, *y[1:]])
    constant = RandomTreesRegressor(schema=YIELD, epsilon=50.0, n_estimators=1, max_depth=1, random_state=0)
    assert constant.fit(X, np.full(50, 7.0)).predict(X) == pytest.approx(7, abs=0.5)
    with pytest.raises(ValueError, match="max_depth must be None or int, from 0"):
        RandomTreesRegressor(schema=YIELD, max_depth=-1).fit(X, y)
