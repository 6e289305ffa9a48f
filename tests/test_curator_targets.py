"""The door to the data for a regression: exact whole-number moments, honest charges, resampled records."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import oracle
import pytest
from test_curator import Watched, World

from dpforest import scores
from dpforest.arithmetic.fixed import STEPS
from dpforest.chance import Seeded
from dpforest.curator import STOP, Curator, Selection
from dpforest.curator.queries import ClassCounts, Masses, Moments, RecordCounts, TargetSums
from dpforest.curator.selections import BinaryCandidates
from dpforest.learners.cuts import CutPool, random_cuts
from dpforest.learners.growth import Growth
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE, Ledger
from dpforest.schema import TARGET_LEVELS

relations = pytest.mark.parametrize("relation", RELATIONS)


def world_of_targets(seed: int, **options) -> World:
    world = World(seed, **options)
    targets = np.random.default_rng(seed + 1000).integers(TARGET_LEVELS + 1, size=len(world.labels))
    world.labels = targets.astype(np.uint8)
    world.curator._records.labels = world.labels
    world.curator.n_classes = 0
    return world


def targets_at(world: World) -> list[list[int]]:
    at = world.records_at()
    return [[int(world.labels[record]) for record in at[int(node)]] for node in world.nodes]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("assigned", [False, True])
def test_sums_and_moments_by_a_recount(seed, assigned, monkeypatch):
    world = world_of_targets(seed, assigned=assigned)
    ask = world.growth, world.nodes, world.scopes
    every = targets_at(world)
    assert any(every)
    masses = world.curator.noisy(Masses(*ask[:2]), ask[2], 1.0)
    assert masses.tolist() == [[sum(t), sum(TARGET_LEVELS - y for y in t)] for t in every]
    assert world.curator.noisy(TargetSums(*ask[:2]), ask[2], 1.0).tolist() == list(map(sum, every))
    assert world.curator.noisy(RecordCounts(*ask[:2]), ask[2], 1.0).tolist() == list(map(len, every))
    moments = world.curator.peek(Moments(*ask[:2], 3), ("the error", "line 1"))
    assert moments.tolist() == [[len(t), sum(t), sum(y * y for y in t)] for t in every]
    assert moments.dtype == masses.dtype == np.int64
    records, sizes = world.curator._records, []
    records.cells, answer = 60, records.answer
    monkeypatch.setattr(records, "answer", lambda query: sizes.append((found := answer(query)).size) or found)
    occur = world.curator.peek_codes(*ask[:2], ("the values", "line 5"))
    assert max(sizes) <= max(60, world.cardinalities.sum()), "an answer is larger than the records allow"
    at = world.records_at()
    for node, row in zip(world.nodes, occur, strict=True):
        expected = [c in world.codes[f, at[int(node)]] for f, n in enumerate(world.cardinalities) for c in range(n)]
        assert row.tolist() == expected
    assert [leak.what for leak in world.ledger.leaks] == ["the error", "the values"]


@pytest.mark.parametrize(
    ("name", "with_stop"),
    [(name, stop) for name, score in scores.REGRESSION.items() for stop in (False, True) if score.rest or not stop],
)
def test_candidates_are_chosen_by_a_recount(name, with_stop):
    score = scores.REGRESSION[name]
    exact = {
        "between": oracle.between,
        "sse": oracle.sse,
        "mass-gap": oracle.mass_gap,
        "variance": oracle.variance,
        "weighted-variance": oracle.weighted_variance,
    }[name]
    for seed in range(4):
        world = world_of_targets(seed, assigned=seed % 2 == 1)
        pool = CutPool(Seeded(seed), world.cardinalities, np.ones(3, bool))
        features, masks = random_cuts(Seeded(seed), pool, len(world.nodes), 2, 2)
        world.curator.choose(
            BinaryCandidates(world.growth, world.nodes, features, masks),
            world.scopes,
            1.0,
            Selection(score, mechanism="exponential", stop_margin=2.0 if with_stop else None),
        )
        _, found, rate = world.chance.asked[-1]
        np.testing.assert_allclose(rate * STEPS, 1 / score.exact_range(ADD_REMOVE), rtol=1e-15)
        at = world.records_at()
        for row, node in enumerate(world.nodes):
            expected = np.full(5, -np.inf)
            for k in range(4):
                children: list[list[Fraction]] = [[], []]
                for record in at[int(node)]:
                    code = int(world.codes[features[row, k], record])
                    bit = (int(masks[row, k, code // 64]) >> code % 64) & 1
                    children[bit].append(Fraction(int(world.labels[record]), TARGET_LEVELS))
                split = tuple(tuple(sorted(child)) for child in children)
                expected[1 + k] = float(exact(split))
            if with_stop:
                targets = np.array([world.labels[record] for record in at[int(node)]]) / TARGET_LEVELS
                moments = [len(targets), targets.sum(), (targets**2).sum()]
                rest = float(score.rest(np.array(moments[: score.n_moments])))
                expected[0] = rest + 2.0 / (rate[row] * STEPS)
            # steps behind the best: each of the two is rounded by less than a step for each child
            np.testing.assert_allclose(found[row] / STEPS, expected - expected.max(), rtol=0, atol=4 / STEPS)


@relations
def test_sums_are_charged_for_both_relations(relation):
    world = world_of_targets(3, relation=relation)
    epsilon = np.linspace(0.1, 1.0, len(world.nodes))
    half = 1 if relation == ADD_REMOVE else 2
    charged = []
    for query, noise, costs in (
        (Masses, epsilon / half / TARGET_LEVELS, (epsilon / half, 2 * epsilon / half)),
        (TargetSums, epsilon / TARGET_LEVELS, (epsilon, epsilon)),
        (RecordCounts, epsilon / half, (epsilon / half, 0 * epsilon)),
    ):
        world.curator.noisy(query(world.growth, world.nodes), world.scopes, epsilon)
        rate = world.chance.asked[-1][1]
        np.testing.assert_allclose(rate, np.broadcast_to(noise[:, None] if rate.ndim == 2 else noise, rate.shape))
        charge = world.ledger._charges[-1]
        charged.append([charge.costs[ADD_REMOVE], charge.costs[REPLACE_ONE]])
        np.testing.assert_allclose(charged[-1], costs)
        np.testing.assert_array_equal(charge.scopes, world.scopes)
    assert not world.ledger.leaks


def small(n: int, trees: int, chance) -> tuple[Curator, Growth]:
    ledger = Ledger()
    codes, labels = np.arange(n, dtype=np.uint8)[None], np.arange(n, dtype=np.uint8)
    curator = Curator(codes, labels, n, np.array([n]), chance=chance, ledger=ledger)
    return curator, Growth(trees, 1, n, ledger, "bootstrap")


def test_a_bootstrap_draws_n_of_n_for_each_tree():
    curator, growth = small(3, 2, Watched(np.array([2, 2, 0, 1, 0, 0])))
    curator.bootstrap(2)
    assert curator._chance.asked == [("integers", 3, 6)]
    found = curator.noisy(ClassCounts(growth, growth.roots), growth.frontier.scopes, 1.0)
    assert found.tolist() == [[1, 0, 2], [2, 1, 0]]
    assert curator.size(("n", "here")) == 3  # the table's, not that of the draws


def test_a_poisson_bootstrap_copies_each_record_by_a_number_of_its_own():
    class Numbers(Watched):
        def copies(self, n_trees, ids):
            self.asked.append(("copies", n_trees, ids.tolist()))
            return np.array([[0, 3, 1], [2, 0, 0]])

    curator, growth = small(3, 2, Numbers())
    curator.poisson_bootstrap(2)
    assert curator._chance.asked == [("copies", 2, [0, 1, 2])]
    found = curator.noisy(ClassCounts(growth, growth.roots), growth.frontier.scopes, 1.0)
    assert found.tolist() == [[0, 3, 1], [2, 0, 0]]


@pytest.mark.parametrize("verb", ["bootstrap", "poisson_bootstrap"])
def test_a_resampled_tree_sees_each_record_about_once(verb):
    """2000 trees: the copies of a record follow the law to five standard errors (the seed is fixed)."""
    n, trees = 4, 2000
    curator, growth = small(n, trees, Seeded(1))
    getattr(curator, verb)(trees)
    found = curator.peek(ClassCounts(growth, growth.roots), ("all", "here"))
    copies = Counter(found.ravel().tolist())
    law = (
        [0.3679, 0.3679, 0.1839]
        if verb == "poisson_bootstrap"
        else [(3 / 4) ** 4, 4 * (1 / 4) * (3 / 4) ** 3, 6 * 9 / 256]
    )
    for k, p in enumerate(law):
        assert abs(copies[k] / found.size - p) < 5 * np.sqrt(p * (1 - p) / found.size)
    if verb == "bootstrap":
        assert (found.sum(axis=1) == n).all()


def test_stop_wins_in_empty_nodes_and_a_clear_cut_where_it_pays():
    ledger = Ledger()
    codes = np.array([[0] * 500 + [1] * 500], dtype=np.uint8)
    targets = np.array([0] * 500 + [TARGET_LEVELS] * 500, dtype=np.uint8)
    curator = Curator(codes, targets, 0, np.array([2]), chance=Seeded(0), ledger=ledger)
    growth = Growth(1, 1, 2, ledger, "sequential")
    for n, expected in ((1, 0), (2, STOP)):  # both children of the cut are pure: nothing is left to gain, but
        frontier = growth.frontier  # only small nodes stop for sure
        features, masks = random_cuts(Seeded(n), CutPool(Seeded(n), [2], [True]), len(frontier), 1)
        choice = curator.choose(
            BinaryCandidates(growth, frontier.nodes, features, masks),
            frontier.scopes,
            1.0 if n == 1 else 1e-3,
            Selection(scores.between, mechanism="permute-and-flip", stop_margin=6.0),
        )
        assert (choice == expected).all()
        growth.add_children(frontier, features[:, 0], np.full(len(frontier), 2), masks=masks[:, 0], reuse=True)
