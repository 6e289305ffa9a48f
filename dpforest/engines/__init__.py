"""Where the records lie: tables larger than memory, on one machine or many, read in blocks.

``fit`` and ``predict`` take a path or glob of Parquet files (:class:`~dpforest.engines.parquet.Parquet`), a Dask
DataFrame (:class:`~dpforest.engines.dask.Dask`) or a Spark DataFrame (:class:`~dpforest.engines.spark.Spark`) wherever
they take a table in memory.  A learner asks the curator for whole numbers only, and whole numbers add up: the same
function counts each block, wherever the block lies, and the sums, hence the model, are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

from dpforest.engines.table import Block, EngineError, Reader, Table, TableError

__all__ = ["Block", "EngineError", "Reader", "Table", "TableError", "frames_of", "is_out_of_core", "table_of"]


def is_out_of_core(X: Any) -> bool:
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
    elif _library(frame) == "dask":
        for part in frame[[name for name in columns if name in frame.columns]].partitions:
            yield part.compute()
    else:
        raise TypeError("this table is not brought here to be looked at: look at some of its rows, .toPandas()")


def _library(X: Any) -> str:
    """The package that the type of ``X`` comes from."""
    return type(X).__module__.split(".")[0]
