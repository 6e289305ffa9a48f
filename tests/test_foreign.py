"""The record of other libraries' calls is of the present cases, and says what its numbers say; so does the page."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import foreign

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import foreign_calls
from foreign_calls import CASES

from dpforest.audit.foreign import KINDS, UNJUDGED

TEXT = foreign.RECORD.read_text(encoding="utf-8")
RECORD = json.loads(TEXT)


def test_the_record_is_of_the_present_cases():
    assert [row["id"] for row in RECORD["rows"]] == [*CASES], "run tests/peers/foreign_calls.py"
    for row in RECORD["rows"]:
        case = CASES[row["id"]]
        assert (row["package"], row["what"], row["relation"]) == (case.package, case.what, case.relation)
        assert (row["claim"], row["delta"]) == (case.epsilon, case.delta)
        assert (row["reading"], row["text"]) == (case.reading, case.text)
        assert row["runs"] == len(foreign_calls.SEEDS)
    assert RECORD["not_judged"] == foreign_calls.NOT_JUDGED
    assert {case.reading for case in CASES.values()} == {*foreign_calls.READINGS} == {*foreign.WORDS}


@pytest.mark.parametrize("row", RECORD["rows"], ids=lambda row: row["id"])
def test_a_reading_goes_with_what_was_found(row):
    kinds = {each["kind"] for each in row["findings"]}
    assert kinds <= KINDS.keys()
    assert row["complete"] == (not kinds & UNJUDGED)
    assert row["violated"] == bool(kinds - UNJUDGED)
    assert row["violated"] == (row["reading"] != "quiet")
    more = row["epsilon"] is None or row["epsilon"] > row["claim"] * (1 + 1e-6)
    assert more == ("loss" in kinds)
    assert row["calls"] or kinds
    if row["reading"] == "quiet" and "all of the claim" in row["text"]:
        assert row["epsilon"] == pytest.approx(row["claim"], rel=1e-6)


@pytest.mark.parametrize("case", CASES.values(), ids=[*CASES])
def test_a_pair_is_a_pair_of_neighbours(case):
    one, other = (Counter(tuple(row) if hasattr(row, "__len__") else row for row in t) for t in (case.one, case.other))
    if case.relation == "a person removed":
        assert {row[0] for row in (one - other)} == {1}
        assert not other - one
        assert not any(row[0] == 1 for row in other)
    else:
        apart = (one - other).total(), (other - one).total()
        assert apart == {"add-remove": (1, 0), "replace-one": (1, 1)}[case.relation]


def test_it_names_versions_and_no_machine():
    assert not re.search(r"(?<![\w.])/(?:home|root|work|tmp|Users|mnt|opt|var)/|[A-Z]:\\\\|https?://", TEXT)
    for row in RECORD["rows"]:
        assert re.fullmatch(r"\d+(\.\d+)+", row["version"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
        assert all(re.fullmatch(r"[\w/.-]+\.py:\d+", each["where"]) for each in row["findings"])


def test_an_accountant_says_less_than_all_outcomes():
    one_by_one, composed = RECORD["accountants"]
    exact = foreign_calls.exact_delta(one_by_one["losses"], one_by_one["epsilon"])
    assert one_by_one["exact"] == composed["exact"] == pytest.approx(exact, rel=1e-6)
    assert exact <= one_by_one["delta"] <= exact * 1.01
    once = foreign_calls.exact_delta(one_by_one["losses"][:-1], one_by_one["epsilon"])
    assert composed["delta"] == pytest.approx(once, rel=0.01)  # what it says is the delta of two of the three
    assert composed["delta"] < exact * 0.9


def test_noise_from_a_known_seed_is_the_same_at_every_run():
    one, other = RECORD["seeded"]
    assert one["runs"][0] == one["runs"][1]
    assert other["runs"][0] == other["runs"][1]
    assert one["runs"] != other["runs"]
    for row in (one, other):
        assert sum(row["runs"][0]) == pytest.approx(1, abs=1e-8)


def test_noise_of_the_first_table_is_that_of_two_columns():
    _, second, third, table, other = (row["multiples"] for row in RECORD["reused"])
    assert table == [*second, *third]
    assert not {*table} & {*other}


def test_the_page_says_what_the_record_says():
    text = foreign.PAGE.read_text(encoding="utf-8")
    assert foreign.stored(text, RECORD) == text, "python -m tests.foreign --store"
    assert foreign.stored(text, {**RECORD, "rows": RECORD["rows"][1:]}) != text
    with pytest.raises(ValueError, match="no place for its findings"):
        foreign.stored(text.replace("end of findings", "end"), RECORD)


def test_a_library_that_is_not_installed_keeps_its_rows():
    new = {**RECORD["rows"][0], "version": "9.9"}
    made = foreign_calls.merged(RECORD, [new], [])
    assert made["rows"] == [new, *RECORD["rows"][1:]]
    assert made["accountants"] == RECORD["accountants"]
    assert foreign_calls.version_of("a-package-that-is-not-there") is None
