"""Testing and choosing models privately, on rows that were put aside.

A score on a test table is computed from people, as a model is.  Here it is paid for: what a model says of a record and
what is true of it are one cell of a public grid, and the cells are counted with noise.  The chapter *Choosing without
leaking* has the theorems.
"""

from dpforest.evaluation.choice import Choice, choose
from dpforest.evaluation.estimates import Estimate
from dpforest.evaluation.held_out import Sides, hold_out
from dpforest.evaluation.private_test import Evaluation, evaluate

__all__ = ["Choice", "Estimate", "Evaluation", "Sides", "choose", "evaluate", "hold_out"]
