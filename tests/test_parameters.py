"""Parameters that are said once: what ``"auto"`` stands for, in the table and in the learner."""

from __future__ import annotations

import inspect
from typing import Annotated, Literal

import pytest

from dpforest.learners.base import PrivateEstimator
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
