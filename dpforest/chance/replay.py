"""Every branch of a randomised program, with its exact probability: the output law of the code that ships."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from dpforest.chance import keyed
from dpforest.chance.verbs import Law

__all__ = ["NotEnumerableError", "Replay", "outcomes"]

Weights = Sequence[float | Fraction] | np.ndarray  # the probabilities of a draw


class NotEnumerableError(RuntimeError):
    """Replay met a draw with infinitely many outcomes."""


class Replay:
    """Visit every branch of a randomised program, with its exact probability.

    Run the program on a fresh path with :meth:`advance` until it returns False; :func:`outcomes` is that loop.
    Probabilities are multiplied as they come, so laws made of fractions give exact fractions.
    """

    def __init__(self) -> None:
        self._path: list[tuple[Weights, int]] = []  # (law of the draw, index taken)
        self._at = 0
        self._laws = lru_cache(maxsize=1 << 12)(_rows)  # the same scores come back in every branch

    @property
    def probability(self) -> Any:
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

    def _choose(self, law: Weights) -> int:
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

    def lots(self, ids: np.ndarray) -> np.ndarray:
        return self.permutation(len(ids)).astype(np.uint64)

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        raise NotEnumerableError("a Poisson number has infinitely many values, so replay cannot visit them")

    def key(self) -> keyed.Key:
        raise NotEnumerableError("replay visits the coins of each record, not the keys that would give them")

    def weighted(self, weights: np.ndarray, size: int) -> np.ndarray:
        law = (np.asarray(weights) / np.sum(weights)).tolist()
        return np.array([self._choose(law) for _ in range(size)], dtype=np.int64)

    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        if isinstance(scores, np.ndarray):
            rows = self._laws(law, scores.shape, *(np.asarray(each, dtype=float).tobytes() for each in (scores, rate)))
        else:
            rows = law(scores, rate)
        return np.array([self._choose(row) for row in rows], dtype=np.int64)

    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        if not np.isfinite(rate).any():
            return np.zeros(size, dtype=np.int64)
        raise NotEnumerableError(
            "geometric noise has infinitely many outcomes, so replay cannot visit them; exact_audit knows its loss by "
            "lem-geometric-leaves where the noisy counts are released as they are, and the whole forest is seen"
        )

    def discrete_gaussian(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        if not np.isfinite(rate).any():
            return np.zeros(size, dtype=np.int64)
        raise NotEnumerableError("Gaussian noise has infinitely many outcomes, so replay cannot visit them")

    def _uniform(self, n: int) -> Sequence[float | Fraction]:
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


def _rows(law: Law, shape: tuple[int, ...], scores: bytes, rate: bytes) -> tuple[tuple, ...]:
    """The law of each row of scores, from all that it depends on."""
    return tuple(map(tuple, law(np.frombuffer(scores).reshape(shape), np.frombuffer(rate))))


def _next_possible(law: Weights, start: int) -> int | None:
    return next((index for index in range(start, len(law)) if law[index] > 0), None)
