"""The notebook renderer: keys, parameters, failures kept and named, same run same bytes, renderings of record."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import render  # conftest.py puts notebooks/ on the path

META = {"display_name": "Python 3", "language": "python", "name": "python3"}


def write(folder: Path, name: str, *code: str, parameters: str = "n = 1", **metadata: object) -> Path:
    """Write a notebook whose first code cell holds the parameters."""
    nb = nbformat.v4.new_notebook(metadata={"kernelspec": META, "dpforest": metadata})
    nb.cells = [
        nbformat.v4.new_markdown_cell("# A question?\n\nExhibits: `thm-none`", id="head"),
        nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}, id="parameters"),
        *(nbformat.v4.new_code_cell(source, id=f"code-{index}") for index, source in enumerate(code)),
    ]
    path = folder / f"{name}.ipynb"
    nbformat.write(nb, path)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A small repository: a library of one module, and a folder of notebooks."""
    (tmp_path / "dpforest").mkdir()
    (tmp_path / "dpforest" / "one.py").write_text("ONE = 1\n")
    (tmp_path / "requirements.txt").write_text("# empty\n")
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks"


def key(home: Path, name: str = "a") -> str:
    (job,) = render.plan([name], source=home)
    return job.key


class TestPlan:
    def test_key_follows_what_a_result_depends_on(self, home: Path) -> None:
        write(home, "a", "print(n)")
        keys = [key(home)]
        (home / "full.yaml").write_text("a: {n: 2}\n")
        keys.append(key(home))
        write(home, "a", "print(n + 1)")
        keys.append(key(home))
        (home.parent / "dpforest" / "one.py").write_text("ONE = 2\n")
        keys.append(key(home))
        (home.parent / "requirements.txt").write_text("# other\n")
        keys.append(key(home))
        write(home, "a", "print(n + 1)", datasets=["adult"])
        keys.append(key(home))
        assert len(set(keys)) == len(keys)

    def test_key_ignores_stored_outputs_and_the_layout_of_the_library(self, home: Path) -> None:
        path = write(home, "a", "print(n)")
        before = key(home)
        nb = nbformat.read(path, as_version=4)
        nb.cells[2].outputs = [nbformat.v4.new_output("stream", text="1\n")]
        nbformat.write(nb, path)
        (home.parent / "dpforest" / "one.py").write_text("# why\nONE = (\n    1\n)\n")
        assert key(home) == before

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
        assert [path.name for path in made.parent.iterdir()] == ["a.ipynb"]

        assert render.main([], source=home) == 0
        assert "0 run, 1 already up to date" in capsys.readouterr().out
        assert render.main(["--force"], source=home) == 0
        assert made.read_bytes() == first

    def test_failure_is_named_and_kept_and_the_others_finish(
        self, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "bad", "x = 1", "raise ValueError('on purpose')")
        write(home, "good", "print(n)")
        assert render.main([], source=home) == 1
        message = capsys.readouterr().err
        assert "bad.ipynb: cell [3] `raise ValueError('on purpose')` raised ValueError: on purpose" in message
        assert "kept as bad.failed.ipynb" in message
        assert sorted(path.name for path in (home / "rendered").iterdir()) == ["bad.failed.ipynb", "good.ipynb"]
        write(home, "bad", "x = 1")
        assert render.main([], source=home) == 0
        assert sorted(path.name for path in (home / "rendered").iterdir()) == ["bad.ipynb", "good.ipynb"]

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


class TestRecord:
    def test_shown_with_its_provenance_where_the_data_cannot_be_had(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "a", "print(n)", datasets=["adult"])
        monkeypatch.setattr(render, "available", lambda name: True)
        assert render.main([], source=home) == 0
        assert render.main(["--record"], source=home) == 0
        (home / "rendered" / "a.ipynb").unlink()
        monkeypatch.setattr(render, "available", lambda name: False)
        assert render.main([], source=home) == 0
        shown = nbformat.read(home / "rendered" / "a.ipynb", as_version=4)
        banner = shown.cells[1].source
        assert "rendering of record" in banner
        assert "have not changed since" in banner
        assert "scikit-learn" in banner
        assert "adult.data sha256 `5b00264637dbfec3…`" in banner
        assert [output.text for output in shown.cells[3].outputs] == ["1\n"]

        capsys.readouterr()
        assert render.main([], source=home) == 0
        assert "0 run, 1 already up to date" in capsys.readouterr().out

        write(home, "a", "print(n + 1)", datasets=["adult"])
        assert render.main([], source=home) == 0
        assert "**have changed since**" in nbformat.read(home / "rendered" / "a.ipynb", as_version=4).cells[1].source

    def test_no_data_and_no_record(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(home, "a", "print(n)", datasets=["adult"])
        monkeypatch.setattr(render, "available", lambda name: False)
        assert render.main([], source=home) == 1
        assert "a.ipynb needs adult" in capsys.readouterr().err

    def test_only_a_finished_rendering_is_promoted(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(home, "a", "print(n)", datasets=["adult"])
        assert render.main(["--record"], source=home) == 1
        assert "run it first" in capsys.readouterr().err
