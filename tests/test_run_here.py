"""Exercises in the page: each runs there as under CPython, an endless loop is ended, and a click loads what is needed.

Most is looked at on pages of exercises alone, so no book has to be built; the last part opens the built book.
"""

from __future__ import annotations

import html
import json
import os
import re
import runpy
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from docutils import nodes
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.support.ui import WebDriverWait
from test_book import DESKTOP, HTML, PAGES, PHONE, choose, requests, server, show  # noqa: F401 - a fixture
from test_exercises import CODE, EXERCISES, KINDS

from tests import not_run
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "book" / "_static"
sys.path.insert(0, str(ROOT / "book" / "_extensions"))
BUILT = runpy.run_path(str(ROOT / "book" / "_extensions" / "exercises.py"))
HERE = [key for key in EXERCISES if BUILT["runs_here"](CODE[*key, kind] for kind in KINDS)]
MOST_BYTES = 10_000

pytestmark = pytest.mark.slow


def block(name: str, code: str, classes: str = "") -> str:
    return (
        f'<div class="highlight-python notranslate {classes}" id="{name}"><div class="highlight"><pre>'
        f"{html.escape(code)}</pre></div></div>"
    )


def written(
    folder: Path, keys: list[tuple[str, str]], python: str | None = None, language: str = "en", limit: bool = False
) -> str:
    """A page of exercises, as a file, beside what it asks for; its address.

    On a busy machine any program can take ten seconds, so the page's own limit holds only where it is looked at.
    """
    (folder / "_static").mkdir(parents=True)
    (folder / "_python").mkdir()
    for name in ("exercises.js", "custom.css"):
        (folder / "_static" / name).write_bytes((STATIC / name).read_bytes())
    (folder / "_python" / "python.js").write_text(python or BUILT["python"](), encoding="utf-8")
    blocks = "".join(
        block(f"{kind}-{chapter}-{number}", CODE[chapter, number, kind], "runs-here" if kind == "exercise" else "")
        for chapter, number in keys
        for kind in KINDS
    )
    page = folder / "page.html"
    page.write_text(
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>x</title>'
        '<link rel="stylesheet" href="_static/custom.css"><script defer src="_static/exercises.js"'
        f"{'' if limit else f' data-seconds={PATIENCE}'}></script>"
        f'</head><body><article class="bd-article">{blocks}</article></body></html>',
        encoding="utf-8",
    )
    return page.as_uri()


class Editor:
    """One exercise of the page that is open."""

    def __init__(self, browser: Any, chapter: str, number: str) -> None:
        self.browser, self.name = browser, f"exercise-{chapter}-{number}"
        self.place = browser.find_element("css selector", f"#{self.name} + .try-it")

    def press(self, words: str) -> None:
        script = """
            const found = [...arguments[0].querySelectorAll('button')].find(n => n.textContent === arguments[1]);
            found.scrollIntoView({block: 'center', behavior: 'instant'});
            return found;"""
        self.browser.execute_script(script, self.place, words).click()

    def write(self, program: str) -> None:
        script = """
            const field = arguments[0].querySelector('textarea');
            field.value = arguments[1];
            field.dispatchEvent(new Event('input'));"""
        self.browser.execute_script(script, self.place, program)

    @property
    def program(self) -> str:
        return self.place.find_element("tag name", "textarea").get_property("value")

    @property
    def said(self) -> str:
        return self.place.find_element("css selector", ".said").text

    @property
    def printed(self) -> str:
        return self.place.find_element("css selector", ".status pre").text

    def answer(self) -> str:
        """What is said once nothing is loaded and nothing runs any more."""
        busy = ("Loading", "Running", "Python is ready", "正在")
        WebDriverWait(self.browser, PATIENCE, 0.05).until(lambda _: self.said and not self.said.startswith(busy))
        return self.said

    def check(self, program: str) -> str:
        self.write(program)
        self.browser.execute_script("arguments[0].querySelector('.said').textContent = '';", self.place)
        self.press("Check")
        return self.answer()


def test_the_program_of_a_page_is_small() -> None:
    assert (STATIC / "exercises.js").stat().st_size <= MOST_BYTES


def test_what_needs_only_python_runs_in_the_page() -> None:
    """All but those that import the library, NumPy, or a hash that this Python has not."""
    others = {
        root
        for key in set(EXERCISES) - set(HERE)
        for root in BUILT["imported"]("".join(CODE[*key, kind] for kind in KINDS))
    } - BUILT["MODULES"]
    assert others == {"dpforest", "numpy", "hashlib"}
    assert len(HERE) > 50


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with all exercises that run in one."""
    return written(tmp_path_factory.mktemp("every") / "book", HERE)


def test_each_stub_fails_and_each_solution_passes_in_the_page(every: str, browser: Any) -> None:
    """From a file, without a server; the stub fails in its check, with its line, and not for want of a module."""
    browser.get(every)
    wrong = {}
    for key in HERE:
        editor = Editor(browser, *key)
        editor.press("Run here")
        stub, solution = (CODE[*key, kind].rstrip() for kind in (KINDS[0], KINDS[2]))
        assert editor.program.rstrip() == stub
        failed, passed = editor.check(stub), editor.check(solution)
        if passed != "✓ The check passes." or not re.match(r"✗ Not yet\. Line \d+ of the check: ", failed):
            wrong["-".join(key)] = failed, passed
    assert wrong == {}


def test_what_is_said_of_a_program(every: str, browser: Any) -> None:
    browser.get(every)
    editor = Editor(browser, "tree", "4")
    editor.press("Run here")
    for program, said in {
        "x = 1\ny = z": "✗ Not yet. Line 2 of your program: NameError: name 'z' is not defined",
        "def losses(node):\n    return 1 / 0": "✗ Not yet. Line 2 of your program: ZeroDivisionError: division by zero",
        "def losses(node):\nreturn 1": "✗ Not yet. Line 2 of your program: IndentationError: "
        "expected an indented block after function definition on line 1",
        "import numpy as np": "✗ Not yet. Line 1 of your program: The Python of this page has no module numpy; the "
        "notebook has.",
        "def losses(node):\n    return 1, 3": "✗ Not yet. Line 2 of the check: a leaf is its own query",
        "def losses(node):\n    return 1,": "✗ Not yet. Line 2 of the check: a leaf is its own query",
    }.items():
        assert editor.check(program) == said
    stub = Editor(browser, "budgets", "8")
    stub.press("Run here")
    stub.answer()
    nothing = "def shares(weights):\n    ..."
    hint = "TypeError: 'NoneType' (no return?) object is not iterable"
    assert stub.check(nothing) == f"✗ Not yet. Line 7 of the check: {hint}"
    editor.write("from fractions import Fraction\nprint(Fraction(1, 3) + 1)")
    editor.press("Run here")
    assert (editor.answer(), editor.printed) == ("The program ran.", "4/3")
    assert editor.place.find_element("css selector", "[role=status]")
    field = editor.place.find_element("tag name", "textarea")
    assert browser.execute_script("return arguments[0].labels[0].textContent", field) == "Your program for exercise 4"


def test_an_endless_loop_is_ended_and_python_starts_again(tmp_path: Path, browser: Any) -> None:
    browser.get(written(tmp_path / "book", [("tree", "4")], limit=True))
    editor = Editor(browser, "tree", "4")
    editor.press("Run here")
    began = time.monotonic()
    assert editor.check("while True:\n    print('x')") == "Stopped after 10 seconds. Does a loop end?"
    assert time.monotonic() - began > 9
    assert editor.check(CODE["tree", "4", "solution"]) == "✓ The check passes."


def test_a_program_is_stopped_by_another_and_by_a_button(every: str, browser: Any) -> None:
    browser.get(every)
    editor = Editor(browser, "tree", "4")
    editor.press("Run here")
    editor.write("while True:\n    pass")
    editor.press("Check")
    WebDriverWait(browser, PATIENCE, 0.05).until(lambda _: editor.said == "Running …")
    other = Editor(browser, "tree", "5")  # another program need not wait for it
    other.press("Run here")
    assert other.check(CODE["tree", "5", "solution"]) == "✓ The check passes."
    assert editor.said == "Stopped."
    editor.press("Check")
    WebDriverWait(browser, PATIENCE, 0.05).until(lambda _: editor.said == "Running …")
    editor.press("Stop")
    assert editor.answer() == "Stopped."


def test_keys_write_and_leave_and_what_is_written_is_kept(every: str, browser: Any) -> None:
    browser.get(every)
    browser.execute_script("localStorage.clear();")
    browser.refresh()
    editor = Editor(browser, "tree", "4")
    editor.press("Run here")
    field = editor.place.find_element("tag name", "textarea")
    assert browser.switch_to.active_element == field

    def send(*keys: str) -> None:
        ActionChains(browser).send_keys(*keys).perform()

    with_control = ActionChains(browser).key_down(Keys.CONTROL)
    with_control.send_keys("a").key_up(Keys.CONTROL).perform()
    send("def losses(node):", Keys.ENTER, "return 1, 2", Keys.ENTER, Keys.TAB, "#")
    assert editor.program == "def losses(node):\n    return 1, 2\n        #"
    ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert editor.program == "def losses(node):\n    return 1, 2\n    #"
    ActionChains(browser).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    assert editor.answer().startswith("✗ Not yet. Line 4 of the check: every level costs")
    send(Keys.ESCAPE, Keys.TAB)
    assert browser.switch_to.active_element.text == "Run here"
    requests(browser)
    browser.refresh()
    editor = Editor(browser, "tree", "4")
    assert editor.program.startswith("def losses(node):\n    return 1, 2\n")
    assert [url for url in requests(browser) if "python" in url] == []
    editor.press("Reset")
    assert editor.program.rstrip() == CODE["tree", "4", "exercise"].rstrip()
    browser.refresh()
    assert not browser.find_elements("css selector", "#exercise-tree-4.opened")


def test_without_its_python_a_page_says_so(tmp_path: Path, browser: Any) -> None:
    address = written(tmp_path / "book", [("tree", "4")])
    (tmp_path / "book" / "_python" / "python.js").unlink()
    browser.get(address)
    editor = Editor(browser, "tree", "4")
    editor.press("Run here")
    assert editor.answer() == "The Python of this page cannot be loaded."
    assert editor.check("x = 1") == "The Python of this page cannot be loaded."


def test_a_chinese_page_has_chinese_buttons(tmp_path: Path, browser: Any) -> None:
    browser.get(written(tmp_path / "book", [("tree", "4")], language="zh-Hans"))
    editor = Editor(browser, "tree", "4")
    editor.press("在此运行")
    editor.write(CODE["tree", "4", "solution"])
    editor.press("检查")
    WebDriverWait(browser, PATIENCE, 0.05).until(lambda _: editor.said == "✓ 检查通过。")


def test_no_module_comes_from_elsewhere(tmp_path: Path, browser: Any) -> None:
    """What is not in the page's Python is asked of no server, and what it has is what it needs."""
    source = BUILT["python"]()
    program = json.loads(re.fullmatch(r"dpforestPython\((.*)\);\n", source, re.S)[1])  # type: ignore[index]
    library = json.JSONDecoder().raw_decode(program, program.rindex("update_VFS(") + len("update_VFS("))[0]
    assert set(library) >= BUILT["MODULES"]
    assert not {"asyncio", "unittest", "json", "statistics"} & set(library)
    assert len(source.encode()) < 2_200_000


@pytest.mark.parametrize(("stars", "chinese", "said"), [("★", False, "difficulty 1/3"), ("★★★", True, "难度 3/3")])
def test_stars_are_said_in_words_too(stars: str, chinese: bool, said: str) -> None:
    start = nodes.Text(""), nodes.strong("", "2."), nodes.Text(f" {stars} (code) Why?")
    paragraph = nodes.paragraph("", "", *start)
    BUILT["_say_stars"](paragraph, chinese)
    [raw] = paragraph.findall(nodes.raw)
    assert raw.astext() == f' <span class="stars" role="img" aria-label="{said}" title="{said}">{stars}</span> '
    assert paragraph.children[-1] == "(code) Why?"
    other = nodes.paragraph("", "", nodes.strong("", "2."), nodes.Text(" no star"))
    BUILT["_say_stars"](other, chinese)
    assert len(other.children) == 2


# -- the built book ---------------------------------------------------------------------------------------------------

needs_book = pytest.mark.skipif(not PAGES and "CI" not in os.environ, reason=not_run.BOOK)
#: An exercise of each of five chapters, a wrong answer in place of the stub's last dots, and what is said of it.
FIVE = {
    ("privacy", "7"): ("return 3", "Line 5 of the check: 1/4 against 1/2: the rare output decides"),
    ("mechanisms", "8"): ("return threshold", "Line 3 of the check: 16, not 10"),
    ("scores", "11"): (
        "return 2, 2, 2",
        "Line 10 of the check: [[1, -1]] gives 2, 2, 2: one up, one down: nothing is gained",
    ),
    ("budgets", "8"): ("return weights", "Line 7 of the check: shares of [1, 1] add up to 2"),
    ("tree", "6"): ("return [0], 0, (1,)", "Line 5 of the check: 1/3 against 1/6 keeps the promise"),
}


@needs_book
@pytest.mark.parametrize(("width", "theme"), [(DESKTOP, "light"), (PHONE, "dark")])
@pytest.mark.parametrize(("chapter", "number"), FIVE)
def test_in_the_book(chapter: str, number: str, width: int, theme: str, server: str, browser: Any) -> None:  # noqa: F811
    """Before a click a small program is fetched, after it one file; a right answer passes, a wrong one fails."""
    choose(browser, server, theme)
    browser.execute_script("localStorage.removeItem(arguments[0]);", f"exercise-{chapter}-{number}")
    show(browser, f"{server}/book/{chapter}.html", width)
    before = {urlsplit(url).path for url in requests(browser)}
    assert [path for path in before if "python" in path.lower()] == []
    assert [path for path in before if "exercise" in path] == ["/_static/exercises.js"]
    editor = Editor(browser, chapter, number)
    editor.press("Run here")
    assert editor.check(CODE[chapter, number, "solution"]) == "✓ The check passes."
    wrong, said = FIVE[chapter, number]
    assert editor.check(CODE[chapter, number, "exercise"].rpartition("...")[0] + wrong) == f"✗ Not yet. {said}"
    after = [url for url in requests(browser) if not url.startswith(("blob:", "data:"))]
    paths = [urlsplit(url).path for url in after]
    # figures are loaded when they come into view
    assert [path for path in paths if not path.startswith("/_images/")] == ["/_python/python.js"]
    assert all(url.startswith(server) for url in after)
    seen = browser.execute_script(
        """
        const field = arguments[0].querySelector('textarea'), style = getComputedStyle(field);
        const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
        return [document.documentElement.scrollWidth, field.getBoundingClientRect().right,
          light(style.color) - light(style.backgroundColor),
          getComputedStyle(field.closest('.try-it').previousElementSibling).display];
        """,
        editor.place,
    )
    assert seen[0] <= width + 1
    assert seen[1] <= width
    assert (seen[2] > 100) if theme == "dark" else (seen[2] < -100)
    assert seen[3] == "none"  # the editor is in place of the stub


@needs_book
def test_pages_lead_to_their_notebooks_and_only_pages_with_exercises_have_the_program() -> None:
    for path in (HTML / "book").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert ("_static/exercises.js" in text) == ("runs-here" in text), path
        stubs = re.findall(r'id="exercise-([\w-]+)-(\d+)"', text)
        assert text.count('class="exercises-notebook"') == bool(stubs), path
        if stubs:
            assert f'_downloads/exercises/{path.stem}.ipynb" download>' in text
            here = re.findall(r'<div class="[^"]*runs-here[^"]*" id="exercise-([\w-]+)-(\d+)"', text)
            assert here == [key for key in stubs if (key[0].replace("-", "_"), key[1]) in HERE], path
            assert len(re.findall('<span class="stars" role="img" aria-label="[^"]+ [123]/3"', text)) >= len(stubs)
    assert (HTML / "_python" / "LICENSE").read_text() == (ROOT / "book" / "python" / "LICENSE").read_text()
