"""Functions of a symmetric matrix by fixed operations: the same bits on every machine, unlike ``np.linalg``.

Householder's reflections make the matrix tridiagonal, the implicit QL method makes it diagonal.  Only what is done to a
few vectors is wanted, so the eigenvectors are never formed: the rotations are kept, and undone.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, sqrt

import numpy as np

__all__ = ["apply", "is_positive_definite"]

_EPSILON = float(np.finfo(float).eps)
_NOTHING = 1e-150  # compared with a matrix whose largest entry is about 1
_SWEEPS = 100  # per eigenvalue; two are usual


def apply(matrix: np.ndarray, vectors: np.ndarray, response: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """``f(matrix) @ vectors``, with f taken of the eigenvalues.

    Parameters
    ----------
    matrix : ndarray of float, shape (d, d), symmetric and finite
    vectors : ndarray of float, shape (d, n)
    response : callable
        ``response(values)``: f of all eigenvalues, float64 of shape (d,), in no order.

    Returns
    -------
    ndarray of float64, shape (d, n)
    """
    result = np.array(vectors, dtype=float)
    if not len(matrix):
        return result
    if not np.isfinite(matrix).all():
        raise ValueError("the matrix has an entry that is not finite")
    # a power of two: then no square overflows or vanishes, and nothing is rounded
    exponent = int(np.frexp(np.abs(matrix).max())[1])
    diagonal, beside, reflections = _tridiagonal(np.ldexp(np.array(matrix, dtype=float), -exponent))
    values, rotations = _diagonal(diagonal, beside)
    factor = response(np.ldexp(np.array(values), exponent)).tolist()
    for start, v, half in reflections:
        _reflect(result[start:], v, half)
    for column in result.T:
        parts = column.tolist()
        for i, c, s in rotations:
            low, high = parts[i], parts[i + 1]
            parts[i], parts[i + 1] = c * low - s * high, s * low + c * high
        parts = [f * part for f, part in zip(factor, parts, strict=True)]
        for i, c, s in reversed(rotations):
            low, high = parts[i], parts[i + 1]
            parts[i], parts[i + 1] = c * low + s * high, c * high - s * low
        column[:] = parts
    for start, v, half in reversed(reflections):
        _reflect(result[start:], v, half)
    return result


def is_positive_definite(matrix: np.ndarray) -> bool:
    """Whether elimination meets positive pivots only, as Cholesky's method does."""
    rest = np.array(matrix, dtype=float)
    while len(rest):
        if not rest[0, 0] > 0:
            return False
        rest = rest[1:, 1:] - (rest[1:, :1] / rest[0, 0]) * rest[:1, 1:]
    return True


def _tridiagonal(rest: np.ndarray) -> tuple[list[float], list[float], list[tuple[int, np.ndarray, float]]]:
    """The diagonal, the entries next to it, and the reflections: first row, vector, half the vector's square."""
    diagonal, beside, reflections = [], [], []
    for start in range(1, len(rest)):
        diagonal.append(float(rest[0, 0]))
        v, rest = rest[1:, 0].copy(), rest[1:, 1:]
        size = sqrt(np.add.reduce(v * v))
        if len(v) == 1 or size < _NOTHING:
            beside.append(float(v[0]) if len(v) == 1 else 0.0)
            continue
        beside.append(-copysign(size, v[0]))
        half = size * (size + abs(float(v[0])))
        v[0] -= beside[-1]
        w = np.add.reduce(rest * v, axis=1) / half
        w -= v * (np.add.reduce(v * w) / (2 * half))
        rest = rest - (v[:, None] * w + w[:, None] * v)
        reflections.append((start, v, half))
    return [*diagonal, float(rest[0, 0])], beside, reflections


def _reflect(rows: np.ndarray, v: np.ndarray, half: float) -> None:
    rows -= v[:, None] * (np.add.reduce(v[:, None] * rows, axis=0) / half)


def _diagonal(d: list[float], e: list[float]) -> tuple[list[float], list[tuple[int, float, float]]]:
    """Eigenvalues of a tridiagonal matrix, and the rotations of neighbouring rows (row, cosine, sine) that lead there.

    The implicit QL method with Wilkinson's shift: Golub and Van Loan (2013), section 8.3, from the other end.
    """
    d, e, rotations = list(d), [*e, 0.0], []
    for first in range(len(d)):
        for _ in range(_SWEEPS):
            last = first
            while last < len(d) - 1 and abs(e[last]) > _EPSILON * (abs(d[last]) + abs(d[last + 1])) + _NOTHING:
                last += 1
            if last == first:
                break
            g = (d[first + 1] - d[first]) / (2 * e[first])
            g = d[last] - d[first] + e[first] / (g + copysign(sqrt(g * g + 1), g))
            s = c = 1.0
            p = 0.0
            for i in range(last - 1, first - 1, -1):
                f, b = s * e[i], c * e[i]
                r = sqrt(f * f + g * g)
                e[i + 1] = r
                if r == 0:  # the matrix has fallen apart here
                    d[i + 1] -= p
                    break
                s, c = f / r, g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                rotations.append((i, c, s))
            else:
                d[first] -= p
                e[first] = g
            e[last] = 0.0
        else:
            raise ArithmeticError("the eigenvalues of the matrix do not converge")
    return d, rotations
