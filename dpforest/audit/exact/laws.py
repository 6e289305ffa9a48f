"""The exact output law of a learner on one data set, by replay of the code that ships.

Noisy answers have infinitely many values.  Where they are released as they are, the law of the model's shape and the
exact numbers beneath the noise say all; :mod:`~dpforest.audit.exact.noisy` tells what the noise adds to the loss.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpforest import arithmetic
from dpforest.audit.exact.noisy import NoiselessChance, Noisy, counts_and_rates
from dpforest.chance import NotEnumerableError, Replay, outcomes
from dpforest.curator import Curator
from dpforest.curator.queries import ClassCounts
from dpforest.learners.base import PrivateEstimator
from dpforest.messages import shown
from dpforest.models.forest import Forest
from dpforest.privacy import check_epsilon
from dpforest.schema import TARGET_LEVELS, Schema

__all__ = [
    "TARGETS",
    "Dataset",
    "Law",
    "Record",
    "Shape",
    "answers",
    "check_counts_unused",
    "describe",
    "encode",
    "law_of",
    "law_of_labels",
    "law_of_shapes",
    "released",
]

Record = tuple[int, ...]  # feature codes, then the code of the class or of the target
Dataset = tuple[Record, ...]  # sorted
Law = dict[Hashable, Any]  # output -> probability

#: Target codes that stand for all: the ends of the range, where one record moves a sum most.
TARGETS = (0, TARGET_LEVELS)

_BRANCHES = 200_000  # of the fit on one data set


@dataclass
class Shape:
    """How probable a model's shape is, and what its noisy answers hide.

    Attributes
    ----------
    counts : ndarray of int, shape (m, cells)
        The exact numbers that may lie beneath the noise: several, where coins decide that are not released.
    weights : ndarray of float, shape (m,)
        Probability of the shape together with each of them.
    rates : ndarray of float, shape (cells,)
        Of the noise of each cell; infinite for none.
    gaussian : bool
        Whether the noise is discrete Gaussian; else it is two-sided geometric.
    """

    counts: np.ndarray
    weights: np.ndarray
    rates: np.ndarray
    gaussian: bool = False

    @property
    def probability(self) -> float:
        return float(self.weights.sum())


def answers(schema: Schema, targets=None) -> list[int]:
    """The codes that a record's last entry may have: of all classes, or ``targets``, steps of a regression's grid.

    Parameters
    ----------
    schema : Schema
    targets : iterable of int, optional
        At least two different steps, from 0 to ``TARGET_LEVELS``; None takes the two ends of the range.
    """
    if schema.classes is not None:
        if targets is not None:
            raise ValueError("targets are for regressors: this schema declares classes, which are all enumerated")
        return list(range(schema.n_classes))
    chosen = sorted(set(TARGETS if targets is None else targets))
    if len(chosen) < 2 or not all(isinstance(t, int) and 0 <= t <= TARGET_LEVELS for t in chosen):
        raise ValueError(
            f"targets must be at least two different whole numbers, 0 to {TARGET_LEVELS}, not {shown(targets)}"
        )
    return chosen


def released(model) -> Hashable:
    """What tells one released model from another: all its arrays, as byte strings in the order of its fields."""
    model = _trees(model)
    return tuple(np.asarray(getattr(model, column.name)).tobytes() for column in fields(model))


def _trees(model):
    """The forest inside a model that is one but for how it predicts."""
    return getattr(model, "forest", model)


def law_of(
    estimator: PrivateEstimator,
    schema: Schema,
    dataset: Dataset,
    view: Callable[[Forest], Hashable] = released,
    base=None,
) -> Law:
    """The exact law of what an observer sees of the estimator's fit on ``dataset``: output -> probability.

    ``view`` says what is seen of the forest: all of it, or, say, its predictions alone.  With ``base``, the
    probabilities are fractions, see :func:`~dpforest.audit.exact.enumeration.exact_audit`.
    """
    law: Law = defaultdict(float if base is None else Fraction)
    program, replay = _fit(estimator, schema, dataset), None if base is None else _Rational(base)
    for forest, probability in _branches(program, dataset, replay):
        law[view(forest)] += probability
    return dict(law)


def encode(records, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes, uint8, shape (n_features, n_records), and labels of records of codes, as a learner's seam takes them."""
    table = np.asarray(records, dtype=np.uint8).reshape(-1, n_features + 1)
    return np.ascontiguousarray(table[:, :-1].T), np.ascontiguousarray(table[:, -1])


def _fit(estimator, schema: Schema, dataset: Dataset, door=None) -> Callable[[Any], Any]:
    """The estimator's fit on ``dataset``, as a program of chance alone."""
    codes, labels = encode(dataset, schema.n_features)
    epsilon = check_epsilon(estimator.epsilon)
    return lambda chance: estimator.replay(codes, labels, schema, epsilon, chance, door)[0]


def describe(estimator, schema: Schema, dataset: Dataset, output: Hashable) -> str:
    """The released model ``output`` in words."""
    for model, _ in _branches(_fit(estimator, schema, dataset, _Quiet), dataset, _NoiselessReplay()):
        if released(model) == output:
            model = _trees(model)
            if not isinstance(model, Forest):
                return f"{model}, made of noisy sums beyond both"
            return "\n".join(model.describe(schema.columns, tree) for tree in range(model.n_trees))
    return ""


def _branches(program, dataset: Dataset, replay: Replay | None) -> Iterator[tuple[Any, Any]]:
    """:func:`~dpforest.chance.outcomes`, as long as they are not too many."""
    for number, found in enumerate(outcomes(program, replay)):
        if number == _BRANCHES:
            raise ValueError(
                f"a data set of {len(dataset)} records has more than {_BRANCHES:,} branches of coins and answers: ask "
                "for fewer records, trees or features, or leave the exact layer out"
            )
        if isinstance(replay, NoiselessChance):
            replay.settled()
        yield found


# -- fractions -----------------------------------------------------------------------------------------------------


class _Rational(Replay):
    """Replay in fractions, where every weight of a selection is a whole power of ``base``."""

    def __init__(self, base):
        super().__init__()
        self._base = Fraction(base)
        if self._base <= 1:
            raise ValueError(f"base must be a fraction above 1, not {shown(base)}")

    def _uniform(self, n):
        return [Fraction(1, n)] * n

    def select(self, kind, law, scores, rate):
        laws = {"exponential": _exponential, "permute-and-flip": _permute_and_flip}
        if kind not in laws:
            raise ValueError(f"no law in fractions for the mechanism {shown(kind)}")
        chosen = []
        for row, own in zip(scores, np.broadcast_to(rate, len(scores)), strict=True):
            powers = own * (row - row.max()) / arithmetic.log(float(self._base))
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


# -- noisy answers -------------------------------------------------------------------------------------------------


class _NoiselessReplay(NoiselessChance, Replay):
    """Replay without noise."""


class _Quiet(Curator):
    """Answers every question for noisy numbers with numbers not yet drawn, and keeps those that are released."""

    said = 0

    def __init__(self, *table, **doors):
        super().__init__(*table, **doors)
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []  # exact numbers and rates

    def _keep(self, counts, rates) -> None:
        self.kept.append((np.ravel(counts), np.ravel(rates)))

    def noisy(self, *asked, **options) -> Any:
        counts, rates = counts_and_rates(self._chance, partial(super().noisy, *asked, **options))  # type: ignore[arg-type]
        return Noisy(counts, rates, self._chance, self._keep, self.said)  # type: ignore[arg-type]

    def sum_products(self, design, weights, scope=0, *, until=None, **options):
        if until is not None:
            raise NotEnumerableError("noise that is drawn again until a test is passed has a law that no lemma covers")
        ask = partial(super().sum_products, design, weights, scope, **options)
        sums, rates = counts_and_rates(self._chance, ask)  # type: ignore[arg-type]
        cells = np.nonzero(design.matrix(weights))
        self._keep(sums[cells], rates)
        said = np.zeros_like(sums)
        said[cells] = said[cells[::-1]] = self.said
        return said


def law_of_shapes(
    estimator: PrivateEstimator,
    schema: Schema,
    dataset: Dataset,
    view: Callable[[Any], Hashable] = released,
    unsaid: Law | None = None,
) -> dict[Hashable, Shape]:
    """The exact law of the shape of a model that holds noisy numbers, and what lies beneath the noise.

    ``unsaid`` is filled with what ``check_counts_unused`` compares, so that it need not be replayed again.

    Raises
    ------
    NotEnumerableError
        If a shape may have noise at different rates, by coins that are not released.
    """
    found: dict[Hashable, dict[bytes, list]] = defaultdict(dict)
    rates_of: dict[Hashable, np.ndarray] = {}
    doors: list[_Quiet] = []

    def door(*table, **options):
        doors.append(_Quiet(*table, **options))
        return doors[-1]

    replay = _NoiselessReplay()
    for model, probability in _branches(_fit(estimator, schema, dataset, door), dataset, replay):
        seen = view(model)
        kept = doors.pop().kept or [(np.empty(0, dtype=np.int64), np.empty(0))]
        if unsaid is not None:
            asked = _asked(model, kept)
            unsaid[asked] = unsaid.get(asked, 0.0) + probability
        counts, rates = (np.concatenate(column) for column in zip(*kept, strict=True))
        if not np.array_equal(rates_of.setdefault(seen, rates), rates):
            raise NotEnumerableError(
                "the rates of the noise depend on coins that are not released, so that the law is a mixture that no "
                "lemma covers: audit one tree, n_estimators=1"
            )
        found[seen].setdefault(counts.tobytes(), [counts, 0.0])[1] += probability
    law = {}
    for seen, mixture in found.items():
        every, weights = zip(*mixture.values(), strict=True)
        law[seen] = Shape(np.array(every), np.array(weights), rates_of[seen], bool(replay.gaussian))
    return law


class _Largest(_Quiet):
    """Says of noisy class counts which one is the largest, by a 1, and nothing else."""

    def noisy(self, query, scopes, epsilon):
        noisy = super().noisy(query, scopes, epsilon)
        if not isinstance(query, ClassCounts):
            return noisy
        return np.eye(noisy.shape[1], dtype=np.int64)[noisy.argmax(axis=1)]


def law_of_labels(
    estimator: PrivateEstimator, schema: Schema, dataset: Dataset, view: Callable[[Any], Hashable]
) -> Law:
    """The exact law of a view that sees of the noisy class counts of a leaf only which is the largest.

    Of a forest the counts are taken to be released as they are, so that this is post-processing of the model; boosted
    trees make votes of them, and must ask for the largest themselves.

    Raises
    ------
    NotEnumerableError
        If a noisy number is used for anything else.
    """
    law: Law = defaultdict(float)
    doors: list[_Quiet] = []
    kind = _Quiet if hasattr(estimator, "votes") else _Largest

    def door(*table, **options):
        doors.append(kind(*table, **options))
        return doors[-1]

    for model, probability in _branches(_fit(estimator, schema, dataset, door), dataset, _NoiselessReplay()):
        if doors.pop().kept:
            raise NotEnumerableError(
                "a noisy number is used for more than its largest entry, so that what is seen has no law by replay: "
                "leave the law out, and sample"
            )
        law[view(model)] += probability
    return dict(law)


def _asked(model: Any, kept: list[tuple[np.ndarray, np.ndarray]]) -> Hashable:
    """The shape of a model, and the exact numbers and rates of each noisy answer."""
    model = _trees(model)
    shape = (model.feature, model.mask, model.first_child) if isinstance(model, Forest) else ()
    answers = tuple(part.tobytes() for answer in kept for part in answer)
    return tuple(array.tobytes() for array in shape), answers


def check_counts_unused(estimator, schema: Schema, dataset: Dataset, first: Law | None = None) -> None:
    """Raise unless the shape of the model has the same law, and later answers have, whatever the noisy ones say.

    ``first`` is the law where they say 0, if :func:`law_of_shapes` has found it.
    """
    laws = [] if first is None else [first]
    for said in (0, 1000, -1000)[len(laws) :]:
        law: Law = defaultdict(float)
        doors: list[_Quiet] = []

        def door(*table, doors=doors, said=said, **options):
            doors.append(_Quiet(*table, **options))
            doors[-1].said = said
            return doors[-1]

        for model, probability in _branches(_fit(estimator, schema, dataset, door), dataset, _NoiselessReplay()):
            law[_asked(model, doors.pop().kept or [(np.empty(0, dtype=np.int64), np.empty(0))])] += probability
        laws.append(law)
    first, *others = laws
    if not all(
        first.keys() == law.keys() and all(math.isclose(p, law[shape]) for shape, p in first.items()) for law in others
    ):
        raise NotEnumerableError(
            "the learner uses its noisy answers for more than what it releases, which no lemma covers: sample it"
        )
