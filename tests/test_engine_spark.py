"""A Spark DataFrame gives the same whole numbers as a table in memory, whatever becomes of Spark's tasks."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dpforest import (
    DiffGenClassifier,
    DiffPETsClassifier,
    DTDiffClassifier,
    EDPRFClassifier,
    Prefix,
    PrivateBoostingClassifier,
    RandomTreesClassifier,
    Schema,
)
from dpforest.chance import keyed
from dpforest.curator.reader import SchemaReader
from dpforest.engines import EngineError, TableError, spark
from dpforest.engines.table import Pass
from tests import not_run

pytest.importorskip("pyspark", reason=not_run.SPARK)
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip(not_run.JAVA, allow_module_level=True)
pytestmark = pytest.mark.slow

NUMERIC = {"age": (0, 100), "hours.week": (0, 80)}
SCHEMA = Schema(numeric=NUMERIC, categorical={"sex": ["F", "M"]}, classes=["no", "yes"])
READER = SchemaReader(SCHEMA, 8, "paid", "id")
TYPES = "id long, age double, `hours.week` int, sex string, paid string"


def people(n_rows=600) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    columns = {
        "id": 7 * np.arange(n_rows) + 3,
        "age": rng.uniform(-2, 110, n_rows),  # some are clipped, and counted as strays
        "hours.week": rng.integers(0, 80, n_rows),
        "sex": rng.choice(["F", "M"], n_rows),
        "paid": rng.choice(["no", "yes"], n_rows),
    }
    return pd.DataFrame(columns)


def count(block):
    """Numbers of several types and shapes, from everything that a block holds."""
    by_age = np.zeros((8, 2), dtype=np.int64)
    np.add.at(by_age, (block.codes[0], block.labels), 1)
    by_sex = np.bincount(block.codes[2], minlength=2).astype(np.int32)
    return by_age, by_sex, np.array([block.codes[1].sum(dtype=np.int64)]), np.array([(block.ids**2).sum()])


def before(accident):
    """``count``, with something that happens on the worker first."""

    def task(block):
        accident()
        return count(block)

    return task


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.local.dir": str(scratch),
        "spark.sql.shuffle.partitions": "2",
        "spark.python.daemon.module": "tests.spark_daemon",  # workers start often
        "spark.log.level": "OFF",  # tasks fail here on purpose
    }
    builder = SparkSession.builder.master("local[2,4]")  # a task may fail four times
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    cloudpickle.register_pickle_by_value(__import__(__name__))  # the workers cannot import the tests
    yield started
    cloudpickle.unregister_pickle_by_value(__import__(__name__))
    started.stop()


@pytest.fixture(scope="module")
def frame(session):
    """The table in three partitions."""
    return frame_of(session, people()).repartition(3).persist()


def frame_of(session, table: pd.DataFrame):
    return session.createDataFrame(list(table.itertuples(index=False, name=None)), TYPES)


def check(table, expected_rows=600, task=count):
    """The answers of a pass are those of one block in memory."""
    whole = Pass(READER, count)([people(expected_rows)[READER.columns]])
    found = table.total(task)
    for mine, one in zip(found, whole.answers, strict=True):
        np.testing.assert_array_equal(mine, one, strict=True)
    strays = dict(zip([*SCHEMA.columns, "paid"], whole.strays.tolist(), strict=True))
    assert table.n_rows == expected_rows
    assert table.strays == {name: n for name, n in strays.items() if n}


@pytest.mark.parametrize("n_partitions", [1, 3, 40])
def test_the_same_numbers_as_in_memory(frame, n_partitions):
    table = spark.Spark(frame.repartition(n_partitions)).open(READER)
    check(table)
    assert [read.n_rows for read in table.log] == [600, 600]


def test_long_answers_travel_in_pieces(frame):
    def task(block):
        n_rows = len(block.labels)
        return np.full((3, 200_000), n_rows, dtype=np.int64), np.full(7, n_rows), np.zeros((0, 2), dtype=np.uint8)

    long, short, nothing = spark.Spark(frame).open(READER).total(task)
    np.testing.assert_array_equal(long, np.full((3, 200_000), 600), strict=True)
    np.testing.assert_array_equal(short, np.full(7, 600), strict=True)
    np.testing.assert_array_equal(nothing, np.zeros((0, 2), dtype=np.uint8), strict=True)


def test_empty_partitions_add_nothing(session):
    check(spark.Spark(frame_of(session, people(3)).repartition(6)).open(READER), 3)


def test_an_empty_table_has_no_rows(frame):
    assert spark.Spark(frame.filter("id < 0")).open(READER).n_rows == 0


def test_blocks_are_gathered_from_batches():
    import pyarrow as pa

    batch = pa.RecordBatch.from_pydict({"c0": np.zeros(100_000)})
    sizes = [block.num_rows for block in spark._blocks([batch] * 7)]
    assert sizes == [300_000, 300_000, 100_000]
    wide = pa.RecordBatch.from_pydict({f"c{i}": np.zeros(10_000) for i in range(300)})
    assert [block.num_rows for block in spark._blocks([wide] * 7)] == [30_000, 30_000, 10_000]


# -- accidents -----------------------------------------------------------------------------------------------


def test_a_killed_worker_counts_no_record_twice(frame, tmp_path):
    def accident():
        try:
            (tmp_path / "killed").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    table = spark.Spark(frame).open(READER)
    check(table, task=before(accident))
    assert (tmp_path / "killed").exists()


@pytest.mark.parametrize("stage", ["_work", "_add"])
def test_a_worker_killed_after_its_answer_counts_no_record_twice(frame, tmp_path, monkeypatch, stage):
    def answer_and_die(*arguments):
        import dpforest.engines.spark as unpatched  # on the worker

        yield from getattr(unpatched, stage)(*arguments)
        try:
            (tmp_path / "killed").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    table = spark.Spark(frame).open(READER)
    with monkeypatch.context() as patch:
        patch.setattr(spark, stage, answer_and_die)
        check(table)
    assert (tmp_path / "killed").exists()


def test_a_task_that_always_fails(frame):
    def accident():
        raise RuntimeError("a disk broke")

    table = spark.Spark(frame.coalesce(1)).open(READER)
    with pytest.raises(EngineError, match="Spark failed: RuntimeError: a disk broke\nnothing was released"):
        table.total(before(accident))
    check(table)  # and the table is as good as before


def test_a_worker_that_always_dies(frame):
    with pytest.raises(EngineError, match="Python worker exited unexpectedly") as caught:
        spark.Spark(frame.coalesce(1)).open(READER).total(before(lambda: os._exit(3)))
    assert "\tat " not in str(caught.value)  # without Java's stack


def test_workers_with_another_python(frame, session, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python3")
    monkeypatch.setattr(session.sparkContext, "pythonExec", "/nowhere/python3")
    with pytest.raises(EngineError, match="PYSPARK_PYTHON to that Python before the session starts"):
        spark.Spark(frame).open(READER)


def test_a_table_that_changes_between_passes(session, tmp_path):
    path = tmp_path / "people.csv"
    people().to_csv(path, index=False, header=False)
    table = spark.Spark(session.read.schema(TYPES).csv(str(path))).open(READER)
    check(table)
    people(599).to_csv(path, index=False, header=False)
    with pytest.raises(EngineError, match="had 600 rows when it was opened and has 599 now"):
        table.total(count)


# -- bad tables ----------------------------------------------------------------------------------------------


def test_a_bad_value_is_named(frame):
    from pyspark.sql.functions import expr

    good = spark.Spark(frame).open(READER)
    bad = frame.withColumn("sex", expr("if(id = 3, 'X', sex)"))
    with pytest.raises(TableError, match=r"^column 'sex' holds 'X', which is not among its declared categories"):
        spark.Spark(bad).open(READER)
    good.frame = bad  # it changes after it was opened
    with pytest.raises(TableError, match=r"^column 'sex' holds 'X'"):
        good.total(count)
    with pytest.raises(TableError, match=r"^column 'age' contains NaN"):
        spark.Spark(frame.withColumn("age", expr("if(id = 3, null, age)"))).open(READER)


def test_without_a_key_records_cannot_be_told_apart(frame):
    table = spark.Spark(frame).open(SchemaReader(SCHEMA, 8, "paid"))
    with pytest.raises(TableError, match=r"keeps no order .* fit\(X, y, key='id'\)"):
        table.total(count)


def test_no_record_is_felt_by_another(session):
    """A missing value, a large number and an equal key beside them leave all other records as they were."""
    schema = Schema(numeric=NUMERIC, categorical={"sex": ["F", "M"]}, classes=["no", "yes"], missing="bin")

    def answers(block):
        found = np.zeros((21, 5), dtype=np.int64)
        coins = keyed.coins((3, 4), block.ids, 1 << 20)
        np.add.at(found, np.minimum(block.ids // 7, 20).astype(int), np.vstack([block.codes, block.labels, coins]).T)
        return (found,)

    rows = people(20)
    for more in ((150, None, None, None, "no"), (150, 1e300, 2**31 - 1, "M", "yes"), (3, 5.0, 7, "F", "no")):
        with_it = session.createDataFrame([*rows.itertuples(index=False, name=None), more], TYPES).repartition(3)
        found, before = (
            spark.Spark(table).open(SchemaReader(schema, 8, "paid", "id")).total(answers)[0]
            for table in (with_it, frame_of(session, rows))
        )
        felt = np.flatnonzero((found != before).any(axis=1)).tolist()
        assert felt == [min(more[0] // 7, 20)]


def test_a_missing_column(frame):
    with pytest.raises(TableError, match="the Spark DataFrame has no column 'sex'; it has"):
        spark.Spark(frame.drop("sex")).open(READER)


def test_an_ambiguous_column(frame):
    with pytest.raises(TableError, match="the Spark DataFrame has more than one column 'sex'"):
        spark.Spark(frame.selectExpr("*", "'F' as sex")).open(READER)


def test_a_broken_file_is_named(session, tmp_path):
    path = tmp_path / "people.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(TableError, match=r"people.parquet"):
        spark.Spark(session.read.schema(TYPES).parquet(str(path))).open(READER)


def test_a_stream_has_no_end(session):
    with pytest.raises(TableError, match="a stream has no end"):
        spark.Spark(session.readStream.format("rate").load()).open(READER)


def test_other_tables_are_refused(monkeypatch):
    with pytest.raises(TypeError, match=r"Spark reads a pyspark.sql.DataFrame, not DataFrame"):
        spark.Spark(people()).open(READER)
    monkeypatch.setattr(spark, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs pyspark: pip install dpforest\[spark\] \(and Java 17\)"):
        spark.Spark(people()).open(READER)


# -- learners ------------------------------------------------------------------------------------------------


WIDE = Schema(numeric={"age": (-5, 120), "hours.week": (0, 80)}, categorical={"sex": ["F", "M"]}, classes=["no", "yes"])
LEARNERS = {
    "trees that share the records": (EDPRFClassifier(schema=WIDE, n_estimators=3, max_depth=2, random_state=1), "id"),
    "a bootstrap": (DiffPETsClassifier(schema=WIDE, n_estimators=2, max_depth=1, random_state=1), "id"),
    "a tree without a key": (DiffPETsClassifier(schema=WIDE, n_estimators=1, max_depth=2, random_state=1), None),
    "a generalised table": (DiffGenClassifier(schema=WIDE, epsilon=2.0, random_state=1), None),
    "generalised trees": (DTDiffClassifier(schema=WIDE, epsilon=2.0, random_state=1), None),
    "boosted tables": (PrivateBoostingClassifier(schema=WIDE, epsilon=2.0, random_state=1), None),
}


@pytest.mark.parametrize("case", LEARNERS)
def test_a_learner_gives_the_same_model(frame, case):
    learner, key = LEARNERS[case]
    here = clone(learner).fit(people(), "paid", key=key)
    there = clone(learner).fit(frame, "paid", key=key)
    assert there.to_dict(seeded=True) == here.to_dict(seeded=True)
    assert there.ledger_.epsilon == here.ledger_.epsilon


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
def test_a_learner_reads_raw_codes_and_groups_them_by_the_schemas_rule(session):
    """Codes of some hundred values, some of them missing: grouped on the workers as in memory."""
    rng = np.random.default_rng(6)
    codes = [None if at % 11 == 0 else f"{rng.choice(list('AIRZ'))}{rng.integers(100):02d}" for at in range(300)]
    table = pd.DataFrame(
        {"id": range(300), "code": codes, "paid": ["yes" if code and code[0] == "I" else "no" for code in codes]}
    )
    chapters = {"heart": [Prefix("I"), "R00"], "signs": [Prefix("R")], "elsewhere": []}
    schema = Schema(categorical={"code": chapters}, classes=["no", "yes"], other={"code": "elsewhere"}, missing="bin")
    learner = EDPRFClassifier(schema=schema, n_estimators=2, max_depth=1, random_state=1)
    rows = zip(range(300), codes, table["paid"].tolist(), strict=True)
    there = session.createDataFrame(list(rows), "id long, code string, paid string")
    here = clone(learner).fit(table, "paid", key="id").to_dict(seeded=True)
    assert clone(learner).fit(there.repartition(3), "paid", key="id").to_dict(seeded=True) == here


def test_a_worker_killed_during_a_fit_changes_nothing(frame, tmp_path, monkeypatch):
    def answer_and_die(batches, job, names, key):
        import dpforest.engines.spark as unpatched  # on the worker

        yield from unpatched._work(batches, job, names, key)
        if job.task is not None:  # not when the table is opened: when its records are counted
            try:
                (tmp_path / "killed").touch(exist_ok=False)
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    learner, key = LEARNERS["a bootstrap"]
    with monkeypatch.context() as patch:
        patch.setattr(spark, "_work", answer_and_die)
        there = clone(learner).fit(frame, "paid", key=key)
    assert (tmp_path / "killed").exists()
    assert there.to_dict(seeded=True) == clone(learner).fit(people(), "paid", key=key).to_dict(seeded=True)


def test_predictions_become_columns(frame):
    learner = RandomTreesClassifier(schema=WIDE, n_estimators=2, max_depth=2, random_state=1)
    learner.fit(people(), "paid", key="id")
    told = learner.predict_proba(learner.predict(frame))
    assert told.dtypes == [*frame.dtypes, ("prediction", "string"), ("probability", "array<double>")]
    rows = sorted(told.collect(), key=lambda row: row["id"])
    expected = people()[WIDE.columns]
    assert [row["prediction"] for row in rows] == learner.predict(expected).tolist()
    assert [row["probability"] for row in rows] == learner.predict_proba(expected).tolist()


# -- answers and progress --------------------------------------------------------------------------------------


def old(table: pd.DataFrame) -> np.ndarray:
    return np.array(["no", "yes"])[(SCHEMA.encode(table, 8).codes[0] > 3).astype(int)]


def shares(table: pd.DataFrame) -> np.ndarray:
    share = SCHEMA.encode(table, 8).codes[1] / 8
    return np.column_stack([share, 1 - share])


def test_answers_become_columns(frame):
    columns = SCHEMA.columns
    told = spark.Spark(frame).rows(old, columns, "prediction")
    told = spark.Spark(told).rows(shares, columns, "probability")
    assert told.columns == [*frame.columns, "prediction", "probability"]
    assert dict(told.dtypes)["prediction"] == "string"
    assert dict(told.dtypes)["probability"] == "array<double>"
    rows = sorted(told.collect(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == people()["id"].tolist()
    assert [row["prediction"] for row in rows] == old(people()[columns]).tolist()
    assert [row["probability"] for row in rows] == shares(people()[columns]).tolist()


def test_answers_that_cannot_be_columns(frame):
    table = spark.Spark(frame)
    with pytest.raises(TableError, match="already has a column 'age': drop or rename it"):
        table.rows(old, SCHEMA.columns, "age")
    with pytest.raises(TableError, match="has no column 'height'"):
        table.rows(old, ["height"], "prediction")
    with pytest.raises(TableError, match="answers of type object have no type in Spark"):
        table.rows(lambda part: np.array([0, "a"], dtype=object)[:0], SCHEMA.columns, "prediction")


def test_progress_counts_tasks(frame, capsys):
    spark.Spark(frame, progress=True).open(READER)
    assert "look" in capsys.readouterr().err
    spark.Spark(frame, progress=False).open(READER)
    assert capsys.readouterr().err == ""
    assert not frame.sparkSession.sparkContext.getJobTags()


def test_a_stopped_session(frame, session, tmp_path):
    """The last test of this file: it stops Spark, during a pass."""

    def wait():
        (tmp_path / "begun").touch()
        while not (tmp_path / "stopped").exists():
            time.sleep(0.1)

    def stop():
        while not (tmp_path / "begun").exists():
            time.sleep(0.1)
        session.stop()

    table = spark.Spark(frame.coalesce(1), progress=True).open(READER)
    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(EngineError, match="SparkContext was shut down"):
        table.total(before(wait))
    (tmp_path / "stopped").touch()  # for the worker, if it is still there
    stopper.join()
    with pytest.raises(EngineError, match="the Spark session was stopped: start a new one"):
        table.total(count)
    with pytest.raises(EngineError, match="the Spark session was stopped"):
        spark.Spark(frame).rows(old, SCHEMA.columns, "prediction")
