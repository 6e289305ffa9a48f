"""Values outside the schema: a warning for each column, with what to do, or one for many of them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping

from dpforest.messages import listed, plain, shown
from dpforest.privacy import OutOfSchemaWarning
from dpforest.privacy.searches import first_time
from dpforest.schema import Schema

__all__ = ["outside", "warn_of_strays"]

_SECRET = "this count is exact, do not release it"
_APART = 3  # columns that have a warning each
_SHOWN = 8  # columns that are named in one warning
_MOST, _ENOUGH = 0.9, 20  # share of the rows, and rows, from which on it is asked what went wrong


def warn_of_strays(
    schema: Schema, strays: Mapping[str, int], n_rows: int, target: str = "", *, fit: bool, named: bool = True
) -> None:
    """Warn of the values outside the schema, where the table was given to the library; in a search, once for all fits.

    Parameters
    ----------
    schema : Schema
    strays : mapping of str to int
        How many values of a column were clipped or sent to ``other``.
    n_rows : int
    target : str
        What the target is called, if numbers are predicted.
    fit : bool
        Whether the model learns from these rows; else they are a query, which is not secret.
    named : bool
        Whether the columns were found by their names; else by their order.
    """
    new = {name: n for name, n in strays.items() if first_time(f"strays of {name}, {'fitted' if fit else 'predicted'}")}
    after = _SECRET if fit else "the model does not tell them apart"
    asked = (
        ""
        if n_rows < _ENOUGH
        else "; of nearly all rows: "
        + ("is its unit the declared one?" if named else f"are the columns in this order, {listed(schema.columns)}?")
    )
    if len(new) > _APART:
        worst = sorted(new, key=lambda name: -new[name])
        said = ", ".join(f"{name}: {new[name]}" for name in worst[:_SHOWN])
        more = f", and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
        warnings.warn(
            f"{len(new)} columns have values outside the schema, which were clipped or sent to other=. By how many of "
            f"{n_rows} rows, the worst first: {said}{more}; if documentation has them, declare them in the schema"
            f"{asked if new[worst[0]] > _MOST * n_rows else ''}; {after}",
            OutOfSchemaWarning,
            stacklevel=outside(),
        )
        return
    for name, count in new.items():
        if name in schema.other:
            text = f"are not among the declared categories and were sent to other={shown(schema.other[name])}"
            remedy = "if documentation has them, declare them in Schema(categorical=...)"
        else:
            bounds = schema.target if name == target else schema.numeric.get(name)
            text = f"lay outside the declared {bounds} and were clipped"
            remedy = (
                f"if documentation allows more, declare it in Schema({'target' if name == target else 'numeric'}=...)"
            )
        question = asked if count > _MOST * n_rows else ""
        warnings.warn(
            f"{plain(name)}: {count} of {n_rows} rows {text}; {remedy}{question}; {after}",
            OutOfSchemaWarning,
            stacklevel=outside(),
        )


def outside() -> int:
    """How many calls above is the first caller that is not of this library, as ``stacklevel`` counts."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "dpforest":
        level, frame = level + 1, frame.f_back
    return level
