"""The table as it comes: columns whose names were lost on the way, labels that were numbered, many strays."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpforest import OutOfSchemaWarning, RandomTreesClassifier, RandomTreesRegressor, Schema, load
from dpforest.engines.parquet import Parquet

BOUNDS = {"stay": (0, 100), "age": (0, 100)}
SCHEMA = Schema(numeric=BOUNDS, classes=[0, 1])
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.integers(0, 100, 120), "stay": RNG.integers(0, 100, 120)})
IN_ORDER = FRAME[["stay", "age"]]
Y = (FRAME["stay"] > 50).astype(int).to_numpy()


def learner(schema=SCHEMA, **options) -> RandomTreesClassifier:
    return RandomTreesClassifier(epsilon=10.0, schema=schema, n_estimators=2, max_depth=2, random_state=0, **options)


# -- names that were lost on the way ---------------------------------------------------------------------------------


def told(fit) -> list[str]:
    """What a fit says about the order of the columns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(each.message) for each in caught if "hands over an array" in str(each.message)]


def divided(*names: str, **options) -> ColumnTransformer:
    return ColumnTransformer([(f"the {name}", "passthrough", [name]) for name in names], **options)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_ensemble_that_drops_the_names_is_told_of_once(n_jobs):
    """By their order, age and stay would be taken for each other without a word: both lie within the bounds."""
    import joblib

    bagging = BaggingClassifier(learner(), n_estimators=4, n_jobs=n_jobs, random_state=0)
    with joblib.parallel_backend("threading"):
        (text,) = told(lambda: bagging.fit(FRAME, Y))
        assert "BaggingClassifier was given a frame and hands over an array" in text
        assert "in the order ['age', 'stay']" in text
        assert "taken in the order of the schema, ['stay', 'age']" in text
        assert "Declare Schema(columns=[...])" in text
        declared = Schema(numeric=BOUNDS, classes=[0, 1], columns=["age", "stay"])
        for table, schema in ((IN_ORDER, SCHEMA), (FRAME, declared), (FRAME.to_numpy(), SCHEMA)):
            assert told(lambda: clone_of(bagging, schema).fit(table, Y)) == []  # noqa: B023


def clone_of(bagging: BaggingClassifier, schema: Schema) -> BaggingClassifier:
    return BaggingClassifier(learner(schema), n_estimators=2, n_jobs=bagging.n_jobs, random_state=0)


def test_a_pipeline_that_turns_the_columns_is_told_of():
    (text,) = told(lambda: make_pipeline(divided("age", "stay"), learner()).fit(IN_ORDER, Y))
    assert "Pipeline was given a frame" in text
    assert "in the order ['age', 'stay']" in text
    (text,) = told(lambda: make_pipeline(FunctionTransformer(np.asarray), learner()).fit(FRAME, Y))
    assert "in an order that is not known" in text
    named = divided("age", "stay", verbose_feature_names_out=False).set_output(transform="pandas")
    for pipeline, table in (
        (make_pipeline(divided("stay", "age"), learner()), FRAME),
        (make_pipeline(named, learner()), FRAME),
        (make_pipeline(FunctionTransformer(), learner()), FRAME),
        (make_pipeline(FunctionTransformer(np.abs), learner()), IN_ORDER.to_numpy()),
    ):
        assert told(lambda: pipeline.fit(table, Y)) == []  # noqa: B023


def test_whoever_passes_arrays_is_not_asked():
    for fit in (
        lambda: learner().fit(IN_ORDER.to_numpy(), Y),
        lambda: cross_val_score(learner(), IN_ORDER.to_numpy(), Y, cv=2),
        lambda: VotingClassifier([("a", learner())]).fit(IN_ORDER.to_numpy(), Y),
        lambda: learner().fit(FRAME, Y),
        lambda: cross_val_score(learner(), FRAME, Y, cv=2),
        lambda: StackingClassifier([("a", learner())], cv=2).fit(FRAME, Y),
    ):
        assert told(fit) == []


@pytest.mark.parametrize("n_rows", [20, 40])
def test_when_nearly_all_rows_stray_it_is_asked_why(n_rows, tmp_path):
    schema = Schema(numeric={"stay": (0, 1), "age": (10, 110)}, classes=[0, 1])
    rows = np.random.default_rng(0).uniform(0, 1, (n_rows, 2)) * [99, 1] + [2, 0]  # age first
    order = r"of nearly all rows: are the columns in this order, \['stay', 'age'\]\?; this count"
    with pytest.warns(OutOfSchemaWarning, match=order) as caught:
        model = learner(schema).fit(rows, np.arange(n_rows) % 2)
    assert len(caught) == 2
    model.save(tmp_path / "model.json", seeded=True)
    for asked in (model, load(tmp_path / "model.json")):
        with pytest.warns(OutOfSchemaWarning, match=r"in this order, \['stay', 'age'\]\?; the model"):
            asked.predict(rows)
        for few in (rows[:1], np.vstack([rows[:3], [[0.5, 50]] * 30])):  # which say nothing of the order
            with pytest.warns(OutOfSchemaWarning) as caught:
                asked.predict(few)
            assert not any("order" in str(each.message) for each in caught)
    frame = pd.DataFrame(rows, columns=["stay", "age"])
    with pytest.warns(OutOfSchemaWarning, match=r"of nearly all rows: is its unit the declared one\?"):
        learner(schema).fit(frame, np.arange(n_rows) % 2)


# -- many strays -----------------------------------------------------------------------------------------------------


def test_many_columns_have_one_warning_the_worst_first(tmp_path):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(400, 300)), columns=[f"c{number:03d}" for number in range(300)])
    wide.loc[:49, "c123"] = 9.0
    schema = Schema(numeric=dict.fromkeys(wide.columns, (-2, 2)), classes=[0, 1])
    strays = ((wide < -2) | (wide > 2)).sum()
    frame = wide.assign(y=rng.integers(0, 2, 400))
    frame.to_parquet(tmp_path / "rows.parquet")
    said = []
    for X in (frame, Parquet(tmp_path / "rows.parquet", progress=False)):
        with pytest.warns(OutOfSchemaWarning) as caught:
            model = learner(schema).fit(X, "y")
        (text,) = (str(each.message) for each in caught)
        said.append(text)
        assert {each.filename for each in caught} == {__file__}
    assert said[0] == said[1]
    assert f"{(strays > 0).sum()} columns have values outside the schema" in text
    assert f"By how many of 400 rows, the worst first: c123: {strays['c123']}, " in text
    assert text.count(": ") == 1 + 8  # those that are named
    assert f", and {(strays > 0).sum() - 8} more;" in text
    assert "do not release it" in text
    assert len(text) < 500
    with pytest.warns(OutOfSchemaWarning, match="the worst first: c123: .*does not tell them apart") as caught:
        model.predict(wide)
    assert len(caught) == 1


# -- labels ----------------------------------------------------------------------------------------------------------

TEXTS = Schema(numeric=BOUNDS, classes=["no", "yes"])
LABELS = np.where(Y == 1, "yes", "no")


@pytest.mark.parametrize(
    "fit",
    [
        lambda model: cross_val_predict(model, FRAME, LABELS, cv=2, method="predict_proba"),
        lambda model: VotingClassifier([("a", model)]).fit(FRAME, LABELS),
        lambda model: StackingClassifier([("a", model)], cv=2).fit(FRAME, LABELS),
        lambda model: OneVsRestClassifier(model).fit(FRAME, LABELS),
        lambda model: model.fit(FRAME, Y),
        lambda model: model.fit(FRAME, Y.astype(float)),
    ],
)
def test_labels_that_were_numbered_are_told_so(fit):
    with pytest.raises(
        ValueError, match=r"Unknown label type: .*numbered on the way.*declare classes=\[0, 1"
    ) as caught:
        fit(learner(TEXTS))
    assert "add it" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::dpforest.BudgetWarning")
def test_numbered_labels_work_where_they_are_declared():
    found = cross_val_predict(learner(), FRAME, Y, cv=2, method="predict_proba")
    assert found.shape == (120, 2)
    VotingClassifier([("a", learner())]).fit(FRAME, Y).predict(FRAME)


@pytest.mark.parametrize("hole", [None, np.nan, pd.NA])
@pytest.mark.parametrize("schema", [SCHEMA, TEXTS])
def test_a_missing_label_is_no_class_to_add(schema, hole):
    y = schema.classes[Y].astype(object)
    y[7] = hole
    for labels in (y, pd.Series(y), pd.Series(y, dtype="category"), pd.Series(y).convert_dtypes()):
        with pytest.raises(ValueError, match=r"a label is missing.*drop the record") as caught:
            learner(schema).fit(FRAME, labels)
        assert "add it" not in str(caught.value)
    with pytest.raises(ValueError, match="a target must be a number: drop the record"):
        RandomTreesRegressor(schema=Schema(numeric=BOUNDS, target=(0, 1))).fit(FRAME, np.where(Y, 1.0, np.nan))


def test_an_ensemble_that_sets_a_seed_is_told_so():
    with pytest.raises(ValueError, match=r"takes no seed.*BaggingClassifier gives one to each"):
        BaggingClassifier(learner().set_params(source="secure", random_state=None), random_state=0).fit(FRAME, Y)


def test_a_declared_class_that_nobody_has_stays_and_measures_are_told_of_it():
    schema = Schema(numeric=BOUNDS, classes=["low", "mid", "high", "rare"])
    y = np.array(["low", "mid", "high"])[FRAME["stay"] // 34]
    model = learner(schema).fit(FRAME, y)
    chances = model.predict_proba(FRAME)
    assert (chances.shape[1], model.classes_.tolist()) == (4, ["low", "mid", "high", "rare"])
    order = np.argsort(model.classes_)
    how = {"labels": model.classes_[order]}
    assert np.isfinite(log_loss(y, chances[:, order], **how))
    assert np.isfinite(roc_auc_score(y, chances[:, order], multi_class="ovo", **how))
