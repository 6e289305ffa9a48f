"""The states of a node, and their laws, from the code that ships.

A state of a node is the multiset of its records over the features that its path has not used.  The learner is run
once for all states of a node: each state is a data set of its own, which one tree of a large forest sees alone, and a
curator's subclass follows one path and writes down the law of what happens at its end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from sklearn.base import clone

from dpforest import arithmetic
from dpforest.audit.exact.laws import encode
from dpforest.audit.exact.multisets import Multisets
from dpforest.audit.exact.noisy import NoiselessChance, counts_and_rates, geometric_log_ratio
from dpforest.curator import Curator
from dpforest.curator.memory import InMemoryRecords
from dpforest.curator.queries import ClassCounts
from dpforest.curator.selections import FeatureCandidates, LabelCandidates
from dpforest.learners.base import PrivateEstimator
from dpforest.messages import shown
from dpforest.schema import Schema

__all__ = ["Node", "Path", "explore", "log_ratio"]

Path = tuple[int, ...]  # features split on so far, in order

_BATCH = 1 << 17  # states that the learner is run on at a time
_ELSEWHERE = "audit it by replay, with exact_audit"


class Node:
    """The states of a node at the end of ``path``, with their laws."""

    def __init__(self, path: Path, cardinalities: np.ndarray, n_classes: int, n_max: int):
        self.path = path
        self.rest = [feature for feature in range(len(cardinalities)) if feature not in path]
        self.cells = list(product(*(range(cardinalities[f]) for f in self.rest), range(n_classes)))
        self.states = Multisets(len(self.cells), n_max)
        self.rows = self.states.rows()
        self.common = np.flatnonzero(self.rows.sum(axis=1) < n_max)  # states that may get one record more
        self._ranks: dict[tuple, np.ndarray] = {}
        self.n_classes = n_classes
        # probability of each split; read one feature at a time
        self.split = np.zeros((self.states.size, len(self.rest)), order="F")
        self.stop = np.ones(self.states.size)  # probability of a leaf: one where nothing is chosen
        self.kind = ""  # what a leaf says: "label" or "counts"
        self.leaf = np.zeros((self.states.size, n_classes))  # probability of each label, or rate of its count
        # worst log ratios: (state, record more) to state; state to it; and one record more to another one more
        self.more = self.less = self.other = np.empty(0)
        self.never_leaf = False

    def says(self, kind: str) -> np.ndarray:
        self.kind = kind
        return self.leaf

    def take_logs(self) -> None:
        with np.errstate(divide="ignore"):
            self.split, self.stop = arithmetic.log(self.split), arithmetic.log(self.stop)
            self.never_leaf = bool(np.isneginf(self.stop).all())
            if self.kind == "label":
                self.leaf = arithmetic.log(self.leaf) + self.stop[:, None]

    def inner(self, cell: tuple, feature: int) -> tuple[int, tuple]:
        """Code of a cell in ``feature``, and the cell without it."""
        at = self.rest.index(feature)
        return cell[at], cell[:at] + cell[at + 1 :]

    def up(self, cell: int) -> np.ndarray:
        """Index of each of the ``common`` states with one record of kind ``cell`` more."""
        return self._ranked((cell,), lambda: self.states.rank(self.rows[self.common], cell))

    def below(self, child: Node, feature: int, code: int) -> np.ndarray:
        """Index, among the child's states, of the records of each common state with ``code`` in ``feature``."""
        columns = [i for i, cell in enumerate(self.cells) if self.inner(cell, feature)[0] == code]
        return self._ranked(
            (feature, code), lambda: child.states.rank(np.ascontiguousarray(self.rows[self.common][:, columns]))
        )

    def _ranked(self, key: tuple, rank: Callable[[], np.ndarray]) -> np.ndarray:
        if key not in self._ranks:
            self._ranks[key] = rank().astype(np.int32)
        return self._ranks[key]

    def leaf_loss(self, one, other) -> np.ndarray:
        """Worst log ratio of what the leaf says, states ``one`` against states ``other``."""
        if self.never_leaf:
            return np.full(len(one), -np.inf)
        if self.kind == "label":
            return log_ratio(self.leaf[one], self.leaf[other]).max(axis=1)
        worst = log_ratio(self.stop[one], self.stop[other])
        for label in range(self.n_classes):
            mine = [i for i, cell in enumerate(self.cells) if cell[-1] == label]
            shift = np.abs(
                self.rows[one][:, mine].sum(axis=1, dtype=float) - self.rows[other][:, mine].sum(axis=1, dtype=float)
            )
            rates = self.leaf[one, label], self.leaf[other, label]
            worst = worst + np.where(np.isneginf(worst), 0, geometric_log_ratio(shift, *rates))
        return worst


def log_ratio(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """``one - other`` of logarithms; what is impossible on the first side shows nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(one), -np.inf, one - other)


# -- running the learner -------------------------------------------------------------------------------------------


def explore(
    estimator: PrivateEstimator, schema: Schema, epsilon: float, n_max: int, progress: Callable[[int], object]
) -> dict[Path, Node]:
    """Run the learner on every state of the root, and of every node that it may grow.

    ``progress`` is called after each batch of states of the root, with their number.
    """
    nodes: dict[Path, Node] = {}
    cardinalities = schema.cardinalities(estimator.bins(schema))

    def visit(path: Path) -> None:
        node = nodes[path] = Node(path, cardinalities, schema.n_classes, n_max)
        for start in range(0, node.states.size, _BATCH):
            batch = slice(start, min(start + _BATCH, node.states.size))
            _run(estimator, schema, epsilon, node, batch)
            if not path:
                progress(batch.stop - batch.start)
        if not node.kind and not node.split.any():
            raise ValueError(f"this learner says nothing that the curator was asked for: {_ELSEWHERE}")
        grown = [feature for at, feature in enumerate(node.rest) if node.split[:, at].any()]
        node.take_logs()
        for feature in grown:
            visit((*path, feature))

    visit(())
    return nodes


def _run(estimator: PrivateEstimator, schema: Schema, epsilon: float, node: Node, batch: slice) -> None:
    """Run the learner on the states of ``batch``, each as the one tree of its own data set."""
    rows = node.rows[batch]
    n_trees, width = len(rows), schema.n_features + 1
    records = np.zeros((len(node.cells), width), dtype=np.uint8)
    records[:, [*node.rest, -1]] = node.cells
    tree, cell = np.nonzero(rows)
    times = rows[tree, cell]
    # records in the siblings, of every class, so that no node on the way is empty or pure
    decoys = np.zeros((len(node.path), schema.n_classes, width), dtype=np.uint8)
    for at, feature in enumerate(node.path):
        decoys[at, :, feature] = 1
        decoys[at, :, -1] = np.arange(schema.n_classes)
    n_decoys = len(node.path) * schema.n_classes
    table = np.concatenate([records[np.repeat(cell, times)], np.tile(decoys.reshape(n_decoys, width), (n_trees, 1))])
    owner = np.concatenate([np.repeat(tree, times), np.repeat(np.arange(n_trees), n_decoys)]).astype(np.int32)
    model = clone(estimator).set_params(n_estimators=n_trees, max_nodes=np.iinfo(np.int32).max)
    steer = _Steer()
    door = partial(_Spy, steer, node, batch, owner)
    with contextlib.suppress(_Enough):
        model.replay(*encode(table, schema.n_features), schema, epsilon, steer, door)


class _Enough(Exception):
    """The node that was asked about has been decided."""


class _Steer(NoiselessChance):
    """A source of chance that keeps the law of each draw, and takes the branch that ``plan`` gives."""

    def __init__(self):
        super().__init__()
        self.plan: Callable[[np.ndarray], np.ndarray]  # law -> index of the branch, one per row
        self.law = np.empty((0, 0))

    def select(self, kind, law, scores, rate):
        self.law = law(scores, rate)
        return self.plan(self.law)

    def __getattr__(self, verb):
        raise ValueError(
            f"this learner draws {shown(verb)} of its own, so its nodes have no law by themselves: {_ELSEWHERE}"
        )


class _Spy(Curator):
    """Gives every data set a tree of its own, and writes down the law of the node at the end of ``node.path``."""

    def __init__(self, steer: _Steer, node: Node, batch: slice, owner: np.ndarray, *table, **doors):
        super().__init__(*table, **doors)
        self._steer, self._node, self._batch, self._owner, self._level = steer, node, batch, owner, 0
        records = InMemoryRecords(*table)
        records.n_records = node.states.n_max  # of the largest data set, not of all together
        self._records = records

    def assign(self, n_trees):
        self._records.whole().assignment = self._owner

    split_equally = assign

    def size(self, leak):
        raise ValueError(f"this learner asks for the number of records: {_ELSEWHERE}")

    def _another(self, *args, **kwargs):
        raise ValueError(f"this learner asks for more than features, labels and class counts: {_ELSEWHERE}")

    bootstrap = poisson_bootstrap = _another

    def choose(self, candidates, *asked):
        if isinstance(candidates, FeatureCandidates):
            return self._feature(candidates, *asked)
        if isinstance(candidates, LabelCandidates):
            return self._label(candidates, *asked)
        return self._another()

    def _feature(self, candidates, *asked):
        level, path = self._level, self._node.path
        self._level += 1
        if level > len(path):
            raise _Enough
        if level < len(path):
            self._steer.plan = lambda law: np.full(len(law), 1 + path[level])
            return super().choose(candidates, *asked)
        # stop wherever that is possible: what the leaf says is the other half of the law
        self._steer.plan = lambda law: np.where(law[:, 0] > 0, 0, law.argmax(axis=1))
        choice = super().choose(candidates, *asked)
        trees, rows = self._mine(candidates.splits, candidates.nodes)
        law = self._steer.law[rows]
        self._node.split[self._batch][trees] = law[:, [1 + feature for feature in self._node.rest]]
        self._node.stop[self._batch][trees] = law[:, 0]
        if not (law[:, 0] > 0).any() and len(trees) == len(candidates.splits.roots):
            raise _Enough
        return choice

    def _label(self, candidates, *asked):
        self._steer.plan = lambda law: np.zeros(len(law), dtype=np.int64)
        labels = super().choose(candidates, *asked)
        trees, rows = self._mine(candidates.splits, candidates.nodes)
        self._node.says("label")[self._batch][trees] = self._steer.law[rows]
        return labels

    def noisy(self, query, scopes, epsilon):
        if not isinstance(query, ClassCounts):
            self._another()
        counts, rates = counts_and_rates(self._steer, partial(super().noisy, query, scopes, epsilon))
        trees, rows = self._mine(query.splits, query.nodes)
        self._node.says("counts")[self._batch][trees] = rates[rows]
        return counts

    def _mine(self, splits, nodes):
        """Trees whose node at the end of the path is among ``nodes``, and the place of that node there."""
        if self._records.whole().assignment is not self._owner:
            raise ValueError(f"the trees of this learner read the same records, so no tree is alone: {_ELSEWHERE}")
        at = np.array(splits.roots)
        for feature in self._node.path:
            grown = (at >= 0) & (splits.feature[at] == feature)
            at = np.where(grown, splits.first_child[at], -1)  # the path follows code 0
        where = np.full(splits.n_nodes + 1, -1)
        where[nodes] = np.arange(len(nodes))
        rows = where[at]
        return np.flatnonzero(rows >= 0), rows[rows >= 0]
