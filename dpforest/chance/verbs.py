"""What may be asked of chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from dpforest.chance import keyed

__all__ = ["Chance", "Law"]

Law = Callable[[np.ndarray, np.ndarray], np.ndarray]


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

    def lots(self, ids: np.ndarray) -> np.ndarray:
        """A number for each of ``ids`` (uint64, distinct), uint64: they are drawn in its order, and any is as likely.

        No promise may rest on which order it is; ids that are the same may have one number.
        """

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        """Independent whole numbers with Poisson's law of mean 1, for each tree and record: (n_trees, n_records)."""

    def key(self) -> keyed.Key:
        """A key by which :mod:`~dpforest.chance.keyed` computes the coins of records that are read more than once."""

    def weighted(self, weights: np.ndarray, size: int) -> np.ndarray:
        """``size`` independent indices of ``weights``, each with a probability in proportion to its weight."""

    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """One index per row of ``scores`` (m, K), drawn from ``law(scores, rate)``; ``kind`` names the mechanism."""

    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        """Integer noise with ``P(k)`` proportional to ``exp(-rate |k|)``; ``rate`` broadcasts to ``size``."""

    def discrete_gaussian(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        """Integer noise with ``P(k)`` proportional to ``exp(-rate k^2)``; ``rate`` broadcasts to ``size``."""
