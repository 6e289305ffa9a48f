"""What is public before the data: the declaration, the grid, and the encoding of any table, record by record."""

from dpforest.schema.check import Check
from dpforest.schema.declaration import MAX_CODES, TARGET_LEVELS, Encoded, Schema
from dpforest.schema.draft import Draft
from dpforest.schema.groups import Prefix
from dpforest.schema.taxonomy import MISSING, Value, taxonomies

__all__ = [
    "MAX_CODES",
    "MISSING",
    "TARGET_LEVELS",
    "Check",
    "Draft",
    "Encoded",
    "Prefix",
    "Schema",
    "Value",
    "taxonomies",
]
