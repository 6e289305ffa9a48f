"""What the eDPRF paper says that its experiments show: its figures 5 and 6, table 2 and the alignment, judged.

Figures 5 and 6 exchange one step of the forest at a time: :class:`ExchangedForest` is the published forest with such
a step as a parameter.  The functions below it turn sweeps into findings, one function a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from dpforest.budgets import PLANS, Shares
from dpforest.datasets import Dataset
from dpforest.learners.growth import Frontier, one_vote, pure, votes
from dpforest.learners.parameters import OneOf
from dpforest.learners.run import Run, Selection
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import Forest
from dpforest.papers.edprf import PURITY, EDPRFClassifier
from dpforest.registry import PAPERS
from dpforest.study.experiments import quiet
from dpforest.study.statements.rules import Finding, cannot_run, everywhere, more, within
from dpforest.study.sweep_tables import listed, paired, short, stacked

__all__ = [
    "FIGURE_5",
    "READINGS",
    "STEPS",
    "TABLE_2",
    "TRADITION_2",
    "ExchangedForest",
    "by_set",
    "curve_within",
    "exchanged",
    "grown",
    "leaf_budgets",
    "missing_rivals",
    "node_budgets",
    "rivals",
    "same_on_all_paths",
    "steps_pay",
]

#: Laplace noise on the class counts of a leaf: of scale 1/ε, a count's sensitivity being 1, or of scale 2/ε.
LAPLACE = {"laplace": 1.0, "laplace-2": 0.5}
LABELS = (*SELECTIONS, *LAPLACE)
#: The paper's table 2: accuracy in %.
TABLE_2 = {"eDPRF": 85.98, "DiffPRF_linear": 82.95, "TpDPRF": 81.91, "DiffPRF": 78.89}
#: Where a rival of table 2 is, or would be, in the registry.
RIVALS = {"DiffPRF_linear": "diffprf_linear", "TpDPRF": "tpdprf", "DiffPRF": "diffprf"}
#: The axes of the paper's figure 5, in %: its two curves run between them.
FIGURE_5 = {"diabetes": (76, 83), "wall-following-robot": (69, 77)}
#: Formula (8) as it is printed, and without its division by the node's number of records.
READINGS = {"without 1/|D|": "gini", "as printed": "normalised-gini"}
#: The forests of figures 5 and 6, by the paper's names: what is exchanged of the published one.
STEPS: dict[str, dict[str, str]] = {
    "tradition": {"splits": "exponential", "labels": "laplace"},
    "tradition_spl_imp": {"labels": "laplace"},
    "tradition_leaf_imp": {"splits": "exponential"},
    "both, eDPRF": {},
}
#: The traditional forest where the noise on a leaf's counts is of scale 2/ε, what a replaced record would ask for.
TRADITION_2 = {"splits": "exponential", "labels": "laplace-2"}


class ExchangedForest(EDPRFClassifier):
    """The published eDPRF forest with one of its steps exchanged; by default it is the published one, bit by bit.

    It is for comparisons with what was published and as little private as that.
    """

    variant: Annotated[Literal["published"], "The paper's algorithm; there is no other."] = "published"
    splits: Annotated[str, OneOf(SELECTIONS), "Mechanism of the splits."] = "permute-and-flip"
    labels: Annotated[
        str,
        OneOf(LABELS),
        "How a leaf finds its label; ``laplace``: by the largest of its noisy class counts.",
    ] = "permute-and-flip"
    plan: Annotated[str, OneOf(PLANS), "How the budget is divided over the levels."] = "aligned"

    def as_published(self, run: Run) -> Forest:
        """The steps of the published forest, with the plan of the budget as a parameter."""
        run.start_forest(self.n_estimators, "equal-split", self.max_nodes)
        shares = Shares(self.plan, run.epsilon, self.max_depth + 1)
        for level, nodes in run.levels(self.max_depth):
            splits = nodes.splittable & ~pure(run.peek(nodes, PURITY))
            self._make_leaves(run, nodes[~splits], shares.leaf(level, selected=False))
            inner = nodes[splits]
            chosen = run.choose_feature(inner, shares.branch(level), self._with(self.splits))
            self._make_leaves(run, run.split_multiway(inner, chosen), shares.leaf(level, selected=True))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))
        return run.release()

    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        if self.labels in LAPLACE:
            run.set_leaf_values(leaves, one_vote(run.count_classes(leaves, epsilon * LAPLACE[self.labels])))
        else:
            run.set_leaf_values(
                leaves, votes(run.choose_label(leaves, epsilon, self._with(self.labels)), run.schema.n_classes)
            )

    def _with(self, mechanism: str) -> Selection:
        how = self._selection()
        return Selection(how.score, mechanism, how.calibration, how.stop_margin, how.n_max)


def exchanged(sets: Mapping[str, Dataset], depths: Iterable[int], seeds: Iterable[int], epsilon: float) -> pd.DataFrame:
    """The forests of figures 5 and 6 over treeDepth, formula (8) in both readings.

    Returns
    -------
    DataFrame
        As of :func:`dpforest.study.sweep_tables.stacked`, with columns ``levels`` and ``reading``; the traditional
        forest with noise of scale 2/ε, in the first reading, has the name ``tradition, 2/ε``.
    """
    seeds, parts = list(seeds), []
    for (reading, criterion), levels in product(READINGS.items(), depths):
        forests = {**STEPS, **({"tradition, 2/ε": TRADITION_2} if criterion == "gini" else {})}
        common = {"epsilon": epsilon, "max_depth": levels - 1, "criterion": criterion}
        settings = {name: {**common, **steps} for name, steps in forests.items()}
        parts.append(stacked(ExchangedForest, sets, settings, seeds, levels=levels, reading=reading))
    return pd.concat(parts, ignore_index=True)


# -- orders ------------------------------------------------------------------------------------------------------------


def by_set(rows: pd.DataFrame, one: str, other: str, measure: str = "accuracy") -> Finding:
    """One setting of a sweep measures more than another on every data set, paired by seed.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`dpforest.study.sweep_tables.stacked`: columns ``data``, ``name``, ``seed`` and the measure.
    one, other : str
        Names of settings.
    """
    return everywhere(
        {short(name): more(paired(part, one, other, measure)) for name, part in rows.groupby("data", sort=False)}
    )


def steps_pay(
    rows: pd.DataFrame, improved: str, data: str = "wall-following-robot", tradition: str = "tradition"
) -> Finding:
    """Figures 5 and 6: with one step improved the traditional forest is more accurate at every depth.

    Parameters
    ----------
    rows : DataFrame
        Columns ``data``, ``levels`` (treeDepth), ``name`` (of :data:`STEPS`), ``seed`` and ``accuracy``.
    improved : str
        The paper's name of the forest with the improved step.
    data : str
        The paper's data set.
    tradition : str
        The forest that it is compared with.
    """
    here = rows[rows["data"] == data]
    if here.empty:
        return cannot_run(f"{short(data)} is not among the data of this run")
    return everywhere(
        {f"treeDepth {levels:g}": more(paired(at, improved, tradition)) for levels, at in here.groupby("levels")}
    )


def curve_within(
    rows: pd.DataFrame,
    low: float,
    high: float,
    names: Sequence[str] = ("tradition", "tradition_spl_imp"),
    data: str = "wall-following-robot",
) -> Finding:
    """The curves of a figure run between the ends of its axis: the lowest and the highest place of each do.

    Parameters
    ----------
    rows : DataFrame
        As for :func:`steps_pay`.
    low, high : float
        Ends of the paper's axis, in %.
    names : sequence of str
        The curves.
    """
    here = rows[rows["data"] == data]
    if here.empty:
        return cannot_run(f"{short(data)} is not among the data of this run")
    found = {}
    for name in names:
        curve = here[here["name"] == name]
        means = curve.groupby("levels")["accuracy"].mean()
        for word, levels in (("lowest", means.idxmin()), ("highest", means.idxmax())):
            found[f"{name}, {word}"] = within(curve.loc[curve["levels"] == levels, "accuracy"], low, high)
    return everywhere(found)


# -- rivals of table 2 -------------------------------------------------------------------------------------------------


def rivals() -> dict[str, bool]:
    """The rivals of table 2, and whether the library has an estimator of each."""
    return {name: key in PAPERS for name, key in RIVALS.items()}


def missing_rivals() -> Finding:
    """What table 2 says about rivals that the library does not have cannot be run."""
    missing = [name for name, here in rivals().items() if not here]
    if not missing:
        raise ValueError("all rivals of table 2 are in the library: run them")
    return cannot_run(f"{listed(missing)}: not in the library, and their papers could not be read")


# -- who gets which budget ---------------------------------------------------------------------------------------------


def levels_of(forest: Forest) -> np.ndarray:
    """The level of each node, 1 at a root: int, shape (n_nodes,)."""
    levels = np.zeros(forest.n_nodes, dtype=int)
    nodes, level = np.asarray(forest.roots), 1
    while len(nodes):
        levels[nodes] = level
        inner = nodes[forest.feature[nodes] >= 0]
        children = [
            np.arange(forest.first_child[node], forest.first_child[node] + forest.arity[node]) for node in inner
        ]
        nodes, level = np.concatenate([np.zeros(0, dtype=int), *children]), level + 1
    return levels


def node_shares(forest: Forest, plan: str, depth: int) -> np.ndarray:
    """The share of a tree's budget that each node of a published forest gets: float, shape (n_nodes,)."""
    shares = Shares(plan, 1.0, depth)
    levels, leaves = levels_of(forest), forest.feature < 0
    branch = np.array([shares.branch(level) for level in range(1, depth + 1)])
    leaf = np.array([shares.leaf(level, selected=False) for level in range(1, depth + 1)])
    return np.where(leaves, leaf[levels - 1], branch[levels - 1])


def path_totals(forest: Forest, plan: str, depth: int) -> set[Fraction]:
    """What the paths from a root to a leaf get in all, as fractions of the tree's budget."""
    shares = Shares(plan, Fraction(1), depth)  # type: ignore[arg-type]
    ends = set(levels_of(forest)[forest.feature < 0].tolist())
    return {
        sum((Fraction(shares.branch(level)) for level in range(1, end)), Fraction(shares.leaf(end, selected=False)))
        for end in ends
    }


def grown(
    build: Callable, sets: Mapping[str, Dataset], depth: int, seeds: Iterable[int], **setting: Any
) -> pd.DataFrame:
    """What alignment gives to the nodes of published forests: a row per data set and seed.

    Parameters
    ----------
    build : callable
        The published learner.
    sets : mapping of names to data sets
    depth : int
        treeDepth, in levels.
    seeds : iterable of int
    **setting
        Further parameters of the learner.

    Returns
    -------
    DataFrame
        ``node`` and ``leaf``, the mean gain of a node and of a leaf by formula (10) over formula (9) alone, in shares
        of a tree's budget; ``gaining``, the share of nodes that get more; ``least`` and ``most``, what paths get.
    """
    rows = []
    for name, data in sets.items():
        for seed in seeds:
            model = build(schema=data.schema, max_depth=depth - 1, random_state=seed, **setting)
            with quiet():
                forest = model.fit(data.X, data.y).forest_
            gain = node_shares(forest, "aligned", depth) - node_shares(forest, "harmonic", depth)
            totals = path_totals(forest, "aligned", depth)
            rows.append(
                {
                    "data": name,
                    "seed": seed,
                    "node": gain.mean(),
                    "leaf": gain[forest.feature < 0].mean(),
                    "gaining": (gain > 1e-12).mean(),
                    "least": min(totals),
                    "most": max(totals),
                }
            )
    return pd.DataFrame(rows)


def node_budgets(rows: pd.DataFrame) -> Finding:
    """The alignment raises what a tree's nodes get, on average: ``rows`` of :func:`grown`."""
    return _gains(
        rows, "node", lambda part: f"% of the tree's ε a node; {part['gaining'].mean():.0%} of the nodes get more"
    )


def leaf_budgets(rows: pd.DataFrame) -> Finding:
    """The alignment gives leaves more budget, and so less noise: ``rows`` of :func:`grown`."""
    return _gains(rows, "leaf", lambda part: "% of the tree's ε a leaf")


def _gains(rows: pd.DataFrame, column: str, unit: Callable[[pd.DataFrame], str]) -> Finding:
    return everywhere(
        {short(name): more(part[column], unit=unit(part)) for name, part in rows.groupby("data", sort=False)}
    )


def same_on_all_paths(rows: pd.DataFrame) -> Finding:
    """Every path of every tree gets the tree's whole budget: ``rows`` of :func:`grown`."""
    ends = {"the poorest path": rows["least"], "the richest path": rows["most"]}
    return everywhere({name: within(totals.astype(float), 1, 1, "of ε", 1) for name, totals in ends.items()})
