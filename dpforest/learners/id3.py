"""Private ID3 trees, after Friedman and Schuster (2010), and random forests of them: what their papers share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np

from dpforest import scores
from dpforest.arithmetic import log
from dpforest.budgets import PLANS, Shares
from dpforest.learners.audited import EXACT
from dpforest.learners.base import PrivateEstimator, PrivateForestClassifier, check_covered
from dpforest.learners.growth import MAX_NODES, Frontier, one_vote
from dpforest.learners.parameters import MARGIN, AsPublished, Auto, Integer, OneOf
from dpforest.learners.run import Run, Selection
from dpforest.learners.sharing import Subset, n_candidates, random_features
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import Forest, ForestClassifier
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import claim

__all__ = ["CountedID3Tree", "PrivateID3Forest", "PrivateID3Tree", "enough", "noisy_gain"]

MECHANISMS, BUDGETS = ("auto", *SELECTIONS), ("auto", *PLANS)


class PrivateID3Forest(PrivateForestClassifier):
    """Base of the random forests of ID3 trees: a paper adds ``criterion`` and ``stop``, and how a tree grows."""

    max_depth: Annotated[
        int, Integer(0, MAX_DEPTH), "Splits on the longest path; 0 makes every tree a single leaf."
    ] = 5
    max_features: Annotated[int | str, Subset(), "Size of the random subset of features that a node chooses from."] = (
        "sqrt"
    )
    sampling: Annotated[
        Literal["auto", "all", "assignment", "poisson", "bootstrap"],
        Auto(published="bootstrap", proved="all"),
        AsPublished(),
        """Which records a tree sees.  ``"all"``: every tree all of them, at ``epsilon / n_estimators``.
        ``"assignment"``: each record goes to one tree by a coin, and each tree has all of ``epsilon``.  ``"poisson"``:
        a Poisson number of copies of each record for every tree, paid for in full.  ``"bootstrap"`` (published only):
        as many draws with replacement as there are records.""",
    ] = "auto"
    selection: Annotated[
        str,
        OneOf(MECHANISMS),
        Auto(published="exponential", proved="permute-and-flip"),
        AsPublished(),
        "Mechanism of splits.",
    ] = "auto"
    budget: Annotated[
        str,
        OneOf(BUDGETS),
        Auto(published="uniform", proved="aligned-uniform"),
        AsPublished(),
        """How a tree's budget falls on its levels, see :class:`~dpforest.budgets.Shares`.  Under an aligned plan a leaf
        also gets what the levels below it leave unspent.""",
    ] = "auto"
    calibration: Annotated[
        Literal["auto", "range", "sensitivity"],
        Auto(published="sensitivity", proved="range"),
        AsPublished(),
        "Rate ``epsilon / R`` or, as in the papers, ``epsilon / (2 sensitivity)``.",
    ] = "auto"
    vote: Annotated[
        Literal["auto", "counts", "majority"],
        Auto(published="majority", proved="counts"),
        """What a leaf says: its noisy class counts, which the forest adds up, or one vote for the largest of them.
        Either is read off the noisy counts, and may be released as published, too.""",
    ] = "auto"
    stop_margin: Annotated[
        float, MARGIN, "Stop offset: the public score of the *stop* candidate, in units of the selection's noise."
    ] = 6.0

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

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float | np.ndarray) -> None:
        """Make these nodes leaves, at this budget each: they hold noisy class counts, or a vote for the largest."""
        counts = run.count_classes(leaves, epsilon)
        run.set_leaf_values(leaves, one_vote(counts) if self.option("vote") == "majority" else counts)

    def leaf_is_label(self) -> bool:
        return self.option("vote") == "majority"

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.variant == "proved":
            how = self._selection()
            check_covered(
                how.score, self.relation, stop=self.option("stop"), sampling=self.option("sampling"), n_max=how.n_max
            )


class PrivateID3Tree(PrivateEstimator, ForestClassifier):
    """Base of the single ID3 trees: multiway splits, a feature once on a path, numbers by the bins of the schema."""

    n_bins = 10
    max_depth: Annotated[int, Integer(0, MAX_DEPTH), "Splits on the longest path; 0 makes the tree a single leaf."] = 5
    max_nodes: Annotated[int, Integer(), "The tree does not grow beyond this; branches that would are leaves."] = (
        MAX_NODES
    )

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float | np.ndarray) -> None:
        """Make these nodes leaves, at this budget each: they hold noisy class counts."""
        run.set_leaf_values(leaves, run.count_classes(leaves, epsilon))

    def splitting(self, run: Run, each: float) -> Iterator[tuple[Frontier, np.ndarray]]:
        """Algorithms 2 and 3 of Friedman and Schuster, level by level: the nodes that split, and their features.

        Each node is counted at ``each``.  Where that is too little, or nothing is left to split on, it is a leaf.
        """
        run.start_forest(1, max_nodes=self.max_nodes)
        for level, nodes in run.levels(self.max_depth + 1):
            features = nodes.unused & (run.sizes > 1)
            splits = enough(run, nodes, features, each) & np.any(features, axis=1) & (level <= self.max_depth)
            self._make_leaves(run, nodes[~splits], each)
            yield nodes[splits], features[splits]


class CountedID3Tree(PrivateID3Tree):
    """Base of the ID3 trees that see noisy counts and nothing else."""

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` counts three times: the records of a node, those of each child, and their classes.  The
        proved variant counts classes alone, and adds them up.""",
    ] = "proved"

    @claim("alg-sulq-id3", "pub-sulq-id3", "alg-pinq-id3")
    def as_published(self, run: Run) -> Forest:
        """Algorithm 2 of Friedman and Schuster: every count by itself."""
        each = run.epsilon / (2 * (self.max_depth + 1))
        for inner, allowed in self.splitting(run, each):
            sizes = run.count_children(inner, allowed, each / 2, classes=False)  # each / (2 |A|) a feature
            counts = run.count_children(inner, allowed, each / 2)
            chosen = noisy_gain(counts, sizes, run.sizes, allowed).argmax(axis=1)
            self._make_leaves(run, run.split_multiway(inner, chosen), each)  # those without room
        return run.release()

    @claim("thm-sulq-id3", "thm-pinq-id3")
    def as_proved(self, run: Run) -> Forest:
        """The repair: one count of classes for everything, and what a path does not spend goes to its leaf."""
        shares = Shares("aligned-uniform", run.epsilon, self.max_depth + 1)
        run.start_forest(1, max_nodes=self.max_nodes)
        for level, nodes in run.levels(self.max_depth):
            features = nodes.unused & (run.sizes > 1)
            splits = np.any(features, axis=1)
            self._make_leaves(run, nodes[~splits], shares.leaf(level, selected=False))
            inner, allowed = nodes[splits], features[splits]
            counts = run.count_children(inner, allowed, shares.branch(level))
            n = counts.sum(axis=(1, 2)) / allowed.sum(axis=1)  # each feature counts the node once
            widest = np.where(allowed, run.sizes, 1).max(axis=1)
            grows = n >= math.sqrt(2) / shares.branch(level) * run.schema.n_classes * widest
            gain = noisy_gain(counts, counts.sum(axis=2, keepdims=True), run.sizes, allowed)
            full = run.split_multiway(inner[grows], gain[grows].argmax(axis=1))
            for leaves in (inner[~grows], full):  # which have paid for their counts: thm-stop-budget
                self._make_leaves(run, leaves, shares.leaf(level, selected=True))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))
        return run.release()

    def lacking(self) -> dict[str, str]:
        if self.max_depth:
            return {EXACT: "the largest of scores of noisy counts has a law that replay cannot visit"}
        return super().lacking()


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


def noisy_gain(counts: np.ndarray, sizes: np.ndarray, arities: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Information gain by noisy counts, up to what all features share: ``sum of N_jc log(N_jc / N_j)``.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_nodes, sum of the arities, n_classes)
    sizes : ndarray of int64, shape (n_nodes, sum of the arities, 1)
    arities : ndarray of int, shape (n_features,)
        Children by each feature.
    allowed : ndarray of bool, shape (n_nodes, n_features)

    Returns
    -------
    ndarray of float64, shape (n_nodes, n_features)
        ``-inf`` where a feature is not allowed.

    Notes
    -----
    A term whose count, or whose child, is not positive counts 0, as for empty cells.  A class that is larger than its
    child, which noise may make it, counts in full: the logarithm is at most 0.
    """
    able = (counts > 0) & (sizes > 0)
    terms = counts * log(np.where(able, np.minimum(counts / np.where(able, sizes, 1), 1.0), 1.0))
    first = np.concatenate([[0], np.cumsum(arities)[:-1]])
    return np.where(allowed, np.add.reduceat(terms.sum(axis=2), first, axis=1), -np.inf)
