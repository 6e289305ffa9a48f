"""Diff-LR: the published split is the functional mechanism's noise; the best split; the estimator."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import oracle
import pytest
from shared import PEOPLE, people
from sklearn.linear_model import LinearRegression

from dpforest import Schema, load
from dpforest.curator import Curator
from dpforest.design import Design, Weights
from dpforest.papers.diff_lr import DiffLRRegressor, published_sensitivities, shares
from dpforest.papers.functional_mechanism import FunctionalMechanismRegressor, published_sensitivity
from dpforest.privacy import RELATIONS, REPLACE_ONE


def asked(model, schema) -> list[tuple[Design, Weights]]:
    """The design and the weights of every query, of a table of one record."""
    queries = []

    class Looking(Curator):
        def sum_products(self, design, weights, scope=0, **options):
            queries.append((design, weights))
            return super().sum_products(design, weights, scope, **options)

    class Silent:
        def two_sided_geometric(self, rate, size):
            return np.zeros(size, dtype=np.int64)

    codes = np.zeros((schema.n_features, 1), dtype=np.uint8)
    model.replay(codes, np.zeros(1, dtype=np.uint8), schema, model.epsilon, Silent(), Looking)
    return queries


def rates(model, schema) -> np.ndarray:
    """The rate of the noise of every product, by pair of coordinates, added up over the queries."""
    total = [design.matrix(weights) / np.outer(design.units, design.units) for design, weights in asked(model, schema)]
    assert all(np.count_nonzero(part) for part in total)
    assert np.count_nonzero(sum(total)) == sum(map(np.count_nonzero, total))  # each product is asked for once
    return sum(total)


@pytest.mark.claim(
    "pub-diff-lr",
    true="open",
    here="no",
    read="second hand (by section 1.5 of the DiffPETs paper)",
    constant=r"every part gets noise of scale $2(d+1)^2/\eps$, the functional mechanism's",
    evidence="symbolic",
)
def test_the_proportional_split_is_the_functional_mechanism():
    for d in range(1, 30):
        parts = [Fraction(delta) for delta in published_sensitivities(d)]
        assert sum(parts) == published_sensitivity(d, logistic=False) == 2 * (d + 1) ** 2
        for epsilon in (Fraction(1, 10), Fraction(3)):
            each = [epsilon * share for share in shares(parts, [1, d, d * d], "proportional")]
            assert sum(each) == epsilon
            assert {delta / budget for delta, budget in zip(parts, each, strict=True)} == {2 * (d + 1) ** 2 / epsilon}


@pytest.mark.claim("pub-diff-lr")
@pytest.mark.parametrize("fit_intercept", ["auto", True])
@pytest.mark.parametrize("schema", [PEOPLE, Schema(numeric={f"x{i}": (0, 1) for i in range(11)}, target=(0, 1))])
def test_both_published_estimators_draw_the_same_noise(schema, fit_intercept):
    options = {"epsilon": 0.7, "variant": "published", "schema": schema, "fit_intercept": fit_intercept}
    ours = rates(DiffLRRegressor(**options), schema)
    theirs = rates(FunctionalMechanismRegressor(**options), schema)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.claim(
    "thm-diff-lr-split",
    verdict="proved",
    evidence="exhaustive",
    constant=r"shares proportional to $(m\Delta^2)^{1/3}$; summed variance "
    r"$2\bigl(\sum (m\Delta^2)^{1/3}\bigr)^3/\eps^2$",
)
def test_the_optimal_split_has_the_least_summed_variance():
    """Where the cube roots are whole numbers, against every split into sixtieths (two parts) and twelfths (three)."""
    cases = [((1, 2), (1, 2), 60), ((1, 3), (1, 3), 60), ((2, 1), (2, 8), 60), ((1, 2, 3), (1, 2, 3), 12)]
    for sensitivities, counts, steps in cases:
        roots = [round(math.cbrt(m * delta**2)) for m, delta in zip(counts, sensitivities, strict=True)]
        assert [root**3 for root in roots] == [m * delta**2 for m, delta in zip(counts, sensitivities, strict=True)]
        best = [Fraction(root, sum(roots)) for root in roots]
        assert shares(sensitivities, counts, "optimal") == pytest.approx([float(share) for share in best], rel=1e-12)
        least = oracle.noise_variance(sensitivities, counts, best)
        assert least == sum(roots) ** 3
        found = {
            tuple(s): oracle.noise_variance(sensitivities, counts, s) for s in oracle.splits_of_one(len(best), steps)
        }
        assert min(found.values()) == least == found[tuple(best)]
        assert sum(value == least for value in found.values()) == 1


@pytest.mark.claim("thm-diff-lr-split")
def test_where_every_coefficient_is_as_sensitive_the_proportional_split_is_the_best():
    for counts in ([1, 2], [3, 10, 4]):
        sensitivities = [2 * m for m in counts]
        np.testing.assert_allclose(
            shares(sensitivities, counts, "optimal"), [float(s) for s in shares(sensitivities, counts, "proportional")]
        )
    # never worse than proportional
    rng = np.random.default_rng(0)
    for _ in range(100):
        sensitivities, counts = rng.uniform(0.1, 9, 3).tolist(), rng.integers(1, 50, 3).tolist()
        best, usual = (
            oracle.noise_variance(sensitivities, counts, shares(sensitivities, counts, split))
            for split in ("optimal", "proportional")
        )
        assert best <= usual


@pytest.mark.claim("thm-diff-lr-split")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_parts_are_charged_exactly(relation, fit_intercept):
    """Two parts, each calibrated to its own sharp sensitivity; together they spend ε."""
    model = DiffLRRegressor(epsilon=0.6, schema=PEOPLE, relation=relation, fit_intercept=fit_intercept, random_state=0)
    X, y = people()
    model.fit(X, y)
    assert model.ledger_.leaks == []
    spent = [float(charge.costs[relation][0]) for charge in model.ledger_._charges]
    assert len(spent) == 2
    assert sum(spent) == pytest.approx(0.6, rel=1e-12)
    assert model.ledger_.total(relation) == pytest.approx(0.6, rel=1e-12)
    # the shares are the optimal ones for the paper's coordinates: 2 / sqrt(d) and 1 / d per product
    design = Design.of(PEOPLE, 255, "centred" if fit_intercept else "unit", fit_intercept)
    d = design.n_features + fit_intercept
    parts = [weights for _, weights in asked(model, PEOPLE)]
    counts = [np.count_nonzero(design.matrix(part)) for part in parts]
    units = [2 / math.sqrt(d) / parts[0].cross, 1 / d / parts[1].product]
    sensitivities = [design.loss(part, relation) * unit for part, unit in zip(parts, units, strict=True)]
    expected = [0.6 * share for share in shares(sensitivities, counts, "optimal")]
    assert spent == pytest.approx(expected, rel=1e-9)


@pytest.mark.claim("thm-diff-lr-split")
def test_one_record_moves_both_parts_at_once():
    """Under add-remove the sum of the two losses is attained, so composition gives nothing away."""
    schema = Schema(numeric={"x": (0, 1), "y": (0, 1)}, target=(0, 1))
    model = DiffLRRegressor(epsilon=0.6, schema=schema, n_bins=3)
    weights = rates(model, schema)
    design = Design.of(schema, 3, "centred", True)
    corner = np.array([1, *design.units[1:]])
    assert float((weights * np.abs(np.outer(corner, corner))).sum()) == pytest.approx(0.6, rel=1e-12)


@pytest.mark.claim("thm-diff-lr-split")
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_replaced_record_costs_at_most_epsilon(fit_intercept):
    """All pairs of records of a number and a choice: the changes of the products times the rates of their noise."""
    schema = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, target=(0, 1))
    model = DiffLRRegressor(epsilon=0.6, schema=schema, n_bins=3, relation=REPLACE_ONE, fit_intercept=fit_intercept)
    weights = rates(model, schema)
    design = Design.of(schema, 3, "centred" if fit_intercept else "unit", fit_intercept)
    records = [
        np.array([*[1] * fit_intercept, *design.columns[0][x], *design.columns[1][c], *design.answer[y]])
        for x in range(3)
        for c in range(3)
        for y in (0, 120, 240)
    ]
    products = [np.outer(record, record) for record in records]
    worst = max(float((weights * np.abs(one - other)).sum()) for one in products for other in products)
    assert 0.5 < worst <= 0.6 * (1 + 1e-12)


def test_without_noise_it_is_least_squares():
    X, y = people()
    flat = np.column_stack([X[:, 0].astype(float), X[:, 1].astype(float), X[:, 2] == "a", X[:, 2] == "b"])
    reference = LinearRegression().fit(flat, y).predict(flat)
    for options in ({}, {"relation": REPLACE_ONE}, {"variant": "published", "fit_intercept": True}):
        model = DiffLRRegressor(epsilon="non-private", schema=PEOPLE, **options).fit(X, y)
        assert np.abs(model.predict(X) - reference).max() < 0.15  # the grid's rounding
    for variant in ("proved", "published"):  # through zero
        model = DiffLRRegressor(epsilon="non-private", schema=PEOPLE, variant=variant, fit_intercept=False).fit(X, y)
        assert np.abs(model.predict(X) - reference).max() < 0.15  # three indicators add up to an intercept


@pytest.mark.parametrize("variant", ["proved", "published"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("fit_intercept", ["auto", True, False])
def test_a_model_comes_back_from_json(tmp_path, variant, relation, fit_intercept):
    X, y = people()
    options = {"schema": PEOPLE, "variant": variant, "relation": relation, "fit_intercept": fit_intercept}
    model = DiffLRRegressor(**options, random_state=3).fit(X, y)
    model.save(tmp_path / "model.json", seeded=True)
    back = load(tmp_path / "model.json")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    twin = DiffLRRegressor(**options, random_state=3).fit(X, y)
    assert back.to_dict(seeded=True) == model.to_dict(seeded=True) == twin.to_dict(seeded=True)
    assert model.ledger_.total(relation) <= 1 + 1e-9
    assert model.guarantee_.epsilon == 1.0


def test_degenerate_tables_give_an_answer():
    rows = np.array([[50, 5, "a"]] * 3, dtype=object)
    alone = Schema(categorical={"one": ["only"]}, target=(0, 10))
    for options in ({}, {"relation": REPLACE_ONE}, {"variant": "published"}, {"fit_intercept": False}):
        for epsilon in ("non-private", 1.0):
            model = DiffLRRegressor(epsilon=epsilon, schema=PEOPLE, random_state=0, **options).fit(rows, [4.0] * 3)
            assert np.isfinite(model.predict(rows)).all()
            single = np.array([["only"]] * 3, dtype=object)
            model = DiffLRRegressor(epsilon=epsilon, schema=alone, random_state=0, **options).fit(single, [4.0] * 3)
            assert np.isfinite(model.predict(single)).all()


def test_ridge_and_repair_are_passed_on():
    X, y = people()
    base = {"epsilon": 2.0, "schema": PEOPLE, "random_state": 0}
    models = [
        DiffLRRegressor(**base, repair=repair, ridge=ridge).fit(X, y).linear_.coefficients.tolist()
        for repair in ("shrink", "ridge", "spectral", "none")
        for ridge in (0.0, 5.0)
    ]
    assert models[6] == models[7]  # "none" has no use for a ridge
    assert models[0] == models[2] == models[4]  # without a ridge they only leave out what is not positive
    assert len({str(models[k]) for k in (0, 1, 3)}) == 3
