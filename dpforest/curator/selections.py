"""Selections: how one is made, and what it chooses among, each kind a public value that says how it is scored.

:meth:`~dpforest.curator.Curator.choose` takes one, makes the choice private, and charges for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpforest import scores
from dpforest.structure.crossings import Crossings

__all__ = [
    "STOP",
    "BinaryCandidates",
    "Candidates",
    "CutCandidates",
    "DivisionCandidates",
    "FeatureCandidates",
    "LabelCandidates",
    "MarginalCandidates",
    "Selection",
    "TableCandidates",
]

#: What a selection answers for the candidate "do not split".
STOP = -1


@dataclass(frozen=True)
class Selection:
    """How a selection is made.

    Attributes
    ----------
    score : Score
        The utility of a candidate, of :mod:`dpforest.scores`.  Labels and tables have one of their own, whatever is
        named here.
    mechanism : {"permute-and-flip", "exponential"}
    calibration : {"range", "sensitivity"}
        Rate ``epsilon / R``, or the papers' ``epsilon / (2 sensitivity)``.
    stop_margin : float or None
        If given, *stop* is a candidate too, where nodes choose how to split.  Its score is ``score.rest`` of the node
        plus the public constant ``stop_margin / rate``, so that only nodes whose splits cannot be distinguished under
        the noise tend to stop.
    n_max : float
        Public cap on the number of records, for scores whose range depends on it; more records raise.
    """

    score: scores.Score = scores.majority
    mechanism: str = "permute-and-flip"
    calibration: str = "range"
    stop_margin: float | None = None
    n_max: float = np.inf

    @property
    def cap(self) -> float:
        """The cap that the rate counts on; none with *stop*, whose score attains the supremum of R at any size."""
        return self.n_max if self.stop_margin is None or self.score.needs_cap else np.inf


class Candidates:
    """What a selection chooses among: one choice for each node, or one in all."""

    label: ClassVar[str]

    @property
    def n_choices(self) -> int:
        """How many choices are made, each with a ledger scope of its own."""
        return 1

    def scored_by(self, how: Selection) -> tuple[scores.Score, float]:
        """The score of these candidates, and the public cap on the number of records that its range may count on."""
        return how.score, how.cap

    def query(self, score: scores.Score) -> str:
        """What the ledger calls the selection."""
        return f"{self.label} by {score.name}"


@dataclass(frozen=True, eq=False)
class _OfNodes(Candidates):
    """Candidates of each of some nodes of the public forest."""

    splits: Any
    nodes: np.ndarray

    @property
    def n_choices(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, eq=False)
class FeatureCandidates(_OfNodes):
    """Features to split each node on, with one child per code; the choice is a feature, or ``STOP``.

    ``allowed`` (bool, n_nodes by n_features) are the candidates of each node, at least one.
    """

    allowed: np.ndarray
    label = "choose a feature"


@dataclass(frozen=True, eq=False)
class CutCandidates(_OfNodes):
    """Cuts of the features of each node, and splits with one child per code; the choice is a column, or ``STOP``.

    ``allowed`` (bool, n_nodes by the sum of the cardinalities) are the candidates of each node, at least one.  The
    columns of a feature follow those of the features before it: the cut after code 0, after code 1, and so on; after
    the last code nothing is left to cut off, and this column is the split with one child per code.
    """

    allowed: np.ndarray
    label = "choose a cut"


@dataclass(frozen=True, eq=False)
class BinaryCandidates(_OfNodes):
    """K binary splits of each node; the choice is the place of one, or ``STOP``.

    ``features`` is int32, (n_nodes, K); ``masks`` (uint64, n_nodes by K by 4) say which codes of the feature go to the
    second child, as 256 bits.
    """

    features: np.ndarray
    masks: np.ndarray
    label = "choose a cut"


@dataclass(frozen=True, eq=False)
class LabelCandidates(_OfNodes):
    """The labels of each leaf, scored by its class counts; the choice is a class code, and *stop* is no candidate."""

    label = "choose the label of a leaf"

    def scored_by(self, how: Selection) -> tuple[scores.Score, float]:
        return scores.majority, np.inf

    def query(self, score: scores.Score) -> str:
        return self.label


@dataclass(frozen=True, eq=False)
class DivisionCandidates(Candidates):
    """Divisions of a feature's codes, of which all these nodes together choose one by the sum of their scores.

    The choice is the place of one, and *stop* is no candidate.

    Attributes
    ----------
    nodes : ndarray of int, shape (n_nodes,)
        Of one tree; none below another.
    features : ndarray of int, shape (K,)
        The feature that each candidate divides; at least one candidate.
    children : ndarray of int, shape (K, 256)
        The child that each code goes to, from 0 on; -1 for a code whose records do not count.
    """

    splits: Any
    nodes: np.ndarray
    features: np.ndarray
    children: np.ndarray
    label = "choose a division"

    def scored_by(self, how: Selection) -> tuple[scores.Score, float]:
        score = how.score
        if not score.monotone or score.n_moments or score.parts > 1:
            raise ValueError(f"a sum of {score.name} over nodes has no proved range: use a monotone score of counts")
        return score, how.n_max


@dataclass(frozen=True, eq=False)
class TableCandidates(Candidates):
    """Pairs of a public table and a side, scored by how far the weights of the side and of all others are apart.

    The score is :func:`dpforest.scores.soft_gap`, the choice ``side * len(crossings) + table``; *stop* is no candidate.

    Attributes
    ----------
    crossings : Crossings
        At least one.
    sides : ndarray, shape (n_sides,)
        Class codes, each against all others; of a regression the one scale at which residuals are clipped, as a share
        of the target's range.
    threshold : int
        Gaps of a cell up to so many steps of ``1 / FINE``, or of ``1 / FINEST`` if ``together``, do not count.
    together : bool
        Score a table by all sides, which are all classes, together; the side chosen is then the first.
    """

    crossings: Crossings
    sides: np.ndarray
    threshold: int
    together: bool = False
    label = "choose a table"

    def scored_by(self, how: Selection) -> tuple[scores.Score, float]:
        return scores.soft_gap(self.threshold), np.inf


@dataclass(frozen=True, eq=False)
class MarginalCandidates(Candidates):
    """Marginals, scored by how wrong a public model is about them: :func:`dpforest.scores.misfit`.

    The choice is the place of one; *stop* is no candidate.

    Attributes
    ----------
    crossings : Crossings
        The table of each candidate, at least one.
    by_class : ndarray of bool, shape (n_tables,)
        Whether the class is an attribute of the marginal, too.
    modelled : tuple of ndarray of int64, each of shape (n_cells, n_classes), or (n_cells, 1) without the class
        Number of records in each cell of each table by the model, in steps of ``1 / GRAIN``.
    weights : tuple of int
        Factor of each score, at least 1.
    noise : tuple of int
        Expected distance by noise alone, which is subtracted from that of each candidate, in the same steps.
    """

    crossings: Crossings
    by_class: np.ndarray
    modelled: tuple[np.ndarray, ...]
    weights: tuple[int, ...]
    noise: tuple[int, ...]
    label = "choose a marginal"

    @property
    def scored(self) -> list[scores.Score]:
        """The score of each candidate."""
        heaviest = max(self.weights)
        each = zip(self.modelled, self.weights, self.noise, strict=True)
        return [scores.misfit(modelled, weight, heaviest, noise) for modelled, weight, noise in each]

    def scored_by(self, how: Selection) -> tuple[scores.Score, float]:
        return self.scored[0], np.inf
