"""The released boosted model and its votes, and CART's splits and pruning as published papers use them."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from dpforest import Schema, load
from dpforest.learners.boosting import SCALE, class_shares, discrete_votes, real_votes, whole_votes
from dpforest.learners.cart import Cuts, best_splits, weakest_links
from dpforest.learners.growth import Growth
from dpforest.models.boosted import BoostedForest
from dpforest.models.forest import Forest
from dpforest.models.release import ReleasedBoosted
from dpforest.papers.dps_adaboost import DPsAdaBoostClassifier
from dpforest.privacy import Ledger

SCHEMA = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, classes=["a", "b", "z"])


def table(n: int = 300, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.random(n), rng.choice(list("uvw"), n)], axis=1).astype(object)
    X[:, 0] = X[:, 0].astype(float)
    return X, np.where(X[:, 0].astype(float) > 0.6, "z", np.where(X[:, 1] == "u", "a", "b"))


X, Y = table()


@pytest.fixture(scope="module")
def model():
    return DPsAdaBoostClassifier(epsilon=20.0, schema=SCHEMA, n_estimators=4, max_depth=2, random_state=0).fit(X, Y)


STUMP = {
    "feature": [-1],
    "first_child": [0],
    "arity": [0],
    "multiway": [False],
    "mask": [[0, 0, 0, 0]],
    "roots": [0],
    "values": [[0, 0]],
    "shrinkage": 0.0,
}


# -- votes -----------------------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_discrete_votes_are_sammes(data):
    leaves, classes = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 4))
    counts = np.array(
        data.draw(
            st.lists(st.lists(st.integers(-3, 6), min_size=classes, max_size=classes), min_size=leaves, max_size=leaves)
        )
    )
    votes = discrete_votes(counts.astype(float), alpha_max=3.0)
    positive = np.maximum(counts, 0)
    total = positive.sum()
    best = counts.argmax(axis=1)
    if not total or not positive[np.arange(leaves), best].sum():
        assert (votes == 0).all()
        return
    tau = 1 - Fraction(int(positive[np.arange(leaves), best].sum()), int(total))
    alpha = math.inf if tau == 0 else math.log((1 - tau) / tau) + math.log(classes - 1)
    assert alpha > -1e-12  # by its own counts no round is worse than chance
    np.testing.assert_allclose(votes, min(max(alpha, 0), 3.0) * np.eye(classes)[best], atol=1e-12)


def test_a_round_at_chance_or_without_counts_has_no_vote():
    for counts in ([[2.0, 2.0]], [[0.0, 0.0]], [[-5.0, -1.0]], [[1.0, 1.0, 1.0]] * 2):
        counts = np.array(counts)
        assert (discrete_votes(counts, alpha_max=2.0) == 0).all()
        assert real_votes(counts, np.ones(len(counts)), smoothing=1.0, alpha_max=2.0) == pytest.approx(0)
    # without noise, and without records
    assert real_votes(np.zeros((3, 2)), np.zeros(3), smoothing=1.0, alpha_max=2.0) == pytest.approx(0)


def test_real_votes_by_hand():
    counts, noise = np.array([[8.0, 2.0], [-3.0, 6.0], [-1.0, -1.0]]), np.array([1.0, 1.0, 2.0])
    votes = real_votes(counts, noise, smoothing=3.0, alpha_max=5.0)
    whole = np.array([4, 7]) / 11
    shares = [(8 + 3 * whole[0]) / 13, 3 * whole[0] / 9, whole[0]]
    expected = [0.5 * math.log(p / (1 - p)) for p in shares]
    np.testing.assert_allclose(votes[:, 0], expected)
    np.testing.assert_allclose(votes[:, 1], -np.array(expected))
    # no noise: a class that is not there loses by alpha_max; with more classes, those that are keep their order
    sure = real_votes(np.array([[5.0, 0.0]]), np.zeros(1), smoothing=1.0, alpha_max=2.0)
    np.testing.assert_allclose(sure, [[2, -2]])
    three = real_votes(np.array([[6.0, 4.0, 0.0]]), np.zeros(1), smoothing=1.0, alpha_max=2.0)[0]
    assert 2 > three[0] > three[1] > 0 > three[2] >= -2
    assert np.abs(real_votes(counts, noise, smoothing=0.0, alpha_max=0.1)).max() == pytest.approx(0.1)


def test_class_weights_are_public_numbers():
    classes = np.array(["no", "yes"])
    assert class_shares(None, classes) is None
    assert class_shares({"yes": 4}, classes).tolist() == [0.25, 1]
    assert class_shares({"yes": 0.5, "no": 0.25}, classes).tolist() == [0.5, 1]
    assert class_shares({2: 3.0}, np.array([1, 2])).tolist() == [1 / 3, 1]
    for bad, says in (
        ("balanced", "read off the records"),
        ([1, 2], "must be None or map"),
        ({"maybe": 1}, "not among the classes"),
        *(({"no": value}, "class_weight of 'no'") for value in (0, -1, math.nan, True, "2")),
    ):
        with pytest.raises(ValueError, match=says):
            class_shares(bad, classes)


# -- the released model ----------------------------------------------------------------------------------------------


def test_scores_add_up_stage_by_stage(model):
    stages = list(model.staged_decision_function(X))
    assert len(stages) == model.boosted_.n_trees == 4
    np.testing.assert_allclose(stages[-1], model.decision_function(X))
    for stage, probability, predicted in zip(
        stages, model.staged_predict_proba(X), model.staged_predict(X), strict=True
    ):
        weight = np.exp((stage - stage.max(axis=1, keepdims=True)) / 2)  # the capped link
        np.testing.assert_allclose(probability, weight / weight.sum(axis=1, keepdims=True))
        np.testing.assert_array_equal(predicted, model.classes_[stage.argmax(axis=1)])
    np.testing.assert_array_equal(predicted, model.predict(X))
    np.testing.assert_allclose(probability, model.predict_proba(X))
    first = BoostedForest(model.boosted_.forest.tree(0), "capped").scores(SCHEMA.encode(X, model.n_bins).codes)
    np.testing.assert_allclose(stages[0], first)
    assert model.score(X, Y) > 0.8


def test_two_classes_have_one_score():
    two = Schema(numeric=SCHEMA.numeric, categorical=SCHEMA.categorical, classes=["ab", "z"])
    y = np.where(Y == "z", "z", "ab")
    model = DPsAdaBoostClassifier(epsilon=20.0, schema=two, n_estimators=3, max_depth=1, random_state=0).fit(X, y)
    score = model.decision_function(X)
    assert score.shape == (300,)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-score / 2)))
    np.testing.assert_array_equal(model.predict(X), np.where(score > 0, "z", "ab"))


def test_json_gives_back_the_same_model(model, tmp_path):
    model.save(tmp_path / "model.json", seeded=True)
    copy = load(tmp_path / "model.json")
    assert isinstance(copy, ReleasedBoosted)
    assert copy.to_dict(seeded=True) == model.to_dict(seeded=True)
    assert str(copy) == f"<released DPsAdaBoostClassifier: 4 boosted trees, {model.guarantee_!r}>"
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(copy, method)(X), getattr(model, method)(X))
    for ours, theirs in zip(copy.staged_predict(X), model.staged_predict(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["boosted"]["values"].pop(),
        lambda d: d["boosted"]["feature"].__setitem__(0, 99),
        lambda d: d["boosted"].update(values=[[0, 0]] * len(d["boosted"]["feature"])),
        lambda d: d.pop("schema"),
        lambda d: d.update(boosted=None),
    ],
)
def test_a_malformed_model_is_refused(model, change):
    description = json.loads(json.dumps(model.to_dict(seeded=True)))
    ReleasedBoosted(description)
    change(description)
    with pytest.raises(ValueError, match=r"not a (released|forest)"):
        ReleasedBoosted(description)


def test_votes_are_released_as_whole_numbers(model):
    values = model.boosted_.forest.values
    assert values.dtype == np.int64
    assert whole_votes(np.array([0.5, -2.0])).tolist() == [SCALE // 2, -2 * SCALE]
    np.testing.assert_array_equal(model.boosted_.votes() * SCALE, values)


@pytest.mark.claim("lem-link", verdict="proved", constant="odds $1/w(m)$", evidence="symbolic")
@pytest.mark.parametrize(("weights", "odds"), [("capped", lambda e: e), ("logistic", lambda e: (1 + e * e) / 2)])
def test_the_link_is_where_the_rounds_come_to_rest(weights, odds):
    """With e = exp(m / 2) rational so are the weights: the weighted classes balance at the link, and nowhere else."""
    for e in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(7)):
        weight = {"capped": 1 / e, "logistic": 2 / (1 + e * e)}[weights]  # of the class that is ahead by m
        p = odds(e) / (1 + odds(e))
        assert p * weight == 1 - p  # the other class is behind: its weight is 1
        score = np.array([[0.0, 2 * math.log(e)]])
        model = BoostedForest(Forest.from_dict(STUMP), weights)
        np.testing.assert_allclose(model.probabilities(score), [[float(1 - p), float(p)]], rtol=1e-14)
        np.testing.assert_allclose(model.probabilities(score[:, ::-1]), [[float(p), float(1 - p)]], rtol=1e-14)
        for other in (score * 1.1 + 0.1, score / 2):  # another margin does not balance these classes
            assert e == 1 or not np.allclose(model.probabilities(other)[0, 1], float(p), rtol=1e-3)


@pytest.mark.parametrize("weights", ["capped", "logistic"])
@pytest.mark.parametrize("yes", [550, 700, 930])
def test_rounds_without_noise_come_to_rest_at_the_share(weights, yes):
    two = Schema(categorical={"c": ["u", "v"]}, classes=["no", "yes"])
    y = np.repeat(["no", "yes"], [1000 - yes, yes])
    X = np.full((1000, 1), "u", dtype=object)
    model = DPsAdaBoostClassifier(
        epsilon="non-private", schema=two, n_estimators=60, max_depth=1, weights=weights, random_state=0
    ).fit(X, y)
    probability = model.predict_proba(X[:1])[0, 1]
    step = 1 / 127  # of a weight: rounding moves the odds 1 / w by half of one
    least, most = (1 / (1 + (1 - yes / 1000) / (yes / 1000) + sign * step) for sign in (1, -1))
    assert least <= probability <= most


@pytest.mark.parametrize("link", ["probit", None, 3, ["capped"]])
def test_an_unknown_link_is_refused(link):
    with pytest.raises(ValueError, match="link must be one of"):
        BoostedForest.from_dict({**STUMP, "link": link})
    with pytest.raises(ValueError, match="link must be one of"):
        BoostedForest.from_dict(STUMP)


def test_a_class_far_behind_has_a_probability():
    for link in ("capped", "logistic", "adaboost"):
        found = BoostedForest(Forest.from_dict(STUMP), link).probabilities(np.array([[1e6, -1e6, 0.0]]))
        assert np.isfinite(found).all()
        assert found.argmax() == 0


# -- CART ------------------------------------------------------------------------------------------------------------


def gini_of(counts) -> Fraction:
    total = sum(map(int, counts))
    return total - sum(Fraction(int(c) ** 2, total) for c in counts) if total else Fraction(0)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_the_best_division_of_categories_is_the_best_of_all(data):
    """Sorted by the share of the second class, v - 1 divisions hold one of the (2^v - 2) / 2 that is best."""
    v = data.draw(st.integers(2, 6))
    counts = np.array(data.draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=v, max_size=v)))
    feature, code, mask = best_splits(counts[None], np.array([[-1]]), np.array([[True]]), np.array([v]))
    assert (feature[0], code[0]) == (0, -1)
    right = [at for at in range(256) if int(mask[0, at // 64]) >> at % 64 & 1]
    assert 0 < len(right) < v
    assert max(right) < v

    def impurity(right):
        sides = counts[[at in right for at in range(v)]], counts[[at not in right for at in range(v)]]
        return sum(gini_of(side.sum(axis=0)) for side in sides)

    every = [s for size in range(1, v) for s in itertools.combinations(range(v), size)]
    assert impurity(right) == min(map(impurity, every))


def test_the_best_split_among_given_cuts_and_categories():
    """Three nodes: the cut is best, the categories are, and one that may not take the cut."""
    sizes = np.array([3, 2])
    cut = [[5, 0], [5, 0], [0, 10], [5, 5], [5, 5]]  # after code 1: pure
    categories = [[5, 0], [5, 0], [5, 5], [10, 0], [0, 5]]
    histograms = np.array([cut, categories, cut])
    cuts = np.array([[1, -1], [0, -1], [1, -1]])
    features = np.array([[True, True], [True, True], [False, True]])
    feature, code, mask = best_splits(histograms, cuts, features, sizes)
    assert feature.tolist() == [0, 1, 1]
    assert code.tolist() == [1, -1, -1]
    assert mask[:, 0].tolist() == [0b100, 0b10, 0b10]
    # only the given cut: after code 0 here, though that after code 1 is better
    feature, code, mask = best_splits(histograms[:1], np.array([[0, -1]]), np.array([[True, False]]), sizes)
    assert (feature[0], code[0], mask[0, 0]) == (0, 0, 0b110)


def test_cuts_stay_inside_the_range_of_a_node():
    cuts = Cuts(np.array([3, 2, 4]), np.array([True, False, True]))
    assert np.flatnonzero(cuts.columns(np.array([0]))[0]).tolist() == [0, 1, 5, 6, 7]
    assert cuts.owners(cuts.columns(np.array([0]))).tolist() == [[True, False, True]]
    assert cuts.code[[0, 1, 5, 7]].tolist() == [0, 1, 0, 2]
    cuts.divide(np.array([0]), np.array([2]), np.array([1]))
    assert [np.flatnonzero(row).tolist() for row in cuts.columns(np.arange(2))] == [[0, 1, 5], [0, 1, 7]]
    cuts.divide(np.array([1]), np.array([1]), np.array([-1]))
    assert [np.flatnonzero(row).tolist() for row in cuts.columns(np.arange(2))] == [[0, 1, 7], [0, 1, 7]]


def grown(rng, depth: int):
    """A random binary tree on its records: forest, leaves, and the class counts of two data sets in them."""
    growth = Growth(1, 3, 2, Ledger(), "sequential")
    leaves = []
    for _ in range(depth):
        frontier = growth.frontier
        inner = rng.random(len(frontier)) < 0.8
        leaves += frontier.nodes[~inner].tolist()
        if not inner.any():
            break
        growth.add_children(frontier[inner], rng.integers(3, size=inner.sum()), np.full(inner.sum(), 2), reuse=True)
    else:
        leaves += growth.frontier.nodes.tolist()
    n = len(leaves)
    return growth.release(), np.array(leaves), rng.integers(0, 30, (n, 2)), rng.integers(0, 9, (n, 2))


def subtree_errors(tree, leaves, counts, held, pruned):
    """(training errors, held-out errors, leaves) of the tree with these nodes made leaves, from the definition."""
    at = dict(zip(leaves.tolist(), range(len(leaves)), strict=True))

    def total(node):
        if tree.feature[node] < 0:
            return counts[at[node]], held[at[node]]
        parts = [total(tree.first_child[node] + child) for child in range(2)]
        return sum(p[0] for p in parts), sum(p[1] for p in parts)

    def walk(node):
        if tree.feature[node] < 0 or node in pruned:
            mine, theirs = total(node)
            return np.array([mine.sum() - mine.max(), theirs.sum() - theirs[mine.argmax()], 1])
        return sum(walk(tree.first_child[node] + child) for child in range(2))

    return tuple(int(v) for v in walk(0))


@pytest.mark.parametrize("seed", range(30))
def test_pruning_walks_the_weakest_links_and_keeps_the_best(seed):
    """Every pruned tree of a small one: CART's sequence is that of the least cost plus a times leaves, as a grows."""
    rng = np.random.default_rng(seed)
    tree, leaves, counts, held = grown(rng, 3)
    inner = np.flatnonzero(tree.feature >= 0).tolist()
    every = {}
    for size in range(len(inner) + 1):
        for pruned in itertools.combinations(inner, size):
            every.setdefault(subtree_errors(tree, leaves, counts, held, pruned), pruned)
    points = sorted({(cost, size) for cost, _, size in every}, key=lambda p: p[1])
    # smallest minimiser of cost + a * leaves for each a: exact, at the breakpoints and between them
    slopes = {Fraction(c2 - c1, s1 - s2) for (c1, s1), (c2, s2) in itertools.permutations(points, 2) if s1 != s2}
    prices = sorted(a for a in slopes if a >= 0)
    prices = [*prices, *((a + b) / 2 for a, b in itertools.pairwise(prices)), Fraction(10**6)]
    whole = subtree_errors(tree, leaves, counts, held, ())
    best = {min(((c + a * s), s, c) for c, s in points)[1:] for a in prices} | {(whole[2], whole[0])}
    cut, height = weakest_links(tree, leaves, counts, held)
    found = subtree_errors(tree, leaves, counts, held, set(cut.tolist()))
    assert (found[2], found[0]) in best
    # nothing on the sequence does better on the held-out records; where cost and size name one tree alone
    for size, cost in best:
        rivals = {wrong for c, wrong, s in every if (c, s) == (cost, size)}
        assert found[1] <= max(rivals)
    pruned, left = tree.prune(cut)
    assert pruned.n_leaves == found[2]
    assert (pruned.feature[np.searchsorted(left, cut)] == -1).all()
    for root, levels in zip(cut, height, strict=True):
        below = tree.prune(np.array([], dtype=int))[0].tree(0)
        assert levels >= 1
        assert below.n_nodes == tree.n_nodes
        assert tree.feature[root] >= 0


def test_a_tree_pruned_by_its_own_records_loses_what_saves_no_error():
    """A tree that scikit-learn grew: with the training counts held out, as many errors, and no leaf too many."""
    rng = np.random.default_rng(4)
    data = rng.integers(2, size=(400, 4))
    y = ((data.sum(axis=1) + rng.normal(0, 1, 400)) > 2).astype(int)
    fitted = DecisionTreeClassifier(max_depth=4, random_state=0, criterion="gini").fit(data, y)
    inner = fitted.tree_
    growth = Growth(1, 4, 2, Ledger(), "sequential")
    place, frontier = [0], growth.frontier
    leaves, counts = [], []
    while len(frontier):  # the same tree, level by level
        split = np.array([inner.children_left[node] >= 0 for node in place])
        for node, ours in zip(np.array(place)[~split], frontier.nodes[~split], strict=True):
            leaves.append(ours)
            counts.append(np.rint(inner.value[node][0] * inner.n_node_samples[node]).astype(int))
        parents = np.array(place)[split]
        if not len(parents):
            break
        place = [child for node in parents for child in (inner.children_left[node], inner.children_right[node])]
        frontier = growth.add_children(frontier[split], inner.feature[parents], np.full(len(parents), 2), reuse=True)
    tree, counts = growth.release(), np.array(counts)
    cut, _ = weakest_links(tree, np.array(leaves), counts, counts)
    pruned, _ = tree.prune(cut)
    kept = subtree_errors(tree, np.array(leaves), counts, counts, set(cut.tolist()))
    whole = subtree_errors(tree, np.array(leaves), counts, counts, ())
    assert kept[0] == whole[0]
    assert pruned.n_leaves < tree.n_leaves
