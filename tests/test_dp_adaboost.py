"""DP-AdaBoost: the stumps as described, written again, the exact loss of the repair, and the estimator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import MIXED, PAIR, THREE, quietly, table

from dpforest import Schema
from dpforest.audit import exact_audit
from dpforest.chance import Seeded
from dpforest.papers import dp_adaboost
from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE

relations = pytest.mark.parametrize("relation", RELATIONS)


def model(**parameters) -> DPAdaBoostClassifier:
    return DPAdaBoostClassifier(
        **{"epsilon": 4.0, "schema": MIXED, "n_estimators": 3, "n_bins": 4, "random_state": 0, **parameters}
    )


# -- the repair ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("thm-dp-adaboost")
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_fit_spends_exactly_epsilon(data):
    pick = lambda *choices: data.draw(st.sampled_from(choices))  # noqa: E731
    epsilon, relation, classes = pick(0.01, 1.0, 50.0), pick(*RELATIONS), pick(2, 3)
    schema = MIXED if classes == 2 else THREE
    fitted = model(
        epsilon=epsilon,
        schema=schema,
        n_estimators=pick(1, 4),
        relation=relation,
        n_bins=pick(2, 5, 40),
        votes=pick("real", "discrete"),
        weights=pick("capped", "logistic"),
        learning_rate=pick(0.1, 1.0),
        alpha_max=pick(0.1, 2.0, 100.0),
        smoothing=pick(0, 1.0),
        sampling=pick("all", "assignment"),
        class_weight=pick(None, {schema.classes[0]: 5.0}),
        selection=pick("permute-and-flip", "exponential"),
        criterion=pick("gini", "gini-gain", "majority"),
        leaf_share=pick(0.1, 0.9),
        random_state=data.draw(st.integers(0, 1000)),
    )
    X, y = table(pick(1, 20, 300), seed=data.draw(st.integers(0, 100)), classes=classes)
    fitted.fit(X, y)
    assert fitted.ledger_.leaks == []
    assert fitted.ledger_.total(relation) == pytest.approx(epsilon, rel=1e-12)
    assert fitted.guarantee_.epsilon == epsilon
    assert np.isfinite(fitted.predict_proba(X)).all()


@pytest.mark.slow
@pytest.mark.claim("thm-dp-adaboost")
@pytest.mark.parametrize(
    ("relation", "n_max", "options"),
    [
        (ADD_REMOVE, 3, {}),
        (ADD_REMOVE, 3, {"criterion": "majority"}),
        (ADD_REMOVE, 2, {"votes": "discrete", "class_weight": {1: 2}}),
        (REPLACE_ONE, 2, {}),
        (REPLACE_ONE, 2, {"selection": "exponential", "leaf_share": 0.3}),
    ],
    ids=str,
)
def test_the_exact_loss_of_a_stump(relation, n_max, options):
    found = exact_audit(DPAdaBoostClassifier(schema=PAIR, n_estimators=1, relation=relation, **options), n_max=n_max)
    assert 0.4 < found.epsilon <= 1 + 1e-9
    # half for the leaves, which the record that comes pays in full; half for the feature
    if relation == ADD_REMOVE and not options:
        assert found.epsilon == pytest.approx(1 / 2 + (1 / 2) * (2 / 3))


def test_it_learns():
    X, y = table(3000)
    fitted = model(epsilon=5.0, n_estimators=6, n_bins=10).fit(X, y)
    assert fitted.score(X, y) > 0.85
    X, y = table(3000, classes=3)
    fitted = model(schema=THREE, epsilon=5.0, n_estimators=6, n_bins=10).fit(X, y)
    assert fitted.score(X, y) > 0.85
    assert len(list(fitted.staged_predict(X))) == 6
    assert (fitted.boosted_.forest.feature[fitted.boosted_.forest.roots] >= 0).all()


# -- as described ----------------------------------------------------------------------------------------------------


class Drawn(Seeded):
    """A seeded chance that keeps the rates and the noise; nothing else may be drawn."""

    def __init__(self, seed):
        super().__init__(seed)
        self.log: list[tuple] = []

    def two_sided_geometric(self, rate, size):
        self.log.append((np.array(np.broadcast_to(rate, size)), drawn := super().two_sided_geometric(rate, size)))
        return drawn

    def integers(self, high, size):
        raise AssertionError("nothing is drawn but noise")

    select = permutation = weighted = subsets = integers


def entropy(rows, weights) -> float:
    total = math.fsum(weights)
    shares = [math.fsum(w for r, w in zip(rows, weights, strict=True) if r[-1] == c) / total for c in (0, 1)]
    return -sum(p * math.log2(p) for p in shares if p > 0)


def as_described(records, sizes, log, *, rounds, rate):
    """Stumps and their alphas: exact gains of weighted counts, noise of scale max w over the budget, raw errors."""
    weights, found = [1 / len(records)] * len(records), []
    for rates, noise in log:
        # weights in steps of 1/127 of the largest, and noise in those steps
        steps = [round(127 * w / max(weights)) for w in weights]
        best, chosen = -math.inf, None
        for feature, size in enumerate(sizes):
            gain = entropy(records, steps)
            for code in range(size):
                part = [at for at, row in enumerate(records) if row[feature] == code]
                mine = [steps[at] for at in part]
                if sum(mine):
                    gain -= sum(mine) / sum(steps) * entropy([records[at] for at in part], mine)
            if gain > best + 1e-12:
                best, chosen = gain, feature
        assert rates.shape == (sizes[chosen], 2)
        np.testing.assert_allclose(rates, rate / 127, rtol=1e-12)
        labels = []
        for code in range(sizes[chosen]):
            counts = [
                sum(s for row, s in zip(records, steps, strict=True) if (row[chosen], row[-1]) == (code, c))
                + noise[code, c]
                for c in (0, 1)
            ]
            labels.append(int(counts[1] > counts[0]))
        wrong = [labels[row[chosen]] != row[-1] for row in records]
        tau = round(math.fsum(w for w, miss in zip(weights, wrong, strict=True) if miss), 12)
        if tau > 0.5:
            break
        alpha = math.log((1 - tau) / tau) / 2 if tau else 1 + sum(a for a, *_ in found)
        found.append((alpha, chosen, labels))
        weights = [w * math.exp(alpha if miss else -alpha) for w, miss in zip(weights, wrong, strict=True)]
        weights = [w / math.fsum(weights) for w in weights]
    assert len(found) <= rounds
    return found


@pytest.mark.claim("alg-dp-adaboost", "pub-dp-adaboost")
@relations
@pytest.mark.parametrize("seed", range(6))
def test_the_published_variant_is_the_description(relation, seed):
    X, y = table(80, seed=seed)
    published = model(variant="published", relation=relation, epsilon=3.0, n_estimators=5)
    codes, labels = MIXED.encode(X, 4).codes, MIXED.encode_labels(y)
    chance = Drawn(seed)
    boosted, ledger = published.replay(codes, labels, MIXED, 3.0, chance)
    records = [tuple(map(int, row)) for row in np.vstack([codes, labels]).T]
    stumps = as_described(records, [4, 3], chance.log, rounds=5, rate=3.0 / 5)
    assert boosted.n_trees == len(stumps)
    expected = [2 * sum(a * (2 * said[row[f]] - 1) for a, f, said in stumps) for row in records]
    scores = boosted.scores(codes)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], expected, atol=1e-4)
    # the ledger believes the noise, and knows what was read besides
    paid = 3.0 / 5 * len(chance.log)
    assert ledger.paid(ADD_REMOVE) == pytest.approx(paid)
    assert ledger.paid(REPLACE_ONE) == pytest.approx(2 * paid)
    leaks = {dp_adaboost.SCALE, dp_adaboost.GAIN, dp_adaboost.ERROR, dp_adaboost.UPDATE}
    assert {(leak.what, leak.where) for leak in ledger.leaks} == leaks


# -- the estimator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["proved", "published"])
def test_a_single_class_in_the_data_is_fine(variant):
    X, _ = table(100)
    fitted = quietly(model(variant=variant, epsilon=20.0), X, ["yes"] * 100)
    assert set(fitted.predict(X)) == {"yes"}


def test_many_small_columns():
    """Columns of one category are candidates too: a stump on one is a single leaf's worth of votes."""
    alone = Schema(categorical={f"c{i}": ["x"] for i in range(3)}, classes=[0, 1])
    fitted = model(schema=alone).fit([["x"] * 3] * 9, [0, 1, 1] * 3)
    assert fitted.boosted_.forest.n_leaves == 3
    assert fitted.ledger_.epsilon == pytest.approx(4)


@pytest.mark.parametrize("variant", ["proved", "published"])
def test_a_forest_that_is_full_grows_no_more(variant):
    """Its rounds have one leaf each, which gets what a split would have left; how large it may be is no parameter."""

    class Small(DPAdaBoostClassifier):
        max_nodes = 3 + 4

    X, y = table(80)
    fitted = quietly(Small(epsilon=4.0, schema=MIXED, n_estimators=3, n_bins=4, variant=variant, random_state=0), X, y)
    assert fitted.boosted_.forest.n_nodes <= 7
    assert fitted.boosted_.forest.tree(fitted.boosted_.n_trees - 1).n_nodes == 1
    if variant == "proved":
        assert fitted.ledger_.epsilon == pytest.approx(4)
    assert "max_nodes" not in fitted.get_params()
