"""DiffP-ID3: one ID3 tree whose splits the exponential mechanism chooses (Friedman and Schuster, 2010).

A node asks for a noisy count of its records, and if that is large enough it draws the feature to split on, one child
per value.  The chapter *DiffP-ID3* tells what the tree spends of its budget, and what the repair does with the rest.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.arithmetic import log, log2
from dpforest.budgets import Shares
from dpforest.learners.audited import HALF_STOP, AuditSpec
from dpforest.learners.base import check_covered
from dpforest.learners.id3 import PrivateID3Tree
from dpforest.learners.parameters import CAP, MARGIN, AsPublished, Auto, OneOf
from dpforest.learners.run import Run, Selection
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["DiffPID3Classifier"]

CRITERIA = ("information-gain", "gini", "majority")  # the three that the paper compares
CHOICES = ("auto", *CRITERIA)
NO_RATIO = (
    "criterion='gain-ratio' is refused: one record moves it from 0 to 1, which is all the way, however many there are, "
    "so no rate tells a good split from a bad one (cex-gain-ratio); use 'gini', 'majority' or 'information-gain'"
)


@claim("alg-diffp-id3", "thm-diffp-id3", "pub-diffp-id3")
class DiffPID3Classifier(PrivateID3Tree):
    """Private ID3 tree with splits drawn by the exponential mechanism.

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released tree under ``relation``, in both variants
    (:prf:ref:`thm-diffp-id3`, :prf:ref:`pub-diffp-id3`); the published one does not spend all of it.

    Source
    ------
    KDD 2010, Algorithm 3 (DiffPID3).

    Notes
    -----
    The paper's features are discrete.  A numeric one is cut into ``n_bins`` public bins of equal width over its bounds,
    and splits into all of them.  Class counts may be negative; a leaf says the class of the largest.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.diffp_id3 import DiffPID3Classifier
    >>> schema = Schema(categorical={"x": ["low", "high"]}, classes=["no", "yes"])
    >>> X, y = [["low"]] * 100 + [["high"]] * 100, ["no"] * 100 + ["yes"] * 100
    >>> model = DiffPID3Classifier(epsilon=2.0, schema=schema, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([["low"], ["high"]]).tolist()
    ['no', 'yes']
    """

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper to the letter: ``epsilon / (2 (max_depth + 1))`` for each noisy count, selection
        and leaf, and the exponent of a selection by twice the sensitivity.""",
    ] = "proved"
    criterion: Annotated[
        str,
        OneOf(CHOICES),
        Auto(published="majority", proved="gini"),
        'Split utility; ``"majority"`` is the paper\'s *Max*.  Information gain needs ``n_max``.',
    ] = "auto"
    n_max: Annotated[float, CAP, "Public cap on the number of records, for information gain."] = math.inf
    selection: Annotated[
        Literal["auto", "exponential", "permute-and-flip"],
        Auto(published="exponential", proved="permute-and-flip"),
        AsPublished(),
        "Mechanism of splits.",
    ] = "auto"
    stop_margin: Annotated[
        float,
        MARGIN,
        "Stop offset: the public score of the *stop* candidate, in units of the selection's noise; proved only.",
    ] = 18.0  # chosen in notebooks/diffp_id3.ipynb

    @claim("alg-diffp-id3", "pub-diffp-id3")
    def as_published(self, run: Run) -> Forest:
        """Algorithm 3: a noisy count at each node, then a leaf or a selection."""
        each = run.epsilon / (2 * (self.max_depth + 1))
        for nodes, features in self.splitting(run, each):
            chosen = run.choose_feature(nodes, *self._published_selection(run, each), features)
            self._make_leaves(run, run.split_multiway(nodes, chosen), each)  # those without room
        return run.release()

    @claim("thm-diffp-id3", "cex-gain-ratio")
    def as_proved(self, run: Run) -> Forest:
        """The repair: *stop* among the candidates in place of a count, sharp rates, and the rest to the leaf."""
        shares = Shares("aligned-uniform", run.epsilon, self.max_depth + 1)
        how = Selection(self._score(), self.option("selection"), "range", self.stop_margin, self.n_max)
        run.start_forest(1, max_nodes=self.max_nodes)
        for level, nodes in run.levels(self.max_depth):
            features = nodes.unused & (run.sizes > 1)
            splits = np.any(features, axis=1)
            self._make_leaves(run, nodes[~splits], shares.leaf(level, selected=False))
            chosen = run.choose_feature(nodes[splits], shares.branch(level), how, features[splits])
            # a node that stops has paid for its selection: thm-stop-budget
            self._make_leaves(run, run.split_multiway(nodes[splits], chosen), shares.leaf(level, selected=True))
        self._make_leaves(run, run.frontier, shares.leaf(shares.depth, selected=False))
        return run.release()

    def _score(self) -> scores.Score:
        return scores.CLASSIFICATION[self.option("criterion")]

    def _published_selection(self, run: Run, epsilon: float) -> tuple[float, Selection]:
        """The paper's selection, with its bound of the sensitivity of information gain in place of the exact one."""
        score = self._score()
        how = Selection(score, "exponential", "sensitivity", None, self.n_max)
        if score.needs_cap:
            epsilon *= score.sensitivity(run.relation, self.n_max) / (log2(self.n_max + 1) + 1 / log(2))
        return epsilon, how

    def check_parameters(self) -> None:
        if isinstance(self.criterion, str) and self.criterion == "gain-ratio":
            raise ValueError(NO_RATIO)
        super().check_parameters()
        check_covered(self._score(), self.relation, stop="candidate", n_max=self.n_max)

    AUDIT: ClassVar = AuditSpec(
        "diffp-id3",
        (
            (HALF_STOP, 2, 2),
            (HALF_STOP | {"criterion": "majority", "selection": "exponential"}, 2, 1),
            (HALF_STOP | {"criterion": "information-gain", "n_max": 16}, 1, 1),
            ({"variant": "published"}, 2, 1),
            ({"variant": "published", "criterion": "information-gain", "n_max": 16}, 1, 1),
            ({"variant": "published", "criterion": "gini"}, 2, 1),
        ),
        sizes=(60,),  # enough for the noisy count to let a node split
        defaults={},
    )
