"""What a paper claims is headed *Claim* in the book: sphinx-proof has no such block, and sets it as a conjecture."""

from __future__ import annotations

from gettext import NullTranslations

from sphinx.application import Sphinx
from sphinx.locale import translators


class _Words(NullTranslations):
    def gettext(self, message: str) -> str:
        return "Claim" if message == "Conjecture" else message


def _reword(app: Sphinx) -> None:
    translators["general", "proof"] = _Words()


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; the catalogue of sphinx-proof is replaced when all extensions have added theirs."""
    app.connect("builder-inited", _reword)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
