"""What a notebook reaches: the modules of this repository, and the packages, that can change what it shows.

Imports are followed through syntax trees; nothing is run.  A module counts whole, with all it imports, inside
functions too.  A package counts by name: ``from dpforest import Schema`` reaches the module that defines ``Schema``,
and not the rest of what ``dpforest/__init__.py`` imports, since which other modules are loaded changes no result.
What an ``__init__`` itself defines counts, with the imports which that uses.  One that imports a name when it is asked
for (``__getattr__``) says under ``TYPE_CHECKING`` what there is, as if it imported all of it at once.

Whatever is run by name (a subprocess, a registry of strings) is not seen; the notebook's metadata names it::

    {"dpforest": {"reaches": ["dpforest.cli"]}}
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

#: Packages whose name in the lock is not the name they are imported by.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "PIL": "pillow", "yaml": "pyyaml"}
#: Packages that carry a page, and do not change what it says.
CARRIERS = {"ipython", "myst-nb", "tqdm"}
#: What these packages compute with, though the modules reached do not import it by name.
BENEATH = {
    "numba": ("llvmlite", "numpy"),
    "scikit-learn": ("scipy", "numpy"),
    "scipy": ("numpy",),
    "pandas": ("numpy",),
    "matplotlib": ("numpy",),
}
#: Code that mentions one of these may show docstrings or sources, which then count.
DOCUMENTED = {"__doc__", "getdoc", "getsource", "help"}

Chain = tuple[str, ...]


@dataclass(frozen=True)
class Import:
    """One import: the name it binds, the module, and the name taken from it ('' for the module itself)."""

    bound: str
    module: str
    name: str = ""


class Module:
    """What counts of a module: its own statements, its imports, and the names that it uses."""

    def __init__(self, tree: ast.Module, body: list[ast.stmt], name: str = "", package: bool = False) -> None:
        self.part = ast.Module(body=body, type_ignores=[])
        self.used = chains(self.part)
        inside = set(imports(self.part, name, package))
        self.imports = [one for one in imports(tree, name, package) if one in inside or one.bound in self.used]

    @cached_property
    def documents(self) -> bool:
        """Whether the code may show docstrings or sources."""
        nodes = ast.walk(self.part)
        return any({getattr(node, "id", ""), getattr(node, "attr", "")} & DOCUMENTED for node in nodes)

    @cache  # noqa: B019  (modules live as long as the program)
    def digest(self, docstrings: bool) -> str:
        """Return a digest of the statements, with docstrings or without."""
        return digest(plain(self.part, docstrings))


@dataclass
class Reach:
    """The modules reached, the top-level names of packages from elsewhere, and whether docstrings may be shown."""

    modules: dict[str, Module] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    documents: bool = False

    def digest(self) -> str:
        """Return a digest of the modules; comments and layout do not count, nor docstrings that nobody can show."""
        shown = self.documents or any(module.documents for module in self.modules.values())
        return digest([[name, module.digest(shown)] for name, module in sorted(self.modules.items())])

    def locked(self, lock: dict[str, list[str]]) -> dict[str, list[str]]:
        """Return the lines of the lock for the packages that count."""
        names = {DISTRIBUTIONS.get(name, name.lower().replace("_", "-")) for name in self.outside} - CARRIERS
        while more := {below for name in names for below in BENEATH.get(name, ())} - names:
            names |= more
        return {name: lock[name] for name in sorted(names) if name in lock}


class Library:
    """The modules found under some folders, read once each."""

    def __init__(self, *roots: Path) -> None:
        self.roots = roots
        self._trees: dict[str, ast.Module | None] = {}
        self._packages: set[str] = set()
        self._tables: dict[str, list[Import]] = {}

    def tree(self, module: str) -> ast.Module | None:
        """Return the module's syntax tree, or None for one from elsewhere."""
        if module not in self._trees:
            self._trees[module] = None
            for root in self.roots:
                stem = root.joinpath(*module.split("."))
                for path in (stem / "__init__.py", stem.with_suffix(".py")):
                    if path.is_file() and self._trees[module] is None:
                        self._trees[module] = parsed(path.read_bytes())
                        if path.name == "__init__.py":
                            self._packages.add(module)
        return self._trees[module]

    def is_package(self, module: str) -> bool:
        """Tell whether the module is a package found here."""
        return self.tree(module) is not None and module in self._packages

    def reach(self, code: Iterable[ast.Module], named: Iterable[str] = ()) -> Reach:
        """Return what the code reaches, and the modules named."""
        found = Reach()
        whole_code = ast.Module(body=[statement for tree in code for statement in tree.body], type_ignores=[])
        itself = Module(whole_code, whole_code.body)
        found.documents = itself.documents
        self._follow(itself, found)
        for module in named:
            if self.tree(module) is None:
                raise ValueError(f"there is no module {module!r} to reach")
            self._use(module, (), found)
        return found

    def _follow(self, module: Module, found: Reach) -> None:
        for one in module.imports:
            unused = () if one.name or not one.bound else ("__name__",)  # a package that is only loaded
            for chain in module.used.get(one.bound, {unused}):
                self._use(one.module, (one.name, *chain) if one.name else chain, found)

    def _use(self, module: str, chain: Chain, found: Reach) -> None:
        """Reach `module.a.b`, where the chain is (a, b): what it names, and no more of a package than that."""
        if (tree := self.tree(module)) is None:
            found.outside.add(module.split(".")[0])
            return
        if not self.is_package(module):
            self._add(module, tree, found)
        elif not chain or chain[0] == "*":
            self._own(module, tree, found)
            for one in self._table(module, tree):
                self._use(one.module, (one.name,) if one.name else (), found)
        else:
            self._own_parents(f"{module}.", found)
            first, rest = chain[0], chain[1:]
            passed_on = [one for one in self._table(module, tree) if one.bound == first]
            for one in passed_on:
                if (one.module, one.name) != (module, first):  # `from . import a` names the submodule
                    self._use(one.module, (one.name, *rest) if one.name else rest, found)
            if self.tree(f"{module}.{first}") is not None and first not in defined(tree):
                self._use(f"{module}.{first}", rest, found)

    def _add(self, module: str, tree: ast.Module, found: Reach) -> None:
        if module in found.modules:
            return
        found.modules[module] = counted(tree, module, self.is_package(module))
        self._own_parents(module, found)
        self._follow(found.modules[module], found)

    def _table(self, package: str, tree: ast.Module) -> list[Import]:
        if package not in self._tables:
            asked_for = "__getattr__" in defined(tree)
            self._tables[package] = list(imports(tree, package, True, typed=asked_for))
        return self._tables[package]

    def _own(self, package: str, tree: ast.Module, found: Reach) -> None:
        """Reach what a package's ``__init__`` itself defines."""
        self._add(package, tree, found)

    def _own_parents(self, module: str, found: Reach) -> None:
        parts = module.split(".")[:-1]
        for length in range(1, len(parts) + 1):
            package = ".".join(parts[:length])
            if (tree := self.tree(package)) is not None:
                self._own(package, tree, found)


# --- syntax trees ----------------------------------------------------------------------------------------------------
@cache
def parsed(source: bytes) -> ast.Module:
    """Return the syntax tree of a module, one for all libraries in which it stands as it is."""
    return ast.parse(source)


@cache
def counted(tree: ast.Module, name: str, package: bool) -> Module:
    """Return what counts of a module: all of it, or of a package what its ``__init__`` itself defines."""
    return Module(tree, [one for one in tree.body if not (package and passes_on(one))], name, package)


def passes_on(statement: ast.stmt) -> bool:
    """Tell whether a statement of an ``__init__`` only imports, or lists what there is, or is a docstring."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
            return True
        case ast.FunctionDef(name="__getattr__" | "__dir__"):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False


def defined(tree: ast.Module) -> set[str]:
    """Return the names that a module's own outermost statements define."""
    names: set[str] = set()
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign() | ast.AnnAssign():
                stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
                names |= {node.id for node in stored if isinstance(node.ctx, ast.Store)}
    return names


def imports(tree: ast.AST, module: str = "", package: bool = False, *, typed: bool = False) -> Iterator[Import]:
    """Yield the imports of a module, at any depth; those that only a type checker sees, if `typed`."""
    match tree:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) if not typed:
            for statement in tree.orelse:
                yield from imports(statement, module, package)
        case ast.Import():
            for alias in tree.names:
                yield from whole(alias)
        case ast.ImportFrom():
            base = module.split(".")
            base = base[: len(base) - tree.level + package] if tree.level else []
            start = ".".join([*base, *([tree.module] if tree.module else [])])
            for alias in tree.names:
                yield Import(alias.asname or alias.name, start, alias.name)
        case _:
            for child in ast.iter_child_nodes(tree):
                if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                    yield from imports(child, module, package, typed=typed)


def whole(alias: ast.alias) -> Iterator[Import]:
    """Yield the import of ``import a.b.c``, which binds `a`, or of ``import a.b.c as d``, which binds `d`."""
    top, *rest = alias.name.split(".")
    if alias.asname:
        yield Import(alias.asname, alias.name)
    elif rest:  # both what is used through `a` and the module itself, which is now loaded
        yield Import("", alias.name)
        yield Import(top, top)
    else:
        yield Import(top, top)


def chains(tree: ast.AST) -> dict[str, set[Chain]]:
    """Return for each name used the attributes it is used with: ``a.b.c`` gives (b, c), a bare ``a`` gives ()."""
    found: dict[str, set[Chain]] = defaultdict(set)

    def visit(node: ast.AST, rest: Chain = ()) -> None:
        match node:
            case ast.Attribute(value=value, attr=attr):
                visit(value, (attr, *rest) if isinstance(value, ast.Attribute | ast.Name) else ())
            case ast.Name(id=name):
                found[name].add(rest)
            case _:
                for child in ast.iter_child_nodes(node):
                    visit(child)

    visit(tree)
    return dict(found)


def plain(node: Any, docstrings: bool = True) -> Any:
    """Return a syntax tree as lists, the same under every Python version, unlike ``ast.dump``."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
        return [type(node).__name__, *([name, plain(value, docstrings)] for name, value in fields)]
    if isinstance(node, list):
        return [plain(item, docstrings) for item in node if docstrings or not is_docstring(item)]
    return repr(node)


def is_docstring(node: Any) -> bool:
    """Tell whether a statement is nothing but a string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def digest(thing: Any) -> str:
    """Return the sha256 of a JSON-able thing."""
    return hashlib.sha256(json.dumps(thing, sort_keys=True, default=str).encode()).hexdigest()


# --- the lock --------------------------------------------------------------------------------------------------------
def read_lock(*paths: Path) -> dict[str, list[str]]:
    """Return for each package its lines in the lock: version and condition, without hashes."""
    lines: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                if match := re.match(r"([A-Za-z0-9._-]+)==([^\\]+)", line):
                    lines[match[1].lower()].append(match[2].strip())
    return dict(lines)
