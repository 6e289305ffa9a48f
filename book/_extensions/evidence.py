"""Pages of evidence: for each chapter, the test and the code of every claim that has a verdict, as they stand.

In the chapters every labelled block shows its id, and the way to its evidence.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from editions import EDITION, PREFIX, english
from narrow import narrowed
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent.parent
#: Of longer excerpts the first lines are shown, and how many follow.
LINES = 150
#: Where a reader finds out how a copy of the repository is had.
COPY = "book/faq.html#where-is-the-repository"
#: A file, and what to show of it: a name, or a name in a name.
Place = tuple[Path, tuple[str, ...]]


@cache
def _read(path: Path) -> tuple[list[str], ast.Module]:
    text = path.read_text(encoding="utf-8")
    return text.splitlines(), ast.parse(text)


def excerpt(path: Path, names: tuple[str, ...]) -> tuple[str, int]:
    """Where a file defines what is named: its lines, decorators included, and the number of the first."""
    lines, found = _read(path)
    node: Any = found
    for name in names:
        node = next(child for child in ast.walk(node) if child is not node and name in _defined(child))
    first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", []))])
    return "\n".join(lines[first - 1 : node.end_lineno]), first


def cut(code: str) -> str:
    """The first lines of a long excerpt."""
    lines = code.splitlines()
    if len(lines) <= LINES:
        return code
    return "\n".join([*lines[:LINES], f"# ... and {len(lines) - LINES} lines more"])


def _defined(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def of_test(where: str) -> Place:
    """The file and the name of a test that is called ``file::name``."""
    stem, name = where.split("::")
    return ROOT / "tests" / f"{stem}.py", (name,)


def of_code(where: str) -> Place:
    """The file and the names of what is called ``dpforest.module.name``."""
    parts = where.split(".")
    for length in range(len(parts) - 1, 0, -1):
        base = ROOT.joinpath(*parts[:length])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.exists():
                return path, tuple(parts[length:])
    raise ValueError(f"no module has {where}")


@cache
def scanned() -> tuple[ModuleType, Any, dict[str, list[str]]]:
    """The module that looks for the claims, what it finds, and the claims with a verdict by chapter."""
    sys.path.insert(0, str(ROOT))
    claims = import_module("tools.claims")
    found = claims.scan()
    return claims, found, claims.chapters(found)


def _show_ids(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    blocks = [node for node in doctree.findall(nodes.Admonition) if "realtype" in node.attributes]
    if not blocks:
        return
    _, found, chapters = scanned()
    page, ids = english(docname).removeprefix("book/"), found.ids
    uri = app.builder.get_relative_uri(docname, f"evidence/{page}")
    words = "测试与代码" if docname.startswith(EDITION) else "test and code"
    for block in blocks:
        label = block["label"].removeprefix(PREFIX)
        if label not in ids:
            continue
        line = nodes.paragraph("", "", nodes.literal(label, label), classes=["evidence"])
        if label in chapters.get(page, ()):
            line += nodes.Text(" \u00b7 ")
            line += nodes.reference("", words, refuri=f"{uri}#{label}", internal=True)
        block[-1] += line


def _pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    claims, found, chapters = scanned()
    shown_claims = [claim for rows in chapters.values() for claim in rows]
    places = {of_test(said.test) for claim in shown_claims for said in found.verdicts[claim]}
    places |= {of_code(code) for claim in shown_claims for code in found.code[claim]}
    excerpts = {place: excerpt(*place) for place in places}
    codes = dict(zip(excerpts, narrowed(text for text, _ in excerpts.values()), strict=True))

    def shown(anchor: str, word: str, path: Path, names: tuple[str, ...]) -> str:
        text, first = cut(codes[path, names]), excerpts[path, names][1]
        code = app.builder.highlighter.highlight_block(text, "python")  # type: ignore[attr-defined]
        where = f"<code>{escape('.'.join(names))}</code>, <code>{path.relative_to(ROOT)}</code>, line {first}"
        return f'<p id="{anchor}">{word} {where}:</p><div class="highlight-python notranslate">{code}</div>'

    for page, rows in chapters.items():
        title = f"{claims.plain(claims.title(page))}: the evidence"
        body = [f"<h1>{escape(title)}</h1>"]
        for claim in rows:
            name = claims.plain(found.book[claim][0].title) or claim
            body.append(f'<h2 id="{claim}">{escape(name)}</h2>')
            body.append(f'<p><a href="../book/{page}.html#{claim}">The statement</a>, <code>{claim}</code>.</p>')
            for said in found.verdicts[claim]:
                path, (test,) = of_test(said.test)
                run = f"python -m pytest {path.relative_to(ROOT)}::{test}"
                copy = f'<a href="../{COPY}">a copy of the repository</a>'
                body.append(f"<p>Run it, in {copy}: <code>{escape(run)}</code></p>")
                body.append(shown(f"{claim}-test", "The test", path, (test,)))
            body += [shown(f"{claim}-{at}", "The code", *of_code(code)) for at, code in enumerate(found.code[claim])]
        yield f"evidence/{page}", {"parents": [], "title": title, "body": "\n".join(body)}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", _show_ids)
    app.connect("html-collect-pages", _pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
