"""Taxonomies: public trees over the categories of a column, by which a value is made more general."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpforest.messages import listed, shown
from dpforest.schema.declaration import Schema

__all__ = ["MISSING", "Value", "taxonomies"]

ROOT, MISSING = "any", "missing"
_DEEPEST = 256  # levels: more than there are categories


class Value(NamedTuple):
    """A value of a taxonomy: a category, or a name for several.

    Attributes
    ----------
    label : str
    codes : tuple of int
        Its categories, by their codes in the schema.
    children : tuple of Value
        Two or more values that have each of its codes once; none for a category.
    """

    label: str
    codes: tuple[int, ...]
    children: tuple[Value, ...] = ()


def taxonomies(schema: Schema, declared: Mapping[str, Any] | None = None) -> dict[str, Value]:
    """The root of the taxonomy of each categorical column of the schema.

    Parameters
    ----------
    schema : Schema
    declared : mapping of str to mapping or list, or None
        By column: a mapping from the name of each value below the root to what is below that, which is a mapping again,
        or a list of categories.  A column that does not stand here has a flat taxonomy, the categories below the root.

    Returns
    -------
    dict of str to Value
        A value with a single one below it is that one.  Where the schema has a code for missing values, that is one
        more value below the root.

    Raises
    ------
    ValueError, TypeError
        A column that is not categorical; a taxonomy that is no tree over the categories, each of them once.

    Examples
    --------
    >>> schema = Schema(categorical={"pet": ["cat", "dog", "carp"]}, classes=["no", "yes"])
    >>> taxonomies(schema, {"pet": {"mammal": ["cat", "dog"], "fish": ["carp"]}})["pet"].children
    (Value(label='mammal', codes=(0, 1), children=(Value(label='cat', codes=(0,), children=()), \
Value(label='dog', codes=(1,), children=()))), Value(label='carp', codes=(2,), children=()))
    """
    if declared is not None and not isinstance(declared, Mapping):
        raise TypeError(f"taxonomies must be a mapping from columns to taxonomies, not {shown(declared)}")
    given = dict(declared or {})
    if strangers := sorted(str(name) for name in given.keys() - schema.categorical.keys()):
        raise ValueError(f"taxonomies are for categorical columns of the schema, not for {listed(strangers)}")
    return {
        name: _of_column(given.get(name, categories), categories, f"taxonomies[{shown(name)}]", schema.missing == "bin")
        for name, categories in schema.categorical.items()
    }


def _of_column(description: Any, categories: list, where: str, missing: bool) -> Value:
    code_of = {category: code for code, category in enumerate(categories)}
    below = _below(description, code_of, where, 0)
    codes = [code for value in below for code in value.codes]
    if twice := sorted({str(categories[code]) for code in codes if codes.count(code) > 1}):
        raise ValueError(f"{where} is no tree: {twice} stand in it more than once")
    if absent := [category for code, category in enumerate(categories) if code not in codes]:
        raise ValueError(f"{where} misses the declared categories {absent}")
    more = (Value(MISSING, (len(categories),)),) if missing else ()
    return _joined(ROOT, (*below, *more))


def _below(description: Any, code_of: Mapping, where: str, depth: int) -> tuple[Value, ...]:
    """The values right below one that is so described."""
    if depth > _DEEPEST:
        raise ValueError(f"{where} is no tree: it goes on for more than {_DEEPEST} levels")
    if isinstance(description, Mapping):
        return tuple(_joined(str(name), _below(down, code_of, where, depth + 1)) for name, down in description.items())
    if not isinstance(description, Sequence) or isinstance(description, str):
        raise TypeError(
            f"{where} must be a mapping from names to what is below them, or a list, not {shown(description)}"
        )
    for category in description:
        if isinstance(category, (Mapping, list)) or category not in code_of:
            raise ValueError(f"{where} lists {shown(category)}, which is not a declared category")
    return tuple(Value(str(category), (code_of[category],)) for category in description)


def _joined(label: str, below: tuple[Value, ...]) -> Value:
    if not below:
        raise ValueError(f"a taxonomy has nothing below {shown(label)}")
    return below[0] if len(below) == 1 else Value(label, tuple(sorted(c for v in below for c in v.codes)), below)
