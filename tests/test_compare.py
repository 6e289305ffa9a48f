"""Two runs of a notebook compared: numbers as numbers, text as text, figures by their data; also in nbval's runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import compare  # conftest.py puts notebooks/ on the path
import nbformat
import pytest

from dpforest.study import figures

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("1.7182818284590453", "1.718281828459045"),
        ("loss 0.9062407571724346 of 1", "loss 0.906240757172434 of 1"),
        ("x = -1.5e-30;", "x = -1.5000000000001e-30;"),
        ("[1.  0.5]", "[0.9999999999999999  0.5]"),
        ("0.0", "-0.0"),
        ("0.0", "1.1102230246251565e-16"),
        ("-2.220446049250313e-16", "5.551115123125783e-17"),
        ("1e+16", "10000000000000000"),
        ("\u22120.25", "-0.25"),
        ("a  1.0\n---  ----\n", "a  1.0000000000000002\n---  -------------------\n"),
        ("<Figure size 640x480 with 1 Axes>", "<Figure size 641x480 with 1 Axes>"),
        ("at 0x7f0123456789", "at 0x7fabcdef0123"),
    ],
)
def test_same(expected: str, found: str) -> None:
    assert compare.difference(expected, found) == ""
    assert compare.difference(found, expected) == ""


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("1.0", "1.0000001"),
        ("1.0", "1.00000001"),
        ("a 1", "b 1"),
        ("12", "13"),
        ("10000000000", "10000000001"),
        ("10000000000.", "10000000001."),
        ("1e-300", "2e-300"),
        ("1e-300", "0.0"),
        ("1e-17", "0.0"),
        ("2.3e-13", "0.0"),
        ("1.1e-16", "3.4e-16"),
        ("1.75e-19", "1.76e-19"),
        ("1e999", "1e998"),
        ("nan", "1.0"),
        ("nan", "inf"),
        ("inf", "-inf"),
        ("inf", "1e308"),
        ("1.0", "-1.0"),
        ("1 2", "1"),
        ("1", "1 2"),
        ("1", ""),
        ("1 2", "12"),
        ("sha256 5b00264637db", "sha256 5b00264637dc"),
        ("x1 = 2", "x2 = 2"),
        ("numpy 2.4.6", "numpy 2.4.7"),
        ("0.5 %", "0.5"),
        ("1 - 2", "1 -2"),
        ("True", "False"),
    ],
)
def test_different(expected: str, found: str) -> None:
    assert compare.difference(expected, found)
    assert compare.difference(found, expected)


def test_a_difference_is_named() -> None:
    assert compare.difference("loss 1.0, 2.5 and 3", "loss 1.0, 2.6 and 3") == "2.5 is now 2.6, after 'loss 1.0, '"


def display(**data: str) -> dict:
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {kind.replace("_", "/"): v for kind, v in data.items()},
    }


def stream(text: str, name: str = "stdout") -> dict:
    return {"output_type": "stream", "name": name, "text": text}


def test_outputs() -> None:
    old = [stream("a 0.1\n"), display(text_plain="figure", image_png="AAAA"), stream("b\n")]
    new = [stream("a 0.10000000000000002\nb\n"), display(text_plain="figure", image_png="BBBB")]
    assert compare.differences(old, new) == []
    assert compare.differences(old, new[:1]) == ["text/plain: 1 outputs are now 0", "image/png: 1 outputs are now 0"]
    assert compare.differences([stream("a")], [stream("a", "stderr")]) == [
        "stdout: 1 outputs are now 0",
        "stderr: 0 outputs are now 1",
    ]
    assert compare.differences([display(text_html="<b>1</b>")], [display(text_html="<i>1</i>")])
    assert compare.differences([], []) == []


def test_figures_are_compared_by_their_data() -> None:
    assert compare.FIGURE == figures.KEY
    old, new, other, bare = (
        display(image_png="A") | {"metadata": metadata}
        for metadata in ({figures.KEY: "0.1"}, {figures.KEY: "0.10000000000000002"}, {figures.KEY: "0.2"}, {})
    )
    assert compare.differences([old], [new]) == []
    assert compare.differences([old], [other]) == ["dpforest.figure: 0.1 is now 0.2, after ''"]
    assert compare.differences([old], [bare]) == ["dpforest.figure: 1 outputs are now 0"]


def test_json_is_compared_as_text_with_numbers() -> None:
    old, new, other = (
        {"output_type": "display_data", "data": {"application/json": v}}
        for v in ({"a": 0.1, "b": [1]}, {"b": [1], "a": 0.10000000000000002}, {"a": 0.1, "b": [2]})
    )
    assert compare.differences([old], [new]) == []
    assert compare.differences([old], [other])


def test_cells_that_measure_time_are_left_out() -> None:
    def notebook(text: str, *tags: str) -> nbformat.NotebookNode:
        cell = nbformat.v4.new_code_cell("print(1)", outputs=[nbformat.v4.new_output("stream", text=text)])
        cell.metadata.tags = list(tags)
        return nbformat.v4.new_notebook(cells=[cell])

    assert list(compare.notebook_differences(notebook("1"), notebook("2"))) == ["cell 0: stdout: 1 is now 2, after ''"]
    timed = [notebook(text, "timing", "nbval-ignore-output") for text in "12"]
    assert list(compare.notebook_differences(*timed)) == []
    shorter = nbformat.v4.new_notebook(cells=[])
    assert list(compare.notebook_differences(notebook("1"), shorter)) == ["cell 0 is another"]


FORKS = hasattr(os, "fork")
#: What a cell prints, what is stored of it, and whether that is the same.
STORED = [
    ("print(0.1, 'a')", "0.1 a\n", True),
    ("print(0.1, 'a')", "0.10000000000000002 a\n", True),
    ("print(0.1, 'a')", "0.2 a\n", False),
    ("print(0.1, 'a')", "0.1 b\n", False),
    # a kernel that is forked has imported this, and shows no progress among its outputs
    ("import sys, tqdm; print('dpforest.audit' in sys.modules, tqdm.tqdm(()).disable)", f"{FORKS} {FORKS}\n", True),
]


def test_nbval_compares_so(tmp_path: Path) -> None:
    """In workers of its own, as ``make test`` has them."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, (code, stored, _) in enumerate(STORED):
        cell = nbformat.v4.new_code_cell(code, execution_count=1)
        cell.outputs = [nbformat.v4.new_output("stream", text=stored)]
        place = tmp_path / f"{number}.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel}), place)
    command = [sys.executable, "-m", "pytest", "-n", "1", "--nbval", "-p", "no:cacheprovider", "-p", "conftest"]
    report = tmp_path / "report.xml"  # what the terminal shows depends on its width, and on whether this is CI
    given = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [*command, f"--rootdir={tmp_path}", f"--junitxml={report}", *sorted(tmp_path.glob("*.ipynb"))],
        cwd=tmp_path,
        env=given | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    said = {
        int(case.get("classname")[0]): [failure.text for failure in case if failure.tag in ("failure", "error")]
        for case in ElementTree.parse(report).iter("testcase")
    }
    assert {number: not failures for number, failures in said.items()} == {
        number: passes for number, (*_, passes) in enumerate(STORED)
    }, done.stdout
    assert all("Cell outputs differ" in text for failures in said.values() for text in failures), done.stdout
