"""The core, checked by Coq: every listed theorem compiles, says what is stored, and rests on the reals alone."""

import re
import shutil

import pytest

from tests import claims, coq

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason=f"coqc is not installed: {coq.INSTALL}")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formal")
    coq.compile_all(folder)
    return folder


@pytest.mark.slow
@needs_coq
def test_the_theorems_say_what_is_stored_and_rest_on_the_reals(compiled):
    said = coq.statements(compiled)
    assert said == coq.STATEMENTS.read_text(), "a statement has changed: look, and then `python -m tests.coq --store`"
    assert coq.assumptions(said) == coq.ALLOWED


@pytest.mark.slow
@needs_coq
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("Path", "two_paths_cost u u' g t <= eps", "path_cost AddRemove u g t <= eps"),  # the pair of paths forgotten
        ("Selection", "private N (rate * R)", "private N (rate * R / 2)"),
        ("Noise", "private N (IZR S * rate)", "private N rate"),  # a histogram of which two counts change
        ("Forest", "(forall c x, sum beta (trees c x) <= eps)", "(forall c x k, In k (trees c x) -> beta k <= eps)"),
    ],
)
def test_a_stronger_theorem_does_not_compile(compiled, tmp_path, file, right, wrong):
    """Mutants of statements: a hypothesis weakened, or a bound made smaller, and the proof no longer goes through."""
    for made in compiled.glob("*.vo"):
        shutil.copy(made, tmp_path)
    text = (coq.FORMAL / f"{file}.v").read_text()
    assert text.count(right) >= 1
    at = text.rindex(right)
    (tmp_path / f"{file}.v").write_text(text[:at] + wrong + text[at + len(right) :])
    with pytest.raises(ValueError, match=f"{file}.v does not compile"):
        coq.coqc(tmp_path, file)


def test_nothing_is_taken_for_true():
    for path in coq.FORMAL.glob("*.v"):
        assert coq.forbidden(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "Lemma x : False. Admitted.", "Axiom x : False.", "Parameter x : nat.", "(* *) Conjecture x : False.",
        "Program Definition x : False := _. Admit Obligations.", "Section A. End A. Hypothesis x : False.",
        "Variable x : False.", "Context (x : False).", "Declare Instance x : A.", "Primitive x := #int63_add.",
        "Section A. Definition Section := 0. End A. Hypothesis x : False.",  # a name opens no section
        "#[local] Variables x y : False.", "Section A. End A.\nLocal Hypotheses x y : False.",
        'Definition a := "b". Axiom x : False. Definition c := "d".',
        "Lemma x : True. auto... Context (y : False).",
    ],
)  # fmt: skip
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
    text = "Axiom planted : False.\nTheorem bad : 1 = 2.\nProof. destruct planted. Qed.\n"
    (tmp_path / "Planted.v").write_text(text + "Theorem good : 1 = 1.\nProof. reflexivity. Qed.\n")
    coq.coqc(tmp_path, "Planted")
    assert coq.assumptions(coq.statements(tmp_path)) == {"planted"}
