"""The Chinese edition: a page ``book/zh/NAME.md`` is written with the labels and paths of ``book/NAME.md``.

When it is read its labels get a prefix, references lead to what the edition has and else to the English pages, and
paths start one folder further down.  Its blocks have the numbers of the English ones, pictures, figures and tables have
Chinese words (``book/zh/words.toml``), and each page leads to its other language.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any

import relabelled
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book" / "zh"
BOOK, EDITION, PREFIX = "book/", "book/zh/", "zh-"
LANGUAGE, NAME = "zh-Hans", "中文"
#: How the edition prints what sphinx-proof prints in English.
KINDS = {
    "Theorem": "定理",
    "Lemma": "引理",
    "Definition": "定义",
    "Algorithm": "算法",
    "Example": "例",
    "Claim": "主张",
    "Conjecture": "主张",
}
#: The words of a verdict (tools/published.py).
TRUE = {"yes": "成立", "after a repair": "修复后成立", "no": "不成立", "open": "未定"}
RELATIONS = {"add-remove": "增删关系", "replace-one": "替换关系"}
READ = {"whole": "原文已通读", "in part": "原文已部分阅读", "second hand": "依据其他论文的描述"}
TIGHT = {"sharp": "界是紧的", "empty": "空泛"}

_LABEL = re.compile(r"^(\s*:label:[ \t]*|\((?=\S+\)=$))([^\s)]+)", re.MULTILINE)
_PATH = re.compile(r"^(\s*:(?:doc|file|link):[ \t]*|\s*[`:]{3,}\{literalinclude\}[ \t]*)(\S+)", re.MULTILINE)
_ROLE = re.compile(r"\{(doc|glue:\w+|prf:ref|eq|ref|numref)\}`(?:([^`<]*)<([^`>]*)>|([^`<]*))`")
_LINK = re.compile(r"\]\(([\w./-]+\.(?:md|ipynb))?(?:#([\w-]+))?\)")
_ADDRESS = re.compile(r'\b(href|src)="(?!#|[\w+.-]+:)([^"#]*)(?:#([^"]*))?"')
#: Where no blank and no end of a line shows: between Chinese letters or quotes, and beside a Chinese stop.
_BLANK = re.compile(
    r"(?<=[\u3000-\u303f\uff00-\uffef])[ \n]+|[ \n]+(?=[\u3000-\u303f\uff00-\uffef])"
    r"|(?<=[\u3400-\u9fff“”])[ \n]+(?=[\u3400-\u9fff“”])"
)
_SAID = re.compile(r'(>|\b(?:aria-label|data-head|title)=")([^<>"]*[^<>"\s][^<>"]*)(?=[<"])')
#: What a square of the chart of claims says of one, as a title and again for who cannot see it.
_SQUARE = re.compile(
    r'(#(pub-[\w-]+)" title=")[^"]*?: ([^:"]*(?: \(as read here: [^)"]*\))?); read (whole|in part|second hand)[^"]*'
    r'("[^\n]*?<span class="hidden">)[^<]*'
)
_WORD = re.compile(rf"({'|'.join(TRUE)})(?: under (both relations|{'|'.join(RELATIONS)}))?")
_NOTEBOOK = re.compile(r"^:doc:[ \t]*\.\./(\S+\.ipynb)", re.MULTILINE)
_TABLE = re.compile(r'<table (?:border="\d+" )?class="(?:dataframe|statements)"')
_ROW = re.compile(r'(<th scope="row"><a href="(\w+)\.html">)[^<]*')
_OF = re.compile(r"(\d+) of (\d+)")
#: Names of places that mean another place on another page.
_NUMBERED = re.compile(r"id\d+|proof|proof-content")
_REFERENCE = re.compile(rf"({'|'.join(KINDS)}) ([\d.]+)")


def labels() -> dict[str, set[str]]:
    """What each page of the edition labels, in the words of the English page."""
    return {
        path.stem: {label for _, label in _LABEL.findall(path.read_text(encoding="utf-8"))}
        for path in sorted(FOLDER.glob("*.md"))
    }


def english(docname: str) -> str:
    """The English page of a page of either language."""
    return BOOK + docname.removeprefix(EDITION) if docname.startswith(EDITION) else docname


def placed(text: str, known: dict[str, set[str]]) -> str:
    """A page of the edition as it is read: its own labels, and paths from its own folder."""
    every = set().union(*known.values())

    def label(name: str) -> str:
        return PREFIX + name if name in every else name

    def page(path: str) -> str:
        return path if path.removesuffix(".md") in known else f"../{path}"

    def role(match: re.Match[str]) -> str:
        kind, words, behind, alone = match.groups()
        target = behind if alone is None else alone
        target = page(target) if kind == "doc" or "::" in target else label(target)
        return f"{{{kind}}}`{target}`" if alone is not None else f"{{{kind}}}`{words}<{target}>`"

    def link(match: re.Match[str]) -> str:
        return f"]({page(match[1]) if match[1] else ''}{'#' + label(match[2]) if match[2] else ''})"

    text = _LABEL.sub(lambda match: match[1] + PREFIX + match[2], text)
    text = _PATH.sub(lambda match: match[1] + page(match[2]), text)
    return _LINK.sub(link, _ROLE.sub(role, text))


def addressed(code: str, known: dict[str, set[str]]) -> str:
    """HTML that was made for the English page, with the addresses of the Chinese one."""

    def address(match: re.Match[str]) -> str:
        name, path, anchor = match.groups()
        here = known.get(path.removesuffix(".html"))
        at = f"#{PREFIX if here is not None and anchor in here else ''}{anchor}" if anchor else ""
        return f'{name}="{path if here is not None else f"../{path}"}{at}"'

    return _ADDRESS.sub(address, code)


@cache
def _words() -> dict[str, Any]:
    """What is in words.toml, with its patterns compiled."""
    found: dict[str, Any] = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))
    for name in ("patterns", "phrases"):
        found[name] = [(re.compile(pattern), said) for pattern, said in found[name].items()]
    return found


def worded(text: str) -> str:
    """What a picture, a chart or a table says, in Chinese; as it is, if words.toml does not have all of it."""
    words = _words()
    plain = text.replace("\u00a0", " ")
    for known in (plain, plain.strip()):  # blanks around it may tell it from others; else they stay
        for texts in (words["texts"], words["notebooks"], words["statements"]):
            if known in texts:
                return plain.replace(known, texts[known])
        for pattern, form in words["patterns"]:
            if match := pattern.fullmatch(known):
                return plain.replace(known, match.expand(form))
    parts = plain.split(", ")
    said = [worded(part) for part in parts] if len(parts) > 1 else parts
    if said != parts and not any(map(_english, said)):
        return "，".join(said)
    phrased = plain
    for pattern, form in words["phrases"]:
        phrased = pattern.sub(form, phrased)
    phrased = re.sub("[,;:] ", lambda mark: {",": "，", ";": "；", ":": "："}[mark[0][0]], phrased)
    return phrased if re.search("[\u4e00-\u9fff]", phrased) and not _english(phrased) else text


def unworded(text: str) -> bool:
    """Whether a text that a Chinese page shows is English: with words that are no names, and no Chinese."""
    return _english(text) and not any("\u4e00" <= sign <= "\u9fff" for sign in text)


def _english(text: str) -> bool:
    """Whether a text has English words that are no names."""
    return bool(re.search("[A-Za-z]{2,}", _kept().sub("", text)))


@cache
def _kept() -> re.Pattern[str]:
    """The names that stay, the longest first."""
    names = sorted(_words()["names"]["kept"], key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")


def _handed_over() -> str:
    """The words for interactive.js, which draws some figures again: patterns, and what they become."""
    words = _words()
    forms = [[re.escape(text), said] for text, said in words["texts"].items()]
    forms += [[pattern.pattern, re.sub(r"\\(?:g<(\d+)>|(\d))", r"$\1\2", said)] for pattern, said in words["patterns"]]
    said = json.dumps(forms, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" class="edition-words">{said}</script>'


def redrawn(code: str) -> str:
    """A picture or a chart with Chinese words; rows lead to chapters by the titles that they have here."""

    def title(match: re.Match[str]) -> str:
        path = FOLDER / f"{match[2]}.md"
        head = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) if path.exists() else None
        return match[1] + escape(head[1]) if head else match[0]

    def words(match: re.Match[str]) -> str:
        plain = unescape(match[2])
        return match[1] + (match[2] if (said := worded(plain)) == plain else escape(said))

    def square(match: re.Match[str]) -> str:
        before, claim, said, how, between = match.groups()
        truth, _, here = said.partition(" (as read here: ")
        told = f"{claim}：{_true(_answered(truth), here and _answered(here))}；{READ[how]}"
        return f"{before}{told}{between}{told}"

    return _SAID.sub(words, _SQUARE.sub(square, _ROW.sub(title, code)))


@cache
def _described(page: Path) -> dict[str, str]:
    """What is in the figures of the notebooks that a page shows, by their pictures."""
    found: dict[str, str] = {}
    for notebook in set(_NOTEBOOK.findall(page.read_text(encoding="utf-8"))):
        found |= relabelled.pictures(ROOT / notebook)
    return found


def _truth(words: Any) -> str:
    said = [TRUE[word] for word in ([words] if isinstance(words, str) else words.values())]
    if len(set(said)) > 1:
        return "，".join(f"{relation}下{word}" for relation, word in zip(RELATIONS.values(), said, strict=True))
    return ("两种关系下均" if len(said) > 1 else "") + said[0]


def _true(words: Any, here: Any) -> str:
    return _truth(words) + (f"（按本书的理解：{_truth(here)}）" if here else "")


def _answered(said: str) -> str | dict[str, str]:
    """The answers of a verdict that is told in English: one, or one for each relation."""
    found = {relation: word for word, relation in _WORD.findall(said)}
    word = found.get("both relations")
    return found.get("") or (dict.fromkeys(RELATIONS, word) if word else found)


def verdict(said: Any) -> str:
    """What a published claim comes to, in Chinese: true or not, how tight, how its paper was read."""
    beside = [TIGHT.get(said.tight) or escape(worded(said.tight))] * bool(said.tight)
    return " · ".join(
        [f"<strong>{_true(said.true, said.here)}</strong>", *beside, *([READ[said.how]] if said.how else [])]
    )


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname.startswith(EDITION):
        source[0] = placed(source[0], labels())


def _headed(line: nodes.paragraph) -> None:
    """A few words that are emphasised at the head of a paragraph are bold: not every machine has the brush."""
    if len(line) and isinstance(line[0], nodes.emphasis) and len(line[0].astext()) <= 12:
        line[0].replace_self(nodes.strong("", "", *line[0].children))


def _joined(block: nodes.Element) -> None:
    """Chinese has no blank where a line of the source ends, nor around words that are emphasised or lead elsewhere."""
    leaves, whole = [], ""
    for leaf in block.findall(nodes.Text):
        leaves.append((leaf, len(whole)))
        code = isinstance(leaf.parent, nodes.literal | nodes.math | nodes.raw)
        whole += "x" * len(leaf) if code else leaf.astext()
    blanks = {at for found in _BLANK.finditer(whole) for at in range(*found.span())}
    for leaf, start in leaves:
        kept = "".join(sign for at, sign in enumerate(leaf.astext(), start) if at not in blanks)
        if kept != leaf.astext():
            leaf.parent.replace(leaf, nodes.Text(kept))


def _outdated(app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """The pages of both languages, where the edition has got other pages or labels."""
    before, now = getattr(env, "edition", None), labels()
    env.edition = now  # type: ignore[attr-defined]
    pages = {place + name for place in (BOOK, EDITION) for name in {*now, *(before or {})}}
    return sorted(pages & env.found_docs) if before != now else []


def _own_numbers(app: Sphinx, env: BuildEnvironment, *_: Any) -> None:
    """Numbers as Sphinx gave them: it looks which are new."""
    env.toc_fignumbers.update(getattr(env, "edition_numbers", {}))


def _numbers(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """A block has the number of the English block; who refers to it is read or written again with that page."""
    own = {page: numbers for page, numbers in env.toc_fignumbers.items() if page.startswith(EDITION)}
    env.edition_numbers = own  # type: ignore[attr-defined]
    before, env.edition_shown = getattr(env, "edition_shown", {}), {}  # type: ignore[attr-defined]
    for page, numbers in own.items():
        there = env.toc_fignumbers.get(english(page), {})
        env.toc_fignumbers[page] = env.edition_shown[page] = {  # type: ignore[attr-defined]
            kind: {name: there.get(kind, {}).get(name.replace(PREFIX, "", 1), number) for name, number in each.items()}
            for kind, each in numbers.items()
        }
    return [page for page, shown in env.edition_shown.items() if before.get(page) != shown]  # type: ignore[attr-defined]


def _chinese(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Words that extensions put on a page, and the addresses of what was made for the English one."""
    if not docname.startswith(EDITION):
        return
    known, knobs = labels(), False
    described = _described(FOLDER / Path(docname).with_suffix(".md").name)
    for raw in doctree.findall(nodes.raw):
        if raw.get("format") == "html":
            code = relabelled.relabelled(raw.astext(), described, worded)
            if "source" in raw.attributes or _TABLE.search(code):  # a file of the book, or what a notebook shows
                code = redrawn(code)
            raw[:] = [nodes.Text(addressed(code, known))]
            knobs = knobs or "data-figure=" in code
    if knobs:
        next(doctree.findall(nodes.section)).append(nodes.raw("", _handed_over(), format="html"))
    for block in doctree.findall(nodes.Admonition):
        if "realtype" in block.attributes:
            block["realtype"] = KINDS[block["realtype"].title()]
        elif block.get("classes") == ["proof", "proof"] and (first := next(block.findall(nodes.Text), None)):
            first.parent.replace(first, nodes.Text(first.astext().replace("Proof. ", "证明　", 1)))
    for glued in doctree.findall(lambda node: isinstance(node, nodes.inline) and "pasted-text" in node["classes"]):
        for text in list(glued.findall(nodes.Text)):
            if found := _OF.fullmatch(text.astext()):
                text.parent.replace(text, nodes.Text(f"{found[1]}/{found[2]}"))
    for reference in doctree.findall(nodes.reference):
        for text in list(reference.findall(nodes.Text)):
            if found := _REFERENCE.fullmatch(text.astext()):
                text.parent.replace(text, nodes.Text(f"{KINDS[found[1]]} {found[2]}"))
    for note in list(doctree.findall(nodes.note)):
        note.replace_self(nodes.admonition("", nodes.title("", "注"), *note.children, classes=["note"]))
    for line in doctree.findall(nodes.paragraph):
        _headed(line)
    for block in list(doctree.findall(nodes.TextElement)):
        if not isinstance(block, nodes.Inline | nodes.FixedTextElement):
            _joined(block)


def places(here: nodes.document, there: nodes.document) -> dict[str, str]:
    """The anchors of an English page, and those of the same places of its Chinese page.

    Sections have names of their own in each language, and follow each other in the same order.
    """
    own, other = (
        {name for node in page.findall(nodes.Element) for name in node["ids"] if not _NUMBERED.fullmatch(name)}
        for page in (here, there)
    )
    found = {}
    for name in sorted(own):
        for both in name.replace("equation-", f"equation-{PREFIX}", 1), PREFIX + name, name:
            if both in other:
                found.setdefault(name, both)
    sections = [list(page.findall(nodes.section)) for page in (here, there)]
    if len(sections[0]) == len(sections[1]):
        for one, two in zip(*sections, strict=True):
            found |= {name: two["ids"][0] for name in one["ids"] if name in own - set(found)}
    return found


def _other_language(app: Sphinx, page: str, _: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Say a page's language, and lead to its other one."""
    chinese, twin = page.startswith(EDITION), english(page)
    if doctree is None or not twin.startswith(BOOK) or twin.removeprefix(BOOK) not in labels():
        return
    uri = app.builder.get_target_uri
    pages = {"en": twin, LANGUAGE: EDITION + twin.removeprefix(BOOK)}
    site = str(app.config.html_baseurl)
    for language, other in pages.items():
        address = site + uri(other) if site else relative_uri(uri(page), uri(other)) or Path(uri(page)).name
        link = f'\n<link rel="alternate" hreflang="{language}" href="{escape(address)}">'
        context["metatags"] = context.get("metatags", "") + link
    language, name = ("en", "English") if chinese else (LANGUAGE, NAME)
    there = relative_uri(uri(page), uri(pages[language]))
    known = places(*(app.env.get_doctree(pages[one]) for one in ("en", LANGUAGE)))
    kept = escape(json.dumps({zh: en for en, zh in known.items()} if chinese else known, ensure_ascii=False))
    at = f'href="{there}" lang="{language}" hreflang="{language}" data-places="{kept}"'
    switch = f'<p class="edition"><a {at}>{name}</a></p>'
    context["body"] = f"{switch}\n{context['body']}"
    if chinese:
        context["language"] = LANGUAGE


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; numbers are changed after Sphinx has given them, words after the other extensions."""
    app.connect("source-read", _read)
    app.connect("env-get-outdated", _outdated)
    app.connect("env-before-read-docs", _own_numbers)
    app.connect("env-get-updated", _numbers, priority=900)
    app.connect("doctree-resolved", _chinese, priority=900)
    app.connect("html-page-context", _other_language, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
