"""A zoo of mechanisms and learners, most of them broken on purpose: what an auditor is tested on.

Every animal states its claim, its true privacy loss and how that is known, and the layer of the auditor that must
catch it.  Three enclosures: ``CLASSICS`` are the mechanisms on which StatDP (Ding et al., CCS 2018) and DP-Sniper
(Bichsel et al., S&P 2021) report; ``BROKEN`` are the flaws of private tree learners, as the one step in which the
flaw sits and as learners on the library's curator; ``SOUND`` look like a broken one and are not.  Nothing of this
belongs in a library.  ``MUTANTS`` break one line each of a theorem with a delta.

Noise that must not betray itself lies on a public grid: a count plus a double from ``rng.laplace`` tells the count by
its low-order bits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from tqdm import tqdm

from dpforest.audit.exact.enumeration import ExactAudit, exact_audit
from dpforest.audit.exact.paths import path_audit
from dpforest.audit.grey.greybox import greybox
from dpforest.audit.sampling.empirical import empirical
from zoo.animal import EXACT, FLAWS, GREY_BOX, LAYERS, STATISTICAL, Animal
from zoo.classics import classics
from zoo.concentrated import CONTROLS, MUTANTS, Mutant
from zoo.learners import Sapling, learners, portrait
from zoo.steps import flaws

__all__ = [
    "BROKEN", "CLASSICS", "CONTROLS", "FLAWS", "HYPOTHESES", "LAYERS", "MUTANTS", "SOUND", "Animal", "Mutant",
    "Sapling", "classics", "examine", "flaws", "learners", "portrait", "replay", "rows",
]  # fmt: skip

CLASSICS = classics(0.1)
BROKEN, SOUND = (mechanisms_ + learners_ for mechanisms_, learners_ in zip(flaws(1.0), learners(1.0), strict=True))

#: Who breaks which line of *Requires* of thm-forest, and no other: at least one animal for each.
HYPOTHESES = {
    "Table": ["classes found in the data"],
    "Public steps": ["purity stop", "taller for more records"],
    "Own path": ["halves by rank"],
    "Own weight": ["weights that add up to four"],
    "Calibration": ["understated range", "one-sided rate under replace-one"],
    "Paths": ["epsilon per node", "one budget, two levels"],
    "Sharing": [
        "a formula for the budget",
        "trees of equal size",
        "records by position",
        "a bootstrap",
        "copies by key",
    ],
}


def replay(animal: Animal) -> ExactAudit:
    """The exact audit of a learner; one path at a time where trees are tall."""
    engine = path_audit if animal.estimator.max_depth > 1 else exact_audit
    return engine(animal.estimator, n_max=animal.n_max)


def examine(animal: Animal, *, n: int, confidence: float = 0.95, random_state=None, **options) -> dict:
    """What each layer says of an animal, as one row of a table.

    Parameters
    ----------
    animal : Animal
    n : int
        Draws per side for the statistical layer, and as many again for its choice of an event.
    confidence : float
        Of the statistical bound.
    random_state : None, int or Generator
    **options
        Of :func:`~dpforest.audit.sampling.empirical.empirical`, such as ``events``.

    Returns
    -------
    dict
        ``exact`` is None for a mechanism, ``grey box`` too; ``caught by`` lists the layers that refute the claim.
    """
    caught, exact, grey = [], None, None
    if animal.estimator is not None:
        audit = replay(animal)
        exact = audit.epsilon
        caught += [EXACT] * audit.violated
        accounts = greybox(animal.estimator, n_max=3, runs=4, max_pairs=10, random_state=random_state)
        grey = ", ".join(accounts.kinds) or "no finding"
        caught += [GREY_BOX] * accounts.violated
    sampled = empirical(
        animal.sample,
        list(animal.pairs),
        animal.claim,
        n=n,
        confidence=confidence,
        random_state=random_state,
        relation=animal.relation,
        **options,
    )
    caught += [STATISTICAL] * sampled.violated
    return {
        "name": animal.name, "kind": animal.kind, "flaw": animal.flaw, "sound": animal.sound, "claim": animal.claim,
        "true": animal.true_epsilon, "exact": exact, "grey box": grey, "bound": sampled.epsilon_lower,
        "p-value": sampled.p_value, "event": sampled.event, "pair": sampled.pair, **animal.published,
        "must be caught by": "" if animal.sound else animal.layer, "caught by": ", ".join(caught),
    }  # fmt: skip


def rows(
    animals: Iterable[Animal] = (*BROKEN, *SOUND),
    *,
    n: int = 20_000,
    confidence: float = 0.95,
    random_state=0,
    progress: bool = False,
    **options,
) -> list[dict]:
    """One row per animal: its claim, its true loss, what each layer says, and what others published.

    Every bound holds with ``confidence`` by itself; for all rows together, compare the p-values by Holm's method.
    """
    animals = list(animals)
    seeds = np.random.default_rng(random_state).integers(2**32, size=len(animals))
    cages = tqdm(zip(animals, seeds, strict=True), total=len(animals), unit="animal", disable=not progress)
    return [examine(animal, n=n, confidence=confidence, random_state=int(seed), **options) for animal, seed in cages]
