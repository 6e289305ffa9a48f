"""The public shape of the trees, as a walk down them reads it, and what every walk demands of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

__all__ = ["FEW", "SHAPE", "Splits", "check_below", "check_codes", "check_values", "frozen", "kind"]

#: The arrays that say how the nodes of trees hang together, with their types.
SHAPE: dict[str, type] = {
    "feature": np.int32,
    "first_child": np.int32,
    "arity": np.int32,
    "multiway": np.bool_,
    "mask": np.uint64,
    "roots": np.int32,
}
#: Trees of so few nodes are kept: an audit grows the same ones thousands of times.
FEW = 64


def frozen(array: np.ndarray) -> np.ndarray:
    """A C-contiguous read-only view (a copy only where the layout asks for it).

    Numba compiles a kernel again for writable and for read-only arrays; with every input read-only, once is enough.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def kind(thing: object) -> str:
    """What an argument is instead of the array it should be."""
    return f"an array of {thing.dtype}" if isinstance(thing, np.ndarray) else type(thing).__name__


@dataclass(frozen=True, eq=False)
class Splits:
    """The splits of one or more trees in one table of nodes; the children of a node stand side by side, after it.

    Parameters
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Feature that the node splits on; -1 where it does not split (yet).
    first_child, arity : ndarray of int32, shape (n_nodes,)
        The node's children are ``first_child``, ..., ``first_child + arity - 1``; read only where it splits.
    multiway : ndarray of bool, shape (n_nodes,)
        If true, code c of the feature goes to child c; else to the child that bit c of the mask gives.
    mask : ndarray of uint64, shape (n_nodes, 4)
        256 bits, one per code, the lowest bit of the first word for code 0.
    roots : ndarray of int32, shape (n_trees,)

    Raises
    ------
    TypeError, ValueError
        When an array has another type or shape, or when the nodes are not a forest: every node must be a root or
        the child of exactly one earlier node.
    """

    feature: np.ndarray
    first_child: np.ndarray
    arity: np.ndarray
    multiway: np.ndarray
    mask: np.ndarray
    roots: np.ndarray

    def __post_init__(self) -> None:
        for name, dtype in SHAPE.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != dtype:
                raise TypeError(f"splits.{name} must be an array of {np.dtype(dtype)}, not {kind(array)}")
            n = array.shape[0] if name == "roots" and array.ndim else len(self.feature)
            if array.shape != ((n, 4) if name == "mask" else (n,)):
                raise ValueError(f"splits.{name} has shape {array.shape}; there are {len(self.feature)} nodes")
            object.__setattr__(self, name, frozen(array))
        self._check()

    @classmethod
    def of(cls, splits: Any) -> Splits:
        """The same six arrays of any object that has them, checked."""
        if isinstance(splits, cls):
            return splits
        arrays = {name: getattr(splits, name) for name in SHAPE}
        if all(_few(array, SHAPE[name]) for name, array in arrays.items()):
            return _kept(*((array.shape, array.tobytes()) for array in arrays.values()))
        return cls(**arrays)

    @classmethod
    def join(cls, parts: Sequence[Any]) -> Splits:
        """The trees of several splits, or of objects that have their arrays, one after the other."""
        before = np.cumsum([0, *(len(part.feature) for part in parts[:-1])]).astype(np.int32)
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in SHAPE}
        children = [np.where(part.feature >= 0, part.first_child + n, 0) for part, n in zip(parts, before, strict=True)]
        arrays["first_child"] = np.concatenate(children)
        arrays["roots"] = np.concatenate([part.roots + n for part, n in zip(parts, before, strict=True)])
        return cls(**arrays)

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    def _check(self) -> None:
        n, inner = self.n_nodes, np.flatnonzero(self.feature >= 0)
        first, last = self.first_child[inner].astype(np.int64), self.arity[inner].astype(np.int64)
        last = first + last
        if (self.feature < -1).any():
            raise ValueError("splits.feature must be -1 or the number of a feature")
        if (first <= inner).any() or (last <= first).any() or (last > n).any():
            raise ValueError("the children of a node must be nodes of the table that come after it")
        if (self.arity[inner][~self.multiway[inner]] != 2).any():
            raise ValueError("a node that is not multiway must have two children")
        if ((self.roots < 0) | (self.roots >= n)).any():
            raise ValueError("splits.roots must be nodes of the table")
        edges = np.bincount(first, minlength=n + 1) - np.bincount(last, minlength=n + 1)
        parents = np.cumsum(edges)[:n] + np.bincount(self.roots, minlength=n)
        if (parents != 1).any():
            raise ValueError("every node must be a root or the child of exactly one node")

    def check_codes(self, codes: np.ndarray) -> None:
        """Raise ValueError where a record has no child to go to; one pass over the columns that need it."""
        room = self._room
        if len(room) > len(codes):
            raise ValueError(f"a node splits on feature {len(room) - 1}; codes has {len(codes)} features")
        check_below(codes, room, "children in its smallest multiway node")

    @cached_property
    def _room(self) -> np.ndarray:
        """Children of the smallest multiway node of each feature, up to the last one split on; 256 for none."""
        room = np.full(int(self.feature.max(initial=-1)) + 1, 256)
        multiway = np.flatnonzero((self.feature >= 0) & self.multiway)
        np.minimum.at(room, self.feature[multiway], self.arity[multiway])
        return room


def _few(array: object, dtype: type) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim > 0 and len(array) <= FEW


@lru_cache(maxsize=1 << 12)
def _kept(*arrays: tuple[tuple[int, ...], bytes]) -> Splits:
    """Splits from the shape and the bytes of each array, checked once."""
    made = (np.ndarray(shape, dtype, raw) for dtype, (shape, raw) in zip(SHAPE.values(), arrays, strict=True))
    return Splits(*made)


def check_codes(codes: np.ndarray) -> np.ndarray:
    """The table of codes, read-only."""
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint8:
        raise TypeError(f"codes must be an array of uint8, not {kind(codes)}")
    if codes.ndim != 2 or not codes.flags.c_contiguous:
        raise ValueError("codes must be C-contiguous, one row per feature: np.ascontiguousarray(table.T)")
    return frozen(codes)


def check_values(codes: np.ndarray, splits: Splits, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes, read-only, and the values; raise TypeError or ValueError where they are not what a walk needs."""
    codes = check_codes(codes)
    splits.check_codes(codes)
    shape = f"({splits.n_nodes}, n_outputs)"
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.ndim != 2:
        raise TypeError(f"values must be a float64 array of shape {shape}, not {kind(values)}")
    if len(values) != splits.n_nodes:
        raise ValueError(f"values has shape {values.shape}, not {shape}")
    return codes, values


def check_below(codes: np.ndarray, room: np.ndarray, what: str) -> None:
    """Raise ValueError where a column holds a code that is not below its ``room``; a column with 256 is not read."""
    for feature in np.flatnonzero(room < 256):
        top = int(codes[feature].max(initial=0)) if codes.shape[1] else -1
        if top >= room[feature]:
            raise ValueError(f"feature {feature} has code {top}, but only {room[feature]} {what}")
