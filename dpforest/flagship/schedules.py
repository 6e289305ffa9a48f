"""The schedule of the flagship: rounds and shares of the budget, by public numbers alone.

Everything goes by the signal-to-noise ratio of the table, ``x = n_rows * signal_to_noise``: by how much all records
together stand out of the noise of one count that has the whole budget.  The numbers were chosen on named tables of
*The flagship*, and are reported on others; ``PURE`` and ``GAUSSIAN`` hold them, with what each is for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

from dpforest.arithmetic import exp, log
from dpforest.privacy import HISTOGRAM_SENSITIVITY, rho_of

__all__ = [
    "GAUSSIAN",
    "PURE",
    "BoostingSchedule",
    "Constants",
    "RegressionSchedule",
    "bins_share",
    "constants",
    "regression_schedule",
    "schedule",
    "signal_to_noise",
]


def _number(meaning: str) -> float:
    return field(metadata={"meaning": meaning})


@dataclass(frozen=True)
class Constants:
    """The numbers of the schedule for one kind of noise; ``x`` is the signal-to-noise ratio of the table."""

    max_rounds: float = _number("rounds at most, of two classes")
    max_rounds_multiclass: float = _number("rounds at most, of more classes: a round moves the scores of one")
    min_rounds: float = _number("rounds at least, if there are any, of two classes")
    min_rounds_multiclass: float = _number("the same of more classes, and of numbers")
    reference_ratio: float = _number("x of the reference table")
    reference_rounds: float = _number("rounds of the reference table, as a share of the most")
    rounds_power: float = _number("power of x by which rounds grow")
    rounds_power_multiclass: float = _number("the same of more than two classes, of which a round moves one")
    small_ratio: float = _number("x below which a table of two classes is small")
    rounds_power_small: float = _number("power of x by which rounds grow, of a small table")
    no_rounds_below: float = _number("x below which there are no rounds, of two classes")
    no_rounds_below_multiclass: float = _number("x below which there are no rounds, of more classes")
    trial_from: float = _number(
        "x from which there is a trial in place of no rounds: one table, kept if its scores exceed their noise"
    )
    trial_totals_share: float = _number("trial: share of the budget for the class totals")
    trial_select_share: float = _number("trial: share of the round for the selection of its table")
    trial_evidence: float = _number("trial: standard deviations by which the gaps of a table exceed noise, at least")
    totals_scale: float = _number("class totals: their share is this over x, with a delta its square")
    totals_share_min: float = _number("class totals: share of the budget at least")
    totals_share_max: float = _number("class totals: share of the budget at most")
    bins_share: float = _number("histograms of numbers, for quantile bins: share of the budget, if any")
    bins_ratio: float = _number("histograms of numbers: ratio of all records to the noise of a count, at least")
    large_ratio: float = _number("x above which a table is large")
    select_share: float = _number("share of a round for the selection of its table")
    select_share_small: float = _number("the same of a small table")
    select_share_large: float = _number("the same of a large table")
    growth_large: float = _number("budget of a round over that of the one before, of a large table; else 1")
    regression_rounds: float = _number("numbers: rounds, times those of two classes")
    regression_no_rounds_below: float = _number("numbers: x below which there are no rounds")
    mean_scale: float = _number("mean of the target: its share is this over x, with a delta over the square of x")
    mean_share_min: float = _number("mean of the target: share of the budget at least")
    mean_share_max: float = _number("mean of the target: share of the budget at most")
    size_scale: float = _number("sizes of residuals: a share is this over x, with a delta over the square of x")
    size_share_min: float = _number("sizes of residuals: share of the budget at least, each time")
    size_share_max: float = _number("sizes of residuals: share of the budget at most, each time")
    shift_scale: float = _number("shift of the mean: its share is this over x")
    shift_share_min: float = _number("shift of the mean: share of the budget at least")
    shift_share_max: float = _number("shift of the mean: share of the budget at most")
    mean_alone_below: float = _number("numbers without rounds: x below which the mean has the whole budget")
    mean_share_no_rounds: float = _number("numbers without rounds: share for the mean, if it is not alone")
    size_share_no_rounds: float = _number("numbers without rounds: share for the sizes of residuals")


#: Geometric noise: epsilon without a delta.
PURE = Constants(
    max_rounds=40,
    max_rounds_multiclass=60,
    min_rounds=1,
    min_rounds_multiclass=2,
    reference_ratio=20_000,
    reference_rounds=0.25,
    rounds_power=0.35,
    rounds_power_multiclass=0.45,
    small_ratio=2000,
    rounds_power_small=0.75,
    no_rounds_below=100,
    no_rounds_below_multiclass=120,
    trial_from=55,
    trial_totals_share=0.35,
    trial_select_share=0.5,
    trial_evidence=2,
    totals_scale=30,
    totals_share_min=0.01,
    totals_share_max=0.25,
    bins_share=0.04,
    bins_ratio=25,
    large_ratio=math.inf,
    select_share=0.2,
    select_share_small=0.35,
    select_share_large=0.2,
    growth_large=1.0,
    regression_rounds=1.3,
    regression_no_rounds_below=300,
    mean_scale=50,
    mean_share_min=0.04,
    mean_share_max=0.3,
    size_scale=40,
    size_share_min=0.01,
    size_share_max=0.07,
    shift_scale=30,
    shift_share_min=0.01,
    shift_share_max=0.08,
    mean_alone_below=40,
    mean_share_no_rounds=0.6,
    size_share_no_rounds=0.12,
)
#: Discrete Gaussian noise: the rho of an epsilon with a delta.
GAUSSIAN = Constants(
    max_rounds=60,
    max_rounds_multiclass=90,
    min_rounds=1,
    min_rounds_multiclass=3,
    reference_ratio=3000,
    reference_rounds=0.37,
    rounds_power=0.6,
    rounds_power_multiclass=0.6,
    small_ratio=-math.inf,  # no table is small: where rounds are so few, the delta is not used
    rounds_power_small=math.inf,
    no_rounds_below=18,
    no_rounds_below_multiclass=27,
    trial_from=math.inf,  # so few rounds make no use of a delta
    trial_totals_share=math.inf,
    trial_select_share=math.inf,
    trial_evidence=math.inf,
    totals_scale=21,
    totals_share_min=0.01,
    totals_share_max=0.25,
    bins_share=0.02,
    bins_ratio=12,
    large_ratio=1500,
    select_share=0.35,
    select_share_small=math.inf,
    select_share_large=0.2,
    growth_large=1.07,
    regression_rounds=1.3,
    regression_no_rounds_below=35,
    mean_scale=625,
    mean_share_min=0.02,
    mean_share_max=0.3,
    size_scale=900,
    size_share_min=0.01,
    size_share_max=0.07,
    shift_scale=30,
    shift_share_min=0.01,
    shift_share_max=0.08,
    mean_alone_below=12,
    mean_share_no_rounds=0.6,
    size_share_no_rounds=0.12,
)


def constants() -> list[tuple[str, str, float, float]]:
    """The table of all numbers: name, meaning, value without a delta, value with one."""
    return [
        (each.name, each.metadata["meaning"], getattr(PURE, each.name), getattr(GAUSSIAN, each.name))
        for each in fields(Constants)
    ]


@dataclass(frozen=True)
class BoostingSchedule:
    """The schedule of a classifier: what its parameters that are ``"auto"`` stand for.

    Attributes
    ----------
    rounds : int
        0 where tables would say less than their noise does: then the class totals have the whole budget.
    totals_share : float
        Share of the budget for the class totals, if there are rounds.
    select_share : float
        Share of a round for the selection of its table.
    growth : float
        Budget of a round over that of the one before, if the rounds are those of the schedule.
    evidence : float or None
        Of a trial, a single round whose table moves no score unless its gaps exceed their noise by so many standard
        deviations; None: no trial.
    """

    rounds: int
    totals_share: float
    select_share: float = 0.2
    growth: float = 1.0
    evidence: float | None = None


@dataclass(frozen=True)
class RegressionSchedule:
    """The schedule of a regressor: what its parameters that are ``"auto"`` stand for.

    Attributes
    ----------
    rounds : int
        0 where tables would say less than their noise does.
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


def signal_to_noise(epsilon: float, relation: str, delta: float) -> float:
    """Signal-to-noise ratio of one record: 1 over the scale of the noise of a count that has the whole budget.

    With a ``delta`` it is 1 over the standard deviation, but for a factor of the root of two.
    """
    if delta:
        return math.sqrt(rho_of(epsilon, delta) / HISTOGRAM_SENSITIVITY[relation])
    return epsilon / HISTOGRAM_SENSITIVITY[relation]


def schedule(
    n_rows: float,
    epsilon: float,
    n_classes: int,
    relation: str,
    delta: float = 0.0,
    *,
    known: bool = True,
    together: bool = False,
    trials: bool = True,
) -> BoostingSchedule:
    """The schedule of a classifier, a public rule: by the number of records, the budget, the classes, the relation.

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
        there are the fewest rounds at least.
    together : bool
        Whether a round moves all classes: then there are as many rounds as for two.
    trials : bool
        Whether there may be a trial, where there are no rounds else.
    """
    c, x = GAUSSIAN if delta else PURE, n_rows * signal_to_noise(epsilon, relation, delta)
    two = n_classes == 2
    too_small = known and x < (c.no_rounds_below if two else c.no_rounds_below_multiclass)
    if too_small and trials and not together and x >= c.trial_from:
        return BoostingSchedule(1, c.trial_totals_share, c.trial_select_share, evidence=c.trial_evidence)
    # noise of a count falls with the budget, with a delta with its root
    totals = (c.totals_scale / x) * (c.totals_scale / x) if delta else c.totals_scale / x
    small = two and x < c.small_ratio
    return BoostingSchedule(
        0 if too_small else _rounds(c, x, two, together),
        min(max(totals, c.totals_share_min), c.totals_share_max),
        c.select_share_small if small else _select_share(c, x),
        _growth(c, x),
    )


def _rounds(c: Constants, x: float, two: bool, together: bool) -> int:
    """Rounds by the power law that passes through the reference table; of a small table by a steeper one.

    ``two``: of two classes, which alone have small tables.  ``together``: as many as of two classes, else.
    """
    most, power, least = c.max_rounds_multiclass, c.rounds_power_multiclass, c.min_rounds_multiclass
    if two or together:
        most, power = c.max_rounds, c.rounds_power
    if two:
        least = c.min_rounds
    if math.isinf(x):
        return int(most)
    law_from = c.small_ratio if two and x < c.small_ratio else x
    grown = c.reference_rounds * most * exp(power * log(law_from / c.reference_ratio))
    if x < law_from:
        grown = grown * exp(c.rounds_power_small * log(x / law_from))
    return int(max(round(min(grown, most)), least))


def _select_share(c: Constants, x: float) -> float:
    return c.select_share_large if x > c.large_ratio else c.select_share


def _growth(c: Constants, x: float) -> float:
    return c.growth_large if x > c.large_ratio else 1.0


def bins_share(
    n_rows: float, epsilon: float, relation: str, delta: float, n_numbers: int, *, always: bool = False
) -> float:
    """Share of the budget for histograms of so many numeric features, a public rule; 0 where they do not pay.

    ``always``: wherever there are such features.  Other parameters as of :func:`schedule`.
    """
    c, x = GAUSSIAN if delta else PURE, n_rows * signal_to_noise(epsilon, relation, delta)
    each = c.bins_share / max(n_numbers, 1)
    # noise of a count falls with the budget, with a delta with its root
    pays = x * (math.sqrt(each) if delta else each) >= c.bins_ratio
    return c.bins_share if n_numbers and (always or pays) else 0.0


def regression_schedule(
    n_rows: float, epsilon: float, relation: str, delta: float = 0.0, rounds: int | None = None
) -> RegressionSchedule:
    """The schedule of a regressor, a public rule; parameters as of :func:`schedule`, and ``rounds`` if asked for."""
    c, x = GAUSSIAN if delta else PURE, n_rows * signal_to_noise(epsilon, relation, delta)
    again = x if delta else 1.0  # noise of a count falls with the budget, with a delta with its root
    mean = min(max(c.mean_scale / x / again, c.mean_share_min), c.mean_share_max)
    size = min(max(c.size_scale / x / again, c.size_share_min), c.size_share_max)
    if rounds is None:
        rounds = 0 if x < c.regression_no_rounds_below else round(c.regression_rounds * _rounds(c, x, False, True))
    if rounds:
        shift = min(max(c.shift_scale / x, c.shift_share_min), c.shift_share_max)
        return RegressionSchedule(rounds, mean, size, shift, _select_share(c, x), _growth(c, x))
    if x < c.mean_alone_below:
        return RegressionSchedule(0, 1.0, 0.0, 0.0)
    return RegressionSchedule(0, c.mean_share_no_rounds, c.size_share_no_rounds, 1.0)
