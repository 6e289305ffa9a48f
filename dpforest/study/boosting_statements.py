"""What the CART-DPsAdaBoost paper says that its experiments show: a rule for each sentence.

The paper speaks of its own algorithm, so a verdict is that of the published variant.  Where its budget for a round is
not positive, there is no algorithm to run; then the finding also gives its design without any noise.  It gives the
repair too, wherever that was run at the same setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from dpforest.arithmetic import log
from dpforest.study.boosting_experiments import ADULT, CENSUS, NOISELESS, PAPER, at, cells
from dpforest.study.statements import Statements
from dpforest.study.statements.rules import (
    Finding,
    best,
    cannot_read,
    cannot_run,
    everywhere,
    more,
    rises,
    small,
    within,
)
from dpforest.study.sweep_tables import short

__all__ = ["Case", "Runs", "findings", "judge"]

NO_BUDGET = "as published the budget ε/T − ln α of the second round is not positive, at no ε of the paper"
ABOUT = 0.5  # a number of the paper is met within half a point


@dataclass(frozen=True)
class Case:
    """The fits of one variant on one data set.

    Attributes
    ----------
    rows, bare : DataFrame
        With noise and without; columns epsilon, max_depth, seed and those of
        :func:`~dpforest.study.boosting_experiments.fit`.
    grown : DataFrame
        On samples: columns records, max_depth, seed, part, accuracy.
    head : int
        The depth that the paper names best.
    floor : mapping
        The measures of a rule that always says the most frequent class.
    """

    rows: pd.DataFrame
    bare: pd.DataFrame
    grown: pd.DataFrame
    head: int
    floor: Mapping[str, float]

    @property
    def ran(self) -> bool:
        """Whether the algorithm has a budget in all of its fits with noise."""
        return bool(len(self.rows)) and bool((self.rows["error"] == "").all())

    @property
    def top(self) -> float:
        """The largest budget."""
        return float(self.rows["epsilon"].astype(float).max())

    def by_depth(self, measure: str, **where: object) -> pd.DataFrame:
        """By seed and depth, at the largest budget or where it is said."""
        return cells(self.rows, measure, "max_depth", **(where or {"epsilon": self.top}))

    def by_epsilon(self, measure: str, at_head: bool = False) -> pd.DataFrame:
        """By seed and budget: the mean over the depths, or at the paper's depth."""
        return cells(self.rows, measure, "epsilon", **({"max_depth": self.head} if at_head else {}))

    def sizes(self, part: str) -> pd.DataFrame:
        """Accuracy by seed and number of training records, the mean over the depths."""
        return cells(self.grown, "accuracy", "records", part=part)

    def noise_costs(self, over: str = "epsilon", **where: object) -> pd.DataFrame:
        """What noise costs in accuracy, by seed: the fit without noise less the fit with it."""
        if over == "max_depth":
            return (cells(self.bare, "accuracy", over) - cells(self.rows, "accuracy", over, **where)).dropna()
        bare = cells(self.bare, "accuracy", "epsilon")[NOISELESS]
        return cells(self.rows, "accuracy", over, **where).rsub(bare, axis=0).dropna()


@dataclass
class Runs:
    """What the sentences are judged by: a row for each fit.

    Attributes
    ----------
    published, proved : DataFrame
        Of :meth:`Protocol.grid <dpforest.study.boosting_experiments.Protocol.grid>`.
    stumps : DataFrame
        Of :meth:`Protocol.stumps <dpforest.study.boosting_experiments.Protocol.stumps>`.
    grown : mapping of "published", "without noise" and "proved" to DataFrame
        Of :meth:`Protocol.grown <dpforest.study.boosting_experiments.Protocol.grown>`.
    nine : DataFrame
        Of :func:`dpforest.study.boosting_table.nine`.
    head : mapping
        The depth that the paper names best, for each data set.
    floors : mapping
        The measures of a rule that always says the most frequent class, for each data set.
    """

    published: pd.DataFrame
    proved: pd.DataFrame
    stumps: pd.DataFrame
    grown: Mapping[str, pd.DataFrame]
    nine: pd.DataFrame
    head: Mapping[str, int]
    floors: Mapping[str, Mapping[str, float]]

    def case(self, name: str, variant: str = "published") -> Case:
        """The fits of a variant on a data set; ``"without noise"`` is the published design without any."""
        if variant == "without noise":
            whole = self.case(name)
            return replace(whole, rows=whole.bare.assign(epsilon=1.0), grown=at(self.grown[variant], name))
        rows = at(getattr(self, variant), name)
        noiseless = rows["epsilon"] == NOISELESS
        grown = at(self.grown[variant], name)
        return Case(rows[~noiseless], rows[noiseless], grown, self.head[name], self.floors[name])


Rule = Callable[[Case], Finding]


def judge(said: Statements, runs: Runs) -> Statements:
    """Judge every sentence of the paper on its experiments by the runs that are here."""
    for name, finding in findings(runs).items():
        said.judge(name, finding())
    return said


def findings(runs: Runs) -> dict[str, Callable[[], Finding]]:
    """For each sentence, by its id, what finds its verdict in the runs that are here."""
    here = [name for name in (ADULT, CENSUS) if name in runs.head]
    found: dict[str, Callable[[], Finding]] = {
        word: partial(_on_sets, runs, here, *rule) for word, rule in _RULES.items()
    }
    for word, across in _ACROSS.items():
        found[word] = partial(across, runs) if len(here) == 2 else partial(cannot_run, "it takes both data sets")
    for word, stump in _STUMP_RULES.items():
        found[word] = partial(stump, runs) if ADULT in here else partial(cannot_run, _MISSING.format(ADULT))
    for word, table in _TABLE_RULES.items():
        found[word] = partial(_on_tables, runs.nine, table)
    found["time"] = partial(cannot_read, "what it is faster than is not said, and no time is printed")
    found["large"] = partial(cannot_read, "better than what, and by which measure, is not said")
    found["efficiency"] = partial(cannot_read, "no time is printed, and no share of a budget")
    why = "the cuts of the library fall on a public grid, so that continuous features are discretised here, too"
    found["discretise"] = partial(cannot_run, f"{why}; the paper prints no time")
    return {f"exp-boosting-{word}": finding for word, finding in found.items()}


_MISSING = "the data set {} is not in this run"


def _on_sets(runs: Runs, here: list[str], names: tuple[str, ...], rule: Rule, noiseless: bool) -> Finding:
    """The finding on the data set that the sentence is about, or wherever it is to hold."""
    found = {short(name): _judged(runs, name, rule, noiseless) for name in names if name in here}
    if len(names) > 1:
        return everywhere(found)
    return found[short(names[0])] if found else cannot_run(_MISSING.format(names[0]))


def _on_tables(rows: pd.DataFrame, rule: Callable[[pd.DataFrame], Finding]) -> Finding:
    return everywhere({short(name): rule(at(rows, name)) for name in rows["data"].unique()})


def _judged(runs: Runs, name: str, rule: Rule, noiseless: bool) -> Finding:
    """The rule's finding for the published variant, together with that of the repair."""
    case = runs.case(name)
    if case.ran:
        finding = rule(case)
    else:
        finding = cannot_run(NO_BUDGET)
        if noiseless:
            finding = finding.beside("its design without noise", rule(runs.case(name, "without noise")))
    return finding.beside("as proved", rule(runs.case(name, "proved")))


# -- over budgets and depths -------------------------------------------------------------------------------------------


def _over_epsilon(measure: str, at_head: bool = False) -> Rule:
    return lambda case: _along(case.by_epsilon(measure, at_head), "it takes two budgets")


def _over_depth(case: Case) -> Finding:
    """Up to the depth that the paper names best: beyond it the paper itself says that trees overfit."""
    table = cells(case.rows, "accuracy", "max_depth")
    return _along(table[[d for d in table.columns if d <= case.head]], "it takes two depths")


def _along(table: pd.DataFrame, wanted: str) -> Finding:
    return rises(table.to_numpy(), [*table.columns]) if len(table.columns) > 1 else cannot_run(wanted)


def _worse_beyond(case: Case) -> Finding:
    table = case.by_depth("accuracy")
    deeper = {f"{case.head} less {d}": more(table[case.head] - table[d]) for d in table.columns if d > case.head}
    return everywhere(deeper) if deeper else cannot_run(f"it takes depths beyond {case.head}")


def _best(measure: str) -> Rule:
    def rule(case: Case) -> Finding:
        table = case.by_depth(measure)
        if len(table.columns) < 2 or case.head not in table:
            return cannot_run("it takes several depths, the paper's among them")
        return best({d: table[d].to_numpy() for d in table.columns}, case.head)

    return rule


def _value(measure: str, said: float) -> Rule:
    """The measure at the paper's depth and the largest budget; ``said`` is the paper's, in %."""
    return lambda case: within(case.by_depth(measure)[case.head], said - ABOUT, said + ABOUT)


def _values(name: str) -> Rule:
    """Precision, recall and F1 of table 3 at ε = 1."""
    printed = dict(zip(("precision", "recall", "F1"), PAPER[name]["table 3"][1.0], strict=True))
    return lambda case: everywhere({m: _value(m, 100 * said)(case) for m, said in printed.items()})


def _useful(case: Case) -> Finding:
    accuracy = case.by_depth("accuracy")[case.head]
    return more(accuracy - case.floor["accuracy"], than="above the most frequent class")


def _against(case: Case) -> Finding:
    """The correlation of precision and recall over the depths, by seed, with its sign turned."""
    one, other = (cells(case.rows, measure, "max_depth") for measure in ("precision", "recall"))
    if len(one.columns) < 2:
        return cannot_run("it takes two depths")
    one, other = (table.sub(table.mean(axis=1), axis=0) for table in (one, other))
    opposed = -(one * other).sum(axis=1) / np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    return more(opposed, unit="", factor=1.0, than="correlation, sign turned")


def _f1(case: Case) -> Finding:
    table = case.by_epsilon("F1", at_head=True)
    return within(table[[e for e in table.columns if e >= 0.25]].mean(axis=1), 84.0, 88.0)


def _unsteady(case: Case) -> Finding:
    table = case.by_epsilon("AUC", at_head=True)
    if not {0.1, 0.5, 1.0} <= {*table.columns}:
        return cannot_run("it takes ε = 0.1, 0.5 and 1")
    moves = (table[0.5] - table[0.1]).abs() - (table[1.0] - table[0.5]).abs()
    return more(moves, than="more movement from 0.1 to 0.5 than from 0.5 to 1")


# -- noise -------------------------------------------------------------------------------------------------------------


def _noise_is_small(case: Case) -> Finding:
    """How far the effect of noise moves from one budget to another; in addition, what noise costs."""
    costs = case.noise_costs()
    costs = costs[[e for e in costs.columns if e >= 0.25]]
    moves = costs.max(axis=1) - costs.min(axis=1)
    return small(moves, 1.0).beside("what noise costs", more(costs.mean(axis=1)))


def _noise_below_sampling(case: Case) -> Finding:
    """What noise costs at the largest budgets against the spread of the fits without noise, over seeds."""
    costs, spread = case.noise_costs(), 100 * cells(case.bare, "accuracy", "max_depth").std().mean()
    if np.isnan(spread):
        return cannot_run("one fit without noise has no spread")
    return small(costs[[e for e in costs.columns if e >= 0.75]].mean(axis=1), round(spread, 1))


def _nearer(case: Case) -> Finding:
    gaps = case.noise_costs().abs()
    return more(gaps[min(gaps.columns)] - gaps[max(gaps.columns)], than="nearer at the largest ε than at the smallest")


def _noisier_when_deeper(case: Case) -> Finding:
    costs = case.noise_costs("max_depth", epsilon=case.rows["epsilon"].min())
    return _along(costs, "it takes two depths")


# -- sample sizes ------------------------------------------------------------------------------------------------------


def _train_first(case: Case) -> Finding:
    train, test = case.sizes("train"), case.sizes("test")
    if train.empty:
        return cannot_run("no fit on a sample")
    least = min(train.columns)
    return more(train[least] - test[least], than=f"training less test with {least:,} records")


def _gap_closes(case: Case) -> Finding:
    train, test = case.sizes("train"), case.sizes("test")
    if train.empty or len(train.columns) < 2:
        return cannot_run("no fits on samples of two sizes")
    gap = train - test
    least, most = min(gap.columns), max(gap.columns)
    return more(gap[least] - gap[most], than=f"less of a gap with {most:,} records than with {least:,}")


def _grows(case: Case) -> Finding:
    test = case.sizes("test")
    if test.empty or len(test.columns) < 2:
        return cannot_run("no fits on samples of two sizes")
    ends = [f"{min(test.columns):,}", f"{max(test.columns):,} records"]
    return rises(test.to_numpy(), [*log(test.columns.to_numpy(dtype=float))], ends=ends)


def _levels(case: Case) -> Finding:
    test = case.sizes("test")
    if len(test.columns) < 3:
        return cannot_run("no fits on samples of three sizes")
    steps = test.diff(axis=1).abs()
    return more(steps[steps.columns[1]] - steps[steps.columns[-1]], than="more movement at first than at last")


def _enough(case: Case) -> Finding:
    test = case.sizes("test")
    if 400 not in test or max(test.columns) == 400:
        return cannot_run("no fits on 400 records and on more")
    return small(test[max(test.columns)] - test[400], 1.0)


_BOTH, _ADULT, _CENSUS = (ADULT, CENSUS), (ADULT,), (CENSUS,)
#: The data sets, the rule, and whether it has a meaning for the design without noise.
_RULES: dict[str, tuple[tuple[str, ...], Rule, bool]] = {
    "useful": (_BOTH, _useful, True),
    "epsilon": (_BOTH, _over_epsilon("accuracy"), False),
    "noise-small": (_BOTH, _noise_is_small, False),
    "noise-sampling": (_BOTH, _noise_below_sampling, False),
    "depth-rises": (_BOTH, _over_depth, True),
    "overfit": (_ADULT, _worse_beyond, True),
    "size-train": (_BOTH, _train_first, True),
    "size-gap": (_BOTH, _gap_closes, True),
    "size-rises": (_BOTH, _grows, True),
    "size-levels": (_BOTH, _levels, True),
    "noise-vanishes": (_ADULT, _nearer, False),
    "depth-noisier": (_BOTH, _noisier_when_deeper, False),
    "census-400": (_CENSUS, _enough, True),
    "best-adult": (_ADULT, _best("accuracy"), True),
    "accuracy-adult": (_ADULT, _value("accuracy", 100 * PAPER[ADULT]["accuracy"]), True),
    "best-census": (_CENSUS, _best("accuracy"), True),
    "accuracy-census": (_CENSUS, _value("accuracy", 100 * PAPER[CENSUS]["accuracy"]), True),
    "precision-epsilon": (_ADULT, _over_epsilon("precision"), False),
    "precision-adult": (_ADULT, _best("precision"), True),
    "precision-census": (_CENSUS, _best("precision"), True),
    "precision-recall": (_BOTH, _against, True),
    "f1": (_BOTH, _f1, True),
    "table-3-adult": (_ADULT, _values(ADULT), True),
    "table-3-census": (_CENSUS, _values(CENSUS), True),
    "auc-epsilon": (_BOTH, _over_epsilon("AUC", at_head=True), False),
    "auc-adult": (_ADULT, _value("AUC", 100 * PAPER[ADULT]["table 4"][1.0]), True),
    "auc-census": (_CENSUS, _value("AUC", 100 * PAPER[CENSUS]["table 4"][1.0]), True),
    "auc-unsteady": (_ADULT, _unsteady, False),
}


# -- one data set against the other ------------------------------------------------------------------------------------


def _across(runs: Runs, what: Callable[[Case], pd.Series], noiseless: bool) -> Finding:
    """Census income less adult."""

    def less(variant: str) -> Finding:
        one, other = (what(runs.case(name, variant)) for name in (CENSUS, ADULT))
        return more((one - other).dropna(), than="census-income less adult")

    if all(runs.case(name).ran for name in (ADULT, CENSUS)):
        finding = less("published")
    else:
        finding = cannot_run(f"census: {NO_BUDGET}")
        if noiseless:
            finding = finding.beside("its design without noise", less("without noise"))
    return finding.beside("as proved", less("proved"))


_ACROSS: dict[str, Callable[[Runs], Finding]] = {
    "census-noisier": lambda runs: _across(runs, lambda case: case.noise_costs().mean(axis=1), False),
    "census-auc": lambda runs: _across(runs, lambda case: case.by_depth("AUC")[case.head], True),
}


# -- stumps ------------------------------------------------------------------------------------------------------------


def _stumps(runs: Runs, found: Callable[[pd.DataFrame, pd.DataFrame], Finding]) -> Finding:
    """A rule of the two learners' accuracy by budget on adult, CART-DPsAdaBoost's first."""

    def of(variant: str) -> Finding:
        tables = [
            cells(at(runs.stumps, ADULT), "accuracy", "epsilon", learner=f"{who}, {variant}")
            for who in ("DPsAdaBoost", "DP-AdaBoost")
        ]
        return cannot_run("no fit") if any(table.empty for table in tables) else found(*tables)

    return of("published").beside("as proved", of("proved"))


def _score_gap(one: pd.DataFrame, other: pd.DataFrame) -> Finding:
    ahead = (other - one).drop(columns=NOISELESS, errors="ignore")
    return more(ahead.mean(axis=1), than="DP-AdaBoost ahead")


def _by_noise(one: pd.DataFrame, other: pd.DataFrame) -> Finding:
    """Of DP-AdaBoost's lead with noise, what is left of it without noise is not made by noise."""
    lead = other - one
    shapes = lead.pop(NOISELESS)
    return more(lead.mean(axis=1) - shapes, than=f"of the lead by noise, {100 * shapes.mean():+.1f} without any")


_STUMP_RULES: dict[str, Callable[[Runs], Finding]] = {
    "stumps": lambda runs: _stumps(runs, _score_gap),
    "stumps-noise": lambda runs: _stumps(runs, _by_noise),
}


# -- table 1 -----------------------------------------------------------------------------------------------------------


def _less_noise(rows: pd.DataFrame) -> Finding:
    """Each system whose noise the paper calls low loses less accuracy to noise than those whose noise it calls high."""
    costs = rows.pivot_table(index="seed", columns="system", values="cost").dropna()
    noise = rows.drop_duplicates("system").set_index("system")["noise"]
    high = costs[[name for name in costs if noise[name] == "high"]].mean(axis=1)
    return everywhere({name: more(high - costs[name]) for name in costs if noise[name] == "low"})


def _calls_of(system: str, most: float | None) -> Callable[[pd.DataFrame], Finding]:
    """How often a system calls the exponential mechanism for a split: about once, or more often than that."""

    def rule(rows: pd.DataFrame) -> Finding:
        calls = rows.loc[rows["system"] == system, "calls"].dropna()
        if calls.empty:
            return cannot_run(f"{system} split no node")
        if most is not None:
            return small(calls - 1, most, unit="calls a split beyond one", factor=1.0)
        return more(calls - 1, unit="calls a split beyond one", factor=1.0)

    return rule


def _one_stage(rows: pd.DataFrame) -> Finding:
    """Without a selection of the feature CART-DPsAdaBoost calls less often than DiffPRFs, which has one."""
    calls = rows.pivot_table(index="seed", columns="system", values="calls")
    if not {"DiffPRFs", "CART-DPsAdaBoost"} <= {*calls.columns}:
        return cannot_run("there are no splits of both")
    both = calls[["DiffPRFs", "CART-DPsAdaBoost"]].dropna()
    fewer = both["DiffPRFs"] - both["CART-DPsAdaBoost"]
    own = f"its own {both['CART-DPsAdaBoost'].mean():.1f}, one for each continuous feature tried"
    return more(fewer, unit="calls a split fewer than DiffPRFs", factor=1.0, than=f"({own})")


_TABLE_RULES: dict[str, Callable[[pd.DataFrame], Finding]] = {
    "one-call": _one_stage,
    "table-1-noise": _less_noise,
    "table-1-once": _calls_of("DiffP-ID3", 0.5),
    "table-1-twice": _calls_of("DiffP-C4.5", None),
    "diffprfs-twice": _calls_of("DiffPRFs", None),
}
