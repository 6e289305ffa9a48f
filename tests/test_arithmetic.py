"""Fixed-operation functions against forty and more digits, and at the ends; spectral functions against their laws."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpforest import arithmetic
from dpforest.arithmetic import spectral

RNG = np.random.default_rng(0)
M = 1500


def powers(low, high):
    """Numbers of either sign whose size is anything from 10^low to 10^high."""
    return 10.0 ** RNG.uniform(low, high, M) * RNG.choice([-1, 1], M)


def near_one():
    return np.concatenate([RNG.uniform(0.5, 2, M), 1 + powers(-16, -1)])


def every_double():
    values = np.abs(RNG.integers(-(2**63), 2**63 - 1, M, dtype=np.int64).view(float))
    return np.concatenate([values[np.isfinite(values) & (values > 0)], 5e-324 * RNG.integers(1, 2**50, M)])


def ln2():
    return Decimal(2).ln()


#: Function, the same in decimals, where, and the promised bound in units in the last place.
CASES = {
    "exp": (lambda x: x.exp(), [RNG.uniform(-745, 709.7, M), RNG.uniform(-1, 1, M), powers(-300, 0)], 1.0),
    "log": (lambda x: x.ln(), [every_double(), near_one()], 0.9),
    "log2": (lambda x: x.ln() / ln2(), [every_double(), near_one()], 2.0),
    "log1p": (
        lambda x: (1 + x).ln(),
        [RNG.uniform(-1, 3, M), np.abs(powers(-20, 300)), -np.abs(powers(-20, -0.01))],
        0.9,
    ),
    "expm1": (lambda x: x.exp() - 1, [RNG.uniform(-3, 3, M), RNG.uniform(-50, 709, M), powers(-20, 0)], 3.0),
    "sinh": (lambda x: (x.exp() - (-x).exp()) / 2, [RNG.uniform(-3, 709, M), powers(-20, 0)], 5.0),
    "tanh": (
        lambda x: ((2 * x).exp() - 1) / ((2 * x).exp() + 1),
        [RNG.uniform(-20, 20, M), powers(-20, 0)],
        5.0,
    ),
    "asinh": (lambda x: (abs(x) + (x * x + 1).sqrt()).ln().copy_sign(x), [powers(-20, 300), RNG.uniform(0, 9, M)], 4.0),
    "cbrt": (lambda x: (abs(x) ** (1 / Decimal(3))).copy_sign(x), [powers(-308, 308)], 2.0),
}


@pytest.mark.parametrize("name", CASES)
def test_accurate_to_the_promised_unit(name):
    exact, parts, bound = CASES[name]
    x = np.concatenate(parts)
    with localcontext() as context:
        context.prec = 90
        for value, found in zip(x.tolist(), getattr(arithmetic, name)(x).tolist(), strict=True):
            wanted = exact(Decimal(value))
            error = abs(Decimal(found) - wanted) / Decimal(math.ulp(float(wanted)))
            assert error <= Decimal(bound), (value, found, float(error))


def test_exact_where_the_result_is_a_double():
    assert arithmetic.exp(0) == arithmetic.exp(-0.0) == 1
    assert arithmetic.exp(1) == math.e
    assert arithmetic.log(1) == arithmetic.log2(1.0) == arithmetic.log1p(0) == 0
    powers_of_two = np.arange(-1074, 1024)
    np.testing.assert_array_equal(arithmetic.log2(np.ldexp(1.0, powers_of_two)), powers_of_two)
    np.testing.assert_array_equal(arithmetic.cbrt(np.arange(-9.0, 10) ** 2 * np.arange(-9.0, 10)), np.arange(-9.0, 10))


inf, nan = math.inf, math.nan
ENDS = {
    "exp": [(inf, inf), (-inf, 0), (710, inf), (-746, 0), (-744.5, 5e-324)],
    "expm1": [(inf, inf), (-inf, -1), (710, inf), (-0.0, -0.0), (5e-324, 5e-324)],
    "log": [(inf, inf), (0.0, -inf), (-0.0, -inf), (-1, nan), (-inf, nan)],
    "log2": [(inf, inf), (0.0, -inf), (-1, nan)],
    "log1p": [(inf, inf), (-1, -inf), (-2, nan), (-0.0, -0.0), (5e-324, 5e-324), (1e-300, 1e-300)],
    "sinh": [(inf, inf), (-inf, -inf), (-0.0, -0.0), (-800, -inf)],
    "tanh": [(inf, 1), (-inf, -1), (-0.0, -0.0), (30, 1)],
    "asinh": [(inf, inf), (-inf, -inf), (-0.0, -0.0)],
    "cbrt": [(inf, inf), (-inf, -inf), (-0.0, -0.0), (8, 2), (5e-324, 1.7031839360032603e-108)],
}


@pytest.mark.parametrize("name", ENDS)
def test_the_ends(name):
    """Without a warning, and with the sign of zero."""
    function = getattr(arithmetic, name)
    for x, wanted in [*ENDS[name], (nan, nan)]:
        assert repr(function(float(x))) == repr(float(wanted)), (x, function(x))
        assert repr(function(np.array([1.0, x]))[1]) == repr(np.float64(wanted)), x


def test_shapes_and_kinds():
    assert type(arithmetic.exp(1)) is type(arithmetic.sinh(0.5)) is type(arithmetic.sigmoid(2)) is float
    assert type(arithmetic.exp(np.float64(1))) is np.float64
    assert arithmetic.log(np.ones((2, 0, 3))).shape == (2, 0, 3)
    x = RNG.uniform(-5, 5, (3, 9000)).T  # longer than a block, and not in one piece
    for name in ("exp", "expm1", "tanh"):
        function = getattr(arithmetic, name)
        np.testing.assert_array_equal(function(x), [[function(value) for value in row] for row in x.tolist()])
    before = x.copy()
    arithmetic.exp(x), arithmetic.log1p(x[x > 0])
    np.testing.assert_array_equal(x, before)


def test_sums_of_exponentials():
    a = np.array([0.0, 5.0, -inf, -inf, inf, 1000.0])
    b = np.array([0.0, -3.0, 2.0, -inf, 1.0, 1000.0])
    np.testing.assert_allclose(arithmetic.logaddexp(a, b), np.logaddexp(a, b), rtol=1e-15)
    np.testing.assert_allclose(arithmetic.sigmoid(np.array([-800, 0.0, 800])), [0, 0.5, 1])


def test_products_in_a_fixed_order():
    a, b = RNG.normal(size=(7, 5)), RNG.normal(size=(5, 3))
    np.testing.assert_allclose(arithmetic.matmul(a, b), a @ b, rtol=1e-13)
    np.testing.assert_allclose(arithmetic.matmul(a, b[:, 0]), a @ b[:, 0], rtol=1e-13)
    np.testing.assert_allclose(arithmetic.matmul(a[0], b), a[0] @ b, rtol=1e-13)
    assert arithmetic.matmul(a, b).tobytes() == arithmetic.matmul(np.asfortranarray(a), np.asfortranarray(b)).tobytes()
    assert arithmetic.matmul(a[:, :0], b[:0]).tolist() == [[0.0] * 3] * 7


@pytest.mark.parametrize("n", [1, 2, 3, 8, 31, 64])
def test_gauss_legendre(n):
    """Exact for polynomials of degree 2 n - 1, in fractions of the doubles."""
    nodes, weights = arithmetic.gauss_legendre(n)
    assert (np.diff(nodes) > 0).all()
    assert (nodes == -nodes[::-1]).all()
    assert (weights == weights[::-1]).all()
    for degree in range(2 * n):
        found = sum(Fraction(w) * Fraction(x) ** degree for x, w in zip(nodes, weights, strict=True))
        assert float(found) == pytest.approx(2 / (degree + 1) if degree % 2 == 0 else 0, abs=1e-15)


# -- functions of matrices -------------------------------------------------------------------------------------------


def symmetric(kind: str, d: int) -> np.ndarray:
    a = RNG.normal(size=(d, d))
    return {
        "any": a + a.T,
        "positive": a @ a.T,
        "deficient": a[:, : d // 2] @ a[:, : d // 2].T,
        "diagonal": np.diag(RNG.integers(-2, 3, d).astype(float)),
        "equal": np.full((d, d), 3e200),
        "tiny": 1e-200 * (a + a.T),
        "nothing": np.zeros((d, d)),
    }[kind]


@pytest.mark.parametrize("d", [1, 2, 3, 9, 40])
@pytest.mark.parametrize("kind", ["any", "positive", "deficient", "diagonal", "equal", "tiny", "nothing"])
def test_spectral_functions(kind, d):
    """Against LAPACK: the eigenvalues, and what polynomials and the positive part of the matrix do to vectors."""
    matrix, vectors = symmetric(kind, d), RNG.normal(size=(d, 3))
    values, directions = np.linalg.eigh(matrix)
    size = np.abs(values).max()
    seen = []
    same = spectral.apply(matrix, vectors, lambda found: (seen.append(found), np.ones(d))[1])
    np.testing.assert_allclose(same, vectors, atol=1e-13)
    np.testing.assert_allclose(np.sort(seen[0]), values, atol=1e-14 * d * size)
    for f in (lambda v: v, lambda v: np.maximum(v, 0)):
        wanted = (directions * f(values)) @ (directions.T @ vectors)
        np.testing.assert_allclose(spectral.apply(matrix, vectors, f), wanted, atol=1e-12 * size)


def test_spectral_functions_of_nothing():
    assert spectral.apply(np.zeros((0, 0)), np.zeros((0, 2)), lambda values: values).shape == (0, 2)
    assert spectral.is_positive_definite(np.zeros((0, 0)))
    with pytest.raises(ValueError, match="finite"):
        spectral.apply(np.full((3, 3), math.nan), np.ones((3, 1)), lambda values: values)


@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_positive_definite(d):
    for _ in range(20):
        a = RNG.normal(size=(d, d))
        matrix = a @ a.T + RNG.uniform(-2, 2) * np.eye(d)
        assert spectral.is_positive_definite(matrix) == (np.linalg.eigvalsh(matrix).min() > 0)


@pytest.mark.parametrize("name", CASES)
def test_one_by_one_and_many_at_once_are_the_same_bits(name):
    """A Python number, a few numbers and many go different ways."""
    function = getattr(arithmetic, name)
    ends = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        -1.0,
        1.0,
        710.0,
        709.8,
        -745.2,
        -746.0,
        5e-324,
        0.7071067811865476,
    ]
    values = np.concatenate([*CASES[name][1], -np.abs(every_double()[:50]), ends])[-3000:]
    with np.errstate(all="ignore"):
        many = function(values)
        few = np.concatenate([function(values[at : at + 5]) for at in range(0, len(values), 5)])
        one = np.array([function(value) for value in values.tolist()])
    for found in (few, one):
        assert (np.isnan(found) == np.isnan(many)).all()
        assert (found.view(np.int64) == many.view(np.int64))[~np.isnan(many)].all()


def test_the_end_of_a_condition():
    """Both numbers come together around it, and the condition goes on holding at the lower one alone."""
    low, high = arithmetic.last_where(lambda x: x * x <= 2, 0.0, 2.0, 50)
    assert low * low <= 2 < high * high
    assert high - low == 2.0**-49
    assert arithmetic.last_where(lambda x: True, 0.0, 1.0, 3) == (0.875, 1.0)
