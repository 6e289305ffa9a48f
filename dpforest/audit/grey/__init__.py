"""The grey box: the accounts of a run, and the same run on a neighbour with its answers frozen."""

from dpforest.audit.grey.greybox import GreyBoxAudit, GreyBoxFinding, greybox

__all__ = ["GreyBoxAudit", "GreyBoxFinding", "greybox"]
