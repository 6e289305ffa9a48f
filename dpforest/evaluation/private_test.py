"""A private test of a released model: one noisy table, and every measure that can be read off it."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from dpforest.arithmetic import log
from dpforest.evaluation.answers import (
    MOST_CELLS,
    as_given,
    check_model,
    error_cells,
    look,
    note_test,
    open_rows,
    said_cells,
)
from dpforest.evaluation.design_effect import alike_cells, design_effect, n_alike_cells
from dpforest.evaluation.estimates import Estimate, Ratio, estimate, noise_variance
from dpforest.evaluation.one_node import Evaluator, cells_schema
from dpforest.inspect.drawing import MORE, WIDTH, on_white
from dpforest.learners import persons
from dpforest.learners.parameters import check_count, check_number
from dpforest.messages import check_names, plain, shown
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, SEEDED, Guarantee, Ledger, claim
from dpforest.schema import Schema, frames

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Evaluation", "evaluate"]

_ROOT = "root mean squared error"
Measure = Callable[[np.ndarray], float]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a private test has found: a noisy table, and what is read off it at no further cost.

    ``test["accuracy"].value`` is a number of it, ``.low`` and ``.high`` are its interval, and :meth:`measures` has all.

    Attributes
    ----------
    counts : ndarray of float64, shape (n_cells, n_classes)
        The noisy table.  Its rows are bins of the second class's probability; with more than two classes the bins of
        each predicted class, one class after the other; for a regressor bins of the absolute error, in one column.
    classes : tuple
        Of a regressor, none.
    bins : int
    width : float
        Of the target's range, for a regressor.
    variance : float
        Of the noise of one count.
    level : float
        With which the intervals are meant to hold.
    guarantee : Guarantee
    ledger : Ledger
    groups : dict
        The same for the records of each group, where the test was asked for one ``by`` them; the table is their sum.
    design_effect : float
        By how much the variance by which these rows were put aside is larger than that of independent ones, for rows of
        one person are alike; 1 for a test of rows, or of one row of each person.
    """

    counts: np.ndarray
    classes: tuple
    bins: int
    width: float
    variance: float
    level: float
    guarantee: Guarantee
    ledger: Ledger
    groups: dict[Any, Evaluation] = field(default_factory=dict)
    design_effect: float = 1.0

    def measures(self) -> dict[str, Estimate]:
        """Every measure by its name.

        For classes: accuracy and balanced accuracy; ``"excess confidence"``, by how much the probability of the
        predicted class is too large on average; and for two classes AUC, log loss and Brier score.  For numbers: mean
        absolute error and root mean squared error, in the target's unit.  A probability or an error counts as the
        middle of its bin, the square of an error as the mean of the squares over its bin.
        """
        return {name: self[name] for name in self._measures()}

    def __getitem__(self, name: str) -> Estimate:
        found = self._measures()
        if name not in found:
            raise KeyError(f"a test of {self.kind} has {', '.join(found)}; not {shown(name)}")
        # of a mean the law is nearly normal, and of its root it is not where the noise is large
        return self._estimate(*found[name]).root() if name == _ROOT else self._estimate(*found[name])

    def at(self, threshold: float) -> dict[str, Estimate]:
        """Sensitivity, specificity and precision where the second class is said from this probability on.

        Parameters
        ----------
        threshold : float
            From 0 to 1; the nearest edge of a bin is taken.
        """
        first = self._edge(threshold)

        above = np.arange(self.bins)[:, None] >= first
        negative, positive = np.array([1, 0]), np.array([0, 1])
        return {
            "sensitivity": self._estimate(Ratio(above * positive, positive), (0, 1)),
            "specificity": self._estimate(Ratio(~above * negative, negative), (0, 1)),
            "precision": self._estimate(Ratio(above * positive, above), (0, 1)),
        }

    def threshold(self, false_alarm: float = 1.0, miss: float = 1.0) -> float:
        """The probability from which on to say the second class, so that the errors of these costs cost least here.

        Parameters
        ----------
        false_alarm, miss : float
            What it costs to say the second class of a record of the first, and the reverse.

        Returns
        -------
        float
            An edge of the bins; of several the one nearest to ``false_alarm / (false_alarm + miss)``, which is right
            for calibrated probabilities.
        """
        check_number(false_alarm, "false_alarm", 1e-9, 1e9)
        check_number(miss, "miss", 1e-9, 1e9)
        self._edge(0.5)  # refuses what has no threshold
        alarms = np.append(self.counts[::-1, 0].cumsum()[::-1], 0)  # at and above each edge
        misses = np.append(0, self.counts[:, 1].cumsum())
        cost, edges = false_alarm * alarms + miss * misses, np.arange(self.bins + 1) / self.bins
        best = np.flatnonzero(cost == cost.min())
        return float(edges[best[np.abs(edges[best] - false_alarm / (false_alarm + miss)).argmin()]])

    def within(self, share: float = 0.9) -> float:
        """How far off the predictions are at most, for this share of all people: the half width of their intervals.

        Parameters
        ----------
        share : float
            Above 0 and below 1.

        Returns
        -------
        float
            In the target's unit, an edge of the bins: ``predict(X) - within()`` to ``predict(X) + within()`` holds the
            truth for the share, and with the probability ``level`` for no less.  The width of the target where the
            noise allows no narrower one.

        Notes
        -----
        The first edge beyond which, as beyond each wider one, there are at most ``1 - share`` of the records, when a
        margin for the noise and for the chance by which these rows were put aside is added (a normal law, one-sided).
        Edges are so tested from the widest on, up to the first that fails: an answer that is too narrow has passed
        the widest of all that are, which one test in ``1 / (1 - level)`` does.  The first edge that passes, whatever
        wider ones say, would be the luckiest of many.
        """
        if self.kind != "numbers":
            raise ValueError(f"half widths are for numbers, and this was a test of {self.kind}")
        check_number(share, "share", 1e-6, 1 - 1e-6, "above 0 and below 1")
        beyond = self.counts[::-1, 0].cumsum()[::-1][1:]  # each edge but 0 and the last
        bins, total = np.arange(1, self.bins), max(float(self.counts.sum()), 1.0)
        noise = self.variance * ((self.bins - bins) * share**2 + bins * (1 - share) ** 2)
        margin = NormalDist().inv_cdf(self.level) * np.sqrt(noise + self.design_effect * total * share * (1 - share))
        bad = np.flatnonzero(beyond + margin > (1 - share) * total)
        edge = (bad[-1] + 2 if bad.size else 1) / self.bins
        return float(edge**2 * self.width)

    def confusion(self) -> pd.DataFrame:
        """Noisy numbers of records by their class (rows) and the predicted one (columns)."""
        import pandas as pd

        self._check_classes()
        table = [self.counts[self._predicted_class == place].sum(axis=0) for place in range(len(self.classes))]
        names = list(map(str, self.classes))
        return pd.DataFrame(
            np.stack(table, axis=1), index=pd.Index(names, name="is"), columns=pd.Index(names, name="predicted")
        )

    def calibration(self) -> pd.DataFrame:
        """For each bin its middle, the noisy number of its records, and how often what was said was true.

        What is said is the second of two classes, and else the predicted one; ``share``, ``low`` and ``high`` are an
        estimate and its interval.
        """
        import pandas as pd

        self._check_classes()
        two = self.kind == "two classes"
        middles, true = (self.middles, np.array([0, 1])) if two else (self._confidence[: self.bins], self._is_right)
        rows = []
        for place, middle in enumerate(middles):
            own = (np.arange(len(self.counts)) % self.bins == place)[:, None]
            found = self._estimate(Ratio(own * true, own), (0, 1))
            records = self.counts[place :: self.bins].sum()
            rows.append((middle, records, found.value, found.low, found.high))
        return pd.DataFrame(rows, columns=["said", "records", "share", "low", "high"])

    @on_white
    def plot_calibration(self, ax: Axes | None = None) -> Axes:
        """Draw how often what was said was true, with the intervals; on the diagonal it is calibrated."""
        import matplotlib.pyplot as plt

        table = self.calibration()
        table = table[table["high"] - table["low"] < 1]
        ax = plt.subplots(figsize=(WIDTH, 4))[1] if ax is None else ax
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
        around = [table["share"] - table["low"], table["high"] - table["share"]]
        ax.errorbar(table["said"], table["share"], yerr=around, fmt="o", color=MORE, markersize=4, capsize=2)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability that the model says", ylabel="share for which it is true")
        return ax

    def to_frame(self) -> pd.DataFrame:
        """A row for each measure: value, low, high, noise."""
        import pandas as pd

        return pd.DataFrame(
            {name: vars(found) for name, found in self.measures().items()}, index=["value", "low", "high", "noise"]
        ).T

    def __str__(self) -> str:
        lines = [f"private test, intervals of {self.level:.0%}; {self.guarantee}", *_lines(self.measures())]
        for group, part in self.groups.items():
            lines += [f"  of {plain(group)}", *(f"  {line}" for line in _lines(part.measures()))]
        return "\n".join(lines)

    # -- what the measures are computed from -----------------------------------------------------------------

    @property
    def kind(self) -> str:
        """What was tested, one of ``"two classes"``, ``"classes"`` and ``"numbers"``."""
        return "numbers" if not self.classes else "two classes" if len(self.classes) == 2 else "classes"

    @property
    def middles(self) -> np.ndarray:
        """The middles of the bins between 0 and 1, float64 of shape (bins,)."""
        return (np.arange(self.bins) + 0.5) / self.bins

    def _measures(self) -> dict[str, tuple[Measure, tuple[float, float]]]:
        """How each measure, or the square of the root, is read off a table of counts, and what it cannot leave."""
        if self.kind == "numbers":
            edges = (np.arange(self.bins + 1) / self.bins) ** 2 * self.width
            low, high = edges[:-1, None], edges[1:, None]
            squares = (low**2 + low * high + high**2) / 3
            return {
                "mean absolute error": (Ratio((low + high) / 2), (0, self.width)),
                _ROOT: (Ratio(squares), (0, self.width**2)),
            }
        right, sure = self._is_right, self._confidence[:, None]
        found: dict[str, tuple[Measure, tuple[float, float]]] = {
            "accuracy": (Ratio(right), (0, 1)),
            "balanced accuracy": (Ratio(right, of_columns=True), (0, 1)),
            "excess confidence": (Ratio(sure - right), (-1, 1)),
        }
        if self.kind == "classes":
            return found
        middles = self.middles
        losses = -np.stack([log(1 - middles), log(middles)], axis=1)
        squares = np.stack([middles, 1 - middles], axis=1) ** 2
        return found | {
            "AUC": (_auc, (0, 1)),
            "log loss": (Ratio(losses), (0, math.inf)),
            "Brier score": (Ratio(squares), (0, 1)),
        }

    @property
    def _predicted_class(self) -> np.ndarray:
        """The place of the class that is predicted in each cell."""
        return _predicted(len(self.counts), len(self.classes), self.bins)

    @property
    def _is_right(self) -> np.ndarray:
        """Which cells and classes are right predictions, shape (n_cells, n_classes)."""
        return _kinds(len(self.counts), len(self.classes), self.bins).astype(float)

    @property
    def _confidence(self) -> np.ndarray:
        """The probability of the predicted class in each cell."""
        if self.kind == "two classes":
            return np.maximum(self.middles, 1 - self.middles)
        least = 1 / len(self.classes)
        return np.tile(least + (1 - least) * self.middles, len(self.classes))

    def _estimate(self, measure: Measure, bounds: tuple[float, float]) -> Estimate:
        quantile = NormalDist().inv_cdf((1 + self.level) / 2)
        return estimate(measure, self.counts, self.variance, quantile, bounds, self.design_effect)

    def _edge(self, threshold: float) -> int:
        if self.kind != "two classes":
            raise ValueError(f"a threshold is for two classes, and this was a test of {self.kind}")
        return round(check_number(threshold, "threshold", 0, 1) * self.bins)

    def _check_classes(self) -> None:
        if self.kind == "numbers":
            raise ValueError("this is for classes, and the model predicts numbers")


def _lines(found: dict[str, Estimate]) -> list[str]:
    width = max(map(len, found))
    return [f"  {name:<{width}}  {each}" for name, each in found.items()]


def _auc(counts: np.ndarray) -> float:
    """The share of pairs of both classes in which the second one's record has the larger score; ties count half."""
    first, second = counts.T
    below = np.cumsum(first) - first
    pairs = float(first.sum()) * float(second.sum())
    return float((second * (below + first / 2)).sum() / pairs) if min(first.sum(), second.sum()) > 0 else math.nan


@claim("thm-private-test")
def evaluate(
    model: Any,
    X: Any,
    y: Any,
    epsilon: float,
    *,
    bins: int = 20,
    level: float = 0.95,
    by: str | Mapping | None = None,
    relation: str = ADD_REMOVE,
    person: Any = None,
    max_rows: int | None = None,
    source: str = SEEDED,
    random_state: Any = None,
) -> Evaluation:
    """Private evaluation: how good a released model is on test rows, with intervals that include the noise.

    Parameters
    ----------
    model : fitted learner or loaded model
    X : frame or array-like, shape (n_rows, n_features)
        Test rows, in memory, which the model has not seen: see :func:`hold_out`.
    y : array-like of shape (n_rows,), or str
        Labels or targets, or the name of their column.
    epsilon : float
        The price of all measures together.
    bins : int
        Of a probability or of an error: even, from 2 to 240; for K classes there are at most 240 / K, and one at
        least.  More bins see more, and hold more noise.
    level : float
        With which the intervals are meant to hold, above 0.5 and below 1; approximately, for they come from a normal
        law.
    by : str, mapping or None
        Groups, such as of sex or of origin, that are looked at one by one: a categorical column of the model's schema,
        or a column of ``X`` with its public groups, ``{"origin": ["here", "elsewhere"]}``.  All together have the
        price of one, for a record is in one group.  There are at most 240 cells, so many groups have fewer bins.
    relation, person, max_rows, source, random_state
        As for a learner and its ``fit``.  What is estimated is then the measure in which a person counts with at most
        ``max_rows`` rows.  Rows of one person may be alike, and then tell less: above ``max_rows=1`` a tenth of the
        budget goes into a second table, of how alike they are, and the intervals are as wide as that says.

    Returns
    -------
    Evaluation

    Raises
    ------
    BudgetError
        An account is open and refuses the charge: nothing was read.
    TypeError, ValueError
        On a model of another library or one that was not fitted, and whatever ``fit`` raises.

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``, for the test rows: :prf:ref:`thm-private-test`.

    Examples
    --------
    >>> from dpforest import RandomTreesClassifier, Schema, evaluation
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X, y = [[i / 400] for i in range(400)], ["no"] * 200 + ["yes"] * 200
    >>> aside = evaluation.hold_out(X, 0.5, source="seeded", random_state=0)
    >>> kept, tests, kept_y, tests_y = aside.split(X, y)
    >>> model = RandomTreesClassifier(epsilon=2.0, schema=schema, random_state=0).fit(kept, kept_y)
    >>> test = evaluation.evaluate(model, tests, tests_y, epsilon=0.5, bins=2, random_state=0)
    >>> test["accuracy"].value > 0.9
    True
    """
    model = check_model(model)
    check_number(level, "level", 0.5, 1 - 1e-9, "above 0.5 and below 1")
    check_count(bins, "bins", 2, MOST_CELLS)
    columns, declared = look(X, y, person, [model.schema_])
    classes = () if model.schema_.classes is None else tuple(model.schema_.classes.tolist())
    groups, place = _groups(by, model.schema_, columns)
    bins = _suited_bins(bins, len(classes), None if by is None else len(groups))
    size = bins * (len(classes) if len(classes) > 2 else 1)
    kinds, most_rows = _kinds(size, len(classes), bins), persons.check_asked(person, max_rows, relation) or 1
    sizes = {"said": size * len(groups)} | ({"alike": n_alike_cells(most_rows)} if most_rows > 1 else {})
    tester = Evaluator(
        epsilon=epsilon,
        schema=cells_schema(sizes, list(classes) or [0, 1]),
        relation=relation,
        source=source,
        random_state=random_state,
    )
    with tester.charged(columns, X, person, max_rows):
        rows = open_rows(columns, y, person, declared)
        if classes:
            labels, cells = rows.answers, said_cells(model, rows.columns, bins)
        else:
            labels = np.zeros(len(rows.answers), dtype=int)
            cells = error_cells(model, rows.columns, rows.answers, bins)
        table = [cells + size * place(rows.columns)]
        if rows.persons is not None and most_rows > 1:
            codes = model.schema_.encode_labels(rows.answers) if classes else labels
            table.append(alike_cells(kinds[cells, codes], rows.persons, most_rows))
        tester.fit(as_given(np.stack(table, axis=1), X), labels, person=rows.persons, max_rows=max_rows)
    note_test(X, tester.guarantee_)
    counts, *alike = (table[:, : len(classes) or 1] for table in tester.counts())
    rate = tester.ledger_.epsilon * Evaluator.shares(len(sizes))[0]
    variance = noise_variance(rate / HISTOGRAM_SENSITIVITY[relation])
    tables = counts.reshape(len(groups), size, -1)
    table, effect = tables.sum(axis=0), 1.0
    for how_alike in alike:
        shares = np.bincount(kinds.ravel(), weights=table.ravel())
        effect = design_effect(how_alike.sum(axis=1), shares, table.sum(), most_rows)
    low, high = (0, 0) if classes else model.schema_.target
    found = tester.guarantee_, tester.ledger_
    whole = Evaluation(
        table, classes, bins, float(high - low), len(groups) * variance, level, *found, design_effect=effect
    )
    if by is None:
        return whole
    parts = {group: replace(whole, counts=own, variance=variance) for group, own in zip(groups, tables, strict=True)}
    return replace(whole, groups=parts)


def _suited_bins(bins: int, n_classes: int, n_groups: int | None) -> int:
    """As many bins as were asked for, or as many as fit into a table of ``MOST_CELLS`` cells."""
    several = n_classes > 2
    most = MOST_CELLS // ((n_groups or 1) * (n_classes if several else 1))
    if n_groups is not None and most < (1 if several else 2):
        raise ValueError(f"{shown(n_groups)} groups are too many for a table of {MOST_CELLS} cells: put some together")
    if not n_classes:
        return min(bins, most)
    if n_classes == 2 and bins % 2:
        raise ValueError(f"bins must be even, so that one edge is the middle, not {bins}")
    return max(1, min(bins, most if several else most - most % 2))


def _predicted(size: int, n_classes: int, bins: int) -> np.ndarray:
    """The place of the class that is predicted in each of so many cells."""
    return np.arange(size) // (bins // 2 if n_classes == 2 else bins)


def _kinds(size: int, n_classes: int, bins: int) -> np.ndarray:
    """Of which kind a cell and a class are: right or wrong, or the order of an error's size; (size, n_classes or 1)."""
    if not n_classes:
        return (np.arange(size)[:, None] >= bins * np.array([1 / 8, 1 / 4, 1 / 2])).sum(axis=1, keepdims=True)
    return (_predicted(size, n_classes, bins)[:, None] == np.arange(n_classes)).astype(np.int64)


def _groups(
    by: str | Mapping | None, schema: Schema, table: frames.Columns
) -> tuple[list, Callable[[frames.Columns], np.ndarray]]:
    """The groups, and what says in which of them each record is: a function of the record and of what is public."""
    if by is None:
        return [None], lambda rows: np.zeros(rows.shape[0], dtype=np.int64)
    if isinstance(by, str):
        if by not in schema.categorical:
            name, known = reprlib.repr(by), reprlib.repr([*schema.categorical])
            raise ValueError(
                f"by={name} is no categorical column of the model's schema: name one of {known}, or give the public "
                f"groups of a column of X, by={{{name}: [...]}}"
            )
        column, declared, place = by, schema, schema.columns.index(by)
    elif isinstance(by, Mapping) and len(by) == 1:
        if table.names is None:
            raise TypeError("by names a column of X, so X must be a frame")
        (column,), place = map(str, by), 0
        if not table.by_records:  # whose names are read with the records
            check_names([column], list(map(str, table.names)), "X")
        declared = Schema(categorical=by, classes=[0, 1])
    else:
        raise TypeError(f"by must be the name of a column, or one column with its groups, not {type(by).__name__}")
    groups = [*declared.categorical[column], *(["missing"] if declared.missing == "bin" else [])]
    plain = declared.with_grid("even")
    return groups, lambda rows: plain.encode(rows, 2).codes[place].astype(np.int64)
