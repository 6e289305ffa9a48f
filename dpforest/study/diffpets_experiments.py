"""The experiments of the DiffPETs paper: its methods, and a judgement of each sentence that says what they showed.

A function here takes the rows of a run and returns a :class:`~dpforest.study.statements.rules.Finding`.  Sentences
are about methods as published; where a run has the repaired ones too, the finding says in words what they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpforest.datasets import Dataset
from dpforest.datasets.taxonomies import TAXONOMIES
from dpforest.papers.diff_lr import DiffLRRegressor, published_sensitivities, shares
from dpforest.papers.diffgen import DiffGenClassifier
from dpforest.papers.diffp_c45 import DiffPC45Classifier
from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
from dpforest.papers.diffprf import DiffPRFClassifier
from dpforest.papers.diffprfs import DiffPRFsClassifier
from dpforest.papers.dt_diff import DTDiffClassifier
from dpforest.papers.functional_mechanism import FunctionalMechanismRegressor, published_sensitivity
from dpforest.papers.random_trees import RandomTreesClassifier, RandomTreesRegressor
from dpforest.papers.sulq_id3 import SulqID3Classifier
from dpforest.study.methods import NON_PRIVATE, PROVED, PUBLISHED, Method, gaps, measured
from dpforest.study.statements.rules import NOT, REPRODUCED, Finding, cannot_read, cannot_run, everywhere, more, rises
from dpforest.study.statements.rules import throughout as judged_throughout
from dpforest.study.sweep_tables import listed, short

__all__ = [
    "CLASSIFIERS",
    "DRAWN",
    "READINGS",
    "REGRESSORS",
    "STARVED",
    "TABLES",
    "approaches",
    "below",
    "best_shape",
    "diff_lr_sensitivity",
    "grows_with_features",
    "half",
    "less_noise",
    "lower",
    "of_the_paper",
    "rises_with_budget",
    "same_at_every",
    "starved",
    "table_1",
    "throughout",
    "worse_than",
]

TREES = ("n_estimators",)
ADDED = ("wine-quality-white",)
MAJORITY, MEAN = "private majority", "private mean"


def both(name: str, build: Any, **fields: Any) -> tuple[Method, Method]:
    """A method as published and repaired."""
    return Method(name, PUBLISHED, build, **fields), Method(name, PROVED, build, **fields)


#: Figure 1: DiffPETs, the rivals of the paper, the later DiffPRFs, and one noisy answer for all records.
CLASSIFIERS = (
    *both("DiffPETs", DiffPETsClassifier),
    Method("RDT", PUBLISHED, RandomTreesClassifier, TREES),  # chooses its height itself
    Method("RDT", PROVED, RandomTreesClassifier, tallest=10),
    *both("DiffPRF", DiffPRFClassifier),
    *both("DiffPRFs", DiffPRFsClassifier),
    Method(MAJORITY, PROVED, RandomTreesClassifier, (), options={"n_estimators": 1, "max_depth": 0}, alone=True),
)
#: Figures 2 to 4.
DRAWN = tuple(method for method in CLASSIFIERS if method.name in ("DiffPETs", "RDT", "DiffPRF"))
#: What the paper leaves open: how many features a node tries; and of DiffPRF, by which score.
READINGS = (
    Method("DiffPETs, K = 1", PUBLISHED, DiffPETsClassifier, options={"max_features": 1}),
    Method("DiffPETs, K = all", PUBLISHED, DiffPETsClassifier, options={"max_features": "all"}),
    Method(
        "DiffPETs, K = all, 8 cuts",
        PUBLISHED,
        DiffPETsClassifier,
        options={"max_features": "all", "cuts_per_feature": 8},
    ),
    Method("DiffPRF, Gini", PUBLISHED, DiffPRFClassifier, options={"criterion": "gini"}),
)
#: With a thousandth of the budget, see :func:`starved`.
STARVED = Method("DiffPETs at ε/1000", PUBLISHED, DiffPETsClassifier)
#: Figures 5 and 6.
REGRESSORS = (
    *both("DiffPETs", DiffPETsRegressor),
    *both("FM", FunctionalMechanismRegressor, takes=()),
    *both("Diff-LR", DiffLRRegressor, takes=()),
    Method(MEAN, PROVED, RandomTreesRegressor, (), options={"n_estimators": 1, "max_depth": 0}, alone=True),
)


def _table(data: str) -> dict:
    return {"taxonomies": TAXONOMIES.get(data), "specialisations": 10}


#: Section 1.5: DiffGen, the two that are named before it, and DT-Diff.
TABLES = (
    *both("DiffGen", DiffGenClassifier, takes=(), of_data=_table),
    *both("DT-Diff", DTDiffClassifier, takes=(), of_data=_table),
    *both("SuLQ-based ID3", SulqID3Classifier, takes=()),
    *both("DiffP-C4.5", DiffPC45Classifier, takes=()),
)


def starved(
    sets: Mapping[str, Dataset], budgets: Iterable[tuple[float, int]], seeds: Iterable[int], heights: Mapping[str, int]
) -> pd.DataFrame:
    """DiffPETs as published with a thousandth of each budget, in rows that name the budget itself."""
    seeds = list(seeds)
    parts = [measured([STARVED], sets, [(e / 1000, t)], seeds, heights).assign(epsilon=e) for e, t in budgets]
    return pd.concat(parts, ignore_index=True)


def of_the_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows on the paper's own data sets, which its sentences are about, without those that are ours in addition."""
    return rows[~rows["data"].isin(ADDED)]


def half(sets: Mapping[str, Dataset]) -> dict[str, int]:
    """The paper's height of trees on each set, half the number of features."""
    return {name: max(1, data.schema.n_features // 2) for name, data in sets.items()}


# -- sentences about every budget -------------------------------------------------------------------------------------


def throughout(
    rows: pd.DataFrame,
    ours: str,
    rivals: Sequence[str],
    measure: str,
    better: int,
    unit: str = "points",
    factor: float = 100.0,
) -> Finding:
    """One method is better than each rival on every data set at every budget: all by their full names.

    The finding also says in how many comparisons the means alone are on that side.

    Parameters
    ----------
    better : {-1, 1}
        The sign of ours less the rival's where ours is better.
    """
    found, right = {}, 0
    for rival in rivals:
        for (data, epsilon), gap in gaps(rows, ours, rival, measure).items():
            name = f"{short(data)}, {rival.rsplit(', ', 1)[0]}, ε = {epsilon:g}"
            found[name] = more(better * gap, unit, factor)
            right += int(better * gap.mean() > 0)
    finding = judged_throughout(found)
    return replace(finding, ours=f"so by the means in {right} of {len(found)}, {finding.ours}") if found else finding


def lower(rows: pd.DataFrame, rivals: Sequence[str], measure: str) -> Finding:
    """DiffPETs has a lower error than its rivals at every budget; the finding says what the repaired ones do."""
    published, proved = (
        throughout(rows, f"DiffPETs, {variant}", [f"{rival}, {variant}" for rival in rivals], measure, -1)
        for variant in (PUBLISHED, PROVED)
    )
    return replace(published, ours=f"{published.ours}. Once all are repaired: {proved.ours}")


def below(rows: pd.DataFrame, one: str, other: str, measure: str = "accuracy", at: float | None = None) -> Finding:
    """One method has less of a measure than another on every data set, at one budget, or on average over all."""
    if at is not None:
        rows = rows[rows["epsilon"] == at]
    found = {}
    for data in dict.fromkeys(rows["data"]):
        each = gaps(rows[rows["data"] == data], other, one, measure)
        if each:
            found[short(data)] = more(np.mean(list(each.values()), axis=0))
    return everywhere(found)


# -- sentences about a budget that rises ------------------------------------------------------------------------------


def _along(rows: pd.DataFrame, name: str, measure: str) -> dict[str, tuple[np.ndarray, list[float]]]:
    """Of each data set the measure, shape (n_repeats, n_budgets), and the budgets in rising order."""
    found = {}
    for data, part in rows[rows["name"] == name].groupby("data", sort=False):
        table = part.pivot(index="seed", columns="epsilon", values=measure).sort_index(axis=1)
        found[str(data)] = table.to_numpy(), [float(epsilon) for epsilon in table.columns]
    return found


def rises_with_budget(rows: pd.DataFrame, name: str, measure: str = "accuracy") -> Finding:
    """A method's measure rises with the budget, on every data set."""
    found = {}
    for data, (values, budgets) in _along(rows, name, measure).items():
        found[short(data)] = rises(values, budgets) if len(budgets) > 1 else cannot_run("one budget has no slope")
    return everywhere(found)


def approaches(rows: pd.DataFrame, name: str, measure: str = "scaled_mse") -> Finding:
    """A method's error comes nearer to that of the model without noise as the budget rises, on every data set.

    Judged by the gap between the two; the finding also gives their ratio at both ends of the grid.
    """
    found = {}
    bare = _along(rows, NON_PRIVATE, measure)
    for data, (values, budgets) in _along(rows, name, measure).items():
        if len(budgets) < 2:
            found[short(data)] = cannot_run("one budget has no slope")
            continue
        below, _ = bare[data]
        gap = rises(below - values, budgets, "thousandths", 1000)
        first, last = (values.mean(axis=0) / below.mean(axis=0))[[0, -1]]
        ends = f"{first:.1f} times the error without noise at ε = {budgets[0]:g}, {last:.1f} times at {budgets[-1]:g}"
        found[short(data)] = replace(gap, ours=f"the gap falls by {gap.ours.removeprefix('+')}; {ends}")
    return everywhere(found)


def same_at_every(rows: pd.DataFrame, name: str, measure: str = "scaled_mse") -> Finding:
    """A method's measure does not depend on the budget: not by one bit, in any repeat."""
    spread = [np.ptp(values, axis=1).max() for values, _ in _along(rows, name, measure).values()]
    if not spread:
        return cannot_run("none of the data sets is here")
    verdict = REPRODUCED if max(spread) == 0 else NOT
    return Finding(verdict, f"it differs by {max(spread):g} between budgets; nothing in it takes ε")


# -- what cannot be read, and what only the sizes decide --------------------------------------------------------------


def table_1(sets: Mapping[str, Dataset]) -> Finding:
    """Records and features of the paper's data sets, as they are here."""
    sizes = []
    for name, data in sets.items():
        sizes.append(f"{short(name)} {len(data.pooled().X):,} × {data.schema.n_features}")
    return cannot_read(f"records × features here: {listed(sizes)}")


def best_shape(trees: pd.DataFrame, heights: pd.DataFrame, data: str) -> Finding:
    """A figure of which no curve can be read: where DiffPETs is best here, over the number of trees and the height."""
    said = []
    for column, part in (("trees", trees), ("height", heights)):
        here = part[(part["data"] == data) & (part["name"] == f"DiffPETs, {PUBLISHED}")]
        if here.empty:
            return cannot_run(f"{short(data)} is not in this run")
        means = here.groupby(["epsilon", column])["accuracy"].mean().unstack()
        places = list(dict.fromkeys(str(place) for place in means.idxmax(axis=1)))
        said.append(f"best {column} {' or '.join(places)}, up to {100 * means.to_numpy().max():.1f} %")
    return cannot_read(f"here: {'; '.join(said)}")


# -- sensitivities ----------------------------------------------------------------------------------------------------


def diff_lr_sensitivity(features: Iterable[int]) -> Finding:
    """Diff-LR lowers the sensitivity of FM, where sensitivity is what the noise of a coefficient is made from.

    Its parts have smaller sensitivities than the whole, and smaller budgets.  What decides is the scale of the noise,
    sensitivity over budget, of each part compared with that of FM.
    """
    ratios: list[float] = []
    for d in features:
        parts = published_sensitivities(d)
        each = shares(parts, (1, d, d * (d + 1) // 2), "proportional")
        ratios += [
            delta / share / published_sensitivity(d, logistic=False) for delta, share in zip(parts, each, strict=True)
        ]
    if not ratios:
        return cannot_run("none of the data sets is here")
    most, least = max(ratios), min(ratios)
    noise = f"noise of a coefficient: {least:.2f} to {most:.2f} times FM's"
    said = f"{noise}; its parts have 2, 4d and 2d² in place of 2(d + 1)²"
    return Finding(REPRODUCED if most < 1 - 1e-9 else NOT, said)


def grows_with_features(features: Sequence[int]) -> Finding:
    """FM's sensitivity grows with the number of features, and Diff-LR's; the finding says how much faster."""
    if len(set(features)) < 2:
        return cannot_run("fewer than two numbers of features are here")
    fewest, most = min(features), max(features)
    first, last = published_sensitivity(fewest, logistic=False), published_sensitivity(most, logistic=False)
    ends = f"{first:g} at d = {fewest}, {last:g} at d = {most}, for both"
    said = f"{ends}: {last / first:.2f} times for {most / fewest:.2f} d"
    return Finding(REPRODUCED if last > first else NOT, said)


def less_noise(rows: pd.DataFrame, features: Iterable[int], rivals: Sequence[str]) -> Finding:
    """DiffPETs has a lower sensitivity than linear regression and therefore the smaller error: both are judged."""
    theirs = [published_sensitivity(d, logistic=False) for d in features]
    if not theirs:
        return cannot_run("none of the data sets is here")
    ours, least = 2.0, min(theirs)
    size = Finding(REPRODUCED if ours < least else NOT, f"{ours:g} against {least:g} at least")
    error = throughout(rows, f"DiffPETs, {PUBLISHED}", [f"{rival}, {PUBLISHED}" for rival in rivals], "scaled_mse", -1)
    return everywhere({"sensitivity": size, "lower error": error})


def worse_than(rows: pd.DataFrame, name: str, trivial: str, measure: str) -> Finding:
    """A method has a larger error than one noisy answer for all records, on every data set at every budget."""
    return throughout(rows, name, [trivial], measure, 1)
