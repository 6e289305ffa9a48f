"""Compare what two runs of a notebook show: text as text, numbers as numbers, figures by their data.

Processors differ in the last place of ``exp`` and of sums of products, and a page shows what they give.  So:

* Whole numbers are equal or not.
* Other numbers agree to one part in 10^9.  There is no absolute tolerance, for probabilities of 10^-30 are results.
* The one exception is what is left where numbers of size one cancel: a small multiple of 2^-56, or zero.  Two such
  residues are the same.  A result hits one by chance about once in 10^7 times.
* Everything else is text, and equal.  Runs of white space and of rules count as one, since a digit more moves them.
* Images are not looked at: each has its figure's data in its metadata (`dpforest.study.figures`), compared as above.

What is volatile by nature (addresses, file names of cells) is taken out first, by ``tests/nbval-sanitize.cfg``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

VOLATILE = Path(__file__).resolve().parent.parent / "tests" / "nbval-sanitize.cfg"
FIGURE = "dpforest.figure"
RELATIVE = 1e-9
NUMBER = re.compile(
    r"(?<![\w.])([-+\u2212]?(?:[0-9]+(?:\.[0-9]+|\.(?=[\s\],;)]|$))?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)(?![\w])"
)
WHOLE = re.compile(r"[-+\u2212]?[0-9]+\.?")


# --- numbers and text ------------------------------------------------------------------------------------------------
def same_number(expected: str, found: str) -> bool:
    """Tell whether two written numbers are the same, as the head of this module says."""
    a, b = (text.replace("\u2212", "-") for text in (expected, found))
    if Decimal(a) == Decimal(b):
        return True
    if WHOLE.fullmatch(a) and WHOLE.fullmatch(b):
        return False
    x, y = float(a), float(b)
    if not (math.isfinite(x) and math.isfinite(y)):
        return False
    return math.isclose(x, y, rel_tol=RELATIVE, abs_tol=0.0) or (residue(x) and residue(y))


def residue(value: float) -> bool:
    """Tell whether a value is what rounding leaves of numbers of size one: k 2^-56 with a whole |k| up to 64."""
    steps = math.ldexp(value, 56)
    return abs(steps) < 64.5 and math.isclose(steps, round(steps), rel_tol=RELATIVE, abs_tol=0.0)


def difference(expected: str, found: str) -> str:
    """Return what differs first between two texts, or '' where they are the same."""
    if expected == found:
        return ""
    ours, theirs = NUMBER.split(steady(expected)), NUMBER.split(steady(found))
    for place, (a, b) in enumerate(zip_longest(ours, theirs, fillvalue="")):
        number = place % 2 == 1  # `split` gives text, number, text, number, ...
        if number and a and b:
            if not same_number(a, b):
                return f"{a} is now {b}, after {tail(ours[:place])!r}"
        elif a != b:
            return f"{brief(a)!r} is now {brief(b)!r}, after {tail(ours[:place])!r}"
    return ""


def steady(text: str) -> str:
    """Return the text without what may differ from run to run, with white space and rules made short."""
    for pattern, instead in volatile():
        text = re.sub(pattern, instead, text)
    return re.sub(r"\s+", " ", re.sub(r"[-=_\u2500\u2550]{3,}", "---", text)).strip()


@cache
def volatile() -> list[tuple[str, str]]:
    """Return the patterns of nbval's file, each with what stands in its place."""
    return re.findall(r"^regex: (.*)$\n^replace: ?(.*)$", VOLATILE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def brief(text: str) -> str:
    """Return the head of a text, for a message."""
    return text if len(text) <= 80 else f"{text[:80]}…"


def tail(parts: list[str]) -> str:
    """Return the end of the text read so far, for a message."""
    return "".join(parts[-6:])[-60:]


# --- outputs of cells ------------------------------------------------------------------------------------------------
def shown(outputs: Iterable[Any]) -> dict[str, list[str]]:
    """Return what a cell shows: for each kind of text (a stream, a type of display, an error) its texts in order."""
    texts: dict[str, list[str]] = {}
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":  # a stream arrives in pieces that depend on the clock
            whole = texts.setdefault(output["name"], [""])
            whole[0] += joined(output["text"])
        elif kind == "error":
            texts.setdefault("error", []).append(f"{output['ename']}: {output['evalue']}")
        else:
            for mime, content in output["data"].items():
                texts.setdefault(mime, []).append("" if mime.startswith("image/") else joined(content))
            if FIGURE in output.get("metadata", {}):
                texts.setdefault(FIGURE, []).append(output["metadata"][FIGURE])
    return texts


def joined(content: Any) -> str:
    """Return content of any type as text."""
    if isinstance(content, list) and all(isinstance(line, str) for line in content):
        return "".join(content)
    return content if isinstance(content, str) else json.dumps(content, sort_keys=True, ensure_ascii=False)


def differences(expected: Iterable[Any], found: Iterable[Any]) -> list[str]:
    """Return in words where the outputs of a cell differ from those expected."""
    ours, theirs = shown(expected), shown(found)
    words = []
    for kind in dict.fromkeys([*ours, *theirs]):
        old, new = ours.get(kind, []), theirs.get(kind, [])
        if len(old) != len(new):
            words.append(f"{kind}: {len(old)} outputs are now {len(new)}")
            continue
        words += [f"{kind}: {word}" for a, b in zip(old, new, strict=True) if (word := difference(a, b))]
    return words


def compared(cell: Any) -> bool:
    """Tell whether a cell's outputs are compared: all are but those of cells that measure time."""
    return cell["cell_type"] == "code" and "nbval-ignore-output" not in cell["metadata"].get("tags", [])


def notebook_differences(expected: Any, found: Any) -> Iterator[str]:
    """Yield in words where one run of a notebook differs from another."""
    for number, (a, b) in enumerate(zip_longest(expected["cells"], found["cells"])):
        if a is None or b is None or a["source"] != b["source"]:
            yield f"cell {number} is another"
            return
        if compared(a):
            yield from (f"cell {number}: {word}" for word in differences(a["outputs"], b["outputs"]))
