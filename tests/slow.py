"""Which tests `make check` leaves to `make test`: those that took longest when they were last measured.

``make slow`` runs all tests, and writes ``tests/slow.txt`` from their times: a line for each function that takes more
than a fifth of a second in the mean of its cases, or more than five seconds in all of them.  Beside them stand tests
that are marked slow where they are written, whatever they take.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).resolve().parent
LIST = TESTS / "slow.txt"
LIMIT, TOGETHER = 0.2, 5.0  # seconds


def name(node: str) -> str:
    """A node as it stands in the list: ``test_privacy.py::TestLedger::test_it``, or ``edprf.ipynb`` for any cell."""
    file, _, _ = node.partition("::")
    return (file if file.endswith(".ipynb") else node.partition("[")[0]).rpartition("/")[2]


@cache
def listed() -> frozenset[str]:
    return frozenset(LIST.read_text().split())


def files() -> list[str]:
    """The files that hold something slow, by their paths from the root of the repository."""
    marked = {path.name for path in TESTS.glob("test_*.py") if "mark.slow" in path.read_text(encoding="utf-8")}
    names = marked | {line.partition("::")[0] for line in listed()}
    return sorted(map(path_of, names))


def path_of(test: str) -> str:
    """The path, from the root of the repository, of the file of a test that is named as in the list."""
    file = test.partition("::")[0]
    return f"{'notebooks' if file.endswith('.ipynb') else 'tests'}/{file}"


def measured(report: Path) -> list[str]:
    """The slow ones of a junit report."""
    times: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        room, _, module = case.get("classname", "").partition(".")
        if room == "notebooks":
            of = module
        elif room == "tests":
            module, _, inside = module.partition(".")
            of = name("::".join(filter(None, [f"{module}.py", *inside.split("."), case.get("name", "")])))
        else:
            continue
        times[of].append(float(case.get("time", 0)))
    return sorted(function for function, each in times.items() if sum(each) > min(LIMIT * len(each), TOGETHER))


def functions() -> set[str]:
    """All test functions there are, and all notebooks."""
    found = {path.name for path in (TESTS.parent / "notebooks").glob("*.ipynb")}
    for path in TESTS.glob("test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found |= {
                    f"{path.name}::{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)
                }
            elif isinstance(node, ast.FunctionDef):
                found.add(f"{path.name}::{node.name}")
    return found


if __name__ == "__main__":
    LIST.write_text("\n".join(measured(Path(sys.argv[1]))) + "\n")
    print(f"{LIST.name}: {len(LIST.read_text().split())} test functions")
