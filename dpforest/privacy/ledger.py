"""The ledger: every charge against the data in one run, and its path-wise total."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpforest import storage
from dpforest.messages import shown
from dpforest.privacy import display
from dpforest.privacy.composition import bootstrap, equal_split, poisson_bootstrap
from dpforest.privacy.concentrated import check_delta, epsilon_of
from dpforest.privacy.vocabulary import (
    ADD_REMOVE,
    RELATIONS,
    REPLACE_ONE,
    UNIT,
    Guarantee,
    Leak,
    check_relation,
    claim,
    finite,
)

__all__ = ["KINDS", "Ledger"]


#: How the children of a scope compose.  "sequential": all read the same records.  "partition": each record belongs to
#: one child, by its own values.  "assignment": to one child, by a coin of its own.  "equal-split": to one child, by a
#: random split into parts of equal size.  "bootstrap": each child reads n draws with replacement from n records.
#: "poisson-bootstrap": each child reads every record a Poisson(1) number of times.
KINDS = ("sequential", "partition", "assignment", "equal-split", "bootstrap", "poisson-bootstrap")
#: Those of which a theorem says what rhos add up to.
_CONCENTRATED = ("sequential", "partition", "assignment")
_SEQUENTIAL, _PARTITION, _ASSIGNMENT, _EQUAL_SPLIT, _BOOTSTRAP, _POISSON_BOOTSTRAP = range(len(KINDS))


@dataclass
class _Charge:
    """One vectorised entry: the same query to many scopes."""

    scopes: np.ndarray
    costs: dict[str, np.ndarray]  # relation -> loss of each scope
    query: str
    mechanism: str


@claim("thm-path", "thm-concentrated-path", "lem-concentrated-coins", "def-concentrated")
@dataclass(eq=False, repr=False)
class Ledger:
    """Every charge against the data in one run, as a tree of scopes; its total is path-wise.

    A scope (the forest, a tree, a node) bears its own charges, and has children that compose as its ``kind`` says.
    The cost of a scope is its own charges plus the composition of its children, so that a tree of queries costs
    its most expensive root-to-leaf path and no more (:prf:ref:`thm-path`).

    The ledger holds privacy losses, names and structure that is itself an output.  It never holds an answer.

    Attributes
    ----------
    relation : str
        The relation that :attr:`epsilon` speaks of; both are kept, see :meth:`total`.
    delta : float
        0: charges are losses, and add up to an epsilon.  Above: charges are rhos of zero-concentrated differential
        privacy, and their sum is said as the epsilon of this delta (:prf:ref:`thm-concentrated-path`).
    leaks : list of Leak
        Reads without a charge; empty iff every read was charged.
    promise : Guarantee or None
        What the fit promises of every run, once it is done.
    n_max : float
        The public cap on the number of records up to which the charges are what they say; infinite without one.
    optional_delta : float
        The delta of a fit that lets an answer say whether it is used: then the fit promises it on every run, also on
        one that charges losses.  0 where that is settled before the first answer.
    """

    relation: str = ADD_REMOVE
    leaks: list[Leak] = field(default_factory=list)
    promise: Guarantee | None = None
    delta: float = 0.0
    n_max: float = math.inf
    optional_delta: float = 0.0
    _parents: list[np.ndarray] = field(default_factory=lambda: [np.array([-1])])
    _kinds: list[str] = field(default_factory=lambda: ["sequential"])
    _labels: list[str] = field(default_factory=lambda: ["model"])
    _charges: list[_Charge] = field(default_factory=list)
    _size: int = 1

    def __post_init__(self) -> None:
        check_relation(self.relation)
        check_delta(self.delta)

    def open(self, label: str, parents: ArrayLike, kind: str = "partition") -> np.ndarray:
        """Open one scope under each of ``parents`` (ids); all get the same label and kind.  Returns their ids."""
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, not {shown(kind)}")
        if self.delta and kind not in _CONCENTRATED:
            raise ValueError(f"no theorem says what children that compose by {kind} cost together under a delta")
        parents = np.atleast_1d(np.array(parents, dtype=np.int64))
        if not self._has(parents):
            raise ValueError("a scope must be opened under an existing one")
        self._parents.append(parents)
        self._kinds.append(kind)
        self._labels.append(label)
        ids = np.arange(self._size, self._size + len(parents))
        self._size += len(parents)
        return ids

    def charge(
        self, scopes: ArrayLike, add_remove: ArrayLike, replace_one: ArrayLike, query: str, mechanism: str
    ) -> None:
        """Charge each of ``scopes`` its loss under either relation (scalars or one value per scope)."""
        scopes = np.atleast_1d(np.array(scopes, dtype=np.int64))  # copies: what was charged stays charged
        costs = np.empty((2, *scopes.shape))
        costs[0], costs[1] = add_remove, replace_one
        costs.flags.writeable = False
        if not (costs >= 0).all():  # also refuses NaN
            raise ValueError("a charge cannot be negative: spent budget is not refundable")
        if not self._has(scopes):
            raise ValueError("a charge must go to an existing scope")
        self._charges.append(_Charge(scopes, {ADD_REMOVE: costs[0], REPLACE_ONE: costs[1]}, query, mechanism))

    def _has(self, scopes: np.ndarray) -> bool:
        return bool(scopes.view(np.uint64).max(initial=0) < self._size)  # where a negative number is a large one

    def drop_delta(self, by_answers: bool = False) -> None:
        """Charge losses and not rhos, from the first charge on: an epsilon without a delta promises more.

        ``by_answers``: an answer may bring the delta back, so that the fit promises it on every run.
        """
        if self._charges:
            raise ValueError("rhos were charged: a delta can only be dropped before the first charge")
        self.optional_delta = self.delta if by_answers else 0.0
        self.delta = 0.0

    @property
    def promised_delta(self) -> float:
        """The delta of every run, that of this one or the one that another run may use."""
        return self.delta or self.optional_delta

    @claim("lem-range-concentrated")
    def take_delta(self, delta: float) -> None:
        """Charge rhos and not losses from now on; a loss that was charged has cost half its square.

        A loss c has a bounded range of 2 c at most, of which the rho is ``(2 c)^2 / 8``
        (:prf:ref:`lem-range-concentrated`).
        """
        if self.delta or self.leaks or self.kinds - {*_CONCENTRATED}:
            raise ValueError("a delta is taken up once, where nothing leaked and all scopes compose under one")
        check_delta(delta)
        self.delta = delta
        self._charges = [
            replace(entry, costs={relation: cost * cost / 2 for relation, cost in entry.costs.items()})
            for entry in self._charges
        ]

    def leak(self, what: str, where: str) -> None:
        """Record a read without a charge.  The same leak is kept once, however many nodes it happens in."""
        if (entry := Leak(what, where)) not in self.leaks:
            self.leaks.append(entry)

    def charges(self, query: str) -> list[float]:
        """What was charged for each asking of a query, in their order, under the ledger's relation: the cheapest scope.

        Losses, or rhos where there is a delta.
        """
        asked = (entry for entry in self._charges if entry.query == query and entry.scopes.size)
        return [float(entry.costs[self.relation].min()) for entry in asked]

    def to_dict(self) -> dict[str, Any]:
        """What it says, ready for JSON: each query in the order in which it was asked, and what it was charged.

        Returns
        -------
        dict
            ``relation``; ``epsilon``, null for infinity; ``delta``; ``unit``, of which the charges speak: one row.
            ``charged``: ``"losses"``, or ``"rhos"`` where there is a delta.  ``queries``: objects with ``query`` and
            ``mechanism``, ``scopes``, to how many it went, and ``least`` and ``most``, what one of them was charged,
            null for infinity.  ``leaks``: as in the guarantee.  No answer, and no seed.
        """
        charges = [(entry, entry.costs[self.relation]) for entry in self._charges if entry.scopes.size]
        return {
            "relation": self.relation,
            "epsilon": finite(self.epsilon),
            "delta": self.delta,
            "unit": UNIT,
            "charged": "rhos" if self.delta else "losses",
            "queries": [
                {
                    "query": entry.query,
                    "mechanism": entry.mechanism,
                    "scopes": len(costs),
                    "least": finite(costs.min()),
                    "most": finite(costs.max()),
                }
                for entry, costs in charges
            ],
            "leaks": [{"what": leak.what, "where": leak.where} for leak in self.leaks],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """:meth:`to_dict` as JSON, also written to a file if a path is given."""
        return storage.dump(self.to_dict(), path)

    @property
    def kinds(self) -> set[str]:
        """How scopes of this run compose, which are those of ``KINDS`` that it has."""
        return set(self._kinds)

    @property
    def epsilon(self) -> float:
        """What this run spent under the ledger's relation, path-wise; infinite if there is a leak.

        Another run on the same data may spend more, if its answers lead down a more expensive path: the promise about
        every run is the :class:`Guarantee`.
        """
        return self.total(self.relation)

    def total(self, relation: str) -> float:
        """What this run spent under ``relation``, path-wise; infinite if there is a leak."""
        if self.leaks:
            return math.inf
        return epsilon_of(self.paid(relation), self.delta) if self.delta else self.paid(relation)

    def paid(self, relation: str) -> float:
        """Path-wise sum of what was charged, losses or rhos, leaks left aside."""
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
        depth = self._depths()
        for level in range(int(depth.max()), 0, -1):
            ids = np.flatnonzero(depth == level)
            _compose(ids, parents, kinds, cost)
        return cost

    def _depths(self) -> np.ndarray:
        """How many scopes hold each scope, one within the other."""
        depth = np.zeros(self._size, dtype=np.int64)
        start = 1
        for block in self._parents[1:]:
            depth[start : start + len(block)] = depth[block] + 1
            start += len(block)
        return depth

    def __repr__(self) -> str:
        spent = f"{self._spent()} spent under {self.relation}, for {UNIT}, on {len(self._charges)} queries"
        leaks = "; ".join(f"leak: {leak}" for leak in self.leaks) or "no leaks"
        return f"<Ledger: {spent}; {leaks}" + (">" if self.promise is None else f"; of {self.promise!r}>")

    def __str__(self) -> str:
        lines = [f"Ledger ({self.relation}): epsilon = {self._spent()}{'; charges are rhos' if self.delta else ''}"]
        self._lines(np.array([0]), "", lines)
        lines += [f"leak: {leak}" for leak in self.leaks] or ["no leaks: every read of the records was charged"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [("spent", self._spent()), ("relation", self.relation), ("unit", UNIT)]
        rows += [("queries", str(len(self._charges))), ("leaks", str(len(self.leaks)))]
        return display.box("Ledger", rows, note="" if self.promise is None else self.promise.caution)

    def _spent(self) -> str:
        exactly = f" at delta = {self.delta:.6g}, for a rho of {self.paid(self.relation):.6g}" if self.delta else ""
        return f"{self.epsilon:.6g}{exactly}"

    def _lines(self, scopes: np.ndarray, indent: str, lines: list[str]) -> None:
        """Print scopes that share a label as one line, then what they were charged, then their children."""
        asked = np.zeros(self._size, dtype=bool)
        asked[scopes] = True
        for entry in self._charges:
            hit = asked[entry.scopes]
            if hit.any():
                cost = entry.costs[self.relation][hit]
                low, high = f"{cost.min():.6g}", f"{cost.max():.6g}"
                spread = high if low == high else f"{low} to {high}"
                lines.append(f"{indent}- {entry.query}, {entry.mechanism}: {spread} each, {hit.sum()}x")
        start = 1
        groups: dict[tuple[str, str], list[np.ndarray]] = {}
        for block, kind, label in zip(self._parents[1:], self._kinds[1:], self._labels[1:], strict=True):
            mine = asked[block]
            if mine.any():
                groups.setdefault((label, kind), []).append(start + np.flatnonzero(mine))
            start += len(block)
        for (label, kind), members in groups.items():
            ids = np.concatenate(members)
            lines.append(f"{indent}+ {label} ({len(ids)}x, children compose by {kind})")
            self._lines(ids, indent + "  ", lines)


def _compose(ids: np.ndarray, parents: np.ndarray, kinds: np.ndarray, cost: dict[str, np.ndarray]) -> None:
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
        rest = np.ones(len(group), dtype=bool)
        rest[top[top >= 0]] = False
        np.maximum.at(second, up[rest], ar[group][rest])
        touched = np.flatnonzero(np.bincount(up, minlength=len(ar)))
        if kind == _EQUAL_SPLIT:
            parts = np.bincount(up, minlength=len(ar))
            ar[touched] += [equal_split(first[p], int(parts[p])) for p in touched]
        else:
            ar[touched] += first[touched]
        moving = first[touched] + second[touched] if kind == _PARTITION else 0.0
        r1[touched] += np.maximum(stay[touched], moving)
