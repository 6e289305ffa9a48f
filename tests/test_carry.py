"""Renderings of record carried forward: only on evidence, page by page, and the page says so."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import carry  # conftest.py puts notebooks/ on the path
import nbformat
import pytest
import render

META = {"display_name": "Python 3", "language": "python", "name": "python3"}
LIBRARY = "def double(n):\n    return 2 * n\n"
RELEASED = '{"fit": "aa", "OtherClassifier": "bb"}'


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def released(root: Path, digests: str, computed: str | None = None) -> None:
    (root / "tests" / "digests.json").write_text(digests)
    (root / "tests" / "digests.py").write_text(f"print({(computed or digests)!r})\n")


def notebook(root: Path, *code: str) -> None:
    """A notebook of one parameter and these cells, with the outputs of a run at its small size."""
    nb = nbformat.v4.new_notebook(metadata={"kernelspec": META})
    nb.cells = [
        nbformat.v4.new_markdown_cell("# A question?\n\nExhibits: `thm-none`", id="head"),
        nbformat.v4.new_code_cell("n = 1", metadata={"tags": ["parameters"]}, id="parameters"),
        *(nbformat.v4.new_code_cell(source, id=f"code-{index}") for index, source in enumerate(code)),
    ]
    nbformat.write(nb, root / "notebooks" / "a.ipynb")
    assert render.main(["--store"], source=root / "notebooks") == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a library, a notebook and its rendering of record, all committed."""
    root = tmp_path_factory.mktemp("carried")
    for folder in ("dpforest", "notebooks", "tests"):
        (root / folder).mkdir()
    (root / "dpforest" / "__init__.py").write_text("")
    (root / "dpforest" / "one.py").write_text(LIBRARY)
    (root / "requirements.txt").write_text("# empty\n")
    (root / "tests" / "__init__.py").write_text("")
    (root / ".gitignore").write_text("rendered/\n")
    (root / "notebooks" / "full.yaml").write_text("a: {n: 20}\n")
    released(root, RELEASED)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root)
        patch.setenv("PYTHONPATH", str(root))
        notebook(root, "from dpforest.one import double\nprint(double(n))")
        for how in ("--run", "--record"):
            assert render.main([how], source=root / "notebooks") == 0
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "All")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of it that may be changed."""
    git(tmp_path, "clone", "--quiet", str(made), str(tmp_path / "clone"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "clone"))
    return tmp_path / "clone"


def rekey(root: Path) -> int:
    return render.main(["--rekey"], source=root / "notebooks")


def is_recorded(root: Path) -> bool:
    (job,) = render.plan(source=root / "notebooks")
    return render.recorded(job)


def test_after_a_rename(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "dpforest" / "one.py").write_text(LIBRARY.replace("double", "twice"))
    notebook(root, "from dpforest.one import twice\n\nprint(twice(n))  # two times")
    assert not is_recorded(root)
    assert rekey(root) == 0
    assert "carried from" in capsys.readouterr().out
    assert is_recorded(root)
    assert render.main([], source=root / "notebooks") == 0
    page = nbformat.read(root / "notebooks" / "rendered" / "a.ipynb", as_version=4)
    assert "twice(n))  # two times" in [cell for cell in page.cells if cell.cell_type == "code"][-1].source
    assert "40\n" in [output.text for cell in page.cells for output in cell.get("outputs", [])]
    assert "carried forward to" in page.cells[-1].source
    assert rekey(root) == 0
    assert "no rendering of record is stale" in capsys.readouterr().out


def changed_result(root: Path) -> None:
    (root / "dpforest" / "one.py").write_text(LIBRARY.replace("2 * n", "3 * n"))


def changed_result_stored(root: Path) -> None:
    changed_result(root)
    notebook(root, "from dpforest.one import double\nprint(double(n))")


def changed_cells(root: Path) -> None:
    notebook(root, "from dpforest.one import double", "print(double(n))")


def changed_parameter(root: Path) -> None:
    (root / "notebooks" / "full.yaml").write_text("a: {n: 21}\n")


def changed_release(root: Path) -> None:
    (root / "dpforest" / "one.py").write_text(LIBRARY.replace("double(n)", "double(n, m=1)"))
    released(root, RELEASED.replace("aa", "cc"))


def changed_record(root: Path) -> None:
    (root / "dpforest" / "one.py").write_text(LIBRARY.replace("double(n)", "double(n, m=1)"))
    record = root / "notebooks" / "record" / "a.ipynb"
    record.write_text(record.read_text().replace("40", "41"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (changed_result, "code cell 1: stdout: 2 is now 3"),
        (changed_result_stored, "code cell 1: stdout: 2 is now 3"),
        (changed_cells, "it has other cells"),
        (changed_parameter, "its parameters at full size have changed"),
        (changed_release, "the digest of 'fit' has changed since"),
        (changed_record, "its record is not committed"),
    ],
)
def test_not_without_evidence(
    root: Path, change: Callable[[Path], None], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(root)
    record = (root / "notebooks" / "record" / "a.ipynb").read_bytes()
    assert rekey(root) == 0
    assert f"a: not carried: {why}" in capsys.readouterr().out
    assert (root / "notebooks" / "record" / "a.ipynb").read_bytes() == record
    assert not is_recorded(root)


def test_a_digest_of_what_a_page_does_not_reach(root: Path) -> None:
    (root / "dpforest" / "one.py").write_text(LIBRARY.replace("double(n)", "double(n, m=1)"))
    released(root, RELEASED.replace("bb", "cc"))
    assert rekey(root) == 0
    assert is_recorded(root)


def test_a_digest_more_is_no_other_release(root: Path) -> None:
    (root / "dpforest" / "one.py").write_text(LIBRARY.replace("double(n)", "double(n, m=1)"))
    released(root, RELEASED.replace("}", ', "new": "dd"}'))
    assert rekey(root) == 0
    assert is_recorded(root)


def test_nothing_is_carried_if_a_release_is_not_what_is_stored(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "dpforest" / "one.py").write_text(LIBRARY.replace("double(n)", "double(n, m=1)"))
    released(root, RELEASED, computed=RELEASED.replace("bb", "cc"))
    assert rekey(root) == 1
    assert "what is released is not what tests/digests.json has" in capsys.readouterr().err
    assert not is_recorded(root)


def test_a_page_at_full_size_is_looked_at(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A change that shows at full size alone."""
    (root / "dpforest" / "one.py").write_text(LIBRARY.replace("2 * n", "2 * n if n < 10 else 0"))
    assert rekey(root) == 1
    problems = capsys.readouterr().err
    assert "a.ipynb at full size is not its rendering of record: code cell 1: stdout: 40 is now 0" in problems
    assert "nothing was carried" in problems
    assert not is_recorded(root)


def test_git_is_needed(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    changed_parameter(root)
    monkeypatch.setattr(carry, "released", lambda root: "")
    monkeypatch.setenv("PATH", str(root))
    assert rekey(root) == 1
    assert "git is needed" in capsys.readouterr().err
