"""The Chinese edition beside the English pages: what a translation must keep, and of which text it is one.

A page is cut into pieces: paragraphs, and blocks of code.  What a piece states in other signs than words is its
skeleton: blocks, labels, references, numbers from notebooks, figures, formulas, code, citations, numbers, headings.  A
translation has the same pieces in the same order, and each has the skeleton of the English one.

``python -m tools.editions --store`` notes in each Chinese page the digest of the English page that it translates.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
EDITION = BOOK / "zh"

#: Fences whose inside is prose; that of all others is kept as it is.
_PROSE = re.compile(r"\{(?:admonition|prf:\w+|dropdown|tab-set|tab-item|note|tip|warning|important|grid[\w-]*)\}")
_FENCE = re.compile(r"\s*(`{3,}|:{3,}|~{3,})(.*)")
_OPTION = re.compile(r"^\s*:([\w-]+):[ \t]*(.*)$", re.MULTILINE)
#: Options that are prose; of these only the name is kept.
_WORDS = {"alt", "caption"}
_ROLE = re.compile(r"\{([\w:+-]+)\}`(?:[^`<]*<([^`>]*)>|([^`]*))`")
_MATH = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
_HEAD = re.compile(r"---\ntranslated-from: (\w+)\n---\n+")
_DIGIT = re.compile(r"(?<![A-Za-z\d.])(\d+(?:[.,]\d+)*)(?![A-Za-z\d])")
#: A part of a chapter's head, which the edition writes in words.
_HEADING = "*In 20 minutes.*"
#: Numbers that English writes as words, where Chinese may write digits.  (It may also say a number again that English
#: leaves out the second time; another number is seen by the one that is lacking.)
_SPELLED = {
    "0": "zeros?", "1": "ones?|single|first|once", "2": "two|second|twice|double|both|half", "3": "three|third|thirds",
    "4": "four|fourth|quarter", "5": "five|fifth", "6": "six|sixth", "7": "seven|seventh", "8": "eight|eighth",
    "9": "nine|ninth", "10": "ten|tenth", "11": "eleven", "12": "twelve", "20": "twenty|twentieth",
    "100": "hundred|hundredth", "1000": "thousand",
}  # fmt: skip


def pages() -> list[str]:
    """The pages of the edition."""
    return sorted(path.stem for path in EDITION.glob("*.md"))


def digest(english: str) -> str:
    """Of the English text that a page translates."""
    return hashlib.sha256(english.encode()).hexdigest()[:16]


def text_of(page: str) -> tuple[str, str, str]:
    """The English text, the digest that the Chinese page notes ('' where it notes none), and its text."""
    english, chinese = ((folder / f"{page}.md").read_text(encoding="utf-8") for folder in (BOOK, EDITION))
    head = _HEAD.match(chinese)
    return english, head[1] if head else "", chinese[head.end() if head else 0 :]


def pieces(text: str) -> list[tuple[int, str, bool]]:
    """The paragraphs and the blocks of code: the line where each begins, its text, and whether it is code."""
    found: list[tuple[int, str, bool]] = []
    lines: list[str] = []
    closing = ""  # of the block of code that is open

    def close(number: int, code: bool = False) -> None:
        if lines:
            found.append((number - len(lines) + 1, "\n".join(lines), code))
            lines.clear()

    for number, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.fullmatch(line)
        if closing:
            lines.append(line)
            if line.strip() == closing:
                close(number, code=True)
                closing = ""
        elif fence and fence[2].strip() and not _PROSE.match(fence[2]):
            close(number - 1)
            lines.append(line)
            closing = fence[1]
        elif line.strip():
            lines.append(line)
        else:
            close(number - 1)
    close(len(text.splitlines()))
    return found


def skeleton(piece: str, code: bool) -> Counter[str]:
    """What a piece states in other signs than words, each with how often."""
    if code:
        return Counter({f"the block {_without_words(piece)!r}": 1})
    found: Counter[str] = Counter()

    def take(kind: str, pattern: re.Pattern[str], text: str) -> str:
        def out(match: re.Match[str]) -> str:
            groups = [group for group in match.groups() if group is not None]
            found[f"{kind} {' '.join(groups)}".strip()] += 1
            return " "

        return pattern.sub(out, text)

    text = take("the label", re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE), piece.replace(_HEADING, "*In short.*"))
    for name, value in _OPTION.findall(text):
        found[f"the option {name} {'' if name in _WORDS else value}".strip()] += 1
    text = _OPTION.sub(" ", text)
    text = take("the block", re.compile(r"^\s*(?:`{3,}|:{3,})(\{[\w:-]+\}|$)", re.MULTILINE), text)
    text = take("a heading of level", re.compile(r"^(#+)(?= )", re.MULTILINE), text)
    text = take("a list item", re.compile(r"^\s*([-*]|\d+\.)(?= )", re.MULTILINE), text)
    text = take("the reference", _ROLE, text)
    for display, inline in _MATH.findall(text):
        found[f"the formula {_formula(display or inline)}"] += 1
    text = _MATH.sub(" ", text)
    text = take("the code", re.compile(r"`([^`]+)`"), text)
    text = take("the link", re.compile(r"(?<=\])\(([^)#]*)(?:#[^)]*)?\)"), text)
    text = take("the tag", re.compile(r"(<[^>]*>)"), text)
    if cells := len(re.findall(r"(?m)^\s*\|.*\|", text)):
        found[f"{cells} rows of {text.count('|')} bars"] += 1
    take("the number", _DIGIT, text)
    return found


def _formula(formula: str) -> str:
    """A formula without its words and without what only spaces it out."""
    formula = re.sub(r"\\(?:text|mathrm|textit)\{[^{}]*\}", r"\\text{}", formula)
    return re.sub(r"\s|\\[,;! ]|\\q?quad(?![a-z])|[.,，。；;]+$", "", formula)


def _without_words(block: str) -> str:
    """A block of code as it is, without the options that are prose."""
    return re.sub(rf"(?m)^(\s*:(?:{'|'.join(_WORDS)}):).*$", r"\1", block)


def differences(page: str, english: str, chinese: str) -> list[str]:
    """Where a translation has another skeleton, one sentence each."""
    ours, theirs = pieces(english), pieces(chinese)
    out = []
    for (line, piece, code), (there, translated, also) in zip(ours, theirs, strict=False):
        mine, other = skeleton(piece, code), skeleton(translated, also)
        more = other - mine
        for item in [item for item in more if item.startswith("the number ")]:
            spelled = _SPELLED.get(item.removeprefix("the number "))
            if item in mine or (spelled and re.search(rf"\b(?:{spelled})\b", piece.lower())):
                del more[item]
        where = f"book/zh/{page}.md, line {there} (English: line {line})"
        out += [f"{where}: lacks {item}" for item in mine - other]
        out += [f"{where}: {item} is not in the English text" for item in more]
        words = re.findall(r"[A-Za-z]{2,}", _MATH.sub("", _ROLE.sub("", piece)))
        if translated == piece and not code and len(words) > 12 and not _abstract(english, line):
            out.append(f"{where}: is not translated")
        if out and len(ours) != len(theirs):
            break
    if len(ours) != len(theirs):
        out.insert(0, f"book/zh/{page}.md: has {len(theirs)} paragraphs and blocks of code, book/{page}.md {len(ours)}")
    return out


def _abstract(english: str, line: int) -> bool:
    """Whether a line is in an abstract that a page has in both languages."""
    above = "\n".join(english.splitlines()[:line])
    start = above.rfind("Abstract / 摘要")
    return start >= 0 and "</div>" not in above[start:]


def outdated(page: str, english: str, noted: str) -> list[str]:
    """One sentence, where the English page is another than the one that was translated."""
    if noted == digest(english):
        return []
    return [
        f"book/{page}.md has changed since it was translated: look at book/zh/{page}.md, then run "
        "python -m tools.editions --store"
    ]


def store(page: str) -> None:
    """Note in a Chinese page that it translates the English page as it is now."""
    english, _, chinese = text_of(page)
    head = f"---\ntranslated-from: {digest(english)}\n---\n\n"
    (EDITION / f"{page}.md").write_text(head + chinese, encoding="utf-8")


if __name__ == "__main__":
    texts = {page: text_of(page) for page in pages()}
    wrong = [fault for page, (english, _, chinese) in texts.items() for fault in differences(page, english, chinese)]
    if "--store" in sys.argv[1:] and not wrong:
        for each in texts:
            store(each)
    elif "--store" not in sys.argv[1:]:
        wrong += [fault for page, (english, noted, _) in texts.items() for fault in outdated(page, english, noted)]
    print("\n".join(wrong) or f"{len(texts)} pages have the skeleton of the English ones")
    sys.exit(bool(wrong))
