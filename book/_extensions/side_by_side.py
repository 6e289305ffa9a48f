"""Pages are written side by side, a process for each processor; Jupyter Book has no option for that.

They are read one after the other, for one extension of the theme does not say that it may be otherwise.
"""

from __future__ import annotations

import os

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def _write_side_by_side(app: Sphinx, env: BuildEnvironment) -> None:
    # one more than processes that write: the main one resolves the pages, and hands them out
    app.parallel = 1 + (os.cpu_count() or 1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-check-consistency", _write_side_by_side)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
