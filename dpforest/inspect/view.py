"""A released model of any kind as sums of terms: what each adds to the scores, for whom, and in which unit."""

from __future__ import annotations

import copy
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from dpforest.design import Design
from dpforest.engines import is_out_of_core
from dpforest.inspect.code_names import Words
from dpforest.messages import shown
from dpforest.models.forest import Forest, ranges
from dpforest.models.predictor import Predictor
from dpforest.privacy import HISTOGRAM_SENSITIVITY

__all__ = ["MOST_FEATURES", "View"]

LEAF = "count the classes of a leaf"  # in the words of a ledger
MOST_FEATURES = 3  # of a tree that counts as a table
_ODDS = ("softmax", "adaboost")  # links by which, of two classes, how far one is ahead is the logarithm of its odds


class View:
    """What all of this room asks of a model, fitted or loaded.

    Parameters
    ----------
    model : estimator or released model
    decimals : int or None
        See :class:`~dpforest.inspect.code_names.Words`.

    Attributes
    ----------
    kind : {"forest", "boosted", "linear"}
    values : ndarray of float64, shape (n_nodes, n_outputs)
        What the leaves add to the scores, of a model of trees.
    """

    def __init__(self, model: Any, decimals: int | None = None) -> None:
        if not isinstance(model, Predictor):
            raise TypeError(f"this looks into models of this library, fitted or loaded, not {type(model).__name__}")
        model = copy.copy(model)  # one fit, whatever is learned meanwhile
        self.part = model._released()  # says so where there is none yet
        self.model: Any = model
        self.kind, self.schema = model._RELEASED, model.schema_
        self.words = Words(self.schema, model.n_bins_, decimals)
        self.sizes, self.names = self.words.sizes, self.schema.columns

    @cached_property
    def forest(self) -> Forest:
        """The trees."""
        if self.kind == "linear":
            raise ValueError("a linear model has no trees: export_text, effects and explain show its terms")
        return self.part.forest if self.kind == "boosted" else self.part

    @cached_property
    def values(self) -> np.ndarray:
        if self.kind == "boosted":
            return self.part.votes()
        if self.schema.classes is None:
            return self.forest.shares()[:, :1]
        return self.forest.shares() if self.forest.shrinkage else self.forest.values.astype(float)

    # -- scores in a reader's unit -------------------------------------------------------------------------------

    @cached_property
    def outputs(self) -> list[str]:
        """What the numbers that are shown are about, which is the target, the second of two classes, or each class."""
        if self.schema.classes is None:
            return ["target"]
        if self.kind != "forest" and self.schema.n_classes == 2:
            return [self.words.outcome(1)]
        return [self.words.outcome(place) for place in range(self.schema.n_classes)]

    @cached_property
    def unit(self) -> str:
        """The unit of the numbers that are shown."""
        if self.schema.classes is None:
            return "units of the target"
        if self.kind == "linear" or (self.kind == "boosted" and self.part.link in _ODDS and len(self.outputs) == 1):
            return "logarithm of odds"
        if self.kind == "boosted":
            return "score"
        return "shares" if self.forest.shrinkage else "votes" if self.says_votes else "noisy counts"

    @cached_property
    def says_votes(self) -> bool:
        """Whether each leaf of a forest votes for one class, once."""
        said = self.forest.values[self.forest.feature < 0]
        return bool(((said == 0) | (said == 1)).all() and (said.sum(axis=1) == 1).all())

    @cached_property
    def count_deviation(self) -> float | None:
        """Standard deviation of the noise of a leaf's count, the largest in this fit; None where it is not known.

        A ledger knows it.  A file has none, and neither have other leaves than those of whole counts.
        """
        ledger = getattr(self.model, "ledger_", None)
        if self.kind != "forest" or self.unit != "noisy counts" or ledger is None or ledger.delta:
            return None
        losses = [loss for loss in ledger.charges(LEAF) if loss > 0]
        return sqrt(2) * HISTOGRAM_SENSITIVITY[ledger.relation] / min(losses) if losses else None

    def shown(self, terms: np.ndarray) -> np.ndarray:
        """Parts of scores (..., n_outputs) in the unit that is shown: (..., len(outputs)).

        Of two classes how far the second is ahead; of a regression in units of the target.
        """
        if self.schema.target is not None:
            low, high = self.schema.target
            if self.kind == "boosted":
                return (terms[..., 1:] - terms[..., :1]) * (high - low)
            return terms * (high - low) / (2 if self.kind == "linear" else self.part.n_trees)
        return terms[..., 1:] - terms[..., :1] if self.kind == "boosted" and terms.shape[-1] == 2 else terms

    @property
    def start(self) -> float:
        """Where a prediction begins, in the unit that is shown, before anything is added."""
        if self.schema.target is None:
            return 0.0
        low, high = self.schema.target
        return (low + high) / 2 if self.kind == "linear" else float(low)

    # -- records -------------------------------------------------------------------------------------------------

    def codes(self, X: Any) -> np.ndarray:
        """Codes of a table in memory."""
        if is_out_of_core(X):
            raise TypeError("this looks at a few records in memory: give a frame or an array, not what an engine reads")
        return self.model._codes(X)

    def answer(self, codes: np.ndarray) -> np.ndarray:
        """Probabilities (n_rows, n_classes), or predictions (n_rows, 1)."""
        if self.kind == "linear":
            scores = self.part.scores(codes, self.design)
        else:
            scores = self.forest.sum_leaves(codes, values=self.values)
        found = self.model._predict_from_scores(scores)
        return found if found.ndim == 2 else found[:, None]

    def points(self, n_points: int) -> np.ndarray:
        """Codes of fixed points, spread evenly over all that the schema allows: uint8, shape (n_features, n_points).

        Every code of a feature is as frequent as any other, up to one point; no record is looked at.
        """
        place = (np.outer(np.sqrt(_primes(len(self.sizes))) % 1, np.arange(1, n_points + 1)) + 0.5) % 1
        ranks = np.argsort(np.argsort(place, axis=1, kind="stable"), axis=1)
        return (ranks * np.array(self.sizes)[:, None] // n_points).astype(np.uint8)

    def feature(self, name: Any) -> int:
        """The number of a feature that is given by its name."""
        if not isinstance(name, str) or name not in self.names:
            raise ValueError(f"{shown(name)} is not a column of the schema: {self.names}")
        return self.names.index(name)

    # -- linear models -------------------------------------------------------------------------------------------

    @cached_property
    def design(self) -> Design:
        """The coordinates of a linear model."""
        return self.model._design()

    @property
    def tables(self) -> list[np.ndarray]:
        """What each code of each column adds to the scores of a linear model."""
        return self.part.tables(self.design)

    # -- trees ---------------------------------------------------------------------------------------------------

    def root(self, tree: Any) -> int:
        """The root of a tree."""
        n_trees = self.forest.n_trees
        if isinstance(tree, bool) or not isinstance(tree, (int, np.integer)) or not 0 <= tree < n_trees:
            raise ValueError(f"tree must be a whole number from 0 to {n_trees - 1}, not {shown(tree)}")
        return int(self.forest.roots[tree])

    def children(self, node: int) -> list[tuple[int, np.ndarray]]:
        """The children of an inner node, each with the codes of the node's feature that go there."""
        forest = self.forest
        first, n = int(forest.first_child[node]), int(forest.arity[node])
        codes = np.arange(self.sizes[forest.feature[node]])
        side = codes if forest.multiway[node] else self.bits[node, : len(codes)]
        return [(first + number, side == number) for number in range(n)]

    @cached_property
    def parents(self) -> np.ndarray:
        """The node above each node, -1 above a root, int64 of shape (n_nodes,)."""
        forest, inner = self.forest, np.flatnonzero(self.forest.feature >= 0)
        found = np.full(forest.n_nodes, -1, dtype=np.int64)
        found[ranges(forest.first_child[inner], forest.arity[inner])] = np.repeat(inner, forest.arity[inner])
        return found

    @cached_property
    def bits(self) -> np.ndarray:
        """The masks of all nodes, bit by bit, uint8 of shape (n_nodes, 256)."""
        return np.unpackbits(np.ascontiguousarray(self.forest.mask).view(np.uint8), axis=1, bitorder="little")

    @cached_property
    def used(self) -> list[list[int]]:
        """The features that each tree splits on, ascending."""
        forest, tree_of = self.forest, np.zeros(self.forest.n_nodes, dtype=np.int64)
        tree_of[forest.roots] = np.arange(forest.n_trees)
        for node in np.flatnonzero(forest.feature >= 0):  # children come after their parents
            tree_of[forest.first_child[node] : forest.first_child[node] + forest.arity[node]] = tree_of[node]
        found: list[set[int]] = [set() for _ in range(forest.n_trees)]
        for node in np.flatnonzero(forest.feature >= 0):
            found[tree_of[node]].add(int(forest.feature[node]))
        return [sorted(each) for each in found]

    @property
    def is_additive(self) -> bool:
        """Whether the scores are sums of tables of a few features each."""
        return self.kind == "linear" or (
            self.kind == "boosted" and max(map(len, self.used), default=0) <= MOST_FEATURES
        )


def _primes(n: int) -> np.ndarray:
    """The first ``n`` primes."""
    found: list[int] = []
    number = 2
    while len(found) < n:
        if all(number % prime for prime in found if prime * prime <= number):
            found.append(number)
        number += 1
    return np.array(found, dtype=float)
