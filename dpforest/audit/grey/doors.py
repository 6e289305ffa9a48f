"""What an auditor puts in the place of the two doors: a curator that reports, and a chance that strays."""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from functools import cached_property, wraps
from typing import Any

import numpy as np

from dpforest.audit.grey.frozen import Watch
from dpforest.chance import Law, Seeded
from dpforest.curator import Curator, Selection
from dpforest.curator.queries import Query
from dpforest.curator.selections import Candidates
from dpforest.privacy import Ledger

__all__ = ["Roaming", "watching"]

_STRAYS = 8  # answers of one draw that stray from their law, about


class Roaming(Seeded):
    """A chance that takes unlikely answers as often as likely ones, and wider noise.

    What must hold on every transcript is looked at on transcripts that sampling would not meet.  Of many answers at
    once only a few stray from the law, lest a tree that would have stopped grows out of hand.
    """

    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        chosen = super().select(kind, law, scores, rate)
        strays = np.flatnonzero(self._rng.random(len(scores)) * len(scores) < _STRAYS)
        possible = np.asarray(law(scores, rate))[strays] > 0
        chosen[strays] = self._one_of(possible, self._words(len(strays)))
        return chosen

    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        return super().two_sided_geometric(np.asarray(rate) / 4, size)

    def discrete_gaussian(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        return super().discrete_gaussian(np.asarray(rate) / 16, size)


def watching(door: Any) -> type[Curator]:
    """A curator's class that does what ``door`` does and reports it to the :class:`Watch` that is its chance."""

    def watched(name, method):
        parameters = inspect.signature(method)

        @wraps(method)
        def ask(self, *args, **kwargs):
            watch = self._chance
            asked = parameters.bind(self, *args, **kwargs).arguments
            said = name  # of a query its kind too, and of candidates what the ledger calls their choice
            for value in asked.values():
                if isinstance(value, Query):
                    said = f"{name} {type(value).__name__}"
                elif isinstance(value, Candidates):
                    said = value.label
            every: dict[str, Any] = {}
            for key, value in asked.items():  # queries, candidates and selections are compared part by part
                every |= vars(value) if isinstance(value, Query | Candidates | Selection) else {key: value}
            public = {key: _frozen_value(value) for key, value in every.items() if key not in ("self", "epsilon")}
            watch.ask(said, public)  # budgets are compared with the charges
            try:
                return method(self, *args, **kwargs)
            finally:
                watch.answered(vars(self)["_records"].whole().assignment)

        return ask

    def records(self):
        self._chance.touch()
        return vars(self)["_records"]

    def init(self, codes, labels, *args, chance: Watch, ledger: Ledger, **kwargs):
        chance.hire(ledger, len(labels))
        door.__init__(self, codes, labels, *args, chance=chance, ledger=ledger, **kwargs)

    names = [name for name in dir(door) if not name.startswith("_") and inspect.isfunction(getattr(door, name))]
    body: dict[str, Any] = {name: watched(name, getattr(door, name)) for name in names}
    body["__init__"] = init
    body["_records"] = property(records, lambda self, value: vars(self).__setitem__("_records", value))
    return type(f"Watched{door.__name__}", (door,), body)


def _frozen_value(value) -> Hashable:
    """A value of today, to be compared later: arrays and growing forests are copied."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if hasattr(value, "first_child"):
        names = ("feature", "first_child", "arity", "multiway", "mask", "roots")
        return tuple(_frozen_value(getattr(value, name)) for name in names)
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen_value, value))
    if callable(value):  # made anew in each run, it is the same question; what it says is seen in the scores
        return type(value).__name__, getattr(value, "name", getattr(value, "__qualname__", ""))
    if type(value).__eq__ is object.__eq__ and hasattr(value, "__dict__"):  # such as the design of a linear model
        kind = type(value)
        public = (name for name in sorted(vars(value)) if not isinstance(vars(kind).get(name), cached_property))
        return kind.__name__, tuple((name, _frozen_value(vars(value)[name])) for name in public)
    return value if isinstance(value, Hashable) else repr(value)
