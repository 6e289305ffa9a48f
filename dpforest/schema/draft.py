"""A schema to fill in: names and kinds from a table's columns and their types, and a blank for all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpforest.messages import check_names
from dpforest.schema import frames

__all__ = ["Draft", "draft", "is_blank"]

_INDENT = " " * 4


@dataclass(frozen=True, repr=False)
class Draft:
    """What :meth:`dpforest.schema.Schema.draft` returns; printed, it is Python code with blanks, ``...``, to fill in.

    It is no schema yet: a learner refuses it.

    Attributes
    ----------
    numeric, categorical : tuple of str
        The columns of either kind, by their types alone.
    unusable : tuple of str
        Columns whose type is neither, such as times: turn them into numbers or text first.
    target : str or None
        The column to predict.
    twice : tuple of str
        Names that more than one column has, which no schema can tell apart.
    """

    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    unusable: tuple[str, ...] = ()
    target: str | None = None
    twice: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            "# fill in each ... from documentation, never from the rows: what is written here is public",
            "Schema(",
        ]
        lines += _entries("numeric", self.numeric, "(..., ...)", "lowest and highest value")
        lines += _entries(
            "categorical", self.categorical, "[...]", "every category; numbers written as text may be numeric"
        )
        of = "" if self.target is None else f"{self.target!r}: "
        lines.append(f"{_INDENT}classes=[...],  # {of}every class; or, for a number, target=(lowest, highest)")
        lines.append(f'{_INDENT}# missing="bin",  # where cells may be empty: a code of their own')
        for name in self.categorical[:1]:
            lines.append(f"{_INDENT}# other={{{name!r}: ...}},  # which of its categories takes what is not listed")
            lines.append(
                f"{_INDENT}# {name!r}: {{'a group': [Prefix('...')]}},  # in its place, of more than 255 categories"
            )
        lines.append(")")
        if self.unusable:
            left = ", ".join(map(repr, self.unusable))
            lines.append(f"# left out, for it is neither numbers nor text: {left}")
            lines.append("# (a date can be the days since a public date)")
        if self.twice:
            left = ", ".join(map(repr, self.twice))
            lines.append(f"# left out, for more than one column has this name: {left}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def draft(table: Any, target: str | None) -> Draft:
    """The draft for a table; no cell is looked at."""
    columns = frames.columns_of(table)
    if columns.names is None:
        raise TypeError("an array has no names and no types of columns: draft a schema from a frame")
    names = list(map(str, columns.names))
    check_names([] if target is None else [target], names, "the table")
    twice = tuple(name for name in dict.fromkeys(names) if names.count(name) > 1)
    kinds = {name: kind for name, kind in zip(names, columns.kinds(), strict=True) if name not in (target, *twice)}
    numeric, categorical, unusable = (
        tuple(name for name, kind in kinds.items() if kind == one) for one in ("numeric", "categorical", "")
    )
    return Draft(numeric, categorical, unusable, target, twice)


def is_blank(declared: Any) -> bool:
    """Whether a part of a declaration was left as a draft has it."""
    return declared is ... or (isinstance(declared, (list, tuple)) and any(value is ... for value in declared))


def _entries(kind: str, names: tuple[str, ...], blank: str, wanted: str) -> list[str]:
    if not names:
        return []
    return [
        f"{_INDENT}{kind}={{  # {wanted}",
        *(f"{_INDENT * 2}{name!r}: {blank}," for name in names),
        f"{_INDENT}}},",
    ]
