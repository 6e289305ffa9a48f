"""DT-Diff: a generalised table along a feature model (Zhu, Xiong, Xiang and Zhou, 2013), in a reading of ours.

A few features are chosen first, the feature model; values are made special along it alone, and the groups are released
with noisy class counts, as in DiffGen.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from dpforest.learners.audited import AuditSpec
from dpforest.learners.generalisation import (
    Generalisation,
    PrivateTable,
    Specialisation,
    choose_by_table,
    specialise_values,
)
from dpforest.learners.parameters import Either, Integer
from dpforest.learners.run import Run
from dpforest.models.forest import Forest
from dpforest.privacy import claim
from dpforest.schema import Schema, Value

__all__ = ["DTDiffClassifier"]


@claim("alg-dt-diff", "pub-dt-diff", "thm-dt-diff")
class DTDiffClassifier(PrivateTable):
    """Private generalised table along a private feature model.

    The features of the model are chosen before a value is made special, each by how well all of its values together
    tell the classes apart.  Features outside the model keep their most general value.

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released table under ``relation``, of both variants
    (:prf:ref:`thm-dt-diff`); of the published one in our reading (:prf:ref:`pub-dt-diff`).

    Raises
    ------
    ValueError
        On bad parameters; on a taxonomy that is no tree over the declared categories; on more specialisations than
        there are; on a model of more features than there are.

    Source
    ------
    TrustCom 2013, as the CART-DPsAdaBoost paper describes it (table 1); the paper itself could not be read.

    Examples
    --------
    >>> from dpforest import DTDiffClassifier, Schema
    >>> schema = Schema(numeric={"x": (0, 1), "z": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200, i % 2] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DTDiffClassifier(epsilon=8.0, schema=schema, specialisations=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1, 0], [0.9, 0]]).tolist()
    ['no', 'yes']
    """

    model_size: Annotated[
        int | str,
        Either("auto", rule=Integer(1)),
        "Features of the model; auto is half of them, rounded up, and two at least.",
    ] = "auto"
    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is our reading of the paper: cuts of numbers chosen in advance, scores of a value whatever
        the groups, exponents ``epsilon' / (2 sensitivity)``, as in DiffGen.""",
    ] = "proved"

    @claim("alg-dt-diff", "pub-dt-diff")
    def as_published(self, run: Run) -> Forest:
        """Our reading: the feature model, DiffGen along it, and noisy groups."""
        run.start_forest(1, max_nodes=self.max_nodes)
        table, rounds, size = Generalisation(run, self.taxonomies), self._rounds(run.schema), self._size(run.schema)
        share = run.epsilon / (
            4 * max(1, size + rounds)
        )  # for the model, a cut of each number in it, and two each round
        model: list[int] = []
        for _ in range(size):
            candidates = whole_features(run, model)
            model.append(choose_by_table(run, table, candidates, share, self._selection(), run.frontier.scopes).feature)
        specialise_values(run, table, model, rounds, share, self._selection())
        run.set_leaf_values(table.groups, run.count_classes(table.groups, run.epsilon / 2))
        return run.release()

    @claim("thm-dt-diff")
    def as_proved(self, run: Run) -> Forest:
        """The repair: every cut is a candidate, a single candidate is not paid for, and the counts get what is left."""
        run.start_forest(1, max_nodes=self.max_nodes)
        root, left = run.frontier.scopes, run.epsilon
        table, rounds, size = Generalisation(run, self.taxonomies), self._rounds(run.schema), self._size(run.schema)
        every = [one.feature for one in whole_features(run, [])]
        chosen = size if size < len(every) and rounds else 0  # a model of all features needs no choice
        share, model = run.epsilon / (2 * max(1, chosen + rounds)), [] if chosen else every

        def choose(candidates: list[Specialisation]) -> Specialisation:
            nonlocal left
            if len(candidates) == 1:
                return candidates[0]
            left = left - share if math.isfinite(left) else left
            return choose_by_table(run, table, candidates, share, self._selection(), root)

        for _ in range(chosen):
            model.append(choose(whole_features(run, model)).feature)
        for _ in range(rounds):
            able = (one for one in table.all_candidates() if one.feature in model and table.fits(one))
            if not (candidates := list(able)):
                break
            table.specialise(choose(candidates))
        run.set_leaf_values(table.groups, run.count_classes(table.groups, left))
        return run.release()

    def _size(self, schema: Schema) -> int:
        able = int((schema.cardinalities(self.bins(schema)) > 1).sum())
        size = min(max(2, (able + 1) // 2), able) if self.model_size == "auto" else int(self.model_size)
        if size > max(able, 1):
            raise ValueError(f"model_size={size}: the schema has {able} features of more than one value")
        return size

    def check_parameters(self) -> None:
        super().check_parameters()
        self._size(self.declared_schema())

    AUDIT: ClassVar = AuditSpec(
        "dt-diff",
        (
            ({"specialisations": 1, "model_size": 1}, 2, None),
            ({}, 2, None),
            ({"criterion": "gini", "selection": "exponential", "model_size": 2}, 2, None),
            ({"variant": "published"}, 2, None),
            ({"variant": "published", "specialisations": 1, "model_size": 1}, 2, None),
        ),
        defaults={},
    )


def whole_features(run: Run, taken: list[int]) -> list[Specialisation]:
    """The division of each feature into all of its codes, but for features that are ``taken`` or have a single code."""
    return [
        Specialisation(feature, 0, tuple(Value("", (code,)) for code in range(size)))
        for feature, size in enumerate(run.sizes.tolist())
        if size > 1 and feature not in taken
    ]
