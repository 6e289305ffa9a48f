"""Everything of the library that can be audited, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

from dpforest import scores
from dpforest.audit.report.primitives import Counts, SelectionMechanism, TextbookLaplace
from dpforest.audit.report.procedures import PROCEDURES, procedure
from dpforest.audit.report.settings import LEARNERS
from dpforest.audit.report.subjects import EXACT, STATISTICAL, Subject
from dpforest.audit.report.universes import learner
from dpforest.learners.audited import Broken
from dpforest.mechanisms import SELECTIONS
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, RELATIONS, check_epsilon
from dpforest.scores import Score

__all__ = ["MECHANISMS", "NAMES", "SCORES", "mechanism", "subjects"]

#: What a Pearson tree of two classes chooses by, for as few parts as tell them apart.
_PARTED = scores.averaged(scores.for_classes(scores.absolute_pearson, 2), 2)

#: The scores by name.
SCORES = {value.name: value for value in vars(scores).values() if isinstance(value, Score)} | {_PARTED.name: _PARTED}

_ROUNDED = Broken(
    "the doubles that the textbook sampler can return depend on the count (cex-float-laplace)", (EXACT, STATISTICAL)
)


def _selection(name: str, relation: str, epsilon: float, score: str = "gini") -> Subject:
    if score not in SCORES:
        raise ValueError(f"there is no score {shown(score)}; there are: {', '.join(SCORES)}")
    word, made = name.replace("-", "_"), {score.replace("-", "_")}
    if score == _PARTED.name:
        made = {"averaged", "for_classes"}
    covers = {f"mechanisms.{word}", f"mechanisms.{word}_law", "mechanisms.select"} | {f"scores.{by}" for by in made}
    return Subject(
        name=name,
        options=f"score={score}",
        kind="selection",
        relation=relation,
        claim=epsilon,
        promise=epsilon,
        covers=frozenset(covers),
        target=SelectionMechanism(name, SCORES[score], relation, epsilon),
    )


def _geometric(name: str, relation: str, epsilon: float) -> Subject:
    covers = frozenset({"mechanisms.two_sided_geometric", "mechanisms.two_sided_geometric_law"})
    return Subject(
        name=name,
        kind="noise",
        relation=relation,
        claim=epsilon,
        promise=epsilon,
        covers=covers,
        target=Counts(relation, epsilon),
    )


def _textbook(name: str, relation: str, epsilon: float) -> Subject:
    return Subject(
        name=name,
        kind="noise",
        variant="published",
        relation=relation,
        claim=epsilon,
        promise=math.inf,
        covers=frozenset({"mechanisms.laplace_textbook"}),
        target=TextbookLaplace(relation, epsilon),
        broken=_ROUNDED,
    )


#: The mechanisms and the procedures by the name that the command line takes, and what makes a subject of each.
MECHANISMS: dict[str, Callable[..., Subject]] = {
    **dict.fromkeys(SELECTIONS, _selection),
    "geometric": _geometric,
    "laplace-textbook": _textbook,
    **dict.fromkeys(PROCEDURES, procedure),
}

NAMES = (*LEARNERS, *MECHANISMS)


def mechanism(name: str, *, epsilon: float = 1.0, relation: str = ADD_REMOVE, **options) -> Subject:
    """The mechanism or the procedure of that name as a subject; a selection takes ``score``, the latter a ``slip``."""
    takes = {"score"} if name in SELECTIONS else {"slip"} if name in PROCEDURES else set()
    if unknown := sorted(set(options) - takes):
        raise ValueError(f"{name} has no option {shown(unknown[0])}; it has: {', '.join(takes) or 'none'}")
    return MECHANISMS[name](name, relation, check_epsilon(epsilon), **options)


def _spared(subject: Subject) -> Subject:
    """The subject without the statistical layer, unless that must find a violation, or the exact layer is lacking."""
    if STATISTICAL in subject.expected or EXACT in subject.lacking:
        return subject
    return replace(subject, lacking={**subject.lacking, STATISTICAL: "its mechanisms are sampled in another setting"})


def subjects(epsilon: float = 1.0, turns: bool = False) -> list[Subject]:
    """Every mechanism, with every score where it takes one, and every estimator in each setting that touches privacy.

    Each is listed under both relations.  A test fails if the library exports one that is not listed here.

    Parameters
    ----------
    epsilon : float
    turns : bool
        Whether a setting of an estimator, or a procedure, in which no violation must be found is listed under one
        relation alone, one setting under this relation and the next under the other; and whether an estimator is
        sampled in its first setting alone, where there is an exact audit of the others.  Every estimator still has both
        relations, and so has every mechanism, which costs next to nothing, and every procedure with its slip.
    """
    found = []
    turn = cycle(RELATIONS)

    def taking(both: list[Subject]) -> list[Subject]:
        """One of the two, in its turn, where neither must be caught and turns are asked for."""
        if not turns or any(made.expected for made in both):
            return both
        one = next(turn)
        return [made for made in both if made.relation == one]

    for name, kind in LEARNERS.items():
        for number, (options, features, depth) in enumerate(kind.AUDIT.settings):
            both = [
                learner(name, epsilon=epsilon, relation=relation, features=features, depth=depth, **options)
                for relation in RELATIONS
            ]
            both = [replace(made, spare=kind.AUDIT.reduced) for made in taking(both)]
            found += [_spared(made) if number and (made.spare or turns) else made for made in both]
    for name in MECHANISMS:
        each: list[dict] = [{"score": score} for score in SCORES] if name in SELECTIONS else [{}]
        if name in PROCEDURES:
            each = [{}, {"slip": True}]
        for options in each:
            both = [mechanism(name, epsilon=epsilon, relation=relation, **options) for relation in RELATIONS]
            found += taking(both) if name in PROCEDURES else both
    return found
