"""Taxonomies of the categories of data sets, for generalised tables: written from their documentation alone.

They are public, like a schema, and stand in the same files.  Which values stand together follows from what the
categories mean; other taxonomies make other tables, and as private ones.
"""

from __future__ import annotations

from typing import Any

from .schema_files import CATALOGUE

__all__ = ["TAXONOMIES"]

#: By the name of the data set: what ``DiffGenClassifier(taxonomies=...)`` takes.
TAXONOMIES: dict[str, Any] = {name: entry.taxonomies for name, entry in CATALOGUE.items() if entry.taxonomies}
