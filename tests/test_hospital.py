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

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "notebooks" / "hospital.ipynb"
#: Pages on the use of the library with one program each, of a table of `visits` and its `schema`.
PAGES = ["handing_over", "no_scaling", "persons"]


def program() -> str:
    cells = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    (page,) = (text for cell in cells if "(your-table)=" in (text := "".join(cell["source"])))
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return code


def stays(n: int = 900) -> pd.DataFrame:
    """A table as it comes: empty cells, dates as text, spellings that nobody declared, several rows a person."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "patient": [f"P-{number}" for number in rng.integers(0, n // 2, n)],
        "admitted": (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, n), "D")).strftime("%d %B %Y"),
        "age": rng.normal(60, 20, n).round(),
        "crp": rng.lognormal(1, 1, n),
        "sex": rng.choice(["F", "M", "f", "m "], n),
        "returned": rng.choice(["no", "yes"], n),
    })  # fmt: skip
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


def of_page(page: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / f"book/{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    return code


@pytest.mark.filterwarnings("ignore::dpforest.OutOfSchemaWarning")
@pytest.mark.parametrize("page", PAGES)
def test_the_program_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    visits = pd.DataFrame({
        "patient": rng.integers(0, 300, 600),
        "age": rng.integers(0, 100, 600),
        "stay": rng.geometric(0.2, 600),
        "ward": rng.choice(["surgery", "medicine", "eye"], 600),
        "returned": rng.choice(["no", "yes"], 600),
    })  # fmt: skip
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
        assert "0.4" in said
        assert names["account"].spent == 0.8
    else:
        card = Path("card.md").read_text(encoding="utf-8")
        assert "Not for decisions about a single patient." in card
        assert '"source": "secure"' in Path("model.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", [program(), *map(of_page, PAGES)], ids=["hospital", *PAGES])
def test_it_is_narrow_enough_for_the_page(code):
    assert max(map(len, code.splitlines())) <= 88
