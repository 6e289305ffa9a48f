"""Files: what is written appears whole or not at all, and what is read is not believed."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import select
import shutil
import threading
import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import IO, Any, NoReturn

from dpforest.messages import shown

__all__ = ["dump", "listed", "parse", "read", "read_json", "table", "write"]

_PATIENCE = 5.0  # seconds that the other end of a pipe may take to open
_STALE = 3600.0  # seconds after which a part has no writer any more


def write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file so that a reader finds the old content or the new one, whenever it reads.

    The content goes to a file next to it, from there to the disk, and takes the name in one step.  What fails or is
    killed leaves the old file; parts that killed writers of the same file left behind are removed.

    Parameters
    ----------
    path : path
        A link is followed.  What is no regular file, such as ``/dev/stdout``, is written to as it is; a pipe that
        has no reader is refused after some seconds.
    content : bytes or str
        Text is written in UTF-8.

    Raises
    ------
    OSError
        The folder is missing or cannot be written, the disk is full, or the pipe has no reader.
    """
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no folder of this name: make it before", str(path.parent))
    content = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        with _stream(path, os.O_WRONLY) as stream:
            stream.write(content)
        return
    prefix = f".{os.fsencode(path.name)[:100].decode(errors='ignore')}."  # a file system counts bytes
    for left in path.parent.glob(f"{glob.escape(prefix)}*.part"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                left.unlink()
    part = path.with_name(f"{prefix}{os.getpid()}-{threading.get_ident()}-{time.time_ns()}.part")
    try:
        with part.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read_json(path: str | os.PathLike[str]) -> Any:
    """What a JSON file says.

    Raises
    ------
    ValueError
        Naming the file: it is not JSON, or says a name twice, or nests too deep.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"pass the path of a JSON file, or JSON as text where that is taken, not {shown(path)}")
    if isinstance(path, str) and path.lstrip().startswith("{") and not os.path.exists(path):
        raise ValueError("this is JSON itself: pass the path of the file that holds it")
    with _stream(path, os.O_RDONLY) as stream:
        content = stream.read()
    try:
        return parse(content)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} cannot be read: it is not JSON: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _stream(path: str | os.PathLike[str], way: int) -> IO[bytes]:
    """A file, or a pipe once its other end is open; a plain ``open`` of a pipe might wait for that for ever."""
    mode = "rb" if way == os.O_RDONLY else "wb"
    if not Path(path).is_fifo():
        return open(path, mode)
    until, stream = time.monotonic() + _PATIENCE, None
    while stream is None:
        try:
            stream = os.fdopen(os.open(path, way | os.O_NONBLOCK), mode)
        except OSError as error:  # to write, the pipe must have a reader
            if error.errno != errno.ENXIO or time.monotonic() > until:
                raise OSError(
                    error.errno, f"no process reads the pipe, or it is closed: {error.strerror}", str(path)
                ) from None
            time.sleep(0.01)
    if way == os.O_RDONLY and not select.select([stream], [], [], _PATIENCE)[0]:
        stream.close()
        raise TimeoutError(errno.ETIMEDOUT, "no process writes to the pipe", str(path))
    os.set_blocking(stream.fileno(), True)
    return stream


def dump(description: Any, path: str | os.PathLike[str] | None) -> str:
    """A description as JSON, also written to a file if a path is given."""
    text = json.dumps(description, allow_nan=False)
    if path is not None:
        write(path, text)
    return text


def read(source: str | os.PathLike[str]) -> Any:
    """What JSON says, given as a text that begins with a brace, or as the path of a file.

    Raises
    ------
    ValueError
        It is not JSON, or says a name twice, or nests too deep.
    OSError
        There is no such file.
    """
    if isinstance(source, str) and source.lstrip().startswith("{"):
        try:
            return parse(source)
        except ValueError as error:
            raise ValueError(f"this text cannot be read: {error}") from None
    return read_json(source)


def parse(text: bytes | str) -> Any:
    """What JSON says; NaN and infinity, which JSON does not have, and names that stand twice are refused."""
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=_unique_names)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"it says a name twice among {sorted(found)[:8]}")
    return found


def listed(values: Any, name: str, *kinds: type) -> list:
    """``values`` itself: a list whose entries are of exactly these types, for True is not 1, nor is "1"."""
    if type(values) is not list or not set(map(type, values)) <= set(kinds):
        raise ValueError(f"{name} must be a list of {_listed_types(kinds)}")
    return values


def table(values: Any, name: str, *kinds: type) -> list[list]:
    """``values`` itself: a list of lists of one length, whose entries are of exactly these types."""
    listed(values, name, list)
    if len(set(map(len, values))) > 1 or not set(map(type, chain.from_iterable(values))) <= set(kinds):
        raise ValueError(f"{name} must be a list of equally long lists of {_listed_types(kinds)}")
    return values


def _listed_types(kinds: Iterable[type]) -> str:
    return " or ".join(f"{kind.__name__}" for kind in kinds)
