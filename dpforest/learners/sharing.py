"""Random forests before any split: which records a tree sees, and which features a node may split on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dpforest.arithmetic import asinh, log1p
from dpforest.chance import Chance
from dpforest.curator import Curator
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, claim

__all__ = ["SAMPLINGS", "Subset", "n_candidates", "random_features", "share_out"]

#: How the trees may share the records: all to every tree; each to one tree, by a coin of its own; a Poisson number of
#: copies to every tree; and as published, as many draws with replacement for every tree as there are records.
SAMPLINGS = ("all", "assignment", "poisson", "bootstrap")


@claim("thm-forest")
def share_out(sampling: str, curator: Curator, epsilon: float, n_trees: int, relation: str) -> tuple[float, str]:
    """Give the trees their records; returns each tree's budget, and the ledger kind by which the trees compose.

    Parameters
    ----------
    sampling : {"all", "assignment", "poisson", "bootstrap", "equal-split"}
    epsilon : float
        Budget of the forest.
    relation : {"add-remove", "replace-one"}

    Guarantee
    ---------
    Trees that spend their budgets make a forest that spends ``epsilon``: line *Sharing* of :prf:ref:`thm-forest`, by
    sequential composition, by :prf:ref:`thm-assignment`, or by :prf:ref:`thm-bootstrap`.  Not so for ``"bootstrap"``,
    where a tree gets the ``epsilon / n_trees`` of the papers and the ledger says what that costs
    (:prf:ref:`thm-bootstrap-size`); nor for ``"equal-split"``, where each tree gets all of ``epsilon``
    (:prf:ref:`thm-equal-split`).

    Notes
    -----
    Under a Poisson bootstrap a tree that costs e under add-remove costs ``exp(e) - 1``, and ``2 sinh e`` under
    replace-one, so the budget here is the inverse.  Trees are calibrated for ``relation``, and every query that they
    ask costs half as much under add-remove as under replace-one, hence the other 2 in the second line.
    """
    each = epsilon / n_trees
    if sampling == "all":
        return each, "sequential"
    if sampling in ("assignment", "equal-split"):
        (curator.assign if sampling == "assignment" else curator.split_equally)(n_trees)
        return epsilon, sampling
    if sampling == "poisson":
        curator.poisson_bootstrap(n_trees)
        return (log1p(each) if relation == ADD_REMOVE else 2 * asinh(each / 2)), "poisson-bootstrap"
    curator.bootstrap(n_trees)
    return each, "bootstrap"


def n_candidates(max_features: int | str, n_features: int) -> int:
    """Size of a node's random subset of features: ``"sqrt"`` (rounded up), ``"all"``, or a whole number from 1 on."""
    if isinstance(max_features, str) and max_features == "sqrt":
        return math.isqrt(n_features - 1) + 1
    if isinstance(max_features, str) and max_features == "all":
        return n_features
    if isinstance(max_features, Integral) and not isinstance(max_features, bool) and int(max_features) >= 1:
        return min(int(max_features), n_features)
    raise ValueError(f"max_features must be 'sqrt', 'all' or a whole number from 1 on, not {shown(max_features)}")


@dataclass(frozen=True)
class Subset:
    """What :func:`n_candidates` takes for the size of a random subset of features; ``"auto"`` if that is allowed."""

    auto: bool = False

    @property
    def words(self) -> str:
        """What is allowed, as the table of the docstring has it."""
        return 'int, at least 1, "sqrt", "all" or "auto"' if self.auto else 'int, at least 1, "sqrt" or "all"'

    def check(self, value: Any, name: str) -> None:
        if not (self.auto and isinstance(value, str) and value == "auto"):
            n_candidates(value, 1)


def random_features(chance: Chance, usable: np.ndarray, size: int) -> np.ndarray:
    """A uniform subset of ``size`` of each node's usable features, all of them where there are fewer.

    Parameters
    ----------
    usable : ndarray of bool, shape (n_nodes, n_features)

    Returns
    -------
    ndarray of bool, shape (n_nodes, n_features)
    """
    drawn = usable.copy()
    available = usable.sum(axis=1)
    for n in np.unique(available[available > size]):
        rows = np.flatnonzero(available == n)
        places = np.nonzero(usable[rows])[1].reshape(len(rows), n)
        kept = chance.subsets(int(n), size, len(rows))
        drawn[rows] = False
        drawn[rows[:, None], np.take_along_axis(places, kept, axis=1)] = True
    return drawn
