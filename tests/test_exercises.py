"""The book's exercises with code: a stub fails its check, the solution passes it; each chapter has enough of them."""

from __future__ import annotations

import ast
import json
import re
import runpy
import sys
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import nbformat
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_extensions"))
NOTEBOOKS = runpy.run_path(str(ROOT / "book" / "_extensions" / "exercises.py"))["as_files"]()
WIDTH = 88  # of a line of code
SECONDS = 2
#: Parts of the book whose chapters have exercises, and the chapters among them that teach nothing to exercise.
PARTS, EXEMPT = {"Learn it", "Forests", "Ancestors"}, {"reading", "ancestors"}
#: Chapters of other parts that have them too.
MORE = {"auditing", "attacks", "scaling", "evaluation", "inspecting", "machine_checked"}

KINDS = ("exercise", "check", "solution")
BLOCK = re.compile(r"^```\{code-block\} python\n:name: (\w+)-(\w+)-(\d+)\n\n(.*?)^```$", re.M | re.S)
TITLE = re.compile(r"^\*\*(\d+)\.\*\*(?: ★{1,3})?(?: \((code|break it)\))?", re.M)
STARS = re.compile(r"^\*\*\d+\.\*\* ★{1,3} ", re.M)


def chapters() -> list[str]:
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    files = [chapter["file"] for part in parts if part["caption"] in PARTS for chapter in part["chapters"]]
    return sorted({name.removeprefix("book/") for name in files} - EXEMPT | MORE)


def section(chapter: str) -> str:
    return (ROOT / f"book/{chapter}.md").read_text().partition("\n## Exercises\n")[2].partition("\n## ")[0]


def blocks(text: str) -> dict[tuple[str, str, str], str]:
    return {(chapter, number, kind): code for kind, chapter, number, code in BLOCK.findall(text)}


CODE = {key: code for path in sorted((ROOT / "book").glob("*.md")) for key, code in blocks(path.read_text()).items()}
EXERCISES = sorted({key[:2] for key in CODE}, key=lambda key: (key[0], int(key[1])))
each = pytest.mark.parametrize(("chapter", "number"), EXERCISES, ids=map("-".join, EXERCISES))


def run(*codes: str) -> None:
    namespace: dict[str, object] = {"__name__": "exercise"}
    for code in codes:
        exec(compile(code, "<exercise>", "exec"), namespace)


def signatures(code: str) -> dict[str, str]:
    """The functions that a block defines, with what they take, and the names that it sets."""
    found = {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = ast.unparse(node.args)
        elif isinstance(node, ast.Assign):
            found |= {ast.unparse(target): "" for target in node.targets}
    return found


@each
def test_the_stub_fails_its_check(chapter, number):
    stub, check = CODE[chapter, number, "exercise"], CODE[chapter, number, "check"]
    run(stub)  # it runs: only the answer is missing
    with pytest.raises(Exception) as caught:  # noqa: PT011  (what is wrong with it depends on the exercise)
        run(stub, check)
    assert not isinstance(caught.value, NameError | SyntaxError | ImportError), caught.value


@each
def test_the_solution_passes_its_check(chapter, number):
    began = process_time()
    run(CODE[chapter, number, "solution"], CODE[chapter, number, "check"])
    assert process_time() - began < SECONDS


@each
def test_the_solution_answers_what_was_asked(chapter, number):
    asked, answered = (signatures(CODE[chapter, number, kind]) for kind in ("exercise", "solution"))
    assert asked.items() <= answered.items()
    lines = "".join(CODE[chapter, number, kind] for kind in KINDS).splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []


def shortcomings(text: str) -> list[str]:
    """What a section of exercises lacks."""
    titles = TITLE.findall(text)
    coded = [number for number, kind in titles if kind]
    kinds = [kind for _, kind in titles]
    said = {
        "numbered from 1 on": [int(number) for number, _ in titles] == list(range(1, len(titles) + 1)),
        "four exercises": len(titles) >= 4,
        "stars for each": len(STARS.findall(text)) == len(titles),
        "two with code": len(coded) >= 2,
        "one that breaks a mechanism": "break it" in kinds,
        "stub, check and solution under each that says so": all(
            [key[1:] for key in blocks(part)] == [(title[1], kind) for kind in KINDS if title[2]]
            for title, part in pieces(text)
        ),
    }
    return [what for what, there in said.items() if not there]


def pieces(text: str) -> list[tuple[re.Match[str], str]]:
    """Each exercise's title with its text."""
    titles = list(TITLE.finditer(text))
    ends = [*(title.start() for title in titles), len(text)]
    return [(title, text[a:b]) for title, (a, b) in zip(titles, pairwise(ends), strict=True)]


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_has_enough(chapter):
    assert shortcomings(section(chapter)) == []


def test_every_block_belongs_to_its_chapter_and_is_read():
    for path in (ROOT / "book").glob("*.md"):
        text = path.read_text()
        assert {chapter for chapter, *_ in blocks(text)} <= {path.stem}
        written = re.findall(r"^:name: ((?:exercise|check|solution)-\S+)", text, flags=re.M)
        assert sorted(written) == sorted(f"{kind}-{word}-{number}" for word, number, kind in blocks(text))
        assert text.count("\n```{code-block}") == len(written), f"{path.name}: a code-block without a name"


def test_a_section_that_lacks_something_is_seen():
    assert shortcomings("**1.** Why?\n\n**3.** (code) Write it.\n") == [
        "numbered from 1 on",
        "four exercises",
        "stars for each",
        "two with code",
        "one that breaks a mechanism",
        "stub, check and solution under each that says so",
    ]
    assert "stars for each" not in shortcomings("**1.** ★ Why?\n\n**2.** ★★★ (code) Write it.\n")


# -- as notebooks ------------------------------------------------------------------------------------------------------


def notebook_of(chapter: str) -> dict[str, Any]:
    return json.loads(NOTEBOOKS[f"{chapter}.ipynb"])


def test_each_chapter_with_exercises_has_a_notebook_of_them():
    assert {Path(name).stem for name in NOTEBOOKS} == {chapter for chapter, _ in EXERCISES} >= set(chapters())


@pytest.mark.parametrize("chapter", sorted({chapter for chapter, _ in EXERCISES}))
def test_a_notebook_has_the_exercises_of_its_chapter_and_says_them_without_the_books_own_marks(chapter):
    book = notebook_of(chapter)
    nbformat.validate(nbformat.from_dict(book))
    said = {cell["id"]: "".join(cell["source"]) for cell in book["cells"]}
    text = section(chapter)
    assert [name for name in said if name.startswith("exercise-")] == [
        f"exercise-{number}" for number, _ in TITLE.findall(text)
    ]
    assert sum(name.startswith("solution-") for name in said) == len(TITLE.findall(text))
    prose = "\n".join(text for name, text in said.items() if not name.startswith(("stub-", "check-")))
    assert re.findall(r"\{[\w:-]+\}`|`{3,}\{|\\eps\b|^:name:", prose, re.M) == []
    assert "★" in said["exercise-1"]


@each
def test_in_a_notebook_the_check_refuses_the_stub_and_accepts_the_folded_solution(chapter, number):
    said = {cell["id"]: "".join(cell["source"]) for cell in notebook_of(chapter)["cells"]}
    stub, check, folded = (said[f"{kind}-{number}"] for kind in ("stub", "check", "solution"))
    assert (stub, check) == tuple(CODE[chapter, number, kind].strip() for kind in KINDS[:2])
    assert folded.startswith("<details><summary>Solution</summary>")
    [solution] = re.findall(r"^```python\n(.*?)^```$", folded, re.M | re.S)
    with pytest.raises(Exception):  # noqa: B017, PT011  (what is wrong with it depends on the exercise)
        run(stub, check)
    run(solution, check)
