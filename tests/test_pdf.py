"""The printed book: pages in their order, anchors and links of one document; in Chromium, a small book on paper.

Where no browser is installed the second half is skipped, but not in CI.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests import not_run

ROOT = Path(__file__).resolve().parents[1]
pdf = SimpleNamespace(**runpy.run_path(str(ROOT / "book" / "pdf.py")))

TOC = {"root": "intro", "parts": [{"caption": "Learn it", "chapters": [{"file": "a", "sections": [{"file": "b"}]}]}]}
HEAD = """<html><head><link rel="stylesheet" href="_static/custom.css?v=1"><link rel="stylesheet" href="_static/x.css">
<script>window.MathJax = {"svg": {"fontCache": "global"}, "tex": {"macros": {"eps": "\\\\varepsilon"}},
"options": {"enableMenu": false}}</script>
<script defer src="_static/mathjax/equations.js"></script></head><body><nav>Sidebar</nav>"""
PAGES = {
    "intro": '<section id="intro"><h1>A book<a class="headerlink" href="#intro">#</a></h1>'
    '<p><a href="a.html">first</a> <a href="b.html#thm-x">Theorem 1.1</a> <a href="_modules/x.html">source</a> '
    '<a href="https://example.org/">elsewhere</a></p></section>',
    "a": '<section id="intro"><h1>Chapter</h1><p>Loss <span class="math">\\(\\eps\\)</span>, '
    '<a href="#intro">here</a>.</p>'
    '<div class="math">\\[' + "+".join(f"x_{{{i}}}" for i in range(90)) + "\\]</div>"
    "<details><summary>Solution</summary><p>Seventeen.</p></details></section>",
    "b": '<section id="run"><h1>A run</h1><div id="thm-x">Said.</div>'
    '<img src="dot.svg" loading="lazy" alt="dot"></section>',
}


@pytest.fixture
def html(tmp_path: Path) -> Path:
    """A built book of three pages."""
    folder = tmp_path / "html"
    folder.mkdir()
    shutil.copytree(ROOT / "book" / "_static", folder / "_static")
    (folder / "dot.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9"/></svg>'
    )
    for name, text in PAGES.items():
        (folder / f"{name}.html").write_text(f'{HEAD}<article class="bd-article">{text}</article></body></html>')
    return folder


def test_pages_stand_in_the_order_of_the_contents():
    assert [(page.name, page.depth, page.part) for page in pdf.pages(TOC)] == [
        ("intro", 0, ""),
        ("a", 1, "Learn it"),
        ("b", 2, ""),
    ]
    names = [page.name for page in pdf.pages(yaml.safe_load((ROOT / "_toc.yml").read_text()))]
    assert len(names) == len(set(names)) == (ROOT / "_toc.yml").read_text().count("file:") + 1


def test_anchors_and_links_are_those_of_one_document(html):
    text = pdf.one_page(TOC, html, "Title & more", "Authors")
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert {"intro", "intro--intro", "a", "a--intro", "b--thm-x"} <= set(ids)
    targets = re.findall(r'href="#([^"]+)"', text)
    assert {"a", "b--thm-x", "a--intro"} <= set(targets) <= set(ids)
    assert "_modules" not in text
    assert "https://example.org/" in text
    assert "Title &amp; more" in text


def test_what_is_of_use_on_a_screen_only_is_left_out_and_folds_are_open(html):
    text = pdf.one_page(TOC, html, "T", "A")
    assert not re.search(r"headerlink|Sidebar|lazy|x\.css", text)
    assert '<details open="">' in text
    assert re.findall(r"<(h\d)>", text)[1:] == ["h2", "h2", "h3"]  # after that of the contents


def test_a_page_that_is_not_built_is_said(html, capsys):
    assert pdf.main(["--html", str(html), "--to", str(html / "x.pdf")]) == 1
    assert "book/intro.html" in capsys.readouterr().err


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture
def chromium():
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        if "CI" in os.environ:
            pytest.fail("CI needs chromium and chromedriver on its PATH")
        pytest.skip(not_run.BROWSER)


def printed(html: Path) -> tuple[dict, bytes]:
    source, target = html.parent / "book.html", html.parent / "book.pdf"
    source.write_text(pdf.one_page(TOC, html, "T", "A"))
    return pdf.print_page(source, target), target.read_bytes()


@pytest.mark.slow
def test_a_small_book_on_paper(html, chromium):
    seen, content = printed(html)
    assert seen == {"math": 2, "set": 2, "wrong": 0, "links": seen["links"], "dead": [], "broken": [], "wide": []}
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type ?/Page\b", content)) == 5  # title, contents, and one for each page
    assert b"/Outlines" in content
    assert {b"a", b"b--thm-x", b"a--intro"} <= set(re.findall(rb"/Dest /([\w-]+)", content))


@pytest.mark.slow
def test_a_link_that_leads_nowhere_and_an_equation_that_is_none_are_seen(html, chromium):
    page = html / "a.html"
    page.write_text(page.read_text().replace("#intro", "#outro").replace("\\(\\eps\\)", "\\(x^1^2\\)"))
    (html / "dot.svg").unlink()
    seen, _ = printed(html)
    assert seen["dead"] == ["a--outro"]
    assert seen["wrong"] == 1
    assert [Path(name).name for name in seen["broken"]] == ["dot.svg"]
