"""What the curator remembers of a selection is what a fresh count would find, and is forgotten when it would not be."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_curator import World
from test_curator_targets import world_of_targets

from dpforest import counting, scores
from dpforest.chance import Seeded
from dpforest.curator import STOP, Curator, Selection
from dpforest.curator import known as known_module
from dpforest.curator.known import CachedCounts, Split
from dpforest.curator.memory import InMemoryRecords
from dpforest.curator.queries import ClassCounts, TableClasses, TableCounts
from dpforest.curator.selections import BinaryCandidates, CutCandidates, FeatureCandidates
from dpforest.learners.growth import Frontier, Growth
from dpforest.privacy import ADD_REMOVE, Ledger
from dpforest.structure.crossings import Crossings

KINDS = ("feature", "cut", "parts", "candidate", "weighted feature", "weighted cut", "weighted candidate", "moments")
kinds = pytest.mark.parametrize("kind", KINDS)


@dataclass
class Case:
    """A world in which a selection was made for some leaves, and what it said: (feature, multiway, mask) or None."""

    world: World
    curator: Curator
    kind: str
    n_sums: int
    said: dict[int, tuple | None]  # by node
    whole: bool  # all nodes were looked at in one go, so that the children must be known too

    def recall(self, nodes, n_sums: int | None = None, growth=None) -> np.ndarray | None:
        nodes = np.asarray(nodes, dtype=np.int64)
        return self.curator._records.known.recall(
            self.world.growth if growth is None else growth, nodes, self.n_sums if n_sums is None else n_sums
        )


def bits(mask) -> tuple[int, ...]:
    return tuple(int(word) for word in mask)


def choose(kind: str, seed: int, *, assigned: bool = False, cells: int | None = None, stop: bool = True) -> Case:
    """A random world, and a selection of this kind that picks nearly at random for its leaves."""
    rng = np.random.default_rng(seed)
    make = world_of_targets if kind == "moments" else World
    world = make(seed, assigned=assigned)
    curator: Any = world.curator
    curator._chance = Seeded(seed)
    if cells is not None:
        curator._records.cells = cells
    if "weighted" in kind:
        world.weights = rng.uniform(0.1, 1, size=world.classes)
        curator.weigh_records(class_weights=world.weights)
    g, nodes, cards = world.growth, world.nodes, world.cardinalities
    price = world.scopes, 1e-2
    how = Selection(scores.gini, stop_margin=0.5 if stop else None)
    starts = np.concatenate([[0], np.cumsum(cards)])
    whole = True
    if "feature" in kind:
        choice = curator.choose(FeatureCandidates(g, nodes, world.allowed), *price, how)
        said = [None if f == STOP else (int(f), True, None) for f in choice]
        whole = len(nodes) * cards.sum() * world.classes <= curator._records.cells
    elif "cut" in kind or kind == "parts":
        if kind == "parts":
            curator.partition_records(5)
            how = replace(how, score=scores.averaged(scores.gini, 5))
        allowed = rng.random((len(nodes), int(cards.sum()))) < 0.6
        allowed[:, -1] |= ~allowed.any(axis=1)
        said = []
        for column in curator.choose(CutCandidates(g, nodes, allowed), *price, how):
            feature = max(f for f in range(3) if starts[f] <= column) if column != STOP else None
            if feature is None:
                said.append(None)
            elif column == starts[feature + 1] - 1:
                said.append((feature, True, None))
            else:
                above = sum(1 << c for c in range(cards[feature]) if c > column - starts[feature])
                said.append((feature, False, (above, 0, 0, 0)))
    else:
        how = replace(how, score=(scores.between, scores.sse)[seed % 2] if kind == "moments" else scores.gini)
        features = rng.integers(3, size=(len(nodes), 4)).astype(np.int32)
        masks = rng.integers(2**63, size=(len(nodes), 4, 4)).astype(np.uint64)
        masks[rng.random((len(nodes), 4)) < 0.3] = 0  # all records to the first child
        choice = curator.choose(BinaryCandidates(g, nodes, features, masks), *price, how)
        said = [
            None if k == STOP else (int(features[row, k]), False, bits(masks[row, k])) for row, k in enumerate(choice)
        ]
    n_sums = how.score.n_moments if kind == "moments" else world.classes
    return Case(world, curator, kind, n_sums, dict(zip(nodes.tolist(), said, strict=True)), whole)


def grow(case: Case, rng) -> dict[int, tuple | None]:
    """Split some leaves as chosen, some otherwise, some not at all; returns how each was split."""
    world, done = case.world, {}
    for node, said in case.said.items():
        roll = rng.random()
        if roll < 0.25 or (roll < 0.65 and said is None):
            done[node] = None
        elif roll < 0.65:
            done[node] = said
        else:
            feature = said[0] if said is not None and rng.random() < 0.7 else int(rng.integers(3))
            mask = (0, 0, 0, 0) if rng.random() < 0.3 else bits(rng.integers(2**63, size=4))
            if said is not None and said[2] is not None and rng.random() < 0.3:
                mask = said[2]
            multiway = bool(rng.random() < 0.5)
            done[node] = feature, multiway, None if multiway else mask
    split = [node for node, how in done.items() if how is not None]
    at = {node: row for row, node in enumerate(world.nodes.tolist())}
    rows = np.array([at[node] for node in split], dtype=int)
    hows = [done[node] for node in split]
    masks = np.array([how[2] or (0, 0, 0, 0) for how in hows], dtype=np.uint64).reshape(-1, 4)
    parents = Frontier(world.nodes[rows], world.scopes[rows], np.ones((len(rows), 3), bool))
    arities = np.array([world.cardinalities[how[0]] if how[1] else 2 for how in hows], dtype=int)
    world.growth.add_children(
        parents,
        np.array([how[0] for how in hows], dtype=int),
        arities,
        masks=masks,
        binary=np.array([not how[1] for how in hows], dtype=bool),
        reuse=True,
    )
    return done


def recount(case: Case) -> dict[int, list[int]]:
    """What each node of the forest holds, every record followed by hand, as the curator's sums."""
    world, g = case.world, case.world.growth
    through = defaultdict(list)
    for record in range(len(world.labels)):
        for tree, root in enumerate(g.roots.tolist()):
            if world.assignment is not None and world.assignment[record] != tree:
                continue
            node = root
            through[node].append(record)
            while g.feature[node] >= 0:
                code = int(world.codes[g.feature[node], record])
                bit = (int(g.mask[node, code // 64]) >> code % 64) & 1
                node = int(g.first_child[node]) + (code if g.multiway[node] else bit)
                through[node].append(record)
    sums = {}
    for node in range(g.n_nodes):
        labels = [int(world.labels[record]) for record in through[node]]
        if case.kind == "moments":
            sums[node] = [sum(y**k for y in labels) for k in range(case.n_sums)]
        else:
            steps = np.ones(world.classes, int)
            if "weighted" in case.kind:
                steps = np.rint(world.weights * case.curator.unit).astype(int)
            sums[node] = [Counter(labels)[c] * int(steps[c]) for c in range(world.classes)]
    return sums


def children(growth, node: int) -> range:
    return range(int(growth.first_child[node]), int(growth.first_child[node]) + int(growth.arity[node]))


def check(kind: str, seed: int, assigned: bool, cells: int | None, stop: bool) -> Case:
    """The whole claim: what is recalled is exact, and it is recalled when and only when it must be."""
    case = choose(kind, seed, assigned=assigned, cells=cells, stop=stop)
    growth, before = case.world.growth, case.world.growth.n_nodes
    sums = recount(case)
    for node in range(before):  # before anything is split
        found = case.recall([node])
        assert (found is None) == (node not in case.said)
        assert found is None or found.tolist() == [sums[node]]
    done = grow(case, np.random.default_rng(seed + 1))
    sums, wanted = recount(case), set(case.said)
    below = {
        node for parent, how in done.items() if how and how == case.said[parent] for node in children(growth, parent)
    }
    if case.whole or case.recall(sorted(below)) is not None:
        wanted |= below
    for node in range(growth.n_nodes):
        found = case.recall([node])
        if node in wanted:
            assert found is not None
            assert found.tolist() == [sums[node]]
            assert found.dtype == np.int64
        else:
            assert found is None
    # all at once, in any order
    every = np.random.default_rng(seed).permutation(sorted(wanted))
    found = case.recall(every)
    assert found is not None
    assert found.tolist() == [sums[int(node)] for node in every]
    for fewer in range(1, case.n_sums):
        found = case.recall(every, fewer)
        assert found is not None
        assert found.tolist() == [sums[int(node)][:fewer] for node in every]
    assert case.recall(every, case.n_sums + 1) is None
    assert case.recall([]) is None
    strangers = [node for node in range(growth.n_nodes) if node not in wanted]
    if strangers:
        assert case.recall([*every, strangers[0]]) is None
    # another forest that looks the same
    assert case.recall(every, growth=copy.copy(growth)) is None
    return case


@kinds
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([None, 1, 60]), st.booleans())
def test_recalled_is_recounted(kind, seed, assigned, cells, stop):
    check(kind, seed, assigned, cells, stop)


def test_every_way_to_go_on_is_met():
    """The worlds above do hold what they are to test."""
    met: Counter = Counter()
    for kind in KINDS:
        for seed in range(40):
            case = choose(kind, seed)
            for node, how in grow(case, np.random.default_rng(seed + 1)).items():
                said = case.said[node]
                met["stopped" if said is None else "multiway" if said[1] else "binary"] += 1
                met["left alone" if how is None else "as chosen" if how == said else "otherwise"] += 1
                if how and said and how != said and how[0] == said[0]:
                    met["same feature", said[1], how[1]] += 1
                    if case.world.cardinalities[how[0]] == 2:
                        met["in two", said[1], how[1]] += 1
    assert min(met.values()) > 5, met
    assert len(met) == 6 + 3 + 3, met  # chosen multiway and split multiway on the same feature is as chosen


# -- faults that must be found ---------------------------------------------------------------------------------------


def sides_swapped(plain):
    def by_column(cls, histograms, offsets, column):
        split = plain(histograms, offsets, column)
        at = np.cumsum(split.arity) - split.arity
        for start, arity in zip(at, split.arity, strict=True):
            split.counts[start : start + arity] = split.counts[start : start + arity][::-1]
        return split

    return classmethod(by_column)


def off_by_one_code(plain):
    def by_column(cls, histograms, offsets, column):
        return plain(np.roll(histograms, 1, axis=1), offsets, column)

    return classmethod(by_column)


def empty_nodes_forgotten(plain):
    def by_code(cls, n_nodes, few, histograms, offsets, choice):
        return plain(n_nodes, np.arange(len(few)), histograms, offsets, choice)

    return classmethod(by_code)


def trusting(plain):
    """Takes every split for the one that was chosen."""

    def _children(self, splits):
        split, nodes = self._split, self._nodes
        done = (split.feature >= 0) & (splits.arity[nodes] == split.arity)
        kept = np.repeat(done, split.arity)
        return known_module.ranges(splits.first_child[nodes], split.arity)[kept], split.counts[kept]

    return _children


def blind_to_the_forest(plain):
    def recall(self, splits, nodes, n_sums):
        self._splits = splits
        return plain(self, splits, nodes, n_sums)

    return recall


FAULTS = {
    "sides": (Split, "by_column", sides_swapped, "cut"),
    "shift": (Split, "by_column", off_by_one_code, "cut"),
    "few": (Split, "by_code", empty_nodes_forgotten, "feature"),
    "trust": (CachedCounts, "_children", trusting, "candidate"),
    "forest": (CachedCounts, "recall", blind_to_the_forest, "feature"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, monkeypatch):
    owner, name, start_forest, kind = FAULTS[fault]
    worlds = [(kind, seed, False, 120 if fault == "few" else None, True) for seed in range(20)]
    list(starmap(check, worlds))
    monkeypatch.setattr(owner, name, start_forest(getattr(owner, name)))
    with pytest.raises(AssertionError):
        list(starmap(check, worlds))


def test_an_own_count_that_is_not_updated_is_found(monkeypatch):
    plain = CachedCounts.note
    monkeypatch.setattr(
        CachedCounts, "note", lambda self, s, n, own, split=None: plain(self, s, n, np.zeros_like(own), split)
    )
    with pytest.raises(AssertionError):
        list(starmap(check, [("candidate", seed, False, None, True) for seed in range(5)]))


# -- what makes it forget ----------------------------------------------------------------------------------------------

#: What changes who counts for how much, in memory.
CHANGES = {
    "assign": lambda curator: curator.assign(2),
    "weigh_records": lambda curator: curator.weigh_records(class_weights=[0.5, 1.0, 0.2]),
    "split_equally": lambda curator: curator.split_equally(2),
    "bootstrap": lambda curator: curator.bootstrap(2),
    "poisson_bootstrap": lambda curator: curator.poisson_bootstrap(2),
    "hold_out": lambda curator: curator.hold_out(0.5),
    "draw_by_weight": lambda curator: curator.draw_by_weight(("w", "p")),
    "count_by_share": lambda curator: curator.count_by_share(("w", "p")),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(3))
def test_it_forgets_when_the_records_count_otherwise(change, seed):
    case = choose("candidate", seed)
    assert case.recall(case.world.nodes) is not None
    before = case.curator.peek(ClassCounts(case.world.growth, case.world.nodes), ("w", "p"))
    CHANGES[change](case.curator)
    assert all(case.recall([node]) is None for node in range(case.world.growth.n_nodes))
    after = case.curator._class_counts(case.world.growth, case.world.nodes)
    assert after.tolist() == case.curator._records.answer(ClassCounts(case.world.growth, case.world.nodes)).tolist()
    if change != "poisson_bootstrap":
        assert after.tolist() != before.tolist()  # it would have been wrong


def test_parts_change_nothing_that_is_remembered():
    case = choose("cut", 1)
    case.curator.partition_records(3)
    found = case.recall(case.world.nodes)
    sums = recount(case)
    assert found is None or found.tolist() == [sums[node] for node in case.world.nodes.tolist()]


def test_the_next_selection_replaces_the_last():
    case = choose("feature", 2)
    g, first, rest = case.world.growth, case.world.nodes[:1], case.world.nodes[1:]
    features, masks = np.zeros((1, 1), np.int32), np.zeros((1, 1, 4), np.uint64)
    case.curator.choose(
        BinaryCandidates(g, first, features, masks),
        case.world.scopes[:1],
        1.0,
        Selection(scores.gini, mechanism="exponential"),
    )
    assert case.recall(first) is not None
    assert all(case.recall([node]) is None for node in rest)


@pytest.mark.parametrize("kind", [FeatureCandidates, CutCandidates, BinaryCandidates])
def test_a_selection_for_no_node_leaves_nothing_known(kind):
    case = choose("feature", 3)
    none = np.zeros(0, dtype=np.int64)
    asked = {
        FeatureCandidates: (np.zeros((0, 3), bool),),
        CutCandidates: (np.zeros((0, int(case.world.cardinalities.sum())), bool),),
        BinaryCandidates: (np.zeros((0, 2), np.int32), np.zeros((0, 2, 4), np.uint64)),
    }[kind]
    how = Selection(scores.gini, "exponential", stop_margin=1.0)
    case.curator.choose(kind(case.world.growth, none, *asked), none, 1.0, how)
    assert case.recall(case.world.nodes) is None
    sums = recount(case)
    found = case.curator.peek(ClassCounts(case.world.growth, case.world.nodes), ("w", "p"))
    assert found.tolist() == [sums[node] for node in case.world.nodes.tolist()]


# -- class counts of crossed tables -----------------------------------------------------------------------------------


def test_class_counts_of_tables_are_kept_from_round_to_round(monkeypatch):
    world = World(4)
    records = world.curator._records
    asked = [np.arange(size) % 2 for size in world.cardinalities]
    tables = Crossings.of([[(0, asked[0])], [(1, asked[1]), (2, asked[2])], [(2, asked[2])]])
    counts = TableClasses(tables).exact(records)
    records.known.note_classes(tables[:2], counts[: tables.starts[2]])
    assert TableClasses(tables).recall(records.known, world.classes) is None  # the third is not known
    records.known.forget_tables()  # scores have changed, and not the classes
    for table in (tables[:2], tables[1], tables[0]):
        np.testing.assert_array_equal(
            TableClasses(table).recall(records.known, world.classes), TableClasses(table).exact(records)
        )
    for by_class in (True, False):
        query = TableCounts(tables[1], by_class)
        np.testing.assert_array_equal(query.recall(records.known, world.classes), query.exact(records))
    other = Crossings.of([[(0, 1 - asked[0])]])  # the same feature, its codes in other groups
    more = replace(tables[0], sizes=tables[0].sizes + np.array([1, 0, 0]))  # and a group that no code is in
    for table in (other, more, tables[2]):
        assert records.known.recall_classes(table) is None
    records.known.forget()
    assert records.known.recall_classes(tables[0]) is None
    monkeypatch.setattr(known_module, "_ROOM", counts.size - 1)
    records.known.note_classes(tables, counts)
    assert records.known.recall_classes(tables[0]) is None


# -- it is used ------------------------------------------------------------------------------------------------------


def test_leaves_of_a_level_cost_no_count():
    """A level of selections, then the noisy counts of its leaves and of those below: not one record is read again."""
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(3, size=200) for _ in range(4)], dtype=np.uint8)
    labels = rng.integers(2, size=200).astype(np.uint8)
    ledger = Ledger(ADD_REMOVE)
    read = []

    class Counting(InMemoryRecords):
        def answer(self, query):
            read.append(query.name)
            return super().answer(query)

    curator = Curator(codes, labels, 2, np.full(4, 3), chance=Seeded(0), ledger=ledger)
    curator._records = Counting(codes, labels, 2, np.full(4, 3))
    growth = Growth(2, 4, 2, ledger, "sequential")
    for level in range(3):
        frontier = growth.frontier
        choice = curator.choose(
            FeatureCandidates(growth, frontier.nodes, frontier.unused),
            frontier.scopes,
            1.0,
            Selection(scores.gini, mechanism="exponential", stop_margin=1.0),
        )
        stopped = frontier[choice == STOP]
        if len(stopped):
            curator.noisy(ClassCounts(growth, stopped.nodes), stopped.scopes, 1.0)
        going = choice != STOP
        growth.add_children(frontier[going], choice[going], np.full(int(going.sum()), 3))
        assert read == ["histograms"] * (level + 1)
    exact = curator.peek(ClassCounts(growth, growth.frontier.nodes), ("w", "p"))
    assert read == ["histograms"] * 3
    assert exact.tolist() == curator._records.answer(ClassCounts(growth, growth.frontier.nodes)).tolist()


def test_candidates_of_the_next_level_are_counted_without_the_nodes(monkeypatch):
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(3, size=200) for _ in range(4)], dtype=np.uint8)
    labels = rng.integers(2, size=200).astype(np.uint8)
    ledger, told = Ledger(ADD_REMOVE), []
    plain = counting.candidate_counts

    def count(*asked, known, **how):
        told.append(known)
        return plain(*asked, known=known, **how)

    monkeypatch.setattr(counting, "candidate_counts", count)
    curator = Curator(codes, labels, 2, np.full(4, 3), chance=Seeded(0), ledger=ledger)
    growth = Growth(2, 4, 2, ledger, "sequential")
    for level in range(3):
        nodes, scopes = growth.frontier.nodes, growth.frontier.scopes
        features, masks = rng.integers(4, size=(len(nodes), 2)).astype(np.int32), np.full((len(nodes), 2, 4), 2)
        masks = masks.astype(np.uint64)
        exact = curator._records.answer(ClassCounts(growth, nodes))
        choice = curator.choose(
            BinaryCandidates(growth, nodes, features, masks),
            scopes,
            1.0,
            Selection(scores.gini, mechanism="exponential"),
        )
        assert (told[level] is None) == (level == 0)
        assert level == 0 or told[level].tolist() == exact.tolist()
        rows = np.arange(len(nodes))
        growth.add_children(
            growth.frontier, features[rows, choice], np.full(len(nodes), 2), masks=masks[rows, choice], reuse=True
        )
