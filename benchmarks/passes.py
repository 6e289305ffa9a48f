"""The library's own learner on a table in Parquet files: how often a fit reads it, and what a pass costs.

Usage::

    python -m benchmarks.passes  # 2,000,000 rows in a temporary folder
    (ulimit -d 3900000; python -m benchmarks.passes --rows 100000000 --folder DIR)  # 3 GB of disk

A pass is given as a multiple of a bare scan: pyarrow alone reads and decodes the same columns, on as many threads,
before each pass; the median counts.  The fits differ in what is cached: nothing, the encoded rows, or in addition what
the released trees say of each row.  That their models are the same is checked, and that of the table in memory where it
fits.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pandas as pd

from benchmarks import scale, speed
from dpforest import PrivateBoostingClassifier, storage
from dpforest.engines.parquet import Parquet

__all__ = ["Fit", "fit", "main", "report"]

#: Rows up to which the model in memory is fitted, too.
HELD = 4_000_000
#: What is kept between passes, and bytes a row for it: codes and label; codes, label and a score.
CACHES = {"nothing": 0, "encoded rows": 15, "and scores": 19}


class Fit(NamedTuple):
    """What a fit took, and each pass as a multiple of a bare scan: in seconds of the processors, and of the clock."""

    seconds: float
    cpu: list[float]
    wall: list[float]
    model: str  # a digest
    peak: int  # bytes that this process has had at most until then


def fit(paths: list[Path], cache: int) -> Fit:
    """Fit the learner from these files, with so many bytes of cache."""
    table = scale._Watched(paths, True, cache)
    learner = _learner()
    start = time.perf_counter()
    learner.fit(table, "y")
    seconds = time.perf_counter() - start - sum(cost["scan"]["seconds"] for cost in table.costs)
    scan = {kind: median(cost["scan"][kind] for cost in table.costs) for kind in ("cpu", "seconds")}
    return Fit(
        round(seconds, 1),
        [round(cost["cpu"] / scan["cpu"], 3) for cost in table.costs[1:]],  # without the look
        [round(read.seconds / scan["seconds"], 3) for read in table.log[1:]],
        scale.digest(learner),
        speed._peak_bytes(),
    )


def _learner() -> PrivateBoostingClassifier:
    return PrivateBoostingClassifier(schema=speed.synthetic_schema(), random_state=0, n_jobs=scale.THREADS)


def report(
    rows: int,
    folder: Path,
    say: Callable[[str], object] = print,
    most: float = math.inf,
    record: Path | None = None,
) -> bool:
    """Fit with each cache of at most so many bytes, and say what was found; whether the models are the same.

    A row is printed when its fit ends: with 100,000,000 rows each takes ten minutes or more.  ``record`` is a JSON file
    to which each fit is added at once; those that are there already are not made again.
    """
    paths = scale.table(folder, rows)
    _learner().fit(Parquet(scale.table(folder, 2000), progress=False), "y")  # compiles, before anything is timed
    known: dict = json.loads(record.read_text()) if record and record.exists() else {"rows": rows, "fits": {}}
    if known["rows"] != rows:
        raise ValueError(f"{record} is about {known['rows']:,} rows, not {rows:,}: give another file")
    models = []
    say(f"{rows:,} rows, 14 columns, {scale.THREADS} threads; a pass in bare scans of its columns\n")
    say("| kept between passes | passes | seconds | CPU, median | CPU, first and last fifth | clock, median |")
    say("|---|--:|--:|--:|--:|--:|")
    for name, width in CACHES.items():
        if width * rows > most:
            continue
        if name not in known["fits"]:
            known["fits"][name] = fit(paths, width * rows)._asdict()
            known |= {"with": scale._machine(), "date": datetime.now(UTC).date().isoformat(), "limit": scale._limit()}
            if record:
                storage.write(record, json.dumps(known, indent=1) + "\n")
        found = Fit(**known["fits"][name])
        models.append(found.model)
        fifth = max(1, len(found.cpu) // 5)
        first, last = median(found.cpu[:fifth]), median(found.cpu[-fifth:])
        numbers = f"{found.seconds:.1f} | {median(found.cpu):.1f} | {first:.1f}, {last:.1f} | {median(found.wall):.1f}"
        say(f"| {name} | {len(found.cpu) + 1} | {numbers} |")
    if rows <= HELD:
        table = pd.concat([pd.read_parquet(path) for path in paths])
        models.append(scale.digest(_learner().fit(table[speed.synthetic_schema().columns], table["y"])))
    same = all(model == models[0] for model in models)
    answer = ("yes" if same else "NO") if len(models) > 1 else "one fit, and no other to compare it with"
    say(f"\nthe same model{', in memory, too' if rows <= HELD else ''}: {answer}")
    say(f"largest memory of this process: {speed._peak_bytes() / 1e9:.2f} GB")
    return same


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 where the models differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, help="where the generated table is kept (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="add the fits to this file, and skip those that are there already")
    parser.add_argument("--cache-at-most", type=float, default=math.inf, help="bytes; larger caches are left out")
    options = parser.parse_args(arguments)
    if not options.cache_at_most >= 0:  # what is no number, too
        parser.error(f"--cache-at-most must be a number of bytes, 0 or more, not {options.cache_at_most}")
    with tempfile.TemporaryDirectory() as scratch:
        folder, how = options.folder or Path(scratch), {"most": options.cache_at_most, "record": options.json}
        return 0 if report(options.rows, folder, **how) else 1


if __name__ == "__main__":
    sys.exit(main())
