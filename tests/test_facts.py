"""Facts about learners: what a class declares of itself is what runs do, and a false word is found out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import pytest
from shared import leaks_under, quietly, variants_of
from sklearn.base import is_classifier
from test_doors import SCHEMAS, Recorder, Tape, configured, encoded, learners, schema_of, table
from test_scattered import THREE, Pieces, accepted, frame_of, kind_of
from test_scattered import configured as over_blocks

from dpforest import UnprovenPrivacyWarning
from dpforest.engines import TableError
from dpforest.learners.facts import Facts
from dpforest.papers.diff_lr import DiffLRRegressor
from dpforest.papers.diffpets import DiffPETsClassifier
from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.pearson_tree import PearsonTreeClassifier
from dpforest.papers.pinq_id3 import PinqID3Classifier
from dpforest.papers.random_trees import RandomTreesClassifier
from dpforest.papers.smooth_forest import SmoothForestClassifier
from dpforest.privacy import RELATIONS


def published(kind: type, **parameters):
    return configured(kind, variant="published", epsilon=60.0, **parameters)


def leaks(kind: type) -> bool:
    """Whether a published fit leaks under just those relations under which the class says so."""
    found = [quietly(published(kind, relation=relation), *table(kind, 0)).ledger_.leaks for relation in RELATIONS]
    return [bool(each) for each in found] == [leaks_under(kind, relation) for relation in RELATIONS]


def two_classes(kind: type) -> bool:
    """Whether a published fit refuses three classes, or takes them, as the class says."""
    if not is_classifier(kind()):
        return not kind.FACTS.two_classes
    X, _ = table(kind, 0)
    try:
        quietly(published(kind, schema=SCHEMAS["classifier"]), X, [0, 1, 2] * (len(X) // 3))
    except ValueError as error:
        return kind.FACTS.two_classes and "tells two classes apart, as in the paper, not 3" in str(error)
    return not kind.FACTS.two_classes


def in_memory(kind: type) -> bool:
    """Whether a published fit of blocks is refused, or made, as the class says."""
    frame = frame_of(kind_of(kind))
    try:
        quietly(over_blocks(kind, variant="published"), Pieces(frame, THREE), "y")
    except TableError:
        return kind.FACTS.in_memory
    return not kind.FACTS.in_memory


def splits_from_counts(kind: type) -> bool:
    """Whether the draws of a fit, played to other records, give other splits, as the class says."""
    unpruned = {"prune": False} if "prune" in kind.PARAMETERS else {}  # what is pruned is decided by noisy counts
    model, schema = configured(kind, **unpruned), schema_of(kind)
    (codes, labels), (elsewhere, _) = encoded(model, schema, 0), encoded(model, schema, 1)
    recorder = Recorder(7)
    first, _ = model.replay(codes, labels, schema, 5.0, recorder)
    if not hasattr(first, "feature"):
        return not kind.FACTS.splits_from_counts
    try:
        again, _ = model.replay(elsewhere, labels, schema, 5.0, Tape(recorder.drawn))
    except (IndexError, ValueError):  # other nodes ask for more draws, or for fewer at once
        return kind.FACTS.splits_from_counts
    same = first.feature.tolist() == again.feature.tolist() and first.mask.tolist() == again.mask.tolist()
    return same != kind.FACTS.splits_from_counts


class Coins(Recorder):
    """Notes whether a coin was drawn for each record."""

    tossed = False

    def coins(self, high, ids):
        self.tossed = True
        return super().coins(high, ids)

    def copies(self, n_trees, ids):
        self.tossed = True
        return super().copies(n_trees, ids)


def draws_record_coins(kind: type) -> bool:
    """Whether records get coins in just those settings in which the class says so."""
    wishes: list[dict] = [{"n_estimators": 1}, {"max_depth": 0}, {"n_parts": 1}, {"n_parts": 2}]
    wishes += [{"sampling": way} for way in ("all", "assignment", "poisson")]
    wishes += [{"sampling": way, "n_estimators": 1} for way in ("assignment", "poisson")]
    wishes += [{"variant": variant} for variant in variants_of(kind)]
    for options in (wish for wish in wishes if wish.keys() <= kind.PARAMETERS.keys() and accepted(kind, wish)):
        model, schema, chance = configured(kind, **options), schema_of(kind), Coins(7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnprovenPrivacyWarning)
            model.replay(*encoded(model, schema, 0), schema, 5.0, chance)
        if chance.tossed != model.draws_record_coins():
            return False
    return True


#: Whether runs bear out what a class says: of each fact, those of the published variant first.
OF_THE_PUBLISHED: dict[str, Callable[[type], bool]] = {
    "leaks": leaks,
    "two_classes": two_classes,
    "in_memory": in_memory,
}
OF_ALL: dict[str, Callable[[type], bool]] = {
    "splits_from_counts": splits_from_counts,
    "draws_record_coins": draws_record_coins,
}


@pytest.mark.parametrize("kind", learners(), ids=lambda kind: kind.__name__)
def test_runs_bear_out_what_a_learner_declares(kind):
    checks = OF_ALL | (OF_THE_PUBLISHED if "published" in variants_of(kind) else {})
    assert [name for name, true in checks.items() if not true(kind)] == []
    if "published" not in variants_of(kind):  # of which these facts speak
        assert replace(kind.FACTS, splits_from_counts=False) == Facts()


def test_each_fact_is_compared():
    assert OF_THE_PUBLISHED.keys() | OF_ALL.keys() == {*Facts.__dataclass_fields__, "draws_record_coins"}


@pytest.mark.parametrize(
    ("kind", "fact", "false"),
    [
        (EDPRFClassifier, "leaks", "nothing"),
        (EDPRFClassifier, "leaks", "size"),
        (RandomTreesClassifier, "leaks", "records"),
        (DiffLRRegressor, "leaks", "records"),
        (DPAdaBoostClassifier, "two_classes", False),
        (EDPRFClassifier, "two_classes", True),
        (DiffLRRegressor, "two_classes", True),
        (EDPRFClassifier, "in_memory", False),
        (PearsonTreeClassifier, "in_memory", True),
        (PinqID3Classifier, "splits_from_counts", False),
        (RandomTreesClassifier, "splits_from_counts", True),
        (DiffLRRegressor, "splits_from_counts", True),
    ],
)
def test_a_false_fact_is_found(kind, fact, false):
    check = (OF_THE_PUBLISHED | OF_ALL)[fact]
    assert check(kind)
    liar = type(kind.__name__, (kind,), {"FACTS": replace(kind.FACTS, **{fact: false})})
    assert not check(liar)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (lambda: Facts(leaks="much"), "FACTS: leaks must be one of nothing, size, records, not 'much'"),  # type: ignore[arg-type]
        (lambda: Facts(in_memory="no"), "FACTS: in_memory must be true or false, not 'no'"),  # type: ignore[arg-type]
        (lambda: {"leaks": "size"}, r"Told\.FACTS must be Facts\(\.\.\.\), not"),
    ],
)
def test_what_is_no_fact_is_refused_as_soon_as_the_class_is_made(facts, said):
    with pytest.raises((TypeError, ValueError), match=said):
        type("Told", (EDPRFClassifier,), {"FACTS": facts()})


@pytest.mark.parametrize(
    "kind",
    [DiffLRRegressor, DiffPETsClassifier, EDPRFClassifier, PearsonTreeClassifier, SmoothForestClassifier],
    ids=lambda kind: kind.__name__,
)
def test_a_false_word_about_coins_is_found(kind):
    assert draws_record_coins(kind)
    for word in (True, False):
        liar = type(kind.__name__, (kind,), {"draws_record_coins": lambda self, word=word: word})
        assert draws_record_coins(liar) == (kind is DiffLRRegressor and not word)
