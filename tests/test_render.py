"""The notebook renderer: keys, what they reach, failures kept and named, same run same bytes, renderings of record."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import render  # conftest.py puts notebooks/ on the path
from jupyter_client.kernelspec import NoSuchKernel
from reach import Library, plain

from dpforest.study import checkout

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


class TestPlan:
    def test_key_follows_what_a_result_depends_on(self, home: Path) -> None:
        write(home, "a", "print(n)")
        keys = [key(home)]
        (home / "full.yaml").write_text("a: {n: 2}\n")
        keys.append(key(home))
        write(home, "a", "import numpy", "from dpforest.one import ONE", "print(n + ONE)")
        keys.append(key(home))
        (home.parent / "dpforest" / "one.py").write_text("ONE = 2\n")
        keys.append(key(home))
        (home.parent / "requirements.txt").write_text("numpy==2.0 \\\n    --hash=sha256:0\nruff==1.0 \\\n")
        keys.append(key(home))
        write(home, "a", "import numpy", "from dpforest.one import ONE", "print(n + ONE)", datasets=["adult"])
        keys.append(key(home))
        assert len(set(keys)) == len(keys)

    def test_key_ignores_what_no_result_depends_on(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(home, "a", "from dpforest.one import ONE", "import numpy", "print(n)")
        (home.parent / "requirements.txt").write_text("numpy==2.0 \\\n    --hash=sha256:0\nruff==1.0 \\\n")
        before = key(home)
        nb = nbformat.read(path, as_version=4)
        nb.cells[2].outputs = [nbformat.v4.new_output("stream", text="1\n")]
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
    "lib/a.py": "A = 1\n",
    "lib/b.py": "import lib.a\ndef B():\n    from .late import L\n",
    "lib/c.py": "import scipy.linalg\n",
    "lib/late.py": "L = 1\n",
    "lib/typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lib.late import L\n"
                    "else:\n    import lib.a\n",
    "lib/docs.py": "import lib.a\nprint(lib.a.__doc__)\n",
    "lib/star.py": "from lib.deep import *\n",
    "lib/deep/__init__.py": "import sklearn\nfrom .d import D\nfrom . import e\nfrom ..late import L\nTABLE = (e,)\n",
    "lib/deep/d.py": "D = 1\n",
    "lib/lazy/__init__.py": "from typing import TYPE_CHECKING\nfrom lib import c, late\nfrom lib.lazy import names\n"
                            "if TYPE_CHECKING:\n    from lib.a import A\n    from lib.b import B\n"
                            "__all__ = [*names.ALL]\ndef __getattr__(name):\n    return find(names.ALL[name])\n"
                            "late.hook(lambda: __getattr__('B'))\n",
    "lib/lazy/names.py": "ALL = {'A': 'a', 'B': 'b'}\n",
    "lib/deep/e.py": "E = 1\n",
}  # fmt: skip


@pytest.fixture
def reached(tmp_path: Path) -> Callable[..., set[str]]:
    """What code reaches in a small library: its modules, without the package they are all in."""
    for name, text in TOY.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)

    def names(code: str, *named: str) -> set[str]:
        found = Library(tmp_path).reach([ast.parse(code)], named)
        return {name.removeprefix("lib.") for name in found.modules} - {"lib"} | {f"!{name}" for name in found.outside}

    return names


class TestReach:
    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            ("from lib import A", "a"),
            ("from lib import A as X\nprint(X.y)", "a"),
            ("from lib import V", ""),
            ("from lib import B", "a b late"),
            ("def f():\n    from lib import A", "a"),
            ("try:\n    import lib.a\nexcept ImportError:\n    pass", "a"),
            ("import lib.a", "a"),
            ("import lib.a as x", "a"),
            ("from lib import c", "c !scipy"),
            ("from lib import c\nc.f", "c !scipy"),
            ("import lib\nlib.A", "a"),
            ("import lib\nlib.c.f", "c !scipy"),
            ("import lib\nlib.deep.d.D", "deep deep.d deep.e"),
            ("import lib\nf(lib)", "a b c deep deep.d deep.e late !scipy"),
            ("from lib import D", "deep deep.d deep.e"),
            ("from lib.deep import e", "deep deep.e"),
            ("from lib.deep import e\ne.E", "deep deep.e"),
            ("from lib.deep import TABLE", "deep deep.e"),
            ("from lib.deep.d import D", "deep deep.d deep.e"),
            ("from lib.deep import *", "deep deep.d deep.e late !sklearn"),
            ("from lib import star", "star deep deep.d deep.e late !sklearn"),
            ("from lib import typed", "typed a !typing"),
            ("from lib.lazy import A", "lazy late a"),
            ("from lib import lazy\nlazy.B", "lazy late a b"),
            ("from lib.lazy import names", "lazy late lazy.names"),
            ("from lib.lazy import *", "lazy late lazy.names a b c !scipy !typing"),
            ("import numpy.linalg, lib.a", "a !numpy"),
        ],
    )
    def test_no_more_and_no_less(self, reached: Callable[..., set[str]], code: str, expected: str) -> None:
        assert reached(code) == set(expected.split())

    def test_named_modules(self, reached: Callable[..., set[str]]) -> None:
        assert reached("", "lib.b") == {"a", "b", "late"}
        assert reached("", "lib.deep") == {"deep", "deep.d", "deep.e", "late", "!sklearn"}

    def test_docstrings_count_where_they_may_be_shown(self, tmp_path: Path, reached: Callable[..., set[str]]) -> None:
        def digests(text: str) -> list[str]:
            (tmp_path / "lib" / "a.py").write_text(text)
            codes = ("import lib.a", "import lib.a\nhelp(lib.a)", "import lib.docs")
            return [Library(tmp_path).reach([ast.parse(code)]).digest() for code in codes]

        before, after = digests('"""One."""\nA = 1\n'), digests('"""Two."""\nA = 1\n')
        assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, False]

    def test_a_tree_is_written_the_same_under_every_python(self) -> None:
        """``ast.dump`` is not: what it leaves out, and the fields of a function, have changed."""
        assert plain(ast.parse("def f(x): return None")) == [
            "Module",
            ["body", [["FunctionDef", ["name", "'f'"],
                       ["args", ["arguments", ["args", [["arg", ["arg", "'x'"]]]]]],
                       ["body", [["Return", ["value", ["Constant"]]]]]]]],
        ]  # fmt: skip


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
        ("module", "changed", "unchanged"),
        [
            ("cli.py", {"ten_lines"}, {"report", "zoo", "edprf", "scores"}),
            ("papers/pearson_tree.py", {"pearson_tree", "pearson_tuning", "report"}, {"scores", "edprf", "bench"}),
            ("privacy/vocabulary.py", {"ten_lines", "report", "pearson_tree", "scores", "edprf", "bench"}, set()),
        ],
    )
    def test_a_line_more_in_a_module(self, copy: Path, module: str, changed: set[str], unchanged: set[str]) -> None:
        path, names = copy / "dpforest" / module, sorted(changed | unchanged)
        text = path.read_text()
        before = [job.key for job in render.plan(names, source=copy / "notebooks")]
        path.write_text(text + "_ANOTHER = 1\n")
        after = [job.key for job in render.plan(names, source=copy / "notebooks")]
        path.write_text(text)
        assert {name for name, old, new in zip(names, before, after, strict=True) if old != new} == changed


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
        assert "text, code or parameters have **changed since**" in banner
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
        write(home, "a", "from pathlib import Path", "_ = Path('rendered/b.json').write_text('{}')", files=["b.json"])
        assert render.main([], source=home) == 0
        assert render.main(["--record"], source=home) == 0
        (home / "rendered" / "b.json").unlink()
        assert render.main([], source=home) == 0
        assert (home / "rendered" / "b.json").read_text() == "{}"
        (home / "record" / "b.json").unlink()
        assert not render.recorded(next(render.plan(source=home)))

    def test_check(self, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert render.main(["--check"], source=recorded) == 0
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
