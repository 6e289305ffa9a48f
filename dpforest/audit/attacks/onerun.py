"""One run: a lower bound of the privacy loss from a single fit, for models too slow to fit many times.

Each of many *canaries*, records in feature cells of their own, is put into the training data or left out by a fair
coin.  One fit later the auditor guesses the coins from the released model.  If the loss is at most epsilon, no guess
is right with a probability of more than ``e^epsilon / (1 + e^epsilon)``, whatever the other guesses were; so too many
right ones refute the claim (:prf:ref:`thm-one-run`).  With a delta a few guesses may be surer, and
:prf:ref:`thm-one-run-delta` says how many that makes right.  How much of the true loss this shows depends on how well
each canary can be seen by itself, and a leaf that holds no other canary isolates it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betainc, betaincinv, expit, logit

from dpforest.arithmetic import exp, last_where, log, logaddexp
from dpforest.audit.attacks.canaries import guess_by_score
from dpforest.audit.attacks.observer import LeafNoise, leaf_of
from dpforest.audit.sampling.bounds import check_confidence, check_delta, check_mu, check_promise
from dpforest.chance import Seeded
from dpforest.curator import Curator
from dpforest.curator.queries import ClassCounts
from dpforest.curator.selections import LabelCandidates
from dpforest.learners.base import PrivateEstimator, PrivateForestClassifier
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.models.forest import Forest
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE, check_epsilon, check_relation
from dpforest.privacy import claim as seal
from dpforest.privacy.concentrated import epsilon_of
from dpforest.privacy.gaussian import gaussian_delta, gaussian_epsilon

__all__ = [
    "OneRunAudit",
    "one_run",
    "one_run_bound",
    "one_run_mu_bound",
    "one_run_p_value",
    "one_run_profile",
    "one_run_rho_bound",
]

SURE = 50.0  # log-odds beyond which a guess cannot become surer
_HALVINGS = 60  # of the interval in which a bound lies
_DELTAS = tuple(np.geomspace(1e-8, 0.1, 15).tolist())  # at which a rho is held to the epsilon that it assures
_CURVE_HALVINGS = 30


@dataclass(frozen=True)
class OneRunAudit:
    """The outcome of an audit in one run.

    Attributes
    ----------
    epsilon_lower : float
        Lower confidence bound of the privacy loss.
    claim : float
        The epsilon that the learner promises with this delta; infinite if it promises none, as for ``"non-private"``.
    violated : bool
        Whether the bound exceeds the claim.
    correct, guesses, canaries : int
        Of so many canaries so many were guessed, and so many of the guesses were right; on the rest the auditor
        abstained.
    isolated : int or None
        Canaries that shared no leaf with another in at least one tree; None where the learner need not have leaves.
    confidence : float
    relation : str
    delta : float
        The bound is on the epsilon that the learner has with this delta.
    rho : float or None
        The rho that it promises, of zero-concentrated privacy; None if it promises none.
    rho_lower : float or None
        If it does, a lower confidence bound of the rho: ``violated`` says whether this exceeds it.
    """

    epsilon_lower: float
    claim: float
    violated: bool
    correct: int
    guesses: int
    canaries: int
    isolated: int | None
    confidence: float
    relation: str
    delta: float = 0.0
    rho: float | None = None
    rho_lower: float | None = None

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        bound, promise = (self.epsilon_lower, self.claim) if self.rho_lower is None else (self.rho_lower, self.rho)
        return (
            f"{'eps' if self.rho is None else 'rho'} >= {bound:.4g} with {100 * self.confidence:g} % confidence under "
            f"{self.relation} (claim {promise:.6g}{f' with delta = {self.delta:g}' if self.delta else ''}: {verdict}) "
            f"from one run: {self.correct} of {self.guesses} guesses right, {self.canaries} canaries"
            f"{'' if self.isolated is None else f', {self.isolated} isolated'}"
        )

    def profile(self) -> pd.DataFrame:
        """The bound at fifteen deltas, all of which hold together: :func:`one_run_profile`.

        Raises
        ------
        ValueError
            Where the auditor chose how many guesses to make, as with ``n_canaries``.
        """
        return one_run_profile(self.correct, self.guesses, self._fixed(), self.confidence)

    @property
    def mu_lower(self) -> float:
        """A lower confidence bound of the mu of Gaussian differential privacy, by :func:`one_run_mu_bound`."""
        return one_run_mu_bound(self.correct, self.guesses, self._fixed(), self.confidence)

    def _fixed(self) -> int:
        """The number of canaries, if that of the guesses was fixed before the run."""
        if self.isolated is not None:
            raise ValueError(
                "with a delta the number of guesses must be fixed before the run, and with n_canaries it was chosen "
                "from the model: use one_run(canaries=(X, y), guesses=(n, n))"
            )
        return self.canaries

    def to_dict(self) -> dict:
        """Numbers and strings only, ready for JSON; an infinite claim is None."""
        return {**asdict(self), "claim": None if math.isinf(self.claim) else self.claim}


@seal("thm-one-run", "thm-one-run-delta")
def one_run_bound(correct, guesses, confidence: float = 0.95, *, delta: float = 0.0, canaries=None) -> float:
    """The largest epsilon that so many right guesses refute.

    Parameters
    ----------
    correct, guesses : int
        ``correct`` of ``guesses`` guesses were right.
    confidence : float
        Between 0 and 1.
    delta : float
        In [0, 1), and fixed before the run: the bound is on the epsilon that the mechanism has with this delta.
    canaries : int, optional
        How many coins there were, those passed over included; at least ``guesses``.  Needed with a delta.

    Returns
    -------
    float
        The largest epsilon at which so many right guesses or more have probability at most ``1 - confidence``, by
        :func:`one_run_p_value`; 0 where there is none, for then nothing is refuted.

    Raises
    ------
    ValueError
        More right guesses than guesses, more guesses than canaries, or a delta and no number of canaries.

    Guarantee
    ---------
    If the loss is epsilon, this exceeds epsilon with probability at most ``1 - confidence``
    (:prf:ref:`thm-one-run`).  With a delta the same holds if ``guesses`` was fixed before the run, or is the most that
    the auditor would have made (:prf:ref:`thm-one-run-delta`).

    Source
    ------
    Steinke, Nasr and Jagielski (2023), theorem for pure differential privacy.  The probability with a delta is the
    exact one, where theirs is an upper bound.

    Examples
    --------
    >>> round(one_run_bound(74, 100, 0.95), 3)
    0.654
    >>> round(one_run_bound(74, 100, 0.95, delta=1e-4, canaries=1000), 3)
    0.647
    """
    confidence = check_confidence(confidence)
    correct, guesses, canaries, delta = _check_counts(correct, guesses, delta, canaries)
    if correct == 0:
        return 0.0
    most = max(0.0, float(logit(_least_chance(correct, guesses, confidence))))
    return _least_epsilon(correct, guesses, canaries, delta, 1 - confidence, most) if delta else most


@seal("thm-one-run", "thm-one-run-delta")
def one_run_p_value(
    correct,
    guesses,
    claim: float | None = None,
    *,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    canaries=None,
) -> float:
    """The p-value of a claimed epsilon, rho or mu: a bound on the probability of so many right guesses under it.

    Parameters
    ----------
    correct, guesses, delta, canaries
        As in :func:`one_run_bound`.
    claim : float, optional
        The claimed epsilon, zero or more.  Leave it out if a ``rho`` or a ``mu`` is claimed.
    rho : float, optional
        The claimed rho of zero-concentrated privacy, zero or more; ``delta`` is then 0, and ``canaries`` is needed.
    mu : float, optional
        The claimed mu of Gaussian differential privacy, zero or more; likewise.

    Returns
    -------
    float
        With ``K ~ Bin(guesses, e^claim / (1 + e^claim))`` and ``b = P[K >= correct]`` the least of 1 and
        ``b + canaries * delta * b * (1 - b) / (correct * P[K = correct])``.  Of a rho or a mu the least of these over
        15 deltas from 1e-8 to 0.1, each with the epsilon that is assured with it.

    Guarantee
    ---------
    A mechanism that is (claim, delta)-private makes so many guesses right, or more, with at most this probability, and
    there is one that attains it.  All deltas of a rho or a mu hold at once, so that the least of their bounds is one
    (:prf:ref:`thm-one-run-delta`).

    Examples
    --------
    >>> round(one_run_p_value(74, 100, 0.5, delta=1e-4, canaries=1000), 4)
    0.0118
    >>> round(one_run_p_value(174, 200, rho=0.1, canaries=1000), 4)
    0.0167
    """
    if mu is not None:
        if claim is not None or rho is not None:
            raise TypeError("give what the mechanism promises, claim, rho or mu, and no two of them")
        if check_delta(delta):
            raise ValueError(f"a mu has no delta; got mu = {shown(mu)} with delta = {shown(delta)}")
        assured: Callable[[float], float] = partial(gaussian_epsilon, check_mu(mu))
    else:
        epsilon, delta, rho = check_promise(claim, delta, rho)
        if rho is None:
            correct, guesses, canaries, delta = _check_counts(correct, guesses, delta, canaries)
            return _worst_tail(correct, guesses, canaries, epsilon, delta)
        assured = partial(epsilon_of, rho)
    correct, guesses, canaries, _ = _check_counts(correct, guesses, 0.0, canaries, with_delta=True)
    return min(_worst_tail(correct, guesses, canaries, assured(each), each) for each in _DELTAS)


@seal("thm-one-run-delta")
def one_run_profile(correct, guesses, canaries, confidence: float = 0.95) -> pd.DataFrame:
    """Lower confidence bounds of the privacy profile, epsilon by delta, from the guesses of one run.

    Parameters
    ----------
    correct, guesses, canaries : int
        ``correct`` of ``guesses`` guesses about some of ``canaries`` canaries were right.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    DataFrame
        ``delta``, 15 of them from 1e-8 to 0.1, and ``epsilon_lower``, by :func:`one_run_bound`.

    Guarantee
    ---------
    With probability at least ``confidence`` each of these is at most the epsilon that the mechanism has with this
    delta, all of them together, if ``guesses`` was fixed before the run, or is the most that the auditor would have
    made (:prf:ref:`thm-one-run-delta`).

    Notes
    -----
    A trade-off function is a family of such pairs, and these bound it: a mechanism that is private with a trade-off
    function whose epsilon is below one of these at its delta makes so many guesses right with probability at most
    ``1 - confidence``.

    Examples
    --------
    >>> one_run_profile(174, 200, 1000).epsilon_lower.round(3).tolist()[::4]
    [1.545, 1.545, 1.542, 0.0]
    """
    bounds = [one_run_bound(correct, guesses, confidence, delta=each, canaries=canaries) for each in _DELTAS]
    return pd.DataFrame({"delta": _DELTAS, "epsilon_lower": bounds})


@seal("thm-one-run-delta")
def one_run_rho_bound(correct, guesses, canaries, confidence: float = 0.95) -> float:
    """The largest rho of zero-concentrated privacy that so many right guesses refute.

    Parameters
    ----------
    correct, guesses, canaries, confidence
        As in :func:`one_run_profile`.

    Returns
    -------
    float
        The largest rho whose :func:`one_run_p_value` is at most ``1 - confidence``; 0 where there is none.

    Guarantee
    ---------
    If the mechanism is rho-concentrated, this exceeds rho with probability at most ``1 - confidence``, if ``guesses``
    was fixed before the run, or is the most that the auditor would have made (:prf:ref:`thm-one-run-delta`).

    Examples
    --------
    >>> round(one_run_rho_bound(174, 200, 1000), 3)
    0.133
    """
    return _largest_refuted(
        one_run_profile(correct, guesses, canaries, confidence),
        lambda rho, epsilon, delta: epsilon_of(rho, delta) <= epsilon,
    )


@seal("thm-one-run-delta")
def one_run_mu_bound(correct, guesses, canaries, confidence: float = 0.95) -> float:
    """The largest mu of Gaussian differential privacy that so many right guesses refute.

    Parameters
    ----------
    correct, guesses, canaries, confidence
        As in :func:`one_run_profile`.

    Returns
    -------
    float
        The largest mu whose :func:`one_run_p_value` is at most ``1 - confidence``; 0 where there is none.

    Guarantee
    ---------
    That of :func:`one_run_rho_bound`, for a mechanism of which no test errs less than that of two normal laws of
    variance 1 whose means are mu apart.

    Source
    ------
    Dong, Roth and Su (2022), corollary 2.13, for the pairs of epsilon and delta of a mu.

    Examples
    --------
    >>> round(one_run_mu_bound(174, 200, 1000), 3)
    0.585
    """
    return _largest_refuted(
        one_run_profile(correct, guesses, canaries, confidence),
        lambda mu, epsilon, delta: gaussian_delta(epsilon, mu) <= delta,
    )


def _largest_refuted(profile: pd.DataFrame, assures: Callable[[float, float, float], bool]) -> float:
    """The largest parameter that assures an epsilon and a delta which are refuted; 0 if there is none.

    ``assures(parameter, epsilon, delta)`` holds for all parameters up to some one.
    """
    useful = [(bound, each) for each, bound in profile.itertuples(index=False) if bound > 0]
    if not useful:
        return 0.0

    def refuted(parameter: float) -> bool:
        for place, pair in enumerate(useful):
            if assures(parameter, *pair):
                useful.insert(0, useful.pop(place))  # most likely it refutes the next one, too
                return True
        return False

    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
    return last_where(refuted, low, high, _CURVE_HALVINGS)[0]


@seal("thm-one-run", "thm-one-run-delta")
def one_run(
    estimator: Any,
    *,
    n_canaries: int | None = None,
    canaries: Any = None,
    replacements: Any = None,
    records: Any = None,
    score: Callable | None = None,
    guesses: tuple[int, int] | None = None,
    claim: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    confidence: float = 0.95,
    random_state=None,
) -> OneRunAudit:
    """A lower confidence bound of the loss of ``estimator``, from one fit.

    Parameters
    ----------
    estimator : PrivateForestClassifier or scikit-learn estimator
        Configured; it is copied, and the copy is fitted.  With ``n_canaries`` a private forest classifier, whose schema
        is the universe: a cell is a combination of feature codes.  With ``canaries`` anything with ``fit(X, y)``.
    n_canaries : int, optional
        So many canaries in cells of their own, at most as many as there are cells; the guesses weigh the noise of each
        leaf.  Give this or ``canaries``, and with this none of the parameters down to ``rho``.
    canaries : (X, y), optional
        Features, an array or frame of shape (m, n_features), and labels (m,); no two the same.
    replacements : (X, y), optional
        For learners under replace-one: as many records, of which one is put in for each canary that is out.
    records : (X, y), optional
        Further records to learn from, which are always in.
    score : callable, optional
        ``score(model, X, y)`` returns a number for each of these records, larger where it is more likely to have been
        learned from.  By default the log-odds that the model gives to the label, in the order of the log loss.
    guesses : (int, int), optional
        That so many of the highest scores are in, and so many of the lowest are out; the rest is passed over.  Fixed
        beforehand; by default one half each, and nothing is passed over.
    claim : float, optional
        The epsilon that the learner promises with ``delta``; a learner of this library says it by itself.
    delta : float
        In [0, 1), fixed beforehand: the bound is on the epsilon that the learner has with this delta.
    rho : float, optional
        The rho that the learner promises in the place of an epsilon, and then without a delta: ``violated`` says
        whether ``rho_lower`` exceeds it.
    confidence : float
        Of the bound.
    random_state : None, int or Generator
        Seed of the canaries, the coins and the fit; the estimator's own is not used.

    Returns
    -------
    OneRunAudit

    Raises
    ------
    ValueError
        Fewer cells than canaries, no leaf isolates a canary, canaries that are the same, fewer canaries than guesses,
        scores that are no numbers, or a claim under a relation under which the ends of a coin are no neighbours.
    TypeError
        Not a private forest classifier, no ``fit``, or numbers of guesses that are not fixed.
    RuntimeError
        The fit fails on the records that the coins have put together.

    Guarantee
    ---------
    If the loss is at most the claim under the relation, the probability that ``violated`` is true is at most
    ``1 - confidence``: with ``n_canaries`` :prf:ref:`thm-one-run`, with ``canaries`` :prf:ref:`thm-one-run-delta`.
    That rests on coins that nothing but the training data depends on: a ``score`` that looks the records up elsewhere,
    or numbers of guesses that are the best of several tried on this fit, are outside it.

    Notes
    -----
    Under add-remove a canary is in or out.  Under replace-one it is always in, and the coin decides its class between
    two.  A guess weighs what the leaves say of the canaries they isolate by the noise the leaves were charged for, and
    the auditor abstains where that is too close to even: which guesses to make is decided from the released model
    alone, so that the *expected* bound is largest, and the theorem allows that.

    Leaves isolate every canary where a leaf is a cell: random trees with ``split="multiway"`` and as many levels as
    features, and eDPRF with ``stop="never"`` and as many splits as features.  Elsewhere some canaries share their
    leaves, and they are not guessed.  What is seen is the loss at the leaves: budget spent on choosing splits does not
    show.

    With a delta the number of guesses may not depend on the model, so that ``n_canaries`` is for ``delta=0``.

    Examples
    --------
    Thirty records with labels at random, of which a model without privacy remembers whom it has met:

    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from dpforest.audit import one_run
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    >>> found = one_run(KNeighborsClassifier(1), canaries=(X, y), guesses=(10, 5), claim=1.0, random_state=0)
    >>> found.canaries, found.guesses, found.relation
    (30, 15, 'add-remove')
    """
    if (n_canaries is None) == (canaries is None):
        raise TypeError("give one of n_canaries, for a private forest classifier, and canaries=(X, y), for any learner")
    if canaries is None:
        others = {
            "replacements": replacements,
            "records": records,
            "score": score,
            "guesses": guesses,
            "claim": claim,
            "delta": delta or None,
            "rho": rho,
        }
        if given := [name for name, value in others.items() if value is not None]:
            raise TypeError(f"with n_canaries there is no {' and no '.join(given)}: give canaries=(X, y)")
        return _of_forest(estimator, n_canaries, confidence, random_state)
    confidence = check_confidence(confidence)
    relation = ADD_REMOVE if replacements is None else REPLACE_ONE
    epsilon, delta, rho = _promise(estimator, claim, delta, rho, relation)
    rng = np.random.default_rng(random_state)
    correct, made, m = guess_by_score(estimator, canaries, replacements, records, score, guesses, rng)
    bound = one_run_bound(correct, made, confidence, delta=delta, canaries=m)
    lower = None if rho is None else one_run_rho_bound(correct, made, m, confidence)
    violated = bound > epsilon if lower is None or rho is None else lower > rho
    return OneRunAudit(bound, epsilon, violated, correct, made, m, None, confidence, relation, delta, rho, lower)


def _promise(estimator: Any, claim: Any, delta: Any, rho: Any, relation: str) -> tuple[float, float, float | None]:
    """The epsilon that is claimed, infinite if none is, the delta, and the rho if one is claimed."""
    promised = getattr(estimator, "relation", None)
    if promised in RELATIONS and promised != relation:
        ends = "replacements=, one for each canary" if relation == ADD_REMOVE else "no replacements="
        raise ValueError(
            f"the learner's promise is under {promised}, and data sets that differ in the coin of a canary are no "
            f"neighbours under it: give {ends}"
        )
    if claim is not None or rho is not None:
        return check_promise(claim, delta, rho)
    delta = check_delta(delta)
    if isinstance(estimator, PrivateEstimator) and estimator.promised_delta() <= delta:
        return check_epsilon(estimator.epsilon), delta, None
    return math.inf, delta, None


def _of_forest(estimator: Any, n_canaries: Any, confidence: Any, random_state: Any) -> OneRunAudit:
    """Canaries in cells of their own, guessed by what the leaves were charged for."""
    if not isinstance(estimator, PrivateForestClassifier):
        raise TypeError(
            "with n_canaries one_run fits a private forest classifier of this library, not "
            f"{type(estimator).__name__}; for another learner give canaries=(X, y), or count your own guesses and use "
            "one_run_bound"
        )
    check_count(n_canaries, "n_canaries")
    confidence = check_confidence(confidence)
    epsilon, relation = check_epsilon(estimator.epsilon), check_relation(estimator.relation)
    schema = estimator.audited_schema()
    estimator.check_parameters()
    rng = np.random.default_rng(random_state)
    sizes = schema.cardinalities(estimator.bins(schema)).tolist()
    if (n_cells := math.prod(sizes)) < n_canaries:
        raise ValueError(
            f"{shown(n_canaries)} canaries need cells of their own, and the schema has {n_cells}: lower n_canaries, or "
            "declare more features, categories or bins"
        )
    cells = _distinct_cells(rng, n_canaries, sizes, n_cells)
    coins = rng.integers(2, size=n_canaries).astype(bool)
    ends = _ends(rng, n_canaries, schema.n_classes, relation)  # class of the canary if the coin shows 0, 1; -1 for out
    classes = np.where(coins, ends[1], ends[0])
    there = classes >= 0
    door, notes = _noise_recorder()
    forest, _ = estimator.replay(
        np.ascontiguousarray(cells[there].T), classes[there].astype(np.uint8), schema, epsilon, Seeded(rng), door=door
    )
    odds, isolated = _log_odds(forest, notes, leaf_of(forest, cells), ends)
    if not isolated.any():
        raise ValueError(
            "no leaf isolates a canary: use fewer canaries or deeper trees, split='multiway' for random trees, "
            "stop='never' for eDPRF"
        )
    guessed = _worth_guessing(odds, confidence)
    correct, guesses = int(((odds > 0) == coins)[guessed].sum()), int(guessed.sum())
    bound = one_run_bound(correct, guesses, confidence)
    return OneRunAudit(
        bound, epsilon, bound > epsilon, correct, guesses, n_canaries, int(isolated.sum()), confidence, relation
    )


def _check_counts(
    correct: Any, guesses: Any, delta: Any, canaries: Any, with_delta: bool = False
) -> tuple[int, int, int, float]:
    correct, guesses = check_count(correct, "correct", least=0), check_count(guesses, "guesses", least=0)
    if correct > guesses:
        raise ValueError(f"there cannot be more right guesses than guesses: {shown(correct)} of {shown(guesses)}")
    delta = check_delta(delta)
    if canaries is None:
        if delta or with_delta:
            raise ValueError("with a delta or a rho it counts how many canaries there were: give canaries")
        canaries = guesses
    canaries = check_count(canaries, "canaries", least=0)
    if guesses > canaries:
        raise ValueError(f"there cannot be more guesses than canaries: {shown(guesses)} of {shown(canaries)}")
    return correct, guesses, canaries, delta


@seal("thm-one-run-delta")
def _worst_tail(v: int, r: int, m: int, epsilon: float, delta: float) -> float:
    """The largest probability that an (epsilon, delta)-private mechanism gives to ``v`` right guesses of ``r``."""
    if v == 0:
        return 1.0
    # beta = P[K >= v] and its complement, each by itself, for neither may be a difference of doubles near 1
    beta, rest = betainc(v, r - v + 1, expit(epsilon)), betainc(r - v + 1, v, expit(-epsilon))
    if not delta or not rest:
        return float(beta)
    with np.errstate(over="ignore"):
        steps = exp(epsilon) * np.arange(r - v, 0, -1) / np.arange(v + 1, r + 1)
        ratio = 1 + np.cumprod(steps).sum()  # of beta to P[K = v]
    if math.isinf(ratio):  # then P[K = v] is below all doubles, and beta is 1 within rounding
        return 1.0
    return float(min(1.0, beta + m * delta * rest * ratio / v))


def _least_epsilon(v: int, r: int, m: int, delta: float, alpha: float, most: float) -> float:
    """The largest epsilon up to ``most`` at which the worst tail is at most alpha; 0 if there is none.

    The tail grows with epsilon: it is the largest over ever more mechanisms.
    """

    def refuted(epsilon: float) -> bool:
        return _worst_tail(v, r, m, epsilon, delta) <= alpha

    return last_where(refuted, 0.0, most, _HALVINGS)[0] if refuted(0.0) else 0.0


def _least_chance(correct, guesses, confidence: float):
    """The chance p at which so many right guesses or more have probability ``1 - confidence``."""
    # P[Bin(n, p) >= v] is the regularised incomplete beta function I_p(v, n - v + 1)
    return betaincinv(correct, guesses - correct + 1, 1 - confidence)


def _distinct_cells(rng, n: int, sizes: list[int], n_cells: int) -> np.ndarray:
    """``n`` different cells, uint8 of shape (n, n_features), uniformly among the first 2^62."""
    index = rng.choice(min(n_cells, 1 << 62), size=n, replace=False, shuffle=False)
    codes = np.empty((n, len(sizes)), dtype=np.uint8)
    for feature, size in enumerate(sizes):
        index, codes[:, feature] = np.divmod(index, size)
    return codes


def _ends(rng, n: int, n_classes: int, relation: str) -> np.ndarray:
    one = rng.integers(n_classes, size=n)
    if relation == ADD_REMOVE:
        return np.stack([np.full(n, -1), one])
    return np.stack([(one + 1 + rng.integers(n_classes - 1, size=n)) % n_classes, one])


@dataclass
class _Notes:
    """How the leaves of a fit were made noisy, which is public, and how many trees share the records out."""

    leaves: list[tuple[np.ndarray, LeafNoise]]
    trees: int = 1


def _noise_recorder() -> tuple[type[Curator], _Notes]:
    """A curator that notes how each leaf is made noisy, and looks at no answer."""
    notes = _Notes([])

    class Noting(Curator):
        def assign(self, n_trees):
            notes.trees = n_trees
            super().assign(n_trees)

        def split_equally(self, n_trees):
            notes.trees = n_trees
            super().split_equally(n_trees)

        def noisy(self, query, scopes, epsilon):
            if isinstance(query, ClassCounts):
                unit = query.sensitivity[self._ledger.relation]
                rate = np.broadcast_to(np.asarray(epsilon, dtype=float) / unit, len(query.nodes))
                notes.leaves.append((query.nodes, LeafNoise("counts", rate)))
            return super().noisy(query, scopes, epsilon)

        def choose(self, candidates, scopes, epsilon, how):
            if isinstance(candidates, LabelCandidates):
                score, n_max = candidates.scored_by(how)
                rate = self._rate(score, epsilon, how.calibration, n_max, candidates.n_choices)
                notes.leaves.append((candidates.nodes, LeafNoise("label", rate, mechanism=how.mechanism)))
            return super().choose(candidates, scopes, epsilon, how)

    return Noting, notes


def _log_odds(forest: Forest, notes: _Notes, leaf: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds that each coin shows 1, from the leaves that isolate its canary, and whether there is such a leaf.

    Validity needs none of this to be right: a learner whose leaves are not what they were charged for is guessed worse.
    """
    load = np.bincount(leaf.ravel(), minlength=forest.n_nodes)
    alone = load[leaf] == 1
    counts = [np.eye(forest.values.shape[1] + 1, dtype=np.int64)[end][:, :-1] for end in ends]  # -1: nothing
    known = np.zeros(forest.n_nodes, dtype=np.int64)  # batch of each node; 0: a leaf without a charge, which is exact
    rate = np.full(forest.n_nodes, np.inf)
    kinds = [LeafNoise("counts", np.inf)]
    for nodes, noise in notes.leaves:
        known[nodes], rate[nodes] = len(kinds), noise.rate
        kinds.append(noise)
    odds = np.zeros(leaf.shape)
    for number, noise in enumerate(kinds):
        canary, tree = np.nonzero(alone & (known[leaf] == number))
        at = leaf[canary, tree]
        out, into = (noise.log_likelihood(forest.values[at], end[canary], rate[at]) for end in counts)
        odds[canary, tree] = np.clip(into - out, -SURE, SURE)
    together = odds.sum(axis=1)
    if notes.trees > 1:  # the canary is in one of the trees, and the auditor does not know in which
        together = reduce(logaddexp, odds.T) - log(forest.n_trees)
    return np.clip(together, -SURE, SURE), alone.any(axis=1)


def _worth_guessing(odds: np.ndarray, confidence: float) -> np.ndarray:
    """Which coins to guess so that the bound is largest if the odds are right."""
    sure = np.round(np.abs(odds), 9)
    levels, of = np.unique(-sure, return_inverse=True)  # the surest first
    size = np.bincount(of)
    expected = np.cumsum(size / (1 + exp(levels)))
    best = int(np.argmax(_least_chance(expected, np.cumsum(size), confidence)))
    return (sure > 0) & (of <= best)
