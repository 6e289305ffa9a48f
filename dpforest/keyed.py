"""Coins that belong to records: a keyed hash of each record's number, the same wherever and whenever it is asked.

A table that is read block by block, on many machines and more than once, cannot keep a drawn coin for each record.  So
the coin is computed: SipHash-2-4 of the record's number under a key of 128 bits that is drawn once.  To whoever does
not know the key, and cannot tell SipHash from a random function, the coins of different numbers are independent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pandas as pd
from numba import njit

__all__ = ["Key", "coins", "copies", "identify", "siphash"]

Key = tuple[int, int]  # two words of 64 bits

_MOST = 20  # copies of a record in a Poisson bootstrap: more have probability 2^-65


@njit(cache=True, nogil=True)
def _round(a, b, c, d):
    a += b
    b = (b << np.uint64(13)) | (b >> np.uint64(51))
    b ^= a
    a = (a << np.uint64(32)) | (a >> np.uint64(32))
    c += d
    d = (d << np.uint64(16)) | (d >> np.uint64(48))
    d ^= c
    a += d
    d = (d << np.uint64(21)) | (d >> np.uint64(43))
    d ^= a
    c += b
    b = (b << np.uint64(17)) | (b >> np.uint64(47))
    b ^= c
    c = (c << np.uint64(32)) | (c >> np.uint64(32))
    return a, b, c, d


@njit(cache=True, nogil=True)
def _hash(first, second, ids, out):
    for i in range(len(ids)):
        word = ids[i]
        a, b = first ^ np.uint64(0x736F6D6570736575), second ^ np.uint64(0x646F72616E646F6D)
        c, d = first ^ np.uint64(0x6C7967656E657261), second ^ np.uint64(0x7465646279746573)
        for block in (word, np.uint64(8 << 56)):  # the message, and its length
            d ^= block
            a, b, c, d = _round(a, b, c, d)
            a, b, c, d = _round(a, b, c, d)
            a ^= block
        c ^= np.uint64(0xFF)
        for _ in range(4):
            a, b, c, d = _round(a, b, c, d)
        out[i] = a ^ b ^ c ^ d


def siphash(key: Key, ids: np.ndarray) -> np.ndarray:
    """SipHash-2-4 of each number as a message of eight bytes, uint64 :cite:p:`AumassonB12`."""
    out = np.empty(len(ids), dtype=np.uint64)
    _hash(np.uint64(key[0]), np.uint64(key[1]), np.ascontiguousarray(ids, dtype=np.uint64), out)
    return out


def coins(key: Key, ids: np.ndarray, high: int) -> np.ndarray:
    """A number in ``[0, high)`` for each record, int64; each has probability 1 / high up to 2^-64, high below 2^31."""
    found = siphash(key, ids)
    top, low = found >> np.uint64(32), found & np.uint64((1 << 32) - 1)  # a division would take ten times as long
    # hash * high / 2^64, in two halves that do not overflow
    return ((top * np.uint64(high) + (low * np.uint64(high) >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)


def copies(key: Key, ids: np.ndarray) -> np.ndarray:
    """A number of copies for each record, int64: Poisson's law of mean 1, rounded downward to multiples of 2^-64.

    Rounded so that more copies are never more likely than under Poisson's law, and at most 20.
    """
    return np.searchsorted(_STEPS, siphash(key, ids), side="right").astype(np.int64)


def identify(values) -> np.ndarray:
    """A number for each value of a column of record keys, uint64: integers as they are, anything else by a fixed hash.

    Two keys that are given the same number share their coins, which costs nothing: a coin still depends on nothing but
    the key of its own record (:prf:ref:`thm-keyed-assignment`).
    """
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return values.astype(np.uint64)
    if pd.isna(values).any():
        raise ValueError("a record key is missing: every record needs one")
    return pd.util.hash_array(values.astype(object), categorize=False)


def _steps() -> np.ndarray:
    """From which hash on a record has one copy, two copies, and so on: 2^64 times Poisson's law, rounded up."""
    inverse = sum((Fraction((-1) ** k, math.factorial(k)) for k in range(51)), Fraction(0))  # 1 / e, from above
    at_most = accumulate(inverse / math.factorial(count) for count in range(_MOST))
    return np.array([math.ceil(share * 2**64) for share in at_most], dtype=np.uint64)


_STEPS = _steps()
