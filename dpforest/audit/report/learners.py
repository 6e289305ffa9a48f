"""The library's learners as an auditor sees them: on small universes, with the neighbours that tell most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sklearn.base import is_regressor

from dpforest.audit.exact.laws import Dataset, Record, answers
from dpforest.audit.exact.paths import path_audit
from dpforest.audit.exact.replay import ExactAudit, audit_pairs, exact_audit
from dpforest.audit.report.batches import Fits, Sums
from dpforest.audit.report.settings import LEARNERS
from dpforest.audit.report.subjects import Scale, Subject
from dpforest.audit.search.pairs import Pair
from dpforest.chance import NotEnumerableError
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.parameters import check_count
from dpforest.privacy import ADD_REMOVE, check_epsilon, check_relation
from dpforest.schema import Schema

__all__ = ["binary_schema", "default_universe", "learner", "pair_audit", "telling_pairs"]

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
    kind = LEARNERS[name]
    told = kind.AUDIT
    known = set(kind().get_params()) - _OURS
    given = {**told.usual, **options}
    epsilon = check_epsilon(epsilon)
    check_relation(relation)
    if depth is not None:
        given["max_depth"] = depth
    if unknown := sorted(set(given) - known):
        raise ValueError(f"{name} has no option {unknown[0]!r}; it has: {', '.join(sorted(known))}")
    schema = binary_schema(features, numeric=told.numeric, regression=is_regressor(kind()))
    estimator = kind(epsilon=epsilon, schema=schema, relation=relation, **given)
    estimator.check_parameters()
    broken = told.broken.get(relation) if estimator.variant == "published" else None
    said = [f"{key}={value}" for key, value in options.items() if key != "variant"]
    universe, lacking = _Universe(estimator), estimator.lacking()
    sample: Fits | Sums = Sums(estimator)
    if estimator._RELEASED != "linear":
        sample = Fits(
            estimator, _longest(estimator, features), estimator.sharing(), estimator.says_labels(), told.masks
        )  # fmt: skip
    return Subject(
        name, ", ".join(said), "learner", estimator.variant, relation, epsilon, _promise(estimator, epsilon, broken),
        frozenset({f"papers.{kind.__name__}"}), universe.engine, universe.record_kinds,
        universe.exact, universe.pairs, sample, None, getattr(sample, "features", None), estimator,
        frozenset(broken.layers if broken else ()) - lacking.keys(), broken.why if broken else "", lacking,
        slow=getattr(sample, "sharing", "all") is None,
    )  # fmt: skip


def _promise(estimator: PrivateEstimator, epsilon: float, broken) -> float:
    """What the library promises: where a published claim is refuted by unpaid reads, nothing."""
    if broken is None:
        return epsilon
    own = estimator.promise(epsilon)
    return own if own > epsilon and estimator.relation != ADD_REMOVE else math.inf


class _Universe:
    """The data sets on which one estimator is audited."""

    def __init__(self, estimator: PrivateEstimator):
        self.estimator = estimator
        self.schema = estimator.declared_schema()
        self.cardinalities = self.schema.cardinalities(estimator.bins(self.schema)).tolist()
        last = answers(self.schema)
        self.record_kinds = math.prod(self.cardinalities) * len(last)
        one_tree = estimator.get_params().get("n_estimators") == 1
        self.engine = "states" if one_tree and estimator.by_paths() else "replays"
        cap = getattr(estimator, "n_max", math.inf)  # more records than the schema's owner promises are refused
        known = telling_pairs(self.cardinalities, last, estimator.relation, estimator.AUDIT.sizes)
        self.known = [pair for pair in known if max(map(len, pair[1:])) <= cap]
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
        most = self.estimator.most_replayed()
        found = pair_audit(self.estimator, [pair for pair in self.known if max(map(len, pair[1:])) <= most])
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
    # beside: another value of the last feature; across: of the first
    beside = [(*top[:-1], 0, label) for label in labels]
    across = [(0, *top[1:], label) for label in labels]
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
        many = tuple(here[at % len(labels)] for at in range(size))
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
