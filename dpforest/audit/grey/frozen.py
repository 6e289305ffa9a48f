"""A run watched from inside, and run again on a neighbour with its answers frozen.

:class:`Watch` is a chance that writes down all that passes the two doors in one run: the questions, the exact
scores and counts behind them, the answers, the coins, the charges.  Given such a transcript it plays it back: every
question gets the answer it got before, and every record that the two data sets share keeps its coin.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpforest.audit.grey import coins
from dpforest.chance import Chance, Law
from dpforest.privacy import Ledger

__all__ = ["GAUSSIAN", "LEARNER", "RESAMPLING", "Draw", "PlaybackStopped", "Step", "Watch"]

#: The name of a step in which no method of the curator is at work: the learner acts by itself.
LEARNER = "the learner itself"
#: The mechanism of noise that keeps a rho.
GAUSSIAN = "discrete Gaussian"
#: Methods of the curator after which a record may stand in a tree several times.
RESAMPLING = ("bootstrap", "poisson_bootstrap")
#: Methods that look at records or at their number, and answer nothing; all but the last draw.
SILENT = (
    "assign",
    "partition_records",
    "split_equally",
    *RESAMPLING,
    "hold_out",
    "weigh_records",
    "add_scores",
    "join_round",
)


class PlaybackStopped(Exception):
    """A run that cannot be played on: what was found, and where."""

    def __init__(self, kind: str, where: str, text: str):
        super().__init__(text)
        self.kind, self.where, self.text = kind, where, text


@dataclass
class Draw:
    """One vectorised answer.

    Attributes
    ----------
    mechanism : str
    rate : ndarray
        One per row of a selection, one per cell of noisy counts.
    shape : tuple of int
    law : callable or None
        Of a selection, as :mod:`~dpforest.chance` gets it; None for noise.
    exact : ndarray
        The scores (rows, candidates) or the counts.  It stays None for noise that was drawn and never used.
    answer : ndarray
        What was let out: indices of candidates, or noisy counts.
    noise : ndarray
        What was added to the counts, in a run that is not a replay.
    """

    mechanism: str
    rate: np.ndarray
    shape: tuple[int, ...]
    law: Any = None
    exact: Any = None
    answer: Any = None
    noise: Any = None


@dataclass
class Step:
    """A question to the curator, or a stretch in which the learner acts by itself, with all that happened in it."""

    query: str
    asked: dict[str, Hashable]
    coins: list[tuple[str, tuple, np.ndarray]] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    charges: list[Any] = field(default_factory=list)
    leaks: int = 0
    touched: bool = False
    assignment: np.ndarray | None = None

    @property
    def settled(self) -> bool:
        """Whether a read in this step left its trace in the ledger, or needs none."""
        return not self.touched or bool(self.charges or self.leaks) or self.query in SILENT


class Watch:
    """The chance of a watched run, which keeps its transcript; or of its replay.

    Parameters
    ----------
    source : Chance
        Draws what is not frozen.
    frozen : Watch, optional
        A finished run whose answers and coins are given again.
    match : sequence of int, optional
        For each record its place in the frozen run's file, -1 for a new one.
    differs : int, optional
        Which record the other data set does not have; if another record replaces it there, the two share a coin.  In
        a bootstrap it comes once to each tree.
    """

    def __init__(
        self, source: Chance, frozen: Watch | None = None, match: Sequence[int] = (), differs: int | None = None
    ):
        self.steps: list[Step] = []
        self.ledger: Ledger | None = None
        self.match = np.array(match, dtype=np.int64)
        self.shared = self.match >= 0
        if frozen is not None:
            self.shared[[] if differs is None else [differs]] = False
        self.differs = differs
        self.n_records = 0
        self.tampered = False
        self._source, self._frozen = source, frozen
        self._inside = 0

    # -- what the watched curator reports ------------------------------------------------------------------------

    def hire(self, ledger: Ledger, n_records: int) -> None:
        """Follow the charges and leaks of the run's ledger, from the curator and from the learner."""
        self.n_records = n_records
        if self.ledger is not None and self.ledger is not ledger:
            raise ValueError("the learner keeps two ledgers in one run, which the auditor cannot add up")
        if self.ledger is None:
            self.ledger = ledger
            charge, leak, take_delta = ledger.charge, ledger.leak, ledger.take_delta

            def watched_charge(*args, **kwargs):
                charge(*args, **kwargs)
                self._now().charges.append(ledger._charges[-1])

            def watched_leak(*args, **kwargs):
                leak(*args, **kwargs)
                self._now().leaks += 1

            def watched_take_delta(*args, **kwargs):
                before = ledger._charges
                take_delta(*args, **kwargs)
                # the same charges, as rhos
                now = {id(old): new for old, new in zip(before, ledger._charges, strict=True)}
                for step in self.steps:
                    step.charges = [now.get(id(each), each) for each in step.charges]

            # the ways into a ledger, on this one object alone
            vars(ledger).update(charge=watched_charge, leak=watched_leak, take_delta=watched_take_delta)

    def ask(self, query: str, asked: dict[str, Hashable]) -> None:
        """A question to the curator begins."""
        if self._inside == 0:
            self._begin(query, asked)
        self._inside += 1

    def answered(self, assignment: np.ndarray | None) -> None:
        """It is over."""
        self._inside -= 1
        if self._inside == 0:
            resampled = any(step.query in RESAMPLING for step in self.steps)  # then it speaks of other records
            self.steps[-1].assignment = None if resampled else assignment

    def touch(self) -> None:
        """The records are read."""
        self._now().touched = True

    def finish(self) -> Ledger:
        """The run is over: its own ledger, with every charge that was ever written to it."""
        if self.ledger is None:
            raise ValueError(
                "the learner never opened the door that the auditor gave it: its replay must make its curator from the "
                "class that it gets as door"
            )
        if self._frozen is not None:
            self._close()
            if len(self.steps) < len(self._frozen.steps):
                missing = self._frozen.steps[len(self.steps)].query
                raise PlaybackStopped("control-flow", missing, "is asked on one data set and not on the other")
        charges = [charge for step in self.steps for charge in step.charges]
        self.tampered = [id(c) for c in charges] != [id(c) for c in self.ledger._charges]
        return replace(self.ledger, _charges=charges)

    # -- chance: coins that everyone knows -----------------------------------------------------------------------

    def integers(self, high: int, size: int) -> np.ndarray:
        return self._coin("integers", (int(high), int(size)))

    def subsets(self, n: int, k: int, size: int) -> np.ndarray:
        return self._coin("subsets", (int(n), int(k), int(size)))

    def permutation(self, n: int) -> np.ndarray:
        return self._coin("permutation", (int(n),))

    def coins(self, high: int, ids: np.ndarray) -> np.ndarray:
        return self._coin("coins", (int(high), len(ids)), lambda: self._source.coins(high, ids))

    def copies(self, n_trees: int, ids: np.ndarray) -> np.ndarray:
        return self._coin("copies", (int(n_trees), len(ids)), lambda: self._source.copies(n_trees, ids))

    def lots(self, ids: np.ndarray) -> np.ndarray:
        raise ValueError("the auditor follows the rows that were kept, and lots are drawn before")

    def key(self) -> tuple[int, int]:
        raise ValueError("the auditor follows a table in memory, where no record is read twice and no key is drawn")

    def weighted(self, weights: np.ndarray, size: int) -> np.ndarray:
        return self._coin("weighted", (tuple(np.asarray(weights).tolist()), int(size)))

    def _coin(self, verb: str, args: tuple, draw: Callable[[], np.ndarray] | None = None) -> np.ndarray:
        step = self._now()
        if self._frozen is None:
            value = draw() if draw else getattr(self._source, verb)(*args)
            if step.query in RESAMPLING and self.differs is not None:
                value = coins.once(self._source, verb, value, self.differs, self.n_records)
        else:
            expected = self._expected(step, "coins", f"draws {verb}{args}")
            if step.query in SILENT:
                again = coins.resample if step.query in RESAMPLING else coins.share_out
                frozen = again(self._source, (verb, *args), expected, self.match, self._frozen.n_records)
                if frozen is None:
                    raise PlaybackStopped(
                        "control-flow", step.query, f"draws {verb}{args}, not {expected[0]}{expected[1]}"
                    )
                value = frozen
            elif expected[:2] != (verb, args):
                raise PlaybackStopped("control-flow", step.query, f"draws {verb}{args}, not {expected[0]}{expected[1]}")
            else:
                value = expected[2].copy()
        step.coins.append((verb, args, value.copy()))
        return value

    # -- chance: answers -----------------------------------------------------------------------------------------

    def select(self, kind: str, law: Law, scores: np.ndarray, rate: np.ndarray) -> np.ndarray:
        step = self._now()
        draw = Draw(kind, np.array(rate, dtype=float), np.shape(scores), law, np.array(scores, dtype=float))
        if self._frozen is None:
            draw.answer = self._source.select(kind, law, scores, rate)
        else:
            draw.answer = self._same(step, draw).answer
        step.draws.append(draw)
        return np.array(draw.answer)

    def two_sided_geometric(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        return self._add("two-sided geometric", self._source.two_sided_geometric, rate, size)

    def discrete_gaussian(self, rate: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        return self._add(GAUSSIAN, self._source.discrete_gaussian, rate, size)

    def _add(self, mechanism: str, noise: Callable[..., np.ndarray], rate, size: tuple[int, ...]) -> np.ndarray:
        step = self._now()
        draw = Draw(mechanism, np.array(np.broadcast_to(rate, size), dtype=float), tuple(size))
        if self._frozen is None:
            draw.noise = noise(rate, size)
        else:
            draw.answer = self._same(step, draw).answer
        step.draws.append(draw)
        return _Noise(step.query, draw)  # type: ignore[return-value]

    def _same(self, step: Step, draw: Draw) -> Draw:
        expected = self._expected(step, "draws", f"draws by {draw.mechanism}")
        if (draw.mechanism, draw.shape) != (expected.mechanism, expected.shape):
            text = f"draws {draw.shape} by {draw.mechanism}, not {expected.shape} by {expected.mechanism}"
            raise PlaybackStopped("control-flow", step.query, text)
        return expected

    # -- steps ---------------------------------------------------------------------------------------------------

    def _now(self) -> Step:
        if not self._inside and not (self.steps and self.steps[-1].query == LEARNER):
            self._begin(LEARNER, {})
        return self.steps[-1]

    def _begin(self, query: str, asked: dict[str, Hashable]) -> None:
        if self._frozen is not None:
            self._close()
            if len(self.steps) == len(self._frozen.steps):
                raise PlaybackStopped("control-flow", query, "is asked on one data set and not on the other")
            expected = self._frozen.steps[len(self.steps)]
            if query != expected.query:
                raise PlaybackStopped(
                    "control-flow", query, f"is asked where on the other data set it is {expected.query}"
                )
            every = {**expected.asked, **asked}
            if differ := [name for name in every if asked.get(name) != expected.asked.get(name)]:
                raise PlaybackStopped("control-flow", query, f"is asked with another {', '.join(differ)}")
        self.steps.append(Step(query, asked))

    def _close(self) -> None:
        """The last step of a replay must have used up what its twin holds."""
        if self.steps:
            step, twin = self.steps[-1], self._twin(self.steps[-1])
            if len(step.draws) < len(twin.draws) or len(step.coins) < len(twin.coins):
                raise PlaybackStopped("control-flow", step.query, "draws less often on one data set than on the other")

    def _twin(self, step: Step) -> Step:
        return self._frozen.steps[len(self.steps) - 1]  # type: ignore[union-attr]

    def _expected(self, step: Step, what: str, text: str) -> Any:
        before = getattr(self._twin(step), what)
        if (index := len(getattr(step, what))) == len(before):
            raise PlaybackStopped("control-flow", step.query, f"{text} on one data set and not on the other")
        return before[index]


class _Noise:
    """Noise that waits for the counts it is added to, so that the exact counts are seen, and the sum can be frozen."""

    def __init__(self, where: str, draw: Draw):
        self._where, self._draw = where, draw

    def __add__(self, counts):
        draw = self._draw
        if draw.exact is not None:
            raise PlaybackStopped("noise", self._where, "adds one and the same noise to two answers")
        draw.exact = np.array(np.broadcast_to(np.asarray(counts), draw.shape))
        if draw.answer is None:
            draw.answer = draw.exact + draw.noise
        return draw.answer.copy()

    __radd__ = __add__

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        others = [value for value in inputs if value is not self]
        if ufunc is not np.add or method != "__call__" or len(others) != 1 or options:
            raise self._misuse()
        total = self + others[0]
        if out is None:
            return total
        out[0][...] = total
        return out[0]

    def _misuse(self) -> PlaybackStopped:
        return PlaybackStopped(
            "noise", self._where, "does not add its noise to a count, so its answer cannot be frozen"
        )

    def _refuse(self, *_):
        raise self._misuse()

    __array__ = __getitem__ = __iter__ = __len__ = __mul__ = __rmul__ = __neg__ = __sub__ = __rsub__ = _refuse

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._misuse()
