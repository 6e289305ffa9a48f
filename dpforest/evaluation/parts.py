"""Putting records aside, each by a coin of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest.learners import persons
from dpforest.learners.base import source_of_bits
from dpforest.learners.parameters import check_number
from dpforest.privacy import SEEDED, claim
from dpforest.schema import frames

__all__ = ["hold_out"]

_SIDES = 1 << 20  # of the coin


@claim("thm-hold-out")
def hold_out(
    X: Any, share: float = 0.3, *, person: Any = None, source: str = SEEDED, random_state: Any = None
) -> np.ndarray:  # fmt: skip
    """Hold-out: which rows are put aside for tests, each by a coin of its own.

    Parameters
    ----------
    X : frame or array-like, shape (n_rows, n_features)
        A table in memory, of which only the number of rows is looked at, and the persons.
    share : float
        The probability with which a row is put aside, above 0 and below 1; a step of it is 2**-20.
    person : str, array-like of shape (n_rows,), or None
        Whose row it is, as for ``fit``: all rows of a person go to the same side.
    source : {"seeded", "secure"}
    random_state : int, Generator, RandomState or None
        Seed of the seeded source.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        True where a row is put aside: fit on ``X[~aside]``, test on ``X[aside]``.  Do not release it.

    Guarantee
    ---------
    What is fitted on the one side with loss ``a`` and what is computed on the other with loss ``b`` have together at
    most the loss ``max(a, b)``, under both relations (:prf:ref:`thm-hold-out`).  A
    :class:`~dpforest.privacy.Budget` adds them up, which is never too little.

    Notes
    -----
    A shuffled split with a seed, as ``train_test_split`` makes it, is a function of the number of rows: one more, and
    another half of the table stands on the other side.  Under add-remove no theorem covers that.
    """
    check_number(share, "share", 1 / _SIDES, 1 - 1 / _SIDES, "above 0 and below 1")
    chance = source_of_bits(source, random_state)
    table = frames.columns_of(X)
    whose = np.arange(table.shape[0])
    if person is not None:
        if isinstance(person, str):
            (person,) = table.pick([person])
        ids = persons.identify(person)
        if len(ids) != len(whose):
            raise ValueError(f"X has {len(whose)} rows, person has {len(ids)}: inconsistent numbers of samples")
        whose = np.unique(ids, return_inverse=True)[1].ravel()
    coins = chance.integers(_SIDES, int(whose.max(initial=-1)) + 1)
    return (coins < round(share * _SIDES))[whose]
