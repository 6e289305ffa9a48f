"""Putting records aside, each by a coin of its own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from dpforest.learners import persons
from dpforest.learners.base import source_of_bits
from dpforest.learners.parameters import check_number
from dpforest.privacy import PERSON, ROW, SECURE, claim, sides
from dpforest.schema import frames

__all__ = ["Sides", "hold_out"]

_SIDES = 1 << 20  # of the coin


class Sides(np.ndarray):
    """Which rows were put aside: an array of bool that knows by whose coins, and where these came from.

    Attributes
    ----------
    coins : object or None
        The coins by which rows were put aside: where they came from, whose they are and of how many rows; None where
        that is not known.
    """

    coins: sides.Coins | None = None

    def __new__(cls, aside: np.ndarray, coins: sides.Coins) -> Self:
        found = np.asarray(aside, dtype=bool).view(cls)
        found.coins = coins
        return found

    def __array_finalize__(self, other: Any) -> None:
        self.coins = getattr(other, "coins", None)

    def __reduce__(self) -> tuple:
        return Sides, (np.asarray(self), self.coins)

    def split(self, *tables: Any) -> tuple:
        """For each table its rows that are kept and those that are put aside, which carry the coins.

        Parameters
        ----------
        *tables : frames, arrays or lists, with as many rows
            Rows, labels, persons.  A side of a list is a list, which carries nothing.

        Returns
        -------
        tuple
            ``kept, aside`` of the first, then of the second, and so on.
        """
        found = []
        for table in tables:
            if len(table) != len(self):
                raise ValueError(f"{len(self)} rows were divided, and this table has {len(table)}")
            coins = [] if self.coins is None else [*sides.carried(table, len(table)), self.coins]
            for side in (_rows(table, ~self), _rows(table, self)):
                sides.carry(side, coins)
                found.append(side)
        return tuple(found)


def _rows(table: Any, which: np.ndarray) -> Any:
    """The rows of a table that are marked."""
    which = np.asarray(which)
    if isinstance(table, (list, tuple)):
        return [row for row, taken in zip(table, which, strict=True) if taken]
    if hasattr(table, "attrs") or not hasattr(table, "filter"):
        return table[which]
    return table.filter(which.tolist())  # polars, Arrow


@claim("thm-hold-out")
def hold_out(
    X: Any, share: float = 0.3, *, person: Any = None, source: str = SECURE, random_state: Any = None
) -> Sides:
    """Hold-out: which rows are put aside for tests, each by a coin of its own.

    Parameters
    ----------
    X : frame or array-like, shape (n_rows, n_features)
        A table in memory, of which only the number of rows is looked at, and the persons.
    share : float
        The probability with which a row is put aside, above 0 and below 1; a step of it is 2**-20.
    person : str, array-like of shape (n_rows,), or None
        Whose row it is, as for ``fit``: all rows of a person go to the same side.
    source : {"secure", "seeded"}
        Seeded coins are for research: an observer who knows them knows which side a row is on, so nothing is promised,
        and what is fitted or tested on such a side says that it is seeded.
    random_state : int, Generator, RandomState or None
        Seed of the seeded source.  A person's coin is then a hash of the seed and the person's name, so that no
        other person moves when one is added; without ``person`` it belongs to the place of the row.

    Returns
    -------
    Sides, shape (n_rows,)
        An array of bool, True where a row is put aside: fit on ``X[~aside]``, test on ``X[aside]``.  Do not release it.
        A side carries its coins, see Notes.

    Guarantee
    ---------
    What is fitted on the one side with loss ``a`` and what is computed on the other with loss ``b`` have together at
    most the loss ``max(a, b)``, and the larger delta, under the relation under which both hold, for the unit that had
    the coins: rows, or persons with ``person`` (:prf:ref:`thm-hold-out`).  A :class:`~dpforest.privacy.Budget` of this
    unit adds them up, which is never too little.  *For the other unit* under replace-one nothing is promised, and fits
    and tests refuse; under add-remove a row keeps ``max(a, b)`` where persons had the coins, and a person is promised
    the sum where rows had them.  A side without rows is refused by ``fit`` and ``evaluate``, which the theorem leaves
    out, as it does all errors.

    Notes
    -----
    A frame of pandas is marked in its ``attrs``, which its parts inherit; of any other table take the sides that
    :meth:`Sides.split` returns, for what is indexed by hand carries nothing, nor does a file.

    A shuffled split with a seed, as ``train_test_split`` makes it, is a function of the number of rows: with one row
    more, another half of the table is on the other side.  Under add-remove no theorem covers that.
    """
    check_number(share, "share", 1 / _SIDES, 1 - 1 / _SIDES, "above 0 and below 1")
    if source == SECURE and random_state is not None:
        raise ValueError(
            "the coins of a hold-out are secure and take no seed: leave random_state=None, or, for research, write "
            "source='seeded'"
        )
    chance = source_of_bits(source, random_state)
    table = frames.columns_of(X)
    n_rows = table.shape[0]
    people = persons.People(np.arange(n_rows), np.arange(n_rows, dtype=np.uint64))  # each row by itself
    if person is not None:
        if isinstance(person, str):
            (person,) = table.pick([person])
        people = persons.identify(person)
        if len(people) != n_rows:
            raise ValueError(f"X has {n_rows} rows, person has {len(people)}: inconsistent numbers of samples")
    aside = (chance.coins(_SIDES, people.names) < round(share * _SIDES))[people.places]
    coins = sides.Coins(source, ROW if person is None else PERSON, n_rows)
    if hasattr(X, "attrs"):
        sides.carry(X, [*sides.carried(X, n_rows), coins])  # of this division, and not of one before
    return Sides(aside, coins)
