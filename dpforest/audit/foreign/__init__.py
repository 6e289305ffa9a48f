"""Record and replay for code of other libraries: what the noise of a run hides, and what it does not.

A run on one table is recorded: each call of a source of noise, the value that is noised, the scale, the place in the
source.  Then the same code runs on a neighbour with the answers frozen, so that it goes down the same path, and the two
records are compared.  The idea is that of Cebere and others, *Privacy in theory, bugs in practice* (2026); the code is
not theirs.
"""

from __future__ import annotations

from dpforest.audit.foreign.call_audit import CallAudit, audit_calls
from dpforest.audit.foreign.calls import KINDS, UNJUDGED, CallFinding, NoiseCall, NoisedValue, NoiseSource
from dpforest.audit.foreign.recording import Recording, record_calls

__all__ = [
    "KINDS",
    "UNJUDGED",
    "CallAudit",
    "CallFinding",
    "NoiseCall",
    "NoiseSource",
    "NoisedValue",
    "Recording",
    "audit_calls",
    "record_calls",
]
