"""Experiments of the CART-DPsAdaBoost paper: its numbers, its protocol, and fits measured as it measures.

What these fits say of the paper's sentences is in :mod:`dpforest.study.boosting_statements`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpforest.datasets import Dataset
from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
from dpforest.papers.dps_adaboost import DPsAdaBoostClassifier
from dpforest.privacy import NON_PRIVATE
from dpforest.study.experiments import auc, parts, quiet

__all__ = [
    "ADULT",
    "CENSUS",
    "NOISELESS",
    "PAPER",
    "STEPS",
    "STUMPS",
    "Protocol",
    "at",
    "calls_a_split",
    "cells",
    "fit",
    "fitted",
    "implied",
    "measures",
    "most_frequent",
    "rare",
    "share_that_fits",
]

NOISELESS = NON_PRIVATE
ADULT, CENSUS = "adult", "census-income-kdd"

#: Jia, Qiu and Ma: their table 2; the depth of their tables 3 and 4, and its accuracy; precision, recall and F1 of
#: table 3; the area of table 4.
PAPER: dict[str, dict[str, Any]] = {
    ADULT: {
        "table 2": "32,561 + 16,281, 14",
        "depth": 4,
        "accuracy": 0.8081813156441,
        "table 3": {
            0.1: (0.84468, 0.72529, 0.78045),
            0.25: (0.85507, 0.83650, 0.84568),
            0.5: (0.86235, 0.86885, 0.86559),
            0.75: (0.86325, 0.85866, 0.86095),
            1.0: (0.86813, 0.85467, 0.86135),
        },
        "table 4": {0.05: 0.64267, 0.1: 0.73323, 0.25: 0.74343, 0.5: 0.82035, 0.75: 0.87207, 1.0: 0.87240},
    },
    CENSUS: {
        "table 2": "199,523 + 99,763, 41",
        "depth": 5,
        "accuracy": 0.7993123634249,
        "table 3": {
            0.1: (0.99106, 0.71032, 0.82752),
            0.25: (0.99468, 0.73238, 0.84361),
            0.5: (0.99711, 0.73736, 0.84779),
            0.75: (0.99618, 0.74270, 0.85096),
            1.0: (0.99714, 0.74590, 0.85342),
        },
        "table 4": {0.05: 0.68524, 0.1: 0.89724, 0.25: 0.90804, 0.5: 0.91011, 0.75: 0.91414, 1.0: 0.91441},
    },
}

PUBLISHED = {"variant": "published"}
#: Figure 5 (c): boosted stumps, of either paper and in either variant.
STUMPS: dict[str, tuple[Callable, dict[str, Any]]] = {
    "DPsAdaBoost, proved": (DPsAdaBoostClassifier, {"max_depth": 1}),
    "DP-AdaBoost, proved": (DPAdaBoostClassifier, {}),
    "DPsAdaBoost, published": (DPsAdaBoostClassifier, {"max_depth": 1, **PUBLISHED}),
    "DP-AdaBoost, published": (DPAdaBoostClassifier, PUBLISHED),
}

_PAPERS = {"criterion": "gini", "max_features": 5, "cuts_per_feature": 1, "votes": "discrete", "leaf_share": 0.5}
#: From the repair towards the paper, one ingredient at a time.
STEPS: dict[str, dict[str, Any]] = {
    "proved, defaults": {},
    "Gini index": {"criterion": "gini"},
    "5 features a node": {"max_features": 5},
    "5 features, 1 cut each": {"max_features": 5, "cuts_per_feature": 1},
    "discrete votes": {"votes": "discrete"},
    "half of the budget for the leaves": {"leaf_share": 0.5},
    "exponential mechanism": {"selection": "exponential"},
    "all of these": {**_PAPERS, "selection": "exponential"},
    "published": PUBLISHED,
    "published, no noise": {**PUBLISHED, "epsilon": NOISELESS},
    "class weights": {},  # 1 to the ratio of the classes, see Protocol.steps
}


# -- measures ----------------------------------------------------------------------------------------------------------


def most_frequent(data: Dataset) -> Any:
    """The label that most training records have: the positive class of the paper's tables."""
    return data.y.value_counts().idxmax()


def rare(data: Dataset) -> Any:
    """The other label."""
    return next(label for label in data.y.unique() if label != most_frequent(data))


def measures(y: np.ndarray, scores: np.ndarray, classes: Sequence, positive: Any) -> dict[str, float]:
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
        "accuracy": float(right.mean()),
        "balanced accuracy": float((recall + right[~truly].mean()) / 2),
        "AUC": auc(y, np.stack([-scores, scores], axis=1), np.asarray(classes)),
        "precision": float(precision),
        "recall": float(recall),
        "F1": float(2 * hit / (yes.sum() + n)),
    }


def implied(precision: float, recall: float, share: float) -> float:
    """The accuracy that follows from precision and recall of a class that has this share of the records.

    >>> implied(1.0, 1.0, 0.3), implied(0.5, 1.0, 0.5)
    (1.0, 0.5)
    """
    return 1 - share + recall * share * (1 - (1 - precision) / precision)


def share_that_fits(precision: float, recall: float, accuracy: float) -> float:
    """The share of the positive class with which the three agree, see :func:`implied`."""
    return (accuracy - 1) / (recall * (1 - (1 - precision) / precision) - 1)


# -- fits --------------------------------------------------------------------------------------------------------------


def fit(build: Callable, data: Dataset, seed: int, **setting: Any) -> dict[str, Any]:
    """Fit one setting and measure it on the test part.

    The budget of a round as published, ε/T less the logarithm of a vote, may not be positive: then there is no
    algorithm, ``error`` says so, and ``alpha`` is the vote.
    """
    found, model = fitted(build, data, seed, setting)
    if model is None:
        return found
    with quiet():
        scores = model.decision_function(data.X_test)
    measured = measures(np.asarray(data.y_test), scores, model.classes_, most_frequent(data))
    made = {"rounds": model.boosted_.n_trees, "loss": model.guarantee_.epsilon, "calls": calls_a_split(model)}
    return {**measured, **made, "error": ""}


def fitted(build: Callable, data: Dataset, seed: int, setting: Mapping) -> tuple[dict[str, Any], Any]:
    """The fitted model; or None, and why there is no algorithm."""
    with quiet():
        try:
            return {}, build(schema=data.schema, random_state=seed, **setting).fit(data.X, data.y)
        except ValueError as error:
            vote = re.search(r"- ln\(([0-9.e+-]+)\), is not positive", str(error))
            if setting.get("variant") != "published" or vote is None:
                raise
            return {"error": str(error), "alpha": float(vote[1])}, None


def calls_a_split(model: Any) -> float:
    """How often a selection was called for each split, by the ledger; not a number where no node was split.

    Published algorithms count the records of every node, so that the ledger knows how many there were; where boosted
    trees do not, the released ones tell.
    """
    asked = json.loads(model.ledger_.to_json())["queries"]
    calls = sum(q["scopes"] for q in asked if q["mechanism"] in ("exponential", "permute-and-flip"))
    nodes, leaves = (
        [q["scopes"] for q in asked if q["query"] == what]
        for what in ("count the records of a node", "count the classes of a leaf")
    )
    boosted = getattr(model, "boosted_", None)
    if boosted is None:  # a generalised table has no nodes that were counted
        splits = sum(nodes) - sum(leaves) if nodes else 0
    elif nodes:  # pruned nodes count again; but children come in pairs, and roots alone
        splits = (sum(nodes) - sum(n % 2 for n in nodes)) // 2
    else:
        splits = int((boosted.forest.arity > 0).sum())
    return calls / splits if splits > 0 else np.nan


@dataclass(frozen=True)
class Protocol:
    """The paper's protocol on data sets at hand.

    Attributes
    ----------
    sets : mapping of names to data sets
    epsilons : sequence of float
    depths : sequence of int
    rounds : int
    """

    sets: Mapping[str, Dataset]
    epsilons: Sequence[float]
    depths: Sequence[int]
    rounds: int

    @property
    def top(self) -> float:
        """The largest budget."""
        return max(self.epsilons)

    @property
    def head(self) -> dict[str, int]:
        """The depth of the paper's tables 3 and 4 by data set; of a set that it does not have, the deepest."""
        return {name: PAPER[name]["depth"] if name in PAPER else max(self.depths) for name in self.sets}

    @property
    def known(self) -> list[str]:
        """The data sets that the paper has."""
        return [name for name in self.sets if name in PAPER]

    def depths_of(self, name: str) -> list[int]:
        """All depths, and the paper's best."""
        return sorted({*self.depths, self.head[name]})

    def part(self, name: str, seed: int) -> Dataset:
        """The official parts of a set, or 30 % held out by this seed."""
        ((_, part),) = parts(self.sets[name], [seed])
        return part

    def run(self, build: Callable, settings: Any, seeds: int, **columns: Any) -> pd.DataFrame:
        """Fit all settings with all seeds on all sets, see :func:`fit`.

        Parameters
        ----------
        build : callable
        settings : list of settings, or a function of a set's name
        seeds : int
            How many.
        **columns
            Further columns.
        """
        rows = [
            {
                "data": name,
                "seed": seed,
                **setting,
                **columns,
                **fit(build, self.part(name, seed), seed, n_estimators=self.rounds, **setting),
            }
            for name in self.sets
            for setting in (settings(name) if callable(settings) else settings)
            for seed in range(seeds)
        ]
        return pd.DataFrame(rows)

    def grid(self, seeds: int, **fixed: Any) -> pd.DataFrame:
        """Every depth with every budget, and without noise: figures 2 and 4, tables 3 and 4."""
        budgets = [*self.epsilons, NOISELESS]
        return self.run(
            DPsAdaBoostClassifier,
            lambda name: [{"epsilon": e, "max_depth": d, **fixed} for d in self.depths_of(name) for e in budgets],
            seeds,
        )

    def stumps(self, seeds: int) -> pd.DataFrame:
        """Figure 5 (c); column ``learner``."""
        budgets = [*self.epsilons, NOISELESS]
        return pd.concat(
            [
                self.run(build, [{"epsilon": e, **fixed} for e in budgets], seeds, learner=who)
                for who, (build, fixed) in STUMPS.items()
            ],
            ignore_index=True,
        )

    def ratio(self, name: str) -> float:
        """How many records of the most frequent class there are for each record of the other; taken as public."""
        data = self.sets[name]
        return float(round((data.y == most_frequent(data)).sum() / (data.y == rare(data)).sum()))

    def steps(self, seeds: int) -> pd.DataFrame:
        """The :data:`STEPS` from the repair to the paper, at the largest budget; column ``step``."""

        def setting(name: str, step: str) -> dict[str, Any]:
            weights = {rare(self.sets[name]): self.ratio(name)}
            more = {"class_weight": weights} if step == "class weights" else STEPS[step]
            return {"epsilon": self.top, "max_depth": self.head[name], **more}

        return pd.concat(
            [self.run(DPsAdaBoostClassifier, lambda n, s=step: [setting(n, s)], seeds, step=step) for step in STEPS],
            ignore_index=True,
        )

    def sizes_of(self, name: str, sizes: Iterable[int]) -> list[int]:
        """The sample sizes that a set has."""
        most = len(self.part(name, 0).y)
        return [size for size in sizes if size <= most]

    def grown(self, sizes: Iterable[int], depths: Iterable[int], seeds: int, **fixed: Any) -> pd.DataFrame:
        """Accuracy on training and test records by the number of training records, at the largest budget: figure 3.

        Samples have the classes in the proportions of the whole.

        Returns
        -------
        DataFrame
            Columns data, records, max_depth, seed, part (train or test), accuracy; no row where there is no budget.
        """
        setting = {"epsilon": self.top, "n_estimators": self.rounds, **fixed}
        sizes, depths = list(sizes), list(depths)
        rows = [
            {"data": name, "records": size, "max_depth": depth, "seed": seed, **row}
            for name in self.sets
            for size in self.sizes_of(name, sizes)
            for depth in depths
            for seed in range(seeds)
            for row in _on_a_sample(self.part(name, seed), size, seed, {**setting, "max_depth": depth})
        ]
        return pd.DataFrame(rows, columns=["data", "records", "max_depth", "seed", "part", "accuracy"])

    def floors(self) -> dict[str, dict[str, float]]:
        """The measures of a rule that always says the most frequent class."""
        found = {}
        for name in self.sets:
            data = self.part(name, 0)
            classes = [rare(data), most_frequent(data)]
            truth = np.asarray(data.y_test)
            found[name] = measures(truth, np.ones(len(truth)), classes, classes[1])
        return found

    def plain(self) -> dict[tuple[str, int], dict[str, float]]:
        """AdaBoost without privacy by scikit-learn, on the same codes, by data set and depth."""
        return {(name, depth): self._plain(name, depth) for name in self.sets for depth in self.depths_of(name)}

    def _plain(self, name: str, depth: int) -> dict[str, float]:
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        data, n_bins = self.part(name, 0), DPsAdaBoostClassifier().get_params()["n_bins"]
        codes, test = (data.schema.encode(X, n_bins).codes.T for X in (data.X, data.X_test))
        tree = DecisionTreeClassifier(max_depth=depth)
        model = AdaBoostClassifier(tree, n_estimators=self.rounds, random_state=0).fit(codes, data.y)
        return measures(np.asarray(data.y_test), model.decision_function(test), model.classes_, most_frequent(data))

    def curve(self, name: str, **setting: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """Shares of false and of true positives of one fit, the ROC curve; None where there is no budget."""
        from sklearn.metrics import roc_curve

        data = self.part(name, 0)
        whole = {"n_estimators": self.rounds, "max_depth": self.head[name], **setting}
        _, model = fitted(DPsAdaBoostClassifier, data, 0, whole)
        if model is None:
            return None
        positive = most_frequent(data)
        with quiet():
            scores = model.decision_function(data.X_test) * (1 if positive == model.classes_[1] else -1)
        false, true, _ = roc_curve(np.asarray(data.y_test) == positive, scores)
        return false, true


def _on_a_sample(data: Dataset, size: int, seed: int, setting: Mapping) -> list[dict[str, Any]]:
    X: Any
    y: Any
    X, y = data.X, data.y
    if size < len(y):
        part = replace(data, X_test=None, y_test=None, weights_test=None).split(test_size=size, random_state=seed)
        X, y = part.X_test, part.y_test
    _, model = fitted(DPsAdaBoostClassifier, replace(data, X=X, y=y), seed, setting)
    parts = {"train": (X, y), "test": (data.X_test, data.y_test)} if model is not None else {}
    with quiet():
        return [
            {"part": which, "accuracy": float((model.predict(at) == np.asarray(truth)).mean())}
            for which, (at, truth) in parts.items()
        ]


# -- tables of fits ----------------------------------------------------------------------------------------------------


def _matching(rows: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """The rows in which columns have these values."""
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def at(rows: pd.DataFrame, name: str, **where: Any) -> pd.DataFrame:
    """The rows of a data set where columns have these values."""
    return _matching(rows, data=name, **where)


def cells(rows: pd.DataFrame, measure: str, over: str, **where: Any) -> pd.DataFrame:
    """A measure by seed (rows) and by the values of a column (columns), where all of these were fitted."""
    rows = _matching(rows, **where)
    if "error" in rows:
        rows = _matching(rows, error="")
    return rows.pivot_table(index="seed", columns=over, values=measure, aggfunc="mean").dropna()
