"""The built book, page by page: complete, readable offline, equations rendered, fit for a phone.

The second half looks at the pages in headless Chromium. Where no browser is installed it is skipped, but not in CI.
"""

from __future__ import annotations

import ast
import base64
import functools
import html
import http.server
import io
import json
import os
import re
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import PIL.Image
import pytest
import yaml

from tests import not_run

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"
CLAIMS = ROOT / "book" / "claims.md"
PAGES = sorted(str(path.relative_to(HTML)) for path in HTML.rglob("*.html") if "_static" not in path.parts)
ARTICLES = [page for page in PAGES if page.startswith(("book/", "notebooks/"))]
WITH_EQUATIONS = [page for page in ARTICLES if 'class="math' in (HTML / page).read_text(encoding="utf-8")]
CODE = [page for page in PAGES if page.startswith("_modules/") and page != "_modules/index.html"]
LOOKED_AT = [max(CODE, key=len), max(CODE, key=lambda page: (HTML / page).stat().st_size)] if CODE else []
PHONE, DESKTOP = 390, 1280

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES and "CI" not in os.environ, reason=not_run.BOOK),
]


def test_there_is_a_book() -> None:
    assert "index.html" in PAGES
    assert ARTICLES


# --- what the files say ----------------------------------------------------------------------------------------------
class Page(HTMLParser):
    """Collects what a page would load, where its links go, its anchors and its images."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        # what highlights code is most of a page, and neither an anchor nor a link
        self.feed(re.sub(r'<span(?: class="[^"<>]*")?>|</span>', "", (HTML / page).read_text(encoding="utf-8")))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "index", "search", "author"):
            self.loads.append(given.get("href", ""))
        self.loads += [given[name] for name in ("src", "data", "poster") if name in given and tag != "a"]


@functools.cache
def read(page: str) -> Page:
    return Page(page)


@functools.cache
def files() -> set[str]:
    return {str(path.relative_to(HTML)) for path in HTML.rglob("*") if path.is_file()}


@pytest.mark.parametrize("page", PAGES)
def test_loads_nothing_from_elsewhere(page: str) -> None:
    assert [url for url in read(page).loads if urlsplit(url).netloc] == []


@pytest.mark.parametrize("page", PAGES)
def test_local_links_arrive(page: str) -> None:
    dead = []
    for url in {*read(page).links, *read(page).loads}:
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(page), unquote(parts.path))) if parts.path else page
        if target not in files() or (
            parts.fragment
            and target.endswith(".html")
            and not page.startswith(("genindex", "_modules"))
            and unquote(parts.fragment) not in read(target).anchors
        ):
            dead.append(url)
    assert dead == []


@pytest.mark.parametrize("page", ARTICLES)
def test_no_traceback(page: str) -> None:
    assert "Traceback (most recent call last)" not in (HTML / page).read_text(encoding="utf-8")


def test_code_is_as_narrow_as_the_page() -> None:
    """The extension lays code out again and changes nothing else; what cannot be read stays as it is."""
    laid_out = runpy.run_path(str(ROOT / "book" / "_extensions" / "narrow.py"))["laid_out"]
    wide = (
        "answer = some_function(first_argument, second_argument, third_argument, fourth_argument, fifth)  # fmt: skip"
    )
    broken = "this is no Python (" + "x " * 60
    narrow, same = laid_out([wide, broken])
    assert max(map(len, narrow.splitlines())) <= 88
    assert ast.dump(ast.parse(narrow)) == ast.dump(ast.parse(wide))
    assert same == broken.rstrip("\n")
    text = (HTML / "book" / "edprf.html").read_text(encoding="utf-8")
    assert "fmt:" not in text


def test_comments_and_docstrings_are_filled_and_say_the_same() -> None:
    narrow = runpy.run_path(str(ROOT / "book" / "_extensions" / "narrow.py"))
    words = ("word " * 30).strip()
    code = f'''def f(x):
    """Title {words}.

    - item {words}

    x : int
        What {words}
    """
    # short
    # first {words}
    return x  # behind {words}


# --- a part {"-" * 100}
y = f({"1 + " * 30}1)  # type: ignore[{"x" * 80}]
'''
    (found,) = narrow["narrowed"]([code])
    assert [line for line in found.splitlines() if len(line) > 88 and "type: ignore" not in line] == []
    for said in ("Title ", "- item ", "What ", "# first ", "# behind "):
        flowing = " ".join(found.replace("    # word", "    word").split())
        assert f"{said}{words}" in flowing
    assert "\n      word" in found  # under the text of the item
    assert "\n    # short\n    # first word" in found  # was broken on purpose
    assert "\n    return x\n" in found
    assert narrow["filled"](found) == found
    assert narrow["narrowed"](["    x = 1\n"]) == ["x = 1\n"]


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith(("book/", "evidence/"))])
def test_no_line_of_code_is_wide_but_for_a_text(page: str) -> None:
    text = (HTML / page).read_text(encoding="utf-8")
    wide = []
    for language, block in re.findall(
        r'<div class="highlight-(\w+)[^>]*><div class="highlight"><pre>(.*?)</pre>', text, re.S
    ):
        for line in html.unescape(re.sub("<[^>]+>", "", block)).splitlines() if language != "coq" else ():
            if len(line) > 88 and len(re.sub(r""""[^"]*"|'[^']*'""", "''", line)) > 88:
                wide.append(line)
    assert wide == []


@pytest.mark.parametrize(
    "name", [path.stem for path in sorted((HTML / "_sources" / "notebooks" / "rendered").glob("*"))]
)
def test_a_run_shows_one_cell_of_parameters_leads_to_its_claims_and_can_be_taken_away(name: str) -> None:
    page = f"notebooks/rendered/{name}.html"
    text = (HTML / page).read_text(encoding="utf-8")
    assert "tag_injected-parameters" not in text
    run = json.loads((HTML / "_sources" / "notebooks" / "rendered" / f"{name}.ipynb").read_text(encoding="utf-8"))
    injected = any("injected-parameters" in cell["metadata"].get("tags", ()) for cell in run["cells"])
    assert ("The values of this page" in text) == injected
    assert f"../../_sources/notebooks/rendered/{name}.ipynb" in read(page).links
    exhibits = "".join(run["cells"][0]["source"]).partition("Exhibits:")[2]
    named = re.findall(r"`((?:thm|lem|pub|cex|def|alg)-[a-z0-9-]+)`", exhibits)
    assert named or not re.search(r"\w-\w", exhibits.partition("\n")[0])
    linked = {url.partition("#")[2] for url in read(page).links if url.startswith("../../book/")}
    assert set(named) <= linked


def test_the_parameters_of_a_page_are_those_that_it_ran_with() -> None:
    sys.path.insert(0, str(ROOT / "book" / "_extensions"))
    as_run = runpy.run_path(str(ROOT / "book" / "_extensions" / "run_pages.py"))["as_run"]
    own = "a = 1  # ε, small\nb = [\n    1,\n    2,\n]  # two\nc: int = 3\n"
    assert as_run(own, "# Parameters\nb = [3]\nc = 4\n") == "a = 1  # ε, small\nb = [3]  # two\nc: int = 4\n"
    assert as_run(own, "# Parameters\na = 'é'\n") == own.replace("1  # ε", "'é'  # ε")


def test_each_claim_of_a_paper_is_found_by_the_paper() -> None:
    text = (HTML / "book" / "claims.html").read_text(encoding="utf-8")
    papers = json.loads(re.search(r'<script type="application/json" class="papers">(.*?)</script>', text)[1])  # type: ignore[index]
    assert [claim for claim, names in papers.items() if claim.startswith("pub-") and not names] == []
    assert papers["pub-dp-adaboost"] == ["DP-AdaBoost"]
    assert papers["cex-raw-alpha"] == ["CART-DPsAdaBoost", "DP-AdaBoost"]
    assert papers["pub-harmonic-budget"] == ["eDPRF"]
    assert papers["thm-path"] == []


def test_the_api_names_a_claim_beside_its_number() -> None:
    text = (HTML / "book" / "estimators" / "EDPRFClassifier.html").read_text(encoding="utf-8")
    assert re.search(r"Theorem \d+\.\d+.{0,80}thm-edprf", text, re.S)


def test_what_a_paper_claims_is_no_conjecture() -> None:
    text = (HTML / "book" / "claims.html").read_text(encoding="utf-8")
    assert "Conjecture" not in text
    assert text.count(">Claim ") == CLAIMS.read_text(encoding="utf-8").count("{prf:ref}`pub-")


def test_each_claim_leads_to_its_test_and_its_code_and_back() -> None:
    table = CLAIMS.read_text(encoding="utf-8")
    claims = re.findall(r'evidence/(\w+)\.html#([\w-]+)-test"', table)
    assert len(claims) == table.count("{prf:ref}`") > 0
    for page, claim in claims:
        chapter, evidence = read(f"book/{page}.html"), read(f"evidence/{page}.html")
        assert f"../evidence/{page}.html#{claim}" in chapter.links
        assert f"../book/{page}.html#{claim}" in evidence.links
        assert {f"{claim}-test", f"{claim}-0"} <= evidence.anchors


def switch(page: str) -> tuple[str, dict[str, str]]:
    """The page in the other language, and which places of it are the places of this one."""
    text = (HTML / page).read_text(encoding="utf-8")
    found = re.search(r'<p class="edition"><a href="([^"]*)"[^>]* data-places="([^"]*)">', text)
    assert found, page
    return os.path.normpath(os.path.join(os.path.dirname(page), found[1])), json.loads(html.unescape(found[2]))


def test_the_other_language_has_the_same_places() -> None:
    chinese = [page for page in PAGES if page.startswith("book/zh/")]
    assert len(chinese) > 10
    for page in chinese:
        english, back = switch(page)
        again, there = switch(english)
        assert again == page
        assert set(there) <= read(english).anchors
        assert set(there.values()) == set(back) <= read(page).anchors
        assert all(there[place] == name for name, place in back.items())
        labels = {name for name in read(page).anchors if re.match("zh-(?:thm|lem|def|alg|pub|cex)-", name)}
        assert {there[name.removeprefix("zh-")] for name in labels} == labels, page
    assert switch("book/privacy.html")[1].keys() >= {"the-promise", "exercises", "exercise-privacy-7"}


# --- what a browser shows --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def show(browser: Any, url: str, width: int) -> None:
    """Open a page at a width in CSS pixels and wait until its equations are set."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get_log("performance")
    browser.get(url)
    browser.execute_async_script(
        "const done = arguments[0];"
        "const ready = window.MathJax && MathJax.startup ? MathJax.startup.promise : Promise.resolve();"
        "ready.then(() => document.fonts.ready).then(() => requestAnimationFrame(() => done()));"
    )


def choose(browser: Any, server: str, theme: str) -> None:
    """What a reader chooses by the switch; it holds from the next page on."""
    browser.get(f"{server}/_static/custom.css")  # what is kept belongs to the server, whichever of its files is shown
    browser.execute_script("for (const key of ['mode', 'theme']) localStorage.setItem(key, arguments[0])", theme)


def requests(browser: Any) -> list[str]:
    """List what the browser asked for since the last page was opened."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


@pytest.mark.parametrize("page", CODE)
def test_a_page_of_code_is_a_title_and_a_block(page: str) -> None:
    """So a browser looks at those with the longest title and the most code, which stand for the others."""
    text = (HTML / page).read_text(encoding="utf-8")
    article = re.search(r"<article [^>]*>(.*?)</article>", text, re.S)[1]  # type: ignore[index]
    assert re.fullmatch(r"\s*<h1>[^<]*</h1><div class=\"highlight\"><pre>.*</pre></div>\s*", article, re.S)
    assert set(re.findall(r"<([a-z]\w*)", article)) <= {"h1", "div", "pre", "span", "a"}
    assert not re.search(r"<[^>]* style=", article)
    assert loaded(page) == loaded(LOOKED_AT[0])


def loaded(page: str) -> list[str]:
    return [os.path.normpath(os.path.join(os.path.dirname(page), url)) for url in read(page).loads]


#: What a page shows, all at once: its equations, its images, its tables, and what is wider than it is.
SHOWN = """
const all = (selector) => [...document.querySelectorAll(selector)];
const wide = (node) => node.getBoundingClientRect().right + scrollX > arguments[0] + 1;
const scrolls = (node) => { for (let n = node; n && n !== document.body; n = n.parentElement)
  if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(n).overflowX)) return true; return false; };
return {
  math: all('article .math').length,
  set: all('article mjx-container').length,
  spoken: all('article mjx-container mjx-assistive-mml > math').length,
  foreign: all('article mjx-container svg text').map(n => n.textContent).filter(t => !/[\\u2e80-\\uffff]/.test(t)),
  wrong: all('mjx-merror, [data-mjx-error], [data-mml-node="merror"]').map(n => n.textContent || n.outerHTML),
  unset: all('article .math').filter(n => !n.querySelector('mjx-container')).map(n => n.textContent),
  images: all('article img').length,
  nameless: all('article img').filter(n => !n.alt.trim()).map(n => n.src),
  broken: all('article img').filter(n => n.complete && !n.naturalWidth && n.loading !== 'lazy').map(n => n.src),
  lazy: all('article img').filter(n => n.loading === 'lazy').map(n => n.src),
  empty: all('article table').filter(n => !n.textContent.trim() || !n.rows.length).length,
  width: document.documentElement.scrollWidth,
  tooWide: all('article *').filter(n => wide(n) && !scrolls(n)).slice(0, 5).map(n => n.outerHTML.slice(0, 200)),
};
"""


@pytest.fixture(scope="module")
def opened(server: str, browser: Any) -> Callable[[str], tuple[list[str], dict[str, Any]]]:
    """Open a page on a phone, once for all tests: what was asked for until then, and what is shown."""

    @functools.cache
    def looked_at(page: str) -> tuple[list[str], dict[str, Any]]:
        show(browser, f"{server}/{page}", PHONE)
        return requests(browser), browser.execute_script(SHOWN, PHONE)

    return looked_at


@pytest.mark.parametrize("page", [page for page in PAGES if page not in CODE or page in LOOKED_AT])
def test_in_a_browser(page: str, server: str, opened: Any) -> None:
    asked, seen = opened(page)
    assert [url for url in asked if not url.startswith((server, "data:", "blob:", "about:"))] == []
    assert seen["wrong"] == []
    assert seen["unset"] == []
    assert seen["set"] >= seen["math"]
    assert seen["nameless"] == []
    assert seen["broken"] == []
    assert seen["empty"] == 0
    assert seen["tooWide"] == []
    assert seen["width"] <= PHONE + 1


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("page", ["book/boosting.html", "notebooks/rendered/mechanisms.html"])
def test_a_plot_in_dark_mode_stands_on_the_page_and_not_on_a_card(
    server: str, browser: Any, page: str, width: int
) -> None:
    """Its paper has the colour of the page, and its ink is light."""
    choose(browser, server, "dark")
    try:
        show(browser, f"{server}/{page}", width)
        styles, ground = browser.execute_script(
            """
            const style = (node) => getComputedStyle(node);
            const plots = [...document.querySelectorAll("article :is(.output, .cell_output) img")];
            return [plots.map(n => [style(n).backgroundColor, style(n).paddingTop, style(n).filter.split("(")[0]]),
              style(document.body).backgroundColor.match(/\\d+/g).map(Number)];
            """
        )
        assert {tuple(style) for style in styles} == {("rgba(0, 0, 0, 0)", "0px", "invert")}
        corners = browser.execute_async_script(
            """
            const done = arguments[0], plot = document.querySelector("article :is(.output, .cell_output) img");
            plot.scrollIntoView({ behavior: "instant", block: "center" });
            plot.decode().then(() => requestAnimationFrame(() => {
              const box = plot.getBoundingClientRect();
              done([box.left, Math.max(box.top, 0), box.right, Math.min(box.bottom, innerHeight)].map(Math.round));
            }));
            """
        )
        taken = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
        seen = PIL.Image.open(io.BytesIO(taken)).convert("RGB").crop(corners)
        colours = sorted(seen.getcolors(seen.width * seen.height), reverse=True)
        paper = colours[0][1]
        assert max(abs(one - other) for one, other in zip(paper, ground, strict=True)) <= 1
        assert max(paper) < 40 < 200 < max(min(colour) for _, colour in colours)
    finally:
        browser.execute_script("localStorage.clear();")


MOST_BYTES = 1_500_000


@pytest.mark.parametrize("page", WITH_EQUATIONS)
def test_a_page_with_equations_is_light(page: str, server: str, opened: Any) -> None:
    """All that is fetched to show it, as bytes of files; and its equations are complete, for screen readers too.

    A wider window reaches the next figure at most, and nothing else is fetched for it.
    """
    asked, seen = opened(page)
    below = [url for url in seen["lazy"] if url not in asked]
    fetched = {urlsplit(url).path.lstrip("/") for url in asked + below[:1] if url.startswith(server)}
    sizes = {name: (HTML / unquote(name)).stat().st_size for name in fetched if name in files()}
    assert page in sizes
    assert sum(sizes.values()) <= MOST_BYTES, sorted(sizes.items(), key=lambda entry: -entry[1])[:6]
    assert seen["set"] == seen["spoken"] > 0
    assert seen["foreign"] == []  # glyphs that the font lacks: name them in book/mathjax/build.mjs, and `make mathjax`


def test_the_switch_of_language_keeps_the_place(server: str, browser: Any) -> None:
    def way() -> str:
        return browser.execute_script("return document.querySelector('p.edition a').href")

    english, chinese = f"{server}/book/privacy.html", f"{server}/book/zh/privacy.html"
    same = {"thm-path": "zh-thm-path", "check-privacy-7": "check-privacy-7"}
    for place, there in {**same, "an-account": switch("book/privacy.html")[1]["an-account"]}.items():
        for url, other in ((f"{english}#{place}", f"{chinese}#{there}"), (f"{chinese}#{there}", f"{english}#{place}")):
            browser.get("about:blank")
            show(browser, url, DESKTOP)
            assert way() == other
    for place, other in (("nowhere", chinese), ("", chinese), ("def-privacy", f"{chinese}#zh-def-privacy")):
        show(browser, english, DESKTOP)
        browser.execute_async_script(
            "const [place, done] = arguments; addEventListener('hashchange', () => setTimeout(done, 0), {once: true});"
            "location.hash = place; if (!place) done();",
            place,
        )
        assert way() == other


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("place", ["privacy.html#thm-account", "zh/privacy.html#zh-thm-account", "scores.html#gini"])
def test_a_page_that_is_opened_at_a_place_shows_it(server: str, browser: Any, place: str, width: int) -> None:
    """Equations are set after the browser went there, and move what is below them."""
    browser.get("about:blank")
    show(browser, f"{server}/book/{place}", width)
    top = "return document.getElementById(location.hash.slice(1)).getBoundingClientRect().top"
    assert 0 <= browser.execute_script(top) < 150


def test_equations_are_rendered_somewhere(server: str, browser: Any) -> None:
    """Guards the test above against passing because no page has any mathematics."""
    show(browser, f"{server}/{WITH_EQUATIONS[0]}", DESKTOP)
    assert browser.execute_script("return document.querySelectorAll('article mjx-container svg').length") > 0


def test_search_finds_a_page(server: str, browser: Any) -> None:
    show(browser, f"{server}/search.html?q=differential+privacy", DESKTOP)
    assert found_by_search(browser)


@pytest.mark.parametrize(
    ("claim", "page"), [("pub-edprf", "edprf"), ("thm-path", "privacy"), ("LEM-blocks", "scaling")]
)
def test_search_finds_an_id_first(server: str, browser: Any, claim: str, page: str) -> None:
    show(browser, f"{server}/search.html?q={claim}", DESKTOP)
    assert found_by_search(browser)[0].endswith(f"book/{page}.html#{claim.lower()}")


def test_a_word_is_not_answered_by_ids_first(server: str, browser: Any) -> None:
    show(browser, f"{server}/search.html?q=boosting", DESKTOP)
    assert not any("#thm-" in link or "#pub-" in link for link in found_by_search(browser)[:4])


#: What people type, and the page that comes first; some are in book/keywords.yml, others not.
TYPED = {
    "delta": "with_delta", "regression": "first_regression", "feature importance": "inspecting",
    "missing values": "faq", "sensitivity of Gini": "scores", "cite": "faq", "local differential privacy": "faq",
    "install": "faq", "hyperparameter tuning": "faq", "scikit-learn": "faq", "GPU": "faq", "class_weight": "faq",
    "error message": "troubleshooting", "Spark": "scaling", "Parquet": "scaling", "privacy budget": "budgets",
    "group privacy": "privacy", "user-level privacy": "persons", "persons": "persons", "zCDP": "concentrated",
    "membership inference": "attacks", "XGBoost": "comparison", "accuracy": "comparison", "edprf": "edprf",
    "diffpets": "diffpets", "how to choose epsilon": "which_epsilon", "epsilon": "which_epsilon",
    "partial dependence": "inspecting", "reconstruction": "attacks", "outliers": "no_scaling", "glossary": "glossary",
    "permute_and_flip_law": "mechanisms", "EDPRFClassifier": "EDPRFClassifier", "save a model": "handing_over",
    "random forest": "comparison", "epsilon choose": "which_epsilon", "categorical": "faq", "sklearn pipeline": "faq",
    "predict_proba": "learners", "composition": "privacy", "json": "faq", "pandas": "hospital",
    "LightGBM": "comparison", "missing data": "faq", "source code": "faq", "download": "faq", "python version": "faq",
    "pickle": "handing_over", "gradient boosting": "private_boosting", "cross validation": "evaluation",
    "neighbouring datasets": "privacy", "small data": "which_epsilon", "warning": "troubleshooting",
    "exercises": "reading", "decision tree": "glossary",
}  # fmt: skip


@pytest.mark.parametrize(("query", "page"), TYPED.items())
def test_search_finds_first_what_people_type(server: str, browser: Any, query: str, page: str) -> None:
    show(browser, f"{server}/search.html?q={query.replace(' ', '+')}", DESKTOP)
    assert Path(urlsplit(found_by_search(browser)[0]).path).stem == page


def test_words_that_people_type_lead_to_places_that_are_there() -> None:
    places = yaml.safe_load((ROOT / "book" / "keywords.yml").read_text(encoding="utf-8"))
    words = [word for said in places.values() for word in said]
    assert len(words) == len(set(words)) > 60
    assert [word for word in words if word != word.lower()] == []
    split = [place.partition("#") for place in places]
    assert [place for place, _, section in split if section and section not in read(f"{place}.html").anchors] == []


def found_by_search(browser: Any) -> list[str]:
    """Where the search that is open leads to, once it has found something."""
    return browser.execute_async_script(
        "const done = arguments[0]; const look = () => {"
        " const found = [...document.querySelectorAll('#search-results li > a')].map(n => n.getAttribute('href'));"
        " /finished/.test(document.body.textContent) && found.length ? done(found) : setTimeout(look, 100); };"
        "look();"
    )
