"""What is public before the data: bounds, categories, classes, target range.

A :class:`Schema` is written down by a person from documentation, never learned from the rows.  It turns a
table into small integer codes on a public grid, clips what lies outside the declared bounds, and says how
often it had to.  Nothing in here looks at a record in order to decide how to treat another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real

import numpy as np
import pandas as pd

from dpforest import grid

__all__ = ["TARGET_LEVELS", "Encoded", "Schema"]

MAX_CODES = 256  # codes travel as uint8

#: Steps of the public grid of a target: whole numbers of 0 to 10, to 12, to 20, to 24 and the like lie on it exactly.
TARGET_LEVELS = 240

_LARGEST = 1e38  # the largest bound: single precision holds it, and a difference of two
_BLOCK = 1 << 13  # rows encoded at a time: a block of a row-major table stays in cache while its columns are read


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
    categorical : mapping of str to sequence, optional
        The categories of each categorical column, at most 255, all different.
    classes : sequence, optional
        The class labels, at least two.  Give either ``classes`` or ``target``.
    target : (low, high), optional
        Bounds of the target of a regression.
    columns : sequence of str, optional
        Order of the columns in a table.  Default: the numeric ones, then the categorical ones, as written.
    other : mapping of str to category, optional
        For a categorical column, the declared category that undeclared values become.  Without it an
        undeclared value is an error.
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
    ):
        # names are text, so that a table with numbered columns comes back from JSON as it went
        self.numeric = {str(name): _bounds(pair, f"numeric[{name!r}]") for name, pair in (numeric or {}).items()}
        self.categorical = {
            str(name): _labels(values, f"categorical[{name!r}]", 1) for name, values in (categorical or {}).items()
        }
        both = self.numeric.keys() & self.categorical.keys()
        if both:
            raise ValueError(f"declare a column once: {sorted(both)} stand under numeric and under categorical")
        declared = [*self.numeric, *self.categorical]
        if not declared:
            raise ValueError("a schema needs at least one column: numeric={'age': (0, 120)} or categorical={...}")
        self.columns = list(map(str, columns)) if columns is not None else declared
        if sorted(self.columns) != sorted(declared):
            raise ValueError(f"columns {self.columns} must name each declared column once: {declared}")
        if (classes is None) == (target is None):
            raise ValueError("declare either classes=[...] (classification) or target=(low, high) (regression)")
        self.classes = None if classes is None else _class_array(_labels(classes, "classes", 2))
        self.target = None if target is None else _bounds(target, "target")
        self.other = {str(name): value for name, value in (other or {}).items()}
        for name, value in self.other.items():
            if name not in self.categorical or value not in self.categorical[name]:
                raise ValueError(f"other[{name!r}] = {value!r} must be one of the declared categories of a column")
        if missing not in ("error", "bin"):
            raise ValueError(f"missing must be 'error' or 'bin', not {missing!r}")
        self.missing = missing

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def n_classes(self) -> int:
        """Number of declared classes; 0 for a regression."""
        return 0 if self.classes is None else len(self.classes)

    def cardinalities(self, n_bins: int) -> np.ndarray:
        """Number of codes of each column, in column order (the code for missing values included)."""
        n_bins = _check_bins(n_bins, extra=self.missing == "bin")
        extra = self.missing == "bin"
        sizes = [n_bins if name in self.numeric else len(self.categorical[name]) for name in self.columns]
        return np.array(sizes, dtype=np.int64) + extra

    def edges(self, name: str, n_bins: int) -> np.ndarray:
        """The public bin edges of a numeric column, ``n_bins + 1`` of them, equally spaced over its bounds.

        They are the doubles nearest to the true edges, the bounds being read as the decimals they were written as: 0.3
        is an edge of ten bins over (0, 1).
        """
        if name not in self.numeric:
            raise ValueError(f"{name!r} is not a numeric column of the schema: {list(self.numeric)}")
        return grid.edges(*self.numeric[name], _check_bins(n_bins, extra=self.missing == "bin")).copy()

    def encode(self, X, n_bins: int) -> Encoded:
        """Turn a table into codes.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n_rows, n_features)
            A DataFrame must have exactly the columns of the schema, in its order.
        n_bins : int
            Bins of each numeric column, equally wide over the declared bounds, between 2 and 255 (254 beside a bin for
            missing values).  A value on an edge belongs to the bin above it, the upper bound to the last bin.  The
            edges are those of :meth:`edges`; a value in another precision is the number that it is there: 0.7 in
            single precision is a little less than 0.7.

        Returns
        -------
        Encoded

        Raises
        ------
        ValueError
            Wrong column names, order or number; a missing value under ``missing="error"``; an undeclared
            category in a column without ``other``; a value that is not a number in a numeric column.
        TypeError
            Sparse data, or an object in a numeric column that is neither a number nor text.
        """
        n_bins = _check_bins(n_bins, extra=self.missing == "bin")
        columns = dict(zip(self.columns, self._columns_of(X), strict=True))
        codes = np.empty((self.n_features, len(columns[self.columns[0]])), dtype=np.uint8)
        rows = dict(zip(self.columns, codes, strict=True))
        clipped = self._encode_numeric(columns, n_bins, rows)
        other = {name: self._encode_categorical(name, columns[name], rows[name]) for name in self.categorical}
        return Encoded(codes, clipped, {name: count for name, count in other.items() if count})

    def encode_labels(self, y) -> np.ndarray:
        """Class codes (uint8) of the labels ``y``; an undeclared label raises and is named."""
        if self.classes is None:
            raise ValueError("this schema declares a regression target; a classifier needs classes=[...]")
        y = pd.Series(y) if grid.is_categorical(y) or grid.is_text(y) else grid.one_dimensional(np.asarray(y))
        classes, found = self.classes.tolist(), np.empty(len(y), dtype=np.uint8)
        if grid.look_up(classes, y, 0, 0, found) == (0, 0):
            return found
        codes = grid.positions(classes, y, "y")
        if codes.min(initial=0) < 0:
            bad = _plain(np.asarray(y)[np.flatnonzero(codes < 0)[0]])
            raise ValueError(
                f"Unknown label type: {bad!r} is not among the declared classes {self.classes.tolist()}; "
                "add it to Schema(classes=...) or drop the record"
            )
        return codes.astype(np.uint8)

    def encode_target(self, y) -> tuple[np.ndarray, int]:
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
        y = grid.one_dimensional(grid.to_float(y, "y")).astype(float)
        if np.isnan(y).any():
            raise ValueError("y contains NaN; a target must be a number: drop the record")
        codes = np.rint((np.clip(y, low, high) - low) / (high - low) * TARGET_LEVELS)
        return codes.astype(np.uint8), int(((y < low) | (y > high)).sum())

    def decode_target(self, share) -> np.ndarray:
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
        }

    @classmethod
    def from_dict(cls, description: Mapping) -> Schema:
        """The schema that :meth:`to_dict` described."""
        return cls(**description)

    def __eq__(self, another) -> bool:
        return isinstance(another, Schema) and self.to_dict() == another.to_dict()

    def __hash__(self) -> int:
        return hash((tuple(self.columns), self.target, self.missing))

    def __repr__(self) -> str:
        answer = f"target={self.target}" if self.classes is None else f"classes={self.classes.tolist()}"
        return f"Schema({len(self.numeric)} numeric, {len(self.categorical)} categorical columns, {answer})"

    def _target_range(self) -> tuple[float, float]:
        if self.target is None:
            raise ValueError("this schema declares classes; a regressor needs Schema(target=(low, high))")
        return self.target

    # -- one column at a time ------------------------------------------------------------------------------

    def _columns_of(self, X) -> list:
        if isinstance(X, pd.DataFrame):
            names = [str(c) for c in X.columns]
            if names != self.columns:
                raise ValueError(_name_error(names, self.columns))
            return [column for _, column in X.items()]
        X = grid.as_table(X)
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array of shape {X.shape} instead. Reshape your data: "
                "one row per record, one column per feature of the schema"
            )
        if not X.shape[1]:
            raise ValueError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of {self.n_features} is required.")
        if X.shape[1] != self.n_features:
            wanted = f"Schema is expecting {self.n_features} features as input: {self.columns}"
            raise ValueError(f"X has {X.shape[1]} features, but {wanted}")
        return [X[:, j] for j in range(X.shape[1])]

    def _encode_numeric(self, columns, n_bins, rows) -> dict[str, int]:
        """Write the codes of the numeric columns; returns how many values were clipped, by column."""
        todo = [(name, grid.to_float(columns[name], name)) for name in self.columns if name in self.numeric]
        edges = {name: grid.open_edges(*self.numeric[name], n_bins) for name, _ in todo}
        outside = dict.fromkeys(edges, 0)
        for start in range(0, len(todo[0][1]) if todo else 0, _BLOCK):
            for name, values in todo:
                block = slice(start, start + _BLOCK)
                clipped, absent = grid.bin_column(values[block], *edges[name], n_bins, rows[name][block])
                outside[name] += clipped
                if absent and self.missing == "error":
                    raise ValueError(
                        f"column {name!r} contains NaN; declare Schema(missing='bin') to give missing values "
                        "a public bin, or fill them in"
                    )
        return {name: count for name, count in outside.items() if count}

    def _encode_categorical(self, name, values, out) -> int:
        categories = self.categorical[name]
        other = categories.index(self.other[name]) if name in self.other else 0
        found = grid.look_up(categories, values, len(categories), other, out)
        if found:
            n_others, n_missing = found
            if (name in self.other or not n_others) and (self.missing == "bin" or not n_missing):
                return n_others
        codes = grid.positions(categories, values, f"column {name!r}")
        if codes.min(initial=0) == 0:
            out[:] = codes
            return 0
        unknown = codes < 0
        missing = unknown & np.asarray(pd.isna(values))
        if missing.any():
            if self.missing == "error":
                raise ValueError(f"column {name!r} contains NaN; declare Schema(missing='bin'), or fill it in")
            codes = np.where(missing, len(categories), codes)
            unknown &= ~missing
        if unknown.any():
            if name not in self.other:
                bad = _plain(np.asarray(values)[np.flatnonzero(unknown)[0]])
                raise ValueError(
                    f"column {name!r} holds {bad!r}, which is not among its declared categories; add it to the schema, "
                    f"or declare other={{{name!r}: <a declared category>}} to receive undeclared values"
                )
            codes = np.where(unknown, other, codes)
        out[:] = codes
        return int(unknown.sum())


def _bounds(pair, where) -> tuple[float, float]:
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise TypeError(f"{where} must be a pair (low, high), not {pair!r}") from None
    numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in (low, high))
    if not numbers or not low < high or abs(low) > _LARGEST or abs(high) > _LARGEST:  # NaN is below nothing
        raise ValueError(f"{where} must be two finite numbers with low < high, not {pair!r}")
    low, high = (int(v) if isinstance(v, Integral) else float(v) for v in (low, high))
    return low, high


def _labels(values, where, least) -> list:
    """The declared values as a list of different, hashable, present values."""
    if isinstance(values, (str, bytes, set, frozenset)):
        raise TypeError(f"{where} must be a list, whose order is that of the codes, not {values!r}")
    try:
        values = [_plain(value) for value in values]
        repeated = len(set(values)) != len(values)
    except TypeError as error:
        raise TypeError(f"{where} must be a list of numbers or text: {error}") from None
    if not least <= len(values) < MAX_CODES:
        raise ValueError(f"{where} must list between {least} and {MAX_CODES - 1} values, not {len(values)}")
    if repeated:
        raise ValueError(f"{where} must list different values: {values}")
    if any(value is None or value is pd.NA or value != value for value in values):
        raise ValueError(f"{where} lists a missing value: declare Schema(missing='bin') instead")
    if not all(isinstance(value, (str, bool, int, float)) for value in values):
        raise TypeError(f"{where} must be a list of numbers or text, which a released model can write down: {values}")
    return values


def _class_array(classes) -> np.ndarray:
    array = np.array(classes)
    # np.array turns a mixture such as [0, 'a'] into strings: keep the labels as the user wrote them
    return array if array.tolist() == classes else np.array(classes, dtype=object)


def _check_bins(n_bins, extra) -> int:
    if not isinstance(n_bins, Integral) or isinstance(n_bins, bool) or not 2 <= int(n_bins) < MAX_CODES - extra:
        raise ValueError(f"n_bins must be a whole number between 2 and {MAX_CODES - 1 - extra}, not {n_bins!r}")
    return int(n_bins)


def _name_error(names, columns) -> str:
    if sorted(names) == sorted(columns):
        return (
            "The feature names should match those of the schema, in its order: pass X[schema.columns]. "
            f"Got {names}, expected {list(columns)}"
        )
    unseen = sorted(set(names) - set(columns))
    absent = sorted(set(columns) - set(names))
    twice = sorted({name for name in names if names.count(name) > 1})
    return (
        f"The feature names should match those of the schema. Not in the schema: {unseen}; missing from X: {absent}"
        + (f"; more than once in X: {twice}" if twice else "")
    )


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value
