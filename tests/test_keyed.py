"""Coins of records: SipHash as its authors publish it, exact laws on all hashes, the same coin whoever asks for it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest.chance import keyed

WORDS = 1 << 64
words = st.integers(0, WORDS - 1)
keys = st.tuples(words, words)


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.uint64)


# -- the hash --------------------------------------------------------------------------------------------------------


def siphash(key: bytes, message: bytes) -> int:
    """SipHash-2-4 from the text of the paper (Aumasson and Bernstein, 2012), byte by byte, in Python integers."""

    def rotate(word, by):
        return (word << by | word >> (64 - by)) % WORDS

    def rounds(times):
        for _ in range(times):
            v[0] = (v[0] + v[1]) % WORDS
            v[2] = (v[2] + v[3]) % WORDS
            v[1], v[3] = rotate(v[1], 13) ^ v[0], rotate(v[3], 16) ^ v[2]
            v[0] = rotate(v[0], 32)
            v[2], v[0] = (v[2] + v[1]) % WORDS, (v[0] + v[3]) % WORDS
            v[1], v[3] = rotate(v[1], 17) ^ v[2], rotate(v[3], 21) ^ v[0]
            v[2] = rotate(v[2], 32)

    halves = [int.from_bytes(key[at : at + 8], "little") for at in (0, 8)]
    v = [int.from_bytes(b"somepseudorandomlygeneratedbytes"[at : at + 8], "big") for at in (0, 8, 16, 24)]
    v = [word ^ halves[at % 2] for at, word in enumerate(v)]
    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for at in range(0, len(padded), 8):
        block = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= block
        rounds(2)
        v[0] ^= block
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


#: Of the authors' test program: the key is 00 01 ... 0f, the message the first so many of the bytes 00 01 02 ...
PUBLISHED = {0: 0x726FDB47DD0E0E31, 1: 0x74F839C593DC67FD, 8: 0x93F5F5799A932462, 15: 0xA129CA6149BE45E5}


def test_the_hash_is_the_published_one():
    for length, expected in PUBLISHED.items():
        assert siphash(bytes(range(16)), bytes(range(length))) == expected
    key = 0x0706050403020100, 0x0F0E0D0C0B0A0908
    found = keyed.siphash(key, ids(0x0706050403020100))
    assert found.dtype == np.uint64
    assert found.tolist() == [PUBLISHED[8]]


@settings(max_examples=200, deadline=None)
@given(keys, st.lists(words | st.sampled_from([0, 1, WORDS - 1, 1 << 63, (1 << 63) - 1]), max_size=20))
def test_the_hash_is_that_of_the_paper_for_every_number(key, numbers):
    text = b"".join(word.to_bytes(8, "little") for word in key)
    expected = [siphash(text, number.to_bytes(8, "little")) for number in numbers]
    assert keyed.siphash(key, ids(*numbers)).tolist() == expected


def test_numbers_that_lie_apart_in_memory_are_hashed_alike():
    numbers = np.arange(40, dtype=np.uint64)
    whole = keyed.siphash((1, 2), numbers)
    np.testing.assert_array_equal(keyed.siphash((1, 2), numbers[::3]), whole[::3])
    np.testing.assert_array_equal(keyed.siphash((1, 2), numbers.astype(np.int64)), whole)
    assert keyed.siphash((1, 2), numbers[:0]).shape == (0,)


def test_the_hash_tells_keys_and_numbers_apart():
    """65 keys that differ in one bit, 65 numbers that do: no hash comes twice, and half of the bits change."""
    near = [0, *(1 << bit for bit in range(64))]
    table = np.array([keyed.siphash(key, ids(*near)) for key in [(0, 0), *((b, 0) for b in near[1:])]])
    assert len(set(table.ravel().tolist())) == 65 * 65
    flips = np.bitwise_count(table[1:] ^ table[:1])  # by one bit of the key
    flipped = np.bitwise_count(table[:, 1:] ^ table[:, :1])  # by one bit of the number
    for bits in (flips, flipped):
        assert abs(bits.mean() - 32) < 5 * 4 / math.sqrt(bits.size)
        assert abs(bits.var() - 16) < 5 * 16 * math.sqrt(2 / bits.size)
    assert keyed.siphash((0, 1), ids(7)) != keyed.siphash((1, 0), ids(7))


# -- coins -----------------------------------------------------------------------------------------------------------

HIGHS = [1, 2, 3, 7, 10, 255, 1000, 65_537, (1 << 31) - 1]


def answering(monkeypatch, hashes: np.ndarray) -> None:
    """Let the hash of the record i be ``hashes[i]``."""
    monkeypatch.setattr(keyed, "siphash", lambda key, numbers: hashes[numbers.astype(np.int64)])


def edges(high: int, outcomes) -> list[int]:
    """The least hash that gives each outcome, by the definition: floor(hash * high / 2^64) >= outcome."""
    return [-(-outcome * WORDS // high) for outcome in outcomes]


@pytest.mark.claim("thm-keyed-assignment")
@pytest.mark.parametrize("high", HIGHS)
def test_each_coin_has_its_share_of_all_hashes(high, monkeypatch):
    """The coin is floor(hash * high / 2^64): right at both ends of each outcome, hence exact on all 2^64 hashes."""
    some = sorted({*range(min(high, 300)), high // 2, high - 1, *range(0, high, high // 300 + 1)})
    least = edges(high, [*some, high])[:-1]
    last = [edge - 1 for edge in edges(high, [outcome + 1 for outcome in some])]
    assert least[0] == 0
    assert last[-1] == WORDS - 1
    shares = [Fraction(b - a + 1, WORDS) for a, b in zip(least, last, strict=True)]
    assert all(abs(share - Fraction(1, high)) < Fraction(1, WORDS) for share in shares)
    if high <= 300:
        assert sum(shares) == 1
    if WORDS % high == 0:
        assert set(shares) == {Fraction(1, high)}
    for hashes in (least, last):
        answering(monkeypatch, ids(*hashes))
        assert keyed.coins((0, 0), np.arange(len(some), dtype=np.uint64), high).tolist() == some


@settings(max_examples=200, deadline=None)
@given(keys, st.lists(words, min_size=1, max_size=30), st.sampled_from(HIGHS))
def test_a_coin_is_the_hash_scaled_down(key, numbers, high):
    found = keyed.coins(key, ids(*numbers), high)
    assert found.dtype == np.int64
    assert found.tolist() == [hashed * high // WORDS for hashed in keyed.siphash(key, ids(*numbers)).tolist()]


@pytest.mark.parametrize("high", [2, 3, 10, 1000])
def test_coins_of_neighbouring_numbers_look_independent(high):
    """A million numbers in a row, and the pairs of neighbours: chi-square within five standard deviations."""
    n = 1_000_000
    coins = keyed.coins((2026, 11), np.arange(n, dtype=np.uint64), high)
    pairs = coins[1:] * high + coins[:-1]
    for values, cells in ((coins, high), (pairs, high * high)):
        if cells > n // 50:
            continue
        expected = len(values) / cells
        statistic = float(((np.bincount(values, minlength=cells) - expected) ** 2).sum() / expected)
        assert abs(statistic - (cells - 1)) < 5 * math.sqrt(2 * (cells - 1))
    other = keyed.coins((2026, 12), np.arange(n, dtype=np.uint64), high)
    share = float((coins == other).mean())
    assert abs(share - 1 / high) < 5 * math.sqrt(1 / high / n)


# -- copies ----------------------------------------------------------------------------------------------------------


def poisson(digits: int = 80) -> list[Fraction]:
    """Poisson's law of mean 1 for 0 to 60, from the decimals of 1/e: each off by less than 10^-(digits - 2)."""
    with localcontext() as context:
        context.prec = digits
        inverse = Fraction(Decimal(-1).exp())
    return [inverse / math.factorial(k) for k in range(61)]


def law_of_copies(monkeypatch) -> list[Fraction]:
    """The shipped law, hash by hash: bisection for the least hash with k copies, since more hash means more copies."""

    def found(hashed: int) -> int:
        answering(monkeypatch, ids(hashed))
        return int(keyed.copies((0, 0), ids(0))[0])

    most, least = found(WORDS - 1), [0]
    for k in range(1, most + 1):
        low, high = least[-1], WORDS - 1  # found(low) < k <= found(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if found(middle) >= k else (middle, high)
        least.append(high)
    return [Fraction(b - a, WORDS) for a, b in zip(least, [*least[1:], WORDS], strict=True)]


def test_copies_follow_poissons_law_and_never_exceed_it(monkeypatch):
    """In fractions, with an independent 1/e: at most 20 copies, never more likely more, and closer than 2^-58."""
    exact, shipped = poisson(), law_of_copies(monkeypatch)
    error = Fraction(1, 10**70)
    assert len(shipped) == 21  # 0 to 20 copies
    assert sum(shipped) == 1
    assert exact[0] < Fraction(math.e) ** -1 + Fraction(1, 10**15)  # 1/e it is
    above_shipped, above_exact = Fraction(1), Fraction(1)
    for k in range(21):  # P(at least k copies)
        assert above_shipped <= above_exact + error
        assert above_exact - above_shipped < Fraction(1, WORDS) + error  # by less than one hash of 2^64
        above_shipped, above_exact = above_shipped - shipped[k], above_exact - exact[k]
    distance = sum(abs(p - (shipped[k] if k < 21 else 0)) for k, p in enumerate(exact)) / 2
    assert distance + error < Fraction(1, 2**58)


def test_a_law_rounded_the_other_way_is_found(monkeypatch):
    """The planted fault: thresholds rounded down make one copy more likely than Poisson's law does."""
    monkeypatch.setattr(keyed, "_STEPS", keyed._STEPS - np.uint64(1))
    with pytest.raises(AssertionError):
        test_copies_follow_poissons_law_and_never_exceed_it(monkeypatch)


@pytest.mark.claim("thm-bootstrap")
def test_a_capped_poisson_number_costs_no_more_than_poissons():
    """A tree that costs u per copy (u = e^ε) costs at most E[u^N] in ratio: less for fewer copies, for every u > 1."""
    exact = poisson()
    steps = [int(step) for step in keyed._STEPS]
    shipped = [Fraction(b - a, WORDS) for a, b in zip([0, *steps], [*steps, WORDS], strict=True)]
    for u in (Fraction(3, 2), Fraction(2), Fraction(10)):
        mine, poissons = (sum(p * u**k for k, p in enumerate(law)) for law in (shipped, exact))
        assert mine < poissons
        assert float(poissons) == pytest.approx(math.exp(float(u) - 1), rel=1e-9)
        if u <= 2:
            assert float(mine) == pytest.approx(math.exp(float(u) - 1), rel=1e-9)


@settings(max_examples=50, deadline=None)
@given(keys, st.lists(words, max_size=30))
def test_copies_are_a_function_of_the_hash(key, numbers):
    found = keyed.copies(key, ids(*numbers))
    assert found.dtype == np.int64
    thresholds = keyed._STEPS.tolist()
    hashes = keyed.siphash(key, ids(*numbers)).tolist()
    assert found.tolist() == [sum(hashed >= step for step in thresholds) for hashed in hashes]


# -- the same coin whoever asks ----------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(keys, st.integers(1, 200), st.data())
def test_any_cutting_and_any_order_give_the_same_coins(key, n, data):
    numbers = np.arange(n, dtype=np.uint64) * np.uint64(3) + np.uint64(WORDS - 300)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    order = np.array(data.draw(st.permutations(range(n))))
    for ask in (lambda who: keyed.coins(key, who, 10), lambda who: keyed.copies(key, who)):
        whole = ask(numbers)
        pieces = [ask(numbers[a:b]) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
        np.testing.assert_array_equal(np.concatenate(pieces), whole)
        np.testing.assert_array_equal(ask(numbers[order]), whole[order])


@pytest.mark.slow
def test_another_process_gives_the_same_coins():
    """Text keys too, whatever seed Python salts its own hashes with: a worker is another process."""
    code = (
        "import numpy as np; from dpforest.chance import keyed; numbers = keyed.identify(['a', 'ä', '', 7, 2.5]);"
        "print(numbers.tolist(), keyed.coins((3, 4), numbers, 1000).tolist(), keyed.copies((3, 4), numbers).tolist())"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    ).stdout
    numbers = keyed.identify(["a", "ä", "", 7, 2.5])
    here = [numbers.tolist(), keyed.coins((3, 4), numbers, 1000).tolist(), keyed.copies((3, 4), numbers).tolist()]
    assert said == " ".join(map(str, here)) + "\n"


# -- numbers of keys -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_whole_numbers_are_their_own_numbers(kind):
    info = np.iinfo(kind)
    values = np.array([info.min, info.max, 0, 5], dtype=kind)
    found = keyed.identify(values)
    assert found.dtype == np.uint64
    assert found.tolist() == [value % WORDS for value in values.tolist()]
    assert keyed.identify(pd.Series(values)).tolist() == found.tolist()
    assert len(set(found.tolist())) == len(set(values.tolist()))


def test_the_same_whole_number_in_any_width_is_the_same_record():
    values = [-3, 0, 100]
    found = {tuple(keyed.identify(np.array(values, dtype=kind)).tolist()) for kind in ("int8", "int32", "int64")}
    assert found == {(WORDS - 3, 0, 100)}


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "", "ä", "a b", "A"],
        [1.5, -0.25, 1e-300, 2.0],
        [7, 7.5, "x", "7.0"],
        [True, False],
    ],
)
def test_other_keys_are_hashed_one_by_one(values):
    found = keyed.identify(pd.Series(values))
    assert found.dtype == np.uint64
    assert found.shape == (len(values),)
    assert len(set(found.tolist())) == len(values)
    # no key's number depends on the keys beside it, nor on their order or number
    for at in range(len(values)):
        alone = pd.Series(values)[at : at + 1]
        assert keyed.identify(alone).tolist() == [found[at]]
    assert keyed.identify(pd.Series(values)[::-1]).tolist() == found[::-1].tolist()


def test_a_key_beside_any_other_keeps_its_number():
    """One more record turns a column of integers into objects or floats; no other record may notice."""
    plain = keyed.identify(pd.Series(range(1, 9))).tolist()
    assert plain == [*range(1, 9)]
    for more in ("A17", 2.5, True, -1, 7, 7.0, "7", "", 10**30, np.float32(0.5), np.int8(3)):
        for columns in ([pd.Series(range(1, 9)), pd.Series([more])], [pd.Series([more]), pd.Series(range(1, 9))]):
            found = keyed.identify(pd.concat(columns, ignore_index=True)).tolist()
            assert (found[:8] if len(columns[0]) == 8 else found[1:]) == plain, more
        assert keyed.identify([*range(1, 9), more]).tolist()[:8] == plain, more
    assert keyed.identify([*range(1, 9), 2**63]).tolist() == [*range(1, 9), 2**63]
    numbers = keyed.identify(pd.Series([7, 7.0, True, "7", "7.0", 2**63, -(2**63), 2**64 + 7], dtype=object)).tolist()
    assert numbers[:3] == [7, 7, 1]
    assert len({*numbers[1:5], 7}) == 4
    assert numbers[5:] == [2**63, 2**63, 7]


@pytest.mark.parametrize(
    "keys", [[2.0**53], [1.5, -1e300], pd.Series([2**60, None]).fillna(0), np.array([2**53], dtype=np.longdouble)]
)
def test_floats_that_may_be_several_integers_are_no_keys(keys):
    with pytest.raises(ValueError, match="floats of 2\\^53 or more"):
        keyed.identify(keys)


@pytest.mark.parametrize(
    "keys",
    [
        [b"a"],
        [("a",)],
        [1, [2]],
        [[1], [2, 3]],
        [np.timedelta64(3, "s"), "a"],
        [np.datetime64(3, "s")],
        [pd.Timestamp("2026-11-22")],
        [1 + 2j],
        [7, object()],
    ],
)
def test_what_is_neither_number_nor_text_is_no_key(keys):
    with pytest.raises(TypeError, match=r"whole numbers? or text|neither a number nor text|holds times"):
        keyed.identify(pd.Series(keys))


@pytest.mark.parametrize("keys", [7, "a", [[1, 2]], np.zeros((2, 2), dtype=int)])
def test_keys_are_one_column(keys):
    with pytest.raises(ValueError, match="record keys must be one-dimensional"):
        keyed.identify(keys)


def test_text_that_cannot_be_written_is_no_key():
    with pytest.raises(ValueError, match="text that can be written in UTF-8"):
        keyed.identify(["a", "\ud800"])


def test_text_is_the_same_record_in_every_kind_of_column():
    values = ["x", "y", "x", "z"]
    plain = keyed.identify(values).tolist()
    assert plain[0] == plain[2]
    for column in (
        pd.Series(values),
        pd.Series(values, dtype="string"),
        pd.Series(values, dtype="category"),
        np.array(values),
        np.array(values, dtype=object),
        pa.chunked_array([values]),
        np.array(values)[:, None],
    ):
        assert keyed.identify(column).tolist() == plain


@pytest.mark.parametrize(
    "values",
    [
        ["a", None],
        [1.0, float("nan")],
        [Decimal("sNaN"), 1],
        pd.Series(["a", None], dtype="category"),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", pd.NA], dtype="string"),
    ],
)
def test_a_missing_key_is_an_error(values):
    with pytest.raises(ValueError, match="a record key is missing: every record needs one"):
        keyed.identify(values)


def test_no_keys_are_no_numbers():
    for values in ([], np.empty(0, dtype=np.int64), pd.Series([], dtype="string")):
        found = keyed.identify(values)
        assert found.shape == (0,)
        assert found.dtype == np.uint64
