"""What a random forest draws before any split: subsets of features, and who sees which record at what budget."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest

from dpforest.chance import Seeded, outcomes
from dpforest.curator import Curator
from dpforest.learners.sharing import SAMPLINGS, Subset, n_candidates, random_features, share_out
from dpforest.privacy import ADD_REMOVE, RELATIONS, Ledger


@pytest.mark.parametrize(
    ("asked", "features", "size"),
    [
        ("sqrt", 1, 1),
        ("sqrt", 4, 2),
        ("sqrt", 5, 3),
        ("sqrt", 16, 4),
        ("sqrt", 22, 5),
        ("all", 7, 7),
        (3, 7, 3),
        (9, 7, 7),
    ],
)
def test_the_size_of_a_subset(asked, features, size):
    assert n_candidates(asked, features) == size


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "log2", None])
def test_a_subset_of_no_size(bad):
    with pytest.raises(ValueError, match="max_features must be 'sqrt', 'all' or a whole number"):
        n_candidates(bad, 4)
    with pytest.raises(ValueError, match="max_features must be 'sqrt', 'all' or a whole number"):
        Subset().check(bad, "max_features")
    with pytest.raises(ValueError, match="max_features must be 'sqrt', 'all' or a whole number"):
        Subset(auto=True).check(bad, "max_features")


def test_a_subset_of_any_size_is_all_there_is():
    for rule in (Subset(), Subset(auto=True)):
        rule.check(1 << 40, "max_features")
        assert all(word in rule.words for word in ("sqrt", "all"))
    assert n_candidates(1 << 40, 7) == 7
    Subset(auto=True).check("auto", "max_features")
    with pytest.raises(ValueError, match="max_features must be 'sqrt', 'all' or a whole number"):
        Subset().check("auto", "max_features")


def test_every_node_draws_a_uniform_subset_of_what_it_may_use():
    """Each pattern of usable features, replayed: all subsets of the size, equally likely, nodes independent."""
    usable = np.array([[1, 1, 1, 0], [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    law: dict = defaultdict(float)
    for drawn, probability in outcomes(lambda chance: random_features(chance, usable, 2)):
        assert not (drawn & ~usable).any()
        law[tuple(map(tuple, map(np.flatnonzero, drawn)))] += probability
    three, four = list(combinations((0, 1, 2), 2)), list(combinations(range(4), 2))
    expected = {(a, (1, 3), (0,), (), b): 1 / 18 for a in three for b in four}
    assert law == pytest.approx(expected)


def test_a_subset_leaves_its_argument_alone():
    usable = np.ones((3, 4), dtype=bool)
    random_features(Seeded(0), usable, 1)
    assert usable.all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_trees_that_spend_their_budget_make_a_forest_that_spends_its_own(sampling, relation, epsilon):
    """By the ledger; a bootstrap costs more, and the ledger says so."""
    ledger = Ledger(relation)
    labels = np.zeros(50, dtype=np.uint8)
    curator = Curator(np.zeros((1, 50), np.uint8), labels, 2, [2], chance=Seeded(0), ledger=ledger)
    each, kind = share_out(sampling, curator, epsilon, 5, relation)
    trees = ledger.open("tree", np.repeat(ledger.open("forest", [0], kind=kind), 5))
    # under replace-one a query at budget e is calibrated so that it costs e / 2 where a record comes or goes
    ledger.charge(
        trees, each if relation == ADD_REMOVE else each / 2, each if relation != ADD_REMOVE else 2 * each, "", ""
    )
    if sampling == "bootstrap":
        assert ledger.epsilon > 1.02 * epsilon
    else:
        assert ledger.epsilon == pytest.approx(epsilon, rel=1e-12)
        assert 0 < each < 10


def test_who_sees_which_record():
    def seen(sampling, n=4000, trees=4):
        curator = Curator(
            np.zeros((1, n), np.uint8),
            (np.arange(n) % 200).astype(np.uint8),
            200,
            [2],
            chance=Seeded(1),
            ledger=Ledger(ADD_REMOVE),
        )
        share_out(sampling, curator, 1.0, trees, ADD_REMOVE)
        splits = type(
            "Roots",
            (),
            {
                "feature": np.full(trees, -1, np.int32),
                "first_child": np.zeros(trees, np.int32),
                "arity": np.zeros(trees, np.int32),
                "multiway": np.zeros(trees, bool),
                "mask": np.zeros((trees, 4), np.uint64),
                "roots": np.arange(trees, dtype=np.int32),
            },
        )
        return curator._class_counts(splits, np.arange(trees))

    assert (seen("all") == 20).all()
    assigned = seen("assignment")
    assert (assigned.sum(axis=0) == 20).all()
    assert (assigned.sum(axis=1) > 900).all()
    drawn = seen("bootstrap")
    assert (drawn.sum(axis=1) == 4000).all()
    assert len(Counter(drawn.ravel().tolist())) > 10
    poisson = seen("poisson")
    assert len(set(poisson.sum(axis=1).tolist())) > 1
    assert (abs(poisson.sum(axis=1) - 4000) < 5 * math.sqrt(4000)).all()
    assert poisson.var() == pytest.approx(20, rel=0.2)


def test_no_noise_needs_no_budget():
    curator = Curator(
        np.zeros((1, 3), np.uint8), np.zeros(3, np.uint8), 2, [2], chance=Seeded(0), ledger=Ledger(ADD_REMOVE)
    )
    for relation in RELATIONS:
        for sampling in SAMPLINGS:
            assert share_out(sampling, curator, math.inf, 3, relation)[0] == math.inf
