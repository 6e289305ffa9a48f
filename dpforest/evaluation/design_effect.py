"""The design effect: how much less the rows of one person tell of a model than as many rows of different persons.

Survey statistics calls it so (Kish 1965): with rows of a person that are alike, the variance of a mean is that of
independent rows times ``1 + (k - 1) rho``, for k rows of each person whose correlation is rho.
"""

from __future__ import annotations

import numpy as np

from dpforest.learners.persons import People
from dpforest.privacy import claim

__all__ = ["SHARE", "alike_cells", "design_effect", "n_alike_cells"]

SHARE = 0.1  # of the budget: the interval's width is then known well, and the noise of the measures a ninth larger
_LEVELS = 4  # of the share of a person's other rows that are alike


def n_alike_cells(max_rows: int) -> int:
    """How many cells there are for rows of persons of whom so many rows are counted at most."""
    return 1 + (int(_bucket(max_rows)) + 1) * (_LEVELS + 1)


def alike_cells(groups: np.ndarray, people: People, max_rows: int) -> np.ndarray:
    """The cell of how alike a row is to the other rows of its person.

    Parameters
    ----------
    groups : ndarray of int64, shape (n_rows,)
        Rows of one group are alike.
    people : People
    max_rows : int
        At least 2.

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        0 for the only row of a person; else it says how many rows of the person are counted, to a power of two, and
        which share of the person's other rows is of the same group, to a quarter.  A function of the rows of that
        person, in any order.
    """
    n_own = np.bincount(people.places)[people.places]
    place = people.places * (int(groups.max(initial=0)) + 1) + groups
    _, alike, n_alike = np.unique(place, return_inverse=True, return_counts=True)
    same, others = n_alike[alike] - 1, np.maximum(n_own - 1, 1)
    level = (2 * _LEVELS * same + others) // (2 * others)
    cells = 1 + _bucket(np.minimum(n_own, max_rows)) * (_LEVELS + 1) + level
    return np.where(n_own == 1, 0, cells)


@claim("thm-private-test")
def design_effect(alike: np.ndarray, shares: np.ndarray, n_rows: float, max_rows: int) -> float:
    """By how much the variance of a measure is larger than that of rows of different persons.

    Parameters
    ----------
    alike : ndarray of float64, shape (n_alike_cells,)
        Noisy numbers of rows in the cells of :func:`alike_cells`.
    shares : ndarray of float64, shape (n_groups,)
        Of each group among the rows, about; from noisy counts.
    n_rows : float
        About; from noisy counts.
    max_rows : int

    Returns
    -------
    float
        From 1, of independent rows, to ``max_rows``, of rows that are all alike.

    Notes
    -----
    Of two independent rows the chance to be of one group is the sum of the squares of the shares; what is above it, on
    the scale up to 1, is the correlation.  Sums of noisy counts alone, so the noise makes no bias before the limits do.
    """
    positive = np.clip(shares, 0, None)
    by_chance = float((positive**2).sum()) / max(float(positive.sum()), 1e-9) ** 2
    table = alike[1:].reshape(-1, _LEVELS + 1)
    others = np.minimum(2.0 ** np.arange(len(table)), max_rows - 1)
    above = float((others[:, None] * table * (np.arange(_LEVELS + 1) / _LEVELS - by_chance)).sum())
    spread = (1 - by_chance) * n_rows
    return float(np.clip(1 + above / spread, 1, max_rows)) if spread > 0 else float(max_rows)


def _bucket(n_own: np.ndarray | int) -> np.ndarray:
    """The exponent of the power of two that is the number of a person's other rows, or the next one above."""
    return np.frexp(np.maximum(np.asarray(n_own) - 2, 0))[1].astype(np.int64)
