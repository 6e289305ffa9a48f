"""Exact audits of regressors, random cuts, bootstraps and linear models: known losses are found, and wrong ones too."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import oracle
import pytest
from scipy.stats import chisquare
from shared import some_traps

from dpforest import Schema, mechanisms
from dpforest.audit import exact_audit, greybox, path_audit
from dpforest.audit.exact import laws
from dpforest.audit.exact.laws import answers, law_of_shapes
from dpforest.audit.exact.noisy import Noisy, largest_law
from dpforest.audit.report.universes import binary_schema, learner
from dpforest.chance import NotEnumerableError, Replay, outcomes
from dpforest.curator import Curator
from dpforest.papers.diff_lr import DiffLRRegressor
from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
from dpforest.papers.diffprf import DiffPRFClassifier
from dpforest.papers.functional_mechanism import FunctionalMechanismRegressor
from dpforest.papers.random_trees import RandomTreesClassifier, RandomTreesRegressor
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE
from dpforest.schema import TARGET_LEVELS

relations = pytest.mark.parametrize("relation", RELATIONS)
CLASSES, TARGET = binary_schema(1), binary_schema(1, regression=True)
UNIT = {ADD_REMOVE: 1, REPLACE_ONE: 2}


def regressor(cls=RandomTreesRegressor, **options):
    return cls(**{"schema": TARGET, "n_estimators": 1, "max_depth": 1} | options)


# -- masses ------------------------------------------------------------------------------------------------------------


@relations
@pytest.mark.parametrize("targets", [(0, 240), (0, 120, 240), (100, 101)])
@pytest.mark.parametrize("depth", [0, 1])
def test_random_trees_for_regression_lose_what_they_claim(relation, targets, depth):
    """thm-masses: a record is worth one record, wherever its target lies; a replaced one two, if enough changes."""
    model = regressor(epsilon=0.7, max_depth=depth, relation=relation)
    audit = exact_audit(model, n_max=2, targets=targets)
    moved = 1.0 if relation == ADD_REMOVE or depth else (max(targets) - min(targets)) / TARGET_LEVELS
    assert audit.epsilon == pytest.approx(0.7 * moved, rel=1e-12)
    assert not audit.violated
    assert audit.n_datasets == math.comb(2 * len(targets) + 2, 2)
    assert all(record[-1] in targets for data in audit.pair for record in data)


def careless(monkeypatch, factor=1.0, noisy=mechanisms.two_sided_geometric):
    """Plant a curator whose masses get noise at ``factor`` times the rate that is due; it charges what is asked for."""

    def careless_noisy(self, query, scopes, epsilon):
        rate = np.broadcast_to(epsilon, len(scopes)) / UNIT[self._ledger.relation]
        self._ledger.charge(scopes, rate, 2 * rate, query.label, "two-sided geometric")
        return noisy(self._exact(query), factor * rate[:, None] / TARGET_LEVELS, self._chance)

    monkeypatch.setattr(Curator, "noisy", careless_noisy)


@pytest.mark.slow
@relations
@pytest.mark.parametrize("factor", [0.5, 1.0, 1.25, 2.0, TARGET_LEVELS])
def test_masses_at_a_wrong_rate_are_found_with_the_sharp_number(relation, factor, monkeypatch):
    careless(monkeypatch, factor)
    for model in (regressor(relation=relation), regressor(relation=relation, n_estimators=2, max_depth=0)):
        audit = exact_audit(model, n_max=2)
        assert audit.epsilon == pytest.approx(factor, rel=1e-12)
        assert audit.violated == (factor > 1)
        grey = greybox(model, some_traps(model, 3), runs=4, random_state=0)
        found = {finding.kind: finding for finding in grey.findings}
        assert bool(found) == (factor > 1)
        assert set(found) <= {"sensitivity", "loss", "composition"}
        if factor > 1:
            worst = max(finding.measured / finding.allowed for finding in found.values())
            assert worst == pytest.approx(factor, rel=1e-9)


def test_masses_with_the_noise_of_the_other_relation(monkeypatch):
    """The classical slip: noise for a record that comes, where one is replaced."""
    careless(monkeypatch, UNIT[REPLACE_ONE])
    assert exact_audit(regressor(relation=REPLACE_ONE), n_max=2).epsilon == pytest.approx(2, rel=1e-12)


@relations
def test_masses_without_noise_are_found(relation, monkeypatch):
    careless(monkeypatch, noisy=lambda masses, rate, chance: masses)
    assert exact_audit(regressor(relation=relation), n_max=1).epsilon == math.inf


@relations
@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_a_tree_with_one_candidate_loses_what_its_leaves_are_given(relation, share):
    """With a single candidate there is nothing to choose, and the rest of the budget buys nothing."""
    model = regressor(DiffPETsRegressor, stop="never", leaf_share=share, cuts_per_feature=1, relation=relation)
    assert exact_audit(model, n_max=2).epsilon == pytest.approx(share, rel=1e-9)


@relations
def test_published_leaves_divide_their_budget_between_sum_and_count(relation):
    """Without its unpaid reads the published leaf of DiffPETs loses what is claimed, half of it for either answer."""
    model = regressor(DiffPETsRegressor, variant="published", max_depth=0, relation=relation)
    # one record, and none, or one that takes its place: there is nothing that a bootstrap could leave out
    pair = ((0, 240),), ((0, 0),) if relation == REPLACE_ONE else ()
    p, q = (law_of_shapes(model, TARGET, data) for data in pair)
    ((shape, one),), ((same, other),) = p.items(), q.items()
    assert shape == same
    loss = (np.abs(one.counts - other.counts) * one.rates).sum()
    each = 0.5  # a level's halves: of the number, and of the sum, for a leaf selects nothing
    assert loss == pytest.approx(each if relation == REPLACE_ONE else 2 * each, rel=1e-12)


def test_targets_are_for_regressors():
    with pytest.raises(ValueError, match="targets are for regressors"):
        exact_audit(RandomTreesClassifier(schema=CLASSES, n_estimators=1, max_depth=1), n_max=1, targets=(0, 240))
    for bad in ((0,), (0, 241), (-1, 3), (0.5, 1), (7, 7)):
        with pytest.raises(ValueError, match="targets must be at least two different whole numbers, 0 to 240"):
            exact_audit(regressor(), n_max=1, targets=bad)
    assert answers(CLASSES) == [0, 1]
    assert answers(TARGET) == [0, 240]


# -- random cuts and bootstraps ----------------------------------------------------------------------------------------


@relations
@pytest.mark.parametrize("leaf", ["label", "counts"])
@pytest.mark.parametrize("size", [1, 2])
def test_random_cuts_are_replayed(leaf, size, relation):
    model = DiffPETsClassifier(
        schema=binary_schema(2),
        n_estimators=1,
        max_depth=1,
        max_features=size,
        cuts_per_feature=1,
        leaf=leaf,
        stop_margin=0.5,
        relation=relation,
    )
    law = law_of_shapes(model, model.schema, ((0, 0, 1), (1, 0, 0)))
    assert sum(shape.probability for shape in law.values()) == pytest.approx(1, rel=1e-12)
    audit = exact_audit(model, n_max=1)
    assert 0.1 < audit.epsilon <= 1 + 1e-9


@pytest.mark.parametrize("cls", [DiffPETsClassifier, DiffPETsRegressor])
@relations
def test_published_diffpets_loses_without_bound(cls, relation):
    schema = CLASSES if cls is DiffPETsClassifier else TARGET
    model = cls(schema=schema, n_estimators=1, max_depth=1, variant="published", relation=relation)
    audit = exact_audit(model, n_max=2)
    assert audit.epsilon == math.inf
    assert audit.probabilities[1] == 0 < audit.probabilities[0]


SAMPLED = [
    ("diffpets", {"variant": "published"}, ((0, 0), (1, 1))),
    ("diffpets", {"variant": "published", "n_estimators": 2}, ((0, 0), (1, 1))),
    ("diffpets", {"leaf": "label", "stop_margin": 0.5, "max_features": 1}, ((0, 0), (1, 1), (1, 1))),
    ("diffprf", {"variant": "published"}, ((0, 0), (0, 1), (1, 1))),
    ("diffprf", {"stop": "count", "vote": "majority", "epsilon": 20.0}, ((0, 0), (0, 1), (1, 1), (1, 1), (1, 1))),
    ("diffprfs", {"variant": "published", "n_bins": 3}, ((0, 0), (2, 1))),
    ("diffprfs", {"vote": "majority", "stop_margin": 0.5, "n_bins": 3}, ((0, 0), (1, 0), (2, 1))),
]


@pytest.mark.slow
@relations
@pytest.mark.parametrize(("name", "options", "data"), SAMPLED, ids=str)
def test_the_replayed_law_is_that_of_seeded_fits(name, options, data, relation):
    """Bootstraps, random candidates, counts that are compared, votes by the largest count.  The seed is fixed."""
    subject = learner(name, features=1, depth=1, relation=relation, **options)
    n = 20_000
    shapes = law_of_shapes(subject.estimator, subject.estimator.schema, data, subject.target.sample.view)
    law = {str(output): shape.probability for output, shape in shapes.items()}
    assert sum(law.values()) == pytest.approx(1, rel=1e-9)
    drawn = Counter(map(str, subject.target.sample(data, n, np.random.default_rng(11))))
    assert drawn.keys() <= law.keys()
    expected = np.array(list(law.values())) * n
    seen = np.array([drawn[output] for output in law])
    often = expected > 5
    cells = [np.append(counts[often], counts[~often].sum()) for counts in (seen, expected)]
    cells = [counts[cells[1] > 1e-9] for counts in cells]
    assert chisquare(cells[0], cells[1]).pvalue > 1e-6


@pytest.mark.slow
def test_too_many_branches_are_refused_by_size(monkeypatch):
    monkeypatch.setattr(laws, "_BRANCHES", 200)
    model = DiffPETsClassifier(schema=CLASSES, n_estimators=1, max_depth=1, variant="published")
    with pytest.raises(ValueError, match="a data set of 4 records has more than 200 branches"):
        law_of_shapes(model, CLASSES, ((0, 0), (0, 1), (1, 0), (1, 1)))


def test_poisson_numbers_cannot_be_replayed():
    model = DiffPETsClassifier(schema=CLASSES, n_estimators=1, max_depth=1, sampling="poisson")
    with pytest.raises(NotEnumerableError, match="infinitely many values"):
        exact_audit(model, n_max=1)
    subject = learner("diffpets", sampling="poisson", features=1, depth=1)
    assert subject.layers == ("greybox", "statistical")
    assert "Poisson" in subject.refusal("exact")


@relations
def test_paths_and_replay_agree_on_diffprf(relation):
    model = DiffPRFClassifier(
        schema=CLASSES, n_estimators=1, max_depth=1, sampling="assignment", stop_margin=0.5, relation=relation
    )
    assert path_audit(model, n_max=2).epsilon == pytest.approx(exact_audit(model, n_max=2).epsilon, rel=1e-9)


def test_what_no_path_knows_is_refused():
    shared = DiffPRFClassifier(schema=CLASSES, n_estimators=1, max_depth=1)
    with pytest.raises(ValueError, match="the trees of this learner read the same records"):
        path_audit(shared, n_max=2)
    with pytest.raises(ValueError, match="asks for more than features, labels and class counts"):
        path_audit(shared.set_params(sampling="assignment", stop="count"), n_max=2)
    with pytest.raises(ValueError, match="path by path is for classifiers"):
        path_audit(regressor(), n_max=2)


# -- noisy answers that are not released -------------------------------------------------------------------------------


def noisy(counts, rates, kept):
    return Noisy(np.array(counts), np.array(rates), Replay(), lambda *what: kept.append(what))


@pytest.mark.parametrize(("alpha", "other"), [(Fraction(1, 2), Fraction(1, 2)), (Fraction(2, 3), Fraction(1, 4))])
def test_the_largest_of_noisy_counts_in_fractions(alpha, other):
    counts, alphas, window = [2, 0, 3], [alpha, other, alpha], np.arange(-50, 54)
    each = [
        np.array([float(oracle.two_sided_geometric(int(x) - c, a)) for x in window])
        for c, a in zip(counts, alphas, strict=True)
    ]
    places = np.stack(np.meshgrid(window, window, window, indexing="ij")).argmax(axis=0)
    chances = np.einsum("i,j,k->ijk", *each)
    found = largest_law(np.array(counts), np.array([-math.log(a) for a in alphas]))
    np.testing.assert_allclose(found, [chances[places == at].sum() for at in range(3)], rtol=1e-7)


def test_the_largest_of_two_by_hand():
    """Equal counts at rate ln 2: a tie has probability 5/27, and goes to the first."""
    tie = sum(Fraction(1, 3) ** 2 * Fraction(1, 4) ** abs(k) for k in range(-60, 61))
    law = largest_law(np.array([1, 1]), np.full(2, math.log(2)))
    assert law[0] == pytest.approx(float((1 + tie) / 2), rel=1e-12)
    np.testing.assert_array_equal(largest_law(np.array([1, 3, 3]), np.full(3, np.inf)), [0, 1, 0])


@pytest.mark.parametrize("threshold", [-2, -0.5, 0, 1, 1.5, 4])
@pytest.mark.parametrize("said", ["ge", "gt", "le", "lt"])
def test_a_comparison_has_two_outcomes(threshold, said):
    alpha, count = Fraction(1, 3), 1
    compare = {"ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less}[said]
    right = sum(oracle.two_sided_geometric(k, alpha) for k in range(-40, 41) if compare(count + k, threshold))

    def program(chance):
        answer = Noisy(np.array([count]), np.array([-math.log(alpha)]), chance, None)
        return bool(compare(answer, threshold)[0])

    law = {output: probability for output, probability in outcomes(program)}
    assert law[True] == pytest.approx(float(right), rel=1e-9)
    assert sum(law.values()) == pytest.approx(1, rel=1e-12)

    def turned(chance):
        answer = Noisy(np.array([count]), np.array([-math.log(alpha)]), chance, None)
        turn = {"ge": np.less_equal, "gt": np.less, "le": np.greater_equal, "lt": np.greater}[said]
        return bool(turn(np.array([threshold]), answer)[0])

    assert {output: probability for output, probability in outcomes(turned)} == law


def test_what_is_used_as_a_number_is_kept_once():
    kept: list = []
    answer = noisy([[1, 2]], [[0.5, 0.5]], kept)
    assert answer.shape == (1, 2)
    assert kept == []  # nobody looked
    assert (3 * answer + 1).tolist() == [[1, 1]]
    assert np.asarray(answer).sum() == answer.sum() == 0
    assert len(kept) == 1
    assert answer[0].tolist() == [0, 0]
    assert len(answer) == 1


def test_an_answer_has_one_use():
    for first, then in (("__array__", "argmax"), ("argmax", "__array__"), ("argmax", "argmax")):
        answer = noisy([[1, 2]], [[0.5, 0.5]], [])
        use = {"__array__": lambda a=answer: np.asarray(a), "argmax": lambda a=answer: a.argmax(axis=1)}
        use[first]()
        with pytest.raises(NotEnumerableError, match="a noisy answer is used for"):
            use[then]()


# -- linear models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [FunctionalMechanismRegressor, DiffLRRegressor])
def test_linear_models_lose_what_they_claim(cls):
    audit = exact_audit(cls(schema=TARGET, epsilon=0.8), n_max=1)
    assert audit.epsilon == pytest.approx(0.8, rel=1e-9)  # sharp under add-remove
    assert "made of noisy sums" in audit.shown
    replaced = exact_audit(cls(schema=TARGET, epsilon=0.8, relation=REPLACE_ONE), n_max=1)
    assert 0 < replaced.epsilon <= 0.8 * (1 + 1e-9)


@pytest.mark.parametrize("cls", [FunctionalMechanismRegressor, DiffLRRegressor])
@relations
def test_published_linear_models_are_loose(cls, relation):
    audit = exact_audit(cls(schema=TARGET, variant="published", relation=relation), n_max=1)
    assert 0 < audit.epsilon < 0.5


@pytest.mark.slow
@relations
@pytest.mark.parametrize("factor", [0.5, 1.5, 3.0])
def test_products_at_a_wrong_rate_are_found(relation, factor, monkeypatch):
    model = FunctionalMechanismRegressor(schema=TARGET, relation=relation)
    right = exact_audit(model, n_max=1).epsilon
    own = mechanisms.two_sided_geometric
    monkeypatch.setattr(mechanisms, "two_sided_geometric", lambda c, rate, chance: own(c, factor * rate, chance))
    assert exact_audit(model, n_max=1).epsilon == pytest.approx(factor * right, rel=1e-9)
    kinds = set(greybox(model, some_traps(model, 3), runs=2, random_state=0).kinds)
    assert ("loss" in kinds) == (factor > 1)


def test_noise_that_is_drawn_again_is_refused():
    model = FunctionalMechanismRegressor(schema=TARGET, variant="published", repair="redraw")
    with pytest.raises(NotEnumerableError, match="drawn again until a test is passed"):
        exact_audit(model, n_max=1)
    subject = learner("functional-mechanism", depth=None, features=1, variant="published", repair="redraw")
    assert subject.layers == ("statistical",)


def test_sums_are_sampled_at_the_rates_that_ship():
    subject = learner("functional-mechanism", depth=None, features=1)
    data = ((0, 0), (1, 240))
    (shape,) = law_of_shapes(subject.estimator, subject.estimator.schema, data, lambda model: 0).values()
    drawn = subject.target.sample(data, 50_000, np.random.default_rng(0))
    assert drawn.shape == (50_000, len(shape.rates))
    alpha = np.exp(-shape.rates)
    spread = np.sqrt(2 * alpha) / (1 - alpha)  # of two-sided geometric noise
    np.testing.assert_allclose(drawn.mean(axis=0), shape.counts[0], atol=5 * spread.max() / math.sqrt(50_000))
    np.testing.assert_allclose(drawn.std(axis=0), spread, rtol=0.05)


def test_a_schema_with_many_columns_is_a_universe_too():
    schema = Schema(numeric={"x": (0, 1)}, categorical={"c": ["a", "b"]}, target=(0, 10))
    audit = exact_audit(regressor(schema=schema, n_bins=2), n_max=1)
    assert audit.epsilon == pytest.approx(1, rel=1e-12)
