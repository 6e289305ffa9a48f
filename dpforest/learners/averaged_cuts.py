"""Cuts that are judged in each part of the records by itself, and averaged over the parts."""

from __future__ import annotations

import numpy as np

from dpforest.learners.growth import Frontier
from dpforest.learners.run import Leak, Run
from dpforest.schema import Schema
from dpforest.scores import Score

__all__ = ["CODES", "best_cuts", "best_of_parts", "check_parts", "most_parts"]

CODES = 256  # a record's part and class stand in one code of so many
_CELLS = 1 << 22  # of histograms by part that are read at a time: 32 MB


def most_parts(schema: Schema) -> int:
    """Parts for which there are codes."""
    return CODES // schema.n_classes


def check_parts(n_parts: int, schema: Schema) -> None:
    """Raise ValueError where there are more parts than codes for them."""
    if n_parts > (most := most_parts(schema)):
        raise ValueError(
            f"n_parts={n_parts} parts of {schema.n_classes} classes need {n_parts * schema.n_classes} codes, and a "
            f"record's part and class have {CODES}: use n_parts={most} or fewer"
        )


def best_cuts(
    run: Run, nodes: Frontier, features: np.ndarray, score: Score, leak: Leak
) -> tuple[np.ndarray, np.ndarray]:
    """:func:`best_of_parts` of these nodes, from exact counts that are not charged; a leak.

    ``features`` (bool, n_nodes by n_features) says which ones each node considers.
    """
    cells = int(run.sizes.sum()) * run.curator.n_parts * run.schema.n_classes
    step = max(1, _CELLS // cells)
    found = []
    for at in range(0, max(len(nodes), 1), step):
        some = slice(at, at + step)
        histograms = run.peek_histograms(nodes[some], features[some], leak, parts=True)
        found.append(best_of_parts(histograms, features[some], run.sizes, score))
    qualities, ends = map(np.concatenate, zip(*found, strict=True))
    return qualities, ends


def best_of_parts(
    histograms: np.ndarray, features: np.ndarray, sizes: np.ndarray, score: Score
) -> tuple[np.ndarray, np.ndarray]:
    """The best cut of each feature in each part, as a mapper finds it, and the means that a reducer makes of them.

    Parameters
    ----------
    histograms : ndarray of int, shape (n_nodes, sum of the sizes, n_parts, n_classes)
        Exact class counts of each code of each feature.
    features : ndarray of bool, shape (n_nodes, n_features)
        Which ones each node considers.
    sizes : ndarray of int, shape (n_features,)
    score : Score
        Of the two children of a cut.

    Returns
    -------
    qualities : ndarray of float, shape (n_nodes, n_features)
        Mean over all parts of the largest score; -inf where a feature is not considered.
    ends : ndarray of int, shape (n_nodes, n_features)
        Mean of the best cuts' codes over the parts in which a cut has a score other than 0, rounded down.
    """
    starts = np.cumsum(sizes) - sizes
    qualities, ends = np.full(features.shape, -np.inf), np.zeros(features.shape, dtype=np.int64)
    for feature in np.flatnonzero(features.any(axis=0)):
        rows = np.flatnonzero(features[:, feature])
        counts = histograms[rows, starts[feature] : starts[feature] + sizes[feature]]
        below = counts.cumsum(axis=1)
        children = np.stack([below, below[:, -1:] - below], axis=-2)[:, :-1]
        found = np.round(score(children), 12)  # (node, cut, part); equal ones shall tie
        qualities[rows, feature] = np.round(found.max(axis=1).mean(axis=1), 12)
        says = (found != 0).any(axis=1)
        ends[rows, feature] = (found.argmax(axis=1) * says).sum(axis=1) // np.maximum(says.sum(axis=1), 1)
    return qualities, ends
