"""Records in a Dask DataFrame: each partition is counted where it lies, and only whole numbers travel."""

from __future__ import annotations

import os
import pickle
import queue
import uuid
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from dpforest.engines import parquet
from dpforest.engines.table import EngineError, Pass, PassResult, Table, TableError, merge, missing_columns
from dpforest.messages import shown

__all__ = ["Dask"]

_FAN_IN = 4  # answers that one task adds up: a worker holds so many at a time, and some are large
_BLOCK_ROWS = 1 << 18  # rows encoded at a time: counting has a fixed cost per call, a worker little memory to spare

_AGAIN = "nothing was released; a new fit starts from nothing"
_VERSIONS = "the scheduler and its workers need this version of dpforest (pip install dpforest[dask])"


class Dask(Table):
    """A Dask DataFrame (``pip install dpforest[dask]``), on the threads of this process or on a cluster.

    Each pass has one task for each partition, and a tree of tasks that add up their answers, four at a time: what
    comes back to this process is one sum.  The pass itself, which holds the trees grown so far, is one node of the
    graph: it travels to each worker once, not once with each partition.

    Parameters
    ----------
    X : dask.dataframe.DataFrame, or path, glob or list of paths of Parquet files
        Each pass computes the DataFrame anew, so persist what is expensive to compute, and what a second
        computation might change (a sample, random numbers).  One made from a table in memory travels to a cluster with
        every pass, unless it is persisted there.  Paths name files that every worker can reach: they are read as
        :class:`~dpforest.engines.parquet.Parquet` reads them, in the same order and with the same checks, some row
        groups at a time.  Addresses with ``://`` go through ``dask.dataframe.read_parquet``.
    scheduler : optional
        What runs the tasks: None for whatever Dask is set to (a current ``distributed.Client``, else threads); the
        address of a scheduler (``"tcp://10.0.0.1:8786"``); a ``distributed.Client``; a cluster, such as
        ``LocalCluster``; or the name of one of Dask's own, such as ``"threads"``.
    progress : bool or None
        Whether each pass shows how many partitions are done.  None: where standard error is a terminal.

    Notes
    -----
    *A record counts once.*  The answer to a partition is a function of its rows and of the pass, and has no other
    effect.  What was on a worker that was lost, Dask computes again, partition and answer alike; an answer that arrives
    twice replaces itself, since the sum takes one value for each partition.  The names of a pass's tasks are its own,
    so that no pass finds the answers of another one, and they leave the cluster when it ends.

    *Positions.*  Without a key column, a record is identified by its place: partitions in their order, rows in theirs.
    The first look keeps the number of rows of each partition, and a later pass that finds another number refuses to go
    on.  Places survive another partitioning as long as the order does.  Where the order of rows is not fixed (after a
    shuffle, a join or a ``set_index`` with repeated values), name a key: ``fit(X, y, key="id")``.

    *Workers* need this version of dpforest, and so does the scheduler, which reads the graph.  ``n_jobs`` has no say in
    how many tasks run at a time: Dask has its own setting.  A cluster that has lost all workers waits for new ones, for
    ever unless its ``distributed.scheduler.no-workers-timeout`` says how long.  A scheduler is waited for as long as
    Dask's ``distributed.comm.timeouts.connect`` says.
    """

    engine = "Dask"

    def __init__(self, X: Any, *, scheduler: Any = None, progress: bool | None = None):
        super().__init__(progress=progress)
        self.X = X
        self.scheduler = scheduler
        self._graph: dict = {}
        self._parts: list = []
        self._sizes: list[int] | None = None

    # -- passes ----------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        frame = self._select(self.reader.columns, self.reader.key)
        with _planned():
            frame = frame.optimize()
            self._graph, self._parts = dict(frame.__dask_graph__()), list(frame.__dask_keys__())
        self._sizes = None

    def _first_pass(self, job: Pass) -> list[PassResult]:
        found = self._compute(job, add_up=False)
        self._sizes = [piece.n_rows for piece in found]
        return found

    def _run(self, job: Pass) -> list[PassResult]:
        return self._compute(job, add_up=True)

    def _compute(self, job: Pass, *, add_up: bool) -> list[PassResult]:
        """The sum of all partitions' answers, or each of them, in order."""
        with self._scheduler() as (get, client):
            plan = self._plan(job, add_up)
            with tqdm(total=len(plan.pieces), disable=self._hidden, desc=job.name, unit="partition") as bar:
                return _locally(get, plan, bar) if client is None else _remotely(client, plan, bar)

    def _plan(self, job: Pass, add_up: bool) -> _Plan:
        """Every key of ours is new: Dask takes equal keys for equal values, across passes too."""
        import cloudpickle

        name, packed = uuid.uuid4().hex, cloudpickle.dumps(job)
        graph, carrier = dict(self._graph), f"dpforest-pass-{name}"
        graph[carrier] = (pickle.loads, packed)
        first, pieces = 0, list[tuple]()
        for number, part in enumerate(self._parts):
            pieces.append((f"dpforest-count-{name}", number))
            if self._sizes is None:
                graph[pieces[-1]] = (_count, carrier, part, number, None, None)
            else:
                graph[pieces[-1]] = (_count, carrier, part, number, first, self._sizes[number])
                first += self._sizes[number]
        level, depth = list(pieces), 0
        while add_up and len(level) > 1:
            groups = [level[start : start + _FAN_IN] for start in range(0, len(level), _FAN_IN)]
            level = [(f"dpforest-add-{name}", depth, number) for number in range(len(groups))]
            graph.update({key: (_add, group) for key, group in zip(level, groups, strict=True)})
            depth += 1
        return _Plan(graph, self._parts, pieces, level, len(packed))

    # -- prediction ------------------------------------------------------------------------------------------

    def rows(self, answer: Callable[[pd.DataFrame], np.ndarray], columns: list[str], name: str) -> Any:
        """A lazy Dask object with the index and the divisions of the table, computed when Dask is asked to.

        Returns
        -------
        dask.dataframe.Series
            Called ``name``, where there is one answer to a row.
        dask.dataframe.DataFrame
            Where there are several: columns ``name_0``, ``name_1``, and so on.

        Notes
        -----
        ``scheduler`` is not used: the call that computes the answers chooses one.  The model is one node of the graph.
        """
        frame = self._select(columns)
        from dask import delayed

        model = delayed(answer, name=f"dpforest-model-{uuid.uuid4().hex}", traverse=False)
        return frame.map_partitions(_answers, model, name, meta=_answers(frame._meta, answer, name))

    # -- the table and the scheduler -------------------------------------------------------------------------

    def _select(self, columns: list[str], key: str | None = None) -> Any:
        """The columns of the Dask DataFrame."""
        try:
            import dask.dataframe as dd
            import distributed  # noqa: F401
        except ImportError as error:
            raise ImportError(
                f"Dask is not installed, or not all of it: pip install dpforest[dask] ({error})"
            ) from error
        frame = [self.X] if isinstance(self.X, (str, PathLike)) else self.X
        if isinstance(frame, (list, tuple)):
            paths = [os.fspath(path) for path in frame]
            if not any("://" in path for path in paths):
                return _local(paths, columns, key)
            with _planned():
                frame = dd.read_parquet(paths)
        if not isinstance(frame, dd.DataFrame):
            raise TypeError(f"Dask reads a dask.dataframe.DataFrame or Parquet files, not {type(frame).__name__}")
        if not all(isinstance(column, str) for column in frame.columns):
            frame = frame.rename(columns={column: str(column) for column in frame.columns})
        missing_columns(columns, frame.columns, "the Dask DataFrame")
        return frame[columns]

    @contextmanager
    def _scheduler(self) -> Iterator[tuple[Callable, Any]]:
        """What computes a graph, and the client whose method it is (None for a scheduler in this process)."""
        import dask.dataframe as dd
        from dask.base import get_scheduler

        where = self.scheduler
        if hasattr(where, "scheduler_address") or (isinstance(where, str) and ":" in where):  # a cluster, or an address
            with _connected(where) as client:
                yield client.get, client
            return
        get = get_scheduler(scheduler=where, cls=dd.DataFrame)
        client = getattr(get, "__self__", None)
        if client is not None and client.status != "running":
            raise EngineError(f"the Dask client is {client.status}: connect a new one, and fit again")
        yield get, client


@contextmanager
def _connected(where: Any) -> Iterator[Any]:
    """A client of the scheduler: the current one, to which persisted tables belong, or one for now."""
    from distributed import Client

    address = getattr(where, "scheduler_address", where)
    with suppress(ValueError):  # there is none
        current = Client.current()
        where = current if current.scheduler is not None and current.scheduler.address == address else where
    if isinstance(where, Client):
        yield where
        return
    try:
        client = Client(where, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {shown(address)} ({error}): start one (dask scheduler), "
            f"or correct the address"
        ) from error
    with client:
        yield client


def _local(paths: list[str], columns: list[str], key: str | None) -> Any:
    """Files in a file system that all workers share: the rows, their order and the checks are those of ``Parquet``."""
    import dask.dataframe as dd
    import pyarrow as pa

    table = parquet.Parquet([os.path.abspath(path) for path in paths])
    table._files = [file for file in table._open_all(columns, key) if file.metadata.num_rows]
    # a footer may be long, and would travel with every piece
    pieces = [replace(piece, file=replace(piece.file, metadata=None)) for piece in table._cut()]
    if not pieces:
        raise TableError(f"{shown(table)} has no rows")
    empty = pa.schema([(name, pieces[0].file.types[name]) for name in columns]).empty_table().to_pandas()
    return dd.from_map(_load, pieces, names=columns, key=key, meta=empty)


@contextmanager
def _planned() -> Iterator[None]:
    """Dask looks at the files when it plans."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise TableError(f"Dask cannot read the table: {error}") from error


# -- two ways to compute a graph -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """A graph, the keys of its partitions, of their answers, and of what shall come back; the pass's size in bytes."""

    graph: dict
    parts: list
    pieces: list
    wanted: list
    weight: int


def _locally(get: Callable, plan: _Plan, bar: Any) -> list[PassResult]:
    """With a scheduler in this process."""
    from dask.callbacks import Callback

    pieces, running = set(plan.pieces), set()

    def started(key: Hashable, graph: dict, state: dict) -> None:
        running.add(key)

    def finished(key: Hashable, value: Any, graph: dict, state: dict, worker: Any) -> None:
        running.discard(key)
        bar.update(key in pieces)

    try:
        with Callback(pretask=started, posttask=finished):
            found = get(plan.graph, plan.wanted)
    except Exception as error:
        tasks = enumerate(zip(plan.parts, plan.pieces, strict=True))
        suspects = [number for number, keys in tasks if not running.isdisjoint(keys)]
        cause = getattr(error, "exception", error)  # processes wrap it
        raise _failure(cause, suspects) from cause
    return _accepted(found)


def _remotely(client: Any, plan: _Plan, bar: Any) -> list[PassResult]:
    """On a cluster, where nothing stays behind."""
    import dask

    pieces, wanted = set(plan.pieces), set(plan.wanted)
    found: dict[Any, Any] = {}
    keys = list(dict.fromkeys([*plan.pieces, *plan.wanted]))
    arrived: queue.SimpleQueue = queue.SimpleQueue()
    # Dask warns of data in a graph, where it would travel with every task that needs it; a pass is a task of its own
    limit = "distributed.admin.large-graph-warning-threshold"
    futures: list = []
    try:
        with dask.config.set({limit: dask.utils.parse_bytes(dask.config.get(limit)) + plan.weight}):
            futures = client.get(plan.graph, keys, sync=False)
        for future in futures:
            future.add_done_callback(arrived.put)
        while len(found) < len(wanted):
            batch = _next_completed(arrived, client)
            if any(future.status == "cancelled" for future in batch):
                raise EngineError(f"the Dask scheduler was lost during a pass, or the pass was cancelled; {_AGAIN}")
            if broken := [future for future in batch if future.status == "error"]:
                suspects = [number for number in range(len(pieces)) if futures[number].status == "error"]
                raise _failure(broken[0].exception(), suspects)
            bar.update(sum(future.key in pieces for future in batch))
            ready = [future for future in batch if future.key in wanted]
            answers = client.gather(ready)
            _accepted(answers)  # a record that cannot be read: now, not when all others have been read
            found.update(zip((future.key for future in ready), answers, strict=True))
            for future in batch:
                future.release()
    except (TableError, EngineError):
        raise
    except Exception as error:
        raise EngineError(f"Dask failed during a pass; {_AGAIN} ({type(error).__name__}: {error})") from error
    finally:
        for future in futures:
            future.release()
    return [found[key] for key in plan.wanted]


def _next_completed(arrived: queue.SimpleQueue, client: Any) -> list:
    """The futures that have ended since the last call, at least one."""
    while True:
        try:
            batch = [arrived.get(timeout=1)]
        except queue.Empty:
            if client.status == "closed":
                raise EngineError(f"the Dask client was closed during a pass; {_AGAIN}") from None
            continue
        with suppress(queue.Empty):
            while True:
                batch.append(arrived.get_nowait())
        return batch


def _failure(error: BaseException, suspects: list[int]) -> Exception:
    """A sentence for what Dask reports."""
    where = "partition " + " or ".join(map(str, suspects)) if 0 < len(suspects) < 5 else "the Dask DataFrame"
    gist = f"{type(error).__name__}: {error}"
    if isinstance(error, (TableError, EngineError)):  # of the reader of files
        return type(error)(f"{where}: {error}")
    if isinstance(error, ImportError) or "deserialization of the task graph" in gist:
        return EngineError(f"{_VERSIONS}: {gist}")
    if type(error).__name__ == "KilledWorker":
        return EngineError(
            f"Dask lost its workers again and again while they computed {where}, as they are where a partition needs "
            f"more memory than they have: make it smaller (repartition) or them larger; {_AGAIN} ({error})"
        )
    if type(error).__module__.startswith("distributed.") or isinstance(error, (BrokenExecutor, MemoryError)):
        return EngineError(f"Dask failed to compute {where}; {_AGAIN} ({gist})")
    return TableError(f"{where} cannot be computed: {gist}")


def _accepted(found: list) -> list[PassResult]:
    """What the tasks found, unless one refuses a record."""
    for piece in found:
        if isinstance(piece, _Refusal):
            raise (EngineError if piece.changed else TableError)(f"partition {piece.number}: {piece.why}")
    return found


# -- on the workers ------------------------------------------------------------------------------------------


def _load(piece: Any, names: list[str], key: str | None) -> pd.DataFrame:
    """The rows of some row groups of a file."""
    frames = [frame for _, frame, _ in parquet._frames(piece, names, key, _BLOCK_ROWS)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=names)


@dataclass(frozen=True)
class _Refusal:
    """Why a partition cannot be read.

    It is an answer, not a failure: a failed task would leave a page of Dask's on the screen.
    """

    number: int
    why: str
    changed: bool = False


def _count(job: Pass, frame: pd.DataFrame, number: int, first: int | None, size: int | None) -> PassResult | _Refusal:
    """What the job finds in a partition of which ``size`` rows are expected, the first one being record ``first``."""
    if size is not None and len(frame) != size and job.reader.key is None:
        why = f"it had {size} rows when the table was opened and has {len(frame)} now"
        return _Refusal(number, f"{why}, so that places tell no records: persist the table, or name a key column", True)
    try:
        missing_columns(job.reader.columns, frame.columns, "it")
        return merge(
            (
                job([frame.iloc[start : start + _BLOCK_ROWS]], None if first is None else first + start)
                for start in range(0, len(frame), _BLOCK_ROWS)
            ),
            job.reader,
        )
    except (TypeError, ValueError) as error:
        return _Refusal(number, str(error))


def _add(found: list) -> PassResult | _Refusal:
    """The sum of what several partitions found, or the first refusal."""
    return next((piece for piece in found if isinstance(piece, _Refusal)), None) or merge(found)


def _answers(frame: pd.DataFrame, answer: Callable[[pd.DataFrame], np.ndarray], name: str) -> Any:
    values = answer(frame)
    if values.ndim == 1:
        return pd.Series(values, index=frame.index, name=name)
    return pd.DataFrame(values, index=frame.index, columns=[f"{name}_{j}" for j in range(values.shape[1])])
