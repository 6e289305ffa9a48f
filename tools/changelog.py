"""What CHANGELOG.md says of a version: ``python -m tools.changelog v1.0.0`` prints its section, for the release's page.

It fails where the tag, the version of the library and the newest section do not agree.
"""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

from dpforest import __version__

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_HEAD = re.compile(r"^## (.*)$", re.MULTILINE)
_VERSION = re.compile(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)")


def sections(text: str) -> dict[str, str]:
    """What stands under each version, newest first; the first is ``"Unreleased"``.

    Raises
    ------
    ValueError
        A head is not ``[Unreleased]`` on top, or below it ``[1.2.3] - 2026-11-26`` of falling versions and dates.
    """
    _, *parts = _HEAD.split(text)
    heads, bodies = parts[::2], parts[1::2]
    if not heads or heads[0] != "[Unreleased]":
        raise ValueError("the first section of CHANGELOG.md must be '## [Unreleased]'")
    found, last = {"Unreleased": bodies[0]}, None
    for head, body in zip(heads[1:], bodies[1:], strict=True):
        if (match := _VERSION.fullmatch(head)) is None:
            raise ValueError(f"'## {head}' in CHANGELOG.md must be a version and its date, '## [1.2.3] - 2026-11-26'")
        this = [int(number) for number in match[1].split(".")], date.fromisoformat(match[2])
        if last is not None and not (this[0] < last[0] and this[1] <= last[1]):
            raise ValueError(f"CHANGELOG.md must go from new to old, and [{match[1]}] does not")
        found[match[1]], last = body, this
    return found


def dates(text: str) -> dict[str, str]:
    """The day of each released version."""
    sections(text)  # which are well formed
    return {match[1]: match[2] for head in _HEAD.findall(text) if (match := _VERSION.fullmatch(head))}


def notes(tag: str, text: str, version: str = __version__) -> str:
    """The section of the version that a tag names.

    Raises
    ------
    ValueError
        The tag is not that of the library's version, or that version has no section, or something is not released yet.
    """
    if tag != f"v{version}":
        raise ValueError(f"the tag {tag[:80]!r} is not v{version}, the version in dpforest/_version.py")
    found = sections(text)
    if version not in found:
        raise ValueError(f"CHANGELOG.md has no section for {version}: give what is unreleased its version and date")
    if found["Unreleased"].strip():
        raise ValueError("CHANGELOG.md has changes under [Unreleased]: give them a version and its date")
    return found[version].strip() + "\n"


if __name__ == "__main__":
    try:
        print(notes(sys.argv[1] if len(sys.argv) > 1 else "", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    except ValueError as error:
        sys.exit(f"changelog: {error}")
