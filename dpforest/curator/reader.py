"""Encoding the rows of a table that an engine reads, wherever they lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpforest.chance import keyed
from dpforest.engines import Block
from dpforest.schema import Schema

__all__ = ["SchemaReader"]


@dataclass(frozen=True)
class SchemaReader:
    """How rows become a :class:`~dpforest.engines.Block` by a schema: small enough to travel to every worker.

    Parameters
    ----------
    schema : Schema
    n_bins : int
    target : str
        Column of the labels or of the numeric target.
    key : str or None
        Column that identifies a record.
    """

    schema: Schema
    n_bins: int
    target: str
    key: str | None = None

    @property
    def features(self) -> list[str]:
        """The columns that are encoded."""
        return self.schema.columns

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        return list(dict.fromkeys([*self.schema.columns, self.target, *([self.key] if self.key else [])]))

    def read(self, frame: pd.DataFrame, first: int | None = None) -> Block:
        """Encode rows of which the first is record ``first`` of the table, or None where there is no order."""
        encoded = self.schema.encode(frame[self.schema.columns], self.n_bins)
        strays = {**encoded.clipped, **encoded.other}
        if self.schema.classes is None:
            labels, outside = self.schema.encode_target(frame[self.target])
        else:
            labels, outside = self.schema.encode_labels(frame[self.target]), 0
        numbers = None
        if self.key is not None:
            numbers = keyed.identify(frame[self.key])
        elif first is not None:
            numbers = np.arange(first, first + len(frame), dtype=np.uint64)
        counts = [*(strays.get(name, 0) for name in self.schema.columns), outside]
        return Block(encoded.codes, labels, numbers, np.array(counts, dtype=np.int64))
