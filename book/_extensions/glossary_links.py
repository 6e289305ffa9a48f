"""The first use of a term on a page links to the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

GLOSSARY = Path(__file__).resolve().parent.parent / "glossary.md"
#: Terms that pages also use as everyday words: a link would often be wrong.
EVERYDAY = frozenset(
    {
        "account",
        "attribute",
        "block",
        "branch",
        "charge",
        "code",
        "event",
        "guarantee",
        "margin",
        "masses",
        "part",
        "pass",
        "path",
        "person",
        "power",
        "relation",
        "release",
        "scope",
        "state",
        "stop",
        "weight",
    }
)
#: Pages that are lists, or made by a program.
LISTS = re.compile(
    r"book/(?:glossary|symbols|claims|experimental_claims|also_named|bibliography|changelog|api|rooms/|estimators/)"
)
_APART = (
    nodes.title,
    nodes.rubric,
    nodes.caption,
    nodes.term,
    nodes.reference,
    pending_xref,
    nodes.literal,
    nodes.math,
)
_APART += (nodes.math_block, nodes.literal_block, nodes.raw, nodes.comment)


@cache
def terms() -> dict[str, str]:
    """The terms of the glossary that are linked, by how a text has them: in small letters, without a plural's s."""
    lines = re.findall(r"^(\w.*)$", GLOSSARY.read_text(encoding="utf-8").partition("{glossary}\n")[2], flags=re.M)
    return {re.sub("(?<!s)s$", "", term.lower()): term for term in lines if term not in EVERYDAY}


@cache
def _pattern() -> re.Pattern[str]:
    longest = sorted(terms(), key=len, reverse=True)
    words = "|".join(re.escape(stem).replace(r"\ ", r"\s+") for stem in longest)
    return re.compile(rf"(?<![\w-])(?<!log )({words})(?:s|es)?(?![\w-])", re.IGNORECASE)


def linked(text: str, done: set[str]) -> Iterator[tuple[str, str | None]]:
    """The pieces of a text, each with the term that it is the first use of; ``done`` has those that were used."""
    end = 0
    for match in _pattern().finditer(text):
        term = terms()[" ".join(match[1].lower().split())]
        if term not in done:
            done.add(term)
            yield text[end : match.start()], None
            yield match[0], term
            end = match.end()
    yield text[end:], None


def _apart(node: nodes.Node | None) -> bool:
    while node is not None:
        if isinstance(node, _APART) or "sd-card" in getattr(node, "attributes", {}).get("classes", ()):
            return True
        node = node.parent
    return False


def _link(app: Sphinx, doctree: nodes.document) -> None:
    page = app.env.docname
    if not page.startswith(("book/", "notebooks/rendered/")) or LISTS.match(page):
        return
    done: set[str] = set()
    for text in list(doctree.findall(nodes.Text)):
        if _apart(text.parent):
            continue
        pieces = list(linked(text.astext(), done))
        if len(pieces) > 1:
            text.parent.replace(text, [_piece(piece, term, page) for piece, term in pieces if piece])


def _piece(piece: str, term: str | None, page: str) -> nodes.Node:
    if term is None:
        return nodes.Text(piece)
    shown = nodes.inline("", piece, classes=["xref", "std", "std-term"])
    return pending_xref("", shown, refdomain="std", reftype="term", reftarget=term, refdoc=page, refwarn=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
