"""Every query of dpforest.counting against a recount that follows the records down the trees, one Boolean for each."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpforest import counting
from dpforest.counting import bits, cell_values, checks, masks, node_counts, program, rows, tables
from dpforest.counting.threads import pieces_of
from dpforest.counting.visit import visit
from dpforest.models import walk
from dpforest.structure.splits import FEW, SHAPE, Splits

KERNELS = ["rows", "bits", "auto"]
ROOT = Path(__file__).parent.parent


# -- the recount, and random input -----------------------------------------------------------------------------------


def bits_of(mask):
    """The 256 bits of a mask, as Booleans."""
    codes = np.arange(256, dtype=np.uint64)
    return (np.asarray(mask, dtype=np.uint64)[codes // 64] >> codes % 64 & 1).astype(bool)


def words_of(codes):
    """The mask of a set of codes."""
    inside = np.zeros((4, 64), dtype=np.uint64)
    inside.flat[np.fromiter(codes, dtype=int)] = 1
    return (inside << np.arange(64, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)


def records_at(splits, codes, assignment=None):
    """For every node, which records stand at it."""
    where = np.zeros((splits.n_nodes, codes.shape[1]), dtype=bool)
    for tree, root in enumerate(splits.roots):
        where[root] = True if assignment is None else np.asarray(assignment) == tree
    for node in range(splits.n_nodes):
        feature, first = splits.feature[node], splits.first_child[node]
        if feature < 0:
            continue
        which = codes[feature].astype(int) if splits.multiway[node] else bits_of(splits.mask[node])[codes[feature]]
        for child in range(splits.arity[node]):
            where[first + child] = where[node] & (which == child)
    return where


def class_counts(records, labels, n_classes):
    return np.bincount(labels[records], minlength=n_classes)


def recount(case):
    """What node_class_counts, candidate_counts and feature_histograms should answer."""
    where = records_at(case.splits, case.codes, case.assignment)
    n_slots, n_candidates = case.features.shape
    offsets = np.concatenate([[0], np.cumsum(case.cardinalities)])
    nodes = np.zeros((n_slots, case.n_classes), dtype=int)
    candidates = np.zeros((n_slots, n_candidates, 2, case.n_classes), dtype=int)
    histograms = np.zeros((n_slots, offsets[-1], case.n_classes), dtype=int)
    for node in np.flatnonzero(case.slots >= 0):
        slot = case.slots[node]
        nodes[slot] += class_counts(where[node], case.labels, case.n_classes)
        for k in range(n_candidates):
            inside = bits_of(case.masks[slot, k])[case.codes[case.features[slot, k]]]
            for child in (0, 1):
                candidates[slot, k, child] += class_counts(where[node] & (inside == child), case.labels, case.n_classes)
        for feature in np.flatnonzero(case.allowed[slot]):
            place = (slot, offsets[feature] + case.codes[feature][where[node]], case.labels[where[node]])
            np.add.at(histograms, place, 1)
    return nodes, candidates, histograms


class Case:
    """A random table, random trees with binary and multiway splits, and random questions about some of their leaves."""

    def __init__(
        self,
        seed,
        n_rows=None,
        n_classes=None,
        n_trees=None,
        depth=None,
        n_candidates=None,
        cardinalities=None,
        multiway=0.3,
    ):
        rng = self.rng = np.random.default_rng(seed)
        self.n_rows = int(rng.integers(1, 200)) if n_rows is None else n_rows
        self.n_classes = n_classes or int(rng.integers(1, 6))
        n_candidates = int(rng.integers(0, 9)) if n_candidates is None else n_candidates
        if cardinalities is None:
            cardinalities = [*rng.integers(1, 20, size=rng.integers(1, 6)), 256]
        self.cardinalities = np.array(cardinalities)
        self.codes = np.array([rng.integers(0, top, self.n_rows) for top in cardinalities], dtype=np.uint8)
        self.labels = rng.integers(0, self.n_classes, self.n_rows).astype(np.uint8)
        self.splits = self.grow(
            n_trees or int(rng.integers(1, 4)), int(rng.integers(0, 5)) if depth is None else depth, multiway
        )
        leaves = np.flatnonzero(self.splits.feature < 0)
        asked = leaves[rng.random(len(leaves)) < 0.8] if len(leaves) > 1 else leaves
        self.slots = np.full(self.splits.n_nodes, -1, dtype=np.int32)
        self.slots[asked] = rng.permutation(len(asked))
        shape = len(asked), n_candidates
        self.features = rng.integers(0, len(cardinalities), shape).astype(np.int32)
        self.masks = np.array([self.mask(f) for f in self.features.ravel()], dtype=np.uint64).reshape(*shape, 4)
        self.allowed = rng.random((len(asked), len(cardinalities))) < 0.7
        # one tree more than there are: its records are in no tree
        self.assignment = [None, rng.integers(0, len(self.splits.roots) + 1, self.n_rows)][int(rng.integers(2))]

    def mask(self, feature):
        """A threshold, a single code, any set of codes, none or all; bits beyond the cardinality mean nothing."""
        rng, top = self.rng, self.cardinalities[feature]
        kind = rng.integers(6)
        if kind == 0:
            return words_of(range(rng.integers(top), 256))
        if kind == 1:
            return words_of([rng.integers(top)])
        if kind == 2:
            return words_of([] if rng.random() < 0.5 else range(256))
        return words_of(np.flatnonzero(rng.random(256 if kind == 3 else top) < rng.random()))

    def grow(self, n_trees, depth, multiway):
        nodes = [None] * n_trees
        level = list(range(n_trees))
        for _ in range(depth):
            below = []
            for node in level:
                if self.rng.random() < 0.15:
                    continue
                feature = int(self.rng.integers(len(self.cardinalities)))
                many = self.rng.random() < multiway and self.cardinalities[feature] < 256
                arity = int(self.cardinalities[feature]) if many else 2
                nodes[node] = (feature, len(nodes), arity, many, self.mask(feature))
                below += range(len(nodes), len(nodes) + arity)
                nodes += [None] * arity
            level = below
        nodes = [node or (-1, 0, 0, False, words_of([])) for node in nodes]
        dtypes = [np.int32, np.int32, np.int32, bool, np.uint64]
        columns = [
            np.array(column, dtype=dtype) for column, dtype in zip(zip(*nodes, strict=True), dtypes, strict=True)
        ]
        return Splits(*columns, np.arange(n_trees, dtype=np.int32))

    def ask(self, rows=slice(None), **options):
        """The three answers for some of the rows."""
        codes, labels = np.ascontiguousarray(self.codes[:, rows]), self.labels[rows].copy()
        assignment = None if self.assignment is None else self.assignment[rows]
        records, tail = (codes, labels, self.n_classes), (assignment, options.get("n_jobs", 1))
        kernel = options.get("kernel", "auto")
        return (
            counting.node_class_counts(*records, self.splits, self.slots, *tail, kernel),
            counting.candidate_counts(*records, self.splits, self.slots, self.features, self.masks, *tail, kernel),
            counting.feature_histograms(*records, self.cardinalities, self.splits, self.slots, self.allowed, *tail),
        )


@cache
def recounted(seed, **options):
    """A case, and its recount: the same for all kernels."""
    case = Case(seed, **options)
    return case, recount(case)


def assert_same(answers, expected):
    for answer, right in zip(answers, expected, strict=True):
        assert answer.dtype == np.int64
        np.testing.assert_array_equal(answer, right)


# -- equality with the recount ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(40))
def test_every_query_equals_the_recount(seed, kernel):
    case, expected = recounted(seed)
    assert_same(case.ask(kernel=kernel), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_rows", [0, 1, 63, 64, 65, 2047, 2049, bits.BLOCK - 1, bits.BLOCK, 2 * bits.BLOCK + 77])
def test_any_number_of_rows_around_the_blocks(n_rows, kernel):
    shape = {"n_rows": n_rows, "n_classes": 3, "n_trees": 2, "depth": 3, "n_candidates": 5, "cardinalities": (2, 7, 30)}
    case, expected = recounted(n_rows + 1, **shape)
    assert_same(case.ask(kernel=kernel), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [1, 2, 3, 8, 20, 256])
def test_one_class_to_many(n_classes, kernel):
    shape = {
        "n_rows": 300,
        "n_classes": n_classes,
        "n_trees": 2,
        "depth": 2,
        "n_candidates": 4,
        "cardinalities": (5, 9),
    }
    case, expected = recounted(n_classes, **shape)
    assert_same(case.ask(kernel=kernel), expected)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_candidates", [0, 1, 3, 4, 5, 6, 7, 13])
def test_no_candidate_to_more_than_a_pattern_holds(n_candidates, kernel):
    case, expected = recounted(n_candidates, n_rows=200, n_trees=2, depth=3, n_candidates=n_candidates)
    assert_same(case.ask(kernel=kernel), expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_tests_than_the_cache_keeps(kernel):
    case = Case(5, n_rows=130, n_classes=2, n_trees=12, depth=5, n_candidates=4, cardinalities=[40] * 12, multiway=0)
    order = visit(case.splits, case.slots)
    plan = program.prepare(case.splits, order, case.slots, 12, case.features, case.masks)
    assert len(plan.entry_start) > 5
    assert len(plan.kept) >= masks._KEPT_ROWS
    assert plan.first_row - len(plan.kept) <= masks._STRETCH_ROWS
    assert_same(case.ask(kernel=kernel), recount(case))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_deep_and_narrow_tree(kernel):
    depth = 300  # each node sends one more code away
    feature = np.array([0, *[-1, 0] * depth], dtype=np.int32)
    feature[-1] = -1
    inner = np.flatnonzero(feature >= 0)
    first, arity = np.zeros_like(feature), np.zeros_like(feature)
    first[inner], arity[inner] = inner + 1, 2
    first[0] = 1
    first[inner[1:]] = 2 * np.arange(1, len(inner)) + 1
    mask = np.zeros((len(feature), 4), dtype=np.uint64)
    mask[inner] = [words_of(range(min(level + 1, 250), 256)) for level in range(len(inner))]
    case = Case(3, n_rows=500, n_classes=2, n_candidates=2, cardinalities=[256, 3], n_trees=1, depth=0)
    case.splits = Splits(feature, first, arity, np.zeros(len(feature), bool), mask, np.zeros(1, np.int32))
    leaves = np.flatnonzero(feature < 0)
    case.slots = np.full(len(feature), -1, dtype=np.int32)
    case.slots[leaves] = np.arange(len(leaves))
    case.features = np.ones((len(leaves), 2), dtype=np.int32)
    case.masks = np.tile(words_of([1]), (len(leaves), 2, 1))
    case.allowed = np.ones((len(leaves), 2), dtype=bool)
    assert_same(case.ask(kernel=kernel), recount(case))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64, np.uint64])
def test_assignments_of_any_integer_type(dtype):
    case = Case(2, n_trees=3, depth=2)
    case.assignment = case.rng.integers(0, 4, case.n_rows).astype(dtype)
    if np.iinfo(dtype).bits == 64:
        case.assignment[0] = np.iinfo(dtype).max  # in no tree, not in the one it would wrap around to
    if np.issubdtype(dtype, np.signedinteger):
        case.assignment[-1] = -1
    for kernel in KERNELS:
        assert_same(case.ask(kernel=kernel), recount(case))


def test_two_nodes_may_share_a_slot():
    case = Case(11, n_rows=200, n_trees=2, depth=2, n_candidates=3)
    case.slots[case.slots > 0] -= 1
    case.features, case.masks, case.allowed = case.features[1:], case.masks[1:], case.allowed[1:]
    for kernel in KERNELS:
        assert_same(case.ask(kernel=kernel), recount(case))


def test_all_features_by_default():
    case = Case(4)
    case.allowed[:] = True
    answer = counting.feature_histograms(
        case.codes, case.labels, case.n_classes, case.cardinalities, case.splits, case.slots, assignment=case.assignment
    )
    np.testing.assert_array_equal(answer, recount(case)[2])
    assert counting.histogram_bytes(len(case.allowed), case.cardinalities, case.n_classes) == answer.nbytes


# -- sums of the rows of a table -------------------------------------------------------------------------------------


def target_powers(n_powers, n_codes=241):
    """What a target's code adds to its moments: 1, t, t squared."""
    return np.arange(n_codes)[:, None] ** np.arange(n_powers)


def random_table(rng, n_codes, n_sums=None):
    """Columns of every kind: large, small, constant, of a power of two, equal to another, and equal rows."""
    n_sums = n_sums or int(rng.integers(1, 6))
    table = rng.integers(0, 1 << 31, (n_codes, n_sums)) >> rng.integers(0, 31, n_sums)
    kind = rng.integers(6, size=n_sums)
    table[:, kind == 1] = rng.integers(0, 1 << 31)
    table[:, kind == 2] = rng.integers(0, 2, (n_codes, 1)) << int(rng.integers(31))
    table[:, kind == 3] = table[:, :1]
    return table[rng.integers(0, n_codes, n_codes)] if rng.random() < 0.3 else table


def sums(case, table, **options):
    """Both answers of the library."""
    records = case.codes, case.labels, table, case.splits, case.slots
    return (
        counting.node_sums(*records, assignment=case.assignment, **options),
        counting.candidate_sums(*records, case.features, case.masks, assignment=case.assignment, **options),
    )


def resum(case, table):
    """What they should be, added up record by record."""
    where, added = records_at(case.splits, case.codes, case.assignment), table[case.labels]
    n_slots, n_candidates = case.features.shape
    nodes = np.zeros((n_slots, table.shape[1]), dtype=np.int64)
    candidates = np.zeros((n_slots, n_candidates, 2, table.shape[1]), dtype=np.int64)
    for node in np.flatnonzero(case.slots >= 0):
        slot = case.slots[node]
        nodes[slot] += added[where[node]].sum(axis=0)
        for k in range(n_candidates):
            inside = bits_of(case.masks[slot, k])[case.codes[case.features[slot, k]]]
            for child in (0, 1):
                candidates[slot, k, child] += added[where[node] & (inside == child)].sum(axis=0)
    return nodes, candidates


#: Tables by what they hold, or by their number of columns.
TABLES = {
    "every kind": lambda case: random_table(case.rng, case.n_classes),
    "moments": lambda case: target_powers(3),
    **{n: lambda case, n=n: case.rng.integers(0, 1 << 31, (case.n_classes, n)) for n in (1, 5, 70, 300)},
}


@cache
def resummed(kind, seed, **options):
    """A case, a table, and what should be added up: the same for all kernels."""
    case = Case(seed, **options)
    table = TABLES[kind](case)
    return case, table, resum(case, table)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(40))
def test_sums_equal_the_sum_over_the_records(seed, kernel):
    case, table, expected = resummed("every kind", seed, n_classes=[None, 2, 5, 12, 241, 256][seed % 6])
    assert_same(sums(case, table, kernel=kernel), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_powers", [1, 2, 3])
@pytest.mark.parametrize("n_rows", [0, 1, 65, bits.BLOCK - 1, 2 * bits.BLOCK + 77])
def test_moments_of_the_target(n_rows, n_powers, kernel):
    shape = {"n_rows": n_rows, "n_classes": 241, "n_trees": 2, "depth": 3, "n_candidates": 5}
    case, _, expected = resummed("moments", n_rows, **shape, cardinalities=(2, 7, 30))
    assert_same(sums(case, target_powers(n_powers), kernel=kernel), [answer[..., :n_powers] for answer in expected])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_candidates", [0, 1, 4, 9])
@pytest.mark.parametrize(("n_codes", "n_sums"), [(1, 1), (3, 300), (40, 5), (256, 70), (256, 300)])
def test_one_sum_to_hundreds(n_codes, n_sums, n_candidates, kernel):
    shape = {"n_rows": 150, "n_classes": n_codes, "n_trees": 2, "depth": 2, "n_candidates": n_candidates}
    case, table, expected = resummed(n_sums, n_sums, **shape)
    assert_same(sums(case, table, kernel=kernel), expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_class_counts_are_the_sums_of_the_identity(kernel):
    case = Case(4, n_rows=300, n_classes=7, n_trees=2, depth=2, n_candidates=3)
    expected = case.ask(kernel=kernel)[:2]
    assert_same(sums(case, np.eye(7, dtype=np.int64), kernel=kernel), expected)


@pytest.mark.parametrize("kernel", ["rows", "bits"])
@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_change_no_sum(n_jobs, kernel):
    case = Case(1, n_rows=60_000, n_classes=241, n_trees=3, depth=3, n_candidates=4)
    table = target_powers(3)
    assert_same(sums(case, table, kernel=kernel, n_jobs=n_jobs), sums(case, table, kernel=kernel))


@pytest.mark.parametrize("kernel", ["rows", "bits"])
def test_sums_beyond_32_bits(kernel):
    case = Case(9, n_rows=5000, n_classes=2, n_trees=1, depth=0, n_candidates=0)
    case.assignment = None
    table = np.array([[(1 << 31) - 1, 1], [(1 << 31) - 1, (1 << 31) - 1]])
    got, _ = sums(case, table, kernel=kernel)
    ones = int(case.labels.sum())
    assert got.tolist() == [[5000 * ((1 << 31) - 1), 5000 - ones + ones * ((1 << 31) - 1)]]


@pytest.mark.parametrize("kernel", ["rows", "bits"])
def test_the_table_may_be_read_only_and_of_any_layout_and_is_not_changed(kernel):
    case = Case(8, n_rows=100, n_classes=30)
    table = np.asfortranarray(target_powers(3, 30))
    table.flags.writeable = False
    assert_same(sums(case, table, kernel=kernel), resum(case, table))
    np.testing.assert_array_equal(table, target_powers(3, 30))


def planes_of(table):
    """What the bit kernel counts, as a matrix: one line per label, a column of ones, then the planes."""
    planes = tables.of_table(table)[0]
    labels = np.arange(len(table))[:, None]
    runs = (labels - planes.runs[:, 0]) % 256 <= planes.runs[:, 1]
    octets = np.unpackbits(planes.member.T[: len(table)], axis=1, bitorder="little")
    return np.hstack([np.ones_like(labels), runs, octets])[:, : len(planes.weights)], planes


@pytest.mark.parametrize("seed", range(30))
def test_planes_and_cells_give_back_the_table(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, int(rng.integers(1, 257)), [None, None, 60][seed % 3])
    matrix, planes = planes_of(table)
    np.testing.assert_array_equal(matrix @ planes.weights, table)
    cells = tables.of_table(table)[1]
    if cells.amount.size:
        assert cells.weights is None
        np.testing.assert_array_equal(cells.amount, table)
    else:
        np.testing.assert_array_equal(cells.weights[cells.group[: len(table)]], table)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "n_planes", "n_octets"),
    [
        (target_powers(1), 0, 0),  # the plain count
        (target_powers(2), 8, 1),  # the digits of t
        (target_powers(3), 22, 3),  # of t squared, the lowest digit is that of t, and the next is 0
        (np.repeat(target_powers(2), 5, axis=1), 8, 1),
        (np.eye(2, dtype=np.int64), 1, 0),
        (np.diag([3, 1 << 30, 0, 5]), 3, 0),  # weighted class counts cost no more than class counts
        (np.eye(256, dtype=np.int64), 255, 32),
        (np.arange(256)[:, None] >= np.array([[9, 100]]), 2, 0),  # thresholds
        (np.arange(9)[:, None] % 2, 1, 1),  # not a run of labels
    ],
)
def test_as_few_planes_as_the_table_needs(table, n_planes, n_octets):
    matrix, planes = planes_of(table.astype(np.int64))
    assert (matrix.shape[1] - 1, len(planes.member)) == (n_planes, n_octets)


def test_a_histogram_of_few_groups_else_the_sums():
    histogram, added = (tables.of_table(table)[1] for table in (np.eye(5, dtype=np.int64), target_powers(2)))
    assert (histogram.n_cells, histogram.amount.size, histogram.dtype, histogram.nbytes) == (5, 0, np.int32, 20)
    assert (added.n_cells, added.amount.shape, added.dtype, added.nbytes) == (2, (241, 2), np.int64, 16)
    assert histogram.weights is added.weights is None  # the cells are the sums


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rows", "bits"])
def test_a_planted_error_is_found(monkeypatch, kernel):
    case = Case(3, n_rows=500, n_classes=241, n_trees=1, depth=0, n_candidates=1)
    case.assignment = None
    expected = resum(case, target_powers(2))

    def wrong(table):
        planes, cells = tables.of_table(table)
        member, amount = planes.member.copy(), cells.amount.copy()
        member[0, case.labels[0]] ^= 1
        amount[case.labels[0], 1] ^= 1
        return planes._replace(member=member), cells._replace(amount=amount)

    monkeypatch.setattr(node_counts, "of_table", wrong)
    for answer, right in zip(sums(case, target_powers(2), kernel=kernel), expected, strict=True):
        assert (answer != right).any()


# -- blocks of rows, threads, memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rows", "bits"])
@pytest.mark.parametrize("seed", range(5))
def test_counts_of_two_tables_add_up(seed, kernel):
    case = Case(seed, n_rows=1000)
    cut = int(case.rng.integers(1000))
    first, second = case.ask(slice(cut), kernel=kernel), case.ask(slice(cut, None), kernel=kernel)
    assert_same([a + b for a, b in zip(first, second, strict=True)], case.ask(kernel=kernel))


@pytest.mark.parametrize("kernel", ["rows", "bits"])
@pytest.mark.parametrize("n_jobs", [2, 5, -1])
def test_threads_change_nothing(n_jobs, kernel):
    case = Case(1, n_rows=60_000, n_trees=3, depth=3, n_candidates=4)
    assert_same(case.ask(kernel=kernel, n_jobs=n_jobs), case.ask(kernel=kernel))


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("n_rows", [0, 1, 8191, 8192, 32_561, 1_000_000, 300_000_000])
def test_pieces_are_all_the_rows_in_order(n_rows, threads):
    pieces = pieces_of(n_rows, threads)
    assert [0, *(last for _, last in pieces)] == [*(first for first, _ in pieces), n_rows]
    assert all(first < last for first, last in pieces)
    if n_rows >= 10_000 * threads:
        assert len(pieces) >= threads


def test_threads_share_a_large_histogram(monkeypatch):
    case = Case(1, n_rows=60_000, n_trees=3, depth=3)
    expected = case.ask()
    monkeypatch.setattr(node_counts, "_PARTIAL_BYTES", 0)
    for n_jobs in (1, 2, 50):
        assert_same(case.ask(n_jobs=n_jobs), expected)


@pytest.mark.parametrize("assigned", [False, True])
def test_rows_are_sorted_some_at_a_time(assigned, monkeypatch):
    case = Case(2, n_rows=20_000, n_trees=3, depth=3)
    case.assignment = case.rng.integers(0, 4, case.n_rows) if assigned else None
    expected = recount(case)
    monkeypatch.setattr(rows, "_SORTING_BYTES", 1)  # a block
    assert_same(case.ask(), expected)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [2, 12])
def test_known_counts_are_not_counted_again(n_classes, kernel):
    case = Case(3, n_rows=500, n_classes=n_classes, n_candidates=5)
    nodes, candidates, _ = recount(case)
    asked = case.codes, case.labels, n_classes, case.splits, case.slots, case.features, case.masks, case.assignment
    for more in (0, 7):  # of them, all that are not in the second child are in the first
        answer = counting.candidate_counts(*asked, kernel=kernel, known=nodes + more)
        np.testing.assert_array_equal(answer[:, :, 0], candidates[:, :, 0] + more)
        np.testing.assert_array_equal(answer[:, :, 1], candidates[:, :, 1])
    for wrong in (nodes[:, 1:], nodes[1:], nodes.astype(float)):
        with pytest.raises(TypeError, match="one line per slot"):
            counting.candidate_counts(*asked, kernel=kernel, known=wrong)


def test_input_may_be_read_only_and_is_not_changed():
    case = Case(8, n_rows=100)
    expected = recount(case)
    before = case.codes.copy(), case.labels.copy(), case.masks.copy(), case.slots.copy()
    arrays = case.codes, case.labels, case.masks, case.slots, case.features, case.allowed
    for array in arrays:
        array.flags.writeable = False
    for kernel in KERNELS:
        codes, labels = case.codes, case.labels
        got = counting.candidate_counts(
            codes,
            labels,
            case.n_classes,
            case.splits,
            case.slots,
            case.features,
            case.masks,
            case.assignment,
            kernel=kernel,
        )
        np.testing.assert_array_equal(got, expected[1])
    for now, then in zip(arrays, before, strict=False):
        np.testing.assert_array_equal(now, then)


# -- prediction ------------------------------------------------------------------------------------------------------


def leaf_of(case):
    where = records_at(case.splits, case.codes)
    where[case.splits.feature >= 0] = False
    start = [*case.splits.roots[1:], None]
    found = np.empty((case.n_rows, len(start)), dtype=int)
    for tree in range(len(start)):
        only = records_at(case.splits, case.codes, np.full(case.n_rows, tree)) & where
        for row in range(case.n_rows):
            (found[row, tree],) = np.flatnonzero(only[:, row])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_apply_and_sum_values(seed, monkeypatch):
    case = Case(seed)
    leaves = leaf_of(case)
    np.testing.assert_array_equal(counting.apply(case.codes, case.splits), leaves)
    values = case.rng.normal(size=(case.splits.n_nodes, int(case.rng.integers(1, 4))))
    total = np.zeros((case.n_rows, values.shape[1]))
    for tree in range(leaves.shape[1]):
        total += values[leaves[:, tree]]  # in the same order, so equal to the last bit
    for kernel in KERNELS:
        np.testing.assert_array_equal(counting.sum_values(case.codes, case.splits, values, kernel=kernel), total)
    monkeypatch.setattr(walk, "_compiled", lambda: None)
    for steps in (walk._STEPS, 40):
        monkeypatch.setattr(walk, "_STEPS", steps)
        found = walk.sum_values(case.codes, case.splits, values)
        np.testing.assert_array_equal(found, total)
        assert found.strides == counting.sum_values(case.codes, case.splits, values).strides  # or sums may differ later


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [0, 1, 64, bits.BLOCK + 1, 60_000])
def test_sum_values_of_any_number_of_rows(n_rows):
    case = Case(7, n_rows=n_rows, n_trees=5, depth=4, cardinalities=[3, 9, 40])
    values = case.rng.normal(size=(case.splits.n_nodes, 2))
    total = values[counting.apply(case.codes, case.splits)].cumsum(axis=1)[:, -1]
    for kernel in ["rows", "bits", "cells"]:
        for n_jobs in (1, 2):
            got = counting.sum_values(case.codes, case.splits, values, n_jobs, kernel)
            np.testing.assert_array_equal(got, total)
    np.testing.assert_array_equal(
        counting.apply(case.codes, case.splits, n_jobs=2), counting.apply(case.codes, case.splits)
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_leaves_are_looked_up_in_the_cells_of_few_features(seed):
    cardinalities = [[256], [9, 256], [3, 9, 40], [1, 2, 3, 4]][seed % 4]
    case = Case(seed, n_trees=4, depth=seed % 5, cardinalities=cardinalities)
    outputs = np.array([0.0, -0.0, np.nan, np.inf, 0.1, -1e308])
    values = case.rng.choice(outputs, (case.splits.n_nodes, 3), p=[0.5, 0.1, 0.02, 0.08, 0.2, 0.1])
    values[:, 0] = 0  # an output of which no tree says anything
    found = counting.sum_values(case.codes, case.splits, values, kernel="cells")
    expected = np.zeros((case.n_rows, 3))
    with np.errstate(invalid="ignore", over="ignore"):
        for leaves in leaf_of(case).T:
            expected += values[leaves]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[expected == 0]), False)


def tables_of(splits, values):
    """The tables of the cell kernel, and how many there are."""
    slots = np.where(splits.feature < 0, np.int32(0), np.int32(-1))
    found = cell_values.prepare(splits, visit(splits, slots), values, 1 << 20)
    return found, len(found.features)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_trees_share_tables_where_no_sum_is_rounded(seed):
    case = Case(seed, n_trees=14, depth=1 + seed % 3, cardinalities=[(3, 5, 7, 2), (2, 9, 40)][seed % 2])
    votes = case.rng.integers(-(2**31), 2**31, (case.splits.n_nodes, 2)) / 2**20
    expected = votes[leaf_of(case)].cumsum(axis=1)[:, -1]
    np.testing.assert_array_equal(counting.sum_values(case.codes, case.splits, votes, kernel="cells"), expected)
    tables, n_tables = tables_of(case.splits, votes)
    assert n_tables < 14
    sizes = np.diff(tables.starts)
    assert sizes.max() <= cell_values.MOST_CELLS
    assert (tables.places.max(axis=2).sum(axis=1) == sizes - 1).all()  # the last cell that codes can name
    for more in (2.0**-21, 2.0**50):  # a vote that is not whole, and one whose sum with others may be rounded
        other = votes.copy()
        other[case.splits.roots[0]] += more
        assert tables_of(case.splits, other)[1] == 14


def test_a_sum_that_is_rounded_keeps_its_order():
    leaf = [np.array([value] * 3, dtype) for value, dtype in zip((-1, 0, 0, False), SHAPE.values(), strict=False)]
    splits = Splits(*leaf, np.zeros((3, 4), np.uint64), np.arange(3, dtype=np.int32))
    codes = np.zeros((1, 5), np.uint8)
    for values in ([2.0**60, 1.0, -(2.0**60)], [2.0**33, 2.0**-20, -(2.0**33)], [1.0, 2.0**32, -(2.0**32)]):
        found = counting.sum_values(codes, splits, np.array(values)[:, None], kernel="cells")
        np.testing.assert_array_equal(found[:, 0], (0.0 + values[0] + values[1]) + values[2])


def chain(*levels):
    """One tree of nodes (feature, arity or mask), each the last child of the one before."""
    rows, node = [], 0
    for feature, split in levels:
        many = isinstance(split, int)
        rows.append((node, feature, many, split if many else 2, [0, 0, 0, 0] if many else split))
        node += rows[-1][3]
    n = node + 1
    feature, first, arity = np.full(n, -1, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    multiway, mask = np.zeros(n, bool), np.zeros((n, 4), np.uint64)
    for node, of, many, size, words in rows:
        feature[node], first[node], arity[node], multiway[node], mask[node] = of, node + 1, size, many, words
    return Splits(feature, first, arity, multiway, mask, np.zeros(1, np.int32))


@pytest.mark.parametrize(
    "levels",
    [
        [],
        [(1, 3), (1, 5)],  # of all that one sends on, no record has a code that only the other has a child for
        [(1, 5), (1, 3)],
        [(1, 1), (1, 256)],
        [(1, words_of([2, 255])), (1, 3), (1, words_of([0, 1]))],
        [(3, 7), (0, words_of(range(256))), (3, words_of([])), (2, 2), (1, words_of([1]))],
        [(0, 256), (0, 200), (1, 15)],
        [(0, 16), (1, 16), (2, 16)],  # exactly as many cells as a tree may have
    ],
)
def test_cells_of_nodes_that_overlap(levels):
    splits = chain(*levels)
    room = np.full(4, 256)
    for feature, arity in [level for level in levels if isinstance(level[1], int)]:
        room[feature] = min(room[feature], arity)
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(0, top, 3000) for top in room], dtype=np.uint8)
    values = rng.normal(size=(splits.n_nodes, 2))
    found = counting.sum_values(codes, splits, values, kernel="cells")
    np.testing.assert_array_equal(found, values[counting.apply(codes, splits)[:, 0]])
    np.testing.assert_array_equal(found, counting.sum_values(codes, splits, values, kernel="bits"))


@pytest.mark.parametrize(
    "levels", [[(feature, words_of([1])) for feature in range(5)], [(0, 16), (1, 16), (2, 16), (3, words_of([1]))]]
)
def test_a_tree_too_large_for_a_table(levels):
    codes, splits = np.ones((5, 40_000), np.uint8), chain(*levels)
    values = np.arange(splits.n_nodes * 1.0)[:, None]
    with pytest.raises(ValueError, match="trees of 4 features and 4096 cells each; ask for 'auto'"):
        counting.sum_values(codes, splits, values, kernel="cells")
    np.testing.assert_array_equal(
        counting.sum_values(codes, splits, values), counting.sum_values(codes, splits, values, kernel="rows")
    )


def test_too_many_trees_for_tables():
    n = cell_values.MOST_TREES + 1
    leaf = [np.full(n, value, dtype) for value, dtype in zip((-1, 0, 0, False), SHAPE.values(), strict=False)]
    splits = Splits(*leaf, np.zeros((n, 4), np.uint64), np.arange(n, dtype=np.int32))
    with pytest.raises(ValueError, match="at most 4096 trees"):
        counting.sum_values(np.zeros((1, 9), np.uint8), splits, np.ones((n, 1)), kernel="cells")
    found = counting.sum_values(np.zeros((1, 9000), np.uint8), splits, np.ones((n, 1)))
    np.testing.assert_array_equal(found, np.full((9000, 1), n))


def test_no_tree_says_nothing():
    nothing = [np.empty(0, dtype) for dtype in SHAPE.values()]
    nothing[4] = np.empty((0, 4), np.uint64)
    for kernel in [*KERNELS, "cells"]:
        found = counting.sum_values(np.zeros((1, 3), np.uint8), Splits(*nothing), np.empty((0, 2)), kernel=kernel)
        np.testing.assert_array_equal(found, np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("used", "n_rows", "levels"),
    [
        ("cell_values", 60_000, [(0, words_of([1])), (1, 3)]),
        ("rows", 100, [(0, words_of([1])), (1, 3)]),
        ("rows", 15_000, [(0, 256), (1, 200)]),  # too many cells, and for bits too many nodes
        ("bits", 60_000, [(feature, words_of([1])) for feature in range(5)]),
    ],
)
def test_values_are_added_by_the_cheapest_kernel(monkeypatch, used, n_rows, levels):
    names = []
    for module in ("rows", "bits", "cell_values"):
        monkeypatch.setattr(getattr(node_counts, module), "add_values", lambda *_, name=module: names.append(name))
    splits = chain(*levels)
    counting.sum_values(np.zeros((5, n_rows), np.uint8), splits, np.zeros((splits.n_nodes, 1)))
    assert set(names) == {used}


# -- the cost model --------------------------------------------------------------------------------------------------


def complete_trees(rng, n_trees, depth, n_features=14):
    """Binary trees with random thresholds, and their leaves."""
    n = n_trees * ((2 << depth) - 1)
    inner = n_trees * ((1 << depth) - 1)
    feature = np.full(n, -1, dtype=np.int32)
    feature[:inner] = rng.integers(0, n_features, inner)
    first = np.zeros(n, dtype=np.int32)
    first[:inner] = n_trees + 2 * np.arange(inner)
    arity = np.where(feature >= 0, 2, 0).astype(np.int32)
    mask = np.zeros((n, 4), dtype=np.uint64)
    mask[:inner, 0] = np.uint64(0xFFFFFFFF) << rng.integers(1, 32, inner).astype(np.uint64)
    slots = np.full(n, -1, dtype=np.int32)
    slots[inner:] = np.arange(n - inner)
    return Splits(feature, first, arity, np.zeros(n, bool), mask, np.arange(n_trees, dtype=np.int32)), slots


@pytest.mark.parametrize(
    ("cheaper", "n_rows", "n_trees", "depth", "n_classes", "assigned"),
    [
        ("bits", 1_000_000, 100, 5, 2, False),  # the last level of a forest of depth 6
        ("bits", 30_000, 10, 5, 2, False),
        ("rows", 1_000_000, 10, 9, 50, False),  # many classes
        ("rows", 1_000_000, 10, 10, 2, False),  # many nodes
        ("rows", 1_000_000, 100, 5, 2, True),  # each record is in one tree
        ("rows", 10, 2, 3, 2, False),  # hardly any record
    ],
)
def test_the_cost_model_takes_either_engine(cheaper, n_rows, n_trees, depth, n_classes, assigned):
    rng = np.random.default_rng(0)
    splits, slots = complete_trees(rng, n_trees, depth)
    n_slots = int(slots.max()) + 1
    features = rng.integers(0, 14, (n_slots, 4)).astype(np.int32)
    cuts = np.zeros((n_slots, 4, 4), dtype=np.uint64)
    cuts[..., 0] = rng.integers(0, 1 << 32, (n_slots, 4))  # random sets of 32 categories
    costs = counting.costs(n_rows, 14, n_classes, splits, slots, features, cuts, assigned)
    assert min(costs, key=costs.__getitem__) == cheaper


def test_costs_grow_with_the_rows_and_the_engine_follows_them(monkeypatch):
    case = Case(3, n_rows=5000, n_trees=3, depth=3, n_candidates=4)
    small, large = (
        counting.costs(n, len(case.codes), case.n_classes, case.splits, case.slots, case.features, case.masks)
        for n in (10**6, 2 * 10**6)
    )
    assert large["rows"] == pytest.approx(2 * small["rows"])
    sums = counting.costs(10**6, len(case.codes), target_powers(3), case.splits, case.slots, case.features, case.masks)
    assert sums["rows"] > small["rows"]
    assert sums["bits"] > small["bits"]
    assert large["bits"] == pytest.approx(2 * small["bits"], rel=0.01)
    used = []
    for module, name in ((node_counts.rows, "rows"), (node_counts.bits, "bits")):
        monkeypatch.setattr(module, "count", lambda *_, name=name: used.append(name))
    monkeypatch.setattr(node_counts.rows, "cost", lambda *_: 1e9)
    for cost in (2e9, 5e8):
        monkeypatch.setattr(node_counts.program, "cost", lambda *_, cost=cost: cost)
        counting.node_class_counts(case.codes, case.labels, case.n_classes, case.splits, case.slots)
    assert used == ["rows", "bits"]


# -- bad input -------------------------------------------------------------------------------------------------------


def small():
    """A valid call of candidate_counts: one binary split, one candidate at each leaf."""
    splits = {
        "feature": np.array([0, -1, -1], np.int32),
        "first_child": np.array([1, 0, 0], np.int32),
        "arity": np.array([2, 0, 0], np.int32),
        "multiway": np.zeros(3, bool),
        "mask": np.ones((3, 4), np.uint64),
        "roots": np.zeros(1, np.int32),
    }
    return {
        "codes": np.zeros((2, 5), np.uint8),
        "labels": np.zeros(5, np.uint8),
        "n_classes": 2,
        "slots": np.array([-1, 0, 1], np.int32),
        "features": np.zeros((2, 1), np.int32),
        "masks": np.zeros((2, 1, 4), np.uint64),
        **splits,
    }


def call(**changes):
    arguments = {**small(), **changes}
    splits = Splits(*(arguments.pop(name) for name in ("feature", "first_child", "arity", "multiway", "mask", "roots")))
    return counting.candidate_counts(splits=splits, **arguments)


def test_the_small_call_is_valid():
    np.testing.assert_array_equal(call()[:, 0, 0], [[0, 0], [5, 0]])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"codes": np.zeros((2, 5))}, TypeError, "uint8"),
        ({"codes": [[0]]}, TypeError, "uint8"),
        ({"codes": np.zeros((5, 2), np.uint8).T}, ValueError, "C-contiguous"),
        ({"codes": np.zeros(5, np.uint8)}, ValueError, "one row per feature"),
        ({"codes": np.zeros((0, 5), np.uint8)}, ValueError, "splits on feature 0"),
        ({"labels": np.zeros(5, np.int64)}, TypeError, "labels"),
        ({"labels": np.zeros(4, np.uint8)}, ValueError, "labels has shape"),
        ({"labels": np.full(5, 2, np.uint8)}, ValueError, "label 2"),
        ({"n_classes": 0}, ValueError, "n_classes"),
        ({"n_classes": 2.0}, ValueError, "n_classes"),
        ({"n_classes": 257}, ValueError, "n_classes"),
        ({"slots": np.array([-1, 0, 1])}, TypeError, "slots"),
        ({"slots": np.array([-1, 0], np.int32)}, TypeError, "slots"),
        ({"slots": np.array([-1, 0, 2], np.int32)}, ValueError, "slots"),
        ({"slots": np.array([-2, 0, 1], np.int32)}, ValueError, "slots"),
        ({"slots": np.array([0, 1, -1], np.int32)}, ValueError, "splits has a slot"),
        ({"features": np.zeros((2, 1))}, TypeError, "features"),
        ({"features": np.full((2, 1), 2, np.int32)}, ValueError, "candidate"),
        ({"features": np.full((2, 1), -1, np.int32)}, ValueError, "candidate"),
        ({"masks": np.zeros((2, 4), np.uint64)}, TypeError, "masks"),
        ({"masks": np.zeros((2, 1, 4), np.int64)}, TypeError, "masks"),
        ({"assignment": np.zeros(5)}, TypeError, "assignment"),
        ({"assignment": np.zeros(4, np.int32)}, ValueError, "assignment"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"n_jobs": 1.5}, ValueError, "n_jobs"),
        ({"kernel": "gpu"}, ValueError, "kernel"),
        ({"feature": np.array([0, -1, -1])}, TypeError, r"splits\.feature"),
        ({"feature": np.array([0, -2, -1], np.int32)}, ValueError, r"splits\.feature"),
        ({"mask": np.ones((3, 3), np.uint64)}, ValueError, r"splits\.mask"),
        ({"roots": np.array([3], np.int32)}, ValueError, r"splits\.roots"),
        ({"roots": np.array([0, 1], np.int32)}, ValueError, "exactly one"),
        ({"first_child": np.array([0, 0, 0], np.int32)}, ValueError, "after it"),
        ({"first_child": np.array([2, 0, 0], np.int32)}, ValueError, "after it"),
        ({"arity": np.array([1, 0, 0], np.int32)}, ValueError, "two children"),
        ({"multiway": np.array([True, False, False]), "codes": np.full((2, 5), 2, np.uint8)}, ValueError, "code 2"),
    ],
)
def test_clear_errors(changes, error, message):
    with pytest.raises(error, match=message):
        call(**changes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"table": [[1], [2]]}, TypeError, "table must be an array of int64, not list"),
        ({"table": np.ones((2, 1))}, TypeError, "table must be an array of int64, not an array of float64"),
        ({"table": np.ones(2, np.int64)}, ValueError, r"table must have shape"),
        ({"table": np.ones((2, 0), np.int64)}, ValueError, r"table must have shape"),
        ({"table": np.ones((0, 2), np.int64)}, ValueError, r"table must have shape"),
        ({"table": np.ones((257, 1), np.int64)}, ValueError, r"table must have shape"),
        ({"table": np.full((2, 1), -1)}, ValueError, "from 0 to 2"),
        ({"table": np.full((2, 1), 1 << 31)}, ValueError, "from 0 to 2"),
        ({"labels": np.full(5, 2, np.uint8)}, ValueError, "label 2 is not one of the 2 rows"),
        ({"features": np.zeros((2, 1))}, TypeError, "features"),
        ({"masks": np.zeros((2, 4), np.uint64)}, TypeError, "masks"),
        ({"kernel": "gpu"}, ValueError, "kernel"),
    ],
)
def test_clear_errors_of_the_sums(changes, error, message):
    arguments = small()
    splits = Splits(*(arguments.pop(name) for name in ("feature", "first_child", "arity", "multiway", "mask", "roots")))
    del arguments["n_classes"]
    arguments = {**arguments, "table": np.ones((2, 1), np.int64), **changes}
    with pytest.raises(error, match=message):
        counting.candidate_sums(splits=splits, **arguments)


def test_a_sum_that_may_not_fit_is_refused():
    checks.check_total(1 << 32, (1 << 31) - 1)
    with pytest.raises(ValueError, match="64 bits"):
        checks.check_total((1 << 32) + 5, (1 << 31) - 1)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"cardinalities": np.array([2])}, ValueError, "cardinalities"),
        ({"cardinalities": np.array([2.0, 2.0])}, ValueError, "cardinalities"),
        ({"cardinalities": np.array([2, 257])}, ValueError, "cardinalities"),
        ({"codes": np.full((2, 5), 2, np.uint8)}, ValueError, "feature 0 has code 2"),
        ({"features": np.zeros((2, 3), bool)}, TypeError, "features"),
        ({"features": np.zeros((2, 2))}, TypeError, "features"),
    ],
)
def test_clear_errors_of_the_histograms(changes, error, message):
    arguments = small()
    splits = Splits(*(arguments.pop(name) for name in ("feature", "first_child", "arity", "multiway", "mask", "roots")))
    arguments = {**arguments, "cardinalities": np.array([2, 2]), "features": None, **changes}
    del arguments["masks"]
    with pytest.raises(error, match=message):
        counting.feature_histograms(splits=splits, **arguments)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (np.zeros(3), TypeError),
        (np.zeros((3, 1), np.float32), TypeError),
        ([[0.0]] * 3, TypeError),
        (np.zeros((2, 1)), ValueError),
    ],
)
def test_clear_errors_of_the_values(values, error):
    case = Case(0, depth=0, n_trees=3)
    with pytest.raises(error, match=r"\(3, n_outputs\)"):
        counting.sum_values(case.codes, case.splits, values)


def test_splits_of_anything_with_the_six_arrays():
    class Growth:
        def __init__(self, splits):
            self.__dict__.update(splits.__dict__)

    case = Case(2)
    np.testing.assert_array_equal(
        counting.apply(case.codes, Growth(case.splits)), counting.apply(case.codes, case.splits)
    )


def test_few_nodes_are_known_by_what_they_hold():
    """Trees that are kept are found again by their content alone: one that grows is looked at anew, a wrong one too."""
    case = Case(2, depth=1, n_trees=1)
    growing = SimpleNamespace(**{name: getattr(case.splits, name).copy() for name in SHAPE})
    assert Splits.of(growing).n_nodes <= FEW
    kept = Splits.of(growing)
    assert Splits.of(SimpleNamespace(**{name: getattr(growing, name).copy() for name in SHAPE})) is kept
    growing.feature[0] = (growing.feature[0] + 1) % len(case.codes)
    assert kept.feature[0] != growing.feature[0] == Splits.of(growing).feature[0]
    growing.roots[0] = 1
    for _ in range(2):
        with pytest.raises(ValueError, match="exactly one node"):
            Splits.of(growing)
    growing.feature = growing.feature.astype(np.int64)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"splits\.feature must be an array"):
            Splits.of(growing)


# -- other processors, and what is kept on disk ----------------------------------------------------------------------

CARRIED = """
from tests.test_counting import Case, recount
from dpforest.counting.bit_words import VECTOR_POPCOUNT
assert not VECTOR_POPCOUNT
for seed, options in enumerate([
    {"n_rows": 70, "n_classes": 2}, {"n_rows": 4096, "n_classes": 2}, {"n_rows": 13000, "n_classes": 3},
    {"n_rows": 5000, "n_classes": 12}, {"n_rows": 12289, "n_classes": 40, "n_candidates": 4},
]):
    case = Case(seed, **options)
    for mine, exact in zip(case.ask(kernel="bits"), recount(case), strict=True):
        assert (mine == exact).all(), (seed, options)
print("counted")
"""


def in_a_child(code, **environment):
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        env=os.environ | environment,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_carry_save_counters_count_the_same():
    """The processor of the least common denominator has no vector popcount; its answers are the recount's."""
    assert in_a_child(CARRIED, NUMBA_CPU_NAME="generic") == ["counted"]


KERNEL = (
    "from dpforest.counting.compiled import kernel\nfrom one import one\n\n@kernel\ndef two():\n    return 2 * one()\n"
)
ONE = "from dpforest.counting.compiled import helper\n\n@helper\ndef one():\n    return {}\n"
CALL = "import sys; sys.path.insert(0, {!r}); from two import two; print(two(), sum(two.stats.cache_hits.values()))"


def test_a_kernel_is_kept_until_any_file_beside_it_changes(tmp_path):
    """Also where the file that changed is another one, of the same size and time; and for one processor each."""
    (tmp_path / "two.py").write_text(KERNEL)
    (tmp_path / "one.py").write_text(ONE.format(1))
    time = (tmp_path / "one.py").stat().st_mtime_ns
    call, quiet = CALL.format(str(tmp_path)), {"PYTHONDONTWRITEBYTECODE": "1"}
    assert in_a_child(call, **quiet) == ["2", "0"]
    assert in_a_child(call, **quiet) == ["2", "1"]
    other = "core2" if os.environ.get("NUMBA_CPU_NAME") == "generic" else "generic"
    assert in_a_child(call, NUMBA_CPU_NAME=other, **quiet) == ["2", "0"]
    assert in_a_child(call, **quiet) == ["2", "1"]
    (tmp_path / "one.py").write_text(ONE.format(3))
    os.utime(tmp_path / "one.py", ns=(time, time))
    assert in_a_child(call, **quiet) == ["6", "0"]
    assert in_a_child(call, **quiet) == ["6", "1"]
