"""The house rules, read from the syntax trees of the library: floors, the door for randomness, the door to records.

Each rule is a function from a module to the places where it is broken.  Each is also shown a planted violation, for
a rule that cannot fail says nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

import dpforest
from dpforest import registry
from tools import lists

ROOT = Path(dpforest.__file__).parent

#: Imports run downward.  A room stands on one floor; its own modules may import each other, papers may not.
FLOORS = {
    room: floor
    for floor, rooms in enumerate(
        (
            "_version messages registry storage arithmetic privacy engines schema design chance structure",
            "mechanisms scores budgets counting",
            "models",
            "curator inspect",
            "learners",
            "papers flagship evaluation datasets",
            "study",
            "audit",
            "cli",
        )
    )
    for room in rooms.split()
}
#: Rooms of the lowest floor, in the order in which they may use each other.
GROUND = [room for room, floor in FLOORS.items() if floor == 0]

#: Where randomness may be drawn, and why.
DRAWS = {
    "chance": "the door itself",
    "datasets": "a seeded split into training and test part, before any learner sees the data",
    "audit": "an audit draws samples and coins of its own, from a stated seed; nothing of them enters a release",
}
#: Imports that could draw and do not, and why.
NAMES = {
    "engines.dask": {"uuid": "names of the tasks of one pass, which must not meet those of another"},
    "engines.spark": {"uuid": "the name under which one pass's tasks are watched"},
}
RANDOM_MODULES = {"random", "secrets", "uuid", "numpy.random"}
RANDOM_NAMES = {
    "default_rng",
    "RandomState",
    "SystemRandom",
    "check_random_state",
    "train_test_split",
    "resample",
    "urandom",
    "getrandbits",
    "randbelow",
    "token_bytes",
    "rvs",
}

#: What else may ask a counting kernel, and for what: the walk of released trees, which counts nothing.
WALKS = {("models.walk", "counting.sum_values")}
#: What others than the curator may use of the engines: how a table is named and opened, not what its blocks hold.
OPENING = {"Table", "frames_of", "is_out_of_core", "table_of"}
#: The modules that make a curator: of a table that is fitted, and of codes that an auditor replays.
MAKERS = {"learners.intake", "learners.base"}
#: What makes one, or records for it.
CURATORS = {"Curator", "InMemoryRecords", "BlockedRecords", "over"}
#: What holds records, encoded or not.
TABLES = {"X", "y", "codes", "labels", "encoded"}
#: Functions that a table passes through on its way to the schema, and with it to the curator or to the released trees.
TABLE_FUNCTIONS = {
    "evaluation.answers": {"look", "open_rows", "as_given", "gains", "note_test", "_errors"},
    "evaluation.choice": {"choose"},
    "evaluation.held_out": {"hold_out"},
    "evaluation.one_node": {"charged", "_charged"},
    "evaluation.private_test": {"evaluate"},
    "learners.base": {"fit", "learn", "_charged", "replay", "read", "_codes"},
    "learners.intake": {"of", "open", "_encoded", "look", "columns_of", "encode"},
    "learners.persons": {"own_rows"},
    "models.predictor": {"answer", "score", "_codes", "_answers_column"},
    "models.walk": {"sum_values", "leaves", "_leaves"},
    "structure.splits": {"check_codes", "check_below", "check_values"},
    "models.forest": {"sum_leaves", "leaves", "_leaf_sums", "predict", "predict_proba"},
    "models.generalised": {"encode", "generalise"},
    "models.linear": {"scores", "_scores", "predict", "predict_proba"},
    "models.boosted": {
        "scores",
        "staged_scores",
        "_scores",
        "_staged",
        "decision_function",
        "predict",
        "predict_proba",
        "staged_decision_function",
        "staged_predict",
        "staged_predict_proba",
    },
}
#: Public methods of the curator that need not charge, and why.
UNCHARGED = {
    "__init__": "takes the records in",
    "assign": "draws a coin per record, and answers nothing",
    "partition_records": "draws a coin per record, and answers nothing",
    "split_equally": "draws a random order of the records, and answers nothing",
    "bootstrap": "draws records with replacement, and answers nothing",
    "poisson_bootstrap": "draws a number for each record, and answers nothing",
    "weigh_records": "weighs each record by itself and by what is released, and answers nothing",
    "add_scores": "lets each record hear what is released, and answers nothing",
    "join_round": "lets each record pay for itself, and answers nothing",
    "hold_out": "draws a random order of the records, and answers nothing",
}


#: Classes of its room that nobody asks but the curator, which has them in its one attribute.
NO_DOORS = {
    "Records": "the protocol",
    "MaterializedRecords": "the protocol",
    "Door": "makes a curator",
    "InMemoryRecords": "records",
    "RecordCoins": "what records ask of chance",
    "BlockedRecords": "records",
    "Question": "to a block",
    "_BlockRecords": "a block",
    "Keys": "of a block's coins",
    "FilterLimits": "public",
    "IndividualFilter": "records have it",
    "CachedCounts": "counts that the records remember",
    "Split": "of such counts",
}


@dataclass(frozen=True)
class Module:
    """A module of the library: its dotted name without ``dpforest.``, and its source."""

    name: str
    source: str
    package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree, once it is asked for: every worker collects these tests, and few of them run here."""
        return ast.parse(self.source, self.name)

    @property
    def room(self) -> str:
        room = self.name.split(".")[0]
        return "cli" if room == "__main__" else room  # ``python -m dpforest`` is the command line


def modules() -> list[Module]:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        package = parts[-1] == "__init__"
        found.append(Module(".".join(parts[:-1] if package else parts), path.read_text(), package))
    return found


MODULES = modules()
#: Where the attributes of the package are defined.
HOMES = {name: f"{home}.{name}" for name, home in registry.NAMES.items()}
HOMES |= {name: f"{home}.{name}" for paper, home in lists.homes().items() for name in registry.PAPERS[paper]}
HOMES |= {room: room for room in registry.MODULES + registry.ROOMS}
every_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name or "__init__")


def planted(name: str, source: str) -> Module:
    return Module(name, source)


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Every import of a module, in functions too, as (line, absolute dotted name)."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = ["dpforest", *(module.name.split(".") if module.name else [])]
                up = node.level - module.package
                base = ".".join(here[: len(here) - up] + ([node.module] if node.module else []))
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def inside(module: Module) -> Iterator[tuple[int, str]]:
    """Imports from the library, as (line, dotted name without ``dpforest.``); public names by where they are defined.

    An attribute of the package is imported when it is asked for.
    """
    for line, name in imports(module):
        head, _, rest = name.partition(".")
        if head == "dpforest":
            yield line, HOMES.get(rest, rest)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dpforest":
            yield node.lineno, HOMES.get(node.attr, node.attr)
    if not module.name:
        yield from ((0, target) for target in HOMES.values())


# -- the rules ---------------------------------------------------------------------------------------------------


def upward(module: Module) -> list[str]:
    """Imports that do not run downward."""
    broken = []
    for line, target in inside(module):
        room = target.split(".")[0]
        if room not in FLOORS:
            continue  # a name of the package itself
        if not module.name:
            fine = FLOORS[room] < FLOORS["audit"]
        elif room == module.room:
            fine = room != "papers" or module.package
        else:
            fine = FLOORS[room] < FLOORS[module.room]
            fine |= {room, module.room} <= set(GROUND) and GROUND.index(room) < GROUND.index(module.room)
        if not fine:
            broken.append(f"{module.name}:{line} imports {target}")
    # find_spec asks whether something is installed, and imports nothing of ours; the package goes by the registry
    followed = {"importlib.util.find_spec"} if module.name else {"importlib.import_module"}
    if any(name.split(".")[0] == "importlib" and name not in followed for _, name in imports(module)):
        broken.append(f"{module.name} imports by name at run time, which this test cannot follow")
    return broken


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    """What is said of types, and not run."""
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if isinstance(note := getattr(node, field, None), ast.expr):
                yield note


def draws(module: Module) -> list[str]:
    """Places that draw randomness, or could."""
    broken = []
    for line, name in imports(module):
        source = any(name == random or name.startswith(f"{random}.") for random in RANDOM_MODULES)
        if name not in NAMES.get(module.name, {}) and (source or name.rsplit(".", 1)[-1] in RANDOM_NAMES):
            broken.append(f"{module.name}:{line} imports {name}")
    said = {part for note in annotations(module.tree) for part in ast.walk(note)}
    for node in ast.walk(module.tree):
        if node in said:
            continue
        if isinstance(node, ast.Attribute):
            numpy_random = (
                node.attr == "random" and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy")
            )
            if numpy_random or node.attr in RANDOM_NAMES:
                broken.append(f"{module.name}:{node.lineno} uses {ast.unparse(node)}")
        elif isinstance(node, ast.Name) and node.id in RANDOM_NAMES:
            broken.append(f"{module.name}:{node.lineno} uses {node.id}")
    return broken


def counts(module: Module) -> list[str]:
    """Uses of the counting kernels by others than the curator."""
    if module.room in ("counting", "curator", ""):
        return []
    return [
        f"{module.name}:{line} imports {target}"
        for line, target in inside(module)
        if target.split(".")[0] == "counting" and (module.name, target) not in WALKS
    ]


def passes(module: Module) -> list[str]:
    """Places outside the engines and the curator that could see a block of records, or an exact sum over all."""
    if module.room in ("engines", "curator", ""):
        return []
    broken = []
    for line, target in inside(module):
        room, name = target.split(".")[0], target.rsplit(".", 1)[-1]
        if room == "engines" and name not in OPENING:
            broken.append(f"{module.name}:{line} imports {target}")
        if target.startswith("curator.scattered"):
            broken.append(f"{module.name}:{line} imports {target}")
    for node in ast.walk(module.tree):
        asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "total"
        # the total of a Counter is asked for no task, and the floor of the ledger knows no table
        if asks and (node.args or node.keywords) and FLOORS.get(module.room, 9) > FLOORS["engines"]:
            broken.append(f"{module.name}:{node.lineno} asks for a pass: {ast.unparse(node)}")
    return broken


def touches(module: Module) -> list[str]:
    """Places in learners, papers and models that could see a record, or what others keep to themselves."""
    broken = []
    allowed = TABLE_FUNCTIONS.get(module.name, set())

    def look(node, function):
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.Name) and node.id in TABLES and function not in allowed:
            broken.append(f"{module.name}:{node.lineno} {function} uses the records: {node.id}")
        if isinstance(node, ast.Attribute):
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            own = own or (isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super")
            if private and not own:
                broken.append(f"{module.name}:{node.lineno} {function} reaches for {ast.unparse(node)}")
        makes = isinstance(node, ast.Call) and CURATORS & {*ast.unparse(node.func).split(".")}
        if makes and module.name not in MAKERS:
            broken.append(f"{module.name}:{node.lineno} makes a curator of its own")
        for child in ast.iter_child_nodes(node):
            look(child, function)

    look(module.tree, None)
    return broken


#: Where the curator has the records, and all that only a look at them can tell: the grey box watches the same.
RECORDS = {"_records"}
#: What else it keeps, and why it may be seen.
HARMLESS = {
    "n_classes": "public",
    "cardinalities": "public",
    "_offsets": "of the cardinalities",
    "_n_jobs": "asked for",
    "_chance": "the other door",
    "_ledger": "never holds an answer",
    "unit": "of weights, by the number of classes",
    "_has_weights": "asked for",
    "n_parts": "asked for",
}


def curators(room: list[Module]) -> list[ast.ClassDef]:
    """The classes that make up a curator, and those of the records left out."""
    classes = [node for module in room for node in module.tree.body if isinstance(node, ast.ClassDef)]
    return [node for node in classes if node.name not in NO_DOORS]


def uncharged(room: list[Module]) -> list[str]:
    """Public methods of the curator, in whichever of its modules, that read the records and charge nothing."""
    classes = curators(room)
    methods = [(each.name, node) for each in classes for node in each.body if isinstance(node, ast.FunctionDef)]
    named: dict[str, list[ast.FunctionDef]] = {}
    for _, node in methods:
        named.setdefault(node.name, []).append(node)

    def mentions(method, attributes, all_of_them, seen=()):
        """Whether a method uses one of these attributes of self, or calls a method of self that does.

        Of a method that several classes have, one must do so, or all of them.
        """
        used = {n.attr for n in ast.walk(method) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self"}
        called = (used & named.keys()) - {method.name, *seen}
        each, seen = all if all_of_them else any, (method.name, *seen)
        return bool(used & attributes) or any(
            each(mentions(other, attributes, all_of_them, seen) for other in named[name]) for name in sorted(called)
        )

    return [
        f"curator: {owner}.{method.name} reads without a charge"
        for owner, method in methods
        if (not method.name.startswith("_") or method.name == "__init__") and method.name not in UNCHARGED
        if mentions(method, RECORDS, False) and not mentions(method, {"_ledger"}, True)
    ]


# -- the house ---------------------------------------------------------------------------------------------------


def test_every_module_has_its_floor():
    rooms = {module.room for module in MODULES} - {""}
    assert rooms == FLOORS.keys(), "give the new module a floor"


@every_module
def test_imports_run_downward(module):
    assert upward(module) == []


@every_module
def test_randomness_is_drawn_at_the_door(module):
    if module.room not in DRAWS:
        assert draws(module) == []


@every_module
def test_only_the_curator_counts(module):
    assert counts(module) == []


def test_the_registry_is_what_type_checkers_see():
    """Every public name, by the module that its import in the package names, which must define it."""
    (package,) = (module for module in MODULES if not module.name)
    (block,) = (node for node in package.tree.body if isinstance(node, ast.If))
    below = Module("", "\n".join(map(ast.unparse, block.body)))
    seen = {name.rsplit(".", 1)[1]: name for _, name in imports(below)}
    assert seen == {name: f"dpforest.{home}" for name, home in HOMES.items() if name not in registry.ROOMS}
    assert {*seen, "__version__"} == set(dpforest.__all__)
    assert len(dpforest.__all__) == len(set(dpforest.__all__))


@every_module
def test_only_the_curator_asks_for_a_pass(module):
    assert passes(module) == []


@pytest.mark.parametrize(
    "module",
    [m for m in MODULES if m.room in ("learners", "papers", "models", "evaluation", "structure")],
    ids=lambda module: module.name,
)
def test_learners_see_no_record(module):
    assert touches(module) == []


def test_the_curator_charges_for_what_it_reads():
    curator = [module for module in MODULES if module.room == "curator"]
    assert len(curator) > 1
    assert uncharged(curator) == []


def kept(room: list[Module]) -> set[str]:
    """Attributes that the curator's classes give to themselves."""
    found = set()
    for each in curators(room):
        for node in ast.walk(each):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in (leaf for t in targets for leaf in getattr(t, "elts", [t])):
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                    found.add(target.attr)
    return found


def test_all_that_the_curator_keeps_is_secret_or_harmless():
    room = [module for module in MODULES if module.room == "curator"]
    assert kept(room) == RECORDS | HARMLESS.keys(), "let the records keep it, or say why it may be seen"
    assert not RECORDS & HARMLESS.keys()
    source = "class Curator:\n    def f(self, x):\n        self._a, self._b = x\n        self._c: int = 0"
    inner = "class InMemoryRecords:\n    def f(self, x):\n        self._d = x"
    assert kept([planted("curator", source), planted("curator.memory", inner)]) == {"_a", "_b", "_c"}


@pytest.mark.slow
def test_exceptions_are_needed():
    by_room = {room: [m for m in MODULES if m.room == room] for room in DRAWS}
    assert all(any(draws(module) for module in found) for found in by_room.values())
    for name, allowed in NAMES.items():
        (named,) = (module for module in MODULES if module.name == name)
        assert allowed.keys() <= {target for _, target in imports(named)}
    opened = {
        name.rsplit(".", 1)[-1]
        for m in MODULES
        if m.room not in ("engines", "curator")
        for _, name in inside(m)
        if "engines" in name
    }
    assert opened >= OPENING
    curator = "\n".join(ast.unparse(module.tree) for module in MODULES if module.room == "curator")
    assert all(f"def {name}(" in curator for name in UNCHARGED)
    assert all(re.search(rf"class {name}\b", curator) for name in NO_DOORS)
    assert all(f"self.{name}" in curator for name in RECORDS)
    for room, names in TABLE_FUNCTIONS.items():
        (named,) = (module for module in MODULES if module.name == room)
        used = {place.split()[1] for place in touches(Module("", named.source)) if "uses the records" in place}
        assert used == names


# -- the rules can fail ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("scores", "from dpforest import curator"),
        ("scores", "from dpforest.mechanisms import exponential"),
        ("privacy", "import dpforest.schema"),
        ("models.forest", "def f():\n    from dpforest.learners.base import PrivateEstimator"),
        ("models.release", "def f():\n    from dpforest import curator"),
        ("models.predictor", "import dpforest\ndef f():\n    return dpforest.inspect.card"),
        ("counting.rows", "from dpforest.models.walk import leaves"),
        ("learners.growth", "from dpforest import EDPRFClassifier"),
        ("papers.edprf", "from dpforest.papers.random_trees import RandomTreesClassifier"),
        ("papers.edprf", "from .random_trees import RandomTreesClassifier"),
        ("papers.edprf", "from dpforest.audit import exact_audit"),
        ("study.experiments", "from dpforest import audit"),
        ("", "from dpforest.audit import exact_audit"),
        ("learners.base", "from dpforest import datasets"),
        ("learners.base", "from ..study import plots"),
        ("engines.table", "from dpforest.curator import Curator"),
        ("engines.dask", "from dpforest import counting"),
        ("engines.table", "from dpforest.schema import Schema"),
        ("schema.cells", "from dpforest.chance import keyed"),
        ("chance", "import importlib"),
        ("chance", "import importlib.util"),
        ("chance", "from importlib import util"),
        ("models.release", "from importlib import import_module"),
    ],
)
def test_an_upward_import_is_found(name, source):
    assert len(upward(planted(name, source))) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("curator", "from dpforest import counting, mechanisms"),
        ("counting.bits", "from dpforest.counting.masks import prepare"),
        ("audit.exact", "from dpforest.papers.edprf import EDPRFClassifier"),
        ("study.plots", "from dpforest.learners.growth import Growth"),
        ("audit.sampling", "from dpforest.study import plots"),
        ("cli", "import dpforest\ndpforest.audit.exact_audit"),
        ("models.boosted", "from dpforest.models.forest import Forest"),
        ("models.walk", "import dpforest\ndef f():\n    return dpforest.counting.sum_values"),
        ("schema.check", "from dpforest.engines import frames_of"),
        ("engines.spark", "from importlib.util import find_spec"),
        ("papers.edprf", "from dpforest import budgets\nimport numpy as np"),
    ],
)
def test_a_downward_import_is_fine(name, source):
    assert upward(planted(name, source)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "from random import choice",
        "import secrets",
        "import numpy.random as npr",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\ndef f():\n    return np.random.rand()",
        "def f(a=default_rng()): pass",
        "import os\nos.urandom(8)",
        "from scipy import stats\nstats.norm.rvs(3)",
        "from sklearn.model_selection import train_test_split",
        "from sklearn.utils import check_random_state as fine",
    ],
)
def test_a_draw_elsewhere_is_found(source):
    assert draws(planted("models.forest", source))


def test_a_name_that_is_drawn_is_fine_where_it_is_declared_alone():
    assert draws(planted("engines.dask", "import uuid")) == []
    assert draws(planted("engines.dask", "import random"))
    assert draws(planted("engines.table", "import uuid"))
    assert draws(planted("engines.dask", "frame.random_split([1])\nnp.random.rand()"))


def test_a_seed_that_is_only_passed_on_is_fine():
    source = "def fit(self, random_state):\n    self.random_state = random_state\n    return Seeded(random_state)"
    assert draws(planted("learners.base", source)) == []
    assert draws(planted("learners.base", "def fit(seed: np.random.RandomState) -> np.random.Generator: pass")) == []
    assert draws(planted("learners.base", "def fit(seed: int = np.random.RandomState(0)): pass"))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("papers.edprf", "from dpforest.counting import node_class_counts"),
        ("papers.edprf", "from dpforest import counting"),
        ("learners.base", "import dpforest.counting.rows"),
        ("models.forest", "from dpforest.counting import rows"),
        ("models.forest", "from dpforest.counting import sum_values"),
        ("models.walk", "from dpforest.counting import node_class_counts"),
        ("engines.dask", "from dpforest import counting"),
        ("engines.table", "def f(block):\n    from dpforest.counting import node_class_counts"),
    ],
)
def test_counting_elsewhere_is_found(name, source):
    assert len(counts(planted(name, source))) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("papers.edprf", "from dpforest.engines import Block"),
        ("papers.edprf", "from dpforest.engines.table import Pass"),
        ("papers.edprf", "from dpforest import engines"),
        ("learners.base", "from dpforest.engines import table"),
        ("learners.base", "import dpforest.engines.parquet"),
        ("papers.edprf", "from dpforest.curator.scattered import BlockedRecords"),
        ("papers.edprf", "from dpforest.curator import scattered"),
        (
            "learners.base",
            "class A:\n    def fit(self, X, y):\n        return self._open(X).total(lambda block: (block.codes,))",
        ),
        ("audit.exact", "def f(table, task):\n    return table.total(task=task)"),
        ("study.experiments", "from dpforest.engines import merge"),
    ],
)
def test_a_pass_elsewhere_is_found(name, source):
    assert len(passes(planted(name, source))) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (
            "learners.base",
            "from dpforest.curator import Curator\nfrom dpforest.engines import table_of",
        ),
        ("curator.scattered", "from dpforest.engines import Block\ntable.total(1)"),
        ("engines.dask", "from dpforest.engines.table import Block, Pass"),
        ("audit.exact", "counter.total()"),
    ],
)
def test_opening_a_table_is_fine(name, source):
    assert passes(planted(name, source)) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("papers.edprf", "class A:\n    def fit(self, X, y):\n        return X.mean()"),
        ("papers.edprf", "def as_proved(curator):\n    return curator._class_counts()"),
        ("papers.edprf", "def as_proved(curator):\n    return curator._records"),
        ("papers.edprf", "curator = Curator(1, 2)"),
        ("learners.run", "records = curator.scattered.BlockedRecords(1, 2)"),
        ("learners.boosting", "other = Curator.over(table)"),
        ("papers.edprf", "def as_proved(run):\n    return run.curator.over(run.table)"),
        ("learners.growth", "def grow(growth, labels):\n    return len(labels)"),
        ("learners.base", "class A:\n    def _check_parameters(self, y):\n        return len(y)"),
        ("learners.base", "def check(X):\n    return is_elsewhere(X)"),
        ("papers.edprf", "class A:\n    def _grow(self, curator):\n        return curator._table"),
        ("models.predictor", "def anywhere(X):\n    return X.sum()"),
        ("models.forest", "def shares(codes):\n    return codes.sum()"),
    ],
)
def test_a_look_at_the_records_is_found(name, source):
    assert len(touches(planted(name, source))) == 1


def test_private_members_of_oneself_are_fine():
    source = (
        "class A:\n    def _check(self, X):\n        super()._f()\n        return self._chance, self.__doc__, cls._x"
    )
    assert touches(planted("papers.edprf", source)) == []


def test_an_uncharged_query_is_found():
    source = """
class Curator:
    def assign(self): self._records.assign(2)
    def charged(self): self._histograms(); self._pay()
    def charged_here_alone(self): self._histograms(); self._fee()
    def leaked(self): self._ledger.leak("what", "where"); return self._records.n_records
    def direct(self): return self._records.codes.sum()
    def hidden(self): return self._histograms()
    def public(self): return self.n_classes
    def handed_out(self): return self._records
    def told(self): return self._records.known.recall()
    def _histograms(self): return self._deeper()
    def _deeper(self): return self._records.answer()
    def _pay(self): self._ledger.charge()
    def _fee(self): self._ledger.charge()
"""
    elsewhere = """
class Another(Curator):
    def charged(self): return self._total()
    def another(self): return self._histograms()
    def ready(self): return self.n_parts
    def _histograms(self): return self._total()
    def _total(self): return self._records.answer()
    def _fee(self): pass
class InMemoryRecords:
    def class_counts(self): return self._records
"""
    broken = uncharged([planted("curator", source), planted("curator.another", elsewhere)])
    assert [place.split()[1] for place in broken] == [
        "Curator.charged_here_alone",
        "Curator.direct",
        "Curator.hidden",
        "Curator.handed_out",
        "Curator.told",
        "Another.charged",
        "Another.another",
    ]
