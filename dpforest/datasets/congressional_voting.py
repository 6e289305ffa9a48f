"""Congressional Voting Records: the party of a member of the US House of 1984 from 16 votes.  (UCI 105.)

``house-votes-84.names``, section 7, gives y and n; section 8 says that ``?`` "does not mean that the value of the
attribute is unknown" but "not yea or nay": it is a category like the other two.
"""

from __future__ import annotations

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, answers, table
from .files import File

VOTES = [
    "handicapped-infants", "water-project-cost-sharing", "adoption-of-the-budget-resolution",
    "physician-fee-freeze", "el-salvador-aid", "religious-groups-in-schools", "anti-satellite-test-ban",
    "aid-to-nicaraguan-contras", "mx-missile", "immigration", "synfuels-corporation-cutback", "education-spending",
    "superfund-right-to-sue", "crime", "duty-free-exports", "export-administration-act-south-africa",
]  # fmt: skip


def schema() -> Schema:
    """Public schema of the voting records."""
    return Schema(categorical={vote: ["n", "y", "?"] for vote in VOTES}, classes=["democrat", "republican"])


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of ``house-votes-84.data``, whose first column is the party."""
    rows = table(read("house-votes-84.data"), ["party", *VOTES], schema, "party")
    return ParsedRows(rows[VOTES], answers(rows, "party"))


ENTRIES = (
    Entry(
        name="congressional-voting",
        title="Congressional Voting Records",
        description="Members of the US House of Representatives of 1984: democrat or republican, from 16 key votes.",
        citation="Congressional Voting Records. UCI Machine Learning Repository, 1987. https://doi.org/10.24432/C5C01P",
        key="uci-congressional-voting",
        schema=schema,
        parse=parse,
        folder="congressional-voting",
        archive="105/congressional+voting+records.zip",
        files=(File("house-votes-84.data", "c87c14110a5ba91d4a1e313ec7392824458152bf071fa5f5452340488337936e"),),
    ),
)
