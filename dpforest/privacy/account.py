"""An account of privacy across fits: what has been spent on one table, and what is left."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Self

from dpforest import storage
from dpforest.messages import shown
from dpforest.privacy import display
from dpforest.privacy.concentrated import check_delta
from dpforest.privacy.searches import choosers, elsewhere, first_time, fitted_before, noted, readers, searcher
from dpforest.privacy.vocabulary import (
    ADD_REMOVE,
    RELATIONS,
    Guarantee,
    check_epsilon,
    check_relation,
    claim,
)

__all__ = [
    "PERSON",
    "ROW",
    "Budget",
    "BudgetError",
    "BudgetWarning",
    "active",
    "charged",
    "check_process",
    "inherit",
    "marked",
    "note_readers",
    "note_release",
    "note_search",
]

UNITS = ROW, PERSON = "row", "person"
_FORMAT = 1
_MEMBERS = {"format", "epsilon", "delta", "relation", "unit", "charges"}
_LONGEST = 200  # characters of what a charge was for
_MOST = 1_000_000  # charges of one account
_LOCK = threading.RLock()  # of all accounts, for one fit may charge several, all or none


class BudgetError(ValueError):
    """An account refuses a charge: what is left does not suffice, or the charge cannot be added to it."""


class BudgetWarning(UserWarning):
    """What reads the records and no account is charged for: a second fit of one table, a search, a step of a pipeline.

    A second model or test that may be released is warned of outside of any account.  A search, a calibrator or a
    scaler of scikit-learn, which chooses or fits by the records itself, is warned of inside of one, too.
    """


@dataclass(frozen=True)
class _AccountCharge:
    """One charge, as it was asked for."""

    what: str
    epsilon: float
    delta: float
    relation: str

    def cost(self, relation: str) -> tuple[Fraction, Fraction]:
        """Epsilon and delta under the account's relation; numbers are the decimals that they are written as."""
        epsilon, delta = _exactly(self.epsilon), _exactly(self.delta)
        if self.relation == relation:
            return epsilon, delta
        return 2 * epsilon, _exactly(Guarantee(self.epsilon, ADD_REMOVE, delta=self.delta).delta_of_rows(2))


@claim("thm-account")
class Budget:
    """An account of privacy loss: every fit inside ``with budget:`` is charged, before it reads a record.

    What does not fit is refused, so what was released never adds up to more than ``epsilon`` and ``delta``
    (:prf:ref:`thm-account`).  A fit that fails after it began to read stays charged, and its error says so: whether a
    fit is refused is a function of the records, and a refusal that cost nothing could be asked for without end.
    :meth:`dpforest.schema.Schema.check` looks before, costs nothing, and is for the curator's eyes alone.

    Parameters
    ----------
    epsilon : float
        What all charges together may spend.
    delta : float
        0, or at most 0.01: the sum of all deltas.
    relation : {"add-remove", "replace-one"}
        Under replace-one a fit under add-remove is charged as a removal and an addition, twice its epsilon; under
        add-remove a fit under replace-one is refused, for it promises nothing there.
    unit : {"row", "person"}
        Whom the account is for: fits with ``person=`` are charged to an account of persons, others to one of rows.

    Guarantee
    ---------
    All that was charged together is ``(epsilon, delta)``-differentially private under ``relation`` for the unit, also
    where later fits are chosen by what earlier ones released: :prf:ref:`thm-account`.

    Notes
    -----
    A ``with`` holds for all threads of the process, and for accounts that are open around it.  It cannot see other
    processes.  So a learner, fitted or not, a loaded model or a table of an engine that is pickled inside a ``with``
    carries a mark, by which ``fit``, ``evaluate`` and ``choose`` refuse it in another process, unless an account is
    open there; it predicts everywhere.  What is made anew in another process is not seen, nor is what is computed from
    the data without this library: charge it by hand.  The account knows no tables: one account is for one table, and
    all that is ever computed from it.

    Examples
    --------
    >>> from dpforest import Budget
    >>> budget = Budget(epsilon=1.0)
    >>> budget.charge(0.25, "the mean age, by another tool")
    >>> print(budget)
    Budget (add-remove, for one row): epsilon = 1
      0.25  the mean age, by another tool
    spent 0.25, left 0.75
    """

    def __init__(self, epsilon: float, *, delta: float = 0.0, relation: str = ADD_REMOVE, unit: str = ROW):
        self._epsilon, self._delta = check_epsilon(epsilon), check_delta(delta)
        if math.isinf(self._epsilon):
            raise ValueError("an account needs a finite epsilon: what is not private needs no account")
        self._relation = check_relation(relation)
        if unit not in UNITS:
            raise ValueError(f"unit must be one of {UNITS}, not {shown(unit)}")
        self._unit = unit
        self._charges: list[_AccountCharge] = []
        self._summed = 0, Fraction(0), Fraction(0)
        self._process = _process()

    @property
    def epsilon(self) -> float:
        """What all charges together may spend."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """What the deltas of all charges may add up to."""
        return self._delta

    @property
    def relation(self) -> str:
        """Which pairs of data sets are neighbours."""
        return self._relation

    @property
    def unit(self) -> str:
        """Whom the account is for, ``"row"`` or ``"person"``."""
        return self._unit

    @property
    def _spent(self) -> tuple[Fraction, Fraction]:
        """What the charges add up to.  They alone are kept, so that no interrupt leaves a sum that says less."""
        count, epsilon, delta = self._summed
        for charge in self._charges[count:]:
            cost = charge.cost(self._relation)
            count, epsilon, delta = count + 1, epsilon + cost[0], delta + cost[1]
        self._summed = count, epsilon, delta  # of the first so many charges, which never change
        return epsilon, delta

    @property
    def spent(self) -> float:
        """The epsilon that was spent."""
        return float(self._spent[0])

    @property
    def left(self) -> float:
        """The epsilon that is left, so that a fit of this epsilon is the last one."""
        return _at_most(_exactly(self._epsilon) - self._spent[0])

    @property
    def spent_delta(self) -> float:
        """The delta that was spent."""
        return float(self._spent[1])

    @property
    def left_delta(self) -> float:
        """The delta that is left."""
        return _at_most(_exactly(self._delta) - self._spent[1])

    def charge(self, epsilon: float, what: str = "by hand", *, delta: float = 0.0, relation: str | None = None) -> None:
        """Charge by hand what was computed from the table without this library, before it is computed.

        Parameters
        ----------
        epsilon : float
        what : str
            A line of the ledger: public, for the account may be shown.
        delta : float
        relation : {"add-remove", "replace-one"} or None
            None: that of the account.

        Raises
        ------
        BudgetError
            What is left does not suffice, or nothing is promised under the account's relation; nothing is charged.
        """
        if not isinstance(what, str):
            raise TypeError(f"what must be text, not {shown(what)}")
        asked = self._relation if relation is None else check_relation(relation)
        _charge_all([self], _AccountCharge(_line(what), check_epsilon(epsilon), check_delta(delta), asked), self._unit)

    def __enter__(self) -> Self:
        with _LOCK:
            _OPEN.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        with _LOCK:
            last = max(place for place, account in enumerate(_OPEN) if account is self)
            del _OPEN[last]

    def check_process(self) -> None:
        """Raise BudgetError in a process that came from the account's own, which would not see the charge."""
        if _process() != self._process:
            raise BudgetError("this account belongs to another process, where the charge would not be seen")

    def check(self, charge: _AccountCharge, unit: str) -> None:
        """Raise BudgetError unless this charge can be added."""
        self.check_process()
        if unit != self._unit:
            raise BudgetError(
                f"this account is for one {self._unit}, and {charge.what} for one {unit}: "
                + ("fit with person= and max_rows=" if self._unit == PERSON else "open a Budget(..., unit='person')")
            )
        if charge.relation != self._relation and self._relation == ADD_REMOVE:
            raise BudgetError(
                f"this account is kept under {ADD_REMOVE}, where {charge.what} under {charge.relation} promises "
                f"nothing: fit with relation={shown(ADD_REMOVE)}"
            )
        if math.isinf(charge.epsilon):
            raise BudgetError(f"{charge.what} is not private, and no account covers it")
        twice = ", a removal and an addition" if charge.relation != self._relation else ""
        totals, cost = (self._epsilon, self._delta), charge.cost(self._relation)
        for name, wanted, total, spent in zip(("epsilon", "delta"), cost, totals, self._spent, strict=True):
            left = _exactly(total) - spent
            if wanted > left:
                none = "" if total else f"; this account was opened without one: Budget(..., {name}=...)"
                raise BudgetError(
                    f"{charge.what} costs {name} = {display.up(float(wanted))}{twice}, and {_at_most(left):.6g} of "
                    f"{total:.6g} is left: nothing was read and nothing charged{none}"
                )
        if len(self._charges) >= _MOST:
            raise BudgetError(f"an account has at most {_MOST} charges")

    def add(self, charge: _AccountCharge) -> None:
        """Note a charge that was checked."""
        self._charges.append(charge)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The account as JSON, also written to a file if a path is given; :meth:`from_json` reads it back."""
        with _LOCK:
            description = {
                "format": _FORMAT,
                "epsilon": self._epsilon,
                "delta": self._delta,
                "relation": self._relation,
                "unit": self._unit,
                "charges": [vars(charge) for charge in self._charges],
            }
        return storage.dump(description, path)

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Budget:
        """The account that :meth:`to_json` wrote, from its text or its file; every part of it is checked.

        Parameters
        ----------
        source : str or path
            JSON, which begins with a brace, or the path of a file.

        Raises
        ------
        ValueError
            It is no account, or more is spent than there is.
        OSError
            There is no such file.
        """
        description = storage.read(source)
        try:
            return cls._of(description)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise ValueError(f"not an account: {str(error)[:500]}") from None

    @classmethod
    def _of(cls, description: Any) -> Budget:
        if type(description) is not dict or description.keys() != _MEMBERS:
            raise ValueError(f"it must have exactly the members {sorted(_MEMBERS)}")
        if type(description["format"]) is not int or description["format"] != _FORMAT:
            raise ValueError(f"its format must be {_FORMAT}")
        _check_kinds(description)
        names = "delta", "relation", "unit"
        account = cls(description["epsilon"], **{name: description[name] for name in names})
        for each in storage.listed(description["charges"], "charges", dict):
            if each.keys() != {"what", "epsilon", "delta", "relation"}:
                raise ValueError("a charge has what, epsilon, delta and relation")
            _check_kinds(each)
            asked = each["what"], check_epsilon(each["epsilon"]), check_delta(each["delta"])
            if asked[0] != _line(asked[0]):
                raise ValueError("what a charge is for is one short line")
            charge = _AccountCharge(*asked, check_relation(each["relation"]))
            account.check(charge, account.unit)
            account.add(charge)
        return account

    def lines(self) -> Iterable[tuple[float, float, str]]:
        """Epsilon and delta of each charge under the account's relation, and what it was for."""
        for charge in self._charges:
            epsilon, delta = charge.cost(self._relation)
            twice = "" if charge.relation == self._relation else f" ({charge.relation}: a removal and an addition)"
            yield float(epsilon), float(delta), charge.what + twice

    def __repr__(self) -> str:
        return f"<{self._head()}; {self._foot()}>"

    def __str__(self) -> str:
        rows = [(_pair(epsilon, delta), what) for epsilon, delta, what in self.lines()]
        width = max((len(cost) for cost, _ in rows), default=0)
        return "\n".join([self._head(), *(f"  {cost:<{width}}  {what}" for cost, what in rows), self._foot()])

    def _repr_html_(self) -> str:
        charges = list(self.lines())
        bar = display.bar([(what, epsilon) for epsilon, _, what in charges], self._epsilon)
        rows = [(_pair(epsilon, delta), what) for epsilon, delta, what in charges]
        return display.box(self._head(), rows, bar, self._foot())

    def _head(self) -> str:
        delta = f", delta = {display.up(self._delta)}" if self._delta else ""
        return f"Budget ({self._relation}, for one {self._unit}): epsilon = {display.up(self._epsilon)}{delta}"

    def _foot(self) -> str:
        return f"spent {_pair(self.spent, self.spent_delta)}, left {_pair(self.left, self.left_delta)}"

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError("a copy of an account could be spent twice: write it with to_json, and read it once")


_OPEN: list[Budget] = []


def active() -> bool:
    """Whether an account is open."""
    return bool(_OPEN)


@contextmanager
def charged(what: str, epsilon: float, delta: float, relation: str, unit: str) -> Iterator[None]:
    """Charge all open accounts, or none of them and raise BudgetError; an error inside says what stays charged."""
    with _LOCK:
        accounts = list({id(each): each for each in _OPEN}.values())  # an account that is open twice is charged once
        _charge_all(accounts, _AccountCharge(what, epsilon, delta, relation), unit)
    try:
        yield
    except Exception as error:
        if accounts:
            cost = _pair(epsilon, delta)
            _add_words(error, f"{cost} stays charged; Schema.check looks at a table first and costs nothing")
        raise


def _add_words(error: Exception, words: str) -> None:
    """Let an error say more."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]} ({words})",)
    else:
        error.add_note(words)


def _charge_all(accounts: list[Budget], charge: _AccountCharge, unit: str) -> None:
    with _LOCK:
        for account in accounts:
            account.check(charge, unit)
        for account in accounts:
            account.add(charge)


# -- other processes -------------------------------------------------------------------------------------------------

#: Where what left its process keeps the process in which an account was open.
_MARK = "_account_process"
_STARTED = time.time_ns()


def _process() -> tuple[int, int]:
    """What this process is known by: a number alone may be that of another one elsewhere, and of a later one here."""
    return os.getpid(), _STARTED


def marked(state: dict[str, Any]) -> dict[str, Any]:
    """The state in which something leaves this process: with a mark where an account is open."""
    if active():
        return {**state, _MARK: _process()}
    if state.get(_MARK) == _process():  # it came back, and the account is closed
        return {name: value for name, value in state.items() if name != _MARK}
    return state


def inherit(parent: object, child: Any) -> Any:
    """The child, with the mark of the parent that it is a copy of."""
    if hasattr(parent, _MARK):
        setattr(child, _MARK, getattr(parent, _MARK))
    return child


def check_process(*things: object) -> None:
    """Raise BudgetError for what was sent here while an account was open where it came from, and none is here."""
    opened = list(_OPEN)
    for each in opened:
        each.check_process()
    for thing in () if opened else things:
        if getattr(thing, _MARK, _process()) != _process():
            raise BudgetError(
                f"this {type(thing).__name__} was sent to another process from inside a with of a Budget, which could "
                "not see what is spent here: stay in one process (n_jobs=1, or a threading backend), or, where the "
                "account was written by to_json, open it here; a model read from its saved file carries no mark"
            )


# -- without an account ----------------------------------------------------------------------------------------------

#: By the identity of a table that is still there: a weak reference to it, and what was promised of models made from it.
_TABLES: dict[int, tuple[weakref.ref, list[Guarantee]]] = {}


def note_release(table: object, promise: Guarantee, above: int = 0) -> None:
    """Warn, once for a table, of a second model or test that may be released, made from it outside of any account.

    Who is warned is the caller of the function that calls this one, or so many calls ``above``.
    """
    number = id(table)

    def forget(_: object) -> None:
        _TABLES.pop(number, None)

    try:
        reference = weakref.ref(table, forget)
    except TypeError:  # a list, or a path
        return
    with _LOCK:
        _, promises = _TABLES.setdefault(number, (reference, []))
        if len(promises) == 2:  # it was said
            return
        promises.append(promise)
        if len(promises) < 2:
            return
        cost = _together(promises)
    warnings.warn(
        f"two releases were made from one table, by fits or tests, and together they cost {cost}: keep an account, "
        "with dpforest.Budget(...)",
        BudgetWarning,
        stacklevel=3 + above,
    )


def note_search(promise: Guarantee) -> None:
    """Warn, once for a search, ensemble or cross-validation of scikit-learn, what its fits cost outside of any account.

    In a worker process the first fit gives the warning, for the process does not see the others.
    """
    search = searcher()
    if search is None:
        return
    with _LOCK:
        promises = noted(search).setdefault("promises", [])
        promises.append(promise)
        if len(promises) != (1 if elsewhere() else 2):
            return
        cost = _together(promises)
    fits = "two fits" if len(promises) == 2 else "a fit in a process of its own,"
    warnings.warn(
        f"{fits} inside a search, ensemble or cross-validation ({type(search).__name__}) cost {cost} together, and "
        "each further one adds its own: keep an account, with dpforest.Budget(...), or choose by "
        "dpforest.evaluation.choose",
        BudgetWarning,
        stacklevel=3,
    )


def note_readers() -> None:
    """Warn, once for each, of what reads rows or labels itself, in addition to the learner; in an account, too."""
    behind = {
        f"{name} fits to the labels itself, in addition to this learner: no account is charged for that, and no "
        "guarantee covers what it makes of the learner's answers": each
        for name, each in readers().items()
    }
    behind |= {
        f"{name} chooses by scores of rows, without noise: an account is charged for its fits and not for that, and no "
        "guarantee covers the choice; dpforest.evaluation.choose makes one at a price": each
        for name, each in choosers().items()
    }
    for text, each in behind.items():
        with _LOCK:
            known = noted(each)
            if known.get(text):
                continue
            known[text] = True
        warnings.warn(text, BudgetWarning, stacklevel=3)
    if (before := fitted_before()) and first_time("fitted before"):
        warnings.warn(
            f"{' and '.join(before)} learned from the rows before this learner did, and no account is charged for "
            "that: the guarantee is about the table that the pipeline handed over, not about yours. Leave it out, for "
            "the schema takes its place; a function of one row alone, such as FunctionTransformer, is no such step",
            BudgetWarning,
            stacklevel=3,
        )


def _together(promises: list[Guarantee]) -> str:
    """What these cost together, each relation and unit by itself."""
    return " and ".join(
        f"{_pair(sum(p.epsilon for p in same), sum(p.delta for p in same))} under {relation} for {unit}"
        for relation in RELATIONS
        for unit in dict.fromkeys(p.unit for p in promises)
        if (same := [p for p in promises if (p.relation, p.unit) == (relation, unit)])
    )


# -- numbers and texts -----------------------------------------------------------------------------------------------


def _exactly(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _at_most(exact: Fraction) -> float:
    """The largest double, nearly, that is written as a decimal of at most this; 0.1 three times is 0.3."""
    found = float(exact)
    while found > 0 and _exactly(found) > exact:
        found = math.nextafter(found, 0)
    return found


def _pair(epsilon: float, delta: float) -> str:
    return f"({display.up(epsilon)}, {display.up(delta)})" if delta else display.up(epsilon)


def _line(what: str) -> str:
    """A text as one short line of characters that can be printed."""
    return "".join(letter if letter.isprintable() else " " for letter in what)[:_LONGEST]


def _check_kinds(description: dict) -> None:
    for name, kinds in {"epsilon": (int, float), "delta": (int, float), "relation": (str,), "what": (str,)}.items():
        if name in description and type(description[name]) not in kinds:
            raise ValueError(f"{name} is {type(description[name]).__name__}")
