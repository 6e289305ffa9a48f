"""A run held against its frozen replay: the two laws of each answer, its charge, and the charges of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpforest import arithmetic
from dpforest.audit.exact.divergence import ORDERS, largest_rho, log_gaussian, noise_moment
from dpforest.audit.exact.noisy import geometric_log_ratio
from dpforest.audit.grey.frozen import GAUSSIAN, Draw, Step, Watch
from dpforest.curator.filters import FILTERED
from dpforest.mechanisms import exponential_law, permute_and_flip_law
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE, Ledger

__all__ = ["EXCESS", "Comparison", "exceeds"]

EXCESS = 1e-9  # a charge exceeded by this share, or a loss below it, is rounding
_FAINT = -600.0  # exponents below this are added after the logarithm, so that no probability underflows


def exceeds(measured, allowed):
    """Whether a number is larger than it may be by more than rounding."""
    return np.asarray(measured) > np.asarray(allowed) * (1 + EXCESS) + EXCESS


@dataclass(frozen=True)
class _Weight:
    """Rows of one answer, weighed on both data sets; each field has shape (rows,).

    ``there`` and ``back`` are the worst log ratios over all answers, under a delta the rhos that the two laws need;
    ``own`` is the log ratio of the answer given, from the first data set to the second.  ``change`` is the spread of
    the changes of the scores, or the L1 change of the counts, of Gaussian noise the square of the L2 change.  ``rate``
    is not a number where a row has several.  ``quotient`` is 8 for a selection and 2 for geometric noise, of which a
    range or a loss of eta costs a rho of eta^2 over it; 0 for Gaussian noise, whose rate is in the unit of its charges.
    """

    there: np.ndarray
    back: np.ndarray
    own: np.ndarray
    change: np.ndarray
    rate: np.ndarray
    quotient: int = 0


class Comparison:
    """What a run and its replay show when held against each other.

    Parameters
    ----------
    run, again : Watch
        Finished.
    ledger, its_ledger : Ledger
        Theirs, with every charge.
    relation : str

    Attributes
    ----------
    found : list of (kind, where, text, measured, allowed)
    measured : float
        Sum over the answers of the worst log ratio over all that could have been said, under a delta of the rho that
        the answer's two laws need; the larger of both directions.
    loss : float
        Sum over the answers of the log ratio of what was said, without its sign.
    answers : int
    """

    def __init__(self, run: Watch, again: Watch, ledger: Ledger, its_ledger: Ledger, relation: str):
        self.found: list[tuple] = []
        self.measured = self.loss = 0.0
        self.answers = 0
        self._ledger, self._relation = ledger, relation
        if _scopes(ledger) != _scopes(its_ledger):
            self._add_finding("control-flow", "the ledger", "opens other scopes on one data set than on the other")
            return
        if ledger.delta != its_ledger.delta:
            self._add_finding("control-flow", "the ledger", "takes up its delta on one data set and not on the other")
            return
        if ledger.leaks != its_ledger.leaks:  # a card prints them, with their names
            self._add_finding("charge", "the ledger", "names other leaks on one data set than on the other")
        steps = list(zip(run.steps, again.steps, strict=True))
        moved = max((_moved(step, twin, again) for step, twin in steps), default=0)
        # a split into equal parts moves one record for a new one, and has a price for that
        most = int("equal-split" in ledger._kinds and relation == ADD_REMOVE)
        if moved > most:
            self._add_finding(
                "moved", "the assignment", "gives records that did not change to other trees", moved, most
            )
        # in a tree that exchanged one record for another, the price is that of replacing one
        swapped = 0 < moved <= most
        self._paying = REPLACE_ONE if swapped else relation
        answers = len(self.found)
        sums = np.zeros(3)
        for step, twin in steps:
            if self._same_charges(step, twin):
                sums += self._compare_answers(step, twin)
        self.measured, self.loss = float(max(sums[:2])), float(abs(sums[2]))
        # three steps: a record leaves one tree, the new one takes its place, and it enters another
        limit = 3 * _as_if_assigned(ledger).paid(relation) if swapped else ledger.paid(relation)
        if len(self.found) == answers and exceeds(self.measured, limit):
            text = "lose more together than the ledger adds up to"
            self._add_finding("composition", "the answers", text, self.measured, limit)

    def _add_finding(self, kind: str, where: str, text: str, measured=None, allowed=None) -> None:
        self.found.append((kind, where, text, measured, allowed))

    def _same_charges(self, step: Step, twin: Step) -> bool:
        """Compare what was charged; False if the steps cannot be compared further."""
        if [charge.scopes.tolist() for charge in step.charges] != [charge.scopes.tolist() for charge in twin.charges]:
            self._add_finding("control-flow", step.query, "charges other scopes on one data set than on the other")
            return False
        for charge, other in zip(step.charges, twin.charges, strict=True):
            if (charge.query, charge.mechanism) != (other.query, other.mechanism):  # a card prints them
                self._add_finding("charge", step.query, "is called by another name in one ledger than in the other")
            if (gap := max(_gap(charge.costs[name], other.costs[name]) for name in RELATIONS)) > 0:
                self._add_finding("charge", charge.query, "is charged differently, the answers being the same", gap, 0)
        return True

    def _compare_answers(self, step: Step, twin: Step) -> np.ndarray:
        """Compare the loss of each answer with its charge; returns the sums of the losses: there, back, as answered."""
        draws = [(d, e) for d, e in zip(step.draws, twin.draws, strict=True) if _reads(d) or _reads(e)]
        paid = [len(charge.scopes) for charge in step.charges]
        sizes = [*paid, *[None] * len(draws)][: len(draws)]
        concentrated = bool(self._ledger.delta)
        rows = [
            _weight_of_draws(draw, other, size, concentrated) for (draw, other), size in zip(draws, sizes, strict=True)
        ]
        lost = np.zeros(3)
        for weight in rows:
            self.answers += len(weight.there)
            lost += weight.there.sum(), weight.back.sum(), weight.own.sum()
        if [len(weight.there) for weight in rows] == paid:
            for weight, charge in zip(rows, step.charges, strict=True):
                self._check_charge(weight, charge)
        elif draws:
            # answers and charges that no order matches: all that was lost against all that was charged
            allowed = float(sum(self._allowed(charge).sum() for charge in step.charges))
            if exceeds(max(lost[:2]), allowed):
                text = "loses more than was charged" if step.charges else "answers from the records, and is not charged"
                self._add_finding("loss", f"{step.query}, {draws[0][0].mechanism}", text, max(lost[:2]), allowed)
        return lost

    def _allowed(self, charge) -> np.ndarray:
        """What an answer may lose.

        Replacing a record may add one to those that a query reads, or remove one: at least that cost is allowed.
        """
        costs = charge.costs[self._paying]
        return costs if self._paying == ADD_REMOVE else np.maximum(costs, charge.costs[ADD_REMOVE])

    def _check_charge(self, weight: _Weight, charge) -> None:
        """Note where an answer changes by more than its rate was set for, or loses more than was charged."""
        if charge.mechanism == FILTERED:  # its rounds were charged together, and are held to that together
            return
        where, allowed = f"{charge.query}, {charge.mechanism}", self._allowed(charge)
        spent = np.sqrt(weight.quotient * allowed) if self._ledger.delta and weight.quotient else allowed
        with np.errstate(divide="ignore", invalid="ignore"):
            declared = spent / weight.rate  # not a number, and never exceeded, without a single finite rate
        lost = np.maximum(weight.there, weight.back)
        for kind, measured, most, text in (
            ("sensitivity", weight.change, declared, "changes by more than its rate was set for"),
            ("loss", lost, allowed, "loses more than was charged"),
        ):
            if (over := exceeds(measured, most)).any():
                row = int(np.argmax(np.where(over, measured, -1.0)))
                level = _label_of(self._ledger, int(charge.scopes[row]))
                self._add_finding(kind, where, f"{text}, at {level}", float(measured[row]), float(most[row]))


# -- laws of one answer on two data sets -------------------------------------------------------------------------


def _weight_of_draws(draw: Draw, other: Draw, size: int | None, concentrated: bool) -> _Weight:
    """Weigh an answer, to so many scopes if it was charged for, by what it loses or by the rho that it needs."""
    if draw.law is None:
        return _weight_of_counts(draw, other, size, concentrated)
    p, q, scores, others = _log_law(draw), _log_law(other), draw.exact, other.exact
    with np.errstate(invalid="ignore"):
        gap = np.where(p == q, 0.0, p - q)  # impossible on both: equal
        change = np.where(np.isneginf(scores) & np.isneginf(others), np.nan, others - scores)
        spread = np.nanmax(change, axis=1) - np.nanmin(change, axis=1)
    spread = np.where(np.isnan(spread), np.inf, spread)
    own = gap[np.arange(len(gap)), draw.answer]
    there, back = (largest_rho(p, q), largest_rho(q, p)) if concentrated else (gap.max(axis=1), (-gap).max(axis=1))
    return _Weight(there, back, own, spread, np.broadcast_to(draw.rate, len(gap)), quotient=8)


def _weight_of_counts(draw: Draw, other: Draw, size: int | None, concentrated: bool) -> _Weight:
    # a list of numbers is one answer for each scope, or all of it is one answer
    rows = len(draw.answer) if draw.answer.ndim > 1 or draw.answer.shape == (size,) else 1
    said, counts, others, rate, its_rate = (
        values.reshape(rows, -1) for values in (draw.answer, draw.exact, other.exact, draw.rate, other.rate)
    )
    gaussian = draw.mechanism == GAUSSIAN
    shift = np.abs(others - counts)
    same = (shift == 0) & (rate == its_rate)
    log_noise = log_gaussian if gaussian else _log_noise
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.where(same, 0.0, log_noise(said - counts, rate) - log_noise(said - others, its_rate))
        if concentrated:
            there, back = (_rhos(shift, *both, gaussian) for both in ((rate, its_rate), (its_rate, rate)))
        elif gaussian:  # the ratio grows without bound with the distance from both counts
            there = back = np.where(same, 0.0, np.inf).sum(axis=1)
        else:
            there = np.where(same, 0.0, geometric_log_ratio(shift, rate, its_rate)).sum(axis=1)
            back = np.where(same, 0.0, geometric_log_ratio(shift, its_rate, rate)).sum(axis=1)
    change = (shift.astype(float) ** 2 if gaussian else shift).sum(axis=1).astype(float)
    one_rate = np.where((rate == rate[:, :1]).all(axis=1), rate[:, 0], np.nan)
    return _Weight(there, back, own.sum(axis=1), change, one_rate, quotient=0 if gaussian else 2)


def _log_noise(k: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Log probability of the geometric noise ``k``."""
    return arithmetic.log(arithmetic.tanh(rate / 2)) - np.where(k == 0, 0.0, rate * np.abs(k))


def _rhos(shift: np.ndarray, rate: np.ndarray, its_rate: np.ndarray, gaussian: bool) -> np.ndarray:
    """The rho that each row of noisy counts needs: the cells are independent, so their divergences add up."""
    found = np.zeros(len(shift))
    for row, *cells in zip(range(len(shift)), shift.tolist(), rate.tolist(), its_rate.tolist(), strict=True):
        moving = [cell for cell in zip(*cells, strict=True) if cell[0] or cell[1] != cell[2]]
        for order in ORDERS if moving else ():
            total = sum(noise_moment(*cell, gaussian, order) for cell in moving)
            found[row] = max(found[row], total / (max(order - 1, 1) * order))
    return found


def _log_law(draw: Draw) -> np.ndarray:
    """Log probability of each candidate, exact far beyond where the probability itself underflows."""
    scores, rate = draw.exact, np.broadcast_to(draw.rate, len(draw.exact))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        if draw.law not in (exponential_law, permute_and_flip_law) or not np.isfinite(rate).all():
            return arithmetic.log(draw.law(scores, draw.rate))
        gap = scores - scores.max(axis=1, keepdims=True)
        exponent = np.where(np.isneginf(scores), -np.inf, rate * gap)
        # a probability is exp(exponent) times a factor that does not feel candidates so far behind
        faint = (exponent < _FAINT) & np.isfinite(exponent)
        lifted = np.where(faint, _FAINT / rate, gap)
        return arithmetic.log(draw.law(lifted, draw.rate)) + np.where(faint, exponent - _FAINT, 0.0)


def _reads(draw: Draw) -> bool:
    """Whether the answer can depend on the records: noise that was used, or a selection that looks at its scores."""
    return draw.exact is not None and bool((draw.rate != 0).any())


# -- ledgers -----------------------------------------------------------------------------------------------------


def _moved(step: Step, twin: Step, again: Watch) -> int:
    """How many of the records that both data sets hold are in another tree."""
    if step.assignment is None or twin.assignment is None:
        return 0
    return int((twin.assignment[again.shared] != step.assignment[again.match[again.shared]]).sum())


def _scopes(ledger: Ledger) -> tuple:
    return tuple(ledger._kinds), tuple(ledger._labels), tuple(tuple(block.tolist()) for block in ledger._parents)


def _as_if_assigned(ledger: Ledger) -> Ledger:
    """The ledger with parts of equal size priced as parts by coin."""
    return replace(ledger, _kinds=["assignment" if kind == "equal-split" else kind for kind in ledger._kinds])


def _blocks(ledger: Ledger) -> Iterator[tuple[int, str]]:
    end = 0
    for block, label in zip(ledger._parents, ledger._labels, strict=True):
        end += len(block)
        yield end, label


def _label_of(ledger: Ledger, scope: int) -> str:
    """The label of a scope, as the ledger prints it."""
    return next(label for end, label in _blocks(ledger) if scope < end)


def _gap(one: np.ndarray, other: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.where(one == other, 0.0, np.abs(one - other)).max(initial=0.0))
