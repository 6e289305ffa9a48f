"""Executable proofs of *One person, many rows*: who is a person, which rows are kept, and what a person is promised."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import cache, partial
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from shared import MIXED, table

from dpforest import EDPRFClassifier, Guarantee, PrivateBoostingClassifier, Schema, SmoothForestClassifier, load
from dpforest.audit.exact.replay import law_of
from dpforest.learners import persons
from dpforest.mechanisms import discrete_gaussian_law
from dpforest.models.release import released
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, epsilon_of, rho_of

ONE = Schema(categorical={"a": [0, 1]}, classes=[0, 1])
ROWS = list(product((0, 1), repeat=2))  # a and the class
EPSILON = 1.2


def of_size(*sizes: int) -> list[tuple]:
    """All multisets of rows of these sizes: what a person may bring along."""
    return [rows for size in sizes for rows in combinations_with_replacement(ROWS, size)]


def kept(people: tuple[tuple, ...], max_rows: int, rule=persons.own_rows) -> tuple:
    """The rows that are learned from, where these people's rows stand in a table, as a sorted tuple."""
    rows = [(who, *row) for who, own in enumerate(people) for row in own]
    whose, a, label = np.array(rows).T
    places = rule(a[None].astype(np.uint8), label.astype(np.uint8), whose, max_rows)
    return tuple(sorted(rows[place][1:] for place in places))


@cache
def law(relation: str, each: float, rows: tuple) -> dict:
    """The exact law of a released model that ships: a label in each of two leaves, at all of epsilon."""
    model = SmoothForestClassifier(epsilon=each, schema=ONE, n_estimators=1, max_depth=1, relation=relation)
    return law_of(model, model.audited_schema(), rows, lambda forest: tuple(map(tuple, forest.values.tolist())))


def loss(relation: str, each: float, pairs) -> float:
    laws = ((law(relation, each, one), law(relation, each, other)) for one, other in pairs)
    return max(abs(math.log(p[output] / q[output])) for p, q in laws for output in p)


def neighbours(max_rows: int, rule=persons.own_rows):
    """What is kept of all pairs of data sets that differ by one person, first or last in the table."""
    for common, more in product(of_size(1, 2, 3), of_size(1, 2, 3)):
        without = kept((common,), max_rows, rule)
        for people in ((common, more), (more, common)):
            yield without, kept(people, max_rows, rule)


@pytest.mark.claim(
    "thm-persons", verdict="proved", evidence="exhaustive",
    constant=r"$k\alpha$ for a person of at most $k$ kept rows, $k^2\rho$ with a delta, both attained; under "
    "replace-one for $k = 1$",
)  # fmt: skip
@pytest.mark.parametrize("max_rows", [1, 2, 3])
def test_the_loss_of_a_person(max_rows):
    """With epsilon / k for a row, the worst pair of neighbours that differ by one person loses epsilon, to the bit."""
    each = persons.of_a_row(EPSILON, 0.0, max_rows)
    assert each == EPSILON / max_rows
    found = loss(ADD_REMOVE, each, neighbours(max_rows))
    assert found == pytest.approx(EPSILON, rel=1e-12)
    # one step of the k, by one row, is what a row is promised
    assert loss(ADD_REMOVE, each, [((), ((0, 0),)), (((0, 0),), ((0, 0), (0, 0)))]) == pytest.approx(each, rel=1e-12)


def test_a_person_who_is_replaced():
    """Of one row each: a replaced row, and the number of rows stays.  Of two: the number of rows tells them apart."""
    pairs = [
        (kept((common, one), 1), kept((common, other), 1))
        for common, one, other in product(of_size(1, 2), of_size(1, 2), of_size(1, 2))
    ]
    assert {len(one) - len(other) for one, other in pairs} == {0}
    assert loss(REPLACE_ONE, EPSILON, pairs) == pytest.approx(EPSILON, rel=1e-12)
    assert len(kept((((0, 0),), ((0, 0),)), 2)) != len(kept((((0, 0),), ((0, 0), (0, 1))), 2))


def one_more(codes, labels, whose, max_rows, ids=None):
    return persons.own_rows(codes, labels, whose, max_rows + 1, ids)


def first_of_the_table(codes, labels, whose, max_rows, ids=None):
    """So many rows for each person on average: whoever stands first pushes out the others' rows."""
    return np.arange(min(len(labels), max_rows * len(set(whose.tolist()))))


def rarest(codes, labels, whose, max_rows, ids=None):
    """Of each person the rows that are rarest in the table: another person's rows decide which these are."""
    rows = list(zip(codes[0].tolist(), labels.tolist(), strict=True))
    times = Counter(rows)
    own = [
        sorted(np.flatnonzero(whose == who), key=lambda place: (times[rows[place]], rows[place])) for who in set(whose)
    ]
    return np.sort([place for places in own for place in places[:max_rows]])


@pytest.mark.parametrize("rule", [one_more, first_of_the_table, rarest])
def test_each_hypothesis_of_the_rule_is_needed(rule):
    """A rule that keeps one row more, or looks at another person's rows, costs more than epsilon."""
    assert loss(ADD_REMOVE, EPSILON / 2, neighbours(2, rule)) > 1.1 * EPSILON


@pytest.mark.claim(
    "lem-own-rows", verdict="proved", evidence="exhaustive", constant="at most $k$ rows, those of the person alone"
)
def test_what_is_kept_of_a_person_is_what_is_kept_of_that_person_alone():
    for first, second in product(of_size(1, 2, 3), of_size(1, 2, 3)):
        for most in (1, 2):
            alone = [kept((own,), most) for own in (first, second)]
            assert [len(rows) for rows in alone] == [min(most, len(own)) for own in (first, second)]
            for people in ((first, second), (second, first), (first[::-1], second)):
                assert kept(people, most) == tuple(sorted(alone[0] + alone[1]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), *[st.integers(0, 2)] * 3, st.integers(0, 1)), min_size=1), st.randoms())
def test_the_order_of_the_table_does_not_matter(rows, random):
    """Nor does the order of a person's rows, with keys of their own beside codes and labels."""

    def contents(rows):
        whose, a, b, label, ids = np.array(rows).T
        codes = np.array([a, b], dtype=np.uint8)
        places = persons.own_rows(codes, label.astype(np.uint8), whose, 2, ids.astype(np.uint64))
        assert (np.diff(places) > 0).all()
        return Counter(rows[place] for place in places)

    shuffled = random.sample(rows, len(rows))
    assert contents(rows) == contents(shuffled)
    for who in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == who]
        assert {row: n for row, n in contents(rows).items() if row[0] == who} == dict(contents(own))


def test_rows_with_one_hash_are_told_apart_by_what_they_say(monkeypatch):
    monkeypatch.setattr(persons.keyed, "siphash", lambda key, numbers: np.zeros(len(numbers), dtype=np.uint64))
    for own in of_size(3):
        assert len({kept((order,), 1) for order in (own, own[::-1], own[1:] + own[:1])}) == 1


@pytest.mark.claim(
    "lem-concentrated-group", verdict="proved", evidence="numerical",
    constant=r"$k^2\rho$, attained by discrete Gaussian noise at whole orders",
)  # fmt: skip
@pytest.mark.parametrize("steps", [2, 3, 5])
def test_steps_of_a_rho(steps):
    """Attained by shifts of discrete Gaussian noise; and no chain of laws loses more."""

    def divergence(p, q, order):
        order = np.asarray(order)[..., None]
        return special.logsumexp(order * np.log(p) - (order - 1) * np.log(q), axis=-1) / (order[..., 0] - 1)

    rho = 0.05
    for order in (2, 3, 5):
        reach = np.arange(-60, 90)
        p, q = (discrete_gaussian_law(reach - shift, rho) for shift in (0, steps))
        assert divergence(q, p, order) == pytest.approx(order * steps**2 * rho, rel=1e-9)
    rng = np.random.default_rng(steps)
    for _ in range(20):
        walk = np.cumsum(rng.normal(0, 0.4, (steps + 1, 6)), axis=0)
        laws = np.exp(walk) / np.exp(walk).sum(axis=1, keepdims=True)
        orders = 1 + np.logspace(-3, 3, 200)
        one = max(
            (divergence(p, q, orders) / orders).max()
            for i in range(steps)
            for p, q in ((laws[i], laws[i + 1]), (laws[i + 1], laws[i]))
        )
        assert (divergence(laws[0], laws[-1], orders) <= orders * steps**2 * one * (1 + 1e-9)).all()


def test_what_a_row_is_left_with_under_a_delta():
    each = persons.of_a_row(1.0, 1e-6, 4)
    assert rho_of(each, 1e-6) == pytest.approx(rho_of(1.0, 1e-6) / 16, rel=1e-9)
    assert epsilon_of(16 * rho_of(each, 1e-6), 1e-6) == pytest.approx(1.0, rel=1e-9)
    assert persons.of_a_row(math.inf, 0.0, 4) == math.inf
    with pytest.raises(ValueError, match="leaves 1e-10 for each of max_rows=100 rows"):
        persons.of_a_row(1e-8, 0.0, 100)


# -- fit -------------------------------------------------------------------------------------------------------------


def visits(n: int = 300):
    X, y = table(n)
    return X.assign(id=np.random.default_rng(1).integers(0, n // 4, n)), y


def forest(model) -> str:
    return json.dumps(model.forest_.to_dict())


def test_a_fit_for_persons_is_a_fit_of_the_kept_rows():
    X, y = visits()
    model = EDPRFClassifier(epsilon=1.0, schema=MIXED, n_estimators=3, random_state=0)
    fitted = model.fit(X, y, person="id", max_rows=2)
    codes, labels = MIXED.encode(X, model.n_bins).codes, MIXED.encode_labels(y)
    places = persons.own_rows(codes, labels, X["id"].to_numpy(), 2)
    assert X["id"].iloc[places].value_counts().max() == 2 < X["id"].value_counts().max()
    twin = EDPRFClassifier(epsilon=0.5, schema=MIXED, n_estimators=3, random_state=0).fit(X.iloc[places], y[places])
    assert forest(fitted) == forest(twin)
    assert fitted.guarantee_.epsilon == 1.0
    assert fitted.ledger_.epsilon == pytest.approx(0.5, rel=1e-12)
    assert fitted.feature_names_in_.tolist() == ["x", "c"]


def test_any_table_gives_the_same_bits():
    X, y = visits()
    fit = partial(EDPRFClassifier(epsilon=1.0, schema=MIXED, n_estimators=2, random_state=0).fit, max_rows=2)
    found = forest(fit(X, y, person="id"))
    ids = X["id"].tolist()
    assert forest(fit(X.assign(y=y), "y", person="id")) == found
    assert forest(fit(pa.Table.from_pandas(X), y, person="id")) == found
    assert forest(fit(X[["x", "c"]].to_numpy(), y, person=ids)) == found
    texts = pd.Series(map(str, ids), dtype="string")
    for named in (
        np.array(ids, float),
        np.array(ids, object),
        pd.Series(ids, dtype="Int64"),
        pd.Categorical(ids),
        texts,
    ):
        assert forest(fit(X, y, person=named)) == found


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
def test_the_guarantee_says_the_unit(tmp_path, relation):
    X, y = visits()
    most = 3 if relation == ADD_REMOVE else 1
    model = EDPRFClassifier(epsilon=1.0, schema=MIXED, relation=relation, random_state=0)
    promise = model.fit(X, y, person="id", max_rows=most).guarantee_
    assert promise.unit == f"a person of at most {'3 rows' if most == 3 else '1 row'}"
    assert promise.unit in str(promise)
    assert promise.unit in repr(model.ledger_)
    assert "Take any one person" in promise.explain()
    assert promise.of_rows(10) == 1.0
    assert promise.rests_on == ("SipHash",)  # where a person is replaced, the rows of others may change places
    model.save(tmp_path / "model.json", seeded=True)
    assert load(tmp_path / "model.json").guarantee_ == promise
    assert json.loads((tmp_path / "model.json").read_text())["guarantee"]["unit"] == promise.unit


def test_a_guarantee_with_a_delta():
    X, y = visits()
    model = PrivateBoostingClassifier(epsilon=1.0, delta=1e-6, schema=MIXED, random_state=0, n_estimators=3)
    promise = model.fit(X, y, person="id", max_rows=2).guarantee_
    assert (promise.epsilon, promise.delta, promise.delta_of_rows(5), promise.max_rows) == (1.0, 1e-6, 1e-6, 2)
    assert epsilon_of(4 * model.ledger_.paid(ADD_REMOVE), 1e-6) == pytest.approx(1.0, rel=1e-9)
    assert persons.together(model.ledger_, 2) <= 1 + 1e-9
    assert "1e-06 more" in promise.explain()


@pytest.mark.parametrize("unit", ["a person of at most 0 rows", "a person of at most 3 row", "one person", "3", "",
                                  "a person of at most ٣ rows", "a person of at most 03 rows", "one row "])  # fmt: skip
def test_an_unknown_unit_is_refused(unit):
    X, y = visits()
    model = EDPRFClassifier(epsilon=1.0, schema=MIXED, random_state=0, n_estimators=1)
    description = model.fit(X, y, person="id", max_rows=3).to_dict(seeded=True)
    description["guarantee"]["unit"] = unit
    with pytest.raises(ValueError, match="unit is"):
        released(description)


def test_a_row_is_the_unit_unless_asked():
    assert Guarantee(1.0, ADD_REMOVE).unit == "one row"
    assert Guarantee(1.0, ADD_REMOVE, max_rows=1).unit == "a person of at most 1 row"


REFUSED = [
    ({"person": "id"}, "needs max_rows="),
    ({"max_rows": 2}, "name the column"),
    ({"person": "id", "max_rows": 0}, "max_rows must be a whole number"),
    ({"person": "x", "max_rows": 2}, "take it out of the schema"),
    ({"person": "nobody", "max_rows": 2}, "no column 'nobody'"),
    ({"person": [1, 2], "max_rows": 2}, "person has 2"),
]


@pytest.mark.parametrize(("asked", "message"), REFUSED)
def test_what_cannot_be_is_refused(asked, message):
    X, y = visits()
    with pytest.raises((ValueError, TypeError), match=message):
        EDPRFClassifier(epsilon=1.0, schema=MIXED).fit(X, y, **asked)


def test_what_no_theorem_covers_is_refused(tmp_path):
    X, y = visits()
    model = EDPRFClassifier(epsilon=1.0, schema=MIXED, relation=REPLACE_ONE)
    with pytest.raises(ValueError, match="fit with relation='add-remove'"):
        model.fit(X, y, person="id", max_rows=2)
    X.assign(y=y).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="read it into memory"):
        EDPRFClassifier(epsilon=1.0, schema=MIXED).fit(tmp_path / "table.parquet", "y", person="id", max_rows=2)
    with pytest.raises(TypeError, match="X must be a frame"):
        EDPRFClassifier(epsilon=1.0, schema=MIXED).fit(X[["x", "c"]].to_numpy(), y, person="id", max_rows=2)


# -- who is who ------------------------------------------------------------------------------------------------------


def test_names_of_persons_are_never_mixed_up():
    """Equal numbers are one person however they are written, texts are texts, and nothing is hashed to 64 bits."""
    found = persons.identify([1, "1", 1.0, True, "1.0", np.int8(1), np.float32(1), 1.5, "one", "1"])
    assert found.tolist() == [0, 1, 0, 0, 2, 0, 0, 3, 4, 1]
    assert len(set(persons.identify([-1, 2**64 - 1, 2**53, 2**53 + 1, -(2**63), 2**63]).tolist())) == 6
    assert persons.identify(np.array([2**63, 2**63 + 1], dtype=np.uint64)).tolist() == [0, 1]
    assert persons.identify(np.array([0.0, -0.0])).tolist() == [0, 0]
    assert persons.identify(pd.Series(["b", "a", "b"], dtype="category")).tolist() == [0, 1, 0]
    assert persons.identify(["\ud800", "a"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "names",
    [[1, None], [1.0, math.nan], np.array([1, np.nan]), pd.Series([1, None], dtype="Int64"),
     pd.Series(["a", None], dtype="string"), pd.Categorical(["a", None]), np.array(["a", np.nan], dtype=object)],
)  # fmt: skip
def test_a_missing_person_is_refused(names):
    with pytest.raises(ValueError, match="leave these rows out"):
        persons.identify(names)


@pytest.mark.parametrize(
    "names", [[2.0**53], np.array([-1e30]), [np.float32(2**24)], np.array([2**24], dtype=np.float32), [math.inf]]
)
def test_a_float_that_may_be_two_persons_is_refused(names):
    with pytest.raises(ValueError, match="may stand for several: pass text"):
        persons.identify(names)


@pytest.mark.parametrize("names", [[b"a"], [(1, 2), (1, 3)], [1j], np.array(["2020-01-01"], dtype="M8[D]")])
def test_what_is_no_name_is_refused(names):
    with pytest.raises((TypeError, ValueError)):
        persons.identify(names)
