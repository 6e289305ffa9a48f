"""Tables and sentences of the page on the CART-DPsAdaBoost experiments, put together from the fits of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dpforest.arithmetic import exp, log
from dpforest.study.boosting_experiments import (
    NOISELESS,
    PAPER,
    STEPS,
    STUMPS,
    Protocol,
    at,
    implied,
    most_frequent,
    rare,
)
from dpforest.study.boosting_experiments import share_that_fits as fitting_share
from dpforest.study.experiments import summary
from dpforest.study.sweep_tables import listed, short

__all__ = ["Page"]

MEASURES = ("accuracy", "balanced accuracy", "AUC", "precision", "recall")
TABLE_3 = ("precision", "recall", "F1")
NO_BUDGET = "no budget"


def number(row: Mapping[str, float], digits: int = 3) -> str:
    """Mean and half the interval, the mean alone where there is one repeat."""
    if np.isnan(row["high"]):
        return f"{row['mean']:.{digits}f}"
    return f"{row['mean']:.{digits}f} ±{row['high'] - row['mean']:.{digits}f}"


@dataclass
class Page:
    """A run of the protocol, and what is said of it.

    Attributes
    ----------
    protocol : Protocol
    floors : dict
        The measures of a rule that always says the most frequent class.
    plain : dict
        AdaBoost without privacy, by data set and depth.
    proved, published, stumps, steps : DataFrame
        Of the protocol's methods of about these names.
    grown : dict of str to DataFrame
        On samples, by variant.
    """

    protocol: Protocol
    floors: dict[str, dict[str, float]]
    plain: dict[tuple[str, int], dict[str, float]]
    proved: pd.DataFrame = field(default_factory=pd.DataFrame)
    published: pd.DataFrame = field(default_factory=pd.DataFrame)
    stumps: pd.DataFrame = field(default_factory=pd.DataFrame)
    steps: pd.DataFrame = field(default_factory=pd.DataFrame)
    grown: dict[str, pd.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.head, self.top, self.known = self.protocol.head, self.protocol.top, self.protocol.known

    def here(self, name: str, rows: str = "proved", measure: str = "accuracy", **where: Any) -> float:
        """The mean of a measure at the paper's depth."""
        found = at(getattr(self, rows), name, max_depth=self.head[name], **where)
        return float(found[measure].mean())

    # -- data ---------------------------------------------------------------------------------------------------------

    def hardness(self) -> list[dict[str, str]]:
        """The data, the floor, AdaBoost without privacy, and what the paper prints."""
        rows = []
        for name in self.protocol.sets:
            data, best = self.protocol.part(name, 0), self.plain[name, self.head[name]]
            known = PAPER.get(name, {})
            rows.append(
                {
                    "data": short(name),
                    "train": f"{len(data.y):,}",
                    "test": f"{len(np.asarray(data.y_test)):,}",
                    "features": f"{data.schema.n_features}",
                    "table 2 of the paper": known.get("table 2", ""),
                    "most frequent class": str(most_frequent(data)),
                    "depth": f"{self.head[name]}",
                    "floor": f"{self.floors[name]['accuracy']:.4f}",
                    "AdaBoost, no privacy": f"{best['accuracy']:.4f}",
                    "its balanced accuracy": f"{best['balanced accuracy']:.3f}",
                    "its AUC": f"{best['AUC']:.3f}",
                    "the paper's best": f"{known['accuracy']:.4f}" if known else "",
                }
            )
        return rows

    def below(self, name: str) -> str:
        """The paper's accuracy compared with that of the most frequent class."""
        theirs, floor = PAPER[name]["accuracy"], self.floors[name]["accuracy"]
        words = (
            f"- *{short(name)}*: always saying `{most_frequent(self.protocol.sets[name])}` is right on {floor:.3f} of "
            f"the test set; the paper's best accuracy is {theirs:.3f}, "
        )
        if theirs < floor:
            return words + (
                f"**{100 * (floor - theirs):.1f} points below**. A rule that looks at no feature is better, at any ε. "
                "A comparison means something in balanced accuracy and in AUC only, where the floor is 0.5."
            )
        ahead = 100 * (self.plain[name, self.head[name]]["accuracy"] - floor)
        return words + (
            f"{100 * (theirs - floor):.1f} points above it, where AdaBoost without privacy is {ahead:.1f} above."
        )

    def table_3_implies(self, name: str) -> tuple[list[dict[str, str]], list[str]]:
        """The accuracies that table 3 means with either class as the positive one, and which class it is."""
        data, printed, best = self.protocol.part(name, 0), PAPER[name]["table 3"], PAPER[name]["accuracy"]
        yes, other = most_frequent(data), rare(data)
        share = float((data.y_test == yes).mean())
        first, second = ([implied(p, r, s) for p, r, _ in printed.values()] for s in (share, 1 - share))
        rows = [
            {
                "data": short(name),
                "ε": f"{epsilon:g}",
                "if the most frequent is positive": f"{one:.3f}",
                "if the other is": f"{two:.3f}",
            }
            for epsilon, one, two in zip(printed, first, second, strict=True)
        ]
        positive = yes if abs(max(first) - best) < abs(max(second) - best) else other
        p, r, _ = printed[max(printed)]
        lines = [
            f"- *{short(name)}*: with `{other}` as the positive class table 3 means accuracies up to "
            f"{max(second):.3f}, with `{yes}` up to {max(first):.3f}; the text says at best {best:.3f}. So "
            f"`{positive}` is the positive class. Even so table 3 and the text are {100 * (best - max(first)):+.1f} "
            "points apart: they are not the same runs, or not the official test set, in which the share of "
            f"`{yes}` is {share:.3f}.",
            f"  The three numbers at ε = {max(printed):g} would agree if that share were "
            f"{fitting_share(p, r, best):.3f}.",
        ]
        return rows, lines

    # -- figure 2 -----------------------------------------------------------------------------------------------------

    def by_depth(self, name: str, rows: str, measure: str = "accuracy") -> list[dict[str, str]]:
        """A row for each budget, a column for each depth: mean and half the interval."""
        table = []
        for epsilon in [*self.protocol.epsilons, NOISELESS]:
            row = {"ε": f"{epsilon:g}" if epsilon != NOISELESS else "no noise"}
            for depth in self.protocol.depths_of(name):
                found = at(getattr(self, rows), name, epsilon=epsilon, max_depth=depth)
                found = found[found["error"] == ""]
                row[f"d = {depth}"] = number(summary(found, ["data"], measure).iloc[0]) if len(found) else NO_BUDGET
            table.append(row)
        return table

    def repaired(self, name: str) -> str:
        """The accuracy of the repaired classifier, compared with the paper's and with the floor."""
        rows, head, floor = at(self.proved, name), self.head[name], self.floors[name]["accuracy"]
        means = rows[rows["epsilon"] == self.top].groupby("max_depth")["accuracy"].mean()
        ours, bare = self.here(name, epsilon=self.top), self.here(name, epsilon=NOISELESS)
        lows = {
            e: summary(at(rows, name, epsilon=e, max_depth=head), ["epsilon"]).iloc[0]["low"]
            for e in self.protocol.epsilons
        }
        clear = [f"{e:g}" for e, low in lows.items() if low > floor]
        beside = (
            f", {100 * (ours - PAPER[name]['accuracy']):+.1f} points from the paper's best" if name in PAPER else ""
        )
        return (
            f"- *{short(name)}*: at ε = {self.top:g} and d = {head} the repaired classifier has {ours:.3f}, with a "
            f"true guarantee{beside}. Its best depth is {means.idxmax()}, and depths differ by "
            f"{100 * (means.max() - means.min()):.1f} points. It is clearly above the floor at "
            f"{'ε = ' + listed(clear) if clear else 'no ε'}. Without noise it has {bare:.3f}: noise costs "
            f"{100 * (bare - ours):.1f} points. AdaBoost has {self.plain[name, head]['accuracy']:.3f}."
        )

    def letter(self, name: str) -> str:
        """Where the published algorithm runs, and what it has there."""
        rows = at(self.published, name)
        asked = rows[rows["epsilon"] != NOISELESS]
        ran = asked[asked["error"] == ""]
        limits = [1 / (1 + exp(2 * exp(e / self.protocol.rounds))) for e in self.protocol.epsilons]
        low, high = int(np.argmin(limits)), int(np.argmax(limits))
        words = (
            f"- *{short(name)}*: {len(ran)} of {len(asked)} fits run. The budget ε/T − ln α is negative as soon as a "
            f"tree errs on less than {limits[low]:.3f} (ε = {self.protocol.epsilons[low]:g}) to {limits[high]:.3f} "
            f"(ε = {self.protocol.epsilons[high]:g}) of the weight; saying the most frequent class errs on "
            f"{1 - self.floors[name]['accuracy']:.3f}. "
        )
        if len(ran) < len(asked):
            words += self._stopped(asked[asked["error"] != ""])
        if len(ran):
            words += self._moves(name, ran)
        return words + f"Without any noise it has {self.here(name, 'published', epsilon=NOISELESS):.3f}."

    def _stopped(self, failed: pd.DataFrame) -> str:
        """With which votes it stops, and whether a decimal logarithm would have helped."""
        decimal = failed["epsilon"].astype(float) / self.protocol.rounds - log(failed["alpha"].to_numpy()) / log(10.0)
        return (
            f"It stops at votes α of {failed['alpha'].min():.3f} to {failed['alpha'].max():.3f}; with a decimal "
            f"logarithm the budget would be positive in {int((decimal > 0).sum())} of these {len(failed)} fits. "
        )

    def _moves(self, name: str, ran: pd.DataFrame) -> str:
        means = ran.pivot_table(index="epsilon", columns="max_depth", values="accuracy")
        words = f"Where it runs it has {ran['accuracy'].min():.3f} to {ran['accuracy'].max():.3f}. "
        moved = 100 * float((means.max() - means.min()).max())
        if len(means) > 1:
            words += f"From one ε to another the mean moves by at most {moved:.2f} points"
            words += ": noise at the scale of a record's weight, some 1/n, is nearly nothing. " if moved < 0.1 else ". "
        if name in PAPER and len(means) == len(self.protocol.epsilons):
            table = PAPER[name]["table 4"]
            words += (
                f"In the paper the AUC moves by {100 * (table[max(table)] - table[min(table)]):.0f} points between "
                f"ε = {min(table):g} and {max(table):g}"
                + (": its program has another noise than our reading of its text. " if moved < 0.1 else ". ")
            )
        return words

    # -- figure 3 -----------------------------------------------------------------------------------------------------

    def growth(self, name: str, variant: str) -> str:
        """Accuracy over the number of training records, in words."""
        rows, floor = at(self.grown[variant], name), self.floors[name]["accuracy"]
        if rows.empty:
            return f"- *{short(name)}*, {variant}: no budget on any sample."
        found = [self._growth(rows[rows["max_depth"] == d], d, floor) for d in sorted(rows["max_depth"].unique())]
        return f"- *{short(name)}*, {variant} (floor {floor:.3f}): " + "; ".join(found) + "."

    def _growth(self, rows: pd.DataFrame, depth: int, floor: float) -> str:
        test = summary(rows[rows["part"] == "test"], ["records"]).set_index("records")
        gap = rows[rows["part"] == "train"].groupby("records")["accuracy"].mean() - test["mean"]
        under = [f"{n:,}" for n in test.index if test.loc[n, "mean"] < floor]
        clear = [f"{n:,}" for n in test.index if test.loc[n, "low"] > floor]
        over = f"below the floor with {listed(under)} records; " if under else ""
        over += f"clearly above it with {listed(clear)}" if clear else "never clearly above it"
        first, last = test.index[0], test.index[-1]
        if first == last:
            return f"d = {depth}: {test['mean'].iloc[0]:.3f} with {first:,} records alone; {over}"
        return (
            f"d = {depth}: {test['mean'].iloc[0]:.3f} with {first:,} records, {test['mean'].iloc[-1]:.3f} with "
            f"{last:,}; {over}; training less test is {gap[first]:+.3f} at first and {gap[last]:+.3f} at last"
        )

    # -- tables 3 and 4 -----------------------------------------------------------------------------------------------

    def table_3(self, name: str) -> list[dict[str, str]]:
        """Precision, recall and F1 by budget: the repair, the published variant, the paper."""
        rows = []
        for epsilon in self.protocol.epsilons:
            row = {"ε": f"{epsilon:g}"}
            printed = PAPER.get(name, {}).get("table 3", {}).get(epsilon)
            for k, measure in enumerate(TABLE_3):
                row[f"{measure}, proved"] = f"{self.here(name, epsilon=epsilon, measure=measure):.3f}"
                letter = self.here(name, "published", measure, epsilon=epsilon, error="")
                row[f"{measure}, published"] = NO_BUDGET if np.isnan(letter) else f"{letter:.3f}"
                row[f"{measure}, paper"] = f"{printed[k]:.3f}" if printed else ""
            rows.append(row)
        floor = self.floors[name]
        return [*rows, {"ε": "floor", **{f"{measure}, proved": f"{floor[measure]:.3f}" for measure in TABLE_3}}]

    def f1(self, name: str) -> str:
        """F1 compared with that of the floor."""
        floor, ours = self.floors[name]["F1"], self.here(name, epsilon=self.top, measure="F1")
        words = f"F1 of the floor is {floor:.3f}; at ε = {self.top:g} the repaired classifier has {ours:.3f}"
        if name in PAPER:
            best = max(f for _, _, f in PAPER[name]["table 3"].values())
            words += f", and the paper at best {best:.3f}, {'less' if best < floor else 'more'} than the floor"
        return words + "."

    def table_4(self, name: str) -> list[dict[str, str]]:
        """Areas under the ROC curve."""
        rows = []
        for epsilon in self.protocol.epsilons:
            ours = at(self.proved, name, epsilon=epsilon, max_depth=self.head[name])
            letter = self.here(name, "published", "AUC", epsilon=epsilon, error="")
            printed = PAPER.get(name, {}).get("table 4", {}).get(epsilon)
            stumps = at(self.stumps, name, learner="DP-AdaBoost, proved", epsilon=epsilon)["AUC"].mean()
            rows.append(
                {
                    "data": short(name),
                    "ε": f"{epsilon:g}",
                    "proved": number(summary(ours, ["epsilon"], "AUC").iloc[0]),
                    "paper": f"{printed:.3f}" if printed else "",
                    "published": NO_BUDGET if np.isnan(letter) else f"{letter:.3f}",
                    "balanced accuracy, proved": f"{ours['balanced accuracy'].mean():.3f}",
                    "DP-AdaBoost, proved": f"{stumps:.3f}",
                    "proved − paper": f"{ours['AUC'].mean() - printed:+.3f}" if printed else "",
                }
            )
        return rows

    def areas(self, name: str) -> str:
        """The areas in words."""
        area, bare = (self.here(name, epsilon=e, measure="AUC") for e in (self.top, NOISELESS))
        words = (
            f"- *{short(name)}*: {area:.3f} at ε = {self.top:g}; {bare:.3f} without noise; "
            f"{self.plain[name, self.head[name]]['AUC']:.3f} AdaBoost."
        )
        if name not in PAPER:
            return words
        printed = {e: PAPER[name]["table 4"][e] for e in self.protocol.epsilons if e in PAPER[name]["table 4"]}
        ahead = [f"{e:g}" for e, said in printed.items() if self.here(name, epsilon=e, measure="AUC") > said]
        behind = [f"{e:g}" for e in printed if f"{e:g}" not in ahead]
        stumps = at(self.stumps, name, learner="DP-AdaBoost, proved").groupby("epsilon")["AUC"].mean()
        wide = [f"{e:g}" for e, said in printed.items() if stumps[e] > said]
        words += f" The mean is above the paper's number at {'ε = ' + listed(ahead) if ahead else 'no ε'}"
        words += f", and below it at ε = {listed(behind)}: a number without a guarantee." if behind else "."
        return words + f" The repaired DP-AdaBoost is above it at {'ε = ' + listed(wide) if wide else 'no ε'}."

    # -- figure 5 (c) -------------------------------------------------------------------------------------------------

    def stump_table(self, name: str) -> list[dict[str, str]]:
        """Accuracy of boosted stumps by budget."""
        rows = []
        for who in STUMPS:
            row = {"data": short(name), "stumps": who}
            for epsilon in [*self.protocol.epsilons, NOISELESS]:
                fits = at(self.stumps, name, learner=who, epsilon=epsilon)
                ran = fits[fits["error"] == ""]
                partly = "" if len(ran) == len(fits) else f" ({len(ran)} of {len(fits)})"
                head = "no noise" if epsilon == NOISELESS else f"ε = {epsilon:g}"
                row[head] = f"{ran['accuracy'].mean():.3f}{partly}" if len(ran) else NO_BUDGET
            rows.append(row)
        return rows

    def shapes(self, name: str) -> list[str]:
        """What the shape of the stumps does, with noise and without."""
        ran = self.stumps[self.stumps["error"] == ""]
        mean = ran[ran["data"] == name].groupby(["learner", "epsilon"])[["accuracy", "AUC"]].mean()
        wide, cart = (mean.loc[(f"{who}, proved", self.top)] for who in ("DP-AdaBoost", "DPsAdaBoost"))
        deep = [self.here(name, epsilon=self.top, measure=measure) for measure in ("accuracy", "AUC")]
        lead = [
            100
            * (
                mean.loc[(f"DP-AdaBoost, {v}", NOISELESS), "accuracy"]
                - mean.loc[(f"DPsAdaBoost, {v}", NOISELESS), "accuracy"]
            )
            for v in ("proved", "published")
        ]
        made = (
            "so it is not noise alone, as the paper has it, but the shape of the stump that makes the order."
            if min(lead) > 0.5
            else "the order is not that of the shapes alone."
        )
        return [
            f"- *{short(name)}*, ε = {self.top:g}: as proved, stumps with a child for every code have "
            f"{wide['accuracy']:.3f}, stumps with two {cart['accuracy']:.3f}, and trees of depth {self.head[name]} "
            f"{deep[0]:.3f}. AUC: {wide['AUC']:.3f}, {cart['AUC']:.3f} and {deep[1]:.3f}.",
            f"  Without any noise the wide stumps are ahead by {lead[0]:+.1f} points as proved, and by {lead[1]:+.1f} "
            f"as published: {made}",
        ]

    # -- from the repair to the paper ---------------------------------------------------------------------------------

    def step_table(self, name: str) -> list[dict[str, str]]:
        """All measures at each step from the repair to the paper."""
        rows = []
        for step in STEPS:
            here = at(self.steps, name, step=step, error="")
            words = f"class weights 1 : {self.protocol.ratio(name):g}" if step == "class weights" else step
            found = {m: f"{here[m].mean():.3f}" for m in MEASURES} if len(here) else {"accuracy": NO_BUDGET}
            rows.append({"data": short(name), "setting": words, **found})
        return rows

    def costliest(self, name: str) -> str:
        """Which single step costs most."""
        mean = {step: float(at(self.steps, name, step=step)["accuracy"].mean()) for step in STEPS}
        ours, bare = mean["proved, defaults"], mean["published, no noise"]
        single = [*STEPS][1 : [*STEPS].index("all of these")]
        worst = min(single, key=lambda step: mean[step])
        printed = (
            f", {100 * (bare - PAPER[name]['accuracy']):+.1f} points from what the paper prints"
            if name in PAPER
            else ""
        )
        return (
            f"- *{short(name)}*: of the single steps *{worst}* costs most, {100 * (ours - mean[worst]):.1f} points; "
            f"all of them together {100 * (ours - mean['all of these']):.1f} points. The paper's design without noise "
            f"has {bare:.3f}{printed}."
        )

    def explained(self, name: str) -> str:
        """What the numbers of the run leave of the paper's accuracy."""
        if PAPER[name]["accuracy"] < self.floors[name]["accuracy"]:
            return self._weighted(name)
        theirs = PAPER[name]["accuracy"]
        ran = at(self.steps, name, step="published", error="")["accuracy"]
        bare = float(at(self.steps, name, step="published, no noise")["accuracy"].mean())
        stumps = at(self.stumps, name, learner="DPsAdaBoost, published", epsilon=self.top, error="")["accuracy"].mean()
        ours = self.here(name, epsilon=self.top)
        noisy = f" (at ε = {self.top:g} and by the paper's noise {ran.mean():.3f})" if len(ran) else ""
        read = float(ran.mean()) if len(ran) else bare
        return (
            f"- *{short(name)}*, {theirs:.3f}: our reading of the same design without noise has {bare:.3f}{noisy}, as "
            f"stumps {stumps:.3f}, and the repaired classifier at ε = {self.top:g} {ours:.3f}. Of the "
            f"{100 * (ours - theirs):.1f} points between the paper and the repair, {100 * (read - theirs):.1f} are "
            "there already in our reading of what is printed, whose noise is nearly nothing: the paper's program must "
            "differ from it, in its noise, its cuts or its categories. The rest is the repair's own."
        )

    def _weighted(self, name: str) -> str:
        theirs, floor = PAPER[name]["accuracy"], self.floors[name]["accuracy"]
        bare = float(at(self.steps, name, step="published, no noise")["accuracy"].mean())
        ours, words = self.here(name, epsilon=self.top), f"- *{short(name)}*, {theirs:.3f}: "
        if min(bare, ours) > floor:
            words += (
                f"neither the paper's design without noise, {bare:.3f}, nor the repaired classifier at "
                f"ε = {self.top:g}, {ours:.3f}, falls below the floor, {floor:.3f}. "
            )
        p, r, _ = PAPER[name]["table 3"][1.0]
        missed = floor * r * (1 - p) / p / (1 - floor)  # share of the rare class that is not found
        weighted = at(self.steps, name, step="class weights")[[*MEASURES]].mean()
        return words + (
            f"Table 3 has a recall of {r:.3f} and a precision of {p:.3f} at ε = 1: it says the rare class of "
            f"{1 - r:.0%} of the common records. On the official test set that would be a balanced accuracy of "
            f"{(r + 1 - missed) / 2:.3f}. A classifier that gives the classes equal weight looks like that: with "
            f"public class weights of 1 : {self.protocol.ratio(name):g} the repaired one has a recall of "
            f"{weighted['recall']:.3f}, a precision of {weighted['precision']:.3f}, an accuracy of "
            f"{weighted['accuracy']:.3f} and a balanced accuracy of {weighted['balanced accuracy']:.3f}. The paper "
            "does not say that it balanced its classes; its numbers look as if it had."
        )
