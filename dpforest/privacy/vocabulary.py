"""Neighbour relations, privacy parameters, guarantees and leaks, and the seal of a claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

__all__ = [
    "ADD_REMOVE", "HISTOGRAM_SENSITIVITY", "NON_PRIVATE", "RELATIONS", "REPLACE_ONE", "Guarantee", "Leak",
    "OutOfSchemaWarning", "UnprovenPrivacyWarning", "check_epsilon", "check_relation", "claim",
]  # fmt: skip

ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"
RELATIONS = (ADD_REMOVE, REPLACE_ONE)
#: L1 sensitivity of a histogram, by relation: a record that comes or goes changes one count by 1, a replaced one two.
#: It is the scale of the noise of a count at epsilon 1, and, times a record's worth, that of two masses of a target.
HISTOGRAM_SENSITIVITY = {ADD_REMOVE: 1, REPLACE_ONE: 2}
NON_PRIVATE = "non-private"


class UnprovenPrivacyWarning(UserWarning):
    """A published algorithm runs to the letter although its privacy proof does not hold."""


class OutOfSchemaWarning(UserWarning):
    """Records held values outside the declared schema; they were clipped or sent to ``other``.

    The message holds exact counts: it is for the curator's eyes and is never stored in a model.
    """


def claim(*ids: str) -> Callable:
    """Seal a function or class with the ids of the claims of the book that it carries out.

    The seal is an attribute, ``__claims__``; ``tests/test_claims.py`` walks the library and checks that every
    id has its statement, its code, its test and its exhibit.
    """

    def seal(thing):
        thing.__claims__ = tuple(ids)
        return thing

    return seal


@claim("def-neighbours")
def check_relation(relation: str) -> str:
    """``relation`` itself if it is one of ``RELATIONS``; else an error that lists them."""
    if relation not in RELATIONS:
        raise ValueError(f"relation must be one of {RELATIONS}, not {relation!r}")
    return relation


def check_epsilon(epsilon, name: str = "epsilon") -> float:
    """A privacy parameter as a float: positive and finite, or the string ``"non-private"`` for infinity.

    Infinity has to be asked for by name, so that no arithmetic slip turns the noise off.
    """
    if isinstance(epsilon, str):
        if epsilon == NON_PRIVATE:
            return math.inf
        raise ValueError(f"{name} must be a positive number, or 'non-private' to turn privacy off, not {epsilon!r}")
    if not isinstance(epsilon, Real) or isinstance(epsilon, bool):
        raise TypeError(f"{name} must be a positive number, not {type(epsilon).__name__}")
    if math.isinf(epsilon):
        raise ValueError(f"{name} is infinite: write {name}='non-private' if you mean to turn privacy off")
    if not float(epsilon) > 0:  # also refuses NaN
        raise ValueError(f"{name} must be positive, not {epsilon!r}")
    if not 1e-9 <= float(epsilon) <= 1e6:
        raise ValueError(f"{name} must lie between 1e-9 and 1e6, or be 'non-private', not {epsilon!r}")
    return float(epsilon)


@dataclass(frozen=True)
class Leak:
    """A read of the data that nobody paid for: what was read, and where the paper does it."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} ({self.where})"


@claim("def-privacy")
@dataclass(frozen=True)
class Guarantee:
    """What is promised about a released model.

    Attributes
    ----------
    epsilon : float
        The proved loss; ``inf`` where the claim is refuted or privacy was turned off.
    relation : {"add-remove", "replace-one"}
        Which pairs of data sets are neighbours.
    claimed : float or None
        What the paper claims for the published variant; None for the proved one.
    leaks : tuple of Leak
        The unpaid reads that make ``epsilon`` infinite; empty iff there are none.
    computational : bool
        Whether it also rests on SipHash, under a key that nobody knows, looking like independent coins: where a table
        is read in passes and its records are told by their places (:prf:ref:`thm-keyed-assignment`).
    """

    epsilon: float
    relation: str
    claimed: float | None = None
    leaks: tuple[Leak, ...] = ()
    computational: bool = False

    def __str__(self) -> str:
        text = f"{self.epsilon:.6g}-differentially private under {self.relation}"
        if self.computational:
            text += ", up to the pseudo-randomness of SipHash"
        if math.isinf(self.epsilon):
            text = f"not differentially private under {self.relation} for any finite epsilon"
        if self.claimed is not None:
            text += f" (the paper claims {self.claimed:.6g})"
        return text + "".join(f"\n  leak: {leak}" for leak in self.leaks)
