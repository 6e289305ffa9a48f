"""Print the built book as one PDF: ``make pdf``.

The pages are those of ``make book``, so numbers of theorems and targets of links are what the pages say.  They are put
one after the other in the order of the table of contents, every anchor gets its page's name in front, folds are opened
and tabs laid out below each other; then headless Chromium sets the equations and prints.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
#: What is of use on a screen only.
SCREEN = (
    ".edition, .headerlink, .viewcode-link, .toctree-wrapper, .sd-summary-state-marker, .sd-tab-set > input, script, "
    "details.hide > summary, .exercises-notebook"
)
#: Classes of spans of code that look like the code around them: without them the file is smaller, and printed sooner.
PLAIN = ["n", "p", "w", "o", "pre"]
#: Style sheets of the pages that print needs, and the one that goes over them.
STYLES = re.compile(
    r"_static/(styles/(bootstrap|pydata-sphinx-theme|theme|sphinx-book-theme)|vendor/.*all\.min|pygments|mystnb|proof"
    r"|sphinx-design|custom)[^/]*\.css"
)
PRINT = Path(__file__).with_name("print.css")
#: The width of the text on the sheet, in CSS pixels: A4 less the margins of print.css.
WIDTH = round((210 - 2 * 20) / 25.4 * 96)
MINUTES = 30


class PdfError(Exception):
    """The book cannot be printed here."""


@dataclass
class Page:
    """A page of the book: its name, how deep it is in the contents, and the part that it opens."""

    name: str
    depth: int
    part: str = ""

    @property
    def anchor(self) -> str:
        """The id of the page in the printed book."""
        return self.name.replace("/", "-")


def pages(toc: dict[str, Any]) -> list[Page]:
    """List the pages in the order of the table of contents."""
    found = [Page(toc["root"], 0)]
    for part in toc["parts"]:
        captions = [part["caption"]] + [""] * len(part["chapters"])
        for chapter, caption in zip(part["chapters"], captions, strict=False):
            found.append(Page(chapter["file"], 1, caption))
            found += [Page(section["file"], 2) for section in chapter.get("sections", [])]
    return found


def article(page: Page, names: dict[str, str], html: Path) -> Tag:
    """Return the text of a page: anchors and links of the one printed book, folds open, headings by depth."""
    path = html / f"{page.name}.html"
    found = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").select_one("article.bd-article")
    if found is None:
        raise PdfError(f"{path} has no article")
    for node in found.select(SCREEN):
        node.decompose()
    for node in found.find_all(id=True):
        node["id"] = f"{page.anchor}--{node['id']}"
    for node in found.find_all("a", href=True):
        target = printed(str(node["href"]), path, names, html)
        if target:
            node["href"] = target
        else:
            node.unwrap()
    for node in found.find_all(src=True):
        if not urlsplit(str(node["src"])).scheme:
            node["src"] = uri(path.parent, str(node["src"]))
        del node["loading"]
    for node in found.find_all("span", class_=PLAIN):
        node.unwrap()
    found.smooth()
    for node in found.find_all("details"):
        node["open"] = ""
        if "hide" in (node.get("class") or []):
            node.name = "div"
    for node in found.find_all(re.compile(r"^h[1-6]$")):
        node.name = f"h{min(6, int(node.name[1]) + max(page.depth, 1))}"
    found.attrs.update({"class": f"bd-article depth-{page.depth}", "id": page.anchor})
    return found


def uri(folder: Path, link: str) -> str:
    """Return the address of a file that a page in this folder shows."""
    return (folder / unquote(urlsplit(link).path)).resolve().as_uri()


def printed(href: str, path: Path, names: dict[str, str], html: Path) -> str:
    """Return where a link leads in the printed book; nothing, if to something that is not printed."""
    parts = urlsplit(href)
    if parts.scheme or parts.netloc:
        return href
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
    anchor = names.get(str(target.relative_to(html.resolve()))) if target.is_relative_to(html.resolve()) else None
    if anchor is None:
        return ""
    return f"#{anchor}--{unquote(parts.fragment)}" if parts.fragment else f"#{anchor}"


def one_page(toc: dict[str, Any], html: Path, title: str, author: str) -> str:
    """Return the whole book as one page, which shows files of the built book."""
    listed = pages(toc)
    names = {f"{page.name}.html": page.anchor for page in listed}
    head = BeautifulSoup((html / f"{listed[0].name}.html").read_text(encoding="utf-8"), "html.parser")
    base = (html / f"{listed[0].name}.html").parent
    styles, scripts = [], []
    for link in head.find_all("link", rel="stylesheet"):
        if STYLES.search(str(link["href"])):
            styles.append(f'<link rel="stylesheet" href="{uri(base, str(link["href"]))}">')
    for script in head.find_all("script"):
        if "MathJax" in (script.string or ""):
            # No copy of each equation for screen readers, which doubles the page.
            scripts.append(f"<script>{script.string}; (MathJax.options ||= {{}}).enableAssistiveMml = false;</script>")
        elif "mathjax" in str(script.get("src", "")):
            scripts.append(f'<script defer src="{uri(base, str(script["src"]))}"></script>')
    body, contents = [], []
    for page in listed:
        text = article(page, names, html)
        heading = text.find(re.compile("^h[1-6]$"))
        if page.part:
            body.append(f'<h1 class="part">{escape(page.part)}</h1>')
            contents.append(f'<li class="part">{escape(page.part)}</li>')
        name = heading.get_text() if heading else page.name
        contents.append(f'<li class="depth-{page.depth}"><a href="#{page.anchor}">{escape(name)}</a></li>')
        body.append(str(text))
    return "\n".join(
        [
            '<!doctype html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">',
            f"<title>{escape(title)}</title>",
            *styles,
            *scripts,
            f"<style>{PRINT.read_text()}</style></head><body>",
            f'<div class="front"><p class="title">{escape(title)}</p><p>{escape(author)}</p></div>',
            '<div class="contents"><h1>Contents</h1><ul>',
            *contents,
            "</ul></div>",
            *body,
            "</body></html>",
        ]
    )


#: Waits until all equations are set; gives each its TeX as the text that stands for it, without which a tagged PDF
#: describes every glyph; and makes what is wider than the text as narrow as the text.
READY = """
const done = arguments[0];
const fit = () => {
  for (const item of (window.MathJax && MathJax.startup) ? MathJax.startup.document.math : []) {
    item.typesetRoot?.setAttribute("role", "img");
    item.typesetRoot?.setAttribute("aria-label", item.math);
  }
  const width = (box) => box.getBoundingClientRect().width;
  const boxes = [...document.querySelectorAll("table, mjx-container[display='true'] > svg")];
  const scales = boxes.map(box => width(box.parentElement) / width(box));  // all, before any change moves the page
  boxes.forEach((box, i) => { if (0 < scales[i] && scales[i] < 0.998) box.style.zoom = Math.max(0.35, scales[i]); });
  const wide = [...document.querySelectorAll("table, mjx-container svg, img, pre")]
    .filter(box => box.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
  done({wide: wide.map(box => box.outerHTML.slice(0, 100)),
        math: document.querySelectorAll(".math").length, set: document.querySelectorAll("mjx-container").length,
        wrong: document.querySelectorAll("[data-mml-node='merror'], mjx-merror").length,
        links: document.querySelectorAll("a[href^='#']").length,
        dead: [...document.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href").slice(1))
              .filter(id => !document.getElementById(id)),
        broken: [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)});
};
const ready = window.MathJax && MathJax.startup ? MathJax.startup.promise : Promise.resolve();
ready.then(() => document.fonts.ready).then(fit).catch(error => done({error: String(error && error.stack)}));
"""


def browser(folder: Path, minutes: int = MINUTES, log: bool = False) -> Any:
    """Start headless Chromium, which keeps its files in this folder; ``log``: with what it asks of servers."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not (chromium and chromedriver):
        raise PdfError("chromium and chromedriver are not installed, and they set and print the pages")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "disable-dev-shm-usage",
        "hide-scrollbars",
        "allow-file-access-from-files",
        f"user-data-dir={folder}",
    ):
        options.add_argument(f"--{flag}")
    if log:
        options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    executor: Any = driver.command_executor
    executor.client_config.timeout = 60 * max(minutes, 2)
    driver.set_page_load_timeout(60 * minutes)
    driver.set_script_timeout(60 * minutes)
    return driver


def has_chinese() -> bool:
    """Tell whether there is a font for the Chinese in the book, as far as fontconfig knows."""
    if not (fonts := shutil.which("fc-list")):
        return True
    return bool(subprocess.run([fonts, ":lang=zh"], capture_output=True, check=False).stdout)


def print_page(source: Path, target: Path) -> dict[str, Any]:
    """Print a page, and tell what was on it."""
    with tempfile.TemporaryDirectory() as folder:
        driver = browser(Path(folder))
        try:
            metrics = {"width": WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
            driver.get(source.resolve().as_uri())
            seen: dict[str, Any] = driver.execute_async_script(READY)
            if "error" in seen:
                raise PdfError(seen["error"])
            options = {
                "preferCSSPageSize": True,
                "printBackground": True,
                "transferMode": "ReturnAsStream",
                "generateTaggedPDF": True,
                "generateDocumentOutline": True,
            }
            stream = driver.execute_cdp_cmd("Page.printToPDF", options)["stream"]
            with target.open("wb") as file:
                while True:
                    piece = driver.execute_cdp_cmd("IO.read", {"handle": stream, "size": 1 << 20})
                    file.write(base64.b64decode(piece["data"]))
                    if piece["eof"]:
                        break
        finally:
            driver.quit()
    return seen


def main(arguments: list[str] | None = None) -> int:
    """Print the book that was built; return the exit code."""
    parser = argparse.ArgumentParser(prog="pdf.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--html", type=Path, default=BUILD / "html", help="the built book (default: _build/html)")
    parser.add_argument("--to", type=Path, default=BUILD / "dpforest.pdf", help="(default: _build/dpforest.pdf)")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    toc, config = (yaml.safe_load((ROOT / name).read_text()) for name in ("_toc.yml", "_config.yml"))
    try:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "book.html"
            source.write_text(one_page(toc, options.html, config["title"], config["author"]), encoding="utf-8")
            seen = print_page(source, options.to)
    except (PdfError, FileNotFoundError) as error:
        print(f"pdf.py: {error}", file=sys.stderr)
        return 1
    size, count = options.to.stat().st_size / 1e6, len(re.findall(rb"/Type ?/Page\b", options.to.read_bytes()))
    print(
        f"{options.to}: {count} pages, {size:.1f} MB, {time.monotonic() - start:.0f} s; "
        f"{seen['set']} equations, {seen['links']} links inside"
    )
    if not has_chinese():
        print("pdf.py: no font with Chinese was found, so its Chinese is boxes (Debian: fonts-noto-cjk)")
    problems = {name: seen[name] for name in ("wrong", "dead", "broken", "wide") if seen[name]}
    if problems or seen["set"] < seen["math"]:
        print(f"pdf.py: not as it should be: {json.dumps(problems)[:2000]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
