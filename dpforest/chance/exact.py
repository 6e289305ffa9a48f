"""Exact samplers on random bits, vectorised: from any source, the same bits give the same draw everywhere.

A draw is a function of a uniform real number, which is given 64 bits at a time.  Doubles decide where they can be
trusted: where the distance to the boundary is far beyond any rounding error of theirs.  Elsewhere
:mod:`~dpforest.chance.lazy` decides, exactly.  So it does not matter which ``exp`` a processor picks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from numbers import Integral

import numpy as np

from dpforest.chance import keyed
from dpforest.chance.lazy import Uniform, floor_of_exponential, heads, landing
from dpforest.chance.verbs import Law
from dpforest.messages import shown
from dpforest.privacy import claim

__all__ = ["Exact"]

_TRUST = 2.0**-36  # relative error that four roundings, an exp and an ln of any make stay far below
_COARSE = 2.0**-10  # below this rate a geometric number is drawn in two parts
_SURE = 1 << 44  # a first word below this says too little about its logarithm
_FEW = 16  # draws that are made one by one, on the same words: sooner than as arrays
_CELLS = 1 << 15  # scores that are looked at together, so that what is made of them stays in the cache


class Exact:
    """The verbs of :class:`~dpforest.chance.Chance` on uniform words; a source adds where the words come from."""

    #: Whether a key was drawn, so that coins of records are as good as the hash.
    hashes = False

    def _words(self, size: int) -> np.ndarray:
        """``size`` independent uniform words of 64 bits, uint64."""
        raise NotImplementedError

    # -- uniform draws ---------------------------------------------------------------------------------------

    def integers(self, high: int, size: int) -> np.ndarray:
        if size and not (isinstance(high, Integral) and 0 < high <= 1 << 63):
            raise ValueError(f"high must be a whole number from 1 to 2^63, not {shown(high)}")
        return self._below(np.full(size, high, dtype=np.uint64), self._words(size))

    def _below(self, high: np.ndarray, words: np.ndarray) -> np.ndarray:
        """A uniform integer below each of ``high``, uint64, as int64, from a word for each."""
        most = ~np.uint64(0) - -high % high  # 2^64 modulo high words at the top would favour small numbers
        while (bad := words > most).any():
            words[bad] = self._words(int(bad.sum()))
        return (words % high).astype(np.int64)

    def _one_of(self, marked: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The column of a uniform one of the marked places of each row, from a word for each."""
        place = np.cumsum(marked, axis=1)
        taken = self._below(place[:, -1].astype(np.uint64), words)
        return (place <= taken[:, None]).sum(axis=1)

    def subsets(self, n: int, k: int, size: int) -> np.ndarray:
        if not 0 <= k <= n:
            raise ValueError(f"there is no subset of {k} among {n}")
        found = np.empty((size, k), dtype=np.int64)
        todo = np.arange(size if k else 0)
        while todo.size:
            words = self._words(todo.size * n).reshape(-1, n)
            least = words <= np.partition(words, k - 1, axis=1)[:, k - 1 : k]  # the places of the k smallest
            clear = least.sum(axis=1) == k  # a tie says nothing about which of two places to take
            found[todo[clear]] = np.nonzero(least[clear])[1].reshape(-1, k)
            todo = todo[~clear]
        return found

    def permutation(self, n: int) -> np.ndarray:
        while True:
            words = self._words(n)
            order = np.argsort(words, kind="stable")
            if (np.diff(words[order]) > 0).all():  # a tie has no order
                return order

    def weighted(self, weights: np.ndarray, size: int) -> np.ndarray:
        # alone here it is exact but for rounding: weights are those of published boosting, which is not private, or of
        # rows that are drawn from what was released
        heap = np.cumsum(weights)
        shares = (self._words(size) >> np.uint64(11)) * 2.0**-53
        # a rounding error in the product must not fall off the end, nor on a weight of 0
        last = np.searchsorted(heap, heap[-1])
        return np.minimum(np.searchsorted(heap, shares * heap[-1], side="right"), last)

    # -- records ---------------------------------------------------------------------------------------------

    def key(self) -> keyed.Key:
        self.hashes = True
        return self._key()

    def _key(self) -> keyed.Key:
        first, second = self._words(2)
        return int(first), int(second)

    def lots(self, ids: np.ndarray) -> np.ndarray:
        return self._words(len(ids))

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray:
        return self.integers(high, len(ids))

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        return self._poisson(n_trees * len(ids)).reshape(n_trees, len(ids))

    def _poisson(self, size: int) -> np.ndarray:
        # exact, from uniform whole numbers alone (Duchon and Duvignau, 2016, on the cycles of a growing permutation)
        found, guard = np.ones(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        active, n = np.arange(size), 1
        while active.size:
            draw = self.integers(n + 1, active.size) + 1
            up, down = active[draw > n], active[(draw <= n) & (draw > guard[active])]
            found[up] += 1
            found[down] -= 1
            guard[down] = n + 1
            active, n = np.sort(np.concatenate([up, down])), n + 1
        return found

    # -- selections ------------------------------------------------------------------------------------------

    @claim("thm-exact-draws")
    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        samplers = {"exponential": self._exponential, "permute-and-flip": self._permute_and_flip}
        if kind not in samplers:
            raise ValueError(f"no exact sampler for the mechanism {shown(kind)}: there are {sorted(samplers)}")
        scores = np.asarray(scores, dtype=float)
        if not len(scores):
            return np.empty(0, dtype=np.int64)
        rate = np.broadcast_to(np.asarray(rate, dtype=float), len(scores))[:, None]
        step = max(1, _CELLS // scores.shape[1])
        parts = [slice(start, start + step) for start in range(0, len(scores), step)]
        return np.concatenate([samplers[kind](scores[part], rate[part]) for part in parts])

    def _permute_and_flip(self, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Uniform among the candidates whose own coin shows heads: :prf:ref:`thm-permute-and-flip`."""
        best, able = scores.max(axis=1, keepdims=True), scores > -np.inf
        # row by row a word for each candidate and one for the choice: rows that are drawn in parts draw the same, but
        # where a word does not decide, which is one in 2^64
        asked = np.ones((len(scores), scores.shape[1] + 1), dtype=bool)
        asked[:, :-1] = able
        words = np.full(asked.shape, ~np.uint64(0))  # tails where no word is asked for
        words[asked] = self._words(int(asked.sum()))

        def exponent(row: int, column: int) -> Fraction:
            return Fraction(rate[row, 0]) * (Fraction(best[row, 0]) - Fraction(scores[row, column]))

        shown = self._heads(words[:, :-1], rate, best - scores, exponent)
        return self._one_of(shown & able, words[:, -1])

    def _exponential(self, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Inversion: candidates side by side, each as long as its weight, and where a uniform number lands."""
        best = scores.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", over="ignore"):  # 0 times infinity is settled by the next two lines
            weight = np.exp(-rate * (best - scores))
        weight[(scores == best) | (rate == 0)] = 1.0
        weight[scores == -np.inf] = 0.0
        heap = np.cumsum(weight, axis=1)
        words = self._words(len(scores))
        ball = _share(words)[:, None] * heap[:, -1:]
        found = (heap <= ball).sum(axis=1)
        near = np.abs(heap - ball) <= heap[:, -1:] * (_TRUST + scores.shape[1] * 2.0**-52)
        for row in np.flatnonzero(near.any(axis=1)):
            own, slope = scores[row], rate[row, 0]
            able = np.flatnonzero(own == best[row] if np.isinf(slope) else own > -np.inf)
            above = Fraction(0) if np.isinf(slope) else Fraction(slope)
            exponents = [above * (Fraction(best[row, 0]) - Fraction(score)) for score in own[able]]
            found[row] = able[landing(self._uniform(words[row]), exponents)]
        return found

    def _heads(
        self, words: np.ndarray, rate: np.ndarray, gap: np.ndarray, exponent: Callable[..., Fraction]
    ) -> np.ndarray:
        """A coin for each word, with heads of probability ``exp(-rate gap)``; ``exponent(*at)`` is that, exactly."""
        if words.ndim == 1 and len(words) <= _FEW:
            each = enumerate(zip(words.tolist(), rate.tolist(), gap.tolist(), strict=True))
            return np.array([self._head(*one, partial(exponent, at)) for at, one in each], dtype=bool)
        with np.errstate(invalid="ignore", over="ignore"):  # 0 times infinity: the coin is certain
            probability, share = np.exp(-rate * gap), _share(words)
        shown = (share < probability) | (gap == 0) | (rate == 0)
        near = np.abs(share - probability) <= probability * _TRUST + 2.0**-60
        if near.any():
            near &= (gap > 0) & (rate > 0) & (rate < np.inf)
            for at in zip(*np.nonzero(near), strict=True):
                shown[at] = heads(self._uniform(words[at]), exponent(*at))
        return shown

    def _head(self, word: int, rate: float, gap: float, exponent: Callable[[], Fraction]) -> bool:
        """One of them: what arrays take longer to pass on than to compute is computed by itself."""
        if gap == 0 or rate == 0:
            return True
        share, probability = (word + 0.5) * 2.0**-64, math.exp(-rate * gap)
        if gap > 0 and rate < math.inf and abs(share - probability) <= probability * _TRUST + 2.0**-60:
            return heads(self._uniform(word), exponent())
        return share < probability

    # -- noise -----------------------------------------------------------------------------------------------

    @claim("thm-exact-draws")
    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        return _where_finite(rate, size, -52, self._two_sided)

    @claim("thm-exact-draws", "lem-discrete-gaussian")
    def discrete_gaussian(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        return _where_finite(rate, size, -104, self._gaussian)

    def _gaussian(self, rate: np.ndarray) -> np.ndarray:
        """Two-sided geometric numbers, each kept with probability ``exp(-(rate k^2 - slope |k| + room))``.

        Any slope and any room that leave no exponent below 0 give the same law: these are near the best.
        """
        slope = np.minimum(np.sqrt(2 * rate), 1.0)
        room = slope * slope / (4 * rate) * (1 + 2.0**-30)
        found = np.empty(len(rate), dtype=np.int64)
        todo = np.arange(len(rate))
        while todo.size:
            drawn = self._two_sided(slope[todo])
            size = np.abs(drawn)

            def exponent(at: int, todo: np.ndarray = todo, size: np.ndarray = size) -> Fraction:
                k, at = int(size[at]), todo[at]
                return Fraction(rate[at]) * k * k - Fraction(slope[at]) * k + Fraction(room[at])

            far = size.astype(float)
            gap = rate[todo] * far * far - slope[todo] * far + room[todo]
            kept = self._heads(self._words(todo.size), np.ones(todo.size), gap, exponent)
            found[todo[kept]] = drawn[kept]
            todo = todo[~kept]
        return found

    def _two_sided(self, rate: np.ndarray) -> np.ndarray:
        return self._geometric(rate) - self._geometric(rate)

    def _geometric(self, rate: np.ndarray) -> np.ndarray:
        """Failures before a success, ``P(k)`` in proportion to ``exp(-rate k)``.

        At a low rate as ``2^b V + W``, with V geometric at rate ``2^b rate``, and W below ``2^b`` by rejection: there a
        double could not tell the floor of a large number.
        """
        if len(rate) <= _FEW:
            return np.array(self._few_geometric(rate.tolist()), dtype=np.int64)
        if rate.min() >= _COARSE:
            return self._waiting(rate)
        bits = np.where(rate < _COARSE, -np.frexp(rate)[1], 0)  # then 2^bits rate lies in [1/2, 1)
        found = self._waiting(np.ldexp(rate, bits)) << bits
        todo = np.flatnonzero(bits)
        while todo.size:
            offset = (self._words(todo.size) >> (64 - bits[todo]).astype(np.uint64)).astype(np.int64)

            def exponent(at: int, todo: np.ndarray = todo, offset: np.ndarray = offset) -> Fraction:
                return Fraction(rate[todo[at]]) * int(offset[at])

            kept = self._heads(self._words(todo.size), rate[todo], offset.astype(float), exponent)
            found[todo[kept]] += offset[kept]
            todo = todo[~kept]
        return found

    def _few_geometric(self, rates: list[float]) -> list[int]:
        """The same numbers from the same words, one by one."""
        bits = [0 if rate >= _COARSE else -math.frexp(rate)[1] for rate in rates]
        words = self._words(len(rates)).tolist()
        found = [self._wait(*one) << up for *one, up in zip(words, map(math.ldexp, rates, bits), bits, strict=True)]
        todo = [at for at, up in enumerate(bits) if up]

        def exponent(at: int, offset: int) -> Fraction:
            return Fraction(rates[at]) * offset

        while todo:
            offsets = [word >> 64 - bits[at] for at, word in zip(todo, self._words(len(todo)).tolist(), strict=True)]
            left = []
            for at, offset, word in zip(todo, offsets, self._words(len(todo)).tolist(), strict=True):
                if self._head(word, rates[at], float(offset), partial(exponent, at, offset)):
                    found[at] += offset
                else:
                    left.append(at)
            todo = left
        return found

    def _waiting(self, rate: np.ndarray) -> np.ndarray:
        """``floor(-ln(U) / rate)``: geometric, for it is at least k with probability ``exp(-rate k)``."""
        words = self._words(len(rate))
        time = -np.log(_share(words)) / rate
        found = np.floor(time)
        room = time * _TRUST + 2.0**-30
        near = (words < _SURE) | (np.ceil(time) - time <= room) | ((time - found <= room) & (found > 0))
        for at in np.flatnonzero(near):
            found[at] = floor_of_exponential(self._uniform(words[at]), Fraction(rate[at]))
        return found.astype(np.int64)

    def _wait(self, word: int, rate: float) -> int:
        """One of them."""
        time = -math.log((word + 0.5) * 2.0**-64) / rate
        found = math.floor(time)
        room = time * _TRUST + 2.0**-30
        if word < _SURE or math.ceil(time) - time <= room or (time - found <= room and found > 0):
            return floor_of_exponential(self._uniform(word), Fraction(rate))
        return found

    def _uniform(self, word: int | np.uint64) -> Uniform:
        return Uniform(int(word), lambda: int(self._words(1)[0]))


def _where_finite(
    rate: np.ndarray, size: tuple[int, ...], faintest: int, draw: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Noise where the rate is finite, 0 elsewhere; below a rate of ``2^faintest`` it might not fit 64 bits.

    At the faintest, noise beyond 63 bits has probability e^-2000.
    """
    rate = np.broadcast_to(np.asarray(rate, dtype=float), size)
    if not (rate >= 2.0**faintest).all():  # also refuses NaN
        raise ValueError(f"the rate of noise must be at least 2^{faintest} and not NaN, got {rate.min()}")
    noisy = np.isfinite(rate)
    if noisy.all():
        return draw(rate.ravel()).reshape(size)
    noise = np.zeros(size, dtype=np.int64)
    noise[noisy] = draw(rate[noisy])
    return noise


def _share(words: np.ndarray) -> np.ndarray:
    """The middle of the numbers in [0, 1) that begin with these 64 bits."""
    return (words + 0.5) * 2.0**-64
