"""How a tree's budget is divided over its levels and leaves.

Levels count from 1 at the root, and ``depth`` is the number of levels, the eDPRF paper's *treeDepth*.  Every
function is plain arithmetic: fractions in, fractions out, so that the identities of the chapter *Budgets* can be
checked exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from numbers import Integral
from typing import TypeVar

from dpforest.messages import shown
from dpforest.privacy import claim

__all__ = ["PLANS", "SPLITS", "Shares", "aligned_leaf", "geometric", "harmonic", "leaf_budget", "uniform"]

Budget = TypeVar("Budget", float, Fraction)


@claim("def-uniform-budget")
def uniform(epsilon: Budget, depth: int) -> list[Budget]:
    """The same share ``epsilon / depth`` for each of ``depth`` levels."""
    return [epsilon * share for share in _shares([1] * _check_depth(depth), epsilon)]


@claim("pub-harmonic-budget", "thm-harmonic")
def harmonic(epsilon: Budget, depth: int) -> list[Budget]:
    """Formula (9) of the eDPRF paper: the share of each level, small at the root and largest at the bottom.

    Parameters
    ----------
    epsilon : float or Fraction
        Budget of the tree.
    depth : int
        Number of levels, at least 1.

    Returns
    -------
    list of length ``depth``
        Level k (from 1) gets ``epsilon / (H (depth - k + 1))`` with ``H = 1 + 1/2 + ... + 1/depth``; their sum is
        ``epsilon`` (:prf:ref:`thm-harmonic`).

    Examples
    --------
    >>> from fractions import Fraction
    >>> harmonic(Fraction(1), 3)
    [Fraction(2, 11), Fraction(3, 11), Fraction(6, 11)]
    """
    weights = [Fraction(1, levels_left) for levels_left in range(_check_depth(depth), 0, -1)]
    return [epsilon * share for share in _shares(weights, epsilon)]


def geometric(epsilon: Budget, depth: int, ratio: float | Fraction) -> list[Budget]:
    """Shares of ``depth`` levels, each ``ratio`` times that of the level above; their sum is ``epsilon``.

    Parameters
    ----------
    epsilon, depth
        As in :func:`harmonic`.
    ratio : float or Fraction
        Positive; below 1 the root gets most, 1 is :func:`uniform`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> geometric(Fraction(1), 3, Fraction(1, 2))
    [Fraction(4, 7), Fraction(2, 7), Fraction(1, 7)]
    """
    if not 0 < ratio < math.inf:
        raise ValueError(f"ratio must be a positive number, not {shown(ratio)}")
    weights = [Fraction(ratio) ** level for level in range(_check_depth(depth))]
    return [epsilon * share for share in _shares(weights, epsilon)]


@claim("pub-aligned-leaf", "thm-aligned")
def aligned_leaf(epsilon: Budget, depth: int, level: int) -> Budget:
    """Formula (10) of the eDPRF paper: what a leaf at ``level`` gets, ``epsilon`` less what its ancestors spent.

    Parameters
    ----------
    epsilon, depth
        As in :func:`harmonic`.
    level : int
        Level of the leaf, 1 to ``depth``.

    Guarantee
    ---------
    Every root-to-leaf path spends exactly ``epsilon`` (:prf:ref:`thm-aligned`), provided that the decision to make
    the node a leaf cost nothing; a *stop* candidate costs the level's own share too, see :func:`leaf_budget`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> aligned_leaf(Fraction(1), 3, 2)
    Fraction(9, 11)
    """
    if not isinstance(level, Integral) or not 1 <= level <= depth:
        raise ValueError(f"level must be between 1 and depth = {depth}, not {shown(level)}")
    return leaf_budget(epsilon, harmonic(epsilon, depth)[: level - 1])


@claim("thm-aligned", "thm-stop-budget")
def leaf_budget(epsilon: Budget, spent: Sequence[Budget]) -> Budget:
    """What is left for a leaf when the selections ``spent`` (a list) were made on its path.

    A leaf at level l forced by depth, or by the lack of features, has spent levels 1 to l - 1.  A leaf made by
    choosing *stop* at level l has spent levels 1 to l (:prf:ref:`thm-stop-budget`).
    """
    left = epsilon - sum(spent)
    if not left > 0:  # also refuses NaN
        raise ValueError(f"the path has spent {sum(spent)} of {shown(epsilon)}: nothing is left for its leaf")
    return left


#: How estimators may split a tree's budget over its levels, by name.
SPLITS = {"uniform": uniform, "harmonic": harmonic}

#: How a tree may plan its budget: a split of it over the levels, *aligned* if a leaf also gets what is left below it.
PLANS = ("aligned", "aligned-uniform", "harmonic", "uniform")


@claim("thm-aligned", "thm-stop-budget")
class Shares:
    """How one tree's budget falls on the branches and leaves of its levels.

    Parameters
    ----------
    plan : {"aligned", "aligned-uniform", "harmonic", "uniform"}
    epsilon : float
        Budget of the tree; infinite for no noise.
    depth : int
        Number of levels, at least 1.
    leaf : float or None
        Share of the whole, between 0 and 1, that is kept for the last level, where only leaves are; the plan divides
        the rest over the levels above.  None: the plan divides the whole over all levels.
    ratio : float or None
        The levels above get shares by :func:`geometric` in the place of the plan's.

    Guarantee
    ---------
    The branches above a leaf and the leaf itself spend at most ``epsilon``; exactly that under an aligned plan
    (:prf:ref:`thm-aligned`, :prf:ref:`thm-stop-budget`).
    """

    def __init__(self, plan: str, epsilon: float, depth: int, leaf: float | None = None, ratio: float | None = None):
        self.depth = _check_depth(depth)
        self._epsilon = epsilon
        self._aligned = plan.startswith("aligned")
        split: Callable[[float, int], list[float]] = SPLITS["uniform" if plan.endswith("uniform") else "harmonic"]
        if ratio is not None:
            split = partial(geometric, ratio=ratio)
        if math.isinf(epsilon):
            self._levels = [epsilon] * depth
        elif leaf is None or depth == 1:
            self._levels = split(epsilon, depth)
        else:
            self._levels = [*split(epsilon * (1 - leaf), depth - 1), epsilon * leaf]

    def branch(self, level: int) -> float:
        """Budget of the selection at ``level``, from 1."""
        return self._levels[level - 1]

    def leaf(self, level: int, selected: bool) -> float:
        """Budget of a leaf at ``level``; ``selected`` if a selection was paid for at it."""
        spent = level if selected else level - 1
        if math.isinf(self._epsilon):
            return self._epsilon
        return leaf_budget(self._epsilon, self._levels[:spent]) if self._aligned else self._levels[spent]


def _shares(weights: Sequence[int | Fraction], epsilon: float | Fraction) -> list:
    """Weights over their sum: exact for a Fraction budget, floats for a float one."""
    total = sum(Fraction(w) for w in weights)
    shares = [Fraction(w) / total for w in weights]
    return shares if isinstance(epsilon, (Fraction, Integral)) else [float(share) for share in shares]


def _check_depth(depth: object) -> int:
    if not isinstance(depth, Integral) or isinstance(depth, bool) or depth < 1:
        raise ValueError(f"depth must be a whole number of levels, at least 1, not {shown(depth)}")
    return int(depth)
