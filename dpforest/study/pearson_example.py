"""The patent's example of 14 records, taken for the table of days on which tennis is played, and its root by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpforest import scores
from dpforest.chance import Seeded
from dpforest.datasets import Dataset
from dpforest.learners.averaged_cuts import best_of_parts
from dpforest.papers.pearson_tree import PearsonTreeClassifier
from dpforest.schema import Schema
from dpforest.study.experiments import quiet
from dpforest.study.statements.rules import NOT, REPRODUCED, Finding

__all__ = ["distribution", "drawn_roots", "like_the_patents", "roots", "split_budget", "weather"]

#: Quinlan's 14 days, in his order: outlook, temperature, humidity, windy, and whether tennis is played.
_DAYS = """
sunny hot high no no / sunny hot high yes no / overcast hot high no yes / rain mild high no yes
rain cool normal no yes / rain cool normal yes no / overcast cool normal yes yes / sunny mild high no no
sunny cool normal no yes / rain mild normal no yes / sunny mild normal yes yes / overcast mild high yes yes
overcast hot normal no yes / rain mild high yes no
"""
_VALUES = {
    "outlook": ["sunny", "overcast", "rain"],
    "temperature": ["hot", "mild", "cool"],
    "humidity": ["high", "normal"],
    "windy": ["no", "yes"],
}


def weather(outlook: Sequence[str] = ("sunny", "overcast", "rain")) -> Dataset:
    """Fourteen days, four attributes and whether tennis was played: 5 times no, 9 times yes.

    The patent gives no more than these numbers; that it means this table is a reading.

    Parameters
    ----------
    outlook : sequence of str
        In which order the values of this attribute have the codes 0, 1, 2: a correlation depends on it.
    """
    days = [day.split() for day in _DAYS.strip().replace("\n", " / ").split(" / ")]
    frame = pd.DataFrame(days, columns=[*_VALUES, "tennis"])
    schema = Schema(categorical=_VALUES | {"outlook": list(outlook)}, classes=["no", "yes"])
    return Dataset.of(frame, "tennis", schema, name="weather")


def distribution(data: Dataset) -> str:
    """The class distribution, as the patent writes it.

    >>> distribution(weather())
    'no: 5, yes: 9'
    """
    counts = data.y.value_counts()
    return ", ".join(f"{label}: {counts.get(label, 0)}" for label in ("no", "yes"))


def like_the_patents(data: Dataset) -> Finding:
    """Whether a table has the numbers of the patent's example: records, attributes, and records of each class."""
    found = f"{len(data.X)} records, {data.schema.n_features} attributes, {distribution(data)}"
    return Finding(REPRODUCED if found == "14 records, 4 attributes, no: 5, yes: 9" else NOT, found)


def roots(data: Dataset, n_parts: int = 1, seed: int = 0) -> pd.DataFrame:
    """What steps 3 to 5 find at the root: of each attribute the mean over the parts of the largest correlation.

    Parameters
    ----------
    data : Dataset
        Of categories.
    n_parts : int, default 1
        The records are dealt to so many parts by coins.
    seed : int, default 0
        Of the coins.

    Returns
    -------
    DataFrame
        A row for each attribute: its mean absolute correlation, and the values that its mean cut sends to the first
        child.
    """
    codes = data.schema.encode(data.X, 2).codes.astype(int)
    sizes = np.array([len(data.schema.categorical[name]) for name in data.X.columns])
    starts = np.cumsum(sizes) - sizes
    part = Seeded(seed).integers(n_parts, len(data.X))
    label = np.searchsorted(["no", "yes"], data.y)
    counts = np.zeros((1, sizes.sum(), n_parts, data.schema.n_classes), dtype=np.int64)
    for start, column in zip(starts, codes, strict=True):
        np.add.at(counts[0], (start + column, part, label), 1)
    found, ends = best_of_parts(counts, np.ones((1, len(sizes)), dtype=bool), sizes, scores.absolute_pearson)
    return pd.DataFrame(
        {
            "attribute": list(data.X.columns),
            "correlation": found[0],
            "first child": [
                ", ".join(data.schema.categorical[name][: end + 1])
                for name, end in zip(data.X.columns, ends[0], strict=True)
            ],
        }
    )


def drawn_roots(data: Dataset, epsilon: float = 1.0, runs: int = 200) -> dict[str, int]:
    """How often each attribute is the root, where the published tree with one part draws it.

    Parameters
    ----------
    data : Dataset
    epsilon : float, default 1
        Of the tree; its splits have the share that its leaves leave.
    runs : int, default 200
        With the seeds 0, 1, 2, ...
    """
    counts = dict.fromkeys(data.X.columns, 0)
    with quiet():
        for seed in range(runs):
            tree = _published(data.schema, epsilon, seed).fit(data.X, data.y)
            counts[data.X.columns[tree.forest_.feature[0]]] += 1
    return counts


def split_budget(epsilon: float = 1.0) -> float:
    """What the patent's epsilon_1 is where a tree of :func:`drawn_roots` has this epsilon."""
    return (1 - PearsonTreeClassifier().leaf_share) * epsilon


def _published(schema: Schema, epsilon: float, seed: int) -> PearsonTreeClassifier:
    return PearsonTreeClassifier(
        epsilon=epsilon,
        schema=schema,
        n_parts=1,
        max_depth=1,
        variant="published",
        selection="exponential",
        random_state=seed,
    )
