"""Figures of the page on CART-DPsAdaBoost: 2 to 5 of the paper, for its algorithm and for the repair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpforest.study import plots
from dpforest.study.boosting_experiments import NOISELESS, PAPER, STUMPS, at
from dpforest.study.boosting_words import TABLE_3, Page
from dpforest.study.experiments import summary
from dpforest.study.sweep_tables import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["over_budget", "over_depth", "over_records", "roc", "stumps_over_budget"]

_LINES: dict[str, dict[str, Any]] = {
    "without noise": {"color": plots.PALETTE[2], "marker": "", "linestyle": "-.", "linewidth": 1.3},
    "AdaBoost, no privacy": {"color": "black", "marker": "", "linestyle": (0, (5, 1)), "linewidth": 1.3},
    "floor": {"color": "#777777", "marker": "", "linestyle": "-", "linewidth": 1.3},
}


def over_depth(page: Page, rows: str, measure: str, key: str | None = None) -> None:
    """A measure against the depth, a line for each budget: figures 2 and 4.

    Parameters
    ----------
    page : Page
    rows : {"proved", "published"}
    measure : str
    key : str, optional
        For the chapters.
    """
    table = getattr(page, rows)
    names = [name for name in page.protocol.sets if (at(table, name)["error"] == "").any()]
    figure, axes = _panels(names, len(page.protocol.epsilons) + 4)
    for panel, name in zip(axes, names, strict=True):
        here = at(table, name, error="")
        for k, epsilon in enumerate(page.protocol.epsilons):
            _line(
                panel,
                here[here["epsilon"] == epsilon],
                "max_depth",
                measure,
                f"{rows}, ε = {epsilon:g}",
                **_shade(page, k),
            )
        bare = here[here["epsilon"] == NOISELESS].groupby("max_depth")[measure].mean()
        depths = page.protocol.depths_of(name)
        panel.plot(depths, [bare[d] for d in depths], label="without noise", **_LINES["without noise"])
        plain = [page.plain[name, d][measure] for d in depths]
        panel.plot(depths, plain, label="AdaBoost, no privacy", **_LINES["AdaBoost, no privacy"])
        panel.plot(depths, [page.floors[name][measure]] * len(depths), label="floor", **_LINES["floor"])
        panel.set(title=short(name) + _papers_best(panel, page, name, measure), ylabel=measure)
        panel.set_xticks(depths)
    axes[-1].set_xlabel("depth of the trees")
    _legend(figure, axes)
    alt = (
        f"One panel per data set: {measure} of the {rows} classifier against the depth of its trees, a line for each "
        "budget, with the same without noise, scikit-learn's AdaBoost and the floor of the most frequent class."
    )
    plots.show(figure, alt=alt, key=key)


def _papers_best(panel: Axes, page: Page, name: str, measure: str) -> str:
    """Draw the paper's best accuracy where it is above the floor, and say it where it is not."""
    if measure != "accuracy" or name not in PAPER:
        return ""
    best = PAPER[name]["accuracy"]
    if best < page.floors[name]["accuracy"]:
        return f" (the paper: {best:.3f}, below)"
    look: Any = {"color": plots.PALETTE[1], "marker": "*", "markersize": 12, "linestyle": ""}
    panel.plot(page.head[name], best, label="the paper's best", **look)
    return ""


def over_records(page: Page, key: str | None = None) -> None:
    """Accuracy on training and on test records against the number of training records: figure 3."""
    names = list(page.protocol.sets)
    proved = page.grown["proved"]
    depths = sorted(proved["max_depth"].unique())
    figure, axes = _panels(names, 4 * len(depths) + 1)
    for panel, name in zip(axes, names, strict=True):
        for k, depth in enumerate(depths):
            for part in ("train", "test"):
                look: dict[str, Any] = {
                    "color": plots.PALETTE[k],
                    "marker": plots.MARKERS[k],
                    "linestyle": "-" if part == "test" else ":",
                }
                where = {"max_depth": depth, "part": part}
                _line(panel, at(proved, name, **where), "records", "accuracy", f"{part}, d = {depth}", **look)
                look |= {"marker": "x", "linewidth": 1.2, "linestyle": "--" if part == "test" else "-."}
                letter = at(page.grown["published"], name, **where)
                _line(panel, letter, "records", "accuracy", f"published, {part}, d = {depth}", **look)
        panel.axhline(page.floors[name]["accuracy"], label="floor (test)", **_LINES["floor"])
        plots.log_ticks(panel, sorted(at(proved, name)["records"].unique()))
        panel.set(title=short(name), ylabel="accuracy")
    axes[-1].set_xlabel("training records")
    _legend(figure, axes)
    alt = (
        "One panel per data set: accuracy on training and on test records against the number of training records, for "
        "several depths, as proved and as published, with the floor of the most frequent class."
    )
    plots.show(figure, alt=alt, key=key)


def over_budget(page: Page, key: str | None = None) -> None:
    """Precision, recall and F1 against the budget, with the paper's table 3: a panel for each measure."""
    figure, axes = plots.figure(3, 2.4, sharex=True)
    budgets = page.protocol.epsilons
    for panel, measure in zip(axes, TABLE_3, strict=True):
        for k, name in enumerate(page.protocol.sets):
            here = at(page.proved, name, max_depth=page.head[name])
            look: Any = {"color": plots.PALETTE[k], "marker": plots.MARKERS[k], "linestyle": "-"}
            _line(panel, here[here["epsilon"] != NOISELESS], "epsilon", measure, f"{short(name)}, proved", **look)
            floor = [page.floors[name][measure]] * len(budgets)
            look |= {"marker": "", "linestyle": ":", "linewidth": 1.3}
            panel.plot(budgets, floor, label=f"{short(name)}, floor", **look)
            if name in PAPER:
                printed = PAPER[name]["table 3"]
                said = [row[TABLE_3.index(measure)] for row in printed.values()]
                look |= {"marker": "x", "linestyle": "--"}
                panel.plot(list(printed), said, label=f"{short(name)}, paper", **look)
        panel.set_ylabel(measure)
        plots.log_ticks(panel, budgets)
    axes[-1].set_xlabel("privacy budget ε")
    _legend(figure, axes)
    alt = (
        "Three panels, precision, recall and F1 against the privacy budget: the repaired classifier, the floor of the "
        "most frequent class, and the paper's table 3 for each data set."
    )
    plots.show(figure, alt=alt, key=key)


def roc(page: Page, budgets: Iterable[float], key: str | None = None) -> None:
    """ROC curves of the repair at some budgets and of the published variant at the largest: figure 5 (a, b)."""
    names, budgets = list(page.protocol.sets), list(budgets)
    figure, axes = _panels(names, len(budgets) + 2)
    for panel, name in zip(axes, names, strict=True):
        fits: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            (f"proved, ε = {e:g}", {"epsilon": e}, {"color": plots.PALETTE[k], "linestyle": plots.DASHES[k]})
            for k, e in enumerate(budgets)
        ]
        letter = {"epsilon": page.top, "variant": "published"}
        fits.append((f"published, asked for ε = {page.top:g}", letter, {"color": "black", "linestyle": ":"}))
        for label, setting, look in fits:
            curve = page.protocol.curve(name, **setting)
            if curve is not None:
                panel.plot(*curve, label=label, marker="", **look)
        panel.plot([0, 1], [0, 1], label="floor", **_LINES["floor"])
        panel.set(title=f"{short(name)}, d = {page.head[name]}", ylabel="true positives")
    axes[-1].set_xlabel("false positives")
    _legend(figure, axes)
    alt = (
        "One panel per data set: ROC curves of the repaired classifier at several budgets and of the published one, "
        "and the diagonal."
    )
    plots.show(figure, alt=alt, key=key)


def stumps_over_budget(page: Page, key: str | None = None) -> None:
    """Accuracy of boosted stumps against the budget: figure 5 (c)."""
    names = list(page.protocol.sets)
    figure, axes = _panels(names, len(STUMPS) + 1, columns=1)
    for panel, name in zip(axes, names, strict=True):
        for k, who in enumerate(STUMPS):
            here = at(page.stumps, name, learner=who, error="")
            look = {"color": plots.PALETTE[k], "marker": plots.MARKERS[k], "linestyle": plots.DASHES[k]}
            _line(panel, here[here["epsilon"] != NOISELESS], "epsilon", "accuracy", who, **look)
        floor = [page.floors[name]["accuracy"]] * len(page.protocol.epsilons)
        panel.plot(page.protocol.epsilons, floor, label="floor", **_LINES["floor"])
        panel.set(title=short(name), ylabel="accuracy")
        plots.log_ticks(panel, page.protocol.epsilons)
    axes[-1].set_xlabel("privacy budget ε")
    _legend(figure, axes, columns=1)
    alt = (
        "One panel per data set: accuracy of boosted stumps against the privacy budget, for CART-DPsAdaBoost and "
        "DP-AdaBoost, each as proved and as published, with the floor of the most frequent class."
    )
    plots.show(figure, alt=alt, key=key)


# -- what they share ---------------------------------------------------------------------------------------------------


def _panels(names: Sequence[str], entries: int, columns: int = 2) -> tuple[Figure, Sequence[Axes]]:
    """A panel for each name, high enough for a legend of so many entries above the first."""
    count = max(len(names), 1)
    figure, axes = plots.figure(count, 2.5 + 0.25 * -(-entries // columns) / count)
    return figure, list(np.atleast_1d(axes))


def _line(panel: Axes, rows: pd.DataFrame, x: str, measure: str, label: str, **look: Any) -> None:
    """The mean over seeds; nothing where there is no fit."""
    if len(rows):
        table = summary(rows, [x], measure).sort_values(x)
        panel.plot(table[x].astype(float), table["mean"], label=label, **look)


def _shade(page: Page, k: int) -> dict[str, Any]:
    """The look of the k-th budget."""
    import matplotlib.pyplot as plt

    shades = np.linspace(0.9, 0.05, len(page.protocol.epsilons))
    return {
        "color": plt.get_cmap("viridis")(shades[k]),
        "marker": plots.MARKERS[k % len(plots.MARKERS)],
        "linestyle": plots.DASHES[k % len(plots.DASHES)],
    }


def _legend(figure: Figure, axes: Sequence[Axes], columns: int = 2) -> None:
    """One entry for each label of any panel."""
    found = {label: handle for panel in axes for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(list(found.values()), list(found), loc="outside upper left", ncols=columns)
