"""The registry: where each public name is defined.  Plain text; nothing is imported."""

#: The learners of each paper, by its key: the one name of its module in ``papers``, chapter, test and notebook.
PAPERS: dict[str, tuple[str, ...]] = {
    "edprf": ("EDPRFClassifier",),
    "diffprf": ("DiffPRFClassifier",),
    "diffprfs": ("DiffPRFsClassifier",),
    "random_trees": ("RandomTreesClassifier", "RandomTreesRegressor"),
    "dp_adaboost": ("DPAdaBoostClassifier",),
    "dps_adaboost": ("DPsAdaBoostClassifier",),
    "pearson_tree": ("PearsonTreeClassifier",),
    "diffpets": ("DiffPETsClassifier", "DiffPETsRegressor"),
    "functional_mechanism": ("FunctionalMechanismClassifier", "FunctionalMechanismRegressor"),
    "diff_lr": ("DiffLRRegressor",),
}

#: The module that defines each other public name.
NAMES: dict[str, str] = {
    "Guarantee": "privacy",
    "Ledger": "privacy",
    "OutOfSchemaWarning": "privacy",
    "ReleasedForest": "models.release",
    "Schema": "schema",
    "UnprovenPrivacyWarning": "privacy",
    "load": "models.release",
}

#: Public modules.
MODULES: tuple[str, ...] = ("budgets", "datasets", "mechanisms", "scores")

#: Modules that are there, too, as soon as the package is.
ROOMS: tuple[str, ...] = (
    "arithmetic", "chance", "counting", "curator", "design", "engines", "learners", "models", "papers", "privacy",
    "schema",
)  # fmt: skip
