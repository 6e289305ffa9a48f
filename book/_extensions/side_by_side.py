"""Pages are written side by side, a process for each processor; Jupyter Book has no option for that.

They are read one after the other, for one extension of the theme does not say that it may be otherwise.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.parallel import ParallelTasks, parallel_available

_PROCESSES = os.cpu_count() or 1
_TOGETHER = 12  # pages of sources or evidence that a process writes at a time


def _write_side_by_side(app: Sphinx, env: BuildEnvironment) -> None:
    # one more than processes that write: the main one resolves the pages, and hands them out
    app.parallel = 1 + _PROCESSES
    builder: Any = app.builder
    if parallel_available and app.builder.allow_parallel and hasattr(builder, "gen_pages_from_extensions"):
        builder.gen_pages_from_extensions = lambda: _write_what_extensions_make(builder)


def _write_what_extensions_make(builder: Any) -> None:
    """The pages that are no chapters, as Sphinx writes them, but for the processes."""

    def write(pages: list[tuple[str, dict, str]]) -> None:
        for page in pages:
            builder.handle_page(*page)

    tasks = ParallelTasks(_PROCESSES)
    for pages in map(iter, builder.events.emit("html-collect-pages")):
        while some := list(islice(pages, _TOGETHER)):
            tasks.add_task(write, some)
    tasks.join()


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-check-consistency", _write_side_by_side)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
