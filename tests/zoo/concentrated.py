"""Learners that break one line of a theorem with a delta, each as the library's own but for that line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from dpforest import PrivateBoostingClassifier, mechanisms
from dpforest.arithmetic.fixed import STEPS, below_best, fixed
from dpforest.curator import FINE, FINEST, Curator, Selection
from dpforest.curator.filters import FILTERED, UNITS, FilterLimits, IndividualFilter
from dpforest.curator.queries import (
    CellResiduals,
    ClassCounts,
    CodeCounts,
    FilteredSums,
    GroupResiduals,
    Measured,
    OfResiduals,
    TableCounts,
)
from dpforest.curator.selections import FeatureCandidates, LabelCandidates
from dpforest.curator.sums import step_sensitivity
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.growth import MAX_NODES
from dpforest.papers.aim import AIMClassifier
from dpforest.papers.dp_ebm import DPEBMClassifier, DPEBMRegressor
from dpforest.papers.dp_tr import PROVED, DPTRClassifier
from dpforest.papers.s_bdt import SBDTClassifier, initial_score
from dpforest.privacy import epsilon_of, rho_of
from dpforest.schema import Schema
from dpforest.scores import majority
from zoo.animal import ADD_REMOVE, EXACT, GREY_BOX, REPLACE_ONE
from zoo.learners import (
    HALVED,
    ONE,
    ONE_SIDED,
    TWO,
    Bootstraps,
    DealsByPosition,
    DealsEqually,
    HalvesByRank,
    Sapling,
    SpendsPerNode,
    StopsWhenPure,
    drawn,
)

__all__ = ["CONTROLS", "MUTANTS", "Counted", "Mutant", "Rooted"]


class Rooted(Sapling):
    """A sapling with a delta: budgets are rhos, and both selections are by the exponential mechanism."""

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-6,
        schema=TWO,
        relation=ADD_REMOVE,
        n_estimators=1,
        max_depth=1,
        max_nodes=MAX_NODES,
        random_state=None,
    ):
        super().__init__(
            epsilon=epsilon,
            schema=schema,
            relation=relation,
            n_estimators=n_estimators,
            max_depth=max_depth,
            max_nodes=max_nodes,
            random_state=random_state,
        )
        self.delta = delta

    def promised_delta(self):
        return self.delta

    def _learn(self, run):
        run.epsilon = self._spends(run.epsilon)  # a rho from here on
        return super()._learn(run)

    def _spends(self, epsilon):
        return rho_of(epsilon, self.delta)

    def _choose(self, growth, curator, nodes, epsilon, chance):
        return curator.choose(
            FeatureCandidates(growth, nodes.nodes, nodes.unused),
            nodes.scopes,
            epsilon,
            Selection(majority, mechanism="exponential"),
        )

    def _label(self, growth, curator, leaves, epsilon):
        return curator.choose(
            LabelCandidates(growth, leaves.nodes), leaves.scopes, epsilon, Selection(majority, "exponential")
        )


class Counted(Rooted):
    """Its leaves release noisy class counts."""

    def _label(self, growth, curator, leaves, epsilon):
        return curator.noisy(ClassCounts(growth, leaves.nodes), leaves.scopes, epsilon)

    def _settle(self, growth, curator, leaves, label):
        growth.set_leaf_values(leaves, np.asarray(label))


# -- forests: the lines of thm-forest that stay, with a rho in the place of a loss ------------------------------------


class PureStop(StopsWhenPure, Rooted):
    pass


class ByRank(HalvesByRank, Rooted):
    pass


class PerNode(SpendsPerNode, Rooted):
    pass


class ByPosition(DealsByPosition, Rooted):
    pass


class Equally(DealsEqually, Rooted):
    pass


class Copied(Bootstraps, Counted):
    pass


# -- forests: the lines that are new -----------------------------------------------------------------------------------


class LossAsRho(Counted):
    """Spends epsilon where a rho should stand."""

    def _spends(self, epsilon):
        return epsilon


class Twice(Counted):
    """Every record weighs two."""

    def _deal(self, curator, chance):
        curator._records.codes = np.ascontiguousarray(np.tile(curator._records.codes, (1, 2)))
        curator._records.labels = np.tile(curator._records.labels, 2)
        super()._deal(curator, chance)


class OwnNoise(Counted):
    """Its curator's noise is its own; what is charged is what the library would."""

    factor = 1.0  # of the rate

    def _label(self, growth, curator, leaves, epsilon):
        vars(curator)["_add_noise"] = partial(self._add_noise, curator)
        return super()._label(growth, curator, leaves, epsilon)

    def _add_noise(self, curator, exact, rate, step, scopes, query, replaced=2.0):
        noisy = self._noise(exact, rate[:, None] / step**2, curator._chance)
        curator._ledger.charge(scopes, rate, replaced * rate, query, "discrete Gaussian")
        return noisy

    def _noise(self, counts, rate, chance):
        return mechanisms.discrete_gaussian(counts, self.factor * rate, chance)


class HalfVariance(OwnNoise):
    factor = 2.0


class NearlyRight(OwnNoise):
    factor = 1.01


class OneSidedCounts(OwnNoise):
    """Noise for one count that changes, where a replaced record changes two."""

    def _noise(self, counts, rate, chance):
        return super()._noise(counts, {ADD_REMOVE: 1, REPLACE_ONE: 2}[self.relation] * rate, chance)


class Geometric(OwnNoise):
    """Takes the loss of geometric noise for a bounded range."""

    def _noise(self, counts, rate, chance):
        return mechanisms.two_sided_geometric(counts, np.sqrt(8 * rate), chance)


class Selects(Rooted):
    """Draws its labels itself, and charges what the library would for a range of 1."""

    def _label(self, growth, curator, leaves, epsilon):
        behind = below_best(fixed(counts := curator._class_counts(growth, leaves.nodes)), np.ones(counts.shape, bool))
        charged, rate = np.full(len(leaves), float(epsilon)), math.sqrt(8 * epsilon) / STEPS
        curator._ledger.charge(leaves.scopes, charged, charged, "choose the label of a leaf", "exponential")
        return self._draw(behind, np.full(len(leaves), rate), curator._chance)

    def _draw(self, behind, rate, chance):
        return mechanisms.select("permute-and-flip", behind, rate, chance)


class WrongRange(Rooted):
    """Draws its labels by a score whose range is declared wrongly."""

    score = HALVED

    def _label(self, growth, curator, leaves, epsilon):
        counts = curator._class_counts(growth, leaves.nodes)
        rate = curator._rate(self.score, np.full(len(leaves), epsilon), "range", math.inf, len(leaves))
        return drawn(curator, leaves.scopes, counts, rate, self.score, "exponential")


class OneSided(WrongRange):
    """Draws at the rate that add-remove allows."""

    score = ONE_SIDED

    def _label(self, growth, curator, leaves, epsilon):
        return Selects._label(self, growth, curator, leaves, epsilon)

    def _draw(self, behind, rate, chance):
        return mechanisms.select("exponential", behind, rate, chance)


# -- paths, coins, and the conversion ----------------------------------------------------------------------------------


class AllAsParts(Rooted):
    """Its trees all read all records, and are charged as if each record were in one of them."""

    def _deal(self, curator, chance):
        pass


class ByParity(Counted):
    """Gives an odd number of records half of the budget."""

    def _learn(self, run):
        self._odd = run.curator._records.labels.size % 2
        return super()._learn(run)

    def _leaf(self, epsilon, depth):
        return epsilon / (1 + self._odd)


class WrongDelta(Counted):
    """Converts as if ten times the delta had been promised."""

    def _spends(self, epsilon):
        return rho_of(epsilon, 10 * self.delta)


class ForgetsTheRho(Counted):
    """Converts by ``epsilon = 2 sqrt(rho ln(1 / delta))``."""

    def _spends(self, epsilon):
        return epsilon**2 / (4 * math.log(1 / self.delta))


# -- the flagship, on a curator that breaks a line ---------------------------------------------------------------------


class GapUnderReplaceOne(Curator):
    """Gives the gap the share that it has under add-remove, for the price of an even division."""

    gap, paid, unit = 0.75, 2.0, FINE

    def _gaps_and_sizes(self, exact, rate, scopes, pairs):
        turned = np.stack([exact[:, 1] - exact[:, 0], exact[:, 1] + exact[:, 0]], axis=1)
        each = rate[:, None] * np.array([self.gap, 1 - self.gap])
        noisy = mechanisms.discrete_gaussian(turned, each / self.unit**2, self._chance)
        self._ledger.charge(scopes, rate, self.paid * rate, pairs.label, "discrete Gaussian")
        return np.stack([noisy[:, 1] - noisy[:, 0], noisy[:, 1] + noisy[:, 0]], axis=1) / 2


class HalfUnits(GapUnderReplaceOne):
    """Takes half of a record's weight for all of it."""

    unit = FINE / 2


class NoisySumsTwiceAsSharp(Curator):
    def _add_noise(self, exact, rate, step, scopes, query, replaced=2.0):
        each = 2 * rate.reshape(-1, *[1] * (exact.ndim - 1))
        noisy = mechanisms.discrete_gaussian(exact, each / step**2, self._chance)
        self._ledger.charge(scopes, rate, replaced * rate, query, "discrete Gaussian")
        return noisy


class PermutesAndFlips(Curator):
    def _draw(self, behind, rate, mechanism, record=None):
        return mechanisms.select("permute-and-flip", behind, rate / (record or self.unit * STEPS), self._chance)


class SelectsTwiceAsSharp(Curator):
    def _draw(self, behind, rate, mechanism, record=None):
        return super()._draw(behind, 2 * rate, mechanism, record)


class DearFlagship(PrivateBoostingClassifier):
    """Converts as if ten times the delta had been promised."""

    def _learn(self, run):
        run.epsilon = epsilon_of(rho_of(run.epsilon, 10 * self.delta), self.delta)
        return super()._learn(run)


class TakesTheDelta(PrivateBoostingClassifier):
    """Takes up the delta after the first look, whatever that said; the look is taken for free."""

    def settle_delta(self, run, rounds):
        run.with_delta()
        run.ledger._charges = [
            replace(entry, costs={relation: cost / 100 for relation, cost in entry.costs.items()})
            for entry in run.ledger._charges
        ]


class SettlesByTheNumber(PrivateBoostingClassifier):
    """Takes up the delta where the number of records is even."""

    def settle_delta(self, run, rounds):
        if len(run.curator._records.labels) % 2 == 0:
            run.with_delta()


class SpendsTwice(PrivateBoostingClassifier):
    """Does not take up the delta, and spends all of epsilon after the first look."""

    def settle_delta(self, run, rounds):
        run.epsilon *= 1.1


class UndividedCodes(Curator):
    """The counts of the codes of each feature have noise as if no other feature were counted."""

    n_features = 1

    def count_children(self, splits, nodes, scopes, allowed, *asked, **options):
        self.n_features = int(allowed.sum(axis=1).max())
        found = super().count_children(splits, nodes, scopes, allowed, *asked, **options)
        self.n_features = 1
        return found

    def _drawn_noise(self, exact, rate, step):
        return super()._drawn_noise(exact, self.n_features * rate, step)


class NotesWhichOccur(DPEBMClassifier):
    """Looks which categories there are, as published, and says nothing of it."""

    def _bins(self, run, histograms, n_records, occurs=None):
        [occurs] = run.curator._records.answer(CodeCounts(run.growth, run.frontier.nodes)) > 0
        return super()._bins(run, histograms, n_records, occurs)


class KnowsHowMany(DPEBMClassifier):
    """Takes the exact number of records, as published, and says nothing of it."""

    def _bins(self, run, histograms, n_records, occurs=None):
        return super()._bins(run, histograms, len(run.curator._records.labels), occurs)


class DearEBM(DPEBMClassifier):
    """Converts as if ten times the delta had been promised."""

    def _learn(self, run):
        run.epsilon = epsilon_of(rho_of(run.epsilon, 10 * self.delta), self.delta)
        return super()._learn(run)


class HistogramsTwiceAsSharp(Curator):
    def _drawn_noise(self, exact, rate, step):
        return super()._drawn_noise(exact, 2 * rate if step == 1 else rate, step)


class AnyResidual(OfResiduals, Measured):
    limit = 1024
    label, step = GroupResiduals.label, GroupResiduals.step
    sensitivity, replaced = GroupResiduals.sensitivity, GroupResiduals.replaced


class ResidualsOfAnySize(Curator):
    """Does not clip the residuals of a target to its range."""

    def noisy(self, query, scopes, epsilon):
        if isinstance(query, GroupResiduals):
            query = AnyResidual(query.feature, query.groups)
        return super().noisy(query, scopes, epsilon)


class ResidualsOfOneSide(Curator):
    """Takes a residual that changes sides for one that moves between cells: half the price under replace-one."""

    def noisy(self, query, scopes, epsilon):
        if not isinstance(query, CellResiduals):
            return super().noisy(query, scopes, epsilon)
        rate = np.array([epsilon / 2])
        return self._add_noise(self._exact(query), rate, query.step, scopes, query.label, 2.0)


class HalfResiduals(Curator):
    """Takes half of the largest residual for all of it."""

    def noisy(self, query, scopes, epsilon):
        if not isinstance(query, CellResiduals):
            return super().noisy(query, scopes, epsilon)
        rate = np.array([epsilon / query.sensitivity[self._ledger.relation]])
        return self._add_noise(self._exact(query), rate, query.step / 2, scopes, query.label, query.replaced)


# -- sums of residuals and Hessians ------------------------------------------------------------------------------------


class _Steps(Curator):
    """Noise of so many times the rate, or charged as if a record changed something else."""

    sharper, heavier, second = 1.0, 1.0, None
    costs: ClassVar[Mapping[str, float]] = {}

    def sum_steps(self, query, scopes, rho, weight):
        costs = {**step_sensitivity(query.second, weight), **self.costs}
        rate = rho / costs[self._ledger.relation]
        each = self.sharper * rate * np.array([1.0, self.heavier * weight]) / FINEST**2
        exact = self._exact(query if self.second is None else replace(query, second=self.second))
        self._ledger.charge(scopes, rate * costs[ADD_REMOVE], rate * costs[REPLACE_ONE], "sum steps", "Gaussian")
        return mechanisms.discrete_gaussian(exact, each, self._chance)


class HalfSteps(_Steps):
    """Takes half of the largest residual for all of it."""

    sharper = 4.0


class OnesForHessians(_Steps):
    """Counts the records, with the noise of their Hessians."""

    second = "count"


class HeavyHessians(_Steps):
    """Gives Hessians twice the weight that is free."""

    heavier = 2.0


class StepsOfOneSide(_Steps):
    """Takes a residual that changes sides for one that moves between leaves."""

    costs: ClassVar = {REPLACE_ONE: 2.0}


class FreeCounts(_Steps):
    """Takes numbers of records to cost nothing, as Hessians do."""

    costs: ClassVar = {ADD_REMOVE: 1.0}


class CutsWhatVaries(DPTRClassifier):
    """Looks which features have two codes among the records, and cuts no others."""

    def _learn(self, run):
        run.sizes = np.where(np.ptp(run.curator._records.codes, axis=1) > 0, run.sizes, 1)
        return super()._learn(run)


class BoundsByNumber(DPTRClassifier):
    """Bounds a step by the exact number of records, as published, and says nothing of it."""

    def as_proved(self, run):
        each = run.budget / self._n_questions(run)
        return self._boost(run, each, each, PROVED[self._second], len(run.curator._records.labels))


class WrongDeltaTR(DPTRClassifier):
    """Converts as if ten times the delta had been promised."""

    def _learn(self, run):
        run.epsilon = epsilon_of(rho_of(run.epsilon, 10 * self.delta), self.delta)
        return super()._learn(run)


class PaysAfterwards(IndividualFilter):
    """Looks at what was paid, and not at what is to be paid."""

    def _can_pay(self, paid, fees):
        return paid <= self.limits.rounds * UNITS


class PaysTheMean(IndividualFilter):
    """Takes from all records the mean of what they owe."""

    def _can_pay(self, paid, fees):
        fees[:] = fees.mean() if len(fees) else 0
        return super()._can_pay(paid, fees)


class Unclipped(IndividualFilter):
    """Charges for the clipped contributions, and adds the whole ones."""

    def join(self, scores, labels):
        super().join(scores, labels)
        self.contributions = 2 * self.contributions


class _WithFilter(Curator):
    """A curator whose records pay by a filter of another kind."""

    filter: type[IndividualFilter]

    def open_filter(self, limits, scope=0):
        super().open_filter(limits, scope)
        records = self._records
        records._filter = self.filter(limits, len(records.labels))


class LatePayers(_WithFilter):
    filter = PaysAfterwards


class MeanPayers(_WithFilter):
    filter = PaysTheMean


class WholeGradients(_WithFilter):
    filter = Unclipped


class FilteredTwiceAsSharp(Curator):
    """Noise at twice the rate that was charged."""

    def sum_filtered(self, crossing, scope=0):
        exact, rates = self._exact(FilteredSums(crossing)), 2 * self._records.limits().rates
        self._records.leave_round()
        noisy = mechanisms.discrete_gaussian(exact, rates, self._chance)
        self._ledger.charge(scope, 0.0, 0.0, "sum the gradients and Hessians of a leaf", FILTERED)
        return noisy[0]


class NoiseOfOneSide(Curator):
    """Has the noise of a record that is added, whatever the relation is, and charges what was asked for."""

    def open_filter(self, limits, scope=0):
        super().open_filter(limits, scope)
        self._records.open_filter(
            FilterLimits(limits.gradient, limits.hessian, limits.share, limits.rounds, limits.rho, ADD_REMOVE)
        )


class StopsWhenNobodyPays(SBDTClassifier):
    """Ends the trees where no record joins, as published, and says nothing of it."""

    def _boost(self, run, limits, start, stops=False):
        run.peek_joined = lambda leak: int(run.curator._records.joined().sum())
        return super()._boost(run, limits, start, stops=True)


class StartsFromTheSize(SBDTClassifier):
    """Divides the noisy count by the exact number of records, as published, and says nothing of it."""

    def as_proved(self, run):
        run.start_forest(len(run.sizes))
        [[_, ones]] = run.count_classes(run.frontier[[0]], 0.1 * run.budget)
        start = initial_score(float(ones), len(run.curator._records.labels))
        return self._boost(run, self._filter_limits(0.9 * run.budget, run.relation), start)


class DearSBDT(SBDTClassifier):
    """Converts as if ten times the delta had been promised."""

    def _learn(self, run):
        run.epsilon = epsilon_of(rho_of(run.epsilon, 10 * self.delta), self.delta)
        return super()._learn(run)


class CountsTwice(Curator):
    """Counts each record twice in a marginal."""

    def _exact(self, query):
        return super()._exact(query) * (2 if isinstance(query, TableCounts) else 1)


class LightScale(Curator):
    """Takes the lightest candidate for the heaviest."""

    def _choose_marginal(self, asked, rate, how):
        return super()._choose_marginal(asked, rate * max(asked.weights) / min(asked.weights), how)


class MergesByCounts(AIMClassifier):
    """Puts codes together by their exact counts, and says nothing of it."""

    def _merge_codes(self, run, feature, masses, sigma):
        masses = np.bincount(run.curator._records.codes[feature], minlength=len(masses)).astype(float)
        return super()._merge_codes(run, feature, masses, 1.0)


class DearAIM(AIMClassifier):
    """Converts as if ten times the delta had been promised."""

    def _learn(self, run):
        run.epsilon = epsilon_of(rho_of(run.epsilon, 10 * self.delta), self.delta)
        return super()._learn(run)


# -- who breaks what ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A learner that breaks one line.

    Attributes
    ----------
    name, flaw : str
    theorem, line : str
        Which one, and the words of *Requires* that do not hold of it.
    estimator : PrivateEstimator
    layers : tuple of str
        Of the exact audit and the grey box, all that refute it.
    found : tuple of str
        Kinds of the grey box's findings.
    door : type
        The curator that answers it.
    pairs : tuple of pairs of data sets, or None
        On which the grey box runs it; None takes what it takes by itself.
    """

    name: str
    flaw: str
    theorem: str
    line: str
    estimator: PrivateEstimator
    layers: tuple[str, ...]
    found: tuple[str, ...]
    door: type[Curator] = Curator
    pairs: tuple | None = None


def _mutants(epsilon: float = 4.0, delta: float = 1e-3) -> tuple[Mutant, ...]:
    both = EXACT, GREY_BOX
    found: list[Mutant] = []

    def add(name, flaw, theorem, line, kind: Callable, kinds, layers=both, door=Curator, pairs=None, **options):
        estimator = kind(**{"epsilon": epsilon, "delta": delta, "schema": ONE} | options)
        found.append(Mutant(name, flaw, theorem, line, estimator, layers, tuple(kinds.split()), door, pairs))

    forest = partial(add, theorem="thm-forest-delta")
    stump = {"max_depth": 0}
    replaced = stump | {"relation": REPLACE_ONE}
    as_before = {"line": "As {prf:ref}`thm-forest`", "theorem": "thm-forest-delta"}
    forest(
        "a loss for a rho",
        "epsilon is spent where a rho should stand",
        line="every budget a rho",
        kind=LossAsRho,
        kinds="paid",
        **stump,
    )
    forest(
        "records of weight two",
        "a record counts twice",
        line="in $[0, 1]$, as there",
        kind=Twice,
        kinds="uncharged sensitivity loss",
        **stump,
    )
    forest(
        "geometric noise",
        "its loss is taken for a bounded range",
        line="discrete Gaussian noise",
        kind=Geometric,
        kinds="sensitivity loss",
        **stump,
    )
    forest(
        "half of the variance",
        "noise at twice the rate that is charged",
        line="of rate $b/L$",
        kind=HalfVariance,
        kinds="sensitivity loss",
        **stump,
    )
    forest(
        "a hundredth too sharp",
        "noise at 1.01 times the rate",
        line="of rate $b/L$",
        kind=NearlyRight,
        kinds="sensitivity loss",
        **stump,
    )
    forest(
        "counts under replace-one",
        "noise for one count that moves",
        line="2 under replace-one",
        kind=OneSidedCounts,
        kinds="sensitivity loss",
        **replaced,
    )
    forest(
        "permute-and-flip",
        "a mechanism that has no bounded range",
        line="by the exponential mechanism",
        kind=Selects,
        kinds="loss",
        **stump,
    )
    forest(
        "half of the range",
        "half of the range is declared",
        line=r"at rate $\sqrt{8b}/R$",
        kind=WrongRange,
        kinds="sensitivity loss",
        **stump,
    )
    forest(
        "labels under replace-one",
        "the rate of add-remove",
        line=r"$\sqrt{8b}/\max(R', 2R)$",
        kind=OneSided,
        kinds="sensitivity loss",
        **replaced,
    )
    forest(
        "trees of equal size",
        "a record more moves another",
        line="*Sharing*: *all* or *parts*",
        kind=Equally,
        kinds="moved sensitivity loss",
        n_estimators=2,
        **stump,
    )
    forest(
        "copies",
        "a record may be drawn several times",
        line="*Sharing*: *all* or *parts*",
        kind=Copied,
        kinds="uncharged sensitivity loss",
        **replaced,
    )
    add(
        "pure nodes stop",
        "whether a node is pure is read",
        kind=PureStop,
        kinds="uncharged control-flow",
        schema=TWO,
        **as_before,
    )
    add(
        "halves by rank",
        "a child hangs on how many others lie below",
        kind=ByRank,
        kinds="uncharged sensitivity loss",
        **as_before,
    )
    add("a rho per node", "a record meets two nodes", kind=PerNode, kinds="paid", schema=TWO, **as_before)
    path = partial(add, theorem="thm-concentrated-path")
    path(
        "all records, as parts",
        "trees on the same records are charged as the dearest of them",
        line="scopes compose in sequence or by a partition of the records",
        kind=AllAsParts,
        kinds="composition",
        n_estimators=2,
        **stump,
    )
    path(
        "a budget by parity",
        "an odd number of records has half of the budget",
        line="chosen, like the query, from earlier outputs and public coins",
        kind=ByParity,
        kinds="uncharged output loss charge",
        **stump,
    )
    path(
        "two levels at all of it",
        "the charges of a path add up to twice the rho",
        line=r"add up to at most $\rho$",
        kind=PerNode,
        kinds="paid",
        schema=TWO,
    )
    add(
        "coins by position",
        "a record more shifts the others",
        theorem="lem-concentrated-coins",
        line="mixed by the same coins $c$",
        kind=ByPosition,
        kinds="uncharged moved sensitivity loss",
        n_estimators=2,
        **stump,
    )
    conversion = partial(add, theorem="lem-concentrated-conversion", line=r"D_\alpha(P \,\|\, Q) \le \alpha \rho")
    conversion("ten times the delta", "the conversion is of another delta", kind=WrongDelta, kinds="paid", **stump)
    conversion(
        "a conversion without the rho",
        "epsilon is 2 sqrt(rho ln(1 / delta))",
        kind=ForgetsTheRho,
        kinds="paid",
        epsilon=8.0,
        **stump,
    )
    few = (0, 0), (1, 1)
    # two tables in a tie, which one more record moves in opposite directions
    tied = ((0, 0, 1),) * 12 + ((1, 1, 0),) * 12
    tables = partial(
        add,
        kind=PrivateBoostingClassifier,
        layers=(GREY_BOX,),
        n_estimators=1,
        interactions=0,
        n_rows=6,
        pairs=((few, (*few, (0, 1))),),
    )
    choice = {"schema": TWO, "n_rows": 24, "epsilon": 2.0, "pairs": ((tied, (*tied, (0, 1, 1))),)}
    cell = partial(tables, theorem="lem-gap-and-size", kinds="loss")
    cell(
        "the gap of add-remove",
        "three quarters for the gap, at the price of a half",
        door=GapUnderReplaceOne,
        line=r"at rates $g \lambda$ and $(1 - g) \lambda$",
        relation=REPLACE_ONE,
        pairs=(((*few, (0, 0)), (*few, (0, 1))),),
    )
    cell("half a record", "a record adds twice what is taken for the most", door=HalfUnits, line=r"$a + b \le 1$")
    flagship = partial(tables, theorem="thm-private-boosting-delta")
    flagship(
        "sums twice as sharp",
        "noise at twice the rate that is charged",
        door=NoisySumsTwiceAsSharp,
        line="discrete Gaussian noise of rate $b/L$",
        kinds="sensitivity loss",
    )
    flagship(
        "tables by permute-and-flip",
        "a mechanism that has no bounded range",
        door=PermutesAndFlips,
        line="selections are by the exponential mechanism",
        kinds="loss",
        **choice,
    )
    flagship(
        "tables twice as sharp",
        "a selection at twice the rate",
        door=SelectsTwiceAsSharp,
        line=r"at rate $\sqrt{8 b} / R$",
        kinds="sensitivity loss",
        **choice,
    )
    # no number is declared, so an answer settles whether the delta is used
    looks = partial(flagship, n_rows=None, n_estimators="auto")
    looks(
        "a first look for nothing",
        "a look without a delta costs a hundredth of what it should",
        kind=TakesTheDelta,
        kinds="paid ledger",
        line="count for half the square of their loss",
    )
    looks(
        "a delta by the number of records",
        "the exact number says whether it is used",
        kind=SettlesByTheNumber,
        kinds="uncharged control-flow",
        line="Whether a run does follows from what is public and from answers",
    )
    looks(
        "a tenth more without the delta",
        "what does not take it up spends more than epsilon",
        kind=SpendsTwice,
        kinds="paid",
        line=r"losses of at most $\eps$ together",
    )
    flagship(
        "undivided codes",
        "the counts of two features, each at the price of one",
        door=UndividedCodes,
        kinds="loss",
        line="of rate $b/(kL)$",
        schema=Schema(numeric={"x": (0, 1), "z": (0, 1)}, classes=[0, 1]),
        grid="quantile",
        pairs=((((0, 0, 0), (9, 9, 1)), ((0, 0, 0), (9, 9, 1), (0, 9, 1))),),
    )
    flagship(
        "a dear flagship",
        "the conversion is of another delta",
        kind=DearFlagship,
        kinds="paid",
        line="On every run that takes up the delta the rhos add up to at most the",
    )
    # a feature that tells the records apart, and one that does not; steps that leave no doubt
    ebm = partial(
        add,
        kind=DPEBMClassifier,
        layers=(GREY_BOX,),
        schema=TWO,
        n_estimators=2,
        learning_rate=10.0,
        pairs=((tied, (*tied, (0, 0, 0))),),
    )
    sums = partial(ebm, theorem="lem-residual-sums", kinds="sensitivity loss")
    turned = {"relation": REPLACE_ONE, "pairs": (((*tied, (0, 0, 0)), (*tied, (1, 0, 1))),)}
    sums(
        "half a residual", "a record adds twice what is taken for the most", door=HalfResiduals, line=r"$r \in [-1, 1]$"
    )
    sums(
        "residuals under replace-one",
        "noise for one that moves to another cell",
        door=ResidualsOfOneSide,
        line="4 under replace-one",
        **turned,
    )
    boosting = partial(ebm, theorem="thm-dp-ebm")
    boosting(
        "categories that occur",
        "a category that does not has no count",
        kind=NotesWhichOccur,
        line="all declared codes",
        kinds="uncharged control-flow",
        pairs=((((0, 0, 1), (0, 1, 0)), ((0, 0, 1), (0, 1, 0), (1, 0, 1))),),
    )
    boosting(
        "the exact number of records",
        "bins reach for a number that is not noisy",
        kind=KnowsHowMany,
        line="from the noisy counts alone",
        kinds="uncharged",
    )
    boosting(
        "histograms twice as sharp",
        "noise at twice the rate that is charged",
        door=HistogramsTwiceAsSharp,
        line="of rate $b_0 / (KL)$",
        kinds="loss",
    )
    boosting(
        "sums of residuals twice as sharp",
        "noise at twice the rate that is charged",
        door=NoisySumsTwiceAsSharp,
        line=r"of rate $b_1 / S$",
        kinds="sensitivity loss",
    )
    boosting(
        "residuals of any size",
        "a prediction beyond the range has residuals beyond it",
        kind=DPEBMRegressor,
        door=ResidualsOfAnySize,
        schema=Schema.from_dict(TWO.to_dict() | {"classes": None, "target": [0, 1]}),
        line="clipped to one range",
        kinds="sensitivity loss",
    )
    boosting(
        "a dear EBM",
        "the conversion is of another delta",
        kind=DearEBM,
        kinds="paid",
        line=r"add up to at most the $\rho$",
    )
    stumps = partial(
        add,
        kind=DPTRClassifier,
        layers=(GREY_BOX,),
        schema=TWO,
        n_estimators=2,
        max_depth=1,
        learning_rate=10.0,
        max_step=100.0,
        pairs=((tied, (*tied, (0, 0, 0))),),
    )
    leaves = partial(stumps, theorem="lem-leaf-steps", kinds="loss")
    leaves(
        "half a step",
        "a record adds twice what is taken for the most",
        door=HalfSteps,
        line=r"residual $r \in [-1, 1]$",
    )
    leaves(
        "ones for Hessians",
        "each record counts for one, at the price of its Hessian",
        door=OnesForHessians,
        line=r"$0 \le h \le |r| (1 - |r|)$",
    )
    leaves("heavy Hessians", "twice the weight that is free", door=HeavyHessians, line=r"weight $w \le 11$")
    leaves(
        "steps under replace-one",
        "noise for one that moves to another leaf",
        door=StepsOfOneSide,
        line="4 under replace-one",
        cyclic=True,
        **turned,
    )
    leaves(
        "free counts",
        "numbers of records at the price of Hessians",
        door=FreeCounts,
        line="$1 + w$ under add-remove",
        update="gradient",
    )
    trees = partial(stumps, theorem="thm-dp-tr")
    trees(
        "trees that look",
        "what does not vary is not cut",
        kind=CutsWhatVaries,
        line="without looking at a record",
        kinds="uncharged control-flow",
        pairs=((((0, 0, 1),), ((0, 0, 1), (1, 1, 0))),),
    )
    trees(
        "Hessians twice as sharp",
        "noise at twice the rate that is charged",
        door=NoisySumsTwiceAsSharp,
        line="of rate $16 b / L$",
        kinds="sensitivity loss",
        candidates="iterative-hessian",
    )
    trees(
        "steps bounded by the number of records",
        "a bound that is not noisy",
        kind=BoundsByNumber,
        line="public constants and of noisy sums alone",
        kinds="uncharged",
    )
    trees(
        "trees of another delta",
        "the conversion is of another delta",
        kind=WrongDeltaTR,
        kinds="paid",
        line=r"add up to at most the $\rho$",
    )
    # a first tree at score 0 uses up a round; one more is for those who have something left
    sbdt = partial(
        add,
        kind=SBDTClassifier,
        layers=(GREY_BOX,),
        schema=ONE,
        n_estimators=1,
        extra_estimators=1,
        init_share=0.0,
        pairs=((tied_one := ((0, 1),), (*tied_one, (1, 0))),),
    )
    paying = partial(sbdt, theorem="thm-individual-filter", kinds="composition")
    paying(
        "paid afterwards",
        "a record joins that has used up all, but not more",
        door=LatePayers,
        line="what it has paid and the fee together are at most",
    )
    paying(
        "the mean fee",
        "a record pays what all owe on average",
        door=MeanPayers,
        line="a function of its own class and codes and of what was released before",
        n_estimators=2,
        learning_rate=10.0,
        reg_lambda=1e-6,
        extra_estimators=4,
        pairs=((((0, 1),) * 6, (*((0, 1),) * 6, (0, 0))),),
    )
    paying(
        "filtered sums twice as sharp",
        "noise at twice the rate that is charged",
        door=FilteredTwiceAsSharp,
        line="discrete Gaussian noise of rates",
    )
    paying(
        "the end of the trees",
        "no record can pay, and it shows",
        kind=StopsWhenNobodyPays,
        kinds="uncharged",
        line="Which records joined is not released",
        learning_rate=10.0,
        reg_lambda=1e-6,
        schema=TWO,
        pairs=((((0, 0, 1),), ((0, 0, 1), (1, 1, 0))),),
    )
    pairs_of = partial(sbdt, theorem="lem-gradient-pairs", kinds="composition", extra_estimators=0)
    pairs_of("whole gradients", "a record adds twice its clip", door=WholeGradients, line=r"$|g| \le G$")
    pairs_of(
        "one side of a replacement",
        "noise for a record that is added",
        door=NoiseOfOneSide,
        line="4 and 2 under replace-one",
        relation=REPLACE_ONE,
        pairs=((((0, 1), (1, 1)), ((0, 1), (1, 0))),),
    )
    whole = partial(sbdt, theorem="thm-s-bdt", extra_estimators=0)
    whole(
        "an initial score from the size",
        "the number of records is exact",
        kind=StartsFromTheSize,
        kinds="uncharged control-flow",
        line="a function of noisy class counts",
        init_share=0.1,
    )
    whole("a dear S-BDT", "the conversion is of another delta", kind=DearSBDT, kinds="paid", line=r"at most the $\rho$")
    whole(
        "an S-BDT that pays afterwards",
        "a record joins that has used up all, but not more",
        door=LatePayers,
        kinds="composition",
        line="an individual filter",
        extra_estimators=1,
    )
    many = ((0, 0, 1), (1, 1, 0)) * 24
    law = partial(add, kind=AIMClassifier, layers=(GREY_BOX,), schema=TWO, theorem="thm-aim", max_features=1, rounds=1)
    law(
        "marginals twice as sharp",
        "noise at twice the rate that is charged",
        door=NoisySumsTwiceAsSharp,
        line="of rate $b / L$",
        kinds="sensitivity loss",
    )
    law(
        "a marginal by permute-and-flip",
        "a mechanism that has no bounded range",
        door=PermutesAndFlips,
        line="by the exponential mechanism",
        kinds="loss",
        choose_share=0.9,
        rounds=4,
        pairs=((many, (*many, (0, 1, 1))), (many, (*many, (1, 0, 1))), (many, (*many, (1, 0, 0)))),
    )
    law(
        "choices twice as sharp",
        "half of the range",
        door=SelectsTwiceAsSharp,
        line=r"at rate $\sqrt{8 b} / R$",
        kinds="sensitivity loss",
        choose_share=0.9,
    )
    law(
        "codes merged by their counts",
        "which codes are together is not noisy",
        kind=MergesByCounts,
        line="functions of public constants and of earlier answers alone",
        kinds="uncharged control-flow",
    )
    law("a dear AIM", "the conversion is of another delta", kind=DearAIM, kinds="paid", line="add up to at most")
    misfit = partial(law, theorem="lem-misfit")
    misfit(
        "records counted twice",
        "a record is in a marginal twice",
        door=CountsTwice,
        line="of which a record is in one",
        kinds="sensitivity loss",
    )
    misfit(
        "the lightest weight for the heaviest",
        "scores change by more than the weight that is counted on",
        door=LightScale,
        line=r"a public weight $1 \le w_r \le w$",
        kinds="sensitivity loss",
        choose_share=0.9,
    )
    return tuple(found)


#: Each breaks one line.
MUTANTS = _mutants()
#: Sound ones that they are made of: nothing may be found.
CONTROLS = (Rooted, Counted, OwnNoise)
