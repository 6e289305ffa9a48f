"""Groups of a categorical column: a public rule by which many values, such as diagnoses, become a few categories.

A model has at most 255 codes for a column, and privacy wants few of them: a count of a rare diagnosis is mostly noise.
So the schema takes a group for each category, by the values in it or by their first characters; the rule is saved with
the model, which so takes the raw values.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["CodeLookup", "Prefix", "check", "described", "read"]


@dataclass(frozen=True)
class Prefix:
    """The texts that begin with these characters, in a group of a categorical column.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> from dpforest.schema import Schema
    >>> chapters = {"heart": [Prefix("I")], "lung": [Prefix("J"), "R05"], "other": []}
    >>> schema = Schema(categorical={"diagnosis": chapters}, classes=["no", "yes"], other={"diagnosis": "other"})
    >>> schema.encode({"diagnosis": ["I21.4", "J18", "R05", "S06"]}, n_bins=2).codes
    array([[0, 1, 1, 2]], dtype=uint8)
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text:
            raise TypeError("a Prefix is the first characters of a text, at least one, such as Prefix('I2')")


class CodeLookup(dict[str | float, int]):
    """The code of each declared value, and of all texts with a declared beginning, of which the longest one counts.

    Parameters
    ----------
    exact : mapping of str to int
    beginnings : mapping of str to int
    where : str
        How messages begin.

    Raises
    ------
    ValueError
        From :meth:`get`, for a number: it has no first characters, and ``008`` that was read as one has lost its zeros.
    """

    def __init__(self, exact: Mapping[str | float, int], beginnings: Mapping[str, int], where: str):
        super().__init__(exact)
        self._beginnings, self._where = dict(beginnings), where
        self._lengths = sorted({*map(len, beginnings)}, reverse=True)

    def get(self, cell: Any, default: Any = None) -> Any:
        """The code of a text, else the default; nothing (None, NaN) has none."""
        if isinstance(cell, str):
            if (found := super().get(cell)) is not None:
                return found
            for length in self._lengths:
                if (found := self._beginnings.get(cell[:length])) is not None:
                    return found
            return default
        if cell is None or cell != cell:
            return default
        raise ValueError(
            f"{self._where} is grouped by the first characters of texts, and holds a number, which may have lost its "
            "zeros: read the column as text, such as by pd.read_csv(..., dtype=str)"
        )


def check(given: Mapping, where: str) -> tuple[list[str], list[list]]:
    """The names of the groups, and what each lists, as it was written.

    Raises
    ------
    TypeError, ValueError
        A name that is no text, a group that is no list, a beginning that two groups have.
    """
    members: list[list] = []
    for name, values in given.items():
        if not isinstance(name, str):
            raise TypeError(f"the groups of {where} have texts as names, not {reprlib.repr(name)}")
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
            group = reprlib.repr(name)
            raise TypeError(f"{where}[{group}] must be a list of values and of Prefix('...')")
        members.append([*values])
    beginnings = [each.text for group in members for each in group if isinstance(each, Prefix)]
    if len(set(beginnings)) < len(beginnings):
        twice = next(text for text in beginnings if beginnings.count(text) > 1)
        raise ValueError(f"{where} has Prefix({reprlib.repr(twice)}) more than once")
    if beginnings and any(not isinstance(each, (str, Prefix)) for group in members for each in group):
        raise TypeError(f"{where} is grouped by the first characters of texts: list texts only, and no numbers")
    return [*given], members


def described(members: Sequence[Sequence]) -> list[list]:
    """The groups as JSON has them: a Prefix is an object with one member."""
    return [[{"prefix": each.text} if isinstance(each, Prefix) else each for each in group] for group in members]


def read(description: Any, names: Any, where: str) -> dict[str, list]:
    """The groups that :func:`described` wrote, by their names.

    Raises
    ------
    ValueError
        It is not what was written.
    """
    if type(description) is not list or type(names) is not list or len(description) != len(names):
        raise ValueError(f"{where} must be as many lists as there are groups")
    if {*map(type, names)} - {str} or len({*names}) < len(names):
        raise ValueError(f"{where}: the names of groups must be different texts")
    found = {}
    for name, group in zip(names, description, strict=True):
        if type(group) is not list:
            raise ValueError(f"{where} must be lists, not {reprlib.repr(group)}")
        found[name] = [
            Prefix(each["prefix"]) if type(each) is dict and each.keys() == {"prefix"} else each for each in group
        ]
    return found
