"""The mechanisms of the library as an auditor sees them: exact losses on small universes, seeded draws, neighbours.

A selection is audited with each score of :mod:`dpforest.scores`, at the rate that calibrates it.  What a score sees of
a record is the child that the record falls into under each candidate, and its class or target; so a universe is a
list of kinds of records, and of what each adds to the tables of the candidates.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np

from dpforest import mechanisms, scores
from dpforest.arithmetic import expm1, log
from dpforest.arithmetic.fixed import STEPS, below_best
from dpforest.audit.exact.enumeration import ExactAudit, datasets, neighbours
from dpforest.audit.exact.laws import Dataset, Law, Record
from dpforest.audit.exact.multisets import Multisets
from dpforest.audit.report.subjects import Scale, Target
from dpforest.audit.sampling.bounds import wilson
from dpforest.audit.search.pairs import Pair
from dpforest.chance import Seeded
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, check_relation
from dpforest.schema import TARGET_LEVELS
from dpforest.scores import Score

__all__ = ["CAP", "Counts", "SelectionMechanism", "TextbookLaplace", "best_bound", "universe"]

#: The public cap on the number of records, for scores whose range depends on one.
CAP = 64

_GROUPS = 3
_TARGETS = 0.0, 0.5, 1.0


def universe(score: Score) -> tuple[list[Record], np.ndarray, list[str]]:
    """Kinds of records; what each adds to the tables, shape (kinds, candidates, children, width); the candidates.

    Two binary features and a class, of two, or a target, of three; the candidates are a split on either feature and
    the undivided node.  For correlations, which are of cuts and of classes in an order: a cut by either feature, and
    the first one's mirror image, for three classes, or for two in several parts; a record's part is then its first
    entry.  For the mean: groups of records, one child each.
    """
    pair = [(a, b) for a in (0, 1) for b in (0, 1)]
    moments = np.array([(1, y, y * y) for y in _TARGETS])[:, : score.n_moments or None]
    kinds: list[Record]
    cuts = ["cut by x0", "its mirror image", "cut by x1"]
    if score.parts > 1:
        kinds = [(part, a, b, label) for part in range(score.parts) for a, b in pair for label in range(2)]
        places = [[(0, a), (1, 1 - a), (2, b)] for _, a, b, _ in kinds]
        return kinds, _tables(places, np.eye(2 * score.parts)[[2 * part + c for part, _, _, c in kinds]], 2), cuts
    if score in (scores.pearson, scores.absolute_pearson):
        kinds = [(a, b, label) for a, b in pair for label in range(3)]
        places = [[(0, a), (1, 1 - a), (2, b)] for a, b, _ in kinds]
        return kinds, _tables(places, _of(kinds, np.eye(3)), 2), cuts
    if score is scores.mean:
        kinds = [(group, level) for group in range(_GROUPS) for level in range(len(_TARGETS))]
        places = [[(group, 0)] for group, _ in kinds]
        return kinds, _tables(places, _of(kinds, moments), 1), [f"group {group}" for group in range(_GROUPS)]
    values = moments if score.n_moments else np.eye(2)
    kinds = [(a, b, value) for a, b in pair for value in range(len(values))]
    places = [[(0, a), (1, b), (2, 0)] for a, b, _ in kinds]
    return kinds, _tables(places, _of(kinds, values), 2), ["split on x0", "split on x1", "the undivided node"]


def _of(kinds, values: np.ndarray) -> np.ndarray:
    """What each kind of record adds, by its last entry."""
    return values[[kind[-1] for kind in kinds]]


def _tables(places, rows: np.ndarray, children: int) -> np.ndarray:
    add = np.zeros((len(rows), 3, children, rows.shape[1]))
    for kind, where in enumerate(places):
        for candidate, child in where:
            add[kind, candidate, child] = rows[kind]
    return add


class SelectionMechanism(Target):
    """A selection mechanism by a score, calibrated by the score's range.  Data sets are tuples of records.

    Parameters
    ----------
    mechanism : {"exponential", "permute-and-flip"}
    score : Score
    relation : {"add-remove", "replace-one"}
    epsilon : float
    """

    def __init__(self, mechanism: str, score: Score, relation: str, epsilon: float):
        self.mechanism, self.score, self.relation, self.epsilon = mechanism, score, check_relation(relation), epsilon
        self.kinds, self.add, self.candidates = universe(score)
        self.record_kinds = len(self.kinds)
        self.cap = CAP if score.needs_cap else math.inf
        self.rate = epsilon / (score.exact_range(relation, self.cap) * STEPS)
        self._law = {
            "exponential": mechanisms.exponential_law,
            "permute-and-flip": mechanisms.permute_and_flip_law,
        }[mechanism]
        self._best = cache(self._search)

    def utilities(self, dataset: Dataset) -> np.ndarray:
        """How many steps each candidate is behind the best."""
        times = Counter(dataset)
        return self._score_gap(np.tensordot([times[kind] for kind in self.kinds], self.add, 1)[None])[0]

    def _score_gap(self, tables: np.ndarray) -> np.ndarray:
        """What a selection sees of these tables, (n, candidates): exact scores, as in a learner."""
        if self.score.n_moments:  # of targets in [0, 1]
            tables = tables * float(TARGET_LEVELS) ** np.arange(tables.shape[-1])
        values = self.score.exact(np.rint(tables).astype(np.int64))
        return below_best(values, np.ones(values.shape[1:], dtype=bool))

    def law(self, dataset: Dataset) -> Law:
        """Probability of each candidate."""
        return dict(enumerate(self._law(self.utilities(dataset), self.rate).tolist()))

    def sample(self, dataset: Dataset, size: int, rng: np.random.Generator) -> np.ndarray:
        """Chosen candidates."""
        utilities = np.broadcast_to(self.utilities(dataset), (size, len(self.candidates)))
        return mechanisms.select(self.mechanism, utilities, self.rate, Seeded(rng))

    def exact(self, scale: Scale, progress: bool = False) -> ExactAudit:
        """The worst loss over all neighbours of few records, by themselves and with many equal records added."""
        (loss, one, other, candidate), _, (n_datasets, n_pairs) = self._best(scale)
        return ExactAudit(
            epsilon=loss,
            claim=self.epsilon,
            relation=self.relation,
            pair=(one, other),
            output=self.candidates[candidate],
            probabilities=(self.law(one)[candidate], self.law(other)[candidate]),
            n_datasets=n_datasets,
            n_pairs=n_pairs,
            n_outputs=len(self.candidates),
        )

    def pairs(self, scale: Scale) -> list[Pair]:
        """The pair of the largest loss, and the one whose loss is best seen in ``scale.n`` draws."""
        worst, telling, _ = self._best(scale)
        return [Pair("worst pair", *worst[1:3]), Pair("telling pair", *telling[1:])]

    def _search(self, scale: Scale):
        """The worst pair, the most telling one, and how many data sets and pairs were looked at."""
        every = Multisets(len(self.kinds), scale.most(self.engine, self.record_kinds))
        rows = every.rows()
        one, other, plus, instead = self._changes(every, rows)
        tables = np.tensordot(rows.astype(float), self.add, 1)
        crowds = [(kind, size) for size in scale.crowds for kind in range(len(self.kinds) if size else 1)]
        crowds = [(kind, size) for kind, size in crowds if size + every.n_max <= self.cap]
        worst = telling = (-math.inf, (), ())
        for kind, size in crowds:
            laws = self._law(self._score_gap(tables + size * self.add[kind]), self.rate)
            logs = log(laws)
            gap = logs[one] - logs[other]
            losses = np.abs(gap).max(axis=1)

            def found(at, kind=kind, size=size):
                row = rows[other[at]].astype(int)
                row[kind] += size
                return self._datasets(row, plus[at], instead[at])

            if losses[at := int(losses.argmax())] > worst[0] + 1e-12:
                candidate = int(np.abs(gap[at]).argmax())
                both = found(at)
                worst = (float(losses[at]), *(both if gap[at, candidate] > 0 else both[::-1]), candidate)
            hopeful = np.flatnonzero(losses > telling[0])  # no bound exceeds the loss
            if len(hopeful):
                seen = best_bound(laws[one[hopeful]], laws[other[hopeful]], scale.n)
                if seen[at := int(seen.argmax())] > telling[0] + 1e-12:
                    telling = (float(seen[at]), *found(hopeful[at]))
        return worst, telling, (len(rows) * len(crowds), len(one) * len(crowds))

    def _changes(self, every: Multisets, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """All pairs of neighbours: indices of both sides; the record that only the first has, or only the second."""
        common = np.flatnonzero(rows.sum(axis=1) < every.n_max)
        larger = [every.rank(rows[common], kind) for kind in range(len(self.kinds))]
        if self.relation == ADD_REMOVE:
            changes = [(up, common, kind, -1) for kind, up in enumerate(larger)]
        else:
            pairs = list(combinations(range(len(larger)), 2))
            if self.score.parts > 1:  # the record that comes has the coin of the one that goes
                pairs = [(a, b) for a, b in pairs if self.kinds[a][0] == self.kinds[b][0]]
            changes = [(larger[a], larger[b], a, b) for a, b in pairs]
        one, other, plus, instead = zip(*changes, strict=True)
        repeated = (np.repeat(kinds, len(common)) for kinds in (plus, instead))
        return np.concatenate(one), np.concatenate(other), *repeated

    def _datasets(self, row: np.ndarray, plus: int, instead: int) -> tuple[Dataset, Dataset]:
        """Both sides of a change, from the second one's counts of each kind of record."""
        other = [kind for kind, times in zip(self.kinds, row.tolist(), strict=True) for _ in range(times)]
        one = [*other, self.kinds[plus]]
        if instead >= 0:
            one.remove(self.kinds[instead])
        return tuple(sorted(one)), tuple(sorted(other))


class _CountTarget(Target):
    """How many records there are of either class, with noise: one change is as telling as another."""

    record_kinds = 2
    common: Dataset
    gone: Record
    come: Record

    def __init__(self, relation: str, epsilon: float):
        self.relation, self.epsilon = check_relation(relation), epsilon

    def pairs(self, scale: Scale) -> list[Pair]:
        """One record more, or a record that changes class."""
        one, other = (tuple(sorted((*self.common, record))) for record in (self.gone, self.come))
        if self.relation == ADD_REMOVE:
            return [Pair("one record more", one, self.common)]
        return [Pair("another class", one, other)]


class Counts(_CountTarget):
    """A histogram of two classes with two-sided geometric noise, calibrated by its L1 sensitivity."""

    common, gone, come = ((0,), (1,)), (0,), (1,)

    def __init__(self, relation: str, epsilon: float):
        super().__init__(relation, epsilon)
        self.rate = epsilon / HISTOGRAM_SENSITIVITY[relation]

    def sample(self, dataset: Dataset, size: int, rng: np.random.Generator) -> np.ndarray:
        """Noisy counts, shape (size, 2)."""
        return mechanisms.two_sided_geometric(np.broadcast_to(_histogram(dataset), (size, 2)), self.rate, Seeded(rng))

    def exact(self, scale: Scale, progress: bool = False) -> ExactAudit:
        """The worst loss over neighbours of few records, from the law of the noise.

        All outputs of a window around the counts are compared: outside of it the ratio no longer changes.
        """
        n_max = scale.most(self.engine, self.record_kinds)
        window = np.arange(-n_max, 2 * n_max + 1)
        logs = {c: log(mechanisms.two_sided_geometric_law(window - c, self.rate)) for c in range(n_max + 1)}
        every = list(datasets((), 2, n_max))
        pairs = list(neighbours(every, self.relation))

        def worst(one: Dataset, other: Dataset) -> tuple:
            counts = [tuple(_histogram(data).tolist()) for data in (one, other)]
            gaps = [logs[a] - logs[b] for a, b in zip(*counts, strict=True)]
            return float(sum(gap.max() for gap in gaps)), *counts, tuple(int(window[gap.argmax()]) for gap in gaps)

        both = [pair for one, other in pairs for pair in ((one, other), (other, one))]
        (loss, *counts, output), pair = max((worst(*pair), pair) for pair in both)
        p, q = (float(np.prod(mechanisms.two_sided_geometric_law(np.subtract(output, of), self.rate))) for of in counts)
        return ExactAudit(
            epsilon=loss,
            claim=self.epsilon,
            relation=self.relation,
            pair=pair,
            output=str(output),
            probabilities=(p, q),
            n_datasets=len(every),
            n_pairs=len(pairs),
            n_outputs=math.inf,
        )


class TextbookLaplace(_CountTarget):
    """The number of records of class 1 with Laplace noise, as textbooks write it and computers round it."""

    common, gone, come = ((0,),), (1,), (0,)

    def __init__(self, relation: str, epsilon: float):
        super().__init__(relation, epsilon)
        self.rate = epsilon  # a count changes by at most one, under both relations

    def sample(self, dataset: Dataset, size: int, rng: np.random.Generator) -> np.ndarray:
        """Noisy counts, doubles, shape (size,)."""
        uniform = rng.integers(1, 2**53, size=size) * 2.0**-53
        return mechanisms.laplace_textbook(np.full(size, _histogram(dataset)[1]), self.rate, uniform)

    def exact(self, scale: Scale, progress: bool = False) -> ExactAudit:
        """A witness: an output that one count can give and the other cannot, whatever the uniform number is."""
        ((_, one, other),) = self.pairs(scale)
        for output in map(float, self.sample(one, 100, np.random.default_rng(0))):
            here, there = (self.reached_by(output, int(_histogram(data)[1])) for data in (one, other))
            if here and not there:
                return ExactAudit(
                    epsilon=math.inf,
                    claim=self.epsilon,
                    relation=self.relation,
                    pair=(one, other),
                    output=output.hex(),
                    probabilities=(here * 2.0**-53, 0.0),
                    n_datasets=2,
                    n_pairs=1,
                    n_outputs=math.inf,
                )
        raise AssertionError("no witness among 100 outputs: the textbook mechanism is not what it was")

    def reached_by(self, output: float, count: int, window: int = 300) -> int:
        """How many uniform numbers, multiples of 2^-53 in (0, 1), give this output from this count.

        The noise grows with the uniform number, so they lie together, next to the real inverse: ``window`` steps to
        either side are far more than its rounding error and the widest run of equal outputs.
        """
        noise = output - count
        middle = round(2.0**53 * (0.5 - math.copysign(1, noise) * expm1(-abs(noise) * self.rate) / 2))
        steps = np.arange(max(1, middle - window), min(2**53, middle + window + 1))
        return int(
            (mechanisms.laplace_textbook(np.full(len(steps), count), self.rate, steps * 2.0**-53) == output).sum()
        )


def _histogram(dataset: Dataset) -> np.ndarray:
    return np.bincount([record[-1] for record in dataset], minlength=2)


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
        x, y = (np.cumsum(np.take_along_axis(law, order, axis=1), axis=1).clip(0, 1) for law in (one, other))
        low, high = wilson(n * x, n, 1.96)[0], wilson(n * y, n, 1.96)[1]
        best = np.maximum(best, (log(low) - log(high)).max(axis=1))
    return best
