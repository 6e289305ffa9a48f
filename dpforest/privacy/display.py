"""How results look in a notebook: one quiet box, readable on light and dark pages, all text escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from html import escape

__all__ = ["bar", "box", "number", "up"]

_DIGITS = Context(prec=6, rounding=ROUND_CEILING)

#: No colour of text or page is set, so that both are the notebook's own, light or dark.
_BOX = (
    "display:inline-block;max-width:46em;padding:.5em .8em;border:1px solid #8888;border-radius:.4em;"
    "font-family:sans-serif;font-size:.9em;line-height:1.4"
)
_TABLE = "border-collapse:collapse;background:none;color:inherit;font-size:inherit"


def up(loss: float, times: int = 1) -> str:
    """A loss, so many times, in six digits that are never too small; it counts as the decimal that it is written as."""
    if math.isinf(loss):
        return "inf"
    return f"{float(_DIGITS.plus(Decimal(repr(float(loss))) * times)):.6g}"


def number(value: float) -> str:
    """A number as it is written, whole ones without a point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def box(title: str, rows: Iterable[tuple[str, str]], more: str = "", note: str = "") -> str:
    """A titled table of names and values; ``more`` is HTML, for instance a :func:`bar`; ``note`` is in bold below.

    Parameters
    ----------
    title, note : str
    rows : iterable of (str, str)
    more : str
        HTML that is put in as it is: never text of a user.
    """
    lines = "".join(
        f'<tr><th scope="row" style="text-align:left;font-weight:normal;opacity:.75;padding:0 1em 0 0">{escape(name)}'
        f'</th><td style="text-align:left;white-space:pre-wrap">{escape(value)}</td></tr>'
        for name, value in rows
    )
    said = f'<div style="margin-top:.3em"><strong>{escape(note)}</strong></div>' if note else ""
    table = f'<table style="{_TABLE}"><tbody>{lines}</tbody></table>' if lines else ""
    return f'<div style="{_BOX}"><strong>{escape(title)}</strong>{table}{more}{said}</div>'


def bar(parts: Iterable[tuple[str, float]], total: float) -> str:
    """A bar of the shares of a total, each with its name as a title; what is left stays empty."""
    pieces = "".join(
        f'<span title="{escape(name)}: {share:.6g}" style="display:inline-block;box-sizing:border-box;height:100%;'
        f'width:{100 * max(0.0, min(1.0, share / total)):.4g}%;background:#4c78a8;border-right:1px solid #fff8"></span>'
        for name, share in parts
        if share > 0
    )
    return (
        '<div role="img" aria-label="how much of epsilon was spent" style="height:.7em;margin:.3em 0;background:#8883;'
        f'border-radius:.2em;overflow:hidden;font-size:1em;white-space:nowrap;line-height:0">{pieces}</div>'
    )
