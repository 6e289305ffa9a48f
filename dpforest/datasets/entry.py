"""What a data set is to the loader: its files, its public schema, and how its rows are read."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from dpforest.messages import listed, shown
from dpforest.schema import Schema

from .files import File

Read = Callable[[str], bytes]


class ParsedRows(NamedTuple):
    """The rows of a data set as a parser returns them."""

    X: pd.DataFrame
    y: pd.Series
    X_test: pd.DataFrame | None = None
    y_test: pd.Series | None = None
    weights: pd.Series | None = None
    weights_test: pd.Series | None = None


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue.

    Attributes
    ----------
    name, title, description, citation : str
    key : str
        Key of the citation in the bibliography.
    schema : callable
        Builds the public schema.
    parse : callable
        ``parse(read, schema) -> Parts``; ``read(file_name)`` gives the checked content of a file.
    folder, archive : str
        Folder under a data root, and the archive at UCI; empty for a set that ships inside scikit-learn.
    files : tuple of File
    """

    name: str
    title: str
    description: str
    citation: str
    key: str
    schema: Callable[[], Schema]
    parse: Callable[[Read, Schema], ParsedRows]
    folder: str = ""
    archive: str = ""
    files: tuple[File, ...] = field(default=())


def table(
    content: bytes,
    columns: Sequence[str],
    schema: Schema,
    label: str,
    *,
    sep: str = ",",
    skip_rows: int = 0,
    blanks: bool = True,
) -> pd.DataFrame:
    """Read delimited text whose columns are ``columns``, in this order and without a header.

    Columns that the schema calls categorical, and the label of a classification, become pandas categoricals that
    hold exactly the declared categories, so that ``Schema.encode`` maps a handful of categories instead of every
    value.  No value is ever taken for missing: ``?`` and ``NA`` are categories where the documentation has them.

    Raises
    ------
    ValueError
        A value that the schema does not declare.
    """
    declared = dict(schema.categorical)
    if schema.classes is not None:
        declared[label] = schema.classes.tolist()
    frame = pd.read_csv(
        io.BytesIO(content),
        sep=sep,
        header=None,
        names=list(columns),
        skiprows=skip_rows,
        skipinitialspace=blanks,
        na_filter=False,
        dtype=dict.fromkeys(declared, "category"),
    )
    for name, categories in declared.items():
        frame[name] = _declared(frame[name], name, categories)
    return frame


def _declared(column: pd.Series, name: str, categories: list) -> pd.Series:
    found = [str(value).strip() for value in column.cat.categories]
    unknown = sorted(set(found) - set(categories))
    if unknown:
        raise ValueError(f"column {shown(name)} holds {listed(unknown)}, which its public schema does not declare")
    return column.cat.rename_categories(found).cat.set_categories(categories)


def answers(frame: pd.DataFrame, label: str) -> pd.Series:
    """The label column as plain Python strings, which every scikit-learn metric takes."""
    return frame[label].astype(object)
