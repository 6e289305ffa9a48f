"""What a message shows of a value: little of it, on one line, and of what may be data its type and shape alone.

An error is printed, logged and mailed, so it is a release, too.  Whatever an error shows of an argument or of a cell
goes through :func:`shown`, and whatever it says of texts that came from a file through :func:`plain`;
``tests/test_messages.py`` reads the syntax trees for what does not.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from datetime import date, time, timedelta
from numbers import Number
from typing import Any

__all__ = ["LONGEST", "check_names", "listed", "plain", "shown"]

LONGEST = 80  # characters of one value
_FEW = 8  # names of a list
_MOST = 10**1000  # from where on Python does not write a number out
_SINGLE = str, bytes, Number, date, time, timedelta

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = LONGEST


def plain(text: Any) -> str:
    """A text on one line: what cannot be printed is escaped, so that no name can reformat the text around it."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(text))


def shown(value: Any) -> str:
    """A value as a message shows it: at most 80 characters of a text, a number, a name; of all else type and shape.

    Examples
    --------
    >>> print(shown("sex"), shown(0.5), shown((90, 17)), shown(["a", "b"]), shown("x" * 1000)[:8])
    'sex' 0.5 (90, 17) a list of 2 'xxxxxxx
    """
    if type(value).__module__ == "numpy" and isinstance(value, (str, Number)):
        value = value.item()  # type: ignore[union-attr]
    kind, shape = type(value).__name__, _ask_the_value(lambda: value.shape, ())
    if value is None or value is ... or _is_single(value):
        return plain(
            _shortened(_short.repr(value) if not isinstance(value, int) or abs(value) < _MOST else f"{kind}(...)")
        )
    # bounds, or names that are allowed
    if type(value) is tuple and len(value) <= _FEW and all(map(_is_single, value)):
        return plain(_shortened(f"({', '.join(map(shown, value))}{',' * (len(value) == 1)})"))
    size = f" of shape {shape}" if shape else _ask_the_value(lambda: f" of {len(value)}", "")
    return plain(_shortened(f"{'an' if kind[0] in 'aeioAEIO' or kind == 'ndarray' else 'a'} {kind}{size}"))


def listed(values: Iterable[Any]) -> str:
    """The first few of several public values, such as the names that are allowed, and how many more there are."""
    values = list(values)
    more = f", and {len(values) - _FEW} more" if len(values) > _FEW else ""
    return f"[{', '.join(map(shown, values[:_FEW]))}{more}]"


def _is_single(value: Any) -> bool:
    """Whether this is one text, number or time, and not many; of NumPy, which is not imported for a message, too."""
    single = isinstance(value, _SINGLE) or type(value).__module__ == "numpy"
    return single and _ask_the_value(lambda: value.shape, ()) == () and not isinstance(value, type)


def _ask_the_value(ask: Callable[[], Any], otherwise: Any) -> Any:
    """The answer of a value, or ``otherwise`` if asking raises: a message about it must not fail."""
    try:
        return ask()
    except Exception:
        return otherwise


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def check_names(wanted: Iterable[str], there: Iterable[str], where: str, error: type[ValueError] = ValueError) -> None:
    """Raise unless all columns are there, each once; others may be there too."""
    wanted, there = [*dict.fromkeys(wanted)], list(there)
    absent = [name for name in wanted if name not in there]
    if absent:
        raise error(f"{where} has no column {', '.join(map(shown, absent))}; it has {listed(there)}")
    twice = [name for name in wanted if there.count(name) > 1]
    if twice:
        raise error(f"{where} has more than one column {', '.join(map(shown, twice))}")
