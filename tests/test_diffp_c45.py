"""DiffP-C4.5: what the published split spends, the exact loss of both variants, and pruning by noisy counts alone."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import oracle
import pytest
from shared import MIXED, assert_an_estimator, quietly, table
from sklearn.base import clone

from dpforest import Schema
from dpforest.audit import exact_audit
from dpforest.chance import Seeded
from dpforest.curator import Curator
from dpforest.learners.pruning import consistent, pessimistic, too_many_errors
from dpforest.models.forest import Forest
from dpforest.papers.diffp_c45 import DiffPC45Classifier
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE

relations = pytest.mark.parametrize("relation", RELATIONS)
variants = pytest.mark.parametrize("variant", ["proved", "published"])
CUT = Schema(numeric={"x": (0, 1)}, classes=[0, 1])


def model(**parameters) -> DiffPC45Classifier:
    return DiffPC45Classifier(**{"epsilon": 4.0, "schema": MIXED, "random_state": 0, "max_depth": 3, **parameters})


@variants
@pytest.mark.parametrize("prune", [True, False])
def test_an_estimator(variant, prune, tmp_path):
    fitted = assert_an_estimator(model(variant=variant, prune=prune, epsilon=8.0), *table(), tmp_path)
    assert fitted.ledger_.leaks == []
    assert fitted.guarantee_.epsilon == 8.0


# -- the published split ---------------------------------------------------------------------------------------------


def share_spent(m: int, d: int, relation: str) -> Fraction:
    """Of the published budget, on a path with all its cuts: a selection under add-remove costs half of its part.

    Where a record is replaced the two paths part at the root, whose count both see unchanged.
    """
    whole = Fraction((2 + m) * d + 2)
    return (d * Fraction(3 + m, 2) + 2 if relation == ADD_REMOVE else whole - 1) / whole


@pytest.mark.claim(
    "pub-diffp-c45",
    true={"add-remove": "yes", "replace-one": "after a repair"},
    tight="loose by up to 2",
    read="in part (Friedman's program, and the first page)",
    constant=(
        r"of $\eps$ under add-remove $\frac{(3+m)d/2 + 2}{(2+m)d + 2}$, under replace-one "
        r"$\frac{(2+m)d + 1}{(2+m)d + 2}$"
    ),
    evidence="exhaustive",
)
@relations
@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_what_the_published_split_spends(relation, m):
    """The ledger of a tree whose paths have all their cuts: never all of ε but for a single leaf."""
    rng = np.random.default_rng(0)
    schema = Schema(
        numeric={f"x{i}": (0, 1) for i in range(m)}, categorical={f"c{i}": [0, 1] for i in range(3)}, classes=[0, 1]
    )
    X = np.column_stack([rng.random((4000, m)), rng.integers(2, size=(4000, 3))])
    y = (X[:, 0] > 0.5).astype(int)  # so that the root is cut in the middle, and its children can be cut again
    for d in (0, 1, 2):
        tree = model(schema=schema, variant="published", max_depth=d, epsilon=200.0, relation=relation, n_bins=64)
        ledger = quietly(tree, X, y).ledger_
        assert ledger.leaks == []
        assert ledger.epsilon == pytest.approx(200 * float(share_spent(m, d, relation)), rel=1e-12)
    assert share_spent(0, 1, ADD_REMOVE) == Fraction(7, 8)
    assert share_spent(m, 0, ADD_REMOVE) == 1


@pytest.mark.claim("pub-diffp-c45")
def test_two_counts_of_one_leaf_spend_all():
    """A single leaf, in fractions: a count and the class counts, e^(ε / 2) = 2 for each."""

    def leaf(data):
        return oracle.noisy_histogram([len(data), data.count(0), data.count(1)], 2, 3)

    assert oracle.worst_case(leaf, [0, 1], 2, ADD_REMOVE) == 4


@pytest.mark.slow
@pytest.mark.claim("pub-diffp-c45")
@relations
@pytest.mark.parametrize("depth", [0, 1])
def test_the_exact_loss_of_the_published_tree(relation, depth):
    """Of the tree alone, whose reader sees neither the counts nor the cuts that were not taken."""
    tree = model(schema=CUT, epsilon=1.0, n_bins=2, variant="published", prune=False, max_depth=depth)
    found = exact_audit(tree.set_params(relation=relation), n_max=2)
    assert 0 < found.epsilon < float(share_spent(1, depth, relation))
    assert not found.violated


# -- the repair ------------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "thm-diffp-c45",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$\eps$, attained under add-remove by a split and under replace-one by a leaf",
)
@pytest.mark.parametrize(("relation", "depth"), [(ADD_REMOVE, 0), (ADD_REMOVE, 1), (REPLACE_ONE, 0)])
@pytest.mark.parametrize("n_bins", [2, 3])
def test_the_repaired_tree_attains_its_claim(relation, depth, n_bins):
    tree = model(schema=CUT, epsilon=1.0, n_bins=n_bins, prune=False, max_depth=depth, stop_margin=0.0)
    found = exact_audit(tree.set_params(relation=relation), n_max=2)
    assert found.epsilon == pytest.approx(1, rel=1e-12)
    assert not found.violated


@pytest.mark.claim("thm-diffp-c45")
@relations
@pytest.mark.parametrize("criterion", ["gini", "majority"])
@pytest.mark.parametrize("selection", ["permute-and-flip", "exponential"])
def test_the_repaired_tree_spends_exactly_epsilon(relation, criterion, selection):
    X, y = table(800)
    for epsilon, depth in ((0.1, 0), (0.1, 4), (3.0, 1), (50.0, 4)):
        tree = model(epsilon=epsilon, max_depth=depth, relation=relation, criterion=criterion, selection=selection)
        ledger = tree.fit(X, y).ledger_
        assert ledger.leaks == []
        assert ledger.epsilon == pytest.approx(epsilon, rel=1e-12)


# -- pruning ---------------------------------------------------------------------------------------------------------


class Tape(Curator):
    """Writes down every answer."""

    answers: list

    def _keep(self, answer):
        self.answers.append(np.array(answer))
        return answer

    def choose(self, *asked):
        return self._keep(super().choose(*asked))

    def noisy(self, *asked):
        return self._keep(super().noisy(*asked))


class Player(Curator):
    """Gives the answers of a tape, whatever the records are."""

    answers: list

    def choose(self, *asked):
        return self.answers.pop(0)

    def noisy(self, *asked):
        return self.answers.pop(0)


@pytest.mark.claim(
    "lem-noisy-pruning",
    verdict="proved",
    evidence="exhaustive",
    constant="$0$: the pruned tree of the same answers is the same, whatever the records",
)
@variants
@relations
def test_pruning_reads_nothing_but_answers(variant, relation):
    """The answers of one table, played to another that has nothing in common with it, give the same pruned tree."""
    rng = np.random.default_rng(1)
    codes, labels = rng.integers(3, size=(2, 900)).astype(np.uint8), rng.integers(2, size=900).astype(np.uint8)
    labels[codes[0] > 1] = 1
    other = np.zeros((2, 5), dtype=np.uint8), np.zeros(5, dtype=np.uint8)
    tree = model(variant=variant, relation=relation, epsilon=20.0, n_bins=3)

    def released(door, answers, codes, labels, estimator=tree):
        kind = type("Door", (door,), {"answers": answers})
        return estimator.replay(codes, labels, MIXED, 20.0, Seeded(0), kind)[0]

    tape: list = []
    before = released(Tape, tape, codes, labels)
    rest = list(tape)
    after = released(Player, rest, *other)
    assert rest == []
    assert after.to_dict() == before.to_dict()
    whole = released(Player, list(tape), *other, clone(tree).set_params(prune=False))
    assert whole.n_leaves > before.n_leaves > 1  # something was pruned, and not everything


def random_tree(rng, depth: int) -> tuple[Forest, np.ndarray]:
    """A tree of multiway splits with counts that may be negative, and numbers of records of all its nodes."""
    arity, first, level, n_nodes = [], [], 0, 1
    while level < n_nodes:
        inner = level < 1 or (level < depth and rng.random() < 0.7)
        arity.append(int(rng.integers(2, 4)) if inner else 0)
        first.append(n_nodes if inner else 0)
        n_nodes += arity[-1]
        level += 1
    arities = np.array(arity, dtype=np.int32)
    values = np.where(
        (arities == 0)[:, None], rng.integers(-4, 30, size=(n_nodes, 2)) * rng.integers(2, size=(n_nodes, 2)), 0
    )
    tree = Forest(
        np.where(arities > 0, 0, -1).astype(np.int32),
        np.array(first, dtype=np.int32),
        arities,
        arities > 0,
        np.zeros((n_nodes, 4), dtype=np.uint64),
        np.zeros(1, dtype=np.int32),
        values.astype(np.int64),
    )
    return tree, rng.integers(-3, 60, size=n_nodes)


def by_hand(tree: Forest, sizes, node: int, size: Fraction | None):
    """Of a node: consistent class counts of all below it, by node, in fractions."""
    below = range(tree.first_child[node], tree.first_child[node] + tree.arity[node])
    if not tree.arity[node]:
        counts = [Fraction(max(int(v), 0)) for v in tree.values[node]]
        if size is not None:
            whole = sum(counts)
            counts = [size * c / whole if whole else size / len(counts) for c in counts]
        return {node: counts}
    found: dict = {}
    noisy = [Fraction(max(int(sizes[child]), 0)) for child in below]
    for child, mine in zip(below, noisy, strict=True):
        part = mine / sum(noisy) if sum(noisy) else Fraction(1, len(noisy))
        found |= by_hand(tree, sizes, child, None if size is None else size * part)
    return found | {node: [sum(found[child][c] for child in below) for c in (0, 1)]}


def kept_by_hand(tree: Forest, counts: dict, node: int) -> tuple[float, list]:
    """Errors of a pruned branch, and the inner nodes at its ends that were made leaves."""
    size, best = float(sum(counts[node])), float(max(counts[node]))
    alone = pessimistic(size, size - best, 0.25)
    if not tree.arity[node]:
        return alone, []
    below = range(tree.first_child[node], tree.first_child[node] + tree.arity[node])
    branches = [kept_by_hand(tree, counts, child) for child in below]
    errors = sum(e for e, _ in branches)
    return (alone, [node]) if alone <= errors + 0.1 else (errors, [cut for _, cuts in branches for cut in cuts])


@pytest.mark.claim("lem-noisy-pruning")
@pytest.mark.parametrize("counted", [True, False])
def test_the_shipped_pruning_is_the_papers(counted):
    """Consistent counts in fractions and C4.5's bottom-up rule, on random trees with negative counts among them."""
    rng, cuts = np.random.default_rng(0), Counter[bool]()
    for _ in range(100):
        tree, sizes = random_tree(rng, 6)
        expected = by_hand(tree, sizes, 0, Fraction(max(int(sizes[0]), 0)) if counted else None)
        counts = consistent(tree, sizes if counted else None)
        exact = np.array([[float(c) for c in expected[node]] for node in range(tree.n_nodes)])
        np.testing.assert_allclose(counts, exact, rtol=1e-12, atol=1e-12)
        cut = too_many_errors(tree, counts, 0.25)
        assert sorted(cut.tolist()) == sorted(kept_by_hand(tree, expected, 0)[1])
        cuts[cut.tolist() == [0]] += 1  # nothing but the root is left
    assert cuts[True] > 5
    assert cuts[False] > 5


def test_pessimistic_errors():
    """Limits that Quinlan's book gives to three digits, exact without an error; a smaller factor allows for more."""
    for errors, size, limit in ((0, 6, 0.206), (0, 9, 0.143), (0, 1, 0.75)):
        assert pessimistic(size, errors, 0.25) / size == pytest.approx(limit, abs=5e-4)
    assert pessimistic(16, 1, 0.25) / 16 == pytest.approx(0.157, abs=5e-3)
    assert pessimistic(0, 0, 0.25) == 0
    for size in (0.5, 3.0, 50.0):
        for errors in np.linspace(0, size, 20):
            few, many = (pessimistic(size, float(errors), confidence) for confidence in (0.25, 0.05))
            assert errors <= few <= many <= size * (1 + 1e-12)


# -- bad input -------------------------------------------------------------------------------------------------------


@variants
def test_without_numeric_features_every_split_has_one_child_per_category(variant):
    schema = Schema(categorical={"c": ["u", "v", "w"]}, classes=["no", "yes"])
    X, y = table()
    tree = quietly(model(schema=schema, variant=variant, epsilon=100.0, prune=False), X[["c"]], y)
    assert tree.forest_.arity.tolist() == [3, 0, 0, 0]
    assert tree.forest_.multiway.tolist() == [True, False, False, False]


@variants
@pytest.mark.parametrize("classes", [["no"], ["no", "yes"]])
@pytest.mark.parametrize("prune", [True, False])
def test_one_row_and_one_class(variant, classes, prune):
    """Noisy counts of nothing may be negative; the model answers all the same."""
    schema = Schema(numeric={"x": (0, 1)}, classes=classes) if len(classes) > 1 else None
    if schema is None:
        with pytest.raises(ValueError, match="classes"):
            Schema(numeric={"x": (0, 1)}, classes=classes)
        return
    for n in (1, 30):
        for seed in range(5):
            tree = model(schema=schema, variant=variant, epsilon=0.5, prune=prune, random_state=seed)
            shares = quietly(tree, np.full((n, 1), 0.5), ["no"] * n).predict_proba([[0.1], [0.9]])
            np.testing.assert_allclose(shares.sum(axis=1), 1)
            assert tree.ledger_.epsilon <= 0.5 * (1 + 1e-12)


def test_counts_that_are_all_negative():
    tree, _ = random_tree(np.random.default_rng(3), 3)
    counts = consistent(tree, np.full(tree.n_nodes, -5))
    assert (counts == 0).all()
    assert too_many_errors(tree, counts, 0.25).tolist() == [0]
    equal = consistent(Forest(**{**vars(tree), "values": np.minimum(tree.values, 0)}), np.full(tree.n_nodes, 12))
    np.testing.assert_allclose(equal[0], [6, 6])


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"confidence": 0.0}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": math.nan}, "confidence must be"),
        ({"prune": "no"}, "prune must be one of"),
        ({"max_depth": -1}, "max_depth must be a whole number, at least 0"),
        ({"criterion": "gain-ratio"}, "criterion must be one of"),
        ({"selection": "argmax"}, "selection must be one of"),
        ({"variant": "published", "stop_margin": 0.0}, "the paper to the letter"),
        ({"variant": "published", "selection": "permute-and-flip"}, "the paper to the letter"),
        ({"max_nodes": 0}, "max_nodes must be a whole number"),
        ({"schema": None}, "needs schema="),
    ],
    ids=str,
)
def test_bad_parameters_say_what_to_do(parameters, says):
    with pytest.raises(ValueError, match=says):
        model(**parameters).fit(*table(20))
