"""Likelihood ratios, as estimates: intervals that hold together, exact ratios beside them, claims that hold left alone.

All draws are seeded, so that every outcome here is the same on every run.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpforest import EDPRFClassifier, Schema, UnprovenPrivacyWarning, datasets
from dpforest.audit import class_pair, empirical, fit_ratios, fits_of, law_of, likelihood_ratios, plot_ratios, released
from dpforest.audit.exact.laws import law_of_labels
from dpforest.audit.sampling.bounds import lower_end, upper_end
from dpforest.audit.sampling.ratios import LikelihoodRatios
from dpforest.chance import NotEnumerableError
from dpforest.papers.diffpets import DiffPETsClassifier
from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
from dpforest.papers.dps_adaboost import DPsAdaBoostClassifier
from dpforest.papers.pearson_tree import PearsonTreeClassifier
from dpforest.privacy import ADD_REMOVE, RELATIONS, REPLACE_ONE

KEEP = 0.6  # of a truthful answer, below: the loss is ln(0.6 / 0.4)
LOSS = math.log(KEEP / (1 - KEEP))
BIT = Schema(categorical={"x": ["a", "b"]}, classes=["no", "yes"])
#: The smallest neighbours of which one is pure: records (x, class).
SMALLEST = {
    ADD_REMOVE: (((0, 0),), ((0, 0), (1, 1))),
    REPLACE_ONE: (((0, 0), (1, 0)), ((0, 0), (1, 1))),
}
relations = pytest.mark.parametrize("relation", RELATIONS)


def answer(bit, size, rng):
    """Randomised response of one bit."""
    return np.where(rng.random(size) < KEEP, bit, 1 - bit)


def noisy(records, size, rng):
    """A count with geometric noise, which falls by the factor 0.4 from one number to the next."""
    return sum(records) + rng.geometric(0.6, size) - rng.geometric(0.6, size)


def noisy_law(records):
    count = sum(records)
    return {k: 0.6 / 1.4 * 0.4 ** abs(k - count) for k in range(count - 60, count + 61)}


def found_of(hits, n, claim=1.0, confidence=0.95, tested=None, chances=None) -> LikelihoodRatios:
    return LikelihoodRatios(
        events=tuple(f"event {at}" for at in range(len(hits))),
        hits=tuple(hits),
        n=n,
        claim=claim,
        confidence=confidence,
        tested=tested or len(hits),
        pair="made up",
        chances=chances,
    )


# -- the intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "lem-ratio-intervals",
    verdict="proved",
    evidence="exhaustive",
    constant=r"all $k$ intervals hold together: $4k$ ends, each wrong with probability $(1-\gamma)/(4k)$ at most",
)
@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_all_intervals_hold_together_over_all_counts(confidence):
    """Two events that exclude each other, every pair of counts of 10 draws: as often as promised, and not always.

    The sum over all outcomes is the probability itself, so no draw is made.
    """
    n, worst = 10, 0.0
    counts = [(i, j) for i in range(n + 1) for j in range(n + 1 - i)]
    both = [
        found_of(list(zip(one, other, strict=True)), n, confidence=confidence).intervals.T
        for one in counts
        for other in counts
    ]
    low, high = np.stack(both, axis=1)
    for p, q in (((0.1, 0.3), (0.1, 0.3)), ((0.02, 0.5), (0.3, 0.2)), ((0.03, 0.05), (0.9, 0.05))):
        chances = [
            stats.multinomial(n, [*side, 1 - sum(side)]).pmf([[i, j, n - i - j] for i, j in counts]) for side in (p, q)
        ]
        truth = np.array(p) / np.array(q)
        outside = ((truth < low) | (truth > high)).any(axis=1)
        missed = float(np.outer(*chances).ravel()[outside].sum())
        assert missed <= 1 - confidence
        worst = max(worst, missed)
    assert worst > (1 - confidence) / 100  # or nothing was tested


@pytest.mark.claim("lem-ratio-intervals")
def test_a_claim_that_holds_is_seldom_called_violated():
    """One event with the whole claimed ratio of 2, every pair of counts of 40 draws: at most 5 %; 20 % if it is 4."""
    n = 40
    called = np.array([[found_of([(i, j)], n, claim=math.log(2)).violated for j in range(n + 1)] for i in range(n + 1)])
    hits = np.arange(n + 1)

    def chance(p, q):
        return float(stats.binom(n, p).pmf(hits) @ called @ stats.binom(n, q).pmf(hits))

    assert max(chance(q * 2, q) for q in (0.02, 0.1, 0.25, 0.45, 0.5)) <= 0.05
    assert chance(0.8, 0.2) > 0.2


def test_an_interval_is_made_of_the_ends_of_two_exact_ones():
    found = found_of([(30, 11), (2, 40)], 50, confidence=0.9)
    miss = 0.1 / 8  # two events, four ends each
    n, x, y = 50.0, np.array([30.0, 2.0]), np.array([11.0, 40.0])
    np.testing.assert_allclose(found.intervals[:, 0], lower_end(x, n, miss) / upper_end(y, n, miss))
    np.testing.assert_allclose(found.intervals[:, 1], upper_end(x, n, miss) / lower_end(y, n, miss))
    assert (found.intervals[:, 0] < found.ratios).all()
    assert (found.ratios < found.intervals[:, 1]).all()


def test_what_was_counted_and_never_seen_widens_the_intervals():
    one, other = found_of([(30, 11)], 50), found_of([(30, 11)], 50, tested=5)
    assert other.intervals[0, 0] < one.intervals[0, 0]
    assert one.intervals[0, 1] < other.intervals[0, 1]


def test_zero_cells_have_ratios_and_intervals():
    found = found_of([(0, 20), (20, 0), (0, 0), (20, 20)], 20)
    assert found.ratios[0] == 0
    assert math.isinf(found.ratios[1])
    assert math.isnan(found.ratios[2])
    assert found.ratios[3] == 1
    assert found.intervals[0, 0] == 0
    assert 0 < found.intervals[0, 1] < 1
    assert 1 < found.intervals[1, 0] < math.inf
    assert math.isinf(found.intervals[1, 1])
    assert found.intervals[1, 0] == pytest.approx(1 / found.intervals[0, 1])
    assert found.intervals[2].tolist() == [0, math.inf]
    assert found.refuting == ("event 0", "event 1")
    assert found.violated
    assert found.epsilon_lower == pytest.approx(math.log(found.intervals[1, 0]))
    assert not found_of([(0, 0)], 20, claim=0.0).violated
    assert "∞" in found.rows[1]["ratio"]
    assert found.rows[2]["ratio"] == "?"
    assert "nan" not in found.alt
    assert found.table.shape == (4, 7)


def test_estimates_come_to_the_exact_ratio():
    """Their spread halves as draws are four times as many, and their mean is near: 200 seeds, the delta method."""
    spreads = []
    for n in (1000, 4000):
        seen = [
            likelihood_ratios(answer, (0, 1), LOSS, n=n, random_state=s, events={"0": lambda out: out == 0}).ratios[0]
            for s in range(200)
        ]
        spread = np.std(seen)
        expected = KEEP / (1 - KEEP) * math.sqrt((1 - KEEP) / (n * KEEP) + KEEP / (n * (1 - KEEP)))
        assert spread == pytest.approx(expected, rel=0.2)
        assert np.mean(seen) == pytest.approx(1.5, abs=4 * expected / math.sqrt(200) + 1.5 / n)
        spreads.append(spread)
    assert spreads[0] / spreads[1] == pytest.approx(2, rel=0.25)


def test_the_exact_ratios_lie_in_the_intervals():
    """Fifty runs, eleven events each, at half confidence: in 25 by promise; two exact ends together keep more."""
    runs = [
        likelihood_ratios(noisy, ((), (1,)), 1, n=400, confidence=0.5, random_state=s, law=noisy_law) for s in range(50)
    ]
    assert sum(run.covered == len(run.events) for run in runs) >= 40
    wrong = [replace(run, chances=tuple((p, 0.5 * q) for p, q in run.chances)) for run in runs]
    assert sum(run.covered == len(run.events) for run in wrong) <= 10  # a law that is off by a factor shows


# -- mechanisms --------------------------------------------------------------------------------------------------------


def test_a_broken_mechanism_is_refuted_and_a_right_one_is_left_alone():
    """The count's loss is ln 2.5: a claim of 0.5 falls, and in 40 runs the truth does at most twice, as promised."""
    pairs = {ADD_REMOVE: ((0, 1), (0, 1, 1)), REPLACE_ONE: ((0, 1), (1, 1))}
    for relation, pair in pairs.items():
        broken = likelihood_ratios(noisy, pair, 0.5, relation=relation, random_state=0)
        assert broken.violated
        assert broken.refuting
        assert 0.7 < broken.epsilon_lower <= math.log(2.5)
        runs = [
            likelihood_ratios(noisy, pair, math.log(2.5), n=2000, relation=relation, random_state=s) for s in range(40)
        ]
        assert sum(run.violated for run in runs) <= 2
        assert not any(run.epsilon_lower > math.log(2.5) for run in runs)


def test_the_exact_ratio_is_that_of_the_law():
    found = likelihood_ratios(noisy, ((), (1,)), 0.5, law=noisy_law, random_state=0)
    table = found.table.set_index("event")
    np.testing.assert_allclose(table.loc[["0", "-1", "-2"], "exact"], 2.5)
    np.testing.assert_allclose(table.loc[["1", "2", "3"], "exact"], 0.4)
    assert found.covered == len(found.events)
    hits = np.array(found.hits)
    assert hits.sum(axis=0).tolist() == [found.n, found.n]  # every draw is in one row
    assert "any other output" in table.index
    rest = np.array(found.chances).sum(axis=0)
    np.testing.assert_allclose(rest, 1)


def test_wide_outputs_have_events_found_on_other_draws():
    def spread(bit, size, rng):
        return np.round((bit + rng.laplace(size=size)) * 2.0**20) * 2.0**-20

    found = likelihood_ratios(spread, (0, 1), 1.0, n=4000, random_state=0)
    assert all(">=" in event or "<=" in event for event in found.events)
    assert len(found.events) >= 4
    assert not found.violated
    assert 0.7 < found.epsilon_lower <= 1
    assert likelihood_ratios(spread, (0, 1), 0.5, n=4000, random_state=0).violated


def test_searching_is_not_looking():
    """Twenty thousand tickets and a loss of 0: events chosen on the draws that they are tested on would refute it."""

    def tickets(data, size, rng):
        return rng.integers(20_000, size=size)

    assert not any(likelihood_ratios(tickets, (0, 1), 0.1, n=300, random_state=s).violated for s in range(20))


def test_declared_events_and_their_exact_ratios():
    events = {"at most 0": lambda out: out <= 0, "above 20": lambda out: out > 20}
    found = likelihood_ratios(noisy, ("a yes more", (), (1,)), 0.5, events=events, law=noisy_law, random_state=0)
    assert found.events == tuple(events)
    assert found.tested == 2
    assert found.pair == "a yes more"
    assert found.exact[0] == pytest.approx(2.5)
    assert found.exact[1] == pytest.approx(0.4)
    assert math.isnan(found.ratios[1])
    assert found.covered == 2


def test_lists_of_labels_are_outputs_too():
    def words(bit, size, rng):
        return [("yes", "no")[said] for said in answer(bit, size, rng)]

    found = likelihood_ratios(
        words,
        (0, 1),
        LOSS,
        n=2000,
        random_state=0,
        law=lambda bit: {"yes": KEEP, "no": 1 - KEEP} if bit == 0 else {"yes": 1 - KEEP, "no": KEEP},
    )
    assert found.events == ("'yes'", "'no'")
    assert found.exact == pytest.approx([1.5, 1 / 1.5])


def test_a_certain_output_that_draws_is_shown():
    def certain(bit, size, rng):
        return np.full(size, bit) + 0 * rng.integers(2, size=size)

    found = likelihood_ratios(certain, (0, 1), 1.0, n=200, random_state=0)
    assert found.violated
    assert found.hits == ((200, 0), (0, 200))
    with pytest.raises(ValueError, match="deterministic"):
        likelihood_ratios(lambda bit, size, rng: np.full(size, bit), (0, 1), 1.0, n=200, random_state=0)


def test_the_same_seed_gives_the_same_answer():
    one, other, third = (likelihood_ratios(noisy, ((), (1,)), 0.5, n=500, random_state=s) for s in (0, 0, 1))
    pd.testing.assert_frame_equal(one.table, other.table)
    assert str(one) == str(other) != str(third)


def test_it_says_no_more_than_the_one_bound_of_an_audit():
    """Many events at once cost a little, and the audit searches for the best: within a tenth of each other here."""
    many = likelihood_ratios(noisy, ((), (1,)), 0.5, n=20_000, random_state=0).epsilon_lower
    one = empirical(noisy, ((), (1,)), 0.5, n=20_000, random_state=0).epsilon_lower
    assert many <= one <= many + 0.1


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"claim": -1}, ValueError, "finite epsilon"),
        ({"claim": "one"}, TypeError, "must be a number"),
        ({"confidence": 1}, ValueError, "strictly between 0 and 1"),
        ({"n": 5}, ValueError, "n"),
        ({"n": 50.5}, ValueError, "n must be a whole number"),
        ({"most": 0}, ValueError, "most"),
        ({"pair": [(0, 1), (1, 0)]}, ValueError, "one pair of neighbours, and got 2"),
        ({"pair": 7}, TypeError, "pairs"),
        ({"relation": "nearby"}, ValueError, "relation"),
        ({"pair": ((0,), (0, 1, 1)), "relation": ADD_REMOVE, "sample": noisy}, ValueError, "not one of neighbours"),
        ({"sample": 3}, TypeError, "must be a function"),
        ({"events": ["atoms"]}, TypeError, "a dict from names to functions"),
        ({"events": {}}, ValueError, "events is empty"),
        ({"events": {"all": 1}}, TypeError, "dict from names to functions"),
        ({"events": {"all": lambda out: out}}, ValueError, "one bool for each"),
        ({"events": {"all": lambda out: True}}, ValueError, "one bool for each"),
        ({"law": lambda bit: {bit: 1.0, 1 - bit: 0.0}}, ValueError, "outputs that its law has not"),
        ({"law": lambda bit: {"0": KEEP, "1": 1 - KEEP}}, ValueError, "invalid literal|law has not"),
        ({"law": lambda bit: {bit: 0.5}}, ValueError, "sum to one"),
        ({"law": lambda bit: [0.5, 0.5]}, TypeError, "must return a dict"),
    ],
)
def test_bad_input_is_refused_with_words(changed, error, words):
    given = {"sample": answer, "pair": (0, 1), "claim": 1.0, "n": 200, "random_state": 0} | changed
    if changed.get("law") and "0" in changed["law"](0):
        given["sample"] = lambda bit, size, rng: list(map(int, answer(bit, size, rng)))
    with pytest.raises(error, match=words):
        likelihood_ratios(given.pop("sample"), given.pop("pair"), given.pop("claim"), **given)


# -- the figure --------------------------------------------------------------------------------------------------------


def test_the_figure_shows_ratios_bands_and_exact_ones():
    import matplotlib.pyplot as plt

    found = likelihood_ratios(noisy, ((), (1,)), 0.5, law=noisy_law, n=2000, random_state=0)
    zero = found_of([(0, 200), (200, 0), (0, 0), (100, 90)], 200)
    made = plot_ratios({"noise": found, "made $up$": zero})
    assert [axes.get_xscale() for axes in made.axes] == ["log", "log"]
    crosses = [line for line in made.axes[0].lines if line.get_marker() == "x"]
    np.testing.assert_allclose(np.sort(crosses[0].get_xdata()), np.sort(found.exact))
    low, high = made.axes[1].get_xlim()
    assert low * high == pytest.approx(1)
    assert high > math.e
    assert {"<", ">"} <= {line.get_marker() for line in made.axes[1].lines}  # what lies beyond
    assert len(made.axes[0].get_yticklabels()) == len(found.events)
    plt.close(made)
    plt.close(found.plot())
    assert '"' not in found.alt
    assert f"{len(found.events)} likelihood ratios" in found.alt
    with pytest.raises(ValueError, match="nothing to plot"):
        plot_ratios({})


# -- learners ----------------------------------------------------------------------------------------------------------


def small(kind, relation, **options):
    given = {"max_depth": 1, "n_estimators": 1} | options
    known = kind().get_params()
    return kind(schema=BIT, relation=relation, **{name: value for name, value in given.items() if name in known})


LEARNERS = {
    "edprf": (EDPRFClassifier, {"leaf": "label", "stop_margin": 0.5}),
    "diffpets": (DiffPETsClassifier, {"leaf": "label", "stop_margin": 0.5, "cuts_per_feature": 1}),
    "pearson tree": (PearsonTreeClassifier, {"n_parts": 1, "stop": "candidate", "stop_margin": 0.5}),
}
#: Of a single look, draws in which it shows at the sizes below.
learners = pytest.mark.parametrize(("kind", "options"), LEARNERS.values(), ids=LEARNERS)


@relations
@learners
def test_published_papers_are_refuted_and_repaired_ones_are_not(kind, options, relation):
    n = 1000 if kind is not PearsonTreeClassifier else 150
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        published = fit_ratios(small(kind, relation, variant="published"), SMALLEST[relation], n=n, random_state=0)
    proved = fit_ratios(small(kind, relation, **options), SMALLEST[relation], n=n, random_state=0)
    assert published.violated
    assert not proved.violated
    assert published.covered == len(published.events)
    assert proved.covered == len(proved.events)
    assert np.nanmax(np.abs(np.log(proved.exact))) <= 1 + 1e-9  # the claim, by replay


@pytest.mark.parametrize("kind", [DPsAdaBoostClassifier, DPAdaBoostClassifier])
def test_published_boosting_is_refuted(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        published = fit_ratios(
            small(kind, REPLACE_ONE, variant="published"), SMALLEST[REPLACE_ONE], n=150, random_state=0
        )
    assert published.violated
    proved = fit_ratios(small(kind, REPLACE_ONE), SMALLEST[REPLACE_ONE], n=150, random_state=0)
    assert not proved.violated
    assert proved.exact is None


def test_the_law_of_a_fit_is_that_of_its_words():
    tree = small(EDPRFClassifier, ADD_REMOVE, leaf="label", stop_margin=0.5)
    data = SMALLEST[ADD_REMOVE][1]
    said = {out.words: p for out, p in fits_of(tree).law(data).items()}
    assert math.fsum(said.values()) == pytest.approx(1)
    assert sorted(said.values()) == pytest.approx(sorted(law_of(tree, BIT, data, released).values()))
    root = fits_of(tree, lambda words: "split" if "(" in words else "leaf").law(data)
    split = math.fsum(p for words, p in said.items() if "(" in words)
    assert {out.words: p for out, p in root.items()} == pytest.approx({"split": split, "leaf": 1 - split})


def test_the_label_of_noisy_counts_has_its_exact_law():
    """One leaf, two records of class 0 against none of class 1: the law in fractions, at e^rate = 2."""
    tree = EDPRFClassifier(
        schema=BIT, n_estimators=1, max_depth=1, leaf="counts", epsilon=math.log(2) * 2, stop_margin=50.0
    )
    law = law_of_labels(
        tree, BIT, ((0, 0), (0, 0)), lambda forest: forest.values[forest.feature < 0].argmax(axis=1).tolist()[0]
    )
    assert math.fsum(law.values()) == pytest.approx(1)
    assert law[0] > law[1]
    seen = fit_ratios(tree, (((0, 0),), ((0, 0), (0, 0))), n=4000, random_state=0)
    assert seen.exact is not None
    assert seen.covered == len(seen.events)


def test_a_pair_of_a_tables_size():
    data = datasets.load("breast-cancer")
    for relation, sizes in ((ADD_REMOVE, (357, 358)), (REPLACE_ONE, (357, 357))):
        tree = EDPRFClassifier(
            schema=data.schema, n_estimators=1, max_depth=1, n_bins=4, relation=relation, leaf="label"
        )
        pair = class_pair(tree, data.X, data.y)
        assert (len(pair.one), len(pair.other)) == sizes
        assert "benign" in pair.name
        assert len({record[-1] for record in pair.one}) == 1
        assert pair.other[-1][-1] != pair.one[0][-1]
        found = fit_ratios(tree, pair, n=100, seen=lambda words: words.split("(")[0], exact=False, random_state=0)
        assert not found.violated
        assert found.exact is None
    with pytest.raises(ValueError, match="a second class is needed"):
        class_pair(tree, data.X[np.asarray(data.y) == "benign"], data.y[np.asarray(data.y) == "benign"])


def test_noise_that_votes_has_no_law():
    with pytest.raises(NotEnumerableError, match="more than its largest entry"):
        fits_of(small(DPsAdaBoostClassifier, ADD_REMOVE)).law(SMALLEST[ADD_REMOVE][0])


def test_a_fraction_of_the_smallest_pair():
    """DiffPETs as published: "no" for sure against one in four, a ratio of 4, which the replay finds exactly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        found = fit_ratios(
            small(DiffPETsClassifier, ADD_REMOVE, variant="published"), SMALLEST[ADD_REMOVE], random_state=0
        )
    at = found.events.index("no")
    assert Fraction(float(found.exact[at])).limit_denominator(1000) == 4
