"""What a notebook executes and does not reach: ``python -m tests.executed NAME``, each function on a line.

Keys of renderings follow names through syntax trees (``notebooks/reach.py``).  Here a profiler looks at a run: each
function of this repository that was called must be among the definitions that its key counts.  What runs while modules
are imported is left out: what it makes counts by its name.
"""

from __future__ import annotations

import contextlib
import cProfile
import importlib
import inspect
import io
import os
import sys
import threading
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]
import render  # noqa: E402  (a folder of programs)
from reach import SEALS, Library  # noqa: E402


def module_of(file: str) -> str:
    """The name by which a file of this repository is imported, '' for others."""
    path = Path(file)
    if not path.is_relative_to(ROOT) or ".venv" in path.parts:
        return ""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] in ("tests", "notebooks"):
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def called(code: str) -> set[CodeType]:
    """The functions that a program calls, in this process."""
    profile = cProfile.Profile()
    threads: list[cProfile.Profile] = []

    def watch(*_: object) -> None:
        threads.append(cProfile.Profile())
        threads[-1].enable()

    threading.setprofile(watch)
    cells = sys.modules["cells"] = ModuleType("cells")
    vars(cells)["display"] = lambda *_, **__: None
    with contextlib.redirect_stdout(io.StringIO()):
        profile.enable()
        try:
            exec(compile(code, "<cells>", "exec"), vars(cells))
        finally:
            profile.disable()
            threading.setprofile(None)  # type: ignore[arg-type]
    entries = [entry for each in (profile, *threads) for entry in each.getstats()]
    return {entry.code for entry in entries if isinstance(entry.code, CodeType)}


def unreached(name: str) -> list[str]:
    """The functions that a notebook calls and its key does not count."""
    nb = render.read(ROOT / "notebooks" / f"{name}.ipynb")
    assert nb is not None
    found = render.reach_of(nb, name, Library(ROOT, ROOT / "tests", ROOT / "notebooks"))
    for module in sorted(found.loaded):
        with contextlib.suppress(ImportError):  # of an extra that is not here
            importlib.import_module(module)
    left = set()
    for code in called("\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")):
        module, function = module_of(code.co_filename), code.co_qualname.split(".<locals>")[0]
        first, *rest = function.split(".")
        if not module or not code.co_flags & inspect.CO_OPTIMIZED or first.startswith("<"):  # of a constant
            continue
        place = first if not rest or rest[0].startswith("<") else f"{first}.{rest[0]}"
        if (module, place) not in found.definitions and place not in {"__getattr__", *SEALS}:  # of packages, and seals
            left.add(f"{module}: {function}")
    return sorted(left)


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "agg"
    os.chdir(ROOT / "notebooks")
    print("\n".join(unreached(sys.argv[1])))
