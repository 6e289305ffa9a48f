"""Private boosting of wide tables: the library's own learner, which no paper published.

Each round selects one table, of a feature or of a few crossed ones, measures it, and moves the scores of its cells by
the empirical-Bayes estimate that the noisy sums allow.  The chapter *The flagship* has the design and the proof.
"""

from dpforest.flagship.classifier import PrivateBoostingClassifier
from dpforest.flagship.regressor import PrivateBoostingRegressor
from dpforest.flagship.schedules import BoostingSchedule, RegressionSchedule, regression_schedule, schedule

__all__ = [
    "BoostingSchedule",
    "PrivateBoostingClassifier",
    "PrivateBoostingRegressor",
    "RegressionSchedule",
    "regression_schedule",
    "schedule",
]
