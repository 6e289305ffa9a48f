"""Words and tables of an experiment's page: numbers of a sweep as text, and lists of where something holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpforest.datasets import Dataset
from dpforest.study.experiments import differences, summary, sweep

__all__ = [
    "against",
    "heading",
    "listed",
    "marked",
    "paired",
    "points",
    "say",
    "short",
    "sign",
    "spread",
    "stacked",
    "where",
    "wide",
]

_SHORT = {
    "wall-following-robot": "robot",
    "breast-cancer": "cancer",
    "congressional-voting": "voting",
    "census-income-kdd": "census",
    "wine-quality-red": "red wine",
    "wine-quality-white": "white wine",
}


def short(name: str) -> str:
    """A data set's name where room is scarce.

    >>> short("wall-following-robot"), short("adult")
    ('robot', 'adult')
    """
    return _SHORT.get(name, name)


def heading(name: str) -> str:
    """The short name with a soft hyphen where a narrow screen may break it."""
    return {"mushroom": "mush\u00adroom", "nursery": "nurs\u00adery"}.get(name, short(name))


def points(change: float) -> str:
    """A difference of two shares in percentage points, without a signed zero.

    >>> points(0.0312), points(-0.0001)
    ('+3.1', '+0.0')
    """
    return f"{round(100 * change, 1) + 0.0:+.1f}"


def sign(row: Mapping) -> int:
    """1 or -1 where the interval from ``low`` to ``high`` lies on one side of zero, else 0."""
    return int(row["low"] > 0) - int(row["high"] < 0)


def marked(row: Mapping) -> str:
    """A difference in points, with a mark where its interval excludes zero."""
    return points(row["mean"]) + {1: "▲", -1: "▼", 0: ""}[sign(row)]


def spread(row: Mapping, digits: int = 1) -> str:
    """Mean and half the interval, in %."""
    return f"{100 * row['mean']:.{digits}f} ±{100 * (row['high'] - row['mean']):.{digits}f}"


def listed(words: Iterable, empty: str = "none") -> str:
    """Words as one reads them aloud.

    >>> listed(["a", "b", "c"]), listed([])
    ('a, b and c', 'none')
    """
    said = [str(word) for word in words]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said) or empty


def where(what: str, at: Iterable[float], of: Iterable[float], by: str = "ε =") -> str:
    """Say at which values of an axis something holds.

    >>> where("better", [0.5, 1], [0.1, 0.5, 1])
    'better at ε = 0.5 and 1'
    """
    at, of, every = list(at), list(of), by.removesuffix(" =")
    if len(at) == len(of):
        return f"{what} at every {every}"
    return f"{what} at {by} {listed(f'{x:g}' for x in at)}" if at else f"at no {every} {what}"


def say(*lines: str) -> None:
    """Show lines of Markdown in a notebook."""
    from IPython.display import Markdown, display

    display(Markdown("\n".join(lines)))


def stacked(
    build: Callable, sets: Mapping[str, Dataset], settings: Any, seeds: Iterable[int], **columns: Any
) -> pd.DataFrame:
    """One :func:`~dpforest.study.experiments.sweep` per data set, with the set's name in column ``data``.

    Parameters
    ----------
    build : callable
    sets : mapping of names to data sets
    settings : settings of a sweep, or a function of the data set
        The latter where they depend on what is public about the set.
    seeds : iterable of int
    **columns
        Further columns, the name of the learner for instance.
    """
    seeds = list(seeds)
    parts = [
        sweep(build, data, settings(data) if callable(settings) else settings, seeds).assign(data=name, **columns)
        for name, data in sets.items()
    ]
    return pd.concat(parts, ignore_index=True)


def against(
    rows: pd.DataFrame, one: str, other: str, by: Sequence[str], measure: str = "accuracy", column: str = "learner"
) -> pd.DataFrame:
    """Differences of two learners, paired by seed, see :func:`~dpforest.study.experiments.differences`."""
    pair = rows[rows[column].isin([one, other])].assign(name=rows[column])
    return differences(pair, other, measure, by)


def wide(rows: pd.DataFrame, x: str, measure: str, label: str, cell: Callable[[Mapping], str] = spread) -> pd.DataFrame:
    """A row per value of ``x`` and a column per data set, means with half the interval; ``label`` names the rows."""
    table = summary(rows, ["data", x], measure)
    table["cell"] = table.apply(cell, axis=1)
    out = table.pivot(index=x, columns="data", values="cell")
    out = out.loc[list(dict.fromkeys(rows[x])), list(dict.fromkeys(rows["data"]))]
    return out.rename(columns=heading).rename_axis(index=None, columns=label)


def paired(rows: pd.DataFrame, one: Any, other: Any, measure: str = "accuracy", column: str = "name") -> np.ndarray:
    """The measure of one setting less that of another, an entry for each seed that both have."""
    values = rows.pivot(index="seed", columns=column, values=measure)
    return (values[one] - values[other]).dropna().to_numpy()
