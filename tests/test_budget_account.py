"""Executable proofs of *An account*: what is refused, what is added up, and what outlives a process."""

from __future__ import annotations

import contextlib
import copy
import gc
import json
import math
import multiprocessing
import pickle
import threading
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import combinations_with_replacement, product

import joblib
import numpy as np
import pytest
from shared import MIXED, at_each_line, interrupt, table
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OrdinalEncoder,
    StandardScaler,
)

import dpforest
from dpforest import (
    Budget,
    BudgetError,
    BudgetWarning,
    EDPRFClassifier,
    OutOfSchemaWarning,
    PrivateBoostingClassifier,
    RandomTreesClassifier,
    Schema,
    evaluation,
)
from dpforest.engines.parquet import Parquet
from dpforest.models.release import released
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, account

TOP = 3  # noisy counts beyond 0 and this are merged, which no ratio of counts in between can tell


def noisy(count: int, loss: int) -> dict[int, Fraction]:
    """The law of a count with geometric noise at rate ``loss ln 2``."""
    a = Fraction(1, 2**loss)
    inner = {k: (1 - a) / (1 + a) * a ** abs(k - count) for k in range(1, TOP)}
    return {0: a**count / (1 + a), **inner, TOP: a ** (TOP - count) / (1 + a)}


def transcripts(data: tuple, relation: str, total: float, refund: bool = False) -> dict:
    """The exact law of an analyst who asks as long as the account allows it, and more or less by what was answered.

    A loss of ln 2 is 1 in the account.  The queries are class counts, charged under add-remove.
    """
    law: dict = defaultdict(Fraction)

    def ask(transcript: tuple, spent: tuple, p: Fraction) -> None:
        budget = Budget(total, relation=relation)
        for loss in spent:
            budget.charge(loss, relation=ADD_REMOVE)
        loss = 1 + (bool(transcript) and transcript[-1][0] == 0)  # a small answer makes the next query dearer
        try:
            budget.charge(loss, relation=ADD_REMOVE)
        except BudgetError:
            law[transcript] += p
            return
        if len(transcript) == 4:
            law[transcript] += p
            return
        for (no, p_no), (yes, p_yes) in product(*(noisy(data.count(label), loss).items() for label in (0, 1))):
            kept = spent if refund and no == 0 else (*spent, loss)
            ask((*transcript, (no, yes)), kept, p * p_no * p_yes)

    ask((), (), Fraction(1))
    return law


def worst(relation: str, total: float, **how) -> Fraction:
    sizes = [combinations_with_replacement((0, 1), n) for n in range(3)]
    laws = {data: transcripts(data, relation, total, **how) for size in sizes for data in size}
    pairs = (
        (one, other)
        for one, other in product(laws, repeat=2)
        if (
            len(one) == len(other) and abs(sum(one) - sum(other)) == 1
            if relation == REPLACE_ONE
            else len(other) == len(one) + 1 and 0 <= sum(other) - sum(one) <= 1
        )
    )
    return max(
        ratio
        for one, other in pairs
        for o in laws[one]
        for ratio in (laws[one][o] / laws[other][o], laws[other][o] / laws[one][o])
    )


@pytest.mark.claim(
    "thm-account",
    verdict="proved",
    evidence="exhaustive",
    constant=r"the sum of the $\eps$ (add-remove fits twice under replace-one), attained, and the sum of the $\delta$",
)
@pytest.mark.parametrize(("relation", "total"), [(ADD_REMOVE, 2.0), (REPLACE_ONE, 4.0)])
def test_what_an_account_allows_is_its_epsilon(relation, total):
    """Over every pair of neighbours and every adaptive course of queries, the worst ratio is 2 to the total."""
    assert worst(relation, total) == 2 ** int(total)


def test_an_account_that_hands_back_is_found_out():
    assert worst(ADD_REMOVE, 2.0, refund=True) > 4


@pytest.mark.claim("thm-account")
def test_deltas_add_up():
    """Mechanisms that publish all with probability delta: together nearly the sum, and never more."""
    deltas = [1e-3, 2e-3, 5e-4]
    together = 1 - math.prod(1 - delta for delta in deltas)
    assert sum(deltas) * 0.99 < together <= sum(deltas)
    budget = Budget(1.0, delta=3.5e-3)
    for delta in deltas:
        budget.charge(0.1, delta=delta)
    assert (budget.spent_delta, budget.left_delta) == (3.5e-3, 0.0)
    with pytest.raises(BudgetError, match="delta = 1e-09"):
        budget.charge(0.1, delta=1e-9)


def test_numbers_are_the_decimals_they_are_written_as():
    budget = Budget(0.3)
    for _ in range(3):
        budget.charge(0.1)
    assert (budget.spent, budget.left) == (0.3, 0.0)
    budget = Budget(1.0)
    budget.charge(1 / 3)
    budget.charge(budget.left)
    with pytest.raises(BudgetError, match="is left"):
        budget.charge(1e-9)


def fitted(**how):
    return EDPRFClassifier(**{"epsilon": 0.5, "schema": MIXED, "n_estimators": 1, "random_state": 0} | how)


def test_a_fit_is_charged_before_it_reads_and_refused_before_it_reads(monkeypatch):
    X, y = table(60)
    with Budget(1.2) as budget:
        fitted().fit(X, y)
        fitted(epsilon=0.7).fit(X, y)
        assert budget.left == 0
        monkeypatch.setattr("dpforest.learners.intake.columns_of", lambda *_: pytest.fail("it was read"))
        with pytest.raises(BudgetError, match=r"costs epsilon = 0.5, and 0 of 1.2 is left: nothing was read"):
            fitted().fit(X, y)
    assert str(budget).splitlines() == [
        "Budget (add-remove, for one row): epsilon = 1.2",
        "  0.5  EDPRFClassifier",
        "  0.7  EDPRFClassifier",
        "spent 1.2, left 0",
    ]
    assert not account.active()


def test_a_fit_that_fails_after_it_began_to_read_stays_charged():
    X, y = table(60)
    with Budget(2.0) as budget:
        with pytest.raises(ValueError, match="no column 'x'"):
            fitted().fit(X[["c"]], y)
        with pytest.raises(TypeError, match="key must be"):
            fitted().fit(X, y, key=3)
        assert budget.spent == 0
        with pytest.raises(ValueError, match=r"not among its declared categories.*0\.5 stays charged; Schema\.check"):
            fitted().fit(X.assign(c="z"), y)
        assert budget.spent == 0.5
    with pytest.raises(ValueError, match="not among its declared categories") as caught:
        fitted().fit(X.assign(c="z"), y)
    assert "charged" not in str(caught.value)


@pytest.mark.claim("thm-account")
def test_the_names_of_records_are_read_after_the_charge():
    """A name that only one of a list of records has is data: whether it is there must not be told for nothing."""
    rows = [{"x": 0.5}] * 19 + [{"x": 0.5, "rare": 1}]
    asked = [Schema(numeric={name: (0, 1)}, classes=["no", "yes"]) for name in ("rare", "rarer")]
    with Budget(2.0) as budget:
        for number, schema in enumerate(asked, 1):
            with pytest.raises(ValueError, match=r"has no .*stays charged"):
                RandomTreesClassifier(epsilon=0.5, schema=schema).fit(rows, ["no", "yes"] * 10)
            assert budget.spent == 0.5 * number


def test_relations_are_kept_apart():
    X, y = table(60)
    with Budget(3.0) as budget, pytest.raises(BudgetError, match="fit with relation='add-remove'"):
        fitted(relation=REPLACE_ONE).fit(X, y)
    assert budget.spent == 0
    with Budget(3.0, delta=1e-3, relation=REPLACE_ONE) as budget:
        fitted(relation=REPLACE_ONE).fit(X, y)
        assert budget.spent == 0.5
        fitted().fit(X, y)
        assert budget.spent == 1.5
        PrivateBoostingClassifier(epsilon=0.5, delta=1e-6, schema=MIXED, random_state=0, n_estimators=1).fit(X, y)
        assert budget.spent_delta == pytest.approx(1e-6 * (1 + math.exp(0.5)), rel=1e-12)
        with pytest.raises(BudgetError, match=r"costs epsilon = 1, a removal and an addition, and 0\.5 of 3"):
            fitted().fit(X, y)
    assert "(add-remove: a removal and an addition)" in str(budget)


def test_persons_and_rows_are_kept_apart():
    X, y = table(60)
    ids = np.arange(60) // 3
    with Budget(3.0), pytest.raises(BudgetError, match="open a Budget"):
        fitted().fit(X, y, person=ids, max_rows=2)
    with Budget(3.0, unit="person") as budget:
        fitted().fit(X, y, person=ids, max_rows=2)
        assert budget.spent == 0.5
        with pytest.raises(BudgetError, match="fit with person="):
            fitted().fit(X, y)


def test_what_promises_nothing_is_refused():
    X, y = table(60)
    with Budget(3.0) as budget:
        with pytest.raises(BudgetError, match="use variant='proved'"):
            fitted(variant="published").fit(X, y)
        with pytest.raises(BudgetError, match="not private"):
            fitted(epsilon="non-private").fit(X, y)
    assert budget.spent == 0


def test_accounts_may_be_nested():
    """All are charged, or none; one that is open twice is charged once."""
    X, y = table(60)
    with Budget(3.0) as outer, Budget(0.6) as inner, outer:
        fitted().fit(X, y)
        assert (outer.spent, inner.spent) == (0.5, 0.5)
        with pytest.raises(BudgetError, match=r"0.1 of 0.6 is left"):
            fitted().fit(X, y)
        assert (outer.spent, inner.spent) == (0.5, 0.5)
    assert not account.active()


def test_threads_do_not_spend_the_same_epsilon_twice():
    budget, refused = Budget(1.0), []

    def spend():
        for _ in range(100):
            try:
                budget.charge(0.01)
            except BudgetError:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (budget.spent, len(refused)) == (1.0, 300)


def test_a_search_is_charged_for_each_fit():
    X, y = table(60)
    search = GridSearchCV(fitted(epsilon=0.1), {"max_depth": [1, 2]}, cv=2, error_score="raise")
    with Budget(1.0) as budget:
        with pytest.warns(BudgetWarning, match="GridSearchCV chooses by scores of rows, without noise"):
            search.fit(X, y)
        assert budget.spent == 0.5  # two by two, and the best one again


def test_a_mark_is_of_the_process_in_which_an_account_was_open(monkeypatch):
    X, y = table(60)
    with Budget(1.0) as budget:
        sent = pickle.dumps(fitted())
        table_sent = pickle.dumps(Parquet("a.parquet"))
        loaded = pickle.dumps(released(fitted().fit(X, y).to_dict(seeded=True)))
    here = pickle.loads(sent)
    here.fit(X, y)  # of the process that sent it
    assert "_account_process" in vars(here)
    assert "_account_process" not in vars(pickle.loads(pickle.dumps(here)))  # the account is closed
    monkeypatch.setattr(account, "_STARTED", 0)
    for learner in (pickle.loads(sent), clone(pickle.loads(sent)), pickle.loads(pickle.dumps(pickle.loads(sent)))):
        with pytest.raises(BudgetError, match="n_jobs=1"):
            learner.fit(X, y)
    for model in (pickle.loads(loaded), clone(pickle.loads(loaded)), copy.copy(pickle.loads(loaded))):
        model.predict(X)  # which costs nothing
        with pytest.raises(BudgetError, match="was sent to another process"):
            evaluation.evaluate(model, X, y, 0.1)
        with pytest.raises(BudgetError, match="was sent to another process"):
            evaluation.choose([model, model], X, y, 0.1)
    with pytest.raises(BudgetError, match="this Parquet was sent to another process"):
        fitted().fit(pickle.loads(table_sent), "y")
    with Budget(1.0) as another:  # who opens an account here has it charged
        pickle.loads(sent).fit(X, y)
        evaluation.evaluate(pickle.loads(loaded), X, y, 0.1)
    assert another.spent == 0.6
    fitted().fit(X, y)
    with pytest.raises(BudgetError, match="another process"):
        budget.charge(0.1)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """What might spend in another process: every kind of learner, and whatever charges."""
    X, y = table(60)
    new, done = fitted(), fitted().fit(X, y)
    path = tmp_path_factory.mktemp("jobs") / "model.json"
    done.save(path, seeded=True)
    loaded = dpforest.load(path)
    found = {f"{name}, fit": (EDPRFClassifier.fit, learner, X, y) for name, learner in (("new", new), ("fitted", done))}
    for name, learner in (("new", new), ("fitted", done), ("loaded", loaded)):
        found[f"{name}, evaluate"] = evaluation.evaluate, learner, X, y, 0.1
        found[f"{name}, choose"] = evaluation.choose, [learner, learner], X, y, 0.1
    return found


def by_loky(jobs, _):
    pool = joblib.externals.loky.get_reusable_executor(max_workers=1)
    return {name: pool.submit(*job).exception() for name, job in jobs.items()}


def by_dask(jobs, spawned):
    dask = pytest.importorskip("dask")
    found = {}
    for name, job in jobs.items():
        try:
            dask.compute(dask.delayed(job[0])(*job[1:]), scheduler="processes", pool=spawned)
        except Exception as error:
            found[name] = error
    return found


def by_spawn(jobs, pool):
    return {name: pool.submit(*job).exception() for name, job in jobs.items()}


def by_fork(jobs, _):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return by_spawn(jobs, pool)


@pytest.fixture(scope="module")
def spawned():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
@pytest.mark.parametrize("away", [by_loky, by_dask, by_spawn, by_fork])
def test_no_process_spends_unseen(away, jobs, spawned):
    with Budget(1.0) as budget:
        found = away(jobs, spawned)
    assert {name for name in jobs if not isinstance(found.get(name), BudgetError)} == set(), found
    assert budget.spent == 0


@pytest.mark.claim("thm-account")
def test_an_interrupt_leaves_an_account_that_can_be_read_and_says_no_less():
    """Between any two lines of a charge: what was charged before stays, and the file is read back as it is."""
    outer, inner = Budget(40.0, delta=1e-3), Budget(30.0, delta=1e-3)
    done = 0

    def work():
        with outer, inner, account.charged("a fit", 0.1, 1e-6, ADD_REMOVE, "row"):
            pass

    moments = 0
    for found in at_each_line(work, interrupt, account.__file__):
        moments += 1
        done += found is None
        for each in (outer, inner):
            assert Fraction(repr(each.spent)) == len(each._charges) * Fraction("0.1")
            assert Budget.from_json(each.to_json()).spent == each.spent
            assert len(each._charges) >= done
        account._OPEN.clear()  # an interrupt inside of with itself may leave it open, which spends no less
    assert done == 1
    assert moments > 30
    assert len(outer._charges) >= len(inner._charges) > 5  # after the charge there are moments, too


def test_an_account_cannot_be_copied():
    for twice in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="could be spent twice"):
            twice(Budget(1.0))


def test_an_account_outlives_its_process(tmp_path):
    budget = Budget(2.0, delta=1e-5, relation=REPLACE_ONE, unit="person")
    budget.charge(0.25, "a mean\nof <ages>", delta=1e-6, relation=ADD_REMOVE)
    text = budget.to_json(tmp_path / "account.json")
    for again in (Budget.from_json(text), Budget.from_json(tmp_path / "account.json")):
        assert str(again) == str(budget)
        assert (again.spent, again.left, again.left_delta) == (budget.spent, budget.left, budget.left_delta)
    assert "a mean of <ages>" in str(budget)


GOOD = {"format": 1, "epsilon": 1.0, "delta": 0.0, "relation": ADD_REMOVE, "unit": "row", "charges": []}
CHARGE = {"what": "a fit", "epsilon": 0.5, "delta": 0.0, "relation": ADD_REMOVE}
BAD = [
    {"format": 2}, {"format": True}, {"format": 1.0}, {"epsilon": "1"}, {"epsilon": None}, {"epsilon": True},
    {"epsilon": -1},
    {"epsilon": 10**400}, {"delta": 0.5}, {"relation": "none"}, {"unit": "table"}, {"more": 1}, {"unit": ["row"]},
    {"charges": {}}, {"charges": [1]}, {"charges": [{}]}, {"charges": [CHARGE | {"more": 1}]},
    {"charges": [CHARGE | {"epsilon": -0.5}]}, {"charges": [CHARGE | {"epsilon": "0.5"}]},
    {"charges": [CHARGE | {"epsilon": "non-private"}]}, {"charges": [CHARGE | {"what": "two\nlines"}]},
    {"charges": [CHARGE | {"what": 3}]}, {"charges": [CHARGE | {"what": "x" * 201}]},
    {"charges": [CHARGE | {"relation": REPLACE_ONE}]}, {"charges": [CHARGE] * 3},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_file_is_not_believed(bad):
    assert Budget.from_json(json.dumps(GOOD | {"charges": [CHARGE] * 2})).left == 0
    with pytest.raises(ValueError, match="not an account"):
        Budget.from_json(json.dumps(GOOD | bad))


@pytest.mark.parametrize("text", ["{", '{"a": 1, "a": 2}', '{"epsilon": NaN}', '{"a":' * 100_000])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match="cannot be read"):
        Budget.from_json(text)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"epsilon": "non-private"}, "finite epsilon"),
        ({"epsilon": 0}, "positive"),
        ({"epsilon": 1, "unit": "day"}, "unit"),
        ({"epsilon": 1, "relation": "swap"}, "relation"),
        ({"epsilon": 1, "delta": 0.5}, "delta"),
    ],
)
def test_what_is_no_account_is_refused(asked, error):
    with pytest.raises(ValueError, match=error):
        Budget(**asked)


# -- without an account ----------------------------------------------------------------------------------------------


def test_a_second_model_for_release_from_one_table_is_noticed_once():
    X, y = table(60)
    release = fitted(source="secure", random_state=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BudgetWarning)
        for _ in range(3):
            fitted().fit(X, y)  # seeded: not for release
        with Budget(2.0):
            release.fit(X, y)
            release.fit(X, y)
        release.fit(X, y)
        release.fit(X.copy(), y)
        release.fit(X.to_numpy().tolist(), y)  # no weak reference can be had to a list
    with pytest.warns(BudgetWarning, match=r"together they cost 1 under add-remove for one row") as caught:
        release.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", BudgetWarning)
        release.fit(X, y)


def test_a_test_for_release_of_a_table_from_which_something_was_released_is_noticed():
    """The rows of a test are people's rows as those of a fit are, and both charges add up."""
    X, y = table(60)
    how = {"source": "secure", "random_state": None}
    model = fitted(**how).fit(X, y)
    test, choice = evaluation.evaluate, evaluation.choose
    with warnings.catch_warnings():
        warnings.simplefilter("error", BudgetWarning)
        test(model, X, y, 0.25)  # seeded: not for release
        test(model, X.copy(), y, 0.25, source="secure")
        with Budget(1.0):
            test(model, X, y, 0.25, source="secure")
            choice([model, model], X, y, 0.25, source="secure")
    with pytest.warns(
        BudgetWarning, match=r"by fits or tests, and together they cost 0\.75 under add-remove"
    ) as caught:
        test(model, X, y, 0.25, source="secure")
    assert [each.filename for each in caught] == [__file__]
    held = X.copy()
    with pytest.warns(BudgetWarning, match=r"together they cost 0\.5 under add-remove for one row") as caught:
        test(choice([model, model], held, y, 0.25, source="secure").model, held, y, 0.25, source="secure")
    assert [each.filename for each in caught] == [__file__]


def test_tables_that_are_gone_are_forgotten():
    X, y = table(60)
    gc.collect()  # of tables of other tests
    before = len(account._TABLES)
    fitted(source="secure", random_state=None).fit(X, y)
    assert len(account._TABLES) == before + 1
    del X
    gc.collect()
    assert len(account._TABLES) == before


@pytest.mark.parametrize("folds", [False, True])
def test_outside_of_an_account_a_search_says_once_what_its_fits_cost(folds):
    X, y = table(60)
    X["x"] += 0.5  # and once for all fits, and for all predictions, that values lie outside the schema

    def search():
        learner = fitted(epsilon=0.25)
        if folds:
            return cross_val_score(learner, X, y, cv=4)
        return GridSearchCV(learner, {"max_depth": [1, 2]}, cv=2, error_score="raise").fit(X, y)

    for _ in range(2):  # another search says it again
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search()
        said = [str(each.message) for each in caught if each.category is BudgetWarning]
        *choice, text = said
        assert len(choice) == (not folds)
        assert all("GridSearchCV chooses by scores" in each for each in choice)
        assert "cost 0.5 under add-remove for one row together, and each further one adds its own" in text
        strays = [str(each.message) for each in caught if each.category is OutOfSchemaWarning]
        assert [text.startswith("x:") for text in strays] == [True, True]
        assert ["do not release" in text for text in strays] == [True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error", BudgetWarning)
        warnings.simplefilter("ignore", OutOfSchemaWarning)
        with Budget(10.0):  # an account counts them, but a choice among them by their scores is charged to nobody
            if folds:
                search()
            else:
                with pytest.warns(BudgetWarning, match="an account is charged for its fits and not for that"):
                    search()
        fitted(epsilon=0.25, random_state=0).fit(X, y)  # no search


ONE = Schema(numeric={"a": (0, 1)}, classes=[0, 1])
TWO = Schema(numeric={"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
#: What fits a learner several times, and whether it fits to the labels itself, too.
META = {
    "bagging": (lambda: BaggingClassifier(fitted(schema=TWO), n_estimators=2, random_state=0), False),
    "voting": (lambda: VotingClassifier([(name, fitted(schema=TWO)) for name in "ab"]), False),
    "classes": (lambda: OneVsRestClassifier(fitted(schema=TWO)), False),
    "outputs": (lambda: MultiOutputClassifier(fitted(schema=TWO)), False),
    "calibration": (lambda: CalibratedClassifierCV(fitted(schema=TWO), cv=2), True),
    "stacking": (lambda: StackingClassifier([("a", fitted(schema=TWO))], cv=2), True),
    "threshold": (lambda: TunedThresholdClassifierCV(fitted(schema=TWO, epsilon=30.0), cv=2), True),
    "features": (lambda: SequentialFeatureSelector(fitted(schema=ONE), n_features_to_select=1, cv=2), True),
}


@pytest.mark.parametrize("kind", META)
def test_what_fits_several_times_or_reads_labels_behind_a_learner_is_said_in_one_line(kind):
    make, reads = META[kind]
    X = np.random.default_rng(0).random((60, 2))
    y = np.digitize(X[:, 0], [0.3, 0.6]) if kind == "classes" else (X[:, 0] > 0.5).astype(int)
    for opened in (False, True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with Budget(1000.0) if opened else contextlib.nullcontext():
                make().fit(X, np.stack([y, 1 - y], axis=1) if kind == "outputs" else y)
        said = [str(each.message) for each in caught if each.category is BudgetWarning]
        behind = [text for text in said if "fits to the labels itself" in text]
        assert len(behind) == reads
        assert len(said) - len(behind) == (not opened), said


class AnotherSearch:
    """Of a package that nobody knows."""

    def fit(self, X, y):
        for depth in (1, 2):
            clone(fitted(max_depth=depth)).fit(X, y)


def test_a_search_of_another_package_is_said_by_its_name():
    with (
        pytest.warns(BudgetWarning, match="AnotherSearch chooses by scores"),
        pytest.warns(BudgetWarning, match=r"\(AnotherSearch\) cost 1 under add-remove"),
    ):
        AnotherSearch().fit(*table(60))


def test_a_search_in_other_processes_is_said_where_it_fits(monkeypatch):
    """There each worker sees its own fits alone: the first one tells of all."""
    X, y = table(60)
    monkeypatch.setattr("dpforest.privacy.searches.multiprocessing.parent_process", lambda: object())
    with (
        pytest.warns(BudgetWarning, match="GridSearchCV chooses by scores"),
        pytest.warns(BudgetWarning, match=r"a fit in a process of its own, inside a search.*cost 0\.5"),
    ):
        GridSearchCV(fitted(), {"max_depth": [1]}, cv=2, refit=False, error_score="raise").fit(X, y)


def log_of(X):
    return np.log1p(X)


#: Steps before a learner, and which of them learn from the rows.
STEPS = {
    "scaler": (lambda: [StandardScaler()], "StandardScaler"),
    "features and labels": (lambda: [StandardScaler(), SelectKBest(k="all")], "StandardScaler and SelectKBest"),
    "imputer": (lambda: [SimpleImputer()], "SimpleImputer"),
    "within": (
        lambda: [ColumnTransformer([("bins", KBinsDiscretizer(3, encode="ordinal"), [0])], remainder="passthrough")],
        "KBinsDiscretizer",
    ),
    "the rest of it": (
        lambda: [ColumnTransformer([("as it is", "passthrough", [0])], remainder=MinMaxScaler())],
        "MinMaxScaler",
    ),
    "rare categories": (
        lambda: [OrdinalEncoder(categories=[[*range(9)]] * 2, min_frequency=2)],
        "OrdinalEncoder",
    ),
    "of one row": (lambda: [FunctionTransformer(log_of), Binarizer(threshold=0.5)], ""),
    "nothing": (lambda: ["passthrough"], ""),
    "declared categories": (lambda: [OrdinalEncoder(categories=[[*range(9)]] * 2)], ""),
    "a constant": (lambda: [SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True)], ""),
    "fitted to others": (lambda: [FrozenEstimator(StandardScaler().fit(np.eye(2)))], ""),
    "of one's own": (lambda: [Own()], ""),
}


class Own(TransformerMixin, BaseEstimator):
    """A step of one's own, which may be a function of one row."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


@pytest.mark.filterwarnings("ignore:Bins whose width")
@pytest.mark.parametrize("kind", STEPS)
def test_what_learned_from_the_rows_before_a_learner_is_said_by_its_name(kind):
    """No account sees it, and the guarantee is about another table than the one that was given."""
    make, names = STEPS[kind]
    X = np.random.default_rng(0).integers(0, 9, (60, 2)).astype(float)
    y = (X[:, 0] > 4).astype(int)

    def said(fit):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with Budget(1000.0):
                fit()
        texts = [str(each.message) for each in caught if each.category is BudgetWarning]
        return [text for text in texts if "learned from the rows before this learner did" in text]

    for learner in (fitted(schema=TWO), make_pipeline(fitted(schema=TWO))):
        texts = said(lambda: make_pipeline(*make(), learner).fit(X, y))  # noqa: B023
        assert [text.split(" learned")[0] for text in texts] == ([names] if names else [])
    folds = said(lambda: cross_val_score(make_pipeline(*make(), fitted(schema=TWO)), X, y, cv=3))
    assert len(folds) == bool(names)  # once for all folds
    assert said(lambda: fitted(schema=TWO).fit(StandardScaler().fit_transform(X), y)) == []  # nobody can see that


def test_an_account_without_a_delta_says_how_to_open_one():
    X, y = table(60)
    learner = RandomTreesClassifier(epsilon=0.5, delta=1e-6, schema=MIXED, max_depth=1, random_state=0)
    refused = r"costs delta = 1e-06, and 0 of 0 is left.*opened without one: Budget\(\.\.\., delta=\.\.\.\)$"
    with Budget(1.0) as budget, pytest.raises(BudgetError, match=refused):
        learner.fit(X, y)
    assert budget.spent == 0
    with Budget(1.0, delta=1e-7), pytest.raises(BudgetError, match=r"nothing charged$"):
        learner.fit(X, y)


def test_a_secure_learner_that_an_ensemble_seeds_is_refused_with_the_reason():
    X, y = np.random.default_rng(0).random((60, 2)), np.arange(60) % 2
    learner = fitted(schema=TWO, source="secure", random_state=None)
    with pytest.raises(ValueError, match=r"BaggingClassifier gives one to each of its learners.*one by one"):
        BaggingClassifier(learner).fit(X, y)
    with pytest.raises(ValueError, match="takes no seed: leave random_state=None"):
        clone(learner).set_params(random_state=0).fit(X, y)
