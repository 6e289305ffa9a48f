"""Membership and the informed adversary: sharp bounds in exact fractions, and attacks that weigh the leaves rightly."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import oracle
import pytest

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema, UnprovenPrivacyWarning
from dpforest.audit import datasets, exact_audit, law_of, neighbours
from dpforest.audit.attacks.adversaries import (
    best_advantage,
    best_guess,
    evidence,
    informed_adversary,
    informed_guess,
    membership_advantage,
    membership_attack,
)
from dpforest.audit.attacks.observer import LeafNoise, Observer, as_records, leaf_noise, leaf_of
from dpforest.audit.attacks.onerun import one_run
from dpforest.chance import Seeded
from dpforest.curator import Curator
from dpforest.curator.selections import LabelCandidates
from dpforest.mechanisms import exponential_law, permute_and_flip_law, two_sided_geometric_law
from dpforest.models.release import ReleasedForest
from dpforest.papers.diffpets import DiffPETsClassifier
from dpforest.papers.diffprf import DiffPRFClassifier
from dpforest.papers.diffprfs import DiffPRFsClassifier
from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
from dpforest.papers.random_trees import RandomTreesRegressor
from dpforest.privacy import ADD_REMOVE, RELATIONS

relations = pytest.mark.parametrize("relation", RELATIONS)
ONE = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
TWO = Schema(categorical={"a": [0, 1], "b": [0, 1, 2]}, classes=["n", "y"])
MIXED = Schema(numeric={"x": (0, 1)}, categorical={"b": ["u", "v"]}, classes=["n", "y"])


def laws_on(outputs: int, parts: int) -> list[dict]:
    """Every law whose probabilities are multiples of 1 / parts, none of them zero."""
    cuts = combinations_with_replacement(range(outputs), parts - outputs)
    return [{o: Fraction(1 + extra.count(o), parts) for o in range(outputs)} for extra in cuts]


# -- membership: the theorem -----------------------------------------------------------------------------------------


@pytest.mark.claim(
    "thm-membership",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$(e^\eps - 1)/(e^\eps + 1)$, attained by randomised response and by one noisy count",
)
@pytest.mark.parametrize("base", [Fraction(3, 2), Fraction(2), Fraction(3), Fraction(10)])
def test_the_largest_advantage_is_attained(base):
    bound = (base - 1) / (base + 1)
    response = [oracle.noisy_bit(there, base) for there in (False, True)]
    count = [oracle.noisy_count(number, base, 5) for number in (1, 2)]
    for one, other in (response, count):
        assert oracle.worst_ratio(one, other) == base
        assert best_advantage(one, other) == best_advantage(other, one) == bound
    assert membership_advantage(math.log(base)) == pytest.approx(float(bound), rel=1e-14)


@pytest.mark.claim("thm-membership")
@relations
def test_a_noisy_count_of_an_attribute_attains_both_bounds(relation):
    """Over all neighbours; a count of all records does so under add-remove, and shows nothing under replace-one."""
    base = Fraction(2)
    gains = {
        name: max(
            best_advantage(*(oracle.noisy_count(counted(data), base, 3) for data in pair))
            for pair in oracle.pairs([0, 1], 3, relation, least=1)
        )
        for name, counted in (("ones", sum), ("all", len))
    }
    assert gains["ones"] == (base - 1) / (base + 1)
    assert gains["all"] == (gains["ones"] if relation == ADD_REMOVE else 0)


@pytest.mark.slow
@pytest.mark.claim("thm-membership")
def test_no_test_on_any_two_laws_gains_more():
    """All laws on three outputs in twelfths, all events, and by convexity all randomised tests."""
    laws = laws_on(3, 12)
    events = [set(event) for event in product((0, 1, 2, None), repeat=3)]
    attained = set()
    for one, other in product(laws, repeat=2):
        ratio = oracle.worst_ratio(one, other)
        best = max(sum(one[o] - other[o] for o in event if o is not None) for event in events)
        assert best_advantage(one, other) == best <= (ratio - 1) / (ratio + 1)
        if best == (ratio - 1) / (ratio + 1):
            attained.add(ratio)
    assert len(attained) > 3


@pytest.mark.claim("thm-membership")
@pytest.mark.parametrize("trees", [1, 2, 3])
def test_trees_that_share_the_records_are_a_sum_of_signs(trees):
    """Each tree's count votes for or against the record; the best attack counts the votes."""
    base = Fraction(2)  # of one tree: e to epsilon over trees
    without, there = (
        oracle.independent(*(oracle.noisy_count(number, base, 3) for _ in range(trees))) for number in (1, 2)
    )
    p = base / (base + 1)
    votes = [{k: math.comb(trees, k) * q**k * (1 - q) ** (trees - k) for k in range(trees + 1)} for q in (1 - p, p)]
    assert best_advantage(there, without) == best_advantage(*votes[::-1])
    whole = base**trees
    assert oracle.worst_ratio(there, without) == whole
    assert best_advantage(there, without) <= (whole - 1) / (whole + 1)
    assert (best_advantage(there, without) == (whole - 1) / (whole + 1)) == (trees == 1)


@pytest.mark.slow
@pytest.mark.claim("thm-membership")
@relations
def test_the_best_attack_on_the_code_that_ships(relation):
    """Over all neighbours of a small universe; the exact loss allows what the attack reaches."""
    model = EDPRFClassifier(schema=ONE, n_estimators=1, max_depth=1, leaf="label", relation=relation, stop_margin=0.5)
    every = list(datasets([2], 2, 3))
    laws = {data: law_of(model, ONE, data) for data in every}
    gains = [best_advantage(laws[one], laws[other]) for one, other in neighbours(every, relation)]
    loss = exact_audit(model, n_max=3).epsilon
    assert 0.1 < max(gains) <= math.tanh(loss / 2) <= membership_advantage(1.0) * (1 + 1e-12)


def test_the_ends_of_the_advantage():
    assert membership_advantage("non-private") == 1.0
    assert membership_advantage(1e-9) == pytest.approx(5e-10)
    with pytest.raises(ValueError, match="epsilon must be positive"):
        membership_advantage(0)
    assert best_advantage({"a": 1}, {"b": 1}) == 1
    assert best_advantage({"a": Fraction(1, 3), "b": Fraction(2, 3)}, {"a": Fraction(1, 2), "b": Fraction(1, 2)}) == (
        Fraction(1, 6)
    )


@pytest.mark.parametrize(
    ("laws", "error", "message"),
    [
        ([{"a": 0.5}, {"a": 1.0}], ValueError, "must add up to 1; these add up to 0.5"),
        ([{"a": 1.5, "b": -0.5}, {"a": 1.0}], ValueError, "must add up to 1"),
        ([[0.5, 0.5], {"a": 1.0}], TypeError, "a law is a dict"),
        ([{}, {"a": 1.0}], TypeError, "a law is a dict"),
    ],
)
def test_what_is_not_a_law_is_refused(laws, error, message):
    with pytest.raises(error, match=message):
        best_advantage(*laws)
    with pytest.raises(error, match=message):
        best_guess(laws)


# -- the informed adversary: the theorem -----------------------------------------------------------------------------


def k_ary(k: int, base) -> list[dict]:
    """Randomised response among k values: the truth with odds ``base`` to 1 against each other value."""
    return [{o: (base if o == v else 1) / Fraction(base + k - 1) for o in range(k)} for v in range(k)]


def opt_in(k: int, base) -> list[dict]:
    """The sharpest laws that are all within a factor ``base`` of the uniform one."""
    top = min(base / Fraction(k), 1 - (k - 1) / (Fraction(base) * k))
    return [{o: top if o == v else (1 - top) / (k - 1) for o in range(k)} for v in range(k)]


@pytest.mark.claim(
    "thm-informed",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$e^\eps/(e^\eps + k - 1)$ under replace-one; "
    r"$\min\bigl(e^\eps/k, 1 - (1 - 1/k)\,e^{-\eps}\bigr)$ under add-remove; both attained",
)
@pytest.mark.parametrize("base", [Fraction(3, 2), Fraction(2), Fraction(5)])
@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_the_largest_success_is_attained(k, base):
    response = k_ary(k, base)
    assert oracle.worst_case(lambda data: response[data[0]], range(k), 1, "replace-one", least=1) == base
    assert best_guess(response) == base / (base + k - 1)
    assert informed_adversary(math.log(base), k) == pytest.approx(float(best_guess(response)), rel=1e-14)

    laws, uniform = opt_in(k, base), {o: Fraction(1, k) for o in range(k)}

    def mechanism(data):  # says something of the record if there is exactly one
        return laws[data[0]] if len(data) == 1 else uniform

    assert oracle.worst_case(mechanism, range(k), 2, "add-remove") == base
    assert best_guess(laws) == min(base / k, 1 - (1 - Fraction(1, k)) / base)
    found = informed_adversary(math.log(base), k, relation="add-remove")
    assert found == pytest.approx(float(best_guess(laws)), rel=1e-14)
    assert best_guess(laws) <= base**2 / (base**2 + k - 1)  # what two steps of add-remove would allow


@pytest.mark.claim("thm-informed")
@pytest.mark.parametrize("prior", [(Fraction(1, 2), Fraction(1, 2)), (Fraction(3, 4), Fraction(1, 4)), (1, 0)])
def test_no_adversary_does_better(prior):
    """All pairs of laws on three outputs in tenths, all rules of guessing, and laws that may stand between them."""
    laws = laws_on(3, 10)
    rules = list(product((0, 1), repeat=3))
    p = max(prior)
    for pair in combinations_with_replacement(laws, 2):
        best = max(sum(prior[rule[o]] * pair[rule[o]][o] for o in range(3)) for rule in rules)
        assert best_guess(pair, prior) == best
        ratio = oracle.worst_ratio(*pair)
        assert best <= ratio * p / (ratio * p + 1 - p)
        for between in laws[::5]:
            near = max(oracle.worst_ratio(between, law) for law in pair)
            assert best <= min(near * p, 1 - (1 - p) / near)


@pytest.mark.claim("thm-informed")
def test_three_values_and_an_uneven_prior():
    laws = laws_on(3, 6)
    prior = (Fraction(1, 6), Fraction(1, 3), Fraction(1, 2))
    for triple in product(laws, repeat=3):
        ratio = max(oracle.worst_ratio(one, other) for one, other in product(triple, repeat=2))
        assert best_guess(triple) <= ratio / (ratio + 2)
        assert best_guess(triple, prior) <= ratio * Fraction(1, 2) / (ratio * Fraction(1, 2) + Fraction(1, 2))


def test_the_ends_of_the_informed_adversary():
    for relation in RELATIONS:
        assert informed_adversary("non-private", 7, relation=relation) == 1.0
        assert informed_adversary(1e-9, 4, relation=relation) == pytest.approx(0.25)
        assert informed_adversary(1.0, prior=1.0, relation=relation) == 1.0
        assert informed_adversary(1.0, prior=0.2, relation=relation) == informed_adversary(1.0, 5, relation=relation)
    assert informed_adversary(1.0, 2) == pytest.approx(math.e / (1 + math.e))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "say either k"),
        ({"k": 2, "prior": 0.5}, "say either k"),
        ({"k": 1}, "k must be a whole number"),
        ({"prior": 0.0}, "prior must be a probability above 0"),
        ({"prior": 1.2}, "prior must be a probability"),
        ({"k": 3, "relation": "bounded"}, "relation must be one of"),
    ],
)
def test_an_adversary_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        informed_adversary(1.0, **options)


@pytest.mark.parametrize("prior", [(0.5, 0.4), (1.5, -0.5), (1.0,)])
def test_a_prior_that_is_none_is_refused(prior):
    with pytest.raises(ValueError, match="prior must be 2 probabilities"):
        best_guess(k_ary(2, 2), prior)


# -- what an observer reads off a forest -----------------------------------------------------------------------------


def table(schema: Schema, n: int, seed: int):
    rng = np.random.default_rng(seed)
    sizes = (*schema.cardinalities(4), schema.n_classes)
    return np.stack([rng.integers(size, size=n) for size in sizes], axis=1)


def fitted(model, records):
    """The model on records given as codes; numeric codes become the middles of their bins."""
    schema = model.schema
    columns = [
        (records[:, j] + 0.5) / model.n_bins
        if name in schema.numeric
        else np.array(schema.categorical[name])[records[:, j]]
        for j, name in enumerate(schema.columns)
    ]
    X = np.empty((len(records), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        X[:, j] = column
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        return model.fit(X, schema.classes[records[:, -1]])


def slow_leaf(forest, codes, tree: int) -> int:
    node = int(forest.roots[tree])
    while forest.feature[node] >= 0:
        code = int(codes[forest.feature[node]])
        step = code if forest.multiway[node] else int(forest.mask[node, code // 64]) >> code % 64 & 1
        node = int(forest.first_child[node]) + step
    return node


FORESTS = [
    RandomTreesClassifier(schema=MIXED, n_estimators=3, max_depth=3, n_bins=4, random_state=1),
    RandomTreesClassifier(schema=TWO, n_estimators=2, max_depth=2, n_bins=4, split="multiway", random_state=2),
    EDPRFClassifier(schema=MIXED, n_estimators=3, max_depth=2, n_bins=4, leaf="label", stop_margin=0.0, random_state=3),
]


@pytest.mark.parametrize("model", FORESTS)
def test_every_record_finds_its_leaves(model):
    fitted(model, table(model.schema, 30, 0))
    seen = Observer.of(model)
    sizes = (*model.schema.cardinalities(4), 2)
    assert seen.records.tolist() == [list(record) for record in product(*map(range, sizes))]
    expected = [[slow_leaf(model.forest_, record, t) for t in range(model.n_estimators)] for record in seen.records]
    assert seen.leaf.tolist() == expected
    assert seen.index(seen.records[::-1], "records").tolist() == list(range(len(seen.records)))[::-1]


@relations
@pytest.mark.parametrize(
    "options",
    [
        {"leaf": "counts"},
        {"leaf": "counts", "stop": "never", "budget": "uniform"},
        {"stop_margin": 0.0},
        {"budget": "harmonic", "stop_margin": 0.0},
        {"budget": "aligned-uniform", "leaf": "counts", "stop_margin": 0.0},
        {"calibration": "sensitivity", "selection": "exponential", "stop": "never"},
        {"variant": "published"},
        {"max_nodes": 6, "n_estimators": 2, "leaf": "counts"},
        {"epsilon": "non-private"},
        {"n_estimators": 4, "leaf": "counts", "max_depth": 5},
    ],
)
def test_the_noise_of_the_leaves_is_what_was_charged(relation, options):
    """Beside the rates that the shipped curator was asked for, in the same fit."""
    asked: dict[int, float] = {}

    class Watched(Curator):
        def two_sided(self, nodes, epsilon):
            asked.update(zip(nodes.tolist(), np.broadcast_to(epsilon, len(nodes)).tolist(), strict=True))

        def noisy(self, query, scopes, epsilon):
            unit = 1 if relation == "add-remove" else 2
            self.two_sided(query.nodes, np.asarray(epsilon) / unit)
            return super().noisy(query, scopes, epsilon)

        def choose(self, candidates, scopes, epsilon, how):
            if isinstance(candidates, LabelCandidates):
                unit = 2 if relation == "replace-one" or how.calibration == "sensitivity" else 1
                self.two_sided(candidates.nodes, np.asarray(epsilon) / unit)
            return super().choose(candidates, scopes, epsilon, how)

    records = table(TWO, 40, 1)
    for model in (
        EDPRFClassifier(schema=TWO, relation=relation, random_state=5, **{"n_estimators": 1, "max_depth": 2} | options),
        RandomTreesClassifier(schema=TWO, relation=relation, n_estimators=3, max_depth=2, random_state=5),
    ):
        asked.clear()
        fitted(model, records)
        codes, labels = np.ascontiguousarray(records[:, :-1].T.astype(np.uint8)), records[:, -1].astype(np.uint8)
        epsilon = math.inf if model.epsilon == "non-private" else model.epsilon
        forest, _ = model.replay(codes, labels, TWO, epsilon, Seeded(5), door=Watched)
        assert forest.values.tolist() == model.forest_.values.tolist()
        noise = leaf_noise(model)
        leaves = np.flatnonzero(forest.feature < 0)
        assert sorted(asked) == leaves.tolist()
        rate = np.broadcast_to(noise.rate, forest.n_nodes)
        assert rate[leaves] == pytest.approx([asked[leaf] for leaf in leaves.tolist()], rel=1e-12)
        assert noise.shared == (model.n_estimators == 1 or isinstance(model, RandomTreesClassifier))


def test_the_log_likelihood_is_that_of_the_laws():
    counts, rate = np.array([[3, 1], [0, 0], [2, 5]]), np.array([0.5, 1.0, 2.0])
    for name, law in (("permute-and-flip", permute_and_flip_law), ("exponential", exponential_law)):
        for said in (0, 1):
            values = np.tile(np.eye(2, dtype=int)[said], (3, 1))
            found = LeafNoise("label", rate, mechanism=name).log_likelihood(values, counts, rate)
            assert found == pytest.approx(np.log(law(counts, rate)[:, said]))
    noise = LeafNoise("counts", 0.7)
    noisy = np.array([[4, -1], [0, 2]])
    exact = np.array([[3, 1], [0, 0]])
    law = np.log(two_sided_geometric_law(noisy - exact, 0.7)).sum(axis=1)
    found = noise.log_likelihood(noisy, exact, 0.7)
    assert found[0] - found[1] == pytest.approx(law[0] - law[1])


# -- evidence --------------------------------------------------------------------------------------------------------


@cache
def label_share(law, counts: tuple, rate: float, said: int) -> float:
    return math.log(law(counts, rate)[said])


@cache
def count_share(said: tuple, counts: tuple, rate: float) -> float:
    return float(np.log(two_sided_geometric_law(np.subtract(said, counts), rate)).sum())


def log_probability(model, records) -> float:
    """Of what the leaves say, leaf by leaf, from the mechanisms' laws."""
    forest, total = model.forest_, 0.0
    rates = np.broadcast_to(leaf_noise(model).rate, forest.n_nodes).tolist()
    labels = isinstance(model, EDPRFClassifier) and model.option("leaf") == "label"
    for tree in range(len(forest.roots)):
        place = {r: slow_leaf(forest, r, tree) for r in product(*map(range, model.schema.cardinalities(model.n_bins)))}
        counts = {leaf: [0, 0] for leaf in place.values()}
        for record in records:
            counts[place[tuple(record[:-1])]][record[-1]] += 1
        for leaf, had in counts.items():
            if labels:
                law = {"permute-and-flip": permute_and_flip_law, "exponential": exponential_law}[model.selection]
                total += label_share(law, tuple(had), rates[leaf], int(np.argmax(forest.values[leaf])))
            else:
                total += count_share(tuple(forest.values[leaf].tolist()), tuple(had), rates[leaf])
    return total


@pytest.mark.parametrize(
    "model",
    [
        FORESTS[0],
        FORESTS[1],
        EDPRFClassifier(schema=TWO, n_estimators=1, max_depth=2, leaf="label", stop_margin=0.0, random_state=6),
        EDPRFClassifier(schema=MIXED, n_estimators=1, max_depth=2, n_bins=4, leaf="counts", random_state=7),
    ],
)
def test_the_evidence_is_a_ratio_of_likelihoods(model):
    records = table(model.schema, 12, 3)
    fitted(model, records)
    gain = evidence(model, records[1:])
    seen = Observer.of(model)
    without = log_probability(model, records[1:])
    expected = [log_probability(model, [*records[1:], record]) - without for record in seen.records.tolist()]
    assert gain == pytest.approx(expected, abs=1e-9)


def test_one_tree_of_noisy_counts_is_worth_its_whole_budget():
    """The log-likelihood ratio is plus or minus epsilon, and the sign is the whole attack."""
    model = RandomTreesClassifier(
        schema=TWO, epsilon=0.8, n_estimators=1, max_depth=2, split="multiway", random_state=0
    )
    records = table(TWO, 20, 4)
    gain = evidence(fitted(model, records), records)
    assert np.abs(gain) == pytest.approx(np.full(len(gain), 0.8))
    several = RandomTreesClassifier(schema=TWO, epsilon=0.8, n_estimators=4, max_depth=2, random_state=0)
    gain = evidence(fitted(several, records), records)
    assert set(np.round(gain / 0.2, 9) % 2) == {0.0}  # four signs of 0.2 each
    assert np.abs(gain).max() <= 0.8 + 1e-12


@pytest.mark.slow
@pytest.mark.claim("thm-informed")
def test_the_guess_of_an_informed_adversary_is_seldom_right():
    """An unknown record is one of twelve, equally likely; a fit whose leaves are cells tells it as often as it may.

    Between the exact success of the best guess on one noisy count for each cell, by simulation, and the bound.
    """
    bound = informed_adversary(1.5, 12, relation="add-remove")
    rng = np.random.default_rng(0)
    known = table(TWO, 10, 9)
    right = 0
    for seed in range(300):
        secret = Observer.of(FORESTS[1]).records[rng.integers(12)]
        model = RandomTreesClassifier(
            schema=TWO, epsilon=1.5, n_estimators=1, max_depth=2, split="multiway", random_state=seed
        )
        fitted(model, np.vstack([known, secret]))
        right += (informed_guess(model, known, random_state=seed) == secret).all()
    rng = np.random.default_rng(1)
    noise = rng.geometric(1 - math.exp(-1.5), (20000, 12)) - rng.geometric(1 - math.exp(-1.5), (20000, 12))
    noise[:, 0] += 1
    high = noise > 0  # the likeliest cells are those above their known counts, all equally
    exact = np.mean(np.where(high[:, 0], 1, ~high.any(axis=1)) / np.where(high.any(axis=1), high.sum(axis=1), 12))
    assert abs(right / 300 - exact) < 5 * math.sqrt(exact / 300)
    assert exact < bound


def test_an_informed_guess_follows_its_prior():
    model = RandomTreesClassifier(schema=TWO, epsilon=1e-6, n_estimators=1, max_depth=2, random_state=0)
    records = table(TWO, 10, 5)
    fitted(model, records)
    prior = np.full(12, 0.5 / 11)
    prior[7] = 0.5
    assert informed_guess(model, records, prior=prior).tolist() == Observer.of(model).records[7].tolist()
    several = {tuple(informed_guess(model, records, random_state=seed)) for seed in range(20)}
    assert len(several) > 1  # leaves that several records share leave a tie, which a coin breaks
    with pytest.raises(ValueError, match="prior must be 12 probabilities"):
        informed_guess(model, records, prior=[1.0])


def test_without_noise_the_evidence_is_certain():
    model = RandomTreesClassifier(
        schema=TWO, epsilon="non-private", n_estimators=1, max_depth=2, split="multiway", random_state=0
    )
    records = table(TWO, 20, 5)
    gain = evidence(fitted(model, records), records[1:])
    assert Observer.of(model).records[np.argmax(gain)].tolist() == records[0].tolist()
    assert np.sort(gain)[-2] < -1e5 < 1e5 < gain.max()


def test_a_forest_read_back_needs_its_noise():
    model = RandomTreesClassifier(schema=TWO, n_estimators=2, max_depth=2, random_state=0)
    records = table(TWO, 20, 6)
    fitted(model, records)
    released = ReleasedForest(model.to_dict(seeded=True))
    with pytest.raises(TypeError, match="pass noise=LeafNoise"):
        evidence(released, records)
    again = evidence(released, records, noise=LeafNoise("counts", 0.5))
    assert again == pytest.approx(evidence(model, records))


def test_as_records_encodes_like_the_fit():
    model = FORESTS[0]
    records = table(MIXED, 9, 7)
    fitted(model, records)
    X = [[(code + 0.5) / 4, MIXED.categorical["b"][b]] for code, b, _ in records.tolist()]
    y = MIXED.classes[records[:, -1]]
    assert as_records(model, X, y).tolist() == records.tolist()
    assert as_records(RandomTreesClassifier(schema=MIXED, n_bins=4), X, y).tolist() == records.tolist()
    with pytest.raises(ValueError, match="X has 9 rows, y has 8"):
        as_records(model, X, y[:-1])
    with pytest.raises(TypeError, match="has none"):
        as_records(EDPRFClassifier(), X, y)


def test_attacks_that_cannot_be_made_are_refused():
    records = table(TWO, 20, 8)
    model = fitted(RandomTreesClassifier(schema=TWO, n_estimators=1, max_depth=1, random_state=0), records)
    with pytest.raises(TypeError, match="RandomTreesClassifier is not a released forest: pass a fitted estimator"):
        evidence(RandomTreesClassifier(schema=TWO), records)
    with pytest.raises(TypeError, match="dict is not a released forest"):
        evidence({}, records)
    with pytest.raises(ValueError, match="known must have shape"):
        evidence(model, records[:, :-1])
    with pytest.raises(ValueError, match="known must hold codes"):
        evidence(model, records + 0.5)
    with pytest.raises(ValueError, match=r"known holds a code outside the schema, whose columns have \(2, 3, 2\)"):
        evidence(model, records + 2)
    with pytest.raises(ValueError, match="the schema allows 12 records, more than max_records = 10"):
        evidence(model, records, max_records=10)
    with pytest.raises(ValueError, match="take n_estimators=1"):
        evidence(fitted(EDPRFClassifier(schema=TWO, n_estimators=2, max_depth=1, random_state=0), records), records)
    with pytest.raises(ValueError, match="the noise has 5 rates for the"):
        evidence(model, records, noise=LeafNoise("counts", np.ones(5)))
    deep = fitted(RandomTreesClassifier(schema=TWO, n_estimators=8, max_depth=2, random_state=0), records)
    deep.schema_ = ONE
    with pytest.raises(ValueError, match="the forest and the schema disagree"):
        evidence(deep, records)
    assert evidence(fitted(model, records), np.zeros((0, 3), dtype=int)).shape == (12,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaf": "mean", "rate": 1.0}, "leaf must be 'counts' or 'label'"),
        ({"leaf": "label", "rate": 1.0, "mechanism": "laplace"}, "mechanism must be one of"),
        ({"leaf": "counts", "rate": 0.0}, "must be positive"),
        ({"leaf": "counts", "rate": math.nan}, "must be positive"),
    ],
)
def test_noise_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LeafNoise(**options)


# -- a score tried out -----------------------------------------------------------------------------------------------


def test_a_membership_attack_is_judged_on_other_draws_than_chose_it():
    attack = membership_attack([1, 1, 0, 0], [0, 0, 1, 1])
    assert (attack.threshold, attack.advantage, attack.low) == (1, -1, 0)
    assert (attack.true_positive, attack.false_positive, attack.n) == (0.0, 1.0, (2, 2))
    sure = membership_attack(np.ones(2000), np.zeros(1000))
    assert (sure.advantage, sure.n) == (1.0, (1000, 500))
    assert 0.98 < sure.low < 1
    assert membership_attack([np.inf] * 4, [-np.inf] * 4).advantage == 1


def test_the_threshold_is_the_best_of_the_first_half():
    """Scores whose best cut is known: true positive rate 0.9, false positive rate 0.2."""
    inside = np.tile([0, 1, 1, 1, 1, 1, 1, 1, 1, 1], 40)
    outside = np.tile([1, 0, 0, 0, 1, 0, 0, 0, 0, 0], 40)
    attack = membership_attack(inside, outside)
    assert (attack.true_positive, attack.false_positive) == (0.9, 0.2)
    assert attack.advantage == pytest.approx(0.7)
    assert 0.5 < attack.low < 0.7


def test_the_lower_bound_holds_as_often_as_promised():
    """Randomised response at loss 1: of 400 bounds at 90 % more than 60 too high have probability below 1e-3."""
    rng = np.random.default_rng(0)
    p, true = math.e / (1 + math.e), membership_advantage(1.0)
    attacks = [membership_attack(rng.random(200) < p, rng.random(200) < 1 - p, confidence=0.9) for _ in range(400)]
    assert 0 < sum(attack.low > true for attack in attacks) <= 60
    assert np.mean([attack.advantage for attack in attacks]) == pytest.approx(true, abs=0.02)


@pytest.mark.parametrize("bad", [[1.0], [[1.0, 2.0]], [1.0, math.nan], []])
def test_scores_that_are_none_are_refused(bad):
    with pytest.raises(ValueError, match="inside must be at least two scores"):
        membership_attack(bad, [0.0, 1.0])
    with pytest.raises(ValueError, match="outside must be at least two scores"):
        membership_attack([0.0, 1.0], bad)


def test_a_forest_without_splits_has_its_roots_for_leaves():
    model = fitted(
        EDPRFClassifier(schema=TWO, n_estimators=3, max_depth=1, max_nodes=3, random_state=0), table(TWO, 9, 9)
    )
    assert leaf_of(model.forest_, np.zeros((4, 2))).tolist() == [[0, 1, 2]] * 4


# -- leaves of other learners ----------------------------------------------------------------------------------------


@relations
@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (DiffPETsClassifier, {"max_depth": 2}),
        (DiffPETsClassifier, {"max_depth": 1, "leaf": "label", "selection": "exponential"}),
        (DiffPETsClassifier, {"max_depth": 2, "sampling": "assignment"}),
        (DiffPRFClassifier, {"max_depth": 2}),
        (DiffPRFsClassifier, {"max_depth": 1}),
    ],
    ids=str,
)
def test_leaf_noise_is_the_noise_that_is_drawn(cls, options, relation, monkeypatch):
    """Against the rates that reach the mechanisms in the fit."""
    schema = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (300, 2)), rng.integers(0, 2, 300)
    drawn: dict[int, float] = {}
    measure, make = Curator.noisy, Curator.choose

    def note(nodes, epsilon):
        drawn.update(zip(nodes.tolist(), np.broadcast_to(epsilon, len(nodes)).tolist(), strict=True))

    def noisy(self, query, scopes, epsilon):
        note(query.nodes, epsilon)
        return measure(self, query, scopes, epsilon)

    def choose(self, candidates, scopes, epsilon, how):
        if isinstance(candidates, LabelCandidates):
            note(candidates.nodes, epsilon)
        return make(self, candidates, scopes, epsilon, how)

    monkeypatch.setattr(Curator, "noisy", noisy)
    monkeypatch.setattr(Curator, "choose", choose)
    model = cls(schema=schema, n_estimators=2, relation=relation, random_state=0, **options).fit(X, y)
    noise = leaf_noise(model)
    unit = 1 if relation == ADD_REMOVE else 2
    leaves = np.flatnonzero(model.forest_.feature < 0)
    np.testing.assert_allclose(noise.rate[leaves], [drawn[leaf] / unit for leaf in leaves.tolist()])
    assert noise.leaf == options.get("leaf", "counts")
    assert noise.mechanism == options.get("selection", "permute-and-flip")
    assert noise.shared == (options.get("sampling") != "assignment")
    if noise.shared:
        assert evidence(model, np.column_stack([X, y])[:-1]).shape == (8,)


def test_leaves_that_no_attack_weighs_are_refused():
    schema = Schema(categorical={"a": [0, 1]}, classes=[0, 1])
    X, y = np.array([[0], [1], [1]]), [0, 1, 1]

    def fitted(cls, **options):
        return cls(schema=schema, n_estimators=1, max_depth=1, random_state=0, **options).fit(X, y)

    with pytest.raises(ValueError, match="a Poisson bootstrap brings a record to a tree several times"):
        leaf_noise(fitted(DiffPETsClassifier, sampling="poisson"))
    with pytest.raises(ValueError, match="use vote='counts'"):
        leaf_noise(fitted(DiffPRFClassifier, vote="majority"))
    with (
        pytest.warns(UnprovenPrivacyWarning),
        pytest.raises(TypeError, match="random trees, eDPRF, and proved DiffPETs"),
    ):
        leaf_noise(fitted(DiffPETsClassifier, variant="published"))
    with pytest.raises(TypeError, match="the leaves of DPAdaBoostClassifier hold votes"):
        leaf_noise(DPAdaBoostClassifier(schema=schema, n_estimators=1, random_state=0).fit(X, y))
    target = Schema(categorical={"a": [0, 1]}, target=(0, 1))
    regressor = RandomTreesRegressor(schema=target, n_estimators=1, max_depth=1, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="masses of a target, and these attacks weigh class counts"):
        leaf_noise(regressor)
    with pytest.raises(TypeError, match="masses of a target"):
        evidence(regressor, [[0, 0]])
    with pytest.raises(TypeError, match="one_run fits a private forest classifier"):
        one_run(regressor, n_canaries=2)
