"""The exact auditor: it finds the loss of mechanisms whose loss is known, and it can fail."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import combinations

import numpy as np
import oracle
import pytest

from dpforest import EDPRFClassifier, Schema
from dpforest.audit import ExactAudit, datasets, exact_audit, law_of, neighbours
from dpforest.audit.exact.laws import released
from dpforest.curator import Selection
from dpforest.curator.selections import LabelCandidates
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.growth import Growth
from dpforest.privacy import RELATIONS, Ledger
from dpforest.scores import majority

relations = pytest.mark.parametrize("relation", RELATIONS)
ONE = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
TWO = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])


# -- what is enumerated ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cardinalities", "classes", "size"), [([2], 2, 3), ([2, 2], 2, 2), ([3], 2, 2), ([1], 3, 4)])
def test_data_sets_are_all_multisets(cardinalities, classes, size):
    found = list(datasets(cardinalities, classes, size))
    kinds = math.prod(cardinalities) * classes
    assert len(found) == len(set(found)) == math.comb(kinds + size, size)
    universe = {record for data in found for record in data}
    assert len(universe) == kinds
    assert sorted(found) == sorted(oracle.datasets(universe, size))


def are_neighbours(one, other, relation: str) -> bool:
    """By the definition: how many records have to come or go."""
    gone, come = Counter(one) - Counter(other), Counter(other) - Counter(one)
    missing, extra = sum(gone.values()), sum(come.values())
    return missing + extra == 1 if relation == "add-remove" else missing == extra == 1


@relations
def test_neighbours_are_all_pairs_that_the_definition_allows(relation):
    every = list(datasets([2], 2, 4))
    found = list(neighbours(every, relation))
    expected = {frozenset(pair) for pair in combinations(every, 2) if are_neighbours(*pair, relation)}
    assert {frozenset(pair) for pair in found} == expected
    assert len(found) == len(expected)  # each once
    universe = {record for data in every for record in data}
    counted = {frozenset(pair) for pair in oracle.pairs(universe, 4, relation)}
    assert expected == counted


def test_the_numbers_of_pairs_in_the_book():
    every = list(datasets([2, 2], 2, 4))
    assert len(every) == 495
    assert len(list(neighbours(every, "add-remove"))) == 1320
    replaced = list(neighbours(every, "replace-one"))
    assert len(replaced) == 4620
    assert 2 * sum(len(one) == 4 for one, _ in replaced) == 6720  # ordered pairs of four records each


def test_neighbours_of_an_unknown_kind_are_refused():
    with pytest.raises(ValueError, match="relation must be one of"):
        list(neighbours([()], "bounded"))


# -- planted learners with a known loss ------------------------------------------------------------------------------


class OneLeaf(PrivateForestClassifier):
    """Releases the label of the whole table by a selection at ``factor`` times the rate that epsilon allows."""

    def __init__(self, epsilon=1.0, schema=ONE, relation="add-remove", mechanism="permute-and-flip", factor=1.0):
        self.epsilon, self.schema, self.relation = epsilon, schema, relation
        self.mechanism, self.factor = mechanism, factor
        self.variant, self.n_bins, self.n_jobs, self.source, self.random_state = "proved", 2, None, "seeded", None

    def _learn(self, run):
        growth = Growth(1, run.schema.n_features, run.schema.n_classes, run.ledger, "sequential")
        leaves = growth.frontier
        label = run.curator.choose(
            LabelCandidates(growth, leaves.nodes),
            leaves.scopes,
            self.factor * run.epsilon,
            Selection(majority, self.mechanism),
        )
        growth.set_leaf_values(leaves, np.eye(run.curator.n_classes, dtype=np.int64)[label])
        return growth.release()


class Deterministic(OneLeaf):
    """Releases the majority label itself."""

    def _learn(self, run):
        run.epsilon = math.inf
        return super()._learn(run)


class Blind(OneLeaf):
    """Never looks."""

    def _learn(self, run):
        growth = Growth(1, run.schema.n_features, run.schema.n_classes, run.ledger, "sequential")
        growth.set_leaf_values(growth.frontier, np.array([run.chance.integers(2, 2)]))
        return growth.release()


@pytest.mark.slow
@relations
@pytest.mark.parametrize("factor", [1.0, 0.5, 1.05, 2.0])
def test_a_selection_at_a_known_rate(relation, factor):
    audit = exact_audit(OneLeaf(relation=relation, factor=factor), n_max=3)
    assert audit.epsilon == pytest.approx(factor, rel=1e-12)  # permute-and-flip spends all that it is given
    assert audit.violated == (factor > 1)
    assert audit.unspent == pytest.approx(1 - factor, abs=1e-12)
    assert ("VIOLATED" in str(audit)) == audit.violated
    assert (audit.n_datasets, audit.n_outputs, audit.claim, audit.relation) == (35, 2, 1.0, relation)


@relations
def test_the_loss_is_that_of_the_oracle(relation):
    """The exponential mechanism, whose loss on a finite universe is no round number."""
    base, size = 3, 3

    def exact(data):
        votes = [sum(record[-1] == c for record in data) for c in (0, 1)]
        return oracle.exponential(oracle.acceptance(votes, base))

    rate = 1 if relation == "add-remove" else 2  # the library halves the rate under replace-one
    model = OneLeaf(epsilon=rate * math.log(base), relation=relation, mechanism="exponential")
    universe = [(x, y) for x in (0, 1) for y in (0, 1)]
    expected = math.log(oracle.worst_case(exact, universe, size, relation))
    audit = exact_audit(model, n_max=size)
    assert audit.epsilon == pytest.approx(expected, rel=1e-12)
    assert 0 < audit.epsilon < model.epsilon


@relations
def test_the_witness_is_a_witness(relation):
    model = OneLeaf(relation=relation, factor=1.3)
    audit = exact_audit(model, n_max=2)
    assert isinstance(audit, ExactAudit)
    one, other = audit.pair
    assert are_neighbours(one, other, relation)
    p, q = (law_of(model, ONE, data).get(audit.output, 0.0) for data in audit.pair)
    assert (p, q) == audit.probabilities
    assert math.log(p / q) == pytest.approx(audit.epsilon, rel=1e-12)


@relations
def test_an_output_that_only_one_neighbour_has_is_infinite_loss(relation):
    audit = exact_audit(Deterministic(relation=relation), n_max=2)
    assert audit.epsilon == math.inf
    assert audit.violated
    assert audit.unspent == -math.inf
    assert audit.probabilities[1] == 0 < audit.probabilities[0]


@relations
def test_a_learner_that_does_not_look_loses_nothing(relation):
    audit = exact_audit(Blind(relation=relation), n_max=3)
    assert audit.epsilon == pytest.approx(0, abs=1e-12)
    assert audit.n_outputs == 4


def test_a_claim_of_none_is_never_violated():
    audit = exact_audit(Deterministic(epsilon="non-private"), n_max=2)
    assert (audit.epsilon, audit.claim) == (math.inf, math.inf)
    assert not audit.violated


# -- laws ------------------------------------------------------------------------------------------------------------


def test_a_law_sums_to_one_and_tells_every_forest_apart():
    model = EDPRFClassifier(schema=TWO, leaf="label", n_estimators=1, max_depth=2, stop_margin=0.0)
    data = ((0, 0, 0), (0, 1, 1), (1, 1, 1))
    law = law_of(model, TWO, data)
    assert sum(law.values()) == pytest.approx(1, rel=1e-12)
    assert len(law) == 74  # one leaf: 2; a root split on one of 2 features: (2 + 4)^2 each
    assert all(probability > 0 for probability in law.values())
    by_hand = law_of(model, TWO, data, lambda forest: (forest.describe(["a", "b"]), forest.n_nodes))
    assert len(by_hand) == len(law)


def test_masks_and_arities_count_as_output():
    """Two binary trees that differ in nothing but where they cut are two outputs."""
    growths = [Growth(1, 1, 2, Ledger(), "sequential") for _ in range(3)]
    for growth, bits, binary in zip(growths, (2, 4, 2), (True, True, False), strict=True):
        masks = np.array([[bits, 0, 0, 0]], dtype=np.uint64)
        growth.add_children(growth.frontier, [0], [2], masks=masks, binary=np.array([binary]))
    assert len({released(growth.release()) for growth in growths}) == 3


def test_the_audit_sees_what_the_view_sees():
    model = EDPRFClassifier(schema=ONE, leaf="label", n_estimators=1, max_depth=1, stop="never")
    shape = exact_audit(model, n_max=2, view=lambda forest: forest.n_nodes)
    assert (shape.n_outputs, shape.epsilon) == (1, 0.0)  # without stop the shape is public
    assert exact_audit(model, n_max=2).epsilon > 0.1


def test_laws_may_come_from_elsewhere():
    seen = []

    def law(estimator, schema, dataset, view):
        seen.append((dataset, view))
        return {"a": 0.5, "b": 0.5} if len(dataset) % 2 else {"a": 0.25, "b": 0.75}

    audit = exact_audit(OneLeaf(), n_max=2, law=law)
    assert audit.epsilon == pytest.approx(math.log(2))
    assert len(seen) == 15
    assert audit.output == "a"


def test_an_output_that_neither_side_has_shows_nothing():
    """A law from elsewhere may list what never happens; only where the other side can do it, it is infinite loss."""

    def law(estimator, schema, dataset, view):
        return (
            {"never": 0.0, "a": 0.5, "b": 0.5} if len(dataset) % 2 else {"never": never, "a": 0.25, "b": 0.75 - never}
        )

    never = 0.0
    assert exact_audit(OneLeaf(), n_max=2, law=law).epsilon == pytest.approx(math.log(2), rel=1e-12)
    never = 0.25
    audit = exact_audit(OneLeaf(), n_max=2, law=law)
    assert (audit.epsilon, audit.output, audit.probabilities) == (math.inf, "never", (0.25, 0.0))


@relations
def test_both_ways_round_are_looked_at(relation):
    """The larger ratio, 2, is met one way round alone: now on the one data set of a pair, now on the other."""
    laws = {"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}
    for first in (0, 1):

        def law(estimator, schema, dataset, view, first=first):
            if relation == "add-remove":
                return laws[first if dataset else 1 - first]
            return laws[first if dataset[:1] == ((0, 0),) else 1 - first]

        audit = exact_audit(OneLeaf(relation=relation), n_max=1, law=law)
        assert audit.epsilon == pytest.approx(math.log(2), rel=1e-12)
        assert audit.probabilities == (0.5, 0.25)


# -- what cannot be audited ------------------------------------------------------------------------------------------


def test_a_universe_too_large_is_refused_with_its_size():
    with pytest.raises(ValueError, match=r"8 kinds of records and n_max = 40 make 377348994 data sets"):
        exact_audit(EDPRFClassifier(schema=TWO), n_max=40)
    with pytest.raises(ValueError, match="more than max_datasets = 9: n_max = 1 would fit"):
        exact_audit(OneLeaf(), n_max=2, max_datasets=9)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None])
def test_the_number_of_records_must_be_one(size):
    with pytest.raises(ValueError, match="n_max must be a whole number"):
        exact_audit(OneLeaf(), n_max=size)


def test_what_an_audit_says_in_json():
    audit = exact_audit(Deterministic(), n_max=2)
    said = json.loads(json.dumps(audit.to_dict()))
    assert (said["epsilon"], said["claim"], said["violated"], said["ratio"]) == ("inf", 1.0, True, None)
    assert said["pair"] == [[list(record) for record in data] for data in audit.pair]
    assert "root: says" in said["output"] == audit.shown


def test_a_misconfigured_learner_is_refused():
    with pytest.raises(ValueError, match="needs schema="):
        exact_audit(EDPRFClassifier(), n_max=1)
    with pytest.raises(ValueError, match="criterion must be one of"):
        exact_audit(EDPRFClassifier(schema=ONE, criterion="luck"), n_max=1)
    with pytest.raises(ValueError, match="relation must be one of"):
        exact_audit(OneLeaf(relation="bounded"), n_max=1)
