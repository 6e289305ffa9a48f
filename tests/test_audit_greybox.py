"""The grey box: learners that keep their accounts are clean, and each way of breaking them is found and named."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import sys
import warnings
from functools import partial

import numpy as np
import oracle
import pandas as pd
import pytest
import shared
from sklearn.base import clone

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema, mechanisms, scores
from dpforest.audit.exact.enumeration import datasets, exact_audit, neighbours
from dpforest.audit.exact.paths import path_audit
from dpforest.audit.grey.doors import Roaming, watching
from dpforest.audit.grey.frozen import LEARNER, PlaybackStopped, Watch
from dpforest.audit.grey.greybox import KINDS, GreyBoxAudit, greybox
from dpforest.audit.search.pairs import are_neighbours, match_records, rows_of
from dpforest.audit.search.traps import traps
from dpforest.chance import NotEnumerableError, Seeded
from dpforest.curator import Curator, Selection
from dpforest.curator.queries import ClassCounts
from dpforest.curator.selections import FeatureCandidates, LabelCandidates
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.growth import Growth
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE, Ledger, OutOfSchemaWarning, equal_split

relations = pytest.mark.parametrize("relation", RELATIONS)
ONE = Schema(categorical={"x": [0, 1]}, classes=[0, 1])
TWO = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
THREE = Schema(categorical={"a": [0, 1], "b": [0, 1], "c": [0, 1]}, classes=[0, 1])
MIXED = Schema(
    numeric={"x": (0, 1)},
    categorical={"a": ["u", "v"], "b": [0, 1, 2]},
    classes=["n", "y", "z"],
    other={"a": "v"},
    missing="bin",
)
EMPTY_AND_ONE = ((), ((0, 0, 0),))
TWO_LABELS = (((0, 0, 0), (0, 1, 0)), ((0, 0, 0), (0, 1, 0), (0, 0, 1)))


# -- learners to break -----------------------------------------------------------------------------------------------


class Plain(PrivateForestClassifier):
    """A forest that keeps its accounts: ``split * epsilon`` for each level, ``leaf * epsilon`` for the labels."""

    def __init__(
        self,
        epsilon=1.0,
        schema=TWO,
        relation="add-remove",
        depth=1,
        split=0.5,
        leaf=0.5,
        criterion="majority",
        n_estimators=1,
        max_nodes=1000,
    ):
        self.epsilon, self.schema, self.relation, self.criterion = epsilon, schema, relation, criterion
        self.depth, self.split, self.leaf, self.n_estimators, self.max_nodes = (
            depth,
            split,
            leaf,
            n_estimators,
            max_nodes,
        )
        self.variant, self.n_bins, self.n_jobs, self.source, self.random_state = "proved", 2, None, "seeded", None

    sharing = "assignment"

    @property
    def steps(self) -> int:
        """How many counts of a leaf a neighbour changes."""
        return 1 if self.relation == ADD_REMOVE else 2

    def _learn(self, run):
        growth = Growth(
            self.n_estimators, run.schema.n_features, run.schema.n_classes, run.ledger, self.sharing, self.max_nodes
        )
        self.deal(run.curator)
        for level in range(self.depth):
            frontier = self.inner(growth, run.curator)
            if len(frontier):
                feature = self.choose(
                    growth, frontier, run.curator, run.chance, run.ledger, run.epsilon * self.split, level
                )
                growth.add_children(frontier, feature, run.curator.cardinalities[feature])
        leaves = growth.frontier
        growth.set_leaf_values(
            leaves, self.say(growth, leaves, run.curator, run.chance, run.ledger, run.epsilon * self.leaf)
        )
        return growth.release()

    def deal(self, curator):
        curator.assign(self.n_estimators)

    def inner(self, growth, curator):
        return growth.frontier

    def choose(self, growth, frontier, curator, chance, ledger, epsilon, level):
        return curator.choose(
            FeatureCandidates(growth, frontier.nodes, frontier.unused),
            frontier.scopes,
            epsilon,
            Selection(scores.CLASSIFICATION[self.criterion], mechanism="permute-and-flip"),
        )

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        label = curator.choose(
            LabelCandidates(growth, leaves.nodes),
            leaves.scopes,
            epsilon,
            Selection(scores.majority, "permute-and-flip"),
        )
        return np.eye(curator.n_classes, dtype=np.int64)[label]


class NoisyCounts(Plain):
    """Its leaves are noisy counts."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        return curator.noisy(ClassCounts(growth, leaves.nodes), leaves.scopes, epsilon)


def settle_pure(growth, counts, curator):
    """Leave the pure nodes out of the frontier, and give them a label for nothing."""
    pure = (counts > 0).sum(axis=1) <= 1
    growth.set_leaf_values(growth.frontier[pure], np.ones((int(pure.sum()), curator.n_classes), dtype=np.int64))
    return growth.frontier[~pure]


class PurityStop(Plain):
    """Stops at pure nodes, and says that it looks."""

    def inner(self, growth, curator):
        return settle_pure(
            growth, curator.peek(ClassCounts(growth, growth.frontier.nodes), ("purity", "line 1")), curator
        )


class SecretPurityStop(Plain):
    """Stops at pure nodes, and does not say so."""

    def inner(self, growth, curator):
        return settle_pure(growth, curator._class_counts(growth, growth.frontier.nodes), curator)


class LooksForNothing(Plain):
    """Looks at the records without need, and makes no use of it."""

    def deal(self, curator):
        super().deal(curator)
        curator._records.labels.sum()


class SizeRule(Plain):
    """Does not split a table of fewer than 10 records."""

    def inner(self, growth, curator):
        few = curator.size(("the number of records", "a rule")) < 10
        return growth.frontier[:0] if few else growth.frontier


class DearWhenFull(Plain):
    """Spends more on a node that holds records."""

    def choose(self, growth, frontier, curator, chance, ledger, epsilon, level):
        full = curator._class_counts(growth, frontier.nodes).any(axis=1)
        return super().choose(growth, frontier, curator, chance, ledger, np.where(full, epsilon, epsilon / 2), level)


class ExactArgmax(Plain):
    """Takes the best feature, without noise."""

    def choose(self, growth, frontier, curator, chance, ledger, epsilon, level):
        return super().choose(growth, frontier, curator, chance, ledger, math.inf, level)


class ExactLeaves(Plain):
    """Releases the exact counts of its leaves beside the label it paid for."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        super().say(growth, leaves, curator, chance, ledger, epsilon)
        return curator.peek(ClassCounts(growth, leaves.nodes), ("leaves", "the release"))


class OwnDraw(Plain):
    """Draws the label itself; ``pays`` for it or not."""

    pays = True

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        counts, rate = curator._class_counts(growth, leaves.nodes).astype(float), epsilon / self.steps
        label = mechanisms.permute_and_flip(counts, rate, chance)
        if self.pays:
            ledger.charge(leaves.scopes, rate, 2 * rate, "own label", "permute-and-flip")
        return np.eye(curator.n_classes, dtype=np.int64)[label]


class UnpaidDraw(OwnDraw):
    pays = False


class NamesTheData(OwnDraw):
    """Its charges are right, and one name in the ledger, which a card prints, says how many records there are."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        counts, rate = curator._class_counts(growth, leaves.nodes), epsilon / self.steps
        ledger.charge(leaves.scopes, rate, 2 * rate, *self.names(int(counts.sum())))
        self.keep(growth, int(counts.sum()))
        return np.eye(2, dtype=np.int64)[mechanisms.permute_and_flip(counts.astype(float), rate, chance)]

    def names(self, size):
        return f"own label of {size}", "permute-and-flip"

    def keep(self, growth, size):
        pass


class NamesTheDataAsMechanism(NamesTheData):
    def names(self, size):
        return "own label", f"permute-and-flip of {size}"


class KeepsOnItself(NamesTheData):
    """Its model and its ledger are right, and it keeps the number of records on itself, which a pickle holds."""

    def names(self, size):
        return "own label", "permute-and-flip"

    def keep(self, growth, size):
        self.seen_ = [size]


class KeepsOnItsModel(KeepsOnItself):
    """The same beside the fields of its model."""

    def keep(self, growth, size):
        release = growth.release

        def marked():
            forest = release()
            object.__setattr__(forest, "seen", size)
            return forest

        growth.release = marked


class KeepsInItsSchema(KeepsOnItself):
    """The same on an object that it was given."""

    def keep(self, growth, size):
        object.__setattr__(self.schema, "seen", size)


class NamesALeak(NamesTheData):
    """A leak that it owns up to is named by what was read."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        ledger.leak("the number of records", f"line {int(curator._class_counts(growth, leaves.nodes).sum())}")
        return super().say(growth, leaves, curator, chance, ledger, epsilon)

    def names(self, size):
        return "own label", "permute-and-flip"


class FailsOnClassOne(Plain):
    """Raises its own error wherever a label is 1, on both of two neighbours mostly."""

    def deal(self, curator):
        super().deal(curator)
        if curator.size(("the number of records", "line 1")) and curator._records.labels.any():
            self.fail()

    def fail(self):
        raise ArithmeticError("a label is 1")


class LeavesOnClassOne(FailsOnClassOne):
    def fail(self):
        sys.exit(0)


class OwnNoise(Plain):
    """Adds the noise itself, to what ``counted`` gives, at ``rate`` times what it charges for."""

    rate = 1.0

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        counts, rate = self.counted(curator._class_counts(growth, leaves.nodes)), epsilon / self.steps
        ledger.charge(leaves.scopes, rate, 2 * rate, "own counts", "two-sided geometric")
        return mechanisms.two_sided_geometric(counts, self.rate * rate, chance)

    def counted(self, counts):
        return counts


class FaintCharge(OwnNoise):
    """Charges half of what its noise costs."""

    rate = 2.0


class DoubledCounts(OwnNoise):
    """Counts every record twice."""

    def counted(self, counts):
        return 2 * counts


class RateOfData(OwnNoise):
    """Takes its rate from the number of records."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        counts = curator._class_counts(growth, leaves.nodes)
        ledger.charge(leaves.scopes, epsilon, 2 * epsilon, "own counts", "two-sided geometric")
        return mechanisms.two_sided_geometric(counts, epsilon / (1 + counts.sum()), chance)


class SameNoiseTwice(OwnNoise):
    """Adds one and the same noise to two answers, whose difference is then exact."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        counts = curator._class_counts(growth, leaves.nodes)
        noise = chance.two_sided_geometric(np.full(counts.shape, epsilon / 2), counts.shape)
        ledger.charge(leaves.scopes, epsilon, 2 * epsilon, "own counts", "two-sided geometric")
        return (counts + noise) - (counts[:, ::-1] + noise)


class BentNoise(OwnNoise):
    """Lets the noise out by itself."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        counts = curator._class_counts(growth, leaves.nodes)
        noise = chance.two_sided_geometric(np.full(counts.shape, epsilon), counts.shape)
        ledger.charge(leaves.scopes, epsilon, 2 * epsilon, "own counts", "two-sided geometric")
        return np.where(counts > 0, counts, 0 * noise)


class Refund(Plain):
    """Takes back the charge of its labels."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        said = super().say(growth, leaves, curator, chance, ledger, epsilon)
        ledger._charges.pop()
        return said


class AllTreesSeeAll(Plain):
    """Its trees read every record and are charged as if each had its own."""

    def deal(self, curator):
        pass


class OneScope(Plain):
    """Charges every leaf's label to the first leaf: parts pay as one, which is dear and right."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        counts = curator._class_counts(growth, leaves.nodes).astype(float)
        label = mechanisms.permute_and_flip(counts, epsilon, chance)
        ledger.charge(leaves.scopes[:1], epsilon, 2 * epsilon, "all labels", "permute-and-flip")
        return np.eye(curator.n_classes, dtype=np.int64)[label]


class OneScopeTooCheap(OneScope):
    """The same, for half the price."""

    def say(self, growth, leaves, curator, chance, ledger, epsilon):
        return super().say(growth, leaves, curator, chance, _HalfPrice(ledger), epsilon)


class _HalfPrice:
    def __init__(self, ledger):
        self._ledger = ledger

    def charge(self, scopes, add_remove, replace_one, *names):
        self._ledger.charge(scopes, add_remove / 2, replace_one / 2, *names)


class EqualSplit(NoisyCounts):
    """Trees with subsets of equal size, ``priced`` as such or not."""

    sharing = "equal-split"

    def deal(self, curator):
        curator.split_equally(self.n_estimators)


class UnpricedEqualSplit(EqualSplit):
    sharing = "assignment"


class FailsOnNothing(Plain):
    """Cannot cope with an empty table."""

    def deal(self, curator):
        super().deal(curator)
        if curator._records.n_records == 0:
            raise ZeroDivisionError("no records")


class OwnScopes(Plain):
    """Opens a scope for each class it has seen."""

    def deal(self, curator):
        super().deal(curator)
        curator._ledger.open("class", np.zeros(len(np.unique(curator._records.labels)), dtype=int))


class OwnBins(Plain):
    """Bins by the extremes of the data."""

    def __init__(self, schema=None, **parameters):
        super().__init__(schema=schema or Schema(numeric={"x": (0, 1)}, classes=[0, 1]), **parameters)

    def read(self, X, y):
        schema, encoded, labels = super().read(X, y)
        values = np.asarray(X)[:, 0].astype(float)
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        encoded.codes[0] = values > middle
        return schema, encoded, labels


class OwnClasses(Plain):
    """Learns the classes from the labels."""

    def read(self, X, y):
        described = self.schema.to_dict() | {"classes": [*sorted({0, *np.asarray(y).tolist()}), 9]}
        return clone(Plain()).set_params(schema=Schema.from_dict(described)).read(X, y)


class CheapNoise(Curator):
    """A door that forgets that a replaced record changes two counts."""

    def noisy(self, query, scopes, epsilon):
        rate = np.broadcast_to(np.asarray(epsilon, dtype=float), len(scopes))
        counts = mechanisms.two_sided_geometric(self._exact(query), rate[:, None], self._chance)
        self._ledger.charge(scopes, rate, rate, "count the classes of a leaf", "two-sided geometric")
        return counts


class WrongRange(Curator):
    """A door that believes every score to have half its range."""

    def _draw(self, behind, rate, mechanism, record=None):
        return super()._draw(behind, 2 * rate, mechanism, record)


class FreeCount(Curator):
    """A door with a method that answers for nothing."""

    def choose(self, candidates, scopes, epsilon, how):
        if not isinstance(candidates, LabelCandidates):
            return super().choose(candidates, scopes, epsilon, how)
        return self._class_counts(candidates.splits, candidates.nodes).argmax(axis=1)


class Chunks(Curator):
    """A door that deals records to trees by their place in the file."""

    def assign(self, n_trees):
        n = self._records.labels.size
        self._records.assignment = np.arange(n) * n_trees // max(n, 1)


class EqualChunks(Curator):
    """A door whose parts of equal size are slices of the file."""

    def split_equally(self, n_trees):
        n = self._records.labels.size
        self._records.assignment = np.arange(n) * n_trees // max(n, 1)


class Bootstrap(Curator):
    """A door whose trees read a resample: a record may count many times."""

    def assign(self, n_trees):
        drawn = self._chance.integers(max(self._records.labels.size, 1), self._records.labels.size)
        records = self._records
        records.codes, records.labels = records.codes[:, drawn].copy(), records.labels[drawn].copy()


def look(learner, *, runs=4, pairs=None, max_pairs=0, **options) -> GreyBoxAudit:
    return greybox(learner, pairs, runs=runs, max_pairs=max_pairs, random_state=0, **options)


#: Every ninth trap: with these the learners of BROKEN below were found, by the same findings, under each of nine seeds.
some_traps = partial(shared.some_traps, step=9)


# -- what is clean ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@relations
@pytest.mark.parametrize(
    "learner",
    [
        Plain(),
        Plain(criterion="gini", n_estimators=3),
        NoisyCounts(schema=MIXED, criterion="normalised-gini"),
        OwnDraw(),
        OwnNoise(),
        EqualSplit(n_estimators=1),
        Plain(epsilon=40.0, depth=2, split=0.25),
        Plain(epsilon=1e-6),
    ],
    ids=lambda learner: f"{type(learner).__name__}-{learner.epsilon}-{learner.criterion}",
)
def test_learners_that_keep_their_accounts_are_clean(relation, learner):
    learner.relation = relation
    audit = look(learner, pairs=some_traps(learner))
    assert audit.findings == []
    assert not audit.violated
    assert audit.paid == pytest.approx(learner.epsilon, rel=1e-12)
    assert audit.loss <= audit.measured * (1 + 1e-9) + 1e-9
    assert 0 < audit.measured <= audit.paid * (1 + 1e-9)
    assert audit.n_runs == 4 * audit.n_pairs
    assert "no finding" in str(audit)


EDPRF = [
    {},
    {"n_estimators": 2},
    *(
        {"leaf": "label"} | more
        for more in (
            {},
            {"stop": "never", "selection": "exponential"},
            {"criterion": "majority"},
            {"criterion": "normalised-gini", "stop": "never"},
            {"criterion": "gini-gain", "budget": "uniform"},
            {"criterion": "information-gain", "n_max": 8},
            {"budget": "harmonic", "n_estimators": 3},
            {"stop_margin": 0.0},
            {"budget": "aligned-uniform", "calibration": "sensitivity"},
            {"schema": MIXED, "n_bins": 3, "max_depth": 1},
        )
    ),
]
TREES = [{}, {"split": "multiway"}, {"schema": MIXED, "n_bins": 3, "split": "multiway", "max_depth": 2}]
VARIANTS = [(EDPRFClassifier, options) for options in EDPRF] + [(RandomTreesClassifier, options) for options in TREES]


@pytest.mark.slow
@relations
@pytest.mark.parametrize(("kind", "options"), VARIANTS, ids=str)
def test_every_proved_variant_of_the_library_is_clean(kind, options, relation):
    base = {"schema": TWO, "n_estimators": 1, "max_depth": 2, "stop_margin": 0.5, "relation": relation}
    if kind is RandomTreesClassifier:
        del base["stop_margin"]
    learner = kind(**base | options)
    audit = look(learner, pairs=some_traps(learner))
    assert audit.findings == [], str(audit.findings[0])
    assert 0 < audit.measured <= audit.paid * (1 + 1e-9)
    halved = options.get("calibration") == "sensitivity" and relation == ADD_REMOVE
    assert audit.paid == pytest.approx(0.5 if halved else 1, rel=1e-9)
    assert audit.unspent == pytest.approx(1 - audit.paid)


@pytest.mark.slow
@relations
def test_published_edprf_has_the_findings_of_its_theory(relation):
    """The purity stop leaks and steers; subsets of equal size cost more than the claim under add-remove."""
    pairs = traps([2, 2], 2, relation)[::2]
    published = {"schema": TWO, "max_depth": 1, "variant": "published", "relation": relation}
    audit = look(EDPRFClassifier(n_estimators=2, **published), pairs=pairs)
    assert audit.kinds == ["leak", "control-flow"] + ["paid"] * (relation == ADD_REMOVE)
    # the published exponents spend half of the claim under add-remove, all of it under replace-one
    assert audit.paid == pytest.approx(equal_split(0.5, 2) if relation == ADD_REMOVE else 1, rel=1e-9)
    assert [leak.where for leak in audit.leaks] == ["eDPRF algorithm 5, line 1"]
    one_tree = look(EDPRFClassifier(n_estimators=1, **published), pairs=pairs)
    assert one_tree.kinds == ["leak", "control-flow"]
    assert one_tree.paid == pytest.approx(0.5 if relation == ADD_REMOVE else 1, rel=1e-9)


@pytest.mark.slow
@relations
def test_published_random_trees_have_the_findings_of_their_theory(relation):
    """The height looks at the number of records: public under replace-one, a leak that steers under add-remove."""
    four = Schema(categorical={name: [0, 1] for name in "abcd"}, classes=[0, 1])
    audit = look(RandomTreesClassifier(schema=four, n_estimators=1, variant="published", relation=relation))
    assert audit.kinds == (["leak", "control-flow"] if relation == ADD_REMOVE else [])
    assert audit.paid == pytest.approx(1, rel=1e-9)
    sizes = {tuple(sorted(len(data) for data in found.pair[1:])) for found in audit.findings[1:]}
    assert sizes <= {(7, 8), (8, 9)}  # where log2 n - 1 passes 2


def test_equal_split_is_clean_where_it_is_priced():
    """Three steps at the price of a tree: the ledger knows, so the claim may hold."""
    each = 0.2
    learner = EqualSplit(epsilon=equal_split(each, 2), n_estimators=2)
    learner.split = learner.leaf = each / 2 / learner.epsilon
    audit = look(learner, runs=8, pairs=some_traps(learner))
    assert audit.findings == []
    assert audit.paid == pytest.approx(learner.epsilon, rel=1e-12)
    assert each < audit.measured <= 3 * each + 1e-9
    replaced = EqualSplit(n_estimators=2, relation="replace-one")
    replaced = look(replaced, pairs=some_traps(replaced))
    assert replaced.findings == []
    assert replaced.paid == pytest.approx(1, rel=1e-12)


# -- what is found ---------------------------------------------------------------------------------------------------

BROKEN = [
    (PurityStop(), ["leak", "control-flow"]),
    (SecretPurityStop(), ["uncharged", "control-flow"]),
    (LooksForNothing(), ["uncharged"]),
    (SizeRule(), ["leak", "control-flow"]),
    (DearWhenFull(), ["uncharged", "charge"]),
    (ExactArgmax(), ["paid"]),
    (ExactLeaves(), ["leak", "output"]),
    (UnpaidDraw(), ["uncharged", "loss"]),
    (FaintCharge(), ["sensitivity", "loss"]),
    (DoubledCounts(), ["sensitivity", "loss"]),
    (RateOfData(), ["loss"]),
    (SameNoiseTwice(), ["noise"]),
    (BentNoise(), ["noise"]),
    (Refund(), ["ledger"]),
    (AllTreesSeeAll(n_estimators=2), ["composition"]),
    (OneScopeTooCheap(), ["loss"]),
    (UnpricedEqualSplit(n_estimators=2), ["moved", "sensitivity", "loss", "composition"]),
    (FailsOnNothing(), ["uncharged", "control-flow"]),
    (OwnScopes(), ["uncharged", "control-flow"]),
    (OwnBins(), ["encoding"]),
    (OwnClasses(), ["encoding"]),
    (Plain(split=0.7), ["paid"]),
    (NamesTheData(), ["charge"]),
    (NamesTheDataAsMechanism(), ["charge"]),
    (NamesALeak(), ["leak", "charge"]),
    (KeepsOnItself(), ["output"]),
    (KeepsOnItsModel(), ["output"]),
    (KeepsInItsSchema(schema=copy.deepcopy(TWO)), ["output"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "kinds"), BROKEN, ids=lambda value: type(value).__name__)
def test_a_broken_learner_is_found_out(learner, kinds):
    audit = look(learner, pairs=None if type(learner) in (SizeRule, OwnBins, OwnClasses) else some_traps(learner))
    assert audit.kinds == kinds, [str(found) for found in audit.findings]
    assert audit.violated
    assert f"VIOLATED ({', '.join(kinds)})" in str(audit)
    for found in audit.findings:
        assert found.kind in KINDS
        assert found.count >= 1
        if found.kind not in ("leak", "uncharged", "paid", "encoding"):
            assert are_neighbours(found.pair.one, found.pair.other, learner.relation)
        if found.measured is not None:
            assert found.measured > found.allowed


DOORS = [
    (CheapNoise, NoisyCounts(relation="replace-one"), ["sensitivity", "loss", "paid"]),
    (WrongRange, Plain(), ["sensitivity", "loss"]),
    (FreeCount, Plain(), ["uncharged", "output"]),
    (Chunks, Plain(n_estimators=3), ["moved", "sensitivity", "loss", "composition"]),
    (Bootstrap, Plain(relation="replace-one"), ["sensitivity", "loss", "composition"]),
    (Bootstrap, Plain(), ["control-flow"]),
    (EqualChunks, EqualSplit(n_estimators=3), ["moved", "sensitivity", "loss", "paid"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("door", "learner", "kinds"), DOORS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_broken_door_is_found_out(door, learner, kinds):
    pairs = traps([2, 2], 2, learner.relation)[1::2]
    audit = look(learner, door=door, pairs=pairs)
    assert audit.kinds == kinds, [str(found) for found in audit.findings]
    assert look(learner, pairs=pairs[::3]).kinds == ["paid"] * isinstance(learner, EqualSplit)  # the library's own door
    assert len(audit.findings) <= 2 * len(kinds)  # the same thing is not said twice


def test_the_door_for_noise_is_right_under_the_relation_it_was_made_for():
    assert look(NoisyCounts(), door=CheapNoise, pairs=some_traps(NoisyCounts())).findings == []


def test_numbers_are_the_worst_ones_seen():
    """Each of these losses is known, say that of a leaf at rate 1 charged as 1/2."""
    by_kind = {found.kind: found for found in look(FaintCharge(), pairs=some_traps(FaintCharge())).findings}
    assert by_kind["loss"].measured == pytest.approx(1, rel=1e-12)
    assert by_kind["loss"].allowed == pytest.approx(0.5, rel=1e-12)
    assert by_kind["sensitivity"].measured == 1
    assert by_kind["sensitivity"].allowed == 0.5  # the change that half of the rate would have been right for
    doubled = {found.kind: found for found in look(DoubledCounts(), pairs=some_traps(DoubledCounts())).findings}
    assert (doubled["sensitivity"].measured, doubled["sensitivity"].allowed) == (2, 1)
    (all_see,) = look(AllTreesSeeAll(n_estimators=2, depth=0), pairs=(EMPTY_AND_ONE, TWO_LABELS)).findings
    assert all_see.measured == pytest.approx(1, rel=1e-12)  # two labels at 1/2 each
    assert all_see.allowed == pytest.approx(0.5, rel=1e-12)
    (paid,) = look(Plain(split=0.7), pairs=(EMPTY_AND_ONE,)).findings
    assert (paid.measured, paid.allowed, paid.count) == (pytest.approx(1.2), 1.0, 4)
    (rate,) = (found for found in look(RateOfData(), pairs=(EMPTY_AND_ONE,)).findings if found.kind == "loss")
    assert rate.measured == math.inf


def test_one_run_measures_both_directions():
    """From the empty table to one record a label loses its rate, and back less; it is the same whichever ran first."""
    for pair in (EMPTY_AND_ONE, EMPTY_AND_ONE[::-1]):
        audit = look(Plain(depth=0, leaf=0.8), runs=1, pairs=(pair,))
        assert audit.measured == pytest.approx(0.8, rel=1e-12)


def test_the_dearer_of_both_runs_counts():
    """One record makes this learner spend its whole claim, none three quarters of it."""
    for pair in (EMPTY_AND_ONE, EMPTY_AND_ONE[::-1]):
        assert look(DearWhenFull(), runs=1, pairs=(pair,)).paid == pytest.approx(1, rel=1e-12)


def test_a_learner_may_pay_for_what_its_door_gives_away():
    class OpenDoor(Curator):
        def counts(self, splits, nodes):
            return self._class_counts(splits, nodes)

    class Pays(OwnNoise):
        def say(self, growth, leaves, curator, chance, ledger, epsilon):
            counts, rate = curator.counts(growth, leaves.nodes), epsilon / self.steps
            ledger.charge(leaves.scopes, rate, 2 * rate, "own counts", "two-sided geometric")
            return mechanisms.two_sided_geometric(counts, rate, chance)

    assert look(Pays(), door=OpenDoor, pairs=some_traps(Pays())).findings == []


#: What a curator must not say, and how it would say it.
SLIPS = {
    "held-out records": lambda records: records.held_out[1].sum(),
    "a pool of records": lambda records: records.pool()[1].sum(),
    "weights that add up to one": lambda records: records.shares().max(initial=0.0),
    "the number of records": lambda records: records.n_records,
    "the records' keys": lambda records: 0 if records.ids is None else records.ids.sum(),
    "whose records they are": lambda records: 0 if records.assignment is None else records.assignment.sum(),
    "what was counted before": lambda records: records.known._own.sum(),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_door_that_lets_out_any_record_unpaid_is_found(slip):
    """Whatever it keeps of them: one attribute is watched."""

    class Loose(Curator):
        def tell(self):
            return SLIPS[slip](self._records)

    class Asks(Plain):
        def say(self, growth, leaves, curator, chance, ledger, epsilon):
            curator.tell()
            return super().say(growth, leaves, curator, chance, ledger, epsilon)

    audit = look(Asks(), runs=2, door=Loose, pairs=some_traps(Asks()))
    assert ("uncharged", "tell") in {(found.kind, found.where) for found in audit.findings}
    assert look(Plain(), runs=2, door=Loose, pairs=some_traps(Plain())).findings == []


def test_the_number_of_records_is_public_under_replace_one_alone():
    class QuietSize(Curator):
        def size(self, leak):
            return self._records.n_records

    nine = ((0, 0, 0),) * 9
    assert look(SizeRule(), door=QuietSize, pairs=((nine, (*nine, (0, 0, 0))),)).kinds == ["uncharged", "control-flow"]
    learner = SizeRule(relation="replace-one")
    for door in (QuietSize, Curator):
        assert look(learner, door=door, pairs=some_traps(learner)).findings == []


def test_a_question_that_is_put_otherwise_is_found():
    """The same nodes, the same answer, but a head start that looks at the records."""

    class Nudges(Plain):
        def choose(self, growth, frontier, curator, chance, ledger, epsilon, level):
            curator.choose(
                FeatureCandidates(growth, frontier.nodes, frontier.unused),
                frontier.scopes,
                epsilon / 2,
                Selection(scores.gini, mechanism="exponential", stop_margin=1.0 + curator._records.n_records),
            )
            return super().choose(growth, frontier, curator, chance, ledger, epsilon / 2, level)

    found = [found for found in look(Nudges(), pairs=(EMPTY_AND_ONE,)).findings if found.kind == "control-flow"]
    assert [(f.where, f.text) for f in found] == [("choose a feature", "is asked with another stop_margin")]


def test_a_record_that_moves_has_no_price_under_replace_one():
    class ByRank(Curator):
        def split_equally(self, n_trees):
            n, order = self._records.labels.size, np.argsort(self._records.labels, kind="stable")
            self._records.assignment = np.empty(n, dtype=np.int32)
            self._records.assignment[order] = np.arange(n) % n_trees

    pair = ((0, 0, 1), (0, 0, 0)), ((0, 1, 0), (0, 0, 0))  # the second record is in the first part, then in the second
    audit = look(EqualSplit(n_estimators=2, relation="replace-one"), door=ByRank, pairs=(pair,))
    assert audit.kinds[0] == "moved"
    assert (audit.findings[0].measured, audit.findings[0].allowed) == (1, 0)


def test_a_record_may_find_its_tree_by_its_own_values():
    """Parts by value, priced as such: the record that replaces another may go elsewhere, and no other does."""

    class ByValue(Curator):
        def assign(self, n_trees):
            self._records.assignment = self._records.codes[0].astype(np.int32) % n_trees

    for relation in RELATIONS:
        learner = NoisyCounts(n_estimators=2, relation=relation)
        learner.sharing = "partition"
        assert look(learner, door=ByValue, pairs=some_traps(learner)).findings == []


def test_the_worst_pair_is_kept_whenever_it_came():
    class Squares(OwnNoise):
        def counted(self, counts):
            return counts**2

    one, two, three = (((0, 0, 0),) * size for size in (1, 2, 3))
    for pairs in (((one, two), (two, three)), ((two, three), (one, two))):
        by_kind = {found.kind: found for found in look(Squares(), pairs=pairs).findings}
        assert (by_kind["sensitivity"].measured, by_kind["sensitivity"].allowed) == (5, 1)  # from 4 to 9
        assert len(by_kind["sensitivity"].pair.other) == 3
        assert by_kind["loss"].measured == pytest.approx(2.5, rel=1e-12)


def test_a_slip_on_an_answer_that_never_comes_is_found():
    """The label that starts it has probability exp(-400); runs that follow the law alone would not meet it."""

    class RareSlip(Plain):
        def say(self, growth, leaves, curator, chance, ledger, epsilon):
            said = super().say(growth, leaves, curator, chance, ledger, epsilon)
            if said[0, 1]:
                curator._records.labels.sum()
            return said

    data = ((0, 0, 0),) * 20
    learner, pair = RareSlip(epsilon=20.0, depth=0, leaf=1.0), (data, (*data, (0, 0, 0)))
    assert look(learner, runs=2, pairs=(pair,)).findings == []
    assert look(learner, runs=20, pairs=(pair,)).kinds == ["uncharged"]


def test_a_refund_counts_for_nothing():
    audit = look(Refund(), pairs=(EMPTY_AND_ONE,))
    assert audit.paid == pytest.approx(1, rel=1e-12)  # split and label, though the ledger shows the split alone


def test_far_candidates_do_not_underflow():
    """At this rate the worse label has probability exp(-2000), and its loss is still the charge."""
    data = ((0, 0, 0),) * 3
    audit = look(Plain(epsilon=1000.0, depth=0, leaf=1.0), pairs=((data, (*data, (0, 0, 0))),))
    assert audit.findings == []
    assert audit.measured == pytest.approx(1000, rel=1e-9)
    expo = EDPRFClassifier(
        leaf="label",
        schema=TWO,
        epsilon=1000.0,
        n_estimators=1,
        max_depth=1,
        selection="exponential",
        stop="never",
        budget="uniform",
    )
    audit = look(expo, pairs=((data, (*data, (0, 0, 0))),))
    assert audit.findings == []
    assert audit.measured == pytest.approx(500, rel=1e-9)


# -- frozen replay is a proof ----------------------------------------------------------------------------------------


def every_pair(schema, n_max, relation):
    return list(neighbours(list(datasets(schema.cardinalities(2), schema.n_classes, n_max)), relation))


@pytest.mark.slow
@pytest.mark.claim(
    "thm-frozen-replay",
    verdict="proved",
    evidence="exhaustive",
    constant="largest log ratio over all transcripts = exact loss, where the release tells the transcript",
)
@relations
@pytest.mark.parametrize(
    "learner",
    [
        EDPRFClassifier(schema=ONE, leaf="label", n_estimators=1, max_depth=1, stop_margin=0.5),
        EDPRFClassifier(
            schema=ONE, leaf="label", n_estimators=1, max_depth=1, stop_margin=0.5, selection="exponential"
        ),
        Plain(schema=ONE, split=0.25, leaf=0.75, criterion="gini"),
        Plain(schema=ONE, depth=0, leaf=1.3),
    ],
    ids=["eDPRF", "exponential", "plain", "too dear"],
)
def test_all_frozen_replays_together_are_the_exact_loss(learner, relation):
    """Sharp: neither more nor less than the loss that comparing whole laws finds; and it bounds it in parts."""
    learner.relation = relation
    pairs = oracle.up_to_renaming(every_pair(ONE, 2, relation), oracle.renamings(1))
    audit = greybox(learner, pairs, runs="all")
    exact = exact_audit(learner, n_max=2)  # over all pairs: the losses would differ if renaming changed any
    assert audit.complete
    assert audit.n_pairs == len(pairs) < exact.n_pairs / 3
    assert audit.loss == pytest.approx(exact.epsilon, rel=1e-9)
    assert audit.loss <= audit.measured * (1 + 1e-9) <= audit.paid * (1 + 2e-9)
    assert audit.violated == exact.violated == (learner.epsilon * 1.3 == audit.paid)


@pytest.mark.slow
def test_with_coins_the_replays_bound_the_exact_loss():
    """Two trees: a transcript tells more than the release, the coins too."""
    learner = Plain(schema=ONE, depth=0, leaf=1.0, n_estimators=2)
    pairs = oracle.up_to_renaming(every_pair(ONE, 2, ADD_REMOVE), oracle.renamings(1))
    audit = greybox(learner, pairs, runs="all")
    assert audit.findings == []
    assert exact_audit(learner, n_max=2).epsilon <= audit.loss * (1 + 1e-12)
    assert audit.loss == pytest.approx(1, rel=1e-9)


def twice_spent(**options) -> Plain:
    """Two levels share a quarter of the budget, but each spends all of it; the labels have three quarters."""
    return Plain(depth=2, split=0.25, leaf=0.75, criterion="majority", **options)


def sharp_majority(splits, leaf) -> float:
    """The loss of a tree of majority splits and two-class labels, all by permute-and-flip (add-remove)."""
    return max(sum(splits) + math.log(2 - math.exp(-leaf)), sum(splits[:-1]) + leaf)


@pytest.mark.slow
@pytest.mark.claim(
    "cex-budget-twice",
    verdict="proved",
    evidence="exhaustive",
    constant="exact loss $1$ = claim; charged $5/4$ ($1/4 + 1/4 + 3/4$)",
)
def test_a_budget_spent_twice_is_seen_by_no_sample_and_by_the_grey_box():
    learner = twice_spent(schema=THREE)
    for n_max in (3, 4, 5):
        exact = path_audit(learner, n_max=n_max)
        assert exact.epsilon <= 1 + 1e-9
        assert not exact.violated  # nothing that looks at outputs can refute the claim
    assert exact.epsilon == pytest.approx(1, rel=1e-12)
    audit = look(learner, pairs=some_traps(learner))
    assert audit.kinds == ["paid"]
    assert audit.paid == pytest.approx(1.25, rel=1e-12)
    assert audit.unspent == pytest.approx(-0.25, rel=1e-12)
    assert audit.loss <= 1 + 1e-9  # nor does any run of its own
    # as it was meant, each level spends its eighth
    meant = Plain(schema=THREE, depth=2, split=0.125, leaf=0.75)
    assert look(meant, pairs=some_traps(meant)).findings == []


@pytest.mark.claim("cex-budget-twice")
@pytest.mark.parametrize(("split", "leaf"), [(0.125, 0.75), (0.25, 0.75), (0.25, 0.5), (0.5, 0.5), (0.3, 0.7)])
def test_the_loss_of_majority_trees_is_sharp(split, leaf):
    exact = path_audit(Plain(schema=THREE, depth=2, split=split, leaf=leaf), n_max=5)
    assert exact.epsilon == pytest.approx(sharp_majority([split] * 2, leaf), rel=1e-9)


# -- what is asked and what comes back -------------------------------------------------------------------------------


def test_the_result_is_json_ready_and_says_what_was_done():
    audit = look(RateOfData(), pairs=[("my pair", *EMPTY_AND_ONE)])
    said = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert said["violated"]
    assert said["claim"] == 1
    assert said["n_pairs"] == 1
    assert {found["kind"] for found in said["findings"]} == {"loss"}
    (found,) = said["findings"]
    assert found["measured"] == "inf"
    assert found["pair"] == {"name": "my pair", "one": [], "other": [[0, 0, 0]]}
    assert "my pair" in str(audit.findings[0])
    assert "inf" in str(audit.findings[0])
    assert len(str(audit).splitlines()) == 1
    assert [str(leak) for leak in look(PurityStop(), pairs=[EMPTY_AND_ONE]).leaks] == ["purity (line 1)"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_outcome():
    learner = Plain(schema=ONE, n_estimators=2, criterion="gini")
    one, same, other = (greybox(learner, runs=1, max_pairs=70, random_state=seed).to_dict() for seed in (1, 1, 2))
    assert one == same
    assert one != other
    generator = np.random.default_rng(1)
    assert greybox(learner, runs=1, max_pairs=70, random_state=generator).to_dict() == one


@pytest.mark.slow
def test_pairs_are_made_when_none_are_given():
    few, more = (greybox(Plain(), runs=1, max_pairs=size, random_state=0).n_pairs for size in (0, 120))
    assert few >= len(traps([2, 2], 2, ADD_REMOVE))
    assert few + 40 < more <= 120
    every = greybox(Plain(schema=ONE), n_max=3, runs=1, max_pairs=200)
    found = {frozenset(pair) for pair in every_pair(ONE, 3, ADD_REMOVE)}
    assert every.n_pairs >= len(found)
    capped = greybox(EDPRFClassifier(schema=ONE, criterion="information-gain", n_max=3, max_depth=1), runs=1)
    assert capped.findings == []  # no pair is larger than the public cap


def test_tables_are_encoded_as_fit_would():
    X = pd.DataFrame({"x": [0.1, 5.0, np.nan], "a": ["u", "never declared", None], "b": [0, 1, 2]})
    y = np.array(["n", "y", "z"])
    learner = EDPRFClassifier(schema=MIXED, leaf="label", n_estimators=1, max_depth=1, n_bins=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutOfSchemaWarning)
        audit = greybox(learner, [("a table", (X.iloc[:2], y[:2]), (X, y))], runs=2)
    assert audit.findings == []
    assert audit.n_pairs == 1
    arrays = [("arrays", (X.to_numpy()[:2], y[:2]), (X.to_numpy(), y))]
    assert greybox(learner, arrays, runs=2).n_pairs == 1


def test_rows_are_compared_as_plain_values():
    frame = pd.DataFrame({"x": np.array([1, 2], dtype=np.float32), "a": ["u", None]})
    assert rows_of(frame, [0, 1]) == [(1.0, "u", 0), (2.0, None, 1)]
    assert rows_of(np.array([[1, np.nan]]), [0]) == [(1, None, 0)]


# -- what is refused -------------------------------------------------------------------------------------------------


def refused(learner, match, *, pairs=(EMPTY_AND_ONE,), error=ValueError, **options):
    with pytest.raises(error, match=match):
        greybox(learner, pairs, **options)


def test_what_cannot_be_audited_is_refused():
    refused(EDPRFClassifier(schema=TWO, epsilon="non-private"), "promises nothing")
    refused(object(), "runs an estimator of this library, not a object", error=TypeError)
    refused(EDPRFClassifier(), "needs schema=")
    refused(EDPRFClassifier(schema=TWO, criterion="luck"), "criterion must be one of")
    refused(Plain(relation="bounded"), "relation must be one of")
    refused(EDPRFClassifier(schema=TWO, leaf="counts"), "geometric", error=NotEnumerableError, runs="all")


def test_too_many_transcripts_are_refused(monkeypatch):
    monkeypatch.setattr(sys.modules["dpforest.audit.grey.greybox"], "_TRANSCRIPTS", 30)
    assert greybox(Plain(), [EMPTY_AND_ONE], runs="all").complete  # 2 features, 2 leaves of 2 labels: 8; below, 32
    refused(Plain(depth=2), "a data set of 0 records has more than 30 transcripts", runs="all")


@pytest.mark.parametrize("name", ["runs", "n_max"])
@pytest.mark.parametrize("size", [0, -1, 1.5, True, None])
def test_sizes_must_be_whole_numbers(name, size):
    refused(Plain(), f"{name} must be a whole number", **{name: size})


def test_runs_are_a_number_or_all():
    refused(Plain(), "runs must be a whole number", runs="some")
    refused(Plain(), "max_pairs must be a whole number", max_pairs=-1)


@pytest.mark.parametrize(
    ("pair", "match"),
    [
        ((((0, 0, 0),), ((0, 0, 0),)), "no pair of neighbours under add-remove"),
        (((), ((0, 0, 0), (0, 0, 1))), "no pair of neighbours"),
        ((((0, 0, 0),), ((0, 0, 1),)), "which one of them lacks"),
        (((), ((0, 0, 2),)), r"a record is a tuple of 2 codes and a class or target, each below \[2, 2, 2\]"),
        (((), ((0, 0),)), "holds .0, 0."),
        (((), ((0, 0, 0.5),)), "holds .0, 0, 0.5."),
        (((), ("abc",)), "holds 'abc'"),
        (((), (5,)), "holds 5"),
        (((), 7), "a tuple of records or a table"),
        ((1, 2, 3), "must be .one, other. or .name, one, other."),
        (5, "pair 0 must be"),
    ],
)
def test_what_is_no_pair_is_refused(pair, match):
    refused(Plain(), match, pairs=[pair])


def test_two_replaced_records_are_no_neighbours():
    pair = ((0, 0, 0), (0, 0, 0)), ((0, 0, 1), (0, 0, 1))
    refused(Plain(relation="replace-one"), "no pair of neighbours under replace-one.* replaced", pairs=[pair])


def test_tables_that_are_no_neighbours_are_refused():
    X, y = np.zeros((3, 2), dtype=int), np.array([0, 1, 1])
    refused(Plain(), "no pair of neighbours", pairs=[((X[:1], y[:1]), (X, y))])
    refused(Plain(), "sample", pairs=[((X[:0], y[:0]), (X[:1], y[:1]))])  # fit refuses an empty table


def test_a_learner_that_keeps_its_door_shut_is_refused():
    class OwnDoor(Plain):
        def replay(self, codes, labels, schema, epsilon, chance, door=None):
            return super().replay(codes, labels, schema, epsilon, chance, Curator)

    refused(OwnDoor(), "never opened the door")


def test_two_ledgers_are_refused():
    class TwoLedgers(Plain):
        def _learn(self, run):
            type(run.curator)(
                run.curator._records.codes,
                run.curator._records.labels,
                2,
                run.curator.cardinalities,
                chance=run.chance,
                ledger=Ledger(self.relation),
            )

    refused(TwoLedgers(), "two ledgers")


def test_a_learner_that_fails_everywhere_fails_aloud():
    class Fails(Plain):
        def deal(self, curator):
            raise ZeroDivisionError("always")

    refused(Fails(), "always", error=ZeroDivisionError)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", [FailsOnClassOne, LeavesOnClassOne])
def test_a_learner_that_fails_on_some_data_sets_is_a_finding(kind, relation):
    """Also where both neighbours of a pair make it fail: on a way from these to others, two neighbours differ in it."""
    fails = ((0, 0, 1), (0, 1, 1)), ((0, 0, 1), (0, 1, 1), (0, 0, 0))
    works = ((0, 0, 0),), ((0, 0, 0), (0, 1, 0))
    if relation == REPLACE_ONE:
        fails, works = (fails[0], ((0, 0, 1), (0, 0, 0))), (works[0], ((0, 1, 0),))
    audit = look(kind(relation=relation), pairs=[("they fail", *fails), ("they work", *works)])
    (found,) = [found for found in audit.findings if found.kind == "control-flow"]
    assert (found.text, found.pair.name) == ("fails on some data sets and not on others", "they fail")
    error = RuntimeError if kind is LeavesOnClassOne else ArithmeticError
    refused(kind(relation=relation), "a label is 1|left the program", error=error, pairs=[("they fail", *fails)])


# -- the parts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ("", "a", [-1]),
        ("ab", "a", [0]),
        ("ab", "ba", [1, 0]),
        ("aab", "abca", [0, 2, -1, 1]),
        ("abc", "adc", [0, 1, 2]),  # d takes the place of b
        ("abc", "cda", [2, 1, 0]),
        ("aa", "ab", [0, 1]),
        ("", "", []),
    ],
)
def test_records_are_matched_by_value_and_order(one, other, match):
    assert match_records(one, other) == match


@relations
def test_shared_records_keep_their_coins(relation):
    """By value, wherever they stand: the assignments of both runs agree on all of them."""
    rng = np.random.default_rng(0)
    for pair in traps([2, 2], 2, relation):
        for one, other in (pair[1:], pair[:0:-1]):
            frozen = Watch(Seeded(rng))
            first = door_of(one, frozen, relation)
            first.assign(5)
            match = match_records(one, other)
            second = door_of(other, Watch(Seeded(rng), frozen, match), relation)
            second.assign(5)
            for here, there in enumerate(match):
                if there >= 0:
                    assert vars(second)["_records"].assignment[here] == vars(first)["_records"].assignment[there]
            assert set(vars(second)["_records"].assignment.tolist()) <= set(range(5))


@relations
def test_equal_split_moves_one_record_at_most(relation):
    rng = np.random.default_rng(0)
    moves = []
    for pair in traps([2, 2], 2, relation) * 3:
        for one, other in (pair[1:], pair[:0:-1]):
            frozen = Watch(Seeded(rng))
            first = door_of(one, frozen, relation)
            first.split_equally(3)
            match = match_records(one, other)
            second = door_of(other, Watch(Seeded(rng), frozen, match), relation)
            second.split_equally(3)
            sizes = np.bincount(vars(second)["_records"].assignment, minlength=3)
            assert sizes.max() - sizes.min() <= 1
            moves.append(
                sum(
                    vars(second)["_records"].assignment[h] != vars(first)["_records"].assignment[t]
                    for h, t in enumerate(match)
                    if t >= 0
                )
            )
    assert set(moves) == ({0, 1} if relation == ADD_REMOVE else {0})


def test_the_coupled_split_is_a_uniform_one():
    """Removing a record from a random order, and adding one to it, leave it random: all orders come equally often."""
    one, other = ((0, 0, 0), (0, 1, 0), (1, 0, 0)), ((0, 1, 0), (0, 0, 0), (1, 0, 0), (1, 1, 1))
    for start, end in ((one, other), (other, one)):
        rng, seen = np.random.default_rng(0), {}
        match = match_records(start, end)
        for _ in range(2400):
            frozen = Watch(Seeded(rng))
            door_of(start, frozen, ADD_REMOVE).split_equally(2)
            again = Watch(Seeded(rng), frozen, match)
            door_of(end, again, ADD_REMOVE).split_equally(2)
            order = tuple(again.steps[0].coins[0][2].tolist())
            seen[order] = seen.get(order, 0) + 1
        orders = math.factorial(len(end))
        assert len(seen) == orders
        expected = 2400 / orders
        chi_square = sum((count - expected) ** 2 / expected for count in seen.values())
        assert chi_square < orders - 1 + 6 * math.sqrt(2 * orders)  # for this seed; a broken coupling exceeds 2400


WATCHED = watching(Curator)


def door_of(records, watch, relation):
    table = np.array(records, dtype=np.uint8).reshape(-1, 3)
    return WATCHED(
        table[:, :-1].T.copy(), table[:, -1].copy(), 2, np.array([2, 2]), chance=watch, ledger=Ledger(relation)
    )


def test_a_watched_run_is_the_same_run():
    """The auditor changes nothing: same seed, same forest and same ledger as without it."""
    for learner in (Plain(n_estimators=3), NoisyCounts(n_estimators=2), RandomTreesClassifier(schema=TWO, max_depth=2)):
        rng = np.random.default_rng(3)
        codes, labels = rng.integers(2, size=(2, 40)).astype(np.uint8), rng.integers(2, size=40).astype(np.uint8)
        plain, ledger = learner.replay(codes, labels, TWO, 1.0, Seeded(5))
        watch = Watch(Seeded(5))
        seen, watched = learner.replay(codes, labels, TWO, 1.0, watch, door=watching(Curator))
        assert seen.to_dict() == plain.to_dict()
        assert str(watched) == str(ledger) == str(watch.finish())
        replay = Watch(Seeded(99), watch, range(40))
        again, _ = learner.replay(codes, labels, TWO, 1.0, replay, door=watching(Curator))
        assert again.to_dict() == plain.to_dict()
        replay.finish()


def test_strays_come_from_the_law_where_there_are_many():
    law = mechanisms.exponential_law
    scores = np.tile([math.log(999), 0.0], (1000, 1))  # the second has probability 1/1000
    drawn = Roaming(0).select("exponential", law, scores, np.ones(1000))
    assert 0 < (drawn == 1).sum() < 30
    few = Roaming(0).select("exponential", law, scores[:8], np.ones(8))
    assert few.sum() > 0
    wide = Roaming(0).two_sided_geometric(np.array([1.0]), (2000,))
    assert np.abs(wide).mean() > 3  # 4 where the law's own mean is 0.85
    certain = Roaming(0).select("exponential", law, np.tile([-math.inf, 0.0], (8, 1)), np.ones(8))
    assert certain.tolist() == [1] * 8  # what is impossible stays so


def noise(value=None):
    watch = Watch(Seeded(0))
    watch.ledger = Ledger()
    drawn = watch.two_sided_geometric(np.array([[1.0, 2.0]]), (1, 2))
    return drawn if value is None else value(drawn)


def test_noise_may_be_added_to_counts_from_either_side():
    counts = np.array([[3, 4]])
    expected = noise(lambda drawn: counts + drawn)
    for way in (lambda drawn: drawn + counts, lambda drawn: np.add(counts, drawn), lambda drawn: np.add(drawn, counts)):
        assert noise(way).tolist() == expected.tolist()
    total = counts.copy()
    total += noise()
    assert total.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "use",
    [
        lambda drawn: drawn[0],
        lambda drawn: np.asarray(drawn),
        lambda drawn: 2 * drawn,
        lambda drawn: drawn.sum(),
        lambda drawn: -drawn,
        lambda drawn: np.array([[1, 1]]) - drawn,
        lambda drawn: np.multiply(2, drawn),
        list,
        len,
        lambda drawn: np.add(np.array([[1, 1]]), drawn, where=np.array([[True, False]])),
        lambda drawn: (drawn + 1, drawn + 2),
    ],
)
def test_noise_that_is_used_otherwise_is_found(use):
    with pytest.raises(PlaybackStopped) as caught:
        noise(use)
    assert caught.value.kind == "noise"


def test_noise_that_is_not_used_loses_nothing():
    class Wasteful(Plain):
        def say(self, growth, leaves, curator, chance, ledger, epsilon):
            chance.two_sided_geometric(np.array([1.0]), (1,))
            return super().say(growth, leaves, curator, chance, ledger, epsilon)

    assert look(Wasteful(), pairs=some_traps(Wasteful())).findings == []


def test_a_score_that_is_made_anew_is_the_same_question():
    class Fresh(Plain):
        def choose(self, growth, frontier, curator, chance, ledger, epsilon, level):
            score = dataclasses.replace(scores.gini, function=lambda counts: scores.gini.function(counts))
            return curator.choose(
                FeatureCandidates(growth, frontier.nodes, frontier.unused),
                frontier.scopes,
                epsilon,
                Selection(score, mechanism="exponential"),
            )

    assert look(Fresh(), pairs=some_traps(Fresh())).findings == []


def test_a_door_may_draw_other_coins_beside_those_of_the_records():
    class Salted(Curator):
        def assign(self, n_trees):
            salt = self._chance.integers(1000, 3)
            super().assign(n_trees)
            self._records.assignment = (self._records.assignment + salt[0]) % n_trees

    learner = Plain(n_estimators=2)
    assert look(learner, door=Salted, pairs=some_traps(learner)).findings == []


def test_a_last_question_that_only_one_data_set_meets_is_found_from_either_side():
    class LastWord(Plain):
        def say(self, growth, leaves, curator, chance, ledger, epsilon):
            said = super().say(growth, leaves, curator, chance, ledger, epsilon)
            if curator._records.n_records:
                curator.peek(ClassCounts(growth, leaves.nodes), ("w", "at the end"))
            return said

    for pair in (EMPTY_AND_ONE, EMPTY_AND_ONE[::-1]):
        (found,) = (f for f in look(LastWord(), runs=1, pairs=(pair,)).findings if f.kind == "control-flow")
        assert found.text == "is asked on one data set and not on the other"


def test_other_questions_are_told_apart():
    """Each way in which a second run may leave the first is named."""

    class Strays(Plain):
        how = ""

        def deal(self, curator):
            super().deal(curator)
            if curator._records.n_records:
                self.stray(curator)

        def stray(self, curator):
            chance = curator._chance
            growth = Growth(1, 2, 2, Ledger(), "sequential")
            {
                "coin": lambda: chance.integers(2, 1),
                "subset": lambda: chance.subsets(3, 2, 1),
                "question": lambda: curator.peek(ClassCounts(growth, growth.frontier.nodes), ("w", "here")),
                "draw": lambda: mechanisms.permute_and_flip(np.zeros((1, 2)), 1.0, chance),
            }[self.how]()

    for how, text in (
        ("coin", "draws integers(2, 1) on one data set and not on the other"),
        ("subset", "draws subsets(3, 2, 1) on one data set and not on the other"),
        ("question", "is asked where on the other data set it is choose a feature"),
        ("draw", "draws by permute-and-flip on one data set and not on the other"),
    ):
        learner = Strays()
        learner.how = how
        audit = look(learner, runs=2, pairs=(EMPTY_AND_ONE,))
        texts = [found.text for found in audit.findings if found.kind == "control-flow"]
        assert len(texts) == 2, texts  # there and back
        assert text in " ".join(texts) or how == "draw"
    assert LEARNER in {found.where for found in audit.findings}
