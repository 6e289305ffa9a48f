"""PrivaTree: one shallow tree of public bins, split by permute-and-flip (Vos, Vos, Li, Erkin and Verwer, 2023).

Every node of a level chooses a cut by the Gini impurity that it leaves, and every leaf a label by its class counts.
The chapter *PrivaTree* tells what of the published claim holds, and why the repair does.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.arithmetic import log
from dpforest.learners.audited import EXACT, GREY_BOX, AuditSpec, Broken
from dpforest.learners.base import PrivateEstimator, check_covered
from dpforest.learners.facts import Facts
from dpforest.learners.growth import MAX_NODES, Frontier, votes
from dpforest.learners.parameters import Either, Integer, Share
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest, ForestClassifier, cut_masks
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, RELATIONS, REPLACE_ONE, claim

__all__ = ["PrivaTreeClassifier", "gini_change", "label_error"]

SIZE = "the exact number of records, which divides the budget", "PrivaTree, the budget of the leaves"
SCALE = "the noise of a selection follows a noisy number of records", "PrivaTree, the sensitivity of Gini"
BROKEN = Broken(
    "the published code scales the noise of a selection by a noisy number of records, which may be too large "
    "(cex-privatree-size)",
    (GREY_BOX,),
)
#: Part of epsilon that a noisy number of records costs, if proved.
SIZE_SHARE = 0.01
#: Most of the budget that leaves have, by the rule for their share.
LEAF_CAP = 0.5
_STEPS = 100  # of the search for the largest error: each leaves two thirds of the interval


@claim("cex-privatree-size")
def gini_change(sizes: np.ndarray) -> np.ndarray:
    """How much the normalised Gini impurity of a node changes at most where a record joins.

    Parameters
    ----------
    sizes : array-like, shape (n_nodes,)
        Number of records before it joins, at least 1.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
        ``1 - (n / (n + 1))^2 - (1 / (n + 1))^2``, which falls with n: a number that is too large makes it too small.
    """
    sizes = np.asarray(sizes, dtype=float)
    return 2 * sizes / (sizes + 1) ** 2


def label_error(n_classes: int) -> float:
    """Records that permute-and-flip gets wrong in a leaf in expectation, at most, at a rate of 1, to nine digits.

    The largest over p of ``ln(1 / p) (1 - (1 - (1 - p)^K) / (K p))``, K being the number of classes.

    Source
    ------
    McKenna and Sheldon (2020), by whom permute-and-flip is; a leader and equal losers are its worst case.
    """

    def error(p: float) -> float:
        return -float(log(p)) * (1 - (1 - (1 - p) ** n_classes) / (n_classes * p))

    low, high = 1e-9, 1.0
    for _ in range(_STEPS):
        third = (high - low) / 3
        if error(low + third) < error(high - third):
            low += third
        else:
            high -= third
    return float(f"{error((low + high) / 2):.9g}")  # the last digits depend on the C library


class PrivaTreeClassifier(PrivateEstimator, ForestClassifier):
    """One shallow private tree of binary cuts, whose leaves say one label each.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released tree under ``relation``
    (:prf:ref:`thm-privatree`).  ``variant="published"``: none (:prf:ref:`pub-privatree`).

    Source
    ------
    Vos, Vos, Li, Erkin and Verwer, arXiv:2305.15394, with its authors' program, in its last state.

    Notes
    -----
    What ``variant="published"`` does: half of a level's budget for a noisy number of records of each node, and half for
    a selection by the normalised Gini impurity, with the noise that a node of that number would need; the exact number
    of records for the leaves' part of the budget.  Categories are cut in their declared order, in both variants.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.privatree import PrivaTreeClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = PrivaTreeClassifier(epsilon=4.0, schema=schema, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    n_bins = 10
    max_depth: Annotated[int, Integer(1, MAX_DEPTH), "Splits on every path: the tree is complete."] = 4
    leaf_share: Annotated[
        float | Literal["auto"],
        Either("auto", rule=Share()),
        """Share of the leaves in epsilon.  ``"auto"``: what ``leaf_error`` needs, and half of the budget at most; the
        number of records that says so has noise under add-remove if proved, for a hundredth of epsilon.""",
    ] = "auto"
    leaf_error: Annotated[
        float, Share(), 'With ``leaf_share="auto"``: share of the records that noise in the leaves may get wrong.'
    ] = 0.01
    max_nodes: Annotated[int, Integer(1), "The tree does not grow beyond this; branches that would are leaves."] = (
        MAX_NODES
    )

    @claim("alg-privatree", "pub-privatree", "cex-privatree-size")
    def as_published(self, run: Run) -> Forest:
        """Uniform bins; each node counted, then cut by a selection whose noise follows the count."""
        run.start_forest(1, max_nodes=self.max_nodes)
        n_records = run.size(SIZE) if self.leaf_share == "auto" else 0
        each, leaf = self._shares(run, run.epsilon, n_records, 2)
        cuts = _cuts(run.sizes, whole=True)
        how = Selection(scores.normalised_gini, "permute-and-flip", "sensitivity")
        both = HISTOGRAM_SENSITIVITY[run.relation]  # for the rates are the same under either relation
        for _, nodes in run.levels(self.max_depth):
            mine = _for_each(nodes, cuts)
            sizes = np.maximum(run.count_records(nodes, each / 2 * both), 1)
            # at this rate, for twice the sensitivity of the score is 1: half of the budget over twice the change
            rate = each / 2 / (2 * gini_change(sizes))
            chosen = run.choose_at_noisy_rates(nodes, *mine, rate, how, SCALE)
            self._make_leaves(run, run.split_chosen(nodes, *mine, chosen), leaf * both)  # those without room
        self._make_leaves(run, run.frontier, leaf * both)
        return run.release()

    @claim("thm-privatree")
    def as_proved(self, run: Run) -> Forest:
        """The repair: Gini by the number of records, which no record changes by more than 2, and no count."""
        run.start_forest(1, max_nodes=self.max_nodes)
        n_records, epsilon = (0, run.epsilon) if self.leaf_share != "auto" else self._number_of_records(run)
        each, leaf = self._shares(run, epsilon, n_records, HISTOGRAM_SENSITIVITY[run.relation])
        cuts = _cuts(run.sizes, whole=False)
        for _, nodes in run.levels(self.max_depth if len(cuts[0]) else 0):
            mine = _for_each(nodes, cuts)
            chosen = run.choose_candidate(nodes, *mine, each, Selection(scores.gini))
            self._make_leaves(run, run.split_chosen(nodes, *mine, chosen), leaf)
        self._make_leaves(run, run.frontier, leaf)
        return run.release()

    def _number_of_records(self, run: Run) -> tuple[int, float]:
        """The number of records, with noise under add-remove, and what is left of epsilon."""
        if run.relation == REPLACE_ONE:  # it is public
            return run.size(SIZE), run.epsilon
        [n_records] = np.maximum(run.count_records(run.frontier, SIZE_SHARE * run.epsilon), 1)
        return int(n_records), (1 - SIZE_SHARE) * run.epsilon

    def _shares(self, run: Run, epsilon: float, n_records: int, price: float) -> tuple[float, float]:
        """What a level has of epsilon, and what a leaf; ``price`` is what a label costs at a rate of 1."""
        if math.isinf(epsilon):
            return epsilon, epsilon
        if self.leaf_share == "auto":
            needed = price * label_error(run.schema.n_classes) * 2**self.max_depth
            leaf = min(LEAF_CAP * epsilon, needed / (max(n_records, 1) * self.leaf_error))
        else:
            leaf = self.leaf_share * epsilon
        return (epsilon - leaf) / self.max_depth, leaf

    @claim("thm-majority")
    def _make_leaves(self, run: Run, leaves: Frontier, epsilon: float) -> None:
        """Make these nodes leaves, at this budget each: they vote for a label that is chosen privately."""
        label = run.choose_label(leaves, epsilon, Selection())
        run.set_leaf_values(leaves, votes(label, run.schema.n_classes))

    def check_parameters(self) -> None:
        super().check_parameters()
        check_covered(scores.gini, self.relation)

    # -- the audit -------------------------------------------------------------------------------------------

    def leaf_is_label(self) -> bool:
        return True

    def lacking(self) -> dict[str, str]:
        if self.variant == "published" or (self.leaf_share == "auto" and self.relation == ADD_REMOVE):
            return {EXACT: "a noisy number of records has infinitely many values, so that replay cannot visit them"}
        return super().lacking()

    FACTS = Facts(leaks="records")
    AUDIT: ClassVar = AuditSpec(
        "privatree",
        (
            ({"leaf_share": 0.5}, 2, 2),
            ({"leaf_share": 0.25}, 2, 1),
            ({}, 2, 2),
            ({"variant": "published"}, 2, 2),
            ({"variant": "published", "leaf_share": 0.5}, 2, 1),
        ),
        dict.fromkeys(RELATIONS, BROKEN),
        sizes=(8,),
        defaults={},
    )


def _cuts(sizes: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """The cuts of all features: int32, (K,), and the masks of the codes above, (K, 4).

    ``whole``: also those after the last code of a feature, as in the paper, which leave nothing above.
    """
    features = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes - (not whole))
    ends = np.concatenate([np.arange(size - (not whole)) for size in sizes.tolist()])
    return features, cut_masks(ends, sizes[features])


def _for_each(nodes: Frontier, cuts: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The same candidates for each node: (n_nodes, K), and masks (n_nodes, K, 4)."""
    features, masks = cuts
    return np.tile(features, (len(nodes), 1)), np.tile(masks, (len(nodes), 1, 1))
