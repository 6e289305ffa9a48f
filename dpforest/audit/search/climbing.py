"""The search for a worst pair of neighbours: hill climbing on count tables, with any objective.

The traps that everyone should try first are in :mod:`~dpforest.audit.search.traps`; small universes are enumerated by
:func:`~dpforest.audit.exact.enumeration.datasets` and :func:`~dpforest.audit.exact.enumeration.neighbours`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np
from tqdm import tqdm

from dpforest.arithmetic import log
from dpforest.audit.exact.enumeration import law_of, released, worst_output
from dpforest.audit.sampling.bounds import check_confidence, clopper_pearson
from dpforest.audit.search.pairs import are_neighbours
from dpforest.audit.search.traps import check_universe, kinds_of, some_pairs
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, check_relation

__all__ = ["by_bound", "by_loss", "climb", "expected_bound", "log_ratio"]

Dataset = tuple[tuple[int, ...], ...]
Objective = Callable[[Dataset, Dataset], float]

_SIDEWAYS = 30  # moves of a climb that gain nothing: objectives have ledges


def climb(
    objective: Objective,
    cardinalities: Iterable[int],
    n_classes: int | Sequence[int],
    relation: str,
    *,
    n_max: int,
    restarts: int = 10,
    random_state=None,
    start: Iterable = (),
    progress: bool = False,
) -> tuple[float, tuple[Dataset, Dataset]]:
    """The neighbours on which an objective is largest, as far as hill climbing finds them.

    A pair is a count table, a record that differs, and a direction.  A move adds a record to the common part, takes
    one out or turns one into another, changes the record that differs, or swaps the two data sets.  From each start
    the first move that gains is made, or one that loses nothing and leads somewhere new, until there is none.

    Parameters
    ----------
    objective : callable
        ``objective(one, other)`` is a number, the larger the better, infinity included; data sets are sorted tuples of
        records ``(code_1, ..., code_m, class)``.  It is asked once for each pair.
    cardinalities : iterable of int
    n_classes : int or sequence of int
        Or the codes of the records' last entries, such as ``(0, 240)`` for the ends of a target's range.
    relation : {"add-remove", "replace-one"}
    n_max : int
        Largest number of records of a data set.
    restarts : int
        Climbs from random pairs, in addition to those from ``start``.
    random_state : None, int, Generator
        Same seed, same outcome.
    start : iterable of pairs
        Where to climb from first: pairs of data sets, in any order of their records, such as what an earlier search
        found, or :func:`~dpforest.audit.search.traps.traps`; those larger than ``n_max`` raise.
    progress : bool
        Show a progress bar, one step for each start.

    Returns
    -------
    value : float
    pair : tuple of two data sets
        The best that was seen.  It is a lower bound on the largest value, and no move improves it.

    Raises
    ------
    ValueError
        If there is nowhere to start, if a start is not a pair of neighbours of the universe, or if the objective is
        not a number.
    """
    world = _Tables(*check_universe(cardinalities, n_classes), relation, n_max)
    check_count(restarts, "restarts", least=0)
    rng = np.random.default_rng(random_state)
    starts = [world.checked(pair) for pair in start]
    bulk = some_pairs(world.sizes, world.last, relation, n_max=n_max, max_pairs=restarts, rng=rng)
    starts += [_sorted_pair(pair[1:]) for pair in bulk[:restarts]]
    if not starts:
        raise ValueError("nowhere to start: ask for restarts, or give start pairs")

    @cache
    def value(one: Dataset, other: Dataset) -> float:
        number = float(objective(one, other))
        if math.isnan(number):
            raise ValueError(f"the objective is not a number on {shown(one)}, {shown(other)}")
        return number

    best, where = -math.inf, starts[0]
    for pair in tqdm(starts, disable=not progress, unit="climb"):
        top, summit = _climb(value, world, pair, rng)
        if top > best:
            best, where = top, summit
        if best == math.inf:
            break
    return best, where


def _climb(value: Objective, world: _Tables, pair, rng: np.random.Generator):
    top, seen, ledge = value(*pair), {pair}, _SIDEWAYS
    best = top, pair
    while top < math.inf:
        level = None
        for move in world.moves(pair, rng):
            if (height := value(*move)) > top:
                break
            if height == top and level is None and move not in seen:
                level = move
        else:
            if level is None or not ledge:
                break
            move, height, ledge = level, top, ledge - 1
        pair, top = move, height
        seen.add(pair)
        if top > best[0]:
            best = top, pair
    return best


class _Tables:
    """Pairs of neighbours of one universe, and the moves between them."""

    def __init__(self, sizes: list[int], last: list[int], relation: str, n_max: int):
        self.sizes, self.last, self.n_max = sizes, last, check_count(n_max, "n_max")
        self.kinds = kinds_of(sizes, last)
        self._known = set(self.kinds)
        self._grows = check_relation(relation) == ADD_REMOVE
        self._relation = relation

    def checked(self, pair) -> tuple[Dataset, Dataset]:
        """A start, sorted."""
        one, other = _sorted_pair(tuple(pair)[-2:])
        unknown = (set(one) | set(other)) - self._known
        if unknown or not are_neighbours(one, other, self._relation) or one == other:
            why = f"it holds {sorted(unknown)[0]}" if unknown else f"its data sets are no neighbours, {self._relation}"
            raise ValueError(f"no start in this universe: {why}")
        if max(len(one), len(other)) > self.n_max:
            raise ValueError(f"a start has {max(len(one), len(other))} records, more than n_max = {self.n_max}")
        return one, other

    def moves(self, pair: tuple[Dataset, Dataset], rng: np.random.Generator) -> Iterator[tuple[Dataset, Dataset]]:
        """All pairs that are one move away, the cheap kinds of moves first, each kind in a random order."""
        one, other = map(Counter, pair)
        common = tuple(sorted((one & other).elements()))
        gone, come = tuple((one - other).elements()), tuple((other - one).elements())
        yield _pair(common, come, gone)
        room = len(common) + 1 < self.n_max
        thinner = [common[:i] + common[i + 1 :] for i in range(len(common)) if common[i] != common[i - 1] or not i]
        nearby = [(rest, gone, come) for rest in thinner]
        if room:
            nearby += [((*common, kind), gone, come) for kind in self.kinds]
        for kind in self.kinds:
            if gone and (kind,) not in (gone, come):
                nearby.append((common, (kind,), come))
            if come and (kind,) not in (gone, come):
                nearby.append((common, gone, (kind,)))
        yield from (_pair(*nearby[i]) for i in rng.permutation(len(nearby)))
        for i in rng.permutation(len(thinner) * len(self.kinds)):
            rest, kind = thinner[i // len(self.kinds)], self.kinds[i % len(self.kinds)]
            if (move := _pair((*rest, kind), gone, come)) != pair:
                yield move


def _pair(common, gone, come) -> tuple[Dataset, Dataset]:
    return _sorted_pair(((*common, *gone), (*common, *come)))


def _sorted_pair(pair) -> tuple[Dataset, Dataset]:
    one, other = (tuple(sorted(tuple(map(int, record)) for record in data)) for data in pair)
    return one, other


# -- objectives --------------------------------------------------------------------------------------------------


def log_ratio(law: Mapping[Hashable, float], other_law: Mapping[Hashable, float]) -> float:
    """Largest log ratio of an output's probability under the first law to that under the second."""
    return worst_output(law, other_law)[0]


def expected_bound(
    law: Mapping[Hashable, float], other_law: Mapping[Hashable, float], n: int, confidence=0.95
) -> float:
    """What the best event would prove about the loss in ``n`` draws per side, if it came as often as expected.

    The pair whose loss is largest is not the best pair to sample, for its telling output may be too rare to be seen.
    No event of a given probability under the second law is more probable under the first than the outputs of largest
    likelihood ratio, so only those sets are looked at.

    Parameters
    ----------
    law, other_law : mapping
        Output -> probability.  The event is to be more likely under the first.
    n : int
        Draws on either side.
    confidence : float
        Of the bound, see :func:`~dpforest.audit.sampling.bounds.epsilon_lower`.

    Returns
    -------
    float
        The lower bound at the expected counts, rounded against it; zero or more.
    """
    check_count(n, "n")
    error = (1 - check_confidence(confidence)) / 2
    outputs = [output for output, p in law.items() if p > 0]
    p = np.array([law[output] for output in outputs], dtype=float)
    q = np.array([other_law.get(output, 0.0) for output in outputs], dtype=float)
    with np.errstate(divide="ignore"):
        order = np.argsort(-p / q, kind="stable")
    hits, others = (np.minimum(np.cumsum(column[order]), 1.0) * n for column in (p, q))
    # a count that is whole but for rounding is that count
    low, _ = clopper_pearson(np.floor(hits + 1e-9).astype(int), n, 1 - error)
    _, high = clopper_pearson(np.ceil(others - 1e-9).astype(int), n, 1 - error)
    return float(max(0.0, np.max(log(low) - log(high), initial=0.0)))


def by_loss(estimator, *, view=released, law=law_of) -> Objective:
    """An objective for :func:`climb`: the exact loss from the one data set to the other, each law replayed once."""
    laws = _laws(estimator, view, law)
    return lambda one, other: log_ratio(laws(one), laws(other))


def by_bound(estimator, *, n: int, confidence: float = 0.95, view=released, law=law_of) -> Objective:
    """An objective for :func:`climb`: what ``n`` draws per side are expected to prove, :func:`expected_bound`."""
    check_count(n, "n")
    check_confidence(confidence)
    laws = _laws(estimator, view, law)
    return lambda one, other: expected_bound(laws(one), laws(other), n, confidence)


def _laws(estimator, view, law):
    schema = estimator.audited_schema()
    estimator.check_parameters()
    return cache(lambda dataset: law(estimator, schema, dataset, view))
