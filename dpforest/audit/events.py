"""Events that may tell two data sets apart: proposed on some draws, and ranked by the bound they promise.

An event is a set of outputs.  Each of the proposals here is a half-line of some score of the output: of a feature as it is
(a threshold), of the indicator of one value (an atom), of the smoothed ratio of how often a value was seen on
either side (a set of atoms), of the exact likelihood ratio where the law is known, or of a classifier.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from dpforest.audit.bounds import clopper_pearson
from dpforest.audit.outputs import Batch, Feature

__all__ = ["KINDS", "Event", "Proposal", "choose", "law_events", "promise", "propose"]

KINDS = ("atoms", "thresholds", "sets", "classifier")
Law = Mapping[Hashable, float]

_ATOMS = 6  # single values proposed per column and direction
_KEPT = 40  # proposals that go on to the draws on which one is chosen
_LEARN = 20_000  # draws per side that a classifier learns from
_FLAGS = 16  # values of a label that a classifier is shown


@dataclass(frozen=True)
class Event:
    """A set of outputs.

    Attributes
    ----------
    description : str
    score : callable
        ``score(batch)``: one number per output; NaN is outside of every event.
    threshold : float
    above : bool
        Whether the event is ``score >= threshold`` or ``score <= threshold``.
    """

    description: str
    score: Callable[[Batch], np.ndarray]
    threshold: float
    above: bool

    def __call__(self, batch: Batch) -> np.ndarray:
        """Whether it happened, for each output."""
        score = self.score(batch)
        return score >= self.threshold if self.above else score <= self.threshold


@dataclass(frozen=True)
class Proposal:
    """An event, and the data set on which it is held to be more likely; ``promise`` is what it promises so far."""

    event: Event
    first: bool
    promise: float


def promise(hits, other_hits, m: int, n: int) -> np.ndarray:
    """The bound that an event seen so often in ``m`` draws on either side may be trusted to give in ``n`` fresh ones.

    It is the bound of Clopper and Pearson on the ``m`` draws at the confidence whose normal quantile allows for the
    noise of the test, ``1.96 * sqrt(m / n)``, and for one standard error of what is seen here.
    """
    confidence = float(ndtr(1 + 1.96 * math.sqrt(m / n)))
    with np.errstate(divide="ignore"):
        return np.log(clopper_pearson(hits, m, confidence)[0]) - np.log(clopper_pearson(other_hits, m, confidence)[1])


def _quick(hits, other_hits, m: int, n: int) -> np.ndarray:
    """As :func:`promise` by Wilson's approximate interval, for millions of thresholds."""
    z2 = (1 + 1.96 * math.sqrt(m / n)) ** 2
    x, y = np.asarray(hits, dtype=float), np.asarray(other_hits, dtype=float)
    low = x + z2 / 2 - np.sqrt(z2 * (x * (1 - x / m) + z2 / 4))
    high = y + z2 / 2 + np.sqrt(z2 * (y * (1 - y / m) + z2 / 4))
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low, 0)) - np.log(high)


def _half_lines(name: str, form: str, score: Callable, one: np.ndarray, other: np.ndarray, n: int):
    """The most promising half-line of a score, for each direction and each side; and how many there were."""
    m = len(one)
    a, b = np.sort(one[~np.isnan(one)]), np.sort(other[~np.isnan(other)])
    cuts = np.unique(np.concatenate([a, b]))
    found = []
    for above in (True, False):
        if above:
            x, y = len(a) - np.searchsorted(a, cuts), len(b) - np.searchsorted(b, cuts)
        else:
            x, y = np.searchsorted(a, cuts, side="right"), np.searchsorted(b, cuts, side="right")
        for first in (True, False):
            promised = _quick(x, y, m, n) if first else _quick(y, x, m, n)
            if len(promised) and promised[best := int(promised.argmax())] > -math.inf:
                at = float(cuts[best])
                words = f"{name} {'>=' if above else '<='} {form.format(at)}"
                found.append(Proposal(Event(words, score, at, above), first, float(promised[best])))
    return found, 4 * len(cuts)


class _Table:
    """The values of a column that were met, and how often on either side."""

    def __init__(self, one: np.ndarray, other: np.ndarray):
        both = np.concatenate([one, other])
        self.keys, self.place, inverse = np.unique(both, return_index=True, return_inverse=True)
        self.first = np.bincount(inverse[: len(one)], minlength=len(self.keys))
        self.second = np.bincount(inverse[len(one) :], minlength=len(self.keys))

    def score(self, keys: np.ndarray, values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function from values of the column to their ``values``; 0 for what is not among ``keys``."""

        def look_up(column: np.ndarray) -> np.ndarray:
            if not len(keys):
                return np.zeros(len(column))
            at = np.minimum(np.searchsorted(keys, column), len(keys) - 1)
            return np.where(keys[at] == column, values[at], 0.0)

        return look_up


@dataclass(frozen=True)
class _Column:
    """Something whose values may be met again."""

    name: str
    keys: Callable[[Batch], np.ndarray]
    show: Callable[[Batch, int], str]


def _columns(features: list[Feature]) -> Iterator[_Column]:
    yield _Column("output", lambda batch: batch.whole, lambda batch, index: batch.show(index))
    for feature in features:
        if feature.atoms:
            yield _Column(
                feature.name,
                lambda batch, feature=feature: _patterns(batch.values(feature)),
                lambda batch, index, feature=feature: _written(feature, batch, index),
            )


def _patterns(values: np.ndarray) -> np.ndarray:
    """Numbers as bit patterns, so that NaN equals NaN, and 0 does not equal -0."""
    return np.where(np.isnan(values), np.nan, values).view(np.int64)


def _written(feature: Feature, batch: Batch, index: int) -> str:
    if feature.name.startswith("label "):
        item = batch.item(index)
        place = int(feature.name.split("[")[1][:-1])
        return repr(item[place]) if isinstance(item, tuple) and place < len(item) else "another shape"
    return repr(float(batch.values(feature)[index]))


def propose(
    batches: tuple[Batch, Batch], again: tuple[Batch, Batch], features: list[Feature], n: int, kinds, seed: int,
) -> tuple[list[Proposal], int]:  # fmt: skip
    """Events in either direction that may tell the two sides apart, and how many were looked at.

    Parameters
    ----------
    batches : two Batches of one size
        Thresholds and atoms are read off these, sets and classifiers are fitted to them.
    again : two Batches of one size
        Thresholds of what was fitted are chosen here, where the fit cannot flatter itself.
    features : list of Feature
    n : int
        Draws per side of the test to come.
    kinds : collection of str
        Of ``KINDS``.
    seed : int
        Of the classifier.
    """
    found: list[Proposal] = []
    looked = 0

    def cut(name: str, form: str, score: Callable, pair: tuple[Batch, Batch]) -> None:
        nonlocal looked
        lines, number = _half_lines(name, form, score, score(pair[0]), score(pair[1]), n)
        found.extend(lines)
        looked += number

    if "thresholds" in kinds:
        for feature in features:
            if not feature.codes:
                cut(feature.name, feature.form, lambda batch, feature=feature: batch.values(feature), batches)
    if "atoms" in kinds or "sets" in kinds:
        for column in _columns(features):
            table = _Table(*(column.keys(batch) for batch in batches))
            if len(table.keys) < 2 and column.name != "output":
                continue
            if "atoms" in kinds:
                found += _atoms(column, table, batches, n)
                looked += 2 * len(table.keys)
            if "sets" in kinds:
                known = table.first + table.second > 1
                keys, a, b = table.keys[known], table.first[known], table.second[known]
                ratio = table.score(keys, np.log((a + 0.5) / (b + 0.5)))
                if len(keys) > 2:
                    words = "log-ratio of counts of " + column.name
                    cut(words, "{:.3g}", lambda batch, ratio=ratio, column=column: ratio(column.keys(batch)), again)
    if "classifier" in kinds:
        for name, score in _classifiers(batches, features, seed):
            cut(name, "{:.4g}", score, again)
    found.sort(key=lambda proposal: -proposal.promise)
    return found[:_KEPT], looked


def _atoms(column: _Column, table: _Table, batches: tuple[Batch, Batch], n: int) -> list[Proposal]:
    """The most promising single values for either direction, and what was never met on one of the sides."""
    found = []
    m = batches[0].size
    for first in (True, False):
        a, b = (table.first, table.second) if first else (table.second, table.first)
        promised = _quick(a, b, m, n)
        for best in np.argsort(-promised, kind="stable")[:_ATOMS]:
            if promised[best] > -math.inf:
                index = int(table.place[best])
                batch, at = (batches[0], index) if index < m else (batches[1], index - m)
                words = f"{column.name} = {column.show(batch, at)}"
                found.append(Proposal(_is_in(words, column, table.keys[[best]]), first, float(promised[best])))
        unmet = table.keys[b > 0]
        x, y = int(a[b == 0].sum()), 0
        words = f"{column.name} is none of the {len(unmet)} values met on the {'second' if first else 'first'} data set"
        if x:
            found.append(Proposal(_is_in(words, column, unmet, False), first, float(_quick(x, y, m, n))))
    return found


def _is_in(words: str, column: _Column, keys: np.ndarray, inside: bool = True) -> Event:
    def score(batch: Batch) -> np.ndarray:
        column_keys = column.keys(batch)
        at = np.minimum(np.searchsorted(keys, column_keys), len(keys) - 1)
        return (keys[at] == column_keys).astype(float)

    return Event(words, score, 0.5, inside)


def law_events(one: Law, other: Law, n: int) -> tuple[list[Proposal], int]:
    """The best sets by the exact likelihood ratio of two known laws, one for each direction; and how many there were."""
    found = []
    outputs = list(dict.fromkeys([*one, *other]))
    p, q = (np.array([law.get(output, 0.0) for output in outputs]) for law in (one, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(p) - np.log(q)
    scores = dict(zip(outputs, ratio.tolist(), strict=True))

    def score(batch: Batch) -> np.ndarray:
        keys, place, inverse = np.unique(batch.whole, return_index=True, return_inverse=True)
        return np.array([scores.get(batch.item(index), 0.0) for index in place.tolist()])[inverse]

    for first in (True, False):
        order = np.argsort(-ratio if first else ratio, kind="stable")
        order = order[~np.isnan(ratio[order])]
        ends = np.append(np.diff(ratio[order]) != 0, True)  # outputs of one ratio come together
        x, y = (n * np.cumsum(law[order])[ends] for law in ((p, q) if first else (q, p)))
        promised = _quick(x, y, n, 10**9 * n)
        best = int(promised.argmax())
        at = float(ratio[order][ends][best])
        words = f"log of the likelihood ratio {'>=' if first else '<='} {at:.6g}"
        found.append(Proposal(Event(words, score, at, first), first, float(promised[best])))
    return found, 2 * len(outputs)


def _classifiers(batches: tuple[Batch, Batch], features: list[Feature], seed: int):
    """Scores of classifiers that try to tell which data set an output came from."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    parts = [batch.part(0, min(batch.size, _LEARN)) for batch in batches]
    plain = [feature for feature in features if not feature.codes]
    flags = []
    for feature in features:
        if feature.codes:
            values, counts = np.unique(np.concatenate([part.values(feature) for part in parts]), return_counts=True)
            flags += [(feature, value) for value in values[np.argsort(-counts, kind="stable")[:_FLAGS]]]
    if len(plain) + len(flags) == 0:
        return

    def table(batch: Batch) -> np.ndarray:
        columns = [batch.values(feature) for feature in plain]
        columns += [(batch.values(feature) == value).astype(float) for feature, value in flags]
        return np.clip(np.stack(columns, axis=1), -1e30, 1e30)

    seen = np.concatenate([table(part) for part in parts])
    source = np.repeat([1, 0], [part.size for part in parts])
    with np.errstate(all="ignore"), warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # a fit that stops early is an event like another
        if seen.shape[1] > 1:
            centre = np.nan_to_num(np.nanmedian(seen, axis=0))
            spread = np.nan_to_num(np.nanmedian(np.abs(seen - centre), axis=0))
            spread = np.where(spread > 0, spread, 1.0)

            def scaled(x: np.ndarray) -> np.ndarray:
                return np.clip(np.nan_to_num((x - centre) / spread), -20, 20)

            linear = LogisticRegression(max_iter=100).fit(scaled(seen), source)
            yield "logistic score", lambda batch: linear.decision_function(scaled(table(batch)))
        boosted = HistGradientBoostingClassifier(
            max_iter=40, max_leaf_nodes=16, early_stopping=False, random_state=seed % 2**32
        ).fit(seen, source)

    def score(batch: Batch) -> np.ndarray:
        with threadpool_limits(1):
            return boosted.decision_function(table(batch))

    yield "gradient boosting score", score


def choose(proposals: list[Proposal], batches: tuple[Batch, Batch], n: int) -> tuple[Proposal, tuple[int, int]]:
    """The proposal that promises most on draws that it was not made on, and its hits on the likelier side and the other."""
    m = batches[0].size
    counts = [tuple(int(proposal.event(batch).sum()) for batch in batches) for proposal in proposals]
    hits = [
        (one, other) if proposal.first else (other, one)
        for proposal, (one, other) in zip(proposals, counts, strict=True)
    ]
    promised = promise(*np.array(hits).T, m, n)
    best = int(promised.argmax())
    chosen = proposals[best]
    return Proposal(chosen.event, chosen.first, float(promised[best])), hits[best]
