"""Where the bytes of a data set come from: a folder you name, the cache, or UCI; always checked by digest.

Nothing here runs at import.  The order is fixed: ``$DPFOREST_DATA/<folder>/<file>``, then the cache, then a
download into the cache, then one :class:`DatasetUnavailableError` that says what to do.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import tarfile
import threading
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tqdm import tqdm

from dpforest import storage

BASE_URL = "https://archive.ics.uci.edu/static/public"
TIMEOUT = 30.0  # seconds without a byte before a download gives up
PROBE_TIMEOUT = 3.0  # seconds allowed to the question "does UCI answer?"
_CHUNK = 1 << 16
_NESTING = 3  # UCI wraps a zip in a zip, and a tar.gz in a zip
_MOST = 1 << 29  # bytes that a download may have, or what is unpacked from one: the largest has a third of them


class DatasetUnavailableError(RuntimeError):
    """A data set is neither in ``$DPFOREST_DATA`` nor in the cache, and could not be downloaded."""


class ChecksumError(DatasetUnavailableError, ValueError):
    """A file is there, but its content is not the content this library was written for."""


@dataclass(frozen=True)
class File:
    """One file of a data set and the digest of its content.

    Attributes
    ----------
    name : str
        As UCI names it, without ``.gz``.
    sha256 : str
        Digest of the uncompressed bytes.
    lines : str, optional
        Digest of the *data lines* (:func:`data_lines`).  Given where copies with another header or other line
        endings are in circulation: such a copy is accepted when its data lines agree, and only they are parsed.
    """

    name: str
    sha256: str
    lines: str | None = None


def data_lines(content: bytes) -> bytes:
    r"""The rows of a text file in one layout: no header, no blank line, ``\n`` after each row.

    A first line that does not begin with a digit is a header.
    """
    lines = [line.rstrip() for line in content.splitlines()]
    if lines and not lines[0][:1].isdigit():
        del lines[0]
    return b"".join(line + b"\n" for line in lines if line)


def cache_folder() -> Path:
    """``$DPFOREST_CACHE``, else ``$XDG_CACHE_HOME/dpforest``, else ``~/.cache/dpforest``."""
    chosen = os.environ.get("DPFOREST_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpforest"


def no_folder() -> str:
    """What is wrong with ``$DPFOREST_DATA``, in one sentence; empty where it is a folder or not set."""
    chosen = os.environ.get("DPFOREST_DATA")
    if not chosen or Path(chosen).is_dir():
        return ""
    return f"DPFOREST_DATA names {chosen!r}, which is not a folder: correct it, or unset it"


def find(folder: str, file: File) -> Path | None:
    """The path of a file, plain or ``.gz``, in ``$DPFOREST_DATA`` or in the cache; None when it is in neither."""
    chosen = os.environ.get("DPFOREST_DATA")
    roots = [Path(chosen)] if chosen else []
    for root in [*roots, cache_folder()]:
        for suffix in ("", ".gz"):
            path = root / folder / (file.name + suffix)
            if path.is_file():
                return path
    return None


def read(path: Path, file: File) -> tuple[bytes, str]:
    """The checked content of a file and the sha256 of its uncompressed bytes.

    Raises
    ------
    ChecksumError
        Naming the file, the digest expected, the digest found, and what to do.
    DatasetUnavailableError
        The file cannot be read.
    """
    remedy = f"Delete it, or replace it by UCI's own copy of {file.name}, and try again."
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = _Room().unzip(content)
    except (gzip.BadGzipFile, EOFError, zlib.error, _TooLargeError) as error:
        raise ChecksumError(f"{path} is not a whole gzip file ({error}). {remedy}") from error
    except OSError as error:
        raise DatasetUnavailableError(f"{path} cannot be read: {error}") from error
    return verify(content, file, str(path), remedy)


def verify(content: bytes, file: File, where: str, remedy: str) -> tuple[bytes, str]:
    """The content to parse and its digest, or a :class:`ChecksumError`."""
    found = hashlib.sha256(content).hexdigest()
    if file.lines is not None:
        content = data_lines(content)
        if hashlib.sha256(content).hexdigest() == file.lines:
            return content, found
    elif found == file.sha256:
        return content, found
    layout = "" if file.lines is None else " (or the same rows with another header or other line endings)"
    raise ChecksumError(
        f"{where} does not hold the content expected of {file.name}. {remedy}\n"
        f"  sha256 expected: {file.sha256}{layout}\n  sha256 found:    {found}"
    )


# -- download ------------------------------------------------------------------------------------------------


def answers(archive: str) -> bool:
    """Whether UCI answers for an archive, within a few seconds and without ever raising."""
    reply: list[bool] = []

    def probe() -> None:
        try:
            with urllib.request.urlopen(_request(archive, "HEAD"), timeout=PROBE_TIMEOUT) as response:
                reply.append(response.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
        except Exception:  # whatever goes wrong, the answer is "no"
            reply.append(False)

    # A thread, because no socket timeout bounds the time a name server may take.
    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    thread.join(PROBE_TIMEOUT + 1)
    return reply == [True]


def fetch(archive: str, folder: str, files: tuple[File, ...]) -> None:
    """Download an archive from UCI and put its checked files, compressed, into the cache.

    Each file is checked before it enters the cache, under its own name in one step: an interrupted or corrupted
    download leaves nothing behind.

    Raises
    ------
    DatasetUnavailableError
        No network, a refusal by the server, or less than the whole archive.
    ChecksumError
        The archive came whole, but a file in it is not the one expected.
    """
    packed = _download(archive)
    wanted = {file.name: file for file in files}
    checked: dict[str, bytes] = {}
    try:
        for name, content in _unpack(archive, packed, set(wanted), _Room()):
            remedy = "Nothing was kept. UCI may have changed the file: see whether a newer dpforest knows it."
            verify(content, wanted[name], f"{name} in {BASE_URL}/{archive}", remedy)
            checked[name] = content
    except ChecksumError:
        raise
    except Exception as error:  # damaged, encrypted, packed in another way, too large: each has an error of its own
        raise DatasetUnavailableError(f"the archive {BASE_URL}/{archive} cannot be unpacked: {error}") from error
    absent = [name for name in wanted if name not in checked]
    if absent:
        raise DatasetUnavailableError(f"the archive {BASE_URL}/{archive} does not contain {', '.join(absent)}")
    target = cache_folder() / folder
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, content in checked.items():
            storage.write(target / f"{name}.gz", gzip.compress(content, compresslevel=6, mtime=0))
    except OSError as error:
        raise DatasetUnavailableError(
            f"the cache folder {target} cannot be written ({error}); set DPFOREST_CACHE to one that can"
        ) from error


def _request(archive: str, method: str) -> urllib.request.Request:
    return urllib.request.Request(f"{BASE_URL}/{archive}", method=method, headers={"User-Agent": "dpforest"})


def _download(archive: str) -> bytes:
    url = f"{BASE_URL}/{archive}"
    packed = io.BytesIO()
    try:
        with urllib.request.urlopen(_request(archive, "GET"), timeout=TIMEOUT) as response:
            length = int(response.headers.get("Content-Length") or 0)
            # disable=None: no bar where the output is no terminal (a file, a pipe)
            with tqdm(
                total=length or None, unit="B", unit_scale=True, desc=archive.split("/")[-1], disable=None
            ) as bar:
                while chunk := response.read(_CHUNK):
                    packed.write(chunk)
                    if packed.tell() > _MOST:
                        raise ValueError(f"more than the {_MOST:,} bytes that any set has")
                    bar.update(len(chunk))
    except urllib.error.HTTPError as error:
        error.close()
        raise DatasetUnavailableError(f"{url} answered {error.code} {error.reason}") from error
    # no route, no name, time-out, reset; broken off; a length that is not a number
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise DatasetUnavailableError(f"{url} cannot be reached: {reason}") from error
    # http.client returns a short read silently, so the length is checked here
    if length and packed.tell() != length:
        raise DatasetUnavailableError(f"{url} broke off after {packed.tell():,} of {length:,} bytes; try again")
    return packed.getvalue()


class _TooLargeError(Exception):
    """What is unpacked is larger than any data set."""


class _Room:
    """What may still be unpacked of one download; a bomb is given up before it fills the memory."""

    def __init__(self) -> None:
        self._left = _MOST

    def read(self, stream: IO[bytes] | gzip.GzipFile) -> bytes:
        content = stream.read(self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise _TooLargeError(f"it unpacks to more than {_MOST:,} bytes")
        return content

    def unzip(self, packed: bytes) -> bytes:
        with gzip.open(io.BytesIO(packed)) as stream:
            return self.read(stream)


def _unpack(name: str, packed: bytes, wanted: set[str], room: _Room, depth: int = 0) -> Iterator[tuple[str, bytes]]:
    """Pairs (base name, content) of the wanted files, found in archives within archives."""
    for member, content in _members(name, packed, wanted, room, depth):
        base = member.replace("\\", "/").rsplit("/", 1)[-1]
        if base in wanted:
            yield base, content
        elif base.removesuffix(".gz") in wanted:
            yield base.removesuffix(".gz"), room.unzip(content)
        else:
            yield from _unpack(base, content, wanted, room, depth + 1)


def _members(name: str, packed: bytes, wanted: set[str], room: _Room, depth: int) -> Iterator[tuple[str, bytes]]:
    def worth_reading(member: str) -> bool:
        base = member.replace("\\", "/").rsplit("/", 1)[-1]
        return base.removesuffix(".gz") in wanted or (depth < _NESTING and _is_archive(base))

    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(packed)) as zipped:
            for info in zipped.infolist():
                if worth_reading(info.filename):
                    with zipped.open(info) as stream:
                        yield info.filename, room.read(stream)
        return
    if name.endswith("gz"):
        packed = room.unzip(packed)  # all of it here: to go on in a tar unpacks unwanted members, too
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as tape:
        for member in tape:
            file = tape.extractfile(member) if worth_reading(member.name) else None
            if file is not None:
                yield member.name, room.read(file)


def _is_archive(name: str) -> bool:
    return name.endswith((".zip", ".tar.gz", ".tgz", ".tar")) and not name.startswith("._")
