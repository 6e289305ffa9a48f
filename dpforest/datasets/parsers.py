"""Parsers: the rows of a data set from its files, or from scikit-learn, for three sets that ship inside it.

A file of ``schemas`` names its parser (``rows = "adult"``); without a name it is :func:`delimited`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from dpforest.messages import listed, shown
from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read

# -- delimited text ----------------------------------------------------------------------------------------------------


def delimited(entry: Entry, read: Read, schema: Schema) -> ParsedRows:
    """Rows of a classification: those of the first file, and of the second, where there is one, as the test part."""
    # one file after the other: the text of the largest takes 100 MB
    frames = [table(read(file.name), entry, schema) for file in entry.files]
    train, test = [*frames, None][:2]
    return ParsedRows(
        train[schema.columns],
        _labels(train, entry),
        None if test is None else test[schema.columns],
        None if test is None else _labels(test, entry),
        None if entry.weight is None else train[entry.weight],
        None if entry.weight is None or test is None else test[entry.weight],
    )


def table(content: bytes, entry: Entry, schema: Schema) -> pd.DataFrame:
    """Read delimited text.

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
        declared[entry.label] = schema.classes.tolist()
    frame = pd.read_csv(
        io.BytesIO(content),
        sep=entry.separator,
        header=None,
        names=list(entry.columns),
        skiprows=int(entry.header),
        skipinitialspace=entry.separator != " ",
        na_filter=False,
        dtype=dict.fromkeys(declared, "category"),
    )
    for name, categories in declared.items():
        frame[name] = _declared(frame[name], name, categories)
    return frame


def _declared(column: pd.Series, name: str, categories: Sequence) -> pd.Series:
    found = [str(value).strip() for value in column.cat.categories]
    unknown = sorted(set(found) - set(categories))
    if unknown:
        raise ValueError(f"column {shown(name)} holds {listed(unknown)}, which its public schema does not declare")
    return column.cat.rename_categories(found).cat.set_categories(categories)


def _labels(frame: pd.DataFrame, entry: Entry) -> pd.Series:
    """The label column as plain Python strings, which every scikit-learn metric takes."""
    return frame[entry.label].astype(object)


# -- files with ways of their own --------------------------------------------------------------------------------------


def adult(entry: Entry, read: Read, schema: Schema) -> ParsedRows:
    """Rows of Adult: the test file opens with a comment, and its labels end with a full stop."""

    def alike(name: str) -> bytes:
        content = read(name)
        return content.partition(b"\n")[2].replace(b"50K.", b"50K") if name == "adult.test" else content

    return delimited(entry, alike, schema)


def german_credit(entry: Entry, read: Read, schema: Schema) -> ParsedRows:
    """Rows of German Credit, whose last column has numbers for the labels."""
    labels = {b" 1": b" good", b" 2": b" bad"}

    def spelled(name: str) -> bytes:
        lines = [line.rstrip() for line in read(name).splitlines()]
        return b"".join(line[:-2] + labels[line[-2:]] + b"\n" for line in lines if line)

    return delimited(entry, spelled, schema)


def wine_quality(entry: Entry, read: Read, schema: Schema) -> ParsedRows:
    """Rows of Wine Quality, one file a colour, and the colour as a feature where the schema has it."""
    measured = replace(entry, columns=[name for name in entry.columns if name != "colour"])
    numbers = Schema(numeric=schema.numeric, target=schema.target)
    frames = []
    for file in entry.files:
        frame = table(read(file.name), measured, numbers)
        if colours := schema.categorical.get("colour"):
            colour = file.name.removeprefix("winequality-").removesuffix(".csv")
            frame["colour"] = pd.Categorical([colour] * len(frame), categories=colours)
        frames.append(frame)
    rows = pd.concat(frames, ignore_index=True)
    return ParsedRows(rows[schema.columns], rows[entry.label].astype(float))


def daily_demand(entry: Entry, read: Read, schema: Schema) -> ParsedRows:
    """Rows of Daily Demand, in the order of time, with the fiscal sector's units repaired."""
    lines = read(entry.files[0].name).decode("ascii").splitlines()
    cells = dict(zip(entry.columns, np.array([line.split(";") for line in lines]).T, strict=False))
    rows = pd.DataFrame(index=range(len(lines)))
    for name in schema.columns:
        if name in schema.categorical:
            rows[name] = pd.Categorical(cells[name], categories=schema.categorical[name])
        elif name == "fiscal sector":
            rows[name] = [thousands(cell) for cell in cells[name]]
        else:
            rows[name] = cells[name].astype(float)
    return ParsedRows(rows, pd.Series(cells[entry.label].astype(float), name=entry.label))


def thousands(cell: str) -> float:
    """Thousands of orders from a count printed with a point after the thousands, if it has thousands."""
    return float(cell) if "." in cell else float(cell) / 1000


# -- scikit-learn's own: there is always something real to run, with neither files nor network -------------------------


def breast_cancer(entry: Entry, read: Read, schema: Schema) -> ParsedRows:
    """Rows of the breast-cancer set."""
    from sklearn.datasets import load_breast_cancer  # slow to import, so only when needed

    bunch = load_breast_cancer()
    y = pd.Series(bunch.target_names[bunch.target].astype(object), name=entry.label)
    return ParsedRows(pd.DataFrame(bunch.data, columns=[str(name) for name in bunch.feature_names]), y)


def diabetes(entry: Entry, read: Read, schema: Schema) -> ParsedRows:
    """Rows of the diabetes set in their own units: the usual scaled columns carry the rows' mean and variance."""
    from sklearn.datasets import load_diabetes  # slow to import, so only when needed

    bunch = load_diabetes(scaled=False)
    X = pd.DataFrame(bunch.data, columns=list(bunch.feature_names))
    X["sex"] = pd.Categorical([str(int(code)) for code in X["sex"]], categories=schema.categorical["sex"])
    return ParsedRows(X, pd.Series(bunch.target, name=entry.label))


def digits(entry: Entry, read: Read, schema: Schema) -> ParsedRows:
    """Rows of the digits set."""
    from sklearn.datasets import load_digits  # slow to import, so only when needed

    bunch = load_digits()
    return ParsedRows(pd.DataFrame(bunch.data, columns=schema.columns), pd.Series(bunch.target, name=entry.label))


PARSERS = {
    parser.__name__: parser
    for parser in (delimited, adult, german_credit, wine_quality, daily_demand, breast_cancer, diabetes, digits)
}
