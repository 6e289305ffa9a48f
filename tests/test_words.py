"""Plain words: prose has the field's noun in place of an everyday word; quotations, code, formulas and ids are free.

So have docstrings and comments of the library, which the book's pages of the API show.  The second half is about the
glossary, and the links that lead there.
"""

from __future__ import annotations

import ast
import io
import json
import re
import runpy
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: The rooms whose prose is read; in a notebook, its Markdown.
ROOMS = ("book/**/*.md", "README.md", "CONTRIBUTING.md", "notebooks/*.ipynb")
FILES = sorted({path for room in ROOMS for path in ROOT.glob(room)})
MODULES = sorted((ROOT / "dpforest").rglob("*.py"))

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


#: What a program prints in an example is code's, as the program is.
_EXAMPLE = re.compile(r"^ *>>> .*(?:\n *\S.*)*", re.MULTILINE)


def remarks(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module, each with the line on which it begins."""
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node):
            first = node.body[0].value
            yield first.lineno, _EXAMPLE.sub(lambda found: "\n" * found[0].count("\n"), first.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_and_comments_have_plain_words(path):
    found = [
        f"line {start}, {fault}" for start, text in remarks(path.read_text(encoding="utf-8")) for fault in faults(text)
    ]
    assert found == [], f"{path.relative_to(ROOT)}: lines after that on which the docstring begins"


def messages(source: str) -> Iterator[tuple[int, str]]:
    """The texts of a module that are no docstring, each with its line; a single word is a key, and free."""
    tree = ast.parse(source)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = {
        id(node.body[0].value)  # type: ignore[attr-defined]
        for node in ast.walk(tree)
        if isinstance(node, documented) and ast.get_docstring(node)
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if " " in text and id(node) not in docstrings:
            yield node.lineno, text


#: The labels of this page change with its next run, which needs Spark and an otherwise idle machine.
UNTIL_IT_RUNS = "scaling.ipynb"
#: Each cell of code in a notebook.
CELLS = {
    f"{path.relative_to(ROOT)}, cell {number}": "".join(cell["source"])
    for path in FILES
    if path.suffix == ".ipynb" and path.name != UNTIL_IT_RUNS
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"])
    if cell["cell_type"] == "code"
}


def test_messages_labels_and_captions_have_plain_words():
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in MODULES} | CELLS
    found = [
        f"{where}, line {line}: {fault[0]!r}: {text}"
        for where, source in sources.items()
        for line, text in messages(source)
        for fault in BANNED.finditer(text)
    ]
    assert found == []


def texts(of: object) -> Iterator[str]:
    """All text in JSON."""
    if isinstance(of, str):
        yield of
    elif isinstance(of, dict | list):
        for each in of.values() if isinstance(of, dict) else of:
            yield from texts(each)


def test_captions_that_stand_in_the_metadata_of_cells_have_plain_words():
    notebooks = {path: json.loads(path.read_text(encoding="utf-8")) for path in FILES if path.suffix == ".ipynb"}
    captions = [
        (path.name, text) for path, nb in notebooks.items() for cell in nb["cells"] for text in texts(cell["metadata"])
    ]
    assert len(captions) > 100
    assert [(name, found[0], text) for name, text in captions for found in BANNED.finditer(text)] == []


def test_a_message_is_read_and_a_key_is_not():
    source = '"""Told."""\nraise ValueError(f"nobody {x} is told", "dear", {"commonest": 1})\n'
    assert [text for _, text in messages(source)] == ["nobody ", " is told"]


def test_a_docstring_and_a_comment_are_read():
    source = (
        '"""Told.\n\n>>> print("dear")\ndear\n"""\n\n\ndef f():\n    """Nobody."""\n    return "beside"  #: stands\n'
    )
    assert [(start, fault.split(": ")[1]) for start, text in remarks(source) for fault in faults(text)] == [
        (1, "'Told'"),
        (9, "'Nobody'"),
        (10, "'stands'"),
    ]


def test_each_word_is_seen_once_planted():
    planted = {
        "unpaid": "An unpaid read.",
        "dearest": "Its Dearest path.",
        "hangs on": "All of it hangs\non the coin.",
        "comes or goes": "A row comes or goes.",
        "head start": "With a head\nstart.",
        "Nobody": "Nobody knows.",
        "somebody's": "It is somebody's row.",
        "whoever": "for whoever asks",
        "beside": "one beside another",
        "stands": ":::{prf:lemma} What stands\n:label: lem-x\n:::",
        "told": "| a | is told |",
        "commonest": "the commonest class",
        "A little room": "# A little room",
        "besides": "*besides*",
    }
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
    text = (
        '# T\n\n```{raw} html\n<b>\n```\n\nA {doc}`page of nobody <x>` and "a\nquotation" and\n[what it hangs on](x).\n'
    )
    assert [fault.partition(": write")[0] for fault in faults(text)] == ["7: 'nobody'", "9: 'hangs on'"]


def test_all_rooms_are_read():
    read = {str(path.relative_to(ROOT)) for path in FILES}
    assert {"README.md", "CONTRIBUTING.md", "book/intro.md", "book/rooms/curator.md", "notebooks/edprf.ipynb"} <= read
    assert not any(path.startswith(("notebooks/record", "notebooks/rendered")) for path in read)


# -- the glossary ----------------------------------------------------------------------------------------------------

GLOSSARY = (ROOT / "book/glossary.md").read_text(encoding="utf-8").partition("{glossary}\n")[2]
LINKS = runpy.run_path(str(ROOT / "book/_extensions/glossary_links.py"))
#: What the path through the core cannot be read without.
CORE = [
    "account", "add-remove", "budget", "charge", "code", "coin", "curator", "decision tree", "delta",
    "differential privacy", "exponential mechanism", "geometric mechanism", "Gini impurity", "leaf", "leak",
    "ledger", "loss", "neighbours", "parallel composition", "path", "permute-and-flip", "person",
    "post-processing", "query", "range", "rate", "record", "relation", "release", "replace-one", "replay",
    "rho", "schema", "scope", "score", "selection", "sensitivity", "sequential composition", "split", "stop",
    "two-sided geometric noise", "zero-concentrated privacy",
]  # fmt: skip


def entries(text: str) -> dict[str, str]:
    """The definition of each term."""
    found = re.findall(r"^((?:[^\s:].*\n)+)  (.+)$", text, flags=re.M)
    return {term: definition for terms, definition in found for term in terms.splitlines()}


def faults_of_definition(definition: str) -> list[str]:
    english = re.findall(r"[A-Za-z]+", re.sub(r"\{[\w:]+\}`[^`]*`|\$[^$]*\$", "", definition))
    chinese = re.findall(r"[\u4e00-\u9fff]+", definition)
    return ["no definition"] * (len(english) < 4) + ["no Chinese"] * (not chinese)


@pytest.mark.parametrize(("term", "definition"), entries(GLOSSARY).items(), ids=entries(GLOSSARY))
def test_a_term_has_a_definition_and_its_chinese(term, definition):
    assert faults_of_definition(definition) == []


def test_the_glossary_has_the_terms_of_the_core():
    assert set(CORE) - entries(GLOSSARY).keys() == set()
    assert list(entries("a\nb\n  Both.\n\nc\n  One.\n:::\n").items()) == [("a", "Both."), ("b", "Both."), ("c", "One.")]
    assert faults_of_definition("噪声, 噪音. {prf:ref}`thm-of-some-more-words`.") == ["no definition"]
    assert faults_of_definition("A random number that is added.") == ["no Chinese"]


def test_the_first_use_of_a_term_is_linked():
    done: set[str] = set()
    text = "Losses of two neighbours; a Loss, the log loss. Decision\ntrees, and one neighbour, lossy."
    found = list(LINKS["linked"](text, done))
    assert "".join(piece for piece, _ in found) == text
    assert [(piece, term) for piece, term in found if term] == [
        ("Losses", "loss"),
        ("neighbours", "neighbours"),
        ("Decision\ntrees", "decision tree"),
    ]
    assert [term for _, term in LINKS["linked"]("Queries, leaks, branches.", done) if term] == ["leak"]
    assert list(LINKS["linked"]("Another loss.", done)) == [("Another loss.", None)]
    assert list(LINKS["linked"]("A log loss.", set())) == [("A log loss.", None)]


def test_what_is_not_linked_is_a_term():
    assert LINKS["EVERYDAY"] <= entries(GLOSSARY).keys()
    assert {*LINKS["terms"]().values()} == entries(GLOSSARY).keys() - LINKS["EVERYDAY"]
