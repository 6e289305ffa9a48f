"""Markov random fields: the law of maximum entropy whose marginals agree with the noisy ones that were measured.

Everything here is computed from noisy answers, as post-processing: it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest.arithmetic import exp, log
from dpforest.chance import Chance

__all__ = ["Attributes", "MarkovField", "Measurement", "eliminated", "n_cells"]

Attributes = tuple[int, ...]  # the axes of a table: indices of attributes, ascending

# mirror descent: size of the first step, and its factor after a step that is kept and after one that is not
_FIRST_STEP, _GROWTH, _SHRINKAGE = 2.0, 1.2, 0.5
_ROUNDING = 1e-12  # share of the loss that may be a rounding error
_STALLED = 1e-3  # descent ends after a step that lowers the loss by a smaller share than this
_MAX_SPREAD = 30.0  # a potential is at most this much below the largest of its table
_RESOLUTION = 1 << 53  # values of a uniform draw


def n_cells(sizes: Sequence[int], attributes: Iterable[int]) -> int:
    """Number of cells of the table of these attributes, where attribute ``a`` has ``sizes[a]`` codes."""
    return math.prod(sizes[a] for a in attributes)


def eliminated(sizes: Sequence[int], marginals: Iterable[Attributes]) -> list[tuple[int, Attributes]]:
    """Variable elimination: the attributes in the order in which they are eliminated, each with its clique.

    The clique of an attribute is that attribute and its neighbours, all of them eliminated later.  Two attributes are
    neighbours if they are in one marginal, or in the clique of an attribute that was eliminated before both.  The next
    attribute is always the one whose clique has the fewest cells.
    """
    neighbours = {a: {a} for a in range(len(sizes))}
    for attributes in marginals:
        for a in attributes:
            neighbours[a].update(attributes)
    cells, order = {a: n_cells(sizes, clique) for a, clique in neighbours.items()}, []
    while neighbours:
        _, smallest = min((number, a) for a, number in cells.items())
        clique = neighbours.pop(smallest)
        del cells[smallest]
        order.append((smallest, tuple(sorted(clique))))
        clique.discard(smallest)
        for a in clique:
            neighbours[a] |= clique
            neighbours[a].discard(smallest)
            cells[a] = n_cells(sizes, neighbours[a])
    return order


@dataclass(frozen=True)
class Measurement:
    """A noisy marginal: the number of records in each cell, and the variance of each; an axis for each attribute."""

    values: np.ndarray
    variances: np.ndarray

    def __add__(self, other: Measurement) -> Measurement:
        """The mean of two measurements of one marginal, weighted by the inverses of their variances."""
        mine, others = 1 / self.variances, 1 / other.variances
        return Measurement((self.values * mine + other.values * others) / (mine + others), 1 / (mine + others))


class MarkovField:
    """A law of whole records, proportional to the product of one factor for each measured marginal.

    Parameters
    ----------
    sizes : sequence of int
        Number of codes of each attribute.
    potentials : mapping or None
        Potentials to begin with, as the attribute below; None: none, which is the uniform law.

    Attributes
    ----------
    potentials : dict of Attributes to ndarray
        Logarithm of each factor, by the attributes of its marginal: an axis for each.
    total : float
        Number of records, estimated from the measurements; 1 before :meth:`fit`.
    """

    def __init__(self, sizes: Sequence[int], potentials: Mapping[Attributes, np.ndarray] | None = None) -> None:
        self.sizes = tuple(sizes)
        self.potentials: dict[Attributes, np.ndarray] = dict(potentials or {})
        self.total = 1.0
        self._measured: dict[Attributes, Measurement] = {}
        self._build_junction_tree()

    def size_with(self, more: Attributes) -> int:
        """Cells of all cliques of the junction tree together, if this marginal were measured, too."""
        if any(set(more) <= set(clique) for clique in self._cliques.values()):
            return sum(n_cells(self.sizes, clique) for clique in self._cliques.values())
        return sum(n_cells(self.sizes, clique) for _, clique in eliminated(self.sizes, [*self.potentials, more]))

    def measure(self, attributes: Attributes, found: Measurement) -> None:
        """Add the measurement of a marginal, which :meth:`fit` will use."""
        if attributes in self._measured:
            self._measured[attributes] += found
            return
        self._measured[attributes], self.potentials[attributes] = found, np.zeros(found.values.shape)
        self._build_junction_tree()

    def fit(self, steps: int) -> None:
        """Fit the potentials to the measured marginals: at most ``steps`` steps of mirror descent from where they are.

        The loss is half the sum of the squared residuals of all cells, each over the variance of its noise.  A marginal
        whose squares are on average no larger than that variance has no part in a step: it would fit the noise.
        """
        sums = [(known.values.sum(), 1 / known.variances.sum()) for known in self._measured.values()]
        self.total = max(1.0, sum(value * weight for value, weight in sums) / sum(weight for _, weight in sums))
        rate = _FIRST_STEP / (self.total * sum(1 / known.variances.min() for known in self._measured.values()))
        residuals, loss = self._residuals()
        for _ in range(steps):
            gradients = {key: residual / self._measured[key].variances for key, residual in residuals.items()}
            gradients = {key: g for key, g in gradients.items() if (g * residuals[key]).sum() > g.size}
            if not gradients:
                break
            before = {key: self.potentials[key] for key in gradients}
            self.potentials.update({key: _bounded(before[key] - rate * g) for key, g in gradients.items()})
            self._propagate()
            new_residuals, new_loss = self._residuals()
            # a step is kept if the loss falls by half of what its gradient promises
            promised = sum(float((g * (residuals[key] - new_residuals[key])).sum()) for key, g in gradients.items())
            if loss - new_loss >= promised / 2 - _ROUNDING * loss:
                stalled = loss - new_loss <= _STALLED * loss
                residuals, loss, rate = new_residuals, new_loss, rate * _GROWTH
                if stalled:
                    break
            else:
                self.potentials.update(before)
                rate *= _SHRINKAGE
        self._propagate()  # the last step may have been taken back

    def marginal(self, attributes: Attributes) -> np.ndarray:
        """Expected number of records in each cell of a table: an axis for each attribute."""
        for clique, shares in self._clique_marginals.values():
            if set(attributes) <= set(clique):  # the first clique that holds them all
                return self.total * _summed(shares, clique, attributes)
        # no clique does: multiply the conditional laws of all ancestors, and sum out each attribute as soon as possible
        needed = set(attributes)
        for a, clique in self._cliques.items():  # an attribute is conditioned on later ones
            if a in needed:
                needed.update(clique)
        waiting: dict[int, list[tuple[Attributes, np.ndarray]]] = {a: [] for a in needed}
        whole = np.ones([self.sizes[a] for a in attributes])
        for a, clique in self._cliques.items():
            if a not in needed:
                continue
            factors = [(clique, self._conditional(a)), *waiting.pop(a)]
            axes = tuple(sorted({b for own, _ in factors for b in own}))
            table = np.ones([self.sizes[b] for b in axes])
            for own, factor in factors:
                table *= _with_axes(factor, own, axes)
            left = axes if a in attributes else tuple(other for other in axes if other != a)
            table = _summed(table, axes, left)
            if following := [other for other in self._cliques if other in left and other in waiting]:
                waiting[following[0]].append((left, table))
            else:
                whole = whole * _with_axes(table, left, attributes)
        return self.total * whole

    def sample(self, n_rows: int, chance: Chance) -> np.ndarray:
        """Records drawn from the law, attribute by attribute: their codes, int64, shape (n_attributes, n_rows)."""
        drawn = np.zeros((len(self.sizes), n_rows), dtype=np.int64)
        for a, clique in reversed(self._cliques.items()):  # the rest of a clique is drawn before its attribute
            table = np.moveaxis(self._conditional(a), clique.index(a), -1)
            cumulative = np.cumsum(table.reshape(-1, self.sizes[a]), axis=1)
            row = np.zeros(n_rows, dtype=np.int64)  # of each record, by its codes of the rest of the clique
            for other in self._separators[a]:
                row = row * self.sizes[other] + drawn[other]
            uniform = chance.integers(_RESOLUTION, n_rows) / _RESOLUTION * cumulative[row, -1]
            drawn[a] = (cumulative[row, :-1] <= uniform[:, None]).sum(axis=1)
        return drawn

    # -- the junction tree -----------------------------------------------------------------------------------

    def _build_junction_tree(self) -> None:
        """Set up the junction tree of the potentials, and its marginals.

        A clique is named by the attribute that is eliminated with it.  Its separator is the rest of it, its parent the
        clique of the first attribute of the separator; a potential is in the clique of the first of its attributes.
        """
        self._cliques = dict(eliminated(self.sizes, self.potentials))
        place = {a: number for number, a in enumerate(self._cliques)}
        self._clique_of = {key: min(key, key=place.__getitem__) for key in self.potentials}
        self._separators = {a: tuple(b for b in clique if b != a) for a, clique in self._cliques.items()}
        self._parents = {a: min(rest, key=place.__getitem__) for a, rest in self._separators.items() if rest}
        self._propagate()

    def _propagate(self) -> None:
        """Belief propagation: set the marginals of the cliques, as shares, by messages to the parents and back."""
        logs = {a: np.zeros([self.sizes[b] for b in clique]) for a, clique in self._cliques.items()}
        for key, potential in self.potentials.items():
            logs[self._clique_of[key]] += _with_axes(potential, key, self._cliques[self._clique_of[key]])
        messages = {}
        for a, parent in self._parents.items():
            messages[a] = _log_summed(logs[a], self._cliques[a], self._separators[a])
            logs[parent] += _with_axes(messages[a], self._separators[a], self._cliques[parent])
        self._clique_marginals: dict[int, tuple[Attributes, np.ndarray]] = {}
        for a, clique in reversed(self._cliques.items()):
            if a in self._parents:
                parent = self._parents[a]
                answer = _log_summed(logs[parent], self._cliques[parent], self._separators[a])
                # less what the parent has from this clique itself
                logs[a] += _with_axes(answer - messages[a], self._separators[a], clique)
            shares = exp(logs[a] - logs[a].max())
            self._clique_marginals[a] = clique, shares / shares.sum()

    def _conditional(self, a: int) -> np.ndarray:
        """The law of an attribute given its separator: an axis for each attribute of the clique."""
        clique, shares = self._clique_marginals[a]
        mass = shares.sum(axis=clique.index(a), keepdims=True)
        uniform = np.full_like(shares, 1 / self.sizes[a])
        return np.divide(shares, mass, out=uniform, where=mass > 0)

    def _residuals(self) -> tuple[dict[Attributes, np.ndarray], float]:
        """Marginals of the field less the measured ones, in records, and the loss of :meth:`fit`."""
        residuals = {}
        for key, known in self._measured.items():
            clique, shares = self._clique_marginals[self._clique_of[key]]
            residuals[key] = self.total * _summed(shares, clique, key) - known.values
        return residuals, sum(float((r * r / self._measured[key].variances).sum()) / 2 for key, r in residuals.items())


def _bounded(potential: np.ndarray) -> np.ndarray:
    """The potential with its largest value moved to 0, and none below ``-_MAX_SPREAD``."""
    return np.maximum(potential - potential.max(), -_MAX_SPREAD)


def _with_axes(table: np.ndarray, attributes: Attributes, axes: Attributes) -> np.ndarray:
    """The table with an axis for each of ``axes``, of length 1 where it has none, so that it broadcasts."""
    sizes = dict(zip(attributes, table.shape, strict=True))
    return table.reshape([sizes.get(a, 1) for a in axes])


def _summed(table: np.ndarray, attributes: Attributes, left: Attributes) -> np.ndarray:
    """The table summed over all of its attributes that are not ``left``."""
    return table.sum(axis=tuple(place for place, a in enumerate(attributes) if a not in left))


def _log_summed(table: np.ndarray, attributes: Attributes, left: Attributes) -> np.ndarray:
    """The log-sum-exp of the table over all of its attributes that are not ``left``."""
    top = table.max(axis=tuple(place for place, a in enumerate(attributes) if a not in left), keepdims=True)
    return log(_summed(exp(table - top), attributes, left)) + top.reshape(_summed(top, attributes, left).shape)
