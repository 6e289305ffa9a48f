"""What programs on the book's pages print: ``python -m tools.shown --store`` writes it under each, nobody types it.

On these pages the blocks of ``python`` are one program in parts, run in order.  A block of ``text`` directly below
a part is what that part prints: its lines, its warnings, and the error with which it stops, if it does; then the next
part goes on.  A part without such a block prints nothing.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]
from compare import difference  # noqa: E402  (a folder of programs)

#: The pages whose programs are run, without what is elsewhere: each makes its own table.
PAGES = ("first_regression", "foreign", "with_delta", "troubleshooting", "machine_checked")
#: Those that hand something to Coq.
WITH_COQ = ("machine_checked",)
WIDTH = 84  # of a page, in letters
_PART = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def path_of(page: str) -> Path:
    return ROOT / "book" / f"{page}.md"


def parts(text: str) -> list[tuple[str, str]]:
    """The parts of a page's program, each with what the page shows of it; '' where that is nothing."""
    return [(match["code"], match["shown"] or "") for match in _PART.finditer(text)]


def printed(codes: list[str]) -> list[str]:
    """What each part of a program prints, run in order in a folder of its own."""
    names: dict[str, object] = {"__name__": "__main__"}
    found = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, code in enumerate(codes):
            out, failed = io.StringIO(), ""
            with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(out):
                warnings.simplefilter("always")
                try:
                    exec(compile(code, f"<part {number}>", "exec"), names)
                except Exception as error:
                    failed = f"{type(error).__name__}: {error}"
            lines = [out.getvalue(), *(f"{each.category.__name__}: {each.message}" for each in said), failed]
            found.append(
                "".join(f"{narrow}\n" for each in lines for line in each.splitlines() for narrow in _narrow(line))
            )
    return found


def _narrow(line: str) -> list[str]:
    """A line as the page shows it: broken between words, and indented where it goes on."""
    inner = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, WIDTH, subsequent_indent=inner, break_on_hyphens=False, drop_whitespace=True) or [""]


def faults(text: str) -> list[str]:
    """Where what a page shows is not what its program prints now."""
    codes, shown = zip(*parts(text), strict=True)
    return [
        f"part {number}: {differs}"
        for number, (old, new) in enumerate(zip(shown, printed([*codes]), strict=True))
        if (differs := difference(old, new))
    ]


def stored(text: str) -> str:
    """A page with what its program prints now."""
    new = iter(printed([code for code, _ in parts(text)]))

    def part(match: re.Match[str]) -> str:
        shown = next(new)
        return f"```python\n{match['code']}```\n" + (f"\n```text\n{shown}```\n" if shown else "")

    return _PART.sub(part, text)


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "agg"
    for page in PAGES:
        text = path_of(page).read_text(encoding="utf-8")
        if "--store" in sys.argv[1:]:
            path_of(page).write_text(stored(text), encoding="utf-8")
        else:
            print("\n".join([page, *faults(text)]))
