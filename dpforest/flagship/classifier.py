"""The flagship's classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dpforest.arithmetic import log
from dpforest.flagship.candidates import ReleasedTotals
from dpforest.flagship.empirical_bayes import newton_step, whole_step
from dpforest.flagship.priors import count_noise, noise_variances, prior_scores
from dpforest.flagship.schedules import BoostingSchedule, schedule
from dpforest.flagship.wide_tables import SIZE_SHARE, WideTables
from dpforest.learners.audited import AuditSpec
from dpforest.learners.boosting import ClassWeights, class_shares, whole_votes
from dpforest.learners.run import Run
from dpforest.models.boosted import BoostedClassifier, BoostedForest
from dpforest.models.forest import Forest
from dpforest.privacy import claim
from dpforest.schema import Schema

__all__ = ["OVERSHOOT", "PrivateBoostingClassifier"]

#: Of more than two classes a round moves the scores of one, and the others have to wait: it goes so much further.
OVERSHOOT = 1.3


class PrivateBoostingClassifier(WideTables, BoostedClassifier):
    """Private boosting of wide tables, the library's own learner.

    A round chooses one table by a private selection, out of every feature's own and of random ones that cross two or
    three features.  It measures the table: in each cell the weights of the records of a target class and of all others,
    a weight being a function of the record's own class and of what was released before.  An empirical-Bayes step moves
    the score of the target class in each cell.  The softmax of the scores is the probability of a class, and no
    calibration is needed.

    Attributes
    ----------
    boosted_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released tables and scores under ``relation``
    (:prf:ref:`thm-private-boosting`); ``(epsilon, delta)``-differential privacy with a ``delta``
    (:prf:ref:`thm-private-boosting-delta`).

    Source
    ------
    None: a learner of this library's own, so there is no published variant.

    Notes
    -----
    What is ``"auto"`` follows from a public rule, :func:`~dpforest.flagship.schedules.schedule`.  It looks at the
    number of records: ``n_rows`` if declared, else under replace-one the number itself, which is public there, and
    under add-remove the sum of the class totals, at a first look that has 1 % of the budget, less a standard deviation.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.flagship import PrivateBoostingClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = PrivateBoostingClassifier(epsilon=4.0, schema=schema, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    class_weight: Annotated[
        Mapping[Any, float] | str | None,
        ClassWeights(balanced=True),
        """Public weights of the classes, positive, 1 where not named; or ``"balanced"``, for weights that make the
        released class totals equal.  The probabilities are then those of the weighted classes: no budget is spent, for
        the scores are moved when all is released.""",
    ] = None

    @claim("thm-private-boosting", "thm-private-boosting-delta", "alg-private-boosting")
    def as_proved(self, run: Run) -> BoostedForest:
        """Class totals, and then round by round a table, its sums, a step."""
        n_classes = run.schema.n_classes
        run.start_forest(1)
        auto, totals, share, paid = self._totals(run)
        prior = prior_scores(totals, count_noise(share * run.budget, run.ledger))
        run.set_leaf_values(run.frontier, whole_votes(prior))
        trees = [run.tree(0)]
        budgets = self.budgets((1 - paid) * run.budget, auto)
        if budgets:
            run.start_forest(len(budgets))
        targets = np.arange(n_classes if n_classes > 2 else 1) + (n_classes == 2)
        known = ReleasedTotals.nothing(run.schema.n_features)
        for number in run.rounds(len(budgets)):
            run.add_scores(trees[-1])
            table, at, leaves, sums = self.measure(run, known, targets, *budgets[number])
            steps = self.step(sums, noise_variances(budgets[number][1], run.ledger), **self._prior(run, table))
            if n_classes > 2:
                steps = OVERSHOOT * whole_step(steps)
            self.vote(run, known, table, leaves, steps, sums, np.eye(n_classes, dtype=np.int64)[targets[at]])
            trees.append(run.tree(number))
        moved = trees[0].values + whole_votes(self._weighted(run, prior))
        return BoostedForest(Forest.join([replace(trees[0], values=moved), *trees[1:]]), "softmax")

    @claim("lem-class-weights")
    def _weighted(self, run: Run, prior: np.ndarray) -> np.ndarray:
        """How far the class weights move the scores of all records: by their logarithms; (1, n_classes)."""
        shares = self._class_shares(run.schema)
        return -prior if isinstance(self.class_weight, str) else np.zeros_like(prior) if shares is None else log(shares)

    def _class_shares(self, schema: Schema) -> np.ndarray | None:
        assert schema.classes is not None
        return class_shares(None if isinstance(self.class_weight, str) else self.class_weight, schema.classes)

    def check_parameters(self) -> None:
        super().check_parameters()
        self._class_shares(self.declared_schema())

    def step(self, sums: np.ndarray, noise: tuple[float, float], **prior: Any) -> np.ndarray:
        """The step of each cell: :func:`~dpforest.flagship.empirical_bayes.newton_step`; any other is as private."""
        return newton_step(sums, noise, **prior)

    def _schedule(self, run: Run, n_rows: float, known: bool) -> BoostingSchedule:
        return schedule(n_rows, run.epsilon, run.schema.n_classes, run.relation, run.ledger.delta, known)

    def _totals(self, run: Run) -> tuple[BoostingSchedule, np.ndarray, float, float]:
        """The rule, noisy class totals (1, n_classes), the share of the budget that they had, and all that is paid."""

        def ask(share: float) -> np.ndarray:
            return run.count_classes(run.frontier, share * run.budget)

        n_rows, first = self.estimate_size(run, ask)
        auto = self._schedule(run, n_rows, first is None)
        if run.ledger.delta and first is None and not self.rounds_of(auto):
            run.without_delta()  # a single answer has less noise if it is private by itself
            auto = self._schedule(run, n_rows, True)
        paid = 0.0 if first is None else SIZE_SHARE
        share = auto.totals_share if self.rounds_of(auto) else 1 - paid
        if first is not None and share <= SIZE_SHARE:
            return auto, first, SIZE_SHARE, SIZE_SHARE
        return auto, ask(share), share, paid + share

    AUDIT: ClassVar = AuditSpec(
        "private-boosting",
        (
            ({}, 2, None),
            ({"n_estimators": 2, "selection": "exponential"}, 1, None),
            ({"n_estimators": 2, "interactions": 2}, 2, None),
            ({"delta": 1e-6}, 1, None),
        ),
        defaults={"n_estimators": 1, "interactions": 0, "n_rows": 10},
    )
