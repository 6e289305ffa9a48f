"""What a released model says of a record, and what is true of it, as a cell of a public grid.

Each record is read by itself: its cell is a function of the record and of what was released before, not of other rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpforest.arithmetic import log
from dpforest.engines import is_out_of_core
from dpforest.learners import intake
from dpforest.models.predictor import Predictor
from dpforest.privacy import SECURE, Guarantee, account, sides
from dpforest.schema import TARGET_LEVELS, Schema, frames

__all__ = [
    "GAINS",
    "LEVELS",
    "MOST_CELLS",
    "as_given",
    "check_model",
    "error_cells",
    "gains",
    "look",
    "note_test",
    "open_rows",
    "said_cells",
]

MOST_CELLS = 240
LEVELS = 64  # of a gain; a power of two, so that sums are exact
_LEAST = 0.01  # a probability below counts as this

#: The measures by which models are chosen, for classes and for numbers.
GAINS = {True: ("accuracy", "log loss", "brier score"), False: ("absolute error", "squared error")}


def check_model(model: Any) -> Any:
    """A copy of the model, if it is one of this library that was fitted or loaded, that is quiet about values it meets.

    For a model, rows are a query; here they are people, and :func:`open_rows` warns the table's owner of such values.
    """
    if not isinstance(model, Predictor):
        within = {"best_estimator_": "the learner that it kept, .best_estimator_", "steps": "its last step, [-1]"}
        inner = next((what for name, what in within.items() if hasattr(model, name)), "")
        raise TypeError(
            f"a {type(model).__name__} is no model of this library: whether its answer to a row depends on the rows "
            "next to it is not known, and a theorem needs that it does not"
            + (f"; give {inner}, and the rows as that takes them" if inner else "")
        )
    account.check_process(model)
    quiet = copy.copy(model)
    if not hasattr(quiet, "guarantee_"):
        raise ValueError(f"this {type(model).__name__} is not fitted yet: call fit first")
    quiet.tells_strays = False
    return quiet


def look(X: Any, y: Any, person: Any, schemas: Iterable[Schema]) -> tuple[frames.Columns, list[Schema]]:
    """A test table in memory, of which only the names were looked at, and what is declared of it, each once."""
    if is_out_of_core(X):
        raise TypeError("read the test rows into memory: tests of tables that an engine reads are not covered")
    declared: list[Schema] = []
    for schema in schemas:
        plain = schema.with_grid("even")  # which bounds and categories there are, whatever the bins between them
        if plain not in declared:
            declared.append(plain)
    return intake.look(X, y, None, person, declared[0]), declared


def open_rows(columns: frames.Columns, y: Any, person: Any, declared: Iterable[Schema]) -> intake.Opened:
    """Read a table that was looked at, and charged for; what a schema does not know is warned of."""
    opened = intake.columns_of(columns, y, None, person)
    for schema in declared:
        intake.encode(opened.columns, opened.answers, schema, 2)
    return opened


def as_given(cells: np.ndarray, X: Any) -> np.ndarray:
    """The cells, which carry the coins by which the test rows were put aside."""
    sides.carry(cells, sides.carried(X, len(cells)))
    return cells


def note_test(X: Any, promise: Guarantee) -> None:
    """Warn where these rows were released from before, by a fit or a test, outside of any account."""
    if not account.active() and promise.source == SECURE:
        account.note_release(X, promise, above=1)


def said_cells(model: Any, table: Any, bins: int) -> np.ndarray:
    """The cell of what a classifier says: int64, shape (n_rows,).

    Of two classes one of ``bins`` bins of the second one's probability, those above the middle exactly where it is
    predicted.  Of more, ``bins`` bins of the predicted class's probability, from ``1 / n_classes`` to 1, one class
    after the other.
    """
    chances = model.predict_proba(table)
    best = chances.argmax(axis=1)
    if chances.shape[1] == 2:
        cells = np.ceil(chances[:, 1] * bins).astype(np.int64) - 1
        return np.where(best == 1, np.clip(cells, bins // 2, bins - 1), np.clip(cells, 0, bins // 2 - 1))
    least = 1 / chances.shape[1]
    sure = (chances[np.arange(len(best)), best] - least) / (1 - least)
    return best * bins + np.clip(np.floor(sure * bins).astype(np.int64), 0, bins - 1)


def error_cells(model: Any, table: Any, targets: Any, bins: int) -> np.ndarray:
    """The cell of a regressor's absolute error: the root of its share of the target's range, in ``bins`` bins."""
    return np.clip(np.floor(np.sqrt(_errors(model, table, targets)) * bins).astype(np.int64), 0, bins - 1)


def gains(model: Any, table: Any, answers: Any, measure: str) -> np.ndarray:
    """What a model gains on each record, from 0 to ``LEVELS``: int64, shape (n_rows,)."""
    if model.schema_.classes is None:
        share = _errors(model, table, answers) ** (2 if measure == "squared error" else 1)
        return np.rint((1 - share) * LEVELS).astype(np.int64)
    labels = model.schema_.encode_labels(answers)
    chances = model.predict_proba(table)
    if measure == "accuracy":
        return np.where(chances.argmax(axis=1) == labels, LEVELS, 0)
    mine = chances[np.arange(len(labels)), labels]
    if measure == "log loss":
        share = log(np.maximum(mine, _LEAST)) / log(_LEAST)
    else:  # half the squared distance from the truth
        share = (((chances**2).sum(axis=1) - 2 * mine + 1) / 2).clip(0, 1)
    return np.rint((1 - share) * LEVELS).astype(np.int64)


def _errors(model: Any, table: Any, targets: Any) -> np.ndarray:
    low, high = model.schema_.target
    codes, _ = model.schema_.encode_target(targets)
    said = (np.asarray(model.predict(table), dtype=float) - low) / (high - low)
    return np.abs(said - codes / TARGET_LEVELS).clip(0, 1)
