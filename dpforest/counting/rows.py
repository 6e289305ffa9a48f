"""The row engine: each record walks down the trees, and where it arrives it counts once.

Blocks of rows are short, so that where each record of the block stands stays in the first-level cache; nothing is kept per
record between blocks.  Trees are the outer loop, so that the histogram of one tree stays in the cache; with an assignment
each record is in one tree, and all trees are walked as if they were one (a single *unit*).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dpforest.counting.structure import Splits, Visit
from dpforest.counting.words import moved, pointer

_helper = njit(nogil=True, no_cpython_wrapper=True)  # takes pointers, so no wrapper for Python

BLOCK = 2048  # rows
_HISTOGRAM_CELLS = 1 << 20  # of int32, for the patterns of one unit

# Columns of the table of nodes.  LOCAL numbers the wanted nodes of a unit, -1 for the others.  The line after the last node is
# where records stand that are in no tree.
FEATURE, FIRST, MULTIWAY, LOCAL = range(4)
NODE = 4


class Walk(NamedTuple):
    """The splits, and the wanted nodes of each unit."""

    nodes: np.ndarray  # int32 (n_nodes + 1, NODE), by the columns above
    masks: np.ndarray  # uint64 (n_nodes, 4)
    roots: np.ndarray
    height: np.ndarray  # int32 (n_units,): steps from a root to the deepest wanted node, -1 where none is wanted
    start: np.ndarray  # int32 (n_units + 1,): the wanted nodes of unit u are start[u], ..., start[u + 1] - 1
    slot: np.ndarray  # int32 (n_wanted,)


def walk(splits: Splits, order: Visit, slots, assigned: bool) -> Walk:
    """Prepare to count the nodes with a slot."""
    start = order.start[[0, -1]] if assigned else order.start
    wanted = slots[order.node] >= 0
    before = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int32)
    height = np.full(len(start) - 1, -1, dtype=np.int32)
    np.maximum.at(height, np.repeat(np.arange(len(height)), np.diff(start)), order.depth)
    origin = np.repeat(before[start[:-1]], np.diff(start))
    nodes = np.full((splits.n_nodes + 1, NODE), -1, dtype=np.int32)
    nodes[:-1, FEATURE], nodes[:-1, FIRST], nodes[:-1, MULTIWAY] = splits.feature, splits.first_child, splits.multiway
    nodes[order.node[wanted], LOCAL] = (before[:-1] - origin)[wanted]
    return Walk(nodes, splits.mask, splits.roots, height, before[start], slots[order.node[wanted]])


def pattern_width(path: Walk, n_candidates: int, n_classes: int) -> int:
    """How many candidates share a pattern: as many as keep the histogram of a unit small, at most 6."""
    most, width = int(np.diff(path.start).max(initial=1)), min(n_candidates, 6)
    while width > 1 and most * -(-n_candidates // width) * (1 << width) * n_classes > _HISTOGRAM_CELLS:
        width -= 1
    return max(width, 1)


def patterns(path: Walk, n_candidates: int, n_classes: int, width: int) -> np.ndarray:
    """Workspace of one thread: the histogram of one unit."""
    most = int(np.diff(path.start).max(initial=0))
    return np.empty((most, max(1, -(-n_candidates // width)), 1 << width, n_classes), dtype=np.int32)


@_helper
def _bit(mask, code):
    """Bit ``code`` of 256."""
    return np.int64((mask[code >> 6] >> np.uint64(code & 63)) & np.uint64(1))


@_helper
def _descend(at, nodes, masks, nowhere, roots, n_trees, unit, height, assignment, assigned, codes, n_rows, n):
    """Write to ``at`` where each of the first ``n`` rows stands after ``height`` steps from its root."""
    for i in range(n):
        tree = assignment[i] if assigned else unit
        at[i] = roots[tree] if 0 <= tree < n_trees else nowhere
    for _ in range(height):
        for i in range(n):
            node = moved(nodes, at[i] * NODE)
            if node[FEATURE] >= 0:
                code = np.int64(codes[node[FEATURE] * n_rows + i])
                if not node[MULTIWAY]:
                    code = _bit(moved(masks, at[i] * 4), code)
                at[i] = node[FIRST] + code


@njit(cache=True, nogil=True)
def count(
    codes, labels, assignment, first, last,
    nodes, masks, roots, height, start, slot_of, candidate_features, candidate_masks, width, at, patterns, whole, ones,
):  # fmt: skip
    """Add the counts of rows ``first`` to ``last``: ``whole`` (n_slots, C) of the nodes, ``ones`` (n_slots, K, C) inside the tests.

    The answers of ``width`` tests to one record are the binary digits of one pattern: one increment counts them all.
    """
    n_rows, n_candidates, n_classes, n_groups = codes.shape[1], ones.shape[1], whole.shape[1], patterns.shape[1]
    for unit in range(height.size):
        n_local = start[unit + 1] - start[unit]
        patterns[:n_local] = 0
        for begin in range(first, last, BLOCK):
            if height[unit] < 0:
                break
            n = min(BLOCK, last - begin)
            block = moved(pointer(codes), begin)
            _descend(
                pointer(at), pointer(nodes), pointer(masks), nodes.shape[0] - 1, pointer(roots), roots.size, unit, height[unit],
                moved(pointer(assignment), begin), assignment.size > 0, block, n_rows, n,
            )  # fmt: skip
            for i in range(n):
                local = nodes[at[i], LOCAL]
                if local < 0:
                    continue
                test = slot_of[start[unit] + local] * n_candidates
                for group in range(n_groups):
                    pattern = 0
                    for k in range(group * width, min((group + 1) * width, n_candidates)):
                        feature = np.int64(pointer(candidate_features)[test + k])
                        code = np.int64(block[feature * n_rows + i])
                        pattern |= _bit(moved(pointer(candidate_masks), 4 * (test + k)), code) << (k - group * width)
                    patterns[local, group, pattern, labels[begin + i]] += 1
        for local in range(n_local):
            slot = slot_of[start[unit] + local]
            for group in range(n_groups):
                for pattern in range(1 << width):
                    for c in range(n_classes):
                        records = patterns[local, group, pattern, c]
                        if group == 0:
                            whole[slot, c] += records
                        for k in range(group * width, min((group + 1) * width, n_candidates)):
                            if pattern >> (k - group * width) & 1:
                                ones[slot, k, c] += records


@njit(cache=True, nogil=True)
def histogram(
    codes, labels, assignment, first, last, nodes, masks, roots, height, start, slot_of, columns, allowed, offsets, at, row, out
):
    """Add to ``out`` (n_slots, n_bins, C) the class counts of each bin of the features ``columns``, where allowed."""
    n_rows = codes.shape[1]
    for unit in range(height.size):
        for begin in range(first, last, BLOCK):
            if height[unit] < 0:
                break
            n = min(BLOCK, last - begin)
            _descend(
                pointer(at), pointer(nodes), pointer(masks), nodes.shape[0] - 1, pointer(roots), roots.size, unit, height[unit],
                moved(pointer(assignment), begin), assignment.size > 0, moved(pointer(codes), begin), n_rows, n,
            )  # fmt: skip
            kept = 0
            for i in range(n):
                local = nodes[at[i], LOCAL]
                if local >= 0:  # keep the rows that count, with their slot
                    at[kept] = slot_of[start[unit] + local]
                    row[kept] = begin + i
                    kept += 1
            for j in range(columns.size):
                feature = columns[j]
                for i in range(kept):
                    if allowed[at[i], feature]:
                        out[at[i], offsets[feature] + codes[feature, row[i]], labels[row[i]]] += 1


@njit(cache=True, nogil=True)
def leaves(codes, assignment, first, last, nodes, masks, roots, height, at, out):
    """Write to ``out`` (n_trees, n_rows) the leaf of each row in each tree."""
    for begin in range(first, last, BLOCK):
        n = min(BLOCK, last - begin)
        for tree in range(roots.size):
            _descend(
                pointer(at), pointer(nodes), pointer(masks), nodes.shape[0] - 1, pointer(roots), roots.size, tree, height[tree],
                pointer(assignment), False, moved(pointer(codes), begin), codes.shape[1], n,
            )  # fmt: skip
            for i in range(n):
                out[tree, begin + i] = at[i]


@njit(cache=True, nogil=True)
def add_values(codes, assignment, first, last, nodes, masks, roots, height, at, values, out):
    """Add to ``out`` (n_outputs, n_rows) the ``values`` (n_outputs, n_nodes) of the leaf of each row, tree after tree."""
    for begin in range(first, last, BLOCK):
        n = min(BLOCK, last - begin)
        for tree in range(roots.size):
            _descend(
                pointer(at), pointer(nodes), pointer(masks), nodes.shape[0] - 1, pointer(roots), roots.size, tree, height[tree],
                pointer(assignment), False, moved(pointer(codes), begin), codes.shape[1], n,
            )  # fmt: skip
            for o in range(out.shape[0]):
                for i in range(n):
                    out[o, begin + i] += values[o, at[i]]
