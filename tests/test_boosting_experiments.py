"""Sentences of the CART-DPsAdaBoost paper on its experiments: each judgement in both directions, on made-up results."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dpforest import datasets
from dpforest.papers.dps_adaboost import DPsAdaBoostClassifier
from dpforest.study.boosting_experiments import ADULT, CENSUS, NOISELESS, Runs, commonest, fit, judge, measures
from dpforest.study.statements import Statements
from dpforest.study.statements.rules import VERDICTS

REPRODUCED, NOT, OPPOSITE, UNREAD, UNRUN = VERDICTS
EPSILONS, DEPTHS, SEEDS = [0.1, 0.5, 1.0], [2, 3, 4, 5, 6], range(4)
BARE = {ADULT: [0.78, 0.80, 0.812, 0.806, 0.804], CENSUS: [0.76, 0.77, 0.78, 0.802, 0.79]}
BEST = {ADULT: 0.872, CENSUS: 0.9145}


def fits(as_said: bool) -> pd.DataFrame:
    """A world in which every sentence is true, or one in which every effect is turned round, and larger."""
    rows = []
    for name, depth, epsilon, seed in product(BARE, DEPTHS, [*EPSILONS, NOISELESS], SEEDS):
        weight = (1.3 if name == CENSUS else 1.0) * depth / 4
        cost = 0.0 if epsilon == NOISELESS else 0.004 * weight / epsilon
        accuracy = BARE[name][depth - 2] - cost + 1e-5 * seed * depth
        area = BEST[name] - (0.0 if epsilon == NOISELESS else 0.01 * (1 / epsilon - 1)) + 1e-5 * seed
        if not as_said:
            accuracy, area = 3 - 3 * accuracy, 3.5 - 3 * area
        rows.append({
            "data": name, "max_depth": depth, "epsilon": epsilon, "seed": seed, "accuracy": accuracy, "AUC": area,
            "precision": accuracy, "recall": 1.7 - accuracy if as_said else accuracy, "error": "",
            "F1": (0.86 if as_said else 0.8) + 1e-5 * seed, "calls": 1.0 if as_said else 3.0 + 0.01 * seed,
        })  # fmt: skip
    return pd.DataFrame(rows)


def runs(as_said: bool) -> Runs:
    table, sign = fits(as_said), 1 if as_said else -1
    stumps = [
        {"data": name, "epsilon": epsilon, "seed": seed, "max_depth": 1, "learner": who, "error": "",
         "accuracy": 0.78 - 0.03 * sign * (who == "DPsAdaBoost" and epsilon != NOISELESS) + 1e-5 * seed * len(who)}
        for name, epsilon, seed, who in product(BARE, [*EPSILONS, NOISELESS], SEEDS, ["DPsAdaBoost", "DP-AdaBoost"])
    ]  # fmt: skip
    curve = (
        {ADULT: [0.35, 0.6, 0.81], CENSUS: [0.6, 0.8, 0.802]} if as_said else {name: [0.8, 0.6, 0.4] for name in BARE}
    )
    grown = [
        {"data": name, "records": size, "max_depth": 3, "seed": seed, "part": part,
         "accuracy": curve[name][k] + sign * (part == "train") * 0.1 / (k + 1) + 1e-5 * seed * (k + 1) * len(part)}
        for name, (k, size), seed, part in product(BARE, enumerate([100, 400, 1600]), SEEDS, ["train", "test"])
    ]  # fmt: skip
    return Runs(table, table, pd.DataFrame(stumps), pd.DataFrame(grown), {ADULT: 4, CENSUS: 5})


def verdicts(which: Runs) -> dict[str, str]:
    return {said.id: finding.verdict for said, finding in judge(Statements("boosting"), which).table().rows}


@pytest.mark.claim(
    "exp-boosting-epsilon", "exp-boosting-noise-small", "exp-boosting-depth-rises", "exp-boosting-overfit",
    "exp-boosting-best-adult", "exp-boosting-accuracy-adult", "exp-boosting-best-census",
    "exp-boosting-accuracy-census", "exp-boosting-size-train", "exp-boosting-size-rises",
    "exp-boosting-noise-vanishes", "exp-boosting-depth-noisier", "exp-boosting-census-noisier",
    "exp-boosting-census-400", "exp-boosting-precision-epsilon", "exp-boosting-precision-adult",
    "exp-boosting-precision-census", "exp-boosting-precision-recall", "exp-boosting-f1", "exp-boosting-auc-epsilon",
    "exp-boosting-auc-adult", "exp-boosting-auc-census", "exp-boosting-auc-unsteady", "exp-boosting-census-auc",
    "exp-boosting-stumps", "exp-boosting-stumps-noise", "exp-boosting-one-call", "exp-boosting-time",
)  # fmt: skip
def test_each_sentence_is_judged_by_its_effect():
    found = verdicts(runs(True))
    assert {name for name, verdict in found.items() if verdict != REPRODUCED} == {"exp-boosting-time"}
    turned = verdicts(runs(False))
    same = {"exp-boosting-noise-vanishes", "exp-boosting-auc-unsteady"}  # sizes, whatever their sign
    assert {name for name, verdict in turned.items() if verdict == REPRODUCED} == same
    values = {f"exp-boosting-{word}" for word in ("accuracy-adult", "accuracy-census", "f1", "auc-adult", "auc-census")}
    assert {name for name, verdict in turned.items() if verdict not in (OPPOSITE, UNREAD)} == values | same


def test_where_the_published_budget_is_not_positive_nothing_is_judged():
    which = runs(True)
    noisy = (which.published["data"] == CENSUS) & (which.published["epsilon"] != NOISELESS)
    which.published = which.published.assign(error=np.where(noisy, "no budget", ""))
    which.proved = which.published.assign(error="")
    found = verdicts(which)
    for word in ("best-census", "accuracy-census", "precision-census", "auc-census", "census-400", "census-auc"):
        assert found[f"exp-boosting-{word}"] == UNRUN
    assert found["exp-boosting-best-adult"] == REPRODUCED
    assert found["exp-boosting-epsilon"] == NOT  # it is said of both sets


def test_a_set_that_is_not_there_is_not_judged():
    which = runs(True)
    for name in ("published", "proved", "stumps", "grown"):
        table = getattr(which, name)
        setattr(which, name, table[table["data"] == ADULT])
    which.head = {ADULT: 4}
    found = verdicts(which)
    assert (found["exp-boosting-best-adult"], found["exp-boosting-best-census"]) == (REPRODUCED, UNRUN)
    assert found["exp-boosting-census-noisier"] == UNRUN


def test_measures_are_those_of_the_definitions():
    rng = np.random.default_rng(0)
    y, scores = rng.choice(["a", "b"], 50, p=[0.7, 0.3]), np.round(rng.normal(0, 1, 50), 1)
    found = measures(y, scores, np.array(["a", "b"]), "a")
    said = np.where(scores > 0, "b", "a")
    hits = ((said == "a") & (y == "a")).sum()
    assert found["accuracy"] == (said == y).mean()
    assert found["precision"] == hits / (said == "a").sum()
    assert found["recall"] == hits / (y == "a").sum()
    assert found["F1"] == pytest.approx(2 / (1 / found["precision"] + 1 / found["recall"]))
    assert found["AUC"] == pytest.approx(roc_auc_score(y == "b", scores))


def test_a_fit_is_measured_and_what_stops_the_paper_is_noted():
    data = datasets.load("breast-cancer").split(test_size=0.3, random_state=0)
    found = fit(DPsAdaBoostClassifier, data, 0, variant="published", epsilon=5.0, n_estimators=2, max_depth=2)
    assert found["error"] == "" or "ln(alpha)" in found["error"]
    assert commonest(data) == data.y.mode()[0]
    stopped = fit(DPsAdaBoostClassifier, data, 0, variant="published", epsilon=0.01, n_estimators=10, max_depth=4)
    assert "is not positive" in stopped["error"]
    with pytest.raises(ValueError, match="max_depth"):
        fit(DPsAdaBoostClassifier, data, 0, max_depth=-1)
    ran = fit(DPsAdaBoostClassifier, data, 0, variant="published", epsilon=50.0, n_estimators=1, max_depth=2)
    assert ran["calls"] >= 1  # all features are numbers: a split asks for a cut of each that it tries
    assert ran["loss"] == np.inf


def test_each_reading_of_the_notes_is_in_the_box():
    notes = DPsAdaBoostClassifier.__doc__.partition("Notes\n")[2].partition("Examples")[0]
    page = (Path(__file__).parents[1] / "book" / "boosting.md").read_text(encoding="utf-8")
    box = page.partition(":::{admonition} What was read")[2].partition("\n:::")[0]
    for note, read in (
        ("30 % of the\n", "30 %"), ("alpha of the round before", "Which $\\alpha_t$"),
        ("ln(alpha)", "natural logarithm"),
        ("Cost-complexity pruning", "cost-complexity pruning"), ("half for a noisy record count", "the text's halves"),
        ("inside the\n    node's range", "could divide the node"), ("public edges", "$|R_i|$"),
        ("above 1/2", r"\tau_t > \frac12"), ("without errors", r"\tau_t = 0"),
    ):  # fmt: skip
        assert re.sub(r"\s+", " ", note) in re.sub(r"\s+", " ", notes)
        assert read in box
