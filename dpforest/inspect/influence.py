"""How much a model's answers depend on each feature, and how."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest.inspect.view import View
from dpforest.messages import plain

__all__ = ["importances", "partial_dependence"]

_POINTS = 1024  # public points at which a model is asked
_SHIFTS = (1, 97, 331, 509)  # from which of the points each one borrows a value


def importances(model: Any, X: Any = None) -> Any:
    """How far an answer moves, on average, when one feature has another record's value.

    Parameters
    ----------
    model : estimator or released model
    X : frame or array-like, shape (n_records, n_features), optional
        Records to ask about, which should be public: what is computed from private records is not private.  Without
        them the model is asked at 1024 fixed points that spread evenly over all that the schema allows: every bin,
        category and code for missing values of a feature is as frequent as any other, and features are independent.

    Returns
    -------
    pandas.Series
        By feature, the largest first.  For classes the mean total variation distance of the probabilities, from 0 (the
        feature is not used) to 1; for a target the mean absolute change, in units of the target.

    Notes
    -----
    Measured is what the model does, noise included: a split that noise chose counts as any other.  Real records do not
    spread evenly, so the order may differ among them.

    Guarantee
    ---------
    Without ``X`` nothing is paid: the model alone is read (:prf:ref:`thm-post-processing`).
    """
    import pandas as pd

    view = View(model)
    codes = view.points(_POINTS) if X is None else view.codes(X)
    if not codes.shape[1]:
        raise ValueError("X has no records: leave it out to ask about the public schema alone")
    before, found = view.answer(codes), np.zeros(len(view.sizes))
    for feature in _used(view):
        for shift in _SHIFTS:
            moved = codes.copy()
            moved[feature] = np.roll(codes[feature], shift)
            change = np.abs(view.answer(moved) - before).sum(axis=1).mean()
            found[feature] += change / len(_SHIFTS) / (1 if view.schema.classes is None else 2)
    name = "change of the prediction" if view.schema.classes is None else "change of the probabilities"
    order = np.argsort(-found, kind="stable")
    return pd.Series(found[order], index=[view.words.names[feature] for feature in order], name=name)


def partial_dependence(model: Any, feature: str, X: Any = None) -> Any:
    """The mean answer when all records have the same value of one feature, for each of its values.

    Parameters
    ----------
    model : estimator or released model
    feature : str
        A column of the schema.
    X : frame or array-like, shape (n_records, n_features), optional
        Records whose other features are taken, which should be public: what is computed from private records is not
        private.  Without them, the 1024 points of :func:`importances`.

    Returns
    -------
    pandas.DataFrame
        A row for each public bin, category, and the code for missing values, in words; a column of probabilities for
        each class, or ``"target"``.

    Guarantee
    ---------
    Without ``X`` nothing is paid: the model alone is read (:prf:ref:`thm-post-processing`).
    """
    import pandas as pd

    view = View(model)
    number = view.feature(feature)
    codes = view.points(_POINTS) if X is None else view.codes(X).copy()
    if not codes.shape[1]:
        raise ValueError("X has no records: leave it out to ask about the public schema alone")
    rows = []
    for code in range(view.sizes[number]):
        codes[number] = code
        rows.append(view.answer(codes).mean(axis=0))
    labels = [view.words.value(number, code) for code in range(view.sizes[number])]
    columns = ["target"] if view.schema.classes is None else view.schema.classes.tolist()
    return pd.DataFrame(rows, index=pd.Index(labels, name=plain(feature)), columns=columns)


def _used(view: View) -> list[int]:
    """Features that the answers may depend on."""
    if view.kind == "linear":
        return [feature for feature, table in enumerate(view.tables) if table.any()]
    return np.unique(view.forest.feature[view.forest.feature >= 0]).tolist()
