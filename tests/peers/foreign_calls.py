"""Record and replay the calls of noise of other libraries, compare them, and keep what was found.

Usage, with any Python that has one of the libraries and what dpforest needs::

    PYTHONPATH=. python tests/peers/foreign_calls.py           # writes the rows of the libraries that are installed
    PYTHONPATH=. python tests/peers/foreign_calls.py --show    # prints them, and leaves the record as it is
    PYTHONPATH=. python tests/peers/foreign_calls.py --only diffprivlib    # where others are installed and do not run

The record is ``notebooks/record/foreign.json``; rows of libraries that are not installed stay as they are.  A case is
two small tables and a few lines.  Noise drawn by compiled code comes from the operating system: where a law is sampled
by the library's own function, the function is named as a source, and its answers differ from run to run; the losses
do not, except where the answers decide which values are noised next.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import importlib.metadata
import io
import json
import math
import platform
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from dpforest.audit import NoisedValue, NoiseSource, audit_calls
from dpforest.mechanisms import permute_and_flip_law

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "notebooks" / "record" / "foreign.json"

#: What a row says.  "quiet": no finding.  "refuted": what is released loses more than the claim under this relation.
#: "accounts": the answers do, and of what is computed from them it is not known.  "public": so it is unless what is
#: said there is public.
READINGS = ("quiet", "refuted", "accounts", "public")


@dataclass(frozen=True)
class Case:
    """One audit: a library's function, two neighbouring tables, the claim, and how we read what is found."""

    id: str
    package: str
    what: str
    relation: str
    run: Callable[[np.ndarray], Any]
    one: Any
    other: Any
    reading: str
    text: str
    epsilon: float = 1.0
    delta: float = 0.0


# --- sources of noise -------------------------------------------------------------------------------------------------
def diffprivlib_sources() -> list[NoiseSource]:
    from diffprivlib import mechanisms

    def laplace(given):
        self = given["self"]
        scale = self.sensitivity / (self.epsilon - math.log(1 - self.delta))
        return NoisedValue("laplace", given["value"], scale, self.sensitivity)

    def geometric(given):
        self = given["self"]
        return NoisedValue("geometric", given["value"], self.sensitivity / self.epsilon, self.sensitivity)

    def permute_and_flip(given):
        self = given["self"]
        rate = self.epsilon / self.sensitivity / (2 - self.monotonic)
        return NoisedValue("choice", permute_and_flip_law(np.array(self.utility, float), rate))

    return [
        NoiseSource(mechanisms.Laplace, "randomise", laplace),
        NoiseSource(mechanisms.LaplaceBoundedDomain, "randomise", laplace),
        NoiseSource(mechanisms.Geometric, "randomise", geometric),
        NoiseSource(mechanisms.PermuteAndFlip, "randomise", permute_and_flip),
    ]


def interpret_sources() -> list[NoiseSource]:
    from interpret.utils._native import Native

    return [
        NoiseSource(Native, "generate_gaussian_random", lambda given: NoisedValue("gaussian", None, given["stddev"]))
    ]


def pipeline_dp_sources() -> list[NoiseSource]:
    from pipeline_dp import dp_computations

    def add_noise(given):
        self = given["self"]
        return NoisedValue("laplace", given["value"], self.noise_parameter, self.sensitivity)

    def apply(given):
        sensitivity = given["l1_sensitivity"]
        return NoisedValue("laplace", given["value"], sensitivity / given["eps"], sensitivity)

    return [
        NoiseSource(dp_computations.AdditiveMechanism, "add_noise", add_noise),
        NoiseSource(dp_computations, "apply_laplace_mechanism", apply),
    ]


def smartnoise_sources() -> list[NoiseSource]:
    from snsynth import utils

    return [NoiseSource(utils, "laplace_noise", lambda given: NoisedValue("laplace", None, given["scale"]))]


def chosen(given) -> NoisedValue:
    """The law of ``numpy.random.choice``."""
    several = range(given["a"]) if isinstance(given["a"], int) else given["a"]
    return NoisedValue("choice", np.full(len(several), 1 / len(several)) if given["p"] is None else given["p"])


def data_synthesizer_sources() -> list[NoiseSource]:
    from DataSynthesizer.lib import PrivBayes

    table = PrivBayes.get_noisy_distribution_of_attributes

    def tabulate(given):
        exact = table(given["attributes"], given["encoded_dataset"], epsilon=0)["count"]
        records, columns = given["encoded_dataset"].shape
        parents = len(given["attributes"]) - 1
        scale = PrivBayes.laplace_noise_parameter(parents, columns, records, given["epsilon"])
        return NoisedValue("laplace", exact, scale)

    return [
        NoiseSource(PrivBayes, "get_noisy_distribution_of_attributes", tabulate),
        NoiseSource(np.random, "choice", chosen),
    ]


def dpart_sources() -> list[NoiseSource]:
    return [*diffprivlib_sources(), NoiseSource(np.random, "choice", chosen)]


def smartnoise_sql_sources() -> list[NoiseSource]:
    from snsql.sql._mechanisms import Laplace, rand

    def release(given):
        return NoisedValue("laplace", given["vals"], given["self"].scale)

    return [
        NoiseSource(Laplace, "release", release),
        NoiseSource(rand, "laplace", lambda given: NoisedValue("laplace", None, given["scale"])),
    ]


SOURCES = {
    "DataSynthesizer": data_synthesizer_sources,
    "dpart": dpart_sources,
    "smartnoise-sql": smartnoise_sql_sources,
    "distributed-random-forest": list,
    "smartnoise-synth": smartnoise_sources,
    "diffprivlib": diffprivlib_sources,
    "interpret-core": interpret_sources,
    "pipeline-dp": pipeline_dp_sources,
}
SEEDS = range(1, 21)  # of the library's own draws, where it takes one; each is a run
seed = SEEDS[0]  # of the present run

# --- tables -----------------------------------------------------------------------------------------------------------
BITS = np.array([0.0, 0, 1, 1, 0, 1])
TABLE = np.array([[0.0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0]])  # two features and a class
BOUNDS = np.zeros(2), np.ones(2)
POINTS = np.column_stack([np.linspace(0.05, 0.95, 20), np.tile([0.0, 1.0], 10)])  # one feature and a class
STEPS = np.array([[0.1, 0], [0.2, 0], [0.8, 1], [0.9, 1], [0.3, 0], [0.85, 1]])  # one feature and a class
TARGETS = POINTS + np.array([0, 1000])  # one feature and a target
CODES = np.array([[0], [1], [2], [0], [1], [2], [2]])  # one category
VISITS = [(1, "a", 1.0), (1, "b", 1.0), (2, "a", 0.0), (3, "b", 1.0), (4, "a", 1.0)]  # a person, a place, a number

GAPS = np.array([[np.nan, 0.0], [1, 1], [0, 1], [1, 0], [0, 0]])  # two features, and one value is missing
KEYS = np.array([[1, 0], [2, 1], [3, 0], [4, 1]])  # a name and a feature
FINE = np.linspace(0.005, 0.995, 40)[:, None]  # one feature
SPREAD = np.array([[0.0], [0], [0], [100], [100], [100]])  # a target
PEOPLE = [(1, "a", -1.0), (2, "a", 0.5), (3, "b", 0.0), (4, "b", -1.0), (5, "a", 0.5)]  # a person, a group, a number
MANY = [(person, "a", 0.0) for person in range(1, 61)]  # so many persons that their group is shown
GROUPED = "SELECT g, COUNT(*) AS n FROM S.T GROUP BY g"


def changed(table: np.ndarray, at: int, record) -> np.ndarray:
    """The table with another record in place of one."""
    new = table.copy()
    new[at] = record
    return new


# --- what is run ------------------------------------------------------------------------------------------------------
def tool(name: str, **more) -> Callable[[np.ndarray], Any]:
    """A function of ``diffprivlib.tools`` of numbers from 0 to 1."""
    return lambda rows: getattr(importlib.import_module("diffprivlib.tools"), name)(
        rows, epsilon=1.0, random_state=seed, **more
    )


def histogram(rows: np.ndarray) -> Any:
    return tool("histogram", bins=2, range=(0, 1))(rows)[0]


def diffprivlib_model(name: str, read: Callable[[Any], Any], classes: bool = True, **more):
    """A model of ``diffprivlib.models``, fitted with public bounds, and what is released of it."""

    def run(rows: np.ndarray) -> Any:
        models = importlib.import_module("diffprivlib.models")
        model = getattr(models, name, None) or getattr(models.forest, name)
        fitted = model(epsilon=1.0, random_state=seed, **more)
        return read(fitted.fit(rows[:, :-1], rows[:, -1]) if classes else fitted.fit(rows[:, :-1]))

    return run


def attributes(*names: str) -> Callable[[Any], Any]:
    return lambda model: {name: np.array(getattr(model, name)) for name in names}


def ebm_options() -> dict[str, Any]:
    """What the models of DP-EBM here have in common: two rounds and a few bins."""
    return {
        "epsilon": 1.0,
        "delta": 1e-5,
        "max_rounds": 2,
        "max_bins": 4,
        "random_state": seed,
        "n_jobs": 1,
        "outer_bags": 1,
    }


def ebm_shown(model: Any) -> dict[str, Any]:
    """What a model of one feature shows."""
    shown = {"scores": [*model.term_scores_], "intercept": model.intercept_, "bins": [*model.bins_[0]]}
    return {**shown, "weights": [*model.bin_weights_]}


def ebm(rows: np.ndarray, kind: str = "continuous") -> Any:
    """DP-EBM of one feature, and what it shows of it."""
    from interpret.privacy import DPExplainableBoostingClassifier

    bounds = {0: (0.0, 1.0)} if kind == "continuous" else {}
    model = DPExplainableBoostingClassifier(feature_types=[kind], privacy_bounds=bounds, **ebm_options())
    values = np.array([[row[0]] for row in rows], object if kind == "nominal" else float)
    return ebm_shown(model.fit(values, [int(row[1]) for row in rows]))


def ebm_of_categories(rows) -> Any:
    return ebm(rows, "nominal")


def ebm_of_targets(rows: np.ndarray) -> Any:
    """DP-EBM of one feature and a target from 1000 to 1001, and what it shows of it."""
    from interpret.privacy import DPExplainableBoostingRegressor

    model = DPExplainableBoostingRegressor(
        feature_types=["continuous"],
        privacy_bounds={0: (0.0, 1.0)},
        privacy_target_min=1000.0,
        privacy_target_max=1001.0,
        **ebm_options(),
    )
    return ebm_shown(model.fit(rows[:, :1], rows[:, 1]))


def ebm_weights(rows: np.ndarray) -> Any:
    from interpret.privacy import DPExplainableBoostingClassifier

    model = DPExplainableBoostingClassifier(
        privacy_bounds={0: (0.0, 1.0)}, epsilon=1.0, delta=1e-5, max_rounds=2, random_state=seed, n_jobs=1, outer_bags=1
    )
    return model.fit(rows[:, :1], rows[:, 1].astype(int)).bag_weights_


def pipeline(*metrics: str, **more) -> Callable[[list], Any]:
    """An aggregation of PipelineDP by place, of two places that are public."""

    def run(rows: list) -> Any:
        import pipeline_dp as dp

        accountant = dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
        params = dp.AggregateParams(
            noise_kind=dp.NoiseKind.LAPLACE,
            metrics=[getattr(dp.Metrics, name) for name in metrics],
            max_partitions_contributed=2,
            max_contributions_per_partition=1,
            **more,
        )
        readers = dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        engine = dp.DPEngine(accountant, dp.LocalBackend())
        lazy = engine.aggregate(rows, params, readers, public_partitions=["a", "b"])
        accountant.compute_budgets()
        return {place: [*answers] for place, answers in sorted(lazy)}

    return run


def mwem(rows: np.ndarray) -> Any:
    """SmartNoise's MWEM of one column, all of whose budget goes to measurements."""
    from snsynth.mwem import MWEMSynthesizer

    model = MWEMSynthesizer(epsilon=1.0, q_count=4, iterations=2, measure_only=True, split_factor=1)
    model.fit(rows, categorical_columns=[0])
    return model


def frame_of(rows: np.ndarray, kind: Any = int) -> Any:
    """A table of pandas with columns a, b, c."""
    import pandas as pd

    return (
        pd.DataFrame(np.asarray(rows), columns=[*"abc"[: np.shape(rows)[1]]])
        .astype(kind if kind is float else int)
        .astype(kind)
    )


def describer(mode: str, rows: np.ndarray, kind: Any = int, **more) -> Any:
    """DataSynthesizer's description of a table of codes; unless said otherwise, no column is a key."""
    from DataSynthesizer.DataDescriber import DataDescriber

    frame = frame_of(rows, kind)
    options = {
        "attribute_to_is_categorical": dict.fromkeys(frame, True),
        "attribute_to_is_candidate_key": dict.fromkeys(frame, False),
        **more,
    }
    made = DataDescriber()
    with contextlib.redirect_stdout(None):
        fit = getattr(made, f"describe_dataset_in_{mode}_attribute_mode")
        fit(io.StringIO(frame.to_csv(index=False)), epsilon=1.0, seed=seed, **options)
    return made.data_description


def shares(rows: np.ndarray) -> Any:
    described = describer("independent", rows)["attribute_description"]
    return {name: each["distribution_probabilities"] for name, each in described.items()}


def network(rows: np.ndarray) -> Any:
    """The network of DataSynthesizer's PrivBayes, with one parent for a column."""
    from DataSynthesizer.lib import PrivBayes

    with contextlib.redirect_stdout(None):
        return [(child, [*parents]) for child, parents in PrivBayes.greedy_bayes(frame_of(rows), 1, 1.0, seed=seed)]


def tables(rows: np.ndarray) -> Any:
    """The tables of DataSynthesizer's PrivBayes for one network."""
    from DataSynthesizer.lib import PrivBayes

    return PrivBayes.construct_noisy_conditional_distributions([("b", ["a"]), ("c", ["a"])], frame_of(rows), 1.0)


def dpart_model(engine: str, rows: np.ndarray, kind: Any, **more) -> Any:
    """A model of dpart, which gives scikit-learn bounds in a list where new versions want a tuple."""
    import sklearn
    from dpart import engines

    model = getattr(engines, engine)(epsilon=1.0, **more)
    with sklearn.config_context(skip_parameter_validation=True):
        model.fit(frame_of(rows, kind))
    return model


def dpart_shares(rows: np.ndarray) -> Any:
    bounds = {name: {"categories": ["0", "1"]} for name in "abc"}
    model = dpart_model("Independent", rows, str, bounds=bounds)
    return {name: method.conditional_dist for name, method in model.methods.items()}


def dpart_edges(rows: np.ndarray) -> Any:
    model = dpart_model("Independent", rows, float, bounds={"a": {"min": 0.0, "max": 1.0}})
    return [*model.methods["a"].y_encoder.encoder.bin_edges_[0]]


def dpart_shapes(engine: str) -> Callable[[np.ndarray], Any]:
    """How many categories the columns of a model have."""
    bounds = {name: {"categories": ["0", "1", "2"]} for name in "abc"}

    def run(rows: np.ndarray) -> Any:
        model = dpart_model(engine, rows, str, bounds=bounds)
        return {name: method.conditional_dist.shape[-1] for name, method in model.methods.items()}

    return run


def dpart_network(rows: np.ndarray) -> Any:
    """The order and the parents that dpart's PrivBayes infers, with a claim of its own."""
    from dpart.utils.dependencies import DependencyManager

    manager = DependencyManager(epsilon=1.0, prediction_matrix="infer", n_parents=1)
    manager.fit(frame_of(rows))
    return manager.prediction_matrix


def dpart_spread(rows: np.ndarray) -> Any:
    """The spread of the residuals of dpart's regression without features, of a target from 0 to 100."""
    model = dpart_model("DPsynthpop", rows, float, bounds={"a": {"min": 0.0, "max": 100.0}})
    return model.methods["a"].sigma


def sql(query: str, columns: int = 1, **more) -> Callable[[list], Any]:
    """A query of SmartNoise SQL with so many noisy columns, by persons that have one row unless said otherwise."""

    def run(rows: list) -> Any:
        import pandas as pd
        import snsql

        described = {
            "censor_dims": False,
            **more,
            "p": {"type": "int", "private_id": True},
            "g": {"type": "string"},
            "x": {"type": "float", "lower": -1.0, "upper": 0.5},
        }
        reader = snsql.from_df(
            pd.DataFrame(rows, columns=["p", "g", "x"]),
            privacy=snsql.Privacy(epsilon=1 / columns, delta=1e-5),
            metadata={"": {"S": {"T": described}}},
        )
        answers = reader.execute(query)
        charged = [epsilon for epsilon, _ in reader.odometer.steps]
        if len(charged) != columns or not math.isclose(sum(charged), 1.0):
            raise ValueError(f"the odometer counts {charged}")
        return [[*row] for row in answers]

    return run


def forest_of_one(rows: np.ndarray) -> Any:
    from distributed_random_forest.models.dp_rf import DPRandomForest

    model = DPRandomForest(n_estimators=1, max_depth=1, epsilon=1.0, n_jobs=1, random_state=seed)
    return model.fit(rows[:, :-1], rows[:, -1])


# --- the cases --------------------------------------------------------------------------------------------------------
REMOVED = BITS, BITS[:-1]
REPLACED = BITS, changed(BITS, 5, 0.0)
N_PUBLIC = "its scale is the width of the bounds over the exact number of records, which must be public"
CUT = "an answer above the bound times the exact number of records is cut off there: that number must be public"
TWICE = "one record is in two of the parts, and both answers are charged as one"
mean, total, variance = (tool(name, bounds=(0, 1)) for name in ("mean", "sum", "var"))
tree = diffprivlib_model(
    "DecisionTreeClassifier", lambda model: model.tree_.value, bounds=BOUNDS, classes=[0, 1], max_depth=1
)
forest = diffprivlib_model(
    "RandomForestClassifier",
    lambda model: [each.tree_.value for each in model.estimators_],
    bounds=BOUNDS,
    classes=[0, 1],
    max_depth=1,
    n_estimators=3,
)
bayes = diffprivlib_model("GaussianNB", attributes("theta_", "var_", "class_prior_"), bounds=BOUNDS)
bayes_counts = diffprivlib_model("GaussianNB", attributes("class_count_"), bounds=BOUNDS)
bayes_classes = diffprivlib_model("GaussianNB", attributes("classes_"), bounds=BOUNDS)
scaler = diffprivlib_model("StandardScaler", attributes("mean_", "var_"), classes=False, bounds=BOUNDS)
scaler_size = diffprivlib_model("StandardScaler", attributes("n_samples_seen_"), classes=False, bounds=BOUNDS)
means = diffprivlib_model("KMeans", attributes("cluster_centers_"), classes=False, bounds=BOUNDS, n_clusters=2)
line = diffprivlib_model("LinearRegression", attributes("coef_"), bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False)
LINE = np.array([[0.0, 1], [1, 1], [1, 1]])  # one feature and the target

_CASES = [
    ("diffprivlib", "tools.mean", "replace-one", mean, *REPLACED, "quiet", "all of the claim is used"),
    ("diffprivlib", "tools.mean", "add-remove", mean, *REMOVED, "public", N_PUBLIC),
    ("diffprivlib", "tools.sum", "add-remove", total, *REMOVED, "public", CUT),
    ("diffprivlib", "tools.var", "replace-one", variance, *REPLACED, "quiet", "on this pair"),
    ("diffprivlib", "tools.var", "add-remove", variance, *REMOVED, "public", N_PUBLIC),
    ("diffprivlib", "tools.count_nonzero", "add-remove", tool("count_nonzero"), *REMOVED, "public", CUT),
    ("diffprivlib", "tools.histogram", "add-remove", histogram, *REMOVED, "quiet", "all of the claim is used"),
    ("diffprivlib", "tools.histogram", "replace-one", histogram, *REPLACED, "refuted", TWICE),
    ("diffprivlib", "models.LinearRegression", "replace-one", line, LINE, changed(LINE, 2, [0, 1]), "refuted",
     "the bound of the sum of squares takes the lower bound twice, and never the upper one: with lower bound 0 the sum "
     "has no noise at all"),
    ("diffprivlib", "models.LinearRegression", "add-remove", line, LINE, LINE[:-1], "refuted", "the same"),
    ("diffprivlib", "models.GaussianNB", "replace-one", bayes, TABLE, changed(TABLE, 1, [1, 1, 0]), "accounts",
     "a record that changes its class is counted in both, and both are charged as one"),
    ("diffprivlib", "models.GaussianNB, its class counts", "add-remove", bayes_counts, TABLE, TABLE[:-1], "public",
     "noisy class counts are moved until their sum is the exact number of records"),
    ("diffprivlib", "models.GaussianNB, its classes", "replace-one", bayes_classes, TABLE,
     changed(TABLE, 5, [0, 0, 2]), "refuted", "the classes that occur are read from the data and shown"),
    ("diffprivlib", "models.StandardScaler", "replace-one", scaler, TABLE, changed(TABLE, 1, [0, 0, 0]), "quiet",
     "on this pair"),
    ("diffprivlib", "models.StandardScaler, its size", "add-remove", scaler_size, TABLE, TABLE[:-1], "public",
     "the number of records is shown, and scales depend on it"),
    ("diffprivlib", "models.KMeans", "replace-one", means, TABLE, changed(TABLE, 1, [1, 0, 0]), "accounts",
     "a record that changes its cluster is counted in both, and both are charged as one"),
    ("diffprivlib", "models.DecisionTreeClassifier", "add-remove", tree, TABLE, TABLE[:-1], "quiet",
     "all of the claim is used"),
    ("diffprivlib", "models.DecisionTreeClassifier", "replace-one", tree, TABLE, changed(TABLE, 0, [0, 0, 1]),
     "refuted", "permute-and-flip is given the rate for counts that change one way"),
    ("diffprivlib", "models.RandomForestClassifier", "add-remove", forest, TABLE, TABLE[1:], "refuted",
     "the first record's removal moves others to other trees, and all trees are charged as one; the call that is "
     "missing is of an empty leaf, whose law is the same"),
    ("interpret-core", "DP-EBM, one feature", "replace-one", ebm, POINTS, changed(POINTS, 0, [0.05, 1.0]), "quiet",
     "on this pair"),
    ("interpret-core", "DP-EBM, one feature", "add-remove", ebm, POINTS, POINTS[1:], "public",
     "noisy weights are put together into bins until they reach the exact number of records over that of bins: that "
     "number must be public"),
    ("interpret-core", "DP-EBM, its bag weights", "add-remove", ebm_weights, POINTS, POINTS[1:], "public",
     "the exact number of records is an attribute of the model"),
    ("interpret-core", "DP-EBM, a nominal feature", "replace-one", ebm_of_categories,
     [("a", 0), ("b", 1)] * 10 + [("c", 1)], [("a", 0), ("b", 1)] * 10 + [("b", 1)], "public",
     "one draw for each category that occurs: the list of categories must be public"),
    ("interpret-core", "DP-EBM for regression, targets from 1000 to 1001", "replace-one", ebm_of_targets, TARGETS,
     changed(TARGETS, 0, [0.95, 1000.0]), "refuted",
     "predictions begin at 0, so residuals are a thousand, and the noise is made for 1"),
    ("distributed-random-forest", "DPRandomForest, its thresholds", "replace-one",
     lambda rows: [tree.tree_.threshold for tree in forest_of_one(rows)._trees], STEPS, changed(STEPS, 2, [0.6, 1]),
     "refuted", "splits are scikit-learn's on the records, and only the leaves have noise"),
    ("distributed-random-forest", "DPRandomForest, its summary", "replace-one",
     lambda rows: forest_of_one(rows).training_summary, STEPS, changed(STEPS, 2, [0.8, 0]), "refuted",
     "the exact distribution of the classes is an attribute of the model"),
    ("smartnoise-synth", "MWEM, measurements", "add-remove", lambda rows: mwem(rows).spent, CODES, CODES[:-1], "quiet",
     "all of the claim is used"),
    ("smartnoise-synth", "MWEM, measurements", "replace-one", lambda rows: mwem(rows).spent, CODES,
     changed(CODES, 6, [0]), "accounts", TWICE),
    ("smartnoise-synth", "MWEM, its histogram", "add-remove",
     lambda rows: [each[0] for each in mwem(rows).synthetic_histograms], CODES, CODES[:-1], "public",
     "it sums to the exact number of records"),
    ("pipeline-dp", "COUNT", "a person removed", pipeline("COUNT"), VISITS, VISITS[2:], "quiet",
     "all of the claim is used"),
    ("pipeline-dp", "PRIVACY_ID_COUNT", "a person removed", pipeline("PRIVACY_ID_COUNT"), VISITS, VISITS[2:], "quiet",
     "all of the claim is used"),
    ("pipeline-dp", "SUM", "a person removed", pipeline("SUM", min_value=0, max_value=1), VISITS, VISITS[2:], "quiet",
     "all of the claim is used"),
    ("pipeline-dp", "MEAN", "a person removed", pipeline("MEAN", min_value=0, max_value=1), VISITS, VISITS[2:],
     "quiet", "on this pair"),
    ("pipeline-dp", "VARIANCE", "a person removed", pipeline("VARIANCE", min_value=0, max_value=1), VISITS, VISITS[2:],
     "quiet", "on this pair"),
    ("pipeline-dp", "COUNT, SUM and MEAN", "a person removed",
     pipeline("COUNT", "SUM", "MEAN", min_value=0, max_value=1), VISITS, VISITS[2:], "quiet", "on this pair"),
    ("DataSynthesizer", "independent mode, its distributions", "replace-one", shares, TABLE,
     changed(TABLE, 1, [0, 0, 0]), "quiet", "all of the claim is used"),
    ("DataSynthesizer", "independent mode, its distributions", "add-remove", shares, TABLE, TABLE[:-1], "public",
     "its scale is two over the exact number of records, which must be public"),
    ("DataSynthesizer", "independent mode, its number of records", "add-remove",
     lambda rows: describer("independent", rows)["meta"], TABLE, TABLE[:-1], "public",
     "the exact number of records is in the description"),
    ("DataSynthesizer", "independent mode, a missing value", "replace-one",
     lambda rows: describer("independent", rows, float)["attribute_description"]["a"]["missing_rate"], GAPS,
     changed(GAPS, 0, [1.0, 0.0]), "refuted",
     "the exact share of missing values is in the description (`datatypes/AbstractAttribute.py:101`)"),
    ("DataSynthesizer", "independent mode, a column of names", "replace-one",
     lambda rows: describer("independent", rows, attribute_to_is_candidate_key={})["meta"]["candidate_keys"], KEYS,
     changed(KEYS, 0, [2, 0]), "public",
     "a column is a key if no value occurs twice: unless the user says so, its being one must be public"),
    ("DataSynthesizer", "PrivBayes, its network", "replace-one", network, TABLE, changed(TABLE, 1, [0, 0, 0]), "quiet",
     "on this pair"),
    ("DataSynthesizer", "PrivBayes, its tables", "add-remove", tables, TABLE, TABLE[:-1], "quiet",
     "all of the claim is used"),
    ("DataSynthesizer", "PrivBayes, its tables", "replace-one", tables, TABLE, changed(TABLE, 1, [0, 0, 0]), "refuted",
     TWICE),
    ("DataSynthesizer", "correlated mode, all of its description", "replace-one",
     lambda rows: describer("correlated", rows, k=1), TABLE, changed(TABLE, 1, [0, 0, 0]), "refuted",
     "the columns' own distributions use all of the claim, and the network and the tables use it once more; rows are "
     "made from the network and the tables alone"),
    ("dpart", "Independent, its distributions", "replace-one", dpart_shares, TABLE, changed(TABLE, 1, [0, 0, 0]),
     "quiet", "all of the claim is used"),
    ("dpart", "Independent, its distributions", "add-remove", dpart_shares, TABLE, TABLE[:-1], "quiet", "on this pair"),
    ("dpart", "Independent, the bins of a number", "replace-one", dpart_edges, FINE, changed(FINE, 0, [0.01]),
     "refuted", "edges are quantiles of the records, whatever bounds are given (`methods/utils/bin_encoder.py:17`)"),
    ("dpart", "Independent, its categories", "replace-one", dpart_shapes("Independent"), TABLE,
     changed(TABLE, 0, [2, 0, 0]), "refuted", "categories are those that occur, whatever list is given"),
    ("dpart", "PrivBayes, its categories", "replace-one", dpart_shapes("PrivBayes"), TABLE,
     changed(TABLE, 0, [2, 0, 0]), "refuted",
     "the same, and `engines/priv_bayes.py:8` does not hand on the lists and bounds that are given"),
    ("dpart", "PrivBayes, its network", "replace-one", dpart_network, TABLE, changed(TABLE, 1, [0, 0, 0]), "quiet",
     "on this pair; scores are in bits, and their sensitivity is in nats (`utils/dependencies/selection.py:30`)"),
    ("dpart", "DPsynthpop, the spread of a target from 0 to 100", "replace-one", dpart_spread, SPREAD,
     changed(SPREAD, 0, [50.0]), "refuted", "its noise is made for a target from 0 to 1"),
    ("smartnoise-sql", "COUNT", "a person removed", sql("SELECT COUNT(*) AS n FROM S.T"), PEOPLE, PEOPLE[1:], "quiet",
     "all of the claim is used"),
    ("smartnoise-sql", "SUM", "a person removed", sql("SELECT SUM(x) AS s FROM S.T"), PEOPLE, PEOPLE[1:], "quiet",
     "all of the claim is used"),
    ("smartnoise-sql", "SUM", "replace-one", sql("SELECT SUM(x) AS s FROM S.T"), PEOPLE,
     [(1, "a", 0.5), *PEOPLE[1:]], "refuted",
     "its noise is made for a record that is added or removed: from one bound to the other is farther"),
    ("smartnoise-sql", "AVG", "a person removed", sql("SELECT AVG(x) AS m FROM S.T", 2), PEOPLE, PEOPLE[1:], "quiet",
     "all of the claim is used"),
    ("smartnoise-sql", "VARIANCE", "a person removed", sql("SELECT VARIANCE(x) AS v FROM S.T", 3), PEOPLE, PEOPLE[1:],
     "quiet", "all of the claim is used"),
    ("smartnoise-sql", "COUNT by group", "a person removed", sql(GROUPED), PEOPLE, PEOPLE[1:], "quiet",
     "all of the claim is used"),
    ("smartnoise-sql", "COUNT by group, rare groups censored", "a person removed",
     sql(GROUPED, 2, censor_dims=True), MANY, MANY[1:], "quiet", "all of the claim is used"),
]  # fmt: skip
CASES = {
    f"{package} {what}, {relation}": Case(
        f"{package} {what}, {relation}",
        package,
        what,
        relation,
        run,
        one,
        other,
        reading,
        text,
        delta=1e-5 if package == "interpret-core" else 0.0,
    )
    for package, what, relation, run, one, other, reading, text in _CASES
}

#: What was tried and cannot be judged in this way, and what was not looked at.
NOT_JUDGED = {
    "diffprivlib": [
        "tools.quantile and tools.median: the choice is of an interval whose ends are records, so that the "
        "probabilities of the intervals are not the law of the answer",
        "models.LogisticRegression: what is noised is a function, not a number",
        "models.PCA and tools.std, nanmean and other variants: not looked at",
        "the noise's own law, and its floating-point numbers",
    ],
    "interpret-core": ["interactions, several features; the boosting itself is compiled code"],
    "pipeline-dp": ["private selection of partitions, vectors, quantiles, Gaussian noise; Beam and Spark"],
    "OpenDP, PyDP": ["values are noised in compiled code: nothing can be recorded from Python"],
    "smartnoise-synth": [
        "MWEM's choice of queries: it is drawn by a plain random number",
        "MST and AIM: as their source reads, noise becomes an array before it is added, so that the trace is lost; "
        "not run",
        "neural networks: not looked at",
    ],
    "distributed-random-forest": ["other settings, the federation"],
    "DataSynthesizer": [
        "the recorder draws each call's noise by itself, so that noise that is drawn twice is in no row",
        "numbers and their ranges, which are the data's unless given; dates and texts; several parents in a network",
        "what its documentation calls the active domain, the values that occur, is public by its words",
    ],
    "dpart": [
        "classifiers and regressions, which are diffprivlib's",
        "it was run with diffprivlib 0.6.6 and a new scikit-learn, whose check of one argument was turned off: the "
        "versions that it asks for are too old for the recorder",
        "one score of its network can change by 1.44 times its declared sensitivity (a search of small tables), but no "
        "pair was found on which a choice loses more than it claims",
    ],
    "smartnoise-sql": [
        "Gaussian noise, persons with several groups, other databases than pandas, the odometer's sums of many queries",
        "use_dpsu: with pandas it ends with an error in this version",
        "noise is OpenDP's; of sums of expressions none is let through",
    ],
    "autodp, mbi, Opacus, Tumult": ["not looked at"],
}


# --- the record -------------------------------------------------------------------------------------------------------
def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def row(case: Case) -> dict[str, Any]:
    """What is found, in plain values."""
    global seed
    audits = []
    for seed in SEEDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            audits.append(
                audit_calls(
                    case.run,
                    case.one,
                    case.other,
                    epsilon=case.epsilon,
                    delta=case.delta,
                    sources=SOURCES[case.package](),
                    random_state=seed,
                )
            )
    audit = max(audits, key=lambda each: each.epsilon)
    findings = {(each.kind, each.where): each for run in [audit, *audits] for each in reversed(run.findings)}
    return {
        "id": case.id,
        "package": case.package,
        "version": version_of(case.package),
        "what": case.what,
        "relation": case.relation,
        "claim": case.epsilon,
        "delta": case.delta,
        "epsilon": None if math.isinf(audit.epsilon) else round(audit.epsilon, 9),
        "calls": len(audit.calls),
        "runs": len(audits),
        "complete": all(each.complete for each in audits),
        "violated": any(each.violated for each in audits),
        "findings": [{"kind": each.kind, "where": each.where, "text": each.text} for each in findings.values()],
        "reading": case.reading,
        "text": case.text,
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
    }


EVENTS = [0.5, 0.25, 0.25]  # losses of three randomised responses, of which two are alike
AT = 0.3  # the epsilon at which their delta is compared


def exact_delta(losses: list[float], epsilon: float) -> float:
    """Delta of a composition of randomised responses, by all outcomes."""
    found = 0.0
    for signs in product((1, -1), repeat=len(losses)):
        chance = math.prod(1 / (1 + math.exp(-sign * loss)) for sign, loss in zip(signs, losses, strict=True))
        loss = math.fsum(sign * loss for sign, loss in zip(signs, losses, strict=True))
        found += chance * max(0.0, -math.expm1(epsilon - loss))
    return found


def accountant_rows() -> list[dict[str, Any]]:
    """Delta that the accountant of dp-accounting says of the same events, one by one and as a self-composition."""
    import dp_accounting as dp

    def delta(events) -> float:
        accountant = dp.pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
        return float(accountant.compose(dp.ComposedDpEvent(events)).get_delta(AT))

    def coin(loss: float):
        return dp.RandomizedResponseDpEvent(noise_parameter=2 / (1 + math.exp(loss)), num_buckets=2)

    said = {
        "one by one": delta([coin(loss) for loss in EVENTS]),
        "as a self-composition": delta([coin(EVENTS[0]), dp.SelfComposedDpEvent(coin(EVENTS[1]), 2)]),
    }
    return [
        {
            "package": "dp-accounting",
            "version": version_of("dp-accounting"),
            "what": what,
            "losses": EVENTS,
            "epsilon": AT,
            "delta": round(value, 9),
            "exact": round(exact_delta(EVENTS, AT), 9),
        }
        for what, value in said.items()
    ]


SEEDED = [0] * 10 + [1] * 10  # a column of a table; on the neighbour the last value is 0


def seeded_rows() -> list[dict[str, Any]]:
    """The shares of two codes that DataSynthesizer describes twice, with the seed that it has by itself."""
    from DataSynthesizer.DataDescriber import DataDescriber

    def described(values: list[int]) -> list[float]:
        made = DataDescriber()
        made.describe_dataset_in_independent_attribute_mode(
            io.StringIO("\n".join(map(str, ["a", *values]))),
            epsilon=1.0,
            attribute_to_is_categorical={"a": True},
            attribute_to_is_candidate_key={"a": False},
        )
        return [
            round(each, 9) for each in made.data_description["attribute_description"]["a"]["distribution_probabilities"]
        ]

    tables = {"ten 0, ten 1": SEEDED, "eleven 0, nine 1": [*SEEDED[:-1], 0]}
    return [
        {
            "package": "DataSynthesizer",
            "version": version_of("DataSynthesizer"),
            "what": what,
            "runs": [described(values), described(values)],
        }
        for what, values in tables.items()
    ]


def reused_draws() -> list[dict[str, Any]]:
    """Laplace noise of DataSynthesizer's correlated mode, in order, with a seed of the user."""
    laplace, drawn = np.random.laplace, []

    def noted(loc: float, scale: float, size: int) -> np.ndarray:
        noise = laplace(loc, scale, size)
        drawn.append({"scale": round(float(scale), 9), "multiples": [round(float(each), 6) for each in noise / scale]})
        return noise

    with mock.patch.object(np.random, "laplace", noted), mock.patch.dict(globals(), seed=987654321):
        describer("correlated", TABLE, k=1)
    return drawn


def merged(
    kept: dict[str, Any],
    rows: list[dict],
    accountants: list[dict],
    seeded: list[dict] | None = None,
    reused: list[dict] | None = None,
) -> dict[str, Any]:
    """The record with new rows in the place of old ones; rows of cases that are no more are left out."""
    new = {each["id"]: each for each in [*kept.get("rows", []), *rows]}
    return {
        "what": "calls of noise of other libraries, recorded and replayed on a neighbour; see book/foreign.md",
        "command": "PYTHONPATH=. python tests/peers/foreign_calls.py",
        "rows": [new[id] for id in CASES if id in new],
        "accountants": accountants or kept.get("accountants", []),
        "seeded": seeded or kept.get("seeded", []),
        "reused": reused or kept.get("reused", []),
        "not_judged": NOT_JUDGED,
    }


def by_lines(record: dict) -> str:
    """As JSON with a line for each row: the repository keeps every version of it."""

    def part(value: object) -> str:
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if isinstance(value, list) else json.dumps(value)

    return "{\n" + ",\n".join(f"{json.dumps(key)}: {part(value)}" for key, value in record.items()) + "\n}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Audit other libraries by record and replay of their noise.")
    parser.add_argument("--show", action="store_true", help="print what is found; the record is not touched")
    parser.add_argument("--only", nargs="+", metavar="PACKAGE", help="of these packages alone")
    options = parser.parse_args(arguments)
    wanted = [case for case in CASES.values() if not options.only or case.package in options.only]
    rows = [row(case) for case in wanted if version_of(case.package)]
    accountants = accountant_rows() if version_of("dp-accounting") else []
    seeded, reused = (seeded_rows(), reused_draws()) if version_of("DataSynthesizer") else ([], [])
    for each in rows:
        kinds = ", ".join(sorted({finding["kind"] for finding in each["findings"]})) or "no findings"
        print(f"{each['id']}: epsilon {each['epsilon']}, {each['calls']} calls, {kinds} ({each['reading']})")
        if options.show:
            print(*(f"    {finding['where']}: {finding['text']}" for finding in each["findings"]), sep="\n")
    for each in accountants:
        print(f"{each['package']} {each['version']}, {each['what']}: delta {each['delta']}, exact {each['exact']}")
    for each in seeded:
        print(f"{each['package']} {each['version']}, {each['what']}: {each['runs'][0]}, again {each['runs'][1]}")
    for each in reused:
        print(f"DataSynthesizer's noise: {each['scale']} times {each['multiples']}")
    if not options.show:
        kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
        RECORD.write_text(by_lines(merged(kept, rows, accountants, seeded, reused)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
