"""What was not run here, and why: how a test says what it needs, and the line that gathers it at the end of a run."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import coq

_FORM = re.compile(r"needs (?P<what>.+?): (?P<mend>.+)", re.DOTALL)
_PACKAGE = re.compile(r"could not import '(?P<what>\w+)")  # as `pytest.importorskip` says it
_DATA = "the data set "


def needs(what: str, mend: str) -> str:
    """The reason of a skip: what the test needs, and the command or the variable by which it is had."""
    return f"needs {what}: {mend}"


def data(name: str) -> str:
    """The reason of all skips for want of a data set."""
    return needs(f"{_DATA}{name}", "set DPFOREST_DATA to a folder that holds it, or connect to the network")


BROWSER = needs("a browser", "apt-get install chromium chromium-driver")
BOOK = needs("the built book", "make book")
FIREFOX = needs("Firefox", "apt-get install firefox-esr")
CLONE = needs("a clone", "git clone, in place of an archive")
COQ = needs("Coq", coq.INSTALL)
DP_ACCOUNTING = needs("dp-accounting", "pip install dp-accounting")
DASK = needs("Dask", "pip install 'dpforest[dask]'")
FORK = needs("a system that forks processes", "Linux or macOS")
JAVA = needs("Java 17", "apt-get install openjdk-17-jre-headless")
OPENDP = needs("OpenDP", "make opendp")
PARQUET = needs("pyarrow", "pip install 'dpforest[parquet]'")
SPARK = needs("Spark", "make spark")


def lacking(reason: str) -> tuple[str, str] | None:
    """What a skip is for want of, and what mends it; None where it has a reason of its own."""
    if found := _FORM.fullmatch(reason.removeprefix("Skipped: ")):
        return found["what"], found["mend"]
    if found := _PACKAGE.search(reason):
        return found["what"], f"pip install {found['what']}"
    return None


def reason_of(report: pytest.TestReport) -> str:
    """Why a test was skipped; '' where that is not told."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else ""


def line(reasons: list[str]) -> str:
    """One line: how many tests were not run for want of what, and what mends it ('' where nothing was left out)."""
    missing: dict[str, Counter[str]] = defaultdict(Counter)
    others = 0
    for reason in reasons:
        if found := lacking(reason):
            what, mend = found
            missing[mend][what] += 1
        else:
            others += 1
    parts = []
    for mend, counts in missing.items():
        whats = sorted(counts)
        if all(what.startswith(_DATA) for what in whats):
            names = ", ".join(what.removeprefix(_DATA) for what in whats)
            whats = [f"{_DATA}{names}" if len(whats) == 1 else f"the data sets {names}"]
        parts.append(f"{counts.total()} for want of {', '.join(whats)} ({mend})")
    if others:
        parts.append(f"{others} for reasons of their own (-rs shows them)")
    return f"not run here: {'; '.join(parts)}" if parts else ""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    yield
    reasons = map(reason_of, terminalreporter.getreports("skipped"))
    if said := line(list(filter(None, reasons))):
        terminalreporter.write_line(said)


def pytest_sessionstart() -> None:
    """A folder of data that is not there is a slip of the pen, and no reason to skip what needs it."""
    if (folder := os.environ.get("DPFOREST_DATA")) and not Path(folder).is_dir():
        raise pytest.UsageError(f"DPFOREST_DATA names {folder!r}, which is not a folder: correct it, or unset it")
