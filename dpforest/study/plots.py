"""One look for every figure of the book: safe for colour-blind readers, legible on a phone, turned over in dark mode.

Colours are never alone: each line also has its marker and dash. A figure is 4.8 inches wide, so that its 11-point text
is about 11 pixels high on a screen 390 pixels wide. Panels are stacked, not set side by side.
"""

from __future__ import annotations

import io
import logging
import re
import sys
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np

from dpforest.messages import shown
from dpforest.study import figures, glue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["DASHES", "MARKERS", "PALETTE", "STYLE", "figure", "log_ticks", "show", "table", "use"]

# Okabe and Ito's eight colours without yellow, which is too faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
WIDTH = 4.8

STYLE: Any = {
    "figure.figsize": (WIDTH, 3.4),
    "figure.dpi": 200,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
    "savefig.dpi": 200,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "image.cmap": "cividis",
}


def use() -> None:
    """Make this style Matplotlib's default for the rest of the session; call it once, at the head of a notebook.

    In a notebook, figures then carry their data (:mod:`dpforest.study.figures`).
    """
    # which fonts a machine has, and that a first plot looks for them, is no output of a notebook
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    import matplotlib as mpl
    from cycler import cycler

    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
        shell.display_formatter.mimebundle_formatter.for_type_by_name("matplotlib.figure", "Figure", _bundle)

    mpl.rcParams.update(STYLE)
    mpl.rcParams["axes.prop_cycle"] = cycler(color=PALETTE) + cycler(marker=MARKERS) + cycler(linestyle=DASHES)


def figure(panels: int = 1, height: float = 3.2, *, sharex: bool = False) -> tuple[Figure, Any]:
    """Return a figure of panels stacked one below the other.

    Parameters
    ----------
    panels : int, default 1
        How many panels, at least 1.
    height : float, default 3.2
        Height of each panel, in inches.
    sharex : bool, default False
        Whether the panels share their horizontal axis.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes or ndarray of shape (panels,)
        A single Axes where there is one panel.
    """
    import matplotlib.pyplot as plt

    if panels < 1:
        raise ValueError(f"a figure has at least one panel; got panels={shown(panels)}")
    use()
    made, axes = plt.subplots(panels, 1, figsize=(WIDTH, height * panels), sharex=sharex, squeeze=False)
    column = np.asarray(axes)[:, 0]
    return made, (column[0] if panels == 1 else column)


def log_ticks(axes: Axes, values: Any, axis: str = "x") -> None:
    """Give one axis a logarithmic scale with ticks at the given values only, written as plain numbers.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    values : sequence of float
        Where the ticks stand, all positive (the privacy budgets of an experiment, say).
    axis : {"x", "y"}, default "x"
    """
    values = [float(value) for value in values]
    if axis not in ("x", "y"):
        raise ValueError(f'axis is "x" or "y"; got {shown(axis)}')
    if not values or min(values) <= 0:
        raise ValueError("a logarithmic axis has only positive ticks, and at least one")
    set_scale, set_ticks = (axes.set_xscale, axes.set_xticks) if axis == "x" else (axes.set_yscale, axes.set_yticks)
    set_scale("log")
    set_ticks(values, labels=[f"{value:g}" for value in values])
    set_ticks([], minor=True)


def show(made: Figure, alt: str, key: str | None = None) -> None:
    """Show a figure in a notebook, and hand it to the chapters together with the words for those who cannot see it.

    Parameters
    ----------
    made : Figure
        It is drawn in 64 colours, which keeps a page small, and closed.
    alt : str
        What the figure shows, for a reader who cannot see it.
    key : str, optional
        Name under which a chapter may show it, with ``glue:any``.
    """
    import matplotlib.pyplot as plt
    import PIL.Image
    from IPython.display import HTML, display

    described = figures.describe(made)
    full, png = io.BytesIO(), io.BytesIO()
    made.savefig(full, format="png", dpi=180)
    plt.close(made)
    PIL.Image.open(full).convert("RGB").quantize(64, dither=PIL.Image.Dither.NONE).save(png, "PNG", optimize=True)
    source = b64encode(png.getvalue()).decode()
    if key:
        glue(key, HTML(f'<img alt="{alt}" src="data:image/png;base64,{source}">'), display=False)
    display({"image/png": source, "text/plain": alt}, metadata={figures.KEY: described}, raw=True)


def _bundle(made: Figure, **_: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return the content and the metadata that a figure shown without :func:`show` has in addition to its image."""
    return {}, {figures.KEY: figures.describe(made)}


def table(rows: Any, key: str | None = None) -> Any:
    """Rows (anything that makes a DataFrame) as a table that scrolls in its own box on a narrow screen.

    Returns an object that a notebook shows; ``key`` names it for the chapters, as in :func:`show`.
    """
    import pandas as pd
    from IPython.display import HTML

    html = pd.DataFrame(rows).fillna("").to_html(index=False, border=0)
    html = re.sub(r"(<tr[^>]*>\s*<t[dh])", r'\1 style="text-align: left"', html)
    framed = HTML(f'<div style="overflow-x: auto; margin-bottom: 1rem">{html}</div>')
    if key:
        glue(key, framed, display=False)
    return framed
