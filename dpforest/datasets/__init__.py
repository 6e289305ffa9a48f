"""Data sets with hand-written public schemas, checksums and citations.

>>> from dpforest import datasets
>>> cancer = datasets.load("breast-cancer").split(test_size=0.3, random_state=0)
>>> cancer.X.shape, cancer.X_test.shape
((398, 30), (171, 30))

Files are looked for in ``$DPFOREST_DATA/<folder>/``, then in the cache (``$DPFOREST_CACHE``, else the platform's cache
folder), then downloaded from the UCI repository; every file is checked by sha256.  Three sets ship inside
scikit-learn and need no file.

A schema says what is public *before* the data: its bounds, categories and classes come from the documentation of the
set, or are round numbers with a reason, and never from the rows.  It is stated in a file of ``schemas``, where a
comment next to each says which.  Values outside the bounds are clipped by :meth:`dpforest.schema.Schema.encode`, which
counts them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dpforest.messages import shown
from dpforest.schema import Schema
from dpforest.schema.frames import columns_of, one_column

from . import files as _files
from .entry import Entry, ParsedRows
from .files import ChecksumError, DatasetUnavailableError
from .schema_files import CATALOGUE as _CATALOGUE

__all__ = ["ChecksumError", "Dataset", "DatasetUnavailableError", "available", "load", "names", "schema", "split"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set, frozen.

    Attributes
    ----------
    name, title, description : str
    X : DataFrame, shape (n_rows, n_features)
        Columns as in ``schema.columns``, in that order; a categorical column is a pandas categorical over the declared
        categories, in the declared order.
    y : Series, shape (n_rows,)
        Class labels, or the target of a regression.
    X_test, y_test : DataFrame and Series, or None
        The official test set, where UCI gives one, or the test part of :meth:`split`.
    schema : Schema
        What is public about the table.
    citation : str
        How to cite the set, with its DOI; ``key`` is its key in the bibliography.
    checksums : dict of str to str
        sha256 of the uncompressed content of each file read (of the values, for a set shipped with scikit-learn).
    weights, weights_test : Series or None
        Instance weights of the survey, where the set has them; never a feature.
    """

    name: str
    title: str
    description: str
    X: pd.DataFrame = field(repr=False)
    y: pd.Series = field(repr=False)
    schema: Schema
    citation: str
    key: str
    checksums: dict[str, str] = field(repr=False)
    X_test: pd.DataFrame | None = field(default=None, repr=False)
    y_test: pd.Series | None = field(default=None, repr=False)
    weights: pd.Series | None = field(default=None, repr=False)
    weights_test: pd.Series | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, X: Any, y: Any, schema: Schema, *, X_test: Any = None, y_test: Any = None, name: str = "own table"
    ) -> Dataset:
        """A table of one's own, for every experiment that takes the name of a set.

        Parameters
        ----------
        X : frame or array-like, shape (n_rows, n_features)
            Columns by name in a frame, in the schema's order in an array.
        y : array-like, shape (n_rows,), or str
            Labels or targets, or the name of their column.
        schema : Schema
            What is public about the table, known before it.
        X_test, y_test : like X and y, optional
            An official test part; without one :meth:`split` divides the rows.
        name : str
            What figures and tables call it.

        Raises
        ------
        ValueError
            A fit would refuse the table; the message is that of :meth:`dpforest.schema.Schema.check`.

        Examples
        --------
        >>> from dpforest import Schema, datasets
        >>> schema = Schema(numeric={"age": (0, 100)}, classes=["no", "yes"])
        >>> own = datasets.Dataset.of({"age": [31, 64, 7]}, ["no", "yes", "no"], schema)
        >>> own.X.shape, own.citation
        ((3, 1), '')
        """
        if (X_test is None) != (y_test is None):
            raise ValueError("a test part has records and their truth: X_test and y_test, or neither")
        parts = [_own(X, y, schema)] + ([] if X_test is None else [_own(X_test, y_test, schema)])
        texts = {"name": name, "title": name, "description": "", "citation": "", "key": ""}
        test = {} if X_test is None else dict(zip(("X_test", "y_test"), parts[1], strict=True))
        return cls(X=parts[0][0], y=parts[0][1], schema=schema, checksums={}, **texts, **test)

    def pooled(self) -> Dataset:
        """The same set with its test rows appended to its training rows, and no test part."""
        if self.X_test is None:
            return self
        weights = None if self.weights is None else pd.concat([self.weights, self.weights_test], ignore_index=True)
        return replace(
            self,
            X=pd.concat([self.X, self.X_test], ignore_index=True),
            y=pd.concat([self.y, self.y_test], ignore_index=True),
            X_test=None,
            y_test=None,
            weights=weights,
            weights_test=None,
        )

    def split(self, test_size: float | int = 0.25, random_state: int | None = 0) -> Dataset:
        """The same set with a random part of its rows as the test part.

        Rows keep their order within each part; classes are stratified.

        Parameters
        ----------
        test_size : float or int
            Share of the rows, or their number.
        random_state : int or None
            Seed of the split; the same seed gives the same split.

        Raises
        ------
        ValueError
            The set has a test part already: use it, or call :meth:`pooled` first.
        """
        if self.X_test is not None:
            raise ValueError(f"{self.name} has a test part already; use it, or write .pooled().split(...)")
        from sklearn.model_selection import train_test_split  # slow to import, so only when needed

        strata = None if self.schema.classes is None else self.y
        parts = train_test_split(
            np.arange(len(self.y)), test_size=test_size, random_state=random_state, stratify=strata
        )
        train, test = (np.sort(part) for part in parts)
        return replace(
            self,
            X=_rows(self.X, train),
            y=_rows(self.y, train),
            X_test=_rows(self.X, test),
            y_test=_rows(self.y, test),
            weights=_rows(self.weights, train),
            weights_test=_rows(self.weights, test),
        )


def names() -> list[str]:
    """The data sets that :func:`load` knows."""
    return list(_CATALOGUE)


def schema(name: str) -> Schema:
    """The public schema of a data set, which needs no file of it.

    >>> from dpforest import datasets
    >>> datasets.schema("nursery").n_features
    8

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Raises
    ------
    ValueError
        A name that is not in :func:`names`.
    """
    return _entry(name).schema()


def load(name: str, *, download: bool = True) -> Dataset:
    """Load a data set.

    Where the environment variable ``DPFOREST_READS`` names a file, a line with the set's name is added to it, so that
    anyone who runs a program or a notebook learns which data it asked for; :func:`schema` does so too.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    download : bool
        Whether to fetch absent files from UCI into the cache.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        A name that is not in :func:`names`.
    DatasetUnavailableError
        The files are nowhere to be found, or ``DPFOREST_DATA`` names no folder; the message says what to do.
    ChecksumError
        A file is there, but it is not the one this library was written for; a ``DatasetUnavailableError`` too.
    """
    entry = _entry(name)
    _make_present(entry, download)
    checksums: dict[str, str] = {}

    def read(file_name: str) -> bytes:
        file = next(file for file in entry.files if file.name == file_name)
        path = _files.find(entry.folder, file)
        if path is None:  # removed in the meantime
            raise DatasetUnavailableError(_advice(entry, "a file has gone away while it was being read"))
        content, checksums[f"{entry.folder}/{file_name}"] = _files.read(path, file)
        return content

    schema = entry.schema()
    parts = entry.parse(entry, read, schema)
    if not entry.files:
        checksums[f"scikit-learn/{name}"] = _digest(parts)
    return Dataset(
        name=name,
        title=entry.title,
        description=entry.description,
        schema=schema,
        citation=entry.citation,
        key=entry.key,
        checksums=checksums,
        **parts._asdict(),
    )


def available(name: str, *, download: bool = False) -> bool:
    """Whether :func:`load` can be expected to find a data set, without reading it.

    Answers within five seconds and never raises; a file that is there but corrupted counts as there.

    Parameters
    ----------
    name : str
        A name outside :func:`names` is not available.
    download : bool
        Whether a set counts as available when it is not on this machine but UCI answers for it.
    """
    entry = _CATALOGUE.get(name)
    if entry is None:
        return False
    try:
        if not _absent(entry):
            return True
    except (OSError, RuntimeError):  # an unreadable folder, a user without a home
        return False
    return download and _files.answers(entry.archive)


def split(dataset: Dataset, test_size: float | int = 0.25, random_state: int | None = 0) -> Dataset:
    """Split a data set at random: see :meth:`Dataset.split`."""
    return dataset.split(test_size=test_size, random_state=random_state)


# -- the parts of load -----------------------------------------------------------------------------------------


def _entry(name: str) -> Entry:
    if name not in _CATALOGUE:
        raise ValueError(f"there is no data set {shown(name)}; there are: {', '.join(_CATALOGUE)}")
    if reads := os.environ.get("DPFOREST_READS"):
        with open(reads, "a", encoding="utf-8") as file:
            file.write(f"{name}\n")
    return _CATALOGUE[name]


def _absent(entry: Entry) -> list[_files.File]:
    return [file for file in entry.files if _files.find(entry.folder, file) is None]


def _make_present(entry: Entry, download: bool) -> None:
    if entry.files and (wrong := _files.no_folder()):
        raise DatasetUnavailableError(wrong)
    absent = _absent(entry)
    if not absent:
        return
    if not download:
        raise DatasetUnavailableError(_advice(entry, "downloading was not asked for"))
    try:
        _files.fetch(entry.archive, entry.folder, tuple(absent))
    except ChecksumError:
        raise
    except DatasetUnavailableError as error:
        raise DatasetUnavailableError(_advice(entry, str(error))) from error


def _advice(entry: Entry, why: str) -> str:
    wanted = "\n".join(f"    {entry.folder}/{file.name}[.gz]  sha256 {file.sha256}" for file in entry.files)
    return (
        f"the data set {entry.name!r} is not on this machine ({why}): set DPFOREST_DATA to a folder that holds it, "
        "connect to the network, or use a set that needs no file.\n"
        f"  * the folder holds (sha256 of the uncompressed content)\n{wanted}\n"
        f"  * from the network the files come from {_files.BASE_URL}/{entry.archive}\n"
        f"    and are kept in {_files.cache_folder() / entry.folder}\n"
        "  * without files there are: breast-cancer, diabetes, digits"
    )


def _digest(parts: ParsedRows) -> str:
    digest = hashlib.sha256()
    for values in (parts.X, parts.y):
        digest.update(values.to_csv(index=False, lineterminator="\n").encode())
    return digest.hexdigest()


def _own(X: Any, y: Any, schema: Schema) -> tuple[pd.DataFrame, pd.Series]:
    """The columns that a schema declares, in its order, and the truth; as rows of pandas, counted from 0."""
    checked = schema.check(X, y)
    if not checked:
        raise ValueError(str(checked))
    table = columns_of(X)
    columns = [table[place] for place in range(table.shape[1])] if table.names is None else table.pick(schema.columns)
    (target,) = table.pick([y]) if isinstance(y, str) else (one_column(y, "y"),)
    frame = pd.DataFrame({name: np.asarray(column) for name, column in zip(schema.columns, columns, strict=True)})
    return frame, pd.Series(np.asarray(target), name=y if isinstance(y, str) else None)


def _rows(values: pd.DataFrame | pd.Series | None, positions: np.ndarray) -> pd.DataFrame | pd.Series | None:
    return None if values is None else values.iloc[positions].reset_index(drop=True)
