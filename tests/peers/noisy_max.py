"""Draw from OpenDP's noisy max as it ships, count what it answers, and keep the counts of this version.

Usage, with any Python that has opendp, which is all that this needs::

    python tests/peers/noisy_max.py           # writes the rows of this version of opendp in record/noisy_max.json
    python tests/peers/noisy_max.py --quick   # a twentieth of the draws; writes _build/noisy-max-quick.json

The scores are the class counts of one record, which changes its class.  OpenDP draws from the operating system's
entropy and takes no seed: another run gives other counts.  All sizes below were fixed before the recorded run.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import platform
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "notebooks" / "record" / "noisy_max.json"
QUICK = ROOT / "_build" / "noisy-max-quick.json"
MEASURES = ("max_divergence", "zero_concentrated_divergence")
PAIR = ((1, 0), (0, 1))  # scores on one table and on its neighbour: each candidate's changes by at most DISTANCE
DISTANCE = 1
SCALE = 4.0
DRAWS = 4  # of a block: a composition of that many
BLOCKS = 10_000  # on either side


def measurement(measure: str, scale: float = SCALE):
    """OpenDP's own, under one of the two measures that it takes."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    return dp.m.make_noisy_max(*space, getattr(dp, measure)(), scale=scale)


def first_answers(noisy_max, scores: tuple[int, ...], blocks: int, draws: int = DRAWS) -> list[int]:
    """In how many blocks the first candidate was the answer no time, once, and so on."""
    found = [0] * (draws + 1)
    for _ in range(blocks):
        found[sum(noisy_max(list(scores)) == 0 for _ in range(draws))] += 1
    return found


def rows(blocks: int) -> list[dict]:
    """What this version declares, and what it answers on either side."""
    made = []
    for measure in MEASURES:
        noisy_max = measurement(measure)
        made.append(
            {
                "version": importlib.metadata.version("opendp"),
                "measure": measure,
                "scale": SCALE,
                "declared": noisy_max.map(DISTANCE),
                "scores": [list(scores) for scores in PAIR],
                "first": [first_answers(noisy_max, scores, blocks) for scores in PAIR],
                "date": datetime.date.today().isoformat(),
                "python": platform.python_version(),
            }
        )
    return made


def order(row: dict) -> tuple:
    return [int(part) for part in re.findall(r"\d+", row["version"])], MEASURES.index(row["measure"])


def merged(kept: list[dict], new: list[dict]) -> list[dict]:
    """Rows of all versions, those of the new ones replaced."""
    versions = {row["version"] for row in new}
    return sorted([row for row in kept if row["version"] not in versions] + new, key=order)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Count what OpenDP's noisy max answers.")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the draws; the record is not touched")
    options = parser.parse_args(arguments)
    path, blocks = (QUICK, BLOCKS // 20) if options.quick else (RECORD, BLOCKS)
    new = rows(blocks)
    kept = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    content = {
        "what": "answers of OpenDP's noisy max, counted; see notebooks/peers.ipynb",
        "command": "make audit-noisy-max",
        "draws": DRAWS,
        "rows": merged(kept, new),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    for row in new:
        print(f"opendp {row['version']}, {row['measure']}: declared {row['declared']:g}, {row['first']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
