"""The script that fills the tables of times: what it changes is there, and its verdicts are what the commands said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.declared import SHIPPED
from tools import loop_times
from tools.loop_times import ALONE, PLAIN, STEPS, Step

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.said)
def test_what_is_changed_is_there_once(step: Step, tmp_path: Path) -> None:
    if step.change is None:
        return
    copy = tmp_path / step.change[0]
    copy.parent.mkdir(parents=True)
    text = (ROOT / step.change[0]).read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    with loop_times.changed(tmp_path, step.change):
        now = copy.read_text(encoding="utf-8")
        assert now != text
        if copy.suffix == ".py":
            compile(now, copy.name, "exec")
    assert copy.read_text(encoding="utf-8") == text
    copy.write_text(text + text, encoding="utf-8")
    if step.change[1]:
        with pytest.raises(ValueError, match="has 2 places"), loop_times.changed(tmp_path, step.change):
            pass


@pytest.mark.parametrize(
    ("code", "minutes", "said", "expected"),
    [
        (0, 0.9, "build succeeded.", "green"),
        (0, 1.1, "build succeeded.", "too slow"),
        (2, 0.1, "build succeeded.", "red: ended with 2"),
        (0, 0.1, "14388 passed", "red: it does not say 'build succeeded'"),
        (0, 0.1, "build succeeded, 1180 warnings.", "red: it says 'build succeeded, 1180 warning'"),
    ],
)
def test_verdicts(code: int, minutes: float, said: str, expected: str) -> None:
    assert loop_times.verdict(PLAIN[0]._replace(wanted=1), code, minutes, said) == expected


def test_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line is printed when its command has ended, red or green, and the notebooks are named one by one."""
    (tmp_path / "clone" / "notebooks").mkdir(parents=True)
    (tmp_path / "clone" / "notebooks" / "a.ipynb").write_text('{"metadata": {}}')
    (tmp_path / "clone" / "page").write_text("one")
    steps = (
        Step("`true`", "true", 1),
        Step("`grep`", "grep two page", 1, ("page", "one", "two")),
        Step("`grep` again", "grep two page"),
        ALONE._replace(command="echo NOTEBOOKS", must_say="^notebooks/a.ipynb$"),
    )
    assert loop_times.table(steps, tmp_path / "clone") == 1
    lines = capsys.readouterr().out.split("|---|--:|--:|--:|---|\n")[1].splitlines()
    assert [line.split(" | ")[-1] for line in lines] == ["green |", "green |", "red: ended with 1 |", "green |"]
    assert lines[0].startswith("| `true` | 0.0 | 0.0 | ≤ 1 |")


def test_without_data_no_notebook_is_opened_that_reads_some() -> None:
    everything, without = (set(loop_times.notebooks(ROOT, flag)) for flag in (False, True))
    assert everything == {str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert everything - without == {"notebooks/diffgen.ipynb", "notebooks/evaluation.ipynb"}
    assert loop_times.BUNDLED == SHIPPED


def test_a_part_of_a_table_is_chosen_by_what_its_commands_contain() -> None:
    assert loop_times.chosen(loop_times.PLAIN, "") == loop_times.PLAIN
    assert [step.command.split()[-1] for step in loop_times.chosen(loop_times.PLAIN, "nbval notebooks")] == [
        "notebooks",
        "notebooks/ten_lines.ipynb",
    ]
    assert loop_times.chosen((loop_times.ALONE,), "pytest") == ()
    with pytest.raises(SystemExit, match="2"):
        loop_times.main(["--plain", "--only", "make book"])
