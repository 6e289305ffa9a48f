"""Tables and labels of any type, and released models: what they hold, and what is refused when one is read."""

from __future__ import annotations

import dataclasses
import json
import pickle
import types
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from dpforest import (
    EDPRFClassifier,
    RandomTreesClassifier,
    ReleasedForest,
    Schema,
    UnprovenPrivacyWarning,
    load,
)

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
BOTH = [EDPRFClassifier, RandomTreesClassifier]
both = pytest.mark.parametrize("kind", BOTH)


def model(kind, **parameters):
    return kind(
        **{"epsilon": 4.0, "schema": SCHEMA, "n_estimators": 3, "max_depth": 3, "random_state": 0, **parameters}
    )


def released(estimator) -> str:
    """Everything that a fitted estimator lets out, as text."""
    return json.dumps(estimator.to_dict(seeded=True))


# -- tables and predictions --------------------------------------------------------------------------------------------


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
    ".classes_",
    ".schema.classes",
    ".schema_.classes",
    ".feature_names_in_",
    ".forest_.feature",
    ".forest_.first_child",
    ".forest_.arity",
    ".forest_.multiway",
    ".forest_.mask",
    ".forest_.roots",
    ".forest_.values",
    ".ledger_._parents[]",
    ".ledger_._charges[].scopes",
    ".ledger_._charges[].costs{add-remove}",
    ".ledger_._charges[].costs{replace-one}",
}


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
