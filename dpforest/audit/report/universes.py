"""The library's learners as an auditor sees them: on small universes, with the neighbours that tell most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sklearn.base import is_regressor

from dpforest.audit.exact.enumeration import ExactAudit, audit_pairs, exact_audit
from dpforest.audit.exact.laws import Dataset, Record, answers
from dpforest.audit.exact.paths import path_audit
from dpforest.audit.report.batches import Fits, SumsSampler
from dpforest.audit.report.settings import LEARNERS
from dpforest.audit.report.subjects import Scale, Subject, Target
from dpforest.audit.search.pairs import Pair
from dpforest.audit.search.traps import traps
from dpforest.chance import NotEnumerableError
from dpforest.learners.audited import EXACT
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, check_epsilon, check_relation
from dpforest.schema import Schema

__all__ = ["binary_schema", "default_universe", "learner", "longest", "pair_audit", "telling_pairs"]

#: Parameters that an audit sets itself, or that its seeded draws make meaningless.
_OURS = {"epsilon", "schema", "relation", "source", "random_state", "n_jobs"}


def binary_schema(features: int, *, numeric: bool = False, regression: bool = False) -> Schema:
    """Features f0, f1, ..., two classes or a target in [0, 1]: the universe of these audits.

    The features are binary, or with ``numeric`` as fine as an estimator's ``n_bins`` says.
    """
    check_count(features, "features")
    names = [f"f{at}" for at in range(features)]
    columns: dict = {"numeric" if numeric else "categorical": {name: [0, 1] for name in names}}
    answer: dict = {"target": (0, 1)} if regression else {"classes": [0, 1]}
    return Schema(**columns, **answer)


def default_universe(name: str, variant: str) -> tuple[int, int | None]:
    """Features, and depth of the trees, of the first of the report's settings with that variant."""
    every = LEARNERS[name].AUDIT.settings
    fits = [setting for setting in every if setting[0].get("variant", "proved") == variant]
    return (fits or every)[0][1:]


def learner(
    name: str,
    *,
    epsilon: float = 1.0,
    relation: str = ADD_REMOVE,
    features: int = 2,
    depth: int | None = 2,
    **options,
) -> Subject:
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
    kind = LEARNERS[name]
    told = kind.AUDIT
    known = set(kind().get_params()) - _OURS
    given = {**told.defaults, **options}
    epsilon = check_epsilon(epsilon)
    check_relation(relation)
    if depth is not None:
        given["max_depth"] = depth
    if unknown := sorted(set(given) - known):
        raise ValueError(f"{name} has no option {shown(unknown[0])}; it has: {', '.join(sorted(known))}")
    schema = binary_schema(features, numeric=told.numeric, regression=is_regressor(kind()))
    estimator = kind(epsilon=epsilon, schema=schema, relation=relation, **given)
    estimator.check_parameters()
    broken = told.broken.get(relation) if estimator.variant == "published" else None
    return Subject(
        name=name,
        options=", ".join(f"{key}={value}" for key, value in options.items() if key != "variant"),
        kind="learner",
        variant=estimator.variant,
        relation=relation,
        claim=epsilon,
        promise=epsilon if broken is None else _refuted_promise(estimator, epsilon),
        covers=frozenset({f"papers.{kind.__name__}"}),
        target=Universe(estimator),
        estimator=estimator,
        broken=broken,
        lacking=estimator.lacking(),
        delta=estimator.promised_delta(),
    )


def _refuted_promise(estimator: PrivateEstimator, epsilon: float) -> float:
    """The loss promised where a published claim is refuted; infinite if reads without a charge refute it."""
    own = estimator.promise(epsilon)
    return own if own > epsilon and estimator.relation != ADD_REMOVE else math.inf


class Universe(Target):
    """The data sets on which one estimator is audited, and its fits on them."""

    def __init__(self, estimator: PrivateEstimator):
        self.estimator = estimator
        delta = estimator.promised_delta()
        schema = estimator.audited_schema(delta)
        self.cardinalities, self.last = schema.cardinalities(estimator.bins(schema)).tolist(), answers(schema)
        self.record_kinds = math.prod(self.cardinalities) * len(self.last)
        one_tree = estimator.get_params().get("n_estimators") == 1
        self.engine = "states" if one_tree and not delta and estimator.by_paths() else "replays"
        known = telling_pairs(self.cardinalities, self.last, estimator.relation, estimator.AUDIT.sizes)
        self.cap = getattr(estimator, "n_max", math.inf)  # more records than the schema's owner promises are refused
        self.known = _at_most(self.cap, known)
        if estimator._RELEASED == "linear":
            self.sample = SumsSampler(estimator)
        else:
            depth, sharing = longest(estimator, schema.n_features), estimator.sharing()
            spec = estimator.AUDIT
            self.sample = fits = Fits(
                estimator, depth, sharing, estimator.leaf_is_label(), spec.masks, delta, spec.answers
            )
            self.features, self.slow, self.refutes = fits.features, sharing is None, estimator.AUDIT.refutes
        self._found: dict[Scale, ExactAudit] = {}

    def exact(self, scale: Scale, progress: bool = False) -> ExactAudit:
        """Over all neighbours of few records; where they are replayed, over the telling pairs as well."""
        if (why := self.estimator.lacking().get(EXACT)) is not None:
            raise NotEnumerableError(why)
        if scale not in self._found:
            self._found[scale] = self._exact(scale, progress)
        return self._found[scale]

    def _exact(self, scale: Scale, progress: bool) -> ExactAudit:
        n_max = scale.most(self.engine, self.record_kinds)
        if self.engine == "states":
            return path_audit(self.estimator, n_max=n_max, progress=progress)
        every = exact_audit(self.estimator, n_max=n_max, progress=progress)
        found = pair_audit(self.estimator, _at_most(self.estimator.most_replayed(), self.known))
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

    def traps(self, scale: Scale) -> list[Pair]:
        """Classical ones, as many as the scale says, from all over the list."""
        every = _at_most(self.cap, traps(self.cardinalities, self.last, self.estimator.relation))
        return every[:: max(1, math.ceil(len(every) / max(1, scale.traps)))] if scale.traps else []


def _at_most(records: float, pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs of data sets of at most so many records."""
    return [pair for pair in pairs if max(len(pair.one), len(pair.other)) <= records]


def telling_pairs(
    cardinalities: Iterable[int], n_classes: int | Sequence[int], relation: str, sizes: Iterable[int] = ()
) -> list[Pair]:
    """Neighbours of a few records on which a sound tree shows most of its loss in few draws.

    On universes of two binary features they include the best of all neighbours for the settings of eDPRF that were
    tried.  ``sizes`` asks for pairs of so many records and one less, too.  ``n_classes`` may be the codes of the
    records' last entries.
    """
    top = tuple(size - 1 for size in cardinalities)
    labels = list(range(n_classes)) if isinstance(n_classes, int) else list(n_classes)
    here, last = [(*top, label) for label in labels], len(labels) - 1
    # records like those in ``here`` with another value of the last feature, then with another one of the first
    beside = [(*top[:-1], 0, label) for label in labels]
    across = [(0, *top[1:], label) for label in labels]
    if check_relation(relation) == ADD_REMOVE:
        added: dict[str, tuple[Dataset, Record]] = {
            "the first record": ((), here[0]),
            "a second class": ((here[last],), beside[0]),
            "a second class after two": ((here[last], here[last]), beside[0]),
            "a tie, and one next to it": ((here[0], here[last]), beside[last]),
            "two apart, and one more": ((across[last], beside[0]), beside[0]),
        }
        found = [Pair(name, common, (*common, new)) for name, (common, new) in added.items()]
    else:
        replaced: dict[str, tuple[Dataset, Record, Record]] = {
            "a tie": ((here[last],), here[0], here[last]),
            "the last of its class": ((here[last], here[last]), here[0], here[last]),
            "from one side to another": ((here[0],), across[last], beside[last]),
            "two next to": ((beside[last], beside[last]), here[0], here[last]),
        }
        found = [Pair(name, (*common, old), (*common, new)) for name, (common, old, new) in replaced.items()]
    for size in sizes:
        many = tuple(here[at % len(labels)] for at in range(size))
        less = many[:-1] if relation == ADD_REMOVE else (*many[:-1], beside[0])
        found.append(Pair(f"{size} records", less, many))
    sort = [Pair(pair.name, tuple(sorted(pair.one)), tuple(sorted(pair.other))) for pair in found]
    return [pair for pair in sort if pair.one != pair.other]


def pair_audit(estimator: PrivateEstimator, pairs: Iterable[Pair]) -> ExactAudit:
    """The exact loss over the given pairs alone, by replay; noisy counts by lemma, as in :func:`exact_audit`."""
    both = [(pair.one, pair.other) for pair in pairs]
    return audit_pairs(estimator, dict.fromkeys(data for pair in both for data in pair), both)


def longest(estimator: PrivateEstimator, features: int) -> int:
    """Splits on the longest path; where the estimator computes it itself, at most half of the features."""
    if not hasattr(estimator, "max_depth"):
        return features  # of two codes each, which a path divides once
    depth = estimator.max_depth
    return max(1, features // 2) if depth is None else int(depth)
