"""House rules of the notebooks in notebooks/: what a reader finds stored is what a run gives.

`make test` runs each notebook with nbval and compares; nbval passes on a notebook that stores nothing, so it must not.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
import render  # conftest.py puts notebooks/ on the path

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
PATHS = sorted(path for path in NOTEBOOKS.glob("*.ipynb") if len(path.suffixes) == 1)
RECORDS = sorted((NOTEBOOKS / "record").glob("*.ipynb"))
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


def test_records_are_of_the_present_notebooks() -> None:
    """A record made from other code, text or parameters would be shown with a warning; make it again instead."""
    stale = []
    for path in RECORDS:
        (job,) = render.plan([path.stem])
        record = nbformat.read(path, as_version=4).metadata.dpforest
        if record.source_key != job.source_key or record.origin != "run":
            stale.append(path.name)
    assert stale == [], "run `make book record` with the data at hand"


@pytest.mark.parametrize(
    ("source", "expected"),
    [("print(1)", True), ("x = 1\nprint(x)", True), ("def f():\n    print(1)", False), ("x = 1", False)],
)
def test_prints(source: str, expected: bool) -> None:
    assert prints(source) is expected
