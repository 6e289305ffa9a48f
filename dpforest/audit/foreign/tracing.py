"""Noise that notes what it is added to: numbers and arrays that a recording hands out for those that were drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpforest.audit.foreign.calls import NoiseCall

if TYPE_CHECKING:
    from dpforest.audit.foreign.recording import Recording

__all__ = ["plain", "trace"]


class _TracedNumber(float):
    """A number drawn as noise, which notes what it is added to."""

    recording: Recording
    call: NoiseCall
    index: np.ndarray
    factor: np.ndarray

    def __add__(self, other: Any) -> Any:
        return _operate(np.add, (self, other))

    def __radd__(self, other: Any) -> Any:
        return _operate(np.add, (other, self))

    def __sub__(self, other: Any) -> Any:
        return _operate(np.subtract, (self, other))

    def __rsub__(self, other: Any) -> Any:
        return _operate(np.subtract, (other, self))

    def __mul__(self, other: Any) -> Any:
        return _operate(np.multiply, (self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _operate(np.true_divide, (self, other))

    def __neg__(self) -> Any:
        return _operate(np.negative, (self,))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _operate(ufunc, inputs, method, **kwargs)


class _TracedArray(np.ndarray):
    """An array of noise, which notes what it is added to."""

    recording: Recording
    call: NoiseCall
    index: np.ndarray
    factor: np.ndarray

    def __getitem__(self, key: Any) -> Any:
        factor = np.broadcast_to(self.factor, self.shape)[key]
        return trace(self.recording, self.call, np.asarray(self)[key], np.asarray(self.index[key]), factor)

    def __array_finalize__(self, parent: Any) -> None:
        for name in ("recording", "call", "index", "factor"):
            setattr(self, name, getattr(parent, name, None))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _operate(ufunc, inputs, method, **kwargs)


def trace(recording: Recording, call: NoiseCall, noise: Any, index: np.ndarray, factor: Any) -> Any:
    """Noise of a call as a number or an array that is followed: which draws it holds, and by what factor."""
    made: Any = _TracedNumber(noise) if np.ndim(noise) == 0 else np.array(noise, float).view(_TracedArray)
    made.recording, made.call, made.index, made.factor = recording, call, index, np.asarray(factor, float)
    return made


def _is_noise(value: Any) -> bool:
    return isinstance(value, _TracedNumber) or (isinstance(value, _TracedArray) and value.call is not None)


def plain(value: Any) -> Any:
    """A value without its trace."""
    if isinstance(value, _TracedNumber):
        return float(value)
    return np.asarray(value) if isinstance(value, _TracedArray) else value


def _operate(ufunc: Any, inputs: tuple[Any, ...], method: str = "__call__", **kwargs: Any) -> Any:
    """An operation on noise: a sum is noted, a multiple is noise again, and of anything else the trace is lost."""
    noises = [each for each in inputs if _is_noise(each)]
    out = kwargs.pop("out", None)
    result: Any = None
    if method == "__call__" and not kwargs and noises:
        result = _followed(ufunc, inputs, noises)
    if result is None:
        for each in noises:
            each.call.escaped = True
        result = getattr(ufunc, method)(*map(plain, inputs), **kwargs)
    if out is not None:
        np.asarray(out[0])[...] = result
        return out[0]
    return result


def _followed(ufunc: Any, inputs: tuple[Any, ...], noises: list[Any]) -> Any:
    noise = noises[0]
    if ufunc is np.negative:
        return trace(noise.recording, noise.call, -np.asarray(noise, float), noise.index, -noise.factor)
    if len(inputs) != 2:
        return None
    first, second = inputs
    if len(noises) == 2:
        return noise.recording.pair(first, second) if ufunc is np.subtract else None
    other = second if first is noise else first
    if ufunc in (np.add, np.subtract):
        if ufunc is np.subtract and first is noise:
            return noise.recording.use(noise, -np.asarray(other, float))
        return noise.recording.use(noise, other, -1.0 if ufunc is np.subtract else 1.0)
    if ufunc is np.multiply or (ufunc is np.true_divide and first is noise):
        by = np.asarray(other, float) if ufunc is np.multiply else 1 / np.asarray(other, float)
        product, index, factor = np.broadcast_arrays(np.asarray(noise, float) * by, noise.index, noise.factor * by)
        return trace(noise.recording, noise.call, product[()], index, factor)
    return None
