"""DiffPETs for regression: its ledger, its leaks, odd data, shrinkage, and what it releases."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from dpforest import Schema, UnprovenPrivacyWarning, counting
from dpforest.papers.diffpets import DiffPETsRegressor
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE
from dpforest.schema import TARGET_LEVELS

relations = pytest.mark.parametrize("relation", RELATIONS)
SCHEMA = Schema(
    numeric={"age": (0, 100), "income": (0.0, 10.0)}, categorical={"city": ["a", "b", "c"]}, target=(-20, 60)
)


def table(n: int = 150, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"age": rng.uniform(0, 100, n), "income": rng.uniform(0, 10, n), "city": rng.choice(list("abc"), n)}
    )
    return X, np.clip(0.6 * X.age - 20 * (X.city == "b") + rng.normal(0, 2, n), -20, 60).to_numpy()


X, Y = table()


def model(**parameters) -> DiffPETsRegressor:
    return DiffPETsRegressor(
        **{"epsilon": 4.0, "schema": SCHEMA, "n_estimators": 3, "max_depth": 3, "random_state": 0, **parameters}
    )


def released(estimator) -> str:
    """Everything that a fitted estimator lets out, as text."""
    return json.dumps(estimator.to_dict(seeded=True))


# -- the contract ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::dpforest.BudgetWarning")  # tests/test_budget_account.py sees to it
def test_a_search_finds_the_height():
    search = GridSearchCV(model(epsilon=200.0), {"max_depth": [0, 4]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"max_depth": 4}  # a single leaf knows the mean alone


@pytest.mark.parametrize("variant", ["proved", "published"])
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_both_kernels_count_the_same(monkeypatch, variant):
    """The rows kernel and the bit kernel give one forest, to the last byte."""
    texts = []
    asked = []
    for kernel in ("rows", "bits"):
        for name in ("candidate_sums", "node_sums"):
            query = getattr(counting, name)

            def spy(*args, query=query, kernel=kernel, **options):
                asked.append(kernel)
                return query(*args, **{**options, "kernel": kernel})

            with monkeypatch.context() as patched:
                patched.setattr(counting, name, spy)
                texts.append(released(model(variant=variant).fit(X, Y)))
    assert set(asked) == {"rows", "bits"}
    assert len(set(texts)) == 1


def test_tables_and_targets_of_any_type():
    base = released(model().fit(X, Y))
    for table_, target in (
        (X.to_numpy(), Y.tolist()),
        (X.to_numpy().tolist(), pd.Series(Y)),
        (X.assign(city=X.city.astype("category")), Y.astype(object)),
        (X, Y.astype(np.longdouble)),
    ):
        assert released(model().fit(table_, target)) == base
    whole = np.round(Y).astype(int)
    assert released(model().fit(X, whole)) == released(model().fit(X, whole.astype(float)))
    for array in (frozen := X.age.to_numpy().copy(), target := Y.copy()):
        array.flags.writeable = False
    schema = Schema(numeric={"age": (0, 100)}, target=(-20, 60))
    assert model(schema=schema).fit(frozen[:, None], target).predict(frozen[:, None]).shape == Y.shape


# -- what is spent ---------------------------------------------------------------------------------------------------

NAMES = ("epsilon", "sampling", "selection", "criterion", "stop", "max_depth", "cuts_per_feature", "level_ratio")
GRID = [
    dict(zip(NAMES, values, strict=True))
    for values in product(
        (0.01, 1.0, 30.0),
        ("all", "assignment", "poisson"),
        ("permute-and-flip", "exponential"),
        ("between", "sse", "mass-gap", "variance", "weighted-variance"),
        ("candidate", "never"),
        (0, 3),
        (1, 4),
        (0.3, 1.0),
    )
]
GRID = [one for one in GRID if one["stop"] == "never" or "variance" not in one["criterion"]]


@pytest.mark.slow
@relations
def test_the_ledger_is_epsilon_exactly(relation):
    """Every run spends its whole budget and no more; what it costs under the other relation is there too."""
    for options in GRID[:: 11 if relation == REPLACE_ONE else 7]:
        estimator = model(relation=relation, **options).fit(X, Y)
        assert estimator.ledger_.leaks == []
        assert estimator.ledger_.epsilon == pytest.approx(options["epsilon"], rel=1e-12), options
        assert estimator.guarantee_.epsilon == options["epsilon"]
        assert estimator.guarantee_.claimed is None
        one, other = (estimator.ledger_.total(r) for r in RELATIONS)
        assert one <= other * (1 + 1e-12)


@relations
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_a_leaf_gets(relation, share):
    """Alignment: a leaf at the bottom has the leaves' share, one that stopped has all that is left on its path."""
    common = {
        "n_estimators": 1,
        "max_depth": 4,
        "leaf_share": share,
        "level_ratio": 1,
        "relation": relation,
        "epsilon": 2.0,
    }
    for margin, leaves in ((-1e6, {2.0 * share}), (1e6, {2.0 * (1 - (1 - share) / 4)})):
        estimator = model(stop_margin=margin, **common).fit(X, Y)
        told = str(estimator.ledger_)
        charged = {
            round(float(line.split(": ")[1].split(" each")[0]), 5) for line in told.splitlines() if "masses" in line
        }
        assert charged == {round(value, 5) for value in leaves}
        assert estimator.forest_.depth == (4 if margin < 0 else 0)


def test_non_private_is_asked_for_by_name():
    estimator = model(epsilon="non-private", stop="never", shrinkage=0.0, max_depth=8, max_features="all").fit(X, Y)
    assert estimator.guarantee_.epsilon == math.inf
    assert estimator.ledger_.leaks == []
    assert estimator.forest_.shrinkage == 0
    assert estimator.score(X, Y) > 0.9


@relations
def test_the_noise_fades_as_epsilon_grows(relation):
    """The private mean, one leaf: its error falls as 1/ε, and is that of the two masses."""
    truth = float(SCHEMA.decode_target(SCHEMA.encode_target(Y)[0] / TARGET_LEVELS).mean())
    errors = []
    for epsilon in (0.05, 0.5, 5.0):
        means = [
            float(
                model(epsilon=epsilon, n_estimators=1, max_depth=0, shrinkage=0.0, relation=relation, random_state=s)
                .fit(X, Y)
                .predict(X[:1])[0]
            )
            for s in range(60)
        ]
        errors.append(math.sqrt(np.mean((np.array(means) - truth) ** 2)))
    mu = (Y.mean() + 20) / 80
    factor = {ADD_REMOVE: 1, REPLACE_ONE: 2}[relation]
    expected = 80 * factor * math.sqrt(2 * (mu**2 + (1 - mu) ** 2)) / len(Y)
    for error, epsilon in list(zip(errors, (0.05, 0.5, 5.0), strict=True))[1:]:
        assert error == pytest.approx(expected / epsilon, rel=0.35)  # 60 draws: an error of a tenth
    assert errors[0] > errors[1] > errors[2]


# -- the published variant -------------------------------------------------------------------------------------------

LEAKS = {
    "which nodes have an error below the threshold": "DiffPETs algorithm 2, termination",
    "which values of each feature occur in a node": "DiffPETs algorithm 2, line 5",
}


@relations
def test_the_published_variant_warns_and_names_its_leaks(relation):
    with pytest.warns(UnprovenPrivacyWarning, match="not differentially private"):
        estimator = model(variant="published", relation=relation).fit(X, Y)
    assert {leak.what: leak.where for leak in estimator.guarantee_.leaks} == LEAKS
    assert estimator.guarantee_.epsilon == math.inf
    assert estimator.guarantee_.claimed == 4.0
    assert estimator.ledger_.epsilon == math.inf
    assert estimator.ledger_.leaks == list(estimator.guarantee_.leaks)
    assert estimator.forest_.shrinkage == 0  # the paper divides the noisy sum by the noisy count


def test_the_published_variant_halves_the_budget_of_a_level():
    """ε2 = ε1 / (2 (h + 1)) for a count at every node, and for a leaf's sum; a selection with Δ = 1/4 costs less."""
    with pytest.warns(UnprovenPrivacyWarning):
        estimator = model(variant="published", n_estimators=1, max_depth=3, error_threshold=0.0).fit(X, Y)
    part = 4.0 / (2 * 4)
    lines = [line.strip() for line in str(estimator.ledger_).splitlines()]
    charged = {line.split(",")[0]: float(line.split(": ")[1].split(" each")[0]) for line in lines if " each, " in line}
    assert charged == pytest.approx(
        {
            "- sum the targets of a leaf": part,
            "- count the records of a node": part,
            "- choose a cut by variance": part * (41 / 144) / (2 * 1 / 4),
        },
        rel=1e-5,
    )


@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_the_error_threshold_stops_the_published_trees():
    sizes = [model(variant="published", error_threshold=t).fit(X, Y).forest_.n_nodes for t in (1.0, 0.02, 0.0)]
    assert sizes[0] == 3  # three roots: no variance exceeds 1/4
    assert sizes[0] < sizes[1] < sizes[2]
    same = model(variant="published").fit(X, np.full(len(X), 7.0))
    assert same.forest_.n_nodes == 3  # nothing to explain


# -- small and odd data ----------------------------------------------------------------------------------------------


def test_a_constant_target():
    """Nothing is said of it beyond noise; without noise it comes back, to the grid."""
    for value, tolerance in ((-20.0, 0), (60.0, 0), (7.0, 80 / 480)):
        estimator = model(epsilon="non-private").fit(X, np.full(len(X), value))
        np.testing.assert_allclose(estimator.predict(X), value, atol=tolerance + 1e-12)
        private = model(epsilon=50.0, shrinkage=0.0).fit(X, np.full(len(X), value))
        assert np.abs(private.predict(X) - value).mean() < 10


@pytest.mark.parametrize("variant", ["proved", "published"])
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_a_feature_with_one_category(variant):
    """It cannot be divided: a node that chooses it sends all records to one side."""
    schema = Schema(categorical={"city": ["a"], "side": ["l", "r"]}, target=(0, 1))
    rng = np.random.default_rng(0)
    side = rng.choice(["l", "r"], 200)
    frame = pd.DataFrame({"city": "a", "side": side})
    estimator = model(schema=schema, variant=variant, epsilon=100.0, max_features="all", max_depth=2)
    estimator.fit(frame, side == "r")
    low, high = estimator.predict(pd.DataFrame({"city": "a", "side": ["l", "r"]}))
    assert low < 0.3 < 0.7 < high
    alone = model(schema=Schema(categorical={"city": ["a"]}, target=(0, 1)), variant=variant)
    assert alone.fit(frame[["city"]], side == "r").predict(frame[["city"]]).shape == (200,)


@pytest.mark.parametrize("variant", ["proved", "published"])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 1e4])
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_predictions_stay_within_the_declared_range(variant, epsilon):
    """Masses may be negative and a noisy count zero: the answer is a number in the range."""
    for seed, shrinkage in product(range(4), (0.0, 5.0)):
        estimator = model(epsilon=epsilon, variant=variant, shrinkage=shrinkage, random_state=seed).fit(X[:30], Y[:30])
        predicted = estimator.predict(X)
        assert np.isfinite(predicted).all()
        assert predicted.min() >= -20
        assert predicted.max() <= 60


@pytest.mark.parametrize("criterion", ["between", "sse", "mass-gap", "variance", "weighted-variance"])
def test_every_criterion_learns(criterion):
    """At a large budget each finds what the target depends on, better than the mean."""
    stop = "never" if "variance" in criterion else "candidate"
    frame, target = table(2000, seed=1)
    estimator = model(epsilon=200.0, criterion=criterion, stop=stop, max_depth=5, max_features="all").fit(frame, target)
    test, truth = table(500, seed=2)
    assert estimator.score(test, truth) > 0.4


def test_the_score_without_squares_grows_the_tree_of_the_squared_error():
    """lem-between: the same selection law, so without noise the same structure."""
    one, other = (
        # a seed with which no two candidates tie but for the rounding of one of the two formulas
        model(epsilon="non-private", criterion=c, stop="never", max_depth=6, random_state=2).fit(X, Y)
        for c in ("between", "sse")
    )
    np.testing.assert_array_equal(one.forest_.feature, other.forest_.feature)
    np.testing.assert_array_equal(one.forest_.mask, other.forest_.mask)
    np.testing.assert_array_equal(one.forest_.values, other.forest_.values)


# -- shrinkage -------------------------------------------------------------------------------------------------------


def by_hand(forest, node: int, above: np.ndarray, half: float) -> dict[int, np.ndarray]:
    """Shares of ``node`` and of all below it, from the definition: sums of leaves, and a weight for each node."""

    def leaves(at):
        if forest.feature[at] < 0:
            return [at]
        first = int(forest.first_child[at])
        return [leaf for child in range(first, first + int(forest.arity[at])) for leaf in leaves(child)]

    below = leaves(node)
    total = forest.values[below].sum(axis=0).astype(float)
    size, positive = max(float(total.sum()), 0.0), np.maximum(total, 0)
    weight = size**2 / (size**2 + len(below) * half**2) if size else 0.0
    own = positive / positive.sum() if positive.sum() else np.zeros(2)
    shares = {node: weight * own + (1 - weight) * above}
    if forest.feature[node] >= 0:
        first = int(forest.first_child[node])
        for child in range(first, first + int(forest.arity[node])):
            shares |= by_hand(forest, child, shares[node], half)
    return shares


@pytest.mark.parametrize("shrinkage", [0.5, 5.0, 50.0])
def test_shrinkage_is_that_of_the_definition(shrinkage):
    forest = model(shrinkage=shrinkage, epsilon=3.0, leaf_share=0.5).fit(X, Y).forest_
    assert forest.shrinkage == pytest.approx(shrinkage * TARGET_LEVELS / (3.0 / 3 * 0.5), rel=1e-12)
    shares = forest.shares()
    for root in forest.roots:
        for node, expected in by_hand(forest, int(root), np.array([0.5, 0.5]), forest.shrinkage).items():
            np.testing.assert_allclose(shares[node], expected, rtol=1e-10, atol=1e-12)


def test_shrinkage_is_post_processing():
    """The same forest is released, to the last mass, and the same is spent; only a public constant differs."""
    plain, shrunk = (model(shrinkage=s).fit(X, Y) for s in (0.0, 5.0))
    one, other = (json.loads(released(m)) for m in (plain, shrunk))
    assert (one["forest"].pop("shrinkage"), other["forest"].pop("shrinkage")) != (0.0, 0.0)
    assert one == other
    assert plain.ledger_.epsilon == shrunk.ledger_.epsilon


# -- released models -------------------------------------------------------------------------------------------------


def test_a_released_model_holds_no_exact_sum():
    """A planted sum of targets: its codes add up to a number that the released masses must not show."""
    estimator = model(n_estimators=1, max_depth=0, epsilon=0.5)
    codes, _ = SCHEMA.encode_target(Y)
    exact = [int(codes.sum()), int(TARGET_LEVELS * len(Y) - codes.sum())]
    found = [estimator.set_params(random_state=s).fit(X, Y).forest_.values.tolist()[0] for s in range(20)]
    assert exact not in found
    assert len({tuple(values) for values in found}) == 20
    assert np.abs(np.mean(found, axis=0) - exact).max() < 5 * math.sqrt(2 / 20) * TARGET_LEVELS / 0.5


def test_max_nodes_is_kept_and_paid_for():
    estimator = model(stop="never", max_nodes=7, n_estimators=2).fit(X, Y)
    assert estimator.forest_.n_nodes <= 7
    assert estimator.ledger_.epsilon == pytest.approx(4.0, rel=1e-12)


def test_the_default_height_is_half_the_number_of_features():
    wide = Schema(numeric={f"x{i}": (0, 1) for i in range(30)}, target=(0, 1))
    rng = np.random.default_rng(0)
    data = rng.random((50, 30))
    grown = {
        k: DiffPETsRegressor(
            schema=Schema(numeric={f"x{i}": (0, 1) for i in range(k)}, target=(0, 1)),
            stop="never",
            n_estimators=1,
            random_state=0,
        )
        .fit(data[:, :k], data[:, 0])
        .forest_.depth
        for k in (1, 4, 11)
    }
    assert grown == {1: 1, 4: 2, 11: 5}
    tall = DiffPETsRegressor(schema=wide, n_estimators=1, stop="never", random_state=0).fit(data, data[:, 0])
    assert tall.forest_.depth == 10  # and no more


def test_the_ledger_holds_no_answer():
    """Two data sets with other targets, without noise in the structure: the same charges, word for word."""
    one, other = (model(max_depth=0, n_estimators=2).fit(X, target) for target in (Y, Y[::-1] / 2))
    assert str(one.ledger_) == str(other.ledger_)
