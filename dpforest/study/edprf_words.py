"""The sentences of the page *eDPRF on real data*: each is put together from the rows of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from dpforest.study.experiments import differences, summary
from dpforest.study.sweep_tables import against, listed, points, short, sign, where

__all__ = ["advice", "by_budget", "by_depth", "changes", "sides"]

EDPRF, TREES, PUBLISHED = "eDPRF", "random trees", "published, ε = ∞"
_BETTER = {"better": 1, "worse": -1, "no clear difference": 0}


def by_budget(rows: pd.DataFrame, name: str, measure: str, low: float, high: float, bare: float, epsilon: float) -> str:
    """Where a forest leaves the floor, and where it is apart from random trees; what it has at ``epsilon``.

    Parameters
    ----------
    rows : DataFrame
        Sweeps of both learners over ``epsilon``.
    name, measure : str
        A data set, and what was measured.
    low, high, bare : float
        The floor, the ceiling, and the paper's forest without noise.
    epsilon : float
    """
    here = rows[rows["data"] == name]
    table = summary(here[here["learner"] == EDPRF], ["epsilon"], measure)
    signs = _signs(against(here, EDPRF, TREES, ["epsilon"], measure), "epsilon")
    words = [where("above the floor", table.loc[table["low"] > low, "epsilon"], table["epsilon"])]
    for value, word in ((1, "above random trees"), (-1, "below random trees")):
        if value in signs.values():
            words.append(where(word, [e for e, s in signs.items() if s == value], signs))
    if not any(signs.values()):
        words.append("at no ε clearly apart from random trees")
    said = f"- *{short(name)}*: {'; '.join(words)}."
    at = table.set_index("epsilon")["mean"].get(epsilon)
    if at is None:
        return said
    way = (at - low) / (high - low)
    return (
        said
        + f" At ε = {epsilon:g} it has {at:.1%}, {way:.0%} of the way from floor to ceiling; without noise {bare:.1%}."
    )


def by_depth(rows: pd.DataFrame, name: str, measure: str) -> str:
    """How a forest changes from the shallowest to the deepest, and how it compares with the published one."""
    here = rows[rows["data"] == name]
    ours, depths = here[here["learner"] == EDPRF], sorted(here["levels"].unique())
    first, last = depths[0], depths[-1]
    ends = ours[ours["levels"].isin([first, last])]
    change = differences(ends.assign(name=ends["levels"].astype(str)), str(first), measure).iloc[0]
    verb = {1: "rises", -1: "falls", 0: "does not clearly change"}[sign(change)]
    best = summary(ours, ["levels"], measure).set_index("levels")["mean"].idxmax()
    gap = against(here, EDPRF, PUBLISHED, ["levels"], measure)
    signs = _signs(gap, "levels")
    apart = [
        where(word, at, depths, "treeDepth")
        for value, word in ((1, "above"), (-1, "below"), (0, "not clearly apart"))
        if (at := [levels for levels, s in signs.items() if s == value])
    ]
    return (
        f"- *{short(name)}*: from {first} to {last} levels it {verb} ({points(change['mean'])} points); "
        f"best at {best}. Proved against published: {'; '.join(apart)} ({points(gap['mean'].min())} to "
        f"{points(gap['mean'].max())} points)."
    )


def sides(effects: pd.DataFrame, name: str) -> dict[str, list[str]]:
    """On which data sets a change is clearly better, clearly worse, or neither."""
    table = effects[effects["name"] == name]
    return {
        word: [short(row["data"]) for _, row in table.iterrows() if sign(row) == value]
        for word, value in _BETTER.items()
    }


def changes(effects: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """A line per change of a setting: where it is better or worse."""
    lines = []
    for name in names:
        found = sides(effects, name)
        if not found["better"] + found["worse"]:
            lines.append(f"- *{name}*: no clear difference anywhere.")
            continue
        every = sum(map(len, found.values()))
        said = [f"{word} on {'all' if len(at) == every else listed(at)}" for word, at in found.items() if at]
        lines.append(f"- *{name}*: {'; '.join(said)}.")
    return lines


def advice(
    by_epsilon: pd.DataFrame,
    by_levels: pd.DataFrame,
    trees: pd.DataFrame,
    effects: pd.DataFrame,
    names: Sequence[str],
    floors: Mapping[str, Mapping[str, float]],
) -> list[str]:
    """What a user should take from the page.

    Parameters
    ----------
    by_epsilon, by_levels : DataFrame
        Sweeps over the budget (of both learners) and over treeDepth.
    trees : DataFrame
        The proved forest with other numbers of trees, in column ``trees``.
    effects : DataFrame
        Differences to the default.
    names : sequence of str
        The changes.
    floors : mapping of data sets to measures
    """
    return [
        _lost(by_epsilon, floors),
        _structure(by_epsilon),
        _blind(by_epsilon, floors),
        _depth(by_levels),
        _trees(trees),
        _options(effects, names),
    ]


def _signs(table: pd.DataFrame, axis: str) -> dict:
    return {row[axis]: sign(row) for _, row in table.iterrows()}


def _lost(rows: pd.DataFrame, floors: Mapping[str, Mapping[str, float]]) -> str:
    lost = [
        f"{short(name)} at ε = {e:g}"
        for (name, e), part in rows.groupby(["data", "epsilon"], sort=False)
        if (summary(part, ["learner"])["low"] <= floors[name]["accuracy"]).all()
    ]
    if not lost:
        return (
            "- **The floor is clearly beaten** in accuracy, by eDPRF or by random trees, on every set and at every ε "
            "tried."
        )
    return (
        f"- **Where nothing clearly beats the floor** in accuracy, neither eDPRF nor random trees: {listed(lost)}. "
        "There say the most frequent label, and spend the budget on something else."
    )


def _structure(rows: pd.DataFrame) -> str:
    gap = against(rows, EDPRF, TREES, ["data", "epsilon"])
    firsts = []
    for name, here in gap.groupby("data", sort=False):
        signs = _signs(here, "epsilon")
        worth = [e for e in signs if all(s > 0 for other, s in signs.items() if other >= e)]
        firsts.append(f"from ε = {min(worth):g} on ({short(name)})" if worth else f"at no ε tried ({short(name)})")
    better = [f"{short(row['data'])} at ε = {row['epsilon']:g}" for _, row in gap.iterrows() if sign(row) < 0]
    return (
        f"- **Learning the structure pays**, clearly, against random trees: {listed(firsts)}. "
        f"Random trees are clearly better on: {listed(better)}."
    )


def _blind(rows: pd.DataFrame, floors: Mapping[str, Mapping[str, float]]) -> str:
    measured = summary(rows[rows["learner"] == EDPRF], ["data", "epsilon"], "balanced_accuracy")
    blind = [
        f"{short(row['data'])} at ε = {row['epsilon']:g}"
        for _, row in measured.iterrows()
        if row["mean"] < floors[row["data"]]["balanced_accuracy"] + 0.05
    ]
    if not blind:
        return (
            "- **Balanced accuracy** of eDPRF is more than 5 points above that of a single label on every set and at "
            "every ε tried."
        )
    return (
        f"- **Look at balanced accuracy too.** eDPRF stays within 5 points of saying one label only: {listed(blind)}."
    )


def _depth(rows: pd.DataFrame) -> str:
    ours = rows[rows["learner"] == EDPRF]
    means = ours.pivot_table(index="data", columns="levels", values="accuracy", sort=False)
    deepest = max(means.columns)
    best = [f"{means.loc[name].idxmax()} ({short(name)})" for name in means.index]
    behind = [f"{100 * (means.loc[name].max() - means.loc[name, deepest]):.1f}" for name in means.index]
    return (
        f"- **Depth.** The best treeDepth is {listed(best)}; the deepest, {deepest}, loses {listed(behind)} points "
        "against it."
    )


def _trees(rows: pd.DataFrame) -> str:
    means = rows.pivot_table(index="data", columns="trees", values="accuracy", sort=False)
    best = [f"{means.loc[name].idxmax():g} ({short(name)})" for name in means.index]
    return (
        "- **Trees.** A record serves one tree only, so more trees mean fewer records for each. Of "
        f"{listed(f'{n:g}' for n in sorted(means.columns))}, the best is {listed(best)}."
    )


def _options(effects: pd.DataFrame, names: Sequence[str]) -> str:
    kinds: dict[tuple[bool, bool], list[str]] = {}
    for name in names:
        found = sides(effects, name)
        kinds.setdefault((bool(found["better"]), bool(found["worse"])), []).append(name)
    good, bad, mixed, rest = (
        kinds.get(kind, []) for kind in ((True, False), (False, True), (True, True), (False, False))
    )
    return (
        f"- **Options**, by accuracy. Better than the default somewhere and worse nowhere: {listed(good)}. Worse "
        f"somewhere and better nowhere: {listed(bad)}. Better here and worse there: {listed(mixed)}. No clear "
        f"difference anywhere: {listed(rest)}."
    )
