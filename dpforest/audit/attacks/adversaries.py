"""Attacks on a released forest, and what differential privacy allows them.

Two questions an observer may ask: *was this record in the data?* (membership) and *what does the record that I do not
know look like?* (the informed adversary, who knows all the others).  For both there is a largest probability of
success that a loss of epsilon allows, an exact best attack where output laws are known, and an attack on a fitted
forest.  Reconstruction of all records is in :mod:`dpforest.audit.attacks.reconstruction`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dpforest.audit.attacks.observer import MAX_RECORDS, LeafNoise, Observer, check_prior
from dpforest.audit.sampling.bounds import clopper_pearson
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import REPLACE_ONE, check_epsilon, check_relation, claim

__all__ = [
    "MembershipAttack",
    "best_advantage",
    "best_guess",
    "evidence",
    "informed_adversary",
    "informed_guess",
    "membership_advantage",
    "membership_attack",
]

Law = Mapping[Hashable, Any]  # output -> probability
TIE = 1e-9  # log-probabilities that differ by less are equal


@claim("thm-observer", "thm-membership")
def membership_advantage(epsilon) -> float:
    """The largest advantage, true minus false positive rate, of any test of whether a record was in the data.

    Parameters
    ----------
    epsilon : float or "non-private"
        Loss of the mechanism under the relation of the two worlds: add-remove if the record is absent from one of
        them, replace-one if another record replaces it there.

    Returns
    -------
    float
        ``(e^epsilon - 1) / (e^epsilon + 1)``, between 0 and 1.

    Guarantee
    ---------
    Holds for every attack, whatever it knows, and is sharp: :prf:ref:`thm-observer`, :prf:ref:`thm-membership`.

    Examples
    --------
    >>> round(membership_advantage(1.0), 3)
    0.462
    """
    return math.tanh(check_epsilon(epsilon) / 2)


@claim("thm-membership")
def best_advantage(one: Law, other: Law):
    """The exact advantage of the best attack on two output laws: their total variation distance.

    The best attack says "the first" on the outputs that are more probable there.  Laws of fractions give a fraction.

    Parameters
    ----------
    one, other : dict of output -> probability
        For example from :func:`dpforest.audit.exact.laws.law_of` on two neighbouring data sets.

    Guarantee
    ---------
    No attack gains more (:prf:ref:`thm-membership`).
    """
    _check_laws([one, other])
    return sum(max(p - other.get(output, 0), 0) for output, p in one.items())


@claim("thm-informed")
def informed_adversary(epsilon, k: int | None = None, *, prior: float | None = None, relation: str = REPLACE_ONE):
    """The largest probability with which an adversary who knows every other record guesses the missing one.

    Parameters
    ----------
    epsilon : float or "non-private"
        Loss of the mechanism under ``relation``.
    k : int, optional
        The missing record is one of ``k`` equally likely ones, at least 2.
    prior : float, optional
        Instead of ``k``: the probability of the likeliest value before the release.
    relation : {"replace-one", "add-remove"}

    Returns
    -------
    float
        With ``p = prior`` or ``1 / k``: ``e^epsilon p / (e^epsilon p + 1 - p)`` under replace-one, and the smaller of
        ``e^epsilon p`` and ``1 - e^-epsilon (1 - p)`` under add-remove.

    Guarantee
    ---------
    Holds for every adversary, and is sharp for equally likely values: :prf:ref:`thm-informed`.

    Examples
    --------
    >>> round(informed_adversary(1.0, k=4), 3)
    0.475
    >>> round(informed_adversary(1.0, k=4, relation="add-remove"), 3)
    0.68
    """
    epsilon = check_epsilon(epsilon)
    check_relation(relation)
    if (k is None) == (prior is None):
        raise ValueError("say either k, the number of equally likely records, or prior, the largest probability")
    if prior is None:
        p = 1 / check_count(k, "k", least=2)
    elif isinstance(prior, Real) and 0 < prior <= 1:
        p = float(prior)
    else:
        raise ValueError(f"prior must be a probability above 0, not {shown(prior)}")
    if relation == REPLACE_ONE:
        return p / (p + math.exp(-epsilon) * (1 - p))
    return min(math.exp(min(epsilon, 700)) * p, 1 - math.exp(-epsilon) * (1 - p))


@claim("thm-informed")
def best_guess(laws: Sequence[Law], prior: Sequence | None = None):
    """The exact probability that the best adversary names the law that an output was drawn from.

    Parameters
    ----------
    laws : sequence of dicts, output -> probability
        Output law for each value that the missing record may have.
    prior : sequence of numbers, optional
        Probability of each value; equally likely by default.  Fractions give a fraction.

    Guarantee
    ---------
    No adversary does better (:prf:ref:`thm-informed`).
    """
    _check_laws(laws)
    if prior is None:
        return sum(max(law.get(o, 0) for law in laws) for o in _outputs(laws)) / len(laws)
    if len(prior) != len(laws) or min(prior) < 0 or abs(sum(prior) - 1) > 1e-9:
        raise ValueError(f"prior must be {len(laws)} probabilities that add up to 1, one for each law")
    return sum(max(p * law.get(o, 0) for p, law in zip(prior, laws, strict=True)) for o in _outputs(laws))


def evidence(model, known, *, noise: LeafNoise | None = None, max_records: int = MAX_RECORDS) -> np.ndarray:
    """How much more probable each possible further record makes the leaves of a released forest.

    Parameters
    ----------
    model : fitted estimator, or released forest
    known : ndarray of int, shape (n, n_features + 1)
        The records that the adversary knows to be in the data, see :func:`~dpforest.audit.attacks.observer.as_records`.
    noise : LeafNoise, optional
        Where the model does not carry its parameters.
    max_records : int
        A schema that allows more records is refused.

    Returns
    -------
    ndarray of float, shape (n_records,)
        For each record that the schema allows, in lexicographic order, the logarithm of the probability of what the
        leaves say if the data are ``known`` and this record, over that probability if they are ``known`` alone.  It
        is the log-likelihood ratio of a membership attack, and, added to a log-prior, the log-posterior of an informed
        adversary.  Under replace-one only differences between records have a meaning.

    Raises
    ------
    TypeError, ValueError
        Not a released forest; a record outside the schema; or a forest whose trees read a record each by a coin, since
        the adversary does not know the coins of the known records.

    Notes
    -----
    The whole likelihood where the structure does not depend on the records, as in random trees; elsewhere an attack
    that looks at leaves alone.
    """
    return _gain(Observer.of(model, noise, max_records), known)


def informed_guess(
    model, known, *, prior=None, noise: LeafNoise | None = None, max_records: int = MAX_RECORDS, random_state=None
) -> np.ndarray:
    """The record that an informed adversary guesses: the most probable one, given the leaves and all other records.

    Parameters
    ----------
    model, known, noise, max_records
        As in :func:`evidence`.
    prior : array-like of float, shape (n_records,), optional
        Probability of each record that the schema allows, in lexicographic order; equal by default.
    random_state : None, int or Generator
        Which of several most probable records is named.

    Returns
    -------
    ndarray of uint8, shape (n_features + 1,)

    Guarantee
    ---------
    Right with a probability of at most :func:`informed_adversary` (:prf:ref:`thm-informed`).
    """
    seen = Observer.of(model, noise, max_records)
    weight = _gain(seen, known)
    if (log_prior := check_prior(prior, len(weight))) is not None:
        weight = weight + log_prior
    likeliest = np.flatnonzero(weight >= weight.max() - TIE)
    return seen.records[np.random.default_rng(random_state).choice(likeliest)]


@dataclass(frozen=True)
class MembershipAttack:
    """A membership attack that was tried out.

    Attributes
    ----------
    advantage : float
        True minus false positive rate on draws that did not choose the threshold.
    low : float
        Lower confidence bound of the advantage that the attack has.
    true_positive, false_positive : float
    threshold : float
        The attack says "in" where the score is at least this.
    n : tuple of two ints
        Draws in either world that were counted.
    """

    advantage: float
    low: float
    true_positive: float
    false_positive: float
    threshold: float
    n: tuple[int, int]


def membership_attack(inside, outside, *, confidence: float = 0.95) -> MembershipAttack:
    """Try a score as a test of membership: the first half of the draws chooses the threshold, the second half counts.

    Parameters
    ----------
    inside, outside : array-like of float, shape (n,), at least 2 each
        Scores of independent draws with and without the record, high where it seems to be in; not NaN.
    confidence : float
        Of the lower bound.

    Returns
    -------
    MembershipAttack
    """
    halves = []
    for name, scores in (("inside", inside), ("outside", outside)):
        scores = np.asarray(scores, dtype=float)
        if scores.ndim != 1 or len(scores) < 2 or np.isnan(scores).any():
            raise ValueError(f"{name} must be at least two scores, numbers in one dimension, not {scores.shape}")
        halves.append((scores[: len(scores) // 2], scores[len(scores) // 2 :]))
    (pick_in, test_in), (pick_out, test_out) = halves
    levels = np.append(np.unique(np.concatenate([pick_in, pick_out])), np.inf)
    rates = [1 - np.searchsorted(np.sort(pick), levels) / len(pick) for pick in (pick_in, pick_out)]
    threshold = float(levels[np.argmax(rates[0] - rates[1])])
    hits, alarms = int((test_in >= threshold).sum()), int((test_out >= threshold).sum())
    n, m = len(test_in), len(test_out)
    each = 1 - (1 - confidence) / 2
    low = clopper_pearson(hits, n, each)[0] - clopper_pearson(alarms, m, each)[1]
    return MembershipAttack(hits / n - alarms / m, max(low, 0.0), hits / n, alarms / m, threshold, (n, m))


def _gain(seen: Observer, known) -> np.ndarray:
    """:func:`evidence`, of an observer."""
    if not seen.noise.shared:
        raise ValueError(
            "each record belongs to one tree by a coin that the adversary does not see: take n_estimators=1, or a "
            "forest whose trees read all records"
        )
    counts, values, rate = seen.counts(known, "known"), seen.forest.values, seen.rate
    without = seen.noise.log_likelihood(values, counts, rate)
    one_more = counts[:, None] + np.eye(seen.cardinalities[-1], dtype=np.int64)
    gain = seen.noise.log_likelihood(values[:, None], one_more, rate[:, None]) - without[:, None]
    return gain[seen.leaf, seen.records[:, -1][:, None]].sum(axis=1)


def _outputs(laws: Sequence[Law]) -> dict:
    return {output: None for law in laws for output in law}


def _check_laws(laws: Sequence[Law]) -> None:
    if not laws:
        raise ValueError("give at least one output law")
    for law in laws:
        if not isinstance(law, Mapping) or not law:
            raise TypeError(f"a law is a dict of output -> probability, not {shown(law)}")
        if min(law.values()) < 0 or abs(sum(law.values()) - 1) > 1e-9:
            raise ValueError(f"the probabilities of a law must add up to 1; these add up to {float(sum(law.values()))}")
