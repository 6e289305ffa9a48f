"""The exact law of the trees of a fit that ships, replayed over every draw, with exact counts in the leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import oracle
import pytest

from dpforest import Schema
from dpforest.audit.exact.replay import ExactAudit, audit_pairs
from dpforest.chance import outcomes
from dpforest.curator import Curator


class Exact(Curator):
    """Exact class counts, each beside what was asked for it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.leaves: dict[int, tuple] = {}

    def count_classes(self, splits, nodes, scopes, epsilon):
        counts = self._class_counts(splits, nodes)
        for node, row, budget in zip(nodes, counts, np.broadcast_to(epsilon, len(nodes)), strict=True):
            self.leaves[int(node)] = "leaf", tuple(row.tolist()), round(float(budget), 9)
        return counts

    def count_records(self, splits, nodes, scopes, epsilon):
        return np.zeros(len(nodes), dtype=np.int64)


def encoded(data, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """The codes and the labels of records that are tuples of codes."""
    table = np.array(data, dtype=np.uint8).reshape(-1, schema.n_features + 1)
    return np.ascontiguousarray(table[:, :-1].T), np.ascontiguousarray(table[:, -1])


def audit_up_to_renaming(model, records, n_max: int, names) -> ExactAudit:
    """The exact audit over all neighbours of at most so many records, but one of those that renaming makes the same.

    ``names`` are the renamings of records.  Two other pairs, drawn at random, lose what the one that stands for them
    loses.
    """
    pairs = list(oracle.pairs(records, n_max, model.relation))

    def audit(some):
        return audit_pairs(model, set().union(*some), some)

    for drawn in np.random.default_rng(0).choice(len(pairs), 2, replace=False):
        [alike] = oracle.up_to_renaming([pairs[drawn]], names)
        assert audit([pairs[drawn]]).epsilon == pytest.approx(audit([alike]).epsilon, rel=1e-9, abs=1e-12)
    return audit(oracle.up_to_renaming(pairs, names))


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
