"""What tells two things apart: their types and all that they hold, whatever their own ``==`` says."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping
from functools import cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

__all__ = ["fingerprint"]

_PLAIN = (str, bytes, int, bool, type(None))
_NAMED = (FunctionType, BuiltinFunctionType, MethodType)


def fingerprint(thing: Any) -> Hashable:
    """A hashable key that is equal for two things only if they have the same types and hold the same throughout.

    1, 1.0 and True have three keys, and so have 0.0 and -0.0, and NaNs of other bits.  Of an object its attributes
    count, also those that are not declared as fields, and its own ``==`` does not.  A function counts by its name: one
    that is made anew in each run is the same one.
    """
    return _key(thing, {})


def _key(thing: Any, above: dict[int, int]) -> Hashable:
    kind = type(thing)
    if kind in _PLAIN:
        return kind, thing
    if kind is float:
        return kind, struct.pack("<d", thing)
    if kind is tuple:
        return kind, tuple([_key(part, above) for part in thing])
    if kind is np.ndarray and not thing.dtype.hasobject:
        return kind, thing.shape, thing.dtype.str, thing.tobytes()
    if isinstance(thing, type | ModuleType):
        return kind, thing
    if isinstance(thing, _NAMED):
        return kind, thing.__module__, thing.__qualname__
    if id(thing) in above:  # it holds itself
        return "above", above[id(thing)]
    above = {**above, id(thing): len(above)}
    return kind, _contents(thing, above), _attributes(thing, above)


def _contents(thing: Any, above: dict[int, int]) -> Hashable:
    """What it holds as a number, a text or a collection."""
    if isinstance(thing, np.ma.MaskedArray):
        return _key(np.ma.getdata(thing), above), _key(np.ma.getmaskarray(thing), above)
    if isinstance(thing, np.ndarray | np.generic):
        if thing.dtype.hasobject:
            return thing.shape, thing.dtype.str, _key(thing.tolist(), above)
        return thing.shape, thing.dtype.str, thing.tobytes()
    if isinstance(thing, list | tuple):
        return tuple(_key(part, above) for part in thing)
    if isinstance(thing, set | frozenset):
        return frozenset(_key(part, above) for part in thing)
    if isinstance(thing, Mapping):
        return tuple((_key(name, above), _key(part, above)) for name, part in thing.items())
    if isinstance(thing, str):
        return str.__str__(thing)
    if isinstance(thing, bytes):
        return bytes.__getitem__(thing, slice(None))
    if isinstance(thing, int):
        return int.__index__(thing)
    return float.hex(thing) if isinstance(thing, float) else None


def _attributes(thing: Any, above: dict[int, int]) -> Hashable:
    """What its attributes hold; of an object that has none, what a pickle would keep."""
    held = {name: getattr(thing, name) for name in _slots(type(thing)) if hasattr(thing, name)}  # type: ignore[arg-type]
    held |= getattr(thing, "__dict__", {})
    if held or isinstance(thing, np.ndarray | np.generic | list | tuple | set | frozenset | Mapping | str | bytes):
        return tuple((name, _key(held[name], above)) for name in sorted(held))
    if isinstance(thing, int | float):
        return ()
    try:
        return _key(thing.__reduce_ex__(4)[1:], above)
    except Exception:  # it cannot be pickled, and counts by its type
        return ()


@cache
def _slots(kind: type) -> tuple[str, ...]:
    every = (vars(part).get("__slots__", ()) for part in kind.__mro__)
    names = (name for slots in every for name in ((slots,) if isinstance(slots, str) else slots))
    return tuple(name for name in names if not name.startswith("__"))
