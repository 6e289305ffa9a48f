"""Write the lists that are made from the registry: imports, the README's table of learners, the API's estimators.

``dpforest/registry.py`` says which papers there are, and the docstrings of their modules and classes say the rest.  A
list stands between two comments, imports stand in a row; ``python -m tools.lists`` (`make lists`) writes them.  Imports
are not looked up when the library runs, but written out for those who read its syntax: type checkers, and the keys of
the renderings of record.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REGISTRY = Path("dpforest/registry.py")
#: Where the API's pages of the estimators stand, all of them written here.
ESTIMATORS = "book/estimators"
#: What an estimator is for, by the end of its name.
FOR = {"Classifier": "classes", "Regressor": "numbers"}


def registered(root: Path = ROOT) -> ast.Dict:
    """The registry's table as it is written."""
    for node in ast.parse((root / REGISTRY).read_text()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PAPERS":
            assert isinstance(node.value, ast.Dict)
            return node.value
    raise ValueError(f"{REGISTRY} has no table PAPERS: dict[str, tuple[str, ...]]")


def papers(root: Path = ROOT) -> dict[str, tuple[str, ...]]:
    """The registry: the names of each paper's estimators, by its key."""
    return ast.literal_eval(registered(root))


def homes(root: Path = ROOT) -> dict[str, str]:
    """The module of each paper's estimators, without ``dpforest.``; the registry says where it is not in ``papers``."""
    rooms = next(
        ast.literal_eval(node.value)
        for node in ast.parse((root / REGISTRY).read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ROOM_OF"
    )
    return {key: rooms.get(key, f"papers.{key}") for key in papers(root)}


def source_files(root: Path, key: str) -> list[Path]:
    """The files of a paper's module or room, that of the package first."""
    place = Path("dpforest", *homes(root)[key].split("."))
    return sorted(path.relative_to(root) for path in (root / place).glob("*.py")) or [place.with_suffix(".py")]


def first_lines(root: Path, key: str) -> tuple[str, dict[str, str]]:
    """The first sentences of a paper's module, and of each class in it, each on one line."""
    modules = [ast.parse((root / path).read_text()) for path in source_files(root, key)]

    def first(node: ast.Module | ast.ClassDef) -> str:
        return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())

    nodes = [node for module in modules for node in module.body if isinstance(node, ast.ClassDef)]
    return first(modules[0]), {node.name: first(node) for node in nodes}


def cited(sentence: str) -> str:
    """A paper's short name and its year, of ``Name: what it is (authors, year)``."""
    name = re.split(r":| \(", sentence)[0]
    year = re.search(r"\([^()]*\b(\d{4})\)", sentence)
    return f"{name}, {year[1]}" if year else name


def learners(root: Path = ROOT) -> str:
    """The README's table."""
    rows = ["| Learner | For | What it is | From |", "|---|---|---|---|"]
    for key, names in papers(root).items():
        about, classes = first_lines(root, key)
        for name in names:
            use = next((use for end, use in FOR.items() if name.endswith(end)), "")
            source = f"[{cited(about)}]({source_files(root, key)[0].as_posix()})"
            rows.append(f"| `{name}` | {use} | {classes[name].rstrip('.')} | {source} |")
    return "\n".join(rows)


def estimators(root: Path = ROOT) -> str:
    """The API page's list, which leads to a page for each."""
    rows = []
    for key, names in papers(root).items():
        _, classes = first_lines(root, key)
        home = homes(root)[key]
        rows += [f"- {{py:class}}`~dpforest.{home}.{name}`: {classes[name].rstrip('.')}" for name in names]
    return "\n".join(rows)


def pages(root: Path = ROOT) -> dict[Path, str]:
    """The API's page of each estimator."""
    return {
        root
        / ESTIMATORS
        / f"{name}.md": f"# {name}\n\n```{{eval-rst}}\n.. autoclass:: dpforest.{homes(root)[key]}.{name}\n```\n"
        for key, names in papers(root).items()
        for name in names
    }


def entries(root: Path = ROOT) -> str:
    """Where these pages stand in the book's table of contents."""
    return "\n".join(f"          - file: {ESTIMATORS}/{name}" for each in papers(root).values() for name in each)


def imports(root: Path = ROOT, indent: str = "") -> str:
    """An import of each paper's estimators, in the order of `make lint`; rooms of their own stand there by hand."""
    return "\n".join(
        f"{indent}from dpforest.{home} import {', '.join(sorted(papers(root)[key]))}"
        for key, home in sorted(homes(root).items())
        if home.startswith("papers.")
    )


def names(root: Path = ROOT) -> str:
    """Every estimator, in the registry's order."""
    return "\n".join(f"    {name}," for each in papers(root).values() for name in each)


LISTS = {
    ("README.md", "learners"): learners,
    ("book/api.md", "estimators"): estimators,
    ("_toc.yml", "estimators"): entries,
    ("dpforest/__init__.py", "imports"): partial(imports, indent="    "),
    ("dpforest/audit/report/settings.py", "imports"): imports,
    ("dpforest/audit/report/settings.py", "learners"): names,
}


def rewritten(text: str, page: str, name: str, root: Path = ROOT) -> str:
    """A page's text with what stands between the comments of a list made anew."""
    comment = "<!-- {} -->" if page.endswith(".md") else "# {}"
    start, end = comment.format(f"{name}: written by make lists"), comment.format(f"end of {name}")
    place = rf"(?<={re.escape(start)}\n)[\s\S]*?(?=^ *{re.escape(end)}$)"
    if name == "imports":
        start = end = "from dpforest.papers."
        place = rf"(?:^ *{re.escape(start)}.+\n)+"
    before_and_after = re.split(place, text, flags=re.M)
    if len(before_and_after) != 2:
        raise ValueError(f"{page} needs lines of {start!r} to {end!r}, in one place")
    return f"{LISTS[page, name](root)}\n".join(before_and_after)


def main(root: Path = ROOT) -> None:
    """Write all lists, and the pages of the estimators."""
    there = pages(root)
    for path in {*(root / ESTIMATORS).glob("*.md")} - there.keys():
        path.unlink()
    for path, text in there.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for page, name in LISTS:
        (root / page).write_text(rewritten((root / page).read_text(), page, name, root))


if __name__ == "__main__":
    main()
