"""The flagship's classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from dpforest.arithmetic import exp, log
from dpforest.curator import FINE, FINEST
from dpforest.flagship.empirical_bayes import artanh_step, gradient_steps, newton_step, stands_out
from dpforest.flagship.priors import (
    PER_MINORITY_TRIAL,
    count_noise,
    effective_records,
    noise_variances,
    perplexity,
    prior_scores,
    size_lower_bound,
    weighted_mean,
)
from dpforest.flagship.schedules import BoostingSchedule, schedule
from dpforest.flagship.wide_tables import WideTables
from dpforest.learners.audited import AuditSpec
from dpforest.learners.boosting import ClassWeights, class_shares, whole_votes
from dpforest.learners.growth import Frontier
from dpforest.learners.parameters import OneOf
from dpforest.learners.run import Run
from dpforest.models.boosted import BoostedClassifier, BoostedForest
from dpforest.models.forest import Forest
from dpforest.privacy import claim
from dpforest.schema import Schema
from dpforest.structure.crossings import Crossings

__all__ = ["MANY_CLASSES", "OVERSHOOT", "PrivateBoostingClassifier"]

# Constants of the design, which privacy does not depend on.  *The flagship* says on which tables such were chosen.
#: With more than two classes a round moves the scores of one class only; its step is multiplied by this.
OVERSHOOT = 1.3
#: Class totals are measured again where the rule gives them a share at least so many times what they had.
AGAIN = 1.5
#: Above so many classes, by their perplexity, a table moves all of them: it has twice the noise of one that moves one.
MANY_CLASSES = 4.2


class FirstLook(NamedTuple):
    """The result of the class totals, before the first round.

    Attributes
    ----------
    schedule : BoostingSchedule
        The rule that follows from the number of records that weigh.
    prior : ndarray of float64, shape (1, n_classes)
        Scores of the model without tables, from the noisy class totals.
    n_records : float
        Number of records, public or noisy.
    left : float
        Share of the budget that is left.
    """

    schedule: BoostingSchedule
    prior: np.ndarray
    n_records: float
    left: float


class PrivateBoostingClassifier(WideTables, BoostedClassifier):
    """Private boosting of wide tables, the library's own learner.

    A round chooses one table by a private selection, out of every feature's own and of random ones that cross two or
    three features.  It measures the table: in each cell the weights of the records of a target class and of all others,
    a weight being a function of the record's own class and of what was released before.  An empirical-Bayes step moves
    the score of the target class in each cell; of many classes it moves the scores of all.  The softmax of the scores
    is the probability of a class, and no calibration is needed.

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
    under add-remove the sum of noisy class totals, of which a first look has 1 % of the budget.  Where one class
    has nearly all records, the rule uses eight times the number of the others.  Where tables would be mostly
    noise there is one round at most, a trial: its table changes the scores only if its signal clearly exceeds its
    noise.  A ``delta`` is used where there are enough rounds to make it an advantage, or where ``n_estimators`` is
    given: the ledger says whether it is used.  The guarantee has it also where it is not, if it is a noisy number of
    records that decided so: then another fit to the same records may use it.

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
    multi_class: Annotated[
        str,
        OneOf("auto", "ovr", "multinomial"),
        """What a round moves: ``"ovr"``, the score of one class against all others; ``"multinomial"``, the scores of
        all classes, but not under ``monotonic_cst``.  auto: multinomial where the released class totals have a
        perplexity above 4.2.""",
    ] = "auto"

    @claim("thm-private-boosting", "thm-private-boosting-delta", "alg-private-boosting")
    def as_proved(self, run: Run) -> BoostedForest:
        """Class totals; perhaps histograms of numbers; then rounds that choose a table, measure it, and move scores."""
        n_classes = run.schema.n_classes
        run.start_forest(1)
        plan, prior, n_records, left = self._measure_class_totals(run)
        released, bins_paid = self.bin_numbers(run, n_records, self.rounds_of(plan))
        together = self.moves_together(prior)
        run.set_leaf_values(run.frontier, whole_votes(prior))
        trees = [run.tree(0)]
        budgets = self.budgets((left - bins_paid) * run.budget, plan)
        if budgets:
            run.start_forest(len(budgets))
        # of two classes what one gains the other loses: the second is enough
        targets = np.arange(n_classes) if together or n_classes > 2 else np.array([1])
        for number in run.rounds(len(budgets)):
            run.add_scores(trees[-1])
            choosing, measuring = budgets[number]
            table, at, leaves = self.measure(run, released, targets, choosing, measuring, together)
            cells = self._prior(run, table)
            if not together:  # one class against all others
                sums = run.count_crossing(table, targets[at].item(), leaves, measuring) / FINE
                noise = noise_variances(measuring, run.ledger)
                steps = self.step(sums, noise, **cells)[:, None]
                # a trial: the class totals alone are better than a table that is noise
                if plan.evidence is not None and not stands_out(sums, noise[0], plan.evidence):
                    steps = np.zeros_like(steps)
                if n_classes > 2:
                    steps = OVERSHOOT * artanh_step(steps)
                sizes, values = sums.sum(axis=1), np.eye(n_classes, dtype=np.int64)[targets[at : at + 1]]
            else:  # all classes
                sums, variances = self._measure_gradients(run, table, leaves, measuring, prior if number == 0 else None)
                steps = gradient_steps(sums, variances, **cells)
                sizes, values = sums.sum(axis=(1, 2)), np.eye(n_classes, dtype=np.int64)
            self.vote(run, released, table, leaves, steps, sizes, values)
            trees.append(run.tree(number))
        # class weights move the scores when all is measured: rounds see the records as they are
        moved = trees[0].values + whole_votes(self._class_weight_shift(run, prior))
        return BoostedForest(Forest.join([replace(trees[0], values=moved), *trees[1:]]), "softmax")

    def moves_together(self, prior: np.ndarray) -> bool:
        """Whether a round moves the scores of all classes, where the model without tables has scores ``prior``."""
        n_classes = prior.shape[1]
        if self.multi_class == "auto":
            return n_classes > MANY_CLASSES and perplexity(prior) > MANY_CLASSES
        return self.multi_class == "multinomial" and not self.monotonic_cst

    @claim("lem-all-classes")
    def _measure_gradients(
        self, run: Run, table: Crossings, leaves: Frontier, measuring: float, prior: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Noisy weights against and for each class in each cell, and the variances of their gaps and sizes.

        Where all records still have the same scores, ``prior``, both weights follow from class counts, with half the
        noise.  Shapes (n_cells, n_classes, 2) and (n_classes, 2).
        """
        if prior is None:
            gap, size = noise_variances(measuring / 2, run.ledger)
            noise = np.broadcast_to([gap, size], (run.schema.n_classes, 2))
            return run.count_gradients(table, leaves, measuring) / FINEST, noise
        counts, [shares] = run.count_classes(leaves, measuring).astype(float), exp(prior)
        others = counts.sum(axis=1, keepdims=True) - counts
        each = count_noise(measuring, run.ledger) ** 2 * (1 - 2 * shares + len(shares) * shares * shares)
        return np.stack([shares * others, (1 - shares) * counts], axis=2), np.stack([each, each], axis=1)

    @claim("lem-class-weights")
    def _class_weight_shift(self, run: Run, prior: np.ndarray) -> np.ndarray:
        """By how much class weights move the scores of every record: their logarithms, broadcast to (1, n_classes)."""
        if isinstance(self.class_weight, str):  # balanced
            return -prior
        shares = self._class_shares(run.schema)
        return np.zeros_like(prior) if shares is None else log(shares)

    def _class_shares(self, schema: Schema) -> np.ndarray | None:
        """The declared weight of each class, the largest being 1; None for no weights or balanced ones."""
        assert schema.classes is not None
        return class_shares(None if isinstance(self.class_weight, str) else self.class_weight, schema.classes)

    def check_parameters(self) -> None:
        super().check_parameters()
        self._class_shares(self.declared_schema())

    def step(self, sums: np.ndarray, noise: tuple[float, float], **prior: Any) -> np.ndarray:
        """The step of each cell: :func:`~dpforest.flagship.empirical_bayes.newton_step`; any other is as private."""
        return newton_step(sums, noise, **prior)

    def _schedule(
        self, run: Run, n_rows: float, known: bool, together: bool = False, delta: float | None = None
    ) -> BoostingSchedule:
        delta = run.ledger.delta if delta is None else delta
        n_classes, trials = run.schema.n_classes, isinstance(self.n_estimators, str)
        return schedule(
            n_rows, run.epsilon, n_classes, run.relation, delta, known=known, together=together, trials=trials
        )

    def _measure_class_totals(self, run: Run) -> FirstLook:
        """Measure the class totals, and set the schedule of the fit by them.

        The schedule depends on the number of effective records, which is estimated from the totals, and it sets the
        share of the budget that the totals have.  So they are measured again, and averaged, until the schedule would
        not give them much more.
        """

        def measure(share: float) -> tuple[np.ndarray, float]:
            """The class totals and the standard deviation of their noise, for a share of the budget."""
            budget = share * run.budget
            return run.count_classes(run.frontier, budget), count_noise(budget, run.ledger)

        # the number of records, and by it whether delta is used: without a public number by a first measurement
        n_rows, first, noise = self.estimate_size(run, lambda share: measure(share)[0])
        self.settle_delta(run, self._schedule(run, n_rows, first is None, delta=self.delta).rounds)
        plan = self._schedule(run, n_rows, first is None)
        # the totals at the share of that schedule, unless the first measurement has less noise
        left = 1 - run.spent_share()
        totals, share = first, plan.totals_share if self.rounds_of(plan) else left
        if totals is None or noise > count_noise(share * run.budget, run.ledger):
            totals, noise = measure(share)
            left -= share
        else:
            share = 1 - left
        if not self.rounds_of(plan):
            return FirstLook(plan, prior_scores(totals, noise), n_rows, 0.0)
        if first is not None:
            n_rows = max(size_lower_bound(totals, noise), 1.0)
        # with fewer effective records the schedule gives the totals more
        while True:
            prior = prior_scores(totals, noise)
            plan = self._schedule(run, effective_records(n_rows, totals, noise), True, self.moves_together(prior))
            if not self.rounds_of(plan) or plan.totals_share < AGAIN * share:
                break
            totals, noise = weighted_mean(totals, noise, *measure(plan.totals_share - share))
            left, share = left - (plan.totals_share - share), plan.totals_share
        if plan.evidence is not None:  # where most records are of one class, a trial would seldom find the others
            plan = self._schedule(run, effective_records(n_rows, totals, noise, PER_MINORITY_TRIAL), True)
        if not self.rounds_of(plan):  # no table will be measured: what is left goes to the totals
            left, prior = 0.0, prior_scores(*weighted_mean(totals, noise, *measure(left)))
        return FirstLook(plan, prior, n_rows, left)

    AUDIT: ClassVar = AuditSpec(
        "private-boosting",
        (
            ({}, 2, None),
            ({"n_estimators": 2, "selection": "exponential"}, 1, None),
            ({"n_estimators": 2, "interactions": 2}, 2, None),
            ({"delta": 1e-6}, 1, None),
            ({"n_estimators": 2, "multi_class": "multinomial"}, 1, None),
        ),
        defaults={"n_estimators": 1, "interactions": 0, "n_rows": 10},
    )
