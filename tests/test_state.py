"""A fit changes its estimator in one step, and whoever reads an estimator reads one fit."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import threading

import pytest
from shared import MIXED, at_each_line, interrupt, table

from dpforest import RandomTreesClassifier, Schema, inspect
from dpforest.inspect import code_names, text, view
from dpforest.learners import base
from dpforest.models import forest, predictor

pytestmark = pytest.mark.filterwarnings("ignore::dpforest.BudgetWarning")  # many models of one table

X, Y = table(40)
TURNED = Schema(numeric={"x": (0, 2)}, categorical={"c": ["w", "v", "u"]}, classes=["yes", "no"], columns=["c", "x"])
#: A model for release, and one nearly without noise from a seed, which differ in all that is learned.
RELEASE = {"schema": MIXED, "epsilon": 1.0, "source": "secure", "random_state": None}
OPEN = {"schema": TURNED, "epsilon": 1e6, "source": "seeded", "random_state": 0}
READERS = {
    "to_dict": lambda model: model.to_dict(seeded=True),
    "predict": lambda model: model.predict(X).tolist(),
    "predict_proba": lambda model: model.predict_proba(X).tolist(),
    "score": lambda model: model.score(X, Y),
    "repr": repr,
    "html": lambda model: model._repr_html_(),
    "text": lambda model: inspect.export_text(model),
    "pickle": lambda model: pickle.loads(pickle.dumps(model)).to_dict(seeded=True),
}
FILES = [module.__file__ for module in (base, predictor, forest, text, view, code_names)]


def learner(**how):
    return RandomTreesClassifier(n_estimators=2, max_depth=1, **how).fit(X, Y)


def written(model):
    return json.dumps(model.to_dict(seeded=True))


def test_an_interrupt_leaves_the_former_fit_or_the_new_one():
    """Before every line of a fit: no file has the model of one under the promise of the other."""
    former, new = learner(**RELEASE), learner(**OPEN)
    model, outcomes = former, []

    def refit():
        nonlocal model
        model = copy.copy(former)
        model.set_params(**OPEN).fit(X, Y)

    for _ in at_each_line(refit, interrupt, base.__file__):
        assert model.ledger_.promise == model.guarantee_
        assert list(model.classes_) == model.schema_.classes.tolist()
        outcomes.append([written(former), written(new)].index(written(model)))
    assert outcomes == sorted(outcomes)
    assert 20 < outcomes.count(0) < len(outcomes) - 1


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_refit_between_any_two_lines_of_a_reader_is_seen_wholly_or_not_at_all(read):
    former, new = learner(**RELEASE), learner(**OPEN)
    while read(former) == read(new):  # the secure one may answer like the other by chance
        former = learner(**RELEASE)
    allowed, seen, model = [read(former), read(new)], [], former

    def reading():
        nonlocal model
        model = new  # until there is a copy to be fitted again
        model = copy.copy(former)
        return read(model)

    for found in at_each_line(reading, lambda: model.set_params(**OPEN).fit(X, Y), *FILES):
        seen.append(allowed.index(found))
    assert {0, 1} == set(seen)


def test_threads_that_write_while_another_fits_write_one_fit():
    model, done, wrong = learner(**RELEASE), threading.Event(), []

    def write():
        while not done.is_set():
            found = model.to_dict(seeded=True)
            secure = found["guarantee"]["source"] == "secure"
            if secure != (found["guarantee"]["epsilon"] == 1) or secure != (found["schema"]["target"] is None) * (
                found["schema"]["classes"] == ["no", "yes"]
            ):
                wrong.append(found)

    writers, before = [threading.Thread(target=write) for _ in range(2)], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in writers:
            thread.start()
        for _ in range(25):
            model.set_params(**OPEN).fit(X, Y)
            model.set_params(**RELEASE).fit(X, Y)
    finally:
        sys.setswitchinterval(before)
        done.set()
        for thread in writers:
            thread.join()
    assert not wrong
