"""Private ID3 trees, after Friedman and Schuster (2010), and random forests of them: what their papers share."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from dpforest import scores
from dpforest.budgets import PLANS
from dpforest.learners.base import PrivateEstimator, PrivateForestClassifier, check_covered
from dpforest.learners.growth import MAX_NODES, Frontier, one_vote
from dpforest.learners.parameters import MARGIN, Auto, Choice, Letter, Whole
from dpforest.learners.run import Run, Selection
from dpforest.learners.sharing import Subset, n_candidates, random_features
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import ForestClassifier
from dpforest.models.release import MAX_DEPTH

__all__ = ["PrivateID3Forest", "PrivateID3Tree", "enough"]

MECHANISMS, BUDGETS = ("auto", *SELECTIONS), ("auto", *PLANS)


class PrivateID3Forest(PrivateForestClassifier):
    """Base of the random forests of ID3 trees: a paper adds ``criterion`` and ``stop``, and how a tree grows."""

    max_depth: Annotated[
        int, Whole(0, MAX_DEPTH), "Splits on the longest path; 0 makes every tree a single leaf."
    ] = 5  # fmt: skip
    max_features: Annotated[
        int | str, Subset(), "Size of the random subset of features that a node chooses from."
    ] = "sqrt"  # fmt: skip
    sampling: Annotated[
        Literal["auto", "all", "assignment", "poisson", "bootstrap"], Auto(published="bootstrap", proved="all"),
        Letter(),
        """Which records a tree sees.  ``"all"``: every tree all of them, at ``epsilon / n_estimators``.
        ``"assignment"``: each record goes to one tree by a coin, and each tree has all of ``epsilon``.  ``"poisson"``:
        a Poisson number of copies of each record for every tree, paid for in full.  ``"bootstrap"`` (published only):
        as many draws with replacement as there are records.""",
    ] = "auto"  # fmt: skip
    selection: Annotated[
        str, Choice(MECHANISMS), Auto(published="exponential", proved="permute-and-flip"), Letter(),
        "Mechanism of splits.",
    ] = "auto"  # fmt: skip
    budget: Annotated[
        str, Choice(BUDGETS), Auto(published="uniform", proved="aligned-uniform"), Letter(),
        """How a tree's budget falls on its levels, see :class:`~dpforest.budgets.Shares`.  Under an aligned plan a leaf
        also gets what the levels below it leave unspent.""",
    ] = "auto"  # fmt: skip
    calibration: Annotated[
        Literal["auto", "range", "sensitivity"], Auto(published="sensitivity", proved="range"), Letter(),
        "Rate ``epsilon / R`` or, as in the papers, ``epsilon / (2 sensitivity)``.",
    ] = "auto"  # fmt: skip
    vote: Annotated[
        Literal["auto", "counts", "majority"], Auto(published="majority", proved="counts"),
        """What a leaf says: its noisy class counts, which the forest adds up, or one vote for the largest of them.
        Either is read off the noisy counts, and may be released as published, too.""",
    ] = "auto"  # fmt: skip
    stop_margin: Annotated[
        float, MARGIN, "Head start of the *stop* candidate, in units of the selection's noise."
    ] = 6.0  # fmt: skip

    criterion: str
    stop: str

    def _subset(self, run: Run, usable: np.ndarray) -> np.ndarray:
        """A random subset of the ``usable`` features of each node: bool, shape (n_nodes, n_features)."""
        return random_features(run.chance, usable, n_candidates(self.max_features, run.schema.n_features))

    def _cap(self) -> float:
        """Public cap on the number of records, for scores that need one."""
        return math.inf

    def _selection(self) -> Selection:
        margin = self.stop_margin if self.option("stop") == "candidate" else None
        score = scores.CLASSIFICATION[self.option("criterion")]
        return Selection(score, self.option("selection"), self.option("calibration"), margin, self._cap())

    def _settle(self, run: Run, leaves: Frontier, epsilon: float | np.ndarray) -> None:
        counts = run.count_classes(leaves, epsilon)
        run.say(leaves, one_vote(counts) if self.option("vote") == "majority" else counts)

    def says_labels(self) -> bool:
        return self.option("vote") == "majority"

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.variant == "proved":
            how = self._selection()
            check_covered(
                how.score, self.relation, stop=self.option("stop"), sampling=self.option("sampling"), n_max=how.n_max
            )  # fmt: skip


class PrivateID3Tree(PrivateEstimator, ForestClassifier):
    """Base of the single ID3 trees: multiway splits, a feature once on a path, numbers by the bins of the schema."""

    n_bins = 10
    max_depth: Annotated[int, Whole(0, MAX_DEPTH), "Splits on the longest path; 0 makes the tree a single leaf."] = 5
    max_nodes: Annotated[
        int, Whole(), "The tree does not grow beyond this; branches that would are leaves."
    ] = MAX_NODES  # fmt: skip

    def _settle(self, run: Run, leaves: Frontier, epsilon: float | np.ndarray) -> None:
        run.say(leaves, run.count_classes(leaves, epsilon))


def enough(run: Run, nodes: Frontier, features: np.ndarray, epsilon: float) -> np.ndarray:
    """Whether every cell of a node's widest split may hold a standard deviation of its noise, by a noisy count.

    Parameters
    ----------
    features : ndarray of bool, shape (n_nodes, n_features)
        What a node may split on.
    epsilon : float
        Budget of the count of each node.

    Returns
    -------
    ndarray of bool, shape (n_nodes,)

    Notes
    -----
    The rule is that of Friedman and Schuster: a leaf where the count is below ``sqrt(2) / epsilon`` for each class and
    value.  A negative count is below it.
    """
    widest = np.where(features, run.sizes, 1).max(axis=1)  # t of the paper
    return run.count_records(nodes, epsilon) >= math.sqrt(2) / epsilon * run.schema.n_classes * widest
