"""A differentially private decision tree on one page: mechanisms, curator, ledger, tree, exact audit.  NumPy alone.

One record more or less changes the probability of no output by more than the factor exp(epsilon).  A record is a tuple
of codes ``(x_1, ..., x_m, y)``; what values there are is public.  A mechanism is written as its law, the probability of
each outcome, and ``draw(law)`` picks one: so one program runs on random numbers and, for the audit, on every branch
that randomness may take.  Doubles are rounded: for a real release use the library, which draws exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np

Node = tuple[tuple[int, int], ...]  # the path to it from the root: (feature, code), (feature, code), ...
Tree = tuple[tuple[Node, tuple[int, ...]], ...]  # what is released: the leaves, with their noisy class counts


@cache  # the audit asks for the same laws again and again
def permute_and_flip(scores: tuple[float, ...], rate: float) -> np.ndarray:
    """Law of a selection: try candidates in random order, accept the i-th with p_i = exp(rate (score_i - best)).

    If candidate i comes at the uniform time t, each other one comes later or was refused: probability 1 - p_j t.
    """
    accept = np.exp(rate * (np.asarray(scores) - max(scores)))
    law = np.empty(len(accept))
    for i, own in enumerate(accept):
        refused = np.polynomial.Polynomial([1.0])
        for other in np.delete(accept, i):
            refused *= np.polynomial.Polynomial([1.0, -other])
        law[i] = own * refused.integ()(1.0)
    return law


@cache
def noisy_count(count: int, epsilon: float, most: int) -> np.ndarray:
    """Law of a count with two-sided geometric noise, P(k) ~ exp(-epsilon |k|), clipped to 0, ..., most."""
    a = np.exp(-epsilon)
    law = (1 - a) / (1 + a) * a ** np.abs(np.arange(most + 1) - count)
    law[0], law[most] = a**count / (1 + a), a ** (most - count) / (1 + a)  # with all that is clipped
    return law


def gini(counts: np.ndarray) -> float:
    """Minus the Gini impurity of the children (rows of ``counts``), weighted by their records.

    One more record lowers it by less than 2 and never raises it, so two candidates change by less than 2 apart.
    """
    return float(-sum(row.sum() - row @ row / row.sum() for row in counts if row.any()))


@dataclass
class Curator:
    """The only one who sees records: answers with noise, and keeps account in a ledger.

    A record lies in one node of a level, so that a level costs what one node does; a tree costs what its levels do.
    """

    records: Sequence[tuple[int, ...]]
    sizes: Sequence[int]  # how many codes each feature has, and last the number of classes
    epsilon: float
    draw: Callable[[np.ndarray], int]
    ledger: list[tuple[str, float]] = field(default_factory=list)

    def _charge(self, question: str, epsilon: float) -> None:
        if sum(paid for _, paid in self.ledger) + epsilon > self.epsilon * (1 + 1e-9):
            raise ValueError(f"no budget is left for: {question}")
        self.ledger.append((question, epsilon))

    def _counts(self, node: Node, feature: int | None = None) -> np.ndarray:
        """Class counts of a node: one row, or one for each code of a feature."""
        counts = np.zeros((1 if feature is None else self.sizes[feature], self.sizes[-1]), dtype=int)
        for record in self.records:
            if all(record[at] == code for at, code in node):
                counts[0 if feature is None else record[feature], record[-1]] += 1
        return counts

    def choose_features(self, nodes: Sequence[Node], epsilon: float) -> list[int]:
        """The feature that splits each node, by permute-and-flip at rate epsilon / 2: the score's range is 2."""
        self._charge("which feature splits a node", epsilon)
        chosen = []
        for node in nodes:
            free = [at for at in range(len(self.sizes) - 1) if at not in dict(node)]
            scores = tuple(gini(self._counts(node, at)) for at in free)
            chosen.append(free[self.draw(permute_and_flip(scores, epsilon / 2))])
        return chosen

    def count_classes(self, nodes: Sequence[Node], epsilon: float, most: int) -> list[tuple[int, ...]]:
        """Noisy class counts of each node: a record moves one of them, by 1."""
        self._charge("how many records of each class a leaf has", epsilon)
        return [tuple(self.draw(noisy_count(n, epsilon, most)) for n in self._counts(node)[0]) for node in nodes]


def grow(curator: Curator, depth: int, most: int) -> Tree:
    """A tree of full depth: each level of splits, and the leaves, have the same share of epsilon."""
    nodes: list[Node] = [()]
    share = curator.epsilon / (depth + 1)
    for _ in range(depth):
        splits = zip(nodes, curator.choose_features(nodes, share), strict=True)
        nodes = [(*node, (at, code)) for node, at in splits for code in range(curator.sizes[at])]
    return tuple(zip(nodes, curator.count_classes(nodes, share, most), strict=True))


def predict(tree: Tree, x: Sequence[int]) -> int:
    """The class with the largest noisy count in the leaf of x."""
    return next(int(np.argmax(counts)) for node, counts in tree if all(x[at] == code for at, code in node))


def law_of(fit: Callable[[Callable[[np.ndarray], int]], Tree]) -> dict[Tree, float]:
    """The probability of each tree: the fit is run once for each way that its draws may go."""
    law: dict[Tree, float] = defaultdict(float)
    ways: list[list[int]] = [[]]
    while ways:
        way: list[int] = ways.pop()
        chances: list[float] = []

        def draw(outcomes: np.ndarray, way: list[int] = way, chances: list[float] = chances) -> int:
            if len(chances) == len(way):  # from here on the first outcome; the others are ways of their own
                ways.extend([*way, other] for other in range(1, len(outcomes)))
                way.append(0)
            chances.append(outcomes[way[len(chances)]])
            return way[len(chances) - 1]

        law[fit(draw)] += float(np.prod(chances))
    return law


def worst_loss(sizes: Sequence[int], epsilon: float, depth: int, n: int = 2, most: int = 2) -> float:
    """The audit: the largest log ratio over all outputs, of up to n records beside one more; epsilon is claimed."""
    kinds = list(product(*map(range, sizes)))
    every = [data for size in range(n + 2) for data in combinations_with_replacement(kinds, size)]
    found = {d: law_of(lambda draw, d=d: grow(Curator(d, sizes, epsilon, draw), depth, most)) for d in every}  # type: ignore
    pairs = ((found[d], found[tuple(sorted((*d, one)))]) for d in found if len(d) <= n for one in kinds)
    return max(abs(np.log(p[tree] / q[tree])) for p, q in pairs for tree in p)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.integers(0, [2, 3, 2], size=(600, 3)).tolist()
    table = [(*row, int((row[1] > 0) ^ (rng.random() < 0.1))) for row in x]  # the second feature decides, mostly
    curator = Curator(table, (2, 3, 2, 2), 1.0, lambda law: int(rng.choice(len(law), p=law / law.sum())))
    tree = grow(curator, depth=2, most=1000)
    print(*(f"{paid:.3f} of 1 for {question}" for question, paid in curator.ledger), *tree, sep="\n")
    print("right on", np.mean([predict(tree, row) == row[-1] for row in table]))
    print(f"worst loss on small tables: {worst_loss((2, 2, 2), 1.0, depth=1):.4f} of 1")
