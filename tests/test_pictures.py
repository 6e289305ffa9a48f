"""The stored pictures are what the programs write; their numbers are true, and on a phone nothing is cut or covered."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpforest import mechanisms
from tests import oracle
from tools import knobs, pictures

#: Of each file: what draws it anew, which every worker would do if it were done here.
FILES = pictures.programs()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_stored_picture_is_current(path):
    assert path.read_text() == FILES[path](), "run make pictures"


def test_each_is_shown_once_and_none_is_left_over():
    book = knobs.FOLDER.parents[1]
    shown = [line for page in book.glob("*.md") for line in page.read_text().splitlines() if ":file: _static/" in line]
    names = [f":file: {path.relative_to(book)}" for path in FILES]
    squares = ("headline.html", "verdicts.html", "statements.html")  # of the scan of claims, see test_claims
    assert sorted(names) == sorted(line for line in shown if not line.endswith(squares))
    stored = {path for folder in {path.parent for path in FILES} for path in folder.iterdir()}
    assert stored == set(FILES)


# --- the numbers -----------------------------------------------------------------------------------------------------
def test_the_parting_path_costs_what_the_theorem_says():
    costs = {node: math.log(base) for node, base in pictures.PATH_BASES.items()}
    leaves = [(costs[side], 2 * costs[side], "sequential", []) for side in ("left", "right")]
    dearest = oracle.scope_cost((costs["root"], 2 * costs["root"], "partition", leaves))
    found = [
        math.prod(pictures.path_ratio(node, gone, come)[1] for node in costs) for _, gone, come in pictures.PATH_CASES
    ]
    assert found[0] == pytest.approx(math.exp(dearest[0]))
    assert max(found) == pytest.approx(math.exp(dearest[1]))
    assert found == [6, 36, 24]


@pytest.mark.parametrize("n", [1, 3, 5, 7])
def test_who_moves_is_what_an_equal_split_costs(n):
    cases = pictures.split_cases(n)
    assert [changes for _, changes in cases] == [1, 3]
    assert sum(chance * 2**changes for chance, changes in cases) == oracle.equal_split_worst(2, 2)


def test_the_twins_have_the_scores_of_their_records():
    same, apart = ((0, 0, 0, 1), ()), ((0, 0, 0), (1,))
    alone = ((0, 0, 0), ())
    expected = [tuple(map(oracle.gini, pair)) for pair in ((alone, alone), (same, apart), (apart, same))]
    assert list(pictures.twin_scores().values()) == expected


def test_a_round_of_boosting_gives_the_wrong_ones_half():
    for right, wrong in ((6, 2), (6, 3)):
        tau, less, more = pictures.boosting_round(right, wrong)
        alpha = math.log((1 - tau) / tau) / 2
        assert right * less == wrong * more == Fraction(1, 2)
        assert float(more / less) == pytest.approx(math.exp(2 * alpha))
    margin = math.log(3)
    assert pictures.own_weight(-margin) == 1
    assert pictures.own_weight(margin) == pytest.approx(math.exp(-margin / 2), abs=1e-4)


def test_the_four_counts_rise_as_the_proof_says():
    rises = []
    for title, counts in pictures.FOUR_COUNTS:
        zero = dict(zip("eabc", (*counts[0], *counts[1]), strict=True))
        assert [f"{name} = 0" for name, count in zero.items() if not count] == [title]
        for table in (counts, pictures.joined(counts)):
            rho = pictures.correlation(table)
            assert abs(rho) * rho == pytest.approx(
                -float(oracle.pearson_split([(1,) * e + (0,) * a for e, a in table]))
            )
        rises.append(pictures.correlation(pictures.joined(counts)) - pictures.correlation(counts))
    assert rises[0] == pytest.approx(0.5)  # the largest that there is
    assert all(0 <= rise <= 0.5 for rise in rises)


def test_a_threshold_that_rises_by_the_range_costs_the_rate_at_most():
    found = [
        pictures.chance_above(threshold) / pictures.chance_above(threshold + 1) for _, threshold in pictures.THRESHOLDS
    ]
    assert found == pytest.approx([2, 2**0.5])
    law = mechanisms.permute_and_flip_law([0, 1], math.log(pictures.THRESHOLD_BASE))
    other = [pictures.chance_above(1 + noise) for noise in -np.log2(np.linspace(0, 1, 200_001)[1:])]
    assert law[0] == pytest.approx(np.mean(other), abs=1e-4)  # over the noise of the one ahead


def test_the_copies_of_a_bootstrap_have_their_chances():
    rows = pictures.bootstrap_rows(3, 2)
    law = oracle.resampled((0, 1, 2, 9))
    for j, chance, steps, ratio in rows:
        assert chance == sum(p for sample, p in law.items() if sample.count(9) == j)
        assert ratio == 2**steps
    assert sum(chance * ratio for _, chance, _, ratio in rows) == pictures.bootstrap_bound(3, 2)


def test_the_growing_tree_spends_its_budget_on_a_path():
    model = pictures.grown_tree()
    assert model.ledger_.epsilon == pytest.approx(1)
    assert sum(counts for cell in pictures.TREE_TABLE.values() for counts in cell) > 300


@pytest.mark.claim("cex-purity-stop")
def test_the_first_pages_tree_splits_never_and_always_and_the_repaired_one_nearly_as_often():
    assert list(pictures.chance_of_a_split("published").values()) == pytest.approx([0, 1])
    one, more = pictures.chance_of_a_split("proved").values()
    assert 0 < one < more <= math.e * one


# --- the look --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", pictures.PICTURES)
def test_nothing_is_cut_or_covered_on_a_phone(browser: Any, tmp_path: Path, name: str) -> None:
    metrics = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page = tmp_path / "page.html"
    page.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="{(knobs.FOLDER.parent / "custom.css").as_uri()}">'
        f'<body style="margin: 16px">{(pictures.FOLDER / f"{name}.svg").read_text()}'
    )
    browser.get(page.as_uri())
    found = browser.execute_script(
        """
        const box = (n) => n.getBoundingClientRect();
        const svg = box(document.querySelector('svg'));
        const texts = [...document.querySelectorAll('svg text')];
        const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
          && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
        return {
          name: document.querySelector('svg').getAttribute('aria-label'),
          texts: texts.length,
          cut: [...document.querySelectorAll('svg *')].filter(n => box(n).right > svg.right + 1
            || box(n).left < svg.left - 1 || box(n).top < svg.top - 1 || box(n).bottom > svg.bottom + 1)
            .map(n => n.outerHTML),
          covered: texts.flatMap((a, i) => texts.slice(i + 1).filter(b => meet(box(a), box(b)))
            .map(b => a.textContent + ' / ' + b.textContent)),
          small: texts.filter(n => parseFloat(getComputedStyle(n).fontSize) * svg.width / 360 < 10.5).length,
        };"""
    )
    assert found["name"]
    assert found["texts"]
    assert found["cut"] == []
    assert found["covered"] == []
    assert found["small"] == 0
