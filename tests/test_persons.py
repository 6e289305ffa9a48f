"""Executable proofs of *One person, many rows*: who is a person, which rows are kept, and what a person is promised."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from shared import MIXED, table

from dpforest import (
    EDPRFClassifier,
    Guarantee,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    Schema,
    SmoothForestClassifier,
    load,
)
from dpforest.audit.exact.enumeration import law_of
from dpforest.chance import Secure, Seeded, outcomes
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


def kept(people: dict[str, tuple], max_rows: int, rule=persons.own_rows, chance=0) -> tuple:
    """The rows that are learned from, where these people's rows stand in a table, as a sorted tuple.

    ``chance``: a seed, for lots that are given, or a source.
    """
    rows = [row for own in people.values() for row in own]
    places = np.repeat(np.arange(len(people)), [len(own) for own in people.values()])
    named = persons.People(places, np.concatenate([persons_name(who) for who in people]))
    a, label = np.array(rows, dtype=np.uint8).reshape(-1, 2).T
    places = rule(a[None], label, named, max_rows, Seeded(chance) if isinstance(chance, int) else chance)
    return tuple(sorted(rows[place] for place in places))


@cache
def persons_name(who: str) -> np.ndarray:
    return persons.identify([who]).names


@cache
def law(relation: str, each: float, rows: tuple) -> dict:
    """The exact law of a released model that ships: a label in each of two leaves, at all of epsilon."""
    model = SmoothForestClassifier(epsilon=each, schema=ONE, n_estimators=1, max_depth=1, relation=relation)
    return law_of(model, model.audited_schema(), rows, lambda forest: tuple(map(tuple, forest.values.tolist())))


def loss(relation: str, each: float, pairs) -> float:
    laws = ((law(relation, each, one), law(relation, each, other)) for one, other in pairs)
    return max(abs(math.log(p[output] / q[output])) for p, q in laws for output in p)


def neighbours(max_rows: int, rule=persons.own_rows, lots: int = 0):
    """What is kept of all pairs of data sets that differ by one person, first or last in the table, by given lots."""
    for common, more in product(of_size(1, 2, 3), of_size(1, 2, 3)):
        without = kept({"c": common}, max_rows, rule, lots)
        for people in ({"c": common, "m": more}, {"m": more, "c": common}):
            yield without, kept(people, max_rows, rule, lots)


def a_row_changes(max_rows: int, rule=persons.own_rows, lots: int = 0):
    """What is kept of all pairs in which one row of a person who stays is added or changed, by given lots."""
    for own in of_size(1, 2, 3):
        before = kept({"p": own}, max_rows, rule, lots)
        for new in ROWS:
            yield before, kept({"p": (*own, new)}, max_rows, rule, lots)
            yield before, kept({"p": (new, *own[1:])}, max_rows, rule, lots)


@pytest.mark.claim(
    "thm-persons",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$k\alpha$ for a person of at most $k$ kept rows, $k^2\rho$ with a delta, both attained; under "
    "replace-one for $k = 1$",
)
@pytest.mark.parametrize("lots", [0, 1])
@pytest.mark.parametrize("max_rows", [1, 2, 3])
def test_the_loss_of_a_person(max_rows, lots):
    """With epsilon / k for a row, the worst pair of neighbours that differ by one person loses epsilon, to the bit.

    Whatever the lots are: they are given here, and everyone may know them.
    """
    each = persons.of_a_row(EPSILON, 0.0, max_rows)
    assert each == EPSILON / max_rows
    found = loss(ADD_REMOVE, each, neighbours(max_rows, lots=lots))
    assert found == pytest.approx(EPSILON, rel=1e-12)
    # a row of a person who stays: two steps at most, a row less and another row
    assert each < loss(ADD_REMOVE, each, a_row_changes(max_rows, lots=lots)) <= 2 * each * (1 + 1e-12)
    # one step of the k, by one row, is what a row is promised
    assert loss(ADD_REMOVE, each, [((), ((0, 0),)), (((0, 0),), ((0, 0), (0, 0)))]) == pytest.approx(each, rel=1e-12)


@pytest.mark.claim("thm-persons")
@pytest.mark.parametrize("lots", [0, 1])
def test_a_person_who_is_replaced(lots):
    """Of one row each: a replaced row, and the number of rows stays.  Of two: the number of rows tells them apart."""
    people = list(product(of_size(1, 2), of_size(1, 2), of_size(1, 2)))
    pairs = [
        (kept({"c": common, "m": one}, 1, chance=lots), kept({"c": common, "other": other}, 1, chance=lots))
        for common, one, other in people
    ]
    assert {len(one) - len(other) for one, other in pairs} == {0}
    assert loss(REPLACE_ONE, EPSILON, pairs) == pytest.approx(EPSILON, rel=1e-12)
    # a row of a person who stays, of whom one is kept: the number of rows stays, too
    changes = list(a_row_changes(1, lots=lots))
    assert {len(rows) for pair in changes for rows in pair} == {1}
    assert 0 < loss(REPLACE_ONE, EPSILON, changes) <= EPSILON * (1 + 1e-12)
    assert len(kept({"c": ((0, 0),), "m": ((0, 0),)}, 2)) != len(kept({"c": ((0, 0),), "m": ((0, 0), (0, 1))}, 2))


def one_more(codes, labels, people, max_rows, chance):
    return persons.own_rows(codes, labels, people, max_rows + 1, chance)


def first_of_the_table(codes, labels, people, max_rows, chance):
    """So many rows for each person on average: whoever stands first pushes out the others' rows."""
    return np.arange(min(len(labels), max_rows * len(people.names)))


def rarest(codes, labels, people, max_rows, chance):
    """Of each person the rows that are rarest in the table: another person's rows decide which these are."""
    times = Counter(zip(codes[0].tolist(), labels.tolist(), strict=True))
    return by(people, max_rows, [(times[row], row) for row in zip(codes[0].tolist(), labels.tolist(), strict=True)])


def lots_of_places(codes, labels, people, max_rows, chance):
    """A given lot for each place of the table: whoever stands in front moves the others on to other lots."""
    return by(people, max_rows, chance.lots(np.arange(len(labels), dtype=np.uint64)))


def lots_of_ranks(codes, labels, people, max_rows, chance):
    """A given lot for each row, named by its person's rank in the table, and not by the person's name."""
    ranks = persons.People(people.places, np.arange(len(people.names), dtype=np.uint64))
    return persons.own_rows(codes, labels, ranks, max_rows, chance)


def lots_of_shares(codes, labels, people, max_rows, chance):
    """Lots that depend on how often a person's rows say the same: one row more, and others have other lots."""
    rows = list(zip(people.places.tolist(), codes[0].tolist(), labels.tolist(), strict=True))
    times = Counter(rows)
    number = [(times[row], row, rows[:place].count(row)) for place, row in enumerate(rows)]
    return by(people, max_rows, [hashlib.sha256(repr(each).encode()).digest() for each in number])


def by(people, max_rows, order) -> np.ndarray:
    """The first rows of each person in this order."""
    own = [sorted(np.flatnonzero(people.places == who), key=lambda place: order[place]) for who in set(people.places)]
    return np.sort([place for places in own for place in places[:max_rows]])


@pytest.mark.claim("thm-persons", "lem-own-rows")
@pytest.mark.parametrize("rule", [one_more, first_of_the_table, rarest, lots_of_places, lots_of_ranks])
def test_each_hypothesis_of_the_rule_is_needed(rule):
    """A rule that keeps one row more, or in which another person has a say, costs more than epsilon."""
    assert loss(ADD_REMOVE, EPSILON / 2, neighbours(2, rule)) > 1.1 * EPSILON


@pytest.mark.claim("lem-own-rows")
def test_rows_that_say_the_same_are_numbered_one_by_one():
    """If each of a person's rows is known by how many say the same, then one row more moves several."""
    pairs = a_row_changes(2, lots_of_shares)
    assert max((Counter(before) - Counter(after)).total() for before, after in pairs) == 2


@pytest.mark.claim(
    "lem-own-rows",
    verdict="proved",
    evidence="exhaustive",
    constant="at most $k$ rows, those of the person alone; one row more or less moves at most one; any $k$ as likely",
)
def test_what_is_kept_of_a_person_is_what_is_kept_of_that_person_alone():
    for first, second in product(of_size(1, 2, 3), of_size(1, 2, 3)):
        for most in (1, 2):
            alone = [kept({who: own}, most) for who, own in (("p", first), ("q", second))]
            assert [len(rows) for rows in alone] == [min(most, len(own)) for own in (first, second)]
            for people in ({"p": first, "q": second}, {"q": second, "p": first}, {"p": first[::-1], "q": second}):
                assert kept(people, most) == tuple(sorted(alone[0] + alone[1]))


@pytest.mark.claim("lem-own-rows")
@pytest.mark.parametrize("max_rows", [1, 2, 3])
def test_one_row_of_a_person_moves_one_kept_row_at_most(max_rows):
    """One less and one more, attained: noisy counts of all rows lose one epsilon of a row for each of the two."""
    for lots in range(4):
        moved = set()
        for before, after in a_row_changes(max_rows, lots=lots):
            one, other = Counter(before), Counter(after)
            moved.add(((one - other).total(), (other - one).total()))
        assert (1, 1) in moved <= {(0, 0), (0, 1), (1, 1)}


@pytest.mark.claim("lem-own-rows")
@pytest.mark.parametrize("own", of_size(2, 3, 4), ids=str)
def test_every_choice_of_a_persons_rows_is_as_likely(own):
    """The exact law of what is kept, over all orders of the lots: rows a, a and b keep a with probability 2/3."""
    for max_rows in range(1, len(own)):
        law, wanted = Counter(), Counter()
        for rows, probability in outcomes(lambda chance, most=max_rows: kept({"p": own}, most, chance=chance)):
            law[rows] += Fraction(probability).limit_denominator(24)
        subsets = list(combinations(own, max_rows))
        for rows in subsets:
            wanted[rows] += Fraction(1, len(subsets))
        assert law == wanted


@pytest.mark.claim("lem-own-rows")
def test_persons_draw_their_lots_apart():
    law = Counter()
    for rows, probability in outcomes(
        lambda chance: kept({"p": ((0, 0), (0, 1)), "q": ((1, 0), (1, 1))}, 1, chance=chance)
    ):
        law[rows] += Fraction(probability).limit_denominator(24)
    assert law == {((0, one), (1, other)): Fraction(1, 4) for one, other in product((0, 1), repeat=2)}


def spread(n_codes: int, n: int = 3000, each: int = 3):
    """Rows of persons who have so many each, whatever they say, with fair labels."""
    rng = np.random.default_rng(n_codes)
    codes, labels = rng.integers(0, n_codes, (1, n * each)), rng.integers(0, 2, n * each)
    return codes.astype(np.uint8), labels.astype(np.uint8), np.repeat(np.arange(n), each)


@pytest.mark.claim("lem-own-rows")
@pytest.mark.parametrize("source", [Seeded, Secure])
@pytest.mark.parametrize("n_codes", range(1, 9))
def test_the_kept_rows_are_a_fair_sample(n_codes, source):
    """The share of each code and of each label is within four standard errors of what it is among all rows."""
    codes, labels, whose = spread(n_codes)
    for max_rows in (1, 2):
        rows = persons.own_rows(codes, labels, persons.identify(whose), max_rows, source())
        assert len(rows) == 3000 * max_rows
        for values, size in ((codes[0], n_codes), (labels, 2), (codes[0] * 2 + labels, 2 * n_codes)):
            share = np.bincount(values, minlength=size) / len(values)
            error = np.sqrt(share * (1 - share) / len(rows)) + 1e-12
            assert (np.abs(np.bincount(values[rows], minlength=size) / len(rows) - share) <= 4 * error).all()


@pytest.mark.parametrize("max_rows", [1, 2, 3])
@pytest.mark.parametrize("n_codes", [1, 2, 8])
def test_fitted_probabilities_are_those_of_the_table(n_codes, max_rows):
    """Fair labels stay fair, with almost no noise."""
    codes, labels, whose = spread(n_codes)
    schema = Schema(categorical={"c": list(range(n_codes))}, classes=[0, 1])
    model = EDPRFClassifier(epsilon=300.0, schema=schema, n_estimators=1, max_depth=1, random_state=n_codes)
    model.fit(codes.T.astype(int), labels.astype(int), person=whose, max_rows=max_rows)
    said = model.predict_proba(np.arange(n_codes)[:, None])[:, 1]
    truth = np.array([labels[codes[0] == code].mean() for code in range(n_codes)])
    assert np.abs(said - truth).max() <= 4 * 0.5 / math.sqrt(3000 * max_rows / n_codes)


@pytest.mark.claim("lem-own-rows")
def test_lots_belong_to_names_and_not_to_places():
    """With one seed nobody's rows change if persons are added anywhere, or the table is put in another order."""
    codes, labels, whose = spread(3, 200)
    rows = list(zip(whose.tolist(), codes[0].tolist(), labels.tolist(), strict=True))

    def contents(rows, names=lambda who: who):
        who, code, label = zip(*rows, strict=True)
        people = persons.identify([names(each) for each in who])
        code, label = np.array([code], dtype=np.uint8), np.array(label, dtype=np.uint8)
        return Counter(rows[place] for place in persons.own_rows(code, label, people, 1, Seeded(5)))

    found = contents(rows)
    assert contents(rows[::-1]) == found
    assert contents([(-1 - who, code, label) for who, code, label in rows] + rows) >= found
    assert contents(rows, float) == contents(rows, np.int16) == contents(rows, np.uint64) == found
    assert contents(rows, str) == contents(rows, lambda who: np.str_(who)) != found  # a text is another name


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), *[st.integers(0, 2)] * 3, st.integers(0, 1)), min_size=1), st.randoms())
def test_the_order_of_the_table_does_not_matter(rows, random):
    """Nor does the order of a person's rows, with keys of their own beside codes and labels."""

    def contents(rows):
        whose, a, b, label, ids = np.array(rows).T
        codes, people = np.array([a, b], dtype=np.uint8), persons.identify(whose)
        places = persons.own_rows(codes, label.astype(np.uint8), people, 2, Seeded(3), ids.astype(np.uint64))
        assert (np.diff(places) > 0).all()
        return Counter(rows[place] for place in places)

    shuffled = random.sample(rows, len(rows))
    assert contents(rows) == contents(shuffled)
    for who in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == who]
        assert {row: n for row, n in contents(rows).items() if row[0] == who} == dict(contents(own))


@pytest.mark.claim("lem-own-rows")
def test_rows_with_one_lot_are_told_apart_by_what_they_say(monkeypatch):
    monkeypatch.setattr(persons.keyed, "siphash", lambda key, numbers: np.zeros(len(numbers), dtype=np.uint64))
    for own in of_size(3):
        assert len({kept({"p": order}, 1) for order in (own, own[::-1], own[1:] + own[:1])}) == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=9, max_size=9), max_size=12))
def test_words_hold_what_the_rows_say(rows):
    columns = np.array(rows, dtype=np.uint8).reshape(-1, 9).T
    words = persons._packed_rows(columns, np.arange(len(rows)))
    assert len(words) == 2
    same = [one == other for one, other in product(rows, rows)]
    assert same == [one == other for one, other in product(list(zip(*words, strict=True)), repeat=2)]


@pytest.mark.claim(
    "lem-concentrated-group",
    verdict="proved",
    evidence="numerical",
    constant=r"$k^2\rho$, attained by discrete Gaussian noise at whole orders",
)
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
    rng = np.random.default_rng(0)
    places = persons.own_rows(codes, labels, persons.identify(X["id"]), 2, Seeded(rng))
    assert X["id"].iloc[places].value_counts().max() == 2 < X["id"].value_counts().max()
    twin = EDPRFClassifier(epsilon=0.5, schema=MIXED, n_estimators=3, random_state=rng).fit(X.iloc[places], y[places])
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
    for named in (
        np.array(ids, float),
        np.array(ids, np.uint8),
        np.array(ids, object),
        pd.Series(ids, dtype="Int64"),
        pd.Categorical(ids),
        persons.identify(ids),
    ):
        assert forest(fit(X, y, person=named)) == found
    # texts are other names, and each of these forms has the same
    texts = [str(each) for each in ids]
    forms = (texts, np.array(texts), pd.Series(texts, dtype="string"), pd.Categorical(texts), pa.array(texts))
    assert len({forest(fit(X, y, person=named)) for named in forms}) == 1
    order = np.random.default_rng(2).permutation(len(X))
    found = forest(fit(X, y, person="id", key="id"))
    assert forest(fit(X.iloc[order], np.asarray(y)[order], person="id", key="id")) == found


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


@pytest.mark.parametrize("learner", [PrivateBoostingClassifier, PrivateBoostingRegressor])
def test_a_learner_that_drops_its_delta_spends_all_of_epsilon(learner):
    """A single answer is private by itself, and then each of the k rows has a k-th of it."""
    X, y = visits()
    schema = MIXED
    if learner is PrivateBoostingRegressor:
        schema, y = Schema(numeric=MIXED.numeric, categorical=MIXED.categorical, target=(0, 1)), np.arange(300) % 2
    model = learner(epsilon=0.01, delta=1e-6, schema=schema, n_rows=5, random_state=0)
    promise = model.fit(X, y, person="id", max_rows=3).guarantee_
    assert (promise.epsilon, promise.delta) == (0.01, 0.0)
    assert persons.together(model.ledger_, 3) == pytest.approx(0.01, rel=1e-12)
    with pytest.raises(ValueError, match=r"leaves 0 for each of max_rows=4 rows: with delta=0 it leaves 0\.0125"):
        model.set_params(epsilon=0.05, delta=0.01).fit(X, y, person="id", max_rows=4)


@pytest.mark.parametrize(
    "unit",
    [
        "a person of at most 0 rows",
        "a person of at most 3 row",
        "one person",
        "3",
        "",
        "a person of at most ٣ rows",
        "a person of at most 03 rows",
        "one row ",
    ],
)
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
    assert found.places.tolist() == [0, 1, 0, 0, 2, 0, 0, 3, 4, 1]
    assert len(set(found.names.tolist())) == 5
    assert found.names[[0, 3]].tolist() == persons.identify(np.array([1, 1.5])).names.tolist()
    assert len(set(persons.identify([-1, 2**64 - 1, 2**53, 2**53 + 1, -(2**63), 2**63]).places.tolist())) == 6
    assert persons.identify(np.array([2**63, 2**63 + 1], dtype=np.uint64)).places.tolist() == [0, 1]
    assert persons.identify(np.array([0.0, -0.0])).places.tolist() == [0, 0]
    assert persons.identify(pd.Series(["b", "a", "b"], dtype="category")).places.tolist() == [0, 1, 0]
    assert persons.identify(["\ud800", "a"]).places.tolist() == [0, 1]
    assert persons.identify(found) is found


@pytest.mark.parametrize(
    "names",
    [
        [1, None],
        [1.0, math.nan],
        np.array([1, np.nan]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", None], dtype="string"),
        pd.Categorical(["a", None]),
        np.array(["a", np.nan], dtype=object),
    ],
)
def test_a_missing_person_is_refused(names):
    with pytest.raises(ValueError, match="leave these rows out"):
        persons.identify(names)


@pytest.mark.parametrize(
    "names", [[2.0**53], np.array([-1e30]), [np.float32(2**24)], np.array([2**24], dtype=np.float32), [math.inf]]
)
def test_a_float_that_may_be_two_persons_is_refused(names):
    with pytest.raises(ValueError, match="may stand for several: pass text"):
        persons.identify(names)


@pytest.mark.parametrize(
    "names",
    [
        [b"a"],
        [(1, 2), (1, 3)],
        [1j],
        [np.timedelta64(1, "ns")],
        *(np.array([1, 2], dtype=f"{kind}8[{unit}]") for kind in "mM" for unit in ("ns", "s", "D")),
    ],
)
def test_what_is_no_name_is_refused(names):
    with pytest.raises((TypeError, ValueError)):
        persons.identify(names)
