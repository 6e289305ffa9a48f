"""What a published book needs: a footer that says what to cite, descriptions, an address, buttons, a way back from 404.

Two variables of the environment say where it stands; without them no page points anywhere but into the book.

``DPFOREST_SITE``
    The address of the book: canonical addresses, the site map and the social card.
``DPFOREST_REPOSITORY``
    The address of the repository: in the footer, and where the theme knows its kind, buttons for the source, an issue
    and an edit of each page.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import shutil
import zipfile
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from docutils import nodes
from exercises import as_files
from fontTools import subset
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).resolve().parents[2]
BRANCH = "main"
_PROVIDERS = "github", "gitlab", "bitbucket"  # for which the theme knows the addresses of an issue and of an edit
_LONGEST = 200  # characters of a description
_EPOCH = 1980, 1, 1, 0, 0, 0  # of all files of an archive, so that one source gives the same bytes
_MARK = "book/_static/mark.svg"
_CHANGES = "book/changelog"
#: In the head of a page: the program that draws icons, and fonts that are fetched when an icon of theirs is shown.
_ICONS = re.compile(
    r'[ \t]*(?:<script src="[^"]*/fontawesome/[^"]*\.js[^"]*"></script>'
    r'|<link rel="preload" [^>]*fa-(?:brands|regular)-400\.woff2" />)\n?'
)
#: Pieces of code in the colour of the code around them: names, operators and blanks, half of a page of statements.
_PLAIN = re.compile(r'<span class="[npow]">([^<]*)</span>')
#: Cells of tables that do not wrap: numbers with signs or short words between them, and a name with one hyphen.
_UNBROKEN = re.compile(
    r'<td( style="text-align: left")?>(?=(?:[\d.,%∞+−-]+ (?:/|±|of|to|against|至) )+[\d.,%∞+−-]+(?: ✗)?</td>'
    r"|[a-z]+-[a-z]+</td>)"
)
#: A formula in a line, and the stop or bracket behind it, which would else begin the next line.
_CLOSED = re.compile(
    r'(?<!<span class="unbroken">)(<span class="math notranslate nohighlight">\\\([^<]*\\\)</span>'
    r"[,.;:!?)\]’”、。，：；！？）]+)"
)
#: Style sheets of the theme that are purged.
_STYLES = (
    "styles/bootstrap.css",
    "styles/pydata-sphinx-theme.css",
    "sphinx-design.min.css",
    "mystnb.*.css",
    "vendor/fontawesome/*/css/all.min.css",
)
_NOT_FOUND = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>No such page</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto; padding: 0 1rem; }}
</style>
</head>
<body>
<h1>There is no such page</h1>
<p>It may have another name now.</p>
<p><a href="{home}">The first page</a> · <a href="{search}">Search the book</a></p>
</body>
</html>
"""


def address(name: str) -> str:
    """The address that a variable of the environment holds, without a slash at its end; '' where it is not set.

    Raises
    ------
    ConfigError
        It is no address of the web.
    """
    said = os.environ.get(name, "").strip().rstrip("/")
    try:
        parts = urlsplit(said)
    except ValueError:
        parts = urlsplit("")
    plain = parts.scheme in ("https", "http") and parts.netloc and not parts.query and not parts.fragment
    if said and (not plain or any(letter in said for letter in "\"'<> \\")):
        raise ConfigError(f"{name} must be the address of a page, such as https://example.org/book, not {said[:80]!r}")
    return said


@cache
def cited() -> dict[str, Any]:
    """What CITATION.cff says: read once, and not twice for each page."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def citation(site: str = "", repository: str = "") -> str:
    """The entry of BibTeX for this version, from CITATION.cff."""
    said = cited()
    fields = {
        "title": "{" + said["title"] + "}",
        "author": " and ".join("{" + each["name"] + "}" for each in said["authors"]),
        "version": str(said["version"]),
        "year": str(said["date-released"])[:4] if "date-released" in said else "",
        "url": site or repository,
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join(["@software{dpforest,", *lines, "}"])


def footer(archive: str, changes: str, site: str, repository: str) -> str:
    """What stands at the end of each page: version, its changes, licence, how to cite it, all notebooks."""
    said = cited()
    date = f", {said['date-released']}" if "date-released" in said else ""
    source = f' · <a href="{repository}">Source</a>' if repository else ""
    version, licence = html.escape(f"dpforest {said['version']}"), html.escape(f"{date} · {said['license']} licence")
    return (
        f'<div class="of-this-book"><p><a href="{changes}#{anchor(str(said["version"]))}">{version}</a>{licence} · '
        f'<a href="{archive}" download>All notebooks (zip)</a>{source}</p>'
        '<details><summary>How to cite</summary><div class="highlight"><pre>'
        f"{html.escape(citation(site, repository))}</pre></div></details></div>"
    )


def configure(app: Sphinx, config: Config) -> None:
    """Give the theme its mark, and the buttons and addresses where they are known."""
    site, repository = address("DPFOREST_SITE"), address("DPFOREST_REPOSITORY")
    options: dict[str, Any] = config.html_theme_options  # type: ignore[attr-defined]
    config.html_favicon = _MARK  # type: ignore[attr-defined]
    if site:
        config.html_baseurl = f"{site}/"  # type: ignore[attr-defined]
    host = urlsplit(repository).netloc
    if known := next((name for name in _PROVIDERS if name in host), ""):
        options |= {f"use_{name}_button": True for name in ("repository", "issues", "edit_page")}
        options |= {"repository_url": repository, "repository_branch": BRANCH, "path_to_docs": ""}
        options["repository_provider"] = known


def description(doctree: nodes.document | None) -> str:
    """The first sentences of a page, as many as a list of results shows; '' where it begins with none."""
    if doctree is None:
        return ""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section | nodes.document | addnodes.desc_content):
            words = " ".join(paragraph.astext().split())
            if len(words) > _LONGEST:
                words = words[:_LONGEST].rsplit(" ", 1)[0] + " …"
            return words
    return ""


def anchor(version: str) -> str:
    """Where the page of changes begins to tell of this release."""
    return f"v{version.replace('.', '-')}"


def anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Give each release on the page of changes an anchor that does not depend on its date, such as ``v1-0-0``.

    Scripts of the theme take an anchor for a selector, in which a point would begin the name of a class.
    """
    if app.env.docname != _CHANGES:
        return
    for section in doctree.findall(nodes.section):
        if released := re.match(r"\[(\d+\.\d+\.\d+)\] - ", section[0].astext()):
            section["ids"].append(anchor(released[1]))


def describe(app: Sphinx, pagename: str, _: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Give a page its footer, its description, and what is shown where its address is shared."""
    uri, words = app.builder.get_target_uri(pagename), description(doctree)
    site, repository = address("DPFOREST_SITE"), address("DPFOREST_REPOSITORY")
    changes = relative_uri(uri, app.builder.get_target_uri(_CHANGES))
    context["theme_extra_footer"] = footer(relative_uri(uri, "_downloads/notebooks.zip"), changes, site, repository)
    title = app.env.titles.get(pagename)
    found = {"og:title": title.astext() if title is not None else str(context.get("title", ""))}
    found["og:site_name"] = str(app.config.html_title or app.config.project)
    if words:
        found |= {"description": words, "og:description": words}
    if site:
        import cards  # what draws is loaded where something is drawn

        picture = f"_images/cards/{pagename.replace('/', '-')}.png"
        cards.write(Path(app.outdir, picture), found["og:title"], found["og:site_name"])
        found |= {"og:url": f"{site}/{uri}", "og:image": f"{site}/{picture}", "twitter:card": "summary_large_image"}
    tags = "".join(
        f'\n<meta {"property" if name.startswith("og:") else "name"}="{name}" content="{html.escape(value)}">'
        for name, value in {**found, "og:type": "article"}.items()
    )
    context["metatags"] = context.get("metatags", "") + tags


def notebooks(target: Path) -> None:
    """Write all notebooks, at their own small sizes, and those of exercises as one archive."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {f"notebooks/{path.name}": path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}
        files |= {f"exercises/{name}": text for name, text in as_files().items()}
        for name, text in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, text)


def used(out: Path) -> set[str]:
    """Words that may be the name of a class: of all classes of pages, and all words of programs."""
    found: set[str] = set()
    for path in out.rglob("*.html"):
        for classes in set(re.findall(r'class="([^"]*)"', path.read_text(encoding="utf-8"))):
            found.update(classes.split())
    for path in (out / "_static").rglob("*.js"):
        if "locales" not in path.parts:
            found.update(re.findall(r"[\w-]+", path.read_text(encoding="utf-8")))
    return found


def purged(style: str, words: set[str]) -> str:
    """A style sheet without rules for classes that no page has, and without comments."""

    def kept(selector: str) -> bool:
        if "\\" in selector or re.search(r":(?:is|where|has)\(", selector):
            return True
        return all(
            name in words for name in re.findall(r"\.(-?[A-Za-z_][\w-]*)", re.sub(r":not\([^()]*\)", "", selector))
        )

    def rule(match: re.Match[str]) -> str:
        if "(" in match[1] and re.search(r":(?:is|where|has|not)\([^()]*,", match[1]):
            return match[0]
        selectors = [selector for selector in match[1].split(",") if kept(selector)]
        return f"{','.join(selectors)}{{{match[2]}}}" if selectors else ""

    style = re.sub(r"/\*.*?\*/", "", style, flags=re.S)
    return re.sub(r"@media[^{};]*\{\s*\}", "", re.sub(r"([^{};]+)\{([^{}]*)\}", rule, style))


def icons(out: Path) -> None:
    """Keep of the theme's font of icons those that a page or a style sheet names."""
    for font in out.glob("_static/vendor/fontawesome/*/webfonts/fa-solid-900.ttf"):
        styles = [path.read_text(encoding="utf-8") for path in (out / "_static").rglob("*.css")]
        named = {int(code, 16) for style in styles for code in re.findall(r"\\(f[0-9a-f]{3}|e[0-9a-f]{3})\b", style)}
        written = {ord(letter) for style in styles for letter in style if "\ue000" <= letter <= "\uf8ff"}
        options = subset.Options(flavor="woff", notdef_outline=True, recalc_timestamp=False)
        face = subset.load_font(str(font), options)
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=named | written)
        subsetter.subset(face)
        subset.save_font(face, str(font.with_suffix(".woff2")), options)  # under the name that pages and styles have


def empty(app: Sphinx, _: Config) -> None:
    """Remove what an earlier build wrote: pages show titles and numbers of others, and the search must know them all.

    Sphinx would write the pages alone that changed, put those into an index that forgets words of the others, and leave
    the others with the addresses of style sheets that have changed.
    """
    out = Path(app.outdir)
    if (out / ".buildinfo").exists():  # that of a book, and no other folder
        for path in out.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def lighten(out: Path) -> None:
    """Leave out what no page of this book uses of the theme: its program for icons, rules, icons, two more fonts.

    Nor are pieces of code marked that look like the code around them.  And a figure that was written into a page
    becomes a file, which is fetched when a reader comes near it.  Cells of a few numbers or of one word stay on a line,
    since a table that is too wide for a phone scrolls in any case; no line begins with the stop behind a formula.
    """
    for path in out.rglob("*.html"):

        def laid_beside(match: re.Match[str], path: Path = path) -> str:
            figure = base64.b64decode(match[1])
            file = out / "_images" / f"{hashlib.sha256(figure).hexdigest()[:32]}.png"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(figure)
            return f'src="{os.path.relpath(file, path.parent)}" loading="lazy"'

        text = path.read_text(encoding="utf-8")
        light = _PLAIN.sub(r"\1", _ICONS.sub("", text))
        light = re.sub(r'src="data:image/png;base64,([^"]*)"', laid_beside, light)
        light = _UNBROKEN.sub(r'<td\1 class="unbroken">', light)
        light = _CLOSED.sub(r'<span class="unbroken">\1</span>', light)
        if light != text:
            path.write_text(light, encoding="utf-8")
    words = used(out)
    for path in (path for pattern in _STYLES for path in out.glob(f"_static/{pattern}")):
        path.write_text(purged(path.read_text(encoding="utf-8"), words), encoding="utf-8")
    icons(out)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write what belongs to no page."""
    if error is not None or app.builder.format != "html":
        return
    site, out = address("DPFOREST_SITE"), Path(app.outdir)
    lighten(out)
    notebooks(out / "_downloads" / "notebooks.zip")
    home = f"{site}/" if site else ""  # without an address right for pages of the first folder alone
    page = _NOT_FOUND.format(home=f"{home}index.html", search=f"{home}search.html")
    (out / "404.html").write_text(page, encoding="utf-8")
    (out / "sitemap.xml").unlink(missing_ok=True)
    if site:
        pages = sorted(app.env.found_docs)
        lines = [f"<url><loc>{html.escape(f'{site}/{app.builder.get_target_uri(page)}')}</loc></url>" for page in pages]
        start = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        (out / "sitemap.xml").write_text("\n".join([start, *lines, "</urlset>", ""]), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("config-inited", configure)
    app.connect("config-inited", empty)
    app.connect("doctree-read", anchors)
    app.connect("html-page-context", describe)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
