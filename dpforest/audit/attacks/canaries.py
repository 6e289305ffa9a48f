"""Canaries of any learner: coins put records in or leave them out, one fit, and guesses by score.

What :prf:ref:`thm-one-run-delta` asks for is kept here: the coins are fair, independent of each other and of the fit,
no one who scores or guesses is shown them, and the number of guesses is fixed before any score is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from dpforest.arithmetic import log
from dpforest.messages import shown

__all__ = ["Guessed", "guess_by_score"]


class Guessed(NamedTuple):
    """How many guesses were right, of how many, about how many canaries."""

    correct: int
    guesses: int
    canaries: int


class _Labelled(NamedTuple):
    """Records as a learner takes them: a frame or an array of features, and a label each."""

    X: Any
    y: np.ndarray

    def rows(self, which: np.ndarray) -> _Labelled:
        return _Labelled(self.X.loc[which] if isinstance(self.X, pd.DataFrame) else self.X[which], self.y[which])

    @property
    def keys(self) -> list[tuple]:
        """Each record as something to compare."""
        if isinstance(self.X, pd.DataFrame):
            cells = self.X.itertuples(index=False, name=None)
        else:
            cells = ((row.tobytes(),) if row.dtype != object else tuple(row) for row in self.X)
        return [(*row, label) for row, label in zip(cells, self.y.tolist(), strict=True)]


def guess_by_score(
    estimator: Any, canaries: Any, replacements: Any, records: Any, score: Callable | None, guesses: Any, rng: Any
) -> Guessed:
    """Fit once, with the canaries that coins have put in, and guess the coins of the highest and lowest scores."""
    table = _table(canaries, "canaries")
    m = len(table.y)
    top, bottom = _numbers(guesses, m)  # before there is a coin, a fit or a score
    other = None if replacements is None else _table(replacements, "replacements")
    rest = None if records is None else _table(records, "records")
    _check_distinct(table, other)
    coins_rng, fit_rng, tie_rng = rng.spawn(3)  # no coin is a number that the fit draws, whatever its own seed
    coins = coins_rng.integers(2, size=m).astype(bool)
    model = _fitted(_seeded(estimator, fit_rng), _training(table, other, rest, coins))
    scores = _scores(model, table, score)
    if other is not None:
        scores = _gap(scores, _scores(model, other, score))
    order = np.lexsort((tie_rng.permutation(m), scores))  # ties by a coin of their own
    right = int(coins[order[m - top :]].sum()) + int((~coins[order[:bottom]]).sum())
    return Guessed(right, top + bottom, m)


def _table(pair: Any, name: str) -> _Labelled:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"{name} must be a pair (X, y) of features and labels, not {type(pair).__name__}")
    X = pair[0].reset_index(drop=True) if isinstance(pair[0], pd.DataFrame) else np.asarray(pair[0])
    y = np.asarray(pair[1])
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y) or not len(y):
        raise ValueError(
            f"{name} must be (X, y) with X of shape (n, n_features), y of shape (n,) and n at least 1; got shapes "
            f"{X.shape} and {y.shape}"
        )
    return _Labelled(X, y)


def _numbers(guesses: Any, m: int) -> tuple[int, int]:
    """How many of the highest scores are guessed in, and how many of the lowest out."""
    if guesses is None:
        return m - m // 2, m // 2
    if not isinstance(guesses, tuple | list) or len(guesses) != 2 or not all(map(_is_count, guesses)):
        raise TypeError(
            "guesses must be two whole numbers, (in, out), fixed before there are scores: numbers that are chosen by "
            f"what the scores turn out to be prove nothing; got {shown(guesses)}"
        )
    top, bottom = map(int, guesses)
    if min(top, bottom) < 0 or not 0 < top + bottom <= m:
        raise ValueError(
            f"guesses={shown(guesses)} must be zero or more, and together from 1 to the number of canaries, {m}"
        )
    return top, bottom


def _is_count(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _check_distinct(table: _Labelled, other: _Labelled | None) -> None:
    keys = table.keys
    seen: dict[tuple, int] = {}
    for place, key in enumerate(keys):
        if (first := seen.setdefault(key, place)) != place:
            raise ValueError(
                f"canaries {first} and {place} are the same record, and no score can tell their coins apart: give each "
                "canary features of its own"
            )
    if other is None:
        return
    _check_alike(table, other, "replacements")
    if len(other.y) != len(table.y):
        raise ValueError(f"each canary needs one replacement: {len(table.y)} canaries, {len(other.y)} replacements")
    for place, (one, two) in enumerate(zip(keys, other.keys, strict=True)):
        if one == two:
            raise ValueError(f"canary {place} is its own replacement, and its coin decides nothing")


def _check_alike(table: _Labelled, other: _Labelled, name: str) -> None:
    """Whether both tables have the same columns, in the same form."""
    one, two = (list(t.X.columns) if isinstance(t.X, pd.DataFrame) else t.X.shape[1] for t in (table, other))
    if one != two:
        raise ValueError(
            f"{name} must have the columns of the canaries, in a frame or an array as they are: {shown(two)} against "
            f"{shown(one)}"
        )


def _training(table: _Labelled, other: _Labelled | None, rest: _Labelled | None, coins: np.ndarray) -> _Labelled:
    """The fixed records, then the canaries that are in; or each canary or its replacement, as its coin says."""
    parts = [table.rows(coins)] if other is None else [_either(table, other, coins)]
    if rest is not None:
        _check_alike(table, rest, "records")
        parts.insert(0, rest)
    return _joined(parts)


def _either(table: _Labelled, other: _Labelled, coins: np.ndarray) -> _Labelled:
    both = _joined([table, other])
    at = np.arange(len(coins)) + np.where(coins, 0, len(coins))
    X = both.X.iloc[at].reset_index(drop=True) if isinstance(both.X, pd.DataFrame) else both.X[at]
    return _Labelled(X, both.y[at])


def _joined(parts: list[_Labelled]) -> _Labelled:
    frames = [part.X for part in parts]
    framed = isinstance(frames[0], pd.DataFrame)
    X = pd.concat(frames, ignore_index=True) if framed else np.concatenate(frames)
    return _Labelled(X, np.concatenate([part.y for part in parts]))


def _seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """An unfitted copy, whose seeds are drawn here; what draws from the operating system goes on to do so."""
    if not callable(getattr(estimator, "fit", None)):
        raise TypeError(f"one_run needs an estimator with fit, not {type(estimator).__name__}")
    model = clone(estimator, safe=False)
    if not hasattr(model, "get_params"):
        return model
    options = model.get_params()
    seeds = {}
    for name in sorted(options):
        stem = name.removesuffix("random_state")
        own = stem != name and (not stem or stem.endswith("__"))
        if own and options.get(f"{stem}source") != "secure":
            seeds[name] = int(rng.integers(2**31 - 1))
    return model.set_params(**seeds)


def _fitted(model: Any, training: _Labelled) -> Any:
    try:
        fitted = model.fit(training.X, training.y)
    except Exception as error:
        raise RuntimeError(
            f"{type(model).__name__} could not be fitted to the {len(training.y)} records that the coins have put "
            f"together ({type(error).__name__}: {error}); records= gives it others to learn from, whatever the coins"
        ) from error
    return model if fitted is None else fitted


def _scores(model: Any, table: _Labelled, score: Callable | None) -> np.ndarray:
    if score is not None and not callable(score):
        raise TypeError(f"score must be a function of (model, X, y), not {type(score).__name__}")
    found = (score or _log_odds_of_label)(model, table.X, table.y)
    try:
        scores = np.asarray(found, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"score must return one number for each canary, not {type(found).__name__}") from error
    if scores.shape != table.y.shape or np.isnan(scores).any():
        raise ValueError(
            f"score must return one number for each of {len(table.y)} canaries, none of them NaN; got shape "
            f"{scores.shape} with {int(np.isnan(scores).sum())} NaN"
        )
    return scores


def _gap(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """By how much the first is larger; 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(one == two, 0.0, one - two)


def _log_odds_of_label(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Of each record, the log-odds that the model gives its label; minus infinity for one that it has not met.

    The order is that of the probability of the label, or of minus its log loss.  The odds are of a sum over the other
    classes, so that probabilities that round to one do not tie.
    """
    if not callable(getattr(model, "predict_proba", None)) or not hasattr(model, "classes_"):
        raise TypeError(
            f"{type(model).__name__} has no predict_proba with classes_: give score=, a function of (model, X, y)"
        )
    law = np.asarray(model.predict_proba(X), dtype=float)
    own = np.asarray(model.classes_)[None, :] == y[:, None]
    return log(np.where(own, law, 0).sum(axis=1)) - log(np.where(own, 0, law).sum(axis=1))
