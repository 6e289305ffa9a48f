"""House rules of the notebooks in notebooks/: what a reader finds stored is what a run gives.

`make test` runs each notebook with nbval and compares; nbval passes on a notebook that stores nothing, so it must not.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import myst_nb
import nbformat
import pandas as pd
import pytest
import render  # conftest.py puts notebooks/ on the path
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import HTML
from IPython.utils.capture import capture_output
from reach import imports

from dpforest.study import glue
from dpforest.study.figures import KEY

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
PATHS = sorted(path for path in NOTEBOOKS.glob("*.ipynb") if len(path.suffixes) == 1)
RECORDS = NOTEBOOKS / "record"
MACHINE_PATH = re.compile(r"(?<![\w./:])/(?:home|root|work|tmp|Users|mnt|opt|var|srv)/\w|\b[A-Z]:\\\w|ipykernel_\d")


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    return nbformat.read(request.param, as_version=4)


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prints(source: str) -> bool:
    """Tell whether a cell surely prints: `print(...)` among its outermost statements."""
    called = [node.value for node in ast.parse(source).body if isinstance(node, ast.Expr)]
    return any(isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id == "print" for c in called)


def test_executed_in_order(notebook: nbformat.NotebookNode) -> None:
    counts = [cell.execution_count for cell in code(notebook)]
    assert counts == list(range(1, len(counts) + 1)), "run `make store`"


def test_outputs_are_stored(notebook: nbformat.NotebookNode) -> None:
    silent = [cell.source for cell in code(notebook) if prints(cell.source) and not cell.outputs]
    assert silent == []
    assert any(cell.outputs for cell in code(notebook))


def test_no_error_is_stored(notebook: nbformat.NotebookNode) -> None:
    assert [o.evalue for cell in code(notebook) for o in cell.outputs if o.output_type == "error"] == []


def test_nothing_escapes_the_comparison(notebook: nbformat.NotebookNode) -> None:
    """Only a cell that measures time may differ from run to run, and it says so."""
    for cell in code(notebook):
        words = set(render.tags(cell))
        assert "nbval-skip" not in words
        assert "nbval-ignore-output" not in words or "timing" in words
        assert not re.search(r"#\s*(NBVAL_SKIP|NBVAL_IGNORE_OUTPUT)", cell.source), "use tags, which are checked"


def test_no_result_is_silenced_by_a_semicolon(notebook: nbformat.NotebookNode) -> None:
    """nbval's kernel keeps no history, so IPython does not see the semicolon; write `_ = axes.legend()`."""
    assert [cell.source for cell in code(notebook) if cell.source.rstrip().endswith(";")] == []


def test_first_cell_asks_and_names_its_claims(notebook: nbformat.NotebookNode) -> None:
    first = notebook.cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert "Exhibits:" in first.source


ROLE = re.compile(r"\{[a-z][a-z:]*\}`[^`\n]+`|^:::|^```\{|^\([\w-]+\)=$", flags=re.M)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def test_text_reads_as_text_wherever_it_is_opened(notebook: nbformat.NotebookNode) -> None:
    """Roles, directives and targets are for Sphinx alone; an id in backticks becomes a link to its claim on a page."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert [text for text in texts if ROLE.search(text)] == []
    links = [link for text in texts for link in LINK.findall(text)]
    assert [link for link in links if not (NOTEBOOKS / link).exists() and not link.startswith("rendered/")] == []


def test_roles_and_links_are_seen() -> None:
    assert ROLE.search("by {prf:ref}`thm-a`")
    assert ROLE.search("(target)=\n## Heading")
    assert ROLE.search("text\n:::{note}")
    assert not ROLE.search("`thm-a`, $x_{i}$ and f`{x}`")
    assert LINK.findall("[a](../book/x.md#y), [b](https://x.y) and ![c](d.png)") == ["../book/x.md", "d.png"]


def test_it_runs_with_the_library_and_jupyter(notebook: nbformat.NotebookNode) -> None:
    """Whoever installs both has neither myst_nb (`from dpforest.study import glue`) nor what only an extra brings."""
    trees = [ast.parse(cell.source) for cell in code(notebook)]
    named = {one.module.split(".")[0] for tree in trees for one in imports(tree)}
    project = tomllib.loads((render.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brought = {re.split("[^a-z-]", each)[0].replace("scikit-learn", "sklearn") for each in project["dependencies"]}
    checked = {"dask"} if 'scale.installed("dask")' in "\n".join(cell.source for cell in code(notebook)) else set()
    here = {"dpforest", "benchmarks", "zoo", "IPython"}
    assert named <= sys.stdlib_module_names | brought | here | checked


def test_it_runs_in_a_checkout_that_is_not_installed(notebook: nbformat.NotebookNode) -> None:
    """With ``pip install -r requirements.txt`` alone, nothing knows the library as an installed package."""
    assert "importlib.metadata" not in "\n".join(cell.source for cell in notebook.cells)


GLUED = {"a number": 0.25, "text": "a < b", "HTML": HTML("<b>x</b>"), "a table": pd.DataFrame({"x": [1, 2]})}


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("kind", GLUED)
def test_what_is_glued_is_what_myst_nb_glues(kind: str, shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = InteractiveShell.instance()
    monkeypatch.setattr(shell.display_formatter, "active_types", shell.display_formatter.format_types)
    with capture_output() as ours:
        glue("key", GLUED[kind], display=shown)
    with capture_output() as theirs:
        myst_nb.glue("key", GLUED[kind], display=shown)
    (one,), (other,) = ours.outputs, theirs.outputs
    assert (one.data, one.metadata) == (other.data, other.metadata)
    assert one.metadata["scrapbook"]["name"] == "key"
    assert all(word.startswith("application/papermill.record/") is not shown for word in one.data)


def test_outside_of_a_notebook_nothing_is_glued() -> None:
    told = "import sys, dpforest.study; dpforest.study.glue('k', 1); print({'IPython', 'numpy'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("set()", "")


def test_parameters_are_literals(notebook: nbformat.NotebookNode) -> None:
    assert isinstance(render.literal_parameters(notebook, "notebook"), dict)


def test_data_sets_are_declared(notebook: nbformat.NotebookNode) -> None:
    """nbval's run is skipped where declared data is missing, and the full run shows the record."""
    declared = set(render.datasets_of(notebook, render.literal_parameters(notebook, "notebook")))
    needed = {word for cell in code(notebook) for word in re.findall(r"\bload\(\s*['\"]([\w-]+)['\"]", cell.source)}
    assert needed <= declared | {"breast-cancer", "diabetes", "digits"}


def test_figures_have_a_text_for_those_who_cannot_see_them(notebook: nbformat.NotebookNode) -> None:
    for cell in code(notebook):
        if any(kind.startswith("image/") for output in cell.outputs for kind in output.get("data", {})):
            assert cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip(), cell.source


def test_glued_numbers_can_be_formatted(notebook: nbformat.NotebookNode) -> None:
    """A chapter formats what a notebook glues from its text, and `np.float64(1.0)` is not a number's text."""
    kind = "application/papermill.record/text/plain"
    glued = [output.data[kind] for cell in code(notebook) for output in cell.outputs if kind in output.get("data", {})]
    assert [text for text in glued if text.startswith("np.")] == [], "glue float(value) or int(value)"


def test_no_machine_path(notebook: nbformat.NotebookNode) -> None:
    found = [cell.source for cell in notebook.cells if MACHINE_PATH.search(cell.source)]
    for cell in code(notebook):
        texts = [output.get("text", "") + str(output.get("data", {}).get("text/plain", "")) for output in cell.outputs]
        found += [text for text in texts if MACHINE_PATH.search(text)]
    assert found == []


def test_figures_have_their_data(notebook: nbformat.NotebookNode) -> None:
    """Images are not compared; the data beside them is."""
    bare = [
        cell.source
        for cell in code(notebook)
        for output in cell.outputs
        if any(kind.startswith("image/") for kind in output.get("data", {})) and KEY not in output.metadata
    ]
    assert bare == [], "show figures after `plots.use()` or by `plots.show`, and run `make store`"


def test_the_data_of_a_figure_is_small(notebook: nbformat.NotebookNode) -> None:
    outputs = [output for cell in code(notebook) for output in cell.outputs if KEY in output.get("metadata", {})]
    sizes = [len(output.metadata[KEY].encode()) for output in outputs]
    # most are below 2 kB, all others below 7; the report's has a bar and two marks for each of almost 300 rows
    assert [size for size in sizes if size > 50_000] == []


@cache
def jobs() -> dict[str, render.Job]:
    return {job.name: job for job in render.plan()}


@pytest.mark.parametrize("name", [path.stem for path in PATHS])
def test_rendering_of_record(name: str) -> None:
    """Each page has one, made from what the page reaches today; `make book` shows it on a machine without the data."""
    assert render.recorded(jobs()[name]), f"record/{name}.ipynb is missing or stale: run `make record`"


def test_nothing_else_is_recorded() -> None:
    assert {path.stem for path in RECORDS.glob("*.ipynb")} <= {path.stem for path in PATHS}


def test_records_are_small() -> None:
    """The repository keeps every version of them."""
    assert sum(path.stat().st_size for path in RECORDS.iterdir()) < 13_720_000


@pytest.mark.parametrize(
    ("source", "expected"),
    [("print(1)", True), ("x = 1\nprint(x)", True), ("def f():\n    print(1)", False), ("x = 1", False)],
)
def test_prints(source: str, expected: bool) -> None:
    assert prints(source) is expected
