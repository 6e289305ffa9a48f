"""Fits of a learner as a mechanism to sample: draws of its released trees in words, and their exact law by replay.

:func:`fit_ratios` shows the likelihood ratios of a learner in one line; :func:`class_pair` is a pair of neighbours of a
table's own size, on which a learner that looks at purity without noise gives itself away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpforest.audit.attacks.observer import as_records
from dpforest.audit.exact.laws import Dataset, Law, law_of, law_of_labels
from dpforest.audit.report.batches import Fits, Written
from dpforest.audit.report.universes import longest
from dpforest.audit.sampling.ratios import LikelihoodRatios, likelihood_ratios
from dpforest.audit.search.pairs import Pair, as_pair
from dpforest.chance import NotEnumerableError
from dpforest.learners.base import PrivateEstimator
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, check_epsilon

__all__ = ["Fitted", "class_pair", "fit_ratios", "fits_of"]


class Fitted:
    """Draws, and exact laws, of what is seen of the fits of a learner; :func:`fits_of` makes it.

    Call it with ``(dataset, size, rng)``, as audits by sampling do.
    """

    def __init__(self, estimator: PrivateEstimator, seen: Callable[[str], str]):
        schema = estimator.audited_schema()
        depth = longest(estimator, schema.n_features)
        self._fits = Fits(estimator, depth, estimator.sharing(), labels=True, masks=estimator.AUDIT.masks)
        self._known: dict[str, Written] = {}
        self._laws: dict[Dataset, Law] = {}
        self._seen = seen

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> list[Written]:
        """What is seen of so many fits."""
        return [self._view(forest) for forest in self._fits(dataset, size, rng)]

    def _view(self, forest: Any) -> Written:
        if (words := forest.words) not in self._known:
            self._known[words] = Written(self._seen(words))
        return self._known[words]

    def law(self, dataset: Dataset) -> Law:
        """The exact probability of all that may be seen, by replay of the fit on every branch of its randomness.

        Raises
        ------
        NotEnumerableError
            If noisy numbers are used for more than the label of a leaf, as where boosted trees vote.
        ValueError
            If a fit has too many branches.
        """
        key = tuple(map(tuple, dataset))
        if key not in self._laws:
            self._laws[key] = self._law(key)
        return self._laws[key]

    def _law(self, dataset: Dataset) -> Law:
        fits = self._fits
        law: Law = {}
        try:
            whole = law_of(fits.estimator, fits.schema, dataset, fits.view)
        except NotEnumerableError:  # of noise: a leaf is asked for its largest count alone
            whole = law_of_labels(fits.estimator, fits.schema, dataset, fits.view)
        for forest, chance in whole.items():
            said = self._view(forest)
            law[said] = law.get(said, 0.0) + chance
        return law


def fits_of(estimator: PrivateEstimator, seen: Callable[[str], str] = str) -> Fitted:
    """A learner's fits as a mechanism to sample, for :func:`~dpforest.audit.sampling.ratios.likelihood_ratios`.

    Parameters
    ----------
    estimator : PrivateEstimator
        Configured, not fitted.  Its data sets are sequences of records ``(code_1, ..., code_m, class)``, as
        :func:`~dpforest.audit.attacks.observer.as_records` makes them of a table.
    seen : callable
        What an observer sees, in words, of the trees in words, such as ``"age[10](no, yes)"``: a split on age that
        sends code 1 to a leaf that says yes.  By default, all of it; of noisy numbers a leaf says the largest.

    Returns
    -------
    Fitted
        ``fits(dataset, size, rng)`` draws, ``fits.law(dataset)`` is the exact law.

    """
    return Fitted(estimator, seen)


def fit_ratios(
    estimator: PrivateEstimator,
    pair: Any,
    *,
    n: int = 20_000,
    seen: Callable[[str], str] = str,
    exact: bool = True,
    confidence: float = 0.95,
    random_state=None,
    progress: bool = False,
) -> LikelihoodRatios:
    """The likelihood ratios of a learner's fits on two neighbours, held against its epsilon.

    Parameters
    ----------
    estimator : PrivateEstimator
        Configured, not fitted; it says the claim and the relation.
    pair : (dataset, dataset) or (name, dataset, dataset)
        Two neighbours under the estimator's relation, as sequences of records ``(code_1, ..., code_m, class)``.
    n, confidence, random_state, progress
        As in :func:`~dpforest.audit.sampling.ratios.likelihood_ratios`.
    seen : callable
        As in :func:`fits_of`.
    exact : bool
        Whether the exact ratios are wanted, by replay.  They are left out where noisy numbers have too many values; a
        fit of more branches than replay visits raises.

    Returns
    -------
    LikelihoodRatios

    Examples
    --------
    >>> from dpforest import EDPRFClassifier, Schema
    >>> from dpforest.audit import fit_ratios
    >>> schema = Schema(categorical={"smokes": ["no", "yes"]}, classes=["well", "ill"])
    >>> tree = EDPRFClassifier(schema=schema, n_estimators=1, max_depth=1, leaf="label")
    >>> found = fit_ratios(tree, (((0, 0),), ((0, 0), (1, 1))), n=2000, random_state=0)
    >>> found.violated, found.covered == len(found.events)
    (False, True)
    """
    fits = fits_of(estimator, seen)
    pair = as_pair(pair, 0)
    law = fits.law if exact and _enumerable(fits, pair) else None
    return likelihood_ratios(
        fits,
        pair,
        check_epsilon(estimator.epsilon),
        n=n,
        confidence=confidence,
        random_state=random_state,
        relation=estimator.relation,
        law=law,
        progress=progress,
    )


def _enumerable(fits: Fitted, pair: Pair) -> bool:
    """Whether both laws can be replayed; they are kept."""
    try:
        return bool(fits.law(pair.one) and fits.law(pair.other))
    except NotEnumerableError:
        return False


def class_pair(estimator: PrivateEstimator, X: Any, y: Any) -> Pair:
    """All records of a table's most frequent class, and a neighbour in which one record is of another class.

    Under add-remove that record is one more; under replace-one it replaces the last.

    Parameters
    ----------
    estimator : PrivateEstimator
        A classifier with a schema; it says the relation.
    X, y
        As in ``fit``; at least two classes among the records.
    """
    records = as_records(estimator, X, y)
    classes = estimator.declared_schema().classes
    if classes is None:
        raise TypeError(f"class_pair is for classifiers, and {type(estimator).__name__} has a schema with a target")
    last = records[:, -1].astype(np.int64)
    counts = np.bincount(last, minlength=len(classes))
    common, rest = int(counts.argmax()), last[last != counts.argmax()]
    if not len(rest):
        raise ValueError(f"all {len(records)} records are of class {shown(classes[common])}: a second class is needed")
    one = [tuple(record) for record in records[last == common].tolist()]
    new = tuple(records[int(np.flatnonzero(last != common)[0])].tolist())
    kept = one if estimator.relation == ADD_REMOVE else one[:-1]
    return Pair(
        f"{len(one)} records of class {classes[common]}, and one of {classes[new[-1]]}", tuple(one), (*kept, new)
    )
