"""Along *Next* through *Learn it* and *Forests*, nothing is used before the page that introduces it.

What is looked at, on the pages of these two parts of ``_toc.yml`` in their order:

* **claims**: a ``{prf:ref}`` to a block of a page that comes later, or that is in none of the two parts;
* **terms** of the glossary, as ``book/_extensions/glossary_links.py`` finds them: before the page that the entry names
  first, unless the page itself introduces the term, which sets its first use in *italics*;
* **symbols** that have one meaning: before the page that ``book/symbols.md`` names. Small Latin letters are left out:
  every page binds them for itself ("let $u$ be ..."). Where a page so binds another letter, it is listed below.

A sentence may point ahead if a reader sees that it need not be followed now: it says *later*, or it names the page by a
``{doc}``. For a row of a table, that may be said in the head of the table. The box *In short* at the head of a chapter
may point ahead, too: it says what the chapter leads to. A statement (definition, lemma, theorem) may not, whatever it
says. A proof may, since no proof rests on itself: that is tested as well.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
BOOK = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "book").glob("*.md"))}
PATH = [
    Path(chapter["file"]).stem
    for part in yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    if part["caption"] in ("Learn it", "Forests")
    for top in part["chapters"]
    for chapter in (top, *top.get("sections", ()))
    if chapter["file"].startswith("book/")
]
LABELS = {label: page for page, text in BOOK.items() for label in re.findall(r"^:label: ([\w-]+)$", text, flags=re.M)}
STATEMENTS = "definition", "lemma", "theorem", "algorithm"

#: Letters that a page binds for itself, and before the page that introduces the symbol of that letter.
BOUND = {
    ("privacy", r"\eps_k"): "the loss of the last round",
    ("mechanisms", "E"): "exponential noise",
    ("mechanisms", r"\ell"): "of a candidate, in one proof",
    ("mechanisms", r"\Lambda"): "a cumulant, in one solution",
    ("scores", r"\ell"): "the lower bound of targets",
    ("more_scores", r"\ell"): "the lower bound of targets",
    ("scores", r"w_{\max}"): "the largest of an exercise's public weights",
    ("concentrated", r"\ell"): "a log-ratio, in one proof",
    ("diffpets", "p_k"): "Poisson's law, in one proof",
    ("boosting", "E"): "of the paper that is quoted",
    ("boosting", r"\Lambda"): "of the paper that is quoted",
    ("pearson_tree", r"\theta"): "a share, in one proof",
}


Names = list[str]
Homes = dict[str, str]  # of what is introduced: the page


# --- sentences -------------------------------------------------------------------------------------------------------
@dataclass
class Sentence:
    """One sentence, or a row of a table and its head; the kind of block that it is in, and the claim of that block."""

    line: int
    text: str
    block: str = ""
    claim: str = ""
    head: str = ""

    def points_ahead(self, page: str) -> bool:
        said = self.head + self.text
        later = re.search(r"\b[Ll]ater\b", said) or re.search(rf"\{{doc\}}`(?:[^`]*<)?{page}>?`", said)
        return self.block == "chapter-head" or (bool(later) and self.block not in STATEMENTS)


_ITEM = re.compile(r"\s*(?:[-*]|\d+\.|:) ")
_END = re.compile(r"(?<=[.?!])[)*\"”]*\s+(?=[A-Z{*\[(\"“]|\$(?!\$))")


def sentences(text: str) -> Iterator[Sentence]:
    """What is read of a page, sentence by sentence; no code, no figure, no heading."""
    fences: list[tuple[str, str]] = []  # the marks of those that are open, and what they hold
    paragraph: list[str] = []
    start, head, claim = 0, "", ""

    def block() -> str:
        return next((kind for _, kind in reversed(fences) if kind), "")

    def done() -> Iterator[Sentence]:
        whole, at = "\n".join(paragraph), 0
        for piece in _END.split(whole) if whole.strip() else ():
            at = whole.index(piece, at)
            yield Sentence(start + whole.count("\n", 0, at), piece.replace("\n", " "), block(), claim)
            at += len(piece)
        paragraph.clear()

    for number, line in enumerate(text.splitlines(), 1):
        marks, rest = re.match(r"\s*(`{3,}|:{3,}|~{3,}|)(.*)", line).groups()  # type: ignore[union-attr]
        hidden = any(kind == "code" for _, kind in fences)
        apart = marks or not line.strip() or line.startswith(("#", "|")) or _ITEM.match(line)
        if apart and not hidden:
            yield from done()
        if marks and fences and fences[-1][0] == marks and not rest.strip():
            fences.pop()
        elif marks:
            kind = re.match(r"\{(?:prf:(\w+)|(admonition|dropdown|tab|note|tip|warning|important|math)[\w-]*)\}", rest)
            fences.append((marks, (kind[1] or "") if kind else "code"))
        elif line.strip() == ":class: chapter-head":
            fences[-1] = fences[-1][0], "chapter-head"
        elif line.startswith(":label: "):
            claim = line.split()[1]
        elif hidden or line.startswith("#") or re.match(r"\s*:[\w-]+:|\([\w-]+\)=$", line):
            continue
        elif line.startswith("|"):
            head = head or line
            yield Sentence(number, line, block(), claim, head)
        elif line.strip():
            start = start if paragraph else number
            paragraph.append(line)
        if not line.startswith("|"):
            head = ""
    assert not fences, f"still open: {fences}"
    yield from done()


def ahead(home: str, page: str, path: Names) -> bool:
    """Whether a page comes before the one that introduces something; what is not on the path is ahead of all of it."""
    return home != page and (home not in path or path.index(home) > path.index(page))


# --- claims ----------------------------------------------------------------------------------------------------------
def early_claims(page: str, found: list[Sentence], path: Names, labels: dict[str, str]) -> Iterator[tuple[int, str]]:
    for sentence in found:
        for claim in re.findall(r"\{prf:ref\}`(?:[^`]*<)?([\w-]+)>?`", sentence.text):
            home = labels[claim]
            if ahead(home, page, path) and not sentence.points_ahead(home):
                yield sentence.line, claim


# --- terms -----------------------------------------------------------------------------------------------------------
LINKS = runpy.run_path(str(ROOT / "book" / "_extensions" / "glossary_links.py"))
#: Nouns of machine learning and of every day, which the book uses as everyone does.
PLAIN = {
    "binning",
    "leaf",
    "budget",
    "decision tree",
    "feature",
    "mean squared error",
    "noise",
    "random forest",
    "record",
    "split",
    "stump",
}


def homes(glossary: str, labels: Homes) -> Homes:
    """The page that introduces each term: the first that its entry names."""
    found = {}
    for terms, said in re.findall(r"^((?:[^\s:].*\n)+)  (.+)$", glossary.partition("{glossary}\n")[2], flags=re.M):
        if place := re.search(r"\{prf:ref\}`([\w-]+)`|\{doc\}`(\w+)`", said):
            found |= dict.fromkeys(terms.splitlines(), labels[place[1]] if place[1] else place[2])
    return found


HOMES = homes(BOOK["glossary"], LABELS)
_BLANK = re.compile(r"\{[\w:+-]+\}`[^`]*`|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\[[^\]]*\]\([^)]*\)")
_EMPHASIS = re.compile(r"(\*{1,2})(?=\S)([^*]+?)(?<=\S)\1")
_WORDS = 4  # of an emphasis that introduces a term; a whole sentence in italics is the caption of a figure


def early_terms(path: Names, pages: dict[str, list[Sentence]], homes: dict[str, str]) -> Iterator[tuple[str, int, str]]:
    introduced: set[str] = set()
    for page in path:
        seen: set[str] = set()
        introduced |= {term for term, home in homes.items() if home == page}
        for sentence in pages[page]:
            text = _BLANK.sub(lambda match: "·" * len(match[0]), sentence.text)
            italics = [m.span() for m in _EMPHASIS.finditer(text) if len(m[2].split()) <= _WORDS]
            for match in LINKS["_pattern"]().finditer(text):
                term = LINKS["terms"]()[" ".join(match[1].lower().split())]
                home = homes.get(term)
                if home is None or term in introduced or term in seen or sentence.points_ahead(home):
                    continue
                if any(left <= match.start() and match.end() <= right for left, right in italics):
                    introduced.add(term)
                else:
                    seen.add(term)
                    yield page, sentence.line, term


# --- symbols ---------------------------------------------------------------------------------------------------------
def alone(table: str, labels: Homes) -> Homes:
    """The page that introduces each symbol that has one meaning."""
    found = {}
    for row in (line[2:-1].split(" | ") for line in table.splitlines() if line.startswith("| $")):
        if "*elsewhere*" not in row[1]:
            claim, page = re.search(r"\{prf:ref\}`([\w-]+)`|\]\((\w+)\.md", row[2]).groups()  # type: ignore[union-attr]
            symbols = [tex for tex in re.findall(r"\$(.+?)\$", row[0]) if not re.fullmatch("[a-z]", tex)]
            found |= dict.fromkeys(symbols, page or labels[claim])
    return found


def early_symbols(page: str, found: list[Sentence], path: Names, homes: dict[str, str]) -> Iterator[tuple[int, str]]:
    early = {symbol: home for symbol, home in homes.items() if ahead(home, page, path)}
    for sentence in found:
        tex = " ".join(a or b for a, b in re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", sentence.text))
        tex = re.sub(r"\\math(?:rm|bb)\{E\}", "", tex)  # an expectation
        for symbol, home in list(early.items()):
            after = r"(?![A-Za-z'_])" if symbol[-1].isalnum() else "(?!['_])"
            if re.search(rf"(?<![A-Za-z\\]){re.escape(symbol)}{after}", tex) and not sentence.points_ahead(home):
                del early[symbol]
                yield sentence.line, symbol


# --- the book --------------------------------------------------------------------------------------------------------
PAGES = {page: list(sentences(BOOK[page])) for page in PATH}


@pytest.mark.parametrize("page", PATH)
def test_no_claim_is_used_before_its_page(page):
    assert list(early_claims(page, PAGES[page], PATH, LABELS)) == []


def test_no_term_is_used_before_its_page():
    assert list(early_terms(PATH, PAGES, HOMES)) == []


def test_a_term_has_a_page_or_is_a_plain_noun():
    linked = set(LINKS["terms"]().values())
    assert linked - HOMES.keys() == PLAIN


def test_no_symbol_is_used_before_its_page():
    homes = alone(BOOK["symbols"], LABELS)
    found = {(page, symbol) for page in PATH for _, symbol in early_symbols(page, PAGES[page], PATH, homes)}
    assert found == BOUND.keys()
    assert len(homes) > 30


def rests_on(pages: dict[str, list[Sentence]]) -> dict[str, set[str]]:
    """The claims that each claim's own block and proof name."""
    found: dict[str, set[str]] = {}
    for said in (said for page in pages.values() for said in page if said.block in (*STATEMENTS, "proof")):
        found.setdefault(said.claim, set()).update(re.findall(r"\{prf:ref\}`([\w-]+)`", said.text))
    return found


def test_no_proof_rests_on_itself():
    """In the whole book: what is proved later, on any page, does not need what it is used for."""
    graph = rests_on({page: list(sentences(text)) for page, text in BOOK.items()})
    TopologicalSorter(graph).prepare()
    assert {label for label in LABELS if label.startswith(("thm-", "lem-"))} <= graph.keys()
    assert "thm-own-weights" in graph["thm-forest"]
    with pytest.raises(CycleError):
        TopologicalSorter({**graph, "thm-own-weights": {"thm-forest"}}).prepare()


# --- what is planted is seen -----------------------------------------------------------------------------------------
PLANTED = ["mechanisms", "tree"]


def planted(text: str) -> list[str]:
    """What is found in a page that comes before the two that define all it names."""
    found = list(sentences(text))
    labels, homes = {"thm-x": "tree", "alg-x": "diffgen"}, {"ledger": "tree", "rate": "mechanisms"}
    return [
        *(claim for _, claim in early_claims("mechanisms", found, PLANTED, labels)),
        *(term for page, _, term in early_terms(PLANTED, {"mechanisms": found, "tree": []}, homes)),
        *(symbol for _, symbol in early_symbols("mechanisms", found, PLANTED, {r"\Delta": "tree", "R'": "tree"})),
    ]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("It follows ({prf:ref}`thm-x`). More later.", ["thm-x"]),
        ("See {prf:ref}`a title <alg-x>`, and\n{prf:ref}`thm-x`, at this rate.", ["alg-x", "thm-x"]),
        ("| a | b |\n|---|---|\n| c | {prf:ref}`thm-x` |", ["thm-x"]),
        ("- Later.\n- By {prf:ref}`thm-x`.", ["thm-x"]),
        (":::{prf:theorem} T\n:label: thm-y\n\nLater, {prf:ref}`thm-x`.\n:::", ["thm-x"]),
        ("```{dropdown} Solution\nBy {prf:ref}`thm-x`.\n```", ["thm-x"]),
        ("Two ledgers.\n\n*Ledgers* are lists.", ["ledger"]),
        ("*A caption of five words on a ledger.*", ["ledger"]),
        ("Let $x < \\Delta$ and $R' = 1$.\n\n$$\n\\Delta\n$$", [r"\Delta", "R'"]),
    ],
)
def test_a_planted_use_is_caught(text, seen):
    assert planted(text) == seen


@pytest.mark.parametrize(
    "text",
    [
        "It follows later ({prf:ref}`thm-x`).",
        "It follows, {doc}`tree`, by {prf:ref}`thm-x`, for the ledger of {doc}`that <tree>`.",
        "| a | proved later |\n|---|---|\n| c | {prf:ref}`thm-x` |",
        ":::{admonition} In short\n:class: chapter-head\n\nBy {prf:ref}`thm-x` a ledger $\\Delta$.\n:::",
        ":::{prf:proof}\nLater, {prf:ref}`thm-x`.\n:::",
        "The *ledger* is a list. A ledger.",
        "# The ledger\n\n```python\nledger  # {prf:ref}`thm-x`\n```\n\n`ledger`, {py:func}`ledger`, [ledger](x).",
        "$\\Delta_r$, $R$, $\\Delta' $",
    ],
)
def test_what_points_ahead_openly_is_free(text):
    assert planted(text) == []


def test_a_use_is_caught_in_the_book_itself():
    """A sentence is planted in a chapter of the core: its line and what it uses are reported."""
    line = BOOK["budgets"].count("\n") + 2
    text = BOOK["budgets"] + "\nAs {prf:ref}`thm-forest` has it, by the grey box.\n"
    found = list(sentences(text))
    assert list(early_claims("budgets", found, PATH, LABELS)) == [(line, "thm-forest")]
    assert list(early_terms(PATH, {**PAGES, "budgets": found}, HOMES)) == [("budgets", line, "grey box")]
