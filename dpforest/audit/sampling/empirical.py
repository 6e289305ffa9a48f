"""A lower bound on the privacy loss of anything that can be sampled.

Pair, direction and event are chosen on one half of the draws, and the bound comes from the other half: whatever was
looked at while choosing, and whatever was chosen, the bound holds.  A bound above the claim refutes the mechanism; one
below proves nothing but that this auditor found no more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from dpforest.audit.plain import plain
from dpforest.audit.sampling.bounds import (
    Betting,
    best_weight,
    check_confidence,
    check_promise,
    clopper_pearson,
    epsilon_lower,
    least_type_two,
    p_value,
    rho_lower,
    rho_p_value,
)
from dpforest.audit.sampling.draws import SIDES, UNCHECKED, NamedPair, Sampler, check_law, check_pairs, check_random
from dpforest.audit.sampling.events import ANYTHING, KINDS, Proposal, choose, likelihood_ratio, propose, thirds
from dpforest.audit.sampling.features import features_of
from dpforest.audit.sampling.grids import check_grain, law_on, sampler_on, spelled_grid, stands_on, suited_grid
from dpforest.audit.sampling.outputs import Batch, join, shortened
from dpforest.learners.parameters import check_choice, check_count
from dpforest.messages import listed, shown
from dpforest.privacy import claim as seal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["METHODS", "EmpiricalAudit", "empirical"]

METHODS = ("fixed", "sharp", "betting")
FEWEST = 20  # draws per side that a pair is looked at with, at least
_SPREAD = 256  # draws per side that a grid is chosen by
_CHUNK = 100_000  # outputs held at once while testing
_SURVIVE = 4  # one pair in so many goes on to the next round, until no more than so many are left


@dataclass(frozen=True, kw_only=True)
class EmpiricalAudit:
    """The outcome of an audit by sampling.

    Attributes
    ----------
    epsilon_lower : float
        The loss is at least this, with ``confidence``.
    confidence : float
    claim : float
        The epsilon that the mechanism promises; infinite if it promises a rho.
    delta : float
        And the delta.
    rho : float or None
        The rho that it promises, of zero-concentrated privacy; None if it promises an epsilon.
    violated : bool
        Whether the claim is refuted.
    p_value : float
        Of the claim, for this event.
    event : str
        The event that was tested.
    pair : str or tuple of two data sets
        The name of the pair, or the pair itself if it was given none.
    direction : {"first", "second"}
        On which data set of the pair the event is held to be more likely.
    n : int
        Draws per side in the test.
    hits : tuple of two ints
        How often the event happened in them, on the first and on the second data set.
    tried : int
        Events that were looked at while choosing, over all pairs and both directions.
    method : {"fixed", "sharp", "betting"}
    grid : float or None
        What the outputs were rounded to multiples of before they were looked at; None if they were not.
    lowest_bits : EmpiricalAudit or None
        What the lowest bits of the doubles give away by themselves, in the same draws; None if nothing.
    on_grid : EmpiricalAudit or None
        If they do, the audit of the same mechanism with its outputs on a grid, where they are gone; None if there is
        nothing to audit on it.
    relation : {"add-remove", "replace-one"} or None
        Under which each pair was checked to be one of neighbours; None if none was, so that the bound is on the loss
        of a mechanism only if the pairs are neighbours.
    """

    epsilon_lower: float
    confidence: float
    claim: float
    violated: bool
    p_value: float
    event: str
    pair: Any
    direction: str
    n: int
    hits: tuple[int, int]
    tried: int
    method: str
    delta: float = 0.0
    rho: float | None = None
    grid: float | None = None
    lowest_bits: EmpiricalAudit | None = None
    on_grid: EmpiricalAudit | None = None
    relation: str | None = None

    @property
    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Clopper-Pearson intervals of the event's probability on either data set, each at ``confidence``."""
        low, high = clopper_pearson(self.hits, self.n, (1 + self.confidence) / 2)
        return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))

    @property
    def rho_lower(self) -> float:
        """A lower bound on the rho of zero-concentrated privacy, from the same counts and with the same confidence.

        A claimed rho says more than each of its (epsilon, delta): an audit of one such pair may find nothing where this
        refutes the rho (:prf:ref:`lem-event-rho`).  0 with "betting", whose number of draws depends on what was drawn.
        """
        if self.method == "betting":
            return 0.0
        likely, other = self.hits if self.direction == SIDES[0] else self.hits[::-1]
        return rho_lower(likely, self.n, other, self.n, self.confidence)

    @property
    def _bound(self) -> tuple[float, float]:
        """What is proved and what is claimed, of the epsilon, or of the rho if one is promised."""
        return (self.epsilon_lower, self.claim) if self.rho is None else (self.rho_lower, self.rho)

    @property
    def _pair(self) -> str:
        return shortened(self.pair if isinstance(self.pair, str) else repr(self.pair))

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        bound, claim = self._bound
        return (
            f"{'eps' if self.rho is None else 'rho'} >= {bound:.4g} with {100 * self.confidence:.6g} % confidence "
            f"(claim {claim:.6g}{f' with delta = {self.delta:g}' if self.delta else ''}: "
            f"{verdict}) by event {self.event} on pair {self._pair}, n = {self.n} per side"
            f"{UNCHECKED if self.relation is None else ''}{self._grain}"
        )

    @property
    def _grain(self) -> str:
        """What is due to the lowest bits, as one more line."""
        rest = self.on_grid
        if self.lowest_bits is None:
            return ""
        alone = f"\nthe lowest bits alone give {self.lowest_bits._bound[0]:.4g}, by {self.lowest_bits.event}; "
        if rest is None or rest.grid is None:
            return f"{alone}on a grid there is nothing to audit"
        verdict = "VIOLATED" if rest.violated else "not refuted"
        return f"{alone}on the grid {spelled_grid(rest.grid)}: {rest._bound[0]:.4g}, {verdict}, by {rest.event}"

    def to_dict(self) -> dict[str, Any]:
        """Numbers, words and lists only, ready for JSON."""
        shown = {column.name: getattr(self, column.name) for column in fields(self)}
        for name in ("rho", "grid", "lowest_bits", "on_grid"):
            if (value := shown.pop(name)) is not None:
                shown[name] = value.to_dict() if isinstance(value, EmpiricalAudit) else value
        lists = {"hits": list(self.hits), "intervals": [list(interval) for interval in self.intervals]}
        proved = {} if self.rho is None else {"rho_lower": self.rho_lower}
        return plain(shown | lists | {"pair": self._pair} | proved)

    def to_json(self) -> str:
        """:meth:`to_dict` as a string."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @property
    def alt(self) -> str:
        """What :meth:`plot` shows, in words."""
        (a, b), (c, d) = self.intervals
        bound, claim = self._bound
        return (
            f"Above, the bound {bound:.3g} as a bar next to the claim {claim:.3g}. Below, the event's "
            f"probability: {a:.3g} to {b:.3g} on the first data set, {c:.3g} to {d:.3g} on the second."
        )

    def plot(self) -> Figure:
        """The bound next to the claim, and what is known of the event's probability on either data set."""
        from dpforest.study import plots

        made, (above, below) = plots.figure(2, 1.9)
        bound, claim = self._bound
        above.barh([0], [bound], height=0.5, color=plots.PALETTE[1 if self.violated else 0])
        above.axvline(claim, color="black", linestyle="--", marker="", label="claim")
        above.set(xlim=(0, 1.2 * max(bound, claim, 0.1)), ylim=(-0.6, 0.9), yticks=[])
        loss = "privacy loss" if self.rho is None else "rho"
        above.set_xlabel(f"{loss}, with {100 * self.confidence:g} % confidence")
        above.set_title(f"at least {bound:.3g}: claim {'refuted' if self.violated else 'not refuted'}")
        above.legend(loc="upper left" if claim > bound / 2 else "upper right")
        likely = SIDES.index(self.direction)
        least = min(low if low > 0 else high for low, high in self.intervals) / 3
        rare = self.intervals[1 - likely][1]
        if self.rho is None:
            allowed = min(1.0, math.exp(self.claim) * rare + self.delta)
        else:
            allowed = 1 - float(least_type_two(rare, rho=self.rho))
        below.barh([likely], [allowed], height=0.5, color="#d9d9d9", label="allowed by the claim")
        for row, (low, high) in enumerate(self.intervals):
            middle = max(self.hits[row] / self.n, least)
            ends = [[max(middle - low, 0)], [high - middle]]
            colour, marker = plots.PALETTE[row], plots.MARKERS[row]
            below.errorbar([middle], [row], xerr=ends, color=colour, marker=marker, linestyle="", capsize=5)
        below.set_xscale("log")
        below.set(xlim=(least, 1.3), ylim=(1.6, -1.1))
        below.set_yticks([0, 1], labels=SIDES)
        below.grid(visible=False, axis="y")
        below.set_title(shortened(self.event, 44).replace("$", r"\$"))
        below.set_xlabel("probability of the event on either data set")
        below.legend(loc="upper left")
        return made


@seal("thm-audit-bound", "thm-audit-delta", "lem-event-rho", "cex-same-draws")
def empirical(
    sample: Callable,
    pairs: Any,
    claim: float | None = None,
    *,
    n: int = 100_000,
    confidence: float = 0.95,
    random_state=None,
    relation: str | None = None,
    method: str = "fixed",
    law: Callable | None = None,
    features: Callable | None = None,
    events: Iterable[str] = KINDS,
    delta: float = 0.0,
    rho: float | None = None,
    grain: bool | float | None = None,
    progress: bool = False,
) -> EmpiricalAudit:
    """A lower bound on the loss of a mechanism, from samples of its outputs on neighbouring data sets.

    Parameters
    ----------
    sample : callable
        ``sample(dataset, size, rng)`` returns ``size`` independent outputs: an array (size,) or (size, d), or a list
        of hashable objects such as labels, strings, bytes or tuples.  All its randomness comes from ``rng``, a
        ``numpy.random.Generator``.
    pairs : list of (dataset, dataset) or of (name, dataset, dataset)
        Pairs of neighbours; data sets are whatever ``sample`` takes.  A single pair may be given without a list.
    claim : float, optional
        The epsilon that the mechanism promises, zero or more.  Leave it out if it promises a ``rho``.
    n : int
        Draws per side in the test.  As many go into choosing pair, direction and event, over all pairs together, with
        a few dozen more to see that ``rng`` is used; of more than four pairs every round drops three quarters.
    confidence : float
        In (0, 1).
    random_state : None, int or Generator
        The same seed gives the same answer, if ``sample`` does.
    relation : {None, "add-remove", "replace-one"}
        None takes the caller's word that the pairs are neighbours, and the answer says so.  Otherwise data sets are
        sequences of records (lists of tuples, rows of an array or of a DataFrame), and each pair is checked as
        multisets.
    method : {"fixed", "sharp", "betting"}
        "fixed": Clopper-Pearson on ``n`` draws, half of the error for either side.  "sharp": the joint bound, larger
        by some 0.007 where "fixed" gives 0.981; a mechanism whose loss is exactly its claim is then refuted with
        nearly the full error, 5 in 100 at the usual confidence, rather than with a tenth of it.  "betting": an
        anytime-valid test that stops as soon as the claim is refuted, and after ``n`` draws at the latest.
    law : callable, optional
        ``law(dataset)`` gives the exact law, a dict from outputs to probabilities; then the best likelihood-ratio set
        is among the events.
    features : callable, optional
        ``features(outputs)`` gives an array (size,) or (size, k) of further numbers to look at, such as statistics of
        a tree: of each output by itself, or it is refused.
    events : collection of str
        The kinds of events that are looked at, of "atoms", "thresholds", "sets" and "classifier".
    delta : float
        The delta that the mechanism promises, in [0, 1): the bound is on the epsilon that it has with this delta.  An
        event that is no more likely than delta says nothing, so that many draws are needed to see a small one: about
        ``10 / delta`` where an exception is all that gives a mechanism away.  Not with "betting".
    rho : float, optional
        The rho that the mechanism promises in the place of an epsilon, zero or more: that it is
        rho-zero-concentrated.  Events are then chosen by the rho that they promise to show, and ``violated`` says
        whether ``rho_lower`` exceeds it.  With "fixed" alone.
    grain : {None, True, False} or float
        What to do with the lowest bits of doubles, which give away the noise that is added to them.  None looks at
        them, and if they tell the data sets apart by themselves, audits the mechanism once more without them, which
        takes as long again: the answer has both figures.  True looks at them and leaves it at that.  A number is the
        size of a grid: outputs are rounded to its multiples before anything is looked at, as if the mechanism ended
        with it.  False chooses such a grid by the spread of a few hundred draws.
    progress : bool
        Show a progress bar.

    Returns
    -------
    EmpiricalAudit

    Raises
    ------
    TypeError, ValueError
        For parameters without a meaning; for a sampler that returns another number of outputs than asked for, or
        outputs of differing shape, that takes no randomness from ``rng``, or that is deterministic; for a
        pair that is not one of neighbours under ``relation``.
    RuntimeError
        If the sampler fails, or leaves the program; the message says whether it fails on one side alone.

    Guarantee
    ---------
    The probability that ``epsilon_lower`` exceeds the loss, or that a claim that holds is called violated, is at most
    ``1 - confidence``: :prf:ref:`thm-audit-bound`, with a delta :prf:ref:`thm-audit-delta`, and for "betting"
    :prf:ref:`thm-betting`.  The same holds of ``rho_lower`` and a claimed rho (:prf:ref:`lem-event-rho`); that many
    orders are tried costs nothing, for the bounds of all of them hold wherever the two ends do.  All this rests on the
    fresh draws: without them it fails, see :prf:ref:`cex-same-draws`.
    A bound on a grid is one of the mechanism itself, too, since rounding is post-processing.

    Notes
    -----
    No auditor of outputs can see everything.  Out of its reach are: a sampler that behaves while it is watched, by
    the number of its calls or by ``size``; what a process shows other than its outputs, such as the time that it
    takes, its files and its prints; events too rare for ``n``; neighbours that are not among ``pairs``; and what NumPy
    itself drops before the outputs are handed over, such as NULs at the end of texts in an array.  Not refuted does not
    mean private.
    """
    (claim, delta, rho), confidence = check_promise(claim, delta, rho), check_confidence(confidence)
    n = check_count(n, "n", FEWEST)
    check_choice(method, "method", METHODS)
    if rho is not None and method != "fixed":
        raise ValueError(f"method={shown(method)} bounds an epsilon: with a rho use 'fixed'")
    if delta and method == "betting":
        raise ValueError("method='betting' bets against a loss without exception: with a delta use 'fixed' or 'sharp'")
    kinds, grain = _check_kinds(events), check_grain(grain)
    named = check_pairs(pairs, relation)
    rounds = _rounds(len(named), n)
    rng = np.random.default_rng(random_state)
    asked = _Request(claim, n, confidence, kinds, method, delta, rho, law, features, relation)
    try:
        found, grid = _run_audit(sample, named, rounds, asked, grain, rng, progress)
        if grid is not None:  # the lowest bits tell the data sets apart: once more, without them
            seed = np.random.default_rng(int(rng.integers(2**32)))
            with suppress(ValueError, RuntimeError, SystemExit):  # such as nothing that varies: the first figure stays
                found = replace(found, on_grid=_run_audit(sample, named, rounds, asked, grid, seed, progress)[0])
    except SystemExit as left:
        raise RuntimeError(f"sample, law or features left the program: SystemExit({shown(left.code)})") from left
    return found


@dataclass(frozen=True)
class _Request:
    """What is asked of an audit, checked."""

    claim: float
    n: int
    confidence: float
    kinds: tuple[str, ...]
    method: str
    delta: float
    rho: float | None
    law: Callable | None
    features: Callable | None
    relation: str | None

    @property
    def bounded(self) -> tuple[float, bool]:
        """What the test bounds, which is the epsilon that there is with a delta, or the rho."""
        return self.delta, self.rho is not None


def _run_audit(
    sample: Callable, pairs: list[NamedPair], rounds, asked: _Request, grain: bool | float | None, rng, progress: bool
) -> tuple[EmpiricalAudit, float | None]:
    """The audit, and the grid on which it is to be repeated, or None."""
    n, betting = asked.n, asked.method == "betting"
    with tqdm(total=2 * (sum(k * size for k, size in rounds) + n), disable=not progress, unit="draw") as bar:
        if grain is False:
            grain = suited_grid(Sampler(sample, rng, bar)(pairs[0], _SPREAD))
        grid = grain if isinstance(grain, float) else None
        law = asked.law
        if grid is not None:
            sample, law = sampler_on(sample, grid), law and law_on(law, grid)
        laws = (
            [(check_law(law(pair.one), pair, 0), check_law(law(pair.other), pair, 1)) for pair in pairs] if law else []
        )
        draw = Sampler(sample, rng, bar)
        draw.check_randomness(pairs)
        pair, both, chosen, tried = _select(draw, pairs, rounds, asked, laws, grid is None)
        bits = _lowest_bits(both, asked) if grid is None and grain is None else None
        draw.reader.learning = False
        tested = [chosen] if bits is None else [chosen, bits]
        done, counts, running = _test(draw, pair, tested, asked, betting)

    def outcome(at: int) -> EmpiricalAudit:
        event, hits = tested[at], counts[at]
        if betting:
            bound, violated, p = running[at].epsilon_lower, running[at].rejected, running[at].p_value
        else:
            bound, violated, p = _test_of_counts(asked, event, hits)
        return EmpiricalAudit(
            epsilon_lower=bound,
            confidence=asked.confidence,
            claim=asked.claim,
            violated=violated,
            p_value=p,
            event=event.event.description,
            pair=pair.name if pair.given else (pair.one, pair.other),
            direction=SIDES[not event.first],
            n=done,
            hits=hits,
            tried=tried,
            method=asked.method,
            delta=asked.delta,
            rho=asked.rho,
            grid=grid,
            relation=asked.relation,
        )

    found = outcome(0)
    if bits is None or not (found.violated or chosen.event.bits) or not (alone := outcome(1)).epsilon_lower:
        return found, None
    return replace(found, lowest_bits=alone), suited_grid(both)


def _test_of_counts(asked: _Request, event: Proposal, hits: tuple[int, int]) -> tuple[float, bool, float]:
    """Lower bound of epsilon, whether the claim is refuted, and the p-value, of an event with so many hits."""
    n = asked.n
    likely, other = hits if event.first else hits[::-1]
    weight = None
    if asked.method == "sharp":
        p_seen, q_seen = ((hit + 0.5) / (event.draws + 1) for hit in event.hits)
        weight = best_weight(p_seen, q_seen, n, n, asked.confidence, asked.delta)
    bound = epsilon_lower(likely, n, other, n, asked.confidence, weight, asked.delta)
    if asked.rho is None:
        return bound, bound > asked.claim, p_value(likely, n, other, n, asked.claim, weight, asked.delta)
    violated = rho_lower(likely, n, other, n, asked.confidence) > asked.rho
    return bound, violated, rho_p_value(likely, n, other, n, asked.rho)


def _lowest_bits(both: tuple[Batch, Batch], asked: _Request) -> Proposal | None:
    """The event of the lowest bits alone that promises most; None if there are none, or it promises nothing."""
    if not {"thresholds", "classifier"} & set(asked.kinds):
        return None
    features = [feature for feature in features_of(both) if feature.bits]
    if not features or stands_on(both, suited_grid(both)):
        return None  # such as whole numbers, whose factors of two are no rounding
    fit, cut, pick = thirds(both)
    proposals, _ = propose(fit, cut, features, ("thresholds",), asked.n, asked.confidence, 0, *asked.bounded)
    best = choose(proposals or [ANYTHING], cut, pick, asked.n, asked.confidence, *asked.bounded)
    return best if best.promise > 0 else None


def _check_kinds(events) -> tuple[str, ...]:
    kinds = (events,) if isinstance(events, str) else tuple(events)
    if not kinds or set(kinds) - set(KINDS):
        raise ValueError(f"events must be some of {KINDS}; got {shown(events)}")
    return kinds


def _rounds(pairs: int, n: int) -> list[tuple[int, int]]:
    """How many pairs take part in each round of the selection, and with how many more draws per side.

    The rounds before the last share one half of the draws equally, the last has the other half.
    """
    numbers = [pairs]
    while numbers[-1] > _SURVIVE:
        numbers.append(math.ceil(numbers[-1] / _SURVIVE))
    before = len(numbers) - 1
    least = FEWEST * pairs * (2 * before if before else 1)
    if n < least:
        raise ValueError(
            f"n = {n} is too small to choose among {pairs} pairs: raise it to at least {least}, or give fewer pairs"
        )
    if before == 0:
        return [(pairs, n // pairs)]
    return [(number, n // (2 * before * number)) for number in numbers[:-1]] + [(numbers[-1], n // (2 * numbers[-1]))]


def _select(
    draw: Sampler, pairs: list[NamedPair], rounds, asked: _Request, laws: list[tuple[Mapping, Mapping]], bits: bool
) -> tuple[NamedPair, tuple[Batch, Batch], Proposal, int]:
    """The pair and the event that promise most, the pair's draws, and how many events were looked at."""
    n, confidence = asked.n, asked.confidence
    active, tried = list(range(len(pairs))), 0
    drawn: list[list[tuple[Batch, Batch]]] = [[] for _ in pairs]
    for _, size in rounds:
        best: dict[int, Proposal] = {}
        for i in active:
            drawn[i].append(draw(pairs[i], size))
            fit, cut, pick = thirds(_joined(drawn[i]))
            seed = int(draw.rng.integers(2**32))
            features = features_of(fit, asked.features, bits)
            proposals, looked = propose(fit, cut, features, asked.kinds, n, confidence, seed, *asked.bounded)
            if laws:
                more, others = likelihood_ratio(*laws[i], n, confidence, *asked.bounded)
                proposals, looked = proposals + more, looked + others
            tried += looked
            best[i] = choose(proposals or [ANYTHING], cut, pick, n, confidence, *asked.bounded)
        if all(proposal.event is ANYTHING.event for proposal in best.values()):
            raise ValueError(
                f"outputs like these form no events of the kinds {listed(asked.kinds)}: allow more of {KINDS}"
            )
        active = sorted(active, key=lambda i: -best[i].promise)[: math.ceil(len(active) / _SURVIVE)]
    check_random(pairs, drawn)
    return pairs[active[0]], _joined(drawn[active[0]]), best[active[0]], tried


def _joined(drawn: list[tuple[Batch, Batch]]) -> tuple[Batch, Batch]:
    one, other = (join(parts) for parts in zip(*drawn, strict=True))
    return one, other


def _test(draw: Sampler, pair: NamedPair, tested: list[Proposal], asked: _Request, betting: bool):
    """Fresh draws: how many per side, how often each event happened on either, and its running test if there is one.

    The first event says when to stop betting.
    """
    running = []
    for event in tested if betting else ():
        prior = (event.hits[0], event.draws, event.hits[1], event.draws)
        running.append(Betting(asked.claim, asked.confidence, prior=prior))
    counts, done, n = np.zeros((len(tested), 2), dtype=int), 0, asked.n
    while done < n and not (running and running[0].rejected):
        size = min(n - done, max(100, n // 100) if betting else _CHUNK)
        batches = draw(pair, size)
        for at, event in enumerate(tested):
            hits = [event.event(batch) for batch in batches]
            counts[at] += [np.count_nonzero(side) for side in hits]
            if running:
                running[at].update(*(hits if event.first else hits[::-1]))
        done += size
    return done, [(int(one), int(other)) for one, other in counts], running
