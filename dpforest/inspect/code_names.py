"""The public codes of a schema in words: thresholds in a feature's own units, categories by name."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from dpforest.messages import plain, shown
from dpforest.schema import Schema

__all__ = ["Words"]

_MANY = 3  # categories, from which on what is left out is said where that is shorter


class Words:
    """What codes are called.

    Parameters
    ----------
    schema : Schema
    n_bins : int
    decimals : int or None
        Digits after the point; None for six significant ones.
    """

    def __init__(self, schema: Schema, n_bins: int, decimals: int | None = None) -> None:
        if decimals is not None and (type(decimals) is not int or not 0 <= decimals <= 15):
            raise ValueError(f"decimals must be a whole number from 0 to 15, or None, not {shown(decimals)}")
        self._schema, self._n_bins, self._decimals = schema, n_bins, decimals
        self.sizes = schema.cardinalities(n_bins).tolist()
        self.names = [plain(name) for name in schema.columns]

    def number(self, value: float) -> str:
        """A number as text."""
        if self._decimals is not None:
            return f"{value:.{self._decimals}f}"
        return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"

    def outcome(self, place: int) -> str:
        """The name of a class."""
        assert self._schema.classes is not None
        labels = self._schema.classes.tolist()
        alike = len(set(map(str, labels))) < len(labels)  # 1 and "1"
        return plain(repr(labels[place]) if alike else labels[place])

    def edges(self, feature: int) -> np.ndarray | None:
        """Edges of the bins of a numeric feature; None of a categorical one."""
        name = self._schema.columns[feature]
        return self._schema.edges(name, self._n_bins) if name in self._schema.numeric else None

    def condition(self, feature: int, inside: np.ndarray, among: np.ndarray | None = None) -> str:
        """The condition on a record: the feature's name, and which of its codes are meant.

        Parameters
        ----------
        feature : int
        inside, among : ndarray of bool, shape (n_codes,)
            The codes that are meant, and those that can occur; None for all.
        """
        return f"{self.names[feature]} {self.values(feature, inside, among)}"

    def value(self, feature: int, code: int) -> str:
        """The words for one code."""
        return self.values(feature, np.arange(self.sizes[feature]) == code)

    def values(self, feature: int, inside: np.ndarray, among: np.ndarray | None = None) -> str:
        """The same without the feature's name."""
        among = np.ones(self.sizes[feature], dtype=bool) if among is None else among
        if (inside | ~among).all():
            return "is anything"
        if not (inside & among).any():
            return "is nothing that can occur"
        edges, binned = self.edges(feature), self._schema.missing == "bin"
        if edges is None:
            return self._categories(feature, inside, among)
        bins, absent = np.flatnonzero(among[: len(edges) - 1]), binned and bool(inside[-1])
        if bins.size and inside[bins].all():
            return "is not missing"
        whole = self._schema.columns[feature] in self._schema.whole
        said = self._intervals(edges, bins, inside[bins], whole)
        if absent and among[-1]:
            said.append("missing" if said else "is missing")
        return " or ".join(said)

    def _categories(self, feature: int, inside: np.ndarray, among: np.ndarray) -> str:
        declared = [repr(value) for value in self._schema.categorical[self._schema.columns[feature]]]
        named = [plain(name) for name in declared] + ["missing"] * (self._schema.missing == "bin")
        meant, others = (np.flatnonzero(part & among) for part in (inside, ~inside))
        if [named[code] for code in others] == ["missing"]:
            return "is not missing"
        if len(others) < len(meant) and len(meant) > _MANY:
            return f"not in {{{', '.join(named[code] for code in others)}}}"
        if len(meant) == 1:
            (only,) = (named[code] for code in meant)
            return "is missing" if only == "missing" else f"= {only}"
        return f"in {{{', '.join(named[code] for code in meant)}}}"

    def _intervals(self, edges: np.ndarray, bins: np.ndarray, inside: np.ndarray, whole: bool) -> list[str]:
        """Intervals of the bins that are inside, which stand in runs among those that can occur."""
        turns = [0, *(np.flatnonzero(np.diff(inside.astype(int))) + 1).tolist(), len(bins)]
        said = []
        for start, stop in pairwise(turns):
            if stop == start or not inside[start]:
                continue
            low, high = self.number(edges[bins[start]]), self.number(edges[bins[stop - 1] + 1])
            if whole and (numbers := _whole(edges, bins[start], bins[stop - 1])):
                said.append(_among(*numbers, start == 0, stop == len(bins)))
            elif start == 0:
                said.append(f"< {high}")
            elif stop == len(bins):
                said.append(f">= {low}")
            else:
                said.append(f"in [{low}, {high})")
        return said


def _whole(edges: np.ndarray, first: int, last: int) -> tuple[int, int] | None:
    """The least and the largest whole number in these bins; None where there is none."""
    low, high = math.ceil(edges[first]), math.ceil(edges[last + 1]) - 1
    if last + 2 == len(edges):  # the upper bound itself is in the last bin
        high = math.floor(edges[-1])
    return (low, high) if low <= high else None


def _among(low: int, high: int, first: bool, last: bool) -> str:
    """Whole numbers in words; the first and the last ones that can occur have one end."""
    return f"= {low}" if low == high else f"<= {high}" if first else f">= {low}" if last else f"{low} to {high}"
