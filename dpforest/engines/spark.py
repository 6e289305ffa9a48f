"""Records in a Spark DataFrame: each partition is counted where it lies, and only whole numbers travel."""

from __future__ import annotations

import math
import os
import re
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from dpforest.engines import parquet
from dpforest.engines.table import EngineError, Pass, PassResult, Table, TableError, missing_columns
from dpforest.messages import shown

__all__ = ["Spark"]

#: A piece of what a partition found, or several together: ``values`` are those of array ``number`` (the number of rows,
#: the strays, the answers) from place ``start`` on, or ``error`` says why the records cannot be read.
_PIECE = "number int, start long, shape array<long>, type string, values binary, error string"
_PIECE_BYTES = 1 << 20  # Spark moves many short rows more easily than a long one

# a block is large, because counting has a fixed cost per call, and small enough for a worker's memory
_BLOCK_ROWS = 1 << 18
_BLOCK_BYTES = 1 << 26

_COLUMNS = {"predict": "prediction", "predict_proba": "probability"}

_STOPPED = "the Spark session was stopped: start a new one, read the table there and fit again"
_OTHER = ("PYTHON_VERSION_MISMATCH", "ModuleNotFoundError", "ImportError", "Can't get attribute", "Cannot run program")
_PYTHON = (
    "every worker needs the driver's version of Python and of dpforest, and pyarrow and pandas: set the environment "
    "variable PYSPARK_PYTHON to that Python before the session starts (on one machine: to sys.executable)"
)


class Spark(Table):
    """A Spark DataFrame (``pip install dpforest[spark]``; Spark itself needs Java 17 or newer).

    Each pass is one query: every partition is streamed through Python on the executor that has it, in blocks of about
    260,000 rows, and answers with whole numbers, cut into pieces of at most 1 MB.  The executors add up the pieces that
    stand in the same place, as a word count adds up the counts of a word; what comes to the driver is one sum.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Classic, or of Spark Connect.  Each pass computes it anew, so persist what is expensive to compute, and what a
        second computation might change (a sample, random numbers).
    progress : bool or None
        Whether each pass shows how many of its tasks have finished.  None: where standard error is a terminal and
        Spark does not draw its own bar (``spark.ui.showConsoleProgress``).  Spark Connect shows none of ours.

    Notes
    -----
    *A record counts once.*  Spark may run a task twice, because its executor was lost or because it was slow.  The
    function that runs on a partition has no effect but its answer: it adds to no accumulator and writes nothing.  Of
    the attempts at a task Spark takes the answer of exactly one: at the driver, the result of the first one that
    finishes; between two stages, the shuffle file of one, and a file that is lost is written again before it is read.
    An attempt that fails leaves nothing behind.

    *Order.*  Spark keeps no order of rows, so that a record can be identified only by a key column: learners whose
    trees share the records need ``fit(X, y, key="id")``.

    *Python on the workers.*  Spark starts the Python that ``PYSPARK_PYTHON`` named when the session started, otherwise
    ``python3``.  On a local master where nothing was named, the passes use the driver's own, ``sys.executable``.  On a
    cluster, install the same version of dpforest on every machine and name the Python that has it.
    """

    engine = "Spark"

    def __init__(self, frame: Any, *, progress: bool | None = None):
        super().__init__(progress=progress)
        self.frame = frame

    # -- passes ----------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._check(self.reader.columns)

    def _run(self, job: Pass) -> list[PassResult]:
        names, key = job.reader.columns, job.reader.key
        with _explained(), self._session() as (session, classic), ExitStack() as after:
            from pyspark import cloudpickle

            packed = cloudpickle.dumps(job)
            unpacked = _shared(session, packed, after) if classic else lambda: packed

            def work(batches: Iterable) -> Iterator:
                return _work(batches, cloudpickle.loads(unpacked()), names, key)

            # without a number of partitions: Spark takes more of them where there is more to add up
            pieces = self._select(names).mapInArrow(work, _PIECE).repartition("number", "start")
            if classic:
                after.enter_context(self._with_progress_bar(session, job.name))
            rows = pieces.mapInArrow(_add, _PIECE).collect()
        found, error = _sums(row.asDict() for row in rows)
        if error is not None:
            raise TableError(error)
        return [PassResult(int(found[0][0]), found[1], tuple(found[2:]) or None)] if found else []

    def _select(self, names: list[str]) -> Any:
        """The columns under names that have no meaning to Spark, as ``"a.b"`` would have."""
        from pyspark.sql import functions

        return self.frame.select(*(functions.col(_quoted(name)).alias(f"c{i}") for i, name in enumerate(names)))

    # -- prediction ------------------------------------------------------------------------------------------

    def rows(self, answer: Callable[[pd.DataFrame], np.ndarray], columns: list[str], name: str) -> Any:
        """The DataFrame with one more column, an array column where there are several answers to a row.

        It is called as Spark ML would call it: ``prediction``, ``probability``.  It is computed when Spark needs it,
        not now; a value that cannot be read fails then, inside Spark's error.

        Raises
        ------
        TableError
            Where a column is missing, or the new one is there already.
        """
        self._check(columns)
        name = _COLUMNS.get(name, name)
        if name in self.frame.columns:
            raise TableError(f"the Spark DataFrame already has a column {shown(name)}: drop or rename it, then predict")
        with _explained(), self._session():
            from pyspark.sql import functions
            from pyspark.sql.pandas.types import to_arrow_schema

            empty = _to_pandas(to_arrow_schema(self._select(columns).schema).empty_table(), columns)
            kind = _kind(answer(empty))

            def answers(parts: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
                for part in parts:
                    part.columns = columns
                    values = answer(part)
                    yield pd.Series(values if values.ndim == 1 else list(values))

            fields = (functions.col(_quoted(column)).alias(f"c{i}") for i, column in enumerate(columns))
            pandas_udf: Any = functions.pandas_udf  # its stubs know functions of single series alone
            return self.frame.withColumn(name, pandas_udf(answers, kind)(functions.struct(*fields)))

    # -- the session -----------------------------------------------------------------------------------------

    def _check(self, columns: list[str]) -> None:
        """Raise unless this is a finite DataFrame of a living session that has the columns."""
        for library in ("pyspark", "pyarrow"):
            if find_spec(library) is None:
                raise ImportError(f"a Spark DataFrame needs {library}: pip install dpforest[spark] (and Java 17)")
        from pyspark.sql import DataFrame

        if not isinstance(self.frame, DataFrame):
            hint = "; turn it into one with .to_spark()" if hasattr(self.frame, "to_spark") else ""
            raise TypeError(f"Spark reads a pyspark.sql.DataFrame, not {type(self.frame).__name__}{hint}")
        with _explained(), self._session():
            if self.frame.isStreaming:
                raise TableError("a stream has no end: write it down, and fit on what was written")
            missing_columns(columns, self.frame.columns, "the Spark DataFrame")

    @contextmanager
    def _session(self) -> Iterator[tuple[Any, bool]]:
        """The session, and whether it is a classic one, while functions for its workers are made."""
        session = self.frame.sparkSession
        classic = not type(session).__module__.startswith("pyspark.sql.connect")
        with warnings.catch_warnings():
            # it concerns pandas-on-Spark; what dpforest uses of pandas is tried with both
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            if not classic:
                if session.is_stopped:
                    raise EngineError(_STOPPED)
                yield session, classic
                return
            context = session._sc
            if context._jsc is None or context._jsc.sc().isStopped():
                raise EngineError(_STOPPED)
            named = context.pythonExec
            if "PYSPARK_PYTHON" not in os.environ and context.master.startswith("local"):
                context.pythonExec = sys.executable
            try:
                yield session, classic
            finally:
                context.pythonExec = named

    @contextmanager
    def _with_progress_bar(self, session: Any, what: str) -> Iterator[None]:
        """Show how many tasks have finished, of those that Spark has planned so far."""
        context = session._sc
        own = context.getConf().get("spark.ui.showConsoleProgress", "false") == "true"
        hidden = not self.progress if self.progress is not None else (own or not sys.stderr.isatty())
        if hidden:
            yield
            return
        tag, done = f"dpforest-{uuid.uuid4().hex}", threading.Event()
        context.addJobTag(tag)
        with tqdm(desc=what, unit="task") as bar:
            watcher = threading.Thread(target=_watch, args=(context, tag, bar, done), daemon=True)
            watcher.start()
            try:
                yield
            finally:
                done.set()
                watcher.join()
                _if_alive(context.removeJobTag, tag)


# -- on the workers ------------------------------------------------------------------------------------------


def _work(batches: Iterable, job: Pass, names: list[str], key: str | None) -> Iterator:
    """What the job found in the batches of a partition, in pieces, or why a record cannot be read.

    A value that cannot be read is an answer, not a failure: a failed task would be tried again, in vain, and its text
    buried in Spark's.
    """
    import pyarrow as pa

    try:
        found = job(_to_pandas(block, names, key) for block in _blocks(batches))
    except pa.ArrowException:  # the stream broke: not the table's fault
        raise
    except (ValueError, TypeError) as error:
        yield _piece(error=str(error))
    else:
        yield from _pieces((np.array([found.n_rows]), found.strays, *(found.answers or ())))


def _add(batches: Iterable) -> Iterator:
    """The sums of pieces that stand in the same place, of all those that were sent here."""
    sums: dict[tuple[int, int], dict] = {}
    for batch in batches:
        for piece in batch.to_pylist():
            _add_to(sums, piece)
    for piece in sums.values():
        yield _piece(**{**piece, "values": piece["values"].tobytes()} if piece["error"] is None else piece)


def _blocks(batches: Iterable) -> Iterator:
    """Spark's record batches, ten thousand rows by default, gathered into larger blocks."""
    import pyarrow as pa

    gathered: list = []
    n_rows = n_bytes = 0
    for batch in batches:
        gathered.append(batch)
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        if n_rows >= _BLOCK_ROWS or n_bytes >= _BLOCK_BYTES:
            yield pa.Table.from_batches(gathered)
            gathered, n_rows, n_bytes = [], 0, 0
    if n_rows:
        yield pa.Table.from_batches(gathered)


def _to_pandas(block: Any, names: list[str], key: str | None = None) -> pd.DataFrame:
    for number, (name, column) in enumerate(zip(names, block.columns, strict=True)):
        if name != key and parquet._is_text(column.type):  # a category is looked up once, not once a row
            block = block.set_column(number, name, column.dictionary_encode())
    frame = parquet._frame(block)
    frame.columns = names
    return frame


# -- whole numbers as rows of bytes --------------------------------------------------------------------------


def _pieces(arrays: Iterable[np.ndarray]) -> Iterator:
    for number, array in enumerate(arrays):
        flat, step = array.ravel(), _PIECE_BYTES // array.itemsize
        for start in range(0, max(flat.size, 1), step):
            yield _piece(number, start, array.shape, array.dtype.str, flat[start : start + step].tobytes())


def _piece(
    number: int = -1,
    start: int = 0,
    shape: tuple[int, ...] | None = None,
    type: str | None = None,
    values: bytes | None = None,
    error: str | None = None,
) -> Any:
    import pyarrow as pa

    fields = {
        "number": (pa.int32(), number),
        "start": (pa.int64(), start),
        "shape": (pa.list_(pa.int64()), shape),
        "type": (pa.string(), type),
        "values": (pa.binary(), values),
        "error": (pa.string(), error),
    }
    return pa.RecordBatch.from_arrays([pa.array([value], kind) for kind, value in fields.values()], names=[*fields])


def _add_to(sums: dict[tuple[int, int], dict], piece: dict) -> None:
    """Add a piece to the one that has its place; of several errors keep the first in alphabetical order."""
    place = piece["number"], piece["start"]
    there = sums.get(place)
    if piece["error"] is not None:
        if there is None or piece["error"] < there["error"]:
            sums[place] = piece
        return
    values = np.frombuffer(piece["values"], dtype=piece["type"])
    if there is None:
        sums[place] = {**piece, "values": values.copy()}
    else:
        there["values"] += values


def _sums(pieces: Iterable[dict]) -> tuple[list[np.ndarray], str | None]:
    """The arrays, put together, and the first error."""
    sums: dict[tuple[int, int], dict] = {}
    for piece in pieces:
        _add_to(sums, piece)
    error = sums.pop((-1, 0), {"error": None})["error"]
    arrays: list[np.ndarray] = []
    for (_, start), piece in sorted(sums.items()):
        if not start:
            arrays.append(np.empty(math.prod(piece["shape"]), dtype=piece["type"]))
        arrays[-1][start : start + len(piece["values"])] = piece["values"]
    return [array.reshape(sums[number, 0]["shape"]) for number, array in enumerate(arrays)], error


# -- Spark's ways --------------------------------------------------------------------------------------------


def _shared(session: Any, packed: bytes, after: ExitStack) -> Callable[[], bytes]:
    """The job as a broadcast variable, which each executor fetches once; it is destroyed afterwards."""
    variable = session._sc.broadcast(packed)
    after.callback(_if_alive, variable.destroy)
    return lambda: variable.value


def _if_alive(cleanup: Callable, *arguments: Any) -> None:
    """Clean up, unless the session has died meanwhile: the pass reports that, if it had no answer yet."""
    with suppress(Exception):
        cleanup(*arguments)


def _watch(context: Any, tag: str, bar: Any, done: threading.Event) -> None:
    """Follow the jobs with this tag until ``done``."""
    tracker = context.statusTracker()
    while not done.wait(0.2):
        try:
            jobs = [tracker.getJobInfo(job) for job in context._jsc.sc().statusTracker().getJobIdsForTag(tag)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        except Exception:  # the session died: the pass that waits for the answers reports that
            return
        bar.total = sum(stage.numTasks for stage in stages if stage)
        bar.n = sum(stage.numCompletedTasks for stage in stages if stage)
        bar.refresh()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _kind(answer: np.ndarray) -> str:
    """Spark's type of a column of such answers."""
    kinds = {"b": "boolean", "i": "long", "u": "long", "f": "double", "U": "string"}
    if answer.dtype.kind not in kinds:
        raise TableError(f"answers of type {answer.dtype} have no type in Spark: declare classes all of one type")
    kind = kinds[answer.dtype.kind]
    return kind if answer.ndim == 1 else f"array<{kind}>"


@contextmanager
def _explained() -> Iterator[None]:
    """Turn Spark's failures into a sentence."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import AnalysisException, PySparkException, PySparkImportError

    try:
        yield
    except (TableError, EngineError):
        raise
    except PySparkImportError as error:
        raise ImportError(f"{_short_message(error)}: pip install dpforest[spark]") from error
    except AnalysisException as error:
        raise TableError(f"Spark cannot read the table: {_short_message(error)}") from error
    except (PySparkException, Py4JError, OSError, EOFError) as error:
        gist = _short_message(error)
        if isinstance(error, (OSError, Py4JNetworkError)):
            gist = f"its Java process does not answer ({gist})"
        if any(sign in gist for sign in _OTHER):
            raise EngineError(f"Spark's workers have another Python: {gist}\n{_PYTHON}") from error
        if "FAILED_READ_FILE" in gist:
            raise TableError(f"Spark cannot read the table: {gist}") from error
        raise EngineError(f"Spark failed: {gist}\nnothing was released; a new fit starts from nothing") from error


def _short_message(error: BaseException) -> str:
    """What Spark says, without Java's stack or the worker's."""
    try:
        text = str(error)
    except Exception:  # some of Spark's errors ask the Java machine for their text, which may be gone
        return type(error).__name__
    text = re.split(r"\n\tat |\n\nJVM stacktrace", text)[0]
    text = re.sub(r"^An error occurred while calling .*\n: ", "", text).strip()
    if "Traceback (most recent call last)" in text:
        lines = text.splitlines()
        last = max(i for i, line in enumerate(lines) if line.startswith("  "))
        text = "\n".join(lines[last + 1 :])
    return re.sub(r"\s+SQLSTATE: \w+$", "", text.strip())
