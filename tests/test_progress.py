"""A long fit shows how far it is, where somebody watches, and nowhere else."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time

import pytest
from shared import MIXED, table

from dpforest import DiffPETsClassifier, DPsAdaBoostClassifier
from dpforest.learners import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in the place of standard error; called by the test, for a fixture's would be taken away again."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    return terminal


def fit(kind, **options):
    return kind(schema=MIXED, random_state=0, **options).fit(*table(60))


@pytest.mark.parametrize(
    ("kind", "options", "bar"),
    [
        (DiffPETsClassifier, {"n_estimators": 2, "max_depth": 3}, "0/3"),
        (DPsAdaBoostClassifier, {"n_estimators": 4, "max_depth": 2}, "0/4"),  # its rounds, not the levels of each
    ],
)
def test_a_long_fit_is_shown_on_a_terminal(kind, options, bar, monkeypatch):
    terminal = watched(monkeypatch)
    quick = fit(kind, **options)
    assert not terminal.getvalue()  # it was over before
    monkeypatch.setattr(progress, "SECONDS", -1.0)
    slow = fit(kind, **options)
    assert bar in terminal.getvalue()
    assert ("rounds" in terminal.getvalue()) != ("levels" in terminal.getvalue())
    assert slow.to_dict(seeded=True) == quick.to_dict(seeded=True)


def test_nothing_is_shown_where_nobody_watches_or_wants_it(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", -1.0)
    monkeypatch.setattr(sys, "stderr", plain := io.StringIO())
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert list(progress.shown(range(3), 3, "levels")) == [0, 1, 2]
    assert not plain.getvalue()
    terminal = watched(monkeypatch)
    assert list(progress.shown(range(3), 3, "levels")) == [0, 1, 2]
    assert "0/3" in terminal.getvalue()
    assert "levels" in terminal.getvalue()
    before = terminal.getvalue()
    monkeypatch.setattr(progress, "SECONDS", 1e9)
    assert list(progress.shown(range(3), 3, "levels")) == [0, 1, 2]
    assert terminal.getvalue() == before


@pytest.mark.parametrize("off", [False, True])
def test_a_kernel_shows_it_unless_its_environment_says_no(off):
    """As the kernels of renderings and of the notebooks' tests say: it would stand among the outputs."""
    program = (
        "import sys; from dpforest.learners import progress; progress.SECONDS = -1.0\n"
        "sys.modules['ipykernel'] = sys\n"
        "assert list(progress.shown(range(3), 3, 'levels')) == [0, 1, 2]"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | ({"TQDM_DISABLE": "1"} if off else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("levels" in done.stderr) != off


def test_a_first_item_that_takes_long_is_shown_too(monkeypatch):
    """One level of a million trees is most of a fit."""
    terminal = watched(monkeypatch)
    monkeypatch.setattr(progress, "SECONDS", 0.01)
    items = progress.shown(range(1), 1, "levels")
    assert next(items) == 0
    until = time.monotonic() + 30
    while "0/1" not in terminal.getvalue():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert list(items) == []
