"""The public shape of the trees, as the kernels read it, and the order in which the bit engine visits their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpforest.counting.compiled import kernel

_DTYPES = {
    "feature": np.int32,
    "first_child": np.int32,
    "arity": np.int32,
    "multiway": np.bool_,
    "mask": np.uint64,
    "roots": np.int32,
}


def frozen(array: np.ndarray) -> np.ndarray:
    """A C-contiguous read-only view (a copy only where the layout asks for it).

    Numba compiles a kernel again for writable and for read-only arrays; with every input read-only, once is enough.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def kind(thing) -> str:
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

    def __post_init__(self):
        for name, dtype in _DTYPES.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != dtype:
                raise TypeError(f"splits.{name} must be an array of {np.dtype(dtype)}, not {kind(array)}")
            n = array.shape[0] if name == "roots" and array.ndim else len(self.feature)
            if array.shape != ((n, 4) if name == "mask" else (n,)):
                raise ValueError(f"splits.{name} has shape {array.shape}; there are {len(self.feature)} nodes")
            object.__setattr__(self, name, frozen(array))
        self._check()

    @classmethod
    def of(cls, splits) -> Splits:
        """The same six arrays of any object that has them, checked."""
        return splits if isinstance(splits, cls) else cls(*(getattr(splits, name) for name in _DTYPES))

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

    def visit(self, slots: np.ndarray) -> Visit:
        """Depth-first order of the nodes with a slot (not -1) and their ancestors.

        Children come after their parent in the table, so one backward sweep gives the sizes and one forward sweep
        the places.
        """
        size, place = np.zeros(self.n_nodes, np.int32), np.full(self.n_nodes, -1, np.int32)
        _measure(self.feature, self.first_child, self.arity, frozen(slots), size)
        start = np.concatenate([[0], np.cumsum(size[self.roots])]).astype(np.int32)
        roots = np.flatnonzero(size[self.roots])
        place[self.roots[roots]] = start[roots]
        node, depth, parent, after = np.zeros((4, start[-1]), np.int32)
        parent[start[roots]] = -1
        _arrange(self.feature, self.first_child, self.arity, size, place, node, depth, parent, after)
        return Visit(node, depth, parent, after, start)

    def check_codes(self, codes: np.ndarray) -> None:
        """Raise ValueError where a record has no child to go to; one pass over the columns that need it."""
        top = int(self.feature.max(initial=-1))
        if top >= len(codes):
            raise ValueError(f"a node splits on feature {top}; codes has {len(codes)} features")
        multiway = np.flatnonzero((self.feature >= 0) & self.multiway)
        room = np.full(len(codes), 256)
        np.minimum.at(room, self.feature[multiway], self.arity[multiway])
        check_below(codes, room, "children in its smallest multiway node")


def check_below(codes: np.ndarray, room: np.ndarray, what: str) -> None:
    """Raise ValueError where a column holds a code that is not below its ``room``; a column with 256 is not read."""
    for feature in np.flatnonzero(room < 256):
        top = int(codes[feature].max(initial=0)) if codes.shape[1] else -1
        if top >= room[feature]:
            raise ValueError(f"feature {feature} has code {top}, but only {room[feature]} {what}")


class Visit(NamedTuple):
    """The wanted nodes, and those above them, in depth-first order, tree by tree; one entry per node."""

    node: np.ndarray
    depth: np.ndarray
    parent: np.ndarray  # index of the parent in this order, -1 for a root
    after: np.ndarray  # where to go on when no row reaches the node
    start: np.ndarray  # shape (n_trees + 1,): the entries of tree t are start[t], ..., start[t + 1] - 1


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
