"""Parquet files, larger than memory: read row group by row group, in threads."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from dpforest.engines.table import (
    Block,
    BlockCache,
    CacheSpace,
    EngineError,
    Pass,
    PassResult,
    Table,
    TableError,
    merge,
    missing_columns,
)
from dpforest.messages import shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Parquet"]

_BATCH = 1 << 18  # rows decoded at a time: few enough for their memory to be used again and again
_PIECE = 1 << 17  # rows worth opening a file for
_BUFFER = 1 << 20  # bytes read at a time from each column


@dataclass(frozen=True)
class _ParquetFile:
    path: str
    mark: tuple[int, ...]  # changes when the file does
    metadata: Any = field(repr=False)
    types: dict[str, Any]


@dataclass(frozen=True)
class _RowGroups:
    """Some row groups of one file, that follow one another: the work that a thread takes at a time."""

    file: _ParquetFile
    groups: list[int]
    first: int  # number of their first row in the table

    @property
    def n_rows(self) -> int:
        return sum(self.file.metadata.row_group(group).num_rows for group in self.groups)


class Parquet(Table):
    """A table in Parquet files on this machine, streamed: it may be larger than memory.

    Parameters
    ----------
    paths : path, or list of paths
        Each is a file, a directory, which means the ``*.parquet`` in it, or a pattern such as ``data/*.parquet``
        (``**`` for any number of directories).  The rows of the table are those of the first file, then the second: in
        the order of the list, and of the names, as text, within a directory or a pattern.
    rows : int
        Rows that are counted at a time by each thread.
    cache : int
        Bytes of encoded rows that stay in memory between the passes of a fit: a byte for each feature and one more for
        each row, and eight for a key.  Later passes need not decode those rows again, and only count.  They are those
        of the first files, as many as fit; the others are read again in each pass.  Where there is room left, boosting
        keeps what the released trees say of these rows, at most 4 bytes for each class (8 where votes are not whole,
        or very large), so that a round costs as much as the one before.  0 for none.
    progress : bool or None
        Whether each pass shows a progress bar; None shows it where standard error is a terminal.

    Attributes
    ----------
    scan_bytes : int
        Compressed bytes of the columns that are read from the files, by their footers: known once the table is open.

    Notes
    -----
    ``n_jobs`` threads share the row groups of all files.  So a table in one row group is read by one thread, and row
    groups of about 10**5 to 10**6 rows are best.

    Memory: the ``cache``, the footers, and for each thread at most ``min(rows, 2**18)`` decoded rows of the columns
    that are needed, ``rows`` encoded ones (a byte for each feature, and nine more for each row; at the end twice), of
    each column 1 MB and a page of the file, and what it has counted, three times while sums are added.  With 14 columns
    in single precision and the default ``rows``, these are about 100 MB per thread in addition to the counts, whatever
    the size of the table, of its files and of their row groups.

    All files must have the columns, of types that say the same: integers and floats of any size are alike, as are
    texts, whether or not they are written as dictionaries, and a column of which one file knows no value goes with
    everything.  In the column that identifies a record, integers and floats differ.

    Columns that are stated in the names of folders alone, such as ``ward=surgery``, are not read.

    A table is what its footers say.  That the numbers of rows in a footer agree with each other and with the pages that
    are read is checked; a file that leaves rows out consistently, of all columns, is a valid file of fewer rows.

    Damage: page checksums are off by default where files are written, so that a page whose bytes were changed and can
    still be decoded is read as it is.

    Examples
    --------
    >>> table = Parquet("census/*.parquet", progress=False)  # doctest: +SKIP
    >>> EDPRFClassifier(schema=schema, n_jobs=2).fit(table, "income")  # doctest: +SKIP
    """

    engine = "parquet"

    def __init__(
        self,
        paths: str | PathLike | Sequence,
        *,
        rows: int = 1 << 20,
        cache: int = 1 << 30,
        progress: bool | None = None,
    ):
        super().__init__(progress=progress)
        for value, name, least in ((rows, "rows", 1), (cache, "cache", 0)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {shown(value)}")
        self.paths = paths
        self.rows_at_once = int(rows)
        self.cache = int(cache)
        self.scan_bytes = 0

    def __repr__(self) -> str:
        return f"Parquet({self.paths!r})"

    # -- what lies there -------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        reader = self.reader
        self._files = self._open_all(reader.columns, reader.key)
        self._pieces = [piece for piece in self._cut(_PIECE) if piece.n_rows]
        self._keep = {piece.first: size for piece, size in self._fitting()}
        self._kept: dict[int, list[Block]] = {}  # by the number of the piece's first row
        self._space = CacheSpace(self.cache - sum(self._keep.values()))
        self.scan_bytes = sum(_compressed(file, reader.columns) for file in self._files)

    def _open_all(self, columns: list[str], key: str | None = None) -> list[_ParquetFile]:
        """The files, by their footers."""
        _pyarrow()
        files = [_footer(path, columns) for path in _find_files(self.paths)]
        for name in columns:
            _check_types(files, name, name == key)
        return files

    def _cut(self, least: int = 1 << 20) -> Iterator[_RowGroups]:
        """Pieces of at least so many rows, where a file has them."""
        first = 0
        for file in self._files:
            start, groups, n_rows = first, [], 0
            for group in range(file.metadata.num_row_groups):
                groups.append(group)
                n_rows += file.metadata.row_group(group).num_rows
                if n_rows >= least or group + 1 == file.metadata.num_row_groups:
                    yield _RowGroups(file, groups, start)
                    start, groups, n_rows = start + n_rows, [], 0
            first = start

    # -- a pass ----------------------------------------------------------------------------------------------

    def _run(self, job: Pass) -> Iterable[PassResult]:
        todo, lock, stop = iter(self._pieces), Lock(), Event()
        n_jobs = max(1, min(_threads(self.n_jobs), len(self._pieces)))
        n_rows = sum(file.metadata.num_rows for file in self._files)
        with self._progress_bar(n_rows, job.name) as bar:

            def take() -> _RowGroups | None:
                with lock:
                    return next(todo, None)

            def blocks() -> Iterator[Block]:
                while not stop.is_set() and (piece := take()):
                    for block in self._blocks(piece):
                        yield block
                        with lock:
                            bar.update(len(block.labels))
                        if stop.is_set():
                            return

            def work() -> PassResult:
                try:
                    return _count(job, blocks(), max(1, min(self.rows_at_once, n_rows)))
                except BaseException:
                    stop.set()
                    raise

            return [work()] if n_jobs == 1 else _in_threads(work, n_jobs, stop)

    def _blocks(self, piece: _RowGroups) -> Iterator[Block]:
        """The encoded rows of a piece, kept from an earlier pass or read now."""
        if piece.first in self._kept:
            _check_same(piece.file)
            first = piece.first
            for block in self._kept[piece.first]:
                yield block if block.numbers is not None else replace(block, numbers=_places(first, len(block.labels)))
                first += len(block.labels)
            return
        kept: list[Block] = []
        part: list[Block] = []  # of the next block that is kept
        for where, frame, first in _frames(piece, self.reader.columns, self.reader.key, self._batch):
            with _naming_the_place(where):
                block = self.reader.read(frame, first)
            if piece.first in self._keep:
                if part and sum(len(each.labels) for each in (*part, block)) > self.rows_at_once:
                    kept.append(self._joined(part))
                    part = []
                part.append(block if self.reader.key else replace(block, numbers=None))
            yield block
        if piece.first in self._keep:
            self._kept[piece.first] = [*kept, self._joined(part)] if part else kept

    def _joined(self, parts: list[Block]) -> Block:
        """One block of the rows of these, with a cache of its own if it is large enough to be counted by itself."""
        codes, labels = np.concatenate([part.codes for part in parts], axis=1), [part.labels for part in parts]
        numbers = np.concatenate([part.ids for part in parts]) if self.reader.key else None
        cache = BlockCache(self._space) if codes.shape[1] >= _PIECE else None
        return Block(codes, np.concatenate(labels), numbers, np.sum([part.strays for part in parts], axis=0), cache)

    def _fitting(self) -> Iterator[tuple[_RowGroups, int]]:
        """The pieces that are kept, and their bytes: public, for they depend on the footers alone."""
        room = self.cache
        for piece in self._pieces:
            size = piece.n_rows * (len(self.reader.features) + (9 if self.reader.key else 1))
            if size > room:
                return
            room -= size
            yield piece, size

    @property
    def _batch(self) -> int:
        return min(self.rows_at_once, _BATCH)

    def _progress_bar(self, total: int, what: str) -> tqdm:
        return tqdm(total=total, desc=what, unit=" rows", unit_scale=True, disable=self._hidden)

    # -- prediction, and a look ------------------------------------------------------------------------------

    def frames(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        """The rows of the columns that are in every file, in their order, some at a time."""
        files = self._open_all([])
        there = set.intersection(*(set(file.metadata.schema.to_arrow_schema().names) for file in files))
        for file in self._open_all([name for name in columns if name in there]):
            piece = _RowGroups(file, list(range(file.metadata.num_row_groups)), 0)
            for _, frame, _ in _frames(piece, list(file.types), None, self._batch):
                yield frame

    def rows(self, answer: Callable[[pd.DataFrame], np.ndarray], columns: list[str], name: str) -> np.ndarray:
        """``answer`` to all rows, in their order: one array."""
        files = self._open_all(columns)
        parts: list[np.ndarray] = []  # as many answers as rows were read: a footer may claim any number
        with self._progress_bar(sum(file.metadata.num_rows for file in files), name) as bar:
            for file in files:
                piece = _RowGroups(file, list(range(file.metadata.num_row_groups)), 0)
                for where, frame, _ in _frames(piece, columns, None, self._batch):
                    with _naming_the_place(where):
                        parts.append(np.asarray(answer(frame[columns])))
                    bar.update(len(frame))
        return np.concatenate(parts) if parts else answer(pd.DataFrame({name: [] for name in columns}))


# -- finding files -----------------------------------------------------------------------------------------------


def _pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ImportError("reading Parquet files needs pyarrow: pip install dpforest[parquet]") from error


def _find_files(paths: str | PathLike | Sequence) -> list[str]:
    """The files, in order; each exists, and none comes twice."""
    found: list[str] = []
    for path in [paths] if isinstance(paths, (str, PathLike)) else paths:
        found += _expand(os.fspath(path))
    if not found:
        raise TableError("there is no Parquet file in an empty list of paths")
    seen: dict[tuple[int, int], str] = {}
    for name in found:
        status = os.stat(name)
        place = status.st_dev, status.st_ino
        if place in seen:
            raise TableError(f"{name} is {seen[place]} again: its records would count twice; name each file once")
        seen[place] = name
    return found


def _expand(path: str) -> list[str]:
    if os.path.isdir(path):
        # other programs leave files of their own there, whose names begin like this
        names = sorted(p.name for p in Path(path).glob("*.parquet") if not p.name.startswith((".", "_")))
        found = [os.path.join(path, name) for name in names]
        hint = f"for the directories in it, write '{os.path.join(path, '**', '*.parquet')}'"
    elif os.path.exists(path):
        return [path]
    else:
        found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        hint = "files must lie on this machine: for other storage, read it with Dask or Spark" if "://" in path else ""
    if not found:
        text = f"no Parquet file matches '{path}'" if not os.path.isdir(path) else f"no *.parquet lies in '{path}'"
        raise TableError(f"{text}; {hint}" if hint else text)
    return found


def _mark(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns  # the same on every machine that sees the file


def _footer(path: str, columns: list[str]) -> _ParquetFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        mark = _mark(path)
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
    except PermissionError as error:
        raise TableError(f"{path} may not be read: {error}") from error
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"{path} is not a Parquet file, or its footer is damaged: {error}") from error
    if (said := sum(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))) != metadata.num_rows:
        raise TableError(
            f"{path}: its footer says {metadata.num_rows} rows, and {said} in its row groups: it is forged"
        )
    try:
        missing_columns(columns, schema.names, path)
    except TableError as error:
        folders = [name for name in columns if name not in schema.names and f"{os.sep}{name}=" in os.path.abspath(path)]
        if not folders:
            raise
        raise TableError(
            f"{error}. {', '.join(map(repr, folders))} is in the names of folders, which are not read: write the "
            "column into the files, or read the table with Dask or Spark"
        ) from None
    return _ParquetFile(path, mark, metadata, {name: schema.field(name).type for name in columns})


def _check_types(files: list[_ParquetFile], name: str, identifies: bool) -> None:
    """Raise where a column's type in one file does not say the same as in another."""
    kinds = [(_kind(file.types[name], identifies), file) for file in files]
    known = [(kind, file) for kind, file in kinds if kind != "null"]
    for kind, file in known:
        first_kind, first = known[0]
        if kind != first_kind:
            text = f"column {shown(name)} is {first.types[name]} in {first.path} and {file.types[name]} in {file.path}"
            raise TableError(f"{text}: write all files with one type")


def _kind(type_: pa.DataType, identifies: bool) -> str:
    """What a type says, whatever its size and form."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return _kind(type_.value_type, identifies)
    if _is_text(type_):
        return "text"
    if types.is_integer(type_):
        return "integer" if identifies else "number"
    if types.is_floating(type_):
        return "number"
    return str(type_)


def _is_text(type_: pa.DataType) -> bool:
    from pyarrow import types

    return types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)


def _compressed(file: _ParquetFile, columns: list[str]) -> int:
    """Bytes of these columns in the file."""
    total = 0
    for group in range(file.metadata.num_row_groups):
        about = file.metadata.row_group(group)
        chunks = (about.column(number) for number in range(about.num_columns))
        total += sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in columns)
    return total


# -- reading them ------------------------------------------------------------------------------------------------


def _frames(
    piece: _RowGroups, columns: list[str], key: str | None, batch: int
) -> Iterator[tuple[str, pd.DataFrame, int]]:
    """The rows of a piece: where they lie, the rows, and the number of the first one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file, first = piece.file, piece.first
    texts = [name for name, type_ in file.types.items() if _is_text(type_) and name != key]
    _check_same(file)
    try:
        # the footer is known; pages are read as they are needed, whatever the size of a row group
        known: dict = {"metadata": file.metadata, "read_dictionary": texts, "buffer_size": _BUFFER}
        opened = pq.ParquetFile(file.path, **known, page_checksum_verification=True)
    except OSError as error:
        raise EngineError(f"{file.path} cannot be opened any more: {error}") from error
    with opened:
        for group in piece.groups:
            where = f"{file.path}, row group {group}"
            claimed, before = opened.metadata.row_group(group).num_rows, first
            batches = opened.iter_batches(batch, row_groups=[group], columns=columns, use_threads=False)
            while True:
                try:
                    found = next(batches, None)
                except (OSError, pa.ArrowException) as error:
                    _check_same(file)
                    raise TableError(f"{where} cannot be read, the file is damaged: {error}") from error
                if found is None:
                    break
                with _naming_the_place(where):
                    frame = _frame(found)
                yield where, frame, first
                first += len(frame)
            if first - before != claimed:
                raise TableError(
                    f"{where} holds {first - before} rows, and the footer says {claimed}: the file is damaged or "
                    "forged, write it again"
                )
    _check_same(file)


def _frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """The rows as pandas has them."""
    return batch.to_pandas(use_threads=False, split_blocks=True, ignore_metadata=True)


@contextmanager
def _naming_the_place(where: str) -> Iterator[None]:
    """Say where the rows lie that something is wrong with."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise TableError(f"{where}: {error}") from error


def _check_same(file: _ParquetFile) -> None:
    try:
        same = _mark(file.path) == file.mark
    except OSError:
        raise EngineError(f"{file.path} is gone: the files must stay as they are while they are read") from None
    if not same:
        raise EngineError(
            f"{file.path} has changed since it was opened: do not write to it while it is read; fit again"
        )


def _places(first: int, n_rows: int) -> np.ndarray:
    return np.arange(first, first + n_rows, dtype=np.uint64)


def _count(job: Pass, blocks: Iterable[Block], rows: int) -> PassResult:
    """What the job finds in the blocks, put together to ``rows`` rows at a time: each count has a cost of its own."""
    nothing = merge([], job.reader)
    if job.task is None:
        return merge([nothing, *(PassResult(len(block.labels), block.strays) for block in blocks)])
    found, n_rows, strays = nothing, 0, nothing.strays
    room: list[np.ndarray] | None = None

    def counted(block: Block) -> PassResult:
        assert job.task is not None
        return merge([found, PassResult(len(block.labels), block.strays, job.task(block))])

    for block in blocks:
        size, start = len(block.labels), 0
        if block.cache is not None or (size == rows and not n_rows):
            found = counted(block)
            continue
        if room is None:  # its memory is used again and again: a task keeps nothing of a block
            room = [np.empty((len(block.codes), rows), np.uint8), np.empty(rows, np.uint8), np.empty(rows, np.uint64)]
        strays = strays + block.strays
        while start < size:
            more = min(size - start, rows - n_rows)
            for part, new in zip(room, [block.codes, block.labels, block.ids], strict=True):
                part[..., n_rows : n_rows + more] = new[..., start : start + more]
            start, n_rows = start + more, n_rows + more
            if n_rows == rows:
                found, n_rows, strays = counted(Block(room[0], room[1], room[2], strays)), 0, nothing.strays
    if room is None or not n_rows:
        return found
    codes, labels, numbers = (np.ascontiguousarray(part[..., :n_rows]) for part in room)
    return counted(Block(codes, labels, numbers, strays))


def _threads(n_jobs: int) -> int:
    return (os.cpu_count() or 1) if n_jobs == -1 else n_jobs


def _in_threads(work: Callable[[], PassResult], n_jobs: int, stop: Event) -> list[PassResult]:
    """What each thread found; the first error stops the others."""
    with ThreadPoolExecutor(n_jobs, thread_name_prefix="parquet") as pool:
        futures = [pool.submit(work) for _ in range(n_jobs)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
    return [future.result() for future in futures]
