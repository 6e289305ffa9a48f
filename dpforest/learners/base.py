"""What every private learner shares with scikit-learn: parameters, validation, and the fit itself."""

from __future__ import annotations

import copy
import math
import warnings
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Annotated, Any, ClassVar, Self, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import validate_data

from dpforest._version import __version__
from dpforest.chance import Chance, Secure, Seeded
from dpforest.curator import Curator, Door
from dpforest.learners import intake, persons
from dpforest.learners.audited import EXACT, AuditSpec
from dpforest.learners.facts import Facts
from dpforest.learners.growth import MAX_NODES
from dpforest.learners.parameters import (
    AsPublished,
    Delta,
    Epsilon,
    Integer,
    OneOf,
    Parameter,
    check_choice,
    check_count,
    check_values,
    declare,
)
from dpforest.learners.run import Run
from dpforest.messages import shown
from dpforest.models.forest import ForestClassifier, ForestRegressor
from dpforest.models.predictor import Predictor
from dpforest.privacy import (
    ADD_REMOVE,
    HISTOGRAM_SENSITIVITY,
    PERSON,
    RELATIONS,
    ROW,
    SECURE,
    SEEDED,
    BudgetError,
    Guarantee,
    Ledger,
    UnprovenPrivacyWarning,
    account,
    capped,
    check_delta,
    check_epsilon,
    claim,
    display,
    sides,
)
from dpforest.privacy.searches import searcher
from dpforest.schema import MAX_CODES, Draft, Encoded, Schema, frames
from dpforest.scores import Score

__all__ = [
    "PrivateEstimator",
    "PrivateForest",
    "PrivateForestClassifier",
    "PrivateForestRegressor",
    "WithDelta",
    "check_covered",
    "source_of_bits",
]

#: How a docstring says what is released, by its kind.
_RELEASED_AS = {
    "forest": "forest_ : Forest\n    The released trees.",
    "boosted": "boosted_ : BoostedForest\n    The released trees, in the order of their rounds, and the link.",
    "linear": "linear_ : LinearModel\n    The released coefficients.",
}
#: What else a fit leaves on a learner.
_ATTRIBUTES = """
ledger_ : Ledger
    Every charge; ``ledger_.leaks`` is empty iff nothing was read without a charge.
guarantee_ : Guarantee
n_features_in_, feature_names_in_, schema_, n_bins_"""


@dataclass_transform(kw_only_default=True, eq_default=False)
class PrivateEstimator(Predictor, BaseEstimator):
    """Base of all private learners: a paper's module adds its parameters and what it does in a run.

    ``fit`` checks the parameters, encodes the table on the schema's public grid, hands it to a
    :class:`~dpforest.curator.Curator`, and keeps the released model, the ledger and the guarantee.  A subclass declares
    its parameters (:mod:`~dpforest.learners.parameters`), and has ``as_published(run)`` and ``as_proved(run)``, which
    ask the :class:`~dpforest.learners.run.Run` and return the released model, ``FACTS`` and ``AUDIT``.

    Notes
    -----
    A seed is a secret: with it, the noise can be subtracted.  So a fitted estimator leaves its process without one (a
    pickle of it has ``random_state=None``; ``copy.deepcopy``, ``clone`` and ``get_params`` keep it, as scikit-learn
    needs), and prints ``<seed>`` in its place.  What scikit-learn's own containers print and keep
    cannot be mended from here: a pipeline and a search print the parameters of what they hold, and the pickle of a
    search has its ``estimator``, which is not fitted, with the seed.  Release the fitted estimator, by ``save``.
    """

    #: What the learner is called where the published variant is held to its letter.
    SOURCE: ClassVar[str] = "paper"
    PARAMETERS: ClassVar[dict[str, Parameter]]
    FACTS: ClassVar[Facts] = Facts()
    AUDIT: ClassVar[AuditSpec]

    epsilon: Annotated[
        float | str, Epsilon(), 'Privacy budget of the whole model; ``"non-private"`` turns the noise off.'
    ] = 1.0
    schema: Annotated[
        Schema | None, "What is public: bounds, categories, and the classes or the target.  Required."
    ] = None
    n_bins: Annotated[
        int | str, "Public bins of each numeric feature, equally wide over its bounds, from 2 to 255."
    ] = 32
    relation: Annotated[str, OneOf(RELATIONS), "Which data sets are neighbours."] = ADD_REMOVE
    variant: Annotated[str, OneOf("proved", "published"), "The repair, or the paper to the letter."] = "proved"
    source: Annotated[
        str,
        OneOf(SEEDED, SECURE),
        "Where the bits of the exact samplers come from: a seed, for research, or the system, for a release.",
    ] = SEEDED
    random_state: Annotated[
        int | np.random.Generator | np.random.RandomState | None,
        "Seed of the seeded source.  An attacker who knows it can subtract the noise.",
    ] = None
    n_jobs: Annotated[int | None, "Threads that count."] = None

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        classes = ", classes_" if getattr(cls, "_CLASSIFIES", False) else ""
        declare(cls, f"{_RELEASED_AS[cls._RELEASED]}{_ATTRIBUTES}{classes}")
        if not isinstance(cls.FACTS, Facts):
            raise TypeError(f"{cls.__name__}.FACTS must be Facts(...), not {shown(cls.FACTS)}")

    def fit(self, X: Any, y: Any, *, key: str | None = None, person: Any = None, max_rows: int | None = None) -> Self:
        """Learn from the records.

        Parameters
        ----------
        X : frame or array-like, shape (n_rows, n_features); or a table that an engine reads
            Columns of the schema, by their names in a frame of any library, in a mapping of columns or in a list of
            records (others are not looked at), by their order in an array: see
            :meth:`dpforest.schema.Schema.encode`.  A path or glob of Parquet files, a list of them, a
            Dask or Spark DataFrame, or a :class:`~dpforest.engines.Table` is read where it lies, once per level of the
            trees, and gives the same model to the last bit.
        y : array-like, shape (n_rows,); or str
            Labels among ``schema.classes``, or numbers in ``schema.target``; numbers outside are clipped.  The name of
            a column of ``X``: the only form for a table that an engine reads.
        key : str or None
            Name of a column of ``X`` that identifies a record, by whole numbers or text.  Where each record belongs to
            one tree or part, its coin is a keyed hash of that, and of its place in the table if None
            (:prf:ref:`thm-keyed-assignment`).  Keys may repeat, and may change where a record is replaced; an
            attacker who chooses them gains nothing.  Not allowed with ``sampling="poisson"``, whose copies must be
            independent.
        person : str, array-like of shape (n_rows,), or None
            Whose row it is: the name of a column of ``X``, which is no column of the schema, or the persons
            themselves, by whole numbers or text; ``"7"`` and 7 are two persons.  With it ``epsilon`` is promised to a
            *person*, all of whose rows are added or removed, and not to one row (:prf:ref:`thm-persons`).  Of a
            table in memory.
        max_rows : int or None
            With ``person``: so many rows of a person are learned from at most, drawn by lots of that person's own.
            A public number: the noise grows with it, so choose what most persons are known to have, or fewer.

        Returns
        -------
        self

        Raises
        ------
        EngineError
            When the engine that reads a table fails; the estimator is as before.
        BudgetError
            An account is open (:class:`~dpforest.privacy.Budget`) and refuses the charge: nothing was read.
        ValueError, TypeError
            On bad parameters, on a table without records, or on records that the schema does not allow.  That a
            fit was refused, and why, may depend on a record: it is for the curator's eyes, like the table itself.

        Warns
        -----
        OutOfSchemaWarning
            When values of a column were clipped or sent to ``other``, once for each column (in a search of
            scikit-learn, once for all of its fits), here and where rows are predicted; the counts are for the
            curator's eyes.
        BudgetWarning
            Outside of any account, when a second model that may be released is fitted on the same table object, and
            once in a search or cross-validation of scikit-learn: what that costs so far.  Also inside of one: a search
            chooses by exact scores, and a step of a pipeline before this learner, such as a scaler, learned from rows.
        UnprovenPrivacyWarning
            When ``variant="published"`` spends more than the paper claims, or reads records without a charge.
        """
        asked = copy.copy(self)  # what is asked for does not change on the way, nor does what was learned before
        learned = asked.learn(X, y, key, person, max_rows)
        kept = {name: value for name, value in vars(self).items() if name != "feature_names_in_"}
        self.__dict__ = {**kept, **learned}  # in one step: a reader finds the former fit or this one
        account.note_readers()
        if not account.active():
            account.note_search(learned["guarantee_"])
            if learned["guarantee_"].source == SECURE:
                account.note_release(X, learned["guarantee_"])
        return self

    def learn(self, X: Any, y: Any, key: Any, person: Any, max_rows: Any) -> dict[str, Any]:
        """The attributes that ``fit``, whose parameters these are, gives to an estimator, which stays as it is here."""
        epsilon = check_epsilon(self.epsilon)
        self.check_parameters()
        chance = source_of_bits(self.source, self.random_state)
        schema = self.declared_schema()
        schema.check_written()  # before anything is charged for a model that no file could hold
        # rows of a person that are learned from at most; None where the unit is one row
        limit = persons.check_asked(person, max_rows, self.relation)
        # the ledger is about one row, whose epsilon is what a person's leaves to each of its rows
        row_epsilon = epsilon if limit is None else persons.of_a_row(epsilon, self.promised_delta(), limit)
        # with a delta, a row has less than its share of the person's epsilon, which may be spent where it has no delta
        row_share = epsilon / (limit or 1)
        # what is proved of every run, for the unit
        proved = self.promise(row_epsilon)
        promised = epsilon if proved == row_epsilon else (limit or 1) * proved
        table = intake.TrainingTable.of(X, y, key, person, limit, schema, self.bins(schema))
        sides.check_units(table.coins, ROW if limit is None else PERSON, self.relation)
        ledger = Ledger(self.relation, delta=self.promised_delta())
        with self._charged(promised, limit, table.columns):  # nothing was read so far but names
            curator = table.open(chance, ledger, self._n_threads())
            model = self._learn(Run(curator, chance, schema, ledger, row_epsilon, row_share))
        # what decides which rows a fit sees is its randomness too
        source = SEEDED if any(each.source == SEEDED for each in table.coins) else self.source
        guarantee = self._guarantee(ledger, promised, limit, source, self._rests_on(ledger, chance, key, limit))
        if guarantee.epsilon > epsilon * (1 + 1e-9):  # sums of shares are off by some last bits
            warnings.warn(f"variant='published': {guarantee}", UnprovenPrivacyWarning, stacklevel=3)
        ledger.promise = guarantee
        return {
            "schema_": schema,
            "n_bins_": table.n_bins,
            "n_features_in_": schema.n_features,
            **({} if schema.classes is None else {"classes_": schema.classes}),
            **({"feature_names_in_": np.array(schema.columns, dtype=object)} if table.is_named else {}),
            f"{self._RELEASED}_": model,
            "ledger_": ledger,
            "guarantee_": guarantee,
        }

    def _guarantee(
        self, ledger: Ledger, promised: float, limit: int | None, source: str, rests_on: tuple[str, ...]
    ) -> Guarantee:
        """What is true of the model: the ledger knows what this run spent, which must not exceed what is promised."""
        claimed = check_epsilon(self.epsilon) if self.variant == "published" else None
        spent = persons.together(ledger, limit or 1)
        exceeded = spent > promised * (1 + 1e-9)
        if exceeded and claimed is None:  # a defect of the learner, found before anything leaves it
            raise AssertionError(f"the ledger says {spent}, not {self.epsilon}: nothing is released")
        return Guarantee(
            spent if exceeded else promised,
            self.relation,
            claimed,
            tuple(ledger.leaks),
            self.variant,
            source,
            __version__,
            rests_on,
            ledger.promised_delta,
            limit,
        )

    def _rests_on(self, ledger: Ledger, chance: Seeded | Secure, key: str | None, limit: int | None) -> tuple[str, ...]:
        """What the proof of this fit takes for granted beyond the bits."""
        # which tree a record goes to may be any function of the record's own key, or of its place where no record is
        # added or removed; else, and for copies, the proof needs a random function (thm-keyed-assignment)
        places_stay = self.relation != ADD_REMOVE and limit is None
        random = "poisson-bootstrap" in ledger.kinds or (key is None and not places_stay)
        hashed = ("SipHash",) if chance.hashes and random else ()
        return (*hashed, capped(ledger.n_max)) if math.isfinite(ledger.n_max) else hashed

    def replay(
        self,
        codes: np.ndarray,
        labels: np.ndarray,
        schema: Schema,
        epsilon: float,
        chance: Chance,
        door: Door | None = None,
        alone: float | None = None,
    ) -> tuple[Any, Ledger]:
        """Learn from encoded records: what ``fit`` does between the table's encoding and the estimator's state.

        This is the seam at which an auditor replays the code that ships, as often as it likes.

        Parameters
        ----------
        codes : ndarray of uint8, shape (n_features, n_rows)
        labels : ndarray of uint8, shape (n_rows,)
        schema : Schema
            As :meth:`PrivateEstimator.declared_schema` returns it.
        epsilon : float
        chance : Chance
            Seeded, secure, or one that enumerates.
        door : Door or None
            What makes the curator, ``Curator`` if None; an auditor passes a subclass that looks over its shoulder, see
            :class:`~dpforest.curator.Door`.
        alone : float or None
            What a learner that drops its delta may spend in place of ``epsilon``, if that is more.

        Returns
        -------
        model : Forest, BoostedForest or LinearModel
        ledger : Ledger
        """
        ledger = Ledger(self.relation, delta=self.promised_delta())
        curator = (door or Curator)(
            codes,
            labels,
            schema.n_classes,
            schema.cardinalities(self.bins(schema)),
            chance=chance,
            ledger=ledger,
            n_jobs=self._n_threads(),
        )
        return self._learn(Run(curator, chance, schema, ledger, epsilon, alone)), ledger

    # -- for subclasses --------------------------------------------------------------------------------------

    def as_published(self, run: Run) -> Any:
        """Do what the paper says, step by step; returns the released model."""
        raise NotImplementedError

    def as_proved(self, run: Run) -> Any:
        """Do what is proved; returns the released model."""
        raise NotImplementedError

    def _learn(self, run: Run) -> Any:
        if self.variant != "published":
            return self.as_proved(run)
        model = self.as_published(run)
        run.ledger.n_max = math.inf  # a paper may take the true number for it
        return model

    def promise(self, epsilon: float) -> float:
        """What is proved of every run: ``epsilon``, unless a published algorithm is known to cost more."""
        return epsilon

    def promised_delta(self) -> float:
        """The delta that goes with ``epsilon``: 0, for a loss of at most epsilon without exception."""
        return 0.0

    def option(self, name: str) -> Any:
        """A parameter; in place of ``"auto"`` the value that it means in this variant."""
        value = getattr(self, name)
        if not isinstance(value, str) or value != "auto":
            return value
        return getattr(self.PARAMETERS[name].auto, self.variant)

    # -- what an auditor asks --------------------------------------------------------------------------------

    def audited_schema(self, delta: float = 0.0) -> Schema:
        """A copy of the declared schema, for an audit of this delta; a larger promised delta is refused."""
        if self.promised_delta() > delta:
            raise ValueError(
                f"this audit speaks of delta = {delta:g}, and the learner has {self.promised_delta():g}: audit it with "
                "delta=0, or by exact_audit, greybox or empirical(..., delta=), which know one"
            )
        return self.declared_schema()

    def sharing(self) -> str | None:
        """How fits on the same records may be drawn as trees of one forest.

        ``"parallel"``: each tree learns from its own records, with the whole budget.  ``"sequential"``: each has a
        share of it.  None: one fit at a time.
        """
        return None

    def draws_record_coins(self) -> bool:
        """Whether coins of its own say of each record which trees or parts it counts in, and how often.

        Then the model depends on which record is which.
        """
        return False

    def leaf_is_label(self) -> bool:
        """Whether a leaf says one label; else it says noisy numbers."""
        return False

    def by_paths(self) -> bool:
        """Whether one tree can be audited path by path: a node's law is a matter of its own records alone."""
        return False

    def most_replayed(self) -> float:
        """Records of the largest telling pair that an audit replays."""
        return math.inf

    def lacking(self) -> dict[str, str]:
        """Layers of an audit that cannot look at this learner as it is configured, and why."""
        return {}

    def bins(self, schema: Schema) -> int:
        """Bins of each numeric column of this schema; ``"auto"`` is as many as there may be."""
        auto = isinstance(self.n_bins, str) and self.n_bins == "auto"
        n_bins: Any = MAX_CODES - 1 - (schema.missing == "bin") if auto else self.n_bins
        schema.cardinalities(n_bins)  # checks it
        return int(n_bins)

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a parameter that is not allowed, or not allowed together with another."""
        check_values(self.PARAMETERS, partial(getattr, self), self.variant == "published", self.SOURCE)

    def declared_schema(self) -> Schema:
        """A copy of the declared schema, for what is done to the original is no part of the model."""
        if isinstance(self.schema, Draft):
            raise ValueError("a draft is no schema yet: print it, fill in each ... from documentation, and run it")
        if not isinstance(self.schema, Schema):
            answer = "classes=['no', 'yes']" if is_classifier(self) else "target=(0, 100)"
            raise ValueError(
                f"{type(self).__name__} needs schema=Schema(numeric={{'age': (17, 90)}}, "
                f"categorical={{'sex': ['Female', 'Male']}}, {answer}): "
                f"what is public before the data, never learned from it; got {shown(self.schema)}"
            )
        if is_classifier(self) and self.schema.classes is None:
            raise ValueError("this is a classifier: declare Schema(classes=[...]), not a target range")
        if not is_classifier(self) and self.schema.target is None:
            raise ValueError("this is a regressor: declare Schema(target=(low, high)), not classes")
        return copy.deepcopy(self.schema)

    def read(self, X: Any, y: Any) -> tuple[Schema, Encoded, np.ndarray]:
        """Encode a table in memory, each record by itself: the declared schema, the columns, the labels."""
        schema = self.declared_schema()
        return schema, *intake.encode(X, y, schema, self.bins(schema))

    # -- private ---------------------------------------------------------------------------------------------

    def _charged(self, epsilon: float, max_rows: int | None, X: Any) -> AbstractContextManager[None]:
        """Charge the accounts that are open, all or none; raise where one refuses, or cannot see this process."""
        account.check_process(self, X)
        if not account.active():
            return nullcontext()
        name = type(self).__name__
        if self.variant == "published":
            raise BudgetError(f"{name} with variant='published' may spend more than it says: use variant='proved'")
        unit = ROW if max_rows is None else PERSON
        return account.charged(name, epsilon, self.promised_delta(), self.relation, unit)

    def _codes(self, X: Any) -> np.ndarray:
        table = frames.columns_of(X)
        codes = super()._codes(table)
        if table.names is None:  # warns of an array where fit saw names
            validate_data(self, X, reset=False, skip_check_array=True)
        return codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = isinstance(self.schema, Schema) and self.schema.missing == "bin"
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        # a fitted model that leaves this process carries no seed: with it, anyone could subtract the noise
        return {**state, "random_state": None} if f"{self._RELEASED}_" in state else state

    def __sklearn_clone__(self) -> Self:
        return account.inherit(self, super().__sklearn_clone__())

    def __repr__(self, N_CHAR_MAX: Any = 700) -> str:
        shown = copy.copy(self)
        if shown.random_state is not None:
            shown.random_state = _Seed()  # type: ignore[assignment]
        return super(PrivateEstimator, shown).__repr__(N_CHAR_MAX)

    def _spent_bar(self) -> str:
        most = self.guarantee_.max_rows or 1
        if math.isinf(self.guarantee_.epsilon):
            return ""
        return display.bar([("spent by this run", persons.together(self.ledger_, most))], self.guarantee_.epsilon)


def source_of_bits(source: str, random_state: Any) -> Seeded | Secure:
    """The chance that the parameters ``source`` and ``random_state`` ask for."""
    check_choice(source, "source", (SEEDED, SECURE))
    if source == SEEDED:
        return Seeded(random_state)
    if random_state is not None:
        search = searcher()
        whose = (
            "leave random_state=None"
            if search is None
            else (
                f"{type(search).__name__} gives one to each of its learners, so fit them one by one instead, in a loop"
            )
        )
        raise ValueError(f"source='secure' takes no seed: {whose}")
    return Secure()


class _Seed:
    """Replaces a seed where parameters are printed."""

    def __repr__(self) -> str:
        return "<seed>"


class WithDelta(PrivateEstimator):
    """A learner of which a theorem says what it costs under a delta: it counts, and selects at a bounded range."""

    delta: Annotated[
        float,
        Delta(),
        AsPublished(),
        """0 for a loss of at most epsilon, without exception.  Above, well below one over the number of records: the
        model is (epsilon, delta)-private, which is less, and has less noise where there are many answers.""",
    ] = 0.0

    def promised_delta(self) -> float:
        return check_delta(self.delta)

    def check_parameters(self) -> None:
        super().check_parameters()
        if not self.delta:
            return
        if getattr(self, "selection", "auto") not in ("auto", "exponential"):
            raise ValueError(f"selection={shown(self.selection)} has no bounded range: under a delta use 'exponential'")
        if getattr(self, "sampling", "all") not in ("all", "assignment"):
            raise ValueError("no theorem says what copies cost under a delta: use sampling='all' or 'assignment'")


class PrivateForest(PrivateEstimator):
    """Base of the private forests: several trees, which share the records as ``sampling`` says."""

    n_estimators: Annotated[int, Integer(1), "Trees."] = 10
    max_nodes: Annotated[int, Integer(1), "The forest does not grow beyond this; branches that would are leaves."] = (
        MAX_NODES
    )
    shrinkage: float = 0.0

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.max_nodes, "max_nodes", least=self.n_estimators)

    def half_weight(self, budget: float, step: float) -> float:
        """Public constant of the released forest: ``shrinkage`` times the noise of a leaf, by its standard deviation.

        ``budget`` is the leaf's, and ``step`` what a record adds to it; noise of scale s counts as s.
        """
        cost = HISTOGRAM_SENSITIVITY[self.relation]
        if math.isinf(budget):
            return 0.0
        if self.promised_delta():  # the scale whose noise has the same variance
            return float(self.shrinkage * step * math.sqrt(cost / (4 * budget)))
        return float(self.shrinkage * (step * cost) / budget)

    def sharing(self) -> str | None:
        return "parallel" if self._sampling() in ("assignment", "equal-split") else "sequential"

    def draws_record_coins(self) -> bool:
        sampling = self._sampling()
        return sampling == "poisson" or (sampling == "assignment" and self.n_estimators > 1)

    def most_replayed(self) -> float:
        return 2 if self._sampling() == "bootstrap" else math.inf  # a bootstrap of n has n^n branches

    def lacking(self) -> dict[str, str]:
        if self._sampling() == "poisson":
            return {EXACT: "a Poisson number of copies has infinitely many values, so that replay cannot visit them"}
        return super().lacking()

    def _sampling(self) -> str:
        """Which records a tree sees, by name."""
        if not hasattr(self, "sampling"):
            return "all"
        return "bootstrap" if self.variant == "published" else self.option("sampling")


class PrivateForestClassifier(PrivateForest, ForestClassifier):
    """Base of the private forest classifiers: the leaves hold votes or noisy class counts."""


class PrivateForestRegressor(PrivateForest, ForestRegressor):
    """Base of the private forest regressors: the leaves hold two noisy masses."""


@claim("thm-forest")
def check_covered(
    score: Score,
    relation: str,
    *,
    stop: str = "never",
    sampling: str = "all",
    weighted: bool = False,
    n_max: float = math.inf,
) -> None:
    """Refuse what no corollary of the theorem on forests covers (:prf:ref:`thm-forest`).

    Parameters
    ----------
    score : Score
    relation : {"add-remove", "replace-one"}
    stop : str
        What may end a branch: no read without a charge, and *stop* only where the score's range covers it.
    sampling : str
        How the trees share the records: copies need scores that no cap bounds, and a bootstrap of the size of the data
        costs more than it is given.  (The curator makes sure that copies are by place, not by key.)
    weighted : bool
        Whether records have weights of their own, which only homogeneous scores may see.
    n_max : float
        Public cap on the number of records, for scores whose range needs one.

    Raises
    ------
    ValueError
        That says what to use instead.

    Notes
    -----
    The ranges under both relations make the rate where the selection is made, in the curator.
    """
    if sampling == "bootstrap":
        raise ValueError(
            "sampling='bootstrap' costs more than epsilon, so no proof covers it: use 'poisson', or 'all', or "
            "variant='published'"
        )
    if score.needs_cap and sampling == "poisson":
        raise ValueError(f"criterion={shown(score.name)} needs a cap on the records of a tree, and copies know none")
    score.range(relation, n_max)  # refuses a missing cap
    if weighted and not score.homogeneous:
        raise ValueError(f"criterion={shown(score.name)} has no proved range where records have weights: use 'gini'")
    if stop == "purity":
        raise ValueError(
            "stop='purity' reads the data without a charge, so no proof covers it; use variant='published'"
        )
    if stop == "candidate" and score.rest is None:
        raise ValueError(f"criterion={shown(score.name)} has no stop candidate in its range: use stop='never'")
