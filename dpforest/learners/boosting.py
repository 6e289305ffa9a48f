"""Boosted trees: the released model, whose leaves hold votes, and the rounds of the private learners.

A round's tree learns from records that count for little where the trees before it are right.  What it says, and how
loudly, is computed from the noisy counts of its leaves, which are paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dpforest import scores
from dpforest.arithmetic import exp, log
from dpforest.curator import WEIGHTS, Curator
from dpforest.learners.audited import EXACT
from dpforest.learners.base import PrivateEstimator, check_covered
from dpforest.learners.growth import Frontier, Growth, one_vote
from dpforest.learners.parameters import check_choice, check_count, check_letter, check_number, check_share
from dpforest.learners.sharing import share_out
from dpforest.mechanisms import SELECTIONS
from dpforest.models.boosted import SCALE, BoostedClassifier, BoostedForest
from dpforest.models.forest import Forest
from dpforest.privacy import HISTOGRAM_SENSITIVITY

__all__ = [
    "CLASSES", "CRITERIA", "OTHER", "PrivateBoostedClassifier", "Round", "adaboost", "class_shares", "discrete_votes",
    "peek", "real_votes", "whole_votes",
]  # fmt: skip

# for audits of boosted learners: telling pairs have two of class 1, and one of 0 comes
CLASSES = {"class_weight": {1: 0.25}}
OTHER = {"n_estimators": 2, "votes": "discrete", "weights": "logistic"}

LOUDEST = 100.0  # vote that may be asked for
#: Utilities that stay within their sensitivity where records have weights, however many there are.
CRITERIA = tuple(
    name for name, score in scores.CLASSIFICATION.items() if score.homogeneous and not score.needs_cap
)  # fmt: skip


# -- the released model ----------------------------------------------------------------------------------------------


# -- votes -----------------------------------------------------------------------------------------------------------


def real_votes(counts: np.ndarray, noise: np.ndarray, *, smoothing: float, alpha_max: float) -> np.ndarray:
    """Real AdaBoost's votes: the log shares of the classes in each leaf, less their mean.

    Parameters
    ----------
    counts : ndarray of float, shape (n_leaves, n_classes)
        Noisy weighted counts of a round's leaves; what is negative is taken as 0.
    noise : ndarray of float, shape (n_leaves,)
        Scale of their noise.
    smoothing : float
        So many times the noise are added to each leaf, in the proportions of the whole round.
    alpha_max : float
        The largest vote, for a class or against it.

    Returns
    -------
    ndarray of float, shape (n_leaves, n_classes)
        Zero throughout where all counts are 0 or less.
    """
    whole = np.maximum(counts.sum(axis=0), 0)
    shares = whole / whole.sum() if whole.any() else np.full(len(whole), 1 / len(whole))
    counts = np.maximum(counts, 0) + smoothing * noise[:, None] * shares
    size = counts.sum(axis=1, keepdims=True)
    shares = np.where(size > 0, counts / np.where(size > 0, size, 1), shares)
    # a class that is not there says as much as one of share exp(-2 alpha_max)
    said = log(np.maximum(shares, exp(-2 * alpha_max)))
    return np.clip(said - said.mean(axis=1, keepdims=True), -alpha_max, alpha_max)


def discrete_votes(counts: np.ndarray, *, alpha_max: float) -> np.ndarray:
    """AdaBoost's votes: each leaf for its commonest class, all of a round as loudly as the round is right.

    With tau the share of the round's counts that is not of its leaf's commonest class, that is SAMME's
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
    """Votes as the whole numbers that are released."""
    return np.rint(votes * SCALE).astype(np.int64)


# -- the learners ----------------------------------------------------------------------------------------------------


class Round:
    """The leaves of the round that grows now, and what was paid for them.

    Parameters
    ----------
    growth : Growth
    curator : Curator
    relation : {"add-remove", "replace-one"}
    """

    def __init__(self, growth: Growth, curator: Curator, relation: str):
        self._growth, self._curator, self._unit = growth, curator, HISTOGRAM_SENSITIVITY[relation]
        self._leaves: list[Frontier] = []
        self._counts: list[np.ndarray] = []
        self._noise: list[np.ndarray] = []

    def settle(self, leaves: Frontier, epsilon: float) -> None:
        """Ask for the weighted class counts of these leaves, at that budget."""
        counts = self._curator.count_classes(self._growth, leaves.nodes, leaves.scopes, epsilon)
        self._leaves.append(leaves)
        self._counts.append(counts / self._curator.unit)
        self._noise.append(np.full(len(leaves), self._unit / epsilon))

    def answers(self) -> tuple[np.ndarray, np.ndarray]:
        """Noisy weighted counts of all leaves, shape (n_leaves, n_classes), and the scale of their noise."""
        return np.concatenate(self._counts), np.concatenate(self._noise)

    def vote(self, votes: np.ndarray) -> None:
        """Say what the leaves answer: float64, shape (n_leaves, n_classes)."""
        ends = np.cumsum([len(leaves) for leaves in self._leaves])[:-1]
        for leaves, said in zip(self._leaves, np.split(whole_votes(votes), ends), strict=True):
            self._growth.settle(leaves, said)


class PrivateBoostedClassifier(PrivateEstimator, BoostedClassifier):
    """Base of the private boosted classifiers: a paper's module adds its parameters and what it grows in a round.

    A subclass has the parameters of :class:`~dpforest.learners.base.PrivateEstimator` and ``n_estimators``, ``votes``,
    ``weights``, ``learning_rate``, ``alpha_max``, ``smoothing``, ``class_weight``, ``sampling``, ``selection``,
    ``criterion``, ``leaf_share`` and ``max_nodes``; it grows with ``_grow_round``, and as published
    with ``_grow_published``.
    """

    def _grow(self, curator, chance, schema, ledger, epsilon) -> BoostedForest:
        if self.variant == "published":
            return self._grow_published(curator, chance, schema, ledger, epsilon)
        public = class_shares(self.class_weight, schema.classes)
        each, sharing = share_out(self.sampling, curator, epsilon, self.n_estimators, self.relation)
        growth = Growth(
            self.n_estimators, schema.n_features, schema.n_classes, ledger, sharing, self.max_nodes
        )  # fmt: skip
        if public is not None:
            curator.weigh(class_weights=public, rule=self.weights)
        trees: list[Forest] = []
        for number in range(self.n_estimators):
            growth.begin(number)
            grown = Round(growth, curator, self.relation)
            self._grow_round(growth, curator, chance, schema, each, grown)
            grown.vote(self.learning_rate * self._say(*grown.answers()))
            trees.append(growth.release().tree(number))
            if number + 1 < self.n_estimators:
                said = BoostedForest(trees[-1]).votes()
                curator.weigh(trees[-1], said, class_weights=public, rule=self.weights)
        return BoostedForest(Forest.join(trees))

    def _grow_round(self, growth, curator, chance, schema, epsilon: float, grown: Round) -> None:
        """Grow the tree whose root is the frontier, and settle its leaves with ``grown``."""
        raise NotImplementedError

    def _grow_published(self, curator, chance, schema, ledger, epsilon) -> BoostedForest:
        raise NotImplementedError

    def _say(self, counts: np.ndarray, noise: np.ndarray) -> np.ndarray:
        if self.votes == "real":
            return real_votes(counts, noise, smoothing=self.smoothing, alpha_max=self.alpha_max)
        return discrete_votes(counts, alpha_max=self.alpha_max)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_nodes, "max_nodes", least=self.n_estimators)
        check_choice(self.votes, "votes", ("real", "discrete"))
        check_choice(self.weights, "weights", WEIGHTS)
        check_choice(self.sampling, "sampling", ("all", "assignment"))
        check_number(self.learning_rate, "learning_rate", 1e-6, 10)
        check_number(self.alpha_max, "alpha_max", 1e-6, LOUDEST)
        check_number(self.smoothing, "smoothing", 0, 1e6)
        check_choice(self.selection, "selection", SELECTIONS)
        check_choice(self.criterion, "criterion", CRITERIA)
        check_share(self.leaf_share, "leaf_share")
        if self.variant == "proved":
            check_covered(
                scores.CLASSIFICATION[self.criterion], self.relation, sampling=self.sampling, weighted=True
            )  # fmt: skip
        _check_mapping(self.class_weight)

    def lacking(self) -> dict[str, str]:
        if self.variant == "proved" and self.n_estimators > 1:
            return {EXACT: "noisy counts decide the weights of the next round, so that replay cannot visit them"}
        return super().lacking()

    def _check_letter(self, schema, *names: str) -> None:
        """As published: two classes, and none of the options that only the proved variant has."""
        if schema.n_classes != 2:
            raise ValueError(
                f"variant='published' tells two classes apart, as in the paper, not {schema.n_classes}: use 'proved'"
            )
        every = ("votes", "weights", "learning_rate", "alpha_max", "smoothing", "class_weight", "sampling", *names)
        default = type(self)().get_params()
        check_letter({name: getattr(self, name) for name in every if getattr(self, name) != default[name]})


def adaboost(
    curator: Curator, n_rounds: int, grow: Callable[[int, float], Forest], error: tuple[str, str],
    update: tuple[str, str],
) -> BoostedForest:  # fmt: skip
    """AdaBoost's rounds as published papers run them, on exact errors and on weights that add up to 1.

    Parameters
    ----------
    curator : Curator
    n_rounds : int
    grow : callable
        ``grow(number, alpha)``: the tree of that round, with one vote in each leaf; ``alpha`` is that of the round
        before, 1 at first.
    error, update : pairs of str
        What is read unpaid for a tree's error and for the new weights, and where the paper does it.

    Notes
    -----
    An error tau above 1/2 ends the rounds, without that round unless it is the first, whose tree then has no vote.  A
    tree without errors has an infinite ``alpha = ln((1 - tau) / tau) / 2``: it outvotes all before it, and no round
    follows.  A leaf votes alpha for its class and against the other.
    """
    trees: list[Forest] = []
    alphas: list[float] = []
    for number in range(n_rounds):
        tree = grow(number, alphas[-1] if alphas else 1.0)
        tau = round(peek(curator.peek_error, error, tree), 12)  # the last tree again has 1/2, but for rounding
        if tau > 0.5:
            trees = trees or [replace(tree, values=np.zeros_like(tree.values))]
            break
        alphas.append(log((1 - tau) / tau) / 2 if tau else 1 + math.fsum(alphas))
        against = (tree.feature < 0)[:, None] - tree.values
        trees.append(replace(tree, values=whole_votes(alphas[-1] * (tree.values - against))))
        if not tau:
            break
        peek(curator.peek_boost, update, tree, alphas[-1])
    return BoostedForest(Forest.join(trees))


def peek(query: Callable, leak: tuple[str, str], *arguments):
    """The unpaid answer to a query of the curator; ``leak`` is what is read, and where the paper reads it."""
    what, where = leak
    return query(*arguments, what=what, where=where)


def _check_mapping(class_weight) -> None:
    if class_weight is not None and not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None or map classes to positive numbers that are public, such as {'no': 1, 'yes': 3};"
            f" weights like 'balanced' would be read off the records; got {class_weight!r}"
        )


def class_shares(class_weight, classes) -> np.ndarray | None:
    """The public weight of each class, the largest being 1; None for no weights.

    Parameters
    ----------
    class_weight : mapping or None
        From classes to positive numbers; a class that is not in it has weight 1.
    classes : ndarray
    """
    _check_mapping(class_weight)
    if class_weight is None:
        return None
    known = classes.tolist()
    if unknown := [label for label in class_weight if label not in known]:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not among the classes {known}")
    shares = [check_number(class_weight.get(label, 1), f"class_weight of {label!r}", 1e-9, 1e9) for label in known]
    return np.array(shares) / max(shares)
