"""The papers: for each key, which is the name of its module, the estimators that the module holds."""

from __future__ import annotations

__all__ = ["PAPERS"]

PAPERS: dict[str, tuple[str, ...]] = {
    "edprf": ("EDPRFClassifier",),
    "diffpets": ("DiffPETsClassifier", "DiffPETsRegressor"),
    "random_trees": ("RandomTreesClassifier", "RandomTreesRegressor"),
    "diffprf": ("DiffPRFClassifier",),
    "diffprfs": ("DiffPRFsClassifier",),
    "functional_mechanism": ("FunctionalMechanismRegressor", "FunctionalMechanismClassifier"),
    "diff_lr": ("DiffLRRegressor",),
    "dps_adaboost": ("DPsAdaBoostClassifier",),
    "dp_adaboost": ("DPAdaBoostClassifier",),
    "pearson_tree": ("PearsonTreeClassifier",),
}
