"""The data of a figure as text: what a reader could read off it, so that two runs are compared by what they show.

The bytes of an image depend on fonts and on the last place of a coordinate; the numbers behind it can be compared as
numbers.  The text travels with the image in the metadata of the output, under :data:`KEY`, which no page shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["KEY", "describe"]

KEY = "dpforest.figure"
#: How many points a figure's text may hold, which keeps it below some 10 KB.
POINTS = 240


def describe(figure: Figure) -> str:
    """Return the data of a figure: for each panel its words, axes, lines, bars, points, areas and images.

    Where a figure has many points, each artist keeps its share of :data:`POINTS`, evenly spaced, and the mean size
    over all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure

    Returns
    -------
    str
        One line for each thing; coordinates have 12 digits.
    """
    panels = [(panel, list(_drawn(panel))) for panel in figure.axes]
    share = max(4, POINTS // max(1, sum(len(drawn) for _, drawn in panels)))
    lines = [f"figure: {_words(figure.get_suptitle())}"]
    for number, (panel, drawn) in enumerate(panels, start=1):
        lines += [f"panel {number}: {_words(panel.get_title('left'), panel.get_title(), panel.get_title('right'))}"]
        lines += _axes(panel)
        for kind, points in drawn:
            lines += _columns(kind, np.asarray(points, dtype=float), share)
    return "\n".join(lines) + "\n"


def _axes(panel: Axes) -> Iterator[str]:
    from matplotlib.ticker import FixedLocator

    for name, axis, limits in (("x", panel.xaxis, panel.get_xlim()), ("y", panel.yaxis, panel.get_ylim())):
        yield f"{name}: {_words(axis.get_label_text())}; {axis.get_scale()} from {_numbers(limits)}"
        if isinstance(axis.get_major_locator(), FixedLocator):  # ticks that Matplotlib chose follow from the limits
            places = [float(place) for place in axis.get_majorticklocs()]
            yield f"{name} ticks: {_words(*axis.get_major_formatter().format_ticks(places))} at {_numbers(places)}"
    legend = panel.get_legend()
    words = [text.get_text() for text in [*(legend.get_texts() if legend else []), *panel.texts]]
    if words:
        yield f"words: {_words(*words)}"


def _drawn(panel: Axes) -> Iterator[tuple[str, Any]]:
    """Yield each thing drawn: its kind and label, and its points, one per row."""
    for line in panel.lines:
        yield f"line {_words(line.get_label())}", line.get_xydata()
    for many in panel.collections:
        label = _words(many.get_label())
        if (values := many.get_array()) is not None:
            yield f"colours {label}", np.ma.filled(np.ma.asarray(values, dtype=float), math.nan).reshape(-1, 1)
        offsets: Any = np.ma.filled(np.ma.asarray(many.get_offsets(), dtype=float), math.nan)
        if len(offsets) > 1 or offsets.any():
            yield f"points {label}", offsets
        elif paths := [path.vertices for path in many.get_paths()]:
            yield f"area {label}", np.concatenate(paths)
    for patch in panel.patches:
        yield f"patch {_words(patch.get_label())}", patch.get_patch_transform().transform(patch.get_path().vertices)
    for image in panel.images:
        values = np.ma.filled(np.ma.asarray(image.get_array(), dtype=float), math.nan)
        yield f"image {' x '.join(map(str, values.shape))}", values.reshape(-1, 1)


def _columns(kind: str, points: np.ndarray, share: int) -> Iterator[str]:
    kept = np.unique(np.linspace(0, len(points) - 1, min(share, len(points))).round().astype(int))
    yield f"{kind}: {len(points)} points"
    for column in points.T:
        finite = np.abs(column[np.isfinite(column)])
        mean = math.fsum(finite) / max(1, finite.size)
        yield f"  mean size {_numbers([mean])}: {_numbers(column[kept])}"


def _numbers(values: Any) -> str:
    return " ".join(f"{float(value):.12g}" for value in values)


def _words(*texts: object) -> str:
    """Join the words that stand there; Matplotlib's own names of artists without a label begin with an underscore."""
    said = (" ".join(str(text).split()) for text in texts)
    return " | ".join(word for word in said if word and not word.startswith("_")) or "-"
