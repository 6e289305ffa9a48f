"""What is audited: one subject for each mechanism and each learner, in each variant and under each relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpforest.audit.exact.enumeration import ExactAudit
from dpforest.audit.exact.laws import Dataset, Law
from dpforest.audit.exact.multisets import largest
from dpforest.audit.sampling.empirical import FEWEST
from dpforest.audit.sampling.events import KINDS
from dpforest.audit.search.pairs import Pair
from dpforest.learners.audited import EXACT, GREY_BOX, LAYERS, STATISTICAL, Broken
from dpforest.learners.base import PrivateEstimator

__all__ = ["EXACT", "FULL", "GREY_BOX", "LAYERS", "SCALES", "SMALL", "STATISTICAL", "Scale", "Subject", "Target"]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is looked at.

    Attributes
    ----------
    n : int
        Draws per side of the statistical test; the choice of pair and event takes as many more.
    slow : int
        As many at most of what is drawn one fit at a time, and so fewer pairs; never fewer than refute what is refuted.
    records : int
        Most records of the data sets of an exact audit; fewer where there would be too many data sets, see ``most``.
    tables, states, replays : int
        Most data sets of an exact audit: of a mechanism by itself, with each crowd; path by path; and replayed,
        which takes some milliseconds for each.
    crowds : tuple of int
        For a mechanism by itself, numbers of equal records that are added to the enumerated ones.
    runs, traps : int
        Of the grey box: runs of each pair, and how many classical traps it is shown in addition to the telling
        pairs.
    events : tuple of str
        Kinds of events that the statistical layer tries.
    """

    n: int = 2_000
    slow: int = 120
    records: int = 3
    tables: int = 200
    states: int = 200
    replays: int = 10
    crowds: tuple[int, ...] = (0, 20)
    runs: int = 2
    traps: int = 4
    events: tuple[str, ...] = ("atoms", "thresholds", "sets")

    def but(self, **changes) -> Scale:
        """The same scale with some numbers changed; None changes nothing."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def most_pairs(self) -> int:
        """As many pairs as the draws of the statistical test can choose among, in two rounds."""
        return max(1, self.n // (2 * FEWEST))

    def most(self, engine: str, kinds: int) -> int:
        """Most records of which this engine enumerates all data sets, of so many kinds of records; at least one."""
        return max(1, largest(kinds, self.records, getattr(self, engine)))


#: For tests and stored notebooks: seconds.
SMALL = Scale()
#: For the book and ``make audit``.
FULL = Scale(
    n=20_000,
    slow=480,
    records=6,
    tables=1300,
    states=5000,
    replays=50,
    crowds=(0, 20, 60),
    runs=4,
    traps=24,
    events=KINDS,
)
SCALES = {"small": SMALL, "full": FULL}


class Target:
    """What an exact and a statistical audit ask of a mechanism or a learner.

    Attributes
    ----------
    engine : {"tables", "states", "replays"}
        How the exact audit goes through the data sets, see :class:`~dpforest.audit.report.subjects.Scale`.
    record_kinds : int
        How many kinds of records its universe has.
    exact : callable
        ``exact(scale, progress=False)`` gives the exact audit.
    pairs : callable
        ``pairs(scale)``: neighbours to sample, the most telling ones known.
    sample : callable
        ``sample(dataset, size, rng)`` draws as the library draws, through its seeded source.
    law : callable or None
        ``law(dataset)``: the exact law of what is sampled, where it is finite and quick.
    features : callable or None
        ``features(outputs)``: numbers that the auditor may look at, for outputs that are words.
    slow : bool
        Whether it is sampled one fit at a time, a millisecond each, and therefore less often.
    refutes : int
        Draws per side that refute it, if it is slow and to be refuted, and those of a scale do not.
    """

    engine: str = "tables"
    record_kinds: int
    exact: Callable[..., ExactAudit]
    pairs: Callable[[Scale], list[Pair]]
    sample: Callable[[Dataset, int, np.random.Generator], Any]
    law: Callable[[Dataset], Law] | None = None
    features: Callable[[Any], np.ndarray] | None = None
    slow: bool = False
    refutes: int = 0

    def traps(self, scale: Scale) -> list[Pair]:
        """Pairs for the grey box to run in addition to the telling ones."""
        return []


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A mechanism or a learner with a claim.

    Attributes
    ----------
    name : str
        As the command line takes it.
    options : str
        What sets it apart from others of that name, such as ``"stop=never"``.
    kind : {"selection", "noise", "learner", "procedure"}
    variant : {"proved", "published"}
    relation : {"add-remove", "replace-one"}
    claim : float
        What is audited: what the library promises, or what the paper claims.
    promise : float
        What the library promises: more than the claim for what is published and refuted, mostly infinity.
    covers : frozenset of str
        Names of the library that are audited hereby, such as ``"scores.gini"``.
    target : Target
        What the exact and the statistical layer look at.
    estimator : PrivateEstimator or None
        For the grey box; a mechanism by itself keeps no accounts.
    broken : object or None
        Why layers must find a violation, and which.
    lacking : mapping
        Layers that do not look at it, and why.
    spare : bool
        Whether to look at less of it than a scale says, see :meth:`scaled`.
    delta : float
        The delta that is promised with the claim; ``options`` states it, too.
    """

    name: str
    options: str = ""
    kind: str
    variant: str = "proved"
    relation: str
    claim: float
    promise: float
    covers: frozenset[str]
    target: Target
    estimator: PrivateEstimator | None = None
    broken: Broken | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    spare: bool = False
    delta: float = 0.0

    @property
    def key(self) -> str:
        """What no other subject is called."""
        parts = [self.name, self.options, self.variant, self.relation]
        return ", ".join(part for part in parts if part)

    @property
    def expected(self) -> tuple[str, ...]:
        """The layers that must find a violation; no other layer may."""
        due = self.broken.layers if self.broken else ()
        return tuple(layer for layer in LAYERS if layer in due and layer not in self.lacking)

    @property
    def why(self) -> str:
        """Why they must."""
        return self.broken.why if self.broken else ""

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that it can be audited by."""
        return tuple(layer for layer in LAYERS if self.refusal(layer) is None)

    def scaled(self, scale: Scale) -> Scale:
        """How much is looked at: where much else of its kind is, fewer runs and data sets, and no classifier."""
        if self.target.slow:
            scale = scale.but(n=min(scale.n, max(scale.slow, self.target.refutes) if self.expected else scale.slow))
        if not self.spare:
            return scale
        events = tuple(kind for kind in scale.events if kind != "classifier")
        return scale.but(replays=scale.replays // 3, runs=2, traps=scale.traps // 3, events=events)

    def refusal(self, layer: str) -> str | None:
        """Why a layer cannot look at it; None if it can."""
        if layer == GREY_BOX and self.estimator is None:
            return f"{self.name} is a mechanism and keeps no accounts"
        return self.lacking.get(layer)
