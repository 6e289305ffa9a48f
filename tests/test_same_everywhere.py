"""The same bits on every machine: seeded models, ledgers, released files, predictions and exact audits.

The digests are computed here, and in processes that another processor's code paths are forced on, and compared with the
stored ones, which came from some other machine again.
"""

from __future__ import annotations

import ast
import json

import digests
import numpy as np
import pytest
from test_floors import MODULES, planted

from tests import not_run

OTHERS = [name for name in digests.CODE_PATHS if name != "here"]


def check(name: str) -> None:
    if not digests.can_take(name):
        pytest.skip(not_run.needs(f"a processor with {digests.NEEDS[name]}", "another machine"))


@pytest.mark.slow
@pytest.mark.parametrize("name", digests.CODE_PATHS)
def test_the_same_bits_on_every_code_path(name):
    check(name)
    stored, found = json.loads(digests.STORED.read_text()), digests.digests() if name == "here" else digests.run(name)
    changed = sorted(key for key in stored.keys() | found.keys() if stored.get(key) != found.get(key))
    assert not changed, (
        f"{len(changed)} of {len(found)} digests on the code path {name!r} are not those of {digests.STORED.name}. "
        "If only here and there, something depends on the processor. If on all, models have changed: if they should, "
        "run 'python -m tests.digests --store' and say in CHANGELOG.md why"
    )


def test_the_code_paths_are_others():
    here = digests.run("here", "witness")
    others = {name: digests.run(name, "witness") for name in OTHERS if digests.can_take(name)}
    if all(found == here for found in others.values()):
        pytest.skip(not_run.needs("code paths that can be switched off", "another machine"))
    # one at least must move the elementary functions of NumPy, and one the sums of BLAS
    for what in ("np.exp", "BLAS"):
        assert any(found[what] != here[what] for found in others.values()), what


def test_a_digest_sees_the_last_bit():
    row = np.linspace(0, 1, 7)
    moved = row.copy()
    moved[3] = np.nextafter(moved[3], 1)
    assert digests.digest("a", row) == digests.digest("a", row.copy()) != digests.digest("a", moved)


def test_every_learner_has_digests():
    import dpforest

    learners = {name for name in dpforest.__all__ if hasattr(getattr(dpforest, name), "as_proved")}
    assert learners == {learner for _, learner, _ in digests.fits()}
    names = [name for name, _, _ in digests.fits()]
    assert len(names) == len(set(names)) >= 104


# -- what the library may not compute with ---------------------------------------------------------------------------

#: Functions of NumPy and ``math`` that are others on other processors, or add up in another order.
ELSEWHERE = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "power", "float_power", "pow", "cbrt",
    "hypot", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh", "erf", "gamma", "lgamma", "dot", "vdot",
    "inner", "tensordot", "einsum", "matmul", "linalg", "polynomial", "cov", "corrcoef",
}  # fmt: skip
#: Where they stand all the same, and why that decides nothing.
FINE = {
    "chance.exact": "believed only where no rounding of theirs can turn a draw round (thm-exact-draws)",
    "arithmetic.elementary": "a first guess, whose last bits do not matter",
    "counting.products": "whole numbers below 2^53, which add up exactly in any order",
    "curator.queries": "whole numbers of 64 bits, which no BLAS adds up",
    "audit.attacks.adversaries": "numbers that are shown",
    "audit.attacks.integer_program": "sparse products within an optimisation, and constants",
    "audit.report.primitives": "whole numbers below 2^53, which add up exactly in any order",
    "audit.sampling.bounds": "a p-value, a wealth: numbers that are shown",
    "privacy.vocabulary": "what persons of several rows are told",
    "study.experiments": "a log loss that is shown",
    "audit.sampling.empirical": "the length of a bar in a figure",
    "audit.foreign.call_audit": "losses of other libraries' calls, which are shown",
    "audit.foreign.recording": "noise of other libraries' calls, which is not released",
    "audit.sampling.ratios": "numbers that are shown",
    "audit.exact.hockey": "numbers that are shown",
    "inspect.effects": "how large an effect is, to be shown",
}


def elsewhere(module) -> list[str]:
    """Uses of what another processor computes otherwise."""
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.append(f"{module.name}:{node.lineno} {ast.unparse(node)}")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("np", "math") and node.attr in ELSEWHERE:
                found.append(f"{module.name}:{node.lineno} {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom) and node.module in ("math", "numpy", "numpy.linalg"):
            found += [f"{module.name}:{node.lineno} {alias.name}" for alias in node.names if alias.name in ELSEWHERE]
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name or "__init__")
def test_nothing_is_computed_by_what_a_processor_picks(module):
    found = elsewhere(module)
    if module.name in FINE:
        assert found, f"{module.name} needs no exception any more"
    else:
        assert not found, "use dpforest.arithmetic, or its spectral, or say in FINE why it decides nothing"


@pytest.mark.parametrize(
    "source",
    ["np.exp(x)", "math.log(x)", "a @ b", "np.linalg.eigh(a)", "from math import tanh", "np.einsum('i,i', a, b)"],
)
def test_the_rule_sees(source):
    assert elsewhere(planted("curator.sums", source))
    assert not elsewhere(planted("curator.sums", "exp(x) + np.sqrt(x) + np.add.reduce(a * b) + math.isinf(x)"))
