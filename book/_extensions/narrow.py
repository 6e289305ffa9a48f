"""Python in the book is at most 88 columns wide: what is wider is laid out again, for the page alone.

The sources stay as they are, at 120 columns; docstrings, comments and long texts in them are not broken.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

WIDTH = 88
PYTHON = {"python", "python3", "ipython", "ipython3"}
#: A word to the formatter, which says nothing to a reader.
_WORD = re.compile(r"[ \t]*# fmt: (skip|on|off)$", re.MULTILINE)
_FORMAT = ["-m", "ruff", "format", "--isolated", "--quiet", "--line-length", str(WIDTH)]


def laid_out(codes: list[str]) -> list[str]:
    """The programs as the formatter writes them; one that it cannot read is left as it is."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"code{number}.py" for number in range(len(codes))]
        for path, code in zip(paths, codes, strict=True):
            path.write_text(_WORD.sub("", code), encoding="utf-8")
        subprocess.run([sys.executable, *_FORMAT, folder], check=False, capture_output=True)
        return [path.read_text(encoding="utf-8").rstrip("\n") for path in paths]


def _narrow(app: Sphinx, doctree: nodes.document) -> None:
    wide = [
        block
        for block in doctree.findall(nodes.literal_block)
        if (block.get("language") in PYTHON or str(block.get("source")).endswith(".py"))
        and not block.get("highlight_args", {}).get("hl_lines")
        and max(map(len, block.astext().splitlines()), default=0) > WIDTH
    ]
    if not wide:
        return
    for block, code in zip(wide, laid_out([block.astext() for block in wide]), strict=True):
        block.rawsource = code  # highlighted only if it is what the block holds
        block[:] = [nodes.Text(code)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", _narrow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
