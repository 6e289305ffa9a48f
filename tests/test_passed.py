"""What passed is left out while all that it reaches is as it was, and no longer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from tests import not_run, passed, slow
from tests.test_reached import FILES, git
from tools import reached

FOUND = ["tests/test_one.py", "tests/test_reads.py", "tests/test_two.py", "notebooks/page.ipynb"]
EVERY = set(FOUND)
MORE = {
    "conftest.py": "",
    **dict.fromkeys(passed.SETTINGS, "x = 1\n"),
    "requirements.txt": "numpy==2.0\n",
    "tests/slow.txt": "",
    "requirements-opendp.txt": "",
    "requirements-spark.txt": "",
    "dpforest/__init__.py": "from lib import two\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {**FILES, **MORE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    cell = nbformat.v4.new_code_cell("from dpforest import two\ntwo.Child().size()", id="one", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"}, execution_count=1)]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "notebooks" / "page.ipynb")
    git(tmp_path, "init", "--quiet")
    assert passed.note(FOUND, [], root=tmp_path) == 4
    assert passed.kept(FOUND, tmp_path) == FOUND
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("lib/one.py", "return RATE", "return RATE + 1", {"tests/test_one.py"}),
        ("lib/one.py", "return RATE", "return RATE  # why", set()),
        ("lib/two.py", "return 2", "return 3", {"tests/test_two.py", "notebooks/page.ipynb"}),
        ("tests/test_two.py", "== 2", "== 1 + 1", {"tests/test_two.py"}),
        ("tests/helper.py", "return Child()", "return  Child()", set()),
        ("notebooks/page.ipynb", '"2"', '"3"', {"notebooks/page.ipynb"}),
        ("book/a.md", "Words", "Other words", set()),
        ("tests/slow.txt", "", "test_one.py::test_one\n", set()),
        ("conftest.py", "", "RATE = 1\n", EVERY),
        ("pyproject.toml", "1", "2", EVERY),
        ("requirements.txt", "2.0", "2.1", EVERY),
    ],
)
def test_what_reaches_a_change_is_run_again(project: Path, file: str, old: str, new: str, changed: set[str]) -> None:
    """And so is whatever reads the files of the repository, after any change of one."""
    path = project / file
    path.write_text(path.read_text().replace(old, new, 1))
    reads = set() if file == passed.SLOW else {"tests/test_reads.py"}
    assert passed.kept(FOUND, project) == [name for name in FOUND if name not in changed | reads]
    path.write_text(path.read_text().replace(new, old, 1))
    assert passed.kept(FOUND, project) == FOUND


def test_a_new_file_counts_for_those_that_read_files(project: Path) -> None:
    (project / "book" / "b.md").write_text("More.\n")
    assert set(passed.kept(FOUND, project)) == EVERY - {"tests/test_reads.py"}


def test_nothing_is_left_out_on_another_machine(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passed.platform, "machine", lambda: "another")
    assert passed.kept(FOUND, project) == []
    assert passed.note(FOUND[:1], [], root=project) == 1  # what another machine found is not mixed with it


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"where": 1, "files": {}}', '{"where": {}, "files": {}}'])
def test_a_record_that_cannot_be_read_leaves_out_nothing(project: Path, text: str) -> None:
    (project / passed.RECORD).write_text(text)
    assert passed.kept(FOUND, project) == []
    assert passed.note(FOUND[:1], [], root=project) == 1


def test_without_a_repository_nothing_that_reads_files_is_left_out(project: Path) -> None:
    (project / ".git").rename(project / "gone")
    assert passed.kept(["tests/test_reads.py"], project) == []
    assert passed.kept(FOUND, project) == [name for name in FOUND if name != "tests/test_reads.py"]


def test_without_a_repository_what_reads_no_files_is_noted(project: Path) -> None:
    """In an archive, where `make test-all` must not end with an error either."""
    (project / ".git").rename(project / "gone")
    (project / passed.RECORD).unlink()
    assert passed.note(FOUND, [], root=project) == 3
    assert "tests/test_reads.py" not in passed.read(project)["files"]


def test_a_failure_ends_what_was_known(project: Path) -> None:
    assert passed.note([], ["tests/test_one.py"], root=project) == 3
    assert set(passed.kept(FOUND, project)) == EVERY - {"tests/test_one.py"}
    (project / "tests" / "test_two.py").unlink()
    assert passed.note(["tests/test_one.py"], [], root=project) == 3


def report(node: str, reason: str = "") -> SimpleNamespace:
    return SimpleNamespace(nodeid=node, longrepr=("file", 1, reason) if reason else None)


def test_what_was_skipped_is_remembered_until_it_has_run(project: Path) -> None:
    skipped = ["test_one.py::test_rare", "test_two.py::test_rare", "test_gone.py::test_rare"]
    passed.note(["tests/test_one.py", "tests/test_two.py"], [], skipped, root=project)
    assert passed.read(project)["skipped"] == skipped[:2]
    passed.note(["tests/test_one.py"], [], root=project)
    assert passed.read(project)["skipped"] == skipped[1:2]
    passed.note([], ["tests/test_two.py"], root=project)
    assert passed.read(project)["skipped"] == []


def test_no_file_with_a_failure_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that was broken off; and a test that is skipped for want of a browser has shown nothing."""
    names = [f"tests/test_{letter}.py" for letter in "abcdef"]
    lacking, red, broken, own, not_yet = (f"{name}::TestIt::test_it[x]" for name in names[1:])
    stats = {
        "passed": [report(f"{name}::test_other") for name in names],
        "skipped": [report(lacking, "Skipped: needs a browser: get one"), report(own, "Skipped: another form")],
        "failed": [report(red)],
        "error": [report(broken)],
    }
    noted: list[set[str]] = []
    monkeypatch.setattr(passed, "note", lambda *files, record: noted.extend(files) or 0)
    lines: list[str] = []
    collected = {report.nodeid for each in stats.values() for report in each} | {not_yet}
    stash = {passed._COLLECTED: collected}
    config = SimpleNamespace(option=SimpleNamespace(note_passed=True, passed_in="here"), stash=stash)
    passed.pytest_terminal_summary(SimpleNamespace(stats=stats, write_line=lines.append), config)
    assert noted == [{names[0], names[1], names[4]}, {names[2], names[3]}, {"test_b.py::TestIt::test_it"}]
    assert len(lines) == 1


def test_what_is_slow_is_read_from_a_run(tmp_path: Path) -> None:
    """A function by the mean of its cases, or by all of them; a notebook by its cells."""
    cases = [
        ("tests.test_one", "test_slow[a]", 0.3),
        ("tests.test_one", "test_slow[b]", 0.2),
        ("tests.test_one", "test_quick", 0.1),
        ("tests.test_one.TestIt", "test_slow", 0.3),
        *[("tests.test_two", f"test_often[{k}]", 0.1) for k in range(60)],
        ("notebooks.page.ipynb", "Cell 0", 0.1),
        ("notebooks.page.ipynb", "Cell 1", 0.5),
        ("notebooks.quick.ipynb", "Cell 0", 0.1),
    ]
    lines = [f'<testcase classname="{where}" name="{name}" time="{time}"/>' for where, name, time in cases]
    (tmp_path / "times.xml").write_text(f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>")
    slow_ones = ["page.ipynb", "test_one.py::TestIt::test_slow", "test_one.py::test_slow", "test_two.py::test_often"]
    assert slow.measured(tmp_path / "times.xml") == slow_ones
    assert {slow.path_of(test) for test in slow_ones} == {
        "notebooks/page.ipynb",
        "tests/test_one.py",
        "tests/test_two.py",
    }


def collected(record: Path, *options: str) -> tuple[int, str]:
    """What pytest chooses of a file with slow tests and quick ones, with a record of its own."""
    quiet = ["-q", "-p", "no:cacheprovider", "--collect-only"]
    command = [sys.executable, "-m", "pytest", *quiet, "--passed-in", str(record), *options]
    done = subprocess.run(command, cwd=passed.ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "listed"),
    [("tests/test_privacy.py", True), ("tests/test_bits.py", False), ("notebooks/zoo.ipynb", True)],
)
def test_what_is_listed_or_marked_as_slow_is_left_out(tmp_path: Path, name: str, listed: bool) -> None:
    """Whether ``slow.txt`` or the file itself says that it is slow."""
    record = tmp_path / "passed.json"
    record.write_text(json.dumps({"where": passed.machine(), "files": {name: passed.Keys().of(name)}, "skipped": []}))
    everything, left = (
        set(re.findall(rf"^{name}::.+$", collected(record, name, "--nbval", *options)[1], flags=re.M))
        for options in ([], ["--unless-passed"])
    )
    gone = {slow.name(node) for node in everything - left}
    assert gone
    assert left < everything
    assert ({test for test in slow.listed() if slow.path_of(test) == name} == gone) == listed
    assert not {slow.name(node) for node in left} & gone


def test_workers_leave_out_as_much(tmp_path: Path) -> None:
    """A worker of pytest-xdist has the options of the command line, and nothing that was found out after them."""
    name, record = "tests/test_privacy.py", tmp_path / "passed.json"
    record.write_text(json.dumps({"where": passed.machine(), "files": {name: passed.Keys().of(name)}, "skipped": []}))
    command = [sys.executable, "-m", "pytest", name, "-q", "-p", "no:cacheprovider", f"--passed-in={record}"]
    counts = []
    for options in (["-n", "0"], ["-n", "0", "--unless-passed"], ["-n", "1", "--unless-passed"]):
        done = subprocess.run([*command, *options], cwd=passed.ROOT, capture_output=True, text=True, check=False)
        counts += [int(number) for number in re.findall(r"(\d+) passed", done.stdout)]
    everything, alone, worker = counts
    assert worker == alone < everything


def test_the_options(tmp_path: Path) -> None:
    """Slow tests of a file on record are left out, if asked for; a choice of tests is not noted as the file."""
    name, record = "tests/test_bits.py", tmp_path / "passed.json"
    keys = {"where": passed.machine(), "files": {name: passed.Keys().of(name)}, "skipped": []}
    record.write_text(json.dumps(keys))
    code, said = collected(record, name, "--unless-passed")
    assert code == 0
    assert "not run again: the slow tests of 1 files" in said
    left = set(re.findall(rf"{name}::\S+", said))
    code, said = collected(record, name)
    assert (code, "not run again" in said) == (0, False)
    everything = set(re.findall(rf"{name}::\S+", said))
    assert set() < left < everything
    again = slow.name(min(everything - left))
    record.write_text(json.dumps(keys | {"skipped": [again]}))
    found = set(re.findall(rf"{name}::\S+", collected(record, name, "--unless-passed")[1]))
    assert found - left == {test for test in everything if slow.name(test) == again}
    record.write_text(json.dumps(keys | {"files": {name: "another"}}))
    assert set(re.findall(rf"{name}::\S+", collected(record, name, "--unless-passed")[1])) == everything
    for chosen in (["-k", "law"], ["-m", "slow"], ["--deselect=x"], ["--unless-passed"], [f"{name}::test_a"]):
        code, said = collected(record, *([name] if "::" not in chosen[-1] else []), *chosen, "--note-passed")
        assert code != 0
        assert "--note-passed notes whole files" in said
    assert json.loads(record.read_text())["files"] == {name: "another"}


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_that_is_broken_off_notes_nothing_of_the_file(tmp_path: Path, workers: str) -> None:
    """In one process, and where another one runs the tests; the file runs to its end if nothing stops it."""
    record, file = tmp_path / "passed.json", "tests/test_slow_or_not.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", workers, "--note-passed", "-rN"]
    stopped = "import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('enough')\ndef test_c(): pass\n"
    whole = stopped.replace("pytest.exit('enough')", "pytest.skip('enough')")
    if not (passed.ROOT / ".git").exists():
        pytest.skip(not_run.CLONE)
    clone = tmp_path / "clone"
    reached.git(passed.ROOT, "clone", "--quiet", "--no-hardlinks", str(passed.ROOT), str(clone))
    for name in ("tests/passed.py", "tests/slow.py", "tests/not_run.py", "conftest.py"):
        (clone / name).write_bytes((passed.ROOT / name).read_bytes())
    for text, known in ((stopped, []), (whole, [file])):
        (clone / file).write_text(text)
        env = {**os.environ, "PYTHONPATH": str(clone)}
        subprocess.run(
            [*command, "--passed-in", str(record), file], cwd=clone, env=env, capture_output=True, check=False
        )
        assert list(passed.read(record=str(record))["files"]) == known
