"""Run the notebooks: at full size for the book, or at their own small size to store their outputs.

Usage (all through the environment's Python; the Makefile's targets call these)::

    python notebooks/render.py [name ...]            # what the book shows: the record, or a run where it is stale
    python notebooks/render.py --show [name ...]     # run nothing: a page that is stale says so
    python notebooks/render.py --run [name ...]      # run all at full size, whatever is recorded
    python notebooks/render.py --record [name ...]   # keep finished runs as renderings of record, in record/
    python notebooks/render.py --check [name ...]    # run again, and compare with the record as numbers
    python notebooks/render.py --check --some 3      # the same for a few cheap pages, others each day
    python notebooks/render.py --rekey [name ...]    # keep records whose pages show the same: see carry.py
    python notebooks/render.py --store [name ...]    # run the sources in place and keep their outputs

All pages stand in ``rendered/``; interrupted, the next call goes on.  A rendering has a key: the notebook's code and
parameters (full.yaml), what it reaches (see `reach`: definitions of this repository, locked versions of packages) and
the checksums of its data.  A rendering of record with the right key is shown, with the notebook's text as it is now.
The Python version and the machine are not in the key, for the numbers do not depend on them.  Clocks, durations, paths
and random cell ids are taken out of a rendering, so that the same run gives the same bytes.

A notebook says in its metadata what it needs::

    {"dpforest": {"datasets": ["adult"],        # the data sets that it names itself
                  "data_parameters": ["tuned"], # parameters that name data sets; one called `datasets` always does
                  "reaches": ["dpforest.cli"],  # modules that it runs by name, which its imports do not show
                  "shows": ["dpforest.papers."],  # rooms whose source it shows, where it asks for sources at all
                  "files": ["report.json"],     # what else it writes into rendered/, kept with the record
                  "alone": true}}               # it measures time, so nothing else may run beside it

It is held to that: a run that reads a data set which is not named there fails, and a rendering says which it read.
"""

from __future__ import annotations

import argparse
import ast
import json
import logging
import multiprocessing
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import compare
import nbformat
import yaml
from nbformat import NotebookNode
from reach import Library, Reach, digest, read_lock
from reach import plain as syntax

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LOCKS = ("requirements.txt", "requirements-spark.txt")
#: A page counts as cheap, and is run again by ``--check --some``, if its run took no more seconds than this.
CHEAP = 60
CARRIED = (
    "- Rendered at commit `{rendered}`, carried forward to `{to}`: since then what is released is the same bits, and "
    "the notebook shows the same at its small size, as stored and run again"
)
#: Seconds that a kernel may take to start, on a machine that does much else: only one that hangs takes longer.
PATIENCE = 3600
#: How often a kernel is started at most: another process may take a port that was free when it was chosen.
STARTS = 3
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
    files: tuple[str, ...] = ()
    alone: bool = False
    key: str = ""
    source_key: str = ""
    text: str = ""
    reached: frozenset[str] = frozenset()  # names of definitions
    provenance: dict[str, Any] = field(default_factory=dict)
    store: bool = False

    @property
    def record(self) -> Path:
        return self.source.parent / "record" / f"{self.name}.ipynb"

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
    """Return the data sets that the notebook names in its metadata or in its parameters, which the metadata tell."""
    said = nb.metadata.get("dpforest", {})
    named = list(said.get("datasets", []))
    for word in ("datasets", *said.get("data_parameters", [])):
        if word != "datasets" and word not in parameters:
            raise RenderError(f"its metadata say that data sets are named by {word!r}, which is no parameter")
        asked = parameters.get(word, [])
        named += [asked] if isinstance(asked, str) else list(asked)
    return tuple(dict.fromkeys(named))


def undeclared(reads: Path, declared: Iterable[str]) -> str:
    """Return what is wrong with the data sets that a run noted in a file ('' where all were declared)."""
    if odd := [name for name in names_read(reads) if name not in declared]:
        return (
            f"it reads the data set {odd[0]!r}, which its metadata do not name: add it to dpforest.datasets, or the "
            "parameter that names it to dpforest.data_parameters"
        )
    return ""


def names_read(reads: Path) -> list[str]:
    """Return the data sets that a run noted in a file, as `dpforest.datasets.load` does for DPFOREST_READS."""
    return sorted(set(reads.read_text(encoding="utf-8").split())) if reads.exists() else []


# --- keys ------------------------------------------------------------------------------------------------------------
def reach_of(nb: NotebookNode, name: str, library: Library) -> Reach:
    """Return what the notebook's code reaches, with what its metadata names."""
    code = []
    for number, cell in enumerate(nb.cells):
        if cell.cell_type == "code":
            try:
                code.append(ast.parse(cell.source))
            except SyntaxError as error:
                raise RenderError(f"{name}.ipynb: cell {number} is not plain Python: {error.msg}") from None
    try:
        said = nb.metadata.get("dpforest", {})
        return library.reach(code, said.get("reaches", []), said.get("shows", [""]))
    except ValueError as error:
        raise RenderError(f"{name}.ipynb: {error}") from None


def source_digest(nb: NotebookNode, parameters: dict[str, Any]) -> str:
    """Return a digest of the code and of the values it runs with; text, comments and stored outputs do not count."""
    code = [syntax(ast.parse(cell.source)) for cell in nb.cells if cell.cell_type == "code"]
    return digest([code, parameters])


def text_digest(nb: NotebookNode) -> str:
    """Return a digest of all that a page shows of its notebook beside what was run."""
    return digest([[c.cell_type, c.source, tags(c), c.metadata.get("mystnb")] for c in nb.cells])


def as_now(record: NotebookNode, source: NotebookNode) -> NotebookNode:
    """Return what was run, with the text, the layout and the metadata that the notebook has now."""
    run = [cell for cell in record.cells if cell.cell_type == "code"]
    injected = [cell for cell in run if "injected-parameters" in tags(cell)]
    left = iter([cell for cell in run if "injected-parameters" not in tags(cell)])
    cells = []
    for cell in source.cells:
        if cell.cell_type == "code":
            ran = next(left)
            cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
        cells.append(cell)
        if "parameters" in tags(cell):
            cells += injected
    made_of = {**source.metadata.get("dpforest", {}), **record.metadata.dpforest}
    record.cells, record.metadata.dpforest = cells, NotebookNode(made_of)
    return record


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


#: What asks for every data set, and not for one by its name.
EVERY_SET = {("dpforest.datasets", "names"), ("dpforest.datasets.taxonomies", "TAXONOMIES")}


def without_unread(reach: Reach, names: Iterable[str]) -> Reach:
    """Return what is reached without the schemas of data sets that are not named, unless the code asks for every set.

    The code of the library reads all schemas; a run is refused if it asks for a set that is not named.
    """
    schemas = {module for module in reach.modules if module.startswith("dpforest.datasets.schemas.")}
    if not schemas or EVERY_SET & reach.definitions.keys():
        return reach
    from dpforest import datasets

    unread = schemas - {f"dpforest.datasets.schemas.{datasets._CATALOGUE[name].source}" for name in names}
    kept = {place: each for place, each in reach.definitions.items() if place[0] not in unread}
    sources = {module: text for module, text in reach.sources.items() if module not in unread}
    return replace(reach, definitions=kept, sources=sources)


# --- planning --------------------------------------------------------------------------------------------------------
def plan(names: Iterable[str] = (), *, source: Path = HERE) -> Iterator[Job]:
    """Yield one job for each notebook named (all of them where none is), checking names and parameters first."""
    full_path = source / "full.yaml"
    full = yaml.safe_load(full_path.read_text(encoding="utf-8")) if full_path.exists() else {}
    found = {path.stem: path for path in sorted(source.glob("*.ipynb")) if len(path.suffixes) == 1}
    wanted = list(names) or list(found)
    for name in [*wanted, *(full or {})]:
        if name not in found:
            raise RenderError(f"there is no notebook {name}.ipynb; there are: {', '.join(found) or 'none'}")
    library = Library(source.parent, source.parent / "tests", source)
    lock = read_lock(*(source.parent / name for name in LOCKS))
    for name in wanted:
        nb = read(found[name])  # without validation, which takes seconds
        if nb is None:
            raise RenderError(f"{name}.ipynb cannot be read as a notebook: take it from git again, or correct its JSON")
        own = literal_parameters(nb, name)
        asked = (full or {}).get(name) or {}
        if unknown := sorted(set(asked) - set(own)):
            has = ", ".join(own) or "none"
            raise RenderError(f"full.yaml: {name}.ipynb has no parameter {unknown[0]!r}; it has: {has}")
        parameters = {**own, **asked}
        try:
            names_of_data = datasets_of(nb, parameters)
            sums = checksums(names_of_data)
        except RenderError as error:
            raise RenderError(f"{name}.ipynb: {error}") from None
        reach = without_unread(reach_of(nb, name, library), names_of_data)
        locked = reach.locked(lock)
        source_key = source_digest(nb, parameters)
        yield Job(
            name=name,
            source=found[name],
            target=source / "rendered" / f"{name}.ipynb",
            parameters=asked,
            datasets=names_of_data,
            files=tuple(nb.metadata.get("dpforest", {}).get("files", [])),
            alone=bool(nb.metadata.get("dpforest", {}).get("alone", False)),
            key=digest([source_key, sums, reach.digest(), locked]),
            source_key=source_key,
            text=text_digest(nb),
            reached=frozenset(name for _, name in reach.definitions),
            provenance={
                "machine": platform.machine(),
                "parameters": parameters,
                "versions": {"python": platform.python_version(), **installed(locked)},
                "data": sums,
            },
        )


def installed(names: Iterable[str]) -> dict[str, str]:
    """Return the versions that stand here of the packages named; one that is missing is an optional extra."""
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def read(path: Path) -> NotebookNode | None:
    """Return the notebook at the path, or None where there is none that can be read."""
    try:
        return nbformat.v4.reads(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, AttributeError):
        return None


def key_of(path: Path) -> str:
    """Return the key of a rendering ('' for none)."""
    nb = read(path) if path.exists() else None
    return nb.metadata.get("dpforest", {}).get("key", "") if nb else ""


def finished(job: Job, *, here: bool = False) -> bool:
    """Tell whether the rendering that the job would make already stands (and was run here)."""
    nb = read(job.target) if job.target.exists() else None
    said = nb.metadata.get("dpforest", {}) if nb else {}
    files = all((job.target.parent / name).exists() for name in job.files)
    return files and said.get("key") == job.key and (said.get("origin") == "run" or not here)


def settled(job: Job, *, here: bool = False) -> bool:
    """Give a finished rendering the text that its notebook has now; tell whether there is one."""
    if not finished(job, here=here):
        return False
    nb = nbformat.read(job.target, as_version=4)
    if nb.metadata.dpforest.get("text") != job.text:
        lay_out(job, nb)
    return True


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
    # a pattern begins at the head of a word alone: tried at every letter of a long one, it takes the square of its time
    text = re.sub(r"(?<!\S)\S*ipykernel_\d+[/\\]\d+\.py(:\d+)?", "<cell>", text)
    text = re.sub(r"(?<![^\s'\"(])[^\s'\"(]*[/\\]site-packages[/\\]", "", text)
    return text.replace(f"{ROOT}{os.sep}", "").replace(str(ROOT), ".")


def first_line(text: str) -> str:
    """Return the first line that says something, for a short message; the kept notebook has the rest."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def run(job: Job, ticks: Any = None) -> tuple[str, float]:
    """Run one notebook in a fresh kernel; return '' or what went wrong and in which cell, and the seconds it took."""
    with tempfile.TemporaryDirectory() as scratch:
        reads = Path(scratch) / "reads"
        os.environ["DPFOREST_READS"] = str(reads)
        try:
            return run_noting(job, ticks, reads)
        finally:
            del os.environ["DPFOREST_READS"]


def _execute(job: Job) -> None:
    """Run a job's notebook by papermill, in a kernel that is started again where it ends before its first answer."""
    import papermill

    for left in reversed(range(STARTS)):
        try:
            papermill.execute_notebook(
                job.source,
                job.part,
                parameters=job.parameters,
                engine_name="ticking",
                kernel_name="python3",
                cwd=job.source.parent,
                progress_bar=False,
                start_timeout=PATIENCE,
                iopub_timeout=PATIENCE,  # after which outputs would be lost
                extra_arguments=["--log-level=CRITICAL"],  # the kernel's own remarks are not the notebook's
            )
            return
        except RuntimeError as error:  # no cell has run, so nothing is done twice
            if not left or "died before replying" not in str(error):
                raise


def run_noting(job: Job, ticks: Any, reads: Path) -> tuple[str, float]:
    """Run one notebook, whose kernel notes in a file which data sets it reads."""
    from jupyter_client.kernelspec import NoSuchKernel
    from papermill.engines import NBClientEngine, papermill_engines
    from papermill.exceptions import PapermillExecutionError

    logging.getLogger("papermill").setLevel(logging.ERROR)
    nb = nbformat.read(job.source, as_version=4)
    declared = datasets_of(nb, {**literal_parameters(nb, job.name), **job.parameters})

    class Ticking(NBClientEngine):
        """papermill's own engine, which also tells the progress bar of every finished cell, and looks at its reads."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **kwargs: Any) -> Any:
            complete = nb_man.cell_complete

            def completed(*args: Any, **more: Any) -> None:
                complete(*args, **more)
                if ticks is not None:
                    ticks.put(1)
                if problem := undeclared(reads, declared):
                    raise RenderError(problem)

            nb_man.cell_complete = completed
            return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)

    papermill_engines.register("ticking", Ticking)
    job.target.parent.mkdir(parents=True, exist_ok=True)
    if not job.store:
        (job.source.parent / "rendered").mkdir(exist_ok=True)  # where `files` go
    job.failed.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        _execute(job)
    except NoSuchKernel as error:
        job.part.unlink(missing_ok=True)  # nothing was run that could be looked at
        return f"{job.name}.ipynb: no Jupyter kernel {error.name!r} is installed: run `make env`", 0.0
    except Exception as error:
        if job.part.exists():
            write(clean(nbformat.read(job.part, as_version=4), job), job.part)
            job.part.replace(job.failed)
        if isinstance(error, PapermillExecutionError):
            where = f"cell [{error.exec_count}] `{first_line(error.source)}`"
            what = f"{where} raised {error.ename}: {anonymous(first_line(error.evalue))}"
        else:
            kind = "" if isinstance(error, RenderError) else f"{type(error).__name__}: "
            what = f"{kind}{anonymous(first_line(str(error)))}"
        kept = f"; kept as {job.failed.name}" if job.failed.exists() else ""
        return f"{job.name}.ipynb: {what}{kept}", 0.0
    seconds = time.monotonic() - start
    nb = clean(nbformat.read(job.part, as_version=4), job)
    if not job.store:
        nb.metadata.dpforest = {**nb.metadata.get("dpforest", {})}
        data = {name: sums for name, sums in job.provenance["data"].items() if name in names_read(reads)}
        provenance = {**job.provenance, "data": data}
        nb.metadata.dpforest.update(key=job.key, source_key=job.source_key, provenance=provenance, origin="run")
        nb.metadata.dpforest.text = job.text
        nb.cells.append(made(nb))
    elif same(nbformat.read(job.target, as_version=4), nb):  # the same numbers stay the same bytes
        job.part.unlink()
        return "", seconds
    write(nb, job.part)
    job.part.replace(job.target)
    return "", seconds


def write(nb: NotebookNode, path: Path) -> bool:
    """Write a notebook, always in the same bytes for the same content; tell whether that changed the file."""
    text = nbformat.writes(nb, version=4).rstrip("\n") + "\n"
    return put(text.encode(), path)


def put(content: bytes, path: Path) -> bool:
    """Write a file, whole or not at all; one with this content stays untouched, so that no page is built again."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".part{path.suffix}")
    part.write_bytes(content)
    part.replace(path)
    return True


def read_times(folder: Path) -> dict[str, int]:
    """Return how many seconds each notebook's run took, as noted in a folder of renderings."""
    path = folder / "times.json"
    try:
        return json.loads(path.read_text()) if path.exists() else {}
    except ValueError:
        raise RenderError(f"{folder.name}/times.json is cut off: take it from git again, or remove it") from None


def note_times(folder: Path, times: dict[str, int]) -> None:
    """Note how many seconds the runs of these notebooks took."""
    put((json.dumps(read_times(folder) | times, indent=1, sort_keys=True) + "\n").encode(), folder / "times.json")


def run_all(jobs: list[Job], workers: int = 2) -> list[str]:
    """Run the jobs, `workers` at a time and the `alone` ones by themselves; return what went wrong."""
    from tqdm import tqdm

    os.environ.update({word: "1" for word in ONE_THREAD}, PYTHONHASHSEED="0")
    os.environ["TQDM_DISABLE"] = "1"  # in kernels: a long fit would write its progress among the outputs
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
                running: dict[Future[tuple[str, float]], Job] = {pool.submit(run, job, ticks): job for job in batch}
                while running:
                    done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                    while not ticks.empty():
                        bar.update(ticks.get())
                    for future in done:
                        job = running.pop(future)
                        if error := future.exception():
                            problem, seconds = f"{job.name}.ipynb: {type(error).__name__}: {error}", 0.0
                        else:
                            problem, seconds = future.result()
                        if problem:
                            problems.append(problem)
                        elif not job.store:
                            note_times(job.target.parent, {job.name: round(seconds)})
                        bar.set_postfix_str(job.name)
    return problems


# --- records ---------------------------------------------------------------------------------------------------------
def made(nb: NotebookNode) -> NotebookNode:
    """Return the folded cell at the foot of a page which says how the page was made."""
    lines = [":::{dropdown} How this page was made", *facts(nb), ":::"]
    return nbformat.v4.new_markdown_cell("\n".join(lines), id="made")


def facts(nb: NotebookNode) -> list[str]:
    """Return the lines that say with which versions, parameters and data a rendering was made."""
    said = plain(nb.metadata["dpforest"]["provenance"])
    made_with = ", ".join(f"{word} {number}" for word, number in said["versions"].items())
    parameters = ", ".join(f"`{word} = {value!r}`" for word, value in said["parameters"].items())
    carried = said.get("carried")
    return [
        *([CARRIED.format(**carried)] if carried else []),
        f"- Versions: {made_with}" + (f"; on {said['machine']}" if "machine" in said else ""),
        f"- Parameters: {parameters or 'none'}",
        *(f"- Data: {name} ({short(sums)})" for name, sums in said["data"].items()),
    ]


def lay_out(job: Job, run: NotebookNode) -> None:
    """Write the page of a run that has the job's key, with the notebook's text as it is now."""
    nb = as_now(run, nbformat.read(job.source, as_version=4))
    nb.metadata.dpforest.text = job.text
    nb.cells.append(made(nb))
    write(nb, job.target)


def show_record(job: Job) -> None:
    """Show the rendering of record, whose key is the job's, with the notebook's text."""
    nb = nbformat.read(job.record, as_version=4)
    nb.metadata.dpforest.origin = "record"
    lay_out(job, nb)
    for name in job.files:
        put((job.record.parent / name).read_bytes(), job.target.parent / name)


def cut_off(job: Job) -> str:
    """Return what is wrong with the job's rendering of record if it is no whole one ('' where there is none)."""
    if not job.record.exists():
        return ""
    nb = read(job.record)
    broken = [] if nb and nb.metadata.get("dpforest", {}).get("key") else [job.record.name]
    broken += [name for name in job.files if not (job.record.parent / name).exists()]
    if not broken:
        return ""
    return (
        f"{job.name}.ipynb: its record/{broken[0]} is missing or cut off: take it from git again "
        f"(git checkout -- notebooks/record/{broken[0]}), or remove record/{job.name}.ipynb and run `make record`"
    )


def show_stale_record(job: Job, missing: list[str]) -> None:
    """Show the rendering of record of a notebook that has changed, and say so.

    It is not run, since data cannot be had or since nothing shall be run.
    """
    nb = read(job.record) if job.record.exists() else None
    if nb is None or "provenance" not in nb.metadata.get("dpforest", {}):
        data = f" needs {', '.join(missing)}, which cannot be had here (set DPFOREST_DATA or go online), and"
        there = f"there is no record/{job.name}.ipynb that can be read"
        raise RenderError(f"{job.name}.ipynb{data} {there}" if missing else f"{job.name}.ipynb: {there}")
    same = nb.metadata.dpforest.source_key == job.source_key
    changed = "What it computes with has" if same else "Its code or parameters have"
    why = f"The data ({', '.join(missing)}) could not be had" if missing else "Notebooks were not run"
    said = f"{why} where this book was built, so this page shows an earlier run. {changed} **changed since**."
    lay_out_as_is(job, nb, "A rendering of record", [said, "", *facts(nb)], missing)


def show_small_run(job: Job) -> None:
    """Show a notebook that has no rendering of record with the outputs that are stored in it, and say so."""
    nb = nbformat.v4.reads(job.source.read_text(encoding="utf-8"))
    why = "Notebooks were not run where this book was built, and this one has no rendering of record."
    shown = "So this page shows the run that is stored in the notebook, **at its own small size**."
    lay_out_as_is(job, nb, "A small run", [f"{why} {shown}"])


def lay_out_as_is(job: Job, nb: NotebookNode, title: str, lines: list[str], missing: Iterable[str] = ()) -> None:
    """Write a page that is not what its notebook gives now at full size, with an admonition below its title."""
    cell = nbformat.v4.new_markdown_cell("\n".join([f":::{{admonition}} {title}", *lines, ":::"]), id="record")
    nb.cells.insert(1, cell)
    nb.metadata.dpforest = {**nb.metadata.get("dpforest", {})}
    nb.metadata.dpforest.update(origin="record", key=stale_key(job, missing), missing=list(missing))
    write(nb, job.target)
    for name in job.files:
        if (job.record.parent / name).exists():
            put((job.record.parent / name).read_bytes(), job.target.parent / name)


def stale_key(job: Job, missing: Iterable[str] = ()) -> str:
    """Return the key of a page that shows a stale record, since these data are missing or since nothing is run."""
    record = job.record.read_text(encoding="utf-8") if job.record.exists() else ""
    return digest(["stale", job.key, sorted(missing), record])


def recorded(job: Job) -> bool:
    """Tell whether there is a rendering of record with the job's key, and all that belongs to it."""
    return key_of(job.record) == job.key and all((job.record.parent / name).exists() for name in job.files)


def plain(node: Any) -> Any:
    """Turn notebook nodes into plain dictionaries and lists."""
    return json.loads(json.dumps(node))


def short(sums: dict[str, str]) -> str:
    """Write checksums for reading: the first 16 digits of each."""
    return ", ".join(f"{file} sha256 `{value[:16]}…`" for file, value in sums.items()) or "inside scikit-learn"


def compact(content: bytes) -> bytes:
    """Write a JSON object with one line for each item of its lists: fewer bytes to keep, and still compared by line."""
    members = []
    for name, value in json.loads(content).items():
        text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if isinstance(value, list) else json.dumps(value)
        members.append(f"{json.dumps(name)}: {text}")
    return ("{\n" + ",\n".join(members) + "\n}\n").encode()


def promote(jobs: list[Job], *, force: bool = False) -> list[str]:
    """Keep finished runs as renderings of record; return what could not be kept.

    A record with the same key and the same numbers stays as it is, whatever the bytes of its images, unless forced.
    """
    problems = []
    for job in jobs:
        if not settled(job, here=True):
            if not recorded(job):
                problems.append(f"{job.name}.ipynb: no finished run of what it is now; run it first")
            continue
        nb = nbformat.read(job.target, as_version=4)
        nb.cells.pop()  # the note at the foot is written when the page is shown
        for word in ("origin", "text"):
            nb.metadata.dpforest.pop(word)
        if (
            not force
            and recorded(job)
            and not list(compare.notebook_differences(nbformat.read(job.record, as_version=4), nb))
        ):
            continue
        write(nb, job.record)
        for name in job.files:
            put(compact((job.target.parent / name).read_bytes()), job.record.parent / name)
        note_times(job.record.parent, {job.name: read_times(job.target.parent).get(job.name, 0)})
        print(f"record/{job.name}.ipynb")
    return problems


def same(record: NotebookNode, nb: NotebookNode) -> bool:
    """Tell whether a run shows what its rendering of record shows."""
    return not list(compare.notebook_differences(record, nb))


def check(jobs: list[Job], workers: int = 2) -> list[str]:
    """Run notebooks again, and return where they differ from their renderings of record."""
    problems = [
        f"{job.name}.ipynb: its rendering of record is missing or stale: run `make record`"
        for job in jobs
        if not recorded(job)
    ]
    lacking = {job.name: [name for name in job.datasets if not available(name)] for job in jobs}
    for name, missing in lacking.items():
        if missing:
            print(f"{name}: not checked, since {', '.join(missing)} cannot be had here")
    with tempfile.TemporaryDirectory() as folder:
        again = [
            replace(job, target=Path(folder) / job.target.name)
            for job in jobs
            if recorded(job) and not lacking[job.name]
        ]
        problems += run_all(again, workers) if again else []
        for job in again:
            if not job.target.exists():
                continue
            record, nb = (nbformat.read(path, as_version=4) for path in (job.record, job.target))
            expected = as_now(record, nbformat.read(job.source, as_version=4))  # whose text may have changed since
            nb.cells.pop()
            if words := list(compare.notebook_differences(expected, nb)):
                kept = job.source.parent / "rendered" / f"{job.name}.failed.ipynb"
                kept.parent.mkdir(exist_ok=True)
                shutil.copyfile(job.target, kept)
                problems += [f"{job.name}.ipynb is not its rendering of record: {word}" for word in words]
            else:
                print(f"{job.name}: the same as its rendering of record")
    return problems


def some(jobs: list[Job], number: int, day: int, strict: bool = True) -> list[Job]:
    """Return a few of the cheap notebooks: the next ones each day, so that all have their turn."""
    times = read_times(jobs[0].record.parent) if jobs else {}
    cheap = [job for job in jobs if job.name in times and times[job.name] <= CHEAP and not job.alone]
    if not cheap and not strict:
        return []
    if not cheap:
        raise RenderError("record/times.json names no cheap notebook: run `make record`")
    return [cheap[(day * number + k) % len(cheap)] for k in range(min(number, len(cheap)))]


# --- command line ----------------------------------------------------------------------------------------------------
def main(arguments: list[str] | None = None, source: Path = HERE) -> int:
    """Do what the command line asks; return the exit code."""
    parser = argparse.ArgumentParser(prog="render.py", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", help="notebooks by name, without .ipynb (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks run side by side (default: 2)")
    parser.add_argument("--force", action="store_true", help="also what is finished, or the same")
    parser.add_argument("--some", type=int, metavar="N", help="with --check: only N cheap ones, others each day")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--run", action="store_true", help="run at full size, even where a record could be shown")
    mode.add_argument("--show", action="store_true", help="lay out what is recorded, and run nothing")
    mode.add_argument("--record", action="store_true", help="keep finished runs as renderings of record")
    mode.add_argument("--check", action="store_true", help="run again and compare with the renderings of record")
    mode.add_argument("--rekey", action="store_true", help="carry records forward where the page shows the same")
    mode.add_argument("--store", action="store_true", help="run the sources in place and keep their outputs")
    options = parser.parse_args(arguments)
    try:
        if (folder := os.environ.get("DPFOREST_DATA")) and not Path(folder).is_dir():
            raise RenderError(f"DPFOREST_DATA names {folder!r}, which is not a folder: correct it, or unset it")
        jobs = list(plan(options.names, source=source))
        if options.some and not options.rekey:
            jobs = some(jobs, options.some, date.today().toordinal())
        if options.show:
            for said in show(jobs):
                print(f"render.py: {said}")
            problems = []
        elif options.record:
            problems = promote(jobs, force=options.force)
        elif options.check:
            problems = check(jobs, options.jobs)
        elif options.rekey:
            from carry import carry

            problems = carry(jobs, options.jobs, options.some or 2)
        elif options.store:
            here = [Job(name=j.name, source=j.source, target=j.source, alone=j.alone, store=True) for j in jobs]
            problems = run_all(here, options.jobs)
        else:
            problems = render(jobs, workers=options.jobs, records=not options.run, force=options.force)
            if not options.names:
                forget(source, {job.name for job in jobs})
    except RenderError as error:
        problems = [str(error)]
    except OSError as error:
        problems = [
            f"{error.filename} cannot be read or written ({error.strerror}): see who may, and what stands there"
        ]
    for problem in problems:
        print(f"render.py: {problem}", file=sys.stderr)
    return 1 if problems else 0


def render(jobs: list[Job], *, workers: int = 2, records: bool = True, force: bool = False) -> list[str]:
    """Bring the renderings up to date, from the record where that may be; return what went wrong."""
    problems: list[str] = []
    to_run: list[Job] = []
    standing = shown = 0
    for job in jobs:
        if records and (problem := cut_off(job)):
            problems.append(problem)
        elif not force and settled(job, here=not records):
            standing += 1
        elif records and not force and recorded(job):
            show_record(job)
            shown += 1
        elif missing := [name for name in job.datasets if not available(name)]:
            if not force and finished(replace(job, key=stale_key(job, missing))):
                standing += 1
                continue
            try:
                show_stale_record(job, missing)
                print(f"{job.name}: {', '.join(missing)} cannot be had; showing record/{job.name}.ipynb")
            except RenderError as error:
                problems.append(str(error))
        else:
            to_run.append(job)
    if to_run:
        problems += run_all(to_run, workers)
    print(
        f"notebooks: {len(to_run)} run, {shown} shown from the record, {standing} already up to date, "
        f"{len(problems)} with problems"
    )
    return problems


def show(jobs: Iterable[Job]) -> Iterator[str]:
    """Lay out all pages without running anything; yield what is to be said of each that is not as its notebook is now.

    Nothing is said of a page that `render` laid out for want of data: it said so itself.
    """
    for job in jobs:
        if settled(job):
            continue
        if recorded(job):
            show_record(job)
            continue
        nb = read(job.target) if job.target.exists() else None
        said = nb.metadata.get("dpforest", {}) if nb else {}
        if (missing := said.get("missing")) and said.key == stale_key(job, missing):
            continue
        try:
            show_stale_record(job, [])
            shown = "an earlier run, for what it shows has changed since"
        except RenderError:
            show_small_run(job)
            shown = "its small run, for it has no rendering of record"
        yield f"{job.name}.ipynb: the page shows {shown}; `python notebooks/render.py {job.name}` runs it"


def forget(source: Path, names: set[str]) -> None:
    """Remove renderings whose notebook is gone."""
    for path in (source / "rendered").glob("*.ipynb"):
        if path.name.split(".")[0] not in names:
            path.unlink()


if __name__ == "__main__":
    sys.exit(main())
