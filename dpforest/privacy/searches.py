"""Fits inside of scikit-learn: many models of one table, which nobody may have counted, and tables without names."""

from __future__ import annotations

import reprlib
import sys
import weakref
from collections.abc import Sequence
from typing import Any

__all__ = ["first_time", "names_lost", "noted", "searcher"]

_SEARCHES = "sklearn.model_selection"
#: What was noted of each search that is still there.
_NOTED: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def searcher() -> Any:
    """The search, or the estimator that is cross-validated, from inside of which this is called; None outside of any.

    It is looked for in the calls that are under way, for scikit-learn tells an estimator nothing of it.
    """
    found, frame = None, sys._getframe(1) if _SEARCHES in sys.modules else None
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_SEARCHES):
            inside = frame.f_locals
            found = inside.get("self", inside.get("estimator", found))  # the outermost one
        frame = frame.f_back
    return found


def noted(search: Any) -> dict[str, Any]:
    """What was noted of a search, to be changed in place."""
    try:
        return _NOTED.setdefault(search, {})
    except TypeError:  # no weak reference, or no hash: it is noted nowhere
        return {}


def first_time(what: str) -> bool:
    """Whether this is not said yet in the search that is under way; True outside of any."""
    search = searcher()
    if search is None:
        return True
    said = noted(search).setdefault("said", set())
    before = len(said)
    said.add(what)
    return len(said) > before


def names_lost(columns: Sequence[str]) -> str:
    """A sentence for a fit on an array inside of an estimator of scikit-learn that knows the columns by their names.

    Empty outside of any, where that estimator was given an array itself, and where it hands over these columns in this
    order; and it is said once.

    Parameters
    ----------
    columns : sequence of str
        Of the schema, in its order.
    """
    around, frame = None, sys._getframe(1) if "sklearn" in sys.modules else None
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("sklearn."):
            inside = frame.f_locals
            for one in (inside.get("self"), inside.get("ensemble")):  # the latter in the threads of an ensemble
                if type(one).__module__.startswith("sklearn.") and hasattr(one, "feature_names_in_"):
                    around = one
        frame = frame.f_back
    if around is None or "names lost" in (said := noted(around)):
        return ""
    order = _handed_over(around)
    if order == [*columns]:
        return ""
    said["names lost"] = True
    known = "an order that is not known" if order is None else f"the order {reprlib.repr(order)}"
    return (
        f"{type(around).__name__} was given a frame and hands over an array, without names and in {known}: the columns "
        f"are taken in the order of the schema, {reprlib.repr([*columns])}. Declare Schema(columns=[...]) in the order "
        "of the array, or keep the names: of a "
        "ColumnTransformer by verbose_feature_names_out=False and set_output(transform='pandas')"
    )


def _handed_over(around: Any) -> list[str] | None:
    """The names of the columns that an estimator of scikit-learn hands over; None where it does not say."""
    if not hasattr(around, "steps"):
        return [*map(str, around.feature_names_in_)]
    try:
        found = around[:-1].get_feature_names_out()
    except (AttributeError, TypeError, ValueError):  # a step has no names for what comes out of it
        return None
    return [str(name).split("__", 1)[-1] for name in found]  # "scaled__age" is age, of the step "scaled"
