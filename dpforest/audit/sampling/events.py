"""Events that may tell two data sets apart: proposed on some draws, and chosen on others by the bound they promise.

An event is a set of outputs.  Each proposal is a half-line of some score of the output: of a feature as it is
(a threshold), of the indicator of one value (an atom), of how often its value was seen on either side (a set of
atoms), of the exact likelihood ratio where the laws are known, or of a classifier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from dpforest.arithmetic import log
from dpforest.audit.sampling.bounds import lower_end, rho_of_events, upper_end, wilson
from dpforest.audit.sampling.classifiers import classifiers
from dpforest.audit.sampling.features import Feature, repeatable
from dpforest.audit.sampling.outputs import Batch, canonical, shortened

__all__ = [
    "ANYTHING",
    "KINDS",
    "Event",
    "Proposal",
    "choose",
    "half_lines",
    "judge",
    "likelihood_ratio",
    "listed_outputs",
    "promise",
    "propose",
    "thirds",
    "top_events",
]

KINDS = ("atoms", "thresholds", "sets", "classifier")
Law = Mapping[Hashable, float]
Two = tuple[Batch, Batch]
Test = tuple[int, float, float, bool]  # draws to come, confidence, delta, and whether a rho is bounded

_ATOMS = 6  # single values proposed per column and direction
_KEPT = 12  # proposals of each kind that go on to the draws on which one is chosen
_FEW = 50  # different outputs, up to which the sets of values are all that a classifier could find
_DULL = 4  # events that are taken even if none of them promises anything
_SHOWN = 4  # values that the words for a set name
_LISTED = 1 << 17  # draws, up to which what each number of hits promises is kept
_NAN = int(np.float64(np.nan).view(np.uint64))
_ORDERS = 1 + np.geomspace(1e-2, 1e2, 9)  # by which events are compared where a rho is claimed
_PLAIN = 0.05  # an event that one can say in words is taken if it promises all but this share of the best


@dataclass(frozen=True)
class Event:
    """A set of outputs: those whose score is at least, or at most, a threshold.

    Attributes
    ----------
    description : str
    score : callable
        ``score(batch)``: one number per output; NaN lies in no event.
    threshold : float
    above : bool
        Whether the event is ``score >= threshold`` or ``score <= threshold``.
    plain : bool
        Whether the description says all.
    bits : bool
        Whether the score looks at the lowest bits of doubles.
    """

    description: str
    score: Callable[[Batch], np.ndarray]
    threshold: float
    above: bool
    plain: bool = True
    bits: bool = False

    def __call__(self, batch: Batch) -> np.ndarray:
        """Whether it happened, for each output."""
        score = self.score(batch)
        return score >= self.threshold if self.above else score <= self.threshold


@dataclass(frozen=True)
class Proposal:
    """An event, and what it promises.

    Attributes
    ----------
    event : Event
    first : bool
        Whether it is held to be more likely on the first data set.
    promise : float
        The bound that the draws to come are expected to give, see :func:`promise`.
    fitted : bool
        Whether its threshold was chosen on the second part of the draws.
    hits, draws : tuple of two ints, int
        How often it happened where it was chosen, on the likelier side and on the other, in how many draws on either.
    """

    event: Event
    first: bool
    promise: float
    fitted: bool = False
    hits: tuple[int, int] = (0, 0)
    draws: int = 0


#: What is proposed where there is nothing to propose; its bound is 0.
ANYTHING = Proposal(Event("any output", lambda batch: np.zeros(batch.size), 0.0, True), True, -np.inf)


def promise(
    hits,
    other_hits,
    m: int,
    n: int,
    confidence: float,
    delta: float = 0.0,
    concentrated: bool = False,
    *,
    exact: bool = False,
) -> np.ndarray:
    """The bound that ``n`` fresh draws are expected to give for an event seen so often in ``m`` draws on either side.

    Both probabilities are taken one standard error to the worse, and the bound is that of the hits to be expected then:
    by Clopper and Pearson's ends if ``exact``, else by Wilson's.  What is no more likely than ``delta`` promises
    nothing.  The bound is one on the epsilon, or if ``concentrated`` on the rho.
    """
    hits, other_hits = np.asarray(hits), np.asarray(other_hits)
    if not concentrated and not exact and hits.dtype.kind == other_hits.dtype.kind == "i" and m <= _LISTED:
        low, high = _listed(m, n, confidence, delta)
        return low[hits] - high[other_hits]
    x = n * wilson(np.asarray(hits, dtype=float), m, 1.0)[0]
    y = n * wilson(np.asarray(other_hits, dtype=float), m, 1.0)[1]
    error = (1 - confidence) / 2
    if exact:
        low, high = lower_end(x, n, error), upper_end(y, n, error)
    else:
        low, high = wilson(x, n, float(-ndtri(error)))[0], wilson(y, n, float(-ndtri(error)))[1]
    if concentrated:  # where there is no bound, the event that comes nearest to one
        return np.where(low > high, rho_of_events(low, high, _ORDERS), np.minimum(log(low) - log(high), 0))
    return log(np.maximum(low - delta, 0)) - log(high)


@lru_cache(maxsize=64)
def _listed(m: int, n: int, confidence: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """The two terms of :func:`promise` for each number of hits, which is asked for thousands of times."""
    hits = np.arange(m + 1, dtype=float)
    z = float(-ndtri((1 - confidence) / 2))
    low = wilson(n * wilson(hits, m, 1.0)[0], n, z)[0]
    high = wilson(n * wilson(hits, m, 1.0)[1], n, z)[1]
    return log(np.maximum(low - delta, 0)), log(high)


def thirds(both: Two) -> list[Two]:
    """The draws to propose events on, to cut what was fitted, and to pick one."""
    m = both[0].size
    ends = ((0, m // 2), (m // 2, 3 * m // 4), (3 * m // 4, m))
    return [(both[0].part(*end), both[1].part(*end)) for end in ends]


def propose(
    fit: Two,
    cut: Two,
    features: list[Feature],
    kinds,
    n: int,
    confidence: float,
    seed: int,
    delta: float = 0.0,
    concentrated: bool = False,
) -> tuple[list[Proposal], int]:
    """Events in either direction that may tell the two sides apart, and how many were looked at.

    Parameters
    ----------
    fit : two Batches of one size
        Thresholds of features and single values are read off these, sets and classifiers are fitted to them.
    cut : two Batches of one size
        Thresholds of what was fitted are chosen here, where the fit cannot flatter itself.
    features : list of Feature
    kinds : collection of str
        Of ``KINDS``.
    n, confidence : int, float
        Of the test to come.
    seed : int
        Of the classifier.
    delta : float
        Of the claim.
    concentrated : bool
        Whether the claim is a rho.
    """
    test = n, confidence, delta, concentrated
    met: list[Feature | _WholeOutput] = [_WholeOutput(), *(feature for feature in features if feature.atoms)]
    tables = [_ValueCounts(values, fit) for values in met] if {"atoms", "sets"} & set(kinds) else []
    found = []
    if "atoms" in kinds:
        found.append([table.atoms(cut, test) for table in tables])
    if "thresholds" in kinds:
        found.append([_half_lines(f.name, f.form, f, fit, test) for f in features if not f.codes])
    if "sets" in kinds:
        found.append([table.sets(cut, test) for table in tables])
    if "classifier" in kinds and not ("sets" in kinds and len(tables[0].keys) <= _FEW):
        scores = classifiers(fit, features, seed)
        found.append([_half_lines(score.name, "{:.4g}", score, cut, test, True, False) for score in scores])
    kept = []
    for kind in found:
        proposals = [proposal for some, _ in kind for proposal in some]
        kept += sorted(proposals, key=lambda proposal: -proposal.promise)[:_KEPT]
    return kept, sum(looked for kind in found for _, looked in kind)


def choose(
    proposals: list[Proposal],
    cut: Two,
    pick: Two,
    n: int,
    confidence: float,
    delta: float = 0.0,
    concentrated: bool = False,
) -> Proposal:
    """The proposal that promises most on draws that it was not made on; the plain one of two that are as good.

    What was only read off the first part of the draws is judged on both of the others, ``cut`` and ``pick``; what was
    fitted, and cut on the second, on the third alone.
    """
    judged = judge(proposals, cut, pick, n, confidence, delta, concentrated)
    enough = max(proposal.promise for proposal in judged)
    enough -= _PLAIN * max(enough, 0)
    return max(judged, key=lambda proposal: (proposal.promise >= enough, proposal.event.plain, proposal.promise))


def judge(
    proposals: list[Proposal],
    cut: Two,
    pick: Two,
    n: int,
    confidence: float,
    delta: float = 0.0,
    concentrated: bool = False,
) -> list[Proposal]:
    """What each proposal promises on draws that it was not made on, see :func:`choose`."""
    judged = []
    for proposal in proposals:
        parts = [pick] if proposal.fitted else [cut, pick]
        one, other = (sum(int(proposal.event(part[side]).sum()) for part in parts) for side in (0, 1))
        hits, m = (one, other) if proposal.first else (other, one), sum(part[0].size for part in parts)
        bound = float(promise(*hits, m, n, confidence, delta, concentrated, exact=True))
        judged.append(replace(proposal, promise=bound, hits=hits, draws=m))
    return judged


def _half_lines(
    name: str,
    form: str,
    score: Callable[[Batch], np.ndarray],
    batches: Two,
    test: Test,
    fitted: bool = False,
    plain: bool = True,
) -> tuple[list[Proposal], int]:
    """The most promising half-line of a score, upwards and downwards, for each direction; and how many there were."""
    cuts, counted = half_lines(score, batches)
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    found = []
    for above, x, y in counted if len(cuts) else ():
        for first in (True, False):
            likely, other = (x, y) if first else (y, x)
            promised = promise(likely, other, batches[0].size, *test)
            best = int(promised.argmax())
            at = float(cuts[best])
            if not form:  # what is written is what is tested
                beyond = ends[best if above else best + 2]
                at = _short(at, float(beyond))
            words = f"{name} {'>=' if above else '<='} {form.format(at) if form else repeatable(at)}"
            found.append(
                Proposal(
                    Event(words, score, at, above, plain, getattr(score, "bits", False)),
                    first,
                    float(promised[best]),
                    fitted,
                )
            )
    return found, 4 * len(cuts)


def half_lines(
    score: Callable[[Batch], np.ndarray], batches: Two
) -> tuple[np.ndarray, list[tuple[bool, np.ndarray, np.ndarray]]]:
    """Every threshold of a score, and how often it lies above and below each, on either side."""
    a, b = (np.sort(values[~np.isnan(values)]) for values in map(score, batches))
    cuts = np.unique(np.concatenate([a, b]))
    below = (False, np.searchsorted(a, cuts, side="right"), np.searchsorted(b, cuts, side="right"))
    return cuts, [(True, len(a) - np.searchsorted(a, cuts), len(b) - np.searchsorted(b, cuts)), below]


def _short(at: float, beyond: float) -> float:
    """The number of fewest digits, six at least, that is ``at`` or lies between it and ``beyond``."""
    low, high = min(at, beyond), max(at, beyond)
    for digits in range(6, 17) if at and math.isfinite(at) else ():
        unit = 10.0 ** (int(f"{at:e}".partition("e")[2]) - digits + 1)
        for near in (at, at + math.copysign(unit, beyond - at)):
            near = float(f"{near:.{digits}g}")
            if near == at or low < near < high:
                return near
    return at


# -- many events at once -----------------------------------------------------------------------------------------------


def listed_outputs(both: Two, most: int, n: int, confidence: float) -> list[Event]:
    """Single outputs, at most so many, those that promise most first; and all others together.

    Nothing if the most frequent of them are less than half of the draws: outputs like these are hardly met again.
    """
    table = _ValueCounts(_WholeOutput(), both)
    a, b = table.counts
    if np.sort(a + b)[-most:].sum() < both[0].size:
        return []
    promised = np.maximum(promise(a, b, both[0].size, n, confidence), promise(b, a, both[0].size, n, confidence))
    kept = np.argsort(-promised, kind="stable")[:most]
    first = kept[np.argsort(-log((a[kept] + 0.5) / (b[kept] + 0.5)), kind="stable")].tolist()
    return [*(table.single(key) for key in first), table.outside(first, "any other output")]


def top_events(both: Two, features: list[Feature], most: int, n: int, confidence: float, seed: int) -> list[Event]:
    """The events that promise most of all that an audit looks at, in either direction; none twice."""
    fit, cut, pick = thirds(both)
    proposals, _ = propose(fit, cut, features, KINDS, n, confidence, seed)
    judged = sorted(judge(proposals, cut, pick, n, confidence), key=lambda one: -one.promise)
    found: dict[bytes, Event] = {}
    for proposal in judged:
        happens = np.concatenate([proposal.event(part) for part in (*cut, *pick)])
        if happens.any() and not happens.all() and (proposal.promise > 0 or len(found) < _DULL):
            found.setdefault(happens.tobytes(), proposal.event)
    return list(found.values())[:most]


# -- values that are met again ---------------------------------------------------------------------------------------


class _WholeOutput:
    """An output as a whole, which may be met again like the values of a feature."""

    name = "output"

    def keys(self, batch: Batch) -> np.ndarray:
        return batch.whole

    def words(self, batch: Batch, index: int) -> str:
        raw = batch.raw[index]
        if isinstance(raw, np.floating) and np.isnan(raw):  # there are many, and ``whole`` tells them apart
            word = int(raw.astype(float).view(np.uint64))
            return "nan" if word == _NAN else f"nan, bits {word:#x}"
        return shortened(repr(batch.item(index)), 60)


class _ValueCounts:
    """The values that were met, and how often on either side."""

    def __init__(self, values: Feature | _WholeOutput, batches: Two):
        self.values, self.batches, self.name = values, batches, values.name.removeprefix("label ")
        codes = [values.keys(batch) for batch in batches]
        self.keys, self.place, inverse = np.unique(np.concatenate(codes), return_index=True, return_inverse=True)
        sides = inverse[: len(codes[0])], inverse[len(codes[0]) :]
        self.counts = tuple(np.bincount(side, minlength=len(self.keys)) for side in sides)

    def atoms(self, cut: Two, test: Test) -> tuple[list[Proposal], int]:
        """The most promising single values for either direction, and all that was never met on one side."""
        found = []
        codes = [self.values.keys(batch) for batch in cut]
        for first in (True, False):
            a, b = self.counts if first else self.counts[::-1]
            promised = promise(a, b, self.batches[0].size, *test)
            for best in np.argsort(-promised, kind="stable")[:_ATOMS].tolist():
                found.append(Proposal(self.single(best, f"{self.name} = "), first, float(promised[best])))
            met = self.keys[b > 0]
            if 0 < len(met) < len(self.keys):
                # Of the draws that say what was met, none can speak against this event: it is judged on others.
                x, y = (np.count_nonzero(~np.isin(side, met)) for side in (codes if first else codes[::-1]))
                where = "second" if first else "first"
                words = f"{self.name} is none of the {len(met)} values seen on the {where} data set"
                bound = float(promise(x, y, cut[0].size, *test))
                found.append(Proposal(self._event(words, met, inside=False), first, bound, True))
        return found, 2 * len(self.keys) + 2

    def single(self, key: int, before: str = "") -> Event:
        """One value, by its place in the table."""
        return self._event(f"{before}{self._words(key)}", self.keys[[key]])

    def outside(self, places: list[int], words: str) -> Event:
        """All values but those at some places of the table."""
        return self._event(words, self.keys[places], inside=False)

    def sets(self, cut: Two, test: Test) -> tuple[list[Proposal], int]:
        """Sets of values in the order of their smoothed ratio; one that was met once or never lies in the middle."""
        known = sum(self.counts) > 1
        keys, (a, b) = self.keys[known], (count[known] for count in self.counts)
        if not len(keys):
            return [], 0
        ratio = log((a + 0.5) / (b + 0.5))

        def score(batch: Batch) -> np.ndarray:
            codes = self.values.keys(batch)
            at = np.minimum(np.searchsorted(keys, codes), len(keys) - 1)
            return np.where(keys[at] == codes, ratio[at], 0.0)

        found, looked = _half_lines(self.name, "{}", score, cut, test, True)
        places = np.flatnonzero(known)
        return [replace(one, event=self._named(one.event, ratio, places)) for one in found], looked

    def _named(self, event: Event, ratio: np.ndarray, places: np.ndarray) -> Event:
        """A set in words: its values, the more telling first."""
        inside = ratio >= event.threshold if event.above else ratio <= event.threshold
        order = np.flatnonzero(inside)[np.argsort(-np.abs(ratio[inside]), kind="stable")]
        shown = ", ".join(self._words(int(places[k])) for k in order[:_SHOWN])
        more = f", ... {len(order) - _SHOWN} more" if len(order) > _SHOWN else ""
        unmet = " or a value not seen before" if (event.threshold <= 0) == event.above else ""
        return replace(event, description=f"{self.name} in {{{shown}{more}}}{unmet}", plain=not more)

    def _words(self, key: int) -> str:
        side, index = divmod(int(self.place[key]), self.batches[0].size)  # both are of one size
        return self.values.words(self.batches[side], index)

    def _event(self, words: str, keys: np.ndarray, inside: bool = True) -> Event:
        return Event(words, lambda batch: np.isin(self.values.keys(batch), keys).astype(float), 0.5, inside)


# -- known laws --------------------------------------------------------------------------------------------------------


def likelihood_ratio(
    one: Law, other: Law, n: int, confidence: float, delta: float = 0.0, concentrated: bool = False
) -> tuple[list[Proposal], int]:
    """The best sets by the ratio of two known laws, one for each direction, and how many there were.

    They are found without a draw: the bound to expect of ``n`` draws is known for every threshold.
    """
    outputs = list(dict.fromkeys([*one, *other]))
    p, q = (np.array([law.get(output, 0.0) for output in outputs]) for law in (one, other))
    outputs, p, q = [out for out, some in zip(outputs, p + q > 0, strict=True) if some], p[p + q > 0], q[p + q > 0]
    ratio = log(p) - log(q)
    scores = dict(zip(map(canonical, outputs), ratio.tolist(), strict=True))

    def score(batch: Batch) -> np.ndarray:
        _, place, inverse = np.unique(batch.whole, return_index=True, return_inverse=True)
        return np.array([scores.get(batch.item(index), np.nan) for index in place.tolist()])[inverse]

    found = []
    for first in (True, False):
        order = np.argsort(-ratio if first else ratio, kind="stable")
        ends = np.append(ratio[order][1:] != ratio[order][:-1], True)  # outputs of one ratio come together
        many = 10**6 * n  # a known law is like very many draws
        x, y = (many * np.minimum(np.cumsum(law[order])[ends], 1) for law in ((p, q) if first else (q, p)))
        promised = promise(x, y, many, n, confidence, delta, concentrated)
        best = int(promised.argmax())
        steps = np.append(ratio[order][ends], -np.inf if first else np.inf)
        at = _short(float(steps[best]), float(steps[best + 1]))
        words = f"log-likelihood ratio of first to second {'>=' if first else '<='} {repeatable(at)}"
        found.append(Proposal(Event(words, score, at, first), first, float(promised[best])))
    return found, 2 * len(outputs)
