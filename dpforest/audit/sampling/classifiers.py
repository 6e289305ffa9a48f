"""Classifiers that try to tell which of two data sets an output came from: their scores make events."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

from dpforest.audit.sampling.features import Feature
from dpforest.audit.sampling.outputs import Batch

__all__ = ["classifiers"]

_LEARN = 20_000  # draws per side to learn from
_FLAGS = 16  # values of a label that are columns of their own


def classifiers(batches: tuple[Batch, Batch], features: list[Feature], seed: int) -> Iterator[Feature]:
    """Scores of a linear and of a boosted classifier, larger where the first data set is likelier.

    Labels are shown to them as one column per frequent value.  Both run on one thread, and their scores are
    rounded, so that they depend as little on the machine as may be: the last digits are another on each.
    """
    parts = [batch.part(0, min(batch.size, _LEARN)) for batch in batches]
    columns: list[tuple[Feature, float | None]] = [(feature, None) for feature in features if not feature.codes]
    for feature in features:
        if feature.codes:
            values, counts = np.unique(np.concatenate([feature(part) for part in parts]), return_counts=True)
            columns += [(feature, float(value)) for value in values[np.argsort(-counts, kind="stable")[:_FLAGS]]]
    if not columns:
        return
    bits = any(feature.bits for feature in features)

    def table(batch: Batch) -> np.ndarray:
        shown = [feature(batch) if value is None else feature(batch) == value for feature, value in columns]
        return np.clip(np.stack(shown, axis=1, dtype=float), -1e30, 1e30)

    seen, source = np.concatenate([table(part) for part in parts]), np.repeat([1, 0], [part.size for part in parts])
    centre, spread = _scale(seen)

    def scaled(batch: Batch) -> np.ndarray:
        return _scaled(table(batch), centre, spread)

    def quietly(score: Callable, form: Callable) -> Callable[[Batch], np.ndarray]:
        def quiet(batch: Batch) -> np.ndarray:
            with _threads().limit(limits=1):
                return np.round(score(form(batch)), 6)

        return quiet

    with warnings.catch_warnings(), _threads().limit(limits=1):
        warnings.simplefilter("ignore")  # a fit that stops early makes an event like another
        if len(columns) > 1:  # half-lines of a linear score of one column are those of the column
            linear = LogisticRegression(max_iter=100).fit(_scaled(seen, centre, spread), source)
            yield Feature("logistic score", quietly(linear.decision_function, scaled), bits=bits)
        boosted = HistGradientBoostingClassifier(
            max_iter=40, max_leaf_nodes=16, early_stopping=False, random_state=seed
        ).fit(seen, source)
        yield Feature("gradient boosting score", quietly(boosted.decision_function, table), bits=bits)


@cache
def _threads() -> ThreadpoolController:
    """The libraries that have threads, all loaded with scikit-learn: to look for them takes as long as a small fit."""
    return ThreadpoolController()


def _scale(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and spread of each column, not moved by a few wild values; 0 and 1 for a column without numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        centre = np.nan_to_num(np.nanmedian(seen, axis=0))
        spread = np.nan_to_num(np.nanmedian(np.abs(seen - centre), axis=0))
    return centre, np.where(spread > 0, spread, 1.0)


def _scaled(table: np.ndarray, centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num((table - centre) / spread), -20, 20)
