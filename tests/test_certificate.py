"""A certificate with the file: Coq adds up the ledger that a model brings along, or says in a sentence why not."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import shutil
from fractions import Fraction

import numpy as np
import pytest
from test_contract import KINDS, fitted, model, table

import dpforest
from dpforest import EDPRFClassifier, cli
from dpforest.inspect import NotVerifiedError, Verified, verification, verify
from dpforest.inspect.verification import verify_all
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, Guarantee, Ledger, epsilon_of
from dpforest.privacy.certificate import Certificate, certificate_of, digest_of
from tests import coq, not_run

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason=not_run.COQ)
#: Learners of which the ledger has losses, and not rhos.
PURE = [name for name in KINDS if not model(name).promised_delta()]


def saved(estimator, path):
    estimator.save(path, seeded=True, certificate=True)
    return path


@pytest.fixture(scope="module")
def description():
    """A small forest with a certificate, whose trees share their records."""
    return fitted("DiffPETsClassifier").to_dict(seeded=True, certificate=True)


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """What is said of a description; Coq is never reached."""
    monkeypatch.setattr(verification, "_coqc", lambda text: pytest.fail("this went to Coq"))

    def said(description, *, seeded=True):
        (tmp_path / "model.json").write_text(description if isinstance(description, str) else json.dumps(description))
        with pytest.raises(NotVerifiedError) as error:
            verify(tmp_path / "model.json", seeded=seeded)
        text = str(error.value)
        assert "\n" not in text
        assert len(text) < 600
        return text.replace(str(tmp_path / "model.json"), "model.json")

    return said


def forged(description, change, sums=False, digest=True):
    """A changed copy; with its own sums and digest made to fit, if asked for."""
    twin = copy.deepcopy(description)
    change(twin)
    if sums:
        total = Certificate.written(twin["certificate"]).total()
        twin["certificate"]["spent"] = {
            "add_remove": str(total[ADD_REMOVE]),
            "replace_one": str(total[REPLACE_ONE]),
        }
    if digest:
        twin["certificate"]["digest"] = digest_of(twin)
    return twin


# -- what Coq computes -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proved(tmp_path_factory):
    """One run of Coq: every learner at both relations, and persons; by name the estimator and what was proved."""
    folder = tmp_path_factory.mktemp("files")
    fits = {}
    for name in PURE:
        fits[name, ADD_REMOVE] = fitted(name)
        fits[name, REPLACE_ONE] = model(name, relation=REPLACE_ONE).fit(*table(name))
    X, y = table("RandomTreesClassifier")
    who = np.arange(len(y)) // 2
    for rows, relation in ((3, ADD_REMOVE), (1, ADD_REMOVE), (1, REPLACE_ONE)):
        trees = model("RandomTreesClassifier", relation=relation)
        fits["persons", rows, relation] = trees.fit(X, y, person=who, max_rows=rows)
    paths = [saved(fit, folder / f"{number}.json") for number, fit in enumerate(fits.values())]
    found = verify_all(paths, seeded=True)
    return {key: (fit, each) for (key, fit), each in zip(fits.items(), found, strict=True)}


def agree(number, total):
    """A sum of doubles, each rounded, against the exact one."""
    return math.isclose(number, total, rel_tol=1e-12)


@pytest.mark.slow
@needs_coq
@pytest.mark.claim(
    "thm-certificate",
    verdict="proved",
    constant=r"the exact sum of the ledger; a person of $k$ rows: $k$ times that",
    evidence="exhaustive",
)
def test_coq_proves_what_every_learner_has_spent(proved):
    for key, (fit, found) in proved.items():
        assert isinstance(found, Verified), (key, found)
        rows = fit.guarantee_.max_rows or 1
        apart = "assignment" in fit.ledger_.kinds and fit.relation == REPLACE_ONE
        own = rows * fit.ledger_.total(fit.relation)
        # a coin that may change with its record costs no less than one that stays
        assert found.spent >= own * (1 - 1e-12) if apart else agree(found.spent, own), key
        assert found.spent <= Fraction(fit.guarantee_.epsilon) * (1 + Fraction(1, 10**12)), key
        assert found.scopes == fit.ledger_._size
        assert found.charges == sum(len(charge.scopes) for charge in fit.ledger_._charges)
        assert set(found.assumptions) == coq.ALLOWED
    assert proved["persons", 3, ADD_REMOVE][1].theorem == "thm_certificate_of_persons"
    assert proved["persons", 1, REPLACE_ONE][1].theorem == "thm_certificate_of_exchanged_persons"
    assert proved["EDPRFClassifier", ADD_REMOVE][1].theorem == "thm_certificate_of_rows"


def test_the_theorems_that_are_named_are_listed():
    for claim, name in (("thm-certificate", ""), ("thm-certificate-delta", "delta_drawn_")):
        listed = {theorem.name for theorem in coq.theorems() if theorem.claim == claim}
        named = {f"thm_certificate_{name}of_{unit}" for unit in ("rows", "persons", "exchanged_persons")}
        assert named < listed


# -- ledgers of rhos --------------------------------------------------------------------------------------------------


def of_rhos(name, relation=ADD_REMOVE, **persons):
    """A fit whose ledger has rhos."""
    options = {} if model(name).promised_delta() else {"delta": 1e-5}
    if "selection" in KINDS[name]().get_params():
        options["selection"] = "exponential"
    return model(name, relation=relation, **options).fit(*table(name), **persons)


#: Learners without selections and with them, trees that share records and trees that do not.
RHOS = ["RandomTreesClassifier", "DiffPETsClassifier", "EDPRFClassifier", "DPTRClassifier", "PrivateBoostingRegressor"]


@pytest.fixture(scope="module")
def proved_of_rhos(tmp_path_factory):
    """One run of Coq: learners with a delta, and persons; by name the estimator and what was proved."""
    folder = tmp_path_factory.mktemp("rhos")
    fits = {(name, ADD_REMOVE): of_rhos(name) for name in RHOS}
    fits |= {(name, REPLACE_ONE): of_rhos(name, REPLACE_ONE) for name in RHOS[:3]}
    who = np.arange(len(table("RandomTreesClassifier")[1])) // 2
    for rows, relation in ((3, ADD_REMOVE), (1, ADD_REMOVE), (1, REPLACE_ONE)):
        fits["persons", rows, relation] = of_rhos("RandomTreesClassifier", relation, person=who, max_rows=rows)
    paths = [saved(fit, folder / f"{number}.json") for number, fit in enumerate(fits.values())]
    return {key: (fit, each) for (key, fit), each in zip(fits.items(), verify_all(paths, seeded=True), strict=True)}


@pytest.mark.slow
@needs_coq
@pytest.mark.claim(
    "thm-certificate-delta",
    verdict="proved",
    constant=r"the exact sum of the rhos, a person of $k$ rows: $k^2$ times that; its $\eps$ to 18 digits",
    evidence="exhaustive",
)
def test_coq_proves_what_rhos_have_spent(proved_of_rhos):
    for key, (fit, found) in proved_of_rhos.items():
        assert isinstance(found, Verified), (key, found)
        rows = fit.guarantee_.max_rows or 1
        own = rows**2 * fit.ledger_.paid(fit.relation)
        moving = "assignment" in fit.ledger_.kinds and fit.relation == REPLACE_ONE
        assert found.rho >= own * (1 - 1e-12) if moving else agree(found.rho, own), key
        assert math.isclose(found.spent, epsilon_of(float(found.rho), fit.guarantee_.delta), rel_tol=1e-12), key
        assert found.spent <= Fraction(fit.guarantee_.epsilon) * (1 + Fraction(1, 10**12)), key
        assert found.theorem.startswith("thm_certificate_delta_drawn_of_")
        assert set(found.assumptions) == coq.ALLOWED
    assert proved_of_rhos["persons", 3, ADD_REMOVE][1].theorem == "thm_certificate_delta_drawn_of_persons"
    exchanged = proved_of_rhos["persons", 1, REPLACE_ONE][1]
    assert exchanged.theorem == "thm_certificate_delta_drawn_of_exchanged_persons"
    said = " ".join(str(proved_of_rhos["EDPRFClassifier", ADD_REMOVE][1]).split())
    for part in (
        "at a delta of 1e-05, for a rho of",
        "and 1e-05 more",
        "a noisy answer adds discrete Gaussian noise to whole numbers",
        "a selection is by the exponential mechanism",
        "thm-certificate-delta",
    ):
        assert part in said, part
    assert "zero-concentrated" not in said  # that is proved, and no hypothesis
    assert "each other query" not in said
    assert "a selection" not in str(proved_of_rhos["DPTRClassifier", ADD_REMOVE][1])


@pytest.mark.claim("thm-certificate-delta")
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 5e-8, 1e-6, 0.01])
@pytest.mark.parametrize("power", range(-4, 5, 2))
def test_the_check_of_a_conversion_is_sharp(delta, power):
    """What Coq computes, transcribed: the least epsilon of the book is accepted, and one that is smaller is not."""
    rho = Fraction(3.7 * 10.0**power)
    change = verification._Conversion.of(rho, Fraction(delta))
    known = (change.delta, change.order, change.tangent)
    assert math.isclose(change.epsilon, epsilon_of(float(rho), delta), rel_tol=1e-10)
    assert assures(rho, change.epsilon, *known)
    assert not assures(rho, change.epsilon * (1 - Fraction(1, 10**12)), *known)
    assert not assures(rho * (1 + Fraction(1, 10**12)), change.epsilon, *known)
    assert not assures(rho, change.epsilon, change.delta * (1 - Fraction(1, 10**12)), *known[1:])


def test_no_charge_at_all_assures_every_delta():
    change = verification._Conversion.of(Fraction(0), Fraction(1e-6))
    assert change.epsilon == 0
    assert assures(Fraction(0), Fraction(0), change.delta, change.order, change.tangent)


def assures(rho, epsilon, delta, order, tangent):
    """``assures`` of ``dpforest/formal/Delta.v``, line by line."""
    above = order - 1
    return (
        order > 1
        and exp_at_most(above * rho - tangent / order - epsilon, order / above)
        and exp_at_most(above * rho + (1 - 1 / order) * tangent, order * delta)
    )


def exp_at_most(x, most, k=verification._SQUARES):
    low = max(0, (1 << 2 * k) + (-x.numerator << k) // x.denominator)
    for _ in range(k):
        low = low * low >> 2 * k
    return most > 0 and most.denominator << 2 * k <= most.numerator * low


@needs_coq
def test_coq_refuses_a_conversion_that_is_off_by_a_little(tmp_path, monkeypatch):
    """One part in 10^12 of epsilon, which this library is made to overlook; the right one is proved above."""
    path = saved(of_rhos("RandomTreesClassifier"), tmp_path / "model.json")
    right = verification._Conversion.of.__func__
    less = Fraction(10**12 - 1, 10**12)
    monkeypatch.setattr(
        verification._Conversion,
        "of",
        classmethod(
            lambda cls, *known: dataclasses.replace(right(cls, *known), epsilon=right(cls, *known).epsilon * less)
        ),
    )
    with pytest.raises(NotVerifiedError, match="Coq refuses, and says"):
        verify(path, seeded=True)


def test_changed_ledgers_of_rhos(refused):
    """A charge made smaller, the deltas of file and ledger not one, rhos that are called losses and the reverse."""
    fit = of_rhos("DPTRClassifier")
    description = fit.to_dict(seeded=True, certificate=True)

    def charges(factor):
        def change(twin):
            for charge in twin["certificate"]["charges"]:
                charge["add_remove"] = str(Fraction(charge["add_remove"]) * factor)

        return change

    assert "its ledger was changed" in refused(forged(description, charges(Fraction(1, 2))))
    said = refused(forged(description, charges(2), sums=True))
    assert "its ledger adds up to a rho of 0.7462879646258" in said
    assert "under add-remove, for one row, which assures 5.9612581460079" in said
    assert said.endswith(" at its delta, and its guarantee says 4")
    changed = "it was changed after it was written"
    assert changed in refused(forged(description, lambda twin: twin["guarantee"].update(delta=1e-4), digest=False))
    smaller = forged(description, lambda twin: twin["guarantee"].update(delta=0.9999e-5))
    assert "at its delta, and its guarantee says 4" in refused(smaller)
    smaller = forged(description, lambda twin: twin["guarantee"].update(epsilon=3.984375))
    assert "at its delta, and its guarantee says 3.984375" in refused(smaller)

    def losses(twin):
        twin["certificate"]["claim"] = "thm-certificate"

    assert changed in refused(forged(description, losses, digest=False))

    def pure(twin):
        twin["format"] = 2
        del twin["guarantee"]["delta"]

    assert "its ledger has rhos, and its guarantee has no delta" in refused(forged(description, pure))

    def within_a_filter(twin):
        twin["certificate"]["charges"][0]["mechanism"] = "discrete Gaussian, within a filter"

    assert "no theorem in Coq is about an individual filter" in refused(forged(description, within_a_filter))


def test_a_ledger_of_losses_with_a_delta_that_was_not_used(tmp_path):
    """A loss is more than the guarantee asks for: the theorem is that of losses."""
    ledger = Ledger(delta=1e-6)
    ledger.drop_delta(by_answers=True)
    ledger.charge(0, 0.5, 1.0, "query", "two-sided geometric")
    ledger.promise = Guarantee(1.0, ADD_REMOVE, delta=1e-6)
    found = certificate_of(ledger)
    assert not found.rhos
    assert found.to_dict()["claim"] == "thm-certificate"
    ledger = Ledger(promise=Guarantee(1.0, ADD_REMOVE, delta=1e-6))
    ledger.charge(0, 0.5, 1.0, "query", "two-sided geometric")
    ledger.take_delta(1e-6)
    found = certificate_of(ledger)
    assert found.to_dict()["claim"] == "thm-certificate-delta"
    assert found.total() == {ADD_REMOVE: Fraction(1, 8), REPLACE_ONE: Fraction(1, 2)}


@pytest.mark.parametrize(
    ("mechanisms", "asked"),
    [
        (("discrete Gaussian",), ["a noisy answer adds discrete Gaussian noise"]),
        (("exponential", "discrete Gaussian"), ["a noisy answer adds", "a selection is by the exponential mechanism"]),
        (
            ("exponential", "two-sided geometric"),
            ["a selection is by", "each other query loses at most c where c^2/2 is its charge"],
        ),
    ],
)
def test_what_is_asked_of_a_query_with_a_rho(mechanisms, asked):
    """How far one record moves what is read; the rho itself only where Coq has not proved it of the mechanism."""
    promise = Guarantee(1.0, ADD_REMOVE, delta=1e-6)
    found = Verified(Fraction(1), promise, 1, 1, "thm", (), Fraction(1, 50), mechanisms).hypotheses()
    assert len(found) == len(asked) + 3
    for line, begins in zip(found, asked, strict=False):
        assert line.startswith(begins)


@pytest.mark.slow
@needs_coq
def test_hypotheses_are_said(proved):
    said = str(proved["persons", 1, REPLACE_ONE][1])
    for part in ("at most 1 row", "order of the rows", "no one has the seed", "not shown", "each query loses at most"):
        assert part in said, part
    said = str(proved["EDPRFClassifier", ADD_REMOVE][1])
    assert "SipHash" in said
    assert "lots" not in said


def every_member(scope, kinds, below):
    """The sets of scopes that a record of this one may be in."""
    children = below.get(scope, [])
    if kinds[scope] == "sequential":
        ways = [sum(parts, ()) for parts in itertools.product(*(every_member(c, kinds, below) for c in children))]
    else:
        ways = [(), *(way for child in children for way in every_member(child, kinds, below))]
    return [(scope, *way) for way in ways]


@pytest.mark.claim("thm-certificate")
@pytest.mark.parametrize("seed", range(60))
def test_the_sum_is_the_most_that_a_record_or_an_exchange_costs(seed):
    """Against all ways in which one record, or two, may go through the scopes: equality, under either relation."""
    rng = np.random.default_rng(seed)
    ledger = Ledger()
    kinds, below = {0: "sequential"}, {}
    for _ in range(rng.integers(1, 8)):
        parent = int(rng.integers(len(kinds)))
        kind = ["sequential", "partition", "assignment"][rng.integers(3)]
        (child,) = ledger.open("scope", [parent], kind).tolist()
        kinds[child] = kind
        below.setdefault(parent, []).append(child)
    costs = {}
    for scope in kinds:
        for _ in range(rng.integers(0, 3)):
            alpha, rho = (rng.integers(0, 9, 2) / 8).tolist()
            ledger.charge([scope], alpha, rho, "query", "mechanism")
            old = costs.get(scope, (0, 0))
            costs[scope] = old[0] + alpha, old[1] + rho
    ledger.promise = Guarantee(100.0, ADD_REMOVE)
    total = certificate_of(ledger).total()
    ways = [set(way) for way in every_member(0, kinds, below)]
    zero = (0, 0)
    assert total[ADD_REMOVE] == max(sum(costs.get(scope, zero)[0] for scope in way) for way in ways)
    assert total[REPLACE_ONE] == max(
        sum(costs.get(scope, zero)[scope in one and scope in other] for scope in one | other)
        for one, other in itertools.product(ways, ways)
    )


# -- a sentence for each file of which nothing is proved --------------------------------------------------------------


def test_a_changed_charge(description, refused):
    def less(twin):
        charge = max(twin["certificate"]["charges"], key=lambda each: Fraction(each["add_remove"]))
        charge["add_remove"] = str(Fraction(charge["add_remove"]) / 2)

    assert "its ledger was changed" in refused(forged(description, less))

    def more(twin):
        for charge in twin["certificate"]["charges"]:
            charge["add_remove"] = str(Fraction(charge["add_remove"]) * 2)

    assert "its ledger was changed" in refused(forged(description, more))
    assert refused(forged(description, more, sums=True)) == (
        "model.json is not verified: its ledger adds up to 7.9999999999999996 under add-remove, for one row, and its "
        "guarantee says 4"
    )


def test_a_charge_that_is_removed(description, refused):
    def removed(twin):
        scopes = [scope for scope in twin["certificate"]["scopes"] if scope["charges"]]
        scopes[-1]["charges"].pop()

    said = refused(forged(description, removed, digest=False))
    assert "its ledger was changed" in said or "its digest" in said
    assert "its digest" in refused(forged(description, removed, sums=True, digest=False))


def test_parts_that_are_claimed_to_be_disjoint(description, refused):
    def apart(twin):
        for scope in twin["certificate"]["scopes"]:
            scope["apart"] = True

    assert "its ledger was changed" in refused(forged(description, apart))
    assert "its digest" in refused(forged(description, apart, sums=True, digest=False))


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("epsilon", 3.0, "and its guarantee says 3"),
        ("epsilon", 5.0, "it was changed after it was written"),
        ("relation", "replace-one", "under replace-one"),
        ("unit", "a person of at most 2 rows", "for a person of at most 2 rows, and its guarantee says 4"),
        ("unit", "a person of at most 1 row", "it was changed after it was written"),
        ("version", "0.0.1", "it was changed after it was written"),
    ],
)
def test_a_changed_guarantee(description, refused, member, value, said):
    assert said in refused(forged(description, lambda twin: twin["guarantee"].update({member: value}), digest=False))


def test_the_ledger_of_another_model(description, refused):
    other = model("DiffPETsClassifier", random_state=5).fit(*table("DiffPETsClassifier"))
    other = other.to_dict(seeded=True, certificate=True)
    assert other["certificate"] != description["certificate"]

    def swapped(twin):
        twin["certificate"] = other["certificate"]

    assert "its digest is of another ledger, guarantee or model" in refused(forged(description, swapped, digest=False))


def test_a_file_without_a_certificate_and_of_another_version(description, refused):
    plain = {name: value for name, value in description.items() if name != "certificate"}
    assert refused(plain).endswith("it has no certificate; save the fitted estimator with certificate=True")
    former = {**plain, "format": 1}  # what the first version wrote
    former["guarantee"] = {name: plain["guarantee"][name] for name in ("epsilon", "relation", "claimed", "leaks")}
    assert "it is not known where its noise came from" in refused(former, seeded=False)
    assert "it has no certificate" in refused(former)
    later = forged(description, lambda twin: twin["certificate"].update(format=2))
    assert "its certificate has format 2, and this version reads format 1" in refused(later)
    other = forged(description, lambda twin: twin["certificate"].update(claim="thm-other"))
    assert "names 'thm-other', and not thm-certificate or thm-certificate-delta" in refused(other)


def test_a_file_that_is_half_written(description, refused, tmp_path):
    assert "it is not JSON" in refused(json.dumps(description)[: -len(json.dumps(description)) // 2])
    assert "it is not JSON" in refused("")
    with pytest.raises(OSError, match="nothing"):
        verify(tmp_path / "nothing.json")


@pytest.mark.parametrize("kind", ["published", "leaks", "infinite", "cap", "seeded"])
def test_a_guarantee_that_no_theorem_covers(description, refused, kind):
    promise = description["guarantee"]
    changes = {
        "published": {"variant": "published", "claimed": 4.0},
        "leaks": {"variant": "published", "claimed": 4.0, "leaks": [{"what": "a", "where": "b"}], "epsilon": None},
        "infinite": {"epsilon": None},
        "cap": {"rests_on": ["n_max=1000"]},
        "seeded": {},
    }
    said = {
        "published": "it is of the published variant, which is not proved",
        "leaks": "its ledger has leaks",
        "infinite": "its epsilon is infinite",
        "cap": "its proof rests on a public cap",
        "seeded": "its noise is seeded: anyone who has the seed can subtract it",
    }
    twin = {**description, "guarantee": {**promise, **changes[kind]}, "format": 2}
    assert said[kind] in refused(twin, seeded=kind != "seeded")


def test_what_cannot_have_a_certificate_is_not_saved_with_one(tmp_path):
    X, y = table("EDPRFClassifier")
    with pytest.warns(dpforest.privacy.UnprovenPrivacyWarning):
        published = model("EDPRFClassifier", variant="published").fit(X, y)
    filtered = next(fitted(name) for name in KINDS if "within a filter" in str(fitted(name).ledger_))
    for estimator, said in ((published, "no promise, or leaks"), (filtered, "an individual filter")):
        with pytest.raises(ValueError, match=said):
            estimator.save(tmp_path / "model.json", seeded=True, certificate=True)
    ledger = Ledger(promise=Guarantee(4.0, ADD_REMOVE))
    ledger.open("tree", [0], "bootstrap")
    with pytest.raises(ValueError, match="no theorem in Coq is about scopes by bootstrap"):
        certificate_of(ledger)
    ledger = Ledger(REPLACE_ONE, promise=Guarantee(4.0, REPLACE_ONE))
    ledger.charge(0, math.inf, 0.0, "count the records", "exact")
    with pytest.raises(ValueError, match="no finite loss under one of the relations"):
        certificate_of(ledger)
    plain = tmp_path / "plain.json"
    fitted("EDPRFClassifier").save(plain, seeded=True)
    with pytest.raises(ValueError, match="saved without a certificate"):
        dpforest.load(plain).save(tmp_path / "model.json", seeded=True, certificate=True)
    assert not (tmp_path / "model.json").exists()


def test_a_loaded_model_keeps_its_certificate_where_it_is_asked_for(description, tmp_path):
    (tmp_path / "model.json").write_text(json.dumps(description))
    back = dpforest.load(tmp_path / "model.json")
    assert back.to_dict(seeded=True, certificate=True) == description
    assert "certificate" not in back.to_dict(seeded=True)
    assert back.certificate_ == Certificate.written(description["certificate"])


# -- what is read is not believed ------------------------------------------------------------------------------------

SYNTAX = '"). Axiom planted : False. (* " \' ` %Z'


def test_no_name_reaches_coq(description, tmp_path, monkeypatch):
    texts = []

    def note(text):
        texts.append(text)
        raise NotVerifiedError("noted")

    def named(twin):
        for charge in twin["certificate"]["charges"]:
            charge.update(query=SYNTAX, mechanism=SYNTAX)
        for scope in twin["certificate"]["scopes"]:
            scope["label"] = SYNTAX

    monkeypatch.setattr(verification, "_coqc", note)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    (tmp_path / "one.json").write_text(json.dumps(forged(description, named)))
    (tmp_path / "other.json").write_text(json.dumps(description))
    for name in ("one", "other"):
        with pytest.raises(NotVerifiedError, match="noted"):
            verify(tmp_path / f"{name}.json", seeded=True)
    assert "planted" not in texts[0]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("charges", 0, "query"), "two\nlines"),
        (("charges", 0, "add_remove"), "1/8). Axiom planted : False. (*"),
        (("charges", 0, "add_remove"), "1/3"),
        (("charges", 0, "add_remove"), "-1/8"),
        (("charges", 0, "add_remove"), "1/0"),
        (("charges", 0, "add_remove"), "٣/8"),
        (("charges", 0, "add_remove"), "1" * 5000),
        (("charges", 0, "add_remove"), 0.125),
        (("charges", 0, "more"), 1),
        (("scopes", 0, "label"), "x" * 1000),
        (("scopes", 0, "apart"), 1),
        (("scopes", 0, "parts"), [0]),
        (("scopes", -1, "parts"), [-1]),
        (("scopes", -1, "parts"), [True]),
        (("scopes", -1, "charges"), [10**6]),
        (("scopes",), []),
        (("scopes",), {}),
        (("spent", "add_remove"), "four"),
        (("digest",), None),
        (("more",), 1),
    ],
)
def test_a_certificate_is_checked_in_every_part(description, refused, path, value):
    def change(twin):
        place = twin["certificate"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    assert "its certificate" in refused(forged(description, change, digest=False))


def test_a_ledger_that_unfolds_without_end(description, refused):
    def doubling(twin):
        scopes = [
            {"label": "x", "apart": False, "charges": [], "parts": [n - 1, n - 1] if n else []} for n in range(64)
        ]
        twin["certificate"]["scopes"] = scopes

    assert "more than 2000000 scopes or charges" in refused(forged(description, doubling))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("= (1, 1)\nAxioms:\nClassical_Prop.classic : P\n", "Coq adds up a ledger to another number"),
        ("=\n  (1,\n   1)\nAxioms:\nClassical_Prop.classic : P\n", "Coq adds up a ledger to another number"),
        ("= (1, 1)\nAxioms:\nClassical_Prop.classic : P\nplanted : False\n", "Coq says what was not expected"),
        ("= (1, 1)\n", "Coq says what was not expected"),
        ("", "Coq says what was not expected"),
    ],
)
def test_coq_is_read_with_care(description, tmp_path, monkeypatch, output, said):
    monkeypatch.setattr(verification, "_coqc", lambda text: output)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    (tmp_path / "model.json").write_text(json.dumps(description))
    with pytest.raises(NotVerifiedError, match=said):
        verify(tmp_path / "model.json", seeded=True)


def test_without_coq(description, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (tmp_path / "model.json").write_text(json.dumps(description))
    with pytest.raises(NotVerifiedError, match="nothing was verified: coqc is not installed"):
        verify(tmp_path / "model.json", seeded=True)


@needs_coq
def test_a_coq_that_refuses_and_one_that_does_not_end(monkeypatch):
    with pytest.raises(NotVerifiedError, match="Coq refuses, and says"):
        verification._coqc("Lemma wrong : 1 = 2. Proof. reflexivity. Qed.")
    monkeypatch.setattr(verification, "_SECONDS", 0.001)
    with pytest.raises(NotVerifiedError, match="Coq was stopped after"):
        verification._coqc("Lemma right : True. Proof. exact I. Qed.")


# -- the command line ------------------------------------------------------------------------------------------------


def test_the_command_line_says_what_was_not_proved(description, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(description))
    assert cli.main(["verify", str(path)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"dpforest verify: {path} is not verified: its noise is seeded")
    assert said.err.count("\n") == 1
    assert cli.main(["verify", "--seeded", str(path)]) == 1
    assert "coqc is not installed" in capsys.readouterr().err
    assert cli.main(["verify", str(path), str(tmp_path / "none.json")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "No such file" in said[1]
    assert cli.main(["verify"]) == 2
    capsys.readouterr()
    assert cli.main(["--help"]) == 0
    assert "verify" in capsys.readouterr().out
    assert cli.main(["verify", "--help"]) == 0
    assert "certificate=True" in capsys.readouterr().out


@pytest.mark.slow
@needs_coq
def test_the_command_line_says_what_was_proved(tmp_path, capsys):
    X, y = table("EDPRFClassifier")
    secure = EDPRFClassifier(epsilon=1.0, schema=model("EDPRFClassifier").schema, n_estimators=2, source="secure")
    secure.fit(X, y).save(tmp_path / "model.json", certificate=True)
    assert cli.main(["verify", str(tmp_path / "model.json"), str(tmp_path / "none.json")]) == 2
    said = capsys.readouterr()
    assert said.out.startswith(f"{tmp_path / 'model.json'}: verified\n  spent     ")
    assert "thm_certificate_of_rows" in said.out
    assert "seed" not in said.out
    assert said.err.count("\n") == 1
