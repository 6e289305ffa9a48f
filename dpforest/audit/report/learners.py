"""The library's learners as an auditor sees them: on small universes, with the neighbours that tell most."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpforest.audit.exact.laws import Dataset, Record
from dpforest.audit.exact.paths import path_audit
from dpforest.audit.exact.replay import ExactAudit, audit_pairs, exact_audit
from dpforest.audit.report.batches import Fits
from dpforest.audit.report.subjects import LAYERS, Scale, Subject
from dpforest.audit.search.pairs import Pair
from dpforest.chance import NotEnumerableError
from dpforest.estimators import PrivateEstimator, check_count
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.random_trees import RandomTreesClassifier
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE, check_epsilon, check_relation
from dpforest.schema import Schema

__all__ = ["LEARNERS", "Learner", "binary_schema", "default_universe", "learner", "pair_audit", "telling_pairs"]


@dataclass(frozen=True)
class Learner:
    """How to audit an estimator of the library.

    Attributes
    ----------
    estimator : type
    sharing : {"parallel", "sequential"} or None
        How fits may be sampled together, see :class:`~dpforest.audit.report.batches.Fits`.
    by_paths : bool
        Whether one tree of it can be audited path by path; a forest, and any other learner, is replayed.
    labels : callable
        Whether a configured estimator says one label in a leaf; else it says noisy counts.
    broken : mapping
        For each relation under which the paper's claim is refuted, why.
    settings : tuple of (options, features, depth)
        What the report audits; depth None leaves the estimator's own.
    sizes : tuple of int
        Numbers of records at which something may change that is computed from their number.
    """

    estimator: type[PrivateEstimator]
    sharing: str | None
    by_paths: bool
    labels: Callable[[PrivateEstimator], bool]
    broken: Mapping[str, str]
    settings: tuple[tuple[dict[str, Any], int, int | None], ...] = field(repr=False)
    sizes: tuple[int, ...] = ()


#: Parameters that an audit sets itself, or that its seeded draws make meaningless.
_OURS = {"epsilon", "schema", "relation", "source", "random_state", "n_jobs"}

_HALF = {"stop_margin": 0.5}  # a head start that lets a node of few records do either, stop or split
_PURITY = "the published code reads, unpaid, whether the records of a node share one class (cex-purity-stop)"
_HEIGHT = "the published height of a tree is computed from the number of records (pub-random-trees)"

#: The estimators by the name that the command line takes.  A new one needs an entry: a test says so.
LEARNERS = {
    "edprf": Learner(
        EDPRFClassifier, "parallel", True, lambda model: model.leaf == "label",
        {ADD_REMOVE: _PURITY, REPLACE_ONE: _PURITY},
        (
            ({}, 2, 2),
            (_HALF, 2, 2),
            (_HALF | {"selection": "exponential"}, 2, 2),
            (_HALF | {"leaf": "counts"}, 2, 2),
            (_HALF | {"leaf": "counts", "selection": "exponential", "budget": "aligned-uniform"}, 2, 2),
            (_HALF | {"criterion": "gini-gain"}, 2, 2),
            (_HALF | {"criterion": "majority"}, 2, 2),
            (_HALF | {"criterion": "information-gain", "n_max": 16}, 2, 2),
            (_HALF | {"budget": "harmonic"}, 2, 2),
            (_HALF | {"budget": "uniform"}, 2, 2),
            ({"stop": "never"}, 2, 2),
            ({"stop": "never", "criterion": "normalised-gini"}, 2, 2),
            ({"stop": "never", "calibration": "sensitivity"}, 2, 2),
            ({"stop": "never", "n_estimators": 2}, 1, 1),
            ({"variant": "published"}, 2, 2),
            ({"variant": "published", "criterion": "normalised-gini"}, 2, 2),
            ({"variant": "published", "n_estimators": 2}, 1, 1),
        ),
    ),
    "random-trees": Learner(
        RandomTreesClassifier, "sequential", False, lambda model: False, {ADD_REMOVE: _HEIGHT},
        (
            ({}, 2, 1),
            ({"split": "multiway"}, 2, 1),
            ({"n_estimators": 2}, 2, 1),
            ({"variant": "published"}, 4, None),
        ),
        (8,),
    ),
}  # fmt: skip


def binary_schema(features: int) -> Schema:
    """Binary features f0, f1, ... and two classes: the universe of these audits."""
    check_count(features, "features")
    return Schema(categorical={f"f{at}": [0, 1] for at in range(features)}, classes=[0, 1])


def default_universe(name: str, variant: str) -> tuple[int, int | None]:
    """Features, and depth of the trees, of the first of the report's settings with that variant."""
    every = LEARNERS[name].settings
    fits = [setting for setting in every if setting[0].get("variant", "proved") == variant]
    return (fits or every)[0][1:]


def learner(
    name: str, *, epsilon: float = 1.0, relation: str = ADD_REMOVE, features: int = 2, depth: int | None = 2,
    **options,
) -> Subject:  # fmt: skip
    """The estimator of that name as a subject, one tree on binary features unless ``options`` say otherwise.

    Parameters
    ----------
    name : str
        One of ``LEARNERS``.
    epsilon : float
    relation : {"add-remove", "replace-one"}
    features : int
        Binary features of the universe.
    depth : int or None
        The estimator's ``max_depth``; None leaves its own.
    **options
        Parameters of the estimator.

    Raises
    ------
    ValueError, TypeError
        If the estimator does not take the options, or not together.
    """
    kind, schema = LEARNERS[name], binary_schema(features)
    epsilon, given = check_epsilon(epsilon), {"n_estimators": 1} | options
    check_relation(relation)
    if depth is not None:
        given["max_depth"] = depth
    known = set(kind.estimator().get_params()) - _OURS
    if unknown := sorted(set(given) - known):
        raise ValueError(f"{name} has no option {unknown[0]!r}; it has: {', '.join(sorted(known))}")
    estimator = kind.estimator(epsilon=epsilon, schema=schema, relation=relation, **given)
    estimator._check_parameters()
    why = kind.broken.get(relation, "") if estimator.variant == "published" else ""
    said = [f"{key}={value}" for key, value in options.items() if key != "variant"]
    universe = _Universe(kind, estimator)
    fits = Fits(estimator, _longest(estimator, features), kind.sharing, kind.labels(estimator))
    return Subject(
        name, ", ".join(said), "learner", estimator.variant, relation, epsilon, math.inf if why else epsilon,
        frozenset({f"papers.{kind.estimator.__name__}"}), universe.engine, universe.record_kinds,
        universe.exact, universe.pairs, fits, None, fits.features if fits.labels else None, estimator,
        frozenset(LAYERS if why else ()), why,
    )  # fmt: skip


class _Universe:
    """The data sets on which one estimator is audited."""

    def __init__(self, kind: Learner, estimator: PrivateEstimator):
        self.kind, self.estimator = kind, estimator
        self.schema = estimator._public_schema(None, None)
        self.cardinalities = self.schema.cardinalities(estimator.n_bins).tolist()
        self.record_kinds = math.prod(self.cardinalities) * self.schema.n_classes
        one_tree = estimator.get_params()["n_estimators"] == 1
        self.engine = "states" if kind.by_paths and one_tree else "replays"
        self.known = telling_pairs(self.cardinalities, self.schema.n_classes, estimator.relation, kind.sizes)
        self._found: dict[Scale, ExactAudit] = {}

    def exact(self, scale: Scale, progress: bool = False) -> ExactAudit:
        """Over all neighbours of few records; where they are replayed, over the telling pairs as well."""
        if scale not in self._found:
            self._found[scale] = self._exact(scale, progress)
        return self._found[scale]

    def _exact(self, scale: Scale, progress: bool) -> ExactAudit:
        n_max = scale.most(self.engine, self.record_kinds)
        if self.engine == "states":
            return path_audit(self.estimator, n_max=n_max, progress=progress)
        every = exact_audit(self.estimator, n_max=n_max, progress=progress)
        found = pair_audit(self.estimator, self.known)
        worst = max((every, found), key=lambda audit: audit.epsilon)
        counts = {word: getattr(every, word) + getattr(found, word) for word in ("n_datasets", "n_pairs")}
        return replace(worst, **counts)

    def pairs(self, scale: Scale) -> list[Pair]:
        """The worst pair of the exact audit, and those that are known to tell much."""
        try:
            worst = [Pair("worst pair", *self.exact(scale).pair)]
        except (ValueError, NotEnumerableError):  # the exact layer says why
            worst = []
        return worst + self.known


def telling_pairs(cardinalities: Iterable[int], n_classes: int, relation: str, sizes: Iterable[int] = ()) -> list[Pair]:
    """Neighbours of a few records on which a sound tree shows most of its loss in few draws.

    On universes of two binary features they include the best of all neighbours for the settings of eDPRF that were
    tried.  ``sizes`` asks for pairs of so many records and one less, too.
    """
    top = tuple(size - 1 for size in cardinalities)
    here, last = [(*top, label) for label in range(n_classes)], n_classes - 1
    # beside: another value of the last feature; across: of the first
    beside = [(*top[:-1], 0, label) for label in range(n_classes)]
    across = [(0, *top[1:], label) for label in range(n_classes)]
    if check_relation(relation) == ADD_REMOVE:
        added: dict[str, tuple[Dataset, Record]] = {
            "the first record": ((), here[0]),
            "a second class": ((here[last],), beside[0]),
            "a second class after two": ((here[last], here[last]), beside[0]),
            "a tie, and one beside it": ((here[0], here[last]), beside[last]),
            "two apart, and one more": ((across[last], beside[0]), beside[0]),
        }
        found = [Pair(name, common, (*common, new)) for name, (common, new) in added.items()]
    else:
        replaced: dict[str, tuple[Dataset, Record, Record]] = {
            "a tie": ((here[last],), here[0], here[last]),
            "the last of its class": ((here[last], here[last]), here[0], here[last]),
            "from one side to another": ((here[0],), across[last], beside[last]),
            "two beside": ((beside[last], beside[last]), here[0], here[last]),
        }
        found = [Pair(name, (*common, old), (*common, new)) for name, (common, old, new) in replaced.items()]
    for size in sizes:
        many = tuple(here[at % n_classes] for at in range(size))
        less = many[:-1] if relation == ADD_REMOVE else (*many[:-1], beside[0])
        found.append(Pair(f"{size} records", less, many))
    sort = [Pair(pair.name, tuple(sorted(pair.one)), tuple(sorted(pair.other))) for pair in found]
    return [pair for pair in sort if pair.one != pair.other]


def pair_audit(estimator: PrivateEstimator, pairs: Iterable[Pair]) -> ExactAudit:
    """The exact loss over the given pairs alone, by replay; noisy counts by lemma, as in :func:`exact_audit`."""
    both = [(pair.one, pair.other) for pair in pairs]
    return audit_pairs(estimator, dict.fromkeys(data for pair in both for data in pair), both)


def _longest(estimator: PrivateEstimator, features: int) -> int:
    """Splits on the longest path; where the estimator computes it itself, at most half of the features."""
    depth = getattr(estimator, "max_depth", None)
    return max(1, features // 2) if depth is None else int(depth)
