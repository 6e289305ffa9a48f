"""The vocabulary of privacy: neighbour relations, guarantees, composition, and the ledger.

Definitions and proofs are in the chapter *Differential privacy and its neighbours*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real

import numpy as np

__all__ = [
    "ADD_REMOVE", "NON_PRIVATE", "RELATIONS", "REPLACE_ONE", "Guarantee", "Leak", "Ledger", "OutOfSchemaWarning",
    "UnprovenPrivacyWarning", "bootstrap", "check_epsilon", "check_relation", "claim", "equal_split", "parallel",
    "poisson_bootstrap", "sequential",
]  # fmt: skip

ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"
RELATIONS = (ADD_REMOVE, REPLACE_ONE)
NON_PRIVATE = "non-private"


class UnprovenPrivacyWarning(UserWarning):
    """A published algorithm runs to the letter although its privacy proof does not hold."""


class OutOfSchemaWarning(UserWarning):
    """Records held values outside the declared schema; they were clipped or sent to ``other``.

    The message holds exact counts: it is for the curator's eyes and is never stored in a model.
    """


def claim(*ids: str) -> Callable:
    """Seal a function or class with the ids of the claims of the book that it carries out.

    The seal is an attribute, ``__claims__``; ``tests/test_claims.py`` walks the library and checks that every
    id has its statement, its code, its test and its exhibit.
    """

    def seal(thing):
        thing.__claims__ = tuple(ids)
        return thing

    return seal


@claim("def-neighbours")
def check_relation(relation: str) -> str:
    """``relation`` itself if it is one of ``RELATIONS``; else an error that lists them."""
    if relation not in RELATIONS:
        raise ValueError(f"relation must be one of {RELATIONS}, not {relation!r}")
    return relation


def check_epsilon(epsilon, name: str = "epsilon") -> float:
    """A privacy parameter as a float: positive and finite, or the string ``"non-private"`` for infinity.

    Infinity has to be asked for by name, so that no arithmetic slip turns the noise off.
    """
    if isinstance(epsilon, str):
        if epsilon == NON_PRIVATE:
            return math.inf
        raise ValueError(f"{name} must be a positive number, or 'non-private' to turn privacy off, not {epsilon!r}")
    if not isinstance(epsilon, Real) or isinstance(epsilon, bool):
        raise TypeError(f"{name} must be a positive number, not {type(epsilon).__name__}")
    if math.isinf(epsilon):
        raise ValueError(f"{name} is infinite: write {name}='non-private' if you mean to turn privacy off")
    if not float(epsilon) > 0:  # also refuses NaN
        raise ValueError(f"{name} must be positive, not {epsilon!r}")
    if not 1e-9 <= float(epsilon) <= 1e6:
        raise ValueError(f"{name} must lie between 1e-9 and 1e6, or be 'non-private', not {epsilon!r}")
    return float(epsilon)


@dataclass(frozen=True)
class Leak:
    """A read of the data that nobody paid for: what was read, and where the paper does it."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} ({self.where})"


@claim("def-privacy")
@dataclass(frozen=True)
class Guarantee:
    """What is promised about a released model.

    Attributes
    ----------
    epsilon : float
        The proved loss; ``inf`` where the claim is refuted or privacy was turned off.
    relation : {"add-remove", "replace-one"}
        Which pairs of data sets are neighbours.
    claimed : float or None
        What the paper claims for the published variant; None for the proved one.
    leaks : tuple of Leak
        The unpaid reads that make ``epsilon`` infinite; empty iff there are none.
    """

    epsilon: float
    relation: str
    claimed: float | None = None
    leaks: tuple[Leak, ...] = ()

    def __str__(self) -> str:
        text = f"{self.epsilon:.6g}-differentially private under {self.relation}"
        if math.isinf(self.epsilon):
            text = f"not differentially private under {self.relation} for any finite epsilon"
        if self.claimed is not None:
            text += f" (the paper claims {self.claimed:.6g})"
        return text + "".join(f"\n  leak: {leak}" for leak in self.leaks)


# -- composition -------------------------------------------------------------------------------------------------


@claim("thm-sequential")
def sequential(epsilons: Iterable[float]) -> float:
    """Loss of several mechanisms that read the same records, each possibly chosen from earlier outputs: the sum.

    Guarantee
    ---------
    Both relations, adaptive choice of mechanisms and budgets: :prf:ref:`thm-sequential`.
    """
    return sum(epsilons)


@claim("thm-parallel")
def parallel(add_remove: Iterable[float], replace_one: Iterable[float], relation: str, moves: bool = True) -> float:
    """Loss of mechanisms that read disjoint parts of the data, where a record's part depends on that record alone.

    Parameters
    ----------
    add_remove, replace_one : iterables of float
        Loss of the mechanism of each part under either relation.
    relation : {"add-remove", "replace-one"}
    moves : bool
        Whether a replaced record may go to another part, as it does when the part is decided by its values
        (the child of a tree node).  False when a coin decides that does not look at the record.

    Guarantee
    ---------
    add-remove: the largest part.  replace-one: a record that stays costs the largest replace-one loss, one that
    moves costs a removal in one part and an addition in another.  Both are sharp: :prf:ref:`thm-parallel`.
    """
    stay, move = sorted(replace_one)[-1:], sorted(add_remove)[-2:]
    if check_relation(relation) == ADD_REMOVE:
        return move[-1] if move else 0.0
    return max([*stay, sum(move) if moves else 0.0, 0.0])


@claim("thm-equal-split")
def equal_split(epsilon: float, parts: int) -> float:
    """Loss under add-remove when a *random equal-size* split gives each part to an ``epsilon``-private mechanism.

    Adding one record changes the size of a part, so a second record has to move: the loss is
    ``ln(e^epsilon / parts + (1 - 1/parts) e^(3 epsilon))``, not ``epsilon`` (:prf:ref:`thm-equal-split`).
    """
    if parts <= 1 or math.isinf(epsilon):
        return epsilon
    return 3 * epsilon + math.log1p(math.expm1(-2 * epsilon) / parts)


@claim("thm-bootstrap")
def poisson_bootstrap(epsilon, relation: str):
    """Loss of a mechanism that sees each record a Poisson(1) number of times, each record by a draw of its own.

    Parameters
    ----------
    epsilon : float or ndarray
        Loss of the mechanism under *add-remove*, whatever the relation asked for.
    relation : {"add-remove", "replace-one"}

    Returns
    -------
    float or ndarray
        ``e^epsilon - 1`` under add-remove, ``2 sinh(epsilon)`` under replace-one, both sharp:
        :prf:ref:`thm-bootstrap`.
    """
    with np.errstate(over="ignore"):  # beyond the largest double the loss is infinite, and says so
        return np.expm1(epsilon) if check_relation(relation) == ADD_REMOVE else 2 * np.sinh(epsilon)


@claim("thm-bootstrap-size", "pub-bootstrap", "cex-bootstrap")
def bootstrap(add_remove, replace_one, relation: str):
    """A bound on the loss of a mechanism that sees n draws with replacement from n records, whatever n.

    A record that is drawn twice counts twice, and under add-remove one more record means one more draw.  With
    ``u = e^add_remove`` the loss is at most ``ln(e^(u^2 - 1) / u + (u - 1/u) / e)`` under add-remove, of which
    ``u^2 - 1 - ln u`` is reached in the limit; under replace-one, at most ``2 sinh(replace_one)``
    (:prf:ref:`thm-bootstrap-size`).
    """
    with np.errstate(over="ignore"):
        if check_relation(relation) != ADD_REMOVE:
            return 2 * np.sinh(replace_one)
        small = np.minimum(add_remove, 300.0)
        reached = np.expm1(2 * small) - small
        bound = reached + np.log1p(2 * np.sinh(small) * np.exp(-1 - reached))
        return np.where(add_remove > small, math.inf, bound)[()]


# -- the ledger --------------------------------------------------------------------------------------------------

#: How the children of a scope compose.  "sequential": all read the same records.  "partition": each record belongs to
#: one child, by its own values.  "assignment": to one child, by a coin of its own.  "equal-split": to one child, by a
#: random split into parts of equal size.  "bootstrap": each child reads n draws with replacement from n records.
#: "poisson-bootstrap": each child reads every record a Poisson(1) number of times.
KINDS = ("sequential", "partition", "assignment", "equal-split", "bootstrap", "poisson-bootstrap")
_SEQUENTIAL, _PARTITION, _ASSIGNMENT, _EQUAL_SPLIT, _BOOTSTRAP, _POISSON_BOOTSTRAP = range(len(KINDS))


@dataclass
class _Charge:
    """One vectorised entry: the same query to many scopes."""

    scopes: np.ndarray
    costs: dict[str, np.ndarray]  # relation -> loss of each scope
    query: str
    mechanism: str


@claim("thm-path")
@dataclass(eq=False)
class Ledger:
    """Every charge against the data in one run, as a tree of scopes; its total is path-wise.

    A scope (the forest, a tree, a node) bears its own charges, and has children that compose as its ``kind`` says.
    The cost of a scope is its own charges plus the composition of its children, so that a tree of queries costs
    its dearest root-to-leaf path and no more (:prf:ref:`thm-path`).

    The ledger holds privacy losses, names and structure that is itself an output.  It never holds an answer.

    Attributes
    ----------
    relation : str
        The relation that :attr:`epsilon` speaks of; both are kept, see :meth:`total`.
    leaks : list of Leak
        Unpaid reads; empty iff nothing was read unpaid.
    """

    relation: str = ADD_REMOVE
    leaks: list[Leak] = field(default_factory=list)
    _parents: list[np.ndarray] = field(default_factory=lambda: [np.array([-1])], repr=False)
    _kinds: list[str] = field(default_factory=lambda: ["sequential"], repr=False)
    _labels: list[str] = field(default_factory=lambda: ["model"], repr=False)
    _charges: list[_Charge] = field(default_factory=list, repr=False)
    _size: int = 1

    def __post_init__(self):
        check_relation(self.relation)

    def open(self, label: str, parents, kind: str = "partition") -> np.ndarray:
        """Open one scope under each of ``parents`` (ids); all get the same label and kind.  Returns their ids."""
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, not {kind!r}")
        parents = np.atleast_1d(np.array(parents, dtype=np.int64))
        if parents.size and not (parents.min() >= 0 and parents.max() < self._size):
            raise ValueError("a scope must be opened under an existing one")
        self._parents.append(parents)
        self._kinds.append(kind)
        self._labels.append(label)
        ids = np.arange(self._size, self._size + len(parents))
        self._size += len(parents)
        return ids

    def charge(self, scopes, add_remove, replace_one, query: str, mechanism: str) -> None:
        """Charge each of ``scopes`` its loss under either relation (scalars or one value per scope)."""
        scopes = np.atleast_1d(np.array(scopes, dtype=np.int64))  # copies: what was charged stays charged
        pair = ((ADD_REMOVE, add_remove), (REPLACE_ONE, replace_one))
        costs = {name: np.broadcast_to(np.array(value, dtype=float), scopes.shape) for name, value in pair}
        if any((cost < 0).any() or np.isnan(cost).any() for cost in costs.values()):
            raise ValueError("a charge cannot be negative: spent budget is not refundable")
        if scopes.size and not (scopes.min() >= 0 and scopes.max() < self._size):
            raise ValueError("a charge must go to an existing scope")
        self._charges.append(_Charge(scopes, costs, query, mechanism))

    def leak(self, what: str, where: str) -> None:
        """Record an unpaid read.  The same leak is kept once, however many nodes it happens in."""
        if (entry := Leak(what, where)) not in self.leaks:
            self.leaks.append(entry)

    @property
    def epsilon(self) -> float:
        """What this run spent under the ledger's relation, path-wise; infinite if there is a leak.

        Another run on the same data may spend more, if its answers lead down a dearer path: the promise about every
        run is the :class:`Guarantee`.
        """
        return self.total(self.relation)

    def total(self, relation: str) -> float:
        """What this run spent under ``relation``, path-wise; infinite if there is a leak."""
        return math.inf if self.leaks else self.paid(relation)

    def paid(self, relation: str) -> float:
        """Path-wise sum of what was charged, leaks left aside."""
        return float(self._path_costs()[check_relation(relation)][0])

    def _path_costs(self) -> dict[str, np.ndarray]:
        """Cost of every scope with all that is below it, both relations."""
        cost = {relation: np.zeros(self._size) for relation in RELATIONS}
        for entry in self._charges:
            for relation in RELATIONS:
                np.add.at(cost[relation], entry.scopes, entry.costs[relation])
        kinds = np.repeat([KINDS.index(kind) for kind in self._kinds], [len(p) for p in self._parents])
        # A block was opened after its parents, so going through the blocks backwards meets children first.  Blocks
        # that share parents must be gathered before they compose: group them by the depth of their scopes.
        parents = np.concatenate(self._parents)
        depth = self._depths(parents)
        for level in range(int(depth.max()), 0, -1):
            ids = np.flatnonzero(depth == level)
            _compose(ids, parents, kinds, cost)
        return cost

    def _depths(self, parents: np.ndarray) -> np.ndarray:
        depth = np.zeros(self._size, dtype=np.int64)
        start = 1
        for block in self._parents[1:]:
            depth[start : start + len(block)] = depth[block] + 1
            start += len(block)
        return depth

    def __str__(self) -> str:
        lines = [f"Ledger ({self.relation}): epsilon = {self.epsilon:.6g}"]
        self._lines(np.array([0]), "", lines)
        lines += [f"leak: {leak}" for leak in self.leaks] or ["no leaks: nothing was read unpaid"]
        return "\n".join(lines)

    def _lines(self, scopes: np.ndarray, indent: str, lines: list[str]) -> None:
        """Print scopes that share a label as one line, then what they were charged, then their children."""
        for entry in self._charges:
            hit = np.isin(entry.scopes, scopes)
            if hit.any():
                cost = entry.costs[self.relation][hit]
                low, high = f"{cost.min():.6g}", f"{cost.max():.6g}"
                spread = high if low == high else f"{low} to {high}"
                lines.append(f"{indent}- {entry.query}, {entry.mechanism}: {spread} each, {hit.sum()}x")
        start = 1
        groups: dict[tuple[str, str], list[np.ndarray]] = {}
        for block, kind, label in zip(self._parents[1:], self._kinds[1:], self._labels[1:], strict=True):
            mine = np.isin(block, scopes)
            if mine.any():
                groups.setdefault((label, kind), []).append(start + np.flatnonzero(mine))
            start += len(block)
        for (label, kind), members in groups.items():
            ids = np.concatenate(members)
            lines.append(f"{indent}+ {label} ({len(ids)}x, children compose by {kind})")
            self._lines(ids, indent + "  ", lines)


def _compose(ids, parents, kinds, cost) -> None:
    """Add to the cost of each parent the composition of its children ``ids``, by the rule of the parent's kind."""
    ar, r1 = cost[ADD_REMOVE], cost[REPLACE_ONE]
    by_kind = kinds[parents[ids]]
    group = ids[by_kind == _SEQUENTIAL]
    np.add.at(ar, parents[group], ar[group])
    np.add.at(r1, parents[group], r1[group])
    for kind, loss in ((_BOOTSTRAP, bootstrap), (_POISSON_BOOTSTRAP, lambda ar, _, to: poisson_bootstrap(ar, to))):
        group = ids[by_kind == kind]
        for relation in RELATIONS if group.size else ():
            np.add.at(cost[relation], parents[group], loss(ar[group], r1[group], relation))
    for kind in (_PARTITION, _ASSIGNMENT, _EQUAL_SPLIT):
        group = ids[by_kind == kind]
        if not group.size:
            continue
        up = parents[group]
        first, second, stay = (np.zeros(len(ar)) for _ in range(3))
        np.maximum.at(stay, up, r1[group])
        order = np.argsort(ar[group], kind="stable")
        first[up[order]] = ar[group][order]  # the last write wins: the largest
        top = np.full(len(ar), -1)
        top[up[order]] = order
        rest = np.setdiff1d(np.arange(len(group)), top[top >= 0])
        np.maximum.at(second, up[rest], ar[group][rest])
        touched = np.unique(up)
        if kind == _EQUAL_SPLIT:
            parts = np.bincount(up, minlength=len(ar))
            ar[touched] += [equal_split(first[p], int(parts[p])) for p in touched]
        else:
            ar[touched] += first[touched]
        moving = first[touched] + second[touched] if kind == _PARTITION else 0.0
        r1[touched] += np.maximum(stay[touched], moving)
