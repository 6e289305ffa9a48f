"""Programs for a table of one's own run as they are printed: the hospital's, and those of the pages under *Use it*."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpforest
from dpforest import Schema
from dpforest.learners import persons

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "notebooks" / "hospital.ipynb"
#: Pages on the use of the library with one program each, of a table of `visits` and its `schema`.
PAGES = ["handing_over", "no_scaling", "persons"]


def program() -> str:
    cells = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    (page,) = (text for cell in cells if "## A table of your own" in (text := "".join(cell["source"])))
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return code


def stays(n: int = 900) -> pd.DataFrame:
    """A table as it comes: empty cells, dates as text, spellings that nobody declared, several rows a person."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "patient": [f"P-{number}" for number in rng.integers(0, n // 2, n)],
            "admitted": (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, n), "D")).strftime(
                "%Y-%m-%d"
            ),
            "age": rng.normal(60, 20, n).round(),
            "crp": rng.lognormal(1, 1, n),
            "sex": rng.choice(["F", "M", "f", "m "], n),
            "returned": rng.choice(["no", "yes"], n),
        }
    )
    return table.mask(rng.random(table.shape) < [0, 0.02, 0.05, 0.2, 0.1, 0])


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
def test_the_program_for_a_table_of_ones_own_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = stays()
    table.to_csv("table.csv", index=False)
    names: dict = {}
    exec(compile(program(), str(PAGE), "exec"), names)

    printed = capsys.readouterr().out
    assert "left 0" in printed
    assert "a fit takes this table (for your eyes: do not release)" in printed
    assert "column 'sex': " in printed
    released = dpforest.load("model.json")
    assert released.guarantee_.epsilon == 0.8
    assert "seed" not in str(released.guarantee_)
    assert (released.predict_proba(names["table"]) == names["model"].predict_proba(names["table"])).all()
    card = Path("card.md").read_text(encoding="utf-8")
    assert str(names["score"]).splitlines()[1] in card
    assert not any(person in card for person in table["patient"])


#: First rows that another one's cells must not feel, by what they do to a reader that looks at whole columns.
ODD = {
    "a date in another order": {"admitted": "31.12.2024"},
    "a date with a time": {"admitted": "2024-01-02 10:30"},
    "no date": {"admitted": "soon"},
    "a person with a letter": {"patient": "A12"},
    "a number with a point": {"patient": "9.5"},
    "a spelling": {"sex": "true"},
}
DATES = {"ISO": "%Y-%m-%d", "day first": "%d.%m.%Y"}


def neighbours(code: str, odd: dict[str, str], dates: str, folder: Path) -> list[tuple[Schema, pd.DataFrame]]:
    """The schema of the program, and its table as far as it goes, of a file with and without its first row."""
    rng = np.random.default_rng(1)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, 60), "D")
    table = pd.DataFrame(
        {
            "patient": rng.choice(["007", "7", "08", "8", "12"], 60),
            "admitted": days.strftime(dates),
            "age": rng.integers(0, 100, 60).astype(str),
            "crp": rng.choice(["1", "2.50", "1e2", ""], 60),
            "sex": rng.choice(["F", "M", "f"], 60),
            "returned": rng.choice(["no", "yes"], 60),
        }
    )
    table.loc[0, [*odd]] = [*odd.values()]
    found = []
    for rows in (table, table[1:]):
        rows.to_csv(folder / "table.csv", index=False)
        names: dict = {}
        exec(compile(code.split("aside = ")[0], str(PAGE), "exec"), names)  # all that comes before a record is counted
        found.append((names["schema"], names["table"]))
    return found


def change(code: str, odd: dict[str, str], dates: str, folder: Path) -> tuple[int, int]:
    """By how much the histogram of days changes when the first row leaves, and how many of the others change their day.

    Noise at rate epsilon makes the first number times epsilon of it: the loss, exactly.
    """
    (schema, whole), (_, rest) = neighbours(code, odd, dates, folder)
    place = schema.columns.index("day")
    one, other = (schema.encode(table, 254).codes[place] for table in (whole, rest))
    counts = [np.bincount(codes, minlength=255) for codes in (one, other)]
    return int(np.abs(counts[0] - counts[1]).sum()), int((one[1:] != other).sum())


def felt(code: str, odd: dict[str, str], dates: str, folder: Path) -> bool:
    """Whether the first row changes a code of another one, or who is one person with whom."""
    (schema, whole), (_, rest) = neighbours(code, odd, dates, folder)
    codes = [schema.encode(table, 32).codes for table in (whole, rest)]
    same = [persons.identify(table["patient"]).places for table in (whole[1:], rest)]
    return not np.array_equal(codes[0][:, 1:], codes[1]) or not np.array_equal(
        *(each[:, None] == each[None, :] for each in same)
    )


@pytest.mark.parametrize("dates", DATES.values(), ids=DATES)
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_no_record_of_the_program_is_felt_by_another(odd, dates, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not felt(program().replace("%Y-%m-%d", dates), odd, dates, tmp_path)


@pytest.mark.filterwarnings("ignore")  # pandas says that it guesses
@pytest.mark.parametrize(
    ("guess", "odd", "dates"),
    [
        (', format="%Y-%m-%d"', {"admitted": "31.12.2024"}, "%d.%m.%Y"),
        (', format="%Y-%m-%d"', {"admitted": "2024-01-02 10:30"}, "%Y-%m-%d"),
        (", dtype=str", {"patient": "A12"}, "%Y-%m-%d"),
    ],
)
def test_a_guess_of_the_reader_would_be_felt(guess, odd, dates, tmp_path, monkeypatch):
    """The test above can fail: without one of its words, the program lets one row change the others."""
    monkeypatch.chdir(tmp_path)
    assert guess in program()
    assert felt(program().replace(guess, ""), odd, dates, tmp_path)


@pytest.mark.filterwarnings("ignore")  # pandas says that it guesses
def test_what_a_guess_costs(tmp_path, monkeypatch):
    """A histogram of days loses epsilon, and with guessed dates as many more epsilons as its counts change by."""
    monkeypatch.chdir(tmp_path)
    dates, odd = "%d.%m.%Y", {"admitted": "31.12.2024"}
    assert change(program().replace("%Y-%m-%d", dates), odd, dates, tmp_path) == (1, 0)
    lost, moved = change(program().replace(', format="%Y-%m-%d"', ""), odd, dates, tmp_path)
    assert moved > 10
    assert 1 < lost <= 2 * moved + 1


#: What looks at a whole column for what a cell means, and the word that stops it.
GUESSES = {"to_datetime": "format=", "read_csv": "dtype=", "read_excel": "dtype=", "read_json": "dtype="}
#: What has no such word: it numbers or divides by the values that occur.
NUMBERED = ("qcut", "factorize", "get_dummies", "cat.codes")


def guesses(code: str) -> list[str]:
    """The calls of a program for a table of one's own whose answer to a cell may depend on other cells."""
    found = []
    for call in re.finditer(rf"\b({'|'.join(GUESSES)})(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))", code):
        if GUESSES[call[1]] not in call[2]:
            found.append(call[0])
    return found + [name for name in NUMBERED if f".{name}" in code]


def shown() -> dict[str, str]:
    """All code that the book, the notebooks and the library's docstrings show, by its file."""
    found = {}
    for path in [ROOT / "README.md", *ROOT.glob("book/**/*.md")]:
        found[str(path)] = "\n".join(
            re.findall(r"```[^\n]*python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        )
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found[str(path)] = "\n".join("".join(cell["source"]) for cell in cells)
    for path in ROOT.glob("dpforest/**/*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        found[str(path)] = "\n".join(line for line in lines if line.lstrip().startswith((">>> ", "... ")))
    return found


def test_no_code_that_is_shown_lets_a_reader_guess():
    # rows that are made up are encoded for a learner without privacy there
    allowed = {str(ROOT / "notebooks" / "diffgen.ipynb"): ["get_dummies"]}
    assert {path: calls for path, code in shown().items() if (calls := guesses(code))} == allowed
    assert sum("to_datetime(" in code for code in shown().values()) >= 1


def test_a_guess_is_found():
    assert guesses('pd.to_datetime(table["a"].str.strip()) - pd.Timestamp("2024-01-01")')
    assert guesses('pd.read_csv("table.csv")')
    assert guesses('table["a"].astype("category").cat.codes')
    assert not guesses('pd.to_datetime(f(g(a)), format="%Y-%m-%d")\npd.read_csv("a", dtype=str)')


def of_page(page: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / f"book/{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    return code


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
@pytest.mark.parametrize("page", PAGES)
def test_the_program_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    visits = pd.DataFrame(
        {
            "patient": rng.integers(0, 300, 600),
            "age": rng.integers(0, 100, 600),
            "stay": rng.geometric(0.2, 600),
            "ward": rng.choice(["surgery", "medicine", "eye"], 600),
            "returned": rng.choice(["no", "yes"], 600),
        }
    )
    wards = ["surgery", "medicine", "eye"]
    schema = Schema(numeric={"age": (0, 110), "stay": (0, 60)}, categorical={"ward": wards}, classes=["no", "yes"])
    names: dict = {"visits": visits, "schema": schema}
    exec(compile(of_page(page), page, "exec"), names)

    released = names["model"].guarantee_
    assert released.source == "secure"
    said = capsys.readouterr().out
    if page == "no_scaling":
        assert (released.epsilon, released.max_rows) == (1.0, None)
        return
    assert (released.epsilon, released.max_rows) == (0.8, 2)
    assert "for a person of at most 2 rows" in said
    if page == "persons":
        assert float(said.split()[-1]) == pytest.approx(0.4)  # a sum of as many losses as a secure fit happens to have
        assert names["account"].spent == 0.8
    else:
        card = Path("card.md").read_text(encoding="utf-8")
        assert "Not for decisions about a single patient." in card
        assert '"source": "secure"' in Path("model.json").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
def test_the_program_for_many_codes_runs_on_registers_of_real_size(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 30_000  # the program's noise is secure: so many that it says little
    letters, numbers = rng.choice(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), n), rng.integers(0, 1000, n)
    diagnoses = [f"{one}{two // 10:02d}.{two % 10}" for one, two in zip(letters, numbers, strict=True)]
    ill = letters == "I"
    visits = pd.DataFrame(
        {
            "age": rng.integers(0, 100, n).astype(str),
            "diagnosis": diagnoses,
            "postcode": [f"{code:05d}" for code in rng.integers(0, 100_000, n)],
            "occupation": rng.choice([*map(str, range(1000, 9700)), "student", "unknown"], n),
            "returned": np.where(ill ^ (rng.random(n) < 0.05), "yes", "no"),
        }
    )
    assert all(visits[name].nunique() > 2000 for name in ("diagnosis", "postcode", "occupation"))
    names: dict = {"visits": visits}
    exec(compile(of_page("many_codes"), "many_codes", "exec"), names)
    served, schema = names["served"], names["schema"]
    assert served.schema_.with_grid("even") == schema
    assert len(schema.categorical["diagnosis"]) == 22
    heart, other = served.predict_proba([names["patient"], names["patient"] | {"diagnosis": "J18"}])[:, 1]
    assert heart > 0.5 > other
    assert capsys.readouterr().out.startswith("[[")


@pytest.mark.parametrize(
    "code", [program(), *map(of_page, [*PAGES, "many_codes"])], ids=["hospital", *PAGES, "many_codes"]
)
def test_it_is_narrow_enough_for_the_page(code):
    assert max(map(len, code.splitlines())) <= 88
