"""Where the records lie: tables larger than memory, on one machine or many, read in blocks.

``fit`` and ``predict`` take a path or glob of Parquet files (:class:`~dpforest.engines.parquet.Parquet`), a Dask
DataFrame (:class:`~dpforest.engines.dask.Dask`) or a Spark DataFrame (:class:`~dpforest.engines.spark.Spark`) wherever
they take a table in memory.  A learner asks the curator for whole numbers only, and whole numbers add up: the same
function counts each block, wherever the block lies, and the sums, hence the model, are the same to the last bit.
"""

from __future__ import annotations

from typing import Any

from dpforest.engines.table import Block, EngineError, Reader, Table, TableError
from dpforest.models.elsewhere import is_elsewhere, library

__all__ = ["Block", "EngineError", "Reader", "Table", "TableError", "is_elsewhere", "table_of"]


def table_of(X: Any) -> Table:
    """The table that an engine reads.

    Parameters
    ----------
    X : Table, path, list of paths, Dask DataFrame or Spark DataFrame

    Raises
    ------
    ImportError
        Where the engine is not installed: the message names the extra.
    """
    if isinstance(X, Table):
        return X
    if library(X) == "dask":
        from dpforest.engines.dask import Dask

        return Dask(X)
    if library(X) == "pyspark":
        from dpforest.engines.spark import Spark

        return Spark(X)
    from dpforest.engines.parquet import Parquet

    return Parquet(X)
