"""What every private forest shares with scikit-learn: parameters, validation, prediction, release."""

from __future__ import annotations

import json
import math
import os
import warnings
from dataclasses import asdict
from numbers import Integral
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d
from sklearn.utils.validation import validate_data

from dpforest.chance import Chance, Secure, Seeded
from dpforest.curator import Curator
from dpforest.privacy import (
    Guarantee,
    Leak,
    Ledger,
    OutOfSchemaWarning,
    UnprovenPrivacyWarning,
    check_epsilon,
    check_relation,
)  # fmt: skip
from dpforest.schema import Schema
from dpforest.tree import Forest

__all__ = ["ForestPredictor", "PrivateForestClassifier", "ReleasedForest", "load"]

FORMAT = 1  # of the JSON release
MAX_DEPTH = 1000  # splits on a path that an estimator may be asked for


class ForestPredictor(ClassifierMixin):
    """Prediction from ``forest_``, ``schema_``, ``classes_`` and ``n_bins``, whoever provides them."""

    n_jobs: int | None = None

    def predict_proba(self, X) -> np.ndarray:
        """Class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The share of each class in the leaf values summed over the trees, negative sums taken as zero: shares of
        votes where leaves are labels, of noisy counts where they are counts.  Uniform where nothing is positive.
        """
        values = np.maximum(self._leaf_sums(X), 0)
        total = values.sum(axis=1, keepdims=True)
        return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / values.shape[1])

    def predict(self, X) -> np.ndarray:
        """The class with the largest summed leaf value; the first of ``classes_`` in a tie."""
        best = np.argmax(self._leaf_sums(X), axis=1)
        return self.classes_[best]

    def to_dict(self) -> dict:
        """The released model as lists and numbers, ready for JSON: no record, no exact count, no seed.

        Keys: ``format`` (1); ``estimator``; ``n_bins``; ``schema``, see :meth:`dpforest.schema.Schema.to_dict`;
        ``forest``, see :meth:`dpforest.tree.Forest.to_dict`; ``guarantee``: ``epsilon`` and ``claimed`` (null for
        infinity), ``relation``, and ``leaks``, each with ``what`` and ``where``.
        """
        forest = self._released()
        return {
            "format": FORMAT,
            "estimator": self._name(),
            "n_bins": int(self.n_bins),
            "schema": self.schema_.to_dict(),
            "forest": forest.to_dict(),
            "guarantee": {
                **asdict(self.guarantee_),
                "epsilon": _finite(self.guarantee_.epsilon),
                "claimed": _finite(self.guarantee_.claimed),
            },
        }

    def save(self, path) -> None:
        """Write :meth:`to_dict` as a JSON file; :func:`~dpforest.estimators.load` reads it back."""
        Path(path).write_text(json.dumps(self.to_dict()))

    def _name(self) -> str:
        return type(self).__name__

    def _released(self) -> Forest:
        if not hasattr(self, "forest_"):
            raise NotFittedError(f"this {self._name()} instance is not fitted yet: call fit first")
        return self.forest_

    def _leaf_sums(self, X) -> np.ndarray:
        forest = self._released()
        return forest.sum_leaves(self.schema_.encode(X, self.n_bins).codes, n_jobs=_threads(self.n_jobs))


class ReleasedForest(ForestPredictor):
    """A released model read back from JSON: it predicts, and states its guarantee.

    Attributes
    ----------
    forest_, schema_, classes_, guarantee_, n_bins
        As on the estimator that was fitted.
    """

    def __init__(self, description):
        try:
            if description["format"] != FORMAT:
                raise ValueError(f"format {description['format']!r} is not known; this version reads format {FORMAT}")
            self._estimator = description["estimator"]
            self.n_bins = description["n_bins"]
            self.schema_ = Schema.from_dict(description["schema"])
            self.forest_ = Forest.from_dict(description["forest"])
            promise = dict(description["guarantee"])
            promise["leaks"] = tuple(Leak(**leak) for leak in promise["leaks"])
            if promise["epsilon"] is None:
                promise["epsilon"] = math.inf
            self.guarantee_ = Guarantee(**promise)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a released forest: {error!r}") from None
        self.classes_ = self.schema_.classes
        _check_fits(self.forest_, self.schema_, self.n_bins)

    def _name(self) -> str:
        return self._estimator


def _check_fits(forest: Forest, schema: Schema, n_bins: int) -> None:
    """Raise ValueError unless every table that the schema allows can be predicted."""
    if schema.classes is None or forest.values.shape[1] != len(schema.classes):
        raise ValueError("not a released forest: its leaves and its schema disagree on the classes")
    if (forest.feature >= schema.n_features).any():
        raise ValueError("not a released forest: it splits on a feature that its schema does not have")
    wide = forest.multiway & (forest.feature >= 0)
    if (forest.arity[wide] < schema.cardinalities(n_bins)[forest.feature[wide]]).any():
        raise ValueError("not a released forest: a node has fewer children than its feature has codes")


def load(path) -> ReleasedForest:
    """Read a model that ``save`` wrote.  JSON runs no code, unlike a pickle."""
    return ReleasedForest(json.loads(Path(path).read_text()))


class PrivateForestClassifier(ForestPredictor, BaseEstimator):
    """Base of the private forest classifiers; a paper's module adds its parameters and its ``_grow``.

    ``fit`` checks the parameters, encodes the table on the schema's public grid, hands it to a
    :class:`~dpforest.curator.Curator`, and keeps the released forest, the ledger and the guarantee.  A subclass
    has the parameters ``epsilon``, ``schema``, ``n_bins``, ``relation``, ``variant``, ``source``,
    ``random_state`` and ``n_jobs``.
    """

    def fit(self, X, y):
        """Grow the forest.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n_rows, n_features)
            Columns as in the schema.
        y : array-like, shape (n_rows,)
            Labels among ``schema.classes``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad parameters or data, before anything is read for learning.

        Warns
        -----
        OutOfSchemaWarning
            When values were clipped or sent to ``other``; the counts are for the curator's eyes.
        UnprovenPrivacyWarning
            When ``variant="published"`` costs more than the paper claims.
        """
        epsilon = check_epsilon(self.epsilon)
        check_relation(self.relation)
        self._check_parameters()
        chance = self._chance()
        schema = self._public_schema(X, y)
        encoded, labels = self._read(schema, X, y)
        forest, ledger = self._learn(encoded.codes, labels, schema, epsilon, chance)
        claimed = epsilon if self.variant == "published" else None
        guarantee = Guarantee(ledger.epsilon, self.relation, claimed, tuple(ledger.leaks))
        if guarantee.epsilon > epsilon * (1 + 1e-9):
            if claimed is None:
                raise AssertionError(f"the ledger says {guarantee.epsilon}, not {epsilon}: nothing is released")
            warnings.warn(f"variant='published': {guarantee}", UnprovenPrivacyWarning, stacklevel=2)
        # only now, when all went well, does the estimator change
        self.schema_, self.classes_, self.n_features_in_ = schema, schema.classes, schema.n_features
        if all(isinstance(name, str) for name in getattr(X, "columns", [None])):
            self.feature_names_in_ = np.array(schema.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.forest_, self.ledger_, self.guarantee_ = forest, ledger, guarantee
        return self

    def _learn(self, codes, labels, schema: Schema, epsilon: float, chance: Chance) -> tuple[Forest, Ledger]:
        """Learn from encoded records; the seam at which the auditor replays the code that ships."""
        ledger = Ledger(self.relation)
        curator = Curator(
            codes, labels, schema.n_classes, schema.cardinalities(self.n_bins),
            chance=chance, ledger=ledger, n_jobs=_threads(self.n_jobs),
        )  # fmt: skip
        return self._grow(curator, chance, schema, ledger, epsilon), ledger

    # -- for subclasses --------------------------------------------------------------------------------------

    def _grow(self, curator: Curator, chance: Chance, schema: Schema, ledger: Ledger, epsilon: float) -> Forest:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_choice(self.variant, "variant", ("proved", "published"))
        _threads(self.n_jobs)

    def _public_schema(self, X, y) -> Schema:
        """The declared schema.  It is never learned from the data."""
        if not isinstance(self.schema, Schema):
            raise ValueError(
                f"{type(self).__name__} needs schema=Schema(numeric={{'age': (17, 90)}}, "
                "categorical={'sex': ['Female', 'Male']}, classes=['no', 'yes']): "
                f"what is public before the data, never learned from it; got {self.schema!r}"
            )
        if self.schema.classes is None:
            raise ValueError("this is a classifier: declare Schema(classes=[...]), not a target range")
        return self.schema

    # -- private ---------------------------------------------------------------------------------------------

    def _chance(self) -> Chance:
        if self.source == "seeded":
            return Seeded(self.random_state)
        if self.source == "secure":
            if self.random_state is not None:
                raise ValueError("source='secure' takes no seed: leave random_state=None")
            return Secure()
        raise ValueError(f"source must be 'seeded' or 'secure', not {self.source!r}")

    def _read(self, schema, X, y):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        encoded = schema.encode(X, self.n_bins)
        labels = schema.encode_labels(column_or_1d(y, warn=True))
        if len(labels) != encoded.n_rows:
            raise ValueError(f"X has {encoded.n_rows} rows, y has {len(labels)}: inconsistent numbers of samples")
        if not len(labels):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: nothing to learn from")
        strays = {**encoded.clipped, **encoded.other}
        if strays:
            text = ", ".join(f"{name}: {count}" for name, count in strays.items())
            warnings.warn(
                f"values outside the schema were clipped or sent to 'other' ({text} of {encoded.n_rows} rows); "
                "these counts are exact, do not release them",
                OutOfSchemaWarning,
                stacklevel=3,
            )
        return encoded, labels

    def _leaf_sums(self, X) -> np.ndarray:
        sums = super()._leaf_sums(X)
        validate_data(self, X, reset=False, skip_check_array=True)  # warns of an array where fit saw names
        return sums

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = isinstance(self.schema, Schema) and self.schema.missing == "bin"
        return tags

    def __getstate__(self):
        state = super().__getstate__()
        # a fitted model that leaves this process carries no seed: with it, anyone could subtract the noise
        return {**state, "random_state": None} if "forest_" in state else state


def check_count(value, name: str, least: int = 1, most: float = math.inf) -> int:
    """A whole number from ``least`` to ``most``, else an error that names the parameter."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        upper = "" if math.isinf(most) else f" and at most {most}"
        raise ValueError(f"{name} must be a whole number, at least {least}{upper}, not {value!r}")
    return int(value)


def check_choice(value, name: str, choices) -> None:
    """``value`` must be one of ``choices``, else an error that lists them."""
    if value not in tuple(choices):
        raise ValueError(f"{name} must be one of {sorted(map(str, choices))}, not {value!r}")


def _threads(n_jobs) -> int:
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None, a positive number of threads, or -1 for all, not {n_jobs!r}")
    cores = os.cpu_count() or 1
    return int(n_jobs) if int(n_jobs) > 0 else max(1, cores + 1 + int(n_jobs))


def _finite(value):
    return None if value is None or math.isinf(value) else float(value)
