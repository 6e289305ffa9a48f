"""Figures of an experiment's page: a panel per data set, or a row per change of a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpforest.study import plots
from dpforest.study.experiments import summary
from dpforest.study.sweep_tables import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curves", "dots"]


def curves(
    rows: pd.DataFrame,
    x: str,
    measure: str,
    *,
    levels: Mapping[str, Mapping[str, Any]],
    styles: Mapping[str, Mapping],
    label: str,
    height: float = 2.2,
) -> Figure:
    """A panel per data set: a curve per learner with 95 % intervals, and lines of learners that have none.

    Parameters
    ----------
    rows : DataFrame
        Columns ``data``, ``learner``, ``x``, ``seed`` and the measure.
    x, measure : str
        ``"epsilon"`` is drawn on a logarithmic axis.
    levels : mapping of data sets to mappings of names to numbers
        What is drawn as a line, a number or one for each value of ``x``.
    styles : mapping of names to keyword arguments of a line
        In the order of the legend.
    label : str
        Of the horizontal axis.
    """
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(rows["data"]))
    figure, axes = plots.figure(len(names), height, sharex=True)
    drawn: dict = {}
    for panel, name in zip(np.atleast_1d(axes), names, strict=True):
        here = rows[rows["data"] == name]
        ticks = sorted(here[x].unique())
        for learner in here["learner"].unique():
            table = summary(here[here["learner"] == learner], [x], measure)
            reach = 100 * (table["high"] - table["mean"])
            panel.errorbar(table[x], 100 * table["mean"], yerr=reach, capsize=3, label=learner, **styles[learner])
        for line, values in levels[name].items():
            height_of = np.broadcast_to(100 * np.asarray(values, dtype=float), len(ticks))
            panel.plot(ticks, height_of, label=line, **{**styles[line], "linewidth": 1.3})
        panel.set(title=short(name), ylabel=f"{measure.replace('_accuracy', '')}, %")
        if x == "epsilon":
            plots.log_ticks(panel, ticks)
        else:
            panel.set_xticks(ticks)
        drawn |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    panel.set_xlabel(label)
    plt.close(figure)  # shown by the cell that asked for it
    order = [name for name in styles if name in drawn]
    figure.legend([drawn[name] for name in order], order, loc="outside upper left", ncols=2)
    return figure


def dots(table: pd.DataFrame, names: Sequence[str], label: str) -> Figure:
    """A row per change, and in it a mark per data set with its interval.

    Parameters
    ----------
    table : DataFrame
        Of :func:`dpforest.study.experiments.differences` by ``data``.
    names : sequence of str
        The changes, from top to bottom.
    label : str
        Of the horizontal axis, on which differences are in points.
    """
    import matplotlib.pyplot as plt

    figure, panel = plots.figure(1, 1.1 + 0.62 * len(names))
    sets = list(dict.fromkeys(table["data"]))
    for k, name in enumerate(sets):
        here = table[table["data"] == name].set_index("name").loc[list(names)]
        y = np.arange(len(names)) + 0.17 * (k - (len(sets) - 1) / 2)
        reach = 100 * (here["high"] - here["mean"])
        look = {"linestyle": "", "marker": plots.MARKERS[k], "color": plots.PALETTE[k], "label": short(name)}
        panel.errorbar(100 * here["mean"], y, xerr=reach, **look)
    panel.axvline(0, color="black", linewidth=1)
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.5, -0.5)
    for edge in np.arange(len(names) - 1) + 0.5:
        panel.axhline(edge, color="#d9d9d9", linewidth=0.6)
    panel.grid(axis="y", visible=False)
    panel.set_xlabel(label)
    figure.legend(loc="outside upper left", ncols=4, handletextpad=0.1, columnspacing=0.8)
    plt.close(figure)
    return figure
