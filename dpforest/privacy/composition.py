"""What several mechanisms cost together: in sequence, in parallel, and on records drawn at random."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpforest.arithmetic import exp, expm1, log1p, sinh
from dpforest.arithmetic.elementary import Number
from dpforest.privacy.vocabulary import ADD_REMOVE, check_relation, claim

__all__ = ["bootstrap", "equal_split", "parallel", "poisson_bootstrap", "sequential"]


@claim("thm-sequential")
def sequential(epsilons: Iterable[float]) -> float:
    """Loss of several mechanisms that read the same records, each possibly chosen from earlier outputs: the sum.

    Guarantee
    ---------
    Both relations, adaptive choice of mechanisms and budgets: :prf:ref:`thm-sequential`.
    """
    return sum(epsilons)


@claim("thm-parallel")
def parallel(add_remove: Iterable[float], replace_one: Iterable[float], relation: str, moves: bool = True) -> float:
    """Loss of mechanisms that read disjoint parts of the data, where a record's part depends on that record alone.

    Parameters
    ----------
    add_remove, replace_one : iterables of float
        Loss of the mechanism of each part under either relation.
    relation : {"add-remove", "replace-one"}
    moves : bool
        Whether a replaced record may go to another part, as it does when the part is decided by its values
        (the child of a tree node).  False when a coin decides that does not look at the record.

    Guarantee
    ---------
    add-remove: the largest part.  replace-one: a record that stays costs the largest replace-one loss, one that
    moves costs a removal in one part and an addition in another.  Both are sharp: :prf:ref:`thm-parallel`.
    """
    stay, move = sorted(replace_one)[-1:], sorted(add_remove)[-2:]
    if check_relation(relation) == ADD_REMOVE:
        return move[-1] if move else 0.0
    return max([*stay, sum(move) if moves else 0.0, 0.0])


@claim("thm-equal-split")
def equal_split(epsilon: float, parts: int) -> float:
    """Loss under add-remove when a *random equal-size* split gives each part to an ``epsilon``-private mechanism.

    Adding one record changes the size of a part, so a second record has to move: the loss is
    ``ln(e^epsilon / parts + (1 - 1/parts) e^(3 epsilon))``, not ``epsilon`` (:prf:ref:`thm-equal-split`).
    """
    if parts <= 1 or math.isinf(epsilon):
        return epsilon
    return 3 * epsilon + log1p(expm1(-2 * epsilon) / parts)


@claim("thm-bootstrap")
def poisson_bootstrap(epsilon: Number, relation: str) -> Number:
    """Loss of a mechanism that sees each record a Poisson(1) number of times, each record by a draw of its own.

    Parameters
    ----------
    epsilon : float or ndarray
        Loss of the mechanism under *add-remove*, whatever the relation asked for.
    relation : {"add-remove", "replace-one"}

    Returns
    -------
    float or ndarray
        ``e^epsilon - 1`` under add-remove, ``2 sinh(epsilon)`` under replace-one, both sharp:
        :prf:ref:`thm-bootstrap`.
    """
    with np.errstate(over="ignore"):  # beyond the largest double the loss is infinite, and says so
        return expm1(epsilon) if check_relation(relation) == ADD_REMOVE else 2 * sinh(epsilon)


@claim("thm-bootstrap-size", "pub-bootstrap", "cex-bootstrap")
def bootstrap(add_remove: Number, replace_one: Number, relation: str) -> Number:
    """Loss of a mechanism that sees n draws with replacement from n records, the largest over all n.

    A record that is drawn twice counts twice, and under add-remove one more record means one more draw.

    Parameters
    ----------
    add_remove, replace_one : float or ndarray
        Loss of the mechanism under either relation.
    relation : {"add-remove", "replace-one"}

    Returns
    -------
    float or ndarray
        ``ln(e^(u^2 - 1) / u + (u - 1/u) / e)`` with ``u = e^add_remove`` under add-remove, ``e^replace_one - 1`` under
        replace-one, both sharp; noisy class counts lose ``u^2 - 1 - ln u`` (:prf:ref:`thm-bootstrap-size`).
    """
    if check_relation(relation) != ADD_REMOVE:
        return expm1(replace_one)
    small = np.minimum(add_remove, 300.0)
    counts = expm1(2 * small) - small
    loss = counts + log1p(2 * sinh(small) * exp(-1 - counts))
    found: Any = np.where(add_remove > small, math.inf, loss)[()]  # of a float, a float
    return found
