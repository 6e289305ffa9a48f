"""Diff-LR (Zheng and Zou, 2016): the functional mechanism with the objective cut into parts by degree.

Of the paper we have a description only.  It is read like this: the noisy objective of linear regression has a part of
degree 0, one of degree 1 and one of degree 2 in the coefficients; each part has its own sensitivity, Δ_0, Δ_1 and Δ_2,
and a share of the budget that is proportional to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpforest.arithmetic import cbrt
from dpforest.design import Design, Weights
from dpforest.learners.audited import Audited
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.parameters import check_choice, check_number
from dpforest.models.linear import (  # fmt: skip
    REPAIRS,
    LinearModel,
    LinearRegressor,
    default_ridge,
    noise_sd,
    objective_terms,
    solve,
    solve_centred,
)
from dpforest.privacy import REPLACE_ONE, claim

__all__ = ["SPLITS", "DiffLRRegressor", "published_sensitivities", "shares"]

#: How the budget is divided over the parts.
SPLITS = ("proportional", "optimal")

#: The sums that make up each part of the objective, by degree.
PARTS = (("answer",), ("mean", "cross"), ("count", "first", "square", "product", "within"))


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


class DiffLRRegressor(PrivateEstimator, LinearRegressor):
    """Linear regression by the functional mechanism, the budget divided over the degrees of the objective.

    Parameters
    ----------
    epsilon : float
        Privacy budget.
    schema : Schema
        What is public.  Required.
    split : {"auto", "proportional", "optimal"}
        How the budget is divided, see :func:`~dpforest.papers.diff_lr.shares`.  Auto is by variant; ``"published"`` has
        proportional only.
    fit_intercept : {"auto", True, False}
        Auto is by variant: the paper's model has none.
    repair : {"auto", "shrink", "ridge", "spectral", "none"}
        What becomes of the noisy matrix: :func:`dpforest.models.linear.solve`.  Auto is ``"spectral"`` as published,
        ``"shrink"`` otherwise.
    ridge : {"auto"} or float
        In standard deviations of the noise in a second-degree sum.  Auto is 4 as published, else twice the square root
        of the number of feature coordinates.
    clip : {"auto", True, False}
        Whether predictions stay within the declared range.  Auto is by variant.
    n_bins, relation, variant, source, random_state, n_jobs
        As in :class:`~dpforest.papers.functional_mechanism.FunctionalMechanismRegressor`.

    Attributes
    ----------
    linear_ : LinearModel
    schema_, n_bins_, ledger_, guarantee_, n_features_in_, feature_names_in_

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``.  ``"published"`` has the noise of the functional mechanism,
    exactly (:prf:ref:`pub-diff-lr`), and so its loose guarantee.  The proved variant calibrates each part to its sharp
    sensitivity; the parts compose sequentially, under add-remove sharply (:prf:ref:`thm-diff-lr-split`).

    Source
    ------
    Zheng and Zou, 2016; only a description could be read, see the module.
    """

    _AUTO: ClassVar = {
        "published": {"split": "proportional", "fit_intercept": False, "clip": False},
        "proved": {"split": "optimal", "fit_intercept": True, "clip": True},
    }

    def __init__(
        self, *, epsilon=1.0, schema=None, split="auto", fit_intercept="auto", repair="auto", ridge="auto",
        clip="auto", n_bins="auto", relation="add-remove", variant="proved", source="seeded", random_state=None,
        n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.split = split
        self.fit_intercept = fit_intercept
        self.repair = repair
        self.ridge = ridge
        self.clip = clip
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, curator, chance, schema, ledger, epsilon):
        published = self.variant == "published"
        intercept = self.option("fit_intercept")
        coding = "centred" if intercept and not published else "unit"
        design = Design.of(schema, self.bins(schema), coding, intercept)
        rates = self._rates(design, epsilon)
        noisy = design.scaled(sum(curator.sum_products(design, part) for part in rates))
        second = rates[-1].product  # the weight of all second-degree sums of two columns
        solved = self._as_published if published else self._centred if intercept else self._through_zero
        slopes, height = solved(noisy, design, second, curator)
        return LinearModel(coding, "identity", self.option("clip"), np.array([height]), slopes[None])

    @claim("pub-diff-lr", "thm-diff-lr-split")
    def _rates(self, design: Design, epsilon: float) -> list[Weights]:
        """The weights of each part's sums, degree by degree."""
        d = design.n_features + design.intercept
        terms = objective_terms(d, design.intercept, 2.0, 1.0)
        if self.variant == "published":
            parts = [replace(terms, answer=1.0).only(*kinds) for kinds in PARTS]
            sensitivities: list[float] = list(published_sensitivities(d))
        else:
            # the term without coefficients does not move the minimum, two indicators of a column are never both 1,
            # and under replace-one everybody knows the number of records
            known = {"count": 0.0} if self.relation == REPLACE_ONE else {}
            parts = [replace(terms, within=0.0, **known).only(*kinds) for kinds in PARTS[1:]]
            sensitivities = [design.loss(part, self.relation) for part in parts]
        counts = [int((design.matrix(part) > 0).sum()) for part in parts]
        each = shares(sensitivities, counts, self.option("split"))
        return [
            part.scaled(epsilon * share / delta) if delta else part  # a part without sums costs nothing
            for part, share, delta in zip(parts, each, sensitivities, strict=True)
        ]

    def _as_published(self, noisy, design, second, curator):
        d = design.n_features + design.intercept
        sd = noise_sd(second) * (1 / d)  # of a sum of products of the paper's features
        weights = solve(
            noisy[:d, :d] / d, noisy[:d, design.targets] / math.sqrt(d), ridge=self._ridge(4.0) * sd,
            repair="spectral" if self.repair == "auto" else self.repair,
        )[:, 0] / math.sqrt(d)  # fmt: skip
        return (weights[1:], weights[0]) if design.intercept else (weights, 0.0)

    def _centred(self, noisy, design, second, curator):
        count = noisy[0, 0]
        if self.relation == REPLACE_ONE:
            count = curator.size(what="the number of records", where="Diff-LR, repaired: the mean of the target")
        means = np.clip(noisy[0, design.targets] / max(count, 1), -1, 1)
        slopes, heights = solve_centred(
            noisy[design.features, design.features], noisy[0, design.features], noisy[design.features, design.targets],
            count, means, **self._repair(second, design),
        )  # fmt: skip
        return slopes[:, 0], heights[0]

    def _through_zero(self, noisy, design, second, curator):
        square, cross = noisy[design.features, design.features], noisy[design.features, design.targets]
        return solve(square, cross, **self._repair(second, design))[:, 0], 0.0

    def _repair(self, second, design) -> dict:
        ridge = default_ridge(second, design.n_features)
        return {
            "ridge": ridge if self.ridge == "auto" else float(self.ridge) * noise_sd(second),
            "repair": "shrink" if self.repair == "auto" else self.repair,
        }

    def _ridge(self, default: float) -> float:
        return default if self.ridge == "auto" else float(self.ridge)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice(self.split, "split", ("auto", *SPLITS))
        if self.variant == "published" and self.split == "optimal":
            raise ValueError("variant='published' is the paper to the letter, which divides the budget proportionally")
        for name in ("fit_intercept", "clip"):
            check_choice(getattr(self, name), name, ("auto", True, False))
        check_choice(self.repair, "repair", ("auto", *REPAIRS))
        if not (isinstance(self.ridge, str) and self.ridge == "auto"):
            check_number(self.ridge, "ridge", 0, 1e100, "'auto' or a number, at least 0, of noise deviations")

    AUDIT: ClassVar = Audited(
        "diff-lr",
        (({}, 2, None), ({"split": "proportional"}, 2, None), ({"variant": "published"}, 2, None)),
        usual={},
    )
