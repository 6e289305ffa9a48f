"""CART-DPsAdaBoost: boosted private trees (Jia, Qiu and Ma, 2021).

Each round grows a tree on records weighted by how badly the earlier trees do on them.  The chapter *Boosting* tells
where the published proof fails and why the repair holds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpforest import budgets, scores
from dpforest.arithmetic import log
from dpforest.learners.audited import EXACT, HALF_STOP, Audited, refuted
from dpforest.learners.base import check_covered
from dpforest.learners.boosting import CLASSES, OTHER, PrivateBoostedClassifier, adaboost, peek
from dpforest.learners.cart import Cuts, best_splits, weakest_links
from dpforest.learners.cuts import CutPool, random_cuts
from dpforest.learners.growth import MAX_NODES, Frontier, Growth, grow_chosen, one_vote, pure
from dpforest.learners.parameters import check_choice, check_count, check_number
from dpforest.learners.sharing import n_candidates, random_features
from dpforest.models.boosted import BoostedForest
from dpforest.models.forest import Forest
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import HISTOGRAM_SENSITIVITY, claim

__all__ = ["DPsAdaBoostClassifier"]

HELD_OUT = 0.3
DELTA = 2.0  # the paper's sensitivity of the Gini index
WEIGHTS = "the largest weight of a record, as the scale of the noise", "CART-DPsAdaBoost algorithm 1, lines 4 to 6"
DRAW = "the records of a round, drawn by weights that depend on all of them", "CART-DPsAdaBoost algorithm 3, line 5"
PURITY = "which nodes hold a single class", "CART-DPsAdaBoost algorithm 1, line 14"
GINI = "which feature splits a node with the least Gini index", "CART-DPsAdaBoost algorithm 1, line 3"
PRUNE = "the class counts of the held-out records", "CART-DPsAdaBoost algorithm 3, line 7"
ERROR = "the weighted error of a tree, of which alpha is made", "CART-DPsAdaBoost algorithm 3, line 9"
UPDATE = "the weights, divided by their sum", "CART-DPsAdaBoost algorithm 3, line 14"


@claim("alg-dps-adaboost", "thm-dps-adaboost", "pub-dps-adaboost")
class DPsAdaBoostClassifier(PrivateBoostedClassifier):
    """Boosted private trees.

    A round's tree tries random features at random public cuts and takes one by a private selection, from class counts
    in which each record has a weight between 0 and 1: a function of its own class and of the trees released before.
    Its leaves vote by the noisy weighted class counts that are paid for; nothing else is asked.

    Parameters
    ----------
    epsilon : float
        Privacy budget of all rounds together, positive; ``"non-private"`` turns the noise off.
    schema : Schema
        What is public: bounds, categories, classes.  Required.  The data need not hold every class.
    n_estimators : int
        Rounds.
    max_depth : int
        Splits on the longest path; 0 makes every tree a single leaf.
    max_features : {"auto", "sqrt", "all"} or int
        Different random features among which a node chooses; ``"auto"`` is the paper's k = 5 as published, else 10.
    cuts_per_feature : int
        Random splits of each of them; as published they are not random, and it has no effect.
    n_bins : int
        Public bins of each numeric feature, between 2 and 255; cuts fall on their edges.
    relation : {"add-remove", "replace-one"}
        Which data sets are neighbours.
    variant : {"proved", "published"}
        ``"published"`` is the paper to the letter, for two classes; see Notes.  It warns, for its proof fails.
    votes : {"real", "discrete"}
        A leaf votes for every class by the log of its share (:func:`~dpforest.learners.boosting.real_votes`), or for
        its commonest class by SAMME's alpha of the round
        (:func:`~dpforest.learners.boosting.discrete_votes`).  A round at chance, or whose counts are
        all 0 or less, gets no vote.
    weights : {"capped", "logistic"}
        How a record's margin m makes its weight: ``min(1, exp(-m / 2))`` or ``min(1, 2 / (1 + exp(m)))``.  In the
        released counts weights are whole steps, 127 of them for two classes and fewer for more; below half a step a
        record no longer counts.  At most 128 classes.
    learning_rate : float
        Factor of all votes, up to 10.
    alpha_max : float
        Bound of a round's votes before that, up to 100.
    smoothing : float
        Of real votes: so many times a leaf's noise is added to its counts, in the proportions of the round.
    class_weight : mapping or None
        Public weights of the classes, positive, 1 where not named; only their ratios matter.
    sampling : {"all", "assignment"}
        ``"all"``: every round sees all records, at ``epsilon / n_estimators``.  ``"assignment"``: each record belongs
        to one round by a coin, and each round has all of ``epsilon``.
    selection : {"permute-and-flip", "exponential"}
    criterion : {"gini", "gini-gain", "majority"}
        Split utility.
    leaf_share : float
        Share of a round's budget that is kept for its leaves, between 0 and 1; the levels above have equal parts of
        the rest, and a leaf that ends a branch early also gets what the levels below it do not need.
    stop : {"candidate", "never"}
        Whether *stop* stands among the candidates of a node's selection.
    stop_margin : float
        Its head start, in units of the selection's noise.
    max_nodes : int
        The trees together do not grow beyond this; branches that would are leaves.
    source : {"seeded", "secure"}
        Where the bits of the exact samplers come from: a seed, for research, or the system's entropy, for a release.
    random_state : None, int, Generator or RandomState
        Seed of the seeded source.  Whoever knows it can subtract the noise.
    n_jobs : int or None
        Threads that count.

    Attributes
    ----------
    boosted_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released trees and votes under ``relation``
    (:prf:ref:`thm-dps-adaboost`).  ``variant="published"``: none for any finite epsilon
    (:prf:ref:`pub-dps-adaboost`).

    Raises
    ------
    ValueError
        Besides bad parameters: in the published variant, when a round's budget ``epsilon / T - ln(alpha)`` is not
        positive.

    Source
    ------
    Jia, Qiu and Ma, *Journal of Cyber Security*: algorithms 1 to 4, formula (5).

    Notes
    -----
    What ``variant="published"`` does, and how it reads the paper where the paper can be read in two ways: 30 % of the
    records are put aside at random.  A round draws as many records as are left, with replacement, by their weights.
    ``epsilon_c = epsilon / T - ln(alpha)`` has the alpha of the round before, 1 at first.  Every level has
    ``epsilon_c / (d + 1)``: half for a noisy record count that nothing uses, half for the class counts of a leaf or for
    the cuts of the numeric features among the k of a node, by the exponential mechanism on the public edges inside the
    node's range, with formula (5), the normalised Gini index, as utility and 2 as its sensitivity.  The split is the
    exact minimum of the Gini index over those cuts and all divisions of categories.  Pure nodes are leaves.  Noise on
    counts has the scale of the largest weight over the budget (two-sided geometric noise in place of Laplace noise);
    the ledger is charged what that costs.  Cost-complexity pruning takes its sequence of trees from the noisy counts of
    the leaves and its choice from the records put aside; the root of a pruned subtree counts its classes again with
    the budget of the levels below it.  An error above 1/2 ends the rounds, without that round unless it is the first,
    whose tree then has no vote.  A tree without errors has an infinite alpha: it outvotes all before it, and no round
    follows.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.dps_adaboost import DPsAdaBoostClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DPsAdaBoostClassifier(epsilon=4.0, schema=schema, n_estimators=2, max_depth=2, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    _AUTO: ClassVar = {
        "published": {"max_features": 5}, "proved": {"max_features": 10}
    }  # fmt: skip

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, max_depth=3, max_features="auto", cuts_per_feature=4,
        n_bins=32, relation="add-remove", variant="proved", votes="real", weights="capped", learning_rate=1.0,
        alpha_max=2.0, smoothing=1.0, class_weight=None, sampling="all", selection="permute-and-flip",
        criterion="majority", leaf_share=0.6, stop="never", stop_margin=1.0, max_nodes=MAX_NODES, source="seeded",
        random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.cuts_per_feature = cuts_per_feature
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.votes = votes
        self.weights = weights
        self.learning_rate = learning_rate
        self.alpha_max = alpha_max
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.sampling = sampling
        self.selection = selection
        self.criterion = criterion
        self.leaf_share = leaf_share
        self.stop = stop
        self.stop_margin = stop_margin
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow_round(self, growth, curator, chance, schema, epsilon, grown):
        shares = budgets.Shares("aligned-uniform", epsilon, self.max_depth + 1, self.leaf_share)
        pool = CutPool(chance, curator.cardinalities, [name in schema.numeric for name in schema.columns])
        size = n_candidates(self.option("max_features"), schema.n_features)

        def draw(frontier: Frontier):
            return random_cuts(chance, pool, len(frontier), size, self.cuts_per_feature)

        grow_chosen(
            growth, curator, shares, draw, grown.settle, score=scores.CLASSIFICATION[self.criterion],
            mechanism=self.selection, stop_margin=self.stop_margin if self.stop == "candidate" else None,
        )  # fmt: skip

    def _grow_published(self, curator, chance, schema, ledger, epsilon) -> BoostedForest:
        self._check_letter(schema, "selection", "criterion", "leaf_share", "stop", "stop_margin")
        ordered = np.array([name in schema.numeric for name in schema.columns])
        growth = Growth(
            self.n_estimators, schema.n_features, schema.n_classes, ledger, "sequential", self.max_nodes
        )  # fmt: skip
        curator.hold_out(HELD_OUT)

        def grow(number: int, alpha: float) -> Forest:
            budget = round_budget(epsilon / self.n_estimators, alpha)
            peek(curator.draw_by_weight, DRAW)
            return self._grow_letter(growth, number, curator, chance, ordered, budget / (self.max_depth + 1))

        return adaboost(curator, self.n_estimators, grow, ERROR, UPDATE)

    def _grow_letter(self, growth, number, curator, chance, ordered, epsilon: float) -> Forest:
        """Algorithm 1, pruned: a tree with one vote in each leaf.  ``epsilon`` is the share of a level."""
        # the largest weight is taken for the sensitivity of a count of records: the curator would use 1, or 2
        louder = HISTOGRAM_SENSITIVITY[self.relation] / peek(curator.peek_largest_weight, WEIGHTS)
        size = n_candidates(self.option("max_features"), len(ordered))
        cuts = Cuts(curator.cardinalities, ordered)
        growth.begin(number)
        levels: list[Frontier] = []
        counted: list[tuple[np.ndarray, np.ndarray]] = []
        for level in range(self.max_depth + 1):
            frontier = growth.frontier
            levels.append(frontier)
            curator.count_records(growth, frontier.nodes, frontier.scopes, epsilon / 2 * louder)
            columns = cuts.columns(np.arange(len(frontier)))
            usable = cuts.owners(columns) | (~ordered & (curator.cardinalities > 1))
            inner = usable.any(axis=1) & (level < self.max_depth)
            inner &= ~pure(peek(curator.peek, PURITY, growth, frontier.nodes))
            inner[inner] = growth.room(np.full(inner.sum(), 2))
            leaves = frontier[~inner]
            if len(leaves):
                counts = curator.count_classes(growth, leaves.nodes, leaves.scopes, epsilon / 2 * louder)
                growth.settle(leaves, one_vote(counts))
                counted.append((leaves.nodes, counts))
            if not inner.any():
                break
            parents, features = frontier[inner], random_features(chance, usable[inner], size)
            found = self._cut(curator, growth, parents, columns[inner], cuts, features & ordered, epsilon)
            histograms = peek(curator.peek_histograms, GINI, growth, parents.nodes, features)
            chosen, ends, masks = best_splits(histograms, found, features, curator.cardinalities)
            cuts.divide(np.flatnonzero(inner), chosen, ends)
            growth.branch(parents, chosen, np.full(len(parents), 2), masks=masks, reuse=True)
        nodes, scopes = (np.concatenate([getattr(level, name) for level in levels]) for name in ("nodes", "scopes"))
        ends, counts = map(np.concatenate, zip(*counted, strict=True))
        tree, ends = growth.release().tree(number), np.searchsorted(nodes, ends)  # the tree numbers its nodes anew
        return self._prune(curator, tree, scopes, ends, np.maximum(counts, 0), epsilon * louder)

    def _cut(self, curator, growth, parents, columns, cuts, numeric, epsilon) -> np.ndarray:
        """A cut for each numeric feature of each node: the last code below it, -1 for other features."""
        each = epsilon / (2 * (numeric.sum(axis=1) + 1))
        found = np.full(numeric.shape, -1)
        utility = scores.normalised_gini
        for feature in np.flatnonzero(numeric.any(axis=0)):
            some = np.flatnonzero(numeric[:, feature])
            # exp(epsilon q / (2 Delta)) with the paper's Delta: the curator would use its own
            budget = each[some] * utility.sensitivity(self.relation) / DELTA
            column = curator.choose_cut(
                growth, parents.nodes[some], parents.scopes[some], columns[some] & (cuts.owner == feature), budget,
                score=utility, mechanism="exponential", calibration="sensitivity",
            )  # fmt: skip
            found[some, feature] = cuts.code[column]
        return found

    @claim("cex-refund")
    def _prune(self, curator, tree: Forest, scopes, ends, counts, budget: float) -> Forest:
        """Prune by the records put aside, and hand the budget of what was pruned to the node above it."""
        held = peek(curator.peek_held_out, PRUNE, tree, ends)
        cut, height = weakest_links(tree, ends, counts, held)
        pruned, left = tree.prune(cut)
        if not len(cut):
            return pruned
        nodes = np.searchsorted(left, cut)
        values = pruned.values.copy()
        values[nodes] = one_vote(curator.count_classes(pruned, nodes, scopes[cut], height * budget))
        return replace(pruned, values=values)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.max_depth, "max_depth", least=0, most=MAX_DEPTH)
        check_count(self.cuts_per_feature, "cuts_per_feature")
        n_candidates(self.option("max_features"), 1)  # refuses what it does not know
        check_choice(self.stop, "stop", ("candidate", "never"))
        check_number(self.stop_margin, "stop_margin", -1e6, 1e6)
        if self.variant == "proved":
            check_covered(scores.CLASSIFICATION[self.criterion], self.relation, stop=self.stop, weighted=True)

    def lacking(self) -> dict[str, str]:
        if self.variant == "published":
            return {EXACT: "noisy counts are looked at twice, for the votes and for the pruning, which no lemma covers"}
        return super().lacking()

    AUDIT: ClassVar = Audited(
        "dps-adaboost",
        # as published there is one round: the budget of a second may be negative, and then nothing is released
        (
            ({}, 2, 1),
            (HALF_STOP | {"stop": "candidate", "criterion": "gini", "selection": "exponential"}, 2, 1),
            (CLASSES | {"criterion": "gini-gain"}, 1, 1),
            ({"n_estimators": 2, "criterion": "gini"}, 1, 1),
            (OTHER | HALF_STOP | {"stop": "candidate", "sampling": "assignment"}, 1, 1),
            (OTHER | CLASSES, 1, 1),
            ({"variant": "published"}, 2, 1),
        ),
        refuted(
            "the published code reads, unpaid, the weights, the errors, the best splits and the held-out records "
            "(pub-dps-adaboost)"
        ),
        usual={"n_estimators": 1, "cuts_per_feature": 1}, masks=True,  # a feature of two codes has a single cut
    )  # fmt: skip


@claim("pub-log-alpha-budget")
def round_budget(share: float, alpha: float) -> float:
    """Algorithm 3, line 3: ``epsilon_p / T - log(alpha)``."""
    budget = share - log(alpha) if alpha else math.inf
    if not budget > 0:
        raise ValueError(
            f"the budget of this round, epsilon / T - ln(alpha) = {share:.4g} - ln({alpha:.4g}), is not positive "
            "(CART-DPsAdaBoost algorithm 3, line 3): the paper has no algorithm here; use variant='proved'"
        )
    return budget
