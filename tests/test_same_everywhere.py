"""The same bits on every machine: seeded models, ledgers, released files, predictions and exact audits.

Each test computes the digests in a process that another processor's code paths are forced on, and compares them with
the stored ones, which came from some other machine again.
"""

from __future__ import annotations

import json

import digests
import numpy as np
import pytest

OTHERS = [name for name in digests.CODE_PATHS if name != "here"]


def check(name: str) -> None:
    if not digests.can_take(name):
        pytest.skip(f"this processor has no {digests.NEEDS[name]}")


@pytest.mark.slow
@pytest.mark.parametrize("name", digests.CODE_PATHS)
def test_the_same_bits_on_every_code_path(name):
    check(name)
    stored, found = json.loads(digests.STORED.read_text()), digests.run(name)
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
        pytest.skip("nothing that NumPy, BLAS and the C library do on this machine can be switched off")
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

    learners = {name for name in dpforest.__all__ if hasattr(getattr(dpforest, name), "_grow")}
    assert learners == {learner for _, learner, _ in digests.fits()}
    names = [name for name, _, _ in digests.fits()]
    assert len(names) == len(set(names)) >= 104
