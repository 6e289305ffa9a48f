"""The exact audit and the grey box of learners with a delta: divergences by hand, what ships, and what is refused."""

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pytest
from shared import some_traps

from dpforest import (
    DiffPETsClassifier,
    DiffPETsRegressor,
    DPAdaBoostClassifier,
    DPsAdaBoostClassifier,
    EDPRFClassifier,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    RandomTreesClassifier,
    RandomTreesRegressor,
    Schema,
    audit,
    cli,
    mechanisms,
)
from dpforest.audit.exact.divergence import ORDERS, largest_rho, log_gaussian, noise_moment, rho_of_laws
from dpforest.audit.exact.laws import Shape
from dpforest.audit.exact.noisy import NoiselessChance, Noisy, largest_law
from dpforest.audit.report.batches import Fits
from dpforest.audit.search.climbing import by_bound, by_loss
from dpforest.chance import NotEnumerableError, Replay
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE, Ledger, epsilon_of, rho_of

relations = pytest.mark.parametrize("relation", RELATIONS)
ONE, NUMBERS = Schema(categorical={"a": [0, 1]}, classes=[0, 1]), Schema(categorical={"a": [0, 1]}, target=(0, 1))
EPSILON, DELTA = 8.0, 1e-3
RECORDS = ((0, 0), (0, 1), (1, 1))

# -- divergences -------------------------------------------------------------------------------------------------------


def some_law(rng, n=5):
    weights = rng.integers(1, 9, n)
    return {at: Fraction(int(w), int(weights.sum())) for at, w in enumerate(weights)}


def by_hand(p, q, order) -> float:
    """``D_a / a`` of two dicts, at order 1 the divergence itself."""
    if order == 1:
        return sum(float(p[o]) * math.log(p[o] / q[o]) for o in p)
    return math.log(oracle.moment(p, q, order)) / ((order - 1) * order)


@pytest.mark.claim("def-concentrated")
@pytest.mark.parametrize("seed", range(6))
def test_the_rho_of_finite_laws(seed):
    """Against sums of fractions, at each order; and for rows of logarithms, as the grey box has them."""
    rng = np.random.default_rng(seed)
    p, q = some_law(rng), some_law(rng)
    every = {order: by_hand(p, q, order) for order in ORDERS}
    for order, wanted in every.items():
        assert rho_of_laws(p, q, [order])[0] == pytest.approx(wanted, rel=1e-12)
    rho, order, output = rho_of_laws(p, q)
    assert rho == pytest.approx(max(every.values()), rel=1e-12)
    assert every[order] == max(every.values())
    assert output in p
    logs = [np.log([[float(v) for v in law.values()]]) for law in (p, q)]
    assert largest_rho(*logs)[0] == pytest.approx(rho, rel=1e-12)


def test_what_only_one_law_has_needs_an_infinite_rho():
    half = Fraction(1, 2)
    assert rho_of_laws({0: half, 1: half}, {0: Fraction(1)}) == (math.inf, 1, 1)
    assert rho_of_laws({0: Fraction(1)}, {0: half, 1: half})[0] == pytest.approx(math.log(2))
    never = -math.inf
    found = largest_rho(np.array([[never, 0.0], [math.log(0.5)] * 2]), np.array([[math.log(0.5)] * 2, [never, 0.0]]))
    assert found == pytest.approx([math.log(2), math.inf])


@pytest.mark.claim("thm-discrete-gaussian")
@pytest.mark.parametrize("rate", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_the_moment_of_gaussian_noise(rate, shift):
    """Against sums in fifty digits; a second rate, and no noise at all, cost what they cost."""
    for order in (1, 2, 3, 8):
        for its_rate in (rate, rate * 0.7):
            reach = 200
            p, q = oracle.gaussian(rate, reach), oracle.gaussian(its_rate, reach + shift, shift)
            if order == 1:
                wanted = float(sum(p[k] * (p[k] / q[k]).ln() for k in p))
            else:
                wanted = float(sum(p[k] ** order / q[k] ** (order - 1) for k in p).ln())
            assert noise_moment(shift, rate, its_rate, True, order) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert noise_moment(shift, rate, rate * 1.5, True, 8) == math.inf  # the other side has the lighter tails
    assert noise_moment(shift, math.inf, math.inf, True, 2) == (math.inf if shift else 0)
    assert noise_moment(shift, rate, math.inf, True, 2) == math.inf
    none = float(oracle.gaussian(rate, 200)[shift].ln())
    assert noise_moment(shift, math.inf, rate, True, 3) == pytest.approx(-2 * none, rel=1e-12)


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_the_moment_of_geometric_noise(rate):
    k = np.arange(-400, 402)
    for order in (1, 2, 4):
        for shift, its_rate in ((1, rate), (2, rate), (1, 0.9 * rate)):
            p = rate * -np.abs(k) + math.log(math.tanh(rate / 2))
            q = its_rate * -np.abs(k - shift) + math.log(math.tanh(its_rate / 2))
            terms = np.exp(order * p - (order - 1) * q) if order > 1 else np.exp(p) * (p - q)
            wanted = float(terms.sum()) if order == 1 else math.log(terms.sum())
            assert noise_moment(shift, rate, its_rate, False, order) == pytest.approx(wanted, rel=1e-9)
    assert noise_moment(1, rate, 3 * rate, False, 2) == math.inf


def test_faint_noise_has_a_law_too():
    for rate in (0.19, 0.21, 1e-3):
        reach = math.ceil(math.sqrt(120 / rate))
        assert log_gaussian(np.array([3]), np.array([rate]))[0] == pytest.approx(
            float(oracle.gaussian(rate, reach)[3].ln()), rel=1e-13
        )


@pytest.mark.claim("lem-concentrated-coins")
@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_what_coins_hide_is_added_up(rate):
    """A record in one of two trees, by a fair coin: moments in closed form."""
    joined = Shape(np.array([[1, 0], [0, 1]]), np.array([0.5, 0.5]), np.full(2, rate), gaussian=True)
    none = Shape(np.array([[0, 0]]), np.ones(1), np.full(2, rate), gaussian=True)
    e = math.exp(rate)
    closed = {2: (e**2 + 1) / 2, 3: (e**6 + 3 * e**2) / 4}
    for order, wanted in closed.items():
        assert rho_of_laws({"": joined}, {"": none}, [order])[0] == pytest.approx(
            math.log(wanted) / ((order - 1) * order), rel=1e-9
        )
    rho = rho_of_laws({"": joined}, {"": none})[0]
    assert rate / 4 < rho < rate
    assert rho_of_laws({"": joined}, {"": joined})[0] == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="the rates of the noise depend on coins"):
        rho_of_laws({"": joined}, {"": Shape(np.array([[0, 0]]), np.ones(1), np.full(2, 0.3), gaussian=True)})
    with pytest.raises(ValueError, match="values to add up"):
        rho_of_laws({"": joined}, {"": Shape(none.counts + 3000, none.weights, none.rates, gaussian=True)})


def test_gaussian_answers_that_are_compared_or_ranked():
    """Their outcomes are visited with the probabilities that fifty digits give."""
    rate, reach = 0.4, 30
    noise = oracle.gaussian(rate, reach)
    source = Replay()
    source.gaussian = True
    counts, rates = np.array([[2, 0, 1]]), np.full((1, 3), rate)
    law = {}
    while True:
        answer = Noisy(counts, rates, source, lambda *_: None) >= 2
        law[tuple(answer[0].tolist())] = source.probability
        if not source.advance():
            break
    above = [float(sum(p for k, p in noise.items() if c + k >= 2)) for c in (2, 0, 1)]
    for said, p in law.items():
        wanted = math.prod(a if yes else 1 - a for a, yes in zip(above, said, strict=True))
        assert p == pytest.approx(wanted, rel=1e-12)
    wins = [Decimal(0)] * 3
    for noises in itertools.product(range(-9, 10), repeat=3):
        noisy = [c + k for c, k in zip((2, 0, 1), noises, strict=True)]
        wins[noisy.index(max(noisy))] += math.prod(noise[k] for k in noises)
    assert largest_law(counts[0], rates[0], True) == pytest.approx([float(w) for w in wins], rel=1e-9)
    assert largest_law(np.array([2, 0]), np.full(2, math.inf), True).tolist() == [1, 0]


# -- the exact audit ---------------------------------------------------------------------------------------------------

COUNTS = [
    (RandomTreesClassifier, {"n_estimators": 1, "max_depth": 0}, ONE),
    (RandomTreesClassifier, {"n_estimators": 2, "max_depth": 1}, ONE),
    (RandomTreesRegressor, {"n_estimators": 2, "max_depth": 1}, NUMBERS),
]
SELECTS = [
    (EDPRFClassifier, {"n_estimators": 1, "max_depth": 1, "leaf": "label"}, ONE),
    (EDPRFClassifier, {"n_estimators": 1, "max_depth": 1}, ONE),
    (DiffPETsClassifier, {"n_estimators": 2, "max_depth": 1, "cuts_per_feature": 1, "stop_margin": 0.5}, ONE),
    (DiffPETsRegressor, {"n_estimators": 2, "max_depth": 1, "cuts_per_feature": 1}, NUMBERS),
]
ADABOOSTS = [
    (DPsAdaBoostClassifier, {"n_estimators": 1, "max_depth": 0}, ONE),
    (DPsAdaBoostClassifier, {"n_estimators": 1, "max_depth": 1, "cuts_per_feature": 1}, ONE),
    (DPsAdaBoostClassifier, {"n_estimators": 1, "max_depth": 1, "cuts_per_feature": 1, "class_weight": {1: 0.25}}, ONE),
    (DPAdaBoostClassifier, {"n_estimators": 1}, ONE),
    (DPAdaBoostClassifier, {"n_estimators": 1, "class_weight": {1: 0.25}, "criterion": "majority"}, ONE),
]
BOOSTS = [
    (PrivateBoostingClassifier, {"n_estimators": 2, "interactions": 0, "n_rows": 6}, ONE),
    (PrivateBoostingRegressor, {"n_estimators": 2, "interactions": 0, "n_rows": 6}, NUMBERS),
]


def made(case, relation, **more):
    kind, options, schema = case
    selection = {"selection": "exponential"} if case in SELECTS or case in ADABOOSTS else {}
    return kind(
        **{"epsilon": EPSILON, "delta": DELTA, "schema": schema, "relation": relation} | options | selection | more
    )


@pytest.mark.claim("thm-forest-delta")
@relations
@pytest.mark.parametrize("case", COUNTS, ids=lambda case: case[0].__name__)
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_forests_that_count_need_all_of_their_rho(case, relation, epsilon):
    """Equality: the exact audit is sharp, and a hundredth less would be refuted."""
    found = audit.exact_audit(made(case, relation, epsilon=epsilon), n_max=2)
    assert found.rho == pytest.approx(rho_of(epsilon, DELTA), rel=1e-9)
    assert found.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert not found.violated
    assert "holds; exact rho" in str(found)
    assert f"at delta {DELTA:g}, a rho of {found.claimed_rho:.6g}" in str(found)
    said = found.to_dict()
    assert (said["delta"], said["rho"], said["claimed_rho"]) == (DELTA, found.rho, found.claimed_rho)
    assert {"rho", "delta"}.isdisjoint(audit.exact_audit(made(case, relation, delta=0.0), n_max=1).to_dict())


@pytest.mark.claim("thm-forest-delta")
@relations
@pytest.mark.parametrize("case", SELECTS, ids=lambda case: case[0].__name__)
def test_forests_that_select_keep_their_rho(case, relation):
    model = made(case, relation)
    found = audit.exact_audit(model, n_max=2)
    assert not found.violated
    assert rho_of(EPSILON, DELTA) / 30 < found.rho
    # what the grey box adds up is no less: it sees the answers that the model does not tell
    grey = audit.greybox(model, [found.pair, found.pair[::-1]], runs="all" if case[1].get("leaf") else 6)
    assert found.rho <= grey.paid * (1 + 1e-9)
    assert not grey.violated


@pytest.mark.claim("thm-forest-delta")
@relations
@pytest.mark.parametrize("case", ADABOOSTS, ids=lambda case: case[0].__name__)
def test_rounds_of_boosting_keep_their_rho(case, relation):
    """One round exactly; three, whose records weigh what released trees make of them, in the grey box."""
    found = audit.exact_audit(made(case, relation), n_max=2)
    assert not found.violated
    assert found.rho > rho_of(EPSILON, DELTA) / 2.1
    if case[1].get("max_depth") == 0:
        assert found.rho == pytest.approx(rho_of(EPSILON, DELTA), rel=1e-9)
    pairs = [
        found.pair,
        *(
            ((one, *rest), (*rest, *new))
            for one, *rest in (RECORDS, RECORDS[::-1])
            for new in ([(1 - one[0], one[1])] if relation == REPLACE_ONE else [],)
        ),
    ]
    grey = audit.greybox(made(case, relation, n_estimators=3), pairs, runs=8, random_state=0)
    assert not grey.violated, grey.findings
    assert grey.paid == pytest.approx(grey.budget, rel=1e-9)
    assert grey.measured > grey.budget / 20
    with pytest.raises(NotEnumerableError, match="for more than what it releases"):
        audit.exact_audit(made(case, relation, n_estimators=2), n_max=1)


@pytest.mark.claim("thm-forest-delta")
@relations
@pytest.mark.parametrize("order", [2, 3])
def test_weights_that_an_answer_gives_cost_nothing_more(order, relation):
    """Two rounds, enumerated: a record counts half in the second if the first said that its class leads.

    Counts are in half records; given the first answer, the second's moment is a closed form in fifty digits.
    """
    b, changes = 0.3, 2 if relation == REPLACE_ONE else 1
    rate, reach = b / changes / 4, 60
    noise = {k: float(p) for k, p in oracle.gaussian(rate, reach).items()}
    tables = [(m, n) for m in range(4) for n in range(4)]  # records of either class

    def first(counts):
        laws = [np.array([noise.get(int(o) - 2 * c, 0.0) for o in np.arange(-40, 60)]) for c in counts]
        return laws[0][:, None] * laws[1]

    leads = np.subtract.outer(np.arange(-40, 60), np.arange(-40, 60)) > 0
    worst = 0.0
    for one in tables:
        for other in tables:
            moved = [abs(x - y) for x, y in zip(one, other, strict=True)]
            if sorted(moved) != ([1, 1] if relation == REPLACE_ONE else [0, 1]):
                continue
            if relation == REPLACE_ONE and sum(one) != sum(other):
                continue
            p, q = first(one), first(other)
            seen = (p > 1e-250) & (q > 1e-250)
            logs = [np.log(np.where(seen, law, 1.0)) for law in (p, q)]
            factor = np.where(seen, np.exp(order * logs[0] - (order - 1) * logs[1]), 0.0)
            total = 0.0
            for said in (True, False):
                steps = (1, 2) if said else (2, 1)  # what a record of either class adds now
                change = sum((step * move) ** 2 for step, move in zip(steps, moved, strict=True))
                total += factor[leads == said].sum() * math.exp(order * (order - 1) * rate * change)
            worst = max(worst, math.log(total) / ((order - 1) * order))
    assert b < worst <= 2 * b * (1 + 1e-9)


@pytest.mark.claim("thm-forest-delta")
def test_trees_that_share_by_coins_keep_the_rho_of_one():
    for relation, n_max in ((ADD_REMOVE, 1), (REPLACE_ONE, 1)):
        model = made(SELECTS[0], relation, n_estimators=2, epsilon=20.0)
        found = audit.exact_audit(model, n_max=n_max)
        assert not found.violated
        assert found.rho > rho_of(20.0, DELTA) / 10


# -- the grey box ------------------------------------------------------------------------------------------------------


@pytest.mark.claim("thm-concentrated-path")
@relations
@pytest.mark.parametrize("case", [*COUNTS, *SELECTS, *BOOSTS], ids=lambda case: case[0].__name__)
def test_what_ships_keeps_its_accounts(case, relation):
    """No finding on traps and small pairs; where all is counted, what is measured is what is paid and claimed.

    By two runs of every third trap: as many find every mutant of test_concentrated_mutants.
    """
    model = made(case, relation)
    found = audit.greybox(model, some_traps(model, 3), runs=2, random_state=0)
    assert not found.violated, found.findings
    assert found.paid == pytest.approx(found.budget, rel=1e-9)
    assert found.measured <= found.paid * (1 + 1e-9)
    if case in COUNTS:
        assert found.measured == pytest.approx(found.budget, rel=1e-9)
    assert found.budget == rho_of(EPSILON, DELTA)
    assert found.unspent == pytest.approx(0, abs=1e-9)
    assert f"a rho of {found.budget:.6g}, under {relation}" in str(found)
    assert (found.to_dict()["delta"], found.to_dict()["budget"]) == (DELTA, found.budget)


# -- by draws, at the command line, and what is refused ----------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 7, 3000])
def test_fits_that_are_drawn_together_have_the_noise_of_one(copies, monkeypatch):
    rates = []
    noisy = mechanisms.discrete_gaussian

    def note(counts, rate, chance):
        rates.append(np.unique(np.broadcast_to(rate, np.shape(counts))))
        return noisy(counts, rate, chance)

    monkeypatch.setattr(mechanisms, "discrete_gaussian", note)
    model = made(COUNTS[1], ADD_REMOVE)
    Fits(model, 1, "sequential", delta=DELTA)(((0, 0),), copies, np.random.default_rng(0))
    assert np.concatenate(rates) == pytest.approx(rho_of(EPSILON, DELTA) / 2, rel=1e-9)


def test_the_command_line_audits_a_delta(capsys):
    how = ["--option", "delta=1e-6", "--depth", "1", "--features", "1", "--scale", "small", "-n", "200", "--quiet"]
    assert cli.main(["audit", "random-trees", *how]) == 0
    assert cli.main(["audit", "random-trees", *how[:-1]]) == 0
    assert "at delta 1e-06, a rho of" in capsys.readouterr().out


def test_what_is_refused_says_why():
    model = made(SELECTS[0], ADD_REMOVE)
    with pytest.raises(ValueError, match=r"a delta of 0\.001 speaks of means over all outputs"):
        audit.path_audit(model, n_max=2)
    with pytest.raises(ValueError, match="with a delta leave base out"):
        audit.exact_audit(model, n_max=1, base=2)
    looks = (
        lambda: by_loss(model),
        lambda: by_bound(model, n=100),
        lambda: audit.one_run(model, n_canaries=2),
        lambda: Fits(model, 1, delta=DELTA / 10),
    )
    for look in looks:
        with pytest.raises(ValueError, match=r"audit it with delta=0, or by exact_audit, greybox or empirical"):
            look()
    with pytest.raises(ValueError, match=r"nothing to audit"):
        audit.greybox(made(COUNTS[0], ADD_REMOVE, epsilon="non-private"))


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_noise_that_no_lemma_covers_is_no_alarm(delta):
    """The flagship computes with its noisy sums: it is not replayed as if they were exact."""
    for case in BOOSTS:
        with pytest.raises(
            NotEnumerableError, match="uses its noisy answers for more than what it releases, which no lemma covers"
        ):
            audit.exact_audit(made(case, ADD_REMOVE, delta=delta), n_max=1)


def test_noise_of_two_kinds_in_one_run_is_refused():
    class Source(NoiselessChance, Replay):
        pass

    source = Source()
    source.two_sided_geometric(np.ones(1), (1,))
    with pytest.raises(NotEnumerableError, match="two kinds"):
        source.discrete_gaussian(np.ones(1), (1,))


# -- an independent derivation -----------------------------------------------------------------------------------------


@pytest.mark.claim("lem-concentrated-conversion")
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("rho", [0.01, 0.02, 0.5, 3.0, 40.0])
def test_the_conversion_of_fifty_digits(rho, delta):
    """The least delta over all orders, solved the other way round: at the epsilon found it is the delta asked for."""
    epsilon = epsilon_of(rho, delta)
    assert float(oracle.delta_of(rho, epsilon)) == pytest.approx(delta, rel=1e-6)
    assert float(oracle.delta_of(rho, epsilon)) <= delta * (1 + 1e-9)
    assert float(oracle.delta_of(rho_of(epsilon, delta), epsilon)) == pytest.approx(delta, rel=1e-6)
    assert float(oracle.delta_of(rho * 1.01, epsilon)) > delta * 1.001  # the test could fail


def of_sums(rate: float, times: int) -> dict[int, float]:
    """The law of the sum of so many noises: where all counts move by one it is as good as all of them."""
    one = [float(p) for p in oracle.gaussian(rate, math.ceil(math.sqrt(60 / rate))).values()]
    total = [1.0]
    for _ in range(times):
        total = np.convolve(total, one).tolist()
    return {k - len(total) // 2: p for k, p in enumerate(total)}


@pytest.mark.claim("lem-concentrated-conversion")
@pytest.mark.claim("thm-concentrated-path")
@pytest.mark.parametrize("times", [1, 4])
def test_many_counts_need_no_more_delta_than_is_said(times):
    """The hockey-stick divergence of so many noisy counts together, all moved by one, on the rho of a ledger."""
    epsilon, delta = 1.0, 1e-4
    ledger = Ledger(ADD_REMOVE, delta=delta)
    rate = rho_of(epsilon, delta) / times
    for _ in range(times):
        ledger.charge(0, rate, 2 * rate, "count", "discrete Gaussian")
    law = of_sums(rate, times)
    needed = float(oracle.beyond(law, {k + times: p for k, p in law.items()}, math.exp(ledger.epsilon)))
    assert delta / 30 < needed < delta
    assert float(oracle.beyond(law, {k + times: p for k, p in law.items()}, math.exp(epsilon / 2))) > delta


PEER = json.loads((Path(__file__).parent / "peers" / "conversions.json").read_text(encoding="utf-8"))


@pytest.mark.claim("lem-concentrated-conversion")
@pytest.mark.parametrize("row", PEER["conversions"], ids=lambda row: f"{row['rho']:g}-{row['delta']:g}")
def test_another_accountant_converts_alike(row):
    """dp-accounting's Rényi accountant, over 8,000 orders: never below, for its orders are fewer than all."""
    ours = epsilon_of(row["rho"], row["delta"])
    assert ours <= row["epsilon"] * (1 + 1e-9)
    assert ours == pytest.approx(row["epsilon"], rel=1e-5)


@pytest.mark.claim("thm-concentrated-path")
@pytest.mark.claim("thm-hockey-stick")
@pytest.mark.parametrize(
    "row", PEER["compositions"], ids=lambda row: f"{row['rate']:g}-{row['times']}-{row['delta']:g}"
)
def test_another_accountant_composes_alike(row):
    """dp-accounting's privacy loss distributions of discrete Gaussian noise: the truth, from below and from above."""
    law = of_sums(row["rate"], row["times"])
    exact = audit.least_epsilon(law, {k + row["times"]: p for k, p in law.items()}, row["delta"])
    assert row["from"] * (1 - 1e-6) <= exact <= row["to"] * (1 + 1e-6)
    ledger = Ledger(ADD_REMOVE, delta=row["delta"])
    for _ in range(row["times"]):
        ledger.charge(0, row["rate"], 2 * row["rate"], "count", "discrete Gaussian")
    assert row["to"] < ledger.epsilon < 1.2 * row["to"]  # the price of adding up rhos
