"""The family of private trees: who took over which idea from whom, and whose privacy claim is true.

Years are those of the reference list, systems those of the registry, verdicts those of the page of claims: tests hold
the first two to it, and the last are looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from dpforest.study import plots
from dpforest.study.published import PUBLISHED
from dpforest.study.sweep_tables import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["IDEAS", "KINDS", "SYSTEMS", "System", "by_kind", "counted", "figure", "rows", "verdict", "word"]

TREE, FOREST, BOOSTED, LINEAR = KINDS = ("single trees and tables", "forests", "boosted trees", "linear models")
OWN, NONE = "this library's own", "none of its own"
YES, NO, OPEN = "yes", "no", "open"


class System(NamedTuple):
    """One system of the family.

    Attributes
    ----------
    name : str
    year : int
    cites : str
        Its entry in the reference list; empty for the library's own.
    new : str
        What is new in it.
    kind : str
        One of :data:`KINDS`.
    column, row : int
        Where the figure has it.
    """

    name: str
    year: int
    cites: str
    new: str
    kind: str
    column: int
    row: int


#: Of each paper of the registry.
SYSTEMS: dict[str, System] = {
    "sulq_id3": System("SuLQ-ID3", 2005, "blum2005practical", "a tree from noisy counts alone", TREE, 1, 0),
    "pinq_id3": System(
        "PINQ-ID3", 2009, "mcsherry2009privacy", "parts of the records cost their maximum, not their sum", TREE, 1, 1
    ),
    "random_trees": System(
        "RDT", 2009, "jagannathan2009practical", "random structure: all of the budget for the leaves", FOREST, 3, 1
    ),
    "diffp_id3": System(
        "DiffP-ID3", 2010, "friedman2010data", "one selection in place of a count for each feature", TREE, 1, 2
    ),
    "diffp_c45": System(
        "DiffP-C4.5", 2010, "friedman2010data", "private cuts of numbers, pruning by noisy counts", TREE, 1, 3
    ),
    "diffgen": System("DiffGen", 2011, "diffgen", "publish a generalised table, train anything on it", TREE, 0, 4),
    "functional_mechanism": System(
        "Functional mechanism", 2012, "zhang2012functional", "noise on the objective of a regression", LINEAR, 4, 4
    ),
    "dt_diff": System("DT-Diff", 2013, "dt_diff", "choose and weigh features before dividing by them", TREE, 0, 5),
    "diffprf": System("DiffPRF", 2014, "patil2014differential", "a forest of private ID3 trees", FOREST, 2, 5),
    "diffprfs": System("DiffPRFs", 2016, "mu2016diffprfs", "cut and feature chosen for numbers, too", FOREST, 2, 6),
    "diff_lr": System(
        "Diff-LR", 2016, "zheng2016linear", "more budget for the more sensitive parts of it", LINEAR, 4, 6
    ),
    "dp_adaboost": System("DP-AdaBoost", 2017, "shen2017research", "boost private stumps", BOOSTED, 1, 6),
    "smooth_forest": System(
        "Smooth forest", 2017, "smooth_forest", "disjoint records, labels by smooth sensitivity", FOREST, 3, 6
    ),
    "pearson_tree": System(
        "Pearson tree", 2020, "wang2020mapreduce", "correlation as the score, in MapReduce", TREE, 0, 8
    ),
    "diffpets": System(
        "DiffPETs", 2020, "li2020diffpets", "private extra-trees, regression by noisy means", FOREST, 4, 8
    ),
    "diprime": System("DiPriMe", 2020, "diprime", "random features, cut at private medians", FOREST, 4, 9),
    "dps_adaboost": System(
        "CART-DPsAdaBoost", 2021, "jia2021cart", "boost private CART trees, budget by their votes", BOOSTED, 1, 8
    ),
    "dp_ebm": System("DP-EBM", 2021, "dp_ebm", "an additive model of one table a feature", BOOSTED, 3, 9),
    "dp_tr": System("DP-TR", 2022, "dp_tr", "random trees, of which the leaves take Newton steps", BOOSTED, 4, 9),
    "aim": System("AIM", 2022, "mckenna2022aim", "the law of a record, from marginals chosen in turn", TREE, 0, 10),
    "privatree": System(
        "PrivaTree", 2023, "privatree", "one tree to be read, and no more for its leaves than they need", TREE, 0, 9
    ),
    "s_bdt": System("S-BDT", 2024, "s_bdt", "each record pays for what it contributes", BOOSTED, 3, 10),
    "edprf": System("eDPRF", 2025, "wang2025edprf", "budgets aligned with depth, permute-and-flip", FOREST, 2, 9),
    "private_boosting": System(
        "Private boosting", 2026, "", "wide tables chosen one by one, empirical Bayes", BOOSTED, 1, 10
    ),
}
#: Whose idea, who took it over, which one.
IDEAS = [
    ("sulq_id3", "pinq_id3", "noisy counts"),
    ("pinq_id3", "diffp_id3", "a tree's levels compose, its nodes are parts"),
    ("diffp_id3", "diffp_c45", "selection by the exponential mechanism"),
    ("diffp_c45", "diffgen", "selection of cuts"),
    ("diffgen", "dt_diff", "a table as the model"),
    ("diffgen", "aim", "publish data, train anything on it"),
    ("diffp_id3", "diffprf", "its tree"),
    ("diffp_c45", "diffprfs", "its cuts"),
    ("diffprf", "diffprfs", "its forest"),
    ("random_trees", "smooth_forest", "random structure"),
    ("random_trees", "diffpets", "random candidates"),
    ("random_trees", "dp_ebm", "random cuts"),
    ("smooth_forest", "diprime", "disjoint records"),
    ("random_trees", "dp_tr", "random structure"),
    ("smooth_forest", "privatree", "labels in place of counts"),
    ("dp_ebm", "s_bdt", "one feature a tree, in turns"),
    ("diffprfs", "diffpets", "selection of feature and cut"),
    ("diffprfs", "edprf", "a forest of selected splits"),
    ("diffp_c45", "dp_adaboost", "private leaves"),
    ("dp_adaboost", "dps_adaboost", "weighted records"),
    ("diffp_c45", "pearson_tree", "cuts by the exponential mechanism"),
    ("functional_mechanism", "diff_lr", "what is linear in the records"),
    ("dps_adaboost", "private_boosting", "weights of the own record"),
]
#: Whose only claim is about noise, not privacy.
_WITHOUT = {"diff_lr"}


def verdict(key: str) -> tuple[str, str, str]:
    """Whether a system's privacy claim is true: a record is added or removed, one is replaced; and how it was read."""
    if not SYSTEMS[key].cites:
        return OWN, OWN, ""
    added, replaced, read = PUBLISHED["pub-" + key.replace("_", "-")]
    if key in _WITHOUT:
        return f"{NONE}; of less noise: {added}", f"{NONE}; of less noise: {replaced}", read
    return added, replaced, read


def word(key: str) -> str:
    """The verdict where a record is added or removed, in one word, or who has none."""
    if key in _WITHOUT:
        return NONE
    return verdict(key)[0].split(" (")[0]


def counted(of: str) -> int:
    """How many published systems have this verdict where a record is added or removed."""
    return sum(word(key) == of for key in SYSTEMS)


def by_kind(kind: str) -> str:
    """Which privacy claims of a kind are true, false and open, where a record is added or removed.

    >>> by_kind("linear models")
    'true for Functional mechanism'
    """
    names = {of: [s.name for key, s in SYSTEMS.items() if s.kind == kind and word(key) == of] for of in (YES, NO, OPEN)}
    words = {YES: "true for", NO: "false for", OPEN: "open for"}
    rest = [s.name for key, s in SYSTEMS.items() if s.kind == kind and word(key) not in (YES, NO, OPEN, OWN, NONE)]
    said = [f"{words[of]} {listed(who)}" for of, who in names.items() if who]
    return "; ".join(said + ([f"true after a repair for {listed(rest)}"] if rest else []))


def rows() -> list[dict[str, Any]]:
    """The table of the family, the oldest first."""
    return [
        {
            "year": system.year,
            "system": system.name,
            "privacy claim: a record is added or removed": verdict(key)[0],
            "one is replaced": verdict(key)[1],
            "read": verdict(key)[2],
            "what is new": system.new,
            "what it took over": "; ".join(
                f"{idea} ({SYSTEMS[parent].name})" for parent, child, idea in IDEAS if child == key
            ),
        }
        for key, system in sorted(SYSTEMS.items(), key=lambda item: item[1].year)
    ]


_SIGNS = {YES: "\u2713", NO: "\u2717", OPEN: "?"}
_LABELS = {YES: "privacy claim true", NO: "false", OPEN: "open", NONE: "no privacy claim of its own", OWN: "ours"}
_VEIL = (1, 1, 1, 0.25)  # hatching that leaves the words legible


def figure() -> Figure:
    """The family tree: an arrow from a system to each that took over an idea; hatched where it is known second hand."""
    import matplotlib.pyplot as plt

    colours = {YES: plots.PALETTE[0], NO: plots.PALETTE[1], OPEN: "0.4", OWN: plots.PALETTE[2], NONE: "0.6"}
    made, axes = plots.figure(1, 6.6)
    for parent, child, _ in IDEAS:
        start, end = SYSTEMS[parent], SYSTEMS[child]
        arrow = {"arrowstyle": "-|>", "color": "0.45", "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=(end.column, end.row - 0.3), xytext=(start.column, start.row + 0.3), arrowprops=arrow)
    for key, system in SYSTEMS.items():
        said = word(key)
        box = {
            "boxstyle": "round,pad=0.3",
            "facecolor": colours.get(said, plots.PALETTE[5]),
            "edgecolor": _VEIL,
            "linewidth": 0.5,
            "hatch": "///" if verdict(key)[2] == "second hand" else None,
        }
        name = system.name.replace(" ", "\n").replace("-DPs", "-\nDPs")
        text = f"{name}\n{system.year} {_SIGNS.get(said, '')}".rstrip()
        axes.text(system.column, system.row, text, ha="center", va="center", fontsize=7, color="white", bbox=box)
    _legend(axes, colours)
    axes.set(xlim=(-0.55, 4.55), ylim=(max(s.row for s in SYSTEMS.values()) + 0.7, -0.7), xticks=[], yticks=[])
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    made.legend(loc="outside lower center", ncols=2)
    plt.close(made)  # shown by the cell that asked for it
    return made


def _legend(axes: Any, colours: dict[str, Any]) -> None:
    said: Iterable[str] = {word(key) for key in SYSTEMS}
    for of, label in _LABELS.items():
        if of in said:
            axes.plot(
                [], [], marker="s", linestyle="", color=colours[of], label=f"{_SIGNS.get(of, '')} {label}".strip()
            )
    axes.fill_between([], [], facecolor="0.4", edgecolor=_VEIL, hatch="///", label="known second hand")
