"""A look at a table before anything is learned says at once what fits would say one after the other."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpforest
from dpforest import Budget, RandomTreesClassifier, RandomTreesRegressor, Schema
from dpforest.schema import Prefix

SCHEMA = Schema(numeric={"age": (17, 90)}, categorical={"sex": ["F", "M", 3]}, classes=["no", "yes"])
DIRTY = pd.DataFrame(
    {
        "age": [31, "2", "3%", None, pd.Timestamp(0), [1], "3%", 100],
        "sex": ["F", "m", "F", None, "3", b"x", "m", "x" * 1000],
        "ill": ["no", "yes", "?", None, "no", "no", "no", 1],
        "id": [1, 2, None, 3.5, 2.0**60, (1,), "a", "b"],
    }
)
CLEAN = pd.DataFrame({"age": [31, 40, 95], "sex": ["F", "M", "F"], "ill": ["no", "yes", "no"], "id": [1, 1, 2]})
FOUND = {
    ("column 'age'", "'3%'"): 2,
    ("column 'age'", "Timestamp('1970-01-01 00:00:00')"): 1,
    ("column 'age'", "a list of 1"): 1,
    ("column 'age'", "a missing value"): 1,
    ("column 'sex'", "'m'"): 2,
    ("column 'sex'", "a missing value"): 1,
    ("column 'sex'", "b'x'"): 1,
    ("column 'sex'", f"'{'x' * 37}...{'x' * 38}'"): 1,
    ("labels 'ill'", "'?'"): 1,
    ("labels 'ill'", "a missing value"): 1,
    ("labels 'ill'", "1"): 1,
    ("persons 'id'", "a missing value"): 1,
    ("persons 'id'", "1.152921504606847e+18"): 1,
    ("persons 'id'", "(1,)"): 1,
}


def test_all_that_is_refused_is_said_at_once_and_costs_nothing():
    with Budget(1.0) as budget:
        found = SCHEMA.check(DIRTY, "ill", "id")
    assert budget.spent == 0
    assert not found
    assert {(each.where, each.what): each.rows for each in found.findings if each.refused} == FOUND
    assert [(each.where, each.rows) for each in found.findings if not each.refused] == [("column 'age'", 2)]
    text = str(found)
    assert "do not release" in text
    assert "column 'sex': 2 rows with 'm', 1 row with" in text
    assert max(map(len, text.splitlines())) <= 120
    assert found._repr_html_().startswith("<pre>8 rows; a fit refuses this table")
    assert "other={'sex': &lt;a declared category&gt;}" in found._repr_html_().replace("&#x27;", "'")


def test_names_and_shapes():
    twice = pd.DataFrame(np.zeros((2, 3)), columns=["age", "age", "there"])
    found = SCHEMA.check(twice, "ill", "id")
    assert [(each.where, each.what) for each in found.findings] == [
        ("column 'age'", "it is there 2 times"),
        ("column 'sex'", "there is none"),
        ("column 'ill'", "there is none"),
        ("column 'id'", "there is none"),
    ]
    assert "5 columns and no names" in str(SCHEMA.check(np.zeros((2, 5))))
    assert "no rows" in str(SCHEMA.check(CLEAN[:0]))
    assert "2 of them for 3 rows" in str(SCHEMA.check(CLEAN, ["no", "no"]))
    assert "a column of the schema" in str(SCHEMA.check(CLEAN, "ill", "sex"))
    for no_table in (None, 3, "nowhere.parquet", np.ma.masked_array(np.zeros((2, 2)))):
        assert not SCHEMA.check(no_table)


@pytest.fixture
def forms(tmp_path):
    CLEAN.to_parquet(tmp_path / "clean.parquet")
    CLEAN.assign(sex=["F", "m", "m"], ill=["?", "no", "no"]).to_parquet(tmp_path / "dirty.parquet", row_group_size=1)
    return tmp_path


def test_every_kind_of_table_is_looked_at(forms):
    dirty = pd.read_parquet(forms / "dirty.parquet")
    wanted = SCHEMA.check(dirty, "ill")
    assert [(each.what, each.rows) for each in wanted.findings if each.refused] == [("'m'", 2), ("'?'", 1)]
    assert SCHEMA.check(dirty[["age", "sex"]].to_numpy().tolist(), dirty["ill"].tolist()).n_rows == 3
    for table in (pa.Table.from_pandas(dirty), str(forms / "dirty.parquet")):
        assert SCHEMA.check(table, "ill") == wanted
    assert SCHEMA.check([forms / "clean.parquet", forms / "dirty.parquet"], "ill").n_rows == 6
    assert SCHEMA.check(forms / "clean.parquet", "ill", "id").ok
    assert "there is none" in str(SCHEMA.check(forms / "clean.parquet", "well"))


def test_a_dask_frame_is_looked_at_piece_by_piece(forms):
    dask = pytest.importorskip("dask.dataframe")
    dirty = pd.read_parquet(forms / "dirty.parquet")
    found = SCHEMA.check(dask.from_pandas(dirty, npartitions=2), "ill")
    assert [(each.what, each.rows) for each in found.findings if each.refused] == [("'m'", 2), ("'?'", 1)]


CELLS = [1, "1", "u", 0.5, "0.5", None, np.nan, True, "True", Decimal("0.5"), "", " 1 ", b"u", pd.NA, "nan", np.inf, 5]


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
@pytest.mark.parametrize("missing", ["error", "bin"])
def test_a_fit_takes_a_table_if_and_only_if_the_look_says_so(missing):
    """Each cell in each place, in a column of its own type and beside a text: a fit and the look agree."""
    X, y = [[0.5, "u"]] * 2, ["u", 1]
    for other in ({}, {"c": "u"}):
        columns = {"numeric": {"x": (0, 1)}, "categorical": {"c": ["u", 1]}, "missing": missing, "other": other}
        schema, number = Schema(**columns, classes=["u", 1]), Schema(**columns, target=(0, 1))
        for cell, place in product(CELLS, ("x", "c", "y", "person", "target")):
            rows, answers, person = [list(row) for row in X], list(y), ["a", "b"]
            if place in ("x", "c"):
                rows[1][place == "c"] = cell
            answers = answers if place != "y" else ["u", cell]
            person = person if place != "person" else ["a", cell]
            kind, declared = RandomTreesClassifier, schema
            if place == "target":
                kind, declared, answers = RandomTreesRegressor, number, [0.5, cell]
            try:
                kind(schema=declared, n_estimators=1, max_depth=1, random_state=0).fit(
                    pd.DataFrame(rows, columns=["x", "c"], dtype=object),
                    np.array(answers, dtype=object),
                    person=np.array(person, dtype=object),
                    max_rows=1,
                )
                taken = True
            except (TypeError, ValueError):
                taken = False
            table = pd.DataFrame(rows, columns=["x", "c"], dtype=object)
            found = declared.check(table, np.array(answers, dtype=object), np.array(person, dtype=object))
            assert bool(found) == taken, (cell, place, str(found))


def test_many_different_cells_are_cut_short():
    found = SCHEMA.check(pd.DataFrame({"age": 20, "sex": [f"{n}{'m' * 200}" for n in range(5000)]}))
    assert sum(each.rows for each in found.findings) == 5000
    assert len(str(found)) < 1500


# -- what is valid ---------------------------------------------------------------------------------------------------

BEYOND = [float("inf"), -float("inf"), 10**400, -(10**400), Decimal("1e999"), np.float64("inf")]


@pytest.mark.parametrize("number", BEYOND, ids=range(len(BEYOND)))
@pytest.mark.parametrize("part", ["categorical", "classes"])
def test_a_number_that_no_file_holds_is_refused_before_anything_is_charged(number, part):
    parts = {"categorical": {"k": [1, 0]}, "classes": ["no", "yes"]}
    parts[part] = {"k": [number, 0]} if part == "categorical" else [number, 0]
    with pytest.raises((TypeError, ValueError), match=f"{part}.*(beyond the largest double|can write down|text)"):
        Schema(**parts)
    description = Schema(categorical={"k": [1, 0]}, classes=["no", "yes"]).to_json()
    written = "1e999" if part == "categorical" else "1" + "0" * 400
    bad = description.replace("[1, 0]" if part == "categorical" else '["no", "yes"]', f"[{written}, 0]")
    with pytest.raises(ValueError, match="beyond the largest double"):
        Schema.from_json(bad)


def test_a_schema_that_was_changed_by_hand_is_refused_before_anything_is_charged():
    changes = [
        {"classes": np.array([np.inf, 0.0])},
        {"categorical": {"sex": ["F", b"M"]}},
        {"other": {"sex": object()}},
        {"numeric": {"age": (float("nan"), 1)}},
        {"columns": ["age"]},
        {"missing": "perhaps"},
        {"classes": None},
    ]
    for change in changes:
        schema = Schema(numeric={"age": (17, 90)}, categorical={"sex": ["F", "M"]}, classes=["no", "yes"])
        vars(schema).update(change)
        with Budget(1.0) as budget, pytest.raises((ValueError, TypeError)):
            RandomTreesClassifier(schema=schema).fit(CLEAN, "ill")
        assert budget.spent == 0, change


CODED = {
    "by their first characters": ({"x": [Prefix("0")], "y": ["1"]}, [1, 7.0]),
    "two texts of one number": (["01", "1", "2"], [1]),
    "two texts of one number, in groups": ({"x": ["01"], "y": ["1", "2"]}, [1.0]),
}


@pytest.mark.parametrize("case", CODED)
def test_a_number_among_coded_texts_may_have_lost_its_zeros(case):
    """A reader that guesses types makes 1 of ``01``: what is wanted is the text, not one more category."""
    codes, numbers = CODED[case]
    schema = Schema(categorical={"k": codes}, classes=["no", "yes"])
    found = schema.check(pd.DataFrame({"k": ["01", *numbers, b"x"]}, dtype=object))
    assert {each.what for each in found.findings if "dtype=str" in each.remedy} == {*map(str, numbers)}
    assert [each.what for each in found.findings if "dtype=str" not in each.remedy] == ["b'x'"]
    assert schema.check(pd.DataFrame({"k": ["01", "1"]}))
    alone = Schema(categorical={"k": ["1", "2"]}, classes=["no", "yes"])
    assert "not declared" in str(alone.check(pd.DataFrame({"k": [1, 3]})))


def test_what_other_stands_for_is_written_as_the_category_is():
    schema = Schema(categorical={"k": [1, 0]}, classes=["no", "yes"], other={"k": Decimal(1)})
    assert Schema.from_json(schema.to_json()) == schema
    assert type(schema.other["k"]) is int


@pytest.mark.parametrize("source", [b"{}", 3, None, [], 1.5, {}])
@pytest.mark.parametrize("read", [Schema.from_json, Budget.from_json, dpforest.load], ids=["schema", "account", "load"])
def test_what_is_neither_text_nor_a_path_is_named(read, source):
    with pytest.raises(TypeError, match=r"pass the path of a JSON file, or JSON as text .*, not "):
        read(source)
