"""The library's learners by the names that the command line takes."""

from __future__ import annotations

from dpforest.flagship import PrivateBoostingClassifier, PrivateBoostingRegressor
from dpforest.learners.base import PrivateEstimator
from dpforest.papers.aim import AIMClassifier
from dpforest.papers.diff_lr import DiffLRRegressor
from dpforest.papers.diffgen import DiffGenClassifier
from dpforest.papers.diffp_c45 import DiffPC45Classifier
from dpforest.papers.diffp_id3 import DiffPID3Classifier
from dpforest.papers.diffpets import DiffPETsClassifier, DiffPETsRegressor
from dpforest.papers.diffprf import DiffPRFClassifier
from dpforest.papers.diffprfs import DiffPRFsClassifier
from dpforest.papers.diprime import DiPriMeClassifier, DiPriMeRegressor
from dpforest.papers.dp_adaboost import DPAdaBoostClassifier
from dpforest.papers.dp_ebm import DPEBMClassifier, DPEBMRegressor
from dpforest.papers.dp_tr import DPTRClassifier
from dpforest.papers.dps_adaboost import DPsAdaBoostClassifier
from dpforest.papers.dt_diff import DTDiffClassifier
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.functional_mechanism import FunctionalMechanismClassifier, FunctionalMechanismRegressor
from dpforest.papers.pearson_tree import PearsonTreeClassifier
from dpforest.papers.pinq_id3 import PinqID3Classifier
from dpforest.papers.privatree import PrivaTreeClassifier
from dpforest.papers.random_trees import RandomTreesClassifier, RandomTreesRegressor
from dpforest.papers.s_bdt import SBDTClassifier
from dpforest.papers.smooth_forest import SmoothForestClassifier
from dpforest.papers.sulq_id3 import SulqID3Classifier

__all__ = ["LEARNERS"]

_EVERY: tuple[type[PrivateEstimator], ...] = (
    # learners: written by make lists
    EDPRFClassifier,
    RandomTreesClassifier,
    RandomTreesRegressor,
    DiffPETsClassifier,
    DiffPETsRegressor,
    DiffPRFClassifier,
    DiffPRFsClassifier,
    DPsAdaBoostClassifier,
    DPAdaBoostClassifier,
    PearsonTreeClassifier,
    FunctionalMechanismRegressor,
    FunctionalMechanismClassifier,
    DiffLRRegressor,
    DiffPID3Classifier,
    SulqID3Classifier,
    PinqID3Classifier,
    DiffPC45Classifier,
    DiffGenClassifier,
    DTDiffClassifier,
    SmoothForestClassifier,
    DPEBMClassifier,
    DPEBMRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivaTreeClassifier,
    DiPriMeClassifier,
    DiPriMeRegressor,
    DPTRClassifier,
    SBDTClassifier,
    AIMClassifier,
    # end of learners
)

#: The estimators; what each declares for its auditor is in its ``AUDIT``.
LEARNERS: dict[str, type[PrivateEstimator]] = {estimator.AUDIT.name: estimator for estimator in _EVERY}
