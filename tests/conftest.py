"""What every test run shares: where data lies, which notebooks cannot run without it, how outputs are compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbval.plugin import IPyNbCell

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "notebooks"))
import compare
import render

# Notebook kernels inherit these, start in another folder, and show figures only with their own back end.
os.environ.pop("MPLBACKEND", None)
if folder := os.environ.get("DPFOREST_DATA"):
    os.environ["DPFOREST_DATA"] = str(Path(folder).resolve())


@cache
def missing_data(notebook: Path) -> str:
    """Name the data sets that a notebook needs and that cannot be had here ('' where there is none)."""
    nb = nbformat.read(notebook, as_version=4)
    named = render.datasets_of(nb, render.literal_parameters(nb, notebook.stem))
    return ", ".join(name for name in named if not render.available(name))


def compared_as_numbers(cell: IPyNbCell) -> Callable[[list, list], bool]:
    """Return what nbval asks whether a cell's outputs are those stored; its own comparison is byte for byte."""

    def same(found: list, stored: list) -> bool:
        cell.comparison_traceback = compare.differences(stored, found)
        return not cell.comparison_traceback

    return same


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, IPyNbCell):
            item.compare_outputs = compared_as_numbers(item)
        if item.path.suffix == ".ipynb" and (names := missing_data(item.path)):
            item.add_marker(pytest.mark.skip(reason=f"the data cannot be had here: {names}"))
