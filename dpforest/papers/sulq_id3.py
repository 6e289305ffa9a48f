"""SuLQ-based ID3: one ID3 tree from noisy counts alone (Blum, Dwork, McSherry and Nissim, 2005).

Its budget and its rule for stopping are those that Friedman and Schuster (2010) gave it.  A node counts the classes in
each child that each feature would make, and splits on the feature with the largest noisy information gain.  The chapter
*SuLQ-based ID3* tells what that costs for each feature.
"""

from __future__ import annotations

from typing import ClassVar

from dpforest.learners.audited import AuditSpec
from dpforest.learners.facts import Facts
from dpforest.learners.id3 import CountedID3Tree
from dpforest.privacy import claim

__all__ = ["SulqID3Classifier"]


@claim("alg-sulq-id3", "thm-sulq-id3", "pub-sulq-id3")
class SulqID3Classifier(CountedID3Tree):
    """Private ID3 tree that sees noisy counts and nothing else.

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released tree under ``relation``, in both variants
    (:prf:ref:`thm-sulq-id3`, :prf:ref:`pub-sulq-id3`).

    Source
    ------
    PODS 2005, with the budget and the stopping rule of KDD 2010, Algorithm 2.

    Notes
    -----
    The paper's features are discrete.  A numeric one is cut into ``n_bins`` public bins of equal width over its bounds,
    and splits into all of them.  Noisy counts may be negative: see
    :func:`~dpforest.learners.id3.noisy_gain`.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.sulq_id3 import SulqID3Classifier
    >>> schema = Schema(categorical={"x": ["low", "high"]}, classes=["no", "yes"])
    >>> X, y = [["low"]] * 100 + [["high"]] * 100, ["no"] * 100 + ["yes"] * 100
    >>> model = SulqID3Classifier(epsilon=2.0, schema=schema, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([["low"], ["high"]]).tolist()
    ['no', 'yes']
    """

    FACTS = Facts(splits_from_counts=True)
    AUDIT: ClassVar = AuditSpec(
        "sulq-id3",
        (
            ({}, 2, 1),
            ({"max_depth": 0}, 2, None),
            ({"variant": "published"}, 2, 1),
            ({"variant": "published", "max_depth": 0}, 2, None),
        ),
        sizes=(60,),
        defaults={},
    )
