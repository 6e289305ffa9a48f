"""The program for a table of one's own, on the page of the hospital, runs as it is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpforest

PAGE = Path(__file__).resolve().parent.parent / "notebooks" / "hospital.ipynb"


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

    assert "left 0" in capsys.readouterr().out
    released = dpforest.load("model.json")
    assert released.guarantee_.epsilon == 0.8
    assert "seed" not in str(released.guarantee_)
    assert (released.predict_proba(names["table"]) == names["model"].predict_proba(names["table"])).all()
    card = Path("card.md").read_text(encoding="utf-8")
    assert str(names["score"]).splitlines()[1] in card
    assert not any(person in card for person in table["patient"])


def test_it_is_narrow_enough_for_the_page():
    assert max(map(len, program().splitlines())) <= 88
