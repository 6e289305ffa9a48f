"""The exact loss of a tree over universes too large to replay, one root-to-leaf path at a time.

Neighbours differ in one record, so they differ only in the nodes on that record's path: all other factors of the
likelihood ratio cancel.  The worst ratio therefore follows a recursion over the *states* of a node, and a state is
no more than the multiset of the node's records over the features that the path has not used.  The laws of the
states are those of the code that ships: it is run once for all states, each as the one tree of its own data set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from tqdm import tqdm

from dpforest import arithmetic
from dpforest.audit.exact.enumeration import ExactAudit
from dpforest.audit.exact.multisets import check_size
from dpforest.audit.exact.states import Node, explore, log_ratio
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, NON_PRIVATE, check_epsilon, claim

__all__ = ["path_audit"]


@claim("thm-worst-path")
def path_audit(
    estimator: PrivateEstimator, *, n_max: int, max_states: int = 20_000_000, progress: bool = False
) -> ExactAudit:
    """The true loss of a one-tree ``estimator`` over all neighbours with at most ``n_max`` records, path by path.

    Parameters
    ----------
    estimator : PrivateEstimator
        Configured, not fitted, with ``n_estimators=1``.  Its splits are multiway and its leaves say a label or noisy
        counts.  What happens in a node may depend on the path's features and on the node's own records only, as it
        does in :class:`~dpforest.papers.edprf.EDPRFClassifier`.
    n_max : int
        Largest number of records.
    max_states : int
        A universe with more data sets raises, with its size.
    progress : bool
        Show a progress bar.

    Returns
    -------
    ExactAudit
        ``output`` says in words what is released along the path of the differing record, and ``probabilities`` are
        those of that event.

    Raises
    ------
    ValueError
        If the learner has several trees, is not private, asks the curator for something else than features, labels
        and counts, or if the universe is too large.

    Guarantee
    ---------
    The loss is exact up to rounding: :prf:ref:`thm-worst-path`.
    """
    check_count(n_max, "n_max")
    universe = _StateSpace(estimator, n_max, max_states)
    with tqdm(total=universe.size, disable=not progress, unit="state", unit_scale=True) as bar:
        universe.explore(bar.update)
    universe.settle()
    loss, at, one, other = universe.worst()
    event, probabilities = universe.witness(at, one, other)
    pair = universe.dataset(at, one), universe.dataset(at, other)
    return ExactAudit(
        loss,
        check_epsilon(estimator.epsilon),
        estimator.relation,
        pair,
        event,
        probabilities,
        universe.nodes[()].states.size,
        universe.n_pairs(),
        universe.n_outputs(()),
    )


class _StateSpace:
    """All states of all nodes, their laws, and the losses that follow from them."""

    def __init__(self, estimator: PrivateEstimator, n_max: int, max_states: int):
        if getattr(estimator, "n_estimators", 1) != 1:
            raise ValueError(
                "path by path is for one tree: set n_estimators=1, since trees that share no record lose together "
                "what one loses (thm-assignment), or replay a small universe with exact_audit"
            )
        if delta := estimator.promised_delta():
            raise ValueError(
                f"path by path adds up the worst ratio of each step, and a delta of {delta:g} speaks of means over all "
                "outputs: replay a small universe with exact_audit"
            )
        self.epsilon = check_epsilon(estimator.epsilon)
        if math.isinf(self.epsilon):
            raise ValueError(f"epsilon={shown(NON_PRIVATE)} promises nothing, so there is nothing to audit")
        self.schema = estimator.audited_schema()
        if self.schema.classes is None:
            raise ValueError("path by path is for classifiers: replay a regressor with exact_audit")
        estimator.check_parameters()
        self.estimator, self.n_max, self.relation = estimator, n_max, estimator.relation
        self.cardinalities = self.schema.cardinalities(estimator.bins(self.schema))
        kinds = math.prod(self.cardinalities.tolist()) * self.schema.n_classes
        self.size = check_size(kinds, n_max, max_states, "max_states", "or raise max_states")
        if (self.cardinalities < 2).any():
            raise ValueError("a feature with one code splits nothing: leave it out of the schema")
        if not {"n_estimators", "max_nodes"} <= estimator.get_params().keys():
            raise ValueError("path by path needs a learner with n_estimators and max_nodes; replay it with exact_audit")
        widest = int(self.cardinalities.max()) ** (len(self.cardinalities) + 1)
        if estimator.max_nodes < widest:
            raise ValueError(
                f"max_nodes = {estimator.max_nodes} might bind, and then nodes are not alone: raise it to {widest}"
            )
        cap = getattr(estimator, "n_max", math.inf)
        if n_max > cap:
            raise ValueError(f"the estimator promises at most n_max = {cap} records, so audit no more than that")
        self.nodes: dict[tuple, Node] = {}

    def explore(self, progress) -> None:
        """Learn the laws of all states of all nodes."""
        self.nodes = explore(self.estimator, self.schema, self.epsilon, self.n_max, progress)

    # -- losses ------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Worst log ratios of every state below the root, deepest nodes first, with every record that may differ."""
        for path in sorted(self.nodes, key=len, reverse=True)[:-1]:
            node = self.nodes[path]
            shape = (node.states.size, len(node.cells))
            node.more, node.less = np.full(shape, np.nan), np.full(shape, np.nan)
            for cell in range(len(node.cells)):
                node.more[node.common, cell], node.less[node.common, cell] = self._added(node, cell)
            if self.relation != ADD_REMOVE:
                node.other = np.zeros((*shape, len(node.cells)))
                for pair in combinations(range(len(node.cells)), 2):
                    node.other[node.common, *pair], node.other[node.common, *pair[::-1]] = self._replaced(node, *pair)

    def _added(self, node: Node, cell: int) -> tuple[np.ndarray, np.ndarray]:
        """Worst log ratio of each common state with one record more to the state itself, and the other way round."""
        one, other = node.up(cell), node.common
        more, less = [node.leaf_loss(one, other)], [node.leaf_loss(other, one)]
        for at, feature, child in self._children(node):
            ratio = node.split[one, at], node.split[other, at]
            gain, loss = self._below(node, child, feature, cell)
            more.append(_then(log_ratio(*ratio), gain))
            less.append(_then(log_ratio(*ratio[::-1]), loss))
        return np.max(more, axis=0), np.max(less, axis=0)

    def _replaced(self, node: Node, cell: int, instead: int) -> tuple[np.ndarray, np.ndarray]:
        """Worst log ratio of each common state with a record ``cell`` more to the same with ``instead``, and back."""
        one, other = node.up(cell), node.up(instead)
        there, back = [node.leaf_loss(one, other)], [node.leaf_loss(other, one)]
        for at, feature, child in self._children(node):
            ratio = node.split[one, at], node.split[other, at]
            (code, rest), (code_b, rest_b) = (node.inner(node.cells[c], feature) for c in (cell, instead))
            if code == code_b:
                below, inside, inside_b = node.below(child, feature, code), *map(child.cells.index, (rest, rest_b))
                ways = child.other[below, inside, inside_b], child.other[below, inside_b, inside]
            else:  # the records part ways: one child has a record more, another has one less
                gains, losses = zip(*(self._below(node, child, feature, c) for c in (cell, instead)), strict=True)
                ways = gains[0] + losses[1], losses[0] + gains[1]
            there.append(_then(log_ratio(*ratio), ways[0]))
            back.append(_then(log_ratio(*ratio[::-1]), ways[1]))
        return np.max(there, axis=0), np.max(back, axis=0)

    def _below(self, node: Node, child: Node, feature: int, cell: int) -> tuple[np.ndarray, np.ndarray]:
        """The child's losses, with the record ``cell`` more and without it, for each common state of the node."""
        code, rest = node.inner(node.cells[cell], feature)
        below, inside = node.below(child, feature, code), child.cells.index(rest)
        return child.more[below, inside], child.less[below, inside]

    def _children(self, node: Node) -> Iterator[tuple[int, int, Node]]:
        for at, feature in enumerate(node.rest):
            if (child := self.nodes.get((*node.path, feature))) is not None:
                yield at, feature, child

    def worst(self) -> tuple[float, int, int | None, int | None]:
        """Largest loss at the root: which common records, and the kinds added to them on either side."""
        root = self.nodes[()]
        best: tuple[float, int, int | None, int | None] = (-math.inf, 0, None, None)
        for cell in self._representatives():
            others: list[int | None] = [None]
            if self.relation != ADD_REMOVE:
                others = [instead for instead in range(len(root.cells)) if instead != cell]
            for instead in others:
                ways = self._added(root, cell) if instead is None else self._replaced(root, cell, instead)
                for losses, one, other in ((ways[0], cell, instead), (ways[1], instead, cell)):
                    at = int(losses.argmax())
                    if losses[at] > best[0]:
                        best = float(losses[at]), at, one, other
        return best

    def _representatives(self) -> list[int]:
        """One kind of record of each orbit of the symmetries that the laws are seen to have."""
        cells = self.nodes[()].cells
        group = list(range(len(cells)))  # the orbit of each cell
        for column, size in enumerate([*self.cardinalities, self.schema.n_classes]):
            for code in range(size - 1):
                swap = {code: code + 1, code + 1: code}
                if all(self._symmetric(node, column, swap) for node in self.nodes.values()):
                    for at, cell in enumerate(cells):
                        image = cells.index((*cell[:column], swap.get(cell[column], cell[column]), *cell[column + 1 :]))
                        old, new = group[at], group[image]
                        group = [min(old, new) if g in (old, new) else g for g in group]
        return sorted(set(group))

    def _symmetric(self, node: Node, column: int, swap: dict[int, int]) -> bool:
        """Whether the node's laws stay as they are when two codes of a feature, or two classes, change names."""
        label = column == len(self.cardinalities)
        if not label and column not in node.rest:
            return True
        at = len(node.rest) if label else node.rest.index(column)
        image = [node.cells.index((*c[:at], swap.get(c[at], c[at]), *c[at + 1 :])) for c in node.cells]
        to = node.states.rank(np.ascontiguousarray(node.rows[:, image]))
        classes = [swap.get(c, c) for c in range(node.n_classes)] if label else slice(None)
        pairs = (node.split, node.split[to]), (node.stop, node.stop[to]), (node.leaf[:, classes], node.leaf[to])
        return all(_same(one, other) for one, other in pairs)

    # -- words -------------------------------------------------------------------------------------------------

    def dataset(self, at: int, plus: int | None) -> tuple:
        """The common records number ``at``, with one of kind ``plus`` more."""
        root = self.nodes[()]
        records = np.repeat(np.arange(len(root.cells)), root.rows[root.common[at]])
        return tuple(sorted(root.cells[i] for i in [*records.tolist(), *([] if plus is None else [plus])]))

    def n_pairs(self) -> int:
        """Unordered pairs of neighbours: a common part, and what is added to it."""
        root = self.nodes[()]
        kinds = len(root.cells)
        return len(root.common) * (kinds if self.relation == ADD_REMOVE else math.comb(kinds, 2))

    def n_outputs(self, path: tuple) -> float:
        """How many trees may grow from here; infinite where leaves hold noisy counts."""
        node = self.nodes[path]
        leaf = 0 if node.never_leaf else (node.n_classes if node.kind == "label" else math.inf)
        return leaf + sum(
            self.n_outputs(child.path) ** int(self.cardinalities[feature]) for _, feature, child in self._children(node)
        )

    def witness(self, at: int, one: int | None, other: int | None) -> tuple[str, tuple[float, float]]:
        """What to look at in the released tree, and how probable it is on either data set."""
        words, first, second = self._follow(self.nodes[()], at, one, other, "the root")
        return "; ".join(words), (arithmetic.exp(first), arithmetic.exp(second))

    def _follow(
        self, node: Node, at: int, one: int | None, other: int | None, name: str
    ) -> tuple[list[str], float, float]:
        """Take the branch where the ratio is largest, down to the leaves that the differing records reach."""
        first, second = (int(node.common[at] if c is None else node.up(c)[at]) for c in (one, other))
        best, branch = float(node.leaf_loss(np.array([first]), np.array([second]))[0]), None
        for position, feature, child in self._children(node):
            p, q = float(node.split[first, position]), float(node.split[second, position])
            inside = self._inside(node, child, feature, at, one, other)
            below = sum(self._known(child, *place) for _, *place in inside) if math.isfinite(p - q) else 0.0
            if not math.isinf(p) and p - q + below > best:
                best, branch = p - q + below, (feature, inside, child, p, q)
        if branch is None:
            if node.kind == "counts":
                return [f"{name} is a leaf, with noisy counts beyond both"], node.stop[first], node.stop[second]
            label = int(np.argmax(log_ratio(node.leaf[first], node.leaf[second])))
            spoken = f"{name} is a leaf that says {np.asarray(self.schema.classes)[label]}"
            return [spoken], node.leaf[first, label], node.leaf[second, label]
        feature, inside, child, p, q = branch
        words = [f"{name} splits on {self.schema.columns[feature]}"]
        if math.isinf(q):
            return words, p, q
        for code, below, mine, theirs in inside:
            said, more, less = self._follow(child, below, mine, theirs, f"child {code} of {name}")
            words, p, q = words + said, p + more, q + less
        return words, p, q

    def _inside(self, node: Node, child: Node, feature: int, at: int, one: int | None, other: int | None) -> list:
        """The children that the differing records enter: code, number of the common records there, records."""
        places: dict[int, list[int | None]] = {}
        for side, cell in enumerate((one, other)):
            if cell is not None:
                code, rest = node.inner(node.cells[cell], feature)
                places.setdefault(code, [None, None])[side] = child.cells.index(rest)
        found = []
        for code, (mine, theirs) in places.items():
            if mine != theirs:
                state = node.below(child, feature, code)[at]
                found.append((code, int(np.searchsorted(child.common, state)), mine, theirs))
        return found

    def _known(self, child: Node, at: int, one: int | None, other: int | None) -> float:
        state = child.common[at]
        if other is None:
            return float(child.more[state, one])
        return float(child.less[state, other] if one is None else child.other[state, one, other])


def _then(ratio: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A branch's log ratio and what follows below it: nothing follows a branch that one side cannot take."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(ratio), ratio, ratio + below)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(((one == other) | (np.abs(one - other) <= 1e-12)).all())
