"""Where the records lie: tables larger than memory, on one machine or many, read in blocks.

``fit`` and ``predict`` take a path or glob of Parquet files (:class:`~dpforest.engines.parquet.Parquet`), a Dask
DataFrame (:class:`~dpforest.engines.dask.Dask`) or a Spark DataFrame (:class:`~dpforest.engines.spark.Spark`) wherever
they take a table in memory.  A learner asks the curator for whole numbers only, and whole numbers add up: the same
function counts each block, wherever the block lies, and the sums, hence the model, are the same to the last bit.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from dpforest.engines.table import Block, EngineError, Reader, Table, TableError

__all__ = ["Block", "EngineError", "Reader", "Table", "TableError", "is_elsewhere", "table_of"]


def is_elsewhere(X: Any) -> bool:
    """Whether ``X`` is a table that an engine reads: a path, several, a Dask or a Spark DataFrame, or a ``Table``."""
    if isinstance(X, (Table, str, PathLike)):
        return True
    if isinstance(X, (list, tuple)) and X and all(isinstance(path, (str, PathLike)) for path in X):
        return True
    return _library(X) in ("dask", "pyspark")


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
    if _library(X) == "dask":
        from dpforest.engines.dask import Dask

        return Dask(X)
    if _library(X) == "pyspark":
        from dpforest.engines.spark import Spark

        return Spark(X)
    from dpforest.engines.parquet import Parquet

    return Parquet(X)


def _library(X: Any) -> str:
    return type(X).__module__.split(".")[0]
