"""The row kernel: each record walks down the trees, and where it arrives it counts once.

Blocks of rows are short, so that the current nodes of their records stay in the first-level cache; nothing is
kept per record between blocks.  Trees are the outer loop, so that the histogram of one tree stays in the cache;
with an assignment each record is in one tree, and all trees are walked as if they were one (a single *unit*).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpforest.counting.bit_words import moved, pointer
from dpforest.counting.compiled import helper, kernel
from dpforest.counting.tables import Cells
from dpforest.counting.visit import Visit
from dpforest.structure.splits import Splits, frozen

BLOCK = 2048  # rows
_SORTING_BYTES = 1 << 24  # of one thread, for the rows that are sorted together
_PATTERN_BYTES = 1 << 22  # for the patterns of one unit

# Columns of the table of nodes.  LOCAL numbers the wanted nodes of a unit, -1 for the others.
FEATURE, FIRST, MULTIWAY, LOCAL = range(4)
NODE = 4


class Walk(NamedTuple):
    """The splits, and the wanted nodes of each unit."""

    nodes: np.ndarray  # int32 (n_nodes, NODE), by the columns above
    masks: np.ndarray  # uint64 (n_nodes, 4)
    roots: np.ndarray  # -1 for a tree in which nothing is wanted
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
    nodes = np.full((splits.n_nodes, NODE), -1, dtype=np.int32)
    nodes[:, FEATURE], nodes[:, FIRST], nodes[:, MULTIWAY] = splits.feature, splits.first_child, splits.multiway
    nodes[order.node[wanted], LOCAL] = (before[:-1] - origin)[wanted]
    roots = np.where(np.diff(before[order.start]) > 0, splits.roots, np.int32(-1))
    return Walk(nodes, splits.mask, frozen(roots), height, before[start], slots[order.node[wanted]])


def pattern_width(path: Walk, n_candidates: int, cells: Cells) -> int:
    """How many candidates share a pattern: as many as keep the table of a unit's patterns small, at most 6."""
    most, width = int(np.diff(path.start).max(initial=1)), min(n_candidates, 6)
    while width > 1 and most * -(-n_candidates // width) * (1 << width) * cells.nbytes > _PATTERN_BYTES:
        width -= 1
    return max(width, 1)


def patterns(path: Walk, n_candidates: int, cells: Cells, width: int) -> np.ndarray:
    """Workspace of one thread: the cells of one unit, by node, group of candidates and pattern."""
    most = int(np.diff(path.start).max(initial=0))
    return np.empty((most, max(1, -(-n_candidates // width)), 1 << width, cells.n_cells), dtype=cells.dtype)


def cost(path: Walk, n_rows: int, n_candidates: int, cells: Cells | None) -> float:
    """Estimated nanoseconds of one thread: what each record takes per tree, per step and per candidate.

    ``cells`` is None where values are added instead of counts.
    """
    n_wanted, cell_bytes = int(np.diff(path.start).max(initial=0)), cells.nbytes if cells else 0
    table_bytes = n_wanted * (96 + 36 * n_candidates + cell_bytes * (1 << min(n_candidates, 6)))  # read at random
    heights = path.height[path.height >= 0]
    adding = 0.3 * cells.amount.shape[1] * max(1, -(-n_candidates // 6)) if cells else 0.0
    per_row = float((1.6 + 1.5 * n_candidates + 1.5 * heights + adding).sum())
    return n_rows * per_row * (1 + min(table_bytes / (1 << 22), 4))


def walking_room() -> tuple[np.ndarray, ...]:
    """Workspace of one thread: the rows of a block, and where they stand."""
    return tuple(np.empty((2, BLOCK), np.int64))


def sorting_room(path: Walk, n_rows: int, n_columns: int) -> tuple[np.ndarray, ...]:
    """Workspace of one thread for :func:`histogram`."""
    batch = max(1, min(n_rows, _SORTING_BYTES // (n_columns + 13)))
    batch += -batch % BLOCK
    n_local = int(np.diff(path.start).max(initial=0))
    local_of, row_of = np.empty(batch, np.int32), np.empty(batch, np.int64)
    packed, ends = np.empty((batch, n_columns + 1), np.uint8), np.empty(n_local + 1, np.int32)
    return *walking_room(), local_of, row_of, packed, ends, *np.empty((2, n_columns), np.int64)


@helper
def _bit(mask, code):
    """Bit ``code`` of 256."""
    return np.int64((mask[code >> 6] >> np.uint64(code & 63)) & np.uint64(1))


@helper
def _descend(codes, begin, n, unit, assignment, nodes, masks, roots, height, row, at):
    """Of ``n`` rows from ``begin`` on, write to ``row`` those that walk, and to ``at`` the node where each arrives.

    A row walks ``height[unit]`` steps from the root of its tree.  Returned is how many rows walk: not those of other
    trees, nor of trees in which nothing is wanted.
    """
    n_rows, table, mask_of = codes.shape[1], pointer(nodes), pointer(masks)
    rows, here, walking = pointer(row), pointer(at), 0
    for i in range(begin, begin + n):
        tree = assignment[i] if assignment.size > 0 else unit
        if 0 <= tree < roots.size and roots[tree] >= 0:
            rows[walking] = i
            here[walking] = roots[tree]
            walking += 1
    for _ in range(height[unit]):
        for i in range(walking):
            node = moved(table, here[i] * NODE)
            if node[FEATURE] >= 0:
                code = np.int64(pointer(codes)[node[FEATURE] * n_rows + rows[i]])
                if not node[MULTIWAY]:
                    code = _bit(moved(mask_of, here[i] * 4), code)
                here[i] = node[FIRST] + code
    return walking


@kernel
def count(
    codes,
    labels,
    group_of,
    amount,
    assignment,
    first,
    last,
    nodes,
    masks,
    roots,
    height,
    start,
    slot_of,
    candidate_features,
    candidate_masks,
    width,
    row,
    at,
    patterns,
    whole,
    ones,
):
    """Add up the cells of rows ``first`` to ``last``: of the nodes, and of their records inside each candidate.

    They go to ``whole`` (n_slots, n_cells) and ``ones`` (n_slots, K, n_cells); see tables.Cells for the cells.  The
    answers of ``width`` candidates to one record are the binary digits of one pattern: one addition serves them all.
    """
    n_rows, n_candidates, n_cells, n_groups = codes.shape[1], ones.shape[1], whole.shape[1], patterns.shape[1]
    feature_of, mask_of = pointer(candidate_features), pointer(candidate_masks)
    for unit in range(height.size):
        n_local = start[unit + 1] - start[unit]
        patterns[:n_local] = 0
        for begin in range(first, last if height[unit] >= 0 else first, BLOCK):
            n = min(BLOCK, last - begin)
            for i in range(_descend(codes, begin, n, unit, assignment, nodes, masks, roots, height, row, at)):
                local = nodes[at[i], LOCAL]
                if local < 0:
                    continue
                test, columns = slot_of[start[unit] + local] * n_candidates, moved(pointer(codes), row[i])
                for group in range(n_groups):
                    pattern = 0
                    for k in range(group * width, min((group + 1) * width, n_candidates)):
                        code = np.int64(columns[np.int64(feature_of[test + k]) * n_rows])
                        pattern |= _bit(moved(mask_of, 4 * (test + k)), code) << (k - group * width)
                    label = labels[row[i]]
                    if amount.shape[1] == 0:
                        patterns[local, group, pattern, group_of[label]] += 1
                    for q in range(amount.shape[1]):
                        patterns[local, group, pattern, q] += amount[label, q]
        for local in range(n_local):
            slot = slot_of[start[unit] + local]
            for group in range(n_groups):
                for pattern in range(1 << width):
                    for c in range(n_cells):
                        total = patterns[local, group, pattern, c]
                        if total == 0:
                            continue
                        if group == 0:
                            whole[slot, c] += total
                        for k in range(group * width, min((group + 1) * width, n_candidates)):
                            if pattern >> (k - group * width) & 1:
                                ones[slot, k, c] += total


@kernel
def histogram(
    codes,
    labels,
    assignment,
    first,
    last,
    nodes,
    masks,
    roots,
    height,
    start,
    slot_of,
    columns,
    allowed,
    offsets,
    row,
    at,
    local_of,
    row_of,
    packed,
    ends,
    mine,
    bins,
    out,
):
    """Add to ``out`` (n_slots, n_bins, C) the class counts of each bin of the features ``columns``, where allowed.

    The rows of a batch are packed first, the codes and the label of each side by side, in the order of their nodes.
    Otherwise each increment would read and write another line of memory.
    """
    n_rows, n_columns, n_classes, width = codes.shape[1], columns.size, out.shape[2], packed.shape[1]
    column_at, mine_at, bins_at = pointer(columns), pointer(mine), pointer(bins)
    for unit in range(height.size):
        n_local, begin = start[unit + 1] - start[unit], first if height[unit] >= 0 else last
        while begin < last:
            kept = 0
            ends[: n_local + 1] = 0
            while begin < last and kept + BLOCK <= row_of.size:
                n = min(BLOCK, last - begin)
                for i in range(_descend(codes, begin, n, unit, assignment, nodes, masks, roots, height, row, at)):
                    local = nodes[at[i], LOCAL]
                    if local >= 0:
                        local_of[kept] = local
                        row_of[kept] = row[i]
                        ends[local + 1] += 1
                        kept += 1
                begin += n
            for local in range(n_local):
                ends[local + 1] += ends[local]
            for i in range(kept):
                line = moved(pointer(packed), ends[local_of[i]] * width)
                ends[local_of[i]] += 1  # in the end, where the rows of the next node begin
                own = moved(pointer(codes), row_of[i])
                for j in range(n_columns):
                    line[j] = own[column_at[j] * n_rows]
                line[n_columns] = labels[row_of[i]]
            i = 0
            for local in range(n_local):
                slot, n_mine = slot_of[start[unit] + local], 0
                for j in range(n_columns):
                    if allowed[slot, columns[j]]:
                        mine[n_mine] = j
                        bins[n_mine] = offsets[columns[j]] * n_classes
                        n_mine += 1
                to = moved(pointer(out), slot * out.shape[1] * n_classes)
                while i < ends[local]:
                    line = moved(pointer(packed), i * width)
                    of_label = moved(to, line[n_columns])
                    for j in range(n_mine):
                        of_label[bins_at[j] + np.int64(line[mine_at[j]]) * n_classes] += 1
                    i += 1


@kernel
def leaves(codes, assignment, first, last, nodes, masks, roots, height, row, at, out):
    """Write to ``out`` (n_trees, n_rows) the leaf of each row in each tree."""
    for tree in range(roots.size):
        for begin in range(first, last, BLOCK):
            n = min(BLOCK, last - begin)
            for i in range(_descend(codes, begin, n, tree, assignment, nodes, masks, roots, height, row, at)):
                out[tree, row[i]] = at[i]


@kernel
def add_values(codes, assignment, first, last, nodes, masks, roots, height, row, at, values, out):
    """Add to ``out`` (n_outputs, n_rows) the ``values`` (n_outputs, n_nodes) of each row's leaves, tree after tree."""
    for tree in range(roots.size):
        for begin in range(first, last, BLOCK):
            n = min(BLOCK, last - begin)
            walking = _descend(codes, begin, n, tree, assignment, nodes, masks, roots, height, row, at)
            for o in range(out.shape[0]):
                for i in range(walking):
                    out[o, row[i]] += values[o, at[i]]
