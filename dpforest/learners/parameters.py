"""The rules of parameters."""

from __future__ import annotations

import math
import reprlib
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["CAP", "MARGIN", "MOST", "check_choice", "check_count", "check_letter", "check_number", "check_share"]

MOST = (1 << 31) - 1  # of anything that is counted


# for check_number: what may be asked for as the head start of *stop*, and as a cap on the number of records
MARGIN = -1e6, 1e6, "a finite number of at most a million"


CAP = 2, math.inf, "a public cap of at least 2 records"


def check_count(value, name: str, least: int = 1, most: int = MOST) -> int:
    """A whole number from ``least`` to ``most``, else an error that names the parameter."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        upper = "" if most == MOST and not isinstance(value, Integral) else f" and at most {most}"
        raise ValueError(f"{name} must be a whole number, at least {least}{upper}, not {_shown(value)}")
    return int(value)


def check_number(value, name: str, least: float, most: float, wanted: str = "") -> float:
    """A number from ``least`` to ``most``, else an error that names the parameter and says what is ``wanted``."""
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # beyond the largest double
        number = math.nan
    if not least <= number <= most:
        raise ValueError(f"{name} must be {wanted or f'a number from {least:g} to {most:g}'}, not {_shown(value)}")
    return number


def check_share(value, name: str) -> float:
    """A number strictly between 0 and 1, else an error that names the parameter."""
    if not 0 < check_number(value, name, 0, 1) < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, not {value!r}")
    return float(value)


def check_choice(value, name: str, choices) -> None:
    """``value`` must be one of ``choices``, else an error that lists them."""
    if not isinstance(value, (str, bool, np.bool_)) or value not in tuple(choices):
        raise ValueError(f"{name} must be one of {sorted(map(str, choices))}, not {_shown(value)}")


def _shown(value) -> str:
    return reprlib.repr(value) if isinstance(value, Integral) and abs(int(value)) > MOST else repr(value)


def check_letter(asked: dict[str, Any], source: str = "paper") -> None:
    """As published: ``asked``, the parameters that differ from what the source says, must be empty."""
    if asked:
        raise ValueError(f"variant='published' is the {source} to the letter, so not with {asked}: use 'proved'")
