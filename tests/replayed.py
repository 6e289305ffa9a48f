"""The exact law of the trees of a fit that ships, replayed over every draw, with exact counts in the leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import oracle
import pytest

from dpforest import Schema
from dpforest.audit.exact.enumeration import ExactAudit, audit_pairs
from dpforest.chance import outcomes
from dpforest.curator import Curator
from dpforest.curator.queries import RecordCounts


class Exact(Curator):
    """Exact class counts, each beside what was asked for it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.leaves: dict[int, tuple] = {}

    def noisy(self, query, scopes, epsilon):
        if isinstance(query, RecordCounts):
            return self.records(query, epsilon)
        counts = self._exact(query)
        for node, row, budget in zip(query.nodes, counts, np.broadcast_to(epsilon, len(counts)), strict=True):
            self.leaves[int(node)] = "leaf", tuple(row.tolist()), round(float(budget), 9)
        return counts

    def records(self, query, epsilon):
        """What is said of the numbers of records."""
        return np.zeros(len(query.nodes), dtype=np.int64)


def encoded(data, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """The codes and the labels of records that are tuples of codes."""
    table = np.array(data, dtype=np.uint8).reshape(-1, schema.n_features + 1)
    return np.ascontiguousarray(table[:, :-1].T), np.ascontiguousarray(table[:, -1])


def one_of_each(loss: Callable, records, size: int, relation: str, names) -> list[tuple]:
    """Neighbours of at most so many records, one of those that a renaming of records makes the same.

    Two others, drawn at random, must have the ``loss`` of the pair that stands for them.
    """
    pairs = list(oracle.pairs(records, size, relation))
    for drawn in np.random.default_rng(0).choice(len(pairs), 2, replace=False):
        [alike] = oracle.up_to_renaming([pairs[drawn]], names)
        assert loss(*pairs[drawn]) == pytest.approx(loss(*alike), rel=1e-9, abs=1e-12)
    return oracle.up_to_renaming(pairs, names)


def audit_up_to_renaming(model, records, n_max: int, names, **options) -> ExactAudit:
    """The exact audit over :func:`one_of_each`."""

    def audit(*pairs):
        return audit_pairs(model, set().union(*pairs), pairs, **options)

    return audit(*one_of_each(lambda *pair: audit(pair).epsilon, records, n_max, model.relation, names))


def law_of_trees(model, schema: Schema, data, kind: type[Exact] = Exact, cut: Callable | None = None) -> dict:
    """Nested tree -> probability, for a forest of one tree; ``cut(forest, node)`` says what a split has beside it."""
    codes, labels = encoded(data, schema)
    law: dict = defaultdict(float)
    doors: list[Exact] = []

    def door(*args, **kwargs):
        doors.append(kind(*args, **kwargs))
        return doors[-1]

    def nested(forest, leaves, node):
        if forest.feature[node] < 0:
            return leaves[node]
        children = range(forest.first_child[node], forest.first_child[node] + forest.arity[node])
        split = "split", int(forest.feature[node]), *((cut(forest, node),) if cut else ())
        return *split, *(nested(forest, leaves, child) for child in children)

    for (forest, _), probability in outcomes(
        lambda chance: model.replay(codes, labels, schema, model.epsilon, chance, door)
    ):
        law[nested(forest, doors.pop().leaves, 0)] += probability
    return dict(law)
