"""Boosting of wide tables: the base of the flagship's classifier and regressor, and one round of it.

A round selects one table, of a feature or of a few crossed ones, measures it, and moves the scores of its cells by the
empirical-Bayes estimate that the noisy sums allow.  The chapter *The flagship* has the design and the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from dpforest.curator import FINE, FINEST, Selection
from dpforest.curator.queries import ClassCounts
from dpforest.curator.selections import TableCandidates
from dpforest.flagship.binning import public_bins, quantile_bins
from dpforest.flagship.candidates import ReleasedTotals, grow_table, random_tables, single_tables, whole_table
from dpforest.flagship.monotone import Directions, directions_of, monotone
from dpforest.flagship.priors import count_noise, noise_variances, size_lower_bound
from dpforest.flagship.schedules import BoostingSchedule, RegressionSchedule, bins_share
from dpforest.learners.audited import EXACT
from dpforest.learners.base import WithDelta
from dpforest.learners.boosting import whole_votes
from dpforest.learners.growth import Frontier
from dpforest.learners.parameters import Either, Integer, Number, OneOf
from dpforest.learners.run import Run
from dpforest.mechanisms import SELECTIONS
from dpforest.privacy import REPLACE_ONE, claim
from dpforest.schema import Schema
from dpforest.structure.crossings import Crossings

__all__ = ["CELLS", "EVEN_SHARE", "EVEN_SHARE_TWO", "SECOND_SIZE_SHARE", "SIZE_LEAK", "SIZE_SHARE", "WideTables"]

CHOOSERS = ("auto", *SELECTIONS)
#: Share of the budget for a noisy number of records, where none is declared.
SIZE_SHARE = 0.01
#: A delta pays above this share of the answers that have the same noise with it and without: what decides is
#: the gap of a cell, which has the larger part of the budget under a delta.  Of two classes the few rounds that there
#: are without a delta lead further.
EVEN_SHARE = 0.4
EVEN_SHARE_TWO = 0.55
#: Share for a second one, where the noise of the first may have drowned the number and the target is numeric.
SECOND_SIZE_SHARE = 0.06
#: Log prior of a prior variance t of a table of one feature, for each cell: minus so many t.
PENALTY = 0.1
#: What a round measures, in the ledger's words, without a delta and with one.
CELLS = "sum the weights in a cell", "sum the gap and the size of a cell"
GRADIENTS = "sum the gradients in a cell", "sum the gradients and their sizes in a cell"
SIZE_LEAK = "the number of records, for the rule of the parameters", "public under replace-one"


class WideTables(WithDelta):
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
        OneOf("auto", "quantile", "doubling", "even"),
        """The bins of a numeric feature.  Public ones, between its bounds: ``"even"``, all equally wide;
        ``"doubling"``, where 0 lies between the bounds, half as many and every half, quarter, ... of each bound.
        ``"quantile"``: ``n_bins`` of about equal weight, by a released histogram.  auto: quantile where the rule says
        that the histograms pay for themselves, else doubling.""",
    ] = "auto"
    monotonic_cst: Annotated[
        Mapping[str, int] | None,
        Directions(),
        """Numeric features with which the prediction must not fall (1) or must not rise (-1), by name; of two classes
        it is the probability of the second one.""",
    ] = None
    variant: Annotated[Literal["proved"], "There is no other."] = "proved"

    @claim("lem-children")
    def bin_numbers(self, run: Run, n_records: float, rounds: int) -> tuple[ReleasedTotals, float]:
        """The bins of the features, and the share of the budget that histograms of the numbers had, if any."""
        public = public_bins(run.schema, self.bins(run.schema))
        finer = run.ordered & (public.sizes < run.sizes) & (rounds > 0)
        share = bins_share(
            n_records, run.epsilon, run.relation, run.ledger.delta, int(finer.sum()), always=self.grid == "quantile"
        )
        if not share:
            return ReleasedTotals.of(public), 0.0
        each = count_noise(share * run.budget / finer.sum(), run.ledger)  # the features share what histograms have
        counts = run.count_children(run.frontier, finer[None], share * run.budget, classes=False)[0, :, 0]
        parts = np.split(counts, np.cumsum(run.sizes)[:-1])
        asked = [part if wanted else None for part, wanted in zip(parts, finer.tolist(), strict=True)]
        found = quantile_bins(public, run.schema, asked, n_records, each, self.bins(run.schema))
        return ReleasedTotals.of(found), share

    def measure(
        self,
        run: Run,
        released: ReleasedTotals,
        sides: np.ndarray,
        choosing: float,
        measuring: float,
        together: bool = False,
    ) -> tuple[Crossings, int, Frontier]:
        """Choose a table and a side, or a table for all sides ``together``, and grow it as a tree.

        Returns the table, the place of its side, and the leaves: one for each cell, in order.
        """
        singles = single_tables(released.binning)
        tables = Crossings.of(singles + random_tables(self.interactions, run.ordered, released, run.chance))
        # half a standard deviation of the noise that the gap of a cell will have
        variance, steps = noise_variances(measuring / (1 + together), run.ledger)[0], FINEST if together else FINE
        candidates = TableCandidates(tables, sides, round(math.sqrt(variance) / 2 * steps), together)
        place, at = run.choose_table(candidates, choosing, Selection(mechanism=self._mechanism(run)))
        return tables[place], at, grow_table(run, tables[place])

    def measure_all(self, run: Run, side: float, measuring: float) -> tuple[Crossings, Frontier, np.ndarray]:
        """Measure the table of a single cell, which needs no selection: the table, its leaf, its sums in records."""
        table = Crossings.of([whole_table(run.sizes)])
        leaves = grow_table(run, table)
        return table, leaves, run.count_crossing(table, side, leaves, measuring) / FINE

    def vote(
        self,
        run: Run,
        released: ReleasedTotals,
        table: Crossings,
        leaves: Frontier,
        steps: np.ndarray,
        sizes: np.ndarray,
        values: np.ndarray,
    ) -> None:
        """Set the votes of the leaves, and note them for the groups of later tables.

        Parameters
        ----------
        steps : ndarray of float64, shape (n_cells, n_steps)
        sizes : ndarray of float64, shape (n_cells,)
            Released weight of each cell.
        values : ndarray of int64, shape (n_steps, n_values)
            The classes that each step votes for: the votes of a cell are its steps times this matrix.
        """
        votes = np.stack([self._directed(run, table, each) for each in whole_votes(steps).T], axis=1)
        feature = int(table.features[0, 0])
        # later crossed tables order the categories of a feature by these votes, and cut them into groups by these sizes
        if table.features[0, 1] < 0 and len(votes) > 1 and released.binning.masses[feature] is None:
            largest = votes[:, int(np.abs(votes).sum(axis=0).argmax())]
            released.learn(feature, largest, np.rint(sizes * FINE).astype(np.int64))
        run.set_leaf_values(leaves, np.add.reduce(votes[:, :, None] * values, axis=1))

    def gap_variances(self) -> list[float]:
        """Variance of the noise of the gap of a cell in each round of this fit, in records squared, by its ledger.

        What the ledger says is public: this costs nothing.  For a first table of all classes it is the variance of a
        class count: the gap of a class with a share p of the records has ``(1 - p)^2 + (n_classes - 1) p^2`` times it.
        """
        ledger = self.ledger_
        found = [noise_variances(cost, ledger)[0] for cost in ledger.charges(CELLS[bool(ledger.delta)])]
        found += [noise_variances(cost / 2, ledger)[0] for cost in ledger.charges(GRADIENTS[bool(ledger.delta)])]
        if len(found) < self.boosted_.n_trees - 1:  # the first table of all classes is one of class counts
            found.insert(0, count_noise(ledger.charges(ClassCounts.label)[-1], ledger) ** 2)
        return found

    def estimate_size(self, run: Run, ask: Callable[[float], np.ndarray]) -> tuple[float, np.ndarray | None, float]:
        """The number of records for the schedule, at least 1; and the noisy counts it is from, with their noise.

        ``ask(share)`` releases noisy numbers of records that sum to all, at a share of the budget.  The counts are None
        where the number is declared or public.  Where the schedule sets the rounds, they are made without a delta,
        because the rounds decide whether the delta is used.
        """
        if self.n_rows is not None:
            return float(self.n_rows), None, 0.0
        if run.relation == REPLACE_ONE:
            return float(run.size(SIZE_LEAK)), None, 0.0
        if run.ledger.delta and isinstance(self.n_estimators, str):
            run.without_delta(by_answers=True)
        first, noise = ask(SIZE_SHARE), count_noise(SIZE_SHARE * run.budget, run.ledger)
        return max(size_lower_bound(first, noise), 1.0), first, noise

    def settle_delta(self, run: Run, rounds: int) -> None:
        """Use the delta, if there is one, only where it lowers the noise of so many rounds.

        A few answers have less noise without a delta; epsilon-differential privacy implies it with any delta.
        """
        if not self.delta:
            return
        share = EVEN_SHARE_TWO if run.schema.n_classes == 2 else EVEN_SHARE
        pays = not isinstance(self.n_estimators, str) or rounds > share * run.even_answers(self.delta)
        if pays and not run.ledger.delta:
            run.with_delta()
        elif run.ledger.delta and not pays:
            run.without_delta()

    def rounds_of(self, plan: BoostingSchedule | RegressionSchedule) -> int:
        """Number of rounds: that of the schedule, or ``n_estimators`` if given."""
        return plan.rounds if isinstance(self.n_estimators, str) else int(self.n_estimators)

    def budgets(self, left: float, plan: BoostingSchedule | RegressionSchedule) -> list[tuple[float, float]]:
        """Budgets of each round, to choose a table and to measure it, which sum to ``left``."""
        growth, part, parts = plan.growth if isinstance(self.n_estimators, str) else 1.0, 1.0, []
        for _ in range(self.rounds_of(plan)):
            parts.append(part)
            part *= growth
        total, choose = sum(parts), plan.select_share  # parts of all rounds, of which each has its share
        return [(choose * left * part / total, (1 - choose) * left * part / total) for part in parts]

    def _mechanism(self, run: Run) -> str:
        if self.selection != "auto":
            return self.selection
        return "exponential" if run.ledger.delta else "permute-and-flip"

    def _prior(self, run: Run, table: Crossings) -> dict[str, Any]:
        """Arguments of the empirical-Bayes prior for the cells of one table: its shape, and which cells are alike."""
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
        """Votes of the cells, projected to the declared directions; that of missing values stays as it is."""
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
        return super().declared_schema().with_grid("fine" if self.grid in ("auto", "quantile") else self.grid)

    def lacking(self) -> dict[str, str]:
        return {EXACT: "noisy sums decide the weights of the next round, so that replay cannot visit them"}
