"""Which test files a change reaches: ``python -m tools.reached``, for ``make check``.

    python -m tools.reached                 the files that what has changed since the last commit reaches, a line each
    python -m tools.reached --since REV     the same since a commit

A test file is reached if a definition that it reaches, by ``notebooks/reach.py``, is another one than before.  Words
do not count there; a file whose tests read the repository's own files is reached by any change.  Where nothing has
changed, or what all tests run with has, it is all of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "notebooks"))
from reach import DATA, Library, Place, Reach  # noqa: E402  (a folder of programs)

#: What all tests run with.
FRAME = {"conftest.py", "tests/conftest.py", "pyproject.toml", "requirements.txt", "tools/reached.py"}


def git(root: Path, *words: str) -> list[str]:
    """The lines that git prints."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"tools.reached: git {words[0]}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def changed_files(root: Path, since: str) -> set[str]:
    """The files that differ from a commit, new ones included."""
    return {*git(root, "diff", "--name-only", since), *git(root, "ls-files", "--others", "--exclude-standard")}


def library(root: Path) -> Library:
    """All modules of a checkout, as the tests import them."""
    return Library(root, root / "notebooks", root / "book" / "_extensions")


def definitions(root: Path, files: Iterable[str]) -> dict[Place, str]:
    """The digest of each definition in these files."""
    found, modules = {}, library(root)
    for name in files:
        path = Path(name)
        parts = path.with_suffix("").parts
        if path.suffix not in (".py", DATA) or not (root / path).is_file():
            continue
        for start in ((), ("notebooks",), ("book", "_extensions")):
            if parts[: len(start)] == start:
                module = ".".join(parts[len(start) :]).removesuffix(".__init__") + path.suffix.removesuffix(".py")
                if (seen := modules.module(module)) is not None:
                    found |= {
                        (module, word): each.plain for word, each in seen.definitions.items() if word != "__doc__"
                    }
    return found


def before(root: Path, since: str, folder: Path) -> Path:
    """The modules as they stood in a commit, in a folder."""
    wanted = ["git", "-C", str(root), "archive", since, "*.py", f"*{DATA}"]
    archive = subprocess.run(wanted, capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def reads_files(path: Path) -> bool:
    """Whether a file of tests, by its own words, reads the repository it stands in."""
    return "__file__" in path.read_text(encoding="utf-8")


def reached(root: Path = ROOT, since: str = "HEAD") -> list[str]:
    """The test files that what has changed since a commit reaches."""
    tests = sorted(path.relative_to(root).as_posix() for path in (root / "tests").glob("test_*.py"))
    files = changed_files(root, since)
    if not files or files & FRAME:
        return tests
    with tempfile.TemporaryDirectory() as folder:
        old = before(root, since, Path(folder))
        was, now = definitions(old, files), definitions(root, files)
        changed = {place for place in was.keys() | now.keys() if was.get(place) != now.get(place)}
        gone = changed - now.keys()
        libraries = [library(root), *([library(old)] if gone else [])]
        found = []
        for name in tests:
            module = f"tests.{Path(name).stem}"
            if name in files or reads_files(root / name) or (changed and touches(libraries, module, changed)):
                found.append(name)
    return found


def touches(libraries: list[Library], module: str, changed: set[Place]) -> bool:
    """Whether a module of tests reaches one of these definitions, now or before."""
    return any(reach.definitions.keys() & changed for each in libraries if (reach := of(each, module)) is not None)


def of(modules: Library, module: str) -> Reach | None:
    """What all that a module of tests defines reaches, with what every test is given."""
    given = [name for name in ("tests.conftest", "conftest") if modules.module(name) is not None]
    return modules.reach([], [module, *given]) if modules.module(module) is not None else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--since", default="HEAD", metavar="REV", help="the commit to compare with (default: the last)")
    print("\n".join(reached(since=parser.parse_args().since)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
