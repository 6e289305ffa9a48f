"""Counts in nodes: check the input, choose the kernel, give each thread its rows, add up."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpforest.counting import bits, cell_values, program, rows
from dpforest.counting.cell_weights import place_sums
from dpforest.counting.checks import check_classes, check_records, check_slots, check_table
from dpforest.counting.tables import Cells, Planes, combine, of_classes, of_table
from dpforest.counting.threads import check_threads, in_threads, pieces_of, total_of
from dpforest.counting.visit import Visit, visit
from dpforest.messages import shown
from dpforest.structure.splits import FEW, Splits, check_below, check_codes, check_values, frozen

# Nanoseconds that it takes at least to prepare another kernel than that of rows, and for each node more.
_PREPARING, _PER_NODE = 1e5, 600.0
_PARTIAL_BYTES = 1 << 24  # what the threads' histograms may take together before they share one


def node_class_counts(codes, labels, n_classes, splits, slots, assignment=None, n_jobs=1, kernel="auto") -> np.ndarray:
    """Class counts of nodes, for all trees in one pass.

    Parameters
    ----------
    codes, labels, n_classes, assignment
        The records, see :mod:`dpforest.counting`.
    splits : Splits
        Or any object with the same six arrays.
    slots : ndarray of int32, shape (n_nodes,)
        Row of the answer that each node is counted in, -1 for none.  Only nodes that do not split may have one.
    n_jobs : int
        Threads; -1 for as many as there are cores.
    kernel : {"auto", "rows", "bits"}

    Returns
    -------
    ndarray of int64, shape (n_slots, n_classes)
        ``n_slots`` is the largest slot plus one.

    Raises
    ------
    TypeError, ValueError
        When an array has the wrong type or shape, or a value out of range.
    """
    candidates = _no_candidates(int(np.max(slots, initial=-1)) + 1)
    table = check_classes(n_classes)
    return _slot_sums(codes, labels, table, splits, slots, *candidates, assignment, n_jobs, kernel)[0]


def candidate_counts(
    codes, labels, n_classes, splits, slots, features, masks, assignment=None, n_jobs=1, kernel="auto", known=None
) -> np.ndarray:
    """Class counts of the two children that each of K binary candidates would give each node.

    Parameters
    ----------
    features : ndarray of int32, shape (n_slots, K)
    masks : ndarray of uint64, shape (n_slots, K, 4)
        Codes of the feature that go to the second child, as 256 bits.
    known : ndarray of int64, shape (n_slots, n_classes), optional
        Class counts of the nodes, if they are known from an earlier answer: they are not counted again.

    Other parameters and errors are those of :func:`node_class_counts`.

    Returns
    -------
    ndarray of int64, shape (n_slots, K, 2, n_classes)
    """
    n_classes = check_classes(n_classes)
    whole, ones = _slot_sums(
        codes, labels, n_classes, splits, slots, features, masks, assignment, n_jobs, kernel, known
    )
    return np.stack([whole[:, None] - ones, ones], axis=2)


def node_sums(codes, labels, table, splits, slots, assignment=None, n_jobs=1, kernel="auto") -> np.ndarray:
    """Sums of ``table[label]`` over the records of nodes, for all trees in one pass.

    Parameters
    ----------
    table : ndarray of int64, shape (n_codes, Q)
        What a record of each label adds to each of the Q sums: ``n_codes`` from 1 to 256, entries from 0 to 2**31 - 1.

    Other parameters and errors are those of :func:`node_class_counts`, with ``n_codes`` in place of ``n_classes``.

    Returns
    -------
    ndarray of int64, shape (n_slots, Q)
    """
    candidates = _no_candidates(int(np.max(slots, initial=-1)) + 1)
    return _slot_sums(codes, labels, check_table(table), splits, slots, *candidates, assignment, n_jobs, kernel)[0]


def candidate_sums(
    codes, labels, table, splits, slots, features, masks, assignment=None, n_jobs=1, kernel="auto", known=None
) -> np.ndarray:
    """Sums of ``table[label]`` over the records of the two children that each of K binary candidates would give.

    Parameters and errors are those of :func:`node_sums` and :func:`candidate_counts`.

    Returns
    -------
    ndarray of int64, shape (n_slots, K, 2, Q)
    """
    table = check_table(table)
    whole, ones = _slot_sums(codes, labels, table, splits, slots, features, masks, assignment, n_jobs, kernel, known)
    return np.stack([whole[:, None] - ones, ones], axis=2)


def feature_histograms(
    codes, labels, n_classes, cardinalities, splits, slots, features=None, assignment=None, n_jobs=1
) -> np.ndarray:
    """Class counts of every bin of every feature at each node.

    Parameters
    ----------
    cardinalities : ndarray of int, shape (n_features,)
        Codes of each feature, at most 256; a record with a larger code is an error.
    features : ndarray of bool, shape (n_slots, n_features), optional
        Features to count at each node; the others stay zero.  By default all.

    Other parameters and errors are those of :func:`node_class_counts`.

    Returns
    -------
    ndarray of int64, shape (n_slots, sum(cardinalities), n_classes)
        The bins of feature f begin at ``sum(cardinalities[:f])``.

    Notes
    -----
    The answer takes :func:`histogram_bytes`; each thread adds at most 32 MB to it.  For less, ask for some of the nodes
    at a time: give the others the slot -1.
    """
    splits, n_classes = Splits.of(splits), check_classes(n_classes)
    codes, labels, assignment = check_records(codes, labels, n_classes, splits, assignment)
    cardinalities = np.asarray(cardinalities)
    whole = cardinalities.shape == (len(codes),) and cardinalities.dtype.kind in "iu"
    if not whole or (cardinalities < 1).any() or (cardinalities > 256).any():
        raise ValueError(f"cardinalities must be {len(codes)} whole numbers from 1 to 256, one per feature")
    check_below(codes, cardinalities, "codes by its cardinality")
    n_slots = int(np.max(slots, initial=-1)) + 1 if features is None else len(features)
    allowed = np.ones((n_slots, len(codes)), dtype=bool) if features is None else np.asarray(features)
    if allowed.shape != (n_slots, len(codes)) or allowed.dtype != bool:
        raise TypeError(f"features must be a bool array of shape (n_slots, {len(codes)})")
    slots = check_slots(slots, splits, n_slots)
    offsets = np.concatenate([[0], np.cumsum(cardinalities)]).astype(np.int64)
    shape, n_rows = (n_slots, int(offsets[-1]), n_classes), codes.shape[1]
    columns = np.flatnonzero(allowed.any(axis=0))
    threads = check_threads(n_jobs)

    def walk(slots):
        return _visit_of(splits, slots, assignment.size > 0)[1]

    def add(path, first, last, out):
        room = rows.sorting_room(path, last - first, len(columns))
        rows.histogram(codes, labels, assignment, first, last, *path, columns, frozen(allowed), offsets, *room, out)

    if threads * histogram_bytes(n_slots, cardinalities, n_classes) > _PARTIAL_BYTES:
        out, each = np.zeros(shape, dtype=np.int64), -(-n_slots // threads)

        def share(numbers):  # one answer for all: each thread looks at every record, for slots of its own
            for number in numbers:
                add(walk(np.where(slots // each == number, slots, np.int32(-1))), 0, n_rows, out)

        in_threads(share, list(range(threads)), threads)
        return out
    path = walk(slots)

    def work(pieces):
        out = np.zeros(shape, dtype=np.int64)
        for first, last in pieces:
            add(path, first, last, out)
        return (out,)

    return total_of(in_threads(work, pieces_of(n_rows, threads), threads))[0]


def histogram_bytes(n_slots, cardinalities, n_classes) -> int:
    """Size of the answer of :func:`feature_histograms`."""
    return 8 * int(n_slots) * int(np.sum(cardinalities)) * int(n_classes)


def sum_values(codes, splits, values, n_jobs=1, kernel="auto") -> np.ndarray:
    """Value of each record's leaf, summed over the trees in their order, the same to the last bit in every kernel.

    Parameters
    ----------
    values : ndarray of float64, shape (n_nodes, n_outputs)
    kernel : {"auto", "rows", "bits", "cells"}
        "cells" looks leaves up in tables, see :mod:`~dpforest.counting.cell_values`; ValueError where a tree is too
        large for one.

    Other parameters and errors are those of :func:`node_class_counts`.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_outputs)
    """
    splits = Splits.of(splits)
    codes, values = check_values(codes, splits, values)
    _check_kernel(kernel, "auto", "rows", "bits", "cells")
    n_rows, nobody = codes.shape[1], frozen(np.empty(0, np.int32))
    slots = np.where(splits.feature < 0, np.int32(0), np.int32(-1))
    (order, path), out = _visit_of(splits, slots, False), np.zeros((values.shape[1], n_rows))
    row_cost, candidates = rows.cost(path, n_rows, 0, None), _no_candidates(0)
    tables, plan = _tables(kernel, row_cost, splits, order, values, n_rows), None
    if not tables:
        plan = _program(kernel, row_cost, splits, order, slots, len(codes), *candidates, n_rows, None, False)
    if tables:

        def work(pieces):
            for first, last in pieces:
                cell_values.add_values(codes, first, last, *tables, out)
    elif plan:
        digits, leaves = program.number_leaves(order)
        plan.entries[:, bits.DIGITS] = digits
        numbering = order.start, int(digits.max(initial=0)).bit_length(), np.searchsorted(leaves, order.start[:-1])
        table = np.ascontiguousarray(values[order.node[leaves]].T)

        def work(pieces):
            room, leaf_of = program.room(plan, numbering[1]), np.empty(bits.BLOCK, np.int32)
            for first, last in pieces:
                bits.add_values(codes, nobody, first, last, *plan, *numbering, leaf_of, table, room, out)
    else:
        table = np.ascontiguousarray(values.T)

        def work(pieces):
            room = rows.walking_room()
            for first, last in pieces:
                rows.add_values(codes, nobody, first, last, *path[:4], *room, table, out)

    in_threads(work, pieces_of(n_rows, check_threads(n_jobs)), check_threads(n_jobs))
    return out.T


def apply(codes, splits, n_jobs=1) -> np.ndarray:
    """Leaf of each record in each tree: node numbers, int32, shape (n_rows, n_trees)."""
    splits, codes = Splits.of(splits), check_codes(codes)
    splits.check_codes(codes)
    slots = np.where(splits.feature < 0, np.int32(0), np.int32(-1))
    path, nobody = _visit_of(splits, slots, False)[1], frozen(np.empty(0, np.int32))
    out = np.empty((len(splits.roots), codes.shape[1]), dtype=np.int32)

    def work(pieces):
        room = rows.walking_room()
        for first, last in pieces:
            rows.leaves(codes, nobody, first, last, *path[:4], *room, out)

    in_threads(work, pieces_of(codes.shape[1], check_threads(n_jobs)), check_threads(n_jobs))
    return out.T


def leaf_sums(codes, splits, places, numbers, n_jobs=1) -> np.ndarray:
    """The sums of the records' whole ``numbers`` (n_outputs, n_rows) in each leaf of each tree, a row for each tree.

    Parameters
    ----------
    places : ndarray of int, shape (n_nodes,)
        The place of each leaf in the row of its tree.

    Returns
    -------
    ndarray of int64, shape (n_trees, n_leaves, n_outputs)
    """
    size = int(places.max()) + 1
    rows_of = [places[leaves] for leaves in apply(codes, splits, n_jobs=n_jobs).T]
    return np.stack([[place_sums(row, each, size) for each in numbers] for row in rows_of]).transpose(0, 2, 1)


def costs(n_rows, n_features, n_classes, splits, slots, features=None, masks=None, assigned=False) -> dict[str, float]:
    """Estimated nanoseconds of one thread that either kernel would take; ``kernel="auto"`` takes the cheaper.

    Parameters
    ----------
    n_rows, n_features : int
        Of the records.  Only their number is looked at, so that the choice is public where the number is.
    n_classes : int or ndarray
        Of :func:`candidate_counts`, or the table of :func:`candidate_sums`.
    splits, slots, features, masks
        Of the same, or without ``features`` and ``masks`` of :func:`node_class_counts` or :func:`node_sums`.
    assigned : bool
        Whether each record is in one tree only.

    Returns
    -------
    dict
        Under "rows": per record and tree, a constant, a step per level, a look-up per candidate and an addition per
        sum.  Under "bits": per 64 records, an AND per node, a popcount per node, candidate and plane (a class, or a
        binary digit of the table), and what the tests take to make.
    """
    splits = Splits.of(splits)
    if features is None:
        features, masks = _no_candidates(int(np.max(slots, initial=-1)) + 1)
    order, path = _visit_of(splits, slots, assigned)
    plan = program.prepare(splits, order, slots, n_features, features, masks)
    planes, cells = _layouts_of(n_classes if isinstance(n_classes, np.ndarray) else check_classes(n_classes))
    return {
        "rows": rows.cost(path, n_rows, features.shape[1], cells),
        "bits": program.cost(plan, n_rows, len(splits.roots), planes, assigned),
    }


def _slot_sums(codes, labels, table, splits, slots, features, masks, assignment, n_jobs, kernel, known=None):
    """Sums of each slot, (n_slots, Q), and of its records inside each test, (n_slots, K, Q).

    ``table`` is a checked table, or the number of classes: that of its rows.  ``known`` may be the first answer.
    """
    splits = Splits.of(splits)
    if not isinstance(features, np.ndarray) or features.dtype != np.int32 or features.ndim != 2:
        raise TypeError("features must be an int32 array of shape (n_slots, K)")
    if not isinstance(masks, np.ndarray) or masks.dtype != np.uint64 or masks.shape != (*features.shape, 4):
        raise TypeError(f"masks must be a uint64 array of shape {(*features.shape, 4)}")
    _check_kernel(kernel, "auto", "rows", "bits")
    codes, labels, assignment = check_records(codes, labels, table, splits, assignment)
    (n_slots, n_candidates), n_rows = features.shape, codes.shape[1]
    if features.size and (features.min() < 0 or features.max() >= len(codes)):
        raise ValueError(f"a candidate's feature is not one of the {len(codes)} features")
    slots = check_slots(slots, splits, n_slots)
    n_sums = table if isinstance(table, int) else table.shape[1]
    if known is not None and (known.shape != (n_slots, n_sums) or known.dtype != np.int64):
        raise TypeError(f"known must be an int64 array of shape {(n_slots, n_sums)}, one line per slot")
    assigned, (planes, cells) = assignment.size > 0, _layouts_of(table)
    order, path = _visit_of(splits, slots, assigned)
    row_cost = rows.cost(path, n_rows, n_candidates, cells)
    plan = _program(kernel, row_cost, splits, order, slots, len(codes), features, masks, n_rows, planes, assigned)
    threads = check_threads(n_jobs)
    weights: np.ndarray | None
    if plan:
        weights, padded = planes.weights, n_candidates + -n_candidates % 4
        records = codes, labels, planes.runs, planes.member, assignment

        def work(pieces):
            whole = np.zeros((n_slots if known is None else 0, planes.width), np.int64)
            ones = np.zeros((n_slots, padded, planes.width), np.int64)
            room = program.room(plan, planes.rows)
            for first, last in pieces:
                bits.count(*records, first, last, *plan, room, whole, ones)
            return whole, ones[:, :n_candidates]
    else:
        weights, width = cells.weights, rows.pattern_width(path, n_candidates, cells)
        records = codes, labels, cells.group, cells.amount, assignment
        features, masks = frozen(features), frozen(masks)

        def work(pieces):
            whole = np.zeros((n_slots, cells.n_cells), np.int64)
            ones = np.zeros((n_slots, n_candidates, cells.n_cells), np.int64)
            room = *rows.walking_room(), rows.patterns(path, n_candidates, cells, width)
            for first, last in pieces:
                rows.count(*records, first, last, *path, features, masks, width, *room, whole, ones)
            return whole, ones

    whole, ones = total_of(in_threads(work, pieces_of(n_rows, threads), threads))
    return combine(whole, weights) if known is None else known, combine(ones, weights)


def _visit_of(splits: Splits, slots: np.ndarray, assigned: bool) -> tuple[Visit, rows.Walk]:
    """In which order the nodes are visited, and how the row kernel walks; of few nodes it is kept."""
    if len(slots) <= FEW:
        return _kept_visit(splits, slots.tobytes(), assigned)
    order = visit(splits, slots)
    return order, rows.walk(splits, order, slots, assigned)


@lru_cache(maxsize=1 << 12)
def _kept_visit(splits: Splits, raw: bytes, assigned: bool) -> tuple[Visit, rows.Walk]:
    slots = np.frombuffer(raw, np.int32)
    order = visit(splits, slots)
    return order, rows.walk(splits, order, slots, assigned)


def _layouts_of(table) -> tuple[Planes, Cells]:
    """How either kernel sums the rows of a table, or counts that many classes."""
    return of_classes(table) if isinstance(table, int) else of_table(table)


def _check_kernel(kernel: object, *names: str) -> None:
    if kernel not in names:
        raise ValueError(f"kernel must be {' or '.join(map(repr, names))}, not {shown(kernel)}")


def _tables(kernel, row_cost, splits, order, values, n_rows) -> cell_values.LeafTables | None:
    """The cell kernel's tables if that kernel is to be used, else None."""
    if kernel == "auto" and row_cost > _preparing(splits):
        tables = cell_values.prepare(splits, order, values, n_rows)
        return tables if tables and cell_values.cost(tables, n_rows) < row_cost else None
    if kernel != "cells":
        return None
    tables = cell_values.prepare(splits, order, values, len(splits.roots) * cell_values.MOST_CELLS)
    if tables is None:
        most = (
            f"{cell_values.MOST_TREES} trees of {cell_values.MOST_FEATURES} features and {cell_values.MOST_CELLS} cells"
        )
        raise ValueError(f"kernel='cells' takes at most {most} each; ask for 'auto', which takes any")
    return tables


def _program(kernel, row_cost, splits, order, slots, n_features, features, masks, n_rows, planes, assigned):
    """The bit kernel's program if that kernel is to be used, else None."""
    if kernel == "rows" or (kernel == "auto" and row_cost < _preparing(splits)):
        return None
    if kernel == "auto" and row_cost < program.least_cost(order, slots, n_rows, len(splits.roots)):
        return None
    plan = program.prepare(splits, order, slots, n_features, features, masks)
    if kernel == "auto" and row_cost < program.cost(plan, n_rows, len(splits.roots), planes, assigned):
        return None
    return plan


def _preparing(splits: Splits) -> float:
    return _PREPARING + _PER_NODE * splits.n_nodes


def _no_candidates(n_slots: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty((n_slots, 0), np.int32), np.empty((n_slots, 0, 4), np.uint64)
