"""The grey box: the accounts of a run, and the same run on a neighbour with its answers frozen."""

from dpforest.audit.grey.greybox import Finding, GreyBoxAudit, greybox

__all__ = ["Finding", "GreyBoxAudit", "greybox"]
