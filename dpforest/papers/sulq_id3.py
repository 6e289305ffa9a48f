"""SuLQ-based ID3: one ID3 tree from noisy counts alone (Blum, Dwork, McSherry and Nissim, 2005).

Its budget and its rule for stopping are those that Friedman and Schuster (2010) gave it.  A node counts the classes in
each child that each feature would make, and splits on the feature with the largest noisy information gain.  The chapter
*SuLQ-based ID3* tells what that costs for each feature.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest.arithmetic import log
from dpforest.budgets import Shares
from dpforest.learners.audited import EXACT, Audited
from dpforest.learners.id3 import PrivateID3Tree, enough
from dpforest.learners.run import Run
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["SulqID3Classifier", "noisy_gain"]


@claim("alg-sulq-id3", "thm-sulq-id3", "pub-sulq-id3")
class SulqID3Classifier(PrivateID3Tree):
    """Private ID3 tree that sees noisy counts and nothing else.

    Attributes
    ----------
    forest_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released tree under ``relation``, in both variants
    (:prf:ref:`thm-sulq-id3`, :prf:ref:`pub-sulq-id3`).

    Source
    ------
    PODS 2005, with the budget and the stopping rule of KDD 2010, Algorithm 2.

    Notes
    -----
    The paper's features are discrete.  A numeric one is cut into ``n_bins`` public bins of equal width over its bounds,
    and splits into all of them.  Noisy counts may be negative: see :func:`noisy_gain`.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.sulq_id3 import SulqID3Classifier
    >>> schema = Schema(categorical={"x": ["low", "high"]}, classes=["no", "yes"])
    >>> X, y = [["low"]] * 100 + [["high"]] * 100, ["no"] * 100 + ["yes"] * 100
    >>> model = SulqID3Classifier(epsilon=2.0, schema=schema, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([["low"], ["high"]]).tolist()
    ['no', 'yes']
    """

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` counts three times: the records of a node, those of each child, and their classes.  The
        proved variant counts classes alone, and adds them up.""",
    ] = "proved"

    @claim("alg-sulq-id3", "pub-sulq-id3")
    def as_published(self, run: Run) -> Forest:
        """Algorithm 2 of Friedman and Schuster: every count by itself."""
        each = run.epsilon / (2 * (self.max_depth + 1))
        run.plant(1, max_nodes=self.max_nodes)
        for level, nodes in run.levels(self.max_depth + 1):
            features = nodes.unused & (run.sizes > 1)
            splits = enough(run, nodes, features, each) & np.any(features, axis=1) & (level <= self.max_depth)
            self._settle(run, nodes[~splits], each)
            inner, allowed = nodes[splits], features[splits]
            sizes = run.count_children(inner, allowed, each / 2, classes=False)  # each / (2 |A|) a feature
            counts = run.count_children(inner, allowed, each / 2)
            chosen = noisy_gain(counts, sizes, run.sizes, allowed).argmax(axis=1)
            self._settle(run, run.split(inner, chosen), each)  # those without room
        return run.release()

    @claim("thm-sulq-id3")
    def as_proved(self, run: Run) -> Forest:
        """The repair: one count of classes for everything, and what a path does not spend goes to its leaf."""
        shares = Shares("aligned-uniform", run.epsilon, self.max_depth + 1)
        run.plant(1, max_nodes=self.max_nodes)
        for level, nodes in run.levels(self.max_depth):
            features = nodes.unused & (run.sizes > 1)
            splits = np.any(features, axis=1)
            self._settle(run, nodes[~splits], shares.leaf(level, stopped=False))
            inner, allowed = nodes[splits], features[splits]
            counts = run.count_children(inner, allowed, shares.branch(level))
            n = counts.sum(axis=(1, 2)) / allowed.sum(axis=1)  # each feature counts the node once
            widest = np.where(allowed, run.sizes, 1).max(axis=1)
            grows = n >= math.sqrt(2) / shares.branch(level) * run.schema.n_classes * widest
            gain = noisy_gain(counts, counts.sum(axis=2, keepdims=True), run.sizes, allowed)
            full = run.split(inner[grows], gain[grows].argmax(axis=1))
            for leaves in (inner[~grows], full):  # which have paid for their counts: thm-stop-budget
                self._settle(run, leaves, shares.leaf(level, stopped=True))
        self._settle(run, run.frontier, shares.leaf(shares.depth, stopped=False))
        return run.release()

    def lacking(self) -> dict[str, str]:
        if self.max_depth:
            return {EXACT: "the largest of scores of noisy counts has a law that replay cannot visit"}
        return super().lacking()

    AUDIT: ClassVar = Audited(
        "sulq-id3", (
            ({}, 2, 1), ({"max_depth": 0}, 2, None),
            ({"variant": "published"}, 2, 1), ({"variant": "published", "max_depth": 0}, 2, None),
        ),
        sizes=(60,), usual={},
    )  # fmt: skip


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
