"""RDT: random decision trees (Jagannathan, Pillaipakkamnatt and Wright, 2009), the data-independent baseline.

The structure of the trees is drawn without looking at the data; only the leaves are counted, with noise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest.learners.audited import AuditSpec, Broken
from dpforest.learners.base import PrivateForest, PrivateForestClassifier, PrivateForestRegressor, WithDelta
from dpforest.learners.cuts import grow_multiway, grow_random
from dpforest.learners.facts import Facts
from dpforest.learners.growth import MAX_NODES, Frontier
from dpforest.learners.parameters import AsPublished, Auto, Either, Integer, Number
from dpforest.learners.run import Run
from dpforest.models.forest import Forest
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import ADD_REMOVE, claim
from dpforest.schema import TARGET_LEVELS

__all__ = ["RandomTreesClassifier", "RandomTreesRegressor", "published_height"]

SIZE = "the number of records", "RDT, the rule for the height of a tree"
HEIGHT = {
    ADD_REMOVE: Broken("the published height of a tree is computed from the number of records (pub-random-trees)")
}
#: Height beyond which a default would make more leaves than a table has records.
TALL = 10


def published_height(n: int, sizes: np.ndarray) -> int:
    """``min(k / 2, log_b n - 1)``, rounded down and at least 1: n records, k features of b values in the mean."""
    base, power = max(Fraction(2), Fraction(int(sizes.sum()), len(sizes))), 0
    while base ** (power + 1) <= n:  # the whole part of log_b n, which a rounded logarithm may miss
        power += 1
    return max(1, min(len(sizes) // 2, power - 1))


class _RandomTrees(WithDelta, PrivateForest):
    """The random trees of both kinds: a subclass says what is counted in a leaf."""

    FACTS = Facts(leaks="size")

    max_depth: Annotated[
        int | None,
        Either(None, rule=Integer(0, MAX_DEPTH)),
        AsPublished(),
        """Splits on a path; None takes half the number of features, the public part of the paper's rule, at most 10.
        With one tree, 0 gives the private majority, or the private mean.""",
    ] = None
    split: Annotated[
        Literal["auto", "binary", "multiway"],
        Auto(published="multiway", proved="binary"),
        AsPublished("multiway"),
        """``"binary"``: a random cut of a random feature, which may come again below.  ``"multiway"``: as in the paper,
        one child per category of an unused feature, and a random cut for a numeric one.""",
    ] = "auto"
    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` takes the paper's height ``min(k / 2, log_b n - 1)``, which reads the number of records n, of
        k features with b values in the mean.""",
    ] = "proved"
    shrinkage: Annotated[
        float,
        Number(0, 1e6),
        """If proved, how far a leaf's shares are drawn to those of the nodes above
        (:meth:`~dpforest.models.forest.Forest.shares`): the size, in units of the noise of a leaf, at which a leaf
        counts as much as the node above it.  0: class counts are summed over the trees, as in the paper.""",
    ] = 1.0
    max_nodes: Annotated[int, Integer(1), "A forest that could not fit raises."] = MAX_NODES

    @claim("alg-random-trees", "pub-random-trees")
    def as_published(self, run: Run) -> Forest:
        """Steps 1 and 2, on trees of the paper's height."""
        height = published_height(run.size(SIZE), run.sizes)
        share = run.start_forest(self.n_estimators, "all", self.max_nodes)
        for leaves in grow_multiway(run, height):  # step 1
            run.set_leaf_values(leaves, self._leaf_values(run, leaves, share))  # step 2
        return run.release()

    @claim("thm-random-trees", "thm-forest-delta")
    def as_proved(self, run: Run) -> Forest:
        """The repair: a height that is public."""
        half = max(1, run.schema.n_features // 2)
        height = min(half, TALL) if self.max_depth is None else self.max_depth
        share = run.start_forest(self.n_estimators, "all", self.max_nodes)
        if self.option("split") == "multiway":
            parts = grow_multiway(run, height)
        else:
            run.growth.require_room(self.n_estimators * (2 ** (height + 1) - 1), height)
            parts = [grow_random(run.growth, run.chance, run.sizes, run.ordered, height)]
        for leaves in parts:
            run.set_leaf_values(leaves, self._leaf_values(run, leaves, share))
        return run.release(self.half_weight(share, self._step()))

    def _leaf_values(self, run: Run, leaves: Frontier, epsilon: float) -> np.ndarray:
        """Noisy values of these leaves, at this budget each."""
        raise NotImplementedError

    def _step(self) -> int:
        """What one record adds to the values of a leaf."""
        raise NotImplementedError


@claim("alg-random-trees", "thm-random-trees", "pub-random-trees")
class RandomTreesClassifier(_RandomTrees, PrivateForestClassifier):
    """Random trees whose leaves hold noisy class counts.

    Each tree reads every record, so each gets ``epsilon / n_estimators``.

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``, sharp: :prf:ref:`thm-random-trees`; ``(epsilon, delta)`` with
    a ``delta`` (:prf:ref:`thm-forest-delta`).  ``"published"``: as much where n is public (replace-one), a leak under
    add-remove (:prf:ref:`pub-random-trees`).

    Source
    ------
    ICDM Workshops 2009, and Transactions on Data Privacy 5, 2012.
    """

    def _leaf_values(self, run: Run, leaves: Frontier, epsilon: float) -> np.ndarray:
        return run.count_classes(leaves, epsilon)

    def _step(self) -> int:
        return 1

    AUDIT: ClassVar = AuditSpec(
        "random-trees",
        (
            ({}, 2, 1),
            ({"split": "multiway"}, 2, 1),
            ({"n_estimators": 2}, 2, 1),
            ({"n_estimators": 2, "delta": 1e-6}, 2, 1),
            ({"variant": "published"}, 4, None),
        ),
        HEIGHT,
        sizes=(8,),
        reduced=False,
    )


@claim("thm-random-trees", "thm-masses")
class RandomTreesRegressor(_RandomTrees, PrivateForestRegressor):
    """Random trees whose leaves hold two noisy masses of the target, above its lower bound and below its upper one.

    Guarantee
    ---------
    As for :class:`RandomTreesClassifier`: one record changes the masses of one leaf of each tree by one record's worth
    (:prf:ref:`thm-random-trees`, :prf:ref:`thm-masses`, :prf:ref:`thm-forest-delta`).

    Source
    ------
    The trees are those of the paper, which has no regression; the leaves are this library's.
    """

    shrinkage = 2.0

    def _leaf_values(self, run: Run, leaves: Frontier, epsilon: float) -> np.ndarray:
        return run.sum_masses(leaves, epsilon)

    def _step(self) -> int:
        return TARGET_LEVELS

    AUDIT: ClassVar = AuditSpec(
        "random-trees-regressor",
        (({}, 2, 1), ({"split": "multiway", "n_estimators": 2}, 2, 1), ({"variant": "published"}, 4, None)),
        HEIGHT,
        sizes=(8,),
    )
