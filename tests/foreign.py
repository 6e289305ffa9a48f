"""The tables of the page on other libraries: ``python -m tests.foreign --store`` writes them from the record.

Nobody types them: between two comments on the page is what this makes of ``notebooks/record/foreign.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "notebooks" / "record" / "foreign.json"
PAGE = ROOT / "book" / "foreign.md"
#: How a reading is written on the page.
WORDS = {
    "quiet": "nothing found",
    "refuted": "**false under this relation**",
    "accounts": "the answers lose more than the claim",
    "public": "only if it is public",
}


def loss(row: dict) -> str:
    """The largest sum of losses, and the kinds of what was found."""
    found = "∞" if row["epsilon"] is None else f"{row['epsilon']:.3g}"
    kinds = sorted({each["kind"] for each in row["findings"]} - {"loss"})
    return f"{found}{'; ' * bool(kinds)}{', '.join(kinds)}"


def place(row: dict) -> str:
    """Where the first finding is, in the library."""
    places = [each["where"] for each in row["findings"] if not each["where"].startswith("peers/")]
    return f" (`{places[0].partition('/')[2]}`)" if places else ""


def findings(record: dict) -> str:
    """A table for each library, with one row for each case."""
    lines: list[str] = []
    for library in dict.fromkeys((row["package"], row["version"]) for row in record["rows"]):
        lines += [
            f"**{' '.join(library)}**",
            "",
            "| what, and which neighbours | answers lose | reading |",
            "|---|---|---|",
        ]
        for row in record["rows"]:
            if (row["package"], row["version"]) == library:
                said = f"{WORDS[row['reading']]}: {row['text']}{place(row)}"
                lines.append(f"| {row['what']}; *{row['relation']}* | {loss(row)} | {said} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def accountants(record: dict) -> str:
    """One row for each way of composition."""
    lines = [
        "| three randomised responses | $\\delta$ by the accountant | $\\delta$ by all outcomes |",
        "|---|--:|--:|",
    ]
    for row in record["accountants"]:
        lines.append(f"| {row['what']} | {row['delta']:.4f} | {row['exact']:.4f} |")
    return "\n".join(lines)


def seeds(record: dict) -> str:
    """One row for each of two neighbours: what two runs give."""
    lines = ["| the column | first run | second run |", "|---|---|---|"]
    for row in record["seeded"]:
        shares = (", ".join(f"{share:.4f}" for share in run) for run in row["runs"])
        lines.append(f"| {row['what']} | {' | '.join(shares)} |")
    return "\n".join(lines)


def reused(record: dict) -> str:
    """One row for each call of noise, in order."""
    lines = ["| what the noise is for | its scale | the noise over its scale |", "|---|--:|---|"]
    for row, name in zip(
        record["reused"], ("column a", "column b", "column c", "first table", "second table"), strict=True
    ):
        multiples = ", ".join(f"{each:.4f}" for each in row["multiples"])
        lines.append(f"| {name} | {row['scale']:g} | {multiples} |")
    return "\n".join(lines)


def counts(record: dict) -> str:
    """How many cases were looked at, and how they were read."""
    rows = record["rows"]
    packages = dict.fromkeys(f"{row['package']} {row['version']}" for row in rows)
    by = {reading: sum(row["reading"] == reading for row in rows) for reading in WORDS}
    dates = max(row["date"] for row in rows)
    return (
        f"{len(rows)} cases of {', '.join(packages)}, run up to {dates}: {by['quiet']} without a finding, "
        f"{by['refuted']} whose claim is false under the relation that the row names, {by['accounts']} whose answers "
        f"lose more than the claim, and {by['public']} that hold only if something is public."
    )


def not_judged(record: dict) -> str:
    return "\n".join(f"* **{name}.** {'; '.join(texts)}." for name, texts in record["not_judged"].items())


PARTS: dict[str, Callable[[dict], str]] = {
    "counts": counts,
    "findings": findings,
    "accountants": accountants,
    "seeds": seeds,
    "reused": reused,
    "not judged": not_judged,
}


def stored(text: str, record: dict) -> str:
    """The page with what the record says now."""
    for name, make in PARTS.items():
        start, end = f"<!-- {name}: written by python -m tests.foreign --store -->", f"<!-- end of {name} -->"
        before, opened, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise ValueError(f"the page has no place for its {name}")
        text = f"{before}{start}\n\n{make(record)}\n\n{end}{after}"
    return text


if __name__ == "__main__":
    old = PAGE.read_text(encoding="utf-8")
    new = stored(old, json.loads(RECORD.read_text(encoding="utf-8")))
    if "--store" in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    else:
        print("as the record says" if new == old else "not as the record says: --store")
