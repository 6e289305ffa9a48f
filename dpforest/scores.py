"""Split utilities on child counts, each with its sensitivity and its range.

A score looks at the children that a split would make and gives a number, the larger the better.  What calibrates
a selection is the *range* R: the largest spread, over the candidates, of the score changes between neighbours.
The *sensitivity* Δ is the largest single change.  ``R <= 2 Δ`` always, and ``R <= Δ`` under add-remove when the
score is *monotone*, that is, when adding a record moves all candidates the same way (:prf:ref:`lem-range`).

``n`` in the constants is a public cap on the number of records of a node: the size after the record was added, or
the common size where one is replaced.  Without a cap the supremum over all sizes is given.  All constants are suprema
over every number of classes and of children, and over every family of candidates that public predicates define, the
undivided node among them; ``tests/test_scores.py`` finds the same numbers by enumeration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from dpforest.arithmetic import log2
from dpforest.arithmetic.fixed import STEPS, fixed, over
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, check_relation, claim
from dpforest.schema import TARGET_LEVELS

__all__ = [
    "CLASSIFICATION",
    "GRAIN",
    "MOST_MISFIT",
    "REGRESSION",
    "Score",
    "absolute_pearson",
    "averaged",
    "balance",
    "between",
    "for_classes",
    "gini",
    "gini_gain",
    "information_gain",
    "majority",
    "mass_gap",
    "mean",
    "misfit",
    "moment_balance",
    "normalised_gini",
    "pearson",
    "soft_gap",
    "sse",
    "variance",
    "weighted_variance",
]

#: Steps of a count in which a model of a table is given, see :func:`misfit`.
GRAIN = 1 << 10
#: What a model of a table and its noise may add up to, times the largest weight: scores are whole numbers of 64 bits.
MOST_MISFIT = 1 << 60

Constants = Callable[[float], tuple[float, float]]  # n -> (under add-remove, under replace-one)


@claim("def-range", "lem-range", "lem-interval", "thm-exact-scores")
@dataclass(frozen=True)
class Score:
    """A score with what is proved of it.

    Call it on an array of counts, shape (..., children, classes), or for the regression scores on an array of
    moments, shape (..., children, n_moments): count, sum and sum of squares of targets in [0, 1], or the first two.

    Attributes
    ----------
    name : str
    monotone : bool
        Whether adding a record moves every candidate's score the same way (none up, or none down).
    sharp : bool
        Whether :meth:`range` is the smallest valid constant; else it is an upper bound.
    needs_cap : bool
        Whether the constants are finite only under a public cap ``n``.
    claims : tuple of str
        The claims of the book that prove the constants.
    n_moments : int
        Of the counts' last axis for a regression score; 0 for a score of class counts.
    parts : int
        Parts of the records whose class counts stand one after the other on the counts' last axis, which then has
        ``parts`` times as many entries as there are classes: see :func:`averaged`.
    homogeneous : bool
        Whether ``score(c * counts) == c * score(counts)`` for c > 0: sums over the records, not shares of them.  Such
        a score keeps its constants where records have weights up to 1, if they hold for all sizes
        (:prf:ref:`thm-own-weights`); no other may see weights.
    rest : callable or None
        Score of *not splitting*, from the counts of the node (..., classes), up to a public constant.  Adding a
        record moves it within the interval in which the candidates move, so a selection that has it as one more
        candidate keeps the supremum of R (:prf:ref:`lem-stop-candidate`).  It falls behind the candidates as the
        node grows: only small nodes, or nodes without a useful split, stop.
    """

    name: str
    function: Callable[[np.ndarray], np.ndarray] = field(repr=False)
    _sensitivity: Constants = field(repr=False)
    _range: Constants = field(repr=False)
    monotone: bool
    claims: tuple[str, ...]
    description: str = field(repr=False)
    sharp: bool = True
    needs_cap: bool = False
    n_moments: int = 0
    parts: int = 1
    homogeneous: bool = False
    rest: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    _exact: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    _exact_rest: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    _exact_range: Constants | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "__claims__", self.claims)
        object.__setattr__(self, "__doc__", self.description)

    def __call__(self, counts: ArrayLike) -> np.ndarray:
        return self.function(self._checked(np.asarray(counts, dtype=float)))

    def exact(self, counts: np.ndarray) -> np.ndarray:
        """The score that ships: of whole numbers, on a public grid, see :mod:`dpforest.arithmetic.fixed`.

        Parameters
        ----------
        counts : ndarray of int64
            As for the score itself, but moments of the target's codes, of which ``TARGET_LEVELS`` make 1.

        Returns
        -------
        ndarray of int64, shape (2, ...)
            Of a mean over parts, the sum.
        """
        counts = self._checked(np.asarray(counts))
        return self._exact(counts) if self._exact else fixed(self.function(self._in_reals(counts)))

    def exact_rest(self, counts: np.ndarray) -> np.ndarray:
        """``rest`` on the same grid as :meth:`exact`, of the whole counts of the node (..., classes)."""
        if self._exact_rest:
            return self._exact_rest(counts)
        return fixed(self.rest(self._in_reals(counts)))  # type: ignore[misc]

    def exact_range(self, relation: str, n: float = math.inf) -> float:
        """R of :meth:`exact`, which calibrates: ``rate = epsilon / exact_range`` (:prf:ref:`thm-exact-scores`)."""
        return self._pick(self._exact_range or self._range_on_grid, relation, n)

    def _range_on_grid(self, n: float) -> tuple[float, float]:
        if self._exact:  # rounded child by child: each change stays in the interval that the proof of R is from
            unit = math.ceil(self._range(n)[0] * STEPS) / STEPS
            return unit, 2 * unit
        # rounded as a whole, from doubles that are off by less than a quarter of a step: four numbers
        slack = 3 / STEPS + (n * 2.0**-38 if self.needs_cap else 0.0)
        add_remove, replace_one = self._range(n)
        return add_remove + slack, replace_one + 2 * slack

    def _in_reals(self, counts: np.ndarray) -> np.ndarray:
        counts = counts.astype(float)
        return counts / TARGET_LEVELS ** np.arange(counts.shape[-1]) if self.n_moments else counts

    def _checked(self, counts: np.ndarray) -> np.ndarray:
        if counts.ndim < 2:
            raise ValueError(f"counts must have shape (..., children, classes), not {counts.shape}")
        return counts

    def sensitivity(self, relation: str, n: float = math.inf) -> float:
        """Δ: the largest change of one candidate's score between neighbours; the supremum where it is not attained."""
        return self._pick(self._sensitivity, relation, n)

    def range(self, relation: str, n: float = math.inf) -> float:
        """R: the largest spread of score changes over candidates between neighbours; ``rate = epsilon / R``."""
        return self._pick(self._range, relation, n)

    def _pick(self, constants: Constants, relation: str, n: float) -> float:
        check_relation(relation)
        if not n >= 1 or (n % 1 and not math.isinf(n)):  # the first also refuses NaN
            raise ValueError(
                f"n must be a public cap on the number of records, a whole number from 1 on, not {shown(n)}"
            )
        if self.needs_cap and math.isinf(n):
            raise ValueError(
                f"{self.name} grows with the number of records, so it needs a public cap on that number: pass n=..., "
                "never the size of the data"
            )
        return constants(n)[0 if relation == ADD_REMOVE else 1]

    def __repr__(self) -> str:
        return f"<score {self.name}>"


def _shrink(n: float) -> float:
    """(n - 1) / n, one in the limit: the factor of every sum-of-squares score at size n."""
    return 1.0 if math.isinf(n) else (n - 1) / n


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Quotient with 0 / 0 = 0, the convention for empty children."""
    return np.divide(top, bottom, out=np.zeros(np.broadcast_shapes(top.shape, bottom.shape)), where=bottom != 0)


def _total(counts: np.ndarray) -> np.ndarray:
    """Sum over the last axis, the same to the last bit; a few terms are added one after the other, as NumPy does."""
    if not 0 < counts.shape[-1] < 8:
        return counts.sum(axis=-1)
    total = counts[..., 0].copy()
    for term in range(1, counts.shape[-1]):
        total += counts[..., term]
    return total


def _moments(moments: np.ndarray) -> np.ndarray:
    """Count, sum and sum of squares, each of shape (..., children)."""
    if moments.shape[-1] != 3:
        raise ValueError(f"a regression score takes (count, sum, sum of squares) of each child, not {moments.shape}")
    return np.moveaxis(moments, -1, 0)


def _two_moments(moments: np.ndarray) -> np.ndarray:
    """Count and sum, each of shape (..., children)."""
    if moments.shape[-1] not in (2, 3):
        raise ValueError(f"this regression score takes (count, sum) of each child, not {moments.shape}")
    return np.moveaxis(moments[..., :2], -1, 0)


def _child_impurity(counts: np.ndarray) -> np.ndarray:
    """Count-weighted Gini impurity of each child, ``n - sum of squared counts / n``."""
    size = _total(counts)
    return size - _ratio(_total(counts**2), size)


def _gini(counts: np.ndarray) -> np.ndarray:
    return -_child_impurity(counts).sum(axis=-1)


def _normalised_gini(counts: np.ndarray) -> np.ndarray:
    return _ratio(_gini(counts), counts.sum(axis=(-1, -2)))


def _gini_gain(counts: np.ndarray) -> np.ndarray:
    return _child_impurity(counts.sum(axis=-2)) + _gini(counts)


def _information_gain(counts: np.ndarray) -> np.ndarray:
    size = counts.sum(axis=-1, keepdims=True)
    share = _ratio(counts, size)
    return (counts * log2(np.where(share > 0, share, 1.0))).sum(axis=(-1, -2))


def _majority(counts: np.ndarray) -> np.ndarray:
    return counts.max(axis=-1).sum(axis=-1)


def _outside(sizes: np.ndarray) -> np.ndarray:
    """Records outside the largest child, from the number of records of each child (..., children)."""
    return _total(sizes) - sizes.max(axis=-1)


def _child_sse(moments: np.ndarray) -> np.ndarray:
    size, total, squares = _moments(moments)
    return squares - _ratio(total**2, size)


def _sse(moments: np.ndarray) -> np.ndarray:
    return -_child_sse(moments).sum(axis=-1)


def _variance(moments: np.ndarray) -> np.ndarray:
    return -_ratio(_child_sse(moments), moments[..., 0]).sum(axis=-1)


def _weighted_variance(moments: np.ndarray) -> np.ndarray:
    return _ratio(_sse(moments), moments[..., 0].sum(axis=-1))


def _between(moments: np.ndarray) -> np.ndarray:
    size, total = _two_moments(moments)
    return _ratio((total - size / 2) ** 2, size).sum(axis=-1)


def _mean(moments: np.ndarray) -> np.ndarray:
    size, total = _two_moments(moments)
    return _ratio(total.sum(axis=-1), size.sum(axis=-1))


def _mass_gap(moments: np.ndarray) -> np.ndarray:
    size, total = _two_moments(moments)
    return np.abs(total - size / 2).sum(axis=-1)


def _pearson(counts: np.ndarray) -> np.ndarray:
    if counts.shape[-2] > 2:
        raise ValueError(f"the correlation is that of a cut, which has two children, not {counts.shape[-2]}")
    if counts.max(initial=0) * counts.shape[-1] > 2**24 and not (counts % 1).any():
        counts = counts.astype(np.int64).astype(object)  # what doubles would round before they subtract it
    classes = np.arange(counts.shape[-1]).astype(counts.dtype)
    size, total = _total(counts), _total(counts * classes)
    n, sy = _total(size), _total(total)
    sx, sxy = _total(size[..., 1:]), _total(total[..., 1:])  # x is 0 in the first child, 1 in the second
    own, other = n * sx - sx**2, n * _total(_total(counts * classes**2)) - sy**2
    spread = own.astype(float) * other.astype(float)
    return np.clip(_ratio((n * sxy - sx * sy).astype(float), np.sqrt(np.maximum(spread, 0))), -1, 1)


def _exact_gini(counts: np.ndarray) -> np.ndarray:
    from dpforest.arithmetic import gini_kernels  # Numba: not where a model is only read

    found = np.empty((2, *counts.shape[:-2]), dtype=np.int64)
    splits = counts.reshape(found[0].size, *counts.shape[-2:])
    if counts.dtype == np.int64 and gini_kernels.gini(splits, STEPS, found.reshape(2, len(splits))):
        return found
    size = _total(counts)
    most = float(size.max(initial=0)) ** 2
    found = over(lambda kind: _total(counts.astype(kind) ** 2), size, most).sum(axis=-1)
    found[0] -= size.sum(axis=-1)
    return found


def _exact_majority(counts: np.ndarray) -> np.ndarray:
    return fixed(_majority(counts))


def _exact_sse(moments: np.ndarray) -> np.ndarray:
    size, total, squares = _moments(moments)

    def top(kind: type) -> np.ndarray:
        return size.astype(kind) * squares.astype(kind) - total.astype(kind) ** 2

    most = float(size.max(initial=0)) * float(squares.max(initial=0))
    return -over(top, size, most, TARGET_LEVELS**2).sum(axis=-1)


def _exact_between(moments: np.ndarray) -> np.ndarray:
    size, total = _two_moments(moments)
    gap = 2 * total - TARGET_LEVELS * size
    most = float(np.abs(gap).max(initial=0)) ** 2
    return over(lambda kind: gap.astype(kind) ** 2, size, most, (2 * TARGET_LEVELS) ** 2).sum(axis=-1)


def _exact_mass_gap(moments: np.ndarray) -> np.ndarray:
    size, total = _two_moments(moments)
    whole, left = np.divmod(np.abs(2 * total - TARGET_LEVELS * size), 2 * TARGET_LEVELS)
    return np.stack([whole, left * STEPS // (2 * TARGET_LEVELS)]).sum(axis=-1)


def _rest_of_gini(counts: np.ndarray) -> np.ndarray:
    """Falls by 2 with every record, as fast as any candidate may."""
    return -2 * counts.sum(axis=-1)


def _uncorrelated(counts: np.ndarray) -> np.ndarray:
    """An undivided node has the correlation 0, whatever its records; a change of 0 is within every interval with 0."""
    return np.zeros(counts.shape[:-1])


def _entropy_step(n: float) -> float:
    """phi(n - 1) in bits: how much the count-weighted entropy can rise when a node grows to n records."""
    return n * log2(n) - ((n - 1) * log2(n - 1) if n > 1 else 0.0)


def _gain_change(n: float) -> float:
    """Δ of the Gini gain under replace-one: ``4 - 2 min over s of (s / n + 1 / s)``, s a whole number.

    A record of class a sits with s - 1 records of class b and takes class c in a child of its own; the other n - s
    records are of class a.  The minimum is next to the square root of n.
    """
    if math.isinf(n):
        return 4.0
    root = math.isqrt(int(n))
    return 4 - 2 * min(s / n + 1 / s for s in (root, root + 1))


def _steps(steps: dict[int, tuple[float, float]]) -> Constants:
    """Constants that change at a few sizes only: those of the largest size in ``steps`` that the cap allows."""
    return lambda n: steps[max(size for size in steps if size <= n)]


gini = Score(
    "gini",
    _gini,
    lambda n: (2 * _shrink(n), 2 * _shrink(n)),
    lambda n: (2 * _shrink(n), 4 * _shrink(n)),
    True,
    ("thm-sse-update", "thm-gini", "pub-gini-count", "pub-gini-exponent", "pub-gini-over-entropy"),
    """Count-weighted Gini: minus the sum over children of ``n_j (1 - sum of squared class shares)``.

    Monotone; Δ = 2 under both relations, R = 2 under add-remove and 4 under replace-one; with at most n records
    ``2 (n - 1) / n`` and ``4 (n - 1) / n`` (:prf:ref:`thm-gini`).  DiffPETs formula (5).
    """,
    homogeneous=True,
    rest=_rest_of_gini,
    _exact=_exact_gini,
)

normalised_gini = Score(
    "normalised-gini",
    _normalised_gini,
    _steps({1: (0.0, 0.0), 2: (0.5, 0.5)}),
    _steps({1: (0.0, 0.0), 2: (0.5, 1.0)}),
    False,
    ("thm-normalised-gini", "def-gini-dataset", "pub-gini-split"),
    """Gini divided by the number of records: eDPRF formula (8), CART-DPsAdaBoost formula (5), with the opposite sign.

    Not monotone; Δ = 1/2 under both relations, R = 1/2 under add-remove and 1 under replace-one, reached by two
    records.  Private, and almost blind: the score lies in [-1, 0] however many records there are
    (:prf:ref:`thm-normalised-gini`).
    """,
)

gini_gain = Score(
    "gini-gain",
    _gini_gain,
    lambda n: (2 * _shrink(n), _gain_change(n)),
    lambda n: (2 * _shrink(n), 4 * _shrink(n)),
    False,
    ("thm-gini-gain", "pub-gini-gain"),
    """Impurity of the node less that of its children.  The node's own impurity is the same for all candidates, so
    the selection law and R are those of :data:`gini`; Δ is not, and replace-one reaches 4 (:prf:ref:`thm-gini-gain`).
    """,
    homogeneous=True,
    rest=lambda counts: _child_impurity(counts) + _rest_of_gini(counts),
    _exact=_exact_gini,  # the node's own impurity, the same for all of its candidates, is left out
    _exact_rest=lambda counts: fixed(_rest_of_gini(counts)),
)

information_gain = Score(
    "information-gain",
    _information_gain,
    lambda n: (_entropy_step(n), _entropy_step(n)),
    lambda n: (_entropy_step(n), 2 * _entropy_step(n)),
    True,
    ("thm-information-gain", "pub-information-gain"),
    """Minus the count-weighted conditional entropy in bits.  Monotone; Δ grows with the cap n on the records:
    ``n log2 n - (n - 1) log2 (n - 1)`` under both relations, R the same under add-remove and twice that under
    replace-one (:prf:ref:`thm-information-gain`).
    """,
    needs_cap=True,
    homogeneous=True,
    rest=lambda counts: _information_gain(counts[..., None, :]),
)

majority = Score(
    "majority",
    _majority,
    lambda n: (1.0, 1.0),
    lambda n: (1.0, 2.0),
    True,
    ("thm-majority", "pub-majority"),
    """Number of records that the majority label of their child gets right (*Max*).  Monotone; Δ = 1, R = 1 under
    add-remove and 2 under replace-one (:prf:ref:`thm-majority`).  On a single child with one class per candidate it
    is the label count of a leaf, with the same constants, which a leaf of one record reaches already.
    """,
    homogeneous=True,
    rest=lambda counts: np.zeros(counts.shape[:-1]),
    _exact=_exact_majority,
)

balance = Score(
    "balance",
    lambda counts: _outside(_total(counts)),
    _steps({1: (0.0, 0.0), 2: (1.0, 1.0)}),
    _steps({1: (0.0, 0.0), 2: (1.0, 2.0)}),
    True,
    ("lem-balance", "pub-diprime"),
    """Records outside the largest child, ``n - max n_j``: of a cut, those of its smaller side.  Largest at the median.
    Monotone; Δ = 1, R = 1 under add-remove and 2 under replace-one, reached by two records (:prf:ref:`lem-balance`).
    It is half of ``n - |n_1 - n_2|``, the score of DiPriMe.
    """,
    homogeneous=True,
    _exact=lambda counts: fixed(_outside(_total(counts))),
)

#: :data:`balance` from the moments of a target, of which it takes the number of records alone.
moment_balance = replace(
    balance,
    name="moment-balance",
    function=lambda moments: _outside(moments[..., 0]),
    n_moments=2,
    _exact=lambda moments: fixed(_outside(moments[..., 0])),
)

sse = Score(
    "sse",
    _sse,
    lambda n: (_shrink(n), _shrink(n)),
    lambda n: (_shrink(n), 2 * _shrink(n)),
    True,
    ("thm-sse-update", "thm-sse", "pub-variance"),
    """Minus the sum of squared errors around the child means, targets in [0, 1].  Monotone; Δ = 1 under both
    relations, R = 1 under add-remove and 2 under replace-one; with at most n records ``(n - 1) / n`` and
    ``2 (n - 1) / n`` (:prf:ref:`thm-sse`).
    """,
    n_moments=3,
    homogeneous=True,
    rest=lambda moments: -moments[..., 0],
    _exact=_exact_sse,
)

between = Score(
    "between",
    _between,
    lambda n: (max(1 / 4, _shrink(n) - 1 / 4), max(1 / 4, _shrink(n))),
    lambda n: (_shrink(n), 2 * _shrink(n)),
    False,
    ("lem-between",),
    """Sum over children of ``(sum of y - n_j / 2)^2 / n_j``, targets in [0, 1]: how far the child means are from 1/2.

    It is :data:`sse` plus the node's ``sum of (y - 1/2)^2``, the same for every candidate, so it gives the same
    selection and has the same R; it needs no squares of targets.  Not monotone (:prf:ref:`lem-between`).
    """,
    n_moments=2,
    homogeneous=True,
    rest=lambda moments: -0.75 * moments[..., 0],
    _exact=_exact_between,
)

variance = Score(
    "variance",
    _variance,
    _steps({1: (0.0, 0.0), 2: (1 / 4, 1 / 4), 4: (1 / 4, 1 / 3)}),
    _steps({1: (0.0, 0.0), 2: (1 / 4, 1 / 2), 3: (5 / 18, 1 / 2), 4: (41 / 144, 5 / 9), 5: (41 / 144, 41 / 72)}),
    False,
    ("thm-variance", "pub-variance"),
    """Minus the unweighted sum of child variances, targets in [0, 1].  Each variance is at most 1/4 whatever the
    size, so a selection by it hardly sees the data.  Not monotone; Δ = 1/4 under add-remove and 1/3 under
    replace-one, R = 41/144 and 41/72, all reached by five records or fewer (:prf:ref:`thm-variance`).
    """,
    n_moments=3,
)

weighted_variance = Score(
    "weighted-variance",
    _weighted_variance,
    _steps({1: (0.0, 0.0), 2: (1 / 4, 1 / 4)}),
    _steps({1: (0.0, 0.0), 2: (1 / 4, 1 / 2)}),
    False,
    ("thm-variance",),
    """Minus the mean squared error around the child means, targets in [0, 1]: :data:`sse` over the number of records,
    which is private under add-remove.  Not monotone; Δ = 1/4 under both relations, R = 1/4 under add-remove and 1/2
    under replace-one, reached by two records (:prf:ref:`thm-variance`).
    """,
    n_moments=3,
)

mean = Score(
    "mean",
    _mean,
    lambda n: (1.0, 1.0),
    lambda n: (1.0, 2.0),
    False,
    ("thm-mean", "pub-mean"),
    """Mean target of a group of records, in [0, 1], the mean of no record being 0; the candidates are groups, one child
    each.  Not monotone; Δ = 1 under both relations, R = 1 under add-remove and 2 under replace-one, all through a group
    that one record fills.  Where at least n records are known to be in a group, Δ is ``1 / (n + 1)`` under add-remove
    and ``1 / n`` under replace-one (:prf:ref:`thm-mean`).
    """,
    n_moments=2,
)

mass_gap = Score(
    "mass-gap",
    _mass_gap,
    _steps({1: (0.5, 0.5), 2: (0.5, 1.0)}),
    _steps({1: (0.0, 0.0), 2: (1.0, 2.0)}),
    False,
    ("thm-two-masses",),
    """Half the distance between the masses ``sum y`` and ``sum (1 - y)`` of each child, summed: the regression form of
    :data:`majority`.  Not monotone; Δ = 1/2 under add-remove and 1 under replace-one; R = 1 and 2
    (:prf:ref:`thm-two-masses`).
    """,
    n_moments=2,
    homogeneous=True,
    rest=lambda moments: -0.5 * moments[..., 0],
    _exact=_exact_mass_gap,
)

pearson = Score(
    "pearson",
    _pearson,
    lambda n: (1 + 1 / math.sqrt(2), 2.0),
    lambda n: (2 + math.sqrt(2), 4.0),
    False,
    ("def-pearson", "thm-pearson-sensitivity"),
    """Pearson correlation of a cut's child index with the class code, 0 where it is undefined (:prf:ref:`def-pearson`).
    Not monotone; Δ = 1 + 1/sqrt(2) under add-remove, approached as records and classes grow, and 2 under replace-one.
    More records do not help.  R = 2 Δ, since a cut and its mirror image move against each other.
    """,
    rest=_uncorrelated,
)

absolute_pearson = Score(
    "absolute-pearson",
    lambda counts: np.abs(_pearson(counts)),
    lambda n: (1.0, 1.0),
    lambda n: (2.0, 2.0),
    False,
    ("def-pearson", "thm-pearson-sensitivity", "pub-pearson-cut", "cex-pearson-cut", "cex-pearson-decay"),
    """Absolute value of :data:`pearson`; Δ = 1 and R = 2 under both relations, whatever the number of records (R under
    add-remove is approached as the classes grow).  To publish the data value where it is largest, as the patent on
    MapReduce trees does, is not private at all (:prf:ref:`cex-pearson-cut`).
    """,
    rest=_uncorrelated,
)


@claim("thm-pearson-sensitivity")
def for_classes(score: Score, n_classes: int) -> Score:
    """The score with the constants that hold for so many classes, where they are smaller than for more of them.

    The absolute correlation of two classes has R = 1/2 + 1/sqrt(3) under add-remove, in place of 2
    (:prf:ref:`thm-pearson-sensitivity`).  Every other score is returned as it is.

    Parameters
    ----------
    score : Score
    n_classes : int
        Of the public schema.

    Examples
    --------
    >>> round(for_classes(absolute_pearson, 2).range("add-remove"), 4)
    1.0774
    >>> for_classes(absolute_pearson, 3).range("add-remove")
    2.0
    """
    if score is not absolute_pearson or n_classes != 2:
        return score

    def of_two_classes(counts: np.ndarray) -> np.ndarray:
        if counts.shape[-1] > 2:
            raise ValueError(f"the constants hold for two classes, not for {counts.shape[-1]}")
        return absolute_pearson.function(counts)

    return replace(score, function=of_two_classes, _range=lambda n: (1 / 2 + 1 / math.sqrt(3), 2.0))


@claim("lem-soft-gap")
@lru_cache(maxsize=1024)
def soft_gap(threshold: int) -> Score:
    """How far two classes are apart in each child, as far as that exceeds a public threshold; summed.

    Parameters
    ----------
    threshold : int
        Not negative; in the unit of the counts.

    Returns
    -------
    Score
        On counts (..., children, 2): ``sum(max(|a - b| - threshold, 0))``.  Not monotone; Δ = 1 and R = 2 under
        add-remove, 2 and 4 under replace-one, whatever the threshold, and ``w_max`` times that where records weigh
        ``w_max`` at most (:prf:ref:`lem-soft-gap`).
    """
    if not isinstance(threshold, Integral) or isinstance(threshold, bool) or threshold < 0:
        raise ValueError(f"threshold must be a whole number from 0 on, not {shown(threshold)}")

    def exceeding(counts: np.ndarray) -> np.ndarray:
        return np.maximum(np.abs(counts[..., 1] - counts[..., 0]) - threshold, 0).sum(axis=-1)

    return Score(
        "soft-gap",
        exceeding,
        lambda n: (1.0, 2.0),
        lambda n: (2.0, 4.0),
        False,
        ("lem-soft-gap",),
        f"How far two classes are apart in each child, as far as that exceeds {threshold}; summed.",
        _exact=lambda counts: fixed(exceeding(counts)),
    )


def misfit(modelled: np.ndarray, weight: int = 1, heaviest: int = 1, noise: int = 0) -> Score:
    """How far a table of counts is from a public model of it, in the L1 norm, less what noise would make of it.

    Parameters
    ----------
    modelled : ndarray of int64, shape (children, classes)
        What the model says of each cell, in steps of ``1 / GRAIN``.
    weight, heaviest : int
        Public weight of the table, and the largest of any candidate; from 1 on.
    noise : int
        Public; in the same steps.  It and the whole model add up to ``MOST_MISFIT / heaviest`` at most.

    Returns
    -------
    Score
        On counts (..., children, classes): ``weight / heaviest (sum(|count - modelled|) - noise)``.  Not monotone;
        Δ = 1 and R = 2 under add-remove, 2 and 4 under replace-one, whatever the models, the weights and the noise
        (:prf:ref:`lem-misfit`).  Its ``exact`` is in steps of ``1 / (GRAIN heaviest)``.
    """
    if not 1 <= weight <= heaviest:
        raise ValueError(f"a weight must be from 1 to the largest, {shown(heaviest)}, not {shown(weight)}")
    if heaviest * (float(np.abs(modelled).sum(dtype=float)) + abs(noise)) > MOST_MISFIT:
        raise ValueError(f"a model and its noise must add up to {MOST_MISFIT} / {heaviest} at most: take smaller ones")

    def steps(counts: np.ndarray) -> np.ndarray:
        return weight * (np.abs(counts * GRAIN - modelled).sum(axis=(-2, -1)) - noise)

    return Score(
        "misfit",
        lambda counts: steps(counts) / (GRAIN * heaviest),
        lambda n: (1.0, 2.0),
        lambda n: (2.0, 4.0),
        False,
        ("lem-misfit",),
        "How far a table of counts is from a public model of it, in the L1 norm, less what noise would make of it.",
        _exact=lambda counts: fixed(steps(counts)),
    )


@claim("lem-parts", "cex-slot-parts", "cex-defined-parts")
def averaged(score: Score, parts: int) -> Score:
    """Mean over the parts of the records of the score of each part.

    Parameters
    ----------
    score : Score
        Of class counts.
    parts : int
        At least 1, public; with 1 the score is returned as it is.

    Returns
    -------
    Score
        On counts of shape (..., children, parts * classes): the classes of the first part, then those of the second,
        and so on; its ``rest`` on counts (..., parts * classes).  Its Δ and R are those of ``score`` over ``parts``;
        it is monotone where ``score`` is.

    Guarantee
    ---------
    A record counts in one part, so one term of the mean changes, *provided that* nothing but a coin of its own says
    which part a record is in: under replace-one the record that comes takes the coin of the one that goes
    (:prf:ref:`lem-parts`).  A part without records counts as any other: a mean over the parts in which the score is
    defined would divide by a number that depends on the records.

    Examples
    --------
    >>> halves = averaged(absolute_pearson, 2)
    >>> float(halves([[3, 0, 1, 1], [0, 3, 1, 1]]))  # the first part is cut well, the second is not
    0.5
    >>> halves.sensitivity("add-remove"), halves.range("add-remove")
    (0.5, 1.0)
    """
    if not isinstance(parts, Integral) or isinstance(parts, bool) or parts < 1:
        raise ValueError(f"parts must be a whole number, at least 1, not {shown(parts)}")
    if score.n_moments or score.parts > 1:
        raise ValueError(f"the mean over parts is that of a score of class counts, which {score.name} is not")
    if parts == 1:
        return score
    parts = int(parts)

    def mean_of_parts(counts: np.ndarray) -> np.ndarray:
        return np.mean(score.function(np.swapaxes(_by_part(counts, parts), -3, -2)), axis=-1)

    def mean_of_rests(counts: np.ndarray) -> np.ndarray:
        return np.mean(score.rest(_by_part(np.asarray(counts), parts)), axis=-1)

    def share(constants: Constants) -> Constants:
        return lambda n: (constants(n)[0] / parts, constants(n)[1] / parts)

    def exact_of_parts(counts: np.ndarray) -> np.ndarray:
        return score.exact(np.swapaxes(_by_part(counts, parts), -3, -2)).sum(axis=-1)

    def exact_rests(counts: np.ndarray) -> np.ndarray:
        return score.exact_rest(_by_part(counts, parts)).sum(axis=-1)

    return Score(
        f"{score.name}-of-{parts}-parts",
        mean_of_parts,
        share(score._sensitivity),
        share(score._range),
        score.monotone,
        ("lem-parts",),
        f"Mean over {parts} parts of the records of: {score.description}",
        score.sharp,
        score.needs_cap,
        parts=parts,
        homogeneous=score.homogeneous,
        rest=None if score.rest is None else mean_of_rests,
        _exact=exact_of_parts,
        _exact_rest=exact_rests,
        _exact_range=score._exact_range or score._range_on_grid,
    )


def _by_part(counts: np.ndarray, parts: int) -> np.ndarray:
    """Counts (..., parts * classes) as (..., parts, classes)."""
    if counts.shape[-1] % parts:
        raise ValueError(f"counts of {parts} parts have {parts} times as many columns as classes, not {counts.shape}")
    return counts.reshape(*counts.shape[:-1], parts, counts.shape[-1] // parts)


#: The scores that a classification tree may take, by name.
CLASSIFICATION = {score.name: score for score in (gini, normalised_gini, gini_gain, information_gain, majority)}

#: The scores that a regression tree may take, by name.
REGRESSION = {score.name: score for score in (between, sse, mass_gap, variance, weighted_variance)}
