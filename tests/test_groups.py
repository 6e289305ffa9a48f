"""More values than there are codes: groups by a public rule, which the model takes along."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpforest
from dpforest import EDPRFClassifier, Prefix, PrivateBoostingClassifier, Schema, inspect, load
from dpforest.audit.search.traps import table_traps
from dpforest.engines.dask import Dask
from dpforest.engines.parquet import Parquet
from dpforest.inspect.code_names import Words
from dpforest.registry import PAPERS
from dpforest.schema import taxonomies
from tests.shared import quietly

CHAPTERS = {
    "infection": [Prefix("A"), Prefix("B")],
    "heart": [Prefix("I"), "R00"],
    "signs": [Prefix("R"), Prefix("I1")],
    "elsewhere": [],
}
GROUPED = Schema(
    numeric={"x": (0, 1)}, categorical={"d": CHAPTERS}, classes=["no", "yes"], other={"d": "elsewhere"}, missing="bin"
)
FLAT = Schema(
    numeric={"x": (0, 1)},
    categorical={"d": [*CHAPTERS]},
    classes=["no", "yes"],
    other={"d": "elsewhere"},
    missing="bin",
)
CELLS = {"A00.1": 0, "B": 0, "I21": 1, "I": 1, "R00": 1, "I10": 2, "R00.1": 2, "R": 2, "Z99": 3, "": 3, "a00": 3}


def rows(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """A table of raw codes, the same grouped by hand, and labels that the groups explain."""
    rng = np.random.default_rng(seed)
    letter, number = rng.choice(list("ABIRZ"), n), rng.integers(0, 1000, n)
    raw = pd.Series([f"{one}{two:03d}" for one, two in zip(letter, number, strict=True)])
    raw[rng.random(n) < 0.1] = None
    by_hand = raw.map(
        lambda code: (
            {"A": "infection", "B": "infection", "I": "heart", "R": "signs"}.get(code[0], "elsewhere")
            if code[:2] != "I1"
            else "signs"
        ),
        na_action="ignore",
    )
    x = rng.random(n)
    y = np.where((by_hand == "heart").to_numpy() ^ (rng.random(n) < 0.1), "yes", "no")
    return pd.DataFrame({"x": x, "d": raw}), pd.DataFrame({"x": x, "d": by_hand}), y


def answered(schema: Schema) -> Schema:
    """The same for a regressor."""
    return Schema.from_dict({**schema.to_dict(), "classes": None, "target": [0, 1]})


# -- values become groups --------------------------------------------------------------------------------------------


def test_the_longest_beginning_counts_and_a_listed_value_before_all():
    encoded = GROUPED.encode({"x": [0.5] * len(CELLS), "d": [*CELLS]}, 2)
    assert encoded.codes[1].tolist() == [*CELLS.values()]
    assert encoded.other == {"d": 3}
    assert GROUPED.encode({"x": [0.5] * 3, "d": [None, np.nan, "A"]}, 2).codes[1].tolist() == [4, 4, 0]


@pytest.mark.parametrize("number", [8, 8.0, np.float32(8), True, Decimal(8), np.int8(8)])
def test_a_number_has_no_beginning(number):
    """008 that was read as a number has lost its zeros, and would be another diagnosis."""
    for column in ([number], ["A1", number], np.array([number]), pd.Series([number]), pd.Series([number, "A1"])):
        with pytest.raises(ValueError, match=r"column 'd' is grouped by the first characters.*dtype=str"):
            GROUPED.encode({"x": [0.5] * len(column), "d": column}, 2)
    unused = pd.Categorical(["A1"], categories=[7, "A1"])
    assert GROUPED.encode({"x": [0.5], "d": unused}, 2).codes[1].tolist() == [0]
    assert GROUPED.encode({"x": [0.5, 0.5], "d": np.array([np.nan, np.nan])}, 2).codes[1].tolist() == [4, 4]


def test_groups_without_beginnings_tell_texts_and_numbers_apart_as_categories_do():
    """A number is the listed number, else the texts that write it, if they are of one group."""
    groups = {"a": [1, "02", "2.0", "u", True + 3], "b": ["3", 5.5], "c": ["03", "v"]}
    schema = Schema(categorical={"d": groups}, classes=[0, 1], other={"d": "c"})
    for value, code in ((1, 0), ("1", 0), (True, 0), (2, 0), ("2", 0), ("02", 0), ("u", 0), (4, 0), ("3", 1),
                        ("5.50", 1), ("03", 2), ("v", 2)):  # fmt: skip
        encoded = schema.encode([[value]], 2)
        assert encoded.codes.tolist() == [[code]], value
        assert not encoded.other
    for stray in (3, "3.0", "w", 7):
        assert schema.encode([[stray]], 2).other == {"d": 1}


def test_as_many_codes_as_a_registry_has():
    codes = [f"{letter}{number:03d}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for number in range(1000)]
    schema = Schema(categorical={"d": {f"g{k}": codes[k::255] for k in range(255)}}, classes=[0, 1])
    assert schema.encode({"d": codes}, 2).codes[0].tolist() == [place % 255 for place in range(len(codes))]
    assert Schema.from_json(schema.to_json()) == schema
    for declared, remedy in (
        ({"categorical": {"d": codes}, "classes": [0, 1]}, r"values, not 26000; group them.*with the model.*Prefix"),
        ({"categorical": {"d": {name: [name] for name in codes}}, "classes": [0, 1]}, "values, not 26000; group them"),
        ({"numeric": {"x": (0, 1)}, "classes": codes}, r"values, not 26000; group the labels.*y.map"),
    ):
        with pytest.raises(ValueError, match=remedy):
            Schema(**declared)


# -- a model takes them along ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
@pytest.mark.parametrize("name", [name for names in PAPERS.values() for name in names])
def test_every_learner_fits_the_groups_and_serves_raw_codes(name, tmp_path):
    raw, by_hand, y = rows(120)
    kind = getattr(dpforest, name)
    regression = name.endswith("Regressor")
    options = {"n_estimators": 2} if "n_estimators" in kind.PARAMETERS else {}
    y = (y == "yes").astype(float) if regression else y
    schemas = map(answered, (GROUPED, FLAT)) if regression else (GROUPED, FLAT)
    grouped, flat = (
        quietly(kind(epsilon=5.0, schema=schema, random_state=0, **options), X, y)
        for schema, X in zip(schemas, (raw, by_hand), strict=True)
    )
    ours, theirs = grouped.to_dict(seeded=True), flat.to_dict(seeded=True)
    assert ours["schema"].pop("groups") == {
        "d": [[{"prefix": "A"}, {"prefix": "B"}], [{"prefix": "I"}, "R00"], [{"prefix": "R"}, {"prefix": "I1"}], []]
    }
    assert ours == theirs
    grouped.save(tmp_path / "model.json", seeded=True)
    served = load(tmp_path / "model.json").predict([{"d": code, "x": x} for x, code in raw.to_numpy(object)[:9]])
    np.testing.assert_array_equal(served, flat.predict(by_hand[:9]))


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
def test_engines_read_raw_codes(tmp_path):
    raw, _, y = rows()
    frame = raw.assign(y=y)
    model = EDPRFClassifier(epsilon=5.0, schema=GROUPED, n_estimators=2, max_depth=2, random_state=0)
    expected = model.fit(frame, "y").to_dict(seeded=True)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "rows.parquet", row_group_size=70)
    with dask.config.set({"dataframe.convert-string": False}):
        parts = Dask(dd.from_pandas(frame, npartitions=3), scheduler="sync", progress=False)
    for table in (Parquet(tmp_path / "rows.parquet", progress=False), parts):
        assert model.fit(table, "y").to_dict(seeded=True) == expected
    assert model.fit(pa.table(frame), "y").to_dict(seeded=True) == expected
    said = model.predict_proba(raw)
    np.testing.assert_array_equal(model.predict_proba(Parquet(tmp_path / "rows.parquet", progress=False)), said)


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
def test_what_a_model_says_of_itself_speaks_of_the_groups():
    raw, _, y = rows()
    model = PrivateBoostingClassifier(epsilon=20.0, schema=GROUPED, random_state=0).fit(raw, y)
    assert repr(GROUPED) == "Schema(1 numeric, 1 categorical columns (1 of them by groups), classes=['no', 'yes'])"
    card = inspect.card(model)
    assert "| d | group | 'infection' (A..., B...), 'heart' (I..., R00), 'signs' (R..., I1...)" in card
    assert "'elsewhere' (what no group lists)" in card
    many = Schema(categorical={"d": {"g": [f"{n:02d}" for n in range(9)], "h": [9]}}, classes=["no", "yes"])
    assert "'g' (00, 01, 02, 03, 04, 05, and 3 more), 'h' (9)" in inspect.card(
        PrivateBoostingClassifier(schema=many, random_state=0).fit([["01"], [9]] * 20, ["no", "yes"] * 20)
    )
    said = str(inspect.explain(model, pd.DataFrame({"x": [0.5], "d": ["I21.4"]})))
    assert "d = 'heart'" in said
    assert "I21" not in said
    assert [value.label for value in taxonomies(GROUPED)["d"].children] == [*CHAPTERS, "missing"]


def test_an_audit_has_a_value_for_each_group():
    for schema in (GROUPED, FLAT):
        for code, name in enumerate(CHAPTERS):
            for value in schema.values_of("d", code):
                assert schema.encode({"x": [0.5], "d": [value]}, 2).codes[1].tolist() == [code], name
    assert GROUPED.values_of("d", 3) == []
    assert GROUPED.values_of("d", 4) == [None]
    shadowed = Schema(categorical={"d": {"a": [Prefix("u")], "b": ["u", "v"]}}, classes=[0, 1], other={"d": "b"})
    assert shadowed.values_of("d", 0) == ["u~"]
    for schema in (GROUPED, shadowed):
        found = [pair for pair in table_traps(schema, "add-remove") if "'d'" in pair.name]
        assert any("undeclared" in pair.name for pair in found)
        for pair in found:
            for X, y in (pair.one, pair.other):
                if len(y):
                    schema.encode(X, 2)


# -- declaring, and in a file ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "error", "text"),
    [
        ({}, ValueError, "must list between 1 and 255 values, not 0"),
        ({"a": []}, ValueError, r"categorical\['d'\]\['a'\] lists nothing: leave it out, or declare other="),
        ({"a": ["u"], "b": ["u"]}, ValueError, "must list different values"),
        ({"a": ["u", 1], "b": [True]}, ValueError, "must list different values"),
        ({"a": [Prefix("u")], "b": [Prefix("u")]}, ValueError, r"has Prefix\('u'\) more than once"),
        ({"a": [Prefix("u")], "b": [3]}, TypeError, "list texts only, and no numbers"),
        ({"a": "uv"}, TypeError, r"\['a'\] must be a list of values and of Prefix"),
        ({"a": {"b": ["u"]}}, TypeError, r"\['a'\] must be a list"),
        ({"a": 3}, TypeError, r"\['a'\] must be a list"),
        ({1: ["u"]}, TypeError, "have texts as names, not 1"),
        ({"a": ["u", None]}, ValueError, "lists a missing value"),
        ({"a": [b"u"]}, TypeError, "must be a list of numbers or text"),
        ({"a": [...]}, ValueError, "is left blank"),
        ({"a": ...}, ValueError, "is left blank"),
    ],
)
def test_groups_that_are_none(groups, error, text):
    with pytest.raises(error, match=text):
        Schema(categorical={"d": groups}, classes=[0, 1])


@pytest.mark.parametrize("text", ["", 3, None, b"u"])
def test_a_prefix_has_a_character(text):
    with pytest.raises(TypeError, match="first characters of a text, at least one"):
        Prefix(text)


def test_groups_go_through_a_file_in_any_order_of_its_members(tmp_path):
    for schema in (GROUPED, Schema(categorical={"d": {"b": [1, "1", 2.5], "a": [True + 1]}}, classes=[0, 1])):
        text = schema.to_json(tmp_path / "schema.json")
        for again in (
            Schema.from_json(tmp_path / "schema.json"),
            Schema.from_dict(schema.to_dict()),
            Schema.from_json(json.dumps(json.loads(text), sort_keys=True)),
        ):
            assert again == schema
            assert again.to_json() == text
            assert [*map(type, again.groups["d"][0])] == [*map(type, schema.groups["d"][0])]
    assert "groups" not in FLAT.to_dict()
    assert hash(GROUPED) == hash(FLAT)
    assert GROUPED != FLAT


WRITTEN = GROUPED.to_dict()


@pytest.mark.parametrize(
    "bad",
    [
        [],
        {"d": {}},
        {"d": [["A"]]},
        {"e": [["A"]]},
        {"d": [["A"], ["B"], ["C"], "D"]},
        {"x": [["A"]]},
        {"d": [[{"prefix": 1}], ["B"], ["C"], []]},
        {"d": [[{"prefix": ""}], ["B"], ["C"], []]},
        {"d": [[{"suffix": "A"}], ["B"], ["C"], []]},
        {"d": [[["A"]], ["B"], ["C"], []]},
        {"d": [[None], ["B"], ["C"], []]},
        {"d": [["A"], ["A"], ["C"], []]},
        {"d": [["A"], [], ["C"], []]},
    ],
    ids=str,
)
def test_groups_of_a_file_are_not_believed(bad):
    assert Schema.from_json(json.dumps(WRITTEN)).to_dict() == WRITTEN
    with pytest.raises(ValueError, match=r"not a schema|groups|categorical"):
        Schema.from_json(json.dumps(WRITTEN | {"groups": bad}))


# -- whole numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["even", "doubling"])
@pytest.mark.parametrize("bounds", [(0, 110), (-3, 300), (0, 30), (0.5, 9.5), (1, 2)])
def test_whole_numbers_are_explained_as_such(kind, bounds):
    """Words of a run of bins hold for exactly the whole numbers whose codes are in it."""
    schema = Schema(numeric={"age": bounds}, classes=[0, 1], whole=["age"]).with_grid(kind)
    plain = Schema(numeric={"age": bounds}, classes=[0, 1]).with_grid(kind)
    n_bins = 32
    numbers = range(math.ceil(bounds[0]), math.floor(bounds[1]) + 1)
    codes = dict(zip(numbers, schema.encode([[number] for number in numbers], n_bins).codes[0].tolist(), strict=True))
    words, size, rng = Words(schema, n_bins), int(schema.cardinalities(n_bins)[0]), np.random.default_rng(0)
    for _ in range(60):
        first, last = sorted(rng.integers(0, size, 2))
        inside = (np.arange(size) >= first) & (np.arange(size) <= last)
        meant, said = [number for number in numbers if inside[codes[number]]], words.values(0, inside)
        if not meant or inside.all():
            assert said == Words(plain, n_bins).values(0, inside)
            continue
        low, _, high = said.replace("= ", "").replace("<", "").replace(">", "").partition(" to ")
        least = numbers[0] if "<=" in said else int(low)
        most = numbers[-1] if ">=" in said else int(high or low)
        assert [*range(least, most + 1)] == meant, said


def test_whole_numbers_in_words():
    schema = Schema(numeric={"age": (0, 110), "x": (0, 1)}, classes=[0, 1], whole=["age"], missing="bin")
    assert Schema.from_json(schema.to_json()) == schema
    assert schema.to_dict()["whole"] == ["age"]
    words, codes = Words(schema, 32), np.arange(33)
    assert words.condition(0, codes == 28) == "age 97 to 99"
    assert words.condition(0, codes == 0) == "age <= 3"
    assert words.condition(0, codes == 31) == "age >= 107"
    assert words.condition(0, (codes == 31) | (codes == 32)) == "age >= 107 or missing"
    assert words.condition(1, codes == 0) == "x < 0.03125"
    fine = Words(schema, 220)
    assert fine.condition(0, np.arange(221) == 0) == "age = 0"
    assert fine.condition(0, np.arange(221) == 1) == "age in [0.5, 1)"
    for whole in ("age", ["sex"], [1], True):
        with pytest.raises(ValueError, match=r"whole must be a list of numeric columns of the schema, \['age'\]"):
            Schema(numeric={"age": (0, 110)}, categorical={"sex": ["f"]}, classes=[0, 1], whole=whole)
    with pytest.raises(ValueError, match="not a schema"):
        Schema.from_json(json.dumps(schema.to_dict() | {"whole": "age"}))
