"""The book as it is published: what stands in every page, and what two variables of the environment switch on."""

from __future__ import annotations

import html
import io
import re
import runpy
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import PIL.Image
import pytest
import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from tests import not_run

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"
PAGES = sorted(path for folder in ("book", "notebooks") for path in (HTML / folder).rglob("*.html"))
sys.path.insert(0, str(ROOT / "book" / "_extensions"))
BUILT = runpy.run_path(str(ROOT / "book" / "_extensions" / "publishing.py"))
SITE, REPOSITORY = "https://example.org/forests", "https://github.com/example/dpforest"
needs_book = pytest.mark.skipif(not PAGES, reason=not_run.BOOK)


@pytest.fixture
def app(tmp_path):
    """As much of Sphinx as the extension asks."""
    uri = lambda page: f"{page}.html"  # noqa: E731
    config = SimpleNamespace(html_theme_options={}, html_title="The book", project="p", html_baseurl="")
    titles = {"book/a": nodes.title("", "A & B")}
    builder = SimpleNamespace(format="html", get_target_uri=uri)
    return SimpleNamespace(
        config=config, builder=builder, outdir=tmp_path, env=SimpleNamespace(found_docs={"book/a"}, titles=titles)
    )


def page_of(app, *paragraphs: str) -> dict:
    """What the template of a page with these paragraphs is given."""
    document = nodes.document(None, None)
    document += nodes.section("", *(nodes.paragraph("", text) for text in paragraphs))
    context: dict = {}
    BUILT["describe"](app, "book/a", "", context, document)
    return context


def test_without_the_variables_no_page_points_anywhere(app, monkeypatch):
    for name in ("DPFOREST_SITE", "DPFOREST_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    BUILT["configure"](app, app.config)
    BUILT["finish"](app, None)
    said = page_of(app, "What a forest is.")
    assert app.config.html_theme_options == {}
    assert app.config.html_baseurl == ""
    assert sorted(path.name for path in app.outdir.iterdir()) == ["404.html", "_downloads"]
    assert "//" not in said["metatags"] + said["theme_extra_footer"] + (app.outdir / "404.html").read_text()


def test_with_them_there_are_buttons_addresses_and_a_site_map(app, monkeypatch):
    monkeypatch.setenv("DPFOREST_SITE", f"{SITE}/")
    monkeypatch.setenv("DPFOREST_REPOSITORY", REPOSITORY)
    BUILT["configure"](app, app.config)
    BUILT["finish"](app, None)
    said, options = page_of(app, "What a forest is."), app.config.html_theme_options
    assert options["repository_url"] == REPOSITORY
    assert options["use_issues_button"]
    assert options["repository_provider"] == "github"
    assert app.config.html_baseurl == f"{SITE}/"
    assert f'<meta property="og:url" content="{SITE}/book/a.html">' in said["metatags"]
    assert f'<meta property="og:image" content="{SITE}/_images/cards/book-a.png">' in said["metatags"]
    assert '<meta name="twitter:card" content="summary_large_image">' in said["metatags"]
    with PIL.Image.open(app.outdir / "_images" / "cards" / "book-a.png") as card:
        assert card.size == (1200, 630)
    assert 'content="A &amp; B"' in said["metatags"]
    assert f'<a href="{REPOSITORY}">' in said["theme_extra_footer"]
    assert f'href="{SITE}/index.html"' in (app.outdir / "404.html").read_text()
    [place] = ElementTree.parse(app.outdir / "sitemap.xml").findall(".//{*}loc")
    assert place.text == f"{SITE}/book/a.html"

    # the theme refuses buttons for a host that it does not know: a link in the footer is left
    monkeypatch.setenv("DPFOREST_REPOSITORY", "https://code.example.org/dpforest")
    options.clear()
    BUILT["configure"](app, app.config)
    assert options == {}
    # and a site map that is no longer true goes
    monkeypatch.delenv("DPFOREST_SITE")
    BUILT["finish"](app, None)
    assert not (app.outdir / "sitemap.xml").exists()


@pytest.mark.parametrize(
    "wrong", ["example.org", "ftp://example.org", "https://", "https://a/?q=1", "https://[a", 'https://a/"b']
)
def test_what_is_no_address_is_refused(monkeypatch, wrong):
    monkeypatch.setenv("DPFOREST_SITE", wrong)
    with pytest.raises(ConfigError, match="DPFOREST_SITE must be the address of a page"):
        BUILT["address"]("DPFOREST_SITE")


def test_a_card_has_the_title_of_its_page_in_letters_that_can_be_drawn(tmp_path):
    """Of a title in Chinese, which the face has not, the book's own takes the place, and no boxes."""

    def card(title: str) -> bytes:
        import_module("cards").write(tmp_path / "card.png", title, "The book")
        return (tmp_path / "card.png").read_bytes()

    assert card("分类") == card("") == card("The book") != card("Mechanisms")
    for title in ("(ε, δ)", "word " * 100):
        with PIL.Image.open(io.BytesIO(card(title))) as drawn:
            assert drawn.convert("L").crop((1150, 0, 1200, 630)).getextrema() == (255, 255)


def test_a_description_is_how_a_page_begins(app):
    assert (
        'name="description" content="What &quot;a&quot;\nis."'.replace("\n", " ")
        in page_of(app, 'What "a"\nis.', "More.")["metatags"]
    )
    long = page_of(app, "word " * 100)["metatags"]
    assert max(map(len, re.findall('content="([^"]*)"', long))) <= 202
    assert "description" not in page_of(app)["metatags"]


def test_the_footer_leads_to_what_changed_in_this_version(app):
    version = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    said = page_of(app, "What a forest is.")["theme_extra_footer"]
    anchor = f"v{version.replace('.', '-')}"
    assert f'<a href="changelog.html#{anchor}">dpforest {version}</a>' in said

    heads = "Changelog", "[Unreleased]", f"[{version}] - 2026-11-26", "Added", "[0.1] - 2026-01-01"
    sections = [nodes.section("", nodes.title("", head), ids=[head]) for head in heads]
    document = nodes.document(None, None)
    document += sections
    for page, more in (("book/a", [[]] * 5), ("book/changelog", [[], [], [anchor], [], []])):
        app.env.docname = page
        BUILT["anchors"](app, document)
        assert [section["ids"][1:] for section in sections] == more


def test_what_is_cited_is_this_version():
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    entry = BUILT["citation"](SITE, REPOSITORY)
    assert entry.startswith("@software{dpforest,\n")
    assert f"  version = {{{said['version']}}},\n" in entry
    assert f"  url = {{{SITE}}},\n" in entry
    assert entry.count("{") == entry.count("}")
    assert "url" not in BUILT["citation"]()


def test_the_archive_has_every_notebook_and_is_the_same_bytes(tmp_path):
    one, other = tmp_path / "a.zip", tmp_path / "b.zip"
    for path in (one, other):
        BUILT["notebooks"](path)
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert archive.testzip() is None
        sources = {f"notebooks/{path.name}": path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}
        found = {name: archive.read(name) for name in archive.namelist()}
    assert {name: text for name, text in found.items() if name.startswith("notebooks/")} == sources
    others = set(found) - set(sources)
    assert len(others) > 20
    assert all(re.fullmatch(r"exercises/\w+\.ipynb", name) for name in others)


def installing(folder, monkeypatch, repository):
    """How an English page and a Chinese one say to install, with this address of the repository ('' for none)."""
    if repository:
        monkeypatch.setenv("DPFOREST_REPOSITORY", repository)
    else:
        monkeypatch.delenv("DPFOREST_REPOSITORY", raising=False)
    monkeypatch.setattr(import_module("shipped"), "ship", lambda folder, repository: [])
    (folder / "book" / "zh").mkdir(parents=True)
    text = "A title\n=======\n\n.. shipped:: wheel\n\n   pip install ./WHEEL\n\n.. shipped:: copy\n\n   make book\n"
    for page in ("index", "book/zh/intro"):
        (folder / f"{page}.rst").write_text(text, encoding="utf-8")
    quiet = {"status": None, "warning": None, "confoverrides": {"extensions": ["shipped"]}}
    app = Sphinx(folder, None, folder / "out", folder / "trees", "html", **quiet)
    app.build()
    pages = [app.env.get_doctree(page) for page in ("index", "book/zh/intro")]
    return [
        ([n.astext() for n in page.findall(nodes.literal_block)], [n["refuri"] for n in page.findall(nodes.reference)])
        for page in pages
    ]


def test_a_page_says_how_the_library_and_a_copy_of_the_repository_are_had(tmp_path, monkeypatch):
    version = BUILT["cited"]()["version"]
    wheel, archive = f"dpforest-{version}-py3-none-any.whl", f"dpforest-{version}.tar.gz"
    unpacked = f"$ tar xf {archive}\n$ cd dpforest-{version}\n$ make book"
    cloned = f"$ git clone {REPOSITORY} dpforest\n$ cd dpforest\n$ make book"
    for repository, copied, files in (("", unpacked, [wheel, archive]), (REPOSITORY, cloned, [wheel])):
        found = installing(tmp_path / (repository[:5] or "none"), monkeypatch, repository)
        for (blocks, links), up in zip(found, ("", "../../"), strict=True):
            assert blocks == [f"$ pip install ./{wheel}", copied]
            assert links == [f"{up}_downloads/{file}" for file in files]


@pytest.mark.slow
def test_what_a_page_offers_is_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    shipped = import_module("shipped")
    one, other = (shipped.ship(tmp_path / name) for name in "ab")
    wheel, archive = shipped.names()
    assert [path.name for path in one] == [path.name for path in other] == [wheel, f"{archive}.tar.gz"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]
    assert [path.name for path in shipped.ship(tmp_path / "c", REPOSITORY)] == [wheel]


@needs_book
def test_readers_find_the_wheel_and_the_repository():
    """A page that speaks of the repository leads to it; where an address was known, by a clone."""
    wheel, archive = import_module("shipped").names()
    for page in ("book/faq", "book/intro", "book/zh/intro"):
        text = (HTML / f"{page}.html").read_text(encoding="utf-8")
        up = "../" * page.count("/")
        assert f'href="{up}_downloads/{wheel}"' in text, page
        unpacked, cloned = f'href="{up}_downloads/{archive}.tar.gz"', "git clone http"
        assert unpacked in text or cloned in re.sub("<[^>]*>", "", text), page
        for name in (wheel, f"{archive}.tar.gz") if unpacked in text else (wheel,):
            assert (HTML / "_downloads" / name).stat().st_size > 500_000
    evidence = list((HTML / "evidence").glob("*.html"))
    assert len(evidence) > 20
    for path in evidence:
        text = path.read_text(encoding="utf-8")
        assert text.count("Run it, in <a ") == text.count('href="../book/faq.html#where-is-the-repository"') > 0, path
    for path in PAGES:
        if "book/rooms" not in str(path) and "changelog" not in path.name:
            assert "in a copy of the repository" not in path.read_text(encoding="utf-8"), path


def test_a_book_that_is_built_again_is_written_whole(tmp_path):
    """Otherwise the search would forget words of pages that did not change, and these would name old style sheets."""
    book, other = tmp_path / "html", tmp_path / "other"
    for folder in (book, other):
        (folder / "book").mkdir(parents=True)
        (folder / "book" / "edprf.html").write_text("a page")
        (folder / "searchindex.js").write_text("words")
    (book / ".buildinfo").write_text("Sphinx build info")
    for folder in (book, other):
        BUILT["empty"](SimpleNamespace(outdir=folder), None)
    assert [*book.iterdir()] == []
    assert (other / "book" / "edprf.html").exists()  # which is no book


def test_rules_are_kept_for_classes_that_there_are():
    kept = (
        "@media print{.a:not(.b){z:1}p{q:1}}@keyframes k{0%{w:0}50.5%{w:1}}.a:is(.b,.c){v:1}.sd\\:b{u:1}"
        "@font-face{font-family:x}"
    )
    style = "/* .a{} */:root{--x:1}.a,.b{color:red}.b .a{x:1}@media (min-width:1px){.b{y:1}}" + kept
    assert BUILT["purged"](style, {"a"}) == ":root{--x:1}.a{color:red}" + kept


def test_a_figure_in_a_page_becomes_a_file_and_programs_for_icons_go(tmp_path):
    page = tmp_path / "book" / "a.html"
    page.parent.mkdir()
    page.write_text(
        '<script src="../_static/vendor/fontawesome/6/js/all.min.js"></script>\n'
        '<link rel="preload" as="font" href="x/fa-brands-400.woff2" /><p class="a b"><span class="n">f</span>'
        '<span class="k">in</span><span class="p">(</span><span class="n">b</span><img alt="x" '
        'src="data:image/png;base64,aGVsbG8="></p>'
    )
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a.js").write_text("x.classList.add('made-later')")
    assert BUILT["used"](tmp_path) == {*"abknpx", "classList", "add", "made-later"}
    BUILT["lighten"](tmp_path)
    [figure] = (tmp_path / "_images").iterdir()
    assert figure.read_bytes() == b"hello"
    assert page.read_text() == (
        f'<p class="a b">f<span class="k">in</span>(b<img alt="x" src="../_images/{figure.name}" loading="lazy"></p>'
    )


def test_cells_of_numbers_or_of_one_word_do_not_wrap(tmp_path):
    style = ' style="text-align: left"'
    kept = ["0.850 / 0.820 / 0.401", "45 of 300", "0.871 ± 0.010", "2.87 to 5.75 ✗", "6.95 至 ∞ ✗", "add-remove"]
    others = [
        "0.850",
        "2 of the 300",
        "a long word",
        "Add - remove",
        "congressional-voting-1984",
        "of 300",
        "a <b>b</b>",
    ]
    page = tmp_path / "a.html"
    page.write_text("".join(f"<td{style}>{cell}</td><td>{cell}</td>" for cell in kept + others), encoding="utf-8")
    (tmp_path / "_static").mkdir()
    BUILT["lighten"](tmp_path)
    shown = page.read_text(encoding="utf-8")
    for cell in kept:
        assert f'<td{style} class="unbroken">{cell}</td><td class="unbroken">{cell}</td>' in shown, cell
    for cell in others:
        assert f"<td{style}>{cell}</td><td>{cell}</td>" in shown, cell


def test_no_line_begins_with_the_stop_behind_a_formula(tmp_path):
    formula = r'<span class="math notranslate nohighlight">\(a &lt; b\)</span>'
    page = tmp_path / "a.html"
    page.write_text(f"<p>{formula}, or {formula} and {formula}).</p><p>{formula}。</p>", encoding="utf-8")
    (tmp_path / "_static").mkdir()
    for _ in range(2):  # a page that has not changed is not written again
        BUILT["lighten"](tmp_path)
    kept = [f'<span class="unbroken">{formula}{stop}</span>' for stop in (",", ").", "。")]
    assert page.read_text(encoding="utf-8") == f"<p>{kept[0]} or {formula} and {kept[1]}</p><p>{kept[2]}</p>"


@needs_book
def test_code_that_is_not_marked_has_the_colour_of_what_was():
    style = (HTML / "_static" / "pygments.css").read_text(encoding="utf-8")
    for theme in ("light", "dark"):
        start = re.escape(f'html[data-theme="{theme}"] .highlight ')
        [plain] = set(re.findall(rf"{start}\{{[^}}]*[ ;]color: (#\w+)", style))
        for kind in "npw":
            assert re.findall(rf"{start}\.{kind} \{{ color: (#\w+)", style) == [plain]


@pytest.mark.slow
@needs_book
def test_every_page_has_a_footer_a_description_and_a_mark():
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        assert text.count('<div class="of-this-book">') == 1, path
        assert html.unescape(text).count("@software{dpforest,") == 1, path
        assert '<link rel="icon" href="' in text, path
        assert not re.search('<script src="[^"]*fontawesome', text), path  # the fonts have the icons
        assert re.search('<link href="[^"]*fontawesome[^"]*css', text), path
        if path.name != "bibliography.html":  # which has no sentence
            assert len(re.findall('<meta name="description" content="[^"]{10,}"', text)) == 1, path
