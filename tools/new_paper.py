"""Lay out a new paper, or take it out again.

    python -m tools.new_paper lumberjack Lumberjack    # make paper KEY=lumberjack CLASS=Lumberjack
    python -m tools.new_paper --out lumberjack         # make paper-out KEY=lumberjack

A paper has a module, a chapter, tests and a notebook of one name, a line in the registry, two in the table of contents
and an entry in the bibliography.  They are made from ``tools/paper_templates/``, in which the paper is called
``newpaper`` and its estimator ``NewPaperClassifier``.  The tests fail until every place marked `MARK` is filled in.
"""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from collections.abc import Callable
from pathlib import Path

from tools.lists import REGISTRY, ROOT, papers, registered

#: What marks a place that is to be filled in; `tests/test_house.py` finds it.
MARK = "TODO"
TEMPLATES = Path(__file__).with_name("paper_templates")
TOC, BIBLIOGRAPHY = Path("_toc.yml"), Path("book/references.bib")
#: Where each template goes.
ROOMS = {
    "module.py": "dpforest/papers/{}.py",
    "chapter.md": "book/{}.md",
    "tests.py": "tests/test_{}.py",
    "notebook.ipynb": "notebooks/{}.ipynb",
}
#: At the end of which part of the book a paper's pages stand, its run below its chapter.
PART = "Forests"
PAGES = "book/{}", "notebooks/rendered/{}"
END = "Classifier"


class PaperError(Exception):
    """A paper cannot be laid out, or taken out: the message says why."""


def filled(template: str, key: str, name: str) -> str:
    """A template with the paper's own names."""
    text = (TEMPLATES / template).read_text()
    text = text.replace(f"NewPaper{END}", name).replace("NewPaper", name.removesuffix(END)).replace("newpaper", key)
    return text.replace("new-paper", key.replace("_", "-"))


def files(key: str, name: str) -> dict[Path, str]:
    """The paper's own files, with what they say at first."""
    return {Path(place.format(key)): filled(template, key, name) for template, place in ROOMS.items()}


def check_names(root: Path, key: str, name: str) -> str:
    """Refuse names that cannot be used, or are; return the estimator's."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", key) or keyword.iskeyword(key):
        raise PaperError(f"KEY={key!r} names a module: write small letters, digits and _, and no keyword")
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        raise PaperError(f"CLASS={name!r} names the estimator, as in CLASS=Lumberjack for Lumberjack{END}")
    if name.endswith("Regressor"):
        raise PaperError(f"CLASS={name!r}: the templates are of a classifier; start from one, and change its base")
    name = name.removesuffix(END) + END
    if name == END:
        raise PaperError(f"CLASS={END} says nothing of the paper")
    there = papers(root)
    if key in there:
        raise PaperError(f"there is a paper {key!r}, with {', '.join(there[key])}")
    if taken := [other for other, names in there.items() if name in names]:
        raise PaperError(f"{name} is of the paper {taken[0]!r}")
    if used := [str(path) for path in files(key, name) if (root / path).exists()]:
        raise PaperError(f"there is already {', '.join(used)}")
    toc, bibliography = (root / TOC).read_text(), (root / BIBLIOGRAPHY).read_text()
    if any(f"file: {page.format(key)}\n" in toc for page in PAGES):
        raise PaperError(f"{TOC} has a page {key!r}")
    if f"{{{key}," in bibliography:
        raise PaperError(f"{BIBLIOGRAPHY} has an entry {key!r}")
    return name


# -- the lines in files that all papers share ------------------------------------------------------------------------


def registry_line(key: str, name: str) -> str:
    return f'    "{key}": ("{name}",),\n'


def toc_lines(key: str) -> str:
    chapter, run = (page.format(key) for page in PAGES)
    return f"      - file: {chapter}\n        sections:\n          - file: {run}\n"


def with_registry_line(root: Path, key: str, name: str) -> str:
    lines = (root / REGISTRY).read_text().splitlines(keepends=True)
    end = registered(root).end_lineno
    assert end is not None
    return "".join([*lines[: end - 1], registry_line(key, name), *lines[end - 1 :]])


def with_toc_lines(text: str, key: str) -> str:
    match = re.search(rf"^  - caption: {PART}\n(?:    .*\n)+", text, flags=re.M)
    if not match:
        raise PaperError(f"{TOC} has no part {PART!r}")
    return text[: match.end()] + toc_lines(key) + text[match.end() :]


# -- in and out ------------------------------------------------------------------------------------------------------


def add(root: Path, key: str, name: str) -> list[Path]:
    """Lay out a paper; returns what was written."""
    name = check_names(root, key, name)
    texts = files(key, name)
    texts[TOC] = with_toc_lines((root / TOC).read_text(), key)
    texts[BIBLIOGRAPHY] = (root / BIBLIOGRAPHY).read_text() + filled("entry.bib", key, name)
    texts[REGISTRY] = with_registry_line(root, key, name)
    for path, text in texts.items():
        (root / path).write_text(text)
    return list(texts)


def take_out(root: Path, key: str) -> list[Path]:
    """Take out a paper on which nobody has worked yet; returns what was deleted or changed."""
    if key not in papers(root):
        raise PaperError(f"there is no paper {key!r}; there are {', '.join(papers(root))}")
    name = papers(root)[key][0]
    own = files(key, name)
    if gone := [str(path) for path in own if not (root / path).exists()]:
        raise PaperError(f"{', '.join(gone)}: not there; take the rest of {key!r} out by hand")
    if changed := [str(path) for path, text in own.items() if not _says(root / path, text)]:
        raise PaperError(f"{', '.join(changed)}: no longer as `make paper` left it; take it out by hand")
    shared = {
        TOC: [toc_lines(key)],
        BIBLIOGRAPHY: [filled("entry.bib", key, name)],
        REGISTRY: [registry_line(key, name)],
    }
    texts = {path: (root / path).read_text() for path in shared}
    for path, pieces in shared.items():
        for piece in pieces:
            if piece not in texts[path]:
                raise PaperError(f"{path}: no longer as `make paper` left it; take {key!r} out by hand")
            texts[path] = texts[path].replace(piece, "")
    for path in own:
        (root / path).unlink()
    for path, text in texts.items():
        (root / path).write_text(text)
    return [*own, *texts]


def _says(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def main(arguments: list[str] | None = None, root: Path = ROOT, say: Callable[[str], None] = print) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.new_paper", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", action="store_true", help="take the paper out")
    parser.add_argument("key", help="the name of its four files, such as lumberjack")
    parser.add_argument("name", nargs="?", default="", help="the name of its estimator, such as Lumberjack")
    asked = parser.parse_args(arguments)
    try:
        paths = take_out(root, asked.key) if asked.out else add(root, asked.key, asked.name)
    except PaperError as error:
        print(error, file=sys.stderr)
        return 1
    say("\n".join(str(path) for path in paths))
    if not asked.out:
        say(
            f"Fill in what says {MARK}; the tests find the places.  The order: CONTRIBUTING.md, Add a paper in an hour."
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
