"""Bank Marketing: does a client of a Portuguese bank take a term deposit after being called?  (UCI 222.)

Categories as in the description of the set, ``bank-names.txt``.  It bounds no number: the bounds are round ones, each
with its reason beside it.
"""

from __future__ import annotations

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, answers, table
from .files import File

COLUMNS = [
    "age", "job", "marital", "education", "default", "balance", "housing", "loan", "contact", "day", "month",
    "duration", "campaign", "pdays", "previous", "poutcome",
]  # fmt: skip


def schema() -> Schema:
    """Public schema of Bank Marketing (``bank-full.csv``)."""
    yes_no = ["no", "yes"]
    return Schema(
        numeric={
            "age": (18, 100),  # adults
            "balance": (-5_000, 20_000),  # euros, a year's average of a private account
            "day": (1, 31),  # of the month
            "duration": (0, 1_800),  # seconds: half an hour on the telephone
            "campaign": (1, 20),  # calls in this campaign, the last one included
            "pdays": (-1, 900),  # days since an earlier campaign, -1 for none; calls span May 2008 to November 2010
            "previous": (0, 20),  # calls before this campaign
        },
        categorical={
            "job": [
                "admin.", "unknown", "unemployed", "management", "housemaid", "entrepreneur", "student",
                "blue-collar", "self-employed", "retired", "technician", "services",
            ],
            "marital": ["married", "divorced", "single"],
            "education": ["unknown", "secondary", "primary", "tertiary"],
            "default": yes_no,
            "housing": yes_no,
            "loan": yes_no,
            "contact": ["unknown", "telephone", "cellular"],
            "month": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
            "poutcome": ["unknown", "other", "failure", "success"],
        },
        classes=yes_no,
        columns=COLUMNS,
    )  # fmt: skip


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of ``bank-full.csv``, in the order of time."""
    rows = table(read("bank-full.csv"), [*COLUMNS, "y"], schema, "y", sep=";", skip_rows=1)
    return ParsedRows(rows[COLUMNS], answers(rows, "y"))


ENTRIES = (
    Entry(
        name="bank-marketing",
        title="Bank Marketing",
        description="Telephone campaigns of a Portuguese bank, 2008 to 2010: does the client take a term deposit? "
        "16 features. The duration of the call is known only when the answer is.",
        citation="Sérgio Moro, Paulo Rita and Paulo Cortez. Bank Marketing. "
        "UCI Machine Learning Repository, 2014. https://doi.org/10.24432/C5K306",
        key="uci-bank-marketing",
        schema=schema,
        parse=parse,
        folder="bank-marketing",
        archive="222/bank+marketing.zip",
        files=(File("bank-full.csv", "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d"),),
    ),
)
