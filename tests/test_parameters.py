"""Parameters that are said once: what ``"auto"`` stands for, in the table and in the learner."""

from __future__ import annotations

import inspect
import textwrap
from typing import Annotated, Literal

import pytest

from dpforest.learners.base import PrivateEstimator, PrivateForestClassifier
from dpforest.learners.parameters import Auto


class Learner(PrivateEstimator):
    """A learner.

    Attributes
    ----------
    none
    """

    same: Annotated[Literal["auto", "a"], Auto(published="a", proved="a"), "One."] = "auto"
    other: Annotated[Literal["auto", "a", "b"], Auto(published="a", proved="b"), "Two."] = "auto"
    none: Annotated[Literal["auto", "b"], Auto(proved="b"), "Three."] = "auto"


@pytest.mark.parametrize(
    ("name", "published", "says"),
    [
        ("same", "a", '``"a"``.'),
        ("other", "a", '``"a"`` as published, ``"b"`` if proved.'),
        ("none", None, '``"b"`` if proved.'),
    ],
)
def test_what_auto_stands_for(name, published, says):
    assert Learner.PARAMETERS[name].table.endswith(f"Auto is {says}")
    assert Learner.PARAMETERS[name].table in inspect.getdoc(Learner)
    assert Learner(variant="published").option(name) == published
    assert Learner().option(name) == ("a" if name == "same" else "b")
    assert Learner(variant="published", **{name: "b"}).option(name) == "b"


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_docstring_has_parameters_and_attributes_however_it_is_indented(indent):
    """Python takes the indentation of docstrings away from 3.13 on."""
    doc = "A tree.\n\n" + textwrap.indent("Guarantee\n---------\nNone.\n", indent)
    tree = type("Tree", (PrivateForestClassifier,), {"__doc__": doc})
    said = inspect.getdoc(tree)
    assert [part for part in said.splitlines() if part in ("Parameters", "Attributes", "Guarantee")] == [
        "Parameters",
        "Attributes",
        "Guarantee",
    ]
    assert all(parameter.table in said for parameter in tree.PARAMETERS.values())
    assert "forest_ : Forest" in said
    assert "schema_, n_bins_, classes_" in said
