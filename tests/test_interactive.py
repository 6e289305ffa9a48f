"""The figures with knobs: their JavaScript says what the library computes, keys move them, and they fit a phone.

They are looked at in headless Chromium, each on a page of its own, so no book has to be built.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpforest.study.statements import Statement, Verdicts
from dpforest.study.statements.rules import VERDICTS, Finding
from tests import oracle
from tools import knobs

STATIC = knobs.FOLDER.parent
PHONE = 340

pytestmark = pytest.mark.slow

#: Places of the knobs to look at, besides the first ones.
PLACES = {
    "neighbours": [
        {"eps": eps, "relation": relation, "noise": noise}
        for eps, relation, noise in itertools.product([0.1, 0.7, 2], ["add-remove", "replace-one"], [1, 2])
    ],
    "selection": [
        {"a": a, "b": b, "c": c, "d": d, "eps": eps}
        for a, b, c, d, eps in [(0, 0, 0, 0, 0.1), (10, 10, 3, 0, 2), (2, 9, 4, 9, 0.3), (0, 1, 2, 3, 0.7)]
    ],
    "odds": [{"prior": prior, "eps": eps} for prior, eps in [(1, 0), (1, 5), (50, 0.1), (50, 2.3), (99, 5)]],
    "budget": [{"eps": eps, "depth": depth} for eps, depth in [(0.1, 1), (0.5, 8), (1, 3), (2.7, 5), (3, 7)]],
}


def page(folder: Path, name: str, script: bool = True, theme: str = "light") -> str:
    """A page of one figure."""
    load = f'<script src="{(STATIC / "interactive.js").as_uri()}"></script>' if script else ""
    path = folder / f"{name}-{script}-{theme}.html"
    path.write_text(
        f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{(STATIC / "custom.css").as_uri()}">{load}'
        "<style>* { box-sizing: border-box } body { margin: 0 } figure { margin: 0 !important }</style></head>"
        f'<body><article class="bd-article">{(knobs.FOLDER / f"{name}.html").read_text()}</article></body></html>'
    )
    return path.as_uri()


def seen(browser: Any) -> knobs.Said:
    """The table and the sentence that are on the page."""
    rows, said = browser.execute_script(
        "return [[...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent)),"
        " document.querySelector('.said').textContent];"
    )
    return rows, said


def turn(browser: Any, places: dict[str, Any]) -> None:
    browser.execute_script(
        """
        for (const [knob, place] of Object.entries(arguments[0]))
          for (const input of document.querySelectorAll(`[data-knob="${knob}"]`)) {
            if (input.type === "range") input.value = place;
            else input.checked = input.value === String(place);
            input.dispatchEvent(new Event("input", { bubbles: true }));
          }
        """,
        places,
    )


def law(browser: Any, name: str, *given: Any) -> Any:
    return browser.execute_script("return dpforestLaws[arguments[0]](...arguments[1]);", name, given)


@pytest.mark.parametrize("name", knobs.FIGURES)
def test_the_script_says_what_the_library_computes(browser: Any, tmp_path: Path, name: str) -> None:
    figure = knobs.FIGURES[name]
    browser.get(page(tmp_path, name))
    first = {knob: control.value for knob, control in figure.knobs.items()}
    drawings = set()
    for places in [first, *PLACES[name]]:
        turn(browser, places)
        assert seen(browser) == figure.say(**places), places
        drawings.add(browser.execute_script("return document.querySelector('svg').innerHTML;"))
    assert len(drawings) == 1 + len(PLACES[name])
    assert not [drawing for drawing in drawings if "NaN" in drawing or "Infinity" in drawing]


@pytest.mark.parametrize("name", knobs.FIGURES)
def test_without_the_script_the_first_numbers_stand_there(browser: Any, tmp_path: Path, name: str) -> None:
    figure = knobs.FIGURES[name]
    browser.get(page(tmp_path, name, script=False))
    assert seen(browser) == figure.say(**{knob: control.value for knob, control in figure.knobs.items()})
    shown = {css: browser.find_element("css selector", css).is_displayed() for css in (".said", "table", ".controls")}
    assert shown == {".said": True, "table": True, ".controls": False}


@pytest.mark.parametrize("name", knobs.FIGURES)
def test_keys_reach_and_move_every_knob(browser: Any, tmp_path: Path, name: str) -> None:
    from selenium.webdriver import ActionChains, Keys

    browser.get(page(tmp_path, name))
    for knob, control in knobs.FIGURES[name].knobs.items():
        ActionChains(browser).send_keys(Keys.TAB).perform()
        inputs = browser.find_elements("css selector", f'[data-knob="{knob}"]')
        at = browser.switch_to.active_element
        assert at in inputs
        assert all(browser.execute_script("return arguments[0].labels.length;", each) == 1 for each in inputs)
        before = seen(browser)
        down = isinstance(control, knobs.Slider) and control.value == control.high
        ActionChains(browser).send_keys(Keys.ARROW_LEFT if down else Keys.ARROW_RIGHT).perform()
        assert seen(browser) != before
        if isinstance(control, knobs.Slider):
            moved = control.value + (-control.step if down else control.step)
            assert math.isclose(float(at.get_property("value")), moved)
            output = browser.find_element("css selector", f'output[for="{name}-{knob}"]')
            assert math.isclose(float(output.text), moved)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", knobs.FIGURES)
def test_fits_a_phone_and_asks_for_nothing(browser: Any, tmp_path: Path, name: str, theme: str) -> None:
    metrics = {"width": PHONE, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    url = page(tmp_path, name, theme=theme)
    browser.get(url)
    turn(browser, PLACES[name][-1])
    wide = """
        document.querySelector('details').open = true;
        document.body.style.color = arguments[0];
        const svg = document.querySelector('svg').getBoundingClientRect();
        const outside = (n) => { const box = n.getBoundingClientRect(); return box.right > svg.right + 1
          || box.left < svg.left - 1 || box.top < svg.top - 1 || box.bottom > svg.bottom + 1; };
        return {
          width: document.documentElement.scrollWidth,
          cut: [...document.querySelectorAll('svg *')].filter(outside).map(n => n.outerHTML),
          small: [...document.querySelectorAll('svg text')].filter(n => n.getBoundingClientRect().height < 9).length,
          ink: [...document.querySelectorAll('svg text')].map(n => getComputedStyle(n).fill),
          loaded: performance.getEntriesByType('resource').map(entry => entry.name),
        };"""
    found = browser.execute_script(wide, "rgb(1, 2, 3)")
    assert found["width"] <= PHONE
    assert found["cut"] == []
    assert found["small"] == 0
    assert set(found["ink"]) == {"rgb(1, 2, 3)"}  # the colour of the page's text
    assert [url for url in found["loaded"] if not url.startswith("file:")] == []


def test_the_laws_are_exact(browser: Any, tmp_path: Path) -> None:
    """Against fractions that know nothing of the library: at rates of ln 2 all laws are rational."""
    browser.get(page(tmp_path, "selection"))
    half = math.log(2)
    for k in range(-6, 7):
        exact = float(oracle.two_sided_geometric(k, Fraction(1, 2)))
        assert math.isclose(law(browser, "geometric", k, half), exact, rel_tol=1e-14)
    for scores in [(2, 1, 0), (0, 0, 0, 0), (7, 3, 3, 1), (1, 10, 9, 4)]:
        found = law(browser, "selection", scores, half)
        accept = oracle.acceptance(scores, 2)
        assert found["flip"] == pytest.approx([float(p) for p in oracle.permute_and_flip_orders(accept)], rel=1e-12)
        assert found["exponential"] == pytest.approx([float(p) for p in oracle.exponential(accept)], rel=1e-12)
    for depth in range(1, 9):
        found = law(browser, "budget", 1, depth)
        levels = range(1, depth + 1)
        exact = [float(oracle.level_budget(1, depth, level)) for level in levels]
        assert found["harmonic"] == pytest.approx(exact, rel=1e-12)
        assert found["leaf"] == pytest.approx([sum(exact[k:]) for k in range(depth)], rel=1e-12)
    assert law(browser, "posterior", 0.2, math.log(4)) == pytest.approx([1 / 17, 1 / 2], rel=1e-12)


def test_a_wrong_number_is_seen(browser: Any, tmp_path: Path) -> None:
    """Guards the comparison: another rate, and the table is another."""
    figure = knobs.FIGURES["selection"]
    browser.get(page(tmp_path, "selection"))
    places = {knob: control.value for knob, control in figure.knobs.items()}
    assert seen(browser) != figure.say(**(places | {"eps": places["eps"] + 0.1}))


# -- the page of claims ------------------------------------------------------------------------------------------------


def listed(browser: Any) -> tuple[list[str], str]:
    """The claims that are shown, and what is said of their number."""
    return browser.execute_script(
        "return [[...document.querySelectorAll('dt')].filter(one => one.offsetParent).map(one => one.textContent),"
        " document.querySelector('form.narrow output')?.textContent];"
    )


def test_the_page_of_claims_is_narrowed_by_verdict_evidence_kind_paper_and_words(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver import Keys

    claims = {
        "Scores": [
            ("thm-gini", "Gini", "proved", "exhaustive, formal"),
            ("pub-gini", "As printed", "no", "symbolic"),
        ],
        "Trees": [("cex-stop", "A pure node", "refuted", "exhaustive")],
    }
    sections = "".join(
        f"<section><h2>{chapter}<a>#</a></h2><dl>"
        + "".join(
            f"<dt>{title} of {chapter}</dt>"
            f"<dd><p><strong>{verdict}</strong> · {evidence} · 1/2<br><code>{claim}</code></p></dd>"
            for claim, title, verdict, evidence in rows
        )
        + "</dl></section>"
        for chapter, rows in claims.items()
    )
    papers = {"pub-gini": ["A paper", "Another"], "cex-stop": ["Another"]}
    verdicts = {"pub-gini": {"true": ["after a repair", "no"], "read": "second hand"}}
    path = tmp_path / "claims.html"
    path.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>c</title>'
        f'<link rel="stylesheet" href="{(STATIC / "custom.css").as_uri()}">'
        f'<script src="{(STATIC / "claims.js").as_uri()}"></script></head>'
        f"<body><article><section><h1>Claims<a>#</a></h1><p>All.</p>{sections}"
        f'<script type="application/json" class="papers">{json.dumps(papers)}</script>'
        f'<script type="application/json" class="verdicts">{json.dumps(verdicts)}</script>'
        "</section></article></body></html>"
    )
    browser.get(path.as_uri())
    every = ["Gini of Scores", "As printed of Scores", "A pure node of Trees"]
    assert listed(browser) == [every, "3 of 3 claims"]

    def ask(**wanted: str) -> tuple[list[str], str]:
        browser.execute_script(
            """
            const form = document.querySelector("form.narrow");
            for (const field of form.elements) if (field.name) field.value = arguments[0][field.name] || "";
            form.dispatchEvent(new Event("input"));
            """,
            wanted,
        )
        return listed(browser)

    assert (
        ask(verdict="no") == ask(verdict="after a repair") == ask(read="second hand") == [every[1:2], "1 of 3 claims"]
    )
    assert ask(verdict="refuted") == [every[2:], "1 of 3 claims"]
    assert ask(verdict="refuted", chapter="Trees") == [every[2:], "1 of 3 claims"]
    assert ask(evidence="formal") == [every[:1], "1 of 3 claims"]
    assert ask(kind="counterexamples") == [every[2:], "1 of 3 claims"]
    assert ask(paper="Another") == [every[1:], "2 of 3 claims"]
    assert ask(paper="A paper") == [every[1:2], "1 of 3 claims"]
    assert ask(words="gini pub") == [every[1:2], "1 of 3 claims"]
    assert ask(words="nothing") == [[], "0 of 3 claims"]
    assert ask() == [every, "3 of 3 claims"]
    browser.get(f"{path.as_uri()}?verdict=proved")
    assert listed(browser) == [every[:1], "1 of 3 claims"]
    browser.get(f"{path.as_uri()}?paper=A+paper")
    assert listed(browser) == [every[1:2], "1 of 3 claims"]
    papers_of = browser.find_element("css selector", "form.narrow [name=paper]")
    assert [option.text for option in papers_of.find_elements("tag name", "option")] == ["all", "A paper", "Another"]
    papers_of.send_keys(Keys.ARROW_DOWN)
    assert listed(browser) == [every[1:], "2 of 3 claims"]
    browser.set_window_size(390, 800)
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    browser.set_window_size(1280, 900)


STATEMENTS = """
    const shown = (what) => [...document.querySelectorAll(what)].filter(each => each.getClientRects().length);
    return [shown('table.statements tbody tr').map(row => row.id),
            shown('article h2').map(head => head.firstChild.textContent),
            document.querySelector('form.narrow output')?.textContent];
"""


def statements(folder: Path, script: bool) -> str:
    """A page of two papers' statements, as their notebooks show them."""
    said = {"place": "table 2", "says": "更好", "english": "Better.", "protocol": "Ours.", "paper": "+1 point"}
    papers = {"One paper": {"exp-one-a": 0, "exp-one-b": 1}, "Another": {"exp-two-a": 0, "exp-two-long-name": 4}}
    sections = ""
    for paper, rows in papers.items():
        found = [(Statement(name, **said), Finding(VERDICTS[n], "1.0 ±0.1")) for name, n in rows.items()]
        sections += f"<section><h2>{paper}<a>#</a></h2>{Verdicts(paper, found)._repr_html_()}</section>"
    load = f'<script src="{(STATIC / "claims.js").as_uri()}"></script>' if script else ""
    path = folder / f"experimental_claims-{script}.html"
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>e</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{(STATIC / "custom.css").as_uri()}">{load}'
        "<style>* { box-sizing: border-box } [hidden] { display: none !important }</style></head>"  # as the theme
        f"<body><article><section><h1>Experimental claims<a>#</a></h1><p>All.</p>{sections}</section></article></body>"
        "</html>"
    )
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_of_experimental_claims_is_narrowed_by_words_verdict_and_paper(
    browser: Any, tmp_path: Path, width: int
) -> None:
    every = ["exp-one-a", "exp-one-b", "exp-two-a", "exp-two-long-name"]
    browser.set_window_size(width, 900)
    browser.get(statements(tmp_path, script=False))
    assert browser.execute_script(STATEMENTS) == [every, ["One paper", "Another"], None]
    address = statements(tmp_path, script=True)
    for asked, left, papers in (
        ("", every, ["One paper", "Another"]),
        ("?verdict=reproduced", [every[0], every[2]], ["One paper", "Another"]),
        ("?verdict=not+reproduced", [every[1]], ["One paper"]),
        ("?paper=Another", every[2:], ["Another"]),
        ("?paper=Another&verdict=reproduced", [every[2]], ["Another"]),
        ("?words=table+LONG", [every[3]], ["Another"]),
        ("?words=nothing", [], []),
    ):
        browser.get(address + asked)
        assert browser.execute_script(STATEMENTS) == [left, papers, f"{len(left)} of 4 statements"]
    browser.get(f"{address}#exp-two-a")
    assert browser.execute_script("return document.querySelector('tr:target').id") == "exp-two-a"
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    browser.set_window_size(1280, 900)
