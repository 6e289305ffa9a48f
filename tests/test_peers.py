"""The audits of other libraries: the record is what its counts say, and the script behind it finds what is planted.

Nothing here needs the libraries themselves; where OpenDP is installed, its noisy max is also drawn from here.  The
statistical tests have fixed seeds, where what they test takes one, and margins at which another seed would fail less
than once in a million times.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import nbformat
import numpy as np
import pytest
from scipy.stats import binom

from tests import not_run

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import aim
import audit_peers
import compare_peers
import noisy_max
import oracle
import peer_cases
from peer_cases import CASES, HERE, Case

from dpforest.audit.sampling.bounds import clopper_pearson, epsilon_lower
from dpforest.privacy import epsilon_of

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
        "planted",
        "none",
        "planted",
        learner,
        "replace-one",
        settings,
        one,
        other,
        "a record changes its class",
        "the first bit is one",
        lambda rows: rows[:, 0] == 1,
        n,
        **more,
    )


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
INCUMBENTS = json.loads(audit_peers.RECORD.with_name("incumbents.json").read_text(encoding="utf-8"))


def test_the_record_of_the_comparison_is_whole():
    """Every peer on every set that it can read, at each budget and seed, and better than a guess somewhere."""
    rows = INCUMBENTS["rows"]
    found = Counter((row["data"], row["learner"], row["ε"], row["seed"]) for row in rows)
    assert set(found.values()) == {1}
    many = {"nursery", "wall-following-robot"}  # classes: DP-EBM tells two apart
    asked = {
        (name, kind.title, epsilon, seed)
        for name, kind in product(compare_peers.NAMES, compare_peers.KINDS)
        for epsilon, seed in product(compare_peers.EPSILONS, range(compare_peers.SEEDS))
        if kind not in compare_peers.ONE_OF_TWO or name not in many
    }
    assert found.keys() == asked, "run `make compare-peers`"
    assert rows == compare_peers.in_order(rows)
    deltas = {kind.title: kind.delta for kind in compare_peers.KINDS}
    assert all(row["δ"] == deltas[row["learner"]] for row in rows)
    for learner in {row["learner"] for row in rows}:
        assert max(row["auc"] for row in rows if row["learner"] == learner) > 0.9
    assert all(row["log loss"] > 0 and 0 <= row["accuracy"] <= 1 and row["cost"] > 0 for row in rows)


def test_the_record_of_the_comparison_says_when_and_with_what():
    assert set(INCUMBENTS["dates"]) == {kind.title for kind in compare_peers.KINDS}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in INCUMBENTS["dates"].values())
    locked = (ROOT / "tests" / "peers" / "requirements.txt").read_text(encoding="utf-8")
    for name in ("diffprivlib", "interpret-core", "scikit-learn", "lightgbm", "mbi"):
        assert f"\n{name}=={INCUMBENTS['versions'][name]} " in f"\n{locked}"


def test_rows_of_learners_that_are_not_run_are_kept_if_their_versions_are():
    def row(learner, value):
        return {"data": "adult", "seed": 0, "learner": learner, "ε": 0.1, "accuracy": value}

    forest, ours = compare_peers.Integers.title, compare_peers.Synthetic.title
    versions = {"diffprivlib": "1", "mbi": "2"}
    old = {"dates": {forest: "then", ours: "then"}, "versions": {"diffprivlib": "1"}}
    old["rows"] = [row(ours, 0.1), row(forest, 0.2)]
    new = compare_peers.merged(old, [row(ours, 0.3)], [ours], "now", versions)
    assert new["rows"] == [row(forest, 0.2), row(ours, 0.3)]
    assert new["dates"] == {forest: "then", ours: "now"}
    assert new["versions"] == versions
    with pytest.raises(ValueError, match="run without --only"):
        compare_peers.merged(old, [row(ours, 0.3)], [ours], "now", versions | {"diffprivlib": "1.1"})
    assert compare_peers.merged({}, [row(ours, 0.3)], [ours], "now", versions)["rows"] == [row(ours, 0.3)]


def test_the_comparison_reads_this_record():
    notebook = nbformat.read(ROOT / "notebooks" / "comparison.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    values: dict = {}
    exec(cell.source, values)
    found = audit_peers.checksum(audit_peers.RECORD.with_name("incumbents.json"))
    assert values["checksum"] == found, "set it, and run `make store`"


# --- AIM --------------------------------------------------------------------------------------------------------------
SIZES = 2, 3, 2  # of two features and the class


@pytest.mark.parametrize("rho", [1e-4, 0.02, 3.0])
@pytest.mark.parametrize("often", [0.0, 0.3, 1.0])
def test_aims_rounds_cost_what_they_may(rho, often):
    """However often a round is annealed, the prices add up to rho; each is that of its noise and its selection."""
    coins, budget = np.random.default_rng(5), aim.Budget(rho, 64)
    for _ in range(9):
        budget.spend(selects=False)
    assert budget.left == pytest.approx(rho * (1 - 9 * aim.MEASURE / 64), rel=1e-12)
    budget.settle()
    while not budget.over:
        assert budget.price() == pytest.approx(1 / (2 * budget.sigma**2) + budget.epsilon**2 / 8, rel=1e-12)
        budget.spend()
        budget.anneal(0.0, coins.random() - (1 - often))
    assert math.fsum(budget.spent) == pytest.approx(rho, rel=1e-9)
    assert math.fsum(budget.spent) <= rho * (1 + 1e-9)
    with pytest.raises(ValueError, match="is left"):
        budget.spend()


def test_aim_anneals_as_the_paper_does():
    budget = aim.Budget(1.0, 100)
    sigma, epsilon = budget.sigma, budget.epsilon
    assert (sigma, epsilon) == pytest.approx((math.sqrt(100 / 1.8), math.sqrt(0.8 / 100)), rel=1e-12)
    budget.anneal(2.0, 1.0)
    assert (budget.sigma, budget.epsilon) == (sigma, epsilon)
    budget.anneal(1.0, 1.0)
    assert (budget.sigma, budget.epsilon) == (sigma / 2, 2 * epsilon)


def test_aims_measurement_and_score_have_the_sensitivity_that_is_paid_for():
    """All tables of at most two records, and one more: a marginal moves by one in one cell, a score by its weight."""
    records = list(product(*map(range, SIZES)))
    queries = aim.workload(len(SIZES))
    weights, model = aim.weights(queries), np.random.default_rng(1)
    worst = dict.fromkeys(queries, 0.0)
    said = {of: model.uniform(0, 2, [SIZES[a] for a in of]) for of in queries}
    for table in [[], *([r] for r in records), *product(records, repeat=2)]:
        for extra in records:
            one, other = (np.array(rows, dtype=int).reshape(-1, 3) for rows in (table, [*table, extra]))
            for of, weight in zip(queries, weights, strict=True):
                before, after = aim.counts(one, SIZES, of), aim.counts(other, SIZES, of)
                assert np.sort((after - before).ravel())[-1] == np.abs(after - before).sum() == 1
                moved = aim.score(after, said[of], 3.0, weight) - aim.score(before, said[of], 3.0, weight)
                worst[of] = max(worst[of], abs(moved))
    assert list(worst.values()) == pytest.approx(weights, rel=1e-12)


def test_aims_weights_are_those_of_the_paper():
    """Two features and the class: what a query shares with every query of the workload, itself included."""
    assert aim.workload(3) == [(0, 2), (1, 2), (0, 1, 2)]
    assert aim.weights(aim.workload(3)) == [2 + 1 + 2, 1 + 2 + 2, 2 + 2 + 3]


@pytest.mark.claim("lem-range-concentrated")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_aims_selection_costs_an_eighth_of_epsilon_squared(epsilon):
    """Scores moved by at most the sensitivity either way: the divergence is within the price, and near to it."""
    rng, near = np.random.default_rng(3), 0.0
    for _ in range(300):
        scores = rng.normal(0, rng.choice([0.1, 2.0]) / epsilon, 2 + rng.integers(4))
        moved = scores + rng.choice([-1.0, 1.0], len(scores))
        p, q = (aim.exponential_law(s * 5, epsilon, 5) for s in (scores, moved))
        for alpha in (1.001, 2.0, 8.0):
            divergence = math.log(float((p**alpha * q ** (1 - alpha)).sum())) / (alpha - 1)
            assert divergence <= alpha * epsilon**2 / 8 * (1 + 1e-9) + 1e-12
            near = max(near, divergence / (alpha * epsilon**2 / 8))
    assert near > 0.8
    # what a rate twice as large would cost is found by the same measure
    p, q = (aim.exponential_law(np.array(s), 2 * epsilon, 1) for s in ([0.0, 0.0], [1.0, -1.0]))
    assert float((p * np.log(p / q)).sum()) > epsilon**2 / 8


def test_aim_draws_by_that_law_among_what_is_admitted():
    """Each count is off once in a million; with half of the epsilon all of them would be."""
    scores, n, rng = [0.0, 3.0, 1.0, 2.0, -1.0], 20_000, np.random.default_rng(4)
    admitted = [0, 2, 3, 4]
    law = aim.exponential_law([scores[at] for at in admitted], 2.0, 2.0)
    drawn = Counter(aim.choose(scores, 2.0, 2.0, rng, lambda at: at != 1) for _ in range(n))
    assert set(drawn) <= set(admitted)
    for at, p in zip(admitted, law, strict=True):
        assert binom.ppf(5e-7, n, p) <= drawn[at] <= binom.ppf(1 - 5e-7, n, p)
    halved = aim.exponential_law([scores[at] for at in admitted], 1.0, 2.0)
    assert not binom.ppf(5e-7, n, halved[2]) <= drawn[3] <= binom.ppf(1 - 5e-7, n, halved[2])
    assert aim.choose(scores, 2.0, 2.0, rng, lambda at: False) is None


@pytest.mark.parametrize("ordered", [True, False])
def test_codes_within_the_noise_are_put_together(ordered):
    rng = np.random.default_rng(6)
    for _ in range(200):
        masses = rng.normal(1, 2, 1 + rng.integers(8))
        new = aim.merged(masses, 2.0, ordered)
        assert set(new) == set(range(new.max() + 1))
        sums = np.bincount(new, masses)
        if ordered:
            assert (np.diff(new) >= 0).all()
            assert (sums[:-1] >= 2).all()
            assert len(sums) == 1 or np.cumsum(masses[new == new[-1]]).max() >= 2  # what was left over is with the last
        else:
            alone = np.flatnonzero(np.bincount(new) == 1)
            assert set(np.flatnonzero(masses >= 2)) <= {at for at in range(len(new)) if new[at] in alone}
            assert len(set(new[masses < 2])) <= 1


def test_two_measurements_of_a_marginal_are_weighed_by_their_precision():
    one = aim.Measured(np.array([1.0, 4.0]), np.array([1.0, 1.0]))
    both = one + aim.Measured(np.array([4.0, 4.0]), np.array([0.5, 0.5]))
    assert both.values == pytest.approx([3.0, 4.0])
    assert both.variances == pytest.approx([1 / 3, 1 / 3])


class Whole:
    """In place of the graphical model: the whole table, scaled to one measurement after the other."""

    def __init__(self, sizes):
        self.sizes, self.known, self.total = sizes, {}, 1.0

    def megabytes(self, more):
        return 0.0

    def measure(self, of, found):
        self.known[of] = self.known[of] + found if of in self.known else found

    def fit(self, iterations, tolerance=0.0):
        self.total = max(1.0, float(np.mean([m.values.sum() for m in self.known.values()])))
        self.table = np.full(self.sizes, self.total / math.prod(self.sizes))
        for _ in range(iterations // 10):
            for of, found in self.known.items():
                away = tuple(a for a in range(len(self.sizes)) if a not in of)
                now = self.table.sum(axis=away, keepdims=True)
                self.table = self.table * np.maximum(found.values.reshape(now.shape), 1e-3) / np.maximum(now, 1e-9)
            self.table *= self.total / self.table.sum()

    def marginal(self, of):
        return self.table.sum(axis=tuple(a for a in range(len(self.sizes)) if a not in of))

    def sample(self, rows, rng):
        cells = rng.choice(self.table.size, rows, p=self.table.ravel() / self.table.sum())
        return np.column_stack(np.unravel_index(cells, self.sizes))


class Noting:
    """A generator that notes how many numbers it gave with which standard deviation."""

    def __init__(self, seed):
        self._rng, self.normals, self.selections = np.random.default_rng(seed), [], 0

    def normal(self, mean, sigma, shape):
        self.normals.append((sigma, int(np.prod(shape))))
        return self._rng.normal(mean, sigma, shape)

    def gumbel(self, size):
        self.selections += 1
        return self._rng.gumbel(size=size)

    def __getattr__(self, name):
        return getattr(self._rng, name)


@pytest.mark.parametrize("rho", [0.05, 100.0])
def test_aim_looks_at_nothing_that_it_does_not_pay_for(rho, monkeypatch):
    """The prices by the noise that was in fact drawn add up to rho, and every count that was made is of a query."""
    looks = []

    def counts(codes, sizes, of):
        looks.append(of)
        return np.histogramdd(codes[:, of], bins=[np.arange(sizes[a] + 1) - 0.5 for a in of])[0]

    monkeypatch.setattr(aim, "counts", counts)
    rng, rows = Noting(7), np.random.default_rng(8).integers(0, SIZES, (400, 3))
    rows[:, 2] = (rows[:, 0] + rows[:, 1]) % 2
    options = {"rounds": 12, "megabytes": 1.0, "rows": 5000, "field": Whole}
    made = aim.synthesize(rows, SIZES, [False, True, False], rho, rng, **options)
    assert looks == [(0,), (1,), (2,), *aim.workload(3)]
    assert rng.selections == len(rng.normals) - 3 == len(made.measured) - 3
    first, later = ([1 / (2 * sigma**2) for sigma, _ in part] for part in (rng.normals[:3], rng.normals[3:]))
    assert math.fsum(first) + math.fsum(later) / aim.MEASURE == pytest.approx(rho, rel=1e-9)
    assert math.fsum(made.spent) == pytest.approx(rho, rel=1e-9)
    assert rng.normals[-1][1] == math.prod(made.model.sizes[a] for a in made.measured[-1])
    if rho == 100:  # hardly any noise: the rows are those of the table, and their class is the parity of the features
        assert len(made.rows) == 5000
        assert made.measured[3] == (0, 1, 2)
        assert np.mean((made.rows[:, 0] + made.rows[:, 1]) % 2 == made.rows[:, 2]) > 0.98


# --- OpenDP's noisy max -----------------------------------------------------------------------------------------------
NOISY = json.loads(noisy_max.RECORD.read_text(encoding="utf-8"))
ZCDP, PURE = "zero_concentrated_divergence", "max_divergence"
DRAWN = {PURE: oracle.permute_and_flip, ZCDP: oracle.exponential}  # what we say that each measure draws


DRAWS_NOW = 4000  # on either side


@cache
def opendp_answers(measure):
    """How often the shipped measurement answers the first candidate, on either side, at loss ln 4."""
    pytest.importorskip("opendp", reason=not_run.OPENDP)
    shipped = noisy_max.measurement(measure, 2 / math.log(4))
    return [sum(shipped(list(scores)) == 0 for _ in range(DRAWS_NOW)) for scores in noisy_max.PAIR]


def firsts(law, base):
    """Probability of the first candidate on either side, weights base ** score."""
    return [law(oracle.acceptance(scores, base))[0] for scores in noisy_max.PAIR]


def mean_log_ratio(p, q):
    """The divergence at orders towards 1, of two laws on two answers."""
    return float(p) * math.log(p / q) + float(1 - p) * math.log((1 - p) / (1 - q))


def glued(name):
    notebook = nbformat.read(ROOT / "notebooks" / "peers.ipynb", as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("metadata", {}).get("scrapbook", {}).get("name") == name:
                return float(output.data["application/papermill.record/text/plain"])
    raise AssertionError(f"not on the page: {name}")


@pytest.mark.claim("cex-permute-and-flip-bounded-range")
def test_what_permute_and_flip_costs_where_a_bounded_range_is_declared():
    """Loss ln 4, so weights 2 ** score, in fractions: a half of ln 3 where an eighth of ln 4 squared is declared."""
    declared = math.log(4) ** 2 / 8
    assert firsts(oracle.permute_and_flip, 2) == firsts(oracle.permute_and_flip_orders, 2)
    assert firsts(oracle.permute_and_flip, 2) == firsts(oracle.noisy_max, 2) == [Fraction(3, 4), Fraction(1, 4)]
    assert firsts(oracle.exponential, 2) == [Fraction(2, 3), Fraction(1, 3)]
    assert glued("noisy_max_rho_ln 4") == pytest.approx(math.log(3) / 2, rel=1e-12)
    assert glued("noisy_max_kept_rho_ln 4") == pytest.approx(math.log(2) / 3, rel=1e-12)
    assert math.log(2) / 3 < declared < math.log(3) / 2


@pytest.mark.claim("lem-range-concentrated")
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_the_page_has_the_rho_of_both_mechanisms(epsilon):
    base = Fraction(math.exp(epsilon / 2))
    flip, weigh = (mean_log_ratio(*firsts(law, base)) for law in (oracle.permute_and_flip, oracle.exponential))
    assert glued(f"noisy_max_rho_{epsilon:g}") == pytest.approx(flip, rel=1e-9)
    assert glued(f"noisy_max_kept_rho_{epsilon:g}") == pytest.approx(weigh, rel=1e-9)
    assert weigh < epsilon**2 / 8 < flip < epsilon**2 / 2
    if epsilon == 0.1:  # nearly all that each may cost
        assert weigh > 0.999 * epsilon**2 / 8
        assert flip > 0.95 * epsilon**2 / 2


@pytest.mark.claim("thm-hockey-stick")
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_the_page_has_the_smallest_number_of_selections_that_breaks_the_promise(epsilon, delta):
    """The binomial laws added up here, beside the promise by the lemma's formula over a grid of orders."""
    p, q = map(float, firsts(oracle.permute_and_flip, Fraction(math.exp(epsilon / 2))))
    alpha = 1 + np.logspace(-5, 4, 100_001)

    def broken(k):
        rho, hits = k * epsilon**2 / 8, np.arange(k + 1)
        slack = (np.log(1 / delta) + (alpha - 1) * np.log1p(-1 / alpha) - np.log(alpha)) / (alpha - 1)
        promised = float((alpha * rho + slack).min())
        one, other = binom.pmf(hits, k, p), binom.pmf(hits, k, q)
        return np.maximum(one - math.exp(promised) * other, 0).sum() > delta

    smallest = int(glued(f"noisy_max_k_{delta:g}_{epsilon:g}"))
    assert broken(smallest)
    assert not any(broken(k) for k in range(1, smallest))


def test_the_record_of_the_noisy_max_is_of_the_present_settings():
    assert NOISY["draws"] == noisy_max.DRAWS
    kinds = [(row["version"], row["measure"]) for row in NOISY["rows"]]
    versions = list(dict.fromkeys(version for version, _ in kinds))
    assert kinds == list(product(versions, noisy_max.MEASURES))
    assert NOISY["rows"] == sorted(NOISY["rows"], key=noisy_max.order)
    locked = re.search(r"^opendp==(\S+)", (ROOT / "requirements-opendp.txt").read_text(encoding="utf-8"), flags=re.M)
    assert locked is not None
    assert versions[-1] == locked[1], "run `make audit-noisy-max`"
    for row in NOISY["rows"]:
        assert row["scale"] == noisy_max.SCALE
        assert row["scores"] == [list(scores) for scores in noisy_max.PAIR]
        assert [sum(side) for side in row["first"]] == [noisy_max.BLOCKS] * 2
        assert [len(side) for side in row["first"]] == [noisy_max.DRAWS + 1] * 2
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])


def test_its_counts_are_those_of_the_laws_that_the_page_names():
    """Singly and in blocks; each is off once in a million, and the other mechanism's law is far outside."""
    other = {PURE: oracle.exponential, ZCDP: oracle.permute_and_flip}
    base, k = Fraction(math.exp(1 / noisy_max.SCALE)), noisy_max.DRAWS
    for row in NOISY["rows"]:
        for named, law in ((True, DRAWN[row["measure"]]), (False, other[row["measure"]])):
            for p, blocks in zip(map(float, firsts(law, base)), row["first"], strict=True):
                hits, n = sum(i * times for i, times in enumerate(blocks)), k * sum(blocks)
                inside = binom.ppf(5e-7, n, p) <= hits <= binom.ppf(1 - 5e-7, n, p)
                assert inside == named
                if named:
                    assert binom.ppf(5e-7, sum(blocks), p**k) <= blocks[k] <= binom.ppf(1 - 5e-7, sum(blocks), p**k)


def test_the_notebook_reads_this_record_of_the_noisy_max():
    notebook = nbformat.read(ROOT / "notebooks" / "peers.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    values: dict = {}
    exec(cell.source, values)
    assert values["noisy_max_checksum"] == audit_peers.checksum(noisy_max.RECORD), "set it, and run `make store`"


def test_rows_of_a_version_are_replaced_and_versions_are_in_order():
    def row(version, measure, date):
        return {"version": version, "measure": measure, "date": date}

    kept = [row("0.9.0", PURE, "old"), row("0.16.0", PURE, "old"), row("0.16.0", ZCDP, "old")]
    new = [row("0.16.0", ZCDP, "new"), row("0.10.0", PURE, "new")]
    merged = noisy_max.merged(kept, new)
    assert [(found["version"], found["date"]) for found in merged] == [
        ("0.9.0", "old"),
        ("0.10.0", "new"),
        ("0.16.0", "new"),
    ]


@pytest.mark.parametrize("scale", [1.0, 4.0, 0.25])
def test_what_opendp_declares(scale):
    """Epsilon of the scores' spread, which is twice the change of one, and an eighth of its square."""
    pytest.importorskip("opendp", reason=not_run.OPENDP)
    for distance in (1, 3):
        epsilon = 2 * distance / scale
        assert noisy_max.measurement(PURE, scale).map(distance) == pytest.approx(epsilon, rel=1e-12)
        assert noisy_max.measurement(ZCDP, scale).map(distance) == pytest.approx(epsilon**2 / 8, rel=1e-12)


@pytest.mark.parametrize("measure", [PURE, ZCDP])
def test_what_opendp_draws_now_is_what_was_recorded(measure):
    """At loss ln 4 the two laws are a twelfth apart; a count is off once in two million."""
    ends = {
        law: [binom.ppf([2.5e-7, 1 - 2.5e-7], DRAWS_NOW, float(p)) for p in firsts(law, 2)] for law in DRAWN.values()
    }
    near, far = ends[oracle.exponential][0], ends[oracle.permute_and_flip][0]
    assert near[1] < far[0]  # so no count is within both
    for count, (least, most) in zip(opendp_answers(measure), ends[DRAWN[measure]], strict=True):
        assert least <= count <= most


@pytest.mark.parametrize("measure", [PURE, ZCDP])
def test_an_audit_tells_permute_and_flip_from_what_is_declared(measure):
    """The draws made now: what they show of rho exceeds an eighth of ln 4 squared iff they are permute-and-flip.

    At 99.99 % either verdict is wrong less than once in a million times: 6 standard deviations away, or more.
    """
    (hits, other), n, confidence = opendp_answers(measure), DRAWS_NOW, 0.9999
    low, high = clopper_pearson(hits, n, (1 + confidence) / 2)[0], clopper_pearson(other, n, (1 + confidence) / 2)[1]
    assert low > high
    assert (mean_log_ratio(low, high) > math.log(4) ** 2 / 8) == (measure == PURE)


def test_the_page_has_the_bounds_of_the_record():
    """Of the zCDP draws, and of the pure ones held against the same promise."""
    rho = (2 / noisy_max.SCALE) ** 2 / 8
    promised, delta, end = epsilon_of(noisy_max.DRAWS * rho, 0.01), 0.01, 0.975
    for row in NOISY["rows"]:
        key = row["version"] + ("_control" if row["measure"] == PURE else "")
        hits, other = (sum(i * times for i, times in enumerate(side)) for side in row["first"])
        n = noisy_max.DRAWS * noisy_max.BLOCKS
        least = mean_log_ratio(clopper_pearson(hits, n, end)[0], clopper_pearson(other, n, end)[1])
        assert glued(f"noisy_max_least_rho_{key}") == pytest.approx(least, rel=1e-9)
        four = row["first"][0][-1], noisy_max.BLOCKS, row["first"][1][-1], noisy_max.BLOCKS
        bound = audit_peers.lower_bound(*four, delta)
        assert glued(f"noisy_max_least_epsilon_{key}") == pytest.approx(bound, rel=1e-9)
        assert (bound > promised) == (least > rho) == (row["measure"] == PURE)


def test_another_library_composes_and_converts_to_the_same_promise():
    dp = pytest.importorskip("opendp.prelude", reason=not_run.OPENDP)
    selections = [noisy_max.measurement(ZCDP)] * noisy_max.DRAWS
    promise = dp.c.make_zCDP_to_approxDP(dp.c.make_composition(selections)).map(noisy_max.DISTANCE)
    ours = epsilon_of(noisy_max.DRAWS * (2 / noisy_max.SCALE) ** 2 / 8, 0.01)
    assert promise.epsilon(0.01) == pytest.approx(ours, rel=1e-6)
