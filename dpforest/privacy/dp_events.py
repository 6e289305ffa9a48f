"""Privacy events: what a ledger charged, as values that an accountant of another library composes.

A tree of plain values comes first, ready for JSON; of it :func:`to_dp_event` makes events of Google's
``dp-accounting``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

from dpforest.arithmetic import exp
from dpforest.messages import shown
from dpforest.privacy.composition import bootstrap, equal_split, poisson_bootstrap
from dpforest.privacy.concentrated import in_charges
from dpforest.privacy.ledger import Ledger
from dpforest.privacy.vocabulary import ADD_REMOVE, REPLACE_ONE, UNIT, check_relation, finite

__all__ = ["privacy_event", "promised_event", "to_dp_event"]

_SELECTION = "the event of a loss is that of the worst mechanism with this loss: an upper bound for most of them"
_JOINED = "children by {} were not charged alike: their events are one event of what they cost together at most"
_AMPLIFIED = "children by {} are one event of the loss that the theorem gives"
_THIS_RUN = "what this run spent; another run on the same data may spend more, up to the promise"
_EVERY_RUN = "what every run promises, in one event, however it was spent"
_OPTIONAL = "an answer said whether the delta is used, so that no loss and no rho bounds every run"


class _Cost(NamedTuple):
    """One charge on a path: a loss or a rho, and for what."""

    cost: float
    of: str


_Path = tuple[_Cost, ...]


def privacy_event(ledger: Ledger, relation: str | None = None) -> dict[str, Any]:
    """Privacy events of one run, path-wise: the charges of a ledger as a list of events that are composed.

    A tree of scopes costs its most expensive path.  Accountants elsewhere know sequential composition alone, so each
    group of children that read disjoint records is replaced by one list of events that bounds every child, whatever
    record differs.  Where the children were charged alike, level by level, this is exact.  Where they were not, it is
    an upper bound, and ``notes`` says so; for pure losses the sum of all events is :meth:`Ledger.paid` always.

    Parameters
    ----------
    ledger : Ledger
        Of a fitted model: ``clf.ledger_``.
    relation : {"add-remove", "replace-one"} or None
        Of what neighbours the events speak; None: the ledger's.

    Returns
    -------
    dict
        ``relation``, ``unit``, ``epsilon`` (null for infinity), ``delta`` and ``charged`` as in
        :meth:`Ledger.to_dict`; ``events``: objects with ``event``, which is ``"pure"``, ``"concentrated"`` or
        ``"non-private"``, or in a promise ``"approximate"``, its ``epsilon``, ``rho`` or ``delta``, ``of`` (query and
        mechanism) and ``count``, how often it is composed; ``notes``: what is an upper bound, and of what.

    Guarantee
    ---------
    The run's answers are dominated by the composition of the events: a pair of laws, whose distance at no epsilon
    is less.  Losses: randomised response dominates every mechanism with its loss, and one of loss ``a + b`` dominates
    two of ``a`` and ``b``.  Rhos add up.

    Notes
    -----
    They are the events of *this* run.  Of a learner whose charges depend on earlier answers, another run may spend
    otherwise: to promise before the data is read, use :func:`promised_event`.

    Examples
    --------
    >>> from dpforest.privacy import Ledger
    >>> ledger = Ledger()
    >>> trees = ledger.open("tree", [0, 0], "sequential")
    >>> ledger.charge(trees, 0.25, 0.5, "counts", "geometric")
    >>> privacy_event(ledger)["events"]
    [{'event': 'pure', 'epsilon': 0.25, 'of': 'counts, geometric', 'count': 2}]
    """
    _check_ledger(ledger)
    relation = check_relation(ledger.relation if relation is None else relation)
    notes: dict[str, None] = {}
    path = _path_of(ledger, relation, notes)
    events = [_described(event, len([*again]), bool(ledger.delta)) for event, again in groupby(path)]
    events += [{"event": "non-private", "of": str(leak), "count": 1} for leak in ledger.leaks]
    if not ledger.delta and path:
        notes[_SELECTION] = None
    notes[_THIS_RUN] = None
    return _tree(relation, ledger.total(relation), ledger.delta, events, notes)


def promised_event(ledger: Ledger) -> dict[str, Any]:
    """Privacy event of every run: what the fit promised before it read a record, in the form of :func:`privacy_event`.

    Parameters
    ----------
    ledger : Ledger
        Of a fit, with its :attr:`~Ledger.promise`.  The unit must be one row.

    Guarantee
    ---------
    One event of the promised epsilon, or with a delta of the rho that assures it; ``"approximate"``, of the epsilon and
    the delta, where an answer says whether the delta is used, for no rho bounds the runs that do not
    (:prf:ref:`thm-private-boosting-delta`).  It holds whatever was answered, so that fits which are chosen by what
    others released may be composed by it.
    """
    _check_ledger(ledger)
    promise = ledger.promise
    if promise is None:
        raise ValueError("the ledger has no promise: its fit is not done")
    if promise.max_rows is not None:
        raise ValueError("the promise is to persons, and charges speak of rows: an event would mix the two")
    if promise.delta != ledger.promised_delta:
        raise ValueError("the promise has another delta than the charges: no event says what both do")
    if math.isinf(promise.epsilon):
        events: list[dict[str, Any]] = [{"event": "non-private", "of": "no finite promise", "count": 1}]
    elif ledger.optional_delta:
        both = {"epsilon": promise.epsilon, "delta": promise.delta}
        events = [{"event": "approximate", **both, "of": "the promise", "count": 1}]
    else:
        cost = _Cost(in_charges(promise.epsilon, promise.delta), "the promise")
        events = [_described(cost, 1, bool(promise.delta))]
    notes = [_EVERY_RUN, *([] if promise.delta else [_SELECTION]), *([_OPTIONAL] if ledger.optional_delta else [])]
    charged = {"charged": "rhos" if ledger.delta else "losses"}
    return {**_tree(promise.relation, promise.epsilon, promise.delta, events, notes), **charged}


def _check_ledger(ledger: Any) -> None:
    if not isinstance(ledger, Ledger):
        raise TypeError(f"privacy events are of a ledger, such as clf.ledger_, not of {shown(ledger)}")


def to_dp_event(event: dict[str, Any]) -> Any:
    """``DpEvent`` of Google's dp-accounting of what :func:`privacy_event` or :func:`promised_event` gave.

    Parameters
    ----------
    event : dict

    Returns
    -------
    dp_accounting.ComposedDpEvent
        Of pure losses under add-remove: ``DiscreteLaplaceDpEvent`` of sensitivity 1, under replace-one
        ``RandomizedResponseDpEvent`` of two buckets; both are the worst mechanism of that loss, and
        ``dp_accounting.pld.PLDAccountant`` composes them.  Of rhos: ``ZCDpEvent``, for
        ``dp_accounting.rdp.RdpAccountant``.  Of an epsilon with a delta: ``EpsilonDeltaDpEvent``, for
        ``PLDAccountant``.  What leaked or has no noise: ``NonPrivateDpEvent``.

    Raises
    ------
    ImportError
        Where dp-accounting is not installed: ``pip install dp-accounting``; or is too old for an epsilon with a delta.

    Notes
    -----
    An accountant must be given the event's relation, ``NeighboringRelation.ADD_OR_REMOVE_ONE`` or ``REPLACE_ONE``.
    """
    if not isinstance(event, dict) or not event.keys() >= {"events", "relation"}:
        raise TypeError(f"an event is what privacy_event or promised_event gave, not {shown(event)}")
    try:
        from dp_accounting import dp_event as dp
    except ImportError as error:
        raise ImportError("events of dp-accounting need that package: pip install dp-accounting") from error
    return dp.ComposedDpEvent(
        [made for each in event["events"] for made in _converted(dp, each, event["relation"], each["count"])]
    )


def _converted(dp: Any, event: dict[str, Any], relation: str, count: int) -> list[Any]:
    """One event, as often as it is composed."""
    kind = event["event"]
    if kind == "non-private":
        made = dp.NonPrivateDpEvent()
    elif kind == "concentrated":
        made = dp.ZCDpEvent(event["rho"])
    elif kind == "approximate":
        if not hasattr(dp, "EpsilonDeltaDpEvent"):
            raise ImportError(
                "this dp-accounting has no event of an epsilon with a delta: take a later one, or add up epsilons and "
                "deltas, as Budget does"
            )
        made = dp.EpsilonDeltaDpEvent(event["epsilon"], event["delta"])
    elif kind != "pure":
        raise ValueError(f"an event is pure, concentrated, approximate or non-private, not {shown(kind)}")
    elif relation == REPLACE_ONE:
        # one by one: PLDAccountant of dp-accounting 0.6.0 counts a randomised response in a self-composition once
        coin = dp.RandomizedResponseDpEvent(noise_parameter=float(2 / (1 + exp(event["epsilon"]))), num_buckets=2)
        return [coin] * count
    else:
        made = dp.DiscreteLaplaceDpEvent(noise_parameter=event["epsilon"], sensitivity=1)
    return [dp.SelfComposedDpEvent(made, count)]


def _tree(
    relation: str, epsilon: float, delta: float, events: list[dict[str, Any]], notes: Iterable[str]
) -> dict[str, Any]:
    return {
        "relation": relation,
        "unit": UNIT,
        "epsilon": finite(epsilon),
        "delta": delta,
        "charged": "rhos" if delta else "losses",
        "events": events,
        "notes": [*notes],
    }


def _described(event: _Cost, count: int, concentrated: bool) -> dict[str, Any]:
    if math.isinf(event.cost):
        return {"event": "non-private", "of": event.of, "count": count}
    kind, name = ("concentrated", "rho") if concentrated else ("pure", "epsilon")
    return {"event": kind, name: event.cost, "of": event.of, "count": count}


def _path_of(ledger: Ledger, relation: str, notes: dict[str, None]) -> _Path:
    """A list of events that bounds all that is below the root, under one relation."""
    paths = {each: _own_charges(ledger, each) for each in (ADD_REMOVE, REPLACE_ONE)}
    kinds = [kind for kind, parents in zip(ledger._kinds, ledger._parents, strict=True) for _ in parents]
    children: list[list[int]] = [[] for _ in kinds]
    for scope, parent in enumerate((parent for parents in ledger._parents[1:] for parent in parents.tolist()), 1):
        children[parent].append(scope)
    # a scope is opened after the one that it is under: backwards, children come first
    for scope in range(len(kinds) - 1, -1, -1):
        if children[scope]:
            below = {each: [tuple(paths[each][child]) for child in children[scope]] for each in paths}
            for each in paths:
                paths[each][scope] += _composed(kinds[scope], below, each, bool(ledger.delta), notes)
    return tuple(paths[relation][0])


def _own_charges(ledger: Ledger, relation: str) -> list[list[_Cost]]:
    """What each scope was charged itself, in order; nothing where it was nothing."""
    found: list[list[_Cost]] = [[] for _ in range(ledger._size)]
    for entry in ledger._charges:
        of = f"{entry.query}, {entry.mechanism}"
        for scope, cost in zip(entry.scopes.tolist(), entry.costs[relation].tolist(), strict=True):
            if cost:
                found[scope].append(_Cost(cost, of))
    return found


def _composed(
    kind: str, below: dict[str, list[_Path]], relation: str, concentrated: bool, notes: dict[str, None]
) -> _Path:
    """Events that bound the children of one scope, which compose by ``kind``."""
    mine = below[relation]
    if kind == "sequential":
        return tuple(event for path in mine for event in path)
    losses = [*map(_sum, below[ADD_REMOVE])]
    if kind not in ("partition", "assignment"):
        notes[_AMPLIFIED.format(kind)] = None
        if kind == "equal-split" and relation == REPLACE_ONE:
            return _joined(mine, kind, notes)
        pairs = [*zip(losses, map(_sum, below[REPLACE_ONE]), strict=True)]
        of = f"children by {kind}"
        if kind == "equal-split":
            return _single(equal_split(max(losses), len(losses)), of)
        if kind == "bootstrap":
            return tuple(e for ar, r1 in pairs for e in _single(float(bootstrap(ar, r1, relation)), of))
        return tuple(e for ar, _ in pairs for e in _single(float(poisson_bootstrap(ar, relation)), of))
    choices = [*dict.fromkeys(mine)]
    if relation == REPLACE_ONE and kind == "partition" and len(losses) > 1:
        # a record that moves is removed from one child and added to another: the two most expensive, if all are alike
        removals = sorted(below[ADD_REMOVE], key=_sum)
        if concentrated:
            choices.append(removals[-1] + removals[-2])
        elif len({*removals}) == 1:  # level by level, as a record that stays is charged
            choices.append(tuple(event for event in removals[-1] for _ in range(2)))
        else:
            choices.append(_single(_sum(removals[-1]) + _sum(removals[-2]), f"children by {kind}"))
    if concentrated:
        return max(choices, key=_sum)  # rhos add up: of two lists the one with the larger sum bounds both
    return _joined(choices, kind, notes)


def _single(cost: float, of: str) -> _Path:
    return (_Cost(cost, of),) if cost else ()


def _sum(path: _Path) -> float:
    return math.fsum(event.cost for event in path)


def _joined(choices: Sequence[_Path], kind: str, notes: dict[str, None]) -> _Path:
    """One list of losses that dominates each of several: one of them if it does, else a single event."""
    total = max(_exact_sum(path) for path in choices)
    for largest in choices:
        if _exact_sum(largest) == total and all(_fits(path, largest) for path in choices):
            return largest
    levels = _level_by_level(choices)
    if _exact_sum(levels) <= total:
        return levels
    notes[_JOINED.format(kind)] = None
    cost = float(total)
    return _single(cost if cost >= total else math.nextafter(cost, math.inf), f"children by {kind}")


def _exact_sum(path: _Path) -> Fraction | float:
    costs = [event.cost for event in path]
    return math.inf if math.inf in costs else sum(map(Fraction, costs), Fraction(0))


def _fits(path: _Path, into: _Path) -> bool:
    """Whether events, in their order, make groups of which each costs no more than one of ``into``."""
    waiting = [event.cost for event in path]
    for room in into:
        if math.isinf(room.cost):
            return True
        left = Fraction(room.cost)
        while waiting and waiting[0] <= left:
            left -= Fraction(waiting.pop(0))
    return not waiting


def _level_by_level(choices: Sequence[_Path]) -> _Path:
    """The most expensive event of each level."""
    longest = max(map(len, choices))
    return tuple(
        max((path[level] for path in choices if level < len(path)), key=lambda event: event.cost)
        for level in range(longest)
    )
