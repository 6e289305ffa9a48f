"""What DiffPETs' paper says of its experiments: each judgement in both directions, on rows whose answer is known."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpforest import DiffPETsClassifier, Schema, datasets
from dpforest.study import diffpets_experiments as pets
from dpforest.study import methods
from dpforest.study.experiments import quiet
from dpforest.study.family import SYSTEMS
from dpforest.study.methods import NON_PRIVATE, PROVED, PUBLISHED
from dpforest.study.statements import Statements
from dpforest.study.statements.rules import VERDICTS

REPRODUCED, NOT, OPPOSITE, UNREAD, UNRUN = VERDICTS
BOOK = Path(__file__).resolve().parents[1] / "book"
BUDGETS, SEEDS = (0.5, 0.75, 1.0), range(5)
NAMES = {PUBLISHED: "DiffPETs, published", PROVED: "DiffPETs, proved"}


def rows_of(
    levels: dict, measure: str = "accuracy", data: str = "mushroom", budgets=BUDGETS, **columns
) -> pd.DataFrame:
    """Rows whose mean is ``levels[name]``, a number or a function of the budget, with a little luck in each repeat."""
    luck = np.random.default_rng(0).normal(scale=1e-3, size=(len(levels), len(budgets), len(SEEDS)))
    rows = []
    for at, (name, level) in enumerate(levels.items()):
        method, _, variant = name.rpartition(", ")
        for e, epsilon in enumerate(budgets):
            mean = level(epsilon) if callable(level) else level
            for seed in SEEDS:
                where = {"data": data, "epsilon": epsilon, "seed": seed, "trees": 10, "height": 4, "loss": epsilon}
                what = {"name": name, "method": method or name, "variant": variant if method else "", "alone": False}
                rows.append(where | what | {measure: mean + luck[at, e, seed]} | columns)
    return pd.DataFrame(rows)


@pytest.mark.claim("exp-diffpets-lower-error", "exp-diffpets-mse")
@pytest.mark.parametrize("measure", ["error", "scaled_mse"])
@pytest.mark.parametrize(("ours", "rival", "verdict"), [(0.1, 0.2, REPRODUCED), (0.2, 0.1, OPPOSITE), (0.1, 0.1, NOT)])
def test_a_lower_error_is_lower_than_each_rivals_at_each_budget(measure, ours, rival, verdict):
    levels = {
        "DiffPETs, published": ours,
        "RDT, published": rival,
        "DiffPETs, proved": 0.1,
        "RDT, proved": 0.2,
    }
    found = pets.lower(rows_of(levels, measure), ["RDT"], measure)
    assert found.verdict == verdict
    assert found.ours.endswith("Once all are repaired: so by the means in 3 of 3, clearly so in 3 of 3")
    if verdict == OPPOSITE:
        assert found.ours.startswith(
            "so by the means in 0 of 3, clearly so in 0 of 3; clearly the other way in 3 (mushroom, RDT, ε = 0.5;"
        )


@pytest.mark.claim("exp-diffpets-lower-error")
def test_one_rival_at_one_budget_is_enough_against_it():
    levels = {name: 0.1 for name in NAMES.values()} | {"RDT, proved": 0.2}
    rows = rows_of(levels | {"RDT, published": lambda epsilon: 0.2 if epsilon < 1 else 0.05}, "error")
    found = pets.lower(rows, ["RDT"], "error")
    assert found.verdict == NOT
    assert "clearly so in 2 of 3; clearly the other way in 1 (mushroom, RDT, ε = 1)" in found.ours


@pytest.mark.claim("exp-diffpets-rises", "exp-diffpets-rises-ten-trees")
@pytest.mark.parametrize(("slope", "verdict"), [(0.1, REPRODUCED), (-0.1, OPPOSITE), (0.0, NOT)])
def test_accuracy_rises_with_the_budget_on_every_set(slope, verdict):
    rows = rows_of({"DiffPETs, published": lambda epsilon: 0.8 + slope * epsilon})
    assert pets.rises_with_budget(rows, "DiffPETs, published").verdict == verdict
    flat = pd.concat([rows, rows_of({"DiffPETs, published": 0.8}, data="nursery")])
    assert pets.rises_with_budget(flat, "DiffPETs, published").verdict == (OPPOSITE if slope < 0 else NOT)
    one = rows[rows["epsilon"] == 1]
    assert pets.rises_with_budget(one, "DiffPETs, published").verdict == UNRUN


@pytest.mark.claim("exp-diffpets-noise")
@pytest.mark.parametrize(("starved", "verdict"), [(0.5, REPRODUCED), (0.8, NOT), (0.9, OPPOSITE)])
def test_noise_is_the_reason_if_much_more_of_it_lowers_the_accuracy(starved, verdict):
    rows = rows_of({"DiffPETs, published": 0.8, pets.STARVED.label: starved})
    assert pets.below(rows, pets.STARVED.label, "DiffPETs, published").verdict == verdict


@pytest.mark.claim("exp-diffpets-small-budget")
def test_a_small_budget_is_judged_at_the_smallest():
    rows = rows_of({"DiffPETs, published": lambda epsilon: 0.8 if epsilon < 0.6 else 0.95, NON_PRIVATE: 0.9})
    assert pets.below(rows, "DiffPETs, published", NON_PRIVATE, at=0.5).verdict == REPRODUCED
    assert pets.below(rows, "DiffPETs, published", NON_PRIVATE, at=1.0).verdict == OPPOSITE


@pytest.mark.claim("exp-diffpets-approaches")
@pytest.mark.parametrize(("slope", "verdict"), [(-0.1, REPRODUCED), (0.1, OPPOSITE), (0.0, NOT)])
def test_an_error_approaches_as_its_gap_falls(slope, verdict):
    rows = rows_of({"DiffPETs, published": lambda epsilon: 0.3 + slope * epsilon, NON_PRIVATE: 0.1}, "scaled_mse")
    found = pets.approaches(rows, "DiffPETs, published")
    assert found.verdict == verdict
    if slope < 0:
        assert "the gap falls by 5" in found.ours
        assert "2.5 times the error without noise at ε = 0.5, 2.0 times at 1" in found.ours


@pytest.mark.claim("exp-diffpets-noiseless")
def test_a_level_line_is_level_to_the_last_bit():
    rows = rows_of({NON_PRIVATE: 0.1}, "scaled_mse")
    assert pets.same_at_every(rows, NON_PRIVATE).verdict == NOT
    assert pets.same_at_every(rows.assign(scaled_mse=0.1), NON_PRIVATE).verdict == REPRODUCED
    assert pets.same_at_every(rows[:0], NON_PRIVATE).verdict == UNRUN


@pytest.mark.claim(
    "exp-diffpets-random-choices",
    "exp-diffpets-random-features",
    "exp-diffpets-gini",
    "exp-diffpets-sulq",
    "exp-diffpets-diffgen",
    "exp-diffpets-dt-diff",
)
@pytest.mark.parametrize(("ours", "verdict"), [(0.9, REPRODUCED), (0.7, OPPOSITE), (0.8, NOT)])
def test_one_of_two_is_more_accurate_throughout(ours, verdict):
    name, rival = pets.READINGS[2].label, "DiffPETs, published"
    assert name == "DiffPETs, K = all, 8 cuts, published"
    found = pets.throughout(rows_of({name: ours, rival: 0.8}), name, [rival], "accuracy", 1)
    assert found.verdict == verdict
    assert pets.throughout(rows_of({rival: 0.8}), name, [rival], "accuracy", 1).verdict == UNRUN
    # named by the rival in full, without its variant
    turned = pets.throughout(rows_of({name: ours, rival: 0.8}), rival, [name], "accuracy", -1)
    assert turned.verdict == verdict
    assert verdict == REPRODUCED or "mushroom, DiffPETs, K = all, 8 cuts, ε = 0.5" in turned.ours


@pytest.mark.claim("exp-diffpets-accurate", "exp-diffpets-fm-error")
def test_against_one_noisy_answer_for_all_records():
    good = rows_of({"FM, published": 0.1, "private mean, proved": 0.2}, "scaled_mse")
    assert pets.worse_than(good, "FM, published", "private mean, proved", "scaled_mse").verdict == OPPOSITE
    assert pets.worse_than(good, "private mean, proved", "FM, published", "scaled_mse").verdict == REPRODUCED
    better = pets.throughout(good, "FM, published", ["private mean, proved"], "scaled_mse", -1)
    assert better.verdict == REPRODUCED


@pytest.mark.claim("exp-diffpets-regression-noise")
@pytest.mark.parametrize(("error", "verdict"), [(0.1, REPRODUCED), (0.3, NOT)])
def test_less_noise_is_a_lower_sensitivity_and_a_lower_error(error, verdict):
    rows = rows_of({"DiffPETs, published": error, "FM, published": 0.2}, "scaled_mse")
    found = pets.less_noise(rows, [2, 11], ["FM"])
    assert found.verdict == verdict
    assert found.ours.startswith("sensitivity: 2 against 18 at least")
    assert pets.less_noise(rows, [], ["FM"]).verdict == UNRUN


@pytest.mark.claim("exp-diffpets-fm-dimension")
def test_sensitivity_grows_with_the_dimension(monkeypatch):
    found = pets.grows_with_features([11, 2])
    assert found.verdict == REPRODUCED
    assert found.ours == "18 at d = 2, 288 at d = 11, for both: 16.00 times for 5.50 d"
    assert pets.grows_with_features([11, 11]).verdict == UNRUN
    monkeypatch.setattr(pets, "published_sensitivity", lambda d, logistic: 5.0)
    assert pets.grows_with_features([2, 11]).verdict == NOT


@pytest.mark.claim("exp-diffpets-diff-lr")
def test_diff_lr_has_the_noise_of_fm(monkeypatch):
    found = pets.diff_lr_sensitivity([2, 11, 12])
    assert found.verdict == NOT
    assert found.ours.startswith("noise of a coefficient: 1.00 to 1.00 times FM's")
    assert pets.diff_lr_sensitivity([]).verdict == UNRUN
    monkeypatch.setattr(pets, "published_sensitivity", lambda d, logistic: 3.0 * (d + 1) ** 2)
    assert pets.diff_lr_sensitivity([2]).verdict == REPRODUCED


@pytest.mark.claim("exp-diffpets-samples", "exp-diffpets-others")
def test_what_cannot_be_run_is_not_in_the_library():
    """As published every tree has a bootstrap, whatever is asked for; the cited works have no learner."""
    schema = Schema(categorical={"x": ["u", "v"]}, classes=["a", "b"])
    with quiet():
        trees = [
            DiffPETsClassifier(schema=schema, variant="published", sampling=sampling, random_state=0)
            .fit([["u"], ["v"]] * 5, ["a", "b"] * 5)
            .forest_
            for sampling in ("all", "poisson")
        ]
    assert np.array_equal(trees[0].values, trees[1].values)
    cited = {"smith2011privacy", "chaudhuri2008privacy", "chaudhuri2011differentially", "li2018differentially"}
    assert cited <= set(re.findall(r"`(\w+)`", (BOOK / "also_named.md").read_text(encoding="utf-8")))
    assert not cited & {system.cites for system in SYSTEMS.values()}


@pytest.mark.claim("exp-diffpets-table-1")
def test_table_1_is_ours_beside_what_cannot_be_read():
    found = pets.table_1({"diabetes": datasets.load("diabetes")})
    assert (found.verdict, found.ours) == (UNREAD, "records × features here: diabetes 442 × 10")


@pytest.mark.claim("exp-diffpets-figure-2", "exp-diffpets-figure-3", "exp-diffpets-figure-4")
def test_a_figure_that_is_lost_has_our_numbers_beside_it():
    level = {"DiffPETs, published": 0.8}
    trees = pd.concat([rows_of(level).assign(trees=1), rows_of({"DiffPETs, published": 0.9}).assign(trees=20)])
    found = pets.best_shape(trees, rows_of(level), "mushroom")
    assert (found.verdict, found.ours) == (UNREAD, "here: best trees 20, up to 90.0 %; best height 4, up to 80.0 %")
    assert pets.best_shape(trees, rows_of(level), "nursery").verdict == UNRUN


def test_sentences_are_judged_on_the_papers_own_sets():
    rows = pd.concat([rows_of({NON_PRIVATE: 0.1}, data=name) for name in ("wine-quality-red", "wine-quality-white")])
    assert set(pets.of_the_paper(rows)["data"]) == {"wine-quality-red"}


def test_methods_run_side_by_side_with_the_shape_and_the_budget_of_the_experiment():
    cancer = {"breast-cancer": datasets.load("breast-cancer")}
    few = [method for method in pets.CLASSIFIERS if method.name in ("RDT", "private majority")]
    rows = methods.measured(few, cancer, [(1.0, 2)], range(2), {"breast-cancer": 15})
    assert rows.groupby("name").size().to_dict() == {
        "RDT, published": 2,
        "RDT, proved": 2,
        "private majority, proved": 2,
    }
    assert (rows["trees"] == 2).all()
    assert few[1].setting("breast-cancer", 1.0, 2, 15)["max_depth"] == 10  # at most 10 if proved
    assert "max_depth" not in few[0].setting("breast-cancer", 1.0, 2, 15)  # chosen by itself
    bare = methods.non_private(
        lambda n, h: _Majority(), cancer, [(0.5, 2), (1.0, 2)], range(2), {"breast-cancer": 1}, 8
    )
    assert bare.groupby("epsilon")["accuracy"].apply(list).tolist()[0] == bare["accuracy"].tolist()[2:]
    starved = pets.starved(cancer, [(1.0, 1)], [0], {"breast-cancer": 1})
    assert starved[["name", "epsilon"]].to_numpy().tolist() == [[pets.STARVED.label, 1.0]]


class _Majority:
    """Says the first class; it has the parameters that a clone needs."""

    def get_params(self, deep=True):
        return {}

    def set_params(self, **parameters):
        return self

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def predict_proba(self, X):
        return np.tile([1.0, 0.0], (len(X), 1))


def test_tables_and_curves_show_what_was_measured():
    levels = {"DiffPETs, published": 0.9, "RDT, published": 0.8, "DiffPETs, proved": 0.7, "RDT, proved": 0.8}
    rows = rows_of(levels)
    rows.loc[rows["variant"] == PUBLISHED, "loss"] = np.inf
    table = methods.orderings(rows, "DiffPETs", ["RDT"], "accuracy", better=1)
    assert [(line["variant"], line["clearly"], line["clearly the other way"]) for line in table] == [
        (PUBLISHED, "every ε", "no ε"),
        (PROVED, "no ε", "every ε"),
    ]
    wide = methods.rows_of_methods(rows, "accuracy")
    assert [line["proved"] for line in wide] == ["ε = ∞", "ε = ∞", "ε", "ε"]
    assert wide[0]["mushroom, ε = 0.5"].startswith("90.")
    figure, axes = methods.curves_of_methods(rows, "accuracy", y="accuracy, %")
    assert len(axes) == 1
    (legend,) = figure.legends
    assert next(text.get_text() for text in legend.get_texts()) == "DiffPETs published, ε = ∞"
    assert methods.gaps(rows, "DiffPETs, published", "RDT, published", "accuracy").keys() == {
        ("mushroom", epsilon) for epsilon in BUDGETS
    }


def test_every_sentence_of_the_paper_is_judged_in_its_notebook():
    from pathlib import Path

    source = (Path(__file__).parents[1] / "notebooks" / "diffpets_experiments.ipynb").read_text(encoding="utf-8")
    figures = {f"exp-diffpets-figure-{number}" for number in (2, 3, 4)}  # in a loop
    assert [said.id for said in Statements("diffpets") if f'judge(\\"{said.id}\\"' not in source] == sorted(figures)
