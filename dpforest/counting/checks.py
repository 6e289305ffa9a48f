"""What every query demands of its input; the kernels check nothing."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from dpforest.messages import shown
from dpforest.structure.splits import Splits, check_codes, frozen, kind


def check_classes(n_classes: object) -> int:
    """The number of classes."""
    if not isinstance(n_classes, Integral) or not 1 <= int(n_classes) <= 256:
        raise ValueError(f"n_classes must be a whole number from 1 to 256, not {shown(n_classes)}")
    return int(n_classes)


def check_total(n_rows: int, most: int) -> None:
    """Raise ValueError where the largest possible sum is no int64."""
    if n_rows * most >= 1 << 63:
        raise ValueError(
            f"sums of {n_rows} records of up to {most} each may not fit 64 bits: count parts of the records and add up "
            "in Python integers, or use smaller entries"
        )


def check_records(
    codes: np.ndarray, labels: np.ndarray, table: np.ndarray | int, splits: Splits, assignment: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The records, read-only: codes, labels, assignment (int32, empty for None).

    ``table`` is what the labels stand for: a checked table, or the number of classes.
    """
    codes = check_codes(codes)
    splits.check_codes(codes)
    n_rows = codes.shape[1]
    if not isinstance(labels, np.ndarray) or labels.dtype != np.uint8:
        raise TypeError(f"labels must be an array of uint8, not {kind(labels)}")
    if labels.shape != (n_rows,):
        raise ValueError(f"labels has shape {labels.shape}, but codes has {n_rows} rows")
    if isinstance(table, int):
        what = f"below n_classes = {table}"
    else:
        check_total(n_rows, int(table.max()))
        what, table = f"one of the {len(table)} rows of the table", len(table)
    if n_rows and labels.max() >= table:
        raise ValueError(f"label {labels.max()} is not {what}")
    if assignment is None:
        assignment = np.empty(0, dtype=np.int32)
    elif not isinstance(assignment, np.ndarray) or assignment.dtype.kind not in "iu":
        raise TypeError("assignment must be an array of integers, or None")
    elif assignment.shape != (n_rows,):
        raise ValueError(f"assignment has shape {assignment.shape}, but codes has {n_rows} rows")
    elif assignment.dtype != np.int32:
        assignment = np.clip(assignment, 0 if assignment.dtype.kind == "u" else -1, len(splits.roots)).astype(np.int32)
    return codes, frozen(labels), frozen(assignment)


def check_slots(slots: np.ndarray, splits: Splits, n_slots: int) -> np.ndarray:
    """The slots, read-only."""
    if not isinstance(slots, np.ndarray) or slots.dtype != np.int32 or slots.shape != (splits.n_nodes,):
        raise TypeError(f"slots must be an int32 array of shape ({splits.n_nodes},), one slot or -1 per node")
    if slots.size and (slots.min() < -1 or slots.max() >= n_slots):
        raise ValueError(f"slots must be from -1 to {n_slots - 1}")
    if (splits.feature[slots >= 0] >= 0).any():
        raise ValueError("a node that splits has a slot; only nodes without children can be counted")
    return frozen(slots)


def check_table(table: np.ndarray) -> np.ndarray:
    """What a record of each label adds to each sum, read-only."""
    if not isinstance(table, np.ndarray) or table.dtype != np.int64:
        raise TypeError(f"table must be an array of int64, not {kind(table)}")
    if table.ndim != 2 or not 1 <= len(table) <= 256 or table.shape[1] < 1:
        raise ValueError(f"table must have shape (n_codes, Q) with n_codes from 1 to 256, not {table.shape}")
    if table.min() < 0 or table.max() >= 1 << 31:
        raise ValueError(f"table must hold whole numbers from 0 to 2**31 - 1, not {table.min()} to {table.max()}")
    return frozen(table)
