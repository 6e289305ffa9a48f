"""The core, checked by Coq: every listed theorem compiles, says what is stored, and rests on the reals alone."""

import math
import re
import shutil
import subprocess
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import zoo
from test_contract import KINDS, fitted, model, table

from dpforest.privacy import RELATIONS
from tests import coq, not_run
from tools import claims

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason=not_run.COQ)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The folder of the compiled development, and what Coq printed."""
    folder = tmp_path_factory.mktemp("formal")
    return folder, coq.compile_all(folder)


@pytest.mark.slow
@needs_coq
def test_the_theorems_say_what_is_stored_and_rest_on_the_reals(compiled):
    _, said = compiled
    assert said == coq.STATEMENTS.read_text(), "a statement has changed: look, and then `python -m tests.coq --store`"
    assert coq.assumptions(said) == coq.ALLOWED


#: A file, what stands in it, what is stronger in its place, and the theorem whose proof then no longer goes through.
STRONGER = [
    (  # the pair of paths forgotten
        "Path", "(forall u u' t, two_paths_cost u u' g t <= eps)", "(forall u t, path_cost AddRemove u g t <= eps)",
        "thm_path_replace_one",
    ),
    ("Selection", "private N (rate * R)", "private N (rate * R / 2)", "thm_selection_range_exponential"),
    ("Noise", "private N (IZR S * rate)", "private N rate", "thm_geometric"),  # a histogram of which two counts change
    (  # formula (10) for a leaf that has already asked
        "Learners", "cost rel k <= b - sum e (seq 1 (level v - 1)) - s",
        "cost rel k <= b - sum e (seq 1 (level v - 1))", "levels_keep",
    ),
    (
        "Impurities", "range add_remove q 1 /\\ range replace_one q 2.",
        "range add_remove q 1 /\\ range replace_one q 1.", "thm_two_masses_score",
    ),
    # the supremum over all sizes, which four records do not reach
    ("Sharp", "-> 2 * (3 / 2) <= b", "-> 4 <= b", "thm_gini_sharp"),
    (
        "Sharp", "_one (fun D c => count (fun x : nat => x) c D) b -> 2",
        "_one (fun D c => count (fun x : nat => x) c D) b -> 3", "thm_majority_sharp",
    ),
    (  # a rate for add-remove
        "Example", "(score 2 class 2 code) 2 4 (/ 8)", "(score 2 class 2 code) 2 4 (/ 4)", "thm_edprf_of_a_stump",
    ),
    (
        "Forest", "(forall c x, sum beta (trees c x) <= eps)", "(forall c x k, In k (trees c x) -> beta k <= eps)",
        "thm_forest",
    ),
    (  # a monotone score's rate
        "Boosting", "(one_gap (in_records unit (sides r))) D) 2 4 (b / (2 * L))",
        "(one_gap (in_records unit (sides r))) D) 2 4 (b / L)", "table_private",
    ),
    (  # rounds whose tables are free
        "Boosting", "spends (left - b) (next os)", "spends left (next os)", "rounds_private",
    ),
    (  # gradients that count for one record
        "Boosting", "cls p) (both_sides classes) (2 * finest) twice_pos b",
        "cls p) (both_sides classes) finest Hfinest b", "class_measure_private",
    ),
    ("Sharp", "(range replace_one q b -> 4 <= b)", "(range replace_one q b -> 5 <= b)", "lem_soft_gap_sharp"),
    (  # an account that refunds
        "Account", "account (eps - e) (delta - d) (next (Some o))", "account eps (delta - d) (next (Some o))",
        "thm_account",
    ),
    (  # many rows at the price of one
        "Persons", "private person_add_remove (INR k * alpha)", "private person_add_remove alpha", "thm_persons",
    ),
    (  # a replaced record that changes its part at the price of one that stays
        "Certificate", "(first, Z.max stays (first + second))", "(first, stays)", "cost_keeps",
    ),
    (  # parts of one scope taken for disjoint
        "Certificate", "Closed => True | Shared => apart = false", "Closed => True | Shared => True", "cost_keeps",
    ),
    (  # any k rows of a person at the price of one
        "Certificate", "at_most AddRemove (Z.of_nat k) l", "at_most AddRemove 1 l", "thm_certificate_of_persons",
    ),
    (  # a group at the price that it has in losses
        "Concentrated", "(INR k * INR k * rho) M.", "(INR k * rho) M.", "lem_concentrated_group",
    ),
    ("Ranges", "concentrated N (eta * eta / 8) M.", "concentrated N (eta * eta / 9) M.", "lem_range_concentrated"),
    (  # a loss taken for a range of its own size
        "Ranges", "concentrated N (eps * eps / 2) M.", "concentrated N (eps * eps / 8) M.",
        "lem_range_concentrated_loss",
    ),
    (  # the range of a monotone score, where it is not known to be one
        "Ranges", "bounded_range N (rate * R) (exponential", "bounded_range N (rate * R / 2) (exponential",
        "thm_exponential_bounded_range",
    ),
    (  # a delta that is too small
        "Divergence", "(/ (a - 1) * exp (a * ln", "(/ a * exp (a * ln", "lem_concentrated_conversion",
    ),
    (  # a bound from below that is rounded up
        "Delta", "squares bits k (Z.shiftr (low * low) bits)", "squares bits k (Z.shiftr (low * low) bits + 1)",
        "squares_below",
    ),
    (  # the conversion of another rho
        "Delta", "(n # m) eps delta a tau = true -> forall (X O", "(0 # m) eps delta a tau = true -> forall (X O",
        "thm_certificate_delta_of_rows",
    ),
    (  # any j rows of a person at the rho of a row for each
        "Delta", "at_most AddRemove (Z.of_nat j * Z.of_nat j) l", "at_most AddRemove (Z.of_nat j) l",
        "thm_certificate_delta_of_persons",
    ),
    (  # a place between two whole numbers taken for the largest
        "Gaussian", "bell_sum rate c <= bell_sum rate 0.", "bell_sum rate c <= bell_sum rate (/ 2).",
        "thm_discrete_gaussian_largest",
    ),
    (  # half of the variance
        "Gaussian", "conc_on anywhere (rate * (", "conc_on anywhere (rate / 2 * (", "gaussian_conc",
    ),
    ("Gaussian", "<= rho) ->", "<= 2 * rho) ->", "thm_discrete_gaussian"),
    ("Rejection", "-> 0 < share <= 1", "-> 0 < share < / 2", "lem_discrete_gaussian_rejection"),
    (
        "Rhos", "(forall c x, sum beta (trees c x) <= rho)", "(forall c x k, In k (trees c x) -> beta k <= rho)",
        "thm_forest_delta",
    ),
    (  # a query of all trees at the rho of one place of a record
        "Rhos", "(v <> [] \\/ forall D D', q D = q D') /\\ forall o, sound_rho",
        "(True \\/ forall D D', q D = q D') /\\ forall o, sound_rho", "forest_sees_one",
    ),
    (  # a record that is replaced at the price of one that comes
        "Rhos", "share_sums (2 * rate * (INR", "share_sums (rate * (INR", "thm_forest_delta_sums",
    ),
    ("Rhos", "sqrt (8 * b) / Rmax R' (2 * R)", "sqrt (8 * b) / R", "thm_forest_delta_selections"),
    (  # a selection at the rho of a smaller range
        "Drawn", "rate * eta * (rate * eta) / 8 <= rho", "rate * eta * (rate * eta) / 9 <= rho", "selected_conc",
    ),
    ("Drawn", "a * a / 2 <= alpha ->", "a * a / 8 <= alpha ->", "drawn_at_conc"),  # a loss taken for a range
    (  # an answer that moves as far as is charged where a record comes, and is free where one is replaced
        "Drawn", "numbers_cost replace_one rates numbers rho ->", "numbers_cost add_remove rates numbers rho ->",
        "drawn_at_conc",
    ),
    (  # gap and size of a replaced record at the rho of one that comes
        "BoostingRhos", "(gap_and_size part l) (4 * g * lambda * most).", "(gap_and_size part l) (lambda * most).",
        "lem_gap_and_size",
    ),
    (  # a selection under replace-one at the rate of add-remove
        "BoostingRhos", "(sqrt (8 * b) / (R * L)) score", "(sqrt (8 * b) / R) score", "chosen_concentrated",
    ),
    (  # rounds of a run that takes up the delta, whose tables are free
        "BoostingRhos", "if in_rho then keeps_to true (rho - b) eps (next os)",
        "if in_rho then keeps_to true rho eps (next os)", "concentrated_where_used",
    ),
    (  # a loss before the delta is taken up, taken for a range of its own size
        "BoostingRhos", "else keeps_to used (rho - b * b / 2) (eps - b) (next o)",
        "else keeps_to used (rho - b * b / 8) (eps - b) (next o)", "concentrated_where_used",
    ),
    (  # runs that do not take up the delta, at any loss
        "BoostingRhos", "if used then 0 <= rho else 0 <= eps", "if used then 0 <= rho else True",
        "private_where_unused",
    ),
    (  # gradients that count for one record
        "BoostingRhos", "(2 * (INR finest * INR finest)) (twice_square_pos finest Hfinest) b",
        "(INR finest * INR finest) (square_pos finest Hfinest) b", "class_halves",
    ),
    (  # any k rows of a person at k times the rho of a row
        "BoostingRhos", "(rho / (INR k * INR k)) (eps / INR k) (p n)", "(rho / INR k) (eps / INR k) (p n)",
        "thm_private_boosting_delta_persons_numbers",
    ),
    (  # levels that keep to nothing
        "LearnersRhos", "rho_calibrated l /\\ levels rel e d b 0 roots (spending l)", "rho_calibrated l /\\ True",
        "thm_forest_delta_levels",
    ),
    (  # a selection of a learner at the rho of a smaller range
        "LearnersRhos", "rate * R' * (rate * R') / 8", "rate * R' * (rate * R') / 9", "rho_question_sound",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def refused(compiled):
    """What Coq says to each of these files, before the theorem and to it: one process, which goes on after errors."""
    folder, _ = compiled
    asked = f"From {coq.NAME} Require {coq.CORE}.\nSet Silent.\n"
    for file, right, wrong, theorem in STRONGER:
        text = coq.files()[file].read_text()
        before, found, after = text.rpartition(right)
        assert found
        text = before + wrong + after
        start = re.search(rf"^(Theorem|Lemma) {theorem}\b", text, flags=re.M).start()
        cut = f"{text[:start]}\nCheck I.\n{text[start : text.index('Qed.', start)]}Qed.\nCheck I.\nAbort All.\n"
        asked += coq.module("Tried", cut, f"{coq.CORE}.").replace("\nEnd Tried.", "\nReset Tried.")
    said = subprocess.run(
        ["coqtop", "-q", "-Q", ".", coq.NAME],
        cwd=folder,
        input=asked,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout.split("I\n     : True\n")
    assert len(said) == 2 * len(STRONGER) + 1
    return {case: (said[2 * at], said[2 * at + 1]) for at, case in enumerate(STRONGER)}


@pytest.mark.slow
@needs_coq
@pytest.mark.parametrize("case", STRONGER, ids=lambda case: case[-1])
def test_a_stronger_theorem_does_not_compile(refused, case):
    """Mutants of statements: a hypothesis weakened, or a bound made smaller, and the proof no longer goes through."""
    before, after = refused[case]
    assert "Error" not in before
    assert f"(in proof {case[-1]}): Attempt to save an incomplete proof" in after


def test_nothing_is_taken_for_true():
    for path in coq.files().values():
        assert coq.forbidden(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "Lemma x : False. Admitted.",
        "Axiom x : False.",
        "Parameter x : nat.",
        "(* *) Conjecture x : False.",
        "Program Definition x : False := _. Admit Obligations.",
        "Section A. End A. Hypothesis x : False.",
        "Variable x : False.",
        "Context (x : False).",
        "Declare Instance x : A.",
        "Primitive x := #int63_add.",
        "Section A. Definition Section := 0. End A. Hypothesis x : False.",  # a name opens no section
        "#[local] Variables x y : False.",
        "Section A. End A.\nLocal Hypotheses x y : False.",
        'Definition a := "b". Axiom x : False. Definition c := "d".',
        "Lemma x : True. auto... Context (y : False).",
    ],
)
def test_what_is_taken_for_true_is_found(text):
    assert coq.forbidden(text)
    assert not coq.forbidden(f"(* {text} (* and *) more *)")


def test_a_string_opens_no_comment():
    assert coq.forbidden('Definition a := "(*". Axiom x : False. Definition b := "*)".')
    assert not coq.forbidden('(* "*)" Axiom x *) Definition a := "Axiom".')


def test_hypotheses_of_a_section_are_none():
    text = "Section A. Hypothesis x : False. Section B. Variable y : nat. End B. Context (z : y). End A."
    assert coq.forbidden(text) == []


def test_every_listed_theorem_stands_in_its_file_and_is_a_claims():
    ids = claims.scan().book
    for theorem in coq.theorems():
        assert theorem.line, f"{theorem.file}.v has no theorem {theorem.name}"
        assert theorem.claim in ids
        assert theorem.name.startswith(theorem.claim.replace("-", "_"))
    assert len({theorem.name for theorem in coq.theorems()}) == len(coq.theorems())


def test_what_is_stored_is_of_the_listed_theorems():
    stored = re.findall(r"^@?(\w+)\n     :", coq.STATEMENTS.read_text(), flags=re.M)
    assert stored == [theorem.name for theorem in coq.theorems()]


def test_assumptions_are_read():
    said = "@one\n     : True\ntwo\n     : True\nAxioms:\nA.b : P\nC.d\n  : Q -> R\nplanted\n  : False\n"
    assert coq.assumptions(said) == {"A.b", "C.d", "planted"}


@needs_coq
def test_an_assumption_of_any_theorem_is_printed(tmp_path, monkeypatch):
    """Of two listed theorems the first rests on a planted axiom."""
    listed = [coq.Theorem("thm-a", name, "Planted", "") for name in ("bad", "good")]
    monkeypatch.setattr(coq, "theorems", lambda: listed)
    monkeypatch.setattr(coq, "FOLDERS", [tmp_path])
    text = "Axiom planted : False.\nTheorem bad : 1 = 2.\nProof. destruct planted. Qed.\n"
    (tmp_path / "Planted.v").write_text(text + "Theorem good : 1 = 1.\nProof. reflexivity. Qed.\n")
    assert coq.assumptions(coq.compile_all(tmp_path)) == {"planted"}


def test_hypotheses_are_refuted_by_mutants_of_the_zoo():
    """A theorem that is refuted without a hypothesis says which animal does it."""
    animals = {name for names in zoo.HYPOTHESES.values() for name in names}
    clauses = [theorem.clause for theorem in coq.theorems() if theorem.file == "Refuted"]
    named = [set(re.findall(r"\*([^*]+)\*", clause)) & animals for clause in clauses]
    assert len(named) >= 4
    assert all(len(names) == 1 for names in named)
    assert len(set.union(*named)) == len(named)


# -- the bridge: ledgers of real fits, as Coq terms -------------------------------------------------------------------


def forests_of(ledger):
    """What is charged to all records at once, and each forest: whether by coins, and the charges of each of its trees.

    A charge is a node, which is its path from the root of its tree, last turn first, and a loss under either relation,
    as fractions: what the ledger has are doubles.
    """
    kinds = np.repeat(ledger._kinds, [len(block) for block in ledger._parents])
    own, forests, trees = [Fraction(0), Fraction(0)], {}, {}
    paths: dict[int, tuple] = {}  # of each node: its tree, and the turns that lead to it
    turns = [0] * len(kinds)
    for scope, parent in enumerate(np.concatenate(ledger._parents)):  # a parent stands before its children
        if parent <= 0:  # the model, and its forests
            assert kinds[scope] in ("sequential", "assignment")
            assert scope or kinds[scope] == "sequential"
            forests[scope] = (kinds[scope] == "assignment", [])
            continue
        assert kinds[scope] == "partition"
        if parent in forests:
            trees[scope] = []
            forests[parent][1].append(trees[scope])
            paths[scope] = (scope,)
        else:
            tree, *path = paths[parent]
            paths[scope] = (tree, turns[parent], *path)
            turns[parent] += 1
    for entry in ledger._charges:
        for at, scope in enumerate(entry.scopes):
            losses = [Fraction(float(entry.costs[relation][at])) for relation in RELATIONS]
            if scope in forests:
                own = [mine + loss for mine, loss in zip(own, losses, strict=True)]
            else:
                tree, *path = paths[scope]
                trees[tree].append((path, *losses))
    return own, list(forests.values())


def asked_of_coq(own, forests):
    """A Coq command that computes both totals, in whole multiples of a unit; and the unit."""
    losses = [*own, *(loss for _, trees in forests for tree in trees for _, *pair in tree for loss in pair)]
    unit = Fraction(1, math.lcm(*(loss.denominator for loss in losses)))

    def listed(terms):
        return f"[{'; '.join(terms)}]"

    def charge(path, coming, replaced):
        return f"({listed(map(str, path))}%nat, ({int(coming / unit)}, {int(replaced / unit)}))"

    def total(mine, number):
        each = (f"forest_cost {str(by_coin).lower()} 0 (map {number} f{i})" for i, (by_coin, _) in enumerate(forests))
        return f"forest_cost false {int(mine / unit)} {listed(each)}"

    terms = (listed(listed(charge(*entry) for entry in tree) for tree in trees) for _, trees in forests)
    bound = "".join(f"let f{i} : list (list charge) := {term} in\n" for i, term in enumerate(terms))
    return f"Eval vm_compute in ({bound}({total(own[0], 'dearest')}, {total(own[1], 'dearest_pair')})).\n", unit


def computed(folder, asked):
    """What Coq answers to such commands, a pair for each."""
    head = f"From Coq Require Import ZArith List.\nFrom {coq.NAME} Require {coq.CORE}.\nImport {coq.CORE}.Bridge.\n"
    text = "".join(command for command, _ in asked)
    said = coq.coqc(folder, "Ledgers", f"{head}Import ListNotations.\nOpen Scope Z_scope.\n{text}")
    said = re.findall(r"= \((\d+),\s+(\d+)\)", said)
    assert len(said) == len(asked)
    return [(int(first) * unit, int(second) * unit) for (first, second), (_, unit) in zip(said, asked, strict=True)]


def agree(number, total):
    """A sum of doubles, each rounded, against the exact one."""
    return math.isclose(number, total, rel_tol=1e-12)


@cache
def ledger_fit(name):
    """A fit whose ledger Coq adds up, for which it goes through all pairs of paths of a tree, and the charges of each.

    So that takes the time of the cube of the charges, of which there are dozens: half of the default's.
    """
    few = {"n_bins": 4, "specialisations": 4, "interactions": 2}
    known = KINDS[name]().get_params()
    return model(name, **{option: value for option, value in few.items() if option in known}).fit(*table(name))


@pytest.mark.slow
@needs_coq
def test_coq_computes_what_every_learner_has_spent(compiled):
    """The dearest path, and pair of paths, of the ledger of a fit: Coq's exact number against the library's double."""
    pure = [name for name in KINDS if not model(name).promised_delta()]  # the theorem is on losses, not on rhos
    found = computed(compiled[0], [asked_of_coq(*forests_of(ledger_fit(name).ledger_)) for name in pure])
    for name, numbers in zip(pure, found, strict=True):
        fit = ledger_fit(name)
        assert fit.ledger_.delta == 0
        for relation, number in zip(RELATIONS, numbers, strict=True):
            assert agree(number, fit.ledger_.total(relation)), (name, relation)
        promised = numbers[RELATIONS.index(fit.guarantee_.relation)]
        assert promised <= fit.guarantee_.epsilon * (1 + 1e-12), name


@pytest.mark.slow
@needs_coq
def test_a_mutated_ledger_is_noticed(compiled):
    """A charge forgotten, at another node, made twice; trees that share records taken for trees that do not."""
    ledger = fitted("DiffPETsClassifier").ledger_
    own, forests = forests_of(ledger)
    ((by_coin, trees),) = [forest for forest in forests if forest[1]]
    assert not by_coin
    first, *others = trees
    (root,) = [entry for entry in first if entry[0] == []]
    rest = [entry for entry in first if entry != root]
    mutants = [
        (own, [(False, [rest, *others])]),
        (own, [(False, [[([7, 7], *root[1:]), *rest], *others])]),
        (own, [(False, [[root, root, *rest], *others])]),
        (own, [(True, trees)]),
    ]
    for numbers in computed(compiled[0], [asked_of_coq(*mutant) for mutant in mutants]):
        for relation, number in zip(RELATIONS, numbers, strict=True):
            assert not agree(number, ledger.total(relation))
