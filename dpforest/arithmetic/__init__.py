"""Numbers that are the same on every machine: elementary functions, an exact grid, linear algebra."""

from dpforest.arithmetic.elementary import (
    asinh,
    cbrt,
    exp,
    expm1,
    gauss_legendre,
    last_where,
    log,
    log1p,
    log2,
    logaddexp,
    matmul,
    sigmoid,
    sinh,
    tanh,
)

__all__ = [
    "asinh",
    "cbrt",
    "exp",
    "expm1",
    "gauss_legendre",
    "last_where",
    "log",
    "log1p",
    "log2",
    "logaddexp",
    "matmul",
    "sigmoid",
    "sinh",
    "tanh",
]
