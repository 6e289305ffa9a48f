"""Which slow tests `make test` need not run again: they passed, and all that they reach is as it was.

``make test-all`` runs every test and notebook.  For each file that ran to its end without a failure it notes in
``tests/passed.json`` a key of what the file reaches: definitions, by ``notebooks/reach.py``, the locked packages, and
all files of the repository where the tests read these; and which of its tests were skipped for want of something.
``make test`` leaves out the slow tests (``tests/slow.txt``) of the files that still have that key, but for those that
were skipped, on a machine of the same kind, and its last line counts these files.  The command ``pytest`` alone leaves
out nothing.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "notebooks"))
import render  # noqa: E402
from reach import digest  # noqa: E402

from tests import not_run, slow  # noqa: E402
from tools import reached  # noqa: E402

RECORD = "tests/passed.json"
SLOW = "tests/slow.txt"  # what is left out, which does not change what passes
#: What every run of tests reads, whatever it reaches.
SETTINGS = ("pyproject.toml", "requirements.txt", "tests/nbval-sanitize.cfg")
_COLLECTED = pytest.StashKey[set[str]]()
_KEPT = pytest.StashKey[list[str]]()  # files whose slow tests are left out


def machine() -> dict[str, str]:
    """What a result may depend on and no key holds: the processor, the system and the version of Python."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


class Keys:
    """The keys of the test files and notebooks of a checkout."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._library = reached.library(root)

    @cached_property
    def settings(self) -> str:
        """A digest of what every run reads."""
        return digest([(self.root / name).read_text(encoding="utf-8") for name in SETTINGS])

    @cached_property
    def frame(self) -> str:
        """A digest of what every run reaches."""
        reach = reached.of(self._library, "conftest")
        assert reach is not None
        return reach.digest()

    @cached_property
    def files(self) -> str | None:
        """A digest of all files of the repository, but for the record of what passed and the list of what is slow.

        None in an archive, where nothing tells the repository's files from those that were made there.
        """
        wanted = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        try:
            names = "".join(reached.git(self.root, *wanted)).split("\0")
        except (OSError, SystemExit):
            return None
        found = hashlib.sha256()
        for name in sorted(names):
            if name and name not in (RECORD, SLOW) and (path := self.root / name).is_file():
                found.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
        return found.hexdigest()

    @cached_property
    def notebooks(self) -> dict[str, str]:
        """The keys that the renderings of notebooks have."""
        return {job.name: job.key for job in render.plan(source=self.root / "notebooks")}

    def of(self, name: str) -> str | None:
        """The key of a file of tests or of a notebook, by its path from the root; None where it cannot be told."""
        path = self.root / name
        if path.suffix == ".ipynb":
            return digest([self.settings, self.frame, self.notebooks[path.stem], path.read_text(encoding="utf-8")])
        module = f"tests.{path.stem}"
        reach = reached.of(self._library, module)
        assert reach is not None
        alone = self._library.reach([], [module])
        reads = any("__file__" in each.names.used for each in alone.definitions.values())
        files = self.files if reads else ""
        return None if files is None else digest([self.settings, reach.digest(), files])


def read(root: Path = ROOT, record: str = RECORD) -> dict[str, Any]:
    """The record, or an empty one where there is none that can be read."""
    try:
        found = json.loads((root / record).read_text(encoding="utf-8"))
        return {"where": dict(found["where"]), "files": dict(found["files"]), "skipped": list(found["skipped"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"where": {}, "files": {}, "skipped": []}


def kept(names: Iterable[str], root: Path = ROOT, record: str = RECORD) -> list[str]:
    """Which of these files passed as they are, on a machine of this kind."""
    found, keys = read(root, record), Keys(root)
    if found["where"] != machine():
        return []
    try:
        return [name for name in names if name in found["files"] and found["files"][name] == keys.of(name)]
    except OSError:  # a file that a key is of is gone
        return []


def note(
    passed: Iterable[str],
    failed: Iterable[str],
    skipped: Iterable[str] = (),
    root: Path = ROOT,
    record: str = RECORD,
) -> int:
    """Write down the files of which nothing failed, and which tests were skipped for want of something.

    A failure ends what was known of a file.  Returned is how many files are known.
    """
    found, keys = read(root, record), Keys(root)
    files = found["files"] if found["where"] == machine() else {}
    new = {name: key for name in passed if (key := keys.of(name)) is not None}
    files = {name: key for name, key in {**files, **new}.items() if name not in set(failed) and (root / name).exists()}
    missing = {test for test in found["skipped"] if slow.path_of(test) not in new} | set(skipped)
    known = {
        "where": machine(),
        "files": dict(sorted(files.items())),
        "skipped": sorted(test for test in missing if slow.path_of(test) in files),
    }
    (root / record).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return len(files)


# -- for pytest ------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dpforest")
    group.addoption("--unless-passed", action="store_true", help="leave out slow tests that passed as they are")
    group.addoption("--note-passed", action="store_true", help="note the files in which all tests passed")
    group.addoption(
        "--passed-in", default=RECORD, metavar="FILE", help="the record of these two (default: %(default)s)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Find out once, for all workers, what is left out."""
    option = config.option
    config.stash[_COLLECTED] = set()
    chosen = any(getattr(option, name, None) for name in ("keyword", "markexpr", "deselect", "lf", "stepwise"))
    if option.note_passed and (chosen or option.unless_passed or any("::" in word for word in config.args)):
        raise pytest.UsageError("--note-passed notes whole files: it goes with no choice of tests inside them")
    if hasattr(config, "workerinput"):
        config.stash[_KEPT] = list(config.workerinput["passed"])
    else:
        config.stash[_KEPT] = kept(slow.files(), record=option.passed_in) if option.unless_passed else []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker, which has the options of the command line alone."""
    node.workerinput["passed"] = node.config.stash[_KEPT]


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_COLLECTED].update(item.nodeid for item in session.items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """The run that hands tests out collects none itself."""
    node.config.stash[_COLLECTED].update(ids)


@pytest.hookimpl(trylast=True)  # what is listed as slow is marked so by conftest.py
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take away the slow tests of the files that passed as they are."""
    names = set(config.stash[_KEPT])
    if not names:
        return
    skipped = set(read(record=config.option.passed_in)["skipped"])
    gone = {
        item
        for item in items
        if of(item.nodeid) in names and item.get_closest_marker("slow") and slow.name(item.nodeid) not in skipped
    }
    if gone:
        config.hook.pytest_deselected(items=list(gone))
        items[:] = [item for item in items if item not in gone]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what was left out, and note what passed."""
    if names := config.stash.get(_KEPT, []):
        where = machine()
        terminalreporter.write_line(
            f"not run again: the slow tests of {len(names)} files, which passed (Python {where['python']}, "
            f"{where['system']}, {where['machine']}) and reach nothing that has changed since; make test-all runs them"
        )
    if config.option.note_passed:
        reports = terminalreporter.stats
        failed = {of(one.nodeid) for kind in ("failed", "error") for one in reports.get(kind, ())}
        ended = {one.nodeid for kind in ("passed", "skipped", "xfailed") for one in reports.get(kind, ())}
        broken_off = {of(node) for node in config.stash[_COLLECTED] - ended}
        passed = {of(one.nodeid) for one in reports.get("passed", ())} - failed - broken_off
        skipped = {
            slow.name(one.nodeid) for one in reports.get("skipped", ()) if not_run.lacking(not_run.reason_of(one))
        }
        known = note(passed, failed, skipped, record=config.option.passed_in)
        terminalreporter.write_line(f"{config.option.passed_in}: {known} files passed as they are")


def of(nodeid: str) -> str:
    """The file of a test, by its path from the root."""
    return nodeid.partition("::")[0]
