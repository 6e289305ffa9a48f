"""The released model: what every fitted forest does, and its form in JSON.

The file is one JSON object (RFC 8259, UTF-8) with exactly these members:

``format``
    2.  Files of format 1 are read, too: their guarantee has the first four members only, so their source is unknown.
``estimator``
    Name of the learner's class.
``n_bins``
    Bins of each numeric column, a whole number.
``schema``
    What was public: :meth:`dpforest.schema.Schema.to_dict`.
``forest``, ``boosted`` or ``linear``
    The model: :meth:`dpforest.models.forest.Forest.to_dict` for the first two, else
    :meth:`dpforest.models.linear.LinearModel.to_dict`.
``guarantee``
    ``epsilon``, a positive number, or null: no finite loss is proved.  ``relation``: ``"add-remove"`` or
    ``"replace-one"``.  ``claimed``: null for the proved variant, else what the paper claims, null for infinity.
    ``leaks``: a list of objects with ``what`` and ``where``; empty where ``epsilon`` is a number.  ``variant``:
    ``"proved"`` or ``"published"``.  ``source``: ``"secure"``; ``"seeded"``, and then the model is not for release; or
    ``"unknown"``, for a model that came from a file of format 1.  ``version``: of the library that fitted it, or null.
    ``rests_on``: a list, empty or ``["SipHash"]``.  ``unit``: ``"one row"``.  ``not_covered``: a list of what the
    guarantee does not speak of, for human readers.  See :class:`dpforest.privacy.Guarantee`.

Numbers, texts and truth values stand as such and are never converted: a reader refuses ``"1"``, ``1.0`` and ``true``
where a whole number is due.  The file holds no record, no exact count and no seed.
"""

from __future__ import annotations

import copy
import json
import math
import reprlib
from collections.abc import Mapping
from functools import wraps
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import NotFittedError

from dpforest.engines import is_elsewhere, table_of
from dpforest.models import storage
from dpforest.models.forest import Forest
from dpforest.privacy import ASSUMPTIONS, NOT_COVERED, RELATIONS, SECURE, SOURCES, UNIT, UNKNOWN, Guarantee, Leak
from dpforest.schema import Schema

__all__ = [
    "MAX_DEPTH", "READERS", "Answer", "ForestClassifier", "ForestRegressor", "Predictor", "Released", "ReleasedForest",
    "ReleasedForestRegressor", "anywhere", "load", "released",
]  # fmt: skip

FORMAT = 2  # of the JSON
MAX_DEPTH = 1000  # splits on a path that an estimator may be asked for, and that a file may hold
MAX_COLUMNS = 100_000  # of a table that a file speaks of
_LONGEST = 200  # characters of a name in a file
_ROWS = 1 << 16  # that are looked at together


class Answer:
    """What a released model answers to the rows of a frame, as a function that can travel to the rows.

    Parameters
    ----------
    model : Released
    name : str
        The method that answers.
    """

    def __init__(self, model: Released, name: str):
        self._model, self._name = model, name

    def __call__(self, frame) -> np.ndarray:
        return getattr(self._model, self._name)(frame)


def anywhere(method):
    """Let a method that answers row by row do so where the rows lie, if an engine reads them."""

    @wraps(method)
    def answer(self, X):
        if not is_elsewhere(X):
            return method(self, X)
        model, name = released(self._describe()), method.__name__
        return table_of(X).rows(Answer(model, name), model.schema_.columns, name)

    return answer


class Predictor(BaseEstimator):
    """What a released model says of itself, from ``schema_``, ``n_bins_`` and ``guarantee_``, whoever provides them."""

    #: What is released: the key of the model in the JSON, and with an underscore the attribute that holds it.
    _RELEASED = "forest"
    n_jobs: int | None = None

    def to_dict(self, *, seeded: bool = False) -> dict:
        """The released model as lists and numbers, ready for JSON: no record, no exact count, no seed.

        Parameters
        ----------
        seeded : bool
            Whether a model may be written whose noise did not come from the operating system: for research, not for
            release.  What is written says so, and so does every copy of it.

        Returns
        -------
        dict
            The members are those of the file, see :mod:`dpforest.models.release`.

        Raises
        ------
        ValueError
            The fit drew from a seed, or it is not known from what, and ``seeded`` was not asked for.
        """
        self._released()
        if self.guarantee_.source != SECURE and not seeded:
            origin = "it is not known where its noise came from" if self.guarantee_.source == UNKNOWN else (
                "its noise came from a seed (source='seeded'), and whoever has or finds the seed can subtract it"
            )  # fmt: skip
            raise ValueError(
                f"this {self._name()} is not for release: {origin}. Fit with source='secure', or ask with seeded=True "
                "for what says of itself that it is for research"
            )
        return self._describe()

    def save(self, path, *, seeded: bool = False) -> None:
        """Write :meth:`to_dict` as a JSON file, whole or not at all; :func:`~dpforest.models.release.load` reads it.

        ``seeded`` and the errors are those of :meth:`to_dict`; a disk that cannot be written raises OSError.
        """
        storage.write(path, json.dumps(self.to_dict(seeded=seeded), allow_nan=False))

    def _describe(self) -> dict:
        promise = self.guarantee_
        return {
            "format": FORMAT,
            "estimator": self._name(),
            "n_bins": int(self.n_bins_),
            "schema": self.schema_.to_dict(),
            self._RELEASED: self._released().to_dict(),
            "guarantee": {
                "epsilon": _finite(promise.epsilon), "relation": promise.relation, "claimed": _finite(promise.claimed),
                "leaks": [{"what": leak.what, "where": leak.where} for leak in promise.leaks],
                "variant": promise.variant, "source": promise.source, "version": promise.version,
                "rests_on": list(promise.rests_on), "unit": UNIT, "not_covered": list(NOT_COVERED),
            },
        }  # fmt: skip

    def __deepcopy__(self, memo):
        # a copy within the process is the same in all respects; __getstate__ is for what leaves it
        twin = self.__copy__()
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __copy__(self):
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def _name(self) -> str:
        return type(self).__name__

    def _n_threads(self) -> int:
        return 1 if self.n_jobs is None else self.n_jobs  # the counting kernels check it

    def _released(self) -> Any:
        if not hasattr(self, f"{self._RELEASED}_"):
            raise NotFittedError(f"this {self._name()} instance is not fitted yet: call fit first")
        return getattr(self, f"{self._RELEASED}_")

    def _codes(self, X) -> np.ndarray:
        """Codes of the table on the grid that the model was learned on."""
        return self.schema_.encode(X, self.n_bins_).codes


class ForestClassifier(ClassifierMixin, Predictor):
    """Classification by ``forest_``, whose leaves hold one vote or noisy class counts."""

    @anywhere
    def predict_proba(self, X) -> np.ndarray:
        """Class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The share of each class in the leaf values summed over the trees, negative sums taken as zero: shares of
        votes where leaves are labels, of noisy counts where they are counts.  Uniform where nothing is positive.  In a
        forest with shrinkage, the mean over the trees of :meth:`dpforest.models.forest.Forest.shares`.
        """
        values = np.maximum(self._leaf_sums(X), 0)
        total = values.sum(axis=1, keepdims=True)
        return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / values.shape[1])

    @anywhere
    def predict(self, X) -> np.ndarray:
        """The class with the largest summed leaf value; the first of ``classes_`` in a tie."""
        sums = self._leaf_sums(X)
        # argmax copies what it is given: some rows at a time
        parts = [sums[first : first + _ROWS].argmax(axis=1) for first in range(0, max(len(sums), 1), _ROWS)]
        return self.classes_[np.concatenate(parts)]

    def _leaf_sums(self, X) -> np.ndarray:
        forest = self._released()
        values = forest.shares() if forest.shrinkage else forest.values
        return forest.sum_leaves(self._codes(X), values=values, n_jobs=self._n_threads())


class ForestRegressor(RegressorMixin, Predictor):
    """Regression by ``forest_``, whose leaves hold two noisy masses: above the lower bound, and below the upper."""

    @anywhere
    def predict(self, X) -> np.ndarray:
        """The mean over the trees of the leaf means, float64, shape (n_rows,), within the declared target range.

        A leaf's mean is the share of its first mass, shrunk towards the nodes above it:
        :meth:`dpforest.models.forest.Forest.shares`.
        """
        forest = self._released()
        shares = forest.sum_leaves(self._codes(X), values=forest.shares()[:, :1], n_jobs=self._n_threads())
        return self.schema_.decode_target(np.clip(shares[:, 0] / forest.n_trees, 0, 1))


class Released(Predictor):
    """A released model read back from JSON: it predicts, and states its guarantee.

    Parameters
    ----------
    description : dict
        What ``to_dict`` of a fitted estimator gave.

    Attributes
    ----------
    forest_ or linear_, schema_, classes_, guarantee_, n_bins_
        As on the estimator that was fitted.

    Raises
    ------
    ValueError
        The description is not one, member by member: nothing is converted, and nothing is taken on trust.
    """

    def __init__(self, description):
        self.description = description
        try:
            self._estimator, self.n_bins_ = _check_members(description, self._RELEASED)
            self.schema_ = _schema(description["schema"])
            self.guarantee_ = _guarantee(description["guarantee"], description["format"])
            self._read(_member(description, self._RELEASED, dict))
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not a released model: {error!r}") from None
        if is_classifier(self) == (self.schema_.classes is None):
            raise ValueError("not a released model of this kind: its schema declares another kind of answer")
        if self.schema_.classes is not None:
            self.classes_ = self.schema_.classes

    def _read(self, description) -> None:
        """Read the model itself into its attribute; raise ValueError if it cannot predict what the schema allows."""
        raise NotImplementedError

    def __repr__(self, N_CHAR_MAX=700) -> str:
        return f"<released {self._name()}: {self._released()}, {self.guarantee_!r}>"

    def _name(self) -> str:
        return self._estimator


class _ReleasedTrees(Released):
    def _read(self, description) -> None:
        self.forest_ = Forest.from_dict(description)
        check_fits(self.forest_, self.schema_, self.n_bins_)


class ReleasedForest(_ReleasedTrees, ForestClassifier):
    """A released forest of a classifier: see :class:`Released`."""


class ReleasedForestRegressor(_ReleasedTrees, ForestRegressor):
    """A released forest of a regressor: see :class:`Released`."""


def check_fits(forest: Forest, schema: Schema, n_bins: int) -> None:
    """Raise ValueError unless every table that the schema allows can be predicted, in reasonable time."""
    if forest.is_deeper(MAX_DEPTH):
        raise ValueError(f"not a released forest: it has more than {MAX_DEPTH} splits on a path")
    if forest.values.shape[1] != (schema.n_classes or 2):
        raise ValueError("not a released forest: its leaves and its schema disagree on what is predicted")
    if (forest.feature >= schema.n_features).any():
        raise ValueError("not a released forest: it splits on a feature that its schema does not have")
    wide = forest.multiway & (forest.feature >= 0)
    if (forest.arity[wide] < schema.cardinalities(n_bins)[forest.feature[wide]]).any():
        raise ValueError("not a released forest: a node has fewer children than its feature has codes")


#: Who reads a released model, by its key in the JSON and whether it classifies; ``linear`` adds its own.
READERS: dict[tuple[str, bool], type[Released]] = {
    ("forest", True): ReleasedForest,
    ("forest", False): ReleasedForestRegressor,
}


def load(path) -> Released:
    """Read a model that ``save`` wrote.  JSON runs no code, unlike a pickle.

    What is read is checked in every part, but who wrote it is not: a guarantee is as good as the hand that the file
    comes from.

    Raises
    ------
    ValueError
        Naming the file, and what in it is not as :mod:`dpforest.models.release` says.
    OSError
        There is no such file, or it cannot be read.
    """
    description = storage.read_json(path)
    try:
        return released(description)
    except ValueError as error:
        said = str(error)  # which may show what stands there, however long that is
        raise ValueError(f"{path} cannot be read: {said if len(said) < 500 else said[:500] + '...'}") from None


def released(description: dict) -> Released:
    """The model that ``to_dict`` described, read back."""
    if isinstance(description, Mapping) and isinstance(description.get("schema"), Mapping):
        for (key, classifies), reader in READERS.items():
            if key in description and classifies == bool(description["schema"].get("classes")):
                return reader(description)
    raise ValueError("not a released model: it has neither a forest nor a linear model with its schema")


# -- what is read is not believed ------------------------------------------------------------------------------------


def _member(description, name: str, *kinds: type):
    """What stands there under this name, which must be of one of these types exactly."""
    if type(description) is not dict or name not in description:
        raise ValueError(f"not a released model: it has no {name!r}")
    value = description[name]
    if type(value) not in kinds or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"not a released model: {name} is {reprlib.repr(value)}")
    if isinstance(value, str) and len(value) > _LONGEST:
        raise ValueError(f"not a released model: {name} is too long")
    return value


def _check_members(description, key: str) -> tuple[str, int]:
    """The learner's name and the number of bins; nothing else may stand there than what the format says."""
    number = _member(description, "format", int)
    if number not in (1, FORMAT):
        raise ValueError(f"format {number!r} is not known; this version reads formats 1 and {FORMAT}")
    if more := description.keys() - {"format", "estimator", "n_bins", "schema", "guarantee", key}:
        raise ValueError(f"not a released model: nobody knows {reprlib.repr(sorted(map(str, more)))}")
    name = _member(description, "estimator", str)
    if not name.isidentifier():
        raise ValueError(f"not a released model: estimator is {reprlib.repr(name)}")
    return name, _member(description, "n_bins", int)


def _schema(description) -> Schema:
    kinds = {"numeric": (dict,), "categorical": (dict,), "classes": (list, type(None)), "target": (list, type(None)),
             "columns": (list,), "other": (dict,), "missing": (str,)}  # fmt: skip
    parts = {name: _member(description, name, *of) for name, of in kinds.items()}
    for name in ("numeric", "categorical"):
        storage.listed(list(parts[name].values()), f"schema: {name}", list)
    if len(storage.listed(parts["columns"], "schema: columns", str)) > MAX_COLUMNS:
        raise ValueError(f"not a released model: more than {MAX_COLUMNS} columns")
    return Schema.from_dict(description)


def _guarantee(description, number: int) -> Guarantee:
    name, nothing = (str,), type(None)
    epsilon, claimed = (_member(description, part, int, float, nothing) for part in ("epsilon", "claimed"))
    relation = _one_of(RELATIONS, "relation", _member(description, "relation", *name))
    leaks = tuple(
        Leak(_member(leak, "what", *name), _member(leak, "where", *name))
        for leak in storage.listed(_member(description, "leaks", list), "leaks", dict)
    )
    if number == 1:
        variant = "proved" if claimed is None and not leaks else "published"
        source, version, rests_on = UNKNOWN, None, []
    else:
        variant = _one_of(("proved", "published"), "variant", _member(description, "variant", *name))
        source = _one_of(SOURCES, "source", _member(description, "source", *name))
        version = _member(description, "version", str, nothing)
        rests_on = storage.listed(_member(description, "rests_on", list), "rests_on", str)
        for assumption in rests_on:
            _one_of(ASSUMPTIONS, "rests_on", assumption)
        _one_of((UNIT,), "unit", _member(description, "unit", *name))
        storage.listed(_member(description, "not_covered", list), "not_covered", str)
    if any(value is not None and not value > 0 for value in (epsilon, claimed)):
        raise ValueError("not a released model: epsilon must be positive, or null for infinity")
    if (leaks and epsilon is not None) or (variant == "proved" and (leaks or claimed is not None)):
        raise ValueError("not a released model: its guarantee contradicts itself")
    if variant == "published" and claimed is None:
        claimed = math.inf
    return Guarantee(
        math.inf if epsilon is None else float(epsilon), relation, None if claimed is None else float(claimed), leaks,
        variant, source, version, tuple(rests_on),
    )  # fmt: skip


def _one_of(known, what: str, value: str) -> str:
    if value not in known:
        raise ValueError(f"not a released model: {what} is {reprlib.repr(value)}, and not one of {sorted(known)}")
    return value


def _finite(value):
    return None if value is None or math.isinf(value) else float(value)
