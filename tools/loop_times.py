"""What the commands take and whether they are green, as Markdown tables: `make times`, with nothing else running.

Each table is of a new clone of this repository's last commit, in a temporary folder, with environments of its own:

* the daily commands of CONTRIBUTING.md, as `make` has them;
* the commands that the ecosystem taught, without `make` (``--plain``, or ``--all`` for both).

``--without`` runs them once more with neither data nor network (``tests/offline``); environments are installed before.
``--only`` runs the commands that contain a text, so that a table of hours can be filled a part at a time.
Beside the minutes stands how fast the machine is: a loop of Python and a sort of NumPy, so that figures of different
machines can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ".venv/bin/python"


class Step(NamedTuple):
    """A command: how it is called in the table, what is run after which change, and what is wanted of it."""

    said: str
    command: str
    wanted: float | None = None  # minutes
    change: tuple[str, str, str] | None = None  # in a file, what stands there, and what is put in its place
    must_say: str = ""  # patterns of what it must print, and must not
    must_not_say: str = ""


_CHAPTER = ("book/edprf.md", "", "\nOne more sentence.\n")  # at its end
_PAPER = "dpforest/papers/edprf.py"
_CODE = (_PAPER, "float(self.n_max))  # refuses a missing cap", "float(self.n_max) + 0)  # refuses a missing cap")
_DOCSTRING = (_PAPER, "each record is assigned to a tree by its", "every record is assigned to a tree by its")

STEPS = (
    Step("`make book`, first time, environment included", "make book", 8),
    Step("`make book`, nothing changed", "make book", 1 / 6),
    Step("`make book`, one chapter's text changed", "make book", 1, _CHAPTER),
    Step("`make check`", "make check", 2),
    Step("`make check`, one paper's code changed", "make check", 1, _CODE),
    Step("`make check`, one docstring changed", "make check", 1 / 2, _DOCSTRING),
    Step("`make test`", "make test", 6),
    Step("`make test-all`", "make test-all", 20),
)
CI = Step("`.ci/run`", ".ci/run", 25)

#: With the packages of requirements.txt alone, and then with those of `pip install .` alone.
_WARNED = r"build succeeded, \d+ warning"
PLAIN = (
    Step("`jupyter-book build .`", ".venv/bin/jupyter-book build .", None, None, "build succeeded", _WARNED),
    Step("`pytest --nbval`", f"{PYTHON} -m pytest --nbval", None, None, r"notebooks/\w+\.ipynb", "notebooks/record/"),
    Step(
        "`pytest --nbval notebooks`",
        f"{PYTHON} -m pytest --nbval notebooks",
        None,
        None,
        r"notebooks/\w+\.ipynb",
        "notebooks/record/",
    ),
    Step("`pytest --nbval notebooks/ten_lines.ipynb`", f"{PYTHON} -m pytest --nbval notebooks/ten_lines.ipynb"),
    Step(
        "`papermill notebooks/edprf.ipynb out.ipynb -p epsilon 2.0`",
        f"{PYTHON} -m papermill notebooks/edprf.ipynb out.ipynb -p epsilon 2.0",
    ),
)
ALONE = Step(
    "notebooks run in Jupyter, by `pip install '.[dask]' jupyterlab`",
    f"{PYTHON} -m jupyter nbconvert --to notebook --execute --output-dir ../opened NOTEBOOKS",
)
INSTALL = {"plain": "-r requirements.txt", "alone": ".[dask] jupyterlab"}

#: Data sets that come with scikit-learn.
BUNDLED = {"breast-cancer", "diabetes", "digits"}

_SPEED = """
import timeit
import numpy as np
table = np.random.default_rng(0).random(2_000_000)
loop = min(timeit.repeat("for k in range(10_000_000): total += k * k", "total = 0", repeat=3, number=1))
print(f"{loop:.2f} s for ten million turns of a Python loop, "
      f"{min(timeit.repeat(lambda: np.sort(table), repeat=3, number=5)):.2f} s for five sorts of two million numbers "
      f"(NumPy {np.__version__})")
"""


def timed(command: list[str], clone: Path) -> tuple[int, float, float, str]:
    """The exit code, the minutes of the clock and of all processors, and what was printed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    log = clone.parent / "times.log"
    with log.open("w") as file:
        code = subprocess.run(command, cwd=clone, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return code, (time.monotonic() - start) / 60, spent / 60, log.read_text(errors="replace")


def verdict(step: Step, code: int, minutes: float, said: str) -> str:
    """``green``, or what is not as it should be."""
    if code:
        return f"red: ended with {code}"
    if step.must_say and not re.search(step.must_say, said):
        return f"red: it does not say {step.must_say!r}"
    if step.must_not_say and (found := re.search(step.must_not_say, said)):
        return f"red: it says {found[0]!r}"
    return "green" if step.wanted is None or minutes <= step.wanted else "too slow"


@contextmanager
def changed(clone: Path, change: tuple[str, str, str] | None) -> Iterator[None]:
    """A change of a file of the clone, for as long as a command runs."""
    if change is None:
        yield
        return
    name, old, new = change
    path = clone / name
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1 and old:
        raise ValueError(f"{name} has {text.count(old)} places {old!r}; loop_times.py changes one")
    path.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


@contextmanager
def fresh(install: str = "") -> Iterator[Path]:
    """A new clone of the last commit, and an environment with what `pip install` is told to put into it."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
        if install:
            subprocess.run([sys.executable, "-m", "venv", str(clone / ".venv")], check=True)
            subprocess.run([PYTHON, "-m", "pip", "install", "-qq", *install.split()], cwd=clone, check=True)
        yield clone


def notebooks(clone: Path, without: bool) -> list[str]:
    """The notebooks of a clone; without data those alone that read none."""
    found = []
    for path in sorted((clone / "notebooks").glob("*.ipynb")):
        about = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("dpforest", {})
        if not without or set(about.get("datasets", [])) <= BUNDLED:
            found.append(str(path.relative_to(clone)))
    return found


def table(steps: tuple[Step, ...], clone: Path, *, without: bool = False) -> int:
    """Run the steps one after the other, and print a line for each; return how many are not green."""
    had = "DPFOREST_DATA" if os.environ.get("DPFOREST_DATA") else "the network"
    where = "no data and no network" if without else f"data from {had}"
    print(f"\n| command ({os.cpu_count()} cores, {where}) | minutes | CPU minutes | wanted | |\n|---|--:|--:|--:|---|")
    bad = 0
    for step in steps:
        command = [sys.executable, "-m", "tests.offline"] if without else []
        for word in step.command.split():
            command += notebooks(clone, without) if word == "NOTEBOOKS" else [word]
        with changed(clone, step.change):
            code, minutes, spent, said = timed(command, clone)
        found = verdict(step, code, minutes, said)
        if found.startswith("red"):
            print(said[-3000:], file=sys.stderr)
        wanted = "" if step.wanted is None else f"≤ {step.wanted:.2g}"
        print(f"| {step.said} | {minutes:.1f} | {spent:.1f} | {wanted} | {found} |", flush=True)
        bad += found != "green"
    return bad


def chosen(steps: tuple[Step, ...], text: str) -> tuple[Step, ...]:
    """The steps whose command contains this text."""
    return tuple(step for step in steps if text in step.command)


def speed(clone: Path) -> None:
    """Print how fast the machine is, by the clone's own Python and NumPy."""
    print(f"\nThis machine, load {os.getloadavg()[0]:.1f}: ", end="", flush=True)
    subprocess.run([PYTHON, "-c", _SPEED], cwd=clone, check=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--ci", action="store_true", help="also run .ci/run, in another clone")
    parser.add_argument("--plain", action="store_true", help="the plain commands, in place of the daily ones")
    parser.add_argument("--all", action="store_true", help="both")
    parser.add_argument("--without", action="store_true", help="all of it again with neither data nor network")
    parser.add_argument("--only", default="", metavar="TEXT", help="of these the commands that contain this text")
    options = parser.parse_args(arguments)
    bad = 0
    daily, plain, alone = (chosen(steps, options.only) for steps in (STEPS, PLAIN, (ALONE,)))
    daily = daily if options.all or not options.plain else ()
    plain, alone = (plain, alone) if options.all or options.plain else ((), ())
    if not (daily or plain or alone or options.ci):
        parser.error(f"no command contains {options.only!r}")
    if daily:
        with fresh() as clone:
            bad += table(daily, clone)
            speed(clone)
            if options.without:
                subprocess.run(["make", "clean"], cwd=clone, check=True, stdout=subprocess.DEVNULL)
                bad += table(daily, clone, without=True)
    for without in [False, True] if options.without else [False]:
        for steps, packages in ((plain, INSTALL["plain"]), (alone, INSTALL["alone"])):
            if steps:
                with fresh(packages) as clone:
                    bad += table(steps, clone, without=without)
                    speed(clone)
    if options.ci:
        with fresh() as clone:
            bad += table((CI,), clone)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
