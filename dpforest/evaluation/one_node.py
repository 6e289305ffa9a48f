"""The two questions that a test asks, as fits of a tree of one node: a noisy count of cells, and a choice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import numpy as np

from dpforest.arithmetic.fixed import fixed
from dpforest.evaluation.design_effect import SHARE
from dpforest.learners import persons
from dpforest.learners.base import PrivateForestClassifier, source_of_bits
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest
from dpforest.privacy import PERSON, ROW, check_epsilon, claim, sides
from dpforest.schema import Schema, frames
from dpforest.scores import Score

__all__ = ["ChargedFirst", "Evaluator", "ModelChooser", "cells_schema", "gain"]


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


class ChargedFirst(PrivateForestClassifier):
    """A learner of a test, which is charged before the rows of the test are read to make its table of cells."""

    _is_charged = False

    @claim("thm-account")
    @contextmanager
    def charged(self, columns: frames.Columns, X: Any, person: Any, max_rows: int | None) -> Iterator[None]:
        """Charge the accounts that are open, before a cell of ``X`` is read: its fit inside charges nothing more.

        Whether rows are refused is a function of the rows, so a refusal that cost nothing could be asked for without
        end.  All that can be said without a record is said before the charge.
        """
        most = persons.check_asked(person, max_rows, self.relation)
        epsilon = check_epsilon(self.epsilon)
        self.check_parameters()
        if self.random_state is None or isinstance(self.random_state, int):  # of a generator it may draw
            source_of_bits(self.source, self.random_state)
        persons.of_a_row(epsilon, self.promised_delta(), most or 1)
        sides.check_units(sides.carried(X, columns.shape[0]), ROW if most is None else PERSON, self.relation)
        with self._charged(epsilon, most, X):
            self._is_charged = True
            try:
                yield
            finally:
                self._is_charged = False

    def _charged(self, epsilon: float, max_rows: int | None, X: Any) -> AbstractContextManager[None]:
        return nullcontext() if self._is_charged else super()._charged(epsilon, max_rows, X)


@claim("thm-private-test")
class Evaluator(ChargedFirst):
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
class ModelChooser(ChargedFirst):
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
