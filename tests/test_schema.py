"""What is public before the data: declaring, encoding, refusing."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest.schema import TARGET_LEVELS, Encoded, Schema, binning_kernels, grid

NUMERIC = {"age": (0, 100), "income": (-1.5, 2.5)}
CATEGORICAL = {"sex": ["F", "M"], "code": [3, 5, 4], "flag": [False, True]}
COLUMNS = ["sex", "age", "code", "income", "flag"]
SCHEMA = Schema(numeric=NUMERIC, categorical=CATEGORICAL, classes=["no", "yes"], columns=COLUMNS)
TABLE = pd.DataFrame(
    {
        "sex": ["F", "M", "M", "F"],
        "age": [0, 25, 99, 100],
        "code": [3, 4, 5, 3],
        "income": [-1.5, 0.5, 2.4, 2.5],
        "flag": [True, False, True, True],
    }
)
CODES = np.array([[0, 1, 1, 0], [0, 1, 3, 3], [0, 2, 1, 0], [0, 2, 3, 3], [1, 0, 1, 1]], dtype=np.uint8)


def schema(**changes) -> Schema:
    return Schema(
        **{"numeric": NUMERIC, "categorical": CATEGORICAL, "classes": ["no", "yes"], "columns": COLUMNS} | changes
    )


def numeric(low=0, high=1, **more) -> Schema:
    return Schema(numeric={"x": (low, high)}, classes=[0, 1], **more)


def categorical(categories, **more) -> Schema:
    return Schema(categorical={"x": categories}, classes=[0, 1], **more)


def bins(values, n_bins=10, low=0, high=1, **more) -> list[int]:
    return numeric(low, high, **more).encode(np.asarray(values)[:, None], n_bins).codes[0].tolist()


# ---- encoding --------------------------------------------------------------------------------------------------


def read_only(table):
    array = table.to_numpy(dtype=object)
    array.flags.writeable = False
    return array


FORMS = {
    "frame": lambda t: t,
    "frame, chunks of memory": lambda t: pd.concat(
        [t[["sex", "age"]].copy(), t[["code", "income", "flag"]].copy()], axis=1
    ),
    "frame of objects": lambda t: t.astype(object),
    "frame of categories": lambda t: t.astype({"sex": "category", "code": "category", "flag": "category"}),
    "frame of categories in another order": lambda t: t.assign(
        sex=pd.Categorical(t["sex"], ["M", "unused", "F"]), code=pd.Categorical(t["code"], [5, 4, 3], ordered=True)
    ),
    "frame with nullable columns": lambda t: t.astype(
        {"age": "Int64", "code": "Int8", "income": "Float64", "flag": "boolean"}
    ),
    "frame in single precision": lambda t: t.astype({"age": np.float32, "income": np.float32, "code": np.float32}),
    "frame of small integers": lambda t: t.astype({"age": np.uint8, "code": np.int8}),
    "frame with an index": lambda t: t.set_index(pd.Index([9, 9, -1, 0])),
    "objects": lambda t: t.to_numpy(dtype=object),
    "read-only objects": read_only,
    "objects, columns first": lambda t: np.asfortranarray(t.to_numpy(dtype=object)),
    "lists": lambda t: t.to_numpy(dtype=object).tolist(),
    "tuples": lambda t: [tuple(row) for row in t.to_numpy(dtype=object).tolist()],
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_all_forms_of_a_table_give_the_same_codes(form):
    X = form(TABLE)
    before = copy.deepcopy(X)
    encoded = SCHEMA.encode(X, n_bins=4)
    assert isinstance(encoded, Encoded)
    assert encoded.codes.dtype == np.uint8
    assert encoded.codes.flags.c_contiguous
    assert encoded.codes.flags.writeable
    assert encoded.n_rows == 4
    np.testing.assert_array_equal(encoded.codes, CODES)
    assert encoded.clipped == encoded.other == {}
    # the table is left as it was
    assert X.equals(before) if isinstance(X, pd.DataFrame) else np.array_equal(X, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype",
    ["f2", "f4", "f8", np.longdouble, "i8", "i1", "u1", "u8", bool, ">f4", ">f8", ">i4", "U4", object],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_array_types(dtype, order):
    declared = Schema(numeric={"a": (0, 2)}, categorical={"b": [1, 0]}, classes=[0, 1])
    array = np.array([[0, 0], [1, 1], [1, 0], [0, 1]]).astype(dtype, order=order)
    if array.dtype.kind in "US":
        declared = Schema(numeric={"a": (0, 2)}, categorical={"b": np.unique(array)[::-1]}, classes=[0, 1])
    for table in (array, array[::-1][::-1]):
        table = table.view()
        table.flags.writeable = False
        np.testing.assert_array_equal(declared.encode(table, 2).codes, [[0, 1, 1, 0], [1, 0, 1, 0]])


@pytest.mark.slow
def test_a_long_table_is_the_short_one_repeated():
    """Blocks of rows, and rows or columns first in memory, are no part of the answer."""
    rng = np.random.default_rng(0)
    X = rng.normal(0.5, 0.5, (20_011, 3)).astype(np.float32)
    declared = Schema(numeric={name: (0, 1) for name in "abc"}, classes=[0, 1])
    whole = declared.encode(X, 7)
    pieces = [declared.encode(part, 7) for part in np.array_split(X, 5)]
    np.testing.assert_array_equal(whole.codes, np.hstack([piece.codes for piece in pieces]))
    assert whole.clipped == {name: sum(piece.clipped[name] for piece in pieces) for name in "abc"}
    for same in (np.asfortranarray(X), pd.DataFrame(X, columns=list("abc")), X[::-1][::-1], np.hstack([X, X])[:, :3]):
        again = declared.encode(same, 7)
        np.testing.assert_array_equal(again.codes, whole.codes)
        assert again.clipped == whole.clipped


def test_values_outside_the_bounds_are_clipped_and_counted():
    encoded = SCHEMA.encode(TABLE.assign(age=[-5, 101, np.inf, -np.inf], income=[-1.5, -1.6, 2.5, 2.4]), 4)
    np.testing.assert_array_equal(encoded.codes[1], [0, 3, 3, 0])
    np.testing.assert_array_equal(encoded.codes[3], [0, 0, 3, 3])
    assert encoded.clipped == {"age": 4, "income": 1}
    assert all(type(count) is int for count in encoded.clipped.values())
    assert encoded.other == {}


def test_undeclared_categories_go_where_they_were_told_and_are_counted():
    told = schema(other={"sex": "M", "code": 4})
    strange = TABLE.assign(sex=["F", "X", "", "M"], code=[3, 3, 77, -1])
    for X in (strange, strange.astype({"sex": "category"}), strange.astype(object), strange.to_numpy(dtype=object)):
        encoded = told.encode(X, 4)
        np.testing.assert_array_equal(encoded.codes[0], [0, 1, 1, 1])
        np.testing.assert_array_equal(encoded.codes[2], [0, 0, 2, 2])
        assert encoded.other == {"sex": 2, "code": 2}
        assert encoded.clipped == {}
    for X in (strange, strange.astype({"sex": "category"}), strange.to_numpy(dtype=object)):
        with pytest.raises(ValueError, match=r"column 'sex' holds 'X', which is not among.*other=\{'sex'"):
            SCHEMA.encode(X, 4)
    with pytest.raises(ValueError, match="column 'code' holds 77, which"):
        SCHEMA.encode(TABLE.assign(code=[3, 3, 77, 3]), 4)


MISSING = [None, np.nan, pd.NA, float("nan")]


@pytest.mark.parametrize("hole", MISSING, ids=repr)
@pytest.mark.parametrize("column", COLUMNS)
def test_missing_values(hole, column):
    objects = TABLE.astype(object)
    objects.loc[2, column] = hole
    forms = [objects, objects.to_numpy(dtype=object)]
    if column in NUMERIC or column == "code":
        forms.append(objects.assign(**{column: pd.to_numeric(objects[column])}))
        forms.append(objects.assign(**{column: objects[column].astype("Float64")}))
    else:
        forms.append(objects.assign(**{column: objects[column].astype("category")}))
    for X in forms:
        with pytest.raises(ValueError, match=rf"column '{column}' contains NaN; declare Schema\(missing='bin'\)"):
            SCHEMA.encode(X, 4)
        encoded = schema(missing="bin").encode(X, 4)
        expected = CODES.copy()
        expected[COLUMNS.index(column), 2] = schema(missing="bin").cardinalities(4)[COLUMNS.index(column)] - 1
        np.testing.assert_array_equal(encoded.codes, expected)
        assert encoded.clipped == encoded.other == {}


def test_a_missing_value_is_not_an_undeclared_one():
    told = schema(other={"sex": "M"}, missing="bin")
    encoded = told.encode(TABLE.assign(sex=["F", None, "X", "M"]), 4)
    assert encoded.codes[0].tolist() == [0, 2, 1, 1]
    assert encoded.other == {"sex": 1}
    with pytest.raises(ValueError, match="contains NaN"):
        schema(other={"sex": "M"}).encode(TABLE.assign(sex=["F", None, "X", "M"]), 4)
    # nor is the text 'nan' a missing category, while it is no number either
    assert categorical(["nan", "a"]).encode([["a"], ["nan"]], 4).codes.tolist() == [[1, 0]]
    assert bins(["0.1", "nan"], missing="bin") == [1, 10]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [2, 3, 7, 10, 254])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (17, 90), (-0.3, 0.7), (0, 1e-30), (1e6, 1e6 + 1), (-1e30, 1e30)])
def test_the_upper_bound_is_not_missing(low, high, n_bins, dtype):
    """The bin of missing values is for missing values alone, however close to the upper bound a value is."""
    top = np.array([high], dtype)
    near = [np.nextafter(top, np.array([low], dtype))[0]]
    for _ in range(5):
        near.append(np.nextafter(near[-1], dtype(low)))
    values = np.array([np.nan, top[0], *near], dtype)
    codes = bins(values, n_bins, low, high, missing="bin")
    assert codes[0] == n_bins
    assert max(codes[1:]) == codes[1] == n_bins - 1
    assert bins(values[1:], n_bins, low, high) == codes[1:]


# ---- the edges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [2, 3, 7, 10, 16, 73, 100, 255])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (17, 90), (-3, 4), (0, 0.7), (-0.1, 0.2), (2.71, 4.02), (1, 10**9)])
def test_a_value_on_an_edge_belongs_to_the_bin_above(low, high, n_bins):
    declared = numeric(low, high)
    edges = declared.edges("x", n_bins)
    assert edges.shape == (n_bins + 1,)
    assert (edges[0], edges[-1]) == (low, high)
    true = [Fraction(str(low)) * (n_bins - k) / n_bins + Fraction(str(high)) * k / n_bins for k in range(n_bins + 1)]
    assert edges.tolist() == [float(edge) for edge in true]
    assert bins(edges, n_bins, low, high) == [*range(n_bins), n_bins - 1]
    below = np.nextafter(edges[1:], -np.inf)
    assert bins(below, n_bins, low, high) == [*range(n_bins)]
    above = np.nextafter(edges[:-1], np.inf)
    assert bins(above, n_bins, low, high) == [*range(n_bins)]
    # a number in single precision is the number that it is there
    single = edges.astype(np.float32)
    assert bins(single, n_bins, low, high) == bins(single.astype(float), n_bins, low, high)


def test_decimals_fall_where_they_are_written():
    assert bins(np.array([k / 100 for k in range(101)]), 100) == [*range(100), 99]
    assert bins(np.array([k / 10 for k in range(8)]), 7, 0, 0.7) == [*range(7), 6]
    assert bins(np.array([k / 64 for k in range(65)], np.float32), 64) == [*range(64), 63]
    assert bins([50.0], 16, 1, 99) == [8]  # half way, as the hours of work in the Adult data
    assert bins([True, False], 2) == [1, 0]
    assert bins([10**15 + 1], 2, 0, 2 * 10**15) == [1]


def test_bounds_that_single_precision_cannot_tell_apart():
    values = np.array([1e9, 1e9 + 1], np.float32)
    assert values[0] == values[1]
    found = numeric(1e9, 1e9 + 1).encode(values[:, None], 4)
    assert len(set(found.codes[0].tolist())) == 1
    assert found.clipped == {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [2, 7, 32, 100, 255])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 99), (-4, 4), (1e6, 1e6 + 10), (1e9, 1e9 + 1), (-1e38, 1e38)])
def test_bins_are_those_of_a_search_among_the_edges(low, high, n_bins, dtype):
    edges = numeric(low, high).edges("x", n_bins)
    nearest = edges.astype(dtype)
    above, below = np.nextafter(nearest, dtype(np.inf)), np.nextafter(nearest, dtype(-np.inf))
    inside = np.linspace(low, high, 5000).astype(dtype)
    values = np.concatenate([inside, nearest, above, below, np.rint(inside), [np.nan, np.inf, -np.inf]]).astype(dtype)
    expected = np.searchsorted(edges[1:-1], values.astype(float), side="right")
    if n_bins < 255:
        assert bins(values, n_bins, low, high, missing="bin") == np.where(np.isnan(values), n_bins, expected).tolist()
    whole = ~np.isnan(values)
    found = numeric(low, high).encode(values[whole, None], n_bins)
    assert found.codes[0].tolist() == expected[whole].tolist()
    assert found.clipped.get("x", 0) == ((values.astype(float) < edges[0]) | (values.astype(float) > edges[-1])).sum()


def test_edges_refuse():
    with pytest.raises(ValueError, match="'sex' is not a numeric column"):
        SCHEMA.edges("sex", 4)
    with pytest.raises(ValueError, match="n_bins must be"):
        SCHEMA.edges("age", 1)
    SCHEMA.edges("age", 4)[:] = 0  # a copy
    assert SCHEMA.edges("age", 4).tolist() == [0, 25, 50, 75, 100]


# ---- against a slow reference ----------------------------------------------------------------------------------


def slow(declared: Schema, rows, n_bins: int):
    """Codes, clipped and other, one value at a time, with exact comparisons."""
    clipped, other = dict.fromkeys(declared.numeric, 0), dict.fromkeys(declared.categorical, 0)
    table = []
    for row in rows:
        codes = []
        for name, value in zip(declared.columns, row, strict=True):
            if value is None or value != value:
                codes.append(n_bins if name in declared.numeric else len(declared.categorical[name]))
            elif name in declared.numeric:
                low, high = map(Fraction, map(str, declared.numeric[name]))
                inner = [float(low + (high - low) * k / n_bins) for k in range(1, n_bins)]
                codes.append(bisect_right(inner, value))
                clipped[name] += not float(low) <= value <= float(high)
            elif value in declared.categorical[name]:
                codes.append(declared.categorical[name].index(value))
            else:
                codes.append(declared.categorical[name].index(declared.other[name]))
                other[name] += 1
        table.append(codes)
    tallies = ({name: count for name, count in tally.items() if count} for tally in (clipped, other))
    return [list(column) for column in zip(*table, strict=True)], *tallies


SETTINGS = [
    (["a", "b", "c"], ["a", "b", "c", "d", ""]),
    ([0, 1, 2], [-1, 0, 1, 2, 3, 1.5, True, 2.0]),
    ([7, 2, 5], [7, 2, 5, 6, 2.5]),
    ([1, 2], [0, 1, 2, 3]),
    ([4], [4, 5, 4.0]),
    ([0.5, 1.25], [0.5, 1.25, 1, 0.25]),
    ([True, False], [True, False, 0, 1, 2]),
    ([1, "1"], [1, "1", 1.0, "2"]),
]


@st.composite
def problems(draw):
    low = draw(st.integers(-50, 50) | st.floats(-1e3, 1e3))
    high = low + draw(st.integers(1, 100) | st.floats(1e-3, 1e3))
    categories, values = draw(st.sampled_from(SETTINGS))
    declared = Schema(
        numeric={"n": (low, high)},
        categorical={"c": categories},
        classes=[0, 1],
        columns=draw(st.permutations(["n", "c"])),
        other={"c": draw(st.sampled_from(categories))},
        missing="bin",
    )
    n_bins = draw(st.integers(2, 254))
    on_edge = st.sampled_from(declared.edges("n", n_bins).tolist())
    near = on_edge.map(lambda v: float(np.nextafter(v, np.inf))) | on_edge.map(
        lambda v: float(np.nextafter(v, -np.inf))
    )
    number = (
        st.floats(low - 1, high + 1)
        | on_edge
        | near
        | st.integers(-60, 60)
        | st.sampled_from([np.nan, np.inf, -np.inf])
    )
    cells = {"n": number, "c": st.sampled_from([*values, None])}
    rows = draw(st.lists(st.tuples(*(cells[name] for name in declared.columns)), min_size=1, max_size=12))
    return declared, n_bins, [list(row) for row in rows]


@pytest.mark.slow
@given(problems())
@settings(max_examples=200, deadline=None)
def test_against_a_slow_reference(problem):
    declared, n_bins, rows = problem
    expected = slow(declared, rows, n_bins)
    array = np.empty((len(rows), 2), dtype=object)
    for i, row in enumerate(rows):
        array[i] = row
    frame = pd.DataFrame(array, columns=declared.columns)
    for X in (rows, array, frame, frame.assign(n=frame["n"].astype(float))):
        encoded = declared.encode(X, n_bins)
        assert (encoded.codes.tolist(), encoded.clipped, encoded.other) == expected
    assert (encoded.codes.max(axis=1) < declared.cardinalities(n_bins)).all()


TYPES = ["?", *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8", ">f8", ">i4"]
WHOLE = st.integers(-4, 6) | st.sampled_from([-(1 << 24), -130, 127, 128, 250, 300, 4090, 1 << 24, (1 << 24) + 1])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
@given(st.lists(WHOLE | st.sampled_from([0.5, "1", "a"]), min_size=1, max_size=6, unique=True), st.data())
@settings(max_examples=30, deadline=None)
def test_numbers_among_declared_ones(dtype, categories, data):
    """Of any type, whole or not, many or few: as Python's dictionary finds them, and texts that write one of them."""
    dtype = np.dtype(dtype)
    near = WHOLE | st.sampled_from([c for c in categories if not isinstance(c, str)] or [0])
    if dtype.kind == "f":
        near |= st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 0.5, 1.5, 2.0**31, 2.0**63, -1e300])
    with np.errstate(over="ignore"):
        values = np.array(data.draw(st.lists(near, max_size=9)), dtype="f8" if dtype.kind == "f" else "i8").astype(
            dtype
        )
    known = {value: code for code, value in enumerate(categories)}
    known = {int(value): code for value, code in known.items() if value == "1"} | known
    absent, other = len(categories), data.draw(st.integers(0, len(categories) - 1))
    expected = [absent if value != value else known.get(value, other) for value in values.tolist()]
    declared = categorical(categories, missing="bin", other={"x": categories[other]})
    strided = np.repeat(values, 3)[::3]
    for column in (values, strided):
        encoded = declared.encode(pd.DataFrame({"x": column}), 2)
        assert encoded.codes[0].tolist() == expected
        n_others = sum(value == value and value not in known for value in values.tolist())
        assert encoded.other.get("x", 0) == n_others
    if dtype.kind == "f" and np.isnan(values).any():
        with pytest.raises(ValueError, match="column 'x' contains NaN"):
            categorical(categories, other={"x": categories[other]}).encode(values[:, None], 2)
    elif n_others:
        with pytest.raises(ValueError, match="which is not among its declared categories"):
            categorical(categories).encode(values[:, None], 2)


def test_long_columns_of_numbers():
    """More rows than a kernel takes at a time."""
    values = np.arange(10_000) % 7
    declared = categorical([6, 5, 4, 3, 2, 1, 0], missing="bin")
    for column in (values.astype(np.int8), values.astype(np.float32), np.where(values == 3, np.nan, values)):
        codes = declared.encode(pd.DataFrame({"x": column}), 2).codes[0]
        np.testing.assert_array_equal(codes, np.where(np.isnan(column), 7, 6 - values))


@given(st.floats(-1e30, 1e30), st.floats(1e-3, 1e30), st.integers(2, 255), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_bins_are_monotone_and_cover_the_bounds(low, width, n_bins, seed):
    high = low + width
    if not low < high:
        return
    for dtype in (np.float32, np.float64):
        values = np.sort(np.random.default_rng(seed).uniform(low, high, 200).clip(low, high).astype(dtype))
        values = np.concatenate([[dtype(low)], values, [dtype(high)]])
        encoded = numeric(low, high).encode(values[:, None], n_bins)
        assert (np.diff(encoded.codes[0].astype(int)) >= 0).all()
        assert encoded.codes.max() < n_bins
        # single precision may round a value across a bound, double precision does not
        assert encoded.clipped.get("x", 0) == ((values.astype(float) < low) | (values.astype(float) > high)).sum()


# ---- shapes and names of tables --------------------------------------------------------------------------------


def test_cardinalities():
    found = SCHEMA.cardinalities(16)
    assert found.dtype == np.int64
    assert found.tolist() == [2, 16, 3, 16, 2]
    assert schema(missing="bin").cardinalities(16).tolist() == [3, 17, 4, 17, 3]
    assert SCHEMA.n_features == 5
    assert SCHEMA.n_classes == 2
    assert Schema(numeric={"x": (0, 1)}, target=(0, 1)).n_classes == 0


def test_empty_tables():
    for X in (TABLE[:0], TABLE[:0].to_numpy(dtype=object), np.empty((0, 5))):
        encoded = SCHEMA.encode(X, 4)
        assert encoded.codes.shape == (5, 0)
        assert encoded.n_rows == 0
        assert encoded.clipped == encoded.other == {}
    assert SCHEMA.encode_labels([]).shape == (0,)


@pytest.mark.parametrize(
    ("X", "kind", "text"),
    [
        (TABLE.rename(columns={"age": "Age"}), ValueError, r"X has no column 'age'; it has \['sex', 'Age', 'code'"),
        (TABLE.drop(columns=["age", "sex"]), ValueError, r"X has no column 'sex', 'age'; it has \['code', "),
        (TABLE[[*COLUMNS, "age"]], ValueError, r"X has more than one column 'age'"),
        (pa.table(TABLE.drop(columns="age")), ValueError, r"X has no column 'age'; it has \['sex', 'code'"),
        (TABLE.to_numpy()[:, :4], ValueError, "X has 4 features, but Schema is expecting 5 features"),
        (np.empty((3, 0)), ValueError, r"0 feature\(s\)"),
        (TABLE["age"], ValueError, r"Expected 2D array, got 1D array.*a Series.*one row, pass X.to_frame\(\).T"),
        (np.zeros(5), ValueError, "Expected 2D array, got 1D array"),
        (np.zeros((2, 5, 1)), ValueError, "Expected 2D array, got 3D array"),
        ([], ValueError, "Expected 2D array, got 1D array"),
        ([1, 2, 3], ValueError, "Expected 2D array, got 1D array"),
        ([[1, 2], [3]], ValueError, "Expected 2D array, got 1D array"),
        (7, ValueError, "Expected 2D array, got 0D array"),
        ("text", ValueError, "Expected 2D array, got a text or a path instead, 'text'.*read the file before"),
        (Path("a.parquet"), ValueError, "got a text or a path instead, 'a.parquet'.*needs a table in memory"),
        ({"age": [1]}, ValueError, "X has no column 'sex', 'code', 'income', 'flag'; it has \\['age'\\]"),
        (None, ValueError, "Expected 2D array, got 0D array"),
        (scipy.sparse.csr_matrix(np.zeros((3, 5))), TypeError, "Sparse data was passed.*X.toarray"),
        (scipy.sparse.coo_array(np.zeros((3, 5))), TypeError, "Sparse data was passed.*X.toarray"),
        (np.ma.masked_array(np.zeros((3, 5)), mask=True), TypeError, "masked arrays hide values"),
        ([np.ma.masked_array(np.zeros(5), mask=True)], TypeError, "masked arrays hide values"),
        ([["F", np.ma.masked, 3, 0, True]], TypeError, "column 'age', declared numeric, holds a MaskedConstant"),
        (dd.from_pandas(TABLE, npartitions=1), TypeError, r"lazy frame are not computed yet: pass X.collect\(\)"),
        (np.zeros((3, 5), complex), ValueError, "Complex data not supported: column 'age'"),
    ],
)
def test_tables_that_do_not_fit(X, kind, text):
    with pytest.raises(kind, match=text):
        SCHEMA.encode(X, 4)


@pytest.mark.parametrize(
    ("column", "kind", "text"),
    [
        (
            ["1", "2", "three", "4"],
            ValueError,
            "column 'age', declared numeric, holds 'three', a text that writes no number",
        ),
        (
            [1, 2, {}, 4],
            TypeError,
            "column 'age', declared numeric, holds a dict of 0, which is neither a number nor text",
        ),
        ([1, 2, [3], 4], TypeError, "holds a list of 1, which is neither a number nor text"),
        (pd.to_datetime(["2020-01-01"] * 4), TypeError, "holds times"),
        (pd.to_timedelta([1, 2, 3, 4]), TypeError, "holds times"),
        (pd.Categorical(["1", "b", "c", "d"]), ValueError, "holds 'b', a text that writes no number"),
        ([1, 2, ..., 4], TypeError, "holds Ellipsis, which is neither a number nor text"),
    ],
)
def test_a_numeric_column_of_something_else(column, kind, text):
    with pytest.raises(kind, match=text):
        SCHEMA.encode(TABLE.assign(age=column), 4)


def test_a_category_that_cannot_be_compared():
    for column in ([["F"]] * 4, [{"F"}] * 4):
        with pytest.raises(TypeError, match=r"column 'sex' holds a (list|set) of 1, .*neither a number nor text"):
            SCHEMA.encode(TABLE.assign(sex=column), 4)


def test_numbers_written_as_text_and_categories_of_numbers():
    for column in (
        ["0", "25", "99.0", "1e2"],
        pd.Categorical([0, 25, 99, 100]),
        pd.Series(["0", "25", "99", "100"], dtype="string"),
    ):
        np.testing.assert_array_equal(SCHEMA.encode(TABLE.assign(age=column), 4).codes, CODES)


def test_numbered_columns():
    declared = Schema(numeric={0: (0, 1), 1: (0, 1)}, classes=[0, 1])
    assert declared.columns == ["0", "1"]
    values = [[0.1, 0.9], [0.6, 0.2]]
    for X in (values, pd.DataFrame(values), pd.DataFrame(values, columns=["0", "1"])):
        assert declared.encode(X, 2).codes.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("n_bins", [2, np.int64(2), np.uint8(255), 255])
def test_numbers_of_bins(n_bins):
    assert SCHEMA.cardinalities(n_bins)[1] == n_bins
    assert SCHEMA.encode(TABLE, n_bins).codes[1].max() == n_bins - 1


@pytest.mark.parametrize("n_bins", [0, 1, -3, 256, 2.0, 2.5, True, np.bool_(True), "4", None, np.float64(4)])
def test_numbers_of_bins_that_are_none(n_bins):
    for call in (
        lambda: SCHEMA.encode(TABLE, n_bins),
        lambda: SCHEMA.cardinalities(n_bins),
        lambda: SCHEMA.edges("age", n_bins),
    ):
        with pytest.raises(ValueError, match="n_bins must be a whole number between 2 and 255, not"):
            call()
    with pytest.raises(ValueError, match="between 2 and 254, not 255"):
        schema(missing="bin").cardinalities(255)
    assert schema(missing="bin").cardinalities(254)[1] == 255


def test_as_many_categories_as_a_byte_holds():
    names = [f"c{k}" for k in range(255)]
    X = pd.DataFrame({"x": [*names, None, "c254"]})
    codes = categorical(names, missing="bin").encode(X, 2).codes[0]
    assert codes.tolist() == [*range(255), 255, 254]
    as_category = categorical(names, missing="bin").encode(X.astype("category"), 2).codes[0]
    assert as_category.tolist() == codes.tolist()
    with pytest.raises(ValueError, match=r"categorical\['x'\] must list between 1 and 255 values, not 256"):
        categorical([*names, "more"])


# ---- labels and targets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "y", "codes"),
    [
        (["no", "yes"], ["yes", "no", "yes"], [1, 0, 1]),
        ([0, 1], [1, 0, 1], [1, 0, 1]),
        ([0, 1], [1.0, 0.0], [1, 0]),
        ([0, 1], [True, False], [1, 0]),
        ([False, True], [1, 0], [1, 0]),
        ([False, True], [True, False], [1, 0]),
        ([-1, 1], [1, -1], [1, 0]),
        ([3, 1, 2], [1, 2, 3], [1, 2, 0]),
        ([1, 2, 3], [3, 1], [2, 0]),
        ([0.5, 1.5], [1.5, 0.5], [1, 0]),
        ([0, "a"], np.array(["a", 0], dtype=object), [1, 0]),
        (np.array(["b", "a"]), np.array(["a", "b"]), [1, 0]),
        (np.array([2, 7]), pd.Series([7, 2], index=[5, 5]), [1, 0]),
        (["no", "yes"], pd.Categorical(["yes", "no"]), [1, 0]),
        (["no", "yes"], pd.Series(["yes", "no"], index=[5, 5], dtype="category"), [1, 0]),
        ([0, 1], pd.Categorical([1, 0], categories=[2, 1, 0]), [1, 0]),
        (["no", "yes"], pd.DataFrame({"y": ["yes", "no"]}), [1, 0]),
        (["no", "yes"], [["yes"], ["no"]], [1, 0]),
    ],
)
def test_labels(classes, y, codes):
    declared = Schema(numeric={"x": (0, 1)}, classes=classes)
    found = declared.encode_labels(y)
    assert found.dtype == np.uint8
    assert found.tolist() == codes
    assert declared.classes[found].tolist() == np.asarray(y).ravel().tolist()


@pytest.mark.parametrize(
    ("classes", "y", "named"),
    [
        (["no", "yes"], ["no", "maybe"], "'maybe'"),
        ([0, 1], [0, 2], "2"),
        ([0, 1], [0, 0.5], "0.5"),
        ([0, 1], [0, np.inf], "inf"),
        ([1, 2], [1, 0], "0"),
        ([0, 1], ["0", "1"], "'0'"),
        (["0", "1"], [0, 1], "0"),
        (["no", "yes"], pd.Categorical(["no", "maybe"]), "'maybe'"),
    ],
)
def test_unknown_labels_are_named(classes, y, named):
    declared = Schema(numeric={"x": (0, 1)}, classes=classes)
    remedy = "the labels are numbers" if named == "0" and classes == ["0", "1"] else "drop the record"
    with pytest.raises(ValueError, match=rf"Unknown label type: {named} is not among the declared classes.*{remedy}"):
        declared.encode_labels(y)


@pytest.mark.parametrize("shape", [(2, 2), (1, 2), (2, 1, 1), ()])
def test_labels_and_targets_are_one_dimensional(shape):
    with pytest.raises(ValueError, match="y must be one-dimensional, not of shape"):
        SCHEMA.encode_labels(np.full(shape, "no"))
    with pytest.raises(ValueError, match="y must be one-dimensional, not of shape"):
        Schema(numeric={"x": (0, 1)}, target=(0, 1)).encode_target(np.zeros(shape))


def test_targets_lie_on_a_public_grid():
    declared = Schema(numeric={"x": (0, 1)}, target=(-1, 9))
    y = np.array([-2, -1, 0, 4, 9, 11, np.inf], dtype=np.float32)
    y.flags.writeable = False
    codes, count = declared.encode_target(y)
    assert codes.dtype == np.uint8
    assert codes.tolist() == [0, 0, 24, 120, 240, 240, 240]
    assert (count, type(count)) == (3, int)
    assert declared.encode_target([[1], [20]])[0].tolist() == [48, 240]
    assert declared.encode_target([])[1] == 0
    step = 10 / TARGET_LEVELS
    off = np.array([[0.01], [0.49], [-0.01], [-0.49]])  # never half-way between two steps
    near = -1 + step * (np.arange(1, 10) + off)
    assert (declared.encode_target(near.ravel())[0].reshape(near.shape) == np.arange(1, 10)).all()
    assert declared.decode_target([0, 0.5, 1]).tolist() == [-1, 4, 9]
    for hole in ([1, np.nan], [1, None]):
        with pytest.raises(ValueError, match="y contains NaN"):
            declared.encode_target(hole)
    with pytest.raises(ValueError, match="y holds 'a', a text that writes no number"):
        declared.encode_target(["a"])
    with pytest.raises(ValueError, match="a classifier needs classes"):
        declared.encode_labels([0])
    for verb in (SCHEMA.encode_target, SCHEMA.decode_target):
        with pytest.raises(ValueError, match="a regressor needs Schema"):
            verb([0])


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 24, 30, 40, 60, 80, 120, 240])
def test_common_scores_lie_on_the_grid_of_a_target(most):
    declared = Schema(numeric={"x": (0, 1)}, target=(0, most))
    whole = np.arange(most + 1)
    codes = declared.encode_target(whole)[0]
    assert (codes * np.int64(most) == whole * TARGET_LEVELS).all()


# ---- declaring -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"numeric": {}, "categorical": {}, "columns": None}, ValueError, "at least one column"),
        (
            {"numeric": {"a": (1, 1)}},
            ValueError,
            r"numeric\['a'\] must be two finite numbers with low < high, not \(1, 1\)",
        ),
        ({"numeric": {"a": (2, 1)}}, ValueError, "low < high"),
        ({"numeric": {"a": (0, np.nan)}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": (np.nan, 0)}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": (0, np.inf)}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": (-np.inf, 0)}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": (-1e300, 1e300)}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": (0, 10**400)}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": (False, True)}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": ("0", "1")}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": (0, None)}}, ValueError, "two finite numbers"),
        ({"numeric": {"a": (0, 1, 2)}}, TypeError, r"numeric\['a'\] must be a pair \(low, high\)"),
        ({"numeric": {"a": 1}}, TypeError, "must be a pair"),
        ({"categorical": {"a": []}}, ValueError, r"categorical\['a'\] must list between 1 and 255 values, not 0"),
        ({"categorical": {"a": ["x", "y", "x"]}}, ValueError, r"categorical\['a'\] must list different values"),
        ({"categorical": {"a": [1, True]}}, ValueError, "must list different values"),
        ({"categorical": {"a": "xy"}}, TypeError, "must be a list, whose order is that of the codes, not 'xy'"),
        ({"categorical": {"a": {"x", "y"}}}, TypeError, "must be a list, whose order is that of the codes"),
        (
            {"categorical": {"a": [["x"]]}},
            TypeError,
            r"categorical\['a'\] must be a list of numbers or text: .* holds a list of 1",
        ),
        ({"categorical": {"a": 5}}, TypeError, "must be a list of numbers or text"),
        ({"categorical": {"a": ["x", None]}}, ValueError, r"lists a missing value: declare Schema\(missing='bin'\)"),
        ({"categorical": {"a": [1.0, float("nan")]}}, ValueError, "lists a missing value"),
        ({"categorical": {"a": ["x", pd.NA]}}, ValueError, "lists a missing value"),
        ({"categorical": {"age": ["x"]}}, ValueError, r"declare a column once: \['age'\]"),
        ({"classes": ["only"]}, ValueError, "classes must list between 2 and 255 values, not 1"),
        ({"classes": []}, ValueError, "classes must list between 2 and 255 values, not 0"),
        ({"classes": list(range(256))}, ValueError, "classes must list between 2 and 255 values, not 256"),
        ({"classes": [0, 1, 0]}, ValueError, "classes must list different values"),
        ({"classes": [0, 0.0]}, ValueError, "classes must list different values"),
        ({"classes": "ab"}, TypeError, "classes must be a list"),
        ({"classes": [0, None]}, ValueError, "classes lists a missing value"),
        ({"classes": None}, ValueError, "declare either classes"),
        ({"target": (0, 1)}, ValueError, "declare either classes"),
        ({"classes": None, "target": (1, 0)}, ValueError, "target must be two finite numbers with low < high"),
        ({"columns": COLUMNS[:-1]}, ValueError, "must name each declared column once"),
        ({"columns": [*COLUMNS, "age"]}, ValueError, "must name each declared column once"),
        ({"columns": [*COLUMNS[:-1], "age"]}, ValueError, "must name each declared column once"),
        ({"other": {"sex": "X"}}, ValueError, r"other\['sex'\] = 'X' must be one of the declared categories"),
        ({"other": {"age": 3}}, ValueError, r"other\['age'\] = 3 must be one of the declared categories"),
        ({"missing": "drop"}, ValueError, "missing must be 'error' or 'bin', not 'drop'"),
    ],
)
def test_declarations_that_are_none(changes, kind, text):
    if {"numeric", "categorical"} & changes.keys():
        changes = {"columns": None} | changes
    with pytest.raises(kind, match=text):
        schema(**changes)


def test_the_order_of_columns():
    assert schema(columns=None).columns == ["age", "income", "sex", "code", "flag"]
    assert SCHEMA.columns == COLUMNS
    with pytest.raises(TypeError):
        Schema(NUMERIC)  # keywords only


def test_numpy_numbers_are_welcome():
    declared = Schema(
        numeric={"x": (np.int64(0), np.float32(0.5)), "y": (Fraction(1, 4), 1)},
        categorical={"c": np.array([3, 1]), "d": np.array(["u", "v"])},
        classes=np.array([0, 1]),
        other={"c": np.int64(3)},
    )
    assert declared.numeric == {"x": (0, 0.5), "y": (0.25, 1)}
    assert json.loads(json.dumps(declared.to_dict())) == declared.to_dict()


# ---- a value that travels --------------------------------------------------------------------------------------

VARIETY = {
    "mixed": SCHEMA,
    "missing and other": schema(missing="bin", other={"sex": "M", "flag": False}),
    "regression": Schema(numeric={"x": (0, 1)}, target=(0.5, 9)),
    "mixed classes": Schema(categorical={"x": [1, "1", 2.5]}, classes=[0, "a", True + 1]),
    "numpy classes": Schema(numeric={"x": (0.1, 0.7)}, classes=np.array(["b", "a"])),
}


@pytest.mark.parametrize("declared", VARIETY.values(), ids=VARIETY)
def test_round_trips(declared):
    text = json.dumps(declared.to_dict())
    copies = [
        Schema.from_dict(json.loads(text)),
        Schema.from_dict(declared.to_dict()),
        copy.deepcopy(declared),
        copy.copy(declared),
        pickle.loads(pickle.dumps(declared)),
    ]
    for same in copies:
        assert same == declared
        assert hash(same) == hash(declared)
        assert repr(same) == repr(declared)
        assert json.dumps(same.to_dict()) == text
        assert same.columns == declared.columns
        assert same.cardinalities(9).tolist() == declared.cardinalities(9).tolist()
        if declared.classes is not None:
            assert same.classes.tolist() == declared.classes.tolist()
            assert same.classes.dtype == declared.classes.dtype


def test_a_description_shares_nothing_with_the_schema():
    description = SCHEMA.to_dict()
    description["categorical"]["sex"].append("X")
    description["columns"].pop()
    assert SCHEMA.to_dict() == schema().to_dict() != description


@pytest.mark.parametrize(
    "changes",
    [
        {"numeric": NUMERIC | {"age": (0, 101)}},
        {"categorical": CATEGORICAL | {"sex": ["M", "F"]}},
        {"classes": ["yes", "no"]},
        {"classes": None, "target": (0, 1)},
        {"columns": COLUMNS[::-1]},
        {"other": {"sex": "M"}},
        {"missing": "bin"},
    ],
)
def test_schemas_that_differ(changes):
    assert schema(**changes) != SCHEMA
    assert SCHEMA.to_dict() != SCHEMA
    assert schema() == SCHEMA
    assert len({schema(), SCHEMA, schema(**changes)}) == 2


def test_repr():
    assert repr(SCHEMA) == "Schema(2 numeric, 3 categorical columns, classes=['no', 'yes'])"
    assert (
        repr(Schema(numeric={"x": (0, 1)}, target=(0, 2))) == "Schema(1 numeric, 0 categorical columns, target=(0, 2))"
    )


def test_nothing_is_learned_from_rows():
    """The code of a record does not depend on the other records."""
    together = SCHEMA.encode(TABLE, 4).codes
    for i in range(len(TABLE)):
        np.testing.assert_array_equal(SCHEMA.encode(TABLE[i : i + 1], 4).codes[:, 0], together[:, i])


@pytest.mark.parametrize("value", [pd.Timestamp("2020-01-01"), ("a", "b"), b"yes", 1 + 2j])
def test_what_a_released_model_cannot_write_down_is_refused_before_the_fit(value):
    with pytest.raises(TypeError, match="numbers or text"):
        Schema(categorical={"c": [value, "other"]}, classes=[0, 1])
    with pytest.raises(TypeError, match="numbers or text"):
        Schema(numeric={"x": (0, 1)}, classes=[value, "other"])


# ---- record by record --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [0.75, 1, True, "0.2", None, np.nan, np.float16(0.3), 2**60, Decimal("0.25"), pd.NA])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, "Float32", "Int64", object])
def test_a_record_changes_no_other_records_codes(dtype, more):
    """Whatever one more record holds, and whatever it makes of the type of its column."""
    values = [0.7, 0.75, 0.1, 0.3, 0.0, 1.0] if "nt" not in str(dtype) else [0, 1, 1, 0, 1, 0]
    rows = pd.Series(values).astype(dtype)
    declared = Schema(numeric={"x": (0, 1)}, classes=[0, 1], missing="bin")
    alone = declared.encode(pd.DataFrame({"x": rows}), 10).codes[0].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas' own, of the types that it puts together
        one = pd.Series([more], dtype=object if more is None or isinstance(more, (str, Decimal)) else None)
        for parts in ([rows, one], [one, rows]):
            together = pd.DataFrame({"x": pd.concat(parts, ignore_index=True)})
            codes = declared.encode(together, 10).codes[0].tolist()
            assert (codes[:-1] if parts[0] is rows else codes[1:]) == alone


# -- without compiled loops ------------------------------------------------------------------------------------------

DTYPES = ["f4", "f8", "i1", "u1", "i8", "u8", "?"]


@st.composite
def columns(draw):
    """A numeric column and one of numbers among declared ones, of any type: on the edges, beside them, and outside."""
    low, high = draw(st.sampled_from([(0, 1), (-1.5, 2.5), (0.1, 0.3), (-3, 300)]))
    n_bins = draw(st.integers(2, 254))
    steps = np.array(draw(st.lists(st.integers(-2, n_bins + 2), min_size=1, max_size=50)))
    values = low + (high - low) * steps / n_bins
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if dtype.kind == "f":
        values = values.astype(dtype)
        values = np.concatenate([values, np.nextafter(values, dtype.type(9)), np.nextafter(values, dtype.type(-9))])
        values = np.append(values, [np.nan, np.inf, -np.inf, -0.0]).astype(dtype)
    else:
        values = np.clip(values, 0, 100).astype(dtype)
    known = draw(st.lists(st.integers(-4, 300), min_size=1, max_size=9, unique=True))
    return low, high, n_bins, values, known


@given(columns())
@settings(max_examples=200, deadline=None)
def test_codes_are_the_same_without_compiled_loops(column):
    low, high, n_bins, values, known = column
    declared = Schema(
        numeric={"x": (low, high)}, categorical={"c": known}, classes=[0, 1], missing="bin", other={"c": known[0]}
    )
    table = pd.DataFrame({"x": values, "c": values})
    compiled = declared.encode(table, n_bins)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "_compiled", lambda: None)
        plain = declared.encode(table, n_bins)
    np.testing.assert_array_equal(plain.codes, compiled.codes)
    assert (plain.clipped, plain.other) == (compiled.clipped, compiled.other)


BOUNDS = [(0, 1), (-1.5, 2.5), (17, 90), (0, 1e9), (1e15, 1e15 + 2), (-1e300, 1e300), (0, 5e-324), (-2e-308, 3e-308)]


@pytest.mark.parametrize("kind", grid.GRIDS)
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_compiled_codes_count_the_edges_that_a_value_reaches(kind, low, high):
    """However near the edges lie to each other and to the values, and however unevenly: by searching them."""
    rng = np.random.default_rng(0)
    for n_bins in (2, 3, 32, 100):
        edges, top = grid.open_edges(low, high, n_bins, kind)
        inner, last = edges[1:-1], len(edges) - 2
        anywhere = low + (high - low) * np.concatenate([rng.random(5000), rng.random(500) ** 30])
        values = np.concatenate([edges[:-1], inner, [top], anywhere])
        values = np.concatenate([values, np.nextafter(values, -np.inf), np.nextafter(values, np.inf)])
        values = np.append(values, [np.nan, -np.inf, np.inf, -0.0, 0.0])
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        for some in (values, single):
            doubles = some.astype(float)
            expected = np.searchsorted(inner, np.clip(doubles, low, top), side="right")
            missing, out = np.isnan(some), np.empty(len(some), np.uint8)
            counted = binning_kernels.bin_column(some, edges, top, last + 1, out)
            np.testing.assert_array_equal(out, np.where(missing, last + 1, expected))
            assert counted == (np.sum((doubles < low) | (doubles > top)), missing.sum())


# -- a schema to fill in, and in a file ------------------------------------------------------------------------------


FRAME = pd.DataFrame(
    {
        "age": [3141],
        "weight": [2.5],
        "sex": ["secret"],
        "ward": pd.Categorical(["private"]),
        "in": [True],
        "when": pd.to_datetime(["2020-01-01"]),
        "n": pd.array([77], dtype="Int64"),
        "it's\n\"": ["told"],
        "ill": ["hidden"],
    }
)


def test_a_draft_has_names_and_kinds_and_no_value():
    found = Schema.draft(FRAME, target="ill")
    assert (found.numeric, found.categorical) == (("age", "weight", "n"), ("sex", "ward", "in", "it's\n\""))
    assert (found.unusable, found.target) == (("when",), "ill")
    assert repr(found) == str(found)
    for value in ("3141", "2.5", "secret", "private", "True", "2020", "77", "told", "hidden"):
        assert value not in str(found)
    with pytest.raises(ValueError, match=r"numeric\['age'\] is left blank"):
        eval(str(found))
    filled = str(found).replace("(..., ...)", "(0, 100)").replace("[...]", "['a', 'b']")
    assert eval(filled) == Schema(
        numeric=dict.fromkeys(found.numeric, (0, 100)),
        categorical={name: ["a", "b"] for name in found.categorical},
        classes=["a", "b"],
    )


def test_a_draft_looks_at_types_alone():
    """Other rows, none at all, another library or other categories of a type make no other draft."""
    found = str(Schema.draft(FRAME))
    assert "private" not in found
    assert str(Schema.draft(FRAME.iloc[:0])) == found
    assert str(Schema.draft(pd.concat([FRAME, FRAME]))) == found
    assert str(Schema.draft(FRAME.assign(ward=pd.Categorical(["x"], categories=["x", "y"])))) == found
    arrow = pa.Table.from_pandas(FRAME)
    assert str(Schema.draft(arrow)) == found


@pytest.mark.parametrize(
    ("table", "error", "text"),
    [
        (np.zeros((2, 2)), TypeError, "an array has no names"),
        ({"age": [31]}, TypeError, "without a frame have no types"),
        ([{"age": 31}], TypeError, "without a frame have no types"),
        (FRAME, ValueError, "no column 'nobody'"),
        ("a.parquet", ValueError, "needs a table in memory, so read the file before"),
    ],
)
def test_a_draft_of_what_has_no_names_is_refused(table, error, text):
    with pytest.raises(error, match=text):
        Schema.draft(table, "nobody" if table is FRAME else None)


def test_a_draft_of_a_file_reads_its_names_and_types(tmp_path):
    """As the docstring has it: no row is read."""
    import pyarrow.parquet

    FRAME.to_parquet(tmp_path / "a.parquet")
    empty = pyarrow.parquet.read_schema(tmp_path / "a.parquet").empty_table()
    assert empty.num_rows == 0
    assert str(Schema.draft(empty, "ill")) == str(Schema.draft(FRAME, "ill"))


def test_a_draft_knows_one_table_of_types():
    """A type is numbers, text or neither, in whatever library it stands."""
    columns = {
        "numeric": [
            pa.array([1], pa.int8()), pa.array([1.0], pa.float32()), pa.array([Decimal(1)], pa.decimal128(3, 1)),
            pd.Series([1], dtype="Int64"), pd.Series([1], dtype="Float32"), pd.Series([1], dtype="uint8"),
        ],
        "categorical": [
            pa.array(["u"]), pa.array([True]), pa.array(["u"]).dictionary_encode(), pa.array(["u"], pa.large_string()),
            pd.Series(["u"], dtype="category"), pd.Series([1], dtype="category"), pd.Series(["u"], dtype=object),
            pd.Series(["u"], dtype="string"), pd.Series([True], dtype="boolean"), pd.Series([True]),
        ],
        "unusable": [
            pa.array([[1]]), pa.array([0], pa.time64("us")), pa.array([0], pa.date32()), pa.array([b"u"]),
            pa.array([{"a": 1}]), pa.array([0], pa.duration("s")), pd.Series(pd.period_range("2024", periods=1)),
            pd.Series(pd.interval_range(0, 1)), pd.cut(pd.Series([1]), [0, 2]), pd.Series([1j]),
            pd.Series(pd.to_datetime(["2024-01-01"], format="%Y-%m-%d")),
        ],
    }  # fmt: skip
    for kind, each in columns.items():
        for column in each:
            frames = [pd.DataFrame({"a": column})]
            if isinstance(column, pa.Array):
                frames = [pa.table({"a": column}), pd.DataFrame({"a": column.to_pandas(types_mapper=pd.ArrowDtype)})]
            for frame in frames:
                assert getattr(Schema.draft(frame), kind) == ("a",), column


def test_a_draft_leaves_out_what_has_one_name_twice():
    frame = FRAME.iloc[:, [0, 2, 0, 2, 1]]
    for table in (frame, pa.Table.from_arrays([*map(pa.array, ([1], ["u"], [1], ["u"], [2.5]))], [*frame])):
        found = Schema.draft(table)
        assert (found.numeric, found.categorical, found.twice) == (("weight",), (), ("age", "sex"))
        assert str(found).endswith("\n# left out, for more than one column has this name: 'age', 'sex'")
        with pytest.raises(ValueError, match=r"the table has more than one column 'age'$"):
            Schema.draft(table, target="age")


@pytest.mark.parametrize(
    "declared",
    [
        {"numeric": {"a": (..., ...)}, "classes": [0, 1]},
        {"numeric": {"a": (0, ...)}, "classes": [0, 1]},
        {"numeric": {"a": ...}, "classes": [0, 1]},
        {"categorical": {"a": [...]}, "classes": [0, 1]},
        {"categorical": {"a": ["x", ...]}, "classes": [0, 1]},
        {"numeric": {"a": (0, 1)}, "classes": [...]},
        {"numeric": {"a": (0, 1)}, "target": (..., ...)},
    ],
)
def test_blanks_are_refused(declared):
    with pytest.raises(ValueError, match=r"is left blank: (fill in|list)"):
        Schema(**declared)


def test_a_schema_in_a_file(tmp_path):
    schema = Schema(
        numeric={"age": (0, 120)},
        categorical={"sex": ["f", "m"], "n": [1, 2.5, True + 2]},
        target=(0.5, 10),
        other={"sex": "m"},
        missing="bin",
        columns=["sex", "age", "n"],
    ).with_grid("doubling")
    text = schema.to_json(tmp_path / "schema.json")
    for again in (Schema.from_json(text), Schema.from_json(tmp_path / "schema.json")):
        assert again == schema
        assert again.to_json() == text


WRITTEN = Schema(numeric={"a": (0, 1)}, categorical={"c": ["u"]}, classes=["n", "y"]).to_dict()


@pytest.mark.parametrize(
    "bad",
    [
        {"numeric": []},
        {"numeric": {"a": "01"}},
        {"numeric": {"a": [0]}},
        {"numeric": {"a": [True, 2]}},
        {"columns": "ac"},
        {"numeric": {"a": ["0", "1"]}},
        {"columns": ["a"]},
        {"columns": [1, 2]},
        {"classes": "ny"},
        {"classes": [["n"], "y"]},
        {"classes": None},
        {"target": [0, 1]},
        {"other": None},
        {"missing": 1},
        {"missing": "no"},
        {"grid": 1},
        {"more": 1},
        {"categorical": {"c": "u"}},
        {"categorical": {"c": [None]}},
        {"categorical": {"c": [{}]}},
        {"numeric": {"a": [0, 1e39]}},
    ],
    ids=str,
)
def test_a_file_of_a_schema_is_not_believed(bad):
    assert Schema.from_json(json.dumps(WRITTEN)).to_dict() == WRITTEN
    with pytest.raises(ValueError, match=r"."):
        Schema.from_json(json.dumps(WRITTEN | bad))


@pytest.mark.parametrize("text", ["{", '{"numeric": {}, "numeric": {}}', '{"numeric": {"a": [0, NaN]}}', "{}"])
def test_what_is_no_schema_is_refused(text):
    with pytest.raises(ValueError, match=r"cannot be read|not a schema"):
        Schema.from_json(text)


@pytest.mark.parametrize(("part", "given"), [("other", "x"), ("other", True), ("numeric", [("a", 0, 1)])])
def test_what_speaks_of_columns_is_a_mapping(part, given):
    with pytest.raises(TypeError, match=f"{part} must be a mapping of columns, such as {part}="):
        Schema(**{"categorical": {"b": ["x", "y"]}, part: given}, classes=[0, 1])


def test_a_date_is_told_what_it_becomes():
    with pytest.raises(ValueError, match=r"two finite numbers.*days since a public date"):
        Schema(numeric={"day": ("2024-01-01", "2024-12-31")}, classes=[0, 1])
    with pytest.raises(ValueError, match=r"low < high, not \(1, 0\)$"):
        Schema(numeric={"day": (1, 0)}, classes=[0, 1])
    days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01"])})
    with pytest.raises(TypeError, match="days since a public date"):
        Schema(numeric={"day": (0, 366)}, classes=[0, 1]).encode(days, 4)
    assert str(Schema.draft(days)).endswith("'day'\n# (a date can be the days since a public date)")


def test_a_draft_names_what_messy_cells_need():
    found = str(Schema.draft(FRAME, target="ill"))
    assert '# missing="bin"' in found
    assert "# other={'sex': ...}" in found
    assert "# 'sex': {'a group': [Prefix('...')]},  # in its place, of more than 255" in found
    assert "other=" not in str(Schema.draft(FRAME[["age", "ill"]], target="ill"))


def test_too_many_columns_are_told_of_scalers():
    schema = Schema(numeric={"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
    with pytest.raises(ValueError, match=r"X has 3 features, but Schema is expecting 2 features.*leave out scalers"):
        schema.encode(np.zeros((1, 3)), 4)
    with pytest.raises(ValueError, match=r"expecting 2 features as input: \['a', 'b'\]$"):
        schema.encode(np.zeros((1, 1)), 4)
