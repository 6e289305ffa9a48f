"""Boosting by sums with Gaussian noise, and additive models: one table a feature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dpforest.learners.audited import EXACT
from dpforest.learners.base import WithDelta
from dpforest.learners.run import Run
from dpforest.models.boosted import BoostedClassifier
from dpforest.models.forest import Forest

__all__ = ["FeatureTables", "GaussianBoosted", "GaussianBoostedClassifier"]


class GaussianBoosted(WithDelta):
    """Base of the boosted learners whose sums have Gaussian noise.

    Attributes
    ----------
    TITLE, DELTA : str
        For messages: the name of the paper's algorithm, and which delta to write.
    """

    TITLE: ClassVar[str]
    DELTA: ClassVar[str]

    def check_parameters(self) -> None:
        super().check_parameters()
        if not self.delta:
            raise ValueError(f"{self.TITLE} has Gaussian noise, which needs a delta above 0: delta={self.DELTA}")

    def lacking(self) -> dict[str, str]:
        return {EXACT: "noisy sums decide the residuals of the next step, so that replay cannot visit them"}


class GaussianBoostedClassifier(GaussianBoosted, BoostedClassifier):
    """Base of the boosted classifiers of two classes whose sums have Gaussian noise."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if (n_classes := self.declared_schema().n_classes) != 2:
            raise ValueError(
                f"Only binary classification is supported. {self.TITLE} tells two classes apart, as in the paper, not "
                f"{n_classes}: use PrivateBoostingClassifier"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class FeatureTables:
    """The tables of an additive model: for each code of each feature, the sum of its votes for the second class.

    Parameters
    ----------
    run : Run
        It has started a forest with one tree for each feature.  Here each tree is split by its feature, if that has
        more than one code.

    Attributes
    ----------
    roots : Frontier
        The root of each feature's tree.
    """

    def __init__(self, run: Run) -> None:
        self.roots = run.frontier
        self._run, self._wide = run, run.sizes > 1
        run.split_multiway(self.roots[self._wide], np.flatnonzero(self._wide))
        self._leaves = run.frontier
        self._trees = [run.tree(feature) for feature in range(len(run.sizes))]
        self._votes = [np.zeros(size, dtype=np.int64) for size in run.sizes.tolist()]

    def move(self, feature: int, votes: np.ndarray) -> Forest:
        """Add the votes of one step, (n_codes,), to the table of a feature; return a tree of this step alone."""
        self._votes[feature] += votes
        tree = self._trees[feature]
        return replace(tree, values=_node_values(votes, tree.n_nodes))

    def set_leaf_values(self) -> None:
        """Set the leaves of the run: each holds the sum of all votes of its code."""
        for nodes, several in ((self._leaves, True), (self.roots[~self._wide], False)):
            mine = [each for each in self._votes if (len(each) > 1) == several]
            self._run.set_leaf_values(
                nodes, _node_values(np.concatenate(mine) if mine else np.zeros(0, dtype=np.int64))
            )


def _node_values(votes: np.ndarray, n_nodes: int | None = None) -> np.ndarray:
    """Node values of votes for the second class, int64, shape (n_nodes, 2): the last nodes have the votes, others 0.

    Without ``n_nodes`` there are as many nodes as votes.
    """
    values = np.zeros((n_nodes or len(votes), 2), dtype=np.int64)
    values[len(values) - len(votes) :, 1] = votes
    return values
