"""Fits inside of scikit-learn: many models of one table, perhaps outside of any account, and tables without names."""

from __future__ import annotations

import multiprocessing
import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from dpforest.messages import listed

__all__ = ["choosers", "elsewhere", "first_time", "fitted_before", "names_lost", "noted", "readers", "searcher"]

#: Where scikit-learn fits a learner several times, and what there reads labels itself, in addition to the learner.
_SEARCHES = tuple(
    f"sklearn.{room}"
    for room in ("calibration", "ensemble", "feature_selection", "model_selection", "multiclass", "multioutput")
)
_READERS = ("Calibrated", "Stacking", "TunedThreshold", "RFECV", "SequentialFeatureSelector")
#: Packages whose steps of a pipeline say by a tag of scikit-learn's whether they learn from rows.
_STEPS = ("sklearn.", "imblearn.")
#: What was noted of each search that is still there.
_NOTED: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def _searchers() -> Iterator[Any]:
    """What fits or is cross-validated in the calls that are under way, from the innermost on.

    It is looked for there, for scikit-learn tells an estimator nothing of it.
    """
    frame = sys._getframe(1) if any(room in sys.modules for room in _SEARCHES) else None
    while frame is not None:
        known = str(frame.f_globals.get("__name__")).startswith(_SEARCHES)
        if known or frame.f_code.co_name == "fit":  # searches of other packages have the name, and a method like it
            inside = frame.f_locals
            found = inside.get("self", inside.get("ensemble", inside.get("estimator")))
            if found is not None and (known or "Search" in type(found).__name__):
                yield found
        frame = frame.f_back


def searcher() -> Any:
    """The search, or the estimator that is cross-validated, from inside of which this is called; else None."""
    return next(reversed(list(_searchers())), None)


def readers() -> dict[str, Any]:
    """What fits from labels itself, from inside of which this is called, by the name of its class."""
    return {name: each for each in _searchers() if (name := type(each).__name__).startswith(_READERS)}


def choosers() -> dict[str, Any]:
    """What compares fits by scores of their rows, from inside of which this is called, by the name of its class."""
    return {name: each for each in _searchers() if "Search" in (name := type(each).__name__)}


def fitted_before() -> list[str]:
    """The classes of what learned from rows in the pipelines from inside of which this is called, each once, by name.

    Steps of packages that do not say what they learn are left out: a step of one's own may look at one row at a time.
    """
    frame, found = sys._getframe(1) if "sklearn.pipeline" in sys.modules else None, {}
    while frame is not None:
        around = frame.f_locals.get("self") if frame.f_code.co_name.startswith("fit") else None
        if isinstance(around, sys.modules["sklearn.pipeline"].Pipeline):
            found.update(dict.fromkeys(name for _, step in around.steps[:-1] for name in _learned_from_rows(step)))
        frame = frame.f_back
    return [*found]


def _learned_from_rows(step: Any) -> Iterator[str]:
    """The classes in a step of a pipeline, those within it too, that are fitted to rows."""
    parts = next(
        (found for name in ("steps", "transformers", "transformer_list") if (found := _listed(step, name))), []
    )
    for _, part, *_ in parts:
        yield from _learned_from_rows(part)
    if parts:
        yield from _learned_from_rows(getattr(step, "remainder", None))
    elif type(step).__module__.startswith(_STEPS) and _needs_rows(step):
        yield type(step).__name__


def _listed(step: Any, name: str) -> list[Any]:
    found = getattr(step, name, None)
    return found if isinstance(found, list) else []


def _needs_rows(step: Any) -> bool:
    """Whether what this step does depends on the rows that it was fitted to, and not on its parameters alone."""
    if type(step).__name__ == "FrozenEstimator":  # fitted before, to what may be public
        return False
    if isinstance(getattr(step, "categories", None), list):  # declared; unless it counts how many rows have them
        return any(getattr(step, name, None) is not None for name in ("min_frequency", "max_categories"))
    if getattr(step, "strategy", None) == "constant":
        return bool(getattr(step, "add_indicator", False))
    tags = getattr(step, "__sklearn_tags__", None)
    return tags is None or bool(tags().requires_fit)


def elsewhere() -> bool:
    """Whether this is a worker process, whose fits another process has asked for and does not see."""
    return multiprocessing.parent_process() is not None


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
    known = "an order that is not known" if order is None else f"the order {listed(order)}"
    return (
        f"{type(around).__name__} was given a frame and hands over an array, without names and in {known}: the columns "
        f"are taken in the order of the schema, {listed(columns)}. Declare Schema(columns=[...]) in the order "
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
