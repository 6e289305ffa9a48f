"""Public tables over one feature or several crossed ones: which cell a record is in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest.structure.splits import kind

__all__ = ["MOST_FEATURES", "Crossings"]

MOST_FEATURES = 3  # of one table
_CODES = 256


@dataclass(frozen=True, eq=False)
class Crossings:
    """Public tables, each over one to three features whose codes are put into groups.

    A record's cell in a table is the mixed-radix number of its groups, the first feature counting most.

    Attributes
    ----------
    features : ndarray of int32, shape (n_tables, 3)
        The features of each table, one at least; -1 where it has no more.
    groups : ndarray of uint8, shape (n_tables, 3, 256)
        The group of each code.
    sizes : ndarray of int64, shape (n_tables, 3)
        Groups of each feature; 1 where there is no feature.
    """

    features: np.ndarray
    groups: np.ndarray
    sizes: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.features)
        wanted = {"features": (n, MOST_FEATURES), "groups": (n, MOST_FEATURES, _CODES), "sizes": (n, MOST_FEATURES)}
        for (name, shape), dtype in zip(wanted.items(), (np.int32, np.uint8, np.int64), strict=True):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
                raise TypeError(f"{name} must be an array of {np.dtype(dtype)} of shape {shape}, not {kind(array)}")
        absent = self.features < 0
        if (self.features[:, 0] < 0).any() or (self.sizes[absent] != 1).any() or (self.sizes < 1).any():
            raise ValueError("a table has one feature at least, and one group where it has no feature")
        if (self.groups >= self.sizes[:, :, None]).any():
            raise ValueError("a code is put into a group beyond the number of groups")

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, chosen: int | slice) -> Crossings:
        part = slice(chosen, chosen + 1) if isinstance(chosen, int) else chosen
        return Crossings(self.features[part], self.groups[part], self.sizes[part])

    @property
    def n_cells(self) -> np.ndarray:
        """How many cells each table has, int64, shape (n_tables,)."""
        return self.sizes.prod(axis=1)

    @property
    def starts(self) -> np.ndarray:
        """Where the cells of each table begin, and where the last one ends, int64, shape (n_tables + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_cells)]).astype(np.int64)

    @classmethod
    def of(cls, tables: Iterable[Sequence[tuple[int, np.ndarray]]]) -> Crossings:
        """From the features of each table with the group of each of their codes, the groups being 0, 1, ... ."""
        tables = list(tables)
        features = np.full((len(tables), MOST_FEATURES), -1, dtype=np.int32)
        groups = np.zeros((len(tables), MOST_FEATURES, _CODES), dtype=np.uint8)
        sizes = np.ones((len(tables), MOST_FEATURES), dtype=np.int64)
        for number, table in enumerate(tables):
            for place, (feature, group) in enumerate(table):
                features[number, place] = feature
                groups[number, place, : len(group)] = group
                sizes[number, place] = int(np.max(group)) + 1
        return cls(features, groups, sizes)
