"""Laws in fractions against the oracle's, and what noise in the leaves adds."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import oracle
import pytest
from replayed import audit_up_to_renaming

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema, mechanisms
from dpforest.audit import exact_audit, law_of, path_audit
from dpforest.audit.exact.laws import check_counts_unused, law_of_shapes
from dpforest.audit.exact.noisy import geometric_log_ratio, mixture_log_ratio
from dpforest.chance import NotEnumerableError
from dpforest.curator import Curator
from dpforest.curator.queries import ClassCounts
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.growth import Growth
from dpforest.privacy import RELATIONS

relations = pytest.mark.parametrize("relation", RELATIONS)
ONE = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
TWO = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
SQUARE = list(product((0, 1), repeat=3))


# -- fractions -------------------------------------------------------------------------------------------------------


def majority_tree(relation, selection, base, **options):
    """Rates are log(base) at the root and in the leaves: majority counts have R = 1 and 2."""
    unit = {"add-remove": 2, "replace-one": 4}[relation]
    return EDPRFClassifier(
        epsilon=unit * math.log(base),
        schema=TWO,
        n_estimators=1,
        max_depth=1,
        criterion="majority",
        budget="uniform",
        leaf="label",
        stop="never",
        relation=relation,
        selection=selection,
        **options,
    )


@pytest.mark.slow
@relations
@pytest.mark.parametrize("base", [2, Fraction(3, 2)])
@pytest.mark.parametrize(
    ("selection", "mechanism"),
    [("permute-and-flip", oracle.permute_and_flip), ("exponential", oracle.exponential)],
)
def test_the_ratio_is_the_oracles_fraction(relation, base, selection, mechanism):
    model = majority_tree(relation, selection, base)
    audit = audit_up_to_renaming(model, SQUARE, 2, oracle.renamings(2), base=base)
    tree = oracle.two_level_tree(mechanism, base, oracle.label_leaf(mechanism, base))
    assert audit.ratio == oracle.worst_case(tree, SQUARE, 2, relation)  # as fractions
    assert isinstance(audit.ratio, Fraction)
    assert audit.epsilon == pytest.approx(math.log(audit.ratio), rel=1e-12)
    assert sum(law_of(model, TWO, SQUARE[:2], base=base).values()) == 1


def test_without_a_base_there_is_no_fraction():
    assert exact_audit(majority_tree("add-remove", "exponential", 2), n_max=1).ratio is None


def test_an_infinite_ratio_is_no_fraction():
    audit = exact_audit(
        EDPRFClassifier(epsilon=4 * math.log(2), schema=ONE, n_estimators=1, max_depth=1, variant="published"), n_max=2
    )
    assert (audit.epsilon, audit.ratio) == (math.inf, None)


@pytest.mark.parametrize("base", [2, 3])
def test_weights_that_are_no_powers_are_refused(base):
    model = majority_tree("add-remove", "permute-and-flip", 2).set_params(epsilon=1.0)
    with pytest.raises(ValueError, match="not always a whole power"):
        exact_audit(model, n_max=2, base=base)


@pytest.mark.parametrize("base", [1, 0, Fraction(1, 2)])
def test_a_base_must_exceed_one(base):
    with pytest.raises(ValueError, match="base must be a fraction above 1"):
        exact_audit(majority_tree("add-remove", "exponential", 2), n_max=1, base=base)


def test_coins_are_fractions_too():
    model = majority_tree("add-remove", "exponential", 2).set_params(n_estimators=2)
    law = law_of(model, TWO, ((0, 0, 0),), base=2)
    assert sum(law.values()) == 1
    assert all(isinstance(p, Fraction) for p in law.values())


# -- noisy counts ----------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "lem-geometric-leaves",
    verdict="proved",
    constant="rate times shift; the heavier tail shows without bound",
    evidence="exhaustive",
)
@pytest.mark.parametrize("shift", [0, 1, 2, 5])
def test_the_largest_ratio_of_two_geometric_laws(shift):
    """Over all integers, in fractions: beyond both centres the ratio is constant, so a window of them is enough."""
    for alpha, beta in product([Fraction(1, 2), Fraction(1, 4), Fraction(2, 3)], repeat=2):
        rate, other = -math.log(alpha), -math.log(beta)
        found = float(geometric_log_ratio(shift, rate, other))
        ratios = [
            oracle.two_sided_geometric(k, alpha) / oracle.two_sided_geometric(k - shift, beta) for k in range(-40, 41)
        ]
        if rate < other:
            assert found == math.inf
            assert max(ratios) == max(ratios[0], ratios[-1])  # grows into the tail
            assert ratios[0] / ratios[1] == alpha / beta > 1
            continue
        assert found == pytest.approx(math.log(max(ratios)), rel=1e-12, abs=1e-12)
        if rate == other:
            assert max(ratios) == alpha**-shift


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_counts_without_noise_have_an_infinite_rate(shift):
    alpha = Fraction(1, 3)
    rate = -math.log(alpha)
    assert float(geometric_log_ratio(shift, math.inf, math.inf)) == (math.inf if shift else 0)
    assert float(geometric_log_ratio(shift, rate, math.inf)) == math.inf
    only = float(oracle.two_sided_geometric(shift, alpha))  # all that the first side can say, seen from the second
    assert float(geometric_log_ratio(shift, math.inf, rate)) == pytest.approx(-math.log(only), rel=1e-12)


@relations
@pytest.mark.parametrize("n_estimators", [1, 2])
@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_random_trees_lose_what_they_claim(relation, n_estimators, split):
    model = RandomTreesClassifier(
        epsilon=0.7, schema=TWO, n_estimators=n_estimators, max_depth=1, split=split, relation=relation
    )
    audit = exact_audit(model, n_max=2)
    assert audit.epsilon == pytest.approx(0.7, rel=1e-12)  # thm-random-trees: exactly, from the first record on
    assert not audit.violated
    assert "says [0, 0]" in audit.shown  # what the noise covers is not in the words


def test_the_height_of_published_random_trees_leaks():
    """With eight features, another record may mean another level; two data sets are enough to see it."""
    schema = Schema(categorical={f"x{i}": [0, 1] for i in range(4)}, classes=[0, 1])
    model = RandomTreesClassifier(schema=schema, n_estimators=1, variant="published")
    laws = [law_of_shapes(model, schema, ((0, 0, 0, 0, 0),) * n) for n in (7, 8)]
    assert laws[0].keys().isdisjoint(laws[1].keys())


def one_split(relation) -> EDPRFClassifier:
    """A tree of one split with counts in its leaves, each of the two with half of the budget."""
    return EDPRFClassifier(
        schema=TWO, n_estimators=1, max_depth=1, stop="never", leaf="counts", budget="uniform", relation=relation
    )


@cache
def loss_of_the_split(relation) -> float:
    """The loss of the tree's shape alone, which no noise of counts changes."""
    return exact_audit(
        one_split(relation),
        n_max=3,
        law=lambda e, s, d, v: {k: x.probability for k, x in law_of_shapes(e, s, d).items()},
    ).epsilon


@pytest.mark.slow
@relations
def test_count_leaves_add_their_share(relation):
    """The audit with noise exceeds that of the shape alone by the leaf's own budget."""
    audit = exact_audit(one_split(relation), n_max=3)
    assert audit.epsilon == pytest.approx(loss_of_the_split(relation) + 0.5, rel=1e-9)
    assert audit.epsilon <= 1


def careless(monkeypatch, noisy):
    """Plant a curator whose counts are made noisy by ``noisy(counts, epsilon, chance)``; its charges are as ever."""

    def careless_noisy(self, query, scopes, epsilon):
        counts = noisy(self._exact(query), epsilon, self._chance)
        self._ledger.charge(scopes, epsilon, epsilon, query.label, "two-sided geometric")
        return counts

    monkeypatch.setattr(Curator, "noisy", careless_noisy)


@pytest.mark.slow
@relations
@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5, 3.0])
def test_a_curator_at_a_wrong_rate_is_found_out(relation, factor, monkeypatch):
    """The loss is what the noise was drawn at, and neither what was asked for nor what was charged."""
    unit = {"add-remove": 1, "replace-one": 2}[relation]
    model, split = one_split(relation), loss_of_the_split(relation)
    careless(
        monkeypatch,
        lambda counts, epsilon, chance: mechanisms.two_sided_geometric(counts, factor * epsilon / unit, chance),
    )
    sharp = split + factor * 0.5
    found = audit_up_to_renaming(model, SQUARE, 3, oracle.renamings(2))
    assert found.epsilon == pytest.approx(sharp, rel=1e-9)
    assert path_audit(model, n_max=3).epsilon == pytest.approx(sharp, rel=1e-9)
    alone = exact_audit(RandomTreesClassifier(schema=TWO, n_estimators=1, max_depth=1, relation=relation), n_max=2)
    assert alone.epsilon == pytest.approx(factor, rel=1e-12)
    assert alone.violated == (factor > 1)


def test_a_curator_that_forgets_the_second_count_of_a_replaced_record(monkeypatch):
    """The classical slip: a histogram has sensitivity 2 under replace-one, and noise for 1 loses twice the claim."""
    model = RandomTreesClassifier(schema=TWO, n_estimators=1, max_depth=1, relation="replace-one")
    assert not exact_audit(model, n_max=2).violated
    careless(monkeypatch, mechanisms.two_sided_geometric)
    audit = exact_audit(model, n_max=2)
    assert audit.epsilon == pytest.approx(2, rel=1e-12)
    assert audit.violated


@relations
def test_counts_without_noise_are_found_out(relation, monkeypatch):
    """No noise at all; none where a leaf is alone, none for one class, none in a leaf whose records share a class."""
    model = EDPRFClassifier(schema=ONE, n_estimators=1, max_depth=1, leaf="counts", stop_margin=0.5, relation=relation)

    def never(counts, epsilon, chance):
        return counts

    def only_in_company(counts, epsilon, chance):
        return mechanisms.two_sided_geometric(counts, epsilon, chance) if len(counts) > 1 else counts

    def only_the_first_class(counts, epsilon, chance):
        return mechanisms.two_sided_geometric(counts, np.where([True, False], epsilon, np.inf), chance)

    def only_the_mixed(counts, epsilon, chance):
        mixed = (counts > 0).all(axis=1, keepdims=True)
        return mechanisms.two_sided_geometric(counts, np.where(mixed, epsilon, np.inf), chance)

    for slip in (never, only_in_company, only_the_first_class, only_the_mixed):
        careless(monkeypatch, slip)
        audits = [exact_audit(model, n_max=2)]
        if slip is not only_in_company:  # path by path the leaves of all data sets are in company
            audits.append(path_audit(model, n_max=2))
        for audit in audits:
            assert audit.epsilon == math.inf
            assert audit.violated


def test_noise_on_noise_is_refused(monkeypatch):
    def twice(counts, epsilon, chance):
        return mechanisms.two_sided_geometric(mechanisms.two_sided_geometric(counts, epsilon, chance), epsilon, chance)

    careless(monkeypatch, twice)
    with pytest.raises(NotEnumerableError, match="the noise of 2 draws on the same counts"):
        exact_audit(RandomTreesClassifier(schema=ONE, n_estimators=1, max_depth=1), n_max=1)
    with pytest.raises(NotEnumerableError, match="the noise of 2 draws on the same counts"):
        path_audit(EDPRFClassifier(schema=ONE, n_estimators=1, max_depth=1, leaf="counts"), n_max=1)


@pytest.mark.slow
def test_mixtures_of_noisy_counts_are_extreme_where_a_count_is():
    """Against every output of a window wider than all counts, in fractions."""
    rng = np.random.default_rng(4)
    alphas = [Fraction(1, 2), Fraction(2, 3)]
    window = list(product(range(-6, 12), repeat=2))
    for _ in range(20):
        sides = []
        for m in rng.integers(1, 4, size=2):
            weights = [Fraction(int(w), 10) for w in rng.integers(1, 9, size=m)]
            sides.append((rng.integers(0, 5, size=(m, 2)), weights))

        def law(output, side):
            noise = [
                [oracle.two_sided_geometric(x - int(c), a) for x, c, a in zip(output, counts, alphas, strict=True)]
                for counts in side[0]
            ]
            return sum(weight * math.prod(cells) for weight, cells in zip(side[1], noise, strict=True))

        expected = max(law(output, sides[0]) / law(output, sides[1]) for output in window)
        (one, p), (other, q) = ((counts, np.array(weights, dtype=float)) for counts, weights in sides)
        found = mixture_log_ratio(one, p, other, q, np.array([-math.log(a) for a in alphas]))
        assert found == pytest.approx(math.log(expected), rel=1e-12, abs=1e-12)


def test_mixtures_of_counts_without_noise():
    one, other = np.array([[0, 1], [2, 1]]), np.array([[0, 1], [1, 1]])
    half = np.array([0.5, 0.5])
    assert mixture_log_ratio(one, half, other, half, np.array([np.inf, 1.0])) == math.inf
    assert mixture_log_ratio(one[:1], half[:1], other, half, np.array([np.inf, 1.0])) == 0.0
    far = np.arange(40)[:, None] * np.ones(6, dtype=int)
    with pytest.raises(ValueError, match="comparisons: fewer records"):
        mixture_log_ratio(far, np.ones(40) / 40, far + 1, np.ones(40) / 40, np.ones(6))


@relations
def test_hidden_coins_lose_no_more_than_one_tree(relation):
    """thm-assignment: which tree a record went to is not released, and the trees together lose what one loses."""
    trees = [
        EDPRFClassifier(schema=ONE, n_estimators=n, max_depth=1, leaf="counts", stop_margin=0.5, relation=relation)
        for n in (1, 2)
    ]
    alone, both = (exact_audit(model, n_max=2) for model in trees)
    assert 0.2 < both.epsilon <= alone.epsilon + 1e-12 <= 1 + 1e-9


def test_a_view_of_noisy_counts_is_refused():
    model = EDPRFClassifier(schema=ONE, n_estimators=1, max_depth=1, leaf="counts")
    with pytest.raises(NotEnumerableError, match="the whole forest is seen"):
        exact_audit(model, n_max=1, view=lambda forest: forest.n_nodes)
    with pytest.raises(NotEnumerableError):
        law_of(model, ONE, ((0, 0),))


class Peeker(PrivateForestClassifier):
    """Decides by a noisy count whether to split: private, but no case for the lemma."""

    def __init__(self, epsilon=1.0, schema=ONE, relation="add-remove"):
        self.epsilon, self.schema, self.relation = epsilon, schema, relation
        self.variant, self.n_bins, self.n_jobs, self.source, self.random_state = "proved", 2, None, "seeded", None

    def _learn(self, run):
        growth = Growth(1, run.schema.n_features, run.schema.n_classes, run.ledger, "sequential")
        top = growth.frontier
        counts = run.curator.noisy(ClassCounts(growth, top.nodes), top.scopes, run.epsilon / 2)
        if counts.sum() > 2:
            growth.add_children(top, [0], [2])
        leaves = growth.frontier
        growth.set_leaf_values(
            leaves, run.curator.noisy(ClassCounts(growth, leaves.nodes), leaves.scopes, run.epsilon / 2)
        )
        return growth.release()


def test_noisy_counts_that_steer_are_refused():
    with pytest.raises(NotEnumerableError, match="for more than what it releases"):
        check_counts_unused(Peeker(), ONE, ((0, 0),))
    with pytest.raises(NotEnumerableError):
        exact_audit(Peeker(), n_max=1)


def test_counts_beneath_the_noise_are_the_records():
    model = EDPRFClassifier(schema=ONE, n_estimators=1, max_depth=1, stop="never", leaf="counts", budget="uniform")
    [shape] = law_of_shapes(model, ONE, ((0, 0), (0, 0), (1, 1))).values()
    assert shape.counts.tolist() == [[2, 0, 0, 1]]
    assert shape.probability == 1
    np.testing.assert_allclose(shape.rates, 0.5)
