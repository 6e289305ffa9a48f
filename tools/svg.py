"""A few marks of SVG, as text, for ``tools/pictures.py``: ink is the page's own, colours are classes of custom.css."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Picture:
    """A picture 360 units wide, about a phone's width, so that text keeps its size there.

    Parameters
    ----------
    height : int
    words : str
        What is drawn, for who cannot see it.
    """

    WIDTH = 360

    def __init__(self, height: int, words: str) -> None:
        self._head = f'<svg class="picture" viewBox="0 0 {self.WIDTH} {height}" role="img" aria-label="{_safe(words)}">'
        self._marks: list[str] = []

    def text(self, x: float, y: float, words: object, kind: str = "") -> None:
        self._mark("text", kind, f"{_safe(str(words))}</text>", x=x, y=y)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "") -> None:
        self._mark("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, kind: str = "") -> None:
        """A line with a head at its second end."""
        self.line(x1, y1, x2, y2, kind)
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = 6 * (x2 - x1) / length, 6 * (y2 - y1) / length
        ends = [(x2 - dx - dy / 2, y2 - dy + dx / 2), (x2, y2), (x2 - dx + dy / 2, y2 - dy - dx / 2)]
        self.path(ends, kind.replace("dashed", ""))

    def path(self, points: Iterable[tuple[float, float]], kind: str = "") -> None:
        self._mark("path", kind, d="M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points))

    def rect(self, x: float, y: float, width: float, height: float, kind: str = "", rx: float = 0) -> None:
        self._mark("rect", kind, x=x, y=y, width=width, height=height, **({"rx": rx} if rx else {}))

    def circle(self, cx: float, cy: float, r: float, kind: str = "") -> None:
        self._mark("circle", kind, cx=cx, cy=cy, r=r)

    def svg(self) -> str:
        return "\n".join([self._head, *self._marks, "</svg>"]) + "\n"

    def _mark(self, name: str, kind: str, inside: str = "", **where: object) -> None:
        places = "".join(
            f' {key}="{value if isinstance(value, str) else _number(value)}"' for key, value in where.items()
        )
        if kind := kind.strip():
            places += f' class="{kind}"'
        self._marks.append(f"<{name}{places}>{inside}" if inside else f"<{name}{places}/>")


def _safe(words: str) -> str:
    return html.escape(words, quote=True).replace("-", "−") if words.lstrip("-").isdigit() else html.escape(words)


def _number(value: float) -> str:
    return f"{round(float(value), 2):g}"
