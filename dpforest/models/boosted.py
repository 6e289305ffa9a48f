"""Boosted trees as they are released: the leaves hold votes in whole steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpforest.arithmetic import softmax
from dpforest.models.forest import Forest
from dpforest.models.predictor import Classifying, anywhere

__all__ = ["SCALE", "BoostedClassifier", "BoostedForest"]

#: Steps of a vote of 1.
SCALE = 1 << 20


@dataclass(frozen=True, eq=False)
class BoostedForest:
    """Trees in the order of their rounds; the values of a leaf are its votes, in units of ``1 / SCALE``.

    Attributes
    ----------
    forest : Forest
    """

    forest: Forest

    @property
    def n_trees(self) -> int:
        return self.forest.n_trees

    def votes(self) -> np.ndarray:
        """Votes of each node for each class: float64, shape (n_nodes, n_classes)."""
        return self.forest.values / SCALE

    def scores(self, codes: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Votes of each record's leaves, summed over the trees: float64, shape (n_rows, n_classes)."""
        return self.forest.sum_leaves(codes, values=self.votes(), n_jobs=n_jobs)

    def staged_scores(self, codes: np.ndarray, n_jobs: int = 1) -> Iterator[np.ndarray]:
        """The scores after each round."""
        total = np.zeros((codes.shape[1], self.forest.values.shape[1]))
        for tree in range(self.n_trees):
            total = total + BoostedForest(self.forest.tree(tree)).scores(codes, n_jobs=n_jobs)
            yield total

    def to_dict(self) -> dict:
        """See :meth:`dpforest.models.forest.Forest.to_dict`."""
        return self.forest.to_dict()

    @classmethod
    def from_dict(cls, description: Mapping) -> BoostedForest:
        """The model that :meth:`to_dict` described; anything malformed raises ValueError."""
        return cls(Forest.from_dict(description))

    def __str__(self) -> str:
        return f"{self.n_trees} boosted trees"


class BoostedClassifier(Classifying):
    """Classification by ``boosted_``."""

    _RELEASED = "boosted"

    @anywhere
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes, shape (n_rows, n_classes); of two classes how far the second is ahead, (n_rows,)."""
        return _decision(self._scores(X))

    @anywhere
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_rows, n_classes): the logistic link on the scores."""
        return softmax(self._scores(X))

    @anywhere
    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest score; the first of ``classes_`` in a tie."""
        best = self._scores(X).argmax(axis=1)
        return self.classes_[best]

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """The predictions after each round."""
        yield from (self.classes_[scores.argmax(axis=1)] for scores in self._staged(X))

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """The probabilities after each round."""
        yield from (softmax(scores) for scores in self._staged(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """The decision function after each round."""
        yield from (_decision(scores) for scores in self._staged(X))

    def _scores(self, X: Any) -> np.ndarray:
        return self._released().scores(self._codes(X), n_jobs=self._n_threads())

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        return self._released().staged_scores(self._codes(X), n_jobs=self._n_threads())


def _decision(scores: np.ndarray) -> np.ndarray:
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
