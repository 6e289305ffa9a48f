"""The oracle of the boosting chapter: weighted counts, AdaBoost's numbers, and what they give away, in exact fractions.

Like ``oracle`` it imports nothing from dpforest.  Weighted data are sequences of ``(value, weight)``; a *split* is a
tuple of such children.  A rate enters as its exponential, ``base``, and a loss as its exponential too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import oracle

# ---- weighted impurities ---------------------------------------------------------------------------------------


def inner(one, other) -> Fraction:
    """Inner product of two vectors of fractions."""
    return sum((Fraction(a) * Fraction(b) for a, b in zip(one, other, strict=True)), Fraction(0))


def weighted_sse(points) -> Fraction:
    """Sum of ``w |v - m|^2`` around the weighted mean m of the ``(vector, weight)``; 0 without weight."""
    total = sum((Fraction(w) for _, w in points), Fraction(0))
    if not total:
        return Fraction(0)
    sums = [sum(Fraction(v[i]) * w for v, w in points) for i in range(len(points[0][0]))]
    return sum(w * inner(v, v) for v, w in points) - inner(sums, sums) / total


def class_weights(child, classes: int) -> list[Fraction]:
    """Weight of each class among ``(label, weight)``."""
    return [sum((Fraction(w) for label, w in child if label == c), Fraction(0)) for c in range(classes)]


def weighted_gini(split, classes: int) -> Fraction:
    """Minus the weighted Gini impurity of the children of ``(label, weight)``."""
    corners = [tuple(int(c == label) for c in range(classes)) for label in range(classes)]
    return -sum((weighted_sse([(corners[label], w) for label, w in child]) for child in split if child), Fraction(0))


def weighted_normalised_gini(split, classes: int) -> Fraction:
    """The same over the weight of all records."""
    total = sum((Fraction(w) for child in split for _, w in child), Fraction(0))
    return weighted_gini(split, classes) / total if total else Fraction(0)


def weighted_majority(split, classes: int) -> Fraction:
    """Weight that the heaviest class of each child has."""
    return sum((max(class_weights(child, classes)) for child in split), Fraction(0))


def weighted_sets(classes: int, weights, size: int) -> list[tuple]:
    """Every division into two children of at most ``size`` records of ``(label, weight)``."""
    kinds = [(child, label, w) for child in range(2) for label in range(classes) for w in weights]
    return [
        tuple(tuple((label, w) for side, label, w in data if side == child) for child in range(2))
        for data in oracle.datasets(kinds, size)
    ]


def steepest(score, classes: int, weights, size: int) -> tuple[Fraction, Fraction]:
    """Least and greatest change of ``score`` when one record joins one child; both children, all data of ``size``."""
    low = high = Fraction(0)
    for split in weighted_sets(classes, weights, size):
        before = score(split, classes)
        for child, label, w in product(range(2), range(classes), weights):
            after = tuple((*part, (label, w)) if at == child else part for at, part in enumerate(split))
            change = score(after, classes) - before
            low, high = min(low, change), max(high, change)
    return low, high


def spreads(score, classes: int, weights, size: int, relation: str) -> tuple[Fraction, Fraction]:
    """Largest change of a score, and largest spread of changes over two candidates, of records (x_0, x_1, label, w)."""
    kinds = [(a, b, label, w) for a, b, label in product((0, 1), (0, 1), range(classes)) for w in weights]
    largest = spread = Fraction(0)

    @cache
    def scores(data):
        halves = (tuple(tuple((r[2], r[3]) for r in data if r[at] == side) for side in (0, 1)) for at in (0, 1))
        return [score(split, classes) for split in halves]

    for one, other in oracle.pairs(kinds, size, relation):
        moves = [after - before for before, after in zip(scores(one), scores(other), strict=True)]
        largest = max(largest, *map(abs, moves))
        spread = max(spread, abs(moves[0] - moves[1]))
    return largest, spread


# ---- AdaBoost's own numbers ------------------------------------------------------------------------------------


def error_rate(labels, said, weights=None) -> Fraction:
    """AdaBoost's error: the share of the weight on records that the tree gets wrong."""
    weights = weights or [Fraction(1)] * len(labels)
    wrong = sum((w for y, g, w in zip(labels, said, weights, strict=True) if y != g), Fraction(0))
    return wrong / sum(weights)


def odds(error: Fraction):
    """``exp(2 alpha)``, the odds of being right; alpha is half its logarithm."""
    return (1 - error) / error if error else math.inf


def normalised(weights) -> list[Fraction]:
    return [Fraction(w) / sum(weights) for w in weights]


def weight_shift(labels, weights, label: int, weight) -> Fraction:
    """L1 change of the normalised class weights when a record of that label and raw weight joins."""
    classes = sorted({*labels, label})
    before = dict(zip(range(len(labels)), normalised(weights), strict=True))
    after = normalised([*weights, weight])
    grown = [*labels, label]
    return sum(
        abs(
            sum((before[i] for i, y in enumerate(labels) if y == c), Fraction(0))
            - sum((w for y, w in zip(grown, after, strict=True) if y == c), Fraction(0))
        )
        for c in classes
    )


# ---- noise and labels ------------------------------------------------------------------------------------------


def gap_tail(least: int, base) -> Fraction:
    """P(X - Y >= least) for independent two-sided geometric X and Y, ``alpha = 1 / base``."""
    alpha = 1 / Fraction(base)
    if least <= 0:
        return 1 - gap_tail(1 - least, base)
    at_zero = (1 + alpha**2) / (1 - alpha**2)
    unit = ((1 - alpha) / (1 + alpha)) ** 2  # P(X - Y = k) = unit alpha^|k| (|k| + at_zero)
    return unit * alpha**least * ((least + at_zero) / (1 - alpha) + alpha / (1 - alpha) ** 2)


def says_first(counts, base) -> Fraction:
    """Probability that the first of two noisy counts is at least the second: the label of a published leaf."""
    first, second = counts
    return gap_tail(second - first, base)


# ---- what the published algorithm reads ------------------------------------------------------------------------


def best_features(data, features: int) -> frozenset[int]:
    """The binary features whose split of the records (x_0, ..., y) has the least Gini impurity, by exact counts."""
    scores = {}
    for feature in range(features):
        children = oracle.split_by_value(data, 2, lambda record, at=feature: record[at])
        scores[feature] = oracle.gini(tuple(tuple(record[-1] for record in child) for child in children))
    best = max(scores.values())
    return frozenset(feature for feature, score in scores.items() if score == best)


def smallest_flip(features: int, relation: str, size: int):
    """The first pair of neighbours, by size, whose best split is unique on both sides and not the same."""
    universe = list(product((0, 1), repeat=features + 1))
    found = [
        pair
        for pair in oracle.pairs(universe, size, relation)
        if all(len(best_features(data, features)) == 1 for data in pair)
        and best_features(pair[0], features) != best_features(pair[1], features)
    ]
    return min(found, key=lambda pair: (len(pair[0]) + len(pair[1]), pair)) if found else None


def is_pruned(holdout, says, above: int) -> bool:
    """Reduced-error pruning of a split on the first feature: its leaf ``above`` errs no more often than its children.

    Parameters
    ----------
    holdout : sequence of (x, y)
    says : sequence of int
        The label of the child of each x.
    above : int
        The label of the node if it were a leaf.
    """
    return sum(y != above for _, y in holdout) <= sum(y != says[x] for x, y in holdout)


# ---- boosting, repaired ----------------------------------------------------------------------------------------


def own_weight(record, votes) -> int:
    """Steps of a weight of two: half weight for a record that the earlier trees get right more often than wrong."""
    right = sum(1 if vote(record) == record[-1] else -1 for vote in votes)
    return 1 if right > 0 else 2


def heaviest(child) -> int:
    """The weight that the majority of a child has."""
    return max(child)


def apart(child) -> int:
    """How far the two classes of a child are apart, as far as that exceeds half a weight of 1."""
    return max(abs(child[0] - child[1]) - 1, 0)


def boosted_worst(one, other, rounds: int, split_base, leaf_base, votes=(), score=heaviest) -> Fraction:
    """Worst ratio of ``rounds`` private stumps on neighbours of records (a, b, y), the later ones on weighted records.

    A round chooses a or b by permute-and-flip, with the sum of ``score`` over their children, and releases noisy class
    weights of both children; each leaf votes for the class with the larger one, and the weights of the next round are
    :func:`own_weight`.  Bases are per step, half of a record of full weight.
    Later rounds know earlier ones through their votes alone, so the ratios of the outputs with the same votes can be
    replaced by their largest, one leaf at a time.
    """
    if not rounds:
        return Fraction(1)
    laws, leaves = [], []
    for data in (one, other):
        parts = [oracle.split_by_value(data, 2, lambda record, at=feature: record[at]) for feature in (0, 1)]
        heavy = [
            [[sum(own_weight(r, votes) for r in part if r[-1] == c) for c in (0, 1)] for part in halves]
            for halves in parts
        ]
        scores = [sum(score(child) for child in halves) for halves in heavy]
        laws.append(oracle.permute_and_flip(oracle.acceptance(scores, split_base)))
        leaves.append(heavy)
    worst = Fraction(0)
    for feature in (0, 1):
        choice = laws[1][feature] / laws[0][feature]
        per_leaf = [_by_vote(leaves[0][feature][side], leaves[1][feature][side], leaf_base) for side in (0, 1)]
        for labels in product((0, 1), repeat=2):
            ratio = choice * per_leaf[0][labels[0]] * per_leaf[1][labels[1]]

            def vote(record, feature=feature, labels=labels):
                return labels[record[feature]]

            rest = boosted_worst(one, other, rounds - 1, split_base, leaf_base, (*votes, vote), score)
            worst = max(worst, ratio * rest)
    return worst


def _by_vote(counts, others, base) -> dict[int, Fraction]:
    """Largest ratio of ``others`` to ``counts`` over the noisy pairs that vote for each class; ties go to class 0."""
    cap = max(*counts, *others, 1)
    best: dict[int, Fraction] = {}
    laws = [oracle.noisy_histogram(c, base, cap) for c in (counts, others)]
    for output in laws[0]:
        label = int(output[1] > output[0])
        best[label] = max(best.get(label, Fraction(0)), laws[1][output] / laws[0][output])
    return best


def boosted_worst_case(rounds: int, split_base, leaf_base, size: int, relation: str) -> Fraction:
    """The largest :func:`boosted_worst` over all pairs of neighbours of at most ``size`` records, both ways round."""
    universe = list(product((0, 1), repeat=3))
    return max(
        boosted_worst(*ways, rounds, split_base, leaf_base)
        for pair in oracle.pairs(universe, size, relation)
        for ways in (pair, pair[::-1])
    )
