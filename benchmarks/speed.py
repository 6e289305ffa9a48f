"""Speed and memory, measured in one run: ``python -m benchmarks.speed``.

Every time is also given as a ratio, to scikit-learn's ExtraTrees of the same kind and to one *bincount pass*: one
``np.bincount`` per column over the binned table.  Ratios within a run travel between machines; seconds do not.
Repetitions of the things compared are interleaved, so that a disturbance of the machine falls on all of them, and
medians are given with their range.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numba
import numpy as np
import sklearn
from scipy.special import ndtri
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from dpforest import scores, storage
from dpforest.budgets import Shares
from dpforest.chance import Seeded
from dpforest.curator import Curator
from dpforest.learners.cuts import grow_extra_trees
from dpforest.learners.run import Run, Selection
from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.random_trees import RandomTreesClassifier, RandomTreesRegressor
from dpforest.privacy import Ledger, UnprovenPrivacyWarning
from dpforest.schema import Schema

__all__ = [
    "Table",
    "baseline",
    "greedy_forest",
    "main",
    "measure",
    "report",
    "synthetic",
    "synthetic_schema",
    "write_parquet",
]

THREADS = 2
TREES, DEPTH, BINS = 100, 6, 32
LEVELS = (5, 7, 9, 12, 16, 20, 30, 40)
SHAPES = ("uniform", "normal", "exponential", "uniform2", "skewed", "integer")
NUMERIC = "synthetic, numeric target"
TARGET = (-4, 6)  # public range of the numeric target
LONG = 30.0  # seconds; what takes longer is measured once, and hardly varies
PASS, ENCODE, GREEDY, CUTS = "bincount pass", "encode", "greedy forest", "greedy forest, ordered cuts"
RANDOM, EDPRF, PETS, EXTRA = "RandomTreesClassifier", "EDPRFClassifier", "DiffPETsClassifier", "ExtraTreesClassifier"
RANDOM_R, PETS_R, EXTRA_R = "RandomTreesRegressor", "DiffPETsRegressor", "ExtraTreesRegressor"


# -- what is measured ------------------------------------------------------------------------------------------------


class Table:
    """A table with its schema, encoded once for what is timed without encoding."""

    def __init__(self, X, y, schema: Schema):
        self.X, self.y, self.schema = X, np.asarray(y), schema
        self.codes, self.regression = schema.encode(X, BINS).codes, schema.target is not None
        self.labels = schema.encode_target(y)[0] if self.regression else schema.encode_labels(y)
        # scikit-learn takes numbers only: an array as it is, a data frame as its codes
        self.numbers = X if isinstance(X, np.ndarray) else np.ascontiguousarray(self.codes.T, dtype=np.float32)

    def head(self, n_rows: int) -> Table:
        """The first rows."""
        return Table(self.X[:n_rows], self.y[:n_rows], self.schema)


def synthetic(n_rows: int, seed: int = 7, *, regression: bool = False) -> Table:
    """Eight categorical columns with 5 to 40 levels and six numeric ones; about 32 % of the labels are positive.

    For ``regression``, the target is the number that the labels are a threshold of, clipped to a public range.
    """
    columns, y = _draw(n_rows, Seeded(seed), regression)
    return Table(np.column_stack(list(columns.values())).astype(np.float32), y, synthetic_schema(regression=regression))


def synthetic_schema(*, regression: bool = False) -> Schema:
    """The schema of :func:`synthetic` and :func:`write_parquet`."""
    bounds = [(0, 1), (-4, 4), (0, 8), (0, 1), (0, 1), (0, 99)]
    categorical = {f"c{levels}": list(range(levels)) for levels in LEVELS}
    return Schema(
        numeric=dict(zip(SHAPES, bounds, strict=True)),
        categorical=categorical,
        classes=None if regression else [0, 1],
        target=TARGET if regression else None,
        columns=[*categorical, *SHAPES],
    )


def write_parquet(
    folder: str | os.PathLike,
    n_rows: int,
    seed: int = 7,
    *,
    files: int = 1,
    group: int = 1 << 20,
    regression: bool = False,
    key: bool = False,
) -> list[Path]:
    """Write a table like that of :func:`synthetic`, of any size: it is drawn and written a row group at a time.

    The columns are those of :func:`synthetic` in single precision, and the labels, or the numeric target, in ``y``.
    The rows are drawn anew for each row group: the table depends on all parameters but ``files``.  It takes about
    30 bytes of disk per row, 1.1 s per million rows, and 0.5 GB of memory for row groups of the default size.

    Parameters
    ----------
    folder : path
        Is made where it does not exist.  Other files in it stay.
    n_rows : int
    seed : int
    files : int
        Among which the row groups are shared, in their order.
    group : int
        Rows of a row group.
    regression : bool
    key : bool
        Also write the column ``id``, which holds each row's place in the table.

    Returns
    -------
    list of Path
        The files: ``part-0000.parquet`` and so on.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    types = {**dict.fromkeys(synthetic_schema().columns, "float32"), "y": "float32" if regression else "int8"}
    types |= {"id": "int64"} if key else {}
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])
    paths = [folder / f"part-{number:04d}.parquet" for number in range(files)]
    for path, groups in zip(paths, np.array_split(np.arange(-(-n_rows // group)), files), strict=True):
        with pq.ParquetWriter(path, schema) as writer:
            for number in groups.tolist():
                columns, y = _draw(min(group, n_rows - number * group), Seeded([seed, number]), regression)
                columns |= {"y": y} | ({"id": number * group + np.arange(len(y))} if key else {})
                arrays = [columns[name].astype(kind) for name, kind in types.items()]
                writer.write_table(pa.table(arrays, schema=schema), row_group_size=group)
    return paths


def _draw(n_rows: int, chance: Seeded, regression: bool) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The columns of the synthetic table, and its labels or numeric target."""

    def uniform():
        return (chance.integers(1 << 52, n_rows) + 0.5) / (1 << 52)

    columns = {f"c{levels}": chance.integers(levels, n_rows) for levels in LEVELS}
    columns["uniform"] = uniform()
    columns["normal"] = np.clip(ndtri(uniform()), -4, 4)
    columns["exponential"] = np.minimum(-np.log(uniform()), 8)
    columns["uniform2"] = uniform()
    columns["skewed"] = uniform() * uniform()
    columns["integer"] = chance.integers(100, n_rows)
    score = (
        np.sin(columns["c12"]) + (columns["c5"] == 2) + columns["normal"] * (columns["c7"] > 3) + 2 * columns["skewed"]
    )
    score += 0.8 * ndtri(uniform())
    return columns, np.clip(score, *TARGET) if regression else (score > 1.35).astype(np.int64)


def greedy_forest(table: Table, ordered_cuts: bool = False, epsilon: float = 1.0):
    """A forest of which every tree sees every record, from codes to release.

    Each node takes one of four random candidates by permute-and-flip on count-weighted Gini; leaves hold noisy
    counts. A candidate cuts a category's levels into two random sets, or with ``ordered_cuts`` at a random place of
    their order.  For a numeric target, the score is ``between`` and leaves hold noisy masses.
    """
    schema, chance, ledger = table.schema, Seeded(0), Ledger("add-remove")
    sizes = schema.cardinalities(BINS)
    curator = Curator(table.codes, table.labels, schema.n_classes, sizes, chance=chance, ledger=ledger, n_jobs=THREADS)
    run = Run(curator, chance, schema, ledger, epsilon)
    run.ordered |= ordered_cuts
    shares = Shares("uniform", run.start_forest(TREES), DEPTH + 1)
    score, ask = (scores.between, run.sum_masses) if table.regression else (scores.gini, run.count_classes)
    grow_extra_trees(
        run, shares, Selection(score), lambda leaves, share: run.set_leaf_values(leaves, ask(leaves, share)), 4, 1
    )
    return run.release()


def _fits(table: Table) -> dict[str, Callable]:
    """What to time, by name; each returns what :func:`_predictions` needs."""
    private = {"schema": table.schema, "random_state": 0, "n_jobs": THREADS}
    forest = {"n_estimators": TREES, "max_depth": DEPTH, "n_jobs": THREADS, "random_state": 0}
    trees = {**private, **forest}
    fits = {
        PASS: lambda: [np.bincount(column) for column in table.codes] and None,
        ENCODE: lambda: table.schema.encode(table.X, BINS) and None,
        GREEDY: lambda: greedy_forest(table),
    }
    if table.regression:
        return fits | {
            RANDOM_R: lambda: RandomTreesRegressor(**trees).fit(table.X, table.y),
            PETS_R: lambda: DiffPETsRegressor(**trees).fit(table.X, table.y),
            EXTRA_R: lambda: ExtraTreesRegressor(**forest).fit(table.numbers, table.y),
        }
    return fits | {
        CUTS: lambda: greedy_forest(table, ordered_cuts=True),
        RANDOM: lambda: RandomTreesClassifier(**trees).fit(table.X, table.y),
        EDPRF: lambda: EDPRFClassifier(n_estimators=10, **private).fit(table.X, table.y),
        PETS: lambda: DiffPETsClassifier(**trees).fit(table.X, table.y),
        EXTRA: lambda: ExtraTreesClassifier(**forest).fit(table.numbers, table.y),
    }


def _predictions(table: Table, fitted: dict) -> dict[str, Callable]:
    """What to time of those fitted; the greedy forest is no estimator, so its class is looked up by hand."""
    predictions: dict[str, Callable] = {}
    for name, model in fitted.items():
        if name == GREEDY and not table.regression:
            predictions[name] = lambda: fitted[GREEDY].sum_leaves(table.codes, THREADS).argmax(axis=1)
        elif hasattr(model, "predict"):
            numbers = table.numbers if name in (EXTRA, EXTRA_R) else table.X
            predictions[name] = lambda model=model, numbers=numbers: model.predict(numbers)
    return predictions


# -- measuring -------------------------------------------------------------------------------------------------------


def _interleaved(todo: dict[str, Callable], rounds: int) -> tuple[dict[str, dict], dict]:
    """Wall and processor seconds of each thing, and what each returned.

    Up to five times a round if it is quick; once for all if it takes very long.
    """
    times: dict[str, dict] = {name: {"wall": [], "cpu": []} for name in todo}
    results = {}
    for _ in range(rounds):
        for name, do in todo.items():
            if max(times[name]["wall"], default=0) > LONG:
                continue
            begin = time.perf_counter()
            for _ in range(5):
                wall, cpu = time.perf_counter(), time.process_time()
                results[name] = do()
                times[name]["wall"].append(time.perf_counter() - wall)
                times[name]["cpu"].append(time.process_time() - cpu)
                if rounds == 1 or time.perf_counter() - begin > 0.5:
                    break
    return times, results


def _peak_bytes() -> int:
    """Largest resident memory of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():  # of this program alone; getrusage also remembers the process that started it
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _child(task: str, folder: str, name: str) -> dict:
    """What a fresh process measures: the peak memory of one fit and prediction, or the time of the first ones."""
    X, y = (np.load(Path(folder) / f"{part}.npy") for part in ("X", "y"))
    table = Table(X, y, synthetic(1, regression=y.dtype.kind == "f").schema)
    base = _peak_bytes()
    fits, predictions = [], []
    for _ in range(1 if task == "memory" else 2):
        times, fitted = _interleaved({name: _fits(table)[name]}, 1)
        fits.append(times[name])
        predictions.append(_interleaved({name: _predictions(table, fitted)[name]}, 1)[0][name])
    return {"base": base, "over": _peak_bytes() - base, "fit": fits, "predict": predictions}


def _in_a_fresh_process(task: str, table: Table, name: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", table.X)
        np.save(Path(folder) / "y.npy", table.y)
        environment = dict(os.environ)
        if task == "compile":
            environment["NUMBA_CACHE_DIR"] = folder
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed", "--child", task, folder, name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


def measure(
    n_rows: int = 1_000_000,
    rounds: int = 3,
    *,
    regression_rows: int | None = None,
    adult: bool = True,
    processes: bool = True,
) -> dict:
    """Measure everything; the answer holds numbers and text only.

    Parameters
    ----------
    n_rows : int
        Of the synthetic table.
    rounds : int
    regression_rows : int, optional
        Of the synthetic table with a numeric target, by default ``n_rows``.  scikit-learn's regressor tries all columns
        at each node: at a million rows, it takes more time than everything else together.
    adult : bool
        Also the census set, where it can be had.
    processes : bool
        Also what needs fresh processes: peak memory and first-call compile time.
    """
    load = _load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        tables = {"synthetic": synthetic(n_rows), NUMERIC: synthetic(regression_rows or n_rows, regression=True)}
        small = {name: table.head(min(n_rows, 50_000)) for name, table in tables.items()}
        for table in small.values():
            _one_table(table, 1)  # compiles, outside all timing
        measured = {name: _one_table(table, rounds) for name, table in tables.items()}
        answer: dict = {"rows": n_rows, "rounds": rounds, "tables": measured}
        table, growth = tables["synthetic"], {}
        for n in sorted({n_rows // 10, 3 * n_rows // 10, n_rows}):
            part = table.head(n)
            few = {name: _fits(part)[name] for name in (PASS, GREEDY, CUTS, RANDOM)}
            growth[n] = _interleaved(few, rounds)[0]
        answer["growth"] = growth
        if processes:
            kinds = dict.fromkeys((GREEDY, RANDOM, EDPRF, EXTRA), "synthetic") | {PETS_R: NUMERIC}
            answer["memory"] = {name: _in_a_fresh_process("memory", tables[kind], name) for name, kind in kinds.items()}
            del kinds[EXTRA]
            answer["compile"] = {
                name: _in_a_fresh_process("compile", small[kind], name) for name, kind in kinds.items()
            }
        if adult:
            answer["tables"]["adult"] = _adult(rounds)
    packages = {package.__name__: package.__version__ for package in (np, numba, sklearn)}
    answer["with"] = {"python": platform.python_version(), **packages, "cores": os.cpu_count(), "threads": THREADS}
    answer["load"] = [load, _load()]
    return answer


def _load() -> float:
    """Processes that want a core; above the number of threads, wall times say little."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def _one_table(table: Table, rounds: int) -> dict:
    fit, fitted = _interleaved(_fits(table), rounds)
    predict, _ = _interleaved(_predictions(table, fitted), rounds)
    return {"rows": int(table.codes.shape[1]), "columns": len(table.codes), "fit": fit, "predict": predict}


def baseline(steps) -> str:
    """The step of scikit-learn among those of a table."""
    (name,) = {EXTRA, EXTRA_R} & set(steps)
    return name


def _adult(rounds: int) -> dict:
    from dpforest import datasets

    try:
        adult = datasets.load("adult")
    except datasets.DatasetUnavailableError as error:
        return {"missing": str(error)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values outside the public bounds
        return _one_table(Table(adult.X, adult.y, adult.schema), rounds)


# -- printing --------------------------------------------------------------------------------------------------------


def report(answer: dict) -> str:
    """The measurements as text."""
    versions = ", ".join(f"{name} {version}" for name, version in answer["with"].items())
    before, after = answer["load"]
    lines = [f"{versions}; load {before:.1f} before, {after:.1f} after; medians of {answer['rounds']} rounds"]
    for name, table in answer["tables"].items():
        if "missing" in table:
            lines += ["", f"{name}: {table['missing']}"]
            continue
        unit = table["fit"][PASS]
        for what in ("fit", "predict"):
            lines += ["", f"{name}, {table['rows']:,} x {table['columns']}: {what}", _HEADER]
            slow = table[what][baseline(table[what])]
            lines += [_line(step, times, unit, slow) for step, times in table[what].items()]
    lines += ["", "growth with the rows: nanoseconds of wall time per row"]
    for name in next(iter(answer["growth"].values())):
        each = (f"{int(n):>9,}: {1e9 * median(t[name]['wall']) / int(n):8.1f}" for n, t in answer["growth"].items())
        lines.append(f"  {name:<28}{'   '.join(each)}")
    if "memory" in answer:
        lines += ["", "peak memory over data and imports (fit and predict, fresh process)"]
        lines += [f"  {name:<28}{got['over'] / 1e6:8.0f} MB" for name, got in answer["memory"].items()]
        lines += ["", "first call with nothing compiled before, less the second call: wall s (CPU s)"]
        for name, got in answer["compile"].items():
            parts = []
            for step in ("fit", "predict"):
                wall, cpu = (got[step][0][kind][0] - got[step][1][kind][0] for kind in ("wall", "cpu"))
                parts.append(f"{step} {wall:.1f} ({cpu:.1f})")
            lines.append(f"  {name:<28}{', '.join(parts)}")
    return "\n".join(lines)


_HEADER = f"  {'':<28}{'wall s':>10}{'(range)':>21}{'CPU s':>10}{'passes':>9}{'ExtraTrees / this: wall, CPU':>31}"


def _line(step: str, times: dict, unit: dict, slow: dict) -> str:
    wall, cpu = median(times["wall"]), median(times["cpu"])
    span = f"({min(times['wall']):.4g}-{max(times['wall']):.4g})"
    ratios = f"{median(slow['wall']) / wall:>21.1f}{median(slow['cpu']) / cpu:>10.1f}"
    return f"  {step:<28}{wall:>10.4g}{span:>21}{cpu:>10.4g}{wall / median(unit['wall']):>9.2f}{ratios}"


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="50 000 rows, no fresh processes")
    parser.add_argument("--rows", type=int, help="rows of the synthetic table (default 1 000 000)")
    parser.add_argument("--regression-rows", type=int, help="rows of the one with a numeric target (default as many)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(_child(*options.child)))
        return
    n_rows = options.rows or (50_000 if options.quick else 1_000_000)
    answer = measure(n_rows, options.rounds, regression_rows=options.regression_rows, processes=not options.quick)
    if options.json:
        storage.write(options.json, json.dumps(answer, indent=1))
    print(report(answer))


if __name__ == "__main__":
    main()
