"""A query is a value: what may be answered with noise, what is refused, and a new one in ten lines."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from test_audit_greybox import look
from test_scattered import THREE, Pieces, fitted, frame_of, scattered

from dpforest import Schema
from dpforest.audit.exact.enumeration import exact_audit
from dpforest.chance import Seeded
from dpforest.curator import FINE, Curator
from dpforest.curator.queries import (
    BY_WEIGHT,
    CellWeights,
    ClassCounts,
    CodeCounts,
    GapAndSize,
    Measured,
    Moments,
    NodeQuery,
    Products,
    Query,
)
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.growth import Growth
from dpforest.privacy import HISTOGRAM_SENSITIVITY, RELATIONS, REPLACE_ONE, Ledger
from dpforest.structure.crossings import Crossings

ONE = Schema(categorical={"a": [0, 1]}, classes=[0, 1])


# A new count, whole: everything that the library is told of it.
@dataclass(frozen=True, eq=False)
class LaterClasses(NodeQuery, Measured):
    """Number of records of each node beyond the first class, (n_nodes,)."""

    label, step = "count the later classes", BY_WEIGHT
    sensitivity, replaced = HISTOGRAM_SENSITIVITY, 1.0

    def exact(self, records):
        return ClassCounts(self.splits, self.nodes).exact(records)[:, 1:].sum(axis=1)


@dataclass(frozen=True, eq=False)
class Twice(LaterClasses):
    """The same, and each record counted twice; it declares what the other one does, which is wrong."""

    label, step, sensitivity, replaced = "count twice", BY_WEIGHT, HISTOGRAM_SENSITIVITY, 1.0

    def exact(self, records):
        return 2 * super().exact(records)


class Planted(PrivateForestClassifier):
    """One leaf, of which a query is measured with the whole budget."""

    def __init__(self, query=LaterClasses, epsilon=1.0, schema=ONE, relation="add-remove", random_state=0):
        self.query, self.epsilon, self.schema, self.relation, self.random_state = (
            query,
            epsilon,
            schema,
            relation,
            random_state,
        )
        self.variant, self.n_bins, self.n_jobs, self.source = "proved", 8, None, "seeded"

    def _learn(self, run):
        growth = Growth(1, run.schema.n_features, run.schema.n_classes, run.ledger, "sequential")
        leaf = growth.frontier
        found = run.curator.noisy(self.query(growth, leaf.nodes), leaf.scopes, run.epsilon)
        growth.set_leaf_values(leaf, np.repeat(np.asarray(found)[:, None], run.schema.n_classes, axis=1))
        return growth.release()


def curator_of(labels, ledger, chance=None):
    codes = np.zeros((1, len(labels)), np.uint8)
    labels = np.array(labels, np.uint8)
    return Curator(codes, labels, 3, [2], chance=chance or Seeded(0), ledger=ledger)


def test_a_new_count_in_memory_and_in_blocks():
    found = []
    frame = frame_of("classifier")
    for blocks in (False, True):
        ledger = Ledger()
        labels = np.searchsorted(np.array(["maybe", "no", "yes"]), frame["y"].to_numpy().astype(str))
        order = np.array([1, 0, 2])[labels]  # the schema's: no, maybe, yes
        curator = scattered(Pieces(frame, THREE), ledger=ledger) if blocks else curator_of(order, ledger)
        growth = Growth(1, 4 if blocks else 1, 3, ledger, "sequential")
        leaf = growth.frontier
        found.append(curator.noisy(LaterClasses(growth, leaf.nodes), leaf.scopes, math.inf).tolist())
    assert found[0] == found[1] == [int((frame["y"] != "no").sum())]


def test_a_fit_with_a_new_count():
    frame = frame_of("classifier")
    schema = Schema(
        numeric={},
        categorical={name: sorted(frame[name].unique()) for name in ("b", "c") if name in frame},
        classes=["no", "maybe", "yes"],
    )
    models = [fitted(Planted(schema=schema), table) for table in (frame, Pieces(frame, THREE))]
    first, second = (model.forest_.values.tolist() for model in models)
    assert first == second
    assert models[0].ledger_.epsilon == pytest.approx(1)
    assert "count the later classes" in str(models[0].ledger_)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_audit_sees_a_new_count(relation):
    """A count that declares too little is found by the same layers that hold the honest one to its loss."""
    honest = exact_audit(Planted(relation=relation), n_max=2)
    assert honest.epsilon == pytest.approx(0.5 if relation == REPLACE_ONE else 1)
    assert not honest.violated
    assert not look(Planted(relation=relation)).violated
    twice = exact_audit(Planted(Twice, relation=relation), n_max=2)
    assert twice.epsilon == pytest.approx(2 * honest.epsilon)
    assert twice.violated == (relation != REPLACE_ONE)  # there half the budget was left
    assert look(Planted(Twice)).violated


def test_what_a_query_declares_of_pairs_is_its_own():
    """A parent's pairs say how much a record changes the parent's answer, so a child without any has none."""

    @dataclass(frozen=True, eq=False)
    class Doubled(CellWeights):
        label, step, sensitivity, replaced = "sum twice the weights", 2 * FINE, HISTOGRAM_SENSITIVITY, 2.0

        def exact(self, records):
            return 2 * super().exact(records)

    assert CellWeights.pairs is not None
    assert Doubled.pairs is None
    table = Crossings.of([[(0, np.arange(200))]])
    ledger, rho = Ledger(delta=1e-6), 0.02
    codes, labels = np.arange(400, dtype=np.uint8)[None] % 200, np.repeat(np.array([0, 1], np.uint8), 200)
    curator = Curator(codes, labels, 2, [200], chance=Seeded(0), ledger=ledger)
    noisy = curator.noisy(Doubled(table, 1), np.zeros(200, dtype=np.int64), rho)
    assert noisy.dtype == np.int64  # no halves: each number has noise of its own, by the step that is declared
    assert noisy.std() == pytest.approx(2 * FINE / math.sqrt(2 * rho), rel=0.15)
    halved = curator.noisy(CellWeights(table, 1), np.zeros(200, dtype=np.int64), rho)
    assert halved.dtype == np.float64


@pytest.mark.parametrize(("step", "squared"), [(0, 1), (-1, 1), (1, 0), (math.inf, 1), (1, math.nan)])
def test_pairs_that_no_record_changes_are_refused(step, squared):
    with pytest.raises(ValueError, match="declare a positive step"):
        GapAndSize("nothing", step, squared)


# -- what is refused, and costs nothing -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Squares(NodeQuery):
    """Sums of squares, without a word of what a record changes."""

    def exact(self, records):
        return Moments(self.splits, self.nodes, 3).exact(records)[:, 2]


class Stranger:
    """No query, though it can answer."""

    label, sensitivity, replaced = "anything", HISTOGRAM_SENSITIVITY, 2.0

    def exact(self, records):
        return records.labels

    recall, step = exact, 1


@pytest.mark.parametrize(
    "query",
    [
        lambda growth, nodes: Squares(growth, nodes),
        lambda growth, nodes: Moments(growth, nodes, 3),
        lambda growth, nodes: CodeCounts(growth, nodes),
        lambda growth, nodes: Products(None),
        lambda growth, nodes: Query(),
        lambda growth, nodes: Stranger(),
        lambda growth, nodes: "count the classes",
    ],
)
def test_a_query_that_does_not_declare_what_a_record_changes_is_refused(query):
    ledger = Ledger()
    growth = Growth(1, 1, 3, ledger, "sequential")
    with pytest.raises(TypeError, match="does not say how much one record changes its answer"):
        curator_of([0, 1], ledger).noisy(query(growth, growth.roots), growth.frontier.scopes, 1.0)
    assert ledger.epsilon == 0
    assert not ledger.leaks


@pytest.mark.parametrize("missing", ["label", "sensitivity", "replaced", "step"])
def test_nothing_of_a_declaration_is_inherited(missing):
    said = {"label": "squares", "sensitivity": HISTOGRAM_SENSITIVITY, "replaced": 2.0, "step": 1}
    for base in (Squares, ClassCounts):
        bases = (base,) if issubclass(base, Measured) else (base, Measured)
        with pytest.raises(TypeError, match=f"must declare {missing} itself"):
            type("Louder", bases, {name: value for name, value in said.items() if name != missing})


@pytest.mark.parametrize("most", [{}, {"add-remove": 1.0}, {"add-remove": 1.0, "replace-one": 0.0}])
def test_a_sensitivity_speaks_of_both_relations(most):
    said = {"label": "squares", "sensitivity": most, "replaced": 2.0, "step": 1}
    with pytest.raises(TypeError, match="a positive sensitivity under each of"):
        type("Lopsided", (Squares, Measured), said)


@pytest.mark.parametrize(
    "wrong", [{"step": 0}, {"step": -1}, {"step": math.inf}, {"step": math.nan}, {"replaced": -1.0}]
)
def test_a_declaration_that_would_hide_nothing_is_refused(wrong):
    """Of a step of 0 the rate of the noise would be infinite, and the answer exact."""
    said = {"label": "squares", "sensitivity": HISTOGRAM_SENSITIVITY, "replaced": 2.0, "step": 1} | wrong
    with pytest.raises(TypeError, match="must declare a positive step"):
        type("Silent", (Squares, Measured), said)


@pytest.mark.parametrize(
    ("scopes", "epsilon", "why"),
    [
        ([], 1.0, "nothing is answered"),
        ([], [], "nothing is answered"),
        ([0], [], "nothing is answered"),
        ([0, 0], 1.0, "gives 1 rows, not one for each of 2 scopes"),
        ([0], -1.0, "rate"),
        ([0], math.nan, "rate"),
    ],
)
def test_no_scope_or_budget_is_no_answer(scopes, epsilon, why):
    ledger = Ledger()
    growth = Growth(1, 1, 3, ledger, "sequential")
    curator = curator_of([0, 1], ledger)
    with pytest.raises(ValueError, match=why):
        curator.noisy(ClassCounts(growth, growth.roots), np.array(scopes, dtype=int), epsilon)
    assert ledger.epsilon == 0
