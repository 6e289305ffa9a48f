"""The mixed integer program behind :func:`dpforest.audit.attacks.reconstruction.reconstruct`.

Unknown is how many training records there are of each *group*: of the kinds of records of one class that no leaf tells
apart.  The counts of the leaves are sums of these numbers, and the log-likelihood of what the leaves say is a concave
function of the counts, piecewise linear between whole numbers, so that a linear program holds it exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from dpforest.arithmetic import exp, log1p, logaddexp
from dpforest.audit.attacks.observer import Observer

__all__ = ["IntegerProgram", "label_log_likelihood"]

FLAT = 1e-9  # slopes of a log-likelihood that differ by less make one chord


class Rows(NamedTuple):
    """Constraints ``low <= unknowns @ numbers + extra @ variables <= high``."""

    unknowns: Any
    extra: Any
    low: Any
    high: Any


class Extra(NamedTuple):
    """Continuous variables that measure how well the leaves agree: cost and bounds of each."""

    cost: np.ndarray
    low: np.ndarray
    high: np.ndarray


class IntegerProgram:
    """Which numbers of records make the leaves most probable.

    Parameters
    ----------
    seen : Observer
    log_prior : ndarray of float, shape (n_records,), or None
        Log-probability of each record that the schema allows.
    n_records : int or None
        Number of training records, where it is known; needed where leaves say labels.

    Attributes
    ----------
    kinds : list of ndarray of int
        For each unknown, the records that may stand for it: the most probable ones of its group.
    """

    def __init__(self, seen: Observer, log_prior: np.ndarray | None, n_records: int | None):
        self._seen, self._n_classes = seen, seen.cardinalities[-1]
        groups, within, leaves = _groups(seen)
        # unknowns are ordered by group and counts by leaf, then both by class
        self._counts = sparse.kron(within, sparse.eye_array(self._n_classes), format="csr")
        self.kinds = [cells * self._n_classes + label for cells in groups for label in range(self._n_classes)]
        cost = np.zeros(len(self.kinds))
        if log_prior is not None:
            best = [log_prior[kinds].max() for kinds in self.kinds]
            self.kinds = [kinds[log_prior[kinds] == top] for kinds, top in zip(self.kinds, best, strict=True)]
            cost = -np.array(best)
        possible = np.isfinite(cost)  # a prior of zero rules a group out
        self._cost = np.where(possible, cost, 0.0)
        values, rate = seen.forest.values[leaves], seen.rate[leaves]
        # more records of a kind than any of its leaves says there are never help
        most = max(int(values.max()), 0) if n_records is None else n_records
        self._most = np.where(possible, float(most), 0.0)
        if seen.noise.leaf == "counts":
            self._extra, self._rows = self._fit_counts(values, rate)
        else:
            self._extra, self._rows = self._fit_labels(values, rate, most)
        if n_records is not None:
            everyone = np.ones((1, len(self.kinds)))
            self._rows.append(Rows(everyone, _nothing(1, len(self._extra.cost)), n_records, n_records))

    def solve(self, **options):
        """Solve it; the result is that of ``scipy.optimize.milp``, with the numbers first in ``x``."""
        n, m = len(self._cost), len(self._extra.cost)
        matrix = sparse.vstack([sparse.hstack([rows.unknowns, rows.extra]) for rows in self._rows], format="csr")
        low, high = (
            np.concatenate(
                [np.broadcast_to(np.asarray(end, dtype=float), rows.unknowns.shape[0]) for rows, end in ends]
            )
            for ends in ([(rows, rows.low) for rows in self._rows], [(rows, rows.high) for rows in self._rows])
        )
        cost = np.concatenate([self._cost, self._extra.cost])
        scale = float(np.abs(cost).max(initial=0)) or 1.0  # the solver's tolerances are absolute
        found = milp(
            cost / scale,
            integrality=np.repeat([1, 0], [n, m]),
            bounds=Bounds(
                np.concatenate([np.zeros(n), self._extra.low]), np.concatenate([self._most, self._extra.high])
            ),
            constraints=LinearConstraint(matrix, low, high),
            options=options,
        )
        if found.x is not None:
            found.fun *= scale
        return found

    def _fit_counts(self, values, rate) -> tuple[Extra, list[Rows]]:
        """A residual above and one below each count; none where there is no noise."""
        rate = np.repeat(rate, self._n_classes)
        noisy = np.flatnonzero(np.isfinite(rate))
        side = sparse.eye_array(len(rate), format="csc")[:, noisy]
        said = values.ravel().astype(float)
        residuals = 2 * len(noisy)
        extra = Extra(np.tile(rate[noisy], 2), np.zeros(residuals), np.full(residuals, np.inf))
        return extra, [Rows(self._counts, sparse.hstack([side, -side]), said, said)]

    def _fit_labels(self, values, rate, most: int) -> tuple[Extra, list[Rows]]:
        """The log-likelihood of each label, below the chords of a concave function of how far it leads."""
        ahead = sparse.kron(sparse.eye_array(len(rate)), np.array([[-1.0, 1.0]]))  # class 1 over class 0
        sign = np.where(np.argmax(values, axis=1) == 1, 1.0, -1.0)
        lead = (sparse.diags_array(sign) @ ahead @ self._counts).tocsr()
        chords = [_chords(self._seen.noise.mechanism, rate, one, most) for one in np.unique(rate)]
        leaf, slope, height = map(np.concatenate, zip(*chords, strict=True))
        likelihood = sparse.eye_array(len(rate), format="csr")[leaf]
        below = Rows(-sparse.diags_array(slope) @ lead[leaf], likelihood, -np.inf, height)
        leads = Rows(lead, _nothing(len(rate), len(rate)), np.where(np.isinf(rate), 0.0, -np.inf), np.inf)
        extra = Extra(np.full(len(rate), -1.0), np.full(len(rate), -np.inf), np.zeros(len(rate)))
        return extra, [below, leads]


def label_log_likelihood(mechanism: str, advantage) -> np.ndarray:
    """Log-probability that a selection between two labels says one of them, by rate times its lead in counts.

    It is concave in the lead under both mechanisms.
    """
    advantage = np.asarray(advantage, dtype=float)
    if mechanism == "exponential":
        return -logaddexp(0, -advantage)
    return np.where(advantage < 0, advantage - np.log(2), log1p(-exp(-np.abs(advantage)) / 2))


def _groups(seen: Observer):
    """Feature cells of each group, which leaf holds which group (a sparse 0-1 matrix), and the leaves."""
    cells = seen.leaf[:: seen.cardinalities[-1]]  # one row per combination of feature codes
    if seen.noise.shared:
        reached, of = np.unique(cells, axis=0, return_inverse=True)
        order = np.argsort(of.ravel(), kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(of.ravel()))[:-1])
    else:  # a record is in one tree alone, and the trees' leaves are different nodes
        reached = np.unique(cells)[:, None]
        groups = [np.flatnonzero((cells == leaf).any(axis=1)) for leaf in reached[:, 0]]
    leaves = np.unique(reached)
    at = np.searchsorted(leaves, reached).ravel(), np.repeat(np.arange(len(reached)), reached.shape[1])
    return groups, sparse.coo_array((np.ones(len(at[0])), at), shape=(len(leaves), len(reached))), leaves


def _chords(mechanism, rates, rate, most):
    """The leaves of that rate, each with the slopes and the heights at lead 0 of its chords."""
    if np.isinf(rate):  # a label without noise leads, or has tied and won a fair toss
        slope, height = np.array([np.log(2)]), np.array([-np.log(2)])
    else:
        leads = np.arange(-most, most + 1)
        value = label_log_likelihood(mechanism, rate * leads)
        slope = np.diff(value)
        height = value[:-1] - slope * leads[:-1]
        new = np.append(True, np.abs(np.diff(slope)) > FLAT)
        slope, height = slope[new], height[new]
    at = np.flatnonzero(rates == rate)
    return np.repeat(at, len(slope)), np.tile(slope, len(at)), np.tile(height, len(at))


def _nothing(height: int, width: int):
    return sparse.csr_array((height, width))
