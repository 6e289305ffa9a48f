"""What a cell of a table says: a number, a text, or nothing.

A cell is read alone.  The type of a column depends on all of its rows, on how they were written and on who reads them:
one missing value makes floats of integers, one text makes objects or texts of numbers.  So no rule here looks at it:

* A *number* is a bool (1 or 0), an integer or a float of any size, a ``Decimal`` or another rational or real of Python;
  it is the double nearest to it, infinite beyond the largest one.  So 1, 1.0 and True are one number, and 2**53 + 1 is
  2**53, as it is in a column of floats.
* A *text* is itself, character by character.  It writes a number if it is a decimal numeral in ASCII digits, such as
  ``-0.5``, ``1e3`` or ``" 7 "``, or one of ``inf``, ``Infinity``, ``nan`` and ``NaN``; ``1_0`` and ``٣`` write none.
* *Nothing* is None, NaN in any precision, and pandas' missing value.
* All else is refused: bytes, times (missing ones too), complex numbers, lists, arrays, masked constants.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import numpy as np

from dpforest.messages import shown
from dpforest.schema.groups import CodeLookup

__all__ = ["array_of", "number_of_text", "numbers", "places", "remedy", "said"]

_NUMERAL = re.compile(
    r"[ \t\r\n]*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf|Infinity)|nan|NaN)[ \t\r\n]*", re.ASCII
)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)
_NOTHING = {
    "?",
    "-",
    ".",
    "na",
    "n/a",
    "null",
    "none",
    "missing",
    "unknown",
}  # what people write where nothing is known
_TIMES = date, time, timedelta, np.datetime64, np.timedelta64  # NumPy says that a timedelta64 is an integer
_PLAIN = {str, float, type(None)}
_SIMPLE = {float, int, bool, type(None)}


def said(cell: Any, where: str) -> str | float | None:
    """What a cell says: a text, a number as a double, or None for nothing.

    Raises
    ------
    TypeError, ValueError
        Where it is none of these; the message begins with ``where``.
    """
    if cell is None or _is_pandas_na(cell):
        return None
    if isinstance(cell, str):
        return str.__str__(cell)  # NumPy has a text of its own
    if isinstance(cell, _TIMES):
        advice = "turn them into numbers or text first, such as the days since a public date"
        raise TypeError(f"{where} holds times, such as {shown(cell)}: {advice}")
    if isinstance(cell, (Real, Decimal, np.bool_)):
        return _double(cell)
    if isinstance(cell, Complex):
        raise ValueError(f"Complex data not supported: {where} holds complex numbers")
    raise TypeError(
        f"{where} holds {shown(cell)}, which is neither a number nor text: argument must be a string or a number"
    )


def _double(number: Any) -> float | None:
    if isinstance(number, Decimal) and number.is_nan():  # a signalling one would raise
        return None
    try:
        nearest = float(number)
    except OverflowError:
        nearest = np.inf if number > 0 else -np.inf
    return nearest if nearest == nearest else None


def number_of_text(text: str) -> float | None:
    """The number that a text writes, NaN for ``nan``; None where it writes none."""
    numeral = _NUMERAL.fullmatch(text)
    return float(numeral[1]) if numeral else None


def array_of(column: Any, where: str) -> np.ndarray:
    """A column that is neither categorical nor pandas' own text, as an array of bools, integers, floats or objects.

    Floats are in single or double precision, missing ones NaN; objects are cells that are still to be read.
    """
    dtype = getattr(column, "dtype", None)
    if dtype is not None and not isinstance(dtype, np.dtype):  # of pandas
        if dtype.kind in "biuf":
            return column.to_numpy(dtype=float, na_value=np.nan)
        column = np.asarray(column, dtype=object)
    array = np.asarray(column)
    kind = array.dtype.kind
    if kind == "f":
        return array if array.dtype in (np.float32, np.float64) else array.astype(float)
    if kind in "biuO":
        return array
    if kind in "UT":
        return array.astype(object)
    for cell in array[:1]:  # of such a type every cell is refused, missing or not
        said(cell, where)
    return array.astype(object)


def numbers(column: Any, where: str) -> np.ndarray:
    """The numbers of a column, float32 or float64, with NaN for nothing; a text must write a number.

    Raises
    ------
    TypeError, ValueError
        Where a cell says no number.
    """
    found = _by_parts(column, lambda part: _numbers(part, where).astype(float), np.nan)
    return _numbers(column, where) if found is None else found


def _numbers(column: Any, where: str) -> np.ndarray:
    array = array_of(column, where)
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind != "O":
        return array.astype(float)
    if {*map(type, array.tolist())} <= _SIMPLE:
        try:
            return array.astype(float)
        except OverflowError:  # an integer beyond the largest double
            pass
    return np.array([_number(cell, where) for cell in array.tolist()], dtype=float)


def _number(cell: Any, where: str) -> float:
    found = said(cell, where)
    if isinstance(found, str):
        number = number_of_text(found)
        if number is None:
            raise ValueError(f"{where} holds {shown(found)}, a text that writes no number{remedy(found)}")
        return number
    return np.nan if found is None else found


def remedy(text: str) -> str:
    """What makes a number of a text that writes none: a rule for one cell by itself."""
    text = text.strip()
    if not text or text.lower() in _NOTHING:
        return "; if it means that nothing is known, make it missing, None, and declare Schema(missing='bin')"
    bare = "".join(sign for sign in text if sign != "%" and unicodedata.category(sign) != "Sc").strip()
    if _THOUSANDS.fullmatch(bare):
        return "; a thousands separator? column.str.replace(',', '')"
    if bare.count(",") == 1 and number_of_text(bare.replace(",", ".")) is not None:
        return "; a decimal comma? column.str.replace(',', '.')"
    if bare != text and number_of_text(bare) is not None:
        return "; strip the sign of the unit, such as by column.str.strip('%$')"
    return ""


def places(column: Any, known: Mapping[str | float, int], where: str, *, numerals: bool = False) -> np.ndarray:
    """The place of each cell of a column among the known texts and numbers: int16, -1 if it has none, -2 if missing.

    With ``numerals``, a text that is not known is the number that it writes; where texts are known by their beginnings
    it is not.
    """
    numerals = numerals and not isinstance(known, CodeLookup)
    found = _by_parts(column, lambda part: _places(part, known, where, numerals), -2)
    return _places(column, known, where, numerals) if found is None else found


def _places(column: Any, known: Mapping[str | float, int], where: str, numerals: bool) -> np.ndarray:
    array = array_of(column, where)
    if array.dtype.kind != "O" and not isinstance(known, CodeLookup):
        return _places_of_numbers(array.astype(float), known)
    cells = array.tolist()
    if not {*map(type, cells)} <= _PLAIN:
        cells = [said(cell, where) for cell in cells]
    elif pandas := sys.modules.get("pandas"):  # it may compare them: these types compare as they should
        which, different = pandas.factorize(array)
        return np.append(_places_of_cells(different.tolist(), known, numerals), np.int16(-2)).take(which)
    return _places_of_cells(cells, known, numerals)


def _places_of_cells(cells: list, known: Mapping[str | float, int], numerals: bool) -> np.ndarray:
    found = np.array([known.get(cell, -1) for cell in cells], dtype=np.int16)
    for place in np.flatnonzero(found == -1).tolist():
        cell = cells[place]
        if numerals and isinstance(cell, str):
            cell = number_of_text(cell)
            if cell is None:
                continue
            found[place] = known.get(cell, -1)
        if cell is None or cell != cell:
            found[place] = -2
    return found


def _places_of_numbers(values: np.ndarray, known: Mapping[str | float, int]) -> np.ndarray:
    numbers = sorted(number for number in known if not isinstance(number, str))
    table = np.array([*(known[number] for number in numbers), -1], dtype=np.int16)
    at = np.searchsorted(numbers, values)
    there = np.append(numbers, np.nan)[at] == values
    return np.where(np.isnan(values), np.int16(-2), table[np.where(there, at, len(numbers))])


def _by_parts(column: Any, read: Callable[[Any], np.ndarray], nothing: float) -> np.ndarray | None:
    """What ``read`` says of a column's different cells, for each row; None where the column does not come in parts."""
    parts = _parts(column)
    if parts is None:
        return None
    which, found = parts
    try:
        table = read(found)
    except (TypeError, ValueError):  # perhaps of a category that no row has any more
        used = np.unique(which[which >= 0])
        part = read(found[used])
        table = np.zeros(len(found), dtype=part.dtype)
        table[used] = part
    return np.append(table, table.dtype.type(nothing)).take(which)  # nothing is part -1: the last entry


def _parts(column: Any) -> tuple[np.ndarray, Any] | None:
    """Which of its different cells each cell of a column is, -1 for nothing, and these; None where that is no gain."""
    pandas = sys.modules.get("pandas")
    dtype = getattr(column, "dtype", None)
    if pandas is None or dtype is None:
        return None
    if isinstance(dtype, pandas.CategoricalDtype):
        return np.asarray(column.cat.codes), dtype.categories
    if isinstance(dtype, pandas.StringDtype):
        which, found = column.factorize()
        return which, np.asarray(found, dtype=object)
    return None


def _is_pandas_na(cell: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and cell is pandas.NA
