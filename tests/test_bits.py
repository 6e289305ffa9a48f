"""The samplers of tests/formal/Bits.v, BitsFlip.v, Landing.v: in Coq, transcribed, as they ship, on the same bits."""

import re
import shutil

import numpy as np
import pytest

from dpforest.chance.exact import _FEW, Exact
from tests import bits, coq, not_run

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason=not_run.COQ)
BITS = coq.FORMAL / "Bits.v"


@pytest.fixture(scope="module")
def question():
    return bits.asked(20_000, seed=5)


@pytest.mark.claim("thm-exact-draws", "lem-lazy-uniform")
def test_the_proved_coin_is_the_one_that_ships(question):
    """Value for value; ``make formal`` compares a million."""
    coins, read = bits.proved(*question)
    assert None not in coins
    assert bits.shipped(*question) == (coins, read)
    assert bits.shipped(*question, size=1) == bits.shipped(*question, size=_FEW) == (coins, read)  # one by one
    assert read > 20  # at boundaries a second word is taken
    assert 0.2 < np.mean(coins) < 0.8


@pytest.mark.parametrize("lost", [1, 1 << 20, 1 << 63])
def test_a_coin_that_forgets_a_bit_is_noticed(question, lost):
    """Even the last of 64: some words lie next to the boundary."""

    def forgetful(base, a, d, digits, words):
        return bits.heads(base, a, d, digits, (word & ~lost for word in words))

    assert bits.shipped(*question)[0] != bits.proved(*question, coin=forgetful)[0]


@pytest.mark.claim("thm-exact-draws", "lem-lazy-uniform")
def test_the_proved_geometric_number_is_the_one_that_ships():
    """Value for value, at the ends of numbers too."""
    question = bits.asked_to_wait(1000, seed=6)
    numbers = bits.proved_waits(*question)
    assert None not in numbers
    assert bits.shipped_waits(*question) == numbers  # one by one
    assert bits.shipped_waits(*question, draw=Exact._waiting) == numbers  # as arrays
    assert len(set(numbers)) > 20


def test_a_geometric_number_that_forgets_a_bit_is_noticed():
    question = bits.asked_to_wait(1000, seed=6)

    def forgetful(base, a, d, digits, looks, words):
        return bits.waiting(base, a, d, digits, looks, (word & ~1 for word in words))

    assert bits.shipped_waits(*question) != bits.proved_waits(*question, number=forgetful)


@pytest.fixture(scope="module")
def choices():
    asked = bits.asked_to_choose(2000, seed=7)
    return asked, {kind: bits.shipped_choices(asked, kind) for kind in bits.LAWS}


@pytest.mark.claim("thm-exact-draws")
@pytest.mark.parametrize("kind", bits.LAWS)
def test_the_proved_selection_is_the_one_that_ships(choices, kind):
    """Value for value, and word for word, at boundaries of coins, of weights and of the choice too."""
    asked, shipped = choices[0], choices[1][kind]
    assert bits.proved_choices(asked, kind) == shipped
    firsts = [1 + (kind == "permute-and-flip") * sum(score > -np.inf for score in scores) for scores, *_ in asked]
    further = np.array([read for _, read in shipped]) > firsts
    for planted in {"permute-and-flip": (0, 1), "exponential": (2,)}[kind]:
        assert further[planted::4].mean() > 0.1
    assert {answer for answer, _ in shipped} == set(range(10))


def last_word_taken(base, k, words):
    return next(iter(words)) % k


def any_word_at_most_the_limit(base, k, words):
    return next((word % k for word in words if word <= base - base % k), None)


def by_the_top_of_the_word(base, k, words):
    return next((word * k // base for word in words if word < base - base % k), None)


def the_first_place(base, k, words):
    return 0


def coin_without_its_last_bit(base, a, d, digits, words):
    return a == 0 or bits.heads(base, a, d, digits, (word & ~1 for word in words))


def of_another_weight(a, d, k):
    return bits.exp_bounds(2 * a, d, k)


def below_or_at(base, least, most, unit, j, low):
    return True if low * unit <= least * base**j else False if most * base**j <= low * unit else None


#: Lines of a program, and what is wrong in their place.
WRONG_LINES = [
    ("permute-and-flip", "chosen", last_word_taken),
    ("permute-and-flip", "chosen", any_word_at_most_the_limit),
    ("permute-and-flip", "chosen", by_the_top_of_the_word),
    ("permute-and-flip", "chosen", the_first_place),
    ("permute-and-flip", "tossed", coin_without_its_last_bit),
    ("permute-and-flip", "tossed", bits.heads),  # the best candidate's coin is tossed like any other
    ("exponential", "weight_bounds", of_another_weight),
    ("exponential", "below", below_or_at),
]


@pytest.mark.parametrize(("kind", "line", "wrong"), WRONG_LINES, ids=lambda part: getattr(part, "__name__", part))
def test_a_selection_with_a_wrong_line_is_noticed(choices, monkeypatch, kind, line, wrong):
    monkeypatch.setattr(bits, line, wrong)
    assert bits.proved_choices(choices[0], kind) != choices[1][kind]


def transcribed(base, a, d, per, words):
    return bits.heads(base, a, d, lambda j: per * j + 20, words)


def coq_coins(folder, cases):
    """What Coq computes of these: a base, a fraction, and words."""
    lines = [
        f"Eval vm_compute in heads {base} {a} {d} (fun j => ({per} * j + 20)%nat) [{'; '.join(map(str, words))}]."
        for base, a, d, per, words in cases
    ]
    head = f"From Coq Require Import ZArith List.\nFrom {coq.NAME} Require Import Bits.\nImport ListNotations.\n"
    said = coq.coqc(folder, "Asked", head + "Open Scope Z_scope.\n" + "\n".join(lines) + "\n")
    said = re.findall(r"= (Some true|Some false|None)\n", said)
    assert len(said) == len(cases)
    return [{"Some true": True, "Some false": False, "None": None}[word] for word in said]


@pytest.mark.slow
@needs_coq
@pytest.mark.claim("thm-exact-draws", "lem-lazy-uniform")
def test_coq_computes_what_its_transcription_does(tmp_path):
    """On bits and on bytes, up to the word that decides, and on one word less."""
    coq.coqc(tmp_path, "Bits", BITS.read_text())
    rng, cases = np.random.default_rng(3), []
    for base, per in [(2, 1), (256, 8)]:
        for a, d in [(0, 1), (1, 3), (1, 1 << 30), (7, 2), (355, 113), (12, 1)]:
            for _ in range(8):
                words = rng.integers(base, size=40).tolist()
                size = next(n for n in range(1, 41) if transcribed(base, a, d, per, words[:n]) is not None)
                cases += [(base, a, d, per, words[:n]) for n in (size - 1, size, size + 2)]
    expected = [transcribed(*case) for case in cases]
    assert {True, False, None} == set(expected)
    assert coq_coins(tmp_path, cases) == expected


@pytest.mark.slow
@needs_coq
@pytest.mark.claim("thm-exact-draws", "lem-lazy-uniform")
def test_coq_computes_the_numbers_that_its_transcription_does(tmp_path):
    """On bits and on bytes, up to the word that decides, and on one word less."""
    coq.coqc(tmp_path, "Bits", BITS.read_text())
    rng, cases, asked, expected = np.random.default_rng(4), [], [], []

    def number(base, a, d, per, words):
        return bits.waiting(base, a, d, lambda j: per * j + 20, lambda j: 3 * j, words)

    for base, per in [(2, 1), (256, 8)]:
        for a, d in [(1, 3), (7, 2), (355, 113), (1, 1)]:
            for _ in range(6):
                words = rng.integers(base, size=40).tolist()
                size = next(n for n in range(1, 41) if number(base, a, d, per, words[:n]) is not None)
                cases += [(base, a, d, per, words[:n]) for n in (size - 1, size, size + 2)]
    for base, a, d, per, words in cases:
        listed = "; ".join(map(str, words))
        digits, looks = f"(fun j => ({per} * j + 20)%nat)", "(fun j => (3 * j)%nat)"
        asked.append(f"Eval vm_compute in waiting {base} {a} {d} {digits} {looks} [{listed}].\n")
        answer = number(base, a, d, per, words)
        expected.append("None" if answer is None else f"Some {answer}%nat")
    head = f"From Coq Require Import ZArith List.\nFrom {coq.NAME} Require Import Bits.\nImport ListNotations.\n"
    said = coq.coqc(tmp_path, "Asked", head + "Open Scope Z_scope.\n" + "".join(asked))
    assert re.findall(r"= (Some \d+%nat|None)\n", said) == expected
    assert len(set(expected)) > 4


FLIPS, LANDING = coq.FORMAL / "BitsFlip.v", coq.FORMAL / "Landing.v"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all is compiled that selections on words need."""
    made = tmp_path_factory.mktemp("flips")
    for name in ["Law", "Privacy", "Selection", "Scores", "PermuteAndFlip", "DrawAndFlip", "Bits"]:
        coq.coqc(made, name, coq.files()[name].read_text())
    return made


def coq_list(items):
    return f"[{'; '.join(map(str, items))}]"


def coq_exponents(exponents):
    return " ".join(f"(fun s => nth s {coq_list(side)} 0)" for side in zip(*exponents, strict=True))


@pytest.mark.slow
@needs_coq
@pytest.mark.claim("thm-exact-draws")
def test_coq_computes_the_selections_that_its_transcription_does(folder):
    """On words of 3 bits and on bytes, with enough words and with too few, of each one's own or from one stream."""
    rng, asked, expected = np.random.default_rng(8), [], []
    for base, per in [(8, 3), (256, 8)] * 20:
        exponents = [(int(rng.integers(9)), int(rng.integers(1, 5))) for _ in range(rng.integers(6))]
        exponents.insert(int(rng.integers(len(exponents) + 1)), (0, 1))
        rows = rng.integers(base, size=(len(exponents), rng.integers(1, 5))).tolist()
        words = rng.integers(max(base - 20, 0), base, size=rng.integers(4)).tolist()
        stream = rng.integers(base, size=len(exponents) + rng.integers(7)).tolist()
        own = bits.flipped(base, exponents, lambda j, per=per: per * j + 20, rows, words)
        shared = bits.streamed(base, exponents, lambda j, per=per: per * j + 20, stream)
        few = [*[exponent for exponent in exponents if exponent[0]][:2], (0, 1)]  # Coq bounds each weight many times
        landed = bits.landing(base, few, lambda j: 3 * j + 6, words)
        expected += ["None" if answer is None else f"Some {answer}%nat" for answer in (own, shared, landed)]
        program = f"{base} {coq_exponents(exponents)} (fun j => ({per} * j + 20)%nat)"
        asked += [
            f"flipped {program} (seq 0 {len(rows)}) {coq_list(map(coq_list, rows))} {coq_list(words)}",
            f"read_from (streamed {program} {len(stream)} (seq 0 {len(rows)})) {coq_list(stream)}",
            f"landing {base} {coq_exponents(few)} (fun j => (3 * j + 6)%nat) {len(few)} {coq_list(words)}",
        ]
    coq.coqc(folder, "BitsFlip", FLIPS.read_text())
    coq.coqc(folder, "Landing", LANDING.read_text())
    head = f"From Coq Require Import ZArith List.\nFrom {coq.NAME} Require Import Bits BitsFlip Landing.\n"
    questions = "".join(f"Eval vm_compute in {question}.\n" for question in asked)
    said = coq.coqc(folder, "Asked", head + "Import ListNotations.\nOpen Scope Z_scope.\n" + questions)
    assert re.findall(r"= (Some \d+%nat|None)\n", said) == expected
    assert min(len(set(expected[start::3])) for start in range(3)) > 3


#: What stands in the file, and what is wrong in its place: the theorems' proofs no longer go through.
WRONG = {
    "a word forgotten": ("let low := (low * b + w)%Z in", "let low := (low * b)%Z in"),
    "the end of the cell forgotten": ("((low + 1) * unit j <=?", "(low * unit j <=?"),
    "rounded down for up": ("Z.min one (hi * hi / one + 1))%Z.\nFixpoint", "Z.min one (hi * hi / one))%Z.\nFixpoint"),
    "one squaring too few": ("| S k => squarings one k (squared one pair)", "| S k => squarings one k pair"),
    "one too many": ("Some false => Some k | None => None", "Some false => Some (S k) | None => None"),
    "no words left open": (
        "+ undecided base decide n.\nProof.\n  pose proof (size_pos n) as Hs. pose proof (law",
        ".\nProof.\n  pose proof (size_pos n) as Hs. pose proof (law",
    ),
}


@pytest.mark.slow
@needs_coq
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_sampler_has_no_proof(tmp_path, wrong):
    text = BITS.read_text()
    right, instead = WRONG[wrong]
    assert text.count(right) == 1
    with pytest.raises(ValueError, match="does not compile"):
        coq.coqc(tmp_path, "Bits", text.replace(right, instead))


#: Each in the program, where it stands first.
WRONG_SELECTIONS = {
    "heads for tails": (FLIPS, "Some false, Some kept => Some kept", "Some false, Some kept => Some (s :: kept)"),
    "the best candidate's coin always tails": (FLIPS, "then Some true else heads", "then Some false else heads"),
    "no word passed over": (FLIPS, "if (w <? b - b mod Z.of_nat k)%Z", "if (w <? b)%Z"),
    "one word too many": (FLIPS, "if (w <? b - b mod Z.of_nat k)%Z", "if (w <=? b - b mod Z.of_nat k)%Z"),
    "never the last place": (FLIPS, "match chosen (length kept) words", "match chosen (pred (length kept)) words"),
    "a word read twice": (FLIPS, "=> read_from (next w) rest", "=> read_from (next w) stream"),
    "a word for two draws": (FLIPS, "(choice_from n w))", "(choice_from n (hd 0%Z firsts)))"),
    "a choice that is never open": (FLIPS, "2 / INR base ^ n) + (1 / 2) ^ n.", "2 / INR base ^ n)."),
    "an end with the lower bounds only": (
        LANDING,
        "(snd (ends j r) * snd (ends j m))%Z",
        "(fst (ends j r) * snd (ends j m))%Z",
    ),
    "an end of the sum's lower bound": (
        LANDING,
        "(fst (ends j r) * fst (ends j m))%Z",
        "(fst (ends j r) * snd (ends j m))%Z",
    ),
    "one end too few": (LANDING, "passed (pred m) j low", "passed (pred (pred m)) j low"),
}


@pytest.mark.slow
@needs_coq
@pytest.mark.parametrize("wrong", WRONG_SELECTIONS)
def test_a_wrong_selection_has_no_proof(folder, wrong):
    file, right, instead = WRONG_SELECTIONS[wrong]
    text = file.read_text()
    assert right in text
    with pytest.raises(ValueError, match="does not compile"):
        coq.coqc(folder, "Wrong", text.replace(right, instead, 1))
