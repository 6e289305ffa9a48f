"""Where random bits come from: a seeded generator for research, the operating system for a release."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral

import numpy as np

from dpforest.chance import keyed
from dpforest.chance.exact import Exact
from dpforest.messages import shown

__all__ = ["Secure", "Seeded"]

#: Generators whose raw output is a word of 64 bits.
_BY_WORDS = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)


class Seeded(Exact):
    """Reproducible randomness from a NumPy generator: for research and tests, not for a release.

    An observer who knows the seed can subtract the noise.

    Parameters
    ----------
    random_state : None, int or list of int, numpy Generator or RandomState
        As in scikit-learn: integers are 0 or more, and a RandomState is used to draw one seed.

    Raises
    ------
    ValueError
        Where it is none of these.

    Notes
    -----
    The coins of records are computed by a hash under a drawn key, so that a table that is read in passes has the same
    ones.
    """

    def __init__(
        self, random_state: int | Sequence[int] | np.random.Generator | np.random.RandomState | None = None
    ) -> None:
        if isinstance(random_state, np.random.RandomState):
            random_state = int(random_state.randint(np.iinfo(np.int32).max))
        elif random_state is not None and not isinstance(random_state, np.random.Generator):
            for seed in random_state if isinstance(random_state, (list, tuple)) else [random_state]:
                if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
                    raise ValueError(
                        "random_state must be None, a whole number of at least 0 or a list of them, or a Generator or "
                        f"RandomState of NumPy, not {shown(random_state)}"
                    )
        self._rng = np.random.default_rng(random_state)

    def _words(self, size: int) -> np.ndarray:
        bits = self._rng.bit_generator
        if isinstance(bits, _BY_WORDS):  # the same words in a tenth of the time, where they are few
            return bits.random_raw(size)
        return self._rng.integers(1 << 64, size=size, dtype=np.uint64)

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray:
        return keyed.coins(self.key(), ids, high)

    def lots(self, ids: np.ndarray) -> np.ndarray:
        return keyed.siphash(self._key(), ids)  # no promise rests on it, so hashes is not set

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        found = np.empty((n_trees, len(ids)), dtype=np.int64)
        for tree in found:
            tree[:] = keyed.copies(self.key(), ids)
        return found


class Secure(Exact):
    """Randomness for a real release: the entropy of the operating system, through the samplers of the seeded source.

    It takes no seed and keeps no bits, so nothing about the noise can be recovered from it; a fit with it cannot be
    repeated.
    """

    def _words(self, size: int) -> np.ndarray:
        return np.frombuffer(bytearray(os.urandom(8 * size)), dtype=np.uint64)
