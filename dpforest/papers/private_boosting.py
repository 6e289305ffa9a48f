"""Private boosting of wide tables: the library's own learner, which no paper published.

Each round selects one table, of a feature or of a few crossed ones, measures it, and moves the scores of its cells by
what empirical Bayes makes of the noisy sums.  The chapter *The flagship* has the design and the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from dpforest.arithmetic import exp, log, sinh
from dpforest.curator import FINE, GAP_SHARE
from dpforest.learners.audited import EXACT, AuditSpec
from dpforest.learners.base import WithDelta
from dpforest.learners.boosting import ClassWeights, class_shares, whole_votes
from dpforest.learners.crossed import ReleasedTotals, grow_table, random_tables, single_tables, whole_table
from dpforest.learners.empirical_bayes import newton_step, residual_shift, residual_step, whole_step
from dpforest.learners.growth import Frontier
from dpforest.learners.monotone import Directions, directions_of, monotone
from dpforest.learners.parameters import Either, Integer, Number, OneOf
from dpforest.learners.run import Run
from dpforest.mechanisms import SELECTIONS
from dpforest.models.boosted import NO_LINK, BoostedClassifier, BoostedForest, BoostedRegressor
from dpforest.models.crossings import Crossings
from dpforest.models.forest import Forest
from dpforest.privacy import HISTOGRAM_SENSITIVITY, REPLACE_ONE, Ledger, claim, rho_of
from dpforest.schema import TARGET_LEVELS, Schema
from dpforest.schema.grid import GRIDS

__all__ = ["BoostingSchedule", "PrivateBoostingClassifier", "PrivateBoostingRegressor", "rule", "rule_of_numbers"]

CHOOSERS = ("auto", *SELECTIONS)
LOOK_SHARE = 0.01  # of the budget, for a first look at the class totals where nobody declared the number of records
LOOK_AGAIN = 0.06  # for a second one, where its noise may have drowned the number and there are numbers to predict
#: Sizes of residuals, as shares of the target's range: each is two thirds of the next.
SIZES = np.array([(2 / 3) ** k for k in range(13, -1, -1)])
#: Variance of the prior of the mean of a target, of which nothing is known: it is anywhere in the range.
ANYWHERE = 0.05
#: Log prior of a prior variance t of a table of one feature, for each cell: minus so many t.
PENALTY = 0.1
#: Of more than two classes a round moves the scores of one, and the others have to wait: it goes so much further.
OVERSHOOT = 1.3
#: What a round measures, in the ledger's words, without a delta and with one.
CELLS = "sum the weights in a cell", "sum the gap and the size of a cell"
SIZE = "the number of records, for the rule of the parameters", "public under replace-one"


@dataclass(frozen=True)
class BoostingSchedule:
    """What the parameters that are ``"auto"`` stand for.

    Attributes
    ----------
    rounds : int
        None, where tables would say less than their noise does: then the class totals have the whole budget.
    totals_share : float
        Share of the budget for the class totals, if there are rounds.
    select_share : float
        Share of a round for the selection of its table.
    growth : float
        How many times the budget of a round is that of the one before, if the rounds are those of the rule.
    """

    rounds: int
    totals_share: float
    select_share: float = 0.2
    growth: float = 1.0


def rule(
    n_rows: float, epsilon: float, n_classes: int, relation: str, delta: float = 0.0, known: bool = True
) -> BoostingSchedule:
    """The public rule: by the number of records, as far as it is public, the budget, the classes and the relation.

    Parameters
    ----------
    n_rows : float
        Declared, or noisy; at least 1.
    epsilon : float
        Infinite for no noise.
    n_classes : int
    relation : {"add-remove", "replace-one"}
    delta : float
    known : bool
        Whether ``n_rows`` is declared or public.  A number that noise may have drowned is no reason not to try: then
        there is a round or two at least.
    """
    told = n_rows * told_by_one(epsilon, relation, delta)
    if delta:
        most = 60 if n_classes == 2 else 90
        rounds = most if math.isinf(told) else round(0.37 * most * exp(0.6 * log(told / 3000)))
        rounds = 0 if known and told < 4 else min(max(rounds, 3), most)
        totals = (21 / told) * (21 / told)
        many = told > 1500
        return BoostingSchedule(rounds, min(max(totals, 0.01), 0.25), 0.2 if many else 0.35, 1.07 if many else 1.0)
    most = 40 if n_classes == 2 else 60
    rounds = most if math.isinf(told) else round((most // 4) * exp(0.35 * log(told / 20_000)))
    rounds = 0 if known and told < (10 if n_classes == 2 else 70) else min(max(rounds, 2), most)
    return BoostingSchedule(rounds, min(max(30 / told, 0.01), 0.25))


def told_by_one(epsilon: float, relation: str, delta: float) -> float:
    """By what one record is told from the noise of a count, about, if that has the whole budget."""
    if delta:
        return math.sqrt(rho_of(epsilon, delta) / HISTOGRAM_SENSITIVITY[relation])
    return epsilon / HISTOGRAM_SENSITIVITY[relation]


@dataclass(frozen=True)
class NumbersRule:
    """What the parameters of the regressor that are ``"auto"`` stand for.

    Attributes
    ----------
    rounds : int
        None, where tables would say less than their noise does.
    mean_share, size_share : float
        Shares of the budget for the mean of the target, and for each histogram of the sizes of the residuals.
    shift_share : float
        Share for the table of a single cell, which moves the mean; without rounds 1, for all that is left, or 0, for
        no such table: then the mean has the whole budget.
    select_share, growth : float
        As of :class:`BoostingSchedule`.
    """

    rounds: int
    mean_share: float
    size_share: float
    shift_share: float
    select_share: float = 0.2
    growth: float = 1.0


def rule_of_numbers(
    n_rows: float, epsilon: float, relation: str, delta: float = 0.0, rounds: int | None = None
) -> NumbersRule:
    """The public rule of the regressor; the parameters are those of :func:`rule`, and ``rounds`` if asked for."""
    told, auto = n_rows * told_by_one(epsilon, relation, delta), rule(n_rows, epsilon, 2, relation, delta)
    if delta:
        mean, size = min(max(625 / told / told, 0.02), 0.3), min(max(900 / told / told, 0.01), 0.07)
    else:
        mean, size = min(max(50 / told, 0.04), 0.3), min(max(40 / told, 0.01), 0.07)
    if rounds is None:
        rounds = 0 if told < (35 if delta else 300) else round(1.3 * auto.rounds)
    if rounds:
        shift = min(max(30 / told, 0.01), 0.08)
        return NumbersRule(rounds, mean, size, shift, auto.select_share, auto.growth)
    if told < (12 if delta else 40):
        return NumbersRule(0, 1.0, 0.0, 0.0)
    return NumbersRule(0, 0.6, 0.12, 1.0)


class _WideTables(WithDelta):
    """What the classifier and the regressor share: the parameters, and a round."""

    SOURCE: ClassVar[str] = "library's own learner"
    n_rows: Annotated[
        float | None,
        Either(None, rule=Number(1, 1e15)),
        """Declared order of magnitude of the number of records; public.  None: see Notes.""",
    ] = None
    n_estimators: Annotated[int | str, Either("auto", rule=Integer(1, 10_000)), "Rounds; auto by the rule."] = "auto"
    interactions: Annotated[
        int, Integer(0, 10_000), "Random tables of two or three features among the candidates of a round."
    ] = 20
    selection: Annotated[
        str, OneOf(CHOOSERS), "Mechanism of the tables; auto: permute-and-flip, exponential under a delta."
    ] = "auto"
    grid: Annotated[
        str,
        OneOf(GRIDS),
        """How the public bins of a numeric feature lie between its bounds: ``"even"``, all equally wide;
        ``"doubling"``, where 0 lies between the bounds, half as many and every half, quarter, ... of each bound.""",
    ] = "doubling"
    monotonic_cst: Annotated[
        Mapping[str, int] | None,
        Directions(),
        """Numeric features with which the prediction must not fall (1) or must not rise (-1), by name; of two classes
        it is the probability of the second one.""",
    ] = None
    variant: Annotated[Literal["proved"], "There is no other."] = "proved"

    def measure(
        self, run: Run, known: ReleasedTotals, sides: np.ndarray, choosing: float, measuring: float
    ) -> tuple[Crossings, int, Frontier, np.ndarray]:
        """Select a table and one of the sides, and measure it: the table, the side's place, leaves, sums in records."""
        tables = Crossings.of(
            single_tables(run.sizes) + random_tables(self.interactions, run.sizes, run.ordered, known, run.chance)
        )
        # half a standard deviation of the noise that the gap of a cell will have
        threshold = round(math.sqrt(noise_variances(measuring, run.ledger)[0]) / 2 * FINE)
        place, at = run.choose_crossing(tables, sides, choosing, threshold=threshold, mechanism=self._mechanism())
        leaves = grow_table(run, tables[place])
        sums = run.count_crossing(tables[place], sides[at].item(), leaves, measuring)
        return tables[place], at, leaves, sums / FINE

    def measure_all(self, run: Run, side: float, measuring: float) -> tuple[Crossings, Frontier, np.ndarray]:
        """Measure the table of a single cell, which needs no selection: the table, its leaf, its sums in records."""
        table = Crossings.of([whole_table(run.sizes)])
        leaves = grow_table(run, table)
        return table, leaves, run.count_crossing(table, side, leaves, measuring) / FINE

    def vote(
        self,
        run: Run,
        known: ReleasedTotals,
        table: Crossings,
        leaves: Frontier,
        steps: np.ndarray,
        sums: np.ndarray,
        values: np.ndarray,
    ) -> None:
        """Let the leaves vote: ``values`` (n_values,) says for what, each times the step; and take note of it."""
        votes = self._directed(run, table, whole_votes(steps))
        if table.features[0, 1] < 0 and len(votes) > 1:
            known.learn(int(table.features[0, 0]), votes, np.rint(sums.sum(axis=1) * FINE).astype(np.int64))
        run.set_leaf_values(leaves, votes[:, None] * values)

    def gap_variances(self) -> list[float]:
        """Variance of the noise of the gap of a cell in each round of this fit, in records squared, by its ledger.

        What the ledger says is public: this costs nothing.
        """
        costs = self.ledger_.charges(CELLS[bool(self.ledger_.delta)])
        return [noise_variances(cost, self.ledger_)[0] for cost in costs]

    def look(self, run: Run, ask: Callable[[float], np.ndarray]) -> tuple[float, np.ndarray | None]:
        """The number of records that the rule goes by, and what a first look released for it, if there was one.

        ``ask`` releases numbers of records of parts that are all records together, at a share of the budget.
        """
        if self.n_rows is not None:
            return float(self.n_rows), None
        if run.relation == REPLACE_ONE:
            return float(run.size(SIZE)), None
        first = ask(LOOK_SHARE)
        return max(at_least(first, count_noise(LOOK_SHARE * run.budget, run.ledger)), 1.0), first

    def rounds_of(self, auto: BoostingSchedule | NumbersRule) -> int:
        """How many rounds there are."""
        return auto.rounds if isinstance(self.n_estimators, str) else int(self.n_estimators)

    def budgets(self, left: float, auto: BoostingSchedule | NumbersRule) -> list[tuple[float, float]]:
        """What each round has of the budget that is left, to choose a table and to measure it."""
        growth, part, parts = auto.growth if isinstance(self.n_estimators, str) else 1.0, 1.0, []
        for _ in range(self.rounds_of(auto)):
            parts.append(part)
            part *= growth
        total, choose = sum(parts), auto.select_share
        return [(choose * left * part / total, (1 - choose) * left * part / total) for part in parts]

    def _mechanism(self) -> str:
        return ("exponential" if self.delta else "permute-and-flip") if self.selection == "auto" else self.selection

    def _prior(self, run: Run, table: Crossings) -> dict[str, Any]:
        """What the empirical-Bayes step asks of the cells of one table."""
        [features], [sizes] = table.features, table.sizes.tolist()
        if features[1] >= 0:
            return {"shape": [size for size in sizes if size > 1] or [1], "ordered": True}
        missing = run.schema.missing == "bin"
        return {
            "shape": sizes[:1],
            "ordered": bool(run.ordered[features[0]]),
            "chain": sizes[0] - missing,
            "penalty": PENALTY,
        }

    def _directed(self, run: Run, table: Crossings, votes: np.ndarray) -> np.ndarray:
        """The votes of the cells, none of which breaks a declared direction; that of missing values is free."""
        signs = directions_of(self.monotonic_cst, run.schema)
        [features], [sizes] = table.features, table.sizes.tolist()
        here = [int(signs[feature]) for feature in features[features >= 0]]
        if not any(here) or len(votes) == 1:
            return votes
        if len(here) > 1:
            return monotone(votes, sizes[: len(here)], here)
        ordered = sizes[0] - (run.schema.missing == "bin")
        return np.concatenate([monotone(votes[:ordered], [ordered], here), votes[ordered:]])

    def check_parameters(self) -> None:
        super().check_parameters()
        directions_of(self.monotonic_cst, self.declared_schema())

    def declared_schema(self) -> Schema:
        return super().declared_schema().with_grid(self.grid)

    def lacking(self) -> dict[str, str]:
        return {EXACT: "noisy sums decide the weights of the next round, so that replay cannot visit them"}


class PrivateBoostingClassifier(_WideTables, BoostedClassifier):
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
    What is ``"auto"`` follows from a public rule, :func:`~dpforest.papers.private_boosting.rule`.  It looks at the
    number of records: ``n_rows`` if declared, else under replace-one the number itself, which is public there, and
    under add-remove the sum of the class totals, at a first look that has 1 % of the budget, less a standard deviation.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.private_boosting import PrivateBoostingClassifier
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
        """The step of each cell: :func:`~dpforest.learners.empirical_bayes.newton_step`; any other is as private."""
        return newton_step(sums, noise, **prior)

    def _rule(self, run: Run, n_rows: float, known: bool) -> BoostingSchedule:
        return rule(n_rows, run.epsilon, run.schema.n_classes, run.relation, run.ledger.delta, known)

    def _totals(self, run: Run) -> tuple[BoostingSchedule, np.ndarray, float, float]:
        """The rule, noisy class totals (1, n_classes), the share of the budget that they had, and all that is paid."""

        def ask(share: float) -> np.ndarray:
            return run.count_classes(run.frontier, share * run.budget)

        n_rows, first = self.look(run, ask)
        auto = self._rule(run, n_rows, first is None)
        if run.ledger.delta and first is None and not self.rounds_of(auto):
            run.without_delta()  # a single answer has less noise if it is private by itself
            auto = self._rule(run, n_rows, True)
        paid = 0.0 if first is None else LOOK_SHARE
        share = auto.totals_share if self.rounds_of(auto) else 1 - paid
        if first is not None and share <= LOOK_SHARE:
            return auto, first, LOOK_SHARE, LOOK_SHARE
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


class PrivateBoostingRegressor(_WideTables, BoostedRegressor):
    """Private boosting of wide tables for a number, the library's own learner.

    As :class:`~dpforest.papers.private_boosting.PrivateBoostingClassifier`, with residuals in the place of classes: a
    record divides a weight of 1 between the two sides of its cell, as its clipped residual says, and an empirical-Bayes
    step moves the prediction.

    Attributes
    ----------
    boosted_, ledger_, guarantee_, n_features_in_, feature_names_in_, schema_, n_bins_

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
    :func:`~dpforest.papers.private_boosting.rule_of_numbers`.  The number of records is ``n_rows`` if declared, else
    under replace-one the number itself, and under add-remove a noisy one that has 1 % of the budget, less a standard
    deviation, or 6 % more where noise may have drowned that.  Where there are no rounds and the number is declared or
    public, a ``delta`` is not made use of: few answers have less noise if each is private by itself.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.private_boosting import PrivateBoostingRegressor
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
        """The mean, and then round by round a table, its sums, a step; three times the size of the residuals."""
        run.start_forest(1)
        n_rows, paid = self._size(run)
        auto, left = self._rule(run, n_rows), 1 - paid
        if run.ledger.delta and not paid and not auto.rounds:
            run.without_delta()  # a few answers have less noise if each is private by itself
            auto = self._rule(run, n_rows)
        rounds, shift = auto.rounds, auto.shift_share
        share = auto.mean_share if shift else left
        mean, off = self._mean(run, share * run.budget)
        run.set_leaf_values(run.frontier, whole_votes(np.array([[0.0, mean]])))
        trees = [run.tree(0)]
        left -= share
        # rounds that look at the sizes of the residuals
        looks = [0, 1, 1 + rounds // 2] if rounds >= 6 else [0, 1] if rounds else [0]
        budgets: list[tuple[float, float]] = []
        if shift:
            left -= len(looks) * auto.size_share
            shift = shift if rounds else left
            budgets = [(0.0, shift * run.budget), *self.budgets((left - shift) * run.budget, auto)]
            run.start_forest(len(budgets))
        known, scale = ReleasedTotals.nothing(run.schema.n_features), 1.0
        for number in run.rounds(len(budgets)):
            run.add_scores(trees[-1])
            choosing, measuring = budgets[number]
            if number in looks:
                looking = auto.size_share * run.budget
                scale = quantile(run.count_residuals(SIZES, looking), count_noise(looking, run.ledger))
            noise = noise_variances(measuring, run.ledger)
            if number:
                table, _, leaves, sums = self.measure(run, known, np.array([scale]), choosing, measuring)
                steps = scale * residual_step(sums, noise, **self._prior(run, table))
            else:
                table, leaves, sums = self.measure_all(run, scale, measuring)
                steps = scale * residual_shift(sums, noise, off / (scale * scale))
            self.vote(run, known, table, leaves, steps, sums, np.array([0, 1]))
            trees.append(run.tree(number))
        return BoostedForest(Forest.join(trees), NO_LINK)

    def _rule(self, run: Run, n_rows: float) -> NumbersRule:
        asked = None if isinstance(self.n_estimators, str) else int(self.n_estimators)
        return rule_of_numbers(n_rows, run.epsilon, run.relation, run.ledger.delta, asked)

    def _size(self, run: Run) -> tuple[float, float]:
        """The number of records that the rule goes by, and the share of the budget that was paid for it.

        Where the noise of a first look may have drowned the number, there is a second one that has more.
        """

        def ask(share: float) -> np.ndarray:
            return run.sum_masses(run.frontier, share * run.budget) / TARGET_LEVELS

        n_rows, first = self.look(run, ask)
        if first is None:
            return n_rows, 0.0
        if n_rows >= 2 * math.sqrt(2) * count_noise(LOOK_SHARE * run.budget, run.ledger):
            return n_rows, LOOK_SHARE
        again = ask(LOOK_AGAIN)
        n_rows = max(at_least(again, count_noise(LOOK_AGAIN * run.budget, run.ledger)), 1.0)
        return n_rows, LOOK_SHARE + LOOK_AGAIN

    def _mean(self, run: Run, budget: float) -> tuple[float, float]:
        """The mean of the target as a share of its range, and the variance of what it is off by.

        Under replace-one the number of records is public, and the sum alone has the noise: a replaced record moves it
        by one range, and the two masses by two.
        """
        if run.relation == REPLACE_ONE:
            n_rows = max(run.size(SIZE), 1)
            at = float(run.sum_targets(run.frontier, budget)[0]) / TARGET_LEVELS / n_rows
            return shrunk(at, (count_noise(budget, run.ledger, 1.0) / n_rows) ** 2)
        return prior_mean(run.sum_masses(run.frontier, budget), count_noise(budget, run.ledger))

    AUDIT: ClassVar = AuditSpec(
        "private-boosting-regressor",
        (({}, 2, None), ({"n_estimators": 2, "selection": "exponential", "interactions": 2}, 2, None)),
        defaults={"n_estimators": 1, "interactions": 0, "n_rows": 10},
    )


def noise_variance(epsilon: float, relation: str) -> float:
    """Variance of the noise of each sum of a table that is measured at ``epsilon``, a record counting for 1."""
    if math.isinf(epsilon):
        return 0.0
    half = sinh(epsilon / (2 * HISTOGRAM_SENSITIVITY[relation] * FINE))
    return 1 / (2 * half * half) / FINE**2


def noise_variances(budget: float, ledger: Ledger) -> tuple[float, float]:
    """Variances of the noise of the gap and of the size of a cell of a table that is measured at this budget."""
    if not ledger.delta:
        noise = noise_variance(budget, ledger.relation)
        return 2 * noise, 2 * noise
    rate, gap = budget / HISTOGRAM_SENSITIVITY[ledger.relation], GAP_SHARE[ledger.relation]
    return 1 / (2 * gap * rate), 1 / (2 * (1 - gap) * rate)


def count_noise(budget: float, ledger: Ledger, cost: float | None = None) -> float:
    """Standard deviation of the noise of a count at this budget, about.

    ``cost`` is that of a count at rate 1: None for that of a histogram.
    """
    if math.isinf(budget):
        return 0.0
    cost = HISTOGRAM_SENSITIVITY[ledger.relation] if cost is None else cost
    return math.sqrt(cost / (2 * budget)) if ledger.delta else math.sqrt(2) * cost / budget


def at_least(parts: np.ndarray, noise: float) -> float:
    """A first look's number of records, from its noisy parts (standard deviation ``noise``): less one of their sum.

    Where the noise drowns the number, the rule had better take the records for few.
    """
    return float(parts.sum()) - math.sqrt(parts.size) * noise


def prior_scores(totals: np.ndarray, noise: float) -> np.ndarray:
    """The scores of a model without tables, from the noisy class totals (1, n_classes): logarithms of their shares.

    A standard deviation of their noise is added to each, at least half a record.
    """
    counts = np.maximum(totals, 0) + max(noise, 0.5)
    return log(counts / np.add.reduce(counts, axis=1)[:, None])


def prior_mean(masses: np.ndarray, noise: float) -> tuple[float, float]:
    """The mean of the target as a share of its range, from its noisy masses (1, 2), and the variance of its error.

    ``noise`` is the standard deviation of that of a mass, in records.
    """
    above, below = (np.maximum(masses[0], 0) / TARGET_LEVELS).tolist()
    size = max(above + below, noise, 0.5)
    at = (above + (size - above - below) / 2) / size
    return shrunk(at, (noise / size) ** 2 * (at * at + (1 - at) * (1 - at)))


def shrunk(at: float, variance: float) -> tuple[float, float]:
    """Posterior mean and variance of a mean that could be anywhere in the range, where it was found at ``at``.

    The prior has the moments of the uniform law.
    """
    weight = ANYWHERE / (ANYWHERE + variance)
    return min(max(0.5 + weight * (at - 0.5), 0.0), 1.0), weight * variance


def quantile(counts: np.ndarray, noise: float = 0.0) -> float:
    """The scale at which residuals are clipped: the first of ``SIZES`` that four fifths of the records do not exceed.

    ``counts`` are noisy numbers of records between the sizes.  A standard deviation of their noise is taken off each,
    for what is left of large residuals that nobody has would set the scale.  Without a positive number it is 1.
    """
    below = np.cumsum(np.maximum(counts - noise, 0.0))
    if below[-1] <= 0:
        return 1.0
    return float(SIZES[min(int(np.argmax(below >= 0.8 * below[-1])), len(SIZES) - 1)])
