"""Exercises: those that need Python's own modules alone run in the page, and those of a chapter are a notebook.

An exercise is written once, in the chapter's page: blocks of code named ``exercise-KEY-N``, ``check-KEY-N`` and
``solution-KEY-N``.  What runs them in the page is Brython, of the installed package; a page asks for it after a click.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from editions import EDITION, english
from sphinx.application import Sphinx
from sphinx.errors import ConfigError
from sphinx.util.osutil import relative_uri

BOOK = Path(__file__).resolve().parent.parent
#: What comes with the Python of the pages; an exercise that imports more is for the notebook.
MODULES = {"collections", "fractions", "functools", "itertools", "math", "operator", "random"}
PYTHON, NOTEBOOKS = "_python/python.js", "_downloads/exercises"
KINDS = ("exercise", "check", "solution")
NAME = re.compile(rf"({'|'.join(KINDS)})-(\w+-\d+)")
LEGEND = "★ easy, ★★ takes thought, ★★★ hard"
_CHINESE = "这些习题的 notebook（英文）", "★ 易，★★ 需思考，★★★ 难"
_LIBRARY = "var scripts = "  # what comes before the modules in brython_stdlib.js
_FENCE = re.compile(r"^(`{3,})\{([\w-]+)\}[ \t]*([^\n]*)\n(.*?)^\1$", re.M | re.S)
_ROLE = re.compile(r"\{([\w:]+)\}`(?:([^`<]*)<[^`>]*>|([^`<]*))`")
_TITLE = re.compile(r"^\*\*(\d+)\.\*\*", re.M)


# -- in the page ------------------------------------------------------------------------------------------------------


def imported(code: str) -> set[str]:
    """The modules that a program imports, by the first part of their names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def runs_here(codes: Iterable[str]) -> bool:
    """Whether the Python of the pages has all that these programs import."""
    return set().union(*map(imported, codes)) <= MODULES


def _mark(app: Sphinx, doctree: nodes.document) -> None:
    """Mark what runs in the page, say difficulties in words, too, and lead to the notebook."""
    blocks = {
        found.groups(): block
        for block in doctree.findall(nodes.literal_block)
        for name in block.get("names", ())
        if (found := NAME.fullmatch(name))
    }
    if not blocks:
        return
    chinese = app.env.docname.startswith(EDITION)
    for kind, exercise in blocks:
        if kind == KINDS[0] and runs_here(blocks[each, exercise].astext() for each in KINDS):
            blocks[kind, exercise]["classes"].append("runs-here")
    for paragraph in doctree.findall(nodes.paragraph):
        _say_stars(paragraph, chinese)
    section: Any = next(iter(blocks.values()))
    while not isinstance(section, nodes.section):
        section = section.parent
    page = english(app.env.docname)  # from where the edition leads on to the same file
    there = relative_uri(app.builder.get_target_uri(page), f"{NOTEBOOKS}/{page.rpartition('/')[2]}.ipynb")
    words, legend = _CHINESE if chinese else ("These exercises as a notebook", LEGEND)
    link = f'<p class="exercises-notebook"><a href="{there}" download>{words}</a> · {legend}</p>'
    section.insert(1, nodes.raw("", link, format="html"))


def _say_stars(paragraph: nodes.paragraph, chinese: bool) -> None:
    number, text, *_ = [*(child for child in paragraph if child != ""), None, None]  # an empty text may come first
    if isinstance(number, nodes.strong) and isinstance(text, nodes.Text) and (found := re.match(r" (★{1,3}) ", text)):
        said = f"{'难度' if chinese else 'difficulty'} {len(found[1])}/3"
        stars = f' <span class="stars" role="img" aria-label="{said}" title="{said}">{found[1]}</span> '
        paragraph.replace(text, [nodes.raw("", stars, format="html"), nodes.Text(text[found.end() :])])


def _load(app: Sphinx, page: str, _: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Give the pages that have such exercises their small program, and no other page."""
    if doctree is not None and any("runs-here" in block["classes"] for block in doctree.findall(nodes.literal_block)):
        app.add_js_file("exercises.js", loading_method="defer")


# -- its Python -------------------------------------------------------------------------------------------------------


def needed(library: dict[str, list[Any]], modules: Iterable[str]) -> dict[str, list[Any]]:
    """Of Brython's library these modules, and what they import where they are imported, by its own sources."""
    found: dict[str, list[Any]] = {}
    left = list(modules)
    while left:
        name = left.pop()
        if name in library and name not in found:
            found[name] = library[name]
            left += [name.rpartition(".")[0], *_at_import(name, *library[name])]
    return dict(sorted(found.items()))


def _at_import(name: str, kind: str, source: str, *rest: Any) -> Iterable[str]:
    """What a module imports outside of functions."""
    if kind != ".py":
        return
    package = name if len(rest) > 1 else name.rpartition(".")[0]
    left: list[ast.AST] = list(ast.parse(source).body)
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            left += ast.iter_child_nodes(node)


def python() -> str:
    """Python for the pages, as a text within a program: of it a page makes a worker, also where it is a file.

    Raises
    ------
    ConfigError
        Brython is not installed.
    """
    package = find_spec("brython")
    if package is None or not package.submodule_search_locations:
        raise ConfigError("the exercises run on Brython, which is not installed: make env, or pip install brython")
    data = Path(package.submodule_search_locations[0]) / "data"
    text = (data / "brython_stdlib.js").read_text(encoding="utf-8")
    library, _ = json.JSONDecoder().raw_decode(text, text.index(_LIBRARY) + len(_LIBRARY))
    source = (
        # a worker that a folder's page makes has no address, and Brython needs one to name its own files
        'globalThis.__BRYTHON__ = {brython_path: "file:///python/"};',
        (data / "brython.js").read_text(encoding="utf-8"),
        f"__BRYTHON__.use_VFS = true; __BRYTHON__.update_VFS({json.dumps(needed(library, MODULES))});",
        (BOOK / "python" / "worker.js").read_text(encoding="utf-8"),
    )
    return f"dpforestPython({json.dumps(chr(10).join(source), ensure_ascii=False)});\n"


# -- as a notebook ----------------------------------------------------------------------------------------------------


def notebook(chapter: str) -> dict[str, Any]:
    """The exercises of a chapter: what is asked, the stub, its check, and the solution, folded."""
    text = (BOOK / f"{chapter}.md").read_text(encoding="utf-8")
    title = re.search(r"^# (.*)$", text, re.M)
    section = re.split(r"\n## ", text.partition("\n## Exercises\n")[2])[0]
    cells = [
        _cell(
            "markdown",
            "about",
            f"# Exercises: {title[1] if title else chapter}\n\nFill in a cell that ends in `...`, run it, and run the "
            f"check below it, which is silent if the answer is right. Solutions are folded. {LEGEND}.",
        )
    ]
    starts = [*(found.start() for found in _TITLE.finditer(section)), len(section)]
    for number, (start, end) in enumerate(pairwise(starts), start=1):
        piece = section[start:end]
        cells.append(_cell("markdown", f"exercise-{number}", _plain(_FENCE.sub("", piece))))
        for _, kind, title_, inside in _FENCE.findall(piece):
            if kind == "code-block":
                cells.append(_cell("code", f"stub-{number}", _code(inside)))
            elif title_ == "Check":
                cells.append(_cell("code", f"check-{number}", _code(_FENCE.findall(inside)[0][3])))
            else:
                said = _FENCE.sub(lambda block: f"```python\n{_code(block[4])}\n```", inside)
                folded = f"<details><summary>Solution</summary>\n\n{_plain(said)}\n\n</details>"
                cells.append(_cell("markdown", f"solution-{number}", folded))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, name: str, text: str) -> dict[str, Any]:
    cell = {"cell_type": kind, "id": name, "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _code(block: str) -> str:
    """A block of code without its options."""
    return re.sub(r"\A(?::\w+:.*\n)+\n?", "", block).rstrip()


def _plain(text: str) -> str:
    """Prose as a notebook reads it: references by their names, the book's macros written out."""

    def role(found: re.Match[str]) -> str:
        kind, words, target = found.groups()
        if kind.startswith("glue"):
            return "the number on the chapter's page"
        return words.strip() if words else f"`{target.strip().lstrip('~')}`"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)  # code stays as it is
    for place in range(0, len(parts), 2):
        parts[place] = _ROLE.sub(role, parts[place])
        for name, meaning in _macros().items():
            parts[place] = re.sub(rf"\\{name}(?![A-Za-z])", lambda _, m=meaning: m, parts[place])  # type: ignore[misc]
    return "".join(parts)


@cache
def _macros() -> dict[str, str]:
    """The book's macros, which each piece of prose asks for."""
    config = yaml.safe_load((BOOK.parent / "_config.yml").read_text(encoding="utf-8"))
    return config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]


def chapters() -> list[str]:
    """The chapters that have exercises with code."""
    return [path.stem for path in sorted(BOOK.glob("*.md")) if ":name: exercise-" in path.read_text(encoding="utf-8")]


def as_files() -> dict[str, bytes]:
    """The notebooks by the names of their files."""
    return {
        f"{chapter}.ipynb": (json.dumps(notebook(chapter), indent=1, ensure_ascii=False) + "\n").encode()
        for chapter in chapters()
    }


def _finish(app: Sphinx, error: Exception | None) -> None:
    """Write what pages ask for after a click."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    (out / PYTHON).parent.mkdir(parents=True, exist_ok=True)
    (out / PYTHON).write_text(python(), encoding="utf-8")
    (out / PYTHON).with_name("LICENSE").write_bytes((BOOK / "python" / "LICENSE").read_bytes())
    (out / NOTEBOOKS).mkdir(parents=True, exist_ok=True)
    for name, text in as_files().items():
        (out / NOTEBOOKS / name).write_bytes(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", _mark)
    app.connect("html-page-context", _load)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
