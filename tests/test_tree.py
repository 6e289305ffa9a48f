"""The growing and the released forest: structure, ledger scopes, random splits, post-processing."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest import EDPRFClassifier, Schema, scores
from dpforest.audit import exact_audit, law_of
from dpforest.budgets import Shares
from dpforest.chance import Seeded, outcomes
from dpforest.counting import Splits
from dpforest.curator import Curator
from dpforest.learners.cuts import POOL, CutPool, grow_extra_trees, grow_random, random_cuts
from dpforest.learners.growth import Growth
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest
from dpforest.privacy import RELATIONS, Ledger

CLASSES = 3


def grow(seed: int, *, levels: int = 4, trees: int = 2, features: int = 4, reuse: bool = False) -> Growth:
    """A random forest on ``features`` features of 1 to 4 codes, leaves with random values."""
    rng = np.random.default_rng(seed)
    cardinalities = rng.integers(1, 5, size=features)
    growth = Growth(trees, features, CLASSES, Ledger(), "assignment")
    growth.cardinalities = cardinalities

    def settle(leaves):
        growth.set_leaf_values(leaves, rng.integers(-9, 9, size=(len(leaves), CLASSES)))

    for _ in range(levels):
        frontier = growth.frontier
        inner = (rng.random(len(frontier)) < 0.6) & frontier.unused.any(axis=1)
        settle(frontier[~inner])
        split = frontier[inner]
        chosen = np.array([rng.choice(np.flatnonzero(row)) for row in split.unused], dtype=int)
        binary = rng.random(len(split)) < 0.4
        masks = CutPool(Seeded(seed), cardinalities, rng.random(features) < 0.5).draw(Seeded(seed), chosen)
        growth.add_children(
            split, chosen, np.where(binary, 2, cardinalities[chosen]), masks=masks, binary=binary, reuse=reuse
        )
    settle(growth.frontier)
    return growth


def walk(forest: Forest, codes, tree: int) -> tuple[int, list[int]]:
    """The leaf of one record, and the features on the way, by the definition of a forest."""
    node, path = int(forest.roots[tree]), []
    while forest.feature[node] >= 0:
        feature = int(forest.feature[node])
        path.append(feature)
        code = int(codes[feature])
        bit = (int(forest.mask[node, code // 64]) >> code % 64) & 1
        node = int(forest.first_child[node]) + (code if forest.multiway[node] else bit)
    return node, path


# -- structure -------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(1, 4), st.booleans())
def test_a_growing_forest_is_a_forest(seed, levels, trees, reuse):
    growth = grow(seed, levels=levels, trees=trees, reuse=reuse)
    forest = growth.release()
    Splits.of(forest)  # the counting kernels' own check: children contiguous, later, and of one parent each
    assert forest.n_trees == trees
    assert forest.roots.tolist() == list(range(trees))
    inner = forest.feature >= 0
    assert forest.n_leaves == (~inner).sum()
    assert forest.n_nodes == trees + forest.arity.sum()
    assert (forest.arity[inner] >= 1).all()
    assert not forest.arity[~inner].any()
    assert not forest.first_child[~inner].any()
    assert not forest.multiway[~inner].any()
    assert not forest.mask[~inner].any()
    assert not forest.values[inner].any()
    assert forest.shrinkage == 0
    dtypes = {
        column.name: getattr(forest, column.name).dtype for column in fields(forest) if column.name != "shrinkage"
    }
    integer = dict.fromkeys(("feature", "first_child", "arity", "roots"), np.dtype(np.int32))
    assert dtypes == integer | {"multiway": np.dtype(bool), "mask": np.dtype(np.uint64), "values": np.dtype(np.int64)}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_records_reach_the_leaves_that_the_definition_says(seed):
    growth = grow(seed, trees=3)
    forest = growth.release()
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(size, size=20) for size in growth.cardinalities], dtype=np.uint8)
    expected = np.zeros((20, CLASSES))
    longest = 0
    for record in range(20):
        for tree in range(3):
            leaf, path = walk(forest, codes[:, record], tree)
            expected[record] += forest.values[leaf]
            longest = max(longest, len(path))
            assert len(set(path)) == len(path)  # a feature used on a path is not used again below
    np.testing.assert_array_equal(forest.sum_leaves(codes), expected)
    assert longest <= forest.depth <= 4


def recursive_shares(forest: Forest, shrinkage: Fraction) -> dict[int, list[Fraction]]:
    """The definition of :meth:`Forest.shares`, node by node, in fractions."""
    found = {}

    def leaves(node):
        if forest.feature[node] < 0:
            return [node]
        return [leaf for child in forest.first_child[node] + range(int(forest.arity[node])) for leaf in leaves(child)]

    def descend(node, above):
        below = leaves(node)
        total = [sum(int(forest.values[leaf, c]) for leaf in below) for c in range(forest.values.shape[1])]
        size, positive = max(sum(total), 0), [max(v, 0) for v in total]
        weight = Fraction(size**2) / (size**2 + len(below) * shrinkage**2) if size else Fraction(0)
        known = [Fraction(v, sum(positive)) if sum(positive) else Fraction(0) for v in positive]
        found[node] = [weight * k + (1 - weight) * a for k, a in zip(known, above, strict=True)]
        if forest.feature[node] >= 0:
            for child in forest.first_child[node] + range(int(forest.arity[node])):
                descend(child, found[node])

    for root in forest.roots.tolist():
        descend(root, [Fraction(1, forest.values.shape[1])] * forest.values.shape[1])
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(1, 3), st.sampled_from([0, 1, Fraction(7, 2), 40]))
def test_shares_are_drawn_towards_the_node_above(seed, levels, trees, shrinkage):
    forest = grow(seed, levels=levels, trees=trees).release(float(shrinkage))
    shares = forest.shares()
    expected = recursive_shares(forest, Fraction(shrinkage))
    assert sorted(expected) == list(range(forest.n_nodes))
    np.testing.assert_allclose(
        shares, [[float(v) for v in expected[node]] for node in range(forest.n_nodes)], atol=1e-12
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-12)
    assert (shares >= 0).all()
    assert not forest.values[forest.feature >= 0].any()  # the forest is as it was


def test_shares_by_hand():
    """Leaves that say (3, 1) and (0, 4): at shrinkage 4 each counts as much as the root above it."""
    growth = Growth(1, 1, 2, Ledger(), "sequential")
    root = growth.frontier
    leaves = growth.add_children(root, [0], [2], masks=np.zeros((1, 4), np.uint64))
    growth.set_leaf_values(leaves, np.array([[3, 1], [0, 4]]))
    np.testing.assert_allclose(growth.release(0.0).shares(), [[3 / 8, 5 / 8], [3 / 4, 1 / 4], [0, 1]])
    shares = growth.release(4.0).shares()
    top = 64 / (64 + 2 * 16)  # eight records, the noise of two leaves
    first = top * 3 / 8 + (1 - top) / 2
    np.testing.assert_allclose(shares[:, 0], [first, (3 / 4 + first) / 2, first / 2])
    # without records a node knows nothing, and says what the node above says
    empty = Growth(1, 1, 2, Ledger(), "sequential")
    empty.set_leaf_values(empty.frontier, np.array([[5, -9]]))
    np.testing.assert_allclose(empty.release(1.0).shares(), [[0.5, 0.5]])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_a_forest_comes_back_from_json(seed):
    forest = grow(seed).release(shrinkage=seed / 7)
    copy = Forest.from_dict(json.loads(json.dumps(forest.to_dict())))
    for column in fields(Forest):
        mine, theirs = getattr(forest, column.name), getattr(copy, column.name)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_array_equal(mine, theirs)


def test_a_released_forest_is_fixed():
    forest = grow(0).release()
    with pytest.raises(FrozenInstanceError):
        forest.values = np.zeros(3)


def test_leaves_settle_in_any_order_and_once_said_is_said():
    growth = Growth(1, 1, 2, Ledger(), "sequential")
    children = growth.add_children(growth.frontier, [0], [3])
    growth.set_leaf_values(children[np.array([2, 0])], np.array([[7, 8], [1, 2]]))
    growth.set_leaf_values(children[np.array([False, True, False])], np.array([[4, 5]]))
    assert growth.release().values.tolist() == [[0, 0], [1, 2], [4, 5], [7, 8]]


def test_room_is_what_max_nodes_leaves():
    growth = Growth(2, 3, 2, Ledger(), "assignment", max_nodes=9)
    assert growth.has_room(np.array([3, 4])).tolist() == [True, True]
    assert growth.has_room(np.array([3, 5])).tolist() == [True, False]
    assert growth.has_room(np.array([0, 7, 0, 1])).tolist() == [True, True, True, False]
    growth.add_children(growth.frontier, [0, 1], [3, 4])
    assert growth.n_nodes == 9
    assert not growth.has_room(np.array([1])).any()


def test_a_tree_as_text():
    growth = Growth(1, 2, 2, Ledger(), "sequential")
    children = growth.add_children(growth.frontier, [1], [2])
    growth.set_leaf_values(children[np.array([0])], np.array([[1, 0]]))
    below = growth.add_children(children[np.array([1])], [0], [2])
    growth.set_leaf_values(below, np.array([[2, 3], [-4, 5]]))
    forest = growth.release()
    assert forest.describe(["age", "sex"]) == (
        "root: splits on sex\n  child 0: says [1, 0]\n  child 1: splits on age\n"
        "    child 0: says [2, 3]\n    child 1: says [-4, 5]"
    )
    assert forest.describe(["age", "sex"], max_lines=2).splitlines()[-1] == "... 1 more branches"
    assert forest.depth == 2
    assert Growth(3, 1, 2, Ledger(), "sequential").release().depth == 0


# -- the ledger's scopes ---------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_each_node_has_a_scope_below_that_of_its_parent(seed):
    rng = np.random.default_rng(seed)
    ledger = Ledger()
    growth = Growth(2, 3, 2, ledger, "assignment")
    scope_of = dict(zip(growth.frontier.nodes.tolist(), growth.frontier.scopes.tolist(), strict=True))
    for level in (1, 2, 3):
        assert ledger._labels[-1] == f"level {level}"
        split = growth.frontier[rng.random(len(growth.frontier)) < 0.7]
        parents = np.repeat(split.nodes, 2)
        below = growth.add_children(split, rng.integers(3, size=len(split)), np.full(len(split), 2), reuse=True)
        assert below.nodes.tolist() == list(range(growth.n_nodes - len(below), growth.n_nodes))
        every = np.concatenate(ledger._parents)
        assert every[below.scopes].tolist() == [scope_of[node] for node in parents.tolist()]
        scope_of |= dict(zip(below.nodes.tolist(), below.scopes.tolist(), strict=True))
    assert len(set(scope_of.values())) == growth.n_nodes
    assert ledger._kinds[:3] == ["sequential", "assignment", "partition"]


SCHEMA = Schema(categorical={"a": [0, 1], "b": [0, 1, 2]}, classes=[0, 1])


def scope_tree(ledger: Ledger):
    """The ledger as the oracle's nested scopes."""
    parents = np.concatenate(ledger._parents)
    kinds = [kind for kind, block in zip(ledger._kinds, ledger._parents, strict=True) for _ in block]
    own = np.zeros((len(parents), 2))
    for entry in ledger._charges:
        for column, relation in enumerate(RELATIONS):
            np.add.at(own[:, column], entry.scopes, entry.costs[relation])
    children = defaultdict(list)
    for scope, parent in enumerate(parents.tolist()):
        children[parent].append(scope)

    def nested(scope):
        return (*own[scope].tolist(), kinds[scope], [nested(child) for child in children[scope]])

    return nested(0)


@pytest.mark.claim("thm-path")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("options", [{}, {"leaf": "label"}, {"stop": "never"}, {"budget": "uniform"}])
def test_the_ledger_of_a_fit_is_the_dearest_path(relation, options):
    rng = np.random.default_rng(1)
    X = np.stack([rng.integers(2, size=300), rng.integers(3, size=300)], axis=1)
    model = EDPRFClassifier(schema=SCHEMA, n_estimators=3, max_depth=2, relation=relation, random_state=2, **options)
    ledger = model.fit(X, X[:, 0]).ledger_
    exact = oracle.scope_cost(scope_tree(ledger))
    for column, other in enumerate(RELATIONS):
        assert ledger.paid(other) == pytest.approx(exact[column], rel=1e-12)
    assert ledger.epsilon <= 1 + 1e-12


# -- random splits ---------------------------------------------------------------------------------------------------


def codes_of(mask) -> tuple[int, ...]:
    """The codes that go to the second child."""
    return tuple(c for c in range(256) if (int(mask[c // 64]) >> c % 64) & 1)


def law_of_masks(size: int, ordered: bool) -> dict:
    law = defaultdict(Fraction)
    for masks, probability in outcomes(
        lambda chance: CutPool(chance, [size], [ordered]).draw(chance, np.zeros(1, int))
    ):
        law[codes_of(masks[0])] += Fraction(probability).limit_denominator(10**6)
    return dict(law)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_a_numeric_range_is_cut_at_a_uniform_edge(size):
    cuts = [tuple(range(edge, size)) for edge in range(1, size)]
    assert law_of_masks(size, True) == dict.fromkeys(cuts, Fraction(1, size - 1))


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_categories_are_divided_uniformly_among_all_divisions(size):
    divisions = {tuple(c for c in range(1, size) if number >> c & 1) for number in range(2, 2**size, 2)}
    assert len(divisions) == 2 ** (size - 1) - 1  # all ways into two non-empty sets, code 0 in the first
    assert law_of_masks(size, False) == dict.fromkeys(divisions, Fraction(1, 2 ** (size - 1) - 1))


@pytest.mark.parametrize("ordered", [True, False])
def test_a_range_of_one_code_is_not_divided(ordered):
    assert law_of_masks(1, ordered) == {(): 1}


class Fixed:
    """A chance whose integers are all the least, or all the largest."""

    def __init__(self, largest: bool):
        self.largest = largest

    def integers(self, high, size):
        return np.full(size, high - 1 if self.largest else 0)


@pytest.mark.parametrize("size", [62, 63, 64, 65, 128, 129, 255, 256])
def test_wide_ranges_keep_to_their_codes(size):
    for largest in (False, True):
        pool = CutPool(Fixed(largest), [size, size], [True, False])
        cut, subset = (codes_of(mask) for mask in pool.draw(Fixed(largest), np.arange(2)))
        assert cut == (tuple(range(size - 1, size)) if largest else tuple(range(1, size)))
        wide = size - 1 > 62  # several words, and emptiness too rare to exclude
        assert subset == (tuple(range(1, size)) if largest else () if wide else (1,))
    masks = CutPool(Seeded(0), np.full(200, size), np.zeros(200, dtype=bool)).draw(Seeded(0), np.arange(200))
    tally = Counter(code for mask in masks for code in codes_of(mask))
    assert set(tally) == set(range(1, size))
    assert all(60 < count < 140 for count in tally.values())  # six standard deviations around 100


def test_a_mixture_of_ranges_keeps_its_order():
    pool = CutPool(Fixed(True), [3, 1, 2, 3, 2], [True, True, False, False, True])
    masks = pool.draw(Fixed(True), np.arange(5))
    assert [codes_of(mask) for mask in masks] == [(2,), (), (1,), (1, 2), (1,)]
    assert pool.draw(Fixed(True), np.array([], dtype=int)).shape == (0, 4)


@pytest.mark.parametrize("size", [6, 7, 40])
def test_trees_share_a_pool_of_divisions_where_there_are_more(size):
    """All of them up to 32, else 32 that were drawn before; seen alone, each is drawn from all."""
    chance = Seeded(0)
    found = Counter(codes_of(mask) for mask in CutPool(chance, [size], [False]).draw(chance, np.zeros(5000, int)))
    assert len(found) == 31 if size == 6 else 16 < len(found) <= POOL
    tally = Counter()
    for seed in range(400):
        chance = Seeded(seed)
        tally.update(codes_of(CutPool(chance, [size], [False]).draw(chance, np.zeros(1, int))[0]))
    assert set(tally) == set(range(1, size))
    assert all(140 < count < 270 for count in tally.values())  # six standard deviations of 10 around 200 to 207


@pytest.mark.parametrize(("size", "each"), [(1, 1), (2, 1), (1, 2), (3, 1)])
def test_random_candidates_are_different_features_each_with_cuts_of_its_own(size, each):
    """Every subset of features, every cut of each, equally likely; whatever the node, and nothing read."""
    cardinalities, ordered = np.array([3, 4, 1]), np.array([True, False, True])
    ways = [[(1, 2), (2,)], [c for k in (1, 2, 3) for c in combinations((1, 2, 3), k)], [()]]
    law = defaultdict(float)
    for (features, masks), p in outcomes(
        lambda chance: random_cuts(chance, CutPool(chance, cardinalities, ordered), 1, size, each)
    ):
        assert (features.shape, features.dtype, masks.shape) == ((1, size * each), np.int32, (1, size * each, 4))
        law[tuple(features[0].tolist()), tuple(map(codes_of, masks[0]))] += p
    subsets = list(combinations(range(3), size))
    expected = {}
    for subset in subsets:
        features = tuple(f for f in subset for _ in range(each))
        cuts = list(product(*(ways[f] for f in features)))
        expected |= {(features, cut): 1 / len(subsets) / len(cuts) for cut in cuts}
    assert law == pytest.approx(expected, rel=1e-12)


def test_the_candidates_of_the_nodes_are_independent():
    law = defaultdict(float)
    for (features, masks), p in outcomes(
        lambda chance: random_cuts(chance, CutPool(chance, [3, 2], [True, True]), 2, 1)
    ):
        law[tuple((int(f), codes_of(m)) for f, m in zip(features[:, 0], masks[:, 0], strict=True))] += p
    one = {(0, (1, 2)): 1 / 4, (0, (2,)): 1 / 4, (1, (1,)): 1 / 2}
    assert law == pytest.approx({(a, b): one[a] * one[b] for a in one for b in one})
    features, masks = random_cuts(Seeded(0), CutPool(Seeded(0), [3, 2], [True, True]), 0, 2, 3)
    assert (features.shape, masks.shape) == ((0, 6), (0, 6, 4))


# -- binary trees ----------------------------------------------------------------------------------------------------


def test_random_trees_read_nothing():
    """The law of a split, from public cardinalities alone: there is no curator to ask."""
    law = defaultdict(Fraction)

    def run(chance):
        growth = Growth(1, 2, 2, Ledger(), "sequential")
        leaves = grow_random(growth, chance, np.array([3, 2]), np.array([True, False]), 1)
        assert len(leaves) == 2
        assert growth.ledger._charges == []
        return int(growth.feature[0]), codes_of(growth.mask[0])

    for output, probability in outcomes(run):
        law[output] += Fraction(probability).limit_denominator(10**6)
    assert law == {(0, (1, 2)): Fraction(1, 4), (0, (2,)): Fraction(1, 4), (1, (1,)): Fraction(1, 2)}


def test_binary_trees_are_complete_and_may_use_a_feature_again():
    growth = Growth(5, 2, 2, Ledger(), "sequential")
    leaves = grow_random(growth, Seeded(0), np.array([9, 9]), np.ones(2, bool), 4)
    assert len(leaves) == 5 * 2**4
    assert growth.n_nodes == 5 * (2**5 - 1)
    forest = growth.release()
    assert forest.depth == 4
    assert not forest.multiway.any()
    paths = [walk(forest, [4, 4], tree)[1] for tree in range(5)]
    assert any(len(set(path)) < len(path) for path in paths)
    assert growth.frontier.unused.all()


def planted(codes, labels, ledger: Ledger, *, n_trees: int = 1, seed: int = 1) -> Run:
    """A run on numeric features of four codes and two classes, with all records in every tree."""
    schema = Schema(numeric={f"x{i}": (0, 1) for i in range(len(codes))}, classes=[0, 1])
    curator = Curator(codes, labels, 2, [4] * len(codes), chance=Seeded(seed), ledger=ledger)
    run = Run(curator, Seeded(1), schema, ledger, 1.0)
    run.start_forest(n_trees)
    return run


def extra_trees(run: Run, shares: Shares, n_cuts: int, **options) -> list:
    """Grow them; returns what was asked of the leaves: (nodes, budget)."""
    asked = []

    def settle(leaves, epsilon):
        asked.append((leaves.nodes.tolist(), epsilon))
        run.set_leaf_values(leaves, np.ones((len(leaves), 2), dtype=np.int64))

    grow_extra_trees(run, shares, Selection(scores.gini, **options), settle, 1, n_cuts)
    return [(nodes, epsilon) for nodes, epsilon in asked if nodes]


@pytest.mark.parametrize("relation", RELATIONS)
def test_several_candidates_are_paid_for_level_by_level(relation):
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(4, size=(2, 200)).astype(np.uint8), rng.integers(2, size=200).astype(np.uint8)
    ledger = Ledger(relation)
    asked = extra_trees(planted(codes, labels, ledger), Shares("uniform", 0.75, 3), 3)
    assert [len(entry.scopes) for entry in ledger._charges] == [1, 2]
    own = [entry.costs[relation].tolist() for entry in ledger._charges]
    np.testing.assert_allclose(np.concatenate(own), 0.25)
    assert ledger.total(relation) == pytest.approx(0.5, rel=1e-12)
    assert asked == [([3, 4, 5, 6], pytest.approx(0.25))]


def test_a_node_that_stops_leaves_what_the_levels_below_it_do_not_need():
    """Nothing to gain and a head start without end: the root stops, having paid for its selection alone."""
    run = planted(np.zeros((1, 9), np.uint8), np.zeros(9, np.uint8), Ledger(), n_trees=2)
    asked = extra_trees(run, Shares("aligned-uniform", 0.75, 3), 1, stop_margin=1e6)
    assert asked == [([0, 1], pytest.approx(0.5))]
    assert run.release().n_leaves == 2


def test_a_tree_without_splits_asks_for_its_root_alone():
    ledger = Ledger()
    run = planted(np.zeros((1, 9), np.uint8), np.zeros(9, np.uint8), ledger)
    assert extra_trees(run, Shares("aligned-uniform", 0.75, 1), 1) == [([0], 0.75)]
    assert ledger._charges == []


def test_the_chosen_candidate_is_the_one_that_grows():
    """Without noise the best of the offered cuts is taken: here the one cut that parts the classes."""
    codes = np.array([[0, 1, 2, 3] * 5], dtype=np.uint8)
    run = planted(codes, (codes[0] >= 2).astype(np.uint8), Ledger(), seed=3)
    extra_trees(run, Shares("uniform", math.inf, 2), 40)
    assert codes_of(run.growth.mask[0]) == (2, 3)
    assert run.count_classes(run.frontier, math.inf).tolist() == [[10, 0], [0, 10]]


# -- post-processing -------------------------------------------------------------------------------------------------


@pytest.mark.claim("thm-post-processing")
@pytest.mark.parametrize("relation", RELATIONS)
def test_what_is_computed_from_a_forest_costs_nothing(relation):
    schema = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
    model = EDPRFClassifier(
        leaf="label",
        schema=schema,
        n_estimators=1,
        max_depth=1,
        relation=relation,
        stop_margin=0.0,
        calibration="range",
    )
    table = np.array([[0, 1]], dtype=np.uint8)

    def predictions(forest):
        return forest.sum_leaves(table).argmax(axis=1).tobytes()

    released = exact_audit(model, n_max=3)
    seen = exact_audit(model, n_max=3, view=predictions)
    assert seen.n_outputs == 4 < released.n_outputs
    assert 0 < seen.epsilon <= released.epsilon <= 1 + 1e-9
    # the law of the predictions is the image of the law of the forests
    for data in [(), ((0, 1),), ((0, 0), (1, 1), (1, 1))]:
        image = defaultdict(float)
        for forest, probability in law_of(model, schema, data, lambda forest: forest).items():
            image[predictions(forest)] += probability
        direct = law_of(model, schema, data, predictions)
        assert image.keys() == direct.keys()
        for output, probability in direct.items():
            assert image[output] == pytest.approx(probability, rel=1e-12)
