"""The pages of runs are laid out before Sphinx looks for them, so that no other command has to come first.

What is shown is what `notebooks/render.py --show` shows: renderings of record.  Nothing is run.  A page that is not as
its notebook is now says so, and so does one warning.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.logging import getLogger

ROOT = Path(__file__).resolve().parent.parent.parent


def _lay_out(app: Sphinx, config: Config) -> None:
    try:
        render = import_module("render")
        import_module("dpforest.audit")
    except ImportError as error:
        sys.exit(f"the book needs what it is about ({error}): pip install -r requirements.txt")
    (ROOT / "notebooks" / "rendered").mkdir(exist_ok=True)
    try:
        for said in render.show(render.plan()):
            getLogger(__name__).warning(said, type="record")
    except render.RenderError as error:
        sys.exit(str(error))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; the library that is documented is the one beside the book, installed or not."""
    sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]
    app.connect("config-inited", _lay_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
