"""Diff-LR (Zheng and Zou, 2016): the functional mechanism with the objective cut into parts by degree.

Of the paper we have a description only.  It is read like this: the noisy objective of linear regression has a part of
degree 0, one of degree 1 and one of degree 2 in the coefficients; each part has its own sensitivity, Δ_0, Δ_1 and Δ_2,
and a share of the budget that is proportional to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest.arithmetic import cbrt
from dpforest.design import Design, Weights
from dpforest.learners.audited import AuditSpec
from dpforest.learners.linear_fit import PrivateLinearRegressor
from dpforest.learners.parameters import AsPublished, Auto, check_choice
from dpforest.learners.run import Run
from dpforest.models.linear import LinearModel, noise_sd, objective_terms
from dpforest.privacy import REPLACE_ONE, claim

__all__ = ["SPLITS", "DiffLRRegressor", "published_sensitivities", "shares"]

#: How the budget is divided over the parts.
SPLITS = ("proportional", "optimal")
#: The sums that make up each part of the objective, by degree.
PARTS = (("answer",), ("mean", "cross"), ("count", "first", "square", "product", "within"))
SIZE = "the number of records", "Diff-LR, repaired: the mean of the target"


@claim("pub-diff-lr")
def published_sensitivities(d: int) -> tuple[int, int, int]:
    """The functional mechanism's sensitivity 2 (d + 1)^2, degree by degree: 2, 4 d and 2 d^2."""
    return 2, 4 * d, 2 * d * d


@claim("pub-diff-lr", "thm-diff-lr-split")
def shares(sensitivities: Sequence, counts: Sequence, split: str) -> list:
    """The share of the budget of each part; they add up to one.

    Parameters
    ----------
    sensitivities : sequence of numbers
        L1 sensitivity of each part.
    counts : sequence of int
        Coefficients of each part; only ``"optimal"`` looks at them.
    split : {"proportional", "optimal"}
        ``"proportional"``: to the sensitivity; fractions stay fractions.  ``"optimal"``: to the cube root of the number
        of coefficients times the squared sensitivity, which makes the summed variance of the noise least
        (:prf:ref:`thm-diff-lr-split`).
    """
    check_choice(split, "split", SPLITS)
    if split == "optimal":
        sensitivities = [cbrt(m * delta**2) for m, delta in zip(counts, sensitivities, strict=True)]
    return [delta / sum(sensitivities) for delta in sensitivities]


class DiffLRRegressor(PrivateLinearRegressor):
    """Linear regression by the functional mechanism, the budget divided over the degrees of the objective.

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``.  ``"published"`` has the noise of the functional mechanism,
    exactly (:prf:ref:`pub-diff-lr`), and so its loose guarantee.  The proved variant calibrates each part to its sharp
    sensitivity; the parts compose sequentially, under add-remove sharply (:prf:ref:`thm-diff-lr-split`).

    Source
    ------
    Zheng and Zou, 2016; only a description could be read, see the module.
    """

    split: Annotated[
        Literal["auto", "proportional", "optimal"],
        Auto(published="proportional", proved="optimal"),
        AsPublished("proportional"),
        "How the budget is divided over the degrees, see :func:`~dpforest.papers.diff_lr.shares`.",
    ] = "auto"

    @claim("pub-diff-lr")
    def as_published(self, run: Run) -> LinearModel:
        """Three parts, each with a share of the budget in proportion to its sensitivity; then as FM, steps 3 and 4."""
        design = self.design(run)
        d = design.n_inputs
        terms = replace(objective_terms(d, design.intercept, 2.0, 1.0), answer=1.0)
        parts = [terms.only(*kinds) for kinds in PARTS]
        noisy, sd = self._measure_products(run, design, parts, published_sensitivities(d))
        matrix, vectors = noisy[:d, :d] / d, noisy[:d, design.targets] / math.sqrt(d)
        ridge = self.deviations(4.0) * (sd * (1 / d))
        return self.released(*self.minimise(matrix, vectors, design, ridge, self.option("repair")))

    @claim("thm-diff-lr-split")
    def as_proved(self, run: Run) -> LinearModel:
        """The repair: what moves the minimum in two parts, each with its sharp sensitivity and the best share."""
        design = self.design(run)
        # the term without coefficients does not move the minimum, two indicators of a column are never both 1,
        # and under replace-one everybody knows the number of records
        terms = replace(objective_terms(design.n_inputs, design.intercept, 2.0, 1.0), within=0.0)
        if run.relation == REPLACE_ONE:
            terms = replace(terms, count=0.0)
        parts = [terms.only(*kinds) for kinds in PARTS[1:]]
        noisy, sd = self._measure_products(run, design, parts, [design.loss(part, run.relation) for part in parts])
        ridge = self.deviations(2 * math.sqrt(design.n_features)) * sd
        if not design.intercept:
            return self.released(*self.through_zero(noisy, design, ridge))
        count = run.size(SIZE) if run.relation == REPLACE_ONE else noisy[0, 0]
        means = np.clip(noisy[0, design.targets] / max(count, 1), -1, 1)
        cross = noisy[design.features, design.targets]
        return self.released(*self.about_means(noisy, cross, count, means, design, ridge))

    def _measure_products(
        self, run: Run, design: Design, parts: list[Weights], sensitivities: Sequence[float]
    ) -> tuple[np.ndarray, float]:
        """Sums of each part at its share of the budget, and the standard deviation of a product of two features."""
        counts = [np.count_nonzero(design.matrix(part)) for part in parts]
        each = shares(sensitivities, counts, self.option("split"))
        rates = [
            part.scaled(run.epsilon * share / delta) if delta else part  # a part without sums costs nothing
            for part, share, delta in zip(parts, each, sensitivities, strict=True)
        ]
        noisy = design.scaled(np.sum([run.sum_products(design, rate) for rate in rates], axis=0))
        return noisy, noise_sd(rates[-1].product)

    AUDIT: ClassVar = AuditSpec(
        "diff-lr",
        (({}, 2, None), ({"split": "proportional"}, 2, None), ({"variant": "published"}, 2, None)),
        defaults={},
    )
