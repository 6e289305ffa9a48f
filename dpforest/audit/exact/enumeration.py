"""The exact privacy loss of the code that ships, over all neighbouring data sets of a small universe.

A fit is replayed on every branch of its randomness (:mod:`dpforest.chance`), which gives its exact output law on a
data set.  Comparing the laws of all neighbours gives the true loss, the pair where it is met, and the output that
shows it.  Data sets are multisets of records: no learner here looks at the order of the rows other than through
its own coins.  Noisy answers have infinitely many values; what they add to the loss is known (lem-geometric-leaves).

Under a delta the laws are compared by the rho that they need (:mod:`~dpforest.audit.exact.divergence`): it is what the
ledger adds up, and what discrete Gaussian noise attains.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from tqdm import tqdm

from dpforest import arithmetic
from dpforest.audit.exact.divergence import rho_of_laws
from dpforest.audit.exact.laws import (
    Dataset,
    Law,
    Shape,
    answers,
    check_counts_unused,
    describe,
    law_of,
    law_of_shapes,
    released,
)
from dpforest.audit.exact.multisets import check_size
from dpforest.audit.exact.noisy import geometric_log_ratio, mixture_log_ratio
from dpforest.audit.plain import plain
from dpforest.chance import NotEnumerableError
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.parameters import check_count
from dpforest.privacy import ADD_REMOVE, check_epsilon, check_relation, claim, epsilon_of, rho_of
from dpforest.schema import Schema

__all__ = ["ExactAudit", "audit_pairs", "datasets", "exact_audit", "neighbours", "worst_output"]


@dataclass(frozen=True)
class ExactAudit:
    """The outcome of an exact audit.

    Attributes
    ----------
    epsilon : float
        The true loss over the universe; infinite if an output is possible on one data set of a pair alone.  With a
        delta it is the epsilon that ``rho`` assures at this delta.
    claim : float
        What the learner promises.
    relation : str
    pair : tuple of two data sets
        A worst pair: the output is more probable on the first.
    output : hashable
        An output that shows it; with a delta the one that adds most to the divergence.
    probabilities : tuple of two floats
        Of that output on either data set.
    n_datasets, n_pairs, n_outputs : int
        How much was enumerated; outputs that differ in noisy counts alone are counted once.
    ratio : Fraction or None
        The exact ratio of the two probabilities, where ``base`` was given; ``epsilon`` is its logarithm.
    shown : str
        The output in words, where the whole forest is seen.
    delta : float
        The delta that the learner promises with its epsilon; 0 for none.
    rho, claimed_rho : float or None
        With a delta: the largest ``D_a / a`` of all pairs at the orders that were looked at
        (:data:`~dpforest.audit.exact.divergence.ORDERS`), and what the learner may spend.
    order : int or None
        At which the largest is met.
    """

    epsilon: float
    claim: float
    relation: str
    pair: tuple[Dataset, Dataset]
    output: Hashable
    probabilities: tuple[float, float]
    n_datasets: int
    n_pairs: int
    n_outputs: float
    ratio: Fraction | None = None
    shown: str = ""
    delta: float = 0.0
    rho: float | None = None
    claimed_rho: float | None = None
    order: int | None = None

    @property
    def violated(self) -> bool:
        """Whether the true loss exceeds the claim by more than rounding; with a delta, the rho what may be spent."""
        if self.rho is not None and self.claimed_rho is not None:
            return self.rho > self.claimed_rho * (1 + 1e-9)
        return self.epsilon > self.claim * (1 + 1e-9)

    @property
    def unspent(self) -> float:
        """What the claim promises beyond the true loss on this universe; negative if it is violated."""
        return self.claim - self.epsilon

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "holds"
        if self.rho is not None:
            return (
                f"claim {self.claim:.6g} at delta {self.delta:.6g}, a rho of {self.claimed_rho:.6g}, under "
                f"{self.relation}: {verdict}; exact rho {self.rho:.6g}, at order {self.order}, "
                f"over {self.n_pairs} pairs of {self.n_datasets} data sets"
            )
        return (
            f"claim {self.claim:.6g} under {self.relation}: {verdict}; exact loss {self.epsilon:.6g} "
            f"over {self.n_pairs} pairs of {self.n_datasets} data sets"
        )

    def to_dict(self) -> dict:
        """What is in it, ready for JSON; an infinite loss is the string ``"inf"``."""
        rho = (
            {}
            if self.rho is None
            else {
                "delta": self.delta,
                "rho": plain(self.rho),
                "claimed_rho": self.claimed_rho,
                "order": self.order,
            }
        )
        return rho | {
            "epsilon": plain(self.epsilon),
            "claim": plain(self.claim),
            "relation": self.relation,
            "violated": self.violated,
            "pair": [[list(map(int, record)) for record in dataset] for dataset in self.pair],
            "output": self.shown or str(self.output),
            "probabilities": [float(p) for p in self.probabilities],
            "ratio": None if self.ratio is None else str(self.ratio),
            "n_datasets": self.n_datasets,
            "n_pairs": self.n_pairs,
        }


def datasets(cardinalities: Iterable[int], n_classes: int | Iterable[int], n_max: int) -> Iterator[Dataset]:
    """All multisets of at most ``n_max`` records over the given codes and classes, the empty one included.

    ``n_classes`` may be the codes of the last entry themselves, such as ``(0, 240)`` for the ends of a target's range.
    """
    last = range(n_classes) if isinstance(n_classes, int) else n_classes
    records = list(product(*map(range, cardinalities), last))
    for size in range(n_max + 1):
        yield from combinations_with_replacement(records, size)


def neighbours(every: Iterable[Dataset], relation: str) -> Iterator[tuple[Dataset, Dataset]]:
    """All unordered pairs of neighbours among the data sets, each once."""
    if check_relation(relation) == ADD_REMOVE:
        for larger in every:
            for record in dict.fromkeys(larger):
                index = larger.index(record)
                yield larger[:index] + larger[index + 1 :], larger
        return
    shared = defaultdict(list)  # what is left when one record is taken out -> the data sets it may have come from
    for dataset in every:
        for record in dict.fromkeys(dataset):
            index = dataset.index(record)
            shared[dataset[:index] + dataset[index + 1 :]].append(dataset)
    for group in shared.values():
        yield from ((one, other) for i, one in enumerate(group) for other in group[i + 1 :])


@claim("thm-replay")
def exact_audit(
    estimator: PrivateEstimator,
    *,
    n_max: int,
    targets: Iterable[int] | None = None,
    law: Callable[..., Law] = law_of,
    max_datasets: int = 20_000,
    view: Callable[[Any], Hashable] = released,
    base=None,
    progress: bool = False,
) -> ExactAudit:
    """The true loss of ``estimator`` over all neighbouring data sets with at most ``n_max`` records.

    Parameters
    ----------
    estimator : PrivateEstimator
        Configured, not fitted.  Its schema is the universe: every combination of codes and classes.
    n_max : int
        Largest number of records.
    targets : iterable of int, optional
        For a regressor, the steps of the target's grid that records may have; None takes the two ends, 0 and
        ``TARGET_LEVELS``.
    law : callable
        ``law(estimator, schema, dataset, view)`` gives the output law; the default,
        :func:`~dpforest.audit.exact.laws.law_of`, replays the estimator's fit.
    max_datasets : int
        A larger universe raises, with its size.
    view : callable
        What an observer sees of the released forest, hashable; by default all of it.
    base : int or Fraction, optional
        Compute in fractions.  Every ``exp(rate * score)`` must then be a whole power of ``base``, as it is when scores
        are whole numbers and ``epsilon`` is a suitable multiple of ``log(base)``; anything else raises.
    progress : bool
        Show a progress bar.

    Returns
    -------
    ExactAudit

    Raises
    ------
    ValueError
        If the universe is too large to enumerate, or ``n_max`` is not a whole number from 1 on.
    NotEnumerableError
        If the learner draws what has infinitely many values and is not covered: Poisson numbers, or a noisy answer
        that is neither released as it is, nor compared with numbers, nor asked for its largest entries.

    Notes
    -----
    Noisy answers that are compared, or asked for their largest entries alone, are replayed by what comes of it.  Those
    that are released must not be used for anything else; that nothing else depends on them is checked on the data sets
    of the worst pair.  Of a linear model the noisy sums are taken to be released, from which it is computed: what is
    found is the loss of the sums, and the model loses no more.

    Of a learner with a delta the rho is measured, at whole orders: there its noise attains what it is charged
    (:prf:ref:`thm-discrete-gaussian`), so that a rate that is off by any factor shows.
    """
    check_count(n_max, "n_max")
    schema = estimator.audited_schema(estimator.promised_delta())
    estimator.check_parameters()
    every = _every(schema, estimator.bins(schema), n_max, max_datasets, targets)
    pairs = list(neighbours(every, estimator.relation))
    return audit_pairs(estimator, every, pairs, law=law, view=view, base=base, progress=progress)


def audit_pairs(
    estimator: PrivateEstimator,
    every: Iterable[Dataset],
    pairs: Iterable[tuple[Dataset, Dataset]],
    *,
    law: Callable[..., Law] = law_of,
    view: Callable[[Any], Hashable] = released,
    base=None,
    progress: bool = False,
) -> ExactAudit:
    """The true loss of ``estimator`` over the given pairs alone; the other parameters as in :func:`exact_audit`.

    Parameters
    ----------
    every : iterable of data sets
        Those that are replayed; each a sorted tuple of records.
    pairs : iterable of pairs of data sets
        Of those in ``every``; both ways round are looked at.
    """
    delta = estimator.promised_delta()
    schema, every, pairs = estimator.audited_schema(delta), list(every), list(pairs)
    own, shapes = law is law_of, False
    if delta and base is not None:
        raise ValueError("fractions are for a loss without exception: with a delta leave base out")
    if base is not None:
        law = partial(law_of, base=base)

    met = set().union(*pairs)

    def laws_by(law: Callable[..., dict]) -> dict[Dataset, dict]:
        bar = tqdm([dataset for dataset in every if dataset in met], disable=not progress, unit="data set")
        return {dataset: law(estimator, schema, dataset, view) for dataset in bar}

    unsaid: dict[Dataset, Law] = {}

    def shaped(estimator, schema: Schema, dataset: Dataset, view) -> dict:
        unsaid[dataset] = {}
        return law_of_shapes(estimator, schema, dataset, view, unsaid[dataset])

    try:
        laws = laws_by(law)
    except NotEnumerableError:
        if not own or base is not None or view is not released:
            raise
        laws, shapes = laws_by(shaped), True
    ways = ((one, other) for pair in pairs for one, other in (pair, pair[::-1]))
    compare = _costliest if delta else _worst_shape if shapes else worst_output
    found = ((way, *compare(*map(laws.__getitem__, way))) for way in ways)
    pair, loss, output, probabilities, *order = max(found, key=lambda worst: worst[1])
    if shapes:
        for dataset in pair:
            check_counts_unused(estimator, schema, dataset, unsaid[dataset])
    exact = base is not None and probabilities[1] > 0
    shown = describe(estimator, schema, pair[0], output) if own and view is released else ""
    claimed = check_epsilon(estimator.epsilon)
    rho = (delta, loss, rho_of(claimed, delta), *order) if delta else ()
    return ExactAudit(
        epsilon_of(loss, delta) if delta else loss,
        claimed,
        estimator.relation,
        pair,
        output,
        probabilities,
        len(every),
        len(pairs),
        len(set().union(*laws.values())),
        Fraction(probabilities[0], probabilities[1]) if exact else None,
        shown,
        *rho,
    )


def _every(schema: Schema, n_bins: int, n_max: int, most: int, targets) -> list[Dataset]:
    cardinalities, last = schema.cardinalities(n_bins), answers(schema, targets)
    kinds = math.prod(cardinalities.tolist()) * len(last)
    check_size(kinds, n_max, most, "max_datasets", "raise max_datasets, or audit path by path (path_audit)")
    return list(datasets(cardinalities, last, n_max))


def worst_output(law: Mapping[Hashable, Any], other: Mapping[Hashable, Any]) -> tuple[float, Hashable, tuple]:
    """The output whose probability under the first law exceeds that under the second by the largest factor.

    Returns
    -------
    loss : float
        Logarithm of the factor; infinite if only the first law has the output.
    output : hashable
    probabilities : tuple of two numbers
        Of the output, under either law.
    """
    possible = (output for output, p in law.items() if p > 0)
    output = max(possible, key=lambda output: law[output] / other[output] if other.get(output) else math.inf)
    p, q = law[output], other.get(output, 0.0)
    return (_log(float(p / q)) if q else math.inf), output, (p, q)


@lru_cache(maxsize=1 << 16)
def _log(ratio: float) -> float:
    """The logarithm of a ratio; the data sets of a universe have few different ones."""
    return arithmetic.log(ratio)


def _costliest(p: Mapping[Hashable, Any], q: Mapping[Hashable, Any]) -> tuple[float, Hashable, tuple, int]:
    """The rho that two laws need, the output that adds most to it, its probabilities, and the order."""
    rho, order, output = rho_of_laws(p, q)
    both = [law.get(output, 0.0) for law in (p, q)]
    return rho, output, tuple(x.probability if isinstance(x, Shape) else x for x in both), order


def _worst_shape(p: dict[Hashable, Shape], q: dict[Hashable, Shape]) -> tuple[float, Hashable, tuple]:
    """As :func:`worst_output`, with the worst noise in the leaves; the probabilities are those of the shape."""

    def loss(output):
        if output not in q:
            return math.inf
        mine, theirs = p[output], q[output]
        if len(mine.counts) == len(theirs.counts) == 1 and mine.rates.shape == theirs.rates.shape:
            noise = geometric_log_ratio(mine.counts[0] - theirs.counts[0], mine.rates, theirs.rates).sum()
            return arithmetic.log(mine.probability / theirs.probability) + noise
        if not np.array_equal(mine.rates, theirs.rates):
            raise NotEnumerableError("the rates of the noise depend on coins and on records, which no lemma covers")
        return mixture_log_ratio(mine.counts, mine.weights, theirs.counts, theirs.weights, mine.rates)

    output = max(p, key=loss)
    below = q[output].probability if output in q else 0.0
    return float(loss(output)), output, (p[output].probability, below)
