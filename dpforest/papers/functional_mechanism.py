"""FM: the functional mechanism (Zhang, Zhang, Xiao, Yang and Winslett, PVLDB 2012): regression by a noisy objective.

The objective of linear regression is a polynomial in the coefficients, and that of logistic regression nearly is.  Its
coefficients are sums over the records.  They get noise, and the noisy objective is minimised.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest.arithmetic.spectral import is_positive_definite
from dpforest.design import Design, Weights
from dpforest.learners.audited import EXACT, GREY_BOX, AuditSpec
from dpforest.learners.linear_fit import OPTIONS, PrivateLinear, PrivateLinearRegressor, Solved
from dpforest.learners.parameters import Auto, OneOf, Share
from dpforest.learners.run import Run
from dpforest.models.linear import LinearClassifier, LinearModel, default_ridge, noise_sd, objective_terms
from dpforest.privacy import REPLACE_ONE, claim

__all__ = ["FunctionalMechanismClassifier", "FunctionalMechanismRegressor", "published_sensitivity"]

SIZE = "the number of records", "FM, repaired: the mean of the target"
REPAIRS = (*OPTIONS, "redraw")


@claim("pub-functional-mechanism")
def published_sensitivity(d: int, logistic: bool) -> float:
    """The paper's sensitivity of all coefficients in ``d`` dimensions: 2 (d + 1)^2, or d^2 / 4 + 3 d."""
    return d * d / 4 + 3 * d if logistic else 2.0 * (d + 1) ** 2


class _FunctionalMechanism(PrivateLinear):
    """Both estimators: the noisy sums, and what is made of them."""

    repair: Annotated[
        str,
        OneOf(REPAIRS),
        Auto(published="spectral", proved="shrink"),
        """What becomes of the noisy matrix: :func:`dpforest.models.linear.solve`.  As published also ``"redraw"``: new
        noise until the objective is bounded, which is charged twice (:prf:ref:`pub-functional-redraw`) and on wide
        tables gives up with ``RuntimeError``.""",
    ] = "auto"
    mean_share: Annotated[
        float,
        Share(),
        """Part of the budget that is kept for the mean of the target; only the proved variant with an intercept uses
        it.""",
    ] = 0.25

    @claim("alg-functional-mechanism", "pub-functional-mechanism")
    def as_published(self, run: Run) -> LinearModel:
        """One noisy objective for a target or for two classes, else one for each class against the rest."""
        classes = range(run.schema.n_classes) if run.schema.n_classes > 2 else [None]
        designs = [self.design(run, positive) for positive in classes]
        fits = [self._fit_published(run, design, run.epsilon / len(designs)) for design in designs]
        slopes, heights = (np.concatenate(parts) for parts in zip(*fits, strict=True))
        return self.released(slopes, heights)

    @claim("pub-functional-redraw")
    def _fit_published(self, run: Run, design: Design, epsilon: float) -> Solved:
        """Steps 1 to 4: objective ``second (x'w)^2 - first y x'w``, features in [0, 1 / sqrt(d)]."""
        d, logistic = design.n_inputs, self.LINK == "logit"
        first, second = (0.5, 0.125) if logistic else (2.0, 1.0)
        rate = epsilon / published_sensitivity(d, logistic)  # step 1: 1 / scale of the noise
        terms = objective_terms(d, design.intercept, first, second)
        if not logistic:
            terms = replace(terms, answer=1.0)  # the constant term, the sum of y^2

        def matrix(noisy: np.ndarray) -> np.ndarray:
            return second / d * design.scaled(noisy)[:d, :d]

        redraw = self.repair == "redraw"
        bounded = (lambda noisy: is_positive_definite(matrix(noisy))) if redraw else None
        noisy = run.sum_products(design, terms.scaled(rate), until=bounded)  # step 2
        vectors = first / 2 / math.sqrt(d) * design.scaled(noisy)[:d, design.targets]
        ridge = 0.0 if redraw else self.deviations(4.0) * noise_sd(rate)  # step 3
        repair = "spectral" if redraw else self.option("repair")
        return self.minimise(matrix(noisy), vectors, design, ridge, repair)  # step 4

    @claim("thm-functional-mechanism")
    def as_proved(self, run: Run) -> LinearModel:
        """The repair: sharp sums of coordinates in [-1, 1], the mean apart, and a public ridge."""
        design = self.design(run)
        if not design.intercept:
            if design.n_targets > 1:
                raise ValueError("three or more classes need fit_intercept=True, or variant='published'")
            noisy, ridge = self._products(run, design, run.epsilon)
            slopes, heights = self.through_zero(noisy, design, ridge)
        elif not design.n_features:
            _, heights = self._mean(run, run.epsilon)
            slopes = np.zeros((len(heights), 0))
        else:
            count, means = self._mean(run, self.mean_share * run.epsilon)
            noisy, ridge = self._products(run, design, (1 - self.mean_share) * run.epsilon)
            cross = noisy[design.features, design.targets]
            if design.n_targets > 1:  # from indicators to 1 and -1
                cross = 2 * cross - noisy[0, design.features, None]
            slopes, heights = self.about_means(noisy, cross, count, means, design, ridge)
        # the logistic loss to second order is the squared loss of half the score, a quarter of it
        steepness = 2.0 if self.LINK == "logit" else 1.0
        return self.released(steepness * slopes, steepness * heights)

    def _mean(self, run: Run, epsilon: float) -> tuple[float, np.ndarray]:
        """The mean apart: the number of records, and the mean of each target on the scale of [-1, 1]."""
        masses = run.relation != REPLACE_ONE or run.schema.n_classes > 2
        design, weights = Design.margin(run.schema, self.bins(run.schema), masses), Weights(mean=1.0)
        noisy = run.sum_products(design, weights.scaled(epsilon / design.loss(weights, run.relation)))
        sums = design.scaled(noisy)[0, design.targets]
        if not masses:  # then the number of records is public
            count = run.size(SIZE)
            return count, np.clip(sums / count, -1, 1)
        positive = np.maximum(sums, 0)
        shares = positive / positive.sum() if positive.any() else np.full(len(sums), 1 / len(sums))
        return sums.sum(), (shares[1:] - shares[:1] if len(sums) == 2 else 2 * shares - 1)

    def _products(self, run: Run, design: Design, epsilon: float) -> tuple[np.ndarray, float]:
        """All products of two features, and of a feature and the target, at one noise; and the ridge for it."""
        # under replace-one, squares with half the weight of the products add nothing to the cost
        square = 0.5 if run.relation == REPLACE_ONE else 1.0
        weights = Weights(first=float(design.intercept), cross=1.0, square=square, product=1.0)
        weights = weights.scaled(epsilon / design.loss(weights, run.relation))
        noisy = design.scaled(run.sum_products(design, weights))
        auto = default_ridge(1.0, design.n_features) / noise_sd(1.0)
        return noisy, self.deviations(auto) * noise_sd(weights.product)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.repair == "redraw" and self.variant == "proved":
            raise ValueError("repair='redraw' costs twice epsilon and may never end: use variant='published'")

    def lacking(self) -> dict[str, str]:
        if self.repair == "redraw":
            why = "noise that is drawn again until a test is passed is not released, but looked at"
            return {EXACT: why, GREY_BOX: why}
        return super().lacking()


@claim("alg-functional-mechanism")
class FunctionalMechanismRegressor(_FunctionalMechanism, PrivateLinearRegressor):
    """Linear regression by the functional mechanism.

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``, the noise calibrated to the sharp L1 sensitivity of the sums
    that are released: :prf:ref:`thm-functional-mechanism`.  ``"published"`` spends less than it claims, and the
    ledger says how much: :prf:ref:`pub-functional-mechanism`.

    Source
    ------
    Zhang, Zhang, Xiao, Yang and Winslett: Functional mechanism.  PVLDB 5(11), 2012.
    """

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"``: no intercept, every coefficient of the objective with noise of scale ``2 (d + 1)^2 /
        epsilon``, a ridge of four deviations, directions with non-positive eigenvalues left out.""",
    ] = "proved"

    AUDIT: ClassVar = AuditSpec(
        "functional-mechanism",
        (({}, 2, None), ({"fit_intercept": False}, 2, None), ({"variant": "published"}, 2, None)),
        defaults={},
    )


class FunctionalMechanismClassifier(_FunctionalMechanism, LinearClassifier):
    """Logistic regression by the functional mechanism, its objective taken to second order.

    Guarantee
    ---------
    As :class:`FunctionalMechanismRegressor`.

    Source
    ------
    Zhang, Zhang, Xiao, Yang and Winslett: Functional mechanism.  PVLDB 5(11), 2012.
    """

    LINK = "logit"

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"``: noise of scale ``(d^2 / 4 + 3 d) / epsilon``.  Three or more classes are fitted one against
        the rest, each with an equal share of the budget; the proved variant asks for the sums of the features within
        each class and for one matrix of their products, which cost no more than with two classes.""",
    ] = "proved"

    AUDIT: ClassVar = AuditSpec(
        "functional-mechanism-classifier",
        (
            ({}, 2, None),
            ({"variant": "published"}, 2, None),
            ({"variant": "published", "fit_intercept": True}, 1, None),
        ),
        defaults={},
    )
