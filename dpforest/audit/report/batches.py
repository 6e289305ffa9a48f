"""Many independent fits of a learner at once, through the seeded source that ships, for the auditor that samples.

One fit at a time is slow.  Learners whose trees do not look at each other are fitted together: every fit is a tree, or
a few trees, of one large forest.  Nothing is drawn otherwise than in a fit of its own: the learner's ``_grow``, the
curator's queries, the mechanisms and :class:`~dpforest.chance.Seeded` are those that ship.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from dpforest import mechanisms
from dpforest.audit.exact.laws import Dataset, Law, encode, law_of, law_of_shapes
from dpforest.chance import Chance, Seeded
from dpforest.curator import Curator
from dpforest.curator.memory import InMemoryRecords, RecordCoins
from dpforest.learners.base import PrivateEstimator
from dpforest.messages import shown
from dpforest.models.boosted import SCALE, BoostedForest
from dpforest.models.forest import Forest
from dpforest.privacy import check_epsilon, epsilon_of, rho_of
from dpforest.schema import Schema

__all__ = ["Fits", "SumsSampler", "Written", "signatures"]

#: How the trees of one forest may stand for forests of their own.  "parallel": each tree learns from its own records,
#: with the whole budget.  "sequential": each reads every record, with an equal share of the budget.
SHARING = ("parallel", "sequential")

_AT_A_TIME = 20_000  # trees


@dataclass(frozen=True, repr=False)
class Written:
    """A forest in words, to be compared as a whole: an auditor need not look at the length of the text."""

    words: str

    def __repr__(self) -> str:
        return self.words


class Fits:
    """Samples the released forest of a learner's fits on one data set.

    Parameters
    ----------
    estimator : PrivateEstimator
        Configured, not fitted; its schema is a small universe.
    depth : int
        Splits on the longest path that a tree may have.
    sharing : {"parallel", "sequential"} or None
        How its trees share records and budget, if they may be fitted together; None fits one forest at a time.
    labels : bool
        Whether a leaf says one label; else it says noisy numbers.
    masks : bool
        Whether to look at where features of two codes are cut.
    delta : float
        Of the claim that is audited; a learner that promises a larger one is refused.
    by_answers : bool
        Whether to look at what a fit says of every record, see :func:`answers`, where the number of its trees varies.

    Notes
    -----
    Call it with ``(dataset, size, rng)``.  With ``labels`` it returns a list of forests in words, such as
    ``f0(no, f1(no, yes))``: a split on f0, whose first child is a leaf.  Else it returns rows of integers, see
    :func:`signatures`.
    """

    def __init__(
        self,
        estimator: PrivateEstimator,
        depth: int,
        sharing: str | None = None,
        labels: bool = False,
        masks: bool = False,
        delta: float = 0.0,
        by_answers: bool = False,
    ):
        if sharing is not None and sharing not in SHARING:
            raise ValueError(f"sharing must be one of {SHARING} or None, not {shown(sharing)}")
        self.estimator, self.sharing, self.labels = estimator, sharing, labels
        self.schema = estimator.audited_schema(delta)
        self.epsilon = check_epsilon(estimator.epsilon)
        self.n_trees = int(getattr(estimator, "n_estimators", 1))
        n_bins = estimator.bins(self.schema)
        self.rows: Callable[[Any], np.ndarray] = (
            partial(answers, cardinalities=self.schema.cardinalities(n_bins))
            if by_answers
            else partial(signatures, schema=self.schema, n_bins=n_bins, depth=depth, labels=labels, masks=masks)
        )
        self._depth = depth
        self._cardinalities = self.schema.cardinalities(estimator.bins(self.schema)).tolist()
        self._rows: dict[Written, np.ndarray] = {}

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> np.ndarray | list[Written]:
        chance = Seeded(rng)
        if self.sharing is None:
            every = [self._learn(self.estimator, dataset, self.epsilon, chance, None) for _ in range(size)]
            found = np.concatenate([self.rows(forest).reshape(1, -1) for forest in every])
        else:
            step = max(1, _AT_A_TIME // self.n_trees)
            sizes = [min(step, size - start) for start in range(0, size, step)]
            found = np.concatenate([self._together(dataset, copies, chance) for copies in sizes])
        return self._said(found) if self.labels else found

    @property
    def features(self):
        """What is at each place of the trees, for forests in words; see :func:`signatures`."""
        return (lambda outputs: np.array([self._rows[said] for said in outputs])) if self.labels else None

    def law(self, dataset: Dataset) -> Law:
        """The exact law of what is sampled, by replay; for learners that add no noise to counts."""
        return law_of(self.estimator, self.schema, dataset, self.view)

    def view(self, forest: Forest) -> Hashable:
        """One forest, as it is sampled."""
        rows = self.rows(forest).reshape(1, -1)
        return self._said(rows)[0] if self.labels else tuple(rows[0].tolist())

    def _said(self, rows: np.ndarray) -> list[Written]:
        """Each row in words; the words are made once for each forest that is met."""
        kinds, which = np.unique(rows, axis=0, return_inverse=True)
        said = [Written("; ".join(map(self._tree, kind.reshape(self.n_trees, -1).tolist()))) for kind in kinds]
        self._rows.update(zip(said, kinds, strict=True))
        return [said[at] for at in which.ravel().tolist()]

    def _tree(self, row: list[int], place: int = 0) -> str:
        code = row[place]
        if code >= len(self._cardinalities):
            return str(self.schema.classes[code - len(self._cardinalities)])  # type: ignore[index]
        widest = max(2, *self._cardinalities)
        places = [place * widest + 1 + child for child in range(self._cardinalities[code])]
        children = [self._tree(row, below) for below in places if row[below] >= 0]
        n_places = sum(widest**level for level in range(self._depth + 1))
        mask = row[n_places + place] if len(row) > n_places else 0
        cut = f"[{mask:b}]" if mask else ""
        return f"{self.schema.columns[code]}{cut}({', '.join(children)})"

    def _together(self, dataset: Dataset, copies: int, chance: Seeded) -> np.ndarray:
        many = clone(self.estimator).set_params(n_estimators=copies * self.n_trees)
        if "max_nodes" in many.get_params():
            many.set_params(max_nodes=np.iinfo(np.int32).max)
        # each tree of a forest of many gets one share of the budget of many forests
        epsilon = self.epsilon if self.sharing == "parallel" else self._of_many(copies)
        forest = self._learn(many, dataset, epsilon, chance, partial(_Copies, copies))
        return self.rows(forest).reshape(copies, -1)

    def _of_many(self, copies: int) -> float:
        """What so many fits on the same records cost together: losses add up, or the rhos of a delta."""
        if delta := self.estimator.promised_delta():
            return epsilon_of(copies * rho_of(self.epsilon, delta), delta)
        return self.epsilon * copies

    def _learn(self, estimator, dataset: Dataset, epsilon: float, chance: Seeded, door) -> Forest:
        codes, labels = encode(dataset, self.schema.n_features)
        return estimator.replay(codes, labels, self.schema, epsilon, chance, door)[0]


class _Tiled(InMemoryRecords):
    """Records of many fits at once: as soon as they are given to trees, each fit gets a copy of its own."""

    def __init__(self, copies: int, *table: Any, **how: Any) -> None:
        super().__init__(*table, **how)
        self._copies = copies

    def assign(self, n_trees: int, chance: RecordCoins) -> None:
        self._copy()
        if n_trees > self._copies:
            super().assign(n_trees // self._copies, chance)  # every record of every copy draws its own coin
        self._spread(n_trees // self._copies)

    def split_equally(self, n_trees: int, chance: Chance) -> None:
        orders: list[Any] = []
        if n_trees > self._copies:
            for _ in range(self._copies):  # an order of one data set has no form for many
                super().split_equally(n_trees // self._copies, chance)
                orders.append(self.assignment)
        self._copy()
        self.assignment = np.concatenate(orders) if orders else None
        self._spread(n_trees // self._copies)

    def _copy(self) -> None:
        self.codes = np.ascontiguousarray(np.tile(self.codes, (1, self._copies)))
        self.labels = np.tile(self.labels, self._copies)

    def _spread(self, trees: int) -> None:
        """Give the trees of each copy numbers of their own."""
        first = trees * np.repeat(np.arange(self._copies), self.n_records)
        self.assignment = (first + (0 if self.assignment is None else self.assignment)).astype(np.int32)


class _Copies(Curator):
    """Serves many fits at once."""

    def __init__(self, copies: int, *table: Any, **doors: Any) -> None:
        super().__init__(*table, **doors)
        self._records = _Tiled(copies, *table)


class SumsSampler:
    """Samples the noisy sums that a linear learner's model is computed from, on one data set.

    Call it with ``(dataset, size, rng)``; it returns rows of integers.  The rates are those that reach the noise in a
    fit, and the noise is that of :class:`~dpforest.chance.Seeded`.  The model says no more than its sums.
    """

    def __init__(self, estimator: PrivateEstimator):
        self.estimator, self.schema = estimator, estimator.audited_schema()

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> np.ndarray:
        (sums,) = law_of_shapes(self.estimator, self.schema, dataset, lambda model: None).values()
        exact = np.broadcast_to(sums.counts[0], (size, len(sums.rates)))
        return mechanisms.two_sided_geometric(exact, sums.rates, Seeded(rng))


def answers(model: BoostedForest, *, cardinalities: np.ndarray) -> np.ndarray:
    """The scores of every record of a small universe, class by class, in steps of ``1 / SCALE``: int64, one row."""
    every = np.stack([codes.ravel() for codes in np.meshgrid(*map(np.arange, cardinalities), indexing="ij")])
    return np.rint(model.scores(every.astype(np.uint8)) * SCALE).astype(np.int64).reshape(1, -1)


def signatures(
    forest: Forest, *, schema: Schema, n_bins: int, depth: int, labels: bool = False, masks: bool = False
) -> np.ndarray:
    """The trees of a forest as rows of integers, int64, shape (n_trees, width); equal trees have equal rows.

    A tree is written place by place, as if it were complete: the feature split on, the number of features for a leaf,
    -1 where no node is.  Then, with ``masks`` or where a feature has more than two codes, the codes that go to the
    second child of a binary node, as bits.  Then what each leaf says, class by class; with ``labels`` its label is
    added to the number of features instead.
    """
    forest = getattr(forest, "forest", forest)  # of boosted trees
    cardinalities = schema.cardinalities(n_bins)
    widest = int(max(2, cardinalities.max()))
    if widest > 62:
        raise ValueError(f"a feature has {widest} codes, and rows are for small universes: at most 62")
    places = sum(widest**level for level in range(depth + 1))
    masked = masks or widest > 2
    n_trees, n_classes = forest.n_trees, forest.values.shape[1]
    split = np.full((n_trees, places), -1, dtype=np.int64)
    cuts = np.zeros((n_trees, places if masked else 0), dtype=np.int64)
    says = np.zeros((n_trees, places, 0 if labels else n_classes), dtype=np.int64)
    nodes, tree, place = forest.roots, np.arange(n_trees), np.zeros(n_trees, dtype=np.int64)
    while nodes.size:
        leaf = forest.feature[nodes] < 0
        said = forest.values[nodes[leaf]]
        split[tree, place] = np.where(leaf, schema.n_features, forest.feature[nodes])
        if labels:
            split[tree[leaf], place[leaf]] += said.argmax(axis=1)
        else:
            says[tree[leaf], place[leaf]] = said
        if masked:
            cuts[tree, place] = forest.mask[nodes, 0].astype(np.int64)
        inner, arity = nodes[~leaf], forest.arity[nodes[~leaf]]
        code = np.arange(arity.sum()) - np.repeat(np.cumsum(arity) - arity, arity)
        nodes = np.repeat(forest.first_child[inner], arity) + code
        tree, place = np.repeat(tree[~leaf], arity), np.repeat(place[~leaf], arity) * widest + 1 + code
    return np.concatenate([split, cuts, says.reshape(n_trees, -1)], axis=1)
