"""The notebook renderer: keys, what they reach, failures kept and named, same run same bytes, renderings of record."""

from __future__ import annotations

import ast
import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import render  # conftest.py puts notebooks/ on the path
from jupyter_client.connect import LocalPortCache
from jupyter_client.kernelspec import NoSuchKernel
from reach import Library, plain

from dpforest import datasets
from dpforest.study import checkout
from tests import executed

ROOT = Path(__file__).resolve().parent.parent
META = {"display_name": "Python 3", "language": "python", "name": "python3"}


def write(folder: Path, name: str, *code: str, parameters: str = "n = 1", **metadata: object) -> Path:
    """Write a notebook whose first code cell holds the parameters."""
    nb = nbformat.v4.new_notebook(metadata={"kernelspec": META, **({"dpforest": metadata} if metadata else {})})
    nb.cells = [
        nbformat.v4.new_markdown_cell("# A question?\n\nExhibits: `thm-none`", id="head"),
        nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}, id="parameters"),
        *(nbformat.v4.new_code_cell(source, id=f"code-{index}") for index, source in enumerate(code)),
    ]
    path = folder / f"{name}.ipynb"
    nbformat.write(nb, path)
    return path


def repository(folder: Path) -> Path:
    """A small repository: a library of one module, and a folder of notebooks."""
    (folder / "dpforest").mkdir()
    (folder / "dpforest" / "one.py").write_text("ONE = 1\n")
    (folder / "requirements.txt").write_text("# empty\n")
    (folder / "notebooks").mkdir()
    return folder / "notebooks"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return repository(tmp_path)


def key(home: Path, name: str = "a") -> str:
    (job,) = render.plan([name], source=home)
    return job.key


@pytest.fixture
def catalogue(home: Path) -> Path:
    """The folder of the schemas in a copy of the library's data sets."""
    (home.parent / "dpforest" / "__init__.py").touch()
    shutil.copytree(Path(datasets.__file__).parent, home.parent / "dpforest" / "datasets")
    return home.parent / "dpforest" / "datasets" / "schemas"


class TestPlan:
    @pytest.mark.parametrize(
        ("code", "names", "file", "noticed"),
        [
            ("from dpforest.datasets import load\nload('adult')", ["adult"], "adult", True),
            ("from dpforest.datasets import load\nload('adult')", ["adult"], "nursery", False),
            ("from dpforest.datasets import schema\nschema('adult')", ["adult"], "adult", True),
            ("from dpforest.datasets import schema\nschema('adult')", ["adult"], "nursery", False),
            ("from dpforest import datasets\ndatasets.load('adult')", ["adult", "nursery"], "nursery", True),
            (
                "from dpforest import datasets\ndatasets.load('wine-quality-red')",
                ["wine-quality-red"],
                "wine-quality",
                True,
            ),
            ("from dpforest import datasets\ndatasets.names()", [], "nursery", True),
            ("from dpforest.datasets.taxonomies import TAXONOMIES\nTAXONOMIES['adult']", ["adult"], "nursery", True),
            ("print(n)", ["adult"], "adult", False),
        ],
    )
    def test_a_schema_makes_stale_the_pages_that_read_its_data_set(
        self, home: Path, catalogue: Path, code: str, names: list[str], file: str, noticed: bool
    ) -> None:
        write(home, "a", code, datasets=names)
        before, path = key(home), catalogue / f"{file}.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(f"# why\n{text}", encoding="utf-8")
        assert key(home) == before
        path.write_text(text.replace('title = "', 'title = "Other ', 1), encoding="utf-8")
        assert path.read_text(encoding="utf-8") != text
        assert (key(home) != before) is noticed

    def test_key_follows_what_a_result_depends_on(self, home: Path) -> None:
        write(home, "a", "print(n)")
        keys = [key(home)]
        (home / "full.yaml").write_text("a: {n: 2}\n")
        keys.append(key(home))
        write(home, "a", "import numpy", "from dpforest.one import ONE", "print(n + ONE, numpy)")
        keys.append(key(home))
        (home.parent / "dpforest" / "one.py").write_text("ONE = 2\n")
        keys.append(key(home))
        (home.parent / "requirements.txt").write_text("numpy==2.0 \\\n    --hash=sha256:0\nruff==1.0 \\\n")
        keys.append(key(home))
        write(home, "a", "import numpy", "from dpforest.one import ONE", "print(n + ONE, numpy)", datasets=["adult"])
        keys.append(key(home))
        assert len(set(keys)) == len(keys)

    def test_key_ignores_what_no_result_depends_on(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(home, "a", "from dpforest.one import ONE", "import numpy", "print(n, ONE, numpy)")
        (home.parent / "requirements.txt").write_text("numpy==2.0 \\\n    --hash=sha256:0\nruff==1.0 \\\n")
        before = key(home)
        nb = nbformat.read(path, as_version=4)
        nb.cells[0].source = "# Another question?\n\nExhibits: `thm-none`"
        nb.cells[2].outputs = [nbformat.v4.new_output("stream", text="1\n")]
        nb.cells[2].source += "  # why"
        nbformat.write(nb, path)
        (home.parent / "dpforest" / "one.py").write_text('"""Why."""\n# why\nONE = (\n    1\n)\n"What it is."\n')
        (home.parent / "dpforest" / "two.py").write_text("TWO = 2\n")
        (home.parent / "requirements.txt").write_text("numpy==2.0 \\\n    --hash=sha256:1\nruff==2.0 \\\n")
        monkeypatch.setattr(render.platform, "python_version", lambda: "3.99.0")
        monkeypatch.setattr(render.platform, "machine", lambda: "abacus")
        assert key(home) == before

    def test_code_is_plain_python(self, home: Path) -> None:
        write(home, "a", "%time print(n)")
        with pytest.raises(render.RenderError, match=r"a\.ipynb: cell 2 is not plain Python"):
            list(render.plan(source=home))

    def test_modules_named_must_exist(self, home: Path) -> None:
        write(home, "a", "print(n)", reaches=["dpforest.two"])
        with pytest.raises(render.RenderError, match=r"a\.ipynb: there is no module 'dpforest.two' to reach"):
            list(render.plan(source=home))

    def test_misspelt_parameter(self, home: Path) -> None:
        write(home, "a", "print(n)")
        (home / "full.yaml").write_text("a: {m: 2}\n")
        with pytest.raises(render.RenderError, match=r"a\.ipynb has no parameter 'm'; it has: n"):
            list(render.plan(source=home))

    def test_parameters_for_no_notebook(self, home: Path) -> None:
        write(home, "a", "print(n)")
        (home / "full.yaml").write_text("b: {n: 2}\n")
        with pytest.raises(render.RenderError, match=r"no notebook b\.ipynb"):
            list(render.plan(source=home))

    @pytest.mark.parametrize("source", ["import math", "n = 1\nm = n + 1", "n, m = 1, 2", "n = print()"])
    def test_parameters_are_literals(self, home: Path, source: str) -> None:
        write(home, "a", parameters=source)
        with pytest.raises(render.RenderError, match="literal"):
            list(render.plan(source=home))

    def test_unknown_data_set(self, home: Path) -> None:
        write(home, "a", datasets=["no-such-set"])
        with pytest.raises(render.RenderError, match=r"a\.ipynb: there is no data set 'no-such-set'"):
            list(render.plan(source=home))

    def test_data_sets_named_by_a_parameter_count(self, home: Path) -> None:
        write(home, "a", parameters="datasets = ['adult']")
        (home / "full.yaml").write_text("a: {datasets: [adult, nursery]}\n")
        (job,) = render.plan(source=home)
        assert job.datasets == ("adult", "nursery")

    def test_parameters_of_other_names_count_where_the_metadata_say_so(self, home: Path) -> None:
        write(home, "a", parameters="tuned = ['adult']\nasked = 'digits'", data_parameters=["tuned", "asked"])
        (home / "full.yaml").write_text("a: {tuned: [adult, nursery]}\n")
        (job,) = render.plan(source=home)
        assert job.datasets == ("adult", "nursery", "digits")
        write(home, "a", parameters="tuned = ['adult']", data_parameters=["tuned", "asked"])
        with pytest.raises(render.RenderError, match=r"a\.ipynb: .*named by 'asked', which is no parameter"):
            list(render.plan(source=home))


TOY = {
    "lib/__init__.py": "from lib.a import A\nfrom lib.b import B\nfrom .deep import D\nfrom lib import c\n"
    "V = 1\n__all__ = ['A']\n",
    "lib/a.py": "A = 1\nOTHER = 2\n",
    "lib/b.py": "import lib.a\ndef B():\n    from .late import L\n    return L\n",
    "lib/c.py": "import scipy.linalg\ndef f(): return scipy.linalg.inv\n",
    "lib/late.py": "L = 1\ndef lend(**functions): LENT.update(functions)\n",
    "lib/typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lib.late import L\n"
    "else:\n    import lib.a\ndef t(x: 'L'): return lib.a.A\n",
    "lib/docs.py": "import lib.a\ndef show(): print(lib.a.f.__doc__)\ndef source(): return inspect.getsource(lib.a)\n",
    "lib/star.py": "from lib.deep import *\n",
    "lib/deep/__init__.py": "import sklearn\nfrom .d import D\nfrom . import e\nfrom ..late import L\nTABLE = (e,)\n",
    "lib/deep/d.py": "D = 1\n",
    "lib/deep/e.py": "E = 1\n",
    "lib/lazy/__init__.py": "from typing import TYPE_CHECKING\nfrom lib import late\nfrom lib.lazy import names\n"
    "if TYPE_CHECKING:\n    from lib.a import A\n    from lib.b import B\n"
    "__all__ = [*names.ALL]\ndef __getattr__(name):\n    return find(names.ALL[name])\n"
    "late.lend(b=lambda: __getattr__('B'))\n",
    "lib/lazy/names.py": "ALL = {'A': 'a', 'B': 'b'}\n",
    "lib/kinds.py": "from sklearn.base import BaseEstimator\nfrom threading import Thread\nRATE = 2\n"
    "class Base:\n    size = RATE\n    def __init__(self): self.x = helper()\n"
    "    def asked(self): return 1\n    def silent(self): return 2\n"
    "class Child(Base):\n    def asked(self): return 3\n"
    "class Learner(BaseEstimator):\n    def fit(self): return self._inner()\n"
    "    def _inner(self): return 1\n    def extra(self): return 2\n"
    "class Run(Thread):\n    def whatever(self): return 1\n"
    "def helper(): return 4\ndef other(): return 5\n",
    "lib/by_name.py": "from importlib import import_module\nfrom lib import kinds\n"
    "def word(it, name): return getattr(it, name)\n"
    "def put_together(it, name): return getattr(it, f'sil{name}')\n"
    "def module(name): return import_module(f'lib.deep.{name}')\n"
    "def values(): return vars(kinds)\n",
    "lib/does.py": "TABLE = {}\ndef note(f):\n    TABLE[1] = f\ndef used(): return TABLE\ndef filled(): return 6\n"
    "note(filled)\n",
    "lib/rates/__init__.py": "from pathlib import Path\nfrom lib.rates.base import BASE\n"
    "def read(name): return Path(f'{name}.toml').read_text()\ndef none(): return BASE\n",
    "lib/rates/base.py": "BASE = 1\n",
    "lib/rates/data/one.toml": "rate = 1  # why\nnames = ['silent', 'lib.late']\n",
    "lib/other.toml": "rate = 2\n",
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in TOY.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return tmp_path


class TestReach:
    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            ("from lib import A", ""),
            ("from lib import A\nA", "a.A"),
            ("from lib import A as X\nprint(X.y)", "a.A"),
            ("from lib import V\nV", ".V"),
            ("from lib import B\nB", "b.B late.L"),
            ("def f():\n    from lib import A\n    A", "a.A"),
            ("import lib.a as x\nx.OTHER", "a.OTHER"),
            ("import lib.a as x\nprint(x)", "a.A a.OTHER"),
            ("from lib import c\nc.f", "c.f !scipy"),
            ("import lib\nlib.A", "a.A"),
            ("import lib\nlib.deep.d.D", "deep.d.D"),
            ("import lib\nf(lib)", ".V a.A b.B c.f deep.d.D late.L !scipy"),
            ("from lib.deep import e\ne.E", "deep.e.E"),
            ("from lib.deep import TABLE\nTABLE", "deep.TABLE deep.e.E"),
            ("from lib.deep import *", "deep.TABLE deep.d.D deep.e.E late.L !sklearn"),
            ("from lib import star\nstar.D", "deep.d.D"),
            ("from lib import typed\ntyped.t", "typed.t a.A"),
            ("from lib.lazy import A\nA", "lazy.<does> late.lend a.A"),
            ("from lib import lazy\nlazy.B", "lazy.<does> late.lend b.B late.L"),
            ("from lib.lazy import A\nA['b']", "lazy.<does> lazy.<does>.b late.lend a.A b.B late.L"),
            ("import numpy.linalg, lib.a\nnumpy.linalg", "!numpy"),
            # classes: bases and special methods come along, another method as soon as its name is said
            ("from lib.kinds import Child\nChild()",
             "kinds.Child kinds.Base kinds.Base.__init__ kinds.helper kinds.RATE"),
            ("from lib.kinds import Base\nBase().asked()",
             "kinds.Base kinds.Base.__init__ kinds.Base.asked kinds.helper kinds.RATE"),
            ("from lib.kinds import Child\nx = Child()\ndef f(y): return y.asked()",
             "kinds.Child kinds.Child.asked kinds.Base kinds.Base.__init__ kinds.Base.asked kinds.helper kinds.RATE"),
            ("from lib.kinds import Base\nask(Base(), 'silent')",
             "kinds.Base kinds.Base.__init__ kinds.Base.silent kinds.helper kinds.RATE"),
            ("from lib.kinds import Learner\ncross_val_score(Learner())",
             "kinds.Learner kinds.Learner.fit kinds.Learner._inner !sklearn"),
            ("from lib.kinds import Run\nRun()", "kinds.Run kinds.Run.whatever !threading"),
            # where a name is computed
            ("from lib import by_name\nfrom lib.kinds import Base\nby_name.put_together(Base, 'ent')",
             "by_name.put_together kinds.Base kinds.Base.__init__ kinds.Base.silent kinds.helper kinds.RATE"),
            ("from lib import by_name\nby_name.module('d')", "by_name.module deep.d.D deep.e.E !importlib"),
            ("print('lib.late')", "late.L late.lend"),
            # files of data, whose words name nothing
            ("from lib.rates import read\nread('one')", "rates.read rates.data.one.toml.DATA !pathlib"),
            ("from lib.rates import none\nnone()", "rates.none rates.base.BASE"),
            # what a module does when it is imported
            ("from lib import does\ndoes.used()", "does.used does.TABLE does.<does> does.note does.filled"),
        ],
    )  # fmt: skip
    def test_no_more_and_no_less(self, toy: Path, code: str, expected: str) -> None:
        found = Library(toy).reach([ast.parse(code)])
        places = {f"{module.removeprefix('lib').removeprefix('.')}.{name}" for module, name in found.definitions}
        assert places | {f"!{name}" for name in found.outside} == set(expected.split())

    def test_values_of_a_module_are_all_of_it(self, toy: Path) -> None:
        found = Library(toy).reach([ast.parse("from lib import by_name\nby_name.values()")])
        assert {name for module, name in found.definitions if module == "lib.kinds"} >= {
            "RATE",
            "other",
            "Learner.extra",
        }

    def test_named_modules_count_whole(self, toy: Path) -> None:
        found = Library(toy).reach([], ["lib.b", "lib.deep"])
        assert found.modules == {"lib.b", "lib.late", "lib.deep", "lib.deep.d", "lib.deep.e"}

    @pytest.mark.parametrize(
        ("file", "old", "new", "noticed"),
        [
            ("lib/kinds.py", "RATE = 2", "RATE = 3", True),
            ("lib/kinds.py", "return 4", "return 40", True),
            ("lib/kinds.py", "return 3", "return 30", True),
            ("lib/kinds.py", "size = RATE", "size = RATE\n    more = 1", True),
            ("lib/kinds.py", "class Child(Base):", "class Child(Base, object):", True),
            ("lib/kinds.py", "def helper():", "@cache\ndef helper():", True),
            ("lib/kinds.py", "def helper():", "def helper(n=1):", True),
            ("lib/kinds.py", "def asked(self): return 3", "def __eq__(self, o): return 3", True),
            ("lib/does.py", "note(filled)", "note(used)", True),
            ("lib/kinds.py", "def helper():", "@claim('thm-none')\ndef helper():", False),
            ("lib/kinds.py", "def helper():", "def helper() -> int:", False),
            (
                "lib/kinds.py",
                "def helper(): return 4",
                "def helper():\n    'What it is.'\n    # why\n    return (4)",
                False,
            ),
            ("lib/kinds.py", "return 2", "return 20", False),
            ("lib/kinds.py", "return 5", "return 50", False),
            ("lib/kinds.py", "class Base:", "class Base:\n    'What it is.'", False),
            ("lib/a.py", "A = 1", "A = 5", False),
            ("lib/rates/data/one.toml", "rate = 1", "rate = 3", True),
            ("lib/rates/data/one.toml", "'silent', 'lib.late'", "'lib.late', 'silent'", True),
            ("lib/rates/data/one.toml", "= 1  # why", "=   1", False),
            ("lib/other.toml", "rate = 2", "rate = 3", False),
            ("lib/kinds.py", "def other", "def another(): return 7\ndef other", False),
        ],
    )
    def test_a_change_of_each_kind(self, toy: Path, file: str, old: str, new: str, noticed: bool) -> None:
        words = (
            "from lib.kinds import Child\nfrom lib import does, rates\nChild().asked()\ndoes.used()\nrates.read('one')"
        )
        code = [ast.parse(words)]
        before = Library(toy).reach(code).digest()
        text = (toy / file).read_text()
        assert old in text
        (toy / file).write_text(text.replace(old, new))
        assert (Library(toy).reach(code).digest() != before) is noticed

    def test_words_about_a_parameter_do_not_count_and_its_rule_does(self, toy: Path) -> None:
        def key(annotation: str) -> str:
            (toy / "lib" / "a.py").write_text(f"class A:\n    n: {annotation} = 1\n")
            return Library(toy).reach([ast.parse("from lib import A\nA")]).digest()

        one, other, rule = (
            key(f"Annotated[int, {note}]") for note in ("Whole(1), 'a'", "Whole(1), 'b'", "Whole(2), 'a'")
        )
        assert one == other != rule
        assert key("Literal['a']") != key("Literal['b']")

    def test_docstrings_and_sources_count_where_they_may_be_shown(self, toy: Path) -> None:
        def digests(text: str) -> list[str]:
            (toy / "lib" / "a.py").write_text(text)
            codes = (
                "import lib.a\nlib.a.f",
                "import lib.a\nhelp(lib.a.f)",
                "from lib import docs\ndocs.show()",
                "from lib import docs\ndocs.source()",
                "import lib.a\nlib.a.f.__doc__ = 'set'",
            )
            return [Library(toy).reach([ast.parse(code)]).digest() for code in codes]

        texts = ('def f():\n    """One."""\n', 'def f():\n    """Two."""\n', 'def f():\n    """Two."""  # why\n')
        one, two, three = map(digests, texts)
        assert [a == b for a, b in zip(one, two, strict=True)] == [True, False, False, False, True]
        assert [a == b for a, b in zip(two, three, strict=True)] == [True, True, True, False, True]

    def test_source_counts_of_the_rooms_that_are_shown(self, toy: Path) -> None:
        def key(shown: tuple[str, ...], text: str) -> str:
            (toy / "lib" / "a.py").write_text(text)
            code = ast.parse("from lib import docs, deep\ndocs.source(), deep.D")
            return Library(toy).reach([code], shown=shown).digest()

        for shown, noticed in [(("",), True), (("lib.a.",), True), (("lib.deep.",), False)]:
            assert (key(shown, "A = 1\n") != key(shown, "A = 1  # why\n")) is noticed

    def test_a_tree_is_written_the_same_under_every_python(self) -> None:
        """``ast.dump`` is not: what it leaves out, and the fields of a function, have changed."""
        assert plain(ast.parse("def f(x): return None")) == [
            "Module",
            [
                "body",
                [
                    [
                        "FunctionDef",
                        ["name", "'f'"],
                        ["args", ["arguments", ["args", [["arg", ["arg", "'x'"]]]]]],
                        ["body", [["Return", ["value", ["Constant"]]]]],
                    ]
                ],
            ],
        ]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the keys of this repository are made of."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("dpforest", "benchmarks", "tests/zoo"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "notebooks").mkdir()
    for path in [*(ROOT / "notebooks").glob("*.*"), *(ROOT / name for name in render.LOCKS)]:
        shutil.copy(path, folder / path.relative_to(ROOT))
    return folder


class TestThisRepository:
    """A change renders again what reaches it, and nothing else."""

    @pytest.mark.parametrize(
        ("file", "old", "new", "changed", "unchanged"),
        [
            ("cli.py", "return 2\n\n\ndef _parser", "return 3\n\n\ndef _parser",
             {"ten_lines"}, {"report", "zoo", "edprf", "scores"}),
            ("papers/pearson_tree.py", "    @claim", "    another = 1\n\n    @claim",
             {"pearson_tree", "pearson_tuning", "report"}, {"scores", "edprf", "bench"}),
            ("learners/base.py", "        \"\"\"Learn from the records.", "        self\n        \"\"\"Learn.",
             {"ten_lines", "report", "pearson_tree", "edprf", "bench"}, {"scores", "budgets", "mechanisms"}),
            ("learners/base.py", "        \"\"\"Learn from the records.", "        \"\"\"Learn.",
             set(), {"report", "pearson_tree", "edprf", "bench", "scores"}),
            ("study/plots.py", "\"\"\"", "\"\"\"Other words.  ", set(), {"report", "edprf", "bench", "scores"}),
        ],
    )  # fmt: skip
    def test_a_change_of_a_definition(
        self, copy: Path, file: str, old: str, new: str, changed: set[str], unchanged: set[str]
    ) -> None:
        path, names = copy / "dpforest" / file, sorted(changed | unchanged)
        text = path.read_text()
        assert old in text
        before = [job.key for job in render.plan(names, source=copy / "notebooks")]
        path.write_text(text.replace(old, new, 1))
        after = [job.key for job in render.plan(names, source=copy / "notebooks")]
        path.write_text(text)
        assert {name for name, old, new in zip(names, before, after, strict=True) if old != new} == changed


@pytest.mark.parametrize("name", ["budgets", "inspect"])
def test_what_a_page_executes_is_reached(name: str) -> None:
    """Names are followed without running anything; what is called, a profiler sees."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.executed", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["", ""]


def test_what_is_executed_and_not_reached_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    nb = nbformat.v4.new_notebook()
    nb.cells = [
        nbformat.v4.new_code_cell("import dpforest.budgets, sys"),
        nbformat.v4.new_code_cell("sys.modules['dpforest' + '.budgets'].harmonic(1.0, 2)"),
    ]
    monkeypatch.setattr(executed.render, "read", lambda path: nb)
    assert "dpforest.budgets: harmonic" in executed.unreached("hidden")


class TestRun:
    def test_full_size_skipped_when_finished_and_same_bytes_again(
        self, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "a", "print(n)", "import warnings; warnings.warn('seen')")
        (home / "full.yaml").write_text("a: {n: 20}\n")
        assert render.main([], source=home) == 0
        made = home / "rendered" / "a.ipynb"
        first = made.read_bytes()
        nb = nbformat.read(made, as_version=4)
        assert "20\n" in [output.text for cell in nb.cells for output in cell.get("outputs", [])]
        assert not [word for word in (b"start_time", b"duration", b"ipykernel_", str(home).encode()) if word in first]
        assert nb.metadata.dpforest.provenance.parameters == {"n": 20}
        assert sorted(path.name for path in made.parent.iterdir()) == ["a.ipynb", "times.json"]

        assert render.main([], source=home) == 0
        assert "0 run, 0 shown from the record, 1 already up to date" in capsys.readouterr().out
        assert render.main(["--force"], source=home) == 0
        assert made.read_bytes() == first
        foot = nb.cells[-1].source
        assert "How this page was made" in foot
        assert "`n = 20`" in foot

    def test_failure_is_named_and_kept_and_the_others_finish(
        self, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "bad", "x = 1", "raise ValueError('on purpose')")
        write(home, "good", "print(n)")
        assert render.main([], source=home) == 1
        message = capsys.readouterr().err
        assert "bad.ipynb: cell [3] `raise ValueError('on purpose')` raised ValueError: on purpose" in message
        assert "kept as bad.failed.ipynb" in message
        assert sorted(path.name for path in (home / "rendered").glob("*.ipynb")) == ["bad.failed.ipynb", "good.ipynb"]
        write(home, "bad", "x = 1")
        assert render.main([], source=home) == 0
        assert sorted(path.name for path in (home / "rendered").glob("*.ipynb")) == ["bad.ipynb", "good.ipynb"]

    def test_store_keeps_outputs_in_the_source(self, home: Path) -> None:
        path = write(home, "a", "print(n)")
        (home / "full.yaml").write_text("a: {n: 20}\n")
        assert render.main(["--store"], source=home) == 0
        cells = nbformat.read(path, as_version=4).cells
        assert [cell.id for cell in cells] == ["head", "parameters", "code-0"]
        assert cells[2].outputs[0].text == "1\n"

    def test_rendering_of_a_notebook_that_is_gone_goes_too(self, home: Path) -> None:
        (home / "rendered").mkdir()
        (home / "rendered" / "gone.ipynb").write_text("{}")
        assert render.main([], source=home) == 0
        assert list((home / "rendered").iterdir()) == []


#: Notes that it reads a data set, as `dpforest.datasets.load` does, and prints a number.
SHOWN = (
    "import os\nwith open(os.environ['DPFOREST_READS'], 'a') as reads:\n    print('adult', file=reads)\nprint(0.1 + n)"
)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a notebook, which was run once."""
    home = repository(tmp_path_factory.mktemp("recorded"))
    write(home, "a", SHOWN, datasets=["adult"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "available", lambda name: True)
        assert render.main(["--run"], source=home) == 0
        assert render.main(["--record"], source=home) == 0
    return home / "record"


class TestRecord:
    @pytest.fixture
    def recorded(self, home: Path, record: Path) -> Path:
        """The folder of a notebook that is recorded and not rendered."""
        write(home, "a", SHOWN, datasets=["adult"])
        shutil.copytree(record, home / "record")
        return home

    @pytest.fixture(autouse=True)
    def data(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(render, "available", lambda name: True)

    @pytest.fixture
    def no_data(self, data: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
        request.getfixturevalue("recorded")
        monkeypatch.setattr(render, "available", lambda name: False)

    def test_shown_where_its_key_is_right(self, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
        kept = nbformat.read(recorded / "record" / "a.ipynb", as_version=4)
        assert "made" not in [cell.id for cell in kept.cells]
        assert render.main([], source=recorded) == 0
        assert "0 run, 1 shown from the record" in capsys.readouterr().out
        shown = nbformat.read(recorded / "rendered" / "a.ipynb", as_version=4)
        assert [output.text for output in shown.cells[2].outputs] == ["1.1\n"]
        assert "adult.data sha256 `5b00264637dbfec3…`" in shown.cells[-1].source
        assert render.main([], source=recorded) == 0
        assert "0 run, 0 shown from the record, 1 already up to date" in capsys.readouterr().out

    def test_text_is_the_notebooks_own_and_nothing_runs(
        self, recorded: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for _ in range(2):  # laid out for the first time, and again over what stands
            nb = nbformat.read(recorded / "a.ipynb", as_version=4)
            nb.cells[0].source += " More words."
            nb.cells[2].source += "  # why"
            nbformat.write(nb, recorded / "a.ipynb")
            assert render.main([], source=recorded) == 0
            assert "0 run," in capsys.readouterr().out
            shown = nbformat.read(recorded / "rendered" / "a.ipynb", as_version=4)
            assert [cell.source for cell in shown.cells[:-1]] == [cell.source for cell in nb.cells]
            assert [output.text for output in shown.cells[2].outputs] == ["1.1\n"]
            assert "How this page was made" in shown.cells[-1].source
        assert render.recorded(next(render.plan(source=recorded)))

    def test_run_all_the_same_when_asked(self, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert render.main([], source=recorded) == 0
        shown = (recorded / "rendered" / "a.ipynb").read_text()
        assert render.main(["--run"], source=recorded) == 0
        assert "1 run, 0 shown" in capsys.readouterr().out
        assert (recorded / "rendered" / "a.ipynb").read_text() == shown.replace('"origin": "record"', '"origin": "run"')
        assert render.main(["--run"], source=recorded) == 0
        assert "0 run, 0 shown from the record, 1 already up to date" in capsys.readouterr().out

    @pytest.mark.usefixtures("no_data")
    def test_shown_without_data(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert render.main([], source=home) == 0
        assert "0 run, 1 shown from the record" in capsys.readouterr().out
        assert render.main(["--check"], source=home) == 0
        assert "a: not checked, since adult cannot be had here" in capsys.readouterr().out

    @pytest.mark.usefixtures("no_data")
    def test_stale_and_without_data(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(home, "a", "print(n)", datasets=["adult"])
        assert render.main([], source=home) == 0
        shown = nbformat.read(home / "rendered" / "a.ipynb", as_version=4)
        banner = shown.cells[1].source
        assert "rendering of record" in banner
        assert "code or parameters have **changed since**" in banner
        assert "adult.data sha256 `5b00264637dbfec3…`" in banner
        assert [output.text for output in shown.cells[3].outputs] == ["1.1\n"]
        capsys.readouterr()
        assert render.main([], source=home) == 0
        assert "0 run, 0 shown from the record, 1 already up to date" in capsys.readouterr().out

    def test_stale_with_data_is_run(self, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(recorded, "a", "print(n)", datasets=["adult"])
        assert render.main([], source=recorded) == 0
        assert "1 run, 0 shown" in capsys.readouterr().out
        assert render.main(["--record"], source=recorded) == 0
        assert render.recorded(next(render.plan(source=recorded)))

    def test_no_data_and_no_record(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "a", "print(n)", datasets=["adult"])
        monkeypatch.setattr(render, "available", lambda name: False)
        assert render.main([], source=home) == 1
        assert "a.ipynb needs adult" in capsys.readouterr().err

    def test_shown_and_nothing_run(
        self, recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(render, "run_all", lambda *_: pytest.fail("a notebook was run"))
        page = recorded / "rendered" / "a.ipynb"
        for again in range(2):
            assert render.main(["--show"], source=recorded) == 0
            assert capsys.readouterr().out == ""
            assert nbformat.read(page, as_version=4).metadata.dpforest.origin == "record", again
        write(recorded, "a", "print(n)", datasets=["adult"])
        for again in range(2):
            assert render.main(["--show"], source=recorded) == 0
            assert "a.ipynb: the page shows an earlier run" in capsys.readouterr().out, again
            shown = nbformat.read(page, as_version=4)
            assert "Notebooks were not run" in shown.cells[1].source
            assert [output.text for output in shown.cells[3].outputs] == ["1.1\n"]
        assert not render.finished(next(render.plan(source=recorded)))

    @pytest.mark.parametrize("kept", [None, "", '{"cells": ['])
    def test_shown_small_without_a_record(
        self, recorded: Path, capsys: pytest.CaptureFixture[str], kept: str | None
    ) -> None:
        record = recorded / "record" / "a.ipynb"
        record.unlink()
        if kept is not None:
            record.write_text(kept)
        for again in range(2):
            assert render.main(["--show"], source=recorded) == 0
            assert "a.ipynb: the page shows its small run" in capsys.readouterr().out, again
        assert "at its own small size" in nbformat.read(recorded / "rendered" / "a.ipynb", as_version=4).cells[1].source

    @pytest.mark.usefixtures("no_data")
    def test_what_is_said_for_want_of_data_is_said_once(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(home, "a", "print(n)", datasets=["adult"])
        assert render.main([], source=home) == 0
        assert "a: adult cannot be had" in capsys.readouterr().out
        page = (home / "rendered" / "a.ipynb").read_text()
        assert render.main(["--show"], source=home) == 0
        assert (capsys.readouterr().out, (home / "rendered" / "a.ipynb").read_text()) == ("", page)
        write(home, "a", "print(n + 1)", datasets=["adult"])
        assert render.main(["--show"], source=home) == 0
        assert "a.ipynb: the page shows an earlier run" in capsys.readouterr().out

    def test_a_record_that_is_cut_off_is_not_shown(self, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
        record = recorded / "record" / "a.ipynb"
        record.write_text(record.read_text()[:-200])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(render, "available", lambda name: False)
            assert render.main([], source=recorded) == 1
        (said,) = capsys.readouterr().err.splitlines()
        assert "record/a.ipynb is missing or cut off: take it from git again" in said
        assert not (recorded / "rendered" / "a.ipynb").exists()

    def test_only_a_finished_run_is_kept(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(home, "a", "print(n)")
        assert render.main(["--record"], source=home) == 1
        assert "run it first" in capsys.readouterr().err

    def test_the_same_numbers_stay_the_same_bytes(self, recorded: Path) -> None:
        path = recorded / "record" / "a.ipynb"
        other = path.read_text().replace("1.1\\n", "1.1000000000000003\\n")
        assert other != path.read_text()
        path.write_text(other)
        assert render.main(["--run"], source=recorded) == 0
        assert render.main(["--record"], source=recorded) == 0
        assert path.read_text() == other
        assert render.main(["--record", "--force"], source=recorded) == 0
        assert path.read_text() != other

    def test_files_beside_the_page_are_kept_and_shown(self, home: Path) -> None:
        kept = {"n": 1, "rows": [{"a": [1, 2]}, {"ε": None}], "none": []}
        cells = "import json\nfrom pathlib import Path", f"_ = Path('rendered/b.json').write_text(json.dumps({kept!r}))"
        write(home, "a", *cells, files=["b.json"])
        assert render.main([], source=home) == 0
        assert render.main(["--record"], source=home) == 0
        (home / "rendered" / "b.json").unlink()
        assert render.main([], source=home) == 0
        shown = (home / "rendered" / "b.json").read_text()
        assert json.loads(shown) == kept
        assert '\n{"a": [1, 2]},\n' in shown  # a line for each row
        (home / "record" / "b.json").unlink()
        assert not render.recorded(next(render.plan(source=home)))

    def test_check(self, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert render.main(["--check"], source=recorded) == 0
        assert "a: the same as its rendering of record" in capsys.readouterr().out
        nb = nbformat.read(recorded / "a.ipynb", as_version=4)
        nb.cells.append(nbformat.v4.new_markdown_cell("Plainer words."))
        nbformat.write(nb, recorded / "a.ipynb")
        assert render.main(["--check"], source=recorded) == 0, "a text that has changed is no other run"
        assert "a: the same as its rendering of record" in capsys.readouterr().out
        path = recorded / "record" / "a.ipynb"
        path.write_text(path.read_text().replace("1.1\\n", "1.2\\n"))
        assert render.main(["--check"], source=recorded) == 1
        message = capsys.readouterr().err
        assert "a.ipynb is not its rendering of record: cell 2: stdout: 1.2 is now 1.1" in message
        assert [path.name for path in (recorded / "rendered").glob("*.ipynb")] == ["a.failed.ipynb"]
        write(recorded, "a", "print(n)", datasets=["adult"])
        assert render.main(["--check"], source=recorded) == 1
        assert "missing or stale: run `make record`" in capsys.readouterr().err

    def test_a_few_cheap_ones_take_turns(self, home: Path) -> None:
        for name in "abcde":
            write(home, name, "print(n)", alone=name == "e")
        jobs = list(render.plan(source=home))
        with pytest.raises(render.RenderError, match="no cheap notebook"):
            render.some(jobs, 2, day=0)
        (home / "record").mkdir()
        render.note_times(home / "record", {"a": 1, "b": 1000, "c": 2, "d": 3, "e": 1})
        turns = ["".join(job.name for job in render.some(jobs, 2, day)) for day in range(3)]
        assert turns == ["ac", "da", "cd"]
        assert len(render.some(jobs, 9, day=0)) == 3


class TestBadInput:
    """One sentence that says what to do, exit status 1, and nothing half written."""

    def refused(self, home: Path, capsys: pytest.CaptureFixture[str], words: str, *arguments: str) -> None:
        before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
        assert render.main(list(arguments), source=home) == 1
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("render.py: ")]
        assert re.search(words, line)
        after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
        assert {path for path in after if not path.name.endswith(".failed.ipynb")} == set(before)
        assert all(after[path] == content for path, content in before.items())

    def test_data_that_are_not_declared(self, home: Path) -> None:
        write(home, "a", SHOWN, "raise ValueError")
        (job,) = render.plan(source=home)
        problem, _ = render.run(job)
        assert problem.startswith("a.ipynb: it reads the data set 'adult', which its metadata do not name: add it to ")
        assert not job.target.exists()

    def test_a_rendering_says_which_data_were_read(self, home: Path) -> None:
        write(home, "a", SHOWN, datasets=["adult", "digits"])
        (job,) = render.plan(source=home)
        assert render.run(job)[0] == ""
        assert list(render.read(job.target).metadata.dpforest.provenance.data) == ["adult"]
        assert "- Data: adult (adult.data sha256" in render.read(job.target).cells[-1].source

    def test_a_data_folder_that_is_not_there(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "a", "print(n)")
        monkeypatch.setenv("DPFOREST_DATA", str(home / "elsewhere"))
        self.refused(home, capsys, "elsewhere', which is not a folder: correct it, or unset it")

    def test_a_file_that_is_not_the_one_expected(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (home / "data" / "nursery").mkdir(parents=True)
        (home / "data" / "nursery" / "nursery.data").write_text("usual\n")
        monkeypatch.setenv("DPFOREST_DATA", str(home / "data"))
        write(home, "a", "from dpforest.datasets import load\nload('nursery')", datasets=["nursery"])
        (job,) = render.plan(source=home)
        problem, _ = render.run(job)
        assert re.search(r"raised ChecksumError: .*nursery\.data does not hold .*Delete it, or replace it", problem)
        assert not job.target.exists()

    def test_a_kernel_that_is_not_installed(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def missing(*_: object, **__: object) -> None:
            raise NoSuchKernel("python3")

        write(home, "a", "print(n)")
        (job,) = render.plan(source=home)
        monkeypatch.setattr("papermill.execute_notebook", missing)
        assert render.run(job) == ("a.ipynb: no Jupyter kernel 'python3' is installed: run `make env`", 0.0)
        assert not list((home / "rendered").iterdir())

    @pytest.mark.parametrize("taken", [1, render.STARTS])
    def test_a_port_that_another_process_has_taken(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, taken: int
    ) -> None:
        write(home, "a", "print(n)")
        (job,) = render.plan(source=home)
        find, tries = LocalPortCache.find_available_port, []
        with socket.create_server(("127.0.0.1", 0)) as other:

            def found(self: LocalPortCache, ip: str) -> int:
                tries.append(ip)
                first = len(tries) % 5 == 1  # of the five of each kernel
                return other.getsockname()[1] if first and len(tries) < 5 * taken else find(self, ip)

            monkeypatch.setattr(LocalPortCache, "find_available_port", found)
            problem, _ = render.run(job)
        assert bool(problem) == (taken == render.STARTS)
        assert len(tries) == 5 * min(taken + 1, render.STARTS)
        assert problem.startswith("a.ipynb: RuntimeError: Kernel died before replying") or job.target.exists()

    @pytest.mark.parametrize("left", [0, 1 / 2, 1 - 1e-9])
    def test_a_record_that_is_cut_off(
        self, home: Path, record: Path, left: float, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "a", SHOWN, datasets=["adult"])
        shutil.copytree(record, home / "record")
        text = (home / "record" / "a.ipynb").read_text().strip()
        (home / "record" / "a.ipynb").write_text(text[: int(left * len(text))])
        self.refused(home, capsys, r"record/a\.ipynb is missing or cut off: take it from git again")

    def test_a_record_without_its_file(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(home, "a", "print(n)", files=["b.json"])
        (home / "record").mkdir()
        write(home / "record", "a", "print(n)", key="some", files=["b.json"])
        self.refused(home, capsys, r"record/b\.json is missing or cut off")

    def test_a_notebook_that_is_cut_off(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = write(home, "a", "print(n)")
        path.write_text(path.read_text()[:-9])
        self.refused(home, capsys, r"a\.ipynb cannot be read as a notebook: take it from git again")

    def test_times_that_are_cut_off(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(home, "a", "print(n)")
        (home / "record").mkdir()
        (home / "record" / "times.json").write_text('{"a": 1')
        self.refused(home, capsys, r"record/times\.json is cut off", "--check", "--some", "1")

    def test_a_file_where_the_folder_should_be(
        self, home: Path, record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "a", SHOWN, datasets=["adult"])
        shutil.copytree(record, home / "record")
        (home / "rendered").write_text("")
        self.refused(home, capsys, r"rendered cannot be read or written \(File exists\)")


def test_the_repository_is_found_from_wherever_a_notebook_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (ROOT, ROOT / "notebooks", ROOT / "book" / "_static", tmp_path):
        monkeypatch.chdir(folder)
        assert checkout.checkout() == ROOT  # from another folder, the one whose library this is
    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "site-packages" / "dpforest" / "study" / "checkout.py"))
    with pytest.raises(FileNotFoundError, match="in no clone of it: clone it, and run this from one of its folders"):
        checkout.checkout()
