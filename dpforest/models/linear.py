"""The released linear model, and how it is made from noisy sums: post-processing, which reads no record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpforest import storage
from dpforest.arithmetic import matmul, sigmoid, spectral
from dpforest.design import CODINGS, Design, Weights
from dpforest.messages import shown
from dpforest.models.predictor import Classifying, Predictor, Regressing, anywhere
from dpforest.privacy import claim
from dpforest.schema import Schema

__all__ = [
    "LINKS",
    "REPAIRS",
    "LinearClassifier",
    "LinearModel",
    "LinearPredictor",
    "LinearRegressor",
    "default_ridge",
    "noise_sd",
    "objective_terms",
    "solve",
    "solve_centred",
]

#: What the score is: the target itself on the scale of [-1, 1], or the logarithm of the odds.
LINKS = ("identity", "logit")
#: What becomes of a noisy matrix that is not positive definite.
REPAIRS = ("shrink", "ridge", "spectral", "none")


@dataclass(frozen=True)
class LinearModel:
    """Coefficients of the public coordinates of a schema.

    Attributes
    ----------
    coding : {"centred", "unit"}
        How columns become coordinates, see :meth:`dpforest.design.Design.of`; here each is divided by its unit.
    link : {"identity", "logit"}
    clip : bool
        Whether predictions of a target stay within its declared range.
    intercept : ndarray of float64, shape (n_outputs,)
    coefficients : ndarray of float64, shape (n_outputs, n_coordinates)
        One output for a target or for two classes, else one for each class.
    """

    coding: str
    link: str
    clip: bool
    intercept: np.ndarray
    coefficients: np.ndarray

    def __post_init__(self) -> None:
        fits = self.coefficients.ndim == 2 and self.intercept.shape == self.coefficients.shape[:1]
        if self.coding not in CODINGS or self.link not in LINKS or not fits:
            raise ValueError("its coding, its link, or the shape of its coefficients is unknown")
        if not (np.isfinite(self.intercept).all() and np.isfinite(self.coefficients).all()):
            raise ValueError("the coefficients of a linear model must be finite numbers")

    @property
    def size(self) -> str:
        """How large it is, in words."""
        return f"A linear model with {self.coefficients.size} coefficients."

    def scores(self, codes: np.ndarray, design: Design) -> np.ndarray:
        """The linear scores of encoded records, shape (n_rows, n_outputs)."""
        total = np.repeat(self.intercept[None], codes.shape[1], axis=0)
        for table, row in zip(self.tables(design), codes, strict=True):
            total += table[row]
        return total

    def tables(self, design: Design) -> list[np.ndarray]:
        """What each code of each column adds to the scores: float64, shape (n_codes, n_outputs)."""
        weights = (self.coefficients / design.units[design.features]).T
        ends = np.cumsum([column.shape[1] for column in design.columns])[:-1]
        return [matmul(*pair) for pair in zip(design.columns, np.split(weights, ends), strict=True)]

    def to_dict(self) -> dict:
        """A JSON-ready description; :meth:`from_dict` reads it back."""
        return {
            "coding": self.coding,
            "link": self.link,
            "clip": self.clip,
            "intercept": self.intercept.tolist(),
            "coefficients": self.coefficients.tolist(),
        }

    @classmethod
    def from_dict(cls, description: Mapping) -> LinearModel:
        """The model that :meth:`to_dict` described; anything malformed raises ValueError."""
        try:
            intercept = storage.listed(description["intercept"], "intercept", int, float)
            coefficients = storage.table(description["coefficients"], "coefficients", int, float)
            coding, link, clip = (description[name] for name in ("coding", "link", "clip"))
            more = description.keys() - {field.name for field in fields(cls)}
            if more or (type(coding), type(link), type(clip)) != (str, str, bool):
                raise ValueError(f"coding and link must be text, clip true or false; unknown fields {sorted(more)}")
            return cls(coding, link, clip, np.array(intercept, dtype=float), np.array(coefficients, dtype=float))
        except (KeyError, OverflowError, ValueError) as error:
            raise ValueError(f"not a linear model: {error}") from None

    def check_schema(self, schema: Schema, n_bins: int) -> None:
        """Raise ValueError unless every table that the schema allows can be predicted."""
        design, classes = Design.of(schema, n_bins, self.coding, intercept=False), schema.n_classes
        if self.coefficients.shape != (classes if classes > 2 else 1, design.n_features):
            raise ValueError("not a released linear model: its coefficients and its schema disagree")

    def __str__(self) -> str:
        return f"{len(self.intercept)} x {self.coefficients.shape[1]} coefficients"


class LinearPredictor(Predictor):
    """What predicts by ``linear_``."""

    linear_: LinearModel

    _RELEASED = "linear"

    def _design(self) -> Design:
        return Design.of(self.schema_, self.n_bins_, self._released().coding, intercept=False)

    def _scores(self, X: Any) -> np.ndarray:
        return self._released().scores(self._codes(X), self._design())


class LinearRegressor(Regressing, LinearPredictor):
    """Regression by ``linear_``, whose score is the target on the scale where its declared range is [-1, 1]."""

    @anywhere
    def predict(self, X: Any) -> np.ndarray:
        """The predicted target, float64, shape (n_rows,); within the declared range if the model says ``clip``."""
        return self._predict_from_scores(self._scores(X))

    def _predict_from_scores(self, scores: np.ndarray) -> np.ndarray:
        share = (scores[:, 0] + 1) / 2
        return self.schema_.decode_target(np.clip(share, 0, 1) if self.linear_.clip else share)


class LinearClassifier(Classifying, LinearPredictor):
    """Classification by ``linear_``, whose scores are logarithms of odds: one against the rest."""

    @anywhere
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        With more than two classes, the probabilities of one against the rest, scaled to add up to one.
        """
        return self._predict_from_scores(self._scores(X))

    def _predict_from_scores(self, scores: np.ndarray) -> np.ndarray:
        chances = sigmoid(np.clip(scores, -700, 700))
        if chances.shape[1] == 1:
            return np.concatenate([1 - chances, chances], axis=1)
        return chances / chances.sum(axis=1, keepdims=True)  # a sigmoid of a finite score clipped to 700 is positive

    @anywhere
    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score; the first of ``classes_`` in a tie."""
        scores = self._scores(X)
        best = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[best]


@claim("thm-public-ridge")
def solve(matrix: np.ndarray, vectors: np.ndarray, *, ridge: float = 0.0, repair: str = "shrink") -> np.ndarray:
    """The repaired minimiser of ``w' matrix w - 2 vector' w``, for every column of ``vectors``.

    Parameters
    ----------
    matrix : ndarray of float, shape (d, d), symmetric
    vectors : ndarray of float, shape (d, n)
    ridge : float
        A public number, at least 0.
    repair : {"shrink", "ridge", "spectral", "none"}
        ``"shrink"``: a direction of eigenvalue v has its coefficient times ``1 - ridge / v``, 0 where that is negative.
        ``"ridge"``: negative eigenvalues become 0, then ``ridge`` is added to all.  ``"spectral"``: ``ridge`` is
        added, then the directions whose eigenvalue is not positive are left out.  ``"none"``: the stationary point of
        what is there, a minimum or not; ``ridge`` is not used.

    Returns
    -------
    ndarray of float64, shape (d, n)
        Finite for finite input.  A direction with eigenvalue 0 (to rounding) has coefficient 0.

    Guarantee
    ---------
    With a positive ridge, the solution has norm at most ``|vector| / ridge`` by ``"ridge"``, and a quarter of that by
    ``"shrink"``, both sharp; neither costs any privacy: :prf:ref:`thm-public-ridge`.
    """
    if repair not in REPAIRS:
        raise ValueError(f"repair must be one of {REPAIRS}, not {shown(repair)}")

    def inverse(values: np.ndarray) -> np.ndarray:
        dust = np.abs(values).max() * len(values) * np.finfo(float).eps
        if repair == "ridge":
            values = np.maximum(values, 0) + ridge
        elif repair == "spectral":
            values = values + ridge
        keep = np.abs(values) > dust if repair == "none" else values > max(dust, ridge if repair == "shrink" else 0)
        found = np.divide(1, values, out=np.zeros_like(values), where=keep)
        return found * (1 - ridge * found) if repair == "shrink" else found

    return spectral.apply((matrix + matrix.T) / 2, vectors, inverse)


def solve_centred(
    products: np.ndarray,
    sums: np.ndarray,
    cross: np.ndarray,
    count: float,
    means: np.ndarray,
    *,
    ridge: float = 0.0,
    repair: str = "shrink",
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercepts of least squares from noisy sums; the intercept is not drawn towards 0.

    Parameters
    ----------
    products : ndarray, shape (d, d)
        Sums of products of two features, which lie in [-1, 1].
    sums : ndarray, shape (d,)
        Sums of the features.
    cross : ndarray, shape (d, n)
        Sums of the products of features and targets.
    count : float
        The number of records; less than 1 is taken for 1.
    means : ndarray, shape (n,)
        Means of the targets.
    ridge, repair
        As in :func:`solve`, for the scatter matrix about the means.

    Returns
    -------
    slopes : ndarray, shape (d, n)
    intercepts : ndarray, shape (n,)
    """
    count = max(count, 1.0)
    centre = np.clip(sums / count, -1, 1)
    scatter = products - count * np.outer(centre, centre)
    slopes = solve(scatter, cross - count * np.outer(centre, means), ridge=ridge, repair=repair)
    return slopes, means - matmul(centre, slopes)


def objective_terms(d: int, intercept: bool, first: float, second: float) -> Weights:
    """The size of each coefficient of a noisy objective per product of coordinates in [-1, 1].

    The objective is a constant, minus ``first`` times ``y x'w``, plus ``second`` times ``(x'w)^2``, summed over the
    records; ``x`` holds ``d`` coordinates in [0, 1 / sqrt(d)].
    """
    linear, quadratic = first / math.sqrt(d), second / d
    return Weights(
        count=quadratic * intercept,
        mean=linear * intercept,
        first=quadratic * intercept,
        cross=linear,
        square=quadratic,
        product=quadratic,
        within=quadratic,
    )


@claim("thm-public-ridge")
def default_ridge(weight: float, d: int) -> float:
    """Twice the standard deviation of the noise times sqrt(d), about the size of the noise matrix's eigenvalues."""
    return 2 * math.sqrt(d) * noise_sd(weight)


def noise_sd(weight: float) -> float:
    """Standard deviation of Laplace noise of rate ``weight``, 0 where there is none."""
    return 0.0 if math.isinf(weight) else math.sqrt(2) / weight
