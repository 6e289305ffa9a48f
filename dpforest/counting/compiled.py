"""Compiled functions, kept on disk under the digest of everything that they are made of.

Numba keeps a compiled kernel until the file that defines it changes, and compiles into it functions and constants of
other files.  And it numbers the kept files by an index that processes with other signatures or processors may rewrite
at the same time.  Here each has one file, whose name is a digest of the sources of the whole package, the types of the
arguments, the processor and the versions: what is found is never stale, and never made for
other types or processors.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from dpforest import storage

__all__ = ["helper", "jit", "kernel"]

jit: Any = njit  # Numba, not the type checker, knows the types inside compiled code
# Wrappers that are never called take as long to compile as a short function.
helper = jit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # called by kernels alone


def kernel(function: Callable) -> Any:
    """Compile on the first call with arguments of some types, and keep that on disk."""
    compiled = jit(nogil=True, no_cfunc_wrapper=True)(function)
    compiled._cache = _Cache(function)
    return compiled


class _Cache(FunctionCache):
    """Where Numba looks for a compiled function and puts it."""

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._cache_file: Any = _Files(Path(self.cache_path), self._impl.filename_base, _source(function))


class _Files:
    """One file for each key."""

    def __init__(self, folder: Path, name: str, source: str):
        self._folder, self._name, self._source = folder, name, source

    def _path(self, key: object) -> Path:
        digest = sha256(repr((self._source, numba.__version__, llvmlite.__version__, key)).encode()).hexdigest()
        return self._folder / f"{self._name}-{digest[:32]}.nbc"

    def load(self, key: object) -> Any:
        """What was saved under the key, or None."""
        try:
            return pickle.loads(self._path(key).read_bytes())
        except OSError:
            return None

    def save(self, key: object, data: Any) -> None:
        """Keep the data; a process that reads meanwhile finds all of it or nothing."""
        storage.write(self._path(key), dumps(data))

    def flush(self) -> None:
        """Drop all that is kept of the function."""
        for path in self._folder.glob(f"{self._name}-*.nbc"):
            path.unlink(missing_ok=True)


def _source(function: Callable) -> str:
    return _sources(Path(function.__code__.co_filename).parent)


@cache
def _sources(folder: Path) -> str:
    """Digest of all source files of a package."""
    files = sorted(folder.glob("*.py"))
    return sha256(repr([(file.name, file.read_bytes()) for file in files]).encode()).hexdigest()
