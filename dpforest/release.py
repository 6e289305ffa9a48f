"""The released model: what every fitted forest does, and its form in JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import NotFittedError

from dpforest.engines import is_elsewhere, table_of
from dpforest.privacy import Guarantee, Leak
from dpforest.schema import Schema
from dpforest.tree import Forest

__all__ = [
    "READERS", "Answer", "ForestClassifier", "ForestRegressor", "Predictor", "Released", "ReleasedForest",
    "ReleasedForestRegressor", "anywhere", "load", "released",
]  # fmt: skip

FORMAT = 1  # of the JSON
_ROWS = 1 << 16  # that are looked at together


class Answer:
    """What a released model answers to the rows of a frame, as a function that can travel to the rows.

    Parameters
    ----------
    model : Released
    name : str
        The method that answers.
    """

    def __init__(self, model: Released, name: str):
        self._model, self._name = model, name

    def __call__(self, frame) -> np.ndarray:
        return getattr(self._model, self._name)(frame)


def anywhere(method):
    """Let a method that answers row by row do so where the rows lie, if an engine reads them."""

    @wraps(method)
    def answer(self, X):
        if not is_elsewhere(X):
            return method(self, X)
        model, name = released(self.to_dict()), method.__name__
        return table_of(X).rows(Answer(model, name), model.schema_.columns, name)

    return answer


class Predictor(BaseEstimator):
    """What a released model says of itself, from ``schema_``, ``n_bins`` and ``guarantee_``, whoever provides them."""

    #: What is released: the key of the model in the JSON, and with an underscore the attribute that holds it.
    _RELEASED = "forest"
    n_jobs: int | None = None

    def to_dict(self) -> dict:
        """The released model as lists and numbers, ready for JSON: no record, no exact count, no seed.

        Keys: ``format`` (1); ``estimator``; ``n_bins``; ``schema``, see :meth:`dpforest.schema.Schema.to_dict`; the
        model, ``forest`` (:meth:`dpforest.tree.Forest.to_dict`) or ``linear``
        (:meth:`dpforest.linear.LinearModel.to_dict`); ``guarantee``: ``epsilon`` and ``claimed`` (null for infinity),
        ``relation``, and ``leaks``, each with ``what`` and ``where``.
        """
        model = self._released()
        return {
            "format": FORMAT,
            "estimator": self._name(),
            "n_bins": int(self.n_bins),
            "schema": self.schema_.to_dict(),
            self._RELEASED: model.to_dict(),
            "guarantee": {
                **asdict(self.guarantee_),
                "epsilon": _finite(self.guarantee_.epsilon),
                "claimed": _finite(self.guarantee_.claimed),
            },
        }

    def save(self, path) -> None:
        """Write :meth:`to_dict` as a JSON file; :func:`~dpforest.release.load` reads it back."""
        Path(path).write_text(json.dumps(self.to_dict()))

    def _name(self) -> str:
        return type(self).__name__

    def _n_threads(self) -> int:
        return 1 if self.n_jobs is None else self.n_jobs  # the counting kernels check it

    def _released(self) -> Any:
        if not hasattr(self, f"{self._RELEASED}_"):
            raise NotFittedError(f"this {self._name()} instance is not fitted yet: call fit first")
        return getattr(self, f"{self._RELEASED}_")

    def _codes(self, X) -> np.ndarray:
        """Codes of the table on the grid that the model was learned on."""
        return self.schema_.encode(X, self.n_bins).codes


class ForestClassifier(ClassifierMixin, Predictor):
    """Classification by ``forest_``, whose leaves hold one vote or noisy class counts."""

    @anywhere
    def predict_proba(self, X) -> np.ndarray:
        """Class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The share of each class in the leaf values summed over the trees, negative sums taken as zero: shares of
        votes where leaves are labels, of noisy counts where they are counts.  Uniform where nothing is positive.  In a
        forest with shrinkage, the mean over the trees of :meth:`dpforest.tree.Forest.shares`.
        """
        values = np.maximum(self._leaf_sums(X), 0)
        total = values.sum(axis=1, keepdims=True)
        return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / values.shape[1])

    @anywhere
    def predict(self, X) -> np.ndarray:
        """The class with the largest summed leaf value; the first of ``classes_`` in a tie."""
        sums = self._leaf_sums(X)
        # argmax copies what it is given: some rows at a time
        parts = [sums[first : first + _ROWS].argmax(axis=1) for first in range(0, max(len(sums), 1), _ROWS)]
        return self.classes_[np.concatenate(parts)]

    def _leaf_sums(self, X) -> np.ndarray:
        forest = self._released()
        values = forest.shares() if forest.shrinkage else forest.values
        return forest.sum_leaves(self._codes(X), values=values, n_jobs=self._n_threads())


class ForestRegressor(RegressorMixin, Predictor):
    """Regression by ``forest_``, whose leaves hold two noisy masses: above the lower bound, and below the upper."""

    @anywhere
    def predict(self, X) -> np.ndarray:
        """The mean over the trees of the leaf means, float64, shape (n_rows,), within the declared target range.

        A leaf's mean is the share of its first mass, shrunk towards the nodes above it:
        :meth:`dpforest.tree.Forest.shares`.
        """
        forest = self._released()
        shares = forest.sum_leaves(self._codes(X), values=forest.shares()[:, :1], n_jobs=self._n_threads())
        return self.schema_.decode_target(np.clip(shares[:, 0] / forest.n_trees, 0, 1))


class Released(Predictor):
    """A released model read back from JSON: it predicts, and states its guarantee.

    Parameters
    ----------
    description : dict
        What ``to_dict`` of a fitted estimator gave.

    Attributes
    ----------
    forest_ or linear_, schema_, classes_, guarantee_, n_bins
        As on the estimator that was fitted.
    """

    def __init__(self, description):
        self.description = description
        try:
            if description["format"] != FORMAT:
                raise ValueError(f"format {description['format']!r} is not known; this version reads format {FORMAT}")
            self.n_bins = description["n_bins"]
            self.schema_ = Schema.from_dict(description["schema"])
            self._read(description[self._RELEASED])
            promise = dict(description["guarantee"])
            promise["leaks"] = tuple(Leak(**leak) for leak in promise["leaks"])
            if promise["epsilon"] is None:
                promise["epsilon"] = math.inf
            self.guarantee_ = Guarantee(**promise)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a released model: {error!r}") from None
        if is_classifier(self) == (self.schema_.classes is None):
            raise ValueError("not a released model of this kind: its schema declares another kind of answer")
        if self.schema_.classes is not None:
            self.classes_ = self.schema_.classes

    def _read(self, description) -> None:
        """Read the model itself into its attribute; raise ValueError if it cannot predict what the schema allows."""
        raise NotImplementedError

    def __repr__(self, N_CHAR_MAX=700) -> str:
        return f"<released {self._name()}: {self._released()}, {self.guarantee_}>"

    def _name(self) -> str:
        return self.description["estimator"]


class _ReleasedTrees(Released):
    def _read(self, description) -> None:
        self.forest_ = Forest.from_dict(description)
        check_fits(self.forest_, self.schema_, self.n_bins)


class ReleasedForest(_ReleasedTrees, ForestClassifier):
    """A released forest of a classifier: see :class:`Released`."""


class ReleasedForestRegressor(_ReleasedTrees, ForestRegressor):
    """A released forest of a regressor: see :class:`Released`."""


def check_fits(forest: Forest, schema: Schema, n_bins: int) -> None:
    """Raise ValueError unless every table that the schema allows can be predicted."""
    if forest.values.shape[1] != (schema.n_classes or 2):
        raise ValueError("not a released forest: its leaves and its schema disagree on what is predicted")
    if (forest.feature >= schema.n_features).any():
        raise ValueError("not a released forest: it splits on a feature that its schema does not have")
    wide = forest.multiway & (forest.feature >= 0)
    if (forest.arity[wide] < schema.cardinalities(n_bins)[forest.feature[wide]]).any():
        raise ValueError("not a released forest: a node has fewer children than its feature has codes")


#: Who reads a released model, by its key in the JSON and whether it classifies; ``linear`` adds its own.
READERS: dict[tuple[str, bool], type[Released]] = {
    ("forest", True): ReleasedForest,
    ("forest", False): ReleasedForestRegressor,
}


def load(path) -> Released:
    """Read a model that ``save`` wrote.  JSON runs no code, unlike a pickle."""
    return released(json.loads(Path(path).read_text()))


def released(description: dict) -> Released:
    """The model that ``to_dict`` described, read back."""
    for (key, classifies), reader in READERS.items():
        if key in description and classifies == bool((description.get("schema") or {}).get("classes")):
            return reader(description)
    raise ValueError("not a released model: it has neither a forest nor a linear model with its schema")


def _finite(value):
    return None if value is None or math.isinf(value) else float(value)
