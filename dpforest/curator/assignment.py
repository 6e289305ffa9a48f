"""Which trees see a record, and with which weight it counts: steps that answer nothing, and cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest.curator.base import Base
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["Sharing"]


class Sharing(Base):
    """The ways in which records are assigned to trees, or weighed."""

    @claim("thm-assignment", "thm-keyed-assignment", "cex-position-hash")
    def assign(self, n_trees: int) -> None:
        """Assign each record to one tree, by a coin of its own, which depends on no other record and on no value.

        Guarantee
        ---------
        Trees that each cost ε then cost ε together, under both relations: :prf:ref:`thm-assignment`, and
        :prf:ref:`thm-keyed-assignment` where the coin is computed from a key of the record or from its place.
        """
        if n_trees > 1:
            self._records.assign(n_trees, self._chance)

    @claim("lem-parts")
    def partition_records(self, n_parts: int) -> None:
        """Give each record to one of ``n_parts`` parts, by a coin of its own, for scores that are means over parts.

        Raises
        ------
        ValueError
            Where a part and a class do not fit into one code of 256.
        """
        if n_parts * self.n_classes > 256:
            raise ValueError(
                f"{n_parts} parts of {self.n_classes} classes are more than 256 counts: at most "
                f"{256 // self.n_classes} parts"
            )
        if n_parts > 1:
            self._records.partition_records(n_parts, self._chance)
            self.n_parts = n_parts

    @claim("cex-equal-size", "pub-parallel-trees")
    def split_equally(self, n_trees: int) -> None:
        """Give each tree a random subset, all of one size or one less, as published.

        Adding one record may move another, so the trees together cost more than ε: :prf:ref:`thm-equal-split`.
        """
        records = self._records.whole()
        if n_trees > 1:
            records.split_equally(n_trees, self._chance)

    @claim("pub-bootstrap", "cex-bootstrap", "thm-bootstrap-size")
    def bootstrap(self, n_trees: int) -> None:
        """Give each tree n draws with replacement from the n records, as published.

        A record may come to a tree several times: trees that each cost ε cost more, :prf:ref:`thm-bootstrap-size`.
        """
        self._records.whole().bootstrap(n_trees, self._chance)

    @claim("thm-bootstrap")
    def poisson_bootstrap(self, n_trees: int) -> None:
        """Give each tree a Poisson number of copies of each record, of mean 1, drawn for that record alone.

        Guarantee
        ---------
        A tree of loss ε under add-remove costs ``e^ε - 1`` there, ``2 sinh ε`` under replace-one
        (:prf:ref:`thm-bootstrap`).

        Raises
        ------
        ValueError
            Where records are identified by keys, which may repeat: the theorem requires independent copies.
        """
        self._records.poisson_bootstrap(n_trees, self._chance)

    def hold_out(self, share: float) -> None:
        """Put a random share of the records aside, but never all of them: for ``HeldOutCounts`` alone."""
        self._records.whole().hold_out(share, self._chance)

    @claim("thm-own-weights", "lem-weighted-sse")
    def weigh_records(
        self,
        forest: Forest | None = None,
        values: np.ndarray | None = None,
        *,
        class_weights: Any = None,
        rule: str = "capped",
    ) -> None:
        """Set the weight of each record, a function of its own label and of the votes of released trees for it alone.

        Parameters
        ----------
        forest : Forest or None
            Released trees, whose votes are added to each record's scores.
        values : ndarray of float64, shape (n_nodes, n_classes)
            Votes of each leaf for each class, public.
        class_weights : ndarray of float, shape (n_classes,), or None
            Public weights of the classes, from 0 to 1.
        rule : {"capped", "logistic"}
            How the margin of the record's class over the best other one makes a weight: one of ``WEIGHTS``.

        Guarantee
        ---------
        Answers nothing, and costs nothing.  From here on a record counts for at most 1, in steps of ``1 / unit``, so
        that every query costs what it cost without weights (:prf:ref:`thm-own-weights`).  Of the scores this holds for
        sums over the children, such as ``gini``, and not for shares of the node, such as ``normalised_gini``.

        Notes
        -----
        A weight below half a step is 0: the record no longer counts.
        """
        if forest is not None:
            self._records.add_scores(forest, np.asarray(values))
        self._records.weigh_records(class_weights, rule)
        self._count_in_steps()

    @claim("lem-calibrated-weights")
    def add_scores(self, forest: Forest, values: np.ndarray) -> None:
        """Add the votes of released trees to each record's scores: for choices of tables and queries of cells.

        Parameters
        ----------
        forest : Forest
            Released trees.
        values : ndarray of float64, shape (n_nodes, n_classes)
            Votes of each leaf for each class, public; the softmax of their sums is a probability.

        Guarantee
        ---------
        Answers nothing, and costs nothing: a weight is a function of the record's own class and of what is public, and
        at most 1 (:prf:ref:`thm-own-weights`).
        """
        self._records.add_scores(forest, np.asarray(values))

    @claim("thm-individual-filter")
    def join_round(self, tree: Forest | None = None, said: np.ndarray | None = None) -> None:
        """Let each record that can pay for the next round of a filter join it, and pay; which records join is secret.

        Parameters
        ----------
        tree, said : Forest and ndarray of float64, shape (n_nodes, 2), or None
            The newest released tree, and the votes of its nodes, which are added to each record's scores.
        """
        self._records.join_round(tree, said)
