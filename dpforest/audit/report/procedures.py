"""Procedures with models and tables other than a single fit, as an auditor sees them: tests, choices, sides, persons.

Each is drawn through the public function that ships.  Each is also listed with a slip, a planted mistake that the audit
must find: that an auditor finds no violation is evidence only if it finds those that are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from dpforest.arithmetic import log
from dpforest.audit.exact.enumeration import ExactAudit, datasets, exact_audit, neighbours
from dpforest.audit.exact.laws import Dataset, Law, Record, law_of
from dpforest.audit.report.batches import Fits
from dpforest.audit.report.subjects import EXACT, GREY_BOX, STATISTICAL, Scale, Subject, Target
from dpforest.audit.report.universes import binary_schema, telling_pairs
from dpforest.audit.search.pairs import Pair
from dpforest.evaluation import choose, evaluate, hold_out
from dpforest.evaluation.one_node import Evaluator, ModelChooser, cells_schema, gain
from dpforest.learners.audited import Broken
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.run import Run
from dpforest.messages import shown
from dpforest.models.forest import Forest
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.random_trees import RandomTreesClassifier
from dpforest.privacy import ADD_REMOVE, NON_PRIVATE, check_relation

__all__ = ["PROCEDURES", "procedure"]

_CLASSES = [0, 1]
_ROWS = 8  # of a person who has several


@cache
def _model_of_column(place: int) -> Any:
    """A released model that says the value of one of two binary columns."""
    rows = [[a, b] for a in (0, 1) for b in (0, 1)]
    model = EDPRFClassifier(epsilon=NON_PRIVATE, schema=binary_schema(2), n_estimators=1, max_depth=2, random_state=0)
    return model.fit(rows, [row[place] for row in rows])


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))


class OneNodeProcedure(Target):
    """A test or a choice: the learner of one node behind it, and the function that asks it."""

    engine = "replays"
    slow = True

    def __init__(self, estimator: PrivateEstimator, draw: Callable[[Dataset, np.random.Generator], Any] | None):
        self.estimator, self._draw = estimator, draw
        schema = estimator.audited_schema()
        self.cardinalities = schema.cardinalities(estimator.bins(schema)).tolist()
        self.record_kinds = math.prod(self.cardinalities) * len(_CLASSES)
        self._fits = Fits(estimator, 1)
        self._found = cache(lambda n_max, progress: exact_audit(estimator, n_max=n_max, progress=progress))

    def exact(self, scale: Scale, progress: bool = False) -> ExactAudit:
        """Over all neighbours of few records."""
        return self._found(scale.most(self.engine, self.record_kinds), progress)

    def pairs(self, scale: Scale) -> list[Pair]:
        """The worst pair of the exact audit, and those that are known to tell much."""
        worst = Pair("worst pair", *self.exact(scale).pair)
        found = [worst, *telling_pairs(self.cardinalities, len(_CLASSES), self.estimator.relation)]
        return [pair for pair in found if pair.one and pair.other]  # a table without records is refused

    def sample(self, dataset: Dataset, size: int, rng: np.random.Generator) -> Any:
        """What the public function returns; of a slip, what its learner does."""
        if self._draw is None:
            return self._fits(dataset, size, rng)
        return np.array([self._draw(dataset, rng) for _ in range(size)])


# -- tests and choices -------------------------------------------------------------------------------------------------


class _CheapEvaluator(Evaluator):
    """The noise of twice the budget."""

    def as_proved(self, run: Run) -> Forest:
        tree_budget = run.start_forest(1)
        run.split_multiway(run.frontier, np.zeros(1, dtype=np.int64))
        run.set_leaf_values(run.frontier, run.count_classes(run.frontier, 2 * tree_budget))
        return run.release()


class _CheapChooser(ModelChooser):
    """Calibrated as if a record could gain a half at most."""

    SCORE = replace(gain, name="half", _sensitivity=lambda n: (0.5, 0.5), _range=lambda n: (0.5, 1.0))


def _table(dataset: Dataset) -> tuple[list, list]:
    """Rows of two columns, and their classes, of records that may have one column."""
    return [(*record[:-1], 0)[:2] for record in dataset], [record[-1] for record in dataset]


def _test(epsilon: float, relation: str, slip: bool) -> Target:
    kind = _CheapEvaluator if slip else Evaluator

    def draw(dataset: Dataset, rng: np.random.Generator) -> list[int]:
        """The record's cell is what the model says of it: its first column."""
        found = evaluate(
            _model_of_column(0), *_table(dataset), epsilon, bins=2, relation=relation, random_state=_seed(rng)
        )
        return found.counts.astype(np.int64).ravel().tolist()

    estimator = kind(epsilon=epsilon, schema=cells_schema({"cell": 2}, _CLASSES), relation=relation)
    return OneNodeProcedure(estimator, None if slip else draw)


def _choice(epsilon: float, relation: str, slip: bool) -> Target:
    kind = _CheapChooser if slip else ModelChooser

    def draw(dataset: Dataset, rng: np.random.Generator) -> int:
        """A record gains by either model as much as its column says."""
        X = [record[:2] for record in dataset]
        models, seed = [_model_of_column(0), _model_of_column(1)], _seed(rng)
        found = choose(models, X, [1] * len(X), epsilon, measure="accuracy", relation=relation, random_state=seed)
        return found.name

    estimator = kind(epsilon=epsilon, schema=cells_schema({"a": 2, "b": 2}, _CLASSES), relation=relation)
    return OneNodeProcedure(estimator, None if slip else draw)


# -- sides -------------------------------------------------------------------------------------------------------------


class HoldOutProcedure(Target):
    """Records put aside by coins: a tree is grown on the others, and a model is chosen on these, with epsilon each.

    With a slip each record is on both sides.
    """

    engine = "replays"
    slow = True

    def __init__(self, epsilon: float, relation: str, slip: bool):
        self.epsilon, self.relation, self._slip = epsilon, check_relation(relation), slip
        tree = EDPRFClassifier(
            epsilon=epsilon, schema=binary_schema(2), relation=relation, n_estimators=1, max_depth=1, leaf="label"
        )
        chooser = ModelChooser(epsilon=epsilon, schema=cells_schema({"a": 2, "b": 2}, _CLASSES), relation=relation)
        learners: tuple[PrivateEstimator, ...] = tree, chooser
        self._fits = Fits(tree, 1, tree.sharing(), labels=True), Fits(chooser, 1)
        self.record_kinds = 8
        self._law = cache(self._computed)
        self._part = cache(lambda place, dataset: law_of(learners[place], learners[place].declared_schema(), dataset))
        self._found = cache(self._worst)

    def exact(self, scale: Scale, progress: bool = False) -> ExactAudit:
        """Over all neighbours of few records: the laws of both parts, over all coins."""
        return self._found(scale.most(self.engine, self.record_kinds))

    def pairs(self, scale: Scale) -> list[Pair]:
        """The worst pair, and those that are known to tell much."""
        return [Pair("worst pair", *self.exact(scale).pair), *telling_pairs((2, 2), 2, self.relation)]

    def sample(self, dataset: Dataset, size: int, rng: np.random.Generator) -> list[tuple]:
        """Coins for all draws at once, one for each record of each; then the draws with the same sides together."""
        aside = np.zeros((size, 0), dtype=bool)
        if dataset:
            rows = np.zeros((size * len(dataset), 1))
            aside = np.asarray(hold_out(rows, 0.5, source="seeded", random_state=_seed(rng)), dtype=bool)
        said: list[tuple] = [()] * size
        aside = aside.reshape(size, len(dataset))
        kinds = (aside * (1 << np.arange(len(dataset)))).sum(axis=1)
        for kind in np.unique(kinds).tolist():
            places = np.flatnonzero(kinds == kind)
            sides = self._sides(dataset, aside[places[0]].tolist())
            grown, chosen = (fits(side, len(places), rng) for fits, side in zip(self._fits, sides, strict=True))
            for place, tree, row in zip(places.tolist(), grown, np.asarray(chosen)[:, 0].tolist(), strict=True):
                said[place] = (tree.words, row)
        return said

    def _sides(self, dataset: Dataset, aside: Sequence[bool]) -> list[Dataset]:
        """The records that are not put aside, and those that are."""
        return [
            tuple(record for record, put in zip(dataset, aside, strict=True) if put == side or self._slip)
            for side in (False, True)
        ]

    def _computed(self, dataset: Dataset) -> Law:
        law: dict = {}
        coins = [(True,) * len(dataset)] if self._slip else product((False, True), repeat=len(dataset))
        for put in coins:
            sides = self._sides(dataset, put)
            share = 1.0 if self._slip else 0.5 ** len(dataset)
            parts = [self._part(place, tuple(sorted(side))).items() for place, side in enumerate(sides)]
            for (one, p), (other, q) in product(*parts):
                law[one, other] = law.get((one, other), 0.0) + share * p * q
        return law

    def _worst(self, n_max: int) -> ExactAudit:
        every = list(datasets((2, 2), 2, n_max))
        pairs = list(neighbours(every, self.relation))
        best: tuple = (-math.inf,)
        for one, other in (both for pair in pairs for both in (pair, pair[::-1])):
            p, q = self._law(one), self._law(other)
            at = max(p, key=lambda output: p[output] / q[output] if q.get(output) else math.inf)
            loss = float(log(p[at]) - log(q.get(at, 0.0)))
            if loss > best[0]:
                best = (loss, (one, other), (p[at], q.get(at, 0.0)))
        return ExactAudit(
            epsilon=best[0],
            claim=self.epsilon,
            relation=self.relation,
            pair=best[1],
            output="a tree and a choice",
            probabilities=best[2],
            n_datasets=len(every),
            n_pairs=len(pairs),
            n_outputs=len(self._law(best[1][0])),
        )


# -- persons -----------------------------------------------------------------------------------------------------------


class Persons(Target):
    """A fit that promises epsilon to a person; a record of these data sets is a person, ``(name, row, row, ...)``.

    With a slip the fit does not know whose the rows are, and promises epsilon to a row.
    """

    slow = True
    record_kinds = 0

    def __init__(self, epsilon: float, relation: str, slip: bool):
        self.relation, self._slip = check_relation(relation), slip
        self._most = 1 if relation != ADD_REMOVE else _ROWS  # under replace-one the number of rows is public
        self._learner = RandomTreesClassifier(
            epsilon=epsilon, schema=binary_schema(1), relation=relation, n_estimators=1, max_depth=1, random_state=0
        )

    def pairs(self, scale: Scale) -> list[Pair]:
        """A person of several rows next to another person: rows all alike, and rows of both classes."""
        other: Record = ("other", (0, 0), (1, 1))  # type: ignore[assignment]  # rows in place of codes
        alike, mixed = (("new", *rows) for rows in ([(1, 1)] * _ROWS, [(0, 1), (1, 0)] * (_ROWS // 2)))
        if self.relation == ADD_REMOVE:
            return [Pair("all alike", (other, alike), (other,)), Pair("of both classes", (other, mixed), (other,))]
        opposed = ("new", *[(1, 0)] * _ROWS)
        return [Pair("all alike", (other, alike), (other, opposed)), Pair("one row", (other, alike), (other, mixed))]

    def sample(self, dataset: Dataset, size: int, rng: np.random.Generator) -> np.ndarray:
        """The noisy counts of the leaves."""
        rows: list[tuple] = [(record[0], *row) for record in dataset for row in record[1:]]  # type: ignore[misc]
        whose, X, y = [row[0] for row in rows], [[row[1]] for row in rows], [row[2] for row in rows]
        unit: dict = {} if self._slip else {"person": whose, "max_rows": self._most}
        found = []
        for _ in range(size):
            forest = self._learner.set_params(random_state=_seed(rng)).fit(X, y, **unit).forest_
            found.append(forest.values[-2:].astype(np.int64).ravel())
        return np.array(found)


# -- by name -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Procedure:
    """What makes the target of ``(epsilon, relation, slip)``, what it audits, and its slip."""

    make: Callable[[float, str, bool], Target]
    covers: frozenset[str]
    slip: str
    layers: tuple[str, ...]
    lacking: dict[str, str] = field(default_factory=dict)


_NO_ACCOUNTS = "it has two parts, each with accounts of its own, which are audited by themselves"
_BY_ROWS = "a universe of persons is not enumerated: what is kept of each is thm-persons, tested in fractions"
_ROWS_ALONE = "its accounts are those of the fit, which knows rows alone"

#: Procedures with models and tables other than a single fit, by the name that the command line takes.
PROCEDURES = {
    "evaluate": _Procedure(
        _test, frozenset({"evaluation.evaluate"}), "the noise of twice the budget", (EXACT, GREY_BOX)
    ),
    "choose": _Procedure(_choice, frozenset({"evaluation.choose"}), "half the range of a gain", (EXACT, GREY_BOX)),
    "hold-out": _Procedure(
        HoldOutProcedure,
        frozenset({"evaluation.hold_out"}),
        "each record on both sides",
        (EXACT,),
        {GREY_BOX: _NO_ACCOUNTS},
    ),
    "persons": _Procedure(
        Persons,
        frozenset(),
        "rows of a person taken for persons",
        (STATISTICAL,),
        {EXACT: _BY_ROWS, GREY_BOX: _ROWS_ALONE},
    ),
}


def procedure(name: str, relation: str, epsilon: float, slip: bool = False) -> Subject:
    """The procedure of that name as a subject; with a slip, which the auditor must find."""
    if not isinstance(slip, bool):
        raise TypeError(f"slip must be True or False, not {shown(slip)}")
    told = PROCEDURES[name]
    target = told.make(epsilon, relation, slip)
    lacking = told.lacking
    if slip and STATISTICAL not in told.layers:
        lacking = {**lacking, STATISTICAL: "a loss of 2 where 1 is claimed takes more draws than a fit for each allows"}
    return Subject(
        name=name,
        options="slip=True" if slip else "",
        kind="procedure",
        relation=relation,
        claim=epsilon,
        promise=math.inf if slip else epsilon,
        covers=told.covers,
        target=target,
        estimator=getattr(target, "estimator", None),
        broken=Broken(f"a slip made on purpose: {told.slip}", told.layers) if slip else None,
        lacking=lacking,
    )
