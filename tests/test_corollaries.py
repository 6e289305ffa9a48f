"""What the papers' theorems share: calibration by max(R', 2R), and the pair of neighbours that attains the claim."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpforest import (
    DiffGenClassifier,
    DiffPID3Classifier,
    DiffPRFClassifier,
    DiffPRFsClassifier,
    DTDiffClassifier,
    EDPRFClassifier,
    PearsonTreeClassifier,
    Schema,
    UnprovenPrivacyWarning,
    load,
    scores,
)
from dpforest.audit.exact.enumeration import audit_pairs
from dpforest.chance import Seeded
from dpforest.curator import Curator, Selection
from dpforest.curator.selections import BinaryCandidates
from dpforest.learners.growth import Growth
from dpforest.models.forest import cut_masks
from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE, Ledger

ONE = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
LINE = Schema(categorical={"x": [0, 1]}, target=(0, 1))


@pytest.mark.claim("thm-edprf")
@pytest.mark.claim("thm-diffpets")
@pytest.mark.claim("thm-diffprf")
@pytest.mark.claim("thm-diffprfs")
@pytest.mark.claim("thm-diffpets-regression")
@pytest.mark.claim("thm-pearson-tree")
@pytest.mark.parametrize(
    ("kind", "schema", "options"),
    [
        (EDPRFClassifier, ONE, {}),
        (DiffPETsClassifier, ONE, {}),
        (DiffPRFClassifier, ONE, {}),
        (DiffPRFsClassifier, ONE, {}),
        (DiffPETsRegressor, LINE, {}),
        (PearsonTreeClassifier, ONE, {"criterion": "gini", "n_parts": 1, "stop": "candidate"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_one_record_that_joins_one_like_it_attains_the_claim(kind, schema, options):
    """Nothing but *stop* sees it, by the whole range, and then a count of the leaf: no empty table is needed."""
    trees = {} if kind is PearsonTreeClassifier else {"n_estimators": 1}
    model = kind(schema=schema, max_depth=1, stop_margin=0.0, **trees, **options)
    pair = (((0, 0),), ((0, 0), (0, 0)))
    assert audit_pairs(model, pair, [pair]).epsilon == pytest.approx(1, rel=1e-12)


#: Scores of which a replaced record moves candidates no further apart than one that comes, or hardly: (R, R').
BOUNDED = [(scores.absolute_pearson, math.inf, 2.0, 2.0), (scores.variance, 3, 5 / 18, 1 / 2)]


@pytest.mark.claim("thm-diffpets-regression")
@pytest.mark.claim("thm-pearson-tree")
@pytest.mark.parametrize(
    ("score", "n_max", "spread", "replaced"), BOUNDED, ids=lambda value: getattr(value, "name", "")
)
def test_the_rate_is_that_of_two_records_that_part(score, n_max, spread, replaced):
    """Under replace-one a selection costs at most half of its budget where a record comes or goes."""
    assert score.range(ADD_REMOVE, n_max) == pytest.approx(spread, rel=1e-12)
    assert score.range(REPLACE_ONE, n_max) == pytest.approx(replaced, rel=1e-12)
    assert replaced < 2 * spread  # calibrated by R' alone, two paths that part would cost more than the budget
    ledger = Ledger(REPLACE_ONE)
    n_classes = 0 if score.n_moments else 3
    curator = Curator(
        np.zeros((1, 3), np.uint8), np.zeros(3, np.uint8), n_classes, [2], chance=Seeded(0), ledger=ledger
    )
    growth = Growth(1, 1, n_classes or 2, ledger, "sequential")
    root = growth.frontier
    masks = cut_masks(np.zeros((1, 1), int), np.full((1, 1), 2))
    curator.choose(
        BinaryCandidates(growth, root.nodes, np.zeros((1, 1), np.int32), masks),
        root.scopes,
        1.0,
        Selection(score, mechanism="permute-and-flip", n_max=n_max),
    )
    assert ledger.total(ADD_REMOVE) == pytest.approx(1 / 2, rel=1e-12)
    # what the grid of the exact scores adds is its own theorem's affair
    exact = [score.exact_range(relation, n_max) for relation in (ADD_REMOVE, REPLACE_ONE)]
    assert exact[0] >= spread
    assert exact[1] >= replaced
    assert ledger.total(REPLACE_ONE) == pytest.approx(exact[1] / (2 * exact[0]), rel=1e-12)


#: Learners with a cap, options with which their proofs rest on it, and with which they do not.
CAPPED = [
    (EDPRFClassifier, {"criterion": "information-gain", "stop": "never"}, {}),
    (EDPRFClassifier, {"criterion": "gini", "stop": "never"}, {"criterion": "majority", "stop": "never"}),
    (DiffPRFClassifier, {"criterion": "information-gain", "stop": "never"}, {"sampling": "poisson"}),
    (DiffPID3Classifier, {"criterion": "information-gain"}, {"criterion": "majority"}),
    (DiffGenClassifier, {"criterion": "information-gain"}, {"criterion": "majority"}),
    (DTDiffClassifier, {"criterion": "information-gain"}, {"criterion": "majority"}),
]


@pytest.mark.claim("thm-forest")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("learner", "resting", "free"), CAPPED)
def test_a_promise_that_needs_the_cap_says_so(learner, resting, free, relation, tmp_path):
    schema = Schema(categorical={"a": [0, 1], "b": [0, 1, 2]}, classes=[0, 1])
    X = np.arange(80).reshape(40, 2) % [2, 3]
    y = np.arange(40) // 5 % 2
    model = learner(schema=schema, relation=relation, n_max=40, random_state=0)
    promise = model.set_params(**resting).fit(X, y).guarantee_
    assert promise.n_max == 40
    assert "tables of at most 40 records" in str(promise)
    assert model.ledger_.n_max == 40
    model.save(tmp_path / "model.json", seeded=True)
    assert load(tmp_path / "model.json").guarantee_ == promise
    assert '"n_max=40"' in (tmp_path / "model.json").read_text()
    with pytest.raises(ValueError, match="cap n_max"):
        model.fit(X[[*range(40), 0]], y[[*range(40), 0]])
    free = learner(schema=schema, relation=relation, n_max=40, random_state=0, **free).fit(X, y).guarantee_
    assert free.n_max == math.inf
    assert "at most 40" not in str(free)


def test_what_a_paper_takes_for_the_cap_is_not_in_the_ledger():
    X, y = np.arange(80).reshape(40, 2) % 2, np.arange(40) // 5 % 2
    schema = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
    model = DiffPRFClassifier(
        schema=schema, variant="published", criterion="information-gain", n_estimators=2, random_state=0
    )
    with pytest.warns(UnprovenPrivacyWarning):
        model.fit(X, y)
    assert model.ledger_.n_max == math.inf
    assert model.guarantee_.rests_on == ()


@pytest.mark.claim("thm-forest")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("score", [scores.gini, scores.information_gain])
def test_a_table_above_the_cap_costs_more_than_the_promise(score, relation):
    """The hypothesis: at the rate for two records a selection among three loses more than epsilon."""
    rate = 1.0 / score.range(relation, 2)
    assert rate * score.range(relation, 3) > 1.1


@pytest.mark.claim("thm-forest", "thm-private-boosting-numbers")
def test_a_sum_alone_is_cheap_where_every_record_is():
    """Under replace-one, at rate b: b at the root; below a split a record leaves one sum and enters another."""
    records = list(product((0, 1), (0, Fraction(1, 2), 1)))  # which leaf, and the target, in ranges

    def cost(place):
        return max(
            sum(abs(value * (place(one) == at) - other * (place(two) == at)) for at in (0, 1))
            for (one, value), (two, other) in product(records, repeat=2)
        )

    assert cost(lambda leaf: 0) == 1
    assert cost(lambda leaf: leaf) == 2
