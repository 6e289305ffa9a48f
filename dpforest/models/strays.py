"""Values outside the schema: one warning for each column, with what to do."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping

from dpforest.messages import plain, shown
from dpforest.privacy import OutOfSchemaWarning
from dpforest.privacy.searches import first_time
from dpforest.schema import Schema

__all__ = ["warn_of_strays"]

_SECRET = "this count is exact, do not release it"


def warn_of_strays(schema: Schema, strays: Mapping[str, int], n_rows: int, target: str = "", *, fit: bool) -> None:
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
        Whether the model learns from these rows; else they are a query, and nobody's secret.
    """
    for name, count in strays.items():
        if not first_time(f"strays of {name}, {'fitted' if fit else 'predicted'}"):
            continue
        if name in schema.other:
            text = f"are not among the declared categories and were sent to other={shown(schema.other[name])}"
            remedy = "if documentation has them, declare them in Schema(categorical=...)"
        else:
            bounds = schema.target if name == target else schema.numeric.get(name)
            text = f"lay outside the declared {bounds} and were clipped"
            remedy = (
                f"if documentation allows more, declare it in Schema({'target' if name == target else 'numeric'}=...)"
            )
        after = _SECRET if fit else "the model does not tell them apart"
        warnings.warn(
            f"{plain(name)}: {count} of {n_rows} rows {text}; {remedy}; {after}",
            OutOfSchemaWarning,
            stacklevel=_outside(),
        )


def _outside() -> int:
    """How many calls above the caller stands who is not of this library, as ``stacklevel`` counts."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "dpforest":
        level, frame = level + 1, frame.f_back
    return level
