"""Neighbour relations, privacy parameters, guarantees and leaks, and the seal of a claim."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeVar

from dpforest.messages import shown
from dpforest.privacy import display

__all__ = [
    "ADD_REMOVE",
    "ASSUMPTIONS",
    "FILTERED",
    "HISTOGRAM_SENSITIVITY",
    "NON_PRIVATE",
    "NOT_COVERED",
    "RELATIONS",
    "REPLACE_ONE",
    "SECURE",
    "SEEDED",
    "SOURCES",
    "UNIT",
    "UNKNOWN",
    "Guarantee",
    "Leak",
    "OutOfSchemaWarning",
    "UnprovenPrivacyWarning",
    "capped",
    "check_epsilon",
    "check_relation",
    "check_rests_on",
    "claim",
    "finite",
    "unit_of",
]

T = TypeVar("T")

ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"
RELATIONS = (ADD_REMOVE, REPLACE_ONE)
#: L1 sensitivity of a histogram, by relation: a record that is added or removed changes one count by 1, a replaced one
#: changes two.  It is the scale of the noise of a count at epsilon 1, and, times a record's worth, that of two masses
#: of a target.
HISTOGRAM_SENSITIVITY = {ADD_REMOVE: 1, REPLACE_ONE: 2}
NON_PRIVATE = "non-private"
#: The mechanism of a round whose charge was made when the filter was opened.
FILTERED = "discrete Gaussian, within a filter"


class UnprovenPrivacyWarning(UserWarning):
    """A published algorithm runs to the letter although its privacy proof does not hold."""


class OutOfSchemaWarning(UserWarning):
    """Records held values outside the declared schema; they were clipped or sent to ``other``.

    One for each column, with what to do; for more than three columns one together, the worst first.  At ``fit`` the
    message holds exact counts: it is for the curator's eyes and is never stored in a model.  At ``predict`` the rows
    are a query of one's own.
    """


def claim(*ids: str) -> Callable[[T], T]:
    """Seal a function or class with the ids of the claims of the book that it carries out.

    The seal is an attribute, ``__claims__``; ``tests/test_claims.py`` walks the library and checks that every
    id has its statement, its code, its test and its exhibit.
    """

    def seal(thing: Any) -> Any:
        thing.__claims__ = tuple(ids)
        return thing

    return seal


@claim("def-neighbours")
def check_relation(relation: str) -> str:
    """``relation`` itself if it is one of ``RELATIONS``; else an error that lists them."""
    if not isinstance(relation, str) or relation not in RELATIONS:
        raise ValueError(f"relation must be one of {RELATIONS}, not {shown(relation)}")
    return relation


def check_epsilon(epsilon: object, name: str = "epsilon") -> float:
    """A privacy parameter as a float: positive and finite, or the string ``"non-private"`` for infinity.

    Infinity has to be asked for by name, so that no arithmetic slip turns the noise off.
    """
    if isinstance(epsilon, str):
        if epsilon == NON_PRIVATE:
            return math.inf
        raise ValueError(
            f"{name} must be a positive number, or 'non-private' to turn privacy off, not {shown(epsilon)}"
        )
    if not isinstance(epsilon, Real) or isinstance(epsilon, bool):
        raise TypeError(f"{name} must be a positive number, not {type(epsilon).__name__}")
    try:
        number = float(epsilon)
    except OverflowError:  # an int or a fraction beyond the largest double
        number = 1e300
    if math.isinf(number):
        raise ValueError(f"{name} is infinite: write {name}='non-private' if you mean to turn privacy off")
    if not number > 0:  # also refuses NaN
        raise ValueError(f"{name} must be positive, not {shown(epsilon)}")
    if not 1e-9 <= number <= 1e6:
        raise ValueError(f"{name} must lie between 1e-9 and 1e6, or be 'non-private', not {shown(epsilon)}")
    return number


@dataclass(frozen=True)
class Leak:
    """A read of the data without a charge: what was read, and where the paper does it."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} ({self.where})"


#: Whom a guarantee speaks of, unless it says otherwise.
UNIT = "one row"


def unit_of(max_rows: int | None) -> str:
    """Whom a guarantee speaks of, in words: one row, or a person of whose rows so many are learned from at most."""
    return UNIT if max_rows is None else f"a person of at most {max_rows} row{'s' * (max_rows > 1)}"


#: Where the random bits of a fit came from: a generator that a seed starts, the operating system, or an unknown source.
SEEDED, SECURE, UNKNOWN = SOURCES = "seeded", "secure", "unknown"
#: On what a proof may rest, and how that is said; in addition a cap on the number of records, see :func:`capped`.
ASSUMPTIONS = {"SipHash": "the pseudo-randomness of SipHash"}
_CAP = "n_max="
#: What no guarantee of one model speaks of.
NOT_COVERED = ("tuning", "test scores", "warnings and errors", "the choice of the schema")
_SOURCES = {
    SEEDED: "seeded, not for release",
    SECURE: "secure: the operating system's entropy",
    UNKNOWN: "unknown, not for release",
}
#: The same in whole sentences.
_RANDOMNESS = {
    SEEDED: "Seeded: this model is for research and not for release. Anyone who has the seed, or finds it by trying, "
    "can subtract the noise, or knows which rows were put aside before the fit, and then nothing above holds. Fit with "
    "source='secure' for a release, and put rows aside without a seed.",
    SECURE: "Secure: it came from the operating system's entropy and was not kept; the promise is as good as that.",
    UNKNOWN: "Unknown: the file does not say where it came from. If it was seeded, anyone who has or finds the seed "
    "can subtract the noise: do not release this model.",
}


def capped(n_max: float) -> str:
    """How ``rests_on`` says that no table has more records than ``n_max``, which is public."""
    return f"{_CAP}{display.number(n_max)}"


def check_rests_on(name: str) -> str:
    """``name`` itself if a guarantee may rest on it: one of ``ASSUMPTIONS``, or a cap as :func:`capped` writes it."""
    if name in ASSUMPTIONS:
        return name
    try:
        cap = float(name.removeprefix(_CAP)) if name.startswith(_CAP) else 0.0
    except ValueError:
        cap = 0.0
    if not 1 <= cap < math.inf or capped(cap) != name:
        raise ValueError(f"a guarantee rests on nothing called {reprlib.repr(name)}")
    return name


@claim("def-privacy")
@dataclass(frozen=True, repr=False)
class Guarantee:
    """What is promised about a released model; ``str`` says it in a line, ``repr`` in full, ``explain`` on a page.

    Attributes
    ----------
    epsilon : float
        The proved loss; ``inf`` where the claim is refuted or privacy was turned off.
    relation : {"add-remove", "replace-one"}
        Which pairs of data sets are neighbours.  They differ by one :attr:`unit`: see :meth:`of_rows`.
    claimed : float or None
        What the paper claims for the published variant; None for the proved one.
    leaks : tuple of Leak
        The reads without a charge, which make ``epsilon`` infinite; empty iff there are none.
    variant : {"proved", "published"}
    source : {"seeded", "secure", "unknown"}
        Where the random bits came from, those of the noise and those that put rows aside before; seeded if some were.
        The proof speaks of bits that no one can know: an attacker who has or finds the seed can subtract the noise.
        A file that does not say it is of unknown source.
    version : str or None
        Of this library, when the model was fitted.
    rests_on : tuple of str
        What the proof of this fit takes for granted beyond the bits: ``"SipHash"`` where it wants independent coins for
        the records, and they were computed by a hash under a drawn key; ``"n_max=1000"`` where the noise is that of
        tables of at most 1,000 records, which a fit refuses to exceed.
    delta : float
        0 for pure differential privacy.  Above: each event may be more probable by delta, in addition to the factor
        ``e^epsilon``.
    max_rows : int or None
        None: the unit is one row.  Else it is a person, of whose rows so many were learned from at most, and data sets
        are neighbours if they differ by all rows of one person.
    """

    epsilon: float
    relation: str
    claimed: float | None = None
    leaks: tuple[Leak, ...] = ()
    variant: str = "proved"
    source: str = UNKNOWN
    version: str | None = None
    rests_on: tuple[str, ...] = ()
    delta: float = 0.0
    max_rows: int | None = None

    @property
    def unit(self) -> str:
        """Whom the guarantee speaks of, ``"one row"`` or a person of at most so many rows."""
        return unit_of(self.max_rows)

    def to_dict(self) -> dict[str, Any]:
        """What it says, ready for JSON: the member ``guarantee`` of a model's file (:mod:`dpforest.models.release`)."""
        return {
            "epsilon": finite(self.epsilon),
            **({"delta": self.delta} if self.delta else {}),
            "relation": self.relation,
            "claimed": finite(self.claimed),
            "leaks": [{"what": leak.what, "where": leak.where} for leak in self.leaks],
            "variant": self.variant,
            "source": self.source,
            "version": self.version,
            "rests_on": list(self.rests_on),
            "unit": self.unit,
            "not_covered": list(NOT_COVERED),
        }

    def of_rows(self, rows: int) -> float:
        """What is promised to a person of so many rows: that many times ``epsilon``, for so many steps lead there.

        ``epsilon`` itself where the unit is a person, who may have any number of rows.
        """
        return self.epsilon if self.max_rows else rows * self.epsilon

    def delta_of_rows(self, rows: int) -> float:
        """The delta for :meth:`of_rows`: ``delta (1 + e^epsilon + ... + e^((rows - 1) epsilon))``, at most 1."""
        if not self.delta or self.max_rows:
            return self.delta
        steps = (math.exp(min(step * self.epsilon, 700.0)) if step else 1.0 for step in range(rows))
        return min(1.0, self.delta * sum(steps))

    @property
    def n_max(self) -> float:
        """The public cap on the number of records on which the proof rests; infinite where it needs none."""
        caps = [float(name.removeprefix(_CAP)) for name in self.rests_on if name.startswith(_CAP)]
        return min(caps, default=math.inf)

    def __str__(self) -> str:
        # what is not for release rests on worse than a hash
        finer = tuple(name for name in self.rests_on if self.source == SECURE or name not in ASSUMPTIONS)
        text = replace(self, rests_on=finer)._promise()
        if self.source != SECURE and not math.isinf(self.epsilon):
            text += f"; {'source ' * (self.source == UNKNOWN)}{_SOURCES[self.source]}"
        return text + "".join(f"\n  leak: {leak}" for leak in self.leaks)

    def __repr__(self) -> str:
        leaks = "".join(f"; leak: {leak}" for leak in self.leaks)
        return (
            f"<Guarantee: {self._promise()}{leaks}; {self._of_many()}; variant: {self.variant}; source: "
            f"{_SOURCES[self.source]}; dpforest {self.version or 'of unknown version'}; "
            f"not covered: {', '.join(NOT_COVERED)}>"
        )

    def rows(self) -> list[tuple[str, str]]:
        """What it says, as pairs of a name and a value, for a table."""
        proved = "not private for any finite epsilon" if math.isinf(self.epsilon) else display.up(self.epsilon)
        found = [("epsilon", proved if self.claimed is None else f"{proved} (the paper claims {self.claimed:.6g})")]
        found += [("delta", display.up(self.delta))] if self.delta else []
        found += [("relation", self.relation), ("unit", self.unit), ("variant", self.variant)]
        found += [("randomness", self.source)]
        rests_on = [ASSUMPTIONS[name] for name in self.rests_on if name in ASSUMPTIONS]
        rests_on += [f"{_records(self.n_max)}, which is public"] if math.isfinite(self.n_max) else []
        found += [("rests on", " and ".join(rests_on))] if rests_on else []
        found += [("leak", str(leak)) for leak in self.leaks]
        return [*found, ("not covered", ", ".join(NOT_COVERED))]

    @property
    def caution(self) -> str:
        """``"seeded: not for release"``, or what else keeps the model from its release; empty if nothing does."""
        return "" if self.source == SECURE else f"{self.source}: not for release"

    def _repr_html_(self) -> str:
        return display.box("Guarantee", self.rows(), note=self.caution)

    def _of_many(self) -> str:
        if self.max_rows:
            return "k persons together: k times epsilon" + (", and a larger delta" if self.delta else "")
        return f"a person of k rows: {'k times epsilon, and delta_of_rows(k)' if self.delta else 'k times that'}"

    def explain(self) -> str:
        """All of it on a page, in plain words."""
        finite = not math.isinf(self.epsilon)
        page = [_sentence(self._promise())]
        if finite:
            page += [self._meaning(), self._for_whom()]
        page += [f"Read without a charge. {_sentence(str(leak))}" for leak in self.leaks]
        if self.variant == "published":
            page.append("The variant. The paper's algorithm to the letter, which does not always keep what it claims.")
        else:
            page.append("The variant. The one that is proved in the book.")
        page.append(f"The randomness. {_RANDOMNESS[self.source]}")
        if any(name in ASSUMPTIONS for name in self.rests_on):
            page.append(
                "On what it rests. The coins that say which row goes to which tree were computed by a hash under a "
                "random key, so the promise holds up to "
                f"{_joined(self.rests_on)}: against anyone who cannot tell it from a random function."
            )
        if finite and math.isfinite(self.n_max):
            page.append(
                f"The cap. The noise is that of {_records(self.n_max)}, with that row and without: of larger tables "
                "nothing is promised, and a fit refuses them. That the table is no larger must be known beforehand, "
                "for a refusal tells it."
            )
        page.append(
            f"What is not covered. {_sentence(', '.join(NOT_COVERED))} That is: settings that were chosen by what they "
            "did to these rows, numbers measured on rows that are not public, what the fit said on the way, bounds and "
            "categories that were taken from the rows; and how long the fit took."
        )
        page.append(f"Made by dpforest {self.version or 'of unknown version'}.")
        return "\n\n".join(page)

    def _meaning(self) -> str:
        """What a finite epsilon promises about one row, or one person."""
        if self.max_rows is None:
            one, it, replaced = "row", "it", "with it or with another in its place"
        else:
            one, it = "person", "all rows of that person"
            replaced = f"with {it} or with those of another in their place"
        neighbours = f"with or without {it}" if self.relation == ADD_REMOVE else replaced
        factor = f"e^{display.up(self.epsilon)}"
        if self.delta:
            means = (
                f"whatever one may ask of this model, the answer was yes with a probability at most {factor} times as "
                f"large with the one as with the other, and {display.up(self.delta)} more"
            )
        else:
            means = (
                f"whatever this model turned out to be, it was at most {factor} times as likely with the one as with "
                "the other"
            )
        return (
            f"What that means. Take any one {one}, and the data {neighbours}: {means}. What is computed from the "
            "model, by whomever, costs nothing more."
        )

    def _for_whom(self) -> str:
        more = " and its delta" if self.delta else ""
        if self.max_rows:
            return (
                f"For whom. The unit is {self.unit}: a person may have any number of rows in the table, of which at "
                f"most {self.max_rows} {'was' if self.max_rows == 1 else 'were'} learned from, drawn by lots of "
                "that person's own. Who a person is, the column of persons says: one who has two names there "
                f"counts as two. Two persons together are promised twice as much. Another model or number from the "
                f"same persons adds its loss{more}."
            )
        two, ten = (
            display.up(self.epsilon, k) + (f" with a delta of {self.delta_of_rows(k):.3g}" if self.delta else "")
            for k in (2, 10)
        )
        return (
            f"For whom. The unit is {self.unit}. A person of k rows is promised "
            f"{'less' if self.delta else 'k times as much'}: {two} for two, {ten} for ten. Another model or number "
            f"from the same rows adds its loss{more}."
        )

    def _promise(self) -> str:
        loss = display.up(self.epsilon)
        loss = f"({loss}, {display.up(self.delta)})" if self.delta else loss
        text = f"{loss}-differentially private under {self.relation}, for {self.unit}"
        if math.isinf(self.epsilon):
            text = f"not differentially private under {self.relation} for any finite epsilon"
        else:
            text += f", in {_records(self.n_max)}" if math.isfinite(self.n_max) else ""
            text += f", up to {_joined(self.rests_on)}" if _joined(self.rests_on) else ""
        return text if self.claimed is None else f"{text} (the paper claims {self.claimed:.6g})"


def finite(value: float | None) -> float | None:
    """A number as JSON has it: None for infinity."""
    return None if value is None or math.isinf(value) else float(value)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _joined(rests_on: tuple[str, ...]) -> str:
    return " and ".join(ASSUMPTIONS[name] for name in rests_on if name in ASSUMPTIONS)


def _records(n_max: float) -> str:
    return f"tables of at most {math.floor(n_max):,} record{'s' * (n_max >= 2)}"
