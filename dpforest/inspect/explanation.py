"""Why a model says what it says of a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpforest.inspect.effects import trees_of
from dpforest.inspect.view import View
from dpforest.messages import shown

__all__ = ["Explanation", "explain"]

_SHOWN = 8  # terms of a record in its text and its picture
_MOST = 1 << 24  # numbers of one explanation


@dataclass(frozen=True, eq=False)
class Explanation:
    """The terms that sum to the scores of some records.

    Attributes
    ----------
    terms : ndarray of float64, shape (n_records, n_terms, n_outputs)
        What each term adds to the model's own scores; added one after the other they are ``scores``, bit for bit.
    names : list of str
        Of an additive model the features of each term, and first what every record gets; else one term for each tree.
    conditions : list of list of str
        For each record and term, in words, which of the values it has (of a tree: of its leaf) made the term.
    leaves : ndarray of int, shape (n_trees, n_records)
        The leaf that the record reached in each tree, by its number in the released table of nodes.
    scores : ndarray of float64, shape (n_records, n_outputs)
    answers : ndarray
        What ``predict_proba``, or ``predict`` of a regressor, says: computed from ``scores`` alone.
    shown : ndarray of float64, shape (n_records, n_terms, n_shown)
        The terms in the unit of ``unit``: of two classes how far the second is ahead, of a regression in units of the
        target, on top of ``start``.
    outputs, unit, start
        What ``shown`` speaks of.
    """

    terms: np.ndarray
    names: list[str]
    conditions: list[list[str]]
    leaves: np.ndarray
    scores: np.ndarray
    answers: np.ndarray
    shown: np.ndarray
    outputs: list[str]
    unit: str
    start: float
    classes: list[str] | None

    def __str__(self) -> str:
        return "\n\n".join(self._said(record) for record in range(len(self.terms)))

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.terms)} records by {len(self.names)} terms, in {self.unit}>"

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each record and term: what it adds to each output, in ``unit``."""
        import pandas as pd

        records = np.repeat(np.arange(len(self.terms)), len(self.names))
        words = [condition for each in self.conditions for condition in each]
        frame = pd.DataFrame({"record": records, "term": self.names * len(self.terms), "because": words})
        return pd.concat([frame, pd.DataFrame(self.shown.reshape(-1, len(self.outputs)), columns=self.outputs)], axis=1)

    def plot(self, record: int = 0, ax: Any = None) -> Any:
        """Draw the largest terms of one record; returns the Axes.

        Parameters
        ----------
        record : int
            Its place among those explained.
        ax : matplotlib.axes.Axes, optional
        """
        from dpforest.inspect.drawing import draw_explanation

        if isinstance(record, bool) or not isinstance(record, (int, np.integer)) or not 0 <= record < len(self.terms):
            raise ValueError(f"record must be a whole number from 0 to {len(self.terms) - 1}, not {shown(record)}")
        return draw_explanation(self, int(record), ax)

    def largest(self, record: int, output: int) -> tuple[list[int], list[int]]:
        """The terms of a record that are shown, the largest first, and the others."""
        order = np.argsort(-np.abs(self.shown[record, :, output]), kind="stable").tolist()
        return order[:_SHOWN], order[_SHOWN:]

    def output(self, record: int) -> int:
        """The output whose terms are shown: the likeliest class."""
        return 0 if len(self.outputs) == 1 else int(self.scores[record].argmax())

    def said(self, record: int) -> str:
        """The answer for a record, in words."""
        if self.classes is None:
            return f"predicted {self.answers[record]:.6g}"
        best = np.argsort(-self.answers[record], kind="stable")
        return ", ".join(f"{self.classes[place]} {self.answers[record, place]:.3g}" for place in best)

    def _said(self, record: int) -> str:
        output = self.output(record)
        chosen, rest = self.largest(record, output)
        about = f" for {self.outputs[output]}" if self.classes is not None else ""
        said = [f"record {record}: {self.said(record)}", f"  {self.unit}{about}:"]
        if self.start:
            said.append(f"  {self.start:+12.6g}  where every prediction begins")
        said += [f"  {self.shown[record, t, output]:+12.6g}  {self._line(record, t)}" for t in chosen]
        if rest:
            said.append(f"  {self.shown[record, rest, output].sum():+12.6g}  {len(rest)} more terms")
        total = self.start + self.shown[record, :, output].sum()
        return "\n".join([*said, f"  {total:+12.6g}  together"])

    def _line(self, record: int, term: int) -> str:
        condition = self.conditions[record][term]
        return f"{self.names[term]}: {condition}" if self.names[term].startswith("tree ") else condition


def explain(model: Any, X: Any) -> Explanation:
    """What made a model say what it says of some records.

    Parameters
    ----------
    model : estimator or released model
    X : frame or array-like, shape (n_records, n_features)
        A few records, in memory.

    Returns
    -------
    Explanation
        Print it, ask it ``to_frame()``, or ``plot()`` one record.

    Raises
    ------
    TypeError, ValueError
        It is no model of this library; records that the schema does not allow; so many that their terms do not fit.

    Guarantee
    ---------
    The model costs nothing more (:prf:ref:`thm-post-processing`).  The records that are explained are the caller's: an
    explanation shows their values, and is as secret as they are.
    """
    view = View(model)
    codes = view.codes(X)
    n_records, n_outputs = codes.shape[1], len(view.part.intercept) if view.kind == "linear" else view.values.shape[1]
    n_terms = len(view.sizes) + 1 if view.kind == "linear" else view.forest.n_trees
    if n_records * n_terms * n_outputs > _MOST:
        raise ValueError(f"{n_records} records have too many terms to explain at once: give a few of them")
    leaves = view.forest.leaves(codes) if view.kind != "linear" else np.zeros((0, n_records), dtype=np.int32)
    if view.kind == "linear":
        names, parts, conditions = _of_columns(view, codes)
    elif view.is_additive:
        names, parts, conditions = _of_tables(view, codes, leaves)
    else:
        names, parts, conditions = _of_trees(view, leaves)
    terms = np.stack([np.broadcast_to(part, (n_records, n_outputs)) for part in parts], axis=1)
    scores = np.zeros((n_records, n_outputs))
    for number in range(len(names)):
        scores = scores + terms[:, number]
    classes = None if view.schema.classes is None else [view.words.outcome(k) for k in range(view.schema.n_classes)]
    return Explanation(
        terms,
        names,
        conditions,
        leaves,
        scores,
        model._predict_from_scores(scores),
        view.shown(terms),
        view.outputs,
        view.unit,
        view.start,
        classes,
    )


Parts = tuple[list[str], list[np.ndarray], list[list[str]]]
_EVERY = "every record"


def _of_columns(view: View, codes: np.ndarray) -> Parts:
    tables = view.tables
    parts = [view.part.intercept[None], *(table[row] for table, row in zip(tables, codes, strict=True))]
    conditions = [
        [_EVERY, *(_value(view, feature, codes[feature, at]) for feature in range(len(tables)))]
        for at in range(codes.shape[1])
    ]
    return [_EVERY, *view.words.names], parts, conditions


def _of_tables(view: View, codes: np.ndarray, leaves: np.ndarray) -> Parts:
    groups = dict(sorted(trees_of(view).items(), key=lambda item: (len(item[0]), item[0])))
    # votes are whole steps, which add up exactly in any order
    parts = [view.values[leaves[trees]].sum(axis=0) for trees in groups.values()]
    names = [" x ".join(view.words.names[feature] for feature in features) or _EVERY for features in groups]
    conditions = [
        [", ".join(_value(view, feature, codes[feature, at]) for feature in features) or _EVERY for features in groups]
        for at in range(codes.shape[1])
    ]
    return names, parts, conditions


def _of_trees(view: View, leaves: np.ndarray) -> Parts:
    said = {leaf: _way(view, leaf) for leaf in np.unique(leaves).tolist()}
    conditions = [[said[leaf] for leaf in column] for column in leaves.T.tolist()]
    return [f"tree {tree}" for tree in range(len(leaves))], [view.values[row] for row in leaves], conditions


def _value(view: View, feature: int, code: Any) -> str:
    return view.words.condition(feature, np.arange(view.sizes[feature]) == code)


def _way(view: View, leaf: int) -> str:
    """The conditions of a leaf: for each feature on its way, the codes that lead there."""
    inside: dict[int, np.ndarray] = {}
    while (up := int(view.parents[leaf])) >= 0:
        feature = int(view.forest.feature[up])
        mine = dict(view.children(up))[leaf]
        inside[feature] = mine & inside.get(feature, np.ones(view.sizes[feature], dtype=bool))
        leaf = up
    return ", ".join(view.words.condition(*item) for item in sorted(inside.items())) or _EVERY
