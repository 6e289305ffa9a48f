"""Dask: the same whole numbers as in memory, however the table is cut, whoever counts, and whoever dies on the way."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from engine_tables import (
    COUNT,
    KEYED,
    PATIENCE,
    READER,
    SCHEMA,
    TABLE,
    Large,
    Traced,
    ages,
    begun,
    die,
    forest,
    identify,
    in_memory,
    itself,
    read_again,
    shares,
    stumble,
    until,
    wait_here,
    with_process,
)
from sklearn.base import clone

from dpforest import (
    DiffGenClassifier,
    DiffPETsRegressor,
    DTDiffClassifier,
    EDPRFClassifier,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    Schema,
)
from dpforest.curator.reader import SchemaReader
from dpforest.engines import EngineError, TableError
from dpforest.papers.pearson_tree import PearsonTreeClassifier
from tests import not_run

for name in ("dask", "distributed"):
    if find_spec(name) is None:
        pytest.skip(not_run.DASK, allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def _dask():
    """What takes a second to import, where these tests run; all workers collect them."""
    global Dask, dask, dd, distributed, engine
    import dask
    import dask.dataframe as dd
    import distributed

    from dpforest.engines import dask as engine
    from dpforest.engines.dask import Dask


def same(found: tuple, wanted: list) -> bool:
    return [answer.tolist() for answer in found] == wanted


def cut(table: pd.DataFrame, sizes: list[int]):
    """A Dask DataFrame with partitions of these sizes."""
    ends = np.cumsum([0, *sizes])
    assert ends[-1] == len(table)
    pieces = [table.iloc[start:end] for start, end in pairwise(ends)]
    return dd.from_map(itself, pieces, meta=table.iloc[:0])


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, each with a nanny that starts it again when it dies."""
    small = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with dask.config.set({"distributed.scheduler.worker-ttl": None}), distributed.LocalCluster(**small) as cluster:
        yield cluster


def bring_back(client, cluster, *, patience=(60, 120, 240)) -> None:
    """Wait for both workers; a nanny tries once to start one: where it gave up, as on a busy machine, make others."""
    for seconds in patience:
        with suppress(TimeoutError):
            return client.wait_for_workers(2, timeout=seconds)
        cluster.scale(0)
        cluster.scale(2)
    return client.wait_for_workers(2, timeout=PATIENCE)


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        bring_back(client, cluster)
        yield client
        until(lambda: not client.run_on_scheduler(tasks_left))


def tasks_left(dask_scheduler) -> list[str]:
    return [str(key) for key in dask_scheduler.tasks]


# -- the same integers -----------------------------------------------------------------------------------------------

PARTITIONINGS = {
    "one": [997],
    "two": [500, 497],
    "three": [1, 995, 1],
    "empty": [0, 300, 0, 0, 697, 0],
    "fifty": [20] * 49 + [17],
}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", PARTITIONINGS.values(), ids=PARTITIONINGS)
@pytest.mark.parametrize("reader", [READER, KEYED], ids=["places", "key"])
def test_every_partitioning_gives_the_integers_of_memory(sizes, reader):
    table = Dask(cut(TABLE, sizes), scheduler="threads").open(reader)
    assert (table.n_rows, table.strays) == (997, {})
    wanted = in_memory(reader=reader)
    assert np.sum(wanted[0]) == 997  # each record in one tree
    assert same(table.total(COUNT), wanted)
    assert same(table.total(forest(1)), in_memory(reader=reader, task=forest(1)))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [PARTITIONINGS["one"], PARTITIONINGS["empty"], PARTITIONINGS["fifty"]])
def test_a_cluster_gives_the_integers_of_memory(client, sizes):
    frame = cut(TABLE, sizes)
    for table in (frame, frame.persist()):
        table = Dask(table).open(READER)  # the current client
        assert same(table.total(COUNT), in_memory())
        assert same(table.total(forest(1)), in_memory(task=forest(1)))
        del table
    del frame


@pytest.mark.slow
def test_a_cluster_is_named_in_four_ways(cluster):
    frame = cut(TABLE, [400, 597])
    with distributed.Client(cluster, set_as_default=False) as client:
        for scheduler in (cluster, cluster.scheduler_address, client):
            assert same(Dask(frame, scheduler=scheduler).open(READER).total(COUNT), in_memory())
    with distributed.Client(cluster):
        persisted = frame.persist()  # it belongs to the current client, which the address then means
        assert same(Dask(persisted, scheduler=cluster.scheduler_address).open(READER).total(COUNT), in_memory())
        bad = TABLE.assign(work="navy")
        with pytest.raises(TableError, match="partition 0: column 'work' holds 'navy'"):
            Dask(cut(bad, [997]), scheduler=cluster).open(READER)
        with dask.config.set(scheduler="sync"):  # Dask's own setting goes before the client
            table = Dask(frame).open(READER)
            with table._scheduler() as (_, found):
                assert found is None
            assert same(table.total(COUNT), in_memory())


def test_the_processes_that_count_are_not_this_one(client):
    frame = cut(TABLE, [400, 597]).map_partitions(with_process, meta=TABLE.iloc[:0])
    table = Dask(frame).open(KEYED)
    assert table.total(identify)[0] not in (0, 997 * os.getpid())


def test_numbered_columns_are_named_as_in_the_schema():
    table = TABLE[READER.columns].set_axis(range(5), axis=1)
    numeric, categorical = list(SCHEMA.numeric.values()), list(SCHEMA.categorical.values())
    schema = Schema(
        numeric={"0": numeric[0], "1": numeric[1]},
        categorical={"2": categorical[0], "3": categorical[1]},
        classes=SCHEMA.classes,
    )
    found = Dask(dd.from_pandas(table, npartitions=3), scheduler="sync").open(SchemaReader(schema, 8, "4")).total(COUNT)
    assert same(found, in_memory())


def test_values_outside_the_schema_are_counted():
    table = TABLE.assign(age=TABLE.age * 1.5)
    opened = Dask(cut(table, [500, 497]), scheduler="sync").open(READER)
    assert opened.strays == {"age": int((table.age > 100).sum())}


def test_large_partitions_are_counted_in_blocks(monkeypatch):
    monkeypatch.setattr(engine, "_BLOCK_ROWS", 64)
    assert same(Dask(cut(TABLE, [500, 497]), scheduler="sync").open(READER).total(COUNT), in_memory())


def test_a_table_without_rows_is_looked_at():
    assert Dask(cut(TABLE.iloc[:0], [0, 0]), scheduler="sync").open(READER).n_rows == 0


# -- what travels, and what stays -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pass_does_not_travel_with_each_partition(client, tmp_path):
    """It goes to one worker, and from there to the other; Dask may throw a copy away and fetch it again, in seconds."""
    table = Dask(cut(TABLE, PARTITIONINGS["fifty"])).open(READER)
    assert table.total(Traced(str(tmp_path)))[0] == 997
    times = Counter(path.name.split("-")[0] for path in tmp_path.iterdir())
    assert 0 < times.total() < 25
    assert str(os.getpid()) not in times


def test_one_sum_comes_back():
    table = Dask(cut(TABLE, PARTITIONINGS["fifty"]), scheduler="sync").open(READER)
    plan = table._plan(engine.Pass(READER, COUNT), add_up=True)
    assert len(plan.wanted) == 1
    adding = [task for task in plan.graph.values() if isinstance(task, tuple) and task[0] is engine._add]
    assert len(adding) == 13 + 4 + 1
    assert max(len(task[1]) for task in adding) == engine._FAN_IN


@pytest.mark.slow
def test_a_large_pass_is_no_reason_to_warn(client):
    """Dask warns of graphs of more than 10 MB, which here would be an error."""
    table = Dask(cut(TABLE, [500, 497])).open(READER)
    large = Large(np.arange(2_000_000))
    assert table.total(large)[0] == 997


@pytest.mark.parametrize("scheduler", ["threads", None])
def test_no_pass_answers_for_another(client, tmp_path, scheduler):
    """The names of the partitions stay the same from pass to pass: only ours are new."""
    source = tmp_path / "table.parquet"
    TABLE.to_parquet(source)
    frame = dd.from_map(read_again, [str(source)] * 2, meta=TABLE.iloc[:0])
    table = Dask(frame, scheduler=scheduler).open(KEYED)
    before = table.total(COUNT)
    TABLE.assign(income="rich").to_parquet(source)
    after = table.total(COUNT)
    assert before[0][:, 0].sum() > 0
    assert after[0][:, 0].sum() == 0


def test_nothing_stays_on_the_cluster(client):
    table = Dask(cut(TABLE, [500, 497])).open(READER)
    for _ in range(3):
        table.total(COUNT)
    until(lambda: not client.run_on_scheduler(tasks_left))
    with pytest.raises(TableError):
        Dask(cut(TABLE.assign(age=np.nan), [500, 497])).open(READER)
    until(lambda: not client.run_on_scheduler(tasks_left))


@pytest.mark.slow
@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_progress_counts_partitions(where, cluster, capsys):
    table = Dask(cut(TABLE, PARTITIONINGS["fifty"]), scheduler=cluster if where == "cluster" else where, progress=True)
    table.open(READER).total(COUNT)
    shown = capsys.readouterr().err
    assert shown.count("50/50") >= 2
    assert "look" in shown
    quiet = Dask(cut(TABLE, [500, 497]), scheduler="threads").open(READER)  # standard error is no terminal
    quiet.total(COUNT)
    assert not capsys.readouterr().err


# -- bad input, and engines that fail ----------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_a_value_that_cannot_be_read_is_named(where, cluster):
    bad = TABLE.copy()
    bad.loc[700, "work"] = "navy"
    table = Dask(cut(bad, [300, 300, 397]), scheduler=cluster if where == "cluster" else where)
    with pytest.raises(TableError, match=r"partition 2: column 'work' holds 'navy', which is not among") as caught:
        table.open(READER)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("where", ["sync", "cluster"])
def test_a_partition_that_cannot_be_computed_is_named(where, cluster):
    frame = cut(TABLE, [300, 300, 397]).map_partitions(stumble, meta=TABLE.iloc[:0])
    table = Dask(frame, scheduler=cluster if where == "cluster" else where)
    with pytest.raises(TableError, match="partition 2 cannot be computed: ZeroDivisionError: the reason"):
        table.open(READER)


def test_missing_columns_are_named():
    with pytest.raises(TableError, match="the Dask DataFrame has no column 'hours', 'id'; it has"):
        Dask(cut(TABLE.drop(columns=["hours", "id"]), [997])).open(KEYED)
    frame = cut(TABLE, [300, 697]).map_partitions(lose, meta=TABLE.iloc[:0])
    with pytest.raises(TableError, match=r"(?s)partition 1 .*hours"):
        Dask(frame, scheduler="sync").open(READER)


def lose(frame):
    return frame.drop(columns="hours") if len(frame) == 697 else frame


def test_only_dataframes_and_paths_are_read():
    with pytest.raises(TypeError, match=r"Dask reads a dask.dataframe.DataFrame or Parquet files, not Series"):
        Dask(cut(TABLE, [997])["age"]).open(READER)
    with pytest.raises(ValueError, match="Expected one of"):
        Dask(cut(TABLE, [997]), scheduler="nobody").open(READER)


@pytest.mark.parametrize("library", ["dask.dataframe", "distributed"])
def test_without_dask_the_extra_is_named(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"pip install dpforest\[dask\]"):
        Dask(["table.parquet"]).open(READER)


def test_rows_that_move_between_passes_are_noticed(tmp_path):
    """Places tell records only as long as they stay; a key does so wherever they go."""
    frame = cut(TABLE, [500, 497]).map_partitions(move, str(tmp_path), meta=TABLE.iloc[:0])
    places, key = (Dask(frame, scheduler="sync").open(reader) for reader in (READER, KEYED))
    (tmp_path / "move").touch()
    with pytest.raises(EngineError, match=r"partition 0: it had 500 rows when .* has 499 now.*name a key column"):
        places.total(COUNT)
    with pytest.raises(EngineError, match="the table had 997 rows when it was opened and has 995 now"):
        key.total(COUNT)


def move(frame, folder):
    return frame.iloc[1:] if (Path(folder) / "move").exists() else frame


def test_a_scheduler_that_does_not_answer(monkeypatch):
    monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", "0.5s")
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:1'.*start one"):
        Dask(cut(TABLE, [997]), scheduler="tcp://127.0.0.1:1").open(READER)
    with pytest.raises(EngineError, match="no Dask scheduler answers at 'here:there'"):
        Dask(cut(TABLE, [997]), scheduler="here:there").open(READER)


def small_cluster():
    return distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", host="127.0.0.1", protocol="tcp"
    )


def test_a_scheduler_that_was_closed(monkeypatch):
    with small_cluster() as gone, distributed.Client(gone, set_as_default=False) as client:
        tables = [Dask(cut(TABLE, [500, 497]), scheduler=where).open(READER) for where in (client, gone)]
        client.close()
        gone.close()
        monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", "0.5s")
        with pytest.raises(EngineError, match="the Dask client is closed: connect a new one"):
            tables[0].total(COUNT)
        with pytest.raises(EngineError, match="no Dask scheduler answers"):
            tables[1].total(COUNT)
        with pytest.raises(EngineError):
            tables[1].open(READER)


def test_a_scheduler_that_closes_during_a_pass():
    begun, leave = threading.Event(), threading.Event()

    def close() -> None:
        assert begun.wait(PATIENCE)
        client.close()
        leave.set()

    with small_cluster() as cluster, distributed.Client(cluster, set_as_default=False) as client:
        table = Dask(cut(TABLE, [500, 497]), scheduler=client).open(READER)
        _EVENTS[:] = begun, leave
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(close)
            with pytest.raises(EngineError, match="a new fit starts from nothing"):
                table.total(stall)
            future.result()


_EVENTS: list[threading.Event] = []  # for workers that are threads of this process


def stall(block):
    begun, leave = _EVENTS
    begun.set()
    assert leave.wait(PATIENCE)
    return (np.array([len(block.labels)]),)


# -- Parquet files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path) -> Path:
    """Twelve files, whose order as text is not that of their numbers; one of them is empty."""
    ends = np.linspace(0, 997, 12).astype(int)
    names = sorted(f"part{number}.parquet" for number in range(12))
    names.remove("part7.parquet")
    for name, (start, end) in zip(names, pairwise(ends), strict=True):
        TABLE.iloc[start:end].to_parquet(tmp_path / name, row_group_size=40)
    TABLE.iloc[:0].to_parquet(tmp_path / "part7.parquet")
    return tmp_path


@pytest.mark.slow
def test_files_are_read_in_the_order_of_the_other_engines(folder, cluster):
    files = sorted(folder.glob("*.parquet"))
    for paths in (folder, str(folder / "*.parquet"), files):
        assert same(Dask(paths, scheduler="threads").open(READER).total(COUNT), in_memory())
    table = Dask(folder, scheduler=cluster).open(READER)
    assert same(table.total(COUNT), in_memory())
    assert same(
        Dask(f"file://{files[0]}", scheduler="sync").open(KEYED).total(COUNT),
        in_memory(pd.read_parquet(files[0]), KEYED),
    )


def test_only_the_columns_that_are_needed_are_read(folder):
    table = Dask(folder, scheduler="sync").open(READER)
    [frame] = dask.get(table._graph, table._parts[:1])
    assert list(frame.columns) == READER.columns


def test_a_bad_file_is_named(folder):
    other = TABLE.iloc[:5].drop(columns="hours")
    other.to_parquet(folder / "part3.parquet")
    with pytest.raises(TableError, match=r"part3.parquet has no column 'hours'"):
        Dask(folder).open(READER)
    (folder / "part3.parquet").write_bytes(b"PAR1 and so on")
    with pytest.raises(TableError, match=r"part3.parquet is not a Parquet file"):
        Dask(folder).open(READER)
    with pytest.raises(TableError, match="no Parquet file matches"):
        Dask(folder / "none*.parquet").open(READER)
    with pytest.raises(TableError, match="Dask cannot read the table"):
        Dask(f"file://{folder}/none.parquet").open(READER)


def test_a_file_that_changes_is_noticed(folder):
    table = Dask(folder, scheduler="sync").open(READER)
    TABLE.iloc[:50].to_parquet(folder / "part3.parquet")
    with pytest.raises(EngineError, match=r"partition \d+: .*part3.parquet has changed since it was opened"):
        table.total(COUNT)


# -- predictions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["sync", "cluster"])
def test_answers_are_lazy_and_keep_the_index(cluster, scheduler):
    table = TABLE.set_axis(np.arange(10, 1007))
    frame = dd.from_pandas(table, npartitions=4)
    label, share = Dask(frame).rows(ages, ["age"], "label"), Dask(frame).rows(shares, ["age"], "share")
    assert isinstance(label, dd.Series)
    assert label.known_divisions
    assert label.divisions == share.divisions == frame.divisions
    with distributed.Client(cluster, set_as_default=False) as client:
        how = {"scheduler": client if scheduler == "cluster" else scheduler}
        found, both = label.compute(**how), share.compute(**how)
    pd.testing.assert_series_equal(found, pd.Series(ages(table), index=table.index, name="label"))
    pd.testing.assert_frame_equal(both, pd.DataFrame(shares(table), index=table.index, columns=["share_0", "share_1"]))
    assert found.dtype == label.dtype
    assert both.dtypes.tolist() == share.dtypes.tolist()


def test_answers_to_files_and_empty_partitions(folder):
    found = Dask(folder).rows(ages, ["age"], "label").compute(scheduler="sync")
    assert found.tolist() == ages(TABLE).tolist()
    empty = Dask(cut(TABLE, [0, 500, 0, 497])).rows(ages, ["age"], "label").compute(scheduler="sync")
    assert empty.tolist() == ages(TABLE).tolist()
    with pytest.raises(TableError, match="no column 'height'"):
        Dask(folder).rows(ages, ["height"], "label")


# -- learners ----------------------------------------------------------------------------------------------------------

REGRESSION = Schema(numeric={"age": (0, 100)}, categorical={"work": ["private", "state", "none"]}, target=(0, 60))


LEARNERS = [
    (EDPRFClassifier(schema=SCHEMA, epsilon=2.0, n_estimators=3, max_depth=3, n_bins=8, random_state=1), "income"),
    (PearsonTreeClassifier(schema=SCHEMA, epsilon=2.0, max_depth=2, n_bins=8, random_state=2), "income"),
    (DiffPETsRegressor(schema=REGRESSION, epsilon=2.0, n_estimators=3, max_depth=2, random_state=3), "hours"),
    (DiffGenClassifier(schema=SCHEMA, epsilon=2.0, n_bins=8, random_state=4), "income"),
    (DTDiffClassifier(schema=SCHEMA, epsilon=2.0, n_bins=8, random_state=5), "income"),
    (PrivateBoostingClassifier(schema=SCHEMA, epsilon=2.0, n_bins=8, random_state=6), "income"),
    (PrivateBoostingRegressor(schema=REGRESSION, epsilon=2.0, random_state=7), "hours"),
]


def fitted(learner, X, y, key=None) -> tuple:
    model = clone(learner).fit(X, y, key=key)
    return model.to_dict(seeded=True), repr(model.ledger_), repr(model.guarantee_)


def columns_of(learner, y) -> pd.DataFrame:
    return TABLE[[*learner.schema.columns, y]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "y"), LEARNERS, ids=lambda given: given if isinstance(given, str) else type(given).__name__
)
def test_learners_grow_the_same_trees(learner, y, cluster):
    wanted = fitted(learner, columns_of(learner, y), y)
    assert fitted(learner, Dask(cut(TABLE, [0, 500, 0, 497]), scheduler="threads"), y) == wanted
    assert fitted(learner, Dask(cut(TABLE, [300, 697]), scheduler=cluster), y) == wanted


@pytest.mark.slow
def test_a_key_outlives_another_order(client):
    """The trees share the records by their key, so that the order of the rows has no say."""
    learner, y = LEARNERS[0]
    shuffled = TABLE.sample(frac=1, random_state=5)
    wanted = fitted(learner, TABLE, y, "id")
    assert fitted(learner, cut(shuffled, [0, 500, 497]), y, "id") == wanted
    assert fitted(learner, cut(shuffled, [0, 500, 497]), y) != wanted


def test_a_fit_that_fails_leaves_no_model():
    bad = TABLE.copy()
    bad.loc[700, "work"] = "navy"
    learner, y = LEARNERS[0]
    learner = clone(learner)
    with pytest.raises(TableError, match="partition 1: column 'work' holds 'navy'"):
        learner.fit(Dask(cut(bad, [500, 497]), scheduler="sync"), y)
    assert not [name for name in vars(learner) if name.endswith("_")]


def test_predictions_are_those_in_memory():
    learner, y = LEARNERS[0]
    model = clone(learner).fit(cut(TABLE, [500, 497]), y)
    rows = TABLE[SCHEMA.columns]
    frame = dd.from_pandas(TABLE, npartitions=3)
    assert model.predict(frame).compute().tolist() == model.predict(rows).tolist()
    np.testing.assert_array_equal(model.predict_proba(frame).compute(), model.predict_proba(rows))


# -- a worker dies ----------------------------------------------------------------------------------------------------


@contextmanager
def a_worker_dies(folder: Path):
    """Kill the first worker that waits."""

    def kill() -> int:
        until(lambda: list(folder.glob("*.waits")))
        victim = int(next(folder.glob("*.waits")).stem)
        os.kill(victim, signal.SIGKILL)
        (folder / "killed").touch()
        return victim

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(kill)
        yield
        assert future.result() != os.getpid()


@pytest.mark.slow
@pytest.mark.parametrize("after", [7, 16], ids=["look", "count"])
def test_a_killed_worker_changes_nothing(client, tmp_path, after):
    """In the first look at ten partitions, or in the pass after it, when most of them have been begun."""
    frame = cut(TABLE, [100] * 9 + [97]).map_partitions(wait_here, str(tmp_path), after, meta=TABLE.iloc[:0])
    with a_worker_dies(tmp_path):
        table = Dask(frame).open(READER)
        assert same(table.total(COUNT), in_memory())
    assert table.n_rows == 997
    assert begun(tmp_path) > 20  # some partitions were read again


@pytest.mark.slow
def test_a_worker_killed_during_a_fit_changes_nothing(client, tmp_path):
    """Killed in the third of four passes over ten partitions: the same model, and the same ledger."""
    learner, y = LEARNERS[0]
    frame = cut(TABLE, [100] * 9 + [97]).map_partitions(wait_here, str(tmp_path), 26, meta=TABLE.iloc[:0])
    table = Dask(frame)
    with a_worker_dies(tmp_path):
        found = fitted(learner, table, y)
    assert found == fitted(learner, columns_of(learner, y), y)
    assert begun(tmp_path) > 10 * len(table.log)


@pytest.mark.slow
def test_a_partition_that_kills_its_worker_is_given_up(client, cluster, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    table = Dask(cut(TABLE, [500, 497]).map_partitions(die, meta=TABLE.iloc[:0]))
    with pytest.raises(EngineError, match=r"lost its workers again and again while they computed .*repartition"):
        table.open(READER)
