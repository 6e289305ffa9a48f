"""Experiments of the CART-DPsAdaBoost paper: fits measured as it measures, and what they find of its sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpforest.arithmetic import log
from dpforest.datasets import Dataset
from dpforest.study.experiments import auc, quiet
from dpforest.study.statements import Statements
from dpforest.study.statements.rules import (
    Finding,
    best,
    cannot_read,
    cannot_run,
    everywhere,
    more,
    rises,
    small,
    within,
)  # fmt: skip

__all__ = ["Runs", "commonest", "fit", "judge", "measures"]

NOISELESS = "non-private"
_NO_BUDGET = cannot_run("the budget ε/T − ln α of the second round is not positive, at any ε of the paper")
_ASKED = ("count the records of a node", "count the classes of a leaf")
ADULT, CENSUS = "adult", "census-income-kdd"


def commonest(data: Dataset) -> Any:
    """The label that most training records have: the positive class of the paper's tables."""
    return data.y.value_counts().idxmax()


def measures(y: np.ndarray, scores: np.ndarray, classes: np.ndarray, positive: Any) -> dict[str, float]:
    """The measures of the paper's tables, from how far the second class is ahead.

    Parameters
    ----------
    y : ndarray, shape (n_rows,)
        The truth.
    scores : ndarray of float, shape (n_rows,)
        Positive where the second class is predicted.
    classes : sequence of two labels
    positive : label
        The class that precision and recall are about.

    Returns
    -------
    dict
        accuracy, balanced accuracy, AUC, precision, recall, F1; precision is NaN where nothing is predicted positive.
    """
    said = np.where(scores > 0, classes[1], classes[0])
    yes, right, truly = said == positive, said == y, y == positive
    hit, n = (yes & truly).sum(), truly.sum()
    precision, recall = hit / yes.sum() if yes.any() else np.nan, hit / n
    return {
        "accuracy": float(right.mean()), "balanced accuracy": float((recall + right[~truly].mean()) / 2),
        "AUC": auc(y, np.stack([-scores, scores], axis=1), classes),
        "precision": float(precision), "recall": float(recall), "F1": float(2 * hit / (yes.sum() + n)),
    }  # fmt: skip


def fit(build: Callable, data: Dataset, seed: int, **setting: Any) -> dict[str, Any]:
    """Fit one setting and measure it on the test part; what stops the published variant is noted under ``error``.

    Its budget for a round, ε/T less the logarithm of a vote, may not be positive: then there is no algorithm.
    """
    with quiet():
        try:
            model = build(schema=data.schema, random_state=seed, **setting).fit(data.X, data.y)
        except ValueError as error:
            if setting.get("variant") != "published" or "ln(alpha)" not in str(error):
                raise
            return {"error": str(error)}
        scores = model.decision_function(data.X_test)
    measured = measures(np.asarray(data.y_test), scores, model.classes_, commonest(data))
    made = {"rounds": model.boosted_.n_trees, "loss": model.guarantee_.epsilon, "calls": _calls_a_split(model)}
    return {**measured, **made, "error": ""}


def _calls_a_split(model: Any) -> float:
    """How often the exponential mechanism was called for each split, by the ledger; 0 where nothing was split."""
    asked = json.loads(model.ledger_.to_json())["queries"]
    times = {word: sum(query["scopes"] for query in asked if query["query"].startswith(word)) for word in _ASKED}
    calls = sum(query["scopes"] for query in asked if query["mechanism"] == "exponential")
    splits = times["count the records of a node"] - times["count the classes of a leaf"]
    return calls / splits if splits > 0 else 0.0


@dataclass
class Runs:
    """What the sentences are judged by: a row for each fit.

    Attributes
    ----------
    published, proved : DataFrame
        Columns data, epsilon (a number, or ``"non-private"``), max_depth, seed, those of :func:`fit`.
    stumps : DataFrame
        The same at depth 1 as published, with ``learner``: ``"DPsAdaBoost"`` or ``"DP-AdaBoost"``.
    grown : DataFrame
        As published on few records: data, records, max_depth, seed, part (train or test), accuracy.
    head : dict
        The depth that the paper names best, for each data set.
    """

    published: pd.DataFrame
    proved: pd.DataFrame
    stumps: pd.DataFrame
    grown: pd.DataFrame
    head: Mapping[str, int]


def cells(rows: pd.DataFrame, measure: str, over: str, **where: Any) -> pd.DataFrame:
    """A measure by seed (rows) and by the values of a column (columns), where all of these were fitted."""
    for column, value in where.items():
        rows = rows[rows[column] == value]
    if "error" in rows:
        rows = rows[rows["error"] == ""]
    return rows.pivot_table(index="seed", columns=over, values=measure, aggfunc="mean").dropna()


def judge(said: Statements, runs: Runs) -> Statements:
    """Judge every sentence of the paper on its experiments by the runs that are here.

    The paper speaks of its own algorithm, so the verdict is that of the published variant; what the repair does at the
    same setting stands beside it.
    """
    findings: dict[str, Callable[[str], Finding]] = {
        "epsilon": lambda name: _rises(runs, name, "accuracy"),
        "noise-small": lambda name: _noise(runs, name),
        "noise-vanishes": lambda name: _nearer(runs, name),
        "depth-rises": lambda name: _deeper(runs, name),
        "depth-noisier": lambda name: _noisier(runs, name),
        "size-train": lambda name: _train(runs, name),
        "size-rises": lambda name: _grows(runs, name),
        "precision-epsilon": lambda name: _rises(runs, name, "precision"),
        "precision-recall": lambda name: _against(runs, name),
        "f1": lambda name: _f1(runs, name),
        "auc-epsilon": lambda name: _rises(runs, name, "AUC"),
        "one-call": lambda name: _calls(runs, name),
    }
    here = [name for name in (ADULT, CENSUS) if name in runs.head]
    for word, rule in findings.items():
        said.judge(f"exp-boosting-{word}", everywhere({name: _ran(runs, name, rule) for name in here}))
    one: dict[str, tuple[str, Callable[[str], Finding]]] = {
        "overfit": (ADULT, lambda name: _worse_beyond(runs, name)),
        "best-adult": (ADULT, lambda name: _best(runs, name, "accuracy")),
        "accuracy-adult": (ADULT, lambda name: _value(runs, name, "accuracy", 80.5, 81.5)),
        "best-census": (CENSUS, lambda name: _best(runs, name, "accuracy")),
        "accuracy-census": (CENSUS, lambda name: _value(runs, name, "accuracy", 79.5, 80.5)),
        "precision-adult": (ADULT, lambda name: _best(runs, name, "precision")),
        "precision-census": (CENSUS, lambda name: _best(runs, name, "precision")),
        "auc-adult": (ADULT, lambda name: _value(runs, name, "AUC", 87.15, 87.25)),
        "auc-census": (CENSUS, lambda name: _value(runs, name, "AUC", 91.35, 91.55)),
        "auc-unsteady": (ADULT, lambda name: _unsteady(runs, name)),
        "census-400": (CENSUS, lambda name: _enough(runs, name)),
        "stumps": (ADULT, lambda name: _behind(runs, name)),
        "stumps-noise": (ADULT, lambda name: _by_noise(runs, name)),
    }  # fmt: skip
    for word, (name, rule) in one.items():
        finding = _ran(runs, name, rule) if name in here else cannot_run(f"the data set {name} is not in this run")
        said.judge(f"exp-boosting-{word}", finding)
    both = {ADULT, CENSUS} <= set(here)
    said.judge("exp-boosting-census-noisier", _across(runs, "cost") if both else cannot_run("it takes both data sets"))
    said.judge("exp-boosting-census-auc", _across(runs, "AUC") if both else cannot_run("it takes both data sets"))
    said.judge("exp-boosting-time", cannot_read("what it is faster than is not said, and no time is printed"))
    return said


# -- what the rules are given ------------------------------------------------------------------------------------------


def _ran(runs: Runs, name: str, rule: Callable[[str], Finding]) -> Finding:
    """The rule's finding; where the published algorithm has no budget on this set there is none."""
    return rule(name) if _has_budget(runs, name) else _NO_BUDGET


def _has_budget(runs: Runs, name: str) -> bool:
    rows = runs.published[(runs.published["data"] == name) & (runs.published["epsilon"] != NOISELESS)]
    return bool((rows["error"] == "").any())


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["epsilon"] != NOISELESS]


def _grid(runs: Runs, name: str, measure: str, which: str = "published") -> pd.DataFrame:
    """By seed and ε, the mean over all depths."""
    return cells(_numbers(getattr(runs, which)), measure, "epsilon", data=name)


def _top(rows: pd.DataFrame) -> float:
    return max(_numbers(rows)["epsilon"])


def _rises(runs: Runs, name: str, measure: str) -> Finding:
    found = [_grid(runs, name, measure, which) for which in ("published", "proved")]
    one, other = (rises(table.to_numpy(), [*table.columns]) for table in found)
    return one.beside("as proved", other)


def _costs(runs: Runs, name: str, over: str = "epsilon", **where: Any) -> pd.DataFrame:
    """What noise costs in accuracy, by seed: the fit without noise less the fit with it."""
    rows = runs.published
    with_noise = cells(_numbers(rows), "accuracy", over, data=name, **where)
    if over == "max_depth":
        bare = cells(rows, "accuracy", over, data=name, epsilon=NOISELESS)
        return (bare - with_noise).dropna()
    bare = cells(rows, "accuracy", "epsilon", data=name)[NOISELESS]
    return with_noise.rsub(bare, axis=0).dropna()


def _noise(runs: Runs, name: str) -> Finding:
    costs = _costs(runs, name)
    return small(costs[[e for e in costs.columns if e >= 0.25]].mean(axis=1), 1.0)


def _nearer(runs: Runs, name: str) -> Finding:
    gaps = _costs(runs, name).abs()
    return more(gaps[min(gaps.columns)] - gaps[max(gaps.columns)], than="nearer at the largest ε than at the smallest")


def _deeper(runs: Runs, name: str) -> Finding:
    found = [cells(_numbers(rows), "accuracy", "max_depth", data=name) for rows in (runs.published, runs.proved)]
    one, other = (rises(table.to_numpy(), [*table.columns]) for table in found)
    return one.beside("as proved", other)


def _noisier(runs: Runs, name: str) -> Finding:
    costs = _costs(runs, name, "max_depth", epsilon=min(_numbers(runs.published)["epsilon"]))
    return rises(costs.to_numpy(), [*costs.columns])


def _sizes(runs: Runs, name: str, part: str) -> pd.DataFrame:
    return cells(runs.grown, "accuracy", "records", data=name, part=part)


def _train(runs: Runs, name: str) -> Finding:
    train, test = _sizes(runs, name, "train"), _sizes(runs, name, "test")
    if train.empty:
        return cannot_run("the published variant has no budget for so few records")
    least = min(train.columns)
    return more(train[least] - test[least], than=f"training less test with {least:,} records")


def _grows(runs: Runs, name: str) -> Finding:
    test = _sizes(runs, name, "test")
    if test.empty:
        return cannot_run("the published variant has no budget for so few records")
    ends = [f"{size:,} records" for size in (min(test.columns), max(test.columns))]
    return rises(test.to_numpy(), [*log(test.columns.to_numpy(dtype=float))], ends=ends)


def _enough(runs: Runs, name: str) -> Finding:
    test = _sizes(runs, name, "test")
    if 400 not in test:
        return cannot_run("the published variant has no budget for 400 records")
    return small(test[max(test.columns)] - test[400], 1.0)


def _against(runs: Runs, name: str) -> Finding:
    """The correlation of precision and recall over the depths, by seed, with its sign turned."""
    found = [cells(_numbers(runs.published), measure, "max_depth", data=name) for measure in ("precision", "recall")]
    one, other = (table.sub(table.mean(axis=1), axis=0) for table in found)
    opposed = -(one * other).sum(axis=1) / np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    return more(opposed, unit="", factor=1.0, than="correlation over the depths, sign turned")


def _f1(runs: Runs, name: str) -> Finding:
    rows = runs.published[runs.published["max_depth"] == runs.head[name]]
    table = cells(_numbers(rows), "F1", "epsilon", data=name)
    return within(table[[e for e in table.columns if e >= 0.25]].mean(axis=1), 85.0, 87.0)


def _calls(runs: Runs, name: str) -> Finding:
    calls = cells(_numbers(runs.published), "calls", "epsilon", data=name).mean(axis=1)
    return small(calls - 1, 0.5, unit="calls a split beyond one", factor=1.0)


def _at_head(runs: Runs, name: str, measure: str) -> pd.DataFrame:
    return cells(_numbers(runs.published), measure, "max_depth", data=name, epsilon=_top(runs.published))


def _worse_beyond(runs: Runs, name: str) -> Finding:
    table, head = _at_head(runs, name, "accuracy"), runs.head[name]
    return everywhere({f"{head} less {d}": more(table[head] - table[d]) for d in table.columns if d > head})


def _best(runs: Runs, name: str, measure: str) -> Finding:
    table = _at_head(runs, name, measure)
    if len(table.columns) < 2 or runs.head[name] not in table:
        return cannot_run("it takes several depths, the paper's among them")
    return best({d: table[d].to_numpy() for d in table.columns}, runs.head[name])


def _value(runs: Runs, name: str, measure: str, low: float, high: float) -> Finding:
    table = _at_head(runs, name, measure)
    proved = cells(_numbers(runs.proved), measure, "max_depth", data=name, epsilon=_top(runs.proved))
    one, other = (within(found[runs.head[name]], low, high) for found in (table, proved))
    return one.beside("as proved", other)


def _unsteady(runs: Runs, name: str) -> Finding:
    rows = runs.published[runs.published["max_depth"] == runs.head[name]]
    table = cells(_numbers(rows), "AUC", "epsilon", data=name)
    if not {0.1, 0.5, 1.0} <= set(table.columns):
        return cannot_run("it takes ε = 0.1, 0.5 and 1")
    moves = (table[0.5] - table[0.1]).abs() - (table[1.0] - table[0.5]).abs()
    return more(moves, than="more movement from 0.1 to 0.5 than from 0.5 to 1")


def _behind(runs: Runs, name: str) -> Finding:
    tables = [cells(_numbers(runs.stumps), "accuracy", "epsilon", data=name, learner=who) for who in _STUMPS]
    return more((tables[1] - tables[0]).mean(axis=1), than="DP-AdaBoost ahead")


def _by_noise(runs: Runs, name: str) -> Finding:
    costs = []
    for who in _STUMPS:
        table = cells(runs.stumps, "accuracy", "epsilon", data=name, learner=who)
        costs.append(table.pop(NOISELESS) - table.mean(axis=1))
    return more(costs[0] - costs[1], than="more lost to noise by CART-DPsAdaBoost")


_STUMPS = ("DPsAdaBoost", "DP-AdaBoost")


def _across(runs: Runs, what: str) -> Finding:
    """Census income less adult; the published variant has to run on both."""
    for name in (ADULT, CENSUS):
        if not _has_budget(runs, name):
            return cannot_run(f"{name}: {_NO_BUDGET.ours}")
    if what == "cost":
        one, other = (_costs(runs, name).mean(axis=1) for name in (CENSUS, ADULT))
    else:
        one, other = (_at_head(runs, name, what)[runs.head[name]] for name in (CENSUS, ADULT))
    return more(one - other, than="census-income less adult")
