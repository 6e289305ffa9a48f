"""A lower bound on the privacy loss of anything that can be sampled.

Pair, direction and event are chosen on one half of the draws, the bound comes from the other half: what was looked
at while choosing costs nothing, and whatever was chosen the bound holds.  A mechanism is refuted by a bound above its
claim; a bound below it proves nothing but that this auditor found no more.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from dpforest.audit.bounds import (
    Betting, best_weight, check_claim, check_confidence, clopper_pearson, epsilon_lower, p_value,
)  # fmt: skip
from dpforest.audit.events import KINDS, Event, choose, law_events, propose
from dpforest.audit.outputs import Batch, Reader
from dpforest.estimators import check_choice, check_count
from dpforest.privacy import ADD_REMOVE, check_relation
from dpforest.privacy import claim as seal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["METHODS", "EmpiricalAudit", "empirical"]

METHODS = ("fixed", "sharp", "betting")
SIDES = ("first", "second")
_ROUND = 20  # fewest draws per side that a pair is looked at with
_CHUNK = 100_000  # outputs held at once while testing


@dataclass(frozen=True)
class EmpiricalAudit:
    """The outcome of an audit by sampling.

    Attributes
    ----------
    epsilon_lower : float
        The loss is at least this, with ``confidence``.
    confidence : float
    claim : float
        What the mechanism promises.
    violated : bool
        Whether the bound exceeds the claim (``method="betting"``: whether the running test rejected it).
    p_value : float
        Of the claim.
    event : str
        The event that was tested.
    pair : str or tuple of two data sets
        The name of the pair, or the pair itself if it has none.
    direction : {"first", "second"}
        On which data set of the pair the event is more likely.
    n : int
        Draws per side in the test.
    hits : tuple of two ints
        How often the event happened in them, on the first and on the second data set.
    tried : int
        Events that were looked at while choosing, over all pairs and both directions.
    method : {"fixed", "sharp", "betting"}
    """

    epsilon_lower: float
    confidence: float
    claim: float
    violated: bool
    p_value: float
    event: str
    pair: Any
    direction: str
    n: int
    hits: tuple[int, int]
    tried: int
    method: str

    @property
    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Clopper-Pearson intervals, at ``confidence`` each, of the event's probability on the first and the second."""
        ends = [clopper_pearson(hits, self.n, (1 + self.confidence) / 2) for hits in self.hits]
        return (float(ends[0][0]), float(ends[0][1])), (float(ends[1][0]), float(ends[1][1]))

    @property
    def _pair(self) -> str:
        text = self.pair if isinstance(self.pair, str) else repr(self.pair)
        return text if len(text) <= 80 else text[:77] + "..."

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        return (
            f"eps >= {self.epsilon_lower:.4g} with {100 * self.confidence:.6g} % confidence (claim {self.claim:.6g}: "
            f"{verdict}) by event {self.event} on pair {self._pair}, n = {self.n} per side"
        )

    def to_dict(self) -> dict[str, Any]:
        """Numbers and words only, ready for JSON."""
        shown = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return shown | {"pair": self._pair, "hits": list(self.hits), "intervals": [list(i) for i in self.intervals]}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False)


@seal("thm-audit-bound", "cex-same-draws")
def empirical(
    sample: Callable, pairs: Any, claim: float, *, n: int = 100_000, confidence: float = 0.95, random_state=None,
    relation: str | None = None, method: str = "fixed", law: Callable | None = None,
    features: Callable | None = None, events: Iterable[str] = KINDS, progress: bool = False,
) -> EmpiricalAudit:  # fmt: skip
    """Audit a mechanism by sampling it."""
    claim, confidence = check_claim(claim), check_confidence(confidence)
    check_count(n, "n", _ROUND)
    check_choice(method, "method", METHODS)
    kinds = _check_kinds(events)
    named = _check_pairs(pairs, relation)
    rng = np.random.default_rng(random_state)
    with tqdm(total=4 * n, disable=not progress, unit="draw", unit_scale=True) as bar:
        draw = _Sampler(sample, Reader(features), rng, bar)
        name, pair, event, first, hits, m, tried = _select(draw, named, n, kinds, law)
        draw.reader.learning = False
        return _test(draw, name, pair, event, first, (hits, m), tried, claim, n, confidence, method)


class _Sampler:
    def __init__(self, sample: Callable, reader: Reader, rng: np.random.Generator, bar):
        self.sample, self.reader, self.rng, self.bar = sample, reader, rng, bar

    def __call__(self, name: str, pair, size: int) -> tuple[Batch, Batch]:
        """Fresh draws on both data sets of a pair."""
        batches = []
        for side, dataset in zip(SIDES, pair, strict=True):
            source = f"the {side} data set of pair {name}"
            raw = self.sample(dataset, size, np.random.default_rng(self.rng.integers(2**63, size=4)))
            batches.append(self.reader(raw, size, source))
            self.bar.update(size)
        return batches[0], batches[1]


def _select(draw, named, n, kinds, law):
    active = list(range(len(named)))
    drawn: dict[int, list] = {i: [] for i in active}
    sizes = [len(active)]
    while sizes[-1] > 1:
        sizes.append(math.ceil(sizes[-1] / 4))
    tried = 0
    for turn, number in enumerate(sizes):
        last = number == 1
        budget = n if len(sizes) == 1 else n // 2 if last else n // 2 // (len(sizes) - 1) // number
        found = []
        for i in active:
            name, *pair = named[i]
            drawn[i].append(draw(name, pair, budget))
            joined = tuple(draw.reader.join([part[side] for part in drawn[i]]) for side in (0, 1))
            m = joined[0].size
            parts = [
                tuple(batch.part(start, stop) for batch in joined)
                for start, stop in ((0, m // 2), (m // 2, 3 * m // 4), (3 * m // 4, m))
            ]
            feats = draw.reader.features(joined[0])
            proposals, looked = propose(parts[0], parts[1], feats, n, kinds, int(draw.rng.integers(2**32)))
            if law is not None:
                more, number_more = law_events(law(pair[0]), law(pair[1]), n)
                proposals, looked = proposals + more, looked + number_more
            tried += looked
            best, hits = choose(proposals, parts[2], n)
            found.append((best.promise, i, best, hits, parts[2][0].size))
        if last:
            _, i, best, hits, m = found[0]
            name, *pair = named[i]
            return name, pair, best.event, best.first, hits, m, tried
        found.sort(key=lambda f: -f[0])
        active = [f[1] for f in found[: sizes[turn + 1]]]
    raise AssertionError


def _test(draw, name, pair, event: Event, first: bool, before, tried, claim, n, confidence, method) -> EmpiricalAudit:
    hits, m = before
    counts = np.zeros(2, dtype=int)
    running = Betting(claim, confidence, prior=(hits[0], m, hits[1], m))
    done = 0
    while done < n and not (method == "betting" and running.rejected):
        size = min(n - done, _CHUNK if method != "betting" else max(100, n // 100))
        seen = [event(batch) for batch in draw(name, pair, size)]
        counts += [int(s.sum()) for s in seen]
        done += size
        if method == "betting":
            running.update(*(seen if first else seen[::-1]))
    likely, other = (int(c) for c in (counts if first else counts[::-1]))
    if method == "betting":
        bound, violated, p = running.epsilon_lower, running.rejected, running.p_value
    else:
        weight = (
            best_weight((hits[0] + 0.5) / (m + 1), (hits[1] + 0.5) / (m + 1), n, n, confidence)
            if method == "sharp"
            else None
        )
        bound = epsilon_lower(likely, n, other, n, confidence, weight)
        p = p_value(likely, n, other, n, claim, weight)
        violated = bound > claim
    return EmpiricalAudit(
        bound, confidence, claim, violated, p, event.description, name if isinstance(name, str) else tuple(pair),
        SIDES[not first], done, (int(counts[0]), int(counts[1])), tried, method,
    )  # fmt: skip


def _check_kinds(events) -> tuple[str, ...]:
    kinds = (events,) if isinstance(events, str) else tuple(events)
    if not kinds or set(kinds) - set(KINDS):
        raise ValueError(f"events must be some of {KINDS}; got {events!r}")
    return kinds


def _check_pairs(pairs, relation):
    bare = isinstance(pairs, tuple) or hasattr(pairs, "one")
    out = []
    for p in [pairs] if bare else list(pairs):
        if hasattr(p, "one"):
            p = (p.name, p.one, p.other)
        out.append(tuple(p) if len(p) == 3 else (None, *p))
    return out
