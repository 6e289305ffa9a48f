"""The commands that Python's users know already, typed in a clone: no `make`, and the library not installed.

The whole book by ``jupyter-book build .`` is what `make book` builds; here its extension lays out a book of two pages.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
import yaml
from docutils import nodes
from docutils.utils import new_document
from sphinx.addnodes import pending_xref

from tests import not_run

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Of the run that these tests stand in: another one would find its kernels and its workers there.
INHERITED = ("DPFOREST_", "JUPYTER", "PYTEST", "PYTHON", "IPY", "MPL", "TQDM")

pytestmark = pytest.mark.slow


class Stranger:
    """Somebody with the locked packages, who has not installed dpforest, in a folder."""

    def __init__(self, folder: Path, home: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=os.name != "nt")
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.home = home
        # a path in PYTHONPATH reads no .pth file, by which dpforest may be installed here
        paths = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
        self.environment = kept | {"PYTHONPATH": os.pathsep.join(paths), "DPFOREST_CACHE": str(folder / "no data")}

    def types(self, *command: str, folder: str = ".") -> subprocess.CompletedProcess[str]:
        """What a command, by its module, says and ends with."""
        module, *words = command
        start = ["-c", f"import sys; from {module} import main; sys.exit(main())"] if "." in module else ["-m", module]
        return subprocess.run(
            [str(self.python), *start, *words],
            cwd=self.home / folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """With a clone of what stands here, changes that are not committed included."""
    home, listed = tmp_path_factory.mktemp("clone"), ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip(not_run.CLONE)
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, found.split("\0")):
        if (ROOT / name).is_file():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, home / name)
    for compiled in (ROOT / "dpforest").rglob("__pycache__"):  # numba's, too, which take a minute
        shutil.copytree(compiled, home / compiled.relative_to(ROOT))
    return Stranger(tmp_path_factory.mktemp("environment"), home)


# -- pytest ----------------------------------------------------------------------------------------------------------


def test_the_library_is_not_installed(stranger: Stranger) -> None:
    done = subprocess.run(
        [str(stranger.python), "-P", "-c", "import pandas, dpforest"],
        cwd=stranger.home,
        env=stranger.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'dpforest'" in done.stderr


def test_nbval_finds_the_notebooks_and_nothing_else_that_ends_so(stranger: Stranger) -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert said["tool"]["pytest"]["ini_options"]["testpaths"] == ["tests", "notebooks"]
    notebooks = stranger.home / "notebooks"
    expected = {path.name for path in notebooks.glob("*.ipynb")}
    others = ["rendered/audit.ipynb", "audit.part.ipynb", "audit.failed.ipynb", ".ipynb_checkpoints/audit.ipynb"]
    for other in others:
        (notebooks / other).parent.mkdir(exist_ok=True)
        shutil.copyfile(notebooks / "audit.ipynb", notebooks / other)
    try:
        collected = ("pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
        done = stranger.types(*collected, "--nbval", "notebooks")
        assert done.returncode == 0, done.stdout + done.stderr
        cells = [line for line in done.stdout.splitlines() if "::" in line]
        assert {line.partition("::")[0] for line in cells} == {f"notebooks/{name}" for name in expected}
        assert "no tests collected" in stranger.types(*collected, "--nbval", "notebooks/record").stdout
        assert "no tests collected" in stranger.types(*collected, "notebooks").stdout
    finally:
        for other in others:
            (notebooks / other).unlink()


def code_cells(name: str) -> int:
    """How many cells of one of our notebooks are run."""
    cells = json.loads((ROOT / f"notebooks/{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    assert any("image/png" in output.get("data", ()) for cell in cells for output in cell.get("outputs", ()))
    return sum(cell["cell_type"] == "code" for cell in cells)


def test_nbval_of_one_notebook(stranger: Stranger) -> None:
    """In its own folder; a figure among its outputs, and no two of its cells in two kernels."""
    words = ("-q", "--nbval", "-p", "no:cacheprovider", "-n", "2", "budgets.ipynb")
    done = stranger.types("pytest", *words, folder="notebooks")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{code_cells('budgets')} passed" in done.stdout


def test_a_wrong_output_is_not_green(stranger: Stranger) -> None:
    """Beside a notebook that is; both in one process.  A progress bar among the cells is no wrong output."""
    path = stranger.home / "notebooks" / "wrong.ipynb"
    nb = json.loads((stranger.home / "notebooks" / "which_epsilon.ipynb").read_text(encoding="utf-8"))
    stored = [{"output_type": "stream", "name": "stdout", "text": "2.1\n"}]
    bar = "from tqdm import tqdm\n\nfor _ in tqdm([1]):\n    pass"
    written = [("print(2.0)", stored), (bar, [])]
    nb["cells"] = [
        nb["cells"][1] | {"id": f"cell-{at}", "source": source, "outputs": outputs, "metadata": {}}
        for at, (source, outputs) in enumerate(written)
    ]
    path.write_text(json.dumps(nb), encoding="utf-8")
    words = ("-q", "--nbval", "-p", "no:cacheprovider", "notebooks/budgets.ipynb", "notebooks/wrong.ipynb")
    try:
        done = stranger.types("pytest", *words)
    finally:
        path.unlink()
    assert done.returncode == 1, done.stdout
    assert "2.1 is now 2.0" in done.stdout
    assert f"1 failed, {code_cells('budgets') + 1} passed" in done.stdout


def test_papermill(stranger: Stranger) -> None:
    done = stranger.types("papermill", "notebooks/budgets.ipynb", "out.ipynb", "-p", "shown", "14")
    assert done.returncode == 0, done.stderr
    nb = json.loads((stranger.home / "out.ipynb").read_text(encoding="utf-8"))
    (given,) = (cell for cell in nb["cells"] if "injected-parameters" in cell["metadata"].get("tags", ()))
    assert "shown = 14" in "".join(given["source"])


# -- the book --------------------------------------------------------------------------------------------------------

PAGES = ("page", "other")
PAGE = {
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
    "cells": [
        {"cell_type": "markdown", "id": "head", "metadata": {}, "source": "# A page\n\nExhibits: no claim"},
        {
            "cell_type": "code",
            "id": "one",
            "metadata": {},
            "source": "print(1)",
            "execution_count": 1,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "small\n"}],
        },
    ],
}


@pytest.fixture
def book(tmp_path: Path, stranger: Stranger) -> Stranger:
    """A book of two pages whose renderings of record are as the notebooks are, built by the extension of this one."""
    home = tmp_path / "book of two pages"
    for name in ("book/_extensions/records.py", *(f"notebooks/{name}.py" for name in ("render", "reach", "compare"))):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, home / name)
    shutil.copytree(ROOT / "dpforest", home / "dpforest", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "requirements.txt").write_text("# none\n")
    chapter = "chapters:\n- file: notebooks/rendered/other\n"
    (home / "_toc.yml").write_text(f"format: jb-book\nroot: notebooks/rendered/page\n{chapter}")
    ours = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    extensions = ["sphinx_comments", "myst_nb", "jupyter_book", "sphinx_external_toc", "sphinx_design", "records"]
    assert set(extensions) <= set(ours["sphinx"]["config"]["extensions"])
    few = {"extensions": extensions, "html_theme": "basic", "html_theme_options": {}}
    ours |= {"sphinx": {"local_extensions": {"records": "book/_extensions"}, "config": few}, "bibtex_bibfiles": []}
    (home / "_config.yml").write_text(yaml.safe_dump(ours))
    for name in PAGES:
        (home / "notebooks" / f"{name}.ipynb").write_text(json.dumps(PAGE))
    reader = Stranger(tmp_path / "environment", home)
    asked = "from render import plan; [print(job.name, job.key, job.source_key) for job in plan()]"
    done = subprocess.run(
        [str(reader.python), "-c", asked],
        cwd=home / "notebooks",
        env=reader.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (home / "notebooks" / "record").mkdir()
    for line in done.stdout.splitlines():
        name, key, source_key = line.split()
        record = json.loads(json.dumps(PAGE).replace("small", "recorded"))
        made = {"machine": "m", "parameters": {}, "versions": {"python": "3"}, "data": {}}
        record["metadata"]["dpforest"] = {"key": key, "source_key": source_key, "provenance": made}
        (home / "notebooks" / "record" / f"{name}.ipynb").write_text(json.dumps(record))
    return reader


def built(reader: Stranger, *words: str) -> tuple[int, list[str], list[str]]:
    """The exit code, the pages, and the warnings and errors, of ``jupyter-book build .``."""
    done = reader.types("jupyter_book.cli.main", "build", ".", *words)
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)  # colours
    made = [reader.home / "_build" / "html" / "notebooks" / "rendered" / f"{name}.html" for name in PAGES]
    warned = [line for line in said.splitlines() if re.search(r"\b(WARNING|ERROR)\b", line)]
    return done.returncode, [page.read_text(encoding="utf-8") if page.exists() else "" for page in made], warned


def test_jupyter_book_builds_from_the_record(book: Stranger) -> None:
    code, pages, said = built(book, "-W", "-n")
    assert (code, said) == (0, []), said
    for page in pages:
        assert "recorded" in page
        assert "How this page was made" in page


def test_a_page_that_is_stale_or_without_a_record_says_so_and_one_warning(book: Stranger) -> None:
    """Each its own sentence and its own warning, in one book."""
    notebook = book.home / "notebooks" / "page.ipynb"
    notebook.write_text(notebook.read_text().replace("print(1)", "print(2)"))
    (book.home / "notebooks" / "record" / "other.ipynb").unlink()
    code, (stale, small), said = built(book)
    assert code == 0
    assert "recorded" in stale
    assert "changed since" in stale
    assert "recorded" not in small
    assert "small" in small
    assert "at its own small size" in small
    sentences = ("page.ipynb: the page shows an earlier run", "other.ipynb: the page shows its small run")
    assert len(said) == len(sentences)
    for sentence in sentences:
        assert [sentence in line for line in said].count(True) == 1, said


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("dpforest/audit/__init__.py", "import nowhere", "pip install -r requirements.txt"),
        ("notebooks/full.yaml", "third: {n: 1}", "there is no notebook third.ipynb; there are: other, page"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(book: Stranger, file: str, text: str, sentence: str) -> None:
    (book.home / file).write_text(text)
    done = book.types("jupyter_book.cli.main", "build", ".")
    assert done.returncode == 1
    (said,) = done.stderr.splitlines()
    assert sentence in said
    assert not (book.home / "_build" / "html" / "notebooks").exists()


def test_words_of_a_type_are_no_links_and_names_are() -> None:
    """From Sphinx 8 on, ``n`` in ``(n, k) array`` would be any of the attributes called so, with a warning."""
    extension = runpy.run_path(str(ROOT / "book" / "_extensions" / "type_words.py"))
    page = new_document("page")
    targets = [("class", "n"), ("obj", "array-like"), ("class", "dpforest.Schema"), ("class", "Schema"), ("attr", "n")]
    for kind, target in targets:
        page += pending_xref("", nodes.emphasis("", target), refdomain="py", reftype=kind, reftarget=target)
    extension["_as_words"](None, page)
    assert page.astext().split() == [target for _, target in targets]
    assert [(link["reftype"], link["reftarget"]) for link in page.findall(pending_xref)] == targets[2:]


# -- what README says ------------------------------------------------------------------------------------------------


def test_readme_shows_the_commands() -> None:
    for command in ("pip install -r requirements.txt", "jupyter-book build .", "pytest --nbval", "papermill notebook"):
        assert f"$ {command}" in README
