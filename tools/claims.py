"""Scan the four rooms for claim ids, and write the table of verdicts, ``book/claims.md``.

A claim has one id and four hits: a labelled block in ``book/``, a ``@claim`` seal in ``dpforest/``, a
``@pytest.mark.claim`` on a test, and a mention in the first cell of a notebook.  ``tests/test_claims.py`` checks
that none is missing; ``make claims`` writes the table, and the front page's chart of what papers published.
"""

from __future__ import annotations

import ast
import html
import importlib
import json
import pkgutil
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests import coq
from tools import experimental, published
from tools.published import Published

ROOT = Path(__file__).resolve().parents[1]
BOOK, TESTS, NOTEBOOKS = ROOT / "book", ROOT / "tests", ROOT / "notebooks"
FORMAL, BELOW = BOOK / "machine_checked.md", "<!-- below: written by make claims -->\n\n"
CHART = BOOK / "_static" / "verdicts.html"
HEADLINE = BOOK / "_static" / "headline.html"
FAMILY, FIRST, LAST = (
    BOOK / "ancestors.md",
    "<!-- verdicts: written by make claims -->\n\n",
    "\n<!-- end of verdicts -->",
)
MODULE = ROOT / "dpforest" / "study" / "published.py"

#: Which rooms an id must stand in, by its prefix.
ROOMS = {
    "def": ("book", "code"),
    "alg": ("book", "code"),
    "lem": ("book", "code", "test", "notebook"),
    "thm": ("book", "code", "test", "notebook"),
    "pub": ("book", "code", "test", "notebook"),
    "cex": ("book", "code", "test", "notebook"),
    "exp": ("book", "code", "test", "notebook"),
}
#: What to do where a hit is missing.
HINTS = {
    "book": ": label the block in its chapter with it",
    "code": ": put @claim on a public class or function (what begins with _ is not looked at)",
    "test": ": put @pytest.mark.claim on the test that proves it",
    "notebook": ": name it after Exhibits: in the first cell of a notebook",
}
KINDS = {
    "def": "definition",
    "alg": "algorithm",
    "lem": "lemma",
    "thm": "theorem",
    "pub": "conjecture",
    "cex": "example",
}
NEEDS_PROOF = ("lem", "thm")
NEEDS_VERDICT = ("lem", "thm", "pub", "cex")
#: Of what this book claims itself; what a paper published has other words, see ``tools/published.py``.
VERDICTS = ("proved", "refuted")
EVIDENCE = ("symbolic", "exhaustive", "statistical", "numerical")

_ID = re.compile(r"^(?:def|lem|thm|alg|pub|cex|exp)-[a-z0-9-]+$")
_BLOCK = re.compile(r"^(?P<fence>`{3,}|:{3,})\{prf:(?P<kind>\w+)\}(?P<title>.*)$")


@dataclass
class Block:
    """A labelled block of the book."""

    page: str
    kind: str
    title: str
    proved: bool = False
    counterexamples: list[str] = field(default_factory=list)  # that it refers to


@dataclass
class Verdict:
    """What a test certifies."""

    verdict: str
    constant: str
    evidence: str
    test: str
    said: Published | None = None  # of a claim that a paper published


@dataclass
class Scan:
    """Every hit of every id, by room."""

    book: dict[str, list[Block]] = field(default_factory=lambda: defaultdict(list))
    code: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    test: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    notebook: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    verdicts: dict[str, list[Verdict]] = field(default_factory=lambda: defaultdict(list))
    papers: list[experimental.Paper] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return sorted({*self.book, *self.code, *self.test, *self.notebook})


def scan() -> Scan:
    """Read all four rooms."""
    found = Scan()
    for page in _pages():
        _scan_page(page, found)
    _scan_code(found)
    for path in sorted(TESTS.glob("test_*.py")):
        _scan_tests(path, found)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        _scan_notebook(path, found)
    found.papers = experimental.scan()
    for paper in found.papers:
        for claim in paper.ids:
            found.code[claim].append(f"dpforest.study.statements.{paper.name}")
    return found


def _pages() -> list[Path]:
    return sorted(p for p in BOOK.glob("*.md") if p.name not in ("claims.md", experimental.PAGE.name))


def _scan_page(path: Path, found: Scan) -> None:
    last: Block | None = None
    block: Block | None = None
    inside = False  # of the last block with a label
    for line in path.read_text().splitlines():
        if match := _BLOCK.match(line.strip()):
            if match["kind"] == "proof":
                if last is not None:
                    last.proved = True
                block = None
            else:
                block = Block(path.stem, match["kind"], match["title"].strip())
        elif block is not None and (label := re.match(r"^:label:\s*(\S+)", line.strip())):
            found.book[label[1]].append(block)
            last, block, inside = block, None, True
        elif inside and last is not None:
            last.counterexamples += re.findall(r"\{prf:ref\}`(cex-[a-z0-9-]+)`", line)
            inside = not re.fullmatch(r"`{3,}|:{3,}", line.strip())


def _scan_code(found: Scan) -> None:
    package = importlib.import_module("dpforest")
    for module in pkgutil.walk_packages(package.__path__, "dpforest."):
        members = vars(importlib.import_module(module.name))
        for name, thing in members.items():
            owned = getattr(thing, "__module__", None) == module.name
            if (owned or type(thing).__module__ == module.name) and not name.startswith("_"):
                _take_seal(found, f"{module.name}.{name}", thing)
                if isinstance(thing, type):
                    for attribute, member in vars(thing).items():
                        _take_seal(found, f"{module.name}.{name}.{attribute}", member)


def _take_seal(found: Scan, where: str, thing) -> None:
    own = vars(thing).get("__claims__", ()) if hasattr(thing, "__dict__") else ()
    for claim in own:
        if where not in found.code[claim]:
            found.code[claim].append(where)


def _scan_tests(path: Path, found: Scan) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.claim":
                where = f"{path.stem}::{node.name}"
                options = {word.arg: ast.literal_eval(word.value) for word in mark.keywords}
                for argument in mark.args:
                    claim = ast.literal_eval(argument)
                    found.test[claim].append(where)
                    if {"verdict", "true"} & set(options):
                        found.verdicts[claim].append(_stated(where, options))


def _stated(where: str, options: dict) -> Verdict:
    """What a mark certifies; of a published claim in the words of ``tools/published.py``."""
    kept = {name: options.get(name, "") for name in ("verdict", "constant", "evidence")}
    return Verdict(test=where, said=published.of(options) if "true" in options else None, **kept)


def _scan_notebook(path: Path, found: Scan) -> None:
    cells = json.loads(path.read_text())["cells"]
    first = "".join(cells[0]["source"]) if cells else ""
    for claim in re.findall(r"`([a-z]+-[a-z0-9-]+)`", first.partition("Exhibits:")[2]):
        if _ID.match(claim):
            found.notebook[claim].append(path.stem)


def problems(found: Scan) -> list[str]:
    """Everything that is missing, dangling or doubled, one sentence each."""
    out = []
    for claim in found.ids:
        if not _ID.match(claim):
            out.append(f"{claim}: not of the form prefix-words, with a prefix among {sorted(ROOMS)}")
            continue
        prefix = claim.split("-")[0]
        for room in ROOMS[prefix]:
            if prefix == "exp" and room == "book":  # a row of the chapter's table, of which the scan of papers tells
                continue
            if not getattr(found, room).get(claim):
                out.append(f"{claim}: no hit in the {room} room{HINTS[room]}")
        blocks = found.book.get(claim, [])
        if len(blocks) > 1:
            out.append(f"{claim}: labelled {len(blocks)} times, on {[block.page for block in blocks]}")
        for block in blocks:
            if block.kind != KINDS[prefix]:
                out.append(f"{claim}: a {prefix}- id on a {block.kind}, expected a {KINDS[prefix]}")
            if prefix in NEEDS_PROOF and not block.proved:
                out.append(f"{claim}: no proof follows it on {block.page}")
        out += _verdict_problems(claim, prefix, found.verdicts.get(claim, []))
    return out + experimental.problems(found.papers)


def _verdict_problems(claim: str, prefix: str, verdicts: list[Verdict]) -> list[str]:
    if prefix not in NEEDS_VERDICT:
        return []
    if len(verdicts) != 1:
        return [f"{claim}: {len(verdicts)} tests state a verdict ({[v.test for v in verdicts]}), one should"]
    found = verdicts[0]
    out = []
    if prefix == "pub":
        if found.verdict or found.said is None:
            out.append(f"{claim}: a published claim has true=, tight= and read= in the place of verdict=")
        else:
            out += published.problems(claim, found.said)
    elif found.verdict not in VERDICTS:
        out.append(f"{claim}: verdict {found.verdict!r} is not one of {VERDICTS}")
    if found.evidence not in EVIDENCE:
        out.append(f"{claim}: evidence {found.evidence!r} is not one of {EVIDENCE}")
    if not found.constant:
        out.append(f"{claim}: no sharp number is stated")
    if marks := re.findall(r"[\^√∞≤≥αβδεηλμρτΔΣ]", re.sub(r"\$[^$]+\$", "", found.constant)):
        out.append(f"{claim}: {marks[0]!r} stands outside an equation in the sharp number: write it between dollars")
    return out


def table(found: Scan) -> str:
    """The page ``claims.md``."""
    lines = [_HEAD, _totals(found)]
    for page, rows in chapters(found).items():
        lines += ["", f"## {title(page)}", ""]
        for claim in rows:
            said = found.verdicts[claim][0] if found.verdicts.get(claim) else Verdict("", "", "", "none")
            broken = found.book[claim][0].counterexamples if claim.startswith("pub-") else []
            where = [
                f'counterexample <a href="{found.book[example][0].page}.html#{example}"><code>{example}</code></a>'
                for example in dict.fromkeys(broken)
            ]
            where += [_link(page, f"{claim}-test", said.test)]
            code = (name.removeprefix("dpforest.") for name in found.code[claim][:2])
            where += [_link(page, f"{claim}-{at}", name) for at, name in enumerate(code)]
            runs = sorted(found.notebook[claim], key=lambda name: name != page)  # the chapter's own one first
            where += [f"{{doc}}`notebook <../notebooks/rendered/{name}>`" for name in runs[:1]]
            checked = [theorem for theorem in coq.theorems() if theorem.claim == claim]
            evidence = f"{said.evidence}, formal" if checked else said.evidence
            where += [f"{{ref}}`Coq <coq-{theorem.name}>`" for theorem in checked]
            verdict = published.entry(said.said) if said.said else f"**{said.verdict}**"
            lines += [
                f"{{prf:ref}}`{claim}` · {found.book[claim][0].title or claim}",
                f": {verdict} · {evidence} · {said.constant}",
                *([f"  <br>{published.beside(said.said)}"] if said.said else []),
                f"  <br>`{claim}` · {' · '.join(where)}",
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


def chapters(found: Scan) -> dict[str, list[str]]:
    """Of each page that has some, in the book's order: the claims that need a verdict, examples last."""
    out = {}
    for page in _reading_order():
        here = [c for c in found.ids if found.book.get(c) and found.book[c][0].page == page]
        rows = [c for c in here if c.split("-")[0] in NEEDS_VERDICT]
        if rows:
            out[page] = sorted(rows, key=lambda c: (found.book[c][0].kind == "example", c))
    return out


def _link(page: str, anchor: str, name: str) -> str:
    """To what a name stands for, on the page of evidence that the extension of that name writes."""
    return f'<a href="../evidence/{page}.html#{anchor}"><code>{html.escape(name)}</code></a>'


def of_papers(found: Scan) -> dict[str, Published]:
    """The verdict on each claim that a paper published, and that the book has."""
    stated = {c: v[0].said for c, v in found.verdicts.items() if v and c.startswith("pub-") and found.book.get(c)}
    return {claim: said for claim, said in stated.items() if said is not None}


def chart(found: Scan) -> str:
    """The front page's chart: a square for each claim that a paper published, and what they come to."""
    said = of_papers(found)
    lines = [f"<p>{published.sentence(said)}</p>", '<table class="verdicts">']
    lines += [f"<caption>{published.legend(said)}</caption>", "<tbody>"]
    for page in _reading_order():
        here = [c for c in said if found.book[c][0].page == page]
        squares = "".join(
            published.square(said[c], f"{page}.html#{c}", c, plain(found.book[c][0].title) or c)
            for c in sorted(here, key=lambda c: (list(published.KINDS).index(said[c].kind), c))
        )
        if here:
            name = html.escape(plain(title(page)))
            lines.append(f'<tr><th scope="row"><a href="{page}.html">{name}</a></th><td>{squares}</td></tr>')
    return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"


def family(found: Scan) -> str:
    """The chapter on the family, with the table of both relations as the marks have it."""
    before, _, rest = FAMILY.read_text().partition(FIRST)
    return before + FIRST + published.relations(of_papers(found)) + LAST + rest.partition(LAST)[2]


def formal() -> str:
    """The end of the page ``machine_checked.md``: every theorem that Coq checks, as Coq prints it."""
    stored = (ROOT / "tests" / "formal" / "statements.txt").read_text()
    said = dict(re.findall(r"^@?(\w+)\n(     : (?:.*\n)(?: .*\n)*)", stored, flags=re.M))
    lines = []
    for theorem in coq.theorems():
        lines += [
            f"(coq-{theorem.name})=",
            f"**{{prf:ref}}`{theorem.claim}`** · {theorem.clause} · `{theorem.path}`, line {theorem.line}",
            "",
            f"```{{dropdown}} {theorem.name}",
            "~~~coq",
            f"{theorem.name}\n{said[theorem.name].rstrip()}",
            "~~~",
            "```",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def plain(title: str) -> str:
    """A title as text: formulas as they are written, without the dollar signs, and no references."""
    title = re.sub(r"\s*\{[a-z:]+\}`[^`]*`", "", title)
    return re.sub(r"\$([^$]*)\$", lambda match: match[1].replace("\\eps", "ε").replace("\\", ""), title)


def _totals(found: Scan) -> str:
    ours = Counter(v[0].verdict for c, v in found.verdicts.items() if v and not c.startswith("pub-"))
    every = ", ".join(f"{ours[v]} {v}" for v in VERDICTS if ours[v])
    return f"Of this book's own statements: {every}. {published.sentence(of_papers(found))}\n"


_HEAD = """# Claims

Every claim of the book, with its verdict.  This page is written by a scan of the book, the library, the tests and
the notebooks; a claim that lacks its proof, its code, its test or its exhibit fails the test suite.

A statement of this book is **proved**, and the number given is sharp; of an example that is marked **refuted** the
test asserts that a promise is broken. A claim that a paper published is true, or not, under each of
the two relations: **yes**, as published; **after a repair**, once a constant is changed or a premise added; **no**,
neither mends it, and there is a counterexample; **open**, the passage that would settle it could not be read. It is
*sharp*, *loose by* a factor, or *empty*. {doc}`reading` says more on both, and on how its paper was read.

What the evidence means: *symbolic*: a computer-algebra identity or a satisfiability certificate, for all sizes;
*exhaustive*: every case of a finite universe, in exact arithmetic, the prose proof carrying the rest; *numerical*:
quadrature or floating point against an independent computation; *statistical*: a seeded sample with a stated test;
*formal*: Coq also checks a proof of the part that {doc}`machine_checked` names.  Each verdict links the lines of its
test and its code.
"""


def _reading_order() -> list[str]:
    toc = (ROOT / "_toc.yml").read_text()
    pages = [Path(match).stem for match in re.findall(r"(?:root|file):\s*(book/\w+)$", toc, flags=re.M)]
    return [*pages, *(p.stem for p in _pages() if p.stem not in pages)]


def title(page: str) -> str:
    """The title of a page of the book, as it is written there."""
    path = BOOK / f"{page}.md"
    titles = re.findall(r"^# (.+)$", path.read_text(), flags=re.M) if path.exists() else []
    return titles[0] if titles else page


if __name__ == "__main__":
    result = scan()
    (BOOK / "claims.md").write_text(table(result))
    CHART.write_text(chart(result))
    HEADLINE.write_text(published.headline(of_papers(result)))
    FAMILY.write_text(family(result))
    MODULE.write_text(published.module(of_papers(result)))
    experimental.PAGE.write_text(experimental.page(result.papers, title))
    experimental.CHART.write_text(experimental.chart(result.papers, lambda name: plain(title(name))))
    FORMAL.write_text(FORMAL.read_text().partition(BELOW)[0] + BELOW + formal())
    missing = problems(result)
    print(f"{len(result.ids)} claims; {len(missing)} problems", *missing, sep="\n  ")
    sys.exit(bool(missing))
