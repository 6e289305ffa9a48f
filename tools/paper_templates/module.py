"""NewPaper: TODO, what the paper proposes, in a line (TODO: authors, and the year).

TODO: how a tree grows, and what is chosen and counted on the way.  The chapter *NewPaper* tells what of the published
claim holds, and why the repair does.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from dpforest.learners.audited import AuditSpec
from dpforest.learners.base import PrivateForestClassifier
from dpforest.learners.parameters import Integer
from dpforest.learners.run import Run
from dpforest.models.forest import Forest
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import claim

__all__ = ["NewPaperClassifier"]


class NewPaperClassifier(PrivateForestClassifier):
    """TODO: what kind of learner this is, in a line.

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-new-paper`).  ``variant="published"``: TODO (:prf:ref:`pub-new-paper`).

    Source
    ------
    TODO: where it appeared, and which algorithms and formulas are meant.
    """

    # TODO: each parameter of the paper with its type, its rule, what it means, and its default
    max_depth: Annotated[int, Integer(1, MAX_DEPTH), "Splits on the longest path."] = 5

    @claim("alg-new-paper", "pub-new-paper")
    def as_published(self, run: Run) -> Forest:
        """TODO: which algorithms of the paper."""
        raise NotImplementedError("TODO: the paper's steps in its order; run.peek(...) where it looks and does not pay")

    @claim("thm-new-paper")
    def as_proved(self, run: Run) -> Forest:
        """TODO: what the repair changes."""
        raise NotImplementedError("TODO: the same steps with every look paid for, or left out")

    # -- the audit -------------------------------------------------------------------------------------------

    # TODO: the settings to look at, as (options, features, depth), and refuted("why") if the paper's claim is false
    AUDIT: ClassVar = AuditSpec("new-paper", (({}, 2, 2), ({"variant": "published"}, 2, 2)))
