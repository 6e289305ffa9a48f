"""What the search finds besides words of pages: ids of claims, and what people type.

Labelled blocks are objects of the search, as functions are. The words of ``book/keywords.yml`` are entries of the
index, which the search ranks before words of titles and texts (``book/scorer.js``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx_proof.domain import ProofDomain

KEYWORDS = Path(__file__).resolve().parent.parent / "keywords.yml"
#: As the search ranks blocks: behind pages, unless the id itself is asked for.
_RANK = 2


def _objects(self: ProofDomain) -> Iterator[tuple[str, str, str, str, str, int]]:
    for label, block in getattr(self.env, "proof_list", {}).items():
        if label:
            kind = "claim" if block["realtype"] == "conjecture" else block["realtype"]
            yield label, label, kind, block["docname"], label, _RANK


def keywords() -> dict[str, dict[str, str]]:
    """The words of each page, and the section that each leads to; '' for the page itself."""
    found: dict[str, dict[str, str]] = {}
    for place, words in yaml.safe_load(KEYWORDS.read_text(encoding="utf-8")).items():
        page, _, section = place.partition("#")
        found.setdefault(page, {}).update(dict.fromkeys(words, section))
    return found


def _enter(app: Sphinx, doctree: nodes.document) -> None:
    """Give a page its words: as entries of the index, which has been collected by now, and for the search."""
    page = app.env.docname
    if words := keywords().get(page):
        entries = [("single", word, section, "main", None) for word, section in words.items()]
        app.env.get_domain("index").data["entries"].setdefault(page, []).extend(entries)
        doctree += addnodes.index(entries=entries)


def _outdated(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The pages whose words are others than when they were last read."""
    now = keywords()
    before, env.keywords = getattr(env, "keywords", {}), now
    return [page for page in {*now, *before} if page in env.found_docs and now.get(page) != before.get(page)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; sphinx-proof lists no objects of its own."""
    ProofDomain.get_objects = _objects  # type: ignore[method-assign]
    app.connect("doctree-read", _enter)
    app.connect("env-get-outdated", _outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
