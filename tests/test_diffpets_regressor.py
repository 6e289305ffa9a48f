"""DiffPETs for regression as an estimator: its contract, its ledger, its leaks, bad input, and its released models."""

from __future__ import annotations

import json
import math
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_estimators import INFINITY, schema_of

from dpforest import OutOfSchemaWarning, Schema, UnprovenPrivacyWarning, counting, load
from dpforest.models.release import ReleasedForestRegressor
from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
from dpforest.papers.random_trees import RandomTreesRegressor
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


# -- scikit-learn's own checks -------------------------------------------------------------------------------------


class _TargetFromData:
    """What the library never does: it would make the bounds and the range of the target depend on the records."""

    def fit(self, X, y, **more):
        features = schema_of(X, None)
        try:
            target = np.nan_to_num(np.asarray(y).real.astype(float).ravel(), posinf=0, neginf=0)
        except (TypeError, ValueError):  # no numbers: the estimator itself has to say so
            target = np.zeros(1)
        low, high = (float(target.min()), float(target.max())) if target.size else (0.0, 0.0)
        self._found = Schema(numeric=features.numeric, target=(low, max(high, low + 1)))
        return super().fit(X, y, **more)

    def declared_schema(self):
        return self._found


class _ClassesFromData:
    def fit(self, X, y, **more):
        self._found = schema_of(X, y)
        return super().fit(X, y, **more)

    def declared_schema(self):
        return self._found


class SchemaFreeDiffPETs(_TargetFromData, DiffPETsRegressor):
    pass


class SchemaFreeRandomTreesRegressor(_TargetFromData, RandomTreesRegressor):
    pass


class SchemaFreeDiffPETsClassifier(_ClassesFromData, DiffPETsClassifier):
    pass


CLIPPED = "a target that is NaN is refused; an infinite one lies outside the declared range and is clipped and counted"
CHECKED = [
    SchemaFreeDiffPETs(epsilon=1000.0, n_estimators=8, max_depth=4, random_state=0),
    SchemaFreeDiffPETs(epsilon=1e4, n_estimators=5, max_depth=7, stop="never", criterion="sse", random_state=0),
    SchemaFreeRandomTreesRegressor(epsilon=1e5, n_estimators=5, max_depth=13, random_state=0),
    SchemaFreeDiffPETsClassifier(epsilon=1000.0, n_estimators=5, max_depth=4, random_state=0),
    SchemaFreeDiffPETsClassifier(epsilon=1e4, n_estimators=25, max_depth=4, leaf="label", random_state=0),
]


def expected(estimator) -> dict[str, str]:
    """An infinite target lies outside its range, as an infinite value of a feature does."""
    return INFINITY if is_classifier(estimator) else {**INFINITY, "check_supervised_y_no_nan": CLIPPED}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- the contract ----------------------------------------------------------------------------------------------------


def test_unfitted_models_say_so():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model().predict(X)
    with pytest.raises(NotFittedError):
        model().to_dict(seeded=True)


def test_parameters_survive_fit_clone_and_set_params():
    estimator = model(shrinkage=2.0)
    before = estimator.get_params()
    estimator.fit(X, Y)
    assert estimator.get_params() == before
    assert clone(estimator).get_params() == before
    assert not hasattr(clone(estimator), "forest_")
    assert not hasattr(estimator, "classes_")
    assert estimator.feature_names_in_.tolist() == SCHEMA.columns
    assert estimator.n_features_in_ == 3


def test_pipelines_and_searches():
    pipeline = make_pipeline(FunctionTransformer(), model())
    assert pipeline.fit(X, Y).predict(X).shape == Y.shape
    search = GridSearchCV(model(epsilon=200.0), {"max_depth": [0, 4]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"max_depth": 4}  # a single leaf knows the mean alone
    assert len(cross_val_score(model(), X, Y, cv=3)) == 3


@pytest.mark.parametrize("jobs", [2, -1])
@pytest.mark.parametrize("sampling", ["all", "assignment", "poisson"])
def test_a_seed_decides_every_byte(jobs, sampling):
    one = model(sampling=sampling).fit(X, Y)
    other = model(sampling=sampling, n_jobs=jobs).fit(X, Y)
    assert released(one) == released(other)
    assert str(one.ledger_) == str(other.ledger_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert released(model(sampling=sampling, random_state=1).fit(X, Y)) != released(one)
    assert released(one.fit(X, Y)) == released(other)  # fit again: as if it were new


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
        (0.01, 1.0, 30.0), ("all", "assignment", "poisson"), ("permute-and-flip", "exponential"),
        ("between", "sse", "mass-gap", "variance", "weighted-variance"), ("candidate", "never"), (0, 3), (1, 4),
        (0.3, 1.0),
    )
]  # fmt: skip
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
        "n_estimators": 1, "max_depth": 4, "leaf_share": share, "level_ratio": 1, "relation": relation, "epsilon": 2.0,
    }  # fmt: skip
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
    with pytest.raises(ValueError, match="write epsilon='non-private'"):
        model(epsilon=math.inf).fit(X, Y)


@relations
def test_the_noise_fades_as_epsilon_grows(relation):
    """The private mean, one leaf: its error falls as 1/ε, and is that of the two masses."""
    truth = float(SCHEMA.decode_target(SCHEMA.encode_target(Y)[0] / TARGET_LEVELS).mean())
    errors = []
    for epsilon in (0.05, 0.5, 5.0):
        means = [
            float(model(epsilon=epsilon, n_estimators=1, max_depth=0, shrinkage=0.0, relation=relation, random_state=s)
            .fit(X, Y).predict(X[:1])[0])
            for s in range(60)
        ]  # fmt: skip
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


def test_the_published_variant_spends_half_of_what_it_has():
    """ε2 = ε1 / (2 (h + 1)): the leaf takes all of its part; a selection with Δ = 1/4 a little more than half of it."""
    with pytest.warns(UnprovenPrivacyWarning):
        estimator = model(variant="published", n_estimators=1, max_depth=3, error_threshold=0.0).fit(X, Y)
    part = 4.0 / (2 * 4)
    lines = [line.strip() for line in str(estimator.ledger_).splitlines()]
    charged = {line.split(",")[0]: float(line.split(": ")[1].split(" each")[0]) for line in lines if " each, " in line}
    assert charged == pytest.approx(
        {
            "- sum the targets of a leaf": part / 2,
            "- count the records of a node": part / 2,
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


# -- bad input -------------------------------------------------------------------------------------------------------

BAD = [
    ({"criterion": "gini"}, ValueError, "criterion must be one of .*'between'"),
    ({"criterion": "variance"}, ValueError, "use stop='never'"),
    ({"leaf_share": 0}, ValueError, "strictly between 0 and 1"),
    ({"leaf_share": 1}, ValueError, "strictly between 0 and 1"),
    ({"level_ratio": 0}, ValueError, "level_ratio must be a number above 0 and at most 1"),
    ({"level_ratio": 1.5}, ValueError, "level_ratio must be a number above 0 and at most 1"),
    ({"leaf_share": math.nan}, ValueError, "leaf_share must be a number from 0 to 1"),
    ({"shrinkage": -1}, ValueError, "shrinkage must be a number from 0"),
    ({"shrinkage": math.inf}, ValueError, "shrinkage must be a number from 0"),
    ({"shrinkage": True}, ValueError, "shrinkage must be a number from 0"),
    ({"error_threshold": 2}, ValueError, "error_threshold must be a number from 0 to 1"),
    ({"error_threshold": "small"}, ValueError, "error_threshold must be a number from 0 to 1"),
    ({"error_threshold": math.nan}, ValueError, "error_threshold must be a number from 0 to 1"),
    ({"stop_margin": math.nan}, ValueError, "stop_margin must be a finite number of at most a million"),
    ({"stop": "error"}, ValueError, "stop must be one of"),
    ({"sampling": "bootstrap"}, ValueError, "sampling must be one of"),
    ({"selection": "argmax"}, ValueError, "selection must be one of"),
    ({"max_features": 0}, ValueError, "max_features must be 'sqrt', 'all' or a whole number"),
    ({"max_features": "log2"}, ValueError, "max_features must be 'sqrt', 'all' or a whole number"),
    ({"cuts_per_feature": 0}, ValueError, 'cuts_per_feature must be "auto" or int, at least 1'),
    ({"n_estimators": 0}, ValueError, "n_estimators must be a whole number"),
    ({"max_depth": -1}, ValueError, "max_depth must be None or int, from 0 to 1000"),
    ({"max_depth": 2.5}, ValueError, "max_depth must be None or int, from 0 to 1000"),
    ({"max_nodes": 2}, ValueError, "max_nodes must be a whole number, at least 3"),
    ({"n_bins": 256}, ValueError, "n_bins must be"),
    ({"relation": "bounded"}, ValueError, "relation must be one of"),
    ({"variant": "sound"}, ValueError, "variant must be one of"),
    ({"epsilon": 0}, ValueError, "epsilon must be positive"),
    ({"epsilon": math.nan}, ValueError, "epsilon must be positive"),
    ({"source": "hardware"}, ValueError, r"source must be one of \['secure', 'seeded'\]"),
    ({"source": "secure"}, ValueError, "takes no seed"),
    ({"schema": None}, ValueError, r"needs schema=Schema\(.*target=\(0, 100\)"),
    ({"schema": SCHEMA.to_dict()}, ValueError, r"needs schema=Schema\(.*target=\(0, 100\)"),
    ({"schema": Schema(numeric={"age": (0, 1)}, classes=[0, 1])}, ValueError, r"declare Schema\(target="),
]


@pytest.mark.parametrize(("parameters", "error", "message"), BAD, ids=str)
def test_bad_parameters_name_themselves_and_change_nothing(parameters, error, message):
    fresh, fitted = model(), model().fit(X, Y)
    before = released(fitted)
    for estimator in (fresh, fitted):
        estimator.set_params(**parameters)
        with pytest.raises(error, match=message):
            estimator.fit(X, Y)
    assert not [name for name in vars(fresh) if name.endswith("_")]
    assert json.dumps(fitted.forest_.to_dict()) == json.dumps(json.loads(before)["forest"])


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (np.where(Y > 0, np.nan, 1.0), ValueError, "y contains NaN"),
        (np.where(Y > 0, None, 1.0), ValueError, "y contains NaN"),
        (np.where(Y > 0, "much", "little"), ValueError, "y holds 'much', a text that writes no number"),
        (Y + 1j, ValueError, "Complex data not supported"),
        (Y[:-1], ValueError, "150 rows, y has 149"),
        (np.stack([Y, Y], axis=1), ValueError, "y must be one-dimensional, not of shape"),
        (None, ValueError, "requires y to be passed"),
    ],
    ids=["NaN", "missing", "text", "complex", "short", "two columns", "none"],
)
def test_bad_targets_are_refused(target, error, message):
    estimator = model()
    with pytest.raises(error, match=message):
        estimator.fit(X, target)
    assert not hasattr(estimator, "forest_")


def test_no_records_are_refused():
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model().fit(X[:0], Y[:0])
    assert model().fit(X, Y).predict(X[:0]).shape == (0,)


def test_targets_outside_the_range_are_clipped_counted_and_forgotten():
    wild = Y.copy()
    wild[:7], wild[7:9] = 1e12, -math.inf
    with pytest.warns(OutOfSchemaWarning, match="y: 9 of 150 rows.*do not release") as caught:
        estimator = model().fit(X, wild)
    assert caught[0].filename == __file__
    assert released(estimator) == released(model().fit(X, np.clip(wild, -20, 60)))
    with pytest.warns(OutOfSchemaWarning, match="age: 1, y: 9 of 150 rows"):
        model().fit(X.assign(age=np.where(X.index == 3, 1e6, X.age)), wild)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(X, np.where(Y > 0, 60.0, -20.0))  # the ends belong to the range


# -- small and odd data ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["all", "assignment", "poisson"])
@pytest.mark.parametrize("variant", ["proved", "published"])
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_one_record_and_fewer_records_than_trees(sampling, variant):
    for n in (1, 2, 5):
        estimator = model(n_estimators=8, sampling=sampling, variant=variant).fit(X[:n], Y[:n])
        assert estimator.forest_.n_trees == 8
        predicted = estimator.predict(X)
        assert ((predicted >= -20) & (predicted <= 60)).all()


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


@pytest.mark.parametrize(
    "parameters", [{}, {"variant": "published"}, {"epsilon": "non-private"}, {"shrinkage": 0.0}], ids=str
)
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_json_gives_back_the_same_model(parameters, tmp_path):
    estimator = model(**parameters).fit(X, Y)
    estimator.save(tmp_path / "model.json", seeded=True)
    back = load(tmp_path / "model.json")
    assert isinstance(back, ReleasedForestRegressor)
    np.testing.assert_array_equal(back.predict(X), estimator.predict(X))
    assert back.score(X, Y) == estimator.score(X, Y)
    assert back.guarantee_ == estimator.guarantee_
    assert back.schema_ == SCHEMA
    assert "released DiffPETsRegressor" in repr(back)
    assert json.dumps(json.loads((tmp_path / "model.json").read_text())) == released(estimator)


def test_a_released_model_holds_no_exact_sum():
    """A planted sum of targets: its codes add up to a number that the released masses must not show."""
    estimator = model(n_estimators=1, max_depth=0, epsilon=0.5)
    codes, _ = SCHEMA.encode_target(Y)
    exact = [int(codes.sum()), int(TARGET_LEVELS * len(Y) - codes.sum())]
    found = [estimator.set_params(random_state=s).fit(X, Y).forest_.values.tolist()[0] for s in range(20)]
    assert exact not in found
    assert len({tuple(values) for values in found}) == 20
    assert np.abs(np.mean(found, axis=0) - exact).max() < 5 * math.sqrt(2 / 20) * TARGET_LEVELS / 0.5


def test_a_secure_release():
    """Operating-system entropy: no seed, and no fit like another."""
    parameters = {"source": "secure", "random_state": None, "n_estimators": 2, "max_depth": 2}
    one, other = (model(**parameters).fit(X, Y) for _ in range(2))
    assert released(one) != released(other)
    for estimator in (one, other):
        predicted = estimator.predict(X)
        assert ((predicted >= -20) & (predicted <= 60)).all()
        assert estimator.ledger_.epsilon == pytest.approx(4.0, rel=1e-12)


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
            schema=Schema(numeric={f"x{i}": (0, 1) for i in range(k)}, target=(0, 1)), stop="never", n_estimators=1,
            random_state=0,
        ).fit(data[:, :k], data[:, 0]).forest_.depth
        for k in (1, 4, 11)
    }  # fmt: skip
    assert grown == {1: 1, 4: 2, 11: 5}
    tall = DiffPETsRegressor(schema=wide, n_estimators=1, stop="never", random_state=0).fit(data, data[:, 0])
    assert tall.forest_.depth == 10  # and no more


def test_a_seed_may_be_a_generator():
    assert released(model(random_state=np.random.default_rng(3)).fit(X, Y)) == released(model(random_state=3).fit(X, Y))


def test_the_ledger_holds_no_answer():
    """Two data sets with other targets, without noise in the structure: the same charges, word for word."""
    one, other = (model(max_depth=0, n_estimators=2).fit(X, target) for target in (Y, Y[::-1] / 2))
    assert str(one.ledger_) == str(other.ledger_)
