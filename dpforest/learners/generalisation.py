"""A table that is specialised from the top down: groups of records, and the cut of each feature that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpforest.learners.growth import Frontier
from dpforest.learners.run import Run
from dpforest.schema import Schema, Value, taxonomies

__all__ = ["Generalisation", "Specialisation", "most_specialisations"]


class Specialisation(NamedTuple):
    """A value of a feature's cut, by its place, and the values that would take its place."""

    feature: int
    place: int
    parts: tuple[Value, ...]


def most_specialisations(roots: Mapping[str, Value], sizes: np.ndarray) -> int:
    """How many specialisations there are from the most general table to the most special one.

    ``roots`` are the taxonomies of the categorical columns, ``sizes`` the codes of the numeric ones.
    """

    def inner(value: Value) -> int:
        return bool(value.children) + sum(map(inner, value.children))

    return sum(map(inner, roots.values())) + int((sizes - 1).sum())


class Generalisation:
    """The groups of records that cannot be told apart, and the cut of each feature, which is the same for all groups.

    Parameters
    ----------
    run : Run
        With one tree planted: its leaves are the groups.
    declared : mapping or None
        Taxonomies, see :func:`dpforest.schema.taxonomies`.

    Attributes
    ----------
    groups : Frontier
    cuts : list of dict of int to Value
        By feature, the values that are told apart, by their places.
    cells : ndarray of int, shape (n_groups, n_features)
        The place of each group's value in the cut of each feature.
    """

    def __init__(self, run: Run, declared: Mapping | None) -> None:
        roots, self._run = taxonomies(run.schema, declared), run
        self.groups = run.frontier
        self.cuts = [
            {0: roots.get(name, interval(0, int(size)))}
            for name, size in zip(run.schema.columns, run.sizes, strict=True)
        ]
        self.cells = np.zeros((1, len(self.cuts)), dtype=np.int64)
        self._size = run.growth.n_nodes

    def candidates(self, feature: int, place: int) -> list[Specialisation]:
        """Those of one value: its children in the taxonomy, or the two sides of each edge within an interval."""
        value = self.cuts[feature][place]
        if not self._run.ordered[feature]:
            return [Specialisation(feature, place, value.children)] if value.children else []
        low, high = value.codes[0], value.codes[-1] + 1
        return [Specialisation(feature, place, (interval(low, at), interval(at, high))) for at in range(low + 1, high)]

    def all_candidates(self) -> Iterator[Specialisation]:
        """Those of every value of every cut."""
        for feature, cut in enumerate(self.cuts):
            for place in cut:
                yield from self.candidates(feature, place)

    def fits(self, chosen: Specialisation) -> bool:
        """Whether the forest has room for what a specialisation makes of the groups, within ``max_nodes``."""
        more = 2 * (len(chosen.parts) - 1) * int((self.cells[:, chosen.feature] == chosen.place).sum())
        return self._size + more <= self._run.growth.max_nodes

    def specialise(self, chosen: Specialisation) -> list[int]:
        """Divide all groups that have the value; returns the places of the values that come in its place."""
        feature, place, parts = chosen
        cut, divided = self.cuts[feature], self.cells[:, feature] == place
        del cut[place]
        places = list(range(max([place, *cut]) + 1, max([place, *cut]) + 1 + len(parts)))
        cut.update(zip(places, parts, strict=True))
        made = list(self._divide(self.groups[divided], feature, parts))
        cells = np.tile(self.cells[divided], (len(parts), 1))
        cells[:, feature] = np.repeat(places, divided.sum())
        self.groups = Frontier.join([self.groups[~divided], *made])
        self.cells = np.concatenate([self.cells[~divided], cells])
        self._size = self._run.growth.n_nodes
        return places

    def _divide(self, nodes: Frontier, feature: int, parts: Sequence[Value]) -> Iterator[Frontier]:
        """The nodes of each part, by splits in two."""
        if len(parts) == 1:
            yield nodes
            return
        half = len(parts) // 2
        bits = np.zeros(256, dtype=bool)
        bits[[code for part in parts[half:] for code in part.codes]] = True
        mask = np.packbits(bits, bitorder="little").view(np.uint64)
        self._run.divide(nodes, np.full(len(nodes), feature), np.tile(mask, (len(nodes), 1)))
        below = self._run.frontier
        yield from self._divide(below[0::2], feature, parts[:half])
        yield from self._divide(below[1::2], feature, parts[half:])


def interval(low: int, high: int) -> Value:
    """The codes from ``low`` to below ``high`` of a numeric feature."""
    return Value("", tuple(range(low, high)))


def asked(candidates: Sequence[Specialisation], outside: int) -> tuple[np.ndarray, np.ndarray]:
    """What the curator is asked: features (K,), and the child of each code (K, 256), ``outside`` for other values."""
    children = np.full((len(candidates), 256), outside, dtype=np.int64)
    for row, candidate in zip(children, candidates, strict=True):
        for number, part in enumerate(candidate.parts):
            row[list(part.codes)] = number
    return np.array([candidate.feature for candidate in candidates]), children


def sizes_of_numbers(schema: Schema, n_bins: int) -> np.ndarray:
    """Codes of each numeric column."""
    numeric = np.array([name in schema.numeric for name in schema.columns])
    return schema.cardinalities(n_bins)[numeric]
