"""The exact output law of a learner on one data set, by replay of the code that ships.

Noisy counts have infinitely many values.  Where they are released as they are, the law of the forest's shape and the
exact counts beneath the noise say all: what the noise adds to the loss is known (lem-geometric-leaves).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpforest.chance import NotEnumerableError, Replay, outcomes
from dpforest.curator import Curator
from dpforest.estimators import PrivateForestClassifier
from dpforest.privacy import check_epsilon, claim
from dpforest.schema import Schema
from dpforest.tree import Forest

__all__ = [
    "Dataset", "Law", "Record", "Shape", "Silent", "check_counts_unused", "counts_and_rates", "describe",
    "encode", "geometric_log_ratio", "law_of", "law_of_shapes", "released",
]  # fmt: skip

Record = tuple[int, ...]  # feature codes, then the class code
Dataset = tuple[Record, ...]  # sorted
Law = dict[Hashable, Any]  # output -> probability


@dataclass
class Shape:
    """How probable a forest's shape is, and what its noisy counts hide: exact counts, and the rate of each."""

    probability: float
    counts: np.ndarray
    rates: np.ndarray


def released(forest: Forest) -> Hashable:
    """What tells one released forest from another: all its arrays, as byte strings in the order of its fields."""
    return tuple(np.asarray(getattr(forest, column.name)).tobytes() for column in fields(forest))


def law_of(
    estimator: PrivateForestClassifier, schema: Schema, dataset: Dataset,
    view: Callable[[Forest], Hashable] = released, base=None,
) -> Law:  # fmt: skip
    """The exact law of what an observer sees of the estimator's fit on ``dataset``: output -> probability.

    ``view`` says what is seen of the forest: all of it, or, say, its predictions alone.  With ``base``, the
    probabilities are fractions, see :func:`~dpforest.audit.exact.replay.exact_audit`.
    """
    law: Law = defaultdict(float if base is None else Fraction)
    for forest, probability in outcomes(_fit(estimator, schema, dataset), None if base is None else _Rational(base)):
        law[view(forest)] += probability
    return dict(law)


def encode(records, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes, uint8, shape (n_features, n_records), and labels of records of codes, as a learner's seam takes them."""
    table = np.asarray(records, dtype=np.uint8).reshape(-1, n_features + 1)
    return np.ascontiguousarray(table[:, :-1].T), np.ascontiguousarray(table[:, -1])


def _fit(estimator, schema: Schema, dataset: Dataset, door=None) -> Callable[[Any], Forest]:
    """The estimator's fit on ``dataset``, as a program of chance alone."""
    codes, labels = encode(dataset, schema.n_features)
    epsilon = check_epsilon(estimator.epsilon)
    return lambda chance: estimator._learn(codes, labels, schema, epsilon, chance, door)[0]


def describe(estimator, schema: Schema, dataset: Dataset, output: Hashable) -> str:
    """The released forest ``output`` in words."""
    for forest, _ in outcomes(_fit(estimator, schema, dataset, _Quiet), _Silent()):
        if released(forest) == output:
            return "\n".join(forest.describe(schema.columns, tree) for tree in range(forest.n_trees))
    return ""


# -- fractions -----------------------------------------------------------------------------------------------------


class _Rational(Replay):
    """Replay in fractions, where every weight of a selection is a whole power of ``base``."""

    def __init__(self, base):
        super().__init__()
        self._base = Fraction(base)
        if self._base <= 1:
            raise ValueError(f"base must be a fraction above 1, not {base!r}")

    def _uniform(self, n):
        return [Fraction(1, n)] * n

    def select(self, kind, law, scores, rate):
        laws = {"exponential": _exponential, "permute-and-flip": _permute_and_flip}
        if kind not in laws:
            raise ValueError(f"no law in fractions for the mechanism {kind!r}")
        chosen = []
        for row, own in zip(scores, np.broadcast_to(rate, len(scores)), strict=True):
            powers = own * (row - row.max()) / math.log(self._base)
            whole = np.round(np.where(np.isfinite(powers), powers, 0))
            if np.isinf(own) or not np.allclose(powers[np.isfinite(powers)], whole[np.isfinite(powers)], atol=1e-9):
                raise ValueError(
                    f"exp(rate * score) is not always a whole power of {self._base}: choose whole-number scores and an "
                    "epsilon that makes it one, or leave base out"
                )
            weights = [
                self._base ** int(w) if ok else Fraction(0) for w, ok in zip(whole, np.isfinite(row), strict=True)
            ]
            chosen.append(self._choose(laws[kind](weights)))
        return np.array(chosen, dtype=np.int64)


def _exponential(weights: list[Fraction]) -> list[Fraction]:
    return [weight / sum(weights) for weight in weights]


def _permute_and_flip(weights: list[Fraction]) -> list[Fraction]:
    """``p_r`` times the integral over [0, 1] of the product over s != r of (1 - p_s x), as a polynomial in x."""
    law = []
    for at, accept in enumerate(weights):
        polynomial = [Fraction(1)]
        for other in weights[:at] + weights[at + 1 :]:
            shifted = [Fraction(0), *polynomial]
            polynomial = [a - other * b for a, b in zip([*polynomial, Fraction(0)], shifted, strict=True)]
        law.append(accept * sum(c / (power + 1) for power, c in enumerate(polynomial)))
    return law


# -- noisy counts --------------------------------------------------------------------------------------------------


class Silent:
    """A source of chance that leaves geometric noise out, and keeps its rates: what it adds to the loss is known."""

    def __init__(self):
        super().__init__()
        self.asked: list[np.ndarray] = []  # the rates of each draw since they were last looked at

    def two_sided_geometric(self, rate, size):
        self.asked.append(np.broadcast_to(np.asarray(rate, float), size))
        return np.zeros(size, dtype=np.int64)


def counts_and_rates(chance: Silent, ask: Callable[[], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The exact counts beneath the noisy ones that ``ask()`` returns, and the rate that the noise of each is drawn at.

    It is the rate that reaches ``chance``, whatever was asked for and charged; counts that get no noise have an
    infinite one.
    """
    chance.asked.clear()
    counts = ask()
    if len(chance.asked) > 1:
        raise NotEnumerableError(
            f"the noise of {len(chance.asked)} draws on the same counts has a law that no lemma covers: sample it"
        )
    return counts, chance.asked[0] if chance.asked else np.full(counts.shape, np.inf)


class _Silent(Silent, Replay):
    """Replay without geometric noise."""


class _Quiet(Curator):
    """Answers ``said`` to every question for noisy counts, and keeps the exact counts for the auditor."""

    said = 0

    def __init__(self, *table, **doors):
        super().__init__(*table, **doors)
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []  # counts and rates

    def count_classes(self, splits, nodes, scopes, epsilon):
        ask = partial(super().count_classes, splits, nodes, scopes, epsilon)
        counts, rates = counts_and_rates(self._chance, ask)  # type: ignore[arg-type]
        self.kept.append((counts.ravel(), rates.ravel()))
        return np.full_like(counts, self.said)


def law_of_shapes(
    estimator: PrivateForestClassifier, schema: Schema, dataset: Dataset, view: Callable[[Forest], Hashable] = released
) -> dict[Hashable, Shape]:
    """The exact law of the shape of a forest whose leaves hold noisy counts, and the counts beneath the noise.

    Raises
    ------
    NotEnumerableError
        If a shape may hide different counts, by coins that are not released.
    """
    law: dict[Hashable, Shape] = {}
    doors: list[_Quiet] = []

    def door(*table, **options):
        doors.append(_Quiet(*table, **options))
        return doors[-1]

    for forest, probability in outcomes(_fit(estimator, schema, dataset, door), _Silent()):
        kept = doors.pop().kept or [(np.empty(0), np.empty(0))]
        counts, rates = (np.concatenate(column) for column in zip(*kept, strict=True))
        seen = law.setdefault(view(forest), Shape(0.0, counts, rates))
        if not (np.array_equal(seen.counts, counts) and np.array_equal(seen.rates, rates)):
            raise NotEnumerableError(
                "the counts of a forest depend on coins that are not released, so its law is a mixture that no lemma "
                "covers: audit one tree, n_estimators=1"
            )
        seen.probability += probability
    return law


@claim("lem-geometric-leaves")
def geometric_log_ratio(shift, rate, other) -> np.ndarray:
    """Largest log ratio of two-sided geometric noise at ``rate`` to the same at rate ``other``, ``shift`` apart.

    ``rate * shift`` where the rates agree; infinite where the first has the heavier tail.  An infinite rate is no
    noise.

    Guarantee
    ---------
    Sharp: :prf:ref:`lem-geometric-leaves`.
    """
    shift, rate, other = np.abs(np.asarray(shift, float)), np.asarray(rate, float), np.asarray(other, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        lighter = np.log(np.tanh(rate / 2) / np.tanh(other / 2)) + other * shift
        equal = np.where(shift == 0, 0.0, rate * shift)
    return np.where(rate == other, equal, np.where(rate < other, np.inf, lighter))


def check_counts_unused(estimator, schema: Schema, dataset: Dataset) -> None:
    """Raise unless the shape of the forest has the same law whatever the noisy counts say."""
    laws = []
    for said in (0, 1000):
        door = type("_Said", (_Quiet,), {"said": said})
        law: Law = defaultdict(float)
        for forest, probability in outcomes(_fit(estimator, schema, dataset, door), _Silent()):
            law[forest.feature.tobytes(), forest.mask.tobytes(), forest.first_child.tobytes()] += probability
        laws.append(law)
    same = laws[0].keys() == laws[1].keys() and all(math.isclose(p, laws[1][shape]) for shape, p in laws[0].items())
    if not same:
        raise NotEnumerableError(
            "the learner uses its noisy counts for more than its leaves, which no lemma covers: sample it"
        )
