"""Run the notebooks: at full size for the book, or at their own small size to store their outputs.

Usage (all through the environment's Python; `make book` calls the first)::

    python notebooks/render.py [name ...]            # notebooks/<name>.ipynb -> notebooks/rendered/<name>.ipynb
    python notebooks/render.py --store [name ...]    # run the sources in place and keep their outputs
    python notebooks/render.py --record [name ...]   # promote finished renderings on real data to notebooks/record/

A rendering is made again only if its key has changed: the notebook's code and text, its parameters (full.yaml), the
library's syntax trees, the locked requirements, the Python version, the checksums of the data sets it names.
The same key gives the same bytes, since clocks, durations, paths and random cell ids are taken out.

A notebook says in its metadata what it needs::

    {"dpforest": {"datasets": ["adult"],   # a parameter called `datasets` counts too
                  "alone": true}}          # it measures time, so nothing else may run beside it
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import logging
import multiprocessing
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VERSIONED = ("dpforest", "numpy", "scipy", "pandas", "scikit-learn", "numba")
ONE_THREAD = tuple(f"{word}_NUM_THREADS" for word in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR"))


class RenderError(Exception):
    """A notebook cannot be run as asked: the message says which and why."""


@dataclass(frozen=True)
class Job:
    """One notebook to run: where it comes from, with which parameters, where it goes."""

    name: str
    source: Path
    target: Path
    parameters: dict[str, Any] = field(default_factory=dict)
    datasets: tuple[str, ...] = ()
    alone: bool = False
    key: str = ""
    source_key: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    store: bool = False

    @property
    def part(self) -> Path:
        return self.target.with_name(f"{self.name}.part.ipynb")

    @property
    def failed(self) -> Path:
        return self.target.with_name(f"{self.name}.failed.ipynb")


# --- what a notebook says of itself ----------------------------------------------------------------------------------
def tags(cell: NotebookNode) -> list[str]:
    """Return the cell's tags."""
    return list(cell.metadata.get("tags", []))


def literal_parameters(nb: NotebookNode, name: str) -> dict[str, Any]:
    """Return the values of the cell tagged ``parameters``, which may hold literals only."""
    cells = [cell for cell in nb.cells if cell.cell_type == "code" and "parameters" in tags(cell)]
    if len(cells) > 1:
        raise RenderError(f"{name}.ipynb: {len(cells)} cells are tagged 'parameters'; there can be one")
    values: dict[str, Any] = {}
    for statement in ast.parse(cells[0].source).body if cells else []:
        match statement:
            case ast.Assign(targets=[ast.Name(id=word)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=word), value=ast.expr() as value):
                pass
            case _:
                raise RenderError(f"{name}.ipynb: its parameters cell holds more than `name = literal`")
        try:
            values[word] = ast.literal_eval(value)
        except ValueError:
            raise RenderError(f"{name}.ipynb: parameter {word!r} is not a literal") from None
    return values


def datasets_of(nb: NotebookNode, parameters: dict[str, Any]) -> tuple[str, ...]:
    """Return the data sets that the notebook names in its metadata or in a parameter called ``datasets``."""
    named = list(nb.metadata.get("dpforest", {}).get("datasets", []))
    asked = parameters.get("datasets", [])
    named += [asked] if isinstance(asked, str) else list(asked)
    return tuple(dict.fromkeys(named))


# --- keys ------------------------------------------------------------------------------------------------------------
def digest(thing: Any) -> str:
    """Return the sha256 of a JSON-able thing."""
    return hashlib.sha256(json.dumps(thing, sort_keys=True, default=str).encode()).hexdigest()


def library_digest(package: Path) -> str:
    """Return a digest of every module of the library; comments and layout do not count."""
    modules = sorted(package.rglob("*.py"))
    return digest([[str(path.relative_to(package)), ast.dump(ast.parse(path.read_bytes()))] for path in modules])


def source_digest(nb: NotebookNode, parameters: dict[str, Any]) -> str:
    """Return a digest of what the notebook says and of the values it runs with; stored outputs do not count."""
    said = [[c.cell_type, c.source, tags(c), c.metadata.get("mystnb")] for c in nb.cells]
    return digest([said, nb.metadata.get("dpforest"), parameters])


# --- data ------------------------------------------------------------------------------------------------------------
def available(name: str) -> bool:
    """Tell whether the data set can be had: given, cached or downloaded."""
    from dpforest import datasets

    return datasets.available(name, download=True)


def checksums(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the sha256 of each data set's files, as the library demands them (none for a set inside scikit-learn)."""
    names = tuple(names)
    if not names:
        return {}
    from dpforest import datasets

    if unknown := [name for name in names if name not in datasets.names()]:
        raise RenderError(f"there is no data set {unknown[0]!r}; there are: {', '.join(datasets.names())}")
    return {name: {file.name: file.sha256 for file in datasets._CATALOGUE[name].files} for name in names}


# --- planning --------------------------------------------------------------------------------------------------------
def plan(names: Iterable[str] = (), *, source: Path = HERE, package: Path | None = None) -> Iterator[Job]:
    """Yield one job for each notebook named (all of them where none is), checking names and parameters first."""
    package = package or source.parent / "dpforest"
    full_path = source / "full.yaml"
    full = yaml.safe_load(full_path.read_text(encoding="utf-8")) if full_path.exists() else {}
    found = {path.stem: path for path in sorted(source.glob("*.ipynb")) if len(path.suffixes) == 1}
    wanted = list(names) or list(found)
    for name in [*wanted, *(full or {})]:
        if name not in found:
            raise RenderError(f"there is no notebook {name}.ipynb; there are: {', '.join(found) or 'none'}")
    lock = source.parent / "requirements.txt"
    surroundings = {
        "library": library_digest(package) if package.is_dir() else "",
        "lock": hashlib.sha256(lock.read_bytes()).hexdigest() if lock.exists() else "",
        "python": platform.python_version_tuple()[:2],
    }
    versions = {"python": platform.python_version(), **{word: version(word) for word in VERSIONED}}
    for name in wanted:
        nb = nbformat.read(found[name], as_version=4)
        own = literal_parameters(nb, name)
        asked = (full or {}).get(name) or {}
        if unknown := sorted(set(asked) - set(own)):
            has = ", ".join(own) or "none"
            raise RenderError(f"full.yaml: {name}.ipynb has no parameter {unknown[0]!r}; it has: {has}")
        parameters = {**own, **asked}
        names_of_data = datasets_of(nb, parameters)
        try:
            sums = checksums(names_of_data)
        except RenderError as error:
            raise RenderError(f"{name}.ipynb: {error}") from None
        source_key = source_digest(nb, parameters)
        yield Job(
            name=name,
            source=found[name],
            target=source / "rendered" / f"{name}.ipynb",
            parameters=asked,
            datasets=names_of_data,
            alone=bool(nb.metadata.get("dpforest", {}).get("alone", False)),
            key=digest([source_key, sums, surroundings]),
            source_key=source_key,
            provenance={"parameters": parameters, "versions": versions, "data": sums},
        )


def finished(job: Job) -> bool:
    """Tell whether the rendering that the job would make already stands."""
    if not job.target.exists():
        return False
    try:
        nb = nbformat.read(job.target, as_version=4)
    except Exception:
        return False
    return nb.metadata.get("dpforest", {}).get("key") == job.key


# --- running ---------------------------------------------------------------------------------------------------------
def clean(nb: NotebookNode, job: Job) -> NotebookNode:
    """Take out of a run whatever differs from one run, or one machine, to the next."""
    nb.metadata.pop("papermill", None)
    nb.metadata.pop("widgets", None)
    nb.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nb.metadata.language_info = {"name": "python", "pygments_lexer": "ipython3"}
    for index, cell in enumerate(nb.cells):
        for stale in ("papermill", "execution", "exception"):
            cell.metadata.pop(stale, None)
        if not tags(cell):
            cell.metadata.pop("tags", None)
        if "injected-parameters" in tags(cell):
            cell.id = f"parameters-{index}"
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.text = anonymous(output.text)
            for kind, text in output.get("data", {}).items():
                if kind.startswith("text/") and isinstance(text, str):
                    output.data[kind] = anonymous(text)
            if output.output_type == "error":
                output.evalue = anonymous(output.evalue)
                output.traceback = [anonymous(line) for line in output.traceback]
    return nb


def anonymous(text: str) -> str:
    """Replace a kernel's scratch file and this checkout's folders by words that hold everywhere."""
    text = re.sub(r"\S*ipykernel_\d+[/\\]\d+\.py(:\d+)?", "<cell>", text)
    text = re.sub(r"[^\s'\"(]*[/\\]site-packages[/\\]", "", text)
    return text.replace(f"{ROOT}{os.sep}", "").replace(str(ROOT), ".")


def first_line(text: str) -> str:
    """Return the first line that says something, for a short message; the kept notebook has the rest."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def run(job: Job, ticks: Any = None) -> str:
    """Run one notebook in a fresh kernel; return '' or what went wrong and in which cell."""
    import papermill
    from papermill.engines import NBClientEngine, papermill_engines
    from papermill.exceptions import PapermillExecutionError

    logging.getLogger("papermill").setLevel(logging.ERROR)

    class Ticking(NBClientEngine):
        """papermill's own engine, which also tells the progress bar of every finished cell."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **kwargs: Any) -> Any:
            complete = nb_man.cell_complete

            def completed(*args: Any, **more: Any) -> None:
                complete(*args, **more)
                if ticks is not None:
                    ticks.put(1)

            nb_man.cell_complete = completed
            return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)

    papermill_engines.register("ticking", Ticking)
    job.target.parent.mkdir(parents=True, exist_ok=True)
    job.failed.unlink(missing_ok=True)
    try:
        papermill.execute_notebook(
            job.source,
            job.part,
            parameters=job.parameters,
            engine_name="ticking",
            kernel_name="python3",
            cwd=job.source.parent,
            progress_bar=False,
            extra_arguments=["--log-level=CRITICAL"],  # the kernel's own remarks are not the notebook's
        )
    except Exception as error:
        if job.part.exists():
            write(clean(nbformat.read(job.part, as_version=4), job), job.part)
            job.part.replace(job.failed)
        if isinstance(error, PapermillExecutionError):
            where = f"cell [{error.exec_count}] `{first_line(error.source)}`"
            what = f"{where} raised {error.ename}: {anonymous(first_line(error.evalue))}"
        else:
            what = f"{type(error).__name__}: {anonymous(first_line(str(error)))}"
        kept = f"; kept as {job.failed.name}" if job.failed.exists() else ""
        return f"{job.name}.ipynb: {what}{kept}"
    nb = clean(nbformat.read(job.part, as_version=4), job)
    if not job.store:
        nb.metadata.setdefault("dpforest", {})
        nb.metadata.dpforest.update(key=job.key, source_key=job.source_key, provenance=job.provenance, origin="run")
    write(nb, job.part)
    job.part.replace(job.target)
    return ""


def write(nb: NotebookNode, path: Path) -> None:
    """Write a notebook, always in the same bytes for the same content."""
    path.write_text(nbformat.writes(nb, version=4).rstrip("\n") + "\n", encoding="utf-8")


def run_all(jobs: list[Job], workers: int = 2) -> list[str]:
    """Run the jobs, `workers` at a time and the `alone` ones by themselves; return what went wrong."""
    from tqdm import tqdm

    os.environ.update({word: "1" for word in ONE_THREAD}, PYTHONHASHSEED="0")
    os.environ.pop("MPLBACKEND", None)  # with another back end than their own, kernels show no figure
    if folder := os.environ.get("DPFOREST_DATA"):
        os.environ["DPFOREST_DATA"] = str(Path(folder).resolve())  # kernels start in another folder
    context = multiprocessing.get_context("spawn")
    cells = sum(len(nbformat.read(job.source, as_version=4).cells) + bool(job.parameters) for job in jobs)
    problems: list[str] = []
    with (
        context.Manager() as manager,
        tqdm(
            total=cells, unit="cell", desc="notebooks", mininterval=0.5 if sys.stderr.isatty() else 15, file=sys.stderr
        ) as bar,
    ):
        ticks = manager.Queue()
        together = [job for job in jobs if not job.alone]
        for batch, size in [(together, workers), *(([job], 1) for job in jobs if job.alone)]:
            if not batch:
                continue
            with ProcessPoolExecutor(size, mp_context=context) as pool:
                running: dict[Future[str], Job] = {pool.submit(run, job, ticks): job for job in batch}
                while running:
                    done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                    while not ticks.empty():
                        bar.update(ticks.get())
                    for future in done:
                        job = running.pop(future)
                        error = future.exception()
                        problem = f"{job.name}.ipynb: {type(error).__name__}: {error}" if error else future.result()
                        if problem:
                            problems.append(problem)
                        bar.set_postfix_str(job.name)
    return problems


# --- records ---------------------------------------------------------------------------------------------------------
def use_record(job: Job, missing: list[str]) -> None:
    """Show the stored rendering of a notebook whose data cannot be had, and say so at its head."""
    record = job.source.parent / "record" / f"{job.name}.ipynb"
    if not record.exists():
        raise RenderError(
            f"{job.name}.ipynb needs {', '.join(missing)}, which cannot be had here (set DPFOREST_DATA or go online), "
            f"and there is no record/{job.name}.ipynb to show instead"
        )
    nb = nbformat.read(record, as_version=4)
    kept = nb.metadata.dpforest
    made = kept.provenance
    fresh = "have not changed since" if kept.source_key == job.source_key else "**have changed since**"
    lines = [
        ":::{admonition} A rendering of record",
        f"The data ({', '.join(missing)}) could not be had where this book was built, so this page shows an "
        f"earlier run. The notebook's text, code and parameters {fresh}.",
        "",
        f"- Versions: {', '.join(f'{word} {number}' for word, number in made.versions.items())}",
        f"- Parameters: {', '.join(f'`{word} = {value!r}`' for word, value in plain(made.parameters).items())}",
        *(f"- Data: {name} ({short(sums)})" for name, sums in plain(made.data).items()),
        ":::",
    ]
    banner = nbformat.v4.new_markdown_cell("\n".join(lines), id="record")
    nb.cells.insert(1, banner)
    nb.metadata.dpforest.origin = "record"
    nb.metadata.dpforest.key = record_key(job)
    job.target.parent.mkdir(parents=True, exist_ok=True)
    write(nb, job.part)
    job.part.replace(job.target)


def record_key(job: Job) -> str:
    """Return the key of a rendering that was copied from the record."""
    record = job.source.parent / "record" / f"{job.name}.ipynb"
    return digest(["record", job.source_key, record.read_text(encoding="utf-8") if record.exists() else ""])


def plain(node: Any) -> Any:
    """Turn notebook nodes into plain dictionaries and lists."""
    return json.loads(json.dumps(node))


def short(sums: dict[str, str]) -> str:
    """Write checksums for reading: the first 16 digits of each."""
    return ", ".join(f"{file} sha256 `{value[:16]}…`" for file, value in sums.items()) or "inside scikit-learn"


def promote(jobs: list[Job]) -> list[str]:
    """Copy finished renderings on real data into the record; return what could not be copied."""
    problems = []
    for job in jobs:
        if not job.datasets:
            continue
        if not finished(job):
            problems.append(f"{job.name}.ipynb: no finished rendering of its present code and parameters; run it first")
            continue
        nb = nbformat.read(job.target, as_version=4)
        record = job.source.parent / "record" / f"{job.name}.ipynb"
        record.parent.mkdir(exist_ok=True)
        write(nb, record)
        print(f"record/{job.name}.ipynb")
    return problems


# --- command line ----------------------------------------------------------------------------------------------------
def main(arguments: list[str] | None = None, source: Path = HERE) -> int:
    """Do what the command line asks; return the exit code."""
    parser = argparse.ArgumentParser(prog="render.py", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", help="notebooks by name, without .ipynb (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks run side by side (default: 2)")
    parser.add_argument("--force", action="store_true", help="run finished ones again")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--store", action="store_true", help="run the sources in place and keep their outputs")
    mode.add_argument("--record", action="store_true", help="promote finished renderings to record/")
    options = parser.parse_args(arguments)
    try:
        jobs = list(plan(options.names, source=source))
        if options.record:
            problems = promote(jobs)
        elif options.store:
            here = [Job(name=j.name, source=j.source, target=j.source, alone=j.alone, store=True) for j in jobs]
            problems = run_all(here, options.jobs)
        else:
            problems = render(jobs, workers=options.jobs, force=options.force)
            if not options.names:
                forget(source, {job.name for job in jobs})
    except RenderError as error:
        problems = [str(error)]
    for problem in problems:
        print(f"render.py: {problem}", file=sys.stderr)
    return 1 if problems else 0


def render(jobs: list[Job], *, workers: int = 2, force: bool = False) -> list[str]:
    """Bring the renderings up to date; return what went wrong."""
    problems: list[str] = []
    to_run: list[Job] = []
    skipped = 0
    for job in jobs:
        missing = [] if finished(job) else [name for name in job.datasets if not available(name)]
        if missing:
            job_by_record = Job(**{**vars(job), "key": record_key(job)})
            if force or not finished(job_by_record):
                try:
                    use_record(job, missing)
                    print(f"{job.name}: {', '.join(missing)} cannot be had; showing record/{job.name}.ipynb")
                except RenderError as error:
                    problems.append(str(error))
            else:
                skipped += 1
        elif force or not finished(job):
            to_run.append(job)
        else:
            skipped += 1
    if to_run:
        problems += run_all(to_run, workers)
    print(f"notebooks: {len(to_run)} run, {skipped} already up to date, {len(problems)} with problems")
    return problems


def forget(source: Path, names: set[str]) -> None:
    """Remove renderings whose notebook is gone."""
    for path in (source / "rendered").glob("*.ipynb"):
        if path.name.split(".")[0] not in names:
            path.unlink()


if __name__ == "__main__":
    sys.exit(main())
