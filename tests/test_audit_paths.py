"""The path-wise engine: it agrees with replay and with a model that shares no code with it, and it can fail."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from test_edprf import Paper

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema
from dpforest.arithmetic.fixed import fixed
from dpforest.audit import exact_audit, law_of, path_audit
from dpforest.audit.exact import paths as engine
from dpforest.audit.exact.multisets import Multisets
from dpforest.papers import edprf
from dpforest.privacy import RELATIONS

relations = pytest.mark.parametrize("relation", RELATIONS)


def cube(features: int, codes: int = 2, classes: int = 2) -> Schema:
    return Schema(categorical={f"x{i}": list(range(codes)) for i in range(features)}, classes=list(range(classes)))


def tree(features=2, depth=2, **options) -> EDPRFClassifier:
    schema = options.pop("schema", cube(features))
    return EDPRFClassifier(**{"schema": schema, "n_estimators": 1, "max_depth": depth, "leaf": "label", **options})


# -- multisets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kinds", "most"), [(1, 4), (2, 3), (4, 4), (6, 2), (3, 0)])
def test_multisets_are_all_there_in_order(kinds, most):
    table = Multisets(kinds, most)
    rows = table.rows()
    expected = sorted(
        tuple(things.count(kind) for kind in range(kinds))
        for size in range(most + 1)
        for things in combinations_with_replacement(range(kinds), size)
    )
    assert [tuple(row) for row in rows.tolist()] == expected
    assert len(rows) == table.size
    assert (table.rank(rows) == np.arange(len(rows))).all()
    room = rows.sum(axis=1) < most
    for kind in range(kinds):
        more = rows[room].copy()
        more[:, kind] += 1
        assert (table.rank(rows[room], kind) == table.rank(more)).all()


# -- agreement -------------------------------------------------------------------------------------------------------

SETTINGS = {
    "stop": {"stop_margin": 0.5},
    "never": {"stop": "never"},
    "exponential": {"stop": "never", "selection": "exponential", "budget": "uniform"},
    "normalised": {"stop": "never", "criterion": "normalised-gini", "calibration": "sensitivity"},
    "information": {"stop": "never", "criterion": "information-gain", "n_max": 10},
    "counts": {"stop_margin": 0.5, "leaf": "counts"},
    "aligned-uniform counts": {"stop": "never", "leaf": "counts", "budget": "aligned-uniform"},
}


UNIVERSES = [(cube(2), 1, 2), (cube(2), 2, 1), (cube(1, codes=3, classes=3), 1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(UNIVERSES)))
@pytest.mark.parametrize("name", SETTINGS)
def test_paths_and_replay_agree(name, at):
    """Every setting in every universe, and under both relations, which take turns: each universe has both, too."""
    schema, depth, most = UNIVERSES[at]
    relation = RELATIONS[(at + list(SETTINGS).index(name)) % 2]
    if schema.n_classes == 3 and name not in ("stop", "counts"):
        most = 1  # replay of three children with three labels each takes a while
    model = tree(schema=schema, depth=depth, relation=relation, **SETTINGS[name])
    path, replay = path_audit(model, n_max=most), exact_audit(model, n_max=most)
    assert path.epsilon == pytest.approx(replay.epsilon, rel=1e-10)
    assert (path.n_datasets, path.n_pairs) == (replay.n_datasets, replay.n_pairs)
    if "counts" not in name:
        assert path.n_outputs == replay.n_outputs
        assert math.log(path.probabilities[0] / path.probabilities[1]) == pytest.approx(path.epsilon, rel=1e-9)


@relations
@pytest.mark.parametrize("stop", [None, 0.5])
def test_paths_and_the_independent_model_agree(relation, stop):
    options = {"stop": "never"} if stop is None else {"stop_margin": stop}
    audit = path_audit(tree(depth=2, relation=relation, **options), n_max=3)
    split, label = (Fraction(1, 2), Fraction(1)) if relation == "add-remove" else (Fraction(1, 4), Fraction(1, 2))
    paper = Paper((2, 2), 2, levels=3, split=split, label=label, stop=stop)
    assert audit.epsilon == pytest.approx(paper.loss(3, relation), rel=1e-10)


@pytest.mark.claim(
    "thm-worst-path",
    verdict="proved",
    constant=r"$15/22$ for two splits, two features, $n \le 4$; $7/9$ for one",
    evidence="exhaustive",
)
@pytest.mark.parametrize(("depth", "exact"), [(1, Fraction(7, 9)), (2, Fraction(15, 22))])
def test_the_worst_path(depth, exact):
    """Permute-and-flip at n <= 4 loses a rational number, known by enumeration in the notes of the chapter eDPRF."""
    model = tree(depth=depth, stop="never")
    assert path_audit(model, n_max=4).epsilon == pytest.approx(float(exact), rel=1e-12)
    paper = Paper((2, 2), 2, levels=depth + 1, split=Fraction(1, 2), label=Fraction(1), stop=None)
    if depth == 1:
        assert paper.loss(4, "add-remove") == pytest.approx(float(exact), rel=1e-12)
    # a larger universe never loses less, and the claim bounds them all
    larger = path_audit(model, n_max=8).epsilon
    assert exact < larger <= 1


@relations
def test_the_published_tree_is_refuted(relation):
    audit = path_audit(tree(variant="published", relation=relation), n_max=3)
    assert audit.epsilon == math.inf
    assert audit.violated
    assert audit.probabilities[1] == 0 < audit.probabilities[0]


@relations
@pytest.mark.parametrize("name", ["stop", "never"])
def test_the_witness_is_an_event_of_the_law(relation, name):
    """The probabilities that the engine gives to its event are those that replay gives to the same event."""
    model = tree(depth=1, relation=relation, **SETTINGS[name])
    audit = path_audit(model, n_max=3)
    said = [
        part.split(" splits on ") if " splits on " in part else part.split(" is a leaf that says ")
        for part in audit.output.split("; ")
    ]

    def seen(forest):
        for place, what in said:
            node = 0 if place == "the root" else 1 + int(place.split()[1])
            if node >= forest.n_nodes:
                return False
            if what.startswith("x"):
                if model.schema.columns[forest.feature[node]] != what or forest.feature[node] < 0:
                    return False
            elif forest.feature[node] >= 0 or not forest.values[node, int(what)]:
                return False
        return True

    for data, probability in zip(audit.pair, audit.probabilities, strict=True):
        assert law_of(model, model.schema, data, seen)[True] == pytest.approx(probability, rel=1e-9)


@relations
def test_symmetry_is_used_only_where_it_is_seen(relation, monkeypatch):
    model = tree(depth=2, relation=relation, stop_margin=0.5)
    fast = path_audit(model, n_max=4)
    monkeypatch.setattr(engine, "_same", lambda one, other: False)
    slow = path_audit(model, n_max=4)
    assert slow.epsilon == pytest.approx(fast.epsilon, rel=1e-12)


@pytest.mark.slow
@relations
def test_a_lopsided_learner_is_not_taken_for_a_symmetric_one(relation, monkeypatch):
    """A score that looks at class 0 and at child 0 alone: its worst record is not the first that comes to hand."""

    def lopsided(counts):
        return 3.0 * counts[..., 0, 0]

    gini = edprf.scores.CLASSIFICATION["gini"]
    biased = replace(gini, function=lopsided, _exact=lambda counts: fixed(lopsided(counts)))
    monkeypatch.setitem(edprf.scores.CLASSIFICATION, "gini", biased)
    model = tree(depth=1, relation=relation, stop="never")
    path, replay = path_audit(model, n_max=2), exact_audit(model, n_max=2)
    assert path.epsilon == pytest.approx(replay.epsilon, rel=1e-10)
    assert path.violated == replay.violated


def test_the_universe_of_the_book():
    """Three features, two splits: the numbers of data sets and pairs up to ten records, by formula."""
    model = tree(features=3, depth=2, stop_margin=0.5)
    audit = path_audit(model, n_max=5)
    assert audit.n_datasets == math.comb(21, 5)
    assert audit.n_pairs == 16 * math.comb(20, 4)
    assert audit.epsilon == pytest.approx(1, rel=1e-12)  # with stop, the claim is met
    assert not audit.violated
    replaced = path_audit(tree(features=3, depth=2, stop_margin=0.5, relation="replace-one"), n_max=4)
    assert replaced.n_pairs == math.comb(16, 2) * math.comb(19, 3)
    assert replaced.unspent > 0


@relations
def test_numeric_features_are_binned(relation):
    schema = Schema(numeric={"a": (0, 1)}, categorical={"b": ["u", "v"]}, classes=["no", "yes"])
    model = tree(schema=schema, depth=1, n_bins=3, relation=relation, stop_margin=0.5)
    assert path_audit(model, n_max=1).epsilon == pytest.approx(exact_audit(model, n_max=1).epsilon, rel=1e-10)


# -- bad input -------------------------------------------------------------------------------------------------------


def test_what_cannot_be_audited_path_by_path_is_refused():
    with pytest.raises(ValueError, match="set n_estimators=1"):
        path_audit(EDPRFClassifier(schema=cube(2)), n_max=2)
    with pytest.raises(ValueError, match="nothing to audit"):
        path_audit(tree(epsilon="non-private"), n_max=2)
    with pytest.raises(ValueError, match="exact_audit"):
        path_audit(RandomTreesClassifier(schema=cube(2), n_estimators=1, max_depth=1), n_max=2)
    with pytest.raises(ValueError, match="one code splits nothing"):
        path_audit(tree(schema=cube(1, codes=1), depth=1), n_max=2)
    with pytest.raises(ValueError, match="max_nodes = 5 might bind"):
        path_audit(tree(max_nodes=5), n_max=2)
    with pytest.raises(ValueError, match="at most n_max = 2 records"):
        path_audit(tree(criterion="information-gain", stop="never", n_max=2), n_max=3)
    with pytest.raises(ValueError, match="n_max must be a whole number"):
        path_audit(tree(), n_max=0)
    with pytest.raises(ValueError, match="needs schema="):
        path_audit(EDPRFClassifier(n_estimators=1), n_max=2)


def test_a_universe_too_large_is_refused_with_what_would_fit():
    with pytest.raises(
        ValueError, match=r"16 kinds of records and n_max = 40 .* more than max_states = 1000: n_max = 3"
    ):
        path_audit(tree(features=3), n_max=40, max_states=1000)


def test_progress_goes_to_the_terminal(capsys):
    path_audit(tree(depth=1), n_max=2, progress=True)
    assert "state" in capsys.readouterr().err
    path_audit(tree(depth=1), n_max=2)
    assert capsys.readouterr().err == ""


def test_every_pair_is_looked_at():
    """The number of pairs is that of the definition."""
    kinds, most = list(product((0, 1), repeat=3)), 3
    every = [c for n in range(most + 1) for c in combinations_with_replacement(kinds, n)]
    audit = path_audit(tree(depth=1, relation="replace-one"), n_max=most)
    by_hand = sum(1 for i, a in enumerate(every) for b in every[i + 1 :] if len(a) == len(b) and near(a, b))
    assert audit.n_pairs == by_hand


def near(one, other) -> bool:
    rest = list(other)
    for record in one:
        if record in rest:
            rest.remove(record)
    return len(rest) == 1
