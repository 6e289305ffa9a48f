"""What the bit kernel prepares from the public trees and candidates, before it reads a record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpforest.counting.bit_words import VECTOR_POPCOUNT
from dpforest.counting.bits import AFTER, BLOCK, DEPTH, ENTRY, FLIP, SLOT, TREE, USE, WORDS
from dpforest.counting.masks import PART, SPAN, STOP, schedule
from dpforest.counting.tables import Planes
from dpforest.counting.visit import Visit
from dpforest.structure.splits import Splits

_ONE = np.uint64(1)
# Carry-save counters take so many times as long for a word as an instruction for eight popcounts (measured with AVX2).
_SLOWER = 1.0 if VECTOR_POPCOUNT else 2.2


class Program(NamedTuple):
    """All that can be prepared before the records are read."""

    entries: np.ndarray  # int32 (n_entries, ENTRY), by the columns above
    rows: np.ndarray  # int32: rows of the room that the entries use
    tests: np.ndarray  # this and the following: see masks.Schedule
    parts: np.ndarray
    kept: np.ndarray
    made: np.ndarray
    made_start: np.ndarray
    entry_start: np.ndarray
    first_row: int  # the first that does not hold a test
    depth: int  # rows for the current path


def prepare(
    splits: Splits, order: Visit, slots: np.ndarray, n_features: int, features: np.ndarray, masks: np.ndarray
) -> Program:
    """Prepare to count the nodes with a slot, divided by K tests each: features (n_slots, K), masks (n_slots, K, 4).

    K is filled up to a multiple of 4 by repeating the last test.
    """
    node, n = order.node, len(order.node)
    entries = np.full((n, ENTRY), -1, dtype=np.int32)
    entries[:, DEPTH], entries[:, AFTER], entries[:, SLOT] = order.depth, order.after, slots[node]
    root = np.flatnonzero(order.parent < 0)
    entries[root, TREE] = np.searchsorted(order.start, root, side="right") - 1

    child = np.flatnonzero(order.parent >= 0)
    above = node[order.parent[child]]
    code = node[child] - splits.first_child[above]  # of a binary node's children: 0 or 1
    multiway = np.flatnonzero(splits.multiway[above])
    edges = splits.mask[above]
    edges[multiway] = 0
    edges[multiway, code[multiway] >> 6] = _ONE << (code[multiway] & 63).astype(np.uint64)
    entries[child, FLIP] = -((code == 0) & ~splits.multiway[above]).astype(np.int32)

    n_candidates = features.shape[1]
    padded = n_candidates + -n_candidates % 4
    n_uses = (order.parent >= 0) + padded * (entries[:, SLOT] >= 0)
    use_start = np.concatenate([[0], np.cumsum(n_uses)]).astype(np.int32)
    entries[:, USE] = use_start[:-1]
    uses = np.empty(use_start[-1], dtype=np.int32)
    uses[use_start[child]] = features.size + np.arange(len(child))
    wanted = np.flatnonzero(entries[:, SLOT] >= 0)
    for k in range(padded):
        at = use_start[wanted] + (order.parent[wanted] >= 0) + k
        uses[at] = entries[wanted, SLOT] * n_candidates + min(k, n_candidates - 1)
    plan, rows = schedule(
        np.concatenate([features.ravel(), splits.feature[above]]),
        np.concatenate([masks.reshape(-1, 4), edges]),
        n_features,
        uses,
        use_start,
    )
    return Program(entries, rows, *plan[:-1], len(plan.kept) + plan.most, int(order.depth.max(initial=0)) + 1)


def number_leaves(order: Visit) -> tuple[np.ndarray, np.ndarray]:
    """Number the leaves of each tree from 0: the digits of each entry, and the entries of the leaves.

    An entry's digits are the ones that all leaves below it have in common and that its parent's leaves do not.
    ORing the records of each entry into its digits writes the number of every record's leaf, with far fewer ORs
    than leaf by leaf.
    """
    leaf = order.after == np.arange(len(order.node)) + 1
    before = np.concatenate([[0], np.cumsum(leaf)])
    origin = np.repeat(before[order.start[:-1]], np.diff(order.start))
    low, high = before[:-1] - origin, before[order.after] - origin - 1
    differ = low ^ high
    for shift in (1, 2, 4, 8, 16):
        differ |= differ >> shift
    common = low & ~differ
    return common & ~np.where(order.parent >= 0, common[order.parent], 0), np.flatnonzero(leaf)


def room(plan: Program, more: int) -> np.ndarray:
    """Workspace of one thread: the bitmaps of a block, ``more`` after the path, aligned to cache lines of 64 bytes."""
    n_rows = plan.first_row + plan.depth + more
    raw = np.empty(n_rows * WORDS + 8, dtype=np.uint64)
    skip = -(raw.ctypes.data // 8) % 8
    return raw[skip : skip + n_rows * WORDS]


def least_cost(order: Visit, slots: np.ndarray, n_rows: int, n_trees: int) -> float:
    """A part of :func:`cost` that is known without preparing: one AND per entry."""
    n_entries = len(order.node)
    n_words = -(-n_rows // 64)
    return _SLOWER * 0.09 * n_words * n_entries * _reached(n_entries - int((slots[order.node] >= 0).sum()), n_trees)


def _reached(n_inner: int, n_trees: int) -> float:
    """Share of the entries that some record of a block reaches; the more inner nodes a tree has, the fewer."""
    return 1 / (1 + (n_inner / max(n_trees, 1) / 1024) ** 0.5)


def cost(plan: Program, n_rows: int, n_trees: int, planes: Planes | None, assigned: bool) -> float:
    """Estimated nanoseconds of one thread: loops over a bitmap, times what starting one and each of its words takes.

    ``planes`` is None where values are added instead of counts.
    """
    chosen, n_entries = np.concatenate([plan.kept, plan.made]), len(plan.entries)
    n_parts = int((plan.tests[chosen, STOP] - plan.tests[chosen, PART]).sum())
    n_packed = int((plan.tests[chosen, SPAN] >= 0).sum())
    n_slots = int((plan.entries[:, SLOT] >= 0).sum())
    n_fours = (len(plan.rows) - n_entries + n_trees) // 4  # of candidates
    n_runs, n_octets = (len(planes.runs), len(planes.member)) if planes else (0, 0)
    n_planes, n_tiles, n_eights, n_sums = 0, 0, 0, 0
    if planes is None:
        n_sums = n_entries
    elif n_octets:
        n_planes, n_eights = n_slots + 4 * n_fours, n_octets * (n_slots + 4 * n_fours)
    else:
        n_planes, n_tiles = n_slots * (n_runs + 1 + (n_runs if n_fours else 0)), n_fours * (n_runs // 2 + 1)
    reached = _reached(n_entries - n_slots, n_trees)
    loops = reached * (n_entries + n_planes + n_tiles + n_eights / 4 + n_sums) + n_parts / 4 + n_packed
    per_word = reached * (0.09 * n_entries + 0.05 * n_planes + 0.6 * n_tiles + 0.5 * n_eights + 0.1 * n_sums)
    per_word += 0.045 * n_parts + 0.6 * n_packed + 40 * n_octets + (6.0 * n_trees if assigned else 0)
    return _SLOWER * per_word * -(-n_rows // 64) + 8.0 * loops * -(-n_rows // BLOCK)
