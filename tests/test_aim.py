"""AIM: the paper's claim, the theorem's constant, and the estimator."""

from __future__ import annotations

import pytest
from shared import MIXED, assert_an_estimator, table

from dpforest.papers.aim import AIMClassifier


def model(**parameters) -> AIMClassifier:
    return AIMClassifier(**{"epsilon": 4.0, "schema": MIXED, "random_state": 0, **parameters})


@pytest.mark.parametrize("variant", ["proved", "published"])
def test_an_estimator(variant, tmp_path):
    assert_an_estimator(model(variant=variant), *table(), tmp_path)


def test_what_is_proved_reads_nothing_unpaid():
    fitted = model().fit(*table())
    assert fitted.ledger_.leaks == []
    assert fitted.guarantee_.epsilon == 4.0


@pytest.mark.claim("pub-aim", true="TODO", tight="TODO", read="TODO", constant="", evidence="TODO")
def test_the_published_claim():
    pytest.fail("TODO: assert the exact loss of the published code on the smallest pair, beside the claim")


@pytest.mark.claim("thm-aim", verdict="TODO", constant="", evidence="TODO")
def test_the_theorem():
    pytest.fail("TODO: assert equality with the sharp constant on a pair that attains it, under both relations")
