"""Claims about all real numbers, put to a solver."""

from __future__ import annotations

import z3


def certain(claim, *given) -> bool:
    """Whether the claim follows from what is given, for all real numbers."""
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(*given, z3.Not(claim))
    return solver.check() == z3.unsat


def possible(*given) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(*given)
    return solver.check() == z3.sat
