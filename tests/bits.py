"""The samplers that Coq proves, line by line in Python, against what ships, on the same words.

Usage::

    python -m tests.bits [DRAWS]    # a million coins and a tenth of it selections, unless told otherwise

``settle``, ``below``, ``exp_bounds``, ``heads`` and ``waiting`` have the names and the lines of
``tests/formal/Bits.v``, and ``tossed``, ``showing``, ``chosen``, ``flipped`` and ``streamed`` those of
``tests/formal/BitsFlip.v``, ``weight_bounds`` and ``landing`` those of ``tests/formal/Landing.v``; only integers are
used.  That they compute what Coq computes is tested in ``tests/test_bits.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, chain, islice
from typing import TypeVar

import numpy as np

from dpforest.chance.exact import Exact
from dpforest.mechanisms import exponential_law, permute_and_flip_law

T = TypeVar("T")
WORD = 1 << 64
#: Of these many words each is planted at the boundary of its coin, where doubles cannot tell.
EVERY = 100


def settle(base: int, decide: Callable[[int, int], T | None], words: Iterable[int]) -> T | None:
    """The first answer, with ever more words read; None where they do not decide."""
    low = 0
    for j, word in enumerate(words, 1):
        low = low * base + word
        if (answer := decide(j, low)) is not None:
            return answer
    return None


def below(base: int, least: int, most: int, unit: int, j: int, low: int) -> bool | None:
    """Whether all numbers that begin so lie below what lies between the bounds."""
    if (low + 1) * unit <= least * base**j:
        return True
    return False if most * base**j <= low * unit else None


@cache
def exp_bounds(a: int, d: int, k: int) -> tuple[int, int]:
    """Bounds of exp(-a / d), in units of 1 / 4^k."""
    root = 2**k
    one = root * root
    lo, hi = max(0, one - a * root // d - 1), min(one, one * (d * root) // (d * root + a) + 1)
    for _ in range(k):
        lo, hi = lo * lo // one, min(one, hi * hi // one + 1)
    return lo, hi


def heads(base: int, a: int, d: int, digits: Callable[[int], int], words: Iterable[int]) -> bool | None:
    """Whether the uniform number of these words lies below exp(-a / d)."""

    def step(j: int, low: int) -> bool | None:
        return below(base, *exp_bounds(a, d, digits(j)), 4 ** digits(j), j, low)

    return settle(base, step, words)


def waiting(
    base: int, a: int, d: int, digits: Callable[[int], int], looks: Callable[[int], int], words: Iterable[int]
) -> int | None:
    """How many of exp(-a / d), exp(-2a / d), ... the uniform number of these words lies below."""

    def step(j: int, low: int) -> int | None:
        for k in range(looks(j)):
            said = below(base, *exp_bounds((k + 1) * a, d, digits(j)), 4 ** digits(j), j, low)
            if said is not True:
                return None if said is None else k
        return None

    return settle(base, step, words)


def tossed(base: int, a: int, d: int, digits: Callable[[int], int], words: Iterable[int]) -> bool | None:
    """The coin of a candidate: of the best one it shows heads whatever the words."""
    return True if a == 0 else heads(base, a, d, digits, words)


def showing(
    base: int, exponents: Sequence[tuple[int, int]], digits: Callable[[int], int], rows: Sequence[Iterable[int]]
) -> list[int] | None:
    """The candidates whose coins show heads, by their places."""
    shown = [tossed(base, a, d, digits, words) for (a, d), words in zip(exponents, rows, strict=True)]
    return None if None in shown else [at for at, head in enumerate(shown) if head]


def chosen(base: int, k: int, words: Iterable[int]) -> int | None:
    """A uniform number below ``k``: a word modulo ``k``, where words at the top are passed over."""
    for word in words:
        if word < base - base % k:
            return word % k
    return None


def flipped(
    base: int,
    exponents: Sequence[tuple[int, int]],
    digits: Callable[[int], int],
    rows: Sequence[Iterable[int]],
    words: Iterable[int],
) -> int | None:
    """Permute-and-flip: a uniform one of those that show heads, each with probability exp(-a / d)."""
    if (kept := showing(base, exponents, digits, rows)) is None:
        return None
    t = chosen(base, len(kept), words)
    return None if t is None else kept[t]


def streamed(
    base: int, exponents: Sequence[tuple[int, int]], digits: Callable[[int], int], stream: Iterable[int]
) -> int | None:
    """From one stream: a first word for each coin and for the choice, and further ones where they are asked for."""
    stream = iter(stream)
    firsts = list(islice(stream, len(exponents) + 1))
    if len(firsts) <= len(exponents):
        return None
    rows = [chain([word], stream) for word in firsts]
    return flipped(base, exponents, digits, rows[:-1], rows[-1])


def weight_bounds(a: int, d: int, k: int) -> tuple[int, int]:
    """Bounds of a candidate's weight, in units of 1 / 4^k: that of the best one is 1."""
    return (4**k, 4**k) if a == 0 else exp_bounds(a, d, k)


def landing(
    base: int, exponents: Sequence[tuple[int, int]], digits: Callable[[int], int], words: Iterable[int]
) -> int | None:
    """The exponential mechanism: on which of the weights exp(-a / d), end to end, the uniform number lands."""

    def step(j: int, low: int) -> int | None:
        bounds = [weight_bounds(a, d, digits(j)) for a, d in exponents]
        lower, upper = (list(accumulate(side)) for side in zip(*bounds, strict=True))
        least, most = lower[-1], upper[-1]
        before = [
            below(base, lo * least, hi * most, most * least, j, low)
            for lo, hi in zip(lower[:-1], upper[:-1], strict=True)
        ]
        return None if None in before else before.count(False)

    return settle(base, step, words)


class Given(Exact):
    """A source whose words are given, and which counts how many were read."""

    def __init__(self, words: np.ndarray):
        self.words, self.read = words, 0

    def _words(self, size: int) -> np.ndarray:
        self.read += size
        assert self.read <= len(self.words)
        return self.words[self.read - size : self.read].copy()


def shipped(rates: np.ndarray, first: np.ndarray, more: np.ndarray, size: int | None = None) -> tuple[list[bool], int]:
    """The coins of the code that ships, and how many of ``more`` it read, in the order of the coins that need them.

    All are tossed at once, or so many: few are tossed one by one, by lines of their own.
    """
    source, coins = Given(more), list[bool]()
    for start in range(0, len(rates), size or len(rates)):
        own = rates[start : start + (size or len(rates))]
        words = first[start : start + len(own)]
        coins += source._heads(words, own, np.ones(len(own)), lambda at, own=own: Fraction(own[at])).tolist()
    return coins, source.read


def proved(
    rates: np.ndarray, first: np.ndarray, more: np.ndarray, coin: Callable[..., bool | None] = heads
) -> tuple[list[bool | None], int]:
    """The coins of the program that Coq has proved, on the same words, and how many of ``more`` it read.

    With bounds as close as these a coin of exp(-2^-60), whose boundary is 2^-57 of a word from a word's end, reads as
    many words as the one that ships; with coarser ones it would read one more, and give the same answer.
    """
    queue = iter(more.tolist())
    exact = {rate: Fraction(rate).as_integer_ratio() for rate in set(rates.tolist())}
    coins = [
        coin(WORD, *exact[rate], lambda j: 64 * j + 100, chain([word], queue))
        for rate, word in zip(rates.tolist(), first.tolist(), strict=True)
    ]
    return coins, len(more) - len(list(queue))


def asked(draws: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates of coins, their first words and further ones: one coin in ``EVERY`` at its boundary, or next to it."""
    rng = np.random.default_rng(seed)
    few = np.concatenate([[2.0**-60, 2.0**-20, 0.1, 1.0, 44.0], rng.exponential(2.0, 195)])
    rates = few[rng.integers(len(few), size=draws)]
    first = rng.integers(WORD, size=draws, dtype=np.uint64)
    for at in range(0, draws, EVERY):
        low, _ = exp_bounds(*Fraction(rates[at]).as_integer_ratio(), 200)
        first[at] = min(max((low * WORD >> 400) + int(rng.integers(-1, 2)), 0), WORD - 1)
    return rates, first, rng.integers(WORD, size=draws, dtype=np.uint64)


def asked_to_wait(draws: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rates of geometric numbers, and three words for each: one in ten begins at the end of a number, or next to it."""
    rng = np.random.default_rng(seed)
    rates = np.array([0.1, 0.25, 0.5, 1.0, 2.7, 9.0])[rng.integers(6, size=draws)]
    words = rng.integers(WORD, size=(draws, 3), dtype=np.uint64)
    for at in range(0, draws, 10):
        a, d = Fraction(rates[at]).as_integer_ratio()
        low, _ = exp_bounds(int(rng.integers(1, 9)) * a, d, 200)
        words[at, 0] = min(max((low * WORD >> 400) + int(rng.integers(-1, 2)), 0), WORD - 1)
    return rates, words


def shipped_waits(
    rates: np.ndarray, words: np.ndarray, draw: Callable[[Given, np.ndarray], np.ndarray] = Exact._geometric
) -> list[int]:
    """The geometric numbers of the code that ships, each on words of its own: one by one, or as ``draw`` has arrays."""
    return [draw(Given(own), rates[at : at + 1]).item() for at, own in enumerate(words)]


def proved_waits(rates: np.ndarray, words: np.ndarray, number: Callable[..., int | None] = waiting) -> list[int | None]:
    """Those of the program that Coq has proved, on the same words."""
    exact = [Fraction(rate).as_integer_ratio() for rate in rates.tolist()]
    return [
        number(WORD, a, d, lambda j: 64 * j + 100, lambda j: 500 * j, own)
        for (a, d), own in zip(exact, words.tolist(), strict=True)
    ]


def asked_to_choose(draws: int, seed: int = 0) -> list[tuple[list[float], float, np.ndarray]]:
    """Scores, a rate, and words for a selection each.

    Of four, one has a word at the boundary of its coin, or next to it, one begins where a candidate's weight ends, and
    one has a word of the choice among the last, of which some are passed over.
    """
    rng = np.random.default_rng(seed)
    asked = []
    for at in range(draws):
        scores = rng.integers(9, size=rng.integers(1, 10)) / 4
        rate = float(rng.choice([2.0**-60, 0.1, 0.5, 1.0, 2.7]))
        words = rng.integers(WORD, size=2 * len(scores) + 10, dtype=np.uint64)
        planted, move = int(rng.integers(len(scores))), int(rng.integers(-1, 2))
        bounds = [exp_bounds(*exponent, 200)[0] for exponent in exponents_of(scores.tolist(), rate)]
        if at % 4 == 0:
            words[planted] = min(max((bounds[planted] * WORD >> 400) + move, 0), WORD - 1)
        if at % 4 == 1:
            words[len(scores)] = WORD - 1 - int(rng.integers(4))
        if at % 4 == 2:
            words[0] = min(max(sum(bounds[: planted + 1]) * WORD // sum(bounds) + move, 0), WORD - 1)
        if at % 5 == 0:  # what is no candidate has no word: one may stand anywhere
            scores = np.insert(scores, int(rng.integers(len(scores) + 1)), -np.inf)
        asked.append((scores.tolist(), rate, words))
    return asked


def exponents_of(scores: list[float], rate: float) -> list[tuple[int, int]]:
    """``rate (best - score)`` of each score, as a fraction."""
    best = Fraction(max(scores))
    return [(Fraction(rate) * (best - Fraction(score))).as_integer_ratio() for score in scores]


LAWS = {"permute-and-flip": permute_and_flip_law, "exponential": exponential_law}


def shipped_choices(asked: list[tuple[list[float], float, np.ndarray]], kind: str) -> list[tuple[int, int]]:
    """The selections of the code that ships, each on words of its own, and how many words it read."""
    answers = []
    for scores, rate, words in asked:
        source = Given(words)
        found = source.select(kind, LAWS[kind], np.array([scores]), np.array([rate]))
        answers.append((found.item(), source.read))
    return answers


def proved_choices(asked: list[tuple[list[float], float, np.ndarray]], kind: str) -> list[tuple[int | None, int]]:
    """Those of the programs that Coq has proved, on the same words."""
    program = {"permute-and-flip": streamed, "exponential": landing}[kind]
    answers = list[tuple[int | None, int]]()
    for scores, rate, words in asked:
        able = [at for at, score in enumerate(scores) if score > -np.inf]
        stream = iter(words.tolist())
        found = program(WORD, exponents_of([scores[at] for at in able], rate), lambda j: 64 * j + 100, stream)
        answers.append((None if found is None else able[found], len(words) - len(list(stream))))
    return answers


def main(arguments: list[str]) -> int:
    """Run the command line."""
    draws = int(arguments[0]) if arguments else 1_000_000
    question = asked(draws)
    (one, read), (other, also) = shipped(*question), proved(*question)
    differ = sum(a is not b for a, b in zip(one, other, strict=True))
    print(f"{draws} coins of the proved program and of the code that ships, on the same words: {differ} differ")
    print(f"{read} and {also} of them took a second word")
    choices = asked_to_choose(draws // 10)
    for kind in LAWS:
        pairs = zip(shipped_choices(choices, kind), proved_choices(choices, kind), strict=True)
        unlike = sum(one != other for one, other in pairs)
        print(f"{len(choices)} selections ({kind}), on the same words: {unlike} differ, in answer or words read")
        differ += unlike
    return int(differ > 0 or read != also)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
