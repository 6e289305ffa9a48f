"""A search for an id finds its block first: labelled blocks are objects of the search, as functions are."""

from __future__ import annotations

from collections.abc import Iterator

from sphinx.application import Sphinx
from sphinx_proof.domain import ProofDomain

#: As the search ranks them: behind pages, unless the id itself is asked for (book/scorer.js).
_RANK = 2


def _objects(self: ProofDomain) -> Iterator[tuple[str, str, str, str, str, int]]:
    for label, block in getattr(self.env, "proof_list", {}).items():
        if label:
            kind = "claim" if block["realtype"] == "conjecture" else block["realtype"]
            yield label, label, kind, block["docname"], label, _RANK


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; sphinx-proof lists no objects of its own."""
    ProofDomain.get_objects = _objects  # type: ignore[method-assign]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
