"""Which bitmaps the bit kernel makes, and in which order: both known before any record is read.

Equal tests (feature, set of codes) are one test.  The most used ones are *kept*: made once per block of rows.  The
others are made for a stretch of the trees at a time, sorted by feature, so that the single codes they are put
together from stay in the first-level cache while what is made fits the second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpforest.counting.bit_words import popcount
from dpforest.counting.compiled import helper, kernel

_KEPT_ROWS, _STRETCH_ROWS = 480, 96  # bitmaps of 1.5 kB: together 0.9 MB, for a second-level cache of 1 MB

# Columns of the table of tests.  A test that is one run of codes is a comparison with LOW and SPAN; another one
# (SPAN = -1) is the OR of the bitmaps in rows parts[PART:STOP] of the workspace, complemented if NEGATE.
FEATURE, LOW, SPAN, NEGATE, PART, STOP = range(6)
TEST = 6


class Schedule(NamedTuple):
    """The distinct tests of a query and when they are made."""

    tests: np.ndarray  # int32 (n_tests, TEST), by the columns above
    parts: np.ndarray  # int32
    kept: np.ndarray  # int32: tests made once per block, in rows 0, 1, ...
    made: np.ndarray  # int32: tests made for a stretch, in the rows after those kept
    made_start: np.ndarray  # int32 (n_stretches + 1,)
    entry_start: np.ndarray  # int32 (n_stretches + 1,): a stretch is a range of entries
    most: int  # tests made for one stretch


def schedule(features, masks, n_features: int, uses: np.ndarray, use_start: np.ndarray) -> tuple[Schedule, np.ndarray]:
    """Plan the bitmaps of the tests (features[i], masks[i]).

    Parameters
    ----------
    features : ndarray of int32, shape (n,)
    masks : ndarray of uint64, shape (n, 4)
    n_features : int
    uses : ndarray of int32
        The i that each entry uses, one entry after the other.
    use_start : ndarray of int32, shape (n_entries + 1,)
        Where the uses of each entry begin.

    Returns
    -------
    schedule : Schedule
    row : ndarray of int32, shape of ``uses``
        Row of the workspace where the entry finds the bitmap.
    """
    number, first = _intern(features, masks)
    tests, parts, n_singles = _describe(features[first], masks[first], n_features)
    used = number[uses]
    count = np.bincount(used, minlength=len(first))
    often = np.argsort(-count, kind="stable")
    often = np.sort(often[count[often] > 1][: max(0, _KEPT_ROWS - n_singles)])
    kept = np.concatenate([np.arange(len(first), len(tests)), often]).astype(np.int32)
    kept_row = np.full(len(first), -1, dtype=np.int32)
    kept_row[often] = n_singles + np.arange(len(often), dtype=np.int32)
    row, made, made_start, entry_start = _stretches(used, use_start, kept_row, len(kept), features[first], n_features)
    most = int(np.diff(made_start).max(initial=0))
    return Schedule(tests, parts, kept, made, made_start, entry_start, most), row


def _stretches(used, use_start, kept_row, n_kept, feature, n_features):
    """Cut the entries into stretches that need few bitmaps more than the kept ones; place those of each by feature."""
    n_entries, n_tests = len(use_start) - 1, len(feature)
    row, made = np.empty(len(used), np.int32), np.empty(len(used), np.int32)
    made_start, entry_start = np.zeros((2, n_entries + 2), np.int32)  # at most a stretch per entry, at least one
    stretch_of, row_of, pending = np.full((3, n_tests), -1, np.int32)
    scratch = stretch_of, row_of, pending, np.empty(n_features + 1, np.int32)
    n = _cut(used, use_start, kept_row, n_kept, feature, *scratch, row, made, made_start, entry_start)
    return row, made[: made_start[n]], made_start[: n + 1], entry_start[: n + 1]


@kernel
def _cut(
    used, use_start, kept_row, n_kept, feature, stretch_of, row_of, pending, place, row, made, made_start, entry_start
):
    """Fill the last four; how many stretches there are.

    ``stretch_of`` and ``row_of`` say of each test which stretch made it last and where, ``pending`` lists the tests of
    the current stretch as they come, ``place`` is for sorting them by feature.
    """
    n_entries = use_start.size - 1
    stretch, n_pending = 0, 0
    for entry in range(n_entries + 1):
        more = 0
        if entry < n_entries:
            for use in range(use_start[entry], use_start[entry + 1]):
                more += kept_row[used[use]] < 0 and stretch_of[used[use]] != stretch
        if entry == n_entries or (n_pending + more > _STRETCH_ROWS and n_pending > 0):
            place[:] = 0
            for i in range(n_pending):
                place[feature[pending[i]] + 1] += 1
            for f in range(place.size - 1):
                place[f + 1] += place[f]
            for i in range(n_pending):
                test = pending[i]
                made[made_start[stretch] + place[feature[test]]] = test
                row_of[test] = n_kept + place[feature[test]]
                place[feature[test]] += 1
            for use in range(use_start[entry_start[stretch]], use_start[entry]):
                row[use] = kept_row[used[use]] if kept_row[used[use]] >= 0 else row_of[used[use]]
            made_start[stretch + 1] = made_start[stretch] + n_pending
            entry_start[stretch + 1] = entry
            stretch += 1
            n_pending = 0
        if entry < n_entries:
            for use in range(use_start[entry], use_start[entry + 1]):
                if kept_row[used[use]] < 0 and stretch_of[used[use]] != stretch:
                    stretch_of[used[use]] = stretch
                    pending[n_pending] = used[use]
                    n_pending += 1
    return stretch


def _intern(feature, mask):
    """Number of each pair, equal ones alike, and where each number was seen first."""
    size = 1 << max(4, (2 * len(feature)).bit_length())
    number, first = np.empty(len(feature), np.int32), np.empty(len(feature), np.int32)
    n_tests = _number(feature, mask, np.full(size, -1, np.int32), number, first)
    return number, first[:n_tests]


@kernel
def _number(feature, mask, seen, number, first):
    """The same by open addressing in ``seen``, all -1, of a power of two entries; how many numbers there are."""
    n_tests = 0
    for i in range(feature.size):
        key = np.uint64(feature[i])
        for word in range(4):
            key = (key ^ mask[i, word]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        place = np.int64(key & np.uint64(seen.size - 1))
        while True:
            test = seen[place]
            if test < 0:
                test = n_tests
                seen[place] = test
                first[test] = i
                n_tests += 1
                break
            j = first[test]
            same = feature[j] == feature[i]
            for word in range(4):
                same &= mask[j, word] == mask[i, word]
            if same:
                break
            place = (place + 1) & (seen.size - 1)
        number[i] = test
    return n_tests


def _describe(feature, mask, n_features):
    """The table of tests, the parts, and how many single codes serve as parts: they are the table's last lines."""
    table = np.full((len(feature), TEST), -1, dtype=np.int32)
    row_of = np.zeros((n_features, 256), dtype=np.int32)  # first 1 where the single code is a part, then its row
    parts = np.empty(_measure(feature, mask, table, row_of), dtype=np.int32)
    single_feature, single_code = np.nonzero(row_of)
    row_of[single_feature, single_code] = np.arange(len(single_code))
    _list_parts(mask, table, row_of, parts)
    singles = np.zeros((len(single_code), TEST), dtype=np.int32)
    singles[:, FEATURE], singles[:, LOW] = single_feature, single_code
    return np.concatenate([table, singles]), parts, len(singles)


@helper
def _lowest(word):
    """Place of the lowest one bit."""
    return int(popcount((word & (~word + np.uint64(1))) - np.uint64(1)))


@kernel
def _measure(feature, mask, table, is_part):
    """Fill the table of tests; mark the single codes that are parts; how many parts there are.

    A threshold, a single category or a cyclic interval is one comparison of bytes.  Any other set is the OR of the
    bitmaps of its codes, or of the codes outside it where those are fewer.
    """
    n_parts = 0
    for test in range(feature.size):
        ones, runs, low = 0, 0, 0
        for word in range(4):
            here = mask[test, word]
            rises = here & ~((here << np.uint64(1)) | (mask[test, (word + 3) & 3] >> np.uint64(63)))
            ones += int(popcount(here))
            runs += int(popcount(rises))
            if rises:
                low = 64 * word + _lowest(rises)
        table[test, FEATURE] = feature[test]
        table[test, LOW] = low
        table[test, PART] = n_parts
        table[test, NEGATE] = ones > 128
        if runs == 1 or ones == 256:
            table[test, SPAN] = ones - 1
        else:
            n_parts += min(ones, 256 - ones)
            for word in range(4):
                rest = ~mask[test, word] if ones > 128 else mask[test, word]
                while rest:
                    is_part[feature[test], 64 * word + _lowest(rest)] = 1
                    rest &= rest - np.uint64(1)
        table[test, STOP] = n_parts
    return n_parts


@kernel
def _list_parts(mask, table, row_of, parts):
    """Fill in the rows of the single codes that each test is put together from."""
    for test in range(mask.shape[0]):
        part = table[test, PART]
        if table[test, SPAN] < 0:
            for word in range(4):
                rest = ~mask[test, word] if table[test, NEGATE] else mask[test, word]
                while rest:
                    parts[part] = row_of[table[test, FEATURE], 64 * word + _lowest(rest)]
                    rest &= rest - np.uint64(1)
                    part += 1
