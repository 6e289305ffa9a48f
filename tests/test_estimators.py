"""The estimators as scikit-learn estimators, on bad input, and as released models."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import types
import warnings
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpforest
from dpforest import (
    EDPRFClassifier,
    OutOfSchemaWarning,
    RandomTreesClassifier,
    ReleasedForest,
    Schema,
    UnprovenPrivacyWarning,
    load,
)
from dpforest.registry import PAPERS

# -- tables --------------------------------------------------------------------------------------------------------

SCHEMA = Schema(
    numeric={"age": (0, 100), "income": (0.0, 10.0)}, categorical={"city": ["a", "b", "c"]}, classes=["no", "yes"]
)


def table(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"age": rng.uniform(0, 100, n), "income": rng.uniform(0, 10, n), "city": rng.choice(list("abc"), n)}
    )
    return X, np.where(X.age + 30 * (X.city == "b") > 60, "yes", "no")


X, Y = table()
LEARNERS = [getattr(dpforest, name) for names in PAPERS.values() for name in names]
BOTH = [EDPRFClassifier, RandomTreesClassifier]
both = pytest.mark.parametrize("kind", BOTH)


def model(kind, **parameters):
    return kind(
        **{"epsilon": 4.0, "schema": SCHEMA, "n_estimators": 3, "max_depth": 3, "random_state": 0, **parameters}
    )


def released(estimator) -> str:
    """Everything that a fitted estimator lets out, as text."""
    return json.dumps(estimator.to_dict(seeded=True))


# -- scikit-learn's own checks -------------------------------------------------------------------------------------


def declarable(label) -> bool:
    return isinstance(label, (str, bool, int)) or (isinstance(label, float) and math.isfinite(label))


def schema_of(X, y) -> Schema:
    """A schema read off the data: for scikit-learn's checks alone, which bring tables that nobody declared."""
    values = X.toarray() if sparse.issparse(X) else np.asarray(X)
    values = values if values.ndim == 2 else values.reshape(-1, 1)
    try:
        values = np.nan_to_num(values.real.astype(float), posinf=0, neginf=0)
    except (TypeError, ValueError):
        values = np.zeros(values.shape)
    names = list(getattr(X, "columns", [f"x{i}" for i in range(max(values.shape[1], 1))]))
    low, high = (values.min(axis=0), values.max(axis=0)) if values.size else (np.zeros(len(names)),) * 2
    labels = [label for label in np.unique([] if y is None else np.asarray(y)).tolist() if declarable(label)]
    if len(labels) > 20:  # a regression target
        labels = []
    labels += [1001, 1002][: max(0, 2 - len(labels))]
    bounds = {name: (float(a), float(max(b, a + 1))) for name, a, b in zip(names, low, high, strict=True)}
    return Schema(numeric=bounds, classes=labels)


class _SchemaFromData:
    """What the library never does: it would make the bounds and the classes depend on the records."""

    def fit(self, X, y, **more):
        self._found = schema_of(X, y)
        return super().fit(X, y, **more)

    def declared_schema(self):
        return self._found


class SchemaFreeEDPRF(_SchemaFromData, EDPRFClassifier):
    pass


class SchemaFreeRandomTrees(_SchemaFromData, RandomTreesClassifier):
    pass


CHECKED = [
    # one tree, else each tree of the checks' tables of ten rows would see two or three of them
    SchemaFreeEDPRF(epsilon=50.0, n_estimators=1, max_depth=2, random_state=0),
    SchemaFreeEDPRF(epsilon=50.0, n_estimators=1, max_depth=2, leaf="counts", stop="never", random_state=0),
    SchemaFreeRandomTrees(epsilon=1000.0, n_estimators=30, max_depth=5, random_state=0),
    SchemaFreeRandomTrees(epsilon=1000.0, n_estimators=10, max_depth=2, split="multiway", random_state=0),
]
INFINITY = {
    "check_estimators_nan_inf": "NaN is refused; an infinite value lies outside the bounds and is clipped and counted"
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=lambda estimator: INFINITY)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@both
def test_unfitted_models_say_so(kind):
    for method in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(model(kind), method)(X)
    with pytest.raises(NotFittedError):
        model(kind).to_dict(seeded=True)


@pytest.mark.slow
@both
def test_parameters_survive_fit_clone_and_set_params(kind):
    estimator = model(kind)
    before = estimator.get_params()
    estimator.fit(X, Y)
    assert estimator.get_params() == before
    assert estimator.get_params()["schema"] is SCHEMA
    copy = clone(estimator)
    assert copy.get_params() == before
    assert not hasattr(copy, "forest_")
    assert copy.set_params(epsilon=1.0, random_state=5).get_params()["epsilon"] == 1.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(epsilom=1)


@both
def test_pipelines_and_searches(kind):
    pipeline = make_pipeline(FunctionTransformer(), model(kind))
    assert pipeline.fit(X, Y).predict(X).shape == Y.shape
    framed = pipeline.set_output(transform="pandas").fit(X, Y)  # a classifier has no table of its own to set
    assert framed[-1].feature_names_in_.tolist() == SCHEMA.columns
    search = GridSearchCV(model(kind, epsilon=50.0), {"max_depth": [1, 2], "n_bins": [4, 10]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.5
    assert search.best_estimator_.random_state == 0
    assert len(cross_val_score(model(kind), X, Y, cv=3)) == 3


@both
@pytest.mark.parametrize("jobs", [2, -1])
def test_a_seed_decides_every_byte(kind, jobs):
    one = model(kind).fit(X, Y)
    other = model(kind, n_jobs=jobs).fit(X, Y)
    assert released(one) == released(other)
    assert str(one.ledger_) == str(other.ledger_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert released(model(kind, random_state=1).fit(X, Y)) != released(one)
    assert released(model(kind, random_state=np.random.default_rng(3)).fit(X, Y)) == released(
        model(kind, random_state=3).fit(X, Y)
    )
    one.fit(X, Y)
    assert released(one) == released(other)  # fit again: as if it were new


@both
def test_prediction_is_the_largest_probability(kind):
    for parameters in ({}, {"epsilon": 0.1}, {"leaf": "counts"} if kind is EDPRFClassifier else {"split": "multiway"}):
        estimator = model(kind, **parameters).fit(X, Y)
        probability = estimator.predict_proba(X)
        assert probability.shape == (len(X), 2)
        np.testing.assert_allclose(probability.sum(axis=1), 1)
        assert (probability >= 0).all()
        clear = estimator.forest_.sum_leaves(SCHEMA.encode(X, estimator.n_bins_).codes).max(axis=1) > 0
        assert clear.any()
        best = estimator.classes_[probability.argmax(axis=1)]
        np.testing.assert_array_equal(estimator.predict(X)[clear], best[clear])


def test_probabilities_are_uniform_where_no_leaf_has_a_positive_count():
    estimator = model(RandomTreesClassifier).fit(X, Y)
    hopeless = dataclasses.replace(estimator.forest_, values=np.full_like(estimator.forest_.values, -3))
    estimator.forest_ = hopeless
    assert (estimator.predict_proba(X) == 0.5).all()
    assert set(estimator.predict(X)) == {"no"}  # a tie: the first class


@both
@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (["no", "yes"], Y.astype(object)),
        ([0, 1], (Y == "yes").astype(int)),
        ([0, 1], (Y == "yes").astype(float)),
        ([False, True], Y == "yes"),
        ([3, -7], np.where(Y == "yes", -7, 3)),
        ([0.5, 1.5], np.where(Y == "yes", 1.5, 0.5)),
    ],
    ids=["text", "int", "int as float", "bool", "unordered", "float"],
)
def test_labels_of_any_type(kind, classes, labels):
    schema = Schema(numeric=SCHEMA.numeric, categorical=SCHEMA.categorical, classes=classes)
    estimator = model(kind, schema=schema, epsilon=1e4, n_estimators=1 if kind is EDPRFClassifier else 50).fit(
        X, labels
    )
    predicted = estimator.predict(X)
    assert estimator.classes_.tolist() == classes
    assert set(predicted.tolist()) <= set(classes)
    assert (predicted == labels).mean() > 0.8
    np.testing.assert_array_equal(load_back(estimator).predict(X), predicted)


def test_tables_of_any_type_and_column_names():
    base = model(EDPRFClassifier).fit(X, Y)
    assert base.feature_names_in_.tolist() == SCHEMA.columns
    assert base.n_features_in_ == 3
    as_list = model(EDPRFClassifier).fit(X.to_numpy().tolist(), Y.tolist())
    as_array = model(EDPRFClassifier).fit(X.to_numpy(), Y)
    assert released(base) == released(as_list) == released(as_array)
    assert not hasattr(as_array, "feature_names_in_")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        base.predict(X.to_numpy())
    assert not hasattr(base.fit(X.to_numpy(), Y), "feature_names_in_")
    categorical = X.assign(city=X.city.astype("category"))
    assert released(model(EDPRFClassifier).fit(categorical, pd.Series(Y))) == released(as_array)


def test_columns_may_be_numbered():
    numbered = X.set_axis([0, 1, 2], axis=1)
    schema = Schema(
        numeric={0: (0, 100), 1: (0, 10)}, categorical={2: list("abc")}, classes=["no", "yes"], other={2: "a"}
    )
    estimator = model(EDPRFClassifier, schema=schema).fit(numbered, Y)
    assert not hasattr(estimator, "feature_names_in_")  # scikit-learn's rule: only text is a name
    np.testing.assert_array_equal(load_back(estimator).predict(numbered), model(EDPRFClassifier).fit(X, Y).predict(X))
    assert load_back(estimator).schema_ == schema


def test_read_only_arrays_and_column_vectors():
    codes = X.assign(city=X.city.map({"a": 0, "b": 1, "c": 2})).to_numpy(dtype=float)
    labels = (Y == "yes").astype(int)
    for array in (codes, labels):
        array.flags.writeable = False
    schema = Schema(numeric=SCHEMA.numeric, categorical={"city": [0, 1, 2]}, classes=[0, 1])
    estimator = model(EDPRFClassifier, schema=schema).fit(codes, labels)
    assert estimator.predict(codes).shape == labels.shape
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = model(EDPRFClassifier, schema=schema).fit(codes, labels[:, None])
    assert released(column) == released(estimator)
    turned = model(EDPRFClassifier, schema=schema).fit(np.asfortranarray(codes), labels)
    assert released(turned) == released(estimator)


# -- bad parameters ------------------------------------------------------------------------------------------------

WHOLE = [(name, value) for name in ("n_estimators", "max_nodes") for value in (0, -2, 2.5, True, "3")]
WHOLE += [("max_depth", value) for value in (-2, 2.5, True, "3")]  # 0 makes a random tree a single leaf
OTHER = {"budget": "uniform", "leaf": "counts", "selection": "exponential", "stop": "never", "calibration": "range"}
BAD = [
    ({"epsilon": 0}, ValueError, "epsilon must be positive"),
    ({"epsilon": -1.0}, ValueError, "epsilon must be positive"),
    ({"epsilon": math.nan}, ValueError, "epsilon must be positive"),
    ({"epsilon": math.inf}, ValueError, "write epsilon='non-private'"),
    ({"epsilon": "1"}, ValueError, "'non-private' to turn privacy off"),
    ({"epsilon": True}, TypeError, "must be a positive number, not bool"),
    ({"epsilon": None}, TypeError, "must be a positive number"),
    ({"epsilon": [1.0]}, TypeError, "must be a positive number"),
    ({"relation": "bounded"}, ValueError, "relation must be one of"),
    ({"variant": "sound"}, ValueError, "variant must be one of"),
    ({"source": "hardware"}, ValueError, r"source must be one of \['secure', 'seeded'\]"),
    ({"source": "secure"}, ValueError, "takes no seed"),
    ({"n_jobs": 0}, ValueError, "n_jobs must be"),
    ({"n_jobs": 1.5}, ValueError, "n_jobs must be"),
    ({"n_bins": 2.5}, ValueError, "n_bins must be a whole number between 2 and 255"),
    ({"n_bins": 1}, ValueError, "n_bins must be"),
    ({"n_bins": 256}, ValueError, "n_bins must be"),
    ({"n_bins": True}, ValueError, "n_bins must be"),
    ({"max_depth": 10**9}, ValueError, "max_depth must be .* (at most|to) 1000"),
    *(({name: value}, ValueError, f"{name} must be (a whole number|None or int)") for name, value in WHOLE),
]
BAD_EDPRF = [
    ({"max_depth": 0}, ValueError, "max_depth must be a whole number"),
    ({"max_depth": None}, ValueError, "max_depth must be a whole number"),
    *(
        ({name: "no such"}, ValueError, f"{name} must be one of")
        for name in ("selection", "criterion", "budget", "calibration", "leaf", "stop")
    ),
    ({"selection": ["exponential"]}, ValueError, "selection must be one of"),
    ({"stop_margin": math.nan}, ValueError, "stop_margin must be a finite number"),
    ({"stop_margin": math.inf}, ValueError, "stop_margin must be a finite number"),
    ({"stop_margin": "4"}, ValueError, "stop_margin must be a finite number"),
    ({"stop_margin": True}, ValueError, "stop_margin must be a finite number"),
    ({"n_max": 0}, ValueError, "public cap"),
    ({"n_max": 10.5}, ValueError, "public cap"),
    ({"n_max": math.nan}, ValueError, "public cap"),
    ({"criterion": "information-gain"}, ValueError, "needs a public cap"),
    ({"criterion": "normalised-gini"}, ValueError, "use stop='never'"),
    ({"stop": "purity"}, ValueError, "reads the data unpaid"),
    ({"criterion": "information-gain", "n_max": 100}, ValueError, "more records than the public cap"),
    ({"n_max": 100, "stop": "never"}, ValueError, "more records than the public cap"),
    *(({"variant": "published", name: value}, ValueError, f"to the letter.*{name}") for name, value in OTHER.items()),
]
BAD_RANDOM = [
    ({"split": "ternary"}, ValueError, "split must be one of"),
    ({"variant": "published"}, ValueError, "to the letter.*max_depth"),
    ({"max_depth": 40}, ValueError, "need at least .* nodes, more than max_nodes"),
    ({"split": "multiway", "max_nodes": 5}, ValueError, "need at least .* nodes, more than max_nodes"),
]


@pytest.mark.parametrize(
    ("kind", "parameters", "error", "message"),
    [(kind, *bad) for kind in BOTH for bad in BAD]
    + [(EDPRFClassifier, *bad) for bad in BAD_EDPRF]
    + [(RandomTreesClassifier, *bad) for bad in BAD_RANDOM],
)
def test_bad_parameters_name_themselves_and_change_nothing(kind, parameters, error, message):
    fresh = model(kind)
    fitted = model(kind).fit(X, Y)
    before = released(fitted)
    for estimator in (fresh, fitted):
        estimator.set_params(**parameters)
        with pytest.raises(error, match=message):
            estimator.fit(X, Y)
    assert not [name for name in vars(fresh) if name.endswith("_")]
    fitted.set_params(n_jobs=None)
    assert released(fitted) == before


#: What may stand in a cell of a table or of a configuration, and is no value of any parameter.
ODD = [
    pd.NA,
    pd.NaT,
    Decimal("sNaN"),
    Decimal(1),
    10**400,
    Fraction(10**400),
    -(10**30),
    np.array([1, 2]),
    1j,
    object(),
]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["proved", "published"])
@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
def test_odd_values_are_refused_by_the_name_of_the_parameter(kind, variant):
    regression = kind.__name__.endswith("Regressor")
    schema = Schema(numeric=SCHEMA.numeric, categorical=SCHEMA.categorical, target=(0, 1)) if regression else SCHEMA
    y = (Y == "yes").astype(float) if regression else Y
    silent = []
    for name, odd in product(kind().get_params(), ODD):
        estimator = kind(**{"schema": schema, "variant": variant, "random_state": 0, name: odd})
        if name in ("random_state", "max_features", "n_jobs") and isinstance(odd, int) and odd > 0:
            continue  # any whole number is a seed; of features and threads there are as many as there are
        if name == "n_jobs" and kind._RELEASED == "linear":
            continue  # accepted like everywhere, and not used
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnprovenPrivacyWarning)
                estimator.fit(X, y)
        except (ValueError, TypeError) as error:
            if name not in str(error) and "published" not in str(error):
                silent.append((name, odd, str(error)))
        else:
            silent.append((name, odd, "accepted"))
    assert silent == []


@pytest.mark.parametrize("seed", ["abc", -1, 1.5, True, [1, -2], [True], b"x"])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(ValueError, match="random_state must be None, a whole number of at least 0 or a list of them"):
        model(EDPRFClassifier, random_state=seed).fit(X, Y)


@both
@pytest.mark.parametrize("schema", [None, {"age": (0, 1)}, SCHEMA.to_dict()])
def test_a_missing_schema_says_what_to_write(kind, schema):
    with pytest.raises(ValueError, match=r"needs schema=Schema\(numeric=.*classes=.*never learned from it"):
        model(kind, schema=schema).fit(X, Y)


@both
def test_a_regression_schema_is_refused(kind):
    with pytest.raises(ValueError, match="declare Schema"):
        model(kind, schema=Schema(numeric={"age": (0, 100)}, target=(0, 1))).fit(X[["age"]], Y)


@both
def test_privacy_is_turned_off_by_name_alone(kind):
    estimator = model(kind, epsilon="non-private").fit(X, Y)
    assert estimator.guarantee_.epsilon == math.inf
    assert "not differentially private" in str(estimator.guarantee_)
    assert estimator.ledger_.leaks == []


# -- bad data ------------------------------------------------------------------------------------------------------


def bad_tables():
    yield "names", X.rename(columns={"age": "AGE"}), ValueError, r"X has no column 'age'; it has \['AGE', 'income'"
    yield "a column less", X[["age", "city"]], ValueError, "X has no column 'income'"
    yield "a column twice", X[["age", "city", "income", "age"]], ValueError, "X has more than one column 'age'"
    yield "width", X.to_numpy()[:, :2], ValueError, "X has 2 features, but Schema is expecting 3 features"
    yield "one dimension", X.age.to_numpy(), ValueError, "Reshape your data"
    yield "no column", np.empty((len(X), 0)), ValueError, r"0 feature\(s\)"
    yield "undeclared category", X.assign(city="z"), ValueError, "'z', which is not among its declared categories"
    yield "text in a numeric column", X.assign(age="old"), ValueError, "column 'age', declared numeric, holds 'old'"
    yield "object in a numeric column", X.assign(age=[{}] * len(X)), TypeError, "declared numeric, holds {}"
    yield "complex", X.assign(age=1j), ValueError, "Complex data not supported"
    yield "NaN", X.assign(age=np.nan), ValueError, r"NaN; declare Schema\(missing='bin'\)"
    yield "None", X.assign(city=None), ValueError, r"NaN; declare Schema\(missing='bin'\)"
    yield "sparse", sparse.csr_array(np.ones((len(X), 3))), TypeError, r"X.toarray\(\)"
    yield "nothing", None, ValueError, "Expected 2D array"


@both
@pytest.mark.parametrize(("name", "bad", "error", "message"), list(bad_tables()), ids=[row[0] for row in bad_tables()])
def test_bad_tables_are_refused_by_fit_and_predict(kind, name, bad, error, message):
    estimator = model(kind).fit(X, Y)
    before = released(estimator)
    with pytest.raises(error, match=message):
        estimator.predict(bad)
    with pytest.raises(error, match=message):
        estimator.fit(bad, Y)
    assert released(estimator) == before
    fresh = model(kind)
    with pytest.raises(error, match=message):
        fresh.fit(bad, Y)
    assert not hasattr(fresh, "forest_")


@both
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.where(Y == "yes", "maybe", "no"), r"Unknown label type: .*'maybe'.* is not among the declared classes"),
        (np.where(Y == "yes", None, "no"), "None is not among the declared classes"),
        (np.linspace(0, 1, len(Y)), "Unknown label type"),
        (Y[:-1], "120 rows, y has 119"),
        (np.append(Y, "no"), "120 rows, y has 121"),
        (np.stack([Y, Y], axis=1), "y must be one-dimensional, not of shape"),
        (None, "requires y to be passed"),
    ],
    ids=["unknown", "missing", "continuous", "short", "long", "two columns", "none"],
)
def test_bad_labels_are_refused(kind, labels, message):
    with pytest.raises(ValueError, match=message):
        model(kind).fit(X, labels)


@both
def test_empty_data_are_refused_and_small_data_are_not(kind):
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model(kind).fit(X[:0], Y[:0])
    for rows in (slice(0, 1), Y == "no"):
        estimator = model(kind).fit(X[rows], Y[rows])
        assert estimator.classes_.tolist() == ["no", "yes"]  # declared, so no news that one of them is absent
        assert estimator.predict_proba(X).shape == (len(X), 2)
        assert estimator.guarantee_.epsilon == pytest.approx(4.0)
    estimator = model(kind).fit(X, Y)
    assert estimator.predict(X[:0]).shape == (0,)
    assert estimator.predict_proba(X[:0]).shape == (0, 2)


@both
def test_values_outside_the_bounds_are_clipped_counted_and_forgotten(kind):
    wild = X.copy()
    wild.loc[:6, "age"], wild.loc[:2, "income"] = 1e9, -np.inf
    with pytest.warns(OutOfSchemaWarning, match="age: 7, income: 3 of 120 rows.*do not release") as caught:
        estimator = model(kind).fit(wild, Y)
    assert caught[0].filename == __file__
    tame = wild.assign(age=wild.age.clip(0, 100), income=wild.income.clip(0, 10))
    assert released(estimator) == released(model(kind).fit(tame, Y))
    fitted, clean = ({name for name in vars(m) if name.endswith("_")} for m in (estimator, model(kind).fit(tame, Y)))
    assert fitted == clean
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.predict(wild)  # the table of a query is nobody's secret: no warning


@both
def test_undeclared_categories_go_to_other_where_it_is_declared(kind):
    schema = Schema(numeric=SCHEMA.numeric, categorical=SCHEMA.categorical, classes=SCHEMA.classes, other={"city": "c"})
    strange = X.assign(city=X.city.replace("c", "atlantis"))
    with pytest.warns(OutOfSchemaWarning, match=f"city: {(X.city == 'c').sum()} of 120 rows"):
        estimator = model(kind, schema=schema).fit(strange, Y)
    assert released(estimator) == released(model(kind, schema=schema).fit(X, Y))
    np.testing.assert_array_equal(estimator.predict(strange), estimator.predict(X))


@both
def test_missing_values_have_a_public_bin_where_it_is_declared(kind):
    schema = Schema(numeric=SCHEMA.numeric, categorical=SCHEMA.categorical, classes=SCHEMA.classes, missing="bin")
    holes = X.copy()
    holes.loc[::5, "age"], holes.loc[::7, "city"] = np.nan, None
    estimator = model(kind, schema=schema).fit(holes, Y)
    assert estimator.predict(holes).shape == Y.shape
    nullable = holes.assign(age=holes.age.astype("Float64"))
    assert released(model(kind, schema=schema).fit(nullable, Y)) == released(estimator)
    assert estimator.__sklearn_tags__().input_tags.allow_nan
    assert not model(kind).__sklearn_tags__().input_tags.allow_nan


# -- the released model --------------------------------------------------------------------------------------------

SEED = 987_654_321
PLANTED = 4242.420042  # a value that no public grid has
N_PLANTED = 7919  # a number of records that stands nowhere else


def planted():
    """A table whose records, number and exact counts can be recognised wherever they turn up."""
    X, y = table(N_PLANTED, seed=11)
    schema = Schema(
        numeric={"age": (0, 5000), "income": (0, 10)}, categorical=SCHEMA.categorical, classes=SCHEMA.classes
    )
    X.loc[17, "age"] = PLANTED
    return schema, X, y


def load_back(estimator) -> ReleasedForest:
    return ReleasedForest(json.loads(json.dumps(estimator.to_dict(seeded=True))))


#: The arrays that a fitted model may hold, by path: the forest, the classes and the names; charges of the ledger.
DOCUMENTED = {
    ".classes_", ".schema.classes", ".schema_.classes", ".feature_names_in_",
    ".forest_.feature", ".forest_.first_child", ".forest_.arity", ".forest_.multiway", ".forest_.mask",
    ".forest_.roots", ".forest_.values",
    ".ledger_._parents[]", ".ledger_._charges[].scopes",
    ".ledger_._charges[].costs{add-remove}", ".ledger_._charges[].costs{replace-one}",
}  # fmt: skip


def leaves(thing, path="", seen=None):
    """Every value in an object graph that is not a container, with the path to it."""
    seen = set() if seen is None else seen
    plain = isinstance(thing, (str, bytes, int, float, bool, type(None), np.generic, np.ndarray))
    if plain:
        yield path, thing
        return
    if id(thing) in seen or isinstance(thing, (type, types.FunctionType)):
        return
    seen.add(id(thing))
    if isinstance(thing, Mapping):
        for key, value in thing.items():
            yield f"{path}<key>", key
            yield from leaves(value, f"{path}{{{key}}}", seen)
    elif isinstance(thing, (list, tuple, set, frozenset)):
        for value in thing:
            yield from leaves(value, f"{path}[]", seen)
    else:
        assert type(thing).__module__.split(".")[0] in ("dpforest", "test_estimators"), f"{path} holds a {type(thing)}"
        for name, value in vars(thing).items():
            yield from leaves(value, f"{path}.{name}", seen)


def settings(kind):
    yield {}
    yield {"relation": "replace-one"}
    if kind is EDPRFClassifier:
        yield {"leaf": "counts"}
        yield {"stop": "never", "selection": "exponential"}
        yield {"variant": "published"}
    else:
        yield {"split": "multiway"}
        yield {"variant": "published", "max_depth": None}


@pytest.mark.parametrize(("kind", "parameters"), [(kind, p) for kind in BOTH for p in settings(kind)])
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_a_released_model_holds_no_record_no_exact_count_and_no_seed(kind, parameters):
    schema, X, y = planted()
    # so little budget that no noisy count is an exact one by chance
    estimator = model(kind, schema=schema, random_state=SEED, epsilon=0.01, **parameters).fit(X, y)
    held = list(leaves(estimator))
    arrays = {path for path, value in held if isinstance(value, np.ndarray)}
    assert arrays <= DOCUMENTED, arrays - DOCUMENTED
    assert {".forest_.values", ".ledger_._charges[].scopes"} <= arrays
    # nothing has one entry per record, and no number is the number of records, or of those of one class
    exact = {N_PLANTED, int((y == "yes").sum()), int((y == "no").sum())}
    for path, value in held:
        assert np.size(value) != N_PLANTED, path
        if not isinstance(value, (str, bytes)):
            assert not np.isin(np.asarray(value, dtype=object).ravel().tolist(), [*exact, PLANTED]).any(), path
    # neither in the pickle nor in the JSON
    pickled, text = pickle.dumps(estimator), json.dumps(estimator.to_dict(seeded=True))
    assert SEED not in [value for _, value in leaves(pickle.loads(pickled)) if isinstance(value, int)]
    for needle in (np.float64(PLANTED).tobytes(), SEED.to_bytes(4, "little")):
        assert needle not in pickled
        assert needle[::-1] not in pickled
    for needle in (str(PLANTED), str(SEED), str(N_PLANTED)):
        assert needle.encode() not in pickled
        assert needle not in text


def test_the_search_for_secrets_can_find_them():
    """The visitor above, on models that do hold what they must not."""
    schema, X, y = planted()
    estimator = model(EDPRFClassifier, schema=schema, random_state=SEED).fit(X, y)
    estimator.forest_.__dict__["rows_"] = X.age.to_numpy()
    assert ".forest_.rows_" in {path for path, value in leaves(estimator) if isinstance(value, np.ndarray)} - DOCUMENTED
    del estimator.forest_.__dict__["rows_"]
    assert SEED in [value for _, value in leaves(estimator) if isinstance(value, int)]  # in memory; the pickle drops it
    kept = {**estimator.__dict__}
    assert SEED.to_bytes(4, "little") in pickle.dumps(kept)


@both
def test_a_fitted_pickle_drops_the_seed_and_an_unfitted_one_keeps_it(kind):
    estimator = model(kind, random_state=SEED)
    assert pickle.loads(pickle.dumps(estimator)).random_state == SEED
    assert clone(estimator.fit(X, Y)).random_state == SEED
    assert estimator.random_state == SEED
    copy = pickle.loads(pickle.dumps(estimator))
    assert copy.random_state is None
    np.testing.assert_array_equal(copy.predict_proba(X), estimator.predict_proba(X))
    assert copy.guarantee_ == estimator.guarantee_
    assert str(copy.ledger_) == str(estimator.ledger_)
    generator = model(kind, random_state=np.random.default_rng(SEED)).fit(X, Y)
    assert pickle.loads(pickle.dumps(generator)).random_state is None


@pytest.mark.parametrize(("kind", "parameters"), [(kind, p) for kind in BOTH for p in settings(kind)])
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_the_ledger_holds_no_answer(kind, parameters):
    """Two tables of one size on which the public structure comes out the same have the same ledger, to the byte."""

    def ledger(labels):
        estimator = model(kind, **{"max_depth": 1, "n_estimators": 1, "epsilon": 1e6, **parameters}).fit(X, labels)
        return estimator.forest_.feature.tolist(), pickle.dumps(estimator.ledger_), estimator.forest_.values.tolist()

    swap = {"yes": "no", "no": "yes"}
    one, other = ledger(Y), ledger(np.array([swap[label] for label in Y]))
    assert one[0] == other[0]
    assert one[2] != other[2]
    assert one[1] == other[1]


@pytest.mark.parametrize(("kind", "parameters"), [(kind, p) for kind in BOTH for p in settings(kind)])
@pytest.mark.filterwarnings("ignore::dpforest.UnprovenPrivacyWarning")
def test_json_gives_back_the_same_model(kind, parameters, tmp_path):
    estimator = model(kind, **parameters).fit(X, Y)
    estimator.save(tmp_path / "model.json", seeded=True)
    copy = load(tmp_path / "model.json")
    assert copy.to_dict(seeded=True) == estimator.to_dict(seeded=True)
    assert copy.guarantee_ == estimator.guarantee_
    assert copy.schema_ == SCHEMA
    np.testing.assert_array_equal(copy.predict_proba(X), estimator.predict_proba(X))
    np.testing.assert_array_equal(copy.predict(X), estimator.predict(X))
    with pytest.raises(ValueError, match="X has no column 'age'"):
        copy.predict(X.rename(columns={"age": "AGE"}))


def test_json_of_a_model_without_privacy(tmp_path):
    estimator = model(EDPRFClassifier, epsilon="non-private").fit(X, Y)
    estimator.save(tmp_path / "model.json", seeded=True)
    text = (tmp_path / "model.json").read_text()
    assert "Infinity" not in text
    assert load(tmp_path / "model.json").guarantee_.epsilon == math.inf


def inner(description) -> int:
    return next(i for i, feature in enumerate(description["forest"]["feature"]) if feature >= 0)


def broken():
    """Ways to break the JSON of a model: name -> what to do to its description."""

    def at_forest(column, value, node=None):
        def change(description):
            column_ = description["forest"][column]
            column_[inner(description) if node is None else node] = value

        return change

    yield "a cycle", at_forest("first_child", 0)
    yield "a child beyond the table", at_forest("first_child", 10**6)
    yield "a negative child", at_forest("first_child", -1)
    yield "a number too large", at_forest("first_child", 2**40)
    yield "too many children", at_forest("arity", 10**6)
    yield "too few children", at_forest("arity", 1)
    yield "no children", at_forest("arity", 0)
    yield "a feature that is not there", at_forest("feature", 99)
    yield "a feature below leaf", at_forest("feature", -5)
    yield "a root beyond the table", at_forest("roots", 10**6, 0)
    yield "a negative root", at_forest("roots", -1, 0)
    yield "a short column", lambda d: d["forest"]["arity"].pop()
    yield "a short leaf table", lambda d: d["forest"]["values"].pop()
    yield "leaves of another width", lambda d: d["forest"].update(values=[[1, 2, 3]] * len(d["forest"]["feature"]))
    yield "ragged leaves", lambda d: d["forest"]["values"][0].append(1)
    yield "text for numbers", lambda d: d["forest"].update(feature="abc")
    yield "masks of another width", lambda d: d["forest"].update(mask=[1, 2, 3])
    yield "no forest", lambda d: d.pop("forest")
    yield "no schema", lambda d: d.pop("schema")
    yield "a schema of something else", lambda d: d["schema"].update(shape="round")
    yield "a regression schema", lambda d: d["schema"].update(classes=None, target=[0, 1])
    yield "no guarantee", lambda d: d.pop("guarantee")
    yield "half a guarantee", lambda d: d["guarantee"].pop("epsilon")
    yield "an odd leak", lambda d: d["guarantee"].update(leaks=[{"who": "me"}])
    yield "another format", lambda d: d.update(format=3)
    yield "no format", lambda d: d.pop("format")
    yield "bins that are none", lambda d: d.update(n_bins=2.5)
    yield "other bins", lambda d: d.update(n_bins=200)


BROKEN = dict(broken())


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_malformed_model_is_refused_when_it_is_read(name):
    description = json.loads(released(model(EDPRFClassifier, epsilon=100.0, stop="never").fit(X, Y)))
    ReleasedForest(description)
    BROKEN[name](description)
    with pytest.raises(ValueError, match=r"not a|format 3|n_bins|unexpected keyword|either classes"):
        ReleasedForest(description)


@pytest.mark.parametrize("description", [None, [], "model", 3, {}, {"format": 1}])
def test_what_is_no_model_is_refused(description):
    with pytest.raises(ValueError, match="not a released model"):
        ReleasedForest(description)


def test_text_that_is_no_json_is_refused(tmp_path):
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(ValueError, match="Expecting"):
        load(tmp_path / "model.json")


# -- what is promised ----------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_guarantee_is_what_was_asked_for(kind, relation):
    estimator = model(kind, relation=relation, epsilon=0.7).fit(X, Y)
    assert estimator.guarantee_.epsilon == pytest.approx(0.7, rel=1e-12)
    assert estimator.guarantee_.relation == relation
    assert estimator.guarantee_.claimed is None
    assert estimator.guarantee_.leaks == ()


@both
def test_the_published_variant_warns_and_states_both_numbers(kind):
    published = model(kind, variant="published", max_depth=3 if kind is EDPRFClassifier else None)
    with pytest.warns(UnprovenPrivacyWarning, match=r"the paper claims 4\)\n  leak: ") as caught:
        published.fit(X, Y)
    assert caught[0].filename == __file__
    assert published.guarantee_.epsilon == math.inf
    assert published.guarantee_.claimed == 4.0
    assert len(published.guarantee_.leaks) == 1


def test_a_published_variant_that_overspends_without_a_leak_says_so():
    class Twice(RandomTreesClassifier):
        def _learn(self, run):
            run.epsilon = 2 * run.epsilon
            return super()._learn(run)

    twice = model(Twice, variant="published", max_depth=None, relation="replace-one")
    with pytest.warns(UnprovenPrivacyWarning, match=r"8-differentially private .* \(the paper claims 4\)"):
        twice.fit(X, Y)
    assert (twice.guarantee_.epsilon, twice.guarantee_.claimed) == (pytest.approx(8), 4.0)
    assert twice.guarantee_.leaks == ()


def test_a_ledger_beyond_epsilon_releases_nothing():
    class Spender(EDPRFClassifier):
        def _learn(self, run):
            run.epsilon = 1.001 * run.epsilon
            return super()._learn(run)

    spender = model(Spender)
    with pytest.raises(AssertionError, match=r"the ledger says 4\.004, not 4\.0: nothing is released"):
        spender.fit(X, Y)
    assert not hasattr(spender, "forest_")
