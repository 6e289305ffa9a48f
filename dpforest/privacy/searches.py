"""Fits inside a scikit-learn search or cross-validation: many models of one table, which nobody may have counted."""

from __future__ import annotations

import sys
import weakref
from typing import Any

__all__ = ["first_time", "noted", "searcher"]

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
