"""Experiments and pictures: programs of the library's users, which nothing else in it needs."""

from __future__ import annotations

import sys
from typing import Any


def glue(name: str, variable: Any, display: bool = True) -> None:
    """A value of a notebook that the book's chapters quote by name.

    The outputs are those of ``myst_nb.glue``, which need not be installed: a notebook runs wherever the library does.
    Outside of a notebook nothing happens.

    Parameters
    ----------
    name : str
        What a chapter quotes it by; unique in the notebook.
    variable : object
        What is kept is what the notebook would show of it, not the object itself.
    display : bool, default True
        Show it in the notebook, too.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    from IPython.display import display as put

    shown, metadata = shell.display_formatter.format(variable)
    prefix = "" if display else "application/papermill.record/"
    metadata["scrapbook"] = {"name": name, "mime_prefix": prefix}
    put({prefix + kind: value for kind, value in shown.items()}, raw=True, metadata=metadata)
