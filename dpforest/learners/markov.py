"""Markov random fields: the law of a whole record that agrees with measured marginals and adds nothing to them.

All of it is computed from noisy answers, so that nothing here can cost any privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest.arithmetic import exp, log
from dpforest.chance import Chance

__all__ = ["Attributes", "MarkovField", "Measurement", "eliminated", "n_cells"]

Attributes = tuple[int, ...]  # of a table, ascending

_STEP, _LONGER, _SHORTER = 2.0, 1.2, 0.5  # of the descent: the first one, and what follows a good or a bad one
_ROUNDING = 1e-12
_STALLED = 1e-3  # of the loss, which a step must take away for another one to follow
_FAR = 30.0  # how far a potential may be behind the largest of its table
_FINE = 1 << 53  # of a uniform draw


def n_cells(sizes: Sequence[int], of: Iterable[int]) -> int:
    """How many cells the table of these attributes has."""
    return math.prod(sizes[a] for a in of)


def eliminated(sizes: Sequence[int], marginals: Iterable[Attributes]) -> list[tuple[int, Attributes]]:
    """A junction tree, by elimination: each attribute in its turn, with those of its clique.

    The clique of an attribute holds it, and all later ones that it shares a marginal with, or a clique of an earlier
    one.  The next attribute is the one whose clique has the fewest cells.
    """
    near = {a: {a} for a in range(len(sizes))}
    for of in marginals:
        for a in of:
            near[a].update(of)
    cells, found = {a: n_cells(sizes, clique) for a, clique in near.items()}, []
    while near:
        _, taken = min((number, a) for a, number in cells.items())
        clique = near.pop(taken)
        del cells[taken]
        found.append((taken, tuple(sorted(clique))))
        clique.discard(taken)
        for a in clique:
            near[a] |= clique
            near[a].discard(taken)
            cells[a] = n_cells(sizes, near[a])
    return found


@dataclass(frozen=True)
class Measurement:
    """The noisy cells of a marginal, and their variances."""

    values: np.ndarray
    variances: np.ndarray

    def __add__(self, other: Measurement) -> Measurement:
        """Both measurements of one marginal in one, each with a weight in inverse proportion to its variance."""
        mine, others = 1 / self.variances, 1 / other.variances
        return Measurement((self.values * mine + other.values * others) / (mine + others), 1 / (mine + others))


class MarkovField:
    """The law of a record that is in proportion to the product of one factor for each measured marginal.

    Parameters
    ----------
    sizes : sequence of int
        Codes of each attribute.
    potentials : mapping or None
        What is known of them to begin with.

    Attributes
    ----------
    potentials : dict
        The logarithm of each factor, by the attributes of its marginal.
    total : float
        Number of records, as the measurements have it.
    """

    def __init__(self, sizes: Sequence[int], potentials: Mapping[Attributes, np.ndarray] | None = None) -> None:
        self.sizes = tuple(sizes)
        self.potentials: dict[Attributes, np.ndarray] = dict(potentials or {})
        self.total = 1.0
        self._known: dict[Attributes, Measurement] = {}
        self._plant()

    def size_with(self, more: Attributes) -> int:
        """Cells of the junction tree if this marginal is measured, too."""
        if any(set(more) <= set(clique) for clique in self._cliques.values()):
            return sum(n_cells(self.sizes, clique) for clique in self._cliques.values())
        return sum(n_cells(self.sizes, clique) for _, clique in eliminated(self.sizes, [*self.potentials, more]))

    def measure(self, of: Attributes, found: Measurement) -> None:
        """Take note of a noisy marginal."""
        if of in self._known:
            self._known[of] += found
            return
        self._known[of], self.potentials[of] = found, np.zeros(found.values.shape)
        self._plant()

    def fit(self, steps: int) -> None:
        """Draw near to the measured marginals, by mirror descent from where the field is: so many steps at most.

        A marginal that is no farther from its measurement than noise is moves the field no more: what is left there
        would fit the noise.
        """
        sums = [(known.values.sum(), 1 / known.variances.sum()) for known in self._known.values()]
        self.total = max(1.0, sum(value * weight for value, weight in sums) / sum(weight for _, weight in sums))
        rate = _STEP / (self.total * sum(1 / known.variances.min() for known in self._known.values()))
        gaps, loss = self._gaps()
        for _ in range(steps):
            slopes = {of: gap / self._known[of].variances for of, gap in gaps.items()}
            slopes = {of: slope for of, slope in slopes.items() if (slope * gaps[of]).sum() > slope.size}
            if not slopes:
                break
            before = {of: self.potentials[of] for of in slopes}
            self.potentials.update({of: _capped(before[of] - rate * slope) for of, slope in slopes.items()})
            self._believe()
            new_gaps, new_loss = self._gaps()
            gain = sum(float((slope * (gaps[of] - new_gaps[of])).sum()) for of, slope in slopes.items())
            if loss - new_loss >= gain / 2 - _ROUNDING * loss:
                stalled = loss - new_loss <= _STALLED * loss
                gaps, loss, rate = new_gaps, new_loss, rate * _LONGER
                if stalled:
                    break
            else:
                self.potentials.update(before)
                rate *= _SHORTER
        self._believe()

    def marginal(self, of: Attributes) -> np.ndarray:
        """The number of records that the field expects in each cell."""
        for clique, belief in self._beliefs.values():
            if set(of) <= set(clique):  # the first one that holds them
                return self.total * _summed(belief, clique, of)
        needed = set(of)
        for a, clique in self._cliques.items():  # whatever an attribute depends on comes later
            if a in needed:
                needed.update(clique)
        waiting: dict[int, list[tuple[Attributes, np.ndarray]]] = {a: [] for a in needed}
        whole = np.ones([self.sizes[a] for a in of])
        for a, clique in self._cliques.items():
            if a not in needed:
                continue
            parts = [(clique, self._given(a)), *waiting.pop(a)]
            scope = tuple(sorted({b for mine, _ in parts for b in mine}))
            table = np.ones([self.sizes[b] for b in scope])
            for mine, part in parts:
                table *= _spread(part, mine, scope)
            left = scope if a in of else tuple(other for other in scope if other != a)
            table = _summed(table, scope, left)
            if following := [other for other in self._cliques if other in left and other in waiting]:
                waiting[following[0]].append((left, table))
            else:
                whole = whole * _spread(table, left, of)
        return self.total * whole

    def sample(self, n_rows: int, chance: Chance) -> np.ndarray:
        """Records drawn from the law, attribute by attribute: int64, shape (n_attributes, n_rows)."""
        drawn = np.zeros((len(self.sizes), n_rows), dtype=np.int64)
        for a, clique in reversed(self._cliques.items()):
            table = np.moveaxis(self._given(a), clique.index(a), -1)
            others = [other for other in clique if other != a]
            upto = np.cumsum(table.reshape(-1, self.sizes[a]), axis=1)
            row = np.zeros(n_rows, dtype=np.int64)
            for other in others:
                row = row * self.sizes[other] + drawn[other]
            coin = chance.integers(_FINE, n_rows) / _FINE * upto[row, -1]
            drawn[a] = (upto[row, :-1] <= coin[:, None]).sum(axis=1)
        return drawn

    # -- private ---------------------------------------------------------------------------------------------

    def _plant(self) -> None:
        """Lay out the junction tree, each potential in the clique of the first of its attributes."""
        self._cliques = dict(eliminated(self.sizes, self.potentials))
        place = {a: number for number, a in enumerate(self._cliques)}
        self._home = {of: min(of, key=place.__getitem__) for of in self.potentials}
        self._rest = {a: tuple(b for b in clique if b != a) for a, clique in self._cliques.items()}
        self._parent = {a: min(rest, key=place.__getitem__) for a, rest in self._rest.items() if rest}
        self._believe()

    def _believe(self) -> None:
        """The marginals of the cliques, as shares: messages towards the last attribute, and back."""
        logs = {a: np.zeros([self.sizes[b] for b in clique]) for a, clique in self._cliques.items()}
        for of, potential in self.potentials.items():
            logs[self._home[of]] += _spread(potential, of, self._cliques[self._home[of]])
        sent = {}
        for a, parent in self._parent.items():
            sent[a] = _log_summed(logs[a], self._cliques[a], self._rest[a])
            logs[parent] += _spread(sent[a], self._rest[a], self._cliques[parent])
        self._beliefs: dict[int, tuple[Attributes, np.ndarray]] = {}
        for a, clique in reversed(self._cliques.items()):
            if a in self._parent:
                parent = self._parent[a]
                known = _log_summed(logs[parent], self._cliques[parent], self._rest[a])
                logs[a] += _spread(known - sent[a], self._rest[a], clique)
            shares = exp(logs[a] - logs[a].max())
            self._beliefs[a] = clique, shares / shares.sum()

    def _given(self, a: int) -> np.ndarray:
        """The law of an attribute given the others of its clique, in the shape of the clique."""
        clique, belief = self._beliefs[a]
        mass = belief.sum(axis=clique.index(a), keepdims=True)
        even = np.full_like(belief, 1 / self.sizes[a])
        return np.divide(belief, mass, out=even, where=mass > 0)

    def _gaps(self) -> tuple[dict[Attributes, np.ndarray], float]:
        """How far the marginals are from the measured ones, and half the sum of squares, by the noise."""
        gaps = {}
        for of, known in self._known.items():
            clique, belief = self._beliefs[self._home[of]]
            gaps[of] = self.total * _summed(belief, clique, of) - known.values
        return gaps, sum(float((gap * gap / self._known[of].variances).sum()) / 2 for of, gap in gaps.items())


def _capped(potential: np.ndarray) -> np.ndarray:
    return np.maximum(potential - potential.max(), -_FAR)


def _spread(table: np.ndarray, of: Attributes, into: Attributes) -> np.ndarray:
    """The table in the shape of one of more attributes, over which it says the same."""
    sizes = dict(zip(of, table.shape, strict=True))
    return table.reshape([sizes.get(a, 1) for a in into])


def _summed(table: np.ndarray, of: Attributes, left: Attributes) -> np.ndarray:
    """The table summed over all but these attributes."""
    return table.sum(axis=tuple(place for place, a in enumerate(of) if a not in left))


def _log_summed(table: np.ndarray, of: Attributes, left: Attributes) -> np.ndarray:
    """The logarithm of the sum of the exponentials over all but these attributes."""
    top = table.max(axis=tuple(place for place, a in enumerate(of) if a not in left), keepdims=True)
    return log(_summed(exp(table - top), of, left)) + top.reshape(_summed(top, of, left).shape)
