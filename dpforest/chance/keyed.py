"""Coins that belong to records: a keyed hash of each record's number, the same wherever and whenever it is asked.

A table that is read block by block, on many machines and more than once, cannot keep a drawn coin for each record.  So
the coin is computed: SipHash-2-4 of the record's number under a key of 128 bits that is drawn once.  For an
observer who does not know the key, and cannot tell SipHash from a random function, the coins of different numbers are
independent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
from numba import njit

from dpforest.messages import shown
from dpforest.schema import cells, frames

__all__ = ["Key", "coins", "copies", "identify", "siphash"]

Key = tuple[int, int]  # two words of 64 bits

_MISSING = "a record key is missing: every record needs one"
_MOST = 20  # copies of a record in a Poisson bootstrap: more have probability 2^-65


@njit(cache=True, nogil=True)
def _round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
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
def _hash(first: np.uint64, second: np.uint64, ids: np.ndarray, out: np.ndarray) -> None:
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
    if not 0 < high < 1 << 31:
        raise ValueError(f"high must be a whole number from 1 to 2^31 - 1, not {shown(high)}")
    found = siphash(key, ids)
    top, low = found >> np.uint64(32), found & np.uint64((1 << 32) - 1)  # a division would take ten times as long
    # hash * high / 2^64, in two halves that do not overflow
    return ((top * np.uint64(high) + (low * np.uint64(high) >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)


def copies(key: Key, ids: np.ndarray) -> np.ndarray:
    """A number of copies for each record, int64: Poisson's law of mean 1, rounded downward to multiples of 2^-64.

    Rounded so that more copies are never more likely than under Poisson's law, and at most 20.
    """
    return np.searchsorted(_STEPS, siphash(key, ids), side="right").astype(np.int64)


def identify(values: Any) -> np.ndarray:
    """A number for each value of a column of record keys, uint64, a function of that value alone.

    A whole number is itself, modulo 2^64, whether it comes as an integer, as a float such as 7.0, or as True, which is
    1.  So -1 and 2^64 - 1 are one key, and so are -2^63 and 2^63.  Another float and a text have a fixed hash, of 64
    bits, of their 8 bytes or their characters: "7" is not 7, nor is "7.0".

    Raises
    ------
    ValueError
        A missing key; a float of 2^53 or more (in single precision 2^24), to which several integers may round.
    TypeError
        A key that is neither a number nor text.

    Notes
    -----
    *Anyone who chooses keys* may repeat them, and may find texts that have the number of another key, for the hash
    is public.  Records with one number share their coins.  That costs nothing, for a coin still depends on nothing but
    the key of its own record: :prf:ref:`thm-keyed-assignment` holds for every function of the keys, equal ones
    included, and learners pay for a record that moves from one tree to another.  Copies of a Poisson bootstrap must
    be independent between records, and are never drawn by key.
    """
    column = frames.one_column(values, "the column of record keys")
    if not isinstance(column, pd.Series):
        column = pd.Series(column, dtype=object if column.dtype.kind in "OU" else None, copy=False)
    if column.dtype != object and column.isna().any():
        raise ValueError(_MISSING)
    if isinstance(column.dtype, pd.CategoricalDtype):
        used, places = np.unique(column.cat.codes.to_numpy(), return_inverse=True)  # no record has the others
        return identify(pd.Series(column.cat.categories[used], copy=False))[places]
    kind = column.dtype.kind
    if kind in "iub":
        return column.to_numpy(dtype=None if kind == "u" else np.int64).astype(np.uint64)
    if kind == "f":
        return _of_floats(column.to_numpy(dtype=float), np.finfo(column.to_numpy().dtype).nmant + 1)
    if kind != "O" and not pd.api.types.is_string_dtype(column):
        raise TypeError(
            f"record keys must be whole numbers or text, not {column.dtype}: turn the column into text first"
        )
    keys = column.to_numpy(dtype=object)
    if pd.api.types.infer_dtype(keys, skipna=False) == "string":
        return _of_texts(keys)
    found = np.empty(len(keys), dtype=np.uint64)
    kinds = np.array([_kind(key) for key in keys], dtype=np.int8)
    for which, number in enumerate((_of_integers, _of_floats, _of_texts)):
        found[kinds == which] = number(keys[kinds == which])
    return found


def _kind(key: object) -> int:
    if isinstance(key, (int, np.integer, np.bool_)) and not isinstance(key, np.timedelta64):
        return 0
    if isinstance(key, (float, np.floating)) and key == key:
        return 1
    if isinstance(key, str):
        return 2
    if cells.said(key, "the column of record keys") is None:
        raise ValueError(_MISSING)
    raise TypeError(f"a record key must be a whole number or text, not {shown(key)}: turn the column into text first")


def _of_integers(keys: np.ndarray) -> np.ndarray:
    return np.array([int(key) % (1 << 64) for key in keys], dtype=np.uint64)


def _of_floats(keys: np.ndarray, bits: int = 53) -> np.ndarray:
    keys, bits = np.asarray(keys, dtype=float), min(bits, 53)
    if not (np.abs(keys) < 1 << bits).all():
        raise ValueError(f"record keys are floats of 2^{bits} or more, which may stand for several integers: pass text")
    whole = np.trunc(keys)
    return np.where(keys == whole, whole.astype(np.int64).view(np.uint64), pd.util.hash_array(keys))


def _of_texts(keys: np.ndarray) -> np.ndarray:
    try:
        return pd.util.hash_array(keys, categorize=False)
    except UnicodeEncodeError as error:
        raise ValueError(f"record keys must be text that can be written in UTF-8: {error}") from None


def _steps() -> np.ndarray:
    """From which hash on a record has one copy, two copies, and so on: 2^64 times Poisson's law, rounded up."""
    inverse = sum((Fraction((-1) ** k, math.factorial(k)) for k in range(51)), Fraction(0))  # 1 / e, from above
    at_most = accumulate(inverse / math.factorial(count) for count in range(_MOST))
    return np.array([math.ceil(share * 2**64) for share in at_most], dtype=np.uint64)


_STEPS = _steps()
