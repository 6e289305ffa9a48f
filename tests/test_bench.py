"""The bench runs and reports; no time is asserted."""

import json

import numpy as np
import pytest

from dpforest import bench
from dpforest.schema import TARGET_LEVELS


@pytest.fixture(scope="module")
def answer():
    return bench.measure(3_000, rounds=1, regression_rows=2_000, adult=False, processes=False)


def test_everything_is_measured_and_fits_in_a_json_file(answer):
    tables = json.loads(json.dumps(answer))["tables"]
    assert tables.keys() == {"synthetic", bench.NUMERIC}
    estimators = {bench.RANDOM, bench.EDPRF, bench.PETS, bench.EXTRA}, {bench.RANDOM_R, bench.PETS_R, bench.EXTRA_R}
    greedy = {bench.GREEDY, bench.CUTS}, {bench.GREEDY}
    predicting = {bench.GREEDY}, set()
    for table, names, forests, ours in zip(tables.values(), estimators, greedy, predicting, strict=True):
        assert table["fit"].keys() == {bench.PASS, bench.ENCODE} | forests | names
        assert table["predict"].keys() == ours | names
        steps = *table["fit"].values(), *table["predict"].values()
        assert all(seconds > 0 for step in steps for seconds in step["wall"])
    assert [table["rows"] for table in tables.values()] == [3000, 2000]
    assert sorted(answer["growth"]) == [300, 900, 3000]


def test_the_report_names_every_step_and_the_units_are_one(answer):
    text = bench.report(answer)
    for name, table in answer["tables"].items():
        part = text.split(f"{name}, {table['rows']:,} x 14: fit\n")[1].split("\n\n")[0]
        lines = {
            step: next(line for line in part.splitlines() if line.startswith(f"  {step}  ")) for step in table["fit"]
        }
        assert " 1.00 " in lines[bench.PASS]
        assert lines[bench.baseline(table["fit"])].split()[-2:] == ["1.0", "1.0"]


def test_what_takes_very_long_runs_once(monkeypatch):
    monkeypatch.setattr(bench, "LONG", 0.0)
    times, results = bench._interleaved({"step": lambda: 7}, rounds=3)
    assert len(times["step"]["wall"]) == 5  # of the first round
    assert results == {"step": 7}


def test_the_table_is_what_it_says():
    table = bench.synthetic(20_000)
    assert table.codes.shape == (14, 20_000)
    assert [column.max() + 1 for column in table.codes[:8]] == list(bench.LEVELS)
    assert np.mean(table.y) == pytest.approx(0.32, abs=0.02)
    np.testing.assert_array_equal(table.X, bench.synthetic(20_000).X)


def test_the_numeric_target_is_what_the_labels_are_a_threshold_of():
    labels, numbers = bench.synthetic(20_000), bench.synthetic(20_000, regression=True)
    np.testing.assert_array_equal(labels.X, numbers.X)
    np.testing.assert_array_equal(labels.y == 1, numbers.y > 1.35)
    assert numbers.schema.target == bench.TARGET
    assert np.isin(numbers.y, bench.TARGET).mean() < 0.01  # clipped


def test_the_greedy_forest_sees_every_record_in_every_tree():
    table = bench.synthetic(20_000)
    forest = bench.greedy_forest(table, epsilon=1e6)
    assert (forest.n_trees, forest.depth) == (bench.TREES, bench.DEPTH)
    leaves = forest.values[forest.feature < 0].reshape(bench.TREES, -1, 2)
    np.testing.assert_allclose(leaves.sum(axis=(1, 2)), 20_000, atol=20)  # almost no noise at this epsilon


def test_the_greedy_regression_forest_sees_every_record_in_every_tree():
    table = bench.synthetic(20_000, regression=True)
    forest = bench.greedy_forest(table, epsilon=1e6)
    masses = forest.values[forest.feature < 0].reshape(bench.TREES, -1, 2).sum(axis=1)
    total = table.labels.sum(dtype=int)
    expected = [total, TARGET_LEVELS * 20_000 - total]
    np.testing.assert_allclose(masses, np.tile(expected, (bench.TREES, 1)), atol=20 * TARGET_LEVELS)


@pytest.mark.parametrize("regression", [False, True])
def test_a_table_of_any_size_is_written_row_group_by_row_group(tmp_path, regression):
    pq = pytest.importorskip("pyarrow.parquet")
    paths = bench.write_parquet(tmp_path, 25_000, files=2, group=10_000, regression=regression)
    assert [pq.ParquetFile(path).metadata.num_row_groups for path in paths] == [2, 1]
    frame = pq.read_table(paths).to_pandas()
    schema = bench.synthetic_schema(regression=regression)
    assert frame.columns.tolist() == [*schema.columns, "y"]
    encoded, like = schema.encode(frame[schema.columns], bench.BINS), bench.synthetic(25_000, regression=regression)
    assert not encoded.clipped
    np.testing.assert_allclose(encoded.codes.mean(axis=1), like.codes.mean(axis=1), rtol=0.03)
    assert frame["y"].mean() == pytest.approx(np.mean(like.y), rel=0.03)
    assert frame["uniform"].nunique() > 24_000  # each group is drawn anew
    (one,) = bench.write_parquet(tmp_path / "one", 25_000, group=10_000, regression=regression)
    assert pq.read_table(one).to_pandas().equals(frame)
