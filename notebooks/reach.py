"""What code reaches: the definitions of this repository, and the packages, that can change what it does.

Names are followed through syntax trees; nothing is run.  What counts is a *definition*: a function, a class without its
methods, a method, a constant.  A definition counts if code that counts names it:

* ``scores.gini`` and ``from dpforest.scores import gini`` reach the one definition, through packages that pass it on;
* a class brings its bases, what its body computes, and its special methods.  Another method of it counts as soon as its
  name stands anywhere in code that counts, as an attribute or as a word in quotes, whoever is asked for it
  (``getattr(door, "choose_cut")``, a table of names): which object that is, a syntax tree does not say;
* what a library from elsewhere may call by name counts with its class: scikit-learn's ``fit`` and ``predict``, and all
  methods of a class whose base is from elsewhere;
* statements of a module that do something (a call, a loop, a table that is filled) count as soon as it is imported;
* a file of data in TOML counts, with what it says, where code in its folder or above names one (``"*.toml"``);
* where the name is computed, the whole module counts: one that is handed on as a value (``vars(scores)``), that is
  named in quotes (``"dpforest.cli"``), or that fits the pattern of an import (``f"dpforest.papers.{key}"``).

Layout, comments, annotations of functions and docstrings do not count; docstrings do where code may show them, and so
does all of the text where it may show its source.  The words of a parameter (``Annotated[int, Whole(1), "text"]``)
are a docstring, too.  Whatever is run by other means, the notebook's metadata names::

    {"dpforest": {"reaches": ["dpforest.cli"],   # modules
                  "shows": ["dpforest.papers."]}}  # rooms whose source it shows: all, if not told
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tomllib
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
#: What these packages compute with, though the code reached does not import it by name.
BENEATH = {
    "numba": ("llvmlite", "numpy"),
    "scikit-learn": ("scipy", "numpy"),
    "scipy": ("numpy",),
    "pandas": ("numpy",),
    "matplotlib": ("numpy",),
}
#: Code that mentions one of these may show docstrings, and of the latter the source itself.
DOCUMENTED = {"__doc__", "getdoc", "help"}
SOURCES = {"getsource", "getsourcelines", "getsourcefile"}
#: Decorators that change nothing of what a definition does.
SEALS = {"claim", "overload"}
#: Bases from elsewhere that call nothing by name, and those that call what scikit-learn's estimators have.
PASSIVE = {
    "object",
    "ABC",
    "Protocol",
    "Generic",
    "NamedTuple",
    "Enum",
    "IntEnum",
    "StrEnum",
    "Exception",
    "RuntimeError",
    "ValueError",
    "TypeError",
    "Warning",
    "UserWarning",
    "FutureWarning",
    "RuntimeWarning",
    "tuple",
    "TypedDict",
}
ESTIMATORS = {"BaseEstimator", "ClassifierMixin", "RegressorMixin", "TransformerMixin", "MetaEstimatorMixin"}
CALLED = {
    "fit",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score",
    "transform",
    "fit_transform",
    "fit_predict",
    "inverse_transform",
    "get_params",
    "set_params",
    "get_feature_names_out",
    "classes_",
    "n_features_in_",
    "feature_names_in_",
    "_repr_html_",
    "_repr_mimebundle_",
    "_repr_html_inner",
    "_get_param_names",
}

Chain = tuple[str, ...]
Place = tuple[str, str]  # a module, and the name of a definition in it; EFFECTS for what the module does
EFFECTS = "<does>"
DATA = ".toml"  # how the name of a file of data ends
WORD = re.compile(r"\w+(\.\w+)*")


@dataclass(frozen=True)
class Import:
    """One import: the name it binds, the module, and the name taken from it ('' for the module itself)."""

    bound: str
    module: str
    name: str = ""


class Definition:
    """Statements that count together, and what they name."""

    def __init__(self, statements: Iterable[ast.AST], imports: Iterable[Import] = ()) -> None:
        self.statements = list(statements)
        self.imports = list(imports)

    @cached_property
    def names(self) -> Names:
        """What the statements name."""
        found = Names()
        for statement in self.statements:
            found.visit(statement)
        return found

    @cached_property
    def plain(self) -> str:
        """A digest of the statements without docstrings, comments, layout and annotations of functions."""
        return digest(plain(self.statements, False))

    @cached_property
    def documented(self) -> str:
        """The same with docstrings and annotations."""
        return digest(plain(self.statements))

    @cached_property
    def documents(self) -> bool:
        """Whether the code may show docstrings; to give something a docstring, made from its old one, shows none."""
        return not self.names.sets and bool((self.names.said | set(self.names.used) - {"__doc__"}) & DOCUMENTED)

    @cached_property
    def sources(self) -> bool:
        """Whether the code may show sources."""
        return bool((self.names.said | set(self.names.used)) & SOURCES)


@dataclass
class Class:
    """The bases of a class, as chains, and its methods by name."""

    bases: list[Chain]
    methods: dict[str, Place]


class Module:
    """The definitions of a module, by name; ``Class.method`` for a method."""

    def __init__(self, tree: ast.Module, name: str = "", package: bool = False) -> None:
        self.name, self.package, self.tree = name, package, tree
        self.definitions: dict[str, Definition] = {}
        self.classes: dict[str, Class] = {}
        self.lent: dict[str, str] = {}  # what a call hands on to be run later, by its keyword
        found: dict[str, list[ast.stmt]] = defaultdict(list)
        for statement in tree.body:
            self._sort(statement, found)
        lazy = "__getattr__" in found if package else False
        self.table: dict[str, list[Import]] = defaultdict(list)
        for one in imports(tree, name, package, typed=lazy):
            self.table[one.bound].append(one)
        if lazy:
            del found["__getattr__"]
            found.pop("__dir__", None)
        for word, statements in found.items():
            self._define(word, statements)
        if (said := ast.get_docstring(tree, clean=False)) is not None:  # for code that shows its own module's
            self.definitions["__doc__"] = Definition([ast.Assign([ast.Name("__doc__")], ast.Constant(said))])

    def _sort(self, statement: ast.stmt, found: dict[str, list[ast.stmt]]) -> None:
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for inner in statement.orelse:
                    self._sort(inner, found)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                pass  # what runs where the module is the program
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
                found[word].append(statement)
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                pass
            case ast.Assign(targets=targets) if all(isinstance(target, ast.Name | ast.Tuple) for target in targets):
                for word in stored(statement):
                    found[word].append(statement)
            case ast.AnnAssign(target=ast.Name(id=word)) | ast.AugAssign(target=ast.Name(id=word)):
                found[word].append(statement)
            case _:
                for word in stored(statement):
                    found[word].append(statement)
                match statement:
                    case ast.Expr(value=ast.Call(func=func, args=[], keywords=keywords)) if keywords and all(
                        isinstance(one.value, ast.Lambda) and one.arg for one in keywords
                    ):
                        for one in keywords:  # each is run when it is asked for by its name
                            found[f"{EFFECTS}.{one.arg}"].append(ast.Expr(one.value))
                            self.lent[str(one.arg)] = f"{EFFECTS}.{one.arg}"
                        found[EFFECTS].append(ast.Expr(func))
                    case _:
                        found[EFFECTS].append(statement)

    def _define(self, word: str, statements: list[ast.stmt]) -> None:
        body = []
        for statement in statements:
            if not isinstance(statement, ast.ClassDef):
                body.append(statement)
                continue
            methods: dict[str, list[ast.stmt]] = defaultdict(list)
            rest: list[ast.stmt] = []
            for inner in statement.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    methods[inner.name].append(inner)
                else:
                    rest.append(inner)
            body.append(ast.ClassDef(**{**dict(ast.iter_fields(statement)), "body": rest}))
            self.classes[word] = Class(
                [chain for base in statement.bases if (chain := chain_of(base))],
                {method: (self.name, f"{word}.{method}") for method in methods},
            )
            for method, parts in methods.items():
                self.definitions[f"{word}.{method}"] = Definition(parts, self._inside(parts))
        self.definitions[word] = Definition(body, self._inside(body))

    def _inside(self, statements: Iterable[ast.stmt]) -> list[Import]:
        tree = ast.Module(body=list(statements), type_ignores=[])
        return list(imports(tree, self.name, self.package))

    @cached_property
    def first(self) -> list[Import]:
        """What is imported as soon as the module is: its imports outside of functions."""
        return list(imports(self.tree, self.name, self.package, inside=False))


@dataclass
class Reach:
    """The definitions reached, by place, and the top-level names of packages from elsewhere."""

    definitions: dict[Place, Definition] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    documents: bool = False
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def modules(self) -> set[str]:
        """The modules of which something is reached."""
        return {module for module, _ in self.definitions}

    def digest(self) -> str:
        """Return a digest of the definitions, with docstrings where they may be shown."""
        parts = sorted(self.definitions.items())
        return digest(
            [[place, each.documented if self.documents else each.plain] for place, each in parts]
            + sorted(self.sources.items())
        )

    def locked(self, lock: dict[str, list[str]]) -> dict[str, list[str]]:
        """Return the lines of the lock for the packages that count."""
        names = {DISTRIBUTIONS.get(name, name.lower().replace("_", "-")) for name in self.outside} - CARRIERS
        while more := {below for name in names for below in BENEATH.get(name, ())} - names:
            names |= more
        return {name: lock[name] for name in sorted(names) if name in lock}


@dataclass
class Named:
    """What a definition names, resolved: definitions, whole modules, modules that are imported, packages."""

    places: dict[Place, None] = field(default_factory=dict)
    wholes: dict[str, None] = field(default_factory=dict)
    loaded: dict[str, None] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)


class Library:
    """The modules found under some folders, read once each."""

    def __init__(self, *roots: Path) -> None:
        self.roots = roots
        self._paths: dict[str, Path | None] = {}
        self._modules: dict[str, Module] = {}
        self._named: dict[Place, Named] = {}
        self._called: dict[Place, set[str] | None] = {}

    def module(self, name: str) -> Module | None:
        """Return what a module defines, or None for one from elsewhere."""
        if name not in self._paths:
            self._paths[name] = None
            for root in self.roots:
                stem = root.joinpath(*name.split("."))
                for path in (stem / "__init__.py", stem.with_suffix(".py")):
                    if path.is_file() and self._paths[name] is None:
                        self._paths[name] = path
                        self._modules[name] = analysed(path.read_bytes(), name, path.name == "__init__.py")
                path = root.joinpath(*name.removesuffix(DATA).split(".")).with_suffix(DATA)
                if name.endswith(DATA) and path.is_file() and self._paths[name] is None:
                    self._paths[name] = path
                    self._modules[name] = analysed(as_code(path.read_text(encoding="utf-8")), name, False)
        return self._modules.get(name)

    def data(self, module: Module) -> Iterator[str]:
        """Yield the files of data beside a module and below, named like modules."""
        if (path := self._paths.get(module.name)) is not None:
            room = module.name if module.package else module.name.rpartition(".")[0]
            for file in sorted(path.parent.rglob(f"*{DATA}")):
                yield ".".join([*room.split("."), *file.relative_to(path.parent).parts]).lstrip(".")

    def text(self, name: str) -> str:
        """Return the whole text of a module."""
        path = self._paths[name]
        return "" if path is None else path.read_text(encoding="utf-8")

    def fitting(self, pattern: str) -> Iterator[str]:
        """Yield the modules whose whole name the regular expression fits."""
        for root in self.roots:
            for path in sorted((root / pattern.partition(r"\.")[0]).rglob("*.py")):
                parts = path.relative_to(root).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                if re.fullmatch(pattern, name):
                    yield name

    def reach(self, code: Iterable[ast.Module], named: Iterable[str] = (), shown: Iterable[str] = ("",)) -> Reach:
        """Return what the code reaches, and the modules named; source counts of rooms that are `shown` alone."""
        together = ast.Module(body=[statement for tree in code for statement in tree.body], type_ignores=[])
        walk = _Walk(self)
        for module in named:
            if self.module(module) is None:
                raise ValueError(f"there is no module {module!r} to reach")
            walk.whole(module)
        cells = Definition(together.body, imports(together))
        walk.follow(cells, self.resolved(Module(together), cells))
        return walk.finish(tuple(shown))

    def named(self, place: Place) -> Named:
        """Return what a definition names."""
        if place not in self._named:
            module = self._modules[place[0]]
            self._named[place] = self.resolved(module, module.definitions[place[1]])
        return self._named[place]

    def resolved(self, module: Module, definition: Definition) -> Named:
        """Return what code names that stands in a module."""
        found = Named()
        if definition.names.data:
            found.wholes |= dict.fromkeys(self.data(module))
        for one in definition.imports:
            found.loaded[one.module] = None
            if one.name == "*":
                found.wholes[one.module] = None
            elif one.name:
                found.loaded[f"{one.module}.{one.name}"] = None
        for name, chains in definition.names.used.items():
            for chain in chains:
                if name in module.definitions and module.name:
                    found.places[module.name, name] = None
                if name == "__getattr__" and module.package and chain[:1] == ("()",):
                    self.resolve(module.name, chain[1:], found)
                    continue
                for one in module.table.get(name, ()):
                    self.resolve(one.module, (one.name, *chain) if one.name else chain, found)
        return found

    def resolve(self, name: str, chain: Chain, found: Named) -> None:
        """Find `name.a.b`, where the chain is (a, b): what it names, and no more of a module than that."""
        if (module := self.module(name)) is None:
            found.outside.add(name.split(".")[0])
            return
        found.loaded[name] = None
        if not chain or chain[0] == "*":
            found.wholes[name] = None
            return
        first, rest = chain[0], chain[1:]
        if first in module.definitions:
            found.places[name, first] = None
            return
        passed_on = [one for one in module.table.get(first, ()) if (one.module, one.name) != (name, first)]
        for one in passed_on:
            self.resolve(one.module, (one.name, *rest) if one.name else rest, found)
        if self.module(f"{name}.{first}") is not None:
            self.resolve(f"{name}.{first}", rest, found)
        elif not passed_on and not first.startswith("__"):
            if module.table.get("*"):
                for one in module.table["*"]:
                    self.resolve(one.module, chain, found)
            else:
                found.wholes[name] = None  # it is made there in a way that is not seen

    def called(self, place: Place) -> set[str] | None:
        """Return what a library from elsewhere may call of a class by name; None for anything."""
        if place not in self._called:
            self._called[place] = set()  # where classes name each other
            module = self._modules[place[0]]
            found: set[str] | None = set()
            for first, *rest in module.classes[place[1]].bases:
                last = rest[-1] if rest else first
                at = self._class(module, first, tuple(rest))
                known = set() if last in PASSIVE else CALLED if last in ESTIMATORS else None
                more = known if at is None else self.called(at)
                found = None if found is None or more is None else found | more
            self._called[place] = found
        return self._called[place]

    def _class(self, module: Module, name: str, rest: Chain) -> Place | None:
        """Return where the class of this name is defined in the library."""
        if name in module.classes and not rest:
            return module.name, name
        for one in module.table.get(name, ()):
            chain = (one.name, *rest) if one.name else rest
            home = self.module(one.module)
            while home is not None and len(chain) > 1 and self.module(f"{home.name}.{chain[0]}") is not None:
                home, chain = self.module(f"{home.name}.{chain[0]}"), chain[1:]
            if home is None or home is module or not chain:
                continue
            if (place := self._class(home, chain[0], chain[1:])) is not None:
                return place
        return None


class _Walk:
    """One search: what is reached so far, and what is still to be followed."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.found = Reach()
        self.said: set[str] = set()
        self.patterns: set[str] = set()
        self.waiting: dict[str, list[Place]] = defaultdict(list)  # reached as soon as somebody says their name
        self.wholes: set[str] = set()
        self.todo: list[Place] = []
        self.sources = False

    def finish(self, shown: tuple[str, ...]) -> Reach:
        while self.todo:
            place = self.todo.pop()
            self.follow(self.found.definitions[place], self.library.named(place))
        if self.sources:
            texts = [name for name in self.found.modules if f"{name}.".startswith(shown)]
            self.found.sources = {name: digest(self.library.text(name)) for name in texts}
        return self.found

    def follow(self, definition: Definition, named: Named) -> None:
        """Reach what a definition names."""
        self.found.documents |= definition.documents
        self.sources |= definition.sources
        self.take(named)
        words = definition.names
        for word in words.said - self.said:
            self.said.add(word)
            for place in self.waiting.pop(word, ()):
                self.add(place)
            if "." in word:
                self.whole(word)
        for pattern in words.patterns - self.patterns:
            self.patterns.add(pattern)
            for word in [word for word in self.waiting if re.fullmatch(pattern, word)]:
                for place in self.waiting.pop(word):
                    self.add(place)
        for pattern in words.modules:
            for name in self.library.fitting(pattern):
                self.whole(name)

    def take(self, named: Named) -> None:
        """Reach what was resolved."""
        self.found.outside |= named.outside
        for name in named.loaded:
            self.load(name)
        for name in named.wholes:
            self.whole(name)
        for place in named.places:
            self.add(place)

    def add(self, place: Place) -> None:
        """Reach a definition."""
        if place in self.found.definitions:
            return
        module = self.library.module(place[0])
        assert module is not None
        self.found.definitions[place] = module.definitions[place[1]]
        self.load(place[0])
        self.todo.append(place)
        if place[1] in module.classes:
            called = self.library.called(place)
            for word, method in module.classes[place[1]].methods.items():
                special = word.startswith("__") and word.endswith("__")
                if special or called is None or word in called:
                    self.add(method)
                else:
                    self.wait(word, method)

    def wait(self, word: str, place: Place) -> None:
        """Reach a definition as soon as its name is said."""
        if word in self.said or any(re.fullmatch(pattern, word) for pattern in self.patterns):
            self.add(place)
        else:
            self.waiting[word].append(place)

    def whole(self, name: str) -> None:
        """Reach all that a module defines, and of a package all that it passes on."""
        if name in self.wholes or (module := self.library.module(name)) is None:
            return
        self.wholes.add(name)
        self.load(name)
        for word in module.definitions:
            if word != "__doc__":
                self.add((name, word))
        if module.package:
            for bound, ones in module.table.items():
                for one in ones:
                    if (one.module, one.name) == (name, bound):
                        self.whole(f"{name}.{bound}")
                    else:
                        found = Named()
                        self.library.resolve(one.module, (one.name,) if one.name else (), found)
                        self.take(found)

    def load(self, name: str) -> None:
        """Note that a module is imported, with the packages it is in: what they do, counts."""
        if name in self.found.loaded or (module := self.library.module(name)) is None:
            return
        self.found.loaded.add(name)
        if "." in name:
            self.load(name.rpartition(".")[0])
        for word, place in module.lent.items():
            self.wait(word, (name, place))
        if EFFECTS in module.definitions:
            self.add((name, EFFECTS))
        for one in module.first:
            self.load(one.module)
            if one.name:
                self.load(f"{one.module}.{one.name}")


# --- syntax trees ----------------------------------------------------------------------------------------------------
@cache
def analysed(source: bytes, name: str, package: bool) -> Module:
    """Return what a module defines, once for all libraries in which it stands as it is."""
    return Module(ast.parse(source), name, package)


def as_code(text: str) -> bytes:
    """Return what a file of data says as a module of one constant, which says no names."""
    return f"DATA = {json.dumps(tomllib.loads(text), default=str)!r}".encode()


def imports(
    tree: ast.AST, module: str = "", package: bool = False, *, typed: bool = False, inside: bool = True
) -> Iterator[Import]:
    """Yield the imports of a module; those that only a type checker sees if `typed`, those of functions if `inside`."""
    match tree:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) if not typed:
            for statement in tree.orelse:
                yield from imports(statement, module, package, inside=inside)
        case ast.Import():
            for alias in tree.names:
                yield from whole(alias)
        case ast.ImportFrom():
            base = module.split(".")
            base = base[: len(base) - tree.level + package] if tree.level else []
            start = ".".join([*base, *([tree.module] if tree.module else [])])
            for alias in tree.names:
                yield Import(alias.asname or alias.name, start, alias.name)
        case ast.FunctionDef() | ast.AsyncFunctionDef() if not inside:
            pass
        case _:
            for child in ast.iter_child_nodes(tree):
                if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                    yield from imports(child, module, package, typed=typed, inside=inside)


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


def stored(statement: ast.stmt) -> set[str]:
    """Return the names to which a statement assigns, outside of functions."""
    nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Store)}


def chain_of(node: ast.AST) -> Chain:
    """Return ``a.b.c`` as (a, b, c), and () for another expression; ``a[b]`` counts as ``a``."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=value, attr=attr) if base := chain_of(value):
            return (*base, attr)
        case ast.Subscript(value=value):
            return chain_of(value)
    return ()


class Names:
    """What code names.

    Attributes
    ----------
    used : dict of str to set of chains
        Each name with the attributes it is used with: ``a.b.c`` gives ``a`` with (b, c).
    said : set of str
        Attributes of values, and words in quotes, by which a method may be asked for.
    patterns, modules : set of str
        Regular expressions of names that are put together where they are asked for, of attributes and of modules.
    sets : bool
        Whether something is given a docstring.
    data : bool
        Whether files of data are named.
    """

    def __init__(self) -> None:
        self.used: dict[str, set[Chain]] = defaultdict(set)
        self.said: set[str] = set()
        self.patterns: set[str] = set()
        self.modules: set[str] = set()
        self.sets = self.data = False

    def visit(self, node: ast.AST, member: bool = False) -> None:
        """Note what a tree names, with the trees in it."""
        match node:
            case ast.Attribute():
                self._attribute(node)
                return
            case ast.Name(id=name):
                self.used[name].add(())
                return
            case ast.Constant(value=value):
                if isinstance(value, str) and WORD.fullmatch(value):
                    self.said.add(value)
                self.data |= isinstance(value, str) and value.endswith(DATA)
                return
            case ast.Call(func=func, args=[_, ast.JoinedStr() as name, *_]) if chain_of(func)[-1:] == ("getattr",):
                self.patterns.add(pattern(name))
            case ast.Call(func=func, args=[ast.JoinedStr() as name, *_]) if chain_of(func)[-1:] == ("import_module",):
                self.modules.add(pattern(name))
            case ast.Call(func=ast.Name(id="__getattr__"), args=[ast.Constant(value=str(text))]):
                self.used["__getattr__"].add(("()", text))
                return
            case ast.Call(func=func, args=[_, ast.Constant(value="__doc__"), _]):
                self.sets |= chain_of(func)[-1:] in (("setattr",), ("__setattr__",))
        for _, value in counted(node, member):
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, ast.AST):
                    self.visit(part, isinstance(node, ast.ClassDef))

    def _attribute(self, node: ast.Attribute) -> None:
        self.sets |= node.attr == "__doc__" and isinstance(node.ctx, ast.Store)
        rest: Chain = ()
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            self.said.add(inner.attr)
            inner, rest = inner.value, (inner.attr, *rest)
        match inner:
            case ast.Name(id=name):
                self.used[name].add(rest)
            case ast.Call(func=ast.Name(id="__getattr__"), args=[ast.Constant(value=str(text))]):
                self.used["__getattr__"].add(("()", text, *rest))
            case _:
                self.visit(inner)


def pattern(text: ast.JoinedStr) -> str:
    """Return the regular expression of what an f-string can be."""
    return "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"[\w.]*" for part in text.values)


def counted(node: ast.AST, member: bool = False) -> list[tuple[str, Any]]:
    """Return the fields of a tree that count: the kinds of a class's fields do, words about them do not."""
    fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            fields = [(name, value) for name, value in fields if name != "returns"]
        case ast.arg():
            fields = [(name, value) for name, value in fields if name != "annotation"]
        case ast.AnnAssign(target=target, value=value) if not member:
            fields = [("targets", [target]), ("value", value)] if value is not None else []
        case ast.Subscript(value=value, slice=ast.Tuple(elts=[kind, *notes])) if chain_of(value)[-1:] == ("Annotated",):
            fields = [("value", value), ("notes", [kind, *(note for note in notes if not is_text(note))])]
    for place, (name, value) in enumerate(fields):
        if name in ("body", "orelse", "finalbody") and isinstance(value, list):
            fields[place] = name, [each for each in value if not is_docstring(each)]
        elif name == "decorator_list":
            fields[place] = name, [each for each in value if not sealed(each)]
    return fields


def plain(node: Any, docstrings: bool = True, member: bool = False) -> Any:
    """Return a syntax tree as lists, the same under every Python version, unlike ``ast.dump``."""
    if isinstance(node, ast.AST):
        if docstrings:
            fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
        else:
            fields = [(name, value) for name, value in counted(node, member) if value not in (None, [])]
        kind = "Assign" if isinstance(node, ast.AnnAssign) and not docstrings and not member else type(node).__name__
        if isinstance(node, ast.JoinedStr):  # Python 3.12 adds empty text beside a format that is put together
            fields = [
                ("values", [part for part in node.values if not (isinstance(part, ast.Constant) and part.value == "")])
            ]
        inside = isinstance(node, ast.ClassDef)
        return [kind, *([name, plain(value, docstrings, inside)] for name, value in fields)]
    if isinstance(node, list):
        return [plain(item, docstrings, member) for item in node if docstrings or not is_docstring(item)]
    return repr(node)


def is_text(node: ast.AST) -> bool:
    """Tell whether an expression is a string, put together or not."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def sealed(decorator: ast.expr) -> bool:
    """Tell whether a decorator only notes something."""
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    return chain_of(call)[-1:] in {(seal,) for seal in SEALS}


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
