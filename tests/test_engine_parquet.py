"""Parquet files: the same whole numbers as in memory, however the rows lie in files; what cannot be read is named."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from engine_tables import COUNT, KEYED, READER, SCHEMA, TABLE, forest, in_memory, people

from dpforest import (
    DiffGenClassifier,
    DPAdaBoostClassifier,
    DTDiffClassifier,
    EDPRFClassifier,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    RandomTreesClassifier,
    RandomTreesRegressor,
    SBDTClassifier,
    Schema,
    counting,
)
from dpforest.curator.reader import SchemaReader
from dpforest.engines import EngineError, TableError, is_out_of_core, table_of
from tests import not_run

pa = pytest.importorskip("pyarrow", reason=not_run.PARQUET)
pq = pytest.importorskip("pyarrow.parquet")

from dpforest.engines import parquet as engine  # noqa: E402
from dpforest.engines.parquet import Parquet  # noqa: E402


def counted(paths, reader: SchemaReader = READER, task=COUNT, n_jobs: int = 1, **options) -> list:
    table = Parquet(paths, progress=False, **options).open(reader, n_jobs)
    return [answer.tolist() for answer in table.total(task)]


def write(path: Path, table=TABLE, types=(), group: int | None = None, **options) -> Path:
    """A file with the columns of the table, some of them of other Arrow types."""
    arrow = table if isinstance(table, pa.Table) else pa.Table.from_pandas(table, preserve_index=False)
    for name, type_ in dict(types).items():
        number = arrow.schema.names.index(name)
        column = pa.nulls(len(arrow)) if type_ == pa.null() else arrow.column(name).cast(type_)
        arrow = arrow.set_column(number, name, column)
    pq.write_table(arrow.replace_schema_metadata(), path, row_group_size=group, **options)
    return path


def cut(folder: Path, sizes, table: pd.DataFrame = TABLE, **options) -> Path:
    """The table in files of these sizes."""
    start = 0
    for number, size in enumerate(sizes):
        write(folder / f"{number:03d}.parquet", table.iloc[start : start + size], **options)
        start += size
    assert start == len(table)
    return folder


def refused(paths, text: str, reader: SchemaReader = READER, kind=TableError, n_jobs: int = 1) -> None:
    with pytest.raises(kind, match=text):
        Parquet(paths, progress=False).open(reader, n_jobs)


@pytest.fixture(autouse=True)
def no_thread_stays():
    yield
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("parquet")]


# -- the same integers -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[[997], [0, 300, 0, 697, 0], [100] * 9 + [97]], ids=["one", "empty", "ten"])
def lying(request, tmp_path_factory) -> Path:
    """The table in one file, in several of which some are empty, and in ten."""
    return cut(tmp_path_factory.mktemp("lying"), request.param, group=101)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("rows", [97, 1 << 20])
@pytest.mark.parametrize("reader", ["places", "key"])
@pytest.mark.parametrize("cache", [0, 5000, 1 << 30], ids=["uncached", "partly", "cached"])
def test_however_the_rows_lie(lying, reader, rows, n_jobs, cache):
    table = Parquet(lying, rows=rows, cache=cache, progress=False).open(READERS[reader], n_jobs)
    assert (table.n_rows, table.strays) == (997, {})
    for seed in (0, 1):
        wanted = counted_in_memory(reader, seed)
        assert np.sum(wanted[0]) == 997  # each record in one tree
        assert [answer.tolist() for answer in table.total(forest(seed))] == wanted


READERS = {"places": READER, "key": KEYED}


@cache
def counted_in_memory(reader: str, seed: int) -> list:
    return in_memory(reader=READERS[reader], task=forest(seed))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_count_is_of_more_rows_than_allowed_nor_of_crumbs(tmp_path, n_jobs):
    cut(tmp_path, [50] * 19 + [47], group=25)
    seen = []

    def note(block):
        assert block.codes.flags.c_contiguous
        assert len(block.ids) == len(block.labels) == block.codes.shape[1]
        seen.append(block)
        return (np.bincount(block.ids.astype(int), minlength=997),)

    (times,) = Parquet(tmp_path, rows=200, progress=False).open(READER, n_jobs).total(note)
    assert (times == 1).all()
    sizes = sorted(len(block.labels) for block in seen)
    assert sizes[-1] <= 200
    assert len(sizes) <= 5 + n_jobs + 1


def test_an_empty_row_group(tmp_path):
    with pq.ParquetWriter(tmp_path / "a.parquet", pa.Schema.from_pandas(TABLE, preserve_index=False)) as writer:
        for start, end in ((0, 0), (0, 400), (400, 400), (400, 997), (997, 997)):
            writer.write_table(pa.Table.from_pandas(TABLE.iloc[start:end], preserve_index=False))
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.num_row_groups >= 3
    assert counted(tmp_path) == in_memory()


def test_a_table_without_rows_is_looked_at(tmp_path):
    cut(tmp_path, [0, 0], TABLE.iloc[:0])
    assert Parquet(tmp_path).open(READER, 2).n_rows == 0
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        RandomTreesClassifier(schema=SCHEMA).fit(tmp_path, "income")


def test_values_outside_the_schema_are_counted(tmp_path):
    table = TABLE.assign(age=TABLE.age * 1.5)
    opened = Parquet(cut(tmp_path, [500, 497], table)).open(READER)
    assert opened.strays == {"age": int((table.age > 100).sum())}


# -- ways to name files ----------------------------------------------------------------------------------------------


def test_ways_to_name_files(tmp_path):
    cut(tmp_path, [300, 300, 397])
    (tmp_path / "_metadata.parquet").write_text("of another program")
    (tmp_path / ".000.parquet.crc").write_text("of another program")
    (tmp_path / "notes.txt").write_text("x")
    files = [tmp_path / f"{number:03d}.parquet" for number in range(3)]
    wanted = in_memory()
    ways = [
        tmp_path,
        str(tmp_path),
        str(tmp_path / "0*.parquet"),
        tmp_path / "0?*.parquet",
        files,
        tuple(map(str, files)),
    ]
    ways += [[files[0], str(tmp_path / "00[12].parquet")], str(tmp_path / "**" / "0*.parquet")]
    for way in ways:
        assert is_out_of_core(way)
        assert isinstance(table_of(way), Parquet)
        assert counted(way) == wanted
    odd = files[0].rename(tmp_path / "odd[1].parquet")
    assert counted([odd, *files[1:]]) == wanted


def test_places_are_those_of_the_stated_order(tmp_path):
    cut(tmp_path, [300, 697])
    one, two = tmp_path / "000.parquet", tmp_path / "001.parquet"
    swapped = pd.concat([TABLE.iloc[300:], TABLE.iloc[:300]])
    assert counted([two, one]) == in_memory(swapped) != in_memory()
    assert counted([two, one], KEYED) == in_memory(reader=KEYED)
    one.rename(tmp_path / "9.parquet")
    two.rename(tmp_path / "10.parquet")  # names are text
    assert counted(tmp_path) == in_memory(swapped)


@pytest.mark.parametrize("link", [None, os.symlink, os.link], ids=["named twice", "symbolic link", "hard link"])
def test_no_file_counts_twice(tmp_path, link):
    path = write(tmp_path / "a.parquet")
    again = str(path)
    if link:
        again = tmp_path / "b.parquet"
        link(path, again)
    refused([path, again], r"a\.parquet again: its records would count twice")


def test_no_file(tmp_path):
    refused(tmp_path / "*.parquet", r"no Parquet file matches '.*\*\.parquet'$")
    refused(tmp_path / "a.parquet", r"no Parquet file matches '.*a\.parquet'$")
    refused([tmp_path / "a.parquet"], "no Parquet file matches")
    refused(tmp_path, r"no \*\.parquet lies in .*; for the directories in it, write '.*\*\*/\*\.parquet'")
    refused("s3://bucket/a.parquet", "files must lie on this machine: for other storage, read it with Dask or Spark")
    refused([], "empty list")
    refused([write(tmp_path / "a.parquet"), tmp_path / "b*"], r"no Parquet file matches '.*b\*'")


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "many"])
def test_numbers_of_rows_that_are_none(rows):
    with pytest.raises(ValueError, match="rows must be a whole number of at least 1, not"):
        Parquet("a.parquet", rows=rows)


def test_without_pyarrow(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    refused(path, r"pip install dpforest\[parquet\]", kind=ImportError)
    with pytest.raises(ImportError, match=r"pip install dpforest\[parquet\]"):
        Parquet(path).rows(len, ["age"], "predict")


# -- types -----------------------------------------------------------------------------------------------------------

FORMS = {
    "plain": {},
    "dictionaries": {"work": pa.dictionary(pa.int8(), pa.string()), "income": pa.dictionary(pa.int32(), pa.string())},
    "large": {"work": pa.large_string(), "income": pa.large_string()},
    "large dictionaries": {"work": pa.dictionary(pa.int32(), pa.large_string())},
    "view": {"work": pa.string_view()},
    "small integers": {"hours": pa.int8(), "level": pa.uint8(), "id": pa.int32()},
    "unsigned": {"hours": pa.uint64(), "level": pa.uint16(), "id": pa.uint64()},
    "doubles": {"hours": pa.float64(), "level": pa.float64()},
    "half precision": {"hours": pa.float16(), "level": pa.float16()},
}


@pytest.mark.slow
@pytest.mark.parametrize("types", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"compression": "zstd", "data_page_version": "2.0"}]
)
def test_types_that_say_the_same(tmp_path, types, options):
    """Alone, and in one file beside the usual ones in another."""
    path = write(tmp_path / "a.parquet", types=types, group=250, **options)
    for reader in (READER, KEYED):
        assert counted(path, reader, rows=100) == in_memory(reader=reader)
    parts = [write(tmp_path / "b.parquet", TABLE.iloc[:500], types), write(tmp_path / "c.parquet", TABLE.iloc[500:])]
    for reader in (READER, KEYED):
        assert counted(parts, reader) == in_memory(reader=reader)


def test_single_precision_is_read_as_it_is(tmp_path):
    table = TABLE.assign(age=np.float32(12.5) * (np.arange(997) % 9), hours=np.float32(7.5) * (np.arange(997) % 9))
    assert counted(write(tmp_path / "a.parquet", table)) == in_memory(table)


@pytest.mark.parametrize("kind", [str, lambda number: f"person {number}", float], ids=["digits", "text", "double"])
def test_keys_that_are_no_integers(tmp_path, kind):
    table = TABLE.assign(id=TABLE["id"].map(kind))
    for number, types in enumerate([{}, {"id": pa.dictionary(pa.int32(), pa.string())}][: 1 + (kind is not float)]):
        path = write(tmp_path / f"{number}.parquet", table, types)
        assert counted(path, KEYED, rows=100) == in_memory(table, KEYED)


def test_a_key_may_be_a_feature_too(tmp_path):
    reader = replace(READER, key="work")
    assert counted(write(tmp_path / "a.parquet"), reader) == in_memory(reader=reader)


def test_missing_values_have_a_bin(tmp_path):
    schema = Schema(
        numeric=SCHEMA.numeric, categorical=SCHEMA.categorical, classes=SCHEMA.classes.tolist(), missing="bin"
    )
    reader = SchemaReader(schema, 8, "income")
    table, rng = TABLE.astype({"hours": "Int64", "level": "Int64"}), np.random.default_rng(1)
    for name in SCHEMA.columns:
        table.loc[rng.random(997) < 0.2, name] = None
    nothing = table.assign(work=None, age=np.nan)
    for number, (frame, types) in enumerate(
        [
            (table, {}),
            (table, {"work": pa.dictionary(pa.int8(), pa.string()), "level": pa.int8(), "hours": pa.uint16()}),
            (table, {"age": pa.float32(), "level": pa.float32()}),
            (nothing, {"work": pa.null(), "age": pa.null()}),
        ]
    ):
        floats = {name: "float32" for name, type_ in types.items() if type_ == pa.float32()}
        wanted = in_memory(frame.astype(floats), reader)
        parts = [(frame.iloc[:400], "a"), (frame.iloc[400:], "b")]
        paths = [write(tmp_path / f"{number}{name}.parquet", part, types, group=150) for part, name in parts]
        assert counted(paths, reader, rows=70) == wanted
        assert wanted[1] == [997]
    mixed = [write(tmp_path / "mixed.parquet", table.iloc[:400]), paths[1]]  # nobody in the second file works
    assert counted(mixed, reader) == in_memory(pd.concat([table.iloc[:400], nothing.iloc[400:]]), reader)


def test_large_integers_are_the_nearest_doubles_beside_missing_ones_and_without(tmp_path):
    big = (1 << 53) + 1
    schema = Schema(categorical={"c": [big, -big, 2]}, classes=[0, 1], missing="bin")
    for number, values in enumerate(([big, None, 2, -big], [big, big - 1, 2, -big])):
        path = write(tmp_path / f"{number}.parquet", pa.table({"c": pa.array(values, pa.int64()), "y": [0, 1, 0, 1]}))
        (codes,) = Parquet(path).open(SchemaReader(schema, 2, "y")).total(lambda block: (block.codes.astype(int),))
        assert codes.tolist() == [[0, 0 if number else 3, 2, 1]]
        assert codes.tolist() == schema.encode([[value] for value in values], 2).codes.tolist()
    over = pq.read_table(path).set_column(0, "c", pa.array([big + 1, None, 2, 2], pa.int64()))
    refused(
        write(tmp_path / "b.parquet", over),
        "holds 9007199254740994.0, which is not among",
        SchemaReader(schema, 2, "y"),
    )


def test_the_index_of_pandas_is_a_column(tmp_path):
    TABLE.set_index("id").to_parquet(tmp_path / "a.parquet")
    assert counted(tmp_path, KEYED) == in_memory(reader=KEYED)


def test_targets(tmp_path):
    schema = Schema(numeric={"age": (0, 100)}, target=(0, 50))
    reader = SchemaReader(schema, 8, "hours")
    path = cut(tmp_path, [500, 497])
    for n_jobs in (1, 2):
        table = Parquet(path).open(reader, n_jobs)
        (found,) = table.total(lambda block: (np.bincount(block.labels, minlength=256),))
        assert found.tolist() == np.bincount(schema.encode_target(TABLE["hours"])[0], minlength=256).tolist()
        assert table.strays == {"hours": int((TABLE["hours"] > 50).sum())}


# -- bad tables ------------------------------------------------------------------------------------------------------


def test_a_column_is_missing(tmp_path):
    write(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet", TABLE.drop(columns=["hours", "income"]))
    refused(tmp_path, r"b\.parquet has no column 'hours', 'income'; it has \['age', 'work', 'level', 'id', 'unused'\]")
    refused(tmp_path / "a.parquet", "has no column 'number'", replace(READER, key="number"))
    refused(tmp_path / "a.parquet", "has no column 'reward'", replace(READER, target="reward"))


def test_a_column_that_stands_in_the_names_of_folders_is_said_not_to_be_read(tmp_path):
    for work in ("private", "state"):
        folder = tmp_path / f"work={work}"
        folder.mkdir()
        write(folder / "a.parquet", TABLE[TABLE["work"] == work].drop(columns="work"))
    paths = str(tmp_path / "**" / "*.parquet")
    refused(paths, r"a\.parquet has no column 'work'; it has .*\. 'work' is in the names of folders.*not read")
    with pytest.raises(TableError, match="has no column 'work'") as caught:
        counted(write(tmp_path / "work.parquet", TABLE.drop(columns="work")))
    assert "folders" not in str(caught.value)


def test_a_column_comes_twice(tmp_path):
    arrow = pa.Table.from_pandas(TABLE, preserve_index=False)
    path = write(tmp_path / "a.parquet", arrow.append_column("hours", arrow.column("hours")))
    refused(path, r"a\.parquet has more than one column 'hours'")


@pytest.mark.parametrize(
    ("types", "reader", "text"),
    [
        ({"hours": pa.string()}, READER, "'hours' is int64 in .*a.parquet and string in .*b.parquet: write all files"),
        ({"level": pa.decimal128(21, 2)}, READER, r"'level' is int64 in .*a.parquet and decimal128\(21, 2\) in"),
        ({"id": pa.float64()}, KEYED, "'id' is int64 in .*a.parquet and double in .*b.parquet: write all files"),
        ({"id": pa.string()}, KEYED, "'id' is int64 in .*a.parquet and string in .*b.parquet"),
    ],
)
def test_types_that_differ(tmp_path, types, reader, text):
    parts = [write(tmp_path / "a.parquet", TABLE.iloc[:500]), write(tmp_path / "b.parquet", TABLE.iloc[500:], types)]
    refused(parts, text, reader)
    with pytest.raises(TableError, match=text):
        Parquet(parts).rows(len, reader.columns, "predict") if reader is READER else Parquet(parts).open(reader)


def test_columns_that_nobody_asks_for_may_differ(tmp_path):
    parts = [write(tmp_path / "a.parquet", TABLE.iloc[:500]), tmp_path / "b.parquet"]
    write(parts[1], TABLE.iloc[500:, ::-1].assign(unused=[[1]] * 497, more=1), {"id": pa.float32()})
    assert counted(parts) == in_memory()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"age,hours\n1,2\n" * 100, b"PAR1" + bytes(100) + b"PAR1"])
def test_what_is_no_parquet_file(tmp_path, content):
    write(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(content)
    refused(tmp_path, r"b\.parquet is not a Parquet file, or its footer is damaged")


def damaged(path: Path, group: int, name: str) -> Path:
    """Flip the bits of a column's pages in one row group."""
    metadata = pq.ParquetFile(path).metadata.row_group(group)
    (chunk,) = (metadata.column(i) for i in range(metadata.num_columns) if metadata.column(i).path_in_schema == name)
    content = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    for i in range(start, start + chunk.total_compressed_size):
        content[i] ^= 255
    path.write_bytes(content)
    return path


def flipped(path: Path, group: int, name: str) -> Path:
    """Flip one bit among the values of a column, which nothing but a checksum can notice."""
    metadata = pq.ParquetFile(path).metadata.row_group(group)
    (chunk,) = (metadata.column(i) for i in range(metadata.num_columns) if metadata.column(i).path_in_schema == name)
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_page_is_damaged(tmp_path, n_jobs):
    write(tmp_path / "a.parquet")
    for name in ("age", "work"):
        damaged(write(tmp_path / "b.parquet", group=200), 3, name)
        refused(tmp_path, r"b\.parquet, row group 3 cannot be read, the file is damaged", n_jobs=n_jobs)
        with pytest.raises(TableError, match=r"b\.parquet, row group 3 cannot be read"):
            Parquet(tmp_path / "b.parquet").rows(np.asarray, [name], "predict")


def test_a_checksum_does_not_fit(tmp_path):
    plain = {"compression": "none", "use_dictionary": False, "group": 200}
    path = write(tmp_path / "a.parquet", write_page_checksum=True, **plain)
    assert counted(path) == in_memory()
    refused(flipped(path, 2, "age"), r"a\.parquet, row group 2 cannot be read, the file is damaged: .*CRC")


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (
            "work",
            "navy",
            "column 'work' holds 'navy', which is not among its declared categories; add it to the schema",
        ),
        ("work", None, r"column 'work' contains NaN; declare Schema\(missing='bin'\)"),
        ("level", 4, "column 'level' holds 4, which is not among its declared categories"),
        ("age", np.nan, r"column 'age' contains NaN; declare Schema\(missing='bin'\)"),
        ("income", "fair", r"Unknown label type: 'fair' is not among the declared classes \['poor', 'rich'\]"),
    ],
)
def test_bad_values_are_named_with_their_place(tmp_path, name, value, text, n_jobs):
    table = TABLE.copy()
    table.loc[750, name] = value
    refused(cut(tmp_path, [500, 497], table, group=100), rf"001\.parquet, row group 2: {text}", n_jobs=n_jobs)


def test_a_key_is_missing(tmp_path):
    for column in (TABLE["id"].astype("Int64"), TABLE["id"].astype(str)):
        column = column.copy()
        column[990] = None
        path = write(tmp_path / "a.parquet", TABLE.assign(id=column), group=500)
        refused(path, r"a\.parquet, row group 1: a record key is missing", KEYED)


def test_columns_that_are_no_numbers(tmp_path):
    path = write(tmp_path / "a.parquet", TABLE.assign(age=pd.Timestamp("2026-01-01")))
    refused(path, r"a\.parquet, row group 0: column 'age', declared numeric, holds times")
    path = write(tmp_path / "b.parquet", TABLE.assign(age=TABLE["work"]))
    refused(path, r"b\.parquet, row group 0: column 'age', declared numeric, holds '.*', a text that writes no number")
    path = write(tmp_path / "c.parquet", TABLE.assign(level=[[1, 2]] * 997))
    refused(path, r"c\.parquet, row group 0: column 'level' holds an ndarray.* neither a number nor text")


# -- errors stop a pass, and tables must not change --------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt, MemoryError])
def test_the_first_error_stops_the_pass(tmp_path, n_jobs, kind):
    cut(tmp_path, [100] * 9 + [97])
    table, calls = Parquet(tmp_path, rows=20).open(READER, n_jobs), []

    def stumble(block):
        calls.append(len(block.labels))
        if len(calls) == 3:
            raise kind("the reason")
        return (np.array([1]),)

    with pytest.raises(kind, match="the reason"):
        table.total(stumble)
    assert len(calls) <= 3 + 2 * n_jobs
    assert [answer.tolist() for answer in table.total(COUNT)] == in_memory()  # the table is as good as before


def test_an_error_of_the_task_is_none_of_the_table(tmp_path):
    def stumble(block):
        raise ValueError("the reason")

    with pytest.raises(ValueError, match=r"^the reason$") as caught:
        Parquet(write(tmp_path / "a.parquet")).open(READER).total(stumble)
    assert not isinstance(caught.value, TableError)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_file_changes_between_two_passes(tmp_path, n_jobs):
    paths = [write(tmp_path / f"{name}.parquet", TABLE) for name in "ab"]
    table = Parquet(paths).open(READER, n_jobs)
    table.total(COUNT)
    write(paths[1], people(seed=1))
    with pytest.raises(EngineError, match=r"b\.parquet has changed since it was opened: .* fit again"):
        table.total(COUNT)
    paths[0].unlink()
    paths[1].unlink()
    with pytest.raises(EngineError, match=r"\.parquet is gone: the files must stay as they are"):
        table.total(COUNT)
    write(paths[0])
    with pytest.raises(EngineError, match=r"\.parquet (has changed|is gone)"):
        table.total(COUNT)


def test_a_file_changes_while_it_is_read(tmp_path):
    path = write(tmp_path / "a.parquet", group=100)
    table = Parquet(path, rows=100, cache=0).open(READER)

    def change(block):
        write(path, people(seed=1), group=100)
        return (np.array([1]),)

    with pytest.raises(EngineError, match=r"a\.parquet has changed since it was opened"):
        table.total(change)


def test_other_rows_are_noticed_by_their_number(tmp_path):
    """Even where the file's date and size do not tell."""
    table = Parquet(cut(tmp_path, [500, 497])).open(READER)
    table._pieces.pop()
    with pytest.raises(EngineError, match="the table had 997 rows when it was opened and has 500 now"):
        table.total(COUNT)


# -- the rows that are kept ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("reader", "width"), [(READER, 5), (KEYED, 13)], ids=["places", "key"])
@pytest.mark.parametrize("kept", [0, 1, 3, 10])
def test_what_fits_is_read_once(tmp_path, monkeypatch, reader, width, kept, n_jobs):
    cut(tmp_path, [0, *[100] * 9, 97])
    reads, frames = [], engine._frames

    def note(piece, *others):
        reads.append(piece.first)
        return frames(piece, *others)

    monkeypatch.setattr(engine, "_frames", note)
    table = Parquet(tmp_path, cache=width * (100 * kept + 99)).open(reader, n_jobs)
    assert sorted(reads) == [*range(0, 1000, 100)]
    for _ in range(2):
        reads.clear()
        assert [answer.tolist() for answer in table.total(COUNT)] == in_memory(reader=reader)
        assert sorted(reads) == [*range(100 * kept, 1000, 100)]
    size = sum(
        block.codes.nbytes + block.labels.nbytes + (0 if block.numbers is None else block.numbers.nbytes)
        for blocks in table._kept.values()
        for block in blocks
    )
    assert size == width * min(100 * kept, 997)
    again = table.open(reader, n_jobs)
    assert again._kept is not table._kept  # each open table has its own


NUMBER = Schema(numeric={"age": (0, 100)}, categorical=SCHEMA.categorical, target=(0, 60))
FEW = {"n_bins": 8, "epsilon": 20.0, "random_state": 0}
BOOSTED = {  # a learner, its target, and whether its scores are kept
    "flagship": (PrivateBoostingClassifier(schema=SCHEMA, n_estimators=5, **FEW), "income", True),
    "flagship, a number": (PrivateBoostingRegressor(schema=NUMBER, n_estimators=5, **FEW), "hours", True),
    "DP-AdaBoost": (DPAdaBoostClassifier(schema=SCHEMA, n_estimators=4, **FEW), "income", True),
    # a record that a filter puts aside has no score of later trees, so that rounds are repeated in each pass
    "S-BDT": (SBDTClassifier(schema=SCHEMA, n_estimators=3, max_depth=2, **FEW), "income", False),
}


@pytest.mark.parametrize("name", BOOSTED)
def test_scores_of_kept_rows_are_added_up_once(tmp_path, monkeypatch, name):
    """The model is that of memory, whatever there is room for; where there is room, each block asks a tree once."""
    monkeypatch.setattr(engine, "_PIECE", 90)
    learner, target, kept = BOOSTED[name]
    columns = learner.schema.columns
    asked, opened = Counter(), []
    sum_values, prepare = counting.sum_values, Parquet._prepare

    def count(codes, forest, values, **how):
        asked[codes.tobytes()] += len(forest.roots)
        return sum_values(codes, forest, values, **how)

    def note(self):
        prepare(self)
        opened.append(self)

    monkeypatch.setattr(counting, "sum_values", count)
    monkeypatch.setattr(Parquet, "_prepare", note)
    learner.set_params(n_jobs=1).fit(TABLE[[*columns, target]], target)
    model = learner.to_dict(seeded=True)
    [n_trees] = asked.values()
    assert n_trees > 2
    cut(tmp_path, [300, 0, 697], group=250)
    encoded = (len(columns) + 1) * 997
    for room, n_jobs in ((encoded, 1), (encoded + 2000, 2), (1 << 30, 2)):
        asked.clear()
        learner.set_params(n_jobs=n_jobs).fit(Parquet(tmp_path, rows=150, cache=room, progress=False), target)
        assert learner.to_dict(seeded=True) == model
        blocks = [block for each in opened[-1]._kept.values() for block in each]
        assert sum(len(block.labels) for block in blocks) == 997
        own = [block for block in blocks if block.cache is not None]
        scored = [block for block in own if block.cache.found is not None]
        assert encoded + sum(block.cache.found.n_bytes for block in scored) <= room
        assert bool(scored) == (kept and room > encoded)
        assert (len(scored) == len(own)) == (kept and room == 1 << 30)
        once = [block for block in own if asked[block.codes.tobytes()] <= n_trees]
        assert len(once) == len(scored)


@pytest.mark.parametrize("cache", [-1, 0.5, None, True])
def test_caches_that_are_none(cache):
    with pytest.raises(ValueError, match="cache must be a whole number of at least 0, not"):
        Parquet("a.parquet", cache=cache)


# -- what is said of a pass --------------------------------------------------------------------------------------------


def test_what_each_pass_took(tmp_path):
    cut(tmp_path, [500, 497])
    table = Parquet(tmp_path).open(READER)
    table.total(COUNT)
    assert [(read.what, read.n_rows) for read in table.log] == [("look", 997), ("leaves", 997)]
    assert 0 < table.scan_bytes < Parquet(tmp_path).open(KEYED).scan_bytes
    groups = [pq.ParquetFile(path).metadata.row_group(0) for path in tmp_path.iterdir()]
    sizes = {group.column(i).path_in_schema: 0 for group in groups for i in range(group.num_columns)}
    for group in groups:
        for i in range(group.num_columns):
            sizes[group.column(i).path_in_schema] += group.column(i).total_compressed_size
    assert table.scan_bytes == sum(sizes[name] for name in READER.columns)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress(tmp_path, capsys, n_jobs):
    cut(tmp_path, [500, 497])
    Parquet(tmp_path, progress=True).open(READER, n_jobs).total(COUNT)
    shown = capsys.readouterr().err
    assert re.search(r"look: 100%.*997/997", shown)
    assert re.search(r"leaves: 100%.*997/997", shown)
    Parquet(tmp_path).open(READER, n_jobs).total(COUNT)  # standard error is no terminal
    assert not capsys.readouterr().err


# -- prediction --------------------------------------------------------------------------------------------------------


def test_answers_come_in_the_order_of_the_rows(tmp_path):
    cut(tmp_path, [0, 300, 0, 697], group=101)

    def answer(frame):
        assert list(frame.columns) == ["hours", "work", "age"]
        assert len(frame) <= 50
        return np.column_stack([frame["age"], frame["hours"]])

    for paths in (tmp_path, sorted(tmp_path.iterdir())):
        found = Parquet(paths, rows=50).rows(answer, ["hours", "work", "age"], "predict")
        np.testing.assert_array_equal(found, TABLE[["age", "hours"]].to_numpy())
    labels = Parquet(tmp_path, rows=50).rows(lambda frame: np.asarray(frame["work"]), ["work"], "predict")
    assert labels.tolist() == TABLE["work"].tolist()


def test_answers_to_no_rows(tmp_path):
    write(tmp_path / "a.parquet", TABLE.iloc[:0])
    found = Parquet(tmp_path).rows(lambda frame: np.zeros((len(frame), 2)), ["age"], "predict")
    assert found.shape == (0, 2)


def test_bad_rows_to_predict_are_named(tmp_path):
    table = TABLE.copy()
    table.loc[750, "work"] = "navy"
    cut(tmp_path, [500, 497], table, group=100)
    with pytest.raises(TableError, match=r"001\.parquet, row group 2: column 'work' holds 'navy'"):
        Parquet(tmp_path).rows(lambda frame: SCHEMA.encode(frame, 8).codes.T, SCHEMA.columns, "predict")
    with pytest.raises(TableError, match=r"000\.parquet has no column 'weight'"):
        Parquet(tmp_path).rows(len, ["age", "weight"], "predict")


# -- learners ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize(
    ("learner", "target"),
    [
        (RandomTreesClassifier(n_estimators=3, max_depth=3, n_bins=8, schema=SCHEMA), "income"),
        (EDPRFClassifier(n_estimators=2, max_depth=3, n_bins=8, schema=SCHEMA), "income"),
        (DiffGenClassifier(n_bins=8, schema=SCHEMA), "income"),
        (DTDiffClassifier(n_bins=8, schema=SCHEMA), "income"),
        (PrivateBoostingClassifier(n_bins=8, schema=SCHEMA), "income"),
        (
            RandomTreesRegressor(
                n_estimators=3,
                max_depth=3,
                n_bins=8,
                schema=Schema(numeric={"age": (0, 100)}, categorical=SCHEMA.categorical, target=(0, 60)),
            ),
            "hours",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_learners_give_the_model_of_memory(tmp_path, learner, target, key):
    learner.set_params(epsilon=5.0, random_state=0)
    columns = learner.schema.columns
    cut(tmp_path, [300, 0, 697], group=101)
    learner.set_params(n_jobs=1).fit(TABLE[[*columns, target, "id"]], target, key=key)
    model, paid, answers = learner.to_dict(seeded=True), str(learner.ledger_), learner.predict(TABLE[columns])
    for paths in (str(tmp_path / "*.parquet") if key else tmp_path, Parquet(tmp_path, rows=90, cache=3000)):
        learner.set_params(n_jobs=2).fit(paths, target, key=key)
        assert learner.to_dict(seeded=True) == model
        assert str(learner.ledger_) == paid
        np.testing.assert_array_equal(learner.predict(paths), answers)


def test_no_half_fitted_model(tmp_path):
    cut(tmp_path, [500, 497], group=100)
    learner = RandomTreesClassifier(schema=SCHEMA, epsilon=1.0)
    damaged(tmp_path / "001.parquet", 3, "age")
    with pytest.raises(TableError, match=r"001\.parquet, row group 3 cannot be read"):
        learner.fit(tmp_path, "income")
    assert not [name for name in vars(learner) if name.endswith("_")]


def test_pieces_are_shared_among_threads(tmp_path):
    cut(tmp_path, [250] * 3 + [247], group=100)
    table = Parquet(tmp_path).open(READER, 2)
    assert [len(piece.groups) for piece in table._pieces] == [3, 3, 3, 3]
    assert [piece.first for piece in table._pieces] == [0, 250, 500, 750]
    assert [len(piece.groups) for piece in table._cut(150)] == [2, 1] * 4
    assert engine._PIECE <= 1 << 18


# -- lying files ---------------------------------------------------------------------------------------------------


def forged(path, rows: int, claim: int, which: slice) -> str:
    """The file with another number of rows in its footer, in some of the places where the footer says it."""

    def varint(number: int) -> bytes:  # as Thrift writes whole numbers
        number, out = 2 * number, b""
        while number > 127:
            out, number = out + bytes([number & 127 | 128]), number >> 7
        return out + bytes([number])

    raw = path.read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    footer, old, new = raw[start:-8], varint(rows), varint(claim)
    assert len(old) == len(new)
    places = [at for at in range(len(footer)) if footer[at : at + len(old)] == old][which]
    assert places, "the footer does not say it where it was looked for"
    lying = bytearray(footer)
    for at in places:
        lying[at : at + len(old)] = new
    path.write_bytes(raw[:start] + bytes(lying) + raw[-8:])
    return str(path)


@pytest.mark.parametrize(
    ("claim", "which"),
    # a footer that says 64 in all places describes a table of 64 rows, which is what is read of it
    [*product([3500, 8191], [slice(None), slice(0, 1), slice(-1, None)]), (64, slice(0, 1)), (64, slice(-1, None))],
    ids=str,
)
def test_a_footer_that_lies_gives_an_error_and_no_memory(tmp_path, claim, which):
    """Answers are as many as the rows that were read; whatever a footer claims, nothing else comes back."""
    path = tmp_path / "lying.parquet"
    pd.DataFrame({"x": np.arange(500) / 500, "y": np.arange(500) % 2}).to_parquet(path)
    lying = forged(path, 500, claim, which)
    schema = Schema(numeric={"x": (0, 1)}, classes=[0, 1])
    with pytest.raises(TableError, match=r"lying\.parquet.*(forged|damaged)"):
        Parquet(lying, progress=False).rows(lambda frame: frame["x"].to_numpy(), ["x"], "x")
    with pytest.raises(TableError, match=r"lying\.parquet.*(forged|damaged)"):
        Parquet(lying, progress=False).open(SchemaReader(schema, 2, "y"))
