"""Likelihood ratios of a paper's learner on neighbouring data sets: as published and as proved, both relations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpforest.audit.exact.laws import encode
from dpforest.audit.report.batches import Written
from dpforest.audit.report.fits import class_pair, fit_ratios
from dpforest.audit.sampling.ratios import LikelihoodRatios, likelihood_ratios
from dpforest.chance import Seeded
from dpforest.datasets import Dataset
from dpforest.models.boosted import SCALE
from dpforest.privacy import RELATIONS
from dpforest.schema import Schema
from dpforest.study.experiments import quiet

__all__ = ["SMALLEST", "TIE", "VARIANTS", "leaf_or_branch", "ratios_of", "votes_of"]

VARIANTS = ("published", "proved")
#: Records ``(smokes, class)``: one class alone, and a neighbour that also has a record of the other.
SMALLEST = {"add-remove": (((0, 0),), ((0, 0), (1, 1))), "replace-one": (((0, 0), (0, 0)), ((0, 0), (1, 1)))}
#: Two records that differ in their class alone, and a third, or a replaced one, that settles which class leads.
TIE = {"add-remove": (((0, 0), (0, 1)), ((0, 0), (0, 0), (0, 1))), "replace-one": (((0, 0), (0, 1)), ((0, 0), (0, 0)))}
_SCHEMA = Schema(categorical={"smokes": ["no", "yes"]}, classes=["well", "ill"])


def leaf_or_branch(words: str) -> str:
    """What an observer looks at: whether the first tree has a split."""
    return "the root is a branch" if "(" in words else "the root is a leaf"


def votes_of(estimator: Any) -> Callable[[Any, int, np.random.Generator], list[Written]]:
    """Draws of the largest vote of a boosted forest, in words, to one decimal: a mechanism to sample."""
    schema = estimator.audited_schema()

    def sample(records: Any, size: int, rng: np.random.Generator) -> list[Written]:
        table = encode(records, schema.n_features)
        fits = (estimator.replay(*table, schema, estimator.epsilon, Seeded(rng))[0] for _ in range(size))
        return [Written(f"a largest vote of {fit.forest.values.max() / SCALE:.1f}") for fit in fits]

    return sample


def ratios_of(
    build: Callable[..., Any],
    data: Dataset,
    draws: int,
    *,
    epsilon: float = 1.0,
    seed: int = 0,
    exact: bool = True,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    pairs: Mapping[str, Any] = SMALLEST,
    seen: Callable[[str], str] = leaf_or_branch,
    votes: bool = False,
) -> dict[str, LikelihoodRatios]:
    """Likelihood ratios of a classifier's fits, on the smallest pair of neighbours and on one of a table's own size.

    Parameters
    ----------
    build : callable
        ``build(schema=..., relation=..., variant=..., epsilon=..., random_state=...)`` gives the estimator.
    data : Dataset
        All records of its most frequent class, and a neighbour with one record of another.
    draws : int
        Fits on either side of each pair.
    epsilon : float
        What the estimator is asked for.
    seed : int
    exact : bool
        Whether replay shall give the exact ratios on the smallest pair.
    options : mapping of variant to keyword arguments, optional
        Further parameters of either variant.
    pairs : mapping of relation to a pair of data sets
        The small pairs: records ``(smokes, class)`` of zeros and ones.
    seen : callable
        What an observer looks at, made of a released model in words.
    votes : bool
        Whether on the large pair the largest vote of a boosted forest is looked at instead.

    Returns
    -------
    dict
        By pair, relation and variant, in words.
    """
    found = {}
    with quiet():
        for relation in RELATIONS:
            for variant in VARIANTS:
                made = {"relation": relation, "variant": variant, "epsilon": epsilon, "random_state": seed}
                made |= (options or {}).get(variant, {})
                small, large = (build(schema=schema, **made) for schema in (_SCHEMA, data.schema))
                asked: dict[str, Any] = {"n": draws, "seen": seen, "random_state": seed}
                found[f"{variant}, {relation}, smallest pair"] = fit_ratios(
                    small, pairs[relation], exact=exact, **asked
                )
                pair, name = class_pair(large, data.X, data.y), f"{variant}, {relation}, {data.name}"
                if votes:
                    found[name] = likelihood_ratios(
                        votes_of(large), pair, epsilon, n=draws, relation=relation, most=4, random_state=seed
                    )
                else:
                    found[name] = fit_ratios(large, pair, exact=False, **asked)
    return found
