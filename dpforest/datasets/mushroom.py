"""Mushroom: edible or poisonous, from 22 nominal marks.  (UCI 73.)

Every category stands in ``agaricus-lepiota.names``, attribute information 1 to 22; there ``?`` is a named category
of the stalk root ("missing").
"""

from __future__ import annotations

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, answers, table
from .files import File

# one letter per category, in the order of agaricus-lepiota.names
CATEGORIES = {
    "cap-shape": "bcxfks",
    "cap-surface": "fgys",
    "cap-color": "nbcgrpuewy",
    "bruises": "tf",
    "odor": "alcyfmnps",
    "gill-attachment": "adfn",
    "gill-spacing": "cwd",
    "gill-size": "bn",
    "gill-color": "knbhgropuewy",
    "stalk-shape": "et",
    "stalk-root": "bcuezr?",
    "stalk-surface-above-ring": "fyks",
    "stalk-surface-below-ring": "fyks",
    "stalk-color-above-ring": "nbcgopewy",
    "stalk-color-below-ring": "nbcgopewy",
    "veil-type": "pu",
    "veil-color": "nowy",
    "ring-number": "not",
    "ring-type": "ceflnpsz",
    "spore-print-color": "knbhrouwy",
    "population": "acnsvy",
    "habitat": "glmpuwd",
}


def schema() -> Schema:
    """Public schema of Mushroom; the classes are ``e`` (edible) and ``p`` (poisonous)."""
    return Schema(categorical={name: list(letters) for name, letters in CATEGORIES.items()}, classes=["e", "p"])


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of ``agaricus-lepiota.data``, whose first column is the class."""
    rows = table(read("agaricus-lepiota.data"), ["class", *CATEGORIES], schema, "class")
    return ParsedRows(rows[list(CATEGORIES)], answers(rows, "class"))


ENTRIES = (
    Entry(
        name="mushroom",
        title="Mushroom",
        description="Gilled mushrooms of the Agaricus and Lepiota family: edible or poisonous? 22 nominal features.",
        citation="Mushroom. UCI Machine Learning Repository, 1981. https://doi.org/10.24432/C5959T",
        key="uci-mushroom",
        schema=schema,
        parse=parse,
        folder="mushroom",
        archive="73/mushroom.zip",
        files=(File("agaricus-lepiota.data", "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"),),
    ),
)
