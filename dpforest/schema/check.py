"""A look at a whole table before anything is learned: all that a fit would refuse or change, with what to do."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpforest.engines import frames_of
from dpforest.messages import listed, shown
from dpforest.schema import cells, frames
from dpforest.schema.person_names import tell_apart

if TYPE_CHECKING:
    from dpforest.schema.declaration import Schema

__all__ = ["Check", "SchemaProblem", "check"]

_MOST = 8  # different cells of a column that are shown
_MISSING = "a missing value"
_AS_TEXT = "a number, which may have lost its zeros; read the column as text, such as by pd.read_csv(..., dtype=str)"
_NEITHER = "no number and no text; turn it into one by itself"


@dataclass(frozen=True)
class SchemaProblem:
    """One thing that a fit would stumble over.

    Attributes
    ----------
    where : str
        The column, or what else is meant.
    what : str
        What is there.
    remedy : str
        What to write.
    rows : int
        How many rows have it; 0 where it is no matter of rows.
    refused : bool
        Whether a fit refuses it; else it clips the value, or takes it for another one.
    """

    where: str
    what: str
    remedy: str
    rows: int = 0
    refused: bool = True

    def __str__(self) -> str:
        rows = f"{self.rows} row{'s' if self.rows > 1 else ''} with " if self.rows else ""
        return f"{rows}{self.what}"


@dataclass(frozen=True, repr=False)
class Check:
    """What :meth:`dpforest.schema.Schema.check` finds; true where a fit takes the table.

    Attributes
    ----------
    n_rows : int
    findings : tuple of findings
        What is refused first.
    """

    n_rows: int
    findings: tuple[SchemaProblem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether a fit takes the table."""
        return not any(each.refused for each in self.findings)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        verdict = "takes" if self.ok else "refuses"
        head = f"{self.n_rows} rows; a fit {verdict} this table (for your eyes: do not release)"
        wrap = textwrap.TextWrapper(120, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
        said: dict[tuple[str, str], list[str]] = {}
        for each in self.findings:
            said.setdefault((each.where, each.remedy), []).append(str(each))
        return "\n".join([head, *(wrap.fill(f"{of}: {', '.join(what)}: {do}") for (of, do), what in said.items())])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def check(schema: Schema, X: Any, y: Any, person: Any) -> Check:
    """What :meth:`dpforest.schema.Schema.check` returns."""
    look = _Look(schema, y, person)
    try:
        for frame in frames_of(X, look.wanted):
            look.at(frame)
    except (TypeError, ValueError) as error:
        look.note("the table", str(error), "pass a table that fit takes")
    return look.result()


class _Look:
    """What was found so far, over all pieces of a table."""

    def __init__(self, schema: Schema, y: Any, person: Any) -> None:
        self.schema, self.y, self.person, self.n_rows = schema, y, person, 0
        named = [name for name in (y, person) if isinstance(name, str)]
        self.wanted = list(dict.fromkeys([*schema.columns, *named]))
        self._found: Counter[tuple[str, str, str, bool]] = Counter()
        self._whole: dict[SchemaProblem, None] = {}

    def note(self, where: str, what: str, remedy: str) -> None:
        """Something that is no matter of single rows."""
        self._whole[SchemaProblem(where, what, remedy)] = None

    def result(self) -> Check:
        if not self.n_rows and not self._whole:
            self.note("the table", "it has no rows", "there is nothing to learn from")
        every = [
            SchemaProblem(where, what, remedy, rows, bad) for (where, what, remedy, bad), rows in self._found.items()
        ]
        by_column: Counter[tuple[str, str, bool]] = Counter()
        kept: list[SchemaProblem] = []
        left: Counter[tuple[str, str, bool]] = Counter()
        for each in sorted(every, key=lambda each: -each.rows):
            group = each.where, each.remedy, each.refused
            by_column[group] += 1
            if by_column[group] <= _MOST:
                kept.append(each)
            else:
                left[group] += each.rows
        kept += [
            SchemaProblem(where, "other such cells", remedy, rows, bad) for (where, remedy, bad), rows in left.items()
        ]
        order = {f"column {shown(name)}": place for place, name in enumerate(self.schema.columns)}
        kept.sort(key=lambda each: (not each.refused, order.get(each.where, len(order)), each.where))
        return Check(self.n_rows, (*self._whole, *kept))

    def at(self, frame: Any) -> None:
        """Look at some rows."""
        table = frames.columns_of(frame)
        self.n_rows += table.shape[0]
        if table.names is None:
            if table.shape[1] != self.schema.n_features:
                wanted = f"columns {listed(self.schema.columns)}, in this order"
                return self.note("the table", f"{table.shape[1]} columns and no names", f"pass {wanted}, or a frame")
            columns: dict[str, Any] = {name: table[place] for place, name in enumerate(self.schema.columns)}
            for name in (self.y, self.person):
                if isinstance(name, str):
                    self.note("the table", f"no names, and {shown(name)} should be one", "pass a frame")
        else:
            columns = self._wanted_columns(table)
        for name in self.schema.columns:
            if name in columns:
                self._column(name, columns[name])
        if isinstance(self.person, str) and self.person in self.schema.columns:
            self.note(f"persons {shown(self.person)}", "a column of the schema", "take it out of the schema")
        self._check_argument("labels" if self.schema.classes is not None else "targets", self.y, columns, self._answers)
        self._check_argument("persons", self.person, columns, self._persons)

    def _wanted_columns(self, table: frames.Columns) -> dict[str, Any]:
        names = list(map(str, table.names or ()))
        columns = {}
        for name in self.wanted:
            where, times = f"column {shown(name)}", names.count(name)
            if not times:
                self.note(where, "there is none", f"name it so; the table has {listed(names)}")
            elif times > 1:
                self.note(where, f"it is there {times} times", "rename or drop all but one")
            else:
                columns[name] = table[names.index(name)]
        return columns

    def _check_argument(
        self, where: str, given: Any, columns: dict[str, Any], look: Callable[[str, Any], None]
    ) -> None:
        """Look at what is passed with the table, or named in it."""
        if given is None:
            return
        if isinstance(given, str):
            if given in columns:
                look(f"{where} {shown(given)}", columns[given])
            return
        try:
            column = frames.one_column(given, where)
        except (TypeError, ValueError) as error:
            return self.note(where, str(error), "pass one value for each row")
        if len(column) != self.n_rows:
            return self.note(where, f"{len(column)} of them for {self.n_rows} rows", "pass one for each row")
        look(where, column)

    # -- one column ------------------------------------------------------------------------------------------

    def _column(self, name: str, column: Any) -> None:
        where = f"column {shown(name)}"
        gap = None if self.schema.missing == "bin" else "declare missing='bin', or fill it in"
        if name in self.schema.numeric:
            self._numbers(where, column, self.schema.numeric[name], gap)
            return
        other = self.schema.other.get(name)
        remedy = (
            f"not declared; it is taken for other={shown(other)}"
            if name in self.schema.other
            else (
                f"not declared; if documentation has it, add it to categorical[{shown(name)}], else declare "
                f"other={{{shown(name)}: <a declared category>}}"
            )
        )
        known = self.schema.known(name)
        self._places(where, column, known, True, gap, remedy, name not in self.schema.other)

    def _answers(self, where: str, column: Any) -> None:
        gap = "drop these rows"
        if self.schema.target is not None:
            self._numbers(where, column, self.schema.target, gap)
            return
        remedy = "not declared; if documentation has it, add it to classes, else drop these rows"
        self._places(where, column, self.schema.known(), False, gap, remedy, True)

    def _persons(self, where: str, column: Any) -> None:
        try:
            tell_apart(column)
        except (TypeError, ValueError):
            for cell, rows in _different(column):
                try:
                    tell_apart(_alone(cell))
                except (TypeError, ValueError) as error:
                    missing = "missing" in str(error)
                    what = _MISSING if missing else shown(cell)
                    remedy = "leave these rows out, or give each a name of its own" if missing else "pass text"
                    self._found[where, what, remedy, True] += rows

    def _numbers(self, where: str, column: Any, bounds: tuple[float, float], gap: str | None) -> None:
        low, high = bounds
        values = self._read(
            where,
            column,
            lambda part: cells.numbers(part, where).astype(float),
            "no number; make it one, or missing (None) where there is none",
        )
        missing, outside = int(np.isnan(values).sum()), int(((values < low) | (values > high)).sum())
        if missing and gap:
            self._found[where, _MISSING, gap, True] += missing
        if outside:
            what = f"a number outside of {low:g} to {high:g}"
            self._found[where, what, "it is clipped; declare wider bounds if documentation has them", False] += outside

    def _places(
        self, where: str, column: Any, known: Any, numerals: bool, gap: str | None, remedy: str, refused: bool
    ) -> None:
        def look_up(part: Any) -> np.ndarray:
            return cells.places(part, known, where, numerals=numerals)

        def strays(codes: np.ndarray, part: Any) -> None:
            if gap and (missing := int((codes == -2).sum())):
                self._found[where, _MISSING, gap, True] += missing
            if (codes == -1).any():
                for cell, rows in _different(np.asarray(part, dtype=object)[codes == -1]):
                    lost = _is_number(cell, where) and any(_writes(text, cells.said(cell, where)) for text in known)
                    self._found[where, shown(cell), _AS_TEXT if lost else remedy, refused] += rows

        try:
            strays(look_up(column), column)
        except (TypeError, ValueError):
            for cell, rows in _different(column):
                try:
                    code = look_up(_alone(cell))
                except (TypeError, ValueError):
                    problem = _AS_TEXT if _is_number(cell, where) else _NEITHER
                    self._found[where, shown(cell), problem, True] += rows
                else:
                    strays(np.repeat(code, rows), _alone(cell).repeat(rows))

    def _read(self, where: str, column: Any, read: Callable[[Any], np.ndarray], problem: str) -> np.ndarray:
        """What a column says, without the cells that say nothing of the kind, which are noted."""
        try:
            return read(column)
        except (TypeError, ValueError):
            parts = []
            for cell, rows in _different(column):
                try:
                    parts.append(read(_alone(cell)).repeat(rows))
                except (TypeError, ValueError):
                    self._found[where, shown(cell), problem, True] += rows
            return np.concatenate(parts) if parts else np.zeros(0)


def _alone(cell: Any) -> np.ndarray:
    """A column of one cell."""
    column = np.empty(1, dtype=object)
    column[0] = cell
    return column


def _writes(text: Any, number: Any) -> bool:
    """Whether a declared text writes the number; if several do, the number alone does not say which is meant."""
    return isinstance(text, str) and cells.number_of_text(text) == number


def _is_number(cell: Any, where: str) -> bool:
    """Whether a cell that no place can be found for is a number all the same: in a column whose codes are texts."""
    try:
        return isinstance(cells.said(cell, where), float)
    except (TypeError, ValueError):
        return False


def _different(column: Any) -> Iterator[tuple[Any, int]]:
    """The different cells of a column, and how often each is there."""
    found: dict[Any, list] = {}
    for cell in column:
        try:
            key = type(cell), cell
            found.setdefault(key, [cell, 0])[1] += 1
        except TypeError:  # a list, or another cell that has no hash
            found.setdefault((type(cell), shown(cell)), [cell, 0])[1] += 1
    for cell, rows in found.values():
        yield cell, rows
