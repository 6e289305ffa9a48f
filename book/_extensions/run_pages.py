"""Pages of runs: one cell of parameters, ids that lead to their claims, and the notebook to take away.

A run has the notebook's own parameters, small ones, and a cell that sets others.  Its page shows what it ran with.
On pages of the API the id stands beside the number of a claim.
"""

from __future__ import annotations

import ast

from docutils import nodes
from evidence import scanned
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

RUNS = "notebooks/rendered/"
API = ("book/api", "book/estimators/", "book/rooms/")
SMALL = "The values of this page; the notebook itself has small ones, for a quick run."


def as_run(own: str, injected: str) -> str:
    """The cell of parameters with the values that another cell sets after it; its comments stay."""
    lines = own.encode().splitlines(keepends=True)
    other = {
        node.targets[0].id: ast.get_source_segment(injected, node.value)
        for node in ast.parse(injected).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in reversed(ast.parse(own).body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.expr) and (said := other.get(target.id)):
            first, last = value.lineno - 1, (value.end_lineno or value.lineno) - 1
            tail = lines[last][value.end_col_offset :]
            lines[first : last + 1] = [lines[first][: value.col_offset] + said.encode() + tail]
    return b"".join(lines).decode()


def _one_cell(app: Sphinx, doctree: nodes.document) -> None:
    cells = {
        tag: cell
        for cell in doctree.findall(nodes.container)
        for tag in ("tag_parameters", "tag_injected-parameters")
        if tag in cell["classes"]
    }
    if len(cells) < 2:
        return
    own, injected = (next(cell.findall(nodes.literal_block)) for cell in cells.values())
    own.rawsource = as_run(own.astext(), injected.astext())  # highlighted only if it is what the block holds
    own[:] = [nodes.Text(own.rawsource)]
    first, second = cells.values()
    second.parent.remove(second)
    first.parent.insert(first.parent.index(first), nodes.paragraph("", SMALL))


def _seen_from_there(app: Sphinx, docname: str, source: list[str]) -> None:
    """A notebook's links are those of its own folder, and its page stands in one below."""
    if docname.startswith(RUNS):
        source[0] = source[0].replace("](rendered/", "](").replace("](../", "](../../")


def _link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    claims, found, _ = scanned()
    if docname.startswith(RUNS):
        _take_away(app, doctree, docname)
        for literal in list(doctree.findall(nodes.literal)):
            claim = literal.astext()
            if claim in found.book and not isinstance(literal.parent, nodes.reference):
                block = found.book[claim][0]
                page = app.builder.get_relative_uri(docname, f"book/{block.page}")
                literal.replace_self(
                    nodes.reference(
                        "",
                        "",
                        literal.deepcopy(),
                        refuri=f"{page}#{claim}",
                        internal=True,
                        reftitle=claims.plain(block.title),
                    )
                )
    elif docname.startswith(API):
        for reference in list(doctree.findall(nodes.reference)):
            claim = reference.get("refuri", "").partition("#")[2]
            if claim in found.book and claim not in reference.astext():
                reference += [nodes.Text(" "), nodes.literal(claim, claim)]


def _take_away(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    title = next(doctree.findall(nodes.title), None)
    if title is None or app.builder.format != "html":
        return
    here = app.builder.get_target_uri(docname)
    line = nodes.paragraph(classes=["download-run"])
    line += nodes.reference(
        "", "Download this run", refuri=relative_uri(here, f"_sources/{docname}.ipynb"), internal=True
    )
    line += nodes.Text(" as a notebook, with its outputs.")
    title.parent.insert(title.parent.index(title) + 1, line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; cells are one before code is laid out (narrow.py)."""
    app.connect("doctree-read", _one_cell, priority=400)
    app.connect("source-read", _seen_from_there)
    app.connect("doctree-resolved", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
