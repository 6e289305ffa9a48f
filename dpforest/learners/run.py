"""The run of one fit: what the steps of a paper may do, and nothing else.

A run asks the :class:`~dpforest.curator.Curator` about nodes of the public trees that grow, at a stated budget, and
grows the trees by its answers.  Where a list of nodes is empty, nothing is asked and nothing charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from dpforest import mechanisms
from dpforest.chance import Chance
from dpforest.curator import STOP, Curator, Selection
from dpforest.curator.filters import FilterLimits
from dpforest.curator.peeks import Leak
from dpforest.curator.queries import (
    CellGradients,
    CellResiduals,
    CellWeights,
    ClassCounts,
    GroupHessians,
    GroupResiduals,
    HeldOutCounts,
    Histograms,
    Joined,
    LargestWeight,
    LeafSteps,
    Masses,
    Moments,
    RecordCounts,
    ResidualCounts,
    TableCounts,
    TargetSums,
    WeightedError,
    WideResiduals,
)
from dpforest.curator.selections import (
    BinaryCandidates,
    Candidates,
    CutCandidates,
    DivisionCandidates,
    FeatureCandidates,
    LabelCandidates,
    MarginalCandidates,
    TableCandidates,
)
from dpforest.design import Design, Weights
from dpforest.learners.growth import MAX_NODES, Frontier, Growth
from dpforest.learners.progress import shown
from dpforest.learners.sharing import share_out
from dpforest.models.boosted import SCALE
from dpforest.models.forest import Forest
from dpforest.privacy import RELATIONS, Ledger, claim, in_charges
from dpforest.schema import Schema
from dpforest.scores import Score
from dpforest.structure.crossings import Crossings

__all__ = ["Leak", "Run", "Selection"]


class Run:
    """One fit of a learner.

    Parameters
    ----------
    curator : Curator
        The door to the records.
    chance : Chance
        The door to randomness, for what is drawn without looking at a record.
    schema : Schema
    ledger : Ledger
        Where the curator writes the charges.
    epsilon : float
        Budget of the fit; infinite for no noise.
    alone : float or None
        Budget of the fit without a delta, if that is more than ``epsilon``; None: ``epsilon``.

    Attributes
    ----------
    relation : {"add-remove", "replace-one"}
    sizes : ndarray of int, shape (n_features,)
        Codes of each feature.
    ordered : ndarray of bool, shape (n_features,)
        Which features are numeric.
    growth : Growth
        The trees, from :meth:`start_forest` on.
    """

    growth: Growth
    _in_rounds = False

    def __init__(
        self,
        curator: Curator,
        chance: Chance,
        schema: Schema,
        ledger: Ledger,
        epsilon: float,
        alone: float | None = None,
    ) -> None:
        self.curator, self.chance, self.schema, self.ledger, self.epsilon = curator, chance, schema, ledger, epsilon
        self._alone = epsilon if alone is None else alone
        self.relation = ledger.relation
        self.sizes = curator.cardinalities
        self.ordered = np.array([name in schema.numeric for name in schema.columns], dtype=bool)

    @property
    def budget(self) -> float:
        """Budget of the fit in the unit of the charges, epsilon, or under a delta the rho of epsilon and delta."""
        return in_charges(self.epsilon, self.ledger.delta)

    def without_delta(self, by_answers: bool = False) -> None:
        """Spend epsilon without a delta from now on, before anything is spent: that implies privacy with any delta.

        ``by_answers``: whether :meth:`with_delta` follows will depend on a noisy answer.
        """
        self._with_delta = self.ledger.delta, self.epsilon
        self.ledger.drop_delta(by_answers)
        self.epsilon = max(self.epsilon, self._alone)

    def with_delta(self) -> None:
        """Spend the rho of epsilon and delta from now on; a loss spent before counts as half its square."""
        delta, self.epsilon = self._with_delta
        self.ledger.take_delta(delta)

    def spent_share(self) -> float:
        """Share of the budget that is spent, from 0 to 1, while every charge is to a scope that has all records."""
        return self.ledger.paid(self.relation) / self.budget if self.budget < math.inf else 0.0

    def even_answers(self, delta: float) -> float:
        """Number of answers, of equal budgets, from which on noise is smaller with the delta than without.

        Without, each of k sums has noise of variance ``2 (k / epsilon)^2``; with it, ``k / (2 rho)``.
        """
        return max(self.epsilon, self._alone) ** 2 / (4 * in_charges(self.epsilon, delta))

    # -- the trees -------------------------------------------------------------------------------------------

    def start_forest(
        self, n_trees: int, sampling: str = "all", max_nodes: int = MAX_NODES, n_values: int | None = None
    ) -> float:
        """Start the trees as roots, and share the records among them; returns the budget of each tree.

        Parameters
        ----------
        n_trees : int
        sampling : {"all", "assignment", "poisson", "bootstrap", "equal-split"}
            How the trees share the records: :func:`~dpforest.learners.sharing.share_out`.
        max_nodes : int
            Nodes of all trees together, at most.
        n_values : int or None
            Numbers that a leaf holds; None: one for each class, or two of a regression.
        """
        each, kind = share_out(sampling, self.curator, self.budget, n_trees, self.relation)
        values = n_values or self.schema.n_classes or 2  # a schema with a target has 0 classes
        self.growth = Growth(n_trees, self.schema.n_features, values, self.ledger, kind, max_nodes)
        return each

    @property
    def frontier(self) -> Frontier:
        """The nodes that may be split now, which are the newest level."""
        return self.growth.frontier

    def rounds(self, n_rounds: int) -> Iterator[int]:
        """Boosting, one tree after the other: the number of the tree whose root is the frontier now, from 0."""
        for number in shown(range(n_rounds), n_rounds, "rounds"):
            self._in_rounds = True  # the bar shows rounds, and not the levels within them
            self.growth.begin(number)
            yield number

    def levels(self, depth: int) -> Iterator[tuple[int, Frontier]]:
        """Level by level, from 1 to ``depth``, while there are nodes: the level and its nodes."""
        numbers = range(1, depth + 1)
        for level in numbers if self._in_rounds else shown(numbers, depth, "levels"):
            if not len(self.frontier):
                return
            yield level, self.frontier

    def split_multiway(self, nodes: Frontier, features: np.ndarray) -> Frontier:
        """Split each node by its feature, one child per code, if there is room; returns those that stay leaves.

        ``features`` is ``STOP`` where a selection chose to stop.  A feature is not used again below.
        """
        arities = self.sizes[features]
        # STOP is -1: such a node gets the last feature's size, which is not used
        grows = self.has_room(features, arities)
        self.growth.add_children(nodes[grows], features[grows], arities[grows])
        return nodes[~grows]

    def split_binary(self, nodes: Frontier, features: np.ndarray, masks: np.ndarray, reuse: bool = True) -> None:
        """Split each node in two, which may split on the same feature again if ``reuse``.

        ``masks`` (uint64, n_nodes by 4) say which codes of the ``features`` go to the second child.
        """
        self.growth.add_children(nodes, features, np.full(len(nodes), 2), masks=masks, reuse=reuse)

    def split_chosen(self, nodes: Frontier, features: np.ndarray, masks: np.ndarray, choice: np.ndarray) -> Frontier:
        """Cut each node in two by its chosen candidate, if there is room; returns those that stay leaves.

        ``choice`` is a place among the candidates, or ``STOP``.  A feature may be used again below.
        """
        grows = self.has_room(choice)
        at = np.flatnonzero(grows), choice[grows]
        self.split_binary(nodes[grows], features[at], masks[at])
        return nodes[~grows]

    def has_room(self, choice: np.ndarray, arities: np.ndarray | int = 2) -> np.ndarray:
        """Which nodes grow: those that did not choose to stop, in their order, while ``max_nodes`` allows."""
        return (choice != STOP) & self.growth.has_room(np.where(choice == STOP, 0, arities))

    def within_max_nodes(self, n_nodes: int) -> np.ndarray:
        """Which of so many nodes, in their order, may have two children, while ``max_nodes`` allows."""
        return self.has_room(np.zeros(n_nodes, dtype=int))

    def set_leaf_values(self, leaves: Frontier, values: np.ndarray) -> None:
        """Set what these leaves hold: int64, shape (n_leaves, n_values)."""
        if len(leaves):
            self.growth.set_leaf_values(leaves, values)

    def tree(self, number: int) -> Forest:
        """One of the trees, as far as it has grown."""
        return self.growth.release().tree(number)

    def release(self, shrinkage: float = 0.0) -> Forest:
        """The finished forest."""
        return self.growth.release(shrinkage)

    def parts(self, label: str, n_parts: int) -> np.ndarray:
        """Open ledger scopes for disjoint parts of the records, apart from those of the trees: int, (n_parts,)."""
        return self.ledger.open(label, np.repeat(self.ledger.open(label, [0]), n_parts))

    # -- the records that are asked -----------------------------------------------------------------------------

    def weigh_records(
        self, tree: Forest | None, votes: np.ndarray | None, rule: str, class_weights: np.ndarray | None = None
    ) -> None:
        """Set each record's weight, at most 1, by the margin of its own class in the scores of the released trees.

        Parameters
        ----------
        tree : Forest or None
            The newest released tree, whose votes are added to the scores.
        votes : ndarray of float64, shape (n_nodes, n_classes), or None
            Votes of its nodes.
        rule : str
            One of the curator's ``WEIGHTS``.
        class_weights : ndarray of float or None
            Public weights of the classes, from 0 to 1.
        """
        self.curator.weigh_records(tree, votes, class_weights=class_weights, rule=rule)

    def hold_out(self, share: float) -> None:
        """Put a random share of the records aside, which only :meth:`peek_held_out` reads."""
        self.curator.hold_out(share)

    def partition_records(self, n_parts: int) -> None:
        """Assign each record to a part, by a coin of its own, for scores that are means over the parts."""
        self.curator.partition_records(n_parts)

    # -- questions that are charged --------------------------------------------------------------------------

    def choose_feature(
        self, nodes: Frontier, epsilon: float | np.ndarray, how: Selection, allowed: np.ndarray | None = None
    ) -> np.ndarray:
        """The feature that each node splits on, one of its unused or of the ``allowed`` ones, or ``STOP``."""
        candidates = nodes.unused if allowed is None else allowed
        return self._choose(FeatureCandidates(self.growth, nodes.nodes, candidates), nodes, epsilon, how)

    def choose_cut(
        self, nodes: Frontier, columns: np.ndarray, epsilon: float | np.ndarray, how: Selection
    ) -> np.ndarray:
        """The cut of each node among its ``columns``, see ``dpforest.learners.cart.Cuts``, or ``STOP``."""
        return self._choose(CutCandidates(self.growth, nodes.nodes, columns), nodes, epsilon, how)

    def choose_candidate(
        self, nodes: Frontier, features: np.ndarray, masks: np.ndarray, epsilon: float | np.ndarray, how: Selection
    ) -> np.ndarray:
        """The place of each node's choice among its binary candidates, or ``STOP``."""
        return self._choose(BinaryCandidates(self.growth, nodes.nodes, features, masks), nodes, epsilon, how)

    def choose_at_noisy_rates(
        self, nodes: Frontier, features: np.ndarray, masks: np.ndarray, epsilon: np.ndarray, how: Selection, leak: Leak
    ) -> np.ndarray:
        """As :meth:`choose_candidate`, with budgets that follow from an earlier answer and have no bound; a leak.

        The ledger is charged what this run costs; another run may cost more.
        """
        if len(nodes):
            self.ledger.leak(*leak)
        return self.choose_candidate(nodes, features, masks, epsilon, how)

    def choose_label(self, leaves: Frontier, epsilon: float | np.ndarray, how: Selection) -> np.ndarray:
        """The label of each leaf, a class code."""
        return self._choose(LabelCandidates(self.growth, leaves.nodes), leaves, epsilon, how)

    def _choose(
        self, candidates: Candidates, nodes: Frontier, epsilon: float | np.ndarray, how: Selection
    ) -> np.ndarray:
        """The choice of each node, charged to it; none where there is no node."""
        if not len(nodes):
            return np.zeros(0, dtype=np.int64)
        return self.curator.choose(candidates, nodes.scopes, epsilon, how)

    def choose_division(
        self,
        nodes: Frontier,
        features: np.ndarray,
        children: np.ndarray,
        epsilon: float,
        how: Selection,
        scopes: np.ndarray,
        tree: Forest | None = None,
    ) -> int:
        """Choose one division of a feature's codes for all these nodes of a tree together: its place among K.

        ``features`` (K,) are the features that are divided, ``children`` (K, 256) the child of each code, -1 where its
        records do not count.  ``scopes`` is the one ledger scope that has all records of the nodes, and ``tree``
        another tree than the one that grows.
        """
        splits = self.growth if tree is None else tree
        [choice] = self.curator.choose(
            DivisionCandidates(splits, nodes.nodes, features, children), scopes, epsilon, how
        )
        return int(choice)

    def count_classes(self, leaves: Frontier, epsilon: float | np.ndarray, tree: Forest | None = None) -> np.ndarray:
        """Noisy class counts of each leaf, of the trees that grow or of another ``tree``: int64, (n_leaves, n_classes).

        Where records have weights these are counted, in steps of ``1 / unit``.
        """
        if not len(leaves):
            return np.zeros((0, self.curator.n_classes), dtype=np.int64)
        query = ClassCounts(self.growth if tree is None else tree, leaves.nodes)
        return self.curator.noisy(query, leaves.scopes, epsilon)

    @property
    def unit(self) -> int:
        """Number of steps in a weight of 1, the factor of weighted counts; 1 without weights."""
        return self.curator.unit

    def add_scores(self, tree: Forest) -> None:
        """Add the votes of a released tree to each record's scores, for the next questions about crossed tables."""
        self.curator.add_scores(tree, tree.values / SCALE)

    def choose_table(self, candidates: TableCandidates, epsilon: float, how: Selection) -> tuple[int, int]:
        """Choose one table and one side among candidates, charged to the frontier, a root: the places of both.

        Where the sides are scored together, that of the side is 0.
        """
        [choice] = self.curator.choose(candidates, self.frontier.scopes, epsilon, how)
        side, table = divmod(int(choice), len(candidates.crossings))
        return table, side

    def choose_marginal(self, candidates: MarginalCandidates, budget: float, how: Selection) -> int:
        """Choose one marginal, charged to the frontier, a root: its place among the candidates."""
        [choice] = self.curator.choose(candidates, self.frontier.scopes, budget, how)
        return int(choice)

    def count_table(self, crossing: Crossings, budget: float, by_class: bool = True) -> np.ndarray:
        """Noisy class counts in each cell of a table, int64, (n_cells, n_classes), charged to the frontier, a root.

        Without ``by_class``, numbers of records: (n_cells, 1).
        """
        return self.curator.noisy(TableCounts(crossing, by_class), self.frontier.scopes, budget)[0]

    def count_crossing(self, crossing: Crossings, side: float, leaves: Frontier, epsilon: float) -> np.ndarray:
        """Noisy weights of both sides in each cell of a table, in steps of ``1 / FINE``: shape (n_cells, 2).

        The sides are the other classes and the target class, ``side``; of a regression, residuals below 0 and above,
        clipped at ``side``.  Each cell is one of the ``leaves``, and is charged to it.
        """
        return self.curator.noisy(CellWeights(crossing, side), leaves.scopes, epsilon)

    def count_gradients(self, crossing: Crossings, leaves: Frontier, epsilon: float) -> np.ndarray:
        """Noisy weights against and for each class in each cell of a table: shape (n_cells, n_classes, 2).

        In steps of ``1 / FINEST``.  Each cell is one of the ``leaves``, and is charged to it.
        """
        return self.curator.noisy(CellGradients(crossing), leaves.scopes, epsilon)

    def sum_residuals(self, root: Frontier, crossing: Crossings, epsilon: float) -> np.ndarray:
        """Noisy sum of the residuals of the second of two classes in each cell, in steps of ``1 / FINEST``: (n_cells,).

        It is charged to the ``root`` of a tree.
        """
        return self.curator.noisy(CellResiduals(crossing), root.scopes, epsilon)[0]

    def sum_target_residuals(
        self, root: Frontier, feature: int, groups: np.ndarray, epsilon: float, *, wide: bool = False
    ) -> np.ndarray:
        """Noisy sum of the residuals of the target in each group of a feature's codes, in steps of ``1 / FINEST``.

        int64, shape (n_groups,), charged to the ``root`` of a tree.  A residual, as a share of the target's range, is
        clipped to one range, or to 1024 if ``wide``.
        """
        query = (WideResiduals if wide else GroupResiduals)(feature, groups)
        return self.curator.noisy(query, root.scopes, epsilon)[0]

    def sum_steps(
        self, roots: Frontier, trees: Forest, places: np.ndarray, second: str, rho: float, weight: float
    ) -> np.ndarray:
        """Noisy sums of residuals and of Hessians, or of ones, in each leaf of the ``trees`` below these ``roots``.

        int64, shape (n_trees, n_leaves, 2), in steps of ``1 / FINEST``; ``places`` has the place of each leaf in its
        row.  ``second`` is "hessian" or "count", ``rho`` the budget of each tree; the noise of the second sums has
        ``weight`` times the rate of the first.
        """
        return self.curator.sum_steps(LeafSteps(trees, places, second), roots.scopes, rho, weight)

    def sum_hessians(self, root: Frontier, feature: int, groups: np.ndarray, epsilon: float) -> np.ndarray:
        """Noisy sum of the Hessians in each group of a feature's codes, in steps of ``1 / FINEST``: (n_groups,)."""
        return self.curator.noisy(GroupHessians(feature, groups), root.scopes, epsilon)[0]

    def open_filter(self, root: Frontier, limits: FilterLimits) -> None:
        """Open an individual filter, by which each record pays for its own part of a round; charge ``root`` for all."""
        self.curator.open_filter(limits, root.scopes)

    def join_round(self, newest: Forest | None) -> None:
        """Let each record join the next round of the filter if it can pay, and pay.

        ``newest`` is the last released tree, whose votes are added to the scores of each record.
        """
        self.curator.join_round(newest, None if newest is None else newest.values / SCALE)

    def sum_filtered(self, root: Frontier, crossing: Crossings) -> np.ndarray:
        """Noisy sums of gradients and Hessians over the records that joined, in steps of ``1 / FINEST``: (n_cells, 2).

        They end the round.
        """
        return self.curator.sum_filtered(crossing, root.scopes)

    def count_residuals(self, edges: np.ndarray, epsilon: float) -> np.ndarray:
        """Noisy number of records between these sizes of residuals, as shares of the target's range: (n_edges + 1,)."""
        return self.curator.noisy(ResidualCounts(edges), self.frontier.scopes, epsilon)[0]

    def count_records(self, nodes: Frontier, epsilon: float | np.ndarray) -> np.ndarray:
        """Noisy number of records of each node: int64, shape (n_nodes,)."""
        if not len(nodes):
            return np.zeros(0, dtype=np.int64)
        return self.curator.noisy(RecordCounts(self.growth, nodes.nodes), nodes.scopes, epsilon)

    def count_children(
        self, nodes: Frontier, allowed: np.ndarray, epsilon: float | np.ndarray, classes: bool = True
    ) -> np.ndarray:
        """Noisy class counts of each child that a node would have, by each of the ``allowed`` features.

        int64, shape (n_nodes, sum of the sizes, n_classes); (..., 1), their numbers of records, without ``classes``.
        """
        if not len(nodes):
            return np.zeros((0, int(self.sizes.sum()), self.schema.n_classes if classes else 1), dtype=np.int64)
        return self.curator.count_children(*self._query_arguments(nodes), allowed, epsilon, classes=classes)

    def sum_masses(self, leaves: Frontier, epsilon: float | np.ndarray) -> np.ndarray:
        """Noisy masses of each leaf's targets, above the lower bound and below the upper: int64, (n_leaves, 2)."""
        if not len(leaves):
            return np.zeros((0, 2), dtype=np.int64)
        return self.curator.noisy(Masses(self.growth, leaves.nodes), leaves.scopes, epsilon)

    def sum_targets(self, leaves: Frontier, epsilon: float | np.ndarray) -> np.ndarray:
        """Noisy sum of each leaf's targets, in grid steps: int64, shape (n_leaves,)."""
        if not len(leaves):
            return np.zeros(0, dtype=np.int64)
        return self.curator.noisy(TargetSums(self.growth, leaves.nodes), leaves.scopes, epsilon)

    def sum_products(
        self, design: Design, weights: Weights, until: Callable[[np.ndarray], bool] | None = None
    ) -> np.ndarray:
        """Noisy sums over all records of products of two coordinates: int64, shape (n_coordinates, n_coordinates).

        ``weights`` are the loss of each kind of sum; with ``until`` the noise is drawn again until that returns True.
        """
        return self.curator.sum_products(design, weights, until=until)

    def draw(self, nodes: Frontier, qualities: np.ndarray, rate: float, score: Score, query: str) -> np.ndarray:
        """The place of each node's choice by the exponential mechanism, among qualities that a peek has read.

        Weights are ``exp(rate * quality)``.  The ledger is charged what that costs by the range of ``score``; the peek
        stays a leak.
        """
        if not len(nodes):
            return np.zeros(0, dtype=np.int64)
        if self.ledger.delta:
            raise ValueError("no theorem speaks of qualities that a peek has read under a delta: leave delta=0")
        rates = np.full(len(nodes), rate)
        choice = mechanisms.select("exponential", qualities, rates, self.chance)
        add_remove, replace_one = (rates * score.range(relation) for relation in RELATIONS)
        self.ledger.charge(nodes.scopes, add_remove, replace_one, query, "exponential")
        return choice

    # -- reads that are not charged --------------------------------------------------------------------------

    def peek(self, nodes: Frontier, leak: Leak) -> np.ndarray:
        """The *exact* class counts of each node: int64, shape (n_nodes, n_classes); a leak."""
        if not len(nodes):
            return np.zeros((0, self.curator.n_classes), dtype=np.int64)
        return self.curator.peek(ClassCounts(self.growth, nodes.nodes), leak)

    def peek_moments(self, nodes: Frontier, leak: Leak) -> np.ndarray:
        """The *exact* count, sum and sum of squares of each node's targets: int64, (n_nodes, 3); a leak."""
        if not len(nodes):
            return np.zeros((0, 3), dtype=np.int64)
        return self.curator.peek(Moments(self.growth, nodes.nodes, 3), leak)

    def peek_codes(self, nodes: Frontier, leak: Leak) -> np.ndarray:
        """Which codes of each feature occur in each node: bool, shape (n_nodes, sum of the sizes); a leak."""
        if not len(nodes):
            return np.zeros((0, int(self.sizes.sum())), dtype=bool)
        return self.curator.peek_codes(self.growth, nodes.nodes, leak)

    @claim("cex-exact-gini")
    def peek_histograms(self, nodes: Frontier, features: np.ndarray, leak: Leak, parts: bool = False) -> np.ndarray:
        """The *exact* class counts at each code of each node's ``features`` (bool, n_nodes by n_features); a leak.

        Returns
        -------
        ndarray, shape (n_nodes, sum of the sizes, n_classes), or (..., n_parts, n_classes) of each part by itself
            Records count by their weight, from 0 to 1.
        """
        each = (self.curator.n_parts,) * parts
        shape = len(nodes), int(self.sizes.sum()), *each, self.curator.n_classes
        if not len(nodes):
            return np.zeros(shape)
        counts = self.curator.peek(Histograms(self.growth, nodes.nodes, features, parts), leak).reshape(shape)
        return counts if self.unit == 1 else counts / self.unit

    def peek_largest(self, nodes: Frontier, qualities: np.ndarray, leak: Leak) -> np.ndarray:
        """The place of each node's largest quality, the first of several; a leak, for nothing is drawn."""
        if len(nodes):
            self.ledger.leak(*leak)
        return qualities.argmax(axis=1)

    def peek_held_out(self, tree: Forest, nodes: np.ndarray, leak: Leak) -> np.ndarray:
        """The *exact* class counts of a tree's nodes among the records put aside: (n_nodes, n_classes); a leak."""
        if not len(nodes):
            return np.zeros((0, self.curator.n_classes), dtype=np.int64)
        return self.curator.peek(HeldOutCounts(tree, nodes), leak)

    def peek_joined(self, leak: Leak) -> int:
        """The *exact* number of records that joined the last round of a filter; a leak."""
        return int(self.curator.peek(Joined(), leak))

    def draw_by_weight(self, leak: Leak) -> None:
        """Draw as many records as there are, with replacement, by AdaBoost's weights; a leak."""
        self.curator.draw_by_weight(leak)

    def count_by_share(self, leak: Leak) -> None:
        """Let each record count for its AdaBoost weight over the largest one; a leak."""
        self.curator.count_by_share(leak)

    def peek_largest_weight(self, leak: Leak) -> float:
        """The largest of AdaBoost's weights, which add up to 1; a leak."""
        return float(self.curator.peek(LargestWeight(), leak))

    def peek_error(self, tree: Forest, leak: Leak) -> float:
        """The *exact* share of AdaBoost's weights that a tree gets wrong; a leak."""
        return float(self.curator.peek(WeightedError(tree), leak))

    def boost(self, tree: Forest, alpha: float, leak: Leak) -> None:
        """Multiply AdaBoost's weights by ``exp(alpha)`` or ``exp(-alpha)``, and divide them by their sum; a leak."""
        self.curator.boost(tree, alpha, leak)

    def size(self, leak: Leak) -> int:
        """The number of records: public under replace-one, else a leak."""
        return self.curator.size(leak)

    def _query_arguments(self, nodes: Frontier) -> tuple[Growth, np.ndarray, np.ndarray]:
        """Arguments of a curator's query about these nodes: the forest, their ids, and their ledger scopes."""
        return self.growth, nodes.nodes, nodes.scopes
