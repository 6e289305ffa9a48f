"""Data sets: what the documentation says of each, and the road of a file from its source to the loader."""

import gzip
import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from dpforest import EDPRFClassifier, Schema, datasets
from dpforest.datasets import ChecksumError, DatasetUnavailableError, files, parsers, schema_files
from dpforest.datasets.files import File
from dpforest.datasets.taxonomies import TAXONOMIES
from dpforest.study.experiments import sweep
from tests import not_run

SHIPPED = ["breast-cancer", "diabetes", "digits"]
ON_DISK = [name for name in datasets.names() if name not in SHIPPED]

# Rows, features and rows per class as the .names files and UCI's pages document them.
DOCUMENTED = {
    "adult": (32561, 14, None),
    "census-income-kdd": (199523, 40, None),
    "mushroom": (8124, 22, {"e": 4208, "p": 3916}),
    "nursery": (
        12960,
        8,
        {"not_recom": 4320, "recommend": 2, "very_recom": 328, "priority": 4266, "spec_prior": 4044},
    ),
    "congressional-voting": (435, 16, {"democrat": 267, "republican": 168}),
    "wine-quality": (6497, 12, None),
    "wine-quality-red": (1599, 11, None),
    "wine-quality-white": (4898, 11, None),
    "daily-demand": (60, 12, None),
    "wall-following-robot": (
        5456,
        24,
        {"Move-Forward": 2205, "Sharp-Right-Turn": 2097, "Slight-Left-Turn": 328, "Slight-Right-Turn": 826},
    ),
    "bank-marketing": (45211, 16, None),
    "german-credit": (1000, 20, {"good": 700, "bad": 300}),
    "breast-cancer": (569, 30, {"malignant": 212, "benign": 357}),
    "diabetes": (442, 10, None),
    "digits": (1797, 64, None),
}
TEST_ROWS = {"adult": 16281, "census-income-kdd": 99762}

_loaded: dict = {}


def load(name):
    """The data set, or a skip that says why; each is read once for all tests."""
    if name not in _loaded:
        if not datasets.available(name):
            pytest.skip(not_run.data(name))
        _loaded[name] = datasets.load(name, download=False)
    return _loaded[name]


# -- what the documentation says -------------------------------------------------------------------------------


def test_catalogue_and_documentation_name_the_same_sets():
    assert sorted(datasets.names()) == sorted(DOCUMENTED)


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_counts(name):
    rows, features, classes = DOCUMENTED[name]
    data = load(name)
    assert data.X.shape == (rows, features)
    assert data.y.shape == (rows,)
    if classes is not None:
        assert Counter(data.y) == classes
    assert (None if data.X_test is None else len(data.X_test)) == TEST_ROWS.get(name)


def test_adult_documented_shares():
    # adult.names, over both files: 23.93 % above 50K
    pooled = load("adult").pooled()
    assert len(pooled.y) == 48842
    assert round(100 * (pooled.y == ">50K").mean(), 2) == 23.93


def test_adult_rows_without_unknowns():
    # adult.names: train=30162, test=15060 once rows with unknown values are removed
    data = load("adult")
    assert [int((~(part == "?").any(axis=1)).sum()) for part in (data.X, data.X_test)] == [30162, 15060]


def test_census_documented_shares():
    # census-income.names, for the test file: 93.80 % and 6.20 %
    data = load("census-income-kdd")
    assert round(100 * (data.y_test == "- 50000.").mean(), 2) == 93.80
    assert round(100 * (data.y_test == "50000+.").mean(), 2) == 6.20


def test_census_nominal_attributes_have_the_documented_number_of_values():
    # "distinct values for attribute #...", nominal, in the order of census-income.names
    documented = [9, 52, 47, 17, 3, 7, 24, 15, 5, 10, 2, 3, 6, 8, 6, 6, 51, 38, 8, 10, 9, 10, 3, 4, 5, 43, 43, 43]
    documented += [5, 3, 3, 3, 2]
    schema = datasets.schema("census-income-kdd")
    sizes = [len(schema.categorical[name]) for name in schema.columns if name in schema.categorical]
    assert sizes == documented
    assert len(schema.numeric) == 7


def test_census_weight_is_no_feature():
    data = load("census-income-kdd")
    assert "instance weight" not in data.X.columns
    assert len(data.weights) == len(data.X)
    assert len(data.weights_test) == len(data.X_test)
    assert (data.weights > 0).all()


def test_mushroom_documented_missing_values():
    X = load("mushroom").X
    unknown = (X == "?").sum()
    assert unknown["stalk-root"] == 2480
    assert unknown.sum() == 2480


def test_voting_documented_missing_values():
    X = load("congressional-voting").X
    assert (X == "?").sum().tolist() == [12, 48, 11, 11, 15, 11, 14, 15, 22, 7, 21, 31, 25, 17, 28, 104]


def test_nursery_rows_are_the_whole_attribute_space():
    X = load("nursery").X
    assert not X.duplicated().any()
    assert len(X) == np.prod([len(categories) for categories in datasets.schema("nursery").categorical.values()])


def test_wine_colours():
    both = load("wine-quality")
    assert both.X["colour"].value_counts().to_dict() == {"red": 1599, "white": 4898}
    red = load("wine-quality-red")
    pd.testing.assert_frame_equal(both.X.iloc[:1599].drop(columns="colour"), red.X)
    assert both.schema.target == (0, 10)


def test_daily_demand_repair_makes_the_books_balance():
    data = load("daily-demand")
    orders = {name: np.rint(1000 * data.X[name]) for name in data.X if name not in data.schema.categorical}
    total = np.rint(1000 * data.y)
    assert (orders["type A"] + orders["type B"] + orders["type C"] == total).all()
    assert (orders["non-urgent"] + orders["urgent"] + orders["fiscal sector"] == total).all()


@pytest.mark.parametrize(("cell", "value"), [("316.307", 316.307), ("865", 0.865), ("0", 0.0), ("1.250", 1.25)])
def test_daily_demand_units(cell, value):
    assert parsers.thousands(cell) == value


# -- what the files of schemas declare -----------------------------------------------------------------------------

#: Of each schema as JSON, and of each tree of categories: what is public before the data changes for a reason alone.
DECLARED = {
    "adult": "5ef433432f4adec2",
    "bank-marketing": "07f8b298109d42bd",
    "census-income-kdd": "e11f3a0d7692c523",
    "congressional-voting": "29b17af8436ceaa8",
    "daily-demand": "9fd643cb84bb9c10",
    "german-credit": "a0336d8b49cfd093",
    "mushroom": "cdfec1d60386e9b2",
    "nursery": "b19bdde5940a721b",
    "wall-following-robot": "99f137c251e37193",
    "wine-quality": "ed33e9ffffa12158",
    "wine-quality-red": "00d041e4d4f135a3",
    "wine-quality-white": "00d041e4d4f135a3",
    "breast-cancer": "0e8ef43b51773e63",
    "diabetes": "6ea5e53031f02f25",
    "digits": "57bba98c233072f1",
    "taxonomies of adult": "4be90c2c6e280fa2",
    "taxonomies of nursery": "ec7f381f122dcfa5",
}


def declared(thing):
    return hashlib.sha256((thing if isinstance(thing, str) else json.dumps(thing)).encode()).hexdigest()[:16]


def test_what_is_declared_is_what_it_was():
    found = {name: declared(datasets.schema(name).to_json()) for name in datasets.names()}
    found |= {f"taxonomies of {name}": declared(tree) for name, tree in TAXONOMIES.items()}
    assert found == DECLARED


SOUND = """
title = "Two"
description = "Two columns."
citation = "Nobody."
key = "nobody"
archive = "1/two.zip"
label = "class"
columns = ["a", "b", "class"]
[files."two.data"]
sha256 = "00"
[schema]
classes = ["no", "yes"]
[schema.numeric]
b = [0, 1.5]
[[schema.alike]]
columns = ["a"]
categorical = ["x", "y"]
[taxonomies.a]
first = ["x"]
[[parts]]
name = "one"
description = "One column."
files = ["two.data"]
without = ["b"]
"""


def read(folder, text):
    path = folder / "two.toml"
    path.write_text(text, encoding="utf-8")
    return schema_files.read(path)


def test_a_file_declares_a_set_and_its_parts(tmp_path):
    two, one = read(tmp_path, SOUND)
    assert two.schema() == Schema(
        numeric={"b": (0, 1.5)}, categorical={"a": ["x", "y"]}, classes=["no", "yes"], columns=["a", "b"]
    )
    assert one.schema() == Schema(categorical={"a": ["x", "y"]}, classes=["no", "yes"])
    assert (two.name, two.folder, two.files, two.taxonomies) == (
        "two",
        "two",
        (File("two.data", "00"),),
        {"a": {"first": ["x"]}},
    )
    assert (one.name, one.folder, one.files) == ("one", "two", two.files)


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('title = "Two"', "", "title is missing"),
        ('title = "Two"', "title = 2", "title must be a text, not 2"),
        ('title = "Two"', 'title = ""', "title must be a text"),
        ('title = "Two"', 'title = "Two"\nnmae = "x"', "nmae is no key"),
        ('title = "Two"', 'title = "Two"\nrows = "nobody"', "rows must be one of delimited, adult"),
        ('title = "Two"', 'title = "Two"\nheader = 1', "header must be true or false"),
        ('title = "Two"', "title = Two", "is not TOML: .*line 2"),
        ('key = "nobody"', 'title = "Again"', "is not TOML"),
        ('archive = "1/two.zip"', "", "archive is missing"),
        ('columns = ["a", "b", "class"]', "", "columns is missing"),
        ('columns = ["a", "b", "class"]', 'columns = ["a", 2]', "columns must be an array of texts"),
        ('sha256 = "00"', "", r"files\.two\.data\.sha256 is missing"),
        ('sha256 = "00"', 'sha256 = "00"\nmd5 = "00"', r"files\.two\.data\.md5 is no key"),
        ("[schema]", '[schema]\nmissing = "bin"', r"schema\.missing is no key"),
        ('classes = ["no", "yes"]', "", r"schema\.target is missing"),
        ('classes = ["no", "yes"]', "classes = 2", r"schema\.classes must be an array of texts or numbers"),
        ("b = [0, 1.5]", "b = [0]", r"schema\.numeric\.b must be two numbers, \[low, high\]"),
        ("b = [0, 1.5]", "b = [0, true]", r"schema\.numeric\.b must be two numbers"),
        ('categorical = ["x", "y"]', "categorical = []", r"schema\.alike\[0\]\.categorical must be an array"),
        ('categorical = ["x", "y"]', "", r"schema\.alike\[0\]\.categorical is missing"),
        (
            'categorical = ["x", "y"]',
            "numeric = [0, 1]\ncategorical = [1]",
            r"schema\.alike\[0\]\.categorical is no key",
        ),
        (
            'columns = ["a"]\ncategorical',
            'columns = ["a", "a"]\ncategorical',
            r"schema\.alike\[0\]\.columns declares 'a' a second time",
        ),
        ('first = ["x"]', "first = {}", r"taxonomies\.a must be a tree"),
        (
            'files = ["two.data"]',
            'files = ["one.data"]',
            r"parts\[0\]\.files names 'one.data', which is not under files",
        ),
        ('without = ["b"]', 'without = ["c"]', r"parts\[0\]\.without names 'c', which is not under columns"),
    ],
)
def test_a_malformed_file_is_named_with_its_key(tmp_path, was, now, said):
    assert SOUND.count(was) == 1
    with pytest.raises(ValueError, match=rf"^two\.toml:? {said}"):
        read(tmp_path, SOUND.replace(was, now))


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("b = [0, 1.5]", "b = [1.5, 0]", "numeric\\['b'\\]"),
        ('["x", "y"]', '["x", "x"]', "categorical\\['a'\\]"),
        ('"b", "class"', '"c", "class"', r"columns \['a', 'c'\] must name"),
    ],
)
def test_a_schema_that_is_none_is_named_with_its_file(tmp_path, was, now, said):
    two, _ = read(tmp_path, SOUND.replace(was, now).replace('without = ["b"]', ""))
    with pytest.raises(ValueError, match=f"^two.toml: schema: .*{said}"):
        two.schema()


# -- what every set promises -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DOCUMENTED)
def test_schema_covers_every_value(name):
    data = load(name)
    for X in (data.X, data.X_test):
        if X is None:
            continue
        assert list(X.columns) == data.schema.columns
        assert X.index.equals(pd.RangeIndex(len(X)))
        encoded = data.schema.encode(X, n_bins=16)
        assert encoded.other == {}
        assert encoded.codes.shape == (data.schema.n_features, len(X))
        assert (encoded.codes.max(axis=1) < data.schema.cardinalities(16)).all()
    for y in (data.y, data.y_test):
        if y is None:
            continue
        if data.schema.classes is not None:
            codes = data.schema.encode_labels(y)
            assert (data.schema.classes[codes] == y.to_numpy()).all()
        else:
            assert data.schema.encode_target(y)[1] == 0


@pytest.mark.parametrize("name", DOCUMENTED)
def test_few_values_are_clipped(name):
    # A check on bounds that were written without looking, not their source: at most 3 % of a column, 1 % of all.
    data = load(name)
    clipped = data.schema.encode(data.X, n_bins=16).clipped
    assert sum(clipped.values()) <= 0.01 * data.X.size
    assert all(count <= 0.03 * len(data.X) for count in clipped.values())


@pytest.mark.parametrize("name", DOCUMENTED)
def test_categorical_columns_carry_the_declared_categories(name):
    data = load(name)
    for column in data.X:
        if column in data.schema.categorical:
            assert data.X[column].cat.categories.tolist() == data.schema.categorical[column]
        else:
            assert data.X[column].dtype.kind in "iuf"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_citation(name):
    data = load(name)
    assert "https://doi.org/10." in data.citation
    assert data.key
    assert data.description
    assert len(data.checksums) == max(1, len(datasets._CATALOGUE[name].files))
    assert all(len(digest) == 64 for digest in data.checksums.values())


@pytest.mark.parametrize("name", ["adult", "nursery", "breast-cancer", "digits"])
def test_labels_suit_scikit_learn(name):
    data = load(name)
    guess = np.full(len(data.y), data.schema.classes[0])
    assert accuracy_score(data.y, guess) == (data.y == data.schema.classes[0]).mean()
    assert balanced_accuracy_score(data.y, data.y) == 1


def test_dataset_is_frozen():
    data = load("diabetes")
    with pytest.raises(AttributeError):
        data.X = None


@pytest.mark.parametrize("name", ON_DISK)
def test_embedded_checksums_are_those_of_the_files(name):
    data = load(name)
    for file in datasets._CATALOGUE[name].files:
        found = data.checksums[f"{datasets._CATALOGUE[name].folder}/{file.name}"]
        assert file.lines is not None or found == file.sha256


def test_robot_lines_are_those_of_the_file_of_uci():
    load("wall-following-robot")
    (file,) = datasets._CATALOGUE["wall-following-robot"].files
    content, _ = files.read(files.find("wall-following-robot", file), file)
    assert hashlib.sha256(content.replace(b"\n", b"\r\n")).hexdigest() == file.sha256


# -- split -----------------------------------------------------------------------------------------------------


def test_split_is_deterministic_and_a_partition():
    data = load("breast-cancer")
    one, two = data.split(test_size=0.3, random_state=4), datasets.split(data, 0.3, 4)
    pd.testing.assert_frame_equal(one.X, two.X)
    pd.testing.assert_frame_equal(one.X_test, two.X_test)
    assert not one.X.equals(data.split(test_size=0.3, random_state=5).X)
    together = pd.concat([one.X, one.X_test]).sort_values(list(data.X)).to_numpy()
    assert (together == data.X.sort_values(list(data.X)).to_numpy()).all()
    assert one.schema is data.schema
    assert data.X_test is None


def test_split_is_stratified():
    data = load("digits").split(test_size=0.2, random_state=0)
    share = data.y.value_counts(normalize=True) - data.y_test.value_counts(normalize=True)
    assert share.abs().max() < 0.005


def test_split_of_a_regression():
    data = load("diabetes").split(test_size=42, random_state=0)
    assert (len(data.y), len(data.y_test)) == (400, 42)


def test_split_keeps_the_class_of_two_rows():
    data = load("nursery").split(test_size=0.5, random_state=0)
    assert (data.y == "recommend").sum() + (data.y_test == "recommend").sum() == 2


def test_official_test_set_is_not_split_again():
    data = load("adult")
    with pytest.raises(ValueError, match="pooled"):
        data.split()
    again = data.pooled().split(test_size=0.25, random_state=0)
    assert len(again.X) + len(again.X_test) == 48842


def test_split_takes_the_weights_along():
    data = load("census-income-kdd").pooled().split(test_size=0.25, random_state=0)
    assert len(data.weights) == len(data.X)
    assert len(data.weights_test) == len(data.X_test)


# -- the road of a file, on a small set of our own ---------------------------------------------------------------

ROWS = (
    b"usual,proper,complete,1,convenient,convenient,nonprob,recommended,recommend\n"
    b"great_pret,very_crit,foster,more,critical,inconv,problematic,not_recom,not_recom\n"
)
SMALL = File("small.data", hashlib.sha256(ROWS).hexdigest())


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A catalogue whose set ``small`` is two rows of Nursery, with an empty data folder and an empty cache."""
    entry = replace(datasets._CATALOGUE["nursery"], name="small", folder="small", archive="1/small.zip", files=(SMALL,))
    monkeypatch.setitem(datasets._CATALOGUE, "small", entry)
    monkeypatch.setenv("DPFOREST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DPFOREST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    # a port where nobody listens: no test reaches the real server
    monkeypatch.setattr(files, "BASE_URL", "http://127.0.0.1:9")
    (tmp_path / "data" / "small").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def server(monkeypatch):
    """An HTTP server on loopback that answers as ``server.reply`` says."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.paths.append(self.path)
            status, body, length = self.server.reply
            self.send_response(status)
            self.send_header("Content-Length", str(length if length is not None else len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.paths = []
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        monkeypatch.setattr(files, "BASE_URL", f"http://127.0.0.1:{running.server_port}")
        yield running
        running.shutdown()
        thread.join()


def zipped(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), content)
    return packed.getvalue()


def tarred(name, content):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def kept(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_file_in_the_data_folder(small, suffix):
    content = gzip.compress(ROWS) if suffix else ROWS
    (small / "data" / "small" / f"small.data{suffix}").write_bytes(content)
    assert datasets.available("small")
    data = datasets.load("small")
    assert data.y.tolist() == ["recommend", "not_recom"]
    assert data.checksums == {"small/small.data": SMALL.sha256}
    assert kept(small) == [f"data/small/small.data{suffix}"]


def test_data_folder_comes_before_the_cache(small):
    (small / "data" / "small" / "small.data").write_bytes(ROWS)
    (small / "cache" / "small").mkdir(parents=True)
    (small / "cache" / "small" / "small.data").write_bytes(b"stale")
    assert len(datasets.load("small").X) == 2


def test_changed_file_is_named_with_both_digests(small):
    path = small / "data" / "small" / "small.data"
    path.write_bytes(ROWS + b"\n")
    with pytest.raises(ChecksumError) as caught:
        datasets.load("small")
    message = str(caught.value)
    for part in (str(path), SMALL.sha256, hashlib.sha256(ROWS + b"\n").hexdigest(), "Delete it"):
        assert part in message


def test_broken_gzip_file_is_named(small):
    path = small / "data" / "small" / "small.data.gz"
    path.write_bytes(gzip.compress(ROWS)[:-12])
    with pytest.raises(ChecksumError, match="not a whole gzip file"):
        datasets.load("small")


def test_another_layout_of_the_same_rows(small, monkeypatch):
    rows = b"1;2\n3;4\n"
    file = File("rows.csv", "0" * 64, lines=hashlib.sha256(rows).hexdigest())
    path = small / "rows.csv"
    for layout in (b"1;2\n3;4", b"1;2\r\n3;4\r\n\r\n", b"a;b\r1;2 \r3;4\r", b'"a";"b"\n1;2\n\n3;4\n'):
        path.write_bytes(layout)
        content, digest = files.read(path, file)
        assert content == rows
        assert digest == hashlib.sha256(layout).hexdigest()
    path.write_bytes(b"1;2\n3;5\n")
    with pytest.raises(ChecksumError, match="another header or other line endings"):
        files.read(path, file)


def test_download_into_the_cache(small, server):
    server.reply = (200, zipped(Index=b"", small_dot_data=ROWS), None)
    assert not datasets.available("small")
    assert datasets.available("small", download=True)
    assert datasets.load("small").y.tolist() == ["recommend", "not_recom"]
    assert server.paths == ["/1/small.zip", "/1/small.zip"]
    assert kept(small) == ["cache/small/small.data.gz"]
    assert datasets.available("small")
    datasets.load("small")  # from the cache
    assert len(server.paths) == 2


@pytest.mark.parametrize(
    "archive",
    [
        zipped(deep__small_dot_data=ROWS),
        zipped(small_dot_data_dot_gz=gzip.compress(ROWS)),
        zipped(inner_dot_zip=zipped(small_dot_data=ROWS)),
        zipped(inner_dot_tar_dot_gz=tarred("./small.data", ROWS)),
        zipped(__MACOSX__=b"", inner_dot_zip=zipped(small_dot_data=ROWS, MAC__dot_small_dot_data=b"junk")),
    ],
    ids=["folder", "gz", "zip in zip", "tar in zip", "resource forks"],
)
def test_nested_archives(small, server, archive):
    server.reply = (200, archive, None)
    assert len(datasets.load("small").X) == 2


def test_corrupted_download_keeps_nothing(small, server):
    server.reply = (200, zipped(small_dot_data=ROWS.replace(b"usual", b"unusual")), None)
    with pytest.raises(ChecksumError) as caught:
        datasets.load("small")
    assert SMALL.sha256 in str(caught.value)
    assert "small.data" in str(caught.value)
    assert "Nothing was kept" in str(caught.value)
    assert kept(small) == []


WHOLE = zipped(small_dot_data=ROWS)


def patched(archive: bytes, at: int, value: int) -> bytes:
    """The zip with another number in both headers of its first file: ``at`` is the place in the first of them."""
    central = archive.index(b"PK\x01\x02")
    changed = bytearray(archive)
    changed[at], changed[central + at + 2] = value, value
    return bytes(changed)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((200, WHOLE[:100], len(WHOLE)), f"broke off after 100 of {len(WHOLE)} bytes"),
        ((500, b"", None), "answered 500"),
        ((404, b"gone", None), "answered 404"),
        ((200, b"<html>not an archive</html>", None), "cannot be unpacked"),
        ((200, WHOLE[:-30], None), "cannot be unpacked"),
        ((200, zipped(other_dot_data=ROWS), None), "does not contain small.data"),
        ((200, WHOLE, "many"), "cannot be reached"),
        ((200, patched(WHOLE, 6, 1), None), "encrypted"),
        ((200, patched(WHOLE, 8, 99), None), "compression method is not supported"),
        ((200, zipped(small_dot_data=bytes(1 << 20)), None), "unpacks to more than"),
        ((200, zipped(small_dot_data_dot_gz=gzip.compress(bytes(1 << 20))), None), "unpacks to more than"),
        ((200, zipped(inner_dot_tar_dot_gz=tarred("./bulk", bytes(1 << 20))), None), "unpacks to more than"),
        ((200, zipped(inner_dot_zip=zipped(small_dot_data=bytes(1 << 20))), None), "unpacks to more than"),
        ((200, bytes(1 << 17), None), "more than the 65,536 bytes"),
    ],
    ids=[
        "truncated", "server error", "absent", "a page", "cut archive", "other files", "nonsense length", "encrypted",
        "odd compression", "bomb", "gz bomb", "tar bomb", "inner bomb", "endless",
    ],
)  # fmt: skip
def test_failed_download_says_what_to_do_and_keeps_nothing(small, server, reply, said, monkeypatch):
    monkeypatch.setattr(files, "_MOST", 1 << 16)
    server.reply = reply
    with pytest.raises(DatasetUnavailableError) as caught:
        datasets.load("small")
    assert said in str(caught.value)
    assert "DPFOREST_DATA" in str(caught.value)
    assert kept(small) == []


def test_offline_error_lists_files_digests_and_remedies(small):
    with pytest.raises(DatasetUnavailableError) as caught:
        datasets.load("small")
    message = str(caught.value)
    for part in (
        "cannot be reached",
        "DPFOREST_DATA",
        "small/small.data",
        SMALL.sha256,
        "/1/small.zip",
        "breast-cancer",
    ):
        assert part in message
    assert "\n\n" not in message


def test_download_can_be_forbidden(small, server):
    server.reply = (200, WHOLE, None)
    with pytest.raises(DatasetUnavailableError, match="not asked for"):
        datasets.load("small", download=False)
    assert server.paths == []


def test_unwritable_cache_is_named(small, server, monkeypatch):
    server.reply = (200, WHOLE, None)
    (small / "occupied").write_bytes(b"")
    monkeypatch.setenv("DPFOREST_CACHE", str(small / "occupied"))
    with pytest.raises(DatasetUnavailableError, match="DPFOREST_CACHE"):
        datasets.load("small")


def test_what_a_killed_download_left_is_removed_by_the_next(small, server):
    folder = small / "cache" / "small"
    folder.mkdir(parents=True)
    for name, age in ((".small.data.gz.1-2-3.part", 7200), (".small.data.gz.4-5-6.part", 5), (".else.part", 7200)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    server.reply = (200, WHOLE, None)
    datasets.load("small")
    assert kept(small) == [
        "cache/small/.else.part",
        "cache/small/.small.data.gz.4-5-6.part",
        "cache/small/small.data.gz",
    ]


def test_every_failure_is_of_one_kind(small, monkeypatch):
    assert issubclass(ChecksumError, DatasetUnavailableError)
    path = small / "data" / "small" / "small.data.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(ROWS))
    monkeypatch.setattr(type(path), "read_bytes", refuse)
    with pytest.raises(DatasetUnavailableError, match="cannot be read: closed"):
        datasets.load("small")


def refuse(path):
    raise PermissionError("closed")


def test_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("DPFOREST_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache_folder() == tmp_path / "dpforest"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.cache_folder() == tmp_path / ".cache" / "dpforest"


# -- available ---------------------------------------------------------------------------------------------------


def test_available_without_network(small):
    assert [datasets.available(name) for name in SHIPPED] == [True, True, True]
    assert datasets.available("small") is False
    assert datasets.available("small", download=True) is False
    assert datasets.available("no such set", download=True) is False


def test_available_is_false_when_the_server_refuses(small, server):
    server.reply = (503, b"", None)
    assert datasets.available("small", download=True) is False


def test_available_does_not_wait_for_a_silent_name_server(small, monkeypatch):
    released = threading.Event()  # never, while it is asked: who waits for the answer waits for ever
    monkeypatch.setattr(files, "PROBE_TIMEOUT", 0.1)
    monkeypatch.setattr(files.urllib.request, "urlopen", lambda *args, **kwargs: released.wait())
    assert datasets.available("small", download=True) is False
    released.set()


def test_available_never_raises(small, monkeypatch):
    def refuse(folder, file):
        raise PermissionError("closed")

    monkeypatch.setattr(files, "find", refuse)
    assert datasets.available("small") is False


@pytest.mark.parametrize("ask", [datasets.load, datasets.schema])
def test_unknown_name_lists_the_known_ones(ask):
    with pytest.raises(ValueError, match="there are: adult, "):
        ask("iris")


@pytest.mark.parametrize("name", datasets.names())
def test_a_schema_needs_no_table(name, small, monkeypatch):
    monkeypatch.setattr(files, "find", refuse)
    assert datasets.schema(name) == datasets._CATALOGUE[name].schema()
    assert datasets.schema(name).n_features == DOCUMENTED[name][1]


# -- bad input, and what is noted ----------------------------------------------------------------------------------


def test_a_data_folder_that_is_not_there_is_named(small, server, monkeypatch):
    server.reply = (200, WHOLE, None)
    monkeypatch.setenv("DPFOREST_DATA", str(small / "elsewhere"))
    with pytest.raises(DatasetUnavailableError, match=r"elsewhere', which is not a folder: correct it, or unset it$"):
        datasets.load("small")
    assert (kept(small), server.paths) == ([], [])
    assert len(datasets.load("diabetes").X) == 442  # it needs no folder


def test_the_first_line_says_what_to_do(small, server):
    """All that a renderer or a log shows of an error in a cell."""
    with pytest.raises(DatasetUnavailableError) as caught:
        datasets.load("small", download=False)
    assert "set DPFOREST_DATA to a folder that holds it" in str(caught.value).splitlines()[0]
    path = small / "data" / "small" / "small.data"
    path.write_bytes(ROWS[:-10])
    with pytest.raises(ChecksumError) as caught:
        datasets.load("small")
    assert f"{path} does not hold the content" in str(caught.value).splitlines()[0]
    assert "Delete it, or replace it" in str(caught.value).splitlines()[0]


def test_what_is_asked_for_is_noted(small, monkeypatch):
    monkeypatch.setenv("DPFOREST_READS", str(small / "reads"))
    datasets.load("diabetes")
    with pytest.raises(DatasetUnavailableError):
        datasets.load("small", download=False)
    datasets.schema("digits")
    assert (small / "reads").read_text() == "diabetes\nsmall\ndigits\n"


def test_undeclared_value_is_named():
    content = b"?" + ROWS
    with pytest.raises(ValueError, match="'parents' holds"):
        parsers.table(content, datasets._CATALOGUE["nursery"], datasets.schema("nursery"))


@pytest.mark.slow
def test_import_reads_no_data_and_opens_no_connection(tmp_path):
    code = (
        "import sys\n"
        "folder = sys.argv[1]\n"
        "def watch(event, args):\n"
        "    if event.startswith('socket.') and event != 'socket.__new__':\n"
        "        raise SystemExit(f'network: {event}')\n"
        "    if event in ('open', 'os.listdir', 'os.scandir') and str(args[0]).startswith(folder):\n"
        "        raise SystemExit(f'file: {args[0]}')\n"
        "sys.addaudithook(watch)\n"
        "import dpforest.datasets\n"
        "dpforest.datasets.names()\n"
    )
    environment = {**os.environ, "DPFOREST_DATA": str(tmp_path), "DPFOREST_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- a table of one's own ----------------------------------------------------------------------------------------------

OWN = Schema(numeric={"age": (0, 100)}, categorical={"sex": ["f", "m"]}, classes=["no", "yes"], missing="bin")
MINE = {
    "sex": ["m", "f", None, "m"] * 5,
    "note": ["x"] * 20,
    "age": [31.0, 64.0, 7.0, np.nan] * 5,
    "ill": ["no", "yes"] * 10,
}


@pytest.mark.parametrize("kind", ["mapping", "pandas", "arrow", "array"])
@pytest.mark.parametrize("named", [True, False])
def test_a_table_of_ones_own_is_a_data_set(kind, named):
    frame = pd.DataFrame(MINE)
    X = {"mapping": MINE, "pandas": frame, "arrow": pa.table(MINE), "array": frame[["age", "sex"]].to_numpy(object)}[
        kind
    ]
    y = "ill" if named and kind != "array" else MINE["ill"]
    own = datasets.Dataset.of(X, y, OWN, name="mine")
    assert list(own.X.columns) == ["age", "sex"]
    assert (own.y.tolist(), own.name, own.X_test) == (MINE["ill"], "mine", None)
    assert (OWN.encode(own.X, 4).codes == OWN.encode(frame, 4).codes).all()
    parted = own.split(0.25, 0)
    assert (len(parted.y), len(parted.y_test)) == (15, 5)
    rows = sweep(EDPRFClassifier, own, [{"epsilon": 1.0, "n_estimators": 2}], range(2))
    assert rows["accuracy"].between(0, 1).all()


def test_a_table_of_ones_own_that_a_fit_would_refuse_is_refused():
    with pytest.raises(ValueError, match="column 'sex': 1 row with 'w'"):
        datasets.Dataset.of({"age": [1], "sex": ["w"]}, ["no"], OWN)
    with pytest.raises(ValueError, match="X_test and y_test"):
        datasets.Dataset.of({"age": [1], "sex": ["f"]}, ["no"], OWN, X_test={"age": [1], "sex": ["f"]})
    own = datasets.Dataset.of(MINE, "ill", OWN, X_test=MINE, y_test="ill")
    assert own.pooled().X.shape == (40, 2)
    with pytest.raises(ValueError, match=r"write .pooled\(\).split"):
        own.split()
