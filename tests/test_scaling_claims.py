"""Executable proofs of the chapter *Scaling out*: blocks add up, and which record's coin may look at what."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, permutations, product

import numpy as np
import oracle
import pandas as pd
import pytest

from dpforest import (
    DiffPETsClassifier,
    DiffPETsRegressor,
    DPsAdaBoostClassifier,
    EDPRFClassifier,
    FunctionalMechanismClassifier,
    RandomTreesClassifier,
    Schema,
)
from dpforest.chance import Replay, Seeded, keyed, outcomes
from dpforest.curator import Curator, Selection
from dpforest.curator.queries import CandidateCounts, ClassCounts, CodeCounts, Histograms, Moments, Products
from dpforest.curator.reader import SchemaReader
from dpforest.curator.selections import LabelCandidates
from dpforest.design import Design
from dpforest.engines import Table
from dpforest.learners.growth import Growth
from dpforest.papers.pearson_tree import PearsonTreeClassifier
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, Ledger

BASE = Fraction(2)  # e to the loss of one tree
CLASSES = (0, 1)


class Pieces(Table):
    """A table in memory, read in pieces: cut where ``cuts`` says, counted in any order, some of them twice."""

    engine = "pieces"

    def __init__(self, frame, cuts, order=None, again=()):
        super().__init__(progress=False)
        self.frame, self.order, self.again = frame, order, again
        edges = [0, *cuts, len(frame)]
        self.pieces = list(pairwise(edges))

    def _prepare(self):
        pass

    def _run(self, job):
        for number in self.order or range(len(self.pieces)):
            start, stop = self.pieces[number]
            if number in self.again:
                job([self.frame.iloc[start:stop]], start)  # the answer of a worker that is lost
            yield job([self.frame.iloc[start:stop]], start)

    def rows(self, answer, columns, name):
        return answer(self.frame[columns])


# -- blocks add up ---------------------------------------------------------------------------------------------------

SCHEMA = Schema(numeric={"a": (0, 8)}, categorical={"b": ["p", "q", "r"]}, classes=["no", "yes"], columns=["a", "b"])
TARGETS = Schema(numeric={"a": (0, 8)}, categorical={"b": ["p", "q", "r"]}, target=(0, 1), columns=["a", "b"])
N_BINS = 4


def frame_of(n_rows, seed=0, regression=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.uniform(0, 8, n_rows), "b": rng.choice(["p", "q", "r"], n_rows)})
    score = frame["a"] / 8 + (frame["b"] == "q") + rng.normal(0, 0.3, n_rows)
    frame["y"] = score.clip(0, 1) if regression else np.where(score > 0.8, "yes", "no")
    frame["id"] = rng.permutation(n_rows) + 10**12
    return frame


def curators(frame, table, key=None, regression=False):
    """The same records behind the curator in memory, and behind one that reads them in pieces."""
    schema = TARGETS if regression else SCHEMA
    reader = SchemaReader(schema, N_BINS, "y", key)
    whole = reader.read(frame, 0)
    shape = schema.n_classes, schema.cardinalities(N_BINS)
    ids = None if key is None else whole.numbers
    yield Curator(whole.codes, whole.labels, *shape, chance=Seeded(5), ledger=Ledger(), ids=ids)
    yield Curator.over(table.open(reader), *shape, chance=Seeded(5), ledger=Ledger())


def exact_answers(curator, n_trees, regression=False):
    """Everything that a curator may be asked for, of two trees of different shape."""
    growth = Growth(n_trees, 2, 2, Ledger(), "assignment")
    every = np.ones((1, 2), dtype=bool)
    masks = np.array([[2, 0, 0, 0], [4, 0, 0, 0]], dtype=np.uint64)
    growth.add_children(growth.frontier, [0] + [1] * (n_trees - 1), [4] + [3] * (n_trees - 1))
    nodes = growth.frontier.nodes
    n = len(nodes)
    moments = 3 if regression else 0
    candidates = np.tile([1, 0], (n, 1)).astype(np.int32), np.tile(masks, (n, 1, 1))
    allowed = np.repeat(every, n, axis=0)
    yield curator._records.answer(CandidateCounts(growth, nodes, *candidates, moments))
    yield curator._records.answer(CodeCounts(growth, nodes))
    if regression:
        yield curator._records.answer(Moments(growth, nodes, 3))
        answer = np.arange(241)[:, None]
    else:
        yield curator._records.answer(ClassCounts(growth, nodes))
        yield curator._records.answer(Histograms(growth, nodes, allowed))
        answer = np.eye(2, dtype=int)
    design = Design([np.arange(4)[:, None], np.eye(3, dtype=int)], answer, True, ["a", "p", "q", "r"])
    yield curator._records.answer(Products(design))


@pytest.mark.slow
@pytest.mark.claim(
    "lem-blocks",
    verdict="proved",
    evidence="exhaustive",
    constant="every exact answer: the difference is 0, for every cut, order and retry",
)
@pytest.mark.parametrize(
    ("sharing", "key", "regression"),
    [
        *(("all", None, regression) for regression in (False, True)),
        *((sharing, key, False) for sharing in ("assignment", "parts") for key in (None, "id")),
        ("poisson", None, False),
        ("assignment", None, True),
        ("weights", None, False),
    ],
)
def test_answers_of_blocks_add_up(sharing, key, regression):
    frame, n_trees = frame_of(4, regression=regression), 2

    def share(curator):
        if sharing == "assignment":
            curator.assign(n_trees)
        elif sharing == "poisson":
            curator.poisson_bootstrap(n_trees)
        elif sharing == "parts":
            curator.partition_records(3)
        elif sharing == "weights":
            voter = RandomTreesClassifier(schema=SCHEMA, n_estimators=1, max_depth=2, n_bins=N_BINS, random_state=1)
            tree = voter.fit(frame_of(200), "y").forest_
            curator.weigh_records(tree, np.where(tree.values > 0, 1.5, -1.5), class_weights=[1.0, 0.5])

    every_cut = [cuts for size in range(4) for cuts in combinations(range(1, 4), size)]
    orders = [(cuts, order) for cuts in every_cut for order in permutations(range(len(cuts) + 1))]
    assert len(every_cut) == 8
    # all cuts in their order; and all orders, with some pieces counted twice, of the cuts in three
    some = [(cuts, None, ()) for cuts in every_cut] + [
        (cuts, order, (0, 1)) for cuts, order in orders if len(cuts) == 2
    ]
    expected = None
    for cuts, order, again in some:
        memory, pieces = curators(frame, Pieces(frame, cuts, order, again), key, regression)
        share(pieces)
        if expected is None:
            share(memory)
            expected = list(exact_answers(memory, n_trees, regression))
            assert all(answer.dtype == np.int64 and answer.any() for answer in expected)
        found = list(exact_answers(pieces, n_trees, regression))
        assert all(np.array_equal(mine, one) for mine, one in zip(found, expected, strict=True))
    empty = Pieces(frame, (0, 0, 4, 4))  # pieces without records
    _, pieces = curators(frame, empty, key, regression)
    share(pieces)
    found = list(exact_answers(pieces, n_trees, regression))
    assert all(np.array_equal(mine, one) for mine, one in zip(found, expected, strict=True))


#: A learner of each kind, and how often it reads the table: the look, each level, and leaves that no selection saw.
LEARNERS = {
    "random trees": (RandomTreesClassifier, {"n_estimators": 3}, 2),
    "eDPRF": (EDPRFClassifier, {"n_estimators": 4, "max_depth": 2}, 3),
    "DiffPETs, all": (DiffPETsClassifier, {"n_estimators": 3, "max_depth": 3}, 4),
    "DiffPETs, assignment": (DiffPETsClassifier, {"n_estimators": 3, "max_depth": 3, "sampling": "assignment"}, 4),
    "DiffPETs, Poisson": (DiffPETsClassifier, {"n_estimators": 3, "max_depth": 3, "sampling": "poisson"}, 4),
    "DiffPETs, regression": (DiffPETsRegressor, {"n_estimators": 3, "max_depth": 3}, 4),
    "boosting": (DPsAdaBoostClassifier, {"n_estimators": 3, "max_depth": 2}, 7),
    "Pearson": (PearsonTreeClassifier, {"n_parts": 5, "max_depth": 3}, 4),
    "functional mechanism": (FunctionalMechanismClassifier, {}, 3),
}


@pytest.mark.slow
@pytest.mark.claim("lem-blocks")
@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_does_not_tell_how_the_table_was_cut(name):
    kind, options, n_passes = LEARNERS[name]
    regression = kind is DiffPETsRegressor
    frame, schema = frame_of(300, 3, regression), TARGETS if regression else SCHEMA
    for relation in (ADD_REMOVE, REPLACE_ONE):
        learner = kind(epsilon=2.0, schema=schema, relation=relation, random_state=3, **options)
        model = json.dumps(learner.fit(frame, "y").to_dict(seeded=True))
        ledger = str(learner.ledger_)
        for cuts in ([], [150], [1, 2, 299], list(range(25, 300, 25))):
            table = Pieces(frame, cuts, order=range(len(cuts), -1, -1), again=(0,))
            assert json.dumps(learner.fit(table, "y").to_dict(seeded=True)) == model
            assert str(learner.ledger_) == ledger
            assert len(table.log) == n_passes


@pytest.mark.claim("lem-blocks")
def test_what_does_not_add_up():
    """The smallest tables on which what blocks say does not decide what the whole table says."""
    # medians: the blocks' medians agree, the tables' do not
    one, other = ((0, 0, 9), (9,)), ((0, 0, 0), (9,))
    assert [np.median(block) for block in one] == [np.median(block) for block in other] == [0, 9]
    assert np.median(np.concatenate(one)) == 4.5 != np.median(np.concatenate(other)) == 0
    # the fullest class: likewise
    one, other = ("aab", "bbb"), ("aaa", "bba")

    def fullest(text):
        return max("ab", key=text.count)

    assert [fullest(block) for block in one] == [fullest(block) for block in other] == ["a", "b"]
    assert (fullest("".join(one)), fullest("".join(other))) == ("b", "a")
    # floating point: the order of adding shows, in the last bit
    assert (0.1 + 0.2) + 0.3 - (0.1 + (0.2 + 0.3)) == 2**-53
    # whole numbers that overflow still add up, modulo 2^64; but no count comes near
    with np.errstate(over="ignore"):
        huge = np.array([2**63 - 1], dtype=np.int64)
        assert ((huge + 1) - 1 == huge).all()
    assert 2**63 // 240**2 > 1e14  # rows whose squared targets can be added up


# -- who sees which record -------------------------------------------------------------------------------------------


def histogram(data):
    """A tree that releases noisy class counts: it loses ln 2 under add-remove, 2 ln 2 under replace-one."""
    return oracle.noisy_corners([data.count(c) for c in CLASSES], BASE, 4)


def size(data):
    """A tree that releases the noisy number of its records: it loses ln 2 under add-remove, nothing under the other."""
    return oracle.noisy_corners([len(data)], BASE, 4)


COSTS = {histogram: {ADD_REMOVE: BASE, REPLACE_ONE: BASE**2}, size: {ADD_REMOVE: BASE, REPLACE_ONE: Fraction(1)}}
KEYS = (0, 1, 2)
#: Every table of records (key, class) in which each has a key of its own, in the order of the keys.
TABLES = [
    tuple((key, c) for key, c in zip(KEYS, chosen, strict=True) if c is not None)
    for chosen in product((None, *CLASSES), repeat=len(KEYS))
]


def neighbouring(one, other):
    """How two keyed tables are neighbours: by one record more, by one that keeps its key, by one that changes it."""
    lost, new = set(one) - set(other), set(other) - set(one)
    if (len(lost), len(new)) == (0, 1):
        return ADD_REMOVE
    if (len(lost), len(new)) == (1, 1):
        return "keeps its key" if {key for key, _ in lost} == {key for key, _ in new} else "changes its key"
    return None


PAIRS = defaultdict(list)
for _one, _other in product(TABLES, repeat=2):
    PAIRS[neighbouring(_one, _other)].append((_one, _other))


def by_key(tree, trees, tree_of):
    """The forest in which ``tree_of`` the key says to which tree a record goes."""

    def run(data):
        parts = [tuple(c for key, c in data if tree_of[key] == part) for part in range(trees)]
        return oracle.independent(*map(tree, parts))

    return run


def worst(run, pairs):
    laws = {data: run(data) for data in {data for pair in pairs for data in pair}}
    return max(oracle.worst_ratio(laws[one], laws[other]) for one, other in pairs)


@pytest.mark.slow
@pytest.mark.claim(
    "thm-keyed-assignment",
    verdict="proved",
    evidence="exhaustive",
    constant=r"every function of the key: exactly $\eps$ (add-remove), $\rho$ (the key stays), "
    r"$\max(\rho, 2\eps)$ (the key may change)",
)
@pytest.mark.parametrize("trees", [2, 3])
@pytest.mark.parametrize("tree", [histogram, size])
def test_any_function_of_a_key_will_do(tree, trees):
    alone, once = COSTS[tree], cache(tree)
    for tree_of in product(range(trees), repeat=len(KEYS)):
        run = cache(by_key(once, trees, tree_of))
        assert worst(run, PAIRS[ADD_REMOVE]) == alone[ADD_REMOVE]
        assert worst(run, PAIRS["keeps its key"]) == alone[REPLACE_ONE]
        parts = len(set(tree_of))
        both = alone[ADD_REMOVE] ** 2 if parts > 1 else 1
        assert worst(run, PAIRS["changes its key"]) == max(alone[REPLACE_ONE], both)


@pytest.mark.slow
@pytest.mark.claim("thm-keyed-assignment")
@pytest.mark.claim("thm-assignment")
@pytest.mark.parametrize("tree", [histogram, size])
def test_a_random_function_of_keys_that_differ_is_a_coin_for_each_record(tree):
    every = list(product(range(2), repeat=len(KEYS)))

    def whole(data):  # for a mixture the corners do not do
        counts = [data.count(c) for c in CLASSES] if tree is histogram else [len(data)]
        return oracle.noisy_histogram(counts, BASE, 3)

    def run(data):
        return oracle.mixture((Fraction(1, len(every)), by_key(whole, 2, tree_of)(data)) for tree_of in every)

    few = {name: [pair for pair in pairs if max(map(len, pair)) <= 2] for name, pairs in PAIRS.items()}
    assert worst(run, few[ADD_REMOVE]) == COSTS[tree][ADD_REMOVE]
    for kind in ("keeps its key", "changes its key"):  # the other key's coin has the same law
        assert worst(run, few[kind]) == COSTS[tree][REPLACE_ONE]
    for data in TABLES:
        if len(data) <= 2:
            assert run(data) == oracle.by_coin([whole] * 2)(tuple(c for _, c in data))


class Dealt(Replay):
    """Replays everything but the coins of the records, which a function of the id, or a key, decides."""

    def __init__(self, coins):
        super().__init__()
        self._coins = coins

    def coins(self, high, ids):
        return self._coins(ids, high)

    def key(self):
        return self._coins.args[0]


def labels_of(curator_of, chance, trees=2):
    """The exact law of the labels of trees that are single leaves, by permute-and-flip at rate ln 2."""

    def program(chance):
        ledger = Ledger()
        curator = curator_of(chance, ledger)
        growth = Growth(trees, 1, 2, ledger, "assignment")
        curator.assign(trees)
        leaves = growth.frontier
        said = curator.choose(
            LabelCandidates(growth, leaves.nodes),
            leaves.scopes,
            math.log(2),
            Selection(),
        )
        return tuple(said.tolist())

    law = defaultdict(float)
    for output, probability in outcomes(program, chance):
        law[output] += probability
    return law


def label(data):
    return dict(enumerate(oracle.permute_and_flip(oracle.acceptance([data.count(0), data.count(1)], BASE))))


@pytest.mark.slow
@pytest.mark.claim("thm-keyed-assignment")
def test_the_shipped_curators_deal_by_the_key_and_by_nothing_else():
    """Both curators, every small table in every order of its rows: their law is that of the hash of each key."""
    secret = (1, 2)
    tree_of = keyed.coins(secret, np.array(KEYS, dtype=np.uint64), 2).tolist()
    assert len(set(tree_of)) == 2
    schema, laws = Schema(numeric={"a": (0, 1)}, classes=list(CLASSES)), {}
    for data in TABLES:
        exact = by_key(label, 2, tree_of)(data)
        for order in permutations(data):
            ids = np.array([key for key, _ in order], dtype=np.uint64)
            codes, labels = np.zeros((1, len(order)), np.uint8), np.array([c for _, c in order], dtype=np.uint8)
            frame = pd.DataFrame({"a": 0.5, "y": labels.astype(int), "id": ids.astype(int)})
            table = Pieces(frame, range(1, len(frame))).open(SchemaReader(schema, 2, "y", "id"))

            def memory(chance, ledger, codes=codes, labels=labels, ids=ids):
                return Curator(codes, labels, 2, [2], chance=chance, ledger=ledger, ids=ids)

            def scattered(chance, ledger, table=table):
                return Curator.over(table, 2, [2], chance=chance, ledger=ledger)

            for curator_of in (memory, scattered) if data else (memory,):
                law = labels_of(curator_of, Dealt(_Coins(secret)))
                assert law.keys() == exact.keys()
                assert all(law[out] == pytest.approx(float(p), rel=1e-12) for out, p in exact.items())
            laws[data] = law
    loss = {
        kind: max(laws[one][out] / laws[other][out] for one, other in PAIRS[kind] for out in laws[one])
        for kind in (ADD_REMOVE, "keeps its key", "changes its key")
    }
    assert loss[ADD_REMOVE] == pytest.approx(2, rel=1e-12)
    single = max(
        oracle.worst_ratio(label((*rest, 0)), label((*rest, 1))) for n in (0, 1) for rest in product(CLASSES, repeat=n)
    )
    assert loss["keeps its key"] == pytest.approx(float(single), rel=1e-12)
    assert loss["changes its key"] == pytest.approx(4, rel=1e-12)


class _Coins:
    """SipHash under a known key, with the signature of a dealer."""

    def __init__(self, key):
        self.args = (key,)

    def __call__(self, ids, high):
        return keyed.coins(self.args[0], ids, high)


def inserted(n_records, classes=2):
    """Every list of classes with that many records, and every list with one record more, at any place."""
    for data in product(range(classes), repeat=n_records):
        for place in range(n_records + 1):
            for c in range(classes):
                yield data, (*data[:place], c, *data[place:])


def by_place(tree, trees=2):
    """The forest in which the place modulo the number of trees says where a record goes."""
    return lambda data: oracle.independent(*(tree(data[part::trees]) for part in range(trees)))


@pytest.mark.slow
@pytest.mark.claim(
    "cex-position-hash",
    verdict="refuted",
    evidence="exhaustive",
    constant=r"place mod $T$: exactly $(2n+1)\,\eps$ for a record put before $n$ others; content: $2\eps$ where "
    "a coin costs nothing",
)
@pytest.mark.parametrize(("trees", "size"), [(2, 4), (3, 3)])
def test_a_public_function_of_the_place_lets_everyone_change_trees(trees, size):
    # as many classes as trees, so that what enters a tree is of another class than what leaves it
    def tree(data):
        return oracle.noisy_corners([data.count(c) for c in range(trees)], BASE, size + 1)

    run = cache(by_place(cache(tree), trees))
    for n in range(size + 1):
        pairs = list(inserted(n, trees))
        assert worst(run, pairs) == BASE ** (2 * n + 1)
        before = tuple(i % trees for i in range(n))  # attained where the new record is the first
        assert oracle.worst_ratio(run(before), run((trees - 1, *before))) == BASE ** (2 * n + 1)
        # whoever only ever appends sees nothing of it
        assert worst(run, [pair for pair in pairs if pair[1][:-1] == pair[0]]) == BASE
    # under replace-one a place is a key that stays, if the number of records is public
    lists = list(product(range(trees), repeat=size))
    swaps = [(data, (*data[:i], c, *data[i + 1 :])) for data in lists for i in range(size) for c in range(trees)]
    assert worst(run, swaps) == BASE**2 == COSTS[histogram][REPLACE_ONE]


@pytest.mark.claim("cex-position-hash")
def test_a_public_function_of_the_content_moves_the_record_that_is_replaced():
    """A function of the class, under replace-one: where one tree alone and a coin lose nothing, both trees pay."""
    for tree in (size, histogram):
        run = oracle.by_value([tree, tree], lambda c: c)
        assert oracle.worst_case(run, CLASSES, 3, ADD_REMOVE) == BASE
        assert oracle.worst_case(run, CLASSES, 3, REPLACE_ONE) == BASE**2
    assert oracle.worst_case(oracle.by_coin([size, size]), CLASSES, 3, REPLACE_ONE) == 1
    assert oracle.worst_case(oracle.by_coin([size, size]), CLASSES, 3, ADD_REMOVE) == BASE


@pytest.mark.claim("cex-position-hash")
def test_the_shipped_curator_would_break_if_its_coins_were_public_functions_of_places():
    """The code that ships, with the place modulo 2 for a coin: the loss of labels grows with the table."""
    losses = []
    for n in range(4):
        laws = {}
        for data in product(CLASSES, repeat=n), product(CLASSES, repeat=n + 1):
            for labels in data:

                def memory(chance, ledger, labels=labels):
                    codes = np.zeros((1, len(labels)), np.uint8)
                    return Curator(codes, np.array(labels, np.uint8), 2, [1], chance=chance, ledger=ledger)

                laws[labels] = labels_of(memory, Dealt(lambda ids, high: (ids % np.uint64(high)).astype(np.int64)))
        ratios = [laws[a][out] / laws[b][out] for pair in inserted(n) for a, b in (pair, pair[::-1]) for out in laws[a]]
        losses.append(max(ratios))
        expected = worst(by_place(label), list(inserted(n)))
        assert losses[-1] == pytest.approx(float(expected), rel=1e-12)
    assert losses == pytest.approx([2, 6, 18, 42], rel=1e-12)


@pytest.mark.claim("thm-bootstrap")
def test_copies_by_table_cost_no_more_than_poisson_copies():
    """Never more often above any number than Poisson's law, so both of the theorem's sums are bounded by Poisson's."""
    steps = [Fraction(int(step), 2**64) for step in keyed._STEPS]  # at most k copies have this probability
    inverse = sum(Fraction((-1) ** k, math.factorial(k)) for k in range(60))
    tail, term = Fraction(0), inverse
    for k, at_most in enumerate(steps):
        tail += term  # of Poisson's law, up to k
        term /= k + 1
        assert 0 <= at_most - tail < Fraction(1, 2**63)
    law = [steps[0], *(b - a for a, b in pairwise(steps)), 1 - steps[-1]]
    for u in (Fraction(11, 10), Fraction(2), Fraction(5)):
        for v, sign in ((u, -1), (1 / u, 1)):  # fewer copies: the mean of u^k is smaller, that of u^-k is larger
            found = sum(p * v**k for k, p in enumerate(law))
            poisson = sum(inverse * v**k / math.factorial(k) for k in range(60))
            assert -Fraction(1, 10**30) < sign * (found - poisson) < Fraction(1, 10**4)
