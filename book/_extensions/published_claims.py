"""What papers claim: headed *Claim* in the book, with its verdict, and the page of claims knows whose each is.

sphinx-proof has no block of that name, and sets a claim as a conjecture.  The verdicts are those that the tests state
(``tools/published.py``); no chapter types one.
"""

from __future__ import annotations

import json
import re
from gettext import NullTranslations
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from editions import EDITION, PREFIX, verdict
from evidence import scanned
from sphinx.application import Sphinx
from sphinx.locale import translators

ROOT = Path(__file__).resolve().parent.parent.parent
#: How the book calls each paper, by the name of its module, and how else a title may call it.
PAPERS = {
    "edprf": ("eDPRF",),
    "random_trees": ("RDT",),
    "diffpets": ("DiffPETs",),
    "diffprf": ("DiffPRF",),
    "diffprfs": ("DiffPRFs",),
    "dps_adaboost": ("CART-DPsAdaBoost",),
    "dp_adaboost": ("DP-AdaBoost",),
    "pearson_tree": ("MapReduce trees", "MapReduce"),
    "functional_mechanism": ("functional mechanism",),
    "diff_lr": ("Diff-LR",),
    "diffp_id3": ("DiffP-ID3", "Friedman and Schuster"),
    "sulq_id3": ("SuLQ-based ID3",),
    "pinq_id3": ("PINQ-based ID3",),
    "diffp_c45": ("DiffP-C4.5",),
    "diffgen": ("DiffGen",),
    "dt_diff": ("DT-Diff",),
    "smooth_forest": ("smooth forest",),
    "dp_ebm": ("DP-EBM",),
    "privatree": ("PrivaTree",),
    "diprime": ("DiPriMe", "DiPriMeFlip"),
    "dp_tr": ("DP-TR",),
    "s_bdt": ("S-BDT",),
    "aim": ("AIM",),
}


class _Words(NullTranslations):
    def gettext(self, message: str) -> str:
        return "Claim" if message == "Conjecture" else message


def _reword(app: Sphinx) -> None:
    translators["general", "proof"] = _Words()


def papers(found: Any, chapters: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of each claim with a verdict the papers it is about: by its code, its title, or else its chapter."""
    about: dict[str, set[str]] = {}
    for claim in (claim for rows in chapters.values() for claim in rows):
        modules = {parts[2] for code in found.code[claim] if (parts := code.split("."))[1] == "papers"}
        title = found.book[claim][0].title
        told = {key for key, names in PAPERS.items() for name in names if re.search(rf"(?<!\w){name}(?![\w-])", title)}
        about[claim] = told or modules
    parts = re.split(r"^  - caption: ", (ROOT / "_toc.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    of_papers = {
        page
        for part in parts
        if part.startswith(("Forests", "Ancestors"))
        for page in re.findall(r"file: book/(\w+)$", part, flags=re.MULTILINE)
    }
    for page, rows in chapters.items():
        here = {key for claim in rows if claim.startswith("pub-") for key in about[claim]}
        for claim in rows:
            about[claim] = about[claim] or (here if page in of_papers else set())
    return {claim: sorted(PAPERS[key][0] for key in keys if key in PAPERS) for claim, keys in about.items()}


def line(module: Any, said: Any, chinese: bool = False) -> str:
    """The verdict in a block: a sign and a word for each relation, how tight, and how the paper was read."""
    signs = "".join(
        f'<span class="half {word.replace(" ", "-")}" aria-hidden="true">{module.SIGNS[word]}</span>'
        for word in said.words
    )
    hatched = " second-hand" if said.how == "second hand" else ""
    words = f"True? <strong>{escape(said.truth)}</strong> · {escape(module.beside(said))}"
    if chinese:
        words = f"是否成立：{verdict(said)}"
    return f'<p class="verdict-line"><span class="published{hatched}">{signs}</span> {words}</p>'


def _verdicts(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the verdict at the head of each published claim."""
    blocks = [block for block in doctree.findall(nodes.Admonition) if block.attributes.get("realtype") == "conjecture"]
    if not blocks:
        return
    claims, found, _ = scanned()
    stated = claims.of_papers(found)
    for block in blocks:
        if (said := stated.get(block["label"].removeprefix(PREFIX))) is not None:
            shown = line(claims.published, said, docname.startswith(EDITION))
            block[-1].insert(0, nodes.raw("", shown, format="html"))


def _outdated(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The chapters whose verdicts are others than when they were last written."""
    claims, found, chapters = scanned()
    stated = claims.of_papers(found)
    now = {
        f"{place}{page}": [line(claims.published, stated[c]) for c in rows if c in stated]
        for page, rows in chapters.items()
        for place in ("book/", EDITION)
    }
    before, env.published_verdicts = getattr(env, "published_verdicts", {}), now
    return [page for page, lines in now.items() if page in env.found_docs and before.get(page) != lines]


def _tell(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Hand papers and verdicts to claims.js."""
    if docname == "book/claims":
        claims, found, chapters = scanned()
        stated = {c: {"true": said.words, "read": said.how} for c, said in claims.of_papers(found).items()}
        for name, what in (("papers", papers(found, chapters)), ("verdicts", stated)):
            said = json.dumps(what, sort_keys=True, ensure_ascii=False)
            script = f'<script type="application/json" class="{name}">{said}</script>'
            next(doctree.findall(nodes.section)).append(nodes.raw("", script, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; the catalogue of sphinx-proof is replaced when all extensions have added theirs."""
    app.connect("builder-inited", _reword)
    app.connect("env-get-outdated", _outdated)
    app.connect("doctree-resolved", _verdicts)
    app.connect("doctree-resolved", _tell)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
