"""The audits of other libraries: the record is what its counts say, and the script behind it finds what is planted.

Nothing here needs the libraries themselves.  The statistical tests have fixed seeds, and margins at which another
seed would fail less than once in a million times.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path

import nbformat
import numpy as np
import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import audit_peers
import compare_peers
import oracle
import peer_cases
from peer_cases import CASES, HERE, Case

from dpforest.audit.sampling.bounds import clopper_pearson, epsilon_lower

ROOT = Path(__file__).resolve().parent.parent
RECORD = json.loads(audit_peers.RECORD.read_text(encoding="utf-8"))
EVENTS = [(case, case[kind]) for case in RECORD["cases"] for kind in ("declared", "chosen") if case[kind]]


# --- the record -------------------------------------------------------------------------------------------------------
def test_the_record_is_of_the_present_cases():
    assert [case["id"] for case in RECORD["cases"]] == list(CASES), "run `make audit-peers`"
    for found in RECORD["cases"]:
        case = CASES[found["id"]]
        said = {name: found[name] for name in audit_peers.described(case)}
        assert said == json.loads(json.dumps(audit_peers.described(case)))
        assert found["declared"]["event"] == case.event
        assert found["declared"]["n"] == [case.n, case.n]
        assert (found["chosen"] is not None) == case.chosen


def test_its_bounds_are_those_of_its_counts():
    for case, event in EVENTS:
        (hits, other_hits), (n, other_n), delta = event["hits"], event["n"], case["claim"]["delta"]
        if delta == 0:
            bound = epsilon_lower(hits, n, other_hits, other_n, RECORD["confidence"])
        else:
            low, high = clopper_pearson(hits, n, 0.975)[0], clopper_pearson(other_hits, other_n, 0.975)[1]
            bound = max(0.0, math.log((low - delta) / high))
        assert event["bound"] == pytest.approx(bound, rel=1e-9, abs=1e-12)
        p = audit_peers.p_of(hits, n, other_hits, other_n, case["claim"]["epsilon"], delta)
        assert event["p_value"] == pytest.approx(p, rel=1e-4)


def test_its_alarms_are_corrected_for_their_number():
    ps = np.array([event["p_value"] for _, event in EVENTS])
    # Holm's definition: the k-th smallest is multiplied by how many are left, and no smaller one may exceed it.
    for i, (_, event) in enumerate(EVENTS):
        smaller = ps[ps <= ps[i]]
        expected = max(min(1.0, p * (len(ps) - np.sum(ps < p))) for p in smaller)
        assert event["holm"] == pytest.approx(expected, rel=1e-9)


def test_it_names_what_made_it_and_no_machine():
    text = audit_peers.RECORD.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(?:home|root|work|tmp|Users|mnt|opt|var)/|[A-Z]:\\\\|https?://", text)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", RECORD["date"])
    locked = (ROOT / "tests" / "peers" / "requirements.txt").read_text(encoding="utf-8")
    for name in ("diffprivlib", "interpret-core", "scikit-learn"):
        assert f"\n{name}=={RECORD['versions'][name]} " in f"\n{locked}"


def test_every_requirement_is_pinned_and_hashed():
    locked = (ROOT / "tests" / "peers" / "requirements.txt").read_text(encoding="utf-8")
    for entry in re.split(r"\n(?=\S)", locked.strip()):
        assert re.match(r"[\w.-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_the_notebook_reads_this_record():
    notebook = nbformat.read(ROOT / "notebooks" / "peers.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    values: dict = {}
    exec(cell.source, values)
    assert values["checksum"] == audit_peers.checksum(audit_peers.RECORD), "set it, and run `make store`"


# --- the cases --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_pair_is_a_pair_of_neighbours(case):
    one, other = Counter(case.one), Counter(case.other)
    apart = (one - other).total(), (other - one).total()
    assert apart in {"add-remove": {(0, 1), (1, 0)}, "replace-one": {(1, 1)}}[case.relation]


def test_the_readings_of_the_default_forest_are_in_place():
    """Score of a forest all of whose trees answer what one data set makes likely, and of its contrary."""
    likely = np.full((1, 10, len(peer_cases.moved)), -1)
    for at, record in enumerate(peer_cases.moved):
        label = peer_cases.table[record][-1]
        likely[0, peer_cases.before[record], at] = label
        if peer_cases.after[record] >= 0:
            likely[0, peer_cases.after[record], at] = 1 - label
    assert peer_cases.moved == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert peer_cases.agreement(likely.reshape(1, -1)) == 10
    assert peer_cases.agreement(1 - likely.reshape(1, -1)) == -9


def law_of_trees(records, trees, shuffle, base):
    """Law of the answers of trees whose records all share a leaf, as the source of the library reads."""
    labels, n = [record[-1] for record in records], len(records)
    assert min(map(labels.count, (0, 1))) <= 1 or not shuffle  # then the order is random up to a rotation
    orders = [labels[k:] + labels[:k] for k in range(n)] if shuffle else [labels]
    tree_at = (np.arange(n) // (n / trees)).astype(int)
    law: Counter = Counter()
    for order in orders:
        ones = []
        for tree in range(trees):
            mine = [label for at, label in zip(tree_at, order, strict=True) if at == tree]
            ones.append(float(oracle.permute_and_flip(oracle.acceptance([mine.count(0), mine.count(1)], base))[1]))
        for answers in product((0, 1), repeat=trees):
            chances = [p if answer else 1 - p for p, answer in zip(ones, answers, strict=True)]
            law[answers] += math.prod(chances) / len(orders)
    return law


POINTS = [id for id, case in CASES.items() if "probes" in case.settings and case.settings["probes"] == (HERE,)]


@pytest.mark.parametrize("id", POINTS)
def test_counts_are_those_that_the_source_read_predicts(id):
    """The explanation given of a finding, turned into a law, predicts both counts; each is off once in a million."""
    case, (found,) = CASES[id], [c["declared"] for c in RECORD["cases"] if c["id"] == id]
    trees, shuffle = case.settings.get("n_estimators", 1), case.settings.get("shuffle", False)
    base = Fraction(math.exp(case.settings["epsilon"]))
    for records, hits, n in zip((case.one, case.other), found["hits"], found["n"], strict=True):
        law = law_of_trees(records, trees, shuffle, base)
        assert math.fsum(law.values()) == pytest.approx(1)
        happened = case.happens(np.array(list(law)))
        p = math.fsum(chance for chance, so in zip(law.values(), happened, strict=True) if so)
        assert binom.ppf(2.5e-7, n, p) <= hits <= binom.ppf(1 - 2.5e-7, n, p)


# --- the script, on learners that are planted -------------------------------------------------------------------------
def answers(records, seed, *, epsilon, coins=3, spent=None):
    """A few bits: the first is the class of the first record, told truthfully with odds exp(epsilon)."""
    rng = np.random.default_rng(seed)
    truth = records[0][-1] == 1
    return np.array([truth if rng.random() < 1 / (1 + math.exp(-epsilon)) else not truth, *rng.integers(2, size=coins)])


def shows_at_times(records, seed, *, delta, epsilon, spent=None):
    """Shows the class of the first record with probability delta, and otherwise nothing."""
    return np.array([records[0][-1] if np.random.default_rng(seed).random() < delta else 0])


def planted(learner, true, n=4000, **more):
    one, other = ((0.5, 1), (0.5, 0)), ((0.5, 0), (0.5, 0))
    settings = {"epsilon": true, **more.pop("settings", {})}
    return Case(
        "planted", "none", "planted", learner, "replace-one", settings, one, other, "a record changes its class",
        "the first bit is one", lambda rows: rows[:, 0] == 1, n, **more,
    )  # fmt: skip


def fitted_and_counted(case, seed=1):
    return audit_peers.count(case, audit_peers.fit_pair(case, case.n, seed), seed)


def counts(event):
    return event["hits"][0], event["n"][0], event["hits"][1], event["n"][1]


@pytest.mark.parametrize("chosen", [False, True])
def test_a_planted_leak_is_found_and_a_sound_learner_is_not_refuted(chosen):
    for true, refuted in ((2.0, True), (0.5, False)):
        case = planted(answers, true, chosen=chosen)
        found = fitted_and_counted(case)
        for event in [found["declared"], *([found["chosen"]] if chosen else [])]:
            bound = audit_peers.lower_bound(*counts(event))
            assert bound <= true
            assert bound > true - 0.4
            assert (audit_peers.p_of(*counts(event), 1.0) <= 0.05) == refuted


def test_chosen_and_declared_events_are_counted_on_the_draws_they_may_see():
    case = planted(answers, 2.0, n=400, chosen=True)
    found = fitted_and_counted(case)
    assert found["declared"]["n"] == [400, 400]  # it was fixed before
    assert found["chosen"]["n"] == [200, 200]  # the other half chose it
    assert found["chosen"]["hits"][0] > found["chosen"]["hits"][1]


def test_the_seed_alone_decides():
    case = planted(answers, 2.0, n=500)
    assert fitted_and_counted(case, 1) == fitted_and_counted(case, 1)
    assert fitted_and_counted(case, 1) != fitted_and_counted(case, 2)


def test_delta_is_taken_off():
    """A learner that is (0, 0.02)-private is refuted as (1, 0)-private, and not as (1, 0.02)-private."""
    case = planted(shows_at_times, 1.0, n=20_000, settings={"delta": 0.02})
    four = counts(fitted_and_counted(case, 3)["declared"])
    assert audit_peers.p_of(*four, 1.0) < 1e-6
    assert audit_peers.p_of(*four, 1.0, delta=0.02) == 1.0
    assert audit_peers.lower_bound(*four, delta=0.02) == 0 < 1 < audit_peers.lower_bound(*four)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_the_p_value_is_where_the_bound_meets_the_claim(delta):
    four = 60, 200, 12, 200
    p = audit_peers.p_of(*four, 0.7, delta)
    assert audit_peers.lower_bound(*four, delta, 1 - p * 1.001) >= 0.7 - 1e-9
    assert audit_peers.lower_bound(*four, delta, 1 - p * 0.999) <= 0.7
    assert audit_peers.p_of(12, 200, 60, 200, 0.7, delta) == 1.0


def test_holm():
    assert audit_peers.holm([0.01, 0.5, 0.02]) == pytest.approx([0.03, 0.5, 0.04])
    assert audit_peers.holm([0.03, 0.02]) == pytest.approx([0.04, 0.04])
    assert audit_peers.holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.fixture
def little(monkeypatch, tmp_path):
    """The script with one planted case, in a folder of its own; the list says how often it was fitted."""
    case, made = planted(answers, 2.0, n=200), []
    monkeypatch.setattr(audit_peers, "CASES", {case.id: case})
    monkeypatch.setattr(audit_peers, "BUILD", tmp_path)
    monkeypatch.setattr(audit_peers, "KEPT", tmp_path / "peers")
    monkeypatch.setattr(audit_peers, "RECORD", tmp_path / "peers.json")
    monkeypatch.setattr(audit_peers.learners, "versions", lambda: {"planted": "1"})
    do = audit_peers.fit_pair
    monkeypatch.setattr(audit_peers, "fit_pair", lambda *a, **k: made.append(1) or do(*a, **k))
    return made


def test_a_finished_case_is_not_run_again(little, tmp_path, capsys):
    run = ["--workers", "0"]
    assert audit_peers.main(run) == 0
    first = (tmp_path / "peers.json").read_text(encoding="utf-8")
    (tmp_path / "peers.json").unlink()
    assert audit_peers.main(run) == 0
    assert len(little) == 1
    assert (tmp_path / "peers.json").read_text(encoding="utf-8") == first
    assert audit_peers.main([*run, "--fresh"]) == 0
    assert audit_peers.main([*run, "--seed", "5", "--output", str(tmp_path / "other.json")]) == 0
    assert len(little) == 3
    assert json.loads(first)["cases"][0]["declared"]["n"] == [200, 200]
    assert "claim 1: eps >= " in capsys.readouterr().out


def test_other_settings_are_fitted_anew(little, monkeypatch):
    assert audit_peers.main(["--workers", "0"]) == 0
    monkeypatch.setattr(audit_peers, "CASES", {"planted": planted(answers, 1.5, n=200)})
    assert audit_peers.main(["--workers", "0"]) == 0
    assert len(little) == 2


def test_a_quick_run_leaves_the_record_alone(little, tmp_path):
    assert audit_peers.main(["--quick", "--workers", "0"]) == 0
    assert not (tmp_path / "peers.json").exists()
    assert json.loads((tmp_path / "peers-quick.json").read_text())["cases"][0]["declared"]["n"] == [100, 100]


def test_without_the_libraries_it_says_what_to_run(monkeypatch, capsys):
    monkeypatch.setattr(audit_peers.learners, "versions", lambda: {"diffprivlib": "missing"})
    assert audit_peers.main([]) == 1
    assert "make audit-peers" in capsys.readouterr().err


# --- the comparison ---------------------------------------------------------------------------------------------------
def test_the_record_of_the_comparison_is_whole():
    """Every peer on every set that it can read, at each budget and seed, and better than a guess somewhere."""
    rows = json.loads(audit_peers.RECORD.with_name("incumbents.json").read_text(encoding="utf-8"))["rows"]
    found = Counter((row["data"], row["learner"], row["ε"], row["seed"]) for row in rows)
    assert set(found.values()) == {1}
    many = {"nursery", "wall-following-robot"}  # classes: DP-EBM tells two apart
    asked = {
        (name, kind.title, epsilon, seed)
        for name, kind in product(
            compare_peers.NAMES, (compare_peers.Integers, compare_peers.Additive, compare_peers.Tuned)
        )
        for epsilon, seed in product(compare_peers.EPSILONS, range(compare_peers.SEEDS))
        if kind is compare_peers.Integers or name not in many
    }
    assert found.keys() == asked, "run `make compare-peers`"
    for learner in {row["learner"] for row in rows}:
        assert max(row["auc"] for row in rows if row["learner"] == learner) > 0.9
    assert all(row["log loss"] > 0 and 0 <= row["accuracy"] <= 1 and row["cost"] > 0 for row in rows)
