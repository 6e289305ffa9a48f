"""What is audited: pairs of neighbours, and for each an event that was written down before the run.

On the first data set of a pair, `one`, the event is held to be more likely.  The pairs were designed by reading the
sources of the libraries; the recorded run says whether the reading was right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import peer_learners as learners

HERE = (0.5,)  # where many records of one leaf lie, whatever the random cuts
UNIT = ([0.0], [1.0])


@dataclass(frozen=True)
class Case:
    """One audit: a learner with its settings, a pair, an event, and how many fits are made."""

    id: str
    library: str
    learner_name: str
    learner: Callable[..., np.ndarray]
    relation: str
    settings: dict[str, Any]
    one: tuple
    other: tuple
    pair: str
    event: str
    happens: Callable[[np.ndarray], np.ndarray]  # rows of many fits -> whether the event happened in each
    n: int  # fits on either side
    chosen: bool = False  # half of the fits let the auditor choose an event, the other half test it
    view: Callable[[np.ndarray], np.ndarray] = field(default=lambda rows: rows)  # what the auditor chooses from
    title: str = ""
    epsilon: float = 1.0  # the claim that is tested; where advice is tested it is not the learner's own
    delta: float = 0.0


def forest(id, relation, one, other, pair, event, happens, n, *, trees=10, depth=1, bounds=UNIT, **more):
    shuffle, given, probes = more.pop("shuffle", False), more.pop("given", 1.0), more.pop("probes", (HERE,))
    settings = {
        "epsilon": given,
        "n_estimators": trees,
        "max_depth": depth,
        "shuffle": shuffle,
        "bounds": bounds,
        "classes": [0, 1],
        "probes": probes,
    }
    name = "RandomForestClassifier"
    return Case(
        id, "diffprivlib", name, learners.forest, relation, settings, one, other, pair, event, happens, n, **more
    )


# --- forests of which every record lies in the same leaf --------------------------------------------------------------
alternating = tuple((*HERE, i % 2) for i in range(10))
eleven_each = tuple((*HERE, (run + place) % 2) for run in range(10) for place in range(11))
zeros = tuple((*HERE, 0) for _ in range(20))
one_zero = ((*HERE, 0), *((*HERE, 1) for _ in range(9)))


def replaced(records, label, at=0):
    """The records, one of them with another class."""
    return (*records[:at], (*records[at][:-1], label), *records[at + 1 :])


def many_zeros_and_a_one(rows):
    return (rows[:, -1] == 1) & ((rows[:, :-1] == 0).sum(1) >= 3)


point_forests = [
    forest(
        "forest_add_remove", "add-remove", alternating, alternating[1:],
        "ten records at one point, classes alternating; the first is removed",
        "at least six of the first nine trees answer the class of the record in their position",
        lambda rows: (rows[:, :9] == np.arange(9) % 2).sum(1) >= 6, 2000, chosen=True,
    ),
    forest(
        "forest_larger_add_remove", "add-remove", eleven_each, eleven_each[1:],
        "110 records at one point, in ten runs of eleven whose majorities alternate; the first is removed",
        "at least six of the first nine trees answer the majority of the run in their position",
        lambda rows: (rows[:, :9] == np.arange(9) % 2).sum(1) >= 6, 2000,
    ),
    forest(
        "forest_replace_one", "replace-one", replaced(zeros, 1), zeros,
        "twenty records of class 0 at one point; the first changes to class 1", "the first tree answers 1",
        lambda rows: rows[:, 0] == 1, 2000,
    ),
    forest(
        "forest_shuffled_add_remove", "add-remove", one_zero, one_zero[1:],
        "nine records of class 1 and one of class 0 at one point; that one is removed",
        "the last tree answers 1 and at least three of the others answer 0", many_zeros_and_a_one, 3000, shuffle=True,
        chosen=True,
    ),
    forest(
        "forest_shuffled_replace_one", "replace-one", replaced(zeros, 1), zeros,
        "twenty records of class 0 at one point; the first changes to class 1", "at least two trees answer 1",
        lambda rows: (rows == 1).sum(1) >= 2, 3000, shuffle=True, chosen=True,
    ),
    forest(
        "forest_two_add_remove", "add-remove", ((*HERE, 0), (*HERE, 1)), ((*HERE, 1),),
        "two records at one point, of classes 0 and 1; the first is removed",
        "the first tree answers 0 and the second answers 1",
        lambda rows: (rows[:, 0] == 0) & (rows[:, 1] == 1), 4000, trees=2, shuffle=True,
    ),
    forest(
        "forest_two_replace_one", "replace-one", replaced(zeros[:4], 1), zeros[:4],
        "four records of class 0 at one point; the first changes to class 1", "exactly one tree answers 1",
        lambda rows: (rows == 1).sum(1) == 1, 4000, trees=2, shuffle=True,
    ),
    forest(
        "forest_halved", "replace-one", replaced(zeros, 1), zeros,
        "twenty records of class 0 at one point; the first changes to class 1", "the first tree answers 1",
        lambda rows: rows[:, 0] == 1, 2000, given=0.5,
    ),
]  # fmt: skip


# --- a table at the default depth -------------------------------------------------------------------------------------
def made_up_table(n=100, d=4):
    """Four uniform features; the class says whether the first two add up to more than one."""
    X = np.random.default_rng(0).random((n, d)).round(3)
    return tuple((*map(float, x), int(x[0] + x[1] > 1)) for x in X)


def chunks(n, trees):
    """Which tree has the record of each position, if they are not shuffled."""
    return (np.arange(n) // (n / trees)).astype(int)


table = made_up_table()
before, after = chunks(100, 10), np.append(-1, chunks(99, 10))
moved = [int(i) for i in np.flatnonzero(before != after)]  # the first record leaves, and others move up
moved_points = tuple(table[i][:-1] for i in moved)


def agreement(rows):
    """Trees that answer the class of a record which moves away from them, less those to which one moves."""
    answers = rows.reshape(len(rows), 10, len(moved))
    score = np.zeros(len(rows), dtype=int)
    for at, record in enumerate(moved):
        label = table[record][-1]
        score += answers[:, before[record], at] == label
        if after[record] >= 0:
            score -= answers[:, after[record], at] == label
    return score


def supporters(rows):
    """Trees that answer the class which the first record has in the first data set, at its place."""
    return (rows == table[0][-1]).sum(1)


default = {"depth": 5, "bounds": ([0.0] * 4, [1.0] * 4), "chosen": True}
first = {**default, "probes": (table[0][:-1],)}
flipped = replaced(table, 1 - table[0][-1])
hundred = "a hundred records with four uniform features"
default_forests = [
    forest(
        "forest_default_add_remove", "add-remove", table, table[1:], f"{hundred}; the first is removed",
        "the trees that answer the class of a record which leaves them outnumber those that answer that of a record "
        "which comes by at least three", lambda rows: agreement(rows) >= 3, 2000,
        view=lambda rows: agreement(rows)[:, None], **default, probes=moved_points,
    ),
    forest(
        "forest_default_replace_one", "replace-one", table, flipped, f"{hundred}; the class of the first changes",
        "the first tree answers the first record's old class at its place",
        lambda rows: rows[:, 0] == table[0][-1], 2000, **first,
    ),
    forest(
        "forest_default_shuffled_add_remove", "add-remove", table, table[1:], f"{hundred}; the first is removed",
        "at least seven trees answer the first record's class at its place", lambda rows: supporters(rows) >= 7, 1500,
        view=lambda rows: supporters(rows)[:, None], **first, shuffle=True,
    ),
    forest(
        "forest_default_shuffled_replace_one", "replace-one", table, flipped,
        f"{hundred}; the class of the first changes",
        "at least seven trees answer the first record's old class at its place", lambda rows: supporters(rows) >= 7,
        1500, view=lambda rows: supporters(rows)[:, None], **first, shuffle=True,
    ),
]  # fmt: skip

# --- the other learners of diffprivlib --------------------------------------------------------------------------------
tree_settings = {"epsilon": 1.0, "max_depth": 1, "bounds": UNIT, "classes": [0, 1], "probes": (HERE,)}
bayes_settings = {"epsilon": 1.0, "bounds": UNIT}
years = ([1920.0], [2010.0])
born = tuple((1965.0, i // 10) for i in range(20))
since_1920 = tuple((year - 1920, label) for year, label in born)
low = tuple((0.0, i // 10) for i in range(20))


low_eight = tuple((0.0, i // 8) for i in range(16))


def blunt(rows):
    """Counts, means, sums and variances without their low-order bits, which have a case of their own."""
    counts, means, variances = rows[:, :2], rows[:, 2:4], rows[:, 4:]
    return np.column_stack([counts, means, counts * means, counts * variances, np.log(variances)]).round(6)


def fine_bits(rows):
    """Whether the sum of class 0 shows bits that one less a double, or one, cannot have.

    The mean is divided by the count again without rounding if that is a power of two.
    """
    counts, total = rows[:, 0], rows[:, 0] * rows[:, 2]
    scaled = np.ldexp(total, 53)
    return np.isin(counts, 2 ** np.arange(5)) & (total > 0) & (total < 0.5) & (scaled != np.floor(scaled))


def diffprivlib(id, name, learner, relation, settings, *rest, **more):
    return Case(id, "diffprivlib", name, learner, relation, settings, *rest, **more)


others = [
    diffprivlib(
        "forest_classes", "RandomForestClassifier", learners.forest_classes, "replace-one",
        {"epsilon": 1.0, "n_estimators": 10, "max_depth": 1, "bounds": UNIT, "classes": None},
        replaced(zeros, 1), zeros, "twenty records of class 0; the first changes to class 1; classes not given",
        "the model has two classes", lambda rows: rows[:, 0] == 2, 500,
    ),
    diffprivlib(
        "tree_add_remove", "DecisionTreeClassifier", learners.tree, "add-remove", tree_settings,
        ((*HERE, 0), (*HERE, 1)), ((*HERE, 1),), "two records at one point, of classes 0 and 1; the first is removed",
        "the tree answers 0", lambda rows: rows[:, 0] == 0, 20_000,
    ),
    diffprivlib(
        "tree_replace_one", "DecisionTreeClassifier", learners.tree, "replace-one", tree_settings,
        ((*HERE, 1), (*HERE, 0)), zeros[:2], "two records of class 0 at one point; the first changes to class 1",
        "the tree answers 1", lambda rows: rows[:, 0] == 1, 20_000,
    ),
    diffprivlib(
        "bayes_value", "GaussianNB", learners.bayes, "replace-one", bayes_settings,
        ((1.0, 0), *low[1:]), low, "twenty records at 0, ten of each class; the value of the first changes to 1",
        "the first mean times its count is at least 1", lambda rows: rows[:, 0] * rows[:, 2] >= 1, 10_000, chosen=True,
        view=blunt,
    ),
    diffprivlib(
        "bayes_bits", "GaussianNB", learners.bayes, "replace-one", bayes_settings,
        low_eight, ((1.0, 0), *low_eight[1:]),
        "sixteen records at 0, eight of each class; the value of the first changes to 1",
        "the count of class 0 is a power of two, and that times the mean is below 1/2 and no multiple of 2^-53",
        fine_bits, 20_000,
    ),
    diffprivlib(
        "bayes_label", "GaussianNB", learners.bayes, "replace-one", bayes_settings,
        ((1.0, 1), *low), ((1.0, 0), *low),
        "twenty records at 0, ten of each class, and one at 1, whose class changes from 0 to 1",
        "class 0 has the smaller count and a mean at the lower bound; the second mean times its count is at least 1",
        lambda rows: (rows[:, 0] < rows[:, 1]) & (rows[:, 2] == 0) & (rows[:, 1] * rows[:, 3] >= 1), 20_000,
        chosen=True, view=blunt,
    ),
    diffprivlib(
        "bayes_year", "GaussianNB", learners.bayes, "replace-one", {"epsilon": 1.0, "bounds": years},
        born, replaced(born, 1),
        "twenty people born in 1965, bounds 1920 and 2010, ten of each class; one changes class",
        "class 0 has the count 10 and a mean strictly between the bounds",
        lambda rows: (rows[:, 0] == 10) & (rows[:, 2] > 1920) & (rows[:, 2] < 2010), 10_000,
    ),
    diffprivlib(
        "bayes_shifted", "GaussianNB", learners.bayes, "replace-one", {"epsilon": 0.5, "bounds": ([0.0], [90.0])},
        since_1920, replaced(since_1920, 1), "the same people, years counted from 1920, bounds 0 and 90",
        "class 0 has the count 10 and a mean strictly between the bounds",
        lambda rows: (rows[:, 0] == 10) & (rows[:, 2] > 0) & (rows[:, 2] < 90), 10_000,
    ),
    diffprivlib(
        "bayes_size", "GaussianNB", learners.bayes, "add-remove", bayes_settings, low, low[1:],
        "twenty records; the first is removed", "the class counts add up to 20",
        lambda rows: rows[:, :2].sum(1) == 20, 2000,
    ),
    diffprivlib(
        "bayes_class", "GaussianNB", learners.bayes, "replace-one", {**bayes_settings, "classes": [0, 1]},
        replaced(tuple((0.0, 0) for _ in range(20)), 1), tuple((0.0, 0) for _ in range(20)),
        "twenty records of class 0, the first changes to class 1; both classes given to partial_fit",
        "class 1 has a count above zero", lambda rows: rows[:, 1] > 0, 2000,
    ),
]  # fmt: skip

# --- InterpretML's boosting machine -----------------------------------------------------------------------------------
ebm_settings = {"epsilon": 1.0, "delta": 1e-5}
unit_settings = {**ebm_settings, "feature_types": ["continuous"], "privacy_bounds": [(0.0, 1.0)]}
colours = ("rare", *(("red", "green", "blue")[i % 3] for i in range(299)))
coloured = tuple((colour, i // 3 % 2) for i, colour in enumerate(colours))
middle = tuple((0.5, i % 2) for i in range(99))


def ebm(id, learner, relation, settings, *rest, **more):
    name = "DPExplainableBoostingClassifier"
    return Case(id, "InterpretML", name, learner, relation, settings, *rest, **more, delta=settings["delta"])


codes = {"red": 0.0, "green": 1.0, "blue": 2.0, "rare": 3.0}
coded = tuple((codes[colour], label) for colour, label in coloured)
rare = "300 records, one nominal feature; the only record with the category `rare` changes to a common one"
machines = [
    ebm(
        "ebm_nominal", learners.boosted_names, "replace-one",
        {**ebm_settings, "feature_types": ["nominal"], "name": "rare"}, coloured, (("red", 0), *coloured[1:]), rare,
        "`rare` is listed in `bins_`", lambda rows: rows[:, 0] == 1, 1000,
    ),
    ebm(
        "ebm_declared", learners.boosted_names, "replace-one",
        {**ebm_settings, "feature_types": [["red", "green", "blue", "rare"]], "name": "rare"},
        coloured, (("red", 0), *coloured[1:]), rare + "; all four categories given as a list",
        "`rare` is listed in `bins_`", lambda rows: rows[:, 0] == 1, 1000,
    ),
    ebm(
        "ebm_coded", learners.boosted_scores, "replace-one",
        {**ebm_settings, "feature_types": ["continuous"], "privacy_bounds": [(0.0, 3.0)], "probes": ((3.0,), (0.0,))},
        coded, ((0.0, 0), *coded[1:]), "the same change, categories coded 0, 1, 2 and 3 and declared continuous",
        "the score of the rare category is below that of red", lambda rows: rows[:, 0] < rows[:, 1], 1000, chosen=True,
    ),
    ebm(
        "ebm_size", learners.boosted_size, "add-remove", unit_settings, ((0.01, 1), *middle), middle,
        "a hundred records; the first is removed", "`bag_weights_` is 100", lambda rows: rows[:, 0] == 100, 500,
    ),
    ebm(
        "ebm_class", learners.boosted_classes, "replace-one", unit_settings,
        ((0.01, 1), *((0.5, 0) for _ in range(99))), ((0.01, 0), *((0.5, 0) for _ in range(99))),
        "a hundred records of class 0; the first changes to class 1", "`classes_` has two entries",
        lambda rows: rows[:, 0] == 2, 500,
    ),
    ebm(
        "ebm_scores", learners.boosted_scores, "replace-one", {**unit_settings, "probes": ((0.01,), (0.99,))},
        ((0.01, 1), *middle), ((0.99, 0), *middle),
        "99 records in the middle of the range, and one that moves from its low end to its high end and changes class",
        "the score at the low end is above that at the high end", lambda rows: rows[:, 0] > rows[:, 1], 1000,
        chosen=True,
    ),
]  # fmt: skip

TITLES = {  # in the order of the record; ±1 stands for add-remove, swap for replace-one
    "forest_add_remove": "10 records, ordered, ±1",
    "forest_larger_add_remove": "110 records, ordered, ±1",
    "forest_default_add_remove": "100 records, depth 5, ordered, ±1",
    "forest_replace_one": "20 records, ordered, swap",
    "forest_default_replace_one": "100 records, depth 5, ordered, swap",
    "forest_shuffled_add_remove": "10 records, shuffled, ±1",
    "forest_default_shuffled_add_remove": "100 records, depth 5, shuffled, ±1",
    "forest_two_add_remove": "2 trees, shuffled, ±1",
    "forest_shuffled_replace_one": "20 records, shuffled, swap",
    "forest_default_shuffled_replace_one": "100 records, depth 5, shuffled, swap",
    "forest_two_replace_one": "2 trees, shuffled, swap",
    "forest_classes": "classes not given, swap",
    "forest_halved": "half of ε, ordered, swap",
    "tree_add_remove": "2 records, ±1",
    "tree_replace_one": "2 records, swap",
    "bayes_size": "number of records, ±1",
    "bayes_class": "which classes occur, swap",
    "bayes_value": "a changed value, swap",
    "bayes_label": "a changed class, swap",
    "bayes_bits": "low-order bits, swap",
    "bayes_year": "years of birth, swap",
    "bayes_shifted": "years shifted, half of ε, swap",
    "ebm_size": "number of records, ±1",
    "ebm_class": "which classes occur, swap",
    "ebm_nominal": "category names, swap",
    "ebm_declared": "declared categories, swap",
    "ebm_scores": "scores, swap",
    "ebm_coded": "coded categories, swap",
}
every = {case.id: case for case in (*point_forests, *default_forests, *others, *machines)}
CASES = {id: replace(every.pop(id), title=title) for id, title in TITLES.items()}
assert not every, f"without a title: {list(every)}"
