"""What a data set is to the loader: its files, its public schema, and how its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

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
    """One data set of the catalogue, as a file of ``schemas`` declares it.

    Attributes
    ----------
    name, title, description, citation : str
    key : str
        Key of the citation in the bibliography.
    declared : mapping
        The arguments of the public schema.
    parse : callable
        ``parse(entry, read, schema) -> ParsedRows``; ``read(file_name)`` gives the checked content of a file.
    label : str
        Name of the classes, or of the target.
    columns : sequence of str
        The columns of a file, in its order, with the label and the weight.
    weight : str or None
        The column of the instance weights.
    separator : str
        The text between two cells of a row.
    header : bool
        Whether a first line names the columns.
    source : str
        The file of ``schemas``.
    folder, archive : str
        Folder under a data root, and the archive at UCI; empty for a set that ships inside scikit-learn.
    files : tuple of File
    taxonomies : mapping
        Taxonomies of categorical columns, for generalised tables.
    """

    name: str
    title: str
    description: str
    citation: str
    key: str
    declared: Mapping[str, Any]
    parse: Callable[[Entry, Read, Schema], ParsedRows]
    label: str
    source: str
    columns: Sequence[str] = ()
    weight: str | None = None
    separator: str = ","
    header: bool = False
    folder: str = ""
    archive: str = ""
    files: tuple[File, ...] = ()
    taxonomies: Mapping[str, Any] = field(default_factory=dict)

    def schema(self) -> Schema:
        """The public schema.

        Raises
        ------
        TypeError, ValueError
            The file declares what is none, with the file's name before the sentence.
        """
        try:
            return Schema(**self.declared)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.source}: schema: {error}") from error
