"""RDT: random decision trees (Jagannathan, Pillaipakkamnatt and Wright, 2009), the data-independent baseline.

The structure of the trees is drawn without looking at the data; only the leaves are counted, with noise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpforest.learners.audited import Audited, Broken
from dpforest.learners.base import PrivateEstimator, PrivateForestClassifier, PrivateForestRegressor
from dpforest.learners.cuts import CutPool, grow_random
from dpforest.learners.growth import MAX_NODES, Growth
from dpforest.learners.parameters import check_choice, check_count
from dpforest.mechanisms import exponential
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import ADD_REMOVE, claim

__all__ = ["RandomTreesClassifier", "RandomTreesRegressor"]


HEIGHT = {
    ADD_REMOVE: Broken("the published height of a tree is computed from the number of records (pub-random-trees)")
}
#: Height beyond which a default would make more leaves than a table has records.
TALL = 10


class _RandomTrees(PrivateEstimator):
    """The random trees of both kinds: a subclass says what a leaf is asked for, and how many numbers that gives."""

    _AUTO: ClassVar = {
        "published": {"split": "multiway"}, "proved": {"split": "binary"}
    }  # fmt: skip

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, max_depth=None, split="auto", n_bins=32,
        relation="add-remove", variant="proved", max_nodes=MAX_NODES, source="seeded", random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.split = split
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, curator, chance, schema, ledger, epsilon):
        depth = self._height(curator, schema)
        growth = Growth(self.n_estimators, schema.n_features, self._width(schema), ledger, "sequential", self.max_nodes)
        ordered = np.array([name in schema.numeric for name in schema.columns])
        if self.option("split") == "binary":
            least = self.n_estimators * (2 ** (depth + 1) - 1)
            if least > self.max_nodes:
                raise ValueError(_too_deep(depth, least, self.max_nodes))
            leaves = [grow_random(growth, chance, curator.cardinalities, ordered, depth)]
        else:
            leaves = self._grow_multiway(growth, curator, chance, ordered, depth)
        for part in leaves:
            growth.settle(part, self._ask(curator)(growth, part.nodes, part.scopes, epsilon / self.n_estimators))
        return growth.release()

    def _width(self, schema) -> int:
        raise NotImplementedError

    def _ask(self, curator):
        raise NotImplementedError

    def _grow_multiway(self, growth, curator, chance, ordered, depth):
        """Split every node on a random unused feature; a numeric one is cut in two at a random public edge."""
        leaves, pool = [], CutPool(chance, curator.cardinalities, np.ones_like(ordered))
        for _ in range(depth):
            frontier = growth.frontier
            open_ = frontier.unused.any(axis=1)
            leaves.append(frontier[~open_])
            inner = frontier[open_]
            if not len(inner):
                return leaves
            # the exponential mechanism at rate zero is the uniform law over what is allowed
            features = exponential(np.where(inner.unused, 0.0, -np.inf), 0.0, chance)
            numeric = ordered[features]
            arities = np.where(numeric, 2, curator.cardinalities[features])
            if not growth.room(arities).all():
                raise ValueError(_too_deep(depth, growth.n_nodes + int(arities.sum()), self.max_nodes))
            masks = pool.draw(chance, features)
            growth.branch(inner, features, arities, masks=masks, binary=numeric)
        return [*leaves, growth.frontier]

    def _height(self, curator, schema) -> int:
        half = max(1, schema.n_features // 2)
        if self.variant == "published":
            n = curator.size(what="the number of records", where="RDT, the rule for the height of a tree")
            sizes, levels = curator.cardinalities.tolist(), 0
            base = max(Fraction(2), Fraction(sum(sizes), len(sizes)))
            while base ** (levels + 1) <= n:  # the whole part of log_b n, which a rounded logarithm may miss
                levels += 1
            return max(1, min(half, levels - 1))
        return min(half, TALL) if self.max_depth is None else self.max_depth

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_nodes, "max_nodes", least=self.n_estimators)
        check_choice(self.split, "split", ("auto", "binary", "multiway"))
        if self.variant == "published" and self.split == "binary":
            raise ValueError("variant='published' is the paper to the letter, which splits multiway")
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", least=0, most=MAX_DEPTH)
            if self.variant == "published":
                raise ValueError("variant='published' takes its height from the data: leave max_depth=None")


@claim("alg-random-trees", "thm-random-trees", "pub-random-trees")
class RandomTreesClassifier(_RandomTrees, PrivateForestClassifier):
    """Random trees whose leaves hold noisy class counts.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the whole forest; each tree reads every record, so each gets ``epsilon / n_estimators``.
    schema : Schema
        What is public.  Required.
    n_estimators : int
    max_depth : int or None
        Splits on a path; None takes half the number of features, the public part of the paper's rule, and at most 10.
        0 makes every tree a single leaf: with one tree, the private majority.
    split : {"auto", "binary", "multiway"}
        ``"binary"``: a random cut of a random feature, which may come again below.  ``"multiway"``: as in the paper,
        one child per category of an unused feature, and a random cut for a numeric one.  Auto is by variant.
    n_bins : int
        Public bins of each numeric feature; cuts fall on their edges.
    relation : {"add-remove", "replace-one"}
    variant : {"proved", "published"}
        ``"published"`` takes the paper's height ``min(k / 2, log_b n - 1)``, which reads the number of records n.
    max_nodes : int
        A forest that could not fit raises.
    source, random_state, n_jobs
        As in :class:`~dpforest.papers.edprf.EDPRFClassifier`.

    Attributes
    ----------
    forest_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``epsilon``-differential privacy under ``relation``, sharp: :prf:ref:`thm-random-trees`.  ``"published"``: as
    much where n is public (replace-one), a leak under add-remove (:prf:ref:`pub-random-trees`).

    Source
    ------
    ICDM Workshops 2009, and Transactions on Data Privacy 5, 2012.
    """

    def _width(self, schema):
        return schema.n_classes

    def _ask(self, curator):
        return curator.count_classes

    AUDIT: ClassVar = Audited(
        "random-trees",
        (({}, 2, 1), ({"split": "multiway"}, 2, 1), ({"n_estimators": 2}, 2, 1), ({"variant": "published"}, 4, None)),
        HEIGHT, sizes=(8,), sparing=False,
    )  # fmt: skip


@claim("thm-random-trees", "thm-masses")
class RandomTreesRegressor(_RandomTrees, PrivateForestRegressor):
    """Random trees whose leaves hold two noisy masses of the target, above its lower bound and below its upper one.

    Parameters
    ----------
    epsilon, schema, n_estimators, split, n_bins, relation, variant, max_nodes, source, random_state, n_jobs
        As in :class:`RandomTreesClassifier`; the schema declares a target range.
    max_depth : int or None
        As there; with one tree, 0 gives the private mean.

    Attributes
    ----------
    forest_, ledger_, guarantee_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    As for :class:`RandomTreesClassifier`: one record changes the masses of one leaf of each tree by one record's worth
    (:prf:ref:`thm-random-trees`, :prf:ref:`thm-masses`).

    Source
    ------
    The trees are those of the paper, which has no regression; the leaves are this library's.
    """

    def _width(self, schema):
        return 2

    def _ask(self, curator):
        return curator.sum_masses

    AUDIT: ClassVar = Audited(
        "random-trees-regressor",
        (({}, 2, 1), ({"split": "multiway", "n_estimators": 2}, 2, 1), ({"variant": "published"}, 4, None)),
        HEIGHT, sizes=(8,),
    )  # fmt: skip


def _too_deep(depth: int, needed: int, limit: int) -> str:
    return (
        f"trees of depth {depth} need at least {needed} nodes, more than max_nodes = {limit}: lower max_depth or "
        "n_estimators, use split='binary', or raise max_nodes"
    )
