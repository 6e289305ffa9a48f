"""Seeded sweeps: settings in, tidy rows out.  No plotting, no noise of its own: everything follows from the seeds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from tqdm import tqdm

from dpforest.datasets import Dataset
from dpforest.privacy import OutOfSchemaWarning, UnprovenPrivacyWarning

__all__ = [
    "auc",
    "ceiling",
    "differences",
    "evaluate",
    "floor",
    "grid",
    "log_loss",
    "parts",
    "quiet",
    "summary",
    "sweep",
]


def grid(**axes: Sequence) -> list[dict]:
    """All combinations of the given values, as keyword arguments.

    >>> grid(epsilon=[0.1, 1], max_depth=[3])
    [{'epsilon': 0.1, 'max_depth': 3}, {'epsilon': 1, 'max_depth': 3}]
    """
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def evaluate(model: Any, X: Any, y: Any, target: tuple[float, float] | None = None) -> dict[str, float]:
    """How well a fitted model answers.

    Parameters
    ----------
    model : classifier or regressor
    X, y : the records, and the truth
    target : tuple of two floats, or None
        The declared range of a regressor's target; None for a classifier.

    Returns
    -------
    dict
        Of a classifier ``accuracy``, ``balanced_accuracy``, and ``auc``, the area under the ROC curve (one against the
        rest, averaged over classes).  Both averages are over the classes that ``y`` has; the area is not a number
        where it has one class only.

        Of a regressor ``mse``, the mean squared error in squared units of the target; ``scaled_mse``, the same where
        the declared range is [0, 1]; and ``r2``, the share of the variance of ``y`` that is explained, negative where
        the mean of ``y`` would have been better, and not a number where ``y`` is constant.
    """
    y = np.asarray(y)
    if target is not None:
        return _errors(y, np.asarray(model.predict(X)), target)
    hits = np.asarray(model.predict(X)) == y
    code, _ = pd.factorize(y)
    recall = np.bincount(code, weights=hits) / np.bincount(code)
    return {
        "accuracy": float(hits.mean()),
        "balanced_accuracy": float(recall.mean()),
        "auc": auc(y, model.predict_proba(X), model.classes_),
    }


def log_loss(model: Any, X: Any, y: Any) -> float:
    """Mean of -ln of the probability of what is true, in nats; a probability of 0 counts as one in a million."""
    place = {label: at for at, label in enumerate(np.asarray(model.classes_).tolist())}
    at = np.array([place[label] for label in np.asarray(y).tolist()])
    return float(-np.log(np.maximum(model.predict_proba(X)[np.arange(len(at)), at], 1e-6)).mean())


def sweep(
    build: Callable,
    data: Dataset,
    settings: Iterable[Mapping] | Mapping[str, Mapping],
    seeds: Iterable[int],
    *,
    test_size: float = 0.3,
    progress: bool = False,
) -> pd.DataFrame:
    """Fit every setting with every seed, and measure it on held-out records.

    Parameters
    ----------
    build : callable
        ``build(schema=..., random_state=seed, **setting)`` gives an estimator to fit.
    data : Dataset
        With its official test set, or else split anew for each seed (the split's seed is the fit's).
    settings : iterable of mapping, or mapping of mappings
        Keyword arguments of ``build``, see :func:`grid`; a mapping gives each setting a name.
    seeds : iterable of int
    test_size : float
        Share held out where there is no official test set.
    progress : bool

    Returns
    -------
    DataFrame
        One row per setting and seed: the setting's ``name`` if it has one, its values, ``seed``, the measures of
        :func:`evaluate`, the proved ``loss`` of the fit, and ``nodes`` of its forest, not a number for a linear model.
    """
    if isinstance(settings, Mapping):
        labelled = [({"name": name}, dict(setting)) for name, setting in settings.items()]
    else:
        labelled = [({}, dict(setting)) for setting in settings]
    seeds = list(seeds)
    rows = []
    with tqdm(total=len(labelled) * len(seeds), disable=not progress, unit="fit") as bar:
        for seed, part in parts(data, seeds, test_size):
            for name, setting in labelled:
                model = build(schema=part.schema, random_state=seed, **setting)
                with quiet():
                    model.fit(part.X, part.y)
                    measured = evaluate(model, part.X_test, part.y_test, part.schema.target)
                forest = getattr(model, "forest_", None)
                cost = {"loss": model.guarantee_.epsilon, "nodes": np.nan if forest is None else forest.n_nodes}
                rows.append({**name, **setting, "seed": seed, **measured, **cost})
                bar.update()
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame, by: Sequence[str], measure: str = "accuracy", confidence: float = 0.95) -> pd.DataFrame:
    """Mean of ``measure`` over seeds, with a Student interval: columns ``mean``, ``low``, ``high``, ``n``."""
    groups = rows.groupby(list(by), sort=False, dropna=False)[measure]
    table = groups.agg(["mean", "std", "count"]).reset_index()
    reach = stats.t.ppf((1 + confidence) / 2, table["count"] - 1) * table["std"] / np.sqrt(table["count"])
    ends = {"mean": table["mean"], "low": table["mean"] - reach, "high": table["mean"] + reach, "n": table["count"]}
    return table[list(by)].assign(**ends)


def differences(
    rows: pd.DataFrame, reference: str, measure: str = "accuracy", by: Sequence[str] = (), confidence: float = 0.95
) -> pd.DataFrame:
    """Each named setting less the ``reference``, paired by seed, so that the luck of the split cancels.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`sweep`, with settings that have a ``name``.
    by : sequence of str
        Columns within which to compare, the data set for instance.

    Returns
    -------
    DataFrame
        Columns ``by``, ``name``, and those of :func:`summary`; no row for the reference itself.
    """
    keys = [*by, "seed"]
    base = rows.loc[rows["name"] == reference, [*keys, measure]]
    others = rows[rows["name"] != reference].merge(base, on=keys, suffixes=("", " of the reference"), validate="m:1")
    others[measure] -= others[f"{measure} of the reference"]
    return summary(others, [*by, "name"], measure, confidence)


def floor(data: Dataset, seeds: Iterable[int], test_size: float = 0.3) -> dict[str, float]:
    """The scores of always saying the most frequent training label, or the training mean, averaged over seeds.

    The floor of every plot; it is not private.
    """
    scores = []
    for _, part in parts(data, seeds, test_size):
        truth = np.asarray(part.y_test)
        if part.schema.target is not None:
            scores.append(_errors(truth, np.full(len(truth), np.mean(part.y)), part.schema.target))
        else:
            accuracy = (truth == part.y.value_counts().idxmax()).mean()
            scores.append({"accuracy": accuracy, "balanced_accuracy": 1 / len(pd.unique(truth)), "auc": 0.5})
    return _average(scores)


def ceiling(model: Any, data: Dataset, seeds: Iterable[int], n_bins: int, test_size: float = 0.3) -> dict[str, float]:
    """What a non-private scikit-learn learner scores on the same public codes, averaged over seeds."""
    from sklearn.base import clone

    measured = []
    for seed, part in parts(data, seeds, test_size):
        codes = [part.schema.encode(X, n_bins).codes.T for X in (part.X, part.X_test)]
        fitted = clone(model).set_params(random_state=seed).fit(codes[0], part.y)
        measured.append(evaluate(fitted, codes[1], part.y_test, part.schema.target))
    return _average(measured)


@contextmanager
def quiet() -> Iterator[None]:
    """Fits whose variant was chosen, on data of which the schema's clipping is reported: neither is warned of again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        warnings.simplefilter("ignore", OutOfSchemaWarning)
        yield


def parts(data: Dataset, seeds: Iterable[int], test_size: float = 0.3) -> Iterator[tuple[int, Dataset]]:
    """Each seed with the set that its fit is measured on: with the official test part, or divided by that seed."""
    for seed in seeds:
        yield seed, data if data.X_test is not None else data.split(test_size=test_size, random_state=seed)


def _average(measured: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([m[name] for m in measured])) for name in measured[0]}


def _errors(y: np.ndarray, predicted: np.ndarray, target: tuple[float, float]) -> dict[str, float]:
    low, high = target
    mse, spread = np.mean((y - predicted) ** 2), np.var(y)
    r2 = 1 - mse / spread if spread else np.nan
    return {"mse": float(mse), "scaled_mse": float(mse / (high - low) ** 2), "r2": float(r2)}


def auc(y: np.ndarray, probabilities: ArrayLike, classes: np.ndarray) -> float:
    """Share of pairs in order, ties counting half: the rank-sum statistic of each class against the rest."""
    areas = []
    for label, probability in zip(classes, np.asarray(probabilities).T, strict=True):
        inside = y == label
        n = inside.sum()
        if 0 < n < len(y):
            ranks = stats.rankdata(probability)
            areas.append((ranks[inside].sum() - n * (n + 1) / 2) / (n * (len(y) - n)))
    return float(np.mean(areas)) if areas else float("nan")
