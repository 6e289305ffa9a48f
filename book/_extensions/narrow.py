"""Python in the book is at most 88 columns wide: what is wider is laid out again, for the page alone.

The sources stay as they are, at 120 columns.  The formatter breaks code; comments and docstrings are filled here; long
texts that the program uses are not broken.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tempfile
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

WIDTH = 88
PYTHON = {"python", "python3", "ipython", "ipython3"}
#: A line that ends before this column, with room for the next word, was broken on purpose: it is not filled up.
_FULL = 104
#: A word to the formatter, which says nothing to a reader.
_WORD = re.compile(r"[ \t]*# fmt: (skip|on|off)$", re.MULTILINE)
#: Words to a checker: they belong to their line.
_MARK = re.compile(r"#\s*(noqa|type:|pragma:|pyright:|mypy:)")
#: How a line begins that is an item of a list, an example or a rule: what follows does not belong to the line before.
_ITEM = re.compile(r"[-*+] |\d+[.)] |:\w|\.\. |>>> |\.\.\. |[=\-~^]{3,}|\|")
_EXAMPLE = re.compile(r"\s*(>>> |\.\.\. |\.\. |[=\-~^|+]{3,})")
#: A line that parts a file.
_RULE = re.compile(r"\s*# -.*----$")
_EXAMPLES = ["format.docstring-code-format=true", "format.docstring-code-line-length='dynamic'"]
_FORMAT = ["-m", "ruff", "format", "--isolated", "--quiet", f"--config=line-length={WIDTH}"]
_FORMAT += [f"--config={option}" for option in _EXAMPLES]


def laid_out(codes: list[str]) -> list[str]:
    """The programs as the formatter writes them, comments filled; one that it cannot read is left as it is."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"code{number}.py" for number in range(len(codes))]
        for path, code in zip(paths, codes, strict=True):
            path.write_text(parted(filled(_WORD.sub("", code))), encoding="utf-8")
        subprocess.run([sys.executable, *_FORMAT, folder], check=False, capture_output=True)
        return [filled(path.read_text(encoding="utf-8").rstrip("\n")) for path in paths]


def widest(code: str) -> int:
    """The length of the longest line."""
    return max(map(len, code.splitlines()), default=0)


def filled(code: str) -> str:
    """The program with its comments and docstrings broken at the width."""
    if widest(code) <= WIDTH:
        return code
    try:
        told, comments, _ = _texts(code)
    except (SyntaxError, tokenize.TokenError):
        return code
    out: list[str] = []
    lines = code.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        if number in told:
            last = told[number]
            out += _fill(lines[number : last + 1], "")
            number = last + 1
        elif comments.get(number) == len(line) - len(line.lstrip()):
            last, mark = number, _mark(line)
            while comments.get(last + 1) == comments[number] and _mark(lines[last + 1]) == mark:
                last += 1
            out += _fill(lines[number : last + 1], mark)
            number = last + 1
        else:
            out.append(line)
            number += 1
    return "\n".join(out)


def parted(code: str) -> str:
    """The program with each comment that makes its line too long above that line."""
    try:
        _, comments, inside = _texts(code)
    except (SyntaxError, tokenize.TokenError):
        return code
    out = []
    for number, line in enumerate(code.splitlines()):
        at = comments.get(number, 0)
        bare = line[:at].rstrip()
        if len(line) <= WIDTH or not bare or number in inside or _MARK.match(line, at):
            out.append(line)
        else:
            indent = line[: len(line) - len(line.lstrip())]
            out += [*_fill([indent + line[at:]], _mark(line[at:])), bare]
    return "\n".join(out)


def _texts(code: str) -> tuple[dict[int, int], dict[int, int], set[int]]:
    """Docstrings by first and last line, comments by line and column, and lines that begin inside of a text."""
    lines = code.splitlines()
    told = {}
    for node in _told(ast.parse(code)):
        if isinstance(node, ast.Constant) and re.match(r'\s*[rR]?"""', lines[node.lineno - 1]):
            told[node.lineno - 1] = (node.end_lineno or node.lineno) - 1
    comments, inside = {}, set()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0] - 1] = token.start[1]
        inside.update(range(token.start[0], token.end[0]))  # from the line behind the first on
    return told, comments, inside


def _told(program: ast.Module) -> Iterator[ast.expr]:
    """Texts for readers: docstrings, and those in what a class says of its parameters or a module of its objects."""
    for node in ast.walk(program):
        if isinstance(node, ast.Expr):
            yield node.value
        elif isinstance(node, ast.AnnAssign):
            yield from (part for part in ast.walk(node.annotation) if isinstance(part, ast.Constant))
    for node in program.body:
        if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Call):
            yield from [*node.value.args, *(word.value for word in node.value.keywords)]


def _mark(line: str) -> str:
    """How a comment begins."""
    return "#: " if line.lstrip().startswith("#: ") else "# "


def _fill(lines: list[str], mark: str) -> list[str]:
    """Lines of prose, `mark` before each, none longer than the width where that can be."""
    if max(map(len, lines)) <= WIDTH:
        return lines
    out: list[str] = []
    paragraph: list[str] = []
    hanging = ""

    def close() -> None:
        nonlocal paragraph
        if not paragraph:
            return
        if _RULE.match(paragraph[0]):
            out.extend(line[:WIDTH] for line in paragraph)
        elif max(map(len, paragraph)) <= WIDTH or (not mark and _EXAMPLE.match(paragraph[0])):
            out.extend(paragraph)
        else:
            first = paragraph[0]
            start = first[: len(first) - len(first.lstrip())] + mark
            words = " ".join(
                [first[len(start) :], *(line.lstrip().removeprefix(mark).lstrip() for line in paragraph[1:])]
            )
            out.extend(
                textwrap.wrap(
                    words,
                    WIDTH,
                    initial_indent=start,
                    subsequent_indent=hanging,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
        paragraph = []

    for line in lines:
        bare = line.lstrip()
        text = bare.removeprefix(mark)
        indent = line[: len(line) - len(bare)]
        lead = indent + mark + " " * (len(text) - len(text.lstrip()))
        word = text.split(maxsplit=1)[0] if text.strip() else ""
        full = paragraph and len(paragraph[-1]) + 1 + len(word) > _FULL
        if not full or lead != hanging or not word or word.startswith('"""') or _ITEM.match(text.lstrip()):
            close()
        if not paragraph:
            item = re.match(r"\s*([-*+] |\d+[.)] )", text)
            hanging = indent + mark + " " * len(item[0]) if item else lead
        paragraph.append(line)
    close()
    return out


def narrowed(codes: Iterable[str]) -> list[str]:
    """The programs, without the indentation of all their lines, laid out where they are too wide."""
    codes = [textwrap.dedent(code) for code in codes]
    wide = [number for number, code in enumerate(codes) if widest(code) > WIDTH]
    for number, code in zip(wide, laid_out([codes[number] for number in wide]), strict=True):
        codes[number] = code
    return codes


def _narrow(app: Sphinx, doctree: nodes.document) -> None:
    wide = [
        block
        for block in doctree.findall(nodes.literal_block)
        if (block.get("language") in PYTHON or str(block.get("source")).endswith(".py"))
        and not block.get("highlight_args", {}).get("hl_lines")
        and widest(block.astext()) > WIDTH
    ]
    if not wide:
        return
    for block, code in zip(wide, narrowed(block.astext() for block in wide), strict=True):
        block.rawsource = code  # highlighted only if it is what the block holds
        block[:] = [nodes.Text(code)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", _narrow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
