"""Verdicts on whole algorithms, under either relation, at the scale of noise that the paper has."""

from __future__ import annotations

import math
import re
import warnings
from functools import cache
from pathlib import Path

import claims
import digests
import numpy as np
import pytest

import dpforest
from dpforest import RandomTreesClassifier, Schema, mechanisms
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE

BOOK = Path(dpforest.__file__).parents[1] / "book"
HOLDS, DOUBLED, REFUTED = "holds", "if the noise is doubled", "refuted"
#: The learner of each claim about a whole algorithm.
LEARNERS = {
    "pub-sulq-id3": "SulqID3Classifier", "pub-pinq-id3": "PinqID3Classifier", "pub-diffp-id3": "DiffPID3Classifier",
    "pub-diffp-c45": "DiffPC45Classifier", "pub-diffgen": "DiffGenClassifier", "pub-dt-diff": "DTDiffClassifier",
    "pub-functional-mechanism": "FunctionalMechanismRegressor", "pub-random-trees": "RandomTreesClassifier",
    "pub-smooth-forest": "SmoothForestClassifier", "pub-diffprf": "DiffPRFClassifier",
    "pub-diffprfs": "DiffPRFsClassifier", "pub-edprf": "EDPRFClassifier", "pub-diffpets": "DiffPETsClassifier",
    "pub-diffpets-regression": "DiffPETsRegressor", "pub-pearson-tree": "PearsonTreeClassifier",
    "pub-dp-adaboost": "DPAdaBoostClassifier", "pub-dps-adaboost": "DPsAdaBoostClassifier",
}  # fmt: skip


def the_table() -> dict[str, tuple[str, ...]]:
    """The table of the book: what each claim is under add-remove, and under replace-one."""
    rows = re.findall(
        r"^\| \{prf:ref\}`(pub-[a-z0-9-]+)` \| (.+?) \| (.+?) \|$", (BOOK / "ancestors.md").read_text(), re.M
    )
    return {claim: tuple(words) for claim, *words in rows}


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
    found = [REFUTED if scale.guarantee_.epsilon > 50 else HOLDS]
    if doubled.guarantee_.epsilon > 50:
        found.append(REFUTED)
    else:
        found.append(HOLDS if scale.ledger_.paid(REPLACE_ONE) <= 50 else DOUBLED)
        assert doubled.ledger_.paid(REPLACE_ONE) <= 50
    if found[0] == HOLDS:
        assert scale.ledger_.paid(ADD_REMOVE) <= 50 * (1 + 1e-12)
    assert the_table()[claim] == tuple(found)


def test_every_claim_about_a_whole_algorithm_is_in_the_table():
    assert the_table().keys() == LEARNERS.keys()
    with_published = {learner for learner, _, _, published in digests.LEARNERS if published is not None}
    # of an algorithm two learners may be made, and DiffLR claims less noise, not privacy
    rest = with_published - set(LEARNERS.values())
    assert rest == {"RandomTreesRegressor", "FunctionalMechanismClassifier", "DiffLRRegressor"}


@cache
def scanned():
    return claims.scan()


def verdict(claim: str) -> str:
    """The sentences of a claim's verdict, in its chapter."""
    (text,) = (text for path in BOOK.glob("*.md") for text in [path.read_text()] if f":label: {claim}\n" in text)
    return re.search(rf":label: {claim}\n\nVerdict: (.*?)\n(?:\n|:::)", text, re.S).group(1)


@pytest.mark.parametrize("claim", LEARNERS)
def test_a_chapters_verdict_names_both_relations(claim):
    said, (added, replaced) = verdict(claim), the_table()[claim]
    if added == replaced:
        assert "under both relations" in said
    else:
        assert ("doubled" in said) == (replaced == DOUBLED)
        assert re.search("added or removed|under add-remove", said)
        assert re.search("are replaced|under replace-one", said)
    word = re.search(r"\*\*(\w+)\*\*", said).group(1)
    assert word in {HOLDS: {"proved", "open"}, REFUTED: {"refuted", "repaired"}}[added]
    assert scanned().verdicts[claim][0].verdict == word


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
