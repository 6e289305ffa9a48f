"""PINQ-based ID3: the tree of SuLQ-based ID3, and what an account without parts charges for it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from shared import MIXED, PAIR, assert_an_estimator, quietly, table

from dpforest import PinqID3Classifier, Schema, SulqID3Classifier
from dpforest.audit import exact_audit
from dpforest.papers.pinq_id3 import overcharge
from dpforest.privacy import ADD_REMOVE, RELATIONS

relations = pytest.mark.parametrize("relation", RELATIONS)
READINGS = [{}, {"variant": "published"}, {"variant": "published", "composition": "sequential"}]
readings = pytest.mark.parametrize("options", READINGS, ids=str)
THREE = Schema(categorical={"a": [0, 1], "b": [0, 1], "c": [0, 1, 2]}, classes=[0, 1])
SIZES = 2, 2, 3


def model(**parameters) -> PinqID3Classifier:
    return PinqID3Classifier(**{"epsilon": 4.0, "schema": MIXED, "random_state": 0, **parameters})


def records(n: int = 6000):
    """Of the three features, the last first and then the others decide the class, in all their values."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(size, size=n) for size in SIZES], axis=1)
    return X, (X[:, 0] + X[:, 1] + X[:, 2]) % 2


@readings
def test_an_estimator(options, tmp_path):
    assert_an_estimator(model(**options), *table(), tmp_path)


# -- the same tree ---------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "pub-pinq-id3",
    true={"add-remove": "yes", "replace-one": "after a repair"},
    tight="sharp",
    read="in part (Friedman's program, which copies PINQ's Partition)",
    constant=r"$\eps$ by parts, $\eps/m$ by the piece",
    evidence="exhaustive",
)
@pytest.mark.parametrize("variant", ["proved", "published"])
@relations
def test_by_parts_it_is_the_tree_of_sulq(variant, relation):
    X, y = records()
    for depth in (0, 1, 3):
        options = {"schema": THREE, "max_depth": depth, "variant": variant, "relation": relation, "random_state": 1}
        ours, theirs = (quietly(kind(**options), X, y) for kind in (PinqID3Classifier, SulqID3Classifier))
        np.testing.assert_array_equal(ours.forest_.values, theirs.forest_.values)
        np.testing.assert_array_equal(ours.forest_.feature, theirs.forest_.feature)
        assert str(ours.ledger_) == str(theirs.ledger_)


@pytest.mark.claim("pub-pinq-id3")
@relations
def test_the_exact_loss_of_a_leaf(relation):
    """By parts half of the claim, for nothing is left to decide; by the piece that over m = (1 + 2) / 2."""
    for options, exact in (({}, Fraction(1, 2)), ({"composition": "sequential"}, Fraction(1, 3))):
        leaf = PinqID3Classifier(schema=PAIR, variant="published", max_depth=0, relation=relation, **options)
        assert exact_audit(leaf, n_max=2).epsilon == pytest.approx(float(exact), rel=1e-9)
    proved = PinqID3Classifier(schema=PAIR, max_depth=0, relation=relation)
    assert exact_audit(proved, n_max=2).epsilon == pytest.approx(1, rel=1e-9)


# -- what Partition saves --------------------------------------------------------------------------------------------


def trees(left: tuple[int, ...], levels: int, n_classes: int):
    """What every tree is charged by the piece, in units of a count: any node may be a leaf, or split on any feature.

    All children of a node grow alike: the dearest child may be repeated.
    """
    yield Fraction(1 + n_classes)
    if left and levels:
        here = 1 + sum(Fraction(size * (1 + n_classes), 2 * len(left)) for size in left)
        for at, size in enumerate(left):
            for below in trees(left[:at] + left[at + 1 :], levels - 1, n_classes):
                yield here + size * below


@pytest.mark.claim(
    "thm-pinq-id3",
    verdict="proved",
    evidence="exhaustive",
    constant=r"$m$, the most expensive of all trees; $\eps$ by parts, attained by a single leaf under both relations",
)
@pytest.mark.parametrize("sizes", [(2,), (2, 2, 2), (2, 3, 5), (7, 2, 2), (3, 3, 4, 2), (9, 8, 2)], ids=str)
def test_the_factor_is_that_of_the_dearest_tree(sizes):
    for n_classes, depth in product((1, 2, 5), (0, 1, 2, 4)):
        paths = 2 * (depth + 1)
        assert overcharge(sizes, n_classes, depth) == max(trees(sizes, depth, n_classes)) / paths
    assert overcharge((*sizes, 1), 2, 2) == overcharge(sizes, 2, 2)  # a feature of one value is never asked about


#: How many noisy counts of bits stand behind one line of the ledger; of children, those of one feature.
BITS = {
    "count the records of a node": 1,
    "count the classes of a leaf": 2,
    "count the records of each child by each feature": 2,
    "count the classes of each child by each feature": 4,
}


@pytest.mark.claim("thm-pinq-id3")
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
def test_the_factor_is_met_by_a_full_tree(depth):
    """At a large budget every node splits; what the fit was charged, each line as often as there are counts."""
    schema = Schema(categorical={name: [0, 1] for name in "abc"}, classes=[0, 1])
    X = np.random.default_rng(0).integers(2, size=(6000, 3))
    fitted, by_piece = (
        quietly(
            PinqID3Classifier(
                epsilon=400.0, schema=schema, variant="published", composition=how, max_depth=depth, random_state=0
            ),
            X,
            X[:, 0] & X[:, 1],
        )
        for how in ("parallel", "sequential")
    )
    factor = float(overcharge((2, 2, 2), 2, depth))
    for model, paths in ((fitted, 400), (by_piece, 400 / factor)):
        pieces = sum(entry.costs[ADD_REMOVE].sum() * BITS[entry.query] for entry in model.ledger_._charges)
        assert pieces == pytest.approx(factor * paths, rel=1e-12)
        # with features left over the height, a path spends all; else the levels below the last feature are unused
        unused = max(depth - 3, 0) * 2 / (2 * (depth + 1))
        assert model.ledger_.epsilon == pytest.approx(paths * (1 - unused), rel=1e-12)
        assert model.ledger_.leaks == []
        assert model.guarantee_.epsilon == 400


@relations
def test_the_repaired_tree_spends_all_of_it(relation):
    X, y = records()
    for depth in (0, 1, 4):
        fitted = PinqID3Classifier(epsilon=3.0, schema=THREE, max_depth=depth, relation=relation, random_state=0).fit(
            X, y
        )
        assert fitted.ledger_.epsilon == pytest.approx(3.0, rel=1e-12)
        assert fitted.ledger_.leaks == []


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"composition": "sequential"}, "leaves budget over"),
        ({"composition": "none"}, "composition must be one of"),
        ({"max_depth": -1}, "max_depth must be a whole number"),
        ({"schema": None}, "needs schema="),
    ],
    ids=str,
)
def test_bad_parameters_say_what_to_do(parameters, says):
    with pytest.raises(ValueError, match=says):
        model(**parameters).fit(*table())


def test_a_tree_that_no_account_by_the_piece_can_pay_is_refused():
    wide = Schema(categorical={f"f{at}": list(range(20)) for at in range(6)}, classes=[0, 1])
    X = np.zeros((10, 6), dtype=int)
    options = {"schema": wide, "variant": "published", "composition": "sequential"}
    with pytest.raises(ValueError, match="less than a millionth of its budget"):
        PinqID3Classifier(max_depth=6, **options).fit(X, np.zeros(10, dtype=int))
    small = PinqID3Classifier(max_depth=1, random_state=0, **options).fit(X, np.zeros(10, dtype=int))
    assert small.ledger_.total(ADD_REMOVE) < 1
