"""Noisy sums: class counts, numbers of records, sums of targets and of products, each charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpforest import mechanisms
from dpforest.curator.base import Base
from dpforest.curator.filters import FILTERED, FilterLimits
from dpforest.curator.queries import (
    BY_WEIGHT,
    CodeCounts,
    FilteredSums,
    GapAndSize,
    Histograms,
    LeafSteps,
    Measured,
    Products,
)
from dpforest.curator.weights import FINEST
from dpforest.design import Design, Weights
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, REPLACE_ONE, claim
from dpforest.structure.crossings import Crossings

__all__ = ["FREE_HESSIAN", "GAP_SHARE", "Sums", "step_sensitivity"]

#: Share of the rho of a cell that its gap has; the rest is for its size.  A record replaced by one of the other side of
#: the same cell moves the gap by two: there more for the gap would cost more than it brings.
GAP_SHARE = {ADD_REMOVE: 0.75, REPLACE_ONE: 0.5}

#: Weight of the Hessians of a leaf, relative to its residuals, up to which they add nothing to the cost: the largest
#: whole number below ``(11 + 5 sqrt(5)) / 2``.
FREE_HESSIAN = 11


@claim("lem-leaf-steps")
def step_sensitivity(second: str, weight: float) -> dict[str, float]:
    """How much a record changes the steps of a tree at most, by relation: a squared L2 norm, residuals being at most 1.

    Parameters
    ----------
    second : {"hessian", "count"}
        What is summed in addition to the residuals.
    weight : float
        Factor of its square: at most ``FREE_HESSIAN``, or 1 of counts.

    Guarantee
    ---------
    The maximum, attained (:prf:ref:`lem-leaf-steps`).
    """
    if not 0 < weight <= (FREE_HESSIAN if second == "hessian" else 1):
        raise ValueError(f"no lemma says what a {second} of weight {shown(weight)} costs: lower the weight")
    return {ADD_REMOVE: 1.0 if second == "hessian" else 1 + weight, REPLACE_ONE: 4.0}


class Sums(Base):
    """Answers with noise: any :class:`~dpforest.curator.queries.Measured` query, and those with noise of their own."""

    def noisy(self, query: Measured, scopes: np.ndarray, epsilon: float | np.ndarray) -> np.ndarray:
        """The answer to a query with noise, which may make it negative: a row for each scope.

        Parameters
        ----------
        query : Measured
            Says by how much one record changes its answer.
        scopes : ndarray of int, shape (n_rows,)
            Ledger scope of each row of the answer.
        epsilon : float or ndarray
            Budget of each row; under a delta a rho.

        Returns
        -------
        ndarray of int64, in steps of the query
            Of float64 where two sides are measured by gap and size, for they may be halves.

        Guarantee
        ---------
        ``epsilon`` per row under the ledger's relation, by the sensitivity that the query declares; of
        :class:`~dpforest.curator.queries.RecordCounts` under replace-one half of it, and nothing where a record stays
        (:prf:ref:`thm-geometric`, :prf:ref:`thm-parallel`, :prf:ref:`lem-gap-and-size`).

        Raises
        ------
        TypeError
            On a query that does not say how one record changes its answer; nothing is charged.
        ValueError
            Where there are not as many scopes as rows, one at least; nothing is charged.
        """
        if not isinstance(query, Measured):
            raise TypeError(
                f"{shown(query)} does not say how much one record changes its answer, so no noise hides it: ask a "
                "query of dpforest.curator.queries that is Measured, or make one"
            )
        n_rows = np.size(scopes)
        if not n_rows or not np.size(epsilon):
            raise ValueError(f"to {query.label} needs a scope to charge and a budget for each row: nothing is answered")
        rate = np.broadcast_to(np.asarray(epsilon, dtype=float), n_rows) / query.sensitivity[self._ledger.relation]
        exact = self._exact(query)
        if len(exact) != n_rows:
            raise ValueError(f"to {query.label} gives {len(exact)} rows, not one for each of {n_rows} scopes")
        if query.pairs and self._ledger.delta:
            return self._gaps_and_sizes(exact, rate, scopes, query.pairs)
        step = self.unit if query.step is BY_WEIGHT else query.step
        return self._add_noise(exact, rate, step, scopes, query.label, query.replaced)

    @claim("lem-children")
    def count_children(
        self,
        splits: Any,
        nodes: np.ndarray,
        scopes: np.ndarray,
        allowed: np.ndarray,
        epsilon: float | np.ndarray,
        *,
        classes: bool = True,
    ) -> np.ndarray:
        """Noisy class counts of each child that a node would have, by each feature; they may be negative.

        Parameters
        ----------
        allowed : ndarray of bool, shape (n_nodes, n_features)
            The features of each node, at least one.
        epsilon : float or ndarray
            Budget of each node, of which each of its features has the same part.
        classes : bool
            False: the number of records of each child, in the place of its class counts.

        Returns
        -------
        ndarray of int64, shape (n_nodes, sum of the cardinalities, n_classes), or (..., 1) without ``classes``
            The children of a feature follow those of the features before it; 0 where a feature is not allowed.

        Guarantee
        ---------
        ``epsilon`` per node under the ledger's relation: by each feature a record is in one child, so the counts of a
        feature are a histogram, and the features read the same records (:prf:ref:`lem-children`).  Under a delta
        ``epsilon`` is a rho.
        """
        rate = np.broadcast_to(np.asarray(epsilon, dtype=float), len(nodes))
        rate = rate / HISTOGRAM_SENSITIVITY[self._ledger.relation]  # what a record costs that is added or removed
        counts = np.zeros((len(nodes), int(self._offsets[-1]), self.n_classes if classes else 1), dtype=np.int64)
        for part in self._batches(len(nodes), counts[:1].size * (1 if classes else self.n_classes)):
            query = (Histograms if classes else CodeCounts)(splits, nodes[part], features=allowed[part])
            counts[part] = self._exact(query).reshape(counts[part].shape)
        asked = np.repeat(allowed, self.cardinalities, axis=1)  # whose child each column is
        each = np.broadcast_to((rate / np.maximum(allowed.sum(axis=1), 1))[:, None], asked.shape)[asked]
        counts[~asked] = 0
        counts[asked], name = self._drawn_noise(counts[asked], each[:, None], self.unit if classes else 1)
        label = f"count the {'classes' if classes else 'records'} of each child by each feature"
        self._ledger.charge(scopes, rate, 2 * rate, label, name)
        return counts

    @claim("lem-gap-and-size", "lem-all-classes")
    def _gaps_and_sizes(self, exact: np.ndarray, rate: np.ndarray, scopes: np.ndarray, pairs: GapAndSize) -> np.ndarray:
        """The sums of both sides; gap and size have noise of their own, and each row costs the rho ``rate``."""
        gap = GAP_SHARE[self._ledger.relation]
        # the gap is what moves a score, so it has a part of the budget of its own
        turned = np.stack([exact[..., 1] - exact[..., 0], exact[..., 1] + exact[..., 0]], axis=-1)
        each = rate.reshape(-1, *[1] * (exact.ndim - 1)) * np.array([gap, 1 - gap]) / pairs.squared
        noisy = mechanisms.discrete_gaussian(turned, each / pairs.step**2, self._chance)
        self._ledger.charge(scopes, rate, max(2.0, 4 * gap) * rate, pairs.label, "discrete Gaussian")
        return np.stack([noisy[..., 1] - noisy[..., 0], noisy[..., 1] + noisy[..., 0]], axis=-1) / 2

    @claim("lem-leaf-steps")
    def sum_steps(self, query: LeafSteps, scopes: np.ndarray, rho: float, weight: float) -> np.ndarray:
        """Noisy sums of a boosting step, under a delta: int64, shape (n_trees, n_leaves, 2).

        Parameters
        ----------
        query : LeafSteps
        scopes : ndarray of int, shape (n_trees,)
        rho : float
            Budget of each tree.
        weight : float
            Rate of the noise of the second sums over that of the residuals, see ``step_sensitivity``.

        Guarantee
        ---------
        ``rho`` per tree under the ledger's relation (:prf:ref:`lem-leaf-steps`).
        """
        if not self._ledger.delta:
            raise ValueError("steps of boosting have Gaussian noise, which needs a delta above 0")
        costs = step_sensitivity(query.second, weight)
        rate = rho / costs[self._ledger.relation]
        exact = self._exact(query)
        noisy = mechanisms.discrete_gaussian(exact, rate * np.array([1.0, weight]) / FINEST**2, self._chance)
        label = f"sum the residuals and the {query.second}s in the leaves of a tree"
        add_remove, replace_one = (rate * costs[relation] for relation in (ADD_REMOVE, REPLACE_ONE))
        self._ledger.charge(scopes, add_remove, replace_one, label, "discrete Gaussian")
        return noisy

    @claim("thm-individual-filter")
    def open_filter(self, limits: FilterLimits, scope: Any = 0) -> None:
        """Open an individual filter, and charge for all of its rounds.

        Parameters
        ----------
        limits : FilterLimits
        scope : int
            Ledger scope.

        Guarantee
        ---------
        All answers of :meth:`sum_filtered` together cost the rho of the limits (:prf:ref:`thm-individual-filter`).
        """
        if not self._ledger.delta or self.n_classes != 2:
            raise ValueError("an individual filter is of two classes, and is proved under a delta: give one above 0")
        self._ledger.charge(scope, *limits.charges, "open an individual filter", FILTERED)
        self._records.open_filter(limits)

    @claim("thm-individual-filter", "lem-gradient-pairs")
    def sum_filtered(self, crossing: Crossings, scope: Any = 0) -> np.ndarray:
        """Noisy sums of gradients and Hessians over the records that joined the round, which is over then.

        Parameters
        ----------
        crossing : Crossings
            One table.
        scope : int
            Ledger scope.

        Returns
        -------
        ndarray of int64, shape (n_cells, 2)
            In steps of ``1 / FINEST``.
        """
        exact = self._exact(FilteredSums(crossing))
        self._records.leave_round()  # records have paid for one answer
        noisy = mechanisms.discrete_gaussian(exact, self._records.limits().rates, self._chance)
        self._ledger.charge(scope, 0.0, 0.0, "sum the gradients and Hessians of a leaf", FILTERED)  # open_filter paid
        return noisy[0]

    @claim("pub-functional-redraw")
    def sum_products(
        self,
        design: Design,
        weights: Weights,
        scope: Any = 0,
        *,
        until: Callable[[np.ndarray], bool] | None = None,
        attempts: int = 100_000,
    ) -> np.ndarray:
        """Noisy sums over all records of the products of two coordinates of the design.

        Parameters
        ----------
        design : Design
            How codes become whole-number coordinates.
        weights : Weights
            What each kind of sum may lose; the sums of a kind of weight 0 are not read.
        scope : int
            Ledger scope.
        until : callable or None
            Draw the noise again until this public test of the noisy sums says True, and charge twice
            (:prf:ref:`pub-functional-redraw`).
        attempts : int
            Draws after which nothing is released: ``RuntimeError``, which is for the curator's eyes.

        Returns
        -------
        ndarray of int64, shape (n_coordinates, n_coordinates)
            Symmetric; 0 where nothing was read.

        Guarantee
        ---------
        :meth:`~dpforest.design.Design.loss` of the weights, under either relation.
        """
        self._without_delta("sum products")
        cells = design.matrix(weights)
        i, j = np.nonzero(cells)  # each product once, above the diagonal or on it
        rate = cells[i, j] / (design.units[i] * design.units[j])
        exact = self._exact(Products(design))[i, j]
        times = 1 if until is None else 2
        add_remove, replace_one = (times * design.loss(weights, relation) for relation in (ADD_REMOVE, REPLACE_ONE))
        query = "sum the products of the columns"
        self._ledger.charge(scope, add_remove, replace_one, query, "two-sided geometric")
        for _ in range(attempts):
            noisy = np.zeros(cells.shape, dtype=np.int64)
            noisy[i, j] = noisy[j, i] = mechanisms.two_sided_geometric(exact, rate, self._chance)
            if until is None or until(noisy):
                return noisy
        raise RuntimeError(f"no draw out of {attempts} passed the test: nothing is released")
