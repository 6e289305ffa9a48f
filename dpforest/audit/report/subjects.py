"""What is audited: one subject for each mechanism and each learner, in each variant and under each relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpforest.arithmetic import log
from dpforest.audit.exact.laws import Dataset, Law
from dpforest.audit.exact.multisets import largest
from dpforest.audit.exact.replay import ExactAudit
from dpforest.audit.sampling.bounds import wilson
from dpforest.audit.sampling.empirical import FEWEST
from dpforest.audit.sampling.events import KINDS
from dpforest.audit.search.pairs import Pair
from dpforest.learners.audited import EXACT, GREY_BOX, LAYERS, STATISTICAL
from dpforest.learners.base import PrivateEstimator

__all__ = [
    "EXACT",
    "FULL",
    "GREY_BOX",
    "LAYERS",
    "SCALES",
    "SMALL",
    "STATISTICAL",
    "Scale",
    "Subject",
    "best_bound",
]


@dataclass(frozen=True)
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
        Most data sets of an exact audit: of a mechanism by itself, beside each crowd; path by path; and replayed,
        which takes some milliseconds for each.
    crowds : tuple of int
        For a mechanism by itself, numbers of equal records that stand beside the enumerated ones.
    runs, traps : int
        Of the grey box: runs of each pair, and how many classical traps it is shown beside the telling pairs.
    events : tuple of str
        Kinds of events that the statistical layer tries.
    """

    n: int
    slow: int
    records: int
    tables: int
    states: int
    replays: int
    crowds: tuple[int, ...]
    runs: int
    traps: int
    events: tuple[str, ...]

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
SMALL = Scale(2_000, 120, 3, 200, 200, 10, (0, 20), 2, 4, ("atoms", "thresholds", "sets"))
#: For the book and ``make audit``.
FULL = Scale(20_000, 480, 6, 1300, 5000, 50, (0, 20, 60), 4, 24, KINDS)
SCALES = {"small": SMALL, "full": FULL}
#: Draws per side that refute what is slow to draw: published CART-DPsAdaBoost under replace-one was caught with 320 in
#: 6 of 6 seeds, with 240 in 4.
_REFUTES = 320


@dataclass(frozen=True)
class Subject:
    """A mechanism or a learner with a claim, and what each layer of the auditor needs of it.

    Attributes
    ----------
    name : str
        As the command line takes it.
    options : str
        What sets it apart from others of that name, such as ``"stop=never"``.
    kind : {"selection", "noise", "learner"}
    variant : {"proved", "published"}
    relation : {"add-remove", "replace-one"}
    claim : float
        What is audited: what the library promises, or what the paper claims.
    promise : float
        What the library promises: more than the claim for what is published and refuted, mostly infinity.
    covers : frozenset of str
        Names of the library that are audited hereby, such as ``"scores.gini"``.
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
    estimator : PrivateEstimator or None
        For the grey box; a mechanism by itself keeps no accounts.
    expected : frozenset of str
        Layers that must find a violation; no other layer may.
    why : str
        Why they must.
    lacking : mapping
        Layers that do not look at it, and why.
    spare : bool
        Whether to look at less of it than a scale says, see :meth:`scaled`.
    slow : bool
        Whether it is sampled one fit at a time, a millisecond each, and therefore less often.
    """

    name: str
    options: str
    kind: str
    variant: str
    relation: str
    claim: float
    promise: float
    covers: frozenset[str]
    engine: str
    record_kinds: int
    exact: Callable[..., ExactAudit]
    pairs: Callable[[Scale], list[Pair]]
    sample: Callable[[Dataset, int, np.random.Generator], Any]
    law: Callable[[Dataset], Law] | None = None
    features: Callable[[Any], np.ndarray] | None = None
    estimator: PrivateEstimator | None = None
    expected: frozenset[str] = frozenset()
    why: str = ""
    lacking: Mapping[str, str] = field(default_factory=dict)
    spare: bool = False
    slow: bool = False

    @property
    def key(self) -> str:
        """What no other subject is called."""
        parts = [self.name, self.options, self.variant, self.relation]
        return ", ".join(part for part in parts if part)

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that it can be audited by."""
        return tuple(layer for layer in LAYERS if self.refusal(layer) is None)

    def scaled(self, scale: Scale) -> Scale:
        """How much is looked at: where much else of its kind is, fewer runs and data sets, and no classifier."""
        if self.slow:
            scale = scale.but(n=min(scale.n, max(scale.slow, _REFUTES) if self.expected else scale.slow))
        if not self.spare:
            return scale
        events = tuple(kind for kind in scale.events if kind != "classifier")
        return scale.but(replays=scale.replays // 3, runs=2, traps=scale.traps // 3, events=events)

    def refusal(self, layer: str) -> str | None:
        """Why a layer cannot look at it; None if it can."""
        if layer == GREY_BOX and self.estimator is None:
            return f"{self.name} is a mechanism and keeps no accounts"
        return self.lacking.get(layer)


def best_bound(p: np.ndarray, q: np.ndarray, n: int) -> np.ndarray:
    """The bound on the loss that the best event may be trusted to give in ``n`` draws per side.

    Parameters
    ----------
    p, q : ndarray, shape (pairs, outputs)
        Laws on either data set of each pair.
    n : int

    Returns
    -------
    ndarray, shape (pairs,)
        The largest over both directions and all sets that a likelihood ratio cuts off; by Wilson's interval.
    """
    best = np.zeros(len(p))
    for one, other in ((p, q), (q, p)):
        with np.errstate(invalid="ignore"):
            order = np.argsort(-np.nan_to_num(log(one) - log(other), nan=-np.inf), axis=1, kind="stable")
        x = np.cumsum(np.take_along_axis(one, order, axis=1), axis=1).clip(0, 1)
        y = np.cumsum(np.take_along_axis(other, order, axis=1), axis=1).clip(0, 1)
        low, high = wilson(n * x, n, 1.96)[0], wilson(n * y, n, 1.96)[1]
        best = np.maximum(best, (log(low) - log(high)).max(axis=1))
    return best
