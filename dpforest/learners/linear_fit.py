"""Linear models from noisy sums of products: what the functional mechanism and Diff-LR share."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest.design import Design
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.parameters import Auto, Either, Number, OneOf
from dpforest.learners.run import Run
from dpforest.models.linear import REPAIRS, LinearModel, LinearRegressor, solve, solve_centred

__all__ = ["OPTIONS", "PrivateLinear", "PrivateLinearRegressor"]

#: What may be asked for as a repair of the noisy matrix.
OPTIONS = ("auto", *REPAIRS)
_DEVIATIONS = Number(0, 1e100, "at least 0, of noise deviations")

Solved = tuple[np.ndarray, np.ndarray]


class PrivateLinear(PrivateEstimator):
    """Base of the private linear models: the design of the noisy sums, and what is made of them."""

    #: What the score of the model is: the target itself, or the logarithm of the odds.
    LINK: ClassVar[str] = "identity"

    fit_intercept: Annotated[
        Literal["auto", True, False],
        Auto(published=False, proved=True),
        """The paper's model has no intercept.  Without one the numeric features are scaled to [0, 1], so that the
        prediction at their lower bounds is the middle of the target's range.""",
    ] = "auto"
    repair: Annotated[
        str,
        OneOf(OPTIONS),
        Auto(published="spectral", proved="shrink"),
        "What becomes of the noisy matrix: :func:`dpforest.models.linear.solve`.",
    ] = "auto"
    ridge: Annotated[
        float | str,
        Either("auto", rule=_DEVIATIONS),
        """In standard deviations of the noise of a second-degree sum.  Auto is 4 as published, else twice the square
        root of the number of feature coordinates (:prf:ref:`thm-public-ridge`).""",
    ] = "auto"
    n_bins: Annotated[
        int | str,
        """Public grid of each numeric feature, at most 255 (254 and a bin for missing values), which is what auto
        is.""",
    ] = "auto"

    @property
    def coding(self) -> str:
        """How columns become coordinates, as in the papers or about the middle where an intercept allows it."""
        return "centred" if self.variant == "proved" and self.option("fit_intercept") else "unit"

    def design(self, run: Run, positive: int | None = None) -> Design:
        """The coordinates of a record; ``positive`` is the class that is separated from the rest."""
        return Design.of(run.schema, self.bins(run.schema), self.coding, self.option("fit_intercept"), positive)

    def deviations(self, auto: float) -> float:
        """The ridge in standard deviations of the noise; ``auto`` of them unless asked for otherwise."""
        return auto if self.ridge == "auto" else float(self.ridge)

    def minimise(self, matrix: np.ndarray, vectors: np.ndarray, design: Design, ridge: float, repair: str) -> Solved:
        """The minimiser of ``w' matrix w - 2 vectors' w``, in the paper's coordinates in [0, 1 / sqrt(d)].

        Returns
        -------
        slopes : ndarray, shape (n_targets, n_features)
            Of coordinates in [0, 1].
        heights : ndarray, shape (n_targets,)
        """
        weights = solve(matrix, vectors, ridge=ridge, repair=repair).T / math.sqrt(design.n_inputs)
        if design.intercept:
            return weights[:, 1:], weights[:, 0]
        return weights, np.zeros(len(weights))

    def through_zero(self, noisy: np.ndarray, design: Design, ridge: float) -> Solved:
        """Least squares without an intercept, from noisy sums; returns are those of :meth:`minimise`."""
        squares, cross = noisy[design.features, design.features], noisy[design.features, design.targets]
        slopes = solve(squares, cross, ridge=ridge, repair=self.option("repair"))
        return slopes.T, np.zeros(slopes.shape[1])

    def about_means(
        self, noisy: np.ndarray, cross: np.ndarray, count: float, means: np.ndarray, design: Design, ridge: float
    ) -> Solved:
        """Least squares about the noisy means of the features, and of the targets, which are given."""
        squares, sums = noisy[design.features, design.features], noisy[0, design.features]
        repair = self.option("repair")
        slopes, heights = solve_centred(squares, sums, cross, count, means, ridge=ridge, repair=repair)
        return slopes.T, heights

    def released(self, slopes: np.ndarray, heights: np.ndarray) -> LinearModel:
        """The model of these coefficients."""
        clip = "clip" in self.PARAMETERS and self.option("clip")
        return LinearModel(self.coding, self.LINK, clip, heights, slopes)


class PrivateLinearRegressor(PrivateLinear, LinearRegressor):
    """Base of the private linear regressions."""

    clip: Annotated[
        Literal["auto", True, False],
        Auto(published=False, proved=True),
        "Whether predictions stay within the declared range of the target.",
    ] = "auto"
