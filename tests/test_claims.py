"""A claim has one id and four hits; the table of verdicts is what the scan says."""

import re

import pytest

from dpforest.study.published import PUBLISHED
from tools import experimental, published
from tools.claims import (
    BELOW,
    BOOK,
    CHART,
    FAMILY,
    FORMAL,
    HEADLINE,
    MODULE,
    Block,
    Scan,
    Verdict,
    chart,
    family,
    formal,
    of_papers,
    plain,
    problems,
    scan,
    table,
    title,
)


@pytest.fixture(scope="module")
def found():
    return scan()


@pytest.mark.slow
def test_every_claim_has_its_hits(found):
    assert problems(found) == []


def test_the_table_of_verdicts_is_current(found):
    assert (BOOK / "claims.md").read_text() == table(found), "run make claims"


def test_the_chart_is_current_and_has_each_published_claim_once(found):
    text = chart(found)
    assert text == CHART.read_text(), "book/_static/verdicts.html is not what the scan finds: run make claims"
    assert published.headline(of_papers(found)) == HEADLINE.read_text(), "run make claims"
    of_some_paper = [claim for claim in found.book if claim.startswith("pub-")]
    assert sorted(re.findall(r"#(pub-[a-z0-9-]+)", text)) == sorted(of_some_paper)


def test_the_table_of_both_relations_and_the_module_for_notebooks_are_current(found):
    assert FAMILY.read_text() == family(found), "run make claims"
    assert MODULE.read_text() == published.module(of_papers(found)), "run make claims"
    assert PUBLISHED.keys() == of_papers(found).keys()


BOTH = {"add-remove": "yes", "replace-one": "no"}


def test_the_words_of_a_published_claim():
    """Two relations, hatched where it is second hand, a sign and a word for each half."""
    said = published.Published(BOTH, "loose by 2", "second hand (by a survey)")
    assert published.problems("pub-a", said) == []
    assert said.truth == "yes under add-remove, no under replace-one"
    assert (said.kind, said.how) == ("false", "second hand")
    assert published.beside(said) == "loose by 2 · read second hand: as described by a survey"
    drawn = published.square(said, "p.html#pub-a", "pub-a", "A <claim>")
    assert re.findall(r'class="half ([a-z-]+)" aria-hidden="true">(.)<', drawn) == [("yes", "✓"), ("no", "✗")]
    assert 'class="published second-hand"' in drawn
    assert "A &lt;claim&gt;: yes under add-remove, no under replace-one; read second hand" in drawn
    unread = published.Published("open", "", "in part (the abstract)", "no")
    assert published.problems("pub-b", unread) == []
    assert (unread.truth, unread.cell("add-remove")) == ("open (as read here: no)", "open (as read here: no)")
    assert published.entry(said) == "**yes** under add-remove, **no** under replace-one"
    assert published.sentence({"pub-a": said, "pub-b": unread}).startswith(
        "Of 2 claims that papers published 1 is false, each with a counterexample; and 1 is open. Of 0 we read"
    )


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (published.Published({"add-remove": "yes"}, "sharp", "whole"), "true names"),
        (published.Published("holds", "sharp", "whole"), "'holds' is not one of"),
        (published.Published("open", "", "whole"), "as read here"),
        (published.Published("no", "", "whole", "no"), "as read here"),
        (published.Published("open", "", "whole", "open"), "here has 'open'"),
        (published.Published("yes", "", "whole"), "tight is ''"),
        (published.Published("yes", "loose", "whole"), "tight is 'loose'"),
        (published.Published("yes", "sharp", "second hand"), "read is 'second hand'"),
        (published.Published("yes", "sharp", "in full"), "read is 'in full'"),
    ],
)
def test_another_word_is_refused(said, fault):
    assert any(fault in told for told in published.problems("pub-a", said))


def test_the_page_and_the_chart_of_experiments_are_current(found):
    assert experimental.PAGE.read_text() == experimental.page(found.papers, title), "run make claims"
    text = experimental.CHART.read_text()
    assert text == experimental.chart(found.papers, lambda name: plain(title(name))), "run make claims"
    judged = {name: verdict for paper in found.papers for name, verdict in paper.verdicts.items()}
    assert dict(re.findall(r'title="(exp-[a-z0-9-]+): ([^"]+)"', text)) == judged


def test_the_scan_sees_what_is_missing_of_a_statement():
    name = "exp-a-b"
    whole = experimental.Paper("p", [name], "n", {name: "reproduced"})
    assert experimental.problems([whole]) == []
    for faulty, fault in (
        (experimental.Paper("p", [name]), "p: glue statements_p in book/p.md"),
        (experimental.Paper("p", [name], "n"), f"{name}: no verdict in notebooks/record/n.ipynb"),
        (experimental.Paper("p", [name], "n", {name: "true"}), f"{name}: verdict 'true' is not one of"),
        (experimental.Paper("p", [], "n", {name: "reproduced"}), f"{name}: judged by n, and no statement"),
    ):
        (told,) = experimental.problems([faulty])
        assert told.startswith(fault)


def test_the_formal_statements_on_their_page_are_current():
    assert FORMAL.read_text().partition(BELOW)[2] == formal(), "run make claims"


def test_the_table_has_each_verdict_once(found):
    page = table(found)
    assert {claim: page.count(f"{{prf:ref}}`{claim}`") for claim in found.verdicts} == dict.fromkeys(found.verdicts, 1)


def test_a_broken_claim_leads_to_its_counterexample(found):
    """Where its block names one; those whose numbers stand in the text beside it have none with an id."""
    page = table(found)
    for claim, example in [("pub-edprf", "cex-purity-stop"), ("pub-bootstrap", "cex-bootstrap")]:
        (block,) = found.book[claim]
        assert example in block.counterexamples
        (line,) = (line for line in page.splitlines() if f"<br>`{claim}` ·" in line)
        assert f'counterexample <a href="{found.book[example][0].page}.html#{example}">' in line
    for blocks in found.book.values():
        assert set(blocks[0].counterexamples) <= set(found.book)


def test_the_scan_sees_each_kind_of_fault():
    """The check itself can fail: a planted fault of each kind is reported."""
    faulty = Scan()
    faulty.book["thm-a"] += [Block("p", "theorem", "A"), Block("p", "lemma", "A again")]
    faulty.code["thm-b"] += ["dpforest.b"]
    faulty.test["pub-c"] += ["test_c::test_c"]
    faulty.verdicts["pub-c"] += [Verdict("maybe", "", "hearsay", "test_c::test_c")]
    faulty.test["lem-d"] += ["test_d::test_d"]
    faulty.verdicts["lem-d"] += [Verdict("repaired", "$\\eps$, under replace-one 2ε", "symbolic", "test_d::test_d")]
    faulty.notebook["Theorem 3"] += ["n"]
    said = "\n".join(problems(faulty))
    for fault in (
        "thm-a: labelled 2 times",
        "thm-a: no proof follows it",
        "thm-a: a thm- id on a lemma",
        "thm-a: no hit in the code",
        "thm-b: no hit in the book",
        "thm-b: 0 tests state a verdict",
        "pub-c: a published claim has true=",
        "pub-c: evidence 'hearsay'",
        "pub-c: no sharp number",
        "Theorem 3: not of the form",
        "lem-d: 'ε' stands outside an equation",
        "lem-d: verdict 'repaired'",
    ):
        assert fault in said
