"""Canaries of any learner: who is shown the coins, what is fixed before a score, and what is found of whom."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpforest import EDPRFClassifier, RandomTreesClassifier, Schema
from dpforest.audit import one_run, one_run_bound, one_run_rho_bound
from dpforest.audit.attacks.canaries import _gap, _log_odds_of_label, _seeded
from dpforest.privacy.concentrated import epsilon_of

M = 200
EVERYONE = (np.arange(M)[:, None], np.arange(M) % 2)
OTHERS = (np.arange(M)[:, None], 1 - np.arange(M) % 2)


class Noisy(ClassifierMixin, BaseEstimator):
    """Counts each code and class with noise of a given kind; a record moves one count."""

    def __init__(self, noise="laplace", scale=1.0, codes=M, random_state=None):
        self.noise, self.scale, self.codes, self.random_state = noise, scale, codes, random_state

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        exact = np.zeros((self.codes, 2))
        np.add.at(exact, (np.asarray(X)[:, 0].astype(int), np.asarray(y)), 1)
        self.counts_ = exact + getattr(rng, self.noise)(scale=self.scale, size=exact.shape)
        self.classes_ = np.array([0, 1])
        return self


def count_of(model, X, y):
    return model.counts_[np.asarray(X)[:, 0].astype(int), y]


def audited(model=None, **options):
    model = Noisy() if model is None else model
    return one_run(model, **{"canaries": EVERYONE, "score": count_of, "claim": 1.0, "random_state": 0} | options)


# -- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.claim("thm-one-run-delta")
def test_a_sound_learner_is_seldom_accused():
    """Of 100 audits at 95 % more than 14 false alarms have probability below 1e-3; the seeds are fixed."""
    for options in ({}, {"guesses": (30, 30)}, {"replacements": OTHERS, "claim": 2.0}):
        found = [audited(random_state=seed, **options) for seed in range(100)]
        assert sum(one.violated for one in found) <= 14
        assert np.median([one.epsilon_lower for one in found]) > 0.3


def test_abstaining_shows_more_than_guessing_all():
    """Laplace counts far from the middle are surer than those near it."""
    few, all_ = (
        np.median([audited(guesses=g, random_state=s).epsilon_lower for s in range(60)]) for g in ((40, 40), None)
    )
    assert few > all_


@pytest.mark.parametrize("factor", [4, 8])
def test_too_little_noise_is_found(factor):
    audit = audited(Noisy(scale=1 / factor))
    assert audit.violated
    assert audit.epsilon_lower > 1.5
    assert audit.claim == 1
    assert (audit.isolated, audit.relation, audit.delta) == (None, "add-remove", 0.0)


@pytest.mark.claim("thm-one-run-delta")
def test_a_claim_with_a_delta():
    """Gaussian noise has no epsilon without a delta; with one the claim holds, and a tenth of the noise breaks it."""
    rho, delta = 0.125, 1e-5
    claim = epsilon_of(rho, delta)
    sound = [audited(Noisy("normal", 2.0), claim=claim, delta=delta, random_state=s) for s in range(40)]
    assert not any(one.violated for one in sound)
    broken = audited(Noisy("normal", 0.2), claim=claim, delta=delta)
    assert broken.violated
    assert broken.epsilon_lower == one_run_bound(broken.correct, M, delta=delta, canaries=M)
    assert broken.epsilon_lower < one_run_bound(broken.correct, M)
    assert f"(claim {claim:.6g} with delta = 1e-05: VIOLATED)" in str(broken)
    assert str(broken).endswith("guesses right, 200 canaries")
    assert broken.to_dict()["delta"] == delta


@pytest.mark.claim("thm-one-run-delta")
def test_a_claimed_rho():
    """Gaussian noise of scale 2 is concentrated at 1/8; a fifth of the noise is not."""
    sound = [audited(Noisy("normal", 2.0), claim=None, rho=1 / 8, random_state=seed) for seed in range(5)]
    assert not any(one.violated for one in sound)
    broken = audited(Noisy("normal", 0.4), claim=None, rho=1 / 8)
    assert broken.violated
    assert broken.rho_lower == one_run_rho_bound(broken.correct, M, M)
    assert 1 / 8 < broken.rho_lower < 1 / (2 * 0.4**2)
    assert (broken.rho, broken.claim, broken.to_dict()["claim"]) == (1 / 8, math.inf, None)
    assert str(broken).startswith(f"rho >= {broken.rho_lower:.4g} with 95 % confidence")
    assert "(claim 0.125: VIOLATED)" in str(broken)


def test_learners_without_privacy_are_found_by_the_odds_of_the_label():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(120, 400)), rng.integers(2, size=120)
    nearest = one_run(KNeighborsClassifier(1), canaries=(X, y), guesses=(30, 20), random_state=1)
    assert nearest.epsilon_lower > 0.5
    bayes = one_run(GaussianNB(), canaries=(X, y), guesses=(15, 15), random_state=1)
    assert bayes.epsilon_lower > 1
    assert bayes.claim == math.inf
    assert not bayes.violated
    piped = one_run(make_pipeline(StandardScaler(), GaussianNB()), canaries=(X, y), guesses=(15, 15), random_state=1)
    assert piped.epsilon_lower > 1


SCHEMA = Schema(categorical={"a": list(range(20)), "b": list(range(10))}, classes=["n", "y"])
FRAME = pd.DataFrame({"a": np.arange(M) % 20, "b": np.arange(M) // 20})
LABELS = np.where(np.arange(M) % 3, "y", "n")


def test_a_forest_of_this_library_says_its_claim():
    learner = RandomTreesClassifier(schema=SCHEMA, n_estimators=1, max_depth=2, split="multiway", epsilon=2.0)
    audit = one_run(learner, canaries=(FRAME, LABELS), random_state=0)
    assert audit.claim == 2
    assert not audit.violated
    assert audit.epsilon_lower > 0.5
    assert audit == one_run(learner, canaries=(FRAME, LABELS), random_state=0)


def test_a_secure_source_gets_no_seed():
    learner = RandomTreesClassifier(schema=SCHEMA, n_estimators=1, max_depth=2, split="multiway", source="secure")
    for model in (learner, make_pipeline(StandardScaler(), learner)):
        options = _seeded(model, np.random.default_rng(0)).get_params()
        assert [options[name] for name in options if name.endswith("random_state")] == [None]
    assert _seeded(make_pipeline(Noisy()), np.random.default_rng(0)).get_params()["noisy__random_state"] is not None
    assert one_run(learner, canaries=(FRAME, LABELS), random_state=0).canaries == M


def test_a_forest_under_replace_one_needs_replacements():
    learner = EDPRFClassifier(
        schema=SCHEMA, n_estimators=1, max_depth=2, stop="never", epsilon=4.0, relation="replace-one"
    )
    with pytest.raises(ValueError, match=r"promise is under replace-one, .* give replacements=, one for each canary"):
        one_run(learner, canaries=(FRAME, LABELS))
    other = np.where(LABELS == "y", "n", "y")
    audit = one_run(learner, canaries=(FRAME, LABELS), replacements=(FRAME, other), random_state=0)
    assert (audit.claim, audit.relation) == (4, "replace-one")
    assert audit.epsilon_lower > 0.2
    with pytest.raises(ValueError, match=r"promise is under add-remove, .* give no replacements="):
        one_run(learner.set_params(relation="add-remove"), canaries=(FRAME, LABELS), replacements=(FRAME, other))


def test_a_learner_with_a_delta_promises_nothing_at_a_smaller_one():
    learner = RandomTreesClassifier(schema=SCHEMA, n_estimators=1, max_depth=2, split="multiway", delta=1e-6)
    claims = [
        one_run(learner, canaries=(FRAME, LABELS), delta=delta, random_state=0).claim
        for delta in (0.0, 1e-7, 1e-6, 1e-3)
    ]
    assert claims == [math.inf, math.inf, 1, 1]


# -- what the theorem asks for ---------------------------------------------------------------------------------------


class Spy(Noisy):
    """Writes down what it was fitted to."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        Spy.seen.append((X, np.asarray(y)))
        return super().fit(X, y)


@pytest.mark.parametrize("guesses", [(10, 0), (0, 10), (150, 20), (100, 100), None])
def test_right_guesses_are_counted(guesses):
    """Against what the learner was shown: the highest scores are guessed in, the lowest out."""
    Spy.seen.clear()
    scores = {}

    def noted(model, X, y):
        assert np.array_equal(X, EVERYONE[0])  # all of them, in their own order
        assert np.array_equal(y, EVERYONE[1])
        scores["last"] = count_of(model, X, y)
        return scores["last"]

    audit = audited(Spy(), score=noted, guesses=guesses, random_state=5)
    ((X, _),) = Spy.seen
    inside = np.isin(np.arange(M), X[:, 0])
    top, bottom = guesses or (100, 100)
    order = np.argsort(scores["last"])
    assert audit.correct == inside[order[M - top :]].sum() + (~inside[order[:bottom]]).sum()
    assert audit.guesses == top + bottom
    assert 70 < inside.sum() < 130


def test_every_canary_has_a_coin_of_its_own():
    """The coins of 400 audits of two canaries are fair, and independent of each other."""
    Spy.seen.clear()
    pair, fixed = (np.array([[0], [1]]), np.array([0, 1])), (np.array([[2]]), np.array([0]))
    for seed in range(400):
        audited(Spy(codes=3), canaries=pair, records=fixed, random_state=seed)
    cells = np.bincount([2 * (0 in X[:, 0]) + (1 in X[:, 0]) for X, _ in Spy.seen], minlength=4)
    assert cells.sum() == 400
    assert (abs(cells - 100) < 35).all()  # four standard deviations
    assert all(X[0, 0] == 2 for X, _ in Spy.seen)  # the fixed record is always in


def test_replacements_stand_in():
    Spy.seen.clear()
    audited(Spy(), replacements=OTHERS, random_state=1)
    ((X, y),) = Spy.seen
    assert np.array_equal(X, EVERYONE[0])
    assert 70 < (y == EVERYONE[1]).sum() < 130


def test_with_replacements_the_score_is_the_gap_between_both():
    """Without noise both counts of a code show its coin; a score that says the same of both ends shows nothing."""
    exact = audited(Noisy(scale=0.0), replacements=OTHERS, guesses=(40, 40))
    assert exact.correct == 80

    def of_both(model, X, y):
        return model.counts_[X[:, 0]].sum(axis=1)

    blurred = audited(Noisy(scale=0.0), replacements=OTHERS, score=of_both)
    assert blurred.correct < 130

    def moved(model, X, y):
        return count_of(model, X, y) + 10 * X[:, 0]  # what is common to both ends drops out

    assert audited(Noisy(scale=0.0), replacements=OTHERS, guesses=(40, 40), score=moved).correct == 80
    assert _gap(np.array([math.inf, 1, -math.inf]), np.array([math.inf, 0, 1])).tolist() == [0, 1, -math.inf]


class Deaf(Noisy):
    """Looks at no record, and releases fair bits of the seed that it was given, or of one of its own."""

    def fit(self, X, y):
        self.counts_ = np.random.default_rng(0).integers(2, size=(M, 1)) * np.ones((1, 2))
        self.classes_ = np.array([0, 1])
        return self


@pytest.mark.claim("thm-one-run-delta")
def test_the_coins_are_not_the_bits_of_a_learner_with_the_same_seed():
    """A learner of loss 0 whose bits are those of the auditor's seed: coins from the same stream would accuse it."""
    assert audited(Deaf(), random_state=0).correct < 130
    assert audited(Deaf(), random_state=np.random.default_rng(0)).correct < 130
    coins = np.random.default_rng(0).integers(2, size=M).astype(bool)  # the mutant: coins without a stream of their own
    assert ((Deaf().fit(*EVERYONE).counts_[:, 0] > 0.5) == coins).all()


def test_ties_are_broken_without_a_look_at_the_coins():
    """Scores that are all the same: right guesses are binomial at one half."""
    right = [audited(score=lambda model, X, y: np.zeros(len(y)), random_state=s).correct for s in range(50)]
    assert abs(np.mean(right) - M / 2) < 5 * math.sqrt(M / 4 / 50)


def test_seeds_of_a_learner_are_drawn_anew():
    model = Noisy(random_state=7)
    assert audited(model) == audited()
    assert audited(model, random_state=1) != audited(model)
    assert model.random_state == 7
    assert not hasattr(model, "counts_")


# -- what is refused -------------------------------------------------------------------------------------------------


def test_numbers_of_guesses_are_fixed_before_there_is_a_fit():
    Spy.seen.clear()
    for chosen in (lambda scores: (10, 10), "best", 20, (3.5, 4), (True, 1), (1, 2, 3)):
        with pytest.raises(TypeError, match=r"two whole numbers, \(in, out\), fixed before there are scores"):
            audited(Spy(), guesses=chosen)
    for many in ((150, 51), (0, 0), (-1, 5)):
        with pytest.raises(ValueError, match="together from 1 to the number of canaries, 200"):
            audited(Spy(), guesses=many)
    assert not Spy.seen


def test_canaries_that_are_the_same_are_refused():
    X, y = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]), np.array([0, 1, 0])
    with pytest.raises(ValueError, match="canaries 0 and 2 are the same record"):
        audited(canaries=(X, y))
    with pytest.raises(ValueError, match="canaries 0 and 2 are the same record"):
        audited(canaries=(pd.DataFrame(X), y))
    with pytest.raises(ValueError, match="canaries 0 and 2 are the same record"):
        audited(canaries=(X.astype(object), y))
    assert audited(canaries=(X[:, :1], np.array([0, 1, 1]))).canaries == 3  # another class is another record
    with pytest.raises(ValueError, match="canary 1 is its own replacement"):
        audited(replacements=(EVERYONE[0], np.where(np.arange(M) == 1, 1, 1 - EVERYONE[1])))


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match=r"canaries must be a pair \(X, y\)"):
        audited(canaries=EVERYONE[0])
    with pytest.raises(ValueError, match=r"canaries must be \(X, y\) with X of shape"):
        audited(canaries=(EVERYONE[0], EVERYONE[1][1:]))
    with pytest.raises(ValueError, match=r"records must be \(X, y\) with X of shape"):
        audited(records=([1, 2], [0, 1]))
    with pytest.raises(ValueError, match="records must have the columns of the canaries"):
        audited(records=(np.zeros((2, 2)), [0, 1]))
    with pytest.raises(ValueError, match="replacements must have the columns of the canaries"):
        audited(replacements=(pd.DataFrame(OTHERS[0]), OTHERS[1]))
    with pytest.raises(ValueError, match="each canary needs one replacement: 200 canaries, 199 replacements"):
        audited(replacements=(OTHERS[0][1:], OTHERS[1][1:]))


def test_learners_that_cannot_be_audited_are_refused():
    with pytest.raises(TypeError, match="needs an estimator with fit"):
        audited(object())
    with pytest.raises(TypeError, match="has no predict_proba with classes_: give score="):
        audited(LinearRegression(), score=None)
    with pytest.raises(RuntimeError, match=r"(?s)GaussianNB could not be fitted .* records= gives it others"):
        one_run(GaussianNB(), canaries=(np.array([[1.0], [math.nan]]), [0, 1]), guesses=(1, 0), random_state=0)


def test_scores_that_are_no_numbers_are_refused():
    with pytest.raises(TypeError, match="score must be a function"):
        audited(score="log_loss")
    with pytest.raises(ValueError, match="one number for each of 200 canaries"):
        audited(score=lambda model, X, y: [1.0])
    with pytest.raises(ValueError, match="with 200 NaN"):
        audited(score=lambda model, X, y: np.full(len(y), math.nan))
    with pytest.raises(TypeError, match="score must return one number for each canary, not dict"):
        audited(score=lambda model, X, y: {})
    infinite = audited(score=lambda model, X, y: np.where(y, math.inf, -math.inf))
    assert infinite.guesses == M
    assert audited(score=lambda model, X, y: np.full(len(y), -math.inf), replacements=OTHERS).guesses == M


def test_arguments_of_the_other_kind_are_refused():
    with pytest.raises(TypeError, match="give one of n_canaries"):
        one_run(Noisy())
    with pytest.raises(TypeError, match="give one of n_canaries"):
        audited(n_canaries=5)
    forest = RandomTreesClassifier(schema=SCHEMA, n_estimators=1, max_depth=2, split="multiway")
    with pytest.raises(TypeError, match="with n_canaries there is no guesses and no delta"):
        one_run(forest, n_canaries=5, guesses=(1, 1), delta=1e-6)
    with pytest.raises(ValueError, match="a rho has no delta"):
        audited(claim=None, rho=0.1, delta=1e-6)
    with pytest.raises(TypeError, match="claim or rho, and not both"):
        audited(rho=0.1)
    with pytest.raises(ValueError, match="confidence must lie strictly between"):
        audited(confidence=95)


def test_a_class_that_was_not_learned_is_the_least_likely():
    """The coins may leave out all records of a class: its label has no odds, and one that is certain has all."""
    X = np.arange(4.0)[:, None]
    model = KNeighborsClassifier(2).fit(X[:3], list("aab"))
    odds = _log_odds_of_label(model, X, np.array(list("abbc")))
    assert odds.tolist() == [math.inf, -math.inf, 0.0, -math.inf]
