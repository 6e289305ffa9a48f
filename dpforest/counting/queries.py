"""The queries: check the input, choose the engine, give each thread its rows, add up."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral

import numpy as np

from dpforest.counting import bits, rows
from dpforest.counting.structure import Splits, Visit, check_below, frozen

_PIECE = 1 << 14  # rows: a whole number of blocks of either engine
_PARTIAL_BYTES = 1 << 26  # what the threads' histograms may take together before they share one


def node_class_counts(codes, labels, n_classes, splits, slots, assignment=None, n_jobs=1, engine="auto") -> np.ndarray:
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
    engine : {"auto", "rows", "bits"}

    Returns
    -------
    ndarray of int64, shape (n_slots, n_classes)
        ``n_slots`` is the largest slot plus one.

    Raises
    ------
    TypeError, ValueError
        When an array has the wrong type or shape, or a value out of range.
    """
    splits = Splits.of(splits)
    n_slots = int(np.max(slots, initial=-1)) + 1
    features, masks = np.empty((n_slots, 0), np.int32), np.empty((n_slots, 0, 4), np.uint64)
    return _count(codes, labels, n_classes, splits, slots, features, masks, assignment, n_jobs, engine)[0]


def candidate_counts(
    codes, labels, n_classes, splits, slots, features, masks, assignment=None, n_jobs=1, engine="auto"
) -> np.ndarray:
    """Class counts of the two children that each of K binary candidates would give each node.

    Parameters
    ----------
    features : ndarray of int32, shape (n_slots, K)
    masks : ndarray of uint64, shape (n_slots, K, 4)
        Codes of the feature that go to the second child, as 256 bits.

    Other parameters and errors are those of :func:`node_class_counts`.

    Returns
    -------
    ndarray of int64, shape (n_slots, K, 2, n_classes)
    """
    splits = Splits.of(splits)
    if not isinstance(features, np.ndarray) or features.dtype != np.int32 or features.ndim != 2:
        raise TypeError("features must be an int32 array of shape (n_slots, K)")
    if not isinstance(masks, np.ndarray) or masks.dtype != np.uint64 or masks.shape != (*features.shape, 4):
        raise TypeError(f"masks must be a uint64 array of shape {(*features.shape, 4)}")
    whole, ones = _count(codes, labels, n_classes, splits, slots, features, masks, assignment, n_jobs, engine)
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
    The answer takes :func:`histogram_bytes`; the threads add at most 64 MB to it.  For less, ask for some of the nodes at a
    time: give the others the slot -1.
    """
    splits = Splits.of(splits)
    codes, labels, assignment, n_classes = _records(codes, labels, n_classes, splits, assignment)
    cardinalities = np.asarray(cardinalities)
    if cardinalities.shape != (len(codes),) or cardinalities.dtype.kind not in "iu" or not np.isin(cardinalities, range(1, 257)).all():
        raise ValueError(f"cardinalities must be {len(codes)} whole numbers from 1 to 256, one per feature")
    check_below(codes, cardinalities, "codes by its cardinality")
    n_slots = int(np.max(slots, initial=-1)) + 1 if features is None else len(features)
    allowed = np.ones((n_slots, len(codes)), dtype=bool) if features is None else np.asarray(features)
    if allowed.shape != (n_slots, len(codes)) or allowed.dtype != bool:
        raise TypeError(f"features must be a bool array of shape (n_slots, {len(codes)})")
    slots = _slots(slots, splits, n_slots)
    path = rows.walk(splits, splits.visit(slots), slots, assignment.size > 0)
    offsets = np.concatenate([[0], np.cumsum(cardinalities)]).astype(np.int64)
    shape = (n_slots, int(offsets[-1]), n_classes)
    columns = np.flatnonzero(allowed.any(axis=0))
    threads = _threads(n_jobs)

    def add(first, last, columns, out):
        at, row = np.empty((2, rows.BLOCK), np.int64)
        rows.histogram(codes, labels, assignment, first, last, *path, columns, frozen(allowed), offsets, at, row, out)

    if threads * histogram_bytes(n_slots, cardinalities, n_classes) > _PARTIAL_BYTES:
        out = np.zeros(shape, dtype=np.int64)  # one for all: each thread walks every record, for features of its own
        _in_threads(lambda some: [add(0, codes.shape[1], columns[i::threads], out) for i in some], list(range(threads)), threads)
        return out

    def work(pieces):
        out = np.zeros(shape, dtype=np.int64)
        for first, last in pieces:
            add(first, last, columns, out)
        return (out,)

    return _total(_in_threads(work, _pieces(codes.shape[1], threads), threads))[0]


def histogram_bytes(n_slots, cardinalities, n_classes) -> int:
    """Size of the answer of :func:`feature_histograms`."""
    return 8 * int(n_slots) * int(np.sum(cardinalities)) * int(n_classes)


def sum_values(codes, splits, values, n_jobs=1, engine="auto") -> np.ndarray:
    """Value of each record's leaf, summed over the trees in their order, the same to the last bit in either engine.

    Parameters
    ----------
    values : ndarray of float64, shape (n_nodes, n_outputs)

    Other parameters and errors are those of :func:`node_class_counts`.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_outputs)
    """
    splits, codes = Splits.of(splits), _codes(codes)
    splits.check_codes(codes)
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.ndim != 2 or len(values) != splits.n_nodes:
        raise TypeError(f"values must be a float64 array of shape ({splits.n_nodes}, n_outputs)")
    n_rows, no_assignment = codes.shape[1], frozen(np.empty(0, np.int32))
    slots = np.where(splits.feature < 0, np.int32(0), np.int32(-1))
    order = splits.visit(slots)
    out = np.zeros((values.shape[1], n_rows))
    if _engine(engine, order, n_rows, len(splits.roots), 1, 0) == "bits":
        digits, leaves = bits.number_leaves(order)
        n_digits = int(digits.max(initial=0)).bit_length()
        plan = bits.program(splits, order, slots, len(codes), np.empty((0, 0), np.int32), np.empty((0, 0, 4), np.uint64))
        plan.entries[:, bits.DIGITS] = digits
        table, first_leaf = np.ascontiguousarray(values[order.node[leaves]].T), np.searchsorted(leaves, order.start[:-1]).astype(np.int32)

        def work(pieces):
            room, leaf_of = bits.room(plan, n_digits), np.empty(bits.BLOCK, np.int32)
            for first, last in pieces:
                bits.add_values(
                    codes, no_assignment, first, last, *plan, order.start, n_digits, first_leaf, leaf_of, table, room, out
                )
    else:
        path = rows.walk(splits, order, slots, False)

        def work(pieces):
            at, columns = np.empty(rows.BLOCK, np.int64), np.ascontiguousarray(values.T)
            for first, last in pieces:
                rows.add_values(codes, no_assignment, first, last, *path[:4], at, columns, out)

    _in_threads(work, _pieces(n_rows, _threads(n_jobs)), _threads(n_jobs))
    return out.T


def apply(codes, splits, n_jobs=1) -> np.ndarray:
    """Leaf of each record in each tree: node numbers, int32, shape (n_rows, n_trees)."""
    splits, codes = Splits.of(splits), _codes(codes)
    splits.check_codes(codes)
    slots = np.where(splits.feature < 0, np.int32(0), np.int32(-1))
    path, no_assignment = rows.walk(splits, splits.visit(slots), slots, False), frozen(np.empty(0, np.int32))
    out = np.empty((len(splits.roots), codes.shape[1]), dtype=np.int32)

    def work(pieces):
        at = np.empty(rows.BLOCK, np.int64)
        for first, last in pieces:
            rows.leaves(codes, no_assignment, first, last, *path[:4], at, out)

    _in_threads(work, _pieces(codes.shape[1], _threads(n_jobs)), _threads(n_jobs))
    return out.T


def costs(order: Visit, n_rows: int, n_units: int, n_classes: int, n_candidates: int) -> dict[str, float]:
    return {"rows": 1.0, "bits": 0.0}


def _engine(engine, order, n_rows, n_units, n_classes, n_candidates) -> str:
    if engine == "auto":
        estimates = costs(order, n_rows, n_units, n_classes, n_candidates)
        return min(estimates, key=estimates.__getitem__)
    if engine not in ("rows", "bits"):
        raise ValueError(f"engine must be 'auto', 'rows' or 'bits', not {engine!r}")
    return engine


def _count(codes, labels, n_classes, splits, slots, features, masks, assignment, n_jobs, engine):
    """Class counts of each slot, (n_slots, C), and of its records inside each test, (n_slots, K, C)."""
    codes, labels, assignment, n_classes = _records(codes, labels, n_classes, splits, assignment)
    (n_slots, n_candidates), n_rows = features.shape, codes.shape[1]
    if features.size and (features.min() < 0 or features.max() >= len(codes)):
        raise ValueError(f"a candidate's feature is not one of the {len(codes)} features")
    slots = _slots(slots, splits, n_slots)
    order, assigned = splits.visit(slots), assignment.size > 0
    shapes = (n_slots, n_classes), (n_slots, n_candidates, n_classes)
    threads = _threads(n_jobs)
    chosen = _engine(engine, order, n_rows, 1 if assigned else len(splits.roots), n_classes, n_candidates)
    if chosen == "bits":
        plan = bits.program(splits, order, slots, len(codes), features, masks)
        padded = n_slots, n_candidates + -n_candidates % 4, n_classes + n_classes % 2

        def work(pieces):
            whole, ones, room = np.zeros(shapes[0], np.int64), np.zeros(padded, np.int64), bits.room(plan, n_classes - 1)
            for first, last in pieces:
                bits.count(codes, labels, n_classes, assignment, first, last, *plan, room, whole, ones)
            ones = ones[:, :n_candidates, :n_classes]
            for counts in (whole, ones):
                counts[..., 0] -= counts[..., 1:].sum(axis=-1)
            return whole, ones
    else:
        path = rows.walk(splits, order, slots, assigned)
        width = rows.pattern_width(path, n_candidates, n_classes)
        features, masks = frozen(features), frozen(masks)

        def work(pieces):
            whole, ones = (np.zeros(shape, dtype=np.int64) for shape in shapes)
            room = np.empty(rows.BLOCK, np.int64), rows.patterns(path, n_candidates, n_classes, width)
            for first, last in pieces:
                rows.count(codes, labels, assignment, first, last, *path, features, masks, width, *room, whole, ones)
            return whole, ones

    return _total(_in_threads(work, _pieces(n_rows, threads), threads))


def _codes(codes) -> np.ndarray:
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint8:
        raise TypeError(f"codes must be an array of uint8, not {getattr(codes, 'dtype', type(codes).__name__)}")
    if codes.ndim != 2 or not codes.flags.c_contiguous:
        raise ValueError("codes must be C-contiguous, one row per feature: np.ascontiguousarray(table.T)")
    return frozen(codes)


def _records(codes, labels, n_classes, splits, assignment):
    codes = _codes(codes)
    splits.check_codes(codes)
    n_rows = codes.shape[1]
    if not isinstance(n_classes, Integral) or not 1 <= n_classes <= 256:
        raise ValueError(f"n_classes must be a whole number from 1 to 256, not {n_classes!r}")
    if not isinstance(labels, np.ndarray) or labels.dtype != np.uint8:
        raise TypeError(f"labels must be an array of uint8, not {getattr(labels, 'dtype', type(labels).__name__)}")
    if labels.shape != (n_rows,):
        raise ValueError(f"labels has shape {labels.shape}, but codes has {n_rows} rows")
    if n_rows and labels.max() >= n_classes:
        raise ValueError(f"label {labels.max()} is not below n_classes = {n_classes}")
    if assignment is None:
        assignment = np.empty(0, dtype=np.int32)
    elif not isinstance(assignment, np.ndarray) or assignment.dtype.kind not in "iu":
        raise TypeError("assignment must be an array of integers, or None")
    elif assignment.shape != (n_rows,):
        raise ValueError(f"assignment has shape {assignment.shape}, but codes has {n_rows} rows")
    elif assignment.dtype != np.int32:
        assignment = np.clip(assignment, 0 if assignment.dtype.kind == "u" else -1, len(splits.roots)).astype(np.int32)
    return codes, frozen(labels), frozen(assignment), int(n_classes)


def _slots(slots, splits: Splits, n_slots: int) -> np.ndarray:
    if not isinstance(slots, np.ndarray) or slots.dtype != np.int32 or slots.shape != (splits.n_nodes,):
        raise TypeError(f"slots must be an int32 array of shape ({splits.n_nodes},), one slot or -1 per node")
    if slots.size and (slots.min() < -1 or slots.max() >= n_slots):
        raise ValueError(f"slots must be from -1 to {n_slots - 1}")
    if (splits.feature[slots >= 0] >= 0).any():
        raise ValueError("a node that splits has a slot; only nodes without children can be counted")
    return frozen(slots)


def _threads(n_jobs) -> int:
    if n_jobs == -1:
        return os.cpu_count() or 1
    if not isinstance(n_jobs, Integral) or n_jobs < 1:
        raise ValueError(f"n_jobs must be a positive number of threads, or -1 for all cores, not {n_jobs!r}")
    return int(n_jobs)


def _pieces(n_rows: int, threads: int) -> list[tuple[int, int]]:
    """Ranges of rows, some four per thread, so that a thread that is held up has less to do."""
    size = min(-(-n_rows // (4 * threads * _PIECE)), 256) * _PIECE or _PIECE
    return [(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def _in_threads(work, pieces: list, threads: int) -> list:
    """Result of ``work`` in each thread; the threads draw their pieces from one iterator.  The kernels release the GIL."""
    threads = max(1, min(threads, len(pieces)))
    shared = iter(pieces)
    if threads == 1:
        return [work(shared)]
    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(work, shared) for _ in range(threads)]]


def _total(partials: list) -> tuple[np.ndarray, ...]:
    total, *others = partials
    for other in others:
        for mine, more in zip(total, other, strict=True):
            mine += more
    return total
