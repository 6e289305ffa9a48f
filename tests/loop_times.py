"""How long the daily commands take, as a Markdown table: `make times`, on a fresh clone with nothing else running.

The clone is a new one of this repository's last commit, in a temporary folder with an environment of its own.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: What is run, after which change to the clone, and what is wanted of it, in minutes.
STEPS = (
    ("`make book`, first time, environment included", "make book", None, 8),
    ("`make book`, nothing changed", "make book", None, 1 / 6),
    ("`make book`, one chapter's text changed", "make book", ("book/edprf.md", "\nOne more sentence.\n"), 1),
    ("`make check`", "make check", None, 2),
    ("`make test`", "make test", None, 8),
)
CI = ("`.ci/run`", ".ci/run", None, 25)


def timed(command: str, clone: Path) -> tuple[int, float, float]:
    """The exit code, and the minutes of the clock and of all processors; what is printed goes to a log."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with (clone.parent / "times.log").open("a") as log:
        code = subprocess.run(command.split(), cwd=clone, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return code, (time.monotonic() - start) / 60, spent / 60


def fresh(folder: Path) -> Path:
    """A new clone of the last commit."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
    return clone


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--ci", action="store_true", help="also run .ci/run, in another clone")
    options = parser.parse_args()
    print(f"| command ({os.cpu_count()} cores) | minutes | CPU minutes | wanted | |\n|---|--:|--:|--:|---|", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        clone = fresh(Path(one))
        for said, command, change, wanted in (*STEPS, *([CI] if options.ci else [])):
            if command == CI[1]:
                clone = fresh(Path(other))
            if change:
                with (clone / change[0]).open("a") as page:
                    page.write(change[1])
            code, minutes, spent = timed(command, clone)
            if change:
                subprocess.run(["git", "checkout", "--quiet", change[0]], cwd=clone, check=True)
            verdict = f"ended with {code}" if code else "" if minutes <= wanted else "too slow"
            if code:
                print((clone.parent / "times.log").read_text()[-3000:], file=sys.stderr)
            print(f"| {said} | {minutes:.1f} | {spent:.1f} | ≤ {wanted:.2g} | {verdict} |", flush=True)
            failed += bool(verdict)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
