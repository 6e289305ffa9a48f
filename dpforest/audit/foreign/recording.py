"""The recording of a run: every call of a source of noise in order, and a replay with the answers of another run."""

from __future__ import annotations

import contextlib
import copy
import inspect
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dpforest.audit.foreign.calls import CallFinding, NoiseCall, NoiseSource, Use, argument, place, size
from dpforest.audit.foreign.tracing import trace

__all__ = ["Recording", "record_calls"]

_NUMPY_LAWS = {
    "laplace": ("laplace", "loc", "scale"),
    "normal": ("gaussian", "loc", "scale"),
    "standard_normal": ("gaussian", "", ""),
    "randn": ("gaussian", "", ""),
    "exponential": ("one-sided", "", "scale"),
    "standard_exponential": ("one-sided", "", ""),
    "geometric": ("one-sided", "", "p"),
}
_ARGUMENTS = {
    "laplace": ("loc", "scale", "size"),
    "normal": ("loc", "scale", "size"),
    "standard_normal": ("size",),
    "exponential": ("scale", "size"),
    "standard_exponential": ("size",),
    "geometric": ("p", "size"),
}
_STATE = {"seed", "get_state", "set_state", "spawn", "bit_generator"}
_PYTHON_LAWS = {"gauss": "gaussian", "normalvariate": "gaussian", "expovariate": "one-sided"}
_PYTHON_COINS = ("random", "getrandbits")
_GENERATOR, _RANDOM_STATE, _PLAIN_RANDOM = np.random.Generator, np.random.RandomState, random.Random


class Recording:
    """The calls of one run, in order; with ``frozen``, a replay of the answers of another one.

    Attributes
    ----------
    calls : list of NoiseCall
    diverged : CallFinding or None
        Where the run left the path of the frozen one; answers after it are not frozen.
    """

    def __init__(self, random_state: int = 0, frozen: Recording | None = None) -> None:
        self.calls: list[NoiseCall] = []
        self.diverged: CallFinding | None = None
        self._seed = random_state
        self._frozen = frozen
        self._inside = False  # of a named source, whose own draws are not recorded
        self._generator = _recorded_class(np.random.Generator, self)

    def generator(self) -> np.random.Generator:
        """A NumPy generator whose calls are recorded, for code that takes one."""
        return self._generator(np.random.PCG64(self._seed))

    def _begin(self, call: NoiseCall) -> NoiseCall | None:
        """Write a call down; its counterpart of the frozen run, if the paths are still the same."""
        at = call.position = len(self.calls)
        self.calls.append(call)
        if self._frozen is None or self.diverged:
            return None
        if at >= len(self._frozen.calls):
            self._leave(call.where, f"{call.name} is called here, and not on the other side")
            return None
        then = self._frozen.calls[at]
        if (then.name, then.where) != (call.name, call.where):
            self._leave(call.where, f"{call.name} is called here, where the other side calls {then}")
            return None
        if then.shape != call.shape and call.law != "coin":
            self._leave(call.where, f"{call.name} draws {size(call)} here, and {size(then)} on the other side")
            return None
        return then

    def _leave(self, where: str, text: str) -> None:
        if self.diverged is None:
            self.diverged = CallFinding("control-flow", where, text)

    def _stream(self) -> tuple[int, int]:
        """Seeds of the next call's own stream: the same on both sides, however much was drawn before."""
        return self._seed, len(self.calls)

    def numpy_draw(self, base: type, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A draw by a method of a NumPy generator."""
        fresh: Any = _RANDOM_STATE(np.random.MT19937(self._stream()))
        if issubclass(base, _GENERATOR):
            fresh = _GENERATOR(np.random.PCG64(self._stream()))
        if name == "randn":
            name, args, kwargs = "standard_normal", (args or None,), {}
        if name in _ARGUMENTS:
            given = {**dict(zip(_ARGUMENTS[name], args, strict=False)), **kwargs}
            law, loc, scale = _NUMPY_LAWS[name]
            value = given.get(loc, 0.0) if loc else 0.0
            size = {each: given[each] for each in ("size",) if given.get(each) is not None}
            spread = np.asarray(given.get(scale, 1.0) if scale else 1.0, float)
            centred = {scale: given[scale]} if scale and scale in given else {}
            shape = np.broadcast_shapes(np.shape(value), spread.shape) if not size else None
            drawn = getattr(fresh, name)(**centred, **(size if size else {"size": shape} if shape else {}))
            if name == "geometric":
                spread = -1 / np.log1p(-spread) if np.all(spread < 1) else spread * 0
            return self._traced(name, "geometric-" * (name == "geometric") + law, value, spread, drawn)
        return self._coin(name, lambda: getattr(fresh, name)(*args, **kwargs), (*args, *kwargs.values()))

    def python_draw(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A draw by a method of ``random.Random``."""
        fresh = _PLAIN_RANDOM(hash(self._stream()))
        if name == "expovariate":
            scale = 1 / float({**dict(zip(("lambd",), args, strict=False)), **kwargs}.get("lambd", 1.0))
            return self._traced(name, "one-sided", 0.0, np.asarray(scale), scale * fresh.expovariate(1.0))
        if name in _PYTHON_LAWS:
            given = {"mu": 0.0, "sigma": 1.0, **dict(zip(("mu", "sigma"), args, strict=False)), **kwargs}
            noise = fresh.gauss(0.0, given["sigma"])
            return self._traced(name, "gaussian", given["mu"], np.asarray(given["sigma"], float), noise)
        return self._coin(name, lambda: getattr(_PLAIN_RANDOM, name)(fresh, *args, **kwargs), args)

    def _coin(self, name: str, draw: Callable[[], Any], args: Iterable[Any]) -> Any:
        said = ", ".join(argument(each) for each in args)
        self._begin(NoiseCall(name, place(), "coin", arguments=said))
        return draw()

    def _traced(
        self, name: str, law: str, value: Any, scale: np.ndarray, noise: Any, sensitivity: float | None = None
    ) -> Any:
        """Noise as a number or an array that notes what it is added to."""
        given = np.broadcast_to(np.asarray(value, float), np.shape(noise)).copy()
        call = NoiseCall(name, place(), law, scale, given, sensitivity, np.shape(noise), traced=True)
        then = self._begin(call)
        call.answer = given + noise if then is None else then.answer
        return trace(self, call, call.answer, np.arange(np.size(noise)).reshape(np.shape(noise)), np.float64(1.0))

    def use(self, noise: Any, value: Any, sign: float = 1.0) -> Any:
        """Note that noise was added to a value, and give the answer, which a replay has frozen."""
        call: NoiseCall = noise.call
        value, index, factor = np.broadcast_arrays(np.asarray(value, float), noise.index, sign * noise.factor)
        at = len(call.uses)
        answer: Any = value + sign * np.asarray(noise, float)
        then = self._counterpart(call)
        if then is not None and not self.diverged:
            if at < len(then.uses) and np.array_equal(then.uses[at].index, index):
                answer = then.uses[at].answer.copy()
            else:
                self._leave(call.where, f"noise of {call.name} is added here otherwise than on the other side")
        call.uses.append(Use(index.copy(), factor.copy(), value.copy(), np.array(answer)))
        return answer if np.ndim(answer) else float(answer)

    def _counterpart(self, call: NoiseCall) -> NoiseCall | None:
        if self._frozen is None:
            return None
        return self._frozen.calls[call.position] if call.position < len(self._frozen.calls) else None

    def pair(self, first: Any, second: Any) -> Any:
        """The difference of two draws of one one-sided law: two-sided noise, as one call.  None: it is no such pair."""
        one, two = first.call, second.call
        alike = one.law == two.law and one.law.endswith("one-sided") and one is not two
        if not alike or one.uses or two.uses or np.shape(first) != np.shape(second):
            return None
        if not (np.array_equal(one.scale, two.scale) and np.all(first.factor == 1) and np.all(second.factor == 1)):
            return None
        one.law = "geometric" if one.law.startswith("geometric") else "laplace"
        two.law = "coin"  # it is part of the other
        two.traced = False
        return trace(self, one, np.asarray(first, float) - np.asarray(second, float), first.index, first.factor)

    def named(self, source: NoiseSource, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a named source."""
        if self._inside:
            return original(*args, **kwargs)
        bound = inspect.signature(original).bind(*args, **kwargs)
        bound.apply_defaults()
        draw = source.read(bound.arguments)
        name = f"{source.owner.__name__.rpartition('.')[2]}.{source.name}"
        self._inside = True
        try:
            if draw.value is None:
                noise = original(*args, **kwargs)
                return self._traced(name, draw.law, 0.0, np.asarray(draw.scale, float), noise, draw.sensitivity)
            value = np.array(draw.value, float)
            spread = np.asarray(draw.scale, float)
            call = NoiseCall(name, place(source.name), draw.law, spread, value, draw.sensitivity, value.shape)
            then = self._begin(call)
            call.answer = original(*args, **kwargs) if then is None else then.answer
        finally:
            self._inside = False
        return copy.deepcopy(call.answer)


class _AnyOf(type):
    """Of a subclass that takes the place of its base: instances of the base are instances of it."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.__mro__[1])


def _recorded_class(base: Any, recording: Recording) -> Any:
    """A subclass of a NumPy generator whose draws are recorded."""

    def method(name: str) -> Callable[..., Any]:
        def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
            if recording._inside:
                return getattr(base, name)(self, *args, **kwargs)
            return recording.numpy_draw(base, name, args, kwargs)

        return draw

    return _AnyOf(base.__name__, (base,), {name: method(name) for name in _methods(base)})


def _methods(base: Any) -> list[str]:
    return [name for name in dir(base) if name[0] != "_" and name not in _STATE and callable(getattr(base, name))]


@contextlib.contextmanager
def record_calls(
    sources: Sequence[NoiseSource] = (), *, random_state: int = 0, frozen: Recording | None = None
) -> Iterator[Recording]:
    """Record the calls of sources of noise, or replay the answers of a recording.

    Parameters
    ----------
    sources : sequence of NoiseSource
        Functions of the library, next to those of NumPy (``default_rng``, ``Generator``, ``RandomState`` and the
        functions of ``numpy.random``) and of ``random``.  What they draw themselves is not recorded.
    random_state : int
        Seed of all draws of NumPy and ``random``, whatever seeds the code sets.
    frozen : Recording or None
        Whose answers are given again; the code must be run on a neighbour.

    Yields
    ------
    Recording

    Examples
    --------
    >>> import numpy as np
    >>> from dpforest.audit import record_calls
    >>> with record_calls() as recording:
    ...     noisy = 3 + np.random.default_rng().laplace(0, 2.0)
    >>> (call,) = recording.calls
    >>> call.law, float(call.scale), call.uses[0].value.tolist()
    ('laplace', 2.0, 3.0)
    """
    recording = Recording(random_state, frozen)
    with contextlib.ExitStack() as stack:
        replaced = _replacements(recording)
        for source in sources:
            owner = source.owner
            original = inspect.getattr_static(owner, source.name)
            if inspect.ismodule(owner):  # of which a method of an object is a function, too
                replaced[id(original)] = original, _wrapper(recording, source, original)
            else:
                wrapper = _wrapper(recording, source, getattr(original, "__func__", original))
                _set(
                    stack, owner, source.name, staticmethod(wrapper) if isinstance(original, staticmethod) else wrapper
                )
        _replace_everywhere(replaced)
        # a module that is imported meanwhile takes the replacements, and must not keep them
        stack.callback(_replace_everywhere, {id(new): (new, old) for old, new in replaced.values()})
        _set(stack, np.random.mtrand, "_rand", _recorded_class(_RANDOM_STATE, recording)())
        for owner, name in [(_PLAIN_RANDOM, n) for n in (*_PYTHON_LAWS, *_PYTHON_COINS)] + [
            (random.SystemRandom, n) for n in _PYTHON_COINS
        ]:
            _set(stack, owner, name, _python_method(recording, owner, name))
        yield recording


def _replace_everywhere(replaced: dict[int, tuple[Any, Any]]) -> None:
    """Replace objects, found by identity, in all modules that name them."""
    for module in [*sys.modules.values()]:
        names = vars(module) if isinstance(getattr(module, "__dict__", None), dict) else {}
        if str(names.get("__name__")).startswith((str(__package__), "numpy.random.", "numpy.testing")):
            continue
        for name, value in [*names.items()]:
            if id(value) in replaced and replaced[id(value)][0] is value:
                setattr(module, name, replaced[id(value)][1])


def _replacements(recording: Recording) -> dict[int, tuple[Any, Any]]:
    """What takes the place of NumPy's and Python's own functions and classes, by identity."""
    state = _recorded_class(_RANDOM_STATE, recording)
    singleton = state()
    pairs: list[tuple[Any, Any]] = [(_GENERATOR, recording._generator), (_RANDOM_STATE, state)]
    original = np.random.default_rng

    def default_rng(seed: Any = None) -> Any:
        made = original(seed)
        return recording._generator(made.bit_generator) if type(made) is _GENERATOR else made

    pairs.append((original, default_rng))
    pairs += [(getattr(np.random, n), getattr(singleton, n)) for n in _methods(_RANDOM_STATE) if hasattr(np.random, n)]
    pairs += [
        (getattr(random, name), _bound(_python_method(recording, _PLAIN_RANDOM, name), random._inst))
        for name in (*_PYTHON_LAWS, *_PYTHON_COINS)
    ]
    return {id(old): (old, new) for old, new in pairs}


def _bound(function: Callable[..., Any], instance: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(instance, *args, **kwargs)


def _python_method(recording: Recording, owner: Any, name: str) -> Callable[..., Any]:
    original = getattr(owner, name)

    def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recording._inside:
            return original(self, *args, **kwargs)
        recording._inside = True  # what it draws in its turn
        try:
            return recording.python_draw(name, args, kwargs)
        finally:
            recording._inside = False

    return draw


def _wrapper(recording: Recording, source: NoiseSource, original: Any) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        return recording.named(source, original, args, kwargs)

    return called


def _set(stack: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    """Set an attribute until the stack is left."""
    own = name in vars(owner)
    old = vars(owner).get(name)
    setattr(owner, name, value)
    stack.callback(lambda: setattr(owner, name, old) if own else delattr(owner, name))
