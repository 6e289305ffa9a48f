"""What the algorithms of the papers, written again tree by tree, have in common; it shares nothing with the library.

A record is a tuple that ends in its class.  A tree is a nested tuple, and a law gives each tree its probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import oracle
import pytest

MECHANISMS = {"permute-and-flip": oracle.permute_and_flip_orders, "exponential": oracle.exponential}
SCORES = {"gini": oracle.gini, "majority": oracle.majority}


def select(mechanism: str, utilities: dict, rate: float) -> dict:
    """The law of one selection with ``rate`` times utility in the exponent."""
    best = max(utilities.values())
    accept = [math.exp(rate * float(u - best)) for u in utilities.values()]
    return dict(zip(utilities, map(float, MECHANISMS[mechanism](accept)), strict=True))


def utility(criterion: str, parts):
    """The score of a split into these parts, exactly; information gain, which is no fraction, to rounding."""
    children = tuple(tuple(record[-1] for record in part) for part in parts)
    if criterion == "information-gain":
        return math.log2(oracle.information_gain(children).power)
    return SCORES[criterion](children)


def votes(records, classes: int = 2) -> tuple[int, ...]:
    """How many records have each class."""
    return tuple(sum(record[-1] == c for record in records) for c in range(classes))


def joined(split: tuple, laws: list[dict]) -> Iterator[tuple[tuple, float]]:
    """The trees below a split, with their probabilities: each child is drawn from its law, apart from the others."""
    found = [(split, 1.0)]
    for law in laws:
        found = [((*tree, child), p * q) for tree, p in found for child, q in law.items()]
    yield from found


def agree(law: dict, expected: dict, rel: float = 1e-9, least: float = 0.0) -> None:
    """The same trees, but for those of a probability of at most ``least``, with the same probabilities."""
    expected = {tree: p for tree, p in expected.items() if p > least}
    assert {tree for tree, p in law.items() if p > least} == expected.keys()
    for tree, probability in expected.items():
        assert law[tree] == pytest.approx(probability, rel=rel, abs=1e-15)
