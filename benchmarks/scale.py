"""Scaling, measured: ``python -m benchmarks.scale --rows 1000000 10000000``.

One forest is fitted to generated tables of several sizes, in memory, from Parquet files, on Dask and on Spark.  Each
fit has a process of its own, of which the seconds, the processor seconds, the largest memory and the model are noted;
so are those of the processes that it starts.  What is measured is written down at once, and not measured again: a run
that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks import speed
from dpforest import storage
from dpforest.engines.parquet import Parquet
from dpforest.papers.diffpets import DiffPETsClassifier

__all__ = ["DEPTH", "ENGINES", "constants", "fit", "main", "measure", "on_paper", "plain", "report", "scan", "table"]

TREES, DEPTH, THREADS = 100, 6, 2
ENGINES = ("memory", "parquet", "dask", "spark")
#: Four candidates at a node, and no node stops before the last level, so that what a fit costs is not up to the noise.
FOREST = {
    "n_estimators": TREES,
    "max_depth": DEPTH,
    "max_features": 4,
    "cuts_per_feature": 1,
    "stop": "never",
    "random_state": 0,
    "n_jobs": THREADS,
}
FILES = 8
CACHE = 1_600_000_000  # bytes: 10^8 encoded rows


# -- what is measured ------------------------------------------------------------------------------------------------


def table(folder: str | os.PathLike, n_rows: int) -> list[Path]:
    """The files of the generated table with so many rows, which are written where they are not there yet."""
    final = Path(folder) / f"rows-{n_rows}"
    if not final.exists():
        part = final.with_suffix(".part")
        group = min(1 << 20, -(-n_rows // 2))  # two groups at least, one for each thread
        speed.write_parquet(part, n_rows, files=min(-(-n_rows // group), FILES), group=group, key=True)
        part.rename(final)
    return sorted(final.glob("*.parquet"))


def scan(paths: Iterable[str | os.PathLike], columns: Sequence[str], threads: int = THREADS) -> int:
    """Read and decode these columns with pyarrow and nothing else, a row group at a time; the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(threads)
    n_rows = 0
    for path in paths:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                n_rows += file.read_row_group(group, columns=list(columns), use_threads=threads > 1).num_rows
    return n_rows


class _Watched(Parquet):
    """Notes the processor seconds of each pass and, if asked to, times a bare scan of its columns just before."""

    def __init__(self, paths: list[Path], scans: bool, cache: int):
        super().__init__(paths, cache=cache)
        self.watched, self.scans, self.costs, self.bytes_per_row = paths, scans, list[dict](), math.nan

    def open(self, reader, n_jobs=1):
        opened = super().open(reader, n_jobs)
        self.bytes_per_row = opened.scan_bytes / opened.n_rows
        return opened

    def _timed(self, what, work):
        cost: dict = {}
        if self.scans:
            wall, cpu = time.perf_counter(), time.process_time()
            scan(self.watched, self.reader.columns, self.n_jobs)
            cost["scan"] = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        cpu = time.process_time()
        found = super()._timed(what, work)
        self.costs.append(cost | {"cpu": time.process_time() - cpu})
        return found


def fit(
    engine: str,
    paths: list[Path],
    *,
    scans: bool = False,
    cache: int = 0,
    key: bool = False,
    sampling: str = "assignment",
) -> dict:
    """Fit the forest in this process, and say what it took.

    Parameters
    ----------
    engine : {"memory", "parquet", "dask", "spark"}
    paths : list of Path
        Of :func:`table`.
    scans : bool
        Whether a bare scan is timed before each pass (``"parquet"`` only); it is no part of the fit's seconds.
    cache : int
        Bytes of encoded rows that stay in memory between the passes (``"parquet"`` only).
    key : bool
        Whether the records are told by the column ``id``; Spark needs it.  The model is the same, since it holds the
        places.
    sampling : {"assignment", "all"}
        Whether each row goes to one tree, or to every tree.

    Returns
    -------
    dict
        ``seconds`` and ``cpu`` of the fit (``start`` is what a cluster took to start, ``read`` what part of the fit
        read the table into memory), ``passes``, ``peak`` and ``base`` (bytes, the latter after imports), ``workers``
        (the peaks of the processes that were started, added up), ``model`` (a digest), and
        ``limit`` (bytes of memory that this process may have).
    """
    model = DiffPETsClassifier(schema=speed.synthetic_schema(), sampling=sampling, **FOREST)
    few = speed.synthetic(1000)
    model.fit(few.X, few.y)  # compiles, outside all timing
    base, begin = speed._peak_bytes(), time.perf_counter()
    source, stop = _in_files(paths, scans, cache) if engine == "parquet" else _SOURCES[engine](paths)
    start, (_, cpu), begin = time.perf_counter() - begin, _family(), time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = source() if callable(source) else source
            read = time.perf_counter() - begin
            model.fit(X, "y", key="id" if key or engine == "spark" else None)
        seconds = time.perf_counter() - begin
        workers, cpu_then = _family()
    finally:
        stop()
    passes = [entry._asdict() for entry in getattr(X, "log", [])]
    for entry, cost in zip(passes, getattr(X, "costs", []), strict=False):
        entry |= cost
        seconds -= cost.get("scan", {}).get("seconds", 0)
        cpu += cost.get("scan", {}).get("cpu", 0)
    return {
        "engine": engine,
        "sampling": sampling,
        "seconds": seconds,
        "cpu": cpu_then - cpu,
        "start": start,
        "read": read if engine == "memory" else 0.0,
        "passes": passes,
        "base": base,
        "peak": speed._peak_bytes(),
        "workers": workers,
        "nodes": int(model.forest_.n_nodes),
        "model": digest(model),
        "bytes_per_row": getattr(X, "bytes_per_row", None),
        "limit": _limit(),
    }


def digest(model: Any) -> str:
    """A fingerprint of everything that a fitted model releases, but for how its records were told apart."""
    released = model.to_dict(seeded=True)
    del released["guarantee"]["rests_on"]
    return hashlib.sha256(json.dumps(released, sort_keys=True).encode()).hexdigest()


def _in_memory(paths: list[Path]) -> tuple[Any, Callable]:
    import pyarrow.parquet as pq

    return lambda: pq.read_table(paths).to_pandas(), lambda: None


def _in_files(paths: list[Path], scans: bool, cache: int) -> tuple[Any, Callable]:
    return _Watched(paths, scans, cache), lambda: None


def _on_dask(paths: list[Path]) -> tuple[Any, Callable]:
    from distributed import Client, LocalCluster

    from dpforest.engines.dask import Dask

    cluster = LocalCluster(n_workers=THREADS, threads_per_worker=1, dashboard_address=None, memory_limit=0)
    client = Client(cluster)

    def stop():
        client.close()
        cluster.close()

    return Dask([str(path) for path in paths], scheduler=client), stop


def _on_spark(paths: list[Path]) -> tuple[Any, Callable]:
    from pyspark.sql import SparkSession

    from dpforest.engines.spark import Spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{THREADS}]").config("spark.ui.enabled", False)
    builder = builder.config("spark.ui.showConsoleProgress", False)
    session = builder.config("spark.driver.host", "127.0.0.1").config("spark.log.level", "ERROR").getOrCreate()
    return Spark(session.read.parquet(*map(str, paths))), session.stop


_SOURCES = {"memory": _in_memory, "dask": _on_dask, "spark": _on_spark}


def _family() -> tuple[int, float]:
    """Of the processes that this one started: the sum of their largest memories; and the processor seconds of all."""
    own = time.process_time()
    if not Path("/proc/self/stat").exists():
        return 0, own
    parents, peaks, seconds = {}, {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            status = (folder / "status").read_text()
        except OSError:  # it has ended
            continue
        pid = int(folder.name)
        parents[pid] = int(after_name[1])
        seconds[pid] = (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
        peaks[pid] = sum(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    family, new = set[int](), {os.getpid()}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - family
        family |= new
    return sum(peaks[pid] for pid in family), own + sum(seconds[pid] for pid in family)


# -- measuring -------------------------------------------------------------------------------------------------------


def installed(engine: str) -> bool:
    """Whether what the engine needs is there."""
    try:
        if engine == "dask":
            import dask.dataframe  # noqa: F401
            import distributed  # noqa: F401
        if engine == "spark":
            import pyspark  # noqa: F401
    except ImportError:
        return False
    return True


def measure(
    sizes: Sequence[int],
    *,
    memory: Sequence[int] = (),
    engines: Sequence[str] = (),
    engine_rows: int = 0,
    folder: str | os.PathLike,
    record: str | os.PathLike | None = None,
    rounds: int = 1,
    progress: bool | None = None,
    processes: bool = True,
) -> dict:
    """Measure what is asked for and not in the record yet; the answer holds numbers and text only.

    Parameters
    ----------
    sizes : sequence of int
        Rows of the tables that are fitted from Parquet files; at the largest, bare scans are timed too, with and
        without a cache of the encoded rows.
    memory : sequence of int
        Rows of those that are read into memory and fitted there.
    engines : sequence of str
        To compare with one another on ``engine_rows`` rows, those that are installed.
    engine_rows : int
        Without ``engines``, of no account.
    folder : path
        Where the tables are written, and found again.
    record : path, optional
        A JSON file to which each measurement is added at once.
    rounds : int
        How often each fit is measured.
    progress : bool or None
    processes : bool
        Whether each fit has a process of its own; else the largest memory is that of all fits until then.
    """
    record = Path(record) if record else None
    answer: dict = json.loads(record.read_text()) if record and record.exists() else {"fits": {}}
    jobs: list[tuple[str, int, dict]] = [(f"parquet, {n} rows", n, {"engine": "parquet"}) for n in sizes]
    for options in ({"scans": True, "cache": CACHE}, {"scans": True}):
        name = f"parquet, {max(sizes)} rows, {', '.join(options)}"
        jobs.append((name, max(sizes), {"engine": "parquet", **options}))
    jobs += [(f"memory, {n} rows", n, {"engine": "memory"}) for n in memory]
    if engines:
        named: dict[str, dict] = {"every tree sees every row": {"engine": "parquet", "sampling": "all"}}
        named |= {"parquet with a cache": {"engine": "parquet", "cache": CACHE, "key": True}}
        named |= {engine: {"engine": engine, "key": True} for engine in engines if installed(engine)}
        jobs += [(f"{name}, {engine_rows} rows, compared", engine_rows, options) for name, options in named.items()]
    todo = [(name, *job) for turn in range(rounds) for name, *job in jobs if len(answer["fits"].get(name, [])) <= turn]
    with tqdm(todo, unit="fit", disable=None if progress is None else not progress) as bar:
        for name, n_rows, options in bar:
            bar.set_postfix_str(name)
            paths = table(folder, n_rows)
            before = speed._load()
            found = _in_a_fresh_process(options, paths, progress) if processes else fit(paths=paths, **options)
            found |= {"rows": n_rows, "load": [before, speed._load()]}
            answer["fits"].setdefault(name, []).append(found)
            answer["with"], answer["date"] = _machine(), datetime.now(UTC).date().isoformat()
            if record:
                storage.write(record, json.dumps(answer, indent=1) + "\n")
    return answer


def _in_a_fresh_process(options: dict, paths: list[Path], progress: bool | None) -> dict:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale", "--child", json.dumps(options)]
    quiet = None if progress in (None, True) else subprocess.PIPE
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        done = subprocess.run(
            [*command, str(answer), *map(str, paths)], stdout=subprocess.PIPE, stderr=quiet, text=True
        )
        if done.returncode:
            last = (done.stderr or "").strip().splitlines()[-1:]
            raise RuntimeError(f"the fit {options} ended with {done.returncode} {' '.join(last)}")
        return json.loads(answer.read_text())


def _machine() -> dict:
    import numba
    import pandas
    import pyarrow

    packages = [np, pandas, numba, pyarrow]
    if installed("dask"):
        import dask

        packages.append(dask)
    if installed("spark"):
        import pyspark

        packages.append(pyspark)
    about = {package.__name__: package.__version__ for package in packages}
    return {"python": platform.python_version(), **about, "cores": os.cpu_count(), "threads": THREADS}


def _limit() -> int | None:
    """Bytes of memory that this process may have, by ``ulimit -v`` and ``ulimit -d``."""
    try:
        import resource
    except ImportError:  # not on this system
        return None
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


# -- what follows from it --------------------------------------------------------------------------------------------


def plain(answer: dict, engine: str = "parquet") -> list[dict]:
    """The fits of tables of several sizes, without scans."""
    return [
        one
        for name, fits in answer["fits"].items()
        for one in fits
        if name.startswith(engine) and name.endswith(" rows")
    ]


def constants(answer: dict) -> dict:
    """What a fit from Parquet files costs, in units that travel: of the largest table without scans.

    Returns
    -------
    dict
        ``cpu``: processor seconds for a row in a pass.  ``seconds``: wall seconds of that, on so many ``threads``.
        ``fixed``: seconds of a fit outside its passes.  ``passes``, ``bytes_per_row``, ``answers`` (bytes of each
        pass's answer), ``slope`` and ``start`` (seconds per row, and seconds, of the line through all sizes).
    """
    fits = plain(answer)
    largest = max(fits, key=lambda one: one["rows"])
    read = sum(entry["n_rows"] for entry in largest["passes"])
    sizes = sorted({one["rows"] for one in fits})
    middle = [median(one["seconds"] for one in fits if one["rows"] == n) for n in sizes]
    slope, start = np.polyfit(sizes, middle, 1) if len(sizes) > 1 else (middle[0] / sizes[0], 0.0)
    within = sum(entry["seconds"] for entry in largest["passes"])
    return {
        "cpu": sum(entry["cpu"] for entry in largest["passes"]) / read,
        "seconds": within / read,
        "threads": THREADS,
        "fixed": largest["seconds"] - within,
        "passes": len(largest["passes"]),
        "bytes_per_row": largest["bytes_per_row"],
        "answers": [entry["n_bytes"] for entry in largest["passes"]],
        "slope": float(slope),
        "start": float(start),
    }


def on_paper(
    found: dict,
    n_rows: float = 1e12,
    workers: int = 1000,
    *,
    partition: float = 1 << 24,
    network: float = 1.25e8,
    task: float = 1e-3,
    fan_in: int = 8,
) -> dict:
    """What a fit of so many rows on so many workers of one core costs, from measured :func:`constants`.

    Parameters
    ----------
    found : dict
    n_rows, workers, partition
        Rows, workers, and rows that are counted by one task.
    network : float
        Bytes per second between two machines: assumed, as are ``task``, seconds that a scheduler takes for a task, and
        that the tasks of a pass wait for the last of them.
    fan_in : int
        How many answers one task adds up.

    Returns
    -------
    dict
        ``seconds`` and its parts, ``work``, ``tasks``, ``travel`` and ``fixed``; ``core_hours``; ``disk``, the bytes
        per second that a worker has to be fed with; ``terabytes`` read by a pass.
    """
    n_tasks = math.ceil(n_rows / partition)
    turns = math.ceil(n_tasks / workers)
    work = found["passes"] * turns * partition * found["cpu"]
    tasks = found["passes"] * n_tasks * (1 + 1 / fan_in) * task
    # a worker adds up fan_in answers at a time, one level of the sum after the other
    levels = math.ceil(math.log(n_tasks, fan_in)) if n_tasks > 1 else 0
    travel = sum(levels * fan_in * size / network for size in found["answers"])
    return {
        "seconds": max(work, tasks) + travel + found["fixed"],
        "work": work,
        "tasks": tasks,
        "travel": travel,
        "fixed": found["fixed"],
        "core_hours": found["passes"] * n_rows * found["cpu"] / 3600,
        "disk": found["bytes_per_row"] / found["cpu"],
        "terabytes": n_rows * found["bytes_per_row"] / 1e12,
    }


def report(answer: dict) -> str:
    """The measurements as text."""
    versions = ", ".join(f"{name} {version}" for name, version in answer["with"].items())
    lines = [f"{answer['date']}, {versions}", _HEADER]
    for name, fits in answer["fits"].items():
        for one in fits:
            each = [entry["seconds"] for entry in one["passes"]]
            spread = f"{min(each):.2f}-{max(each):.2f}" if each else ""
            took = f"{one['seconds']:>9.1f}{one['cpu']:>9.1f}{len(each):>7}{spread:>16}"
            held = f"{one['peak'] / 1e6:>10.0f}{one['workers'] / 1e6:>10.0f}"
            load = f"{one['load'][0]:.1f}-{one['load'][1]:.1f}"
            lines.append(f"{name:<52}{took}{held}  {one['model'][:8]}  {load}")
            scans = [entry["scan"] for entry in one["passes"] if "scan" in entry]
            if scans:
                ratios = [
                    f"{entry['seconds'] / entry['scan']['seconds']:.2f} ({entry['cpu'] / entry['scan']['cpu']:.2f})"
                    for entry in one["passes"]
                ]
                lines.append(f"  each pass by a bare scan just before it, wall (CPU): {', '.join(ratios)}")
    if plain(answer):
        found = constants(answer)
        lines.append(
            f"a row in a pass: {1e9 * found['cpu']:.0f} ns of CPU; {found['slope'] * 1e6:.3f} s for a million rows and "
            f"{found['start']:.1f} s; on paper, 1e12 rows on 1,000 workers: {on_paper(found)['seconds'] / 3600:.2f} h"
        )
    return "\n".join(lines)


_HEADER = f"{'':<52}{'wall s':>9}{'CPU s':>9}{'passes':>7}{'s each':>16}{'peak MB':>10}{'workers':>10}  model     load"


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000], help="sizes to fit from Parquet files")
    parser.add_argument("--memory", type=int, nargs="+", default=[], help="sizes to fit in memory")
    parser.add_argument("--engines", nargs="+", default=[], choices=ENGINES, help="to compare with one another")
    parser.add_argument("--engine-rows", type=int, default=1_000_000, help="rows of that comparison")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "dpforest-scale", help="of the tables"
    )
    parser.add_argument("--json", type=Path, help="add the measurements to this file, and skip what is there already")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        asked, answer, *paths = options.child
        Path(answer).write_text(json.dumps(fit(paths=[Path(path) for path in paths], **json.loads(asked))))
        return
    answer = measure(
        options.rows,
        memory=options.memory,
        engines=options.engines,
        engine_rows=options.engine_rows,
        folder=options.folder,
        record=options.json,
        rounds=options.rounds,
    )
    print(report(answer))


if __name__ == "__main__":
    main()
