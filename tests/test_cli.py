"""The command line: what it says, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import dpforest.cli
from dpforest.audit.report.catalogue import NAMES, mechanism, subjects
from dpforest.audit.report.report import UNEXPECTED, Report
from dpforest.cli import main
from dpforest.learners.audited import Broken

ROOT = Path(__file__).resolve().parent.parent
SMALL = ("--scale", "small")


def lines(capsys, *argv: str) -> tuple[int, list[str]]:
    code = main(["audit", *argv])
    printed = capsys.readouterr()
    assert printed.err == ""
    return code, printed.out.splitlines()


def refused(capsys, *argv: str) -> str:
    """What is said of bad input: on the other stream, in one line, with exit code 2."""
    assert main(["audit", *argv]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" or printed.out.startswith(argv[0])
    return printed.err


# -- one audit -----------------------------------------------------------------------------------------------------


def test_a_sound_learner(capsys):
    code, said = lines(capsys, "edprf", "--epsilon", "1", "--relation", "add-remove", *SMALL)
    assert code == 0
    assert said[0] == "edprf, proved, add-remove, epsilon = 1"
    assert [line.split()[0] for line in said[1:]] == ["exact", "greybox", "statistical", "verdict"]
    assert "claim 1 under add-remove: holds; exact loss 0.9999" in said[1]
    assert "no finding" in said[2]
    assert "n = 2000 per side" in said[3]
    assert said[4] == "verdict      no violation found, by exact, greybox, statistical"


def test_a_published_learner_breaks_the_claim_of_its_paper(capsys):
    code, said = lines(capsys, "edprf", "--variant", "published", *SMALL)
    assert code == 1
    assert "VIOLATED; exact loss inf" in said[1]
    assert said[2].strip().startswith("on ")
    assert said[3].strip().startswith("against ")
    assert "against 0 of:" in said[4]
    assert any("leak: eDPRF algorithm 5, line 1 reads without a charge" in line for line in said)
    assert said[-2] == "verdict      VIOLATED, by exact, greybox, statistical"
    assert "to be expected" in said[-1]
    assert "cex-purity-stop" in said[-1]


@pytest.mark.slow
def test_a_published_learner_whose_claim_holds_under_one_relation(capsys):
    published = ("random-trees", "--variant", "published", "--layers", "exact")
    assert lines(capsys, *published, "--relation", "replace-one", *SMALL)[0] == 0
    assert lines(capsys, *published, "--relation", "add-remove", *SMALL)[0] == 1


@pytest.mark.slow
def test_learners_of_every_kind(capsys):
    """Those that cannot be replayed say so; regressors and linear models are audited like the rest."""
    for name, first in (("diffpets", "stop_margin=0.5"), ("diffpets-regressor", "stop_margin=0.5"), ("diff-lr", "")):
        option = ("--option", first) if first else ()
        code, said = lines(
            capsys, name, "--epsilon", "1", "--relation", "add-remove", "--records", "1", *option, *SMALL
        )
        assert code == 0
        assert said[0] == ", ".join(part for part in (name, first, "proved", "add-remove", "epsilon = 1") if part)
        assert "exact loss 1 " in said[1]
        assert said[-1] == "verdict      no violation found, by exact, greybox, statistical"
    poisson = ("diffpets", "--option", "sampling=poisson", "--features", "1", *SMALL)
    code, said = lines(capsys, *poisson)
    assert code == 0
    assert said[3].startswith("exact        not looked at: a Poisson number of copies")
    assert "leave out --layers exact" in refused(capsys, *poisson, "--layers", "exact")
    code, said = lines(capsys, "diffpets", "--variant", "published", "--layers", "exact", *SMALL)
    assert code == 1
    assert "pub-diffpets" in said[-1]


def test_mechanisms(capsys):
    code, said = lines(capsys, "permute-and-flip", "--option", "score=majority", "--epsilon", "0.5", *SMALL)
    assert code == 0
    assert said[0] == "permute-and-flip, score=majority, proved, add-remove, epsilon = 0.5"
    assert "exact loss 0.5 " in said[1]
    assert [line.split()[0] for line in said[1:]] == ["exact", "statistical", "verdict"]  # no ledger, no grey box
    code, said = lines(capsys, "laplace-textbook", *SMALL)
    assert code == 1
    assert "VIOLATED, by exact, statistical" in said[-2]


def test_the_same_seed_says_the_same(capsys):
    argv = ("geometric", "--layers", "statistical", "-n", "500")
    first, again = (lines(capsys, *argv) for _ in range(2))
    assert first == again
    assert lines(capsys, *argv, "--random-state", "1") != first


def test_quiet_says_the_verdict_alone(capsys):
    code, said = lines(capsys, "geometric", "--quiet", "--layers", "exact")
    assert (code, said) == (0, ["verdict      no violation found, by exact"])


def test_what_is_asked_for_is_done(capsys):
    code, said = lines(
        capsys, "edprf", "--features", "1", "--depth", "1", "--records", "4", "--layers", "exact", "--option",
        "stop=never", "--option", "selection='exponential'", "--option", "n-bins=3", *SMALL,
    )  # fmt: skip
    assert code == 0
    assert said[0].startswith("edprf, stop=never, selection=exponential, n_bins=3, proved")
    assert "of 70 data sets" in said[1]  # 4 kinds of records, at most 4
    assert lines(capsys, "edprf", "--layers", "exact", "--records", "2")[1][1].endswith("of 45 data sets")


def test_json_of_one_audit(capsys, tmp_path):
    path = tmp_path / "found.json"
    code, _ = lines(capsys, "laplace-textbook", "--json", str(path), *SMALL)
    found = json.loads(path.read_text(), parse_constant=pytest.fail)  # no Infinity: it is no JSON
    assert code == 1
    assert found["key"] == "laplace-textbook, published, add-remove"
    assert (found["claim"], found["promise"], found["violated"]) == (1.0, "inf", True)
    assert found["exact"]["epsilon"] == "inf"
    assert found["statistical"]["violated"] is True
    assert found["random_state"] == 0
    assert "python" in found["versions"]


# -- bad input -----------------------------------------------------------------------------------------------------


def test_an_unknown_name_lists_the_names(capsys):
    said = refused(capsys, "edrf")
    assert "there is nothing called 'edrf' to audit; did you mean edprf? there are: edprf, random-trees" in said
    assert "did you mean permute-and-flip?" in refused(capsys, "Permute_and_flip2")
    said = refused(capsys, "qqq")
    assert "did you mean" not in said
    assert all(name in said for name in NAMES)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["edprf", "--epsilon", "0"], "--epsilon must be positive"),
        (["edprf", "--epsilon", "-1"], "--epsilon must be positive"),
        (["edprf", "--epsilon", "nan"], "--epsilon must be positive"),
        (["edprf", "--epsilon", "inf"], "--epsilon must be a finite positive number, not 'inf'"),
        (["edprf", "--epsilon", "much"], "--epsilon must be a finite positive number, not 'much'"),
        (["edprf", "--epsilon", "1e9"], "--epsilon must lie between 1e-9 and 1e6"),
        (["edprf", "--confidence", "1"], "--confidence must lie strictly between 0 and 1"),
        (["edprf", "--random-state", "-1"], "--random-state must be at least 0"),
        (["edprf", "-n", "5"], "-n must be at least 20"),
        (["edprf", "--records", "0"], "--records must be at least 1"),
        (["edprf", "--features", "9"], "--features must be at least 1 and at most 6"),
        (["edprf", "--depth", "0"], "--depth must be at least 1"),
        (["edprf", "--option", "stop"], "--option takes KEY=VALUE, such as stop=never; got 'stop'"),
        (["edprf", "--option", "stop=soon"], "stop must be one of"),
        (["edprf", "--option", "halt=never"], "edprf has no option 'halt'; it has: budget"),
        (["edprf", "--option", "variant=published"], "variant is no --option: use --variant"),
        (["edprf", "--option", "max-depth=3"], "max_depth is no --option: use --depth"),
        (["random-trees", "--variant", "published", "--depth", "2"], "to the letter, so not with max_depth=2"),
        (["edprf", "--json", "no/such/folder/x.json"], "there is no such folder"),
        (["edprf", "--json", "/"], "--json /: that is a folder; name a file in it"),
        (["edprf", "--option", f"stop_margin={'-' * 100_000}1"], "stop_margin must be a finite number"),
        (["edprf", "--option", f"stop_margin={'[' * 100_000}"], "stop_margin must be a finite number"),
        (["edprf", "--option", f"stop_margin=1{'0' * 400}"], "stop_margin must be a finite number"),
        (["edprf", "--records", "99999999999999999999"], "--records must be at least 1 and at most 1000"),
        (["geometric", "--depth", "2"], "--depth is for estimators (edprf, random-trees, random-trees-regressor, "),
        (["geometric", "--layers", "greybox"], "keeps no accounts: leave out --layers greybox"),
        (["geometric", "--option", "score=gini"], "geometric has no option 'score'"),
        (["exponential", "--option", "score=ginny"], "there is no score 'ginny'; there are: gini"),
        ([], "say what to audit: one name, --all, --list or --show FILE"),
        (["edprf", "--all"], "--show FILE, and only one of these, not 'edprf' and --all; --help"),
        (["--all", "--features", "3"], "--features is for one audit by name"),
        (["--show", "nothing.json"], "--show nothing.json:"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(capsys, argv, said):
    assert said in refused(capsys, *argv)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"rows": 3}', '{"rows": [3]}', "3", "NaN", '{"rows": [], "rows": []}']
)
def test_what_is_no_report_is_refused(capsys, tmp_path, text):
    path = tmp_path / "some.json"
    path.write_text(text)
    assert "some.json is not a finished report" in refused(capsys, "--show", str(path))


@pytest.mark.slow
@pytest.mark.parametrize(("word", "value"), [("claim", "1" + 400 * "0"), ("n_pairs", "1e300"), ("n", "-1e300")])
def test_a_report_with_numbers_too_large_is_refused(capsys, tmp_path, few, word, value):
    path = tmp_path / "report.json"
    lines(capsys, "--all", *SMALL, "--relation", "replace-one", "--variant", "proved", "--json", str(path))
    found = json.loads(path.read_text())
    found["rows"][0][word] = "HERE"
    path.write_text(json.dumps(found).replace('"HERE"', value))
    assert "report.json is not a finished report" in refused(capsys, "--show", str(path))


def test_the_second_figure_of_an_audit_stands_below_the_first(capsys):
    code, said = lines(capsys, "laplace-textbook", *SMALL, "--layers", "statistical")
    assert code == 1
    assert said[1].startswith("statistical  eps >= ")
    assert said[2].startswith(f"{'':<13}the lowest bits alone give ")


def test_a_universe_too_large_is_refused_with_what_would_fit(capsys):
    said = refused(capsys, "edprf", "--records", "60")
    assert "8 kinds of records and --records 60 make 7,392,009,768 data sets, more than the 2,000,000" in said
    assert "--records 18 would fit; or use fewer --features" in said
    assert "--records 2 would fit" in refused(
        capsys, "edprf", "--option", "n_estimators=2", "--records", "9", "--features", "3"
    )
    assert "fewer --features" not in refused(capsys, "exponential", "--records", "50")
    # without the exact layer nothing is enumerated
    assert lines(capsys, "exponential", "--records", "50", "--layers", "statistical", *SMALL)[0] == 0


def test_the_arguments_that_argparse_refuses(capsys):
    for argv in (["audit", "edprf", "--relation", "bounded"], ["audit", "edprf", "-n", "many"], ["devour"], []):
        assert main(argv) == 2
        assert "usage: dpforest" in capsys.readouterr().err


def test_help_and_list(capsys):
    assert main(["audit", "--help"]) == 0
    said = capsys.readouterr().out
    assert "exit code: 0 no violation found, 1 the claim is violated" in said
    assert "dpforest audit edprf --epsilon 1 --relation add-remove" in said
    code, said = lines(capsys, "--list")
    assert code == 0
    assert [line.split()[0] for line in said[:-1]] == list(NAMES)
    assert "scores: gini, " in said[-1]


def test_a_reader_that_has_read_enough(monkeypatch):
    """As in `dpforest audit --list | head`: no traceback, and the exit code of a program that a closed pipe ends."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["audit", "--list"]) == 141
        print("and what is left does no harm", file=closed, flush=True)


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dpforest {dpforest.__version__}\n"


# -- everything ----------------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Everything, for these tests, is noise: four audits of no time."""
    monkeypatch.setattr(dpforest.cli, "subjects", lambda epsilon: [s for s in subjects(epsilon) if s.kind == "noise"])


@pytest.mark.slow
def test_everything(capsys, tmp_path, few):
    path = tmp_path / "report.json"
    code, said = lines(capsys, "--all", *SMALL, "--json", str(path))
    assert code == 0
    assert said[-1] == "4 audits: 2 holds, 2 violated as expected, 0 UNEXPECTED"
    assert said[0].startswith("holds                geometric, proved, add-remove: claim 1; exact 1; eps >= 0.")
    assert said[2].startswith("violated as expected laplace-textbook, published, add-remove: claim 1; exact inf")
    assert lines(capsys, "--show", str(path)) == (0, said[-1:])
    assert lines(capsys, "--all", *SMALL, "--json", str(path)) == (code, said)  # goes on: all is there
    code, said = lines(capsys, "--all", *SMALL, "--relation", "replace-one", "--variant", "proved", "--quiet")
    assert (code, said) == (0, ["1 audits: 1 holds, 0 violated as expected, 0 UNEXPECTED"])


@pytest.mark.slow
def test_a_surprise_is_an_error(capsys, tmp_path, monkeypatch):
    wrong = replace(mechanism("geometric"), broken=Broken("so it is said", ("exact",)))
    monkeypatch.setattr(dpforest.cli, "subjects", lambda epsilon: [wrong])
    path = tmp_path / "report.json"
    code, said = lines(capsys, "--all", *SMALL, "--json", str(path))
    assert code == 1
    assert said[0].startswith(UNEXPECTED)
    assert said[-2:] == [
        "1 audits: 0 holds, 0 violated as expected, 1 UNEXPECTED",
        "  geometric, proved, add-remove: alarms by none, expected by exact",
    ]
    assert lines(capsys, "--show", str(path)) == (1, said[-2:])
    assert Report.load(path).unexpected


@pytest.mark.slow
def test_a_file_that_is_no_report_is_left_alone(capsys, tmp_path, few):
    path = tmp_path / "mine.json"
    path.write_text("[1, 2]")
    assert "is no report of this auditor" in refused(capsys, "--all", *SMALL, "--json", str(path))
    assert path.read_text() == "[1, 2]"


# -- as a program --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_as_a_program():
    """Exit code, both streams, no progress bar where there is no terminal."""
    argv = [sys.executable, "-m", "dpforest.cli", "audit", "laplace-textbook", *SMALL]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=os.environ)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[0] == "laplace-textbook, published, add-remove, epsilon = 1"


@pytest.mark.parametrize("module", ["dpforest", "dpforest.cli"])
def test_the_package_is_a_program(module):
    """Where the command is not on the path, as in an environment that is not activated."""
    argv = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=os.environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"dpforest {dpforest.__version__}\n", "")


def test_the_package_says_how_it_is_called():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"dpforest": "dpforest.cli:main"}
