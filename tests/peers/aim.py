"""AIM: synthetic rows from the noisy marginals that a model of them gets most wrong, chosen one after the other.

After McKenna, Mullins, Sheldon and Miklau, *AIM: An Adaptive and Iterative Mechanism for Differentially Private
Synthetic Data* (2022), written from the paper.  The budget is zero-concentrated, and neighbours differ in one record
that is there or not.  Junction trees and their sizes are those of the package mbi, imported where it is used: what
decides privacy needs NumPy alone.  Messages along a tree are sent here, for mbi compiles each new tree for longer than
a fit of it takes; :meth:`Field.check` compares them with mbi's.  Noise is drawn in floating point, as in the paper's
own experiments: this is for a comparison, not for a release.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

Attributes = tuple[int, ...]  # positions of columns, ascending; the class is the last column

MEASURE = 0.9  # share of a round's budget that is for the measurement, alpha of the paper


# --- what decides privacy ---------------------------------------------------------------------------------------------
@dataclass
class Budget:
    """What is left of rho, and what the next round may take of it.

    Measuring a marginal with Gaussian noise of standard deviation sigma costs 1 / (2 sigma^2), for a record is in one
    cell; selecting by the exponential mechanism with epsilon costs epsilon^2 / 8, for its range is bounded.
    """

    rho: float
    rounds: int  # how many there would be without annealing
    spent: list[float] = field(default_factory=list)

    def __post_init__(self):
        self.sigma = math.sqrt(self.rounds / (2 * MEASURE * self.rho))
        self.epsilon = math.sqrt(8 * (1 - MEASURE) * self.rho / self.rounds)

    @property
    def left(self) -> float:
        return max(0.0, self.rho - math.fsum(self.spent))

    def price(self, selects: bool = True) -> float:
        return 1 / (2 * self.sigma**2) + (self.epsilon**2 / 8 if selects else 0.0)

    def spend(self, selects: bool = True) -> None:
        if (price := self.price(selects)) > self.left * (1 + 1e-9):
            raise ValueError(f"this would cost {price:g}, and {self.left:g} is left")
        self.spent.append(price)

    def anneal(self, moved: float, noise: float) -> None:
        """Make the next round dearer if this one moved the model by no more than noise does."""
        if moved <= noise:
            self.sigma, self.epsilon = self.sigma / 2, 2 * self.epsilon
        self.settle()

    def settle(self) -> None:
        """Give the next round all that is left, if two rounds would take it."""
        if 0 < self.left <= 2 * self.price():
            self.sigma = math.sqrt(1 / (2 * MEASURE * self.left))
            self.epsilon = math.sqrt(8 * (1 - MEASURE) * self.left)

    @property
    def over(self) -> bool:
        return self.left <= 1e-9 * self.rho


def counts(codes: np.ndarray, sizes: Sequence[int], of: Attributes) -> np.ndarray:
    """The marginal: how many records are in each cell.  ``codes`` has one row for each record."""
    shape = tuple(sizes[a] for a in of)
    cells = np.ravel_multi_index(tuple(codes[:, a] for a in of), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(float)


def expected_noise(sigma: float, cells: int) -> float:
    """L1 norm that Gaussian noise has on the average."""
    return math.sqrt(2 / math.pi) * sigma * cells


def score(true: np.ndarray, modelled: np.ndarray, sigma: float, weight: float) -> float:
    """By how much a measurement is expected to help: its sensitivity is the weight."""
    return weight * (float(np.abs(true - modelled).sum()) - expected_noise(sigma, true.size))


def exponential_law(scores: np.ndarray, epsilon: float, sensitivity: float) -> np.ndarray:
    """Law of the exponential mechanism: weights exp(epsilon score / (2 sensitivity))."""
    logits = epsilon * np.asarray(scores) / (2 * sensitivity)
    masses = np.exp(logits - logits.max())
    return masses / masses.sum()


def choose(
    scores: np.ndarray, epsilon: float, sensitivity: float, rng: np.random.Generator, fits: Callable[[int], bool]
) -> int | None:
    """Draw from that law among the candidates that ``fits`` admits; None if it admits none.

    The order of scores with Gumbel noise is an order of drawing without replacement, so the first that is admitted has
    the law of the mechanism on the admitted ones alone, and only those before it have to be asked about.
    """
    noisy = epsilon * np.asarray(scores) / (2 * sensitivity) + rng.gumbel(size=len(scores))
    return next((int(at) for at in np.argsort(-noisy) if fits(int(at))), None)


def workload(n_columns: int) -> list[Attributes]:
    """Every pair of a feature and the class, and every two features with the class: what a classifier wants to know."""
    features, label = range(n_columns - 1), n_columns - 1
    return [(*part, label) for k in (1, 2) for part in itertools.combinations(features, k)]


def weights(queries: Sequence[Attributes]) -> list[int]:
    """How many attributes a query shares with those of the workload, all in all."""
    return [sum(len(set(query) & set(other)) for other in queries) for query in queries]


# --- coarser codes, from what is released -----------------------------------------------------------------------------
def merged(masses: np.ndarray, least: float, ordered: bool) -> np.ndarray:
    """New code of each code: those of a noisy mass below ``least`` share one, neighbours if they are ordered."""
    if ordered:
        found, at, mass = np.zeros(len(masses), dtype=int), 0, 0.0
        for code, more in enumerate(masses):
            found[code], mass = at, mass + more
            if mass >= least:
                at, mass = at + 1, 0.0
        if mass < least and at:  # what remains at the end goes with the last that was full
            found[found == at] = at - 1
        return found
    few = np.flatnonzero(masses < least)
    if len(few) < 2:
        return np.arange(len(masses))
    found = np.empty(len(masses), dtype=int)
    found[few] = 0
    found[masses >= least] = 1 + np.arange(len(masses) - len(few))
    return found


# --- the model --------------------------------------------------------------------------------------------------------
@dataclass
class Measured:
    """Noisy cells and their variances; of the same marginal, all measurements in one."""

    values: np.ndarray
    variances: np.ndarray

    def __add__(self, other: Measured) -> Measured:
        precise = 1 / self.variances + 1 / other.variances
        values = (self.values / self.variances + other.values / other.variances) / precise
        return Measured(values, 1 / precise)


class Field:
    """The Markov random field whose marginals are nearest to the measured ones, by mbi's junction tree and messages."""

    def __init__(self, sizes: Sequence[int]):
        from mbi import Domain

        self.domain = Domain(range(len(sizes)), sizes)
        self.known: dict[Attributes, Measured] = {}
        self.potentials: dict[Attributes, np.ndarray] = {}
        self.total = 1.0
        self._plant()

    def megabytes(self, more: Attributes) -> float:
        """Size of the model if this marginal is measured as well."""
        from mbi import junction_tree

        if any(set(more) <= set(clique) for clique in self.cliques):
            return 0.0  # it is no larger than it is
        return junction_tree.hypothetical_model_size(self.domain, [*self.known, more])

    def measure(self, of: Attributes, found: Measured) -> None:
        self.known[of] = self.known[of] + found if of in self.known else found
        self.potentials.setdefault(of, np.zeros(found.values.shape))
        home = next((clique for clique in self.cliques if set(of) <= set(clique)), None)
        if home is None:
            self._plant()
        else:
            self._home[of] = home

    def _plant(self) -> None:
        from mbi import junction_tree

        self._tree = junction_tree.make_junction_tree(self.domain, list(self.known) or [(a,) for a in self.domain])[0]
        self.cliques = junction_tree.maximal_cliques(self._tree)
        self._home = {of: next(c for c in self.cliques if set(of) <= set(c)) for of in self.known}
        self._near = {clique: set(self._tree[clique]) for clique in self.cliques}
        self._steps, seen = [], set()
        for root in self.cliques:  # parents before their children
            ahead = [(root, ())] if root not in seen else []
            while ahead:
                clique, parent = ahead.pop()
                seen.add(clique)
                self._steps.append((clique, parent, tuple(a for a in clique if a in parent)))
                ahead += [(other, clique) for other in sorted(self._near[clique]) if other != parent]

    def _tables(self, potentials: dict[Attributes, np.ndarray]) -> dict[Attributes, np.ndarray]:
        """The potentials, those within one clique added up."""
        tables = {clique: np.zeros(self.domain.project(clique).shape) for clique in self.cliques}
        for of, potential in potentials.items():
            home = self._home[of]
            tables[home] += potential.reshape([size if a in of else 1 for a, size in self._shape(home)])
        return tables

    def _shape(self, clique: Attributes) -> list[tuple[int, int]]:
        return [(a, self.domain[a]) for a in clique]

    def _beliefs(self, potentials: dict[Attributes, np.ndarray]) -> dict[Attributes, np.ndarray]:
        """Marginals of the cliques: messages to the root of the tree, and back."""
        logs, sent = self._tables(potentials), {}
        for clique, parent, shared in reversed(self._steps):
            if parent:
                sent[clique] = _log_summed(logs[clique], clique, shared)
                logs[parent] += sent[clique].reshape([n if a in shared else 1 for a, n in self._shape(parent)])
        for clique, parent, shared in self._steps:
            if parent:
                message = _log_summed(logs[parent], parent, shared) - sent[clique]
                logs[clique] += message.reshape([n if a in shared else 1 for a, n in self._shape(clique)])
        found = {clique: np.exp(table - table.max()) for clique, table in logs.items()}
        return {clique: table * (self.total / table.sum()) for clique, table in found.items()}

    def check(self) -> None:
        """Hold the marginals of the cliques against mbi's own belief propagation."""
        import jax
        from mbi import CliqueVector, Factor, marginal_oracles

        jax.config.update("jax_enable_x64", True)
        jax.clear_caches()  # each model is compiled anew
        factors = {of: Factor(self.domain.project(of), table) for of, table in self._tables(self.potentials).items()}
        vector = CliqueVector(self.domain, self.cliques, factors)
        found = marginal_oracles.message_passing_hugin(vector, self.total, self._tree)
        for clique in self.cliques:
            if not np.allclose(found[clique].values, self.beliefs[clique], rtol=1e-6, atol=1e-6 * self.total):
                raise RuntimeError(f"another marginal of {clique} than mbi's")

    def _read(self, beliefs: dict[Attributes, np.ndarray], of: Attributes) -> np.ndarray:
        return _summed(beliefs[self._home[of]], self._home[of], of)

    def fit(self, iterations: int, tolerance: float = 1e-5) -> None:
        """Mirror descent from where the model stands, each step as long as still pays."""
        sums = [(m.values.sum(), m.variances.sum()) for m in self.known.values()]
        self.total = max(1.0, sum(value / v for value, v in sums) / sum(1 / v for _, v in sums))

        def look(potentials):
            beliefs = self._beliefs(potentials)
            gaps = {of: self._read(beliefs, of) - m.values for of, m in self.known.items()}
            return beliefs, gaps, sum(float((gaps[of] ** 2 / m.variances).sum()) / 2 for of, m in self.known.items())

        beliefs, gaps, loss = look(self.potentials)
        rate = 2 / (self.total * sum(1 / m.variances.min() for m in self.known.values()))
        checked = loss
        for at in range(iterations):
            slopes = {of: gaps[of] / m.variances for of, m in self.known.items()}
            tried = {of: potential - rate * slopes[of] for of, potential in self.potentials.items()}
            new_beliefs, new_gaps, new_loss = look(tried)
            gain = sum(float((slopes[of] * (gaps[of] - new_gaps[of])).sum()) for of in slopes)
            if loss - new_loss >= gain / 2 - 1e-12 * loss:
                self.potentials, beliefs, gaps, loss = tried, new_beliefs, new_gaps, new_loss
                rate *= 1.2
            else:
                rate /= 2
            if at % 25 == 24:
                if checked - loss <= tolerance * loss:
                    break
                checked = loss
        self.beliefs, self.loss = beliefs, loss

    def marginal(self, of: Attributes) -> np.ndarray:
        """What the model says of any marginal: along the part of the tree that leads from one attribute to another."""
        wanted, near = set(of), {clique: set(others) for clique, others in self._near.items()}
        for clique in self.cliques:
            if wanted <= set(clique):
                return _summed(self.beliefs[clique], clique, of)
        ends = list(near)
        while ends:  # an end that adds nothing to its neighbour is not on the way
            clique = ends.pop()
            if clique not in near or len(near[clique]) > 1:
                continue
            beside = next(iter(near[clique]), ())
            if wanted & set(clique) <= set(beside):
                del near[clique]
                if beside:
                    near[beside].discard(clique)
                    ends.append(beside)
        parts: list = []
        for clique, others in near.items():
            parts += [self.beliefs[clique] / self.total, list(clique)]
            for other in others:
                if clique < other:
                    shared = tuple(sorted(set(clique) & set(other)))
                    mass = _summed(self.beliefs[clique], clique, shared) / self.total
                    parts += [np.divide(1, mass, out=np.zeros_like(mass), where=mass > 0), list(shared)]
        return self.total * np.einsum(*parts, list(of), optimize="greedy")

    def sample(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Records drawn from the model, clique by clique along the tree."""
        import networkx

        drawn, known = np.zeros((rows, len(self.domain)), dtype=np.int64), set()
        for clique in networkx.dfs_preorder_nodes(self._tree):
            given, new = [a for a in clique if a in known], [a for a in clique if a not in known]
            at = [clique.index(a) for a in (*given, *new)]
            table = np.maximum(self.beliefs[clique].transpose(at), 0)
            table = table.reshape(math.prod(table.shape[: len(given)]), -1) + 1e-300  # no row of zeros alone
            upto = np.cumsum(table, axis=1)
            upto /= upto[:, -1:]
            row = np.zeros(rows, dtype=np.int64)
            if given:
                row = np.ravel_multi_index(drawn[:, given].T, [self.domain[a] for a in given])
            # one search for all rows: the sums of row r lie between r and r + 1
            steps = (upto + np.arange(len(upto))[:, None]).ravel()
            place = np.searchsorted(steps, row + rng.random(rows), side="right")
            cell = np.clip(place - row * upto.shape[1], 0, upto.shape[1] - 1)
            drawn[:, new] = np.column_stack(np.unravel_index(cell, [self.domain[a] for a in new]))
            known |= set(clique)
        return drawn


def _log_summed(table: np.ndarray, clique: Attributes, of: Iterable[int]) -> np.ndarray:
    keep = set(of)
    out = tuple(at for at, a in enumerate(clique) if a not in keep)
    top = table.max(axis=out, keepdims=True)
    return np.log(np.exp(table - top).sum(axis=out)) + top.squeeze(out)


def _summed(table: np.ndarray, clique: Attributes, of: Iterable[int]) -> np.ndarray:
    keep = set(of)
    return table.sum(axis=tuple(at for at, a in enumerate(clique) if a not in keep))


# --- the algorithm ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Synthesis:
    """Rows of coarser codes, how codes become coarser, what was measured, at what price, and the model."""

    rows: np.ndarray
    maps: list[np.ndarray]
    measured: list[Attributes]
    spent: list[float]
    model: Field


def synthesize(
    codes: np.ndarray,
    sizes: Sequence[int],
    ordered: Sequence[bool],
    rho: float,
    rng: np.random.Generator,
    *,
    rounds: int,
    megabytes: float,
    rows: int,
    iterations: tuple[int, int] = (100, 500),
    least: tuple[float, float] = (1.0, 3.0),
    field: Callable[[Sequence[int]], Field] = Field,
) -> Synthesis:
    """AIM on codes, one row for each record, its class in the last column.

    ``rounds`` and ``megabytes`` are T and MAX-SIZE of the paper, ``rows`` the least number of rows that are drawn.
    ``iterations`` are those after a round and those at the end.  ``least`` is what a code's noisy mass is to be, in
    standard deviations, to be kept apart: of a category, and of a number.
    """
    budget, columns = Budget(rho, rounds), range(len(sizes))

    # 1. each column by itself
    first = [counts(codes, sizes, (a,)) + rng.normal(0, budget.sigma, sizes[a]) for a in columns]
    for _ in columns:
        budget.spend(selects=False)
    maps = [merged(first[a], least[ordered[a]] * budget.sigma, ordered[a]) for a in columns[:-1]]
    maps.append(np.arange(sizes[-1]))
    codes = np.column_stack([new[codes[:, a]] for a, new in enumerate(maps)])
    sizes = [int(new.max()) + 1 for new in maps]
    model = field(sizes)
    for a, new in enumerate(maps):
        model.measure((a,), Measured(np.bincount(new, first[a]), np.bincount(new) * budget.sigma**2))
    model.fit(iterations[0])

    # 2. the marginal that the model gets most wrong, until nothing is left
    queries, measured = workload(len(sizes)), [(a,) for a in columns]
    true, weight = [counts(codes, sizes, of) for of in queries], weights(queries)
    budget.settle()
    while not budget.over:
        room = megabytes * (1 - (budget.left - budget.price()) / rho)
        said = [model.marginal(of) for of in queries]
        scores = [score(*pair, budget.sigma, w) for *pair, w in zip(true, said, weight, strict=True)]
        at = choose(scores, budget.epsilon, max(weight), rng, lambda at: model.megabytes(queries[at]) <= room)  # noqa: B023
        if at is None:
            break  # the rest of the budget is not spent
        budget.spend()
        noisy = true[at] + rng.normal(0, budget.sigma, true[at].shape)
        model.measure(queries[at], Measured(noisy, np.full(noisy.shape, budget.sigma**2)))
        model.fit(iterations[0])
        measured.append(queries[at])
        moved = float(np.abs(model.marginal(queries[at]) - said[at]).sum())
        budget.anneal(moved, expected_noise(budget.sigma, noisy.size))
    model.fit(iterations[1], tolerance=1e-7)
    return Synthesis(model.sample(max(rows, round(model.total)), rng), maps, measured, budget.spent, model)
