"""Claims about all real numbers, put to a solver."""

from __future__ import annotations

import z3

#: What the solver may do before it gives up, in its own steps, not in seconds: all claims together take half a million.
RESOURCES = 20_000_000


def certain(claim, *given) -> bool:
    """Whether the claim follows from what is given, for all real numbers."""
    solver = z3.Solver()
    solver.set("rlimit", RESOURCES)
    solver.add(*given, z3.Not(claim))
    return solver.check() == z3.unsat


def possible(*given) -> bool:
    solver = z3.Solver()
    solver.set("rlimit", RESOURCES)
    solver.add(*given)
    return solver.check() == z3.sat
