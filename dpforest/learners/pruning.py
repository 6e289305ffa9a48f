"""Pruning by C4.5's pessimistic errors, from noisy counts that are released already: nothing here can ask a record."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from dpforest.arithmetic import exp, log
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["consistent", "pessimistic", "too_many_errors"]

SLACK = 0.1  # errors by which C4.5 lets a leaf be worse than the branch that it takes the place of


@claim("lem-noisy-pruning")
def consistent(tree: Forest, sizes: np.ndarray | None = None) -> np.ndarray:
    """Class counts of all nodes that add up, from the noisy ones of the leaves.

    Parameters
    ----------
    tree : Forest
        Each node after its parent; a leaf's ``values`` are its noisy class counts.
    sizes : ndarray of int, shape (n_nodes,), or None
        Noisy numbers of records of all nodes; None: they are not known, and a node has what its leaves have.

    Returns
    -------
    ndarray of float, shape (n_nodes, n_classes)
        None is negative.  With ``sizes``, the numbers of records are made consistent from the root down, each child's
        rescaled to its parent's, and a leaf's class counts to its own; where all are 0 or less, they get equal parts.
    """
    inner = np.flatnonzero(tree.arity)
    counts = np.maximum(tree.values, 0).astype(float)
    counts[inner] = 0
    if sizes is not None:
        total = np.maximum(sizes, 0).astype(float)
        for node in inner.tolist():
            below = _children(tree, node)
            total[below] = total[node] * _parts(total[below])
        for leaf in np.flatnonzero(tree.arity == 0).tolist():
            counts[leaf] = total[leaf] * _parts(counts[leaf])
    for node in reversed(inner.tolist()):
        counts[node] = counts[_children(tree, node)].sum(axis=0)
    return counts


def pessimistic(size: float, errors: float, confidence: float) -> float:
    """C4.5's estimate of a leaf's errors: ``size`` times an upper limit of its error rate.

    Parameters
    ----------
    size, errors : float
        Records, and those of other classes than the leaf's; from 0 on, and not whole numbers where noise was rescaled.
    confidence : float
        Probability, under the binomial law, of so few errors or fewer at the limit; the smaller, the more is pruned.

    Source
    ------
    Quinlan, *C4.5* (1993): exact for no error, by the normal law for one or more, linear between; beyond half an error
    less than all, two thirds of what is missing are added.
    """
    if size <= 0:
        return 0.0
    none = size * float(1 - exp(log(confidence) / size))
    if errors < 1:
        return min(none + errors * (pessimistic(size, 1.0, confidence) - none), size) if errors > 0 else none
    if errors + 0.5 >= size:
        return errors + 0.67 * max(size - errors, 0.0)
    quantile = round(NormalDist().inv_cdf(1 - confidence), 12)  # its last digits depend on the C library
    squared, high = quantile * quantile, errors + 0.5
    spread = math.sqrt(squared * (high * (1 - high / size) + squared / 4))
    return size * (high + squared / 2 + spread) / (size + squared)


@claim("lem-noisy-pruning")
def too_many_errors(tree: Forest, counts: np.ndarray, confidence: float) -> np.ndarray:
    """Which inner nodes become leaves: those that would have hardly more pessimistic errors than the branches below.

    Parameters
    ----------
    tree : Forest
    counts : ndarray of float, shape (n_nodes, n_classes)
        Of :func:`consistent`.
    confidence : float

    Returns
    -------
    ndarray of int
        The topmost ones; what is below them goes.
    """
    size, most = counts.sum(axis=1), counts.max(axis=1)
    alone = [pessimistic(n, n - top, confidence) for n, top in zip(size.tolist(), most.tolist(), strict=True)]
    best, leaf = list(alone), tree.arity == 0
    for node in reversed(np.flatnonzero(tree.arity).tolist()):
        branch = sum(best[child] for child in _children(tree, node).tolist())
        leaf[node] = alone[node] <= branch + SLACK
        best[node] = alone[node] if leaf[node] else branch
    cut, reached = [], tree.roots.tolist()
    for node in reached:
        if not leaf[node]:
            reached += _children(tree, node).tolist()
        elif tree.arity[node]:
            cut.append(node)
    return np.array(cut, dtype=np.int64)


def _children(tree: Forest, node: int) -> np.ndarray:
    return np.arange(tree.first_child[node], tree.first_child[node] + tree.arity[node])


def _parts(amounts: np.ndarray) -> np.ndarray:
    """Shares of amounts that are not negative; equal ones of nothing."""
    total = amounts.sum()
    return amounts / total if total > 0 else np.full(len(amounts), 1 / len(amounts))
