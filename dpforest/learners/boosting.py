"""Boosting: the rounds of the private learners, and AdaBoost's as papers publish them.

Each round grows a tree on weighted records: the weight of a record is small where the trees before are right.  The
votes of its leaves are computed from their noisy weighted class counts, which are charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from dpforest import scores
from dpforest.arithmetic import exp, log
from dpforest.curator import WEIGHTS
from dpforest.learners.audited import EXACT
from dpforest.learners.base import WithDelta, check_covered
from dpforest.learners.growth import MAX_NODES, Frontier, one_vote
from dpforest.learners.parameters import AsPublished, Integer, Number, OneOf, Share, check_count, check_number
from dpforest.learners.run import Leak, Run, Selection
from dpforest.mechanisms import SELECTIONS
from dpforest.messages import listed, shown
from dpforest.models.boosted import SCALE, BoostedClassifier, BoostedForest
from dpforest.models.forest import Forest
from dpforest.privacy import HISTOGRAM_SENSITIVITY

__all__ = [
    "CLASSES",
    "CRITERIA",
    "OTHER",
    "AdaBoost",
    "ClassWeights",
    "PrivateBoostedClassifier",
    "Round",
    "boosted",
    "class_shares",
    "discrete_votes",
    "real_votes",
    "whole_votes",
]

# Settings for audits of boosted learners.  The pairs with the largest loss have two records of class 1, to which one of
# class 0 is added: at weight 1/4 of class 1, it counts as much as four of the others.
CLASSES = {"class_weight": {1: 0.25}}
OTHER = {"n_estimators": 2, "votes": "discrete", "weights": "logistic"}

LOUDEST = 100.0  # size of a vote, at most: of the bound that a user may set, and of any other vote
#: Utilities whose proved range holds for weighted records, too, whatever their number.
CRITERIA = tuple(name for name, score in scores.CLASSIFICATION.items() if score.homogeneous and not score.needs_cap)


# -- votes -----------------------------------------------------------------------------------------------------------


def real_votes(counts: np.ndarray, noise: np.ndarray, *, smoothing: float, alpha_max: float) -> np.ndarray:
    """Real AdaBoost's votes: the log shares of the classes in each leaf, less their mean.

    Parameters
    ----------
    counts : ndarray of float, shape (n_leaves, n_classes)
        Noisy weighted class counts of a round's leaves; a negative one is taken as 0.
    noise : ndarray of float, shape (n_leaves,)
        Scale of the noise of each leaf's counts.
    smoothing : float
        To each leaf ``smoothing * noise`` records are added, divided among the classes as in the whole round.
    alpha_max : float
        The largest vote, for a class or against it.

    Returns
    -------
    ndarray of float, shape (n_leaves, n_classes)
        Zero throughout where all counts are 0 or less.
    """
    total = np.maximum(counts.sum(axis=0), 0)
    shares = total / total.sum() if total.any() else np.full(len(total), 1 / len(total))
    counts = np.maximum(counts, 0) + smoothing * noise[:, None] * shares
    size = counts.sum(axis=1, keepdims=True)
    shares = np.where(size > 0, counts / np.where(size > 0, size, 1), shares)
    # a share below exp(-2 alpha_max) counts as that: the logarithm of 0 is not finite
    log_shares = log(np.maximum(shares, exp(-2 * alpha_max)))
    return np.clip(log_shares - log_shares.mean(axis=1, keepdims=True), -alpha_max, alpha_max)


def discrete_votes(counts: np.ndarray, *, alpha_max: float) -> np.ndarray:
    """AdaBoost's votes: each leaf votes for its most frequent class, with a weight that the round's error sets.

    With tau the share of the round's counts that is not of its leaf's most frequent class, that weight is SAMME's
    ``alpha = ln((1 - tau) / tau) + ln(n_classes - 1)``, at least 0 and at most ``alpha_max``; with two classes, twice
    AdaBoost's.  Parameters and returns are those of :func:`real_votes`.
    """
    best = one_vote(counts).astype(float)
    counts = np.maximum(counts, 0)
    right, wrong = (counts * best).sum(), (counts * (1 - best)).sum()
    if not right:
        return 0 * best
    alpha = log(right * (counts.shape[1] - 1) / wrong) if wrong else math.inf
    return min(max(alpha, 0.0), alpha_max) * best


def whole_votes(votes: np.ndarray) -> np.ndarray:
    """Votes as the whole numbers that are released, in units of ``1 / SCALE``: int64, shape of ``votes``."""
    return np.rint(votes * SCALE).astype(np.int64)


# -- class weights ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassWeights:
    """Rule of a parameter: None, or a mapping from classes to public weights; ``balanced``: or the word "balanced".

    Only a learner that releases class totals can have balanced weights, since they are computed from these.
    """

    balanced: bool = False

    @property
    def words(self) -> str:
        return 'mapping, "balanced" or None' if self.balanced else "mapping or None"

    def check(self, value: Any, name: str) -> None:
        if value is None or isinstance(value, Mapping):
            return
        if self.balanced and isinstance(value, str) and value == "balanced":
            return
        other = ", or be 'balanced'" if self.balanced else "; weights like 'balanced' would be read off the records"
        raise ValueError(
            f"{name} must be None or map classes to positive numbers that are public, such as {{'no': 1, 'yes': 3}}"
            f"{other}; got {shown(value)}"
        )


def class_shares(class_weight: Mapping[Any, float] | None, classes: np.ndarray) -> np.ndarray | None:
    """The public weight of each class as a share of the largest.

    Parameters
    ----------
    class_weight : mapping or None
        From classes to positive numbers; a class that is not in it has weight 1.
    classes : ndarray, shape (n_classes,)

    Returns
    -------
    ndarray of float64, shape (n_classes,), or None for no weights
    """
    ClassWeights().check(class_weight, "class_weight")
    if class_weight is None:
        return None
    known = classes.tolist()
    if unknown := [label for label in class_weight if label not in known]:
        raise ValueError(f"class_weight names {shown(unknown[0])}, which is not among the classes {listed(known)}")
    shares = [check_number(class_weight.get(label, 1), f"class_weight of {shown(label)}", 1e-9, 1e9) for label in known]
    return np.array(shares) / max(shares)


# -- rounds on weights of the own record -----------------------------------------------------------------------------


class Round:
    """A round of boosting: its budget, and the leaves of its tree with their noisy counts.

    Parameters
    ----------
    run : Run
        Its frontier is the root of the round's tree.
    epsilon : float
        Budget of the round.
    """

    def __init__(self, run: Run, epsilon: float) -> None:
        self.epsilon = epsilon
        self._run, self._sensitivity = run, HISTOGRAM_SENSITIVITY[run.relation]
        self._leaves: list[Frontier] = []
        self._counts: list[np.ndarray] = []
        self._noise: list[np.ndarray] = []

    def settle(self, leaves: Frontier, epsilon: float) -> None:
        """Make these nodes leaves, and ask for their weighted class counts at budget ``epsilon``, which is charged."""
        self._leaves.append(leaves)
        self._counts.append(self._run.count_classes(leaves, epsilon) / self._run.unit)
        self._noise.append(np.full(len(leaves), self._scale(epsilon)))

    def _scale(self, epsilon: float) -> float:
        """Scale of the noise of a count at this budget, in records."""
        if self._run.ledger.delta:  # the scale whose noise has the same variance
            return math.sqrt(self._sensitivity / (4 * epsilon))
        return self._sensitivity / epsilon

    @property
    def leaves(self) -> Frontier:
        """All leaves, in the order in which they were settled."""
        return Frontier.join(self._leaves)

    @property
    def counts(self) -> np.ndarray:
        """Noisy weighted class counts of the leaves, in records, float64 of shape (n_leaves, n_classes)."""
        return np.concatenate(self._counts)

    @property
    def noise(self) -> np.ndarray:
        """Scale of the noise of each leaf's counts, in records, float64 of shape (n_leaves,)."""
        return np.concatenate(self._noise)


def boosted(run: Run, weights: str) -> BoostedForest:
    """The model that a run releases: its trees in the order of their rounds, with ``weights`` as their link."""
    forest = run.release()
    return BoostedForest(Forest.join(forest.tree(number) for number in range(forest.n_trees)), weights)


class PrivateBoostedClassifier(WithDelta, BoostedClassifier):
    """Base of the private boosted classifiers: a paper's module adds its parameters and what grows in a round.

    ``max_nodes`` is an attribute here; a subclass may make it a parameter.
    """

    n_estimators: Annotated[int, Integer(1), "Rounds."] = 10
    votes: Annotated[
        Literal["real", "discrete"],
        AsPublished(),
        """A leaf votes for every class by the log of its share (:func:`~dpforest.learners.boosting.real_votes`), or for
        its most frequent class by SAMME's alpha of the round (:func:`~dpforest.learners.boosting.discrete_votes`).  A
        round at chance, or whose counts are all 0 or less, gets no vote.""",
    ] = "real"
    weights: Annotated[
        str,
        OneOf(WEIGHTS),
        AsPublished(),
        """How a record's margin m makes its weight: ``min(1, exp(-m / 2))`` or ``min(1, 2 / (1 + exp(m)))``.  In the
        released counts weights are whole steps, 127 of them for two classes and fewer for more; below half a step a
        record no longer counts.  At most 128 classes.""",
    ] = "capped"
    learning_rate: Annotated[float, Number(1e-6, 10), AsPublished(), "Factor of all votes."] = 1.0
    alpha_max: Annotated[float, Number(1e-6, LOUDEST), AsPublished(), "Bound of a round's votes before that."] = 2.0
    smoothing: Annotated[
        float,
        Number(0, 1e6),
        AsPublished(),
        "Of real votes: so many times its noise is added to a leaf's counts, divided among classes as in the round.",
    ] = 1.0
    class_weight: Annotated[
        Mapping[Any, float] | None,
        ClassWeights(),
        AsPublished(),
        "Public weights of the classes, positive, 1 where not named; only their ratios matter.",
    ] = None
    sampling: Annotated[
        Literal["all", "assignment"],
        AsPublished(),
        """``"all"``: every round sees all records, at ``epsilon / n_estimators``.  ``"assignment"``: each record
        belongs to one round by a coin, and each round has all of ``epsilon``.""",
    ] = "all"
    selection: Annotated[str, OneOf(SELECTIONS), AsPublished(), "Mechanism of the splits."] = "permute-and-flip"
    criterion: Annotated[str, OneOf(CRITERIA), AsPublished(), "Split utility."] = "gini"
    leaf_share: Annotated[
        float,
        Share(),
        AsPublished(),
        """Share of a round's budget that is kept for its leaves; the levels above have equal parts of the rest, and a
        leaf that ends a branch early also gets what the levels below it do not need.""",
    ] = 0.5
    max_nodes = MAX_NODES

    def rounds(self, run: Run) -> Iterator[Round]:
        """The rounds of the repair: a record's weight depends on no other record (:prf:ref:`thm-own-weights`).

        The caller grows a tree in each round, and settles its leaves.  When it asks for the next round, the leaves of
        the last one get their votes.
        """
        assert run.schema.classes is not None
        public = class_shares(self.class_weight, run.schema.classes)
        epsilon = run.start_forest(self.n_estimators, self.sampling, self.max_nodes)
        for number in run.rounds(self.n_estimators):
            if number:  # the curator adds the votes of the tree before to each record's margin
                tree = run.tree(number - 1)
                run.weigh_records(tree, tree.values / SCALE, self.weights, public)
            elif public is not None:  # no votes yet: the weights of the classes alone
                run.weigh_records(None, None, self.weights, public)
            this = Round(run, epsilon)
            yield this
            # the caller that asked for the round has grown its tree
            votes = self.learning_rate * self._leaf_votes(this.counts, this.noise)
            run.set_leaf_values(this.leaves, whole_votes(votes))

    def _leaf_votes(self, counts: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Votes of leaves, by the parameter ``votes``: float64, shape (n_leaves, n_classes)."""
        if self.votes == "real":
            return real_votes(counts, noise, smoothing=self.smoothing, alpha_max=self.alpha_max)
        return discrete_votes(counts, alpha_max=self.alpha_max)

    def _selection(self, stop_margin: float | None = None) -> Selection:
        """How splits are chosen; with a margin *stop* is a candidate."""
        return Selection(scores.CLASSIFICATION[self.criterion], self.selection, stop_margin=stop_margin)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.max_nodes, "max_nodes", least=self.n_estimators)
        if self.variant == "proved":
            score = scores.CLASSIFICATION[self.criterion]
            check_covered(score, self.relation, sampling=self.sampling, weighted=True)

    def draws_record_coins(self) -> bool:
        return self.sampling == "assignment" and self.n_estimators > 1

    def lacking(self) -> dict[str, str]:
        if self.variant == "proved" and self.n_estimators > 1:
            return {EXACT: "noisy counts decide the weights of the next round, so that replay cannot visit them"}
        return super().lacking()


# -- rounds as published ---------------------------------------------------------------------------------------------


class AdaBoost:
    """AdaBoost's rounds as published papers run them, on exact errors and on weights that add up to 1.

    Parameters
    ----------
    run : Run
        A fit to two classes, whose forest was started.
    error, update : Leak
        The reads without a charge of a tree's error and of the new weights: what is read, and where in the paper.

    Notes
    -----
    An error tau above 1/2 ends the rounds, without that round unless it is the first, whose tree then has no vote.  A
    tree without errors has an infinite ``alpha = ln((1 - tau) / tau) / 2``: it outvotes all before it, and no round
    follows.  A leaf votes alpha for its class and against the other.
    """

    def __init__(self, run: Run, error: Leak, update: Leak) -> None:
        if (n_classes := run.schema.n_classes) != 2:
            raise ValueError(
                f"variant='published' tells two classes apart, as in the paper, not {n_classes}: use 'proved'"
            )
        self._run, self._error, self._update = run, error, update
        self._trees: list[Forest] = []
        self._alphas: list[float] = []
        self._ended = False

    def rounds(self, n_rounds: int) -> Iterator[tuple[int, float]]:
        """The number of each round, and the alpha of the round before, or 1; the caller has to ``add`` its tree."""
        for number in self._run.rounds(n_rounds):
            yield number, self._alphas[-1] if self._alphas else 1.0
            if self._ended:
                return

    def add(self, tree: Forest) -> None:
        """Append a tree that has one vote in each leaf, weighted by its alpha, and update the records' weights."""
        # under the new weights the last tree errs exactly half: rounding must not lift that above 1/2
        tau = round(self._run.peek_error(tree, self._error), 12)
        self._ended = tau > 0.5 or not tau
        if tau > 0.5:  # stop: without this tree, or if it is the first, with its votes at 0
            self._trees = self._trees or [replace(tree, values=np.zeros_like(tree.values))]
            return
        # without errors alpha is infinite: here it outvotes all before it
        alpha = log((1 - tau) / tau) / 2 if tau else 1 + math.fsum(self._alphas)
        is_leaf = (tree.feature < 0)[:, None]
        against = is_leaf - tree.values
        # alpha for the class of a leaf, -alpha for the other: the sign of the sum is the prediction
        self._trees.append(replace(tree, values=whole_votes(alpha * (tree.values - against))))
        self._alphas.append(alpha)
        if tau:  # no round follows a tree without errors
            self._run.boost(tree, alpha, self._update)

    def release(self) -> BoostedForest:
        """The trees that were added, each with its alpha as its votes."""
        return BoostedForest(Forest.join(self._trees), "adaboost")
