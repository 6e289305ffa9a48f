"""Plain words: prose has the field's noun in place of an everyday word; quotations, code, formulas and ids are free."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: The rooms whose prose is read; in a notebook, its Markdown.
ROOMS = ("book/**/*.md", "README.md", "CONTRIBUTING.md", "notebooks/*.ipynb")
FILES = sorted({path for room in ROOMS for path in ROOT.glob(room)})

#: What is not written, and what to write.
INSTEAD = {
    r"unpaid": "not charged, without a charge",
    r"dear(?:er|est|ly)?": "(most) expensive, costs more",
    r"(?:hang|hangs|hung) (?:on|upon)": "depends on",
    r"(?:come|comes|came) (?:or|and) (?:go|goes|went)": "is added or removed",
    r"head starts?": "stop offset, offset",
    r"(?:no|some)body(?:'s)?": "no record, no one; a team, an attacker, an analyst",
    r"whoever": "an observer, anyone who; or name who it is",
    r"besides?": "next to, with, compared with, in addition",
    r"(?:stands|stood)": "is, is stated, means, replaces",
    r"told": "published, given, known, identified by",
    r"commonest": "most frequent",
    r"a little room": "zero-concentrated privacy",
}
BANNED = re.compile(rf"(?<![\w-])(?:{'|'.join(INSTEAD)})(?![\w-])", re.IGNORECASE)

#: Directives whose inside is prose, and their options that are; all other fences hold code, formulas or figures.
_PROSE = re.compile(r"\{(?:admonition|prf|dropdown|tab|note|tip|warning|important|grid|glossary)")
_OPTION = re.compile(r"\s*:[\w-]+:(?:\s|$)|\([\w-]+\)=$")
#: What stays out of a paragraph, in this order; of a link and of a role with a title the words stay.
_OUT = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"\{[\w:+-]+\}`(?:(?P<words>[^`<]*?)\s*<[^`>]*>|[^`]*)`"),
    re.compile(r"`[^`]+`"),
    re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.DOTALL),
    re.compile(r"\]\([^)]*\)|<[^<>]*>"),
    re.compile(r"\"[^\"]{1,600}\"|“[^”]{1,600}”"),
)


def prose(text: str) -> str:
    """What is read of a page of Markdown, on the same lines: no code, formula, figure, id or quotation."""
    lines: list[str] = []
    fences: list[tuple[str, bool]] = []
    for line in text.splitlines():
        marks, rest = re.match(r"\s*(`{3,}|:{3,}|~{3,}|)(.*)", line).groups()  # type: ignore[union-attr]
        reads = all(read for _, read in fences)
        if marks and fences and fences[-1][0] == marks and not rest.strip():
            fences.pop()
            lines.append("")
        elif marks and reads:
            fences.append((marks, bool(_PROSE.match(rest))))
            lines.append(rest.partition("}")[2] if fences[-1][1] else "")
        elif marks and rest.strip():
            fences.append((marks, False))
            lines.append("")
        else:
            lines.append(line if reads and not _OPTION.match(line) and not line.startswith("> ") else "")
    assert not fences, f"still open: {fences}"
    parts = re.split(r"(\n[ \t]*\n|\n(?=[ \t]*[|]))", "\n".join(lines))
    return "".join(part if number % 2 else _without(part) for number, part in enumerate(parts))


def _without(paragraph: str) -> str:
    for out in _OUT:
        paragraph = out.sub(lambda m: (m.groupdict().get("words") or "·") + "\n" * m[0].count("\n"), paragraph)
    return paragraph


def faults(text: str) -> list[str]:
    """Each word that is not plain: its line, and what to write."""
    read = prose(text)
    found = []
    for match in BANNED.finditer(read.replace("\n", " ")):
        instead = next(right for wrong, right in INSTEAD.items() if re.fullmatch(wrong, match[0], re.IGNORECASE))
        found.append(f"{read.count(chr(10), 0, match.start()) + 1}: {match[0]!r}: write {instead}")
    return found


def pages(path: Path) -> list[str]:
    """The Markdown of a file: a page is one text, a notebook one for each cell."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return [text]
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_has_plain_words(path):
    found = [fault for page in pages(path) for fault in faults(page)]
    assert found == [], f"{path.relative_to(ROOT)}: in a notebook lines are those of a cell"


def test_each_word_is_seen_once_planted():
    planted = {
        "unpaid": "An unpaid read.", "dearest": "Its Dearest path.", "hangs on": "All of it hangs\non the coin.",
        "comes or goes": "A row comes or goes.", "head start": "With a head\nstart.", "Nobody": "Nobody knows.",
        "somebody's": "It is somebody's row.", "whoever": "for whoever asks", "beside": "one beside another",
        "stands": ":::{prf:lemma} What stands\n:label: lem-x\n:::", "told": "| a | is told |",
        "commonest": "the commonest class", "A little room": "# A little room", "besides": "*besides*",
    }  # fmt: skip
    for word, text in planted.items():
        (found,) = faults(f"First line.\n\n{text}\n")
        line, said, _ = found.split(": ", 2)
        assert said.lower() == repr(word.lower())
        assert line == "3"
    assert {next(wrong for wrong in INSTEAD if re.fullmatch(wrong, word, re.IGNORECASE)) for word in planted} == {
        *INSTEAD
    }


@pytest.mark.parametrize(
    "text",
    [
        '"Nobody is told", says the paper.',
        "> Nobody is told.",
        "`unpaid`, {py:func}`~dpforest.unpaid`, {prf:ref}`thm-dearest`, $dearest$",
        "```python\nunpaid = 1  # nobody\n```",
        "````{dropdown} Check\n```{code-block} python\n:name: told\n\nassert x, 'beside itself'\n```\n````",
        "$$\ndear + told\n$$",
        "[an id](dear.md#beside)",
        "(the-dearest-path)=",
        "<!-- learners: told by make lists -->",
        "outstanding, endear, bedside, understands, untold, ten-headed starts",
    ],
)
def test_what_is_quoted_or_code_is_free(text):
    assert faults(text) == []


def test_the_line_and_the_words_of_links_are_right():
    text = '# T\n\n```{raw} html\n<b>\n```\n\nA {doc}`page of nobody <x>` and "a\nquotation" and\n[what it hangs on](x).\n'
    assert [fault.partition(": write")[0] for fault in faults(text)] == ["7: 'nobody'", "9: 'hangs on'"]


def test_all_rooms_are_read():
    read = {str(path.relative_to(ROOT)) for path in FILES}
    assert {"README.md", "CONTRIBUTING.md", "book/intro.md", "book/rooms/curator.md", "notebooks/edprf.ipynb"} <= read
    assert not any(path.startswith(("notebooks/record", "notebooks/rendered")) for path in read)
