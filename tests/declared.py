"""Reads of data are declared where they happen: by a notebook's metadata or by a guard, and held to it.

``render.datasets_of`` says what a notebook declares.  Here its cells are held to that while they run, and the programs
of the repository are scanned for reads that would fail where a data set cannot be had.
``python -m tests.declared`` prints the files that do something else where data are there: `.ci/run` runs these twice.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "notebooks"))
import render  # noqa: E402

from dpforest import datasets  # noqa: E402
from tests.patience import PATIENCE  # noqa: E402

SHIPPED = {name for name, entry in datasets._CATALOGUE.items() if not entry.files}
available = cache(render.available)  # asks the network where a set is not on this machine
_FOLDER = pytest.StashKey[Path]()


# -- notebooks, while they run ---------------------------------------------------------------------------------------


@cache
def data_of(notebook: Path) -> tuple[str, ...]:
    """The data sets that a notebook declares, at the size at which it is stored."""
    nb = nbformat.v4.reads(notebook.read_text(encoding="utf-8"))
    return render.datasets_of(nb, render.literal_parameters(nb, notebook.stem))


def _noted(item: pytest.Item) -> Path:
    if _FOLDER not in item.config.stash:
        folder = item.config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="dpforest-reads-"))
        item.config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    return item.config.stash[_FOLDER] / item.path.stem


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Have the kernel that is about to start note which data sets it reads, and wait for it."""
    os.environ.pop("DPFOREST_READS", None)
    if item.path.suffix == ".ipynb":
        os.environ["DPFOREST_READS"] = str(_noted(item))
        item.config.option.nbval_kernel_startup_timeout = item.output_timeout = PATIENCE
        item.config.option.nbval_cell_timeout = -1  # as long as it takes


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield
    if item.path.suffix == ".ipynb" and (problem := render.undeclared(_noted(item), data_of(item.path))):
        pytest.fail(f"{item.path.name}: {problem}")


# -- programs, as they are written -----------------------------------------------------------------------------------


def loads(source: str) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
    """The calls of ``datasets.load`` in a program, each with what it stands in, from the outside to the inside."""
    if "datasets" not in source or "load" not in source:
        return
    tree = ast.parse(source)
    called = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "dpforest.datasets"
        for alias in node.names
        if alias.name == "load"
    }

    def loading(function: ast.expr) -> bool:
        if isinstance(function, ast.Attribute):
            return function.attr == "load" and ast.unparse(function.value).split(".")[-1] == "datasets"
        return isinstance(function, ast.Name) and function.id in called

    def walk(node: ast.AST, around: list[ast.AST]) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
        if isinstance(node, ast.Call) and loading(node.func):
            yield node, around
        for child in ast.iter_child_nodes(node):
            yield from walk(child, [*around, node])

    yield from walk(tree, [])


def names_of(call: ast.Call, around: list[ast.AST]) -> set[str] | None:
    """The names that a call is given: a literal, or those that the loop around it goes through; None if not literal."""
    argument = call.args[0] if call.args else ast.Constant(None)
    if isinstance(argument, ast.Name):
        for node in reversed(around):
            loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
            for loop in loops:
                if isinstance(loop.target, ast.Name) and loop.target.id == argument.id:
                    argument = loop.iter
                    break
    try:
        value = ast.literal_eval(argument)
    except ValueError:
        return None
    return {value} if isinstance(value, str) else set(value)


def guarded(around: list[ast.AST]) -> bool:
    """Whether the program asks first, or says what happens where the data set cannot be had."""
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    asks = function is not None and "available(" in ast.unparse(function)
    caught = "DatasetUnavailableError"
    return asks or any(
        (isinstance(node, ast.Try) and any(caught in ast.unparse(handler.type or node) for handler in node.handlers))
        or (isinstance(node, ast.With) and "pytest.raises" in ast.unparse(node.items[0]))
        for node in around
    )


def unguarded(source: str) -> list[str]:
    """The reads in a program that fail, without a word of what to do, where a data set cannot be had."""
    found = []
    for call, around in loads(source):
        names = names_of(call, around)
        if (names is None or (names - SHIPPED) & set(datasets.names())) and not guarded(around):
            found.append(f"line {call.lineno}: {ast.unparse(call)}")
    return found


def in_text(text: str) -> set[str]:
    """The data sets that examples in a text or in docstrings load."""
    return set(re.findall(r"datasets\.load\(\\?[\"']([\w-]+)", text))


def reading() -> list[str]:
    """The files of tests and the notebooks that do something else where data are there."""

    def reads(path: Path) -> bool:
        source = path.read_text(encoding="utf-8")
        asked = [names_of(*load) for load in loads(source)]
        return "\nimport render" in source or any(names is None or names - SHIPPED for names in asked)

    tests = [path for path in sorted((ROOT / "tests").glob("test_*.py")) if reads(path)]
    notebooks = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if set(data_of(path)) - SHIPPED]
    return [str(path.relative_to(ROOT)) for path in (*tests, *notebooks)]


if __name__ == "__main__":
    print(*reading())
