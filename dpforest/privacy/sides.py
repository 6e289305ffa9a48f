"""Sides of a table whose rows were put aside by coins: whose coins these were, and where they came from.

Which rows a fit sees is part of what it did, so a side carries its coins: a pandas frame in ``attrs``, which its parts
inherit, and any other table by a note that lives as long as the table.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

from dpforest.privacy.vocabulary import REPLACE_ONE

__all__ = ["Coins", "carried", "carry", "check_units"]

_NAME = "dpforest.coins"
_NOTES: dict[int, tuple[weakref.ref, tuple[Coins, ...]]] = {}


class Coins(NamedTuple):
    """The coins by which a table was divided.

    Attributes
    ----------
    source : {"seeded", "secure"}
    unit : {"row", "person"}
        Who had a coin of one's own.
    n_rows : int
        Of the table that was divided; a table with as many is no side of it.
    """

    source: str
    unit: str
    n_rows: int


def carry(table: Any, coins: Iterable[Coins]) -> None:
    """Note on a table that it was, or its parts will be, chosen by these coins, and by no others."""
    noted = tuple(dict.fromkeys(coins))  # each once
    if hasattr(table, "attrs"):
        table.attrs[_NAME] = [list(each) for each in noted]  # lists, so that the frame can still be written
    elif noted:
        number = id(table)
        with contextlib.suppress(TypeError):  # of a list there are no weak references
            _NOTES[number] = weakref.ref(table, lambda _: _NOTES.pop(number, None)), noted


def carried(table: Any, n_rows: int) -> tuple[Coins, ...]:
    """The coins by which the rows of this table, of so many rows, were chosen."""
    return tuple(coins for coins in _noted(table) if coins.n_rows != n_rows)


def _noted(table: Any) -> tuple[Coins, ...]:
    if hasattr(table, "attrs"):
        return tuple(Coins(*each) for each in table.attrs.get(_NAME, ()))
    reference, coins = _NOTES.get(id(table), (None, ()))
    return coins if reference is not None and reference() is table else ()


def check_units(coins: Iterable[Coins], unit: str, relation: str) -> None:
    """Refuse a side under replace-one whose coins are not of the unit that is promised to.

    Raises
    ------
    ValueError
        The number of rows, or of persons, on a side is no public number then (:prf:ref:`thm-hold-out`).
    """
    for each in coins:
        if relation == REPLACE_ONE and each.unit != unit:
            raise ValueError(
                f"these rows were put aside by a coin of each {each.unit}, and under replace-one epsilon is asked for "
                f"a {unit}: who is replaced may change sides there, so that no epsilon holds. Fit with "
                "relation='add-remove', or put rows aside "
                + ("without person=" if unit == "row" else "with person= as here")
            )
