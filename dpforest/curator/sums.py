"""Noisy sums: class counts, numbers of records, sums of targets and of products, each paid for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpforest import mechanisms
from dpforest.curator.base import Base
from dpforest.curator.queries import (
    BY_WEIGHT,
    ClassCounts,
    CodeCounts,
    CrossSums,
    Histograms,
    Masses,
    Measured,
    Products,
    RecordCounts,
    ResidualCounts,
    TargetSums,
)
from dpforest.curator.weights import FINE, FINEST
from dpforest.design import Design, Weights
from dpforest.messages import shown
from dpforest.models.crossings import Crossings
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, REPLACE_ONE, claim

__all__ = ["GAP_SHARE", "Sums"]

#: Share of the rho of a cell that its gap has; the rest is for its size.  A record replaced by one of the other side of
#: the same cell moves the gap by two: there more for the gap would cost more than it brings.
GAP_SHARE = {ADD_REMOVE: 0.75, REPLACE_ONE: 0.5}


class Sums(Base):
    """Answers with noise: any :class:`~dpforest.curator.queries.Measured` query, and those with noise of their own."""

    def _of_histograms(self, epsilon: float | np.ndarray, size: int) -> np.ndarray:
        """The rate of each of so many histograms, for the budget that one costs under the ledger's relation."""
        epsilon = np.broadcast_to(np.asarray(epsilon, dtype=float), (size,))
        return epsilon / HISTOGRAM_SENSITIVITY[self._ledger.relation]

    def noisy(self, query: Measured, scopes: np.ndarray, epsilon: float | np.ndarray) -> np.ndarray:
        """The answer to a query with noise, which may make it negative: int64, a row for each scope.

        Parameters
        ----------
        query : Measured
            Says by how much one record changes its answer.
        scopes : ndarray of int, shape (n_rows,)
            Ledger scope of each row of the answer.
        epsilon : float or ndarray
            Budget of each row.

        Guarantee
        ---------
        ``epsilon`` per row under the ledger's relation, by the sensitivity that the query declares; of
        :class:`~dpforest.curator.queries.RecordCounts` under replace-one half of it, and nothing where a record stays
        (:prf:ref:`thm-geometric`, :prf:ref:`thm-parallel`).

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
        step = self.unit if query.step is BY_WEIGHT else query.step
        return self._add_noise(exact, rate, step, scopes, query.label, query.replaced)

    def count_classes(
        self, splits: Any, nodes: np.ndarray, scopes: np.ndarray, epsilon: float | np.ndarray
    ) -> np.ndarray:
        """Noisy class counts of each leaf: :class:`~dpforest.curator.queries.ClassCounts`."""
        return self.noisy(ClassCounts(splits, nodes), scopes, epsilon)

    def count_records(
        self, splits: Any, nodes: np.ndarray, scopes: np.ndarray, epsilon: float | np.ndarray
    ) -> np.ndarray:
        """Noisy number of records of each node: :class:`~dpforest.curator.queries.RecordCounts`."""
        return self.noisy(RecordCounts(splits, nodes), scopes, epsilon)

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
        rate = self._of_histograms(epsilon, len(nodes))
        counts = np.zeros((len(nodes), int(self._offsets[-1]), self.n_classes if classes else 1), dtype=np.int64)
        for part in self._parts(len(nodes), counts[:1].size * (1 if classes else self.n_classes)):
            query = (Histograms if classes else CodeCounts)(splits, nodes[part], features=allowed[part])
            counts[part] = self._exact(query).reshape(counts[part].shape)
        asked = np.repeat(allowed, self.cardinalities, axis=1)  # whose child each column is
        each = np.broadcast_to((rate / np.maximum(allowed.sum(axis=1), 1))[:, None], asked.shape)[asked]
        counts[~asked] = 0
        counts[asked], name = self._drawn_noise(counts[asked], each[:, None], self.unit if classes else 1)
        label = f"count the {'classes' if classes else 'records'} of each child by each feature"
        self._ledger.charge(scopes, rate, 2 * rate, label, name)
        return counts

    @claim("lem-calibrated-weights", "lem-twin-weights")
    def count_crossing(
        self, crossing: Crossings, side: float, scopes: np.ndarray, epsilon: float | np.ndarray
    ) -> np.ndarray:
        """Noisy weights of both sides in each cell of one table: of the other classes, and of the target.

        Parameters
        ----------
        crossing : Crossings
            One table.
        side : int or float
            Class code of the target; of a regression the scale at which residuals are clipped.
        scopes : ndarray of int, shape (n_cells,)
            Of each cell, in the order of the cells.
        epsilon : float or ndarray
            Budget of each cell.

        Returns
        -------
        ndarray of int64, shape (n_cells, 2)
            In steps of ``1 / FINE``; they may be negative.  Under a delta of float64, for they may be halves.

        Guarantee
        ---------
        ``epsilon`` per cell under the ledger's relation: a record adds at most 1 to the two sums of one cell together,
        so the L1 sensitivity of the cells together is 1 under add-remove and 2 under replace-one
        (:prf:ref:`thm-geometric`, :prf:ref:`lem-calibrated-weights`, :prf:ref:`lem-twin-weights`).  Under a delta gap
        and size of each cell have the noise, and ``epsilon`` is a rho (:prf:ref:`lem-gap-and-size`).
        """
        rate = self._of_histograms(epsilon, len(scopes))
        kind = np.int64 if self.n_classes else np.float64
        [exact] = self._exact(CrossSums(crossing, np.array([side], dtype=kind)))
        if self._ledger.delta:
            return self._gaps_and_sizes(exact, rate, scopes)
        return self._add_noise(exact, rate, FINE, scopes, "sum the weights in a cell")

    @claim("lem-all-classes")
    def count_gradients(self, crossing: Crossings, scopes: np.ndarray, epsilon: float | np.ndarray) -> np.ndarray:
        """Noisy weights against and for each class in each cell of one table: the gradient of the log loss, in parts.

        Parameters
        ----------
        crossing : Crossings
            One table.
        scopes : ndarray of int, shape (n_cells,)
            Of each cell, in the order of the cells.
        epsilon : float or ndarray
            Budget of each cell.

        Returns
        -------
        ndarray of int64, shape (n_cells, n_classes, 2)
            In steps of ``1 / FINEST``; they may be negative.  Under a delta of float64, for they may be halves.

        Guarantee
        ---------
        ``epsilon`` per cell under the ledger's relation: a record adds at most 1 for its class and at most 1 against
        all others together, so the L1 sensitivity of the cells together is 2 under add-remove and 4 under replace-one.
        Under a delta ``epsilon`` is a rho (:prf:ref:`lem-all-classes`).
        """
        rate = self._of_histograms(epsilon, len(scopes))
        exact = self._exact(CrossSums(crossing, np.arange(self.n_classes), together=True)).transpose(1, 0, 2)
        if self._ledger.delta:
            return self._gaps_and_sizes(exact, rate, scopes, FINEST, 2, "sum the gradients and their sizes in a cell")
        return self._add_noise(exact, rate, 2 * FINEST, scopes, "sum the gradients in a cell")

    @claim("lem-gap-and-size", "lem-all-classes")
    def _gaps_and_sizes(
        self,
        exact: np.ndarray,
        rate: np.ndarray,
        scopes: np.ndarray,
        step: int = FINE,
        squared: int = 1,
        query: str = "sum the gap and the size of a cell",
    ) -> np.ndarray:
        """The sums of both sides, of which the gap and the size have their own noise; each cell costs the rho ``rate``.

        What a record adds to the sizes of its cell, or to its gaps, has a Euclidean norm whose square is at most
        ``squared``, in steps.
        """
        gap = GAP_SHARE[self._ledger.relation]
        turned = np.stack([exact[..., 1] - exact[..., 0], exact[..., 1] + exact[..., 0]], axis=-1)
        each = rate.reshape(-1, *[1] * (exact.ndim - 1)) * np.array([gap, 1 - gap]) / squared
        noisy = mechanisms.discrete_gaussian(turned, each / step**2, self._chance)
        self._ledger.charge(scopes, rate, max(2.0, 4 * gap) * rate, query, "discrete Gaussian")
        return np.stack([noisy[..., 1] - noisy[..., 0], noisy[..., 1] + noisy[..., 0]], axis=-1) / 2

    def count_residuals(self, edges: np.ndarray, scopes: np.ndarray, epsilon: float) -> np.ndarray:
        """Noisy numbers of records by the size of their residual: :class:`~dpforest.curator.queries.ResidualCounts`.

        ``edges`` are ascending shares of the target's range; ``scopes`` is the one scope of what holds all records.
        """
        return self.noisy(ResidualCounts(edges), scopes, epsilon)[0]

    def sum_masses(self, splits: Any, nodes: np.ndarray, scopes: np.ndarray, epsilon: float | np.ndarray) -> np.ndarray:
        """Noisy masses of the target in each leaf: :class:`~dpforest.curator.queries.Masses`."""
        return self.noisy(Masses(splits, nodes), scopes, epsilon)

    def sum_targets(
        self, splits: Any, nodes: np.ndarray, scopes: np.ndarray, epsilon: float | np.ndarray
    ) -> np.ndarray:
        """Noisy sum of the target's codes in each leaf: :class:`~dpforest.curator.queries.TargetSums`."""
        return self.noisy(TargetSums(splits, nodes), scopes, epsilon)

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
        i, j = np.nonzero(cells)
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
