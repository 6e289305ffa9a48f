"""The catalogue of data sets, read from the files of ``schemas``, one a data set.

A file says in TOML what is public of a set, and in comments why::

    title, description, citation, key    as of :class:`.entry.Entry`
    archive                              the archive at UCI, for a set with files
    rows                                 the parser in :mod:`.parsers`; default: delimited text
    label, columns, weight               of a file, in its order; the schema has the other columns, in this order
    separator, header                    default: a comma, and no header
    [files."adult.data"]                 sha256, and lines where copies differ (:class:`.files.File`)
    [schema]                             classes, or the bounds of a target
    [schema.numeric]                     the bounds of a column
    [schema.categorical]                 the categories of a column
    [[schema.alike]]                     columns that share one declaration: columns, and numeric or categorical
    [taxonomies.education]               a taxonomy of a categorical column
    [[parts]]                            a set of some of the files: name, description, files, and columns it is without

What is missing, of another kind or unknown is an error that names file and key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpforest.messages import shown

from .entry import Entry
from .files import File
from .parsers import PARSERS

__all__ = ["CATALOGUE", "read"]

_FOLDER = Path(__file__).parent / "schemas"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any, kind: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(kind, value))


def _is_taxonomy(value: Any) -> bool:
    return _is_list(value, _is_text) or (
        isinstance(value, dict) and bool(value) and all(map(_is_taxonomy, value.values()))
    )


#: What a value must be, in words.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "a text": _is_text,
    "true or false": lambda value: isinstance(value, bool),
    "a table": lambda value: isinstance(value, dict),
    "an array of tables": lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value),
    "an array of texts": lambda value: _is_list(value, _is_text),
    "an array of texts or numbers": lambda value: _is_list(value, lambda each: _is_text(each) or _is_number(each)),
    "two numbers, [low, high]": lambda value: _is_list(value, _is_number) and len(value) == 2,
    "a tree of tables whose leaves are arrays of texts": _is_taxonomy,
    f"one of {', '.join(PARSERS)}": lambda value: isinstance(value, str) and value in PARSERS,
}
_TEXT, _FLAG, _TABLE, _TABLES, _TEXTS, _VALUES, _BOUNDS, _TAXONOMY, _PARSER = _KINDS


class _SchemaFileTable:
    """A table of a file, from which keys are taken one by one."""

    def __init__(self, content: dict[str, Any], source: str, place: str = "") -> None:
        self._content, self._source, self._place = dict(content), source, place

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._content))

    def take(self, key: str, kind: str, *default: Any) -> Any:
        """The value of a key, which must be there if it has no default."""
        if key not in self._content:
            if default:
                return default[0]
            raise self.wrong(key, "is missing")
        value = self._content.pop(key)
        if not _KINDS[kind](value):
            raise self.wrong(key, f"must be {kind}, not {shown(value)}")
        return value

    def table(self, key: str, *default: dict[str, Any]) -> _SchemaFileTable:
        """The table of a key."""
        return _SchemaFileTable(self.take(key, _TABLE, *default), self._source, f"{self._place}{key}.")

    def tables(self, key: str) -> Iterator[_SchemaFileTable]:
        """The tables of a key that may have several."""
        for number, content in enumerate(self.take(key, _TABLES, [])):
            yield _SchemaFileTable(content, self._source, f"{self._place}{key}[{number}].")

    def rest(self, kind: str) -> dict[str, Any]:
        """All that is left, each value of one kind."""
        return {key: self.take(key, kind) for key in self}

    def end(self) -> None:
        """Refuse what is left."""
        for key in self._content:
            raise self.wrong(key, "is no key that is known here")

    def wrong(self, key: str, why: str) -> ValueError:
        """The error that names file and key."""
        return ValueError(f"{self._source}: {self._place}{key} {why}")


def read(path: Path) -> list[Entry]:
    """The data sets that a file declares: one, and then those that are parts of it.

    Raises
    ------
    ValueError
        The file is not TOML, or a key is missing, unknown or of another kind; the sentence names file and key.
    """
    try:
        file = _SchemaFileTable(tomllib.loads(path.read_text(encoding="utf-8")), path.name)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not TOML: {error}") from error
    words = {key: file.take(key, _TEXT) for key in ("title", "description", "citation", "key", "label")}
    files = _files(file.table("files", {}))
    columns = file.take("columns", _TEXTS, *([] if files else [()]))
    weight = file.take("weight", _TEXT, None)
    whole = Entry(
        name=path.stem,
        **words,
        declared=_schema(file.table("schema"), [name for name in columns if name not in (words["label"], weight)]),
        parse=PARSERS[file.take("rows", _PARSER, "delimited")],
        source=path.name,
        columns=columns,
        weight=weight,
        separator=file.take("separator", _TEXT, ","),
        header=file.take("header", _FLAG, False),
        folder=path.stem if files else "",
        archive=file.take("archive", _TEXT, *([] if files else [""])),
        files=files,
        taxonomies=file.table("taxonomies", {}).rest(_TAXONOMY),
    )
    parts = [_part(part, whole) for part in file.tables("parts")]
    file.end()
    return [whole, *parts]


def _files(declared: _SchemaFileTable) -> tuple[File, ...]:
    found = []
    for name in declared:
        file = declared.table(name)
        found.append(File(name, file.take("sha256", _TEXT), file.take("lines", _TEXT, None)))
        file.end()
    return tuple(found)


def _schema(declared: _SchemaFileTable, columns: list[str]) -> dict[str, Any]:
    """The arguments of a schema, columns in the order of the file, or else as they are written."""
    kinds = {"numeric": _BOUNDS, "categorical": _VALUES}
    found: dict[str, dict[str, Any]] = {kind: declared.table(kind, {}).rest(kinds[kind]) for kind in kinds}
    for alike in declared.tables("alike"):
        kind = "numeric" if "numeric" in alike else "categorical"
        names, value = alike.take("columns", _TEXTS), alike.take(kind, kinds[kind])
        alike.end()
        for name in names:
            if name in found[kind]:
                raise alike.wrong("columns", f"declares {shown(name)} a second time")
            found[kind][name] = value
    ordered = {
        kind: {name: group[name] for name in [*(name for name in columns if name in group), *group]}
        for kind, group in found.items()
    }
    truth = {"classes": _VALUES} if "classes" in declared else {"target": _BOUNDS}
    given = {key: declared.take(key, kind) for key, kind in truth.items()}
    declared.end()
    return {**ordered, **given, "columns": columns or None}


def _part(part: _SchemaFileTable, whole: Entry) -> Entry:
    """A set of some of the files, without some of the columns."""
    name, description = part.take("name", _TEXT), part.take("description", _TEXT)
    names, without = part.take("files", _TEXTS), part.take("without", _TEXTS, ())
    part.end()
    if unknown := [name for name in names if name not in {file.name for file in whole.files}]:
        raise part.wrong("files", f"names {shown(unknown[0])}, which is not under files")
    if unknown := [name for name in without if name not in whole.columns]:
        raise part.wrong("without", f"names {shown(unknown[0])}, which is not under columns")
    declared = dict(whole.declared)
    for kind in ("numeric", "categorical"):
        declared[kind] = {column: value for column, value in declared[kind].items() if column not in without}
    declared["columns"] = [column for column in declared["columns"] if column not in without]
    return replace(
        whole,
        name=name,
        description=description,
        declared=declared,
        files=tuple(file for file in whole.files if file.name in names),
    )


def _all() -> Iterator[Entry]:
    for path in sorted(_FOLDER.glob("*.toml")):
        yield from read(path)


#: All data sets by name: those with files first, for a list of names is read from its beginning.
CATALOGUE: dict[str, Entry] = {
    entry.name: entry for entry in sorted(_all(), key=lambda each: (not each.files, each.name))
}
