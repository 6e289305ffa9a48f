"""Parameters of learners, said once: the name, the rule, the default and what it means.

A learner declares a parameter as an annotated attribute of its class::

    max_depth: Annotated[int, Whole(1, 1000), "Splits on the longest path."] = 5

From this come the signature of ``__init__`` (keywords only), ``get_params``, the check in ``fit``, what ``"auto"``
means, what the published variant leaves to choose, and the table in the docstring.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Protocol, get_args, get_origin, get_type_hints

import numpy as np

from dpforest.messages import shown
from dpforest.privacy import check_delta, check_epsilon

__all__ = [
    "CAP",
    "MARGIN",
    "MOST",
    "AsPublished",
    "Auto",
    "Delta",
    "Either",
    "Epsilon",
    "Integer",
    "Number",
    "OneOf",
    "Parameter",
    "Share",
    "check_choice",
    "check_count",
    "check_letter",
    "check_number",
    "check_share",
    "check_values",
    "declare",
    "parameters_of",
]

MOST = (1 << 31) - 1  # of anything that is counted
_WIDTH = 116  # of a line of a docstring's table


class Constraint(Protocol):
    """What a value must be: ``words`` says it, ``check`` raises ValueError or TypeError that names the parameter."""

    @property
    def words(self) -> str:
        """What is allowed, as the table of the docstring has it."""
        ...

    def check(self, value: Any, name: str) -> object:
        """Raise unless the value is allowed."""
        ...


@dataclass(frozen=True)
class Integer:
    """A whole number from ``least`` to ``most``."""

    least: int = 1
    most: int = MOST

    @property
    def words(self) -> str:
        return f"int, at least {self.least}" if self.most == MOST else f"int, from {self.least} to {self.most}"

    def check(self, value: Any, name: str) -> int:
        return check_count(value, name, self.least, self.most)


@dataclass(frozen=True)
class Number:
    """A number from ``least`` to ``most``; ``above`` if ``least`` itself is too little."""

    least: float
    most: float
    wanted: str = ""
    above: bool = False

    @property
    def words(self) -> str:
        return f"float, {self.wanted or self._range}"

    @property
    def _range(self) -> str:
        return (
            f"{'above' if self.above else 'from'} {self.least:g} {'and at most' if self.above else 'to'} {self.most:g}"
        )

    def check(self, value: Any, name: str) -> float:
        number = check_number(value, name, self.least, self.most, self.wanted or f"a number {self._range}")
        if self.above and number == self.least:
            raise ValueError(f"{name} must be {self.wanted or f'a number {self._range}'}, not {shown(value)}")
        return number


@dataclass(frozen=True)
class Share:
    """A number strictly between 0 and 1."""

    words = "float, strictly between 0 and 1"

    def check(self, value: Any, name: str) -> float:
        return check_share(value, name)


class OneOf:
    """One of several names, given one by one or as what holds them."""

    def __init__(self, *names: str | bool | Iterable[str]) -> None:
        one_by_one = len(names) != 1 or isinstance(names[0], (str, bool))
        self.names = tuple(names if one_by_one else names[0])  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        return f"{{{', '.join(_quoted(name) for name in self.names)}}}"

    def check(self, value: Any, name: str) -> None:
        check_choice(value, name, self.names)


class Either:
    """One of several names or None, or what another rule allows."""

    def __init__(self, *names: str | None, rule: Constraint) -> None:
        self.names, self.rule = names, rule

    @property
    def words(self) -> str:
        return f"{', '.join(_quoted(name) for name in self.names)} or {self.rule.words}"

    def check(self, value: Any, name: str) -> None:
        if value is None or isinstance(value, str):
            if value not in self.names:
                raise ValueError(f"{name} must be {self.words}, not {shown(value)}")
            return
        try:
            self.rule.check(value, name)
        except ValueError:
            raise ValueError(f"{name} must be {self.words}, not {shown(value)}") from None


@dataclass(frozen=True)
class Epsilon:
    """A privacy budget: a positive number, or ``"non-private"``."""

    words = 'float, positive, or "non-private"'

    def check(self, value: Any, name: str) -> float:
        return check_epsilon(value, name)


@dataclass(frozen=True)
class Delta:
    """By how much an event may be more probable in addition to the factor ``exp(epsilon)``: 0, or at most 0.01."""

    words = "float, 0 or at most 0.01"

    def check(self, value: Any, name: str) -> float:
        return check_delta(value, name)


#: What may be given as the stop offset, and as a cap on the number of records.
MARGIN = Number(-1e6, 1e6, "a finite number of at most a million")
CAP = Number(2, math.inf, "a public cap of at least 2 records")


@dataclass(frozen=True)
class Auto:
    """What ``"auto"`` means in each variant; the published one may do without the parameter."""

    proved: Any
    published: Any = None


class AsPublished:
    """The published variant is the paper to the letter: it takes the default, or one of ``readings``, and no more."""

    def __init__(self, *readings: Any) -> None:
        self.readings = readings


@dataclass(frozen=True)
class Parameter:
    """One parameter of a learner.

    Attributes
    ----------
    name : str
    kind : type
        As annotated.
    default : object
    text : str
        What it means.
    rule : Rule or None
    auto : Auto or None
    letter : AsPublished or None
    """

    name: str
    kind: Any
    default: Any
    text: str
    rule: Constraint | None
    auto: Auto | None
    letter: AsPublished | None

    @property
    def table(self) -> str:
        """The entry of the docstring's table."""
        words = self.rule.words if self.rule else _type_in_words(self.kind)
        default = "" if self.name == "schema" else f", default={_quoted(self.default)}"
        text = self.text
        if self.auto is not None:
            letter, proved = self.auto.published, f"``{_quoted(self.auto.proved)}``"
            if letter is None:
                text += f"  Auto is {proved} if proved."
            elif letter == self.auto.proved:
                text += f"  Auto is {proved}."
            else:
                text += f"  Auto is ``{_quoted(letter)}`` as published, {proved} if proved."
        lines = textwrap.wrap(text, _WIDTH - 4) if text else []
        return "\n".join([f"{self.name} : {words}{default}", *(f"    {line}" for line in lines)])


def parameters_of(cls: type) -> dict[str, Parameter]:
    """The parameters that a class and its bases declare: those of the class itself come first."""
    hints = get_type_hints(cls, include_extras=True)
    order: dict[str, None] = dict.fromkeys(("epsilon", "schema"))
    for base in cls.__mro__:
        order.update(dict.fromkeys(vars(base).get("__annotations__", ())))
    found = {}
    for name in order:
        kind, *notes = get_args(hints[name]) if name in hints and get_origin(hints[name]) is Annotated else [None]
        if text := [note for note in notes if isinstance(note, str)]:
            rules = [note for note in notes if hasattr(note, "check")]
            if not rules and get_origin(kind) is Literal:
                rules = [OneOf(*get_args(kind))]
            found[name] = Parameter(
                name,
                kind,
                getattr(cls, name),
                inspect.cleandoc(text[0]),
                next(iter(rules), None),
                next((note for note in notes if isinstance(note, Auto)), None),
                next((note for note in notes if isinstance(note, AsPublished)), None),
            )
    return found


def declare(cls: type, attributes: str) -> None:
    """Give a class the ``__init__`` of its parameters, and their table and ``attributes`` in its docstring.

    They come before *Guarantee*; a section *Attributes* that is there stays.  A class that writes its own ``__init__``,
    or inherits one that was written, keeps it.
    """
    parameters = parameters_of(cls)
    cls.PARAMETERS = parameters  # type: ignore[attr-defined]
    given = inspect.getattr_static(cls, "__init__")
    if hasattr(given, "__code__") and not hasattr(given, "__signature__"):
        return

    def __init__(self: Any, **given: Any) -> None:
        signature.bind(self, **given)  # raises TypeError, as for any other function
        for name, parameter in parameters.items():
            setattr(self, name, given.get(name, parameter.default))

    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.kind)
        for name, each in parameters.items()
    ]
    signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *keywords])
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = __init__  # type: ignore[misc]
    doc = inspect.cleandoc(cls.__doc__ or "")  # Python takes the indentation away itself from 3.13 on
    own = "\nAttributes\n" in doc
    section = "Attributes\n" if own else "Guarantee\n"
    if f"\n{section}" in doc and "\nParameters\n" not in doc:
        entries = "\n".join(parameter.table for parameter in parameters.values())
        parts = [f"Parameters\n----------\n{entries}", *([] if own else [f"Attributes\n----------\n{attributes}"])]
        cls.__doc__ = doc.replace(section, "\n\n".join([*parts, section]), 1)


def check_values(
    parameters: dict[str, Parameter], value_of: Callable[[str], Any], published: bool, source: str = "paper"
) -> None:
    """Raise for the first value that its rule refuses, then for all that the letter of the paper does."""
    for name, parameter in parameters.items():
        if parameter.rule is not None:
            parameter.rule.check(value_of(name), name)
    if published:
        check_letter(dict(_beyond_the_letter(parameters, value_of)), source)


def _beyond_the_letter(parameters: dict[str, Parameter], value_of: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    for name, parameter in parameters.items():
        if parameter.letter is not None:
            value = value_of(name)
            if not any(value is fine or value == fine for fine in (parameter.default, *parameter.letter.readings)):
                yield name, value


def check_count(value: Any, name: str, least: int = 1, most: int = MOST) -> int:
    """A whole number from ``least`` to ``most``, else an error that names the parameter."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        upper = "" if most == MOST and not isinstance(value, Integral) else f" and at most {most}"
        raise ValueError(f"{name} must be a whole number, at least {least}{upper}, not {shown(value)}")
    return int(value)


def check_number(value: Any, name: str, least: float, most: float, wanted: str = "") -> float:
    """A number from ``least`` to ``most``, else an error that names the parameter and says what is ``wanted``."""
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # beyond the largest double
        number = math.nan
    if not least <= number <= most:
        raise ValueError(f"{name} must be {wanted or f'a number from {least:g} to {most:g}'}, not {shown(value)}")
    return number


def check_share(value: Any, name: str) -> float:
    """A number strictly between 0 and 1, else an error that names the parameter."""
    if not 0 < check_number(value, name, 0, 1) < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, not {shown(value)}")
    return float(value)


def check_choice(value: Any, name: str, choices: Any) -> None:
    """``value`` must be one of ``choices``, else an error that lists them."""
    if not isinstance(value, (str, bool, np.bool_)) or value not in tuple(choices):
        raise ValueError(f"{name} must be one of {sorted(map(str, choices))}, not {shown(value)}")


def check_letter(asked: dict[str, Any], source: str = "paper") -> None:
    """As published: ``asked``, the parameters that differ from what the source says, must be empty."""
    if asked:
        words = ", ".join(f"{name}={shown(value)}" for name, value in asked.items())
        raise ValueError(f"variant='published' is the {source} to the letter, so not with {words}: use 'proved'")


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _type_in_words(kind: Any) -> str:
    """A type as the table names it."""
    return " or ".join(getattr(part, "__name__", str(part)) for part in get_args(kind) or (kind,)).replace(
        "NoneType", "None"
    )
