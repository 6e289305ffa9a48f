"""The peers, each behind one function: fit on records with a seed, and say what a reader of the fitted model sees.

A record is a tuple of its features and, last, its class.  Every function returns one row of numbers.  The libraries
are imported where they are used, so that this module can be read, and its cases checked, without them.
"""

from __future__ import annotations

import importlib.metadata
import warnings

import numpy as np

PACKAGES = {"diffprivlib": "diffprivlib", "InterpretML": "interpret-core"}


def split(records, dtype=float):
    """Records as a table and its classes."""
    return np.array([r[:-1] for r in records], dtype=dtype), np.array([r[-1] for r in records])


def versions() -> dict[str, str]:
    """What a run depends on."""
    names = ["numpy", "scipy", "scikit-learn", *PACKAGES.values(), "dpforest"]
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            import dpforest  # used from the checkout, not installed

            found[name] = dpforest.__version__ if name == "dpforest" else "missing"
    return found


def probe(case) -> dict:
    """Fit once as a user would, without a seed: the warnings that are raised, and what the library books as spent."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spent: list = []
        case.learner(case.one, None, spent=spent, **case.settings)
    return {"warnings": sorted({w.category.__name__ for w in caught}), "booked": spent or None}


def _booked(accountant, spent) -> None:
    if spent is not None:
        spent.extend(float(part) for part in accountant.total())


def forest(records, seed, *, probes, spent=None, **settings):
    """What every tree of diffprivlib's RandomForestClassifier answers at the probes, tree by tree."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import RandomForestClassifier

    X, y = split(records)
    accountant = BudgetAccountant()
    model = RandomForestClassifier(random_state=seed, accountant=accountant, **settings).fit(X, y)
    _booked(accountant, spent)
    points = np.array(probes, dtype=np.float32)
    # The trees of the forest know the classes by their position.
    return np.concatenate([tree.tree_.predict(points).reshape(len(points), -1).argmax(1) for tree in model.estimators_])


def forest_classes(records, seed, *, spent=None, **settings):
    """How many classes diffprivlib's RandomForestClassifier found."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import RandomForestClassifier

    X, y = split(records)
    accountant = BudgetAccountant()
    model = RandomForestClassifier(random_state=seed, accountant=accountant, **settings).fit(X, y)
    _booked(accountant, spent)
    return np.array([len(model.classes_)])


def tree(records, seed, *, probes, spent=None, **settings):
    """What diffprivlib's DecisionTreeClassifier answers at the probes."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import DecisionTreeClassifier

    X, y = split(records)
    accountant = BudgetAccountant()
    model = DecisionTreeClassifier(random_state=seed, accountant=accountant, **settings).fit(X, y)
    _booked(accountant, spent)
    return model.tree_.predict(np.array(probes, dtype=np.float32)).reshape(len(probes), -1).argmax(1)


def bayes(records, seed, *, spent=None, classes=None, **settings):
    """Class counts, means and variances of diffprivlib's GaussianNB; with ``classes``, given through partial_fit."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import GaussianNB

    X, y = split(records)
    accountant = BudgetAccountant()
    model = GaussianNB(random_state=seed, accountant=accountant, **settings)
    model.fit(X, y) if classes is None else model.partial_fit(X, y, classes=classes)
    _booked(accountant, spent)
    return np.concatenate([model.class_count_, model.theta_.ravel(), model.var_.ravel()])


def _boosted(records, seed, dtype, settings):
    from interpret.privacy import DPExplainableBoostingClassifier

    X, y = split(records, dtype)
    model = DPExplainableBoostingClassifier(random_state=seed, n_jobs=1, **settings)
    with warnings.catch_warnings():
        if seed is not None:  # it warns, rightly, that a seed is for tests only
            warnings.simplefilter("ignore")
        return model.fit(X, y)


def boosted_names(records, seed, *, name, spent=None, **settings):
    """Whether the fitted DP-EBM lists a category by name in ``bins_``."""
    return np.array([name in _boosted(records, seed, object, settings).bins_[0][0]])


def boosted_size(records, seed, *, spent=None, **settings):
    """The ``bag_weights_`` of the fitted DP-EBM."""
    return np.array(_boosted(records, seed, float, settings).bag_weights_)


def boosted_classes(records, seed, *, spent=None, **settings):
    """How many classes the fitted DP-EBM lists in ``classes_``."""
    return np.array([len(_boosted(records, seed, float, settings).classes_)])


def boosted_scores(records, seed, *, probes, spent=None, **settings):
    """Scores of the fitted DP-EBM at the probes, and the smallest and largest of its noisy bin weights."""
    model = _boosted(records, seed, float, settings)
    weights = np.asarray(model.bin_weights_[0])
    return np.concatenate([model.decision_function(np.array(probes)), [weights[1], weights[-2], len(weights)]])
