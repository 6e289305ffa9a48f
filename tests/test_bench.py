"""The bench runs and reports; no time is asserted."""

import json
import math

import numpy as np
import pytest

from benchmarks import passes, scale, speed
from dpforest.schema import TARGET_LEVELS


@pytest.fixture(scope="module")
def answer():
    return speed.measure(3_000, rounds=1, regression_rows=2_000, adult=False, processes=False)


@pytest.mark.slow
def test_everything_is_measured_and_fits_in_a_json_file(answer):
    tables = json.loads(json.dumps(answer))["tables"]
    assert tables.keys() == {"synthetic", speed.NUMERIC}
    estimators = {speed.RANDOM, speed.EDPRF, speed.PETS, speed.EXTRA}, {speed.RANDOM_R, speed.PETS_R, speed.EXTRA_R}
    greedy = {speed.GREEDY, speed.CUTS}, {speed.GREEDY}
    predicting = {speed.GREEDY}, set()
    for table, names, forests, ours in zip(tables.values(), estimators, greedy, predicting, strict=True):
        assert table["fit"].keys() == {speed.PASS, speed.ENCODE} | forests | names
        assert table["predict"].keys() == ours | names
        steps = *table["fit"].values(), *table["predict"].values()
        assert all(seconds > 0 for step in steps for seconds in step["wall"])
    assert [table["rows"] for table in tables.values()] == [3000, 2000]
    assert sorted(answer["growth"]) == [300, 900, 3000]


def test_the_report_names_every_step_and_the_units_are_one(answer):
    text = speed.report(answer)
    for name, table in answer["tables"].items():
        part = text.split(f"{name}, {table['rows']:,} x 14: fit\n")[1].split("\n\n")[0]
        lines = {
            step: next(line for line in part.splitlines() if line.startswith(f"  {step}  ")) for step in table["fit"]
        }
        assert " 1.00 " in lines[speed.PASS]
        assert lines[speed.baseline(table["fit"])].split()[-2:] == ["1.0", "1.0"]


def test_what_takes_very_long_runs_once(monkeypatch):
    monkeypatch.setattr(speed, "LONG", 0.0)
    times, results = speed._interleaved({"step": lambda: 7}, rounds=3)
    assert len(times["step"]["wall"]) == 5  # of the first round
    assert results == {"step": 7}


def test_the_table_is_what_it_says():
    table = speed.synthetic(20_000)
    assert table.codes.shape == (14, 20_000)
    assert [column.max() + 1 for column in table.codes[:8]] == list(speed.LEVELS)
    assert np.mean(table.y) == pytest.approx(0.32, abs=0.02)
    np.testing.assert_array_equal(table.X, speed.synthetic(20_000).X)


def test_the_numeric_target_is_what_the_labels_are_a_threshold_of():
    labels, numbers = speed.synthetic(20_000), speed.synthetic(20_000, regression=True)
    np.testing.assert_array_equal(labels.X, numbers.X)
    np.testing.assert_array_equal(labels.y == 1, numbers.y > 1.35)
    assert numbers.schema.target == speed.TARGET
    assert np.isin(numbers.y, speed.TARGET).mean() < 0.01  # clipped


def test_the_greedy_forest_sees_every_record_in_every_tree():
    table = speed.synthetic(20_000)
    forest = speed.greedy_forest(table, epsilon=1e6)
    assert (forest.n_trees, forest.depth) == (speed.TREES, speed.DEPTH)
    leaves = forest.values[forest.feature < 0].reshape(speed.TREES, -1, 2)
    np.testing.assert_allclose(leaves.sum(axis=(1, 2)), 20_000, atol=20)  # almost no noise at this epsilon


def test_the_greedy_regression_forest_sees_every_record_in_every_tree():
    table = speed.synthetic(20_000, regression=True)
    forest = speed.greedy_forest(table, epsilon=1e6)
    masses = forest.values[forest.feature < 0].reshape(speed.TREES, -1, 2).sum(axis=1)
    total = table.labels.sum(dtype=int)
    expected = [total, TARGET_LEVELS * 20_000 - total]
    np.testing.assert_allclose(masses, np.tile(expected, (speed.TREES, 1)), atol=20 * TARGET_LEVELS)


@pytest.mark.parametrize("regression", [False, True])
def test_a_table_of_any_size_is_written_row_group_by_row_group(tmp_path, regression):
    pq = pytest.importorskip("pyarrow.parquet")
    paths = speed.write_parquet(tmp_path, 25_000, files=2, group=10_000, regression=regression)
    assert [pq.ParquetFile(path).metadata.num_row_groups for path in paths] == [2, 1]
    frame = pq.read_table(paths).to_pandas()
    schema = speed.synthetic_schema(regression=regression)
    assert frame.columns.tolist() == [*schema.columns, "y"]
    encoded, like = schema.encode(frame[schema.columns], speed.BINS), speed.synthetic(25_000, regression=regression)
    assert not encoded.clipped
    np.testing.assert_allclose(encoded.codes.mean(axis=1), like.codes.mean(axis=1), rtol=0.03)
    assert frame["y"].mean() == pytest.approx(np.mean(like.y), rel=0.03)
    assert frame["uniform"].nunique() > 24_000  # each group is drawn anew
    (one,) = speed.write_parquet(tmp_path / "one", 25_000, group=10_000, regression=regression)
    assert pq.read_table(one).to_pandas().equals(frame)


def test_a_key_column_holds_the_places_and_changes_nothing_else(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    with_key = pq.read_table(speed.write_parquet(tmp_path / "key", 2_500, files=2, group=1_000, key=True)).to_pandas()
    assert with_key.pop("id").tolist() == list(range(2_500))
    (plain,) = speed.write_parquet(tmp_path / "plain", 2_500, group=1_000)
    assert pq.read_table(plain).to_pandas().equals(with_key)


# -- scaling ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch):
    """Fits in this process, and what was fitted."""
    pytest.importorskip("pyarrow")
    asked = []

    def fit(options, paths, progress):
        asked.append(options)
        return scale.fit(paths=paths, **options)

    monkeypatch.setattr(scale, "_in_a_fresh_process", fit)
    return asked


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path, here, monkeypatch):
    record, sizes = tmp_path / "scale.json", [300, 600]
    options = {"folder": tmp_path, "record": record, "progress": False}
    scale.measure(sizes[:1], **options)
    scans = {"engine": "parquet", "scans": True}
    assert here == [{"engine": "parquet"}, scans | {"cache": scale.CACHE}, scans]
    written = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.glob("rows-300/*"))
    answer = scale.measure(sizes, memory=[600], engines=["memory", "parquet"], engine_rows=300, **options)
    assert len(here) == 3 + 3 + 1 + 4
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.glob("rows-300/*")) == written
    again = scale.measure(sizes, memory=[600], engines=["memory", "parquet"], engine_rows=300, **options)
    assert len(here) == 11
    assert again == answer == json.loads(record.read_text())
    # by place or by key, in memory or from files: the same model; where every tree sees every row, another one
    models = {name: fits[0]["model"] for name, fits in answer["fits"].items() if "300 rows" in name}
    other = models.pop("every tree sees every row, 300 rows, compared")
    assert len(models) == 6
    assert len(set(models.values())) == 1
    assert other not in models.values()
    for name, (one,) in answer["fits"].items():
        assert len(one["passes"]) == (0 if "memory" in name else scale.DEPTH + 1)
        assert all(("scan" in entry) == ("scans" in name) for entry in one["passes"])
        assert all(entry["n_rows"] == one["rows"] for entry in one["passes"])
        assert min(one["seconds"], one["cpu"]) > 0
    held = scale.measure(sizes[:1], folder=tmp_path, progress=False, processes=False)["fits"]["parquet, 300 rows"][0]
    assert held["model"] in models.values()
    assert len(here) == 11  # all in this process
    assert [one["rows"] for one in scale.plain(answer)] == sizes
    assert scale.constants(answer)["passes"] == scale.DEPTH + 1
    text = scale.report(answer)
    assert all(name in text for name in answer["fits"])
    assert "by a bare scan just before it" in text


def test_what_is_on_paper_is_what_the_formula_says():
    def one(n, seconds):
        passes = [{"n_rows": n, "n_bytes": size, "seconds": seconds / 4, "cpu": n * 2e-7} for size in (0, 800)]
        return {"rows": n, "seconds": seconds, "passes": passes, "bytes_per_row": 28.0}

    fits = {"parquet, 1000 rows": [one(1000, 2.0)], "parquet, 3000 rows": [one(3000, 5.0)]}
    found = scale.constants({"fits": {**fits, "parquet, 3000 rows, scans": [one(3000, 99.0)]}})
    assert (found["passes"], found["bytes_per_row"], found["answers"]) == (2, 28.0, [0, 800])
    values = [found[name] for name in ("cpu", "fixed", "slope", "start", "seconds")]
    assert values == pytest.approx([2e-7, 2.5, 1.5e-3, 0.5, 2.5 / 6000])
    paper = scale.on_paper(found, n_rows=64e6, workers=8, partition=1e6, network=1e6, task=1e-3, fan_in=8)
    # 2 reads of 64 blocks by 8 workers; their answers are added up in 2 levels, 8 at a time
    expected = {
        "work": 2 * 8 * 1e6 * 2e-7,
        "tasks": 2 * 64 * 9 / 8 * 1e-3,
        "travel": 2 * 8 * 800 / 1e6,
        "fixed": 2.5,
        "core_hours": 2 * 64e6 * 2e-7 / 3600,
        "disk": 28 / 2e-7,
        "terabytes": 64e6 * 28 / 1e12,
    }
    assert paper == pytest.approx(expected | {"seconds": 3.2 + 0.0128 + 2.5})
    assert scale.on_paper(found, n_rows=1e6, workers=1, partition=1e6)["travel"] == 0
    slow = scale.on_paper(found, n_rows=64e6, workers=8, partition=1e6, network=math.inf, task=1.0)
    assert slow["seconds"] == pytest.approx(144 + 2.5)  # the scheduler is what one waits for


@pytest.mark.slow
def test_a_fit_has_a_process_of_its_own(tmp_path, capsys, monkeypatch):
    """The one that asks for most; what it says is written down for the others as well, which are fitted so too."""
    pytest.importorskip("pyarrow")
    record, in_a_fresh_process, apart = tmp_path / "scale.json", scale._in_a_fresh_process, []

    def once(options, paths, progress):
        if "cache" not in options:
            return scale.fit(paths=paths, **options)
        apart.append(in_a_fresh_process(options, paths, progress))
        return apart[-1]

    monkeypatch.setattr(scale, "_in_a_fresh_process", once)
    scale.main(["--rows", "300", "--folder", str(tmp_path), "--json", str(record)])
    assert "parquet, 300 rows, scans" in capsys.readouterr().out
    (one,), fits = apart, [fit for (fit,) in json.loads(record.read_text())["fits"].values()]
    assert len(fits) == 3
    assert one in fits
    assert {fit["model"] for fit in fits} == {one["model"]}
    assert 0 < one["base"] <= one["peak"]
    assert one["workers"] == 0
    with pytest.raises(RuntimeError, match=r"ended with 1 .*TableError: no Parquet file"):
        in_a_fresh_process({"engine": "parquet"}, [tmp_path / "none.parquet"], False)


def test_passes_over_files_are_given_in_scans_and_models_compared(tmp_path, monkeypatch):
    lines = []
    assert passes.report(3000, tmp_path, lines.append)
    rows = [line.split("|")[1:-1] for line in lines if line.startswith("| ") and "kept" not in line]
    assert [name.strip() for name, *_ in rows] == list(passes.CACHES)
    assert len({n.strip() for _, n, *_ in rows}) == 1
    assert all(float(median) > 0 for *_, median in rows)
    assert "the same model, in memory, too: yes" in "".join(lines)
    first = passes.fit

    def other(paths, cache):
        return first(paths, cache)._replace(model=str(cache))

    monkeypatch.setattr(passes, "fit", other)
    assert not passes.report(3000, tmp_path, lines.append)
    assert "NO" in lines[-2]
    small = []
    passes.report(3000, tmp_path, small.append, most=15 * 3000)
    assert [line.split("|")[1].strip() for line in small[3:5]] == ["nothing", "encoded rows"]
    assert "the same model" in small[5]
    monkeypatch.setattr(passes, "HELD", 0)
    passes.report(3000, tmp_path, small.append, most=0)
    assert small[-2].endswith("the same model: one fit, and no other to compare it with")
    record, again = tmp_path / "passes.json", []
    passes.report(3000, tmp_path, most=15 * 3000, record=record)
    [one, two] = json.loads(record.read_text())["fits"].values()
    assert (one["model"], two["model"]) == ("0", str(15 * 3000))
    assert len(one["cpu"]) == len(one["wall"]) == int(rows[0][1]) - 1
    monkeypatch.setattr(passes, "fit", None)  # what is in the record is not made again
    assert not passes.report(3000, tmp_path, again.append, most=15 * 3000, record=record)
    assert [line.split("|")[1].strip() for line in again[3:5]] == ["nothing", "encoded rows"]
    with pytest.raises(ValueError, match="is about 3,000 rows, not 4,000: give another file"):
        passes.report(4000, tmp_path, record=record)
    for wrong in ("-1", "nan"):
        with pytest.raises(SystemExit, match="2"):
            passes.main(["--cache-at-most", wrong])
