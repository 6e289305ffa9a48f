"""Persons with several rows: who is one person, and which of a person's rows are learned from."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from dpforest.chance import keyed
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, Ledger, check_epsilon, claim, epsilon_of, rho_of
from dpforest.schema import cells, frames

__all__ = ["check_asked", "identify", "of_a_row", "own_rows", "together"]

_WHERE = "the column of persons"
_PRIME, _BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)  # of the hash FNV-1a


def check_asked(person: Any, max_rows: Any, relation: str) -> int | None:
    """The most rows of a person, None where the unit is one row; an error if no theorem covers what is asked."""
    if person is None:
        if max_rows is not None:
            raise TypeError("max_rows is of a person's rows: name the column that says whose they are, person='id'")
        return None
    if max_rows is None:
        raise TypeError(
            "person= needs max_rows=, how many rows of a person are learned from at most: a public number, not one "
            "that was read off the table"
        )
    most = check_count(max_rows, "max_rows", most=10**6)
    if relation != ADD_REMOVE and most > 1:
        raise ValueError(
            "under replace-one the number of rows is public, and a person of several rows changes it: fit with "
            "relation='add-remove', whose epsilon is at most 2 epsilon for a person who is replaced, or with max_rows=1"
        )
    return most


@claim("thm-persons", "lem-concentrated-group")
def of_a_row(epsilon: float, delta: float, max_rows: int) -> float:
    """The epsilon for one row, at the same delta, with which a person of so many rows is promised ``epsilon``.

    Parameters
    ----------
    epsilon : float
        For a person; infinite for no noise.
    delta : float
        For a person; 0 or as :func:`~dpforest.privacy.check_delta` says.
    max_rows : int
        At least 1.

    Returns
    -------
    float
        ``epsilon / max_rows`` without a delta; with one, the epsilon of a rho that is that of the person over
        ``max_rows`` squared.

    Guarantee
    ---------
    So many steps of add-remove lead from the rows without a person to those with: :prf:ref:`thm-persons`.
    """
    if max_rows == 1 or np.isinf(epsilon):
        return epsilon
    each = epsilon_of(rho_of(epsilon, delta) / max_rows**2, delta) if delta else epsilon / max_rows
    try:
        return check_epsilon(each)
    except ValueError:
        raise ValueError(f"epsilon={shown(epsilon)} leaves {each:g} for each of max_rows={max_rows} rows") from None


@claim("thm-persons", "lem-concentrated-group")
def together(ledger: Ledger, max_rows: int) -> float:
    """What a run spent on a person of whose rows so many were learned from, under the ledger's relation.

    The epsilon of the ledger's delta, where it has one: the rhos of one row times ``max_rows`` squared.
    """
    if max_rows == 1 or not ledger.delta or ledger.leaks:
        return max_rows * ledger.epsilon
    return epsilon_of(max_rows**2 * ledger.paid(ledger.relation), ledger.delta)


def identify(values: Any) -> np.ndarray:
    """A number from 0 for each value of a column of persons, int64: the same for two rows if and only if the value is.

    A whole number is itself, whether it comes as an integer, as a float such as 7.0, or as True, which is 1.  Another
    float is itself, and so is a text: ``"7"`` is not 7, nor is ``"7.0"``.  Nothing is hashed, for two persons with one
    number could crowd out each other's rows.

    Raises
    ------
    ValueError
        A missing value; a float of 2^53 or more (in single precision 2^24), for it may stand for several integers.
    TypeError
        A value that is neither a number nor text.
    """
    column = frames.one_column(values, _WHERE)
    if isinstance(column, pd.Series):
        column = column.to_numpy(dtype=None if isinstance(column.dtype, np.dtype) else object)
    if column.dtype.kind in "iubf":
        unclear = ~(np.abs(column) < _largest(column.dtype)) if column.dtype.kind == "f" else np.zeros(0, dtype=int)
        for cell in column[unclear][:1]:
            _person(cell)  # raises: it is missing, or too large
        return np.unique(column, return_inverse=True)[1].astype(np.int64)
    found: dict[int | float | str, int] = {}
    return np.array([found.setdefault(_person(cell), len(found)) for cell in column.astype(object)], dtype=np.int64)


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
            f"{_WHERE} has missing values, and whose row that is nobody can say: leave these rows out, or, if each is "
            "of a person of its own, give each a name that no other has"
        )
    raise TypeError(
        f"a person's name must be a whole number or text, not {shown(cell)}: turn the column into text first"
    )


@claim("lem-own-rows")
def own_rows(
    codes: np.ndarray, labels: np.ndarray, persons: np.ndarray, max_rows: int, ids: np.ndarray | None = None
) -> np.ndarray:
    """The places of the rows that are kept: at most so many of each person, by a rule that looks at these rows alone.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows)
    labels : ndarray of uint8, shape (n_rows,)
    persons : ndarray of int64, shape (n_rows,)
        Whose row it is, from 0.
    max_rows : int
    ids : ndarray of uint64, shape (n_rows,), or None
        The rows' own keys, which are part of what they say.

    Returns
    -------
    ndarray of int64, in increasing order

    Guarantee
    ---------
    What is kept of a person is a function of the multiset of that person's rows, and has at most ``max_rows`` of them:
    :prf:ref:`lem-own-rows`.

    Notes
    -----
    A public hash of a row's codes, label and key puts a person's rows in order, so that no label or value comes first;
    rows with one hash follow each other by what they say, so that only rows that are the same are tied.
    """
    crowded = np.flatnonzero(np.bincount(persons)[persons] > max_rows)
    if not crowded.size:
        return np.arange(len(labels))
    content = [*codes[:, crowded], labels[crowded], *([] if ids is None else [ids[crowded]])]
    mixed = np.full(len(crowded), _BASIS)
    for part in content:
        mixed = (mixed ^ part.astype(np.uint64)) * _PRIME  # modulo 2^64
    order = np.lexsort((*content, keyed.siphash((0, 0), mixed), persons[crowded]))  # the last one comes first
    whose = persons[crowded][order]
    place = np.arange(len(whose)) - np.searchsorted(whose, whose)  # among the rows of the same person
    kept = np.ones(len(labels), dtype=bool)
    kept[crowded[order[place >= max_rows]]] = False
    return np.flatnonzero(kept)
