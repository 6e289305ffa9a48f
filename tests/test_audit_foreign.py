"""Record and replay of foreign code: sound mechanisms are quiet, and each planted fault is found where it is."""

from __future__ import annotations

import math
import random
import sys

import numpy as np
import pytest
from numpy.random import default_rng as imported_by_name
from scipy.stats import norm

from dpforest.audit import NoisedValue, NoiseSource, audit_calls, record_calls
from dpforest.audit.foreign import KINDS, UNJUDGED

ONE, OTHER = [1, 2, 3], [1, 2]


class Mechanism:
    """What another library may have: a class whose method is named, and draws as it likes inside."""

    def __init__(self, epsilon, sensitivity):
        self.epsilon, self.sensitivity = epsilon, sensitivity

    def randomise(self, value):
        return value + np.random.default_rng().laplace(0, self.sensitivity / self.epsilon)

    @staticmethod
    def noise(scale):
        return [random.SystemRandom().uniform(-scale, scale) for _ in range(4)]

    @staticmethod
    def choose(probabilities):
        return random.SystemRandom().choices(range(len(probabilities)), probabilities)[0]


LAPLACE = NoiseSource(
    Mechanism,
    "randomise",
    lambda a: NoisedValue("laplace", a["value"], a["self"].sensitivity / a["self"].epsilon, a["self"].sensitivity),
)
CHOICE = NoiseSource(Mechanism, "choose", lambda a: NoisedValue("choice", a["probabilities"]))

NOISE = NoiseSource(Mechanism, "noise", lambda a: NoisedValue("laplace", None, a["scale"]))


def counts(rows):
    return np.bincount(rows, minlength=4)


def two_geometrics(rows):
    rng = np.random.default_rng()
    p = 1 - math.exp(-1)
    return len(rows) + rng.geometric(p) - rng.geometric(p)


def difference_of_geometrics(rows):
    rng = np.random.default_rng()
    p = 1 - math.exp(-1)
    return len(rows) + (rng.geometric(p, size=2) - rng.geometric(p, size=2))[0]


def in_place(rows):
    found = counts(rows).astype(float)
    found += np.random.default_rng().laplace(size=4)
    return found


def one_by_one(rows):
    noise = np.random.default_rng().laplace(0, 1.0, size=4)
    return [int(count) + noise[at] for at, count in enumerate(counts(rows))]


def shuffled(rows):
    rng = np.random.default_rng()
    order = rng.permutation(10)
    rng.shuffle(order)
    return order.tolist(), random.random(), sum(rng.permutation(4)) + len(rows) + rng.laplace()


def old_style(rows):
    np.random.seed(7)  # noqa: NPY002
    return np.random.laplace(len(rows), 1.0)  # noqa: NPY002


def old_state(rows):
    state = np.random.RandomState(3)
    assert isinstance(state, np.random.RandomState)
    return np.float64(len(rows)) - state.laplace(scale=1.0)


def from_exponentials(rows):
    rng = np.random.default_rng()
    first = rng.exponential(2.0)
    return 2 * len(rows) + (first - rng.exponential(2.0))


SOUND = {
    "a number": lambda rows: len(rows) + np.random.default_rng().laplace(0, 1.0),
    "as location": lambda rows: np.random.default_rng().laplace(len(rows), 1.0),
    "imported by name": lambda rows: len(rows) + imported_by_name().laplace(0, 1.0),
    "a generator of a bit generator": lambda rows: len(rows) + np.random.Generator(np.random.PCG64(1)).laplace(),
    "old functions": old_style,
    "old state": old_state,
    "an array": lambda rows: counts(rows) + np.random.default_rng().laplace(0, 1.0, size=4),
    "a multiple": lambda rows: 3 * counts(rows) - 3 * np.random.default_rng().laplace(size=4),
    "a quotient": lambda rows: len(rows) + np.random.default_rng().laplace(0, 2.0) / 2,
    "in place": in_place,
    "one by one": one_by_one,
    "two geometrics": difference_of_geometrics,
    "two exponentials": from_exponentials,
    "coins": shuffled,
    "named noise": lambda rows: counts(rows) + Mechanism.noise(1.0),
    "a named method": lambda rows: Mechanism(1.0, 1).randomise(len(rows)),
}


SOURCES = [LAPLACE, CHOICE, NOISE]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_mechanism_is_quiet_and_its_loss_is_exact(name):
    audit = audit_calls(SOUND[name], ONE, OTHER, epsilon=1.0, sources=SOURCES)
    assert audit.findings == []
    assert audit.complete
    assert not audit.violated
    assert audit.epsilon == pytest.approx(1.0, rel=1e-12)
    assert str(audit).endswith("no findings")
    stricter = audit_calls(SOUND[name], ONE, OTHER, epsilon=0.99, sources=SOURCES)
    assert [each.kind for each in stricter.findings] == ["loss"]


def wrong_sensitivity(rows):
    return sum(rows) + np.random.default_rng().laplace(0, 1.0)


def declares_too_little(rows):
    return Mechanism(1.0, 1).randomise(sum(rows))


def reads_the_exact_count(rows):
    rng = np.random.default_rng()
    found = [len(rows) + rng.laplace(0, 1.0)]
    if len(rows) > 2:
        found.append(rng.laplace(0, 1.0))
    return found


def drawn_once(rows):
    noise = np.random.default_rng().laplace(0, 2.0)
    return len(rows) + noise, sum(rows) + noise


def added_to_shifted_counts(rows, shift=10.1, more=0.0):
    """One draw for two numbers that change alike, but for the rounding of doubles."""
    noise = np.random.default_rng().laplace(0, 1.0)
    return len(rows) / 10 + noise, (len(rows) / 10 + shift) * (1 + more) + noise


def one_draw_for_all(rows):
    return counts(rows) + np.random.default_rng().laplace(0, 1.0)


def one_call_a_row(rows):
    return [1 + np.random.default_rng().laplace(0, 1.0) for _ in rows]


def calls_another(rows):
    rng = np.random.default_rng()
    return rng.normal(0, 1.0) + 1 if len(rows) > 2 else rng.laplace(0, 1.0) + 1


def draws_another_size(rows):
    return 1 + np.random.default_rng().laplace(0, 1.0, size=len(rows))


def adds_it_again(rows):
    noise = np.random.default_rng().laplace(0, 1.0)
    return [len(rows) + noise, *([1 + noise] if len(rows) > 2 else [])]


def subtracts_one_sided_noise(rows):
    rng = np.random.default_rng()
    first, second = rng.exponential(1.0), rng.exponential(1.0)
    return len(rows) + (first - second if len(rows) > 2 else first)


def without_noise(rows):
    return {"noisy": len(rows) + np.random.default_rng().laplace(0, 1.0), "classes": sorted(set(rows))}


def scaled_by_the_data(rows):
    return 1 + np.random.default_rng().laplace(0, 1 / len(rows))


def multiplied_by_the_data(rows):
    return 1 + np.random.default_rng().laplace(0, 1.0) / len(rows)


def another_element(rows):
    noise = np.random.default_rng().laplace(0, 1.0, size=2)
    return 1 + noise[len(rows) - 2]


def added_to_more(rows):
    return np.ones(len(rows)) + np.random.default_rng().laplace(0, 1.0)


def one_sided(rows):
    return len(rows) + np.random.default_rng().exponential(1.0)


def fails(rows):
    return 1 / (len(rows) - 2)


FAULTS = {
    "loss": wrong_sensitivity,
    "sensitivity": declares_too_little,
    "output": without_noise,
    "reuse": drawn_once,
    "scale": scaled_by_the_data,
    "error": fails,
}
FLOWS = (
    reads_the_exact_count,
    one_call_a_row,
    calls_another,
    draws_another_size,
    adds_it_again,
    another_element,
    added_to_more,
    subtracts_one_sided_noise,
)


@pytest.mark.parametrize(
    ("kind", "run"),
    [
        *FAULTS.items(),
        ("reuse", one_draw_for_all),
        ("scale", multiplied_by_the_data),
        ("loss", one_sided),
        ("loss", two_geometrics),
    ]
    + [("control-flow", run) for run in FLOWS],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_planted_fault_is_found_where_it_is(kind, run, turned):
    pair = (OTHER, ONE) if turned else (ONE, OTHER)
    audit = audit_calls(run, *pair, epsilon=1.0, sources=SOURCES)
    assert audit.violated
    assert kind in {each.kind for each in audit.findings}
    code = run.__code__
    lines = range(code.co_firstlineno, max(line for *_, line in code.co_lines() if line) + 1)
    for finding in audit.findings:
        file, _, line = finding.where.rpartition(":")
        assert (file, int(line) in lines) == ("tests/test_audit_foreign.py", True)
    assert kind in str(audit)


def test_losses_are_what_the_changes_say():
    assert audit_calls(wrong_sensitivity, ONE, OTHER, epsilon=1.0).epsilon == 3
    assert audit_calls(drawn_once, ONE, OTHER, epsilon=1.0).epsilon == math.inf
    assert audit_calls(one_sided, ONE, OTHER, epsilon=1.0).epsilon == math.inf
    same = audit_calls(drawn_once, [1, 1], [1], epsilon=1.0)  # both sums change by one: no difference without noise
    assert (same.epsilon, same.violated) == (0.5, False)


def test_a_choice_loses_the_largest_log_ratio():
    def run(rows):
        weights = np.exp(counts(rows) / 2)
        return Mechanism.choose(weights / weights.sum())

    audit = audit_calls(run, [1, 2, 2], [1, 2], epsilon=1.0, sources=[CHOICE])
    before, after = (np.exp(counts(rows) / 2) for rows in ([1, 2, 2], [1, 2]))
    expected = np.abs(np.log(before / before.sum()) - np.log(after / after.sum())).max()
    assert audit.epsilon == pytest.approx(expected, rel=1e-12)
    assert not audit.violated

    def certain(rows):
        return Mechanism.choose([1.0, 0.0] if len(rows) > 2 else [0.5, 0.5])

    assert audit_calls(certain, ONE, OTHER, epsilon=1.0, sources=[CHOICE]).epsilon == math.inf


@pytest.mark.claim("lem-range-concentrated")
def test_a_method_of_an_object_is_a_function_of_its_module():
    # as numpy.random.choice, which is a method of NumPy's own generator
    source = NoiseSource(np.random, "choice", lambda given: NoisedValue("choice", given["p"]))

    def choose(rows):
        weights = np.array([1 + sum(rows), 1.0])
        return int(np.random.choice(2, p=weights / weights.sum()))  # noqa: NPY002 - it is what is tested

    audit = audit_calls(choose, [1, 0], [0], epsilon=1.0, sources=[source])
    assert not audit.findings
    assert audit.epsilon == pytest.approx(np.log(3 / 2), rel=1e-12)  # of the second: 1/3 and 1/2


def test_many_small_losses_are_less_than_their_sum_at_a_delta():
    """400 counts of a loss of 1/100 each: 4 together, and at a delta of 1e-6 not even 1.1: no fault."""

    def many(rows):
        return [len(rows) + np.random.default_rng().laplace(0, 100.0) for _ in range(400)]

    rho = 400 * 0.01**2 / 2
    bound = rho + 2 * math.sqrt(rho * math.log(1e6))  # the plainest conversion
    audit = audit_calls(many, ONE, OTHER, epsilon=1.1, delta=1e-6)
    assert not audit.violated
    assert 0.8 < audit.epsilon < bound < 1.1
    assert audit_calls(many, ONE, OTHER, epsilon=0.8, delta=1e-6).violated
    pure = audit_calls(many, ONE, OTHER, epsilon=1.1)
    assert pure.violated
    assert pure.epsilon == pytest.approx(4.0)
    few = audit_calls(many, ONE, OTHER, epsilon=5.0, delta=1e-300)
    assert few.epsilon == pytest.approx(4.0)  # where the sum is less


@pytest.mark.parametrize("draw", [lambda: np.random.default_rng().normal(0, 4.0), lambda: random.gauss(0, 4.0)])
def test_gaussian_noise_has_its_exact_epsilon(draw):
    audit = audit_calls(lambda rows: [len(rows) + draw(), sum(rows) + draw()], ONE, OTHER, epsilon=5.0, delta=1e-5)
    assert audit.rho == pytest.approx((1 + 9) / 32, rel=1e-12)
    mu, epsilon = math.sqrt(10) / 4, audit.epsilon
    delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(1e-5, rel=1e-6)
    assert not audit.violated
    assert audit_calls(lambda rows: len(rows) + draw(), ONE, OTHER, epsilon=5.0).epsilon == math.inf  # no delta


@pytest.mark.parametrize(
    ("kind", "run"),
    [
        ("unseen", lambda rows: len(rows) + round(np.random.default_rng().laplace(0, 1.0))),
        ("unseen", lambda rows: len(rows) + np.random.default_rng().laplace(size=3).sum()),
        ("coin", lambda rows: np.random.default_rng().permutation(len(rows)).tolist()),
        ("coin", lambda rows: int(np.random.default_rng().binomial(len(rows), 0.5))),
    ],
)
def test_what_cannot_be_judged_is_said_and_is_no_violation(kind, run):
    audit = audit_calls(run, ONE, OTHER, epsilon=1.0)
    assert [each.kind for each in audit.findings] == [kind]
    assert not audit.complete
    assert not audit.violated


def test_more_runs_see_more_paths():
    def run(rows):
        first = len(rows) + np.random.default_rng().laplace(0, 2.0)
        return first, sum(rows) + np.random.default_rng().laplace(0, 2.0) if first > 4 else 0

    assert {audit_calls(run, ONE, OTHER, epsilon=1.0, random_state=seed).epsilon for seed in range(9)} == {0.5, 2.0}
    audit = audit_calls(run, ONE, OTHER, epsilon=1.0, n_runs=9)
    assert (audit.epsilon, audit.n_runs, audit.violated) == (2.0, 9, True)


def test_a_replay_gives_the_answers_of_the_recording():
    def run(rows):
        return counts(rows) + np.random.default_rng().laplace(size=4), random.gauss(len(rows), 1.0)

    with record_calls([LAPLACE]) as recording:
        first = run(ONE)
    with record_calls([LAPLACE], frozen=recording) as replay:
        second = run(OTHER)
    assert np.array_equal(first[0], second[0])
    assert first[1] == second[1]
    assert [call.uses[0].value.tolist() if call.uses else call.value.tolist() for call in replay.calls] == [
        [0, 1, 1, 0],
        2.0,
    ]
    with record_calls(random_state=1) as another:
        assert not np.array_equal(run(ONE)[0], first[0])
        assert another.generator().laplace() != 0
    assert [call.name for call in another.calls] == ["laplace", "gauss", "laplace"]


def replaced():
    """All that a recording replaces."""
    return (
        np.random.default_rng,
        np.random.Generator,
        np.random.RandomState,
        np.random.laplace,
        np.random.mtrand._rand,
        imported_by_name,
        random.gauss,
        random.random,
        dict(vars(random.Random)),
        dict(vars(random.SystemRandom)),
        dict(vars(Mechanism)),
    )


def test_nothing_is_left_behind():
    before = replaced()

    def fail():
        with record_calls(SOURCES):
            assert all(one != other for one, other in zip(replaced(), before, strict=True))
            fails(OTHER)

    with pytest.raises(ZeroDivisionError):
        fail()
    assert replaced() == before


def test_a_module_that_is_imported_meanwhile_keeps_nothing(tmp_path, monkeypatch):
    (tmp_path / "imported_meanwhile.py").write_text("from numpy.random import default_rng, laplace, RandomState\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_meanwhile", raising=False)

    def run(rows):
        import imported_meanwhile

        return len(rows) + imported_meanwhile.default_rng().laplace(0, 1.0)

    for _ in range(2):
        audit = audit_calls(run, ONE, OTHER, epsilon=1.0)
        assert (audit.epsilon, audit.findings) == (1.0, [])
    module = sys.modules.pop("imported_meanwhile")
    assert (module.default_rng, module.laplace) == (np.random.default_rng, np.random.laplace)
    assert module.RandomState is np.random.RandomState


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="law must be"):
        NoisedValue("normal", 1.0)
    with pytest.raises(ValueError, match="n_runs"):
        audit_calls(len, ONE, OTHER, epsilon=1.0, n_runs=0)
    with pytest.raises(RuntimeError, match=r"both runs end with ZeroDivisionError at tests/test_audit_foreign.py:\d+"):
        audit_calls(fails, OTHER, OTHER, epsilon=1.0)
    assert KINDS.keys() > UNJUDGED


def test_one_draw_may_hide_two_values_that_change_alike():
    """Their difference is public: rounding is no finding, and what is more than rounding is one."""
    first, second = (10.1 + len(rows) / 10 for rows in (ONE, OTHER))
    assert first - second != len(ONE) / 10 - len(OTHER) / 10
    quiet = audit_calls(added_to_shifted_counts, ONE, OTHER, epsilon=1.0)
    assert quiet.findings == []
    assert quiet.epsilon == pytest.approx(0.1, rel=1e-12)
    for more in (1e-13, -1e-13):
        audit = audit_calls(lambda rows, more=more: added_to_shifted_counts(rows, more=more), ONE, OTHER, epsilon=1.0)
        assert "reuse" in {each.kind for each in audit.findings}
