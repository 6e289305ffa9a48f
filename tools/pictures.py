"""Write the book's pictures that no notebook draws (``make pictures``): SVG that a chapter includes.

What a picture says in numbers is computed here, by the library or in fractions.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dpforest import EDPRFClassifier, Schema, UnprovenPrivacyWarning, mechanisms, scores
from dpforest.audit import exact
from dpforest.audit.exact import laws
from dpforest.audit.sampling import bounds
from dpforest.curator.weights import weight_steps
from dpforest.models.boosted import SCALE
from dpforest.privacy import equal_split
from tools import knobs
from tools.svg import Picture

FOLDER = knobs.FOLDER.parent / "pictures"
FAR = 60  # an output above all counts


def whole(x: float) -> int:
    """A number that is whole but for rounding."""
    assert math.isclose(x, round(x), rel_tol=1e-9), x
    return round(x)


def signed(k: int) -> str:
    return f"{'+' if k > 0 else '−' if k < 0 else ''}{abs(k)}"


# --- privacy: which nodes a record is paid at ------------------------------------------------------------------------
PATH_BASES = {"root": 2, "left": 2, "right": 3}
#: A title, the records that leave and those that come: where they go, and their class.
PATH_CASES = [
    ("one more", [], [("right", 0)]),
    ("class changes", [("right", 1)], [("right", 0)]),
    ("parts ways", [("left", 1)], [("right", 0)]),
]


def path_ratio(node: str, gone: list, come: list) -> tuple[list[int], int]:
    """How a node's two counts differ, and the ratio of its answer's laws where the counts are farthest out."""
    change = [0, 0]
    for records, sign in ((gone, -1), (come, 1)):
        for side, label in records:
            if node in ("root", side):
                change[label] += sign
    law = mechanisms.two_sided_geometric_law
    rate = math.log(PATH_BASES[node])
    ratio = math.prod(law(FAR - abs(k), rate) / law(FAR, rate) for k in change)
    return change, whole(ratio)


def parting_path() -> Picture:
    picture = Picture(212, "Three trees of a root and two children, with the ratio that each node contributes.")
    for place, (title, gone, come) in enumerate(PATH_CASES):
        left = 120 * place
        at = {"root": (left + 60, 52), "left": (left + 31, 126), "right": (left + 89, 126)}
        picture.text(left + 60, 14, title, "middle strong")
        for side in ("left", "right"):
            kind = "orange" if any(side == where for where, _ in come + gone) else "faint"
            picture.line(at["root"][0], at["root"][1] + 20, at[side][0], at[side][1] - 20, kind)
        factors = []
        for node, (x, y) in at.items():
            change, ratio = path_ratio(node, gone, come)
            picture.circle(x, y, 20, "box orange" if ratio > 1 else "box")
            picture.text(x, y + 5, ratio, "middle strong")
            said = " ".join(signed(k) for k in change if k) or "same"
            picture.text(*((x + 18, y - 14, said, "small") if node == "root" else (x, y + 35, said, "middle small")))
            factors += [ratio] * (ratio > 1)
        product = " · ".join(map(str, factors))
        picture.text(left + 60, 200, f"{product} = {math.prod(factors)}", "middle strong")
    return picture


# --- privacy: who moves in an equal split ----------------------------------------------------------------------------
def split_cases(n: int = 3) -> list[tuple[Fraction, int]]:
    """Chance and number of changed class counts, for ``n`` records of class 0 and one of class 1 in two equal parts.

    The newcomer is record n.  Parts differ from those of a split without it as the proof says: it goes out of its part,
    and if that was not the one that grows, a record of the other takes its place.
    """
    size = (n + 1) // 2
    found: Counter[int] = Counter()
    for grown in combinations(range(n + 1), size):
        with_x = [[n + 1 - size - (n not in grown), int(n not in grown)], [size - (n in grown), int(n in grown)]]
        without = [[n - (size - 1), 0], [size - 1, 0]]
        found[int(np.abs(np.subtract(with_x, without)).sum())] += 1
    return [(Fraction(count, found.total()), changes) for changes, count in sorted(found.items())]


def who_moves() -> Picture:
    base = 2
    cases = split_cases()
    total = sum(chance * base**changes for chance, changes in cases)
    assert total == whole(math.exp(equal_split(math.log(base), 2)))
    picture = Picture(270, "A split of three records into two parts, and two splits of four: who moves, what differs.")

    def part(x: float, y: float, records: str, label: str = "") -> None:
        picture.rect(x, y, 84, 34, "box", rx=5)
        for place, name in enumerate(records):
            at = x + 22 + 40 * place
            picture.circle(at, y + 17, 12, "box orange" if name == "x" else "box blue")
            picture.text(at, y + 21, name, "middle")
        picture.text(x + 42, y + 49, label, "middle small")

    picture.text(50, 14, "part 1", "middle strong")
    picture.text(146, 14, "part 2, it grows", "middle strong")
    part(8, 24, "ab", "2 and 0")
    part(104, 24, "c", "1 and 0")
    picture.text(208, 40, "without x: records of")
    picture.text(208, 56, "class 0 and of class 1")
    (first, few), (second, many) = cases
    part(8, 100, "ab", "2 and 0")
    part(104, 100, "cx", "1 and 1")
    picture.text(208, 112, f"chance {first}: x in part 2")
    picture.text(208, 128, f"{few} count differs")
    picture.text(208, 144, f"ratio {base**few}", "strong")
    part(8, 176, "ax", "1 and 1")
    part(104, 176, "cb", "2 and 0")
    picture.arrow(72, 172, 164, 172, "blue")
    picture.text(208, 188, f"chance {second}: b moves")
    picture.text(208, 204, f"{many} counts differ")
    picture.text(208, 220, f"ratio {base**many}", "strong")
    sums = " + ".join(f"{chance} · {base**changes}" for chance, changes in cases)
    picture.text(180, 258, f"{sums} = {total}, where {base} is promised", "middle strong")
    return picture


# --- tree: growing, with the ledger ----------------------------------------------------------------------------------
TREE_FEATURES = {"smokes": ["no", "yes"], "age": ["under 50", "over 50"], "sex": ["f", "m"]}
#: How many are ill, and well, by smokes, age and sex.
TREE_TABLE = {
    ("no", "under 50", "f"): (2, 46),
    ("no", "under 50", "m"): (13, 31),
    ("no", "over 50", "f"): (3, 47),
    ("no", "over 50", "m"): (15, 33),
    ("yes", "under 50", "f"): (25, 25),
    ("yes", "under 50", "m"): (27, 24),
    ("yes", "over 50", "f"): (49, 6),
    ("yes", "over 50", "m"): (52, 5),
}


def grown_tree():
    rows = [
        (*cell, label)
        for cell, counts in TREE_TABLE.items()
        for label, count in zip(("ill", "well"), counts, strict=True)
        for _ in range(count)
    ]
    table = pd.DataFrame(rows, columns=[*TREE_FEATURES, "class"])
    schema = Schema(categorical=TREE_FEATURES, classes=["ill", "well"])
    learner = EDPRFClassifier(epsilon=1.0, schema=schema, n_estimators=1, max_depth=2, leaf="counts", random_state=1)
    return learner.fit(table[list(TREE_FEATURES)], table["class"])


def growing_tree() -> Picture:
    model = grown_tree()
    forest, ledger = model.forest_, model.ledger_
    names = list(TREE_FEATURES)
    choices = ledger.charges("choose a feature by gini")
    (leaf,) = ledger.charges("count the classes of a leaf")
    picture = Picture(358, "A tree in three steps, with what each step is charged and what a path has spent so far.")
    x = {1: [112], 2: [56, 168], 3: [29, 85, 141, 197]}
    levels = {1: [0], 2: [1, 2], 3: [3, 4, 5, 6]}
    assert forest.first_child.tolist() == [1, 3, 5, 0, 0, 0, 0]
    path = {0, 2, 6}  # the way of one record

    def frame(top: float, step: int) -> None:
        y = {level: top + 20 + 58 * (level - 1) for level in range(1, step + 1)}
        for level in range(1, step + 1):
            for place, node in enumerate(levels[level]):
                at = x[level][place]
                kind = "box orange" if step == 3 and node in path else "box blue" if level == step else "box"
                if level == 3:
                    picture.rect(at - 26, y[level] - 17, 52, 38, kind)
                    for row, (label, count) in enumerate(zip(("ill", "well"), forest.values[node], strict=True)):
                        picture.text(at, y[level] - 2 + 16 * row, f"{label} {count}", "middle small")
                    continue
                picture.rect(at - 32, y[level] - 13, 64, 26, kind, rx=13)
                picture.text(at, y[level] + 5, names[forest.feature[node]] + "?", "middle")
                for child, code in enumerate(TREE_FEATURES[names[forest.feature[node]]] if level < step else []):
                    end = x[level + 1][2 * place + child]
                    on = step == 3 and node in path and levels[level + 1][2 * place + child] in path
                    bottom = y[level + 1] - (17 if level == 2 else 13)
                    picture.line(at, y[level] + 13, end, bottom, "orange" if on else "faint")
                    at_word = (at + end) / 2 + (5 if child else -5), (y[level] + y[level + 1]) / 2 - 1
                    picture.text(*at_word, code.removesuffix(" 50"), "small" if child else "small end")

    said = [
        (["1. Which feature?", f"root: {choices[0]:.3f}"], choices[0]),
        (["2. Which, in each?", f"each node: {choices[1]:.3f}"], choices[0] + choices[1]),
        (["3. What to say?", f"each leaf: {leaf:.3f}"], choices[0] + choices[1] + leaf),
    ]
    assert math.isclose(said[-1][1], model.ledger_.epsilon)
    for top, step in ((0, 1), (72, 2), (192, 3)):
        frame(top, step)
        words, spent = said[step - 1]
        picture.text(226, top + 20, words[0], "strong")
        picture.text(226, top + 37, words[1])
        picture.text(226, top + 54, f"a path: {spent:.3f}")
    return picture


# --- the first page: one record more, and another tree ---------------------------------------------------------------
STOP_RECORDS = {"one record": ((0, 0),), "one record more": ((0, 0), (1, 1))}


def chance_of_a_split(variant: str) -> dict[str, float]:
    """With what probability the shipped eDPRF, one tree of one level, splits its root, on each of two tables."""
    schema = Schema(categorical={"x": ["0", "1"]}, classes=["well", "ill"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        learner = EDPRFClassifier(
            epsilon=1.0, schema=schema, n_estimators=1, max_depth=1, leaf="label", variant=variant
        )
        found = {}
        for name, records in STOP_RECORDS.items():
            law = exact.law_of(learner, schema, records)
            split = (p for forest, p in law.items() if "splits" in laws.describe(learner, schema, records, forest))
            found[name] = float(sum(split))
    return found


def purity_stop() -> Picture:
    published, proved = chance_of_a_split("published"), chance_of_a_split("proved")
    words = (
        "Two tables that differ in one record, the tree that a published algorithm grows of each, and how likely it is "
    )
    picture = Picture(236, words + "that a tree splits: as published never and always, repaired nearly as likely.")
    for x, (name, records) in zip((88, 272), STOP_RECORDS.items(), strict=True):
        picture.text(x, 14, name, "middle strong")
        picture.rect(x - 50, 24, 100, 36, "box", rx=5)
        for place, (_, label) in enumerate(records):
            at = x + 44 * (place - (len(records) - 1) / 2)
            picture.circle(at - 14, 42, 6, "orange" if label else "blue")
            picture.text(at - 4, 46, "ill" if label else "well", "small")
        picture.arrow(x, 64, x, 84)
    picture.rect(56, 92, 64, 30, "box blue", rx=5)
    picture.text(88, 112, "well", "middle")
    picture.rect(240, 92, 64, 26, "box orange", rx=13)
    picture.text(272, 110, "x?", "middle")
    for x, label in ((238, "well"), (306, "ill")):
        picture.line(272, 118, x, 136, "orange")
        picture.rect(x - 26, 136, 52, 26, "box", rx=5)
        picture.text(x, 154, label, "middle small")
    picture.text(180, 190, "Probability that the tree splits", "middle strong")
    for y, name, chances, form in ((208, "as published", published, ".0f"), (226, "repaired", proved, ".4f")):
        picture.text(180, y, name, "middle")
        for x, chance in zip((88, 272), chances.values(), strict=True):
            picture.text(x, y, format(chance, form), "middle strong" if form == ".0f" else "middle")
    return picture


# --- scores: twin candidates -----------------------------------------------------------------------------------------
def twin_scores(n: int = 4) -> dict[str, tuple[float, float]]:
    """The Gini score of candidates A and B: without z, with z, and with z' in its place; all others are of class 0."""
    same, apart = [[n - 1, 1], [0, 0]], [[n - 1, 0], [0, 1]]
    alone = [[n - 1, 0], [0, 0]]
    score = scores.gini
    return {
        "without z": (float(score(alone)), float(score(alone))),
        "with z": (float(score(same)), float(score(apart))),
        "with z′": (float(score(apart)), float(score(same))),
    }


def twins() -> Picture:
    found = twin_scores()
    picture = Picture(276, "Two candidate splits on three data sets: the children, the scores and how they change.")
    for x, name in ((150, "candidate A"), (290, "candidate B")):
        picture.text(x, 14, name, "middle strong")
    places = {"without z": ("", ""), "with z": ("same", "apart"), "with z′": ("apart", "same")}
    for row, (title, values) in enumerate(found.items()):
        y = 28 + 88 * row
        picture.text(4, y + 20, title, "strong")
        for x, where, value in zip((150, 290), places[title], values, strict=True):
            for child in (-1, 1):
                picture.rect(x + 32 * child - 30, y, 60, 30, "box", rx=5)
            for record in range(3):
                picture.circle(x - 50 + 12 * record, y + 15, 5, "blue")
            if where:
                picture.rect(x + (-14 if where == "same" else 27), y + 10, 10, 10, "orange")
            picture.text(x, y + 46, f"q = {signed_number(value)}", "middle")
    for row, (before, after) in enumerate((("without z", "with z"), ("with z", "with z′"))):
        moves = [b - a for a, b in zip(found[before], found[after], strict=True)]
        y = 28 + 88 * row + 66
        for x, move in zip((150, 290), moves, strict=True):
            picture.text(x, y, f"↓ {signed_number(move, plus=True)}", "middle")
        picture.text(4, y, f"spread {max(moves) - min(moves):g}")
    return picture


def signed_number(x: float, plus: bool = False) -> str:
    return f"{'−' if x < 0 else '+' if plus and x > 0 else ''}{abs(x):g}"


# --- boosting: one round ---------------------------------------------------------------------------------------------
def boosting_round(right: int, wrong: int) -> tuple[Fraction, Fraction, Fraction]:
    """AdaBoost's error of a first tree, and the share of a record that it gets right, or wrong, after the round."""
    tau = Fraction(wrong, right + wrong)
    odds = (1 - tau) / tau  # exp(2 alpha), by which a wrong record outweighs a right one
    total = right + wrong * odds
    return tau, 1 / total, odds / total


def own_weight(margin: float) -> float:
    return float(weight_steps(np.array([round(margin * SCALE)]), "capped", 10_000)[0]) / 10_000


def one_round() -> Picture:
    right, wrong = 6, 2
    tau, less, more = boosting_round(right, wrong)
    tau_after, less_after, more_after = boosting_round(right, wrong + 1)
    vote = math.log((1 - tau) / tau) / 2
    own = [own_weight(margin * 2 * vote) for margin in (1, -1)]
    picture = Picture(
        372, "Bars of the weights of eight records, and of nine, under AdaBoost and as weights of their own."
    )

    def bars(top: float, title: str, values: list, scale: float, changed: set[int]) -> None:
        picture.text(4, top + 12, title)
        floor = top + 76
        for place, value in enumerate(values):
            x, height = 6 + 39 * place, scale * float(value)
            wide = place in changed
            picture.rect(x, floor - height, 28, height, "orange" if wide else "blue")
            said = f"{float(value):.3g}" if isinstance(value, float) else str(value)
            picture.text(x + 14, floor - height - 4, said, "middle small")
        picture.line(2, floor, 356, floor)

    names = ["right"] * right + ["wrong"] * wrong
    for place, name in enumerate([*names, "wrong"]):
        picture.text(20 + 39 * place, 364, name, "middle small")
    bars(0, f"AdaBoost, 8 records: error {tau}", [less] * right + [more] * wrong, 160, set())
    bars(
        88,
        f"AdaBoost, one wrong record more: error {tau_after}",
        [less_after] * right + [more_after] * (wrong + 1),
        160,
        {right, right + 1, right + 2},
    )
    bars(176, "own weights, 8 records", [own[0]] * right + [own[1]] * wrong, 42, set())
    bars(264, "own weights, one wrong record more", [own[0]] * right + [own[1]] * (wrong + 1), 42, {right + 2})
    return picture


# --- diffpets: the coupling of two bootstraps ------------------------------------------------------------------------
def bootstrap_rows(n: int, base: int) -> list[tuple[int, Fraction, int, int]]:
    """How many of n + 1 draws are the new record, the chance of that, steps between the samples, the ratio at most."""
    chance = Fraction(1, n + 1)
    rows = []
    for j in range(n + 2):
        steps = 2 * j - 1 if j else 1
        rows.append((j, math.comb(n + 1, j) * chance**j * (1 - chance) ** (n + 1 - j), steps, base**steps))
    return rows


def bootstrap_bound(n: int, u: int) -> Fraction:
    """``A_n`` of the theorem."""
    kept = Fraction(n, n + 1) ** (n + 1)
    return (1 + Fraction(u * u - 1, n + 1)) ** (n + 1) / u + kept * (u - Fraction(1, u))


def coupled_bootstraps() -> Picture:
    n, base = 3, 2
    rows = bootstrap_rows(n, base)
    total = sum(chance * ratio for _, chance, _, ratio in rows)
    assert total == bootstrap_bound(n, base)
    picture = Picture(262, "Samples of three draws from D beside samples of four draws from D′, by copies of x.")
    for x, words, kind in (
        (40, "from D", "middle"),
        (138, "from D′", "middle"),
        (216, "chance", "middle"),
        (272, "steps", "middle"),
        (325, "ratio", "middle"),
    ):
        picture.text(x, 14, words, f"{kind} strong")

    def draw(x: float, y: float, name: str, kind: str) -> None:
        picture.rect(x, y, 20, 22, f"box {kind}", rx=4)
        picture.text(x + 10, y + 16, name, "middle small")

    for row, (j, chance, steps, ratio) in enumerate(rows):
        y = 28 + 40 * row
        for place in range(n):
            removed = place > n - j
            draw(6 + 24 * place, y, str(place + 1), "" if removed else "blue")
            if removed:
                picture.line(4 + 24 * place, y + 24, 28 + 24 * place, y - 2, "orange")
        for place in range(n + 1):
            new = place > n - j
            name = "x" if new else str(place + 1)
            draw(92 + 24 * place, y, name, "orange" if new or place == n else "blue")
        for x, words in ((216, chance), (272, steps), (325, ratio)):
            picture.text(x, y + 16, words, "middle")
    picture.line(4, 230, 356, 230, "faint")
    picture.text(4, 251, f"mean ratio: {total} ≈ {float(total):.2f}, where {base} is claimed", "strong")
    return picture


# --- auditing: the joint bound ---------------------------------------------------------------------------------------
JOINT = {"hits": 500, "n": 1000, "other_hits": 184, "other_n": 1000}
JOINT_WEIGHT = 0.2  # near the best for such counts: the first varies less


def log_ratio(s: float, t: float) -> float:
    """What counts say of the loss if the first end misses with the chance of a normal score s, the second of t."""
    low = bounds.lower_end(JOINT["hits"], JOINT["n"], ndtr(-s))
    high = bounds.upper_end(JOINT["other_hits"], JOINT["other_n"], ndtr(-t))
    return float(np.log(low / high))


def joint_plane() -> Picture:
    error, weight = 0.05, JOINT_WEIGHT
    z, h, each = -ndtri(0.99 * error), -ndtri(0.005 * error), -ndtri(error / 2)
    end = (z - math.sqrt(1 - weight) * h) / math.sqrt(weight)  # the segment runs from (end, h) to (h, end)
    two_ends, joint = bounds.epsilon_lower(**JOINT), bounds.epsilon_lower(**JOINT, weight=weight)
    assert math.isclose(two_ends, log_ratio(each, each))

    def above(s: float) -> float:
        return (z - math.sqrt(weight) * s) / math.sqrt(1 - weight)

    shown = {s: log_ratio(s, above(s)) for s in (end, z / (math.sqrt(weight) + math.sqrt(1 - weight)), h)}
    least = min(log_ratio(s, above(s)) for s in np.linspace(end, h, 2001))
    assert f"{least:.3f}" == f"{min(shown.values()):.3f}" == f"{joint:.3f}"
    picture = Picture(
        290, "The plane of two deviations s and t, the segment of the joint bound and two points below it."
    )

    def at(s: float, t: float) -> tuple[float, float]:
        return 34 + 38 * (s - left), 264 - 43 * (t - low)

    left, low = -4.0, -1.6
    picture.path([at(left, low), at(left, h), at(end, h), at(h, above(h)), at(h, low)], "band")
    picture.line(*at(left, low), *at(4.4, low))
    picture.line(*at(left, low), *at(left, 4.2))
    for tick in range(-3, 5):
        picture.text(*at(tick, low - 0.38), signed(tick), "middle small")
    for tick in range(-1, 4):
        picture.text(at(left, 0)[0] - 5, at(0, tick)[1] + 4, signed(tick), "small end")
    picture.text(*at(4.2, low + 0.15), "s")
    picture.text(*at(left + 0.15, 4.0), "t")
    picture.line(*at(end, h), *at(h, above(h)), "orange")
    for s, value in shown.items():
        picture.circle(*at(s, above(s)), 4, "orange")
        said = f"{value:.3f}", "strong" if value == min(shown.values()) else ""
        picture.text(*at(min(s + 0.2, h - 0.25), above(s) + 0.25), *said)
    picture.rect(at(each, 0)[0] - 4, at(0, each)[1] - 4, 8, 8, "green")
    picture.text(*at(each + 0.2, each - 0.1), f"{two_ends:.3f}")
    one, other = (1.6, -0.9), (-3.75, 0.4)
    corners = [(one, (one[0], above(one[0]))), (other, (end, other[1])), ((end, other[1]), (end, h))]
    for start, stop in corners:
        picture.arrow(*at(*start), *at(*stop), "blue dashed")
    for point in (one, other):
        picture.circle(*at(*point), 4, "blue")
    picture.text(*at(one[0] + 0.2, one[1] - 0.1), "(S, T)")
    return picture


# --- the tree by correlation: two sides, two classes ----------------------------------------------------------------
#: A title, and the counts ((e, a), (b, c)) of classes 1 and 0 on sides 1 and 2; a record of class 1 joins e.
FOUR_COUNTS = [("e = 0", ((0, 1), (1, 2))), ("c = 0", ((1, 2), (2, 0))), ("b = 0", ((1, 1), (0, 2)))]


def correlation(counts: tuple[tuple[int, int], tuple[int, int]]) -> float:
    """Of side 1 with class 1."""
    (e, a), (b, c) = counts
    return (e * c - a * b) / math.sqrt((e + a) * (b + c) * (e + b) * (a + c))


def joined(counts: tuple[tuple[int, int], tuple[int, int]]) -> tuple[tuple[int, int], tuple[int, int]]:
    (e, a), other = counts
    return (e + 1, a), other


def four_counts() -> Picture:
    picture = Picture(196, "Three tables of two sides and two classes, and how the correlation rises in each.")
    for place, (title, counts) in enumerate(FOUR_COUNTS):
        left = 26 + 118 * place
        picture.text(left + 42, 14, title, "middle strong")
        for column, name in enumerate(("class 1", "class 0")):
            picture.text(left + 21 + 44 * column, 38, name, "middle small")
        for row, sides in enumerate(counts):
            if not place:
                picture.text(left - 4, 66 + 38 * row, f"{row + 1}", "end small")
            for column, count in enumerate(sides):
                here = not row and not column
                picture.rect(left + 44 * column, 44 + 38 * row, 42, 36, "box orange" if here else "box", rx=4)
                said = f"{count} + 1" if here else count
                picture.text(
                    left + 21 + 44 * column, 67 + 38 * row, said, "middle" if count or here else "middle strong"
                )
        before, after = correlation(counts), correlation(joined(counts))
        picture.text(
            left + 42, 148, f"{signed_number(round(before, 3))} to {signed_number(round(after, 3))}", "middle small"
        )
        picture.text(left + 42, 176, f"rises by {after - before:.3f}", "middle strong")
    return picture


# --- mechanisms: a threshold that rises ------------------------------------------------------------------------------
#: A title, and the noise that a candidate needs to win: the threshold, which rises by the range R = 1.
THRESHOLDS = [("candidate behind", 1.0), ("candidate ahead", -0.5)]
THRESHOLD_BASE = 2  # the rate is its logarithm


def chance_above(threshold: float) -> float:
    """That exponential noise exceeds a threshold."""
    return THRESHOLD_BASE ** -max(threshold, 0.0)


def rising_threshold() -> Picture:
    picture = Picture(236, "The density of exponential noise twice, with a threshold that rises by the range.")
    rate = math.log(THRESHOLD_BASE)
    for place, (title, threshold) in enumerate(THRESHOLDS):

        def at(noise: float, density: float, left: int = 52 + 180 * place) -> tuple[float, float]:
            return left + 30 * noise, 140 - 100 * density / rate

        def curve(start: float) -> list[tuple[float, float]]:
            return [(noise, rate * THRESHOLD_BASE**-noise) for noise in np.linspace(start, 3.8, 39)]

        picture.text(at(1.4, 0)[0], 14, title, "middle strong")
        picture.line(*at(-1, 0), *at(3.9, 0))
        before, after = threshold, threshold + 1
        for start, kind in ((before, "band"), (after, "band")):
            area = curve(max(start, 0.0))
            picture.path([at(*point) for point in [(area[0][0], 0), *area, (area[-1][0], 0)]], kind)
        picture.path([at(*point) for point in curve(0.0)], "curve")
        for place_of, name, kind in ((before, "τ", "blue"), (after, "τ + R", "orange")):
            picture.line(*at(place_of, 0), *at(place_of, 1.1 * rate), kind)
            picture.text(at(place_of, 0)[0], 158, name, "middle")
        said = [f"{chance_above(each):.4g}" for each in (before, after)]
        picture.text(at(1.4, 0)[0], 188, f"chance to win: {said[0]}, then {said[1]}", "middle small")
        ratio = chance_above(before) / chance_above(after)
        picture.text(at(1.4, 0)[0], 214, f"ratio {ratio:.4g}", "middle strong")
    return picture


PICTURES: dict[str, Callable[[], Picture]] = {
    "parting_path": parting_path,
    "who_moves": who_moves,
    "growing_tree": growing_tree,
    "twins": twins,
    "one_round": one_round,
    "coupled_bootstraps": coupled_bootstraps,
    "joint_plane": joint_plane,
    "rising_threshold": rising_threshold,
    "four_counts": four_counts,
    "purity_stop": purity_stop,
}


def programs() -> dict[Path, Callable[[], str]]:
    """Every file, and what writes it."""
    drawn = {FOLDER / f"{name}.svg": lambda draw=draw: draw().svg() for name, draw in PICTURES.items()}
    return knobs.fragments() | drawn


if __name__ == "__main__":
    for path, text in programs().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text())
        print(path.name)
