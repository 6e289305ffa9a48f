"""The picture that is shown where a page is shared: the mark of the book, the title of the page, and its book."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

SIZE = 1200, 630  # pixels, as those who show it ask for
_MARGIN, _LINES = 80, 4
_BLUE, _ORANGE, _INK, _PAPER, _GREY = "#0072b2", "#e69f00", "#1a1a1a", "#ffffff", "#5a5a5a"
_FACE = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")


@cache
def _letters() -> frozenset[int]:
    with TTFont(_FACE) as face:
        return frozenset(face.getBestCmap())


def _wrapped(words: list[str], font: ImageFont.FreeTypeFont) -> list[str]:
    """A title in lines that fit."""
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= SIZE[0] - 2 * _MARGIN or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _mark(draw: ImageDraw.ImageDraw, left: int, top: int, unit: int) -> None:
    """The mark of the book (``_static/mark.svg``)."""
    at = lambda x, y: (left + x * unit, top + y * unit)  # noqa: E731
    left_half = ((16, 7), (7, 18)), ((7, 18), (4, 26)), ((7, 18), (11, 26))
    right_half = ((16, 7), (25, 18)), ((25, 18), (21, 26)), ((25, 18), (28, 26))
    for start, end in left_half + right_half:
        draw.line([at(*start), at(*end)], fill=_BLUE, width=2 * unit)
    for x, y, radius, colour in ((16, 6, 4, _BLUE), (7, 18, 3, _BLUE), (25, 18, 3, _ORANGE)):
        draw.ellipse([at(x - radius, y - radius), at(x + radius, y + radius)], fill=colour)
    for start in range(0, 360, 40):
        draw.arc([at(26 - 4.5, 17 - 4.5), at(26 + 4.5, 17 + 4.5)], start, start + 20, fill=_ORANGE, width=unit)


def write(target: Path, title: str, book: str) -> None:
    """Draw the card of a page.

    Parameters
    ----------
    target : Path
        A file of PNG.
    title, book : str
        Of a title with letters that the face has not, such as Chinese ones, the book's own takes the place.
    """
    if not title or {ord(letter) for letter in title} - _letters():
        title = book
    image = Image.new("RGB", SIZE, _PAPER)
    draw = ImageDraw.Draw(image)
    _mark(draw, _MARGIN - 15, _MARGIN - 15, 5)
    for size in (76, 64, 52, 44):  # the last one if none fits
        font = ImageFont.truetype(_FACE, size)
        lines = _wrapped(title.split(), font)
        if len(lines) * size <= 260:
            break
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], f"{lines[_LINES - 1]} …"]
    draw.multiline_text((_MARGIN, 250), "\n".join(lines), font=font, fill=_INK, spacing=size // 4)
    draw.line([(_MARGIN, 535), (SIZE[0] - _MARGIN, 535)], fill=_BLUE, width=3)
    if title != book:
        draw.text((_MARGIN, 552), book, font=ImageFont.truetype(_FACE, 28), fill=_GREY)
    target.parent.mkdir(parents=True, exist_ok=True)
    image.quantize(64).save(target, optimize=True)
