"""The order in which the kernels visit the nodes: depth first, and only those that are wanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpforest.counting.compiled import kernel
from dpforest.structure.splits import Splits, frozen

__all__ = ["Visit", "visit"]


class Visit(NamedTuple):
    """The wanted nodes, and those above them, in depth-first order, tree by tree; one entry per node."""

    node: np.ndarray
    depth: np.ndarray
    parent: np.ndarray  # index of the parent in this order, -1 for a root
    after: np.ndarray  # where to go on when no row reaches the node
    start: np.ndarray  # shape (n_trees + 1,): the entries of tree t are start[t], ..., start[t + 1] - 1


def visit(splits: Splits, slots: np.ndarray) -> Visit:
    """Depth-first order of the nodes with a slot (not -1) and their ancestors.

    Children come after their parent in the table, so one backward sweep gives the sizes and one forward sweep the
    places.
    """
    size, place = np.zeros(splits.n_nodes, np.int32), np.full(splits.n_nodes, -1, np.int32)
    _measure(splits.feature, splits.first_child, splits.arity, frozen(slots), size)
    start = np.concatenate([[0], np.cumsum(size[splits.roots])]).astype(np.int32)
    roots = np.flatnonzero(size[splits.roots])
    place[splits.roots[roots]] = start[roots]
    node, depth, parent, after = np.zeros((4, start[-1]), np.int32)
    parent[start[roots]] = -1
    _arrange(splits.feature, splits.first_child, splits.arity, size, place, node, depth, parent, after)
    return Visit(node, depth, parent, after, start)


@kernel
def _measure(feature, first_child, arity, slots, size):
    """Entries in the subtree of each node; 0 where nothing in it is wanted."""
    for node in range(feature.size - 1, -1, -1):
        below = 0
        if feature[node] >= 0:
            for child in range(first_child[node], first_child[node] + arity[node]):
                below += size[child]
        if below > 0 or slots[node] >= 0:
            size[node] = below + 1


@kernel
def _arrange(feature, first_child, arity, size, place, node_at, depth, parent, after):
    """Put each node in its place; ``place`` holds those of the roots, and -1."""
    for node in range(feature.size):
        here = place[node]
        if here < 0:
            continue
        node_at[here] = node
        after[here] = here + size[node]
        if feature[node] >= 0:
            there = here + 1
            for child in range(first_child[node], first_child[node] + arity[node]):
                if size[child] > 0:
                    place[child] = there
                    depth[there] = depth[here] + 1
                    parent[there] = here
                    there += size[child]
