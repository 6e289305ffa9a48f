"""The flaws of private tree learners as learners on the library's own curator, and sound ones."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial

import numpy as np

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema, mechanisms, scores
from dpforest.arithmetic.fixed import STEPS, below_best, fixed
from dpforest.audit.exact.enumeration import law_of
from dpforest.curator import Selection
from dpforest.curator.queries import Histograms
from dpforest.curator.selections import FeatureCandidates, LabelCandidates
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.growth import MAX_NODES, Growth
from dpforest.models.forest import Forest
from zoo.animal import ADD_REMOVE, EXACT, GREY_BOX, REPLACE_ONE, Animal, geometric

__all__ = ["Sapling", "drawn", "learners", "portrait"]

#: The universes: one or two binary features, two classes.
ONE, TWO = (Schema(categorical={name: [0, 1] for name in names}, classes=[0, 1]) for names in ("a", "ab"))


#: The number of votes, with half of its range declared.
HALVED = replace(scores.majority, _exact_range=lambda n: (0.5, 1.0))
#: The number of votes, with the range that it has under add-remove declared for replace-one too.
ONE_SIDED = replace(scores.majority, _exact_range=lambda n: (1.0, 1.0))


def drawn(curator, scopes, counts, rate, score, mechanism):
    """Labels by the counts of their classes, at a rate that the caller names; charged by what the score declares."""
    behind = below_best(fixed(counts), np.ones(counts.shape, dtype=bool))
    choice = curator._draw(behind, rate, mechanism)
    curator._charge(scopes, rate, score, math.inf, "choose the label of a leaf", mechanism)
    return choice


class Sapling(PrivateForestClassifier):
    """A small sound forest with a method for each decision, so that a broken learner spoils one of them.

    Each tree sees its own records, by a coin per record.  Each level of a tree, the leaves included, gets an equal
    share of epsilon; a node splits on a feature that permute-and-flip draws, and a leaf says a label drawn so.
    """

    variant, n_bins, n_jobs, source = "proved", 2, None, "seeded"
    sharing = "assignment"

    def __init__(
        self,
        *,
        epsilon=1.0,
        schema=TWO,
        relation=ADD_REMOVE,
        n_estimators=1,
        max_depth=1,
        max_nodes=MAX_NODES,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.schema = schema
        self.relation = relation
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_nodes = max_nodes
        self.random_state = random_state

    def _learn(self, run):
        shape = run.schema.n_features, run.schema.n_classes
        growth = Growth(self.n_estimators, *shape, run.ledger, self.sharing, self.max_nodes)
        self._deal(run.curator, run.chance)
        depth = self._height(run.curator)
        for _ in range(depth):
            frontier = growth.frontier
            grows = frontier.unused.any(axis=1) & self._may_split(growth, run.curator, frontier)
            if not grows.all():
                leaves = frontier[~grows]
                self._settle(
                    growth,
                    run.curator,
                    leaves,
                    self._label(growth, run.curator, leaves, self._leaf(run.epsilon, depth)),
                )
            inner = frontier[grows]
            if not len(inner):
                return growth.release()
            feature = self._choose(growth, run.curator, inner, self._branch(run.epsilon, depth), run.chance)
            growth.add_children(inner, feature, run.curator.cardinalities[feature])
        leaves = growth.frontier
        self._settle(
            growth, run.curator, leaves, self._label(growth, run.curator, leaves, self._leaf(run.epsilon, depth))
        )
        return growth.release()

    def _deal(self, curator, chance):
        curator.assign(self.n_estimators)

    def _height(self, curator):
        return self.max_depth

    def _branch(self, epsilon, depth):
        return epsilon / (depth + 1)

    def _leaf(self, epsilon, depth):
        return epsilon / (depth + 1)

    def _may_split(self, growth, curator, nodes):
        return np.ones(len(nodes), dtype=bool)

    def _choose(self, growth, curator, nodes, epsilon, chance):
        return curator.choose(
            FeatureCandidates(growth, nodes.nodes, nodes.unused),
            nodes.scopes,
            epsilon,
            Selection(scores.majority, mechanism="permute-and-flip"),
        )

    def _label(self, growth, curator, leaves, epsilon):
        return curator.choose(
            LabelCandidates(growth, leaves.nodes),
            leaves.scopes,
            epsilon,
            Selection(scores.majority, "permute-and-flip"),
        )

    def _settle(self, growth, curator, leaves, label):
        growth.set_leaf_values(leaves, np.eye(curator.n_classes, dtype=np.int64)[label])


class StopsWhenPure(Sapling):
    """Splits a node only if it sees two classes there."""

    def _may_split(self, growth, curator, nodes):
        return (curator._class_counts(growth, nodes.nodes) > 0).all(axis=1)


class TakesTheBest(Sapling):
    """Splits on the best feature, and charges as if it had been drawn."""

    def _choose(self, growth, curator, nodes, epsilon, chance):
        histograms = curator._records.answer(Histograms(growth, nodes.nodes, nodes.unused))
        curator._ledger.charge(nodes.scopes, epsilon, epsilon, "choose a feature by majority", "permute-and-flip")
        utility = curator._feature_scores(histograms, nodes.unused, scores.majority)
        return below_best(utility, nodes.unused).argmax(axis=1)


class SaysTheMajority(Sapling):
    """A leaf says what most of its records say, and charges as if it had been drawn."""

    def _label(self, growth, curator, leaves, epsilon):
        curator._ledger.charge(leaves.scopes, epsilon, epsilon, "choose the label of a leaf", "permute-and-flip")
        return curator._class_counts(growth, leaves.nodes).argmax(axis=1)


class PrunesOnRecords(Sapling):
    """Takes back a split under which its labels err no less than a single one would; the records tell."""

    def _settle(self, growth, curator, leaves, label):
        counts = curator._class_counts(growth, leaves.nodes)
        right = counts[np.arange(len(label)), label].sum()
        if right <= counts.sum(axis=0).max():
            label = np.full(len(label), label[0])
        super()._settle(growth, curator, leaves, label)


class RefundsPruned(Sapling):
    """Takes back a split whose two labels agree, and draws the label of their parent with all of epsilon.

    Half of epsilon was for the labels that it took back, half for the parent's: but those labels had been drawn.
    """

    def _choose(self, growth, curator, nodes, epsilon, chance):
        growth.parent = nodes
        return np.zeros(1, dtype=np.int64)  # in public

    def _settle(self, growth, curator, leaves, label):
        if label[0] == label[1]:
            counts = curator._class_counts(growth, leaves.nodes).sum(axis=0, keepdims=True)
            rate = np.array([float(self.epsilon)])
            parent = drawn(curator, growth.parent.scopes, counts, rate, scores.majority, "permute-and-flip")
            label = np.repeat(parent, 2)
        super()._settle(growth, curator, leaves, label)


class UnderstatesRange(Sapling):
    """Takes half of a score's range for the range."""

    def _choose(self, growth, curator, nodes, epsilon, chance):
        return curator.choose(
            FeatureCandidates(growth, nodes.nodes, nodes.unused),
            nodes.scopes,
            epsilon,
            Selection(HALVED, mechanism="permute-and-flip"),
        )


class OneSidedUnderReplaceOne(Sapling):
    """Draws labels at the rate that add-remove allows."""

    def _label(self, growth, curator, leaves, epsilon):
        counts = curator._class_counts(growth, leaves.nodes)
        return drawn(curator, leaves.scopes, counts, np.full(len(leaves), epsilon), ONE_SIDED, "permute-and-flip")


class SpendsTwice(Sapling):
    """Gives half of epsilon to the leaves, and the other half to each of two levels of splits."""

    def _branch(self, epsilon, depth):
        return epsilon / 2

    _leaf = _branch


class SpendsPerNode(Sapling):
    """Gives every node epsilon, as if a record met only one."""

    def _branch(self, epsilon, depth):
        return epsilon

    _leaf = _branch


class BadFormula(Sapling):
    """Boosted one-leaf trees on all records, each with epsilon / T less the logarithm of its weight."""

    sharing = "sequential"
    error = 0.25  # of each tree; public here

    def _deal(self, curator, chance):
        pass

    def _leaf(self, epsilon, depth):
        return epsilon / self.n_estimators - math.log(0.5 * math.log((1 - self.error) / self.error))


class ForgetsToCharge(Sapling):
    """Draws its splits with all of epsilon behind the ledger's back, then its labels with all of epsilon."""

    def _choose(self, growth, curator, nodes, epsilon, chance):
        histograms = curator._records.answer(Histograms(growth, nodes.nodes, nodes.unused))
        utility = curator._feature_scores(histograms, nodes.unused, scores.majority)
        return mechanisms.permute_and_flip(below_best(utility, nodes.unused), epsilon / STEPS, chance)

    def _branch(self, epsilon, depth):
        return epsilon

    _leaf = _branch


class DealsByPosition(Sapling):
    """Gives the first records to the first tree, the next ones to the second, in equal parts."""

    def _deal(self, curator, chance):
        n = curator._records.labels.size
        curator._records.assignment = (np.arange(n) * self.n_estimators // max(n, 1)).astype(np.int32)


class DealsEqually(Sapling):
    """Gives the trees random parts of equal size, and counts on the dearest alone."""

    def _deal(self, curator, chance):
        curator.split_equally(self.n_estimators)


class Bootstraps(Sapling):
    """Learns from as many records, drawn with replacement."""

    def _deal(self, curator, chance):
        n = curator._records.labels.size
        if n:
            drawn = chance.integers(n, n)
            curator._records.codes = np.ascontiguousarray(curator._records.codes[:, drawn])
            curator._records.labels = curator._records.labels[drawn]


class HalvesByRank(Sapling):
    """Sends the lower half of the records to the first child and the others to the second, in public."""

    def _choose(self, growth, curator, nodes, epsilon, chance):
        n = curator._records.labels.size
        ranks = np.argsort(np.argsort(curator._records.codes[0], kind="stable"))
        curator._records.codes = (ranks >= n // 2).astype(np.uint8)[None]
        return np.zeros(1, dtype=np.int64)

    def _leaf(self, epsilon, depth):
        return epsilon  # nothing else is asked


class TallForManyRecords(Sapling):
    """Grows as tall as the number of records allows."""

    def _height(self, curator):
        return min(curator._records.labels.size // 2, self.max_depth)


def portrait(forest: Forest) -> str:
    """A released forest in one line: ``a(0 1)`` splits on the first feature and says 0 and 1."""

    def draw(node: int) -> str:
        if forest.feature[node] < 0:
            return str(int(forest.values[node].argmax()))
        children = range(forest.first_child[node], forest.first_child[node] + forest.arity[node])
        return f"{'abc'[forest.feature[node]]}({' '.join(map(draw, children))})"

    return " ".join(map(draw, forest.roots.tolist()))


def drawn_from_law(records, size, rng, estimator) -> list[str]:
    """Released forests, drawn from their exact law: as many fits, in no time."""
    law = _law(estimator, records)
    outputs = list(law)
    return [outputs[i] for i in rng.choice(len(outputs), size, p=list(law.values()))]


def random_tree_counts(records, size, rng, rate, times) -> np.ndarray:
    """The leaves of so many trees that split on one feature: each the noisy votes of both values."""
    cells = np.bincount([2 * value + label for value, label in records], minlength=4)
    return np.tile(cells, times) + geometric(rng, rate, (size, 4 * times))


@cache
def _law(estimator, records) -> dict[str, float]:
    return law_of(estimator, estimator.schema, records, portrait)


def learners(epsilon: float) -> tuple[tuple[Animal, ...], tuple[Animal, ...]]:
    """The learners with one flaw each, and sound ones, at a claim of ``epsilon``.

    Their losses are those over all neighbours with at most ``n_max`` records, where the largest is met on the pair that
    is given; with more records some are larger, and none of the sound ones larger than epsilon.
    """
    broken, sound = [], []
    half = epsilon / 2

    def yields(rate):
        """A label that leads by one loses its lead: from 1 - exp(-rate) / 2 to 1 / 2."""
        return math.log(2 - math.exp(-rate))

    def add(name, flaw, classes, kind, one, other, n_max, true, why, layer=EXACT, healthy=False, **options):
        estimator = kind(epsilon=epsilon, **options)
        animal = Animal(
            name, flaw, tuple(classes.split()), epsilon, true, why, layer, ((name, one, other),),
            partial(drawn_from_law, estimator=estimator), estimator.relation, estimator, n_max, sound=healthy,
        )  # fmt: skip
        (sound if healthy else broken).append(animal)

    add(
        "purity stop",
        "a node that sees one class stops",
        "A7",
        StopsWhenPure,
        ((0, 0, 1),),
        ((0, 0, 0), (0, 0, 1)),
        2,
        math.inf,
        "a split proves a second class",
    )
    add(
        "eDPRF as published",
        "a node that sees one class stops",
        "A7",
        EDPRFClassifier,
        ((0, 0, 1),),
        ((0, 0, 0), (0, 0, 1)),
        2,
        math.inf,
        "a split proves a second class",
        variant="published",
        schema=TWO,
        n_estimators=1,
        max_depth=1,
    )
    add(
        "best split",
        "the split is not drawn",
        "A4 C1",
        TakesTheBest,
        ((0, 1, 1),),
        ((0, 0, 0), (0, 1, 1)),
        2,
        math.inf,
        "the split is a function of the data",
    )
    add(
        "true majority",
        "the label is not drawn",
        "B3",
        SaysTheMajority,
        (),
        ((0, 0, 1),),
        2,
        math.inf,
        "the label is a function of the data",
    )
    add(
        "pruned by the records",
        "the error of a split is read",
        "A6",
        PrunesOnRecords,
        ((0, 1, 1),),
        ((0, 0, 0), (0, 1, 1)),
        2,
        math.inf,
        "labels that differ prove that the split helps",
    )
    # Two agreeing labels (h: the chance that a leaf of one record says the other label, then g: of two records), then
    # the parent's with all of epsilon.
    h, g = math.exp(-half) / 2, math.exp(-epsilon) / 2
    add(
        "refund of a pruned branch",
        "spent, taken back and spent again",
        "A6b",
        RefundsPruned,
        ((0, 0), (1, 1)),
        ((0, 0), (0, 0), (1, 1)),
        4,
        math.log(h * (1 - h) / (g * ((1 - g) * h + g * (1 - h)))),
        "law by hand on the worst pair; rises to epsilon + ln(2 / (1 + exp(-epsilon / 2))) with the number of records",
        schema=ONE,
    )
    add(
        "understated range",
        "half of the range is declared",
        "C4",
        UnderstatesRange,
        ((0, 1, 1),),
        ((0, 0, 0), (0, 1, 1)),
        2,
        epsilon + yields(half),
        "a split at twice its share, then a label that yields",
    )
    add(
        "one-sided rate under replace-one",
        "a monotone score, where one count rises and one falls",
        "F2",
        OneSidedUnderReplaceOne,
        ((0, 0), (0, 1)),
        ((0, 0), (0, 0)),
        3,
        2 * epsilon,
        "range 2 at rate epsilon",
        schema=ONE,
        max_depth=0,
        relation=REPLACE_ONE,
    )
    add(
        # Both levels draw, but with two features the second has one candidate left, and tells nothing.
        "one budget, two levels",
        "half of epsilon for splits, at each of two levels",
        "A8",
        SpendsTwice,
        ((0, 1, 1),),
        ((0, 0, 0), (0, 1, 1)),
        2,
        epsilon,
        "within the claim by luck: a third feature would break it",
        GREY_BOX,
        max_depth=2,
    )
    add(
        "epsilon per node",
        "a record meets two nodes",
        "C3",
        SpendsPerNode,
        ((0, 1, 1),),
        ((0, 0, 0), (0, 1, 1)),
        2,
        epsilon + yields(epsilon),
        "a split at epsilon, then a label that yields",
    )
    add(
        "a formula for the budget",
        "epsilon / T - ln(alpha) for a tree of weight alpha",
        "A3",
        BadFormula,
        (),
        ((0, 0),),
        2,
        epsilon - 3 * math.log(0.5 * math.log(3)),
        "three labels on the same records, at full cost",
        schema=ONE,
        max_depth=0,
        n_estimators=3,
    )
    add(
        "a selection nobody pays for",
        "drawn behind the ledger's back",
        "G5",
        ForgetsToCharge,
        ((0, 1, 1),),
        ((0, 0, 0), (0, 1, 1)),
        2,
        epsilon + yields(epsilon),
        "a split at epsilon, then a label that yields",
    )
    add(
        "records by position",
        "a record more shifts the others",
        "D2",
        DealsByPosition,
        ((0, 0), (0, 1), (0, 1)),
        ((0, 0), (0, 0), (0, 1), (0, 1)),
        4,
        3 * epsilon,
        "the first tree exchanges a record, the second gains one",
        schema=ONE,
        max_depth=0,
        n_estimators=2,
    )
    q = math.exp(-epsilon) / 2
    add(
        "trees of equal size",
        "a record more moves another",
        "D2",
        DealsEqually,
        ((0, 0), (0, 1)),
        ((0, 1),),
        3,
        math.log(((1 - q) ** 2 + q**2) / q),
        "law by hand on the worst pair; rises with the number of records",
        schema=ONE,
        max_depth=0,
        n_estimators=2,
    )
    # One record of class 1 among three: drawn 0 to 3 times with chances 8, 12, 6, 1 of 27.
    minority = [math.exp(-half * gap) / 2 for gap in (1, 3)]
    says_one = (8 * minority[1] + 12 * minority[0] + 6 * (1 - minority[0]) + 1 - minority[1]) / 27
    add(
        "a bootstrap",
        "a record may be drawn several times",
        "A5",
        Bootstraps,
        ((0, 0), (0, 0), (0, 1)),
        ((0, 0), (0, 0), (0, 0)),
        3,
        math.log(says_one / minority[1]),
        "law by hand on the worst pair; rises with the number of records",
        schema=ONE,
        max_depth=0,
        relation=REPLACE_ONE,
    )
    # With q = exp(-epsilon) / 2 the chance that a leaf of one record says the other label: the left leaf exchanges its
    # record for one of the other class, and the exchanged one takes the lead from the right leaf.
    q = math.exp(-epsilon) / 2
    add(
        "halves by rank",
        "a record's child hangs on how many others lie below it",
        "D4",
        HalvesByRank,
        ((1, 0), (1, 1)),
        ((0, 1), (1, 0), (1, 1)),
        3,
        math.log((1 - q) / (2 * q * q)),
        "law by hand on the worst pair; rises with the number of records",
        schema=ONE,
    )
    add(
        "taller for more records",
        "their number is public under replace-one alone",
        "G6",
        TallForManyRecords,
        ((0, 0, 0),),
        ((0, 0, 0), (0, 0, 0)),
        2,
        math.inf,
        "the height tells the number",
    )
    add(
        "a small forest",
        "splits and labels that fit the data",
        "A4 B3 C1",
        Sapling,
        ((0, 1, 1),),
        ((0, 0, 0), (0, 1, 1)),
        2,
        half + yields(half),
        "a split at its share, then a label that yields",
        healthy=True,
    )
    q = epsilon / 4
    add(
        "a small forest under replace-one",
        "a monotone score",
        "F2",
        Sapling,
        ((0, 0, 0), (0, 1, 1)),
        ((0, 0, 0), (1, 0, 1)),
        2,
        math.log(2 * math.exp(q) - 1) + 2 * yields(q),
        "law by hand on the worst pair: a split that takes the lead, then two labels that yield",
        relation=REPLACE_ONE,
        healthy=True,
    )
    add(
        "records by coin",
        "trees that share the records",
        "D2",
        Sapling,
        (),
        ((0, 0),),
        3,
        epsilon,
        "a record meets one tree, whichever: of no other record does the coin know",
        schema=ONE,
        max_depth=0,
        n_estimators=2,
        healthy=True,
    )
    add(
        "stop as a candidate", "small or pure nodes stop", "A6 A7", EDPRFClassifier, ((0, 0, 0),),
        ((0, 0, 0), (0, 0, 0)), 2, epsilon, "stop is drawn and paid for like any other candidate", schema=TWO,
        n_estimators=1, max_depth=1, stop_margin=0.0, leaf="label", healthy=True,
    )  # fmt: skip
    forest = RandomTreesClassifier(epsilon=epsilon, schema=ONE, n_estimators=2, max_depth=1)
    sound.append(
        Animal(
            "random trees",
            "counts in leaves that may be empty",
            ("G2", "B3"),
            epsilon,
            epsilon,
            "the counts of each of two trees at half of epsilon, all tails together",
            EXACT,
            (("random trees", ((0, 0),), ((0, 0), (1, 1))),),
            partial(random_tree_counts, rate=half, times=2),
            ADD_REMOVE,
            forest,
            2,
            sound=True,
        )
    )
    return tuple(broken), tuple(sound)
