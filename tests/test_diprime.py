"""DiPriMe: leaves without records, the score of a median, the theorem's constant, and the estimators."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import oracle
import pytest
from shared import MIXED, THREE, assert_an_estimator, assert_spent, quietly, table

from dpforest import Schema, UnprovenPrivacyWarning, mechanisms
from dpforest.audit import exact_audit, greybox
from dpforest.audit.exact.laws import law_of_shapes
from dpforest.chance import Seeded
from dpforest.learners.run import Selection
from dpforest.papers.diprime import GRID, DiPriMeClassifier, DiPriMeRegressor, Reach, flip_densities
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE, equal_split
from dpforest.schema import TARGET_LEVELS
from dpforest.scores import balance, moment_balance

#: A number of three codes, which has two cuts.
LINE = Schema(numeric={"x": (0, 3)}, classes=[0, 1])
LINE_TO_NUMBERS = Schema(numeric={"x": (0, 3)}, target=(0, 1))
NUMBERS = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, target=(0, 10))
relations = pytest.mark.parametrize("relation", RELATIONS)
variants = pytest.mark.parametrize("variant", ["proved", "published"])


def model(**parameters) -> DiPriMeClassifier:
    return DiPriMeClassifier(**{"epsilon": 4.0, "schema": MIXED, "random_state": 0, **parameters})


def regressor(**parameters) -> DiPriMeRegressor:
    return DiPriMeRegressor(**{"epsilon": 4.0, "schema": NUMBERS, "random_state": 0, **parameters})


def line(kind: type = DiPriMeClassifier, **parameters):
    """One tree of one cut of three codes."""
    schema = LINE if kind is DiPriMeClassifier else LINE_TO_NUMBERS
    usual = {"epsilon": 1.0, "schema": schema, "n_bins": 3, "n_estimators": 1, "max_depth": 1, "random_state": 0}
    return kind(**usual | parameters)


def numbers(n: int = 400):
    X, y = table(n)
    return X, np.where(y == "yes", 8.0, 2.0)


@variants
def test_an_estimator(variant, tmp_path):
    assert_an_estimator(model(variant=variant), *table(), tmp_path)


@variants
def test_a_regressor(variant, tmp_path):
    assert_an_estimator(regressor(variant=variant), *numbers(), tmp_path)


@pytest.mark.parametrize("fitted", [lambda: model().fit(*table()), lambda: regressor().fit(*numbers())])
def test_what_is_proved_reads_nothing_unpaid(fitted):
    fitted = fitted()
    assert fitted.ledger_.leaks == []
    assert fitted.guarantee_.epsilon == 4.0
    assert fitted.ledger_.epsilon == pytest.approx(4.0, rel=1e-12)


# -- the score -------------------------------------------------------------------------------------------------------


def outside(children: tuple) -> int:
    """Records outside the largest child, from the child of each record."""
    return len(children) - max((children.count(child) for child in set(children)), default=0)


@pytest.mark.claim(
    "lem-balance",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$\Delta = 1$; $R = 1$ under add-remove and $R' = 2$ under replace-one, from two records on",
)
@relations
@pytest.mark.parametrize("children", [2, 3])
def test_the_range_of_the_balance(relation, children):
    """Two candidates, which send a record to any child of either: all pairs of up to five records, or four."""
    universe = list(product(range(children), repeat=2))
    worst = {n: (0, 0) for n in range(1, 6)}
    for pair in oracle.pairs(universe, 5 if children == 2 else 4, relation):
        one, other = ([outside(tuple(r[c] for r in data)) for c in (0, 1)] for data in pair)
        steps = [after - before for before, after in zip(one, other, strict=True)]
        n = max(map(len, pair))
        found = max(map(abs, steps)), abs(steps[0] - steps[1])
        worst[n] = tuple(map(max, worst[n], found))
    largest = (0, 0)
    for n in range(1, 6 if children == 2 else 5):
        largest = tuple(map(max, largest, worst[n]))
        assert largest == (balance.sensitivity(relation, n), balance.range(relation, n))
    assert largest == (balance.sensitivity(relation), balance.range(relation))
    assert balance.exact_range(relation) == balance.range(relation)


@pytest.mark.claim("lem-balance")
def test_the_balance_is_that_of_the_children():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 9, (50, 3, 2))
    for each in counts:
        placed = tuple(np.repeat(range(3), each.sum(axis=1)).tolist())
        assert balance(each) == outside(placed)
    moments = np.concatenate([counts.sum(axis=-1)[..., None], rng.integers(0, 9, (50, 3, 1))], axis=-1)
    np.testing.assert_array_equal(balance(counts), moment_balance(moments))
    np.testing.assert_array_equal(balance.exact(counts)[0], balance(counts).astype(int))
    np.testing.assert_array_equal(moment_balance.exact(moments), balance.exact(counts))
    # of a cut, half of n - |n_1 - n_2|: so the published selection is one by the balance, at twice the rate
    sizes = counts[:, :2].sum(axis=-1)
    np.testing.assert_array_equal(2 * balance(counts[:, :2]), sizes.sum(axis=1) - abs(sizes[:, 0] - sizes[:, 1]))


# -- as published ----------------------------------------------------------------------------------------------------


def noise(*steps):
    """Noise that is given: so much on each count, in their order."""

    def draw(counts, rate, chance):
        return np.resize(np.array(steps), np.shape(counts))

    return draw


def share_of(steps, records: int, monkeypatch) -> int:
    """What the leaf of so many records of class 0, of a table of no more, says of class 1 with that noise."""
    with monkeypatch.context() as patch:
        patch.setattr(
            mechanisms, "two_sided_geometric", lambda counts, rate, chance: counts + noise(*steps)(counts, 0, 0)
        )
        forest, _ = line(variant="published").replay(
            np.zeros((1, records), dtype=np.uint8), np.zeros(records, dtype=np.uint8), LINE, 1.0, Seeded(0)
        )
    [share] = forest.values[[int(forest.first_child[0])], 1]  # code 0 is below either cut
    return int(share)


@pytest.mark.claim(
    "cex-diprime-empty",
    verdict="refuted",
    evidence="exhaustive",
    constant=r"no finite $\eps$: an event has probability 0 from one table, and $(1 + e^{-\eps/2})^{-2}$ from the "
    r"other; $0.387$ at $\eps = 1$",
)
@relations
def test_an_empty_leaf_says_what_no_other_says(relation, monkeypatch):
    for steps in product(range(-3, 4), repeat=2):
        zero, one = max(1 + steps[0], 0), max(steps[1], 0)
        expected = GRID * one // (zero + one) if zero + one else GRID // 2
        assert share_of(steps, 1, monkeypatch) == expected
    # a share of 0 needs a count of 0, and one that is not: from one record of class 0
    alpha = math.exp(-1 / 2)
    law = {k: (1 - alpha) / (1 + alpha) * alpha ** abs(k) for k in range(-200, 201)}
    event = sum(p * q for (a, p), (b, q) in product(law.items(), repeat=2) if 1 + a > 0 >= b)
    assert event == pytest.approx((1 + alpha) ** -2, rel=1e-9)
    assert event == pytest.approx(0.387, abs=5e-4)
    # from none: never, at either end of what is drawn
    ends = []
    for at in (0, GRID - 2):
        with monkeypatch.context() as patch:
            patch.setattr(Seeded, "integers", lambda self, high, size, at=at: np.full(size, at))
            leaf = line(variant="published", relation=relation).replay(
                np.zeros((1, 0), dtype=np.uint8), np.zeros(0, dtype=np.uint8), LINE, 1.0, Seeded(0)
            )[0]
        ends += leaf.values[leaf.feature < 0, 1].tolist()
    assert (min(ends), max(ends)) == (1, GRID - 1)


def test_a_leaf_of_many_records_says_its_share():
    X, y = table(4000)
    fitted = quietly(model(variant="published", n_estimators=1, max_depth=1, epsilon=50.0), X, y)
    shares = fitted.forest_.values[fitted.forest_.feature < 0]
    assert (shares.sum(axis=1) == GRID).all()
    codes = fitted.forest_.leaves(fitted._codes(X))[0]
    for leaf in np.unique(codes):
        assert fitted.forest_.values[leaf, 1] / GRID == pytest.approx(np.mean(y[codes == leaf] == "yes"), abs=0.01)


@pytest.mark.claim(
    "cex-diprime-mean",
    verdict="refuted",
    evidence="exhaustive",
    constant=r"$\ln 2 + \frac\lambda2$ from one record to two, $\lambda$ being the budget of the leaf: more than "
    r"$\eps$ for $\eps < \frac43 \ln 2$, and it does not vanish with the budget",
)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.9])
def test_a_mean_with_the_noise_of_its_own_size(epsilon):
    rate = epsilon / 2

    def density(x: float, targets: list) -> float:
        """Of the mean of targets in [0, 1] with Laplace noise of scale 1 / (n rate)."""
        n = len(targets)
        return n * rate / 2 * math.exp(-n * rate * abs(x - sum(targets) / n))

    one, two = [0.0], [0.0, 1.0]
    loss = math.log(density(1 / 2, two) / density(1 / 2, one))
    assert loss == pytest.approx(math.log(2) + rate / 2, rel=1e-12)
    assert loss > epsilon
    assert math.log(2) + 0.924 / 4 == pytest.approx(0.924, abs=5e-4)  # where it is epsilon
    # the worst point, and no other pair of as many records has more
    points = np.linspace(-1, 2, 3001)
    ratios = [max(density(x, two) / density(x, one), density(x, one) / density(x, two)) for x in points if 0 < x < 1]
    assert math.log(max(ratios)) == pytest.approx(loss, rel=1e-9)


@pytest.mark.claim("cex-diprime-mean")
@relations
def test_the_code_that_ships_divides_by_the_exact_size(relation, monkeypatch):
    """The noise on the sum has the rate of the leaf, whatever the size, and what is released is a mean."""
    asked = []

    def draw(counts, rate, chance):
        asked.append(float(np.asarray(rate).max()) * TARGET_LEVELS)
        return counts + 60

    monkeypatch.setattr(mechanisms, "two_sided_geometric", draw)
    for records, mean in ((1, 0.25), (2, 0.125), (5, 0.05)):
        forest, _ = line(DiPriMeRegressor, variant="published", relation=relation).replay(
            np.zeros((1, records), dtype=np.uint8), np.zeros(records, dtype=np.uint8), LINE_TO_NUMBERS, 1.0, Seeded(0)
        )
        values = forest.values[int(forest.first_child[0])]
        assert values.sum() == GRID
        assert values[0] / GRID == pytest.approx(mean, abs=1 / (TARGET_LEVELS * records))
    assert asked == pytest.approx([1 / 2] * 3)
    for extreme in (-60, 600):
        monkeypatch.setattr(mechanisms, "two_sided_geometric", lambda counts, rate, chance, by=extreme: counts + by)
        forest, _ = line(DiPriMeRegressor, variant="published").replay(
            np.zeros((1, 1), dtype=np.uint8), np.zeros(1, dtype=np.uint8), LINE_TO_NUMBERS, 1.0, Seeded(0)
        )
        assert forest.values[int(forest.first_child[0]), 0] == (0 if extreme < 0 else GRID)


@pytest.mark.claim(
    "cex-diprime-flip",
    verdict="refuted",
    evidence="exhaustive",
    constant=r"no finite $\eps$ but 1: $(1 - m)\ln\frac1w + m(1 + \ln 2) - \ln 3$ in the limit at a budget $m$, for "
    r"two records that are $w$ apart",
)
@pytest.mark.parametrize("budget", [0.05, 0.5, 2.0])
def test_an_interval_between_two_records(budget):
    losses = []
    for w in (1e-2, 1e-4, 1e-6, 1e-8):
        lengths = [1 / 2, w, 1 / 2 - w]
        scores = [2 * math.log(length) - behind for length, behind in zip(lengths, (2, 0, 2), strict=True)]
        law = oracle.permute_and_flip([math.exp(budget / 2 * (score - max(scores))) for score in scores])
        edges, density = flip_densities([1 / 2 + w, 1 / 2], 0.0, 1.0, budget)
        np.testing.assert_allclose(edges, [0, 1 / 2, 1 / 2 + w, 1])
        np.testing.assert_allclose(density, [p / length for p, length in zip(law, lengths, strict=True)], rtol=1e-6)
        assert density @ lengths == pytest.approx(1)
        alone = flip_densities([1 / 2], 0.0, 1.0, budget)[1]
        assert alone.tolist() == [1, 1]
        losses.append(math.log(density[1]))
    limit = (1 - budget) * math.log(1e8) + budget * (1 + math.log(2)) - math.log(3)
    assert losses[-1] == pytest.approx(limit, rel=1e-4)
    assert abs(losses[-1]) > 8
    steps = np.diff(losses)  # the same for every hundredth of the distance, in the end
    assert steps[-1] == pytest.approx((1 - budget) * math.log(100), rel=1e-4)
    # by the exponential mechanism a short interval has less weight, and no more density: two scores apart at most
    weights = np.array([math.exp(-budget / 2 * behind) for behind in (2, 0, 2)])
    exponential = weights / (weights @ [1 / 2, 1e-8, 1 / 2 - 1e-8])
    assert abs(np.log(exponential)).max() <= budget + 1e-6


@pytest.mark.claim(
    "pub-diprime-flip",
    true={"add-remove": "after a repair", "replace-one": "after a repair"},
    read="in part (the abstract, and the authors' program)",
    constant="see `cex-diprime-flip`",
    evidence="exhaustive",
)
def test_a_record_that_is_replaced_makes_the_interval_as_well():
    """The second record comes from elsewhere; on public cuts permute-and-flip is as private as its range says."""
    apart, near = (flip_densities([1 / 2, other], 0.0, 1.0, 0.5)[1] for other in (3 / 4, 1 / 2 + 1e-9))
    assert math.log(near[1] / apart[1]) > 8
    for relation, more in ((ADD_REMOVE, 1), (REPLACE_ONE, 2)):
        selection = Selection(balance)
        assert selection.calibration == "range"
        assert selection.score.exact_range(relation) == more


@pytest.mark.claim(
    "pub-diprime",
    true={"add-remove": "after a repair", "replace-one": "after a repair"},
    read="in part (the abstract, and the authors' program)",
    constant=r"no finite $\eps$ (`cex-diprime-empty`); where no leaf is empty $\frac34\eps$ for a tree of classes "
    r"under add-remove, and $\eps + \ln\frac{1 + e^{\eps/2}}2$ at least under replace-one",
    evidence="exhaustive",
)
@relations
def test_the_published_claim(relation):
    with pytest.warns(UnprovenPrivacyWarning, match="which leaves have no records"):
        fitted = model(variant="published", relation=relation, max_depth=2).fit(*table(100))
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.claimed) == (math.inf, 4.0)
    assert len(fitted.ledger_.leaks) == 1
    assert "leak" in greybox(line(variant="published", relation=relation), random_state=0, max_pairs=2, runs=2).kinds
    # what the charges add up to beside the leak: half a level's budget for a median, and the parts of equal size
    for trees, spent in ((1, 0.75 * 4), (10, equal_split(0.75 * 4, 10))):
        fitted = quietly(model(variant="published", relation=relation, n_estimators=trees), *table(4000))
        assert fitted.ledger_.paid(relation) == pytest.approx(6.0 if relation == REPLACE_ONE else spent, rel=1e-9)


@pytest.mark.claim("pub-diprime")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_replaced_record_costs_more_where_no_leaf_is_empty(epsilon):
    """Six records of class 0, two at each code; one goes from code 0 to code 2.  The event is the lower cut."""
    law = {}
    for name, codes in (("before", (2, 2, 2)), ("after", (1, 2, 3))):
        gap = [abs(codes[0] - codes[1] - codes[2]), abs(codes[0] + codes[1] - codes[2])]
        # half of the median's half of epsilon, at half a rate: the exponential mechanism on |n_1 - n_2|
        cut = oracle.exponential([math.exp(-epsilon / 4 / 2 * each) for each in gap])[0]
        alpha = math.exp(-epsilon / 2)
        at = (1 - alpha) / (1 + alpha)
        left, right = codes[0], codes[1] + codes[2]
        # left a share of 1 / 3: k of class 1 and twice as many of class 0, which are at least as many as there were
        low = sum(at * alpha**k * at * alpha ** (2 * k - left) for k in range(1, 500))
        full = (
            (alpha / (1 + alpha)) * alpha**right / (1 + alpha)
        )  # right a share of 1: some of class 1, none of class 0
        law[name] = cut * low * full
        records = tuple((code, 0) for code in range(3) for _ in range(codes[code]))
        kind = line(epsilon=epsilon, variant="published")
        shapes = law_of_shapes(kind, LINE, records, lambda forest: int(forest.mask[0, 0]))
        assert shapes[0b110].probability == pytest.approx(cut, rel=1e-9)
    loss = abs(math.log(law["before"] / law["after"]))
    assert loss == pytest.approx(epsilon + math.log((1 + math.exp(epsilon / 2)) / 2), rel=1e-9)
    assert loss > epsilon


# -- as proved -------------------------------------------------------------------------------------------------------


def leaf_counts(data, cut: int) -> np.ndarray:
    """Records of each side and class."""
    counts = np.zeros((2, 2))
    for x, label in data:
        counts[int(x > cut), label] += 1
    return counts


def worst_of_line(relation: str, size: int, share: float = 0.5) -> float:
    """The largest loss of a tree of one cut of three codes, by hand: the cut, and what two leaves count."""
    price, worst = 1 + (relation == REPLACE_ONE), 0.0
    for pair in oracle.pairs(list(product(range(3), (0, 1))), size, relation):
        laws = []
        for data in pair:
            scores = [int(leaf_counts(data, cut).sum(axis=1).min()) for cut in (0, 1)]
            accept = [math.exp(share / price * (score - max(scores))) for score in scores]
            laws.append(oracle.permute_and_flip(accept))
        for cut in (0, 1):
            # an output below both counts, or above, tells all that they differ by
            moved = np.abs(leaf_counts(pair[0], cut) - leaf_counts(pair[1], cut)).sum()
            told = abs(math.log(laws[0][cut] / laws[1][cut])) + (1 - share) / price * moved
            worst = max(worst, told)
    return worst


@pytest.mark.claim(
    "thm-diprime",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$\eps$, attained by one cut of a number of three codes: from one record to two under add-remove, by "
    r"four under replace-one",
)
@pytest.mark.parametrize(("relation", "least"), [(ADD_REMOVE, 2), (REPLACE_ONE, 4)])
def test_the_theorem(relation, least):
    """All pairs of few records: the code that ships has the law by hand, and loses all of epsilon and no more."""
    for size in range(least - 1, least + 1):
        found = exact_audit(line(relation=relation), n_max=size)
        assert found.epsilon == pytest.approx(worst_of_line(relation, size), rel=1e-9)
        assert (found.epsilon == pytest.approx(1, rel=1e-9)) == (size == least)
        assert not found.violated
    assert exact_audit(line(relation=relation, median_share=0.2), n_max=2).epsilon == pytest.approx(
        worst_of_line(relation, 2, 0.2), rel=1e-9
    )


@pytest.mark.claim("thm-diprime")
@relations
def test_the_theorem_of_numbers(relation):
    """A regressor's masses move by one record's worth, as counts do."""
    found = exact_audit(line(DiPriMeRegressor, relation=relation), n_max=3)
    assert found.epsilon == pytest.approx(worst_of_line(relation, 3), rel=1e-9)
    assert not found.violated


@pytest.mark.claim("thm-diprime")
@relations
def test_the_ledger_has_all_of_epsilon(relation):
    for options in ({}, {"max_depth": 2, "median_share": 0.3}, {"sampling": "all", "n_estimators": 3}):
        assert_spent(model(relation=relation, **options).fit(*table()), 4.0)
    assert_spent(regressor(relation=relation).fit(*numbers()), 4.0)


@pytest.mark.claim("thm-diprime")
@relations
def test_the_grey_box_finds_nothing(relation):
    kind, options = {
        ADD_REMOVE: (DiPriMeClassifier, {"max_depth": 2}),
        REPLACE_ONE: (DiPriMeRegressor, {"n_estimators": 2}),
    }[relation]
    found = greybox(line(kind, relation=relation, **options), random_state=0, max_pairs=4, runs=2)
    assert not found.violated, str(found)


@pytest.mark.claim("thm-diprime")
def test_a_branch_that_ends_early_spends_the_rest_in_its_leaf():
    """One code cannot be divided; and below the cuts of three codes there is nothing more to divide."""
    schema = Schema(categorical={"x": ["a", "b", "c"]}, classes=[0, 1])
    X, y = [["a"], ["b"], ["c"]] * 30, [0, 1, 0] * 30
    fitted = model(schema=schema, n_estimators=1, max_depth=4, median_share=0.4).fit(X, y)
    assert fitted.forest_.depth == 2
    assert_spent(fitted, 4.0)
    spent = fitted.ledger_.charges("count the classes of a leaf")
    assert {round(each, 9) for each in spent} <= {round(4 * (1 - 0.1 * level), 9) for level in (1, 2)}


# -- who breaks a line of the theorem --------------------------------------------------------------------------------


class WholeBudgetALevel(DiPriMeClassifier):
    """*Paths*: each level has what all may."""

    def _shares(self, epsilon):
        each, leaf = super()._shares(epsilon)
        return each * self.max_depth, leaf


class SensitivityOfAddRemove(DiPriMeClassifier):
    """*Medians*: the rate of add-remove under replace-one."""

    def _grow(self, run, each, how, settle):
        super()._grow(run, each * 2, how, settle)


class EqualParts(DiPriMeClassifier):
    """*Sharing*: disjoint parts of equal size, and each tree has all of epsilon."""

    def option(self, name):
        return "equal-split" if name == "sampling" else super().option(name)


class CutsOfTheRecords(DiPriMeClassifier):
    """*Public cuts*: none where the middle code does not occur."""

    def as_proved(self, run):
        if (run.curator._records.codes == 1).any():
            return super().as_proved(run)
        run.start_forest(1)
        self._make_leaves(run, run.frontier, run.epsilon)
        return run.release()


class OnlyLeavesWithRecords(DiPriMeClassifier):
    """*Leaves*: one without records is not counted."""

    def _make_leaves(self, run, leaves, epsilon):
        from dpforest.curator.queries import ClassCounts

        exact = run.curator._records.answer(ClassCounts(run.growth, leaves.nodes)).sum(axis=1)
        super()._make_leaves(run, leaves[exact > 0], epsilon)


def test_each_mutant_is_caught():
    with pytest.raises(AssertionError, match="the ledger says"):
        WholeBudgetALevel(epsilon=1.0, schema=MIXED, max_depth=2, random_state=0).fit(*table())
    with pytest.raises(AssertionError, match="the ledger says"):
        SensitivityOfAddRemove(epsilon=1.0, schema=MIXED, relation=REPLACE_ONE, random_state=0).fit(*table())
    with pytest.raises(AssertionError, match="the ledger says"):
        EqualParts(epsilon=1.0, schema=MIXED, random_state=0).fit(*table())
    assert exact_audit(line(CutsOfTheRecords, schema=LINE), n_max=1).violated
    assert greybox(line(OnlyLeavesWithRecords, schema=LINE), random_state=0, max_pairs=2, runs=2).violated


# -- the cuts --------------------------------------------------------------------------------------------------------


def unpacked(masks: np.ndarray) -> np.ndarray:
    return np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little").astype(bool)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_all_divisions_of_few_categories(n):
    reach = Reach(np.array([4, n]), np.array([True, False]), 1)
    found = {tuple(np.flatnonzero(bits).tolist()) for bits in unpacked(reach.divisions(Seeded(0), 0, 1))}
    assert len(found) == 2 ** (n - 1) - 1
    assert all(each and 0 not in each and max(each) < n for each in found)
    cuts = unpacked(reach.divisions(Seeded(0), 0, 0))
    assert [np.flatnonzero(bits).tolist() for bits in cuts] == [[1, 2, 3], [2, 3], [3]]


@pytest.mark.parametrize("n", [7, 40, 63, 64, 200])
def test_some_divisions_of_many_categories(n):
    reach = Reach(np.array([n]), np.array([False]), 1)
    sides = unpacked(reach.divisions(Seeded(0), 0, 0))
    assert sides.shape[0] == 32
    assert sides.any(axis=1).all()
    assert not sides[:, 0].any()
    assert not sides[:, n:].any()
    assert sides[:, 1:n].any(axis=0).all()  # none is always left out
    assert sides.sum() / (32 * (n - 1)) == pytest.approx(0.5, abs=0.12)


def test_only_what_can_be_parted_is_parted():
    """Along each path of a deep forest a split parts codes that may reach its node, and goes on where it can."""
    schema = Schema(numeric={"x": (0, 1)}, categorical={"c": list("uvw")}, classes=["no", "yes"])
    forest = model(schema=schema, n_bins=4, max_depth=9, n_estimators=3).fit(*table()).forest_
    todo = [(int(root), [set(range(4)), set(range(3))]) for root in forest.roots]
    n_leaves = 0
    while todo:
        node, left = todo.pop()
        feature = int(forest.feature[node])
        if feature < 0:
            assert all(len(codes) == 1 for codes in left)
            n_leaves += 1
            continue
        second = {code for code in left[feature] if unpacked(forest.mask[[node]])[0, code]}
        first = left[feature] - second
        assert first
        assert second
        if feature == 0:
            assert max(first) < min(second)
        for child, codes in enumerate((first, second)):
            todo.append((int(forest.first_child[node]) + child, [*left[:feature], codes, *left[feature + 1 :]]))
    assert n_leaves == 3 * 12


def test_leaves_are_about_equally_full():
    """Where the noise is low, half of the records go either way, whatever their values."""
    rng = np.random.default_rng(0)
    X = np.exp(3 * rng.normal(size=(4000, 1)))  # most values near 0, and a long tail
    X = np.minimum(X, 99).round()
    schema = Schema(numeric={"x": (0, 100)}, classes=[0, 1])
    y = rng.integers(0, 2, 4000)
    fitted = model(schema=schema, n_bins=100, n_estimators=1, max_depth=1, epsilon=20.0).fit(X, y)
    codes = fitted.forest_.leaves(fitted._codes(X))[0]
    below = np.cumsum(np.bincount(X[:, 0].astype(int), minlength=100))[:-1].tolist()
    possible = [min(each, len(X) - each) for each in below]
    assert min(np.unique(codes, return_counts=True)[1]) >= max(possible) - 5


# -- the estimators --------------------------------------------------------------------------------------------------


@relations
@pytest.mark.parametrize("kind", [DiPriMeClassifier, DiPriMeRegressor])
@variants
def test_an_empty_table_is_audited_like_any_other(variant, relation, kind):
    one = line(kind, variant=variant, relation=relation, n_estimators=2)
    forest, _ = one.replay(np.zeros((1, 0), dtype=np.uint8), np.zeros(0, dtype=np.uint8), one.schema, 1.0, Seeded(0))
    assert forest.n_nodes == 6


def test_features_of_one_code_and_many_classes():
    schema = Schema(categorical={"x": ["a"]}, classes=[0, 1, 2])
    fitted = model(schema=schema, max_depth=2, epsilon=20.0).fit([["a"]] * 90, [2] * 90)
    assert fitted.predict([["a"]]).tolist() == [2]
    assert fitted.forest_.depth == 0
    X, y = table(classes=3)
    fitted = model(schema=THREE, epsilon=50.0).fit(X, y)
    assert fitted.score(X, y) > 0.6
    with pytest.raises(ValueError, match="tells two classes apart, as in the paper, not 3"):
        model(schema=THREE, variant="published").fit(X, y)


def test_no_room_makes_leaves():
    fitted = model(n_estimators=1, max_nodes=6).fit(*table())
    assert fitted.forest_.n_nodes == 5
    assert_spent(fitted, 4.0)


@variants
def test_without_noise_it_learns(variant):
    X, y = table()
    assert quietly(model(epsilon="non-private", variant=variant), X, y).score(X, y) > 0.75
    X, y = numbers()
    assert quietly(regressor(epsilon="non-private", variant=variant), X, y).score(X, y) > 0.3


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"median_share": 1.0}, "median_share"),
        ({"max_depth": 0}, "max_depth"),
        ({"sampling": "equal-split"}, "sampling"),
        ({"sampling": "all", "variant": "published"}, "sampling"),
    ],
)
def test_what_is_refused(parameters, says):
    with pytest.raises(ValueError, match=says):
        model(**parameters).fit(*table())
