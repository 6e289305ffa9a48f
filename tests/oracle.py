"""The oracle: laws, losses and sensitivities re-derived in exact fractions.

It imports nothing from dpforest and nothing but the standard library, so that a test which compares the two has
two derivations to compare.  Laws are dictionaries or lists of ``Fraction``; a *loss* is kept as its exponential, the
worst ratio of probabilities, because that is a fraction while the loss itself is not.  A rate enters as its
exponential too: ``base`` stands for ``exp(rate)``.

What no fraction says, Gaussian noise and the conversion of a rho, is in fifty decimal digits.

Sections: laws; worst cases; a delta; data sets and neighbours; composition; budgets; scores.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, total_ordering
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product

ADD_REMOVE, REPLACE_ONE = "add-remove", "replace-one"

# ---- laws ------------------------------------------------------------------------------------------------------


def acceptance(scores, base) -> list[Fraction]:
    """``base ** (score - best)``; None marks what is not a candidate.  Differences of scores are whole numbers."""
    best = max(s for s in scores if s is not None)
    return [Fraction(0) if s is None else Fraction(base) ** int(s - best) for s in scores]


def exp_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Two numbers with ``exp(-x)`` between them, ``2^-bits`` apart at most: its series at ``x / 2^m``, squared m times.

    All numbers are whole multiples of ``2^-scale``; what is below is rounded down, what is above up.
    """
    if x > bits:  # e^-x < 2^-x
        return Fraction(0), Fraction(1, 1 << bits)
    halvings = max(0, math.ceil(x).bit_length() + 1)
    scale = bits + 3 * halvings + 40
    step, term, partial, sums = x / 2**halvings, Fraction(1), Fraction(0), []
    for k in range(1, scale):  # the series alternates, and its terms fall: the limit lies between any two sums
        partial += term
        sums.append(partial)
        if abs(term) < Fraction(1, 1 << scale):
            break
        term = -term * step / k
    low, high = (
        (math.floor(min(sums[-2:]) * 2**scale), math.ceil(max(sums[-2:]) * 2**scale)) if step else (1 << scale,) * 2
    )
    for _ in range(halvings):
        low, high = low * low >> scale, -(-high * high >> scale)
    assert (high - low) << bits <= 1 << scale
    return Fraction(low, 1 << scale), Fraction(high, 1 << scale)


def exponential(accept) -> list[Fraction]:
    """The exponential mechanism: weights over their sum."""
    return [p / sum(accept) for p in accept]


def permute_and_flip_orders(accept) -> list[Fraction]:
    """Permute-and-flip by its definition: the average over all K! orders of who is first to accept."""
    law = [Fraction(0)] * len(accept)
    for order in permutations(range(len(accept))):
        nobody = Fraction(1, math.factorial(len(accept)))
        for r in order:
            law[r] += nobody * accept[r]
            nobody *= 1 - accept[r]
    return law


def permute_and_flip(accept) -> list[Fraction]:
    """Permute-and-flip by its integral, ``p_r`` times the integral over [0, 1] of the product of ``1 - p_s x``."""
    law = []
    for r, p in enumerate(accept):
        poly = [Fraction(1)]  # coefficients of 1, x, x^2, ...
        for s, q in enumerate(accept):
            if s != r:
                poly = [a - q * b for a, b in zip([*poly, Fraction(0)], [Fraction(0), *poly], strict=True)]
        law.append(p * sum(c / (power + 1) for power, c in enumerate(poly)))
    return law


def noisy_max(accept) -> list[Fraction]:
    """Who has the largest score plus exponential noise, by the memoryless property.

    Wait until the noise has reached the best score: candidate s is still alive with probability ``p_s``, and what is
    left of each living candidate's noise is a fresh exponential.  So the winner is uniform among the living.
    """
    law = [Fraction(0)] * len(accept)
    for alive in product([False, True], repeat=len(accept)):
        if any(alive):
            chance = math.prod(
                (p if lives else 1 - p for p, lives in zip(accept, alive, strict=True)), start=Fraction(1)
            )
            for r, lives in enumerate(alive):
                if lives:
                    law[r] += chance / sum(alive)
    return law


def two_sided_geometric(k: int, alpha: Fraction) -> Fraction:
    """Probability of the noise ``k``, which is proportional to ``alpha ** |k|``."""
    return (1 - alpha) / (1 + alpha) * alpha ** abs(k)


def noisy_count(count: int, base: Fraction, cap: int) -> dict[int, Fraction]:
    """A count plus two-sided geometric noise, ``alpha = 1 / base``, outputs beyond [0, cap] merged into the ends.

    For counts in [0, cap] the ratio of two such laws is constant beyond the ends, so merging changes no loss: the
    finite law stands for the whole one.
    """
    alpha = 1 / Fraction(base)
    law = {k: two_sided_geometric(k - count, alpha) for k in range(1, cap)}
    law[0] = alpha**count / (1 + alpha)
    law[cap] = alpha ** (cap - count) / (1 + alpha)
    return law


def noisy_histogram(counts, base, cap: int) -> dict[tuple, Fraction]:
    """Independent :func:`noisy_count` on every cell."""
    return independent(*(noisy_count(count, base, cap) for count in counts))


def noisy_corners(counts, base, cap: int) -> dict[tuple, Fraction]:
    """The outputs of :func:`noisy_histogram` with every cell at one of its two ends.

    The ratio of two laws of one cell is monotone in the output, so the worst ratio of a *product* of cells is at a
    corner.  (Not so for a mixture of products: there the whole law is needed.)
    """
    ends = ({k: p for k, p in noisy_count(count, base, cap).items() if k in (0, cap)} for count in counts)
    return independent(*ends)


def noisy_bit(truth: bool, base) -> dict[bool, Fraction]:
    """Randomised response: the truth with odds ``base`` to 1."""
    base = Fraction(base)
    return {truth: base / (1 + base), not truth: 1 / (1 + base)}


# ---- worst cases -----------------------------------------------------------------------------------------------


def worst_ratio(law, other):
    """The largest ratio of probabilities over all outcomes, both ways round; infinite if the supports differ."""
    if not isinstance(law, dict):
        law, other = dict(enumerate(law)), dict(enumerate(other))
    worst = Fraction(1)
    for outcome in law.keys() | other.keys():
        p, q = law.get(outcome, 0), other.get(outcome, 0)
        if (p == 0) != (q == 0):
            return math.inf
        if p:
            worst = max(worst, p / q, q / p)
    return worst


def spread_of_ratios(law, other) -> Fraction:
    """Largest over smallest ratio: e to the *range* of the log-ratios, which bounded range speaks of."""
    ratios = [p / q for p, q in zip(law, other, strict=True) if p]
    return max(ratios) / min(ratios)


def changes(candidates: int, spread: int) -> list[tuple[int, ...]]:
    """Every whole-number profile of score changes whose range is at most ``spread``, up to a common shift."""
    return [d for d in product(range(spread + 1), repeat=candidates) if min(d) == 0]


def selection_worst(mechanism, scores, base, spread: int, measure=worst_ratio) -> Fraction:
    """Worst ``measure`` at ``scores`` over all profiles of :func:`changes`."""
    law = mechanism(acceptance(scores, base))
    moved = ([s + d for s, d in zip(scores, change, strict=True)] for change in changes(len(scores), spread))
    return max(measure(law, mechanism(acceptance(new, base))) for new in moved)


def error(law, scores) -> Fraction:
    """Expected gap of the drawn candidate to the best."""
    return sum(p * (max(scores) - s) for p, s in zip(law, scores, strict=True))


# ---- a delta ---------------------------------------------------------------------------------------------------


def moment(p, q, order: int):
    """``sum P^a Q^(1 - a)`` for a whole order from 2 on, of two dicts; None where only P has an output."""
    possible = [o for o in p if p[o]]
    if any(not q.get(o) for o in possible):
        return None
    return sum(p[o] ** order / q[o] ** (order - 1) for o in possible)


def beyond(p, q, factor):
    """``sum (P - factor Q)_+``, the larger of both directions: the delta that two laws need beside that factor."""
    return max(sum((max(a.get(o, 0) - factor * b.get(o, 0), 0) for o in {**a, **b}), 0) for a, b in ((p, q), (q, p)))


def least_type_two(p, q, type_one):
    """The least type II error of tests of ``p`` against ``q``, by Neyman and Pearson: the best outputs first."""
    room, missed = type_one, sum(q.values())
    for o in sorted({**p, **q}, key=lambda o: (p.get(o, 0) == 0, q.get(o, 0) / p[o] if p.get(o) else 0), reverse=True):
        share = min(1, room / p[o]) if p.get(o) else 1
        room, missed = room - share * p.get(o, 0), missed - share * q.get(o, 0)
    return missed


def gaussian(rate, reach: int, centre: int = 0) -> dict[int, Decimal]:
    """``P(k)`` in proportion to ``exp(-rate (k - centre)^2)``, for all k at most ``reach`` from the centre."""
    with localcontext() as context:
        context.prec = 50
        weights = {centre + k: (-Decimal(rate) * k * k).exp() for k in range(-reach, reach + 1)}
        total = sum(weights.values())
        return {k: weight / total for k, weight in weights.items()}


def delta_of(rho: float, epsilon: float) -> Decimal:
    """The delta that a rho assures beside an epsilon: the least over all orders, found by thirds of an interval."""
    with localcontext() as context:
        context.prec = 50
        r, e = Decimal(rho), Decimal(epsilon)

        def log_delta(place: Decimal) -> Decimal:
            above = place.exp()  # the order, less 1
            order = 1 + above
            return above * (order * r - e) - place + order * (place - order.ln())

        low, high = Decimal(-25), Decimal(40)
        while high - low > Decimal("1e-18"):
            third = (high - low) / 3
            if log_delta(low + third) < log_delta(high - third):
                high -= third
            else:
                low += third
        return log_delta((low + high) / 2).exp()


# ---- data sets and neighbours ----------------------------------------------------------------------------------


def datasets(universe, size: int, least: int = 0) -> list[tuple]:
    """Every multiset of records of ``least`` to ``size`` records, as a sorted tuple."""
    return [data for n in range(least, size + 1) for data in combinations_with_replacement(sorted(universe), n)]


def pairs(universe, size: int, relation: str, least: int = 0):
    """Every unordered pair of neighbours with at most ``size`` records each."""
    if relation == ADD_REMOVE:
        for data in datasets(universe, size - 1, least):
            for record in universe:
                yield data, tuple(sorted((*data, record)))
    elif relation == REPLACE_ONE:
        for data in datasets(universe, size - 1, max(least - 1, 0)):
            for one, other in combinations(sorted(universe), 2):
                yield tuple(sorted((*data, one))), tuple(sorted((*data, other)))
    else:
        raise ValueError(relation)


def renamings(features: int) -> list:
    """All ways to rename binary features, their codes and two classes: functions of a record (features..., class)."""
    return [
        lambda record, order=order, flips=flips: (
            *(record[i] ^ flip for i, flip in zip(order, flips[:-1], strict=True)),
            record[-1] ^ flips[-1],
        )
        for order in permutations(range(features))
        for flips in product((0, 1), repeat=features + 1)
    ]


def up_to_renaming(tuples, names) -> list[tuple]:
    """Of the pairs (or other tuples) of data sets that a renaming of records turns into each other the least one."""
    return sorted(
        {min(tuple(sorted(tuple(sorted(map(name, data))) for data in each)) for name in names) for each in tuples}
    )


def worst_case(mechanism, universe, size: int, relation: str, least: int = 0):
    """Worst ratio of a mechanism (data -> law) over all pairs of neighbours: the exponential of its privacy loss."""
    laws: dict = {}
    worst = Fraction(1)
    for pair in pairs(universe, size, relation, least):
        for data in pair:
            if data not in laws:
                laws[data] = mechanism(data)
        worst = max(worst, worst_ratio(laws[pair[0]], laws[pair[1]]))
    return worst


# ---- composition -----------------------------------------------------------------------------------------------


def independent(*laws) -> dict[tuple, Fraction]:
    """Joint law of independent draws."""
    joint = {(): Fraction(1)}
    for law in laws:
        joint = {(*start, out): p * q for start, p in joint.items() for out, q in law.items()}
    return joint


def then(law, follow) -> dict[tuple, Fraction]:
    """Joint law of a draw and a second one whose mechanism ``follow(output)`` depends on the first."""
    return {(first, second): p * q for first, p in law.items() for second, q in follow(first).items()}


def image(law, function) -> dict:
    """Law of ``function`` of the output."""
    result: dict = defaultdict(Fraction)
    for out, p in law.items():
        result[function(out)] += p
    return dict(result)


def mixture(weighted_laws) -> dict:
    """Law of a draw from a law that is itself drawn."""
    result: dict = defaultdict(Fraction)
    for weight, law in weighted_laws:
        for out, p in law.items():
            result[out] += weight * p
    return dict(result)


def split_by_value(data, parts: int, part_of) -> list[tuple]:
    """Disjoint parts: each record goes where its own value says."""
    return [tuple(record for record in data if part_of(record) == part) for part in range(parts)]


def by_value(mechanisms, part_of):
    """Each part, decided by the record's value, to its own mechanism."""

    def run(data):
        blocks = split_by_value(data, len(mechanisms), part_of)
        return independent(*(mechanism(block) for mechanism, block in zip(mechanisms, blocks, strict=True)))

    return run


def by_coin(mechanisms):
    """Each record to a part of its own by a fair die that does not look at it."""
    parts = len(mechanisms)

    def run(data):
        weighted = []
        for coins in product(range(parts), repeat=len(data)):
            blocks = [tuple(r for r, c in zip(data, coins, strict=True) if c == part) for part in range(parts)]
            law = independent(*(mechanism(block) for mechanism, block in zip(mechanisms, blocks, strict=True)))
            weighted.append((Fraction(1, parts ** len(data)), law))
        return mixture(weighted)

    return run


def by_equal_split(mechanisms, drop: bool = False):
    """A random order of the records, cut into parts whose sizes differ by at most one, the first parts the larger.

    With ``drop`` all parts have the same size and the records left over go nowhere.
    """
    parts = len(mechanisms)

    def run(data):
        sizes = [len(data) // parts + (not drop and part < len(data) % parts) for part in range(parts)]
        cuts = [sum(sizes[:part]) for part in range(parts + 1)]
        orders = set(permutations(data))  # equally likely: every arrangement stands for as many permutations
        weighted = []
        for order in sorted(orders):
            blocks = [tuple(sorted(order[a:b])) for a, b in pairwise(cuts)]
            law = independent(*(mechanism(block) for mechanism, block in zip(mechanisms, blocks, strict=True)))
            weighted.append((Fraction(1, len(orders)), law))
        return mixture(weighted)

    return run


def resampled(data, draws: int | None = None) -> dict[tuple, Fraction]:
    """Law of a sorted sample of ``draws`` records with replacement, as many as there are records if not said."""
    draws = len(data) if draws is None else draws
    law: dict = {(): Fraction(1)}
    for _ in range(draws):
        law = mixture(
            (p / len(data), {tuple(sorted((*sample, record))): Fraction(1)})
            for sample, p in law.items()
            for record in data
        )
    return law


def by_bootstrap(mechanism):
    """A mechanism that sees as many draws with replacement as there are records."""
    return lambda data: mixture((p, mechanism(sample)) for sample, p in resampled(data).items())


def bootstrap_worst(base, size: int, relation: str) -> Fraction:
    """Worst case of a bootstrap of n records, the smaller or common ``size``, by a mechanism of worst case ``base``.

    Add-remove: with j copies of the new record among n + 1 draws the samples are 2j - 1 steps apart, one step for none.
    Replace-one: the mean of ``base ** copies``.
    """
    base = Fraction(base)
    if relation == REPLACE_ONE:
        return (1 + (base - 1) / size) ** size
    none = Fraction(size, size + 1) ** (size + 1)
    return (1 + (base**2 - 1) / (size + 1)) ** (size + 1) / base + none * (base - 1 / base)


def class_histogram(classes: int, base, cap: int):
    """The mechanism that releases noisy class counts of records that are class labels."""
    return lambda data: noisy_histogram([data.count(c) for c in range(classes)], base, cap)


def majority_score(data, feature: int, classes=(0, 1)) -> int:
    """Records in the majority class of their child when binary ``feature`` splits the records (x_0, x_1, ..., y)."""
    children = split_by_value(data, 2, lambda record: record[feature])
    return sum(max(sum(r[-1] == c for r in child) for c in classes) for child in children)


def two_level_tree(mechanism, root_base, leaf):
    """A whole tree on records (x_0, x_1, y): choose the feature to split on, then ``leaf(votes)`` in each child."""

    def run(data):
        root = mechanism(acceptance([majority_score(data, feature) for feature in (0, 1)], root_base))

        def children(feature):
            parts = split_by_value(data, 2, lambda record: record[feature])
            return independent(*(leaf([sum(r[-1] == c for r in part) for c in (0, 1)]) for part in parts))

        return then(dict(enumerate(root)), children)

    return run


def label_leaf(mechanism, base):
    """A leaf that draws one label, the votes being its scores."""
    return lambda votes: dict(enumerate(mechanism(acceptance(votes, base))))


def count_leaf(base, cap: int):
    """A leaf that releases noisy votes, seen at the corners."""
    return lambda votes: noisy_corners(votes, base, cap)


def equal_split_worst(base, parts: int) -> Fraction:
    """Worst case of the equal-size split over all sizes: with chance 1/parts one removal, else a record has to move."""
    base = Fraction(base)
    return base / parts + (1 - Fraction(1, parts)) * base**3


def scope_cost(scope) -> tuple[float, float]:
    """Cost under (add-remove, replace-one) of a scope ``(own add-remove, own replace-one, kind, children)``."""
    own_ar, own_r1, kind, children = scope
    costs = [scope_cost(child) for child in children]
    if not costs:
        return own_ar, own_r1
    ar, r1 = zip(*costs, strict=True)
    if kind == "sequential":
        return own_ar + sum(ar), own_r1 + sum(r1)
    if kind == "partition":
        moves = [a + b for a, b in combinations(ar, 2)]
        return own_ar + max(ar), own_r1 + max([*r1, *moves, max(ar)])
    if kind == "assignment":
        return own_ar + max(ar), own_r1 + max(r1)
    if kind == "equal-split":
        parts, most = len(ar), max(ar)
        if parts == 1:
            return own_ar + most, own_r1 + max(r1)
        return own_ar + 3 * most + math.log(math.exp(-2 * most) / parts + 1 - 1 / parts), own_r1 + max(r1)
    if kind == "poisson-bootstrap":
        return own_ar + sum(grown(a) for a in ar), own_r1 + sum(grown(a) - grown(-a) for a in ar)
    if kind == "bootstrap":
        return own_ar + sum(map(bootstrap_bound, ar)), own_r1 + sum(map(grown, r1))
    raise ValueError(kind)


def grown(x: float) -> float:
    """``e^x - 1``, infinite where doubles end."""
    return math.expm1(x) if x < 700 else math.inf


def bootstrap_bound(a: float) -> float:
    """``ln(P(0) u + sum over j >= 1 of P(j) u^(2j - 1))`` for a Poisson number j of mean 1 and ``u = e^a``."""
    if a > 2.5:  # the sum is e^(u^2 - 1) / u but for a vanishing share
        return grown(2 * a) - a
    terms = [math.exp(a) if j == 0 else math.exp((2 * j - 1) * a - math.lgamma(j + 1)) for j in range(1200)]
    return math.log(sum(terms)) - 1


# ---- budgets ---------------------------------------------------------------------------------------------------


def level_budget(epsilon, depth: int, level: int) -> Fraction:
    """Formula (9) as printed: ``epsilon / s * 1 / (depth - level + 1)`` with ``s = 1/depth + ... + 1/2 + 1``."""
    s = sum(Fraction(1, k) for k in range(1, depth + 1))
    return Fraction(epsilon) / s * Fraction(1, depth - level + 1)


def node_budget(epsilon, depth: int, level: int, leaf: bool) -> Fraction:
    """Formula (10) as printed: a branch gets its level's share, a leaf what levels 1 to level - 1 have left."""
    if not leaf:
        return level_budget(epsilon, depth, level)
    return Fraction(epsilon) - sum(level_budget(epsilon, depth, m) for m in range(1, level))


# ---- scores ----------------------------------------------------------------------------------------------------

# A *split* is a sequence of children.  A child is a sorted tuple of what the score looks at in each of its records: the
# class, or the target.  Scores are the larger the better.


@total_ordering
@dataclass(frozen=True)
class Bits:
    """A number known by its power of two, a fraction: sums and differences stay exact, and so do comparisons."""

    power: Fraction = Fraction(1)

    def __add__(self, other):
        return Bits(self.power * other.power)

    def __neg__(self):
        return Bits(1 / self.power)

    def __sub__(self, other):
        return Bits(self.power / other.power)

    def __lt__(self, other):
        return self.power < other.power


@cache
def impurity(child) -> Fraction:
    """Gini impurity times size: the expected number of errors when labels are dealt out again at random."""
    return sum((t * (1 - Fraction(t, len(child))) for t in Counter(child).values()), Fraction(0))


@cache
def entropy(child) -> Bits:
    """Shannon entropy in bits times size; its power of two is ``n ** n`` over the product of ``t ** t``."""
    return Bits(Fraction(len(child) ** len(child), math.prod(t**t for t in Counter(child).values())))


@cache
def squared_error(child) -> Fraction:
    """Sum of squared distances to the mean."""
    if not child:
        return Fraction(0)
    centre = Fraction(sum(child)) / len(child)
    return sum(((y - centre) ** 2 for y in child), Fraction(0))


@cache
def average(child) -> Fraction:
    """Mean target, 0 for no record."""
    return Fraction(sum(child)) / len(child) if child else Fraction(0)


def whole(split) -> tuple:
    """The undivided node."""
    return tuple(sorted(value for child in split for value in child))


def over_size(total, split) -> Fraction:
    """A total divided by the number of records, 0 for no record."""
    size = sum(map(len, split))
    return total / size if size else Fraction(0)


def gini(split) -> Fraction:
    """Minus the impurity left in the children."""
    return -sum(map(impurity, split), Fraction(0))


def normalised_gini(split) -> Fraction:
    """Minus the share-weighted Gini index of the children."""
    return over_size(gini(split), split)


def gini_gain(split) -> Fraction:
    """Impurity that the split removes."""
    return impurity(whole(split)) + gini(split)


def information_gain(split) -> Bits:
    """Minus the entropy left in the children."""
    return -sum(map(entropy, split), Bits())


@cache
def most_frequent(child) -> Fraction:
    """How often the most frequent class occurs."""
    return Fraction(max(Counter(child).values(), default=0))


def majority(split) -> Fraction:
    """Records that carry the most frequent class of their child."""
    return sum(map(most_frequent, split), Fraction(0))


def sse(split) -> Fraction:
    """Minus the squared error left in the children."""
    return -sum(map(squared_error, split), Fraction(0))


def between(split) -> Fraction:
    """How far the child means are from 1/2: squared distances times sizes."""
    return sum(
        (over_size(sum((y - Fraction(1, 2) for y in child), Fraction(0)) ** 2, [child]) for child in split), Fraction(0)
    )


def variance(split) -> Fraction:
    """Minus the sum of the variances of the children, whatever their sizes."""
    return -sum((over_size(squared_error(child), [child]) for child in split), Fraction(0))


def weighted_variance(split) -> Fraction:
    """Minus the mean squared error."""
    return over_size(sse(split), split)


@cache
def gap(child) -> Fraction:
    """Half of |sum of y - sum of (1 - y)|."""
    return abs(sum(y - (1 - y) for y in child)) / Fraction(2)


def mass_gap(split) -> Fraction:
    """Half the distance between the two masses of each child, summed."""
    return sum(map(gap, split), Fraction(0))


def pearson(points) -> Fraction:
    """Correlation of (x, y) points as its square with its sign, 0 where it is undefined."""
    xs, ys = zip(*points, strict=True) if points else ((), ())
    centre_x, centre_y = average(xs), average(ys)
    covariance = sum(((x - centre_x) * (y - centre_y) for x, y in points), Fraction(0))
    spread = squared_error(xs) * squared_error(ys)
    return covariance * abs(covariance) / spread if spread else Fraction(0)


def pearson_split(split) -> Fraction:
    """:func:`pearson` of the index of the child with the class."""
    return pearson(tuple((index, value) for index, child in enumerate(split) for value in child))


def best_cut(data, absolute: bool = False) -> Fraction:
    """The patent's best cut point of (value, class) records: the data value with the largest correlation.

    A value up to the cut counts as 1, a larger one as 2 (patent, step 3).
    """

    def quality(cut):
        square = pearson(tuple((1 if value <= cut else 2, label) for value, label in data))
        return abs(square) if absolute else square

    return max(sorted({value for value, _ in data}), key=quality)


def average_cut(parts, absolute: bool = False) -> Fraction:
    """What the patent publishes: the mean of the best cuts of the disjoint parts (step 4)."""
    return sum((Fraction(best_cut(part, absolute)) for part in parts), Fraction(0)) / len(parts)


@cache
def every_split(values: tuple) -> tuple:
    """All ways to put a multiset of values into children, each with one empty child more for a record to come."""
    found = {((),)}
    for value in values:
        found = {tuple(sorted(put(split, k, value))) for split in found for k in range(len(split))}
        found = {split if () in split else ((), *split) for split in found}
    return tuple(sorted(found))


@cache
def put(split, k: int, value) -> tuple:
    """The split after ``value`` joined child k, children in a fixed order."""
    joined = tuple(sorted((*split[k], value)))
    return tuple(sorted((*split[:k], joined, *split[k + 1 :])))


def changes_over_splits(score, values, size: int, relation: str):
    """For every pair of neighbours of that size (see below): the largest and the smallest change over *every* split.

    A split is any function of the record, so each candidate may send the new record to any child, and a record that
    is replaced from any child to any child.  ``size`` is that after adding, or the common one.
    """
    score = cache(score)  # other pairs meet the same splits
    for others in combinations_with_replacement(values, size - 1):
        moves = [(score(split), split) for split in every_split(others)]
        if relation == ADD_REMOVE:
            for x in values:
                change = [
                    after - base
                    for base, split in moves
                    for after in {score(put(split, k, x)) for k in range(len(split))}
                ]
                yield max(change), min(change)
            continue
        up: dict = {}
        for _, split in moves:
            with_record = {x: [score(put(split, k, x)) for k in range(len(split))] for x in values}
            ends = {x: (max(found), min(found)) for x, found in with_record.items()}
            for old, new in product(values, repeat=2):
                change = ends[new][0] - ends[old][1]
                up[old, new] = max(up.get((old, new), change), change)
        for old, new in product(values, repeat=2):
            yield up[old, new], -up[new, old]


def changes_over_candidates(candidates, universe, size: int, relation: str):
    """The largest and the smallest change over the candidates, functions of the data, of every pair of neighbours.

    Pairs with the same scores before and after change alike: they are one.
    """
    number: dict = {}  # of each row of scores

    @cache
    def scores(data):
        return number.setdefault(tuple(score(data) for score in candidates), len(number))

    steps = set()
    for others in combinations_with_replacement(sorted(universe), size - 1):
        before, after = scores(others), {x: scores(tuple(sorted((*others, x)))) for x in universe}
        if relation == ADD_REMOVE:
            steps |= {(before, after[x]) for x in universe}
        else:
            steps |= {(after[old], after[new]) for old, new in product(universe, repeat=2)}
    rows = list(number)
    for old, new in sorted(steps):
        change = [b - a for a, b in zip(rows[old], rows[new], strict=True)]
        yield max(change), min(change)


def constants(extremes) -> tuple:
    """(Δ, R, whether no pair of neighbours has one candidate rise and another one fall)."""
    extremes = list(extremes)
    zero = extremes[0][0] - extremes[0][0]
    sensitivity = max(max(high, -low) for high, low in extremes)
    spread = max(high - low for high, low in extremes)
    return sensitivity, spread, all(low >= zero or high <= zero for high, low in extremes)


def split_on(score, *features, value=lambda record: record[-1]):
    """Candidates: ``score`` of the split on each binary feature; None stands for the undivided node."""

    def candidate(feature):
        def of(data):
            parts = [data] if feature is None else split_by_value(data, 2, lambda record: record[feature])
            return score(tuple(tuple(sorted(map(value, part))) for part in parts))

        return of

    return [candidate(feature) for feature in features]


# ---- products of coordinates -----------------------------------------------------------------------------------


def product_change(weights, old, new) -> Fraction:
    """The change of the products of two coordinates, each times its weight, added up; None stands for no record.

    ``weights`` maps (i, j), i <= j, to a number.
    """

    def product(record, i, j):
        return record[i] * record[j] if record else 0

    return sum(w * abs(product(old, i, j) - product(new, i, j)) for (i, j), w in weights.items())


def steepest_product_change(weights, olds, news, relation: str) -> Fraction:
    """The largest :func:`product_change` that one record can make, in whole numbers of a common denominator."""
    rows = {record: [Fraction(w) * record[i] * record[j] for (i, j), w in weights.items()] for record in {*olds, *news}}
    unit = math.lcm(*(entry.denominator for row in rows.values() for entry in row))
    whole = {record: [int(entry * unit) for entry in row] for record, row in rows.items()}
    if relation == ADD_REMOVE:
        return Fraction(max(sum(map(abs, row)) for row in whole.values()), unit)
    pairs = ((whole[old], whole[new]) for old in olds for new in news)
    return Fraction(max(sum(abs(a - b) for a, b in zip(old, new, strict=True)) for old, new in pairs), unit)


def given_positive(law) -> dict:
    """The law of what is drawn again until every coordinate is positive; coordinates are at least 0."""
    kept = {out: p for out, p in law.items() if min(out) > 0}
    return {out: p / sum(kept.values()) for out, p in kept.items()}


def noise_variance(sensitivities, counts, shares) -> Fraction:
    """Summed variance, up to the factor 2 / epsilon ** 2, of Laplace noise on parts that share a budget."""
    return sum(m * (delta / share) ** 2 for delta, m, share in zip(sensitivities, counts, shares, strict=True))


def splits_of_one(parts: int, steps: int):
    """Every way to cut one into that many positive parts, each a whole number of steps."""
    for cuts in combinations(range(1, steps), parts - 1):
        yield [Fraction(b - a, steps) for a, b in pairwise((0, *cuts, steps))]


# ---- the MapReduce tree by correlation -------------------------------------------------------------------------


def signed_square(table) -> Fraction:
    """:func:`pearson` of a table (sides, classes) of counts, by whole numbers alone."""
    cells = [(side, code, n) for side, row in enumerate(table) for code, n in enumerate(row)]

    def total(*powers) -> int:
        return sum(n * side ** powers[0] * code ** powers[1] for side, code, n in cells)

    size = total(0, 0)
    covariance = size * total(1, 1) - total(1, 0) * total(0, 1)
    spread = (size * total(2, 0) - total(1, 0) ** 2) * (size * total(0, 2) - total(0, 1) ** 2)
    return Fraction(covariance * abs(covariance), spread) if spread else Fraction(0)


def side(square, other, gap) -> int:
    """Sign of ``root(other) - root(square) - gap``, exactly; a square carries its root's sign, and ``gap >= 0``.

    ``gap + root(square)`` is negative iff ``square < -gap^2``, and its square is ``gap^2 + |square| + 2 gap
    root(square)``: so the question is whether a fraction exceeds a multiple of one root.
    """
    sign = 1 if square >= -(gap**2) else -1
    rest, multiple = other - sign * (gap**2 + abs(square)), sign * (2 * gap) ** 2 * square
    return (rest * abs(rest) > multiple) - (rest * abs(rest) < multiple)


def slots(records, parts: int) -> list[tuple]:
    """Record number i of a list in part ``i mod parts``: dealt out like cards."""
    return [tuple(records[first::parts]) for first in range(parts)]


def best_attributes(data, features: int) -> set[int]:
    """The binary features of (features..., class) records whose correlation with the class is largest in size."""
    found = [abs(pearson(tuple((record[k], record[-1]) for record in data))) for k in range(features)]
    return {k for k, value in enumerate(found) if value == max(found)}


def smallest_argmax_flip(features: int, relation: str, size: int):
    """The first neighbours whose best attributes are two different single ones, both with two classes, or None."""
    for one, other in pairs(list(product((0, 1), repeat=features + 1)), size, relation):
        if min(len({record[-1] for record in data}) for data in (one, other)) > 1:
            best = [best_attributes(data, features) for data in (one, other)]
            if max(map(len, best)) == 1 and best[0] != best[1]:
                return one, other
    return None


def chosen_path(features: int, height: int, agreeing: int, base, leaf):
    """P(the agreeing features are chosen, level by level, and the leaf counts no more than there were) of D over D'.

    D is the record (0, ..., 0; 0).  D' has one more, of class 1, with 0 in the ``agreeing`` features and 1 in the
    others.  A feature has weight ``base`` to the power of |correlation|, which is 0 on D, and on D' 1 for the others;
    it is used once on a path.  The count of class 1 is below its new mean with probability ``1 / leaf`` of the old.
    """
    ratio = leaf
    for level in range(height):
        left = agreeing - level
        ratio *= (left + (features - agreeing) * base) / (features - level)
    return ratio
