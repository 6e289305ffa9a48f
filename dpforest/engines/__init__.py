"""Where the records lie: tables larger than memory, on one machine or many, read in blocks.

``fit`` and ``predict`` take a path or glob of Parquet files (:class:`~dpforest.engines.parquet.Parquet`), a Dask
DataFrame (:class:`~dpforest.engines.dask.Dask`) or a Spark DataFrame (:class:`~dpforest.engines.spark.Spark`) wherever
they take a table in memory.  A learner asks the curator for whole numbers only, and whole numbers add up: the same
function counts each block, wherever the block lies, and the sums, hence the model, are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpforest.engines.table import Block, EngineError, Reader, Table, TableError
from dpforest.models.out_of_core import is_out_of_core, library

__all__ = ["Block", "EngineError", "Reader", "Table", "TableError", "frames_of", "is_out_of_core", "table_of"]


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


def frames_of(X: Any, columns: list[str]) -> Iterator[Any]:
    """The rows of a table, as frames that lie in memory one at a time; of one that lies there, itself.

    Parameters
    ----------
    X : frame or array-like, or what :func:`table_of` takes
    columns : list of str
        What is wanted of them; what is not there is left out.

    Raises
    ------
    TypeError
        A table that cannot be brought here, piece by piece.
    """
    if not is_out_of_core(X):
        yield X
        return
    table = table_of(X)
    frame: Any = getattr(table, "X", None)
    if hasattr(table, "frames"):
        yield from table.frames(columns)
    elif library(frame) == "dask":
        for part in frame[[name for name in columns if name in frame.columns]].partitions:
            yield part.compute()
    else:
        raise TypeError("this table is not brought here to be looked at: look at some of its rows, .toPandas()")
