"""Experimental claims: what a statement needs, how a rule judges, and that no verdict is typed."""

import re
from pathlib import Path

import numpy as np
import pytest

from dpforest.study import statements
from dpforest.study.statements import Statement, Statements, Verdicts, papers
from dpforest.study.statements.rules import (
    VERDICTS,
    Finding,
    best,
    cannot_read,
    cannot_run,
    everywhere,
    more,
    rises,
    small,
    throughout,
    within,
)

REPRODUCED, NOT, OPPOSITE, UNREAD, UNRUN = VERDICTS
SAID = {"place": "table 1", "says": "更好", "english": "Better.", "protocol": "Ours.", "paper": "+1 point"}


# -- statements --------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    text = "".join(f"[exp-mine-{n}]\n" + "".join(f'{k} = "{v}"\n' for k, v in SAID.items()) for n in ("one", "two"))
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(statements, "_FOLDER", tmp_path)
    return tmp_path


def test_each_statement_is_whole_and_has_its_name_once():
    seen = [said.id for paper in papers() for said in Statements(paper)]
    assert len(seen) == len(set(seen)) > 0


def test_a_table_has_all_statements_in_order_with_what_was_found(folder):
    said = Statements("mine")
    with pytest.raises(ValueError, match="not judged: exp-mine-one, exp-mine-two"):
        said.table()
    said.judge("exp-mine-two", cannot_run("no <data>"))
    said.judge("exp-mine-one", more([0.1, 0.11, 0.12]))
    table = said.table()
    assert table.counts == {REPRODUCED: 1, UNRUN: 1}
    assert str(table) == "1 reproduced, 1 cannot be run here"
    shown = table._repr_html_()
    assert re.findall(r'<tr id="(.*?)" data-verdict="(.*?)">', shown) == [
        ("exp-mine-one", REPRODUCED),
        ("exp-mine-two", UNRUN),
    ]
    assert '<q lang="zh">更好</q>' in shown
    assert "no &lt;data&gt;" in shown


def test_what_is_wrong_with_a_statement_is_said(folder):
    said = Statements("mine")
    with pytest.raises(ValueError, match=r"mine.toml has no 'exp-mine-three'"):
        said.judge("exp-mine-three", cannot_read("lost"))
    said.judge("exp-mine-one", cannot_read("lost"))
    with pytest.raises(ValueError, match="has been judged already"):
        said.judge("exp-mine-one", cannot_read("lost"))
    with pytest.raises(ValueError, match="there are no statements of 'theirs'; there are those of mine"):
        Statements("theirs")
    with pytest.raises(ValueError, match="is named exp- and words"):
        Statement("pub-a", **SAID)
    for name in SAID:
        with pytest.raises(ValueError, match=f"exp-a: {name} is missing"):
            Statement("exp-a", **SAID | {name: " "})
    with pytest.raises(ValueError, match="a verdict is one of"):
        Finding("true", "1")
    with pytest.raises(ValueError, match="without the numbers"):
        Finding(REPRODUCED, "")


def test_a_number_that_cannot_be_read_is_no_guess():
    shown = Verdicts("p", [(Statement("exp-a", **SAID | {"paper": "?"}), cannot_read("lost"))])._repr_html_()
    assert "cannot be read in what we have of the paper" in shown


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.03, 0.02, 0.04], REPRODUCED),
        ([-0.03, -0.02, -0.04], OPPOSITE),
        ([0.03, -0.02, 0.01], NOT),
        ([0.0, 0.0, 0.0], NOT),
        ([-0.0003, -0.0003, -0.0003], NOT),  # shown as -0.0
        ([0.1], UNRUN),
        ([], UNRUN),
        ([np.nan, 0.1, 0.2], UNRUN),
    ],
)
def test_more(values, verdict):
    assert more(values).verdict == verdict


def test_a_difference_is_shown_in_its_unit():
    assert more([0.03, 0.02, 0.04]).ours == "+3.0 ±2.5 points"
    assert more([3.0, 2.0, 4.0], unit="nodes", factor=1, than="at ε = 1").ours == "+3.0 ±2.5 nodes at ε = 1"


def test_rises():
    at = [0.1, 0.5, 1.0]
    rng = np.random.default_rng(0)
    up = 0.1 * np.array(at) + rng.normal(0, 0.001, (10, 3))
    assert rises(up, at).verdict == REPRODUCED
    assert rises(up, at).ours.startswith("+9.")  # of .1 times .9, in points
    assert rises(1 - up, at).verdict == OPPOSITE
    assert rises(rng.normal(0, 0.001, (10, 3)), at).verdict == NOT
    assert rises(np.ones((10, 3)), at).verdict == NOT
    assert rises(up[:1], at).verdict == UNRUN
    assert rises(up, at, ends=("few", "many")).ours.endswith("points from few to many")
    for places, values in (([1.0, 0.5, 0.1], up), ([1.0], up[:, :1]), (at, up[:, :2])):
        with pytest.raises(ValueError, match="in rising order"):
            rises(values, places)


def test_best():
    rng = np.random.default_rng(0)
    noise = {d: rng.normal(0, 0.001, 8) for d in (2, 3, 4)}
    first = {d: value + 0.1 * (d == 4) for d, value in noise.items()}
    assert best(first, 4).verdict == REPRODUCED
    assert best(first, 3).verdict == OPPOSITE
    assert best(first, 3).ours.startswith("best at 4; 3 against 4: -10.")
    assert best(noise, 4).verdict == NOT
    assert best({d: -value for d, value in first.items()}, 4, largest=False).verdict == REPRODUCED
    assert best({d: value[:1] for d, value in first.items()}, 4).verdict == UNRUN
    with pytest.raises(ValueError, match="at least one other setting"):
        best({4: noise[4]}, 4)
    with pytest.raises(ValueError, match="5 and at least"):
        best(noise, 5)


def test_within():
    assert within([0.70, 0.71, 0.72], 69, 77).verdict == REPRODUCED
    assert within([0.60, 0.61, 0.62], 69, 77).verdict == NOT
    assert within([0.60, 0.61, 0.62], 69, 77).ours == "61.0 ±2.5 %"
    assert within([0.70], 69, 77).verdict == UNRUN


def test_small():
    assert small([0.001, 0.002, 0.003], 1.0).verdict == REPRODUCED
    assert small([0.001, 0.002, 0.003], 1.0).ours == "+0.2 ±0.2 points; small is 1"
    assert small([-0.1, -0.11, -0.12], 1.0).verdict == OPPOSITE
    assert small([0.005, 0.02, 0.0], 1.0).verdict == NOT
    assert small([0.0], 1.0).verdict == UNRUN


def test_beside():
    found = more([0.03, 0.02, 0.04]).beside("as proved", more([-0.03, -0.02, -0.04]))
    assert (found.verdict, found.ours) == (REPRODUCED, "+3.0 ±2.5 points; as proved: -3.0 ±2.5 points")


def test_everywhere():
    up, down, flat, one = (more(values) for values in ([0.1, 0.11], [-0.1, -0.11], [0.1, -0.1], [0.1]))
    for findings, verdict in (
        ([up, up], REPRODUCED),
        ([up, flat], NOT),
        ([up, down], NOT),
        ([down, flat], OPPOSITE),
        ([down, down], OPPOSITE),
        ([up, one], REPRODUCED),
        ([one, one], UNRUN),
        ([flat, one], NOT),
        ([], UNRUN),
        ([flat, flat], NOT),
        ([up, one, down], NOT),
        ([down, flat, flat], NOT),
        ([down, down, flat], OPPOSITE),
        ([down, one, one], OPPOSITE),
    ):
        assert everywhere({f"set {n}": each for n, each in enumerate(findings)}).verdict == verdict
    assert everywhere({"a": up, "b": flat}).ours.startswith("a: +10.5")


def test_noise_is_called_an_effect_as_rarely_as_a_rule_says():
    """Of 2,000 runs without an effect: `more` errs in one of twenty on either side, `best` no more often than that."""
    rng = np.random.default_rng(1)
    runs = [more(rng.normal(0, 1, 5)).sign for _ in range(2000)]
    assert 0.015 < np.mean(np.array(runs) == 1) < 0.037
    assert 0.015 < np.mean(np.array(runs) == -1) < 0.037
    chosen = [best({d: rng.normal(0, 1, 5) for d in range(5)}, 2) for _ in range(2000)]
    assert np.mean([found.sign == 1 for found in chosen]) < 0.05
    assert np.mean([found.sign == -1 for found in chosen]) < 0.05


@pytest.mark.parametrize("n", [2, 3, 10, 20])
def test_of_many_data_sets_without_an_effect_one_is_no_verdict(n):
    """One that is clearly the other way by chance made it a verdict in 17 of 100 runs of ten sets."""
    rng = np.random.default_rng(3)
    runs = [everywhere({str(i): more(rng.normal(0, 1, 5)) for i in range(n)}).sign for _ in range(500)]
    assert np.mean(np.array(runs) == -1) < 0.08  # of 500 runs at 5 %, three standard errors
    assert np.mean(np.array(runs) == 1) < 0.01


def test_no_notebook_types_a_verdict():
    """`Finding` is made by a rule, or by a condition that was computed: its first argument is never a text."""
    for path in Path(__file__).parents[1].glob("notebooks/*.ipynb"):
        assert not re.search(r"Finding\(\s*\\?[\"']", path.read_text(encoding="utf-8")), path.name


def test_many_comparisons_are_told_by_their_number():
    """The verdict is that of everywhere; what is clearly the other way is named, and what is not clear if it is few."""
    so, not_so, unclear = more([0.1, 0.11, 0.12]), more([-0.1, -0.11, -0.12]), more([-0.1, 0.0, 0.1])
    assert throughout({"a": so, "b": so}) == Finding(REPRODUCED, "clearly so in 2 of 2")
    mixed = throughout({"a": so, "b": not_so, "c": unclear})
    assert mixed == Finding(NOT, "clearly so in 1 of 3; clearly the other way in 1 (b); not clear in 1 (c)")
    many = throughout({**{str(n): not_so for n in range(6)}, **{f"u{n}": unclear for n in range(5)}})
    said = "clearly so in 0 of 11; clearly the other way in 6 (0; 1; 2; 3 and 2 more); not clear in 5"
    assert many == Finding(OPPOSITE, said)
    assert throughout({}).verdict == UNRUN
