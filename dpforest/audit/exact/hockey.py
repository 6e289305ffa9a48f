"""The hockey-stick divergence: what two known laws say in epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction

from dpforest.messages import shown
from dpforest.privacy import claim

__all__ = ["hockey_stick", "least_epsilon"]

Law = Mapping[Hashable, float | Fraction]

_LOST = Fraction(1, 10**9)  # of a law, by rounding and by an end cut off
_LARGEST = 700.0  # epsilon whose exponential is a double


@claim("thm-hockey-stick")
def hockey_stick(one: Law, other: Law, epsilon: float) -> float:
    """Hockey-stick divergence of two laws, the larger of both directions: the least delta at this epsilon.

    Parameters
    ----------
    one, other : mapping from outputs to probabilities
        Fractions, or doubles; they are added up exactly.  What is not named has probability 0.
    epsilon : float
        Zero or more; above 700 it counts as 700.

    Returns
    -------
    float
        In [0, 1]: the mechanism is (epsilon, delta)-private on these two data sets iff delta is at least this.

    Raises
    ------
    ValueError
        If a law does not add up to 1, within 1e-9: what is cut off could be all the difference.

    Source
    ------
    Barthe and Olmedo (2013); Balle, Barthe and Gaboardi (2018).
    """
    if not epsilon >= 0:  # also refuses NaN
        raise ValueError(f"epsilon must be zero or more, not {shown(epsilon)}")
    factor, nothing = Fraction(math.exp(min(epsilon, _LARGEST))), Fraction(0)
    return float(max(sum((max(p - factor * q, nothing) for p, q in pairs), nothing) for pairs in _both(one, other)))


@claim("thm-hockey-stick")
def least_epsilon(one: Law, other: Law, delta: float | Fraction) -> float:
    """The least epsilon for which two laws keep (epsilon, delta): the loss that remains at a given delta.

    Parameters and errors are those of :func:`hockey_stick`, ``delta`` in [0, 1), a fraction if the laws are.  Infinite
    where outputs that one law has and the other one lacks are together more probable than delta.
    """
    if not 0 <= delta < 1:  # also refuses NaN
        raise ValueError(f"delta must be at least 0 and below 1, not {shown(delta)}")
    return max(_worst(pairs, Fraction(delta)) for pairs in _both(one, other))


def _both(one: Law, other: Law) -> list[list[tuple[Fraction, Fraction]]]:
    """The probabilities of each output, exactly, for either direction."""
    pairs = [(Fraction(one.get(output, 0)), Fraction(other.get(output, 0))) for output in {**one, **other}]
    for law in zip(*pairs, strict=True):
        if abs(sum(law) - 1) > _LOST or min(law) < 0:
            raise ValueError(f"a law has to add up to 1, and this one to {float(sum(law)):.12g}: name all its outputs")
    return [pairs, [(q, p) for p, q in pairs]]


def _worst(pairs: list[tuple[Fraction, Fraction]], delta: Fraction) -> float:
    """Of the sets of outputs with the largest ratios, the one that leaves most: ``ln((P(S) - delta) / Q(S))``."""
    p = q = Fraction(0)
    worst = Fraction(1)
    for more, behind in sorted(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] else math.inf, reverse=True):
        p, q = p + more, q + behind
        if p > delta:
            if not q:
                return math.inf
            worst = max(worst, (p - delta) / q)
    return math.log(worst)
