"""The sampler and the pairs of an audit, checked: whatever is wrong with them is said, and nothing is skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dpforest.audit.sampling.outputs import Batch, OutputReader, canonical, shortened
from dpforest.privacy import ADD_REMOVE, check_relation

__all__ = ["SIDES", "NamedPair", "Sampler", "check_law", "check_pairs", "check_random"]

SIDES = ("first", "second")
#: What an answer says where no relation was given.
UNCHECKED = "; that the pair is one of neighbours was not checked (relation=)"
_ASKED = 8  # calls on either side after one that failed: 8 of 8 against none are no chance, 1 in 12,870
_SURE = 1e-12  # the probability below which a coincidence is not one
_INDEPENDENT = "it must take its randomness from `rng`, or the draws of an audit are not independent"


class NamedPair(NamedTuple):
    """Two neighbouring data sets, and what the pair is called."""

    name: str
    one: Any
    other: Any
    given: bool  # whether the caller gave the name

    def side(self, side: int) -> str:
        """One of the data sets, for messages."""
        return f"the {SIDES[side]} data set of pair {self.name}"


class Sampler:
    """Draws from a user's ``sample(dataset, size, rng)`` on both data sets of a pair, with checks and a bar."""

    def __init__(self, sample: Callable, rng: np.random.Generator, bar: Any):
        if not callable(sample):
            raise TypeError(f"sample must be a function sample(dataset, size, rng), not {type(sample).__name__}")
        self.reader, self.rng = OutputReader(), rng
        self._sample, self._bar = sample, bar

    def __call__(self, pair: NamedPair, size: int) -> tuple[Batch, Batch]:
        """``size`` fresh outputs on the first data set, and as many on the second."""
        one, other = (self._read(pair, side, size) for side in (0, 1))
        self._bar.update(2 * size)
        return one, other

    def check_randomness(self, pairs: list[NamedPair]) -> None:
        """Two calls with different generators must not return the same draws, nor one draw many times over.

        A data set on which nothing varies says nothing about this, and the next one is asked.
        """
        for pair in pairs:
            if self._varies(pair, 0) or self._varies(pair, 1):
                return

    def _varies(self, pair: NamedPair, side: int) -> bool:
        size = 32
        while True:
            one, other = (self._read(pair, side, size).whole for _ in range(2))
            counts = np.unique(np.concatenate([one, other]), return_counts=True)[1]
            if len(counts) == 1:
                return False
            if len(counts) == 2 and counts[0] == counts[1] and len(np.unique(one)) == 1:
                raise ValueError(
                    f"sample returned one output {size} times over, and in the next call another one: it must return "
                    f"`size` independent draws"
                )
            if (one != other).any():
                untouched, seed = self.untouched(), self._seed
                if untouched and any((self._read(pair, side, size, seed).whole != other).any() for _ in range(8)):
                    raise ValueError(f"sample draws from elsewhere, and takes nothing from `rng`: {_INDEPENDENT}")
                return True
            if ((counts / (2 * size)) ** 2).sum() ** size < _SURE:  # how likely two such calls are to agree
                raise ValueError(f"sample returned the same draws for two different generators: {_INDEPENDENT}")
            size *= 2

    def untouched(self) -> bool:
        """Whether the generator of the last call is as it was: it was not used here, though a copy of it may be."""
        return self._generator.bit_generator.state == np.random.default_rng(self._seed).bit_generator.state

    def _read(self, pair: NamedPair, side: int, size: int, seed: np.ndarray | None = None) -> Batch:
        try:
            raw = self._draw(pair, side, size, seed)
        except (Exception, SystemExit) as error:  # to leave the program is to fail
            raise RuntimeError(self._blame(pair, side, size, error)) from error
        return self.reader(raw, size, pair.side(side))

    def _draw(self, pair: NamedPair, side: int, size: int, seed: np.ndarray | None = None):
        self._seed = self.rng.integers(2**63, size=4) if seed is None else seed
        self._generator = np.random.default_rng(self._seed)
        return self._sample((pair.one, pair.other)[side], size, self._generator)

    def _blame(self, pair: NamedPair, side: int, size: int, error: BaseException) -> str:
        """Whether it fails on one side alone: asked for so often that it is no coincidence, or not said."""
        said = f"{type(error).__name__}: {error}"
        here, there = SIDES[side], SIDES[1 - side]
        for _ in range(_ASKED):
            if self._fails(pair, 1 - side, size):
                return f"sample failed on both data sets of pair {pair.name}; on the {here}: {said}"
        failed = sum(self._fails(pair, side, size) for _ in range(_ASKED))
        value = "if that is part of the mechanism, return a value for it, such as None"
        if failed == _ASKED:
            return (
                f"sample failed on the {here} data set of pair {pair.name} and not on the {there}: {said}.  To fail on "
                f"one of two neighbours tells them apart; {value}"
            )
        return (
            f"sample failed on the {here} data set of pair {pair.name}, in {1 + failed} of {1 + _ASKED} calls, and in "
            f"none of {_ASKED} on the {there}: {said}.  That is too little to say whether failing tells them apart; "
            f"{value}, and it is counted"
        )

    def _fails(self, pair: NamedPair, side: int, size: int) -> bool:
        try:
            self._draw(pair, side, size)
        except (Exception, SystemExit):
            return True
        return False


def check_pairs(pairs: Any, relation: str | None) -> list[NamedPair]:
    """Pairs with names; with a relation, each pair is checked to be one of neighbours."""
    if relation is not None:
        check_relation(relation)
    if isinstance(pairs, tuple) or hasattr(pairs, "one"):
        pairs = [pairs]  # one bare pair
    if isinstance(pairs, str | bytes | Mapping) or not hasattr(pairs, "__iter__"):
        raise TypeError(f"pairs must be a list of pairs of data sets, not {type(pairs).__name__}")
    named = [_named(pair, place) for place, pair in enumerate(pairs)]
    if not named:
        raise ValueError("there are no pairs: give at least one pair of neighbouring data sets")
    for pair in named:
        if relation is not None:
            _check_neighbours(pair, relation)
    return named


def _named(pair: Any, place: int) -> NamedPair:
    if hasattr(pair, "one") and hasattr(pair, "other"):
        return NamedPair(str(pair.name), pair.one, pair.other, True)
    if isinstance(pair, tuple | list) and len(pair) == 3 and isinstance(pair[0], str):
        return NamedPair(pair[0], pair[1], pair[2], True)
    if isinstance(pair, tuple | list) and len(pair) == 2:
        text = repr(tuple(pair))
        return NamedPair(text if len(text) <= 80 else f"number {place}", pair[0], pair[1], False)
    raise ValueError(
        f"pair number {place} must be (dataset, dataset) or (name, dataset, dataset), with a string as its name; "
        f"got {shortened(repr(pair))}"
    )


def _check_neighbours(pair: NamedPair, relation: str) -> None:
    one, other = (_records(dataset, pair) for dataset in (pair.one, pair.other))
    gone, come = sum((one - other).values()), sum((other - one).values())
    if (gone + come != 1) if relation == ADD_REMOVE else (gone, come) != (1, 1):
        wants = "one record more or less" if relation == ADD_REMOVE else "one record replaced by another"
        raise ValueError(
            f"pair {pair.name} is not one of neighbours under {relation}, which is {wants}: {gone} records of the "
            f"first data set are not in the second, and {come} of the second are not in the first"
        )


def _records(dataset: Any, pair: NamedPair) -> Counter:
    """The records of a data set as a multiset."""
    if hasattr(dataset, "itertuples"):
        dataset = dataset.itertuples(index=False, name=None)
    elif isinstance(dataset, np.ndarray):
        dataset = dataset.tolist()
    if not hasattr(dataset, "__iter__"):
        raise TypeError(
            f"a relation is checked on sequences of records; in pair {pair.name} there is a data set of type "
            f"{type(dataset).__name__}.  Leave the relation out to vouch for the pairs yourself"
        )
    return Counter(map(canonical, dataset))


def check_law(law: Any, pair: NamedPair, side: int) -> Mapping:
    """A law as a mapping from outputs to probabilities that sum to one."""
    source = pair.side(side)
    if not isinstance(law, Mapping) or not law:
        raise TypeError(
            f"law must return a dict from outputs to probabilities; for {source} it returned {shortened(repr(law))}"
        )
    chances = np.array([float(chance) for chance in law.values()])
    if not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-6:
        raise ValueError(
            f"the probabilities of a law must not be negative and sum to one; for {source} the smallest is "
            f"{chances.min()} and the sum {chances.sum()}"
        )
    return dict(zip(law, chances.tolist(), strict=True))


def check_random(pairs: list[NamedPair], drawn: list[list[tuple[Batch, Batch]]]) -> None:
    """Refuse a mechanism that never varied: it is not one to sample."""
    differ = ""
    for pair, parts in zip(pairs, drawn, strict=True):
        one, other = (np.unique(np.concatenate([part[side].whole for part in parts])) for side in (0, 1))
        if len(one) > 1 or len(other) > 1:
            return
        if one[0] != other[0] and not differ:
            outputs = " and ".join(repr(parts[0][side].item(0))[:60] for side in (0, 1))
            differ = f"On the two data sets of pair {pair.name} the outputs differ, {outputs}: the loss is infinite"
    count = min(sum(part[0].size for part in parts) for parts in drawn)
    raise ValueError(
        f"sample is deterministic: in at least {count} draws on every data set it returned one output only.  "
        + (f"{differ}, and needs no sampling" if differ else "It is the same one on both data sets of every pair")
    )
