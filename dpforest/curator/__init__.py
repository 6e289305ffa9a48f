"""The only code that reads records: the trusted curator of the differential-privacy literature.

A learner hands the curator a *query* about the nodes of its public, growing forest.  The curator counts, passes
the exact integers through a mechanism, writes the charge to the ledger, and returns the private answer alone.
What a published algorithm reads without paying for goes through :meth:`Curator.peek` and its kin: the answer is exact,
and the ledger records a leak.
"""

from __future__ import annotations

from dpforest.curator.choices import CALIBRATIONS, STOP, Choices
from dpforest.curator.peeks import Peeks
from dpforest.curator.sums import Sums
from dpforest.curator.weights import WEIGHTS
from dpforest.privacy import claim

__all__ = ["CALIBRATIONS", "STOP", "WEIGHTS", "Curator"]


@claim("def-two-doors")
class Curator(Choices, Sums, Peeks):
    """Answers queries about records it alone can see.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows)
    labels : ndarray of uint8, shape (n_rows,)
        Class codes, or for a regression the target's codes on its public grid.
    n_classes : int
        0 for a regression.
    cardinalities : ndarray of int, shape (n_features,)
        Codes of each feature; public, from the schema.
    chance : Chance
        Where the noise comes from.
    ledger : Ledger
        Where the charges go; its relation is the one that ``"range"`` calibrates for.
    n_jobs : int
        Threads that count.

    Notes
    -----
    Every method that answers takes ``splits`` (the public forest so far), ``nodes`` (node ids) and ``scopes`` (the
    ledger scope of each node).
    """
