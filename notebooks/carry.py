"""Carry renderings of record forward: where a change kept what is computed, a page keeps the run that it has.

``python notebooks/render.py --rekey`` gives a record the key of its notebook as it is now, on this evidence, all of it:

1. What is released is the same bits: a run of ``tests.digests`` gives what ``tests/digests.json`` has, and no digest
   there of a learner that the page reaches has changed since the commit in which the record was made or last carried.
2. What is shown at small size is the same: the outputs stored in the notebook are, as numbers, those that it had in
   that commit, and a new run gives them again.  Its parameters at full size, its data and the locked packages are, too.
3. A few of the pages carried, others each day, are run at full size and give their record.

A page for which any of this does not hold keeps its old key, and is to be run.  What was carried says so at its foot.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import compare
import nbformat
import render
from nbformat import NotebookNode

DIGESTS = "tests/digests.json"


def carry(jobs: list[render.Job], workers: int = 2, number: int = 2) -> list[str]:
    """Give stale records their new keys where the evidence allows it; return what is wrong."""
    stale = [job for job in jobs if job.record.exists() and not render.recorded(job)]
    if not stale:
        print("no rendering of record is stale")
        return []
    root = stale[0].source.parent.parent
    if problem := released(root):
        return [problem]
    bases = {job.name: commit_of(root, job.record) for job in stale}
    kept = []
    for job in stale:
        if why := unlike(root, job, bases[job.name]):
            print(f"{job.name}: not carried: {why}")
        else:
            kept.append(job)
    kept, problems = again(kept, workers)
    if not problems and kept:
        problems = full_size(kept, workers, number)
    if problems:
        return [*problems, "nothing was carried"]
    now = commit_now(root)
    for job in kept:
        forward(job, bases[job.name], now)
        print(f"record/{job.name}.ipynb: carried from {bases[job.name]} to {now}")
    return []


# --- evidence --------------------------------------------------------------------------------------------------------
def released(root: Path) -> str:
    """Return what is wrong with the digests of what is released ('' where they are those stored)."""
    print("computing what is released, for its digests")
    done = subprocess.run(
        [sys.executable, "-m", "tests.digests"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"tests.digests failed: {render.first_line(done.stderr.splitlines()[-1] if done.stderr else '')}"
    stored = json.loads((root / DIGESTS).read_text(encoding="utf-8"))
    if json.loads(done.stdout) != stored:
        return f"what is released is not what {DIGESTS} has: pages are to be run (`make record`)"
    return ""


def unlike(root: Path, job: render.Job, base: str) -> str:
    """Return why a record cannot be carried, as far as files tell ('' where they do not)."""
    if not base:
        return "its record is not committed"
    then = json.loads(at(root, base, DIGESTS) or "{}")
    stored = json.loads((root / DIGESTS).read_text(encoding="utf-8"))
    changed = [name for name in then if stored.get(name) != then[name] and concerns(name, job)]
    if changed:
        return f"the digest of {changed[0]!r} has changed since {base}"
    if render.cut_off(job):
        return "its record is not whole"
    record, notebook = nbformat.read(job.record, as_version=4), nbformat.read(job.source, as_version=4)
    was, is_now = render.plain(record.metadata.dpforest.provenance), render.plain(job.provenance)
    if was["parameters"] != is_now["parameters"]:
        return "its parameters at full size have changed"
    if any(was["data"][name] != is_now["data"].get(name) for name in was["data"]):
        return "its data have changed"
    versions = {name: number for name, number in was["versions"].items() if name in is_now["versions"]}
    if any(is_now["versions"][name] != number for name, number in versions.items() if name != "python"):
        return "packages have changed"
    older = at(root, base, f"{job.source.parent.name}/{job.source.name}")
    before = nbformat.reads(older, as_version=4) if older else None
    if (
        before is None
        or len(cells(before)) != len(cells(notebook))
        or len(cells(record, run=True)) != len(cells(notebook))
    ):
        return "it has other cells"
    return next(differences(cells(before), cells(notebook)), "")


def concerns(digest: str, job: render.Job) -> bool:
    """Tell whether a digest, which begins with what it is of, may be of something that a page reaches."""
    return digest.split()[0] in job.reached or not digest.split()[0].endswith(("Classifier", "Regressor"))


def again(jobs: list[render.Job], workers: int) -> tuple[list[render.Job], list[str]]:
    """Run notebooks at their small size; return those that give what is stored in them, and what failed."""
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        able = []
        for job in jobs:
            if missing := [name for name in job.datasets if not render.available(name)]:
                print(f"{job.name}: not carried: {', '.join(missing)} cannot be had here")
            else:
                able.append(replace(job, target=Path(folder) / job.target.name, parameters={}))
        problems = render.run_all(able, workers) if able else []
        for job in able:
            if job.target.exists():
                stored, run = (nbformat.read(path, as_version=4) for path in (job.source, job.target))
                if why := next(differences(cells(stored), cells(run)), ""):
                    print(f"{job.name}: not carried: {why}")
                else:
                    kept.append(job)
    names = {job.name for job in kept}
    return [job for job in jobs if job.name in names], problems


def full_size(jobs: list[render.Job], workers: int, number: int) -> list[str]:
    """Run a few cheap pages at full size, others each day, and return where they are not their records."""
    cheap = render.some(jobs, number, date.today().toordinal(), strict=False)
    with tempfile.TemporaryDirectory() as folder:
        runs = [replace(job, target=Path(folder) / job.target.name) for job in cheap]
        problems = render.run_all(runs, workers) if runs else []
        for job in runs:
            if job.target.exists():
                record, run = (nbformat.read(path, as_version=4) for path in (job.record, job.target))
                problems += [
                    f"{job.name}.ipynb at full size is not its rendering of record: {word}"
                    for word in differences(cells(record, run=True), cells(run, run=True))
                ]
                print(f"{job.name}: run at full size")
    return problems


def differences(expected: Iterable[NotebookNode], found: Iterable[NotebookNode]) -> Iterable[str]:
    """Yield where the outputs of cells differ, whatever their code."""
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        if compare.compared(b):
            yield from (f"code cell {number}: {word}" for word in compare.differences(a["outputs"], b["outputs"]))


def cells(nb: NotebookNode, run: bool = False) -> list[NotebookNode]:
    """Return the code cells of a notebook; of a run, without the one that sets parameters."""
    return [
        cell
        for cell in nb.cells
        if cell.cell_type == "code" and not (run and "injected-parameters" in render.tags(cell))
    ]


# --- records ---------------------------------------------------------------------------------------------------------
def forward(job: render.Job, base: str, now: str) -> None:
    """Give a record its notebook's key and text, and note on what evidence."""
    nb = render.as_now(nbformat.read(job.record, as_version=4), nbformat.read(job.source, as_version=4))
    said = nb.metadata.dpforest
    rendered = said.provenance.get("carried", {}).get("rendered", base)
    said.update(key=job.key, source_key=job.source_key)
    said.provenance["carried"] = {"rendered": rendered, "to": now}
    render.write(nb, job.record)


# --- git -------------------------------------------------------------------------------------------------------------
def git(root: Path, *words: str) -> str | None:
    """Return what git says, or None where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise render.RenderError("to carry records, git is needed, and a clone with its history") from None
    return done.stdout if done.returncode == 0 else None


def at(root: Path, commit: str, path: str) -> str | None:
    """Return a file as it stood in a commit."""
    return git(root, "show", f"{commit}:{path}")


def commit_of(root: Path, path: Path) -> str:
    """Return the commit that last changed a file, '' where it has changed since."""
    name = str(path.relative_to(root))
    if git(root, "status", "--porcelain", "--", name) != "":
        return ""
    return (git(root, "log", "-1", "--format=%h", "--", name) or "").strip()


def commit_now(root: Path) -> str:
    """Return the commit that is checked out, with a plus where files have changed since."""
    changed = git(root, "status", "--porcelain", "--", "dpforest", "notebooks/*.ipynb", "tests/zoo", "benchmarks")
    return (git(root, "rev-parse", "--short", "HEAD") or "").strip() + ("+" if changed else "")
