"""The built book in Firefox: pages fit and equations are set, scripts do not fail, and Python runs in the page.

All pages are seen in Chromium (test_book.py).  Another engine wraps lines, names files and workers by rules of its own,
so it sees one page of each kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from test_book import DESKTOP, HTML, PAGES, PHONE, server  # noqa: F401 - a fixture
from test_exercises import CODE
from test_run_here import HERE

from tests import firefox, not_run

#: The front page, most equations, Chinese, long signatures, a table, changes, a notebook, an index, a search.
KINDS = [
    "book/intro.html",  # and not index.html, which leads here at once: who waits for it to be loaded may wait forever
    "book/mechanisms.html",
    "book/zh/edprf.html",
    "book/estimators/FunctionalMechanismClassifier.html",
    "book/rooms/audit.html",
    "book/claims.html",
    "book/changelog.html",
    "notebooks/rendered/boosting.html",
    "genindex.html",
    "search.html?q=delta",
]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PAGES, reason=not_run.BOOK)]


@pytest.fixture(scope="module")
def fox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[firefox.Firefox]:
    program = firefox.installed()
    if program is None:
        pytest.skip(not_run.FIREFOX)
    with firefox.Firefox(tmp_path_factory.mktemp("firefox"), program) as window:
        yield window


@pytest.mark.parametrize("page", KINDS)
def test_a_page_fits_and_its_scripts_run(page: str, fox: firefox.Firefox, server: str) -> None:  # noqa: F811
    for width in (DESKTOP, PHONE):
        fox.show(f"{server}/{page}", width)
        assert fox.run("document.documentElement.scrollWidth") <= width
        equations = "[...document.querySelectorAll('article .math')].filter((n) => !n.querySelector('mjx-container'))"
        assert fox.run(f"{equations}.length") == 0
        assert fox.run("document.querySelectorAll('mjx-merror, [data-mjx-error]').length") == 0
        assert fox.run("[...document.images].filter((n) => n.complete && !n.naturalWidth).length") == 0
        assert complaints(fox) == []


def test_a_search_finds_a_page(fox: firefox.Firefox, server: str) -> None:  # noqa: F811
    fox.show(f"{server}/search.html?q=delta", DESKTOP)
    found = fox.run(
        """new Promise((done) => {
          const look = () => {
            const first = document.querySelector('#search-results li a');
            first ? done(first.getAttribute('href')) : setTimeout(look, 50);
          };
          look();
        })"""
    )
    assert found.startswith("book/with_delta.html")


@pytest.mark.parametrize("place", ["served", "a folder"])
def test_exercises_run_in_the_page(place: str, fox: firefox.Firefox, server: str) -> None:  # noqa: F811
    """A page that is a file, too, whose worker has no address in Firefox."""
    root = server if place == "served" else HTML.as_uri()
    chapter = "mechanisms"
    keys = [(name, number) for name, number in HERE if name == chapter]
    assert keys
    fox.show(f"{root}/book/{chapter}.html", DESKTOP)
    for _, number in keys:
        solution = CODE[chapter, number, "solution"]
        assert answer(fox, chapter, number, solution) == "✓ The check passes."
        assert answer(fox, chapter, number, "x = 1\nx / 0").startswith("✗ Not yet. Line 2 of your program: ZeroDiv")
    assert complaints(fox) == []


def complaints(fox: firefox.Firefox) -> list[str]:
    """Errors of scripts, but for the theme's note that this reader has not chosen between light and dark yet."""
    return [text for text in fox.complaints() if not text.startswith("Got invalid theme mode")]


def answer(fox: firefox.Firefox, chapter: str, number: str, program: str) -> str:
    """What is said of a program that is written in place of the stub, and checked."""
    return fox.run(
        f"""(async (name, program) => {{
          const place = document.querySelector(name + ' + .try-it');
          const button = (words) => [...place.querySelectorAll('button')].find((n) => n.textContent === words);
          if (!place.querySelector('textarea')) button('Run here').click();
          const field = place.querySelector('textarea');
          field.value = program;
          field.dispatchEvent(new Event('input'));
          const said = place.querySelector('.said');
          said.textContent = '';
          button('Check').click();
          while (!said.textContent || /^(Loading|Running|Python is ready)/.test(said.textContent))
            await new Promise((done) => setTimeout(done, 20));
          return said.textContent;
        }})({json.dumps(f"#exercise-{chapter}-{number}")}, {json.dumps(program)})"""
    )
