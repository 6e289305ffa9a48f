"""Reconstruction: the program finds what an exhaustive search finds, and errors are measured as the book says."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from test_audit_attacks import MIXED, fitted, label_share, log_probability, slow_leaf, table

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema
from dpforest.audit.attacks.integer_program import label_log_likelihood
from dpforest.audit.attacks.observer import LeafNoise, leaf_noise
from dpforest.audit.attacks.reconstruction import (
    Reconstruction,
    marginal_draws,
    medoid,
    reconstruct,
    reconstruction_error,
)
from dpforest.mechanisms import exponential_law, permute_and_flip_law
from dpforest.models.release import ReleasedForest

SQUARE = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
LINE = Schema(categorical={"a": [0, 1, 2]}, classes=[0, 1])
BITS = Schema(categorical={f"b{i}": [0, 1] for i in range(6)}, classes=[0, 1])


def universe(schema, n_bins=4):
    return list(product(*map(range, schema.cardinalities(n_bins)), range(2)))


def trees(schema, **options):
    return RandomTreesClassifier(schema=schema, **{"n_estimators": 3, "max_depth": 2, "n_bins": 4} | options)


def edprf(schema, **options):
    return EDPRFClassifier(schema=schema, **{"n_estimators": 1, "max_depth": 2, "n_bins": 4, "leaf": "label"} | options)


# -- the most probable data set --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "model",
    [
        trees(SQUARE),
        trees(SQUARE, epsilon=6.0, max_depth=1),
        trees(LINE, split="multiway"),
        trees(MIXED, max_depth=3),
        edprf(SQUARE, leaf="counts", stop_margin=0.0),
        edprf(SQUARE, stop="never", epsilon=3.0),
        edprf(LINE, selection="exponential", stop_margin=-1.0),
        edprf(SQUARE, relation="replace-one", epsilon=4.0),
        edprf(MIXED, leaf="counts", stop="never"),
    ],
)
def test_nothing_is_more_probable(model, seed):
    """Beside every data set of that size, with leaves whose probabilities are taken from the mechanisms' laws."""
    n = 2 if model.schema is MIXED else 4
    fitted(model.set_params(random_state=seed), table(model.schema, n, seed))
    found = reconstruct(model, n_records=n, random_state=seed)
    assert found.optimal
    assert found.records.shape == (n, model.schema.n_features + 1)
    every = combinations_with_replacement(universe(model.schema), n)
    best = max(log_probability(model, data) for data in every)
    assert log_probability(model, found.records.tolist()) == pytest.approx(best, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("leaf", ["counts", "label"])
@pytest.mark.parametrize("seed", range(3))
def test_data_and_coins_are_found_together(leaf, seed):
    """Three trees, each with a share of the records: beside every data set of three and all outcomes of its coins."""
    model = edprf(SQUARE, n_estimators=3, max_depth=1, leaf=leaf, epsilon=2.0, stop_margin=0.0, random_state=seed)
    fitted(model, table(SQUARE, 3, seed))
    rate, forest = leaf_noise(model).rate, model.forest_
    leaves = np.flatnonzero(forest.feature < 0).tolist()
    place = {(record[:-1], tree): slow_leaf(forest, record, tree) for record in universe(SQUARE) for tree in range(3)}

    def loss(data, coins):
        counts = {node: [0, 0] for node in leaves}
        for record, tree in zip(data, coins, strict=True):
            counts[place[tuple(record[:-1]), tree]][record[-1]] += 1
        if leaf == "counts":
            return sum(rate[at] * np.abs(forest.values[at] - counts[at]).sum() for at in leaves)
        said = forest.values.argmax(axis=1).tolist()
        return -sum(label_share(permute_and_flip_law, tuple(counts[at]), rate[at], said[at]) for at in leaves)

    best = min(
        loss(data, coins)
        for data in combinations_with_replacement(universe(SQUARE), 3)
        for coins in product(range(3), repeat=3)
    )
    found = reconstruct(model, n_records=3, random_state=0)
    assert found.loss == pytest.approx(best, abs=1e-6)
    assert min(loss(found.records.tolist(), coins) for coins in product(range(3), repeat=3)) == pytest.approx(
        best, abs=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_number_of_records_may_be_unknown(seed):
    model = fitted(trees(SQUARE, epsilon=3.0, random_state=seed), table(SQUARE, 3, seed))
    found = reconstruct(model, random_state=0)
    every = [data for n in range(7) for data in combinations_with_replacement(universe(SQUARE), n)]
    best = max(log_probability(model, data) for data in every)
    assert len(found.records) <= 6
    assert log_probability(model, found.records.tolist()) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", [trees(SQUARE, epsilon=0.5), edprf(SQUARE, epsilon=2.0, stop_margin=0.0)])
def test_a_prior_is_weighed_in(model, seed):
    prior = np.random.default_rng(seed).dirichlet(np.ones(8))
    at = {record: math.log(p) for record, p in zip(universe(SQUARE), prior, strict=True)}
    fitted(model.set_params(random_state=seed), table(SQUARE, 4, seed))

    def posterior(data):
        return log_probability(model, data) + sum(at[tuple(record)] for record in data)

    best = max(map(posterior, combinations_with_replacement(universe(SQUARE), 4)))
    found = reconstruct(model, n_records=4, prior=prior)
    assert posterior(found.records.tolist()) == pytest.approx(best, abs=1e-6)


def test_a_prior_alone_says_its_mode():
    """At almost no budget the posterior is the prior, and its most probable data set repeats one record."""
    model = fitted(trees(BITS, epsilon=1e-6, n_estimators=1, random_state=0), table(BITS, 5, 0))
    prior = np.full(128, 0.5 / 127)
    prior[77] = 0.5
    found = reconstruct(model, n_records=5, prior=prior)
    assert np.ravel_multi_index(tuple(found.records.T), (2,) * 7).tolist() == [77] * 5
    prior[77] = 0.0
    assert 77 not in np.ravel_multi_index(
        tuple(reconstruct(model, n_records=5, prior=prior / prior.sum()).records.T), (2,) * 7
    )


def test_without_noise_the_counts_are_met():
    """Enough trees and no noise: every record comes back."""
    records = table(BITS, 20, 3)
    model = fitted(trees(BITS, epsilon="non-private", n_estimators=12, max_depth=4, random_state=0), records)
    found = reconstruct(model)  # the number of records too
    assert found.optimal
    assert reconstruction_error(records, found.records).perfect == 1
    assert found.loss == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("n_estimators", [1, 4])
def test_without_noise_labels_lead(n_estimators):
    """Every label of the reconstruction is a majority of its leaf, or ties."""
    records = table(BITS, 20, 4)
    model = edprf(BITS, epsilon="non-private", n_estimators=n_estimators, max_depth=3, random_state=0)
    fitted(model, records)
    found = reconstruct(model, n_records=20)
    assert found.optimal
    if n_estimators == 1:
        for leaf in np.flatnonzero(model.forest_.feature < 0):
            votes = [int(r[-1]) for r in found.records if slow_leaf(model.forest_, r, 0) == leaf]
            label = int(np.argmax(model.forest_.values[leaf]))
            assert votes.count(label) >= len(votes) / 2


def test_records_that_no_leaf_tells_apart_are_drawn():
    model = fitted(trees(BITS, epsilon=50.0, n_estimators=1, max_depth=1, random_state=0), table(BITS, 20, 5))
    one, same, other = (reconstruct(model, n_records=20, random_state=seed) for seed in (1, 1, 2))
    assert one.records.tolist() == same.records.tolist() != other.records.tolist()
    assert one.loss == other.loss
    assert one.n_unknowns == 4  # two leaves, two classes
    assert len(set(map(tuple, one.records.tolist()))) > 10


def test_a_forest_read_back_is_as_good():
    model = fitted(trees(BITS, random_state=0, n_estimators=2), table(BITS, 20, 6))
    released = ReleasedForest(model.to_dict(seeded=True))
    again = reconstruct(released, n_records=20, noise=LeafNoise("counts", 0.5), random_state=0)
    assert again.loss == pytest.approx(reconstruct(model, n_records=20, random_state=0).loss)


@pytest.mark.parametrize(
    ("mechanism", "law"), [("permute-and-flip", permute_and_flip_law), ("exponential", exponential_law)]
)
def test_the_log_likelihood_of_a_label_is_concave(mechanism, law):
    for rate in (0.01, 0.3, 1.0, 4.0):
        lead = np.arange(-30, 31)
        found = label_log_likelihood(mechanism, rate * lead)
        counts = np.stack([np.maximum(lead, 0), np.maximum(-lead, 0)], axis=1)
        assert found == pytest.approx(np.log(law(counts, rate)[:, 0]), abs=1e-12)
        assert (np.diff(found, 2) <= 1e-12).all()
    assert label_log_likelihood(mechanism, -5000.0) == pytest.approx(-5000, abs=1)  # no underflow


# -- what cannot be reconstructed ------------------------------------------------------------------------------------


def test_what_cannot_be_reconstructed_is_refused():
    records = table(BITS, 20, 7)
    model = fitted(trees(BITS, random_state=0), records)
    with pytest.raises(TypeError, match="is not a released forest"):
        reconstruct(trees(BITS))
    with pytest.raises(ValueError, match="the schema allows 128 records, more than max_records = 100"):
        reconstruct(model, max_records=100)
    with pytest.raises(ValueError, match="n_records must be a whole number"):
        reconstruct(model, n_records=0)
    with pytest.raises(ValueError, match="prior must be 128 probabilities"):
        reconstruct(model, prior=np.ones(128))
    with pytest.raises(ValueError, match="prior must be 128 probabilities"):
        reconstruct(model, prior=[0.5, 0.5])
    with pytest.raises(ValueError, match="do not bound the number of records: pass n_records"):
        reconstruct(fitted(edprf(BITS), records))
    three = Schema(categorical={"a": [0, 1]}, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="inverted for two classes, not for 3"):
        reconstruct(edprf(three).fit([[0], [1]], [0, 2]), n_records=2)
    exact = fitted(trees(BITS, epsilon="non-private", random_state=0), records)
    with pytest.raises(ValueError, match="no data set of 19 records can have given these leaves"):
        reconstruct(exact, n_records=19)


def test_three_classes_of_counts():
    three = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1, 2])
    X, y = [[0, 0], [0, 1], [1, 1], [1, 1]], [0, 1, 2, 2]
    model = trees(three, epsilon="non-private", n_estimators=6, random_state=0).fit(X, y)
    found = reconstruct(model)
    assert Counter(map(tuple, found.records.tolist())) == Counter((*x, c) for x, c in zip(X, y, strict=True))


def test_an_early_end_is_said():
    """A search of one node may end early: then it is not called optimal."""
    wide = Schema(categorical={f"b{i}": [0, 1] for i in range(10)}, classes=[0, 1])
    model = fitted(trees(wide, epsilon=20.0, n_estimators=10, max_depth=4, random_state=1), table(wide, 40, 8))
    with pytest.raises(TimeoutError, match="raise time_limit or node_limit"):
        reconstruct(model, n_records=40, time_limit=0.0)
    assert "not proved optimal, gap 0.25" in str(Reconstruction(np.zeros((3, 2)), False, 0.25, 1.0, 9))
    assert str(Reconstruction(np.zeros((3, 2)), True, 0.0, 1.0, 9)) == "3 records reconstructed, optimal, 9 unknowns"


# -- how far from the truth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_error_is_that_of_the_best_matching(seed):
    rng = np.random.default_rng(seed)
    truth, guess = rng.integers(3, size=(2, 5, 4))
    found = reconstruction_error(truth, guess)
    expected = min(np.mean(truth != guess[list(order)]) for order in permutations(range(5)))
    assert found.hamming == pytest.approx(expected)
    both = Counter(map(tuple, truth.tolist())) & Counter(map(tuple, guess.tolist()))
    assert found.perfect == both.total() / 5
    assert reconstruction_error(truth, truth[::-1]).hamming == 0
    assert reconstruction_error(truth, truth[::-1]).perfect == 1


def test_records_without_a_partner_are_wrong_throughout():
    truth = np.array([[0, 0], [1, 1]])
    assert reconstruction_error(truth, truth[:1]).hamming == 0.5
    assert reconstruction_error(truth, [[0, 0], [1, 0], [1, 1], [1, 1]]).hamming == 0.5
    assert reconstruction_error(truth, np.zeros((0, 2), dtype=int)) == reconstruction_error(truth, [])
    assert reconstruction_error(truth, []).hamming == 1
    assert reconstruction_error(truth, [[0, 0], [0, 0]]).perfect == 0.5  # each record is used once


def test_records_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="truth holds no record"):
        reconstruction_error(np.zeros((0, 2), dtype=int), [])
    with pytest.raises(ValueError, match=r"guess must have shape \(n, 2\)"):
        reconstruction_error([[0, 0]], [[0, 0, 0]])
    with pytest.raises(ValueError, match="truth must have shape"):
        reconstruction_error([0, 1], [0, 1])


def test_the_medoid_is_nearest_to_all():
    rng = np.random.default_rng(0)
    population = rng.integers(3, size=(40, 5))
    far = (population[:, None] != population[None]).sum(axis=(1, 2))
    assert medoid(population).tolist() == population[np.argmin(far)].tolist()
    with pytest.raises(ValueError, match="population holds no record"):
        medoid(np.zeros((0, 3), dtype=int))


def test_marginal_draws_keep_the_shares_and_nothing_else():
    population = np.array([[0, 0], [1, 1], [1, 1], [1, 1]])
    drawn = marginal_draws(population, 8000, random_state=0)
    assert drawn.mean(axis=0) == pytest.approx([0.75, 0.75], abs=0.03)
    assert np.mean(drawn[:, 0] != drawn[:, 1]) == pytest.approx(2 * 0.75 * 0.25, abs=0.03)
    assert (
        marginal_draws(population, 3, random_state=1).tolist() == marginal_draws(population, 3, random_state=1).tolist()
    )
    with pytest.raises(ValueError, match="n must be a whole number"):
        marginal_draws(population, 0)
    with pytest.raises(ValueError, match="population holds no record"):
        marginal_draws(np.zeros((0, 3), dtype=int), 1)
