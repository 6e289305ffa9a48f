"""No page says that a registered paper is not built: what is here stands in the registry, and nobody types it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from dpforest.registry import PAPERS

ROOT = Path(__file__).resolve().parents[1]
PATTERNS = ("dpforest/**/*.py", "book/*.md", "notebooks/*.ipynb", "README.md", "CONTRIBUTING.md")
_MADE = r"(?:built|implemented|coded|programmed)"
DENIAL = re.compile(
    rf"\bnot (?:yet )?(?:been )?{_MADE}\b|n[o']t {_MADE} yet\b|\b{_MADE} (?:here )?yet\b|\byet to be {_MADE}\b"
    rf"|\bnone of (?:the|these|those|its|them)\b(?! data sets)[^.]*\b(?:{_MADE}|here)\b"
    r"|\b(?:is|are) (?:not (?:yet )?(?:here|in (?:this|the) (?:book|library|package))|missing here)\b",
    re.IGNORECASE,
)


def names(monkeypatch: pytest.MonkeyPatch) -> re.Pattern[str]:
    """How each registered paper is called: in the book, by its module and by its estimators."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "book" / "_extensions"), *sys.path])
    from published_claims import PAPERS as called

    found = [name for key, classes in PAPERS.items() for name in (key, *called.get(key, ()), *classes)]
    return re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, found)) + r")(?![\w-])")


def passages(path: Path) -> list[str]:
    """What is written in a file, by paragraph; a line of a table and a point of a list stand alone."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":  # what was written; what is shown comes from it
        text = "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=\s*[|*-])", text)]


def denials(root: Path, named: re.Pattern[str]) -> list[str]:
    """The sentences that deny a paper which they, or the sentence before them, name; with their place."""
    found = []
    for path in (path for pattern in PATTERNS for path in sorted(root.glob(pattern))):
        for passage in passages(path):
            before = ""
            for sentence in re.split(r"(?<=[.:!?]) ", passage):
                if DENIAL.search(sentence) and named.search(f"{before} {sentence}"):
                    found.append(f"{path.relative_to(root)}: {sentence}")
                before = sentence
    return found


def test_no_sentence_denies_a_registered_paper(monkeypatch):
    assert denials(ROOT, names(monkeypatch)) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "In Table 2 eDPRF leads the other three by 3.0 to 7.1 points. None of the three is built here yet; over trees",
        "DiffPRF is not built yet.",
        "Its rival, DiffGenClassifier, has not been implemented.",
        "Of dt_diff we have the text; it is not in this library.",
        "| DT-Diff | is not here |",
    ],
)
@pytest.mark.parametrize("place", ["book/page.md", "notebooks/run.ipynb", "dpforest/papers/one.py"])
def test_a_planted_sentence_is_found(monkeypatch, tmp_path, place, sentence):
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"cells": [{"source": [sentence]}]}) if path.suffix == ".ipynb" else sentence)
    (told,) = denials(tmp_path, names(monkeypatch))
    assert told.startswith(f"{place}: ")


@pytest.mark.parametrize(
    "sentence",
    [
        "DPBoost is not here.",  # no paper of the registry
        "DiffPRF is here.",
        "Bins of equal mass are not built.\n\nDiffPRF draws its cuts.",  # another paragraph
        "DiffPRF uses features not yet used above.",
    ],
)
def test_other_sentences_are_let_through(monkeypatch, tmp_path, sentence):
    (tmp_path / "README.md").write_text(sentence)
    assert denials(tmp_path, names(monkeypatch)) == []
