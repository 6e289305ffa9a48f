"""Weights of records in boosting: whole steps, which public tables and fixed formulas give from a record's scores."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import lru_cache

import numpy as np

from dpforest.arithmetic import exp
from dpforest.models.boosted import SCALE
from dpforest.privacy import claim

__all__ = [
    "FINE",
    "FINEST",
    "WEIGHTS",
    "calibrated_steps",
    "gradient_steps",
    "residual_steps",
    "thresholds",
    "weight_levels",
    "weight_steps",
    "weight_table",
]

#: Weights by the margin m of a record's class, cut off below at 0: ``exp(-m / 2)`` as in AdaBoost but never above 1
#: (MadaBoost's cap), or the logistic loss's ``2 / (1 + exp(m))``; here the margin of each weight below 1.
WEIGHTS = {
    "capped": lambda weight: -2 * weight.ln(),
    "logistic": lambda weight: (2 / weight - 1).ln(),
}


def weight_levels(n_classes: int) -> int:
    """Steps of a weight from 0 to 1: as many as leave room for the class in one code of 256."""
    levels = min(127, 256 // n_classes - 1)  # each class has a code for every weight, 0 included
    if levels < 1:
        raise ValueError(f"weights leave room for at most 128 classes, not {n_classes}")
    return levels


@lru_cache(maxsize=8)
def weight_table(n_classes: int) -> np.ndarray:
    """Steps that a record of each code adds to each class count: int64, shape (n_codes, n_classes).

    A code is ``label * (levels + 1) + steps``, for a class and a weight.
    """
    levels = weight_levels(n_classes)
    return np.kron(np.eye(n_classes, dtype=np.int64), np.arange(levels + 1)[:, None])


@lru_cache(maxsize=256)
def thresholds(rule: str, levels: int, share: float = 1.0) -> np.ndarray:
    """The largest margin at which a record counts for at least ``levels``, ``levels - 1``, ..., 1 steps: ascending.

    Parameters
    ----------
    rule : {"capped", "logistic"}
    levels : int
        Steps of a weight of 1.
    share : float
        Public weight of the record's class, from 0 to 1.

    Returns
    -------
    ndarray of int64, shape (levels,)
        In units of ``1 / SCALE``; -1 where no record has the weight.

    Notes
    -----
    A weight is rounded to the nearest step: it makes k of them where ``share * weight`` is at least ``(k - 1/2) /
    levels``.  The logarithms are computed to fifty digits, so that the table is the same on every machine.
    """
    found = np.full(levels, -1, dtype=np.int64)
    with localcontext() as context:
        context.prec = 50
        for k in range(1, levels + 1):
            weight = (k - Decimal("0.5")) / levels / Decimal(share) if share else Decimal(2)
            if weight <= 1:
                found[levels - k] = int((WEIGHTS[rule](weight) * SCALE).to_integral_value(ROUND_FLOOR))
    return found


def weight_steps(margins: np.ndarray, rule: str, levels: int, share: float = 1.0) -> np.ndarray:
    """How many steps records of these margins count for: int64, from 0 to ``levels``.

    ``margins`` are whole numbers of ``1 / SCALE``, those below 0 count as 0.
    """
    return levels - np.searchsorted(thresholds(rule, levels, share), np.maximum(margins, 0), side="left")


#: Steps of a calibrated weight of 1.
FINE = 1 << 10
_FARTHEST = 8 * SCALE  # votes by which a class is behind whose odds are less than half a step
_VOTES = SCALE // FINE  # in so many the odds fall by one step at most


@claim("lem-calibrated-weights")
def calibrated_steps(scores: np.ndarray, labels: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The weight of each record for each target class, in steps of ``1 / FINE``: int32, (n_targets, n_rows).

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows, n_classes)
        Scores of each record by released trees; their softmax is the probability p of each class.
    labels : ndarray of uint8, shape (n_rows,)
    targets : ndarray of int, shape (n_targets,)

    Notes
    -----
    For target k, a record of class k has weight ``min(1, (1 - p) / p)`` and any other record ``min(1, p / (1 - p))``,
    with ``p = p_k``, rounded to the nearest step.  Where the scores are calibrated, both sides then have the same
    expected weight.
    """
    if scores.shape[1] == 2:  # the odds of the other class, for either target
        # a sign is a product here, for np.where takes many times as long
        margins = (scores[:, 1] - scores[:, 0]) * (2.0 * labels - 1.0)
        return np.tile(_odds_steps(margins), (len(targets), 1))
    parts, rest = _odds(scores)
    steps = np.empty((len(targets), len(labels)), dtype=np.int32)
    with np.errstate(divide="ignore", over="ignore"):
        for place, target in enumerate(targets):
            own, mine = parts[target], labels == target
            odds = np.where(mine, rest[target], own) / np.where(mine, own, rest[target])
            steps[place] = np.rint(np.minimum(odds, 1.0) * FINE)
    return steps


def _odds_steps(margins: np.ndarray) -> np.ndarray:
    """``min(1, exp(-margin))`` in steps of ``1 / FINE``, rounded to the nearest: int32, shape of ``margins``."""
    votes = margins * SCALE
    np.clip(votes, 0, _FARTHEST, out=votes)
    whole = votes.astype(np.int32)
    if not (whole == votes).all():  # what is released votes by whole votes
        return np.rint(exp(-np.maximum(margins, 0.0)) * FINE).astype(np.int32)
    (steps, lower), cell = _odds_table(), whole // _VOTES
    return steps.take(cell) - (whole >= lower.take(cell))


@lru_cache(maxsize=1)
def _odds_table() -> tuple[np.ndarray, np.ndarray]:
    """Of each cell of whole margins: the steps of its first margin, and the first margin that has one less; int32."""

    def steps(votes: np.ndarray) -> np.ndarray:
        return np.rint(exp(-votes / SCALE) * FINE).astype(np.int32)

    first = np.arange(0, _FARTHEST + 1, _VOTES, dtype=np.int32)
    found, low, high = steps(first), first, first + np.int32(_VOTES)
    while (low + 1 < high).any():  # a margin of ``low`` still has the steps of the first; one of ``high`` is beyond
        middle = (low + high) // 2
        same = steps(middle) == found
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return found, high


def _odds(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probability of each class and that of all others, up to a common factor: each (n_classes, n_rows)."""
    parts = exp(scores - scores.max(axis=1, keepdims=True)).T  # the largest is 1
    n_classes, n_rows = parts.shape
    rest = np.zeros_like(parts)  # added one by one: the order, and so the rounding, is the same on every machine
    below, above = np.zeros(n_rows), np.zeros(n_rows)
    for k in range(n_classes):
        rest[k] += below
        below = below + parts[k]
        rest[-1 - k] += above
        above = above + parts[-1 - k]
    return parts, rest


#: Steps of a gradient of 1; a probability below one step has a gradient of 0.
FINEST = 1 << 16


@claim("lem-all-classes")
def gradient_steps(scores: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """How many steps of ``1 / FINEST`` each record adds for each of the classes: int32, (n_classes, n_rows).

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows, n_classes)
        Scores of each record by released trees; their softmax is the probability p of each class.
    labels : ndarray of uint8, shape (n_rows,)
    classes : ndarray of int, shape (n_classes,)
        All class codes.

    Notes
    -----
    A record of class y weighs ``p_k`` against every other class k, rounded down to a step, and for its own class what
    these weigh together, which is ``1 - p_y``: so all of it is at most 2 (:prf:ref:`lem-all-classes`).
    """
    parts, rest = _odds(scores)
    steps = np.floor(parts / (parts + rest) * FINEST).astype(np.int32)
    own = np.arange(len(labels))
    steps[labels, own] = 0
    # the sum of the rounded weights, not 1 - p_y rounded: both sides must be equal
    steps[labels, own] = steps.sum(axis=0)
    return steps[classes]


@claim("lem-twin-weights")
def residual_steps(residuals: np.ndarray, scale: float) -> np.ndarray:
    """How many steps of ``1 / FINE`` each record adds to either side of its cell: int32, (2, n_rows), FINE together.

    Parameters
    ----------
    residuals : ndarray of float64, shape (n_rows,)
        Of the targets, as shares of their range.
    scale : float
        Public; residuals beyond it are clipped.

    Notes
    -----
    With r the clipped residual over the scale, from -1 to 1, the first side has ``(1 - r) / 2`` and the second
    ``(1 + r) / 2``.
    """
    above = np.rint((1 + np.clip(residuals / scale, -1.0, 1.0)) / 2 * FINE).astype(np.int32)
    return np.stack([np.int32(FINE) - above, above])  # FINE together, however they are rounded
