"""Statlog German Credit: is a borrower a good or a bad risk?  (UCI 144.)

Categories as in the description of the set, ``german.doc``, with its codes (A11, A12, ...).  It calls seven attributes
numerical and bounds none of them.  Four of these hold the codes 1 to 4, or 1 and 2, of a questionnaire (Grömping, South
German Credit Data, 2019); for the other three the bounds are round ones, each with its reason beside it.
"""

from __future__ import annotations

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, answers, table
from .files import File


def _codes(attribute: int, *last: int) -> list[str]:
    return [f"A{attribute}{k}" for k in last]


CATEGORICAL = {
    "checking account": _codes(1, 1, 2, 3, 4),
    "credit history": _codes(3, 0, 1, 2, 3, 4),
    "purpose": _codes(4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),  # A47, vacation, is listed with a question mark
    "savings": _codes(6, 1, 2, 3, 4, 5),
    "employment since": _codes(7, 1, 2, 3, 4, 5),
    "status and sex": _codes(9, 1, 2, 3, 4, 5),
    "other debtors": _codes(10, 1, 2, 3),
    "property": _codes(12, 1, 2, 3, 4),
    "other instalment plans": _codes(14, 1, 2, 3),
    "housing": _codes(15, 1, 2, 3),
    "job": _codes(17, 1, 2, 3, 4),
    "telephone": _codes(19, 1, 2),
    "foreign worker": _codes(20, 1, 2),
}
NUMERIC = {
    "duration": (0, 72),  # months: six years of a consumer credit
    "amount": (0, 20_000),  # Deutschmark
    "instalment rate": (1, 4),
    "residence since": (1, 4),
    "age": (18, 90),  # adults
    "credits at this bank": (1, 4),
    "dependants": (1, 2),
}
COLUMNS = [
    "checking account", "duration", "credit history", "purpose", "amount", "savings", "employment since",
    "instalment rate", "status and sex", "other debtors", "residence since", "property", "age",
    "other instalment plans", "housing", "credits at this bank", "job", "dependants", "telephone",
    "foreign worker",
]  # fmt: skip
LABELS = {b" 1": b" good", b" 2": b" bad"}


def schema() -> Schema:
    """Public schema of German Credit; ``german.doc`` explains the file's labels 1 and 2 as good and bad."""
    return Schema(numeric=NUMERIC, categorical=CATEGORICAL, classes=["good", "bad"], columns=COLUMNS)


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of ``german.data``."""
    lines = [line.rstrip() for line in read("german.data").splitlines()]
    content = b"".join(line[:-2] + LABELS[line[-2:]] + b"\n" for line in lines if line)
    rows = table(content, [*COLUMNS, "risk"], schema, "risk", sep=" ", blanks=False)
    return ParsedRows(rows[COLUMNS], answers(rows, "risk"))


ENTRIES = (
    Entry(
        name="german-credit",
        title="Statlog (German Credit Data)",
        description="A thousand borrowers of a German bank: good or bad credit risk, from 20 features.",
        citation="Hans Hofmann. Statlog (German Credit Data). UCI Machine Learning Repository, 1994. "
        "https://doi.org/10.24432/C5NC77",
        key="uci-german-credit",
        schema=schema,
        parse=parse,
        folder="german-credit",
        archive="144/statlog+german+credit+data.zip",
        files=(File("german.data", "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"),),
    ),
)
