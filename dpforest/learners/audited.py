"""What a learner tells its auditor: in which settings to look at it, and what of its paper's claim is refuted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpforest.privacy import RELATIONS

__all__ = [
    "CUT_ONCE",
    "EXACT",
    "GREY_BOX",
    "HALF_STOP",
    "LAYERS",
    "STATISTICAL",
    "AuditSpec",
    "Broken",
    "Settings",
    "refuted",
]

#: The layers of an audit: every branch with its probability, the ledger against the likelihood ratios, and samples.
LAYERS = EXACT, GREY_BOX, STATISTICAL = "exact", "greybox", "statistical"

#: Options, the features of the universe, and the depth of the trees; None leaves the learner's own.
Settings = tuple[tuple[dict[str, Any], int, int | None], ...]

HALF_STOP = {"stop_margin": 0.5}  # a stop offset with which a node of few records may either stop or split
CUT_ONCE = {"n_estimators": 1, "cuts_per_feature": 1}  # a feature of two codes has a single cut


@dataclass(frozen=True)
class Broken:
    """Why a published claim is refuted, and the layers that must find it so."""

    why: str
    layers: tuple[str, ...] = LAYERS


def refuted(why: str) -> dict[str, Broken]:
    """Refuted under both relations, and found so by every layer."""
    return dict.fromkeys(RELATIONS, Broken(why))


@dataclass(frozen=True)
class AuditSpec:
    """How the auditor looks at a learner.

    Attributes
    ----------
    name : str
        As the command line takes it.
    settings : tuple of (options, features, depth)
        What the report audits.
    broken : mapping
        For each relation under which the paper's claim is refuted, why.
    sizes : tuple of int
        Numbers of records at which something may change that is computed from their number.
    numeric : bool
        Whether the features of the universe are numeric ones; else they are categories.
    defaults : mapping
        Options that an audit sets unless others are given: a small universe does not need the learner's own.
    masks : bool
        Whether its trees may differ in nothing but where they cut a feature of two codes.
    answers : bool
        Whether its fits are looked at by what they say of every record of the universe: how many trees there are is
        an answer, too.
    reduced : bool
        Whether the report looks at less of each setting, and samples only what tells more than the other layers: the
        first setting, what is refuted, and what cannot be replayed.
    refutes : int
        Draws per side that it takes to refute what is refuted, where a fit is drawn by itself; 0 where as few do as any
        such audit takes.
    """

    name: str
    settings: Settings = field(repr=False)
    broken: Mapping[str, Broken] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    numeric: bool = False
    defaults: Mapping[str, Any] = field(default_factory=lambda: {"n_estimators": 1})
    masks: bool = False
    answers: bool = False
    reduced: bool = True
    refutes: int = 0
