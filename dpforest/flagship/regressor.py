"""The flagship's regressor."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpforest.curator import FINE
from dpforest.flagship.empirical_bayes import residual_shift, residual_step
from dpforest.flagship.priors import (
    RESIDUAL_SIZES,
    clipping_scale,
    count_noise,
    noise_variances,
    prior_mean,
    shrunken_mean,
    size_lower_bound,
)
from dpforest.flagship.schedules import RegressionSchedule, regression_schedule
from dpforest.flagship.wide_tables import SECOND_SIZE_SHARE, SIZE_LEAK, WideTables
from dpforest.learners.audited import AuditSpec
from dpforest.learners.boosting import whole_votes
from dpforest.learners.run import Run
from dpforest.models.boosted import NO_LINK, BoostedForest, BoostedRegressor
from dpforest.models.forest import Forest
from dpforest.privacy import REPLACE_ONE, claim
from dpforest.schema import TARGET_LEVELS

__all__ = ["PrivateBoostingRegressor"]


class PrivateBoostingRegressor(WideTables, BoostedRegressor):
    """Private boosting of wide tables for a number, the library's own learner.

    As :class:`~dpforest.flagship.PrivateBoostingClassifier`, with residuals in the place of classes: a
    record divides a weight of 1 between the two sides of its cell, as its clipped residual says, and an empirical-Bayes
    step moves the prediction.

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released tables and predictions under ``relation``
    (:prf:ref:`thm-private-boosting-numbers`); ``(epsilon, delta)``-differential privacy with a ``delta``
    (:prf:ref:`thm-private-boosting-delta`).

    Source
    ------
    None: a learner of this library's own, so there is no published variant.

    Notes
    -----
    The mean of the target has a share of epsilon, and so have up to three histograms of the sizes of the residuals, by
    which they are clipped at their quantile of 80 %.  A table of a single cell then moves the mean; so a range that is
    declared far too wide costs little.  A public rule sets the shares and the rounds:
    :func:`~dpforest.flagship.schedules.regression_schedule`.  The number of records is ``n_rows`` if declared, else
    under replace-one the number itself, and under add-remove a noisy one that has 1 % of the budget, less a standard
    deviation, or 6 % more where noise may have drowned that.  A ``delta`` is made use of where there are rounds enough
    that it pays, or where ``n_estimators`` is given: few answers have less noise if each is private by itself.
    The guarantee has it also where it is not used, if it is a noisy number of records that decided so: then another fit
    to the same records may use it.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.flagship import PrivateBoostingRegressor
    >>> schema = Schema(numeric={"x": (0, 1)}, target=(0, 10))
    >>> X = [[i / 400] for i in range(400)]
    >>> y = [2.0] * 200 + [8.0] * 200
    >>> model = PrivateBoostingRegressor(epsilon=8.0, schema=schema, random_state=0).fit(X, y)
    >>> low, high = model.predict([[0.1], [0.9]])
    >>> bool(low < 4 and high > 6)
    True
    """

    @claim("thm-private-boosting-numbers", "thm-private-boosting-delta")
    def as_proved(self, run: Run) -> BoostedForest:
        """The mean; then rounds that choose a table, measure it, and move scores; up to three look at residuals."""
        run.start_forest(1)
        n_rows = self._estimate_n_records(run)
        self.settle_delta(run, self._schedule(run, n_rows, self.delta).rounds)
        plan, left = self._schedule(run, n_rows, run.ledger.delta), 1 - run.spent_share()
        rounds, shift = plan.rounds, plan.shift_share
        share = plan.mean_share if shift else left  # without a table the mean is all that is released
        mean, off = self._measure_mean(run, share * run.budget)
        run.set_leaf_values(run.frontier, whole_votes(np.array([[0.0, mean]])))
        trees = [run.tree(0)]
        left -= share
        # rounds that measure the sizes of the residuals, to clip at their quantile
        looks = [0, 1, 1 + rounds // 2] if rounds >= 6 else [0, 1] if rounds else [0]
        budgets: list[tuple[float, float]] = []
        released, bins_paid = self.bin_numbers(run, n_rows, rounds)
        if shift:
            left -= bins_paid + len(looks) * plan.size_share
            shift = shift if rounds else left
            # the table of a single cell is not chosen
            budgets = [(0.0, shift * run.budget), *self.budgets((left - shift) * run.budget, plan)]
            run.start_forest(len(budgets))
        scale = 1.0  # at which residuals are clipped, as a share of the target's range
        for number in run.rounds(len(budgets)):
            run.add_scores(trees[-1])
            choosing, measuring = budgets[number]
            if number in looks:
                looking = plan.size_share * run.budget
                scale = clipping_scale(run.count_residuals(RESIDUAL_SIZES, looking), count_noise(looking, run.ledger))
            noise = noise_variances(measuring, run.ledger)
            if number:
                table, _, leaves = self.measure(run, released, np.array([scale]), choosing, measuring)
                sums = run.count_crossing(table, scale, leaves, measuring) / FINE
                steps = scale * residual_step(sums, noise, **self._prior(run, table))
            else:
                table, leaves, sums = self.measure_all(run, scale, measuring)
                steps = scale * residual_shift(sums, noise, off / (scale * scale))
            self.vote(run, released, table, leaves, steps[:, None], sums.sum(axis=1), np.array([[0, 1]]))
            trees.append(run.tree(number))
        return BoostedForest(Forest.join(trees), NO_LINK)

    def _schedule(self, run: Run, n_rows: float, delta: float) -> RegressionSchedule:
        asked = None if isinstance(self.n_estimators, str) else int(self.n_estimators)
        return regression_schedule(n_rows, run.epsilon, run.relation, delta, asked)

    def _estimate_n_records(self, run: Run) -> float:
        """The number of records for the schedule, at least 1.

        If the first noisy count is below twice the standard deviation of its noise, a second one has more budget.
        """

        def ask(share: float) -> np.ndarray:
            return run.sum_masses(run.frontier, share * run.budget) / TARGET_LEVELS

        n_rows, first, noise = self.estimate_size(run, ask)
        if first is None or n_rows >= 2 * math.sqrt(2) * noise:
            return n_rows
        again = ask(SECOND_SIZE_SHARE)
        return max(size_lower_bound(again, count_noise(SECOND_SIZE_SHARE * run.budget, run.ledger)), 1.0)

    def _measure_mean(self, run: Run, budget: float) -> tuple[float, float]:
        """The mean of the target as a share of its range, and the variance of its error.

        Under replace-one the number of records is public, and the sum alone has the noise: a replaced record moves it
        by one range, and the two masses by two.
        """
        if run.relation == REPLACE_ONE:
            n_rows = max(run.size(SIZE_LEAK), 1)
            at = float(run.sum_targets(run.frontier, budget)[0]) / TARGET_LEVELS / n_rows
            return shrunken_mean(at, (count_noise(budget, run.ledger, 1.0) / n_rows) ** 2)
        return prior_mean(run.sum_masses(run.frontier, budget), count_noise(budget, run.ledger))

    AUDIT: ClassVar = AuditSpec(
        "private-boosting-regressor",
        (({}, 2, None), ({"n_estimators": 2, "selection": "exponential", "interactions": 2}, 2, None)),
        defaults={"n_estimators": 1, "interactions": 0, "n_rows": 10},
    )
