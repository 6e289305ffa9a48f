"""One name, one thing: no class and no module of the library bears the name of another; what docstrings list."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from sphinx.ext.napoleon import Config, NumpyDocstring

import dpforest
from dpforest import audit

LIBRARY = Path(dpforest.__file__).parent
#: Modules that are found by their room, and why.
SHARED = {
    "__init__": "of every room",
    "__main__": "of what python -m runs",
    "base": "what the classes of one room share, as in scikit-learn",
}


def sources() -> dict[str, str]:
    return {str(path.relative_to(LIBRARY)): path.read_text() for path in sorted(LIBRARY.rglob("*.py"))}


def defined_twice(files: dict[str, str], shared: Iterable[str] = ()) -> list[str]:
    """Names of classes and of modules that more than one file defines; a leading underscore makes no difference."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path, source in files.items():
        found["module", Path(path).stem.lstrip("_") if Path(path).stem not in shared else path].add(path)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                found["class", node.name.lstrip("_")].add(path)
    return [f"{kind} {name}: {', '.join(sorted(where))}" for (kind, name), where in found.items() if len(where) > 1]


def test_a_name_is_defined_once():
    assert defined_twice(sources(), SHARED) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("models/growth.py", ""),  # a module of learners
        ("budgets/_scores.py", ""),
        ("schema/x.py", "class Ledger: pass"),
        ("schema/x.py", "def f():\n    class _Run: pass"),
    ],
)
def test_a_second_definition_is_found(path, source):
    assert len(defined_twice(sources() | {path: source}, SHARED)) == 1


def test_exceptions_are_needed():
    for name in SHARED:
        assert sum(Path(path).stem == name for path in sources()) > 1, f"{name} is defined once: take it off the list"


def test_an_old_public_name_warns_and_works():
    with pytest.warns(DeprecationWarning, match="GreyBoxFinding"):
        assert audit.Finding is audit.GreyBoxFinding
    with pytest.raises(AttributeError, match="has no attribute"):
        audit.Found  # noqa: B018


def undocumented(source: str) -> list[str]:
    """What the docstring of a dataclass or a named tuple lists, and the class has not."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        made = "".join(map(ast.unparse, [*node.decorator_list, *node.bases]))
        text = ast.get_docstring(node) or ""
        pattern = r"^(?:Attributes|Parameters)\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)"
        sections = re.findall(pattern, text, flags=re.M | re.S)
        listed = re.findall(r"^(\w[\w, ]*)(?: : .*)?$", "\n".join(sections), flags=re.M)
        has = {part.name for part in node.body if isinstance(part, ast.FunctionDef)} | {
            ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)
        }
        if "dataclass" in made or "NamedTuple" in made:
            found += [f"{node.name}.{name}" for names in listed for name in names.split(", ") if name not in has]
    return found


@pytest.mark.parametrize("name", sorted(sources()))
def test_a_docstring_lists_what_a_record_has(name):
    assert undocumented(sources()[name]) == []


def test_a_name_that_is_gone_is_found():
    head = "@dataclass\nclass A:\n"
    words = ["A.", "", "Attributes", "----------", "a, b : int", "    B.", ""]
    text = head + '    """' + "\n    ".join(words) + '"""\n    a: int\n'
    assert undocumented(text) == ["A.b"]
    assert undocumented(text + "    b: int\n") == []


def properties() -> Iterator[tuple[str, str]]:
    """All public properties of the library's classes, each with its docstring."""
    for module in pkgutil.walk_packages(dpforest.__path__, "dpforest."):
        if module.name == "dpforest.__main__":
            continue
        for owner in vars(importlib.import_module(module.name)).values():
            if not inspect.isclass(owner) or owner.__module__ != module.name or owner.__name__.startswith("_"):
                continue
            for name, value in vars(owner).items():
                if isinstance(value, (property, functools.cached_property)) and not name.startswith("_"):
                    yield f"{module.name}.{owner.__name__}.{name}", inspect.getdoc(value) or ""


def has_a_type(text: str) -> bool:
    """Whether the page would show what is before the first colon as a type, as in *Number: of all records*."""
    settings = Config(napoleon_google_docstring=False)
    shown = NumpyDocstring(text, settings, what="property", name="any").lines()
    return any(line.startswith(":type:") for line in shown)


def test_no_docstring_of_a_property_is_shown_as_a_type():
    found = list(properties())
    assert len(found) > 100
    assert [name for name, text in found if has_a_type(text)] == []


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Which nodes are leaves: bool, shape (n_nodes,).", True),
        ("Which nodes are leaves, bool of shape (n_nodes,).", False),
        ("Leaves, see :func:`leaves`.", False),
        ("Leaves.\n\nTwo kinds: large and small.", False),
    ],
)
def test_what_is_shown_as_a_type(text, typed):
    assert has_a_type(text) is typed


def unknown_methods(page: str, library: str) -> list[str]:
    """What a page's prose calls a method of a run, or of its learner's own, and the library does not define."""
    prose = re.sub(r"^(`{3,}).*?^\1", "", page, flags=re.DOTALL | re.MULTILINE)
    named = re.findall(r"`run\.(\w+)|`self\.(_\w+)", prose)
    return sorted({name for pair in named for name in pair if name and not re.search(rf"\bdef {name}\(", library)})


def test_prose_names_methods_that_there_are():
    library = "".join(sources().values())
    book = Path(__file__).resolve().parent.parent / "book"
    pages = {str(path.relative_to(book)): path.read_text(encoding="utf-8") for path in book.rglob("*.md")}
    assert {name: found for name, page in pages.items() if (found := unknown_methods(page, library))} == {}
    planted = "Then `run.told` and `self._count(run)`, `run.peek`.\n```python\nrun.said()\n```\n"
    assert unknown_methods(planted, "def peek(self): ...\ndef _count(self): ...") == ["told"]
