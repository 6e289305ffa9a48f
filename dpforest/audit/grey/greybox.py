"""The grey box: every answer of a run against its charge, and the same run on a neighbour with its answers frozen.

Sampling sees outputs, and can refute no claim whose true loss happens to hold.  The grey box sees the questions, the
exact counts behind the answers and the charges, and asks of each run what its proof asks: that nothing but the
answers depends on the data, that no answer loses more than was charged for it, and that the charges add up to no
more than the claim.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from tqdm import tqdm

from dpforest.audit.exact.laws import answers, released
from dpforest.audit.fingerprint import fingerprint
from dpforest.audit.grey.compare import Comparison, exceeds
from dpforest.audit.grey.doors import Roaming, watching
from dpforest.audit.grey.frozen import LEARNER, RESAMPLING, PlaybackStopped, Watch
from dpforest.audit.plain import plain
from dpforest.audit.search.pairs import EncodedTable, Pair, prepare
from dpforest.audit.search.traps import some_pairs, table_traps, traps
from dpforest.chance import Chance, NotEnumerableError, Replay, Seeded
from dpforest.curator import Curator
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import NON_PRIVATE, REPLACE_ONE, Ledger, check_epsilon, check_relation, claim, in_charges

__all__ = ["KINDS", "GreyBoxAudit", "GreyBoxFinding", "greybox"]

#: What may be found, and what it means.
KINDS = {
    "leak": "the ledger names a read without a charge",
    "uncharged": "the records were read, and neither a charge nor a leak was written",
    "control-flow": "with the same answers, another question follows",
    "output": "with the same answers, another model is released",
    "encoding": "the record that changed changes how others are read",
    "moved": "a record other than the one that changed went to another tree",
    "sensitivity": "scores or counts changed by more than the noise was calibrated for",
    "loss": "an answer loses more than was charged for it",
    "charge": "with the same answers, the charges differ: a charge that depends on the data",
    "composition": "the answers of one run lose more together than its ledger adds up to",
    "paid": "the charges of one run add up to more than the claim",
    "ledger": "entries of the ledger were taken back or changed",
    "noise": "noise was used otherwise than added once to counts",
}

_NOTHING = object()
_TRANSCRIPTS = 20_000  # of one data set that runs="all" visits


@dataclass(frozen=True)
class GreyBoxFinding:
    """One way in which a learner breaks its own accounts.

    Attributes
    ----------
    kind : str
        One of ``KINDS``.
    where : str
        The question, or the method of the curator.
    text : str
        A sentence.
    measured, allowed : float or None
        The worst number seen, and what it should have been at most.
    pair : Pair
        The data sets that show it: tuples of records (codes..., class), in file order.
    count : int
        In how many runs it was seen.
    """

    kind: str
    where: str
    text: str
    measured: float | None
    allowed: float | None
    pair: Pair
    count: int = 1

    def __str__(self) -> str:
        numbers = "" if self.measured is None else f" ({self.measured:.6g}, allowed {self.allowed or 0:.6g})"
        return f"{self.kind}: {self.where} {self.text}{numbers}; pair {self.pair.name!r}, {self.count} runs"

    def to_dict(self) -> dict:
        """Numbers, text and lists only; infinity is written as the text ``"inf"``."""
        pair = {"name": self.pair.name, "one": _lists(self.pair.one), "other": _lists(self.pair.other)}
        numbers = {"measured": plain(self.measured), "allowed": plain(self.allowed)}
        return {"kind": self.kind, "where": self.where, "text": self.text, **numbers, "pair": pair, "count": self.count}


@dataclass(frozen=True)
class GreyBoxAudit:
    """The outcome of a grey-box audit.

    Attributes
    ----------
    claim : float
        What the learner promises.
    delta : float
        The delta of that promise; 0 for none.  Above 0, what is charged and measured are rhos, see ``budget``.
    relation : str
    findings : list of GreyBoxFinding
        Each kind at each place once, with its worst numbers; empty if the learner kept its accounts in all runs.
    paid : float
        Largest path-wise sum of charges over all runs and both data sets, leaks left aside.
    measured : float
        Largest sum, over the answers of one run, of the worst log ratio of an answer's laws on the two data sets, the
        coins being the same; with a delta, of the rho that the two laws need.  At most ``paid`` if there is no finding,
        unless trees have subsets of equal size, whose coins cannot be the same.
        Of a run that does not take up a delta of the claim, ``paid`` and ``measured`` are losses, and are given as the
        same share of the rho as they are of the claimed epsilon.
    loss : float
        Largest log ratio of the probabilities of all the answers of one run, the coins being the same.  Where the
        release gives the answers away and there are no coins it is a true loss, and the largest of all transcripts of
        all pairs is the exact one.
    leaks : list of Leak
        The reads without a charge that the ledgers name.
    n_pairs, n_runs, n_queries : int
        Pairs of data sets; runs that were replayed; answers that were compared.
    complete : bool
        Whether every transcript of every pair was visited; if not, runs were sampled.
    """

    claim: float
    relation: str
    findings: list[GreyBoxFinding]
    paid: float
    measured: float
    loss: float
    leaks: list = field(default_factory=list)
    n_pairs: int = 0
    n_runs: int = 0
    n_queries: int = 0
    complete: bool = False
    delta: float = 0.0

    @property
    def budget(self) -> float:
        """What may be charged, which is the claim, or with a delta the rho that assures it."""
        return in_charges(self.claim, self.delta)

    @property
    def violated(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    @property
    def unspent(self) -> float:
        """What the most expensive run that was seen left of the budget; negative if it spent more."""
        return self.budget - self.paid

    @property
    def kinds(self) -> list[str]:
        """The kinds of findings, each once, in the order of ``KINDS``."""
        return [kind for kind in KINDS if any(found.kind == kind for found in self.findings)]

    def __str__(self) -> str:
        verdict = f"VIOLATED ({', '.join(self.kinds)})" if self.violated else "no finding"
        runs = "all" if self.complete else "sampled"
        beside = f" at delta {self.delta:.6g}, a rho of {self.budget:.6g}," if self.delta else ""
        return (
            f"claim {self.claim:.6g}{beside} under {self.relation}: {verdict}; charged at most {self.paid:.6g}, "
            f"measured at most {self.measured:.6g}, in {self.n_runs} {runs} runs on {self.n_pairs} pairs "
            f"({self.n_queries} answers)"
        )

    def to_dict(self) -> dict:
        """Numbers, text and lists only, ready for JSON; infinity is written as the text ``"inf"``."""
        numbers = {name: plain(getattr(self, name)) for name in ("claim", "paid", "measured", "loss", "unspent")}
        rest = {name: getattr(self, name) for name in ("relation", "n_pairs", "n_runs", "n_queries", "complete")}
        found = {"violated": self.violated, "findings": [finding.to_dict() for finding in self.findings]}
        rest |= {"delta": self.delta, "budget": self.budget} if self.delta else {}
        return {**numbers, **rest, **found, "leaks": [str(leak) for leak in self.leaks]}


@claim("thm-frozen-replay", "cex-budget-twice")
def greybox(
    estimator: PrivateEstimator,
    pairs=None,
    *,
    n_max: int = 6,
    runs: int | str = 20,
    max_pairs: int = 100,
    door: type[Curator] = Curator,
    random_state=None,
    progress: bool = False,
) -> GreyBoxAudit:
    """Run a learner on neighbours with the answers of one frozen on the other, and check its accounts.

    Parameters
    ----------
    estimator : PrivateEstimator
        Configured, not fitted.
    pairs : sequence, optional
        What to run it on: :class:`~dpforest.audit.search.pairs.Pair` objects, ``(one, other)`` or
        ``(name, one, other)``.  A data set is a tuple of records ``(code_1, ..., code_m, class)`` in the order of the
        file, or a table ``(X, y)`` as for ``fit``.  None takes the classical traps
        (:func:`~dpforest.audit.search.traps.traps`, :func:`~dpforest.audit.search.traps.table_traps`), and fills up
        with all pairs of at most ``n_max`` records, or with random ones if there are too many.
    n_max : int
        Largest number of records of the pairs that fill up.
    runs : int or "all"
        Runs of each pair, one after the other from either data set.  Every other run takes any possible answer instead
        of a likely one, since the accounts must hold on all.  ``"all"`` visits every transcript: for one small tree
        with label leaves.
    max_pairs : int
        Pairs to run on, about, if they are made here; the traps in codes are never left out.
    door : type
        The curator's class, if it is not the library's that is to be audited.
    random_state : None, int, Generator
        Same seed, same outcome.
    progress : bool
        Show a progress bar.

    Returns
    -------
    GreyBoxAudit

    Raises
    ------
    ValueError
        If privacy is turned off, if a pair is not one of neighbours, if the learner keeps its door shut, or if
        ``runs="all"`` are too many.
    NotEnumerableError
        With ``runs="all"``, if the learner adds noise.

    Guarantee
    ---------
    A learner without findings on *all* transcripts of *all* neighbours is as private as it claims:
    :prf:ref:`thm-frozen-replay`.  Runs and pairs are samples unless asked for in full, so that no finding is evidence,
    not proof; a finding is a fact, and can be replayed.  It need not be a violation of differential privacy: budget
    that is spent twice is found here although the exact loss may still be within the claim
    (:prf:ref:`cex-budget-twice`).

    Notes
    -----
    Where trees learn from bootstraps, runs are looked at in which the record that differs comes once to each tree.
    What more copies cost is for the ledger's composition to say (:prf:ref:`thm-bootstrap`).

    With a delta the charges are rhos.  Noise is held to its rate times the square of the change, a selection to the
    range that its charge pays for (:prf:ref:`lem-range-concentrated`), both to the divergence of their laws, and what
    is paid to the rho of the claim (:prf:ref:`thm-concentrated-path`).  A run that does not take up the delta charges
    losses, and is held to the epsilon of the claim (:prf:ref:`thm-private-boosting-delta`).

    It looks at what a learner's ``replay`` returns, writes to its ledger and leaves on the estimator.  Out of its reach
    are what ``fit`` does afterwards, what is kept elsewhere (in its class, in a module, in a file), the time that a run
    takes, and a learner that behaves for as many runs as it is watched.  A learner that never ends never ends here.
    """
    if not hasattr(estimator, "replay"):
        raise TypeError(f"the grey box runs an estimator of this library, not a {type(estimator).__name__}")
    promise = check_epsilon(estimator.epsilon)
    if math.isinf(promise):
        raise ValueError(f"epsilon={shown(NON_PRIVATE)} promises nothing: there is nothing to audit")
    check_relation(estimator.relation)
    if runs != "all":
        check_count(runs, "runs")
    check_count(n_max, "n_max")
    check_count(max_pairs, "max_pairs", least=0)
    rng = np.random.default_rng(random_state)
    audit = _Audit(estimator, promise, door, rng)
    if pairs is None:
        ready = _usual_pairs(estimator, n_max, max_pairs, rng, audit.find)
    else:
        ready = prepare(estimator, pairs, found=audit.find)
    for pair, one, other in tqdm(ready, disable=not progress, unit="pair"):
        for first, second in audit.turns(one, other, runs):
            audit.compare(pair, first, second)
    return audit.result(len(ready), runs == "all", ready[-1][0] if ready else None)


def _usual_pairs(estimator, n_max: int, max_pairs: int, rng: np.random.Generator, found) -> list[tuple]:
    """The traps, in codes and in tables, and pairs in bulk, encoded; none larger than the learner's own public cap."""
    estimator.check_parameters()
    schema = estimator.audited_schema(estimator.promised_delta())
    cap = getattr(estimator, "n_max", math.inf)
    universe = schema.cardinalities(estimator.bins(schema)).tolist(), answers(schema), estimator.relation

    def encoded(pairs):
        small = [
            pair for pair in prepare(estimator, pairs, found=found) if len(pair[0].one) <= cap >= len(pair[0].other)
        ]
        return {(pair.one, pair.other): (pair, *tables) for pair, *tables in small}

    chosen = encoded(traps(*universe))
    room = max(max_pairs - len(chosen), max_pairs // 4)
    # every table trap is encoded, which may find something; those that become a new pair are run, as room allows
    tables = [
        (key, pair) for key, pair in encoded(table_traps(schema, estimator.relation)).items() if key not in chosen
    ]
    chosen |= dict(tables[:: max(1, -(-2 * len(tables) // max(room, 1)))])
    bulk = some_pairs(
        *universe, n_max=int(min(n_max, cap)), max_pairs=max(0, max_pairs - len(chosen), room // 2), rng=rng
    )
    return list((chosen | encoded(bulk)).values())


class _Audit:
    """Runs, replays, compares, and keeps the worst of each finding."""

    def __init__(self, estimator, promise: float, door: type[Curator], rng: np.random.Generator):
        self._estimator, self._promise, self._relation = estimator, promise, estimator.relation
        self._door, self._rng = watching(door), rng
        self._delta = estimator.promised_delta()
        self._budget = in_charges(promise, self._delta)
        self._findings: dict[tuple[str, str, str], GreyBoxFinding] = {}
        self._seen: set[tuple[str, str, str]] = set()
        self._leaks: dict = {}
        self._paid = self._measured = self._loss = 0.0
        self._runs = self._queries = 0
        self._failed: tuple[Pair, BaseException] | None = None  # the first pair on both sides of which it failed
        self._passed = False
        self._parameters = fingerprint(vars(estimator))

    def turns(self, one: EncodedTable, other: EncodedTable, runs) -> Iterator[tuple]:
        """Data sets, and the source of the run on the first, as often as asked."""
        if runs != "all":
            for turn in range(runs):
                first, second = ((one, other), (other, one))[turn % 2]
                yield (first, (Seeded, Roaming)[turn // 2 % 2](self._rng)), second
            return
        for first, second in ((one, other), (other, one)):
            replay = Replay()
            yield (first, replay), second
            for number in count(2):
                if not replay.advance():
                    break
                if number > _TRANSCRIPTS:
                    raise ValueError(
                        f"a data set of {len(first.records)} records has more than {_TRANSCRIPTS} transcripts: ask for "
                        "a number of runs, or for fewer trees and features"
                    )
                yield (first, replay), second

    def compare(self, pair: Pair, first: tuple[EncodedTable, Chance], second: EncodedTable) -> None:
        """One run, and its replay on the other data set."""
        self._seen = set()
        self._runs += 1
        table, source = first
        try:
            run, forest, ledger, state = self._run(table, Watch(source, differs=_differing(table, second)))
        except PlaybackStopped as found:
            return self.find(pair, found.kind, found.where, found.text)
        except NotEnumerableError:
            raise
        except (Exception, SystemExit) as error:
            try:
                self._run(second, Watch(Seeded(self._rng)))
            except (Exception, SystemExit):  # on both: whether the records make it fail, the other pairs say
                self._failed = self._failed or (pair, error)
                return None
            return self.find(pair, "control-flow", LEARNER, "fails on one data set and not on the other")
        self._passed = True
        self._look_at(pair, run, ledger)
        try:
            again, another, its_ledger, its_state = self._replay(run, table, second)
        except PlaybackStopped as found:
            return self.find(pair, found.kind, found.where, found.text)
        self._look_at(pair, again, its_ledger)
        if released(forest) != released(another):
            self.find(pair, "output", "the released model", "differs although all answers are the same")
        elif fingerprint(forest) != fingerprint(another):
            text = "holds something other than its fields that differs although all answers are the same"
            self.find(pair, "output", "the released model", text)
        if state != its_state:
            text = "keeps something that differs although all answers are the same"
            self.find(pair, "output", "the estimator", text)
        comparison = Comparison(run, again, ledger, its_ledger, self._relation)
        for kind, *rest in comparison.found:
            self.find(pair, kind, *rest)
        self._measured = max(self._measured, comparison.measured * self._budget / self._allowed(ledger))
        self._loss = max(self._loss, comparison.loss)
        self._queries += comparison.answers

    def _run(self, table: EncodedTable, watch: Watch):
        learner = object.__new__(type(self._estimator))  # what one run leaves behind, the next does not see
        vars(learner).update(vars(self._estimator))
        forest, _ = learner.replay(table.codes, table.labels, table.schema, self._promise, watch, door=self._door)
        before = vars(self._estimator)  # whose own parameters are compared when all runs are done
        kept = {name: value for name, value in vars(learner).items() if value is not before.get(name, _NOTHING)}
        return watch, forest, watch.finish(), fingerprint(kept)

    def _replay(self, run: Watch, table: EncodedTable, second: EncodedTable):
        match, replaced = second.match(table), _differing(second, table)
        try:
            return self._run(second, Watch(Seeded(self._rng), run, match, replaced))
        except PlaybackStopped:
            raise
        except (Exception, SystemExit) as error:
            raise PlaybackStopped("control-flow", LEARNER, "fails on one data set and not on the other") from error

    # -- one run -------------------------------------------------------------------------------------------------

    def _look_at(self, pair: Pair, run: Watch, ledger: Ledger) -> None:
        """What one run shows by itself."""
        for leak in ledger.leaks:
            self._leaks.setdefault(leak)
            self.find(pair, "leak", leak.where, f"reads without a charge: {leak.what}")
        free = () if self._relation != REPLACE_ONE else ("size",)  # the number of records is public
        steps = run.steps
        for step, after in zip(steps, [*steps[1:], None], strict=True):
            # an answer that the curator gives without a charge may be charged by the learner, if it does so at once
            late = step.query != LEARNER and after is not None and after.query == LEARNER and after.charges
            if not step.settled and not late and step.query not in free:
                self.find(pair, "uncharged", step.query, "reads the records, and writes neither a charge nor a leak")
        for step in steps:
            if step.query in RESAMPLING and (kind := step.query.replace("_", "-")) not in ledger._kinds:
                text = f"composes no scope by {kind}, although records may come to a tree several times"
                self.find(pair, "composition", "the ledger", text)
        if run.tampered:
            self.find(pair, "ledger", LEARNER, "took entries of the ledger back")
        paid, allowed = ledger.paid(self._relation), self._allowed(ledger)
        self._paid = max(self._paid, paid * self._budget / allowed)
        if exceeds(paid, allowed):
            self.find(pair, "paid", "the ledger", "adds up to more than the claim", paid, allowed)

    def _allowed(self, ledger: Ledger) -> float:
        """What a run may charge: a rho, or epsilon where it does not take up the delta of the claim."""
        return self._budget if ledger.delta else self._promise

    # -- what was found ------------------------------------------------------------------------------------------

    def find(self, pair: Pair, kind: str, where: str, text: str, measured=None, allowed=None) -> None:
        """Keep a finding; of those of one kind at one place the worst, and how many runs show it."""
        key = kind, where, re.sub(r"\d+", "#", text)  # one level or one size is as good as another
        new = GreyBoxFinding(kind, where, text, _number(measured), _number(allowed), pair, 1)
        old = self._findings.get(key)
        if old is not None:
            worse = new.measured is not None and new.measured > (old.measured or 0)
            new = replace(new if worse else old, count=old.count + (key not in self._seen))
        self._findings[key] = new
        self._seen.add(key)

    def result(self, n_pairs: int, complete: bool, last: Pair | None) -> GreyBoxAudit:
        """The audit, findings in the order of ``KINDS``."""
        if self._failed is not None:
            failed, error = self._failed
            if not self._passed:
                raise error if isinstance(error, Exception) else RuntimeError("the learner left the program") from error
            self.find(failed, "control-flow", LEARNER, "fails on some data sets and not on others")
        if last is not None and fingerprint(vars(self._estimator)) != self._parameters:
            self.find(last, "output", "the estimator", "changes what its parameters hold")
        order = list(KINDS)
        findings = sorted(self._findings.values(), key=lambda found: order.index(found.kind))
        return GreyBoxAudit(
            self._promise,
            self._relation,
            findings,
            self._paid,
            self._measured,
            self._loss,
            list(self._leaks),
            n_pairs,
            self._runs,
            self._queries,
            complete,
            self._delta,
        )


def _differing(table: EncodedTable, other: EncodedTable) -> int | None:
    """Which record of ``table`` is new to ``other``, or replaced by another one there; None if none is."""
    match = table.match(other)
    new = (here for here, there in enumerate(match) if there < 0 or table.records[here] != other.records[there])
    return next(new, None)


def _number(value):
    return None if value is None else float(value)


def _lists(records) -> list[list[int]]:
    return [list(map(int, record)) for record in records]
