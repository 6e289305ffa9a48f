"""The bit kernel: one bitmap per test and block of rows, a node is the AND of the tests above it, counts are popcounts.

A block of rows is so short that its bitmaps stay in the second-level cache; all trees are counted for it before the
next block is touched, and nothing is kept per record.  The bitmaps are the rows of one array, the room:

* the tests that are kept for the block, and those made for the current stretch of the trees (see masks.py),
* per depth of the current path, the records at the node there,
* the records at the current node that are in each plane, a set of labels (or that are inside each of four candidates;
  or the binary digits of the leaf of each record),
* the records of the block that are in each plane (see tables.py); of eight planes, one word after the other.

ANDs, ORs and popcounts over a row are plain loops, which LLVM turns into vector instructions.
"""

import numpy as np

from dpforest.counting.bit_words import (
    TURN,
    VECTOR_POPCOUNT,
    add_octet,
    add_octet_4,
    add_where,
    count_both,
    moved,
    or_rows,
    pack_interval,
    pack_octet,
    pointer,
    popcount,
)
from dpforest.counting.compiled import helper, kernel
from dpforest.counting.masks import FEATURE, LOW, NEGATE, PART, SPAN, STOP, TEST
from dpforest.counting.tables import LANES

# Words of 64 rows in a bitmap, 1.5 kB: long enough to start a loop for, and no power of two, which would make the
# bitmaps compete for the same lines of the cache.
WORDS = 192
BLOCK = 64 * WORDS  # rows

# Columns of the table of entries, the nodes in depth-first order.  AFTER: where to go on when no row of the block
# reaches the node.  USE: where the rows of its tests begin, first that of the test that leads here from the parent
# (if TREE < 0, else it is the root of that tree), then the candidates.  FLIP is -1 for the child of the records
# outside the test.
DEPTH, AFTER, SLOT, TREE, FLIP, USE, DIGITS = range(7)
ENTRY = 7

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE = np.uint64(0)
_ONE = np.uint64(1)


@helper
def _pack(row, codes, n, low, span):
    """Bitmap of the first ``n`` codes: which of them lie in the interval."""
    whole = n >> 6
    for i in range(whole):
        row[i] = pack_interval(moved(codes, 64 * i), low, span)
    if n & 63:
        word = _NONE
        for i in range(n & 63):
            word |= np.uint64(np.uint8(codes[64 * whole + i] - low) <= span) << np.uint64(i)
        row[whole] = word


@helper
def _pack_octet(row, labels, n, member):
    """Bitmaps of eight planes, one word of each after the other: the planes of label l are the bits of member[l]."""
    for i in range(0, n, 64):
        pack_octet(moved(row, i // 64 * LANES), moved(labels, i), min(64, n - i), member)


@helper
def _make(bits, first, chosen, begin, end, tests, parts, codes, n_rows, n):
    """Bitmaps of the tests ``chosen[begin:end]``, in the rows from ``first`` on.

    Each is made by one comparison per code, or as the OR of bitmaps that are kept: a few words of all the tests before
    the next words, so that these words of the parts stay in the first-level cache.
    """
    to = moved(bits, (first - begin) * WORDS)
    for j in range(begin, end):
        test = moved(tests, chosen[j] * TEST)
        if test[SPAN] >= 0:
            column = moved(codes, np.int64(test[FEATURE]) * n_rows)
            _pack(moved(to, j * WORDS), column, n, np.uint8(test[LOW]), np.uint8(test[SPAN]))
    for tile in range(0, (n + 63) >> 6, 64):
        for j in range(begin, end):
            test = moved(tests, chosen[j] * TEST)
            if test[SPAN] < 0:
                flip = _ALL if test[NEGATE] else _NONE
                or_rows(moved(to, j * WORDS + tile), moved(bits, tile), WORDS, parts, test[PART], test[STOP], flip)


@helper
def _words(n):
    """Words of a node's bitmap; those after the first ``n`` bits are zero, so that counters may take many at a time."""
    return (n + 64 * TURN - 1) // (64 * TURN) * TURN


@helper
def _root(row, n, assignment, tree):
    """Bitmap of the records that the tree may see (all of them, where ``tree`` is negative); whether there is one."""
    some = _NONE
    for i in range(_words(n)):
        word = _ALL if 64 * i + 64 <= n else (_ONE << np.uint64(n & 63)) - _ONE if 64 * i < n else _NONE
        if tree >= 0:
            word = _NONE
            for j in range(min(64, n - 64 * i)):
                word |= np.uint64(assignment[64 * i + j] == tree) << np.uint64(j)
        row[i] = word
        some |= word
    return some != _NONE


@helper
def _both(row, a, b, flip, words):
    """Bitmap of the records in ``a`` and in ``b`` (with ``flip`` all ones, outside ``b``); whether there is one."""
    some = _NONE
    for i in range(words):
        word = a[i] & (b[i] ^ flip)
        row[i] = word
        some |= word
    return some != _NONE


@helper
def _enter(entry, here, bits, rows, assignment, assigned, n):
    """Make the bitmap of an entry's records; whether there is one."""
    if entry[TREE] >= 0:
        return _root(here, n, assignment, np.int64(entry[TREE] if assigned else -1))
    edge = moved(bits, rows[entry[USE]] * WORDS)
    return _both(here, moved(here, -WORDS), edge, np.uint64(entry[FLIP]), _words(n))


@helper
def _count(a, b, words):
    if not VECTOR_POPCOUNT:
        return count_both(a, b, words)
    total = _NONE
    for i in range(words):
        total += popcount(a[i] & b[i])
    return np.int64(total)


@helper
def _count_2x4(p, q, a, b, c, d, words, to_p, to_q, step):
    """Counts of two planes by four tests at once, six loads for eight counts; added to ``to_p`` and ``to_q``."""
    if not VECTOR_POPCOUNT:
        for k, row in enumerate((a, b, c, d)):
            to_p[step * k] += count_both(p, row, words)
            to_q[step * k] += count_both(q, row, words)
        return
    pa, pb, pc, pd, qa, qb, qc, qd = _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE
    for i in range(words):
        pa += popcount(p[i] & a[i])
        pb += popcount(p[i] & b[i])
        pc += popcount(p[i] & c[i])
        pd += popcount(p[i] & d[i])
        qa += popcount(q[i] & a[i])
        qb += popcount(q[i] & b[i])
        qc += popcount(q[i] & c[i])
        qd += popcount(q[i] & d[i])
    to_p[0] += np.int64(pa)
    to_p[step] += np.int64(pb)
    to_p[2 * step] += np.int64(pc)
    to_p[3 * step] += np.int64(pd)
    to_q[0] += np.int64(qa)
    to_q[step] += np.int64(qb)
    to_q[2 * step] += np.int64(qc)
    to_q[3 * step] += np.int64(qd)


@kernel
def count(
    codes,
    labels,
    runs,
    member,
    assignment,
    first,
    last,
    entries,
    rows,
    tests,
    parts,
    kept,
    made,
    made_start,
    entry_start,
    first_row,
    depth,
    room,
    whole,
    ones,
):
    """Add the counts of rows ``first`` to ``last``: of the nodes, and of their records inside each candidate.

    They go to ``whole`` (n_slots, P) and ``ones`` (n_slots, K, P): first all records, then those in each plane of the
    table, by ``runs`` or ``member`` (see tables.Planes).  K is a multiple of 4, by padding, and P is even if there are
    runs.  Where ``whole`` has no lines, the nodes themselves are not counted.
    """
    n_rows, n_candidates, n_planes = codes.shape[1], ones.shape[1], ones.shape[2]
    n_runs, n_octets = runs.shape[0], member.shape[0]
    bits, uses, assigned = pointer(room), pointer(rows), assignment.size > 0
    stack = moved(bits, first_row * WORDS)
    planes = moved(stack, depth * WORDS)  # at the node; inside four candidates, if there are octets
    labelled = moved(planes, (4 if n_octets > 0 else n_runs) * WORDS)  # in the block
    for begin in range(first, last, BLOCK):
        n = min(BLOCK, last - begin)
        words = _words(n)
        block, own = moved(pointer(codes), begin), moved(pointer(assignment), begin)
        _make(
            bits, np.int64(0), pointer(kept), np.int64(0), kept.size, pointer(tests), pointer(parts), block, n_rows, n
        )
        for p in range(n_runs):
            low, span = np.uint8(runs[p, 0]), np.uint8(runs[p, 1])
            _pack(moved(labelled, p * WORDS), moved(pointer(labels), begin), n, low, span)
        for octet in range(n_octets):
            to = moved(labelled, LANES * octet * WORDS)
            _pack_octet(to, moved(pointer(labels), begin), n, moved(pointer(member), 256 * octet))
        place = 0
        for stretch in range(entry_start.size - 1):
            if place >= entry_start[stretch + 1]:
                continue
            new, stop = np.int64(made_start[stretch]), np.int64(made_start[stretch + 1])
            _make(bits, kept.size, pointer(made), new, stop, pointer(tests), pointer(parts), block, n_rows, n)
            while place < entry_start[stretch + 1]:
                entry = moved(pointer(entries), place * ENTRY)
                here = moved(stack, entry[DEPTH] * WORDS)
                if not _enter(entry, here, bits, uses, own, assigned, n):
                    place = entry[AFTER]
                    continue
                place += 1
                slot = entry[SLOT]
                if slot < 0:
                    continue
                if whole.shape[0] > 0:
                    whole[slot, 0] += _count(here, here, words)
                    for p in range(n_runs):
                        whole[slot, p + 1] += _count(here, moved(labelled, p * WORDS), words)
                    for octet in range(n_octets):
                        to = moved(pointer(whole), slot * n_planes + 1 + LANES * octet)
                        add_octet(moved(labelled, LANES * octet * WORDS), here, WORDS, words, to, n_planes)
                for p in range(n_runs if n_candidates > 0 else 0):
                    _both(moved(planes, p * WORDS), here, moved(labelled, p * WORDS), _NONE, words)
                candidate = moved(uses, entry[USE] + (entry[TREE] < 0))
                for k in range(0, n_candidates, 4):
                    w, x = moved(bits, candidate[k] * WORDS), moved(bits, candidate[k + 1] * WORDS)
                    y, z = moved(bits, candidate[k + 2] * WORDS), moved(bits, candidate[k + 3] * WORDS)
                    to = moved(pointer(ones), (slot * n_candidates + k) * n_planes)
                    if n_octets > 0:
                        for i, row in enumerate((w, x, y, z)):
                            _both(moved(planes, i * WORDS), here, row, _NONE, words)
                            to[i * n_planes] += _count(here, row, words)
                        for octet in range(n_octets):
                            eight = moved(labelled, LANES * octet * WORDS)
                            add_octet_4(eight, planes, WORDS, words, moved(to, 1 + LANES * octet), n_planes)
                        continue
                    for p in range(0, n_runs + 1, 2):
                        one = here if p == 0 else moved(planes, (p - 1) * WORDS)
                        two = moved(planes, p * WORDS) if p < n_runs else one
                        _count_2x4(one, two, w, x, y, z, words, moved(to, p), moved(to, p + 1), n_planes)


@kernel
def add_values(
    codes,
    assignment,
    first,
    last,
    entries,
    rows,
    tests,
    parts,
    kept,
    made,
    made_start,
    entry_start,
    first_row,
    depth,
    tree_start,
    n_digits,
    first_leaf,
    leaf_of,
    values,
    room,
    out,
):
    """Add to ``out`` (n_outputs, n_rows) the ``values`` (n_outputs, n_leaves) of each row's leaves, tree after tree."""
    n_rows, n_outputs = codes.shape[1], out.shape[0]
    bits, uses = pointer(room), pointer(rows)
    stack = moved(bits, first_row * WORDS)
    digits = moved(stack, depth * WORDS)
    for begin in range(first, last, BLOCK):
        n = min(BLOCK, last - begin)
        words = (n + 63) >> 6
        block = moved(pointer(codes), begin)
        _make(
            bits, np.int64(0), pointer(kept), np.int64(0), kept.size, pointer(tests), pointer(parts), block, n_rows, n
        )
        place, tree = 0, 0
        for stretch in range(entry_start.size - 1):
            new, stop = np.int64(made_start[stretch]), np.int64(made_start[stretch + 1])
            _make(bits, kept.size, pointer(made), new, stop, pointer(tests), pointer(parts), block, n_rows, n)
            while place < entry_start[stretch + 1]:
                entry = moved(pointer(entries), place * ENTRY)
                here = moved(stack, entry[DEPTH] * WORDS)
                if entry[TREE] >= 0:
                    for i in range(n_digits * WORDS):
                        digits[i] = _NONE
                if _enter(entry, here, bits, uses, pointer(assignment), assignment.size > 0, n):
                    place += 1
                    for digit in range(n_digits):
                        if entry[DIGITS] >> digit & 1:
                            to = moved(digits, digit * WORDS)
                            for i in range(words):
                                to[i] |= here[i]
                else:
                    place = entry[AFTER]
                if place == tree_start[tree + 1]:
                    leaf_of[:] = first_leaf[tree]
                    for i in range(words):
                        for digit in range(n_digits):
                            add_where(moved(pointer(leaf_of), 64 * i), digits[digit * WORDS + i], np.int32(1 << digit))
                    for o in range(n_outputs):
                        for r in range(n):
                            out[o, begin + r] += values[o, leaf_of[r]]
                    tree += 1
