"""The file tells the truth, and reading it is safe."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from shared import MIXED, PAIR, quietly, table
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

import dpforest
from dpforest import (
    DPsAdaBoostClassifier,
    EDPRFClassifier,
    FunctionalMechanismClassifier,
    FunctionalMechanismRegressor,
    RandomTreesRegressor,
    Schema,
    load,
    storage,
)
from dpforest.learners.base import PrivateEstimator
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import NOT_COVERED
from dpforest.registry import PAPERS
from tools import changelog

NUMBERS = Schema(
    numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, target=(0, 1), missing="bin", other={"c": "u"}
)
X, Y = table(120)
KINDS = {
    EDPRFClassifier: {"n_estimators": 2, "max_depth": 2},
    DPsAdaBoostClassifier: {"n_estimators": 2, "max_depth": 1},
    RandomTreesRegressor: {"n_estimators": 2, "max_depth": 2},
    FunctionalMechanismClassifier: {},
}
LEARNERS = [getattr(dpforest, name) for names in PAPERS.values() for name in names]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def fitted(kind, **options) -> PrivateEstimator:
    regression = kind.__name__.endswith("Regressor")
    options = {"schema": NUMBERS if regression else MIXED, "random_state": 8191, **KINDS.get(kind, {}), **options}
    return quietly(kind(**options), X.copy(), X.x if regression else Y)


# -- what the file says ----------------------------------------------------------------------------------------------


@every_kind
def test_a_seeded_fit_is_not_written_unless_asked_for_by_name(kind, tmp_path):
    model, path = fitted(kind), tmp_path / "model.json"
    for _ in range(2):
        with pytest.raises(ValueError, match=r"not for release.*source='secure'.*seeded=True"):
            model.save(path)
        with pytest.raises(ValueError, match="not for release"):
            model.to_dict()
        model.save(path, seeded=True)
        model = load(path)  # and so on for ever: what was read back is no better
        assert model.guarantee_.source == "seeded"
        assert "seeded, not for release" in repr(model)
    assert json.loads(path.read_text())["guarantee"]["source"] == "seeded"


@every_kind
def test_a_secure_fit_is_written(kind, tmp_path):
    model, path = fitted(kind, source="secure", random_state=None), tmp_path / "model.json"
    model.save(path)
    back = load(path)
    assert back.to_dict() == model.to_dict() == model.to_dict(seeded=True) == json.loads(path.read_text())
    assert back.guarantee_ == model.guarantee_ == model.ledger_.promise
    assert back.guarantee_.source == "secure"
    assert "not for release" not in repr(back)


def test_the_file_says_all_of_the_guarantee():
    model = fitted(EDPRFClassifier)
    assert model.to_dict(seeded=True)["guarantee"] == {
        "epsilon": 1.0,
        "relation": "add-remove",
        "claimed": None,
        "leaks": [],
        "variant": "proved",
        "source": "seeded",
        "version": dpforest.__version__,
        "rests_on": ["SipHash"],
        "unit": "one row",
        "not_covered": list(NOT_COVERED),
    }
    said = repr(load_of(model.to_dict(seeded=True)))
    for word in ("1-differentially", "add-remove", "one row", "seeded", dpforest.__version__, "SipHash", *NOT_COVERED):
        assert word in said, word


def test_the_version_is_said_once():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "dpforest/_version.py"
    cited = yaml.safe_load((root / "CITATION.cff").read_text())
    assert cited["version"] == dpforest.__version__
    assert changelog.dates((root / "CHANGELOG.md").read_text())[dpforest.__version__] == str(cited["date-released"])


@pytest.mark.parametrize("source", ["seeded", "secure"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("sampling", ["all", "assignment", "poisson"])
def test_the_hash_is_named_where_the_proof_wants_random_coins(sampling, relation, source, tmp_path):
    """In memory the secure source draws a coin for each row; where rows are read in passes, coins are computed."""
    pytest.importorskip("pyarrow")
    rows = X.assign(y=Y, id=range(len(X)))
    rows.to_parquet(tmp_path / "rows.parquet")
    options = {"schema": MIXED, "n_estimators": 2, "max_depth": 1, "max_features": "all"}
    forest = dpforest.DiffPETsClassifier(sampling=sampling, relation=relation, source=source, **options)

    def named(table, key=None):
        promise = clone(forest).fit(table, "y", key=key).guarantee_
        said = "up to the pseudo-randomness of SipHash"
        assert (said in repr(promise)) == bool(promise.rests_on)
        assert (said in str(promise)) == (bool(promise.rests_on) and source == "secure")
        return promise.rests_on == ("SipHash",)

    file = str(tmp_path / "rows.parquet")
    by_place = sampling == "poisson" or (sampling == "assignment" and relation == "add-remove")
    assert named(file) == by_place
    assert named(rows) == (by_place and source == "seeded")
    if sampling != "poisson":  # refuses a key
        assert not named(file, "id")  # which a record brings along: any function of it will do


# -- a seed does not slip out ----------------------------------------------------------------------------------------


@every_kind
def test_a_seed_is_neither_printed_nor_pickled(kind):
    model = fitted(kind)
    for text in (repr(model), str(model), str(model._repr_mimebundle_()), json.dumps(model.to_dict(seeded=True))):
        assert "8191" not in text
    assert "random_state=<seed>" in repr(model)
    assert "random_state" not in repr(kind())
    back = pickle.loads(pickle.dumps(model))
    assert (back.random_state, back.guarantee_.source) == (None, "seeded")
    with pytest.raises(ValueError, match="not for release"):
        back.to_dict()


def test_a_notebook_shows_no_seed():
    formatters = pytest.importorskip("IPython.core.formatters")
    data, _ = formatters.DisplayFormatter().format(fitted(EDPRFClassifier))
    assert data.keys() == {"text/plain", "text/html"}
    assert data["text/plain"] == repr(fitted(EDPRFClassifier))
    assert "8191" not in data["text/html"]
    data, _ = formatters.DisplayFormatter().format(EDPRFClassifier(random_state=8191))
    assert data == {"text/plain": repr(EDPRFClassifier(random_state=8191))}


@pytest.mark.filterwarnings("ignore::dpforest.BudgetWarning")  # tests/test_budget_account.py sees to it
@pytest.mark.filterwarnings("ignore:Unknown section")
def test_a_search_keeps_the_seed_of_what_is_not_fitted():
    """What the documentation warns of: a search is no release."""
    search = GridSearchCV(EDPRFClassifier(schema=MIXED, random_state=8191), {"max_depth": [1]}, cv=2).fit(X, Y)
    back = pickle.loads(pickle.dumps(search))
    assert back.best_estimator_.random_state is None
    assert back.estimator.random_state == 8191
    assert "the pickle of a" in PrivateEstimator.__doc__


@every_kind
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_in_the_process_is_the_same(kind, duplicate):
    model = fitted(kind)
    twin = duplicate(model)
    assert twin.get_params() == model.get_params()
    assert twin.random_state == 8191
    assert twin.to_dict(seeded=True) == model.to_dict(seeded=True)
    assert (twin.schema_ is model.schema_) == (duplicate is copy.copy)
    twin.set_params(epsilon=2.0)
    assert model.epsilon == 1.0
    fresh = clone(model)
    assert (fresh.random_state, hasattr(fresh, "guarantee_")) == (8191, False)
    assert quietly(fresh, X, X.x if kind is RandomTreesRegressor else Y).to_dict(seeded=True) == model.to_dict(
        seeded=True
    )


# -- NumPy is enough -------------------------------------------------------------------------------------------------

#: What a fresh process does: it cannot import what is banned, and says what the models of a folder answer to its rows.
ALONE = """
import json, sys
from pathlib import Path

folder, banned, kinds = Path(sys.argv[1]), set(sys.argv[2].split()), sys.argv[3].split()

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in banned:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import dpforest
import numpy as np

def table(kind):
    rows = json.loads((folder / "rows.json").read_text())
    if kind == "frame":
        import pandas as pd
        return pd.DataFrame(rows, columns=["x", "c", "k"])[["k", "c", "x"]]
    if kind == "records":
        return [{"k": k, "x": x, "c": c} for x, c, k in rows]
    if kind == "columns":
        return {name: [row["xck".index(name)] for row in rows] for name in "kcx"}
    return {"path": str(folder / "rows.parquet"), "rows": rows}.get(kind) or np.array(rows, dtype=kind)

found = {}
for path in sorted(folder.glob("*Classifier.json")) + sorted(folder.glob("*Regressor.json")):
    model = dpforest.load(path)
    for kind in kinds:
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(model, method):
                answer = np.asarray(getattr(model, method)(table(kind)))
                cells = answer.tolist() if answer.dtype.kind in "OU" else answer.tobytes().hex()
                found[f"{path.stem}.{method}({kind})"] = [str(answer.dtype), list(answer.shape), cells]
assert not banned & {name.split(".")[0] for name in sys.modules}
print(json.dumps(found))
"""
ALL_BUT_NUMPY = "numba llvmlite pandas scipy sklearn narwhals pyarrow matplotlib joblib tqdm threadpoolctl"
#: What the cells of the categorical column ``c`` say.
CELLS = {"texts": ["u", "v", "w"], "numbers": [4, 5, 7]}


@pytest.fixture(scope="module", params=CELLS)
def shelf(request, tmp_path_factory) -> Path:
    """A folder with released models of every kind, and rows that are in part outside of their schema."""
    folder, rng = tmp_path_factory.mktemp(request.param), np.random.default_rng(3)
    columns = {"c": CELLS[request.param], "k": [0, 1]}
    c, k = rng.choice(columns["c"], 700).tolist(), rng.integers(0, 3, 700).tolist()
    rows = list(map(list, zip(rng.normal(0.5, 0.4, 700).tolist(), c, k, strict=True)))
    rows[5][0], rows[7][0] = 1, 0.7
    (folder / "rows.json").write_text(json.dumps(rows))
    more = {FunctionalMechanismRegressor: {}, dpforest.DiffPETsRegressor: {"n_estimators": 3}}
    for kind, options in {**KINDS, **more}.items():
        regression = kind.__name__.endswith("Regressor")
        answer = {"target": (0, 2)} if regression else {"classes": ["no", "so", "yes"]}
        schema = Schema(
            numeric={"x": (0, 1)}, categorical=columns, columns=["x", "c", "k"], other={"k": 1}, missing="bin", **answer
        )
        y = k if regression else np.array(answer["classes"])[k]
        model = kind(schema=schema, random_state=0, epsilon=20.0, **options)
        with pytest.warns(dpforest.OutOfSchemaWarning):
            model.fit(np.array(rows, dtype=object), y)
        model.save(folder / f"{kind.__name__}.json", seeded=True)
    return folder


def answers(shelf: Path, banned: str, *kinds: str) -> dict:
    """What a process that cannot import what is banned says of the rows, as a table of these kinds."""
    command = [sys.executable, "-c", ALONE, shelf, banned, " ".join(kinds)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_numpy_alone_predicts_the_same_bits(shelf):
    arrays = ["rows", "object", "records", "columns"] + ["float32", "float64"] * ("numbers" in shelf.name)
    everything = answers(shelf, "", *arrays, "frame")
    assert len(everything) == 10 * (len(arrays) + 1)
    assert answers(shelf, "numba", *arrays, "frame") == everything
    assert answers(shelf, ALL_BUT_NUMPY, *arrays) == {
        name: said for name, said in everything.items() if "frame" not in name
    }


@pytest.mark.slow
def test_a_loaded_model_opens_the_tables_that_engines_read(shelf):
    pytest.importorskip("pyarrow")
    rows = pd.DataFrame(json.loads((shelf / "rows.json").read_text()), columns=["x", "c", "k"])
    rows.to_parquet(shelf / "rows.parquet")
    everything = answers(shelf, "", "path", "frame")
    assert len(everything) == 20
    for name, said in everything.items():
        assert said == everything[name.replace("path", "frame")], name


def test_the_package_is_imported_before_any_other():
    """Even NumPy waits until something is asked for; the standard library alone is there at once."""
    code = "import sys; import dpforest; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {*ALL_BUT_NUMPY.split(), "numpy"} & set(done.stdout.split())


def test_every_public_name_is_there_when_it_is_asked_for():
    asked: dict = {}
    exec("from dpforest import *", asked)
    for name in dpforest.__all__:
        assert asked[name] is getattr(dpforest, name), name
        assert name in dir(dpforest)
    for room in ("models", "papers", "curator"):
        assert getattr(dpforest, room).__name__ == f"dpforest.{room}"
    assert dpforest.EDPRFClassifier is EDPRFClassifier
    with pytest.raises(AttributeError, match="no attribute 'EDPRF'"):
        getattr(dpforest, "EDPRF")  # noqa: B009
    with pytest.raises(ImportError, match="cannot import name 'EDPRF'"):
        from dpforest import EDPRF  # noqa: F401


@every_kind
def test_scikit_learn_takes_what_was_read_back(kind, tmp_path):
    model = fitted(kind)
    back, y = load_of(model.to_dict(seeded=True)), X.x if kind is RandomTreesRegressor else Y
    regression = kind is RandomTreesRegressor
    assert (is_regressor(back), is_classifier(back)) == (regression, not regression)
    assert (is_regressor(model), is_classifier(model)) == (regression, not regression)
    assert back.score(X, y) == model.score(X, y)
    name = "r2" if regression else "neg_log_loss"
    assert get_scorer(name)(back, X, y) == get_scorer(name)(model, X, y)
    weights = np.arange(len(X))
    assert back.score(X, y, sample_weight=weights) == model.score(X, y, sample_weight=weights) != model.score(X, y)
    twin = clone(back)
    assert type(twin) is type(back) is not type(model)
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(back)).predict(X), model.predict(X))
    assert get_tags(back).target_tags.required
    assert repr(twin) == repr(back)


# -- what predict reads ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
def test_nothing_that_the_caller_can_change_is_read_by_predict(kind):
    regression = kind.__name__.endswith("Regressor")
    answer = {"target": (0, 1)} if regression else {"classes": ["no", "yes"]}
    mine = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, **answer)
    small = {name: 2 for name in ("n_estimators", "max_depth") if name in kind().get_params()}
    y = X.x if regression else Y
    model = kind(schema=mine, random_state=0, epsilon=20.0, **small).fit(X, y)
    kept, said = model.to_dict(seeded=True), model.predict(X)
    for name, value in model.get_params().items():
        if name not in ("random_state", "n_jobs"):
            model.set_params(**{name: 5 if isinstance(value, int) or value == "auto" else "spoilt"})
    mine.numeric["x"] = (-9, 9)
    mine.categorical["c"].reverse()
    mine.columns.reverse()
    if not regression:
        mine.classes[:] = mine.classes[::-1].copy()
    np.testing.assert_array_equal(model.predict(X), said)
    assert model.to_dict(seeded=True) == kept


# -- a file that somebody else wrote ---------------------------------------------------------------------------------


def load_of(description):
    return dpforest.models.release.released(json.loads(json.dumps(description)))


ODD = [None, True, False, 1.5, -1, 0, 10**400, 1e300, "1", "", "x" * 10_000, [], {}, [[]], [None], {"a": 1}]


def places(value, path=()):
    """Every place in a description, its first and last entries where it is a list."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for at in sorted({0, len(value) - 1} if value else ()):
            yield from places(value[at], (*path, at))


def changed(description, path, value):
    found = copy.deepcopy(description)
    at = found
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return found


def alike(one, other) -> bool:
    """Equal, and of the same types, but that a number may be an int or a float."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@pytest.mark.slow
@every_kind
def test_what_is_read_is_what_is_there_or_is_refused_by_name(kind, tmp_path):
    """Everything in the file, exchanged for what does not belong there, one at a time: nothing is converted."""
    good, path = fitted(kind).to_dict(seeded=True), tmp_path / "some.json"
    assert alike(load_of(good).to_dict(seeded=True), good)
    rows, refused = X.head(3), 0
    for place in places(good):
        for odd in ([...] if place and isinstance(place[-1], str) else []) + ODD:
            bad = changed(good, place, odd) if place else odd
            path.write_text(json.dumps(bad))
            model = said = None
            try:
                model = load(path)
            except ValueError as error:
                said = str(error)
            if model is None:
                refused += 1
                assert said.startswith(f"{path} cannot be read: "), (place, odd)
                assert len(said) < 1000, (place, odd)
                continue
            again = model.to_dict(seeded=True)
            if place[:2] != ("guarantee", "not_covered"):  # for human readers: not what the library goes by
                assert alike(again, bad), (place, odd)
            if place[0] != "schema":  # by another schema the rows may not be what they should be
                assert np.shape(model.predict(rows)) == (3,)
    assert refused > 300


def lies():
    yield "epsilon", -5
    yield "epsilon", 0
    yield "epsilon", "1"
    yield "epsilon", True
    yield "relation", "none at all"
    yield "claimed", 1.0  # of a proved variant
    yield "leaks", [{"what": "all", "where": "nowhere"}]  # and yet a finite loss
    yield "variant", "improved"
    yield "source", "dice"
    yield "rests_on", ["hope"]
    yield "unit", "one person"
    yield "version", 1


@pytest.mark.parametrize(("name", "value"), list(lies()))
def test_a_guarantee_is_not_believed(name, value):
    good = fitted(EDPRFClassifier).to_dict(seeded=True)
    with pytest.raises(ValueError, match=name if name not in ("claimed", "leaks") else "contradicts itself"):
        load_of(changed(good, ("guarantee", name), value))


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "3",
        '"model"',
        "[]",
        "{}",
        "NaN",
        "[" * 100_000,
        '{"schema":' * 100_000,
        '{"schema": 3, "forest": {}}',
        '{"format": 2, "schema": {"classes": [0, 1]}, "forest": {}}',
    ],
    ids=range(10),
)
def test_other_documents_are_refused_by_name(tmp_path, text):
    path = tmp_path / "some.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"some\.json cannot be read"):
        load(path)


def chain(splits: int) -> dict:
    """A released tree that is one path."""
    good = EDPRFClassifier(schema=PAIR, n_estimators=1, max_depth=1, random_state=0).fit([[0, 1], [1, 0]], [0, 1])
    nodes = 2 * splits + 1
    inner = [node % 2 == 0 and node < nodes - 1 for node in range(nodes)]
    forest = {
        "feature": [0 if split else -1 for split in inner],
        "first_child": [node + 1 if split else 0 for node, split in enumerate(inner)],
        "arity": [2 if split else 0 for split in inner],
        "multiway": [False] * nodes,
        "mask": [[2, 0, 0, 0] if split else [0] * 4 for split in inner],
        "roots": [0],
        "values": [[0, 0] if split else [1, 0] for split in inner],
        "shrinkage": 0.0,
    }
    return good.to_dict(seeded=True) | {"forest": forest}


def test_depth_has_an_end():
    assert load_of(chain(MAX_DEPTH)).forest_.depth == MAX_DEPTH
    assert load_of(chain(MAX_DEPTH)).predict([[1, 1]]).tolist() == [0]
    for splits in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(ValueError, match=f"more than {MAX_DEPTH} splits"):
            dpforest.models.release.released(chain(splits))


def test_a_table_has_a_width():
    good = fitted(FunctionalMechanismClassifier).to_dict(seeded=True)
    names = [f"x{i}" for i in range(100_001)]
    wide = good["schema"] | {"numeric": {name: [0, 1] for name in names}, "categorical": {}, "columns": names}
    with pytest.raises(ValueError, match="more than 100000 columns"):
        dpforest.models.release.released(good | {"schema": wide})


@pytest.mark.parametrize("change", [{}, {"epsilon": None, "claimed": 4.0, "leaks": [{"what": "all", "where": "here"}]}])
def test_files_of_the_first_format_are_read_and_say_that_they_do_not_know(tmp_path, change):
    good, path = fitted(EDPRFClassifier).to_dict(seeded=True), tmp_path / "model.json"
    old = good | {"format": 1}
    old["guarantee"] = {name: good["guarantee"][name] for name in ("epsilon", "relation", "claimed", "leaks")} | change
    path.write_text(json.dumps(old))
    model = load(path)
    assert model.guarantee_.source == "unknown"
    assert model.guarantee_.variant == ("published" if change else "proved")
    with pytest.raises(ValueError, match="not known where its noise came from"):
        model.save(path)
    model.save(path, seeded=True)
    assert load(path).guarantee_ == model.guarantee_
    assert json.loads(path.read_text())["format"] == 2


def test_a_published_fit_without_privacy_comes_back_as_it_was():
    model = fitted(EDPRFClassifier, variant="published", epsilon="non-private")
    assert model.guarantee_.claimed == math.inf
    assert load_of(model.to_dict(seeded=True)).guarantee_ == model.guarantee_


def test_a_save_that_fails_leaves_the_old_model(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    fitted(EDPRFClassifier).save(path, seeded=True)
    before = path.read_bytes()

    def full(_):
        raise OSError("No space left on device")

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        fitted(EDPRFClassifier, epsilon=2.0).save(path, seeded=True)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["model.json"]


# -- the finest grid -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [FunctionalMechanismRegressor, FunctionalMechanismClassifier, dpforest.DiffLRRegressor]
)
@pytest.mark.parametrize("missing", ["error", "bin"])
def test_the_finest_grid_leaves_room_for_missing_values(kind, missing):
    answer = {"target": (0, 1)} if kind.__name__.endswith("Regressor") else {"classes": [0, 1]}
    rows = pd.DataFrame({"x": [0.1, 0.9, 0.4, np.nan if missing == "bin" else 0.3]})
    model = kind(schema=Schema(numeric={"x": (0, 1)}, missing=missing, **answer), random_state=0).fit(
        rows, [0, 1, 0, 1]
    )
    assert model.n_bins_ == (254 if missing == "bin" else 255)
    assert load_of(model.to_dict(seeded=True)).n_bins_ == model.n_bins_
    assert model.get_params()["n_bins"] == "auto"
