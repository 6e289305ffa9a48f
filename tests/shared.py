"""What the tests of several learners share: schemas and a table, and what every estimator keeps to."""

from __future__ import annotations

import json
import math
import pickle
import sys
import warnings
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier

from dpforest import Schema, UnprovenPrivacyWarning, load, mechanisms
from dpforest.audit.exact.enumeration import audit_pairs
from dpforest.audit.exact.laws import answers
from dpforest.audit.search.pairs import Pair
from dpforest.audit.search.traps import traps
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, account

PAIR = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
MIXED = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, classes=["no", "yes"])
THREE = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, classes=["a", "b", "z"])
PEOPLE = Schema(numeric={"age": (0, 100), "pay": (0, 10)}, categorical={"city": ["a", "b", "c"]}, target=(0, 50))


def table(n: int = 400, seed: int = 0, classes: int = 2, no: str = "v"):
    """Records of ``MIXED``, or with three classes of ``THREE``; of two, a tenth has the wrong one."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(n), "c": rng.choice(list("uvw"), n)})
    if classes == 3:
        return X, np.where(X.x > 0.6, "z", np.where(X.c == "u", "a", "b"))
    noisy = rng.random(n) < 0.1
    return X, np.where(((X.x > 0.4) & (X.c != no)) ^ noisy, "yes", "no")


def people(n: int = 400, seed: int = 0):
    """Records of ``PEOPLE``, and their targets, which are linear but for noise."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, 0], X[:, 1], X[:, 2] = rng.integers(0, 101, n), rng.uniform(0, 10, n), rng.choice(list("abc"), n)
    y = 10 + 0.1 * X[:, 0].astype(float) + 2 * X[:, 1].astype(float) + 5 * (X[:, 2] == "b")
    return X, y + rng.normal(size=n)


def quietly(estimator, X, y):
    """Fit, without the warning of a published variant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        return estimator.fit(X, y)


def played(kind, data, answers, monkeypatch) -> list[tuple[np.ndarray, np.ndarray]]:
    """What Gaussian noise was asked for, and at what rate, where the answers are these whatever the records are.

    ``answers(number, shape)`` is that to the question of this number, from 1.
    """
    asked: list[tuple[np.ndarray, np.ndarray]] = []

    def note(counts, rate, chance):
        asked.append((np.array(counts, dtype=float), np.broadcast_to(rate, np.shape(counts))))
        return answers(len(asked), np.shape(counts))

    with monkeypatch.context() as patch:
        patch.setattr(mechanisms, "discrete_gaussian", note)
        quietly(kind, [record[:-1] for record in data], [record[-1] for record in data])
    return asked


def concentration(kind, one, other, answers, monkeypatch) -> float:
    """The rho that two data sets need along one transcript."""
    runs = [played(kind, data, answers, monkeypatch) for data in (one, other)]
    assert len(runs[0]) == len(runs[1])
    return sum(
        float((rate * (first - second) ** 2).sum())
        for (first, rate), (second, its_rate) in zip(*runs, strict=True)
        if np.array_equal(rate, its_rate) or pytest.fail("a rate depends on the records")
    )


#: Neighbours whom a table of groups, divided once by a or by b, tells apart by all of epsilon: records (a, b, class).
TOLD_APART = {
    ADD_REMOVE: (((0, 1, 1),), ((0, 0, 0), (0, 1, 1))),
    REPLACE_ONE: (
        ((0, 0, 0), (0, 0, 0), (0, 1, 0), (0, 1, 1)),
        ((0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 1, 1)),
    ),
}


def loss_told_apart(kind: type, relation: str, **parameters) -> float:
    """The exact loss, on that pair, of a learner that publishes a table of one specialisation, at epsilon = 1."""
    one, other = TOLD_APART[relation]
    subject = kind(epsilon=1.0, schema=PAIR, specialisations=1, relation=relation, **parameters)
    return audit_pairs(subject, (one, other), [(one, other)]).epsilon


def assert_spent(fitted, epsilon: float):
    """The ledger of a fit has all of epsilon, to the last digits, and so has what it promises; nothing leaked."""
    assert fitted.ledger_.leaks == []
    assert fitted.ledger_.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert fitted.guarantee_.epsilon == epsilon


def some_traps(model, step: int) -> list[Pair]:
    """Every so manieth of the traps in codes, none of more records than the learner's own cap."""
    schema = model.audited_schema(model.promised_delta())
    every = traps(schema.cardinalities(model.bins(schema)), answers(schema), model.relation)
    cap = getattr(model, "n_max", math.inf)
    return [pair for pair in every if max(len(pair.one), len(pair.other)) <= cap][::step]


def variants_of(kind: type) -> tuple[str, ...]:
    """The variants that a learner has: one that no paper published has the proved one alone."""
    return kind.PARAMETERS["variant"].rule.names


def leaks_under(kind: type, relation: str) -> bool:
    """Whether the published variant has a leak in its ledger: its size is public where a record is replaced."""
    return kind.FACTS.leaks == "records" or (kind.FACTS.leaks == "size" and relation == ADD_REMOVE)


def lettered(kind: type) -> set[str]:
    """The parameters of which the published variant takes what the paper says."""
    return {name for name, parameter in kind.PARAMETERS.items() if parameter.letter is not None}


def assert_an_estimator(estimator, X, y, folder: Path):
    """A fit changes no parameter, a seed decides every byte, and what is kept comes back without the seed.

    Returns the fitted estimator.
    """
    before, seed = estimator.get_params(), estimator.random_state
    assert pickle.loads(pickle.dumps(estimator)).random_state == seed
    quietly(estimator, X, y)
    assert estimator.get_params() == before == clone(estimator).get_params()
    assert estimator.get_params()["schema"] is before["schema"]
    assert not [name for name in vars(clone(estimator)) if name.endswith("_")]
    released = json.dumps(estimator.to_dict(seeded=True))
    for same in ({"n_jobs": 2}, {"n_jobs": -1, "random_state": np.random.default_rng(seed)}):
        twin = quietly(clone(estimator).set_params(**same), X, y)
        assert json.dumps(twin.to_dict(seeded=True)) == released
        assert str(twin.ledger_) == str(estimator.ledger_)
    assert pickle.loads(pickle.dumps(twin)).random_state is None  # of a generator, too
    other = quietly(clone(estimator).set_params(random_state=seed + 1), X, y)
    assert other.to_dict(seeded=True) != estimator.to_dict(seeded=True)
    assert json.dumps(quietly(other.set_params(random_state=seed), X, y).to_dict(seeded=True)) == released  # as if new
    copy = pickle.loads(pickle.dumps(estimator))
    assert copy.random_state is None
    assert estimator.random_state == seed
    assert str(copy.ledger_) == str(estimator.ledger_)
    estimator.save(folder / "model.json", seeded=True)
    kept = load(folder / "model.json")
    assert json.loads((folder / "model.json").read_text()) == kept.to_dict(seeded=True) == json.loads(released)
    assert kept.schema_ == estimator.declared_schema()  # on the grid of the learner
    assert "random_state" not in released
    assert is_classifier(kept) == is_classifier(estimator)
    assert f"released {type(estimator).__name__}" in repr(kept)
    with pytest.raises(ValueError, match="X has no column"):
        kept.predict(X.rename(columns={X.columns[0]: "another"}))
    for back in (copy, kept):
        for method in ("predict", "predict_proba") if is_classifier(estimator) else ("predict",):
            np.testing.assert_array_equal(getattr(back, method)(X), getattr(estimator, method)(X))
        assert back.guarantee_ == estimator.guarantee_
    assert is_classifier(estimator) or kept.score(X, y) == estimator.score(X, y)
    return estimator


class Greedy:
    """A learner, mixed in, with every query at 1.05 times the budget it says it takes."""

    factor = 1.05

    def _learn(self, run):
        run.epsilon = self.factor * run.epsilon
        return super()._learn(run)


class Liar(Greedy):
    """The same, and its ledger is made to look right."""

    def _learn(self, run):
        forest = super()._learn(run)
        for entry in run.ledger._charges:
            entry.costs = {relation: cost / self.factor for relation, cost in entry.costs.items()}
        return forest


def at_each_line(work, act, *files):
    """Do the work again and again: ``act`` is called before its first line in these files, its second, and so on.

    Yields what the work returned, or the KeyboardInterrupt by which ``act`` ended it; the last time nothing was done.
    """
    for number in count():
        left = number

        def trace(frame, event, _):
            nonlocal left
            if frame.f_code.co_filename not in files:
                return None
            if event == "line":
                left -= 1
                if left == -1:
                    sys.settrace(None)
                    act()
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            found = work()
        except KeyboardInterrupt as stopped:
            found = stopped
        finally:
            sys.settrace(before)
            # where a `with` ends, a tracer raises before the lock is given back, which no signal does: other threads
            # would wait for it for ever
            while account._LOCK._is_owned():
                account._LOCK.release()
        yield found
        if left >= 0:
            return


def interrupt():
    raise KeyboardInterrupt
