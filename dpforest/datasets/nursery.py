"""Nursery: how an application to a nursery school was ranked.  (UCI 76.)

Categories and classes stand in ``nursery.names``, sections 7 and 9.  The rows spell one category ``nonprob`` where
section 7 has ``non-prob``; UCI's other description of the set, ``nursery.c45-names``, spells it as the rows do.
The rows are the whole attribute space, and the class ``recommend`` has two of them: both are kept.
"""

from __future__ import annotations

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, answers, table
from .files import File

CATEGORIES = {
    "parents": ["usual", "pretentious", "great_pret"],
    "has_nurs": ["proper", "less_proper", "improper", "critical", "very_crit"],
    "form": ["complete", "completed", "incomplete", "foster"],
    "children": ["1", "2", "3", "more"],
    "housing": ["convenient", "less_conv", "critical"],
    "finance": ["convenient", "inconv"],
    "social": ["nonprob", "slightly_prob", "problematic"],
    "health": ["recommended", "priority", "not_recom"],
}
CLASSES = ["not_recom", "recommend", "very_recom", "priority", "spec_prior"]


def schema() -> Schema:
    """Public schema of Nursery."""
    return Schema(categorical=CATEGORIES, classes=CLASSES)


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of ``nursery.data``."""
    rows = table(read("nursery.data"), [*CATEGORIES, "class"], schema, "class")
    return ParsedRows(rows[list(CATEGORIES)], answers(rows, "class"))


ENTRIES = (
    Entry(
        name="nursery",
        title="Nursery",
        description="Applications to nursery schools in Ljubljana, ranked by a decision model: 8 nominal features, "
        "5 classes, every combination of values once.",
        citation="Vladislav Rajkovic. Nursery. UCI Machine Learning Repository, 1989. https://doi.org/10.24432/C5P88W",
        key="uci-nursery",
        schema=schema,
        parse=parse,
        folder="nursery",
        archive="76/nursery.zip",
        files=(File("nursery.data", "8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d"),),
    ),
)
