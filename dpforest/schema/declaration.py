"""What is public before the data: bounds, categories, classes, target range.

A :class:`Schema` is written down by a person from documentation, never learned from the rows.  It turns a
table into small integer codes on a public grid, clips what lies outside the declared bounds, and says how
often it had to.  The codes of a record are a function of that record and the schema: what a cell says does not depend
on the type of its column, which all the other rows have a part in (:mod:`~dpforest.schema.cells`).
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpforest import storage
from dpforest.messages import listed, shown
from dpforest.schema import cells, frames, grid, groups
from dpforest.schema.check import Check, check
from dpforest.schema.draft import Draft, draft, is_blank
from dpforest.schema.groups import Prefix

__all__ = ["TARGET_LEVELS", "Encoded", "Schema"]

MAX_CODES = 256  # codes travel as uint8
MAX_COLUMNS = 100_000  # of a table that a file speaks of
MAX_MEMBERS = 1_000_000  # of the groups of a column

#: Steps of the public grid of a target: whole numbers of 0 to 10, to 12, to 20, to 24 and the like lie on it exactly.
TARGET_LEVELS = 240

_LARGEST = 1e38  # the largest bound: single precision holds it, and a difference of two
_BLOCK = 1 << 13  # rows encoded at a time: a block of a row-major table stays in cache while its columns are read
#: An entry of each part that speaks of columns by name.
_ENTRY = {"numeric": "'age': (0, 120)", "categorical": "'sex': ['Female', 'Male']", "other": "'sex': 'Female'"}
#: The parts of a schema in a file, and their types.
_MEMBERS: dict[str, tuple[type, ...]] = {
    "numeric": (dict,),
    "categorical": (dict,),
    "classes": (list, type(None)),
    "target": (list, type(None)),
    "columns": (list,),
    "other": (dict,),
    "missing": (str,),
}
#: Those that stand there only where they say something, and their types.
_MORE: dict[str, type] = {"grid": str, "groups": dict, "whole": list}


#: What to do with more values than there are codes.
_MANY = (
    "; group them by a public table that is saved with the model, such as {'heart': ['I20', 'I21'], 'lung': "
    "[Prefix('J')]}, and send the rest to a group by other="
)
_CLASSES = (
    "; group the labels by a public table before, which looks at one record at a time: y.map({'I20': 'heart', ...})"
)


#: What has happened where all labels are numbers, and all classes are texts.
_NUMBERED = (
    "the labels are numbers. If they were numbered on the way, as cross_val_predict, VotingClassifier, "
    "StackingClassifier and OneVsRestClassifier of scikit-learn do, declare classes=[0, 1, ...] and number them by a "
    "public rule before"
)


@dataclass(frozen=True)
class Encoded:
    """A table as integer codes.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows), C-contiguous
        One row per feature, so that a pass over one feature is a pass over contiguous memory.
    clipped : dict of str to int
        For each numeric column, how many values lay outside the declared bounds (absent when none).
    other : dict of str to int
        For each categorical column, how many values were not declared and went to the declared ``other``.
    """

    codes: np.ndarray
    clipped: dict[str, int] = field(default_factory=dict)
    other: dict[str, int] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return self.codes.shape[1]


class Schema:
    """Public knowledge about a table.

    Parameters
    ----------
    numeric : mapping of str to (low, high), optional
        Bounds of each numeric column; ``low < high``, finite.  Values outside are clipped and counted.
    categorical : mapping of str to sequence or mapping, optional
        The categories of each categorical column, texts and numbers, at most 255, all different.  Numbers are compared
        as doubles: 1, 1.0 and True are one category, the text ``"1"`` is another.  Or groups of values, where there
        are more: a mapping from the name of each category to a list of the values in it, and of
        :class:`~dpforest.schema.Prefix` for all texts that begin alike; the longest beginning counts, and a value
        that is listed comes before all beginnings.  The table has the values; the model speaks of the groups.
    classes : sequence, optional
        The class labels, texts and numbers, at least two, distinguished like categories.  Give either ``classes`` or
        ``target``.
    target : (low, high), optional
        Bounds of the target of a regression.
    columns : sequence of str, optional
        Order of the columns in a table.  Default: the numeric ones, then the categorical ones, as written.
    other : mapping of str to category, optional
        For a categorical column, the declared category that undeclared values become.  Without it an
        undeclared value is an error.
    whole : sequence of str, optional
        Numeric columns that hold whole numbers by their nature, such as ages in years.  They are explained as such,
        ``age 97 to 103`` and not ``age in [96.25, 103.125)``; their codes are those of any numeric column.
    missing : {"error", "bin"}
        ``"error"``: a missing value (NaN, None) raises.  ``"bin"``: every column has one more public code,
        the last one, for missing values.

    Raises
    ------
    TypeError, ValueError
        With a sentence that says which part of the declaration is wrong.

    Examples
    --------
    >>> schema = Schema(numeric={"age": (17, 90)}, categorical={"sex": ["Female", "Male"]}, classes=["no", "yes"])
    >>> schema.columns
    ['age', 'sex']
    >>> schema.encode([[17, "Male"], [90, "Female"]], n_bins=10).codes
    array([[0, 9],
           [1, 0]], dtype=uint8)
    """

    def __init__(
        self,
        *,
        numeric: Mapping[str, tuple[float, float]] | None = None,
        categorical: Mapping[str, Sequence] | None = None,
        classes: Sequence | None = None,
        target: tuple[float, float] | None = None,
        columns: Sequence[str] | None = None,
        other: Mapping[str, object] | None = None,
        missing: str = "error",
        whole: Sequence[str] = (),
    ):
        for part, given in (("numeric", numeric), ("categorical", categorical), ("other", other)):
            if not isinstance(given, Mapping | None):
                such = f"{part}={{{_ENTRY[part]}}}"
                raise TypeError(f"{part} must be a mapping of columns, such as {such}, not {shown(given)}")
        # names are text, so that a table with numbered columns comes back from JSON as it went
        self.numeric = {str(name): _bounds(pair, f"numeric[{shown(name)}]") for name, pair in (numeric or {}).items()}
        self.categorical: dict[str, list] = {}
        #: Of a column whose categories are groups, what each of them lists, in the order of the categories.
        self.groups: dict[str, list[list]] = {}
        for name, values in (categorical or {}).items():
            if isinstance(values, Mapping):
                self.categorical[str(name)], self.groups[str(name)] = _groups(values, f"categorical[{shown(name)}]")
            else:
                self.categorical[str(name)] = _labels(values, f"categorical[{shown(name)}]", 1)
        both = self.numeric.keys() & self.categorical.keys()
        if both:
            raise ValueError(f"declare a column once: {listed(sorted(both))} stand under numeric and under categorical")
        declared = [*self.numeric, *self.categorical]
        if len(declared) > MAX_COLUMNS:
            raise ValueError(f"a schema has at most {MAX_COLUMNS} columns, not {len(declared)}")
        if not declared:
            raise ValueError("a schema needs at least one column: numeric={'age': (0, 120)} or categorical={...}")
        self.columns = list(map(str, columns)) if columns is not None else declared
        if sorted(self.columns) != sorted(declared):
            raise ValueError(f"columns {listed(self.columns)} must name each declared column once: {listed(declared)}")
        if (classes is None) == (target is None):
            raise ValueError("declare either classes=[...] (classification) or target=(low, high) (regression)")
        self.classes = None if classes is None else _class_array(_labels(classes, "classes", 2))
        self.target = None if target is None else _bounds(target, "target")
        self.other = {str(name): value for name, value in (other or {}).items()}
        for name, value in self.other.items():
            if name in self.categorical and value in self.categorical[name]:
                self.other[name] = self.categorical[name][self.categorical[name].index(value)]
            else:
                raise ValueError(
                    f"other[{shown(name)}] = {shown(value)} must be one of the declared categories of a column"
                )
        for name, members in self.groups.items():
            for group, values in zip(self.categorical[name], members, strict=True):
                if not values and self.other.get(name) != group:
                    column, empty = shown(name), shown(group)
                    raise ValueError(
                        f"categorical[{column}][{empty}] lists nothing: leave it out, or declare "
                        f"other={{{column}: {empty}}} to receive what no group lists"
                    )
        if isinstance(whole, (str, bool)) or not {*map(str, whole)} <= self.numeric.keys():
            raise ValueError(f"whole must be a list of numeric columns of the schema, {listed(self.numeric)}")
        self.whole = [name for name in self.numeric if name in {*map(str, whole)}]
        if missing not in ("error", "bin"):
            raise ValueError(f"missing must be 'error' or 'bin', not {shown(missing)}")
        self.missing = missing
        #: How the bins of numeric columns lie, one of ``grid.GRIDS``: see :meth:`with_grid`.
        self.grid = "even"

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def n_classes(self) -> int:
        """Number of declared classes; 0 for a regression."""
        return 0 if self.classes is None else len(self.classes)

    def cardinalities(self, n_bins: int) -> np.ndarray:
        """Number of codes of each column, in column order (the code for missing values included)."""
        extra = self.missing == "bin"
        n_bins = _check_bins(n_bins, extra=extra)
        sizes = [
            self._bins(name, n_bins) if name in self.numeric else len(self.categorical[name]) for name in self.columns
        ]
        return np.array(sizes, dtype=np.int64) + extra

    def with_grid(self, kind: str) -> Schema:
        """A copy whose numeric columns have bins of another kind.

        Parameters
        ----------
        kind : {"even", "doubling", "fine"}
            ``"even"``: ``n_bins`` equally wide bins.  ``"doubling"``: where 0 lies between the bounds, the edges of
            half as many, and every half, quarter, ... of each bound, down to a share of 2^-14 of it.  ``"fine"``: the
            same edges and, between the equally spaced ones, as many more as there are codes for.
        """
        if kind not in grid.GRIDS:
            raise ValueError(f"grid must be one of {grid.GRIDS}, not {shown(kind)}")
        copied = copy.copy(self)
        copied.grid = kind
        return copied

    def edges(self, name: str, n_bins: int) -> np.ndarray:
        """The public bin edges of a numeric column, ``n_bins + 1`` of them, equally spaced over its bounds unless
        :meth:`with_grid` says otherwise.

        They are the doubles nearest to the true edges, the bounds being read as the decimals they were written as: 0.3
        is an edge of ten bins over (0, 1).
        """
        if name not in self.numeric:
            raise ValueError(f"{shown(name)} is not a numeric column of the schema: {listed(self.numeric)}")
        return grid.edges(*self.numeric[name], _check_bins(n_bins, extra=self.missing == "bin"), self.grid).copy()

    def encode(self, X: Any, n_bins: int) -> Encoded:
        """Turn a table into codes.

        Parameters
        ----------
        X : frame or array-like, shape (n_rows, n_features)
            Of a frame (pandas, polars, pyarrow and whatever gives an Arrow stream), a mapping of columns, a list of
            records with names (``[{"age": 70}]``) or a structured array the columns of the schema are taken by their
            names, in whatever order; others are not looked at.  An array, or rows as lists, must have as many columns
            as the schema, in its order.
        n_bins : int
            Bins of each numeric column, equally wide over the declared bounds, between 2 and 255 (254 with a bin for
            missing values).  A value on an edge belongs to the bin above it, the upper bound to the last bin.  The
            edges are those of :meth:`edges`; a value in another precision is the number that it is there: 0.7 in
            single precision is a little less than 0.7.

        Returns
        -------
        Encoded

        Raises
        ------
        ValueError
            A column that is missing or there twice, or a wrong number of them; a missing value under
            ``missing="error"``; an undeclared category in a column without ``other``; in a numeric column, a text that
            writes no number.
        TypeError
            Sparse, masked or lazy data; what has names that are not understood; a cell that is neither a number nor
            text, nor missing.

        Notes
        -----
        *Record-wise.*  What each cell says is read from it alone, by the rules of :mod:`~dpforest.schema.cells`, and
        its code depends on nothing else but the schema and ``n_bins``: not on other rows, nor on what they make of the
        type of the column, nor on the library that holds the table.

        *Categories.*  A number is the declared number that equals it, and a text the declared text.  Where there is
        none, a text is the declared number that it writes, and a number the one declared text that writes it; the texts
        ``True`` and ``False`` are declared bools.  The reason: one text in a column of a file, or in an array,
        turns all numbers there into texts before they come here.  So codes that look like numbers need care:
        ``"250.0"`` and ``"2.5e2"`` are the declared text or number 250, and are not counted in ``other``.  Declare such
        a column by groups with a :class:`~dpforest.schema.Prefix`, which takes texts as they are written.
        """
        n_bins = _check_bins(n_bins, extra=self.missing == "bin")
        table = frames.columns_of(X)
        columns = dict(zip(self.columns, self._pick(table), strict=True))
        codes = np.empty((self.n_features, table.shape[0]), dtype=np.uint8)
        rows = dict(zip(self.columns, codes, strict=True))
        clipped = self._encode_numeric(columns, n_bins, rows)
        other = {name: self._encode_categorical(name, columns[name], rows[name]) for name in self.categorical}
        return Encoded(codes, clipped, {name: count for name, count in other.items() if count})

    def known(self, name: str | None = None) -> dict[str | float, int]:
        """The code of each text and number that a column may hold; without a name, that the labels may be."""
        if name is None:
            return _known([] if self.classes is None else self.classes.tolist())
        if name not in self.groups:
            return _known(self.categorical[name], numerals=True)
        members = [(value, code) for code, values in enumerate(self.groups[name]) for value in values]
        exact = [(value, code) for value, code in members if not isinstance(value, Prefix)]
        known = _known([value for value, _ in exact], [code for _, code in exact], numerals=len(exact) == len(members))
        if len(exact) == len(members):
            return known
        beginnings = {value.text: code for value, code in members if isinstance(value, Prefix)}
        return groups.CodeLookup(known, beginnings, f"column {name!r}")

    def values_of(self, name: str, code: int) -> list:
        """Values of a table that have this code of a categorical column: the category, or some that its group lists.

        None for the code of missing values; nothing where a group takes what no group lists.
        """
        if code == len(self.categorical[name]):
            return [None]
        if name not in self.groups:
            return [self.categorical[name][code]]
        known, found = self.known(name), []
        for value in self.groups[name][code]:
            tried = [value.text, f"{value.text}~"] if isinstance(value, Prefix) else [value]
            found += [each for each in tried if known.get(each if isinstance(each, str) else float(each)) == code]
        return found

    def encode_labels(self, y: Any) -> np.ndarray:
        """Class codes (uint8) of the labels ``y``; an undeclared label raises and is named."""
        if self.classes is None:
            raise ValueError("this schema declares a regression target; a classifier needs classes=[...]")
        y, known = frames.one_column(y, "y"), self.known()
        found = np.empty(y.shape[0], dtype=np.uint8)
        if grid.look_up(known, y, 0, 0, found) == (0, 0):
            return found
        codes = cells.places(y, known, "y")
        if (codes == -2).any():
            raise ValueError("y contains NaN: a label is missing, and no class means that; drop the record")
        if codes.min(initial=0) < 0:
            numbered = all(isinstance(each, str) for each in known) and _are_numbers(y)
            remedy = _NUMBERED if numbered else "add it to Schema(classes=...) or drop the record"
            raise ValueError(
                f"Unknown label type: {shown(_first(y, codes < 0))} is not among the declared classes "
                f"{listed(self.classes.tolist())}; {remedy}"
            )
        return codes.astype(np.uint8)

    def encode_target(self, y: Any) -> tuple[np.ndarray, int]:
        """The target on its public grid, and how many values lay outside the declared range and were clipped.

        Parameters
        ----------
        y : array-like, shape (n_rows,)

        Returns
        -------
        codes : ndarray of uint8, shape (n_rows,)
            Steps above the lower bound, 0 to ``TARGET_LEVELS``; a value between two steps goes to the nearer one.
        clipped : int

        Raises
        ------
        ValueError, TypeError
            A value that is missing or not a number.
        """
        low, high = self._target_range()
        y = cells.numbers(frames.one_column(y, "y"), "y").astype(float)
        if np.isnan(y).any():
            raise ValueError("y contains NaN; a target must be a number: drop the record")
        codes = np.rint((np.clip(y, low, high) - low) / (high - low) * TARGET_LEVELS)
        return codes.astype(np.uint8), int(((y < low) | (y > high)).sum())

    def decode_target(self, share: ArrayLike) -> np.ndarray:
        """The value at ``share``, from 0 to 1, of the way through the declared range."""
        low, high = self._target_range()
        return low + (high - low) * np.asarray(share, dtype=float)

    def to_dict(self) -> dict:
        """A JSON-ready description; :meth:`from_dict` reads it back."""
        return {
            "numeric": {name: list(pair) for name, pair in self.numeric.items()},
            "categorical": {name: [_plain(v) for v in values] for name, values in self.categorical.items()},
            "classes": None if self.classes is None else [_plain(v) for v in self.classes],
            "target": None if self.target is None else list(self.target),
            "columns": list(self.columns),
            "other": {name: _plain(value) for name, value in self.other.items()},
            "missing": self.missing,
        } | {name: part for name, part in self._more().items() if part}

    def _more(self) -> dict[str, Any]:
        """The parts of the description that stand there only where they say something."""
        return {
            "grid": "" if self.grid == "even" else self.grid,
            "groups": {name: groups.described(members) for name, members in self.groups.items()},
            "whole": list(self.whole),
        }

    @classmethod
    def from_dict(cls, description: Mapping) -> Schema:
        """The schema that :meth:`to_dict` described."""
        declared = {name: part for name, part in description.items() if name not in ("grid", "groups")}
        listed = dict(description["categorical"])
        for name, members in description.get("groups", {}).items():
            listed[name] = groups.read(members, listed.get(name), f"groups[{name!r}]")
        return cls(**declared | {"categorical": listed}).with_grid(description.get("grid", "even"))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """:meth:`to_dict` as JSON, also written to a file if a path is given; :meth:`from_json` reads it back."""
        return storage.dump(self.to_dict(), path)

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Schema:
        """The schema that :meth:`to_json` wrote, from its text or its file; every part of it is checked.

        Parameters
        ----------
        source : str or path
            JSON, which begins with a brace, or the path of a file.

        Raises
        ------
        ValueError
            It is no schema; nothing is converted.
        TypeError
            ``source`` is neither text nor a path.
        OSError
            There is no such file.
        """
        description = storage.read(source)
        if type(description) is dict and (more := description.keys() - {*_MEMBERS, *_MORE}):
            raise ValueError(f"not a schema: unknown fields {listed(sorted(more))}")
        try:
            return cls.written(description, "not a schema")
        except (TypeError, OverflowError) as error:
            raise ValueError(f"not a schema: {str(error)[:500]}") from None

    def check_written(self) -> None:
        """Raise ValueError unless the schema's file gives it back; one that was changed by hand may not."""
        try:
            same = Schema.written(storage.parse(storage.dump(self.to_dict(), None)), "not a schema") == self
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"this schema cannot be written to a file: {str(error)[:500]}") from None
        if not same:
            raise ValueError("this schema cannot be written to a file, which would say something else: declare it anew")

    @classmethod
    def written(cls, description: Any, problem: str) -> Schema:
        """:meth:`from_dict` of what came from a file, whose every part is checked; errors begin with ``problem``."""
        for name, kinds in _MEMBERS.items():
            if type(description) is not dict or name not in description:
                raise ValueError(f"{problem}: it has no {shown(name)}")
            if type(description[name]) not in kinds:
                raise ValueError(f"{problem}: {name} is {shown(description[name])}")
        for name in ("numeric", "categorical"):
            storage.listed(list(description[name].values()), f"schema: {name}", list)
        if len(storage.listed(description["columns"], "schema: columns", str)) > MAX_COLUMNS:
            raise ValueError(f"{problem}: more than {MAX_COLUMNS} columns")
        for name, kind in _MORE.items():
            if type(description.get(name, kind())) is not kind:
                raise ValueError(f"{problem}: {name} is {shown(description[name])}")
        storage.listed(description.get("whole", []), "schema: whole", str)
        return cls.from_dict(description)

    def check(self, table: Any, y: Any = None, person: Any = None) -> Check:
        """Look at a whole table, and say at once all that a fit would refuse, or change.

        Parameters
        ----------
        table : frame or array-like, Parquet files, or Dask DataFrame
            As for ``fit``; what an engine reads is read once, here and not by its workers.
        y : array-like, str or None
            Labels or targets, or the name of their column; None: they are not looked at.
        person : array-like, str or None
            Whose row it is, as for ``fit``.

        Returns
        -------
        Check
            True if a fit takes the table; printed, the columns that are missing or there twice, the cells, labels and
            persons that are refused, how many rows have them, and what to write.  It shows cells and exact counts: it
            is only for those who may see the table itself.  Do not release it.

        Notes
        -----
        Nothing is charged, for nothing is released.  What a fit would report by an error, one cell at a time and after
        the account was charged, is listed here before.  What is changed because of it should be known from
        documentation: a category that is declared because it was found here is public from then on.

        Examples
        --------
        >>> schema = Schema(numeric={"age": (17, 90)}, categorical={"sex": ["F", "M"]}, classes=["no", "yes"])
        >>> print(schema.check([[31, "F"], ["?", "f"]], ["no", "yes"]))  # doctest: +NORMALIZE_WHITESPACE
        2 rows; a fit refuses this table (for your eyes: do not release)
          column 'age': 1 row with '?': no number; make it one, or missing (None) where there is none
          column 'sex': 1 row with 'f': not declared; if documentation has it, add it to categorical['sex'], else
            declare other={'sex': <a declared category>}
        """
        return check(self, table, y, person)

    @staticmethod
    def draft(table: Any, target: str | None = None) -> Draft:
        """A schema to fill in: names and kinds from the table's columns and their types, and blanks for all else.

        No cell is looked at: bounds, categories and classes are left to a person with documentation at hand, for a
        bound that was read off the rows tells the largest of them.  The categories of a categorical type are not
        copied, for they may have been made from the rows.

        Parameters
        ----------
        table : frame
            Of any library, in memory; it may have no rows: of a Parquet file
            ``pyarrow.parquet.read_schema(path).empty_table()``.
        target : str or None
            The column to predict, which is no feature.

        Returns
        -------
        Draft
            Printed, it is Python code with ``...`` where something is to be filled in; a blank that is left is refused.

        Examples
        --------
        >>> import pandas as pd
        >>> print(Schema.draft(pd.DataFrame({"age": [31], "sex": ["Female"], "ill": ["no"]}), target="ill"))
        # fill in each ... from documentation, never from the rows: what stands here is public
        Schema(
            numeric={  # lowest and highest value
                'age': (..., ...),
            },
            categorical={  # every category; numbers written as text may be numeric
                'sex': [...],
            },
            classes=[...],  # 'ill': every class; or, for a number, target=(lowest, highest)
            # missing="bin",  # where cells may be empty: a code of their own
            # other={'sex': ...},  # which of its categories takes what is not listed
            # 'sex': {'a group': [Prefix('...')]},  # in its place, of more than 255 categories
        )
        """
        return draft(table, target)

    def __eq__(self, another: object) -> bool:
        return isinstance(another, Schema) and self.to_dict() == another.to_dict()

    def __hash__(self) -> int:
        return hash((tuple(self.columns), self.target, self.missing))

    def __repr__(self) -> str:
        answer = f"target={self.target}" if self.classes is None else f"classes={self.classes.tolist()}"
        grouped = f" ({len(self.groups)} of them by groups)" if self.groups else ""
        return f"Schema({len(self.numeric)} numeric, {len(self.categorical)} categorical columns{grouped}, {answer})"

    def _target_range(self) -> tuple[float, float]:
        if self.target is None:
            raise ValueError("this schema declares classes; a regressor needs Schema(target=(low, high))")
        return self.target

    def _bins(self, name: str, n_bins: int) -> int:
        """Bins of a numeric column, without the one for missing values."""
        if self.grid == "even":
            return n_bins
        found = len(grid.edges(*self.numeric[name], n_bins, self.grid)) - 1
        if found + (self.missing == "bin") > MAX_CODES - 1:
            raise ValueError(f"column {shown(name)} has {found} bins on the {self.grid} grid: lower n_bins = {n_bins}")
        return found

    # -- one column at a time ------------------------------------------------------------------------------

    def _pick(self, table: frames.Columns) -> list:
        if table.names is not None:
            return table.pick(self.columns)
        width = table.shape[1]
        if not width:
            raise ValueError(
                f"X has 0 feature(s) (shape={table.shape}) while a minimum of {self.n_features} is required."
            )
        if width != self.n_features:
            wanted = f"Schema is expecting {self.n_features} features as input: {listed(self.columns)}"
            hint = (
                "; leave out scalers and encoders: a learner takes the table as it is, and of a frame the columns by "
                "their names"
            )
            raise ValueError(f"X has {width} features, but {wanted}{hint if width > self.n_features else ''}")
        return [table[place] for place in range(width)]

    def _encode_numeric(
        self, columns: Mapping[str, Any], n_bins: int, rows: Mapping[str, np.ndarray]
    ) -> dict[str, int]:
        """Write the codes of the numeric columns; returns how many values were clipped, by column."""
        todo = [
            (name, cells.numbers(columns[name], f"column {shown(name)}, declared numeric,"))
            for name in self.columns
            if name in self.numeric
        ]
        edges = {name: grid.open_edges(*self.numeric[name], n_bins, self.grid) for name, _ in todo}
        outside = dict.fromkeys(edges, 0)
        for start in range(0, len(todo[0][1]) if todo else 0, _BLOCK):
            for name, values in todo:
                block = slice(start, start + _BLOCK)
                bins = len(edges[name][0]) - 1
                clipped, absent = grid.bin_column(values[block], *edges[name], bins, rows[name][block])
                outside[name] += clipped
                if absent and self.missing == "error":
                    raise ValueError(
                        f"column {shown(name)} contains NaN; declare Schema(missing='bin') to give missing values "
                        "a public bin, or fill them in"
                    )
        return {name: count for name, count in outside.items() if count}

    def _encode_categorical(self, name: str, values: Any, out: np.ndarray) -> int:
        categories = self.categorical[name]
        known, absent = self.known(name), len(categories)
        other = categories.index(self.other[name]) if name in self.other else 0
        strays = grid.look_up(known, values, absent, other, out)
        if strays is None or (strays[0] and name not in self.other) or (strays[1] and self.missing == "error"):
            codes = cells.places(values, known, f"column {shown(name)}", numerals=True)
            if codes.min(initial=0) >= 0:
                out[:] = codes
                return 0
            unknown, missing = codes == -1, codes == -2
            if missing.any() and self.missing == "error":
                raise ValueError(f"column {shown(name)} contains NaN; declare Schema(missing='bin'), or fill it in")
            if unknown.any() and name not in self.other:
                raise ValueError(
                    f"column {shown(name)} holds {shown(_first(values, unknown))}, which is not "
                    "among its declared categories; add it to the schema, or declare "
                    f"other={{{shown(name)}: <a declared category>}} to receive undeclared "
                    "values"
                )
            out[:] = np.where(unknown, other, np.where(missing, absent, codes))
            strays = int(unknown.sum()), int(missing.sum())
        return strays[0]


def _bounds(pair: Any, where: str) -> tuple[float, float]:
    if is_blank(pair):
        raise ValueError(
            f"{where} is left blank: fill in the lowest and the highest value that documentation allows, not those of "
            "the rows"
        )
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise TypeError(f"{where} must be a pair (low, high), not {shown(pair)}") from None
    numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in (low, high))
    if not numbers or not low < high or abs(low) > _LARGEST or abs(high) > _LARGEST:  # NaN is below nothing
        dates = "" if numbers else "; a date becomes a number first, such as the days since a public date"
        raise ValueError(f"{where} must be two finite numbers with low < high, not {shown(pair)}{dates}")
    low, high = (int(v) if isinstance(v, Integral) else float(v) for v in (low, high))
    return low, high


def _groups(given: Mapping, where: str) -> tuple[list, list[list]]:
    """The names of the groups, and what each of them lists: values that are as those of :func:`_labels`."""
    if any(is_blank(values) for values in given.values()):
        raise ValueError(f"{where} is left blank: list what documentation allows, not what the rows hold")
    names, members = groups.check(given, where)
    _labels([value for group in members for value in group if not isinstance(value, Prefix)], where, 0, MAX_MEMBERS)
    return _labels(names, where, 1), [[_plain(value) for value in group] for group in members]


def _labels(values: Any, where: str, least: int, most: int = MAX_CODES - 1) -> list:
    """The declared values as a list of different, hashable, present values."""
    if is_blank(values):
        raise ValueError(f"{where} is left blank: list what documentation allows, not what the rows hold")
    if isinstance(values, (str, bytes, set, frozenset)):
        raise TypeError(f"{where} must be a list, whose order is that of the codes, not {shown(values)}")
    try:
        values = [_plain(value) for value in values]
        said = [cells.said(value, where) for value in values]
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where} must be a list of numbers or text: {error}") from None
    if not least <= len(values) <= most:
        remedy = "" if len(values) <= most else _CLASSES if where == "classes" else _MANY if most < MAX_CODES else ""
        raise ValueError(f"{where} must list between {least} and {most} values, not {len(values)}{remedy}")
    if None in said:
        raise ValueError(f"{where} lists a missing value: declare Schema(missing='bin') instead")
    if any(isinstance(value, float) and math.isinf(value) for value in said):
        raise ValueError(f"{where} lists a number beyond the largest double, which no file can hold")
    if len(set(said)) != len(said):
        raise ValueError(f"{where} must list different values, numbers being compared as doubles: {listed(values)}")
    if not all(isinstance(value, (str, bool, int, float)) for value in values):
        raise TypeError(f"{where} must be a list of numbers or text, which a file can hold: {listed(values)}")
    return values


def _class_array(classes: list) -> np.ndarray:
    array = np.array(classes)
    # np.array turns a mixture such as [0, 'a'] into strings: keep the labels as the user wrote them
    return array if array.tolist() == classes else np.array(classes, dtype=object)


def _check_bins(n_bins: object, extra: bool) -> int:
    if not isinstance(n_bins, Integral) or isinstance(n_bins, bool) or not 2 <= int(n_bins) < MAX_CODES - extra:
        raise ValueError(f"n_bins must be a whole number between 2 and {MAX_CODES - 1 - extra}, not {shown(n_bins)}")
    return int(n_bins)


def _known(declared: Sequence, codes: Sequence[int] | None = None, *, numerals: bool = False) -> dict[str | float, int]:
    """The code of each declared text and number, its place if no other is given.

    With ``numerals``, also of every other text or number that means declared values of that code and of no other one.
    """
    codes = range(len(declared)) if codes is None else codes
    known = {
        value if isinstance(value, str) else float(value): code for value, code in zip(declared, codes, strict=True)
    }
    if not numerals:
        return known
    more: dict[str | float, int] = {}
    unclear = set()
    for value, code in zip(declared, codes, strict=True):
        number = cells.number_of_text(value) if isinstance(value, str) else None
        if number is not None and more.setdefault(number, code) != code:
            unclear.add(number)
    for number in unclear:
        del more[number]
    more |= {str(value): code for value, code in zip(declared, codes, strict=True) if isinstance(value, bool)}
    return more | known


def _are_numbers(column: Any) -> bool:
    """Whether all labels are numbers."""
    return {*map(type, np.asarray(column).tolist())} <= {bool, int, float}


def _first(column: ArrayLike, where: np.ndarray) -> Any:
    """The first cell of the column that is meant."""
    return _plain(np.asarray(column)[np.flatnonzero(where)[0]])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
