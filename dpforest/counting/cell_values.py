"""The cell kernel: trees that split on few features are tables, in which a record's values are looked up by its codes.

Codes of a feature that all nodes of a tree send the same way are one *group*; the groups of the tree's features cross
in its *cells*.  Each cell is walked down once.  After that a record costs an addition per feature and one per output,
however deep the tree is.  Where sums need no rounding, trees on the same features share a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpforest.counting.compiled import helper, kernel
from dpforest.counting.visit import Visit
from dpforest.structure.splits import Splits, frozen

__all__ = ["LeafTables", "add_values", "cost", "prepare"]

BLOCK = 2048  # rows: their places and sums stay in the first-level cache
MOST_FEATURES = 4  # of a table; with more of them the bit kernel is faster
MOST_CELLS = 1 << 12  # of a tree: its table stays in the cache, and places fit 16 bits
MOST_TREES = 1 << 12  # 3 kB each, before they share tables
_SHARED_CELLS = 1 << 9  # of a table of several trees, which is walked down for each
_STEP = 2.0**-20  # of votes


class LeafTables(NamedTuple):
    """Tables of which the values at a record's cells add up to the values of its leaves."""

    features: np.ndarray  # int32 (n_tables, MOST_FEATURES): what the table crosses, then -1
    places: np.ndarray  # uint16 (n_tables, MOST_FEATURES, 256): what each code adds to the place of a record's cell
    starts: np.ndarray  # int64 (n_tables + 1,): the cells of table t are starts[t], ..., starts[t + 1] - 1
    said: np.ndarray  # bool (n_tables, n_outputs): whether any of its values is not 0
    values: np.ndarray  # float64 (n_outputs, n_cells)


def prepare(splits: Splits, order: Visit, values: np.ndarray, most: int) -> LeafTables | None:
    """The tables of all trees; None where these are too many, or one has too many features or cells.

    None, too, where all together have more than ``most`` cells.  There is a table for each tree, in their order; or,
    where no sum of ``values`` (n_nodes, n_outputs) would be rounded, so that the order does not matter, one for trees
    whose features are among those of another.
    """
    shape = (len(splits.roots), MOST_FEATURES)
    if len(splits.roots) > MOST_TREES:
        return None
    asked, crossed = np.full((2, *shape), -1, np.int32)
    nodes = splits.feature, splits.first_child, splits.arity, splits.multiway, splits.mask
    entries = frozen(order.node), frozen(order.start)
    if not _list_features(splits.feature, *entries, asked):
        return None
    shared = _need_no_rounding(values, len(splits.roots))
    sequence = np.argsort(-(asked >= 0).sum(axis=1), kind="stable") if shared else np.arange(len(asked))
    places, firsts = np.zeros((*shape, 256), np.uint16), np.zeros((*shape, 256), np.uint8)
    sizes, table_of = np.ones(shape, np.int64), np.empty(len(asked), np.int64)
    cells = crossed, places, firsts, sizes
    n_tables = _group(*nodes, *entries, frozen(sequence), shared, frozen(asked), *cells, table_of)
    n_cells = sizes[: max(n_tables, 0)].prod(axis=1)
    if n_tables < 0 or n_cells.sum() > most:
        return None
    starts = np.concatenate([[0], np.cumsum(n_cells)])
    table = np.zeros((values.shape[1], starts[-1]))
    _walk(*nodes, splits.roots, frozen(values), *cells, table_of, starts, table)
    places = places[:n_tables] * (sizes.cumprod(axis=1) // sizes)[:n_tables, :, None].astype(np.uint16)
    said = np.logical_or.reduceat(table != 0, starts[:-1], axis=1).T  # adding 0 changes no bit of a sum
    return LeafTables(crossed[:n_tables], places, starts, said, table)


def cost(plan: LeafTables, n_rows: int) -> float:
    """Estimated nanoseconds of one thread: what each record takes per feature and per output of a table."""
    return n_rows * 0.4 * float((plan.features >= 0).sum() + plan.said.sum())


def _need_no_rounding(values: np.ndarray, n_trees: int) -> bool:
    """Whether the sums of so many values are exact in any order: whole multiples of a step, and few of them."""
    with np.errstate(over="ignore"):
        steps = values / _STEP
    return bool((np.abs(steps) < 2.0**53 / max(n_trees, 1)).all() and (steps == np.rint(steps)).all())


@helper
def _child(arity, multiway, mask, node, code):
    """Which child of a node a code goes to.  No record has a code beyond the children of a multiway node."""
    if multiway[node]:
        return min(code, np.int64(arity[node]) - 1)
    return np.int64((mask[node, code >> 6] >> np.uint64(code & 63)) & np.uint64(1))


@kernel
def _list_features(feature, node_at, start, asked):
    """Fill ``asked`` with the features that each tree splits on; whether they are few enough."""
    for tree in range(start.size - 1):
        for entry in range(start[tree], start[tree + 1]):
            wanted, place = feature[node_at[entry]], 0
            if wanted < 0:
                continue
            while place < MOST_FEATURES and asked[tree, place] >= 0 and asked[tree, place] != wanted:
                place += 1
            if place == MOST_FEATURES:
                return False
            asked[tree, place] = wanted
    return True


@kernel
def _group(
    feature,
    first_child,
    arity,
    multiway,
    mask,
    node_at,
    start,
    sequence,
    shared,
    asked,
    crossed,
    groups,
    firsts,
    sizes,
    table_of,
):
    """Fill the last five; how many tables there are, and -1 where a tree has too many cells.

    ``crossed`` are the features of each table, ``groups`` the group of each of their codes, ``firsts`` the first code
    of each group, and ``sizes`` their numbers; ``table_of`` has the table of each tree.
    """
    n_tables, number = 0, np.empty(512, np.int32)
    for tree in sequence:
        for table in range(0 if shared else n_tables, n_tables + 1):
            if table == n_tables:
                crossed[table] = asked[tree]
            elif not _among(asked[tree], crossed[table]):
                continue
            before, sizes_before, firsts_before = groups[table].copy(), sizes[table].copy(), firsts[table].copy()
            for entry in range(start[tree], start[tree + 1]):
                node, place = node_at[entry], 0
                if feature[node] < 0:
                    continue
                while crossed[table, place] != feature[node]:
                    place += 1
                group_of, n_groups = groups[table, place], 0
                number[:] = -1
                for code in range(256):
                    child = _child(arity, multiway, mask, node, code)
                    # a code of a multiway node has a child of its own, so it is a group whatever it was before
                    key = child if multiway[node] else 2 * np.int64(group_of[code]) + child
                    if number[key] < 0:
                        number[key] = n_groups
                        firsts[table, place, n_groups] = code
                        n_groups += 1
                    group_of[code] = number[key]
                sizes[table, place] = n_groups
            n_cells = 1.0
            for size in sizes[table]:
                n_cells *= size
            if n_cells <= (MOST_CELLS if table == n_tables else _SHARED_CELLS):
                table_of[tree] = table
                break
            groups[table], sizes[table], firsts[table] = before, sizes_before, firsts_before
        else:
            return -1
        n_tables = max(n_tables, table_of[tree] + 1)
    return n_tables


@helper
def _among(some, features):
    """Whether each of ``some`` is one of the features; both are filled up with -1."""
    for one in some:
        found = one < 0
        for feature in features:
            found |= one == feature
        if not found:
            return False
    return True


@kernel
def _walk(
    feature,
    first_child,
    arity,
    multiway,
    mask,
    roots,
    values,
    crossed,
    groups,
    firsts,
    sizes,
    table_of,
    starts,
    out,
):
    """Add to each cell in ``out`` the values of the leaves that the first codes of its groups arrive at."""
    for tree in range(roots.size):
        table = table_of[tree]
        for cell in range(starts[table + 1] - starts[table]):
            node = roots[tree]
            while feature[node] >= 0:
                place, group = 0, cell
                while crossed[table, place] != feature[node]:
                    group //= sizes[table, place]
                    place += 1
                code = np.int64(firsts[table, place, group % sizes[table, place]])
                node = first_child[node] + _child(arity, multiway, mask, node, code)
            for o in range(out.shape[0]):
                out[o, starts[table] + cell] += values[node, o]


@kernel
def add_values(codes, first, last, features, places, starts, said, values, out):
    """Add to ``out`` (n_outputs, n_rows) the values of each row's cells, table after table."""
    at = np.empty(BLOCK, np.uint16)
    for begin in range(first, last, BLOCK):
        n = min(BLOCK, last - begin)
        end = begin + n
        for table in range(features.shape[0]):
            one, two, a, b = features[table, 0], features[table, 1], places[table, 0], places[table, 1]
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
                if features[table, place] >= 0:
                    column, a = codes[features[table, place], begin:end], places[table, place]
                    for i in range(n):
                        at[i] += a[column[i]]
            for o in range(out.shape[0]):
                if said[table, o]:
                    line, to = values[o, starts[table] : starts[table + 1]], out[o, begin:end]
                    for i in range(n):
                        to[i] += line[at[i]]
