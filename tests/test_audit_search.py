"""The neighbour search: climbs find what enumeration finds, and every trap catches its bug."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from dpforest import EDPRFClassifier, Schema
from dpforest.audit.exact.enumeration import datasets, exact_audit, law_of, neighbours
from dpforest.audit.grey.greybox import greybox
from dpforest.audit.sampling.bounds import epsilon_lower
from dpforest.audit.search.climbing import _Tables, by_bound, by_loss, climb, expected_bound, log_ratio
from dpforest.audit.search.pairs import are_neighbours, rows_of
from dpforest.audit.search.traps import some_pairs, table_traps, traps
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.growth import Growth
from dpforest.privacy import ADD_REMOVE, RELATIONS

relations = pytest.mark.parametrize("relation", RELATIONS)
ONE = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
TWO = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
UNIVERSES = [([2], 2), ([2, 2], 2), ([3, 4], 3), ([1], 2), ([10] * 6, 2), ([256], 2), ([5, 1, 2], 4)]
MIXED = Schema(
    numeric={"x": (-1, 3), "z": (0.5, 2.5)},
    categorical={"a": ["undeclared", "v"], "b": [0, 1, 2]},
    classes=["n", "y", "w"],
    other={"a": "v"},
    missing="bin",
    columns=["b", "x", "a", "z"],
)


# -- traps in codes --------------------------------------------------------------------------------------------------


@relations
@pytest.mark.parametrize(("cardinalities", "classes"), UNIVERSES, ids=str)
def test_traps_are_different_pairs_of_neighbours_of_their_universe(cardinalities, classes, relation):
    found = traps(cardinalities, classes, relation)
    assert len({(pair.one, pair.other) for pair in found}) == len(found) >= 20
    assert len({pair.name for pair in found}) == len(found)
    limits = (*cardinalities, classes)
    for pair in found:
        assert are_neighbours(pair.one, pair.other, relation)
        assert sorted(pair.one) != sorted(pair.other)
        assert max(len(pair.one), len(pair.other)) <= 21
        for record in (*pair.one, *pair.other):
            assert len(record) == len(limits)
            assert all(type(code) is int and 0 <= code < limit for code, limit in zip(record, limits, strict=True))


@relations
def test_every_classical_trap_is_set(relation):
    """By what makes it one, not by its name; add-remove and replace-one alike."""
    found = [pair[1:] for pair in traps([3, 2], 3, relation)]
    both = [(Counter(one), Counter(other)) for one, other in found]
    if relation == ADD_REMOVE:
        assert any(not one for one, _ in found)  # the empty table
    assert any(max(len(one), len(other)) == 1 for one, other in found)  # a single record

    def classes(data):
        return {record[-1] for record in data}

    def values(data, feature):
        return {record[feature] for record in data}

    for size in (1, 2, 10, 20):  # a pure node that is one no more
        assert any(len(classes(one)) == 1 < len(classes(other)) and len(one) >= size for one, other in found)
    for feature in (0, 1):  # an empty child that is filled, at either end of the range
        assert any(max(values(other, feature)) > max(values(one, feature), default=9) for one, other in found)
        assert any(min(values(other, feature)) < min(values(one, feature), default=-1) for one, other in found)
    assert any(values(other, 0) == {0, 1, 2} != values(one, 0) == {0, 2} for one, other in found)  # in between
    votes = [(Counter(r[-1] for r in one), Counter(r[-1] for r in other)) for one, other in found]
    assert any(a[0] == a[1] > 1 != b[0] - b[1] == b[0] - b[1] != 0 for a, b in votes)  # tied labels
    assert any(max((a | b).values()) >= 6 and len(a | b) <= 2 for a, b in both)  # duplicates
    assert any(2 in classes(other) and 2 not in classes(one) for one, other in found)  # a new class
    changed_first = [(o, p) for o, p in found if len(o) > 3 and (o == p[1:] or o[1:] == p[1:])]
    changed_last = [(o, p) for o, p in found if len(o) > 3 and (o == p[:-1] or o[:-1] == p[:-1])]
    assert changed_first
    assert changed_last
    shuffled = [
        (one, other) for one, other in found if one[:2] != other[:2] and one[-2:] != other[-2:] and len(one) > 2
    ]
    assert shuffled  # the common records stand elsewhere


@relations
def test_sizes_on_either_side_of_a_rule_on_the_number_of_records(relation):
    sizes = {(len(pair.one), len(pair.other)) for pair in traps([2], 2, relation)}
    if relation == ADD_REMOVE:
        assert sizes >= {(n, n + 1) for n in (0, 1, 3, 4, 5, 7, 8, 9, 10, 15, 16)}
    else:
        assert all(one == other for one, other in sizes)


def test_tied_features_are_decided_by_one_record():
    """Before, both features split equally well; after, one is better, and each way round."""
    leads = set()
    for pair in traps([2, 2], 2, ADD_REMOVE):
        if pair.name.startswith("tied features"):
            gains = [[-impurity(data, feature) for feature in (0, 1)] for data in pair[1:]]
            assert gains[0][0] == gains[0][1]
            leads.add(np.sign(gains[1][0] - gains[1][1]))
    assert leads == {-1.0, 1.0}


def impurity(data, feature) -> float:
    total = 0.0
    for value in {record[feature] for record in data}:
        child = Counter(record[-1] for record in data if record[feature] == value)
        total += child.total() - sum(n * n for n in child.values()) / child.total()
    return total


# -- traps catch the bugs they are made for --------------------------------------------------------------------------


class Shape(PrivateForestClassifier):
    """Splits its root if ``rule`` says so, which it asks of the bare records; otherwise it says nothing."""

    def __init__(self, rule=None, epsilon=1.0, schema=TWO, relation="add-remove"):
        self.rule, self.epsilon, self.schema, self.relation = rule, epsilon, schema, relation
        self.variant, self.n_bins, self.n_jobs, self.source, self.random_state = "proved", 2, None, "seeded", None

    def _learn(self, run):
        growth = Growth(1, run.schema.n_features, run.schema.n_classes, run.ledger, "sequential")
        if self.rule(run.curator._records.codes, run.curator._records.labels):
            growth.add_children(growth.frontier, [0], [run.schema.cardinalities(2)[0]])
        growth.set_leaf_values(growth.frontier, np.ones((len(growth.frontier), run.schema.n_classes), dtype=np.int64))
        return growth.release()


def argmax_feature(codes, labels) -> bool:
    """Whether the exact best feature is not the first; ties go to the first."""
    data = [(*column, label) for *column, label in zip(*codes.tolist(), labels.tolist(), strict=True)]
    return impurity(data, 0) > impurity(data, 1) + 1e-12


RULES = {
    "an empty table": lambda codes, labels: labels.size > 0,
    "a pure node": lambda codes, labels: len(set(labels.tolist())) > 1,
    "fewer than 5 records": lambda codes, labels: labels.size >= 5,
    "fewer than 8 records": lambda codes, labels: labels.size >= 8,
    "more than 10 records": lambda codes, labels: labels.size > 10,
    "an empty child": lambda codes, labels: (codes[0] == 1).any(),
    "an empty child of the last feature": lambda codes, labels: (codes[-1] == 0).any(),
    "the majority label": lambda codes, labels: 2 * labels.sum() > labels.size,
    "a tie": lambda codes, labels: 2 * labels.sum() == labels.size,
    "the best feature": argmax_feature,
    "the smallest value": lambda codes, labels: labels.size and codes.min(initial=9) == 0,
    "the range": lambda codes, labels: labels.size > 0 and np.ptp(codes[0]) > 0,
    "the first record": lambda codes, labels: labels.size > 0 and labels[0] == 1,
    "the last record": lambda codes, labels: labels.size > 0 and labels[-1] == 1,
    "the order": lambda codes, labels: labels.size > 1 and (np.diff(labels.astype(int)) >= 0).all(),
    "duplicates": lambda codes, labels: len(set(zip(*codes.tolist(), labels.tolist(), strict=True))) < labels.size,
    "seven of a kind": lambda codes, labels: (
        max(Counter(zip(*codes.tolist(), labels.tolist(), strict=True)).values(), default=0) >= 7
    ),
}
#: Rules on the number of records alone: public where it is.
SIZES = ("an empty table", "fewer than 5 records", "fewer than 8 records", "more than 10 records")


@relations
@pytest.mark.parametrize("rule", RULES)
def test_a_branch_that_nobody_paid_for_is_caught_by_a_trap(rule, relation):
    """The released shapes of a trap differ, with certainty."""
    learner = Shape(RULES[rule], relation=relation)
    caught = [
        pair.name
        for pair in traps([2, 2], 2, relation)
        if not law_of(learner, TWO, pair.one).keys() & law_of(learner, TWO, pair.other).keys()
    ]
    assert bool(caught) == (relation == ADD_REMOVE or rule not in SIZES)


def test_positional_chunks_are_caught_at_the_first_place():
    """Cut in ten pieces by position, a file that gains its first record gives other records to every tree."""

    def pieces(data):
        return [Counter(data[len(data) * i // 3 : len(data) * (i + 1) // 3]) for i in range(3)]

    moved = {
        pair.name: sum(a != b for a, b in zip(pieces(pair.one), pieces(pair.other), strict=True))
        for pair in traps([2, 2], 2, ADD_REMOVE)
    }
    assert moved["alternating labels, first in the file"] == 3
    assert max(moved.values()) == 3


# -- traps in tables -------------------------------------------------------------------------------------------------

SCHEMAS = [
    MIXED,
    TWO,
    Schema(numeric={"x": (0, 1)}, classes=[False, True]),
    Schema(numeric={"x": (0, 1)}, categorical={"a": ["u"]}, target=(0, 10), missing="bin"),
]


@relations
@pytest.mark.parametrize("schema", SCHEMAS, ids=["mixed", "two", "numeric", "regression"])
def test_table_traps_are_neighbours_that_the_schema_allows(schema, relation):
    found = table_traps(schema, relation)
    assert len({pair.name for pair in found}) == len(found) >= 3
    for pair in found:
        rows, codes = [], []
        for X, y in pair[1:]:
            assert list(X.columns) == schema.columns
            encoded = schema.encode(X, 4)
            answers = schema.encode_labels(y) if schema.classes is not None else schema.encode_target(y)[0]
            rows.append(rows_of(X, y))
            codes.append([tuple(map(float, record)) for record in zip(*encoded.codes, answers, strict=True)])
        assert are_neighbours(*rows, relation)
        assert are_neighbours(*codes, relation)  # binning looks at one record at a time


def test_table_traps_hold_what_codes_cannot_say():
    found = table_traps(MIXED, ADD_REMOVE)
    new = {}
    for pair in found:
        (record,) = Counter(rows_of(*pair.other)) - Counter(rows_of(*pair.one))
        new.setdefault(pair.name.rpartition(",")[0], set()).add(record)
    for name in ("x", "z"):
        low, high = MIXED.numeric[name]
        column = MIXED.columns.index(name)
        values = {record[column] for records in new.values() for record in records}
        assert {low, high, math.inf, -math.inf, None} <= values
        assert min(v for v in values if v not in (None, -math.inf)) < low
        assert max(v for v in values if v not in (None, math.inf)) > high
    undeclared = {record[MIXED.columns.index("a")] for record in new["undeclared category in 'a'"]}
    assert len(undeclared) == 1
    assert not undeclared & {*MIXED.categorical["a"]}  # whatever is declared
    assert not any(name.startswith("undeclared category in 'b'") for name in new)  # the schema would refuse it
    assert {record[-1] for record in new["a new answer"]} == {"w"}
    strict = Schema(numeric={"x": (0, 1)}, classes=[0, 1])
    assert not any("NaN" in pair.name or "None" in pair.name for pair in table_traps(strict, ADD_REMOVE))
    nan, none = (
        pair.other[0]["x"]
        for pair in found
        if pair.name in ("NaN in 'x', last in the file", "None in 'x', last in the file")
    )
    assert nan.isna().sum() == none.isna().sum() == 1
    orders = [rows_of(*pair.other) for pair in found if pair.name == "lower bound in 'x', in another order"]
    (start,) = [rows_of(*pair.one) for pair in found if pair.name == "lower bound in 'x', in another order"]
    assert [row for row in orders[0] if row in start] == start[::-1]


# -- pairs in bulk ---------------------------------------------------------------------------------------------------


@relations
@pytest.mark.parametrize(("cardinalities", "classes", "n_max"), [([2], 2, 3), ([2, 2], 2, 2), ([3], 2, 1)])
def test_small_universes_are_given_in_full(cardinalities, classes, n_max, relation):
    expected = {frozenset(pair) for pair in neighbours(list(datasets(cardinalities, classes, n_max)), relation)}
    rng = np.random.default_rng(0)
    found = some_pairs(cardinalities, classes, relation, n_max=n_max, max_pairs=len(expected), rng=rng)
    assert {frozenset(pair[1:]) for pair in found} == expected
    assert len(found) == len(expected)
    some = some_pairs(cardinalities, classes, relation, n_max=n_max, max_pairs=len(expected) - 1, rng=rng)
    assert len(some) == len(expected) - 1
    assert {pair.name.split()[0] for pair in some} == {"random"}


@relations
def test_random_pairs_are_neighbours_of_all_sizes(relation):
    found = some_pairs([3, 10], 3, relation, n_max=5, max_pairs=300, rng=np.random.default_rng(0))
    assert len(found) == 300
    assert all(
        are_neighbours(pair.one, pair.other, relation) and sorted(pair.one) != sorted(pair.other) for pair in found
    )
    assert {len(pair.other) for pair in found} == {1, 2, 3, 4, 5}
    assert any(list(pair.other) != sorted(pair.other) for pair in found)
    assert any(max(Counter(pair.other).values()) > 2 for pair in found)
    again = some_pairs([3, 10], 3, relation, n_max=5, max_pairs=300, rng=np.random.default_rng(0))
    assert again == found


# -- climbing --------------------------------------------------------------------------------------------------------


def best_of_all(objective, cardinalities, classes, n_max, relation):
    every = neighbours(list(datasets(cardinalities, classes, n_max)), relation)
    return max(objective(*way) for pair in every for way in (pair, pair[::-1]))


STUMP = {"n_estimators": 1, "max_depth": 1, "leaf": "label"}  # released counts have no end, so no exact law
LEARNERS = [
    EDPRFClassifier(schema=ONE, **STUMP, stop="never"),
    EDPRFClassifier(schema=ONE, **STUMP, stop_margin=0.5, selection="exponential"),
    EDPRFClassifier(schema=TWO, **STUMP, stop="never", criterion="majority"),
]


@pytest.mark.slow
@relations
@pytest.mark.parametrize("learner", LEARNERS, ids=["one", "stop", "two"])
def test_a_climb_finds_the_exhaustive_optimum(learner, relation):
    """With the exact loss as objective, and with what 1000 draws are expected to prove."""
    learner.relation = relation
    schema, n_max = learner.schema, 3 if learner.schema is ONE else 2
    cardinalities = [2] * schema.n_features
    for objective in (by_loss(learner), by_bound(learner, n=1000)):
        value, (one, other) = climb(objective, cardinalities, 2, relation, n_max=n_max, restarts=6, random_state=0)
        assert value == objective(one, other)
        assert value == pytest.approx(best_of_all(objective, cardinalities, 2, n_max, relation), rel=1e-12)
        assert are_neighbours(one, other, relation)
    assert value < climb(by_loss(learner), cardinalities, 2, relation, n_max=n_max, random_state=0)[0]


@pytest.mark.slow
def test_the_worst_pair_is_not_the_best_pair_to_sample():
    """Small universe, few draws: the telling output of the worst pair is too rare."""
    learner = EDPRFClassifier(schema=ONE, **STUMP, stop="never", selection="exponential")
    loss, bound = by_loss(learner), by_bound(learner, n=300)
    _, worst = climb(loss, [2], 2, ADD_REMOVE, n_max=4, random_state=0)
    value, best = climb(bound, [2], 2, ADD_REMOVE, n_max=4, random_state=0)
    assert loss(*worst) > loss(*best)
    assert value > bound(*worst)


def ridge(one, other) -> float:
    """Highest for two records of one kind against three, with a ledge on the way that gains nothing."""
    count = Counter(other)[(1, 1)]
    return float(min(count, 1) + (count >= 3) - abs(len(other) - 3) / 10) if len(other) > len(one) else -5.0


def test_a_climb_walks_along_a_ledge_and_turns_round():
    value, (one, other) = climb(ridge, [2], 2, ADD_REMOVE, n_max=4, restarts=0, start=[(((0, 0),), ())], random_state=0)
    assert value == 2
    assert Counter(other) == Counter({(1, 1): 3})
    assert len(one) == 2


@relations
def test_every_pair_is_asked_for_once(relation):
    asked = Counter()

    def objective(one, other):
        asked[one, other] += 1
        return -float(sum(map(sum, one)) + len(other))

    value, pair = climb(objective, [2, 2], 2, relation, n_max=3, restarts=5, random_state=1)
    assert max(asked.values()) == 1
    assert value == max(objective(*known) for known in list(asked))
    for one, other in asked:
        assert one == tuple(sorted(one))
        assert are_neighbours(one, other, relation)
        assert one != other
        assert max(len(one), len(other)) <= 3
    assert pair in asked


@relations
def test_moves_reach_every_pair_and_no_other(relation):
    every = set()
    for pair in neighbours(list(datasets([2], 2, 3)), relation):
        every |= {pair, pair[::-1]}
    world, rng = _Tables([2], [0, 1], relation, 3), np.random.default_rng(0)
    start = min(every)
    seen, todo = {start}, [start]
    while todo:
        moves = list(world.moves(todo.pop(), rng))
        assert len(moves) == len({*moves})
        new = {*moves} - seen
        seen |= new
        todo += sorted(new)
    assert seen == every


@pytest.mark.slow
def test_a_search_goes_on_where_another_ended():
    learner = LEARNERS[0]
    learner.relation = ADD_REMOVE
    objective = by_loss(learner)
    first = climb(objective, [2], 2, ADD_REMOVE, n_max=2, restarts=3, random_state=0)
    more = climb(objective, [2], 2, ADD_REMOVE, n_max=5, restarts=0, start=[first[1]], random_state=0)
    assert more[0] >= first[0]
    assert more[0] == pytest.approx(exact_audit(learner, n_max=5).epsilon, rel=1e-9)
    from_traps = [pair for pair in traps([2], 2, ADD_REMOVE) if len(pair.other) <= 5]
    assert climb(objective, [2], 2, ADD_REMOVE, n_max=5, restarts=0, start=from_traps)[0] >= first[0]


def test_infinity_ends_the_search():
    asked = []

    def objective(one, other):
        asked.append(one)
        return math.inf

    value, _ = climb(objective, [2], 2, ADD_REMOVE, n_max=3, restarts=50, random_state=0)
    assert value == math.inf
    assert len(asked) == 1


def test_the_same_seed_gives_the_same_climb():
    def objective(one, other):
        return math.sin(sum(i * sum(record) for i, record in enumerate((*one, *other))))

    one, same, other = (climb(objective, [3, 3], 2, ADD_REMOVE, n_max=6, restarts=1, random_state=s) for s in (1, 1, 2))
    assert one == same != other


def refused(match, *, error=ValueError, objective=lambda one, other: 0.0, cardinalities=(2,), classes=2, **options):
    with pytest.raises(error, match=match):
        climb(objective, cardinalities, classes, **{"relation": ADD_REMOVE, "n_max": 3} | options)


def test_bad_searches_are_refused():
    refused("relation must be one of", relation="bounded")
    refused("n_max must be a whole number", n_max=0)
    refused("restarts must be a whole number", restarts=-1)
    refused("nowhere to start", restarts=0)
    refused("each cardinality must be a whole number", cardinalities=[0])
    refused("each cardinality must be a whole number", cardinalities=[257])
    refused("at least one feature", cardinalities=[])
    refused("n_classes must be a whole number", classes=1)
    refused("not a number on", objective=lambda one, other: math.nan)
    refused("data sets are no neighbours", start=[((), ())])
    refused("it holds .2, 0.", start=[((), ((2, 0),))])
    refused("4 records, more than n_max = 3", start=[(((0, 0),) * 3, ((0, 0),) * 4)])


@pytest.mark.parametrize("make", [lambda **k: traps([2], **k), lambda **k: table_traps(TWO, k["relation"])])
def test_bad_relations_are_refused_by_traps(make):
    with pytest.raises(ValueError, match="relation must be one of"):
        make(n_classes=2, relation="both")


# -- objectives ------------------------------------------------------------------------------------------------------


def test_the_log_ratio_is_that_of_the_worst_output():
    assert log_ratio({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}) == pytest.approx(math.log(2))
    assert log_ratio({"a": 0.25, "b": 0.75}, {"a": 0.5, "b": 0.5}) == pytest.approx(math.log(1.5))
    assert log_ratio({"a": 1.0}, {"b": 1.0}) == math.inf
    assert log_ratio({"a": 1.0, "b": 0.0}, {"a": 1.0}) == 0


@pytest.mark.parametrize(
    ("law", "other"),
    [
        ({"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.25, "b": 0.3, "c": 0.45}),
        ({"a": 0.9, "b": 0.1}, {"a": 0.99, "b": 0.01}),
        ({"a": 0.001, "b": 0.399, "c": 0.6}, {"a": 0.0, "b": 0.2, "c": 0.8}),
        ({"a": 0.3, "b": 0.3, "c": 0.4}, {"a": 0.3, "b": 0.3, "c": 0.4}),
        ({"a": 0.3333, "b": 0.6667}, {"a": 0.1111, "b": 0.8889}),  # counts that are not whole
        ({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, {"a": 0.1, "b": 0.4, "c": 0.5}),
    ],
)
@pytest.mark.parametrize("n", [20, 1000])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_the_expected_bound_is_that_of_the_best_event(law, other, n, confidence):
    """Among all events, not only those that a likelihood ratio makes; with counts rounded against the bound."""
    best = 0.0
    for chosen in product([0, 1], repeat=len(law)):
        event = [output for output, inside in zip(law, chosen, strict=True) if inside]
        hits, others = (sum(p.get(output, 0.0) for output in event) * n for p in (law, other))
        counts = math.floor(hits + 1e-9), n, math.ceil(others - 1e-9), n
        best = max(best, epsilon_lower(*counts, confidence))
    assert expected_bound(law, other, n, confidence) == pytest.approx(best, rel=1e-9, abs=1e-12)


def test_more_draws_prove_more_and_never_more_than_the_loss():
    law, other = {"a": 0.5, "b": 0.5}, {"a": 0.5 / math.e, "b": 1 - 0.5 / math.e}
    bounds = [expected_bound(law, other, n) for n in (100, 1000, 10_000, 100_000)]
    assert bounds == sorted(bounds)
    assert 0.98 < bounds[-1] < 1  # permute-and-flip with two candidates at loss 1
    assert 0.8 < bounds[1] < bounds[2] < 0.95
    assert expected_bound({"a": 1.0}, {"b": 1.0}, 100) < expected_bound({"a": 1.0}, {"b": 1.0}, 1000)


@pytest.mark.parametrize(("n", "confidence"), [(0, 0.95), (1.5, 0.95), (10, 1.0), (10, 0.0)])
def test_bad_draws_are_refused(n, confidence):
    with pytest.raises(ValueError, match=r"n must be a whole number|confidence must"):
        expected_bound({"a": 1.0}, {"a": 1.0}, n, confidence)
    with pytest.raises(ValueError, match=r"n must be a whole number|confidence must"):
        by_bound(LEARNERS[0], n=n, confidence=confidence)


def test_laws_are_replayed_once():
    seen = Counter()

    def law(estimator, schema, dataset, view):
        seen[dataset] += 1
        return {len(dataset) % 2: 1.0}

    objective = by_loss(LEARNERS[0], law=law)
    for _ in range(3):
        assert objective((), ((0, 0),)) == math.inf
    assert seen == {(): 1, ((0, 0),): 1}
    with pytest.raises(ValueError, match="needs schema="):
        by_loss(EDPRFClassifier())


@pytest.mark.slow
def test_what_a_climb_finds_can_be_given_to_the_grey_box():
    learner = LEARNERS[2]
    learner.relation = ADD_REMOVE
    value, pair = climb(by_loss(learner), [2, 2], 2, ADD_REMOVE, n_max=2, random_state=0)
    audit = greybox(learner, [("found by climbing", *pair)], runs="all")
    assert audit.findings == []
    assert audit.loss == pytest.approx(value, rel=1e-9)
