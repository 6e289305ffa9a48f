"""Privacy events: a ledger as a list of events that bounds its paths, and what dp-accounting says of them."""

from __future__ import annotations

import json
import math
import sys
import warnings
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpforest import (
    EDPRFClassifier,
    Guarantee,
    PinqID3Classifier,
    PrivateBoostingClassifier,
    RandomTreesClassifier,
    Schema,
)
from dpforest.privacy import KINDS, Ledger, epsilon_of, privacy_event, promised_event, rho_of, to_dp_event
from tests import not_run

RELATIONS = ("add-remove", "replace-one")


def costs(event: dict) -> list[float]:
    """What each event of a tree costs, as often as it is composed."""
    return [each.get("epsilon", each.get("rho", math.inf)) for each in event["events"] for _ in range(each["count"])]


def fitted(learner, **more):
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame({"a": rng.integers(0, 10, n), "b": rng.choice(["x", "y"], n)})
    schema = Schema(numeric={"a": (0, 10)}, categorical={"b": ["x", "y"]}, classes=["n", "p"])
    return learner(schema=schema, random_state=0, **{"epsilon": 1.0, **more}).fit(X, rng.choice(["n", "p"], n)).ledger_


def rhos(kind: str = "partition") -> Ledger:
    """A ledger under a delta: one query to all, then two children, the second of which costs less."""
    ledger = Ledger(delta=1e-6)
    ledger.charge(0, 0.01, 0.02, "all", "gaussian")
    (inner,) = ledger.open("inner", 0, kind)
    children = ledger.open("child", [inner, inner], "sequential")
    ledger.charge(children, [0.02, 0.01], [0.04, 0.02], "each", "gaussian")
    return ledger


LEARNERS = {
    "EDPRF": (EDPRFClassifier, {"n_estimators": 4, "max_depth": 3}),
    "RandomTrees": (RandomTreesClassifier, {"n_estimators": 3}),
    "PinqID3": (PinqID3Classifier, {}),
    "boosting": (PrivateBoostingClassifier, {}),
    "boosting, delta": (PrivateBoostingClassifier, {"delta": 1e-5, "n_estimators": 8, "epsilon": 0.5}),
}


@pytest.fixture(scope="module", params=LEARNERS)
def ledger(request):
    learner, more = LEARNERS[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(learner, **more)


@pytest.mark.parametrize("relation", RELATIONS)
def test_events_add_up_to_what_was_spent(ledger, relation):
    event = privacy_event(ledger, relation)
    assert math.fsum(costs(event)) == pytest.approx(ledger.paid(relation), rel=1e-12)
    assert json.loads(json.dumps(event)) == event
    assert event["charged"] == ("rhos" if ledger.delta else "losses")
    assert event["epsilon"] == ledger.total(relation)


def test_a_ledger_of_rhos_is_among_them():
    assert fitted(PrivateBoostingClassifier, delta=1e-5, n_estimators=8, epsilon=0.5).delta == 1e-5


def two(children, kind="partition", again=None) -> Ledger:
    """A ledger of one scope whose children are charged lists of losses; under replace-one twice as much."""
    ledger = Ledger()
    (inner,) = ledger.open("inner", 0, kind)
    for scope, path in zip(ledger.open("child", [inner] * len(children), "sequential"), children, strict=True):
        for loss in path:
            ledger.charge(scope, loss, 2 * loss if again is None else again, "counts", "geometric")
    return ledger


@pytest.mark.parametrize(
    ("children", "add_remove", "replace_one"),
    [
        ([[0.5, 0.25], [0.5, 0.25]], [0.5, 0.25], [1.0, 0.5]),  # alike: exact
        ([[0.5, 0.25], [0.25]], [0.5, 0.25], [1.0, 0.5]),  # one dominates; a record that moves costs .75 + .25
        ([[0.5, 0.25], [0.75]], [0.75], [1.5]),  # .5 and .25 are within .75
        ([[0.5, 0.5], [0.75]], [1.0], [2.0]),  # neither fits into the other: one event
    ],
)
def test_children_that_read_disjoint_records_are_bounded(children, add_remove, replace_one):
    ledger = two(children)
    for relation, expected in zip(RELATIONS, (add_remove, replace_one), strict=True):
        event = privacy_event(ledger, relation)
        assert costs(event) == expected
        assert math.fsum(expected) == ledger.paid(relation)
    joined = any("not charged alike" in note for note in privacy_event(ledger)["notes"])
    assert joined == (children == [[0.5, 0.5], [0.75]])


def test_a_record_that_moves_is_charged_in_two_children():
    ledger = two([[0.5, 0.25], [0.5, 0.25], [0.5, 0.25]], again=0.1)
    assert costs(privacy_event(ledger, "replace-one")) == [0.5, 0.5, 0.25, 0.25]
    ledger = two([[0.5, 0.25], [0.5], [0.25]], again=0.1)
    assert costs(privacy_event(ledger, "replace-one")) == [1.25] == [ledger.paid("replace-one")]
    ledger = two([[0.5], [0.25]], "assignment", again=0.6)
    assert costs(privacy_event(ledger, "replace-one")) == [0.6]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_composition_has_its_bound(kind):
    ledger = two([[0.5, 0.25], [0.25]], kind)
    for relation in RELATIONS:
        event = privacy_event(ledger, relation)
        assert math.fsum(costs(event)) == pytest.approx(ledger.paid(relation), rel=1e-12)
    ledger.charge(0, math.inf, math.inf, "exact", "none")
    assert privacy_event(ledger)["epsilon"] is None
    assert "non-private" in {each["event"] for each in privacy_event(ledger)["events"]}


def hockey_stick(losses, epsilon):
    """Distance at epsilon of compositions of randomised response with these losses, by all outcomes."""
    total = 0.0
    for signs in product((1, -1), repeat=len(losses)):
        log_p = sum(s * e / 2 - math.log(2 * math.cosh(e / 2)) for s, e in zip(signs, losses, strict=True))
        loss = sum(s * e for s, e in zip(signs, losses, strict=True))
        total += math.exp(log_p) * max(0.0, -math.expm1(epsilon - loss))
    return total


@pytest.mark.parametrize("seed", range(20))
def test_a_bound_dominates_each_child_at_every_epsilon(seed):
    rng = np.random.default_rng(seed)
    children = [rng.integers(1, 9, rng.integers(1, 5)) / 8 for _ in range(3)]
    bound = costs(privacy_event(two([child.tolist() for child in children]), "add-remove"))
    for epsilon in np.linspace(0, sum(bound), 15):
        assert all(hockey_stick(child, epsilon) <= hockey_stick(bound, epsilon) + 1e-12 for child in children)


def test_where_sums_alone_would_not_dominate():
    """The costlier of two children by its loss is not the worse one at every epsilon: one event for both is needed."""
    assert hockey_stick([0.5, 0.5], 0.55) > hockey_stick([0.75], 0.7)
    assert hockey_stick([0.75], 0.1) > hockey_stick([0.5, 0.5], 0.1)
    assert hockey_stick([1.0], 0.1) > hockey_stick([0.75], 0.1)


def test_a_leak_has_no_event_with_noise():
    ledger = two([[0.5]])
    ledger.leak("the number of records", "root")
    event = privacy_event(ledger)
    assert event["epsilon"] is None
    assert event["events"][-1] == {"event": "non-private", "of": str(ledger.leaks[0]), "count": 1}


def test_a_promise_is_one_event_of_every_run(ledger):
    event = promised_event(ledger)
    assert len(event["events"]) == 1
    assert costs(event) == [rho_of(0.5, 1e-5) if ledger.delta else 1.0]
    assert costs(event)[0] >= ledger.paid(ledger.relation) * (1 - 1e-12)


def test_no_rho_is_promised_where_an_answer_settles_whether_there_is_a_delta(monkeypatch):
    """A run without the delta has losses, one with it rhos: what every run promises is neither, but both numbers."""
    promised, used = [], set()
    for n_rows in (150, 9000):  # clearly too few for a delta, and clearly enough
        X = np.linspace(0, 10, n_rows)[:, None]
        schema = Schema(numeric={"a": (0, 10)}, classes=["n", "p"])
        learner = PrivateBoostingClassifier(epsilon=1.0, delta=1e-6, schema=schema, random_state=0)
        ledger = learner.fit(X, np.where(X[:, 0] > 5, "n", "p")).ledger_
        used.add(ledger.delta)
        promised.append(promised_event(ledger))
    assert used == {0.0, 1e-6}
    event = {"event": "approximate", "epsilon": 1.0, "delta": 1e-6, "of": "the promise", "count": 1}
    assert [each["events"] for each in promised] == [[event], [event]]
    assert [each["charged"] for each in promised] == ["losses", "rhos"]
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(dp_event=_Made()))
    assert to_dp_event(promised[0]) == (
        "ComposedDpEvent",
        [("SelfComposedDpEvent", ("EpsilonDeltaDpEvent", 1.0, 1e-6), 1)],
    )
    old = SimpleNamespace(ComposedDpEvent=list)  # a release that has no such event
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(dp_event=old))
    with pytest.raises(ImportError, match="take a later one"):
        to_dp_event(promised[0])


def test_a_promise_that_has_no_event_is_refused():
    ledger = two([[0.5]])
    with pytest.raises(ValueError, match="no promise"):
        promised_event(ledger)
    ledger.promise = Guarantee(1.0, "add-remove", max_rows=3)
    with pytest.raises(ValueError, match="persons"):
        promised_event(ledger)
    ledger.promise = Guarantee(1.0, "add-remove", delta=1e-6)
    with pytest.raises(ValueError, match="another delta"):
        promised_event(ledger)
    ledger.promise = Guarantee(math.inf, "add-remove", variant="published")
    assert [each["event"] for each in promised_event(ledger)["events"]] == ["non-private"]


@pytest.mark.parametrize("given", [None, {}, EDPRFClassifier()], ids=["None", "dict", "a model"])
def test_what_is_no_ledger_and_no_event_is_refused_in_words(given):
    for function in (privacy_event, promised_event):
        with pytest.raises(TypeError, match=r"of a ledger, such as clf\.ledger_, not of"):
            function(given)
    with pytest.raises(TypeError, match="is what privacy_event or promised_event gave, not"):
        to_dp_event(given)


def test_without_dp_accounting_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match="pip install dp-accounting"):
        to_dp_event(privacy_event(two([[0.5]])))


class _Made:
    """A stand-in for the module of events: each is its name and its arguments."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: (name, *args, *kwargs.values())


@pytest.mark.parametrize("relation", RELATIONS)
def test_events_of_dp_accounting_are_made_with_these_arguments(monkeypatch, relation):
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(dp_event=_Made()))
    made = to_dp_event(privacy_event(two([[0.5, 0.5]]), relation))[1]
    coin = ("RandomizedResponseDpEvent", pytest.approx(2 / (1 + math.e), rel=1e-15), 2)
    noise = ("SelfComposedDpEvent", ("DiscreteLaplaceDpEvent", 0.5, 1), 2)
    assert made == {"add-remove": [noise], "replace-one": [coin, coin]}[relation]
    assert to_dp_event(privacy_event(rhos(), relation))[1][0] == (
        "SelfComposedDpEvent",
        ("ZCDpEvent", {"add-remove": 0.01, "replace-one": 0.02}[relation]),
        1,
    )
    with pytest.raises(ValueError, match="pure, concentrated, approximate or non-private"):
        to_dp_event({"relation": relation, "events": [{"event": "other", "count": 1}]})


# --- where dp-accounting is installed ---------------------------------------------------------------------------------
def accountant(event: dict):
    pytest.importorskip("dp_accounting", reason=not_run.DP_ACCOUNTING)
    import dp_accounting

    relation = {"add-remove": "ADD_OR_REMOVE_ONE", "replace-one": "REPLACE_ONE"}[event["relation"]]
    relation = getattr(dp_accounting.NeighboringRelation, relation)
    if event["charged"] == "rhos":
        return dp_accounting.rdp.RdpAccountant(neighboring_relation=relation).compose(to_dp_event(event))
    return dp_accounting.pld.PLDAccountant(relation).compose(to_dp_event(event))


@pytest.mark.parametrize("relation", RELATIONS)
def test_dp_accounting_composes_the_events_to_what_we_say(ledger, relation):
    event = privacy_event(ledger, relation)
    said = accountant(event).get_epsilon(ledger.delta)
    # never below; a step of their grid for each event above, or that of their list of orders
    assert ledger.total(relation) * (1 - 1e-9) <= said <= ledger.total(relation) * 1.01 + 1e-4 * len(costs(event))


@pytest.mark.parametrize("losses", [[0.5], [0.5, 0.25, 0.25], [0.1] * 8])
@pytest.mark.parametrize("relation", RELATIONS)
def test_dp_accounting_agrees_with_all_outcomes_at_a_delta(losses, relation):
    event = privacy_event(two([losses], again=None), relation)
    exact = hockey_stick(costs(event), 0.3)
    assert accountant(event).get_delta(0.3) == pytest.approx(exact, rel=0.02)
    assert accountant(event).get_delta(0.3) >= exact * (1 - 1e-9)


def test_dp_accounting_says_of_rhos_what_we_say():
    event = privacy_event(rhos())
    assert accountant(event).get_epsilon(1e-6) == pytest.approx(epsilon_of(0.03, 1e-6), rel=1e-2)
    assert accountant(event).get_epsilon(1e-6) >= epsilon_of(0.03, 1e-6) * (1 - 1e-9)


def test_dp_accounting_says_a_leak_is_no_privacy():
    ledger = two([[0.5]])
    ledger.leak("the number of records", "root")
    assert accountant(privacy_event(ledger)).get_epsilon(0) == math.inf
