"""The page of a model card, in Markdown or in HTML."""

from __future__ import annotations

import html
import re

from dpforest.messages import plain, shown
from dpforest.privacy import Guarantee, Ledger
from dpforest.schema import Prefix, Schema

__all__ = ["write_card"]

_LISTED = 6  # values of a group that are shown

FORMATS = ("markdown", "html")


def write_card(
    name: str,
    size: str,
    schema: Schema,
    guarantee: Guarantee,
    ledger: Ledger | None,
    *,
    purpose: str | None = None,
    data: str | None = None,
    contact: str | None = None,
    notes: str | None = None,
    test: object = None,
    format: str = "markdown",
) -> str:
    """The page of :func:`dpforest.inspect.card`, from what a model is called, how large it is, and what it promises."""
    if format not in FORMATS:
        raise ValueError(f"format must be one of {FORMATS}, not {shown(format)}")
    added = {"What it is for": purpose, "The records": data, "Who answers for it": contact, "Notes": notes}
    for heading, words in added.items():
        if words is not None and not isinstance(words, str):
            raise TypeError(f"{shown(heading.lower())} must be text, not {type(words).__name__}")
    if test is not None and not isinstance(getattr(test, "guarantee", None), Guarantee):
        raise TypeError(
            "test must be what dpforest.evaluation.evaluate returns, with a guarantee of its own, not "
            f"{type(test).__name__}: a score without noise is not for release"
        )
    page = _Markdown() if format == "markdown" else _Html()
    page.heading(1, f"Model card: {name}")
    page.text(_kind(schema))
    for heading, words in list(added.items())[:3]:
        page.heading(2, heading)
        page.text(words if words and words.strip() else "Not stated yet.")
    page.heading(2, "What is promised")
    for paragraph in guarantee.explain().split("\n\n"):
        page.text(paragraph)
    page.heading(2, "What it was charged for")
    if ledger is not None:
        page.text("Each query to the records and its price, as the ledger of the fit has it.")
        page.code(str(ledger))
    else:
        page.text("A saved model has no ledger. Who fitted it can make this card from the fitted estimator.")
    page.heading(2, "What was public before the records")
    page.table(["column", "kind", "values"], _columns(schema))
    page.text(_answers(schema))
    page.text("Missing values have a code of their own." if schema.missing == "bin" else "Missing values are refused.")
    if test is not None:
        page.heading(2, "How good it is")
        page.code(str(test))
    page.heading(2, "Its size")
    page.text(size)
    page.heading(2, "Notes")
    page.text(notes if notes and notes.strip() else "None.")
    return page.page()


def _kind(schema: Schema) -> str:
    what = "classes" if schema.classes is not None else "a number"
    return f"Predicts {what} from {schema.n_features} columns."


def _columns(schema: Schema) -> list[list[str]]:
    rows = []
    for name in schema.columns:
        if name in schema.numeric:
            low, high = schema.numeric[name]
            kind = "whole number" if name in schema.whole else "number"
            rows.append([name, kind, f"{low} to {high}; beyond is taken for the bound"])
        else:
            other = f"; undeclared ones are taken for {schema.other[name]!r}" if name in schema.other else ""
            listed = schema.groups.get(name)
            said = [
                repr(category) + (f" ({_members(listed[code])})" if listed else "")
                for code, category in enumerate(schema.categorical[name])
            ]
            rows.append([name, "group" if listed else "category", ", ".join(said) + other])
    return rows


def _members(values: list) -> str:
    """What a group lists, in words."""
    said = [f"{value.text}..." if isinstance(value, Prefix) else str(value) for value in values[:_LISTED]]
    more = len(values) - len(said)
    return ", ".join(said + [f"and {more} more"] * (more > 0)) or "what no group lists"


def _answers(schema: Schema) -> str:
    if schema.classes is not None:
        return f"Classes: {', '.join(map(repr, schema.classes.tolist()))}."
    assert schema.target is not None
    low, high = schema.target
    return f"The target lies between {low} and {high}."


class _Markdown:
    """A page in Markdown (CommonMark with tables)."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def heading(self, level: int, words: str) -> None:
        self.parts.append(f"{'#' * level} {self._escaped(words)}")

    def text(self, words: str) -> None:
        self.parts += [self._escaped(part) for part in re.split(r"\s*\n\s*\n\s*", words.strip())]

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        lines = [head, ["---"] * len(head), *([self._escaped(cell) for cell in row] for row in rows)]
        self.parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))

    def code(self, words: str) -> None:
        self.parts.append("\n".join(f"    {plain(line)}" for line in words.splitlines()))

    def page(self) -> str:
        return "\n\n".join(self.parts) + "\n"

    @staticmethod
    def _escaped(words: str) -> str:
        line = html.escape(plain(" ".join(words.split())), quote=False)
        line = re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", line)
        return re.sub(r"^([-+#=]|\d+(?=[.)]))", r"\\\1" if not line[:1].isdigit() else r"\1\\", line)


class _Html:
    """A page in HTML, complete, which loads nothing."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def heading(self, level: int, words: str) -> None:
        self.parts.append(f"<h{level}>{self._escaped(words)}</h{level}>")

    def text(self, words: str) -> None:
        self.parts += [f"<p>{self._escaped(part)}</p>" for part in re.split(r"\s*\n\s*\n\s*", words.strip())]

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        cells = [("th", head), *(("td", row) for row in rows)]
        lines = ["".join(f"<{tag}>{self._escaped(cell)}</{tag}>" for cell in row) for tag, row in cells]
        self.parts.append("<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>")

    def code(self, words: str) -> None:
        self.parts.append(f"<pre>{html.escape(words)}</pre>")

    def page(self) -> str:
        style = (
            ":root{color-scheme:light dark}body{font:1rem/1.5 sans-serif;max-width:45rem;margin:auto;padding:1rem}"
            "pre,table{display:block;overflow-x:auto}td,th{text-align:left;padding:.2rem .8rem .2rem 0}"
        )
        head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{style}</style>'
        body = "\n".join(self.parts)
        top = f'<!doctype html>\n<html lang="en">\n<head>{head}<title>Model card</title></head>'
        return f"{top}\n<body>\n{body}\n</body>\n</html>\n"

    @staticmethod
    def _escaped(words: str) -> str:
        return html.escape(plain(" ".join(words.split())))
