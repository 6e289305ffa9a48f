"""The bench runs and reports; no time is asserted."""

import json

import numpy as np
import pytest

from dpforest import bench


@pytest.fixture(scope="module")
def answer():
    return bench.measure(3_000, rounds=1, adult=False, processes=False)


def test_everything_is_measured_and_fits_in_a_json_file(answer):
    table = json.loads(json.dumps(answer))["tables"]["synthetic"]
    assert {bench.PASS, bench.GREEDY, bench.CUTS, bench.RANDOM, bench.EDPRF, bench.EXTRA} <= table["fit"].keys()
    assert table["fit"].keys() > table["predict"].keys() >= {bench.GREEDY, bench.EXTRA}
    assert all(seconds > 0 for step in (*table["fit"].values(), *table["predict"].values()) for seconds in step["wall"])
    assert sorted(answer["growth"]) == [300, 900, 3000]


def test_the_report_names_every_step_and_the_unit_is_one(answer):
    text = bench.report(answer)
    for step in answer["tables"]["synthetic"]["fit"]:
        assert step in text
    (unit,) = (line for line in text.split("predict")[0].splitlines() if line.strip().startswith(bench.PASS))
    assert " 1.00 " in unit


def test_the_table_is_what_it_says():
    table = bench.synthetic(20_000)
    assert table.codes.shape == (14, 20_000)
    assert [column.max() + 1 for column in table.codes[:8]] == list(bench.LEVELS)
    assert np.mean(table.y) == pytest.approx(0.32, abs=0.02)
    np.testing.assert_array_equal(table.X, bench.synthetic(20_000).X)


def test_the_greedy_forest_sees_every_record_in_every_tree():
    table = bench.synthetic(20_000)
    forest = bench.greedy_forest(table, epsilon=1e6)
    assert (forest.n_trees, forest.depth) == (bench.TREES, bench.DEPTH)
    leaves = forest.values[forest.feature < 0].reshape(bench.TREES, -1, 2)
    np.testing.assert_allclose(leaves.sum(axis=(1, 2)), 20_000, atol=20)  # almost no noise at this epsilon
