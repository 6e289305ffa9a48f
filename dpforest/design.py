"""Products of public whole-number coordinates, summed over records: what a linear learner asks for, and its price.

A record becomes a vector of whole numbers, one or more per column, by tables that the schema fixes.  Divided by
their public units the coordinates lie in [-1, 1].  Linear and logistic regression need only sums of products of two
of them.  How much one record moves a *weighted* set of such sums is worked out here, sharply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np

from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, check_relation, claim
from dpforest.schema import TARGET_LEVELS, Schema

__all__ = ["CODINGS", "Design", "Weights"]

#: Numeric columns scaled to [-1, 1] ("centred") or to [0, 1] ("unit").
CODINGS = ("centred", "unit")


@dataclass(frozen=True)
class Weights:
    """Loss per unit of change of each kind of sum; 0 for a kind that is not released.

    The coordinates are thought of as scaled to [-1, 1], so that every product lies in [-1, 1].

    Attributes
    ----------
    count : float
        Of the number of records, the square of the intercept.
    mean : float
        Of the sum of the target.
    first : float
        Of the sum of a feature coordinate.
    cross : float
        Of feature times target.
    square : float
        Of the square of a feature coordinate.
    product : float
        Of the product of coordinates of two columns.
    within : float
        Of the product of two indicators of one column.  Every record has 0 there: with weight 0 that public value
        is kept as it is, otherwise it gets noise like the rest.
    answer : float
        Of the square of the target.
    """

    count: float = 0.0
    mean: float = 0.0
    first: float = 0.0
    cross: float = 0.0
    square: float = 0.0
    product: float = 0.0
    within: float = 0.0
    answer: float = 0.0

    def __post_init__(self) -> None:
        if not all(value >= 0 for value in astuple(self)):  # also refuses NaN
            raise ValueError(f"weights cannot be negative: {astuple(self)}")

    def scaled(self, factor: float) -> Weights:
        """Every weight times ``factor``, which may be infinite; what is not released stays unreleased."""
        return Weights(*(factor * value if value else 0.0 for value in astuple(self)))

    def only(self, *kinds: str) -> Weights:
        """The weights of these kinds, 0 for the others."""
        return Weights(**{kind: getattr(self, kind) for kind in kinds})


class Design:
    """How the codes of a table become whole-number coordinates.

    Parameters
    ----------
    columns : sequence of ndarray of int, each of shape (codes of the column, coordinates of the column)
        A column of one coordinate is a *number*.  One of several is a *choice*: of each row, at most one entry
        differs from 0, and at least two rows have theirs, of full size, in different places.
    answer : ndarray of int, shape (codes of the label or target, targets)
        One target is a number that reaches both ends of its range.  Several are not negative and add up to their
        common unit, like indicators of the classes; at least two of them reach it.
    intercept : bool
        Whether the constant 1 is a coordinate too.
    names : sequence of str
        One for each feature coordinate.

    Notes
    -----
    The coordinates stand in this order: the intercept if there is one, the features, the targets.
    """

    def __init__(self, columns: Sequence[np.ndarray], answer: np.ndarray, intercept: bool, names: Sequence[str]):
        self.columns = [np.asarray(column, dtype=np.int64) for column in columns]
        self.answer = np.asarray(answer, dtype=np.int64)
        self.intercept = bool(intercept)
        self.names = list(names)

    @classmethod
    def of(cls, schema: Schema, n_bins: int, coding: str, intercept: bool, positive: int | None = None) -> Design:
        """The design of a schema.

        Parameters
        ----------
        coding : {"centred", "unit"}
            ``"centred"``: a numeric column has one coordinate in [-1, 1], a column of two categories has -1 and 1, one
            of more has an indicator each, one of a single category has none.  ``"unit"``: a numeric column has one
            coordinate in [0, 1], every category an indicator.  A column with a bin for missing values has an
            indicator for it, and where that is 1, the other coordinates of the column are 0.
        positive : int or None
            With classes: which class is 1 where the others are -1.  None: the second of two classes; with more, an
            indicator for each.
        """
        if coding not in CODINGS:
            raise ValueError(f"coding must be one of {CODINGS}, not {shown(coding)}")
        columns, names = [], []
        for name, codes in zip(schema.columns, schema.cardinalities(n_bins).tolist(), strict=True):
            if name in schema.numeric:
                steps = np.arange(n_bins)
                table = (steps if coding == "unit" else 2 * steps - (n_bins - 1))[:, None]
                labels = [name]
                if schema.missing == "bin":
                    table = np.block([[table, np.zeros_like(table)], [np.array([[0, 1]])]])
                    labels.append(f"{name} is missing")
            else:
                values = [*schema.categorical[name], *(["missing"] if schema.missing == "bin" else [])]
                table, labels = np.eye(codes, dtype=np.int64), [f"{name}={value}" for value in values]
                if coding == "centred" and codes <= 2:
                    table = np.array([[-1], [1]])[:codes, : codes - 1]
                    labels = labels[1:]
            columns.append(table)
            names += labels
        return cls(columns, _answers(schema, positive), intercept, names)

    @classmethod
    def margin(cls, schema: Schema, n_bins: int, masses: bool) -> Design:
        """The design of the intercept and the target alone.

        Parameters
        ----------
        masses : bool
            Give the target as parts that add up to its unit: the class indicators, or how far it lies below the upper
            bound and above the lower.  Their sums tell the number of records too, at no further cost.
        """
        columns = [np.zeros((codes, 0), dtype=np.int64) for codes in schema.cardinalities(n_bins).tolist()]
        answer = _answers(schema, None)
        if masses and schema.classes is not None:
            answer = np.eye(schema.n_classes, dtype=np.int64)
        elif masses:
            above = np.arange(TARGET_LEVELS + 1)
            answer = np.stack([TARGET_LEVELS - above, above], axis=1)
        return cls(columns, answer, True, [])

    @property
    def n_features(self) -> int:
        """Feature coordinates, the intercept not among them."""
        return sum(column.shape[1] for column in self.columns)

    @property
    def n_inputs(self) -> int:
        """Number of coordinates that have a coefficient, which are the features, and the intercept if there is one."""
        return self.n_features + self.intercept

    @property
    def n_targets(self) -> int:
        return self.answer.shape[1]

    @property
    def features(self) -> slice:
        """Where the feature coordinates stand."""
        return slice(self.intercept, self.intercept + self.n_features)

    @property
    def targets(self) -> slice:
        """Where the targets stand."""
        return slice(self.features.stop, None)

    @cached_property
    def units(self) -> np.ndarray:
        """The largest absolute value of each coordinate, float64."""
        tables = [*self.columns, self.answer]
        return np.concatenate([[1.0] * self.intercept, *(np.abs(table).max(axis=0, initial=0) for table in tables)])

    def scaled(self, sums: np.ndarray) -> np.ndarray:
        """Sums of products of whole-number coordinates, on the scale where coordinates lie in [-1, 1]."""
        return sums / np.outer(self.units, self.units)

    def matrix(self, weights: Weights) -> np.ndarray:
        """The weight of each product as an upper triangular matrix over the coordinates."""
        size = len(self.units)
        owner = np.repeat(np.arange(len(self.columns)), [column.shape[1] for column in self.columns])
        block = np.where(owner[:, None] == owner, weights.within, weights.product)
        np.fill_diagonal(block, weights.square)
        cells = np.zeros((size, size))
        cells[self.features, self.features] = block
        cells[self.features, self.targets] = weights.cross
        cells[self.targets, self.targets] = weights.answer * np.eye(self.n_targets)
        if self.intercept:
            cells[0, 0] = weights.count
            cells[0, self.features] = weights.first
            cells[0, self.targets] = weights.mean
        return np.triu(cells)

    @claim("thm-functional-mechanism", "pub-functional-mechanism")
    def loss(self, weights: Weights, relation: str) -> float:
        """The most that one record can move the products, each change times its weight, added up.

        With noise of rate ``weight / units`` on every sum, this is the privacy loss.

        Guarantee
        ---------
        add-remove: sharp.  replace-one: sharp over the continuous domain for a table of numbers when ``square`` is at
        least half of ``product``, an upper bound otherwise: :prf:ref:`thm-functional-mechanism`.
        """
        w = weights
        if not self.intercept and (w.count or w.mean or w.first):
            raise ValueError("without an intercept there is no count, mean or first product")
        if any(math.isinf(value) for value in astuple(w)):
            return math.inf
        live = [column for column in self.columns if column.shape[1]]
        s = sum(column.shape[1] == 1 for column in live)  # numbers
        c = len(live) - s  # choices
        p = s + c
        if check_relation(relation) == ADD_REMOVE:
            linear = w.mean + (w.first + w.cross + w.square) * p
            return w.count + linear + w.product * p * (p - 1) / 2 + w.answer
        lowest = -s if any((column < 0).any() for column in live) else 0
        # what does not depend on how the numbers and the target move together
        fixed = (w.first + w.square) * (s + 2 * c) + w.product * (s * (s - 1) / 2 + c * (c - 1) + 2 * c * s)
        if self.n_targets > 1:
            fixed += 2 * (w.mean + w.cross * p + w.answer)
            w = Weights(first=w.first, square=w.square, product=w.product)
        else:
            fixed += w.mean + w.cross * (s + 2 * c) + w.answer
        excess = w.square - w.product / 2
        fixed += max(-excess, 0) * s
        bend = w.product / 2 + (max(excess, 0) / s if s else 0.0)
        return fixed + _steepest(w.mean, w.cross, w.first, w.answer, bend, lowest, s)


def _answers(schema: Schema, positive: int | None) -> np.ndarray:
    """The targets' coordinates of each label or target code."""
    if schema.classes is None:
        return np.arange(TARGET_LEVELS + 1)[:, None] - TARGET_LEVELS // 2
    if positive is None and schema.n_classes > 2:
        return np.eye(schema.n_classes, dtype=np.int64)
    return 2 * (np.arange(schema.n_classes) == (1 if positive is None else positive))[:, None] - 1


def _steepest(mean: float, cross: float, first: float, answer: float, bend: float, low: float, high: float) -> float:
    """The maximum of ``mean e + cross e R - first R - answer e^2 - bend R^2``, e in [-1, 1], R in [low, high].

    R is the inner product of the old and the new features, e minus the product of the old and the new target.
    """

    def value(e: float, r: float) -> float:
        return mean * e + cross * e * r - first * r - answer * e * e - bend * r * r

    points: list[tuple[float, float]] = [(e, r) for e in (-1, 1) for r in (low, high)]
    if bend:
        points += [(e, (cross * e - first) / (2 * bend)) for e in (-1, 1)]
    if answer:
        points += [((mean + cross * r) / (2 * answer), r) for r in (low, high)]
    if determinant := 4 * answer * bend - cross * cross:
        e = (2 * bend * mean - cross * first) / determinant
        points.append((e, (cross * mean - 2 * answer * first) / determinant))
    return max(value(e, r) for e, r in points if -1 <= e <= 1 and low <= r <= high)
