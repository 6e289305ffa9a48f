"""Likelihood ratios on two neighbouring data sets, as estimates: of many events at once, each with its interval.

:func:`~dpforest.audit.sampling.empirical.empirical` proves the largest bound that it can, by one event.  Here several
events are shown side by side: how often each is seen on either data set, the quotient of the two, and an interval for
the ratio of the probabilities.  All intervals hold together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from dpforest.arithmetic import log
from dpforest.audit.sampling.bounds import check_claim, check_confidence, clopper_pearson
from dpforest.audit.sampling.draws import NamedPair, Sampler, check_law, check_pairs, check_random
from dpforest.audit.sampling.events import Event, listed_outputs, top_events
from dpforest.audit.sampling.features import features_of
from dpforest.audit.sampling.outputs import Batch, shortened
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import claim as seal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LikelihoodRatios", "count_events", "likelihood_ratios", "one_pair", "plot_ratios"]

FEWEST = 20  # draws per side, at least
_CHUNK = 100_000  # outputs held at once while counting
_EXCLUDED = 0.01  # share of the draws that a law may call impossible: it may have been cut off far out
_WORDS = 34  # characters of an event next to a plot

#: A ratio that is a table's column: one for each event.
Column = np.ndarray


@dataclass(frozen=True, kw_only=True)
class LikelihoodRatios:
    """Estimates of likelihood ratios on a pair of neighbours.

    Attributes
    ----------
    events : tuple of str
        What was counted: outputs, or events in words; none that was found and then never seen.
    hits : tuple of (int, int)
        How often each happened, on the first and on the second data set.
    n : int
        Draws on either data set.
    claim : float
        The epsilon that the mechanism promises: every ratio lies between its ``exp(-claim)`` and ``exp(claim)``.
    confidence : float
        That all intervals hold together.
    tested : int
        Events that were counted, those that never happened among them; the intervals allow for all of them.
    pair : str or tuple of two data sets
    chances : tuple of (float, float) or None
        The exact probabilities of the events on either data set, where the law was given.
    """

    events: tuple[str, ...]
    hits: tuple[tuple[int, int], ...]
    n: int
    claim: float
    confidence: float
    tested: int
    pair: Any
    chances: tuple[tuple[float, float], ...] | None = None

    @property
    def shares(self) -> np.ndarray:
        """How often each event was seen on either data set, as shares of the draws; shape (events, 2)."""
        return np.array(self.hits, dtype=float).reshape(-1, 2) / self.n

    @property
    def ratios(self) -> Column:
        """The quotients of the shares, 0 or infinite if an event was seen on one side alone, NaN if on neither."""
        return _quotient(*self.shares.T)

    @property
    def exact(self) -> Column | None:
        """The quotients of the exact probabilities, or None."""
        return None if self.chances is None else _quotient(*np.array(self.chances).reshape(-1, 2).T)

    @property
    def intervals(self) -> np.ndarray:
        """Both ends for each ratio of probabilities, shape (events, 2).

        Each is made of the ends of two exact intervals, of Clopper and Pearson, at such levels that all of them hold
        together with the confidence.
        """
        miss = (1 - self.confidence) / (4 * self.tested)
        (low, high), (other_low, other_high) = (
            clopper_pearson(np.array(side, dtype=int), self.n, 1 - miss) for side in zip(*self.hits, strict=True)
        )
        return np.stack([_quotient(low, other_high), _quotient(high, other_low)], axis=1)

    @property
    def bounds(self) -> Column:
        """What each interval says the loss is at least; below 0 where it says nothing."""
        low, high = (log(end) for end in self.intervals.T)
        return np.maximum(low, -high)

    @property
    def refuting(self) -> tuple[str, ...]:
        """The events whose whole interval lies outside of what the claim allows."""
        outside = (self.bounds > self.claim).tolist()
        return tuple(event for event, out in zip(self.events, outside, strict=True) if out)

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted, at the confidence."""
        return self.epsilon_lower > self.claim

    @property
    def epsilon_lower(self) -> float:
        """The loss is at least this, at the confidence."""
        return max(0.0, float(self.bounds.max()))

    @property
    def covered(self) -> int | None:
        """How many intervals hold the exact ratio, or None where the law was not given."""
        if self.exact is None:
            return None
        low, high = self.intervals.T
        known = ~np.isnan(self.exact)
        return int(np.sum((low <= self.exact) & (self.exact <= high) | ~known))

    @property
    def table(self) -> pd.DataFrame:
        """One row for each event, with shares, ratio, interval, what the claim allows, and the exact ratio if known."""
        low, high = self.intervals.T
        columns: dict[str, Any] = {
            "event": self.events,
            "share on D": self.shares[:, 0],
            "share on D′": self.shares[:, 1],
            "ratio": self.ratios,
            "at least": low,
            "at most": high,
            "exp(claim)": math.exp(self.claim),
        }
        return pd.DataFrame(columns if self.exact is None else columns | {"exact": self.exact})

    @property
    def rows(self) -> list[dict[str, str]]:
        """The table for a page, with numbers as they are read, and the interval in one column."""
        found = []
        for row in self.table.to_dict("records"):
            words = {
                "output or event": row["event"],
                "on D": f"{row['share on D']:.4f}",
                "on D′": f"{row['share on D′']:.4f}",
                "ratio": _spelled(row["ratio"]),
                "interval": f"{_spelled(row['at least'])} to {_spelled(row['at most'])}",
                "allowed": f"{_spelled(math.exp(-self.claim))} to {_spelled(row['exp(claim)'])}",
            }
            found.append(words if self.exact is None else words | {"exact": _spelled(row["exact"])})
        return found

    def __str__(self) -> str:
        verdict = f"VIOLATED, by {shortened(self.refuting[0])}" if self.violated else "not refuted"
        name = shortened(self.pair if isinstance(self.pair, str) else repr(self.pair))
        return (
            f"{self.table.to_string(index=False, float_format='{:.4g}'.format)}\n"
            f"claim {self.claim:.6g}: {verdict}; with {100 * self.confidence:.6g} % confidence all ratios lie in their "
            f"intervals, and eps >= {self.epsilon_lower:.4g}, on pair {name}, n = {self.n} per side"
        )

    @property
    def alt(self) -> str:
        """What :meth:`plot` shows, in words."""
        known = self.ratios[~np.isnan(self.ratios)]
        span = f", from {_spelled(known.min())} to {_spelled(known.max())}" if known.size else ""
        allowed = f"{_spelled(math.exp(-self.claim))} to {_spelled(math.exp(self.claim))}"
        exact = "" if self.covered is None else f" The exact ratio lies in {self.covered} of the intervals."
        return (
            f"{len(self.events)} likelihood ratios on a logarithmic axis{span}, each with its interval; the claim "
            f"allows {allowed}, and {len(self.refuting)} of the intervals lie wholly outside.{exact}"
        )

    def plot(self) -> Figure:
        """The ratios with their intervals on a logarithmic axis, what the claim allows, and the exact ratios."""
        return plot_ratios({"": self})


@seal("lem-ratio-intervals")
def likelihood_ratios(
    sample: Callable,
    pair: Any,
    claim: float,
    *,
    n: int = 20_000,
    confidence: float = 0.95,
    random_state=None,
    relation: str | None = None,
    law: Callable | None = None,
    features: Callable | None = None,
    events: Mapping[str, Callable] | None = None,
    most: int = 10,
    progress: bool = False,
) -> LikelihoodRatios:
    """Estimates of the likelihood ratios of a mechanism's outputs on two neighbouring data sets.

    Parameters
    ----------
    sample : callable
        ``sample(dataset, size, rng)`` returns ``size`` independent outputs, as for
        :func:`~dpforest.audit.sampling.empirical.empirical`.
    pair : (dataset, dataset) or (name, dataset, dataset)
        Two neighbours, D and D'.
    claim : float
        The epsilon that the mechanism promises, zero or more.
    n : int
        Draws on either data set that are counted.  Half as many go into finding what to count, or a few if ``events``
        says it.
    confidence : float
        In (0, 1): that all intervals hold together.
    random_state : None, int or Generator
        The same seed gives the same answer, if ``sample`` does.
    relation : {None, "add-remove", "replace-one"}
        None takes the caller's word that the pair is one of neighbours, else it is checked, as by ``empirical``.
    law : callable, optional
        ``law(dataset)`` gives the exact law, a dict from outputs to probabilities, such as replay finds
        (:func:`~dpforest.audit.exact.laws.law_of`).  The exact ratio of each event is then given with the estimate.
    features : callable, optional
        ``features(outputs)``: further numbers to look at where events have to be found, as for ``empirical``.
    events : mapping from str to callable, optional
        What to count: ``event(outputs)`` says for each output whether it happened, an array (size,) of bool.  None
        finds it: single outputs, the rest as one event, where a few outputs make up at least half of the draws; else
        the events that promise most of those that ``empirical`` looks at.
    most : int
        Of outputs or events that are found, so many at most; the rest of the outputs counts as one more.
    progress : bool
        Show a progress bar.

    Returns
    -------
    LikelihoodRatios
        With ``.table`` (a DataFrame), ``.plot()``, ``.violated``, ``.epsilon_lower``.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        For parameters without a meaning, and for samplers and pairs that ``empirical`` refuses, but for one whose
        outputs are certain although it draws from ``rng``; for an event that does not say yes or no to each output; for
        a law that calls more than one draw in a hundred impossible.

    Guarantee
    ---------
    With probability at least ``confidence`` every ratio of probabilities lies in its interval, and a claim that holds
    is not called violated: :prf:ref:`lem-ratio-intervals`.  What is counted is fixed before the draws that are counted.

    Notes
    -----
    The ratio itself is an estimate, and where the event is rare on D' it is too large on average.  An event that was
    seen on one data set alone has the ratio 0 or infinity, and an interval that says how much of that may be due to few
    draws.

    Ratios that stay within what the claim allows prove nothing: other outputs, or another pair, may show more.  For the
    one bound that says most use ``empirical``, which also searches among pairs; for a mechanism with a delta too, for a
    single ratio may then be any number.  Doubles show in their lowest bits what noise was added to: round the outputs
    in ``sample`` if that is not what you ask.

    Examples
    --------
    >>> import numpy as np
    >>> from dpforest.audit import likelihood_ratios
    >>> def noisy(records, size, rng):  # geometric noise of ratio 0.4 from one number to the next
    ...     return sum(records) + rng.geometric(0.6, size) - rng.geometric(0.6, size)
    >>> found = likelihood_ratios(noisy, ((), (1,)), claim=0.5, relation="add-remove", random_state=0)
    >>> found.violated
    True
    >>> found.table.columns.tolist()
    ['event', 'share on D', 'share on D′', 'ratio', 'at least', 'at most', 'exp(claim)']
    """
    claim, confidence = check_claim(claim), check_confidence(confidence)
    n, most = check_count(n, "n", FEWEST), check_count(most, "most")
    named = one_pair(pair, relation, "likelihood_ratios")
    rng = np.random.default_rng(random_state)
    try:
        laws = law and (check_law(law(named.one), named, 0), check_law(law(named.other), named, 1))
        first = FEWEST if events is not None else max(FEWEST, n // 2)
        with tqdm(total=2 * (first + n), disable=not progress, unit="draw") as bar:
            draw = Sampler(sample, rng, bar)
            draw.check_randomness([named])
            both = draw(named, first)
            if draw.untouched():  # what takes from rng may be certain, such as one thing that is seen of a fit
                check_random([named], [[both]])
            seed = int(rng.integers(2**32))
            chosen = _declared(events) if events is not None else _found(both, most, n, confidence, features, seed)
            draw.reader.learning = False
            chances = laws and _exact(chosen, laws, both, named, draw)
            hits = count_events(draw, named, chosen, n)
    except SystemExit as left:
        raise RuntimeError(f"sample, law or events left the program: SystemExit({shown(left.code)})") from left
    seen = np.flatnonzero(hits.any(axis=1) | (events is not None)).tolist()
    return LikelihoodRatios(
        events=tuple(chosen[at].description for at in seen),
        hits=tuple((int(hits[at, 0]), int(hits[at, 1])) for at in seen),
        n=n,
        claim=claim,
        confidence=confidence,
        tested=len(chosen),
        pair=named.name if named.given else (named.one, named.other),
        chances=tuple(chances[at] for at in seen) if chances else None,
    )


def plot_ratios(found: Mapping[str, LikelihoodRatios]) -> Figure:
    """Several results, one panel each: ratios with intervals, what the claim allows, and exact ratios as crosses.

    Parameters
    ----------
    found : mapping from str to LikelihoodRatios
        By the titles of the panels, which stand one below the other on one scale.
    """
    from dpforest.study import plots

    if not found:
        raise ValueError("there is nothing to plot: give at least one result of likelihood_ratios")
    reach = max(map(_reach, found.values()))
    rows = max(len(one.events) for one in found.values())
    made, panels = plots.figure(len(found), 1.0 + 0.24 * rows, sharex=True)
    panels = np.atleast_1d(panels)
    for axes, (title, one) in zip(panels, found.items(), strict=True):
        _panel(axes, one, reach)
        axes.set_title(title.replace("$", r"\$"))
    panels[-1].set_xlabel("likelihood ratio, D over D′")
    return made


# -- what is counted -------------------------------------------------------------------------------------------------


def one_pair(pair: Any, relation: str | None, asker: str) -> NamedPair:
    """The one pair of neighbours that a function asks for, checked."""
    named = check_pairs(pair, relation)
    if len(named) != 1:
        raise ValueError(f"{asker} looks at one pair of neighbours, and got {len(named)}: call it for each")
    return named[0]


def _declared(events: Any) -> list[Event]:
    """The caller's events; each is asked about the outputs as the sampler returned them."""
    if not isinstance(events, Mapping):
        raise TypeError(f"events must be a dict from names to functions of the outputs, not {type(events).__name__}")
    if not events:
        raise ValueError("events is empty: name at least one, or leave it out to have some found")
    for name, event in events.items():
        if not isinstance(name, str) or not callable(event):
            raise TypeError(
                f"events must be a dict from names to functions of the outputs; {shown(name)} is a "
                f"{type(name).__name__} with a {type(event).__name__}"
            )
    return [Event(name, partial(_happens, name=name, event=event), 0.5, True) for name, event in events.items()]


def _happens(batch: Batch, name: str, event: Callable) -> np.ndarray:
    said = np.asarray(event(batch.raw))
    if said.shape != (batch.size,) or said.dtype != bool:
        raise ValueError(
            f"event {shown(name)} must return one bool for each of {batch.size} outputs, an array of shape "
            f"({batch.size},); it returned an array of {said.dtype} of shape {said.shape}"
        )
    return said.astype(float)


def _found(both: tuple[Batch, Batch], most: int, n: int, confidence: float, features, seed: int) -> list[Event]:
    """Single outputs if a few of them are most of the draws, else the events that promise most."""
    if features is None and (outputs := listed_outputs(both, most, n, confidence)):
        return outputs
    if found := top_events(both, features_of(both, features), most, n, confidence, seed):
        return found
    raise ValueError("no event was found that happens in some of the draws: name some, events={name: function}")


def count_events(draw: Sampler, pair: NamedPair, chosen: list[Event], n: int) -> np.ndarray:
    """How often each event happened on either data set, in fresh draws; shape (events, 2)."""
    hits = np.zeros((len(chosen), 2), dtype=np.int64)
    for start in range(0, n, _CHUNK):
        batches = draw(pair, min(_CHUNK, n - start))
        hits += [[np.count_nonzero(event(side)) for side in batches] for event in chosen]
    return hits


def _exact(
    chosen: list[Event], laws: tuple[Mapping, Mapping], both: tuple[Batch, Batch], pair: NamedPair, draw: Sampler
) -> list[tuple[float, float]]:
    """The probability of each event on either data set, by the laws."""
    columns = []
    for side, (known, drawn) in enumerate(zip(laws, both, strict=True)):
        outputs = _as_drawn(list(known), drawn)
        batch = draw.reader(outputs, len(known), f"the law of {pair.side(side)}")
        chance = np.array(list(known.values()), dtype=float)
        met, times = np.unique(drawn.whole, return_counts=True)
        alien = times[~np.isin(met, batch.whole[chance > 0])].sum()
        if alien > _EXCLUDED * drawn.size:
            at = int(np.flatnonzero(~np.isin(drawn.whole, batch.whole[chance > 0]))[0])
            raise ValueError(
                f"{alien} of {drawn.size} draws on {pair.side(side)} are outputs that its law has not, such as "
                f"{shortened(repr(drawn.item(at)), 60)}: law and sample must speak of the same outputs, of the same "
                "types"
            )
        columns.append([math.fsum(chance[event(batch)].tolist()) for event in chosen])
    return list(zip(*columns, strict=True))


def _as_drawn(outputs: list, drawn: Batch) -> Any:
    """The outputs of a law in the form of the draws: an array of their type, or a list."""
    return np.array(outputs, dtype=drawn.raw.dtype) if isinstance(drawn.raw, np.ndarray) else outputs


# -- what is shown -----------------------------------------------------------------------------------------------------


def _quotient(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(one) / np.asarray(other)


def _spelled(ratio: float) -> str:
    if math.isnan(ratio):
        return "?"
    return "∞" if math.isinf(ratio) else f"{ratio:.3g}"


def _reach(found: LikelihoodRatios) -> float:
    """How far from 1 an axis must go, as a factor: beyond claim, ratios, and the nearer end of each interval."""
    low, high = (log(end) for end in found.intervals.T)
    middle = log(found.ratios) if found.exact is None else log(np.concatenate([found.ratios, found.exact]))
    ways = np.abs(np.concatenate([[found.claim], middle[np.isfinite(middle)], low[low > 0], high[high < 0]]))
    return 3 * math.exp(min(float(ways[np.isfinite(ways)].max()), 14.0))


def _panel(axes: Axes, found: LikelihoodRatios, reach: float) -> None:
    """One result; what lies beyond the axis is drawn as an arrow at its end."""
    from dpforest.study import plots

    edge = reach / 1.3
    limits = math.exp(-found.claim), math.exp(found.claim)
    axes.axvspan(*limits, color="#e6e6e6", zorder=0)
    for limit in limits:
        axes.axvline(limit, color="black", linestyle="--", linewidth=1.2, marker="")
    every = zip(found.ratios.tolist(), found.intervals, found.bounds.tolist(), strict=True)
    for row, (ratio, ends, bound) in enumerate(every):
        out = bound > found.claim
        colour = plots.PALETTE[1 if out else 0]
        ends = np.clip(ends, 1 / edge, edge)
        axes.plot(ends, [row, row], color=colour, linestyle="-", marker="|", markersize=8)
        if not math.isnan(ratio):
            beyond = "<" if ratio < 1 / edge else ">" if ratio > edge else "s" if out else "o"
            axes.plot([min(max(ratio, 1 / edge), edge)], [row], color=colour, marker=beyond, linestyle="", markersize=5)
    if found.exact is not None:
        inside = np.clip(found.exact, 1 / edge, edge)
        axes.plot(
            inside,
            range(len(inside)),
            color="black",
            marker="x",
            linestyle="",
            markersize=7,
            markeredgewidth=1.2,
            zorder=5,
        )
    axes.set_xscale("log")
    axes.set(xlim=(1 / reach, reach), ylim=(len(found.events) - 0.4, -0.6))
    names = [shortened(event, _WORDS).replace("$", r"\$") for event in found.events]
    axes.set_yticks(range(len(names)), labels=names, fontsize=9)
    axes.grid(visible=False, axis="y")
