"""What every registered learner keeps to: scikit-learn's rules, bad input named, the guarantee, and what is kept.

A learner is covered by registering it.  Its own test file has what only it does; here it may add options under which
it is to be tried (``OPTIONS``), and values that it alone refuses (``REFUSED``).
"""

from __future__ import annotations

import copy
import json
import math
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from shared import assert_an_estimator, leaks_under, lettered, quietly, variants_of
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpforest
from dpforest import OutOfSchemaWarning, Schema, UnprovenPrivacyWarning
from dpforest.models import release
from dpforest.privacy import RELATIONS, REPLACE_ONE
from dpforest.registry import PAPERS

KINDS = {name: getattr(dpforest, name) for names in PAPERS.values() for name in names}
COLUMNS = {"numeric": {"age": (0, 100), "income": (0.0, 10.0)}, "categorical": {"city": ["a", "b", "c"]}}
THREE = Schema(**COLUMNS, classes=["no", "yes", "never"])
VARIANTS = ("proved", "published")
#: Options under which a learner is tried, beside none, the other relation, and as published.
OPTIONS: dict[str, list[dict]] = {
    "EDPRFClassifier": [
        {"leaf": "label"},
        {"stop": "never", "selection": "exponential"},
        {"selection": "exponential", "delta": 1e-4},
    ],
    "RandomTreesClassifier": [{"split": "multiway"}, {"delta": 1e-4}],
    "RandomTreesRegressor": [{"split": "multiway"}],
    "DiffPETsClassifier": [{"sampling": "poisson", "leaf": "label"}, {"sampling": "assignment", "shrinkage": 2.0}],
    "DiffPETsRegressor": [
        {"sampling": "poisson"},
        {"sampling": "assignment"},
        {"shrinkage": 0.0},
        {"selection": "exponential", "delta": 1e-4},
    ],
    "DiPriMeClassifier": [{"sampling": "all"}],
    "DiPriMeRegressor": [{"sampling": "all"}],
    "DPsAdaBoostClassifier": [{"selection": "exponential", "delta": 1e-4}],
    "DPAdaBoostClassifier": [{"selection": "exponential", "delta": 1e-4}],
    "DiffPRFsClassifier": [{"two_stage": True, "sampling": "poisson"}],
    "FunctionalMechanismClassifier": [{"schema": THREE}, {"schema": THREE, "variant": "published"}],
    "DiffLRRegressor": [{"fit_intercept": True}, {"fit_intercept": False}],
    "PrivateBoostingRegressor": [{"n_estimators": "auto"}, {"n_rows": 1000}, {"delta": 1e-4}],
    "PrivateBoostingClassifier": [
        {"n_estimators": "auto"},
        {"schema": THREE, "grid": "even"},
        {"n_rows": 1000},
        {"delta": 1e-4},
    ],
}

kinds = pytest.mark.parametrize("name", KINDS)
#: Learners that a paper published: the library's own have the proved variant alone.
PUBLISHED = [name for name, kind in KINDS.items() if "published" in variants_of(kind)]
papers = pytest.mark.parametrize("name", PUBLISHED)
variants = pytest.mark.parametrize(
    ("name", "variant"),
    [(name, variant) for name in KINDS for variant in VARIANTS if variant in variants_of(KINDS[name])],
)


def schema_for(name: str, **more) -> Schema:
    answer = {"classes": ["no", "yes"]} if is_classifier(KINDS[name]()) else {"target": (-20, 60)}
    return Schema(**{**COLUMNS, **answer, **more})


usual_schema = cache(schema_for)
known_parameters = cache(lambda name: frozenset(KINDS[name]().get_params()))


def table(name: str, n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Records, and their classes or, of a regressor, numbers; a copy each time."""
    X, y = _table(name, n, seed)
    return X.copy(), y.copy()


@cache
def _table(name: str, n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"age": rng.uniform(0, 100, n), "income": rng.uniform(0, 10, n), "city": rng.choice(list("abc"), n)}
    )
    if is_classifier(KINDS[name]()):
        return X, np.where(X.age + 30 * (X.city == "b") > 60, "yes", "no")
    return X, np.clip(0.6 * X.age - 20 * (X.city == "b") + rng.normal(0, 2, n), -20, 60).to_numpy()


def model(name: str, **parameters):
    """A learner with few trees, as many of these parameters as it has, and those that are asked for."""
    kind = KINDS[name]
    base = {"epsilon": 4.0, "schema": usual_schema(name), "n_estimators": 3, "max_depth": 2, "random_state": 0}
    known = known_parameters(name)
    if str(parameters.get("variant")) == "published":
        base = {key: value for key, value in base.items() if key not in lettered(kind)}
    if "n_estimators" not in known:
        parameters.pop("n_estimators", None)
    return kind(**{key: value for key, value in base.items() if key in known} | parameters)


@cache
def fitted(name: str, variant: str = "proved"):
    """A fit to be looked at, not to be changed."""
    return quietly(model(name, variant=variant), *table(name))


def released(estimator) -> str:
    return json.dumps(estimator.to_dict(seeded=True))


def learned(estimator) -> list[str]:
    """The names of what a fit has left."""
    return [name for name in vars(estimator) if name.endswith("_")]


# -- scikit-learn's own checks -----------------------------------------------------------------------------------------


def schema_of(X, y, regression: bool) -> Schema:
    """A schema read off the data: for scikit-learn's checks alone, which bring tables that nobody declared."""
    values = X.toarray() if sparse.issparse(X) else np.asarray(X)
    values = values if values.ndim == 2 else values.reshape(-1, 1)
    try:
        values = np.nan_to_num(values.real.astype(float), posinf=0, neginf=0)
    except (TypeError, ValueError):
        values = np.zeros(values.shape)
    names = list(getattr(X, "columns", [f"x{i}" for i in range(max(values.shape[1], 1))]))
    low, high = (values.min(axis=0), values.max(axis=0)) if values.size else (np.zeros(len(names)),) * 2
    bounds = {name: (float(a), float(max(b, a + 1))) for name, a, b in zip(names, low, high, strict=True)}
    if regression:
        try:
            target = np.nan_to_num(np.asarray(y).real.astype(float).ravel(), posinf=0, neginf=0)
        except (TypeError, ValueError):  # no numbers: the estimator itself has to say so
            target = np.zeros(1)
        least, most = (float(target.min()), float(target.max())) if target.size else (0.0, 0.0)
        return Schema(numeric=bounds, target=(least, max(most, least + 1)))
    labels = [label for label in np.unique([] if y is None else np.asarray(y)).tolist() if declarable(label)]
    if len(labels) > 20:  # a regression target
        labels = []
    labels += [1001, 1002][: max(0, 2 - len(labels))]
    return Schema(numeric=bounds, classes=labels)


def declarable(label) -> bool:
    return isinstance(label, (str, bool, int)) or (isinstance(label, float) and math.isfinite(label))


class _SchemaFromData:
    """What the library never does: it would make the bounds and the answers depend on the records."""

    def fit(self, X, y, **more):
        self._found = schema_of(X, y, not is_classifier(self))
        return super().fit(X, y, **more)

    def declared_schema(self):
        return self._found


def schema_free(name: str) -> type:
    """The learner with the schema of its data, where a pickle finds it."""
    free = type(f"SchemaFree{name}", (_SchemaFromData, KINDS[name]), {"__module__": __name__})
    return globals().setdefault(free.__name__, free)


#: What the checks ask for is accuracy, on tables of ten rows: large budgets, and options of some learners.
LEARNING: dict[str, list[dict]] = {
    "SmoothForestClassifier": [{"n_estimators": 4, "max_depth": 6}],  # each tree has records of its own
    # one tree, else each tree of the checks' tables of ten rows would see two or three of them
    "EDPRFClassifier": [
        {"epsilon": 50.0, "n_estimators": 1, "max_depth": 2, "leaf": "label"},
        {"epsilon": 50.0, "n_estimators": 1, "max_depth": 2, "stop": "never"},
    ],
    "RandomTreesClassifier": [
        {"n_estimators": 30, "max_depth": 5},
        {"n_estimators": 10, "max_depth": 2, "split": "multiway"},
    ],
    "DPTRClassifier": [{"n_estimators": 30, "max_depth": 2}],  # deeper, most leaves have none of the ten rows
    "RandomTreesRegressor": [{"epsilon": 1e5, "n_estimators": 5, "max_depth": 13}],
    "DiffPETsClassifier": [
        {"n_estimators": 5, "max_depth": 4, "max_features": "all", "cuts_per_feature": 4},
        {"n_estimators": 5, "max_depth": 4, "leaf": "label", "sampling": "poisson"},
        {"n_estimators": 5, "max_depth": 4},
        {"epsilon": 1e4, "n_estimators": 25, "max_depth": 4, "leaf": "label"},
    ],
    "DiffPETsRegressor": [
        {"n_estimators": 8, "max_depth": 4},
        {"epsilon": 1e4, "n_estimators": 5, "max_depth": 7, "stop": "never", "criterion": "sse"},
    ],
    "DiPriMeRegressor": [{"epsilon": 1e5, "n_estimators": 5, "max_depth": 10, "sampling": "all"}],
    "DiffPRFClassifier": [
        {"n_estimators": 5, "max_depth": 2, "max_features": "all"},
        {"n_estimators": 1, "max_depth": 2, "stop": "never", "sampling": "assignment"},
    ],
    "DiffPRFsClassifier": [
        {"n_estimators": 5, "max_depth": 4, "max_features": "all"},
        {"epsilon": 2000.0, "n_estimators": 5, "max_depth": 4, "two_stage": True, "sampling": "poisson"},
    ],
    "DPsAdaBoostClassifier": [
        {"n_estimators": 3, "max_depth": 3, "max_features": "all", "cuts_per_feature": 10},
        {"n_estimators": 3, "max_depth": 2, "votes": "discrete", "weights": "logistic"},
    ],
    "DPAdaBoostClassifier": [{"n_estimators": 5, "n_bins": 4}],
    "PearsonTreeClassifier": [{"n_bins": 8}],
    "PrivateBoostingClassifier": [{"n_estimators": 12, "interactions": 5}],
    "PrivateBoostingRegressor": [{"n_estimators": 12, "interactions": 5}],
    "FunctionalMechanismRegressor": [
        {"epsilon": 1e6},
        {"epsilon": 1e6, "variant": "published", "fit_intercept": True},
    ],
    "FunctionalMechanismClassifier": [{"epsilon": 1e6}],
}
CHECKED = [
    schema_free(name)(**{"epsilon": 1000.0, "random_state": 0, **options})
    for name in KINDS
    for options in LEARNING.get(name, [{}])
]
#: Checks that ask for accuracy.  To the others, of inputs, types, shapes, order and state, three small trees are the
#: same contract: they are fitted by the same code, and split.
ACCURACY = {"check_classifiers_train", "check_classifiers_classes", "check_regressors_train"}
SMALL = {"n_estimators": 3, "max_depth": 3, "specialisations": 3}


def small(estimator):
    """The same learner, with trees that are no more and no larger than those."""
    asked = estimator.get_params()
    less = {name: most for name, most in SMALL.items() if name in asked and asked[name] not in range(most + 1)}
    return clone(estimator).set_params(**less)


#: Checks that fail, by what they say: NaN is refused, which `test_bad_tables_are_refused_by_fit_and_predict` and
#: `test_bad_answers_are_refused` see, but what is infinite lies outside the bounds and is clipped and counted.
INFINITY = {"check_estimators_nan_inf": "doesn't check for NaN and inf in fit"}
TARGETS = {"check_supervised_y_no_nan": "should have raised error on fitting array y with inf"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    name = check.func.__name__
    if name not in ACCURACY:
        estimator = small(estimator)
    failing = INFINITY if is_classifier(estimator) else INFINITY | TARGETS
    if said := failing.get(name):
        # not as an xfail: pytest would parse the whole file of checks again to show each of these failures
        with pytest.raises(AssertionError, match=said):
            check(estimator)
    else:
        check(estimator)


# -- an estimator ------------------------------------------------------------------------------------------------------


@kinds
def test_unfitted_models_say_so(name):
    for method in ("predict", "predict_proba") if is_classifier(KINDS[name]()) else ("predict",):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(model(name), method)(table(name)[0])
    with pytest.raises(NotFittedError):
        model(name).to_dict(seeded=True)


CASES = [
    (name, options)
    for name in KINDS
    for options in ({}, {"relation": REPLACE_ONE}, {"variant": "published"}, *OPTIONS.get(name, []))
    if name in PUBLISHED or "variant" not in options
]

cases = pytest.mark.parametrize(("name", "options"), CASES, ids=str)


@cases
def test_a_fit_changes_no_parameter_a_seed_decides_every_byte_and_what_is_kept_comes_back(name, options, tmp_path):
    estimator = model(name, **{"random_state": 2, **options})  # of which the next seed gives another model
    assert_an_estimator(estimator, *table(name), tmp_path)
    assert estimator.feature_names_in_.tolist() == list(estimator.schema.columns)
    assert estimator.n_features_in_ == 3
    assert hasattr(estimator, "classes_") == is_classifier(estimator)


@kinds
def test_parameters_are_set_by_name(name):
    other = clone(fitted(name)).set_params(epsilon=1.0, random_state=5)
    assert other.get_params()["epsilon"] == 1.0
    assert other.fit(*table(name)).guarantee_.epsilon == 1.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        other.set_params(epsilom=1)


@pytest.mark.filterwarnings("ignore::dpforest.BudgetWarning")  # tests/test_budget_account.py sees to it
@kinds
def test_pipelines_and_searches(name):
    X, y = table(name)
    pipeline = make_pipeline(FunctionTransformer(), model(name))
    assert pipeline.fit(X, y).predict(X).shape == y.shape
    framed = pipeline.set_output(transform="pandas").fit(X, y)  # an estimator has no table of its own to set
    assert framed[-1].feature_names_in_.tolist() == list(COLUMNS["numeric"]) + list(COLUMNS["categorical"])
    search = GridSearchCV(model(name, epsilon=50.0), {"epsilon": [1.0, 50.0], "n_bins": [4, 10]}, cv=2).fit(X, y)
    assert search.best_score_ > (0.5 if is_classifier(search.best_estimator_) else 0)
    assert search.best_estimator_.random_state == 0
    assert len(cross_val_score(model(name), X, y, cv=3)) == 3


@cases
def test_without_a_seed_entropy_decides(name, options):
    options = {"source": "secure", "random_state": None, **options}
    one, other = (quietly(model(name, **options), *table(name)) for _ in range(2))
    assert released(one) != released(other) or options.get("variant") == "published"  # which may be all but exact
    if options.get("variant") != "published":
        assert one.guarantee_.epsilon == fitted(name).guarantee_.epsilon


# -- bad parameters ----------------------------------------------------------------------------------------------------

SEED = "random_state must be None, a whole number of at least 0 or a list of them"
NO_NUMBER = "epsilon must be a positive number"
#: Values that every learner refuses that has the parameter, by what it says to them.
RULES: dict[str, dict[str, tuple]] = {
    "epsilon": {
        "epsilon must be positive": (0, -1.0, math.nan),
        "write epsilon='non-private'": (math.inf,),
        "'non-private' to turn privacy off": ("1",),
        NO_NUMBER: (True, None, [1.0]),
    },
    "random_state": {SEED: ("abc", -1, 1.5, True, [1, -2], [True], b"x")},
    "source": {r"source must be one of \['secure', 'seeded'\]": ("hardware",), "takes no seed": ("secure",)},
    "n_jobs": {"n_jobs must be": (0, 1.5)},
    "n_bins": {"n_bins must be": (2.5, 1, 256, True)},
    "n_estimators": {
        'n_estimators must be (a whole number, at least 1|"auto" or int, from 1)': (0, -2, 2.5, True, "3"),
    },
    "n_rows": {"n_rows must be None or float, from 1": (0, "many", math.nan, math.inf)},
    "interactions": {"interactions must be a whole number, at least 0": (-1, 2.5, "all")},
    "max_nodes": {"max_nodes must be a whole number": (0, -2, 2.5, True, "3")},
    "max_depth": {
        "max_depth must be (a whole number|None or int)": (-1, 2.5, True, "3"),
        "max_depth must be .* (at most|to) 1000": (10**9,),
    },
    "max_features": {"max_features must be": (0, "log2")},
    "cuts_per_feature": {"cuts_per_feature must be .*at least 1": (0, "all")},
    "n_max": {"must be a public cap": (0, 10.5, math.nan)},
    "n_parts": {'n_parts must be "auto" or int, from 1 to 256': (0, 2.5, "many"), "use n_parts=128 or fewer": (200,)},
    "stop_margin": {"stop_margin must be a finite number of at most a million": (math.nan, math.inf, "4", True)},
    "leaf_share": {
        "leaf_share must (lie|be .*float,) strictly between 0 and 1": (0, 1, 1.0),
        "leaf_share must be (a number from 0 to 1|.*strictly between 0 and 1)": (1.5, "half", math.nan),
    },
    "mean_share": {"mean_share must": (0, 1.0)},
    "level_ratio": {"level_ratio must be a number above 0 and at most 1": (0, 1.5)},
    "shrinkage": {"shrinkage must be a number from 0": (-1, math.inf, True)},
    "error_threshold": {"error_threshold must be a number from 0 to 1": (2, "small", math.nan)},
    "learning_rate": {"learning_rate must be a number from 1e-06 to 10": (0, "1")},
    "alpha_max": {"alpha_max must be a number from 1e-06 to 100": (0, -1.0, 101, math.inf, math.nan, True)},
    "smoothing": {"smoothing must be a number from 0": (-1,)},
    "ridge": {"ridge must be": (-1, math.inf, True)},
    "delta": {"delta must be": (-1e-6, 0.5, math.nan)},
    "monotonic_cst": {"monotonic_cst must be None or map": ("up", {"x": 2}), "no numeric feature": ({"nowhere": 1},)},
    "class_weight": {
        "read off the records|or be 'balanced'": ("even", 2),
        "not among the classes": ({"maybe": 1},),
        "class_weight of 'yes' must be": ({"yes": 0},),
    },
}
CHOICES = (
    "relation", "variant", "sampling", "selection", "criterion", "budget", "calibration", "leaf", "stop", "vote",
    "votes", "weights", "split", "two_stage", "reuse", "repair", "clip", "fit_intercept", "grid",
)  # fmt: skip
RULES |= {name: {f"{name} must be one of": ("no such", ["no such"], 2)} for name in CHOICES}


BOUNDED = [
    (name, parameter)
    for name, kind in KINDS.items()
    for parameter in kind().get_params()
    if parameter in RULES and not (parameter == "n_jobs" and kind._RELEASED == "linear")  # taken, and not used
]


@pytest.mark.parametrize(("name", "parameter"), BOUNDED)
def test_bad_parameters_name_themselves_and_change_nothing(name, parameter):
    refuses(name, [({parameter: value}, says) for says, values in RULES[parameter].items() for value in values])


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
@variants
def test_odd_values_are_refused_by_the_name_of_the_parameter(name, variant):
    X, y = table(name)
    silent = []
    for parameter, odd in product(KINDS[name]().get_params(), ODD):
        if parameter in ("random_state", "max_features", "n_jobs") and isinstance(odd, int) and odd > 0:
            continue  # any whole number is a seed; of features and threads there are as many as there are
        if parameter == "n_jobs" and KINDS[name]._RELEASED == "linear":
            continue  # accepted like everywhere, and not used
        try:
            quietly(model(name, **{"variant": variant, parameter: odd}), X, y)
        except (ValueError, TypeError) as error:
            if parameter not in str(error) and "published" not in str(error):
                silent.append((parameter, odd, str(error)))
        else:
            silent.append((parameter, odd, "accepted"))
    assert silent == []


def refuses(name: str, cases: list[tuple[dict, str]]) -> None:
    """A learner refuses each of these, and neither a new nor a fitted one has changed after it."""
    X, y = table(name)
    for parameters, says in cases:
        again = copy.deepcopy(fitted(name))
        for estimator in (model(name), again):
            before = learned(estimator)
            with pytest.raises(TypeError if says == NO_NUMBER else ValueError, match=says):
                estimator.set_params(**parameters).fit(X, y)
            assert learned(estimator) == before
        assert released(again.set_params(n_jobs=None)) == released(fitted(name))


LETTER = "to the letter"
#: What single learners refuse, beside single values: options that do not go together, and the bounds of their numbers.
REFUSED: dict[str, list[tuple[dict, str]]] = {
    "EDPRFClassifier": [
        ({"max_depth": 0}, "max_depth must be a whole number, at least 1"),
        ({"max_depth": None}, "max_depth must be a whole number"),
        ({"n_bins": 2.5}, "n_bins must be a whole number between 2 and 255"),
        ({"criterion": "information-gain"}, "needs a public cap"),
        ({"criterion": "normalised-gini"}, "use stop='never'"),
        ({"stop": "purity"}, "reads the data without a charge"),
        ({"criterion": "information-gain", "n_max": 100}, "more records than the public cap"),
        ({"n_max": 100, "stop": "never"}, "more records than the public cap"),
        *(
            ({"variant": "published", option: value}, f"{LETTER}.*{option}")
            for option, value in {
                "budget": "uniform",
                "leaf": "counts",
                "selection": "exponential",
                "stop": "never",
                "calibration": "range",
            }.items()
        ),
    ],
    "RandomTreesClassifier": [
        ({"n_bins": 2.5}, "n_bins must be a whole number between 2 and 255"),
        ({"variant": "published", "max_depth": 3}, f"{LETTER}.*max_depth"),
        ({"max_depth": 40}, "need at least .* nodes, more than max_nodes"),
        ({"split": "multiway", "max_nodes": 5}, "need at least .* nodes, more than max_nodes"),
    ],
    "DiffPETsClassifier": [
        ({"max_depth": -1}, "max_depth must be None or int, from 0 to 1000"),
        ({"max_features": 0}, "max_features must be 'sqrt', 'all' or a whole number"),
        ({"max_features": "log2"}, "max_features must be 'sqrt', 'all' or a whole number"),
        ({"cuts_per_feature": 0}, 'cuts_per_feature must be "auto" or int, at least 1'),
        ({"sampling": "bootstrap"}, "sampling must be one of .*all.*assignment.*poisson"),
        ({"criterion": "information-gain"}, "criterion must be one of"),
        ({"criterion": "sse"}, "criterion must be one of"),
        ({"criterion": "normalised-gini"}, "use stop='never'"),
        ({"leaf": "mean"}, "leaf must be one of"),
        ({"stop": "purity"}, "stop must be one of"),
        ({"max_nodes": 2}, "max_nodes must be a whole number, at least 3"),
    ],
    "DiffPETsRegressor": [
        ({"max_depth": -1}, "max_depth must be None or int, from 0 to 1000"),
        ({"max_features": 0}, "max_features must be 'sqrt', 'all' or a whole number"),
        ({"max_features": "log2"}, "max_features must be 'sqrt', 'all' or a whole number"),
        ({"cuts_per_feature": 0}, 'cuts_per_feature must be "auto" or int, at least 1'),
        ({"sampling": "bootstrap"}, "sampling must be one of"),
        ({"criterion": "gini"}, "criterion must be one of .*'between'"),
        ({"criterion": "variance"}, "use stop='never'"),
        ({"stop": "error"}, "stop must be one of"),
        ({"max_nodes": 2}, "max_nodes must be a whole number, at least 3"),
    ],
    "DiffPRFClassifier": [
        ({"max_depth": -1}, "max_depth must be a whole number, at least 0"),
        ({"sampling": "bootstrap"}, "costs more than epsilon"),
        ({"criterion": "information-gain"}, "needs a public cap"),
        ({"criterion": "information-gain", "n_max": 200, "sampling": "poisson"}, "copies know none"),
        ({"criterion": "information-gain", "n_max": 119}, "more records than the public cap"),
        ({"criterion": "normalised-gini"}, "use stop='never'"),
        ({"stop": "purity"}, "stop must be one of"),
        ({"n_max": 1}, "n_max must be a public cap"),
        ({"variant": "published", "sampling": "all"}, f"the paper {LETTER}"),
        ({"variant": "published", "criterion": "gini-gain"}, f"the paper {LETTER}"),
        ({"max_nodes": 2}, "max_nodes must be a whole number, at least 3"),
    ],
    "DiffPRFsClassifier": [
        ({"max_depth": -1}, "max_depth must be a whole number, at least 0"),
        ({"sampling": "bootstrap"}, "costs more than epsilon"),
        ({"criterion": "information-gain"}, "criterion must be one of"),
        ({"criterion": "normalised-gini"}, "use stop='never'"),
        ({"stop": "purity"}, "no proof covers it"),
        ({"stop": "count"}, "stop must be one of"),
        ({"variant": "published", "stop": "never"}, f"the paper {LETTER}"),
        ({"variant": "published", "two_stage": False}, f"the paper {LETTER}"),
        ({"variant": "published", "criterion": "majority"}, f"the paper {LETTER}"),
        ({"max_nodes": 2}, "max_nodes must be a whole number, at least 3"),
    ],
    "DPsAdaBoostClassifier": [
        ({"max_depth": -1}, "max_depth must be a whole number, at least 0"),
        ({"max_depth": None}, "max_depth must be a whole number"),
        ({"sampling": "bootstrap"}, "sampling must be one of"),
        ({"criterion": "normalised-gini"}, "criterion must be one of"),
        ({"criterion": "information-gain"}, "criterion must be one of"),
        ({"stop": "purity"}, "stop must be one of"),
        ({"max_nodes": 2}, "max_nodes must be a whole number, at least 3"),
        ({"variant": "published", "class_weight": {"yes": 2}}, f"{LETTER}.*class_weight"),
        ({"variant": "published", "votes": "discrete"}, f"{LETTER}.*votes"),
        ({"variant": "published", "stop": "candidate", "leaf_share": 0.4}, f"{LETTER}.*stop.*leaf_share"),
    ],
    "DPAdaBoostClassifier": [
        ({"criterion": "information-gain"}, "criterion must be one of"),
        ({"variant": "published", "criterion": "majority"}, f"{LETTER}.*criterion"),
        ({"variant": "published", "sampling": "assignment"}, f"{LETTER}.*sampling"),
    ],
    "PearsonTreeClassifier": [
        ({"criterion": "information-gain"}, "criterion must be one of"),
        ({"selection": "argmax"}, "reads the data without a charge.*variant='published'"),
        ({"stop": "purity"}, "reads the data without a charge.*variant='published'"),
        ({"criterion": "normalised-gini", "stop": "candidate"}, "no stop candidate in its range"),
        *(
            ({"variant": "published", option: value}, f"{LETTER}.*{option}")
            for option, value in {
                "criterion": "gini",
                "selection": "permute-and-flip",
                "budget": "uniform",
                "reuse": True,
                "stop": "never",
                "calibration": "range",
            }.items()
        ),
    ],
    "FunctionalMechanismRegressor": [({"repair": "redraw"}, "variant='published'")],
    "DiffLRRegressor": [
        ({"split": "optimal", "variant": "published"}, LETTER),
        ({"repair": "redraw"}, "repair must be one of"),
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_do_not_go_together_say_so(name):
    refuses(name, REFUSED[name])


@kinds
def test_a_score_takes_the_answers_by_the_name_of_their_column(name):
    X, y = table(name)
    estimator = fitted(name)
    named = X.assign(answer=y)
    assert estimator.score(named, "answer") == estimator.score(X, y)
    assert estimator.score(pa.Table.from_pandas(named), "answer") == estimator.score(X, y)
    with pytest.raises(ValueError, match="no column 'question'"):
        estimator.score(named, "question")
    with pytest.raises(TypeError, match="'answer' names a column of X, so X must be a frame"):
        estimator.score(X.to_numpy(), "answer")
    with pytest.raises(TypeError, match="pass the answers themselves and not the name of their column, 'answer'"):
        estimator.score("parts/*.parquet", "answer")


@kinds
def test_a_draft_is_no_schema(name):
    X, y = table(name)
    with pytest.raises(ValueError, match="a draft is no schema yet: print it, fill in each"):
        model(name, schema=Schema.draft(X)).fit(X, y)


@kinds
def test_a_schema_is_declared_and_of_the_learners_kind(name):
    answer, kind = (r"classes=", "classifier") if is_classifier(KINDS[name]()) else (r"target=\(0, 100\)", "regressor")
    needed = rf"needs schema=Schema\(numeric=.*{answer}.*never learned from it"
    other = schema_for("RandomTreesRegressor" if is_classifier(KINDS[name]()) else "RandomTreesClassifier")
    refuses(
        name,
        [
            *(({"schema": schema}, needed) for schema in (None, {"age": (0, 1)}, schema_for(name).to_dict())),
            ({"schema": other}, rf"this is a {kind}: declare Schema\("),
        ],
    )


# -- bad data ----------------------------------------------------------------------------------------------------------


def bad_tables(X):
    yield X.rename(columns={"age": "AGE"}), ValueError, r"X has no column 'age'; it has \['AGE', 'income'"
    yield X[["age", "city"]], ValueError, "X has no column 'income'"
    yield X[["age", "city", "income", "age"]], ValueError, "X has more than one column 'age'"
    yield X.to_numpy()[:, :2], ValueError, "X has 2 features, but Schema is expecting 3 features"
    yield X.age.to_numpy(), ValueError, "Reshape your data"
    yield np.empty((len(X), 0)), ValueError, r"0 feature\(s\)"
    yield X.assign(city="z"), ValueError, "'z', which is not among its declared categories"
    yield X.assign(age="old"), ValueError, "column 'age', declared numeric, holds 'old'"
    yield X.assign(age=[{}] * len(X)), TypeError, "declared numeric, holds a dict of 0"
    yield X.assign(age=1j), ValueError, "Complex data not supported"
    yield X.assign(age=np.nan), ValueError, r"NaN; declare Schema\(missing='bin'\)"
    yield X.assign(city=None), ValueError, r"NaN; declare Schema\(missing='bin'\)"
    yield sparse.csr_array(np.ones((len(X), 3))), TypeError, r"X.toarray\(\)"
    yield None, ValueError, "Expected 2D array"


@kinds
def test_bad_tables_are_refused_by_fit_and_predict(name):
    X, y = table(name)
    for bad, error, message in bad_tables(X):
        fresh, again = model(name), copy.deepcopy(fitted(name))
        with pytest.raises(error, match=message):
            again.predict(bad)
        for estimator in (again, fresh):
            with pytest.raises(error, match=message):
                estimator.fit(bad, y)
        assert released(again) == released(fitted(name))
        assert not learned(fresh)


def bad_answers(y, regression: bool):
    if regression:
        yield np.where(y > 0, np.nan, 1.0), "y contains NaN"
        yield np.where(y > 0, None, 1.0), "y contains NaN"
        yield np.where(y > 0, "much", "little"), "y holds 'much', a text that writes no number"
        yield y + 1j, "Complex data not supported"
    else:
        yield np.where(y == "yes", "maybe", "no"), r"Unknown label type: .*'maybe'.* is not among the declared classes"
        yield np.where(y == "yes", None, "no"), "a label is missing.*drop the record"
        yield np.linspace(0, 1, len(y)), "Unknown label type"
    yield y[:-1], "120 rows, y has 119"
    yield np.append(y, y[:1]), "120 rows, y has 121"
    yield np.stack([y, y], axis=1), "y must be one-dimensional, not of shape"
    yield None, "requires y to be passed"


@variants
def test_bad_answers_are_refused(name, variant):
    X, y = table(name)
    for bad, message in bad_answers(y, not is_classifier(KINDS[name]())):
        fresh = model(name, variant=variant)
        with pytest.raises(ValueError, match=message):
            fresh.fit(X, bad)
        assert not learned(fresh)


# -- small and odd data ------------------------------------------------------------------------------------------------


@variants
def test_no_records_are_refused_and_few_are_not(name, variant):
    X, y = table(name)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model(name, variant=variant).fit(X[:0], y[:0])
    assert fitted(name, variant).predict(X[:0]).shape == (0,)
    for rows in (slice(0, 1), slice(0, 2), slice(0, 7)):  # fewer than trees
        for options in sharings(name, variant):
            estimator = quietly(model(name, variant=variant, n_estimators=8, **options), X.iloc[rows], y[rows])
            says_something(estimator, X)
            assert not hasattr(estimator, "forest_") or estimator.forest_.n_trees == getattr(
                estimator, "n_estimators", 1
            )
            if variant == "proved":
                assert estimator.guarantee_.epsilon == pytest.approx(4.0)
                assert estimator.ledger_.total(estimator.relation) <= 4 * (1 + 1e-12)


def sharings(name: str, variant: str) -> list[dict]:
    """The ways in which a learner shares the records among its trees."""
    declared = KINDS[name].PARAMETERS.get("sampling")
    if declared is None or (variant == "published" and (declared.letter or declared.auto)):
        return [{}]
    ways = [way for way in ("all", "assignment", "poisson") if way in declared.rule.words]
    assert len(ways) > 1
    return [{"sampling": way} for way in ways]


def says_something(estimator, X) -> None:
    """Predictions are declared classes with probabilities, or finite numbers, of trees within the declared range."""
    if not is_classifier(estimator):
        predicted, (low, high) = estimator.predict(X), estimator.schema.target
        assert np.isfinite(predicted).all()
        assert estimator._RELEASED == "linear" or ((predicted >= low) & (predicted <= high)).all()
        return
    assert estimator.classes_.tolist() == list(estimator.schema.classes)  # declared: no news that one is absent
    probability = estimator.predict_proba(X)
    assert probability.shape == (len(X), len(estimator.classes_))
    assert (probability >= 0).all()
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert set(estimator.predict(X)) <= set(estimator.classes_)


@variants
def test_one_answer_alone(name, variant):
    X, y = table(name)
    for epsilon in (4.0, "non-private"):
        says_something(quietly(model(name, variant=variant, epsilon=epsilon), X, np.full_like(y, y[0])), X)


@variants
def test_columns_that_cannot_be_divided(name, variant):
    answer = {"classes": [0, 1]} if is_classifier(KINDS[name]()) else {"target": (0, 1)}
    flat = pd.DataFrame({"x": 0.5, "only": "u", "c": ["u", "v"] * 6})
    for schema in (
        Schema(categorical={"only": ["u"]}, **answer),
        Schema(categorical={"only": ["u"], "c": ["u", "v"]}, **answer),
        Schema(numeric={"x": (0, 1)}, **answer),
    ):
        X = flat[list(schema.columns)]
        estimator = quietly(model(name, schema=schema, variant=variant), X, [0, 1] * 6)
        says_something(estimator, X)
        if variant == "proved":
            assert estimator.ledger_.total(estimator.relation) <= 4 * (1 + 1e-12)


# -- values outside the schema -----------------------------------------------------------------------------------------


@kinds
def test_values_outside_the_bounds_are_clipped_counted_and_forgotten(name):
    X, y = table(name)
    wild, far, told = X.copy(), y.copy(), ""
    wild.loc[:6, "age"], wild.loc[:2, "income"] = 1e9, -np.inf
    if not is_classifier(KINDS[name]()):
        far[:7], far[7:9], told = 1e12, -math.inf, "y: 9 of 120 rows"
    with pytest.warns(OutOfSchemaWarning, match=r"\d of 120 rows lay outside.*do not release") as caught:
        estimator = model(name).fit(wild, far)
    texts = [str(each.message) for each in caught]
    assert [text.split(" lay")[0] for text in texts] == [
        "age: 7 of 120 rows",
        "income: 3 of 120 rows",
        *[told] * bool(told),
    ]
    assert {each.filename for each in caught} == {__file__}
    tame = wild.assign(age=wild.age.clip(0, 100), income=wild.income.clip(0, 10))
    clean = model(name).fit(tame, np.clip(far, -20, 60) if told else y)  # the ends belong to the range: no warning
    assert released(estimator) == released(clean)
    assert learned(estimator) == learned(clean)
    if told:
        with pytest.warns(OutOfSchemaWarning, match="y: 9 of 120 rows"):
            model(name).fit(X, far)
    for asked in (estimator, release.released(estimator.to_dict(seeded=True))):
        with pytest.warns(OutOfSchemaWarning, match=r"\d of 120 rows lay outside.*does not tell them") as caught:
            asked.predict(wild)
        assert len(caught) == 2
        assert {each.filename for each in caught} == {__file__}


@kinds
def test_undeclared_categories_go_to_other_where_it_is_declared(name):
    X, y = table(name)
    schema = schema_for(name, other={"city": "c"})
    strange = X.assign(city=X.city.replace("c", "atlantis"))
    with pytest.warns(OutOfSchemaWarning, match=f"city: {(X.city == 'c').sum()} of 120 rows"):
        estimator = model(name, schema=schema).fit(strange, y)
    assert released(estimator) == released(model(name, schema=schema).fit(X, y))
    with pytest.warns(
        OutOfSchemaWarning, match=r"city: \d+ of 120 rows are not among .*sent to other='c'.*categorical="
    ):
        found = estimator.predict(strange)
    np.testing.assert_array_equal(found, estimator.predict(X))


@kinds
def test_missing_values_have_a_public_bin_where_it_is_declared(name):
    X, y = table(name)
    schema = schema_for(name, missing="bin")
    X.loc[::5, "age"], X.loc[::7, "city"] = np.nan, None
    estimator = model(name, schema=schema).fit(X, y)
    says_something(estimator, X)
    nullable = X.assign(age=X.age.astype("Float64"))
    assert released(model(name, schema=schema).fit(nullable, y)) == released(estimator)
    assert estimator.__sklearn_tags__().input_tags.allow_nan
    assert not model(name).__sklearn_tags__().input_tags.allow_nan


# -- what is promised --------------------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_guarantee_is_what_was_asked_for(name, relation):
    estimator = model(name, relation=relation, epsilon=0.7).fit(*table(name))  # a warning would be an error
    assert estimator.guarantee_.epsilon == pytest.approx(0.7, rel=1e-12)
    assert estimator.guarantee_.relation == relation
    assert estimator.guarantee_.claimed is None
    assert estimator.guarantee_.leaks == ()
    assert estimator.ledger_.leaks == []
    assert 0 < estimator.ledger_.total(relation) <= 0.7 * (1 + 1e-9)


@papers
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_published_variant_warns_and_states_both_numbers(name, relation):
    leaks = leaks_under(KINDS[name], relation)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        published = model(name, variant="published", relation=relation, epsilon=60.0).fit(*table(name))
    assert published.guarantee_.claimed == 60.0
    assert published.ledger_.leaks == list(published.guarantee_.leaks)
    assert bool(published.guarantee_.leaks) == leaks
    assert (published.guarantee_.epsilon == math.inf) == leaks
    assert [warning.category for warning in caught] == [UnprovenPrivacyWarning] * (published.guarantee_.epsilon > 60)
    for warning in caught:
        assert warning.filename == __file__
        assert "the paper claims 60)" in str(warning.message)
        assert ("\n  leak: " in str(warning.message)) == leaks


@kinds
def test_privacy_is_turned_off_by_name_alone(name, tmp_path):
    X, y = table(name)
    estimator = model(name, epsilon="non-private").fit(X, y)
    assert estimator.guarantee_.epsilon == math.inf
    assert "not differentially private" in str(estimator.guarantee_)
    assert estimator.ledger_.leaks == []
    estimator.save(tmp_path / "model.json", seeded=True)
    assert "Infinity" not in (tmp_path / "model.json").read_text()
    assert dpforest.load(tmp_path / "model.json").guarantee_ == estimator.guarantee_
    says_something(estimator, X)
