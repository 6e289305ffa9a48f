"""The three doors, walked in a browser by clicks alone: on a desktop in the light, and on a phone in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait
from test_book import DESKTOP, PHONE, choose, pytestmark, server, show  # noqa: F401 - marks, and a fixture

from tests.patience import PATIENCE

WAYS = [(DESKTOP, "light"), (PHONE, "dark")]
#: Claims of two papers, of the core and of a private test, each on one of the ways.
CLAIMS = [
    (WAYS[0], "pub-edprf"),
    (WAYS[0], "thm-permute-and-flip"),
    (WAYS[1], "pub-random-trees"),
    (WAYS[1], "thm-private-test"),
]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[1]}-{way[0]}")
def front(request: pytest.FixtureRequest, server: str, browser: Any) -> Any:  # noqa: F811
    """The front page at a width, in a theme that was chosen by the reader."""
    width, theme = request.param
    choose(browser, server, theme)
    show(browser, f"{server}/book/intro.html", width)
    assert browser.execute_script("return document.documentElement.dataset.theme") == theme
    return browser


def click(browser: Any, selector: str, words: str = "") -> None:
    """Click the first shown element of the selector with these words; what something else covers is refused."""

    def shown(browser: Any) -> Any:
        return browser.execute_script(
            """
            const found = [...document.querySelectorAll(arguments[0])].find(
              n => n.getClientRects().length && n.textContent.toLowerCase().includes(arguments[1]));
            found?.scrollIntoView({block: 'center', behavior: 'instant'});
            return found;
            """,
            selector,
            words.lower(),
        )

    WebDriverWait(browser, PATIENCE).until(shown, f"nothing is shown as {selector} {words}").click()


@contextmanager
def equations_unset(browser: Any) -> Iterator[None]:
    """Open pages without MathJax, where only links count; ``test_in_a_browser`` sees all pages with equations set."""
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/mathjax/*"]})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})


def at(browser: Any) -> tuple[str, str]:
    """The page and the anchor where one is; a click waits for the page that it leads to."""
    place = urlsplit(browser.current_url)
    return place.path[1:], place.fragment


def in_sight(browser: Any, anchor: str) -> bool:
    """Whether what an anchor names comes to stand within the window, and none of the page is wider than that."""
    return browser.execute_async_script(
        """
        const [anchor, tries, done] = arguments;
        const look = (left) => {  // equations that are set above it move it, until it is scrolled to again
          const box = document.getElementById(anchor).getBoundingClientRect();
          const fits = document.documentElement.scrollWidth <= innerWidth + 1;
          if (box.bottom > 0 && box.top < innerHeight && fits) return done(true);
          left ? setTimeout(look, 100, left - 1) : done(false);
        };
        look(tries);
        """,
        anchor,
        5 * PATIENCE,
    )


@pytest.mark.parametrize(("front", "claim"), CLAIMS, indirect=["front"])
def test_check_a_claim(front: Any, claim: str) -> None:
    """From the front page: the door, the claim by its id, its statement, the test and the code, and back."""
    with equations_unset(front):
        click(front, ".sd-card", "Check a claim")
    assert at(front) == ("book/claims.html", "")
    front.find_element("css selector", "form.narrow input[name=words]").send_keys(claim)
    click(front, "article dl > dt a")
    page, anchor = at(front)
    assert anchor == claim
    assert in_sight(front, claim)
    click(front, f"[id='{claim}'] .evidence a", "test and code")
    evidence, anchor = at(front)
    assert (evidence, anchor) == (page.replace("book/", "evidence/"), claim)
    assert in_sight(front, claim)
    assert front.execute_script(
        "return document.getElementById(arguments[0] + '-test').nextElementSibling.textContent", claim
    )
    with equations_unset(front):
        click(front, f"[id='{claim}'] ~ p a, p a[href$='#{claim}']", "The statement")
    assert at(front) == (page, claim)


@pytest.mark.parametrize("front", WAYS[1:], indirect=True)
def test_a_broken_claim_leads_to_its_counterexample(front: Any) -> None:
    """From the front page, by the verdict, to the smallest data that break a claim."""
    with equations_unset(front):
        click(front, ".sd-card", "Check a claim")
    front.find_element("css selector", "form.narrow input[name=words]").send_keys("pub-edprf ")
    click(front, "article dl > dd:not([hidden]) a[href*='#cex-']")
    _, anchor = at(front)
    assert anchor.startswith("cex-")
    assert in_sight(front, anchor)


def test_learn_it(front: Any) -> None:
    """From the front page through the core, by the link to what comes next, to the first forest."""
    click(front, ".sd-card", "Learn it")
    assert at(front)[0] == "book/reading.html"
    seen = []
    with equations_unset(front):
        while (page := at(front)[0]) != "book/edprf.html":
            assert page not in seen, seen
            seen.append(page)
            click(front, "a.right-next")
    chapters = [page for page in seen if page.startswith("book/")]
    assert {f"book/{name}.html" for name in ("privacy", "mechanisms", "scores", "budgets", "tree")} <= set(chapters)
    assert len(seen) < 25


def test_use_it(front: Any) -> None:
    """From the front page to the program for a table of one's own, and on, page by page, to the questions."""
    click(front, ".sd-card", "Use it")
    assert at(front)[0] == "notebooks/rendered/hospital.html"
    assert front.execute_script("return document.querySelectorAll('article .highlight button.copybtn').length") > 5
    seen = []
    while (page := at(front)[0]) != "book/faq.html":
        assert page not in seen, seen
        seen.append(page)
        assert front.execute_script("return document.documentElement.scrollWidth <= innerWidth + 1"), page
        click(front, "a.right-next")
    assert {f"book/{name}.html" for name in ("evaluation", "persons", "handing_over", "no_scaling")} <= set(seen)
