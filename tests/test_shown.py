"""Programs under *Use it* print what their pages show, and the table of errors has the words of the errors."""

from __future__ import annotations

import re
import shutil

import pytest

from tests import not_run
from tools import shown

BROKEN = """# A page

```python
x = 1
```

```python
print(f"  {x} " + "word " * 20)
```

```text
  1 word
```

Then it stops.

```python
raise ValueError("no such thing")
```

```text
```

```python
import warnings

warnings.warn("and goes on", UserWarning)
```
"""


NEEDS_COQ = pytest.mark.skipif(shutil.which("coqc") is None, reason=not_run.COQ)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[NEEDS_COQ] if page in shown.WITH_COQ else []) for page in shown.PAGES]
)
def test_a_program_prints_what_its_page_shows(page):
    text = shown.path_of(page).read_text(encoding="utf-8")
    assert text.count("```python") == len(shown.parts(text)) > 2
    assert text.count("```text") == sum(bool(said) for _, said in shown.parts(text))
    assert shown.faults(text) == [], "python -m tools.shown --store, if that is meant"


@pytest.mark.parametrize("page", shown.PAGES)
def test_it_is_narrow_enough_for_the_page(page):
    for code, said in shown.parts(shown.path_of(page).read_text(encoding="utf-8")):
        assert max(map(len, (code + said).splitlines())) <= 88


def test_what_is_not_printed_is_a_fault():
    assert [fault.split(":")[0] for fault in shown.faults(BROKEN)] == ["part 1", "part 2", "part 3"]
    mended = shown.stored(BROKEN)
    assert shown.faults(mended) == []
    assert shown.stored(mended) == mended
    assert f"```text\n  1 {'word ' * 15}word\n      word word word word\n```\n" in mended
    assert "\n\n```text\nValueError: no such thing\n```\n" in mended
    assert "\n\n```text\nUserWarning: and goes on\n```\n" in mended
    assert shown.faults(mended.replace("x = 1", "x = 2")) != []


def rows(text: str) -> list[tuple[str, str]]:
    """The rows of the page of errors: the number of each, and the words by which it is found."""
    return re.findall(r"^\| \[(\d+)\]\(#[\w-]+\) `([^`]+)` \|", text, flags=re.MULTILINE)


def test_each_error_of_the_table_is_provoked_below_it():
    text = shown.path_of("troubleshooting").read_text(encoding="utf-8")
    found = rows(text)
    assert [int(number) for number, _ in found] == [*range(1, len(found) + 1)]
    assert len(found) >= 12
    below = re.split(r"^## (\d+)\. .*$", text, flags=re.MULTILINE)
    assert below[1::2] == [number for number, _ in found]
    for (number, words), section in zip(found, below[2::2], strict=True):
        ((_, said),) = shown.parts(section)
        assert words in " ".join(said.split()), number
        assert re.match(r"\w*(Error|Warning): ", said), number


def numbers(said: str) -> dict[str, list[float]]:
    """The numbers behind the colon of each line that has one, by the words before it."""
    lines = re.findall(r"^([^:\n]+): +(.+)$", said, flags=re.MULTILINE)
    return {words.strip(): [float(number) for number in re.findall(r"\d+\.\d+", rest)] for words, rest in lines}


def said_by(page: str, words: str) -> dict[str, list[float]]:
    """The numbers of the part of a page that prints these words."""
    (said,) = [said for _, said in shown.parts(shown.path_of(page).read_text(encoding="utf-8")) if words in said]
    return numbers(said)


def test_what_the_regression_says_of_its_numbers():
    errors = said_by("first_regression", "always the mean")
    mean, private, best = (errors[name][0] for name in ("always the mean", "private model", "best possible"))
    assert best < private < mean / 2
    tried = said_by("first_regression", "target up to")
    (right,), (ten,), (hundred,) = (tried[f"target up to {highest:>7}"] for highest in ("4,000", "40,000", "400,000"))
    assert abs(ten - right) < 0.1 * right < right < hundred / 2  # costs nothing to speak of, costs much
    (many,), (some,), (few,), (hardly,) = (tried[f"{rows} rows"] for rows in (4000, 1000, 250, 60))
    assert many < some < 0.95 * mean < min(few, hardly)  # no better than the mean


def test_what_the_page_on_delta_says_of_its_numbers():
    found = said_by("with_delta", "one random tree")
    gains = {line: on - off for line, (off, on) in found.items()}
    assert len(gains) == 9
    assert max(gains[f"one random tree  {epsilon}"] for epsilon in (0.1, 0.3, 1.0)) <= 0
    assert min(gains[f"50 random trees  {epsilon}"] for epsilon in (0.1, 0.3)) > 0.05
    assert gains["private boosting 0.1"] < 0.01 < min(gains[f"private boosting {epsilon}"] for epsilon in (0.3, 1.0))
