"""PINQ-based ID3: the tree of SuLQ-based ID3, whose counts are asked of parts (McSherry, 2009).

PINQ's operator *Partition* divides the records by a public key; questions to the parts cost their maximum, not their
sum.  The chapter *PINQ-based ID3* says what that saves, compared with an interface that has no such operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from dpforest.learners.audited import AuditSpec
from dpforest.learners.facts import Facts
from dpforest.learners.id3 import CountedID3Tree
from dpforest.learners.parameters import AsPublished
from dpforest.learners.run import Run
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["PinqID3Classifier", "overcharge"]

MOST = 10**6  # times that the account without parts may be the one with them


@claim("alg-pinq-id3", "thm-pinq-id3", "pub-pinq-id3")
class PinqID3Classifier(CountedID3Tree):
    """Private ID3 tree from noisy counts of parts.

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released tree under ``relation``, in both variants and with either
    ``composition`` (:prf:ref:`thm-pinq-id3`, :prf:ref:`pub-pinq-id3`).

    Source
    ------
    SIGMOD 2009 for the interface, KDD 2010, Algorithm 2, for the tree.

    Notes
    -----
    The paper's features are discrete.  A numeric one is cut into ``n_bins`` public bins of equal width over its bounds,
    and splits into all of them.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.pinq_id3 import PinqID3Classifier
    >>> schema = Schema(categorical={"x": ["low", "high"]}, classes=["no", "yes"])
    >>> X, y = [["low"]] * 100 + [["high"]] * 100, ["no"] * 100 + ["yes"] * 100
    >>> model = PinqID3Classifier(epsilon=2.0, schema=schema, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([["low"], ["high"]]).tolist()
    ['no', 'yes']
    """

    composition: Annotated[
        Literal["parallel", "sequential"],
        AsPublished("parallel", "sequential"),
        """How the account adds up.  ``"parallel"``: as PINQ does, counts of parts cost the largest of them.
        ``"sequential"`` (published only): as an interface without *Partition* must, every count by itself, so that
        ``epsilon`` is divided by :func:`overcharge`.""",
    ] = "parallel"

    @claim("alg-pinq-id3", "pub-pinq-id3")
    def as_published(self, run: Run) -> Forest:
        """The tree of SuLQ-based ID3; without *Partition* its budget must do for every single count."""
        if self.composition == "sequential":
            times = overcharge(run.sizes.tolist(), run.schema.n_classes, self.max_depth)
            if times > MOST:
                raise ValueError(
                    f"a tree of max_depth={self.max_depth} on these features may ask for so many counts that each "
                    "would have less than a millionth of its budget: use a smaller max_depth, or composition='parallel'"
                )
            run.epsilon /= float(times)
        return super().as_published(run)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.variant == "proved" and self.composition == "sequential":
            raise ValueError(
                "composition='sequential' leaves budget over, which the proved variant does not: use 'parallel', or "
                "variant='published'"
            )

    FACTS = Facts(splits_from_counts=True)
    AUDIT: ClassVar = AuditSpec(
        "pinq-id3",
        (
            ({}, 2, 1),
            ({"max_depth": 0}, 2, None),
            ({"variant": "published"}, 2, 1),
            ({"variant": "published", "max_depth": 0}, 2, None),
            ({"variant": "published", "max_depth": 0, "composition": "sequential"}, 2, None),
        ),
        sizes=(60,),
        defaults={},
    )


@claim("thm-pinq-id3")
def overcharge(sizes: Sequence[int], n_classes: int, depth: int) -> Fraction:
    """Cost of the published tree if each of its counts is charged by itself, for each unit that its paths cost.

    Parameters
    ----------
    sizes : sequence of int
        Values of each feature.
    n_classes, depth : int
        ``depth`` is the number of splits on the longest path.

    Returns
    -------
    Fraction
        The largest over the trees that may grow, at least 1.  It is public.
    """
    left, nodes, asked = sorted((size for size in sizes if size > 1), reverse=True), 1, Fraction()
    # where a node splits on the feature of most values it asks for most, itself and all below it
    for _ in range(min(depth, len(left))):
        asked += nodes * (1 + Fraction(sum(left), 2 * len(left)) * (1 + n_classes))
        nodes *= left.pop(0)
    return (asked + nodes * (1 + n_classes)) / (2 * (depth + 1))
