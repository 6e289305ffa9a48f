"""One run: a lower bound of the privacy loss from a single fit, for models too slow to fit many times.

Each of many *canaries*, records in feature cells of their own, is put into the training data or left out by a fair
coin.  One fit later the auditor guesses the coins from the released model.  If the loss is at most epsilon, no guess
is right with a probability of more than ``e^epsilon / (1 + e^epsilon)``, whatever the other guesses were; so too many
right ones refute the claim (:prf:ref:`thm-one-run`).  How much of the true loss this shows depends on how well each
canary can be seen by itself, and a leaf that holds no other canary isolates it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import reduce

import numpy as np
from scipy.special import betaincinv, logit

from dpforest import scores
from dpforest.arithmetic import exp, log, logaddexp
from dpforest.audit.attacks.observer import LeafNoise, leaf_of
from dpforest.audit.sampling.bounds import check_confidence
from dpforest.chance import Seeded
from dpforest.curator import Curator
from dpforest.curator.queries import ClassCounts
from dpforest.curator.selections import LabelCandidates
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.models.forest import Forest
from dpforest.privacy import ADD_REMOVE, check_epsilon, check_relation, claim

__all__ = ["OneRunAudit", "one_run", "one_run_bound"]

SURE = 50.0  # log-odds beyond which a guess cannot become surer


@dataclass(frozen=True)
class OneRunAudit:
    """The outcome of an audit in one run.

    Attributes
    ----------
    epsilon_lower : float
        Lower confidence bound of the privacy loss.
    claim : float
        What the learner promises; infinite for ``"non-private"``.
    violated : bool
        Whether the bound exceeds the claim.
    correct, guesses, canaries : int
        Of so many canaries so many were guessed, and so many of the guesses were right; on the rest the auditor
        abstained.
    isolated : int
        Canaries that shared no leaf with another in at least one tree.
    confidence : float
    relation : str
    """

    epsilon_lower: float
    claim: float
    violated: bool
    correct: int
    guesses: int
    canaries: int
    isolated: int
    confidence: float
    relation: str

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        return (
            f"eps >= {self.epsilon_lower:.4g} with {100 * self.confidence:g} % confidence under {self.relation} "
            f"(claim {self.claim:.6g}: {verdict}) from one run: {self.correct} of {self.guesses} guesses right, "
            f"{self.canaries} canaries, {self.isolated} isolated"
        )

    def to_dict(self) -> dict:
        """Numbers and strings only, ready for JSON; an infinite claim is None."""
        return {**asdict(self), "claim": None if math.isinf(self.claim) else self.claim}


@claim("thm-one-run")
def one_run_bound(correct, guesses, confidence: float = 0.95) -> float:
    """The largest epsilon that so many right guesses refute.

    Parameters
    ----------
    correct, guesses : int
        ``correct`` of ``guesses`` guesses were right.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    float
        The largest epsilon with ``P[Bin(guesses, e^epsilon / (1 + e^epsilon)) >= correct] <= 1 - confidence``; 0 where
        there is none, for then nothing is refuted.

    Guarantee
    ---------
    If the loss is epsilon, this exceeds epsilon with probability at most ``1 - confidence``
    (:prf:ref:`thm-one-run`).

    Source
    ------
    Steinke, Nasr and Jagielski (2023), theorem for pure differential privacy.

    Examples
    --------
    >>> round(one_run_bound(74, 100, 0.95), 3)
    0.654
    """
    confidence = check_confidence(confidence)
    correct, guesses = check_count(correct, "correct", least=0), check_count(guesses, "guesses", least=0)
    if correct > guesses:
        raise ValueError(f"there cannot be more right guesses than guesses: {shown(correct)} of {shown(guesses)}")
    if correct == 0:
        return 0.0
    return max(0.0, float(logit(_least_chance(correct, guesses, confidence))))


@claim("thm-one-run")
def one_run(
    estimator: PrivateForestClassifier, *, n_canaries: int, confidence: float = 0.95, random_state=None
) -> OneRunAudit:
    """A lower confidence bound of the loss of ``estimator``, from one fit.

    Parameters
    ----------
    estimator : PrivateForestClassifier
        Configured, not fitted.  Its schema is the universe: a cell is a combination of feature codes.
    n_canaries : int
        At most as many as there are cells.
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
        Fewer cells than canaries, or no leaf isolates a canary.
    TypeError
        Not a private forest classifier.

    Guarantee
    ---------
    If the loss is at most the claim under the estimator's relation, the probability that ``violated`` is true is at
    most ``1 - confidence`` (:prf:ref:`thm-one-run`).

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
    """
    if not isinstance(estimator, PrivateForestClassifier):
        raise TypeError(
            f"one_run fits a private forest classifier of this library, not {type(estimator).__name__}; for another "
            "learner count your own guesses and use one_run_bound"
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
            f"{n_canaries} canaries need cells of their own, and the schema has {n_cells}: lower n_canaries, or "
            "declare more features, categories or bins"
        )
    cells = _distinct_cells(rng, n_canaries, sizes, n_cells)
    coins = rng.integers(2, size=n_canaries).astype(bool)
    ends = _ends(rng, n_canaries, schema.n_classes, relation)  # class of the canary if the coin shows 0, 1; -1 for out
    classes = np.where(coins, ends[1], ends[0])
    there = classes >= 0
    door, notes = _noting()
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


def _noting() -> tuple[type[Curator], _Notes]:
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
                rate = self._rate(scores.majority, epsilon, how.calibration, np.inf, len(candidates.nodes))
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
    known = np.zeros(forest.n_nodes, dtype=np.int64)  # batch of each node; 0: a leaf that nobody charged for is exact
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
