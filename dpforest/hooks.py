"""Hooks: what a released model, and a look at a table, borrow from rooms above, where they are installed.

A model needs NumPy alone.  Compiled kernels add up its leaves faster, to the same bits, engines open tables that do not
lie in memory, and a card says what it is.  All of them stand above; the package itself lends them when it is imported,
and each is loaded when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["borrow", "lend"]

_LENT: dict[str, Callable[[], Any]] = {}


def lend(**functions: Callable[[], Any]) -> None:
    """Say how each of these functions is loaded."""
    _LENT.update(functions)


def borrow(name: str) -> Any:
    """The function that was lent under this name.

    Raises
    ------
    ImportError
        What it needs is not installed.
    """
    return _LENT[name]()
