"""The Chinese edition: each page has the skeleton of the English page that it translates, as that page is now."""

from __future__ import annotations

import base64
import io
import json
import re
import runpy
import sys
import unicodedata
from collections import Counter
from functools import cache
from html import escape, unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from docutils import nodes
from PIL import Image
from scipy import ndimage

from dpforest.study import figures, plots
from tests import not_run
from tools import editions, published

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_extensions"))
EXTENSION = runpy.run_path(str(ROOT / "book" / "_extensions" / "editions.py"))
FIGURES = runpy.run_path(str(ROOT / "book" / "_extensions" / "relabelled.py"))
PAGES = editions.pages()
MARKS = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").glob("test_*.py")))


# --- the pages -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_skeleton_of_the_english_one(page: str) -> None:
    english, _, chinese = editions.text_of(page)
    assert editions.differences(page, english, chinese) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_translates_the_english_one_as_it_is_now(page: str) -> None:
    english, noted, _ = editions.text_of(page)
    assert editions.outdated(page, english, noted) == []


def test_the_book_has_all_pages_of_the_edition_in_one_part() -> None:
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    listed = {part["caption"]: [chapter["file"] for chapter in part["chapters"]] for part in parts}
    assert sorted(listed["中文"]) == [f"book/zh/{page}" for page in PAGES]
    assert not [file for caption, files in listed.items() for file in files if "/zh/" in file and caption != "中文"]


#: Of words that mean the same the edition has one: what it writes, and what it does not.
SYNONYMS = {
    "相邻": "邻近|邻接",
    "串行组合": "顺序组合|序列组合",
    "变化极差": "得分差范围|极差范围",
    "泄露": "泄漏",
    "叶子": "叶结点|叶节点",
    "节点": "结点",
    "候选项": "候选者",
    "双侧几何": "双边几何",
    "重排翻转": "排列翻转|置换翻转",
    "notebook": "笔记本",
    "几率": "胜率",
    "所交付的": "实际发布的",
    "舍去": "丢弃剩余",
}


def other_words(text: str) -> dict[str, list[str]]:
    text = text.replace("又称置换翻转机制", "")  # as an abstract adds
    found = {word: re.findall(others, text) for word, others in SYNONYMS.items()}
    return {word: others for word, others in found.items() if others}


@pytest.mark.parametrize("name", [*(f"{page}.md" for page in PAGES), "words.toml"])
def test_one_term_has_one_word(name: str) -> None:
    assert other_words((editions.EDITION / name).read_text(encoding="utf-8")) == {}


def test_another_word_for_a_term_is_seen() -> None:
    assert other_words("两个邻近数据集，顺序组合，相邻数据集") == {"相邻": ["邻近"], "串行组合": ["顺序组合"]}


# --- what the comparison sees ----------------------------------------------------------------------------------------
ENGLISH = """# Budgets

:::{admonition} In short
:class: chapter-head

*In 20 minutes.* [](#shares) and {doc}`privacy`.
:::

## Shares

By {cite:p}`someone2020` the share at 3 levels is {glue:text}`../notebooks/rendered/b.ipynb::share:.2f`, of $\\eps$.

````{prf:theorem} A budget
:label: thm-budget

With two records

$$
\\eps_k = \\frac{\\eps}{d} \\quad \\text{for all } k.
$$
````

```{glue:any} fig_split
:doc: ../notebooks/rendered/b.ipynb
```

| rule | `cost` |
|---|---|
| stop, as {prf:ref}`thm-budget` has it | $\\infty$ |

```python
x = 1
```
"""
CHINESE = """# 预算

:::{admonition} 提要
:class: chapter-head

*二十分钟读法。* [](#份额) 和 {doc}`privacy`。
:::

## 份额

由 {cite:p}`someone2020`，$\\eps$ 在 3 层时的份额为 {glue:text}`../notebooks/rendered/b.ipynb::share:.2f`。

````{prf:theorem} 一种预算
:label: thm-budget

对 2 条记录，

$$
\\eps_k = \\frac{\\eps}{d} \\quad \\text{对所有 } k。
$$
````

```{glue:any} fig_split
:doc: ../notebooks/rendered/b.ipynb
```

| 规则 | `cost` |
|---|---|
| 停止，如 {prf:ref}`thm-budget` | $\\infty$ |

```python
x = 1
```
"""


def test_a_translation_passes() -> None:
    assert editions.differences("budgets", ENGLISH, CHINESE) == []


@pytest.mark.parametrize(
    ("planted", "instead", "seen"),
    [
        ("在 3 层", "在 4 层", "lacks the number 3"),
        ("对 2 条", "对 5 条", "the number 5 is not in the English text"),
        ("::share:.2f", "::shares:.2f", "lacks the reference glue:text ../notebooks/rendered/b.ipynb::share:.2f"),
        (":label: thm-budget\n", ":label: thm-budgets\n", "lacks the option label thm-budget"),
        ("\\frac{\\eps}{d}", "\\frac{\\eps}{2d}", "lacks the formula \\eps_k=\\frac{\\eps}{d}\\text{}k"),
        ("$\\infty$", "$0$", "lacks the formula \\infty"),
        ("{cite:p}`someone2020`", "某人", "lacks the reference cite:p someone2020"),
        ("，如 {prf:ref}`thm-budget`", "", "lacks the reference prf:ref thm-budget"),
        ("fig_split", "fig_other", "lacks the block '```{glue:any} fig_split"),
        ("x = 1", "x = 2", "lacks the block '```python\\nx = 1"),
        ("`cost`", "`价格`", "lacks the code cost"),
        ("## 份额", "### 份额", "lacks a heading of level ##"),
        ("| 停止，如", "停止，如", "lacks 3 rows of 9 bars"),
        (":class: chapter-head\n", "", "lacks the option class chapter-head"),
        ("[](#份额)", "份额", "lacks the link"),
    ],
)
def test_what_is_planted_in_a_translation_is_seen(planted: str, instead: str, seen: str) -> None:
    assert planted in CHINESE
    found = editions.differences("budgets", ENGLISH, CHINESE.replace(planted, instead, 1))
    assert any(seen in fault for fault in found), found
    assert all(re.match(r"book/zh/budgets\.md, line \d+ \(English: line \d+\): ", fault) for fault in found)


@pytest.mark.parametrize("dropped", ["theorem", "figure"])
def test_what_is_dropped_is_seen_first(dropped: str) -> None:
    block = {"theorem": r"````\{prf:theorem\}.*?````\n\n", "figure": r"```\{glue:any\}.*?```\n\n"}[dropped]
    shorter = re.sub(block, "", CHINESE, flags=re.DOTALL)
    first, second, *_ = editions.differences("budgets", ENGLISH, shorter)
    lost = {"theorem": 3, "figure": 1}[dropped]
    count = len(editions.pieces(ENGLISH))
    assert first == f"book/zh/budgets.md: has {count - lost} paragraphs and blocks of code, book/budgets.md {count}"
    assert {"theorem": "thm-budget", "figure": "fig_split"}[dropped] in second


def test_what_is_not_translated_is_seen() -> None:
    words = "This is a sentence of the English page that no one has translated into Chinese as yet.\n"
    (fault,) = editions.differences("budgets", f"{ENGLISH}\n{words}", f"{CHINESE}\n{words}")
    assert fault.endswith(": is not translated")
    abstract = f'\n:::{{dropdown}} Abstract / 摘要\n{words}\n<div lang="zh">\n\n摘要。\n\n</div>\n:::\n'
    assert editions.differences("budgets", ENGLISH + abstract, CHINESE + abstract) == []


def test_a_page_whose_english_one_has_changed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editions, "BOOK", tmp_path)
    monkeypatch.setattr(editions, "EDITION", tmp_path / "zh")
    (tmp_path / "zh").mkdir()
    (tmp_path / "budgets.md").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "zh" / "budgets.md").write_text(CHINESE, encoding="utf-8")
    english, noted, chinese = editions.text_of("budgets")
    said = (
        "book/budgets.md has changed since it was translated: look at book/zh/budgets.md, then run "
        "python -m tools.editions --store"
    )
    assert (noted, chinese, editions.outdated("budgets", english, noted)) == ("", CHINESE, [said])
    for _ in range(2):
        editions.store("budgets")
        english, noted, chinese = editions.text_of("budgets")
        assert (chinese, editions.outdated("budgets", english, noted)) == (CHINESE, [])
    assert editions.outdated("budgets", english + "\nOne more sentence.\n", noted) == [said]


# --- what the extension makes of them --------------------------------------------------------------------------------
KNOWN = {"budgets": {"thm-budget", "a-target"}, "tree": {"thm-tree"}}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (":label: thm-budget", ":label: zh-thm-budget"),
        ("(a-target)=", "(zh-a-target)="),
        ("{prf:ref}`thm-tree`", "{prf:ref}`zh-thm-tree`"),
        ("{prf:ref}`定理 <thm-tree>`", "{prf:ref}`定理 <zh-thm-tree>`"),
        ("{prf:ref}`thm-elsewhere`", "{prf:ref}`thm-elsewhere`"),
        ("{doc}`tree`", "{doc}`tree`"),
        ("{doc}`词 <scores>`", "{doc}`词 <../scores>`"),
        ("{doc}`词 <../notebooks/rendered/b>`", "{doc}`词 <../../notebooks/rendered/b>`"),
        ("{glue:text}`../notebooks/b.ipynb::x:.2f`", "{glue:text}`../../notebooks/b.ipynb::x:.2f`"),
        ("```{glue:any} fig\n:doc: ../notebooks/b.ipynb\n```", "```{glue:any} fig\n:doc: ../../notebooks/b.ipynb\n```"),
        ("```{literalinclude} ../dpforest/x.py", "```{literalinclude} ../../dpforest/x.py"),
        (":file: _static/x.svg", ":file: ../_static/x.svg"),
        (":link: claims\n:link-type: doc", ":link: ../claims\n:link-type: doc"),
        ("[它](../notebooks/b.ipynb), [b](budgets.md)", "[它](../../notebooks/b.ipynb), [b](budgets.md)"),
        ("[](#a-target), [](#份额), [](scores.md#thm-x)", "[](#zh-a-target), [](#份额), [](../scores.md#thm-x)"),
        ("x[1](y), {py:func}`~dpforest.x`, {cite:p}`tree`", "x[1](y), {py:func}`~dpforest.x`, {cite:p}`tree`"),
    ],
)
def test_a_page_is_read_with_its_own_labels_and_paths(written: str, read: str) -> None:
    assert EXTENSION["placed"](written, KNOWN) == read


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        ('<a href="tree.html#thm-tree">', '<a href="tree.html#zh-thm-tree">'),
        ('<a href="tree.html#exp-x">', '<a href="tree.html#exp-x">'),
        ('<a href="scores.html#thm-x">', '<a href="../scores.html#thm-x">'),
        ('<a href="#x">, <a href="https://example.org/x">', '<a href="#x">, <a href="https://example.org/x">'),
    ],
)
def test_what_was_made_for_the_english_page_leads_to_the_same_from_the_chinese_one(made: str, shown: str) -> None:
    assert EXTENSION["addressed"](made, KNOWN) == shown


def test_a_block_has_the_number_of_the_english_one() -> None:
    env = SimpleNamespace(
        toc_fignumbers={
            "book/budgets": {"theorem": {"thm-budget": (5, 1)}},
            "book/zh/budgets": {"theorem": {"zh-thm-budget": (7,), "zh-thm-new": (8,)}},
        }
    )
    assert EXTENSION["_numbers"](None, env) == ["book/zh/budgets"]
    assert env.toc_fignumbers["book/zh/budgets"] == {"theorem": {"zh-thm-budget": (5, 1), "zh-thm-new": (8,)}}
    EXTENSION["_own_numbers"](None, env)
    assert env.toc_fignumbers["book/zh/budgets"]["theorem"]["zh-thm-budget"] == (7,)
    assert EXTENSION["_numbers"](None, env) == []  # nothing is new


def test_a_verdict_has_all_its_words() -> None:
    both = {"add-remove": "yes", "replace-one": "after a repair"}
    verdict = EXTENSION["verdict"]
    assert verdict(published.Published(both, "sharp", "whole")) == (
        "<strong>增删关系下成立，替换关系下修复后成立</strong> · 界是紧的 · 原文已通读"
    )
    opened = published.Published(dict.fromkeys(both, "open"), "", "second hand (by table 1)", dict.fromkeys(both, "no"))
    assert verdict(opened) == (
        "<strong>两种关系下均未定（按本书的理解：两种关系下均不成立）</strong> · 依据其他论文的描述"
    )
    loose = published.Published(both, "loose by up to 2 under add-remove", "whole")
    assert " · 增删关系下不紧，至多相差 2 倍 · " in verdict(loose)
    assert set(EXTENSION["TRUE"]) == set(published.TRUE)
    assert tuple(EXTENSION["RELATIONS"]) == published.RELATIONS
    assert set(EXTENSION["READ"]) == set(published.READ)


@pytest.mark.parametrize("page", PAGES)
def test_how_tight_a_claim_of_a_page_is_has_chinese_words(page: str) -> None:
    for claim in re.findall(r"^:label: (pub-[\w-]+)$", editions.text_of(page)[2], re.MULTILINE):
        tight = set(re.findall(rf'"{claim}",[^@]*?\btight="(.*?)"', MARKS)) - set(EXTENSION["TIGHT"])
        assert [said for said in tight if EXTENSION["_english"](EXTENSION["worded"](said))] == []


def test_a_square_of_the_chart_says_its_verdict() -> None:
    square = (
        '<a class="published" href="x.html#pub-x" title="The noise: its law: {0}"><span class="half no">✗</span>'
        '<span class="hidden">pub-x, The noise: its law: {0}</span></a>'
    )
    said = "open under add-remove, yes under replace-one (as read here: no under both relations); read in part (page 1)"
    told = "pub-x：增删关系下未定，替换关系下成立（按本书的理解：两种关系下均不成立）；原文已部分阅读"
    shown = EXTENSION["redrawn"](square.format(said))
    assert re.findall(r'title="(.*?)"', shown) == re.findall('"hidden">(.*?)<', shown) == [told]
    assert 'title="pub-x：不成立；原文已通读"' in EXTENSION["redrawn"](square.format("no; read whole"))


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([" 一，", "\n", "二 a", "\n", "三"], " 一，二 a\n三"),  # as MyST parts them
        (["一", "\n"], "一\n"),
        (["把 ", nodes.emphasis("", "停止"), " 作为候选项"], "把停止作为候选项"),
        (["由 ", nodes.reference("", "定理 3.1"), " 证明 ", nodes.reference("", "A"), "。"], "由定理 3.1 证明 A。"),
        ([nodes.strong("", "前提。"), " ", nodes.math("", "M"), " 的损失"], "前提。M 的损失"),
        (["按 ", nodes.literal("", "一 ，二"), " 读"], "按 一 ，二 读"),
        (["the words “one” of it"], "the words “one” of it"),
    ],
)
def test_chinese_has_no_blank_between_its_own_signs(parts: list[Any], shown: str) -> None:
    block = nodes.paragraph()
    block += [nodes.Text(part) if isinstance(part, str) else part for part in parts]
    EXTENSION["_joined"](block)
    assert block.astext() == shown


def test_the_head_of_a_paragraph_is_bold() -> None:
    caption, headed = nodes.paragraph("", "", nodes.emphasis("", "整数噪声，以及它所取代的分布。")), nodes.paragraph()
    headed += [nodes.emphasis("", "例。"), nodes.Text("取"), nodes.emphasis("", "一")]
    stated = nodes.paragraph("", "", nodes.emphasis("", "有放回抽样不需要任何代价。"), nodes.Text("（前提）"))
    for line in (caption, headed, stated):
        EXTENSION["_headed"](line)
    assert [type(part) for part in headed] == [nodes.strong, nodes.Text, nodes.emphasis]
    assert isinstance(caption[0], nodes.emphasis)
    assert isinstance(stated[0], nodes.emphasis)


SHOWN = sorted({file for page in PAGES for file in re.findall(r":file: (_static/\S+)", editions.text_of(page)[2])})


@pytest.mark.parametrize("file", SHOWN)
def test_pictures_and_charts_have_chinese_words(file: str) -> None:
    drawn = EXTENSION["redrawn"]((ROOT / "book" / file).read_text(encoding="utf-8"))
    drawn = re.sub(r'<th scope="row"><a.*?</th>', "", drawn)
    said = [text for _, text in EXTENSION["_SAID"].findall(drawn)]
    english = [text for text in said if re.search(r"[A-Za-z]{2,}", text) and not re.search("[\u4e00-\u9fff]", text)]
    assert english == [], "write them in book/zh/words.toml"


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if "interactive/" in editions.text_of(page)[2]])
def test_what_is_drawn_again_has_chinese_words(page: str, browser: Any) -> None:
    built = ROOT / "_build" / "html" / "book" / "zh" / f"{page}.html"
    if not built.exists():
        pytest.skip(not_run.BOOK)
    browser.get(built.as_uri())
    said = browser.execute_script(
        """
        const figure = document.querySelector("figure.knobs"), knob = figure.querySelector("input[type=range]");
        knob.value = knob.max;
        knob.dispatchEvent(new Event("input", { bubbles: true }));
        return [...figure.querySelectorAll("svg text, .said, th")].map(n => n.textContent);
        """
    )
    assert len(said) > 5
    assert [text for text in said if re.search(r"[A-Za-z]{2,}", text) and not re.search("[\u4e00-\u9fff]", text)] == []


def test_words_of_pictures_keep_their_numbers() -> None:
    words = EXTENSION["_words"]()
    numbers = re.compile(r"\d+(?:[.,]\d+)*")
    for name in ("texts", "notebooks", "statements"):
        said = {text: chinese for text, chinese in words[name].items() if chinese}
        assert [each for each in said.items() if len({tuple(sorted(numbers.findall(text))) for text in each}) > 1] == []
    for pattern, form in [*words["patterns"], *words["phrases"]]:
        kept = [int(a or b) for a, b in re.findall(r"\\(?:g<(\d+)>|(\d))", form)]
        assert sorted(kept) == list(range(1, pattern.groups + 1)), pattern.pattern
    assert EXTENSION["worded"]("ill 29") == "患病 29"
    assert EXTENSION["worded"]("not in the list") == "not in the list"


# --- what notebooks draw and print -----------------------------------------------------------------------------------
@cache
def outputs(notebook: str) -> dict[str, str]:
    """What a rendering of record hands to chapters as HTML, by its name."""
    record = json.loads((ROOT / "notebooks" / "record" / f"{notebook}.ipynb").read_text(encoding="utf-8"))
    found = {}
    for output in (output for cell in record["cells"] for output in cell.get("outputs", [])):
        name = output.get("metadata", {}).get("scrapbook", {}).get("name")
        for kind, said in output.get("data", {}).items() if name else ():
            if kind.endswith("text/html"):
                found[name] = "".join(said)
    return found


@cache
def described(notebook: str) -> dict[str, str]:
    return FIGURES["pictures"](ROOT / "notebooks" / "record" / f"{notebook}.ipynb")


SHOWING = [
    (page, notebook, key)
    for page in PAGES
    for key, notebook in re.findall(
        r"\{glue:any\} (\S+)\n:doc: \.\./notebooks/rendered/(\w+)\.ipynb", editions.text_of(page)[2]
    )
]
DRAWN = [key for key in SHOWING if FIGURES["_PICTURE"].search(outputs(key[1])[key[2]])]
PRINTED = [key for key in SHOWING if key not in DRAWN]


def labels(notebook: str, key: str) -> list[str]:
    """The words of a figure, with those for who cannot see it, or of a table as a Chinese page has them."""
    code, worded = outputs(notebook)[key], EXTENSION["worded"]
    if match := FIGURES["_PICTURE"].search(code):
        said = [text for _, text in FIGURES["texts"](described(notebook)[match[2]])]
        return [worded(text) for text in [unescape(match[1]), *said]]
    assert EXTENSION["_TABLE"].search(code)
    table = re.sub(r"<code>[^<]*</code>|<q .*?</q>", "", EXTENSION["redrawn"](code))
    return [unescape(text) for _, text in EXTENSION["_SAID"].findall(table)]


@pytest.mark.parametrize(("page", "notebook", "key"), SHOWING, ids=[f"{page}-{key}" for page, _, key in SHOWING])
def test_figures_and_tables_of_notebooks_have_chinese_words(page: str, notebook: str, key: str) -> None:
    said = labels(notebook, key)
    assert said
    assert [text for text in said if EXTENSION["unworded"](text)] == [], "write them in book/zh/words.toml"


def breadth(text: str, size: float) -> float:
    """About how many pixels a text is long."""
    signs = sum(1 if unicodedata.east_asian_width(sign) in "WF" else 0.6 for sign in text)
    return signs * size * FIGURES["DPI"] / 72


@pytest.mark.parametrize(("page", "notebook", "key"), PRINTED, ids=[f"{page}-{key}" for page, _, key in PRINTED])
def test_tables_keep_their_numbers(page: str, notebook: str, key: str) -> None:
    def numbers(table: str) -> list[list[str]]:
        cells = re.findall(r"<t[dh](?! scope)[^>]*>(?!<b>)(.*?)</t[dh]>", table, re.DOTALL)
        return [sorted(re.findall(r"\d+(?:[.,]\d+)*", unescape(re.sub("<[^>]*>", "", cell)))) for cell in cells]

    code = outputs(notebook)[key]
    assert sum(map(len, numbers(code))) > 2
    assert numbers(EXTENSION["redrawn"](code)) == numbers(code)


@pytest.mark.parametrize(("page", "notebook", "key"), DRAWN, ids=[f"{page}-{key}" for page, _, key in DRAWN])
def test_in_a_figure_nothing_but_words_is_covered(page: str, notebook: str, key: str) -> None:
    _, source = FIGURES["_PICTURE"].search(outputs(notebook)[key]).groups()
    picture, worded = base64.b64decode(source), EXTENSION["worded"]
    said = {each: times for each, times in FIGURES["texts"](described(notebook)[source]).items()}
    said = {each: times for each, times in said.items() if worded(each[1]) != each[1]}
    places = FIGURES["places"](picture, Counter(said))
    found, asked = Counter(place.whole for place in places), Counter({text: 0 for _, text in said})
    for (_, text), times in said.items():
        asked[text] += times
    assert {text: found[text] for text, times in asked.items() if found[text] < max(1, times)} == {}, "not found"
    grey = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))
    ink = np.zeros(grey.shape, dtype=bool)
    for place in places:
        drawn = FIGURES["_ink"](place.text, place.size, place.role == "y") > 0
        ink[place.top : place.top + place.height, place.left : place.left + place.width] |= drawn
    ink = ndimage.binary_dilation(ink, np.ones((5, 5)))
    boxes = {place: FIGURES["covered"](place) for place in places}
    for place, (left, top, width, height) in boxes.items():
        box = np.s_[top : top + height, left : left + width]
        assert (grey[box][~ink[box]] > 200).all(), f"{place} hides more than a line of the grid"
        # The Chinese text has room: no edge of the picture and no other text is in its way.
        if place.role != "y":
            long = breadth(worded(place.text), place.size)
            fixed = {"middle": 0.5, "end": 1}.get(FIGURES["ANCHORS"].get(place.role), 0)
            start = left + fixed * (width - long)
            assert 0 <= start <= grey.shape[1] - long, (place, start, long)
            for other, (there, below, wide, high) in boxes.items():
                apart = other == place or below >= top + height or below + high <= top
                assert apart or there + wide <= start or there >= start + long, (place, other)


def test_a_figure_is_the_same_picture_with_words_on_it() -> None:
    made = relabelled_figure()
    code = f'<img alt="A title" src="data:image/png;base64,{made.source}">'
    words = {"A title": "标题", "noise": "噪声 <", "in noise": "在噪声中", "gap, long": "差距"}
    shown = FIGURES["relabelled"](code, {made.source: made.described}, lambda text: words.get(text, text))
    assert f'<img alt="标题" src="data:image/png;base64,{made.source}"><svg' in shown
    marks = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"/><text[^>]*>([^<]*)<', shown)
    assert sorted(text for *_, text in marks) == ["噪声 &lt;", "在噪声中", "差距", "标题"]
    for *box, text in marks:
        left, top, width, height = map(int, box)
        english = next(word for word, said in words.items() if escape(said) == text)
        x0, y0, x1, y1 = made.boxes[english]
        assert x0 - 3 <= left <= left + width <= x1 + 3, english
        assert y0 - 3 <= top <= top + height <= y1 + 3, english
    assert FIGURES["relabelled"](code, {}, lambda text: text).startswith('<div class="relabelled"><img alt="A title"')


def relabelled_figure() -> SimpleNamespace:
    """A figure whose texts are known, and where they are in pixels from above."""
    made, panel = plots.figure()
    panel.plot([0, 1], [0, 1], label="in noise")
    panel.set(title="A title", xlabel="noise", ylabel="gap, long")
    panel.legend()
    data = io.BytesIO()
    made.dpi = FIGURES["DPI"]
    made.savefig(data, format="png", dpi=made.dpi)
    written = [panel.title, panel._left_title, panel.xaxis.label, panel.yaxis.label, *panel.get_legend().get_texts()]
    boxes = {}
    for text in written:
        extent = text.get_window_extent()
        boxes[text.get_text()] = (extent.x0, made.bbox.height - extent.y1, extent.x1, made.bbox.height - extent.y0)
    return SimpleNamespace(
        described=figures.describe(made), source=base64.b64encode(data.getvalue()).decode(), boxes=boxes
    )


def test_texts_of_several_parts_and_names() -> None:
    worded, unworded = EXTENSION["worded"], EXTENSION["unworded"]
    assert worded("published, add-remove, breast-cancer") == "发表版，增删关系，breast-cancer"
    assert worded("published, a new label") == "published, a new label"
    assert [text for text in ("a new label", "adult, ε = 1", "adults", "发表版", "K = 2") if unworded(text)] == [
        "a new label",
        "adults",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any(page == shown for shown, *_ in DRAWN)])
def test_words_lie_on_their_figures_and_columns_are_readable(page: str, browser: Any) -> None:
    built = ROOT / "_build" / "html" / "book" / "zh" / f"{page}.html"
    if not built.exists():
        pytest.skip(not_run.BOOK)
    for width in (390, 1280):
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get(built.as_uri())
        wrong, figures_seen = browser.execute_async_script(
            """
            const done = arguments[0], wrong = [];
            const box = (node) => node.getBoundingClientRect();
            const figures = [...document.querySelectorAll("div.relabelled")];
            const loaded = figures.map((figure) => {
              const image = figure.querySelector("img");
              image.loading = "eager";
              return image.decode();
            });
            Promise.all(loaded).then(() => document.fonts.ready).then(() => {
              for (const figure of figures) {
                const [image, words] = [box(figure.querySelector("img")), box(figure.querySelector("svg"))];
                if (["left", "top", "right", "bottom"].some((side) => Math.abs(image[side] - words[side]) > 1))
                  wrong.push("words are not on their figure");
                for (const text of figure.querySelectorAll("text")) {
                  const at = box(text);
                  const room = text.hasAttribute("transform") ? at.width / 3 : 1; // a line is higher than its signs
                  if (at.left < image.left - room || at.right > image.right + room) wrong.push(text.textContent);
                }
              }
              for (const cell of document.querySelectorAll("table.dataframe :is(td, th)")) {
                const long = Math.min(4, cell.textContent.match(/[\u4e00-\u9fff]+/g)?.[0].length || 0);
                if (cell.clientWidth && cell.clientWidth < long * parseFloat(getComputedStyle(cell).fontSize))
                  wrong.push(cell.textContent);
              }
              done([wrong, figures.length]);
            });
            """
        )
        assert figures_seen == sum(shown == page for shown, *_ in DRAWN)
        assert wrong == [], width
