"""Verdicts on whole algorithms, under either relation, at the scale of noise that the paper has."""

from __future__ import annotations

import json
import math
import re
import warnings
from functools import cache
from pathlib import Path

import digests
import numpy as np
import pytest

import dpforest
from dpforest import RandomTreesClassifier, Schema, mechanisms
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE
from tools import claims
from tools.published import LEARNERS

ROOT = Path(dpforest.__file__).parents[1]
BOOK, NOTEBOOKS = ROOT / "book", ROOT / "notebooks"
YES, DOUBLED, NO, OPEN = "yes", "after a repair", "no", "open"


@cache
def scanned():
    return claims.scan()


def stated(claim: str) -> tuple[str, ...]:
    """What the mark says under add-remove, and under replace-one; of the algorithm as read here, where that is all."""
    said = scanned().verdicts[claim][0].said
    here = said.here or said.true
    return tuple(here[relation] if word == OPEN else word for relation, word in said.true.items())


def published(name: str, relation: str):
    """A fit of the paper's algorithm, with noise for ``relation``, at an epsilon at which trees reach their height."""
    usual = next(usual for learner, usual, *_ in digests.LEARNERS if learner == name)
    schema, X, y = digests.table("mixed", name.endswith("Regressor"))
    model = getattr(dpforest, name)(
        epsilon=50.0, schema=schema, variant="published", relation=relation, random_state=7, **usual
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpforest.UnprovenPrivacyWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("claim", LEARNERS)
def test_the_verdict_is_that_of_the_papers_own_noise(claim):
    """The paper's scale is that of add-remove; its ledger has the loss under both."""
    scale, doubled = (published(LEARNERS[claim], relation) for relation in RELATIONS)
    found = [NO if scale.guarantee_.epsilon > 50 else YES]
    if doubled.guarantee_.epsilon > 50:
        found.append(NO)
    else:
        found.append(YES if scale.ledger_.paid(REPLACE_ONE) <= 50 else DOUBLED)
        assert doubled.ledger_.paid(REPLACE_ONE) <= 50
    if found[0] == YES:
        assert scale.ledger_.paid(ADD_REMOVE) <= 50 * (1 + 1e-12)
    assert stated(claim) == tuple(found)


def test_every_claim_about_a_whole_algorithm_is_in_the_table():
    rows = re.findall(r"^\| \{prf:ref\}`(pub-[a-z0-9-]+)` \|", (BOOK / "ancestors.md").read_text(), re.M)
    assert rows == list(LEARNERS)
    with_published = {learner for learner, _, _, published in digests.LEARNERS if published is not None}
    # of an algorithm two learners may be made, DiffLR claims less noise, and the last five are no ancestors
    rest = with_published - set(LEARNERS.values())
    assert rest == {
        "RandomTreesRegressor",
        "FunctionalMechanismClassifier",
        "DiffLRRegressor",
        "DPEBMClassifier",
        "DPEBMRegressor",
        "PrivaTreeClassifier",
        "DiPriMeClassifier",
        "DiPriMeRegressor",
        "DPTRClassifier",
        "SBDTClassifier",
        "AIMClassifier",
    }


def test_what_we_know_second_hand_is_refuted_by_words_that_stand_in_the_chapter():
    """A step that we put together ourselves proves nothing against a paper: then the claim is open."""
    for claim, (verdict, *_) in scanned().verdicts.items():
        if verdict.said is not None and verdict.said.how == "second hand" and "no" in verdict.said.words:
            assert re.search('"[^"]*[\u4e00-\u9fff][^"]*"', block(claim)), claim


def block(claim: str) -> str:
    """The text of a claim's block, in its chapter."""
    (text,) = (text for path in BOOK.glob("*.md") for text in [path.read_text()] if f":label: {claim}\n" in text)
    return re.search(rf":label: {claim}\n\n(.*?)\n(?::::|```)", text, re.S).group(1)


#: A verdict that is typed, or a word for one that the book does not define.
TYPED = re.compile(
    r"\bVerdict:|\*\*(?:holds|loose|wasteful|proved|refuted|repaired|open)\b|\bclaims? (?:it )?holds?\b|\bwasteful\b"
)


@pytest.mark.parametrize("path", [*sorted(BOOK.glob("*.md")), *sorted(NOTEBOOKS.glob("*.ipynb"))], ids=lambda p: p.name)
def test_no_chapter_and_no_notebook_types_a_verdict(path):
    if path.name == "claims.md":
        return  # written from the marks
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    assert TYPED.findall(text) == []


def test_a_typed_verdict_is_found():
    for typed in ("Verdict: **holds**", "**refuted** under both", "and its claim holds", "it is wasteful"):
        assert TYPED.search(typed)
    assert not TYPED.search("a bound that is loose by a factor of two, which the proof holds back")


@pytest.mark.claim("pub-random-trees", "thm-random-trees")
def test_random_trees_at_the_papers_scale_lose_twice_epsilon_if_a_record_is_replaced():
    """One tree of one leaf: a record of class 0 becomes one of class 1, and two counts move."""
    law = mechanisms.two_sided_geometric_law(np.arange(-30, 31), 1.0)
    ratios = [
        (law[30 + a - 1] * law[30 + b]) / (law[30 + a] * law[30 + b - 1]) for a in range(-5, 6) for b in range(-5, 6)
    ]
    assert max(abs(math.log(ratio)) for ratio in ratios) == pytest.approx(2.0, rel=1e-12)
    schema = Schema(categorical={"a": [0, 1]}, classes=[0, 1])
    model = RandomTreesClassifier(epsilon=1.0, schema=schema, n_estimators=1, max_depth=0, random_state=0)
    ledger = model.fit([[0]], [0]).ledger_
    assert (ledger.paid(ADD_REMOVE), ledger.paid(REPLACE_ONE)) == (1.0, 2.0)
