"""Addresses in the package's metadata, of whoever builds it: none is written out in this repository.

``DPFOREST_REPOSITORY`` is the address of the repository, ``DPFOREST_SITE`` that of the book.  The release workflow sets
them; a package that is built without them names no address, for none is better than one that leads nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def urls(environment: Mapping[str, str]) -> dict[str, str]:
    """What ``[project.urls]`` would say."""
    addresses = {}
    for name in ("DPFOREST_REPOSITORY", "DPFOREST_SITE"):
        addresses[name] = environment.get(name, "").strip().rstrip("/")
        if addresses[name] and not addresses[name].startswith(("https://", "http://")):
            raise ValueError(f"{name} must begin with https:// or http://, not {addresses[name][:80]!r}")
    found = {}
    if repository := addresses["DPFOREST_REPOSITORY"]:
        found = {
            "Repository": repository,
            "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        }
    return found | ({"Documentation": site} if (site := addresses["DPFOREST_SITE"]) else {})


class Addresses(MetadataHookInterface):
    """The hook that hatchling calls: it fills the field ``urls``, which ``pyproject.toml`` leaves open."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["urls"] = urls(os.environ)
