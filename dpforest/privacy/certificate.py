"""The certificate of a released model: its ledger in whole, ready for a proof assistant to add up."""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpforest import storage
from dpforest.messages import shown
from dpforest.privacy.ledger import Ledger
from dpforest.privacy.vocabulary import ADD_REMOVE, FILTERED, RELATIONS, REPLACE_ONE, SECURE, Guarantee, claim

__all__ = ["CLAIMS", "Certificate", "certificate_of", "digest_of", "filtered", "obstacle"]

FORMAT = 1
#: The theorem, by whether the charges are rhos.
CLAIMS = {False: "thm-certificate", True: "thm-certificate-delta"}
#: Whether a record of a scope is in one of its children at most, by kind; of other kinds no theorem is proved in Coq.
_APART = {"sequential": False, "partition": True, "assignment": True}
_KEYS = {ADD_REMOVE: "add_remove", REPLACE_ONE: "replace_one"}
_MEMBERS = {"format", "claim", "charges", "scopes", "spent", "digest"}
_LONGEST = 200  # characters of a name
_MOST = 2_000_000  # scopes, and charges, of a ledger that is checked
_BITS = 2100  # of a numerator; a double has at most 1024 before the point and 1074 behind it
_NUMBER = re.compile(r"(0|[1-9][0-9]{0,699})(?:/([1-9][0-9]{0,699}))?")


@dataclass(frozen=True)
class _Scope:
    """A scope as often as it occurs: its own charges and its parts, by number."""

    label: str
    apart: bool
    charges: tuple[int, ...]
    parts: tuple[int, ...]


@claim("thm-certificate", "thm-certificate-delta")
@dataclass(frozen=True)
class Certificate:
    """A ledger as a tree in which equal scopes are written once.

    Attributes
    ----------
    charges : tuple of (str, str, Fraction, Fraction)
        Each query and mechanism with a loss under add-remove and under replace-one, or a rho; exact.
    scopes : tuple
        Each after its parts; the last one is the model.
    spent : dict
        What all of it adds up to for one row, by relation, as the file says.
    digest : str
        Of the file without it.
    rhos : bool
        Whether the charges are rhos, and not losses.
    """

    charges: tuple[tuple[str, str, Fraction, Fraction], ...]
    scopes: tuple[_Scope, ...]
    spent: dict[str, Fraction]
    digest: str = ""
    rhos: bool = False

    def sizes(self) -> tuple[int, int]:
        """How many scopes and charges there are, with all repetitions; an error where they are too many."""
        counts: list[tuple[int, int]] = []
        for scope in self.scopes:
            below = [counts[part] for part in scope.parts]
            counts.append((1 + sum(n for n, _ in below), len(scope.charges) + sum(n for _, n in below)))
            if max(counts[-1]) > _MOST:
                raise ValueError(f"its ledger has more than {_MOST} scopes or charges")
        return counts[-1]

    def total(self) -> dict[str, Fraction]:
        """What the charges add up to for one row, by relation, exactly; the rule of the theorem."""
        own = [(add_remove, replace_one) for _, _, add_remove, replace_one in self.charges]
        costs: list[tuple[Fraction, Fraction]] = []
        for scope in self.scopes:
            below = [costs[part] for part in scope.parts]
            alphas, rhos = [alpha for alpha, _ in below], [rho for _, rho in below]
            if scope.apart:
                tops = sorted(alphas)[-2:]
                alphas, rhos = tops[-1:], [max([*rhos, sum(tops, Fraction(0))])]
            alphas += [own[each][0] for each in scope.charges]
            rhos += [own[each][1] for each in scope.charges]
            costs.append((sum(alphas, Fraction(0)), sum(rhos, Fraction(0))))
        return dict(zip(RELATIONS, costs[-1], strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; numbers are exact fractions, as text."""
        return {
            "format": FORMAT,
            "claim": CLAIMS[self.rhos],
            "charges": [
                {
                    "query": query,
                    "mechanism": mechanism,
                    "add_remove": str(add_remove),
                    "replace_one": str(replace_one),
                }
                for query, mechanism, add_remove, replace_one in self.charges
            ],
            "scopes": [
                {
                    "label": scope.label,
                    "apart": scope.apart,
                    "charges": list(scope.charges),
                    "parts": list(scope.parts),
                }
                for scope in self.scopes
            ],
            "spent": {_KEYS[relation]: str(self.spent[relation]) for relation in RELATIONS},
            "digest": self.digest,
        }

    @classmethod
    def written(cls, description: Any) -> Certificate:
        """The certificate that :meth:`to_dict` described; each part of it is checked, its sum and digest are not.

        Raises
        ------
        ValueError
            It is none, or one of another format.
        """
        number = _of(description, "format", int)
        if number != FORMAT:
            raise ValueError(f"its certificate has format {shown(number)}, and this version reads format {FORMAT}")
        _exactly(description, _MEMBERS)
        if _text(description, "claim") not in CLAIMS.values():
            raise ValueError(
                f"its certificate names {shown(description['claim'])}, and not {' or '.join(CLAIMS.values())}"
            )
        charges = []
        for each in storage.listed(_of(description, "charges", list), "charges", dict):
            _exactly(each, {"query", "mechanism", *_KEYS.values()})
            charges.append((_text(each, "query"), _text(each, "mechanism"), *_losses(each)))
        scopes: list[_Scope] = []
        for each in storage.listed(_of(description, "scopes", list), "scopes", dict):
            _exactly(each, {"label", "apart", "charges", "parts"})
            own = _numbers(_of(each, "charges", list), len(charges))
            parts = _numbers(_of(each, "parts", list), len(scopes))
            scopes.append(_Scope(_text(each, "label"), _of(each, "apart", bool), own, parts))
        if not scopes:
            raise ValueError("its certificate has no scopes")
        spent = _of(description, "spent", dict)
        _exactly(spent, set(_KEYS.values()))
        sums = dict(zip(RELATIONS, _losses(spent), strict=True))
        rhos = description["claim"] == CLAIMS[True]
        found = cls(tuple(charges), tuple(scopes), sums, _text(description, "digest"), rhos)
        found.sizes()
        return found


def obstacle(promise: Guarantee, seeded: bool = False) -> str:
    """Why no certificate covers this guarantee, in words; empty where one can."""
    if promise.leaks:
        return "its ledger has leaks: records were read without a charge"
    if promise.variant != "proved":
        return "it is of the published variant, which is not proved: what it spends is in its guarantee"
    if not promise.epsilon < np.inf:
        return "its epsilon is infinite: there is nothing to certify"
    if promise.n_max < np.inf:
        return "its proof rests on a public cap of the number of records, which the theorem in Coq does not know"
    if promise.max_rows not in (None, 1) and promise.relation != ADD_REMOVE:
        return "a person of several rows is covered under add-remove alone"
    if promise.source != SECURE and not seeded:
        return (
            f"its noise is {promise.source}: anyone who has the seed can subtract it, so the theorem does not apply"
            if promise.source == "seeded"
            else "it is not known where its noise came from, so the theorem does not apply"
        )
    return ""


def filtered(mechanisms: Iterable[str]) -> str:
    """Why no certificate covers a ledger of these mechanisms, in words; empty where one can."""
    if FILTERED in mechanisms:
        return "no theorem in Coq is about an individual filter, whose rounds are charged together"
    return ""


@claim("thm-certificate", "thm-certificate-delta")
def certificate_of(ledger: Ledger) -> Certificate:
    """The ledger of a fit as a certificate: each charge, the double as the fraction that it is.

    Raises
    ------
    ValueError
        The promise of the ledger is not one that a certificate covers, or scopes compose in a way on which no theorem
        is proved in Coq.
    """
    if ledger.promise is None or ledger.leaks:
        raise ValueError("this ledger has no promise, or leaks: there is nothing to certify")
    if why := obstacle(ledger.promise, seeded=True):
        raise ValueError(f"there is no certificate of this model: {why}")
    if other := sorted(ledger.kinds - {*_APART}):
        raise ValueError(f"there is no certificate of this model: no theorem in Coq is about scopes by {other[0]}")
    if why := filtered(entry.mechanism for entry in ledger._charges):
        raise ValueError(f"there is no certificate of this model: {why}")
    if not all(np.isfinite(losses).all() for entry in ledger._charges for losses in entry.costs.values()):
        raise ValueError("there is no certificate of this model: a query has no finite loss under one of the relations")
    charges: dict[tuple[str, str, float, float], int] = {}
    own: dict[int, list[int]] = defaultdict(list)
    for entry in ledger._charges:
        pairs = zip(entry.scopes.tolist(), *(entry.costs[relation].tolist() for relation in RELATIONS), strict=True)
        for scope, *losses in pairs:
            own[scope].append(charges.setdefault((entry.query, entry.mechanism, *losses), len(charges)))
    parents = np.concatenate(ledger._parents).tolist()
    sizes = [len(block) for block in ledger._parents]
    kinds, labels = (
        [each for each, size in zip(names, sizes, strict=True) for _ in range(size)]
        for names in (ledger._kinds, ledger._labels)
    )
    parts: dict[int, list[int]] = defaultdict(list)
    scopes: dict[_Scope, int] = {}
    for number in range(len(parents) - 1, -1, -1):  # a scope is opened after its parent
        scope = _Scope(labels[number], _APART[kinds[number]], tuple(own[number]), tuple(reversed(parts[number])))
        parts[parents[number]].append(scopes.setdefault(scope, len(scopes)))
    exact = tuple((query, mechanism, Fraction(alpha), Fraction(rho)) for query, mechanism, alpha, rho in charges)
    found = Certificate(exact, tuple(scopes), {}, rhos=ledger.delta > 0)
    return replace(found, spent=found.total())


def digest_of(description: dict[str, Any]) -> str:
    """The digest of a model's description with its certificate, whose own digest is left out."""
    certificate = {name: value for name, value in description["certificate"].items() if name != "digest"}
    text = json.dumps({**description, "certificate": certificate}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# -- what is read is not believed ------------------------------------------------------------------------------------


def _of(description: Any, name: str, kind: type) -> Any:
    if type(description) is not dict or type(description.get(name)) is not kind:
        raise ValueError(f"its certificate has no {name}, or one of another type")
    return description[name]


def _exactly(description: dict[str, Any], members: set[str]) -> None:
    if description.keys() != members:
        raise ValueError(f"its certificate must have the members {sorted(members)} where it has others")


def _text(description: Any, name: str) -> str:
    text = _of(description, name, str)
    if len(text) > _LONGEST or not text.isprintable():
        raise ValueError(f"its certificate has a {name} that is too long, or cannot be printed")
    return text


def _numbers(values: list[Any], below: int) -> tuple[int, ...]:
    """Whole numbers from 0 and below this one."""
    for value in values:
        if type(value) is not int or not 0 <= value < below:
            raise ValueError(f"its certificate refers to {reprlib.repr(value)}, which it does not have before")
    return tuple(values)


def _losses(description: dict[str, Any]) -> tuple[Fraction, Fraction]:
    add_remove, replace_one = (_fraction(_of(description, key, str)) for key in _KEYS.values())
    return add_remove, replace_one


def _fraction(text: str) -> Fraction:
    """A loss: a fraction at least 0, with a power of two below, as doubles and their sums are."""
    match = _NUMBER.fullmatch(text)
    number = Fraction(int(match[1]), int(match[2] or 1)) if match else Fraction(-1)
    below = number.denominator
    if number < 0 or below & (below - 1) or max(number.numerator, below).bit_length() > _BITS:
        raise ValueError(f"its certificate has {shown(text)} for a loss, which is no sum of doubles")
    return number
