"""The cell kernel: a tree that splits on few features is a table, in which a record's leaf is looked up by its codes.

Codes of a feature that all nodes of a tree send the same way are one *group*; the groups of the tree's features cross
in its *cells*.  Each cell is walked down once.  After that a record costs an addition per feature and one per output,
however deep the tree is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpforest.counting.compiled import helper, kernel
from dpforest.counting.visit import Visit
from dpforest.structure.splits import Splits, frozen

__all__ = ["Tables", "add_values", "cost", "prepare"]

BLOCK = 2048  # rows: their places and sums stay in the first-level cache
MOST_FEATURES = 4  # of a tree; with more of them the bit kernel is faster
MOST_CELLS = 1 << 12  # of a tree: its table stays in the cache, and places fit 16 bits


class Tables(NamedTuple):
    """The cells of each tree."""

    features: np.ndarray  # int32 (n_trees, MOST_FEATURES): what the tree splits on, then -1
    places: np.ndarray  # uint16 (n_trees, MOST_FEATURES, 256): what each code adds to the place of a record's cell
    starts: np.ndarray  # int64 (n_trees + 1,): the cells of tree t are starts[t], ..., starts[t + 1] - 1
    leaves: np.ndarray  # int32 (n_cells,): node that is the leaf of each cell


def prepare(splits: Splits, order: Visit, most: int) -> Tables | None:
    """The tables of all trees; None where one has too many features or cells, or all together more than ``most``."""
    shape = (len(splits.roots), MOST_FEATURES)
    features, sizes = np.full(shape, -1, np.int32), np.ones(shape, np.int64)
    places, firsts = np.zeros((*shape, 256), np.uint16), np.zeros((*shape, 256), np.uint8)
    starts = np.zeros(len(splits.roots) + 1, np.int64)
    nodes = splits.feature, splits.first_child, splits.arity, splits.multiway, splits.mask
    if not _group(*nodes, frozen(order.node), frozen(order.start), most, features, places, firsts, sizes, starts):
        return None
    leaves = np.empty(starts[-1], np.int32)
    _walk(*nodes, splits.roots, features, firsts, sizes, starts, leaves)
    return Tables(features, places, starts, leaves)


def cost(plan: Tables, n_rows: int, n_outputs: int) -> float:
    """Estimated nanoseconds of one thread: what each record takes per feature and per output of a tree."""
    return n_rows * 0.4 * float((plan.features >= 0).sum() + n_outputs * len(plan.features))


@helper
def _child(arity, multiway, mask, node, code):
    """Which child of a node a code goes to.  No record has a code beyond the children of a multiway node."""
    if multiway[node]:
        return min(code, np.int64(arity[node]) - 1)
    return np.int64((mask[node, code >> 6] >> np.uint64(code & 63)) & np.uint64(1))


@kernel
def _group(feature, first_child, arity, multiway, mask, node_at, start, most, features, places, firsts, sizes, starts):
    """Fill the last five; whether every tree has few enough features and cells.

    ``firsts`` has the first code of each group of a feature, and ``sizes`` their number.
    """
    number = np.empty(512, np.int32)
    for tree in range(start.size - 1):
        for entry in range(start[tree], start[tree + 1]):
            node = node_at[entry]
            if feature[node] < 0:
                continue
            place = 0
            while place < MOST_FEATURES and features[tree, place] >= 0 and features[tree, place] != feature[node]:
                place += 1
            if place == MOST_FEATURES:
                return False
            features[tree, place] = feature[node]
            group_of, n_groups = places[tree, place], 0
            number[:] = -1
            for code in range(256):
                child = _child(arity, multiway, mask, node, code)
                # a code of a multiway node has a child of its own, so it is a group whatever it was before
                key = child if multiway[node] else 2 * np.int64(group_of[code]) + child
                if number[key] < 0:
                    number[key] = n_groups
                    firsts[tree, place, n_groups] = code
                    n_groups += 1
                group_of[code] = number[key]
            sizes[tree, place] = n_groups
        n_cells = 1
        for place in range(MOST_FEATURES):
            for code in range(256):
                places[tree, place, code] *= n_cells
            n_cells *= sizes[tree, place]
            if n_cells > MOST_CELLS:
                return False
        starts[tree + 1] = starts[tree] + n_cells
        if starts[tree + 1] > most:
            return False
    return True


@kernel
def _walk(feature, first_child, arity, multiway, mask, roots, features, firsts, sizes, starts, leaves):
    """Fill ``leaves`` with the leaf that the first codes of each cell's groups arrive at."""
    for tree in range(roots.size):
        for cell in range(starts[tree + 1] - starts[tree]):
            node = roots[tree]
            while feature[node] >= 0:
                place, group = 0, cell
                while features[tree, place] != feature[node]:
                    group //= sizes[tree, place]
                    place += 1
                code = np.int64(firsts[tree, place, group % sizes[tree, place]])
                node = first_child[node] + _child(arity, multiway, mask, node, code)
            leaves[starts[tree] + cell] = node


@kernel
def add_values(codes, first, last, features, places, starts, said, values, out):
    """Add to ``out`` (n_outputs, n_rows) the ``values`` (n_outputs, n_cells) of each row's cells, tree after tree.

    ``said`` (n_trees, n_outputs) is false where all values of a tree are 0.
    """
    at = np.empty(BLOCK, np.uint16)
    for begin in range(first, last, BLOCK):
        n = min(BLOCK, last - begin)
        end = begin + n
        for tree in range(features.shape[0]):
            one, two, a, b = features[tree, 0], features[tree, 1], places[tree, 0], places[tree, 1]
            if one < 0:
                at[:n] = 0
            elif two < 0:
                column = codes[one, begin:end]
                for i in range(n):
                    at[i] = a[column[i]]
            else:
                column, other = codes[one, begin:end], codes[two, begin:end]
                for i in range(n):
                    at[i] = a[column[i]] + b[other[i]]
            for place in range(2, MOST_FEATURES):
                if features[tree, place] >= 0:
                    column, a = codes[features[tree, place], begin:end], places[tree, place]
                    for i in range(n):
                        at[i] += a[column[i]]
            for o in range(out.shape[0]):
                if said[tree, o]:
                    line, to = values[o, starts[tree] : starts[tree + 1]], out[o, begin:end]
                    for i in range(n):
                        to[i] += line[at[i]]
