"""Record and replay for code of other libraries: what the noise of a run hides, and what it does not.

A run on one table is recorded: each call of a source of noise, the value that is noised, the scale, the place in the
source.  Then the same code runs on a neighbour with the answers frozen, so that it goes down the same path, and the two
records are compared.  The idea is that of Cebere and others, *Privacy in theory, bugs in practice* (2026); the code is
not theirs.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import random
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dpforest.messages import shown
from dpforest.privacy import check_delta, check_epsilon

__all__ = [
    "KINDS",
    "CallAudit",
    "CallFinding",
    "NoiseCall",
    "NoiseSource",
    "NoisedValue",
    "Recording",
    "audit_calls",
    "record_calls",
]

#: What may be found, and what it means.
KINDS = {
    "control-flow": "with the same answers, another call follows",
    "sensitivity": "a value changed by more than its call declares",
    "scale": "the scale of the noise depends on the data",
    "reuse": "noise that was drawn once was added to values that change differently: their difference has none",
    "output": "with the same answers, another result is returned: something is released without noise",
    "error": "with the same answers, one run ends with an error and the other does not, or with another one",
    "loss": "the calls lose more together than the claim",
    "unseen": "noise was used in a way that the recorder does not follow; what it hides is not known",
    "coin": "a draw without a value took other arguments",
}
#: Findings that say what could not be judged.
UNJUDGED = frozenset({"unseen", "coin"})
#: What a source may draw from.  "choice" is one of several, whose probabilities are the value.
LAWS = ("laplace", "geometric", "gaussian", "choice", "one-sided")

_SLACK = 1e-9  # relative, of a comparison of sums of doubles
_NUMPY_LAWS = {
    "laplace": ("laplace", "loc", "scale"), "normal": ("gaussian", "loc", "scale"),
    "standard_normal": ("gaussian", "", ""), "randn": ("gaussian", "", ""),
    "exponential": ("one-sided", "", "scale"), "standard_exponential": ("one-sided", "", ""),
    "geometric": ("one-sided", "", "p"),
}  # fmt: skip
_ARGUMENTS = {
    "laplace": ("loc", "scale", "size"), "normal": ("loc", "scale", "size"), "standard_normal": ("size",),
    "exponential": ("scale", "size"), "standard_exponential": ("size",), "geometric": ("p", "size"),
}  # fmt: skip
_STATE = {"seed", "get_state", "set_state", "spawn", "bit_generator"}
_PYTHON_LAWS = {"gauss": "gaussian", "normalvariate": "gaussian", "expovariate": "one-sided"}
_PYTHON_COINS = ("random", "getrandbits")
_HERE = str(Path(__file__))
_NUMPY = str(Path(np.__file__).parent)


@dataclass(frozen=True)
class NoisedValue:
    """What a call of a :class:`NoiseSource` noises, and how.

    Attributes
    ----------
    law : str
        ``"laplace"``, ``"geometric"``, ``"gaussian"``, or ``"choice"``, one of several.
    value : array-like or None
        The exact value; of a choice the probabilities of the candidates.  None: the call returns noise alone, and what
        it is added to is followed.
    scale : float
        Of the Laplace law; one over the rate of a two-sided geometric law, whose weights are ``exp(-rate |k|)``; the
        standard deviation of a Gaussian one.  Not used for a choice.
    sensitivity : float or None
        What the call declares, in the norm of the law (L2 for a Gaussian one, else L1).  None: nothing.
    """

    law: str
    value: Any
    scale: float = 1.0
    sensitivity: float | None = None

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise ValueError(f"law must be one of {LAWS}, not {shown(self.law)}")


@dataclass(frozen=True)
class NoiseSource:
    """A function of another library that adds noise or chooses, and how its arguments are read.

    Attributes
    ----------
    owner : module or class
        What has it, such as ``diffprivlib.mechanisms.Laplace``.
    name : str
        ``"randomise"``.
    read : callable
        From the arguments of a call, a mapping by name (with ``"self"`` for a method), to a :class:`NoisedValue`.
    """

    owner: Any
    name: str
    read: Callable[[Mapping[str, Any]], NoisedValue]


@dataclass(eq=False)
class _Use:
    """Noise that was added: which draws, by what factor, to what, and what came out."""

    index: np.ndarray
    factor: np.ndarray
    value: np.ndarray
    answer: np.ndarray


@dataclass(eq=False)
class NoiseCall:
    """One call of a source of noise.

    Attributes
    ----------
    name : str
        Of the function.
    where : str
        File and line from which it was called.
    law : str
        One of ``LAWS``; ``"coin"`` for a draw that noises nothing, such as a permutation.
    scale : float or ndarray
    value : ndarray or None
        What was given with the call.
    sensitivity : float or None
        What the call declares.
    shape : tuple of int
        Of what is drawn.
    position : int
        In the order of calls.
    """

    name: str
    where: str
    law: str
    scale: Any = 1.0
    value: Any = None
    sensitivity: float | None = None
    shape: tuple[int, ...] = ()
    position: int = -1
    arguments: str = ""
    uses: list[_Use] = field(default_factory=list)
    answer: Any = None
    traced: bool = False
    escaped: bool = False

    def __str__(self) -> str:
        return f"{self.name} at {self.where}"

    @property
    def unseen(self) -> bool:
        """Whether it is not known what its noise was added to."""
        return self.traced and (self.escaped or not (self.uses or np.any(self.value)))


@dataclass(frozen=True)
class CallFinding:
    """One way in which a run keeps no account of itself.

    Attributes
    ----------
    kind : str
        One of ``KINDS``.
    where : str
        File and line.
    text : str
        A sentence.
    """

    kind: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.text}"


@dataclass(frozen=True)
class CallAudit:
    """The outcome of an audit of foreign code by record and replay.

    Attributes
    ----------
    claim, delta : float
        What the code promises.
    epsilon : float
        What the calls lose together on this pair: the sum of the losses of Laplace and geometric noise and of choices;
        with Gaussian noise, the exact epsilon of all of it at ``delta`` is added, infinite where ``delta`` is 0.
    rho : float
        The sum of the rhos of Gaussian calls.
    calls : list of (NoiseCall, float)
        The calls of the run with the largest epsilon, and the loss of each; a rho for a Gaussian one.
    findings : list of CallFinding
        Each kind at each place once.
    n_runs : int
        Runs that were replayed.
    """

    claim: float
    delta: float
    epsilon: float
    rho: float
    calls: list[tuple[NoiseCall, float]]
    findings: list[CallFinding]
    n_runs: int

    @property
    def violated(self) -> bool:
        """Whether something was found; what could not be judged does not count."""
        return any(finding.kind not in UNJUDGED for finding in self.findings)

    @property
    def complete(self) -> bool:
        """Whether all that was drawn could be judged."""
        return not any(finding.kind in UNJUDGED for finding in self.findings)

    def __str__(self) -> str:
        most = f"{self.epsilon:.6g}{f' at delta = {self.delta:g}' if self.delta else ''}"
        lines = [f"{len(self.calls)} calls, epsilon = {most}, claim {self.claim:g}, in {self.n_runs} runs"]
        lines += [f"{call}: {call.law}, loss {loss:.6g}" for call, loss in self.calls if loss]
        return "\n".join([*lines, *(map(str, self.findings) if self.findings else ["no findings"])])


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
            self._leave(call.where, f"{call.name} draws {_size(call)} here, and {_size(then)} on the other side")
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
        said = ", ".join(_argument(each) for each in args)
        self._begin(NoiseCall(name, _place(), "coin", arguments=said))
        return draw()

    def _traced(
        self, name: str, law: str, value: Any, scale: np.ndarray, noise: Any, sensitivity: float | None = None
    ) -> Any:
        """Noise as a number or an array that notes what it is added to."""
        given = np.broadcast_to(np.asarray(value, float), np.shape(noise)).copy()
        call = NoiseCall(name, _place(), law, scale, given, sensitivity, np.shape(noise), traced=True)
        then = self._begin(call)
        call.answer = given + noise if then is None else then.answer
        return _trace(self, call, call.answer, np.arange(np.size(noise)).reshape(np.shape(noise)), np.float64(1.0))

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
        call.uses.append(_Use(index.copy(), factor.copy(), value.copy(), np.array(answer)))
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
        return _trace(self, one, np.asarray(first, float) - np.asarray(second, float), first.index, first.factor)

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
            call = NoiseCall(name, _place(source.name), draw.law, spread, value, draw.sensitivity, value.shape)
            then = self._begin(call)
            call.answer = original(*args, **kwargs) if then is None else then.answer
        finally:
            self._inside = False
        return copy.deepcopy(call.answer)


_GENERATOR, _RANDOM_STATE, _PLAIN_RANDOM = np.random.Generator, np.random.RandomState, random.Random


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
        return _trace(self.recording, self.call, np.asarray(self)[key], np.asarray(self.index[key]), factor)

    def __array_finalize__(self, parent: Any) -> None:
        for name in ("recording", "call", "index", "factor"):
            setattr(self, name, getattr(parent, name, None))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _operate(ufunc, inputs, method, **kwargs)


def _trace(recording: Recording, call: NoiseCall, noise: Any, index: np.ndarray, factor: Any) -> Any:
    made: Any = _TracedNumber(noise) if np.ndim(noise) == 0 else np.array(noise, float).view(_TracedArray)
    made.recording, made.call, made.index, made.factor = recording, call, index, np.asarray(factor, float)
    return made


def _is_noise(value: Any) -> bool:
    return isinstance(value, _TracedNumber) or (isinstance(value, _TracedArray) and value.call is not None)


def _plain(value: Any) -> Any:
    return (
        float(value)
        if isinstance(value, _TracedNumber)
        else np.asarray(value)
        if isinstance(value, _TracedArray)
        else value
    )


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
        result = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
    if out is not None:
        np.asarray(out[0])[...] = result
        return out[0]
    return result


def _followed(ufunc: Any, inputs: tuple[Any, ...], noises: list[Any]) -> Any:
    noise = noises[0]
    if ufunc is np.negative:
        return _trace(noise.recording, noise.call, -np.asarray(noise, float), noise.index, -noise.factor)
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
        return _trace(noise.recording, noise.call, product[()], index, factor)
    return None


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
            wrapper = _wrapper(recording, source, getattr(original, "__func__", original))
            if inspect.ismodule(owner):
                replaced[id(original)] = original, wrapper
            else:
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
        if str(names.get("__name__")).startswith((__name__, "numpy.random.", "numpy.testing")):
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


def _place(name: str = "") -> str:
    """File and line of the code that called a source of noise, or a method of its name that calls it in its turn."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (_is_ours(frame.f_code.co_filename) or frame.f_code.co_name == name):
        frame = frame.f_back
    return _named(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(path: str) -> bool:
    return (
        path in (_HERE, random.__file__)
        or path.startswith(_NUMPY)
        or path.startswith("<frozen")
        or path.endswith("contextlib.py")
    )


def _named(path: str, line: int) -> str:
    """A place by names that are the same on every machine."""
    inside = path.rpartition("site-packages/")[2] if "site-packages/" in path else "/".join(Path(path).parts[-2:])
    return f"{inside}:{line}"


def _size(call: NoiseCall) -> str:
    return "one number" if call.shape == () else f"{call.shape} numbers"


def _argument(value: Any) -> str:
    """An argument of a coin: a number as it is, of an array the shape, for that may hold records."""
    if isinstance(value, (int, float, str, bool, np.number, type(None))):
        return str(value)
    return f"{type(value).__name__} of shape {np.shape(value)}" if isinstance(value, (np.ndarray, list, tuple)) else (
        type(value).__name__
    )  # fmt: skip


def audit_calls(
    run: Callable[[Any], Any],
    one: Any,
    other: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    sources: Sequence[NoiseSource] = (),
    released: Callable[[Any], Any] | None = None,
    random_state: int = 0,
    n_runs: int = 1,
) -> CallAudit:
    """Record and replay: run foreign code on a table, replay its answers on a neighbour, and compare the calls.

    Parameters
    ----------
    run : callable
        From a table to a result: it fits another library's learner, or asks its mechanisms.
    one, other : objects
        Two tables, neighbours under the relation of the claim.
    epsilon, delta : float
        The claim.
    sources : sequence of NoiseSource
        See :func:`record_calls`.
    released : callable or None
        From a result to what is released of it, in numbers, text, lists, mappings and arrays; None: the result.
    random_state : int
        Seed; the same on both tables.
    n_runs : int
        How many runs, each with draws of its own, for other answers lead down other paths.

    Returns
    -------
    CallAudit
        Each call's loss, their sum against the claim, and all findings with file and line.

    Notes
    -----
    A finding is an error of a program; it need not be a violation of privacy, for what a call answers may not be
    released.  No finding is no proof: one pair and a few paths were looked at.  The recorder does not see

    * draws that are made outside NumPy and ``random`` unless they are named, or by compiled code;
    * generators that were made before the run, unless made by :meth:`Recording.generator`;
    * what noise was added to once it was converted, rounded, or put into another array: a finding ``"unseen"`` says so;
    * other threads' and processes' order of calls, or what they draw;
    * whether the draws follow the law they are named by, and floating-point effects;
    * parallel composition: the losses of all calls on one pair are added up, which is right, since in a part that the
      differing record does not reach no value changes.

    Examples
    --------
    >>> import numpy as np
    >>> from dpforest.audit import audit_calls
    >>> def total(rows):  # of numbers up to 10, with noise for numbers up to 1
    ...     return sum(rows) + np.random.default_rng().laplace(0, 1.0)
    >>> audit = audit_calls(total, [3, 10], [3], epsilon=1.0)
    >>> audit.epsilon, audit.violated
    (10.0, True)
    """
    check_epsilon(epsilon), check_delta(delta)
    if n_runs < 1:
        raise ValueError(f"n_runs must be at least 1, not {shown(n_runs)}")
    findings: dict[tuple[str, str], CallFinding] = {}
    worst: tuple[float, float, list[tuple[NoiseCall, float]]] = (-1.0, 0.0, [])
    for seed in range(random_state, random_state + n_runs):
        outcomes: list[tuple[Any, str, str]] = []
        recordings: list[Recording] = []
        for table in (one, other):
            with record_calls(sources, random_state=seed, frozen=recordings[0] if recordings else None) as recording:
                recordings.append(recording)
                outcomes.append(_outcome(run, table, released))
        if outcomes[0][1] and outcomes[0][1:] == outcomes[1][1:]:
            raise RuntimeError(f"both runs end with {outcomes[0][1]} at {outcomes[0][2]}: there is nothing to compare")
        found, losses = _compared(*recordings)
        quiet = any(each.kind in UNJUDGED | {"control-flow"} for each in found)
        found += _of_outcomes(outcomes[0], outcomes[1], quiet, run)
        rho = math.fsum(loss for call, loss in losses if call.law == "gaussian")
        total = math.fsum(loss for call, loss in losses if call.law != "gaussian") + _gaussian_epsilon(rho, delta)
        if total > epsilon * (1 + _SLACK):
            largest = max(losses, key=lambda each: each[1])[0]
            found.append(CallFinding("loss", largest.where, f"the calls lose {total:.6g}, and {epsilon:g} is claimed"))
        if total > worst[0]:
            worst = total, rho, losses
        for each in found:
            findings.setdefault((each.kind, each.where), each)
    return CallAudit(epsilon, delta, worst[0], worst[1], worst[2], [*findings.values()], n_runs)


def _outcome(run: Callable[[Any], Any], table: Any, released: Callable[[Any], Any] | None) -> tuple[Any, str, str]:
    """What a run returns, or the error with which it ends and the place of it."""
    try:
        result = run(table)
        return copy.deepcopy(released(result) if released else result), "", ""
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return None, type(error).__name__, _named(last.filename, last.lineno or 0)


def _of_outcomes(one: tuple[Any, str, str], other: tuple[Any, str, str], quiet: bool, run: Any) -> list[CallFinding]:
    if one[1] != other[1]:
        failed = one if one[1] else other
        against = other[1] or "none" if one[1] else "none"
        return [CallFinding("error", failed[2], f"{failed[1]} on one side, {against} on the other")]
    if quiet:
        return []
    code = getattr(run, "__code__", None)
    where = _named(code.co_filename, code.co_firstlineno) if code else "the run"
    path = _difference(one[0], other[0], "the result")
    return [CallFinding("output", where, f"{path}, although all answers were the same")] if path else []


def _difference(one: Any, other: Any, path: str) -> str:
    """Where two results differ, '' where they do not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if [*one] != [*other]:
            return f"{path} has other members"
        return next(filter(None, (_difference(one[key], other[key], f"{path}[{key!r}]") for key in one)), "")
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return f"{path} has another length: {len(one)} and {len(other)}"
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (_difference(a, b, f"{path}[{at}]") for at, (a, b) in pairs)), "")
    first, second = np.asarray(_plain(one)), np.asarray(_plain(other))
    if first.shape != second.shape:
        return f"{path} has another shape: {first.shape} and {second.shape}"
    numbers = first.dtype.kind in "fc" and second.dtype.kind in "fc"
    if np.array_equal(first, second, equal_nan=numbers):
        return ""
    said = f": {first[()]} and {second[()]}" if first.ndim == 0 and first.dtype.kind in "biuf" else ""
    return f"{path} differs{said}"


def _compared(one: Recording, other: Recording) -> tuple[list[CallFinding], list[tuple[NoiseCall, float]]]:
    """Findings of two recordings, and each call's loss."""
    found, losses = [], []
    if other.diverged:
        found.append(other.diverged)
    elif len(other.calls) < len(one.calls):
        left = one.calls[len(other.calls)]
        found.append(CallFinding("control-flow", left.where, f"{left.name} is called here, and not on the other side"))
    for first, second in zip(one.calls, other.calls, strict=False):
        if (first.name, first.where) != (second.name, second.where):
            break
        if first.law != second.law or not _used_alike(first, second):
            if not other.diverged:
                text = f"noise of {first.name} is added here otherwise than on the other side"
                found.append(CallFinding("control-flow", first.where, text))
            break
        if first.law == "coin":
            if first.arguments != second.arguments:
                text = f"{first.name} took ({first.arguments}) on one side and ({second.arguments}) on the other"
                found.append(CallFinding("coin", first.where, text))
            continue
        if first.shape != second.shape:
            break
        if first.unseen or second.unseen:
            found.append(
                CallFinding("unseen", first.where, f"what the noise of {first.name} was added to is not known")
            )
            continue
        loss, more = _loss(first, second)
        found += more
        losses.append((second, loss))
    return found, losses


def _used_alike(one: NoiseCall, other: NoiseCall) -> bool:
    """Whether the same draws were added, in the same order."""
    pairs = zip(one.uses, other.uses, strict=False)
    return len(one.uses) == len(other.uses) and all(np.array_equal(a.index, b.index) for a, b in pairs)


def _loss(one: NoiseCall, other: NoiseCall) -> tuple[float, list[CallFinding]]:
    """What one call loses, a rho for a Gaussian one, and what is wrong with it."""
    found: list[CallFinding] = []
    if one.law == "choice":
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.abs(np.log(one.value) - np.log(other.value))
        return float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max(initial=0.0)), found
    changes, reused = _changes(one, other)
    if reused:
        found.append(CallFinding("reuse", one.where, f"noise of {one.name} was added to several values"))
        return math.inf, found
    factors = [(first.factor, second.factor) for first, second in zip(one.uses, other.uses, strict=True)]
    if not all(np.array_equal(first, second) for first, second in factors):
        text = f"noise of {one.name} is multiplied by other numbers than on the other side"
        return math.inf, [CallFinding("scale", one.where, text)]
    if not np.array_equal(one.scale, other.scale):
        text = f"the scale of {one.name} is {_short(one.scale)} on one side and {_short(other.scale)} on the other"
        found.append(CallFinding("scale", one.where, text))
        return math.inf, found
    size = float(np.sqrt(np.sum(changes**2)) if one.law == "gaussian" else np.sum(np.abs(changes)))
    if one.sensitivity is not None and size > one.sensitivity * (1 + _SLACK):
        text = f"the value of {one.name} changed by {size:.6g}, and {one.sensitivity:.6g} is declared"
        found.append(CallFinding("sensitivity", one.where, text))
    if size == 0:
        return 0.0, found
    if one.law.endswith("one-sided"):
        return math.inf, found
    with np.errstate(divide="ignore"):
        ratios = np.where(changes == 0, 0.0, np.abs(changes) / np.broadcast_to(one.scale, changes.shape))
    return float(np.sum(ratios**2) / 2 if one.law == "gaussian" else np.sum(ratios)), found


def _changes(one: NoiseCall, other: NoiseCall) -> tuple[np.ndarray, bool]:
    """By how much the value under each draw changes; whether one draw is added to values that change differently."""
    changes = np.asarray(one.value, float) - np.asarray(other.value, float)
    if not one.uses:
        return changes, False
    flat = changes.reshape(-1).copy()
    seen: dict[int, float] = {}
    for first, second in zip(one.uses, other.uses, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            differs = np.where(first.value == second.value, 0.0, (first.value - second.value) / first.factor)
        for at, change in zip(first.index.reshape(-1).tolist(), differs.reshape(-1).tolist(), strict=True):
            if seen.setdefault(at, change) != change:
                return changes, True
    for at, change in seen.items():
        flat[at] += change
    return flat.reshape(changes.shape), False


def _short(scale: Any) -> str:
    return f"{float(scale):.6g}" if np.ndim(scale) == 0 else "an array"


def _gaussian_epsilon(rho: float, delta: float) -> float:
    """The exact epsilon at delta of Gaussian noise whose rhos add up to ``rho``."""
    if rho == 0 or (math.isinf(rho) or delta == 0):
        return math.inf if rho else 0.0
    mu = math.sqrt(2 * rho)

    def excess(epsilon: float) -> float:
        return math.exp(log_ndtr(mu / 2 - epsilon / mu)) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)) - delta

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high))
