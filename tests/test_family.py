"""The family page: its systems are the registry's, its years the reference list's, its verdicts those of the claims."""

import re
from pathlib import Path

import pytest

from dpforest.registry import PAPERS
from dpforest.study import family
from dpforest.study.published import PUBLISHED

BOOK = Path(__file__).resolve().parents[1] / "book"


def test_every_paper_of_the_registry_is_in_the_family():
    assert set(family.SYSTEMS) == set(PAPERS)
    assert all(parent in PAPERS and child in PAPERS for parent, child, _ in family.IDEAS)


def test_the_years_are_those_of_the_reference_list():
    """A year of its own would contradict the chapter's citation."""
    entries = re.findall(r"@\w+\{(\w+),.*?year\s*=\s*\{?(\d{4})", (BOOK / "references.bib").read_text(), re.S)
    years = {key: int(year) for key, year in entries}
    cited = {key: system for key, system in family.SYSTEMS.items() if system.cites}
    assert set(PAPERS) - set(cited) == {"private_boosting"}
    assert {key: years[system.cites] for key, system in cited.items()} == {key: s.year for key, s in cited.items()}


def test_verdicts_are_those_of_the_claims(monkeypatch):
    assert family.verdict("pearson_tree") == PUBLISHED["pub-pearson-tree"]
    assert family.word("private_boosting") == family.OWN
    before = family.counted("no")
    monkeypatch.setitem(family.PUBLISHED, "pub-pearson-tree", ("open (as read here: no)", "no", "in part"))
    assert family.counted("no") == before - 1
    assert family.word("pearson_tree") == "open"
    assert "open for DT-Diff and Pearson tree" in family.by_kind("single trees and tables")
    monkeypatch.setitem(family.PUBLISHED, "pub-pearson-tree", ("after a repair", "no", "in part"))
    assert family.by_kind("single trees and tables").endswith("true after a repair for Pearson tree and PrivaTree")


def test_the_verdict_of_a_system_without_a_privacy_claim_is_that_of_what_it_claims():
    assert family.word("diff_lr") == family.NONE
    assert PUBLISHED["pub-diff-lr"][0] in family.verdict("diff_lr")[0]


@pytest.mark.parametrize("kind", family.KINDS)
def test_every_system_of_a_kind_with_a_claim_is_named(kind):
    said = family.by_kind(kind)
    for key, system in family.SYSTEMS.items():
        named = system.kind == kind and family.word(key) not in (family.OWN, family.NONE)
        assert (system.name in re.split(r"(?:true|false|open)(?: after a repair)? for |, | and |; ", said)) == named


def test_the_table_is_in_the_order_of_years():
    years = [row["year"] for row in family.rows()]
    assert years == sorted(years)
    assert len(years) == len(PAPERS)


def test_the_figure_has_every_system():
    texts = {"".join(text.get_text().split()) for text in family.figure().axes[0].texts}
    for system in family.SYSTEMS.values():
        assert any(text.startswith(f"{system.name}{system.year}".replace(" ", "")) for text in texts)
