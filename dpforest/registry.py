"""The registry: where each public name is defined.  Plain text; nothing is imported."""

#: The learners of each paper, by its key: the one name of its module in ``papers``, chapter, test and notebook.  The
#: library's own learner is no paper, and has a room of its own.
#: `make lists` writes what is made from it: imports, the README's table, the API page.
PAPERS: dict[str, tuple[str, ...]] = {
    "edprf": ("EDPRFClassifier",),
    "random_trees": ("RandomTreesClassifier", "RandomTreesRegressor"),
    "diffpets": ("DiffPETsClassifier", "DiffPETsRegressor"),
    "diffprf": ("DiffPRFClassifier",),
    "diffprfs": ("DiffPRFsClassifier",),
    "dps_adaboost": ("DPsAdaBoostClassifier",),
    "dp_adaboost": ("DPAdaBoostClassifier",),
    "pearson_tree": ("PearsonTreeClassifier",),
    "functional_mechanism": ("FunctionalMechanismRegressor", "FunctionalMechanismClassifier"),
    "diff_lr": ("DiffLRRegressor",),
    "diffp_id3": ("DiffPID3Classifier",),
    "sulq_id3": ("SulqID3Classifier",),
    "pinq_id3": ("PinqID3Classifier",),
    "diffp_c45": ("DiffPC45Classifier",),
    "diffgen": ("DiffGenClassifier",),
    "dt_diff": ("DTDiffClassifier",),
    "smooth_forest": ("SmoothForestClassifier",),
    "dp_ebm": ("DPEBMClassifier", "DPEBMRegressor"),
    "private_boosting": ("PrivateBoostingClassifier", "PrivateBoostingRegressor"),
    "privatree": ("PrivaTreeClassifier",),
    "diprime": ("DiPriMeClassifier", "DiPriMeRegressor"),
    "dp_tr": ("DPTRClassifier",),
    "s_bdt": ("SBDTClassifier",),
    "aim": ("AIMClassifier",),
}

#: Where a key has a room of its own; the learners of the others are in ``papers.KEY``.
ROOM_OF = {"private_boosting": "flagship"}

#: The module that defines each other public name.
NAMES: dict[str, str] = {
    "Budget": "privacy",
    "BudgetError": "privacy",
    "BudgetWarning": "privacy",
    "Guarantee": "privacy",
    "Ledger": "privacy",
    "OutOfSchemaWarning": "privacy",
    "Prefix": "schema",
    "ReleasedForest": "models.release",
    "Schema": "schema",
    "UnprovenPrivacyWarning": "privacy",
    "load": "models.release",
}

#: Public modules.
MODULES: tuple[str, ...] = ("budgets", "datasets", "evaluation", "inspect", "mechanisms", "scores")

#: Modules that are there, too, as soon as the package is.
ROOMS: tuple[str, ...] = (
    "arithmetic",
    "chance",
    "counting",
    "curator",
    "design",
    "engines",
    "flagship",
    "learners",
    "models",
    "papers",
    "privacy",
    "schema",
)
