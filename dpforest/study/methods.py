"""Methods side by side: the same data, splits, seeds and budgets for each, and what came of it as tables and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpforest.datasets import Dataset
from dpforest.study import plots
from dpforest.study.experiments import ceiling, differences, summary, sweep
from dpforest.study.sweep_tables import listed, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "NON_PRIVATE",
    "PROVED",
    "PUBLISHED",
    "Method",
    "at",
    "curves_of_methods",
    "gaps",
    "measured",
    "non_private",
    "orderings",
    "proved_epsilon",
    "rows_of_methods",
]

PUBLISHED, PROVED = "published", "proved"
NON_PRIVATE = "non-private"
_MEASURES = ["accuracy", "balanced_accuracy", "auc", "mse", "scaled_mse", "r2", "loss"]


def _nothing(data: str) -> dict:
    return {}


@dataclass(frozen=True)
class Method:
    """One learner in one variant, and which numbers of an experiment it takes.

    Attributes
    ----------
    name : str
        What tables and curves call it.
    variant : {"published", "proved"}
    build : callable
        The estimator's class.
    takes : tuple of str
        Those of ``n_estimators`` and ``max_depth`` that the experiment sets.
    tallest : int or None
        Largest height that is asked of it.
    options : mapping
        Parameters that are the same on all data.
    of_data : callable
        Further parameters, by the name of the data set: public taxonomies, for instance.
    alone : bool
        Whether there is one variant only, so that none is named.
    """

    name: str
    variant: str
    build: Callable
    takes: tuple[str, ...] = ("n_estimators", "max_depth")
    tallest: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    of_data: Callable[[str], Mapping[str, Any]] = _nothing
    alone: bool = False

    @property
    def label(self) -> str:
        """Name and variant, which is what rows are found by."""
        return f"{self.name}, {self.variant}"

    def setting(self, data: str, epsilon: float, n_trees: int, height: int) -> dict:
        """The keyword arguments of the estimator at one place of the experiment."""
        height = height if self.tallest is None else min(height, self.tallest)
        shape = {"n_estimators": n_trees, "max_depth": height}
        chosen = {name: value for name, value in shape.items() if name in self.takes}
        return {"epsilon": epsilon, "variant": self.variant, **chosen, **self.options, **self.of_data(data)}


def measured(
    methods: Iterable[Method],
    sets: Mapping[str, Dataset],
    budgets: Iterable[tuple[float, int]],
    seeds: Iterable[int],
    heights: Mapping[str, int],
) -> pd.DataFrame:
    """Fit every method on every set at every budget, with every seed.

    Parameters
    ----------
    methods : iterable of Method
    sets : mapping of names to Dataset
    budgets : iterable of (epsilon, number of trees)
    seeds : iterable of int
        Of the split and of the noise alike, so that methods are paired by it.
    heights : mapping of names to int
        Height of the trees on each set.

    Returns
    -------
    DataFrame
        A row for each fit: ``name``, ``method``, ``variant``, ``alone``, ``data``, ``epsilon``, ``trees``, ``height``,
        ``seed``, and the measures of :func:`~dpforest.study.experiments.sweep`.
    """
    budgets, seeds, rows = list(budgets), list(seeds), []
    for data in sets:
        for method in methods:
            for epsilon, n_trees in budgets:
                height = heights[data]
                found = sweep(method.build, sets[data], [method.setting(data, epsilon, n_trees, height)], seeds)
                where = {"data": data, "epsilon": epsilon, "trees": n_trees, "height": height, "alone": method.alone}
                what = {"name": method.label, "method": method.name, "variant": method.variant}
                rows.append(found[["seed", *(m for m in _MEASURES if m in found)]].assign(**what, **where))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=["name", "data", "epsilon", "seed"])


def non_private(
    model: Callable[[int, int], Any],
    sets: Mapping[str, Dataset],
    budgets: Iterable[tuple[float, int]],
    seeds: Iterable[int],
    heights: Mapping[str, int],
    n_bins: int,
) -> pd.DataFrame:
    """The same rows of a scikit-learn learner on the same codes; ``model(n_trees, height)`` makes it."""
    rows, known = [], {}
    for data in sets:
        for epsilon, n_trees in budgets:
            for seed in seeds:
                place = data, n_trees, seed  # nothing in it takes epsilon
                if place not in known:
                    known[place] = ceiling(model(n_trees, heights[data]), sets[data], [seed], n_bins)
                where = {"data": data, "epsilon": epsilon, "trees": n_trees, "height": heights[data], "alone": True}
                rows.append(
                    {"name": NON_PRIVATE, "method": NON_PRIVATE, "variant": "", "seed": seed, **where}
                    | known[place]
                    | {"loss": np.inf}
                )
    return pd.DataFrame(rows)


def gaps(
    rows: pd.DataFrame, one: str, other: str, measure: str, by: Sequence[str] = ("data", "epsilon")
) -> dict[tuple, np.ndarray]:
    """One named method less another, repeat by repeat, for each place of the experiment that has both.

    Returns
    -------
    dict
        By the values of ``by``, in the order of the rows: an array of shape (n_repeats,).
    """
    keys = [*by, "seed"]
    sides = [rows.loc[rows["name"] == name, [*keys, measure]] for name in (one, other)]
    if any(side.empty for side in sides):
        return {}
    both = sides[0].merge(sides[1], on=keys, validate="1:1", suffixes=("", " of the other"))
    both["gap"] = both[measure] - both[f"{measure} of the other"]
    return {key: part["gap"].to_numpy() for key, part in both.groupby(list(by), sort=False)}


# -- words ------------------------------------------------------------------------------------------------------------


def at(values: Iterable[float], of: Iterable[float]) -> str:
    """The budgets at which something holds, among all that were tried.

    >>> at([0.5], [0.5, 1.0]), at([], [1.0]), at([0.5, 1.0], [0.5, 1.0])
    ('ε = 0.5', 'no ε', 'every ε')
    """
    values, of = list(values), list(of)
    if not values:
        return "no ε"
    return "every ε" if len(values) == len(of) else f"ε = {listed(f'{value:g}' for value in values)}"


def proved_epsilon(rows: pd.DataFrame) -> str:
    """What is proved of a method, relative to the ε that it was asked for."""
    ratio = (rows["loss"] / rows["epsilon"]).max()
    return "ε = ∞" if np.isinf(ratio) else "ε" if ratio < 1 + 1e-9 else f"at most {ratio:.2f} ε"


# -- tables and curves ------------------------------------------------------------------------------------------------


def orderings(rows: pd.DataFrame, ours: str, rivals: Sequence[str], measure: str, better: int = -1) -> list[dict]:
    """For each data set, rival and variant, where ours is on the paper's side: by the means, and clearly so.

    Parameters
    ----------
    ours : str
        The method's name; published is compared with published, and proved with proved.
    rivals : sequence of str
    measure : str
    better : {-1, 1}
        The sign of ours less the rival's where the paper has ours before it.
    """
    table = []
    for variant in (PUBLISHED, PROVED):
        for rival in rivals:
            pair = rows[rows["name"].isin([f"{ours}, {variant}", f"{rival}, {variant}"])]
            found = differences(pair, f"{rival}, {variant}", measure, ["data", "epsilon"])
            for data, part in found.groupby("data", sort=False):
                low, high = (part["low"], part["high"]) if better > 0 else (-part["high"], -part["low"])
                here = part["epsilon"]
                table.append(
                    {
                        "data": short(str(data)),
                        "rival": rival,
                        "variant": variant,
                        "as in the paper at": at(here[better * part["mean"] > 0], here),
                        "clearly": at(here[low > 0], here),
                        "clearly the other way": at(here[high < 0], here),
                    }
                )
    return table


def rows_of_methods(rows: pd.DataFrame, measure: str, unit: float = 100, digits: int = 1) -> list[dict]:
    """A row per method and variant, a column per data set and budget: mean and half of the 95 % interval."""
    table = []
    for (method, variant), part in rows.groupby(["method", "variant"], sort=False):
        line = {"method": method, "variant": "" if part["alone"].all() else variant, "proved": proved_epsilon(part)}
        for _, row in summary(part, ["data", "epsilon"], measure).iterrows():
            said = f"{unit * row['mean']:.{digits}f} ±{unit * (row['high'] - row['mean']):.{digits}f}"
            line[f"{short(row['data'])}, ε = {row['epsilon']:g}"] = said
        table.append(line)
    return table


def curves_of_methods(
    rows: pd.DataFrame,
    measure: str,
    unit: float = 100,
    x: str = "epsilon",
    log: bool = False,
    titles: Callable[[str], str] = short,
    label: str = "privacy budget ε",
    y: str = "",
) -> tuple[Figure, np.ndarray]:
    """A panel per data set, a curve per method and variant with error bars over the repeats, and one legend above.

    A method has its colour; published is dotted and hollow, proved is solid, what has one variant only is grey, and
    without privacy it is black and dashed.
    """
    import matplotlib.pyplot as plt

    names, methods = list(dict.fromkeys(rows["data"])), list(dict.fromkeys(rows.loc[~rows["alone"], "method"]))
    said = rows.groupby(["method", "variant"], sort=False)
    figure, axes = plots.figure(len(names), 2.7)
    axes = np.atleast_1d(axes)
    figure.set_figheight(figure.get_figheight() + 0.21 * said.ngroups)
    for panel, data in zip(axes, names, strict=True):
        for (method, variant), every in said:
            here = every[every["data"] == data]
            words = (
                f"{method}, {proved_epsilon(every)}"
                if every["alone"].all()
                else (f"{method} {variant}, {proved_epsilon(every)}")
            )
            table = summary(here, [x], measure)
            reach = None if log else unit * (table["high"] - table["mean"])
            look = _look(method, variant, methods)
            panel.errorbar(table[x], unit * table["mean"], yerr=reach, capsize=2, label=words, **look)
        panel.set(title=titles(data), ylabel=y, xticks=sorted(rows.loc[rows["data"] == data, x].unique()))
        if log:
            panel.set_yscale("log")
    axes[-1].set_xlabel(label)
    plt.close(figure)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=1)
    return figure, axes


def _look(method: str, variant: str, methods: list[str]) -> dict[str, Any]:
    if method == NON_PRIVATE:
        return {"color": "black", "marker": "", "linestyle": (0, (5, 1))}
    if method not in methods:
        return {"color": "#777777", "marker": "", "linestyle": "-"}
    at = methods.index(method) % len(plots.PALETTE)
    published = {"linestyle": ":", "markerfacecolor": "white"} if variant == PUBLISHED else {"linestyle": "-"}
    return {"color": plots.PALETTE[at], "marker": plots.MARKERS[at], **published}
