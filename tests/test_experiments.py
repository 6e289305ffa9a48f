"""Sweeps: what they measure is what scikit-learn's metrics measure, and the same seeds give the same rows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_squared_error, r2_score, roc_auc_score

from dpforest import EDPRFClassifier, datasets
from dpforest.papers.diffpets import DiffPETsRegressor
from dpforest.papers.functional_mechanism import FunctionalMechanismRegressor
from dpforest.papers.random_trees import RandomTreesClassifier, RandomTreesRegressor
from dpforest.study import experiments


class Said:
    """A classifier whose probabilities are given."""

    def __init__(self, classes, probabilities):
        self.classes_, self._probabilities = np.asarray(classes, dtype=object), np.asarray(probabilities)

    def predict(self, X):
        return self.classes_[self._probabilities.argmax(axis=1)]

    def predict_proba(self, X):
        return self._probabilities


@pytest.fixture(scope="module")
def cancer() -> datasets.Dataset:
    return datasets.load("breast-cancer")


@pytest.fixture(scope="module")
def diabetes() -> datasets.Dataset:
    return datasets.load("diabetes")


def random_answers(labels: str, seed: int) -> tuple[Said, np.ndarray]:
    """Probabilities with many ties, and truths among all labels or some of them."""
    generator = np.random.default_rng(seed)
    votes = generator.multinomial(4, np.full(len(labels), 1 / len(labels)), size=50) / 4
    return Said(list(labels), votes), generator.choice(list(labels), size=50).astype(object)


@pytest.mark.parametrize("labels", ["ab", "abc", "abcde"])
@pytest.mark.parametrize("seed", range(5))
def test_measures_are_scikit_learns(labels: str, seed: int) -> None:
    model, y = random_answers(labels, seed)
    areas = [roc_auc_score(y == label, model.predict_proba(None)[:, k]) for k, label in enumerate(labels)]
    measured = experiments.evaluate(model, None, pd.Series(y))
    assert measured == pytest.approx(
        {
            "accuracy": accuracy_score(y, model.predict(None)),
            "balanced_accuracy": balanced_accuracy_score(y, model.predict(None)),
            "auc": np.mean(areas),
        }
    )


def test_classes_that_the_truth_lacks_do_not_count() -> None:
    model, y = random_answers("abc", 0)
    kept = y != "c"
    model = Said(list("abc"), model.predict_proba(None)[kept])
    measured = experiments.evaluate(model, None, y[kept])
    recalls = [(model.predict(None) == y[kept])[y[kept] == label].mean() for label in "ab"]
    assert measured["balanced_accuracy"] == pytest.approx(np.mean(recalls))
    alone = experiments.evaluate(Said(list("abc"), model.predict_proba(None)[y[kept] == "a"]), None, y[y == "a"])
    assert np.isnan(alone["auc"])


@pytest.mark.parametrize("seed", range(3))
def test_measures_of_a_regressor_are_scikit_learns(seed: int) -> None:
    generator = np.random.default_rng(seed)
    y, predicted = generator.uniform(-5, 20, (2, 40))

    class Model:
        def predict(self, X):
            return predicted

    mse = mean_squared_error(y, predicted)
    measured = experiments.evaluate(Model(), None, pd.Series(y), target=(-5, 20))
    assert measured == pytest.approx({"mse": mse, "scaled_mse": mse / 625, "r2": r2_score(y, predicted)})
    assert np.isnan(experiments.evaluate(Model(), None, np.ones(40), target=(-5, 20))["r2"])


@pytest.mark.filterwarnings("ignore::dpforest.privacy.OutOfSchemaWarning")
def test_sweep_measures_regressors(diabetes: datasets.Dataset) -> None:
    """Forests and linear models; what the published variant costs is said, and no warning escapes."""
    forest = {"n_estimators": 2, "max_depth": 2}
    settings = {"proved": forest, "published": {**forest, "variant": "published"}}
    rows = experiments.sweep(DiffPETsRegressor, diabetes, settings, seeds=[0, 1])
    assert rows["loss"].tolist() == [1.0, np.inf, 1.0, np.inf]
    part = diabetes.split(test_size=0.3, random_state=1)
    model = DiffPETsRegressor(**forest, schema=part.schema, random_state=1).fit(part.X, part.y)
    assert rows["mse"][2] == mean_squared_error(part.y_test, model.predict(part.X_test))
    assert rows["nodes"][2] == model.forest_.n_nodes
    linear = experiments.sweep(FunctionalMechanismRegressor, diabetes, [{"epsilon": 0.5}], seeds=[0])
    assert linear["loss"].tolist() == [0.5]
    assert linear["nodes"].isna().all()


@pytest.mark.filterwarnings("ignore::dpforest.privacy.OutOfSchemaWarning")
def test_floor_and_ceiling_of_a_regression(diabetes: datasets.Dataset) -> None:
    part = diabetes.split(test_size=0.3, random_state=4)
    mse = np.mean((part.y_test - part.y.mean()) ** 2)
    assert experiments.floor(diabetes, [4])["mse"] == pytest.approx(mse)
    # a single leaf says the mean, on the target's public grid
    one = RandomTreesRegressor(n_estimators=1, max_depth=0, epsilon="non-private", schema=part.schema)
    measured = experiments.evaluate(one.fit(part.X, part.y), part.X_test, part.y_test, part.schema.target)
    assert measured["mse"] == pytest.approx(mse, rel=1e-3)
    codes = [diabetes.schema.encode(X, 6).codes.T for X in (part.X, part.X_test)]
    model = ExtraTreesRegressor(5, random_state=4).fit(codes[0], part.y)
    measured = experiments.ceiling(ExtraTreesRegressor(5), diabetes, [4], n_bins=6)
    assert measured["r2"] == pytest.approx(model.score(codes[1], part.y_test))


def test_sweep_is_a_function_of_its_seeds(cancer: datasets.Dataset) -> None:
    settings = {"one tree": {"n_estimators": 1}, "three trees": {"n_estimators": 3, "epsilon": 0.5}}
    rows = experiments.sweep(EDPRFClassifier, cancer, settings, seeds=[3, 4])
    again = experiments.sweep(EDPRFClassifier, cancer, settings, seeds=[4])
    assert rows["name"].tolist() == [*settings, *settings]
    assert rows["seed"].tolist() == [3, 3, 4, 4]
    assert rows["loss"].tolist() == pytest.approx([1.0, 0.5, 1.0, 0.5])
    pd.testing.assert_frame_equal(rows[rows["seed"] == 4].reset_index(drop=True), again)


def test_sweep_says_what_the_published_variant_costs(cancer: datasets.Dataset) -> None:
    """No warning escapes (they are errors here), and the loss is the proved one."""
    rows = experiments.sweep(EDPRFClassifier, cancer, [{"variant": "published"}], seeds=[0])
    assert rows["loss"].tolist() == [np.inf]


@pytest.mark.filterwarnings("ignore::dpforest.privacy.OutOfSchemaWarning")
def test_sweep_uses_the_official_test_set(cancer: datasets.Dataset) -> None:
    official = cancer.split(test_size=0.5, random_state=9)
    rows = experiments.sweep(RandomTreesClassifier, official, [{"max_depth": 2}], seeds=[0, 1])
    for seed, accuracy in zip(rows["seed"], rows["accuracy"], strict=True):
        model = RandomTreesClassifier(max_depth=2, schema=official.schema, random_state=seed)
        model.fit(official.X, official.y)
        assert accuracy == model.score(official.X_test, official.y_test)


def test_summary_is_students_interval() -> None:
    rows = pd.DataFrame({"epsilon": [1, 1, 1, 2], "accuracy": [0.5, 0.7, 0.9, 0.8]})
    table = experiments.summary(rows, ["epsilon"])
    low, high = stats.t.interval(0.95, 2, loc=0.7, scale=0.2 / np.sqrt(3))
    assert table.loc[0, ["mean", "low", "high", "n"]].tolist() == pytest.approx([0.7, low, high, 3])
    assert table["n"].tolist() == [3, 1]
    assert np.isnan(table["low"][1])


def test_differences_pair_the_seeds() -> None:
    """What all settings of a seed share cancels, so its spread does not widen the interval."""
    luck = {0: 0.1, 1: 0.4, 2: 0.3}
    rows = pd.DataFrame(
        [
            {"data": data, "name": name, "seed": seed, "accuracy": luck[seed] + gain}
            for data, scale in (("first", 1), ("second", 2))
            for seed in luck
            for name, gain in (("plain", 0.0), ("better", 0.05 * scale), ("worse", -0.01 * scale))
        ]
    )
    table = experiments.differences(rows, "plain", by=["data"])
    assert table[["data", "name"]].to_numpy().tolist() == [
        ["first", "better"],
        ["first", "worse"],
        ["second", "better"],
        ["second", "worse"],
    ]
    for column in ("mean", "low", "high"):
        assert table[column].tolist() == pytest.approx([0.05, -0.01, 0.1, -0.02])


def test_floor_is_the_commonest_label(cancer: datasets.Dataset) -> None:
    part = cancer.split(test_size=0.3, random_state=0)
    common = (part.y_test == "benign").mean()
    assert experiments.floor(cancer, [0]) == {"accuracy": common, "balanced_accuracy": 0.5, "auc": 0.5}


def test_ceiling_learns_from_the_same_public_codes(cancer: datasets.Dataset) -> None:
    part = cancer.split(test_size=0.3, random_state=5)
    codes = [cancer.schema.encode(X, 6).codes.T for X in (part.X, part.X_test)]
    model = RandomForestClassifier(5, random_state=5).fit(codes[0], part.y)
    measured = experiments.ceiling(RandomForestClassifier(5), cancer, [5], n_bins=6)
    assert measured["accuracy"] == model.score(codes[1], part.y_test)


def test_grid_is_every_combination() -> None:
    assert experiments.grid(a=[1, 2], b=["x"]) == [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]
    assert experiments.grid() == [{}]


def test_log_loss_by_hand() -> None:
    said = Said(["a", "b"], [[0.25, 0.75], [1.0, 0.0]])
    assert experiments.log_loss(said, None, ["b", "b"]) == pytest.approx((-math.log(0.75) + math.log(1e6)) / 2)
