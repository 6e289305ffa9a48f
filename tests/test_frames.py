"""Columns by their names, in the frames of every library, and in the same words where one is missing."""

from __future__ import annotations

import sqlite3
from collections import UserDict, UserList, deque, namedtuple
from decimal import Decimal
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema, load
from dpforest.engines import TableError
from dpforest.engines.parquet import Parquet
from dpforest.schema import frames

SCHEMA = Schema(
    numeric={"n": (0, 1)}, categorical={"c": ["a", "b", 3]}, classes=["no", "yes"], columns=["c", "n"], missing="bin"
)
TABLE = {"n": [0.1, None, 0.7, 0.4], "more": [1, 2, 3, 4], "c": ["a", None, "b", "3"], "y": ["no", "yes", "no", "yes"]}
CODES = [[0, 3, 1, 2], [1, 10, 7, 4]]


def polars():
    import polars

    return polars.DataFrame(TABLE)


class Streamed:
    """A frame of nobody's library that gives an Arrow stream, and an array without names."""

    columns = tuple(TABLE)

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table(TABLE).__arrow_c_stream__(requested_schema)

    def __array__(self, dtype=None, copy=None):
        return pd.DataFrame(TABLE).to_numpy(dtype=object)


class Given:
    """The same as an Arrow array of structures."""

    def __arrow_c_array__(self, requested_schema=None):
        return pa.RecordBatch.from_pydict(TABLE).__arrow_c_array__(requested_schema)

    __array__ = Streamed.__array__


def rows() -> list[tuple]:
    return [*zip(*TABLE.values(), strict=True)]


def of_a_data_base() -> list:
    """Rows as the standard library's data base gives them."""
    base = sqlite3.connect(":memory:")
    base.row_factory = sqlite3.Row
    base.execute("CREATE TABLE t (n, more, c, y)")
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows())
    found = base.execute("SELECT y, c, more, n FROM t").fetchall()
    base.close()
    return found


FORMS = {
    "Arrow, a batch of records": lambda: pa.RecordBatch.from_pydict(TABLE),
    "Arrow, a stream of somebody's": Streamed,
    "Arrow, an array of somebody's": Given,
    "Arrow, a reader of batches": lambda: pa.table(TABLE).to_reader(max_chunksize=3),
    "Arrow, two columns of one name": lambda: pa.table(
        [*map(pa.array, TABLE.values()), pa.array([0] * 4), pa.array([1] * 4)], names=[*TABLE, "twice", "twice"]
    ),
    "columns": lambda: TABLE,
    "columns of a mapping of somebody's": lambda: UserDict(TABLE),
    "columns of every kind": lambda: {
        "c": pd.Series(TABLE["c"], dtype="category"),
        "y": tuple(TABLE["y"]),
        "n": np.array(TABLE["n"], dtype=float),
        "more": pa.array(TABLE["more"]),
    },
    "records": lambda: [dict(zip(TABLE, row, strict=True)) for row in rows()],
    "records, in another order each": lambda: [
        dict(sorted(zip(TABLE, row, strict=True), reverse=place % 2)) for place, row in enumerate(rows())
    ],
    "records in a sequence of somebody's": lambda: deque(dict(zip(TABLE, row, strict=True)) for row in rows()),
    "named tuples in a list of somebody's": lambda: UserList(map(namedtuple("Row", [*TABLE])._make, rows())),
    "named tuples": lambda: [*map(namedtuple("Row", TABLE)._make, rows())],
    "rows of pandas": lambda: [row for _, row in pd.DataFrame(TABLE).iterrows()],
    "rows of a data base": of_a_data_base,
    "a structured array": lambda: np.array(rows(), dtype=[(name, object) for name in TABLE]),
    "rows of a structured array": lambda: [*np.array(rows(), dtype=[(name, object) for name in TABLE])],
    "pandas": lambda: pd.DataFrame(TABLE),
    "pandas on Arrow": lambda: pd.DataFrame(TABLE).convert_dtypes(dtype_backend="pyarrow"),
    "pyarrow": lambda: pa.table(TABLE),
    "pyarrow, in pieces": lambda: pa.concat_tables([pa.table(TABLE)[:1], pa.table(TABLE)[1:]]),
    "pyarrow, dictionaries": lambda: pa.table({**TABLE, "c": pa.array(TABLE["c"]).dictionary_encode()}),
    "pyarrow, decimals": lambda: pa.table({**TABLE, "n": pa.array([v and Decimal(str(v)) for v in TABLE["n"]])}),
    "pyarrow, single precision": lambda: pa.table({**TABLE, "n": pa.array([0.125, None, 0.75, 0.4], pa.float32())}),
} | ({"polars": polars} if find_spec("polars") else {})


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_columns_are_found_by_their_names(form):
    assert SCHEMA.encode(form(), 10).codes.tolist() == CODES
    model = EDPRFClassifier(epsilon=1.0, schema=SCHEMA, n_estimators=2, max_depth=2, random_state=0)
    expected = model.fit([*zip(TABLE["c"], TABLE["n"], strict=True)], TABLE["y"]).to_dict(seeded=True)
    said = model.predict_proba([*zip(TABLE["c"], TABLE["n"], strict=True)])
    for y in ("y", TABLE["y"], frames.columns_of(form()).pick(["y"])[0]):
        assert model.fit(form(), y).to_dict(seeded=True) == expected
        assert model.feature_names_in_.tolist() == ["c", "n"]
        np.testing.assert_array_equal(model.predict_proba(form()), said)


class Named:
    """What becomes an array and has names that nobody understands."""

    def __init__(self, **names):
        self.__dict__.update(names)

    def __array__(self, dtype=None, copy=None):
        return np.array([["a", 0.5], ["b", 0.5]], dtype=object)


class NamedArray(np.ndarray):
    columns = ("n", "c")


@pytest.mark.parametrize(
    "table",
    [
        *(Named(**{names: ["n", "c"]}) for names in ("columns", "column_names", "colnames", "names", "schema")),
        np.array([["a", 0.5], ["b", 0.5]], dtype=object).view(NamedArray),
        namedtuple("Columns", ["n", "c"])([0.5, 0.5], ["a", "b"]),
    ],
    ids=lambda table: type(table).__name__,
)
def test_names_are_never_dropped(table):
    """By their order, the columns of what has names would be taken for one another without a word."""
    model = RandomTreesClassifier(epsilon=1.0, schema=SCHEMA, n_estimators=2, max_depth=2, random_state=0)
    with pytest.raises(TypeError, match=r"names \(.*\) are not understood here.*mapping such as"):
        model.fit(table, ["no", "yes"])
    assert not hasattr(model, "guarantee_")
    model.fit([["a", 0.5], ["b", 0.5]], ["no", "yes"])
    with pytest.raises(TypeError, match=r"names \(.*\) are not understood here"):
        model.predict(table)


def test_what_has_no_names_is_still_an_array():
    rows = [["a", 0.5], ["b", 0.5]]
    tensor = Named(names=(None, None))  # as those of torch
    for table in (Named(), tensor, np.array(rows, dtype=object).view(np.memmap), tuple(map(tuple, rows)), deque(rows)):
        assert SCHEMA.encode(table, 10).codes.tolist() == [[0, 1], [5, 5]]


@pytest.mark.parametrize(
    ("table", "error", "text"),
    [
        ({"n": 0.5, "c": "a"}, ValueError, r"no columns: pass one record as a list of one, \[X\]"),
        ({"n": [0.5], "c": "a"}, ValueError, r"no columns: pass one record as a list of one"),
        ({"n": [0.5, 0.5], "c": ["a"]}, ValueError, "the columns of X have from 1 to 2 rows"),
        ({"n": [[0.5, 0.5]], "c": ["a"]}, ValueError, "column 'n' of X must be one-dimensional"),
        ({"n": [0.5]}, ValueError, r"X has no column 'c'; it has \['n'\]"),
        ({"n": [0.5], "c": ["a"], 1: [1], "1": [2]}, None, ""),
        ([{"n": 0.5, "c": "a"}, {"n": 0.5, "C": "b"}], ValueError, "record 1 of X has no 'c': write None"),
        ([{"n": 0.5, "c": "a"}, ["b", 0.5]], TypeError, "some rows of X have names, and others, such as a list"),
        (
            [{"n": 0.5, "c": "a"}, pd.Series([0.5, 0.7, "a"], ["n", "n", "c"])],
            ValueError,
            "record 1 of X has 'n' more th",
        ),
        ([{"n": 0.5, "c": "a", 1: 2, "1": 3}], None, ""),
        ([{"n": 0.5}], ValueError, r"X has no column 'c'; it has \['n'\]"),
        (pa.array([0.5]), ValueError, "Expected 2D array, got 1D array"),
        (pd.Series({"n": 0.5, "c": "a"}), ValueError, r"if it is one row, pass X.to_frame\(\).T"),
    ],
)
def test_columns_and_records_that_are_none(table, error, text):
    if error is None:
        assert SCHEMA.encode(table, 10).codes.tolist() == [[0], [5]]
        return
    with pytest.raises(error, match=text):
        SCHEMA.encode(table, 10)


def test_a_column_that_is_there_twice_is_not_guessed():
    twice = pa.table([pa.array(["a"]), pa.array([0.5]), pa.array([0.7])], names=["c", "n", "n"])
    with pytest.raises(ValueError, match=r"X has more than one column 'n'$"):
        SCHEMA.encode(twice, 10)
    with pytest.raises(ValueError, match=r"X has more than one column 'n'$"):
        SCHEMA.encode(twice.to_pandas(), 10)


def test_what_a_record_says_is_no_matter_of_the_records_beside_it():
    record = {"n": 0.7, "c": "3"}
    for others in ([], [{"n": None, "c": 3}], [{"n": "0.1", "c": "b", "more": 1}]):
        codes = SCHEMA.encode([*others, record], 10).codes[:, -1]
        assert codes.tolist() == SCHEMA.encode([record], 10).codes[:, 0].tolist() == [2, 7]


def test_predict_and_loaded_models_take_columns_by_name(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(200), "b": rng.random(200)})
    y = np.where(frame["a"] > 0.5, "yes", "no")
    schema = Schema(numeric={"a": (0, 1), "b": (0, 1)}, classes=["no", "yes"])
    model = RandomTreesClassifier(epsilon=50.0, schema=schema, n_estimators=20, max_depth=4, random_state=0)
    model.fit(frame, y).save(tmp_path / "model.json", seeded=True)
    wanted = model.predict_proba(frame)
    turned = frame.assign(more=b"")[["more", "b", "a"]]
    assert not np.array_equal(model.predict_proba(frame.set_axis(["b", "a"], axis=1)), wanted)
    pq.write_table(pa.table(turned), tmp_path / "rows.parquet")
    loaded = load(tmp_path / "model.json")
    assert (loaded.feature_names_in_.tolist(), loaded.n_features_in_) == (["a", "b"], 2)
    for one in (model, loaded):
        for X in (turned, pa.table(turned), tmp_path / "rows.parquet", Parquet(tmp_path / "rows.parquet")):
            np.testing.assert_array_equal(one.predict_proba(X), wanted)
        np.testing.assert_array_equal(load(tmp_path / "model.json").predict_proba(frame.to_numpy()), wanted)
        for X, error in ((pa.table(turned).drop(["a"]), ValueError), (tmp_path / "less.parquet", TableError)):
            pq.write_table(pa.table(turned).drop(["a"]), tmp_path / "less.parquet")
            with pytest.raises(error, match=r"has no column 'a'; it has \['more', 'b'\]"):
                one.predict(X)


def test_one_column():
    for y in (
        [0, 1, "a"],
        (0, 1, "a"),
        np.array([0, 1, "a"], dtype=object),
        pd.Series([0, 1, "a"]),
        pd.Index([0, 1, "a"]),
        pd.Categorical([0, 1, "a"]),
        [[0], [1], ["a"]],
        pd.DataFrame({"y": [0, 1, "a"]}),
    ):
        assert list(frames.one_column(y, "y")) == [0, 1, "a"]
    assert list(frames.one_column(pa.chunked_array([["a"], ["b"]]), "y")) == ["a", "b"]
    assert list(frames.one_column(pa.table({"y": [1, 2]}), "y")) == [1, 2]


@pytest.mark.parametrize(
    ("y", "error", "text"),
    [
        (np.ma.masked_array([0, 1], mask=[True, False]), TypeError, "masked arrays hide values that are still there"),
        ([np.ma.masked_array([0], mask=True), [1]], TypeError, "masked arrays hide values"),
        (pa.table({"y": [1], "z": [1]}), ValueError, r"y must be one-dimensional, not of shape \(1, 2\)"),
        (pd.DataFrame({"y": [1], "z": [1]}), ValueError, r"y must be one-dimensional, not of shape \(1, 2\)"),
        ("no", ValueError, r"y must be one-dimensional, not of shape \(\)"),
        (None, ValueError, r"y must be one-dimensional, not of shape \(\)"),
    ],
)
def test_what_is_no_column(y, error, text):
    with pytest.raises(error, match=text):
        frames.one_column(y, "y")
    with pytest.raises(error, match=text):
        Schema(numeric={"x": (0, 1)}, classes=[0, 1]).encode_labels(y)


@pytest.mark.parametrize("classes", [[0, 1, "a"], [1, "1"], [0.5, "0.5", 1]])
def test_labels_of_several_types_are_told_apart(classes):
    schema = Schema(numeric={"x": (0, 1)}, classes=classes)
    for y in (
        classes,
        np.array(classes, dtype=object),
        pd.Series(classes, dtype=object),
        [[label] for label in classes],
    ):
        assert schema.encode_labels(y).tolist() == [*range(len(classes))]
    model = RandomTreesClassifier(epsilon=100.0, schema=schema, n_estimators=10, max_depth=2, random_state=0)
    X = [[place / len(classes)] for place in range(len(classes))] * 20
    found = model.fit(X, classes * 20).predict(X[: len(classes)])
    assert [(type(label), label) for label in found] == [(type(label), label) for label in classes]


def test_declared_numbers_differ_as_doubles():
    for declared in ([2**53, 2**53 + 1], [1, True], [0, 0.0, "0"]):
        with pytest.raises(ValueError, match="must list different values, numbers being compared as doubles"):
            Schema(categorical={"c": declared}, classes=[0, 1])
    with pytest.raises(ValueError, match="must list different values"):
        Schema(numeric={"x": (0, 1)}, classes=[2**60, 2**60 + 1])


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (" ", "make it missing"),
        ("?", "make it missing"),
        ("N/A", "make it missing"),
        ("13.56%", "strip the sign"),
        ("$12", "strip the sign"),
        ("€ 1.5", "strip the sign"),
        ("31,144", "a thousands separator"),
        ("$1,234.50", "a thousands separator"),
        ("157,4", "a decimal comma"),
        ("-1,5", "a decimal comma"),
    ],
)
def test_a_text_that_writes_no_number_is_told_the_remedy(text, remedy):
    """And the remedy works: what it leaves is a number, or missing."""
    schema = Schema(numeric={"x": (0, 1)}, classes=[0, 1], missing="bin")
    with pytest.raises(ValueError, match=rf"writes no number; .*{remedy}"):
        schema.encode([[text]], 2)
    mended = pd.Series([text])
    if remedy == "make it missing":
        mended = mended.replace(text, None)
    else:
        mended = mended.str.strip("%$€").str.replace(",", "." if remedy == "a decimal comma" else "")
    assert schema.encode(mended.to_frame("x"), 2).n_rows == 1


@pytest.mark.parametrize("text", ["twelve", "36 months", "<5", "1,2,3", "1.2.3"])
def test_where_no_remedy_is_known_none_is_told(text):
    with pytest.raises(ValueError, match=r"a text that writes no number$"):
        Schema(numeric={"x": (0, 1)}, classes=[0, 1]).encode([[text]], 2)


def test_what_a_text_writes():
    schema = Schema(categorical={"c": [1, "2", "02", "x", "3", True + 3]}, classes=[0, 1], other={"c": "x"})
    for value, code in ((1, 0), ("1", 0), (" 1.0 ", 0), (True, 0), ("True", 3), ("2", 1), ("02", 2), (2, 3), ("2.0", 3),
                        (3, 4), ("3", 4), ("3.0", 4), ("0x1", 3), ("1_0", 3), ("١", 3), ("4e0", 5)):  # fmt: skip
        assert schema.encode([[value]], 2).codes.tolist() == [[code]], value
    flags = Schema(categorical={"c": [False, True]}, classes=[0, 1])
    assert flags.encode([["True"], ["False"], [1], ["0"], [True]], 2).codes.tolist() == [[1, 0, 1, 0, 1]]
