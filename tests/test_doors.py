"""The two doors while a learner runs: what it learns comes through the curator, what it draws through the chance.

The same rules are read from the source in ``tests/test_floors.py``; here they are seen to hold at run time.
"""

from __future__ import annotations

import gc
import inspect
import json
import math
import random
import warnings
import weakref

import numpy as np
import pandas as pd
import pytest
from shared import leaks_under, lettered, variants_of
from sklearn.utils import get_tags

import dpforest
from dpforest import Schema, UnprovenPrivacyWarning, counting
from dpforest.chance import Seeded
from dpforest.curator import Curator, memory, queries
from dpforest.curator.choices import Choices
from dpforest.curator.peeks import Peeks
from dpforest.curator.queries import ClassCounts
from dpforest.curator.sums import Sums
from dpforest.learners import intake
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.privacy import REPLACE_ONE
from dpforest.registry import PAPERS

COLUMNS = {"numeric": {"a": (0, 1)}, "categorical": {"b": ["x", "y", "z"], "c": ["u", "v"]}}
SCHEMAS = {
    "classifier": Schema(**COLUMNS, classes=[0, 1, 2]),
    "regressor": Schema(**COLUMNS, target=(0, 2)),
    "of two": Schema(**COLUMNS, classes=[0, 1]),
}
COUNTING = [
    "node_class_counts",
    "node_sums",
    "feature_histograms",
    "candidate_counts",
    "candidate_sums",
    "cross_sums",
    "count_sizes",
    "group_sums",
    "leaf_sums",
    "products",
]


def learners() -> list[type]:
    """Every learner of the registry."""
    return [getattr(dpforest, name) for names in PAPERS.values() for name in names]


def schema_of(kind) -> Schema:
    return SCHEMAS["of two" if kind.FACTS.two_classes else get_tags(kind()).estimator_type]


def configured(kind, **parameters):
    base = {"epsilon": 5.0, "schema": schema_of(kind), "n_estimators": 2, "max_depth": 2, "random_state": 0}
    free = kind.PARAMETERS.keys() - (lettered(kind) if parameters.get("variant") == "published" else set())
    return kind(**{name: value for name, value in base.items() if name in free} | parameters)


def settings(kind) -> list[dict]:
    """Enough options that every query of the curator is asked."""
    # as published an answer is so faint that few seeds hear it
    every: list[dict] = [{}, {"relation": "replace-one"}]
    if "published" in variants_of(kind):
        every.append({"variant": "published", "random_state": 9})
    more = {
        "leaf": ["counts"],
        "stop": ["never"],
        "selection": ["exponential"],
        "sampling": ["poisson", "assignment"],
        "split": ["multiway"],
    }
    for name, values in more.items():
        taken = kind.PARAMETERS[name].rule.names if name in kind.PARAMETERS else ()
        every += [{name: value} for value in values if value in taken][:1]
    return every


CASES = [(kind, options) for kind in learners() for options in settings(kind)]
cases = pytest.mark.parametrize(("kind", "options"), CASES, ids=str)


def table(kind, seed: int, n: int = 900):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.random(n), "b": rng.choice(list("xyz"), n), "c": rng.choice(list("uv"), n)})
    y = (X.a > 0.5).astype(int) + (X.b == "x")
    y = 2 - y if seed % 2 else y
    return X, np.minimum(y, 1) if kind.FACTS.two_classes else y


def fit(kind, options, seed: int = 0) -> str:
    """All that a fit lets out: the model, and its ledger."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        model = configured(kind, **options).fit(*table(kind, seed))
    return json.dumps(model.to_dict(seeded=True)) + str(model.ledger_)


def test_every_paper_has_its_learner():
    assert {kind.__name__ for kind in learners()} >= {"EDPRFClassifier", "RandomTreesClassifier"}


# -- the curator -----------------------------------------------------------------------------------------------------


class FixedAnswers:
    """Counting kernels that answer from the query alone, never from the records."""

    def __init__(self, seed: int):
        self.seed = seed

    def _answer(self, *shape):
        return np.random.default_rng([self.seed, *shape]).integers(0, 50, size=shape)

    def node_class_counts(self, codes, labels, n_classes, splits, slots, **_):
        return self._answer(int(slots.max(initial=-1)) + 1, n_classes)

    def feature_histograms(self, codes, labels, n_classes, cardinalities, splits, slots, **_):
        return self._answer(int(slots.max(initial=-1)) + 1, int(np.sum(cardinalities)), n_classes)

    def candidate_counts(self, codes, labels, n_classes, splits, slots, features, masks, **_):
        return self._answer(*features.shape, 2, n_classes)

    def node_sums(self, codes, labels, table, splits, slots, **_):
        return self._answer(int(slots.max(initial=-1)) + 1, table.shape[1])

    def sum_values(self, codes, splits, values, **_):
        return np.zeros((codes.shape[1], values.shape[1]))

    def products(self, codes, labels, columns, answer, intercept):
        size = int(intercept) + sum(table.shape[1] for table in (*columns, answer))
        half = self._answer(size, size)
        return half + half.T

    def cross_sums(self, codes, labels, weights, targets, crossings, **_):
        return self._answer(len(targets), int(crossings.starts[-1]), 2)

    def count_sizes(self, values, edges):
        return self._answer(len(edges) + 1)

    def group_sums(self, codes, groups, numbers):
        return self._answer(int(groups.max()) + 1)

    def leaf_sums(self, codes, splits, places, numbers, **_):
        return self._answer(len(splits.roots), int(places.max()) + 1, 2)

    def candidate_sums(self, codes, labels, table, splits, slots, features, masks, **_):
        return self._answer(*features.shape, 2, table.shape[1])


@pytest.mark.slow
@cases
def test_a_learner_knows_what_the_curator_answers_and_nothing_else(kind, options, monkeypatch):
    """With answers that do not depend on the records, nothing that is let out does."""
    honest = fit(kind, options, seed=0), fit(kind, options, seed=1)
    assert honest[0] != honest[1]
    monkeypatch.setattr(memory.InMemoryRecords, "hits", lambda self, tree: np.arange(len(self.pool()[1])) % 5 > 0)
    for room in (memory, queries):
        monkeypatch.setattr(room, "counting", FixedAnswers(1))
    assert fit(kind, options, seed=0) == fit(kind, options, seed=1)
    first = fit(kind, options)
    for room in (memory, queries):
        monkeypatch.setattr(room, "counting", FixedAnswers(2))
    assert fit(kind, options) != first  # and it does listen to them


@cases
def test_the_records_may_vanish_once_the_curator_has_them(kind, options, monkeypatch):
    """The arrays handed to the curator are spoilt behind it; the learner does not notice."""
    plain, spoilt = fit(kind, options), []

    class Spoiling(Curator):
        def __init__(self, codes, labels, *args, **kwargs):
            super().__init__(codes.copy(), labels.copy(), *args, **kwargs)
            codes[:], labels[:] = 255, 255
            spoilt.append(len(labels))

    monkeypatch.setattr(intake, "Curator", Spoiling)
    assert fit(kind, options) == plain
    assert spoilt == [900]


@pytest.mark.slow
@cases
def test_the_curator_is_gone_when_the_fit_is_done(kind, options, monkeypatch):
    """Nothing that a fitted model holds leads back to the records."""
    made = []

    class Watched(Curator):
        def __init__(self, codes, labels, *args, **kwargs):
            super().__init__(codes, labels, *args, **kwargs)
            made.extend(map(weakref.ref, (self, self._records.codes, self._records.labels)))

    monkeypatch.setattr(intake, "Curator", Watched)
    gc.freeze()  # what was there before the fit need not be looked through, and takes most of a second
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnprovenPrivacyWarning)
            model = configured(kind, **options).fit(*table(kind, 0))
        gc.collect()
    finally:
        gc.unfreeze()
    assert len(made) == 3
    assert [reference() for reference in made] == [None] * 3
    assert model.to_dict(seeded=True)


@cases
def test_every_count_is_asked_for_by_the_curator_and_charged(kind, options, monkeypatch):
    """Each call of a kernel comes from the curator, and each query of the curator leaves its trace in the ledger."""
    callers, silent, asked = set(), [], []

    def watched(kernel):
        def call(*args, **kwargs):
            callers.add(inspect.currentframe().f_back.f_globals["__name__"])
            return kernel(*args, **kwargs)

        return call

    for name in COUNTING:
        monkeypatch.setattr(counting, name, watched(getattr(counting, name)))

    def traced(name, query):
        def ask(self, *args, **kwargs):
            charged = len(self._ledger._charges)
            answer = query(self, *args, **kwargs)
            asked.append(name)
            paid = len(self._ledger._charges) == charged + 1
            public = name == "size" and self._ledger.relation == REPLACE_ONE
            if not paid and not public and not (name in peeks and self._ledger.leaks):
                silent.append(name)
            return answer

        return ask

    peeks = [name for name in vars(Peeks) if not name.startswith("_")]
    queries = [name for room in (Choices, Sums) for name in vars(room) if not name.startswith("_")]
    for name in (*queries, *peeks):
        monkeypatch.setattr(Curator, name, traced(name, getattr(Curator, name)))
    fit(kind, options)
    assert callers <= {"dpforest.curator.memory", "dpforest.curator.queries"}
    assert callers
    assert silent == []
    unpaid = {"peek"} if options.get("variant") == "published" else set()  # a published leaf may say what was peeked
    assert set(asked) & unpaid | set(asked) & {
        "choose",
        "noisy",
        "sum_products",
        "sum_steps",
    }


@pytest.mark.parametrize("kind", learners(), ids=lambda kind: kind.__name__)
def test_leaks_are_in_the_ledger_of_the_published_variant_and_of_no_proved_one(kind):
    X, y = table(kind, 0)
    for options in settings(kind):
        model = configured(kind, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        leaks, epsilon = model.ledger_.leaks, model.guarantee_.epsilon
        published = options.get("variant") == "published"
        assert bool(leaks) == (published and leaks_under(kind, model.relation))
        if not published:
            assert epsilon == pytest.approx(5.0, rel=1e-9)
        assert (epsilon == math.inf) == bool(leaks)
        warned = [str(w.message) for w in caught if w.category is UnprovenPrivacyWarning]
        assert len(warned) == len(caught) == (epsilon > 5 * (1 + 1e-9))
        assert all(("leak: " in text) == bool(leaks) for text in warned)
        assert str(model.ledger_).count("leak: ") == len(leaks)
        assert all(leak.what and leak.where for leak in model.guarantee_.leaks)


def test_a_learner_that_peeks_is_found_out():
    """A planted cheat: proved by its own word, but it grows by what it saw for nothing."""
    kind = EDPRFClassifier

    class Cheat(kind):
        def _learn(self, run):
            forest = super()._learn(run)
            run.curator.peek(ClassCounts(forest, np.flatnonzero(forest.feature < 0)), ("the leaves", "nowhere"))
            return forest

    with pytest.raises(AssertionError, match="nothing is released"):
        configured(Cheat).fit(*table(kind, 0))


# -- the chance ------------------------------------------------------------------------------------------------------


class Recorder(Seeded):
    """A seeded chance that keeps what it drew."""

    def __init__(self, random_state):
        super().__init__(random_state)
        self.drawn = []

    def _keep(self, value):
        self.drawn.append(np.array(value))
        return value

    def integers(self, high, size):
        return self._keep(super().integers(high, size))

    def permutation(self, n):
        return self._keep(super().permutation(n))

    def subsets(self, n, k, size):
        return self._keep(super().subsets(n, k, size))

    def coins(self, high, ids):
        return self._keep(super().coins(high, ids))

    def copies(self, n_trees, ids):
        return self._keep(super().copies(n_trees, ids))

    def weighted(self, weights, size):
        return self._keep(super().weighted(weights, size))

    def select(self, kind, law, scores, rate):
        return self._keep(super().select(kind, law, scores, rate))

    def discrete_gaussian(self, rate, size):
        return self._keep(super().discrete_gaussian(rate, size))

    def two_sided_geometric(self, rate, size):
        return self._keep(super().two_sided_geometric(rate, size))


class Tape(Recorder):
    """Gives the recorded draws again, whatever the law."""

    def __init__(self, drawn):
        self.drawn, self.left = [], list(drawn)

    def integers(self, high, size):
        return self.left.pop(0)

    def permutation(self, n):
        return self.left.pop(0)

    def subsets(self, n, k, size):
        return self.left.pop(0)

    def coins(self, high, ids):
        return self.left.pop(0)

    def copies(self, n_trees, ids):
        return self.left.pop(0)

    def weighted(self, weights, size):
        return self.left.pop(0)

    def select(self, kind, law, scores, rate):
        return self.left.pop(0)

    def discrete_gaussian(self, rate, size):
        return self.left.pop(0)

    def two_sided_geometric(self, rate, size):
        return self.left.pop(0)


@cases
def test_the_draws_decide_the_model(kind, options):
    """A tape of the draws, played to the same records, gives the same model: nothing else is random."""
    model, schema = configured(kind, **options), schema_of(kind)
    if "prune" in model.get_params():  # what is pruned is computed from noisy counts
        model.set_params(prune=False)
    codes, labels = encoded(model, schema, 0)
    recorder = Recorder(7)
    released, _ = model.replay(codes, labels, schema, 5.0, recorder)
    assert recorder.drawn
    tape = Tape(recorder.drawn)
    again, _ = model.replay(codes, labels, schema, 5.0, tape)
    assert again.to_dict() == released.to_dict()
    assert tape.left == []
    # the splits are drawn answers: played to other records of the same number, they give the same splits
    drawn = options.get("variant") != "published" and not kind.FACTS.splits_from_counts  # published forests look
    if drawn and hasattr(released, "feature"):
        elsewhere, _ = model.replay(encoded(model, schema, 1)[0], labels, schema, 5.0, Tape(recorder.drawn))
        assert elsewhere.feature.tolist() == released.feature.tolist()
        assert elsewhere.mask.tolist() == released.mask.tolist()


def encoded(model, schema, seed):
    X, y = table(type(model), seed)
    labels = schema.encode_target(y)[0] if schema.classes is None else schema.encode_labels(y)
    return schema.encode(X, model.bins(schema)).codes, labels


@cases
def test_nobody_elses_randomness_is_used(kind, options):
    np.random.seed(1)  # noqa: NPY002 - the global state that must not matter
    random.seed(1)
    before = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    first = fit(kind, options)
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    random.seed(2)
    assert fit(kind, options) == first


@pytest.mark.parametrize("kind", learners(), ids=lambda kind: kind.__name__)
def test_a_model_from_the_secure_source(kind):
    X, y = table(kind, 0)
    models = [configured(kind, epsilon=0.1, source="secure", random_state=None).fit(X.copy(), y) for _ in range(3)]
    assert len({json.dumps(model.to_dict()) for model in models}) > 1  # no seed: a fit cannot be repeated
    for model in models:
        assert model.random_state is None
        assert model.guarantee_.epsilon == pytest.approx(0.1, rel=1e-9)
        assert model.predict(X).shape == y.shape
