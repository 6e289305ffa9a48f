"""What all of the curator's queries share: the records, the chance, the ledger, and what is public of the records."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest.chance import Chance
from dpforest.curator.protocol import Records
from dpforest.curator.weights import weight_levels
from dpforest.privacy import Ledger

__all__ = ["Base"]


class Base:
    """A curator that answers nothing yet."""

    #: All that the curator knows of the records, and the only attribute that can tell anything of them.
    _records: Records

    def __init__(
        self, records: Records, n_classes: int, cardinalities: Any, *, chance: Chance, ledger: Ledger, n_jobs: int = 1
    ) -> None:  # fmt: skip
        self._chance, self._ledger, self._n_jobs = chance, ledger, n_jobs
        self._records = records
        self.n_classes = int(n_classes)
        self.cardinalities = np.asarray(cardinalities, dtype=np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self.cardinalities)])
        #: Steps in which a record of full weight counts; 1 while all records count alike.
        self.unit = 1
        self._has_weights = False
        #: Parts of the records, see :meth:`divide`.
        self.n_parts = 1

    def _count_in_steps(self) -> None:
        """From here on records count by their weight."""
        self.unit, self._has_weights = weight_levels(self.n_classes), True

    def _class_counts(self, splits: Any, nodes: np.ndarray) -> np.ndarray:
        """Exact class counts, in steps of ``1 / unit``; the table is not read again where they are known."""
        known = self._records.known.recall(splits, nodes, self.n_classes)
        return self._records.class_counts(splits, nodes) if known is None else known

    def _moments(self, splits: Any, nodes: np.ndarray, n_moments: int) -> np.ndarray:
        """Exact moments of the target's codes; the table is not read again where they are known."""
        known = self._records.known.recall(splits, nodes, n_moments)
        return self._records.moments(splits, nodes, n_moments) if known is None else known

    def _parts(self, n_nodes: int, cells: int) -> list[slice]:
        """Nodes in parts, of which each has no more cells in all than one answer may hold."""
        step = max(1, self._records.cells // max(cells, 1))
        return [slice(start, start + step) for start in range(0, n_nodes, step)]
