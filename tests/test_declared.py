"""Every read of data is declared where it happens, and the end of a run says what was not run."""

from __future__ import annotations

import ast

import nbformat
import pytest
import render  # conftest.py puts notebooks/ on the path
import yaml

from dpforest import datasets
from tests import declared, not_run

pytest_plugins = ["pytester"]
ROOT = declared.ROOT
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if len(path.suffixes) == 1}
FULL = yaml.safe_load((ROOT / "notebooks" / "full.yaml").read_text(encoding="utf-8"))
FOLDERS = ("dpforest", "tests", "benchmarks", "book", "notebooks")
PROGRAMS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
#: Texts with programs that readers run, docstrings among them, and what `make paper` lays out.
TEXTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "book").rglob("*.md"),
    *(ROOT / "dpforest").rglob("*.py"),
    *(ROOT / "tools" / "paper_templates").iterdir(),
]


# -- notebooks -------------------------------------------------------------------------------------------------------


def wrongly_declared(nb: nbformat.NotebookNode, full: dict) -> list[str]:
    """Where a notebook's metadata are not what its cells and its parameters say, at either size."""
    said, own = nb.metadata.get("dpforest", {}), render.literal_parameters(nb, "a")
    code = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")
    named = set().union(*(declared.names_of(*load) or () for load in declared.loads(code)))
    found = [f"{name} is read and not declared" for name in sorted(named - set(said.get("datasets", [])))]
    found += [f"{name} is declared and not read" for name in sorted(set(said.get("datasets", [])) - named)]
    telling = {"datasets", *said.get("data_parameters", [])}
    for word, value in own.items():
        values = (
            [name for one in (value, full.get(word)) for name in ([one] if isinstance(one, str) else one or [])]
            if isinstance(value, str | list)
            else []
        )
        names = {name for name in values if isinstance(name, str)} & set(datasets.names())
        if names and word not in telling:
            found.append(f"the parameter {word} names data sets")
        if word in telling and not names:
            found.append(f"the parameter {word} names no data set")
    return found


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_declares_what_it_reads(name: str) -> None:
    nb = nbformat.v4.reads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    assert wrongly_declared(nb, FULL.get(name) or {}) == []


def test_the_notebook_that_make_paper_lays_out_declares_what_it_reads() -> None:
    nb = nbformat.v4.reads((ROOT / "tools" / "paper_templates" / "notebook.ipynb").read_text(encoding="utf-8"))
    assert wrongly_declared(nb, {}) == []


@pytest.mark.parametrize("name", sorted(set(NOTEBOOKS) & {path.stem for path in (ROOT / "notebooks/record").glob("*")}))
def test_what_a_record_read_was_declared(name: str) -> None:
    nb = nbformat.v4.reads((ROOT / "notebooks" / "record" / f"{name}.ipynb").read_text(encoding="utf-8"))
    provenance = nb.metadata.dpforest.provenance
    assert set(provenance.data) <= set(render.datasets_of(nb, provenance.parameters))


@pytest.mark.parametrize(
    ("metadata", "parameters", "code", "found"),
    [
        (
            {},
            "tuned = ['german-credit']",
            "from dpforest.datasets import load\nload(tuned[0])",
            "parameter tuned names",
        ),
        ({}, "n = 1", "from dpforest import datasets\ndatasets.load('adult')", "adult is read and not declared"),
        (
            {},
            "n = 1",
            "from dpforest.datasets import load as get\n[get(x) for x in ('adult',)]",
            "adult is read and not",
        ),
        ({"datasets": ["adult"]}, "n = 1", "import dpforest", "adult is declared and not read"),
        ({"data_parameters": ["n"]}, "n = 'iris'", "import dpforest", "parameter n names no data set"),
    ],
)
def test_planted_reads_are_found(metadata: dict, parameters: str, code: str, found: str) -> None:
    first = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    nb = nbformat.v4.new_notebook(metadata={"dpforest": metadata}, cells=[first, nbformat.v4.new_code_cell(code)])
    (problem,) = wrongly_declared(nb, {})
    assert found in problem


@pytest.mark.slow
def test_a_cell_that_reads_undeclared_data_fails(pytester: pytest.Pytester) -> None:
    """Also where the data are inside scikit-learn; the cells before it pass, those after it fail with it."""
    pytester.makeconftest(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.declared import pytest_runtest_call, pytest_runtest_setup\n"
    )
    read = "import os\nwith open(os.environ['DPFOREST_READS'], 'a') as reads:\n    print('diabetes', file=reads)"
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in ("x = 1", read, "x = 2")])
    for cell in nb.cells:
        cell.execution_count = 1
    nbformat.write(nb, pytester.path / "a.ipynb")
    done = pytester.runpytest_subprocess("--nbval", "--nbval-current-env", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["*a.ipynb: it reads the data set 'diabetes', which its metadata do not name*"])


# -- programs and texts ----------------------------------------------------------------------------------------------


def test_every_program_says_what_happens_without_data() -> None:
    found = {str(path.relative_to(ROOT)): declared.unguarded(path.read_text(encoding="utf-8")) for path in PROGRAMS}
    found.pop("tests/test_datasets.py")  # whose set `small` is planted, and whose `load` asks first: seen below
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_tests_of_data_sets_read_what_is_there() -> None:
    source = (ROOT / "tests" / "test_datasets.py").read_text(encoding="utf-8")
    assert declared.unguarded(source) == []


def test_examples_read_what_needs_no_file() -> None:
    named = set().union(*(declared.in_text(path.read_text(encoding="utf-8")) for path in TEXTS))
    assert "breast-cancer" in named
    assert named <= declared.SHIPPED


@pytest.mark.parametrize(
    ("source", "bad"),
    [
        ("from dpforest import datasets\ndatasets.load('adult')", True),
        ("from dpforest import datasets\ndatasets.load('digits')", False),
        ("from dpforest.datasets import load as get\ndef f(name):\n    return get(name)", True),
        ("import dpforest\nfor name in ('digits', 'nursery'):\n    dpforest.datasets.load(name)", True),
        ("from dpforest import datasets\nfor name in ('digits',):\n    datasets.load(name)", False),
        (
            "from dpforest import datasets as d\ndef f(n):\n    if d.available(n):\n        return datasets.load(n)",
            False,
        ),
        (
            "from dpforest.datasets import load\ntry:\n    load('adult')\nexcept DatasetUnavailableError:\n    pass",
            False,
        ),
        ("from dpforest.datasets import load\ntry:\n    load('adult')\nexcept ValueError:\n    pass", True),
        ("from dpforest import load\nload('model.json')", False),
    ],
)
def test_planted_programs(source: str, bad: bool) -> None:
    assert bool(declared.unguarded(source)) is bad


def test_a_planted_example_is_found() -> None:
    assert declared.in_text('>>> datasets.load("adult")\n"datasets.load(\\"nursery\\")"') == {"adult", "nursery"}


# -- the line at the end of a run ------------------------------------------------------------------------------------


def test_what_was_not_run_is_one_line() -> None:
    wants = [not_run.data("adult"), not_run.data("adult"), not_run.data("nursery"), not_run.COQ, "so it is"]
    reasons = [f"Skipped: {one}" for one in wants]
    reasons.append("Skipped: could not import 'pyarrow.parquet': No module named 'pyarrow'")
    assert not_run.line(reasons) == (
        "not run here: 3 for want of the data sets adult, nursery (set DPFOREST_DATA to a folder that holds it, or "
        f"connect to the network); 1 for want of Coq ({not_run.coq.INSTALL}); "
        "1 for want of pyarrow (pip install pyarrow); 1 for reasons of their own (-rs shows them)"
    )
    assert not_run.line([]) == ""


@pytest.mark.slow
@pytest.mark.parametrize("options", [["-q"], ["-n", "1"]], ids=["quiet", "side by side"])
def test_the_line_ends_a_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    pytester.makeconftest(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.not_run import pytest_sessionstart, pytest_terminal_summary\n"
    )
    pytester.makepyfile(
        test_one="import pytest\nfrom tests import not_run\n"
        "@pytest.mark.skip(reason=not_run.data('adult'))\ndef test_one(): pass\n"
        "def test_two(): pytest.skip(not_run.BROWSER)\n",
        test_two="import pytest\nfrom tests import not_run\npytest.skip(not_run.SPARK, allow_module_level=True)\n",
    )
    run = pytester.runpytest_subprocess if "-n" in options else pytester.runpytest_inprocess
    done = run(*options)
    done.stdout.fnmatch_lines(
        ["not run here: *1 for want of the data set adult (set DPFOREST_DATA *; 1 for want of a browser (apt-get *"]
    )
    done.stdout.fnmatch_lines(["not run here: *1 for want of Spark (make spark)*"])
    monkeypatch.setenv("DPFOREST_DATA", str(pytester.path / "elsewhere"))
    done = run(*options)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*DPFOREST_DATA names *elsewhere', which is not a folder: correct it, or unset it"])


def test_every_skip_says_what_it_needs() -> None:
    """Reasons are made by `not_run`, so that one want has one reason, and the last line names what mends it."""
    calls = ("pytest.skip", "pytest.mark.skip", "pytest.mark.skipif")
    odd = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if ".skip" in source else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in calls:
                given = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
                given += node.args[:1] if ast.unparse(node.func) == "pytest.skip" else []
                odd += [f"{path.name}: {ast.unparse(one)}" for one in given if "not_run." not in ast.unparse(one)]
    assert odd == []


def test_files_that_read_data_are_run_in_both_legs() -> None:
    found = declared.reading()
    assert {"tests/test_datasets.py", "tests/test_render.py", "notebooks/diffgen.ipynb"} <= set(found)
    assert not {"notebooks/edprf.ipynb", "tests/test_experiments.py"} & set(found)
