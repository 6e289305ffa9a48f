"""The only code that draws randomness.

Three sources stand behind one set of verbs: :class:`Seeded` for reproducible research, :class:`Replay` which
visits every branch with its exact probability, so that an audit gets the output law of the code that ships, and
:class:`Secure` for a real release.  A draw never happens elsewhere; a test enforces it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from dpforest import keyed

__all__ = ["Chance", "NotEnumerableError", "Replay", "Secure", "Seeded", "outcomes"]

Law = Callable[[np.ndarray, np.ndarray], np.ndarray]


class NotEnumerableError(RuntimeError):
    """Replay met a draw with infinitely many outcomes."""


class Chance(Protocol):
    """What a mechanism or a learner may ask of randomness."""

    def integers(self, high: int, size: int) -> np.ndarray:
        """``size`` independent uniform integers in ``[0, high)``."""

    def subsets(self, n: int, k: int, size: int) -> np.ndarray:
        """``size`` independent uniform ``k``-subsets of ``range(n)``, shape (size, k)."""

    def permutation(self, n: int) -> np.ndarray:
        """A uniform permutation of ``range(n)``."""

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray:
        """An independent uniform integer in ``[0, high)`` for each record; ``ids`` (uint64) tells them apart."""

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        """Independent whole numbers with Poisson's law of mean 1, for each tree and record: (n_trees, n_records)."""

    def key(self) -> keyed.Key:
        """A key under which :mod:`~dpforest.keyed` computes the coins of records that are read more than once."""

    def weighted(self, weights: np.ndarray, size: int) -> np.ndarray:
        """``size`` independent indices of ``weights``, each with a probability in proportion to its weight."""

    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """One index per row of ``scores`` (m, K), drawn from ``law(scores, rate)``; ``kind`` names the mechanism."""

    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        """Integer noise with ``P(k)`` proportional to ``exp(-rate |k|)``; ``rate`` broadcasts to ``size``."""


class Seeded:
    """Reproducible randomness from a NumPy generator: for research and tests, not for a release.

    Whoever knows the seed can subtract the noise.

    Parameters
    ----------
    random_state : None, int, numpy Generator or RandomState
        As in scikit-learn; a RandomState is used to draw one seed.
    """

    def __init__(self, random_state=None):
        if isinstance(random_state, np.random.RandomState):
            random_state = int(random_state.randint(np.iinfo(np.int32).max))
        self._rng = np.random.default_rng(random_state)

    def integers(self, high: int, size: int) -> np.ndarray:
        return self._rng.integers(high, size=size)

    def subsets(self, n: int, k: int, size: int) -> np.ndarray:
        # the k smallest of n independent uniforms are a uniform subset
        return np.sort(np.argpartition(self._rng.random((size, n)), k - 1, axis=1)[:, :k], axis=1)

    def permutation(self, n: int) -> np.ndarray:
        return self._rng.permutation(n)

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray:
        return keyed.coins(self.key(), ids, high)

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        found = np.empty((n_trees, len(ids)), dtype=np.int64)
        for tree in found:
            tree[:] = keyed.copies(self.key(), ids)
        return found

    def key(self) -> keyed.Key:
        first, second = self._rng.integers(1 << 64, size=2, dtype=np.uint64)
        return int(first), int(second)

    def weighted(self, weights: np.ndarray, size: int) -> np.ndarray:
        return _landings(weights, self._rng.random(size))

    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        heap = np.cumsum(law(scores, rate), axis=1)
        # scaling by the total keeps a rounding error in the sum from falling off the end
        ball = self._rng.random((len(heap), 1)) * heap[:, -1:]
        return (heap <= ball).sum(axis=1)

    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        rate = np.broadcast_to(rate, size)
        noise = np.zeros(size, dtype=np.int64)
        noisy = np.isfinite(rate)
        stop = -np.expm1(-rate[noisy])
        noise[noisy] = self._rng.geometric(stop) - self._rng.geometric(stop)
        return noise


class Replay:
    """Visit every branch of a randomised program, with its exact probability.

    Run the program on a fresh path with :meth:`advance` until it returns False; :func:`outcomes` is that loop.
    Probabilities are multiplied as they come, so laws made of fractions give exact fractions.
    """

    def __init__(self):
        self._path: list[tuple[Any, int]] = []  # (law of the draw, index taken)
        self._at = 0

    @property
    def probability(self):
        """Probability of the branch just run."""
        return math.prod(law[index] for law, index in self._path)

    def advance(self) -> bool:
        """Move to the next branch; False when all have been visited."""
        while self._path:
            law, taken = self._path.pop()
            following = _next_possible(law, taken + 1)
            if following is not None:
                self._path.append((law, following))
                self._at = 0
                return True
        return False

    def _choose(self, law) -> int:
        if self._at == len(self._path):
            first = _next_possible(law, 0)
            if first is None:
                raise ValueError("a law without a possible outcome was drawn from")
            self._path.append((law, first))
        index = self._path[self._at][1]
        self._at += 1
        return index

    def integers(self, high: int, size: int) -> np.ndarray:
        return np.array([self._choose(self._uniform(high)) for _ in range(size)], dtype=np.int64)

    def subsets(self, n: int, k: int, size: int) -> np.ndarray:
        every = list(combinations(range(n), k))
        chosen = [every[self._choose(self._uniform(len(every)))] for _ in range(size)]
        return np.array(chosen, dtype=np.int64).reshape(size, k)

    def permutation(self, n: int) -> np.ndarray:
        left, order = list(range(n)), []
        while left:
            order.append(left.pop(self._choose(self._uniform(len(left)))))
        return np.array(order, dtype=np.int64)

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray:
        return self.integers(high, len(ids))

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        raise NotEnumerableError("a Poisson number has infinitely many values, so replay cannot visit them")

    def key(self) -> keyed.Key:
        raise NotEnumerableError("replay visits the coins of each record, not the keys that would give them")

    def weighted(self, weights: np.ndarray, size: int) -> np.ndarray:
        law = (np.asarray(weights) / np.sum(weights)).tolist()
        return np.array([self._choose(law) for _ in range(size)], dtype=np.int64)

    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        return np.array([self._choose(row) for row in law(scores, rate)], dtype=np.int64)

    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        if not np.isfinite(rate).any():
            return np.zeros(size, dtype=np.int64)
        raise NotEnumerableError(
            "geometric noise has infinitely many outcomes, so replay cannot visit them; exact_audit knows its loss by "
            "lem-geometric-leaves where the noisy counts are released as they are, and the whole forest is seen"
        )

    def _uniform(self, n: int):
        return [1.0 / n] * n


def outcomes(program: Callable[[Any], Any], replay: Replay | None = None) -> Iterator[tuple[Any, Any]]:
    """Every (output, probability) of ``program(chance)``, branch by branch.  Outputs may repeat.

    ``replay`` is a fresh source, by default a :class:`Replay`.
    """
    replay = replay or Replay()
    while True:
        output = program(replay)
        yield output, replay.probability
        if not replay.advance():
            return


class Secure:
    """Randomness for a real release: operating-system entropy and OpenDP's exact samplers.

    Needs the extra ``release`` of this package.  It takes no seed and keeps no state, so nothing about the noise can
    be recovered from it; a fit with it cannot be repeated.
    """

    def __init__(self):
        try:
            import opendp.prelude as dp
        except ImportError:
            raise ImportError(
                "source='secure' draws through OpenDP, which is not there: install dpforest with its extra 'release'"
            ) from None
        dp.enable_features("contrib")
        self._dp = dp

    def integers(self, high: int, size: int) -> np.ndarray:
        # 64 random bits, rejected above the largest multiple of high: exactly uniform
        limit = (1 << 64) - (1 << 64) % high
        draws = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64)
        while (bad := draws > np.uint64(limit - 1)).any():
            draws = draws.copy()
            draws[bad] = np.frombuffer(secrets.token_bytes(8 * int(bad.sum())), dtype=np.uint64)
        return (draws % np.uint64(high)).astype(np.int64)

    def subsets(self, n: int, k: int, size: int) -> np.ndarray:
        every = [np.sort(self.permutation(n)[:k]) for _ in range(size)]
        return np.array(every, dtype=np.int64).reshape(size, k)

    def permutation(self, n: int) -> np.ndarray:
        order = np.arange(n)
        for last in range(n - 1, 0, -1):  # Fisher-Yates
            swap = secrets.randbelow(last + 1)
            order[[last, swap]] = order[[swap, last]]
        return order

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray:
        return self.integers(high, len(ids))

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        return self._poisson(n_trees * len(ids)).reshape(n_trees, len(ids))

    def key(self) -> keyed.Key:
        return secrets.randbits(64), secrets.randbits(64)

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

    def weighted(self, weights: np.ndarray, size: int) -> np.ndarray:
        return _landings(weights, self.integers(1 << 53, size) / (1 << 53))

    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        rates = np.broadcast_to(rate, len(scores))
        return np.array([self._select_one(kind, s, r) for s, r in zip(scores, rates, strict=True)], dtype=np.int64)

    def _select_one(self, kind: str, scores: np.ndarray, rate: float) -> int:
        candidates = np.flatnonzero(np.isfinite(scores))
        if len(candidates) == 1:
            return int(candidates[0])
        if rate == 0 or math.isinf(rate):
            best = candidates if rate == 0 else candidates[scores[candidates] == scores[candidates].max()]
            return int(best[secrets.randbelow(len(best))])
        # OpenDP's noisy max is permute-and-flip under max-divergence, the exponential mechanism under zCDP
        dp = self._dp
        measure = {"permute-and-flip": dp.max_divergence, "exponential": dp.zero_concentrated_divergence}[kind]()
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
        noisy_max = dp.m.make_noisy_max(*space, measure, scale=1.0 / rate)
        return int(candidates[noisy_max(scores[candidates].astype(float).tolist())])

    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        rate = np.broadcast_to(rate, size)
        noise = np.zeros(size, dtype=np.int64)
        dp = self._dp
        # OpenDP's int has 32 bits, and noise that saturates there would give the count away
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        for value in np.unique(rate[np.isfinite(rate)]):
            cells = rate == value
            laplace = dp.m.make_laplace(*space, scale=1.0 / float(value))
            noise[cells] = laplace([0] * int(cells.sum()))
        return noise


def _landings(weights, shares: np.ndarray) -> np.ndarray:
    """Which weight each share of their sum, in [0, 1), lands on."""
    heap = np.cumsum(weights)
    # a rounding error in the product must not fall off the end, nor on a weight of 0
    last = np.searchsorted(heap, heap[-1])
    return np.minimum(np.searchsorted(heap, shares * heap[-1], side="right"), last)


def _next_possible(law, start: int) -> int | None:
    return next((index for index in range(start, len(law)) if law[index] > 0), None)
