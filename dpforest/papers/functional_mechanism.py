"""FM: the functional mechanism (Zhang, Zhang, Xiao, Yang and Winslett, PVLDB 2012): regression by a noisy objective.

The objective of linear regression is a polynomial in the coefficients, and that of logistic regression nearly is.  Its
coefficients are sums over the records.  They get noise, and the noisy objective is minimised.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpforest.arithmetic.spectral import is_positive_definite
from dpforest.design import Design, Weights
from dpforest.learners.audited import EXACT, GREY_BOX, Audited
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.parameters import check_choice, check_number, check_share
from dpforest.models.linear import (  # fmt: skip
    REPAIRS,
    LinearClassifier,
    LinearModel,
    LinearRegressor,
    default_ridge,
    noise_sd,
    objective_terms,
    solve,
    solve_centred,
)
from dpforest.privacy import REPLACE_ONE, claim

__all__ = ["FunctionalMechanismClassifier", "FunctionalMechanismRegressor", "published_sensitivity"]


@claim("pub-functional-mechanism")
def published_sensitivity(d: int, logistic: bool) -> float:
    """The paper's sensitivity of all coefficients in ``d`` dimensions: 2 (d + 1)^2, or d^2 / 4 + 3 d."""
    return d * d / 4 + 3 * d if logistic else 2.0 * (d + 1) ** 2


class _FunctionalMechanism(PrivateEstimator):
    """Both estimators: the noisy sums, and what is made of them."""

    _LOGISTIC = False
    _AUTO: ClassVar = {
        "published": {"fit_intercept": False, "clip": False}, "proved": {"fit_intercept": True, "clip": True}
    }  # fmt: skip

    def _grow(self, curator, chance, schema, ledger, epsilon):
        published = self.variant == "published"
        intercept = self.option("fit_intercept")
        coding = "centred" if intercept and not published else "unit"
        if published:
            # one model for a target or for two classes; else one against the rest, each with a share of the budget
            classes = range(schema.n_classes) if schema.n_classes > 2 else [None]
            designs = [Design.of(schema, self.bins(schema), coding, intercept, positive) for positive in classes]
            fits = [self._as_published(curator, design, epsilon / len(designs)) for design in designs]
            slopes, heights = (np.concatenate(parts) for parts in zip(*fits, strict=True))
        else:
            fit = self._centred if intercept else self._through_zero
            slopes, heights = fit(curator, Design.of(schema, self.bins(schema), coding, intercept), schema, epsilon)
        return LinearModel(coding, "logit" if self._LOGISTIC else "identity", self._clips(), heights, slopes)

    def lacking(self) -> dict[str, str]:
        if self.repair == "redraw":
            why = "noise that is drawn again until a test is passed is not released, but looked at"
            return {EXACT: why, GREY_BOX: why}
        return super().lacking()

    @claim("pub-functional-mechanism", "pub-functional-redraw")
    def _as_published(self, curator, design, epsilon):
        d = design.n_features + design.intercept
        first, second = (0.5, 0.125) if self._LOGISTIC else (2.0, 1.0)
        terms = objective_terms(d, design.intercept, first, second)
        if not self._LOGISTIC:
            terms = replace(terms, answer=1.0)  # the constant term, the sum of y^2
        rate = epsilon / published_sensitivity(d, self._LOGISTIC)
        inputs = slice(0, d)

        def quadratic(noisy):
            return second / d * design.scaled(noisy)[inputs, inputs]

        redraw = self.repair == "redraw"
        until = (lambda noisy: is_positive_definite(quadratic(noisy))) if redraw else None
        noisy = curator.sum_products(design, terms.scaled(rate), until=until)
        linear = first / 2 / math.sqrt(d) * design.scaled(noisy)[inputs, design.targets]
        ridge = 0.0 if redraw else self._ridge(4.0) * noise_sd(rate)
        repair = "spectral" if self.repair in ("auto", "redraw") else self.repair
        weights = solve(quadratic(noisy), linear, ridge=ridge, repair=repair).T / math.sqrt(d)
        if design.intercept:
            return weights[:, 1:], weights[:, 0]
        return weights, np.zeros(len(weights))

    @claim("thm-functional-mechanism")
    def _centred(self, curator, design, schema, epsilon):
        """Slopes about the means, for which a share of the budget is kept apart."""
        if not design.n_features:
            means = self._margin(curator, schema, epsilon)[1]
            return np.zeros((len(means), 0)), self._steepness * means
        count, means = self._margin(curator, schema, self.mean_share * epsilon)
        noisy, weights = self._moments(curator, design, (1 - self.mean_share) * epsilon)
        sums, cross = noisy[0, design.features], noisy[design.features, design.targets]
        if design.n_targets > 1:  # from indicators to 1 and -1
            cross = 2 * cross - sums[:, None]
        slopes, heights = solve_centred(
            noisy[design.features, design.features], sums, cross, count, means, **self._repair(weights, design)
        )
        return self._steepness * slopes.T, self._steepness * heights

    def _through_zero(self, curator, design, schema, epsilon):
        if design.n_targets > 1:
            raise ValueError("three or more classes need fit_intercept=True, or variant='published'")
        noisy, weights = self._moments(curator, design, epsilon)
        cross = noisy[design.features, design.targets]
        slopes = solve(noisy[design.features, design.features], cross, **self._repair(weights, design))
        return self._steepness * slopes.T, np.zeros(1)

    def _margin(self, curator, schema, epsilon):
        """The number of records, and the mean of each target on the scale of [-1, 1]."""
        masses = self.relation != REPLACE_ONE or schema.n_classes > 2
        design = Design.margin(schema, self.bins(schema), masses)
        weights = Weights(mean=1.0)
        noisy = curator.sum_products(design, weights.scaled(epsilon / design.loss(weights, self.relation)))
        sums = design.scaled(noisy)[0, design.targets]
        if not masses:  # then the number of records is public
            count = curator.size(what="the number of records", where="FM, repaired: the mean of the target")
            return count, np.clip(sums / count, -1, 1)
        positive = np.maximum(sums, 0)
        shares = positive / positive.sum() if positive.any() else np.full(len(sums), 1 / len(sums))
        return sums.sum(), (shares[1:] - shares[:1] if len(sums) == 2 else 2 * shares - 1)

    def _moments(self, curator, design, epsilon):
        """All products of two features, and of a feature and the target, at one noise; and the weights of the noise."""
        # a square costs nothing beside the products under replace-one if it weighs half as much
        square = 0.5 if self.relation == REPLACE_ONE else 1.0
        weights = Weights(first=float(design.intercept), cross=1.0, square=square, product=1.0)
        weights = weights.scaled(epsilon / design.loss(weights, self.relation))
        return design.scaled(curator.sum_products(design, weights)), weights

    @property
    def _steepness(self) -> float:
        """The logistic loss to second order is the squared loss of half the score, a quarter of it."""
        return 2.0 if self._LOGISTIC else 1.0

    def _repair(self, weights, design) -> dict:
        default = default_ridge(1.0, design.n_features) / noise_sd(1.0)
        return {
            "ridge": self._ridge(default) * noise_sd(weights.product),
            "repair": "shrink" if self.repair == "auto" else self.repair,
        }

    def _ridge(self, default: float) -> float:
        return default if self.ridge == "auto" else float(self.ridge)

    def _clips(self) -> bool:
        return False

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice(self.fit_intercept, "fit_intercept", ("auto", True, False))
        published = self.variant == "published"
        check_choice(self.repair, "repair", ("auto", *REPAIRS, *(["redraw"] if published else [])))
        if not (isinstance(self.ridge, str) and self.ridge == "auto"):
            check_number(self.ridge, "ridge", 0, 1e100, "'auto' or a number, at least 0, of noise deviations")
        check_share(self.mean_share, "mean_share")


@claim("alg-functional-mechanism")
class FunctionalMechanismRegressor(_FunctionalMechanism, LinearRegressor):
    """Linear regression by the functional mechanism.

    Parameters
    ----------
    epsilon : float
        Privacy budget.
    schema : Schema
        What is public.  Required: its bounds scale the features and the target, so nothing is learned from the data.
    fit_intercept : {"auto", True, False}
        Auto is by variant: the paper's model has none.  Without one the numeric features are scaled to [0, 1], so that
        the prediction at their lower bounds is the middle of the target's range.
    repair : {"auto", "shrink", "ridge", "spectral", "none"}
        What becomes of a noisy matrix, see :func:`dpforest.models.linear.solve`.  Auto is ``"spectral"`` as published,
        ``"shrink"`` otherwise.  ``"published"`` has ``"redraw"`` too: new noise until the objective is bounded, which
        is charged twice (:prf:ref:`pub-functional-redraw`) and on wide tables gives up with ``RuntimeError``.
    ridge : {"auto"} or float
        In standard deviations of the noise of a second-degree sum.  Auto is 4 as published, else twice the square root
        of the number of feature coordinates (:prf:ref:`thm-public-ridge`).
    mean_share : float
        Part of the budget that is kept for the mean of the target, between 0 and 1; only the proved variant with an
        intercept uses it.
    clip : {"auto", True, False}
        Whether predictions stay within the declared range of the target.  Auto is by variant.
    n_bins : {"auto"} or int
        Public grid of each numeric feature, at most 255 (254 beside a bin for missing values), which is what auto is.
    relation : {"add-remove", "replace-one"}
    variant : {"proved", "published"}
        ``"published"``: no intercept, every coefficient of the objective with noise of scale ``2 (d + 1)^2 / epsilon``,
        a ridge of four deviations, directions with non-positive eigenvalues left out.
    source : {"seeded", "secure"}
        See :mod:`dpforest.chance`.
    random_state : None, int, numpy Generator or RandomState
    n_jobs : int or None
        Accepted like everywhere; the sums are one matrix product.

    Attributes
    ----------
    linear_ : LinearModel
    schema_, n_bins_, ledger_, guarantee_, n_features_in_, feature_names_in_

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``, the noise calibrated to the sharp L1 sensitivity of the sums
    that are released: :prf:ref:`thm-functional-mechanism`.  ``"published"`` spends less than it claims, and the
    ledger says how much: :prf:ref:`pub-functional-mechanism`.

    Source
    ------
    Zhang, Zhang, Xiao, Yang and Winslett: Functional mechanism.  PVLDB 5(11), 2012.
    """

    def __init__(
        self, *, epsilon=1.0, schema=None, fit_intercept="auto", repair="auto", ridge="auto", mean_share=0.25,
        clip="auto", n_bins="auto", relation="add-remove", variant="proved", source="seeded", random_state=None,
        n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.fit_intercept = fit_intercept
        self.repair = repair
        self.ridge = ridge
        self.mean_share = mean_share
        self.clip = clip
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _clips(self) -> bool:
        return self.option("clip")

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice(self.clip, "clip", ("auto", True, False))

    AUDIT: ClassVar = Audited(
        "functional-mechanism",
        (({}, 2, None), ({"fit_intercept": False}, 2, None), ({"variant": "published"}, 2, None)),
        usual={},
    )


class FunctionalMechanismClassifier(_FunctionalMechanism, LinearClassifier):
    """Logistic regression by the functional mechanism, its objective taken to second order.

    Parameters
    ----------
    epsilon, schema, fit_intercept, repair, ridge, mean_share, n_bins, relation, source, random_state, n_jobs
        As in :class:`FunctionalMechanismRegressor`.
    variant : {"proved", "published"}
        ``"published"``: noise of scale ``(d^2 / 4 + 3 d) / epsilon``.  Three or more classes are fitted one against
        the rest, each with an equal share of the budget; the proved variant asks for the sums of the features within
        each class and for one matrix of their products, which cost no more than with two classes.

    Attributes
    ----------
    linear_ : LinearModel
    classes_, schema_, n_bins_, ledger_, guarantee_, n_features_in_, feature_names_in_

    Guarantee
    ---------
    As :class:`FunctionalMechanismRegressor`.

    Source
    ------
    Zhang, Zhang, Xiao, Yang and Winslett: Functional mechanism.  PVLDB 5(11), 2012.
    """

    _LOGISTIC = True

    def __init__(
        self, *, epsilon=1.0, schema=None, fit_intercept="auto", repair="auto", ridge="auto", mean_share=0.25,
        n_bins="auto", relation="add-remove", variant="proved", source="seeded", random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.fit_intercept = fit_intercept
        self.repair = repair
        self.ridge = ridge
        self.mean_share = mean_share
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    AUDIT: ClassVar = Audited(
        "functional-mechanism-classifier",
        (
            ({}, 2, None),
            ({"variant": "published"}, 2, None),
            ({"variant": "published", "fit_intercept": True}, 1, None),
        ),
        usual={},
    )
