"""What an animal of the zoo is, the classes of flaws, and noise on a public grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np

from dpforest.learners.base import PrivateForestClassifier

__all__ = [
    "ADD_REMOVE", "EXACT", "FLAWS", "GREY_BOX", "GRID", "LAYERS", "REPLACE_ONE", "STATISTICAL", "Animal", "Dataset",
    "exponential", "geometric", "laplace",
]  # fmt: skip

GRID = 2.0**-20  # real-valued noise takes multiples of this

EXACT, GREY_BOX, STATISTICAL = LAYERS = "exact", "grey box", "statistical"
ADD_REMOVE, REPLACE_ONE = "add-remove", "replace-one"

#: The classes of flaws: of publications (A: boosted trees, B: random forests with regression, C: parallel trees by
#: correlation, D: forests with permute-and-flip, E: earlier ones), of libraries (F), and of everyday code (G).
FLAWS = {
    "A1": "the exact weight of a tree is released",
    "A2": "noise scaled by the largest weight of a record, which is no bound on what a record changes",
    "A2b": "the scale of the noise depends on the records",
    "A3": "the formula for the parts of the budget does not add up to the budget",
    "A4": "the best split is taken without noise",
    "A5": "the bootstrap repeats records, and nobody pays for it",
    "A6": "branches are pruned by looking at records",
    "A6b": "the budget of a pruned branch is spent again",
    "A7": "a node stops if its records share one class",
    "A8": "one budget is spent at two levels of a path",
    "B2": "a cut is drawn between the smallest and the largest value found in the data",
    "B3": "a leaf says its true majority",
    "C1": "the most probable candidate is taken instead of drawn",
    "C2": "a cut point computed from the records is released",
    "C3": "each node of a path spends what one node may",
    "C4": "the sensitivity is understated",
    "D2": "trees share the records in parts of equal size, or by position",
    "D4": "what is prepared from the records (bins, balanced classes) is taken as public",
    "E7": "an answer is drawn again until it suits",
    "F1": "smooth sensitivity without the noise that it needs",
    "F2": "the rate of a monotone score is used under replace-one",
    "F3": "the classes are those found in the data",
    "G1": "missing values are counted without noise",
    "G2": "empty leaves are left without noise",
    "G3": "two answers share their noise",
    "G4": "floating-point noise on a count",
    "G5": "a selection is drawn and not charged",
    "G6": "the number of records is taken as public under add-remove",
}

Dataset = tuple[Hashable, ...]  # of records; for the classics, of the true answers to the queries
Sample = Callable[[Dataset, int, np.random.Generator], "np.ndarray | list"]


@dataclass(frozen=True)
class Animal:
    """A mechanism or a learner whose true loss is known.

    Attributes
    ----------
    name : str
    flaw : str
        What is wrong with it; of a sound one, what it looks like.
    classes : tuple of str
        Keys of :data:`FLAWS`; of a sound one, the flaws that it looks like.
    claim : float
    true_epsilon : float
        The supremum of the loss over all neighbours, infinite if there is none; of a learner, over all neighbours of
        at most ``n_max`` records if ``why`` says so.
    why : str
        How that is known.
    layer : {"exact", "grey box", "statistical"}
        The layer that must catch it, or that must let it pass.
    pairs : tuple of (name, dataset, dataset)
        Neighbours on which it is sampled.
    sample : callable
        ``sample(dataset, size, rng)`` gives that many outputs: an array with one row per output, or a list.
    relation : {"add-remove", "replace-one"} or None
        None for the classics, whose data sets are vectors of answers that differ as the name of the pair says.
    estimator : PrivateForestClassifier or None
        The learner, for the exact engine and the grey box.
    n_max : int
        Records up to which the exact engine looks.
    published : dict
        Lower bounds on the loss that others report, by tool.
    sound : bool
    """

    name: str
    flaw: str
    classes: tuple[str, ...]
    claim: float
    true_epsilon: float
    why: str
    layer: str
    pairs: tuple[tuple[str, Dataset, Dataset], ...]
    sample: Sample = field(repr=False)
    relation: str | None = None
    estimator: PrivateForestClassifier | None = None
    n_max: int = 0
    published: dict[str, float] = field(default_factory=dict)
    sound: bool = False

    @property
    def kind(self) -> str:
        """``"learner"`` if the library's curator answers it, else ``"mechanism"``."""
        return "mechanism" if self.estimator is None else "learner"


def geometric(rng, rate: float, size) -> np.ndarray:
    """Two-sided geometric noise, ``P(k)`` proportional to ``exp(-rate |k|)``."""
    stop = -math.expm1(-rate)
    return rng.geometric(stop, size) - rng.geometric(stop, size)


def laplace(rng, scale: float, size) -> np.ndarray:
    """Laplace noise on the grid; between values on the grid it costs what Laplace noise costs, exactly."""
    return GRID * geometric(rng, GRID / scale, size)


def exponential(rng, scale: float, size) -> np.ndarray:
    """Exponential noise on the grid."""
    return GRID * (rng.geometric(-math.expm1(-GRID / scale), size) - 1)
