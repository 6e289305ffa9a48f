"""Figures that notebooks drew, with Chinese words: the same picture, and a Chinese word over each English one.

A picture does not say where its words are, so each is drawn again, as Matplotlib draws it, and looked for.  Which words
there are is in the description that travels with the picture (:mod:`dpforest.study.figures`).
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape, unescape
from pathlib import Path

import numpy as np

#: The resolution of a figure in dots an inch, and the sizes of its words in points (dpforest.study.plots).
DPI, SIZES = 180, (11, 10, 9, 8)
#: A word is where at most this part of its ink differs; words that are not there differ in twice as much.
UNLIKE = 0.45
#: Where so little differs of a text that is not short, no other size is tried.
SURE = 0.2
#: Pixels around a word that are covered with it.
MARGIN = 1
#: Where a text is fixed, by what it is in the figure; others begin where the English ones do.
ANCHORS = {"x": "middle", "y": "middle", "x ticks": "middle", "y ticks": "end"}
_LINE = re.compile(r"(figure|panel|[xy](?: ticks)?|words|line|points|area|patch|colours)( \d+)?:? (.+)")
_PICTURE = re.compile(r'<img alt="([^"]*)" src="data:image/png;base64,([^"]*)">')


@dataclass(frozen=True)
class Place:
    """Where a text is in a picture: all of it or a line, what it is there, its box in pixels, its size in points."""

    text: str
    whole: str
    role: str
    left: int
    top: int
    width: int
    height: int
    size: float


def texts(described: str) -> Counter[tuple[str, str]]:
    """What the texts of a figure are there, and each text, with how often; labels of lines, which none may show, 0."""
    found: Counter[tuple[str, str]] = Counter()
    for match in filter(None, map(_LINE.fullmatch, described.splitlines())):
        role, _, said = match.groups()
        if role in ("x", "y"):
            said = said.rpartition(";")[0]
        elif role.endswith("ticks"):
            said = said.rpartition(" at ")[0]
        elif role not in ("figure", "panel", "words"):
            role, said = "label", said.rpartition(":")[0]
        for text in said.split(" | "):
            if text not in ("", "-", "None"):  # None: what has no label
                found[role, text] += role != "label"
    return found


def places(picture: bytes, said: Counter[tuple[str, str]]) -> list[Place]:
    """Where texts are in a picture; of two that would overlap, the one that agrees with it in more."""
    from PIL import Image
    from scipy import fft

    page = (np.asarray(Image.open(io.BytesIO(picture)).convert("L")) < 128).astype(np.float32)
    shape = [fft.next_fast_len(length, real=True) for length in page.shape]
    seen = fft.rfft2(page, shape)
    found: list[tuple[float, Place]] = []

    def look(text: str, whole: str, role: str) -> tuple[float, list[tuple[float, Place]]]:
        """What part of a text's ink differs where least does, and each place with how many more pixels agree."""
        best, here = 1.0, []
        for size in SIZES:
            drawn = _ink(text, size, role == "y")
            (height, width), ink = drawn.shape, float(drawn.sum())
            rest = page.shape[0] - height + 1, page.shape[1] - width + 1
            if min(rest) < 1:
                continue
            # How many pixels differ: those of the text that the page lacks, and those that it has beside them.
            unlike = ink + fft.irfft2(seen * np.conj(fft.rfft2(1 - 2 * drawn, shape)), shape)[: rest[0], : rest[1]]
            if float(unlike.min()) / ink >= best:
                continue
            best, here = float(unlike.min()) / ink, []
            while (least := float(unlike.min())) < UNLIKE * ink:
                top, left = (int(at) for at in np.unravel_index(unlike.argmin(), unlike.shape))
                here.append((ink - 2 * least, Place(text, whole, role, left, top, width, height, size)))
                unlike[max(0, top - height // 2) : top + height, max(0, left - width // 2) : left + width] = ink
            if best < SURE and len(text) > 4:
                break
        return best, here

    for role, text in said:
        best, here = look(text, text, role)
        blanks = [at for at, sign in enumerate(text) if sign == " "] if best > SURE and role == "panel" else []
        for blank in blanks:  # a title may be of two lines
            (one, above), (other, below) = (look(line, text, role) for line in (text[:blank], text[blank + 1 :]))
            if max(one, other) < best:
                pairs = [(a, b) for a in above for b in below if _next(a[1], b[1])]
                best, here = (max(one, other), list(sum(pairs, ()))) if pairs else (best, here)
        found.extend(here if best < UNLIKE else [])
    taken = np.zeros(page.shape, dtype=bool)
    kept = []
    for _, place in sorted(found, key=lambda each: (-each[0], each[1].role == "label")):
        box = np.s_[place.top : place.top + place.height, place.left : place.left + place.width]
        if not taken[box].any():
            taken[box] = True
            kept.append(place)
    return kept


def _next(line: Place, other: Place) -> bool:
    """Whether a line begins below another."""
    return abs(other.left - line.left) < 5 and line.height / 2 < other.top - line.top < 3 * line.height


@cache
def _ink(text: str, size: float, upward: bool) -> np.ndarray:
    """The pixels of a text as Matplotlib draws it, each 0 or 1."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 0.5), dpi=DPI)
    canvas = FigureCanvasAgg(figure)
    figure.text(0.02, 0.5, text, fontsize=size, family="DejaVu Sans", va="center", parse_math=False)
    canvas.draw()
    ink = np.asarray(canvas.buffer_rgba())[..., 0] < 128
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return (np.rot90(ink) if upward else ink).astype(np.float32)


def covered(place: Place) -> tuple[int, int, int, int]:
    """The box that hides an English text: left, top, width, height."""
    return place.left - MARGIN, place.top - MARGIN, place.width + 2 * MARGIN, place.height + 2 * MARGIN


def laid_over(found: list[Place], size: tuple[int, int], worded: Callable[[str], str]) -> str:
    """The drawing that lies on a picture of a size in pixels: texts in other words, each where it was."""
    marks = []
    for place in sorted(found, key=lambda each: (each.top, each.left)):
        if (said := worded(place.text)) == place.text:
            continue
        left, top, width, height = covered(place)
        marks.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}"/>')
        anchor = ANCHORS.get(place.role, "start")
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        x, y = place.left + share * place.width, place.top + place.height / 2
        # The middle of the Chinese text is put where that of the English one was: fonts differ in height.
        how = f' transform="rotate(-90 {x:g} {y:g})"' if place.role == "y" else ""
        how += f' dy=".36em" font-size="{place.size * DPI / 72:g}" text-anchor="{anchor}"'
        marks.append(f'<text x="{x:g}" y="{y:g}"{how}>{escape(said)}</text>')
    return f'<svg class="relabelled" viewBox="0 0 {size[0]} {size[1]}" aria-hidden="true">{"".join(marks)}</svg>'


def pictures(notebook: Path) -> dict[str, str]:
    """The description of each figure of a notebook, by its picture."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    found = {}
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        described = output.get("metadata", {}).get("dpforest.figure")
        if described and (source := output.get("data", {}).get("image/png")):
            found["".join(source).strip()] = described
    return found


def relabelled(code: str, described: dict[str, str], worded: Callable[[str], str]) -> str:
    """A figure as a chapter shows it, with other words."""
    from PIL import Image

    def figure(match: re.Match[str]) -> str:
        alt, source = worded(unescape(match[1])), match[2]
        said = {each: times for each, times in texts(described.get(source, "")).items() if worded(each[1]) != each[1]}
        picture = base64.b64decode(source)
        drawn = laid_over(places(picture, Counter(said)), Image.open(io.BytesIO(picture)).size, worded)
        image = f'<img alt="{escape(alt)}" src="data:image/png;base64,{source}">'
        return f'<div class="relabelled">{image}{drawn}</div>'

    return _PICTURE.sub(figure, code)
