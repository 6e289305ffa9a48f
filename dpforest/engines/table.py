"""A table that is read in blocks, wherever it lies: what all engines share.

A *pass* reads every record once.  It hands each block, encoded, to a task and adds up the whole numbers that come
back; the sum does not depend on how the table is cut into blocks, nor on where or in which order they are read.
"""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from dpforest.messages import check_names
from dpforest.privacy import account

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Block",
    "BlockCache",
    "CacheSpace",
    "EngineError",
    "Pass",
    "PassResult",
    "Read",
    "Reader",
    "Table",
    "TableError",
    "merge",
]

Answers = tuple[np.ndarray, ...]
Task = Callable[["Block"], Answers]


class TableError(ValueError):
    """The table cannot be read as asked; the message names the file or partition, and says what to do."""


class EngineError(RuntimeError):
    """The engine that reads the table failed; nothing was released, and a new fit starts from nothing."""


class CacheSpace:
    """Bytes that are left for what stays in memory between passes, for all threads."""

    def __init__(self, n_bytes: int) -> None:
        self._left, self._lock = n_bytes, Lock()

    def take(self, n_bytes: int) -> bool:
        """Whether so many bytes are left, which are then taken; a negative number gives them back."""
        with self._lock:
            if n_bytes > self._left:
                return False
            self._left -= n_bytes
            return True


class BlockCache:
    """What a task worked out for the rows of one block, for the tasks of later passes.

    Parameters
    ----------
    space : CacheSpace
        Of all blocks of the table together.

    Attributes
    ----------
    found : object
        What was kept last; None where nothing was.
    """

    def __init__(self, space: CacheSpace) -> None:
        self._space, self._size = space, 0
        self.found: Any = None

    def keep(self, found: Any, n_bytes: int) -> None:
        """Keep this in place of what was kept before; nothing, if there is not space for it."""
        if not self._space.take(n_bytes - self._size):
            self._space.take(-self._size)
            found, n_bytes = None, 0
        self.found, self._size = found, n_bytes


@dataclass(frozen=True)
class Block:
    """Some records of a table, encoded.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows), C-contiguous
    labels : ndarray of uint8, shape (n_rows,)
        Class codes, or the target's codes on its public grid.
    numbers : ndarray of uint64, shape (n_rows,), or None
        What tells the records apart (:attr:`ids`); None where the engine keeps no order and no key was named.
    strays : ndarray of int64, shape (n_features + 1,)
        Values clipped or sent to ``other``, by column, and in the target.
    cache : a BlockCache, or None
        Of a block that the engine hands to the task of every pass, with the same rows.
    """

    codes: np.ndarray
    labels: np.ndarray
    numbers: np.ndarray | None
    strays: np.ndarray
    cache: BlockCache | None = None

    @property
    def ids(self) -> np.ndarray:
        """The number of each record, that of its key or of its place in the table."""
        if self.numbers is None:
            raise TableError(
                "the trees share the records, and this engine keeps no order by which a record could be identified: "
                "name a column that identifies it, fit(X, y, key='id')"
            )
        return self.numbers


class Reader(Protocol):
    """How rows become a :class:`Block`: public, and small enough to travel to every worker.

    Attributes
    ----------
    features : list of str
        The columns that are encoded.
    target : str
        Column of the labels or of the numeric target.
    key : str or None
        Column that identifies a record.
    columns : list of str
        All of them: what is to be read.
    """

    @property
    def features(self) -> list[str]: ...

    @property
    def target(self) -> str: ...

    @property
    def key(self) -> str | None: ...

    @property
    def columns(self) -> list[str]: ...

    def read(self, frame: pd.DataFrame, first: int | None = None) -> Block:
        """Encode rows of which the first is record ``first`` of the table, or None where there is no order."""


@dataclass(frozen=True)
class PassResult:
    """What a pass over some rows found: how many they are, their strays, and the task's sums (none without a task)."""

    n_rows: int
    strays: np.ndarray
    answers: Answers | None = None


@dataclass(frozen=True)
class Pass:
    """The work of one pass, called on the rows of a piece of the table; it travels to the workers.

    Parameters
    ----------
    reader : Reader
    task : callable or None
        ``task(block)``: a tuple of integer arrays, whose shapes are the same for every block.  None only looks whether
        the rows can be read.
    """

    reader: Reader
    task: Task | None = None

    @property
    def name(self) -> str:
        """What the pass does, for logs and progress bars."""
        return "look" if self.task is None else getattr(self.task, "name", "count")

    def __call__(self, frames: Iterable[pd.DataFrame], first: int | None = None) -> PassResult:
        """Read rows, frame by frame; ``first`` is the number of the first one in the table."""
        return merge(map(self.count, self.read(frames, first)), self.reader)

    def read(self, frames: Iterable[pd.DataFrame], first: int | None = None) -> Iterator[Block]:
        """Encode rows, frame by frame."""
        for frame in frames:
            block = self.reader.read(frame, first)
            yield block
            first = None if first is None else first + len(block.labels)

    def count(self, block: Block) -> PassResult:
        """Do the task on rows that are encoded already."""
        return PassResult(len(block.labels), block.strays, self.task(block) if self.task else None)


def merge(found: Iterable[PassResult], reader: Reader | None = None) -> PassResult:
    """Add up what several pieces found; a piece without rows has no answers, and adds nothing.

    ``reader`` is needed only where nothing at all may have been found.
    """
    n_rows, strays, answers = 0, None, None
    for piece in found:
        n_rows += piece.n_rows
        strays = piece.strays if strays is None else strays + piece.strays
        if answers is None:
            answers = piece.answers
        elif piece.answers is not None:
            answers = tuple(mine + more for mine, more in zip(answers, piece.answers, strict=True))
    if strays is None:
        strays = np.zeros(len(reader.features) + 1 if reader else 0, dtype=np.int64)
    return PassResult(n_rows, strays, answers)


class Read(NamedTuple):
    """One pass over a table: what was asked, the rows read, the bytes of the sum, and the seconds it took."""

    what: str
    n_rows: int
    n_bytes: int
    seconds: float


class Table(ABC):
    """A table that some engine reads.  A subclass says how its pieces are found and worked on.

    Parameters
    ----------
    progress : bool or None
        Whether each pass shows a progress bar; None shows it where standard error is a terminal.

    Attributes
    ----------
    n_rows : int
    strays : dict of str to int
        Values outside the schema, by column: for the curator's eyes.
    log : list of Read
        What each pass took, the first look included; shared with the table that was opened.
    """

    #: What the engine is called in messages.
    engine: str
    reader: Reader
    n_jobs: int = 1
    n_rows: int = 0
    strays: dict[str, int]

    def __init__(self, *, progress: bool | None = None):
        self.progress = progress
        self.log: list[Read] = []

    def __getstate__(self) -> dict:
        return account.marked({**super().__getstate__()})  # type: ignore[dict-item]

    def open(self, reader: Reader, n_jobs: int = 1) -> Self:
        """The table with this reader, looked through once: every value can be encoded, and the records are counted.

        Raises
        ------
        TableError
            Where the table cannot be read, or does not conform to the schema.
        """
        opened = copy.copy(self)
        opened.reader, opened.n_jobs = reader, n_jobs
        opened._prepare()
        look = Pass(reader)
        found = opened._timed(look.name, lambda: opened._first_pass(look))
        opened.n_rows = found.n_rows
        names = [*reader.features, reader.target]
        opened.strays = {name: int(n) for name, n in zip(names, found.strays, strict=True) if n}
        return opened

    def total(self, task: Task) -> Answers:
        """One pass: the sums over all blocks of what ``task`` answers.

        Raises
        ------
        EngineError
            Where the engine failed, or where the table has changed since it was opened.
        """
        job = Pass(self.reader, task)
        found = self._timed(job.name, lambda: self._run(job))
        if found.n_rows != self.n_rows:
            raise EngineError(
                f"the table had {self.n_rows} rows when it was opened and has {found.n_rows} now: it must not change "
                "while it is read; write it down (Parquet) or persist it, and fit again"
            )
        assert found.answers is not None  # a table without records is refused when it is opened
        return found.answers

    @abstractmethod
    def rows(self, answer: Callable[[pd.DataFrame], np.ndarray], columns: list[str], name: str) -> Any:
        """``answer`` to all rows (of a table not yet opened), in the form that the engine's users expect.

        Parameters
        ----------
        answer : callable
            From a frame with ``columns`` to an array of as many rows, of one or two dimensions.
        columns : list of str
        name : str
            What the answer is, for an engine that puts it into a column.
        """

    @property
    def _hidden(self) -> bool | None:
        """Whether progress bars are hidden, as tqdm takes it, None where there is no terminal."""
        return None if self.progress is None else not self.progress

    def _timed(self, what: str, work: Callable[[], Iterable[PassResult]]) -> PassResult:
        start = time.perf_counter()
        found = merge(work(), self.reader)
        size = sum(answer.nbytes for answer in found.answers or ())
        self.log.append(Read(what, found.n_rows, size, time.perf_counter() - start))
        return found

    def _first_pass(self, job: Pass) -> Iterable[PassResult]:
        """The first pass; an engine that wants to know more of the pieces has its own."""
        return self._run(job)

    # -- for the engines -------------------------------------------------------------------------------------

    @abstractmethod
    def _prepare(self) -> None:
        """Check that the engine is there and that the table has the reader's columns, all of one type."""

    @abstractmethod
    def _run(self, job: Pass) -> Iterable[PassResult]:
        """Do the job on every piece of the table, each exactly once; the answers, in any order or added up."""


def missing_columns(wanted: Iterable[str], there: Iterable[str], where: str) -> None:
    """Raise unless all columns are there, each once."""
    check_names(wanted, there, where, TableError)
