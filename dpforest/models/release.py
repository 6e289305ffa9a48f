"""The released model: its form in JSON, and what reads it back.

The file is one JSON object (RFC 8259, UTF-8) with exactly these members:

``format``
    2, or 3 where the guarantee has a delta.  Files of format 1 are read, too: their guarantee has the first four
    members only, so their source is unknown.
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
    ``epsilon``, a positive number, or null: no finite loss is proved.  ``delta``, in format 3 alone: above 0, at most
    0.01.  ``relation``: ``"add-remove"`` or ``"replace-one"``.  ``claimed``: null for the proved variant, else what
    the paper claims, null for infinity.  ``leaks``: a list of objects with ``what`` and ``where``; empty where
    ``epsilon`` is a number.  ``variant``: ``"proved"`` or ``"published"``.  ``source``: ``"secure"``; ``"seeded"``,
    and then the model is not for release; or ``"unknown"``, for a model that came from a file of format 1.
    ``version``: of the library that fitted it, or null.  ``rests_on``: a list; ``"SipHash"``: coins of records were
    computed by it; ``"n_max=1000"``: of no more records than that, a public cap.  ``unit``:
    ``"one row"``, or ``"a person of at most k rows"`` with a whole number k (``"1 row"``), of whose rows so many were
    learned from: then data sets are neighbours that differ by all rows of one person.  ``not_covered``: a list of what
    the guarantee does not speak of, for human readers.  See :class:`dpforest.privacy.Guarantee`.
``certificate``
    Only where it was asked for: the ledger, for ``dpforest verify``.  ``format``: 1.  ``claim``: ``"thm-certificate"``
    where the charges are losses, ``"thm-certificate-delta"`` where they are rhos.  ``charges``: objects with
    ``query`` and ``mechanism``, and what one asking costs, ``add_remove`` and ``replace_one``.  ``scopes``:
    objects with a ``label``; ``apart``, whether a record of it is in one of its parts at most; its ``charges`` and its
    ``parts``, by their places in the two lists, from 0.  A part is listed before, and the last scope is the model.
    ``spent``: what all of it adds up to for one row, ``add_remove`` and ``replace_one``.
    Charges are exact, as texts ``"7/8"``.  ``digest``: the SHA-256 of all else, as JSON with sorted keys and no spaces.

Numbers, texts and truth values stand as such and are never converted: a reader refuses ``"1"``, ``1.0`` and ``true``
where a whole number is due.  The file holds no record, no exact count and no seed.
"""

from __future__ import annotations

import copy
import math
import os
import reprlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from dpforest import storage
from dpforest.messages import shown
from dpforest.models.boosted import BoostedClassifier, BoostedForest, BoostedRegressor
from dpforest.models.forest import MAX_DEPTH, Forest, ForestClassifier, ForestRegressor
from dpforest.models.linear import LinearClassifier, LinearModel, LinearRegressor
from dpforest.models.predictor import FORMAT, WITH_DELTA, Predictor
from dpforest.privacy import (
    RELATIONS,
    SOURCES,
    UNKNOWN,
    Guarantee,
    Leak,
    account,
    check_delta,
    check_rests_on,
    unit_of,
)
from dpforest.privacy.certificate import Certificate
from dpforest.schema import Schema

__all__ = [
    "MAX_DEPTH",
    "Released",
    "ReleasedBoosted",
    "ReleasedBoostedRegressor",
    "ReleasedForest",
    "ReleasedForestRegressor",
    "ReleasedLinearClassifier",
    "ReleasedLinearRegressor",
    "load",
    "released",
]

#: What is released, by its key in the JSON: each has ``from_dict``, ``to_dict`` and ``check_schema``.
MODELS: dict[str, type[Forest] | type[BoostedForest] | type[LinearModel]] = {
    "forest": Forest,
    "boosted": BoostedForest,
    "linear": LinearModel,
}
_LONGEST = 200  # characters of a name in a file


class Released(Predictor):
    """A released model read back from JSON: it predicts, and states its guarantee.

    Parameters
    ----------
    description : dict
        What ``to_dict`` of a fitted estimator gave.

    Attributes
    ----------
    forest_, boosted_ or linear_, schema_, classes_, guarantee_, n_bins_
        As on the estimator that was fitted.
    feature_names_in_, n_features_in_
        The columns of the schema, in the order in which an array must have them.
    certificate_
        None, or the ledger that the file has for ``dpforest verify``; reading does not check what it adds up to.

    Raises
    ------
    ValueError
        The description is not one, member by member: nothing is converted, and nothing is taken on trust.
    """

    def __init__(self, description: dict) -> None:
        self.description = description
        try:
            self._estimator, self.n_bins_ = _check_members(description, self._RELEASED)
            self.certificate_ = _read_certificate(description)
            self.schema_ = Schema.written(description["schema"], "not a released model")
            self.guarantee_ = _guarantee(description["guarantee"], description["format"])
            model = MODELS[self._RELEASED].from_dict(_member(description, self._RELEASED, dict))
            model.check_schema(self.schema_, self.n_bins_)
            setattr(self, f"{self._RELEASED}_", model)
            self.feature_names_in_ = np.array(self.schema_.columns, dtype=object)
            self.n_features_in_ = self.schema_.n_features
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not a released model: {shown(error)}") from None
        if (self.schema_.classes is None) == self._CLASSIFIES:
            raise ValueError("not a released model of this kind: its schema declares another kind of answer")
        if self.schema_.classes is not None:
            self.classes_ = self.schema_.classes

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What :func:`sklearn.base.clone` makes another one of: the description."""
        return {"description": self.description}

    def __sklearn_clone__(self) -> Released:
        return account.inherit(self, type(self)(copy.deepcopy(self.description)))

    def _certificate(self) -> Certificate:
        if self.certificate_ is None:
            raise ValueError("this model was saved without a certificate: save the estimator that was fitted again")
        return self.certificate_

    def __repr__(self) -> str:
        return f"<released {self._name()}: {self._released()}, {self.guarantee_!r}>"

    def _name(self) -> str:
        return self._estimator


class ReleasedForest(Released, ForestClassifier):
    """A released forest of a classifier: see :class:`Released`."""


class ReleasedForestRegressor(Released, ForestRegressor):
    """A released forest of a regressor: see :class:`Released`."""


class ReleasedBoosted(Released, BoostedClassifier):
    """A released boosted model of classes: see :class:`Released`."""


class ReleasedBoostedRegressor(Released, BoostedRegressor):
    """A released boosted model of a target: see :class:`Released`."""


class ReleasedLinearClassifier(Released, LinearClassifier):
    """A released linear model of classes: see :class:`Released`."""


class ReleasedLinearRegressor(Released, LinearRegressor):
    """A released linear model of a target: see :class:`Released`."""


#: Who reads a released model, by its key in the JSON and whether it classifies.
READERS: dict[tuple[str, bool], type[Released]] = {
    ("forest", True): ReleasedForest,
    ("forest", False): ReleasedForestRegressor,
    ("boosted", True): ReleasedBoosted,
    ("boosted", False): ReleasedBoostedRegressor,
    ("linear", True): ReleasedLinearClassifier,
    ("linear", False): ReleasedLinearRegressor,
}


def load(path: str | os.PathLike[str]) -> Released:
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
        said = str(error)  # which may show a value of the file, however long that is
        raise ValueError(f"{path} cannot be read: {said if len(said) < 500 else said[:500] + '...'}") from None


def released(description: dict) -> Released:
    """The model that ``to_dict`` described, read back."""
    if isinstance(description, Mapping) and isinstance(description.get("schema"), Mapping):
        for (key, classifies), reader in READERS.items():
            if key in description and classifies == bool(description["schema"].get("classes")):
                return reader(description)
    raise ValueError("not a released model: it has neither a forest nor a linear model with its schema")


# -- what is read is not believed ------------------------------------------------------------------------------------


def _member(description: Any, name: str, *kinds: type) -> Any:
    """The value under this name, which must be of one of these types exactly."""
    if type(description) is not dict or name not in description:
        raise ValueError(f"not a released model: it has no {shown(name)}")
    value = description[name]
    if type(value) not in kinds or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"not a released model: {name} is {reprlib.repr(value)}")
    if isinstance(value, str) and len(value) > _LONGEST:
        raise ValueError(f"not a released model: {name} is too long")
    if isinstance(value, str) and not value.isprintable():
        raise ValueError(f"not a released model: {name} holds characters that cannot be printed")
    return value


def _check_members(description: dict, key: str) -> tuple[str, int]:
    """The learner's name and the number of bins; there may be no other members than those of the format."""
    number = _member(description, "format", int)
    if number not in (1, FORMAT, WITH_DELTA):
        raise ValueError(
            f"format {shown(number)} is not known; this version reads formats 1, {FORMAT} and {WITH_DELTA}"
        )
    if more := description.keys() - {"format", "estimator", "n_bins", "schema", "guarantee", "certificate", key}:
        raise ValueError(f"not a released model: unknown fields {reprlib.repr(sorted(map(str, more)))}")
    name = _member(description, "estimator", str)
    if not name.isidentifier():
        raise ValueError(f"not a released model: estimator is {reprlib.repr(name)}")
    return name, _member(description, "n_bins", int)


def _read_certificate(description: dict) -> Certificate | None:
    if "certificate" not in description:
        return None
    try:
        return Certificate.written(description["certificate"])
    except ValueError as error:
        raise ValueError(f"not a released model: {error}") from None


def _guarantee(description: Any, number: int) -> Guarantee:
    name, nothing = (str,), type(None)
    epsilon, claimed = (_member(description, part, int, float, nothing) for part in ("epsilon", "claimed"))
    delta = check_delta(_member(description, "delta", float)) if number == WITH_DELTA else 0.0
    if (delta > 0) != (number == WITH_DELTA) or (number != WITH_DELTA and "delta" in description):
        raise ValueError("not a released model: format 3 has a delta, and no other has")
    relation = _one_of(RELATIONS, "relation", _member(description, "relation", *name))
    leaks = tuple(
        Leak(_member(leak, "what", *name), _member(leak, "where", *name))
        for leak in storage.listed(_member(description, "leaks", list), "leaks", dict)
    )
    if number == 1:
        variant = "proved" if claimed is None and not leaks else "published"
        source, version, rests_on, max_rows = UNKNOWN, None, [], None
    else:
        variant = _one_of(("proved", "published"), "variant", _member(description, "variant", *name))
        source = _one_of(SOURCES, "source", _member(description, "source", *name))
        version = _member(description, "version", str, nothing)
        rests_on = storage.listed(_member(description, "rests_on", list), "rests_on", str)
        for assumption in rests_on:
            try:
                check_rests_on(assumption)
            except ValueError as error:
                raise ValueError(f"not a released model: rests_on is unknown: {error}") from None
        max_rows = _max_rows(_member(description, "unit", *name))
        storage.listed(_member(description, "not_covered", list), "not_covered", str)
    if any(value is not None and not value > 0 for value in (epsilon, claimed)):
        raise ValueError("not a released model: epsilon must be positive, or null for infinity")
    if (leaks and epsilon is not None) or (variant == "proved" and (leaks or claimed is not None)):
        raise ValueError("not a released model: its guarantee contradicts itself")
    if variant == "published" and claimed is None:
        claimed = math.inf
    return Guarantee(
        math.inf if epsilon is None else float(epsilon),
        relation,
        None if claimed is None else float(claimed),
        leaks,
        variant,
        source,
        version,
        tuple(rests_on),
        delta,
        max_rows,
    )


def _max_rows(unit: str) -> int | None:
    """The most rows of a person, from the words of the unit; None where it is one row."""
    digits = "".join(filter("0123456789".__contains__, unit))[:7]
    found = int(digits) if digits else None
    _one_of((unit_of(found),) if found != 0 else (), "unit", unit)
    return found


def _one_of(known: Collection[str], what: str, value: str) -> str:
    if value not in known:
        raise ValueError(f"not a released model: {what} is {reprlib.repr(value)}, and not one of {sorted(known)}")
    return value
