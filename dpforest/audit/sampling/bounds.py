"""What counts of one event on two data sets say about the loss: bounds for fixed numbers of draws, and a running test.

An event has probability p on one data set and q on a neighbour.  A mechanism of loss epsilon has
``p <= exp(epsilon) * q`` for every event, so that ``ln(p / q)`` is a lower bound on its loss, whatever the event; with
a delta, ``ln((p - delta) / q)`` is.
All the bounds here speak of *one* event that was fixed before the draws were made.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtr, ndtri

from dpforest.arithmetic import exp, log, log1p
from dpforest.messages import shown
from dpforest.privacy import claim as seal

__all__ = [
    "Betting",
    "best_weight",
    "check_claim",
    "check_confidence",
    "check_delta",
    "check_mu",
    "check_promise",
    "check_rho",
    "clopper_pearson",
    "epsilon_lower",
    "least_type_two",
    "lower_end",
    "p_value",
    "rho_lower",
    "rho_of_event",
    "rho_of_events",
    "rho_p_value",
    "upper_end",
    "wilson",
]

_BOX = 0.01  # share of the error that the joint bound spends on keeping both probabilities out of the absurd
_ORDERS = 1 + np.geomspace(1e-3, 1e3, 601)
_HALVINGS = 60  # of the interval in which an error is searched for
_STEPS = 1200  # of its search: the price of bounding each step from its corners is below 1 % of its width


def _is_number(value: object) -> bool:
    return isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)


def check_confidence(confidence) -> float:
    """A confidence as a float, strictly between 0 and 1."""
    if not _is_number(confidence):
        raise TypeError(f"confidence must be a number between 0 and 1, not {type(confidence).__name__}")
    if not 0 < confidence < 1:  # also refuses NaN
        raise ValueError(f"confidence must lie strictly between 0 and 1, such as 0.95; got {shown(confidence)}")
    return float(confidence)


def check_claim(claim) -> float:
    """A claimed loss as a float: finite, and zero or more."""
    if not _is_number(claim):
        raise TypeError(f"claim must be a number, the epsilon that the mechanism promises; got {type(claim).__name__}")
    if not 0 <= claim < math.inf:  # also refuses NaN
        raise ValueError(f"claim must be a finite epsilon, zero or more; got {shown(claim)}")
    return float(claim)


def check_rho(rho) -> float:
    """A claimed rho as a float: finite, and zero or more."""
    return _finite(rho, "rho", "zero-concentrated privacy")


def check_mu(mu) -> float:
    """A claimed mu as a float: finite, and zero or more."""
    return _finite(mu, "mu", "Gaussian differential privacy")


def _finite(value, name: str, of: str) -> float:
    if not _is_number(value):
        raise TypeError(f"{name} must be a number, of {of}; got {type(value).__name__}")
    if not 0 <= value < math.inf:  # also refuses NaN
        raise ValueError(f"{name} must be finite, zero or more; got {shown(value)}")
    return float(value)


def check_delta(delta) -> float:
    """A claimed delta as a float, in [0, 1)."""
    if not _is_number(delta):
        raise TypeError(f"delta must be a number, of what the mechanism promises; got {type(delta).__name__}")
    if not 0 <= delta < 1:  # also refuses NaN
        raise ValueError(f"delta must be at least 0 and below 1; got {shown(delta)}")
    return float(delta)


def check_promise(claim, delta, rho) -> tuple[float, float, float | None]:
    """What is claimed, an epsilon with a delta or a rho: epsilon, delta, rho.

    With a rho the epsilon is infinite and the delta 0; without one the rho is None.
    """
    delta = check_delta(delta)
    if rho is None:
        return check_claim(claim), delta, None
    if claim is not None:
        raise TypeError("give what the mechanism promises, claim or rho, and not both")
    if delta:
        raise ValueError(f"a rho has no delta; got rho = {shown(rho)} with delta = {shown(delta)}")
    return math.inf, 0.0, check_rho(rho)


def clopper_pearson(hits, n, confidence) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the exact interval of Clopper and Pearson for a probability.

    Parameters
    ----------
    hits, n : array-like of int
        How often the event was seen in how many independent draws; ``0 <= hits <= n`` and ``n >= 1``.
    confidence : float or array-like
        Of *each end alone*: two ends at 0.975 make an interval at 0.95.

    Returns
    -------
    low, high : ndarray
        ``low`` exceeds the probability, and ``high`` falls short of it, each with probability at most
        ``1 - confidence``.

    Source
    ------
    Clopper and Pearson (1934).
    """
    hits, n = _check_counts(hits, n)
    miss = 1 - np.asarray(confidence, dtype=float)
    if not ((miss > 0) & (miss < 1)).all():
        raise ValueError(f"confidence must lie strictly between 0 and 1, such as 0.95; got {shown(confidence)}")
    return lower_end(hits, n, miss), upper_end(hits, n, miss)


@seal("thm-audit-bound", "thm-audit-delta")
def epsilon_lower(hits, n, other_hits, other_n, confidence=0.95, weight=None, delta=0.0) -> float:
    """A lower bound on the loss from the counts of one event on two neighbouring data sets.

    Parameters
    ----------
    hits, n : int
        How often the event was seen, in how many draws, on the data set where it is held to be more likely.
    other_hits, other_n : int
        The same on the other data set.
    confidence : float
        In (0, 1).
    weight : float, optional
        None splits the error equally between the two ends.  A number in (0, 1) asks for the *joint* bound instead,
        which is sharper where both counts are uncertain: it lets the two deviations of a pair (p, q) count
        together, the first with this share of the squared weight.  Best is the share of the first count in the
        variance of the log-ratio, see ``best_weight``; it must not be computed from the counts tested here.
    delta : float
        In [0, 1); the bound is on the epsilon that the mechanism has with this delta.

    Returns
    -------
    float
        Zero or more, and finite.

    Guarantee
    ---------
    If event, direction and weight were fixed before the draws, the bound exceeds the loss with probability at most
    ``1 - confidence``, in any number of draws: :prf:ref:`thm-audit-bound`, and :prf:ref:`thm-audit-delta`.
    """
    return max(0.0, _log_ratio(hits, n, other_hits, other_n, 1 - check_confidence(confidence), weight, delta))


@seal("lem-event-rho")
def rho_of_event(p: float, q: float) -> float:
    """Lower bound on the rho of zero-concentrated privacy, from one event.

    Parameters
    ----------
    p, q : float
        Probability of the event on one data set, and on its neighbour; 0 to 1.

    Returns
    -------
    float
        0 where ``p <= q``, infinite where ``p > q = 0``; grows with ``p`` and falls with ``q``.

    Guarantee
    ---------
    A mechanism of this probability of an event on neighbours is concentrated at no smaller rho: what is read off an
    output differs no more than the output (:prf:ref:`lem-event-rho`; Bun and Steinke 2016, lemma 1.5).
    """
    return float(rho_of_events(p, q))


def rho_of_events(p, q, orders: np.ndarray = _ORDERS) -> np.ndarray:
    """:func:`rho_of_event` for arrays; fewer orders give less, and faster."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    one, other = p[..., None], q[..., None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # where p <= q it does not matter
        both = np.logaddexp(
            orders * np.log(one) - (orders - 1) * np.log(other),
            orders * np.log1p(-one) - (orders - 1) * np.log1p(-other),
        )
        return np.where(p > q, (both / ((orders - 1) * orders)).max(axis=-1), 0.0)


@seal("lem-event-rho")
def rho_lower(hits, n, other_hits, other_n, confidence=0.95) -> float:
    """A lower bound on the rho of zero-concentrated privacy, from the counts of one event on two neighbours.

    Parameters
    ----------
    hits, n, other_hits, other_n, confidence
        As for :func:`epsilon_lower`; the error is split equally between the two ends.

    Returns
    -------
    float
        Zero or more, and finite.

    Guarantee
    ---------
    If event and direction were fixed before the draws, the bound exceeds the rho with probability at most
    ``1 - confidence`` (:prf:ref:`lem-event-rho`).  There are no corrections for the many orders that are tried: draws
    decide only whether both ends hold, and where they do, the bound of every order holds, for each grows with p and
    falls with q.
    """
    error = 1 - check_confidence(confidence)
    low, high = _ends(*_check_counts(hits, n), *_check_counts(other_hits, other_n), error)
    return rho_of_event(float(low), float(high))


@seal("lem-event-rho")
def rho_p_value(hits, n, other_hits, other_n, rho) -> float:
    """Probability, at most, of counts that speak so strongly against a claimed rho, if the claim holds.

    It is the smallest error ``1 - confidence`` at which :func:`rho_lower` exceeds ``rho``; parameters as there.
    """
    rho = check_rho(rho)
    counts = *_check_counts(hits, n), *_check_counts(other_hits, other_n)
    return _least_error(lambda error: rho_of_event(*map(float, _ends(*counts, error))) > rho)


def least_type_two(type_one, claim: float = math.inf, delta: float = 0.0, rho: float | None = None) -> np.ndarray:
    """The trade-off function of a claim: the least type II error of any test of a data set against a neighbour.

    Parameters
    ----------
    type_one : array-like of float
        Type I errors, in [0, 1].
    claim, delta : float
        An epsilon, zero or more, and a delta.
    rho : float, optional
        Or the rho of zero-concentrated privacy, in their place.

    Notes
    -----
    An epsilon and a delta allow exactly what this curve allows.  Of a rho it is what :prf:ref:`lem-event-rho` says of
    an event and of its complement, which is more than any of the pairs of epsilon and delta that the rho assures.
    """
    a = np.asarray(type_one, dtype=float)
    if rho is None:
        with np.errstate(divide="ignore", invalid="ignore"):  # no finite epsilon: a test that never errs on one side
            steep = np.where(a > 0, 1 - delta - a / np.exp(-claim), 1 - delta)
        return np.maximum(np.maximum(steep, np.exp(-claim) * (1 - delta - a)), 0.0)
    low, high = np.zeros_like(a), 1 - a
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        refuted = np.maximum(rho_of_events(1 - middle, a), rho_of_events(1 - a, middle)) > rho
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


@seal("thm-audit-bound")
def p_value(hits, n, other_hits, other_n, claim, weight=None, delta=0.0) -> float:
    """Probability, at most, of counts that speak so strongly against a claimed loss, if the claim holds.

    It is the smallest error ``1 - confidence`` at which :func:`epsilon_lower` exceeds ``claim``, so that the same
    theorem makes it valid; parameters as there.
    """
    claim = check_claim(claim)
    _check_counts(hits, n), _check_counts(other_hits, other_n)

    return _least_error(lambda error: _log_ratio(hits, n, other_hits, other_n, error, weight, delta) > claim)


def _least_error(exceeds: Callable[[float], bool]) -> float:
    """The smallest error at which a bound exceeds a claim."""
    low, high = math.log(1e-300), math.log1p(-1e-9)
    if not exceeds(math.exp(high)):
        return 1.0
    while high - low > 1e-6:  # the bound grows with the error that is allowed
        middle = (low + high) / 2
        low, high = (low, middle) if exceeds(math.exp(middle)) else (middle, high)
    return math.exp(high)


def best_weight(p, q, n, other_n, confidence=0.95, delta=0.0) -> float | None:
    """The weight that makes the bound sharpest where the probabilities are about ``p`` and ``q``, both positive.

    For many hits it is the share of the first count in the variance of the logarithm of the ratio of the frequencies;
    few hits call for another, so it is searched for around that one.  None, the equal split, where that is better:
    where one of the counts is all but certain.
    """
    one, other = (1 - p) / (n * p), (1 - q) / (other_n * q)
    odds = (one + 1e-9) / (other + 1e-9) * np.geomspace(1 / 16, 16, 17)
    weights = [None, *np.clip(odds / (1 + odds), 1e-3, 1 - 1e-3).tolist()]
    expected = round(n * p), n, round(other_n * q), other_n
    return max(weights, key=lambda weight: _log_ratio(*expected, 1 - confidence, weight, delta))


def _log_ratio(hits, n, other_hits, other_n, error: float, weight, delta: float) -> float:
    """The bound before it is cut off at zero; minus infinity if the event was seen no more often than delta allows."""
    hits, n = _check_counts(hits, n)
    other_hits, other_n = _check_counts(other_hits, other_n)
    if weight is not None and not 0 < weight < 1:
        raise ValueError(f"weight must lie strictly between 0 and 1; got {shown(weight)}")
    if hits == 0:
        return -math.inf
    if weight is None:
        low, high = _ends(hits, n, other_hits, other_n, error)
    else:
        z, box = -ndtri(error * (1 - _BOX)), -ndtri(error * _BOX / 2)
        first, second = math.sqrt(weight), math.sqrt(1 - weight)
        # The pairs (p, q) that are not rejected lie beyond the curve first * s + second * t = z, where s and t are the
        # normal scores of either count, and both at most ``box``.  Between two steps p and q are bounded by corners.
        s = np.linspace((z - second * box) / first, box, _STEPS)
        t = np.minimum((z - first * s) / second, box)
        low, high = lower_end(hits, n, ndtr(-s[1:])), upper_end(other_hits, other_n, ndtr(-t[:-1]))
    if not np.min(low) > delta:
        return -math.inf
    # an upper end that underflows to 0 leaves its step out, rightly: it is far away
    return float(np.min(log(low - delta) - log(high)))


def _ends(hits, n, other_hits, other_n, error: float) -> tuple[np.ndarray, np.ndarray]:
    """The least that one probability is, and the most that the other is, half of the error for either."""
    return lower_end(hits, n, error / 2), upper_end(other_hits, other_n, error / 2)


def lower_end(hits, n, miss):
    """The lower end that misses with probability ``miss``; expected hits, not whole, are taken as they are."""
    return np.where(hits == 0, 0.0, betaincinv(np.where(hits == 0, 1, hits), n - hits + 1, miss))


def upper_end(hits, n, miss):
    """The upper end that misses with probability ``miss``; expected hits, not whole, are taken as they are."""
    return np.where(hits == n, 1.0, betainccinv(hits + 1, np.where(hits == n, 1, n - hits), miss))


def wilson(hits, n, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's approximate ends for a probability at ``z`` standard errors: fast enough for millions of thresholds.

    Expected hits, not whole, are taken as they are.
    """
    middle, spread = hits + z * z / 2, z * np.sqrt(hits * (1 - hits / n) + z * z / 4)
    return np.maximum(middle - spread, 0) / (n + z * z), (middle + spread) / (n + z * z)


def _check_counts(hits, n) -> tuple[np.ndarray, np.ndarray]:
    hits, n = np.asarray(hits), np.asarray(n)
    if hits.dtype.kind not in "iu" or n.dtype.kind not in "iu":
        raise TypeError("hits and n are counts: whole numbers")
    if not ((n >= 1) & (hits >= 0) & (hits <= n)).all():
        raise ValueError(
            f"hits must lie between 0 and n, and n be at least 1; got hits = {shown(hits)}, n = {shown(n)}"
        )
    return hits.astype(float), n.astype(float)


@seal("thm-betting")
class Betting:
    """A test of a claimed loss that may be looked at, and stopped, at any time.

    A gambler bets against the claim: of each pair of draws, one from either data set, every unit staked returns
    ``f(X) - exp(claim) * f(Y)`` more, where f says whether the event happened.  If the claim holds no bet is
    favourable, so that large wealth is evidence against it.  One such gambler bets against every value of a grid, which
    turns the test into a lower bound that holds at all times at once.

    The stake is Kelly's, for the frequencies seen so far; it is renewed at fixed numbers of draws (each about 3 %
    more than the last) and never looks at draws that it is staked on, so that it does not matter how the
    draws are cut into batches.

    Parameters
    ----------
    claim : float
        The loss that is tested, zero or more.
    confidence : float
        In (0, 1).
    prior : tuple of (hits, n, other_hits, other_n), optional
        Counts from *other* draws, those that the event was chosen on, to base the first stakes on.  They count for
        at most 2000 draws, so that a wrong prior is soon forgotten.

    Attributes
    ----------
    n : int
        Draws so far, on either side.
    wealth : float
        At the claim, from 1 at the start.
    rejected : bool
        Whether the claim is refuted: the bound reached it at some time.
    epsilon_lower : float
        The largest value of the grid such that the wealth of all gamblers up to it reached ``1 / (1 - confidence)``
        at some time.

    Guarantee
    ---------
    The probability that ``epsilon_lower`` ever exceeds the loss, or that a claim that holds is ever rejected, is at
    most ``1 - confidence``: :prf:ref:`thm-betting`.

    Source
    ------
    Ville (1939); Waudby-Smith and Ramdas (2024) for betting as a way to bound a mean.
    """

    def __init__(self, claim, confidence=0.95, *, prior=None):
        self.claim, self.confidence = check_claim(claim), check_confidence(confidence)
        # Beyond 20 no number of draws that anyone makes would tell; a larger claim extends the grid.
        self._grid = np.unique(np.append(np.arange(0, max(20.0, self.claim + 1), 0.005), self.claim))
        self._at = int(np.searchsorted(self._grid, self.claim))
        self._price = exp(self._grid)
        self._enough = -log(1 - self.confidence)
        self._wealth = np.zeros(len(self._grid))  # logarithms
        self._best = np.zeros(len(self._grid))
        self._counts = np.array([0.5, 1, 0.5, 1])  # hits and draws on either side, smoothed
        if prior is not None:
            hits, n, other_hits, other_n = prior
            _check_counts(hits, n), _check_counts(other_hits, other_n)
            self._counts += np.array([hits, n, other_hits, other_n]) * min(1, 2000 / max(n, other_n))
        self.n = 0
        self._renew()

    @property
    def wealth(self) -> float:
        return math.exp(min(self._wealth[self._at], 700.0))

    @property
    def p_value(self) -> float:
        """One over the largest wealth so far, which is valid at any time."""
        return math.exp(-self._best[self._at])

    @property
    def stake(self) -> float:
        """What is staked on the next draws, as a share of the wealth; the most is ``exp(-claim)``."""
        return float(self._stake[self._active == self._at].sum())

    @property
    def epsilon_lower(self) -> float:
        passed = self._passed
        return float(self._grid[passed - 1]) if passed else 0.0

    @property
    def rejected(self) -> bool:
        return bool(self._passed > self._at)

    @property
    def _passed(self) -> int:
        """How many values of the grid, from 0 on, are rejected without a gap."""
        reached = self._reached
        return len(reached) if reached.all() else int(np.argmin(reached))

    @property
    def _reached(self) -> np.ndarray:
        return self._best >= self._enough

    def update(self, hits_one, hits_other) -> Betting:
        """Bet on more draws: whether the event happened in each, in the order of the draws.

        Parameters
        ----------
        hits_one, hits_other : array-like of bool, shape (m,)
            On the data set where the event is held to be more likely, and on the other one.
        """
        one, other = np.asarray(hits_one), np.asarray(hits_other)
        if one.dtype != bool or other.dtype != bool:
            raise TypeError("hits must be arrays of bool: whether the event happened in each draw")
        if one.ndim != 1 or one.shape != other.shape:
            raise ValueError(
                f"draws are bet on in pairs: as many on one side as on the other; got {one.shape} and {other.shape}"
            )
        start = 0
        while start < len(one):
            stop = min(len(one), start + self._until - self.n)
            self._bet(one[start:stop], other[start:stop])
            start = stop
        return self

    def _bet(self, one, other) -> None:
        """Settle the bets on draws whose stakes were fixed before."""
        both = np.count_nonzero(one & other)
        first, second = np.count_nonzero(one), np.count_nonzero(other)
        active, stake, price = self._active, self._stake, self._price[self._active]
        self._wealth[active] += (first - both) * log1p(stake) + both * log1p(stake * (1 - price))
        self._wealth[active] += (second - both) * log1p(-stake * price)
        self._best = np.maximum(self._best, self._wealth)
        self._counts += np.array([first, len(one), second, len(one)])
        self.n += len(one)
        if self.n == self._until:
            self._renew()

    def _renew(self) -> None:
        """Kelly's stake for the frequencies so far: where the expected growth of the wealth is largest.

        Gamblers who already have what rejects their value stop, but for the one at the claim; who expects no gain
        stakes nothing.
        """
        self._until = self.n + 1 + self.n // 32
        p, q = self._counts[0] / self._counts[1], self._counts[2] / self._counts[3]
        going = ~self._reached
        going[self._at] = True
        self._active = np.flatnonzero(going & (p > self._price * q))
        price = self._price[self._active]
        only, against, both, rest = p * (1 - q), (1 - p) * q, p * q, 1 - price
        # the growth is concave; where its slope is 0, a stake^2 + b stake + c is, with a >= 0 > b and c > 0, and the
        # smaller root is the one below 1 / price.  The test is valid with any stake from 0 to below that which looks at
        # past draws alone: rounding costs power
        a = -(only + against + both) * price * rest
        b = only * (rest - price) - against * price * (1 + rest) + both * rest * rest
        c = only - against * price + both * rest
        stake = 2 * c / (np.sqrt(np.maximum(b * b - 4 * a * c, 0)) - b)
        self._stake = np.clip(stake, 0, (1 - 1e-9) / price)
