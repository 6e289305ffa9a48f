"""``dpforest verify``: Coq adds up the ledger in a model's file, and proves what that says of the file's guarantee."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from graphlib import TopologicalSorter
from itertools import groupby
from pathlib import Path

from dpforest.messages import shown
from dpforest.models.release import Released, load
from dpforest.privacy import ADD_REMOVE, RELATIONS, SEEDED, UNIT, Guarantee, claim
from dpforest.privacy.certificate import CLAIMS, Certificate, digest_of, filtered, obstacle
from dpforest.privacy.concentrated import best_order

__all__ = [
    "AXIOMS",
    "FOLDER",
    "INSTALL",
    "NAME",
    "NotVerifiedError",
    "Verified",
    "module",
    "order",
    "verify",
    "verify_all",
]

INSTALL = "apt-get install --no-install-recommends coq"
FOLDER = Path(__file__).resolve().parents[1] / "formal"
NAME = "DPForest"  # what the theorems' files call themselves
NEEDS = re.compile(rf"From {NAME} Require Import ([\w ]+)\.")
#: The file with the theorem, which needs the others, by whether the charges are rhos.
_TOPS = {False: "Certificate", True: "Drawn"}
#: The files whose names a ledger's term has.
_NAMED = ("Program", "Certificate", "Delta", "Drawn")
_SLACK = Fraction(1, 2**40)  # of the guarantee: what the rounding of doubles may add to it
_SECONDS = 300.0  # that Coq may take
_WIDTH = 84  # of what is printed
_LINE = 100  # terms of one definition: a longer list is put together from several
_DIGITS = Context(prec=17, rounding=ROUND_CEILING)
_FINE = Context(prec=80, Emin=MIN_EMIN, Emax=MAX_EMAX)  # of a conversion, which is found here and checked by Coq
_BITS = 32  # of an order, less 1: at the best one the bound is flat
_PLACES = 96  # of epsilon and of the tangent behind the point, in bits
_SQUARES = 100  # of a bound of an exponential function: they make it right to 24 digits
_ROOM = Decimal("1e-22"), Decimal("1e-19")  # of tangent and epsilon, given away so that Coq's bounds are enough
#: What the theorem asks of a query by its mechanism, of which Coq has proved the rho.
_DRAWN = {
    "discrete Gaussian": "a noisy answer adds discrete Gaussian noise to whole numbers, and the squares of how far one "
    "record moves them, each times its rate, add up to its charge at most, whatever was answered before;",
    "exponential": "a selection is by the exponential mechanism, and an eighth of the square of its rate times the "
    "range of its score is at most its charge, whatever was answered before;",
}
#: On what the reals of Coq's standard library rest, and nothing else may.
AXIOMS = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}


class NotVerifiedError(ValueError):
    """A file of which nothing was proved; the message says why in a sentence."""


@dataclass(frozen=True)
class Verified:
    """What Coq proved of a released model's file; ``str`` says it in lines.

    Attributes
    ----------
    spent : Fraction
        The loss of the released output for the guarantee's unit and relation, exactly; with rhos, the epsilon that
        they assure at the guarantee's delta.
    guarantee : Guarantee
        What the file says.
    scopes, charges : int
        Sizes of the ledger.
    theorem : str
        Its name in Coq; its claim's id is ``thm-certificate``, or ``thm-certificate-delta`` for a ledger of rhos.
    assumptions : tuple of str
        What the proof rests on, as Coq prints it: the axioms of its real numbers.
    rho : Fraction or None
        What a ledger of rhos adds up to for the guarantee's unit, exactly.
    mechanisms : tuple of str
        Those of which the charges are rhos.
    """

    spent: Fraction
    guarantee: Guarantee
    scopes: int
    charges: int
    theorem: str
    assumptions: tuple[str, ...]
    rho: Fraction | None = None
    mechanisms: tuple[str, ...] = ()

    @property
    def exceeds(self) -> bool:
        """Whether the sum is above what the file says, by rounding alone."""
        return self.spent > Fraction(self.guarantee.epsilon)

    def __str__(self) -> str:
        loss, promise = _rounded_up(self.spent), self.guarantee
        within = f"at most the {promise.epsilon:.17g} that the file says"
        if self.exceeds:
            within = (
                f"above the {promise.epsilon:.17g} that the file says by rounding alone, less than one part in 10^12"
            )
        at, more = "", ""
        if self.rho is not None:
            at = f" at a delta of {promise.delta!r}, for a rho of {_rounded_up(self.rho)},"
            more = f", and {promise.delta!r} more"
        rows = [
            ("spent", f"{loss}{at} under {promise.relation}, for {promise.unit}: {within}"),
            ("ledger", f"{self.charges:,} charges to {self.scopes:,} scopes, added up by Coq as exact fractions"),
            ("theorem", f"{CLAIMS[self.rho is not None]}, in Coq {self.theorem}"),
            (
                "says",
                f"of the models with this ledger no set is more than e^{loss} times as likely on a neighbour{more}",
            ),
            *zip(["if", *[""] * 9], self.hypotheses(), strict=False),
            *zip(["rests on", *[""] * len(AXIOMS)], self.assumptions, strict=False),
            ("not shown", "that the code drew as the ledger says, that other runs spend no more, who wrote the file"),
        ]
        return "\n".join(
            textwrap.fill(text, _WIDTH, initial_indent=f"  {name:<10}", subsequent_indent=" " * 12)
            for name, text in rows
        )

    def hypotheses(self) -> list[str]:
        """What the theorem asks for, in words."""
        promise = self.guarantee
        found = ["each query loses at most what it was charged, whatever was answered before;"]
        if self.rho is not None:
            found = [text for name, text in _DRAWN.items() if name in self.mechanisms]
            if not _DRAWN.keys() >= set(self.mechanisms):
                found += [
                    "each other query loses at most c where c^2/2 is its charge, or is zero-concentrated at it, "
                    "whatever was answered before;"
                ]
        found += [
            "each read of the records is in the ledger, and which question is next is a function of the answers;",
            "to which part of a scope a record goes is a function of that record, of earlier answers, and of a coin of "
            "its own, independent of all else and of one law for all;",
        ]
        if promise.max_rows:
            found += [
                f"of a person at most {promise.max_rows} of the rows are learned from, by lots of that person's own;"
            ]
            if promise.relation != ADD_REMOVE:
                found += ["the order of the rows does not change the law of an answer;"]
        if "SipHash" in promise.rests_on:
            found += ["coins are computed by a hash, so all is up to the pseudo-randomness of SipHash;"]
        if promise.source == SEEDED:
            found += ["no one has the seed, or can find it: the noise is seeded, and the file is for research;"]
        return [*found, "the bits are fair, independent and unknown"]


@claim("thm-certificate", "thm-certificate-delta")
def verify(path: str | os.PathLike[str], *, seeded: bool = False) -> Verified:
    """Have Coq add up the ledger in a model's file, and prove what that says of its guarantee.

    Parameters
    ----------
    path : path
        A file of :meth:`save(path, certificate=True) <dpforest.models.predictor.Predictor.save>`.
    seeded : bool
        Whether a model may be looked at whose noise came from a seed, for research.

    Returns
    -------
    Verified

    Raises
    ------
    NotVerifiedError
        Nothing was proved: the message says which hypothesis is not met, or what does not fit.
    OSError
        The file cannot be read.

    Guarantee
    ---------
    Nothing is charged: the file alone is read.  What is proved is :prf:ref:`thm-certificate`, or of a ledger of rhos
    :prf:ref:`thm-certificate-delta`.
    """
    (found,) = verify_all([path], seeded=seeded)
    if isinstance(found, Verified):
        return found
    raise found


def verify_all(
    paths: Sequence[str | os.PathLike[str]], *, seeded: bool = False
) -> list[Verified | NotVerifiedError | OSError]:
    """:func:`verify` of several files, by one run of Coq: for each what was proved, or why nothing was."""
    read: list[_Asked | NotVerifiedError | OSError] = []
    for path in paths:
        try:
            read.append(_Asked.of(path, seeded))
        except (NotVerifiedError, OSError) as error:
            read.append(error)
    files = [each for each in read if isinstance(each, _Asked)]
    if not files:
        return [each for each in read if not isinstance(each, _Asked)]
    try:
        proved = iter(_run_coq(files))
    except NotVerifiedError as error:
        return [error if isinstance(each, _Asked) else each for each in read]
    return [next(proved) if isinstance(each, _Asked) else each for each in read]


@dataclass(frozen=True)
class _Asked:
    """What a file says, checked as far as that needs no proof."""

    certificate: Certificate
    guarantee: Guarantee
    bound: Fraction  # for the unit, of losses or of rhos
    conversion: _Conversion | None  # of rhos

    @classmethod
    def of(cls, path: str | os.PathLike[str], seeded: bool) -> _Asked:
        try:
            model = load(path)
        except ValueError as error:
            raise NotVerifiedError(str(error)) from None
        name, promise = str(path), model.guarantee_
        if why := obstacle(promise, seeded):
            raise NotVerifiedError(f"{name} is not verified: {why}")
        if model.certificate_ is None:
            raise NotVerifiedError(
                f"{name} is not verified: it has no certificate; save the fitted estimator with certificate=True"
            )
        try:
            return cls(model.certificate_, promise, *_bound(model, model.certificate_))
        except ValueError as error:
            raise NotVerifiedError(f"{name} is not verified: {error}") from None

    @property
    def weight(self) -> int:
        """How many times the loss of a row, or its rho, is that of the unit."""
        return _weight(self.guarantee, self.certificate)

    @property
    def theorem(self) -> str:
        name = f"thm_certificate_{'delta_drawn_' * self.certificate.rhos}of_"
        if self.guarantee.unit == UNIT:
            return f"{name}rows"
        return f"{name}{'' if self.guarantee.relation == ADD_REMOVE else 'exchanged_'}persons"


@dataclass(frozen=True)
class _Conversion:
    """Of which epsilon a rho assures a delta, by which order and which tangent of a power: Coq checks them."""

    epsilon: Fraction
    delta: Fraction
    order: Fraction
    tangent: Fraction

    @classmethod
    @claim("lem-concentrated-conversion")
    def of(cls, rho: Fraction, delta: Fraction) -> _Conversion:
        """The least epsilon, to 18 digits, of the best order, whose search need not be exact."""
        digits, power = math.frexp(best_order(float(rho), float(delta)) if rho else 1 / delta)
        above = round(digits * 2**_BITS) * Fraction(2) ** (power - _BITS)
        r, d, m, one = *(_FINE.divide(Decimal(x.numerator), Decimal(x.denominator)) for x in (rho, delta, above)), 1
        with localcontext(_FINE):
            order = m + one
            tail = (order * d).ln()
            tangent = (tail - m * r) * order / m
            tangent -= _ROOM[0] * (one + abs(tangent))
            epsilon = order * r - (one / m + one).ln() - tail / m
            epsilon = max(epsilon + _ROOM[1] * (one + abs(epsilon)), Decimal(0))
        short = (Fraction(math.floor(Fraction(x) * 2**_PLACES), 2**_PLACES) for x in (epsilon, tangent))
        return cls(next(short), delta, above + 1, next(short))


def _weight(promise: Guarantee, certificate: Certificate) -> int:
    return (promise.max_rows or 1) ** (2 if certificate.rhos else 1)


def _bound(model: Released, certificate: Certificate) -> tuple[Fraction, _Conversion | None]:
    """What the ledger adds up to for the guarantee's unit, and its conversion; an error where the file is at odds."""
    promise, total = model.guarantee_, certificate.total()
    if why := filtered(mechanism for _, mechanism, *_ in certificate.charges):
        raise ValueError(why)
    if certificate.rhos and not promise.delta:
        raise ValueError("its ledger has rhos, and its guarantee has no delta")
    for relation in RELATIONS:
        if total[relation] != certificate.spent[relation]:
            raise ValueError(
                f"its charges add up to {_rounded_up(total[relation])} under {relation}, and it says "
                f"{_rounded_up(certificate.spent[relation])}: its ledger was changed"
            )
    spent = _weight(promise, certificate) * total[promise.relation]
    conversion = _Conversion.of(spent, Fraction(promise.delta)) if certificate.rhos else None
    if (conversion.epsilon if conversion else spent) > Fraction(promise.epsilon) * (1 + _SLACK):
        which = f"a rho of {_rounded_up(spent)}" if conversion else _rounded_up(spent)
        assures = f", which assures {_rounded_up(conversion.epsilon)} at its delta" if conversion else ""
        raise ValueError(
            f"its ledger adds up to {which} under {promise.relation}, for {promise.unit}{assures}, and its guarantee "
            f"says {promise.epsilon:.17g}"
        )
    if digest_of(model.description) != certificate.digest:
        raise ValueError("it was changed after it was written: its digest is of another ledger, guarantee or model")
    return spent, conversion


def _rounded_up(number: Fraction) -> str:
    """A number in 17 digits that are never too small."""
    return f"{float(number):.17g}" if Fraction(float(number)) == number else str(_decimal(number))


def _decimal(number: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize()


# -- Coq -----------------------------------------------------------------------------------------------------------


def module(name: str, text: str, core: str = "") -> str:
    """A file as a module next to those that it needs, or after them, where they are compiled in ``core``."""
    beside = NEEDS.sub(lambda found: f"Import {' '.join(core + needed for needed in found[1].split())}.", text)
    return f"Module {name}.\n{beside}\nEnd {name}.\n"


def order(texts: dict[str, str]) -> list[str]:
    """The files of a development, each after those that it needs."""
    needs = {name: " ".join(NEEDS.findall(texts[name])).split() for name in sorted(texts)}
    return list(TopologicalSorter(needs).static_order())


def kernel(top: str) -> dict[str, str]:
    """The texts of the theorems that ship, by name: of this file and of all that it needs."""
    texts, asked = {}, [top]
    while asked:
        name = asked.pop()
        texts[name] = FOLDER.joinpath(f"{name}.v").read_text(encoding="utf-8")
        asked += " ".join(NEEDS.findall(texts[name])).split()
    return texts


def _run_coq(files: Sequence[_Asked]) -> list[Verified]:
    """One run of Coq: the theorems, then each ledger."""
    if shutil.which("coqc") is None:
        raise NotVerifiedError(f"nothing was verified: coqc is not installed ({INSTALL})")
    top = _TOPS[any(file.certificate.rhos for file in files)]
    texts = kernel(top)
    text = "".join(module(name, texts[name]) for name in order(texts))
    text += "From Coq Require Import ZArith Arith List Reals.\n"
    text += f"Import ListNotations {' '.join(name for name in texts if name in _NAMED)}.\nOpen Scope Z_scope.\n"
    text += "".join(line for number, file in enumerate(files) for line in _coq_ledger(number, file))
    text += "".join(f"Eval vm_compute in (cost File{number}.released).\n" for number in range(len(files)))
    together = "".join(f"let _ := @File{number}.certified in " for number in range(len(files)))
    text += f"Definition together := {together}tt.\nPrint Assumptions together.\n"
    said = _coqc(text)
    costs = [(int(alpha), int(rho)) for alpha, rho in re.findall(r"=\s+\(\s*(\d+),\s*(\d+)\s*\)", said)]
    axioms = tuple(re.findall(r"^([\w.']+)\s*(?::|$)", said.partition("\nAxioms:\n")[2], flags=re.MULTILINE))
    if len(costs) != len(files) or not axioms or not set(axioms) <= AXIOMS:
        raise NotVerifiedError(f"nothing was verified: Coq says what was not expected of it, {shown(said[-60:])}")
    found = []
    for file, cost in zip(files, costs, strict=True):
        spent = file.weight * Fraction(cost[RELATIONS.index(file.guarantee.relation)], _unit(file.certificate))
        if spent != file.bound:
            raise NotVerifiedError("nothing was verified: Coq adds up a ledger to another number than this library")
        known = (*file.certificate.sizes(), file.theorem, axioms)
        if file.conversion is None:
            found.append(Verified(spent, file.guarantee, *known))
        else:
            mechanisms = tuple(dict.fromkeys(mechanism for _, mechanism, *_ in file.certificate.charges))
            found.append(Verified(file.conversion.epsilon, file.guarantee, *known, spent, mechanisms))
    return found


def _coqc(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Verified.v").write_text(text, encoding="utf-8")
        try:
            made = subprocess.run(
                ["coqc", "-q", "Verified.v"], cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise NotVerifiedError(f"nothing was verified: Coq was stopped after {_SECONDS:g} seconds") from None
    if made.returncode:
        error = made.stderr.strip().splitlines()[-1:] or ["no reason"]
        raise NotVerifiedError(f"nothing was verified: Coq refuses, and says {shown(error[0])}")
    return made.stdout


def _unit(certificate: Certificate) -> int:
    """Of how many parts of 1 every charge is a whole number."""
    return math.lcm(*(loss.denominator for *_, alpha, rho in certificate.charges for loss in (alpha, rho)))


def _coq_ledger(number: int, file: _Asked) -> Iterator[str]:
    """A ledger in Coq, and its theorem.  Of the file nothing enters but whole numbers, and which scope has which."""
    certificate, unit = file.certificate, _unit(file.certificate)
    yield f"Module File{number}.\n"
    for at, (*_, add_remove, replace_one) in enumerate(certificate.charges):
        yield f"Definition c{at} : Z * Z := ({int(add_remove * unit)}, {int(replace_one * unit)}).\n"
    for at, scope in enumerate(certificate.scopes):
        own, parts = f"o{at}", f"p{at}"
        yield from _coq_list(own, "Z * Z", "c", scope.charges)
        yield from _coq_list(parts, "ledger", "s", scope.parts)
        yield f"Definition s{at} : ledger := Scope {str(scope.apart).lower()} {own} {parts}.\n"
    relation = "AddRemove" if file.guarantee.relation == ADD_REMOVE else "ReplaceOne"
    numbers = f"released {unit} {file.bound.denominator} {file.bound.numerator}"
    yield f"Definition released := s{len(certificate.scopes) - 1}.\n"
    yield f"Lemma spent : at_most {relation} {file.weight} {numbers} = true.\nProof. vm_compute. reflexivity. Qed.\n"
    shown_by = "spent"
    if change := file.conversion:
        known = (change.epsilon, change.delta, change.order, change.tangent)
        terms = " ".join(f"(QArith_base.Qmake ({x.numerator}) {x.denominator})" for x in known)
        rho = f"(QArith_base.Qmake {file.bound.numerator} {file.bound.denominator})"
        yield f"Lemma assured : assures (Z.to_nat {_SQUARES}) {rho} {terms} = true.\n"
        yield "Proof. vm_compute. reflexivity. Qed.\n"
        numbers, shown_by = f"{numbers} (Z.to_nat {_SQUARES}) {terms}", "spent assured"
    if file.guarantee.unit == UNIT:
        yield f"Definition certified := {file.theorem} {relation} {numbers} {shown_by}.\n"
    else:  # who the persons are, and how their lots are drawn, is any
        rows = f"(Z.to_nat {file.guarantee.max_rows})"
        given = "P A C O who_eq row_eq people everybody once lots before ordered coin g Hg"
        at_least_one = f"{rows} {numbers} (proj1 (Nat.leb_le 1 {rows}) eq_refl)"
        rest = at_least_one if relation == "AddRemove" else numbers
        yield f"Definition certified := fun {given} => @{file.theorem} {given} {rest} {shown_by}.\n"
    yield f"End File{number}.\n"


def _coq_list(name: str, kind: str, letter: str, places: Sequence[int]) -> Iterator[str]:
    """A list in Coq, from its runs of equal entries."""
    runs = [f"repeat {letter}{place} (Z.to_nat {sum(1 for _ in same)})" for place, same in groupby(places)]
    pieces = []
    for at in range(0, len(runs), _LINE):
        pieces.append(f"{name}_{at}")
        yield f"Definition {pieces[-1]} : list ({kind}) := {' ++ '.join(runs[at : at + _LINE])}.\n"
    while len(pieces) > _LINE:
        longer = []
        for at in range(0, len(pieces), _LINE):
            longer.append(f"{pieces[at]}_")
            yield f"Definition {longer[-1]} : list ({kind}) := {' ++ '.join(pieces[at : at + _LINE])}.\n"
        pieces = longer
    yield f"Definition {name} : list ({kind}) := {' ++ '.join([*pieces, '[]'])}.\n"
