"""Words of a type in a docstring are words: ``(n, k) array of codes``.

Sphinx takes each of them for the name of a class, and finds an attribute that is called so, or several.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

WORD = re.compile(r"[a-z0-9_-]+")


def _as_words(app: Sphinx, doctree: nodes.document) -> None:
    for link in list(doctree.findall(pending_xref)):
        if link["refdomain"] == "py" and link["reftype"] in ("class", "obj") and WORD.fullmatch(link["reftarget"]):
            link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", _as_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
