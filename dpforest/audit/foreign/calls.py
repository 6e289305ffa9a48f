"""Calls of sources of noise: what a source noises, a call of one, and the place in the source that it came from."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpforest.messages import shown

__all__ = [
    "KINDS",
    "LAWS",
    "UNJUDGED",
    "CallFinding",
    "NoiseCall",
    "NoiseSource",
    "NoisedValue",
    "Use",
    "argument",
    "named",
    "place",
    "size",
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

_HERE = str(Path(__file__).parent)
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
class Use:
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
    uses: list[Use] = field(default_factory=list)
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


def place(name: str = "") -> str:
    """File and line of the code that called a source of noise, or a method of its name that calls it in its turn."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (_is_ours(frame.f_code.co_filename) or frame.f_code.co_name == name):
        frame = frame.f_back
    return named(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(path: str) -> bool:
    return (
        path == random.__file__
        or path.startswith((_HERE, _NUMPY))
        or path.startswith("<frozen")
        or path.endswith("contextlib.py")
    )


def named(path: str, line: int) -> str:
    """A place by names that are the same on every machine."""
    inside = path.rpartition("site-packages/")[2] if "site-packages/" in path else "/".join(Path(path).parts[-2:])
    return f"{inside}:{line}"


def size(call: NoiseCall) -> str:
    """How many numbers a call draws, in words."""
    return "one number" if call.shape == () else f"{call.shape} numbers"


def argument(value: Any) -> str:
    """An argument of a coin: a number as it is, of an array the shape, for that may hold records."""
    if isinstance(value, (int, float, str, bool, np.number, type(None))):
        return str(value)
    return (
        f"{type(value).__name__} of shape {np.shape(value)}"
        if isinstance(value, (np.ndarray, list, tuple))
        else (type(value).__name__)
    )
