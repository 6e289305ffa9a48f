"""The exact privacy loss of the code that ships, over all neighbouring data sets of a small universe.

A fit is replayed on every branch of its randomness (:mod:`dpforest.chance`), which gives its exact output law on a
data set.  Comparing the laws of all neighbours gives the true loss, the pair where it is met, and the output that
shows it.  Data sets are multisets of records: no learner here looks at the order of the rows other than through
its own coins.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import combinations_with_replacement, product

import numpy as np
from tqdm import tqdm

from dpforest.chance import outcomes
from dpforest.estimators import PrivateForestClassifier, check_count
from dpforest.privacy import ADD_REMOVE, check_epsilon, check_relation, claim
from dpforest.schema import Schema
from dpforest.tree import Forest

__all__ = ["ExactAudit", "datasets", "exact_audit", "law_of", "neighbours", "released"]

Record = tuple[int, ...]  # feature codes, then the class code
Dataset = tuple[Record, ...]  # sorted
Law = dict[Hashable, float]


@dataclass(frozen=True)
class ExactAudit:
    """The outcome of an exact audit.

    Attributes
    ----------
    epsilon : float
        The true loss over the universe; infinite if an output is possible on one data set of a pair alone.
    claim : float
        What the learner promises.
    relation : str
    pair : tuple of two data sets
        A worst pair: the output is more probable on the first.
    output : hashable
        An output that shows it.
    probabilities : tuple of two floats
        Of that output on either data set.
    n_datasets, n_pairs, n_outputs : int
        How much was enumerated.
    """

    epsilon: float
    claim: float
    relation: str
    pair: tuple[Dataset, Dataset]
    output: Hashable
    probabilities: tuple[float, float]
    n_datasets: int
    n_pairs: int
    n_outputs: int

    @property
    def violated(self) -> bool:
        """Whether the true loss exceeds the claim by more than rounding."""
        return self.epsilon > self.claim * (1 + 1e-9)

    @property
    def unspent(self) -> float:
        """What the claim promises beyond the true loss on this universe; negative if it is violated."""
        return self.claim - self.epsilon

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "holds"
        return (
            f"claim {self.claim:.6g} under {self.relation}: {verdict}; exact loss {self.epsilon:.6g} "
            f"over {self.n_pairs} pairs of {self.n_datasets} data sets"
        )


def datasets(cardinalities: Iterable[int], n_classes: int, n_max: int) -> Iterator[Dataset]:
    """All multisets of at most ``n_max`` records over the given codes and classes, the empty one included."""
    records = list(product(*map(range, cardinalities), range(n_classes)))
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


def released(forest: Forest) -> Hashable:
    """What tells one released forest from another: all its arrays, as byte strings in the order of its fields."""
    return tuple(getattr(forest, column.name).tobytes() for column in fields(forest))


def law_of(
    estimator: PrivateForestClassifier, schema: Schema, dataset: Dataset, view: Callable[[Forest], Hashable] = released
) -> Law:
    """The exact law of what an observer sees of the estimator's fit on ``dataset``: output -> probability.

    ``view`` says what is seen of the forest: all of it, or, say, its predictions alone.
    """
    table = np.array(dataset, dtype=np.uint8).reshape(-1, schema.n_features + 1)
    codes, labels = np.ascontiguousarray(table[:, :-1].T), np.ascontiguousarray(table[:, -1])
    epsilon = check_epsilon(estimator.epsilon)

    def fit(chance):
        forest, _ = estimator._learn(codes, labels, schema, epsilon, chance)
        return view(forest)

    law: Law = defaultdict(float)
    for output, probability in outcomes(fit):
        law[output] += probability
    return dict(law)


@claim("thm-replay")
def exact_audit(
    estimator: PrivateForestClassifier, *, n_max: int, law: Callable[..., Law] = law_of, max_datasets: int = 20_000,
    view: Callable[[Forest], Hashable] = released, progress: bool = False,
) -> ExactAudit:  # fmt: skip
    """The true loss of ``estimator`` over all neighbouring data sets with at most ``n_max`` records.

    Parameters
    ----------
    estimator : PrivateForestClassifier
        Configured, not fitted.  Its schema is the universe: every combination of codes and classes.
    n_max : int
        Largest number of records.
    law : callable
        ``law(estimator, schema, dataset, view)`` gives the output law; :func:`law_of` replays the estimator's fit.
    max_datasets : int
        A larger universe raises, with its size.
    view : callable
        What an observer sees of the released forest, hashable; by default all of it.
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
        If the learner adds geometric noise, whose outcomes are infinitely many.
    """
    check_count(n_max, "n_max")
    schema = estimator._public_schema(None, None)
    estimator._check_parameters()
    cardinalities = schema.cardinalities(estimator.n_bins)
    kinds = math.prod(cardinalities.tolist()) * schema.n_classes
    size = math.comb(kinds + n_max, n_max)
    if size > max_datasets:
        raise ValueError(
            f"{kinds} kinds of records and n_max = {n_max} make {size} data sets, more than max_datasets = "
            f"{max_datasets}: lower n_max, use fewer features, or raise max_datasets"
        )
    every = list(datasets(cardinalities, schema.n_classes, n_max))
    laws = {
        dataset: law(estimator, schema, dataset, view) for dataset in tqdm(every, disable=not progress, unit="data set")
    }
    pairs = list(neighbours(every, estimator.relation))
    found = (_worst(laws, *pair) for unordered in pairs for pair in (unordered, unordered[::-1]))
    loss, pair, output, probabilities = max(found, key=lambda worst: worst[0])
    return ExactAudit(
        loss, check_epsilon(estimator.epsilon), estimator.relation, pair, output, probabilities, len(every), len(pairs),
        len(set().union(*laws.values())),
    )  # fmt: skip


def _worst(laws: dict[Dataset, Law], one: Dataset, other: Dataset):
    """The output whose probability on ``one`` exceeds that on ``other`` by the largest factor."""
    p, q = laws[one], laws[other]
    output = max(p, key=lambda out: p[out] / q[out] if q.get(out) else math.inf)
    below = q.get(output, 0.0)
    return (math.log(p[output] / below) if below else math.inf), (one, other), output, (p[output], below)
