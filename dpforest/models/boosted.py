"""Boosted trees as they are released: the leaves hold votes in whole steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpforest.arithmetic import exp
from dpforest.models.forest import Forest
from dpforest.models.predictor import Classifying, Regressing, anywhere
from dpforest.privacy import claim
from dpforest.schema import Schema

__all__ = ["LINKS", "NO_LINK", "SCALE", "BoostedClassifier", "BoostedForest", "BoostedRegressor"]

#: Steps of a vote of 1.
SCALE = 1 << 20
#: A class has probability in proportion to this, by how far it is behind the best one: it is what a record of the best
#: class weighs at that margin, for there the rounds come to rest.  AdaBoost's own weights have no cap; calibrated ones
#: make the softmax of the scores, for any number of classes.
LINKS = {
    "capped": lambda behind: exp(-behind / 2),
    "logistic": lambda behind: 2 / (1 + exp(behind)),
    "adaboost": lambda behind: exp(-behind),
    "softmax": lambda behind: exp(-behind),
}
#: The link of a regression: the second vote less the first one is a share of the target's range.
NO_LINK = "none"
_FAR = 700.0  # behind which a class has no probability that a number could hold


@dataclass(frozen=True, eq=False)
class BoostedForest:
    """Trees in the order of their rounds; the values of a leaf are its votes, in units of ``1 / SCALE``.

    Attributes
    ----------
    forest : Forest
    link : {"capped", "logistic", "adaboost", "softmax", "none"}
        How scores become probabilities: by the weights under which the rounds learned.  ``"none"`` of a regression.
    """

    forest: Forest
    link: str

    @property
    def n_trees(self) -> int:
        return self.forest.n_trees

    @property
    def size(self) -> str:
        """How large it is, in words."""
        return self.forest.size

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
            total = total + replace(self, forest=self.forest.tree(tree)).scores(codes, n_jobs=n_jobs)
            yield total

    @claim("lem-link")
    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Class probabilities of records with these scores, both of shape (n_rows, n_classes)."""
        behind = np.minimum(scores.max(axis=1, keepdims=True) - scores, _FAR)
        parts = LINKS[self.link](behind)
        return parts / parts.sum(axis=1, keepdims=True)

    def to_dict(self) -> dict:
        """The forest's, see :meth:`dpforest.models.forest.Forest.to_dict`, and the link."""
        return {**self.forest.to_dict(), "link": self.link}

    @classmethod
    def from_dict(cls, description: Mapping) -> BoostedForest:
        """The model that :meth:`to_dict` described; anything malformed raises ValueError."""
        link = description.get("link")
        if type(link) is not str or link not in (*LINKS, NO_LINK):
            raise ValueError(f"not a boosted forest: link must be one of {[*LINKS, NO_LINK]}, not {link!r:.40}")
        return cls(Forest.from_dict({name: part for name, part in description.items() if name != "link"}), link)

    def check_schema(self, schema: Schema, n_bins: int) -> None:
        """Raise ValueError unless every table that the schema allows can be predicted."""
        self.forest.check_schema(schema, n_bins)
        if (self.link == NO_LINK) != (schema.classes is None):
            raise ValueError("not a released boosted model: its link and its schema disagree on what is predicted")

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
        """Class probabilities, shape (n_rows, n_classes), by the model's link.

        For two classes it is the probability at which the rounds come to rest (:prf:ref:`lem-link`).  With
        ``class_weight`` it is that of the weighted classes.
        """
        return self._predict_from_scores(self._scores(X))

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
        yield from (self._released().probabilities(scores) for scores in self._staged(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """The decision function after each round."""
        yield from (_decision(scores) for scores in self._staged(X))

    def _predict_from_scores(self, scores: np.ndarray) -> np.ndarray:
        return self._released().probabilities(scores)

    def _scores(self, X: Any) -> np.ndarray:
        return self._released().scores(self._codes(X), n_jobs=self._n_threads())

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        return self._released().staged_scores(self._codes(X), n_jobs=self._n_threads())


class BoostedRegressor(Regressing):
    """Regression by ``boosted_``."""

    _RELEASED = "boosted"

    @anywhere
    def predict(self, X: Any) -> np.ndarray:
        """The sum of the votes, within the declared target range: float64, shape (n_rows,)."""
        return self._predict_from_scores(self._released().scores(self._codes(X), n_jobs=self._n_threads()))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """The predictions after each round."""
        yield from map(
            self._predict_from_scores, self._released().staged_scores(self._codes(X), n_jobs=self._n_threads())
        )

    def _predict_from_scores(self, scores: np.ndarray) -> np.ndarray:
        return self.schema_.decode_target(np.clip(scores[:, 1] - scores[:, 0], 0, 1))


def _decision(scores: np.ndarray) -> np.ndarray:
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
