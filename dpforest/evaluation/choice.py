"""Choosing one of several released models by a test that is paid for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpforest.arithmetic import log
from dpforest.evaluation.answers import GAINS, LEVELS, as_given, check_model, gains, look, note_test, open_rows
from dpforest.evaluation.one_node import ModelChooser, cells_schema
from dpforest.learners.parameters import check_choice
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, SEEDED, Guarantee, Ledger, claim

__all__ = ["Choice", "choose"]


@dataclass(frozen=True, eq=False)
class Choice:
    """A model that was chosen privately.

    Attributes
    ----------
    name : str or int
        Its key, or its place in a list.
    model : learner or released model
    names : tuple
        What it was chosen from.
    measure : str
    margin : float
        With probability 95 % at least, its gain on the test rows is behind the best one's by at most so many records.
    guarantee : Guarantee
    ledger : Ledger
    """

    name: Any
    model: Any
    names: tuple
    measure: str
    margin: float
    guarantee: Guarantee
    ledger: Ledger

    def __repr__(self) -> str:
        return (
            f"<{self.name!r}, of {len(self.names)} by {self.measure}, at most {self.margin:.3g} records behind the "
            f"best; {self.guarantee}>"
        )


@claim("thm-private-choice")
def choose(
    models: Mapping[Any, Any] | Sequence[Any],
    X: Any,
    y: Any,
    epsilon: float,
    *,
    measure: str = "auto",
    relation: str = ADD_REMOVE,
    person: Any = None,
    max_rows: int | None = None,
    source: str = SEEDED,
    random_state: Any = None,
) -> Choice:
    """Private model selection: the model that does best on test rows, by permute-and-flip.

    Parameters
    ----------
    models : mapping or sequence of fitted learners or loaded models
        From 2 to 1,000, that predict the same classes, or numbers of the same range.
    X : frame or array-like, shape (n_rows, n_features)
        Test rows, in memory, which none of the models has seen: see :func:`hold_out`.
    y : array-like of shape (n_rows,), or str
        Labels or targets, or the name of their column.
    epsilon : float
        The price of the choice, however many models there are.
    measure : str
        For classes ``"accuracy"``, ``"log loss"`` (a probability below 0.01 counts as 0.01) or ``"brier score"``; for
        numbers ``"absolute error"`` or ``"squared error"``, in shares of the target's range.  A record gains from 0
        to 1, in steps of 1/64.  ``"auto"``: log loss, and squared error.
    relation, person, max_rows, source, random_state
        As for a learner and its ``fit``.

    Returns
    -------
    Choice

    Raises
    ------
    BudgetError
        An account is open and refuses the charge: nothing was read.
    TypeError, ValueError
        On models that cannot be compared, and whatever ``fit`` raises.

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``, for the test rows: :prf:ref:`thm-private-choice`.
    """
    if not isinstance(models, Iterable) or isinstance(models, str):
        raise TypeError(f"models must be a list of fitted models, or a mapping of names to them, not {shown(models)}")
    named = dict(models) if isinstance(models, Mapping) else dict(enumerate(models))
    if not 2 <= len(named) <= 1000:
        raise ValueError(f"models must be from 2 to 1,000, not {len(named)}")
    quiet = [check_model(model) for model in named.values()]
    first, *others = quiet
    for other in others:
        if _answers(other) != _answers(first):
            raise ValueError("the models do not answer the same question: their classes or target ranges differ")
    known = GAINS[first.schema_.classes is not None]
    check_choice(measure, "measure", ("auto", *known))
    measure = known[1] if measure == "auto" else measure
    names = [str(place) for place in range(len(named))]
    chooser = ModelChooser(
        epsilon=epsilon,
        schema=cells_schema(dict.fromkeys(names, LEVELS + 1), [0, 1]),
        relation=relation,
        source=source,
        random_state=random_state,
    )
    columns, declared = look(X, y, person, [model.schema_ for model in quiet])
    with chooser.charged(columns, X, person, max_rows):
        rows = open_rows(columns, y, person, declared)
        cells = np.stack([gains(model, rows.columns, rows.answers, measure) for model in quiet], axis=1)
        chooser.fit(as_given(cells, X), np.zeros(len(cells), dtype=int), person=rows.persons, max_rows=max_rows)
    note_test(X, chooser.guarantee_)
    name = list(named)[chooser.chosen()]
    rate = chooser.ledger_.epsilon / chooser.SCORE.exact_range(relation)
    margin = 0.0 if math.isinf(rate) else float(log((len(named) - 1) / 0.05)) / rate
    return Choice(name, named[name], tuple(named), measure, margin, chooser.guarantee_, chooser.ledger_)


def _answers(model: Any) -> tuple:
    classes = model.schema_.classes
    return ("numbers", *model.schema_.target) if classes is None else ("classes", *classes.tolist())
