"""Trade-off curves: how well tests on draws tell two neighbouring data sets apart, compared with what a claim allows.

A test looks at an output and says which data set it came from.  Its type I error is to reject the first data set where
it was the first, its type II error not to reject it where it was the second.  The trade-off function of two laws gives
the least type II error for each type I error; f-differential privacy bounds it from below by a curve f.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from tqdm import tqdm

from dpforest.arithmetic import exp, log
from dpforest.audit.sampling.bounds import (
    check_confidence,
    check_promise,
    clopper_pearson,
    least_type_two,
    rho_of_events,
    wilson,
)
from dpforest.audit.sampling.draws import UNCHECKED, Sampler, check_random
from dpforest.audit.sampling.events import Event, half_lines, propose, thirds
from dpforest.audit.sampling.features import features_of, repeatable
from dpforest.audit.sampling.outputs import Batch, shortened
from dpforest.audit.sampling.ratios import count_events, one_pair
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import claim as seal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TradeOff", "trade_off"]

FEWEST = 20  # draws per side, at least
_SLOPES = 25  # of the curve, at which a test is looked for
_KINDS = ("thresholds", "sets", "classifier")
_CURVE = np.linspace(0, 1, 201)
_NEVER = Event("never", lambda batch: np.zeros(batch.size), 1.0, above=True)


@dataclass(frozen=True, kw_only=True)
class TradeOff:
    """What draws say of the trade-off function of a mechanism on a pair of neighbours.

    Attributes
    ----------
    tests : tuple of str
        The events that were counted: where one happens, its test rejects the first data set.
    hits : tuple of (int, int)
        How often each happened, on the first and on the second data set.
    n : int
        Draws on either data set.
    confidence : float
        That the whole band holds.
    claim : float
        The epsilon that the mechanism promises; infinite if it promises a rho.
    delta : float
        And the delta.
    rho : float or None
        The rho that it promises, of zero-concentrated privacy; None if it promises an epsilon.
    pair : str or tuple of two data sets
    relation : {"add-remove", "replace-one"} or None
        Under which the pair was checked to be one of neighbours; None if it was not.
    """

    tests: tuple[str, ...]
    hits: tuple[tuple[int, int], ...]
    n: int
    confidence: float
    claim: float
    delta: float
    rho: float | None
    pair: Any
    relation: str | None = None

    @property
    def errors(self) -> np.ndarray:
        """Estimates of both errors of each test, type I first; shape (tests, 2)."""
        return self._mistakes / self.n

    @property
    def upper(self) -> np.ndarray:
        """Upper bounds of both errors of each test, all of which hold together with the confidence."""
        each = 1 - (1 - self.confidence) / self._mistakes.size
        return clopper_pearson(self._mistakes, self.n, each)[1]

    @property
    def vertices(self) -> np.ndarray:
        """Corners of the lower convex hull of what is known, from type I error 0 to 1; shape (corners, 2)."""
        below = [(a, b) for a, b in self.upper.tolist() if a + b < 1]  # the rest is worse than guessing
        points = sorted([(0.0, 1.0), (1.0, 0.0), *below])
        hull: list[tuple[float, float]] = []
        for a, b in points:
            while len(hull) > 1 and _above(hull[-2], hull[-1], (a, b)):
                hull.pop()
            hull.append((a, b))
        return np.array(hull)

    def type_two(self, type_one) -> np.ndarray:
        """The band: the least type II error is at most this, at each type I error of an array."""
        return np.interp(type_one, *self.vertices.T)

    def allowed(self, type_one) -> np.ndarray:
        """The curve of the claim: the least type II error is at least this, at each type I error of an array."""
        return least_type_two(type_one, self.claim, self.delta, self.rho)

    @property
    def epsilon_lower(self) -> float:
        """The epsilon, with the delta, is at least this, with the confidence."""
        a, b = self.upper.T
        sides = (log(np.maximum(1 - one - self.delta, 0)) - log(other) for one, other in ((a, b), (b, a)))
        return max(0.0, *(float(side.max()) for side in sides))

    @property
    def rho_lower(self) -> float:
        """The rho of zero-concentrated privacy is at least this, with the confidence."""
        a, b = self.upper.T
        return float(max(rho_of_events(1 - b, a).max(), rho_of_events(1 - a, b).max()))

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted, because somewhere the band lies below its curve."""
        return self.epsilon_lower > self.claim if self.rho is None else self.rho_lower > self.rho

    @property
    def table(self) -> pd.DataFrame:
        """One row for each test, with estimates and upper bounds of its errors, and what the claim asks of type II."""
        estimates, upper = self.errors.T, self.upper.T
        columns: dict[str, Any] = {
            "rejects the first where": self.tests,
            "type I": estimates[0],
            "type II": estimates[1],
            "type I at most": upper[0],
            "type II at most": upper[1],
            "claim: at least": self.allowed(upper[0]),
        }
        return pd.DataFrame(columns).sort_values("type I at most", ignore_index=True)

    def __str__(self) -> str:
        name = shortened(self.pair if isinstance(self.pair, str) else repr(self.pair))
        return (
            f"{self.table.to_string(index=False, float_format='{:.4g}'.format)}\n"
            f"{self._promise}: {'VIOLATED' if self.violated else 'not refuted'}; with {100 * self.confidence:.6g} % "
            f"confidence, on pair {name}, n = {self.n} per side{UNCHECKED if self.relation is None else ''}"
        )

    @property
    def alt(self) -> str:
        """What :meth:`plot` shows, in words."""
        band, claimed = self.type_two([0.05, 0.5]), self.allowed([0.05, 0.5])
        below = "lies below the curve of the claim somewhere" if self.violated else "nowhere lies below that curve"
        return (
            f"Type II error over type I error. The curve of the claim, {self._promise}, falls from 1 to 0, by way of "
            f"{claimed[0]:.3g} at 0.05 and {claimed[1]:.3g} at 0.5; the upper band from draws has {band[0]:.3g} and "
            f"{band[1]:.3g} there, and {below}."
        )

    def plot(self) -> Figure:
        """The band with the curve of the claim; what the claim excludes is grey."""
        from dpforest.study import plots

        made, axes = plots.figure(1, 4.2)
        allowed = self.allowed(_CURVE)
        axes.fill_between(_CURVE, 0, allowed, color="#e6e6e6", linewidth=0)
        axes.plot(_CURVE, allowed, color="black", linestyle="--", marker="", label=f"claimed: {self._promise}")
        colour = plots.PALETTE[1 if self.violated else 0]
        said = f"at most, with {100 * self.confidence:g} % confidence"
        axes.plot(*self.vertices.T, color=colour, marker="s" if self.violated else "o", linestyle="-", label=said)
        axes.plot([0, 1], [1, 0], color="#808080", linestyle=":", marker="", label="guessing")
        axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="type I error", ylabel="type II error")
        axes.set_title(f"claim {'refuted' if self.violated else 'not refuted'}")
        axes.legend(loc="upper right")
        return made

    @property
    def _mistakes(self) -> np.ndarray:
        """How often each test erred, where it rejects the first and where it does not reject the second."""
        first, second = np.array(self.hits, dtype=int).reshape(-1, 2).T
        return np.stack([first, self.n - second], axis=1)

    @property
    def _promise(self) -> str:
        if self.rho is not None:
            return f"rho = {self.rho:.4g}"
        return f"eps = {self.claim:.4g}{f', delta = {self.delta:.4g}' if self.delta else ''}"


@seal("lem-trade-off-band")
def trade_off(
    sample: Callable,
    pair: Any,
    claim: float | None = None,
    *,
    delta: float = 0.0,
    rho: float | None = None,
    n: int = 20_000,
    confidence: float = 0.95,
    random_state=None,
    relation: str | None = None,
    features: Callable | None = None,
    progress: bool = False,
) -> TradeOff:
    """An upper band of the trade-off function of a mechanism on two neighbours, with the curve of its claim.

    Parameters
    ----------
    sample : callable
        ``sample(dataset, size, rng)`` returns ``size`` independent outputs, as for
        :func:`~dpforest.audit.sampling.empirical.empirical`.
    pair : (dataset, dataset) or (name, dataset, dataset)
        Two neighbours.
    claim, delta : float
        The epsilon that the mechanism promises, and its delta.
    rho : float, optional
        Or, in their place, its rho of zero-concentrated privacy.
    n : int
        Draws on either data set that are counted.  As many go into finding tests.
    confidence : float
        In (0, 1): that the whole band holds.
    random_state : None, int or Generator
        The same seed gives the same answer, if ``sample`` does.
    relation : {None, "add-remove", "replace-one"}
        None takes the caller's word that the pair is one of neighbours, else it is checked, as by ``empirical``.
    features : callable, optional
        ``features(outputs)``: further numbers to look at, as for ``empirical``.
    progress : bool
        Show a progress bar.

    Returns
    -------
    TradeOff
        With ``.type_two(errors)``, ``.allowed(errors)``, ``.table`` (a DataFrame), ``.plot()``, ``.violated``,
        ``.epsilon_lower``, ``.rho_lower``.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        For parameters without a meaning, and for samplers and pairs that ``empirical`` refuses.

    Guarantee
    ---------
    With probability at least ``confidence`` the least type II error of all tests is nowhere above the band, so that a
    claim that holds is not called violated: :prf:ref:`lem-trade-off-band`.  Which tests are counted is fixed before the
    draws that are counted.

    Notes
    -----
    Tests are thresholds of features, of how often an output was seen on either data set, and of classifiers; at each
    of some slopes the one is taken that promises least error.  A band shows more than one bound and proves less than
    :func:`~dpforest.audit.sampling.empirical.empirical`, for its confidence is shared by all tests.  The two data sets
    may change places: that turns the figure over at its diagonal, and the curves of claims are the same on either side.
    Doubles show in their lowest bits what noise was added to: round the outputs in ``sample`` if that is not what you
    ask.

    Examples
    --------
    >>> from dpforest.audit import trade_off
    >>> def noisy(records, size, rng):  # geometric noise of ratio 0.4 from one number to the next
    ...     return sum(records) + rng.geometric(0.6, size) - rng.geometric(0.6, size)
    >>> found = trade_off(noisy, ((), (1,)), claim=0.5, relation="add-remove", random_state=0)
    >>> found.violated
    True
    >>> bool(found.type_two(0.2) < found.allowed(0.2))
    True
    """
    (claim, delta, rho), confidence = check_promise(claim, delta, rho), check_confidence(confidence)
    n = check_count(n, "n", FEWEST)
    named = one_pair(pair, relation, "trade_off")
    rng = np.random.default_rng(random_state)
    try:
        with tqdm(total=4 * n, disable=not progress, unit="draw") as bar:
            draw = Sampler(sample, rng, bar)
            draw.check_randomness([named])
            both = draw(named, n)
            check_random([named], [[both]])
            chosen = _tests(both, features, n, confidence, claim, int(rng.integers(2**32)))
            draw.reader.learning = False
            hits = count_events(draw, named, chosen, n)
    except SystemExit as left:
        raise RuntimeError(f"sample or features left the program: SystemExit({shown(left.code)})") from left
    return TradeOff(
        tests=tuple(event.description for event in chosen),
        hits=tuple((int(one), int(other)) for one, other in hits),
        n=n,
        confidence=confidence,
        claim=claim,
        delta=delta,
        rho=rho,
        pair=named.name if named.given else (named.one, named.other),
        relation=relation,
    )


def _tests(
    both: tuple[Batch, Batch], features: Callable | None, n: int, confidence: float, claim: float, seed: int
) -> list[Event]:
    """The events whose tests promise the least sum of errors, one for each of some weights; none twice."""
    fit, cut, _ = thirds(both)
    proposals, _ = propose(fit, cut, features_of(fit, features), _KINDS, n, confidence, seed)
    fresh = tuple(side.part(side.size // 2, side.size) for side in both)
    evenly = np.linspace(-1, 1, _SLOPES)
    steep = log(n) / 2 * evenly * np.abs(evenly)  # logarithms, closer to each other where errors are alike
    if math.isfinite(claim):
        steep = np.append(steep, [-claim, claim])
    weights = 1 / (1 + exp(-steep))
    least, best = np.minimum(weights, 1 - weights), [_NEVER] * len(weights)  # as good as guessing
    m, z = fresh[0].size, float(-ndtri((1 - confidence) / (2 * len(weights))))
    for score in dict.fromkeys(proposal.event.score for proposal in proposals):
        name = getattr(score, "name", "log-ratio of counts")
        cuts, counted = half_lines(score, (fresh[0], fresh[1]))
        for above, first, second in counted if len(cuts) else ():
            errors = [_expected(mistakes, m, n, z) for mistakes in (first, m - second)]
            costs = weights[:, None] * errors[0] + (1 - weights[:, None]) * errors[1]
            at = costs.argmin(axis=1)
            for k in np.flatnonzero(costs.min(axis=1) < least).tolist():
                least[k], threshold = costs[k, at[k]], float(cuts[at[k]])
                words = f"{name} {'>=' if above else '<='} {repeatable(threshold)}"
                best[k] = Event(words, score, threshold, above)
    return list(dict.fromkeys(event for event in best if event is not _NEVER)) or [_NEVER]


def _expected(mistakes: np.ndarray, m: int, n: int, z: float) -> np.ndarray:
    """The upper bound of an error that is to be expected of ``n`` draws, if so many of ``m`` were mistakes."""
    return wilson(n * wilson(mistakes, m, 1.0)[1], n, z)[1]


def _above(one: tuple[float, float], middle: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether the point in the middle lies above the line through the others, or on it."""
    return (middle[1] - one[1]) * (other[0] - one[0]) >= (other[1] - one[1]) * (middle[0] - one[0])
