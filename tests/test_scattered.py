"""A table in blocks gives the model of the table in memory, to the last bit, and a fit that fails leaves nothing."""

from __future__ import annotations

import inspect
import io
import json
import math
import pickle
import re
import warnings
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from shared import lettered, variants_of
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from test_doors import learners

import dpforest
from dpforest import OutOfSchemaWarning, Schema, UnprovenPrivacyWarning, chance, scores
from dpforest.curator import Curator, Selection, known, queries
from dpforest.curator.memory import InMemoryRecords
from dpforest.curator.protocol import MaterializedRecords, Records
from dpforest.curator.queries import ClassCounts, HeldOutCounts, Histograms, LargestWeight, RecordCounts, WeightedError
from dpforest.curator.reader import SchemaReader
from dpforest.curator.scattered import BlockedRecords, pack_scores, unpack_scores
from dpforest.curator.selections import CutCandidates, DivisionCandidates, FeatureCandidates, LabelCandidates
from dpforest.engines import EngineError, Table, TableError
from dpforest.engines.table import Block, BlockCache, CacheSpace, merge, missing_columns
from dpforest.learners.cuts import grow_random
from dpforest.learners.growth import Growth
from dpforest.models.boosted import SCALE
from dpforest.papers.aim import AIMClassifier
from dpforest.papers.diff_lr import DiffLRRegressor
from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.functional_mechanism import FunctionalMechanismClassifier
from dpforest.papers.random_trees import RandomTreesClassifier, RandomTreesRegressor
from dpforest.privacy import ADD_REMOVE, RELATIONS, Ledger
from dpforest.registry import PAPERS
from dpforest.structure.splits import Splits
from tests import not_run

COLUMNS = {"numeric": {"a": (0, 1), "n": (0, 9)}, "categorical": {"b": ["x", "y", "z"], "c": ["u", "v"]}}
SCHEMAS = {
    "classifier": Schema(**COLUMNS, classes=["no", "maybe", "yes"]),
    "regressor": Schema(**COLUMNS, target=(0, 2)),
    "of two": Schema(**COLUMNS, classes=["no", "yes"]),
}
FEATURES = ["a", "n", "b", "c"]
N = 240


class Pieces(Table):
    """A frame in memory, read as an engine would: piece by piece, through a pickle, each piece in frames of its own.

    Parameters
    ----------
    cuts : sequence of int
        Where a piece ends and the next one begins; two equal ones enclose an empty piece.
    ordered : bool
        Whether a piece knows the number of its first row.
    backward : bool
        Whether the last piece is read first.
    dies : int or None
        The pass in which the engine fails, the first look being 0; half of the pieces have been read by then.
    edits : mapping of int to frame
        What stands in the table's place from some pass on.
    again : bool
        Whether the rows are read again in each pass, as an engine does; else their blocks are kept, also for the next
        model with the same reader.  Reading is what takes the time, and gives the same blocks each time.
    cached : bool
        Whether blocks stay for one fit, as in an engine in one process: each has a cache for what a task works out.
    """

    #: Blocks of a frame, which stays as long as they do, by the piece and the reader.
    kept: ClassVar[dict[int, tuple[pd.DataFrame, dict[tuple, list[Block]]]]] = {}

    engine = "pieces"

    def __init__(
        self,
        frame,
        cuts=(),
        *,
        ordered=True,
        backward=False,
        dies=None,
        edits=None,
        again=False,
        cached=False,
        progress=None,
    ):
        super().__init__(progress=progress)
        self.frame, self.cuts, self.ordered, self.backward = frame, list(cuts), ordered, backward
        self.dies, self.edits, self.again, self.cached = dies, edits or {}, again or bool(edits), cached
        self.jobs: list[bytes] = []  # shared with the opened copy, as the log is

    def _prepare(self):
        missing_columns(self.reader.columns, self.frame.columns, "the table")
        self.mine: dict[tuple[int, int], list[Block]] = {}

    def _run(self, job):
        packed, number = pickle.dumps(job), len(self.jobs)
        self.jobs.append(packed)
        frame = self.edits.get(number, self.frame)
        if number in self.edits:
            self.frame = frame
        ends = [0, *(min(cut, len(frame)) for cut in self.cuts), len(frame)]
        pieces = list(pairwise(ends))
        order = reversed(pieces) if self.backward else pieces
        for done, (start, stop) in enumerate(order):
            if self.dies == number and 2 * done >= len(pieces) - 1:
                raise EngineError("the worker is gone; nothing was released")
            there, first = pickle.loads(packed), start if self.ordered else None
            # some pieces in one frame, some in two, for each frame that is read takes a millisecond and more
            between = [(start + stop) // 2] if stop - start > 40 else []
            frames = [frame.iloc[a:b] for a, b in pairwise([start, *between, stop])]
            if self.cached:
                if (start, stop) not in self.mine:
                    space = CacheSpace(1 << 40)
                    mine = [replace(block, cache=BlockCache(space)) for block in job.read(frames, first)]
                    self.mine[start, stop] = mine
                found = merge(map(job.count, self.mine[start, stop]), job.reader)
            elif self.again:
                found = there(frames, first)
            else:
                _, blocks = self.kept.setdefault(id(frame), (frame, {}))
                piece = (start, stop, first, pickle.dumps(there.reader))
                if piece not in blocks:
                    blocks[piece] = list(there.read(frames, first))
                found = merge(map(there.count, blocks[piece]), there.reader)
            yield pickle.loads(pickle.dumps(found))

    def rows(self, answer, columns, name):
        ends = [0, *self.cuts, len(self.frame)]
        answer = pickle.loads(pickle.dumps(answer))
        return np.concatenate([answer(self.frame[columns].iloc[a:b]) for a, b in pairwise(ends) if a < b])


#: Ways to cut the table: one block, two, seven of which two are empty (one of them the first).
CUTS = {1: [], 2: [117], 7: [0, 30, 31, 150, 150, 210]}
#: Enough where another option is tried, for what adds up over three blocks does over seven: an empty one, a
#: small one and the rest, in six frames that all are read again in each pass, which is what takes the time.
THREE = [0, 31]


def kind_of(learner) -> str:
    return "of two" if learner.FACTS.two_classes else get_tags(learner()).estimator_type


@cache
def frame_of(kind: str, n: int = N, seed: int = 0) -> pd.DataFrame:
    """Features, the answer ``y``, and a key ``id`` in another order than the rows."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": rng.permutation(n) + 1000,
            "y": 0,
            "a": rng.random(n),
            "n": rng.integers(10, size=n),
            "b": rng.choice(list("xyz"), n),
            "c": rng.choice(list("uv"), n),
            "unread": "ignored",
        }
    )
    signal = (frame.a > 0.5).astype(int) + (frame.b == "x")
    if kind == "regressor":
        frame["y"] = (signal + 0.1 * rng.random(n)).clip(0, 2)
    else:
        names = np.array(SCHEMAS[kind].classes)
        frame["y"] = names[np.where(rng.random(n) < 0.2, rng.integers(len(names), size=n), signal % len(names))]
    return frame


def configured(learner, **options):
    base = {
        "epsilon": 4.0,
        "schema": SCHEMAS[kind_of(learner)],
        "n_estimators": 3,
        "max_depth": 2,
        "n_bins": 8,
        "specialisations": 3,
        "random_state": 5,
    }
    free = learner.PARAMETERS.keys() - (lettered(learner) if options.get("variant") == "published" else set())
    return learner(**{name: value for name, value in base.items() if name in free} | options)


def fitted(model, X, y="y", **asked):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)
        return model.fit(X, y, **asked)


def released(model) -> str:
    """All that a fit lets out, and all that it charged."""
    ledger = model.ledger_
    spent = [ledger.total(relation) for relation in RELATIONS]
    return json.dumps([model.to_dict(seeded=True), str(ledger), spent, str(model.guarantee_)])


def charges(model) -> list:
    return [
        (
            charge.query,
            charge.mechanism,
            charge.scopes.tolist(),
            {key: cost.tolist() for key, cost in charge.costs.items()},
        )
        for charge in model.ledger_._charges
    ]


def in_memory(model, frame, key=None):
    """The model of the table as it always was: features and labels apart, unless a key is needed."""
    if key is None:
        return fitted(model, frame[FEATURES], frame["y"])
    return fitted(model, frame[[*FEATURES, key]], frame["y"], key=key)


#: Values that a parameter may have, tried wherever a learner has the parameter and takes the value.
WISHES: dict[str, list] = {
    "relation": ["replace-one"],
    "variant": ["published"],
    "sampling": ["all", "assignment", "poisson", "bootstrap"],
    "selection": ["exponential", "permute-and-flip", "argmax"],
    "leaf": ["label", "counts"],
    "stop": ["candidate", "never", "count", "purity"],
    "criterion": ["gini", "majority", "information-gain", "normalised-gini", "sse", "between", "absolute-pearson"],
    "calibration": ["sensitivity"],
    "vote": ["majority", "weighted", "label", "counts"],
    "two_stage": [True, False],
    "split": ["binary", "multiway"],
    "votes": ["discrete"],
    "weights": ["logistic"],
    "class_weight": [{"no": 1.0, "yes": 3.0}],
    "n_parts": [1, 4],
    "reuse": [True, False],
    "max_depth": [0, 3],
    "n_estimators": [1],
    "n_max": [500],
    "fit_intercept": [True],
    "shrinkage": [1.0],
    "grid": ["quantile"],
    "multi_class": ["multinomial"],
    "candidates": ["iterative-hessian"],
    "extra_estimators": [3],
}


def accepted(learner, options: dict) -> bool:
    try:
        configured(learner, **options).check_parameters()
    except (ValueError, TypeError):
        return False
    return True


def options_of(learner) -> list[dict]:
    known = inspect.signature(learner).parameters
    single = [
        {name: value}
        for name, values in WISHES.items()
        for value in values
        if name in known and known[name].default != value
    ]
    alone = {"variant": "published", "sampling": "all"}  # where the published bootstrap is not what is asked for
    ends = {"variant": "published", "extra_estimators": 3}  # where no record can pay
    more = [*([alone] if "sampling" in known else []), *([ends] if "extra_estimators" in known else [])]
    return [one for one in [{}, *single, *more] if accepted(learner, one)]


LEARNERS = learners()
CASES = [(learner, options) for learner in LEARNERS for options in options_of(learner)]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)

#: Published algorithms that look at all records at once.
WHOLE = "draws from the whole table at once, or gives all records weights that add up to 1"
asked_of_blocks: set[str] = set()


def test_every_public_learner_is_here():
    assert set(LEARNERS) == {getattr(dpforest, name) for names in PAPERS.values() for name in names}
    assert len(CASES) > 140
    for learner in LEARNERS:
        assert {} in options_of(learner)
        assert ({"variant": "published"} in options_of(learner)) == ("published" in variants_of(learner))
        assert {"relation": "replace-one"} in options_of(learner)
        if "sampling" in inspect.signature(learner).parameters:
            assert {"sampling": "assignment"} in options_of(learner)


# -- the same model --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("lem-blocks")
@pytest.mark.parametrize(("learner", "options"), CASES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_blocks_give_the_model_of_the_table_in_memory(learner, options):
    frame = frame_of(kind_of(learner))
    memory = in_memory(configured(learner, **options), frame)
    refused: TableError | None = None
    for cuts in (THREE,) if options else CUTS.values():
        table = Pieces(frame, cuts, backward=len(cuts) > 1, again=not options)
        model = configured(learner, **options)
        try:
            fitted(model, table)
        except TableError as error:
            refused = error
            break
        assert released(model) == released(memory)
        assert charges(model) == charges(memory)
        assert [job for packed in table.jobs if (job := pickle.loads(packed).task) is None] == [None]  # one look
        for packed in table.jobs[1:]:
            task = pickle.loads(packed).task
            asked_of_blocks.update([type(task.query).__name__, *(step.__name__ for step, _ in task.steps)])
        assert len(table.jobs) == len(table.log)
        for name in ("predict", "predict_proba", "decision_function"):
            if hasattr(model, name):
                here = getattr(memory, name)(frame[FEATURES])
                np.testing.assert_array_equal(getattr(model, name)(frame[FEATURES]), here)
                np.testing.assert_array_equal(getattr(model, name)(table), here)  # in the order of the rows
                if not options:  # else the same again, of a model that is the same
                    np.testing.assert_array_equal(getattr(memory, name)(table), here)
        assert list(model.feature_names_in_) == FEATURES
        assert model.n_features_in_ == 4
    if refused is not None:
        assert options.get("variant") == "published"
        assert learner.FACTS.in_memory
        assert WHOLE in str(refused)
        assert not hasattr(model, "ledger_")
    # the label as a column of the frame, the others of which are not read
    assert released(fitted(configured(learner, **options), frame)) == released(memory)


@pytest.mark.slow
@pytest.mark.claim("lem-blocks")
@pytest.mark.parametrize("options", [{}, {"multi_class": "multinomial"}], ids=str)
def test_the_chosen_table_is_measured_without_another_pass(options, monkeypatch):
    """Unless one answer cannot hold the sums of all candidates, and then the model is the same."""
    frame = frame_of(kind_of(dpforest.PrivateBoostingClassifier))
    learner = configured(dpforest.PrivateBoostingClassifier, **options)
    asked = []
    for cells in (BlockedRecords.cells, 64):
        monkeypatch.setattr(BlockedRecords, "cells", cells)
        table = Pieces(frame, THREE)
        assert released(fitted(learner, table)) == released(in_memory(learner, frame))
        queries = [type(pickle.loads(packed).task.query).__name__ for packed in table.jobs[1:]]
        asked_of_blocks.update(queries)
        asked.append({name: queries.count(name) for name in ("CrossSums", "CellGradients", "CellWeights")})
    whole, parts = asked
    measured = parts["CellGradients"] + parts["CellWeights"]
    assert whole == {"CrossSums": 3, "CellGradients": 0, "CellWeights": 0}  # a pass a round
    assert parts["CrossSums"] > 3
    assert measured in (2, 3)  # the first table of all classes is one of class counts


@pytest.mark.slow
@pytest.mark.claim("lem-blocks")
@pytest.mark.parametrize("variant", ["proved", "published"])
def test_marginals_are_read_once(variant, monkeypatch):
    """AIM's candidates keep their counts while there is room: a round reads the table only for a candidate more."""
    frame, learner = frame_of("classifier"), configured(AIMClassifier, variant=variant)
    asked = []
    for room in (known._ROOM, 0):
        monkeypatch.setattr(known, "_ROOM", room)
        table = Pieces(frame, THREE)
        assert released(fitted(learner, table)) == released(in_memory(learner, frame))
        queries = [type(pickle.loads(packed).task.query).__name__ for packed in table.jobs[1:]]
        asked_of_blocks.update(queries)
        asked.append((queries.count("TableClasses"), queries.count("TableCounts")))
    (kept, measured), (again, measured_again) = asked
    assert measured == 0  # the chosen marginal was a candidate
    assert 1 <= kept <= 2 < again
    assert measured_again == again


#: The steps that a block repeats before it answers: functions, which travel by their name.
REPEATED = {"assign", "partition_records", "poisson_bootstrap", "add_scores", "weigh_records"} | {
    "open_filter",
    "join_round",
    "leave_round",
}


def test_every_step_and_answer_was_asked_of_blocks():
    """After the test above: the cases ask all that learners ask of blocks."""
    if not asked_of_blocks:
        pytest.skip(not_run.needs("the cases above it", "run the whole file"))
    published = {"Moments"}  # by what looks at all records at once, which blocks refuse
    assert asked_of_blocks == REPEATED | answers() - published


def answers() -> set[str]:
    """The queries that blocks may be asked."""
    classes = {name: each for name, each in vars(queries).items() if inspect.isclass(each) and name in queries.__all__}
    return {
        name
        for name, each in classes.items()
        if issubclass(each, queries.Query)
        and hasattr(each, "__dataclass_fields__")
        and not each.__subclasses__()
        and not issubclass(each, queries.WholeQuery)
    }


@pytest.mark.claim("lem-blocks")
@example_settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([one for one in LEARNERS]),
    st.sampled_from(["all", "assignment"]),
    st.integers(0, 10**6),
    st.lists(st.integers(0, 60), max_size=9).map(sorted),
    st.booleans(),
    st.integers(1, 60),
    st.booleans(),
)
def test_any_cutting_gives_the_same_model(learner, sampling, seed, cuts, backward, n, keyed):
    """Few records, often none of a class, of a category or of a block."""
    options = {"sampling": sampling} if "sampling" in inspect.signature(learner).parameters else {}
    frame = frame_of(kind_of(learner), 60).iloc[:n]
    asked = {"key": "id"} if keyed else {}
    model = configured(learner, random_state=seed, **options)
    memory = released(fitted(clone(model), frame, **asked))
    assert released(fitted(clone(model), Pieces(frame, cuts, backward=backward), **asked)) == memory


@pytest.mark.parametrize("cells", [1, 200])
@every_learner
def test_a_level_that_is_counted_in_parts_gives_the_same_model(learner, cells, monkeypatch):
    frame = frame_of(kind_of(learner))
    whole = fitted(configured(learner), frame)
    monkeypatch.setattr(BlockedRecords, "cells", cells)
    parts = Pieces(frame, THREE)
    assert released(fitted(configured(learner), parts)) == released(whole)
    monkeypatch.setattr(InMemoryRecords, "cells", cells)
    assert released(fitted(configured(learner), frame)) == released(whole)


def test_missing_and_other_values_are_the_same_in_blocks():
    schema = Schema(**COLUMNS, classes=["no", "maybe", "yes"], other={"b": "z"}, missing="bin")
    frame = frame_of("classifier").astype({"n": float}).copy()
    frame.loc[frame.index[::7], "a"] = math.nan
    frame.loc[frame.index[3::11], "n"] = 77.0
    frame.loc[frame.index[::5], "b"] = None
    frame.loc[frame.index[1::13], "b"] = "w"
    said = []
    for X in (frame, Pieces(frame, CUTS[1]), Pieces(frame, CUTS[7])):
        model = configured(EDPRFClassifier, schema=schema)
        with pytest.warns(OutOfSchemaWarning) as caught:
            model.fit(X, "y")
        said.append((released(model), *(str(warning.message) for warning in caught)))
    assert said[0] == said[1] == said[2]
    assert [text.split(" rows")[0] for text in said[0][1:]] == [
        f"n: {(frame.n == 77).sum()} of {N}",
        f"b: {(frame.b == 'w').sum()} of {N}",
    ]


QUERIES: dict[str, Any] = {
    "count_classes": lambda c, g, n, s: c.noisy(ClassCounts(g, n), s, 1.0),
    "count_records": lambda c, g, n, s: c.noisy(RecordCounts(g, n), s, 1.0),
    "count_children": lambda c, g, n, s: c.count_children(g, n, s, np.ones((len(n), 4), bool), 1.0),
    "count_children, no classes": lambda c, g, n, s: c.count_children(
        g, n, s, np.ones((len(n), 4), bool), 1.0, classes=False
    ),
    "choose_label": lambda c, g, n, s: c.choose(
        LabelCandidates(g, n), s, 1.0, Selection(scores.majority, "exponential")
    ),
    "peek": lambda c, g, n, s: c.peek(ClassCounts(g, n), ("w", "p")),
    "peek_codes": lambda c, g, n, s: c.peek_codes(g, n, ("w", "p")),
    "peek_histograms": lambda c, g, n, s: c.peek(Histograms(g, n, np.ones((len(n), 4), bool)), ("w", "p")),
    "peek_histograms, by part": lambda c, g, n, s: c.peek(
        Histograms(g, n, np.ones((len(n), 4), bool), by_part=True), ("w", "p")
    ),
    "size": lambda c, g, n, s: np.array(c.size(("w", "p"))),
    "choose_feature": lambda c, g, n, s: c.choose(
        FeatureCandidates(g, n, np.ones((len(n), 4), bool)),
        s,
        1.0,
        Selection(scores.gini, mechanism="exponential", stop_margin=0.1),
    ),
    "choose_division": lambda c, g, n, s: np.array(
        c.choose(
            DivisionCandidates(g, n, np.array([2, 3, 0]), np.arange(768).reshape(3, 256) % 3 - 1),
            s[:1],
            1.0,
            Selection(scores.gini, mechanism="exponential"),
        )
    ),
    "choose_cut": lambda c, g, n, s: c.choose(
        CutCandidates(g, n, np.ones((len(n), 21), bool)), s, 1.0, Selection(scores.gini, mechanism="permute-and-flip")
    ),
}
#: What may come before a question: who sees which record, and what it counts for.
STEPS: dict[str, Any] = {
    "nothing": lambda curator: None,
    "assign": lambda curator: curator.assign(2),
    "partition_records": lambda curator: curator.partition_records(3),
    "poisson": lambda curator: curator.poisson_bootstrap(2),
    "weigh_records": lambda curator: curator.weigh_records(class_weights=[0.3, 1.0, 0.7], rule="logistic"),
    "assign, then weigh": lambda curator: (curator.assign(2), curator.weigh_records(class_weights=[0.3, 1.0, 0.7])),
    "assign, then divide": lambda curator: (curator.assign(2), curator.partition_records(3)),
    "weigh by trees": lambda curator: [curator.weigh_records(STUMP, VOTES * k, rule="logistic") for k in (1, 2, 3)],
    "copies, weighed by trees": lambda curator: (
        curator.poisson_bootstrap(2),
        [curator.weigh_records(STUMP, VOTES * k, rule="logistic") for k in (1, 2, 3)],
    ),
}
#: A tree of one split of the first feature, and what its leaves say for each class.
STUMP = Splits(
    feature=np.array([0, -1, -1], np.int32),
    first_child=np.array([1, 0, 0], np.int32),
    arity=np.array([2, 0, 0], np.int32),
    multiway=np.zeros(3, bool),
    mask=np.array([[0b11110000, 0, 0, 0], [0] * 4, [0] * 4], np.uint64),
    roots=np.zeros(1, np.int32),
)
VOTES = np.array([[0, 0, 0], [0.25, 0, -0.5], [0, 0.75, 0]])


@pytest.mark.claim("lem-blocks")
@pytest.mark.parametrize("before", STEPS)
def test_every_query_has_the_answer_of_the_table_in_memory(before):
    """One curator after the other, with the same seed: questions to the leaves of a forest that was split at random."""
    frame, schema = frame_of("classifier"), SCHEMAS["classifier"]
    said = []
    for cuts, cached in ((None, False), (THREE, True), *((cuts, False) for cuts in CUTS.values())):
        ledger, source = Ledger(), chance.Seeded(3)
        if cuts is None:
            codes, labels = schema.encode(frame[FEATURES], 8).codes, schema.encode_labels(frame["y"])
            where = {"chance": source, "ledger": ledger}
            curator: Curator = Curator(codes, labels, 3, schema.cardinalities(8), **where)
        else:
            curator = scattered(Pieces(frame, cuts, again=not cached, cached=cached), source=source, ledger=ledger)
        STEPS[before](curator)
        growth = Growth(2, 4, 3, ledger, "assignment" if "assign" in before else "sequential")
        grow_random(growth, chance.Seeded(1), schema.cardinalities(8), np.array([True, True, False, False]), 2)
        leaves = growth.frontier
        growth.add_children(leaves[::2], np.full(4, 2), np.full(4, 3))  # some by their code
        nodes = np.flatnonzero(growth.feature < 0)[::-1]
        scopes = ledger.open("asked", np.zeros(len(nodes), dtype=int))
        found = [query(curator, growth, nodes, scopes).tolist() for query in QUERIES.values()]
        said.append((found, str(ledger), curator.unit, curator.n_parts))
    assert said[0] == said[1] == said[2] == said[3] == said[4]
    assert np.sum(said[0][0][3]) > 0


# -- keys --------------------------------------------------------------------------------------------------------------

SHARING = [
    (learner, {"sampling": sampling} if sampling else {})
    for learner in LEARNERS
    for sampling in (None, "assignment", "poisson")
    if (sampling is None or "sampling" in inspect.signature(learner).parameters)
    and accepted(learner, {"sampling": sampling} if sampling else {})
]
KEYED = [(learner, options) for learner, options in SHARING if options.get("sampling") != "poisson"]
COPYING = [(learner, options) for learner, options in SHARING if options.get("sampling") == "poisson"]


@pytest.mark.claim("thm-keyed-assignment")
@pytest.mark.claim("lem-blocks")
@pytest.mark.parametrize(("learner", "options"), SHARING, ids=lambda value: getattr(value, "__name__", str(value)))
def test_blocks_that_stay_in_memory_give_the_same_model(learner, options):
    """What a block keeps of the scores of its records changes nothing."""
    frame = frame_of(kind_of(learner))
    kept = fitted(configured(learner, **options), Pieces(frame, THREE, cached=True))
    assert released(kept) == released(in_memory(configured(learner, **options), frame))


@pytest.mark.claim("lem-blocks")
def test_what_a_block_keeps_of_scores_gives_the_same_scores():
    """In as few bytes as lose nothing: one number, whole votes, or the scores themselves."""
    rng = np.random.default_rng(0)
    votes = np.rint(rng.normal(0, 5, 400) * SCALE) / SCALE
    votes[0] = -(2.0**31 - 1) / SCALE
    large, between, missing = votes.copy(), votes.copy(), votes.copy()
    large[7], between[7], missing[7] = 2.0**31 / SCALE, 0.5 / SCALE, np.nan
    columns = {
        8: [np.full(400, 0.1), np.full(400, -np.inf), np.zeros(400)],
        1600: [votes, np.where(votes > 0, 1.0, 2.0)],
        3200: [large, -large, between, missing, np.full(400, np.nan), rng.random(400)],
        0: [np.empty(0)],
    }
    for n_bytes, same in columns.items():
        for column in same:
            packed = pack_scores(column)
            assert packed.nbytes == n_bytes
            assert not np.shares_memory(packed, column)
            np.testing.assert_array_equal(unpack_scores([packed, packed], len(column)).T[1], column)


@pytest.mark.parametrize(("learner", "options"), KEYED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_with_a_key_the_order_of_the_rows_does_not_matter(learner, options):
    frame = frame_of(kind_of(learner))
    shuffled = frame.iloc[np.random.default_rng(1).permutation(len(frame))]
    models = {
        released(fitted(configured(learner, **options), X, key="id"))
        for X in (
            frame,
            shuffled,
            Pieces(frame, THREE),
            Pieces(shuffled, THREE),
            Pieces(shuffled, CUTS[2]),
            Pieces(shuffled, CUTS[7], ordered=False, backward=True),
        )
    }
    assert len(models) == 1
    assert released(in_memory(configured(learner, **options), shuffled, "id")) in models


def shares(learner, options) -> bool:
    """Whether the model depends on who is who: the trees share the records, or the parts of one tree do."""
    return configured(learner, **options).draws_record_coins()


@pytest.mark.claim("thm-keyed-assignment")
@pytest.mark.parametrize(
    ("learner", "options"),
    [case for case in KEYED if shares(*case)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_key_may_change_at_no_cost(learner, options):
    """Two trees pay add-remove's price each where a record moves: together no more than replace-one's."""
    frame = frame_of(kind_of(learner))
    model = fitted(configured(learner, relation="replace-one", **options), frame, key="id")
    moved, stayed = (model.ledger_.total(relation) for relation in ("add-remove", "replace-one"))
    assert 0 < 2 * moved <= model.guarantee_.epsilon * (1 + 1e-12)
    assert stayed <= model.guarantee_.epsilon * (1 + 1e-12)
    careless = fitted(configured(learner, relation="add-remove", **options), frame, key="id")
    assert 2 * careless.ledger_.total("add-remove") > careless.guarantee_.epsilon  # it pays for one tree


@pytest.mark.claim("thm-bootstrap")
@pytest.mark.parametrize(("learner", "options"), COPYING, ids=lambda value: getattr(value, "__name__", str(value)))
def test_copies_by_key_are_refused(learner, options):
    """Records that share a key would be copied together, and the theorem asks for independent copies."""
    frame = frame_of(kind_of(learner))
    for X, error in ((frame, ValueError), (Pieces(frame, CUTS[7]), TableError)):
        model = configured(learner, **options)
        with pytest.raises(error, match=r"a key may come twice.*leave key out"):
            fitted(model, X, key="id")
        assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(("learner", "options"), KEYED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_without_a_key_the_place_is_the_key(learner, options):
    frame = frame_of(kind_of(learner))
    placed = frame.assign(place=np.arange(len(frame)), name=[f"record {i}" for i in range(len(frame))])
    by_place = released(fitted(configured(learner, **options), frame))
    by_key = released(fitted(configured(learner, **options), Pieces(placed, CUTS[7]), key="place"))
    # the same model, of which less need be believed: a key comes along with its record
    assert '"rests_on": []' in by_key
    assert by_key == by_place.replace('"rests_on": ["SipHash"]', '"rests_on": []')
    other = {
        released(fitted(configured(learner, **options), X, key="name"))
        for X in (placed, Pieces(placed, THREE), Pieces(placed.astype({"name": "category"}), CUTS[2]))
    }
    assert len(other) == 1
    # who shares no records draws no coins, whatever the key
    assert (by_place in other) != shares(learner, options)


@pytest.mark.parametrize(("learner", "options"), SHARING, ids=lambda value: getattr(value, "__name__", str(value)))
def test_an_engine_without_an_order_asks_for_a_key_where_one_is_needed(learner, options):
    frame = frame_of(kind_of(learner))
    table = Pieces(frame, CUTS[7], ordered=False)
    model = configured(learner, **options)
    if not shares(learner, options):
        assert released(fitted(model, table)) == released(fitted(configured(learner, **options), frame))
        return
    with pytest.raises(TableError, match=re.escape("name a column that identifies it, fit(X, y, key='id')")):
        fitted(model, table)
    assert not hasattr(model, "ledger_")
    alone = options | {"n_estimators": 1}
    if "n_estimators" in inspect.signature(learner).parameters and options.get("sampling") != "poisson":
        assert released(fitted(configured(learner, **alone), table)) == released(
            fitted(configured(learner, **alone), frame)
        )


def test_a_secure_source_needs_no_key_of_its_own_kind():
    """The coins of a release are computed too; the key comes from the operating system and is not kept."""
    frame = frame_of("classifier")
    models = [configured(EDPRFClassifier, source="secure", random_state=None) for _ in range(2)]
    for model in models:
        fitted(model, Pieces(frame, CUTS[7]))
        assert model.guarantee_.epsilon == pytest.approx(4.0)
    assert released(models[0]) != released(models[1])


@pytest.mark.claim("thm-keyed-assignment")
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_guarantee_says_where_it_rests_on_the_hash(relation):
    """Coins of places, under add-remove; copies, under both; not where keys are named, nor coins drawn, nor none."""
    frame = frame_of("classifier")

    def rests(learner, X=None, key=None, **options):
        model = configured(learner, source="secure", random_state=None, relation=relation, **options)
        return fitted(model, Pieces(frame, CUTS[2]) if X is None else X.copy(), key=key).guarantee_.rests_on

    places = relation == ADD_REMOVE
    assert rests(EDPRFClassifier) == (("SipHash",) if places else ())
    assert not rests(EDPRFClassifier, key="id")
    assert not rests(EDPRFClassifier, frame)
    assert not rests(DiffPETsClassifier)
    assert rests(DiffPETsClassifier, sampling="poisson")
    assert not rests(DiffPETsClassifier, frame, sampling="poisson")


# -- what needs the table in memory ------------------------------------------------------------------------------------

UNPAID = "w", "p"
#: With few trees too, a split into equal parts is one of the whole table.
ONLY: dict[str, Any] = {
    "split_equally": lambda curator: curator.split_equally(1),
    "bootstrap": lambda curator: curator.bootstrap(2),
    "hold_out": lambda curator: curator.hold_out(0.5),
    "draw_by_weight": lambda curator: curator.draw_by_weight(UNPAID),
    "count_by_share": lambda curator: curator.count_by_share(UNPAID),
    "peek_largest_weight": lambda curator: curator.peek(LargestWeight(), UNPAID),
    "peek_error": lambda curator: curator.peek(WeightedError(None), UNPAID),
    "boost": lambda curator: curator.boost(None, 1.0, UNPAID),
    "peek_held_out": lambda curator: curator.peek(HeldOutCounts(None, np.arange(1)), UNPAID),
}


def opened(table, kind="classifier", key=None):
    return table.open(SchemaReader(SCHEMAS[kind], 8, "y", key))


def scattered(table, kind="classifier", source=None, ledger=None):
    schema = SCHEMAS[kind]
    return Curator.over(
        opened(table, kind),
        schema.n_classes,
        schema.cardinalities(8),
        chance=source or chance.Seeded(0),
        ledger=ledger or Ledger(),
    )


@pytest.mark.parametrize("name", ONLY)
def test_what_looks_at_all_records_at_once_says_so(name):
    curator = scattered(Pieces(frame_of("classifier")))
    with pytest.raises(TableError, match=WHOLE) as caught:
        ONLY[name](curator)
    assert "Pass a DataFrame, or use variant='proved'" in str(caught.value)
    assert curator._ledger.epsilon == 0
    assert not curator._ledger.leaks
    assert curator.unit == 1


def asked(protocol: type) -> set[str]:
    """What a protocol asks for by itself."""
    return {name for name in {*vars(protocol), *protocol.__annotations__} if not name.startswith("_")}


def test_both_kinds_of_records_keep_the_protocol():
    """With the same parameters; what is for the whole table is what the scattered one does not have."""
    there = scattered(Pieces(frame_of("classifier")))._records
    here = InMemoryRecords(np.zeros((4, 2), np.uint8), np.zeros(2, np.uint8), 3, [8, 8, 3, 2])
    for name in asked(Records):
        assert hasattr(here, name)
        assert hasattr(there, name)
        if inspect.isfunction(getattr(Records, name, None)):
            wanted = list(inspect.signature(getattr(Records, name)).parameters)
            assert all(
                list(inspect.signature(getattr(kind, name)).parameters) == wanted
                for kind in (InMemoryRecords, BlockedRecords)
            )
    for name in asked(MaterializedRecords) - asked(Records):
        assert hasattr(here, name)
        assert not hasattr(there, name)
    assert here.whole() is here


def test_what_is_refused_is_all_that_the_whole_table_is_asked_for():
    """Each of them by one method of the curator, or by a query that needs all records."""
    methods = {
        name: each for owner in Curator.__mro__ for name, each in vars(owner).items() if inspect.isfunction(each)
    }
    users = {name for name, each in methods.items() if {"whole", "_uncharged"} & {*each.__code__.co_names}} - {
        "_uncharged"
    }
    kinds = {name: each for name in queries.__all__ if inspect.isclass(each := getattr(queries, name))}
    whole = {name for name, each in kinds.items() if issubclass(each, queries.WholeQuery)}
    assert whole == {"HeldOutCounts", "LargestWeight", "WeightedError", "WholeQuery"}
    assert users | {"peek_held_out", "peek_largest_weight", "peek_error"} == ONLY.keys()
    used = set().union(*({*methods[name].__code__.co_names} for name in users))
    assert asked(MaterializedRecords) - asked(Records) - {"assignment"} <= used


# -- passes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 3, 5])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_fit_reads_the_table_once_per_level(depth, relation):
    """The first look, one pass per level, and at most one for the leaves, of two blocks as of many (see below)."""
    for learner, options in (
        (DiffPETsClassifier, {}),
        (DiffPETsClassifier, {"sampling": "assignment", "stop": "never"}),
        (DiffPETsClassifier, {"leaf": "label"}),
        (DiffPETsRegressor, {}),
        (DiffPETsRegressor, {"sampling": "poisson"}),
    ):
        frame = frame_of(kind_of(learner))
        table = Pieces(frame, CUTS[2])
        fitted(configured(learner, max_depth=depth, relation=relation, **options), table)
        assert len(table.log) <= depth + 2
        assert len(table.log) == max(depth, 1) + 1 or options.get("stop", "candidate") == "candidate"
        assert [read.n_rows for read in table.log] == [len(frame)] * len(table.log)
        assert table.log[0].what == "look"


@pytest.mark.parametrize("split", ["binary", "multiway"])
@pytest.mark.parametrize("learner", [RandomTreesClassifier, RandomTreesRegressor])
def test_random_trees_read_the_table_twice(learner, split):
    table = Pieces(frame_of(kind_of(learner)), CUTS[2])
    fitted(configured(learner, max_depth=3, split=split), table)
    assert len(table.log) == 2


@pytest.mark.parametrize("options", [{}, {"leaf": "counts"}, {"stop": "never"}, {"leaf": "counts", "stop": "never"}])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_edprf_reads_the_table_once_per_level(depth, options):
    table = Pieces(frame_of("classifier"), CUTS[2])
    fitted(configured(EDPRFClassifier, max_depth=depth, n_estimators=4, **options), table)
    assert len(table.log) <= depth + 2


@pytest.mark.parametrize("learner", [FunctionalMechanismClassifier, DiffLRRegressor])
def test_a_linear_model_reads_the_table_once_per_question(learner):
    table = Pieces(frame_of(kind_of(learner)), CUTS[2])
    model = fitted(configured(learner), table)
    assert len(table.log) == 1 + len(charges(model)) == 3


def test_passes_do_not_grow_with_the_table_nor_with_the_blocks():
    counted = set()
    for cuts in (CUTS[1], CUTS[7], list(range(0, N, 10))):
        table = Pieces(frame_of("classifier"), cuts)
        fitted(configured(DiffPETsClassifier, stop="never"), table)
        counted.add(len(table.log))
    assert counted == {3}


# -- what travels ------------------------------------------------------------------------------------------------------

#: All that a pass may be made of.
PUBLIC = {
    "dpforest.engines.table Pass",
    "dpforest.curator.reader SchemaReader",
    "dpforest.schema.declaration Schema",
    "dpforest.curator.scattered Question",
    "dpforest.curator.scattered Keys",
    "dpforest.curator.filters FilterLimits",
    "dpforest.structure.splits Splits",
    "dpforest.structure.crossings Crossings",
    "dpforest.design Design",
}


def named(packed: bytes) -> set[str]:
    """Every class and function that a pickle names."""
    found = set()

    class Reading(pickle.Unpickler):
        def find_class(self, module, name):
            found.add(f"{module} {name}")
            return super().find_class(module, name)

    Reading(io.BytesIO(packed)).load()
    return found


@pytest.mark.parametrize(("learner", "options"), SHARING, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_question_is_public_and_small(learner, options):
    """It holds the trees so far, the candidates and the keys: no ledger, no growth, no source of chance, no record."""
    table = Pieces(frame_of(kind_of(learner)), CUTS[2])
    fitted(configured(learner, **options), table)
    for packed in table.jobs:
        ours = {name for name in named(packed) if name.startswith("dpforest")}
        steps = {f"dpforest.curator.memory InMemoryRecords.{name}" for name in REPEATED}
        assert ours <= PUBLIC | steps | {f"dpforest.curator.queries {name}" for name in answers()}
        others = {name.split(".")[0].split(" ")[0] for name in named(packed)} - {"dpforest"}
        assert others <= {"numpy", "collections", "builtins", "_codecs", "copyreg"}
        assert not [name for name in named(packed) if "random" in name or "pandas" in name]
        assert len(packed) < 60_000
    # it is the same size for a table of half as many rows
    half = Pieces(frame_of(kind_of(learner), N // 2), [40])
    fitted(configured(learner, **options), half)
    assert abs(len(table.jobs[0]) - len(half.jobs[0])) < 10


def test_a_growth_that_travelled_would_be_found():
    ledger = Ledger()
    assert not named(pickle.dumps(Growth(2, 3, 2, ledger, "sequential"))) <= PUBLIC
    assert any("Ledger" in name for name in named(pickle.dumps(ledger)))


# -- bad input ---------------------------------------------------------------------------------------------------------


def small(**options):
    return configured(EDPRFClassifier, **options)


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: Pieces(frame, CUTS[7])], ids=["memory", "blocks"])
class TestBadInput:
    """What a user gets wrong, in a frame in memory and in a table of blocks: the same sort of error."""

    def refused(self, make, frame, error, text, model=None, y="y", **asked):
        model = model or small()
        with pytest.raises(error, match=text):
            fitted(model, make(frame), y, **asked)
        assert not hasattr(model, "forest_")
        assert not hasattr(model, "schema_")

    def test_no_column_of_labels(self, make):
        self.refused(make, frame_of("classifier"), ValueError, "has no column 'income'", y="income")

    def test_no_column_of_keys(self, make):
        self.refused(make, frame_of("classifier"), ValueError, "has no column 'ssn'", key="ssn")

    def test_no_column_of_the_schema(self, make):
        self.refused(make, frame_of("classifier").drop(columns="b"), ValueError, "'b'")

    def test_no_rows(self, make):
        self.refused(make, frame_of("classifier").iloc[:0], ValueError, "Found array with 0 sample")

    def test_an_unknown_category(self, make):
        frame = frame_of("classifier").copy()
        frame.loc[frame.index[-1], "c"] = "w"
        self.refused(make, frame, ValueError, "column 'c' holds 'w', which is not among its declared categories")

    def test_an_unknown_label(self, make):
        frame = frame_of("classifier").copy()
        frame.loc[frame.index[-1], "y"] = "perhaps"
        self.refused(make, frame, ValueError, "'perhaps' is not among the declared classes")

    def test_a_missing_value(self, make):
        frame = frame_of("classifier").copy()
        frame.loc[frame.index[-1], "a"] = math.nan
        self.refused(make, frame, ValueError, "column 'a' contains NaN")

    def test_text_in_a_numeric_column(self, make):
        frame = frame_of("classifier").astype({"a": object}).copy()
        frame.loc[frame.index[-1], "a"] = "much"
        self.refused(make, frame, ValueError, "column 'a'")

    @pytest.mark.parametrize("key", [5, ["id"], b"id", ("id", "a"), True])
    def test_a_key_that_is_no_name(self, make, key):
        self.refused(make, frame_of("classifier"), TypeError, "key must be the name of one column, as text", key=key)

    def test_a_column_of_lists_as_key(self, make):
        frame = frame_of("classifier")
        frame = frame.assign(id=[[number] for number in frame["id"]])
        self.refused(make, frame, TypeError, "record keys holds .* neither a number nor text", key="id")

    def test_a_column_of_labels_that_is_there_twice(self, make):
        frame = pd.concat([frame_of("classifier"), frame_of("classifier")[["y"]]], axis=1)
        self.refused(make, frame, ValueError, "has more than one column 'y'")

    def test_a_missing_key(self, make):
        frame = frame_of("classifier").astype({"id": object}).copy()
        frame.loc[frame.index[-1], "id"] = None
        self.refused(make, frame, ValueError, "a record key is missing", key="id")

    def test_a_missing_target(self, make):
        frame = frame_of("regressor").copy()
        frame.loc[frame.index[-1], "y"] = math.nan
        self.refused(make, frame, ValueError, "y contains NaN", model=configured(RandomTreesRegressor))

    def test_bad_parameters_before_the_first_look(self, make):
        table = make(frame_of("classifier"))
        self.refused(lambda _: table, None, ValueError, "epsilon", model=small(epsilon=-1.0))
        self.refused(lambda _: table, None, ValueError, "n_estimators", model=small(n_estimators=0))
        self.refused(lambda _: table, None, ValueError, "relation", model=small(relation="near"))
        assert not getattr(table, "log", [])

    def test_values_outside_the_schema_are_counted_and_clipped(self, make):
        frame = frame_of("regressor").copy()
        frame.loc[frame.index[::50], "a"] = 3.0
        frame.loc[frame.index[::100], "y"] = -1.0
        frame.loc[frame.index[7], "n"] = -4
        model = configured(RandomTreesRegressor)
        with pytest.warns(OutOfSchemaWarning, match=r"\d of 240 rows lay outside") as caught:
            model.fit(make(frame), "y")
        assert [str(each.message).split(" of")[0] for each in caught] == ["a: 5", "n: 1", "y: 3"]
        assert {each.filename for each in caught} == {__file__}
        clipped = frame.assign(a=frame.a.clip(0, 1), n=frame.n.clip(0, 9), y=frame.y.clip(0, 2))
        assert released(model) == released(fitted(configured(RandomTreesRegressor), clipped))


@pytest.mark.parametrize("y", [None, np.zeros(N), 3, ["y"]], ids=["none", "array", "number", "list"])
def test_labels_of_a_table_in_blocks_are_named(y):
    table, model = Pieces(frame_of("classifier")), small()
    with pytest.raises(TypeError, match="y must be the name of the column of labels where X is read by an engine"):
        model.fit(table, y)
    assert table.log == []


def test_a_name_needs_a_frame():
    X = frame_of("classifier")[FEATURES].to_numpy(dtype=object)
    for y, asked in (("y", {}), (frame_of("classifier")["y"], {"key": "id"})):
        with pytest.raises(TypeError, match="X must be a frame or a table that an engine reads"):
            small().fit(X, y, **asked)


# -- failures ----------------------------------------------------------------------------------------------------------


@every_learner
def test_an_engine_that_dies_leaves_nothing_behind(learner):
    """At whichever pass: the error passes through, the estimator is as it was, and the next fit starts from nothing."""
    frame = frame_of(kind_of(learner))
    calm = configured(learner)
    whole = Pieces(frame, THREE)
    fitted(calm, whole)
    last = len(whole.log) - 1
    for dies in sorted({0, 1, last // 2, last}):
        model = configured(learner)
        before = dict(vars(model))
        table = Pieces(frame, THREE, dies=dies)
        with pytest.raises(EngineError, match="the worker is gone"):
            fitted(model, table)
        assert len(table.jobs) == dies + 1
        assert vars(model) == before
        fitted(model, Pieces(frame, THREE))
        assert released(model) == released(calm)
        assert charges(model) == charges(calm)  # nothing is charged twice
        # a model that had been fitted is still the old one
        before = dict(vars(model))
        with pytest.raises(EngineError):
            fitted(model, Pieces(frame, CUTS[2], dies=dies))
        assert vars(model) == before
        assert released(model) == released(calm)


def test_the_same_table_can_be_read_again_after_it_failed():
    table = Pieces(frame_of("classifier"), CUTS[7], dies=1)
    model = small()
    with pytest.raises(EngineError):
        fitted(model, table)
    fitted(model, table)  # its passes are numbered on, so that it does not fail again
    assert released(model) == released(fitted(small(), frame_of("classifier")))


@pytest.mark.parametrize("when", [1, 2])
@pytest.mark.parametrize("change", ["fewer", "more", "none"])
def test_a_table_that_changes_is_not_learned_from(when, change):
    frame = frame_of("classifier")
    now = {"fewer": frame.iloc[:-1], "more": pd.concat([frame, frame.iloc[:1]]), "none": frame.iloc[:0]}[change]
    model = small(stop="never")
    with pytest.raises(EngineError, match=f"had {len(frame)} rows when it was opened and has {len(now)} now"):
        fitted(model, Pieces(frame, CUTS[7], edits={when: now}))
    assert not hasattr(model, "forest_")


def test_a_value_that_comes_to_be_unreadable_is_named():
    frame = frame_of("classifier")
    now = frame.assign(c="w")
    with pytest.raises(ValueError, match="column 'c' holds 'w'"):
        fitted(small(), Pieces(frame, CUTS[7], edits={1: now}))


# -- scikit-learn ------------------------------------------------------------------------------------------------------


@every_learner
def test_scikit_learn_sees_the_estimator_it_knew(learner):
    frame = frame_of(kind_of(learner))
    model = configured(learner)
    before = model.get_params()
    fitted(model, Pieces(frame, CUTS[7]))
    assert str(model.get_params()) == str(before)
    again = clone(model)
    assert not hasattr(again, "schema_")
    assert str(again.get_params()) == str(before)
    piped = Pipeline([("model", clone(model))])
    fitted(piped, frame[FEATURES], frame["y"])
    assert released(piped[-1]) == released(model)
    np.testing.assert_array_equal(piped.predict(frame[FEATURES]), model.predict(frame[FEATURES]))
    keyed = Pipeline([("model", clone(model))])
    fitted(keyed, Pieces(frame, CUTS[2]), "y", model__key="id")
    assert released(keyed[-1]) == released(fitted(clone(model), frame, key="id"))
    np.testing.assert_array_equal(keyed.predict(Pieces(frame, CUTS[2])), keyed.predict(frame[FEATURES]))


def test_a_fitted_model_carries_no_table():
    table = Pieces(frame_of("classifier"), CUTS[7])
    model = fitted(small(), table)
    held: list[Any] = list(vars(model).values())
    assert not any(isinstance(value, (Table, BlockedRecords, Curator, pd.DataFrame)) for value in held)
    names = named(pickle.dumps(model))
    assert not [name for name in names if "Pieces" in name or "curator" in name or "engines" in name]


def test_predictions_need_the_features_alone():
    frame = frame_of("classifier")
    model = fitted(small(), Pieces(frame, CUTS[7]))
    np.testing.assert_array_equal(model.predict(Pieces(frame[FEATURES], CUTS[2])), model.predict(frame[FEATURES]))
    np.testing.assert_array_equal(
        model.predict(Pieces(frame[FEATURES[::-1]], CUTS[2])), model.predict(frame[FEATURES])
    )  # a table's columns have names, and no order
