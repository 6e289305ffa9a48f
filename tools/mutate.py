"""Change the modules that decide privacy, one operator or constant at a time, and count the changes no test notices.

``make mutate`` runs this with cosmic-ray, which lives in an environment of its own; two modules at a time, each on a
copy of the tree. What survives stands in ``_build/mutate/<module>.diff``, to be read: a survivor that changes privacy
calls for a test, one that cannot change any answer is an equivalent program.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "_build" / "mutate"
COSMIC_RAY = ROOT / ".venv" / "mutate" / "bin"

# Each module with the tests that must notice; the first to fail decides.
MODULES = {
    "mechanisms": ["tests/test_mechanisms.py"],
    "scores": ["tests/test_scores.py"],
    "budgets": ["tests/test_budgets.py"],
    "curator.choices": ["tests/test_curator.py", "tests/test_curator_targets.py"],
    "curator.sums": ["tests/test_curator.py", "tests/test_curator_targets.py"],
    "curator.memory": ["tests/test_curator.py", "tests/test_curator_targets.py"],
    "curator.queries": ["tests/test_queries.py", "tests/test_curator.py", "tests/test_curator_targets.py"],
    "curator.peeks": ["tests/test_curator.py", "tests/test_curator_targets.py"],
}
# Left out: operators that no slip of the pen produces (a shift for a product), those that a type annotation alone
# would meet (`X | None`), the seals on claims, which test_claims.py watches, and doubles of others.
KEPT = "Add_Sub|Sub_Add|Add_Mul|Mul_Add|Mul_Div|Div_Mul|Div_FloorDiv|FloorDiv_Div|Pow_Mul|Mod_FloorDiv|BitAnd_BitOr"
EXCLUDED = [
    rf"core/ReplaceBinaryOperator_(?!({KEPT})$)",
    r"core/ReplaceUnaryOperator_(USub|UAdd|Invert)_",
    r"core/ReplaceComparisonOperator_(?!Is_|IsNot_|In_|NotIn_)\w+_(Is|IsNot|In|NotIn)$",
    r"core/ReplaceComparisonOperator_(Is|IsNot|In|NotIn)_(?!(Is|IsNot|In|NotIn)$)",
    r"core/RemoveDecorator",
    r"core/Variable",
]


@dataclass(frozen=True)
class Score:
    """How the tests of one module did."""

    module: str
    killed: int
    survived: int

    @property
    def total(self) -> int:
        return self.killed + self.survived


def configuration(module: str, timeout: float) -> str:
    """Write cosmic-ray's configuration of one module."""
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pytest", "-x", "-q", *MODULES[module]]
    return "\n".join(
        [
            "[cosmic-ray]",
            f'module-path = "dpforest/{module.replace(".", "/")}.py"',
            f"timeout = {timeout:.0f}",
            "excluded-modules = []",
            f"test-command = {json.dumps(shlex.join(command))}",
            '[cosmic-ray.distributor]\nname = "local"',
            "[cosmic-ray.filters.operators-filter]",
            f"exclude-operators = {json.dumps(EXCLUDED)}",
        ]
    )


def mutate(module: str, sample: int | None) -> Score:
    """Run every mutant of one module on a copy of the tree."""
    work = OUT / module
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in (
        "dpforest",
        "tests",
        "tools",
        "notebooks",
        "book",
        "pyproject.toml",
        "README.md",
        "_toc.yml",
        "_config.yml",
    ):
        source, target = ROOT / name, work / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "rendered", "mathjax"))
        elif source.exists():
            shutil.copy(source, target)

    def cosmic_ray(program: str, *arguments: str) -> None:
        done = subprocess.run([COSMIC_RAY / program, *arguments], cwd=work, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{module}: {program} {arguments[0]} failed\n{done.stdout[-3000:]}{done.stderr[-3000:]}")

    config, session = work / "cosmic-ray.toml", work / "session.sqlite"
    config.write_text(configuration(module, timeout=600))
    started = time.monotonic()
    cosmic_ray("cosmic-ray", "baseline", str(config))  # the tests pass on the code as it stands, or nothing is measured
    config.write_text(configuration(module, timeout=30 + 4 * (time.monotonic() - started)))
    cosmic_ray("cosmic-ray", "init", str(config), str(session))
    cosmic_ray("cr-filter-operators", str(session), str(config))
    if sample is not None:
        thin_out(session, sample)
    cosmic_ray("cosmic-ray", "exec", str(config), str(session))

    with sqlite3.connect(session) as database:
        rows = database.execute(
            "SELECT test_outcome, diff, operator_name FROM work_results JOIN mutation_specs USING (job_id) "
            "WHERE worker_outcome = 'NORMAL' ORDER BY start_pos_row, operator_name"
        ).fetchall()
    survivors = [f"# {operator}\n{diff}\n" for outcome, diff, operator in rows if outcome == "SURVIVED"]
    (OUT / f"{module}.diff").write_text("\n".join(survivors))
    return Score(module, len(rows) - len(survivors), len(survivors))


def thin_out(session: Path, sample: int) -> None:
    """Keep a fixed pseudo-random sample of the pending mutants."""
    with sqlite3.connect(session) as database:
        pending = database.execute(
            "SELECT job_id FROM mutation_specs WHERE job_id NOT IN (SELECT job_id FROM work_results) "
            "ORDER BY (occurrence * 7919 + start_pos_row * 104729 + start_pos_col * 1299709) % 1000003"
        ).fetchall()
        for (job,) in pending[sample:]:
            database.execute("DELETE FROM mutation_specs WHERE job_id = ?", (job,))
            database.execute("DELETE FROM work_items WHERE job_id = ?", (job,))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("modules", nargs="*", choices=[*MODULES, []], help="which modules (default: all)")
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module")
    options = parser.parse_args()
    wanted = options.modules or list(MODULES)
    with ThreadPoolExecutor(2) as pool:
        scores = list(pool.map(lambda module: mutate(module, options.sample), wanted))
    for score in [*scores, Score("together", sum(s.killed for s in scores), sum(s.survived for s in scores))]:
        share = score.killed / score.total if score.total else 0.0
        print(f"{score.module:12} {score.killed} of {score.total} mutants noticed ({share:.1%})")
    print(f"survivors: {OUT.relative_to(ROOT)}/<module>.diff")
    return 0


if __name__ == "__main__":
    sys.exit(main())
