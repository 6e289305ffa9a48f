"""Elementary functions by fixed operations: the same bits on every machine.

``np.exp`` and its like differ in the last places between processors (numpy/numpy#23523), those of ``math`` between C
libraries.  What is released, drawn or charged must not.  Here a function is a fixed sequence of +, -, *, / and sqrt of
doubles, each rounded as IEEE 754 says, and of operations that do not round at all: ``rint``, ``frexp``, a product with
a power of two.  NumPy performs each in a loop of its own, so none can be fused with the next.

Sums are another matter: ``@``, ``np.dot``, ``np.einsum`` and ``np.linalg`` add up floats in an order that the processor
decides.  ``np.add.reduce`` does not (:func:`matmul`), and whole numbers add up exactly in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, wraps
from math import cos, factorial, frexp, inf, ldexp, nan, pi
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

__all__ = [
    "asinh",
    "cbrt",
    "exp",
    "expm1",
    "gauss_legendre",
    "log",
    "log1p",
    "log2",
    "logaddexp",
    "matmul",
    "sigmoid",
    "sinh",
    "tanh",
]

#: A Python float, or an array of floats: what comes is what is given back.
Number = TypeVar("Number", float, np.ndarray)
Kernel = Callable[[np.ndarray], np.ndarray]  # of a flat, short array

#: So many numbers at a time, that what lies between stays in the processor's cache.
BLOCK = 1 << 14
#: So few are quicker one by one, in Python.
FEW = 16

# ln 2 in two parts: the first has 32 bits, so that its product with an exponent is exact
LN2_HIGH = 0x162E42FEE0000000 / 2**61
LN2_LOW = 1.9082149292705877e-10
INVERSE_LN2 = 1.4426950408889634
SQRT_HALF = 0.7071067811865476

# B_2k / (2k)! * 2 for k = 1 .. 7: r coth(r / 2) = 2 + r^2 / 6 - r^4 / 360 + ...; the next is below 2e-18 for r <= 0.35
COTH = [1 / 6, -1 / 360, 1 / 15120, -1 / 604800, 1 / 23950080, -691 / 653837184000, 1 / 37362124800]
# 2 / (2k + 1) for k = 1 .. 10: log((1 + s) / (1 - s)) = 2 s + s (2/3 s^2 + 2/5 s^4 + ...); the next is below 7e-19
ATANH = [2 / (2 * k + 1) for k in range(1, 11)]
# 1 / n! for n = 2 .. 19: e^x = 1 + x + x^2 (1/2 + x / 6 + ...); the next is below 5e-19 for |x| <= 1
TAYLOR = [1 / factorial(n) for n in range(2, 20)]


def _elementwise(one: Callable[[float], float]) -> Callable[[Kernel], Callable[[Number], Number]]:
    """A function of floats of any shape from one of a flat, short array, and from one of a Python float.

    Both do the same operations, so their bits are the same; for a few numbers Python is quicker.  A Python number gives
    a Python float.
    """

    def made(kernel: Kernel) -> Callable[[Number], Number]:
        @wraps(kernel)
        def function(x: Any) -> Any:
            if type(x) is float:
                return one(x)
            values = np.asarray(x, dtype=float)
            if values.size <= FEW:
                out = np.array([one(value) for value in values.ravel().tolist()])
            else:
                flat = values.ravel()
                out = np.empty(flat.shape)
                with np.errstate(all="ignore"):  # inf and nan are values here
                    for start in range(0, len(flat), BLOCK):
                        out[start : start + BLOCK] = kernel(flat[start : start + BLOCK])
            if isinstance(x, (np.ndarray, np.generic)) or values.ndim:
                return out.reshape(values.shape)[()]
            return float(out[0])

        return function

    return made


def _polynomial(x: Number, coefficients: list[float]) -> Number:
    total = coefficients[-1] * x
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= x
    total += coefficients[0]
    return total


def _power_of_two(k: np.ndarray) -> np.ndarray:
    """2^k for int64 k from -1022 to 1023, by its bits."""
    return ((k + 1023) << 52).view(np.float64)


def _exp_one(x: float) -> float:
    if x != x:
        return x
    x = min(max(x, -750.0), 710.0)
    k = round(x * INVERSE_LN2)
    half = k >> 1
    return _exp_of_rest(x, float(k)) * ldexp(1.0, half) * ldexp(1.0, k - half)


def _exp_of_rest(x: Number, k: Number) -> Number:
    """e^(x - k ln 2), see :func:`exp`."""
    high, low = x - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    c = r * r
    c *= _polynomial(c, COTH)
    c = r - c
    r *= c
    r /= 2 - c
    r -= low
    return _add_to_sum(1.0, high, r)


@_elementwise(_exp_one)
def exp(x: np.ndarray) -> np.ndarray:
    """e^x to within 0.7 units in the last place; one unit where the result is subnormal.

    Notes
    -----
    ``x = k ln 2 + r`` with ``|r| <= 0.347``, ``r = high - low`` to 2^-86, and ``e^r = 1 + 2 r / (g - r)`` with
    ``g = r coth(r / 2)``, which is ``1 + r + r c / (2 - c)`` with ``c = r + 2 - g``.  What is added to the exact sum
    of 1 and ``high`` is below 0.07, and its own roundings, a few times 2^-53 of itself, a small share of a unit.
    """
    usual = (np.abs(x) <= 700).all()
    missing = np.isnan(x)
    if not usual:
        x = np.clip(np.where(missing, 0.0, x), -750.0, 710.0)
    k = np.rint(x * INVERSE_LN2)
    y = _exp_of_rest(x, k)
    exponent = k.astype(np.int64)
    if usual:
        y *= _power_of_two(exponent)
        return y
    half = exponent >> 1
    y *= _power_of_two(half)  # exact; only the second product rounds, if the result is subnormal
    y *= _power_of_two(exponent - half)
    y[missing] = np.nan
    return y


def _add_to_sum(a: Number | float, b: Number, small: Number) -> Number:
    """``a + b + small`` rounded nearly once, where ``|b| <= |a|`` or a is 0."""
    total = a + b
    error = total - a
    error = b - error  # exact
    error += small
    total += error
    return total


def _reduced(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``k`` and ``f`` with x = 2^k (1 + f), and sqrt(1/2) <= 1 + f < sqrt(2)."""
    f, k = np.frexp(x)
    low = f < SQRT_HALF
    f += np.where(low, f, 0.0)
    f -= 1
    return k - low.astype(float), f


def _reduced_one(x: float) -> tuple[float, float]:
    f, k = frexp(x)
    return (k - 1.0, f + f - 1) if f < SQRT_HALF else (float(k), f - 1)


def _log1p(f: Number) -> Number:
    """log(1 + f) - f for f between sqrt(1/2) - 1 and sqrt(2) - 1: below 0.09."""
    s = f / (2 + f)
    square = s * s
    rest = _polynomial(square, ATANH)
    rest *= square
    half = f * f
    half *= 0.5
    rest += half
    rest *= s
    rest -= half
    return rest


def _log_of_parts(k: Number, f: Number, error: Number | float = 0.0) -> Number:
    """log(2^k (1 + f)), and ``error`` more."""
    small = _log1p(f)
    small += k * LN2_LOW + error
    return _add_to_sum(k * LN2_HIGH, f, small)


def _with_ends(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``y``, but the logarithm's values where x is 0, negative, infinite or NaN."""
    if not ((x > 0) & (x < np.inf)).all():
        y[x == np.inf] = np.inf
        y[x == 0] = -np.inf
        y[(x < 0) | np.isnan(x)] = np.nan
    return y


def _end(x: float) -> float:
    """The logarithm's value where x is 0, negative, infinite or NaN."""
    return -inf if x == 0 else inf if x == inf else nan


def _log_one(x: float) -> float:
    return _log_of_parts(*_reduced_one(x)) if 0 < x < inf else _end(x)


@_elementwise(_log_one)
def log(x: np.ndarray) -> np.ndarray:
    """The natural logarithm to within 0.9 units in the last place; -inf at 0, NaN below.

    Notes
    -----
    ``x = 2^k (1 + f)``, and ``log(1 + f) = 2 artanh(s) = f - f^2 / 2 + s (f^2 / 2 + R(s^2))`` with ``s = f / (2 + f)``.
    ``k LN2_HIGH`` is exact, its sum with ``f`` is kept in two parts, and what is added to them is at most 0.09.
    """
    return _with_ends(x, _log_of_parts(*_reduced(x)))


def _log2_of_parts(k: Number, f: Number) -> Number:
    return k + (f + _log1p(f)) * INVERSE_LN2


def _log2_one(x: float) -> float:
    return _log2_of_parts(*_reduced_one(x)) if 0 < x < inf else _end(x)


@_elementwise(_log2_one)
def log2(x: np.ndarray) -> np.ndarray:
    """The logarithm to base 2 to within 2 units in the last place; exact at powers of two."""
    return _with_ends(x, _log2_of_parts(*_reduced(x)))


def _log1p_one(x: float) -> float:
    whole = 1 + x
    if not 0 < whole < inf or x == 0:
        return x if x == 0 else _end(whole)
    error = (1 - (whole - x) if x > 1 else x - (whole - 1)) / whole
    k, f = _reduced_one(whole)
    return _log_of_parts(k, f, error) if k else _log_of_parts(k, x)


@_elementwise(_log1p_one)
def log1p(x: np.ndarray) -> np.ndarray:
    """The logarithm of 1 + x to within 0.9 units in the last place.

    Notes
    -----
    As :func:`log` of the rounded ``1 + x``, whose rounding error, known exactly, is added as ``error / (1 + x)``.
    """
    whole = 1 + x
    error = np.where(x > 1, 1 - (whole - x), x - (whole - 1)) / whole
    k, f = _reduced(whole)
    near = k == 0  # then x itself is f
    y = _with_ends(whole, _log_of_parts(k, np.where(near, x, f), np.where(near, 0.0, error)))
    return np.where(x == 0, x, y)


def _expm1_near(x: Number) -> Number:
    """e^x - 1 for x between -1 and 1."""
    return x + x * x * _polynomial(x, TAYLOR)


def _expm1_one(x: float) -> float:
    if x == 0:
        return x
    return _expm1_near(x) if -1 < x < 1 else _exp_one(x) - 1


@_elementwise(_expm1_one)
def expm1(x: np.ndarray) -> np.ndarray:
    """e^x - 1 to within 3 units in the last place."""
    near = _expm1_near(np.clip(x, -1.0, 1.0))
    return np.where(x == 0, x, np.where(np.abs(x) < 1, near, exp(x) - 1))


def sinh(x: Number) -> Number:
    """(e^x - e^-x) / 2 to within 5 units in the last place; infinite from 709.8 on."""
    size = expm1(np.abs(x))
    with np.errstate(invalid="ignore"):
        return _like(x, np.copysign(np.where(np.isinf(size), size, (size + size / (1 + size)) / 2), x))


def tanh(x: Number) -> Number:
    """The hyperbolic tangent to within 5 units in the last place."""
    size = expm1(-2 * np.minimum(np.abs(x), 50.0))
    return _like(x, np.copysign(-size / (2 + size), x))


def asinh(x: Number) -> Number:
    """The inverse of sinh to within 4 units in the last place."""
    size = np.abs(x)
    near = np.minimum(size, 1e10)
    near = log1p(near + near * (near / (1 + np.sqrt(1 + near * near))))
    return _like(x, np.copysign(np.where(size > 1e10, log(size) + log(2.0), near), x))


def cbrt(x: Number) -> Number:
    """The cube root to within 2 units in the last place."""
    size = np.abs(np.asarray(x, dtype=float))
    fraction, exponent = np.frexp(size)
    third = exponent // 3
    some = np.where((size > 0) & (size < np.inf), np.ldexp(fraction, exponent - 3 * third), 1.0)
    root = exp(log(some) / 3)
    root = root - (root * root * root - some) / (3 * root * root)
    root = np.where((size > 0) & (size < np.inf), np.ldexp(root, third), size)
    return _like(x, np.copysign(root, x))


def logaddexp(a: ArrayLike, b: ArrayLike) -> Any:
    """log(e^a + e^b), also where one of them or both are -inf."""
    top = np.maximum(a, b)
    with np.errstate(invalid="ignore"):
        gap = np.abs(np.subtract(a, b))
    return np.where(np.isfinite(top), top + log1p(exp(-np.where(np.isnan(gap), 0.0, gap))), top)[()]


def sigmoid(x: Number) -> Number:
    """1 / (1 + e^-x)."""
    return _like(x, 1 / (1 + exp(-np.asarray(x, dtype=float))))


def last_where(holds: Callable[[float], bool], low: float, high: float, halvings: int) -> tuple[float, float]:
    """Where a condition ends that holds up to some number: ``(low, high)``, moved together by halving the interval.

    It holds at ``low`` and not at ``high``, on entry and on return; neither is tried.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high


def matmul(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """The product of two matrices, or of a matrix or a vector and a vector, every sum in the same fixed order."""
    a, b = np.asarray(a), np.asarray(b)
    if b.ndim == 1:
        return np.add.reduce(a * b, axis=-1)
    # row by row of b: neither the order nor the layout in memory is left to the sum
    total = np.zeros((*a.shape[:-1], b.shape[1]), dtype=np.result_type(a, b))
    for k in range(len(b)):
        total += a[..., k, None] * b[k]
    return total


@cache
def gauss_legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [-1, 1], ascending, exact for polynomials of degree 2 n - 1; each correctly rounded.

    Newton's method in forty digits, from a guess whose last bits no longer matter.
    """
    nodes, weights = [], []
    with localcontext() as context:
        context.prec = 45
        for i in range(n, 0, -1):
            x = Decimal(cos(pi * (i - 0.25) / (n + 0.5)))
            for _ in range(6):  # the guess is good to 1e-3 at least, and each step doubles the digits
                value, slope = _legendre(n, x)
                x -= value / slope
            slope = _legendre(n, x)[1]
            nodes.append(0.0 if abs(x) < Decimal("1e-30") else float(x))
            weights.append(float(2 / ((1 - x * x) * slope * slope)))
    return np.array(nodes), np.array(weights)


def _legendre(n: int, x: Decimal) -> tuple[Decimal, Decimal]:
    """Legendre's polynomial of degree n and its derivative, by their recurrence."""
    last, value = Decimal(1), x
    for k in range(2, n + 1):
        last, value = value, ((2 * k - 1) * x * value - (k - 1) * last) / k
    return value, n * (x * value - last) / (x * x - 1)


def _like(x: ArrayLike, y: np.ndarray) -> Any:
    """``y`` as a Python float if ``x`` is a Python number."""
    return y[()] if isinstance(x, (np.ndarray, np.generic)) or np.ndim(x) else float(y)
