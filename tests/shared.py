"""What the tests of several learners share: schemas and a table, and what every estimator keeps to."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

from dpforest import Schema, UnprovenPrivacyWarning, load

PAIR = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
MIXED = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, classes=["no", "yes"])
THREE = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, classes=["a", "b", "z"])


def table(n: int = 400, seed: int = 0, classes: int = 2, no: str = "v"):
    """Records of ``MIXED``, or with three classes of ``THREE``; of two, a tenth has the wrong one."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(n), "c": rng.choice(list("uvw"), n)})
    if classes == 3:
        return X, np.where(X.x > 0.6, "z", np.where(X.c == "u", "a", "b"))
    noisy = rng.random(n) < 0.1
    return X, np.where(((X.x > 0.4) & (X.c != no)) ^ noisy, "yes", "no")


def quietly(estimator, X, y):
    """Fit, without the warning of a published variant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        return estimator.fit(X, y)


def assert_an_estimator(estimator, X, y, folder: Path):
    """A fit changes no parameter, a seed decides every byte, and what is kept comes back without the seed.

    Returns the fitted estimator.
    """
    before = estimator.get_params()
    quietly(estimator, X, y)
    assert estimator.get_params() == before
    twin = quietly(clone(estimator).set_params(n_jobs=2), X, y)
    assert json.dumps(twin.to_dict(seeded=True)) == json.dumps(estimator.to_dict(seeded=True))
    assert str(twin.ledger_) == str(estimator.ledger_)
    other = quietly(clone(estimator).set_params(random_state=estimator.random_state + 1), X, y)
    assert other.to_dict(seeded=True) != estimator.to_dict(seeded=True)
    copy = pickle.loads(pickle.dumps(estimator))
    assert copy.random_state is None
    estimator.save(folder / "model.json", seeded=True)
    for back in (copy, load(folder / "model.json")):
        np.testing.assert_array_equal(back.predict(X), estimator.predict(X))
        np.testing.assert_array_equal(back.predict_proba(X), estimator.predict_proba(X))
        assert back.guarantee_ == estimator.guarantee_
    return estimator
