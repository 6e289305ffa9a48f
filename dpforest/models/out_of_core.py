"""Tables that do not lie in memory: what a prediction needs of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OutOfCoreTable", "is_out_of_core", "library"]


class OutOfCoreTable(ABC):
    """A table that takes an answer to its rows, wherever they lie."""

    @abstractmethod
    def rows(self, answer: Callable[[pd.DataFrame], np.ndarray], columns: list[str], name: str) -> Any:
        """``answer`` to all rows (of a table not yet opened), in the form that the engine's users expect.

        Parameters
        ----------
        answer : callable
            From a frame with ``columns`` to an array of as many rows, of one or two dimensions.
        columns : list of str
        name : str
            What the answer is, for an engine that puts it into a column.
        """


def is_out_of_core(X: Any) -> bool:
    """Whether ``X`` is a table that an engine reads: a path, several, a Dask or a Spark DataFrame, or a ``Table``."""
    if isinstance(X, (OutOfCoreTable, str, PathLike)):
        return True
    if isinstance(X, (list, tuple)) and X and all(isinstance(path, (str, PathLike)) for path in X):
        return True
    return library(X) in ("dask", "pyspark")


def library(X: Any) -> str:
    """The package that the type of ``X`` comes from."""
    return type(X).__module__.split(".")[0]
