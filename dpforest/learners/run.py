"""The run of one fit: what the steps of a paper may do, and nothing else.

A run asks the :class:`~dpforest.curator.Curator` about nodes of the public trees that grow, at a stated budget, and
grows the trees by what it is answered.  Where a list of nodes is empty nothing is asked.
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

    Attributes
    ----------
    relation : {"add-remove", "replace-one"}
    sizes : ndarray of int, shape (n_features,)
        Codes of each feature.
    ordered : ndarray of bool, shape (n_features,)
        Which features are numeric.
    growth : Growth
        The trees, once they are planted.
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
        self._alone = epsilon if alone is None else alone  # what there is to spend without a delta
        self.relation = ledger.relation
        self.sizes = curator.cardinalities
        self.ordered = np.array([name in schema.numeric for name in schema.columns], dtype=bool)

    @property
    def budget(self) -> float:
        """What there is to spend, in the unit of the charges: epsilon, or the rho that the delta makes of it."""
        return in_charges(self.epsilon, self.ledger.delta)

    def without_delta(self, by_answers: bool = False) -> None:
        """Spend epsilon without a delta from now on, where nothing was spent: that is as private with any delta.

        ``by_answers``: an answer will say whether :meth:`with_delta` follows.
        """
        self._with_delta = self.ledger.delta, self.epsilon
        self.ledger.drop_delta(by_answers)
        self.epsilon = max(self.epsilon, self._alone)

    def with_delta(self) -> None:
        """Spend the rho of epsilon and delta from now on, of which half the square of a loss so far was spent."""
        delta, self.epsilon = self._with_delta
        self.ledger.take_delta(delta)

    def spent_share(self) -> float:
        """The share of the budget that was spent, of which all was charged to what holds all records."""
        return self.ledger.paid(self.relation) / self.budget if self.budget < math.inf else 0.0

    def even_answers(self, delta: float) -> float:
        """How many answers with equal budgets have the same noise with the delta and without; more have less with it.

        Without, each of k sums has noise of variance ``2 (k / epsilon)^2``; with it, ``k / (2 rho)``.
        """
        return max(self.epsilon, self._alone) ** 2 / (4 * in_charges(self.epsilon, delta))

    # -- the trees -------------------------------------------------------------------------------------------

    def start_forest(
        self, n_trees: int, sampling: str = "all", max_nodes: int = MAX_NODES, n_values: int | None = None
    ) -> float:
        """Begin the trees, and give them their records; returns each tree's budget.

        Parameters
        ----------
        n_trees : int
        sampling : {"all", "assignment", "poisson", "bootstrap", "equal-split"}
            How the trees share the records: :func:`~dpforest.learners.sharing.share_out`.
        max_nodes : int
            The trees together do not grow beyond this.
        n_values : int or None
            Numbers that a leaf holds; None: one for each class, or the two masses of a target.
        """
        each, kind = share_out(sampling, self.curator, self.budget, n_trees, self.relation)
        values = n_values or self.schema.n_classes or 2  # a schema with a target has 0 classes
        self.growth = Growth(n_trees, self.schema.n_features, values, self.ledger, kind, max_nodes)
        return each

    @property
    def frontier(self) -> Frontier:
        """The nodes of the level that grows now."""
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
        grows = self.has_room(features, arities)  # STOP has no size: what is there instead is not used
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
        """Say what these leaves hold: int64, shape (n_leaves, n_values)."""
        if len(leaves):
            self.growth.set_leaf_values(leaves, values)

    def tree(self, number: int) -> Forest:
        """One of the trees, as far as it has grown."""
        return self.growth.release().tree(number)

    def release(self, shrinkage: float = 0.0) -> Forest:
        """The finished forest."""
        return self.growth.release(shrinkage)

    def parts(self, label: str, n_parts: int) -> np.ndarray:
        """Scopes, next to those of the trees, of public parts of the records, at most one part a record: (n_parts,)."""
        return self.ledger.open(label, np.repeat(self.ledger.open(label, [0]), n_parts))

    # -- the records that are asked -----------------------------------------------------------------------------

    def weigh_records(
        self, tree: Forest | None, said: np.ndarray | None, rule: str, class_weights: np.ndarray | None = None
    ) -> None:
        """Weigh each record, at most 1, by the margin of its own class in the scores that the released trees give it.

        Parameters
        ----------
        tree : Forest or None
            The newest of them, to which ``said`` belongs: float64, shape (n_nodes, n_classes).
        rule : str
            One of the curator's ``WEIGHTS``.
        class_weights : ndarray of float or None
            Public weights of the classes, from 0 to 1.
        """
        self.curator.weigh_records(tree, said, class_weights=class_weights, rule=rule)

    def hold_out(self, share: float) -> None:
        """Put a random share of the records aside."""
        self.curator.hold_out(share)

    def partition_records(self, n_parts: int) -> None:
        """Give each record to one of the parts, by a coin of its own, for scores that are means over parts."""
        self.curator.partition_records(n_parts)

    # -- questions that are paid for -------------------------------------------------------------------------

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
        """As :meth:`choose_candidate`, where an earlier answer decides the budgets, and nothing bounds them; a leak.

        The ledger is charged what this run costs, which binds no other run.
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
        """The place of the one division, of the codes of its feature, that all these nodes of a tree choose together.

        ``children`` (K, 256) say where each code goes, -1 where its records do not count; ``scopes`` is the one scope
        that holds all their records, and ``tree`` another tree than the one that grows.
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
        """Steps of a weight of 1."""
        return self.curator.unit

    def add_scores(self, tree: Forest) -> None:
        """Add the votes of a released tree to each record's scores, for the next questions about crossed tables."""
        self.curator.add_scores(tree, tree.values / SCALE)

    def choose_table(self, candidates: TableCandidates, epsilon: float, how: Selection) -> tuple[int, int]:
        """The places of the one table and of the one side, or of all together, that the frontier, a root, chooses."""
        [choice] = self.curator.choose(candidates, self.frontier.scopes, epsilon, how)
        side, table = divmod(int(choice), len(candidates.crossings))
        return table, side

    def choose_marginal(self, candidates: MarginalCandidates, budget: float, how: Selection) -> int:
        """The place of the one marginal that the frontier, a root, chooses."""
        [choice] = self.curator.choose(candidates, self.frontier.scopes, budget, how)
        return int(choice)

    def count_table(self, crossing: Crossings, budget: float, by_class: bool = True) -> np.ndarray:
        """Noisy class counts in each cell of a table, or its records: (n_cells, n_classes or 1), charged to a root."""
        return self.curator.noisy(TableCounts(crossing, by_class), self.frontier.scopes, budget)[0]

    def count_crossing(self, crossing: Crossings, side: float, leaves: Frontier, epsilon: float) -> np.ndarray:
        """Noisy weights of both sides in each cell, a leaf of the tree that grows, in steps of ``1 / FINE``.

        int64, shape (n_cells, 2): of the other classes, and of the target; or of a regression below, and above.
        """
        return self.curator.noisy(CellWeights(crossing, side), leaves.scopes, epsilon)

    def count_gradients(self, crossing: Crossings, leaves: Frontier, epsilon: float) -> np.ndarray:
        """Noisy weights against and for each class in each cell, a leaf of the tree that grows.

        int64, shape (n_cells, n_classes, 2), in steps of ``1 / FINEST``.
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

        int64, shape (n_trees, n_leaves, 2), in steps of ``1 / FINEST``; ``places`` say where each leaf is in its row.
        ``rho`` is that of each tree, and the second sums have noise of ``weight`` times the rate.
        """
        return self.curator.sum_steps(LeafSteps(trees, places, second), roots.scopes, rho, weight)

    def sum_hessians(self, root: Frontier, feature: int, groups: np.ndarray, epsilon: float) -> np.ndarray:
        """Noisy sum of the Hessians in each group of a feature's codes, in steps of ``1 / FINEST``: (n_groups,)."""
        return self.curator.noisy(GroupHessians(feature, groups), root.scopes, epsilon)[0]

    def open_filter(self, root: Frontier, limits: FilterLimits) -> None:
        """Begin rounds of which each record pays its own part, and charge for all of them to the ``root`` of a tree."""
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
        """Noisy numbers of records by the size of their residuals, shares of the target's range: (n_edges + 1,)."""
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
        return self.curator.count_children(*self._asked(nodes), allowed, epsilon, classes=classes)

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

        ``weights`` say what each kind of sum may lose; with ``until`` the noise is drawn again until that says True.
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

    def _asked(self, nodes: Frontier) -> tuple[Growth, np.ndarray, np.ndarray]:
        return self.growth, nodes.nodes, nodes.scopes
