"""Likelihood ratios on the papers' pages: what is published shows, what is proved does not."""

from functools import partial

import pytest

from dpforest import DPsAdaBoostClassifier, EDPRFClassifier
from dpforest.audit.report.neighbours import SMALLEST, TIE, leaf_or_branch, ratios_of
from dpforest.datasets import load


def build(**made):
    return EDPRFClassifier(n_estimators=1, max_depth=1, **made)


@pytest.fixture(scope="module")
def found():
    return ratios_of(build, load("breast-cancer"), 300, options={"proved": {"leaf": "label"}})


def test_the_published_forest_is_refuted_on_every_pair_and_the_proved_one_on_none(found):
    assert {name for name, one in found.items() if one.violated} == {name for name in found if "published" in name}
    assert len(found) == 8


def test_on_the_smallest_pair_the_exact_ratios_lie_in_the_intervals(found):
    for name, one in found.items():
        if "smallest pair" in name:
            assert one.covered == len(one.events)
        else:
            assert one.covered is None


def test_what_is_seen_is_whether_the_root_splits():
    assert leaf_or_branch("well") == "the root is a leaf"
    assert leaf_or_branch("smokes(well, ill)") == "the root is a branch"
    assert len(SMALLEST["replace-one"][0]) == len(SMALLEST["replace-one"][1])


def test_the_largest_vote_of_a_boosted_forest_tells_whether_a_record_of_another_class_is_there():
    """A tree without an error votes as it stands, one with an error by its logarithm; both trees are a leaf alone."""
    boosted = partial(DPsAdaBoostClassifier, n_estimators=1, max_depth=1)
    found = ratios_of(boosted, load("breast-cancer"), 40, exact=False, pairs=TIE, seen=str, votes=True)
    large = {name: one for name, one in found.items() if "breast-cancer" in name}
    assert {name for name, one in large.items() if one.violated} == {name for name in large if "published" in name}
    assert large["published, add-remove, breast-cancer"].rows[0]["output or event"] == "a largest vote of 1.0"
