"""Looking into released models: every function for every learner, fitted and loaded, and the words agree with them."""

from __future__ import annotations

import html
import json
import math
import re
from functools import cache

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from shared import quietly, variants_of
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from test_contract import KINDS, fitted, released, table

import dpforest
from dpforest import PrivateBoostingClassifier, Schema, inspect
from dpforest.flagship.priors import noise_variances
from dpforest.flagship.wide_tables import CELLS, GRADIENTS
from dpforest.inspect.text import lines
from dpforest.inspect.view import LEAF, View
from dpforest.models.release import released as read_back

HOSTILE = [
    "$x^{$",
    "a|b",
    "<script>alert(1)</script>",
    "two\nlines\x1b[31m",
    "# **bold** `code`",
    "",
    "missing",
    "1",
    1,
]
every = pytest.mark.parametrize(
    ("name", "variant", "how"),
    [
        (name, variant, how)
        for name, kind in KINDS.items()
        for variant in variants_of(kind)
        for how in ("fitted", "loaded")
    ],
)


@cache
def looked_into(name: str, variant: str = "proved", how: str = "fitted"):
    """A small model, as it was fitted or as a file gives it back."""
    model = fitted(name, variant)
    return model if how == "fitted" else read_back(json.loads(released(model)))


@cache
def hostile():
    """Names that would lay out a page, a formula or a terminal, with missing values, others, and classes 1 and "1"."""
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame({"# x|\n$": rng.uniform(-5, 5, n), "<b>c</b>": rng.choice(np.array(HOSTILE, dtype=object), n)})
    X.loc[rng.random(n) < 0.2, "# x|\n$"] = np.nan
    y = np.empty(n, dtype=object)
    y[:] = ["1" if x > 0 else "$|<i>" if c == "a|b" else 1 for x, c in X.itertuples(index=False)]
    schema = Schema(
        numeric={"# x|\n$": (-5, 5)},
        categorical={"<b>c</b>": HOSTILE},
        classes=[1, "1", "$|<i>"],
        missing="bin",
        other={"<b>c</b>": "a|b"},
    )
    return schema, X, y


@cache
def hostile_model(kind: str):
    schema, X, y = hostile()
    return getattr(dpforest, kind)(epsilon=8.0, schema=schema, random_state=0).fit(X, y), X


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


# -- explanations are the model ---------------------------------------------------------------------------------------


@every
def test_terms_sum_to_the_score_and_the_score_makes_the_answer(name, variant, how):
    model, (X, _) = looked_into(name, variant, how), table(name, n=60, seed=7)
    found = inspect.explain(model, X)
    total = np.zeros_like(found.scores)
    for term in range(len(found.names)):
        total = total + found.terms[:, term]
    np.testing.assert_array_equal(total, found.scores)
    answers = model.predict_proba(X) if is_classifier(model) else model.predict(X)
    np.testing.assert_array_equal(found.answers, answers)
    assert found.shown.shape == (60, len(found.names), len(found.outputs))
    if model._RELEASED == "boosted" and is_classifier(model):
        np.testing.assert_array_equal(found.shown.sum(axis=1).squeeze(), model.decision_function(X))
    if not is_classifier(model):
        low, high = model.schema_.target
        np.testing.assert_allclose(
            np.clip(found.start + found.shown.sum(axis=1)[:, 0], low, high), np.clip(answers, low, high), atol=1e-9
        )
    frame = found.to_frame()
    assert len(frame) == 60 * len(found.names)
    assert list(frame.columns) == ["record", "term", "because", *found.outputs]
    assert str(found).count("together") == 60


@every
def test_the_text_leads_a_record_to_its_leaf(name, variant, how):
    """Every line of a tree's text, read back as a rule, holds for the records that reach it and for no other."""
    model, (X, _) = looked_into(name, variant, how), table(name, n=40, seed=8)
    text = inspect.export_text(model)
    if model._RELEASED == "linear":
        assert text.count("|---") == len(model.linear_.intercept) * (1 + model.linear_.coefficients.shape[1])
        return
    view = View(model)
    shown = lines(view, view.root(0), None)
    assert len(shown) == len(text.splitlines()) == len(lines(view, view.root(0), 1000))
    reached = inspect.explain(model, X).leaves[0]
    for record, leaf in zip(X.to_dict("records"), reached.tolist(), strict=True):
        path, found = [], []
        for depth, condition, _, node in shown:
            del path[max(depth - 1, 0) :]
            path.append(not condition or holds(condition, record))
            if node >= 0 and all(path):
                found.append(node)
        assert found == [leaf], record


def holds(condition: str, record: dict) -> bool:
    """Whether a record keeps to a condition as it is written, by a reader that knows nothing of codes."""
    column, _, words = condition.partition(" ")
    value = record[column]
    return any(_holds_one(part, value) for part in words.split(" or "))


def _holds_one(words: str, value) -> bool:
    if words in ("is anything", "is not missing"):
        return True
    if words in ("is nothing that can occur", "is missing", "missing"):
        return False
    if found := re.fullmatch(r"in \[(.+), (.+)\)", words):
        return float(found[1]) <= value < float(found[2])
    if found := re.fullmatch(r"(<|>=) (.+)", words):
        return value < float(found[2]) if found[1] == "<" else value >= float(found[2])
    found = re.fullmatch(r"(=|in|not in) (.+)", words)
    named = re.findall(r"'([^']*)'", found[2])
    return (value in named) == (found[1] != "not in")


@every
def test_all_else_works_and_tells_what_the_model_tells(name, variant, how):
    model, (X, _) = looked_into(name, variant, how), table(name, n=30, seed=9)
    found = inspect.importances(model)
    assert sorted(found.index) == sorted(model.schema_.columns)
    assert (found.diff().dropna() <= 0).all()
    assert found.min() >= 0
    assert found.max() <= (1 if is_classifier(model) else 80)
    used = set(np.array(model.schema_.columns)[_features_of(model)])
    assert set(found.index[found > 0]) <= used
    for feature in model.schema_.columns:
        curve = inspect.partial_dependence(model, feature, X.iloc[:5])
        assert len(curve) == model.schema_.cardinalities(model.n_bins_)[model.schema_.columns.index(feature)]
        if is_classifier(model):
            assert list(curve.columns) == model.classes_.tolist()
            np.testing.assert_allclose(curve.sum(axis=1), 1)
    first = X.iloc[[0]]  # of one record the curve is what the model says of it
    at = inspect.partial_dependence(model, "city", first).loc[f"= {first.city.iloc[0]!r}"]
    said = model.predict_proba(first) if is_classifier(model) else model.predict(first)
    np.testing.assert_allclose(at, np.ravel(said), rtol=1e-12)
    if name.startswith("PrivateBoosting"):  # the others are drawn by kind below
        inspect.explain(model, X).plot(3)
        inspect.plot_tree(model, 1)


def _features_of(model) -> list[int]:
    if model._RELEASED == "linear":
        return list(range(model.schema_.n_features))
    return sorted(set(View(model).forest.feature.tolist()) - {-1})


ADDITIVE = ("PrivateBoostingClassifier", "PrivateBoostingRegressor", "DPAdaBoostClassifier", "DiffLRRegressor")


@pytest.mark.parametrize("name", [*ADDITIVE, "DPsAdaBoostClassifier", "FunctionalMechanismClassifier"])
def test_effects_sum_to_the_score(name):
    model, (X, _) = looked_into(name), table(name, n=50, seed=3)
    found, view = inspect.effects(model), View(model)
    codes, explained = view.codes(X), inspect.explain(model, X)
    total = found[()].table + np.zeros((50, 1))
    for features, effect in found.items():
        assert effect.table.shape[:-1] == tuple(map(len, effect.labels)) == tuple(map(len, effect.groups))
        assert all((groups.sum(axis=0) == 1).all() for groups in effect.groups)
        if features:
            place = [
                groups[:, codes[model.schema_.columns.index(feature)]].argmax(axis=0)
                for feature, groups in zip(features, effect.groups, strict=True)
            ]
            total = total + effect.table[tuple(place)]
        assert len(effect.to_frame()) == effect.table.size // len(effect.outputs)
    np.testing.assert_allclose(total, view.start + explained.shown.sum(axis=1), atol=1e-9)
    assert sum(len(effect.trees) for effect in found.values()) == (0 if view.kind == "linear" else view.forest.n_trees)
    spreads = [effect.spread for features, effect in found.items() if features]
    assert spreads == sorted(spreads, reverse=True)


def test_what_is_no_sum_of_tables_has_no_effects():
    with pytest.raises(ValueError, match=r"EDPRFClassifier has no effects.*partial_dependence"):
        inspect.effects(looked_into("EDPRFClassifier"))


def test_importance_is_the_distance_that_it_says():
    """A single stump on one of two categories: half of the pairs differ, by the distance of its two leaves."""
    schema = Schema(categorical={"a": ["u", "v"], "b": ["u", "v"]}, classes=["no", "yes"])
    X = pd.DataFrame({"a": ["u", "v"] * 40, "b": ["u", "u", "v", "v"] * 20})
    model = dpforest.DiffLRRegressor(
        epsilon="non-private", schema=Schema(categorical=schema.categorical, target=(0, 10)), random_state=0
    ).fit(X, np.where(X.a == "u", 2.0, 8.0))
    low, high = model.predict(pd.DataFrame({"a": ["u", "v"], "b": ["u", "u"]}))
    found = inspect.importances(model, X)
    # each shift is odd, so every record borrows the other value of a
    assert found["a"] == pytest.approx(high - low, rel=1e-12)
    assert found["b"] == pytest.approx(0, abs=1e-9)


# -- words ------------------------------------------------------------------------------------------------------------


def test_text_is_what_was_declared():
    schema = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v"]}, classes=["no", "yes"])
    X = pd.DataFrame({"x": np.linspace(0, 0.999, 400), "c": ["u", "v"] * 200})
    y = np.where(X.x < 0.5, "no", "yes")
    model = dpforest.PearsonTreeClassifier(epsilon="non-private", schema=schema, max_depth=1, random_state=0, n_bins=4)
    assert inspect.export_text(model.fit(X, y)).splitlines() == [
        "|--- x < 0.5: no 1, yes 0 (noisy counts 200, 0)",
        "|--- x >= 0.5: yes 1, no 0 (noisy counts 200, 0)",
    ]
    assert "x < 0.50: no" in inspect.export_text(model, decimals=2)
    assert inspect.export_text(model, max_depth=0) == "... 2 leaves below"


def test_depth_cuts_the_text():
    model = looked_into("EDPRFClassifier")
    whole, cut = inspect.export_text(model), inspect.export_text(model, max_depth=1)
    assert {line for line in cut.splitlines() if "..." not in line} <= set(whole.splitlines())
    below = sum(int(count) for count in re.findall(r"\.\.\. (\d+) leaves below", cut))
    at_once = sum(": " in line and "..." not in line for line in cut.splitlines())
    assert below + at_once == int((model.forest_.tree(0).feature < 0).sum())


@pytest.mark.parametrize("kind", ["PrivateBoostingClassifier", "EDPRFClassifier", "FunctionalMechanismClassifier"])
def test_hostile_names_stay_in_their_place(kind):
    model, X = hostile_model(kind)
    texts = [inspect.export_text(model), str(inspect.explain(model, X.iloc[:5]))]
    for text in texts:
        assert "\x1b" not in text
        assert "two\nlines" not in text
        assert "# x|\n$" not in text
    answers = inspect.explain(model, X)
    np.testing.assert_array_equal(answers.answers, model.predict_proba(X))
    assert len(set(answers.outputs)) == 3  # 1 and "1" are told apart
    inspect.importances(model), inspect.partial_dependence(model, "<b>c</b>")
    for picture in (inspect.plot_importances(model), answers.plot(0)):
        picture.figure.canvas.draw()  # a formula that is none would raise
    if kind != "FunctionalMechanismClassifier":
        inspect.plot_tree(model, 1).figure.canvas.draw()
    if kind != "EDPRFClassifier":
        key = next(features for features in inspect.effects(model) if 1 <= len(features) <= 2)
        inspect.plot_effect(model, key).figure.canvas.draw()
        inspect.plot_effect(model, key, output="1").figure.canvas.draw()
        with pytest.raises(ValueError, match="output must be one of"):
            inspect.plot_effect(model, key, output="2")


# -- pictures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["EDPRFClassifier", "DiffPETsRegressor", "DPsAdaBoostClassifier", "DiffGenClassifier"])
def test_a_tree_is_drawn_line_by_line(name):
    model = looked_into(name)
    ax = inspect.plot_tree(model, max_depth=2)
    text = "\n".join(label.get_text() for label in ax.texts)
    for line in inspect.export_text(model, max_depth=2).splitlines()[:20]:
        assert line.replace("|", "").replace("---", "").strip().split(":")[0] in text
    own = plt.figure().add_subplot()
    assert inspect.plot_tree(model, ax=own) is own


def test_a_picture_is_a_white_card_in_any_style():
    with plt.style.context("dark_background"):
        ax = inspect.plot_importances(looked_into("EDPRFClassifier"))
        assert mpl.rcParams["text.color"] == "white"  # the session's style is left alone
    assert ax.figure.get_facecolor() == (1, 1, 1, 1)
    assert ax.xaxis.label.get_color() == "black"


def test_leaves_of_noise_are_pale_where_the_ledger_is():
    """Two standard deviations of the sum of two geometric noises, about: from the charge of a leaf."""
    model = looked_into("EDPRFClassifier")
    losses = model.ledger_.charges(LEAF)
    assert losses
    assert View(model).count_deviation == pytest.approx(math.sqrt(2) / min(losses))
    pale = [bar for bar in inspect.plot_tree(model).patches if bar.get_alpha() not in (None, 1.0)]
    assert pale
    loaded = inspect.plot_tree(looked_into("EDPRFClassifier", "proved", "loaded"))
    assert not [bar for bar in loaded.patches if bar.get_alpha() not in (None, 1.0)]


@pytest.mark.parametrize(
    "settings", [{}, {"relation": "replace-one"}, {"delta": 1e-5}, {"relation": "replace-one", "delta": 1e-5}]
)
def test_the_ledger_says_what_each_round_paid_to_measure(settings):
    """As the learner itself handed it out, round by round."""
    paid = []

    class Watched(PrivateBoostingClassifier):
        def measure(self, run, known, sides, choosing, measuring, together=False):
            paid.append(noise_variances(measuring, run.ledger)[0])
            return super().measure(run, known, sides, choosing, measuring, together)

    schema, (X, y) = fitted("PrivateBoostingClassifier").schema_, table("PrivateBoostingClassifier")
    model = Watched(epsilon=4.0, schema=schema, random_state=0, n_estimators="auto", n_rows=3000, **settings).fit(X, y)
    assert len(paid) > 1
    assert model.gap_variances() == pytest.approx(paid, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_ledger_says_what_rounds_for_all_classes_paid(delta):
    """The first table is one of class counts, the others have a weight of 2 in all."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=3000)
    schema = Schema(numeric={"x": (0, 5)}, classes=list(range(5)))
    kind = PrivateBoostingClassifier(epsilon=4.0, delta=delta, schema=schema, random_state=0, n_rows=3000)
    model = kind.fit((y + rng.random(3000))[:, None], y)
    variances, costs = model.gap_variances(), model.ledger_.charges(GRADIENTS[bool(delta)])
    assert len(variances) == len(costs) + 1 == model.boosted_.n_trees - 1
    assert variances[1:] == pytest.approx([noise_variances(cost / 2, model.ledger_)[0] for cost in costs])
    assert inspect.plot_effect(model, "x") is not None


def test_the_band_is_the_noise_of_the_rounds():
    schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    X = pd.DataFrame({"x": np.linspace(0, 1, 500)})
    y = np.where(X.x > 0.5, "yes", "no")
    settings = {"schema": schema, "random_state": 0, "n_estimators": 4, "n_rows": 500}
    model = PrivateBoostingClassifier(epsilon=2.0, **settings).fit(X, y)
    costs = model.ledger_.charges(CELLS[0])
    assert len(costs) == 4
    deviation = math.sqrt(sum(4 / cost**2 for cost in costs)) / (100 / 4)  # Laplace of scale 1 / cost, twice
    (band,) = (part for part in inspect.plot_effect(model, "x", records=100).patches if part.get_label()[:1] == "±")
    height = np.ptp(band.get_path().vertices[:, 1]) if hasattr(band, "get_path") else 0
    height = band.get_height() if hasattr(band, "get_height") else height
    assert height == pytest.approx(4 * deviation, rel=1e-3)
    loaded = read_back(json.loads(released(model)))
    assert not [part for part in inspect.plot_effect(loaded, "x").patches if part.get_label()[:1] == "±"]
    with pytest.raises(ValueError, match="fitted PrivateBoostingClassifier alone"):
        inspect.plot_effect(loaded, "x", records=100)
    with pytest.raises(ValueError, match="records must be a positive number"):
        inspect.plot_effect(model, "x", records=-1)
    with pytest.raises(ValueError, match="no effect of"):
        inspect.plot_effect(looked_into("DPAdaBoostClassifier"), ("age", "city"))


# -- the card ---------------------------------------------------------------------------------------------------------


@every
def test_a_card_tells_what_the_file_and_the_ledger_tell(name, variant, how):
    model = looked_into(name, variant, how)
    text = inspect.card(model, purpose="to *teach* | <b>well</b>", contact="a\n\n# head", format="markdown")
    assert text.startswith(f"# Model card: {name}\n")
    assert r"to \*teach\* \| &lt;b&gt;well&lt;/b&gt;" in text
    assert "\n\\# head\n" in text
    assert "Not stated yet." in text  # of the records
    assert "not for release" in text
    page = inspect.card(model, purpose="<b>", format="html")
    assert "<b>" not in page
    assert page.endswith("</html>\n")
    for paragraph in model.guarantee_.explain().split("\n\n"):
        assert html.escape(" ".join(paragraph.split())) in page
    if how == "fitted":
        assert html.escape(str(model.ledger_)) in page
    else:
        assert "has no ledger" in page


@every
def test_a_model_hands_out_its_own_card(name, variant, how):
    model = looked_into(name, variant, how)
    for form in ("markdown", "html"):
        assert model.card(purpose="to teach", format=form) == inspect.card(model, purpose="to teach", format=form)
    with pytest.raises(ValueError, match="format must be one of"):
        model.card(format="pdf")


def test_a_card_holds_no_seed_and_no_count():
    schema, (X, y) = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"]), (pd.DataFrame({"x": [2.0] * 7411}), None)
    y = np.array(["no", "yes"] * 3705 + ["no"])
    with pytest.warns(dpforest.OutOfSchemaWarning, match="7411"):
        model = PrivateBoostingClassifier(epsilon=0.1, schema=schema, random_state=86028157).fit(X, y)
    for form in ("markdown", "html"):
        text = inspect.card(model, format=form)
        assert "7411" not in text
        assert "86028157" not in text


def test_a_card_keeps_the_lines_of_a_test():
    model = looked_into("EDPRFClassifier")
    said = "private test\n  accuracy  0.81\n  AUC       <0.9>"

    class Test:
        guarantee = model.guarantee_

        def __str__(self) -> str:
            return said

    text = inspect.card(model, test=Test())
    assert "## How good it is\n\n    private test\n      accuracy  0.81\n      AUC       <0.9>\n" in text
    assert html.escape(said) in inspect.card(model, test=Test(), format="html")
    assert "How good" not in inspect.card(model)


@pytest.mark.parametrize("score", [0.9, np.float64(0.9), "accuracy 0.9", {"accuracy": 0.9}])
def test_a_card_takes_no_score_without_noise(score):
    """A card is released, and such a score was computed from people's rows."""
    with pytest.raises(TypeError, match=r"what dpforest\.evaluation\.evaluate returns.*not for release"):
        inspect.card(looked_into("EDPRFClassifier"), test=score)


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_card_of_hostile_names(form):
    text = inspect.card(hostile_model("EDPRFClassifier")[0], format=form)
    assert "<script" not in text
    assert "<b>c" not in text
    assert "\x1b" not in text
    if form == "markdown":
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        assert len(rows) == 2 + 2
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}


# -- wrong arguments --------------------------------------------------------------------------------------------------


def test_wrong_arguments_are_named():
    model = looked_into("EDPRFClassifier")
    X, _ = table("EDPRFClassifier", n=5)
    for function in (inspect.export_text, inspect.importances, inspect.effects, inspect.card, inspect.plot_tree):
        with pytest.raises(TypeError, match="models of this library"):
            function(object())
        with pytest.raises(NotFittedError, match="not fitted yet"):
            function(KINDS["EDPRFClassifier"]())
    for tree in (-1, 99, 1.0, True, "0"):
        with pytest.raises(ValueError, match="tree must be a whole number from 0 to 2"):
            inspect.export_text(model, tree=tree)
    for depth in (-1, 1.5, True):
        with pytest.raises(ValueError, match="max_depth must be"):
            inspect.export_text(model, max_depth=depth)
    for decimals in (-1, 16, 2.0, True):
        with pytest.raises(ValueError, match="decimals must be"):
            inspect.export_text(model, decimals=decimals)
    with pytest.raises(ValueError, match="a linear model has no trees"):
        inspect.plot_tree(looked_into("DiffLRRegressor"))
    with pytest.raises(ValueError, match="'sex' is not a column"):
        inspect.partial_dependence(model, "sex")
    with pytest.raises(TypeError, match="a few records in memory"):
        inspect.explain(model, "records.parquet")
    with pytest.raises(ValueError, match="record must be a whole number from 0 to 4"):
        inspect.explain(model, X).plot(5)
    with pytest.raises(ValueError, match="format must be one of"):
        inspect.card(model, format="pdf")
    with pytest.raises(TypeError, match="must be text"):
        inspect.card(model, purpose=3)
    with pytest.raises(ValueError, match="no records"):
        inspect.importances(model, X.iloc[:0])


def test_too_many_records_are_refused_before_they_are_explained(monkeypatch):
    model, (X, _) = looked_into("EDPRFClassifier"), table("EDPRFClassifier", n=5)
    size = inspect.explain(model, X).terms.size
    monkeypatch.setattr("dpforest.inspect.explanation._MOST", size - 1)
    with pytest.raises(ValueError, match="5 records have too many terms"):
        inspect.explain(model, X)


def test_public_points_spread_evenly():
    view = View(looked_into("EDPRFClassifier"))
    points = view.points(1024)
    for codes, size in zip(points, view.sizes, strict=True):
        counts = np.bincount(codes, minlength=size)
        assert len(counts) == size
        assert np.ptp(counts) <= 1


def test_refits_change_nothing_that_was_looked_at():
    """Looking writes nothing into a model."""
    model = quietly(KINDS["EDPRFClassifier"](**looked_into("EDPRFClassifier").get_params()), *table("EDPRFClassifier"))
    before = released(model)
    inspect.export_text(model), inspect.explain(model, table("EDPRFClassifier")[0]), inspect.card(model)
    assert released(model) == before
