"""Smooth forest: random trees whose leaves say a label, with smooth sensitivity (Fletcher and Islam, 2017).

The structure is drawn without looking at a record, each tree has records of its own, and the exponential mechanism
selects the label of a leaf, where the most frequent class is the most probable.  The published variant scales that
mechanism by a sensitivity that depends on the records.  The chapter *Smooth sensitivity* says why that breaks the
claim, and why counts as scores do not.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from dpforest import arithmetic, scores
from dpforest.learners.audited import GREY_BOX, AuditSpec, Broken
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.cuts import grow_multiway
from dpforest.learners.facts import Facts
from dpforest.learners.growth import MAX_NODES, Frontier, votes
from dpforest.learners.parameters import AsPublished, Either, Integer, OneOf
from dpforest.learners.run import Run, Selection
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import Forest
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import RELATIONS, claim

__all__ = ["SmoothForestClassifier", "balls_in_bins", "smooth_qualities"]

GAP = "the gap between the two largest class counts of each leaf", "smooth forest, the smooth sensitivity of a leaf"
#: Tables of two records need not show it: only the grey box, which also looks at large leaves, always must.
BROKEN = dict.fromkeys(
    RELATIONS,
    Broken(
        "the published code reads, without a charge, the gap of a leaf's two largest counts, and scales its noise by "
        "it (cex-smooth-exponential)",
        (GREY_BOX,),
    ),
)
#: Height beyond which a default would make more leaves than a table has records.
TALL = 10
LEAVES = 1000  # of a tree, as a geometric mean, beyond which the proved default does not go
#: The largest exponent of a smooth sensitivity; beyond it the weight is infinite to every purpose, and to a double.
STEEPEST = 700.0


def balls_in_bins(n_numeric: int, n_categorical: int) -> int:
    """Height of a tree in which half of the features of either kind are tested on a path, in expectation; at least 1.

    Categorical features are not tested twice, so half of them take half as many levels.  A numeric feature may come
    again: after d levels ``m (1 - 1/m)^d`` of m are expected to be untested, and d is the first level where these are
    at most ``m / 2``.
    """
    levels = 0
    while 2 * (n_numeric - 1) ** levels > max(n_numeric, 1) ** levels and n_numeric:
        levels += 1
    return max(1, levels + n_categorical // 2)


@claim("cex-smooth-exponential")
def smooth_qualities(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """The published quality ``u / S`` of each label, with ``S = exp(-epsilon * gap)``, from exact class counts.

    Parameters
    ----------
    counts : ndarray of int, shape (n_leaves, n_classes)
    epsilon : float

    Returns
    -------
    ndarray of float, shape (n_leaves, n_classes)
        u is 1 for a class of the largest count and 0 for another, so a leaf without records says a random label.

    Guarantee
    ---------
    None: the gap is read, and the exponential mechanism at rate ``epsilon / 2`` of these loses more than any bound
    (:prf:ref:`cex-smooth-exponential`).
    """
    largest = counts.max(axis=1, keepdims=True)
    gap = largest - np.partition(counts, -2, axis=1)[:, [-2]]
    # a gap of 0 has S = 1 at an infinite epsilon too
    steep = np.where(gap == 0, 0.0, np.minimum(epsilon * np.maximum(gap, 1), STEEPEST))
    return (counts == largest) * arithmetic.exp(steep)


class SmoothForestClassifier(PrivateForestClassifier):
    """Random trees on records of their own, whose leaves say one label each.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-smooth-forest`).  ``variant="published"``: none for any finite epsilon
    (:prf:ref:`pub-smooth-forest`).

    Source
    ------
    Expert Systems with Applications 78, 2017.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.smooth_forest import SmoothForestClassifier
    >>> schema = Schema(categorical={"x": ["a", "b"]}, classes=["no", "yes"])
    >>> X, y = [["a"], ["b"]] * 100, ["no", "yes"] * 100
    >>> model = SmoothForestClassifier(epsilon=1.0, schema=schema, n_estimators=2, random_state=0).fit(X, y)
    >>> model.predict([["a"], ["b"]]).tolist()
    ['no', 'yes']
    """

    max_depth: Annotated[
        int | None,
        Either(None, rule=Integer(0, MAX_DEPTH)),
        """Splits on a path; None takes the height at which half of the features are tested in expectation
        (:func:`balls_in_bins`), at most 10, and if proved no more than makes about a thousand leaves.""",
    ] = None
    max_nodes: Annotated[int, Integer(1), "A forest that could not fit raises."] = MAX_NODES
    selection: Annotated[str, OneOf(SELECTIONS), AsPublished(), "Mechanism of the labels, if proved."] = (
        "permute-and-flip"
    )

    @claim("alg-smooth-forest", "pub-smooth-forest")
    def as_published(self, run: Run) -> Forest:
        """Disjoint subsets of equal size, random trees, labels at the rate ``epsilon / 2 S``."""
        run.start_forest(self.n_estimators, "equal-split", self.max_nodes)  # step 1
        for leaves in self._grow(run):  # steps 2 and 3
            qualities = smooth_qualities(run.peek(leaves, GAP), run.epsilon)  # u / S
            # were S a constant, u would have the range of a count
            label = run.draw(leaves, qualities, run.epsilon / 2, scores.majority, "choose the label of a leaf")
            run.set_leaf_values(leaves, votes(label, run.schema.n_classes))  # step 4
        return run.release()

    @claim("thm-smooth-forest")
    def as_proved(self, run: Run) -> Forest:
        """The repair: each record goes to a tree by its own coin, and a label's score is its count."""
        run.start_forest(self.n_estimators, "assignment", self.max_nodes)
        for leaves in self._grow(run):
            label = run.choose_label(leaves, run.epsilon, Selection(scores.majority, self.selection))
            run.set_leaf_values(leaves, votes(label, run.schema.n_classes))
        return run.release()

    def _grow(self, run: Run) -> list[Frontier]:
        """Split nodes on a random feature, a number at a random edge, and again below; returns the leaves."""
        n_numeric = int(run.ordered.sum())
        default = min(balls_in_bins(n_numeric, len(run.ordered) - n_numeric), TALL)
        if self.variant == "proved":
            children = float(np.mean(np.where(run.ordered, 2, run.sizes)))
            default = next((h for h in range(1, default) if children ** (h + 1) > LEAVES), default)
        height = default if self.max_depth is None else self.max_depth
        return grow_multiway(run, height, reuse=True)

    # -- the audit -------------------------------------------------------------------------------------------

    def _sampling(self) -> str:
        return "equal-split" if self.variant == "published" else "assignment"

    def leaf_is_label(self) -> bool:
        return True

    FACTS = Facts(leaks="records", in_memory=True)
    AUDIT: ClassVar = AuditSpec(
        "smooth-forest",
        (
            ({}, 2, 1),
            ({"selection": "exponential"}, 2, 1),
            ({"n_estimators": 2}, 1, 1),
            ({"variant": "published"}, 1, 1),
            ({"variant": "published", "n_estimators": 2}, 1, 1),
        ),
        BROKEN,
    )
