"""The house as contributors meet it: what CONTRIBUTING.md, the forms and the workflow name is there; `make paper`."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from sphinx.pycode import ModuleAnalyzer
from test_floors import FLOORS

import dpforest
from dpforest.audit.report.settings import LEARNERS
from dpforest.registry import PAPERS, ROOM_OF
from tests import slow
from tools import lists, new_paper
from tools.loop_times import CI, STEPS
from tools.new_paper import MARK, PaperError

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(), flags=re.M))
#: Pages for readers and contributors, which name commands and paths.
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github/pull_request_template.md"]
FORMS = sorted(path.name for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


def make_commands(text: str) -> set[str]:
    """The targets that a text says to make, in code or as a line of a script."""
    said = re.findall(r"(?:`|\$ |^)make((?: [a-z][a-z-]*)+)", text, flags=re.M)
    return {target for words in said for target in words.split()}


def paths(text: str) -> set[str]:
    """The files and folders that a text names in code, seen from the top; a name in capitals stands for any."""
    quoted = re.findall(r"`([\w.{}*-]+(?:/[\w.{}*-]*)+|[\w-]+\.(?:md|yml|yaml|toml|py|txt|cff))`", text)
    return {path.replace("KEY", "edprf") for path in quoted}


# -- pages, forms, workflow ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_a_page_names_exist(page):
    assert make_commands((ROOT / page).read_text()) <= TARGETS


def test_the_makefile_says_all_its_targets_are_phony():
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), flags=re.M)
    assert phony
    assert set(phony[1].replace("\\", "").split()) == TARGETS


def test_every_test_that_is_listed_as_slow_exists():
    assert slow.listed() <= slow.functions(), "take what is gone off tests/slow.txt, or run `make slow`"
    assert slow.name("tests/test_a.py::TestB::test_c[x/y-[1]]") == "test_a.py::TestB::test_c"


def test_paths_that_the_map_names_exist():
    named = paths(CONTRIBUTING)
    assert {path for path in named if not list(ROOT.glob(path))} == set()
    assert "dpforest/papers/edprf.py" in named


def test_a_wrong_command_and_a_wrong_path_are_seen():
    assert make_commands("`make render record` and\n    $ make tests\n`make paper KEY=x`") == {
        "render",
        "record",
        "tests",
        "paper",
    }
    assert paths("`dpforest/nowhere.py`, `tests/test_KEY.py`, `x/y/`, `print(1)`, `house.md`, `a.b`") == {
        "dpforest/nowhere.py",
        "tests/test_edprf.py",
        "x/y/",
        "house.md",
    }


def test_the_picture_of_the_house_has_every_room():
    picture = CONTRIBUTING.partition("```text\n")[2].partition("```")[0]
    lines = [re.split(r"\s{2,}", line) for line in picture.splitlines()]
    drawn = {floor: set(rooms.split()) for floor, rooms, _ in lines}
    expected = {str(floor): {room for room in FLOORS if FLOORS[room] == floor} for floor in FLOORS.values()}
    expected["0"] -= {"_version"}  # a number
    assert drawn == expected


def test_the_times_that_are_wanted_are_those_that_are_measured():
    table = [f"| {said} | {f'{m:g} min' if m >= 1 else f'{60 * m:g} s'} |" for said, _, m, *_ in (*STEPS, CI)]
    assert "\n".join(table) in CONTRIBUTING


@pytest.mark.parametrize("form", FORMS)
def test_issue_forms_ask_for_what_is_needed(form):
    said = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / form).read_text())
    assert said.keys() >= {"name", "description", "body"}
    asked = [field for field in said["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in said["body"]} <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    names = [field["id"] for field in asked]
    assert len(names) == len(set(names))
    assert all(field["attributes"]["label"] for field in asked)
    assert any(field.get("validations", {}).get("required") for field in asked)
    assert "data" in names
    attached = " ".join(str(field["attributes"]) for field in asked)
    assert form == "paper.yml" or ("command" in names and "ledger" in attached)


def test_there_is_a_form_for_each_kind():
    assert FORMS == ["bug.yml", "claim.yml", "paper.yml"]
    assert yaml.safe_load((GITHUB / "ISSUE_TEMPLATE/config.yml").read_text()).keys() <= {
        "blank_issues_enabled",
        "contact_links",
    }


def test_the_workflow_runs_book_and_every_test_on_every_python_that_is_supported():
    said = yaml.safe_load((GITHUB / "workflows/nightly.yml").read_text())
    job = said["jobs"]["check"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert set().union(*map(make_commands, commands)) <= TARGETS
    assert {"make book", "make test-all"} <= set(commands)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [line.rsplit(" ", 1)[1] for line in project["classifiers"] if re.search(r":: Python :: \d\.\d", line)]
    assert job["strategy"]["matrix"]["python"] == versions
    assert project["requires-python"] == f">={versions[0]},<3.{int(versions[-1].split('.')[1]) + 1}"
    assert all(job in said["jobs"] for one in said["jobs"].values() for job in [one.get("needs", "check")])


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_a_workflow_is_pinned_bounded_and_asks_for_no_more_than_it_needs(path):
    """Actions by commit, with the version beside it; least rights; an end to each job; targets that exist."""
    text = path.read_text()
    said = yaml.safe_load(text)
    assert said["permissions"] == {"contents": "read"}
    assert said["concurrency"].keys() == {"group", "cancel-in-progress"}
    # a called workflow has its caller's name, and would wait for itself in the caller's group
    assert said["concurrency"]["group"] == f"{path.stem}-${{{{ github.ref }}}}"
    for uses in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\./\.github/workflows/\w+\.yml", uses), uses
        assert not uses.startswith("./") or (ROOT / uses).exists()
    for name, job in said["jobs"].items():
        assert "uses" in job or job["timeout-minutes"] <= 120, name
        assert {*job.get("permissions", {})} <= {"contents", "pages", "id-token"}
        assert "uses" in job or "id-token" not in job.get("permissions", {}) or "environment" in job, name
        for step in job.get("steps", ()):
            if "checkout@" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False
            assert make_commands(step["run"]) <= TARGETS if "run" in step else True
            assert "${{" not in step.get("run", ""), "an event's text must reach a shell by a variable"
    assert {job["needs"] for job in said["jobs"].values() if "needs" in job} <= said["jobs"].keys()


def test_a_release_is_whole_before_it_is_published():
    jobs = yaml.safe_load((GITHUB / "workflows/release.yml").read_text())["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["build"]["needs"] == "whole"
    assert jobs["whole"]["uses"] == "./.github/workflows/nightly.yml"
    assert 'make dist TAG="$GITHUB_REF_NAME"' in [step.get("run") for step in jobs["build"]["steps"]]
    assert "password" not in (GITHUB / "workflows/release.yml").read_text().replace("stored password", "")


def test_hooks_call_the_tools_of_the_environment():
    said = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repo["repo"] for repo in said["repos"]] == ["local"], "a hook of another repository would be downloaded"
    made = (ROOT / "Makefile").read_text()
    lint = made.partition("\nLINT = ")[2].partition("\n")[0]
    assert all("$(LINT)" in made.partition(f"\n{target}:")[2].partition("\n\n")[0] for target in ("lint", "check"))
    for hook in said["repos"][0]["hooks"]:
        tool = hook["entry"].split()[0]
        assert tool.startswith(".venv/bin/")
        assert tool.replace(".venv/bin", "$(BIN)") in lint


# -- lists made from the registry ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "name"), lists.LISTS)
def test_lists_are_current(page, name):
    text = (ROOT / page).read_text()
    assert text == lists.rewritten(text, page, name), "run make lists"


def test_each_estimator_has_its_page():
    pages = lists.pages()
    assert {path: path.read_text() for path in (ROOT / lists.ESTIMATORS).iterdir()} == pages, "run make lists"
    assert {path.stem for path in pages} == {name for names in PAPERS.values() for name in names}


def test_a_list_that_is_stale_is_seen_and_one_without_its_comments_refused():
    page = "dpforest/audit/report/settings.py"
    stale = "import a\nfrom dpforest.papers.nowhere import No\n\n# learners: written by make lists\n# end of learners\n"
    fresh = lists.rewritten(lists.rewritten(stale, page, "imports"), page, "learners")
    assert "import a\nfrom dpforest.papers.aim import AIMClassifier\n" in fresh
    assert "lists\n    EDPRFClassifier,\n" in fresh
    assert "nowhere" not in fresh
    with pytest.raises(ValueError, match="needs lines of '<!-- learners"):
        lists.rewritten("| Learner |\n", "README.md", "learners")


def test_the_registry_is_what_the_library_has():
    assert lists.papers() == PAPERS
    papers = {path.stem for path in (ROOT / "dpforest/papers").glob("*.py")} - {"__init__"}
    assert PAPERS.keys() == papers | ROOM_OF.keys()
    assert not papers & ROOM_OF.keys()
    assert lists.homes() == {key: ROOM_OF.get(key, f"papers.{key}") for key in PAPERS}
    estimators = {name for names in PAPERS.values() for name in names}
    assert estimators <= set(dpforest.__all__), "dpforest/__init__.py does not offer it"
    assert estimators == {kind.__name__ for kind in LEARNERS.values()}, "the audit does not know it"


def test_a_paper_is_cited_by_its_name_and_year():
    assert lists.cited("A: what it is (B and C, VLDB 2012): more, 1999.") == "A, 2012"
    assert lists.cited("The tree of D (patent, filed 2020).") == "The tree of D, 2020"
    assert lists.cited("A: nobody knows when.") == "A"


# -- how chapters open -----------------------------------------------------------------------------------------------

HEAD = ["Question", "Answer", "Needed", "In 20 minutes"]
TOC = {part["caption"]: part["chapters"] for part in yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]}
CHAPTERS = [
    Path(chapter["file"]).stem
    for part in ("Learn it", "Forests", "Ancestors")
    for chapter in TOC[part]
    if chapter["file"] != "book/reading"
] + ["scaling", "evaluation", "inspecting", "comparison", "auditing", "attacks", "machine_checked"]


def anchors(text: str) -> set[str]:
    """The sections and labels of a chapter that can be linked to."""
    headings = re.findall(r"^#{2,3} (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), flags=re.M)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, flags=re.M))


def faults_of_head(text: str) -> list[str]:
    """What is wrong with the box below a chapter's title: its parts, its length, where its links lead."""
    found = re.match(r"# .+\n\n:::\{admonition\} In short\n:class: chapter-head\n\n(.+?)\n:::\n\n", text, flags=re.S)
    if not found:
        return ["no box right under the title"]
    parts = re.findall(r"^\*(.+?)\.\* (.+)$", found[1], flags=re.M)
    if [name for name, _ in parts] != HEAD or len(found[1].split("\n\n")) != len(HEAD):
        return ["not the four parts in their order"]
    said = {name: re.sub(r"\{[\w:]+\}`[^`]*`", "X", words) for name, words in parts}
    faults = []
    if said["Question"].count("?") != 1 or not said["Question"].endswith("?"):
        faults.append("not one question")
    sentences = re.split(r"(?<=[.?!])\*? +(?=[A-Z*])", said["Answer"])
    if len(sentences) > 3 or len(said["Answer"].split()) > 75:
        faults.append("an answer of more than three lines")
    links = re.findall(r"\]\(#([^)]*)\)", dict(parts)["In 20 minutes"])
    faults += [f"no section #{link}" for link in links if link not in anchors(text)]
    return faults + ([] if links else ["no section to read"])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_says_first_what_it_is_about(chapter):
    assert faults_of_head((ROOT / f"book/{chapter}.md").read_text()) == []


#: The path through the core that book/reading.md names, and most words of it.
CORE, MOST_WORDS = ("privacy", "mechanisms", "scores", "budgets", "tree", "edprf"), 25_000
#: What stands between fences and is read like the text around it; all else there is code, a formula or a figure.
_READ = re.compile(r"\{(?:admonition|prf|dropdown|tab|note|tip|warning|important)")


def words(page: str) -> int:
    """How many words a reader reads: without code, figures and exercises; a formula or a reference is one word."""
    lines: list[str] = []
    fences: list[tuple[str, bool]] = []  # the marks of those that are open, and whether what is inside is read
    for line in re.sub(r"\n## Exercises\n.*?(?=\n## |\Z)", "", page, flags=re.DOTALL).splitlines():
        marks, rest = re.match(r"\s*(`{3,}|:{3,}|)(.*)", line).groups()  # type: ignore[union-attr]
        reads = all(read for _, read in fences)
        if marks and fences and fences[-1][0] == marks and not rest.strip():
            fences.pop()
        elif marks:
            fences.append((marks, reads and bool(_READ.match(rest))))
            lines.append(rest.partition("}")[2] if fences[-1][1] else "")
        elif reads and not re.match(r"\s*:[\w-]+:", line):
            lines.append(line)
    assert not fences, f"still open: {fences}"
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", " formula ", "\n".join(lines), flags=re.DOTALL)
    return len(re.findall(r"\S*\w\S*", re.sub(r"\{[\w:]+\}`[^`]*`", "reference", text)))


def test_the_core_can_be_finished():
    text = (ROOT / "book" / "reading.md").read_text()
    path = text.partition("The path through the core is")[2].partition(";")[0]
    assert tuple(re.findall(r"\{doc\}`(\w+)`", path)) == CORE
    assert sum(words((ROOT / "book" / f"{name}.md").read_text()) for name in CORE) <= MOST_WORDS


def test_words_are_counted_as_they_are_read():
    page = (
        "# A head\n\n:::{prf:theorem} Its title\n:label: thm-x\n\nOne $a\n+ b$ two.\n:::\n\n```python\nno = 1\n```\n"
        "````{tab-item} Tab\n```{glue:any} fig\n:doc: x\n```\nSee {doc}`there <x>`.\n````\n\n"
        "## Exercises\n\nnot these\n\n## Appendix\n\nthese\n"
    )
    assert words(page) == 12  # A head, Its title, One formula two, Tab, See reference, Appendix these
    with pytest.raises(AssertionError, match="still open"):
        words(":::{note}\n")


def test_a_head_that_says_too_little_or_too_much_is_seen():
    text = (ROOT / "book/edprf.md").read_text()
    assert faults_of_head(text.replace("In short", "In long", 1)) == ["no box right under the title"]
    assert faults_of_head(text.replace("*Needed.*", "*Nedded.*", 1)) == ["not the four parts in their order"]
    assert faults_of_head(text.replace("*Question.* ", "*Question.* Why? ", 1)) == ["not one question"]
    assert faults_of_head(text.replace("*Answer.* ", "*Answer.* It is. ", 1)) == ["an answer of more than three lines"]
    assert faults_of_head(text.replace("(#what-holds)", "(#what-held)", 1)) == ["no section #what-held"]


# -- the symbols -----------------------------------------------------------------------------------------------------

BOOK = {path.stem: path.read_text() for path in sorted((ROOT / "book").glob("*.md"))}
LABELS = {label: page for page, text in BOOK.items() for label in re.findall(r"^:label: ([\w-]+)$", text, flags=re.M)}


def symbols(text: str) -> list[list[str]]:
    """The rows of the tables: symbol, meaning, where it is introduced, its name in the code."""
    return [line[2:-1].split(" | ") for line in text.splitlines() if line.startswith("| $")]


def faults_of_symbol(row: list[str]) -> list[str]:
    """What a row points at and is not there: blocks, sections, the symbol itself on that page, names of code."""
    if len(row) != 4:
        return ["not four cells"]
    symbol, meaning, place, code = row
    pages = [LABELS.get(label, "") for label in re.findall(r"\{prf:ref\}`([\w-]+)`", place)]
    for page, section in re.findall(r"\]\((\w+)\.md#([\w-]+)\)", place):
        pages.append(page if section in anchors(BOOK.get(page, "")) else "")
    faults = [] if len(pages) == 1 and pages[0] else [f"no place {place.strip()}"]
    labels = re.findall(r"\{prf:ref\}`([\w-]+)`", meaning)
    faults += [f"no block {label}" for label in labels if label not in LABELS]
    faults += [f"no page {page}" for page in re.findall(r"\{doc\}`(\w+)`", meaning) if page not in BOOK]
    for tex in re.findall(r"\$(.+?)\$", symbol):
        if not faults and tex.partition("(")[0] not in BOOK[pages[0]]:
            faults.append(f"no {tex} on {pages[0]}")
    for name in re.findall(r"\{py:\w+\}`~([\w.]+)`", code):
        try:
            pkgutil.resolve_name(name)
        except (AttributeError, ImportError):
            faults.append(f"no {name}")
    for parameter, name in re.findall(r"`(\w+)` of `(\w+)`", code):
        if parameter not in getattr(dpforest, name)().get_params():
            faults.append(f"no {parameter} of {name}")
    return faults


@pytest.mark.parametrize("row", symbols(BOOK["symbols"]), ids=lambda row: row[0].strip())
def test_a_symbol_is_where_its_row_says(row):
    assert faults_of_symbol(row) == []


def test_each_symbol_has_one_row():
    found = [tex for row in symbols(BOOK["symbols"]) for tex in re.findall(r"\$(.+?)\$", row[0])]
    assert len(found) > 50
    assert len(found) == len(set(found))


def test_a_row_that_points_nowhere_is_seen():
    good = ["$\\lambda$", "a rate", "[](mechanisms.md#setting)", "{py:func}`~dpforest.mechanisms.permute_and_flip`"]
    wrong = {
        1: ("{prf:ref}`thm-no`, {doc}`nowhere`", ["no block thm-no", "no page nowhere"]),
        2: ("[](mechanisms.md#settings)", ["no place [](mechanisms.md#settings)"]),
        3: ("{py:func}`~dpforest.mechanisms.flip`", ["no dpforest.mechanisms.flip"]),
        0: ("$\\aleph$", ["no \\aleph on mechanisms"]),
    }
    assert faults_of_symbol(good) == []
    for cell, (words, faults) in wrong.items():
        assert faults_of_symbol([*good[:cell], words, *good[cell + 1 :]]) == faults
    assert faults_of_symbol([*good[:3], "`height` of `EDPRFClassifier`"]) == ["no height of EDPRFClassifier"]


# -- a new paper -----------------------------------------------------------------------------------------------------


def unfinished(root: Path) -> list[str]:
    """Places of the library, the book, the tests and the notebooks that still say what is to be done there."""
    found = []
    for pattern in ("dpforest/**/*.py", "book/*.md", "book/*.bib", "tests/test_*.py", "notebooks/*.ipynb", "README.md"):
        for path in sorted(root.glob(pattern)):
            text = path.read_text()
            if path.suffix == ".ipynb":  # what was written, not what was drawn
                text = "".join("".join(cell["source"]) + "\n" for cell in json.loads(text)["cells"])
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(rf"\b{MARK}\b", line):
                    found.append(f"{path.relative_to(root)}:{number}")
    return found


def test_the_formatter_lays_the_code_out():
    """But for a few wide tables of tests, which it would make many pages long."""
    skipped = Counter(
        path.relative_to(ROOT).parts[0]
        for folder in ("dpforest", "tests", "notebooks", "benchmarks", "book")
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"#\s*fmt:\s*(?:skip|off)\b", line)
    )
    assert skipped.keys() <= {"tests"}
    assert skipped.total() < 40


def test_nothing_is_left_to_do():
    assert unfinished(ROOT) == []


@pytest.fixture
def clone(tmp_path):
    """The files that `make paper` reads and changes."""
    for name in [lists.REGISTRY, new_paper.TOC, new_paper.BIBLIOGRAPHY]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ["dpforest/papers", "tests", "notebooks"]:
        (tmp_path / name).mkdir()
    for name in ["book/tree.md", "tests/test_schema.py", "notebooks/tuning.ipynb"]:
        (tmp_path / name).write_text('{"cells": []}')
    return tmp_path


def everything(root: Path) -> dict[Path, str]:
    return {path.relative_to(root): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_a_paper_goes_in_and_out_again(clone):
    before = everything(clone)
    written = new_paper.add(clone, "of_a_test", "OfATest")
    assert lists.papers(clone)["of_a_test"] == ("OfATestClassifier",)
    toc = {part["caption"]: part["chapters"] for part in yaml.safe_load((clone / "_toc.yml").read_text())["parts"]}
    assert toc["Forests"][-1] == {"file": "book/of_a_test", "sections": [{"file": "notebooks/rendered/of_a_test"}]}
    assert (clone / "book/references.bib").read_text().count("{of_a_test,") == 1
    assert everything(clone).keys() - before.keys() == set(written[:4])
    text = "".join(everything(clone)[path] for path in written[:4])
    assert not re.search("newpaper|new-paper|NewPaper", text)
    assert ":label: thm-of-a-test" in text
    assert set(new_paper.take_out(clone, "of_a_test")) == set(written)
    assert everything(clone) == before


def test_each_of_a_papers_files_is_found_unfinished(clone):
    before = unfinished(clone)
    written = new_paper.add(clone, "of_a_test", "OfATest")
    places = {Path(place.rsplit(":", 1)[0]) for place in unfinished(clone) if place not in before}
    assert places == {*written[:4], new_paper.BIBLIOGRAPHY}


def test_a_paper_that_was_worked_on_stays(clone):
    new_paper.add(clone, "of_a_test", "OfATest")
    (clone / "book/of_a_test.md").write_text("# Of a test\n")
    before = everything(clone)
    with pytest.raises(PaperError, match=r"book/of_a_test\.md: no longer as"):
        new_paper.take_out(clone, "of_a_test")
    with pytest.raises(PaperError, match="there is no paper 'axe'"):
        new_paper.take_out(clone, "axe")
    assert everything(clone) == before


@pytest.mark.parametrize(
    ("key", "name", "why"),
    [
        ("", "OfATest", "KEY='' names a module"),
        ("OfATest", "OfATest", "small letters"),
        ("lumber-jack", "OfATest", "small letters"),
        ("../jack", "OfATest", "small letters"),
        ("2020", "OfATest", "small letters"),
        ("class", "OfATest", "small letters"),
        ("of_a_test", "", "CLASS='' names the estimator"),
        ("of_a_test", "lumberjack", "as in CLASS=Lumberjack"),
        ("of_a_test", "Lumber jack", "as in CLASS=Lumberjack"),
        ("of_a_test", "Classifier", "says nothing of the paper"),
        ("of_a_test", "LumberjackRegressor", "start from one, and change its base"),
        ("edprf", "OfATest", "there is a paper 'edprf', with EDPRFClassifier"),
        ("of_a_test", "EDPRF", "EDPRFClassifier is of the paper 'edprf'"),
        ("tree", "OfATest", r"there is already book/tree\.md"),
        ("schema", "OfATest", r"there is already tests/test_schema\.py"),
        ("tuning", "OfATest", r"there is already notebooks/tuning\.ipynb"),
        ("rivals", "OfATest", r"_toc\.yml has a page 'rivals'"),
        ("dwork2014algorithmic", "OfATest", r"references\.bib has an entry"),
    ],
)
def test_names_that_cannot_be_used_are_refused(clone, capsys, key, name, why):
    before = everything(clone)
    with pytest.raises(PaperError, match=why):
        new_paper.add(clone, key, name)
    assert new_paper.main([key, name], clone) == 1
    assert re.search(why, capsys.readouterr().err)
    assert everything(clone) == before


@pytest.mark.parametrize("path", sorted((ROOT / "dpforest").rglob("*.py")), ids=lambda path: path.stem)
def test_sphinx_can_read_the_code_that_chapters_show(path):
    """What it cannot read it leaves out of a chapter."""
    ModuleAnalyzer.for_file(str(path), path.stem).analyze()


@pytest.mark.parametrize("room", ["papers", "scores", "budgets"])
def test_examples_in_docstrings_say_what_is_printed(room):
    root = importlib.import_module(f"dpforest.{room}")
    names = [info.name for info in pkgutil.walk_packages(getattr(root, "__path__", []), f"dpforest.{room}.")]
    ran = [doctest.testmod(module) for module in (root, *map(importlib.import_module, names))]
    assert not sum(found.failed for found in ran)
    assert sum(found.attempted for found in ran)


def test_a_glued_word_has_a_format():
    """Without one MyST takes the end of the path for it, and finds nothing; it says so only when the book is built."""
    bare = re.compile(r"\{glue:text\}`[^`]*::[^`:]+`")
    assert [found for page in (ROOT / "book").glob("*.md") for found in bare.findall(page.read_text())] == []
    assert bare.search("{glue:text}`../notebooks/rendered/a.ipynb::b`")
