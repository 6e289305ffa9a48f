"""Experimental claims, ``exp-…``: the scan of their four hits, and what ``make claims`` writes of them.

Statements stand in ``dpforest/study/statements``, one file a chapter; the chapter glues the table that its notebook
made of them, and the verdicts are read from that notebook's rendering of record.  Nothing here judges.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from dpforest.study.statements import Statements, papers, style
from dpforest.study.statements.rules import SIGNS, VERDICTS

ROOT = Path(__file__).resolve().parents[1]
BOOK, RECORD = ROOT / "book", ROOT / "notebooks" / "record"
PAGE, CHART = BOOK / "experimental_claims.md", BOOK / "_static" / "statements.html"
_GLUED = re.compile(r"^```\{glue:\w+\} statements_(\w+)\n:doc: \.\./notebooks/rendered/(\w+)\.ipynb$", re.MULTILINE)
_ROW = re.compile(r'<tr id="(exp-[a-z0-9-]+)" data-verdict="([^"]+)">')


@dataclass
class Paper:
    """The statements of one chapter, where its table is glued, and what the record says."""

    name: str
    ids: list[str]
    notebook: str | None = None
    verdicts: dict[str, str] = field(default_factory=dict)


def scan(book: Path = BOOK, record: Path = RECORD) -> list[Paper]:
    """The papers that have statements, in the order of their chapters in the book."""
    found = []
    for name in papers():
        paper = Paper(name, [said.id for said in Statements(name)])
        chapter = book / f"{name}.md"
        for of, notebook in _GLUED.findall(chapter.read_text(encoding="utf-8")) if chapter.exists() else []:
            if of == name:
                paper.notebook = notebook
                paper.verdicts = judged(record / f"{notebook}.ipynb")
        found.append(paper)
    order = re.findall(r"file: book/(\w+)$", (ROOT / "_toc.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return sorted(found, key=lambda paper: order.index(paper.name) if paper.name in order else len(order))


def judged(path: Path) -> dict[str, str]:
    """The verdicts in the tables of a notebook that was run, by the statement's id."""
    if not path.exists():
        return {}
    outputs = [out for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] for out in cell.get("outputs", ())]
    shown = "".join("".join(out.get("data", {}).get("text/html", "")) for out in outputs)
    return dict(_ROW.findall(shown))


def problems(found: list[Paper]) -> list[str]:
    """What is missing of a statement's table in its chapter and of its verdict in the record, one sentence each."""
    out = []
    for paper in found:
        if paper.notebook is None:
            out.append(
                f"{paper.name}: glue statements_{paper.name} in book/{paper.name}.md, from the notebook of its run"
            )
            continue
        for name in paper.ids:
            if name not in paper.verdicts:
                out.append(f"{name}: no verdict in notebooks/record/{paper.notebook}.ipynb: make record")
            elif paper.verdicts[name] not in VERDICTS:
                out.append(f"{name}: verdict {paper.verdicts[name]!r} is not one of {VERDICTS}")
        out += [f"{name}: judged by {paper.notebook}, and no statement" for name in {*paper.verdicts} - {*paper.ids}]
    return out


def page(found: list[Paper], title) -> str:  # type: ignore[no-untyped-def]
    """The page that joins the tables of all papers; ``title`` gives that of a chapter."""
    whole = Counter(verdict for paper in found for verdict in paper.verdicts.values())
    counts = ", ".join(f"{whole[verdict]} {verdict}" for verdict in VERDICTS if whole[verdict])
    lines = [_HEAD, f"In all {whole.total()} statements: {counts}."]
    for paper in found:
        if paper.notebook is None:
            continue
        lines += [
            "",
            f"## {title(paper.name)}",
            "",
            f"{{doc}}`{paper.name}` · {{doc}}`the run <../notebooks/rendered/{paper.notebook}>`",
            "",
            f"```{{glue:any}} statements_{paper.name}",
            f":doc: ../notebooks/rendered/{paper.notebook}.ipynb",
            "```",
        ]
    return "\n".join(lines) + "\n"


def chart(found: list[Paper], title) -> str:  # type: ignore[no-untyped-def]
    """The front page's chart: a square for each statement of a paper about its experiments."""
    whole = Counter(verdict for paper in found for verdict in paper.verdicts.values())
    key = " ".join(f"{_square(verdict)} {verdict}\u00a0{whole[verdict]}" for verdict in VERDICTS if whole[verdict])
    lines = ['<table class="verdicts">', f"<caption>{key}</caption>", "<tbody>"]
    for paper in found:
        squares = "".join(
            f'<a class="{style(verdict)}" href="{paper.name}.html#{name}" title="{name}: {verdict}">'
            f'{SIGNS[verdict]}<span class="hidden">{name}: {verdict}</span></a>'
            for name, verdict in sorted(paper.verdicts.items(), key=lambda item: (VERDICTS.index(item[1]), item[0]))
        )
        if squares:
            head = f'<a href="{paper.name}.html">{html.escape(title(paper.name))}</a>'
            lines.append(f'<tr><th scope="row">{head}</th><td>{squares}</td></tr>')
    return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"


def _square(verdict: str) -> str:
    return f'<span class="{style(verdict)}">{SIGNS[verdict]}</span>'


_HEAD = """# Experimental claims

What the papers report of their experiments, sentence by sentence, compared with a run of the same protocol.  The
numbers and the verdicts are those of the run; one rule judges all papers, and it does not know which paper it judges.

**reproduced**: the effect is there, clearly: a 95 % interval over repeats, paired by seed, lies on the paper's side.
**the other way round**: the opposite is there, clearly, and of several comparisons more often than by chance.
**not reproduced**: neither is clear, or not on every data set that the paper names and on which it could be run.
**cannot be read**: the sentence or its number is lost in what we have of the paper.  **cannot be run here**: a data set
or a system is missing, and the table says which.

A statement that is not reproduced is not false: a protocol that a paper does not print in full is read in the kindest
way, and the line says how.  Privacy claims have a page of their own: {doc}`claims`.
"""
