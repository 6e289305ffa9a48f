"""Fits of a learner as a mechanism to sample: draws of its released trees in words, and their exact law by replay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpforest.audit.exact.laws import Dataset, Law, law_of, law_of_labels
from dpforest.audit.report.batches import Fits, Written
from dpforest.audit.report.learners import longest
from dpforest.chance import NotEnumerableError
from dpforest.learners.base import PrivateEstimator

__all__ = ["Fitted", "fits_of"]


class Fitted:
    """Draws, and exact laws, of what is seen of the fits of a learner; :func:`fits_of` makes it.

    Call it with ``(dataset, size, rng)``, as audits by sampling do.
    """

    def __init__(self, estimator: PrivateEstimator, seen: Callable[[str], str]):
        schema = estimator.audited_schema()
        depth = longest(estimator, schema.n_features)
        self._fits = Fits(estimator, depth, estimator.sharing(), labels=True, masks=estimator.AUDIT.masks)
        self._known: dict[str, Written] = {}
        self._seen = seen

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> list[Written]:
        """What is seen of so many fits."""
        return [self._view(forest) for forest in self._fits(dataset, size, rng)]

    def _view(self, forest: Written) -> Written:
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
        fits = self._fits
        law: Law = {}
        try:
            whole = law_of(fits.estimator, fits.schema, dataset, fits.view)
        except NotEnumerableError:  # of noise: a leaf is asked for its largest count alone
            whole = law_of_labels(fits.estimator, fits.schema, dataset, fits.view)
        for forest, chance in whole.items():
            law[self._view(forest)] = law.get(self._view(forest), 0.0) + chance
        return law


def fits_of(estimator: PrivateEstimator, seen: Callable[[str], str] = str) -> Fitted:
    """A learner's fits as a mechanism to sample, for :func:`~dpforest.audit.sampling.ratios.likelihood_ratios`.

    Parameters
    ----------
    estimator : PrivateEstimator
        Configured, not fitted.  Its data sets are sequences of records ``(code_1, ..., code_m, class)``, as
        :func:`~dpforest.audit.attacks.observer.as_records` makes them of a table.
    seen : callable
        What an observer sees, in words, of the trees in words, such as ``"age[10](no, yes)"``: a split on age that sends
        code 1 to a leaf that says yes.  All of it unless told otherwise; of noisy numbers a leaf says the largest.

    Returns
    -------
    Fitted
        ``fits(dataset, size, rng)`` draws, ``fits.law(dataset)`` is the exact law.

    Examples
    --------
    >>> from dpforest import EDPRFClassifier, Schema
    >>> from dpforest.audit import fits_of, likelihood_ratios
    >>> schema = Schema(categorical={"smokes": ["no", "yes"]}, classes=["well", "ill"])
    >>> tree = EDPRFClassifier(schema=schema, n_estimators=1, max_depth=1, leaf="label")
    >>> fits = fits_of(tree)
    >>> found = likelihood_ratios(fits, (((0, 0),), ((0, 0), (1, 1))), claim=1.0, law=fits.law, n=2000, random_state=0)
    >>> found.violated, found.covered == len(found.events)
    (False, True)
    """
    return Fitted(estimator, seen)
