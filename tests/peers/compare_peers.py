"""Fit the peers on the data sets of the comparison, in their own environment, and write how well they answer.

Usage (`make compare-peers` builds the environment and calls this)::

    python tests/peers/compare_peers.py          # writes notebooks/record/incumbents.json
    python tests/peers/compare_peers.py --quick  # one set, one budget, one seed; writes _build/incumbents-quick.json

The splits, the seeds and the measures are those of notebooks/comparison.ipynb.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import time
import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

# Not as a package `tests`: diffprivlib installs one of that name.  And dpforest comes from this checkout.
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from audit_peers import BUILD, RECORD, write
from peer_learners import versions

from dpforest.datasets import load
from dpforest.study.experiments import evaluate, log_loss

NAMES = ["adult", "bank-marketing", "nursery", "mushroom", "congressional-voting", "wall-following-robot"]
EPSILONS = [0.1, 0.5, 1.0, 2.0]
SEEDS = 3
DELTA = 1e-5


class Integers:
    """diffprivlib's random forest, with public bounds and classes, on integer codes of categories and of labels.

    From labels that are text it learns nothing: its trees compare them with the codes of the forest.
    """

    title = "diffprivlib forest"
    delta = 0.0

    def __init__(self, schema, epsilon, seed):
        from diffprivlib.models import RandomForestClassifier

        self._schema, self.classes_ = schema, schema.classes
        ends = [schema.numeric.get(name, (0, len(schema.categorical.get(name, ())) - 1)) for name in schema.columns]
        self._model = RandomForestClassifier(
            epsilon=epsilon,
            bounds=tuple(np.array(ends, dtype=float).T),
            classes=list(range(schema.n_classes)),
            random_state=seed,
        )

    def _codes(self, X):
        kinds = self._schema.categorical
        return np.column_stack(
            [pd.Categorical(X[n], categories=kinds[n]).codes if n in kinds else X[n] for n in self._schema.columns]
        ).astype(float)

    def fit(self, X, y):
        self._model.fit(self._codes(X), pd.Categorical(y, categories=list(self.classes_)).codes.astype(int))
        return self

    def predict_proba(self, X):
        return self._model.predict_proba(self._codes(X))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class Additive:
    """InterpretML's DP-EBM with public bounds of numbers; its categories are found by private binning."""

    title = "DP-EBM"
    delta = DELTA
    settings: ClassVar[dict] = {}

    def __init__(self, schema, epsilon, seed):
        from interpret.privacy import DPExplainableBoostingClassifier

        self._schema = schema
        self._model = DPExplainableBoostingClassifier(
            epsilon=epsilon,
            delta=DELTA,
            feature_names=list(schema.columns),
            feature_types=["nominal" if name in schema.categorical else "continuous" for name in schema.columns],
            privacy_bounds={name: tuple(map(float, ends)) for name, ends in schema.numeric.items()},
            random_state=seed,
            n_jobs=1,
            **self.settings,
        )

    def _plain(self, X):
        kinds = self._schema.categorical
        return pd.DataFrame({n: X[n].astype(str if n in kinds else float).to_numpy() for n in self._schema.columns})

    def fit(self, X, y):
        self._model.fit(self._plain(X), np.asarray(y, dtype=str))
        self.classes_ = self._model.classes_
        return self

    def predict_proba(self, X):
        return self._model.predict_proba(self._plain(X))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class Tuned(Additive):
    """DP-EBM with the learning rate and the number of leaves that suit it better than its defaults."""

    title = "DP-EBM, tuned"
    settings: ClassVar[dict] = {"learning_rate": 0.1, "max_leaves": 6}


def baseline(part, seed) -> float:
    """Seconds of CPU of scikit-learn's extra trees on the same records, the unit of all times."""
    from sklearn.ensemble import ExtraTreesClassifier

    codes = part.schema.encode(part.X, 16).codes.T
    started = time.process_time()
    ExtraTreesClassifier(100, max_depth=6, random_state=seed).fit(codes, part.y)
    return time.process_time() - started


def compared(names, epsilons, seeds):
    """One row for each fit."""
    for name in names:
        data = load(name)
        for seed in range(seeds):
            part = data if data.X_test is not None else data.split(test_size=0.3, random_state=seed)
            unit = baseline(part, seed)
            for kind in (Integers, Additive, Tuned):
                if kind is not Integers and part.schema.n_classes > 2:
                    continue  # it tells two classes apart
                for epsilon in epsilons:
                    model = kind(part.schema, epsilon, seed)
                    started = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # of seeds, and of values beyond their bounds
                        model.fit(part.X, part.y)
                        cost = (time.process_time() - started) / unit
                        row = evaluate(model, part.X_test, part.y_test)
                        row["log loss"] = log_loss(model, part.X_test, part.y_test)
                    print(f"{name} {kind.title} {epsilon:g} {seed}: {row['accuracy']:.4f}", flush=True)
                    yield {"data": name, "learner": kind.title, "ε": epsilon, "δ": kind.delta, "seed": seed, **row,
                           "cost": round(cost, 2)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one set, one budget, one seed")
    quick = parser.parse_args().quick
    names, epsilons, seeds = (["congressional-voting"], [1.0], 1) if quick else (NAMES, EPSILONS, SEEDS)
    rows = list(compared(names, epsilons, seeds))
    found = versions()
    found.pop("dpforest")  # it only loads the data here
    record = {
        "what": "other libraries on the data sets of the comparison; see notebooks/comparison.ipynb",
        "command": "make compare-peers", "date": datetime.date.today().isoformat(),
        "python": platform.python_version(), "versions": found, "rows": rows,
    }  # fmt: skip
    write(BUILD / "incumbents-quick.json" if quick else RECORD.with_name("incumbents.json"), record)


if __name__ == "__main__":
    main()
