"""The released model: what every fitted forest does, and its form in JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from dpforest.privacy import Guarantee, Leak
from dpforest.schema import Schema
from dpforest.tree import Forest

__all__ = ["ForestPredictor", "ReleasedForest", "load"]

FORMAT = 1  # of the JSON


class ForestPredictor(ClassifierMixin, BaseEstimator):
    """Prediction from ``forest_``, ``schema_``, ``classes_`` and ``n_bins``, whoever provides them."""

    n_jobs: int | None = None

    def predict_proba(self, X) -> np.ndarray:
        """Class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The share of each class in the leaf values summed over the trees, negative sums taken as zero: shares of
        votes where leaves are labels, of noisy counts where they are counts.  Uniform where nothing is positive.
        """
        values = np.maximum(self._leaf_sums(X), 0)
        total = values.sum(axis=1, keepdims=True)
        return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / values.shape[1])

    def predict(self, X) -> np.ndarray:
        """The class with the largest summed leaf value; the first of ``classes_`` in a tie."""
        best = np.argmax(self._leaf_sums(X), axis=1)
        return self.classes_[best]

    def to_dict(self) -> dict:
        """The released model as lists and numbers, ready for JSON: no record, no exact count, no seed.

        Keys: ``format`` (1); ``estimator``; ``n_bins``; ``schema``, see :meth:`dpforest.schema.Schema.to_dict`;
        ``forest``, see :meth:`dpforest.tree.Forest.to_dict`; ``guarantee``: ``epsilon`` and ``claimed`` (null for
        infinity), ``relation``, and ``leaks``, each with ``what`` and ``where``.
        """
        forest = self._released()
        return {
            "format": FORMAT,
            "estimator": self._name(),
            "n_bins": int(self.n_bins),
            "schema": self.schema_.to_dict(),
            "forest": forest.to_dict(),
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

    def _released(self) -> Forest:
        if not hasattr(self, "forest_"):
            raise NotFittedError(f"this {self._name()} instance is not fitted yet: call fit first")
        return self.forest_

    def _leaf_sums(self, X) -> np.ndarray:
        forest = self._released()
        return forest.sum_leaves(self.schema_.encode(X, self.n_bins).codes, n_jobs=self._n_threads())


class ReleasedForest(ForestPredictor):
    """A released model read back from JSON: it predicts, and states its guarantee.

    Parameters
    ----------
    description : dict
        What ``to_dict`` of a fitted estimator gave.

    Attributes
    ----------
    forest_, schema_, classes_, guarantee_, n_bins
        As on the estimator that was fitted.
    """

    def __init__(self, description):
        self.description = description
        try:
            if description["format"] != FORMAT:
                raise ValueError(f"format {description['format']!r} is not known; this version reads format {FORMAT}")
            self.n_bins = description["n_bins"]
            self.schema_ = Schema.from_dict(description["schema"])
            self.forest_ = Forest.from_dict(description["forest"])
            promise = dict(description["guarantee"])
            promise["leaks"] = tuple(Leak(**leak) for leak in promise["leaks"])
            if promise["epsilon"] is None:
                promise["epsilon"] = math.inf
            self.guarantee_ = Guarantee(**promise)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a released forest: {error!r}") from None
        self.classes_ = self.schema_.classes
        _check_fits(self.forest_, self.schema_, self.n_bins)

    def __repr__(self, N_CHAR_MAX=700) -> str:
        return f"<released {self._name()}: {self.forest_.n_trees} trees, {self.guarantee_}>"

    def _name(self) -> str:
        return self.description["estimator"]


def _check_fits(forest: Forest, schema: Schema, n_bins: int) -> None:
    """Raise ValueError unless every table that the schema allows can be predicted."""
    if schema.classes is None or forest.values.shape[1] != len(schema.classes):
        raise ValueError("not a released forest: its leaves and its schema disagree on the classes")
    if (forest.feature >= schema.n_features).any():
        raise ValueError("not a released forest: it splits on a feature that its schema does not have")
    wide = forest.multiway & (forest.feature >= 0)
    if (forest.arity[wide] < schema.cardinalities(n_bins)[forest.feature[wide]]).any():
        raise ValueError("not a released forest: a node has fewer children than its feature has codes")


def load(path) -> ReleasedForest:
    """Read a model that ``save`` wrote.  JSON runs no code, unlike a pickle."""
    return ReleasedForest(json.loads(Path(path).read_text()))


def _finite(value):
    return None if value is None or math.isinf(value) else float(value)
