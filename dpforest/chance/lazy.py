"""Decisions about a uniform real number of which the first bits are drawn, the others only if they matter.

The decisions are exact: rational bounds of ``exp`` and ``ln`` from decimal arithmetic, which is the same everywhere.
They are slow, and rare: :mod:`~dpforest.chance.exact` asks for one where doubles cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import accumulate
from typing import TypeVar

from dpforest.privacy import claim

__all__ = ["Uniform", "floor_of_exponential", "heads", "landing"]

T = TypeVar("T")
WORD = 64  # bits that are drawn at a time


class Uniform:
    """A uniform real number in [0, 1), by its first bits.

    Parameters
    ----------
    word : int
        The first 64 bits.
    more : callable
        ``more()`` draws the next 64.
    """

    def __init__(self, word: int, more: Callable[[], int]):
        self._low, self.bits, self._more = int(word), WORD, more

    @claim("lem-lazy-uniform")
    def settle(self, decide: Callable[[Fraction, Fraction, int], T | None]) -> T:
        """The first answer of ``decide(low, high, digits)`` that is not None, with ever more bits drawn.

        The number lies in ``[low, high)``; ``digits`` decimal digits tell more than its bits do.
        """
        while True:
            low, high = Fraction(self._low, 1 << self.bits), Fraction(self._low + 1, 1 << self.bits)
            if (answer := decide(low, high, self.bits // 3 + 20)) is not None:
                return answer
            self._low, self.bits = self._low << WORD | int(self._more()), self.bits + WORD


def heads(uniform: Uniform, x: Fraction) -> bool:
    """Whether the uniform number lies below ``exp(-x)``, for ``x`` at least 0."""

    def decide(low: Fraction, high: Fraction, digits: int) -> bool | None:
        least, most = _exp_bounds(x, digits)
        return True if high <= least else False if low >= most else None

    return uniform.settle(decide)


def landing(uniform: Uniform, exponents: Sequence[Fraction]) -> int:
    """The index on which the uniform number lands where each has a length in proportion to ``exp(-exponent)``."""

    def decide(low: Fraction, high: Fraction, digits: int) -> int | None:
        bounds = [_exp_bounds(x, digits) for x in exponents]
        ends = [list(accumulate(side)) for side in zip(*bounds, strict=True)]
        passed = 0
        for least, most in list(zip(*ends, strict=True))[:-1]:  # none is beyond the last
            if low * ends[0][-1] >= most:
                passed += 1
            elif high * ends[1][-1] > least:
                return None
        return passed

    return uniform.settle(decide)


def floor_of_exponential(uniform: Uniform, rate: Fraction) -> int:
    """The largest whole k for which the uniform number is at most ``exp(-rate k)``."""

    def decide(low: Fraction, high: Fraction, digits: int) -> int | None:
        if not low:
            return None
        least, most = _minus_log_bounds(high, digits)[0] // rate, _minus_log_bounds(low, digits)[1] // rate
        return int(least) if least == most else None

    return uniform.settle(decide)


def _exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Bounds of ``exp(-x)``, with as many digits; for large ``x`` they are 0 and what is less than any such digit."""
    if not x:
        return Fraction(1), Fraction(1)
    if x > 10 * digits:
        return Fraction(0), Fraction(1, 10 ** (4 * digits))  # e^-10 < 10^-4
    floor, ceiling = _contexts(digits)
    # decimal's exp and ln are correctly rounded, to the nearest whatever the context says; a minus sign alone would
    # round to the digits of the thread's own context
    least = floor.next_minus(floor.exp(_decimal(x, ceiling).copy_negate()))
    most = ceiling.next_plus(ceiling.exp(_decimal(x, floor).copy_negate()))
    return Fraction(least), Fraction(most)


def _minus_log_bounds(share: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Bounds of ``-ln(share)`` for a share in (0, 1]."""
    if share == 1:
        return Fraction(0), Fraction(0)
    floor, ceiling = _contexts(digits)
    least = floor.next_minus(ceiling.ln(_decimal(share, ceiling)).copy_negate())
    most = ceiling.next_plus(floor.ln(_decimal(share, floor)).copy_negate())
    return max(Fraction(least), Fraction(0)), Fraction(most)


def _contexts(digits: int) -> tuple[Context, Context]:
    floor, ceiling = (
        # every setting is given: what is not would come from the thread's defaults
        Context(digits, rounding, MIN_EMIN, MAX_EMAX, capitals=1, clamp=0, flags=[], traps=[])
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    return floor, ceiling


def _decimal(x: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))
