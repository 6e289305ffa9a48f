"""A generalised table: what DiffGen releases, to be read, and to train any classifier on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpforest import storage
from dpforest.models.forest import Forest, ForestClassifier
from dpforest.schema import MISSING, Schema, Value, taxonomies

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GeneralisedTable", "GeneralisingClassifier"]


class GeneralisedTable:
    """The leaves of a tree as the rows of a table: the value that each has in each column, and its counts.

    Parameters
    ----------
    forest : Forest
        One tree of splits in two, whose leaves hold noisy class counts.
    schema : Schema
    n_bins : int
    roots : mapping of str to Value
        Taxonomies of the categorical columns, which name values: :func:`dpforest.schema.taxonomies`.

    Attributes
    ----------
    leaves : ndarray of int, shape (n_groups,)
        Node ids.
    counts : ndarray of int64, shape (n_groups, n_classes)
        Noisy class counts, negative ones taken as 0; they are whole numbers as released.
    columns : list of str
        Names of the numbers by which a classifier sees a group: of a numeric column the middle of its interval, of a
        categorical one an indicator of each value that the table tells apart.

    Guarantee
    ---------
    That of the forest: all of this is computed from it and from what is public (:prf:ref:`thm-post-processing`).
    """

    def __init__(self, forest: Forest, schema: Schema, n_bins: int, roots: Mapping[str, Value]) -> None:
        self._forest, self._schema, self._n_bins, self._roots = forest, schema, n_bins, roots
        self.leaves = np.flatnonzero(forest.feature < 0)
        self.counts = np.maximum(forest.values[self.leaves], 0)
        inside, ends = self._inside()[self.leaves], np.cumsum(schema.cardinalities(n_bins))
        self._cells = {}  # by column, the codes of each of its different values, and the place of each group's value
        for name, cell in zip(schema.columns, np.split(inside, ends[:-1], axis=1), strict=True):
            sets, place = np.unique(cell, axis=0, return_inverse=True)
            self._cells[name] = [np.flatnonzero(members).tolist() for members in sets], place.ravel()
        blocks = [self._numbers(name) for name in schema.columns]
        self._rows = np.concatenate([block for block, _ in blocks], axis=1)
        self.columns = [number for _, numbers in blocks for number in numbers]

    def to_frame(self) -> pd.DataFrame:
        """One row for each group: an interval or a value of a taxonomy in each column, then the class counts."""
        import pandas as pd

        values = {
            name: [self._label(name, sets[at]) for at in place.tolist()] for name, (sets, place) in self._cells.items()
        }
        assert self._schema.classes is not None
        counts = zip(self._schema.classes.tolist(), self.counts.T, strict=True)
        return pd.DataFrame({**values, **{f"count of {label}": column for label, column in counts}})

    def records(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What a classifier is trained on: rows, labels and weights, one for each group and class of a positive count.

        Where no count is positive there is every group with every class, of weight 1.

        Returns
        -------
        X : ndarray of float64, shape (n, n_columns)
        y : ndarray, shape (n,)
        sample_weight : ndarray of float64, shape (n,)
        """
        assert self._schema.classes is not None
        counts = self.counts if self.counts.any() else np.ones_like(self.counts)
        group, label = np.nonzero(counts)
        return self._rows[group], self._schema.classes[label], counts[group, label].astype(float)

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """The rows of the groups that records of these ``codes`` are in: float64, shape (n_records, n_columns)."""
        values = np.zeros((self._forest.n_nodes, len(self.columns)))
        values[self.leaves] = self._rows
        return self._forest.sum_leaves(codes, values=values)

    def _inside(self) -> np.ndarray:
        """Which codes of the columns, one after the other, a record of each node may have."""
        forest, sizes = self._forest, self._schema.cardinalities(self._n_bins)
        starts = np.cumsum(sizes) - sizes
        bits = np.unpackbits(forest.mask.view(np.uint8), axis=1, bitorder="little").astype(bool)
        inside = np.ones((forest.n_nodes, int(sizes.sum())), dtype=bool)
        for node in np.flatnonzero(forest.feature >= 0):  # children come after their parents
            start, size = starts[forest.feature[node]], sizes[forest.feature[node]]
            for number in (0, 1):
                child = forest.first_child[node] + number
                inside[child] = inside[node]
                inside[child, start : start + size] &= bits[node, :size] == number
        return inside

    def _numbers(self, name: str) -> tuple[np.ndarray, list[str]]:
        sets, place = self._cells[name]
        if name not in self._schema.numeric:
            return np.eye(len(sets))[place], [f"{name}: {self._label(name, members)}" for members in sets]
        edges = self._schema.edges(name, self._n_bins)
        middles = []
        for members in sets:
            bins = [code for code in members if code < self._n_bins] or range(self._n_bins)
            middles.append((edges[bins[0]] + edges[bins[-1] + 1]) / 2)
        return np.array(middles)[place][:, None], [name]

    def _label(self, name: str, members: list[int]) -> str:
        if name in self._schema.numeric:
            edges, bins = self._schema.edges(name, self._n_bins), [code for code in members if code < self._n_bins]
            end = "]" if bins and bins[-1] == self._n_bins - 1 else ")"
            said = [f"[{edges[bins[0]]:g}, {edges[bins[-1] + 1]:g}{end}"] if bins else []
            return " or ".join(said + [MISSING] * (len(bins) < len(members)))
        return _named(self._roots[name], tuple(members)).label


def _named(value: Value, members: tuple[int, ...]) -> Value:
    """The value of a taxonomy that has these codes."""
    while value.codes != members:
        value = next(child for child in value.children if set(members) <= set(child.codes))
    return value


class GeneralisingClassifier(ForestClassifier):
    """Classification by the counts of a record's group, and what else a generalised table is for."""

    taxonomies: Mapping | None

    def table(self) -> GeneralisedTable:
        """The released table, for reading and for training."""
        return GeneralisedTable(self._released(), self.schema_, self.n_bins_, taxonomies(self.schema_, self.taxonomies))

    def generalise(self, X: Any) -> np.ndarray:
        """Records as the numbers of their groups, in the columns of :meth:`GeneralisedTable.records`."""
        return self.table().encode(self._codes(X))

    def save_table(self, path: str | os.PathLike[str], *, seeded: bool = False) -> None:
        """Write the table as a CSV file; ``seeded`` and the errors are those of ``save``."""
        self.to_dict(seeded=seeded)
        storage.write(path, self.table().to_frame().to_csv(index=False))
