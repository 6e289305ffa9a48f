"""Pairs of neighbours to look at: the classical traps, and hill climbing for a worst pair."""

from dpforest.audit.search.climbing import climb, expected_bound
from dpforest.audit.search.pairs import Pair
from dpforest.audit.search.traps import table_traps, traps

__all__ = ["Pair", "climb", "expected_bound", "table_traps", "traps"]
