"""What every predictor does, fitted or read back from a file: it describes itself, and finds the rows it answers to.

NumPy is enough: scikit-learn is imported where it is scikit-learn that asks.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpforest import storage
from dpforest.engines import is_out_of_core, table_of
from dpforest.messages import shown
from dpforest.models.card_page import write_card
from dpforest.models.out_of_schema import warn_of_strays
from dpforest.privacy import SECURE, UNKNOWN, Guarantee, account, display
from dpforest.privacy.certificate import Certificate, certificate_of, digest_of
from dpforest.schema import Schema, frames

if TYPE_CHECKING:
    from dpforest.models.release import Released

__all__ = ["FORMAT", "WITH_DELTA", "Answer", "Classifying", "Predictor", "Regressing", "anywhere"]

FORMAT = 2  # of the JSON
WITH_DELTA = 3  # of a model whose guarantee has a delta, which a reader of the other formats must not overlook


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
        model.tells_strays = False  # of each block by itself, wherever it lies

    def __call__(self, frame: Any) -> np.ndarray:
        return getattr(self._model, self._name)(frame)


def anywhere(method: Callable[[Any, Any], np.ndarray]) -> Callable[[Any, Any], Any]:
    """Let a method that answers row by row do so where the rows lie, if an engine reads them."""

    @wraps(method)
    def answer(self: Any, X: Any) -> Any:
        self = copy.copy(self)  # one fit, whatever is learned meanwhile
        if not is_out_of_core(X):
            return method(self, X)
        from dpforest.models.release import released

        model, name = released(self._describe()), method.__name__
        return table_of(X).rows(Answer(model, name), model.schema_.columns, name)

    return answer


class Predictor:
    """What a released model says of itself, from the ``schema_``, ``n_bins_`` and ``guarantee_`` that it has."""

    #: What is released: the key of the model in the JSON, and with an underscore the attribute that holds it.
    _RELEASED = "forest"
    #: Whether classes are predicted, or a number.
    _CLASSIFIES: bool
    schema_: Schema
    n_bins_: int
    classes_: Any
    guarantee_: Guarantee
    n_jobs: int | None = None
    #: Whether a query is warned of its values outside the schema.
    tells_strays: bool = True

    def to_dict(self, *, seeded: bool = False, certificate: bool = False) -> dict:
        """The released model as lists and numbers, ready for JSON: no record, no exact count, no seed.

        Parameters
        ----------
        seeded : bool
            Whether a model may be written whose noise did not come from the operating system: for research, not for
            release.  What is written says so, and so does every copy of it.
        certificate : bool
            Whether the ledger is written, too, for ``dpforest verify`` (:prf:ref:`thm-certificate`, with a delta
            :prf:ref:`thm-certificate-delta`): each charge, and how the records of a scope were divided.  All of it is
            released already, as a function of the answers.

        Returns
        -------
        dict
            The members are those of the file, see :mod:`dpforest.models.release`.

        Raises
        ------
        ValueError
            The fit drew from a seed, or it is not known from what, and ``seeded`` was not asked for; or a certificate
            was, and there is no ledger, or no theorem in Coq that covers it.
        """
        self = copy.copy(self)  # one fit, whatever is learned meanwhile
        self._released()
        if self.guarantee_.source != SECURE and not seeded:
            origin = (
                "it is not known where its noise came from"
                if self.guarantee_.source == UNKNOWN
                else (
                    "its noise came from a seed (source='seeded'), or its rows were put aside by one, and anyone who "
                    "has or finds the seed can subtract the noise, or knows who was put aside"
                )
            )
            raise ValueError(
                f"this {self._name()} is not for release: {origin}. Fit and put aside with source='secure', or "
                "ask with seeded=True for what says of itself that it is for research"
            )
        description = self._describe()
        if certificate:
            description["certificate"] = self._certificate().to_dict()
            description["certificate"]["digest"] = digest_of(description)
        return description

    def save(self, path: str | os.PathLike[str], *, seeded: bool = False, certificate: bool = False) -> None:
        """Write :meth:`to_dict` as a JSON file, whole or not at all; :func:`~dpforest.models.release.load` reads it.

        The parameters and the errors are those of :meth:`to_dict`; a disk that cannot be written raises OSError.
        """
        storage.write(path, json.dumps(self.to_dict(seeded=seeded, certificate=certificate), allow_nan=False))

    def _certificate(self) -> Certificate:
        """The certificate of this model."""
        if not hasattr(self, "ledger_"):
            raise ValueError("there is no ledger to certify: ask the estimator that was fitted")
        return certificate_of(self.ledger_)

    def card(self, **added: Any) -> str:
        """The model card, a page of Markdown or HTML: :func:`dpforest.inspect.card` of this model.

        Parameters
        ----------
        **added
            ``purpose``, ``data``, ``contact``, ``notes``, ``test`` and ``format``, as there; so are the errors.

        Returns
        -------
        str

        Guarantee
        ---------
        Nothing is paid: the model and its ledger alone are read (:prf:ref:`thm-post-processing`).
        """
        self = copy.copy(self)  # one fit, whatever is learned meanwhile
        size, ledger = self._released().size, getattr(self, "ledger_", None)
        return write_card(self._name(), size, self.schema_, self.guarantee_, ledger, **added)

    def _describe(self) -> dict:
        promise = self.guarantee_
        return {
            "format": WITH_DELTA if promise.delta else FORMAT,
            "estimator": self._name(),
            "n_bins": int(self.n_bins_),
            "schema": self.schema_.to_dict(),
            self._RELEASED: self._released().to_dict(),
            "guarantee": promise.to_dict(),
        }

    def _repr_html_(self) -> str | None:
        """A box for a notebook, once there is a model.

        It replaces scikit-learn's diagram, which lists the parameters, the seed among them.
        """
        self = copy.copy(self)  # one fit, whatever is learned meanwhile
        if not hasattr(self, "guarantee_"):
            return None
        promise, columns = self.guarantee_, len(self.schema_.columns)
        answer = "a number" if self.schema_.classes is None else ", ".join(map(str, self.schema_.classes[:8]))
        more = ", ..." if len(self.schema_.classes if self.schema_.classes is not None else ()) > 8 else ""
        rows = [("says", answer + more), ("from", f"{columns} columns"), *promise.rows()]
        return display.box(self._name(), rows, self._spent_bar(), promise.caution)

    def _spent_bar(self) -> str:
        """A bar of what this run spent of what was promised; nothing where it is not known, or without bound."""
        return ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        html = self._repr_html_()
        return {"text/plain": repr(self), **({} if html is None else {"text/html": html})}

    def __getstate__(self) -> dict[str, Any]:
        return account.marked({**super().__getstate__()})  # type: ignore[dict-item]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # a copy within the process is the same in all respects; __getstate__ is for what leaves it
        twin = self.__copy__()
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def _name(self) -> str:
        return type(self).__name__

    def _n_threads(self) -> int:
        return 1 if self.n_jobs is None else self.n_jobs  # the counting kernels check it

    def _released(self) -> Any:
        if not hasattr(self, f"{self._RELEASED}_"):  # of a learner, which is scikit-learn's
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {self._name()} instance is not fitted yet: call fit first")
        return getattr(self, f"{self._RELEASED}_")

    def _predict_from_scores(self, scores: np.ndarray) -> np.ndarray:
        """What the model says of records with these scores: class probabilities, or numbers of the target."""
        raise NotImplementedError

    def _codes(self, X: Any) -> np.ndarray:
        """Codes of the table on the grid that the model was learned on."""
        table = frames.columns_of(X)
        encoded = self.schema_.encode(table, self.n_bins_)
        if self.tells_strays:
            strays, named = {**encoded.clipped, **encoded.other}, table.names is not None
            warn_of_strays(self.schema_, strays, encoded.n_rows, fit=False, named=named)
        return encoded.codes

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)


class Classifying(Predictor):
    """What scikit-learn asks of a classifier; it is imported when it asks."""

    _CLASSIFIES = True

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of :meth:`predict`, see :meth:`sklearn.base.ClassifierMixin.score`; ``y`` may name a column."""
        from sklearn.base import ClassifierMixin

        return ClassifierMixin.score(self, X, _answers_column(X, y), sample_weight)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.target_tags.required = "classifier", ClassifierTags(), True
        return tags


class Regressing(Predictor):
    """What scikit-learn asks of a regressor; it is imported when it asks."""

    _CLASSIFIES = False

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination, see :meth:`sklearn.base.RegressorMixin.score`; ``y`` may name a column."""
        from sklearn.base import RegressorMixin

        return RegressorMixin.score(self, X, _answers_column(X, y), sample_weight)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags, tags.target_tags.required = "regressor", RegressorTags(), True
        return tags


def _answers_column(X: Any, y: Any) -> Any:
    """The answers to the rows of X, of which ``y`` may be a column."""
    if not isinstance(y, str):
        return y
    if is_out_of_core(X):
        raise TypeError(
            f"where an engine reads X, pass the answers themselves and not the name of their column, {shown(y)}"
        )
    table = frames.columns_of(X)
    if table.names is None:
        raise TypeError(f"{shown(y)} names a column of X, so X must be a frame")
    return table.pick([y])[0]
