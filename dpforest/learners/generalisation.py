"""A table that is specialised from the top down: groups of records, and the cut of each feature that they share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np

from dpforest import scores
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.growth import Frontier
from dpforest.learners.parameters import CAP, AsPublished, Auto, Either, Integer, OneOf
from dpforest.learners.run import Run, Selection
from dpforest.mechanisms import SELECTIONS
from dpforest.models.generalised import GeneralisingClassifier
from dpforest.schema import Schema, Value, taxonomies

__all__ = [
    "Generalisation",
    "PrivateTable",
    "Specialisation",
    "choose_by_table",
    "most_specialisations",
    "specialise_values",
]

#: The number of specialisations that "auto" means, where the schema has so many.
SPECIALISATIONS = 10
MECHANISMS = OneOf("auto", *SELECTIONS)
CRITERIA = {score.name: score for score in (scores.majority, scores.gini, scores.information_gain)}


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
    """Groups of records that cannot be distinguished, and the cut of each feature, which is the same for all groups.

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
        By feature, the values that are distinguished, by their places.
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
        self._run.split_binary(nodes, np.full(len(nodes), feature), np.tile(mask, (len(nodes), 1)))
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


class PrivateTable(PrivateEstimator, GeneralisingClassifier):
    """Base of the learners that publish a generalised table: a paper adds how its values are made special."""

    specialisations: Annotated[
        int | str,
        Either("auto", rule=Integer(0)),
        "Values that are made special, one after the other; auto is 10, or as many as there are.",
    ] = "auto"
    taxonomies: Annotated[
        Mapping | None,
        """By categorical column, its public taxonomy: a mapping from the name of each value to what is below it, a
        mapping again or a list of categories.  A column that is not named has all of its categories below the root.""",
    ] = None
    selection: Annotated[
        str,
        MECHANISMS,
        Auto(published="exponential", proved="permute-and-flip"),
        AsPublished(),
        "Mechanism of the specialisations.",
    ] = "auto"
    criterion: Annotated[
        str,
        OneOf(CRITERIA),
        AsPublished(),
        """Score of a specialisation: ``"majority"`` is the paper's *Max*; information gain, here the paper's times the
        number of records, needs ``n_max``.""",
    ] = "majority"
    calibration: Annotated[
        Literal["auto", "range", "sensitivity"],
        Auto(published="sensitivity", proved="range"),
        AsPublished(),
        "Rate ``epsilon / R`` or, as in the paper, ``epsilon / (2 sensitivity)``.",
    ] = "auto"
    n_max: Annotated[float, CAP, AsPublished(), "Public cap on the number of records, for information gain."] = math.inf
    max_nodes: Annotated[int, Integer(), "A specialisation that would make the tree larger is no candidate."] = 1 << 13

    def _rounds(self, schema: Schema) -> int:
        most = most_specialisations(taxonomies(schema, self.taxonomies), sizes_of_numbers(schema, self.bins(schema)))
        asked_for = min(SPECIALISATIONS, most) if self.specialisations == "auto" else int(self.specialisations)
        if asked_for > most:
            raise ValueError(f"specialisations={asked_for}: the schema and its taxonomies allow {most}")
        return asked_for

    def _selection(self) -> Selection:
        return Selection(
            CRITERIA[self.criterion], self.option("selection"), self.option("calibration"), n_max=float(self.n_max)
        )

    def check_parameters(self) -> None:
        super().check_parameters()
        CRITERIA[self.criterion].range(self.relation, float(self.n_max))  # refuses a missing cap
        self._rounds(self.declared_schema())


def specialise_values(
    run: Run, table: Generalisation, features: Iterable[int], rounds: int, share: float, how: Selection
) -> None:
    """Make values special one after the other, as DiffGen does: scores of a value count all records that have it.

    Parameters
    ----------
    features : iterable of int
        Those that may be divided.
    rounds : int
    share : float
        Budget of each selection: of a cut for each number at first, of a value in each round, and of the cuts of the
        two new intervals.
    how : Selection
    """
    every, whole = table.groups, run.tree(0)
    known: dict[tuple[int, int], Specialisation] = {}  # what may be chosen, by feature and place

    def choose(candidates: list[Specialisation], scopes: np.ndarray) -> Specialisation:
        return candidates[run.choose_division(every, *asked(candidates, -1), share, how, scopes, whole)]

    def know(feature: int, places: list[int], scopes: np.ndarray) -> None:
        for at, place in enumerate(places):
            if candidates := table.candidates(feature, place):
                chosen = choose(candidates, scopes[at : at + 1]) if run.ordered[feature] else candidates[0]
                known[feature, place] = chosen

    for feature in features:
        know(feature, [0], every.scopes)  # a number's cut
    for _ in range(rounds):
        if not (candidates := [one for one in known.values() if table.fits(one)]):
            return
        chosen = choose(candidates, every.scopes)
        places = table.specialise(known.pop(chosen[:2]))
        know(chosen.feature, places, run.parts("cut a number", len(places)))  # in parts of the records


def choose_by_table(
    run: Run, table: Generalisation, candidates: list[Specialisation], share: float, how: Selection, root: np.ndarray
) -> Specialisation:
    """The specialisation that leaves the best table, summed over all groups; ``root`` is the scope of all records."""
    return candidates[run.choose_division(table.groups, *asked(candidates, 0), share, how, root)]
