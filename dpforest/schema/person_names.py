"""Names of persons, in a column of a table: which rows are of one person."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from dpforest.messages import shown
from dpforest.schema import cells, frames

__all__ = ["tell_apart"]

_WHERE = "the column of persons"
_AS_TEXT = "turn the column into text first"


def tell_apart(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Who is who in a column of persons: rows are of one person if and only if they have the same value.

    A whole number is itself, whether it comes as an integer, as a float such as 7.0, or as True, which is 1.  Another
    float is itself, and so is a text: ``"7"`` is not 7, nor is ``"7.0"``.  Persons are not identified by a hash, for
    two persons with the same hash could displace each other's rows.  NumPy's own texts lose zero characters at their
    end before this function can see them, so that there may be fewer persons than were written down.

    Returns
    -------
    names : ndarray, shape (n_people,)
    places : ndarray of int64, shape (n_rows,)
        The place of each row's person among the names.

    Raises
    ------
    ValueError
        A missing value; a float of 2^53 or more (in single precision 2^24), for it may stand for several integers.
    TypeError
        A value that is neither a number nor text, such as a time.
    """
    column = frames.one_column(values, _WHERE)
    if not isinstance(column, np.ndarray):  # a Series of pandas
        column = column.to_numpy(dtype=None if isinstance(column.dtype, np.dtype) else object)
    if column.dtype.kind in "iubf":
        unclear = ~(np.abs(column) < _largest(column.dtype)) if column.dtype.kind == "f" else np.zeros(0, dtype=int)
        for cell in column[unclear][:1]:
            _person(cell)  # raises: it is missing, or too large
        distinct, places = np.unique(column, return_inverse=True)
        return distinct, places.astype(np.int64)
    if column.dtype.kind in "mM":  # as objects, those of nanoseconds would be whole numbers
        raise TypeError(f"a person's name must be a whole number or text, not {column.dtype}: {_AS_TEXT}")
    found: dict[int | float | str, int] = {}
    places = np.array([found.setdefault(_person(cell), len(found)) for cell in column.astype(object)], dtype=np.int64)
    return np.array([_writable(name) for name in found], dtype=object), places


def _writable(name: int | float | str) -> int | float | str:
    """A name, in UTF-8 where it is text: half a surrogate pair as its escape."""
    return name.encode("utf-8", "backslashreplace").decode() if isinstance(name, str) else name


def _largest(kind: Any) -> int:
    """From where on a float of this type may stand for several integers."""
    return 1 << min(np.finfo(kind).nmant + 1, 53)


def _person(cell: Any) -> int | float | str:
    if isinstance(cell, (Integral, np.bool_)) and not isinstance(cell, np.timedelta64):
        return int(cell)
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, (float, np.floating)) and cell == cell:
        most = _largest(type(cell))
        if not abs(float(cell)) < most:
            raise ValueError(f"{_WHERE} holds floats of {most} or more, which may stand for several: pass text")
        return float(cell)
    if cells.said(cell, _WHERE) is None:
        raise ValueError(
            f"{_WHERE} has missing values, and whose row that is cannot be known: leave these rows out, or, if each is "
            "of a person of its own, give each a name that no other has"
        )
    raise TypeError(f"a person's name must be a whole number or text, not {shown(cell)}: {_AS_TEXT}")
