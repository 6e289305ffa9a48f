"""The two questions that a test asks, as fits of a tree of one node: a noisy count of cells, and a choice."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dpforest.arithmetic.fixed import fixed
from dpforest.evaluation.design_effect import SHARE
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest
from dpforest.privacy import claim
from dpforest.schema import Schema
from dpforest.scores import Score

__all__ = ["Evaluator", "ModelChooser", "cells_schema", "gain"]


def cells_schema(columns: dict[str, int], classes: Any) -> Schema:
    """The schema of a table of cells: a categorical column for each name, of so many cells."""
    return Schema(categorical={name: list(range(size)) for name, size in columns.items()}, classes=classes)


def _mean_gain(counts: np.ndarray) -> np.ndarray:
    levels = counts.shape[-2] - 1
    return (counts.sum(axis=-1) * np.arange(levels + 1)).sum(axis=-1) / levels


gain = Score(
    "gain",
    _mean_gain,
    lambda n: (1.0, 1.0),
    lambda n: (1.0, 2.0),
    True,
    ("thm-private-choice",),
    """The sum of the records' gains, each from 0 to 1: child ``c`` of ``L + 1`` holds those of gain ``c / L``, and L is
    a power of two.  Monotone; Δ = 1, R = 1 under add-remove and 2 under replace-one (:prf:ref:`thm-private-choice`).
    """,
    homogeneous=True,
    _exact=lambda counts: fixed(_mean_gain(counts)),
)


@claim("thm-private-test")
class Evaluator(PrivateForestClassifier):
    """Noisy counts of the cells of a table of one column, or of two, for each class.

    Attributes
    ----------
    forest_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``: :prf:ref:`thm-private-test`.
    """

    n_estimators = 1

    def as_proved(self, run: Run) -> Forest:
        """A tree for each column, which divides its root unseen; all is spent on the children."""
        run.start_forest(len(run.sizes))
        run.split_multiway(run.frontier, np.arange(len(run.sizes)))
        budgets = run.budget * np.array(self.shares(len(run.sizes)))
        run.set_leaf_values(run.frontier, run.count_classes(run.frontier, np.repeat(budgets, run.sizes)))
        return run.release()

    @staticmethod
    def shares(n_columns: int) -> tuple[float, ...]:
        """The share of each column in the budget."""
        return (1.0,) if n_columns == 1 else (1 - SHARE, SHARE)

    def counts(self) -> list[np.ndarray]:
        """The noisy counts of each column: float64, shape (n_cells, n_classes)."""
        roots, sizes = len(self.forest_.roots), self.schema_.cardinalities(self.n_bins_)
        return np.split(self.forest_.values[roots:].astype(float), np.cumsum(sizes)[:-1])


@claim("thm-private-choice")
class ModelChooser(PrivateForestClassifier):
    """A column, chosen by the sum of its records' gains.

    Attributes
    ----------
    forest_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``: :prf:ref:`thm-private-choice`.
    """

    n_estimators = 1
    SCORE: ClassVar = gain

    def as_proved(self, run: Run) -> Forest:
        """All is spent on the choice; the leaves below say nothing."""
        tree_budget = run.start_forest(1)
        feature = run.choose_feature(run.frontier, tree_budget, Selection(self.SCORE))
        run.split_multiway(run.frontier, feature)
        run.set_leaf_values(run.frontier, np.zeros((len(run.frontier), run.schema.n_classes), dtype=np.int64))
        return run.release()

    def chosen(self) -> int:
        """The place of the column."""
        return int(self.forest_.feature[0])
